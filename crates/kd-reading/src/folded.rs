//! Case-insensitive search. Input: a text, and words in lower case. Output: byte ranges in the original text.
//!
//! Lowercasing moves bytes: `İ` becomes one byte longer, the ohm sign one shorter. An offset in the lowercase copy is
//! therefore not valid in the text, even if both have the same length.

use super::language::is_han;
use std::ops::Range;

/// A text and its lowercase copy.
pub(super) struct Folded<'a> {
    text: &'a str,
    lower: String,
    /// Offset of each character in the copy and in the text, then the end of both. Empty for ASCII, where no byte
    /// moves.
    starts: Vec<(usize, usize)>,
}

impl<'a> Folded<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        if text.is_ascii() {
            return Self {
                text,
                lower: text.to_ascii_lowercase(),
                starts: Vec::new(),
            };
        }
        let mut lower = String::with_capacity(text.len());
        let mut starts = Vec::new();
        for (at, c) in text.char_indices() {
            starts.push((lower.len(), at));
            lower.extend(c.to_lowercase());
        }
        starts.push((lower.len(), text.len()));
        Self {
            text,
            lower,
            starts,
        }
    }

    /// Returns the lowercase copy, for checks that need no offset.
    pub(super) fn lower(&self) -> &str {
        &self.lower
    }

    /// Returns the first occurrence of a word.
    pub(super) fn find(&self, word: &str) -> Option<Range<usize>> {
        let at = self.lower.find(word)?;
        Some(self.range(at, word))
    }

    /// Returns the last occurrence of a word.
    pub(super) fn rfind(&self, word: &str) -> Option<Range<usize>> {
        let at = self.lower.rfind(word)?;
        Some(self.range(at, word))
    }

    /// Returns the occurrences of a word that are not part of a longer word. Chinese words need no space around them.
    pub(super) fn words(&self, word: &str) -> impl Iterator<Item = Range<usize>> {
        let han = word.chars().any(is_han);
        let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphabetic() || is_han(c));
        self.lower
            .match_indices(word)
            .map(|(at, word)| self.range(at, word))
            .filter(move |range| {
                han || edge(self.text[..range.start].chars().next_back())
                    && edge(self.text[range.end..].chars().next())
            })
    }

    /// Strips a word from the beginning of the text.
    pub(super) fn strip_prefix(&self, word: &str) -> Option<&'a str> {
        let starts = self.lower.starts_with(word);
        starts.then(|| &self.text[self.range(0, word).end..])
    }

    /// Returns the range in the text of the characters that a word in the copy touches.
    fn range(&self, at: usize, word: &str) -> Range<usize> {
        let end = at + word.len();
        if self.starts.is_empty() {
            return at..end;
        }
        let from = self.starts.partition_point(|(lower, _)| *lower <= at);
        let to = self.starts.partition_point(|(lower, _)| *lower < end);
        let place = |n: usize| self.starts.get(n).map_or(self.text.len(), |(_, at)| *at);
        place(from.saturating_sub(1))..place(to)
    }
}

#[cfg(test)]
mod tests {
    use super::Folded;

    /// Letters whose byte length changes in lower case, and one whose does not.
    const LETTERS: [&str; 7] = ["İ", "Ω", "K", "Å", "Ⱥ", "ẞ", "ä"];

    #[test]
    fn a_word_is_found_where_it_is_in_the_text() {
        for one in LETTERS {
            for two in LETTERS {
                let text = format!("{one}x Word{two} WORD {one}{two}");
                let folded = Folded::new(&text);
                let first = folded.find("word").map(|range| &text[range]);
                assert_eq!(first, Some("Word"), "{text}");
                let last = folded.rfind("word").map(|range| &text[range]);
                assert_eq!(last, Some("WORD"), "{text}");
                let alone: Vec<&str> = folded.words("word").map(|range| &text[range]).collect();
                assert_eq!(alone, ["WORD"], "{text}");
                let lower = one.to_lowercase();
                assert_eq!(folded.strip_prefix(&lower), text.get(one.len()..), "{text}");
            }
        }
    }

    #[test]
    fn a_part_of_a_letter_is_the_whole_letter() {
        // `İ` becomes `i` and a combining dot above.
        let folded = Folded::new("aİb");
        assert_eq!(folded.find("i"), Some(1..3));
        assert_eq!(folded.find("ai"), Some(0..3));
        assert_eq!(folded.find("\u{307}b"), Some(1..4));
        assert_eq!(Folded::new("ab").find("b"), Some(1..2));
        assert_eq!(Folded::new("Ä").find(""), Some(0..0));
        assert_eq!(Folded::new("").find("a"), None);
    }
}
