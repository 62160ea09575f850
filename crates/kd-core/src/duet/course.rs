//! Decides the next step of a debate: which member is asked, with which part, and which must answer when the exchange
//! ends.

use super::prompts::{self, Part};
use super::round::{Round, reason};
use super::turn::{End, Turn};
use super::{Duet, notice};
use crate::event::{DuetEnd, DuetPhase, Event, Purpose};
use crate::ids::SeatName;
use crate::machine::{Command, Effects};
use crate::message::Message;
use crate::prompt;
use crate::request::{Delta, Request};
use jiff::Timestamp;

/// Expected tokens of a reply without a limit.
const REPLY_TOKENS: u64 = 1024;
/// Bytes of a prompt besides the transcript: rules, part, JSON overhead.
const PROMPT_BYTES: u64 = 3000;
/// Minimum limit for the tokens of a reply; fewer would be useless.
const REPLY_TOKENS_MIN: u64 = 64;

impl Duet {
    /// Opens the next turn; returns `false` if the question is finished.
    pub(super) fn proceed(&mut self, now: Timestamp, round: &mut Round, fx: &mut Effects) -> bool {
        if round.interrupted || self.closed || round.answer.is_some() {
            return false;
        }
        if round.deciding.is_none() && !self.can_debate(round) {
            round.deciding = Some(DuetEnd::Budget);
            fx.events.push(notice(
                "not enough tokens for another message: asking for the answer".into(),
            ));
        }
        if round.deciding.is_some() {
            return self.decide(now, round, fx);
        }
        let Some(seat) = round.next.take() else {
            return false;
        };
        let part = match (round.exchange.count, round.verify) {
            (0, _) => Part::First,
            (_, true) => Part::Verify,
            (n, false) => Part::Debate {
                n: n + 1,
                max: self.limits.exchanges_max,
            },
        };
        let phase = match part {
            Part::First => DuetPhase::FirstLook,
            _ => DuetPhase::Debate,
        };
        self.ask(round, &seat, phase, part, fx);
        true
    }

    /// Asks the next member that must answer: the arbiter, the rigorous member, the fast one, each once.
    fn decide(&mut self, now: Timestamp, round: &mut Round, fx: &mut Effects) -> bool {
        let why = round.deciding.unwrap_or(DuetEnd::Cap);
        let mut order = [
            self.seats.arbiter.as_ref(),
            Some(&self.seats.rigorous),
            Some(&self.seats.fast),
        ];
        if why == DuetEnd::Alone {
            // The other member continues; there is nothing to arbitrate.
            order.rotate_left(1);
        }
        let seat = order
            .into_iter()
            .flatten()
            .map(|m| &m.name)
            .find(|s| !round.asked.contains(s) && !round.has_failed(s))
            .cloned();
        if let Some(seat) = seat {
            round.asked.push(seat.clone());
            let part = match why {
                DuetEnd::Alone if round.exchange.count == 0 => Part::Alone,
                _ => Part::Decide { why: reason(why) },
            };
            self.ask(round, &seat, DuetPhase::Decision, part, fx);
            return true;
        }
        if let Some((seat, text)) = round.wrapped.take() {
            fx.events.push(notice(format!(
                "{seat} put the whole answer into tags: it is shown without them"
            )));
            self.unwrap(now, seat, text, fx);
            return true;
        }
        if let Some(told) = round.told {
            fx.events.push(notice(format!(
                "no member could give the final answer: message {told} is the last one"
            )));
        }
        false
    }

    /// Uses the text inside tags as the answer if a member that had to answer wrote nothing else.
    fn unwrap(&mut self, now: Timestamp, seat: SeatName, text: String, fx: &mut Effects) {
        self.turns += 1;
        let mut turn = Turn::new(self.id.turn(self.turns), seat, DuetPhase::Decision, 0);
        turn.spoken.clone_from(&text);
        fx.events.push(Event::TurnQueued {
            turn: turn.id,
            seat: turn.seat.clone(),
            purpose: Purpose::Conclude,
            replaces: None,
            ahead: Vec::new(),
        });
        fx.events.push(Event::TurnDelta {
            turn: turn.id,
            delta: Delta::Text { text },
        });
        let end = End {
            result: Ok(()),
            usage: None,
            finish: None,
            council: None,
        };
        self.turn = Some(turn);
        self.write(now, end, fx);
    }

    /// Returns whether enough tokens remain for the answer after another message between the members.
    fn can_debate(&self, round: &Round) -> bool {
        let Some(most) = self.limits.tokens_max else {
            return true;
        };
        // Reserved like in the account: one token per byte.
        let text: usize = self.transcript(round).map(|m| m.body.len() + 32).sum();
        let prompt = text as u64 + PROMPT_BYTES;
        // The first turn runs even if nothing can follow, because there is no answer yet.
        round.exchange.count == 0 || round.tokens + 2 * (prompt + 2 * REPLY_TOKENS_MIN) <= most
    }

    fn transcript<'a>(&'a self, round: &'a Round) -> impl Iterator<Item = &'a Message> {
        let before = self.history.iter().filter(|m| m.seq <= round.question);
        before.chain(&round.exchange.said)
    }

    fn ask(
        &mut self,
        round: &Round,
        seat: &SeatName,
        phase: DuetPhase,
        part: Part<'_>,
        fx: &mut Effects,
    ) {
        let Some(member) = self.seats.get(seat) else {
            return;
        };
        let other = self.seats.other(seat);
        let names = [&self.seats.fast.name, &self.seats.rigorous.name];
        let history = prompt::render(self.transcript(round), names);
        let prompt = prompts::build(&self.prompts, member, other, history, part);
        let prompt_tokens = (prompt.as_text().len() as u64).div_ceil(4);
        let mut sampling = member.sampling.clone();
        if let Some(most) = self.limits.tokens_max {
            let left = most.saturating_sub(round.tokens + prompt_tokens);
            let share = match phase {
                DuetPhase::Decision => left,
                DuetPhase::FirstLook | DuetPhase::Debate => left / 2,
            };
            let share = share.clamp(REPLY_TOKENS_MIN, u64::from(u32::MAX));
            let own = sampling.max_tokens.map_or(REPLY_TOKENS, u64::from);
            sampling.max_tokens = u32::try_from(own.min(share)).ok();
        }
        let request = Request {
            attachments: Vec::new(),
            schema_of_user: false,
            reads: member.reads,
            seat: seat.clone(),
            prompt,
            sampling,
            schema: None,
            deadlines: member.deadlines,
            writable: member.writable,
            tools: None,
        };
        self.turns += 1;
        let turn = Turn::new(self.id.turn(self.turns), seat.clone(), phase, prompt_tokens);
        fx.events.push(Event::TurnQueued {
            turn: turn.id,
            seat: seat.clone(),
            purpose: match phase {
                DuetPhase::Decision => Purpose::Conclude,
                DuetPhase::FirstLook | DuetPhase::Debate => Purpose::Answer,
            },
            replaces: None,
            ahead: Vec::new(),
        });
        fx.events.push(Event::PhaseBegan {
            turn: turn.id,
            seat: seat.clone(),
            phase,
            exchanged: round.exchange.count,
            exchanges_max: self.limits.exchanges_max,
        });
        fx.commands.push(Command::Ask {
            turn: turn.id,
            request: Box::new(request),
        });
        self.turn = Some(turn);
    }
}
