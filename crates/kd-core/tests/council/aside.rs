//! Asides: a tagged debate and a deliberation inside a conversation.

use crate::bench::{finished, member, seat};
use jiff::Timestamp;
use kd_core::config::Config;
use kd_core::conversation::How;
use kd_core::deliberation::{CannotResume, Fact, last, replay, resumable, resume};
use kd_core::duet::DuetLimits;
use kd_core::duet::seats::among;
use kd_core::event::{FORMAT, Outcome};
use kd_core::fork::{Cut, prefix, stages};
use kd_core::machine::{Command, Effects, Input, Machine};
use kd_core::message::Draft;
use kd_core::planner::{self, Brief};
use kd_core::prompt::PromptRules;
use kd_core::request::Request;
use kd_core::seating::SeatRequest;
use kd_core::{
    Address, Aside, Budget, Conversation, Delivery, Delta, Event, Failure, FailureKind, Message,
    Op, OpenCouncil, OpenDuet, Record, Roster, ThreadId, TurnId, protocols,
};
use std::collections::BTreeMap;

/// A conversation whose environment is simulated synchronously, in order.
struct Room {
    conversation: Conversation,
    roster: Roster,
    events: Vec<Event>,
    asked: BTreeMap<TurnId, Request>,
    open: Vec<TurnId>,
    drafts: Vec<Draft>,
    kept: Vec<Delivery>,
    /// Messages that were in the thread before.
    before: u32,
}

impl Room {
    fn new() -> Self {
        Self::on(Vec::new())
    }

    /// Opens a thread with these messages.
    fn on(history: Vec<Message>) -> Self {
        let before = history.iter().map(|m| m.seq).max().unwrap_or(0);
        let roster = Roster::new(["claude", "codex", "cursor"].map(member).to_vec(), None);
        let (conversation, opened) = Conversation::open(OpenCouncil {
            thread: ThreadId("council-0001".into()),
            roster: roster.clone(),
            protocol: *protocols::find("broadcast").unwrap(),
            prompts: PromptRules::default(),
            history,
            seed: 7,
            limits: Budget {
                auto_messages: Some(0),
                ..Budget::default()
            },
            conclude: false,
            queue: Some(Vec::new()),
            last: None,
        });
        Self {
            conversation,
            roster,
            events: opened.events,
            asked: BTreeMap::new(),
            open: Vec::new(),
            drafts: Vec::new(),
            kept: Vec::new(),
            before,
        }
    }

    fn think(&mut self, question: &str) {
        let members: Vec<_> = self.roster.members().iter().collect();
        let seats = among(&Config::default(), &SeatRequest::default(), &members).unwrap();
        let open = OpenDuet {
            thread: ThreadId("council-0001".into()),
            prompts: PromptRules::default(),
            history: Vec::new(),
            limits: DuetLimits::default(),
            seats,
        };
        self.begin(Aside {
            question: question.into(),
            how: How::Think(Box::new(open)),
            notices: Vec::new(),
            guard: None,
        });
    }

    fn deliberate(&mut self, question: &str) {
        let mut config = Config::default();
        for name in ["claude", "codex", "cursor"] {
            let agent = kd_core::config::AgentConfig {
                backend: "scripted".into(),
                ..Default::default()
            };
            config.agents.insert(name.into(), agent);
        }
        let brief = Brief {
            question,
            asked: question,
            seed: 7,
            ..Brief::default()
        };
        let planned = planner::plan(&config, &brief).unwrap();
        self.begin(Aside {
            question: question.into(),
            how: How::Deliberate {
                plan: Box::new(planned.plan),
                preamble: "Change nothing.".into(),
            },
            notices: planned.notices,
            guard: None,
        });
    }

    fn begin(&mut self, aside: Aside) {
        let fx = self.conversation.aside(Timestamp::UNIX_EPOCH, aside);
        self.carry_out(fx);
    }

    fn feed(&mut self, input: Input) {
        let fx = self.conversation.step(Timestamp::UNIX_EPOCH, input);
        self.carry_out(fx);
    }

    fn carry_out(&mut self, fx: Effects) {
        self.events.extend(fx.events);
        for command in fx.commands {
            match command {
                Command::Ask { turn, request } => {
                    assert!(self.asked.insert(turn, *request).is_none(), "{turn} twice");
                    self.open.push(turn);
                }
                Command::Cancel { turn } => {
                    self.open.retain(|t| *t != turn);
                    let failure = Failure::new(FailureKind::Cancelled, "stopped");
                    self.feed(Input::Failed { turn, failure });
                }
                Command::Save(draft) => {
                    self.drafts.push((*draft).clone());
                    let seq = self.before + u32::try_from(self.drafts.len()).unwrap();
                    self.feed(Input::Saved {
                        turn: draft.turn,
                        message: draft.stored(seq),
                    });
                }
                Command::Keep(delivery) => {
                    let id = delivery.id.clone();
                    self.kept.retain(|d| d.id != id);
                    self.kept.push(*delivery);
                    self.feed(Input::Kept { id });
                }
                Command::Forget { id } => self.kept.retain(|d| d.id != id),
                Command::Wake { .. } => {}
            }
        }
    }

    fn op(&mut self, op: Op) {
        self.feed(Input::Op(op));
    }

    fn say(&mut self, body: &str) {
        self.op(Op::Say {
            body: body.into(),
            to: Address::All,
        });
    }

    fn speaking(&self) -> Vec<String> {
        let seats = self.open.iter().map(|t| self.asked[t].seat.to_string());
        seats.collect()
    }

    /// Answers the oldest open turn.
    fn answer(&mut self, text: &str) {
        let turn = self.open.remove(0);
        let delta = Delta::Text { text: text.into() };
        self.feed(Input::Delta { turn, delta });
        let delta = finished();
        self.feed(Input::Delta { turn, delta });
    }

    /// Answers the oldest open turn of a deliberation.
    fn answer_formally(&mut self) {
        let text = match &self.asked[&self.open[0]].schema {
            Some(schema) => filled_in(schema),
            None => "Answer: yes\nConfidence: 0.9".to_owned(),
        };
        self.answer(&text);
    }

    /// Continues the deliberation of a log and plays it to its end.
    fn finish(&mut self, log: &[Record]) {
        let plan = resumable(log).expect("it has not ended");
        let resumed = resume(log, plan, Timestamp::UNIX_EPOCH).expect("it goes on");
        self.begin(Aside {
            question: resumed.machine.plan().question.clone(),
            how: How::Resume(Box::new(resumed)),
            notices: Vec::new(),
            guard: None,
        });
        while !self.open.is_empty() {
            self.answer_formally();
        }
    }

    /// Returns the events as a log has them, after these records.
    fn log(&self, before: &[Record]) -> Vec<Record> {
        let logged = |e: &&Event| !matches!(e, Event::TurnDelta { .. });
        let record = |event: &Event| Record {
            v: FORMAT,
            seq: 1,
            ts: Timestamp::UNIX_EPOCH,
            thread: ThreadId("council-0001".into()),
            event: event.clone(),
        };
        let new = self.events.iter().filter(logged).map(record);
        before.iter().cloned().chain(new).collect()
    }

    fn said(&self) -> Vec<String> {
        let said = self
            .drafts
            .iter()
            .map(|d| format!("{}: {}", d.from, d.body));
        said.collect()
    }

    fn refusals(&self) -> Vec<&str> {
        let told = self.events.iter().filter_map(|e| match e {
            Event::OpRefused { why } => Some(why.as_str()),
            _ => None,
        });
        told.collect()
    }

    fn yields(&self) -> Vec<Outcome> {
        let told = self.events.iter().filter_map(|e| match e {
            Event::FloorYielded { outcome, .. } => Some(*outcome),
            _ => None,
        });
        told.collect()
    }
}

#[test]
fn a_debate_knows_what_was_said_and_its_answer_is_part_of_what_follows() {
    let mut room = Room::new();
    room.say("Which database?");
    for name in ["claude", "codex", "cursor"] {
        room.answer(&format!("{name} prefers its own."));
    }
    room.think("Is that so?");
    assert_eq!(room.speaking(), ["claude"], "the fast seat looks first");
    let prompt = room.asked[&room.open[0]].prompt.as_text();
    assert!(prompt.contains("codex prefers its own."), "{prompt}");
    room.answer("A moment. <council>Check this for me.</council>");
    assert_eq!(room.speaking(), ["codex"]);
    room.answer("Yes: it is so.");
    assert_eq!(
        room.said()[4..],
        [
            "king: Is that so?",
            "claude: A moment.",
            "codex: Yes: it is so."
        ]
    );
    assert_eq!(room.yields(), [Outcome::Complete, Outcome::Complete]);
    let words = |e: &Event| matches!(e, Event::CouncilSaid { from, to, .. } if from.as_str() == "claude" && to.as_str() == "codex");
    assert!(room.events.iter().any(words));
    room.say("Thanks. And backups?");
    assert_eq!(room.speaking(), ["claude", "codex", "cursor"]);
    let prompt = room.asked[&room.open[2]].prompt.as_text();
    assert!(prompt.contains("codex: Yes: it is so."), "{prompt}");
    assert!(!prompt.contains("Check this for me"), "{prompt}");
}

#[test]
fn turns_of_an_aside_have_numbers_of_their_own_and_its_members_do_not_replace_ours() {
    let mut room = Room::new();
    room.say("One?");
    room.answer("1");
    room.answer("2");
    room.answer("3");
    room.think("Two?");
    assert_eq!((room.open[0].machine.0, room.open[0].number), (1, 1));
    room.answer("Two.");
    room.think("Three?");
    assert_eq!(room.open[0].machine.0, 2);
    room.answer("Three.");
    let opened = room
        .events
        .iter()
        .filter(|e| matches!(e, Event::ThreadOpened { .. }));
    assert_eq!(opened.count(), 1);
    let mut queued: Vec<TurnId> = Vec::new();
    let mut ended: Vec<TurnId> = Vec::new();
    for event in &room.events {
        match event {
            Event::TurnQueued { turn, .. } => queued.push(*turn),
            Event::TurnFinished { turn, .. } | Event::TurnFailed { turn, .. } => ended.push(*turn),
            _ => {}
        }
    }
    queued.sort();
    ended.sort();
    assert_eq!(queued, ended, "each turn ends exactly once");
    assert_eq!(queued.len(), 5);
}

#[test]
fn what_the_king_says_meanwhile_waits_and_is_kept() {
    let mut room = Room::new();
    room.think("So?");
    room.say("And then?");
    assert!(
        matches!(room.events.last(), Some(Event::SayQueued { body, .. }) if body == "And then?")
    );
    assert_eq!(room.kept.len(), 1, "a killed program does not lose it");
    assert_eq!(room.speaking(), ["claude"]);
    room.op(Op::Retry { seat: None });
    assert!(room.refusals()[0].contains("when no member is speaking"));
    room.think("A second one?");
    assert!(room.refusals()[1].contains("members are speaking"));
    room.answer("So.");
    assert_eq!(
        room.speaking(),
        ["claude", "codex", "cursor"],
        "now it is answered"
    );
    for _ in 0..3 {
        room.answer("Then.");
    }
    assert!(room.kept.is_empty());
}

#[test]
fn escape_after_any_step_stops_an_aside_and_only_what_waits_is_asked() {
    for (way, steps) in [("think", 4), ("deliberate", 12)] {
        for step in 0..steps {
            let mut room = Room::new();
            match way {
                "think" => room.think("So?"),
                _ => room.deliberate("Is 17 a prime number? Answer yes or no."),
            }
            for _ in 0..step {
                let Some(turn) = room.open.first() else { break };
                let request = &room.asked[turn];
                let text = match &request.schema {
                    Some(schema) => filled_in(schema),
                    None if way == "think" => "Hm. <council>Are you sure?</council>".to_owned(),
                    None => "Answer: yes\nConfidence: 0.9".to_owned(),
                };
                room.answer(&text);
            }
            if room.open.is_empty() {
                continue;
            }
            room.say("And then?");
            let asked = room.asked.len();
            room.op(Op::Interrupt);
            let at = format!("{way}, after {step} steps");
            assert_eq!(room.yields(), [Outcome::Interrupted], "{at}");
            let says = |e: &&Event| matches!(e, Event::Noticed { text } if text.contains("kd fork --stage"));
            let told = room.events.iter().filter(says).count();
            assert_eq!(told, usize::from(way == "deliberate"), "{at}");
            assert!(
                room.said().contains(&"king: And then?".to_owned()),
                "{at}: his words are said"
            );
            assert_eq!(room.speaking(), ["claude", "codex", "cursor"], "{at}");
            assert_eq!(room.asked.len(), asked + 3, "{at}: and nobody else is");
        }
    }
}

#[test]
fn one_seat_of_a_debate_can_be_stopped_and_the_other_answers() {
    let mut room = Room::new();
    room.think("So?");
    room.op(Op::Stop {
        seat: seat("claude"),
    });
    assert_eq!(room.speaking(), ["codex"]);
    room.answer("Alone, then.");
    assert_eq!(room.yields(), [Outcome::Partial]);
}

#[test]
fn who_is_muted_or_speaks_for_another_program_is_not_asked() {
    let mut room = Room::new();
    room.op(Op::Mute {
        seat: seat("codex"),
    });
    room.think("So?");
    assert!(room.refusals()[0].contains("codex is muted"));
    room.op(Op::Unmute {
        seat: seat("codex"),
    });
    room.feed(Input::FoundDelta {
        seat: seat("claude"),
        delta: Delta::Text { text: "hm".into() },
    });
    room.think("So?");
    assert!(room.refusals()[1].contains("claude is answering another kd"));
    room.think("  ");
    assert!(room.asked.is_empty());
}

#[test]
fn a_deliberation_runs_to_its_verdict_and_tells_how() {
    let mut room = Room::new();
    room.say("Which database?");
    for _ in 0..3 {
        room.answer("The small one.");
    }
    room.deliberate("Is 17 a prime number? Answer yes or no.");
    let mut first = None;
    while let Some(turn) = room.open.first() {
        first.get_or_insert(room.asked[turn].prompt.as_text());
        room.answer_formally();
    }
    let prompt = first.unwrap();
    assert!(
        prompt.contains("The small one."),
        "the conversation is its background: {prompt}"
    );
    assert_eq!(room.yields().len(), 2);
    let notices: Vec<&str> = room
        .events
        .iter()
        .filter_map(|e| match e {
            Event::Noticed { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        notices.iter().any(|n| n.contains("counted by")),
        "{notices:?}"
    );
    let shown = room.events.iter().any(|e| matches!(e, Event::TurnDelta { delta: Delta::Text { text }, turn } if turn.machine.0 > 0 && !text.is_empty()));
    assert!(!shown, "forms are not shown as they are written");
    let last = room.said().last().cloned().unwrap();
    assert!(last.to_lowercase().contains("yes"), "{last}");
    room.say("Thanks. And 18?");
    let prompt = room.asked[&room.open[0]].prompt.as_text();
    assert!(prompt.contains("Is 17 a prime number?"), "{prompt}");
}

/// Plays a conversation with a deliberation in it, and returns its log.
fn deliberated() -> Vec<Record> {
    let mut room = Room::new();
    room.say("Which database?");
    for _ in 0..3 {
        room.answer("The small one.");
    }
    room.deliberate("Is 17 a prime number? Answer yes or no.");
    while !room.open.is_empty() {
        room.answer_formally();
    }
    room.log(&[])
}

fn messages(log: &[Record]) -> Vec<Message> {
    let added = log.iter().filter_map(|r| match &r.event {
        Event::MessageAdded { message, .. } => Some(message.clone()),
        _ => None,
    });
    added.collect()
}

/// Returns the facts of the newest deliberation that say what was decided.
fn decided(log: &[Record]) -> Vec<Fact> {
    let facts = log.iter().filter_map(|r| match &r.event {
        Event::Deliberated { fact } => Some((**fact).clone()),
        _ => None,
    });
    let is_decision = |f: &Fact| matches!(f, Fact::Counted(_) | Fact::Concluded(_));
    facts.filter(is_decision).collect()
}

/// Checks that a log is one deliberation that ended as another did.
fn ended_as(log: &[Record], whole: &[Record], at: &str) {
    let own = last(log.to_vec()).expect("a deliberation");
    let replayed = replay(&own).expect("a deliberation");
    assert_eq!(replayed.difference, None, "{at}");
    assert!(replayed.finished, "{at}");
    assert_eq!(decided(&own), decided(whole), "{at}");
    assert_eq!(messages(log).len(), messages(whole).len(), "{at}");
}

#[test]
fn a_killed_deliberation_goes_on_in_the_next_session_from_any_record() {
    let whole = deliberated();
    let opened = |r: &Record| matches!(&r.event, Event::Deliberated { fact } if matches!(**fact, Fact::Opened { .. }));
    let from = whole.iter().position(opened).unwrap();
    let mut cuts = 0;
    for end in from + 1..whole.len() {
        let killed = &whole[..end];
        if resumable(killed) == Err(CannotResume::Ended) {
            continue;
        }
        let mut room = Room::on(messages(killed));
        room.finish(killed);
        ended_as(&room.log(killed), &whole, &format!("record {end}"));
        assert_eq!(room.yields(), [Outcome::Complete], "record {end}");
        // Killed once more in that session.
        let log = room.log(killed);
        for again in (killed.len() + 3..log.len()).step_by(7) {
            let killed = &log[..again];
            if resumable(killed) == Err(CannotResume::Ended) {
                continue;
            }
            let mut third = Room::on(messages(killed));
            third.finish(killed);
            ended_as(
                &third.log(killed),
                &whole,
                &format!("records {end} and {again}"),
            );
        }
        room.say("Thanks. And 18?");
        assert_eq!(room.speaking(), ["claude", "codex", "cursor"]);
        cuts += 1;
    }
    assert!(cuts > 20, "{cuts}");
}

#[test]
fn a_fork_of_a_deliberation_in_a_chat_goes_on() {
    let whole = deliberated();
    let last_message = messages(&whole).len() as u32;
    let at_stages = stages(&whole).into_iter().map(Cut::Stage);
    let mut cuts = 0;
    for cut in at_stages.chain((6..=last_message).map(Cut::Before)) {
        let kept = prefix(&whole, &cut).expect("it began").records;
        let forked: Vec<Record> = kept.iter().map(|at| whole[*at].clone()).collect();
        let at = format!("{cut:?}");
        let replies = |log: &[Record]| {
            let replied = |r: &&Record| matches!(&r.event, Event::Deliberated { fact } if matches!(**fact, Fact::SeatReplied { .. }));
            log.iter().filter(replied).count()
        };
        let answered = messages(&forked).len() - 5;
        assert!(replies(&forked) >= answered, "{at}: replies stay");
        let mut room = Room::on(messages(&forked));
        room.finish(&forked);
        ended_as(&room.log(&forked), &whole, &at);
        cuts += 1;
    }
    assert!(cuts > 5, "{cuts}");
}

#[test]
fn a_deliberation_after_which_something_was_asked_is_not_continued() {
    let whole = deliberated();
    let replied = |r: &Record| matches!(&r.event, Event::Deliberated { fact } if matches!(**fact, Fact::SeatReplied { .. }));
    let end = whole.iter().position(replied).unwrap() + 1;
    let killed = &whole[..end];
    // A later session only opens the thread: nothing was asked.
    let mut room = Room::on(messages(killed));
    assert!(resumable(&room.log(killed)).is_ok());
    room.say("Never mind. Which database?");
    for _ in 0..3 {
        room.answer("The small one.");
    }
    let log = room.log(killed);
    assert_eq!(resumable(&log), Err(CannotResume::GoneOn));
    let own = last(log).expect("a deliberation");
    let replayed = replay(&own).expect("a deliberation");
    let differs = replayed.difference.filter(|(then, _)| then.is_some());
    assert_eq!(differs, None, "the later round is no part of it");
    assert!(!replayed.finished);
    // The thread has a message that the record lacks: another program wrote it.
    let plan = resumable(killed).unwrap();
    let resumed = resume(killed, plan, Timestamp::UNIX_EPOCH).unwrap();
    let mut room = Room::on(messages(&room.log(killed)));
    room.begin(Aside {
        question: "So?".into(),
        how: How::Resume(Box::new(resumed)),
        notices: Vec::new(),
        guard: None,
    });
    assert!(room.refusals()[0].contains("another question was asked"));
    assert!(room.open.is_empty());
}

/// Returns the smallest value that one of our schemas allows.
fn filled_in(schema: &serde_json::Value) -> String {
    fn value(schema: &serde_json::Value) -> serde_json::Value {
        if let Some(options) = schema["enum"].as_array() {
            return options[0].clone();
        }
        match schema["type"].as_str() {
            Some("object") => {
                let empty = serde_json::Map::new();
                let fields = schema["properties"].as_object().unwrap_or(&empty);
                let filled = fields.iter().map(|(k, v)| (k.clone(), value(v)));
                serde_json::Value::Object(filled.collect())
            }
            Some("array") => {
                let n = schema["minItems"].as_u64().unwrap_or(1);
                (0..n).map(|_| value(&schema["items"])).collect()
            }
            Some("integer") => schema["minimum"].as_i64().unwrap_or(1).into(),
            Some("number") => 0.5.into(),
            Some("boolean") => true.into(),
            _ => "yes".into(),
        }
    }
    value(schema).to_string()
}
