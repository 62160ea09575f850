//! `--json`: one object when the round is over. The schema is `docs/schemas/ask.schema.json`.

use super::{Face, Io};
pub(crate) use kd_app::json::text;
use kd_core::event::{DuetEnd, Outcome, Purpose};
use kd_core::formats::ASK;
use kd_core::view::{State, Turn, View};
use kd_core::{Failure, FailureKind, Message, Record, Usage};
use serde::Serialize;
use serde_json::Value;
use std::io;

/// The output of `--json`.
pub(crate) struct Json {
    quiet: bool,
    council: bool,
}

impl Json {
    /// Creates the output; `quiet` omits notices on stderr.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            council: false,
        }
    }

    /// Includes messages between members.
    pub(crate) fn with_council(mut self, council: bool) -> Self {
        self.council = council;
        self
    }
}

/// A round as one object.
#[derive(Serialize)]
pub(crate) struct Answered<'a> {
    v: u32,
    /// The thread's ID, under the same name as in kingdom-cli.
    thread_id: Option<&'a str>,
    question: Option<&'a str>,
    answers: Vec<Answer<'a>>,
    conclusion: Option<Answer<'a>>,
    /// Only for `kd think`.
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think<'a>>,
    /// The answer in the schema of `--output-schema`; null if it could not be put into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// Why it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_error: Option<Failed<'a>>,
    outcome: Option<Outcome>,
    usage: Value,
    /// Settings of the folder that are held back.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    held_back: &'a [String],
    /// The command to continue from here.
    resume: Option<String>,
}

#[derive(Serialize)]
struct Think<'a> {
    /// The answer; `None` if no member could give one.
    answer: Option<&'a str>,
    by: Option<&'a str>,
    message: Option<u32>,
    ended: DuetEnd,
    exchanged: u32,
    /// Messages between members, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    council: Option<Vec<Whispered<'a>>>,
}

#[derive(Serialize)]
struct Whispered<'a> {
    from: &'a str,
    to: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct Answer<'a> {
    member: &'a str,
    status: &'static str,
    text: &'a str,
    error: Option<Failed<'a>>,
    backend: Option<&'a str>,
    model: Option<&'a str>,
    usage: Option<Value>,
    seconds: Option<f64>,
    /// The number of its message in the thread.
    message: Option<u32>,
    /// Whether it was cut off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    /// What cut it off: `length` for the token limit, `repetition` where the model repeated its prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<&'static str>,
}

#[derive(Serialize)]
pub(crate) struct Failed<'a> {
    kind: &'static str,
    message: &'a str,
    hint: &'a str,
}

/// Describes a duet; `council` includes the messages between members.
fn think(view: &View, council: bool) -> Option<Think<'_>> {
    let end = view.debate?;
    let turn = view.answer();
    let whispers = view.whispers.iter().map(|w| Whispered {
        from: w.from.as_str(),
        to: w.to.as_str(),
        text: &w.text,
    });
    Some(Think {
        answer: turn.map(Turn::body),
        by: turn.map(|t| t.seat.as_str()),
        message: end.answer,
        ended: end.why,
        exchanged: end.exchanged,
        council: council.then(|| whispers.collect()),
    })
}

/// Builds the object of a round; `council` includes messages between members.
pub(crate) fn object(view: &View, council: bool) -> Answered<'_> {
    let thread = view.thread.as_ref().map(|t| t.0.as_str());
    let of = |purpose| {
        view.turns
            .iter()
            .filter(move |t| t.purpose == purpose && !t.is_silent())
            .map(answer)
    };
    let (output, output_error) = output(view);
    Answered {
        v: ASK.version,
        thread_id: thread,
        question: view.question.as_ref().map(|q| q.body.as_str()),
        answers: of(Purpose::Answer).collect(),
        conclusion: of(Purpose::Conclude).next_back(),
        think: think(view, council),
        output,
        output_error,
        outcome: view.outcome,
        usage: view
            .yielded()
            .map(|(_, usage)| usage)
            .unwrap_or_default()
            .to_json(),
        held_back: &view.held_back,
        resume: thread.map(|t| {
            let command = if view.debate.is_some() {
                "think"
            } else {
                "ask"
            };
            format!("kd {command} --thread {t} …")
        }),
    }
}

/// Returns the answer in the schema that was asked for, or null and the reason; nothing if none was asked for.
pub(crate) fn output(view: &View) -> (Option<Value>, Option<Failed<'_>>) {
    match view.output() {
        None => (None, None),
        Some(Ok(value)) => (Some(value), None),
        Some(Err(failure)) => (Some(Value::Null), Some(failed(failure))),
    }
}

fn failed(failure: &Failure) -> Failed<'_> {
    Failed {
        kind: failure.kind.as_str(),
        message: &failure.message,
        hint: failure.hint(),
    }
}

fn answer(turn: &Turn) -> Answer<'_> {
    let (status, error) = match &turn.state {
        State::Done => ("complete", None),
        State::Failed(failure) => (
            match failure.kind {
                FailureKind::Timeout => "timeout",
                FailureKind::Cancelled => "interrupted",
                _ => "error",
            },
            Some(failed(failure)),
        ),
        State::Waiting
        | State::Started
        | State::Thinking
        | State::Tool { .. }
        | State::Answering
        | State::Retrying { .. }
        | State::Whole(_) => ("open", None),
    };
    Answer {
        member: turn.seat.as_str(),
        status,
        text: turn.body(),
        error,
        backend: turn
            .message
            .as_ref()
            .and_then(|m| m.provenance.backend.as_deref()),
        model: turn.model.as_deref(),
        usage: turn.usage.as_ref().map(Usage::to_json),
        seconds: turn.took().map(|took| took.as_secs_f64()),
        message: turn.message.as_ref().map(|m| m.seq),
        cut: turn.message.as_deref().is_some_and(Message::is_cut),
        finish: turn.message.as_deref().and_then(Message::cut),
    }
}

impl Face for Json {
    fn hear(&mut self, _record: &Record, _view: &View, _io: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }

    fn notice(&mut self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        writeln!(io.err, "{}", crate::render::clean::line(line))
    }

    fn catch_up(&mut self, _view: &View, _io: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        writeln!(io.out, "{}", text(&object(view, self.council), true)?)?;
        io.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::jsonl::JsonLines;
    use crate::face::script::{duet_round, full_round};
    use kd_core::Event;

    /// Checks values against a published schema.
    fn check(schema: &str, values: &[serde_json::Value]) {
        let schema = serde_json::from_str(schema).expect("the schema is JSON");
        let validator = jsonschema::validator_for(&schema).expect("the schema is one");
        for value in values {
            let errors: Vec<String> = validator
                .iter_errors(value)
                .map(|e| format!("{}: {e}", e.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
        }
    }

    #[test]
    fn one_object_that_its_schema_knows() {
        let (out, err) = full_round().play(&mut Json::new(false));
        assert_eq!(err, "");
        let value: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        insta::assert_snapshot!("json", out);
        check(
            include_str!("../../../../docs/schemas/ask.schema.json"),
            &[value],
        );
    }

    #[test]
    fn a_duet_is_told_with_its_words_only_where_they_are_wanted() {
        let (ask, record) = (
            include_str!("../../../../docs/schemas/ask.schema.json"),
            include_str!("../../../../docs/schemas/record.schema.json"),
        );
        for council in [false, true] {
            let (out, _) = duet_round().play(&mut Json::new(true).with_council(council));
            let value: serde_json::Value = serde_json::from_str(&out).expect("JSON");
            assert_eq!(value["think"]["answer"], "Perhaps; entropy stays open.");
            assert_eq!(value["think"]["ended"], "cap");
            assert_eq!(value["answers"].as_array().expect("a list").len(), 1);
            assert_eq!(value["think"]["council"].is_array(), council);
            check(ask, &[value]);
            let (lines, _) = duet_round().play(&mut JsonLines::new(true).with_council(council));
            assert_eq!(lines.contains("diluted"), council);
            assert_eq!(out.contains("diluted"), council);
            let values: Vec<serde_json::Value> = lines
                .lines()
                .map(|l| serde_json::from_str(l).expect("JSON"))
                .collect();
            check(record, &values);
        }
    }

    #[test]
    fn every_event_as_a_line_that_its_schema_knows() {
        let (out, err) = full_round().play(&mut JsonLines::new(false));
        assert_eq!(err, "");
        let values: Vec<serde_json::Value> = out
            .lines()
            .map(|l| serde_json::from_str(l).expect("each line is JSON"))
            .collect();
        assert_eq!(values.len(), full_round().records.len());
        check(
            include_str!("../../../../docs/schemas/record.schema.json"),
            &values,
        );
        let back: Vec<Record> = out
            .lines()
            .map(|l| serde_json::from_str(l).expect("reads back"))
            .collect();
        assert_eq!(back, full_round().records);
    }

    #[test]
    fn the_schema_knows_every_fact_of_a_deliberation() {
        let schema = include_str!("../../../../docs/schemas/record.schema.json");
        let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
        let event = |one: &&serde_json::Value| {
            one["properties"]["event"]["const"].as_str() == Some("deliberated")
        };
        let known = schema["oneOf"]
            .as_array()
            .expect("events")
            .iter()
            .find(event);
        let known = &known.expect("deliberated")["properties"]["fact"]["properties"]["fact"];
        let known: Vec<&str> = known["enum"]
            .as_array()
            .expect("names")
            .iter()
            .filter_map(|name| name.as_str())
            .collect();
        // The error for an unknown fact lists the known ones.
        let unknown = serde_json::json!({"fact": "?"});
        let unknown = serde_json::from_value::<kd_core::deliberation::Fact>(unknown);
        let listed = unknown.expect_err("no such fact").to_string();
        let (_, listed) = listed.split_once("expected one of").expect("a list");
        let mut facts: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
        let mut known = known;
        facts.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, facts);
    }

    #[test]
    fn what_is_held_back_is_a_line_that_its_schema_knows() {
        let mut view = duet_round();
        view.event(Event::HeldBack {
            settings: vec!["agents.e.command".into()],
            members: vec!["e".into()],
        });
        let (out, _) = view.play(&mut JsonLines::new(true));
        let line = out.lines().last().expect("a line");
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(value["event"], "held_back");
        check(
            include_str!("../../../../docs/schemas/record.schema.json"),
            &[value],
        );
    }

    #[test]
    fn json_on_a_terminal_is_harmless() {
        let json = text(&"a\u{9b}2J\u{7f}\u{202e}\u{e0041}b", false).expect("text");
        assert!(json.is_ascii(), "{json}");
        let back: String = serde_json::from_str(&json).expect("JSON");
        assert_eq!(back, "a\u{9b}2J\u{7f}\u{202e}\u{e0041}b");
    }
}
