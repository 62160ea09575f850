//! The facts about a thread that a page needs, collected once.

#![deny(clippy::wildcard_enum_match_arm)]

use crate::passage::Sentences;
use jiff::Timestamp;
use kd_core::clean::{clean_line, clean_text};
use kd_core::deliberation::map::{Map, Rows, Stance};
use kd_core::deliberation::report::Report;
use kd_core::deliberation::{self, Fact, Replayed, Robustness, Verdict};
use kd_core::event::Purpose;
use kd_core::looks;
use kd_core::message::settled;
use kd_core::view::{self, View};
use kd_core::{Event, Message, Record, SeatName, ThreadId, Usage};
use maud::{Markup, html};
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum characters of a title or name.
const TITLE_CHARS: usize = 160;
const NAME_CHARS: usize = 60;

/// A thread, as needed for its page.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its id.
    pub id: ThreadId,
    /// When it was opened.
    pub opened: Option<Timestamp>,
    /// The members, without the user.
    pub members: Vec<String>,
    /// A description of its source, if it is a fork.
    pub origin: Option<String>,
    /// Whether it asks only members on the user's machine.
    pub private: bool,
    /// Numbers of messages that were forgotten.
    pub forgotten: Vec<u32>,
    /// Its messages, ordered by number.
    pub messages: Vec<Message>,
    /// Its records, if they were kept.
    pub records: Vec<Record>,
    /// It and the threads that it shares messages with, as a tree; empty without forks.
    pub family: Vec<Relative>,
    /// The members that are being asked at this moment.
    pub asked: Vec<Asked>,
}

/// A member that is being asked at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The member.
    pub seat: String,
    /// Why it is asked.
    pub purpose: Purpose,
    /// Whether its text is a form for the program, such as a ballot: readers see the data that were read from it, not
    /// the text.
    pub is_form: bool,
}

/// A line of a tree of forks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relative {
    /// The thread.
    pub id: ThreadId,
    /// Number of sources above it in the tree.
    pub depth: usize,
    /// A description of the place where it left its source.
    pub left: Option<String>,
    /// The address of its page, if there is one.
    pub page: Option<String>,
}

/// How a message was produced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// Why its member was asked.
    pub purpose: Option<Purpose>,
    /// Its usage.
    pub usage: Option<Usage>,
    /// Number of tool calls.
    pub tools: u32,
    /// Seconds from the question to its end.
    pub seconds: Option<f64>,
}

pub(crate) struct Facts<'a> {
    pub(crate) thread: &'a Thread,
    /// Messages in reading order: a repeated answer takes the place of the failed one.
    pub(crate) shown: Vec<&'a Message>,
    /// The turns of messages, by number.
    pub(crate) turns: BTreeMap<u32, Turn>,
    /// Each member's total usage, in the order of their first turns.
    pub(crate) used: Vec<Used>,
    /// The turns and the usage of the last deliberation alone.
    pub(crate) council: (BTreeMap<u32, Turn>, Vec<Used>),
    /// The last deliberation.
    pub(crate) report: Option<Report>,
    /// The same deliberation, recomputed.
    pub(crate) replayed: Option<Replayed>,
    /// The robustness of its decision, if the record leads to it.
    pub(crate) robust: Option<Robustness>,
    /// Members that were not asked because the answers were certain enough, over all passes.
    pub(crate) spared: usize,
    /// Who says what, if the answers were compared.
    pub(crate) map: Option<Map>,
    /// The words that a claim is about, by its place in the map and the member: the message, and the sentence of it.
    pub(crate) said: BTreeMap<(usize, SeatName), Said>,
    /// Prefix of anchors in the page, which may contain several threads.
    pub(crate) prefix: String,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(thread: &'a Thread, at: usize) -> Self {
        let is_fact = |record: &Record| matches!(record.event, Event::Deliberated { .. });
        // A copy of all records of a long thread is large.
        let deliberated = thread.records.iter().any(is_fact);
        let deliberated = deliberated.then(|| deliberation::last(thread.records.clone()));
        let deliberated = deliberated
            .flatten()
            .filter(|records| deliberation::check(records).is_ok());
        let shown = settled(&thread.messages);
        let (turns, used) = turns(&thread.records);
        let report = deliberated
            .as_deref()
            .map(|records| View::of(records).report);
        let verdict = report.as_ref().and_then(|report| report.verdict.as_deref());
        let robust = deliberated
            .as_deref()
            .zip(verdict)
            .and_then(|(records, verdict)| deliberation::robustness(records, verdict));
        let map = report.as_ref().map(Report::map);
        let council = deliberated.as_deref().map(self::turns).unwrap_or_default();
        let mut facts = Self {
            thread,
            shown,
            turns,
            used,
            council,
            spared: deliberated.iter().flatten().map(spared).sum(),
            prefix: prefix(at),
            report,
            robust,
            replayed: deliberated.as_deref().and_then(deliberation::replay),
            map,
            said: BTreeMap::new(),
        };
        facts.said = facts.find_said();
        facts
    }

    /// Finds the words that the claims of the map are about.
    fn find_said(&self) -> BTreeMap<(usize, SeatName), Said> {
        let mut found = BTreeMap::new();
        let Some(map) = self.map.as_ref().filter(|map| map.of == Rows::Claims) else {
            return found;
        };
        for (column, seat) in map.members.iter().enumerate() {
            let seq = self.message_of(seat.as_str());
            let message = self.shown.iter().find(|message| Some(message.seq) == seq);
            let Some(message) = message else { continue };
            let sentences = Sentences::of(&message.shown());
            for (at, claim) in map.claims.iter().enumerate() {
                let stance = claim.stances.get(column).map(|(_, stance)| *stance);
                if matches!(stance, None | Some(Stance::Silent)) {
                    continue;
                }
                if let Some(sentence) = sentences.closest(&claim.claim) {
                    let said = Said {
                        seq: message.seq,
                        sentence,
                        range: sentences.range(sentence),
                        words: sentences.told(sentence),
                    };
                    found.insert((at, seat.clone()), said);
                }
            }
        }
        found
    }

    /// Returns the address of the words that a claim is about.
    pub(crate) fn passage(&self, said: &Said) -> String {
        format!("{}s{}", self.anchor(said.seq), said.sentence + 1)
    }

    /// Returns the passages of a message that claims are about, in order, with their addresses.
    pub(crate) fn passages(&self, seq: u32) -> Vec<(Range<usize>, String)> {
        let here = self.said.values().filter(|said| said.seq == seq);
        let mut all: Vec<_> = here
            .map(|said| (said.range.clone(), self.passage(said)))
            .collect();
        all.sort_by_key(|(range, _)| range.start);
        all.dedup();
        all
    }

    /// Returns the thread's topic: the beginning of the first message.
    pub(crate) fn title(&self) -> String {
        let first = self.shown.first();
        let mut lines = first.into_iter().flat_map(|message| message.body.lines());
        let line = lines.find(|line| !line.trim_matches(['#', ' ']).is_empty());
        match line {
            Some(line) => clean_line(line.trim_start_matches(['#', ' ']), TITLE_CHARS),
            None => self.thread.id.to_string(),
        }
    }

    /// Returns a message's anchor in the page.
    pub(crate) fn anchor(&self, seq: u32) -> String {
        format!("{}m{seq}", self.prefix)
    }

    /// Returns the anchor of the round that begins with a message.
    pub(crate) fn round(&self, first: u32) -> String {
        format!("{}r{first}", self.prefix)
    }

    pub(crate) fn verdict(&self) -> Option<&Verdict> {
        self.report.as_ref()?.verdict.as_deref()
    }

    /// Returns whether its last deliberation has not ended.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.report.as_ref().is_some_and(|r| r.ended.is_none())
    }

    /// Returns whether its last deliberation decided something that can be marked.
    pub(crate) fn has_verdict(&self) -> bool {
        let verdict = self.report.as_ref().and_then(|r| r.verdict.as_ref());
        verdict.is_some_and(|v| v.message.is_some() && v.winner.is_some())
    }

    /// Returns the CSS class of a name's color, and its mark.
    pub(crate) fn color(&self, name: &str) -> (String, &'static str) {
        let members = self.thread.members.iter().map(String::as_str);
        let number = looks::number(name, members);
        (
            format!("c{}", number % looks::COLORS),
            looks::mark(number).0,
        )
    }

    /// Renders a member's name with its mark.
    pub(crate) fn name(&self, name: &str) -> Markup {
        let (color, mark) = self.color(name);
        html! {
            bdi.name.(color) { span.mark aria-hidden="true" { (mark) } (clean_line(name, NAME_CHARS)) }
        }
    }

    /// Returns the number of the message with a member's answer: its last complete message.
    pub(crate) fn message_of(&self, name: &str) -> Option<u32> {
        let mut own = self.shown.iter().rev().filter(|m| m.from == name);
        own.find(|m| m.is_sound()).map(|m| m.seq)
    }
}

/// Returns the number of members that were not asked because the answers were certain enough, as an event reports it.
fn spared(record: &Record) -> usize {
    if let Event::Deliberated { fact } = &record.event
        && let Fact::AskedEnough { spared, .. } = fact.as_ref()
    {
        return spared.len();
    }
    0
}

/// Returns the prefix of the anchors of the thread with this index in the document.
pub(crate) fn prefix(at: usize) -> String {
    match at {
        0 => String::new(),
        at => format!("t{}-", at + 1),
    }
}

/// Removes control characters from text that is inserted as text, not as markup.
pub(crate) fn plain(text: &str) -> String {
    clean_text(text).into_owned()
}

/// The words of a message that a claim is about.
pub(crate) struct Said {
    /// The number of the message.
    pub(crate) seq: u32,
    /// The number of the sentence in the message.
    pub(crate) sentence: usize,
    /// The byte range of the sentence in the Markdown of the message.
    pub(crate) range: Range<usize>,
    /// The words of the sentence.
    pub(crate) words: String,
}

/// A member's total usage.
pub(crate) struct Used {
    pub(crate) name: String,
    /// The reported usage; `None` if there was none.
    pub(crate) usage: Option<Usage>,
    pub(crate) turns: u64,
    /// The number of turns without reported usage.
    pub(crate) uncounted: u64,
}

/// Collects the turns of messages and each member's usage. Records of another run may reuse a turn's number.
#[expect(clippy::too_many_lines, reason = "one match over the events of turns")]
fn turns(records: &[Record]) -> (BTreeMap<u32, Turn>, Vec<Used>) {
    let mut view = View::default();
    let mut turns: BTreeMap<u32, Turn> = BTreeMap::new();
    let mut used: Vec<Used> = Vec::new();
    let mut book = |name: &str, usage: Option<&Usage>| {
        let at = used.iter().position(|one| one.name == name);
        let at = at.unwrap_or_else(|| {
            used.push(Used {
                name: name.to_owned(),
                usage: None,
                turns: 0,
                uncounted: 0,
            });
            used.len() - 1
        });
        used[at].turns += 1;
        match usage {
            Some(usage) => used[at].usage.get_or_insert_default().add(usage),
            None => used[at].uncounted += 1,
        }
    };
    for record in records {
        view.fold_record(record);
        match &record.event {
            Event::TurnFinished {
                turn,
                seat,
                message,
                usage,
                tools,
                ..
            } => {
                book(seat.as_str(), usage.as_ref());
                if let Some(message) = message {
                    let ended = |turn: &&view::Turn| turn.ended == Some(record.ts);
                    let seen = view.turn(*turn).filter(ended);
                    turns.insert(
                        *message,
                        Turn {
                            purpose: seen.map(|turn| turn.purpose),
                            usage: *usage,
                            tools: *tools,
                            seconds: seen
                                .and_then(view::Turn::took)
                                .map(|took| took.as_secs_f64()),
                        },
                    );
                }
            }
            Event::TurnFailed { seat, failure, .. } => {
                book(seat.as_str(), failure.used.as_ref().map(|used| &used.usage));
            }
            // No turn ends with them: the view holds what they tell.
            Event::ThreadOpened { .. }
            | Event::MessageAdded { .. }
            | Event::SayQueued { .. }
            | Event::SayTakenBack { .. }
            | Event::TurnQueued { .. }
            | Event::TurnDelta { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. }
            | Event::SeatMuted { .. }
            | Event::ModeSet { .. }
            | Event::OpRefused { .. }
            | Event::SaveFailed { .. }
            | Event::FloorYielded { .. }
            | Event::PhaseBegan { .. }
            | Event::CouncilSaid { .. }
            | Event::DuetEnded { .. }
            | Event::Deliberated { .. }
            | Event::Promised { .. }
            | Event::Reviewed { .. }
            | Event::HeldBack { .. }
            | Event::Noticed { .. } => {}
        }
    }
    (turns, used)
}
