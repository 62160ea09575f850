//! The stages of a deliberation: one file each, one row each. A stage says who is asked, what they are told, and what
//! their replies mean; when it runs is the protocol's business.

pub(super) mod arbitrate;
pub(super) mod attack;
mod ballot;
pub(super) mod compress;
pub(super) mod conclude;
pub(super) mod debate;
pub(super) mod estimate;
pub(super) mod judge;
pub(super) mod opinions;
pub(super) mod rebut;
pub(super) mod review;
pub(super) mod revise;
pub(super) mod sameness;
pub(super) mod vote;

pub(super) use ballot::{foretells, form as ballot_form};

pub(super) use compress::extract;
pub(super) use conclude::{Conclusion, MATERIAL_BYTES_MAX, chairs, compose};
pub(super) use opinions::read_again;
pub(super) use vote::{calls as calls_of_a_vote, needs_ballots};

use super::blind;
use super::board::Board;
use super::fact::Fact;
use super::plan::Plan;
use super::reader::Run;
use crate::event::Purpose;
use crate::reading::Unread;
use serde_json::Value;

/// A row of the table.
pub struct Stage {
    /// Its name in the record.
    pub name: &'static str,
    /// What happens in it, for people: "opinions, blind".
    pub title: &'static str,
    /// Why seats are asked.
    pub purpose: Purpose,
    /// Whether replies are messages of the conversation.
    pub spoken: bool,
    /// Who is asked, in order; a seat may stand several times. Nobody: the stage is skipped.
    pub seats: fn(&Plan, &Board) -> Vec<usize>,
    /// What one of them is told; none if there is nothing to ask it.
    pub ask: fn(&Desk<'_>) -> Option<Asking>,
    /// What a reply means.
    pub read: fn(&mut Board, &Run, &Reply<'_>) -> Vec<Fact>,
    /// What follows once everybody has replied or failed.
    pub end: fn(&mut Board, &Run) -> Vec<Fact>,
    /// A reply as it stands in the conversation.
    pub body: fn(&Run, &str) -> String,
}

/// What a stage may look at while it asks.
pub struct Desk<'a> {
    /// The plan.
    pub plan: &'a Run,
    /// The table.
    pub board: &'a Board,
    /// Who is asked: a place in the plan.
    pub seat: usize,
    /// Which of several calls to the same seat in this stage.
    pub sample: u32,
}

/// What a seat is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asking {
    /// What it reads: the question and, fenced, the words of others.
    pub material: String,
    /// What it is to do.
    pub task: String,
    /// What the reply must satisfy.
    pub schema: Option<Value>,
    /// What stands behind label A, B, …: places of authors or of candidates, as the stage has it.
    pub items: Vec<usize>,
    /// The most tokens of the reply, where the stage knows better than the plan.
    pub tokens: Option<u32>,
}

/// A reply to a stage.
pub struct Reply<'a> {
    /// Whose.
    pub seat: usize,
    /// Which of several calls to the same seat in this stage.
    pub sample: u32,
    /// The words.
    pub text: &'a str,
    /// The bare answer, where the member was asked for it once more.
    pub repair: Option<&'a str>,
    /// What stood behind the labels that this reader saw.
    pub items: &'a [usize],
    /// Its message, where replies of this stage are messages.
    pub message: Option<u32>,
}

impl<'a> Reply<'a> {
    /// The words to read the answer from.
    fn decisive(&self) -> &'a str {
        self.repair.unwrap_or(self.text)
    }

    /// How it was read, for the record.
    fn noted(&self, note: Option<String>) -> Option<String> {
        match (self.repair.is_some(), note) {
            (false, note) => note,
            (true, None) => Some("read as: asked once more".into()),
            (true, Some(note)) => Some(format!("{note}, asked once more")),
        }
    }
}

/// Why a reply cannot be read, where asking the same member for the bare answer can help.
pub(super) fn unread(
    stage: &Stage,
    board: &Board,
    plan: &Run,
    reply: &Reply<'_>,
) -> Option<Unread> {
    let why = match stage.purpose {
        Purpose::Answer | Purpose::Revise => opinions::unread(plan, reply.text),
        Purpose::Vote => vote::unread(board, plan, reply),
        _ => None,
    };
    why.filter(|why| why.is_worth_asking())
}

/// Asks a member for the bare answer of a reply that could not be read.
pub(super) fn repair(
    stage: &Stage,
    board: &Board,
    plan: &Run,
    reply: &Reply<'_>,
    why: Unread,
) -> Asking {
    let (what, schema) = match stage.purpose {
        Purpose::Vote => vote::bare(board, plan, reply),
        _ => opinions::bare(plan),
    };
    Asking {
        material: format!(
            "Question:\n{}\n\nYour reply to it:\n{}",
            blind::clip(&board.question, REPAIR_BYTES_MAX),
            ending(reply.text)
        ),
        task: format!(
            "{}. State what your reply says, and nothing else. Reply with JSON: {what}.",
            why.words()
        ),
        schema: Some(schema),
        items: reply.items.to_vec(),
        tokens: Some(REPAIR_TOKENS),
    }
}

/// The most bytes of a question, and of a reply, in a repair turn.
const REPAIR_BYTES_MAX: usize = 2000;
/// The most tokens of the reply to a repair turn.
const REPAIR_TOKENS: u32 = 256;

/// The end of a reply, where its answer is.
fn ending(text: &str) -> String {
    let text = crate::clean::clean_text(text);
    let from = text.len().saturating_sub(REPAIR_BYTES_MAX);
    text.get(text.ceil_char_boundary(from)..)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Every stage.
pub static STAGES: &[&Stage] = &[
    &opinions::STAGE,
    &opinions::SAMPLES,
    &opinions::FIRST,
    &opinions::PAIR,
    &opinions::REST_UNLESS_AGREED,
    &review::STAGE,
    &judge::STAGE,
    &sameness::STAGE,
    &vote::STAGE,
    &vote::OPEN,
    &arbitrate::STAGE,
    &revise::STAGE,
    &revise::GROUPED,
    &revise::IMPROVE,
    &revise::LAYER,
    &debate::STAGE,
    &estimate::STAGE,
    &attack::STAGE,
    &rebut::STAGE,
    &compress::STAGE,
    &conclude::STAGE,
];

/// The stage of a name.
pub fn find(name: &str) -> Option<&'static Stage> {
    STAGES.iter().find(|s| s.name == name).copied()
}

impl Desk<'_> {
    /// The question as every stage restates it, word by word, so that nobody drifts from it.
    fn question(&self) -> String {
        let mut out = String::new();
        if !self.plan.background.is_empty() && self.board.depth == 0 {
            out.push_str(&format!("Background:\n{}\n\n", self.plan.background));
        }
        out.push_str(&format!("Question:\n{}", self.board.question));
        if !self.board.context.is_empty() {
            out.push_str(&format!("\n\n{}", self.board.context));
        }
        out
    }

    /// The place in the deliberation, as text: it makes every dealing and nonce different.
    fn place(&self, stage: &str) -> String {
        let Board {
            pass, depth, round, ..
        } = self.board;
        format!("{stage}/{pass}/{depth}/{round}/{}", self.sample)
    }

    /// Deals items for this reader.
    fn deal(&self, stage: &str, items: &[usize]) -> Vec<usize> {
        let reader = self.plan.seats[self.seat].name().as_str();
        blind::deal(self.plan.seed, reader, &self.place(stage), items)
    }

    /// Words of others under labels A, B, …, fenced.
    fn fenced(&self, stage: &str, texts: &[String]) -> String {
        let items: Vec<(String, String)> = texts
            .iter()
            .enumerate()
            .map(|(place, text)| (format!("Answer {}", blind::label(place)), text.clone()))
            .collect();
        self.fenced_as(stage, &items)
    }

    /// Words of others under headings, fenced.
    fn fenced_as(&self, stage: &str, items: &[(String, String)]) -> String {
        let all: Vec<&str> = items.iter().map(|(_, t)| t.as_str()).collect();
        let reader = self.plan.seats[self.seat].name().as_str();
        let place = format!("{}/{reader}", self.place(stage));
        let nonce = blind::nonce(self.plan.seed, &place, &all);
        blind::fence(&nonce, items)
    }
}

/// A stage without an end of its own.
fn no_end(_: &mut Board, _: &Run) -> Vec<Fact> {
    Vec::new()
}

/// A reply that stands in the conversation as it came.
fn as_it_came(_: &Run, text: &str) -> String {
    text.to_owned()
}

/// A text of a field, at most so many characters.
fn words_of(value: &Value, name: &str) -> String {
    let said = value.get(name).and_then(Value::as_str).unwrap_or_default();
    crate::clean::clean_text(said).trim().to_owned()
}

/// Labels of so many items.
fn labels(count: usize) -> Vec<String> {
    (0..count).map(blind::label).collect()
}
