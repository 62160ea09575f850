//! Detects text that a small model repeats instead of answering: its instructions, the frame of the conversation, or
//! an answer that it was shown.
//!
//! Input: the texts that the model was given ([`Known`]), and its answer, whole or piece by piece. Output: the first
//! repetition and its position ([`Found`]). Repetitions are runs of words, compared without case and punctuation: there
//! is not a list of phrases. Words that the user wrote are nobody's instructions, and neither are quoted words, which
//! instructions ask for ("end with “Over.”").

use crate::ids::SeatName;
use crate::names::KING;
use crate::prompt::{self, Spoken};
use crate::request::Prompt;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// Consecutive words that count as a repetition of instructions, unless set otherwise.
pub const RUN: usize = 6;
/// Consecutive words that count as a repetition of another answer: fewer are a quotation.
const COPIED_RUN: usize = 12;
/// Words of an instruction with which no sentence of an answer begins: the beginning of a sentence, or a whole one.
const OPENING: usize = 4;
/// Minimum words of an instruction's sentence for [`OPENING`]: short ones are ordinary speech.
const OPENING_LEAST: usize = 3;
/// Characters that end a sentence of an instruction.
const ENDS: [char; 6] = ['.', '!', '?', ':', ';', '\n'];
/// Maximum bytes of the first line of a message up to its recipient.
const HEAD_BYTES_MAX: usize = 100;

/// A kind of repeated text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// The rules, the persona or the task.
    Instructions,
    /// The first line of a message, or another mark of the conversation.
    Frame,
    /// Another answer.
    Answer,
}

impl Repeated {
    /// Returns the words for users: "it repeated its instructions".
    pub fn words(self) -> &'static str {
        match self {
            Self::Instructions => "repeated its instructions",
            Self::Frame => "repeated the frame of the conversation",
            Self::Answer => "repeated another answer word for word",
        }
    }
}

/// A repetition in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The kind.
    pub what: Repeated,
    /// The byte offset at which it begins.
    pub at: usize,
}

/// The role of a known text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Instructions,
    Answer,
    /// Words of the user, which may be repeated.
    Spared,
}

#[derive(Clone, Debug)]
struct Source {
    kind: Kind,
    /// Number of words.
    length: usize,
    /// The positions at which sentences begin, and the number of words with which no sentence of an answer begins.
    openings: BTreeMap<usize, usize>,
}

/// The texts that a model was given, to compare its answer with.
#[derive(Clone, Debug, Default)]
pub struct Known {
    run: usize,
    sources: Vec<Source>,
    /// The places of each word: source and position.
    places: BTreeMap<String, Vec<(usize, usize)>>,
    /// Names that begin messages, in lower case.
    names: Vec<String>,
    /// Texts that no answer may equal.
    whole: Vec<Vec<String>>,
}

impl Known {
    /// Knows nothing yet. `run` consecutive words count as a repetition of instructions.
    pub fn new(run: usize) -> Self {
        Self {
            run: run.max(1),
            ..Self::default()
        }
    }

    /// Knows a prompt: rules, persona and task as instructions, messages of other members as answers, and messages of
    /// the user as words that may be repeated; of a long history, the newest messages. `seat` is the member that is asked.
    pub fn of_prompt(prompt: &Prompt, seat: &SeatName) -> Self {
        let mut known = Self::new(RUN)
            .instructions(&prompt.rules)
            .instructions(&prompt.persona)
            .instructions(&prompt.turn);
        known.names = vec![KING.to_owned(), seat.as_str().to_lowercase()];
        for Spoken { from, body, .. } in prompt::newest(prompt) {
            known = match from {
                from if from == KING => known.spared(&body),
                // Its own words; whether it repeats itself is judged elsewhere.
                from if from == seat.as_str() => known,
                from => {
                    let name = from.to_lowercase();
                    if !known.names.contains(&name) {
                        known.names.push(name);
                    }
                    known.answer(&body)
                }
            };
        }
        known
    }

    /// Adds instructions.
    #[must_use]
    pub fn instructions(mut self, text: &str) -> Self {
        // Quoted words are to be said; without them the text falls apart.
        for piece in unquoted(text) {
            self.add(Kind::Instructions, piece);
        }
        self
    }

    /// Adds an answer that the model was shown.
    #[must_use]
    pub fn answer(mut self, text: &str) -> Self {
        self.add(Kind::Answer, text);
        self
    }

    /// Adds words that the model may repeat.
    #[must_use]
    pub fn spared(mut self, text: &str) -> Self {
        self.add(Kind::Spared, text);
        self
    }

    /// Adds a text that no answer may equal, however short it is.
    #[must_use]
    pub fn whole(mut self, text: &str) -> Self {
        let words: Vec<String> = words(text).map(|word| word.text).collect();
        if !words.is_empty() {
            self.whole.push(words);
        }
        self
    }

    /// Forgets the answers: a model that is large enough quotes them on purpose.
    #[must_use]
    pub fn without_answers(mut self) -> Self {
        for source in &mut self.sources {
            if source.kind == Kind::Answer {
                source.kind = Kind::Spared;
            }
        }
        self
    }

    fn add(&mut self, kind: Kind, text: &str) {
        let source = self.sources.len();
        let mut openings = BTreeMap::new();
        let mut length = 0;
        for sentence in text.split_inclusive(ENDS) {
            let begin = length;
            for word in words(sentence) {
                self.places
                    .entry(word.text)
                    .or_default()
                    .push((source, length));
                length += 1;
            }
            if kind == Kind::Instructions && length - begin >= OPENING_LEAST {
                openings.insert(begin, OPENING.min(length - begin));
            }
        }
        self.sources.push(Source {
            kind,
            length,
            openings,
        });
    }

    /// Returns the first repetition in a complete text.
    pub fn find(&self, text: &str) -> Option<Found> {
        let mut listener = Listener::new(self);
        listener.push(text).or_else(|| listener.finish())
    }
}

/// Listens to an answer that arrives in pieces.
#[derive(Clone, Debug)]
pub struct Listener<K> {
    known: K,
    text: String,
    /// The end of the last complete word.
    heard: usize,
    /// The start of each word so far.
    starts: Vec<usize>,
    said: Vec<String>,
    /// The numbers of the words that begin a sentence.
    begins: BTreeSet<usize>,
    /// The runs that end with the last word: their length by source and position of the last word.
    runs: BTreeMap<(usize, usize), usize>,
}

impl<K: Borrow<Known>> Listener<K> {
    /// Listens to a new answer.
    pub fn new(known: K) -> Self {
        Self {
            known,
            text: String::new(),
            heard: 0,
            starts: Vec::new(),
            said: Vec::new(),
            begins: BTreeSet::new(),
            runs: BTreeMap::new(),
        }
    }

    /// Returns the text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Adds a piece; returns the repetition that it completes.
    pub fn push(&mut self, piece: &str) -> Option<Found> {
        self.text.push_str(piece);
        if self.head() == Head::Line {
            return Some(Found {
                what: Repeated::Frame,
                at: 0,
            });
        }
        // The last word may go on in the next piece.
        let whole = self.text.trim_end_matches(is_word).len();
        self.hear(whole)
    }

    /// Ends the answer; returns the repetition that its last word completes.
    pub fn finish(&mut self) -> Option<Found> {
        let found = self.hear(self.text.len());
        found.or_else(|| {
            self.known
                .borrow()
                .whole
                .contains(&self.said)
                .then_some(Found {
                    what: Repeated::Answer,
                    at: 0,
                })
        })
    }

    /// Returns how many bytes of the text cannot become part of a repetition: they can be shown.
    pub fn safe(&self) -> usize {
        if self.head() == Head::Open {
            return 0;
        }
        match self.open_runs().max() {
            Some(length) => self.starts[self.starts.len() - length],
            None => self.heard,
        }
    }

    /// Returns whether the text begins with the first line of a message: `name: ` or `name (to …): `.
    fn head(&self) -> Head {
        let begin = self
            .text
            .trim_start_matches([' ', '\n', '*', '_', '#', '>']);
        let begin = begin.get(..HEAD_BYTES_MAX).unwrap_or(begin).to_lowercase();
        let mut head = Head::Other;
        for name in &self.known.borrow().names {
            if name.starts_with(&begin) {
                head = Head::Open;
            } else if let Some(rest) = begin.strip_prefix(name.as_str()) {
                let rest = rest.trim_start_matches([' ', '*', '_']);
                if rest.starts_with(':') || rest.starts_with("(to ") {
                    return Head::Line;
                }
                if "(to ".starts_with(rest) {
                    head = Head::Open;
                }
            }
        }
        head
    }

    /// Returns the lengths of the runs that may still become repetitions.
    fn open_runs(&self) -> impl Iterator<Item = usize> + '_ {
        let open = self.runs.iter().filter(|((source, at), _)| {
            let source = &self.known.borrow().sources[*source];
            source.kind != Kind::Spared && at + 1 < source.length
        });
        open.map(|(_, length)| *length)
    }

    fn hear(&mut self, until: usize) -> Option<Found> {
        let piece = self.text[self.heard..until].to_owned();
        let offset = self.heard;
        self.heard = until;
        for word in words(&piece) {
            let start = offset + word.at;
            if self.begins_sentence(start) {
                self.begins.insert(self.said.len());
            }
            self.starts.push(start);
            let mut runs = BTreeMap::new();
            for place in self
                .known
                .borrow()
                .places
                .get(&word.text)
                .into_iter()
                .flatten()
            {
                let (source, at) = *place;
                let before = at
                    .checked_sub(1)
                    .and_then(|at| self.runs.get(&(source, at)))
                    .copied();
                runs.insert(*place, before.unwrap_or(0) + 1);
            }
            self.runs = runs;
            self.said.push(word.text);
            if let Some(found) = self.completed() {
                return Some(found);
            }
        }
        None
    }

    /// Returns whether a word that starts at this byte is the first of a sentence: only punctuation is between the
    /// end of the previous sentence and the word.
    fn begins_sentence(&self, start: usize) -> bool {
        let before = &self.text[..start];
        let marks = before.len() - before.trim_end_matches(|c| !is_word(c)).len();
        let between = &before[before.len() - marks..];
        let rule = |c: char| matches!(c, '…' | '—' | '─' | '*' | '#' | '|' | '>');
        self.said.is_empty() || between.contains(|c| ENDS.contains(&c) || rule(c))
    }

    /// Returns the repetition that the last word completes.
    fn completed(&self) -> Option<Found> {
        let kind = |source: usize| self.known.borrow().sources[source].kind;
        let spared = self.runs.iter();
        let spared = spared.filter(|((source, _), _)| kind(*source) == Kind::Spared);
        let spared = spared.map(|(_, length)| *length).max().unwrap_or(0);
        let found = self.runs.iter().filter_map(|((source, at), length)| {
            let known = &self.known.borrow().sources[*source];
            let (what, needed) = match known.kind {
                Kind::Spared => return None,
                Kind::Answer => (Repeated::Answer, COPIED_RUN),
                Kind::Instructions => {
                    let opening = (OPENING_LEAST..=OPENING.min(*length)).find(|words| {
                        known.openings.get(&(at + 1 - words)) == Some(words)
                            && self.begins.contains(&(self.said.len() - words))
                    });
                    if let Some(words) = opening.filter(|words| *words > spared) {
                        return Some((words, Repeated::Instructions));
                    }
                    (Repeated::Instructions, self.known.borrow().run)
                }
            };
            (*length >= needed && *length > spared).then_some((*length, what))
        });
        let (length, what) = found.max_by_key(|(length, what)| (*length, *what as u8))?;
        let at = self.starts[self.starts.len() - length];
        Some(Found { what, at })
    }
}

/// The beginning of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    /// It is the first line of a message.
    Line,
    /// It may become one.
    Open,
    Other,
}

struct Word {
    text: String,
    at: usize,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\'' | '’')
}

/// Splits a text into words, without case and punctuation.
fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let begin = rest + text[rest..].find(is_word)?;
        let end = text[begin..]
            .find(|c| !is_word(c))
            .map_or(text.len(), |n| begin + n);
        rest = end;
        Some(Word {
            text: text[begin..end].to_lowercase().replace('’', "'"),
            at: begin,
        })
    })
    .filter(|word| word.text != "'")
}

/// Returns the parts of a text outside of double quotes and backticks. A quote that never ends is not a quote.
fn unquoted(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(['"', '“', '`']) {
        let mark = rest[open..].chars().next().unwrap_or('"');
        let close = if mark == '“' { '”' } else { mark };
        let inside = open + mark.len_utf8();
        let Some(length) = rest[inside..].find(close) else {
            break;
        };
        parts.push(&rest[..open]);
        rest = &rest[inside + length + close.len_utf8()..];
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests;
