//! Decides from the answers how they compare. The form of a question may leave it open (`EOL py3.9?`) or mislead (`What
//! will the crossing come to?`); then the first answers decide: bare numbers, dates, yes and no, code, lists, or things
//! named in the question. Input: the question, the kind suggested by its form, the first replies. Output: the kind, if
//! it differs from the plan. The function is deterministic.
//!
//! A bare answer is an anchor. A kind is chosen if most answers are anchors of it and more can be read as it. In doubt,
//! answers stay separate.

use super::answer::AnswerKind;
use kd_reading::anchors::{Head, are_orders, heads, named};
use kd_reading::kinds as reading_kinds;
use serde::{Deserialize, Serialize};

/// A kind shown by the answers, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// The kind.
    pub answers: AnswerKind,
    /// The reason.
    pub why: String,
}

/// The evidence for one kind.
struct Tally {
    kind: AnswerKind,
    /// Whether it is a choice among things that the question names and the answers repeat.
    names: bool,
    /// Bare answers.
    anchors: usize,
    /// Answers readable as this kind.
    readable: usize,
}

/// Returns the kind of the first replies; `None` if the planned one holds. `asked` is the requested kind, `guess` the
/// kind suggested by the form of the question.
pub fn settle(
    question: &str,
    asked: &AnswerKind,
    guess: &AnswerKind,
    replies: &[&str],
) -> Option<Settled> {
    let heads = heads(replies);
    if heads.len() < 2 {
        return None;
    }
    let most = (2 * heads.len()).div_ceil(3);
    let half = heads.len().div_ceil(2);
    let is_told = asked == guess && asked.is_keyed();
    // Code does not answer it, whatever most replies are: they stay unread.
    if is_told && asks_only_for_a_side(question, guess) {
        let coded = heads.iter().filter(|h| h.is_code());
        if 2 * coded
            .filter(|h| guess.read_for(question, h.reply).is_err())
            .count()
            > heads.len()
        {
            return None;
        }
    }
    let tallies = tallies(question, guess, is_told, &heads);
    let own = tallies.iter().find(|t| t.kind == *guess);
    let best = tallies
        .iter()
        .filter(|t| t.readable >= most && t.anchors >= half)
        // The first on a tie.
        .rev()
        .max_by_key(|t| (t.names && t.anchors >= most, t.anchors, t.kind == *guess));
    // The kind shown by the form of the question holds if it is readable and nothing clearer contradicts it.
    if is_told
        && let Some(own) = own
        && own.readable >= half
        && !best.is_some_and(|b| overrules(b, own, most))
    {
        return None;
    }
    let found = match (best, own) {
        (Some(best), _) => Some(best),
        (None, Some(own)) if own.anchors > 0 && own.readable >= most => Some(own),
        _ => None,
    };
    match found {
        Some(found) if found.kind == *asked => None,
        Some(found) => Some(Settled {
            answers: found.kind.clone(),
            why: format!(
                "{} of {} answers are of this kind",
                found.readable,
                heads.len()
            ),
        }),
        // The text has the units, a bare number does not: `100 °C` is not `100 °F`.
        None if is_told && *guess == AnswerKind::Number && Head::mix_units(&heads) => {
            Some(Settled {
                answers: AnswerKind::Text,
                why: "the answers have different units".into(),
            })
        }
        // Answers unreadable as the planned kind are kept as texts.
        None if is_told => {
            let short = heads.iter().filter(|h| h.is_short).count();
            let (answers, why) = match short >= most {
                true => (AnswerKind::Judged, "short texts"),
                false => (AnswerKind::Text, "texts"),
            };
            let read = own.map_or(0, |own| own.readable);
            Some(Settled {
                answers,
                why: format!(
                    "{read} of {} answers can be read as {}: they are {why}",
                    heads.len(),
                    asked.words()
                ),
            })
        }
        None => None,
    }
}

/// Returns whether the answers support another kind clearly enough to override the form of the question.
fn overrules(other: &Tally, own: &Tally, most: usize) -> bool {
    let is_order = own.kind == AnswerKind::Set && other.kind == AnswerKind::Ranking;
    let is_clear = other.anchors >= most && other.kind != own.kind;
    let has_better_options = other.names && other.anchors > own.readable;
    is_order || is_clear && (own.anchors == 0 || has_better_options)
}

/// Returns the evidence for each kind, the guess first.
fn tallies(question: &str, guess: &AnswerKind, is_told: bool, heads: &[Head<'_>]) -> Vec<Tally> {
    let mut kinds: Vec<AnswerKind> = Vec::new();
    if guess.is_keyed() {
        kinds.push(guess.clone());
    }
    let options = named(question, heads);
    let is_sum = is_told && *guess == AnswerKind::Number;
    let narrows = narrows(guess, &options);
    let choice = AnswerKind::Choice { options };
    if !has_labels(question, guess) {
        let offers = matches!(&choice, AnswerKind::Choice { options } if options.len() >= 2);
        if offers && !is_sum && !narrows {
            kinds.push(choice.clone());
        }
        kinds.push(AnswerKind::Choice {
            options: vec!["yes".into(), "no".into()],
        });
        let lists = match are_orders(question, heads) {
            true => AnswerKind::Ranking,
            false => AnswerKind::Set,
        };
        // An amount in the reasons for an unread yes or no is not an answer: `91 is divisible by 7.`
        let is_told_side =
            is_told && matches!(guess, AnswerKind::Choice { options } if *options == ["yes", "no"]);
        if !is_told_side {
            kinds.extend([AnswerKind::Date, AnswerKind::Number]);
        }
        // A comma in the answer to a question for one thing does not make a list: `Rund 2,03 Millionen`, `Found none,
        // so yes`.
        let is_one = matches!(
            guess,
            AnswerKind::Number | AnswerKind::Date | AnswerKind::Choice { .. }
        );
        let is_choice = matches!(guess, AnswerKind::Choice { .. });
        let names_one = is_one && (lists == AnswerKind::Set || is_choice);
        kinds.extend((!(is_told && names_one)).then_some(lists));
        kinds.push(AnswerKind::Code);
    }
    let dated = heads.iter().any(Head::has_month);
    let mut out: Vec<Tally> = Vec::new();
    for kind in kinds {
        if out.iter().any(|t| t.kind == kind) {
            continue;
        }
        let is_guess = kind == *guess;
        let is_likely = is_guess || dated;
        let reads = |h: &&Head| kind.read_for(question, h.reply).is_ok();
        let anchors = heads
            .iter()
            .filter(|h| is_anchor(&kind, question, h, is_likely));
        let tally = Tally {
            anchors: anchors.filter(|h| reads(h)).count(),
            readable: heads.iter().filter(reads).count(),
            names: kind == choice,
            kind,
        };
        // Advice has clauses too, but in an actual list the members name equally many things.
        let counts: Vec<usize> = heads
            .iter()
            .filter(|h| h.is_list())
            .map(Head::count)
            .collect();
        let usual = counts
            .iter()
            .map(|c| counts.iter().filter(|o| *o == c).count())
            .max();
        let ragged =
            tally.kind == AnswerKind::Set && !is_guess && 3 * usual.unwrap_or(0) < 2 * heads.len();
        let mixed = ragged || tally.kind == AnswerKind::Number && Head::mix_units(heads);
        out.extend((!mixed).then_some(tally));
    }
    out
}

/// Returns whether a question asks for yes or no and for nothing else: unlike `Is it safe? Which formula?`
fn asks_only_for_a_side(question: &str, guess: &AnswerKind) -> bool {
    matches!(guess, AnswerKind::Choice { options } if *options == ["yes", "no"])
        && reading_kinds::of(question) == reading_kinds::Kind::YesNo
        && question.matches(['?', '？']).count() < 2
}

/// Returns whether the guess consists of labelled options. These hold, whatever the answers repeat.
fn has_labels(question: &str, guess: &AnswerKind) -> bool {
    matches!(guess, AnswerKind::Choice { options } if reading_kinds::are_labelled(question, options))
}

/// Returns whether the options are a subset of the guessed options.
fn narrows(guess: &AnswerKind, options: &[String]) -> bool {
    let AnswerKind::Choice { options: all } = guess else {
        return false;
    };
    let all: Vec<String> = all.iter().map(|o| o.to_lowercase()).collect();
    options.iter().all(|o| all.contains(&o.to_lowercase())) && options.len() < all.len()
}

/// Returns whether an answer is a bare answer of a kind.
fn is_anchor(kind: &AnswerKind, question: &str, head: &Head<'_>, is_likely: bool) -> bool {
    match kind {
        AnswerKind::Choice { options } if *options == ["yes", "no"] => head.is_side(question),
        AnswerKind::Choice { options } => head.names_one(options),
        AnswerKind::Number => head.is_number(),
        AnswerKind::Date => head.is_date(question, is_likely),
        AnswerKind::Set | AnswerKind::Ranking => head.is_list(),
        AnswerKind::Code => head.is_code(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(options: &[&str]) -> AnswerKind {
        let options = options.iter().map(|o| (*o).to_owned()).collect();
        AnswerKind::Choice { options }
    }

    #[test]
    fn code_answers_no_question_of_yes_and_no() {
        let sides = choice(&["yes", "no"]);
        for question in ["Is 17 prime? yes or no", "Is the deploy safe?"] {
            for replies in [
                ["`cp a b`", "`mv a b`", "`cp a b`"],
                ["```sh\ncp a b\n```", "```sh\ncp a b\n```", "yes"],
                ["=SI(B2>5;1;0)", "=SI(B2>5;1;0)", "=SI(B2>5;1;0)"],
            ] {
                assert_eq!(
                    settle(question, &sides, &sides, &replies),
                    None,
                    "{replies:?}"
                );
                assert!(sides.read_for(question, replies[0]).is_err(), "{replies:?}");
            }
        }
        for (reply, side) in [
            ("`yes`", "yes"),
            ("```\nNo.\n```", "no"),
            ("```text\ntrue\n```", "yes"),
            ("`False`", "no"),
            ("Yes: `cp a b` does it.", "yes"),
            ("```\nANSWER: yes\nCONFIDENCE: 0.9\n```", "yes"),
            ("```\nYes, it is safe: SQLite locks the file.\n```", "yes"),
            ("```markdown\n**Answer:** no\n```", "no"),
            ("```json\n\"yes\"\n```", "yes"),
            ("`No, it is not safe`", "no"),
        ] {
            let read = sides.read_for("Is it safe?", reply).map(|(key, _)| key);
            assert_eq!(read.as_deref(), Ok(side), "{reply}");
        }
    }

    #[test]
    fn answers_settle_their_kind() {
        use AnswerKind::{Code, Date, Judged, Number, Set, Text};
        let sides = choice(&["yes", "no"]);
        // The requested kind equals the guess: the form of the question shows it.
        let rows: [(&str, AnswerKind, &[&str], Option<AnswerKind>); 11] = [
            (
                "EOL py3.9?",
                Text,
                &["2025-10-31", "31 October 2025", "October 2025"],
                Some(Date),
            ),
            (
                "17 times 23",
                Text,
                &["391", "391", "It is 391."],
                Some(Number),
            ),
            (
                "tabs v spaces py",
                Text,
                &["spaces", "tabs", "spaces"],
                Some(choice(&["spaces", "tabs"])),
            ),
            (
                "primes below 8",
                Text,
                &["2, 3, 5, 7", "2, 3, 5, 7", "7, 5, 3, 2"],
                Some(Set),
            ),
            (
                "undo last commit",
                Text,
                &[
                    "`git reset HEAD~1`",
                    "git reset --soft HEAD~1",
                    "`git revert HEAD`",
                ],
                Some(Code),
            ),
            (
                "Is it safe?",
                sides.clone(),
                &["yes", "no", "Yes, it is."],
                None,
            ),
            // Code that only illustrates what they say does not decide.
            (
                "Which database for a shop?",
                Text,
                &[
                    "SQLite, as long as one program writes:\n```sql\nPRAGMA x;\n```\nOne file.",
                    "PostgreSQL, if two programs will ever write at once:\n```sh\ncreatedb shop\n```",
                    "SQLite. The load is small, and this is all that it takes:\n```\ncp a b\n```",
                ],
                None,
            ),
            (
                "Is it safe? Which formula?",
                sides.clone(),
                &["=SI(B2>5;1;0)", "=SI(B2>=5;1;0)", "`=SI(B2>5;1;0)`"],
                Some(Code),
            ),
            // Amounts in the reasons are not the answer.
            (
                "Is 51 a prime number?",
                sides.clone(),
                &["51 is divisible by 3.", "It's 3 times 17.", "3 × 17 = 51"],
                Some(Judged),
            ),
            ("How many?", Number, &["12", "13", "12"], None),
            // A single answer is not evidence.
            ("How many?", Text, &["12"], None),
        ];
        for (question, asked, replies, want) in rows {
            let settled = settle(question, &asked, &asked, replies);
            let found = settled.as_ref().map(|s| s.answers.clone());
            assert_eq!(found, want, "{question}");
            assert_eq!(
                settle(question, &asked, &asked, replies),
                settled,
                "{question}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_as_asked_becomes_text() {
        let replies = [
            "because of the wind",
            "a long story about sails",
            "the wind, mostly",
        ];
        let settled = settle(
            "How many?",
            &AnswerKind::Number,
            &AnswerKind::Number,
            &replies,
        );
        let found = settled.map(|s| s.answers);
        assert!(
            matches!(found, Some(AnswerKind::Judged | AnswerKind::Text)),
            "{found:?}"
        );
        // Open text was requested: nothing changes.
        assert_eq!(
            settle("Why?", &AnswerKind::Text, &AnswerKind::Text, &replies),
            None
        );
    }

    #[test]
    fn refusals_and_empty_replies_do_not_count() {
        let replies = ["", "I can't help with that.", "12", "12 apples"];
        let settled = settle(
            "apples left",
            &AnswerKind::Text,
            &AnswerKind::Text,
            &replies,
        );
        assert_eq!(settled.map(|s| s.answers), Some(AnswerKind::Number));
    }
}
