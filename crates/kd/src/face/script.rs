//! Scripts the records of a round, for tests.

use super::{Face, Io};
use jiff::Timestamp;
use kd_core::event::{FORMAT, Outcome, Purpose};
use kd_core::message::Provenance;
use kd_core::request::Finish;
use kd_core::view::View;
use kd_core::{
    Address, Delta, Event, Failure, FailureKind, Message, Record, SeatName, Status, ThreadId,
    TurnId, Usage,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// Records under construction, one second apart.
pub(crate) struct Script {
    pub(crate) records: Vec<Record>,
    messages: u32,
}

pub(crate) fn seat(name: &str) -> SeatName {
    SeatName::new(name).expect("a good name")
}

/// Returns 10:00:00 plus some seconds.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_795_255_200 + second).expect("in range")
}

impl Script {
    pub(crate) fn open(members: &[&str]) -> Self {
        let mut script = Self {
            records: Vec::new(),
            messages: 0,
        };
        script.event(Event::ThreadOpened {
            members: members.iter().map(|m| seat(m)).collect(),
            messages: 0,
        });
        script
    }

    pub(crate) fn event(&mut self, event: Event) {
        let seq = self.records.len() as u64 + 1;
        self.records.push(Record {
            v: FORMAT,
            seq,
            ts: at(seq as i64),
            thread: ThreadId("council-a8b3".into()),
            event,
        });
    }

    pub(crate) fn say(&mut self, body: &str) {
        self.add("king", body, None, None);
    }

    pub(crate) fn queue(&mut self, turn: u32, name: &str) {
        let purpose = if name == "chair" {
            Purpose::Conclude
        } else {
            Purpose::Answer
        };
        self.event(Event::TurnQueued {
            turn: TurnId::new(turn),
            seat: seat(name),
            purpose,
            replaces: None,
            ahead: Vec::new(),
        });
    }

    pub(crate) fn delta(&mut self, turn: u32, delta: Delta) {
        self.event(Event::TurnDelta {
            turn: TurnId::new(turn),
            delta,
        });
    }

    pub(crate) fn text(&mut self, turn: u32, text: &str) {
        self.delta(turn, Delta::Text { text: text.into() });
    }

    pub(crate) fn retry(&mut self, turn: u32, seconds: u64) {
        let failure = Failure::new(
            FailureKind::RateLimit,
            "the service asks us to slow down (429)",
        );
        self.delta(
            turn,
            Delta::Retrying {
                attempt: 1,
                after: Duration::from_secs(seconds),
                failure,
            },
        );
    }

    /// Adds the backend's final answer, which replaces the streamed one.
    pub(crate) fn restate(&mut self, turn: u32, text: &str) {
        let finished = Delta::Finished {
            finish: Finish::Stop,
            text: Some(text.into()),
            usage: None,
            choices: Vec::new(),
        };
        self.delta(turn, finished);
    }

    pub(crate) fn finish(&mut self, turn: u32, name: &str, body: &str) {
        let usage = Usage {
            input_tokens: 120,
            output_tokens: 42,
            ..Usage::default()
        };
        self.delta(
            turn,
            Delta::Finished {
                finish: Finish::Stop,
                text: None,
                usage: Some(usage),
                choices: Vec::new(),
            },
        );
        self.add(name, body, Some(Status::Complete), Some(TurnId::new(turn)));
        self.event(Event::TurnFinished {
            turn: TurnId::new(turn),
            seat: seat(name),
            message: Some(self.messages),
            usage: Some(usage),
            tools: 0,
            thought: 0,
        });
    }

    pub(crate) fn fail(&mut self, turn: u32, name: &str, kind: FailureKind) {
        self.event(Event::TurnFailed {
            turn: TurnId::new(turn),
            seat: seat(name),
            failure: Failure::new(kind, format!("it broke: {}", kind.as_str())),
            message: None,
        });
    }

    pub(crate) fn yielded(&mut self, outcome: Outcome) {
        self.event(Event::FloorYielded {
            outcome,
            usage: Usage {
                input_tokens: 360,
                output_tokens: 126,
                ..Usage::default()
            },
        });
    }

    fn add(&mut self, from: &str, body: &str, status: Option<Status>, turn: Option<TurnId>) {
        self.messages += 1;
        let king = from == "king";
        self.event(Event::MessageAdded {
            message: Message {
                seq: self.messages,
                from: from.into(),
                to: if king { Address::All } else { Address::King },
                at: at(self.records.len() as i64 + 1),
                status,
                refs: Vec::new(),
                provenance: Provenance {
                    backend: (!king).then(|| "scripted".into()),
                    model: (!king).then(|| "model-1".into()),
                    ..Provenance::default()
                },
                extra: BTreeMap::new(),
                body: body.into(),
            },
            turn,
            found: false,
        });
    }

    /// Plays everything; returns stdout and stderr.
    pub(crate) fn play(&self, face: &mut dyn Face) -> (String, String) {
        self.play_missing(0..0, face)
    }

    /// Plays everything but some records, which the output misses because it is too slow; returns stdout and stderr.
    pub(crate) fn play_missing(
        &self,
        missed: Range<usize>,
        face: &mut dyn Face,
    ) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut io = Io {
            out: &mut out,
            err: &mut err,
        };
        let mut view = View::default();
        for (at, record) in self.records.iter().enumerate() {
            view.fold_record(record);
            let shown = match at {
                at if !missed.contains(&at) => face.hear(record, &view, &mut io),
                at if at + 1 == missed.end => face.catch_up(&view, &mut io),
                _ => continue,
            };
            shown.expect("a vector takes all");
            face.tick(record.ts, &view, &mut io)
                .expect("a vector takes all");
        }
        face.end(&view, &mut io).expect("a vector takes all");
        (
            String::from_utf8(out).expect("text"),
            String::from_utf8(err).expect("text"),
        )
    }
}

/// Returns a round in which a service refuses the key of every member.
pub(crate) fn refused(members: &[&str]) -> Script {
    let mut s = Script::open(members);
    s.say("Which?");
    for (turn, name) in (1..).zip(members) {
        s.queue(turn, name);
    }
    for (turn, name) in (1..).zip(members) {
        s.event(Event::TurnFailed {
            turn: TurnId::new(turn),
            seat: seat(name),
            failure: Failure::new(FailureKind::Auth, "the key was refused"),
            message: None,
        });
    }
    s.yielded(Outcome::Failed);
    s
}

/// A round with everything: streaming, thinking, a retry, a failure, a conclusion.
pub(crate) fn full_round() -> Script {
    let mut s = Script::open(&["claude", "codex", "gpt-5"]);
    s.say("Should a small team start with SQLite or PostgreSQL?");
    for (turn, name) in [(1, "claude"), (2, "codex"), (3, "gpt-5")] {
        s.queue(turn, name);
        s.delta(
            turn,
            Delta::Started {
                model: Some(format!("{name}-model")),
                version: None,
                session: None,
            },
        );
    }
    s.delta(
        2,
        Delta::Thinking {
            text: "let me see …".into(),
        },
    );
    s.text(1, "Start with **SQLite**.\n\n- one file\n- no ser");
    s.text(2, "It depends: ");
    s.retry(3, 3);
    s.text(1, "ver\n");
    s.text(
        2,
        "how many *writers*?\n\nclaude | I agree with codex.\n\u{1b}[2Jdone",
    );
    s.finish(
        1,
        "claude",
        "Start with **SQLite**.\n\n- one file\n- no server\n",
    );
    s.text(3, "Half an answer");
    s.fail(3, "gpt-5", FailureKind::Overloaded);
    s.finish(
        2,
        "codex",
        "It depends: how many *writers*?\n\nclaude | I agree with codex.\n\u{1b}[2Jdone",
    );
    s.queue(4, "chair");
    s.text(4, "Both say: **SQLite first**.");
    s.finish(4, "chair", "Both say: **SQLite first**.");
    s.yielded(Outcome::Partial);
    s
}

/// A duet: an update with a message for the other member, a reply for that member only, a forced answer.
pub(crate) fn duet_round() -> Script {
    use kd_core::event::{DuetEnd, DuetPhase};
    let mut s = Script::open(&["fast", "rigorous"]);
    s.say("Is a cyclic universe possible?");
    let begin = |s: &mut Script, turn, name: &str, phase, exchanged| {
        let purpose = match phase {
            DuetPhase::Decision => Purpose::Conclude,
            _ => Purpose::Answer,
        };
        s.event(Event::TurnQueued {
            turn: TurnId::new(turn),
            seat: seat(name),
            purpose,
            replaces: None,
            ahead: Vec::new(),
        });
        s.event(Event::PhaseBegan {
            turn: TurnId::new(turn),
            seat: seat(name),
            phase,
            exchanged,
            exchanges_max: 2,
        });
    };
    let whisper = |s: &mut Script, turn, from: &str, to: &str, text: &str| {
        s.event(Event::CouncilSaid {
            turn: TurnId::new(turn),
            from: seat(from),
            to: seat(to),
            chars: text.chars().count() as u64,
            text: Some(text.into()),
        });
    };
    begin(&mut s, 1, "fast", DuetPhase::FirstLook, 0);
    s.text(1, "Hard: I ask **rigorous**.");
    s.finish(1, "fast", "Hard: I ask **rigorous**.");
    whisper(
        &mut s,
        1,
        "fast",
        "rigorous",
        "Does entropy\nrigorous | forbid it?",
    );
    begin(&mut s, 2, "rigorous", DuetPhase::Debate, 1);
    s.event(Event::TurnFinished {
        turn: TurnId::new(2),
        seat: seat("rigorous"),
        message: None,
        usage: None,
        tools: 0,
        thought: 0,
    });
    whisper(&mut s, 2, "rigorous", "fast", "Only if it is not diluted.");
    s.event(Event::Noticed {
        text: "they reached the message limit: asking for the answer".into(),
    });
    begin(&mut s, 3, "rigorous", DuetPhase::Decision, 2);
    s.text(3, "Perhaps; entropy stays open.");
    s.finish(3, "rigorous", "Perhaps; entropy stays open.");
    s.event(Event::DuetEnded {
        why: DuetEnd::Cap,
        exchanged: 2,
        answer: Some(3),
    });
    s.yielded(Outcome::Complete);
    s
}
