//! Processes a reply: its pieces, its message on disk, and its effect on the question.

use super::round::Round;
use super::turn::{End, Heard, Turn};
use super::{Duet, LINE_CHARS_MAX, Stage, draft, notice};
use crate::clean::clean_line;
use crate::event::{DuetEnd, DuetPhase, Event, Outcome};
use crate::failure::{Failure, FailureKind};
use crate::ids::TurnId;
use crate::machine::{Command, Effects};
use crate::message::Message;
use crate::request::Delta;
use crate::usage::Usage;
use jiff::{SignedDuration, Timestamp};

impl Duet {
    fn running(&mut self, id: TurnId) -> Option<&mut Turn> {
        self.turn.as_mut().filter(|t| t.id == id && t.end.is_none())
    }

    /// Handles a piece of a reply.
    pub(super) fn hear(&mut self, now: Timestamp, id: TurnId, delta: Delta, fx: &mut Effects) {
        let bytes_max = self.limits.text_bytes_max;
        let Some(turn) = self.running(id) else {
            return;
        };
        match turn.hear(delta, bytes_max) {
            Heard::More(delta) => {
                fx.events
                    .extend(delta.map(|delta| Event::TurnDelta { turn: id, delta }));
            }
            Heard::TooLong => {
                fx.commands.push(Command::Cancel { turn: id });
                let failure = Failure::new(
                    FailureKind::Decode,
                    format!("the answer exceeded {bytes_max} bytes"),
                )
                .advise("ask for a shorter answer, or set `max_tokens` for this member")
                .uncounted();
                self.failed(now, id, failure, fx);
            }
            Heard::Whole {
                rest,
                finish,
                usage,
                council,
                restated,
            } => {
                if !rest.is_empty() && !restated {
                    fx.events.push(Event::TurnDelta {
                        turn: id,
                        delta: Delta::Text { text: rest },
                    });
                }
                let silent = turn.body().is_empty();
                let result = if silent && council.is_none() {
                    Err(Failure::new(FailureKind::Decode, "empty response").after(usage.as_ref()))
                } else {
                    Ok(())
                };
                if !silent {
                    let text = restated.then(|| turn.spoken.clone());
                    fx.events.push(Event::TurnDelta {
                        turn: id,
                        delta: Delta::Finished {
                            finish,
                            text,
                            usage,
                            choices: Vec::new(),
                        },
                    });
                }
                let end = End {
                    result,
                    usage,
                    finish: Some(finish),
                    council,
                };
                self.write(now, end, fx);
            }
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
        let late = matches!(&self.stage, Stage::Speaking(round) if round.deciding == Some(DuetEnd::Time) && !round.interrupted);
        let Some(turn) = self.running(id) else {
            return;
        };
        if turn.stopped {
            let why = if late && turn.phase != DuetPhase::Decision {
                "the time for the exchange was up"
            } else {
                "stopped by the user"
            };
            failure = Failure {
                used: failure.used,
                ..Failure::new(FailureKind::Cancelled, why)
            };
        }
        failure.message = clean_line(&failure.message, LINE_CHARS_MAX);
        let end = End {
            result: Err(failure),
            usage: None,
            finish: None,
            council: None,
        };
        self.write(now, end, fx);
    }

    /// Ends the open turn: writes its message; a turn with no visible text is closed at once.
    pub(super) fn write(&mut self, now: Timestamp, end: End, fx: &mut Effects) {
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        if end.result.is_ok() && turn.body().is_empty() {
            self.close(now, turn, end, None, fx);
            return;
        }
        let update = self.goes_on(&turn, &end);
        let draft = draft::of_turn(&turn, &end, self.seats.get(&turn.seat), update, now);
        fx.commands.push(Command::Save(Box::new(draft)));
        turn.end = Some(end);
        self.turn = Some(turn);
    }

    /// Returns whether the other member is asked after this reply.
    fn goes_on(&self, turn: &Turn, end: &End) -> bool {
        let Stage::Speaking(round) = &self.stage else {
            return false;
        };
        turn.phase != DuetPhase::Decision
            && end.result.is_ok()
            && (end.council.is_some() || self.must_check(round))
    }

    /// Returns whether the other member checks a reply even though it contains no message.
    fn must_check(&self, round: &Round) -> bool {
        round.exchange.count < self.limits.exchanges_min.min(self.limits.exchanges_max)
    }

    /// Handles a written message.
    pub(super) fn saved(
        &mut self,
        now: Timestamp,
        id: Option<TurnId>,
        message: Message,
        fx: &mut Effects,
    ) {
        let seq = message.seq;
        match id {
            Some(id) => {
                let Some(mut turn) = self.turn.take_if(|t| t.id == id && t.end.is_some()) else {
                    return;
                };
                if let Stage::Speaking(round) = &mut self.stage {
                    round.exchange.said.push(message.clone());
                }
                self.add(message, Some(id), false, fx);
                if let Some(end) = turn.end.take() {
                    self.close(now, turn, end, Some(seq), fx);
                }
            }
            None => {
                let Stage::Saving(ask) = self.stage else {
                    return;
                };
                self.add(message, None, false, fx);
                self.stage = Stage::Idle;
                if ask {
                    let mut round = Round {
                        question: seq,
                        next: Some(self.seats.fast.name.clone()),
                        ..Round::default()
                    };
                    if let Some(at) = self
                        .limits
                        .seconds_max
                        .and_then(|s| i64::try_from(s).ok())
                        .and_then(|s| now.checked_add(SignedDuration::from_secs(s)).ok())
                    {
                        self.timers += 1;
                        let timer = self.id.timer(self.timers);
                        round.timer = Some(timer);
                        fx.commands.push(Command::Wake { timer, at });
                    }
                    self.stage = Stage::Speaking(Box::new(round));
                } else {
                    fx.events.push(Event::FloorYielded {
                        outcome: Outcome::Interrupted,
                        usage: Usage::default(),
                    });
                }
            }
        }
    }

    /// Handles a message that could not be written.
    pub(super) fn save_failed(
        &mut self,
        now: Timestamp,
        id: Option<TurnId>,
        why: &str,
        fx: &mut Effects,
    ) {
        let why = clean_line(why, LINE_CHARS_MAX);
        match id {
            Some(id) => {
                let Some(mut turn) = self.turn.take_if(|t| t.id == id && t.end.is_some()) else {
                    return;
                };
                fx.events.push(Event::SaveFailed {
                    turn: Some(id),
                    why: why.clone(),
                });
                if let Some(mut end) = turn.end.take() {
                    if end.result.is_ok() {
                        end.result = Err(Failure::new(
                            FailureKind::Crashed,
                            format!("the answer could not be written: {why}"),
                        )
                        .advise("check the disk and the permissions of the thread's folder, then ask again"));
                    }
                    self.close(now, turn, end, None, fx);
                }
            }
            None => {
                if let Stage::Saving(_) = self.stage {
                    self.stage = Stage::Idle;
                    fx.events.push(Event::SaveFailed { turn: None, why });
                    fx.events.push(Event::FloorYielded {
                        outcome: Outcome::Failed,
                        usage: Usage::default(),
                    });
                }
            }
        }
    }

    /// Closes a turn and updates the question.
    pub(super) fn close(
        &mut self,
        now: Timestamp,
        turn: Turn,
        end: End,
        message: Option<u32>,
        fx: &mut Effects,
    ) {
        let goes_on = self.goes_on(&turn, &end);
        let other = self.seats.other(&turn.seat).clone();
        let Stage::Speaking(round) = &mut self.stage else {
            return;
        };
        let tokens = match end.used() {
            Some(used) => used.tokens(),
            None => turn.prompt_tokens + turn.reply_tokens(),
        };
        round.tokens = round.tokens.saturating_add(tokens);
        if let Some(used) = end.used() {
            round.usage.add(used);
        }
        round.uncounted |= end.is_uncounted();
        let deciding = turn.phase == DuetPhase::Decision;
        round.unclear |= !turn.is_sound(&end);
        let ending = match round.unclear {
            true => DuetEnd::Unclear,
            false => DuetEnd::Agreed,
        };
        let (id, seat) = (turn.id, turn.seat.clone());
        match (end.result, message) {
            (Ok(()), Some(message)) => {
                fx.events.push(Event::TurnFinished {
                    turn: id,
                    seat: seat.clone(),
                    message: Some(message),
                    usage: end.usage,
                    tools: 0,
                    thought: 0,
                });
                round.told = Some(message);
                if !goes_on {
                    round.answer = Some(message);
                    round.deciding.get_or_insert(ending);
                }
            }
            (Ok(()), None) => {
                fx.events.push(Event::TurnFinished {
                    turn: id,
                    seat: seat.clone(),
                    message: None,
                    usage: end.usage,
                    tools: 0,
                    thought: 0,
                });
                if deciding {
                    round.wrapped = end.council.clone().map(|text| (seat.clone(), text));
                }
            }
            (Err(failure), message) => {
                let late = turn.stopped && round.deciding == Some(DuetEnd::Time) && !deciding;
                let why = failure.message.clone();
                fx.events.push(Event::TurnFailed {
                    turn: id,
                    seat: seat.clone(),
                    failure,
                    message,
                });
                if !late && !round.interrupted {
                    round.failed.push((seat.clone(), why.clone()));
                    if !deciding {
                        round.deciding.get_or_insert(DuetEnd::Alone);
                        fx.events.push(notice(format!(
                            "{seat} failed ({why}): {other} continues without it"
                        )));
                    }
                }
                return;
            }
        }
        if let Some(text) = &end.council {
            fx.events.push(Event::CouncilSaid {
                turn: id,
                from: seat.clone(),
                to: other.clone(),
                chars: text.chars().count() as u64,
                text: Some(text.clone()),
            });
        }
        if !goes_on {
            return;
        }
        round.verify = end.council.is_none();
        let circle = match &end.council {
            Some(text) => round.exchange.council(&seat, &other, text, now),
            None => {
                round.exchange.count += 1;
                false
            }
        };
        round.next = Some(other);
        let over = if circle {
            Some((DuetEnd::Cycle, "the members repeat themselves"))
        } else if round.exchange.count >= self.limits.exchanges_max.max(1) && !round.verify {
            Some((DuetEnd::Cap, "they reached the message limit"))
        } else {
            None
        };
        if let (Some((why, words)), None) = (over, round.deciding) {
            round.deciding = Some(why);
            fx.events
                .push(notice(format!("{words}: asking for the answer")));
        }
    }

    /// Adds a message on disk to the history, once.
    pub(super) fn add(
        &mut self,
        mut message: Message,
        turn: Option<TurnId>,
        found: bool,
        fx: &mut Effects,
    ) {
        message.clean();
        let key = |m: &Message| (m.seq, m.from.clone());
        let place = key(&message);
        if !self.history.iter().any(|m| key(m) == place) {
            self.history.push(message.clone());
            fx.events.push(Event::MessageAdded {
                message,
                turn,
                found,
            });
        }
    }
}
