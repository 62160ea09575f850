//! One by one from the start, in member order, each seeing everything so far.

use super::turns::{Turns, cycle, extra_turns};
use super::{Move, Protocol, ProtocolKind, Table, nobody};
use crate::ids::SeatName;

pub(super) const KIND: ProtocolKind = ProtocolKind {
    name: "sequential",
    doc: "members answer one by one in member order; later messages are followed by `council.auto_messages` turns more (unset: none)",
    at_once: false,
    in_order: true,
    new: |_seed| Box::new(Sequential::default()),
};

#[derive(Debug, Default)]
struct Sequential {
    turns: Turns,
}

impl Protocol for Sequential {
    fn next(&mut self, table: &Table<'_>) -> Move {
        if table.spoke.is_empty() {
            if table.seats.is_empty() {
                return nobody();
            }
            self.turns = Turns::new(table.seats.iter().cloned());
            self.turns.extend(cycle(table.seats, extra_turns(table, 0)));
        }
        self.turns.next(table)
    }

    fn ahead(&self, table: &Table<'_>) -> Vec<SeatName> {
        self.turns.ahead(table)
    }
}
