//! The sentences of a reply with their tokens and places, and the hashes of features.

use super::tokens::{self, Sentence, Token};

/// The logarithm of the number of weights.
pub(super) const BITS: u32 = 18;
/// The features of one row, without repetition.
pub(super) type Row = Vec<u32>;

/// Returns the index of a feature.
pub(super) fn feature(parts: &[&str]) -> u32 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for byte in part.bytes().chain([0x1f]) {
            hash ^= u64::from(byte);
            hash = hash.wrapping_mul(0x0100_0000_01b3);
        }
    }
    let folded = hash ^ (hash >> 24) ^ (hash >> 48);
    u32::try_from(folded & ((1 << BITS) - 1)).unwrap_or_default()
}

/// A sentence with its tokens, and its place in the reply.
pub(super) struct View<'a> {
    pub(super) sentence: &'a Sentence,
    pub(super) tokens: &'a [Token],
    pub(super) classes: Vec<(usize, &'a str)>,
    /// Its place among all sentences.
    pub(super) place: &'static str,
    /// Its place among the sentences with mentions.
    pub(super) named: &'static str,
    /// Whether it names one candidate.
    pub(super) sole: &'static str,
    pub(super) asks: bool,
    pub(super) length: &'static str,
}

/// Looks at a sentence of a reply.
pub(super) fn view<'a>(
    n: usize,
    all: &'a [Sentence],
    tokens: &'a [Token],
    named: &[usize],
) -> View<'a> {
    let sentence = &all[n];
    let first = sentence.mentions.first().map(|m| m.item);
    let one = sentence.mentions.iter().all(|m| Some(m.item) == first);
    let words = tokens.iter().filter(|t| !t.stops()).count();
    let end = tokens.iter().rev().find(|t| t.text != ")");
    View {
        sentence,
        tokens,
        classes: tokens::classes(tokens),
        place: match (n, all.len() - 1 - n) {
            (0, 0) => "only",
            (0, _) => "first",
            (_, 0) => "last",
            (_, 1) => "last but one",
            _ => "inside",
        },
        named: match (named.first() == Some(&n), named.last() == Some(&n)) {
            (true, true) => "only",
            (true, _) => "first",
            (_, true) => "last",
            _ => "inside",
        },
        sole: match (one, sentence.mentions.len()) {
            (true, _) => "sole",
            (_, ..4) => "two",
            _ => "many",
        },
        asks: end.is_some_and(|t| t.text == "?"),
        length: match words {
            ..2 => "1",
            2..4 => "3",
            4..7 => "6",
            7..15 => "14",
            _ => "long",
        },
    }
}

pub(super) const BEGIN: &str = "<";
pub(super) const END: &str = ">";

/// Returns a word, `#` for a mention, or a mark outside of the sentence.
pub(super) fn word(tokens: &[Token], at: Option<usize>) -> &str {
    let Some(at) = at else { return BEGIN };
    match tokens.get(at) {
        Some(token) if token.mention.is_some() => "#",
        Some(token) => &token.text,
        None => END,
    }
}

/// Returns the first letters of a long word: forms of one word share them.
pub(super) fn stem(word: &str) -> Option<&str> {
    const LETTERS: usize = 5;
    let end = word.char_indices().nth(LETTERS)?.0;
    word.get(..end)
}
