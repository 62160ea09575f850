//! The heart of Kingdom: the only loop, the only clock, the only spawner of tasks. It decides nothing: it carries out
//! what a [`kd_core::Machine`] orders and brings back what came of it.

mod actor;
pub mod agents;
mod ask;
pub mod bus;
mod clock;
pub mod forum;
mod lease;
mod scribe;
pub mod watch;

pub use bus::{Subscription, Update};
pub use clock::Clock;
pub use watch::Watch;

use actor::{Actor, Start, Wish};
use kd_backends::hands::Hands;
use kd_core::council::{Council, OpenCouncil};
use kd_core::secrets::Secrets;
use kd_core::view::View;
use kd_core::{
    Address, Aside, Conversation, Effects, Event, Failure, LastRound, Machine, Member, Message, Op,
    SeatName, ThreadId,
};
use kd_store::{Queue, Thread};
use scribe::{Office, Scribe, Then};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Ops of a face that may wait. A person cannot fill it; a script that does is told.
const OPS: usize = 256;

/// Why a session could not be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system gave us no thread.
    #[error("the thread that writes messages could not be started: {0}")]
    Scribe(#[source] std::io::Error),
    /// The folder cannot be watched.
    #[error("the thread's folder cannot be watched: {0}")]
    Watch(#[source] std::io::Error),
    /// Only members that answer on this machine may be asked, and this one does not.
    #[error("this thread is private, and {}", .0.message)]
    Private(Failure),
    /// The thread could not be read.
    #[error(transparent)]
    Store(#[from] kd_store::Error),
    /// More ops than anybody can mean.
    #[error("too many requests are waiting in this thread")]
    Busy,
    /// The loop has ended.
    #[error("this session is closed")]
    Closed,
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Error::Watch(_) => {
                "look at the folder's rights, or raise `fs.inotify.max_user_watches`".to_owned()
            }
            Error::Scribe(_) => {
                "raise the limit of processes (`ulimit -u`), or end some".to_owned()
            }
            Error::Private(failure) => failure.hint().to_owned(),
            Error::Store(error) => error.hint(),
            Error::Busy => "wait for the answers that are under way".to_owned(),
            Error::Closed => "open the thread again".to_owned(),
        }
    }
}

/// A machine that is ready to run in a thread.
pub struct Opening {
    /// The thread.
    pub id: ThreadId,
    /// Who decides.
    pub machine: Box<dyn Machine + Send>,
    /// The effects of opening it.
    pub opened: Effects,
    /// Everybody whom it may ask.
    pub seats: Vec<Member>,
}

impl Opening {
    /// A council, ready to run.
    fn council(open: OpenCouncil) -> Self {
        let (id, seats) = (open.thread.clone(), seats(&open));
        let (council, opened) = Council::open(open);
        Self {
            id,
            machine: Box::new(council),
            opened,
            seats,
        }
    }

    /// A council that can go aside, ready to run.
    fn conversation(open: OpenCouncil) -> Self {
        let (id, seats) = (open.thread.clone(), seats(&open));
        let (conversation, opened) = Conversation::open(open);
        Self {
            id,
            machine: Box::new(conversation),
            opened,
            seats,
        }
    }
}

/// The newest round as the log tells it, where an answer seems to be missing: a long log is not read for nothing.
fn last_round(thread: &Thread, history: &[Message]) -> Option<LastRound> {
    let at = history.iter().rposition(Message::is_king)?;
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
    // What the log cannot tell, the messages must.
    let logged = kd_store::log::read(thread).ok()?;
    LastRound::of(&logged.records, king.seq)
}

fn seats(open: &OpenCouncil) -> Vec<Member> {
    let members = open.roster.members().iter();
    members.chain(open.roster.chair()).cloned().collect()
}

/// What a conversation begins with.
struct History {
    /// The number of the newest message.
    seen: u32,
    view: View,
    /// Else why messages are not kept.
    queue: Result<Queue, String>,
}

/// Opens sessions. One for each process: all sessions share the hands, and with them connections and the built-in model.
#[derive(Clone)]
pub struct Engine {
    hands: Arc<Hands>,
    told: Option<Event>,
    secrets: Arc<Secrets>,
}

impl Engine {
    /// An engine with these hands.
    pub fn new(hands: Hands) -> Self {
        Self {
            hands: Arc::new(hands),
            told: None,
            secrets: Arc::default(),
        }
    }

    /// The same engine, which masks these secrets in what the user says and in what members answer. Without this call it
    /// masks all well-known shapes.
    #[must_use]
    pub fn masking(mut self, secrets: Secrets) -> Self {
        self.secrets = Arc::new(secrets);
        self
    }

    /// The same engine, whose sessions begin with one more event: what is held back of the folder.
    #[must_use]
    pub fn telling(mut self, event: Option<Event>) -> Self {
        self.told = event;
        self
    }

    /// Starts the programs of members who will be asked next: see [`Hands::prepare`]. Must be called inside a tokio
    /// runtime.
    pub fn prepare<'a>(&self, members: impl IntoIterator<Item = &'a Member>) {
        for member in members {
            self.hands.prepare(member);
        }
    }

    /// Starts the loop of a council in its thread. Must be called inside a tokio runtime.
    pub fn open(&self, thread: Thread, open: OpenCouncil) -> Result<Session, Error> {
        self.run(thread, Opening::council(open))
    }

    /// The same; and once the first message is on disk `then` is called, by the thread that writes: for what nobody needs
    /// to wait for.
    pub fn open_and(
        &self,
        thread: Thread,
        open: OpenCouncil,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<Session, Error> {
        self.begin(thread, Opening::council(open), None, Some(Box::new(then)))
    }

    /// Opens a thread for a conversation: as it is on disk, together with what other processes do in it, and with the
    /// user's messages kept in `queue` until they are answered ([`kd_store::Layout::queue_folder`]). `open.history` and
    /// `open.queue` are read here. What an earlier session has left is taken up at once. Where there is no such folder, or
    /// none that can be used, the first message tells that it is not kept. Must be called inside a tokio runtime.
    pub fn join(
        &self,
        thread: Thread,
        open: OpenCouncil,
        queue: Option<&Path>,
    ) -> Result<Session, Error> {
        self.join_showing(thread, open, queue, |history| View::open(history.to_vec()))
    }

    /// The same for a face that reads what was said before by itself: the session's view holds what comes from now on, and
    /// a long thread is in memory once.
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
            Some(Err(error)) => (Err(format!("{error}; {}", error.hint())), Vec::new()),
            None => (
                Err("set HOME, or XDG_STATE_HOME to a folder of your own".to_owned()),
                Vec::new(),
            ),
        };
        open.history = thread.messages()?.messages;
        // Also of who sits here no more.
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
        let opening = Opening::conversation(open);
        self.begin(thread, opening, Some(history), None)
    }

    /// Starts the loop of any machine in its thread. Must be called inside a tokio runtime.
    pub fn run(&self, thread: Thread, opening: Opening) -> Result<Session, Error> {
        self.begin(thread, opening, None, None)
    }

    fn begin(
        &self,
        mut thread: Thread,
        opening: Opening,
        joined: Option<History>,
        then: Option<Then>,
    ) -> Result<Session, Error> {
        let id = opening.id;
        let hands = self.hands.clone();
        let members = opening.seats;
        let private = hands.is_private() || thread.meta().is_private();
        if private {
            for member in &members {
                hands.stays_here(member).map_err(Error::Private)?;
            }
            thread.make_private()?;
        }
        // A short answer begins no stream, so what a killed process left under its name would stay. A folder that cannot
        // be tidied up can still be talked in.
        let names: Vec<&str> = members.iter().map(|m| m.name.as_str()).collect();
        let _ = kd_store::stream::sweep_of(&thread, &names);
        let mut opened = opening.opened;
        opened.events.extend(self.told.clone());
        let (sender, inbox) = actor::inbox();
        let ready = (self.clone(), members.clone());
        let fault = kd_store::log::fault(&thread);
        opened
            .events
            .extend(fault.map(|text| kd_core::Event::Noticed { text }));
        let thread = Arc::new(thread);
        let own = watch::Own::default();
        let (mut view, mut queue, mut watch) = (View::default(), None, None);
        if let Some(joined) = joined {
            view = joined.view;
            queue = Some(joined.queue);
            let (told, first) = (sender.clone(), Some(Op::Resume));
            let over = watch::Watch::over(
                thread.clone(),
                joined.seen,
                &members,
                own.clone(),
                first,
                told,
            );
            watch = Some(over.map_err(Error::Watch)?);
        }
        let folder = thread.clone();
        let office = Office {
            thread,
            queue,
            own,
            inbox: sender.clone(),
            then,
        };
        let scribe = Scribe::start(office).map_err(Error::Scribe)?;
        let found = watch.is_some().then(|| view.clone());
        let bus = bus::Bus::new(view);
        let door = bus.door();
        let first = door.subscribe();
        let (ops, wishes) = mpsc::channel(OPS);
        let start = Start {
            thread: id.clone(),
            machine: opening.machine,
            members,
            spending: hands.spending().clone(),
            reach: Box::new(move |member, spending| {
                if private {
                    hands.stays_here(member)?;
                }
                hands.seat_paid(member, spending)
            }),
            opened,
            bus,
            clock: Clock::new(),
            watch,
            folder,
            secrets: self.secrets.clone(),
        };
        let actor = Actor::new(start, scribe, wishes, (sender, inbox));
        Ok(Session {
            thread: id,
            ops,
            door,
            first: Some(first),
            opening: found,
            ready,
            running: tokio::spawn(actor.run()),
        })
    }
}

/// An open thread: ops go in, records come out. Dropping it stops every turn and keeps what came.
pub struct Session {
    thread: ThreadId,
    ops: mpsc::Sender<Wish>,
    door: bus::Door,
    first: Option<Subscription>,
    /// The view before the first record, until somebody takes it.
    opening: Option<View>,
    /// Who can be made ready, and by whom.
    ready: (Engine, Vec<Member>),
    running: JoinHandle<()>,
}

impl Session {
    /// The thread.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// Puts an op into the loop's inbox. Never waits.
    pub fn send(&self, op: Op) -> Result<(), Error> {
        self.wish(Wish::Op(op))
    }

    /// The same for a question that a conversation is to answer in a way of its own.
    pub fn aside(&self, aside: Aside) -> Result<(), Error> {
        self.wish(Wish::Aside(Box::new(aside)))
    }

    fn wish(&self, wish: Wish) -> Result<(), Error> {
        self.ops.try_send(wish).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => Error::Busy,
            mpsc::error::TrySendError::Closed(_) => Error::Closed,
        })
    }

    /// The king is about to say something to these: their programs start meanwhile. Does not wait.
    pub fn prepare(&self, who: &[SeatName]) {
        let (engine, mut members) = self.ready.clone();
        members.retain(|member| who.contains(&member.name));
        // Starting a program takes a millisecond, and the screen does not have one.
        drop(tokio::task::spawn_blocking(move || {
            engine.prepare(&members);
        }));
    }

    /// A subscription. The first one hears every record from the beginning; later ones from now on, and can ask for the
    /// view as it stands.
    pub fn subscribe(&mut self) -> Subscription {
        self.first.take().unwrap_or_else(|| self.door.subscribe())
    }

    /// A view, and a subscription to the records that follow it. The first time the view is the thread as it was found,
    /// so that everything that this session does is heard; later it is the view as it stands.
    pub fn follow(&mut self) -> (View, Subscription) {
        if let Some(view) = self.opening.take()
            && let Some(first) = self.first.take()
        {
            return (view, first);
        }
        let mut subscription = self.subscribe();
        (subscription.catch_up(), subscription)
    }

    /// Takes no more ops, waits for running turns, and returns when everything is on disk.
    pub async fn close(mut self) {
        self.first = None;
        // A full inbox is being emptied: there will be room.
        let _ = self.ops.send(Wish::Op(Op::Close)).await;
        if let Err(error) = (&mut self.running).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
