//! `--json`: one object when the round is over. The schema is `docs/schemas/ask.schema.json`.

use super::round::{Phase, Round, Turn};
use super::{Face, Io};
use kd_core::event::{FORMAT, Outcome, Purpose};
use kd_core::{FailureKind, Record, Usage};
use serde::Serialize;
use std::io;

/// The face of `--json`.
pub(crate) struct Json {
    quiet: bool,
}

impl Json {
    /// A face; `quiet` leaves out notices on stderr.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }
}

/// A round as one object.
#[derive(Serialize)]
pub(crate) struct Answered<'a> {
    v: u32,
    /// The id of the thread, under the name that kingdom-cli gives it too.
    thread_id: Option<&'a str>,
    question: Option<&'a str>,
    answers: Vec<Answer<'a>>,
    conclusion: Option<Answer<'a>>,
    outcome: Option<Outcome>,
    usage: Usage,
    /// The command that goes on from here.
    resume: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    member: &'a str,
    status: &'static str,
    text: &'a str,
    error: Option<Failed<'a>>,
    backend: Option<&'a str>,
    model: Option<&'a str>,
    usage: Option<Usage>,
    seconds: Option<f64>,
    /// The number of its message in the thread.
    message: Option<u32>,
}

#[derive(Serialize)]
struct Failed<'a> {
    kind: &'static str,
    message: &'a str,
    hint: &'a str,
}

/// The object of a round.
pub(crate) fn object(round: &Round) -> Answered<'_> {
    let thread = round.thread.as_ref().map(|t| t.0.as_str());
    let of = |purpose| {
        round
            .turns
            .iter()
            .filter(move |t| t.purpose == purpose)
            .map(answer)
    };
    Answered {
        v: FORMAT,
        thread_id: thread,
        question: round.question.as_ref().map(|q| q.body.as_str()),
        answers: of(Purpose::Answer).collect(),
        conclusion: of(Purpose::Conclude).next_back(),
        outcome: round.yielded.as_ref().map(|(outcome, _)| *outcome),
        usage: round
            .yielded
            .as_ref()
            .map(|(_, usage)| *usage)
            .unwrap_or_default(),
        resume: thread.map(|t| format!("kd ask --thread {t} …")),
    }
}

fn answer(turn: &Turn) -> Answer<'_> {
    let (status, error) = match &turn.phase {
        Phase::Done => ("complete", None),
        Phase::Failed(failure) => (
            match failure.kind {
                FailureKind::Timeout => "timeout",
                FailureKind::Cancelled => "interrupted",
                _ => "error",
            },
            Some(Failed {
                kind: failure.kind.as_str(),
                message: &failure.message,
                hint: failure.hint(),
            }),
        ),
        _ => ("open", None),
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
        usage: turn.usage,
        seconds: turn.ended.map(|end| turn.elapsed(end).as_secs_f64()),
        message: turn.message.as_ref().map(|m| m.seq),
    }
}

/// JSON text that is safe on a terminal too: what JSON itself leaves raw of controls and direction marks is escaped.
pub(crate) fn text(value: &impl Serialize, pretty: bool) -> io::Result<String> {
    let json = if pretty {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    }
    .map_err(io::Error::other)?;
    let raw = |c: char| c != '\n' && crate::render::clean::is_unsafe(c);
    if !json.contains(raw) {
        return Ok(json);
    }
    let mut safe = String::with_capacity(json.len() + 16);
    let mut units = [0; 2];
    for c in json.chars() {
        if raw(c) {
            for unit in c.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    Ok(safe)
}

impl Face for Json {
    fn hear(&mut self, _record: &Record, _round: &Round, _io: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }

    fn notice(&mut self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        writeln!(io.err, "{}", crate::render::clean::line(line))
    }

    fn catch_up(&mut self, _round: &Round, _io: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, round: &Round, io: &mut Io<'_>) -> io::Result<()> {
        writeln!(io.out, "{}", text(&object(round), true)?)?;
        io.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::jsonl::JsonLines;
    use crate::face::script::full_round;

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
    fn json_on_a_terminal_is_harmless() {
        let json = text(&"a\u{9b}2J\u{7f}\u{202e}\u{e0041}b", false).expect("text");
        assert!(json.is_ascii(), "{json}");
        let back: String = serde_json::from_str(&json).expect("JSON");
        assert_eq!(back, "a\u{9b}2J\u{7f}\u{202e}\u{e0041}b");
    }
}
