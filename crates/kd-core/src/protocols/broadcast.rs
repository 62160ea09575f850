//! All members at once, then a limited number of turns one by one in member order.

use super::turns::{Turns, cycle, extra_turns};
use super::{Move, Protocol, ProtocolKind, Table, ask_all, done, nobody};
use crate::ids::SeatName;

pub(super) const KIND: ProtocolKind = ProtocolKind {
    name: "broadcast",
    doc: "every member answers at once; later messages are followed by `council.auto_messages` turns in member order (unset: one each)",
    at_once: true,
    in_order: true,
    new: |_seed| Box::new(Broadcast::default()),
};

#[derive(Debug, Default)]
struct Broadcast {
    turns: Option<Turns>,
}

impl Protocol for Broadcast {
    fn next(&mut self, table: &Table<'_>) -> Move {
        if table.spoke.is_empty() {
            self.turns = None;
            return if table.seats.is_empty() {
                nobody()
            } else {
                ask_all(table)
            };
        }
        if self.turns.is_none() && !table.spoke.iter().any(|s| s.answered) {
            return done();
        }
        let turns = self.turns.get_or_insert_with(|| {
            let able: Vec<SeatName> = table.able().cloned().collect();
            Turns::new(cycle(&able, extra_turns(table, able.len())))
        });
        turns.next(table)
    }

    fn ahead(&self, table: &Table<'_>) -> Vec<SeatName> {
        self.turns
            .as_ref()
            .map_or_else(Vec::new, |turns| turns.ahead(table))
    }
}
