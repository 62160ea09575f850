//! Only mentioned members, one by one.

use super::turns::Turns;
use super::{Call, Move, Protocol, ProtocolKind, Table, Yield, nobody};
use crate::ids::SeatName;

pub(super) const KIND: ProtocolKind = ProtocolKind {
    name: "manual",
    doc: "only members that you mention answer, one by one; `@all` mentions every member",
    at_once: false,
    in_order: true,
    new: |_seed| Box::new(Manual::default()),
};

#[derive(Debug, Default)]
struct Manual {
    turns: Turns,
}

impl Protocol for Manual {
    fn next(&mut self, table: &Table<'_>) -> Move {
        if table.spoke.is_empty() {
            if table.call == Call::Everyone {
                return Move::Yield(Yield {
                    why: Some(
                        "no member was mentioned, so none answers: write @member or @all"
                            .to_owned(),
                    ),
                });
            }
            if table.seats.is_empty() {
                return nobody();
            }
            self.turns = Turns::new(table.seats.iter().cloned());
        }
        self.turns.next(table)
    }

    fn ahead(&self, table: &Table<'_>) -> Vec<SeatName> {
        self.turns.ahead(table)
    }
}
