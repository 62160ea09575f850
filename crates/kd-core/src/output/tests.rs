use super::*;
use crate::message::{Address, Provenance, Status};
use serde_json::json;
use std::collections::BTreeMap;

/// A schema as hosts apply it.
struct Checked(Value, jsonschema::Validator);

impl Checked {
    fn of(schema: Value) -> Arc<dyn Schema> {
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        Arc::new(Self(schema, validator))
    }
}

impl Schema for Checked {
    fn json(&self) -> &Value {
        &self.0
    }

    fn allows(&self, value: &Value) -> bool {
        self.1.is_valid(value)
    }

    fn faults(&self, _: &Value) -> Vec<String> {
        vec![WRONG.to_owned()]
    }
}

const WRONG: &str = "at /answer: value is not one of these";

/// Plays its effects, one for each step; then nothing.
struct Inner(Vec<Effects>);

impl Machine for Inner {
    fn step(&mut self, _: Timestamp, _: Input) -> Effects {
        match self.0.is_empty() {
            true => Effects::default(),
            false => self.0.remove(0),
        }
    }
}

fn seat(name: &str) -> SeatName {
    SeatName::new(name).expect("a name")
}

fn message(seq: u32, from: &str, body: &str, turn: Option<u32>) -> Event {
    Event::MessageAdded {
        found: false,
        turn: turn.map(TurnId::new),
        message: Message {
            seq,
            from: from.into(),
            to: Address::All,
            at: Timestamp::UNIX_EPOCH,
            status: (from != "king").then_some(Status::Complete),
            refs: Vec::new(),
            provenance: Provenance::default(),
            extra: BTreeMap::new(),
            body: body.into(),
        },
    }
}

fn queued(turn: u32, name: &str, purpose: Purpose) -> Event {
    Event::TurnQueued {
        turn: TurnId::new(turn),
        seat: seat(name),
        purpose,
        replaces: None,
        ahead: Vec::new(),
    }
}

fn finished(turn: u32, name: &str) -> Event {
    Event::TurnFinished {
        turn: TurnId::new(turn),
        seat: seat(name),
        message: Some(turn + 1),
        usage: None,
        tools: 0,
        thought: 0,
    }
}

fn yielded(outcome: Outcome) -> Event {
    let usage = Usage::default();
    Event::FloorYielded { outcome, usage }
}

/// Two answers, and the conclusion of a chair.
fn round(outcome: Outcome) -> Vec<Event> {
    vec![
        message(1, "king", "Which?", None),
        queued(1, "ann", Purpose::Answer),
        message(2, "ann", "SQLite.", Some(1)),
        finished(1, "ann"),
        message(3, "bob", "SQLite too.", Some(2)),
        queued(3, "chair", Purpose::Conclude),
        message(4, "chair", "Take SQLite.", Some(3)),
        finished(3, "chair"),
        yielded(outcome),
    ]
}

/// A round that is being formatted.
struct Bench {
    machine: Formatted,
    asked: Vec<(TurnId, Request)>,
    cancelled: Vec<TurnId>,
    drafts: Vec<Draft>,
    events: Vec<Event>,
}

impl Bench {
    fn new(schema: Value, steps: Vec<Vec<Event>>) -> Self {
        let of = |name: &str| {
            let backend = if name == "local" { LOCAL } else { "openai" };
            Member::new(seat(name), backend)
        };
        let steps = steps.into_iter().map(|events| Effects {
            events,
            ..Effects::default()
        });
        let inner = Box::new(Inner(steps.collect()));
        let schema = Checked::of(schema);
        let members = ["ann", "bob", "chair", "local"].map(of).to_vec();
        Self {
            machine: Formatted::new(inner, schema, members),
            asked: Vec::new(),
            cancelled: Vec::new(),
            drafts: Vec::new(),
            events: Vec::new(),
        }
    }

    /// A round with this outcome, up to the first request for its value.
    fn of(outcome: Outcome) -> Self {
        let mut bench = Self::new(schema(), vec![round(outcome)]);
        bench.feed(Input::Op(Op::Close));
        bench
    }

    fn feed(&mut self, input: Input) {
        let fx = self.machine.step(Timestamp::UNIX_EPOCH, input);
        self.events.extend(fx.events);
        for command in fx.commands {
            match command {
                Command::Ask { turn, request } => self.asked.push((turn, *request)),
                Command::Cancel { turn } => self.cancelled.push(turn),
                Command::Save(draft) => self.drafts.push(*draft),
                other => panic!("{other:?}"),
            }
        }
    }

    fn turn(&self) -> TurnId {
        self.asked.last().expect("somebody is asked").0
    }

    fn reply(&mut self, text: &str) {
        let turn = self.turn();
        let delta = Delta::Text { text: text.into() };
        self.feed(Input::Delta { turn, delta });
        let delta = Delta::Finished {
            finish: Finish::Stop,
            text: None,
            usage: Some(Usage::default()),
            choices: Vec::new(),
        };
        self.feed(Input::Delta { turn, delta });
    }

    fn fail(&mut self, kind: FailureKind) {
        let turn = self.turn();
        let failure = Failure::new(kind, "it broke");
        self.feed(Input::Failed { turn, failure });
    }

    fn save(&mut self) {
        let Event::MessageAdded { mut message, .. } = message(5, "chair", "", None) else {
            unreachable!()
        };
        let draft = self.drafts.last().expect("a draft");
        (message.body, message.extra) = (draft.body.as_str().into(), draft.extra.clone());
        let turn = Some(self.turn());
        self.feed(Input::Saved { turn, message });
    }

    fn yields(&self) -> usize {
        let yields = |event: &&Event| matches!(event, Event::FloorYielded { .. });
        self.events.iter().filter(yields).count()
    }

    /// Returns the value of the round, as front ends see it.
    fn value(&self) -> Option<Result<Value, String>> {
        let mut view = crate::view::View::default();
        for (at, event) in self.events.iter().enumerate() {
            view.fold_record(&crate::Record {
                v: 1,
                seq: at as u64 + 1,
                ts: Timestamp::UNIX_EPOCH,
                thread: crate::ThreadId("council-1".into()),
                event: event.clone(),
            });
        }
        let output = view.output()?;
        Some(output.map_err(|failure| failure.message.clone()))
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"answer": {"enum": ["SQLite", "PostgreSQL"]}}, "required": ["answer"], "additionalProperties": false})
}

const GOOD: &str = "{\"answer\": \"SQLite\"}";

#[test]
fn the_member_that_concluded_writes_the_value() {
    let mut bench = Bench::of(Outcome::Complete);
    assert_eq!((bench.yields(), bench.asked.len()), (0, 1));
    let (turn, request) = &bench.asked[0];
    assert!(turn.is_format());
    assert_eq!(request.seat.as_str(), "chair");
    assert_eq!(request.schema, Some(schema()));
    assert!(request.schema_of_user);
    let prompt = request.prompt.as_text();
    for part in [
        "king: Which?",
        "ann: SQLite.",
        "bob: SQLite too.",
        "chair: Take SQLite.",
    ] {
        assert!(prompt.contains(part), "{prompt}");
    }
    assert!(prompt.contains("The last message above is the answer"));
    bench.reply(&format!("Here you are:\n```json\n{GOOD}\n```"));
    assert_eq!(bench.yields(), 0, "it is on disk first");
    assert_eq!(
        bench.drafts[0].body,
        "```json\n{\n  \"answer\": \"SQLite\"\n}\n```"
    );
    assert_eq!(bench.drafts[0].extra[PURPOSE], FORMAT);
    bench.save();
    assert_eq!(bench.yields(), 1);
    assert_eq!(bench.events.last(), Some(&yielded(Outcome::Complete)));
    assert_eq!(bench.value(), Some(Ok(json!({"answer": "SQLite"}))));
}

#[test]
fn a_reply_that_the_schema_does_not_allow_is_asked_for_once_more() {
    for (second, value) in [
        (GOOD, Ok(json!({"answer": "SQLite"}))),
        (
            "{\"answer\": 4}",
            Err(format!("the reply does not match the schema: {WRONG}")),
        ),
    ] {
        let mut bench = Bench::of(Outcome::Partial);
        bench.reply("{\"answer\": \"MySQL\"}");
        assert_eq!(bench.asked.len(), 2);
        let again = &bench.asked[1].1;
        assert_eq!((again.seat.as_str(), bench.yields()), ("chair", 0));
        let prompt = again.prompt.as_text();
        for part in ["{\"answer\": \"MySQL\"}", WRONG] {
            assert!(prompt.contains(part), "{prompt}");
        }
        bench.reply(second);
        if value.is_ok() {
            bench.save();
        }
        assert_eq!((bench.asked.len(), bench.yields()), (2, 1));
        assert_eq!(bench.value(), Some(value));
        assert_eq!(bench.events.last(), Some(&yielded(Outcome::Partial)));
    }
}

#[test]
fn a_member_that_fails_is_replaced_once() {
    let mut bench = Bench::of(Outcome::Complete);
    bench.fail(FailureKind::Overloaded);
    assert_eq!(bench.asked[1].1.seat.as_str(), "bob");
    bench.fail(FailureKind::Timeout);
    assert_eq!((bench.asked.len(), bench.yields()), (2, 1));
    assert_eq!(bench.value(), Some(Err("it broke".into())));
    // A limit of the run, and the user, end it at once.
    for kind in [FailureKind::Limit, FailureKind::Cancelled] {
        let mut bench = Bench::of(Outcome::Complete);
        bench.fail(kind);
        assert_eq!((bench.asked.len(), bench.yields()), (1, 1));
    }
}

#[test]
fn a_schema_that_cannot_be_enforced_is_put_into_words() {
    let mut bench = Bench::of(Outcome::Complete);
    bench.fail(FailureKind::Invalid);
    let again = bench.asked[1].1.clone();
    assert_eq!((again.seat.as_str(), &again.schema), ("chair", &None));
    assert!(again.prompt.turn.contains(&schema().to_string()));
    bench.reply(GOOD);
    bench.save();
    assert!(bench.value().expect("a value").is_ok());
    // Services take schemas of objects only; our engine takes any.
    let list = json!({"type": "array", "items": {"type": "string"}});
    for (name, native) in [("ann", false), ("local", true)] {
        let alone = vec![
            message(1, "king", "Which?", None),
            message(2, name, "SQLite.", Some(1)),
            yielded(Outcome::Complete),
        ];
        let mut bench = Bench::new(list.clone(), vec![alone]);
        bench.feed(Input::Op(Op::Close));
        let request = &bench.asked[0].1;
        assert_eq!(request.schema.is_some(), native, "{name}");
        assert_eq!(request.prompt.turn.contains("\"array\""), !native);
        assert!(request.prompt.turn.contains("The messages above"));
        bench.reply("[\"SQLite\"]");
        bench.save();
        assert_eq!(bench.value(), Some(Ok(json!(["SQLite"]))));
    }
}

#[test]
fn nothing_is_asked_for_where_there_is_no_answer() {
    for outcome in [Outcome::Failed, Outcome::Interrupted] {
        let bench = Bench::of(outcome);
        assert_eq!((bench.asked.len(), bench.yields()), (0, 1));
        assert_eq!(bench.value(), None);
    }
    let silent = vec![
        message(1, "king", "Which?", None),
        yielded(Outcome::Complete),
    ];
    let mut bench = Bench::new(schema(), vec![silent]);
    bench.feed(Input::Op(Op::Close));
    assert_eq!((bench.asked.len(), bench.yields()), (0, 1));
}

#[test]
fn the_user_stops_it_and_the_answer_in_words_stays() {
    let mut bench = Bench::of(Outcome::Complete);
    let turn = bench.turn();
    bench.feed(Input::Op(Op::Interrupt));
    bench.feed(Input::Op(Op::Interrupt));
    assert_eq!(bench.cancelled, [turn]);
    bench.fail(FailureKind::Crashed);
    assert_eq!((bench.asked.len(), bench.yields()), (1, 1));
    assert_eq!(bench.value(), Some(Err("stopped by the user".into())));
    // Messages that the user sends meanwhile are handled after it.
    let mut bench = Bench::new(schema(), vec![round(Outcome::Complete), Vec::new(), vec![]]);
    bench.feed(Input::Op(Op::Close));
    let say = Op::Say {
        body: "More?".into(),
        to: Address::All,
    };
    bench.feed(Input::Op(say));
    bench.reply(GOOD);
    bench.save();
    assert_eq!(bench.yields(), 1);
}

#[test]
fn a_value_that_cannot_be_written_is_a_failure() {
    let mut bench = Bench::of(Outcome::Complete);
    bench.reply(GOOD);
    let turn = Some(bench.turn());
    let why = "the disk is full".to_owned();
    bench.feed(Input::SaveFailed { turn, why });
    assert_eq!(bench.yields(), 1);
    let value = bench.value();
    assert_eq!(
        value,
        Some(Err(
            "the value could not be written: the disk is full".into()
        ))
    );
    // Late pieces change nothing.
    let before = bench.events.len();
    bench.reply(GOOD);
    assert_eq!(bench.events.len(), before);
}

#[test]
fn a_round_that_was_cut_off_is_formatted_by_the_next_session() {
    let mut before = round(Outcome::Complete);
    let end = before.pop().expect("its end");
    let format = |turn: u32| queued(TURNS_FROM + turn, "chair", Purpose::Format);
    before.push(format(1));
    let opened = || Effects {
        events: vec![end.clone()],
        ..Effects::default()
    };
    let mut bench = Bench::new(schema(), Vec::new());
    bench.machine = bench.machine.after(&before);
    let fx = bench.machine.opened(opened());
    assert!(!fx.events.contains(&end), "its value comes first");
    let [Command::Ask { turn, request }] = fx.commands.as_slice() else {
        panic!("{:?}", fx.commands);
    };
    assert_eq!(turn.number, TURNS_FROM + 2, "no number is used twice");
    assert_eq!(request.seat.as_str(), "chair");
    bench.asked.push((*turn, (**request).clone()));
    bench.reply(GOOD);
    bench.save();
    assert_eq!(bench.events.last(), Some(&end));
    // A value that is written is not written again.
    before.push(message(
        5,
        "chair",
        &fenced(&json!({"answer": "SQLite"})),
        Some(TURNS_FROM + 1),
    ));
    let mut bench = Bench::new(schema(), Vec::new());
    bench.machine = bench.machine.after(&before);
    let fx = bench.machine.opened(opened());
    assert_eq!((fx.events, fx.commands.len()), (vec![end], 0));
    // A record may hold any number.
    let hostile = queued(u32::MAX, "chair", Purpose::Format);
    let mut bench = Bench::new(schema(), vec![round(Outcome::Complete)]);
    bench.machine = bench.machine.after(&[hostile]);
    bench.feed(Input::Op(Op::Close));
    assert!(bench.turn().is_format());
}

#[test]
fn only_our_own_messages_hold_a_value() {
    let Event::MessageAdded { mut message, .. } = message(1, "ann", "", None) else {
        unreachable!()
    };
    let value = json!({"text": "```\n# not a fence"});
    message.body = fenced(&value).into();
    assert_eq!(value_of(&message), None);
    message.extra.insert(PURPOSE.into(), FORMAT.into());
    assert_eq!(value_of(&message), Some(value));
    message.body = "```json\nno\n```".into();
    assert_eq!(value_of(&message), None);
}
