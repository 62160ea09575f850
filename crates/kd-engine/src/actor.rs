//! The event loop: the only place where a machine meets the outside world. It receives ops from front ends, deltas from
//! turns, results from the writer, and timers. It publishes records to the bus and the log, and gives work to
//! turns and the writer. It makes no decisions.

use crate::ask;
use crate::attachments;
use crate::bus::Bus;
use crate::clock::Clock;
use crate::lease::{Freed, Leases, Taken};
use crate::members::{self, Removals};
use crate::scribe::{Order, Scribe};
use crate::watch::Watch;
use kd_backends::{Backend, Spending};
use kd_core::deliberation::Fact;
use kd_core::deliberation::report::Report;
use kd_core::event::FORMAT;
use kd_core::media;
use kd_core::secrets::Secrets;
use kd_core::spending::Spent;
use kd_core::{
    Aside, Command, Conversation, Delta, Effects, Event, Failure, FailureKind, Input, Machine,
    MachineId, Member, Op, Record, Request, SeatName, ThreadId, TimerId, Timestamp, TurnId,
};
use kd_store::Thread;
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Inputs that may queue before turns are held back.
const INBOX: usize = 1024;
/// Maximum delay before a piece is written to the stream file, where other processes watch it grow.
const FLUSH: Duration = Duration::from_millis(72);
/// Input that arrives this close to the deadline also triggers the write: a separate wakeup costs more than the write.
const NEARLY: Duration = Duration::from_millis(24);

/// Finds the backend for a member.
pub(crate) type Reach =
    dyn Fn(&Member, &Spending) -> Result<Arc<dyn Backend>, Failure> + Send + Sync;

/// Returns the events that follow a verdict.
pub(crate) type Concluding = dyn Fn(&Concluded<'_>) -> Vec<Event> + Send + Sync;

/// A deliberation that has just concluded.
#[derive(Clone, Copy, Debug)]
pub struct Concluded<'a> {
    /// What happened, with the verdict.
    pub report: &'a Report,
    /// The origin of the answers.
    pub answers: Answers,
    /// The folder of the thread.
    pub thread: &'a Path,
}

/// The origin of the answers that a verdict was decided from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// This session asked for all of them.
    Asked,
    /// The deliberation was continued: some may be from a record, which anybody may have written.
    Recorded,
}

/// An instruction of a session to its event loop.
#[derive(Debug)]
pub(crate) enum Instruction {
    Op(Op),
    Aside(Box<Aside>),
    /// Mute members that other processes have removed in the meantime, and report them.
    Follow(oneshot::Sender<()>),
}

/// The machine that an event loop runs.
pub(crate) enum Runner {
    Machine(Box<dyn Machine + Send>),
    /// The machine that can begin asides.
    Conversation(Box<Conversation>),
}

impl Runner {
    fn get(&self) -> &dyn Machine {
        match self {
            Self::Machine(machine) => &**machine,
            Self::Conversation(conversation) => &**conversation,
        }
    }

    fn get_mut(&mut self) -> &mut dyn Machine {
        match self {
            Self::Machine(machine) => &mut **machine,
            Self::Conversation(conversation) => &mut **conversation,
        }
    }
}

/// Everything a loop needs to start.
pub(crate) struct Start {
    pub(crate) thread: ThreadId,
    pub(crate) machine: Runner,
    pub(crate) members: Vec<Member>,
    pub(crate) reach: Box<Reach>,
    /// Pays for every request of this loop.
    pub(crate) spending: Spending,
    /// The effects of opening the machine.
    pub(crate) opened: Effects,
    pub(crate) bus: Bus,
    pub(crate) clock: Clock,
    /// Reports what other processes do in the thread; ends with the loop.
    pub(crate) watch: Option<Watch>,
    /// Holds the leases of the members.
    pub(crate) folder: Arc<Thread>,
    /// Masked in everything users and members say.
    pub(crate) secrets: Arc<Secrets>,
    /// Called for each verdict.
    pub(crate) concluding: Option<Arc<Concluding>>,
    /// Whether the machine continues a deliberation from its record.
    pub(crate) continues: bool,
    /// Files whose message is not sent yet.
    pub(crate) attachments: Arc<attachments::Waiting>,
}

/// Creates the inbox of a loop, before the loop itself so that the writer can send to it.
pub(crate) fn inbox() -> (mpsc::Sender<Input>, mpsc::Receiver<Input>) {
    mpsc::channel(INBOX)
}

/// A running turn.
struct Running {
    task: JoinHandle<()>,
    spending: Spending,
}

/// A turn waiting because another process is asking its member.
struct Waiting {
    request: Request,
    /// The time when it gives up; `None` without a time limit.
    until: Option<Instant>,
    spending: Spending,
}

pub(crate) struct Actor {
    thread: ThreadId,
    machine: Runner,
    /// The members of each machine of the session, and the account that pays for them.
    parties: BTreeMap<MachineId, (Vec<Member>, Spending)>,
    reach: Box<Reach>,
    spending: Spending,
    bus: Bus,
    clock: Clock,
    scribe: Scribe,
    ops: mpsc::Receiver<Instruction>,
    inbox: mpsc::Receiver<Input>,
    /// Cloned into every turn.
    sender: mpsc::Sender<Input>,
    /// Running turns.
    turns: BTreeMap<TurnId, Running>,
    leases: Leases,
    thread_folder: PathBuf,
    freed: mpsc::UnboundedReceiver<Freed>,
    /// Turns waiting until another process has asked their member.
    waiting: BTreeMap<TurnId, Waiting>,
    /// Drafts ordered and not yet confirmed.
    saving: usize,
    /// Reports of the watch that arrived during a save. Some may be messages of this process, which the machine must
    /// first see as saved.
    found: Vec<Input>,
    watch: Option<Watch>,
    timers: BinaryHeap<Reverse<(Timestamp, TimerId)>>,
    /// Turns without a stream file yet: one that ends within its first frame needs none.
    began: Vec<(TurnId, SeatName, Duration)>,
    /// Pieces of answers not yet written to the stream files.
    frame: Vec<Arc<Record>>,
    flush_at: Option<Instant>,
    seq: u64,
    secrets: Arc<Secrets>,
    /// Members that other processes removed from the thread; `None` if the machine's members are fixed.
    removals: Option<Removals>,
    concluding: Option<Arc<Concluding>>,
    /// The machines that continue a deliberation from its record.
    continued: BTreeSet<MachineId>,
    attachments: Arc<attachments::Waiting>,
    /// Notices about files that members do not get. Each is published once.
    unseen: BTreeSet<String>,
}

impl Actor {
    pub(crate) fn new(
        start: Start,
        scribe: Scribe,
        ops: mpsc::Receiver<Instruction>,
        (sender, inbox): (mpsc::Sender<Input>, mpsc::Receiver<Input>),
    ) -> Self {
        let spending = {
            let ceiling = start.machine.get().ceiling();
            let thread = start.thread.0.as_str();
            start.spending.within(ceiling).of_thread(thread)
        };
        let id = start.machine.get().id();
        let thread_folder = start.folder.path().to_path_buf();
        let is_chat = matches!(start.machine, Runner::Conversation(_));
        let removals = is_chat.then(|| Removals::new(start.folder.clone(), &start.members));
        let (leases, freed) = Leases::new(start.folder);
        let mut actor = Self {
            thread: start.thread,
            machine: start.machine,
            parties: BTreeMap::from([(id, (start.members, spending))]),
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
            removals,
            concluding: start.concluding,
            thread_folder,
            continued: start.continues.then_some(id).into_iter().collect(),
            attachments: start.attachments,
            unseen: BTreeSet::new(),
            seq: 0,
        };
        let now = actor.clock.now();
        actor.publish(now, start.opened.events);
        actor.carry_out_all(start.opened.commands);
        actor
    }

    /// Takes an input, and all inputs already queued behind it, so that a busy loop does not iterate once per token.
    fn hear_all(&mut self, input: Input) {
        self.hear(input);
        for _ in 0..INBOX {
            match self.inbox.try_recv() {
                Ok(input) => self.hear(input),
                Err(_) => break,
            }
        }
        if self
            .flush_at
            .is_some_and(|at| at <= Instant::now() + NEARLY)
        {
            self.flush();
        }
    }

    /// Runs until the session is closed and the last turn has ended and is on disk.
    pub(crate) async fn run(mut self) {
        let (mut open, mut closing) = (true, false);
        // What opening the machine ordered.
        self.scribe.hand_over();
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
                    Some(Instruction::Op(mut op)) => {
                        closing |= op == Op::Close;
                        if let Op::Say { body, .. } = &mut op {
                            self.mask(body);
                            self.attach(body);
                        }
                        let removals = self.removals.as_mut();
                        match removals.and_then(|removals| removals.note(&op)) {
                            Some(why) => self.publish(self.clock.now(), vec![Event::OpRefused { why }]),
                            None => self.step(Input::Op(op)),
                        }
                    }
                    Some(Instruction::Aside(mut aside)) => {
                        self.mask(&mut aside.question);
                        self.attach(&aside.question);
                        self.aside(*aside);
                    }
                    Some(Instruction::Follow(done)) => {
                        self.follow_members();
                        // The requester may no longer wait for the answer.
                        let _ = done.send(());
                    }
                    // The session was dropped without closing: nothing waits for the turns.
                    None => {
                        (open, closing) = (false, true);
                        self.step(Input::Op(Op::Close));
                        self.step(Input::Op(Op::Interrupt));
                    }
                },
                // The loop holds a sender itself, so the inbox never closes.
                Some(input) = self.inbox.recv() => self.hear_all(input),
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
            self.scribe.hand_over();
        }
        self.scribe.finish().await;
    }

    /// Handles an input from a turn, the watch or the writer.
    fn hear(&mut self, input: Input) {
        match &input {
            // Ignore late input of a cancelled turn.
            Input::Delta { turn, .. } | Input::Failed { turn, .. }
                if !self.turns.contains_key(turn) =>
            {
                return;
            }
            Input::Delta {
                delta: Delta::Notice { text },
                ..
            } if media::is_unseen_notice(text) => return self.unseen(text),
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

    /// Steps the machine, then starts the turn if the input freed its member.
    fn react(&mut self, input: Input) {
        let freed = match &input {
            Input::Freed { turn, .. } => Some(*turn),
            _ => None,
        };
        self.step(input);
        // Still waiting: the machine neither cancelled nor asked again.
        if let Some(turn) = freed
            && let Some(waited) = self.waiting.remove(&turn)
        {
            self.begin(turn, waited.request, waited.spending);
        }
    }

    /// Steps the machine once and carries out its commands.
    fn step(&mut self, input: Input) {
        if members::may_ask(&input) {
            self.follow_members();
        }
        let now = self.clock.now();
        let Effects { commands, events } = self.machine.get_mut().step(now, input);
        self.publish(now, events);
        self.carry_out_all(commands);
    }

    /// Mutes members that another process removed from the thread, and asks those again that it added again.
    fn follow_members(&mut self) {
        let changes = self.removals.as_mut().and_then(Removals::changes);
        for change in changes.unwrap_or_default() {
            let text = change.told(&self.thread);
            self.publish(self.clock.now(), vec![Event::Noticed { text }]);
            let op = self
                .removals
                .as_ref()
                .and_then(|removals| removals.op(change));
            if let Some(op) = op {
                self.step(Input::Op(op));
            }
        }
    }

    /// Masks secrets in the user's words before anything else sees them.
    fn mask(&mut self, words: &mut String) {
        if let Some(text) = self.secrets.mask_in_place(words).line() {
            self.publish(self.clock.now(), vec![Event::Noticed { text }]);
        }
    }

    /// Stores the files that a message names, before the message.
    fn attach(&mut self, body: &str) {
        let files = self.attachments.take(body);
        if !files.is_empty() {
            self.scribe.order(Order::Attach(files));
        }
    }

    /// Publishes once that a member does not get a file, whatever else happens in its turn.
    fn unseen(&mut self, text: &str) {
        if self.unseen.insert(text.to_owned()) {
            let text = text.to_owned();
            self.publish(self.clock.now(), vec![Event::Noticed { text }]);
        }
    }

    /// Tells the machine to answer a question in another way.
    fn aside(&mut self, aside: Aside) {
        self.follow_members();
        let now = self.clock.now();
        let party = (aside.seats(), self.spending.within(aside.ceiling()));
        let continues = aside.continues();
        let Effects { commands, events } = match &mut self.machine {
            Runner::Conversation(conversation) => {
                let effects = conversation.aside(now, aside);
                // A refused aside gets no number.
                let newest = conversation.newest_aside();
                if let Entry::Vacant(place) = self.parties.entry(newest) {
                    place.insert(party);
                    self.continued.extend(continues.then_some(newest));
                }
                effects
            }
            Runner::Machine(_) => Effects {
                commands: Vec::new(),
                events: vec![Event::OpRefused {
                    why: "only a chat can do that: `kd chat`".to_owned(),
                }],
            },
        };
        self.publish(now, events);
        self.carry_out_all(commands);
    }

    /// Carries out the commands of one step. All its turns get their account before the first request is sent, so
    /// that they share the remaining amount.
    fn carry_out_all(&mut self, commands: Vec<Command>) {
        let account = |command: &Command| match command {
            // A turn that waited keeps its account: a second one would count as another turn to share with.
            Command::Ask { turn, .. } if !self.waiting.contains_key(turn) => {
                let (_, spending) = self.parties.get(&turn.machine)?;
                Some(spending.turn(self.machine.get().keeps(*turn)))
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
                    let mut failure = Failure::new(FailureKind::Cancelled, "stopped by the user");
                    failure.used = Some(Box::new(spending.close()));
                    self.step(Input::Failed { turn, failure });
                }
            }
            Command::Save(draft) => {
                self.saving += 1;
                // The message holds what the stream file lacks.
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

    /// Asks a member once no other process is asking it.
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
                    "another kd{} is asking {name} in this thread: waiting for the answer",
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
                format!("no member is named {}", request.seat),
            )),
        };
        let task = ask::start(
            turn,
            backend,
            request,
            spending.clone(),
            self.sender.clone(),
            (self.secrets.clone(), self.thread_folder.clone()),
        );
        self.turns.insert(turn, Running { task, spending });
    }

    /// Returns the member in a seat, among the members of the council or aside that the turn belongs to.
    fn member(&self, turn: TurnId, seat: &SeatName) -> Option<&Member> {
        let (members, _) = self.parties.get(&turn.machine)?;
        members.iter().find(|member| member.name == *seat)
    }

    /// Starts the turns that waited for a member another process was asking, with the messages written meanwhile. A
    /// session that watches the thread receives those like any other messages.
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

    /// Ends turns that have waited longer than an answer may take.
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
                format!("another kd was asking {seat} in this thread the whole time"),
            )
            .advise("wait for its answer, or stop the other kd, then ask again");
            failure.used = Some(Box::new(waited.spending.close()));
            self.step(Input::Failed { turn, failure });
        }
    }

    fn publish(&mut self, now: Timestamp, events: Vec<Event>) {
        for event in events {
            let concludes = matches!(&event, Event::Deliberated { fact } if matches!(**fact, Fact::Concluded(_)));
            self.publish_one(now, event);
            if concludes {
                // What is said so far need not wait for the conclusion.
                self.scribe.hand_over();
                for event in self.concluded() {
                    self.publish_one(now, event);
                }
            }
        }
    }

    /// Returns the events that follow a new verdict. They may need files.
    fn concluded(&self) -> Vec<Event> {
        let Some(concluding) = &self.concluding else {
            return Vec::new();
        };
        let report = self.bus.report();
        let machine = match &self.machine {
            Runner::Machine(machine) => machine.id(),
            // Only one aside runs at a time.
            Runner::Conversation(conversation) => conversation.newest_aside(),
        };
        let answers = match self.continued.contains(&machine) {
            true => Answers::Recorded,
            false => Answers::Asked,
        };
        let concluded = Concluded {
            report: &report,
            answers,
            thread: &self.thread_folder,
        };
        let is_shared = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        match is_shared {
            true => tokio::task::block_in_place(|| concluding(&concluded)),
            false => concluding(&concluded),
        }
    }

    fn publish_one(&mut self, now: Timestamp, event: Event) {
        // The result is on disk: the next process may ask.
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

    fn flush_soon(&mut self) {
        self.flush_at.get_or_insert_with(|| Instant::now() + FLUSH);
    }

    /// Sends the turns and pieces of this frame to the writer.
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
    /// Stops running turns if the loop ends early, together with its runtime.
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
    use crate::scribe::WriterConfig;
    use kd_core::request::{Deadlines, Prompt, Sampling};
    use kd_core::spending::Ceiling;
    use kd_store::{Layout, Lease};
    use std::sync::Mutex;

    /// Asks ada when the session resumes, and again when another process has asked her.
    struct Asks(Duration);

    impl Machine for Asks {
        fn step(&mut self, _: Timestamp, input: Input) -> Effects {
            let mut effects = Effects::default();
            if let Input::Op(Op::Resume) | Input::Freed { .. } = input {
                let request = Request {
                    attachments: Vec::new(),
                    schema_of_user: false,
                    reads: false,
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
                    turn: TurnId::new(1),
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

    /// The money left for each turn when it began, in picodollars.
    type Shares = Arc<Mutex<Vec<Option<u64>>>>;

    /// A loop over a new thread, whose only member cannot be reached.
    fn actor(folder: &std::path::Path, total: Duration) -> (Actor, Arc<Thread>, Shares) {
        let layout = Layout::find_or_create(folder, &|_| None).unwrap().layout;
        let ada = SeatName::new("ada").unwrap();
        let thread = Arc::new(Thread::create(&layout, std::slice::from_ref(&ada)).unwrap());
        let (sender, inbox) = inbox();
        let office = WriterConfig {
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
            machine: Runner::Machine(Box::new(Asks(total))),
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
            concluding: None,
            continues: false,
            attachments: Arc::default(),
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
