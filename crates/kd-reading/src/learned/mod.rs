//! A second reading of prose, by weights learned from the recorded replies. It ranks the candidates and "no answer"
//! by the text around their mentions. It neither knows the rules of the other modules nor is tuned by hand, so it
//! errs on other replies than they do: where both agree, an answer is safe; where they differ, the reply is left
//! open.
//!
//! [`train`] computes the weights from `tests/data/replies`, and measures them on authors left out of the training.

mod classes;
mod features;
mod found;
mod hints;
mod spans;
mod tokens;
#[cfg(test)]
mod train;
mod view;
mod whole;

use super::{Answer, Wanted, clauses, plain};
use found::Finder;
use tokens::Sentence;

/// The weights of choices, numbers, yes and no, and short texts: a scale as `f32`, then one byte for each feature.
const WEIGHTS: [&[u8]; 4] = [
    include_bytes!("weights/choice.bin"),
    include_bytes!("weights/number.bin"),
    include_bytes!("weights/side.bin"),
    include_bytes!("weights/text.bin"),
];

/// The kind of yes and no.
const SIDE: usize = 2;
/// Number of sentences at the end of a reply in which an answer ends it.
const END_SENTENCES: usize = 2;

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
    /// Whether the reply names each candidate, or need not.
    named: Vec<bool>,
    /// Whether one of the last sentences names each candidate.
    ends: Vec<bool>,
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

    /// Returns the probability of "no answer".
    pub(super) fn none(&self) -> f32 {
        1.0 - self.shares.iter().map(|(_, share)| share).sum::<f32>()
    }

    /// Returns whether one of the last sentences names an answer.
    pub(super) fn ends_with(&self, answer: &Answer) -> bool {
        let mut all = self.shares.iter().zip(&self.ends);
        all.any(|((other, _), ends)| *ends && other == answer)
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
    let rows = features::of(reply.kind == SIDE, reply.answers.len(), &reply.sentences);
    let (scale, weights) = WEIGHTS[reply.kind].split_first_chunk::<4>()?;
    let scale = f32::from_le_bytes(*scale);
    let score = |row: &view::Row| -> f32 {
        let sum = row.iter().filter_map(|f| weights.get(*f as usize));
        let sum: i32 = sum.map(|w| i32::from(w.cast_signed())).sum();
        #[allow(clippy::cast_precision_loss, reason = "sums of bytes are small")]
        let sum = sum as f32;
        sum * scale
    };
    let shares = softmax(&rows.iter().map(score).collect::<Vec<f32>>());
    Some(ranked(reply, &shares))
}

/// Joins the candidates of a reply with their probabilities.
fn ranked(reply: Reply, shares: &[f32]) -> Ranked {
    // Yes and no are often told in other words.
    let mut named = vec![reply.kind == SIDE; reply.answers.len()];
    let mut ends = vec![false; reply.answers.len()];
    for (at, sentence) in reply.sentences.iter().enumerate() {
        let is_end = at + END_SENTENCES >= reply.sentences.len();
        for mention in &sentence.mentions {
            if let (Some(named), Some(ends)) =
                (named.get_mut(mention.item), ends.get_mut(mention.item))
            {
                *named = true;
                *ends |= is_end && !mention.hint;
            }
        }
    }
    let shares = reply.answers.into_iter().zip(shares.iter().copied());
    Ranked {
        named,
        ends,
        shares: shares.collect(),
    }
}

fn softmax(scores: &[f32]) -> Vec<f32> {
    let most = scores.iter().copied().fold(f32::MIN, f32::max);
    let powers: Vec<f32> = scores.iter().map(|s| (s - most).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

/// Finds the candidates of a text.
fn reply(wanted: &Wanted, text: &str) -> Option<Reply> {
    let plain = match wanted {
        Wanted::Number => {
            let lines = text.lines();
            let lines = lines.filter(|line| !plain::is_about_confidence(line));
            let lines: Vec<String> = lines.map(plain::plain_latex).collect();
            with_first_number(lines.join("\n"))
        }
        _ => text.replace('’', "'"),
    };
    let mut finder = Finder::new(wanted, &plain)?;
    let sentences: Vec<Sentence> = clauses::split(&plain)
        .into_iter()
        .map(|sentence| Sentence {
            mentions: finder.find(&sentence),
            form: form(sentence.form),
            text: sentence.text,
        })
        .collect();
    let (kind, answers) = finder.answers();
    (!sentences.is_empty()).then_some(Reply {
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
