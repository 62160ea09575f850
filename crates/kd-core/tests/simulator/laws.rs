//! Invariants, checked after every step from inputs and outputs.

use kd_core::event::Purpose;
use kd_core::machine::Command;
use kd_core::message::settled;
use kd_core::prompt;
use kd_core::view::{Content, View};
use kd_core::{Budget, Effects, Event, Input, Message, Op, OpenCouncil, SeatName, Status, TurnId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The state of the invariant checks.
#[derive(Debug)]
pub(crate) struct Laws {
    limits: Budget,
    seats: Vec<SeatName>,
    members: usize,
    view: View,
    open: BTreeMap<TurnId, Purpose>,
    ended: BTreeSet<TurnId>,
    /// Turns whose answers are on disk, and complete or stopped by the user.
    told: BTreeSet<TurnId>,
    muted: BTreeSet<SeatName>,
    announced: BTreeSet<(u32, String)>,
    /// Accepted messages of the user that are not being written yet, and whether they need answers.
    waiting: VecDeque<bool>,
    /// Number of round ends that must come.
    due: usize,
    yields: usize,
    /// Whether the user has written, or requested a retry, since the last interrupt.
    may_ask: bool,
    /// Whether the interrupted round has yet to end.
    stopping: bool,
    asked: usize,
    closed: bool,
    /// Whether the user's messages are kept until they are answered.
    keeps: bool,
    /// Kept deliveries that have not been removed.
    kept: BTreeSet<String>,
    /// Maximum turns after the answers of a round, whenever it began.
    auto_max: usize,
}

/// Returns the number of messages that go back to the user.
fn taken_back(effects: &Effects) -> usize {
    let back = |e: &&Event| matches!(e, Event::SayTakenBack { .. });
    effects.events.iter().filter(back).count()
}

impl Laws {
    pub(crate) fn new(open: &OpenCouncil) -> Self {
        Self {
            limits: open.limits,
            seats: (open.roster.members().iter().chain(open.roster.chair()))
                .map(|m| m.name.clone())
                .collect(),
            members: open.roster.members().len(),
            view: View::default(),
            open: BTreeMap::new(),
            ended: BTreeSet::new(),
            told: BTreeSet::new(),
            muted: BTreeSet::new(),
            announced: BTreeSet::new(),
            waiting: VecDeque::new(),
            due: 0,
            yields: 0,
            may_ask: false,
            stopping: false,
            asked: 0,
            closed: false,
            keeps: open.queue.is_some(),
            kept: BTreeSet::new(),
            auto_max: open
                .limits
                .auto_messages
                .map_or(open.roster.members().len(), |n| n as usize),
        }
    }

    /// Returns the marker in every word of a turn.
    pub(crate) fn mark(turn: TurnId) -> String {
        format!("«{}»", turn.number)
    }

    pub(crate) fn muted(&self) -> impl Iterator<Item = &SeatName> {
        self.muted.iter()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Checks one step.
    pub(crate) fn check(
        &mut self,
        input: &Input,
        was_idle: bool,
        effects: &Effects,
        disk: &[Message],
        history: &[Message],
    ) {
        self.hear_op(input, was_idle, effects);
        if matches!(input, Input::SaveFailed { .. }) {
            // The one that could not be written does not wait any more; those behind it do.
            self.hear_taken_back(taken_back(effects).saturating_sub(1));
        }
        self.hear_events(&effects.events, disk);
        for command in &effects.commands {
            match command {
                Command::Ask { turn, request } => {
                    assert!(
                        self.open.contains_key(turn),
                        "{turn} is asked before it is queued"
                    );
                    self.check_prompt(&request.prompt.history, disk, history);
                }
                Command::Save(draft) => {
                    assert!(
                        draft.body.len() <= self.limits.text_bytes_max.max(600),
                        "a body without a bound"
                    );
                    assert!(!draft.body.trim().is_empty(), "an empty message");
                    assert!(
                        !draft.body.contains('\u{1b}'),
                        "an escape sequence on its way to disk"
                    );
                    for value in draft.extra.values().chain(&draft.provenance.model) {
                        assert!(
                            !value.contains('\n') && !value.contains("---"),
                            "{value:?} breaks a header"
                        );
                    }
                    if draft.turn.is_none() {
                        let asked = self.waiting.pop_front();
                        self.may_ask |= asked.expect("the king's words are written twice");
                    }
                }
                Command::Cancel { turn } => {
                    assert!(
                        self.open.contains_key(turn),
                        "{turn} is stopped and does not run"
                    );
                }
                Command::Keep(delivery) => {
                    assert!(self.keeps, "nobody keeps anything here");
                    self.kept.insert(delivery.id.clone());
                }
                Command::Forget { id } => {
                    assert!(self.kept.remove(id), "forgotten twice, or never kept");
                }
                Command::Wake { .. } => {}
            }
        }
        assert!(
            self.waiting.len() <= self.limits.waiting_max + 1,
            "a queue without a bound"
        );
    }

    fn hear_op(&mut self, input: &Input, was_idle: bool, effects: &Effects) {
        let Input::Op(op) = input else { return };
        let refused = effects
            .events
            .iter()
            .any(|e| matches!(e, Event::OpRefused { .. }));
        if refused {
            assert_eq!(effects.events.len(), 1, "a refused op changed something");
            assert!(
                effects.commands.is_empty(),
                "a refused op changed something"
            );
            return;
        }
        match op {
            Op::Say { .. } => {
                self.waiting.push_back(true);
                self.due += 1;
                self.may_ask = true;
            }
            // It is written, and nobody is asked.
            Op::Choose { .. } => self.waiting.push_back(false),
            Op::Retry { .. } => {
                self.may_ask = true;
                self.asked = 0;
                // Turns that only wait for other processes have not begun.
                let waiting = self.waiting.iter().filter(|asked| **asked).count();
                if was_idle || self.due == self.yields + waiting {
                    self.due += 1;
                }
            }
            Op::TakeBack => self.hear_taken_back(taken_back(effects)),
            Op::Interrupt => {
                self.hear_taken_back(taken_back(effects));
                // Waiting messages are asked when they are written.
                let waiting = self.waiting.iter().filter(|asked| **asked).count();
                self.may_ask = false;
                self.stopping = self.due - waiting > self.yields;
            }
            Op::Close => {
                // Waiting messages are kept, but their rounds are not.
                for asked in &mut self.waiting {
                    self.due -= usize::from(std::mem::take(asked));
                }
                if self.keeps {
                    // They are left for the next session.
                    self.waiting.clear();
                }
                self.may_ask = false;
                self.stopping = self.due > self.yields;
                self.closed = true;
            }
            Op::Auto { messages } => {
                let most = messages.map_or(self.members, |n| n as usize);
                self.auto_max = self.auto_max.max(most);
            }
            Op::Stop { .. }
            | Op::Mute { .. }
            | Op::Unmute { .. }
            | Op::Mode { .. }
            | Op::Resume => {}
        }
    }

    fn hear_taken_back(&mut self, count: usize) {
        for _ in 0..count {
            let asked = self
                .waiting
                .pop_back()
                .expect("words that do not wait are taken back");
            self.due -= usize::from(asked);
        }
    }

    pub(crate) fn hear_events(&mut self, events: &[Event], disk: &[Message]) {
        for event in events {
            self.view.fold(event);
            match event {
                Event::MessageAdded { message, .. } => {
                    assert!(
                        disk.iter()
                            .any(|m| m.seq == message.seq && m.from == message.from),
                        "announced before its file exists"
                    );
                    let new = self.announced.insert((message.seq, message.from.clone()));
                    assert!(new, "announced twice");
                    assert!(!message.body.contains('\u{1b}'));
                }
                Event::TurnQueued {
                    turn,
                    seat,
                    purpose,
                    ..
                } => {
                    assert!(self.may_ask, "somebody is asked after an interrupt");
                    assert!(!self.stopping, "somebody is asked in an interrupted round");
                    assert!(!self.muted.contains(seat), "{seat} is muted and asked");
                    assert!(
                        self.open.insert(*turn, *purpose).is_none() && !self.ended.contains(turn)
                    );
                    self.asked += 1;
                    let most =
                        (self.members + self.auto_max).min(self.limits.turns_max as usize) + 2;
                    assert!(
                        self.asked <= most,
                        "{} turns for one message, at most {most}",
                        self.asked
                    );
                }
                Event::TurnDelta { turn, .. } => {
                    assert!(
                        self.open.contains_key(turn),
                        "a piece of a turn that is not open"
                    );
                }
                Event::TurnFinished {
                    turn,
                    seat,
                    message,
                    ..
                } => {
                    self.end(*turn);
                    self.told.insert(*turn);
                    let file = disk
                        .iter()
                        .find(|m| Some(m.seq) == *message && m.from == seat.as_str());
                    assert_eq!(file.and_then(|m| m.status), Some(Status::Complete));
                }
                Event::TurnFailed {
                    turn,
                    message,
                    seat,
                    ..
                } => {
                    self.end(*turn);
                    if let Some(message) = message {
                        let file = disk
                            .iter()
                            .find(|m| m.seq == *message && m.from == seat.as_str());
                        assert!(
                            file.is_some_and(|m| !m.is_sound()),
                            "a failed turn looks like an answer"
                        );
                        if file.is_some_and(Message::is_told) {
                            self.told.insert(*turn);
                        }
                    }
                }
                Event::SeatMuted { seat, muted: true } => assert!(self.muted.insert(seat.clone())),
                Event::SeatMuted { seat, muted: false } => assert!(self.muted.remove(seat)),
                Event::FloorYielded { .. } => {
                    assert!(
                        self.open.is_empty(),
                        "the floor is yielded while somebody speaks"
                    );
                    self.yields += 1;
                    self.asked = 0;
                    self.stopping = false;
                }
                _ => {}
            }
        }
    }

    fn end(&mut self, turn: TurnId) {
        assert!(
            self.open.remove(&turn).is_some(),
            "{turn} ends and is not open"
        );
        assert!(self.ended.insert(turn), "{turn} ends twice");
    }

    /// Checks that a prompt's history contains exactly the messages it should, each under its own name.
    fn check_prompt(&self, text: &str, disk: &[Message], history: &[Message]) {
        for mark in text.split('«').skip(1) {
            let turn = mark
                .split('»')
                .next()
                .and_then(|n| n.parse().ok())
                .map(TurnId::new);
            let known = turn.is_some_and(|t| self.told.contains(&t));
            assert!(known, "words of a failed turn are in a prompt: {text}");
        }
        for message in history {
            assert!(
                disk.iter()
                    .any(|m| m.seq == message.seq && m.from == message.from)
            );
        }
        let mut sound = settled(history);
        sound.retain(|m| m.is_told());
        let spoke = sound.iter().map(|m| {
            if m.from == "x: y" {
                "x--y"
            } else {
                m.from.as_str()
            }
        });
        let names = self.seats.iter().map(SeatName::as_str).chain(spoke);
        let read = prompt::parse(text, names).unwrap();
        // Later questions of other processes are left out, and from the first of them on the answers there.
        let mut told = read.iter().peekable();
        let mut is_complete = true;
        for was in sound {
            let body = kd_core::clean::clean_text(&was.body);
            let is_same = |told: &&prompt::Spoken| {
                (told.from == "king") == was.is_king() && told.body == body.trim()
            };
            if told.peek().is_some_and(is_same) {
                told.next();
                continue;
            }
            assert!(!is_complete || was.is_king(), "{text}");
            is_complete = false;
        }
        assert_eq!(told.next(), None, "{text}");
    }

    /// Checks the final state, when nothing more can happen.
    pub(crate) fn at_rest(&self, disk: &[Message]) {
        assert!(self.open.is_empty(), "{:?} never ended", self.open);
        assert!(self.waiting.is_empty(), "words of the king were forgotten");
        assert!(
            self.closed || self.kept.is_empty(),
            "an answered message is still kept"
        );
        assert_eq!(self.yields, self.due, "rounds and their ends differ");
        assert!(!self.view.is_busy() && self.view.growing_turns().all(|g| g.id.is_none()));
        // The view folded from events shows what is on disk.
        let mut shown: Vec<(u32, &str, &str)> = messages(&self.view);
        shown.sort();
        assert!(shown.is_sorted_by(|a, b| a < b), "a message is shown twice");
        let fresh = View::open(disk.iter().cloned());
        let mut lies: Vec<(u32, &str, &str)> = messages(&fresh);
        lies.sort();
        assert!(
            shown.iter().all(|m| lies.contains(m)),
            "what is shown is not on disk"
        );
        // A failed answer may have been replaced by one that could not be saved.
        let sound = |(seq, from, _): &&(u32, &str, &str)| {
            let file = disk.iter().find(|m| m.seq == *seq && m.from == *from);
            file.is_some_and(Message::is_sound)
        };
        assert!(
            lies.iter().filter(sound).all(|m| shown.contains(m)),
            "a message is not shown"
        );
    }
}

fn messages(view: &View) -> Vec<(u32, &str, &str)> {
    let shown = view.panels.iter().filter_map(|panel| match &panel.content {
        Content::Message { message, .. } => {
            Some((message.seq, message.from.as_str(), message.body.as_str()))
        }
        _ => None,
    });
    shown.collect()
}
