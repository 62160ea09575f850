//! The engine of Kingdom: the event loop of threads, the clock, the spawner of tasks. It makes no decisions: it executes
//! the commands of a [`kd_core::Machine`] and feeds back the results. A forum runs beside the loop, in sequence, with the
//! feature `forum`.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod actor;
pub mod agents;
mod ask;
mod attachments;
pub mod bus;
mod clock;
#[cfg(feature = "forum")]
pub mod forum;
mod lease;
mod members;
mod scribe;
pub mod watch;
mod writers;

pub use actor::{Answers, Concluded};
pub use bus::{Subscription, Update};
pub use clock::Clock;
pub use watch::Watch;
pub use writers::written;

use actor::{Actor, Instruction, Runner, Start};
use kd_backends::backends::Backends;
use kd_core::council::{Council, OpenCouncil};
use kd_core::media::Attachment;
use kd_core::message::newest_question;
use kd_core::output::Schema;
use kd_core::secrets::Secrets;
use kd_core::view::View;
use kd_core::{
    Address, Aside, Conversation, Effects, Event, Failure, Formatted, LastRound, Machine, Member,
    Message, Op, SeatName, ThreadId,
};
use kd_store::{Queue, Thread};
use scribe::{NoQueue, Scribe, Then, WriterConfig};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Ops of a front end that may queue. No person fills the queue; a script that does gets an error.
const OPS: usize = 256;

/// The reason why a session could not be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system could not start a thread.
    #[error("the thread that writes messages could not be started: {0}")]
    Scribe(#[source] std::io::Error),
    /// The folder cannot be watched.
    #[error("the thread's folder cannot be watched: {0}")]
    Watch(#[source] std::io::Error),
    /// Only members running on this machine may be asked, and this one does not.
    #[error("this thread is private, and {}", .0.message)]
    Private(Failure),
    /// The thread could not be read.
    #[error(transparent)]
    Store(#[from] kd_store::Error),
    /// Too many ops are queued.
    #[error("too many requests are waiting in this thread")]
    Busy,
    /// The loop has ended.
    #[error("this session is closed")]
    Closed,
}

impl Error {
    /// Returns advice for the user.
    pub fn hint(&self) -> String {
        match self {
            Error::Watch(_) => {
                "check the folder's permissions, or raise `fs.inotify.max_user_watches`".to_owned()
            }
            Error::Scribe(_) => "raise the process limit (`ulimit -u`), or stop some".to_owned(),
            Error::Private(failure) => failure.hint().to_owned(),
            Error::Store(error) => error.hint(),
            Error::Busy => "wait for the running answers".to_owned(),
            Error::Closed => "open the thread again".to_owned(),
        }
    }
}

/// A machine ready to run in a thread.
pub struct Opening {
    /// The thread.
    pub id: ThreadId,
    /// Makes the decisions.
    pub machine: Box<dyn Machine + Send>,
    /// The effects of opening it.
    pub opened: Effects,
    /// All members it may ask.
    pub seats: Vec<Member>,
}

/// An [`Opening`] whose machine may be a conversation.
struct Ready {
    id: ThreadId,
    machine: Runner,
    opened: Effects,
    seats: Vec<Member>,
    /// The view of a continued machine, for front ends.
    shown: Option<View>,
    /// The events of a continued machine.
    before: Vec<Event>,
}

impl From<Opening> for Ready {
    fn from(opening: Opening) -> Self {
        Self {
            id: opening.id,
            machine: Runner::Machine(opening.machine),
            opened: opening.opened,
            seats: opening.seats,
            shown: None,
            before: Vec::new(),
        }
    }
}

impl Ready {
    /// Prepares a council.
    fn council(open: OpenCouncil) -> Self {
        let (id, seats) = (open.thread.clone(), seats(&open));
        let (council, opened) = Council::open(open);
        Self {
            id,
            machine: Runner::Machine(Box::new(council)),
            opened,
            seats,
            shown: None,
            before: Vec::new(),
        }
    }

    /// Prepares a conversation, a council that supports asides.
    fn conversation(open: OpenCouncil) -> Self {
        let (id, seats) = (open.thread.clone(), seats(&open));
        let (conversation, opened) = Conversation::open(open);
        Self {
            id,
            machine: Runner::Conversation(Box::new(conversation)),
            opened,
            seats,
            shown: None,
            before: Vec::new(),
        }
    }
}

/// Reads the newest round from the log, if an answer seems to be missing. Otherwise skips reading a possibly long log.
fn last_round(thread: &Thread, history: &[Message]) -> Option<LastRound> {
    let at = newest_question(history)?;
    let (king, answers) = history[at..].split_first()?;
    let called = match &king.to {
        Address::Seats(seats) => seats.clone(),
        _ => thread.members(),
    };
    let answered = |seat: &SeatName| {
        let mut own = answers.iter().rev().filter(|m| m.from == seat.as_str());
        own.next().is_some_and(Message::is_sound)
    };
    if called.iter().all(answered) {
        return None;
    }
    // If the log cannot be read, the messages must be enough.
    let logged = kd_store::log::read(thread).ok()?;
    LastRound::of(&logged.records, king.seq)
}

fn seats(open: &OpenCouncil) -> Vec<Member> {
    let members = open.roster.members().iter();
    members.chain(open.roster.chair()).cloned().collect()
}

/// The initial state of a conversation.
struct History {
    /// The number of the newest message.
    seen: u32,
    view: View,
    /// The message queue, or why messages are not kept.
    queue: Result<Queue, NoQueue>,
}

/// Opens sessions. One per process: all sessions share the backends, and with them connections and the built-in model.
#[derive(Clone)]
pub struct Engine {
    backends: Arc<Backends>,
    told: Vec<Event>,
    secrets: Arc<Secrets>,
    concluding: Option<Arc<actor::Concluding>>,
    output: Option<Arc<dyn Schema>>,
    becoming_private: Option<Arc<BecomingPrivate>>,
    attachments: Arc<attachments::Waiting>,
}

/// The action for a thread that just became private.
type BecomingPrivate = dyn Fn(&Thread) + Send + Sync;

impl Engine {
    /// Creates an engine with these backends.
    pub fn new(backends: Backends) -> Self {
        Self {
            backends: Arc::new(backends),
            told: Vec::new(),
            secrets: Arc::default(),
            concluding: None,
            output: None,
            becoming_private: None,
            attachments: Arc::default(),
        }
    }

    /// Masks these secrets in the user's messages and in the members' answers. Without this call, all well-known secret
    /// formats are masked.
    #[must_use]
    pub fn masking(mut self, secrets: Secrets) -> Self {
        self.secrets = Arc::new(secrets);
        self
    }

    /// Calls `conclude` once for each verdict, whatever asked for the deliberation. The events that it returns follow the
    /// verdict; it may block.
    #[must_use]
    pub fn concluding(
        mut self,
        conclude: impl Fn(&Concluded<'_>) -> Vec<Event> + Send + Sync + 'static,
    ) -> Self {
        self.concluding = Some(Arc::new(conclude));
        self
    }

    /// Puts the answer of each round into this JSON schema too, except in conversations.
    #[must_use]
    pub fn formatting(mut self, schema: Option<Arc<dyn Schema>>) -> Self {
        self.output = schema;
        self
    }

    /// Calls `became` with each thread that a session makes private; it may block.
    #[must_use]
    pub fn becoming_private(mut self, became: impl Fn(&Thread) + Send + Sync + 'static) -> Self {
        self.becoming_private = Some(Arc::new(became));
        self
    }

    /// Passes pictures and documents to the session, before the message that names them is sent. They are stored with it.
    pub fn attach(&self, files: Vec<Attachment>) {
        self.attachments.add(files);
    }

    /// Returns the account for all requests of this engine.
    pub fn spending(&self) -> &kd_backends::spending::Spending {
        self.backends.spending()
    }

    /// Starts each session with these events too, such as which parts of the folder are held back.
    #[must_use]
    pub fn telling(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.told = events.into_iter().collect();
        self
    }

    /// Starts the programs of members that will be asked next: see [`Backends::prepare`]. Must be called inside a tokio
    /// runtime.
    pub fn prepare<'a>(&self, members: impl IntoIterator<Item = &'a Member>) {
        for member in members {
            self.backends.prepare(member);
        }
    }

    /// Starts the event loop of a council in its thread. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the thread is private and a member does not run on this machine ([`Error::Private`]), `thread.json` cannot be
    /// written, or no writer thread can be started.
    pub fn open(&self, thread: Thread, open: OpenCouncil) -> Result<Session, Error> {
        self.begin(thread, Ready::council(open), None, None)
    }

    /// Like [`Engine::open`], and calls `then` on a writer thread once the first message is on disk, for work that
    /// nothing waits for.
    ///
    /// # Errors
    /// Those of [`Engine::open`].
    pub fn open_and(
        &self,
        thread: Thread,
        open: OpenCouncil,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<Session, Error> {
        self.begin(thread, Ready::council(open), None, Some(Box::new(then)))
    }

    /// Opens a thread for a conversation: loads it from disk, follows what other processes do in it, and stores the
    /// user's messages in `queue` until they are answered ([`kd_store::Layout::queue_folder`]). `open.history` and
    /// `open.queue` are read here. Resumes the work that an earlier session left unfinished. If the queue folder is
    /// missing or unusable, a notice with the first message says that messages are not saved. Must be called inside a
    /// tokio runtime.
    ///
    /// # Errors
    /// Those of [`Engine::open`]; also if the thread cannot be read or its folder cannot be watched.
    pub fn join(
        &self,
        thread: Thread,
        open: OpenCouncil,
        queue: Option<&Path>,
    ) -> Result<Session, Error> {
        self.join_showing(thread, open, queue, |history| View::open(history.to_vec()))
    }

    /// Like [`Engine::join`], for a front end that reads the history itself: the session's view starts empty, so a long
    /// thread is in memory only once.
    ///
    /// # Errors
    /// Those of [`Engine::join`].
    pub fn join_from_now(
        &self,
        thread: Thread,
        open: OpenCouncil,
        queue: Option<&Path>,
    ) -> Result<Session, Error> {
        self.join_showing(thread, open, queue, |_| View::default())
    }

    fn join_showing(
        &self,
        thread: Thread,
        mut open: OpenCouncil,
        queue: Option<&Path>,
        shown: impl FnOnce(&[Message]) -> View,
    ) -> Result<Session, Error> {
        let (queue, left) = match queue.map(Queue::open) {
            Some(Ok((queue, left))) => (Ok(queue), left),
            Some(Err(error)) => (Err(NoQueue::Store(error)), Vec::new()),
            None => (Err(NoQueue::NoFolder), Vec::new()),
        };
        open.history = thread.messages()?.messages;
        // Sweeps the streams of former members, too.
        let _ = kd_store::stream::sweep(&thread);
        open.queue = Some(left);
        open.last = last_round(&thread, &open.history);
        let mut view = shown(&open.history);
        view.thread = Some(open.thread.clone());
        view.members = open
            .roster
            .members()
            .iter()
            .map(|m| m.name.clone())
            .collect();
        view.mode = Some(open.protocol.name.to_owned());
        view.auto_messages = open.limits.auto_messages;
        let history = History {
            seen: open.history.last().map_or(0, |m| m.seq),
            view,
            queue,
        };
        self.begin(thread, Ready::conversation(open), Some(history), None)
    }

    /// Starts the event loop of any machine in its thread. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// Those of [`Engine::open`].
    pub fn run(&self, thread: Thread, opening: Opening) -> Result<Session, Error> {
        self.begin(thread, opening.into(), None, None)
    }

    /// Like [`Engine::run`], for a machine that continues after the events `before`: `shown` is the view until then, which
    /// the session returns as its opening.
    ///
    /// # Errors
    /// Those of [`Engine::open`].
    pub fn run_on(
        &self,
        thread: Thread,
        opening: Opening,
        shown: View,
        before: Vec<Event>,
    ) -> Result<Session, Error> {
        let ready = Ready {
            shown: Some(shown),
            before,
            ..opening.into()
        };
        self.begin(thread, ready, None, None)
    }

    /// Makes a thread private, if all members can answer on this machine.
    fn keep_private(&self, thread: &mut Thread, members: &[Member]) -> Result<(), Error> {
        for member in members {
            self.backends.stays_here(member).map_err(Error::Private)?;
        }
        let was_private = thread.meta().is_private();
        thread.make_private()?;
        if let Some(became) = self.becoming_private.as_ref().filter(|_| !was_private) {
            became(thread);
        }
        Ok(())
    }

    /// Lets a machine put its answers into the schema of this engine, if it has one.
    fn formatted(
        &self,
        machine: Runner,
        opened: Effects,
        members: &[Member],
        before: &[Event],
    ) -> (Runner, Effects) {
        match (machine, &self.output) {
            (Runner::Machine(machine), Some(schema)) => {
                let formatted = Formatted::new(machine, schema.clone(), members.to_vec());
                let mut formatted = formatted.after(before);
                let opened = formatted.opened(opened);
                (Runner::Machine(Box::new(formatted)), opened)
            }
            (machine, _) => (machine, opened),
        }
    }

    fn begin(
        &self,
        mut thread: Thread,
        opening: Ready,
        joined: Option<History>,
        then: Option<Then>,
    ) -> Result<Session, Error> {
        let (id, members) = (opening.id, opening.seats);
        let backends = self.backends.clone();
        let private = backends.is_private() || thread.meta().is_private();
        if private {
            self.keep_private(&mut thread, &members)?;
        }
        sweep(&thread, &members);
        let (machine, mut opened) =
            self.formatted(opening.machine, opening.opened, &members, &opening.before);
        let (sender, inbox) = actor::inbox();
        let ready = (self.clone(), members.clone());
        let fault = kd_store::log::fault(&thread).map(|text| kd_core::Event::Noticed { text });
        opened.events.extend(self.told.iter().cloned().chain(fault));
        let thread = Arc::new(thread);
        let own = watch::Own::default();
        let continues = opening.shown.is_some();
        let (mut view, mut queue, mut watch) = (opening.shown.unwrap_or_default(), None, None);
        if let Some(joined) = joined {
            view = joined.view;
            queue = Some(joined.queue);
            let (thread, own, told) = (thread.clone(), own.clone(), sender.clone());
            let first = Some(Op::Resume);
            let over = watch::Watch::over(thread, joined.seen, &members, own, first, told);
            watch = Some(over.map_err(Error::Watch)?);
        }
        let folder = thread.clone();
        let config = WriterConfig {
            thread,
            queue,
            own,
            inbox: sender.clone(),
            then,
        };
        let scribe = Scribe::start(config).map_err(Error::Scribe)?;
        let found = (watch.is_some() || continues).then(|| view.clone());
        let bus = bus::Bus::new(view);
        let handle = bus.handle();
        let first = handle.subscribe();
        let (ops, instructions) = mpsc::channel(OPS);
        let start = Start {
            thread: id.clone(),
            machine,
            members,
            spending: backends.spending().clone(),
            reach: Box::new(move |member, spending| {
                if private {
                    backends.stays_here(member)?;
                }
                backends.seat_paid(member, spending)
            }),
            opened,
            bus,
            clock: Clock::new(),
            watch,
            folder,
            secrets: self.secrets.clone(),
            concluding: self.concluding.clone(),
            continues,
            attachments: self.attachments.clone(),
        };
        let actor = Actor::new(start, scribe, instructions, (sender, inbox));
        Ok(Session {
            thread: id,
            ops,
            handle,
            first: Some(first),
            opening: found,
            ready,
            running: tokio::spawn(actor.run()),
        })
    }
}

/// Removes the streams that a killed process left. A short answer starts no stream, so that one under the same name would
/// stay. Failing to clean up does not prevent the conversation.
fn sweep(thread: &Thread, members: &[Member]) {
    let names: Vec<&str> = members.iter().map(|m| m.name.as_str()).collect();
    let _ = kd_store::stream::sweep_of(thread, &names);
}

/// Sends ops to a session from another task, without keeping it open.
#[derive(Clone, Debug)]
pub struct Remote(mpsc::WeakSender<Instruction>);

impl Remote {
    /// Puts an op into the loop's inbox, as [`Session::send`] does. Does nothing if the session has ended.
    pub fn send(&self, op: Op) {
        if let Some(ops) = self.0.upgrade() {
            // If the inbox is full, the loop has stopped taking ops and is about to end: the op is dropped.
            let _ = ops.try_send(Instruction::Op(op));
        }
    }
}

/// An open thread: takes ops and emits records. Dropping it stops every turn and saves partial answers.
pub struct Session {
    thread: ThreadId,
    ops: mpsc::Sender<Instruction>,
    handle: bus::BusHandle,
    first: Option<Subscription>,
    /// The view before the first record, until it is taken.
    opening: Option<View>,
    /// The engine and the members whose programs may be started ahead of time.
    ready: (Engine, Vec<Member>),
    running: JoinHandle<()>,
}

impl Session {
    /// Returns the thread's ID.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// Puts an op into the loop's inbox without waiting.
    ///
    /// # Errors
    /// [`Error::Busy`] if too many requests are waiting, [`Error::Closed`] if the session has ended.
    pub fn send(&self, op: Op) -> Result<(), Error> {
        self.instruct(Instruction::Op(op))
    }

    /// Like [`Session::send`], for a question that a conversation answers in another way.
    ///
    /// # Errors
    /// Those of [`Session::send`].
    pub fn aside(&self, aside: Aside) -> Result<(), Error> {
        self.instruct(Instruction::Aside(Box::new(aside)))
    }

    /// Mutes the members that other processes have removed from the thread by now, and asks those again that they have
    /// added again. Returns the view after that.
    ///
    /// # Errors
    /// [`Error::Closed`] if the session has ended.
    pub async fn follow_members(&self) -> Result<View, Error> {
        let (done, followed) = oneshot::channel();
        let sent = self.ops.send(Instruction::Follow(done)).await;
        sent.map_err(|_| Error::Closed)?;
        followed.await.map_err(|_| Error::Closed)?;
        Ok(self.handle.subscribe().catch_up())
    }

    /// Returns a handle that sends ops to this session from another task, as long as it is open.
    pub fn remote(&self) -> Remote {
        Remote(self.ops.downgrade())
    }

    fn instruct(&self, instruction: Instruction) -> Result<(), Error> {
        self.ops.try_send(instruction).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => Error::Busy,
            mpsc::error::TrySendError::Closed(_) => Error::Closed,
        })
    }

    /// Starts the programs of members the user is about to address. Does not wait.
    pub fn prepare(&self, who: &[SeatName]) {
        let (engine, mut members) = self.ready.clone();
        members.retain(|member| who.contains(&member.name));
        // Starting a program takes a millisecond, too long for the UI thread.
        drop(tokio::task::spawn_blocking(move || {
            engine.prepare(&members);
        }));
    }

    /// Subscribes to the records. The first subscription receives every record from the beginning; later ones from now
    /// on, and they can request the current view.
    pub fn subscribe(&mut self) -> Subscription {
        self.first.take().unwrap_or_else(|| self.handle.subscribe())
    }

    /// Returns a view and a subscription to the records that follow it. On the first call the view is the thread as it
    /// was opened, so that no record of this session is missed; later it is the current view.
    pub fn follow(&mut self) -> (View, Subscription) {
        if let Some(view) = self.opening.take()
            && let Some(first) = self.first.take()
        {
            return (view, first);
        }
        let mut subscription = self.subscribe();
        (subscription.catch_up(), subscription)
    }

    /// Takes the view with which a continued machine was opened. The first subscription receives the events after it.
    pub fn take_opening(&mut self) -> Option<View> {
        self.opening.take()
    }

    /// Stops taking ops, waits for running turns, and returns when everything is on disk.
    pub async fn close(mut self) {
        self.first = None;
        // If the inbox is full, the loop is emptying it: there will be space.
        let _ = self.ops.send(Instruction::Op(Op::Close)).await;
        if let Err(error) = (&mut self.running).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
