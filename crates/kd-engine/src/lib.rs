//! The heart of Kingdom: the only loop, the only clock, the only spawner of tasks. It decides nothing: it carries out
//! what a [`kd_core::Machine`] orders and brings back what came of it.

mod actor;
mod ask;
pub mod bus;
mod clock;
mod scribe;

pub use bus::{Subscription, Update};
pub use clock::Clock;

use actor::{Actor, Start};
use kd_backends::hands::Hands;
use kd_core::council::{Council, OpenCouncil};
use kd_core::{Effects, Failure, FailureKind, Machine, Member, Op, SeatName, ThreadId};
use kd_store::Thread;
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
    /// More ops than anybody can mean.
    #[error("too many requests are waiting in this thread")]
    Busy,
    /// The loop has ended.
    #[error("this session is closed")]
    Closed,
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Scribe(_) => "raise the limit of processes (`ulimit -u`), or end some",
            Error::Busy => "wait for the answers that are under way",
            Error::Closed => "open the thread again",
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

/// Opens sessions. One for each process: all sessions share the hands, and with them connections and the built-in model.
#[derive(Clone)]
pub struct Engine {
    hands: Arc<Hands>,
}

impl Engine {
    /// An engine with these hands.
    pub fn new(hands: Hands) -> Self {
        Self {
            hands: Arc::new(hands),
        }
    }

    /// Starts the loop of a council in its thread. Must be called inside a tokio runtime.
    pub fn open(&self, thread: Thread, open: OpenCouncil) -> Result<Session, Error> {
        let id = open.thread.clone();
        let seats = open
            .roster
            .members()
            .iter()
            .chain(open.roster.chair())
            .cloned()
            .collect();
        let (council, opened) = Council::open(open);
        self.run(
            thread,
            Opening {
                id,
                machine: Box::new(council),
                opened,
                seats,
            },
        )
    }

    /// Starts the loop of any machine in its thread. Must be called inside a tokio runtime.
    pub fn run(&self, thread: Thread, opening: Opening) -> Result<Session, Error> {
        let id = opening.id;
        let hands = self.hands.clone();
        let members = opening.seats;
        let seats = move |name: &SeatName| match members.iter().find(|m| &m.name == name) {
            Some(member) => hands.seat(member),
            None => Err(Failure::new(
                FailureKind::Missing,
                format!("nobody sits as {name}"),
            )),
        };
        let (sender, inbox) = actor::inbox();
        let scribe =
            scribe::Scribe::start(Arc::new(thread), sender.clone()).map_err(Error::Scribe)?;
        let bus = bus::Bus::new();
        let door = bus.door();
        let first = door.subscribe();
        let (ops, wishes) = mpsc::channel(OPS);
        let start = Start {
            thread: id.clone(),
            machine: opening.machine,
            seats: Box::new(seats),
            opened: opening.opened,
            bus,
            clock: Clock::new(),
        };
        let actor = Actor::new(start, scribe, wishes, (sender, inbox));
        Ok(Session {
            thread: id,
            ops,
            door,
            first: Some(first),
            running: tokio::spawn(actor.run()),
        })
    }
}

/// An open thread: ops go in, records come out. Dropping it stops every turn and keeps what came.
pub struct Session {
    thread: ThreadId,
    ops: mpsc::Sender<Op>,
    door: bus::Door,
    first: Option<Subscription>,
    running: JoinHandle<()>,
}

impl Session {
    /// The thread.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// Puts an op into the loop's inbox. Never waits.
    pub fn send(&self, op: Op) -> Result<(), Error> {
        self.ops.try_send(op).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => Error::Busy,
            mpsc::error::TrySendError::Closed(_) => Error::Closed,
        })
    }

    /// A subscription. The first one hears every record from the beginning; later ones from now on, and can ask for the
    /// view as it stands.
    pub fn subscribe(&mut self) -> Subscription {
        self.first.take().unwrap_or_else(|| self.door.subscribe())
    }

    /// Takes no more ops, waits for running turns, and returns when everything is on disk.
    pub async fn close(mut self) {
        self.first = None;
        // A full inbox is being emptied: there will be room.
        let _ = self.ops.send(Op::Close).await;
        if let Err(error) = (&mut self.running).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
