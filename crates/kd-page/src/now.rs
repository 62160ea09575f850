//! The running work of a thread: the stage, its progress, and the members that it waits for.

use crate::facts::Facts;
use kd_core::deliberation::report::{SeatState, StageReport};
use kd_core::event::Purpose;
use maud::{Markup, html};

/// Returns what a member does that is asked for this, in a word or two.
pub fn doing(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Answer => "answering",
        Purpose::Conclude => "concluding",
        Purpose::Plan => "planning",
        Purpose::Review => "reviewing",
        Purpose::Vote => "voting",
        Purpose::Revise => "revising",
        Purpose::Compress => "summarizing",
        Purpose::Arbitrate => "comparing",
        Purpose::Exchange => "debating",
        Purpose::Format => "writing JSON",
    }
}

/// Renders what runs; nothing if nobody is being asked.
pub(crate) fn now(facts: &Facts<'_>) -> Markup {
    let asked = &facts.thread.asked;
    if asked.is_empty() {
        return html! {};
    }
    let mut doings: Vec<&str> = Vec::new();
    for doing in asked.iter().map(|one| doing(one.purpose)) {
        if !doings.contains(&doing) {
            doings.push(doing);
        }
    }
    let stage = facts.report.as_ref().filter(|_| facts.is_unfinished());
    let stage = stage.and_then(|report| report.stages.last());
    html! {
        p.now {
            b { "Now: " @match stage { Some(stage) => (stage.heading()), None => (doings.join(", ")) } }
            @if let Some(stage) = stage { span { (ended(stage)) " of " (stage.seats.len()) " done" } }
            span { "waiting for " @for one in asked { (facts.name(&one.seat)) " " } }
        }
    }
}

/// Returns the number of members of a stage that are no longer waited for.
fn ended(stage: &StageReport) -> usize {
    let has_ended = |state| !matches!(state, SeatState::Asked | SeatState::Waiting);
    stage
        .seats
        .iter()
        .filter(|seat| has_ended(seat.state))
        .count()
}
