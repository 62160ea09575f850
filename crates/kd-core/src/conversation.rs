//! A conversation: a council that can be interrupted by an aside, which answers one question in another way.
//!
//! Input: [`Input`]s, and asides. Output: [`Effects`] of the council and the aside combined. An aside begins when no
//! member is speaking and runs to its end; messages of the user wait meanwhile. Its messages are part of the thread. If
//! the program is killed, a later session can continue a deliberation as a new aside.

use crate::council::{Council, OpenCouncil};
use crate::deliberation::report::Report;
use crate::deliberation::{CannotResume, Deliberation, Fact, Plan, Resumed};
use crate::duet::{Duet, OpenDuet};
use crate::event::{Event, Outcome};
use crate::ids::{MachineId, SeatName, TurnId};
use crate::machine::{Command, Effects, Input, Machine};
use crate::message::{Address, Message, settled};
use crate::op::Op;
use crate::prompt;
use crate::request::Delta;
use crate::roster::Member;
use crate::spending::{Ceiling, Keep};
use crate::text::Text;
use jiff::Timestamp;
use std::any::Any;
use std::collections::BTreeSet;

/// What can be done after a deliberation was stopped: its record says that it ended.
const STOPPED: &str = "the deliberation was stopped and has ended: /resume does not continue it; `kd fork --stage STAGE` makes a thread that begins before a stage (`kd why` shows them), and /resume there asks for the rest";
/// Maximum bytes of the conversation included in a deliberation.
const BACKGROUND_BYTES_MAX: usize = 8 << 10;

/// A question to answer outside the council's turns.
#[derive(Debug)]
pub struct Aside {
    /// The user's question.
    pub question: String,
    /// The protocol that answers it.
    pub how: How,
    /// Notices for the user before it begins.
    pub notices: Vec<String>,
    /// Kept until it has ended, for example a lock.
    pub guard: Option<Box<dyn Any + Send>>,
}

/// The protocol of an aside.
#[derive(Debug)]
pub enum How {
    /// A debate of two members in tags, with the history of the conversation.
    Think(Box<OpenDuet>),
    /// A deliberation: opinions, review, vote and conclusion.
    Deliberate {
        /// Its plan.
        plan: Box<Plan>,
        /// The beginning of every prompt.
        preamble: String,
    },
    /// A deliberation of this thread that an earlier session began, or that a fork left at a stage.
    Resume(Box<Resumed>),
}

impl Aside {
    /// Returns the members that it may ask.
    pub fn seats(&self) -> Vec<Member> {
        match &self.how {
            How::Think(open) => {
                let roster = open.seats.roster();
                roster
                    .members()
                    .iter()
                    .chain(roster.chair())
                    .cloned()
                    .collect()
            }
            How::Deliberate { plan, .. } => members_of(plan),
            How::Resume(resumed) => members_of(resumed.machine.plan()),
        }
    }

    /// Returns the message of the user that it begins with; `None` if that is in the thread.
    pub fn says(&self) -> Option<&str> {
        (!self.continues()).then_some(self.question.as_str())
    }

    /// Returns whether it continues a deliberation from its record.
    pub fn continues(&self) -> bool {
        matches!(self.how, How::Resume(_))
    }

    /// Returns the spending limit of its requests.
    pub fn ceiling(&self) -> Ceiling {
        match &self.how {
            How::Think(open) => open.limits.ceiling(),
            How::Deliberate { plan, .. } => plan.limits.ceiling(),
            How::Resume(resumed) => resumed.machine.ceiling(),
        }
    }

    /// Returns the names that it uses: the names of its members and of their agents.
    fn asks(&self) -> Vec<SeatName> {
        let mut asked: Vec<SeatName> = self.seats().into_iter().map(|m| m.name).collect();
        let plan = match &self.how {
            How::Think(_) => return asked,
            How::Deliberate { plan, .. } => plan,
            How::Resume(resumed) => resumed.machine.plan(),
        };
        let agents = plan.seats.iter();
        asked.extend(agents.filter_map(|s| SeatName::new(&s.agent).ok()));
        asked
    }
}

fn members_of(plan: &Plan) -> Vec<Member> {
    plan.seats.iter().map(|s| s.member.clone()).collect()
}

/// The state machine.
pub struct Conversation {
    council: Council,
    aside: Option<Running>,
    /// Number of asides so far.
    asides: u32,
}

/// The running aside.
struct Running {
    machine: Box<dyn Machine + Send>,
    id: MachineId,
    seats: Vec<SeatName>,
    /// The progress report of a deliberation.
    report: Report,
    /// Whether its members fill in forms: their meaning is reported, not their text.
    reads_forms: bool,
    /// See [`Aside::guard`].
    _guard: Option<Box<dyn Any + Send>>,
}

impl Conversation {
    /// Opens a council for a conversation.
    pub fn open(open: OpenCouncil) -> (Self, Effects) {
        let (council, opened) = Council::open(open);
        let conversation = Self {
            council,
            aside: None,
            asides: 0,
        };
        (conversation, opened)
    }

    /// Returns the council.
    pub fn council(&self) -> &Council {
        &self.council
    }

    /// The newest aside; [`MachineId`] 0, the council, where there was none.
    pub fn newest_aside(&self) -> MachineId {
        MachineId(self.asides)
    }

    /// Begins an aside; the effects hold an [`Event::OpRefused`] if it cannot begin now.
    pub fn aside(&mut self, now: Timestamp, aside: Aside) -> Effects {
        if let Some(why) = self.refusal(&aside) {
            return refused(&why);
        }
        let seats = aside.seats().into_iter().map(|m| m.name).collect();
        let (notices, guard, question) = (aside.notices, aside.guard, aside.question);
        let id = MachineId(self.asides + 1);
        let reads_forms = matches!(aside.how, How::Deliberate { .. });
        let background = self.background();
        let history = self.council.history().to_vec();
        let messages = u32::try_from(history.len()).unwrap_or(u32::MAX);
        let (machine, opened): (Box<dyn Machine + Send>, Effects) = match aside.how {
            How::Think(open) => {
                let (duet, opened) = Duet::open(OpenDuet { history, ..*open });
                (Box::new(duet.numbered(id)), opened)
            }
            How::Deliberate { mut plan, preamble } => {
                if !background.is_empty() {
                    plan.background = format!("{}\n{background}", plan.background)
                        .trim()
                        .to_owned();
                }
                let (machine, opened) =
                    Deliberation::open(*plan, notices.clone(), preamble, messages);
                (Box::new(machine.numbered(id)), opened)
            }
            How::Resume(resumed) => return self.go_on(now, *resumed, (seats, notices, guard)),
        };
        self.asides += 1;
        self.council.hold(true);
        self.aside = Some(Running {
            machine,
            id,
            seats,
            report: Report::default(),
            reads_forms,
            _guard: guard,
        });
        let mut fx = Effects::default();
        let notices = notices.into_iter();
        fx.events
            .extend(notices.map(|text| Event::Noticed { text }));
        self.take(opened, &mut fx);
        let say = Op::Say {
            body: question,
            to: Address::All,
        };
        let said = self.hear(now, Input::Op(say));
        fx.commands.extend(said.commands);
        fx.events.extend(said.events);
        fx
    }

    /// Continues a deliberation under the number that its record has.
    fn go_on(
        &mut self,
        now: Timestamp,
        resumed: Resumed,
        (seats, notices, guard): Terms,
    ) -> Effects {
        let id = resumed.machine.id();
        let newest = self.council.history().last().map_or(0, |m| m.seq);
        if id.0 <= self.asides || newest > resumed.messages {
            return refused(&format!("it cannot go on: {}", CannotResume::GoneOn));
        }
        self.asides = id.0;
        let asked_again = asked_again(&resumed);
        self.council.hold(true);
        self.aside = Some(Running {
            machine: Box::new(resumed.machine),
            id,
            seats,
            report: resumed.view.report,
            reads_forms: true,
            _guard: guard,
        });
        let mut fx = Effects::default();
        let notices = notices.into_iter();
        fx.events
            .extend(notices.map(|text| Event::Noticed { text }));
        fx.events.extend(asked_again);
        self.take(resumed.effects, &mut fx);
        if self.aside.is_none() {
            let more = self.council.proceed(now);
            fx.commands.extend(more.commands);
            fx.events.extend(more.events);
        }
        fx
    }

    fn op(&mut self, now: Timestamp, op: Op) -> Effects {
        let Some(running) = &mut self.aside else {
            return self.council.step(now, Input::Op(op));
        };
        match &op {
            Op::Interrupt => {
                let aside = running.machine.step(now, Input::Op(Op::Interrupt));
                let mut fx = self.council.step(now, Input::Op(op));
                self.take(aside, &mut fx);
                fx
            }
            Op::Stop { seat } if running.seats.contains(seat) => {
                let aside = running.machine.step(now, Input::Op(op));
                let mut fx = Effects::default();
                self.take(aside, &mut fx);
                fx
            }
            Op::Retry { .. } => refused("not now: retry when no member is speaking"),
            _ => self.council.step(now, Input::Op(op)),
        }
    }

    /// Returns whether a turn, or a saved message of the user, belongs to the aside.
    fn is_asides(&self, turn: Option<TurnId>) -> bool {
        match (&self.aside, turn) {
            // The council is paused and writes no message of the user meanwhile.
            (Some(_), None) => true,
            (_, Some(turn)) => self.has_floor(turn.machine),
            (None, None) => false,
        }
    }

    /// Whether this machine is the aside that has the floor.
    fn has_floor(&self, machine: MachineId) -> bool {
        self.aside.as_ref().is_some_and(|a| a.id == machine)
    }

    /// Passes an input to the aside.
    fn hear(&mut self, now: Timestamp, input: Input) -> Effects {
        let mut fx = Effects::default();
        if let Some(running) = &mut self.aside {
            let aside = running.machine.step(now, input);
            self.take(aside, &mut fx);
        }
        fx
    }

    /// Merges the aside's effects into ours, and resumes the council when the aside has ended.
    fn take(&mut self, aside: Effects, fx: &mut Effects) {
        let Some(running) = &mut self.aside else {
            return;
        };
        let mut over = false;
        fx.commands.extend(aside.commands);
        for mut event in aside.events {
            let mut told = None;
            match &mut event {
                // The members of the conversation do not change.
                Event::ThreadOpened { .. } => continue,
                Event::MessageAdded { message, .. } => self.council.learn(message.clone()),
                Event::FloorYielded { outcome, .. } => {
                    over = true;
                    if running.reads_forms && *outcome == Outcome::Interrupted {
                        told = Some(STOPPED.to_owned());
                    }
                }
                Event::Deliberated { fact } => {
                    running.report.fact(fact);
                    // A failed turn has its own event.
                    if !matches!(**fact, Fact::SeatFailed { .. }) {
                        told = running.report.told(fact, "·");
                    }
                }
                Event::TurnDelta { delta, .. } if running.reads_forms => blank(delta),
                _ => {}
            }
            fx.events.push(event);
            fx.events.extend(told.map(|line| Event::Noticed {
                text: line.trim().to_owned(),
            }));
        }
        if over {
            self.aside = None;
            self.council.hold(false);
        }
    }

    /// Returns why an aside cannot begin now.
    fn refusal(&self, aside: &Aside) -> Option<String> {
        if self.aside.is_some() || !self.council.is_idle() {
            return Some("members are speaking: wait for them, or stop them first".into());
        }
        if self.council.is_closed() {
            return Some("the thread is closing: open it again to continue".into());
        }
        if aside.question.trim().is_empty() {
            return Some("there is no question yet: write one after the command".into());
        }
        let asks = aside.asks();
        if let Some(seat) = asks.iter().find(|s| self.council.roster().is_muted(s)) {
            return Some(format!("{seat} is muted: unmute it first"));
        }
        let taken = asks
            .iter()
            .find(|s| self.council.is_taken(&Address::Seats(vec![(*s).clone()])))?;
        Some(format!(
            "{taken} is answering another kd process in this thread: wait for its answer"
        ))
    }

    /// Returns the end of the conversation, for members that were not part of it.
    fn background(&self) -> Text {
        let names = self.council.roster().members().iter().map(|m| &m.name);
        let messages: Vec<&Message> = settled(self.council.history());
        let mut from = messages.len();
        let mut bytes = 0;
        while from > 0 {
            bytes += messages[from - 1].body.len() + messages[from - 1].from.len() + 4;
            if bytes > BACKGROUND_BYTES_MAX {
                break;
            }
            from -= 1;
        }
        match messages.get(from..) {
            Some(rest) if !rest.is_empty() => prompt::render(rest.iter().copied(), names).text,
            _ => Text::default(),
        }
    }
}

impl Machine for Conversation {
    fn step(&mut self, now: Timestamp, input: Input) -> Effects {
        let ours = match &input {
            Input::Op(_) => false,
            Input::Delta { turn, .. } | Input::Failed { turn, .. } | Input::Freed { turn, .. } => {
                self.is_asides(Some(*turn))
            }
            Input::Saved { turn, .. } | Input::SaveFailed { turn, .. } => self.is_asides(*turn),
            Input::Woke { timer } => self.has_floor(timer.machine),
            Input::Found { .. }
            | Input::FoundDelta { .. }
            | Input::FoundEnd { .. }
            | Input::FoundGone { .. }
            | Input::FoundWaiting
            | Input::Kept { .. }
            | Input::KeepFailed { .. } => false,
        };
        let held = self.aside.is_some();
        let mut fx = match input {
            Input::Op(op) => self.op(now, op),
            input if ours => self.hear(now, input),
            input => self.council.step(now, input),
        };
        if held && self.aside.is_none() {
            // The aside has ended: the messages queued meanwhile are processed.
            let more = self.council.proceed(now);
            fx.commands.extend(more.commands);
            fx.events.extend(more.events);
        }
        fx
    }

    fn keeps(&self, turn: TurnId) -> Keep {
        let asides = self.aside.as_ref().filter(|a| turn.machine == a.id);
        match asides {
            Some(aside) => aside.machine.keeps(turn),
            None => self.council.keeps(turn),
        }
    }
}

/// The data of a new aside besides its protocol: its members, the notices, and its guard.
type Terms = (Vec<SeatName>, Vec<String>, Option<Box<dyn Any + Send>>);

/// Queues the turns that were recorded as asked and are asked again: the front ends of this session do not know them.
fn asked_again(resumed: &Resumed) -> Vec<Event> {
    let is_new = |event: &Event| match event {
        Event::TurnQueued { turn, .. } => Some(*turn),
        _ => None,
    };
    let new: BTreeSet<TurnId> = resumed.effects.events.iter().filter_map(is_new).collect();
    let again = |command: &Command| match command {
        Command::Ask { turn, request } if !new.contains(turn) => {
            let seen = resumed.view.turn(*turn)?;
            Some(Event::TurnQueued {
                turn: *turn,
                seat: request.seat.clone(),
                purpose: seen.purpose,
                replaces: None,
                ahead: Vec::new(),
            })
        }
        _ => None,
    };
    resumed.effects.commands.iter().filter_map(again).collect()
}

/// Removes the text from a piece that belongs to a form.
fn blank(delta: &mut Delta) {
    match delta {
        Delta::Text { text } => text.clear(),
        Delta::Finished { text, .. } => *text = None,
        _ => {}
    }
}

fn refused(why: &str) -> Effects {
    Effects {
        commands: Vec::new(),
        events: vec![Event::OpRefused {
            why: why.to_owned(),
        }],
    }
}
