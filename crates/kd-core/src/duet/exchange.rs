//! What the two seats wrote to each other about one question, and when it goes in circles.

use crate::ids::SeatName;
use crate::message::{Address, Draft, Message, Provenance, Status};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Two messages that share at least this part of their three-word sequences say the same: nine tenths.
const SAME: (usize, usize) = (9, 10);

/// The messages of one exchange, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchange {
    /// Everything said since the king spoke, in the order in which the seats read it: what he read too, and what only
    /// they did.
    pub(super) said: Vec<Message>,
    /// The words of each message between the seats.
    shingles: Vec<BTreeSet<String>>,
    /// How many replies went to the other seat.
    pub(super) count: u32,
}

impl Exchange {
    /// Takes in a message from seat to seat; whether it says what one before it said.
    pub(super) fn council(
        &mut self,
        from: &SeatName,
        to: &SeatName,
        text: &str,
        at: Timestamp,
    ) -> bool {
        let draft = Draft {
            turn: None,
            from: from.to_string(),
            to: Address::Seats(vec![to.clone()]),
            at,
            status: Some(Status::Complete),
            refs: Vec::new(),
            provenance: Provenance::default(),
            extra: BTreeMap::new(),
            body: text.to_owned(),
        };
        self.said.push(unsaved(draft));
        self.count += 1;
        let shingles = shingles(text);
        let again = self.shingles.iter().any(|old| same(old, &shingles));
        self.shingles.push(shingles);
        again
    }
}

/// A message that is in no file: only prompts see it.
fn unsaved(draft: Draft) -> Message {
    draft.stored(0)
}

/// All sequences of three words, in small letters, without punctuation; of a shorter text the whole.
fn shingles(text: &str) -> BTreeSet<String> {
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    if words.len() < 3 {
        return BTreeSet::from([words.join(" ")]);
    }
    words.windows(3).map(|three| three.join(" ")).collect()
}

/// Whether two sets share so much of what both hold together (Jaccard).
fn same(a: &BTreeSet<String>, b: &BTreeSet<String>) -> bool {
    let shared = a.intersection(b).count();
    let all = a.len() + b.len() - shared;
    shared * SAME.1 >= all * SAME.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_seen_and_an_argument_is_none() {
        let (a, b) = (SeatName::new("a").unwrap(), SeatName::new("b").unwrap());
        let mut exchange = Exchange::default();
        let mut hear = |text: &str| exchange.council(&a, &b, text, Timestamp::UNIX_EPOCH);
        assert!(!hear(
            "The cache is the problem: it never forgets an old key."
        ));
        assert!(!hear(
            "The cache is not the problem, the clock is: it never forgets a leap second."
        ));
        assert!(hear(
            "the cache is **the problem** - it never forgets an old key"
        ));
        assert!(!hear("no"));
        assert!(hear("No!"));
        assert_eq!(exchange.count, 5);
    }
}
