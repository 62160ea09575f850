//! Finds the candidates of a reply and their mentions, sentence by sentence.

use super::super::clauses;
use super::super::language::{Language, is_han};
use super::super::{Answer, Options, Wanted, amounts};
use super::hints::Hints;
use super::spans;
use super::tokens::Mention;

/// Maximum number of different numbers or texts among which one is read.
const TEXTS_MAX: usize = 48;

/// The candidates that were found so far.
pub(super) enum Finder<'a> {
    Options {
        options: &'a Options,
        hints: Option<Hints>,
        /// The options that were named, in their order.
        named: Vec<usize>,
    },
    Numbers {
        language: Language,
        answers: Vec<String>,
    },
    Texts {
        /// The texts in lowercase.
        keys: Vec<String>,
        answers: Vec<String>,
    },
}

impl<'a> Finder<'a> {
    /// Returns `None` for kinds without weights.
    pub(super) fn new(wanted: &'a Wanted, text: &str) -> Option<Self> {
        Some(match wanted {
            Wanted::Option(options) => Self::Options {
                options,
                hints: (!options.is_yes_no()).then(|| Hints::new(options)),
                named: Vec::new(),
            },
            Wanted::Number => Self::Numbers {
                language: Language::of(text),
                answers: Vec::new(),
            },
            Wanted::Short => Self::Texts {
                keys: Vec::new(),
                answers: Vec::new(),
            },
            _ => return None,
        })
    }

    /// Returns the mentions in a sentence.
    pub(super) fn find(&mut self, sentence: &clauses::Sentence) -> Vec<Mention> {
        match self {
            Self::Options {
                options,
                hints,
                named,
            } => {
                let mut mentions = options_in(options, &sentence.text);
                if let Some(hints) = hints {
                    mentions.extend(hints.find(&sentence.text, &mentions, named));
                    mentions.sort_by_key(|m| m.start);
                }
                named.extend(mentions.iter().map(|m| m.item));
                mentions
            }
            Self::Numbers { language, answers } => amounts::numbers_of(sentence, *language)
                .into_iter()
                .filter_map(|found| {
                    let item = place_of(&found.key, answers)?;
                    Some(Mention::new(item, found.start, found.end))
                })
                .collect(),
            Self::Texts { keys, answers } => spans::of(&sentence.text)
                .into_iter()
                .filter_map(|(start, end, shape)| {
                    let said = sentence.text.get(start..end)?;
                    let item = place_of(&said.to_lowercase(), keys)?;
                    if item == answers.len() {
                        answers.push(said.to_owned());
                    }
                    let mention = Mention::new(item, start, end);
                    Some(Mention { shape, ..mention })
                })
                .collect(),
        }
    }

    /// Returns the index of the weights, and the candidates.
    pub(super) fn answers(self) -> (usize, Vec<Answer>) {
        match self {
            Self::Options { options, .. } => {
                let kind = if options.is_yes_no() { 2 } else { 0 };
                (kind, (0..options.count()).map(Answer::Option).collect())
            }
            Self::Numbers { answers, .. } => (1, answers.into_iter().map(Answer::Text).collect()),
            Self::Texts { answers, .. } => (3, answers.into_iter().map(Answer::Text).collect()),
        }
    }
}

/// Returns the place of a text among others, to which it is added.
fn place_of(text: &str, all: &mut Vec<String>) -> Option<usize> {
    if let Some(at) = all.iter().position(|other| other == text) {
        return Some(at);
    }
    (all.len() < TEXTS_MAX).then(|| {
        all.push(text.to_owned());
        all.len() - 1
    })
}

/// Finds the options in a sentence, with the capital letters that may be words: `A wins`.
fn options_in(options: &Options, sentence: &str) -> Vec<Mention> {
    let found = options.mentions(sentence).into_iter();
    let mut mentions: Vec<Mention> = found
        .map(|m| Mention {
            rejected: m.rejected,
            ..Mention::new(m.item, m.start, m.end)
        })
        .collect();
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !is_han(c) || c == '\'');
    for (item, name) in options.names().enumerate() {
        let letter = name.to_uppercase();
        if letter.len() != 1 {
            continue;
        }
        for (start, _) in sentence.match_indices(&letter) {
            let end = start + 1;
            let (before, behind) = (&sentence[..start], &sentence[end..]);
            let free = !word(before.chars().next_back()) && !word(behind.chars().next());
            if free && mentions.iter().all(|m| end <= m.start || m.end <= start) {
                mentions.push(Mention::new(item, start, end));
            }
        }
    }
    mentions.sort_by_key(|m| m.start);
    mentions
}
