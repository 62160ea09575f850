//! Classifies an answer in a discussion: content, a mere nod, or a pass.
//!
//! Input: a text, the names of the participants, and the previous round. Output: a [`Speech`]. Only the form counts: a
//! text is a nod only if it is short and consists of nodding words, or repeats an earlier text. A misclassification
//! would end a discussion, so in doubt it is content.

use crate::ids::SeatName;

/// The effect of an answer on a discussion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speech {
    /// Has content.
    #[default]
    Words,
    /// Only agrees, thanks, or repeats.
    Nod,
    /// The member has nothing to add.
    Pass,
}

/// The reply of a member with nothing to add, as its prompt asks.
pub const PASS: &str = "nothing to add";

/// Complete answers that are a pass.
const PASSES: &[&str] = &[
    PASS,
    "i have nothing to add",
    "i have nothing more to add",
    "i have nothing further to add",
    "nothing more to add",
    "nothing further to add",
    "nothing further",
    "nothing else to add",
    "pass",
    "i pass",
    "no comment",
    "no further comment",
    "no further comments",
];

/// Maximum words of a nod.
const NOD_WORDS_MAX: usize = 24;

/// Words that make up nods, in alphabetical order.
const NODS: &[&str] = &[
    "a",
    "absolutely",
    "ack",
    "acknowledge",
    "acknowledged",
    "agree",
    "agreed",
    "aligned",
    "all",
    "also",
    "and",
    "anytime",
    "appreciate",
    "appreciated",
    "are",
    "as",
    "awesome",
    "both",
    "cheers",
    "clear",
    "completely",
    "concur",
    "confirmed",
    "cool",
    "correct",
    "definitely",
    "done",
    "everyone",
    "exactly",
    "excellent",
    "fine",
    "for",
    "from",
    "fully",
    "glad",
    "good",
    "got",
    "great",
    "happy",
    "have",
    "help",
    "here",
    "i",
    "i'm",
    "in",
    "indeed",
    "is",
    "it",
    "let's",
    "lgtm",
    "likewise",
    "m",
    "makes",
    "me",
    "much",
    "my",
    "nice",
    "noted",
    "of",
    "ok",
    "okay",
    "on",
    "one",
    "our",
    "page",
    "perfect",
    "point",
    "points",
    "proceed",
    "re",
    "received",
    "right",
    "s",
    "said",
    "same",
    "sense",
    "side",
    "so",
    "sounds",
    "sure",
    "thank",
    "thanks",
    "that",
    "that's",
    "the",
    "then",
    "this",
    "to",
    "too",
    "totally",
    "true",
    "understood",
    "us",
    "very",
    "we",
    "we're",
    "welcome",
    "well",
    "with",
    "wonderful",
    "works",
    "yep",
    "yes",
    "you",
    "you're",
    "your",
];

/// Classifies an answer. `room` are the names that may be addressed in it, `said` are the texts of the previous round.
pub fn weigh<'a>(
    text: &str,
    room: &[&SeatName],
    said: impl IntoIterator<Item = &'a str>,
) -> Speech {
    if is_pass(text) {
        return Speech::Pass;
    }
    let words = words(text, room);
    if words.len() > NOD_WORDS_MAX {
        return Speech::Words;
    }
    let nods = |word: &String| NODS.binary_search(&word.as_str()).is_ok();
    let repeats = || {
        said.into_iter()
            .any(|other| self::words(other, room) == words)
    };
    if words.iter().all(nods) || repeats() {
        Speech::Nod
    } else {
        Speech::Words
    }
}

/// Returns whether an answer is a pass.
pub fn is_pass(text: &str) -> bool {
    // Longer than any pass, including quotes and marks around it.
    if text.len() > 64 {
        return false;
    }
    let bare: String = text
        .chars()
        .filter(|c| c.is_alphanumeric() || c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect();
    let words: Vec<&str> = bare.split_whitespace().collect();
    PASSES.contains(&words.join(" ").as_str())
}

/// Returns the words of a text in lower case, without the names of the participants.
fn words(text: &str, room: &[&SeatName]) -> Vec<String> {
    // Slightly more than the maximum, which is enough to exclude a nod.
    let tokens = text.split_whitespace().take(NOD_WORDS_MAX + 2);
    let mut words = Vec::new();
    for token in tokens {
        let bare = token
            .trim_start_matches('@')
            .trim_end_matches(|c: char| !c.is_alphanumeric());
        if room
            .iter()
            .any(|name| name.as_str().eq_ignore_ascii_case(bare))
        {
            continue;
        }
        let parts = token.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’'));
        words.extend(
            parts
                .map(|part| part.to_lowercase().replace('’', "'"))
                .filter(|part| !part.is_empty()),
        );
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weigh_here(text: &str, said: &[&str]) -> Speech {
        let names = ["claude", "gpt-5.1"].map(|n| SeatName::new(n).unwrap());
        weigh(
            text,
            &names.iter().collect::<Vec<_>>(),
            said.iter().copied(),
        )
    }

    #[test]
    fn the_nodding_words_are_sorted() {
        assert!(NODS.is_sorted());
    }

    #[test]
    fn only_what_says_nothing_weighs_nothing() {
        for (text, speech) in [
            ("Nothing to add.", Speech::Pass),
            ("*nothing to add*", Speech::Pass),
            ("[pass]", Speech::Pass),
            ("Thanks @claude, that makes sense! 👍", Speech::Nod),
            ("You're welcome, gpt-5.1.", Speech::Nod),
            ("Acknowledged.", Speech::Nod),
            ("I fully agree.", Speech::Nod),
            ("👍", Speech::Nod),
            ("Yes, SQLite.", Speech::Words),
            ("Agreed, but the index is missing.", Speech::Words),
            ("No.", Speech::Words),
            (
                "I have nothing to add to the schema; the API worries me.",
                Speech::Words,
            ),
            ("42", Speech::Words),
            ("好的", Speech::Words),
        ] {
            assert_eq!(weigh_here(text, &[]), speech, "{text}");
        }
    }

    #[test]
    fn a_short_repetition_is_a_nod_in_any_language() {
        assert_eq!(weigh_here("好的", &["x", "好的。"]), Speech::Nod);
        let long = "word ".repeat(40);
        assert_eq!(weigh_here(&long, &[&long]), Speech::Words);
    }
}
