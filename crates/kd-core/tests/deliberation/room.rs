//! A test environment for one deliberation: plays members, saves messages, and keeps the record as the log would.

use jiff::Timestamp;
use kd_core::deliberation::fact::Labelled;
use kd_core::deliberation::plan::{Iteration, Limits, MemoryPlan, Meta, Seat, Voting};
use kd_core::deliberation::{
    AnswerKind, Deliberation, Fact, Plan, Price, Replayed, Verdict, replay,
};
use kd_core::event::FORMAT;
use kd_core::machine::{Command, Effects, Input};
use kd_core::usage::Usage;
use kd_core::{
    Address, Delta, Event, Failure, FailureKind, Finish, Machine, Member, Message, Op, Record,
    Request, SeatName, ThreadId, TurnId,
};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// A request to a member.
pub(crate) struct Asked {
    pub(crate) seat: String,
    pub(crate) stage: String,
    pub(crate) labels: Vec<Labelled>,
    pub(crate) request: Request,
}

/// The reply to a request.
pub(crate) enum Answer {
    Text(String),
    Used(String, Usage),
    Fail(FailureKind),
    /// Some text, then a failure.
    Broken(String, FailureKind),
}

/// The result of a run.
pub(crate) struct Run {
    pub(crate) records: Vec<Record>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) commands: usize,
}

pub(crate) fn seat(name: &str, role: &str) -> Seat {
    Seat {
        member: Member {
            role: Some(role.into()),
            persona: format!("You are a {role}."),
            ..Member::new(SeatName::new(name).expect("a name"), "scripted")
        },
        agent: name.into(),
        role: role.into(),
        persona: None,
        no_vote: false,
        price: Some(Price::default()),
        reliability: None,
    }
}

/// Builds a plan with three members and a chair for a yes-no question.
pub(crate) fn plan() -> Plan {
    Plan {
        question: "Is it safe?".into(),
        meta: Meta::default(),
        protocol: "council".into(),
        seats: vec![
            seat("ann", "opinion-giver"),
            seat("bob", "opinion-giver"),
            seat("cyd", "skeptic"),
            seat("eve", "synthesizer"),
        ],
        answers: AnswerKind::parse("yes-no").expect("known"),
        voting: Voting {
            method: "plurality".into(),
            threshold: None,
        },
        rounds: 2,
        samples: 3,
        iteration: Iteration::default(),
        memory: MemoryPlan::default(),
        limits: Limits::default(),
        background: String::new(),
        seed: 7,
        reading: kd_core::deliberation::READING,
        guess: None,
        judged: false,
        spending: kd_core::deliberation::SPENDING,
        writing: kd_core::deliberation::WRITING,
        output: None,
        enough: None,
        fitted: false,
        ask_back: None,
    }
}

/// Runs a plan to its end; `answer` plays every member.
pub(crate) fn run(plan: &Plan, mut answer: impl FnMut(&Asked) -> Answer) -> Run {
    run_with(plan, &mut answer, |_| None)
}

/// As [`run`]; `meddle` may add an input before each step, counted from 0.
pub(crate) fn run_with(
    plan: &Plan,
    answer: &mut dyn FnMut(&Asked) -> Answer,
    mut meddle: impl FnMut(usize) -> Option<Input>,
) -> Run {
    let (machine, opened) = Deliberation::open(plan.clone(), Vec::new(), "Preamble.".into(), 0);
    let room = Run {
        records: Vec::new(),
        verdict: None,
        commands: 0,
    };
    let say = Input::Op(Op::Say {
        body: plan.question.clone(),
        to: Address::All,
    });
    room.play((machine, opened), 0, Some(say), answer, &mut meddle)
}

/// Continues a deliberation from its records; `answer` plays every member.
pub(crate) fn run_on(
    records: Vec<Record>,
    plan: Plan,
    answer: &mut dyn FnMut(&Asked) -> Answer,
) -> Run {
    run_found(records, plan, &[], answer)
}

/// As [`run_on`]; these messages are in the thread and not in the record.
pub(crate) fn run_found(
    records: Vec<Record>,
    plan: Plan,
    written: &[Message],
    answer: &mut dyn FnMut(&Asked) -> Answer,
) -> Run {
    let resumed = kd_core::deliberation::resume(&records, plan, Timestamp::UNIX_EPOCH);
    let mut resumed = resumed.expect("it goes on");
    for message in written {
        assert!(resumed.found(message, Timestamp::UNIX_EPOCH), "{message:?}");
    }
    let room = Run {
        records,
        verdict: None,
        commands: 0,
    };
    let begun = (resumed.machine, resumed.effects);
    room.play(begun, resumed.messages, None, answer, &mut |_| None)
}

impl Run {
    fn play(
        mut self,
        (mut machine, begun): (Deliberation, Effects),
        mut messages: u32,
        first: Option<Input>,
        answer: &mut dyn FnMut(&Asked) -> Answer,
        meddle: &mut dyn FnMut(usize) -> Option<Input>,
    ) -> Self {
        let room = &mut self;
        let mut inputs: VecDeque<Input> = VecDeque::new();
        let now = Timestamp::UNIX_EPOCH;
        room.take(begun, &mut inputs, &mut messages, answer);
        inputs.extend(first);
        for step in 0..10_000 {
            if let Some(input) = meddle(step) {
                inputs.push_front(input);
            }
            let Some(input) = inputs.pop_front() else {
                assert!(
                    machine.is_done(),
                    "the machine is stuck: {:?}",
                    room.records.last()
                );
                return self;
            };
            let effects = machine.step(now, input);
            room.take(effects, &mut inputs, &mut messages, answer);
        }
        panic!("it does not end");
    }

    fn take(
        &mut self,
        effects: Effects,
        inputs: &mut VecDeque<Input>,
        messages: &mut u32,
        answer: &mut dyn FnMut(&Asked) -> Answer,
    ) {
        // If a deliberation continues from a record, the record may contain requests already.
        let mut asked: Vec<(TurnId, String, Vec<Labelled>)> = self
            .facts()
            .filter_map(|fact| match fact {
                Fact::SeatAsked {
                    turn,
                    stage,
                    labels,
                    ..
                } => Some((*turn, stage.clone(), labels.clone())),
                _ => None,
            })
            .collect();
        for event in effects.events {
            if let Event::Deliberated { fact } = &event {
                match &**fact {
                    Fact::SeatAsked {
                        turn,
                        stage,
                        labels,
                        ..
                    } => asked.push((*turn, stage.clone(), labels.clone())),
                    Fact::Concluded(verdict) => {
                        assert!(self.verdict.is_none(), "it concludes once");
                        self.verdict = Some((**verdict).clone());
                    }
                    _ => {}
                }
            }
            if !matches!(event, Event::TurnDelta { .. }) {
                self.records.push(Record {
                    v: FORMAT,
                    seq: self.records.len() as u64 + 1,
                    ts: Timestamp::UNIX_EPOCH,
                    thread: ThreadId("council-test".into()),
                    event,
                });
            }
        }
        for command in effects.commands {
            self.commands += 1;
            match command {
                Command::Ask { turn, request } => {
                    let (_, stage, labels) = asked
                        .iter()
                        .find(|(t, ..)| *t == turn)
                        .cloned()
                        .expect("a fact first");
                    let asked = Asked {
                        seat: request.seat.to_string(),
                        stage,
                        labels,
                        request: *request,
                    };
                    let finished = |text: String, usage| Input::Delta {
                        turn,
                        delta: Delta::Finished {
                            finish: Finish::Stop,
                            text: Some(text),
                            usage,
                            choices: Vec::new(),
                        },
                    };
                    let mut said = answer(&asked);
                    if let Answer::Broken(text, kind) = said {
                        let delta = Delta::Text { text };
                        inputs.push_back(Input::Delta { turn, delta });
                        said = Answer::Fail(kind);
                    }
                    inputs.push_back(match said {
                        Answer::Text(text) => finished(text, None),
                        Answer::Used(text, usage) => finished(text, Some(usage)),
                        Answer::Fail(kind) | Answer::Broken(_, kind) => Input::Failed {
                            turn,
                            failure: Failure::new(kind, "scripted"),
                        },
                    });
                }
                Command::Cancel { turn } => {
                    inputs.retain(|i| !matches!(i, Input::Delta { turn: t, .. } | Input::Failed { turn: t, .. } if *t == turn));
                    inputs.push_back(Input::Failed {
                        turn,
                        failure: Failure::new(FailureKind::Cancelled, "stopped"),
                    });
                }
                Command::Save(draft) => {
                    *messages += 1;
                    inputs.push_front(Input::Saved {
                        turn: draft.turn,
                        message: draft.stored(*messages),
                    });
                }
                _ => {}
            }
        }
    }

    /// Replays the record as read from disk; everything must match.
    pub(crate) fn replays(&self) -> Replayed {
        let lines: Vec<Record> = self
            .records
            .iter()
            .map(|r| {
                serde_json::from_str(&serde_json::to_string(r).expect("JSON"))
                    .expect("it reads back")
            })
            .collect();
        assert_eq!(lines, self.records);
        let replayed = replay(&lines).expect("a deliberation");
        assert_eq!(replayed.difference, None);
        assert_eq!(replayed.agreed, self.records.len());
        replayed
    }

    pub(crate) fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.records.iter().filter_map(|r| match &r.event {
            Event::Deliberated { fact } => Some(&**fact),
            _ => None,
        })
    }

    pub(crate) fn verdict(&self) -> &Verdict {
        self.verdict.as_ref().expect("a verdict")
    }
}

/// Returns a well-formed reply by a member that wants an answer and votes for it.
pub(crate) fn good(asked: &Asked, wants: &str) -> String {
    let Some(schema) = &asked.request.schema else {
        return format!(
            "I take {wants}, says {}. It is the best in {}.\nConfidence: 0.8",
            asked.seat, asked.stage
        );
    };
    fill(schema, "", asked, wants).to_string()
}

fn fill(schema: &Value, name: &str, asked: &Asked, wants: &str) -> Value {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        let of_label = |l: &&Labelled| l.item == wants || l.item.ends_with(wants);
        let label = asked.labels.iter().find(of_label).map(|l| json!(l.label));
        return label
            .filter(|l| options.contains(l))
            .or_else(|| options.iter().find(|o| o.as_str() == Some(wants)).cloned())
            .unwrap_or_else(|| options[0].clone());
    }
    match schema["type"].as_str().expect("a type") {
        "object" => {
            let fields = schema["properties"].as_object().expect("fields");
            Value::Object(
                fields
                    .iter()
                    .map(|(n, s)| (n.clone(), fill(s, n, asked, wants)))
                    .collect::<Map<_, _>>(),
            )
        }
        "array" if name == "ranking" => {
            let mut options = schema["items"]["enum"].as_array().expect("labels").clone();
            let first = fill(&schema["items"], "", asked, wants);
            options.retain(|o| *o != first);
            options.insert(0, first);
            json!(options)
        }
        "array" => json!([fill(&schema["items"], name, asked, wants)]),
        "integer" => match asked.labels.iter().find(|l| l.label == name) {
            Some(l) if l.item == wants || l.item.ends_with(wants) => json!(5),
            Some(_) => json!(1),
            None => json!(7),
        },
        "number" if name == "answer" => json!(wants.parse::<f64>().unwrap_or(42.0)),
        "number" => json!(0.8),
        _ => match name {
            "answer" => json!(wants),
            "flaw" => json!("a false step"),
            _ => json!(format!("because of {name}")),
        },
    }
}
