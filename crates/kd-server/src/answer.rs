//! The result of a consultation: read from the view of its session, and rendered as progress lines, text and JSON.

#![deny(clippy::wildcard_enum_match_arm)]

mod bill;

use kd_core::clean::clean_line;
use kd_core::deliberation::COUNCIL;
use kd_core::event::{Outcome, Purpose};
use kd_core::request::ToolCall;
use kd_core::view::{State, Turn, View};
use kd_core::{Delta, Event, Message, Record, Status, TurnId, Usage};
use serde_json::{Value, json};
use std::fmt::Write;

/// The separator between two texts of an acting member in one answer.
const GAP: &str = "\n\n";
/// Maximum characters of a progress line.
const LINE_CHARS_MAX: usize = 400;

/// A consultation so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    view: View,
    /// Notices of the host, before the session's own.
    before: Vec<String>,
    /// Whether one member acts with the client's tools: its text and its calls are the answer.
    acts: bool,
    /// Whether the answer is wanted in a JSON schema.
    formats: bool,
    /// Whether its thread is removed after it.
    is_passing: bool,
}

/// Progress of a running council.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    /// A progress line.
    Line(String),
    /// A piece of text expected to be part of the answer.
    Text(String),
    /// Discard the text so far: its turn starts again.
    Void,
}

impl Answer {
    /// Creates an answer that begins with notices of the host.
    pub(crate) fn new(before: Vec<String>, acts: bool, is_kept: bool) -> Self {
        Self {
            before,
            acts,
            is_passing: !is_kept,
            ..Self::default()
        }
    }

    /// Wants the answer in a JSON schema.
    pub(crate) fn formatting(self, formats: bool) -> Self {
        Self { formats, ..self }
    }

    /// Folds in a record; returns the progress it makes, if any.
    pub(crate) fn hear(&mut self, record: &Record) -> Option<Told> {
        self.view.fold_record(record);
        if let Event::TurnDelta { turn, delta } = &record.event {
            return self.piece(*turn, delta);
        }
        self.line(&record.event).map(Told::Line)
    }

    /// Takes over the current view, after records were missed: the text sent so far has gaps.
    pub(crate) fn catch_up(&mut self, view: View) -> Option<Told> {
        self.view = view;
        let mut turns = self.view.turns.iter().filter_map(|turn| turn.id);
        turns
            .any(|turn| self.is_last_word(turn))
            .then_some(Told::Void)
    }

    /// Returns the progress of a piece of an answer: only text of the final answer is sent.
    fn piece(&self, turn: TurnId, delta: &Delta) -> Option<Told> {
        let told = match delta {
            Delta::Text { text } => Told::Text(self.goes_on(turn, text) + text),
            Delta::Retrying { .. } => Told::Void,
            // Callers get text and progress lines, no thinking and no tools.
            Delta::Started { .. }
            | Delta::Thinking { .. }
            | Delta::Tool { .. }
            | Delta::Call { .. }
            | Delta::Notice { .. }
            | Delta::Finished { .. } => return None,
        };
        self.is_last_word(turn).then_some(told)
    }

    /// Returns the separator between the first piece of a turn and the acting member's earlier text.
    fn goes_on(&self, turn: TurnId, piece: &str) -> String {
        // The view holds the piece already.
        let is_first = self
            .view
            .turn(turn)
            .is_some_and(|turn| turn.text.len() == piece.len());
        match self.acts && is_first && !self.acted().is_empty() {
            true => GAP.to_owned(),
            false => String::new(),
        }
    }

    /// Returns the text of the acting member's finished turns that was meant for the client.
    fn acted(&self) -> String {
        let turns = self.view.turns.iter();
        let done = turns.filter(|t| t.purpose == Purpose::Conclude && t.state == State::Done);
        let texts = done.map(|turn| turn.text.as_str());
        texts
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(GAP)
    }

    /// Returns the acting member's last turn that ended well.
    fn acting(&self) -> Option<&Turn> {
        let is_acting = |t: &&Turn| matches!(t.purpose, Purpose::Conclude | Purpose::Exchange);
        let mut done = self.view.turns.iter().rev().filter(is_acting);
        done.find(|turn| turn.state == State::Done)
            .filter(|_| self.acts)
    }

    /// Returns the calls of the client's tools, which the client makes.
    pub(crate) fn calls(&self) -> &[ToolCall] {
        self.acting().map_or(&[], |turn| &turn.calls)
    }

    /// Returns a progress line about an event.
    fn line(&self, event: &Event) -> Option<String> {
        let report = &self.view.report;
        // Its words are sent as they arrive.
        if self.acts && event.turn().is_some_and(|turn| self.is_of_acting(turn)) {
            return None;
        }
        match event {
            Event::Deliberated { fact } => {
                let line = report.told(fact, "·")?;
                Some(clean_line(&line, LINE_CHARS_MAX))
            }
            // The facts of a deliberation name the members that are asked, answer and fail.
            Event::TurnQueued { .. } | Event::TurnFinished { .. } | Event::TurnFailed { .. }
                if report.plan.is_some() =>
            {
                None
            }
            Event::TurnQueued { seat, .. } => Some(format!("asking {seat}")),
            Event::PhaseBegan { seat, phase, .. } => {
                let phase = match phase {
                    kd_core::event::DuetPhase::FirstLook => "looks first",
                    kd_core::event::DuetPhase::Debate => "debates",
                    kd_core::event::DuetPhase::Decision => "decides",
                };
                Some(format!("{seat} {phase}"))
            }
            Event::TurnFinished { seat, message, .. } => Some(match message {
                Some(message) => format!("{seat} answered: {}", self.first_line(*message)),
                None => format!("{seat} is done"),
            }),
            Event::TurnFailed { seat, failure, .. } => {
                Some(format!("{seat} failed: {}", failure.message))
            }
            Event::CouncilSaid {
                from, to, chars, ..
            } => Some(format!("{from} wrote {chars} characters to {to}")),
            Event::Noticed { text } => Some(text.clone()),
            // Part of the answer, which is read from the view.
            Event::Promised { .. } => None,
            Event::ThreadOpened { .. }
            | Event::MessageAdded { .. }
            | Event::DuetEnded { .. }
            | Event::FloorYielded { .. }
            | Event::Reviewed { .. } => None,
            // Told as pieces of text.
            Event::TurnDelta { .. } => None,
            // End the consultation with an error.
            Event::OpRefused { .. } | Event::SaveFailed { .. } => None,
            // Of chats, and of other processes: not part of a consultation.
            Event::SayQueued { .. }
            | Event::SayTakenBack { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. }
            | Event::SeatMuted { .. }
            | Event::ModeSet { .. } => None,
            // The host tells it with its own notices.
            Event::HeldBack { .. } => None,
        }
    }

    /// Returns whether a turn is one of the acting member.
    fn is_of_acting(&self, turn: TurnId) -> bool {
        let purpose = self.view.turn(turn).map(|turn| turn.purpose);
        matches!(purpose, Some(Purpose::Conclude | Purpose::Exchange))
    }

    /// Returns how the consultation ended, and its usage; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<(Outcome, Usage)> {
        self.view.yielded()
    }

    /// Returns the messages of members, ordered by number, with their purpose.
    fn messages(&self) -> Vec<(&Message, Purpose)> {
        let turns = self.view.turns.iter();
        let own = turns.filter_map(|turn| Some((turn.message.as_deref()?, turn.purpose)));
        let panels = self.view.round().iter();
        let of_council = panels.filter_map(|panel| panel.content.message());
        let of_council = of_council.filter(|message| message.from == COUNCIL);
        let mut messages: Vec<(&Message, Purpose)> = own.collect();
        for message in of_council {
            if !messages.iter().any(|(m, _)| m.seq == message.seq) {
                messages.push((message, Purpose::Conclude));
            }
        }
        messages.sort_by_key(|(message, _)| message.seq);
        messages
    }

    /// Returns the first line of a message.
    fn first_line(&self, seq: u32) -> String {
        let messages = self.messages();
        let of = messages.iter().find(|(m, _)| m.seq == seq);
        let first = of.and_then(|(m, _)| m.body.lines().find(|l| !l.trim().is_empty()));
        first.unwrap_or_default().chars().take(160).collect()
    }

    /// Returns whether any member answered, in the schema if one is wanted.
    pub(crate) fn is_answer(&self) -> bool {
        let answered = matches!(
            self.view.outcome,
            Some(Outcome::Complete | Outcome::Partial)
        );
        answered && (!self.formats || matches!(self.view.output(), Some(Ok(_))))
    }

    /// Returns the message that answers the question: a debate's final answer, else the conclusion, else the only
    /// answer.
    fn main(&self) -> Option<&Message> {
        let messages = self.messages();
        if self.acts {
            return self.acting().and_then(|turn| turn.message.as_deref());
        }
        if let Some(seq) = self.view.debate.and_then(|debate| debate.answer) {
            return messages.iter().map(|(m, _)| *m).find(|m| m.seq == seq);
        }
        let in_words =
            |(m, purpose): &&(&Message, Purpose)| m.is_sound() && *purpose != Purpose::Format;
        let sound = || messages.iter().filter(in_words);
        let conclusion = sound()
            .rev()
            .find(|(_, purpose)| *purpose == Purpose::Conclude);
        let mut answers = sound();
        let only = answers.next().filter(|_| answers.next().is_none());
        conclusion.or(only).map(|(m, _)| *m)
    }

    /// Returns whether a turn's text is expected to be the final answer. False in a deliberation, whose verdict is
    /// composed from replies in a fixed form, and if the answer is requested in a schema.
    fn is_last_word(&self, turn: TurnId) -> bool {
        if self.view.report.plan.is_some() || self.formats {
            return false;
        }
        match self.view.turn(turn).map(|turn| turn.purpose) {
            Some(Purpose::Conclude) => true,
            Some(Purpose::Answer) => self.view.members.len() == 1,
            Some(
                Purpose::Plan
                | Purpose::Review
                | Purpose::Vote
                | Purpose::Revise
                | Purpose::Compress
                | Purpose::Arbitrate
                | Purpose::Exchange
                | Purpose::Format,
            )
            | None => false,
        }
    }

    /// Returns the thread of the consultation; `None` if it is not kept.
    pub(crate) fn thread(&self) -> Option<&str> {
        let thread = self.view.thread.as_ref().map(|thread| thread.0.as_str());
        thread.filter(|_| !self.is_passing)
    }

    /// Returns only the answer: its value in the schema if one is wanted, else the main message, else all answers under their members' names, in member order.
    pub(crate) fn content(&self) -> String {
        if let Some(turn) = self.acting() {
            return match turn.purpose == Purpose::Exchange {
                true => turn.text.clone(),
                false => self.acted(),
            };
        }
        if self.formats
            && let Some(Ok(value)) = self.view.output()
        {
            return value.to_string();
        }
        if let Some(main) = self.main() {
            return main.body.to_string();
        }
        let members = &self.view.members;
        let place = |from: &str| members.iter().position(|seat| seat.as_str() == from);
        let sound = self.messages().into_iter().map(|(m, _)| m);
        let mut sound: Vec<&Message> = sound.filter(|m| m.is_sound()).collect();
        sound.sort_by_key(|m| place(m.from.as_str()).unwrap_or(usize::MAX));
        let mut text = String::new();
        for message in sound {
            let _ = writeln!(text, "## {}\n\n{}\n", message.from, message.body);
        }
        text.trim_end().to_owned()
    }

    /// Returns whether a token limit cut off the answer.
    pub(crate) fn is_cut(&self) -> bool {
        !self.formats && self.main().is_some_and(Message::is_cut)
    }

    /// Returns why no member answered, in one line.
    pub(crate) fn failure(&self) -> String {
        if let Some(Err(failure)) = self.view.output() {
            let why = clean_line(&failure.message, LINE_CHARS_MAX);
            return format!("the answer could not be put into the schema; {why}");
        }
        // The body of a failed message may be an earlier text.
        let failed = self.view.turns.iter().filter_map(|turn| {
            let why = clean_line(&turn.failure()?.message, LINE_CHARS_MAX);
            Some(format!("{}: {why}", turn.seat))
        });
        let failed: Vec<String> = failed.collect();
        let nobody = match self.acts {
            true => "no answer",
            false => "no member answered",
        };
        match failed.is_empty() {
            true => nobody.to_owned(),
            false => format!("{nobody}; {}", failed.join("; ")),
        }
    }

    /// Renders the answer as Markdown, for people and models.
    pub(crate) fn text(&self) -> String {
        let main = self.main();
        let mut text = String::new();
        if let Some(main) = main {
            let _ = writeln!(text, "{}\n", main.shown());
        }
        for (message, _) in self.messages() {
            // Intermediate updates of a debate were already sent as progress.
            if self.view.debate.is_some() && message.is_sound()
                || main.is_some_and(|m| m.seq == message.seq)
            {
                continue;
            }
            let failed = match message.status {
                Some(Status::Complete) | None => "",
                Some(Status::Interrupted) => " (interrupted)",
                Some(Status::Timeout) => " (timed out)",
                Some(Status::Error) => " (failed)",
            };
            let shown = message.shown();
            let _ = writeln!(text, "## {}{failed}\n\n{shown}\n", message.from);
            if let Some(reason) = message.reason() {
                let _ = writeln!(text, "*Error: {reason}*\n");
            }
        }
        if let Some(promise) = self.promise() {
            let _ = writeln!(text, "*{promise}*\n");
        }
        for notice in self.before.iter().chain(&self.view.notices) {
            let _ = writeln!(text, "*{notice}*\n");
        }
        if let Some(thread) = self.thread() {
            let _ = write!(text, "Thread: {thread}");
        }
        text
    }

    /// Returns what the marks of the person who runs the server promise about the verdict.
    pub(crate) fn promise(&self) -> Option<String> {
        let promised = self.view.report.promised.as_ref();
        promised.map(|promise| promise.words())
    }

    /// Renders the answer as JSON, for programs.
    pub(crate) fn json(&self) -> Value {
        let answers: Vec<Value> = self
            .messages()
            .iter()
            .map(|(m, purpose)| {
                json!({"member": m.from, "text": m.body, "purpose": purpose, "status": m.status, "cut": m.is_cut(), "message": m.seq})
            })
            .collect();
        let spent = self.spent();
        let members: Vec<Value> = spent
            .iter()
            .map(|(member, (usage, uncounted))| {
                json!({"member": member, "usage": bill::bound(*usage, *uncounted).to_json()})
            })
            .collect();
        let notices = [self.before.as_slice(), &self.view.notices].concat();
        let mut value = json!({
            "thread": self.thread(),
            "outcome": self.view.outcome,
            "answer": self.main().map(|m| m.body.as_str()),
            "answers": answers,
            "members": members,
            "notices": notices,
            "usage": self.total().to_json(),
        });
        if let Some(Ok(output)) = self.view.output() {
            value["output"] = output;
        }
        let report = &self.view.report;
        if let Some(verdict) = &report.verdict {
            value["verdict"] = json!({
                "outcome": verdict.outcome, "heading": verdict.heading, "winner": verdict.winner,
                "agreement": verdict.confidence, "support": verdict.support, "dissent": verdict.dissent,
                "asks_back": verdict.asks_back, "stopped": verdict.stopped, "spent": verdict.spent, "count": report.count(),
            });
            if let Some(promised) = &report.promised {
                value["warranty"] = json!(promised);
                value["promise"] = promised.words().into();
            }
            let notices = [self.before.as_slice(), &report.notices].concat();
            value["notices"] = json!(notices);
        }
        if let Some(debate) = &self.view.debate {
            value["ended"] = json!(debate.why);
            value["exchanged"] = debate.exchanged.into();
        }
        value
    }
}

/// Returns the schema of [`Answer::json`].
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "thread": {"type": ["string", "null"], "description": "The thread that stores everything."},
            "outcome": {"type": ["string", "null"], "enum": ["complete", "partial", "failed", "interrupted", null]},
            "answer": {"type": ["string", "null"], "description": "The answer: the conclusion, or the only one there is."},
            "answers": {"type": "array", "items": {"type": "object", "properties": {
                "member": {"type": "string"}, "text": {"type": "string"}, "purpose": {"type": "string"},
                "status": {"type": ["string", "null"]}, "cut": {"type": "boolean", "description": "The token limit cut the text off."}, "message": {"type": "integer"},
            }, "required": ["member", "text", "message"]}},
            "members": {"type": "array", "description": "The tokens and calls that each member used.", "items": {"type": "object", "properties": {
                "member": {"type": "string"}, "usage": {"type": "object"},
            }, "required": ["member", "usage"]}},
            "notices": {"type": "array", "items": {"type": "string"}},
            "usage": {"type": "object"},
            "verdict": {"type": "object", "description": "For `deliberate`: the kind of outcome, who supports it, who dissents and why, the question that the council asks back, if any, and the count."},
            "warranty": {"type": "object", "description": "For `deliberate`: the share of right verdicts that your marks promise, or what is missing."},
            "promise": {"type": "string", "description": "The same in words."},
            "ended": {"type": "string", "description": "For `think`: why the debate ended."},
            "exchanged": {"type": "integer", "description": "For `think`: the number of messages the members exchanged."},
        },
        "required": ["thread", "outcome", "answer", "answers", "usage"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folds in events, as records.
    fn heard(answer: &mut Answer, events: &[Value]) {
        for (at, event) in events.iter().enumerate() {
            let mut record = event.clone();
            for (field, value) in [
                ("v", json!(1)),
                ("seq", json!(at + 1)),
                ("ts", json!("2026-06-01T00:00:00Z")),
                ("thread", json!("council-1")),
            ] {
                record[field] = value;
            }
            answer.hear(&serde_json::from_value(record).expect("a record"));
        }
    }

    #[test]
    fn the_usage_of_a_value_is_that_of_its_turn() {
        let format = (1_u64 << 31) + 2;
        let queued = |turn: u64, purpose: &str| json!({"event": "turn_queued", "turn": turn, "seat": "ann", "purpose": purpose});
        let message = |seq: u32, turn: Option<u64>, from: &str, body: &str, extra: Value| {
            json!({"event": "message_added", "turn": turn, "message": {"seq": seq, "from": from, "to": "all",
                "at": "2026-06-01T00:00:00Z", "status": turn.map(|_| "complete"), "refs": [], "provenance": {},
                "extra": extra, "body": body}})
        };
        let used = |tokens: u64| json!({"input_tokens": 10 * tokens, "output_tokens": tokens});
        let finished = |turn: u64, seq: u32, tokens: u64| json!({"event": "turn_finished", "turn": turn, "seat": "ann", "message": seq, "usage": used(tokens)});
        let value = "```json\n{\"answer\": 4}\n```";
        let events = [
            message(1, None, "king", "2 + 2?", json!({})),
            queued(1, "answer"),
            message(2, Some(1), "ann", "It is 4.", json!({})),
            finished(1, 2, 7),
            queued(format - 1, "format"),
            json!({"event": "turn_failed", "turn": format - 1, "seat": "ann", "message": null,
                "failure": {"kind": "decode", "message": "no JSON"}}),
            queued(format, "format"),
            message(3, Some(format), "ann", value, json!({"purpose": "format"})),
            finished(format, 3, 50),
            json!({"event": "floor_yielded", "outcome": "complete", "usage": used(7)}),
        ];
        for (formats, content, tokens) in [(true, r#"{"answer":4}"#, 50), (false, "It is 4.", 7)] {
            let mut answer = Answer::new(Vec::new(), false, true).formatting(formats);
            heard(&mut answer, &events);
            assert_eq!(answer.content(), content);
            let usage = answer.usage();
            assert_eq!(
                (usage.input_tokens, usage.output_tokens),
                (10 * tokens, tokens)
            );
        }
    }

    #[test]
    fn a_promise_and_a_question_back_are_told_with_the_verdict() {
        let verdict = json!({
            "outcome": "majority", "form": "majority", "heading": "A majority", "winner": "391",
            "confidence": 0.6, "support": ["ann"], "dissent": [], "answer": "391", "by": null,
            "message": 5, "asks_back": "In which base?", "cites": [], "passes": 1, "best_pass": 1,
            "stopped": "", "spent": {"calls": 0, "tokens": 0, "pico_usd": 0}, "troubles": [],
        });
        let promise = json!({
            "kind": "number", "marks": 9, "score": 1.0, "state": "none", "more": 23,
            "withdrawn": "2026-05-02T09:00:00Z",
        });
        let mut answer = Answer::new(Vec::new(), false, true);
        let mut seq = 0;
        let mut hear = |answer: &mut Answer, mut event: Value| {
            seq += 1;
            for (field, value) in [
                ("v", json!(1)),
                ("seq", json!(seq)),
                ("thread", json!("council-1")),
            ] {
                event[field] = value;
            }
            event["ts"] = json!("2026-06-01T00:00:00Z");
            answer.hear(&serde_json::from_value(event).expect("a record"));
        };
        let mut fact = verdict;
        fact["fact"] = json!("concluded");
        hear(&mut answer, json!({"event": "deliberated", "fact": fact}));
        // One of another verdict says nothing about this one.
        hear(
            &mut answer,
            json!({"event": "promised", "message": 3, "promise": promise}),
        );
        assert_eq!(answer.promise(), None);
        hear(
            &mut answer,
            json!({"event": "promised", "message": 5, "promise": promise}),
        );
        let words = "no promise: about 23 more marks of number questions by this council would do (9 so far); an earlier promise was withdrawn on 2026-05-02: later verdicts were wrong too often";
        assert_eq!(answer.promise().as_deref(), Some(words));
        assert!(
            answer.text().contains(&format!("*{words}*")),
            "{}",
            answer.text()
        );
        let told = answer.json();
        assert_eq!(told["promise"], words);
        assert_eq!(told["warranty"]["more"], 23);
        assert_eq!(told["verdict"]["asks_back"], "In which base?");
    }
}
