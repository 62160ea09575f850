//! Words that point at an option without naming it: a form of one of its words, a part of its name, its place in the
//! question.

use super::super::language::is_han;
use super::super::naming::unaccented;
use super::super::options::Options;
use super::tokens::Mention;
use std::collections::BTreeMap;

/// The first letters of a word that its forms share, and the least length of a word with such forms.
const STEM: (usize, usize) = (5, 4);
/// Words for the first, the second, … of the options, by their beginnings; `=` marks whole words.
const PLACES: [&[&str]; 5] = [
    &[
        "=first",
        "=1st",
        "erste",
        "=premier",
        "=premiere",
        "=primer",
        "primero",
        "primera",
    ],
    &[
        "=second",
        "=2nd",
        "zweite",
        "=deuxieme",
        "=seconde",
        "segund",
    ],
    &["=third", "=3rd", "dritte", "=troisieme", "tercer"],
    &["=fourth", "=4th", "vierte", "=quatrieme", "cuart"],
    &["=fifth", "fünfte", "=cinquieme", "quint"],
];
const HAN_PLACES: [&str; 5] = ["第一", "第二", "第三", "第四", "第五"];
/// Words for the last option.
const LAST: &[&str] = &["=last", "letzte"];
/// Words for the first and the second of two that were named.
const OF_TWO: [&[&str]; 2] = [
    &[
        "=former",
        "erstere",
        "erstgenannt",
        "=celui-la",
        "=celle-la",
    ],
    &[
        "=latter",
        "letztere",
        "letztgenannt",
        "=dernier",
        "=derniere",
    ],
];
const HAN_OF_TWO: [&str; 2] = ["前者", "后者"];

/// What points at each option.
pub(super) struct Hints {
    /// Beginnings of words, and the option that alone has a word with it.
    stems: Vec<(String, usize)>,
    /// Parts of words with digits: `v7` of `UUIDv7`.
    words: Vec<(String, usize)>,
    /// Han characters that one option alone has.
    han: Vec<(String, usize)>,
    count: usize,
}

impl Hints {
    pub(super) fn new(options: &Options) -> Self {
        let names: Vec<String> = options.names().map(unaccented).collect();
        let mut stems = Vec::new();
        let mut words = Vec::new();
        let mut han = Vec::new();
        for (item, name) in names.iter().enumerate() {
            for word in name.split(|c: char| !c.is_alphanumeric() || is_han(c)) {
                if word.contains(|c: char| c.is_ascii_digit()) {
                    words.push((word.to_owned(), item));
                } else if word.chars().count() >= STEM.1 {
                    stems.push((word.chars().take(STEM.0).collect(), item));
                }
            }
            let letters: Vec<char> = name.chars().collect();
            for pair in letters.windows(2).filter(|p| p.iter().all(|c| is_han(*c))) {
                han.push((pair.iter().collect(), item));
            }
        }
        Self {
            stems: of_one(stems),
            words,
            han: of_one(han),
            count: options.count(),
        }
    }

    /// Finds what points at options in a sentence, beside its mentions. `named` are the options named before, in their order.
    pub(super) fn find(&self, sentence: &str, found: &[Mention], named: &[usize]) -> Vec<Mention> {
        let mut out: Vec<Mention> = Vec::new();
        let mut named = named.to_vec();
        let free = |out: &[Mention], start: usize, end: usize| {
            let apart = |m: &Mention| end <= m.start || m.end <= start;
            found.iter().all(apart) && out.iter().all(apart)
        };
        let mut at = 0;
        while let Some(c) = sentence.get(at..).and_then(|rest| rest.chars().next()) {
            let start = at;
            at += c.len_utf8();
            if let Some(mention) = found.iter().find(|m| m.start == start && m.end > start) {
                named.push(mention.item);
                at = sentence.ceil_char_boundary(mention.end.max(at));
                continue;
            }
            let item = if is_han(c) {
                let Some(next) = sentence[at..].chars().next().filter(|c| is_han(*c)) else {
                    continue;
                };
                let end = at + next.len_utf8();
                let item = self.of_han(&sentence[start..end], &named);
                if item.is_some() {
                    at = end;
                }
                item
            } else if c.is_alphanumeric() {
                let rest = &sentence[start..];
                let inside = |c: char| c.is_alphanumeric() && !is_han(c);
                let length = rest.find(|c| !inside(c)).unwrap_or(rest.len());
                at = start + length;
                self.of_word(&unaccented(&rest[..length].to_lowercase()), &named)
            } else {
                None
            };
            if let Some(item) = item
                && free(&out, start, at)
            {
                named.push(item);
                out.push(Mention {
                    hint: true,
                    ..Mention::new(item, start, at)
                });
            }
        }
        out
    }

    fn of_word(&self, word: &str, named: &[usize]) -> Option<usize> {
        if let Some((_, item)) = self.stems.iter().find(|(stem, _)| word.starts_with(stem)) {
            return Some(*item);
        }
        if word.len() > 1 && word.contains(|c: char| c.is_ascii_digit()) {
            let part = |(whole, _): &&(String, usize)| {
                whole.len() > word.len() && (whole.starts_with(word) || whole.ends_with(word))
            };
            let mut parts = self.words.iter().filter(part);
            return match (parts.next(), parts.next()) {
                (Some((_, item)), None) => Some(*item),
                _ => None,
            };
        }
        let is = |words: &[&str]| {
            words.iter().any(|w| match w.strip_prefix('=') {
                Some(whole) => whole == word,
                None => word.starts_with(w),
            })
        };
        if let Some(place) = OF_TWO.iter().position(|words| is(words)) {
            return of_two(place, named);
        }
        if is(LAST) {
            return self.count.checked_sub(1);
        }
        let place = PLACES.iter().position(|words| is(words))?;
        (place < self.count).then_some(place)
    }

    fn of_han(&self, pair: &str, named: &[usize]) -> Option<usize> {
        if let Some(place) = HAN_OF_TWO.iter().position(|word| *word == pair) {
            return of_two(place, named);
        }
        let place = HAN_PLACES.iter().position(|word| *word == pair);
        let own = || {
            self.han
                .iter()
                .find(|(own, _)| own == pair)
                .map(|(_, item)| *item)
        };
        place.filter(|place| *place < self.count).or_else(own)
    }
}

/// Returns the first or the second of the last two options that were named.
fn of_two(place: usize, named: &[usize]) -> Option<usize> {
    let last = named.last()?;
    let before = named.iter().rev().find(|item| *item != last)?;
    Some(if place == 0 { *before } else { *last })
}

/// Keeps what one option alone has.
fn of_one(all: Vec<(String, usize)>) -> Vec<(String, usize)> {
    let mut owners: BTreeMap<String, Option<usize>> = BTreeMap::new();
    for (word, item) in all {
        let owner = owners.entry(word).or_insert(Some(item));
        if *owner != Some(item) {
            *owner = None;
        }
    }
    let own = |(word, item): (String, Option<usize>)| Some((word, item?));
    owners.into_iter().filter_map(own).collect()
}
