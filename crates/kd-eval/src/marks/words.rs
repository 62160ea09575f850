//! A promise in words, for the user whose marks it rests on and for readers of a record.

use super::{Standing, State};
use jiff::Timestamp;

/// Maximum characters of the name of a kind in a record.
const KIND_CHARS_MAX: usize = 40;

impl Standing {
    /// Describes the standing in one sentence, for the user whose marks these are.
    pub fn words(&self) -> String {
        let promise = match self.right() {
            Some(_) => "promise",
            None => "no promise",
        };
        format!("{promise}: {}", self.sentence())
    }

    /// Describes the standing that a record states. Its marks may be those of somebody else, so it is no promise to the
    /// reader.
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

    /// Returns whether the values can be true: they may come from a record that somebody else wrote.
    pub fn is_sound(&self) -> bool {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        // Sums of weights are rounded.
        let is_score = |score: f64| score.abs() < 1.001;
        let is_word =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let shares = match &self.state {
            State::Promised {
                right,
                risk,
                tested,
                wrong,
                period,
            } => is_share(*right) && is_share(*risk) && wrong <= tested && period.0 <= period.1,
            State::Unsure { right, from } => is_share(*right) && is_score(*from),
            State::None { .. } => true,
        };
        shares
            && self.score.is_none_or(is_score)
            && self.probability.is_none_or(is_share)
            && self.imported <= self.marks
            && (1..=KIND_CHARS_MAX).contains(&self.kind.len())
            && self.kind.chars().all(is_word)
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
            tested: 5,
            wrong,
            period: (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH),
        };
        for unsound in [
            with(&|s| s.kind = "number\u{1b}[2J".into()),
            with(&|s| s.kind = "x".repeat(41)),
            with(&|s| s.kind = String::new()),
            with(&|s| s.score = Some(1e300)),
            with(&|s| s.probability = Some(1.5)),
            with(&|s| s.state = state(1e300, 0)),
            with(&|s| s.state = state(0.9, 6)),
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
