//! Renders the parts that the reader of a live page does not have yet. The visible part of a newly opened thread
//! comes first, so that a long thread is readable at once.

use crate::facts::{Facts, Thread};
use crate::said::{self, Part, Round};
use crate::{Section, head, navigation, section, shown};
use maud::Markup;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Numbers of messages in the first batch: at the beginning of the thread, and at its end.
const AT_BEGINNING: usize = 20;
const AT_END: usize = 60;
/// Bytes of markup after which a batch of older rounds ends.
const BATCH_BYTES: usize = 256 << 10;

/// Parts that are shown at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The parts, in page order.
    pub parts: Vec<Part>,
    /// Whether further batches follow.
    pub more: bool,
}

/// The parts of a live page that a reader already has, as digests of their content.
#[derive(Debug, Default)]
pub struct Reader(BTreeMap<String, u64>);

impl Reader {
    /// Renders the parts of a thread that changed, and gives them to `take` until that returns false. The first batch
    /// has the header, the sections and the rounds at both ends of the thread, the others the rounds in between, in
    /// order. Nothing is given if nothing changed.
    pub fn update(&mut self, thread: &Thread, mut take: impl FnMut(Batch) -> bool) -> bool {
        let facts = Facts::of(thread, 0);
        let rounds = said::rounds(&facts);
        let rounds = rounds.into_iter().filter(|round| {
            let id = facts.round(round.first);
            self.is_news(&id, said::print(&facts, round))
        });
        let mut beginning: Vec<Round<'_>> = rounds.collect();
        let mut between = beginning.split_off(up_to(beginning.iter(), AT_BEGINNING));
        let end = up_to(between.iter().rev(), AT_END);
        let end = between.split_off(between.len() - end);

        let mut parts = self.parts([("head", head(&facts)), ("nav", navigation(&facts))]);
        let at_ends = beginning.iter().chain(&end);
        parts.extend(at_ends.map(|round| said::part(&facts, round)));
        let sections = shown(&facts).into_iter();
        let sections = sections.filter(|section| *section != Section::Said);
        let sections = sections.map(|section| (section.id(), self::section(&facts, section)));
        parts.extend(self.parts(sections));
        if parts.is_empty() {
            return true;
        }
        let mut between = between.iter().peekable();
        let mut more = between.peek().is_some();
        while take(Batch { parts, more }) {
            if !more {
                return true;
            }
            let (mut bytes, mut batch) = (0, Vec::new());
            while bytes < BATCH_BYTES
                && let Some(round) = between.next()
            {
                let part = said::part(&facts, round);
                bytes += part.html.len();
                batch.push(part);
            }
            (parts, more) = (batch, between.peek().is_some());
        }
        false
    }

    /// Returns the parts of these that changed.
    fn parts(&mut self, all: impl IntoIterator<Item = (&'static str, Markup)>) -> Vec<Part> {
        let mut parts = Vec::new();
        for (id, markup) in all {
            let mut digest = DefaultHasher::new();
            markup.0.hash(&mut digest);
            if self.is_news(id, digest.finish()) {
                parts.push(Part {
                    id: id.to_owned(),
                    html: markup.into_string(),
                    words: Vec::new(),
                });
            }
        }
        parts
    }

    /// Stores the digest of a part's content. Returns whether it has changed.
    fn is_news(&mut self, id: &str, digest: u64) -> bool {
        self.0.insert(id.to_owned(), digest) != Some(digest)
    }
}

/// Returns how many of the rounds have at most `messages` messages together; at least 1.
fn up_to<'a>(rounds: impl Iterator<Item = &'a Round<'a>>, messages: usize) -> usize {
    let mut sum = 0;
    rounds
        .take_while(|round| {
            let before = sum;
            sum += round.messages().count();
            before == 0 || sum <= messages
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::looks;
    use kd_core::message::Provenance;
    use kd_core::{Address, Message, Status, ThreadId, Timestamp};

    /// A question and two answers, and so on.
    fn thread(messages: u32) -> Thread {
        let message = |seq: u32| {
            let from = ["ben", "king", "ann"][seq as usize % 3];
            Message {
                seq,
                from: from.into(),
                to: Address::All,
                at: Timestamp::UNIX_EPOCH,
                status: (from != "king").then_some(Status::Complete),
                refs: Vec::new(),
                provenance: Provenance::default(),
                extra: BTreeMap::new(),
                body: format!("words{seq}. ").repeat(40).into(),
            }
        };
        Thread {
            id: ThreadId("council-ab12".into()),
            opened: None,
            members: vec!["ann".into(), "ben".into()],
            origin: None,
            private: false,
            forgotten: Vec::new(),
            messages: (1..=messages).map(message).collect(),
            records: Vec::new(),
            family: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn batches(reader: &mut Reader, thread: &Thread) -> Vec<Batch> {
        let mut all = Vec::new();
        assert!(reader.update(thread, |batch| {
            all.push(batch);
            true
        }));
        all
    }

    fn ids(batch: &Batch) -> Vec<&str> {
        batch.parts.iter().map(|part| part.id.as_str()).collect()
    }

    /// Numbers of the rounds of a batch.
    fn rounds(batch: &Batch) -> Vec<u32> {
        let ids = ids(batch).into_iter();
        ids.filter_map(|id| id.strip_prefix('r')?.parse().ok())
            .collect()
    }

    #[test]
    fn a_short_thread_is_one_batch_in_page_order_and_only_changes_follow() {
        let (mut reader, mut thread) = (Reader::default(), thread(6));
        let first = batches(&mut reader, &thread);
        assert_eq!(first.len(), 1);
        assert!(!first[0].more);
        assert_eq!(ids(&first[0]), ["head", "nav", "r1", "r4", "record"]);
        assert_eq!(first[0].parts[2].words.len(), 3);
        assert_eq!(batches(&mut reader, &thread), []);
        thread.messages[4].body = "other words".into();
        let second = batches(&mut reader, &thread);
        assert_eq!(second.iter().map(ids).collect::<Vec<_>>(), [["r4"]]);
        assert!(second[0].parts[0].html.contains("other words"));
    }

    #[test]
    fn a_long_thread_begins_with_both_ends_and_all_of_it_follows_once_in_order() {
        let all = batches(&mut Reader::default(), &thread(3000));
        assert!(all.len() > 3, "{}", all.len());
        let first = rounds(&all[0]);
        assert_eq!(first[..3], [1, 4, 7]);
        assert_eq!(first.last(), Some(&2998));
        assert!(first.len() < 30, "{first:?}");
        assert_eq!(ids(&all[0])[..2], ["head", "nav"]);
        assert_eq!(ids(&all[0]).last(), Some(&"record"));
        let more: Vec<bool> = all.iter().map(|batch| batch.more).collect();
        assert!(!more[more.len() - 1] && more[..more.len() - 1].iter().all(|more| *more));
        let between: Vec<u32> = all[1..].iter().flat_map(rounds).collect();
        assert!(between.is_sorted(), "{between:?}");
        let mut both = [first, between].concat();
        both.sort_unstable();
        assert_eq!(both, (1..=2998).step_by(3).collect::<Vec<u32>>());
    }

    #[test]
    fn it_stops_when_nobody_takes_more() {
        let mut taken = 0;
        let whole = Reader::default().update(&thread(3000), |_| {
            taken += 1;
            taken < 2
        });
        assert!(!whole && taken == 2);
    }

    #[test]
    fn whatever_changes_the_markup_of_a_round_is_news() {
        type Change = fn(&mut Thread);
        let changes: [(&str, Change); 10] = [
            ("body", |t| t.messages[1].body = "x".into()),
            ("from", |t| t.messages[1].from = "ben".into()),
            ("to", |t| {
                t.messages[1].to = Address::Seats(vec![kd_core::SeatName::new("ben").unwrap()])
            }),
            ("status", |t| t.messages[1].status = Some(Status::Error)),
            ("model", |t| {
                t.messages[1].provenance.model = Some("m".into())
            }),
            ("purpose", |t| {
                let purpose = ("purpose".to_owned(), "conclude".to_owned());
                t.messages[1].extra.extend([purpose]);
            }),
            ("fewer", |t| drop(t.messages.remove(2))),
            // A member that is earlier in the alphabet takes the mark of ann.
            ("color", |t| {
                let ann = looks::number("ann", ["ann", "ben"]);
                let mut names = (0..100).map(|n| format!("a{n}"));
                let taker = names.find(|name| looks::number(name, [&**name]) == ann);
                t.members.insert(0, taker.unwrap());
            }),
            ("cut", |t| {
                let cut = ("finish".to_owned(), "length".to_owned());
                t.messages[1].extra.extend([cut]);
            }),
            ("question", |t| t.messages[0].body = "y".into()),
        ];
        for (what, change) in changes {
            let (mut reader, mut thread) = (Reader::default(), thread(3));
            let before = batches(&mut reader, &thread);
            change(&mut thread);
            let after = batches(&mut reader, &thread);
            let html = |batches: &[Batch]| {
                let mut parts = batches.iter().flat_map(|batch| batch.parts.clone());
                parts.find(|part| part.id == "r1").map(|part| part.html)
            };
            assert!(html(&after).is_some(), "{what}");
            assert_ne!(html(&before), html(&after), "{what}");
        }
    }
}
