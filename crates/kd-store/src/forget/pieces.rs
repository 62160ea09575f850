//! Recognizes quotes of a forgotten text: by its lines, runs of its words, and its unusual words. Pure. Paraphrases are
//! not recognized.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Number of consecutive words that are recognized inside other text. Lines with fewer words are recognized as a whole.
const RUN_WORDS: usize = 6;
/// Minimum characters of a line that is recognized inside other text.
const LINE_CHARS_MIN: usize = 12;
/// Minimum characters of a word of letters and digits that is recognized alone, such as a key or a file name.
const ODD_WORD_CHARS_MIN: usize = 10;
/// Maximum number of runs, enough for several million words. Only the beginning of longer text is recognized.
const RUNS_MAX: usize = 4_000_000;

/// The parts by which repeated text is recognized.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Hashes of runs of words.
    runs: HashSet<u64>,
    /// The lengths of these runs.
    lengths: BTreeSet<usize>,
    /// Complete texts, whatever their length.
    wholes: HashSet<String>,
}

impl Pieces {
    /// Adds a text.
    pub fn add(&mut self, text: &str) {
        let whole = text.trim();
        if whole.is_empty() {
            return;
        }
        if whole.chars().count() < 4 * LINE_CHARS_MIN {
            self.wholes.insert(whole.to_owned());
        }
        for line in text.lines() {
            let words = words(line);
            let chars: usize = words.iter().map(|word| word.chars().count() + 1).sum();
            if chars > LINE_CHARS_MIN {
                self.add_runs(&words, words.len().min(RUN_WORDS));
            }
            for word in words.iter().filter(|word| is_odd(word)) {
                self.add_runs(std::slice::from_ref(word), 1);
            }
        }
    }

    fn add_runs(&mut self, words: &[String], length: usize) {
        if length == 0 {
            return;
        }
        self.lengths.insert(length);
        for run in words.windows(length) {
            if self.runs.len() < RUNS_MAX {
                self.runs.insert(hash(run));
            }
        }
    }

    /// Returns whether a text repeats a part of an added one.
    pub fn are_in(&self, text: &str) -> bool {
        self.wholes.contains(text.trim()) || self.have_a_run_in(text)
    }

    /// Like [`Self::are_in`], for texts of others: a short text that is equal to an added one does not count.
    pub fn are_quoted_in(&self, text: &str) -> bool {
        let whole = text.trim();
        let is_long = whole.chars().count() >= LINE_CHARS_MIN;
        is_long && self.wholes.contains(whole) || self.have_a_run_in(text)
    }

    fn have_a_run_in(&self, text: &str) -> bool {
        text.lines().any(|line| {
            let words = words(line);
            let has = |length: &usize| {
                words
                    .windows(*length)
                    .any(|run| self.runs.contains(&hash(run)))
            };
            self.lengths.iter().any(has)
        })
    }
}

/// Returns the words of a line in lower case, without surrounding punctuation.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn is_odd(word: &str) -> bool {
    word.chars().count() >= ODD_WORD_CHARS_MIN
        && word.chars().any(char::is_alphabetic)
        && word.chars().any(|c| c.is_ascii_digit())
}

fn hash(run: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    run.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_recognised_where_a_part_of_it_is_repeated() {
        let mut pieces = Pieces::default();
        pieces.add(
            "Our database password is hunter2, tell nobody.\nYes.\n\nThe key: sk-ab12cd34ef56",
        );
        pieces.add("Go");
        for (text, found) in [
            ("> our database password IS hunter2 tell nobody!", true),
            ("the database password is hunter2, tell nobody else", true),
            ("`sk-ab12cd34ef56`", true),
            ("Go", true),
            (" Go\n", true),
            ("Go on", false),
            ("Yes.", false),
            ("our database password", false),
            ("", false),
        ] {
            assert_eq!(pieces.are_in(text), found, "{text:?}");
            let quoted = found && !text.trim().eq("Go");
            assert_eq!(pieces.are_quoted_in(text), quoted, "{text:?}");
        }
        assert!(!Pieces::default().are_in("anything at all, whatever it may be"));
    }

    #[test]
    fn a_short_line_is_recognised_inside_another() {
        let mut pieces = Pieces::default();
        pieces.add("MARKER plan alpha");
        assert!(pieces.are_in("The question: MARKER plan alpha. Answer it."));
        assert!(!pieces.are_in("MARKER plan beta"));
    }
}
