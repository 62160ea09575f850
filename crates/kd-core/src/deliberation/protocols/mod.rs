//! The protocols of a deliberation: one file and one table row each. A protocol is data: stages in order, what is
//! counted, and when it loops or ends early.

mod cascade;
mod certain_enough;
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
use super::plan::MemberCounts;
use super::plan::Plan;
use super::stages::Stage;
use crate::event::Purpose;

pub(super) use debate::FOR_AND_AGAINST;
pub(super) use vote::ISSUE;

/// A protocol.
pub struct Protocol {
    /// Its name.
    pub name: &'static str,
    /// Description for users.
    pub doc: &'static str,
    /// Source of the method or its measurements.
    pub source: &'static str,
    /// The steps, in order.
    pub steps: &'static [Step],
    /// The writer of the final answer.
    pub ending: Ending,
    /// The members that are asked.
    pub asks: Asks,
    /// Whether first answers may be cancelled once they cannot change the result.
    pub certain: bool,
    /// Whether members are asked in an order, and until a chance of being right, that the planner learns.
    pub learns: bool,
    /// Maximum calls of a pass without failures, including the final answer.
    pub calls: fn(&MemberCounts) -> u64,
}

/// A step of a protocol.
pub enum Step {
    /// Run a stage.
    Ask(&'static Stage),
    /// Count votes.
    Count(Source),
    /// Count again if an arbiter decided.
    Recount(Source),
    /// End the protocol if this holds.
    StopIf(fn(&Plan, &Board) -> bool),
    /// Go back to a step, as a new round, if this holds.
    Again {
        /// Index of the step.
        to: usize,
        /// The condition.
        when: fn(&Plan, &Board) -> bool,
    },
}

/// The writer of the final answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The chair.
    Chair,
    /// The winning answer is the final answer.
    Winner,
}

/// The members of a council that a protocol asks for an answer or for a check of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// All.
    All,
    /// One after another, until the result is certain.
    UntilCertain,
    /// The strongest alone.
    One,
}

/// All protocols. The first is the default.
pub static PROTOCOLS: &[&Protocol] = &[
    &council::PROTOCOL,
    &solo::PROTOCOL,
    &sample_vote::PROTOCOL,
    &vote::PROTOCOL,
    &cascade::PROTOCOL,
    &certain_enough::PROTOCOL,
    &gated_debate::PROTOCOL,
    &debate::PROTOCOL,
    &round_table::PROTOCOL,
    &collective::PROTOCOL,
    &peer_review::PROTOCOL,
    &layers::PROTOCOL,
    &delphi::PROTOCOL,
    &red_team::PROTOCOL,
];

/// The name that lets the planner choose a protocol.
pub(crate) const AUTO: &str = "auto";

/// The values of `deliberation.protocol`: the names of all protocols, then [`AUTO`].
pub const CHOICES: &[&str] = &choices();

const fn choices() -> [&'static str; PROTOCOLS.len() + 1] {
    let mut choices = [AUTO; PROTOCOLS.len() + 1];
    let mut at = 0;
    while at < PROTOCOLS.len() {
        choices[at] = PROTOCOLS[at].name;
        at += 1;
    }
    choices
}

/// Finds a protocol by name.
pub fn find(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|p| p.name == name).copied()
}

/// Returns whether members of a protocol review or attack the answers of others.
pub(crate) fn reviews(name: &str) -> bool {
    let of = |step: &Step| matches!(step, Step::Ask(stage) if stage.purpose == Purpose::Review);
    find(name).is_some_and(|protocol| protocol.steps.iter().any(of))
}

/// Returns whether the rankings of reviewers are the ballots of a protocol.
pub(super) fn counts_rankings(name: &str) -> bool {
    let counts = |step: &Step| matches!(step, Step::Count(Source::Rankings));
    find(name).is_some_and(|protocol| protocol.steps.iter().any(counts))
}

/// Returns the rule by which members of a plan are not asked, as marks have it; `None` where its protocol has only one.
pub fn stopping(plan: &Plan) -> Option<String> {
    find(&plan.protocol).filter(|protocol| protocol.learns)?;
    let learned = plan.enough.as_ref().filter(|rule| !rule.chances.is_empty());
    Some(match learned.map(|rule| rule.required) {
        None => "settled".to_owned(),
        Some(Some(chance)) => format!("certainty {chance}"),
        Some(None) => "margin".to_owned(),
    })
}

/// Returns whether another round is allowed and can change anything: not if the last one changed no answer, all agree,
/// or the answers are the same as in an earlier round.
fn another_round(plan: &Plan, board: &Board) -> bool {
    let stable = match board.trail.as_slice() {
        [earlier @ .., last] => plan.answers.is_keyed() && earlier.contains(last),
        [] => false,
    };
    board.round < plan.rounds && !stable && !board.agreed(&plan.answers)
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Ask(stage) => write!(f, "Ask({})", stage.name),
            Step::Count(source) => write!(f, "Count({source:?})"),
            Step::Recount(source) => write!(f, "Recount({source:?})"),
            Step::StopIf(_) => f.write_str("StopIf"),
            Step::Again { to, .. } => write!(f, "Again({to})"),
        }
    }
}

impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Protocol({})", self.name)
    }
}
