//! The stages of a deliberation: one file and one table row each. A stage decides which members are asked, with which
//! prompt, and what their replies mean; the protocol decides when it runs.

pub(super) mod arbitrate;
pub(super) mod ask_back;
pub(super) mod attack;
mod ballot;
pub(super) mod compress;
pub(super) mod conclude;
pub(super) mod debate;
mod echo;
pub(super) mod estimate;
pub(super) mod judge;
pub(super) mod opinions;
pub(super) mod rebut;
mod recorded;
pub(super) mod review;
pub(super) mod revise;
mod said;
pub(super) mod sameness;
pub(super) mod vote;

pub(super) use ballot::{foretells, form as ballot_form};

pub(super) use compress::extract;
pub(super) use echo::TASK as CONCLUDE_TASK;
pub(super) use opinions::TASK as OPINION_TASK;

pub(super) use conclude::{Conclusion, chairs, compose, material_bytes_max};
pub(super) use opinions::read_again;
pub(crate) use opinions::{asked_first, is_or_are};
pub(super) use vote::{calls as calls_of_a_vote, needs_ballots};

use super::blind;
use super::board::Board;
use super::fact::Fact;
use super::plan::Plan;
use super::reader::Run;
use crate::event::Purpose;
use kd_reading::Unread;
use serde_json::Value;

/// A stage.
pub struct Stage {
    /// Its name in the record.
    pub name: &'static str,
    /// Description for users: "opinions, blind".
    pub title: &'static str,
    /// The purpose for which members are asked.
    pub purpose: Purpose,
    /// Whether replies are messages of the conversation.
    pub spoken: bool,
    /// The members to ask, in order; a member may occur several times. Empty: the stage is skipped.
    pub seats: fn(&Plan, &Board) -> Vec<usize>,
    /// Builds the request to one member; `None` if there is nothing to ask.
    pub ask: fn(&StageInput<'_>) -> Option<Asking>,
    /// Processes a reply.
    pub read: fn(&mut Board, &Run, &Reply<'_>) -> Vec<Fact>,
    /// Ends the stage once all members have replied or failed.
    pub end: fn(&mut Board, &Run) -> Vec<Fact>,
    /// Formats a reply for the conversation.
    pub body: fn(&Run, &str) -> String,
}

/// The input available to a stage when it asks.
pub struct StageInput<'a> {
    /// The plan.
    pub plan: &'a Run,
    /// The board.
    pub board: &'a Board,
    /// The member asked: an index in the plan.
    pub seat: usize,
    /// Index among several calls to the same member in this stage.
    pub sample: u32,
}

/// A request to a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asking {
    /// The material: the question and, fenced, the text of others.
    pub material: String,
    /// The task.
    pub task: String,
    /// The required schema of the reply.
    pub schema: Option<Value>,
    /// The items behind labels A, B, …: indexes of authors or candidates, depending on the stage.
    pub items: Vec<usize>,
    /// Maximum tokens of the reply, if the stage overrides the plan.
    pub tokens: Option<u32>,
}

/// A reply to a stage.
pub struct Reply<'a> {
    /// The member.
    pub seat: usize,
    /// Index among several calls to the same member in this stage.
    pub sample: u32,
    /// The text.
    pub text: &'a str,
    /// The bare answer, if the member was asked again for it.
    pub repair: Option<&'a str>,
    /// The items behind the labels that this reader saw.
    pub items: &'a [usize],
    /// Its message, if replies of this stage are messages.
    pub message: Option<u32>,
}

impl<'a> Reply<'a> {
    /// Returns the text that contains the answer.
    fn decisive(&self) -> &'a str {
        self.repair.unwrap_or(self.text)
    }

    /// Describes how it was read, for the record.
    fn noted(&self, note: Option<String>) -> Option<String> {
        match (self.repair.is_some(), note) {
            (false, note) => note,
            (true, None) => Some("read as: asked once more".into()),
            (true, Some(note)) => Some(format!("{note}, asked once more")),
        }
    }
}

/// Returns why a reply cannot be read, if asking the member for the bare answer can help.
pub(super) fn unread(
    stage: &Stage,
    board: &Board,
    plan: &Run,
    reply: &Reply<'_>,
) -> Option<Unread> {
    let why = match stage.purpose {
        Purpose::Answer | Purpose::Revise => opinions::unread(plan, reply.text),
        Purpose::Vote => vote::unread(board, plan, reply),
        Purpose::Review if stage.name == review::STAGE.name => review::unread(plan, reply),
        _ => None,
    };
    why.filter(|why| why.is_worth_asking())
}

/// Asks a member for the bare answer of an unreadable reply.
pub(super) fn repair(
    stage: &Stage,
    board: &Board,
    plan: &Run,
    reply: &Reply<'_>,
    why: Unread,
) -> Asking {
    let (what, schema) = match stage.purpose {
        Purpose::Vote => vote::bare(board, plan, reply),
        Purpose::Review => review::bare(reply),
        _ => opinions::bare(plan),
    };
    // The labels of open answers mean nothing without the answers.
    let shows = matches!(stage.purpose, Purpose::Vote)
        && !plan.answers.is_keyed()
        && plan.spending >= SHOWN_AGAIN;
    let answers = match stage.purpose {
        Purpose::Review => format!("\n\n{}", review::shown_again(board, plan, reply)),
        _ if shows => format!("\n\n{}", vote::shown_again(board, plan, reply)),
        _ => String::new(),
    };
    Asking {
        material: format!(
            "Question:\n{}{answers}\n\nYour reply to it:\n{}",
            blind::clip(&board.question, REPAIR_BYTES_MAX),
            ending(&blind::hidden(plan, reply.text))
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

/// The first version of spending whose repair turns show open answers.
const SHOWN_AGAIN: u32 = 2;
/// Maximum bytes of a question, and of a reply, in a repair turn.
const REPAIR_BYTES_MAX: usize = 2000;
/// Maximum tokens of the reply in a repair turn.
const REPAIR_TOKENS: u32 = 256;

/// Returns the end of a reply, where its answer is.
fn ending(text: &str) -> String {
    let text = crate::clean::clean_text(text);
    let from = text.len().saturating_sub(REPAIR_BYTES_MAX);
    text.get(text.ceil_char_boundary(from)..)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// All stages.
pub static STAGES: &[&Stage] = &[
    &opinions::STAGE,
    &opinions::SAMPLES,
    &opinions::FIRST,
    &opinions::PAIR,
    &opinions::REST_UNLESS_AGREED,
    &opinions::UNTIL_ENOUGH,
    &review::STAGE,
    &judge::STAGE,
    &sameness::STAGE,
    &vote::STAGE,
    &vote::OPEN,
    &arbitrate::STAGE,
    &ask_back::STAGE,
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

/// Returns whether a stage only adds to the result: if a limit prevents it or its member fails, the result is
/// unchanged.
pub(super) fn is_aside(stage: &Stage) -> bool {
    [sameness::STAGE.name, ask_back::STAGE.name].contains(&stage.name)
}

/// Finds a stage by name.
pub fn find(name: &str) -> Option<&'static Stage> {
    STAGES.iter().find(|s| s.name == name).copied()
}

impl StageInput<'_> {
    /// Returns the question as every stage repeats it verbatim, so that no member drifts from it.
    fn question(&self) -> String {
        let mut out = String::new();
        if !self.plan.background.is_empty() && self.board.depth == 0 {
            out.push_str(&format!("Background:\n{}\n\n", self.plan.background));
        }
        let question = match self.board.depth {
            0 => self.board.question.clone(),
            // An issue comes from answers.
            _ => blind::hidden(self.plan, &self.board.question),
        };
        out.push_str(&format!("Question:\n{question}"));
        if !self.board.context.is_empty() {
            let context = blind::hidden(self.plan, &self.board.context);
            out.push_str(&format!("\n\n{context}"));
        }
        out
    }

    /// Returns the position in the deliberation as text, which makes every shuffle and nonce different.
    fn place(&self, stage: &str) -> String {
        let Board {
            pass, depth, round, ..
        } = self.board;
        format!("{stage}/{pass}/{depth}/{round}/{}", self.sample)
    }

    /// Shuffles items for this reader.
    fn deal(&self, stage: &str, items: &[usize]) -> Vec<usize> {
        let reader = self.plan.seats[self.seat].name().as_str();
        blind::deal(self.plan.seed, reader, &self.place(stage), items)
    }

    /// Fences the texts of others under labels A, B, ….
    fn fenced(&self, stage: &str, texts: &[String]) -> String {
        let items: Vec<(String, String)> = texts
            .iter()
            .enumerate()
            .map(|(place, text)| (format!("Answer {}", blind::label(place)), text.clone()))
            .collect();
        self.fenced_as(stage, &items)
    }

    /// Fences the texts of others under headings.
    fn fenced_as(&self, stage: &str, items: &[(String, String)]) -> String {
        let all: Vec<&str> = items.iter().map(|(_, t)| t.as_str()).collect();
        let reader = self.plan.seats[self.seat].name().as_str();
        let place = format!("{}/{reader}", self.place(stage));
        let nonce = blind::nonce(self.plan.seed, &place, &all);
        blind::fence(&nonce, items)
    }
}

/// Returns the default end of a stage: nothing to do.
fn no_end(_: &mut Board, _: &Run) -> Vec<Fact> {
    Vec::new()
}

/// Returns a reply unchanged for the conversation.
fn as_it_came(_: &Run, text: &str) -> String {
    text.to_owned()
}

/// Returns the text of another member as readers see it: without names, and shortened if a limit is low.
fn peer(plan: &Run, text: &str) -> String {
    let text = blind::anonymous(plan, text);
    match plan.limits.peer_bytes {
        Some(most) => blind::clip(&text, most as usize),
        None => text,
    }
}

/// Returns the text of a field, shortened to the maximum length.
fn words_of(value: &Value, name: &str) -> String {
    let said = value.get(name).and_then(Value::as_str).unwrap_or_default();
    crate::clean::clean_text(said).trim().to_owned()
}

/// Returns `count` labels.
fn labels(count: usize) -> Vec<String> {
    (0..count).map(blind::label).collect()
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stage({})", self.name)
    }
}
