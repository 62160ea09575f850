//! Failures without an answer: equal ones of several members are told once, with all names.

use kd_core::FailureKind;
use kd_core::TurnId;
use kd_core::event::Purpose;
use kd_core::view::{State, Turn, View};

/// Failures that wait, as long as another member may fail alike.
#[derive(Debug, Default)]
pub(super) struct Failures {
    waiting: Vec<Option<TurnId>>,
}

impl Failures {
    /// Takes a turn that failed before its first word; returns false for any other.
    pub(super) fn take(&mut self, turn: &Turn) -> bool {
        let failed = turn
            .failure()
            .is_some_and(|f| f.kind != FailureKind::Cancelled);
        let waits = failed && turn.text.is_empty() && turn.phase.is_none();
        if waits && !self.waiting.contains(&turn.id) {
            self.waiting.push(turn.id);
        }
        waits
    }

    /// Returns what waited, equal failures together, once no member is left that has not begun to answer, or at the end.
    pub(super) fn release<'v>(&mut self, view: &'v View, at_end: bool) -> Vec<Vec<&'v Turn>> {
        let may_fail = |turn: &Turn| {
            let begins = matches!(
                turn.state,
                State::Waiting | State::Started | State::Retrying { .. }
            );
            begins && turn.purpose == Purpose::Answer
        };
        if self.waiting.is_empty() || !at_end && view.turns.iter().any(may_fail) {
            return Vec::new();
        }
        let waited = std::mem::take(&mut self.waiting);
        let mut groups: Vec<Vec<&Turn>> = Vec::new();
        for turn in view.turns.iter().filter(|turn| waited.contains(&turn.id)) {
            let said = |turn: &Turn| {
                turn.failure()
                    .map(|f| (f.message.clone(), f.hint().to_owned()))
            };
            match groups.iter_mut().find(|group| said(group[0]) == said(turn)) {
                Some(group) => group.push(turn),
                None => groups.push(vec![turn]),
            }
        }
        groups
    }
}

/// Joins the names of members.
pub(super) fn names(group: &[&Turn]) -> String {
    let names: Vec<&str> = group.iter().map(|turn| turn.seat.as_str()).collect();
    names.join(", ")
}
