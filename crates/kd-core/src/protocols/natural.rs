//! All members answer the first message at once; later ones are answered one by one in random order.

use super::turns::{Turns, extra_turns};
use super::{Call, Move, Protocol, ProtocolKind, Table, ask_all, nobody};
use crate::ids::SeatName;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;

pub(super) const KIND: ProtocolKind = ProtocolKind {
    name: "natural",
    doc: "the first message is answered at once; later ones one by one in shuffled order, then `council.auto_messages` turns more (unset: none)",
    at_once: false,
    in_order: false,
    new: |seed| {
        Box::new(Natural {
            // A named generator, because its numbers are the same in every release: a thread can be replayed.
            chance: ChaCha12Rng::seed_from_u64(seed),
            turns: None,
        })
    },
};

#[derive(Debug)]
struct Natural {
    chance: ChaCha12Rng,
    turns: Option<Turns>,
}

impl Natural {
    /// Draws `n` turns: each pass in its own order.
    fn draw(&mut self, seats: &[SeatName], n: usize) -> Vec<SeatName> {
        let mut drawn = Vec::new();
        while drawn.len() < n && !seats.is_empty() {
            let mut pass = seats.to_vec();
            pass.shuffle(&mut self.chance);
            drawn.extend(pass);
        }
        drawn.truncate(n);
        drawn
    }
}

impl Protocol for Natural {
    fn next(&mut self, table: &Table<'_>) -> Move {
        if table.spoke.is_empty() {
            self.turns = None;
            if table.seats.is_empty() {
                return nobody();
            }
            if table.first || table.call == Call::Named {
                return ask_all(table);
            }
            let mut order = self.draw(table.seats, table.seats.len());
            order.extend(self.draw(table.seats, extra_turns(table, 0)));
            self.turns = Some(Turns::new(order));
        }
        if self.turns.is_none() {
            let able: Vec<SeatName> = table.able().cloned().collect();
            let order = self.draw(&able, extra_turns(table, 0));
            self.turns = Some(Turns::new(order));
        }
        self.turns.get_or_insert_default().next(table)
    }

    fn ahead(&self, table: &Table<'_>) -> Vec<SeatName> {
        self.turns
            .as_ref()
            .map_or_else(Vec::new, |turns| turns.ahead(table))
    }
}
