//! The options of a question, and where a text mentions them: by label or by words, for or against.

use super::language::is_han;
use super::naming::{self, Name};
use super::words::{folded, words};

/// The options of a question, or the labels of a ballot.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The words of each option.
    pub(super) items: Vec<Vec<String>>,
    /// The words of each name, longest name first.
    pub(super) names: Vec<Name>,
    /// The label of each option as written: `B`.
    pub(super) labels: Vec<String>,
    /// Whether the labels are the default ones of any list of options.
    pub(super) are_default: bool,
    pub(super) yes_no: bool,
}

/// A mention of an option in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Index of the option.
    pub item: usize,
    /// Whether the text rejects it.
    pub rejected: bool,
    /// The position in bytes at which its words begin.
    pub start: usize,
    /// The position in bytes at which its words end.
    pub end: usize,
    /// Whether only some words of its name are present.
    pub partial: bool,
}

/// Maximum bytes of a sentence to examine, counted from its end.
pub(super) const SENTENCE_BYTES_MAX: usize = 2000;

/// Spellings of yes and no in the five languages.
const YES: &[&str] = &[
    "yes", "yeah", "yep", "yup", "ja", "jep", "jawohl", "oui", "ouais", "sí", "si", "sip", "是的",
    "是", "对", "true", "correct",
];

pub(super) const NO: &[&str] = &[
    "no",
    "nope",
    "nop",
    "nah",
    "nö",
    "nee",
    "nein",
    "non",
    "否",
    "不是",
    "不",
    "不对",
    "false",
    "incorrect",
];

/// Words before a label or a name in a short statement.
const CALLED: &[&str] = &[
    "option",
    "answer",
    "choice",
    "candidate",
    "antwort",
    "réponse",
    "respuesta",
    "opción",
    "choix",
    "选项",
    "答案",
    "label",
    "letter",
    "the",
    "vote for",
    "vote",
    "i choose",
    "i pick",
    "variante",
    "möglichkeit",
    "la",
    "die",
    "le",
    "选择",
    "选",
    "buchstabe",
    "i vote for",
];

impl Options {
    /// Creates options from their words, labelled A, B, … in this order.
    pub fn new(names: &[String]) -> Self {
        let labels = (0..names.len())
            .filter(|at| *at < 26)
            .map(|at| char::from(b'A' + at as u8).to_string());
        Self::made(names, &labels.collect::<Vec<_>>(), true)
    }

    /// Creates the options of a question: with its letters if it shows them, otherwise as [`Options::new`].
    pub fn asked(names: &[String], question: &str) -> Self {
        let mut options = Self::new(names);
        options.are_default = !super::kinds::are_lettered(question, names);
        options
    }

    /// Creates options with the labels that the author of the reply was shown.
    pub fn labelled(names: &[String], labels: &[String]) -> Self {
        Self::made(names, labels, false)
    }

    fn made(names: &[String], labels: &[String], are_default: bool) -> Self {
        let lower: Vec<String> = names.iter().map(|n| folded(n)).collect();
        let yes_no =
            lower.len() == 2 && lower.iter().any(|n| n == "yes") && lower.iter().any(|n| n == "no");
        let items: Vec<Vec<String>> = lower
            .iter()
            .map(|name| {
                let more: &[&str] = match name.as_str() {
                    "yes" if yes_no => YES,
                    "no" if yes_no => NO,
                    _ => &[],
                };
                let more = more.iter().map(|w| (*w).to_owned());
                let mut all: Vec<String> = std::iter::once(name.clone()).chain(more).collect();
                all.retain(|w| !w.is_empty());
                all.dedup();
                all
            })
            .collect();
        // A single-letter option is its own label. A digit is not, if the labels are letters: `(A) 6 (B) 8`.
        let numbered = labels.iter().any(|l| l.chars().all(|c| c.is_ascii_digit()));
        let own_label = |c: char| !(is_han(c) || !numbered && c.is_ascii_digit());
        let letters = lower
            .iter()
            .any(|n| n.chars().count() == 1 && n.chars().all(own_label));
        let mut items = items;
        let mut words_of: Vec<Name> = Vec::new();
        let opened = naming::lowered_first(names);
        let written_names = opened.iter().chain(names.iter().skip(opened.iter().len()));
        for (item, (all, written)) in items.iter().zip(written_names).enumerate() {
            words_of.extend(all.iter().enumerate().map(|(n, name)| Name {
                item,
                words: words(if n == 0 { written } else { name }),
                is_own: n == 0,
            }));
            if let Some(owner) = naming::owner(written, names) {
                words_of.push(Name {
                    item,
                    words: words(owner),
                    is_own: false,
                });
            }
        }
        // `the cat` is also `cat`, `A) Paris` is also `Paris`.
        for item in 0..names.len() {
            let short = naming::without_frame(&names[item]);
            let key = folded(short);
            if short.len() < names[item].trim().len() && items.iter().all(|all| !all.contains(&key))
            {
                items[item].push(key);
                words_of.push(Name {
                    item,
                    words: words(short),
                    is_own: true,
                });
            }
        }
        // `semi-gloss` is also `semigloss`.
        for item in 0..names.len() {
            let joined = naming::joined(&names[item]);
            if let Some(joined) = joined.filter(|key| items.iter().all(|all| !all.contains(key))) {
                words_of.push(Name {
                    item,
                    words: words(&joined),
                    is_own: false,
                });
                items[item].push(joined);
            }
        }
        // Longest first, so that `New York` does not match `York`.
        words_of.sort_by_key(|name| std::cmp::Reverse(name.words.len()));
        Self {
            items,
            names: words_of,
            are_default,
            labels: match letters && names != labels || yes_no && are_default {
                true => Vec::new(),
                false => labels.to_vec(),
            },
            yes_no,
        }
    }

    /// Returns the words of each option, in lower case.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.items
            .iter()
            .map(|names| names.first().map_or("", String::as_str))
    }

    /// Returns the number of options.
    pub(super) fn count(&self) -> usize {
        self.items.len()
    }

    /// Returns whether the options were shown with letters.
    pub(super) fn has_letters(&self) -> bool {
        !self.are_default && self.labels.iter().any(|l| l.len() == 1)
    }

    /// Returns whether `label` is a label.
    pub(super) fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|l| l == label)
    }

    /// Returns whether the options are yes and no.
    pub fn is_yes_no(&self) -> bool {
        self.yes_no
    }

    /// Returns the option that a short statement consists of: its words, its label, or both.
    pub fn stated(&self, said: &str) -> Option<usize> {
        let said = folded(said);
        if said.is_empty() {
            return None;
        }
        if let Some(at) = self.items.iter().position(|names| names.contains(&said)) {
            return Some(at);
        }
        // `la opción b`, `the answer option B`
        let mut rest = said.as_str();
        while let Some(more) = CALLED.iter().find_map(|word| {
            let more = rest.strip_prefix(word)?;
            let ends = more.starts_with([' ', ':', '(', '[', '*', '"', '“']);
            (ends || word.chars().all(is_han)).then_some(more)
        }) {
            rest = more.trim_matches([' ', ':', '*', '"', '“', '”']);
        }
        let rest = rest.trim_matches([
            '(', ')', '[', ']', '.', '"', '\'', '*', '`', ' ', '“', '”', '。',
        ]);
        let by_label = |word: &str| self.labels.iter().position(|l| l.to_lowercase() == word);
        if let Some(at) =
            by_label(rest).or_else(|| self.items.iter().position(|n| n.iter().any(|w| w == rest)))
        {
            return Some(at);
        }
        // `B) PostgreSQL`, `B: because`, `PostgreSQL (B)`: the words after a label must not name another option.
        let cut = rest.find([
            ')', '.', ':', ' ', ']', '—', '–', '-', ',', '(', '。', '，', '、', '：',
        ])?;
        let (label, more) = rest.split_at(cut);
        // `A-2041` and `B.1` are names.
        let mut behind = more.chars();
        if behind.next().is_some_and(|c| matches!(c, '-' | '.'))
            && behind.next().is_some_and(|c| c.is_ascii_alphanumeric())
        {
            return None;
        }
        let at = by_label(label.trim_matches(['(', '[', '*', '"']))?;
        let separated = !more.starts_with(' ')
            || more
                .trim_start()
                .starts_with(['-', '–', '—', '(', ':', '=']);
        let more = more.trim_start_matches([
            ')', '.', ':', ' ', ']', '—', '–', '-', ',', '*', '(', '。', '，', '、', '：', '"',
        ]);
        let mentions = self.mentions(more);
        // `A new one costs more than fixing it`: an article, not a label.
        let follows = mentions
            .first()
            .is_some_and(|m| m.start == 0 && !m.rejected);
        let named: Vec<usize> = mentions.iter().map(|m| m.item).collect();
        // A list that continues with other labels states none of them.
        let goes_on = more.split_whitespace().any(|word| {
            let label = word.trim_end_matches([':', ')', '.']);
            label.len() < word.len() && by_label(label).is_some_and(|other| other != at)
        });
        let agree = !goes_on && named.iter().all(|n| *n == at);
        (agree && (separated || follows)).then_some(at)
    }

    /// Parses a ranking of all options: a line such as `B > A > C`, or a numbered list.
    pub fn ranked(&self, text: &str) -> Option<Vec<usize>> {
        let whole = self.order_of(text);
        whole.or_else(|| text.lines().rev().find_map(|line| self.order_of(line)))
    }

    fn order_of(&self, text: &str) -> Option<Vec<usize>> {
        if text.len() > SENTENCE_BYTES_MAX {
            return None;
        }
        let count = self.items.len();
        let mut order = Vec::new();
        // `A > B = C` ranks A first; `A = B > C` has no first.
        let (head, tail) = text.split_once(['>', '≻']).unwrap_or((text, ""));
        let equal = !head.contains('=') && tail.contains('=');
        let marks =
            |c: char| matches!(c, '>' | ',' | '\n' | '≻' | ';' | '，' | '、') || equal && c == '=';
        for piece in text.split(marks) {
            let piece = piece.rsplit([':', '：']).next().unwrap_or(piece).trim();
            let piece = piece.trim_start_matches(|c: char| {
                c.is_ascii_digit() || matches!(c, '.' | ')' | ' ' | '-' | '*')
            });
            let named = || match self.mentions(piece).as_slice() {
                [one] if text.contains(['>', '≻']) && !one.rejected => Some(one.item),
                _ => None,
            };
            if let Some(at) = self.stated(piece).or_else(named) {
                order.push(at);
            } else if piece.chars().any(char::is_alphanumeric) && text.contains(['>', '≻']) {
                return None;
            }
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        (order.len() == count && sorted.len() == count && count > 1).then_some(order)
    }

    /// Returns the option with the largest share if at least two have one: `Rust (80 %), Go (20 %)`.
    pub fn largest_share(&self, text: &str) -> Option<usize> {
        if !text.contains('%') || text.len() > SENTENCE_BYTES_MAX {
            return None;
        }
        let mut shares: Vec<(usize, f64)> = Vec::new();
        let mut rest = text;
        while let Some(end) = rest.find('%') {
            let (part, behind) = rest.split_at(end);
            rest = behind.strip_prefix('%').unwrap_or_default();
            let part = part.trim_end();
            let from = part
                .rfind(|c: char| !c.is_ascii_digit() && c != '.')
                .map_or(0, |at| {
                    at + part[at..].chars().next().map_or(1, char::len_utf8)
                });
            let share: f64 = part.get(from..)?.parse().ok()?;
            match self.mentions(part).as_slice() {
                [one] if !one.rejected => shares.push((one.item, share)),
                _ => return None,
            }
        }
        let most = shares.iter().map(|(_, s)| *s).fold(0.0, f64::max);
        let mut first = shares.iter().filter(|(_, s)| *s == most);
        match (first.next(), first.next(), shares.len()) {
            (Some((item, _)), None, 2..) => Some(*item),
            _ => None,
        }
    }

    /// Returns the remaining option if all others are rejected and it is not mentioned.
    pub fn left(&self, mentions: &[Mention]) -> Option<usize> {
        let mut left: Vec<usize> = (0..self.items.len()).collect();
        left.retain(|at| mentions.iter().all(|m| m.item != *at));
        match left.as_slice() {
            [one] if self.items.len() > 1 && mentions.iter().all(|m| m.rejected) => Some(*one),
            _ => None,
        }
    }
}
