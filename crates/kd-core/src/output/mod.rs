//! Output in a JSON schema: once a round has an answer in words, the member that concluded writes it as one JSON value.
//!
//! Input: another machine, whose round this one lets run. Output: the same effects; before the round yields, the turns that
//! format its answer, and the message with the value. The answer in words, the votes and the decision come from the
//! inner machine. If the schema does not allow a reply, the member is asked once more, with a list of the mistakes. A
//! member that fails is replaced once.

mod round;

#[cfg(test)]
mod tests;

use crate::clean::clean_line;
use crate::council::PURPOSE;
use crate::draft::{self, Ended};
use crate::event::{Event, Outcome, Purpose};
use crate::failure::{Failure, FailureKind};
use crate::hearing::Hearing;
use crate::ids::{MachineId, SeatName, TurnId};
use crate::machine::{Command, Effects, Input, Machine};
use crate::message::{Draft, Message};
use crate::op::Op;
use crate::request::{Delta, Finish, Request};
use crate::roster::Member;
use crate::seating::LOCAL;
use crate::spending::{Ceiling, Keep};
use crate::usage::Usage;
use jiff::Timestamp;
use kd_reading::Unread;
use round::{Round, Task};
use serde_json::Value;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Value of [`PURPOSE`] in the front matter of a message with the value.
pub const FORMAT: &str = "format";
/// The first number of the turns that format. No round has that many others.
const TURNS_FROM: u32 = 1 << 31;
/// Maximum members that are asked, one after another.
const MEMBERS_MAX: usize = 2;
/// Maximum values of a reply that are checked against the schema: checking takes time.
const CANDIDATES_MAX: usize = 64;
/// Maximum bytes of a reply.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Maximum characters of a reason.
const LINE_CHARS_MAX: usize = 400;
/// The opening and the closing line of a value in its message.
const FENCE: (&str, &str) = ("```json\n", "\n```");

/// The form of an answer.
pub trait Schema: Send + Sync {
    /// Returns the JSON schema.
    fn json(&self) -> &Value;

    /// Returns whether it allows a value.
    fn allows(&self, value: &Value) -> bool;

    /// Returns the mistakes of a value that it does not allow, one line each.
    fn faults(&self, value: &Value) -> Vec<String>;

    /// Returns whether it allows nothing but objects: services take no other schemas.
    fn is_of_objects(&self) -> bool {
        self.json().get("type").and_then(Value::as_str) == Some("object")
    }
}

/// Why a reply holds no value of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(pub Vec<String>);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

/// Reads the value in a reply.
///
/// # Errors
/// If the reply holds no value that the schema allows, or several that differ.
pub fn read(schema: &dyn Schema, reply: &str) -> Result<Value, Mismatch> {
    let left = Cell::new(CANDIDATES_MAX);
    let allows = |value: &Value| {
        let may = left.get() > 0;
        left.set(left.get().saturating_sub(1));
        may && schema.allows(value)
    };
    kd_reading::value(reply, allows).map_err(|why| {
        Mismatch(match kd_reading::value(reply, |_| true) {
            Ok(value) if why == Unread::Missing => schema.faults(&value),
            Err(Unread::Missing) => vec!["the reply holds no JSON value".to_owned()],
            _ => vec![why.words().to_owned()],
        })
    })
}

impl TurnId {
    /// Returns whether the turn formats the answer of a round.
    pub fn is_format(self) -> bool {
        self.number >= TURNS_FROM
    }
}

/// Returns the text of a message with a value.
fn fenced(value: &Value) -> String {
    format!("{}{value:#}{}", FENCE.0, FENCE.1)
}

/// Returns the value in a message that formats an answer. `None` for other messages.
pub fn value_of(message: &Message) -> Option<Value> {
    let formats = message.extra.get(PURPOSE).is_some_and(|p| p == FORMAT);
    let json = message.body.strip_prefix(FENCE.0)?.strip_suffix(FENCE.1)?;
    serde_json::from_str(json).ok().filter(|_| formats)
}

/// The state machine.
pub struct Formatted {
    inner: Box<dyn Machine + Send>,
    schema: Arc<dyn Schema>,
    members: Vec<Member>,
    round: Round,
    stage: Stage,
    /// Turns so far.
    turns: u32,
}

enum Stage {
    /// The inner machine has the floor.
    Waiting,
    Formatting(Box<Formatting>),
}

/// The turns that format one answer.
struct Formatting {
    /// The commands after them: the end of the round.
    held: Vec<Event>,
    /// Members that may still be asked.
    next: Vec<Member>,
    turn: Turn,
    /// Whether a reply was asked for once more.
    repaired: bool,
    stopped: bool,
    /// Operations that wait for the end.
    later: Vec<Op>,
}

struct Turn {
    id: TurnId,
    member: Member,
    text: String,
    ear: Hearing,
    /// Whether the service enforces the schema.
    native: bool,
    /// The usage of a whole reply, while its message is being written.
    saving: Option<Option<Usage>>,
}

impl Formatted {
    /// Lets a machine run, and formats the answers of its rounds. `members` are all that it may ask.
    pub fn new(
        inner: Box<dyn Machine + Send>,
        schema: Arc<dyn Schema>,
        members: Vec<Member>,
    ) -> Self {
        Self {
            inner,
            schema,
            members,
            round: Round::default(),
            stage: Stage::Waiting,
            turns: 0,
        }
    }

    /// Continues a round that is recorded: these events happened before.
    #[must_use]
    pub fn after(mut self, events: &[Event]) -> Self {
        for event in events {
            if let Some(turn) = event.turn().filter(|turn| turn.is_format()) {
                // A record may hold any number.
                self.turns = self.turns.max(turn.number - TURNS_FROM).min(TURNS_FROM / 2);
            }
            self.round.note(event);
        }
        self
    }

    /// Passes on what opening the inner machine does.
    pub fn opened(&mut self, opened: Effects) -> Effects {
        let mut fx = Effects::default();
        self.pass_on(opened, &mut fx);
        fx
    }

    /// Passes on what the inner machine does, up to the end of a round that has an answer.
    fn pass_on(&mut self, inner: Effects, fx: &mut Effects) {
        fx.commands.extend(inner.commands);
        for event in inner.events {
            if let Stage::Formatting(formatting) = &mut self.stage {
                formatting.held.push(event);
                continue;
            }
            self.round.note(&event);
            let answered = matches!(
                event,
                Event::FloorYielded {
                    outcome: Outcome::Complete | Outcome::Partial,
                    ..
                }
            );
            let mut next = match answered && self.round.is_answered() && !self.round.has_value {
                true => self.writers(),
                false => Vec::new(),
            };
            if next.is_empty() {
                fx.events.push(event);
                continue;
            }
            let first = next.remove(0);
            let turn = self.ask(first, None, true, fx);
            self.stage = Stage::Formatting(Box::new(Formatting {
                held: vec![event],
                next,
                turn,
                repaired: false,
                stopped: false,
                later: Vec::new(),
            }));
        }
    }

    /// Returns the members that may write the value: the one that concluded, then those that answered.
    fn writers(&self) -> Vec<Member> {
        let said = self.round.said.iter().rev();
        let names = said.filter_map(|message| SeatName::sender(&message.from).ok());
        let mut writers: Vec<Member> = Vec::new();
        for name in self.round.concluded.clone().into_iter().chain(names) {
            if writers.iter().any(|member| member.name == name) {
                continue;
            }
            let member = self.members.iter().find(|member| member.name == name);
            writers.extend(member.cloned());
        }
        writers.truncate(MEMBERS_MAX);
        writers
    }

    /// Asks a member for the value. `wrong` are the mistakes of its last reply; `native` lets the service enforce the
    /// schema.
    fn ask(
        &mut self,
        member: Member,
        wrong: Option<(&str, &Mismatch)>,
        native: bool,
        fx: &mut Effects,
    ) -> Turn {
        self.turns += 1;
        let id = self.inner.id().turn(TURNS_FROM + self.turns);
        // Services take schemas of objects only.
        let native = native && (self.schema.is_of_objects() || member.backend == LOCAL);
        let prompt = self.round.prompt(&Task {
            seat: &member.name,
            members: &self.members,
            in_words: (!native).then_some(self.schema.json()),
            wrong,
        });
        fx.events.push(Event::TurnQueued {
            turn: id,
            seat: member.name.clone(),
            purpose: Purpose::Format,
            replaces: None,
            ahead: Vec::new(),
        });
        fx.commands.push(Command::Ask {
            turn: id,
            request: Box::new(Request {
                seat: member.name.clone(),
                prompt,
                sampling: member.sampling.clone(),
                schema: native.then(|| self.schema.json().clone()),
                deadlines: member.deadlines,
                writable: false,
                tools: None,
                attachments: Vec::new(),
                schema_of_user: native,
                reads: false,
            }),
        });
        Turn {
            id,
            member,
            text: String::new(),
            ear: Hearing::default(),
            native,
            saving: None,
        }
    }

    /// Asks a member in place of the turn that ended.
    fn ask_next(
        &mut self,
        member: Member,
        wrong: Option<(&str, &Mismatch)>,
        native: bool,
        fx: &mut Effects,
    ) {
        let turn = self.ask(member, wrong, native, fx);
        if let Stage::Formatting(formatting) = &mut self.stage {
            formatting.turn = turn;
        }
    }

    /// Returns the turns that format if this turn, still open, is the newest of them.
    fn formatting(&mut self, turn: TurnId, saving: bool) -> Option<&mut Formatting> {
        match &mut self.stage {
            Stage::Formatting(formatting)
                if formatting.turn.id == turn && formatting.turn.saving.is_some() == saving =>
            {
                Some(formatting)
            }
            _ => None,
        }
    }

    /// Handles a piece of a reply.
    fn hear(&mut self, now: Timestamp, id: TurnId, mut delta: Delta, fx: &mut Effects) {
        let Some(formatting) = self.formatting(id, false) else {
            return;
        };
        let turn = &mut formatting.turn;
        turn.ear.clean(&mut delta);
        match &mut delta {
            Delta::Text { text } => turn.text.push_str(text),
            Delta::Retrying { .. } => turn.text.clear(),
            Delta::Finished {
                text: Some(whole), ..
            } => turn.text.clone_from(whole),
            _ => {}
        }
        if turn.text.len() > TEXT_BYTES_MAX {
            fx.commands.push(Command::Cancel { turn: id });
            let why = format!("the reply exceeded {TEXT_BYTES_MAX} bytes");
            let failure = Failure::new(FailureKind::Decode, why).uncounted();
            return self.failed(now, id, failure, fx);
        }
        let (finish, usage) = match &delta {
            Delta::Finished { finish, usage, .. } => (*finish, *usage),
            _ => {
                fx.events.push(Event::TurnDelta { turn: id, delta });
                return;
            }
        };
        let text = std::mem::take(&mut turn.text);
        match read(&*self.schema, &text) {
            Ok(value) => self.write(now, id, (&value, finish, usage), fx),
            Err(wrong) => self.unusable(now, id, (&text, &wrong, usage), fx),
        }
    }

    /// Writes the message with the value.
    fn write(
        &mut self,
        now: Timestamp,
        id: TurnId,
        (value, finish, usage): (&Value, Finish, Option<Usage>),
        fx: &mut Effects,
    ) {
        let Some(formatting) = self.formatting(id, false) else {
            return;
        };
        let turn = &mut formatting.turn;
        turn.saving = Some(usage);
        let body = fenced(value);
        fx.events.push(Event::TurnDelta {
            turn: id,
            delta: Delta::Finished {
                finish,
                text: Some(body.clone()),
                usage,
                choices: Vec::new(),
            },
        });
        let ended = Ended {
            turn: id,
            seat: &turn.member.name,
            body: &body,
            result: &Ok(()),
            finish: None,
            tokens: None,
            model: turn.ear.model.as_deref(),
            version: turn.ear.version.as_deref(),
            member: Some(&turn.member),
        };
        let mut draft: Draft = draft::of_turn(&ended, now);
        draft.extra.insert(PURPOSE.to_owned(), FORMAT.to_owned());
        fx.commands.push(Command::Save(Box::new(draft)));
    }

    /// Handles a reply without a usable value: asks once more, or gives up.
    fn unusable(
        &mut self,
        now: Timestamp,
        id: TurnId,
        (text, wrong, usage): (&str, &Mismatch, Option<Usage>),
        fx: &mut Effects,
    ) {
        let why = clean_line(&wrong.to_string(), LINE_CHARS_MAX);
        let failure = Failure::new(
            FailureKind::Decode,
            format!("the reply does not match the schema: {why}"),
        )
        .advise("the answer in words is in the thread; ask again, simplify the schema, or take a larger model")
        .after(usage.as_ref());
        let Some(formatting) = self.formatting(id, false) else {
            return;
        };
        if std::mem::replace(&mut formatting.repaired, true) || formatting.stopped {
            formatting.next.clear();
            return self.failed(now, id, failure, fx);
        }
        let member = formatting.turn.member.clone();
        let native = formatting.turn.native;
        let seat = member.name.clone();
        fx.events.push(Event::TurnFailed {
            turn: id,
            seat,
            failure: failure.advise("none needed: the member is asked once more"),
            message: None,
        });
        self.ask_next(member, Some((text, wrong)), native, fx);
    }

    /// Handles a turn that broke off: asks the next member, or gives up.
    fn failed(&mut self, now: Timestamp, id: TurnId, mut failure: Failure, fx: &mut Effects) {
        let Some(formatting) = self.formatting(id, false) else {
            return;
        };
        failure.message = clean_line(&failure.message, LINE_CHARS_MAX);
        if formatting.stopped {
            failure = Failure {
                used: failure.used,
                ..Failure::new(FailureKind::Cancelled, "stopped by the user")
            };
        }
        let kind = failure.kind;
        let (seat, native) = (formatting.turn.member.name.clone(), formatting.turn.native);
        fx.events.push(Event::TurnFailed {
            turn: id,
            seat: seat.clone(),
            failure,
            message: None,
        });
        let over = matches!(kind, FailureKind::Cancelled | FailureKind::Limit);
        let next = match (over || formatting.stopped, kind) {
            (true, _) => None,
            // A schema that the model's engine cannot enforce is put into words.
            (false, FailureKind::Invalid) if native => {
                Some((formatting.turn.member.clone(), false))
            }
            (false, _) if formatting.next.is_empty() => None,
            (false, _) => Some((formatting.next.remove(0), true)),
        };
        let Some((member, native)) = next else {
            return self.release(now, fx);
        };
        if member.name != seat {
            let text = format!(
                "{} puts the answer into JSON in place of {seat}",
                member.name
            );
            fx.events.push(Event::Noticed { text });
        }
        self.ask_next(member, None, native, fx);
    }

    /// Handles the message on disk.
    fn saved(&mut self, now: Timestamp, id: TurnId, message: Message, fx: &mut Effects) {
        let Some(formatting) = self.formatting(id, true) else {
            return;
        };
        let seat = formatting.turn.member.name.clone();
        let usage = formatting.turn.saving.flatten();
        let seq = message.seq;
        fx.events.push(Event::MessageAdded {
            found: false,
            message,
            turn: Some(id),
        });
        fx.events.push(Event::TurnFinished {
            turn: id,
            seat,
            message: Some(seq),
            usage,
            tools: 0,
            thought: 0,
        });
        self.release(now, fx);
    }

    /// Handles a message that could not be written.
    fn save_failed(&mut self, now: Timestamp, id: TurnId, why: &str, fx: &mut Effects) {
        let Some(formatting) = self.formatting(id, true) else {
            return;
        };
        let seat = formatting.turn.member.name.clone();
        let usage = formatting.turn.saving.flatten();
        let why = clean_line(why, LINE_CHARS_MAX);
        let said = format!("the value could not be written: {why}");
        fx.events.push(Event::SaveFailed {
            turn: Some(id),
            why,
        });
        let failure = Failure::new(FailureKind::Crashed, said)
            .advise("check the disk and the permissions of the thread's folder, then ask again")
            .after(usage.as_ref());
        fx.events.push(Event::TurnFailed {
            turn: id,
            seat,
            failure,
            message: None,
        });
        self.release(now, fx);
    }

    /// Ends the round.
    fn release(&mut self, now: Timestamp, fx: &mut Effects) {
        let Stage::Formatting(formatting) = std::mem::replace(&mut self.stage, Stage::Waiting)
        else {
            return;
        };
        self.round = Round::default();
        fx.events.extend(formatting.held);
        for op in formatting.later {
            let inner = self.inner.step(now, Input::Op(op));
            self.pass_on(inner, fx);
        }
    }

    fn op(&mut self, now: Timestamp, op: Op, fx: &mut Effects) {
        if let Stage::Formatting(formatting) = &mut self.stage {
            let stops = match &op {
                Op::Interrupt => true,
                Op::Stop { seat } => *seat == formatting.turn.member.name,
                // Running turns may end.
                Op::Close => false,
                _ => return formatting.later.push(op),
            };
            if stops {
                let first = !std::mem::replace(&mut formatting.stopped, true);
                if first && formatting.turn.saving.is_none() {
                    let turn = formatting.turn.id;
                    fx.commands.push(Command::Cancel { turn });
                }
                return;
            }
        }
        let inner = self.inner.step(now, Input::Op(op));
        self.pass_on(inner, fx);
    }
}

impl Machine for Formatted {
    fn step(&mut self, now: Timestamp, input: Input) -> Effects {
        let mut fx = Effects::default();
        match input {
            Input::Delta { turn, delta } if turn.is_format() => {
                self.hear(now, turn, delta, &mut fx);
            }
            Input::Failed { turn, failure } if turn.is_format() => {
                self.failed(now, turn, failure, &mut fx);
            }
            Input::Saved {
                turn: Some(turn),
                message,
            } if turn.is_format() => self.saved(now, turn, message, &mut fx),
            Input::SaveFailed {
                turn: Some(turn),
                why,
            } if turn.is_format() => self.save_failed(now, turn, &why, &mut fx),
            // Its request does not depend on what others write.
            Input::Freed { turn, .. } if turn.is_format() => {}
            Input::Op(op) => self.op(now, op, &mut fx),
            input => {
                let inner = self.inner.step(now, input);
                self.pass_on(inner, &mut fx);
            }
        }
        fx
    }

    fn id(&self) -> MachineId {
        self.inner.id()
    }

    fn ceiling(&self) -> Ceiling {
        self.inner.ceiling()
    }

    fn keeps(&self, turn: TurnId) -> Keep {
        match turn.is_format() {
            true => Keep::default(),
            false => self.inner.keeps(turn),
        }
    }
}
