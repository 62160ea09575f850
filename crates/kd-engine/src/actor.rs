//! The loop: the only place where a machine meets the world. Comes in: ops from faces, deltas from turns, results from
//! the scribe, timers. Goes out: records on the bus and in the log, work for turns and scribe. It decides nothing.

use crate::ask;
use crate::bus::Bus;
use crate::clock::Clock;
use crate::lease::{Freed, Leases, Taken};
use crate::scribe::{Order, Scribe};
use crate::watch::Watch;
use kd_backends::{Backend, Spending};
use kd_core::event::FORMAT;
use kd_core::secrets::Secrets;
use kd_core::spending::Spent;
use kd_core::{
    Aside, Command, Delta, Effects, Event, Failure, FailureKind, Input, Machine, Member, Op,
    Record, Request, SeatName, ThreadId, TimerId, Timestamp, TurnId,
};
use kd_store::Thread;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Inputs that may wait before turns are held back.
const INBOX: usize = 1024;
/// How long a piece may wait until it is in the stream file: others look at it, and see it grow.
const FLUSH: Duration = Duration::from_millis(72);
/// Pieces that come when the file is nearly due take it along: waking up for it alone costs more than the writing.
const NEARLY: Duration = Duration::from_millis(24);

/// Finds who answers for a member.
pub(crate) type Reach =
    dyn Fn(&Member, &Spending) -> Result<Arc<dyn Backend>, Failure> + Send + Sync;

/// What a session wishes of its loop.
pub(crate) enum Wish {
    Op(Op),
    Aside(Box<Aside>),
}

/// Everything a loop needs to begin.
pub(crate) struct Start {
    pub(crate) thread: ThreadId,
    pub(crate) machine: Box<dyn Machine + Send>,
    pub(crate) members: Vec<Member>,
    pub(crate) reach: Box<Reach>,
    /// What everything that is asked here is paid from.
    pub(crate) spending: Spending,
    /// The effects of opening the machine.
    pub(crate) opened: Effects,
    pub(crate) bus: Bus,
    pub(crate) clock: Clock,
    /// Tells what other processes do in the thread; ends with the loop.
    pub(crate) watch: Option<Watch>,
    /// Where the leases of the members lie.
    pub(crate) folder: Arc<Thread>,
    /// What is masked in everything that is said.
    pub(crate) secrets: Arc<Secrets>,
}

/// The inbox of a loop, made before it so that the scribe can answer into it.
pub(crate) fn inbox() -> (mpsc::Sender<Input>, mpsc::Receiver<Input>) {
    mpsc::channel(INBOX)
}

/// A turn that runs.
struct Running {
    task: JoinHandle<()>,
    spending: Spending,
}

/// A turn whose member another process asks.
struct Waiting {
    request: Request,
    /// When it gives up; `None` without a limit of time.
    until: Option<Instant>,
    spending: Spending,
}

pub(crate) struct Actor {
    thread: ThreadId,
    machine: Box<dyn Machine + Send>,
    /// Who can be asked, and from which account, by sitting: first the members, then those of each aside.
    sittings: Vec<(Vec<Member>, Spending)>,
    reach: Box<Reach>,
    spending: Spending,
    bus: Bus,
    clock: Clock,
    scribe: Scribe,
    ops: mpsc::Receiver<Wish>,
    inbox: mpsc::Receiver<Input>,
    /// Given to every turn.
    sender: mpsc::Sender<Input>,
    /// Turns that run.
    turns: BTreeMap<TurnId, Running>,
    leases: Leases,
    freed: mpsc::UnboundedReceiver<Freed>,
    /// Turns that wait until another process has heard their member.
    waiting: BTreeMap<TurnId, Waiting>,
    /// Drafts that the scribe has not answered for.
    saving: usize,
    /// What the watch told meanwhile: some of it may be our own messages, which the machine must hear as saved first.
    found: Vec<Input>,
    watch: Option<Watch>,
    timers: BinaryHeap<Reverse<(Timestamp, TimerId)>>,
    /// Turns that have no stream file yet: one that ends within its first frame needs none.
    began: Vec<(TurnId, SeatName, Duration)>,
    /// Pieces of answers that are not in the stream files yet.
    frame: Vec<Arc<Record>>,
    flush_at: Option<Instant>,
    seq: u64,
    secrets: Arc<Secrets>,
}

impl Actor {
    pub(crate) fn new(
        start: Start,
        scribe: Scribe,
        ops: mpsc::Receiver<Wish>,
        (sender, inbox): (mpsc::Sender<Input>, mpsc::Receiver<Input>),
    ) -> Self {
        let spending = start.spending.within(start.machine.ceiling());
        let (leases, freed) = Leases::new(start.folder);
        let mut actor = Self {
            thread: start.thread,
            machine: start.machine,
            sittings: vec![(start.members, spending)],
            reach: start.reach,
            spending: start.spending,
            bus: start.bus,
            clock: start.clock,
            scribe,
            ops,
            inbox,
            sender,
            turns: BTreeMap::new(),
            leases,
            freed,
            waiting: BTreeMap::new(),
            saving: 0,
            found: Vec::new(),
            watch: start.watch,
            timers: BinaryHeap::new(),
            began: Vec::new(),
            frame: Vec::new(),
            flush_at: None,
            secrets: start.secrets,
            seq: 0,
        };
        let now = actor.clock.now();
        actor.publish(now, start.opened.events);
        actor.carry_out_all(start.opened.commands);
        actor
    }

    /// Runs until the session is closed and the last turn has ended and is on disk.
    pub(crate) async fn run(mut self) {
        let (mut open, mut closing) = (true, false);
        while !closing || !self.turns.is_empty() || !self.waiting.is_empty() || self.saving > 0 {
            let alarm = self.timers.peek().map(|Reverse((at, _))| *at);
            let alarm_in = alarm.map_or(Duration::MAX, |at| self.clock.until(at));
            let patience = self
                .waiting
                .values()
                .filter_map(|waiting| waiting.until)
                .min();
            tokio::select! {
                op = self.ops.recv(), if open => match op {
                    Some(Wish::Op(mut op)) => {
                        closing |= op == Op::Close;
                        if let Op::Say { body, .. } = &mut op {
                            self.mask(body);
                        }
                        self.step(Input::Op(op));
                    }
                    Some(Wish::Aside(mut aside)) => {
                        self.mask(&mut aside.question);
                        self.aside(*aside);
                    }
                    // The session was dropped without a word: nobody waits for the turns any more.
                    None => {
                        (open, closing) = (false, true);
                        self.step(Input::Op(Op::Close));
                        self.step(Input::Op(Op::Interrupt));
                    }
                },
                input = self.inbox.recv() => {
                    // We hold a sender ourselves, so the inbox is never closed.
                    if let Some(input) = input {
                        self.hear(input);
                    }
                    // What else is there already, so that a busy loop does not go round for each token.
                    for _ in 0..INBOX {
                        match self.inbox.try_recv() {
                            Ok(input) => self.hear(input),
                            Err(_) => break,
                        }
                    }
                    if self.flush_at.is_some_and(|at| at <= Instant::now() + NEARLY) {
                        self.flush();
                    }
                }
                Some(freed) = self.freed.recv() => self.free(freed),
                () = tokio::time::sleep_until(patience.unwrap_or_else(Instant::now)), if patience.is_some() => {
                    self.give_up();
                }
                () = tokio::time::sleep(alarm_in), if alarm.is_some() => {
                    if let Some(Reverse((_, timer))) = self.timers.pop() {
                        self.step(Input::Woke { timer });
                    }
                }
                () = tokio::time::sleep_until(self.flush_at.unwrap_or_else(Instant::now)), if self.flush_at.is_some() => {
                    self.flush();
                }
            }
        }
        self.scribe.finish().await;
    }

    /// An input from a turn or the scribe.
    fn hear(&mut self, input: Input) {
        match &input {
            // The last words of a turn that was cancelled are not heard.
            Input::Delta { turn, .. } | Input::Failed { turn, .. }
                if !self.turns.contains_key(turn) =>
            {
                return;
            }
            Input::Delta {
                turn,
                delta: Delta::Finished { .. },
            }
            | Input::Failed { turn, .. } => {
                self.turns.remove(turn);
            }
            Input::Saved { .. } | Input::SaveFailed { .. } => self.saving -= 1,
            Input::Found { .. }
            | Input::FoundDelta { .. }
            | Input::FoundEnd { .. }
            | Input::Freed { .. }
                if self.saving > 0 =>
            {
                self.found.push(input);
                return;
            }
            _ => {}
        }
        self.react(input);
        if self.saving == 0 {
            for found in std::mem::take(&mut self.found) {
                self.react(found);
            }
        }
    }

    /// One step; a turn whose member is free begins with it.
    fn react(&mut self, input: Input) {
        let freed = match &input {
            Input::Freed { turn, .. } => Some(*turn),
            _ => None,
        };
        self.step(input);
        // The machine did not wish for anything else.
        if let Some(turn) = freed
            && let Some(waited) = self.waiting.remove(&turn)
        {
            self.begin(turn, waited.request, waited.spending);
        }
    }

    /// One step of the machine, and everything it asks for.
    fn step(&mut self, input: Input) {
        let now = self.clock.now();
        let Effects { commands, events } = self.machine.step(now, input);
        self.publish(now, events);
        self.carry_out_all(commands);
    }

    /// Masks secrets in the user's words before anything hears them.
    fn mask(&mut self, words: &mut String) {
        if let Some(text) = self.secrets.mask_in_place(words).line() {
            self.publish(self.clock.now(), vec![Event::Noticed { text }]);
        }
    }

    /// The machine is to answer a question otherwise.
    fn aside(&mut self, aside: Aside) {
        let now = self.clock.now();
        let (seats, ceiling) = (aside.seats(), aside.ceiling());
        let Effects { commands, events } = self.machine.aside(now, aside);
        let refused = |e: &Event| matches!(e, Event::OpRefused { .. });
        if !events.iter().any(refused) {
            let spending = self.spending.within(ceiling);
            self.sittings.push((seats, spending));
        }
        self.publish(now, events);
        self.carry_out_all(commands);
    }

    /// Carries out the orders of one step. All its turns have an account before the first of them sends anything, so that
    /// they share what is left.
    fn carry_out_all(&mut self, commands: Vec<Command>) {
        let account = |command: &Command| match command {
            // One that waited goes on with its own: a second would count as another turn to share with.
            Command::Ask { turn, .. } if !self.waiting.contains_key(turn) => {
                let sitting = usize::try_from(turn.sitting()).unwrap_or(usize::MAX);
                let (_, spending) = self.sittings.get(sitting)?;
                Some(spending.turn(self.machine.keeps(*turn)))
            }
            _ => None,
        };
        let accounts: Vec<Option<Spending>> = commands.iter().map(account).collect();
        for (command, account) in commands.into_iter().zip(accounts) {
            self.carry_out(command, account);
        }
    }

    fn carry_out(&mut self, command: Command, account: Option<Spending>) {
        match command {
            Command::Ask { turn, request } => self.ask(turn, *request, account),
            Command::Cancel { turn } => {
                let mut stopped = None;
                if let Some(running) = self.turns.remove(&turn) {
                    running.task.abort();
                    stopped = Some(running.spending);
                } else if let Some(waiting) = self.waiting.remove(&turn) {
                    self.leases.give(turn);
                    stopped = Some(waiting.spending);
                }
                if let Some(spending) = stopped {
                    let mut failure = Failure::new(FailureKind::Cancelled, "stopped by the king");
                    failure.used = Some(Box::new(spending.close()));
                    self.step(Input::Failed { turn, failure });
                }
            }
            Command::Save(draft) => {
                self.saving += 1;
                // What the stream file lacks, the message has.
                if let Some(saved) = draft.turn {
                    self.began.retain(|(turn, ..)| *turn != saved);
                    self.frame.retain(|record| {
                        !matches!(record.event, Event::TurnDelta { turn, .. } if turn == saved)
                    });
                }
                self.scribe.order(Order::Save(draft));
            }
            Command::Keep(delivery) => self.scribe.order(Order::Keep(delivery)),
            Command::Forget { id } => self.scribe.order(Order::Forget(id)),
            Command::Wake { timer, at } => self.timers.push(Reverse((at, timer))),
        }
    }

    /// Asks a member, once no other process does.
    fn ask(&mut self, turn: TurnId, request: Request, account: Option<Spending>) {
        let member = self.member(turn, &request.seat);
        let name = member
            .map_or(request.seat.as_str(), Member::agent)
            .to_owned();
        let spending = match self.waiting.remove(&turn) {
            Some(waited) => waited.spending,
            None => account.unwrap_or_else(|| self.spending.turn(Spent::default())),
        };
        match self.leases.take(turn, &name) {
            Taken::Ours => self.begin(turn, request, spending),
            Taken::Theirs(holder) => {
                let whose = holder.map(|pid| format!(" (process {pid})"));
                let text = format!(
                    "another kd{} asks {name} in this thread: this turn waits for the answer",
                    whose.unwrap_or_default()
                );
                let total = request.deadlines.total;
                let until = Instant::now()
                    .checked_add(total)
                    .filter(|_| !total.is_zero());
                let waiting = Waiting {
                    request,
                    until,
                    spending,
                };
                self.waiting.insert(turn, waiting);
                self.step(Input::Delta {
                    turn,
                    delta: Delta::Notice { text },
                });
            }
        }
    }

    fn begin(&mut self, turn: TurnId, request: Request, spending: Spending) {
        self.began
            .push((turn, request.seat.clone(), request.deadlines.total));
        self.flush_soon();
        let backend = match self.member(turn, &request.seat) {
            Some(member) => (self.reach)(member, &spending),
            None => Err(Failure::new(
                FailureKind::Missing,
                format!("nobody sits as {}", request.seat),
            )),
        };
        let task = ask::start(
            turn,
            backend,
            request,
            spending.clone(),
            self.sender.clone(),
            self.secrets.clone(),
        );
        self.turns.insert(turn, Running { task, spending });
    }

    /// Who sits in a seat of the sitting that a turn belongs to.
    fn member(&self, turn: TurnId, seat: &SeatName) -> Option<&Member> {
        let sitting = usize::try_from(turn.sitting()).unwrap_or(usize::MAX);
        let mut members = self.sittings.get(sitting).into_iter().flat_map(|(m, _)| m);
        members.find(|member| member.name == *seat)
    }

    /// Another process has heard a member: the turns that waited for it can begin, with what was said meanwhile. Who follows
    /// the thread is told of that as of anything that others say.
    fn free(&mut self, mut freed: Freed) {
        let mut found = std::mem::take(&mut freed.found);
        if self.watch.is_some() {
            for message in found.drain(..) {
                self.hear(Input::Found { message });
            }
        }
        for turn in self.leases.free(freed) {
            let found = found.clone();
            self.hear(Input::Freed { turn, found });
        }
    }

    /// Ends the turns that have waited for as long as an answer may take.
    fn give_up(&mut self) {
        let now = Instant::now();
        let late: Vec<TurnId> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.until.is_some_and(|until| until <= now))
            .map(|(turn, _)| *turn)
            .collect();
        for turn in late {
            let Some(waited) = self.waiting.remove(&turn) else {
                continue;
            };
            self.leases.give(turn);
            let seat = waited.request.seat;
            let mut failure = Failure::new(
                FailureKind::Timeout,
                format!("another kd asked {seat} in this thread all the time"),
            )
            .advise("wait for its answer, or end the other kd, then ask again");
            failure.used = Some(Box::new(waited.spending.close()));
            self.step(Input::Failed { turn, failure });
        }
    }

    fn publish(&mut self, now: Timestamp, events: Vec<Event>) {
        for event in events {
            // What came of it is on disk: the next process may ask.
            if let Event::TurnFinished { turn, .. } | Event::TurnFailed { turn, .. } = &event {
                self.leases.give(*turn);
                self.waiting.remove(turn);
            }
            self.seq += 1;
            let record = Arc::new(Record {
                v: FORMAT,
                seq: self.seq,
                ts: now,
                thread: self.thread.clone(),
                event,
            });
            if matches!(record.event, Event::TurnDelta { .. }) {
                self.frame.push(record.clone());
                self.flush_soon();
            } else {
                self.scribe.order(Order::Log(record.clone()));
            }
            self.bus.publish(record);
        }
    }

    fn flush_soon(&mut self) {
        self.flush_at.get_or_insert_with(|| Instant::now() + FLUSH);
    }

    /// Hands the turns and the pieces of this frame to the scribe.
    fn flush(&mut self) {
        self.flush_at = None;
        for (turn, seat, patience) in self.began.drain(..) {
            self.scribe.order(Order::Began {
                turn,
                seat,
                patience,
            });
        }
        if !self.frame.is_empty() {
            self.scribe
                .order(Order::Stream(std::mem::take(&mut self.frame)));
        }
    }
}

impl Drop for Actor {
    /// A loop that ends early, with its runtime, leaves no turn running.
    fn drop(&mut self) {
        for running in self.turns.values() {
            running.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::scribe::Office;
    use kd_core::request::{Deadlines, Prompt, Sampling};
    use kd_core::spending::Ceiling;
    use kd_store::{Layout, Lease};
    use std::sync::Mutex;

    /// Asks ada when the session is resumed, and anew when another process has heard her.
    struct Asks(Duration);

    impl Machine for Asks {
        fn step(&mut self, _: Timestamp, input: Input) -> Effects {
            let mut effects = Effects::default();
            if let Input::Op(Op::Resume) | Input::Freed { .. } = input {
                let request = Request {
                    seat: SeatName::new("ada").unwrap(),
                    prompt: Prompt::default(),
                    sampling: Sampling::default(),
                    schema: None,
                    deadlines: Deadlines {
                        total: self.0,
                        ..Deadlines::default()
                    },
                    writable: false,
                    tools: None,
                };
                effects.commands.push(Command::Ask {
                    turn: TurnId(1),
                    request: Box::new(request),
                });
            }
            effects
        }

        fn ceiling(&self) -> Ceiling {
            Ceiling {
                micro_usd: Some(1000),
                ..Ceiling::default()
            }
        }
    }

    /// The shares of money that were left to the turns when they began, in pico-dollars.
    type Shares = Arc<Mutex<Vec<Option<u64>>>>;

    /// A loop over a new thread, whose only member cannot be reached.
    fn actor(folder: &std::path::Path, total: Duration) -> (Actor, Arc<Thread>, Shares) {
        let layout = Layout::find_or_create(folder, &|_| None).unwrap().layout;
        let ada = SeatName::new("ada").unwrap();
        let thread = Arc::new(Thread::create(&layout, std::slice::from_ref(&ada)).unwrap());
        let (sender, inbox) = inbox();
        let office = Office {
            thread: thread.clone(),
            queue: None,
            own: crate::watch::Own::default(),
            inbox: sender.clone(),
            then: None,
        };
        let shares = Shares::default();
        let told = shares.clone();
        let start = Start {
            thread: thread.id().clone(),
            machine: Box::new(Asks(total)),
            members: vec![Member::new(ada, "svc")],
            reach: Box::new(move |_, spending| {
                told.lock().unwrap().push(spending.share_pico_usd());
                Err(Failure::new(FailureKind::Missing, "nobody is there"))
            }),
            spending: Spending::default(),
            opened: Effects::default(),
            bus: Bus::new(kd_core::view::View::default()),
            clock: Clock::new(),
            watch: None,
            folder: thread.clone(),
            secrets: Arc::default(),
        };
        let (_ops, wishes) = mpsc::channel(1);
        let scribe = Scribe::start(office).unwrap();
        (
            Actor::new(start, scribe, wishes, (sender, inbox)),
            thread,
            shares,
        )
    }

    #[tokio::test]
    async fn a_turn_that_waited_for_its_member_has_all_that_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (mut actor, thread, shares) = actor(folder.path(), Duration::from_secs(60));
        let other = Lease::try_take(&thread, "ada").unwrap().unwrap();
        actor.step(Input::Op(Op::Resume));
        assert_eq!(actor.waiting.len(), 1);
        drop(other);
        let freed = actor.freed.recv().await.unwrap();
        actor.free(freed);
        assert_eq!(*shares.lock().unwrap(), [Some(1_000_000_000)]);
    }

    #[tokio::test]
    async fn a_turn_waits_without_end_where_time_has_no_limit_or_none_that_a_clock_can_tell() {
        for total in [Duration::ZERO, Duration::MAX] {
            let folder = tempfile::tempdir().unwrap();
            let (mut actor, thread, shares) = actor(folder.path(), total);
            let other = Lease::try_take(&thread, "ada").unwrap().unwrap();
            actor.step(Input::Op(Op::Resume));
            actor.give_up();
            assert_eq!(actor.waiting.len(), 1, "{total:?}");
            drop(other);
            let freed = actor.freed.recv().await.unwrap();
            actor.free(freed);
            assert_eq!(shares.lock().unwrap().len(), 1, "{total:?}");
        }
    }
}
