//! Failures without an answer: equal failures of several members are reported once, with all names.

use kd_core::event::Purpose;
use kd_core::view::{State, Turn, View};
use kd_core::{FailureKind, Timestamp, TurnId};
use std::time::Duration;

/// How long a failure waits for others that may be equal. A member may be silent for minutes.
const HELD_MAX: Duration = Duration::from_secs(2);

/// Failures that wait for a moment, as long as another member may fail alike.
#[derive(Debug, Default)]
pub(super) struct Failures {
    waiting: Vec<Option<TurnId>>,
    /// When the first of them ended.
    since: Option<Timestamp>,
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
            self.since = self.since.or(turn.ended);
        }
        waits
    }

    /// Returns the time until the waiting failures must be reported; `None` if none waits.
    pub(super) fn due_in(&self, now: Timestamp) -> Option<Duration> {
        let waited = self.since.filter(|_| !self.waiting.is_empty())?;
        let waited = Duration::try_from(now.duration_since(waited)).unwrap_or_default();
        Some(HELD_MAX.saturating_sub(waited))
    }

    /// Returns the waiting failures, with equal ones together, once every other member has begun to answer, or after
    /// [`HELD_MAX`]. `now` is `None` at the end.
    pub(super) fn release<'v>(
        &mut self,
        view: &'v View,
        now: Option<Timestamp>,
    ) -> Vec<Vec<&'v Turn>> {
        let may_fail = |turn: &Turn| {
            let begins = matches!(
                turn.state,
                State::Waiting | State::Started | State::Retrying { .. }
            );
            begins && turn.purpose == Purpose::Answer
        };
        let is_due = |now| self.due_in(now).is_none_or(|wait| wait.is_zero());
        let waits = now.is_some_and(|now| view.turns.iter().any(may_fail) && !is_due(now));
        if self.waiting.is_empty() || waits {
            return Vec::new();
        }
        let waited = std::mem::take(self).waiting;
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
