//! Cue words in the five languages that show what a clause does: choose, praise, conclude, concede or report.

use super::language::is_han;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) use super::cue_choices::*;
pub(super) use super::cue_doubts::*;
pub(super) use super::cue_roles::*;

/// The words of a list, indexed by their beginnings; list order is kept.
struct Index {
    /// The phrases by their first word, in lower case.
    by_word: BTreeMap<&'static str, Vec<&'static str>>,
    /// Words with any ending, by their first two letters.
    open: BTreeMap<[char; 2], Vec<&'static str>>,
    /// Words in other scripts, such as Chinese, by first character.
    by_sign: BTreeMap<char, Vec<&'static str>>,
    /// A bit for the first two bytes of each phrase, because most words of a text begin like none of them.
    begins: [u64; BEGINS_BITS / 64],
}

/// Number of bits for the beginnings of the words of a list.
const BEGINS_BITS: usize = 1024;

/// Returns the bit for the first two bytes of a word.
fn beginning(word: &str) -> usize {
    let bytes = word.as_bytes();
    let byte = |at: usize| usize::from(bytes.get(at).copied().unwrap_or_default());
    (31 * byte(0) + byte(1)) % BEGINS_BITS
}

impl Index {
    fn new(words: &[&'static str]) -> Self {
        let mut index = Index {
            by_word: BTreeMap::new(),
            open: BTreeMap::new(),
            by_sign: BTreeMap::new(),
            begins: [0; BEGINS_BITS / 64],
        };
        for word in words {
            let mut letters = word.chars();
            let Some(first) = letters.next() else {
                continue;
            };
            let head = if is_han(first) || !first.is_alphanumeric() {
                index.by_sign.entry(first).or_default().push(word);
                &word[..first.len_utf8()]
            } else if word.ends_with('*') && word.find(is_edge) == Some(word.len() - 1) {
                let two = [first, letters.next().unwrap_or(' ')];
                index.open.entry(two).or_default().push(word);
                word
            } else {
                let end = word.find(is_edge).unwrap_or(word.len());
                index.by_word.entry(&word[..end]).or_default().push(word);
                &word[..end]
            };
            let bit = beginning(head);
            index.begins[bit / 64] |= 1 << (bit % 64);
        }
        index
    }

    /// Returns the words that can begin at a word of a text.
    fn at(&self, lower: &str, start: usize, end: usize) -> impl Iterator<Item = &'static str> {
        let word = &lower[start..end];
        let bit = beginning(word);
        let lists = match self.begins[bit / 64] >> (bit % 64) & 1 {
            0 => [None; 3],
            _ => {
                let mut letters = word.chars();
                let first = letters.next().unwrap_or(' ');
                let two = [first, letters.next().unwrap_or(' ')];
                [
                    self.by_word.get(word),
                    self.open.get(&two),
                    self.by_sign.get(&first),
                ]
            }
        };
        lists.into_iter().flatten().flatten().copied()
    }
}

/// Returns whether a character ends a word.
fn is_edge(c: char) -> bool {
    match c.is_ascii() {
        true => !c.is_ascii_alphanumeric(),
        false => !c.is_alphanumeric() || is_han(c),
    }
}

thread_local! {
    /// The index of each list, keyed by its address: the lists are static.
    static INDEXES: RefCell<BTreeMap<(usize, usize), Rc<Index>>> = RefCell::default();
}

fn index(words: &'static [&'static str]) -> Rc<Index> {
    let key = (words.as_ptr().addr(), words.len());
    INDEXES.with_borrow_mut(|all| {
        Rc::clone(all.entry(key).or_insert_with(|| Rc::new(Index::new(words))))
    })
}

/// Returns whether a text contains one of these words, not as part of a longer word. A `*` at the end of a word matches
/// any ending.
pub(super) fn has(lower: &str, words: &'static [&'static str]) -> bool {
    places(lower, words).next().is_some()
}

/// Returns the byte ranges of these words in a text, in order.
pub(super) fn places(
    lower: &str,
    words: &'static [&'static str],
) -> impl Iterator<Item = (usize, usize)> {
    let index = index(words);
    let mut at = 0;
    let starts = std::iter::from_fn(move || {
        let rest = lower.get(at..)?;
        let c = rest.chars().next()?;
        let start = at;
        let end = match is_edge(c) {
            true => at + c.len_utf8(),
            false => at + rest.find(is_edge).unwrap_or(rest.len()),
        };
        at = end;
        Some((start, end))
    });
    starts.flat_map(move |(start, end)| {
        let found: Vec<(usize, usize)> = index
            .at(lower, start, end)
            .filter_map(|word| fits(lower, start, word).map(|end| (start, end)))
            .collect();
        found
    })
}

/// Returns the end of a word if it begins at `start`.
fn fits(lower: &str, start: usize, word: &str) -> Option<usize> {
    let (word, open) = match word.strip_suffix('*') {
        Some(stem) => (stem, true),
        None => (word, false),
    };
    let rest = lower.get(start..)?.strip_prefix(word)?;
    let han = word.chars().any(is_han);
    let ends = rest.chars().next().is_none_or(is_edge);
    (han || open || ends).then(|| start + word.len())
}

/// Returns the start of a word in a text.
pub(super) fn find(lower: &str, word: &str) -> Option<usize> {
    let (word, open) = match word.strip_suffix('*') {
        Some(stem) => (stem, true),
        None => (word, false),
    };
    let han = word.chars().any(is_han);
    lower.match_indices(word).map(|(at, _)| at).find(|at| {
        let letter = |c: Option<char>| c.is_some_and(|c| !is_edge(c));
        han || !letter(lower[..*at].chars().next_back())
            && (open || !letter(lower[at + word.len()..].chars().next()))
    })
}
