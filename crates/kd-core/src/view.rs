//! The view of a thread for front ends, folded from events: the same for the terminal, the web page and a replayed log.
//!
//! Input: the messages of a thread, then its [`Record`]s or [`Event`]s. Output: panels in display order. A turn keeps
//! its position: its panel becomes the panel of its message. A piece of an answer costs a lookup and an append; a
//! panel's `revision` tells a front end whether its rendering is up to date.

use crate::event::{Event, Outcome, Purpose, Record};
use crate::failure::{Failure, FailureKind};
use crate::ids::{SeatName, ThreadId, TurnId};
use crate::message::{Address, Message, REPLACES, settled};
use crate::request::{Delta, Finish};
use crate::usage::Usage;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The state of a thread for display.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// The thread, once a record names it.
    pub thread: Option<ThreadId>,
    /// Members in order.
    pub members: Vec<SeatName>,
    /// Muted members.
    pub muted: BTreeSet<SeatName>,
    /// The mode that decides who speaks next, in a conversation.
    pub mode: Option<String>,
    /// Maximum turns after the answers; `None` leaves it to the mode.
    pub auto_messages: Option<u32>,
    /// The panels, in order.
    pub panels: Vec<Panel>,
    /// Waiting messages of the user, oldest first.
    pub waiting: VecDeque<(String, Address)>,
    /// The progress of a round in which members speak one by one.
    pub course: Option<Course>,
    /// How the last round ended; `None` before the first end and during a round.
    pub outcome: Option<Outcome>,
    /// Usage of all turns since the view was opened.
    pub usage: Usage,
    /// The same, by member.
    pub usage_by_seat: BTreeMap<SeatName, Usage>,
    /// The number of the last record.
    pub seq: u64,
    /// Panels of turns that have not ended, or whose end follows their message.
    turns: BTreeMap<TurnId, usize>,
    /// Panels of answers streamed by other processes.
    streams: BTreeMap<SeatName, usize>,
    now: Option<Timestamp>,
    revision: u64,
}

/// The progress of a round in which members speak one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// The number of the current turn, from 1.
    pub number: u32,
    /// The number of turns, if no mention, mute or pass changes it.
    pub of: u32,
    /// The members that follow, in order.
    pub next: Vec<SeatName>,
}

/// A displayed item.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Increases with every change of this panel; unique among the states of a view.
    pub revision: u64,
    /// Its content.
    pub content: Content,
}

/// The content of a panel.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A message that is on disk.
    Message {
        /// The message.
        message: Box<Message>,
        /// Why its turn failed, if it failed during this session.
        failure: Option<Failure>,
        /// The usage of its turn.
        usage: Option<Usage>,
        /// Its trace, if it arrived during this session.
        trace: Option<Box<Trace>>,
    },
    /// An arriving answer.
    Turn(Box<Growing>),
    /// A turn that failed and whose message could not be written.
    Lost {
        /// The member.
        seat: SeatName,
        /// The partial answer.
        text: String,
        /// The reason.
        failure: Failure,
    },
    /// One line for the user.
    Notice(String),
    /// The reason for a refused operation.
    Refusal(String),
}

/// An arriving answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Growing {
    /// Its turn; `None` if another process asked.
    pub turn: Option<TurnId>,
    /// The member.
    pub seat: SeatName,
    /// Its purpose.
    pub purpose: Purpose,
    /// The number of the failed message it replaces, on a retry.
    pub replaces: Option<u32>,
    /// Its state.
    pub state: State,
    /// The answer so far.
    pub text: String,
    /// The thinking so far; only the end if very long.
    pub thinking: String,
    /// Number of tool uses.
    pub tools: u32,
    /// The model's own name, once reported.
    pub model: Option<String>,
    /// The times of the first and the last change, if records give them.
    pub span: Option<(Timestamp, Timestamp)>,
}

/// Details of an answer besides its message.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The thinking; only the end if very long.
    pub thinking: String,
    /// Number of tool uses.
    pub tools: u32,
    /// From the request to the last piece, if records give the times.
    pub span: Option<(Timestamp, Timestamp)>,
}

/// The state of an open turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum State {
    /// No response yet.
    #[default]
    Waiting,
    /// The backend accepted the request.
    Started,
    /// Thinking.
    Thinking,
    /// Using a tool.
    Tool {
        /// The tool.
        name: String,
        /// What it is used on.
        detail: String,
    },
    /// Text is arriving.
    Answering,
    /// The attempt failed and another follows.
    Retrying {
        /// The number of the attempt that failed.
        attempt: u32,
        /// The reason.
        failure: Failure,
    },
    /// The answer is complete and is being written.
    Whole(Finish),
}

/// Maximum bytes of thinking kept per turn; up to twice that between two cuts.
const THINKING_BYTES_MAX: usize = 256 << 10;

impl View {
    /// Creates a view of a thread with these messages.
    pub fn open(history: impl IntoIterator<Item = Message>) -> Self {
        let mut view = Self::default();
        let history: Vec<Message> = history.into_iter().collect();
        if history.iter().any(|m| m.extra.contains_key(REPLACES)) {
            for message in settled(&history) {
                view.push_message(message.clone());
            }
        } else {
            for message in history {
                view.push_message(message);
            }
        }
        view
    }

    /// Folds in a record. Returns `false` if earlier records are missing: the view should then be reopened.
    pub fn fold_record(&mut self, record: &Record) -> bool {
        let next = self.seq == 0 || record.seq == self.seq + 1;
        self.seq = record.seq;
        self.now = Some(record.ts);
        if self.thread.as_ref() != Some(&record.thread) {
            self.thread = Some(record.thread.clone());
        }
        self.fold(&record.event);
        next
    }

    /// Folds in an event.
    pub fn fold(&mut self, event: &Event) {
        match event {
            Event::ThreadOpened { members, .. } => self.members.clone_from(members),
            Event::MessageAdded {
                message,
                turn,
                found,
            } => {
                if !found {
                    self.said(message);
                }
                self.message_added(message, *turn);
            }
            Event::SayQueued { body, to } => {
                self.waiting.push_back((body.clone(), to.clone()));
                self.turns_end();
            }
            Event::SayTakenBack { .. } => {
                self.waiting.pop_back();
            }
            Event::TurnQueued {
                turn,
                seat,
                purpose,
                replaces,
                ahead,
            } => {
                self.outcome = None;
                if *purpose == Purpose::Answer && replaces.is_none() {
                    self.goes_on(ahead);
                }
                let growing = Growing {
                    replaces: *replaces,
                    ..self.growing(Some(*turn), seat, *purpose)
                };
                let content = Content::Turn(Box::new(growing));
                let at = match replaces.and_then(|seq| self.failed_at(seq, seat)) {
                    Some(at) => {
                        self.put(at, content);
                        at
                    }
                    None => self.push(content),
                };
                self.turns.insert(*turn, at);
            }
            Event::TurnDelta { turn, delta } => {
                if let Some(at) = self.turns.get(turn).copied() {
                    self.grow(at, delta);
                }
            }
            Event::StreamFound { seat, delta } => {
                let at = match self.streams.get(seat) {
                    Some(at) => *at,
                    None => {
                        let growing = self.growing(None, seat, Purpose::Answer);
                        let at = self.push(Content::Turn(Box::new(growing)));
                        self.streams.insert(seat.clone(), at);
                        at
                    }
                };
                self.grow(at, delta);
            }
            Event::StreamLost { seat } => {
                if let Some(at) = self.streams.remove(seat) {
                    self.lost(at);
                }
            }
            Event::ModeSet {
                mode,
                auto_messages,
            } => {
                self.mode = Some(mode.clone());
                self.auto_messages = *auto_messages;
            }
            Event::TurnFinished {
                turn, seat, usage, ..
            } => {
                self.spend(seat, usage.as_ref());
                self.end(*turn, None, *usage);
            }
            Event::TurnFailed {
                turn,
                seat,
                failure,
                ..
            } => {
                self.spend(seat, failure.used.as_deref().map(|used| &used.usage));
                self.end(*turn, Some(failure), None);
            }
            Event::SeatMuted { seat, muted: true } => {
                self.muted.insert(seat.clone());
                self.comes_no_more(|next| next == seat);
            }
            Event::SeatMuted { seat, muted: false } => {
                self.muted.remove(seat);
            }
            Event::OpRefused { why } => {
                self.push(Content::Refusal(why.clone()));
            }
            // The failed turn that follows reports it; only a message of the user has none.
            Event::SaveFailed { turn: Some(_), .. } => {}
            Event::SaveFailed { turn: None, why } => {
                self.push(Content::Refusal(format!(
                    "your message could not be written: {why}"
                )));
            }
            Event::FloorYielded { outcome, .. } => {
                self.outcome = Some(*outcome);
                self.course = None;
            }
            // The visible part has its own fold: `deliberation::report`.
            Event::Deliberated { .. } | Event::Reviewed { .. } => {}
            Event::Noticed { text } => {
                self.push(Content::Notice(text.clone()));
            }
            // Settings alone are reported before a thread is opened.
            Event::HeldBack { members, .. } if members.is_empty() => {}
            Event::HeldBack { members, .. } => {
                let names = members.join(", ");
                let next = "`kd trust` allows a member, `kd chat ID` seats those of a thread";
                self.push(Content::Notice(format!("held back: {names}; {next}")));
            }
            // Shows that they wrote, not the text, which is available on request.
            Event::CouncilSaid {
                from, to, chars, ..
            } => {
                let text = format!("{from} wrote {chars} characters to {to}");
                self.push(Content::Notice(text));
            }
            Event::PhaseBegan { .. } | Event::DuetEnded { .. } => {}
        }
    }

    /// Returns the panels after the user's last message.
    pub fn round(&self) -> &[Panel] {
        let king = |panel: &Panel| matches!(&panel.content, Content::Message { message, .. } if message.is_king());
        let from = self.panels.iter().rposition(king).map_or(0, |at| at + 1);
        self.panels.get(from..).unwrap_or_default()
    }

    /// Returns the arriving answers, in panel order.
    pub fn growing_turns(&self) -> impl Iterator<Item = &Growing> {
        self.panels.iter().filter_map(|panel| match &panel.content {
            Content::Turn(growing) => Some(&**growing),
            _ => None,
        })
    }

    /// Returns whether an answer is arriving, from any process.
    pub fn is_growing(&self) -> bool {
        !self.turns.is_empty() || !self.streams.is_empty()
    }

    /// Returns whether a member asked by this process is speaking.
    pub fn is_busy(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Records that a turn begins and which members follow. Turns that begin together do not count.
    fn goes_on(&mut self, ahead: &[SeatName]) {
        let number = match &self.course {
            _ if !self.turns.is_empty() => 0,
            Some(course) => course.number + 1,
            None => 1,
        };
        let of = number.saturating_add(u32::try_from(ahead.len()).unwrap_or(u32::MAX));
        self.course = (number > 0 && of > 1).then(|| Course {
            number,
            of,
            next: ahead.to_vec(),
        });
    }

    /// Removes the members that have already spoken from the course, because the user spoke again.
    fn turns_end(&mut self) {
        let heard = |panel: &Panel| match &panel.content {
            Content::Message { message, .. } => Some(message.from.clone()),
            Content::Turn(growing) => Some(growing.seat.to_string()),
            Content::Lost { seat, .. } => Some(seat.to_string()),
            Content::Notice(_) | Content::Refusal(_) => None,
        };
        let heard: BTreeSet<String> = self.round().iter().filter_map(heard).collect();
        self.comes_no_more(|next| heard.contains(next.as_str()));
    }

    /// Removes turns that will not run.
    fn comes_no_more(&mut self, who: impl Fn(&SeatName) -> bool) {
        if let Some(course) = &mut self.course {
            let before = course.next.len();
            course.next.retain(|next| !who(next));
            let gone = u32::try_from(before - course.next.len()).unwrap_or(u32::MAX);
            course.of = course.of.saturating_sub(gone);
        }
    }

    fn growing(&self, turn: Option<TurnId>, seat: &SeatName, purpose: Purpose) -> Growing {
        Growing {
            turn,
            seat: seat.clone(),
            purpose,
            replaces: None,
            state: State::Waiting,
            text: String::new(),
            thinking: String::new(),
            tools: 0,
            model: None,
            span: self.now.map(|now| (now, now)),
        }
    }

    fn push(&mut self, content: Content) -> usize {
        self.revision += 1;
        self.panels.push(Panel {
            revision: self.revision,
            content,
        });
        self.panels.len() - 1
    }

    fn put(&mut self, at: usize, content: Content) {
        self.revision += 1;
        if let Some(panel) = self.panels.get_mut(at) {
            panel.revision = self.revision;
            panel.content = content;
        }
    }

    fn push_message(&mut self, message: Message) -> usize {
        self.push(show(message))
    }

    /// Returns the panel of a failed message, or of a failed answer that replaced it.
    fn failed_at(&self, seq: u32, seat: &SeatName) -> Option<usize> {
        self.panels.iter().rposition(|panel| match &panel.content {
            Content::Message { message, .. } => {
                message.from == seat.as_str()
                    && !message.is_sound()
                    && message.replaces().unwrap_or(message.seq) == seq
            }
            _ => false,
        })
    }

    /// Handles the end of another process's stream without a message.
    fn lost(&mut self, at: usize) {
        let Some(Content::Turn(growing)) = self.panels.get_mut(at).map(|p| &mut p.content) else {
            return;
        };
        let lost = Content::Lost {
            seat: growing.seat.clone(),
            text: std::mem::take(&mut growing.text),
            failure: Failure::new(
                FailureKind::Crashed,
                "the other program stopped before the answer was whole",
            )
            .advise("ask the member again, with @ and its name"),
        };
        self.put(at, lost);
    }

    /// Removes a waiting message once it is sent. Another process may send the same text meanwhile.
    fn said(&mut self, message: &Message) {
        if message.is_king()
            && self
                .waiting
                .front()
                .is_some_and(|(body, _)| message.body == *body)
        {
            self.waiting.pop_front();
        }
    }

    fn message_added(&mut self, message: &Message, turn: Option<TurnId>) {
        let place = match turn {
            // The end of the turn follows and needs the position.
            Some(turn) => self.turns.get(&turn).copied(),
            None => {
                let seat = self
                    .streams
                    .keys()
                    .find(|s| s.as_str() == message.from)
                    .cloned();
                seat.and_then(|s| self.streams.remove(&s))
            }
        };
        let place = place.or_else(|| {
            let seq = message.replaces()?;
            self.failed_at(seq, &SeatName::sender(message.from.clone()).ok()?)
        });
        match place {
            Some(at) => {
                let mut content = show(message.clone());
                if let (Content::Message { trace, .. }, Some(was)) =
                    (&mut content, self.panels.get_mut(at))
                {
                    *trace = take_trace(&mut was.content);
                }
                self.put(at, content);
            }
            None => {
                self.push_message(message.clone());
            }
        }
    }

    fn grow(&mut self, at: usize, delta: &Delta) {
        self.revision += 1;
        let Some(panel) = self.panels.get_mut(at) else {
            return;
        };
        let Content::Turn(growing) = &mut panel.content else {
            return;
        };
        panel.revision = self.revision;
        if let (Some(span), Some(now)) = (&mut growing.span, self.now) {
            span.1 = now;
        }
        growing.hear(delta);
    }

    /// Adds the usage of a turn.
    fn spend(&mut self, seat: &SeatName, used: Option<&Usage>) {
        if let Some(used) = used {
            self.usage.add(used);
            let by_seat = self.usage_by_seat.entry(seat.clone());
            by_seat.or_default().add(used);
        }
    }

    /// Ends a turn: its panel, a message by now, gets the result.
    fn end(&mut self, turn: TurnId, failed: Option<&Failure>, used: Option<Usage>) {
        let Some(at) = self.turns.remove(&turn) else {
            return;
        };
        let Some(panel) = self.panels.get_mut(at) else {
            return;
        };
        self.revision += 1;
        panel.revision = self.revision;
        match &mut panel.content {
            Content::Message { failure, usage, .. } => {
                *failure = failed.cloned();
                *usage = used;
            }
            Content::Turn(growing) => match failed {
                Some(failure) => {
                    panel.content = Content::Lost {
                        seat: growing.seat.clone(),
                        text: std::mem::take(&mut growing.text),
                        failure: failure.clone(),
                    };
                }
                // Its message was seen on disk first and already has a panel.
                None => self.remove(at),
            },
            _ => {}
        }
    }

    fn remove(&mut self, at: usize) {
        self.panels.remove(at);
        for place in self.turns.values_mut().chain(self.streams.values_mut()) {
            if *place > at {
                *place -= 1;
            }
        }
    }
}

impl Growing {
    fn hear(&mut self, delta: &Delta) {
        match delta {
            Delta::Started { model, .. } => {
                self.model.clone_from(model);
                self.state = State::Started;
            }
            Delta::Text { text } => {
                self.text.push_str(text);
                self.state = State::Answering;
            }
            Delta::Thinking { text } => {
                self.thinking.push_str(text);
                if self.thinking.len() > 2 * THINKING_BYTES_MAX {
                    let cut = self.thinking.len() - THINKING_BYTES_MAX;
                    let cut = self.thinking.ceil_char_boundary(cut);
                    self.thinking.drain(..cut);
                }
                self.state = State::Thinking;
            }
            Delta::Tool { name, detail } => {
                self.tools = self.tools.saturating_add(1);
                self.state = State::Tool {
                    name: name.clone(),
                    detail: detail.clone(),
                };
            }
            Delta::Retrying {
                attempt, failure, ..
            } => {
                self.text.clear();
                self.thinking.clear();
                self.state = State::Retrying {
                    attempt: *attempt,
                    failure: failure.clone(),
                };
            }
            Delta::Notice { .. } | Delta::Call { .. } => {}
            Delta::Finished { finish, text, .. } => {
                if let Some(text) = text {
                    self.text.clone_from(text);
                }
                self.state = State::Whole(*finish);
            }
        }
    }
}

/// Takes the trace of an arriving answer for its message.
fn take_trace(content: &mut Content) -> Option<Box<Trace>> {
    let Content::Turn(growing) = content else {
        return None;
    };
    Some(Box::new(Trace {
        thinking: std::mem::take(&mut growing.thinking),
        tools: growing.tools,
        span: growing.span,
    }))
}

/// Returns the panel of a message. Old and foreign files may contain anything.
fn show(mut message: Message) -> Content {
    message.clean();
    Content::Message {
        message: Box::new(message),
        failure: None,
        usage: None,
        trace: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Provenance, Status};

    fn seat(name: &str) -> SeatName {
        SeatName::new(name).unwrap()
    }

    fn message(seq: u32, from: &str, body: &str) -> Message {
        Message {
            seq,
            from: from.into(),
            to: Address::All,
            at: Timestamp::UNIX_EPOCH,
            status: Some(Status::Complete),
            refs: vec![],
            provenance: Provenance::default(),
            extra: Default::default(),
            body: body.into(),
        }
    }

    fn queued(turn: u32, name: &str) -> Event {
        Event::TurnQueued {
            turn: TurnId::new(turn),
            seat: seat(name),
            purpose: Purpose::Answer,
            replaces: None,
            ahead: Vec::new(),
        }
    }

    fn text(turn: u32, text: &str) -> Event {
        Event::TurnDelta {
            turn: TurnId::new(turn),
            delta: Delta::Text { text: text.into() },
        }
    }

    fn bodies(view: &View) -> Vec<String> {
        let shown = view.panels.iter().map(|p| match &p.content {
            Content::Message {
                message, failure, ..
            } => {
                let mark = if failure.is_some() { "!" } else { "" };
                format!("{}: {}{mark}", message.from, message.body)
            }
            Content::Turn(g) => format!("{} … {}", g.seat, g.text),
            Content::Lost { seat, text, .. } => format!("{seat} lost {text}"),
            Content::Notice(text) | Content::Refusal(text) => text.clone(),
        });
        shown.collect()
    }

    #[test]
    fn a_turn_keeps_its_place_when_it_becomes_a_message() {
        let mut view = View::open([message(1, "king", "Why\u{1b}[2J?")]);
        for event in [
            queued(1, "claude"),
            queued(2, "codex"),
            queued(3, "cursor"),
            text(2, "So"),
            text(1, "Be"),
            text(2, "."),
        ] {
            view.fold(&event);
        }
        assert_eq!(
            bodies(&view),
            ["king: Why?", "claude … Be", "codex … So.", "cursor … "]
        );
        let before: Vec<u64> = view.panels.iter().map(|p| p.revision).collect();
        view.fold(&Event::MessageAdded {
            message: message(2, "codex", "So."),
            turn: Some(TurnId::new(2)),
            found: false,
        });
        let usage = Usage {
            output_tokens: 3,
            ..Usage::default()
        };
        view.fold(&Event::TurnFinished {
            turn: TurnId::new(2),
            seat: seat("codex"),
            message: Some(2),
            usage: Some(usage),
            tools: 0,
            thought: 0,
        });
        let failure = Failure::new(FailureKind::Crashed, "disk full");
        view.fold(&Event::TurnFailed {
            turn: TurnId::new(3),
            seat: seat("cursor"),
            failure: failure.clone(),
            message: None,
        });
        assert_eq!(
            bodies(&view),
            ["king: Why?", "claude … Be", "codex: So.", "cursor lost "]
        );
        let after: Vec<u64> = view.panels.iter().map(|p| p.revision).collect();
        assert_eq!(before[..2], after[..2], "untouched panels need no drawing");
        assert!(before[2] < after[2] && view.is_busy());
        assert_eq!(
            (view.usage, view.usage_by_seat[&seat("codex")]),
            (usage, usage)
        );
        view.fold(&Event::MessageAdded {
            message: message(3, "claude", "Be"),
            turn: Some(TurnId::new(1)),
            found: false,
        });
        view.fold(&Event::TurnFailed {
            turn: TurnId::new(1),
            seat: seat("claude"),
            failure,
            message: Some(3),
        });
        assert_eq!(bodies(&view)[1], "claude: Be!");
        assert!(!view.is_busy());
    }

    #[test]
    fn another_process_shows_as_a_growing_panel_until_its_message_lands() {
        let mut view = View::default();
        view.fold(&Event::StreamFound {
            seat: seat("gemini"),
            delta: Delta::Text { text: "Far".into() },
        });
        assert_eq!(bodies(&view), ["gemini … Far"]);
        assert!(!view.is_busy(), "nothing of ours to stop");
        view.fold(&Event::MessageAdded {
            message: message(4, "gemini", "Far away."),
            turn: None,
            found: false,
        });
        assert_eq!(bodies(&view), ["gemini: Far away."]);
    }

    #[test]
    fn a_message_that_was_found_before_its_turn_ended_shows_once() {
        let mut view = View::default();
        view.fold(&queued(1, "claude"));
        view.fold(&queued(2, "codex"));
        view.fold(&Event::MessageAdded {
            message: message(2, "claude", "x"),
            turn: None,
            found: false,
        });
        view.fold(&Event::TurnFinished {
            turn: TurnId::new(1),
            seat: seat("claude"),
            message: Some(2),
            usage: None,
            tools: 0,
            thought: 0,
        });
        view.fold(&text(2, "y"));
        assert_eq!(bodies(&view), ["codex … y", "claude: x"]);
    }

    #[test]
    fn waiting_words_leave_when_they_are_said_and_gaps_are_noticed() {
        let mut view = View::default();
        let record = |seq, event| Record {
            v: crate::event::FORMAT,
            seq,
            ts: Timestamp::UNIX_EPOCH,
            thread: ThreadId("council-0001".into()),
            event,
        };
        let wait = Event::SayQueued {
            body: "next".into(),
            to: Address::All,
        };
        assert!(view.fold_record(&record(1, wait)));
        assert_eq!(view.waiting.len(), 1);
        let said = |seq, found| Event::MessageAdded {
            message: message(seq, "king", "next"),
            turn: None,
            found,
        };
        assert!(view.fold_record(&record(2, said(6, true))));
        assert_eq!(view.waiting.len(), 1, "another window said the same");
        assert!(view.fold_record(&record(3, said(7, false))));
        assert!(view.waiting.is_empty());
        assert!(!view.fold_record(&record(5, queued(1, "claude"))));
    }

    #[test]
    fn endless_thinking_does_not_fill_the_memory() {
        let mut view = View::default();
        view.fold(&queued(1, "claude"));
        let piece = "é".repeat(10_000);
        for _ in 0..100 {
            view.fold(&Event::TurnDelta {
                turn: TurnId::new(1),
                delta: Delta::Thinking {
                    text: piece.clone(),
                },
            });
        }
        let growing = view.growing_turns().next().unwrap();
        assert!((THINKING_BYTES_MAX..=2 * THINKING_BYTES_MAX).contains(&growing.thinking.len()));
    }
}
