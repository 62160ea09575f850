//! A unit of work of a deliberation: a pass of the council, a sub-council on one issue, or the summary between two passes.

use super::board::Board;
use super::fact::Fact;
use super::iteration::Action;
use super::protocols::Step;
use super::reader::Run;
use super::stages::{self, Asking, Reply};
use super::turn::Turn;
use crate::event::Purpose;

/// A unit of work on the stack.
#[derive(Debug)]
pub(super) struct Frame {
    /// Its state.
    pub(super) board: Board,
    /// Its steps, in order.
    pub(super) steps: &'static [Step],
    /// Index of the next or the running step.
    pub(super) at: usize,
    /// Whether the stage of this step has begun.
    pub(super) begun: bool,
    /// Its kind.
    pub(super) kind: Kind,
}

/// The kind of a frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A pass of the council.
    Pass,
    /// A sub-council on an issue.
    Issue(String),
    /// The question to the user.
    AskingBack,
    /// The summary of a pass, and the action that follows.
    SummingUp(Action),
}

impl Frame {
    /// Creates a frame at its first step.
    pub(super) fn new(board: Board, steps: &'static [Step], kind: Kind) -> Self {
        Self {
            board,
            steps,
            at: 0,
            begun: false,
            kind,
        }
    }

    /// Passes the reply of a turn to its stage.
    pub(super) fn read(
        &mut self,
        plan: &Run,
        turn: &Turn,
        text: &str,
        repair: Option<&str>,
        message: Option<u32>,
    ) -> Vec<Fact> {
        let reply = Reply {
            seat: turn.seat,
            sample: turn.sample,
            text,
            repair,
            items: &turn.items,
            message,
        };
        (turn.stage.read)(&mut self.board, plan, &reply)
    }

    /// Returns the follow-up question to a member whose reply its stage cannot read.
    pub(super) fn repair(&self, plan: &Run, turn: &Turn, text: &str) -> Option<Asking> {
        let reply = Reply {
            seat: turn.seat,
            sample: turn.sample,
            text,
            repair: None,
            items: &turn.items,
            message: None,
        };
        let why = stages::unread(turn.stage, &self.board, plan, &reply)?;
        Some(stages::repair(turn.stage, &self.board, plan, &reply, why))
    }

    /// Records that a turn produced nothing.
    pub(super) fn absent(&mut self, turn: &Turn) {
        if turn.needless {
            self.board.absent.needless.push(turn.seat);
        }
        let absent = match turn.stage.purpose {
            // An aside has no answer that counts.
            _ if stages::is_aside(turn.stage) => return,
            Purpose::Vote => &mut self.board.absent.ballots,
            Purpose::Review => &mut self.board.absent.reviews,
            // A member silent in a later round keeps its earlier answer.
            _ if self.board.answer_of(turn.seat).is_some() => return,
            _ => &mut self.board.absent.answers,
        };
        if !absent.contains(&turn.seat) {
            absent.push(turn.seat);
        }
    }
}
