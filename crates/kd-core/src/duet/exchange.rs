//! The messages between the two members about one question, and detection of repetition.

use crate::ids::SeatName;
use crate::message::{Address, Draft, Message, Provenance, Status};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Two messages are equal if they share at least this part of their three-word sequences: nine tenths.
const SAME: (usize, usize) = (9, 10);

/// The messages of one exchange, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchange {
    /// Everything since the user's message, in the order in which the members read it: both visible and private
    /// messages.
    pub(super) said: Vec<Message>,
    /// The three-word sequences of each message between the members.
    shingles: Vec<BTreeSet<String>>,
    /// Number of replies sent to the other member.
    pub(super) count: u32,
}

impl Exchange {
    /// Adds a message between the members; returns whether it repeats an earlier one.
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

/// Returns a message without a file, for prompts only.
fn unsaved(draft: Draft) -> Message {
    draft.stored(0)
}

/// Returns all three-word sequences in lower case without punctuation; the whole text if it is shorter.
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

/// Returns whether two sets are similar enough (Jaccard).
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
