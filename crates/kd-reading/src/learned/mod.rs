//! A second reading of prose, by weights learned from the recorded replies. It ranks the candidates and "no answer"
//! by the text around their mentions. It neither knows the rules of the other modules nor is tuned by hand, so it
//! errs on other replies than they do: where both agree, an answer is safe; where they differ, the reply is left
//! open.
//!
//! [`train`] computes the weights from `tests/data/replies`, and measures them on authors left out of the training.

mod classes;
mod features;
mod tokens;
#[cfg(test)]
mod train;
mod view;
mod whole;

use super::language::{Language, is_han};
use super::{Answer, Options, Wanted, amounts, clauses, plain};
use tokens::{Mention, Sentence};

/// The weights of choices, numbers, and yes and no: a scale as `f32`, then one byte for each feature.
const WEIGHTS: [&[u8]; 3] = [
    include_bytes!("weights/choice.bin"),
    include_bytes!("weights/number.bin"),
    include_bytes!("weights/side.bin"),
];
/// Maximum number of different numbers among which one is read.
const NUMBERS_MAX: usize = 48;

/// The candidates of a reply.
struct Reply {
    /// Index of the weights.
    kind: usize,
    answers: Vec<Answer>,
    sentences: Vec<Sentence>,
}

/// The result of the weights: the probability of each candidate.
pub(super) struct Ranked {
    shares: Vec<(Answer, f32)>,
    /// Whether the reply names each candidate.
    named: Vec<bool>,
}

impl Ranked {
    /// Returns the most probable candidate.
    pub(super) fn best(&self) -> Option<(&Answer, f32)> {
        let mut best: Option<(&Answer, f32)> = None;
        for (answer, share) in &self.shares {
            if best.is_none_or(|(_, most)| *share > most) {
                best = Some((answer, *share));
            }
        }
        best
    }

    /// Returns the probability of an answer; `None` if the reply does not name it.
    pub(super) fn of(&self, answer: &Answer) -> Option<f32> {
        let mut shares = self.shares.iter().zip(&self.named);
        let found = shares.find(|((other, _), _)| other == answer);
        found
            .filter(|(_, named)| **named)
            .map(|((_, share), _)| *share)
    }
}

/// Ranks the candidates of a text; `None` for kinds without weights.
pub(super) fn rank(wanted: &Wanted, text: &str) -> Option<Ranked> {
    let reply = reply(wanted, text)?;
    let rows = features::of(reply.kind == 2, reply.answers.len(), &reply.sentences);
    let (scale, weights) = WEIGHTS[reply.kind].split_first_chunk::<4>()?;
    let scale = f32::from_le_bytes(*scale);
    let score = |row: &view::Row| -> f32 {
        let sum = row.iter().filter_map(|f| weights.get(usize::from(*f)));
        let sum: i32 = sum.map(|w| i32::from(w.cast_signed())).sum();
        #[allow(clippy::cast_precision_loss, reason = "sums of bytes are small")]
        let sum = sum as f32;
        sum * scale
    };
    let shares = softmax(&rows.iter().map(score).collect::<Vec<f32>>());
    let names = |item: usize| {
        let mut all = reply.sentences.iter().flat_map(|s| &s.mentions);
        all.any(|m| m.item == item)
    };
    let named = (0..reply.answers.len()).map(names).collect();
    Some(Ranked {
        named,
        shares: reply.answers.into_iter().zip(shares).collect(),
    })
}

fn softmax(scores: &[f32]) -> Vec<f32> {
    let most = scores.iter().copied().fold(f32::MIN, f32::max);
    let powers: Vec<f32> = scores.iter().map(|s| (s - most).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

/// Finds the candidates of a text.
fn reply(wanted: &Wanted, text: &str) -> Option<Reply> {
    let mut numbers: Vec<String> = Vec::new();
    let plain = match wanted {
        Wanted::Option(_) => text.replace('’', "'"),
        Wanted::Number => {
            let lines: Vec<String> = text.lines().map(plain::plain_latex).collect();
            with_first_number(lines.join("\n"))
        }
        _ => return None,
    };
    let language = Language::of(&plain);
    let mut sentences = Vec::new();
    for sentence in clauses::split(&plain) {
        let mut mentions = Vec::new();
        match wanted {
            Wanted::Option(options) => mentions = options_in(options, &sentence.text),
            _ => {
                for found in amounts::numbers_of(&sentence, language) {
                    let item = numbers.iter().position(|key| *key == found.key);
                    if item.is_none() && numbers.len() == NUMBERS_MAX {
                        continue;
                    }
                    mentions.push(Mention {
                        item: item.unwrap_or(numbers.len()),
                        start: found.start,
                        end: found.end,
                        rejected: false,
                    });
                    if item.is_none() {
                        numbers.push(found.key);
                    }
                }
            }
        }
        sentences.push(Sentence {
            form: form(sentence.form),
            text: sentence.text,
            mentions,
        });
    }
    let (kind, answers) = match wanted {
        Wanted::Option(options) => {
            let kind = if options.is_yes_no() { 2 } else { 0 };
            (kind, (0..options.count()).map(Answer::Option).collect())
        }
        _ => (1, numbers.into_iter().map(Answer::Text).collect()),
    };
    let named = !sentences.is_empty();
    named.then_some(Reply {
        kind,
        answers,
        sentences,
    })
}

/// Keeps the number that begins a text from being the number of a line: `31. For comparison, last year it was 28.`
fn with_first_number(text: String) -> String {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let numbered = |line: &str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    match text.split_once(". ") {
        Some((first, rest)) if digits(first) && !text.lines().skip(1).any(numbered) => {
            format!("{first}: {rest}")
        }
        _ => text,
    }
}

/// Finds the options in a sentence, with the capital letters that may be words: `A wins`.
fn options_in(options: &Options, sentence: &str) -> Vec<Mention> {
    let found = options.mentions(sentence).into_iter();
    let mut mentions: Vec<Mention> = found
        .map(|m| Mention {
            item: m.item,
            start: m.start,
            end: m.end,
            rejected: m.rejected,
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
                mentions.push(Mention {
                    item,
                    start,
                    end,
                    rejected: false,
                });
            }
        }
    }
    mentions.sort_by_key(|m| m.start);
    mentions
}

fn form(form: Option<clauses::Form>) -> &'static str {
    match form {
        None => "",
        Some(clauses::Form::Plain) => "plain",
        Some(clauses::Form::Bullet) => "bullet",
        Some(clauses::Form::Numbered(_)) => "numbered",
        Some(clauses::Form::Heading) => "heading",
        Some(clauses::Form::Bold) => "bold",
        Some(clauses::Form::Row) => "row",
    }
}
