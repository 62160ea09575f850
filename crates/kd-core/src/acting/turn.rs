//! One turn: its pieces, its message on disk, and the next step.

use super::calls::Verdict;
use super::talk::spoken;
use super::{Acting, Phase, add, advice, calls};
use crate::clean::clean_line;
use crate::draft::{self, Ended};
use crate::event::{Event, Outcome, Purpose};
use crate::failure::{Failure, FailureKind};
use crate::hearing::Hearing;
use crate::ids::{SeatName, TurnId};
use crate::machine::{Command, Effects};
use crate::message::{Address, Message};
use crate::request::{Delta, Finish, Said, ToolCall};
use crate::usage::Usage;
use jiff::Timestamp;

/// Maximum bytes of an answer, thinking and arguments included: a large file.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Maximum calls of one answer.
const CALLS_MAX: usize = 128;
/// Maximum characters of a reason.
const LINE_CHARS_MAX: usize = 400;
/// Maximum retries after an impossible call before the acting member's turn fails.
const REPAIRS_MAX: u32 = 2;
/// The answer of an adviser that has nothing to say.
const NOTHING: &str = "nothing to add";

/// An open turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    pub(super) seat: SeatName,
    /// The adviser; `None` is the acting member.
    adviser: Option<usize>,
    purpose: Purpose,
    text: String,
    calls: Vec<ToolCall>,
    bytes: usize,
    ear: Hearing,
    /// Whether a `Cancel` was sent.
    pub(super) stopped: bool,
    /// Set while the message is being written.
    pub(super) end: Option<End>,
}

/// How a turn ended, before its message is on disk.
#[derive(Debug)]
pub(super) struct End {
    result: Result<(), Failure>,
    usage: Option<Usage>,
    /// The messages to send to the acting member next; empty if this is the answer.
    next: Option<Next>,
}

/// The next step after an answer of the acting member that is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It is asked again.
    Again,
    /// Advisers are asked about its calls first.
    Advice,
}

impl Turn {
    pub(super) fn new(
        id: TurnId,
        seat: SeatName,
        adviser: Option<usize>,
        purpose: Purpose,
    ) -> Self {
        Self {
            id,
            seat,
            adviser,
            purpose,
            text: String::new(),
            calls: Vec::new(),
            bytes: 0,
            ear: Hearing::default(),
            stopped: false,
            end: None,
        }
    }

    /// Takes a piece; false if the answer is too long.
    fn take(&mut self, delta: &Delta) -> bool {
        match delta {
            Delta::Text { text } => {
                self.bytes += text.len();
                self.text.push_str(text);
            }
            Delta::Thinking { text } => self.bytes += text.len(),
            Delta::Call { call } => {
                self.bytes += call.name.len() + call.arguments_text().len();
                self.calls.push(call.clone());
            }
            Delta::Retrying { .. } => {
                self.text.clear();
                self.calls.clear();
                self.bytes = 0;
            }
            Delta::Finished { text, .. } => {
                if let Some(whole) = text {
                    self.text.clone_from(whole);
                }
            }
            Delta::Started { .. } | Delta::Tool { .. } | Delta::Notice { .. } => {}
        }
        self.bytes.max(self.text.len()) <= ANSWER_BYTES_MAX && self.calls.len() <= CALLS_MAX
    }
}

impl Acting {
    /// Handles a piece of an answer.
    pub(super) fn hear(&mut self, now: Timestamp, id: TurnId, mut delta: Delta, fx: &mut Effects) {
        let Some(turn) = self.turns.get_mut(&id).filter(|t| t.end.is_none()) else {
            return;
        };
        turn.ear.clean(&mut delta);
        if !turn.take(&delta) {
            fx.commands.push(Command::Cancel { turn: id });
            let why = format!("the answer exceeded {ANSWER_BYTES_MAX} bytes or {CALLS_MAX} calls");
            let failure = Failure::new(FailureKind::Decode, why)
                .advise("set `max_tokens` for this member")
                .uncounted();
            return self.failed(now, id, failure, fx);
        }
        match delta {
            // Only those that are passed on to the client are announced, at the end.
            Delta::Call { .. } => {}
            Delta::Finished { finish, usage, .. } => self.whole(now, id, finish, usage, fx),
            delta => fx.events.push(Event::TurnDelta { turn: id, delta }),
        }
    }

    /// Handles a complete answer.
    fn whole(
        &mut self,
        now: Timestamp,
        id: TurnId,
        finish: Finish,
        usage: Option<Usage>,
        fx: &mut Effects,
    ) {
        let Some(mut turn) = self.turns.remove(&id) else {
            return;
        };
        let mut end = End {
            result: Ok(()),
            usage,
            next: None,
        };
        match turn.adviser {
            // An adviser has no tools: calls that it makes up are dropped.
            Some(_) if turn.text.trim().is_empty() => {
                let empty = Failure::new(FailureKind::Decode, "empty response");
                end.result = Err(empty.after(usage.as_ref()));
            }
            Some(_) => turn.calls.clear(),
            None => self.judge(&mut turn, &mut end, finish),
        }
        if end.result.is_ok() {
            let passed = if end.next.is_none() {
                &turn.calls[..]
            } else {
                &[]
            };
            let passed = passed.iter().map(|call| Delta::Call { call: call.clone() });
            let finished = Delta::Finished {
                finish,
                text: Some(turn.text.clone()),
                usage,
                choices: Vec::new(),
            };
            let deltas = passed.chain([finished]);
            fx.events
                .extend(deltas.map(|delta| Event::TurnDelta { turn: id, delta }));
        }
        self.write(now, turn, end, Some(finish), fx);
    }

    /// Decides whether an answer of the acting member is passed on to the client.
    fn judge(&mut self, turn: &mut Turn, end: &mut End, finish: Finish) {
        // The last call of an answer that was cut off is not complete.
        let is_cut = finish != Finish::Stop;
        match calls::check(&self.open.talk, &mut turn.calls, is_cut) {
            Verdict::Possible => {}
            Verdict::Impossible(why) if self.repairs < REPAIRS_MAX && !turn.stopped => {
                self.repairs += 1;
                let text = match turn.text.trim() {
                    "" => "(a call that was not possible)".to_owned(),
                    text => text.to_owned(),
                };
                self.tail.push(Said::Agent {
                    text,
                    calls: Vec::new(),
                });
                self.tail.push(Said::User {
                    text: calls::told(&why, &self.open.talk),
                });
                end.next = Some(Next::Again);
                return;
            }
            Verdict::Impossible(why) => {
                let failure = Failure::new(FailureKind::Decode, why)
                    .advise("choose another member to act: `serve.acting` names it");
                end.result = Err(failure.after(end.usage.as_ref()));
                return;
            }
        }
        let waits = turn.purpose == Purpose::Exchange && turn.calls.iter().any(advice::writes);
        if waits {
            self.asked_before_write = true;
            self.tail.push(Said::Agent {
                text: turn.text.clone(),
                calls: turn.calls.clone(),
            });
            self.tail.extend(turn.calls.iter().map(calls::held));
            end.next = Some(Next::Advice);
        }
    }

    /// Handles a stream that broke off.
    pub(super) fn failed(
        &mut self,
        now: Timestamp,
        id: TurnId,
        mut failure: Failure,
        fx: &mut Effects,
    ) {
        let Some(turn) = self.turns.get(&id).filter(|turn| turn.end.is_none()) else {
            return;
        };
        if turn.stopped {
            failure = Failure {
                used: failure.used,
                ..Failure::new(FailureKind::Cancelled, "stopped by the user")
            };
        }
        failure.message = clean_line(&failure.message, LINE_CHARS_MAX);
        let Some(turn) = self.turns.remove(&id) else {
            return;
        };
        let end = End {
            result: Err(failure),
            usage: None,
            next: None,
        };
        self.write(now, turn, end, None, fx);
    }

    /// Writes the message of a turn that ended.
    fn write(
        &mut self,
        now: Timestamp,
        mut turn: Turn,
        end: End,
        finish: Option<Finish>,
        fx: &mut Effects,
    ) {
        let mut body = spoken(&turn.text, &turn.calls);
        self.open.secrets.mask_in_place(&mut body);
        let mut body = body.trim().to_owned();
        if end.next.is_some() {
            body.push_str("\n\n*(not passed on; it was asked again)*");
        }
        if body.is_empty() && end.result.is_ok() {
            body = "(no text)".to_owned();
        }
        let (member, to) = match turn.adviser {
            Some(at) => {
                let to = Address::Seats(vec![self.open.acting.name.clone()]);
                (&self.open.advisers[at], to)
            }
            None => (&self.open.acting, Address::King),
        };
        let ended = Ended {
            turn: turn.id,
            seat: &turn.seat,
            body: &body,
            result: &end.result,
            finish,
            tokens: None,
            model: turn.ear.model.as_deref(),
            version: turn.ear.version.as_deref(),
            member: Some(member),
        };
        let mut draft = draft::of_turn(&ended, now);
        draft.to = to;
        fx.commands.push(Command::Save(Box::new(draft)));
        turn.end = Some(end);
        self.turns.insert(turn.id, turn);
    }

    /// Handles a written message.
    pub(super) fn saved(&mut self, id: Option<TurnId>, message: Message, fx: &mut Effects) {
        let seq = message.seq;
        let Some(id) = id else {
            if self.phase == Phase::Saving {
                add(message, None, false, fx);
                self.begin(fx);
            }
            return;
        };
        if self.turns.get(&id).is_some_and(|turn| turn.end.is_some()) {
            add(message, Some(id), false, fx);
            self.close(id, Some(seq), fx);
        }
    }

    /// Handles a message that could not be written.
    pub(super) fn save_failed(&mut self, id: Option<TurnId>, why: &str, fx: &mut Effects) {
        let why = clean_line(why, LINE_CHARS_MAX);
        fx.events.push(Event::SaveFailed {
            turn: id,
            why: why.clone(),
        });
        let Some(id) = id else {
            return self.finish(Outcome::Failed, fx);
        };
        let Some(end) = self.turns.get_mut(&id).and_then(|turn| turn.end.as_mut()) else {
            return;
        };
        if end.result.is_ok() {
            let why = format!("the answer could not be written: {why}");
            let advice =
                "check the disk and the permissions of the thread's folder, then ask again";
            end.result = Err(Failure::new(FailureKind::Crashed, why).advise(advice));
        }
        self.close(id, None, fx);
    }

    /// Closes a turn whose message is on disk, or could not be written.
    fn close(&mut self, id: TurnId, message: Option<u32>, fx: &mut Effects) {
        let Some(mut turn) = self.turns.remove(&id) else {
            return;
        };
        let Some(end) = turn.end.take() else {
            return;
        };
        match end.result {
            Ok(()) => {
                match &end.usage {
                    Some(usage) => self.usage.add(usage),
                    None => self.uncounted = true,
                }
                fx.events.push(Event::TurnFinished {
                    turn: id,
                    seat: turn.seat.clone(),
                    message,
                    usage: end.usage,
                    tools: 0,
                    thought: 0,
                });
                self.ended(turn, end.next, fx);
            }
            Err(failure) => {
                if let Some(used) = &failure.used {
                    self.usage.add(&used.usage);
                }
                self.uncounted |= failure.is_uncounted();
                fx.events.push(Event::TurnFailed {
                    turn: id,
                    seat: turn.seat.clone(),
                    failure,
                    message,
                });
                self.has_gap = true;
                if turn.adviser.is_none() && !self.interrupted {
                    self.finish(Outcome::Failed, fx);
                }
            }
        }
    }

    /// Goes on after a turn that ended well.
    fn ended(&mut self, turn: Turn, next: Option<Next>, fx: &mut Effects) {
        match (turn.adviser, next) {
            (Some(at), _) => {
                let text = turn.text.trim();
                let is_nothing = text.trim_end_matches('.').eq_ignore_ascii_case(NOTHING);
                if !is_nothing {
                    self.advice.insert(at, text.to_owned());
                }
            }
            (None, _) if self.interrupted => {}
            (None, Some(Next::Advice)) => self.ask_advisers(Some((&turn.text, &turn.calls)), fx),
            (None, Some(Next::Again)) => self.act(fx),
            (None, None) => {
                let outcome = match self.has_gap {
                    true => Outcome::Partial,
                    false => Outcome::Complete,
                };
                self.finish(outcome, fx);
            }
        }
    }
}
