//! The state machine of a deliberation: turns, messages, timers. [`course`](super::course) decides what happens next.
//!
//! Input: [`Input`]s. Output: [`Effects`]. All external input that a decision may depend on (replies, failures,
//! deadlines, the user's stop) is recorded as a fact first, so the record suffices to decide everything again.

use super::blind;
use super::board::Board;
use super::fact::{Fact, Labelled};
use super::frame::Frame;
use super::iteration::{Decision, PassEnd};
use super::labels::Labels;
use super::ledger::{Cut, Ledger, Spent, prompt_bytes, request_bytes};
use super::plan::{NOTED, PRIVATE, Plan, TAGGED, WAITS};
use super::protocols::{self, Protocol};
use super::reader::{Reader, Reading, Reread, Run};
use super::spoken;
use super::stages::{Asking, Stage};
use super::turn::{Turn, Waiting};
use super::verdict::Verdict;
use crate::SeatName;
use crate::clean::{Cleaner, clean_line};
use crate::event::{Event, Outcome, Purpose};
use crate::failure::{Failure, FailureKind};
use crate::hearing::Hearing;
use crate::ids::{MachineId, TimerId, TurnId};
use crate::last_round::RoundKind;
use crate::machine::{Command, Effects, Input, Machine};
use crate::memory::Memory;
use crate::message::{Address, Draft, Message, Status};
use crate::op::Op;
use crate::prompt::PREAMBLE;
use crate::request::{Delta, Finish, Prompt, Request};
use crate::spending::Keep;
use crate::spending::{ANSWER_TOKENS_MIN, Ceiling, FRAMING_TOKENS};
use crate::usage::Usage;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Maximum bytes of one reply.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Maximum characters of a reason.
const LINE_CHARS_MAX: usize = 400;
/// Fires when it is time to conclude, and at the end of the time limit.
const SOON: u32 = 1;
const OVER: u32 = 2;
/// Percentage of the time limit after which only the chair is asked.
const SOON_PERCENT: u64 = 80;
/// The reason for canceling a turn that can no longer change the result.
pub(super) const NEEDLESS: &str = "the result was certain without it";
/// Returns the timer of a deadline.
pub(super) fn timer(id: MachineId, over: bool) -> TimerId {
    id.timer(if over { OVER } else { SOON })
}

/// The sender of an answer composed from the messages.
pub use crate::names::COUNCIL;

/// The state machine.
#[derive(Debug)]
pub struct Deliberation {
    pub(super) plan: Run,
    pub(super) protocol: &'static Protocol,
    pub(super) preamble: String,
    pub(super) phase: Phase,
    pub(super) ledger: Ledger,
    pub(super) open: BTreeMap<TurnId, Turn>,
    /// Requests of the running stage for which the open turns leave no room, in order.
    pub(super) waiting: VecDeque<Waiting>,
    /// The machine whose turns and timers it counts.
    id: MachineId,
    last_turn: u32,
    /// The stack of frames; the last is on top.
    pub(super) frames: Vec<Frame>,
    /// Finished passes.
    pub(super) passes: Vec<(Board, PassEnd)>,
    pub(super) decisions: Vec<Decision>,
    pub(super) memory: Memory,
    /// The question to the user, and the member that worded it.
    pub(super) asks_back: Option<(SeatName, String)>,
    /// The first limit that prevented a call.
    pub(super) cut: Option<Cut>,
    /// Whether members failed.
    pub(super) failed: bool,
    pub(super) troubles: Vec<String>,
    pub(super) stopped: bool,
    pub(super) over: bool,
    pub(super) usage: Usage,
    seen: BTreeSet<(u32, String)>,
    pub(super) started: Option<Timestamp>,
    /// The amounts that an earlier session spent.
    pub(super) paid: Spent,
}

/// The phase of the deliberation.
#[derive(Debug)]
pub(super) enum Phase {
    /// No question yet.
    Waiting,
    /// The question is being written.
    Saving,
    /// Stages run.
    Running,
    /// The chair concludes.
    Concluding {
        /// Indexes of the chairs already asked.
        tried: Vec<usize>,
    },
    /// The answer is being written.
    Writing(Box<Verdict>),
    /// Finished.
    Done,
}

impl Machine for Deliberation {
    fn step(&mut self, now: Timestamp, input: Input) -> Effects {
        let mut fx = Effects::default();
        match input {
            Input::Op(op) => self.op(op, now, &mut fx),
            Input::Delta { turn, delta } => self.hear(now, turn, delta, &mut fx),
            Input::Failed { turn, failure } => self.turn_failed(now, turn, failure, &mut fx),
            Input::Saved { turn, message } => self.saved(now, turn, message, &mut fx),
            Input::SaveFailed { turn, why } => self.save_failed(now, turn, &why, &mut fx),
            Input::Found { message } => self.add(message, None, true, &mut fx),
            Input::FoundDelta { seat, mut delta } => {
                if let Delta::Text { text } | Delta::Thinking { text } = &mut delta {
                    Cleaner::default().clean_in_place(text);
                }
                fx.events.push(Event::StreamFound { seat, delta });
            }
            Input::FoundEnd { seat } => fx.events.push(Event::StreamLost { seat }),
            Input::Woke { timer } => self.bell(timer, &mut fx),
            // No delivery to track: the question is in the record.
            Input::Kept { .. } | Input::KeepFailed { .. } => {}
            // It is about another question.
            Input::FoundGone { .. } | Input::FoundWaiting => {}
            // Other messages of the thread are not part of its question.
            Input::Freed { .. } => {}
        }
        self.advance(now, &mut fx);
        self.note_readings(&mut fx);
        fx
    }

    fn id(&self) -> MachineId {
        self.id
    }

    fn ceiling(&self) -> Ceiling {
        let mut limits = self.plan.limits;
        limits.take(self.paid);
        limits.ceiling()
    }

    fn keeps(&self, _turn: TurnId) -> Keep {
        self.ledger.closing().into()
    }
}

impl Deliberation {
    /// Opens a deliberation. `notices` are notes on the plan for the user; `messages` is the number of messages in the
    /// thread; `preamble` begins every prompt.
    pub fn open(
        plan: Plan,
        notices: Vec<String>,
        preamble: String,
        messages: u32,
    ) -> (Self, Effects) {
        Self::open_with(plan, notices, preamble, messages, Vec::new())
    }

    /// Opens a deliberation that reads replies as recorded.
    pub(super) fn open_with(
        plan: Plan,
        notices: Vec<String>,
        preamble: String,
        messages: u32,
        recorded: Vec<Reading>,
    ) -> (Self, Effects) {
        let reader = Reader::recorded(recorded);
        let protocol = protocols::find(&plan.protocol).unwrap_or(protocols::PROTOCOLS[0]);
        let ledger = Ledger::new(&plan, Self::closing(&plan, protocol, &preamble));
        let opened = vec![
            Event::ThreadOpened {
                members: plan.seats.iter().map(|s| s.name().clone()).collect(),
                messages,
            },
            Event::Deliberated {
                fact: Box::new(Fact::Opened {
                    plan: Box::new(plan.clone()),
                    notices,
                    preamble: (preamble != PREAMBLE.trim()).then(|| preamble.clone()),
                }),
            },
        ];
        let machine = Self {
            plan: Run::new(plan, reader),
            protocol,
            preamble,
            phase: Phase::Waiting,
            ledger,
            open: BTreeMap::new(),
            waiting: VecDeque::new(),
            id: MachineId::default(),
            last_turn: 0,
            frames: Vec::new(),
            passes: Vec::new(),
            decisions: Vec::new(),
            memory: Memory::default(),
            asks_back: None,
            cut: None,
            failed: false,
            troubles: Vec::new(),
            stopped: false,
            over: false,
            usage: Usage::default(),
            seen: BTreeSet::new(),
            started: None,
            paid: Spent::default(),
        };
        let effects = Effects {
            commands: Vec::new(),
            events: opened,
        };
        (machine, effects)
    }

    /// Returns this deliberation as another machine of its session.
    #[must_use]
    pub(crate) fn numbered(mut self, id: MachineId) -> Self {
        self.id = id;
        self
    }

    /// Returns the replies that the current reader reads differently from the record with which the deliberation was
    /// opened.
    pub(super) fn reread(&self) -> Vec<Reread> {
        self.plan.reader.reread()
    }

    /// Records the readings of this step, after the external input and before the decisions.
    fn note_readings(&self, fx: &mut Effects) {
        let readings = self.plan.reader.take();
        if self.plan.reading < NOTED || readings.is_empty() {
            return;
        }
        let is_delta = |e: &Event| matches!(e, Event::TurnDelta { .. });
        let from_outside = fx.events.iter().take_while(|e| is_delta(e)).count() + 1;
        let at = from_outside.min(fx.events.len());
        let fact = Box::new(Fact::Readings { readings });
        fx.events.insert(at, Event::Deliberated { fact });
    }

    /// Checks the minimum that the limits must allow: the final answer.
    ///
    /// # Errors
    /// Returns the limit that is too low, and the maximum that the final answer may use.
    pub fn affordable(plan: &Plan, preamble: &str) -> Result<(), (Cut, Spent)> {
        let protocol = protocols::find(&plan.protocol).unwrap_or(protocols::PROTOCOLS[0]);
        let closing = Self::closing(plan, protocol, preamble);
        Ledger::new(plan, closing)
            .affords_closing()
            .map_err(|cut| (cut, closing))
    }

    /// Returns whether the deliberation is finished.
    pub fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    fn op(&mut self, op: Op, now: Timestamp, fx: &mut Effects) {
        match (op, &self.phase) {
            (Op::Say { .. }, Phase::Waiting) => {
                // The question comes from the plan, which was made for it.
                let mut draft = self.draft(None, "king", self.plan.question.clone(), None, now);
                RoundKind::Deliberation.mark(&mut draft);
                fx.commands.push(Command::Save(Box::new(draft)));
                self.phase = Phase::Saving;
            }
            (Op::Say { .. }, _) => fx.events.push(Event::OpRefused {
                why: "a deliberation answers one question; continue with `kd ask --continue`, or start another".into(),
            }),
            (Op::Interrupt, Phase::Done) | (Op::Close, _) => {}
            (Op::Interrupt, _) if self.stopped => {}
            (Op::Interrupt, _) => {
                self.stopped = true;
                fact(fx, Fact::Stopped);
                self.cancel_all(fx);
            }
            (Op::Stop { seat }, _) => {
                let turns: Vec<TurnId> = self
                    .open
                    .iter()
                    .filter(|(_, t)| *self.plan.seats[t.seat].name() == seat && t.speaks())
                    .map(|(id, _)| *id)
                    .collect();
                fx.commands.extend(turns.into_iter().map(|turn| Command::Cancel { turn }));
            }
            (Op::Resume | Op::TakeBack, _) => {}
            (Op::Mute { .. } | Op::Unmute { .. } | Op::Choose { .. } | Op::Retry { .. } | Op::Mode { .. } | Op::Auto { .. }, _) => fx.events.push(Event::OpRefused {
                why: "the plan of a deliberation sets its members; `--edit` changes it before it runs".into(),
            }),
        }
    }

    /// Cancels every open turn.
    pub(super) fn cancel_all(&mut self, fx: &mut Effects) {
        for (id, turn) in &self.open {
            if turn.speaks() {
                fx.commands.push(Command::Cancel { turn: *id });
            }
        }
    }

    fn bell(&mut self, timer: TimerId, fx: &mut Effects) {
        if matches!(self.phase, Phase::Done | Phase::Waiting) {
            return;
        }
        let over = timer == self::timer(self.id, true);
        if timer != self::timer(self.id, false) && !over {
            return;
        }
        fact(fx, Fact::BellRang { over });
        self.cut.get_or_insert(Cut::Time);
        self.over |= over;
        // The chair may still use the remaining time.
        if over || !matches!(self.phase, Phase::Concluding { .. }) {
            self.cancel_all(fx);
        }
    }

    /// Opens a turn if the limits allow it. `among` turns, including this one, share the rest: if it is short, answers
    /// are limited more strictly before a member is left out.
    #[allow(clippy::too_many_arguments)] // one place opens turns, and says all of it
    pub(super) fn ask(
        &mut self,
        stage: &'static Stage,
        (seat, sample): (usize, u32),
        asking: Asking,
        among: u64,
        now: Timestamp,
        fx: &mut Effects,
    ) -> Result<(), Cut> {
        let id = self.id.turn(self.last_turn + 1);
        let last = matches!(self.phase, Phase::Concluding { .. });
        let (mut request, mut reserved) = self.request(seat, sample, &asking, now, id);
        // Who reviews, votes or concludes works with the answers of the others.
        request.reads = matches!(stage.purpose, Purpose::Answer | Purpose::Revise)
            && self.plan.seats[seat].member.reads;
        let patient = self.plan.spending >= WAITS && asking.tokens.is_none();
        if let Some(tokens) = self.lowered(seat, &request, last, among, patient) {
            request.sampling.max_tokens = Some(tokens);
            reserved = self.reservation(seat, &request);
        }
        self.ledger.reserve(id, reserved, last)?;
        self.last_turn += 1;
        let stand_ins = self.plan.stand_ins.in_prompt(&request.prompt.history);
        let name = self.plan.seats[seat].name().clone();
        fx.events.push(Event::TurnQueued {
            turn: id,
            seat: name.clone(),
            purpose: stage.purpose,
            replaces: None,
            ahead: Vec::new(),
        });
        fact(
            fx,
            Fact::SeatAsked {
                turn: id.alone(),
                seat: name,
                stage: stage.name.into(),
                labels: self.labelled(stage, &asking.items),
                prompt: request.prompt.clone(),
                schema: request.schema.clone(),
                reserved,
            },
        );
        self.open.insert(
            id,
            Turn {
                seat,
                sample,
                stage,
                items: asking.items,
                repairs: None,
                text: String::new(),
                live: spoken::splitter(self.plan.reading),
                stand_ins,
                ear: Hearing::default(),
                needless: false,
                reply: None,
                broken: None,
            },
        );
        fx.commands.push(Command::Ask {
            turn: id,
            request: Box::new(request),
        });
        Ok(())
    }

    fn request(
        &self,
        seat: usize,
        sample: u32,
        asking: &Asking,
        now: Timestamp,
        id: TurnId,
    ) -> (Request, Spent) {
        let seat_of = &self.plan.seats[seat];
        let member = &seat_of.member;
        let prompt = Prompt {
            rules: self.preamble.clone(),
            persona: member.persona.trim().to_owned(),
            history: asking.material.as_str().into(),
            turn: format!("---\nYou are {}. {}", member.name, asking.task),
            ..Prompt::default()
        };
        let mut sampling = member.sampling.clone();
        let most = self.plan.limits.answer_tokens;
        let tokens = asking
            .tokens
            .unwrap_or(most)
            .min(sampling.max_tokens.unwrap_or(most))
            .min(most);
        sampling.max_tokens = Some(tokens);
        // The samples of one member differ, but the same plan always asks the same way.
        sampling.seed = sampling.seed.map(|s| {
            s.wrapping_add(id.number.into())
                .wrapping_add(u64::from(sample) << 32)
        });
        let mut deadlines = member.deadlines;
        if let (Some(most), Some(started)) = (self.plan.limits.duration_ms, self.started) {
            let gone = Duration::try_from(now.duration_since(started)).unwrap_or_default();
            let left = Duration::from_millis(most)
                .saturating_sub(gone)
                .max(Duration::from_millis(1));
            deadlines.total = if deadlines.total.is_zero() {
                left
            } else {
                deadlines.total.min(left)
            };
        }
        let request = Request {
            attachments: Vec::new(),
            schema_of_user: false,
            reads: false,
            seat: member.name.clone(),
            prompt,
            sampling,
            schema: asking.schema.clone(),
            deadlines,
            writable: false,
            tools: None,
        };
        let reserved = self.reservation(seat, &request);
        (request, reserved)
    }

    /// Returns the worst case of a request: one token per byte, and an answer of maximum length.
    fn reservation(&self, seat: usize, request: &Request) -> Spent {
        let tokens = request.sampling.max_tokens.unwrap_or(u32::MAX);
        Spent::at_most(
            self.request_bytes(request),
            tokens,
            self.plan.seats[seat].price,
        )
    }

    fn request_bytes(&self, request: &Request) -> u64 {
        match self.plan.spending {
            0 => {
                let schema = request.schema.as_ref().map(|s| s.to_string());
                let schema = schema.map_or(0, |s| s.len() as u64 + 128);
                prompt_bytes(&request.prompt) + schema
            }
            _ => request_bytes(request),
        }
    }

    /// Returns the lowered answer limit if its share is short; `None` if lowering is unnecessary or impossible. A
    /// `patient` request rather waits for running ones than be lowered to less than half.
    fn lowered(
        &self,
        seat: usize,
        request: &Request,
        last: bool,
        among: u64,
        patient: bool,
    ) -> Option<u32> {
        if self.plan.spending == 0 {
            return None;
        }
        let wanted = request.sampling.max_tokens?;
        let input = self.request_bytes(request) + FRAMING_TOKENS;
        let price = self.plan.seats[seat].price.unwrap_or_default();
        let least = wanted.min(ANSWER_TOKENS_MIN);
        let half = least.max(wanted / 2);
        let shares = match patient {
            false => [(among, least), (1, least)],
            true if self.open.is_empty() => [(among, half), (1, least)],
            true => [(among, half), (1, half)],
        };
        shares
            .into_iter()
            .find_map(|(among, least)| {
                let room = self.ledger.room(input, price, last, among)?;
                let room = u32::try_from(room).unwrap_or(u32::MAX);
                (room >= least).then_some(room)
            })
            .filter(|room| *room < wanted)
    }

    /// Returns the item behind each label, as names of authors or candidates.
    fn labelled(&self, stage: &Stage, items: &[usize]) -> Vec<Labelled> {
        let board = self.frames.last().map(|f| &f.board);
        let by_author = matches!(
            stage.purpose,
            Purpose::Review | Purpose::Revise | Purpose::Compress
        );
        items
            .iter()
            .enumerate()
            .map(|(place, item)| Labelled {
                label: blind::label(place),
                item: if by_author {
                    let seat = match stage.purpose {
                        Purpose::Compress => board
                            .and_then(|b| b.answers.get(*item))
                            .map_or(*item, |a| a.seat),
                        _ => *item,
                    };
                    self.plan
                        .seats
                        .get(seat)
                        .map(|s| s.name().to_string())
                        .unwrap_or_default()
                } else {
                    let board = board.or(self.passes.last().map(|(b, _)| b));
                    board
                        .and_then(|b| b.candidates.get(*item))
                        .map(|c| c.name.clone())
                        .unwrap_or_default()
                },
            })
            .collect()
    }

    /// Handles a piece of a reply.
    fn hear(&mut self, now: Timestamp, id: TurnId, mut delta: Delta, fx: &mut Effects) {
        let Some(turn) = self.open.get_mut(&id).filter(|t| t.speaks()) else {
            return;
        };
        turn.ear.clean(&mut delta);
        match &mut delta {
            Delta::Text { text } => {
                if turn.text.len() + text.len() > TEXT_BYTES_MAX {
                    fx.commands.push(Command::Cancel { turn: id });
                    let failure = Failure::new(
                        FailureKind::Decode,
                        format!("the reply grew longer than {TEXT_BYTES_MAX} bytes"),
                    );
                    return self.turn_failed(now, id, failure, fx);
                }
                *text = turn.push(&self.plan, text);
                if text.is_empty() {
                    return;
                }
            }
            Delta::Retrying { .. } => {
                turn.text.clear();
                turn.live = spoken::splitter(self.plan.reading);
            }
            // No tools are offered here; a tool call that a service invents is shown and not executed.
            Delta::Started { .. }
            | Delta::Thinking { .. }
            | Delta::Tool { .. }
            | Delta::Call { .. }
            | Delta::Notice { .. } => {}
            Delta::Finished {
                finish,
                text,
                usage,
                ..
            } => {
                if let Some(whole) = text {
                    turn.text.clone_from(whole);
                }
                let heard = turn.heard(&self.plan, &turn.text);
                // The text is also sent if a part of it was held back as a tag.
                let held = self.plan.reading >= TAGGED
                    && !std::mem::take(&mut turn.live).finish().0.is_empty();
                if self.plan.reading >= PRIVATE && (held || heard != turn.text) {
                    *text = Some(heard);
                }
                let (finish, usage) = (*finish, *usage);
                fx.events.push(Event::TurnDelta { turn: id, delta });
                return self.replied(now, id, finish, usage, fx);
            }
        }
        fx.events.push(Event::TurnDelta { turn: id, delta });
    }

    /// Handles a complete reply.
    fn replied(
        &mut self,
        now: Timestamp,
        id: TurnId,
        finish: Finish,
        usage: Option<Usage>,
        fx: &mut Effects,
    ) {
        let Some(turn) = self.open.get(&id) else {
            return;
        };
        let text = turn.heard(&self.plan, &turn.text);
        let (seat, stage) = (turn.seat, turn.stage);
        fact(
            fx,
            Fact::SeatReplied {
                turn: id.alone(),
                seat: self.plan.seats[seat].name().clone(),
                text: turn.text.trim().to_owned(),
                finish,
                usage,
            },
        );
        let priced = self.price_of(seat, usage.as_ref());
        self.ledger
            .settle(id, usage.as_ref(), self.plan.seats[seat].price);
        if let Some(usage) = priced {
            self.usage.add(&usage);
        }
        if text.is_empty() {
            let mut failure = Failure::new(FailureKind::Decode, "empty response");
            if self.plan.spending > 0 {
                failure = failure.after(priced.as_ref());
            }
            return self.close_failed(id, failure, None, fx);
        }
        if !self.open.get(&id).is_some_and(Turn::is_spoken) {
            return self.take(now, id, &text, None, usage, fx);
        }
        let concluding = matches!(self.phase, Phase::Concluding { .. });
        let (body, verdict) = if concluding {
            let Some(turn) = self.open.get(&id) else {
                return;
            };
            let items = turn.items.clone();
            let verdict = self.verdict(Some((seat, &text, &items)));
            (verdict.answer.clone(), Some(verdict))
        } else {
            let body = (stage.body)(&self.plan, &text);
            let items = self.open.get(&id).map_or(&[][..], |turn| &turn.items);
            (Labels::of_authors(&self.plan, items, &body), None)
        };
        let mut draft = self.draft(
            Some(id),
            self.plan.seats[seat].name().as_str(),
            body,
            Some(seat),
            now,
        );
        if let Some(verdict) = &verdict {
            draft.extra.insert("purpose".into(), "conclude".into());
            draft
                .extra
                .insert("outcome".into(), verdict.outcome.word().into());
        } else {
            draft.extra.insert("stage".into(), stage.name.into());
        }
        if let Some(cut) = finish.cut() {
            draft.extra.insert("finish".into(), cut.into());
        }
        if let Some(turn) = self.open.get_mut(&id) {
            turn.reply = Some((text, priced));
        }
        if let Some(verdict) = verdict {
            self.phase = Phase::Writing(Box::new(verdict));
        }
        fx.commands.push(Command::Save(Box::new(draft)));
    }

    /// Returns the usage of a call, priced by our table if the provider gave no price.
    fn price_of(&self, seat: usize, usage: Option<&Usage>) -> Option<Usage> {
        let usage = *usage?;
        let priced = self.plan.seats[seat]
            .price
            .map(|price| Spent::of(usage.input_tokens, usage.output_tokens, Some(price)).usd());
        Some(Usage {
            cost_usd: usage.cost_usd.or(priced),
            ..usage
        })
    }

    /// Accepts a reply: its stage reads it, and the turn ends.
    fn take(
        &mut self,
        now: Timestamp,
        id: TurnId,
        text: &str,
        message: Option<u32>,
        usage: Option<Usage>,
        fx: &mut Effects,
    ) {
        let Some(turn) = self.open.remove(&id) else {
            return;
        };
        let seat = self.plan.seats[turn.seat].name().clone();
        let finished = Event::TurnFinished {
            turn: id,
            seat,
            message,
            usage,
            tools: 0,
            thought: 0,
        };
        let asking = match turn.repairs {
            None => self.repair(&turn, text),
            Some(_) => None,
        };
        if let Some(asking) = asking {
            fx.events.push(finished);
            let stage = turn.stage;
            if self
                .ask(stage, (turn.seat, turn.sample), asking, 1, now, fx)
                .is_ok()
            {
                let again = self.open.get_mut(&self.id.turn(self.last_turn));
                if let Some(again) = again {
                    again.repairs = Some((text.to_owned(), message));
                }
            } else {
                self.read(&turn, text, None, message, fx);
            }
            return;
        }
        match &turn.repairs {
            Some((original, message)) => self.read(&turn, original, Some(text), *message, fx),
            None => self.read(&turn, text, None, message, fx),
        }
        fx.events.push(finished);
    }

    /// Returns the follow-up question for an unreadable reply; `None` if it is readable or asking cannot help.
    fn repair(&self, turn: &Turn, text: &str) -> Option<Asking> {
        let concluding = matches!(self.phase, Phase::Concluding { .. });
        if self.plan.reading == 0 || concluding || self.stopped || self.cut.is_some() {
            return None;
        }
        self.frames.last()?.repair(&self.plan, turn, text)
    }

    /// Passes a reply to the stage of its turn.
    fn read(
        &mut self,
        turn: &Turn,
        text: &str,
        repair: Option<&str>,
        message: Option<u32>,
        fx: &mut Effects,
    ) {
        if let Some(frame) = self.frames.last_mut() {
            let facts = frame.read(&self.plan, turn, text, repair, message);
            for read in facts {
                self.remember(&read);
                fact(fx, read);
            }
        }
    }

    /// Handles a failed turn. A partial answer is kept but does not count.
    fn turn_failed(&mut self, now: Timestamp, id: TurnId, mut failure: Failure, fx: &mut Effects) {
        let Some(turn) = self.open.get(&id).filter(|t| t.speaks()) else {
            return;
        };
        failure.message = clean_line(&failure.message, LINE_CHARS_MAX);
        if turn.needless {
            failure = Failure {
                used: failure.used,
                ..Failure::new(FailureKind::Cancelled, NEEDLESS)
            };
        }
        let kept = turn.is_spoken() && !turn.needless;
        let (text, partial) = match kept {
            true => (
                turn.text.trim().to_owned(),
                turn.heard(&self.plan, &turn.text),
            ),
            false => Default::default(),
        };
        let (seat, stage) = (turn.seat, turn.stage.name);
        fact(
            fx,
            Fact::SeatFailed {
                turn: id.alone(),
                seat: self.plan.seats[seat].name().clone(),
                failure: failure.clone(),
                text,
            },
        );
        let price = self.plan.seats[seat].price;
        self.ledger.settle_failed(id, &failure, price);
        if let Some(used) = &failure.used {
            self.usage.add(&used.usage);
        }
        if partial.is_empty() {
            return self.close_failed(id, failure, None, fx);
        }
        let name = self.plan.seats[seat].name().clone();
        let mut draft = self.draft(Some(id), name.as_str(), partial, Some(seat), now);
        draft.status = Some(match failure.kind {
            FailureKind::Timeout => Status::Timeout,
            FailureKind::Cancelled => Status::Interrupted,
            _ => Status::Error,
        });
        draft.extra.insert("stage".into(), stage.into());
        let kind = failure.kind.as_str();
        draft.extra.insert("failure".into(), kind.into());
        draft.extra.insert("reason".into(), failure.message.clone());
        if let Some(turn) = self.open.get_mut(&id) {
            turn.broken = Some(failure);
        }
        fx.commands.push(Command::Save(Box::new(draft)));
    }

    fn close_failed(
        &mut self,
        id: TurnId,
        failure: Failure,
        message: Option<u32>,
        fx: &mut Effects,
    ) {
        let Some(turn) = self.open.remove(&id) else {
            return;
        };
        let name = self.plan.seats[turn.seat].name().clone();
        let by_us = turn.needless
            || self.stopped
            || self.cut == Some(Cut::Time) && failure.kind == FailureKind::Cancelled;
        if !by_us {
            self.failed |= turn.stage.name != super::stages::ask_back::STAGE.name;
            self.troubles.push(format!(
                "{name} failed in {}: {}",
                turn.stage.name, failure.message
            ));
        }
        match &turn.repairs {
            // The first reply exists and counts as an abstention.
            Some((original, message)) => self.read(&turn, original, None, *message, fx),
            None => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.absent(&turn);
                }
            }
        }
        fx.events.push(Event::TurnFailed {
            turn: id,
            seat: name,
            failure,
            message,
        });
    }

    fn saved(&mut self, now: Timestamp, turn: Option<TurnId>, message: Message, fx: &mut Effects) {
        let seq = message.seq;
        let king = message.is_king();
        self.add(message, turn, false, fx);
        match turn {
            None if king && matches!(self.phase, Phase::Saving) => self.begin(now, fx),
            None => self.finish(Some(seq), fx),
            Some(id) => {
                if let Some(failure) = self.open.get_mut(&id).and_then(|t| t.broken.take()) {
                    return self.close_failed(id, failure, Some(seq), fx);
                }
                let Some((text, usage)) = self.open.get_mut(&id).and_then(|t| t.reply.take())
                else {
                    return;
                };
                if matches!(self.phase, Phase::Writing(_)) {
                    let seat = self
                        .open
                        .remove(&id)
                        .map(|t| self.plan.seats[t.seat].name().clone());
                    fx.events.extend(seat.map(|seat| Event::TurnFinished {
                        turn: id,
                        seat,
                        message: Some(seq),
                        usage,
                        tools: 0,
                        thought: 0,
                    }));
                    return self.finish(Some(seq), fx);
                }
                self.take(now, id, &text, Some(seq), usage, fx);
            }
        }
    }

    fn save_failed(&mut self, now: Timestamp, turn: Option<TurnId>, why: &str, fx: &mut Effects) {
        let why = clean_line(why, LINE_CHARS_MAX);
        fx.events.push(Event::SaveFailed {
            turn,
            why: why.clone(),
        });
        match (turn, &self.phase) {
            (None, Phase::Saving) => {
                self.phase = Phase::Done;
                fx.events.push(Event::FloorYielded {
                    outcome: Outcome::Failed,
                    usage: self.usage,
                });
            }
            (_, Phase::Writing(_)) => {
                if let Some(id) = turn {
                    self.open.remove(&id);
                }
                self.failed = true;
                self.troubles
                    .push(format!("the answer could not be written: {why}"));
                self.finish(None, fx);
            }
            (None, _) => {}
            (Some(id), _) => {
                self.failed = true;
                self.troubles
                    .push(format!("a message could not be written: {why}"));
                if let Some(failure) = self.open.get_mut(&id).and_then(|t| t.broken.take()) {
                    return self.close_failed(id, failure, None, fx);
                }
                if let Some((text, usage)) = self.open.get_mut(&id).and_then(|t| t.reply.take()) {
                    // The text is available even if writing it failed.
                    self.take(now, id, &text, None, usage, fx);
                }
            }
        }
    }

    /// Starts the time limit once the question is on disk.
    fn begin(&mut self, now: Timestamp, fx: &mut Effects) {
        self.started = Some(now);
        self.set_timers(now, fx);
        self.phase = Phase::Running;
        self.open_first();
    }

    /// Sets the timers of a time limit that began then.
    pub(super) fn set_timers(&self, began: Timestamp, fx: &mut Effects) {
        let Some(most) = self.plan.limits.duration_ms else {
            return;
        };
        for (over, ms) in [
            (false, most.saturating_mul(SOON_PERCENT) / 100),
            (true, most),
        ] {
            if let Ok(at) = began.checked_add(Duration::from_millis(ms)) {
                let timer = timer(self.id, over);
                fx.commands.push(Command::Wake { timer, at });
            }
        }
    }

    /// Announces a message once.
    fn add(&mut self, mut message: Message, turn: Option<TurnId>, found: bool, fx: &mut Effects) {
        message.clean();
        if self.seen.insert((message.seq, message.from.clone())) {
            fx.events.push(Event::MessageAdded {
                message,
                turn,
                found,
            });
        }
    }

    pub(super) fn draft(
        &self,
        turn: Option<TurnId>,
        from: &str,
        body: String,
        seat: Option<usize>,
        at: Timestamp,
    ) -> Draft {
        let open = turn.and_then(|id| self.open.get(&id));
        let member = seat.map(|s| &self.plan.seats[s].member);
        let king = from == "king";
        Draft {
            turn,
            from: from.to_owned(),
            to: if king { Address::All } else { Address::King },
            at,
            status: (!king).then_some(Status::Complete),
            refs: Vec::new(),
            provenance: crate::draft::provenance(
                member,
                open.and_then(|t| t.ear.model.as_deref()),
                open.and_then(|t| t.ear.version.as_deref()),
            ),
            extra: BTreeMap::new(),
            body,
        }
    }
}

/// Records a fact.
pub(super) fn fact(fx: &mut Effects, fact: Fact) {
    fx.events.push(Event::Deliberated {
        fact: Box::new(fact),
    });
}
