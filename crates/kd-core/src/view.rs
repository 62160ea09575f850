//! The view of a thread for front ends, folded from events: the same for the terminal, the servers and a replayed log.
//! It is the only fold: a front end that fell behind takes the current view and misses nothing.
//!
//! Input: the messages of a thread, then its [`Record`]s or [`Event`]s. Output: the turns of the current round with
//! their times and usage, the private messages and the end of a debate, the report of a deliberation or a review, and
//! panels in display order. A turn keeps its position: its panel becomes the panel of its message. A piece of an answer
//! costs a lookup and an append; a panel's `revision` lets a front end check whether its rendering is up to date.

#![deny(clippy::wildcard_enum_match_arm)]

mod recall;
mod turn;

pub use turn::{State, Turn};

use crate::deliberation::report::Report;
use crate::event::{DuetEnd, Event, Outcome, Purpose, Record};
use crate::failure::{Failure, FailureKind};
use crate::ids::{SeatName, ThreadId, TurnId};
use crate::looks;
use crate::message::{Address, CHOSEN, Message, REPLACES, settled};
use crate::op::Op;
use crate::output;
use crate::request::Delta;
use crate::review;
use crate::usage::Usage;
use jiff::Timestamp;
use serde_json::Value;
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
    /// The user's last message of this session, which began the round.
    pub question: Option<Message>,
    /// The turns of the round, in the order they were queued.
    pub turns: Vec<Turn>,
    /// Answers streamed by other processes, by member.
    pub streams: BTreeMap<SeatName, Turn>,
    /// The private messages between the members of a debate, in order.
    pub whispers: Vec<Whisper>,
    /// The end of the debate's exchange of messages.
    pub debate: Option<Debate>,
    /// The state of the last deliberation.
    pub report: Report,
    /// The report of the last review.
    pub review: Option<Box<review::Report>>,
    /// The settings of the project folder that are held back.
    pub held_back: Vec<String>,
    /// Notices for the user, in order.
    pub notices: Vec<String>,
    /// The panels, in order.
    pub panels: Vec<Panel>,
    /// Waiting messages of the user, oldest first.
    pub waiting: VecDeque<(String, Address)>,
    /// The progress of a round in which members speak one by one.
    pub course: Option<Course>,
    /// The outcome of the last round; `None` before the first round ends and during a round.
    pub outcome: Option<Outcome>,
    /// The reason why an answer of the last round could not be written to disk.
    pub unsaved: Option<String>,
    /// The usage of the last round, once it has ended.
    pub round_usage: Usage,
    /// Usage of all turns since the view was opened.
    pub usage: Usage,
    /// Usage of all turns since the view was opened, by member.
    pub usage_by_seat: BTreeMap<SeatName, Usage>,
    /// The number of the last record.
    pub seq: u64,
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

/// A private message between the members of a debate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whisper {
    /// The author.
    pub from: SeatName,
    /// The recipient.
    pub to: SeatName,
    /// The text; empty if the record omits it.
    pub text: String,
}

/// The end of the exchange of a debate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debate {
    /// The reason.
    pub why: DuetEnd,
    /// Number of messages exchanged.
    pub exchanged: u32,
    /// The number of the answer's message; `None` if there is no answer.
    pub answer: Option<u32>,
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
        /// The reason why its turn failed, if it failed during this session.
        failure: Option<Failure>,
        /// The usage of its turn.
        usage: Option<Usage>,
        /// The usage of the failed turns that it replaces; `None` if there are none, or it is unknown.
        earlier: Option<Usage>,
        /// Its trace, if it arrived during this session.
        trace: Option<Box<Trace>>,
    },
    /// An arriving answer: a turn of this view.
    Turn(TurnId),
    /// An answer that another process streams.
    Stream(SeatName),
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

impl Content {
    /// Returns the usage of all turns that it shows the result of: the last one, and the failed ones that it replaces.
    pub fn spent(&self) -> Option<Usage> {
        match self {
            Content::Message { usage, earlier, .. } => sum(*earlier, *usage),
            Content::Lost { failure, .. } => used(failure),
            Content::Turn(_) | Content::Stream(_) | Content::Notice(_) | Content::Refusal(_) => {
                None
            }
        }
    }

    /// Returns the message that it shows, if any.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Content::Message { message, .. } => Some(message),
            Content::Turn(_)
            | Content::Stream(_)
            | Content::Lost { .. }
            | Content::Notice(_)
            | Content::Refusal(_) => None,
        }
    }
}

/// Details of an answer besides its message.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The thinking; only the end if very long. Empty if only its length is known.
    pub thinking: String,
    /// Characters of thinking.
    pub thought: usize,
    /// Number of tool uses.
    pub tools: u32,
    /// The times of the request and of the last piece, if the records have them.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Whether the user asked something else between the request and the answer, as another window may do.
    pub late: bool,
}

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

    /// Folds the records of a thread.
    pub fn of(records: &[Record]) -> Self {
        let mut view = Self::default();
        for record in records {
            view.fold_record(record);
        }
        view
    }

    /// Folds in a record. Returns `false` if earlier records are missing: the view should then be reopened.
    pub fn fold_record(&mut self, record: &Record) -> bool {
        let next = self.seq == 0 || self.seq.checked_add(1) == Some(record.seq);
        self.seq = record.seq;
        self.now = Some(record.ts);
        // A view that was opened with a thread has no report of it yet.
        for thread in [&mut self.thread, &mut self.report.thread] {
            if thread.as_ref() != Some(&record.thread) {
                *thread = Some(record.thread.clone());
            }
        }
        self.fold(&record.event);
        next
    }

    /// Folds in an event.
    pub fn fold(&mut self, event: &Event) {
        self.report.fold(event);
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
                if !found && message.is_king() {
                    self.question = Some(message.clone());
                    self.begin_round();
                }
                self.message_added(message, *turn);
            }
            Event::SayQueued { body, to } => {
                self.waiting.push_back((body.clone(), to.clone()));
                self.turns_end();
            }
            Event::SayTakenBack { body, .. } => {
                // A message that could not be written may not have waited.
                self.waiting.pop_back_if(|(waits, _)| waits == body);
            }
            Event::TurnQueued {
                turn,
                seat,
                purpose,
                replaces,
                ahead,
            } => {
                if self.outcome.take().is_some() {
                    self.begin_round();
                }
                if *purpose == Purpose::Answer && replaces.is_none() {
                    self.goes_on(ahead);
                }
                let content = Content::Turn(*turn);
                let mut earlier = None;
                let at = match replaces.and_then(|seq| self.failed_at(seq, seat)) {
                    Some(at) => {
                        earlier = self.spent_at(at);
                        self.put(at, content);
                        at
                    }
                    None => self.push(content),
                };
                self.turns.push(Turn {
                    replaces: *replaces,
                    earlier,
                    panel: Some(at),
                    ..Turn::queued(Some(*turn), seat.clone(), *purpose, self.now)
                });
            }
            Event::TurnDelta { turn, delta } => {
                let now = self.now;
                if let Some(turn) = self.open_mut(*turn) {
                    turn.hear(delta, now);
                    let at = turn.panel;
                    self.touch(at);
                }
            }
            Event::StreamFound { seat, delta } => self.stream(seat, delta),
            Event::StreamLost { seat } => {
                if let Some(stream) = self.streams.remove(seat) {
                    self.lost(stream);
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
                turn,
                seat,
                usage,
                tools,
                thought,
                ..
            } => {
                self.spend(seat, usage.as_ref());
                if let Some(open) = self.open_mut(*turn) {
                    open.usage = usage.or(open.usage);
                    // A log holds the counts without the pieces.
                    open.tools = open.tools.max(*tools);
                    open.thinking_chars = open.thinking_chars.max(*thought as usize);
                }
                self.end(*turn, None, *usage);
            }
            Event::TurnFailed {
                turn,
                seat,
                failure,
                ..
            } => {
                let usage = used(failure);
                self.spend(seat, usage.as_ref());
                self.end(*turn, Some(failure), usage);
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
            Event::SaveFailed { turn: Some(_), why } => self.unsaved = Some(why.clone()),
            Event::SaveFailed { turn: None, why } => {
                self.push(Content::Refusal(format!(
                    "your message could not be written: {why}"
                )));
            }
            Event::FloorYielded { outcome, usage } => {
                self.outcome = Some(*outcome);
                self.round_usage = *usage;
                let formats = self.turns.iter().filter(|t| t.purpose == Purpose::Format);
                for turn in formats {
                    match turn.usage.or_else(|| turn.failure().and_then(used)) {
                        Some(usage) => self.round_usage.add(&usage),
                        None => self.round_usage = self.round_usage.with_uncounted(true),
                    }
                }
                self.course = None;
            }
            // Folded into `report` above.
            Event::Deliberated { .. } => {}
            // Folded into `report` above, if it can be true.
            Event::Promised { message, promise } => {
                if self.report.can_be_true(*message, promise) {
                    self.push(Content::Notice(promise.words()));
                }
            }
            Event::Reviewed { report } => self.review = Some(report.clone()),
            Event::Noticed { text } => {
                self.notices.push(text.clone());
                self.push(Content::Notice(text.clone()));
            }
            Event::HeldBack { settings, members } => {
                self.held_back.clone_from(settings);
                // Settings alone are reported before a thread is opened.
                if !members.is_empty() {
                    let names = members.join(", ");
                    let next = "`kd trust` allows a member, `kd chat ID` uses those of a thread";
                    self.push(Content::Notice(format!("held back: {names}; {next}")));
                }
            }
            // The panel shows that they wrote, not the text, which is available on request.
            Event::CouncilSaid {
                from,
                to,
                chars,
                text,
                ..
            } => {
                self.whispers.push(Whisper {
                    from: from.clone(),
                    to: to.clone(),
                    text: text.clone().unwrap_or_default(),
                });
                let text = format!("{from} wrote {chars} characters to {to}");
                self.push(Content::Notice(text));
            }
            Event::PhaseBegan { turn, phase, .. } => {
                if let Some(turn) = self.open_mut(*turn) {
                    turn.phase = Some(*phase);
                }
            }
            Event::DuetEnded {
                why,
                exchanged,
                answer,
            } => {
                self.debate = Some(Debate {
                    why: *why,
                    exchanged: *exchanged,
                    answer: *answer,
                });
            }
        }
    }

    /// Returns the panels after the user's last message.
    pub fn round(&self) -> &[Panel] {
        let king = |panel: &Panel| matches!(&panel.content, Content::Message { message, .. } if message.is_king());
        let from = self.panels.iter().rposition(king).map_or(0, |at| at + 1);
        self.panels.get(from..).unwrap_or_default()
    }

    /// Returns a turn of the round by number.
    pub fn turn(&self, id: TurnId) -> Option<&Turn> {
        // Sessions of one log reuse numbers: the newest is meant.
        self.turns.iter().rfind(|turn| turn.id == Some(id))
    }

    /// Returns the turn that a panel shows; `None` if its content is something else.
    pub fn growing(&self, content: &Content) -> Option<&Turn> {
        match content {
            Content::Turn(id) => self.turn(*id),
            Content::Stream(seat) => self.streams.get(seat),
            Content::Message { .. }
            | Content::Lost { .. }
            | Content::Notice(_)
            | Content::Refusal(_) => None,
        }
    }

    /// Returns the arriving answers, in panel order.
    pub fn growing_turns(&self) -> impl Iterator<Item = &Turn> {
        self.panels
            .iter()
            .filter_map(|panel| self.growing(&panel.content))
    }

    /// Returns the turn whose message is the answer of a debate.
    pub fn answer(&self) -> Option<&Turn> {
        let answer = self.debate?.answer?;
        let is_it = |turn: &&Turn| turn.message.as_ref().is_some_and(|m| m.seq == answer);
        self.turns.iter().find(is_it)
    }

    /// Returns the answer of the round in the JSON schema that was asked for, or why there is none; `None` if nothing was
    /// asked for, or nobody answered.
    pub fn output(&self) -> Option<Result<Value, &Failure>> {
        let mut formats = self.turns.iter().filter(|t| t.purpose == Purpose::Format);
        let last = formats.next_back()?;
        match last.failure() {
            Some(failure) => Some(Err(failure)),
            None => output::value_of(last.message.as_deref()?).map(Ok),
        }
    }

    /// Returns the outcome and the usage of the round; `None` during a round.
    pub fn yielded(&self) -> Option<(Outcome, Usage)> {
        self.outcome.map(|outcome| (outcome, self.round_usage))
    }

    /// Returns the time of the last record.
    pub fn now(&self) -> Option<Timestamp> {
        self.now
    }

    /// Replaces the text of the newest notice that says this; returns whether there is one.
    pub fn replace_notice(&mut self, old: &str, new: &str) -> bool {
        let is_old = |panel: &Panel| matches!(&panel.content, Content::Notice(text) if text == old);
        let Some(at) = self.panels.iter().rposition(is_old) else {
            return false;
        };
        if let Some(notice) = self.notices.iter_mut().rfind(|notice| *notice == old) {
            new.clone_into(notice);
        }
        self.put(at, Content::Notice(new.to_owned()));
        true
    }

    /// Returns the number of a speaker's mark and color, which its name determines.
    pub fn look(&self, name: &str) -> usize {
        looks::number(name, self.members.iter().map(SeatName::as_str))
    }

    /// Returns whether an answer is arriving, from any process.
    pub fn is_growing(&self) -> bool {
        self.is_busy() || !self.streams.is_empty()
    }

    /// Returns whether a member asked by this process is speaking.
    pub fn is_busy(&self) -> bool {
        self.turns.iter().any(|turn| !turn.is_over())
    }

    /// Returns the ops that give a new session of this thread, with these members and this view, the settings of this
    /// one: who is muted, who speaks next, and how long.
    pub fn kept_in(&self, members: &[SeatName], new: &View) -> Vec<Op> {
        let stays = |seat: &&SeatName| members.contains(seat) && !new.muted.contains(*seat);
        let muted = self.muted.iter().filter(stays);
        let mut ops: Vec<Op> = muted.map(|seat| Op::Mute { seat: seat.clone() }).collect();
        if let Some(mode) = self.mode.clone().filter(|_| self.mode != new.mode) {
            ops.push(Op::Mode { mode });
        }
        if self.mode.is_some() && self.auto_messages != new.auto_messages {
            let messages = self.auto_messages;
            ops.push(Op::Auto { messages });
        }
        ops
    }

    /// Begins a round: only open turns are kept.
    fn begin_round(&mut self) {
        self.unsaved = None;
        self.turns.retain(|turn| !turn.is_over());
        self.whispers.clear();
        self.debate = None;
        self.review = None;
    }

    fn open_mut(&mut self, id: TurnId) -> Option<&mut Turn> {
        let is_it = |turn: &&mut Turn| turn.id == Some(id) && !turn.is_over();
        self.turns.iter_mut().rfind(is_it)
    }

    /// Records that a turn begins and which members follow. Turns that begin together do not count.
    fn goes_on(&mut self, ahead: &[SeatName]) {
        let number = match &self.course {
            _ if self.is_busy() => 0,
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
            content @ (Content::Turn(_) | Content::Stream(_)) => {
                self.growing(content).map(|turn| turn.seat.to_string())
            }
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

    /// Marks a panel as changed.
    fn touch(&mut self, at: Option<usize>) {
        self.revision += 1;
        if let Some(panel) = at.and_then(|at| self.panels.get_mut(at)) {
            panel.revision = self.revision;
        }
    }

    fn push_message(&mut self, message: Message) -> usize {
        self.push(show(message))
    }

    /// Returns the usage of the turns that a panel shows the result of.
    fn spent_at(&self, at: usize) -> Option<Usage> {
        self.panels.get(at).and_then(|panel| panel.content.spent())
    }

    /// Returns the panel of a failed message, or of a failed answer that replaced it.
    fn failed_at(&self, seq: u32, seat: &SeatName) -> Option<usize> {
        self.panels.iter().rposition(|panel| {
            panel.content.message().is_some_and(|message| {
                message.from == seat.as_str()
                    && !message.is_sound()
                    && message.replaces().unwrap_or(message.seq) == seq
            })
        })
    }

    /// Folds in a piece of an answer that another process streams.
    fn stream(&mut self, seat: &SeatName, delta: &Delta) {
        let at = match self.streams.get(seat) {
            Some(stream) => stream.panel,
            None => Some(self.push(Content::Stream(seat.clone()))),
        };
        let now = self.now;
        let stream = self.streams.entry(seat.clone()).or_insert_with(|| Turn {
            panel: at,
            ..Turn::queued(None, seat.clone(), Purpose::Answer, now)
        });
        stream.hear(delta, now);
        self.touch(at);
    }

    /// Handles the end of another process's stream without a message.
    fn lost(&mut self, stream: Turn) {
        let lost = Content::Lost {
            seat: stream.seat,
            text: stream.text,
            failure: Failure::new(
                FailureKind::Crashed,
                "the other program stopped before the answer was complete",
            )
            .advise("ask the member again, with @ and its name"),
        };
        if let Some(at) = stream.panel {
            self.put(at, lost);
        }
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
        let (mut place, mut trace, mut earlier) = (None, None, None);
        match turn {
            // The end of the turn follows and needs the position.
            Some(turn) => {
                if let Some(turn) = self.open_mut(turn) {
                    if message.provenance.model.is_some() {
                        turn.model.clone_from(&message.provenance.model);
                    }
                    turn.message = Some(Box::new(message.clone()));
                    (place, trace) = (turn.panel, Some(Trace::take(turn)));
                    earlier = turn.earlier;
                }
            }
            None => {
                let mut seats = self.streams.keys();
                let seat = seats.find(|seat| seat.as_str() == message.from).cloned();
                if let Some(mut stream) = seat.and_then(|seat| self.streams.remove(&seat)) {
                    (place, trace) = (stream.panel, Some(Trace::take(&mut stream)));
                }
            }
        }
        let place = place.or_else(|| {
            let seq = message.replaces()?;
            let at = self.failed_at(seq, &SeatName::sender(message.from.clone()).ok()?)?;
            earlier = self.spent_at(at);
            Some(at)
        });
        match place {
            Some(at) => {
                let at = self.below_question(at, message);
                if let Some(trace) = &mut trace {
                    trace.late = self.is_late(message, trace);
                }
                let mut content = show(message.clone());
                if let Content::Message {
                    trace: shown,
                    earlier: before,
                    ..
                } = &mut content
                {
                    (*shown, *before) = (trace.map(Box::new), earlier);
                }
                self.put(at, content);
            }
            None => {
                self.push_message(message.clone());
            }
        }
    }

    /// Returns whether an answer was asked for before the newest question that precedes it. Messages know their times to the
    /// second.
    fn is_late(&self, message: &Message, trace: &Trace) -> bool {
        let Some((asked, _)) = trace.span.filter(|_| !message.is_king()) else {
            return false;
        };
        let said = self.panels.iter().rev();
        let said = said.filter_map(|panel| panel.content.message());
        let mut questions = said.filter(|m| m.is_king() && m.seq < message.seq);
        let newest = questions.find(|m| !m.extra.contains_key(CHOSEN));
        newest.is_some_and(|newest| newest.at.as_second() > asked.as_second())
    }

    /// Moves the panel of an arriving answer below a message of the user that was saved before the answer, as another window
    /// may do. Returns its place.
    fn below_question(&mut self, at: usize, message: &Message) -> usize {
        let is_before = |panel: &Panel| {
            let said = panel.content.message();
            said.is_some_and(|said| said.is_king() && said.seq < message.seq)
        };
        let question = self.panels.iter().rposition(is_before);
        let Some(to) = question.filter(|to| *to > at && message.replaces().is_none()) else {
            return at;
        };
        for moved in at..=to {
            self.touch(Some(moved));
        }
        if let Some(panels) = self.panels.get_mut(at..=to) {
            panels.rotate_left(1);
        }
        let turns = self.turns.iter_mut().chain(self.streams.values_mut());
        for place in turns.filter_map(|turn| turn.panel.as_mut()) {
            *place = match *place {
                place if place == at => to,
                place if (at..=to).contains(&place) => place - 1,
                place => place,
            };
        }
        to
    }

    /// Adds the usage of a turn.
    fn spend(&mut self, seat: &SeatName, used: Option<&Usage>) {
        if let Some(used) = used {
            self.usage.add(used);
            let by_seat = self.usage_by_seat.entry(seat.clone());
            by_seat.or_default().add(used);
        }
    }

    /// Ends a turn and stores the result in its panel, which already shows the message.
    fn end(&mut self, id: TurnId, failed: Option<&Failure>, used: Option<Usage>) {
        let now = self.now;
        let Some(turn) = self.open_mut(id) else {
            return;
        };
        turn.ended = now;
        turn.state = match failed {
            Some(failure) => State::Failed(failure.clone()),
            None => State::Done,
        };
        let Some(at) = turn.panel.take() else {
            return;
        };
        let lost = failed.map(|failure| Content::Lost {
            seat: turn.seat.clone(),
            text: turn.text.clone(),
            failure: failure.clone(),
        });
        self.touch(Some(at));
        match self.panels.get_mut(at).map(|panel| &mut panel.content) {
            Some(Content::Message { failure, usage, .. }) => {
                *failure = failed.cloned();
                *usage = used;
            }
            Some(content @ Content::Turn(_)) => match lost {
                Some(lost) => *content = lost,
                // Its message was seen on disk first and already has a panel.
                None => self.remove(at),
            },
            Some(
                Content::Stream(_)
                | Content::Lost { .. }
                | Content::Notice(_)
                | Content::Refusal(_),
            )
            | None => {}
        }
    }

    fn remove(&mut self, at: usize) {
        self.panels.remove(at);
        let turns = self.turns.iter_mut().chain(self.streams.values_mut());
        for place in turns.filter_map(|turn| turn.panel.as_mut()) {
            if *place > at {
                *place -= 1;
            }
        }
    }
}

impl Trace {
    /// Takes the trace of an arriving answer for its message.
    fn take(turn: &mut Turn) -> Self {
        Self {
            thought: turn.thinking_chars,
            thinking: std::mem::take(&mut turn.thinking),
            tools: turn.tools,
            span: turn.span,
            late: false,
        }
    }
}

/// Returns the panel of a message. Old and foreign files may contain anything.
fn show(mut message: Message) -> Content {
    message.clean();
    Content::Message {
        message: Box::new(message),
        failure: None,
        usage: None,
        earlier: None,
        trace: None,
    }
}

/// Returns the usage of a failed turn.
fn used(failure: &Failure) -> Option<Usage> {
    failure.used.as_deref().map(|used| used.usage)
}

/// Returns the sum of two amounts; `None` if both are unknown.
fn sum(one: Option<Usage>, other: Option<Usage>) -> Option<Usage> {
    let (Some(mut sum), Some(other)) = (one, other) else {
        return one.or(other);
    };
    sum.add(&other);
    Some(sum)
}

#[cfg(test)]
mod tests;
