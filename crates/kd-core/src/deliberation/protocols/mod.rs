//! The protocols of a deliberation: one file each, one row each. A protocol is data: stages in order, what is counted,
//! and when it goes back or ends early.

mod cascade;
mod collective;
mod council;
mod debate;
mod delphi;
mod gated_debate;
mod layers;
mod peer_review;
mod red_team;
mod round_table;
mod sample_vote;
mod solo;
mod vote;

use super::board::Board;
use super::count::Source;
use super::forecast::Heads;
use super::plan::Plan;
use super::stages::Stage;

pub(super) use debate::FOR_AND_AGAINST;
pub(super) use vote::ISSUE;

/// A row of the table.
pub struct Protocol {
    /// Its name.
    pub name: &'static str,
    /// What happens, for people.
    pub doc: &'static str,
    /// Who proposed or measured it.
    pub source: &'static str,
    /// What is done, in order.
    pub steps: &'static [Step],
    /// Who writes the answer.
    pub ending: Ending,
    /// Whether the first answers may be cut short once more of them cannot change the result.
    pub certain: bool,
    /// The most calls of a pass where nobody fails, the answer included.
    pub calls: fn(&Heads) -> u64,
}

/// One thing that is done.
pub enum Step {
    /// A stage.
    Ask(&'static Stage),
    /// A count.
    Count(Source),
    /// The count once more, if an arbiter spoke.
    Recount(Source),
    /// The protocol is over if this holds.
    StopIf(fn(&Plan, &Board) -> bool),
    /// Back to a step, as a new round, if this holds.
    Again {
        /// Which step, from 0.
        to: usize,
        /// When.
        when: fn(&Plan, &Board) -> bool,
    },
}

/// Who writes the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The chair.
    Chair,
    /// Nobody: the winning answer is the answer.
    Winner,
}

/// Every protocol. The first is the one that is taken where nobody says otherwise.
pub static PROTOCOLS: &[&Protocol] = &[
    &council::PROTOCOL,
    &solo::PROTOCOL,
    &sample_vote::PROTOCOL,
    &vote::PROTOCOL,
    &cascade::PROTOCOL,
    &gated_debate::PROTOCOL,
    &debate::PROTOCOL,
    &round_table::PROTOCOL,
    &collective::PROTOCOL,
    &peer_review::PROTOCOL,
    &layers::PROTOCOL,
    &delphi::PROTOCOL,
    &red_team::PROTOCOL,
];

/// The protocol of a name.
pub fn find(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|p| p.name == name).copied()
}

/// Whether another round is allowed and can change anything: not when nobody changed its mind in the last one, nor
/// when everybody agrees, nor when all stand where they stood in an earlier round.
fn another_round(plan: &Plan, board: &Board) -> bool {
    let stable = match board.trail.as_slice() {
        [earlier @ .., last] => plan.answers.is_keyed() && earlier.contains(last),
        [] => false,
    };
    board.round < plan.rounds && !stable && !board.agreed(&plan.answers)
}
