//! What the next pass does differently: one file for each strategy, one row for each.

mod debate;
mod escalate;
mod refine;
mod specialize;

pub(super) use specialize::deeper;

use super::board::Board;
use super::course::{Frame, Kind};
use super::plan::{Plan, Strategy};
use super::protocols::{Protocol, Step};
use crate::memory::Memory;

/// What a strategy may look at.
pub(super) struct Next<'a> {
    /// The plan.
    pub(super) plan: &'a Plan,
    /// Its protocol.
    pub(super) protocol: &'static Protocol,
    /// The table of the last pass.
    pub(super) last: &'a Board,
    /// What is remembered.
    pub(super) memory: &'a Memory,
    /// Seats in reserve that have not joined.
    pub(super) reserves: Vec<usize>,
    /// Whether backups join whatever the strategy: agreement is low.
    pub(super) escalate: bool,
}

/// A row: the frames of the next pass, the last on top.
type Row = (Strategy, fn(&Next<'_>) -> Vec<Frame>);

const STRATEGIES: &[Row] = &[
    (Strategy::Refine, refine::frames),
    (Strategy::Escalate, escalate::frames),
    (Strategy::Specialize, specialize::frames),
    (Strategy::Debate, debate::frames),
];

/// The frames of the next pass.
pub(super) fn next(next: &Next<'_>) -> Vec<Frame> {
    let strategy = next.plan.iteration.strategy;
    let row = STRATEGIES.iter().find(|(name, _)| *name == strategy);
    let mut frames = row.map_or_else(Vec::new, |(_, frames)| frames(next));
    if next.escalate && strategy != Strategy::Escalate {
        escalate::join(next, &mut frames, 1);
    }
    frames
}

impl Next<'_> {
    /// A pass by the same seats that reads what is remembered.
    fn pass(&self, steps: &'static [Step], focus: &str) -> Frame {
        let pass = self.last.pass + 1;
        let board = Board {
            question: self.plan.question.clone(),
            pass,
            seats: self.last.seats.clone(),
            context: match self.plan.memory.enabled {
                true => self
                    .memory
                    .context(pass, focus, self.plan.memory.max_context_tokens),
                false => String::new(),
            },
            ..Board::default()
        };
        Frame::new(board, steps, Kind::Pass)
    }
}
