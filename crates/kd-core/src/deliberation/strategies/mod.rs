//! Strategies of the next pass: one file and one table row per strategy.

mod debate;
mod escalate;
mod refine;
mod specialize;

pub(super) use specialize::deeper;

use super::board::Board;
use super::frame::{Frame, Kind};
use super::plan::Strategy;
use super::protocols::{Protocol, Step};
use super::reader::Run;
use crate::memory::Memory;

/// The input of a strategy.
pub(super) struct Next<'a> {
    /// The plan.
    pub(super) plan: &'a Run,
    /// Its protocol.
    pub(super) protocol: &'static Protocol,
    /// The board of the last pass.
    pub(super) last: &'a Board,
    /// The memory.
    pub(super) memory: &'a Memory,
    /// Reserve members that have not joined.
    pub(super) reserves: Vec<usize>,
    /// Whether reserves join whatever the strategy, because agreement is low.
    pub(super) escalate: bool,
}

/// A strategy and its function, which returns the frames of the next pass, the last on top.
type Row = (Strategy, fn(&Next<'_>) -> Vec<Frame>);

const STRATEGIES: &[Row] = &[
    (Strategy::Refine, refine::frames),
    (Strategy::Escalate, escalate::frames),
    (Strategy::Specialize, specialize::frames),
    (Strategy::Debate, debate::frames),
];

/// Returns the frames of the next pass.
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
    /// Creates a pass of the same members that reads the memory.
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
