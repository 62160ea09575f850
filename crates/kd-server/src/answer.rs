//! The result of a consultation: folded from its session's events, and rendered as text and JSON.

use kd_core::clean::clean_line;
use kd_core::deliberation::COUNCIL;
use kd_core::deliberation::report::Report;
use kd_core::event::{DuetEnd, Outcome, Purpose};
use kd_core::view::{Content, View};
use kd_core::{Event, Message, Record, SeatName, Status, TurnId, Usage};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum characters of a progress line.
const LINE_CHARS_MAX: usize = 400;

/// A consultation so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    thread: String,
    purposes: BTreeMap<TurnId, Purpose>,
    /// The members of the thread, in order.
    members: Vec<SeatName>,
    /// The usage of each message's turn.
    used: BTreeMap<u32, Usage>,
    /// The usage of each member so far, and whether one of its turns reported none.
    spent: BTreeMap<SeatName, (Usage, bool)>,
    /// Messages of members, in order, with their purpose.
    messages: Vec<(Message, Purpose)>,
    duet: Option<(DuetEnd, u32, Option<u32>)>,
    /// The state of a deliberation.
    council: Report,
    /// How it ended, and its usage.
    pub(crate) ended: Option<(Outcome, Usage)>,
    notices: Vec<String>,
    /// Notices of the host, before the session's own.
    before: Vec<String>,
}

impl Answer {
    /// Creates an answer that begins with notices of the host.
    pub(crate) fn new(before: Vec<String>) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// Folds in a record; returns a progress line about it, if any.
    pub(crate) fn hear(&mut self, record: &Record) -> Option<String> {
        if self.thread.is_empty() {
            record.thread.0.clone_into(&mut self.thread);
        }
        self.council.fold(&record.event);
        if let Event::TurnFinished {
            message: Some(message),
            usage: Some(usage),
            ..
        } = &record.event
        {
            self.used.insert(*message, *usage);
        }
        match &record.event {
            Event::TurnFinished { seat, usage, .. } => {
                let spent = self.spent.entry(seat.clone()).or_default();
                match usage {
                    Some(usage) => spent.0.add(usage),
                    None => spent.1 = true,
                }
            }
            Event::TurnFailed { seat, .. } => self.spent.entry(seat.clone()).or_default().1 = true,
            _ => {}
        }
        match &record.event {
            Event::Deliberated { fact } => {
                let line = self.council.told(fact, "·")?;
                Some(clean_line(&line, LINE_CHARS_MAX))
            }
            Event::ThreadOpened { members, .. } => {
                self.members.clone_from(members);
                None
            }
            // Stage events name the members they ask.
            Event::TurnQueued { turn, purpose, .. } if self.council.plan.is_some() => {
                self.purposes.insert(*turn, *purpose);
                None
            }
            Event::TurnQueued {
                turn,
                seat,
                purpose,
                ..
            } => {
                self.purposes.insert(*turn, *purpose);
                Some(format!("{seat} is asked"))
            }
            Event::PhaseBegan { seat, phase, .. } => {
                let phase = match phase {
                    kd_core::event::DuetPhase::FirstLook => "looks first",
                    kd_core::event::DuetPhase::Debate => "debates",
                    kd_core::event::DuetPhase::Decision => "decides",
                };
                Some(format!("{seat} {phase}"))
            }
            Event::MessageAdded {
                message,
                turn: Some(turn),
                ..
            } => {
                let purpose = self.purposes.get(turn).copied().unwrap_or(Purpose::Answer);
                self.messages.push((message.clone(), purpose));
                None
            }
            Event::MessageAdded {
                message,
                turn: None,
                ..
            } if message.from == COUNCIL => {
                self.messages.push((message.clone(), Purpose::Conclude));
                None
            }
            Event::TurnFinished { .. } | Event::TurnFailed { .. }
                if self.council.plan.is_some() =>
            {
                None
            }
            Event::TurnFinished { seat, message, .. } => Some(match message {
                Some(message) => format!("{seat} answered: {}", self.line(*message)),
                None => format!("{seat} is done"),
            }),
            Event::TurnFailed { seat, failure, .. } => Some(failed(seat, &failure.message)),
            Event::CouncilSaid {
                from, to, chars, ..
            } => Some(format!("{from} wrote {chars} characters to {to}")),
            Event::DuetEnded {
                why,
                exchanged,
                answer,
            } => {
                self.duet = Some((*why, *exchanged, *answer));
                None
            }
            Event::Noticed { text } => {
                self.notices.push(text.clone());
                Some(text.clone())
            }
            Event::FloorYielded { outcome, usage } => {
                self.ended = Some((*outcome, *usage));
                None
            }
            _ => None,
        }
    }

    /// Returns the first line of a message.
    fn line(&self, seq: u32) -> String {
        let of = self.messages.iter().find(|(m, _)| m.seq == seq);
        let first = of.and_then(|(m, _)| m.body.lines().find(|l| !l.trim().is_empty()));
        first.unwrap_or_default().chars().take(160).collect()
    }

    /// Returns whether any member answered.
    pub(crate) fn is_answer(&self) -> bool {
        self.ended
            .is_some_and(|(outcome, _)| matches!(outcome, Outcome::Complete | Outcome::Partial))
    }

    /// Returns the message that answers the question: a duet's final answer, else the conclusion, else the only answer.
    fn main(&self) -> Option<&Message> {
        if let Some((_, _, Some(seq))) = self.duet {
            return self.messages.iter().map(|(m, _)| m).find(|m| m.seq == seq);
        }
        let sound = || self.messages.iter().filter(|(m, _)| m.is_sound());
        let conclusion = sound()
            .rev()
            .find(|(_, purpose)| *purpose == Purpose::Conclude);
        let mut answers = sound();
        let only = answers.next().filter(|_| answers.next().is_none());
        conclusion.or(only).map(|(m, _)| m)
    }

    /// Returns whether a turn's text is expected to be the final answer.
    pub(crate) fn is_last_word(&self, turn: TurnId) -> bool {
        match self.purposes.get(&turn) {
            Some(Purpose::Conclude) => true,
            Some(Purpose::Answer) => self.members.len() == 1,
            _ => false,
        }
    }

    /// Returns the thread of the consultation.
    pub(crate) fn thread(&self) -> &str {
        &self.thread
    }

    /// Returns only the answer: the main message, else all answers under their members' names, in member order.
    pub(crate) fn content(&self) -> String {
        if let Some(main) = self.main() {
            return main.body.to_string();
        }
        let place = |from: &str| self.members.iter().position(|seat| seat.as_str() == from);
        let sound = self.messages.iter().map(|(m, _)| m);
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
        self.main().is_some_and(Message::is_cut)
    }

    /// Returns the usage of the answer's turn, or the sum if several members answer.
    pub(crate) fn usage(&self) -> Usage {
        let whole = || self.ended.map(|(_, usage)| usage).unwrap_or_default();
        let own = self.main().and_then(|main| self.used.get(&main.seq));
        own.copied().unwrap_or_else(whole)
    }

    /// Returns why no member answered, in one line.
    pub(crate) fn failure(&self) -> String {
        let failed = self.messages.iter().filter(|(m, _)| !m.is_sound());
        let told =
            failed.map(|(m, _)| format!("{}: {}", m.from, clean_line(&m.body, LINE_CHARS_MAX)));
        let told: Vec<String> = told.collect();
        match told.is_empty() {
            true => "no member answered".to_owned(),
            false => format!("no member answered; {}", told.join("; ")),
        }
    }

    /// Renders the answer as Markdown, for people and models.
    pub(crate) fn text(&self) -> String {
        let main = self.main();
        let mut text = String::new();
        if let Some(main) = main {
            let _ = writeln!(text, "{}\n", main.body);
        }
        for (message, _) in &self.messages {
            // Intermediate updates of a duet were already sent as progress.
            if self.duet.is_some() && message.is_sound()
                || main.is_some_and(|m| m.seq == message.seq)
            {
                continue;
            }
            let failed = match message.status {
                Some(Status::Complete) | None => "",
                Some(_) => " (failed)",
            };
            let _ = writeln!(text, "## {}{failed}\n\n{}\n", message.from, message.body);
        }
        for notice in self.before.iter().chain(&self.notices) {
            let _ = writeln!(text, "*{notice}*\n");
        }
        let _ = write!(text, "Thread: {}", self.thread);
        text
    }

    /// Renders the answer as JSON, for programs.
    pub(crate) fn json(&self) -> Value {
        let answers: Vec<Value> = self
            .messages
            .iter()
            .map(|(m, purpose)| {
                json!({"member": m.from, "text": m.body, "purpose": purpose, "status": m.status, "cut": m.is_cut(), "message": m.seq})
            })
            .collect();
        let members: Vec<Value> = self
            .spent
            .iter()
            .map(|(member, (usage, uncounted))| {
                json!({"member": member, "usage": usage.with_uncounted(*uncounted)})
            })
            .collect();
        let notices = [self.before.as_slice(), &self.notices].concat();
        let mut value = json!({
            "thread": self.thread,
            "outcome": self.ended.map(|(outcome, _)| outcome),
            "answer": self.main().map(|m| m.body.as_str()),
            "answers": answers,
            "members": members,
            "notices": notices,
            "usage": self.ended.map(|(_, usage)| usage).unwrap_or_default(),
        });
        if let Some(verdict) = &self.council.verdict {
            value["verdict"] = json!({
                "outcome": verdict.outcome, "heading": verdict.heading, "winner": verdict.winner,
                "agreement": verdict.confidence, "support": verdict.support, "dissent": verdict.dissent,
                "stopped": verdict.stopped, "spent": verdict.spent, "count": self.council.count(),
            });
            let notices = [self.before.as_slice(), &self.council.notices].concat();
            value["notices"] = json!(notices);
        }
        if let Some((why, exchanged, _)) = self.duet {
            value["ended"] = json!(why);
            value["exchanged"] = exchanged.into();
        }
        value
    }
}

fn failed(seat: &SeatName, why: &str) -> String {
    format!("{seat} failed: {why}")
}

/// Returns the schema of [`Answer::json`].
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "thread": {"type": "string", "description": "The thread that keeps everything."},
            "outcome": {"type": ["string", "null"], "enum": ["complete", "partial", "failed", "interrupted", null]},
            "answer": {"type": ["string", "null"], "description": "The answer: the conclusion, or the only one there is."},
            "answers": {"type": "array", "items": {"type": "object", "properties": {
                "member": {"type": "string"}, "text": {"type": "string"}, "purpose": {"type": "string"},
                "status": {"type": ["string", "null"]}, "cut": {"type": "boolean", "description": "The token limit cut the text off."}, "message": {"type": "integer"},
            }, "required": ["member", "text", "message"]}},
            "members": {"type": "array", "description": "What the turns of each member used.", "items": {"type": "object", "properties": {
                "member": {"type": "string"}, "usage": {"type": "object"},
            }, "required": ["member", "usage"]}},
            "notices": {"type": "array", "items": {"type": "string"}},
            "usage": {"type": "object"},
            "verdict": {"type": "object", "description": "Of `deliberate`: the kind of outcome, who supports it, who dissents and why, and the count."},
            "ended": {"type": "string", "description": "Of `think`: why the exchange ended."},
            "exchanged": {"type": "integer", "description": "Of `think`: how many messages the seats exchanged."},
        },
        "required": ["thread", "outcome", "answer", "answers", "usage"],
    })
}

impl Answer {
    /// Takes over a whole thread, after records were missed.
    pub(crate) fn catch_up(&mut self, view: &View) {
        if let Some(thread) = &view.thread {
            thread.0.clone_into(&mut self.thread);
        }
        for panel in &view.panels {
            if let Content::Message { message, .. } = &panel.content
                && !message.is_king()
                && !self.messages.iter().any(|(m, _)| m.seq == message.seq)
            {
                let purpose = if message.extra.contains_key("purpose") {
                    Purpose::Conclude
                } else {
                    Purpose::Answer
                };
                self.messages.push(((**message).clone(), purpose));
            }
        }
        self.ended = view.outcome.map(|outcome| (outcome, view.usage));
    }
}
