//! Finds the words of a message that a claim is about: the sentence that shares most words with it. The member that
//! compared the answers wrote the claim in its own words.

use crate::markdown::parser;
use crate::marked::is_inline;
use kd_core::clean::clean_line;
use pulldown_cmark::{Event, Tag};
use std::collections::BTreeSet;
use std::ops::Range;

/// Characters of a word that count: endings differ.
const STEM: usize = 5;
/// The least share of a claim's words that a sentence must have, and the least number of them.
const SHARE_MIN: f64 = 0.3;
const COMMON_MIN: usize = 2;
/// Sentences with fewer words belong to the next one.
const WORDS_MIN: usize = 3;
/// Maximum characters of a sentence that is shown.
const TOLD_CHARS: usize = 240;
/// Words that say nothing about what a sentence is about.
const COMMON: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "do", "does", "for",
    "from", "had", "has", "have", "if", "in", "into", "is", "it", "its", "may", "must", "of", "on",
    "one", "or", "shall", "should", "so", "than", "that", "the", "their", "them", "then", "there",
    "they", "this", "to", "was", "were", "which", "will", "with", "would",
];

/// The sentences of a message.
pub(crate) struct Sentences {
    source: String,
    /// Where they are in the source of its Markdown, in order.
    ranges: Vec<Range<usize>>,
    words: Vec<BTreeSet<String>>,
}

impl Sentences {
    /// Splits a text in Markdown, without its blocks of code.
    pub(crate) fn of(text: &str) -> Self {
        let source = crate::markdown::source(text);
        let mut ranges = Vec::new();
        for run in runs(&source) {
            split(&source, run, &mut ranges);
        }
        let words = ranges.iter().map(|range| words(&source[range.clone()]));
        Self {
            words: words.collect(),
            ranges,
            source,
        }
    }

    /// Returns the number of the sentence that shares most words with a claim; `None` if all share few.
    pub(crate) fn closest(&self, claim: &str) -> Option<usize> {
        let wanted = words(claim);
        let least = COMMON_MIN.min(wanted.len()).max(1);
        let mut best = None::<(f64, usize)>;
        for (at, words) in self.words.iter().enumerate() {
            let common = wanted.intersection(words).count();
            if common < least || (common as f64) < SHARE_MIN * wanted.len() as f64 {
                continue;
            }
            let likeness = common as f64 / (wanted.len() + words.len()) as f64;
            if best.is_none_or(|(most, _)| likeness > most) {
                best = Some((likeness, at));
            }
        }
        best.map(|(_, at)| at)
    }

    /// Returns where a sentence is in the source of the message's Markdown.
    pub(crate) fn range(&self, at: usize) -> Range<usize> {
        self.ranges.get(at).cloned().unwrap_or_default()
    }

    /// Returns the words of a sentence without marks.
    pub(crate) fn told(&self, at: usize) -> String {
        let words = self.source[self.range(at)].replace(['*', '`'], "");
        clean_line(&words, TOLD_CHARS)
    }
}

/// Returns where the text of each block is.
fn runs(source: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut run = None::<Range<usize>>;
    let mut in_code = false;
    for (event, range) in parser(source).into_offset_iter() {
        let goes_on = match &event {
            Event::Start(tag) => is_inline(&tag.to_end()),
            Event::End(tag) => is_inline(tag),
            Event::Rule => false,
            _ => true,
        };
        match (&event, goes_on) {
            (Event::Start(Tag::CodeBlock(_)), _) => in_code = true,
            (Event::End(pulldown_cmark::TagEnd::CodeBlock), _) => in_code = false,
            (_, true) if !in_code => {
                let now = run.get_or_insert(range.clone());
                now.start = now.start.min(range.start);
                now.end = now.end.max(range.end);
                continue;
            }
            _ => {}
        }
        runs.extend(run.take());
    }
    runs.extend(run);
    runs
}

/// Splits the text of a block at the ends of its sentences.
fn split(source: &str, run: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let mut start = run.start;
    let mut add = |start: usize, end: usize| {
        let text = &source[start..end];
        let begin = start + text.len() - text.trim_start().len();
        let range = begin..begin + text.trim().len();
        if !range.is_empty() {
            ranges.push(range);
        }
    };
    let mut ended = false;
    for (at, letter) in source[run.clone()].char_indices() {
        let at = run.start + at;
        match letter {
            '.' | '!' | '?' => ended = true,
            '。' | '！' | '？' => {
                let end = at + letter.len_utf8();
                add(start, end);
                start = end;
            }
            // What may stand between the end of a sentence and the blank after it.
            '*' | '_' | '"' | '”' | '’' | '\'' | ')' | '`' if ended => {}
            letter if letter.is_whitespace() && ended => {
                ended = false;
                let count = source[start..at].split_whitespace().count();
                if count >= WORDS_MIN {
                    add(start, at);
                    start = at;
                }
            }
            _ => ended = false,
        }
    }
    add(start, run.end);
}

/// Returns the words that carry the topic of a text, without their endings. Scripts without blanks between words
/// give pairs of letters.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let lower = text.to_lowercase();
    for word in lower.split(|c: char| !c.is_alphanumeric()) {
        if word.is_empty() || COMMON.contains(&word) {
            continue;
        }
        let letters: Vec<char> = word.chars().collect();
        match letters.iter().any(|c| is_unspaced(*c)) {
            true => words.extend(letters.windows(2).map(|pair| pair.iter().collect())),
            false => {
                words.insert(letters.iter().take(STEM).collect());
            }
        }
    }
    words
}

/// Returns whether a letter is of a script that puts no blanks between words.
fn is_unspaced(letter: char) -> bool {
    matches!(u32::from(letter), 0x0e00..=0x0eff | 0x1780..=0x17ff | 0x3040..=0x30ff | 0x3400..=0x9fff | 0x2_0000..=0x3_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "**Put a queue between them.** The shop writes an order and goes on; e.g. at night.\n\n\
        - The shop keeps selling while the warehouse is *down*.\n- A peak becomes a longer queue, not a timeout!\n\n\
        ```\nThe shop must go on selling while the warehouse is down.\n```\n\n\
        > Orders must carry an id, since\n> a queue may deliver one twice: “yes.” And so on and on.\n\nüber 订单必须有编号。仓库停机时商店继续销售。";

    fn told(text: &str) -> Vec<String> {
        let all = Sentences::of(text);
        (0..all.ranges.len()).map(|at| all.told(at)).collect()
    }

    #[test]
    fn texts_are_split_at_sentences_and_blocks_and_code_is_none() {
        assert_eq!(
            told(TEXT),
            [
                "Put a queue between them.",
                "The shop writes an order and goes on; e.g.",
                "at night.",
                "The shop keeps selling while the warehouse is down.",
                "A peak becomes a longer queue, not a timeout!",
                "Orders must carry an id, since > a queue may deliver one twice: “yes.”",
                "And so on and on.",
                "über 订单必须有编号。",
                "仓库停机时商店继续销售。",
            ]
        );
        for text in [
            "",
            " \n",
            "```\nx\n```",
            "---",
            "<b>",
            "| a |\n|-|\n| b. c |",
            "\u{0}.",
            "…。!?",
        ] {
            for range in Sentences::of(text).ranges {
                assert!(!range.is_empty(), "{text:?}");
            }
        }
    }

    #[test]
    fn a_claim_finds_the_sentence_that_says_so() {
        let all = Sentences::of(TEXT);
        let find = |claim: &str| all.closest(claim).map(|at| all.told(at));
        for (claim, begins) in [
            (
                "The shop must go on selling while the warehouse is down.",
                Some("The shop keeps"),
            ),
            (
                "Each order needs an id, so that a second delivery does no harm.",
                Some("Orders must carry"),
            ),
            ("商店在仓库停机时应继续销售", Some("仓库停机时")),
            ("A broker is one more server to operate.", None),
            ("the of", None),
            ("", None),
        ] {
            let found = find(claim);
            match begins {
                Some(begins) => assert!(
                    found.as_deref().is_some_and(|f| f.starts_with(begins)),
                    "{claim}: {found:?}"
                ),
                None => assert_eq!(found, None, "{claim}"),
            }
        }
    }
}
