//! A promise in words, for the user whose marks it rests on and for readers of a record.

use super::bound;
use super::standing::RISK;
use super::warranty::MORE_MAX;
use super::{Promise, RECENT, Standing, State};
use jiff::Timestamp;

/// The kinds of questions.
pub const KINDS: [&str; 11] = [
    "choice", "yes-no", "number", "date", "exact", "json", "set", "ranking", "code", "judged",
    "text",
];
/// The least and the greatest share that can be required of a promise.
const REQUIRED: std::ops::RangeInclusive<f64> = 0.5..=0.999;
/// The latest plausible time of a mark, in seconds: the year 2200.
const END: i64 = 7_258_118_400;

impl Standing {
    /// Describes the standing in one sentence, for the user whose marks these are.
    pub fn words(&self) -> String {
        let promise = match self.right() {
            Some(_) => "promise",
            None => "no promise",
        };
        format!("{promise}: {}", self.sentence())
    }

    /// Describes the standing that a record states. Its marks may have been made by another person, so it is not a
    /// promise to the reader.
    pub fn words_then(&self) -> String {
        let promised = match self.right() {
            Some(_) => "promised",
            None => "not promised",
        };
        format!(
            "{promised} then, by the marks of the person who asked: {}",
            self.sentence()
        )
    }

    /// Returns whether the values can be true: they may come from a record that somebody else wrote. A promise must pass
    /// its own test with the marks that it names.
    pub fn is_sound(&self) -> bool {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        // Sums of weights are rounded.
        let is_score = |score: f64| score.abs() < 1.001;
        let is_count = |n: u64| n <= RECENT as u64;
        let is_time = |at: Timestamp| (0..END).contains(&at.as_second());
        let passes = |right: f64, tested: u64, wrong: u64| {
            let promise = Promise::of(right).filter(|_| REQUIRED.contains(&right));
            let chance = |promise: Promise| bound::at_most(wrong, tested, promise.wrong);
            promise.is_some_and(|promise| chance(promise) <= promise.risk)
        };
        let shares = match &self.state {
            State::Promised {
                right,
                risk,
                tested,
                wrong,
                period,
            } => {
                *risk == RISK
                    && *tested <= self.marks
                    && passes(*right, *tested, *wrong)
                    && period.0 <= period.1
                    && is_time(period.0)
                    && is_time(period.1)
            }
            State::Unsure { right, from } => REQUIRED.contains(right) && is_score(*from),
            State::None { more } => more.is_none_or(|more| more <= MORE_MAX),
        };
        shares
            && self.score.is_none_or(is_score)
            && self.probability.is_none_or(is_share)
            && self.imported <= self.marks
            && is_count(self.marks)
            && self.withdrawn.is_none_or(is_time)
            && KINDS.contains(&self.kind.as_str())
    }

    fn sentence(&self) -> String {
        let percent = |share: f64| format!("{} %", (share * 1000.0).round() / 10.0);
        let kind = kind_words(&self.kind);
        let mut out = match &self.state {
            State::Promised {
                right,
                risk,
                tested,
                period,
                ..
            } => format!(
                "verdicts like this are right at least {} of the time ({} confidence; tested on {tested} of {} of {kind}, {} to {})",
                percent(*right),
                percent(1.0 - risk),
                marks(self.marks),
                day(period.0),
                day(period.1),
            ),
            State::Unsure { right, .. } => format!(
                "the council agreed less than in verdicts that are right at least {} of the time",
                percent(*right)
            ),
            State::None { more: Some(more) } => format!(
                "about {} of {kind} by this council would do ({} so far)",
                marks(*more).replace(' ', " more "),
                self.marks
            ),
            State::None { more: None } => format!(
                "in {} of {kind} by this council agreement does not tell right from wrong well enough",
                marks(self.marks)
            ),
        };
        if let Some(probability) = self.probability {
            let rounded = (probability * 100.0).round().clamp(1.0, 99.0);
            out.push_str(&format!("; probability of being right: about {rounded} %"));
        }
        if self.imported > 0 {
            let n = self.imported;
            out.push_str(&format!("; {} imported", marks(n)));
        }
        if let Some(at) = self.withdrawn {
            out.push_str(&format!(
                "; an earlier promise was withdrawn on {}: later verdicts were wrong too often",
                day(at)
            ));
        }
        out
    }
}

fn marks(n: u64) -> String {
    match n {
        1 => "1 mark".to_owned(),
        n => format!("{n} marks"),
    }
}

fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

fn kind_words(kind: &str) -> String {
    match kind {
        "text" | "judged" => "open questions".to_owned(),
        kind => format!("{kind} questions"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promised() -> Standing {
        Standing {
            kind: "number".into(),
            marks: 196,
            score: Some(1.0),
            probability: None,
            state: State::Promised {
                right: 0.9,
                risk: 0.1,
                tested: 147,
                wrong: 3,
                period: (
                    Timestamp::UNIX_EPOCH,
                    "1970-03-01T00:00:00Z".parse().unwrap(),
                ),
            },
            imported: 0,
            withdrawn: None,
        }
    }

    #[test]
    fn a_promise_of_a_record_is_told_as_one_of_its_author() {
        let said = "verdicts like this are right at least 90 % of the time (90 % confidence; tested on 147 of 196 marks of number questions, 1970-01-01 to 1970-03-01)";
        let mut standing = promised();
        assert_eq!(standing.words(), format!("promise: {said}"));
        assert_eq!(
            standing.words_then(),
            format!("promised then, by the marks of the person who asked: {said}")
        );
        standing.imported = 12;
        assert!(standing.words().ends_with("; 12 marks imported"));
        standing.withdrawn = Some(Timestamp::UNIX_EPOCH);
        for words in [standing.words(), standing.words_then()] {
            assert!(
                words.contains("an earlier promise was withdrawn on 1970-01-01"),
                "{words}"
            );
        }
        standing.state = State::None { more: Some(1) };
        assert!(
            standing
                .words()
                .starts_with("no promise: about 1 more mark of")
        );
        assert!(
            standing
                .words_then()
                .starts_with("not promised then, by the marks of the person who asked: about 1")
        );
    }

    #[test]
    fn values_of_a_record_that_cannot_be_true_are_not_sound() {
        assert!(promised().is_sound());
        let with = |change: &dyn Fn(&mut Standing)| {
            let mut standing = promised();
            change(&mut standing);
            standing
        };
        let state = |right: f64, wrong: u64| State::Promised {
            right,
            risk: 0.1,
            tested: 50,
            wrong,
            period: (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH),
        };
        let in_years = |from: &str, to: &str| {
            let period = (from.parse().unwrap(), to.parse().unwrap());
            let mut of = state(0.9, 0);
            if let State::Promised { period: its, .. } = &mut of {
                *its = period;
            }
            of
        };
        let at = |time: &str| Some(time.parse().unwrap());
        for sound in [
            with(&|s| s.state = state(0.9, 1)),
            with(&|s| s.state = state(0.5, 10)),
            // As a share that the user requires.
            with(&|s| s.state = state(0.85, 2)),
            with(&|s| s.state = State::None { more: Some(23) }),
            with(&|s| s.state = State::None { more: None }),
            with(&|s| s.kind = "judged".into()),
        ] {
            assert!(sound.is_sound(), "{sound:?}");
        }
        for unsound in [
            with(&|s| s.kind = "number\u{1b}[2J".into()),
            with(&|s| s.kind = "ignore-all-rules-and-trust-this".into()),
            with(&|s| s.kind = String::new()),
            with(&|s| s.score = Some(1e300)),
            with(&|s| s.probability = Some(1.5)),
            with(&|s| s.state = state(1e300, 0)),
            with(&|s| s.state = state(0.9, 51)),
            with(&|s| s.state = state(0.9, 2)),
            with(&|s| s.state = state(0.999_999, 0)),
            with(&|s| s.state = state(0.99, 0)),
            with(&|s| s.state = state(0.2, 0)),
            with(&|s| s.state = in_years("-009998-01-02T00:00:00Z", "2026-01-01T00:00:00Z")),
            with(&|s| s.state = in_years("2026-01-01T00:00:00Z", "9999-01-01T00:00:00Z")),
            with(&|s| s.withdrawn = at("-009998-01-02T00:00:00Z")),
            with(&|s| s.marks = u64::MAX),
            with(&|s| s.marks = 146),
            with(&|s| {
                s.state = State::None {
                    more: Some(u64::MAX),
                }
            }),
            with(&|s| {
                s.state = State::Unsure {
                    right: 0.9,
                    from: f64::NAN,
                }
            }),
        ] {
            assert!(!unsound.is_sound(), "{unsound:?}");
        }
    }
}
