//! Writes everything down, on a thread of its own so that no disk holds up the loop. Comes in: orders, in sequence.
//! Goes out: for each draft, the message as it is on disk, or why it could not be written.

use crate::agents::Roll;
use crate::watch::Own;
use kd_backends::transport::process;
use kd_core::{Delivery, Delta, Draft, Event, Input, Message, Record, SeatName, TurnId};
use kd_store::{EventLog, Queue, StreamWriter, Thread};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use tokio::sync::{mpsc as inbox, oneshot};

/// Something to write.
pub(crate) enum Order {
    /// A turn is under way: its stream file begins. The file of another program that is there stays until that was silent
    /// for `patience`.
    Began {
        turn: TurnId,
        seat: SeatName,
        patience: Duration,
    },
    /// Pieces of answers for the stream files: one frame of them.
    Stream(Vec<Arc<Record>>),
    /// The king's words, until they are answered. The answer goes to the loop's inbox.
    Keep(Box<Delivery>),
    /// They are answered.
    Forget(String),
    /// A message. The answer goes to the loop's inbox; afterwards the turn's stream file goes away.
    Save(Box<Draft>),
    /// A fact for the log.
    Log(Arc<Record>),
    /// Agent programs came or went: the members' states are to say so.
    Agents,
    /// Everything before this is on disk when it is answered.
    Finish(oneshot::Sender<()>),
}

/// What a session gives its scribe.
pub(crate) struct Office {
    pub(crate) thread: Arc<Thread>,
    /// Where messages are kept until they are answered, or why they cannot be; `None` where nobody asks for it.
    pub(crate) queue: Option<Result<Queue, String>>,
    /// Tells the watch which streams are ours.
    pub(crate) own: Own,
    pub(crate) inbox: inbox::Sender<Input>,
    /// Done once the first message is on disk and told: nobody waits for it.
    pub(crate) then: Option<Then>,
}

/// See [`Office::then`].
pub(crate) type Then = Box<dyn FnOnce() + Send>;

/// The loop's end of the scribe. Its queue needs no bound of its own: the loop has at most one message and one batch
/// of lines under way for each open turn, and the floor is bounded.
pub(crate) struct Scribe {
    orders: Arc<Sender<Order>>,
}

impl Scribe {
    /// Starts the thread.
    pub(crate) fn start(office: Office) -> std::io::Result<Self> {
        let (orders, work) = mpsc::channel();
        let orders = Arc::new(orders);
        let door = Arc::downgrade(&orders);
        process::on_change(move || {
            door.upgrade()
                .is_some_and(|door| door.send(Order::Agents).is_ok())
        });
        let desk = Desk {
            roll: Roll::new(&office.thread),
            office,
            log: OnceCell::new(),
            asked: false,
            settled: false,
            streams: BTreeMap::new(),
            drafts: Vec::new(),
            facts: Vec::new(),
        };
        std::thread::Builder::new()
            .name("kd-scribe".into())
            .spawn(move || desk.work(&work))?;
        Ok(Self { orders })
    }

    /// Hands over an order. A scribe that is gone has answered for every draft it was given.
    pub(crate) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Waits until everything ordered so far is on disk.
    pub(crate) async fn finish(&self) {
        let (done, waiting) = oneshot::channel();
        self.order(Order::Finish(done));
        let _ = waiting.await;
    }
}

/// The scribe's end.
struct Desk {
    office: Office,
    streams: BTreeMap<TurnId, StreamWriter>,
    roll: Roll,
    /// Nothing in it once it could not be written: messages matter more than the log of them, and a full disk shows
    /// itself at the next message.
    log: OnceCell<Option<EventLog>>,
    /// There was more to write than facts.
    asked: bool,
    /// What could wait for the first message is done.
    settled: bool,
    /// Messages waiting for one sync.
    drafts: Vec<Draft>,
    /// Facts waiting for one write.
    facts: Vec<Arc<Record>>,
}

impl Desk {
    fn work(mut self, queue: &Receiver<Order>) {
        while let Ok(order) = queue.recv() {
            self.carry_out(order);
            // Everything that is waiting already, and then its messages with one sync and its facts in one write.
            while let Ok(order) = queue.try_recv() {
                self.carry_out(order);
            }
            self.write();
        }
    }

    fn carry_out(&mut self, order: Order) {
        self.asked |= !matches!(order, Order::Log(_));
        match order {
            Order::Began {
                turn,
                seat,
                patience,
            } => {
                // Live text for other processes is a courtesy: a turn goes on without it.
                let first = Delta::Started {
                    model: None,
                    version: None,
                    session: None,
                };
                let create =
                    || StreamWriter::begin(&self.office.thread, seat.as_str(), &first, patience);
                if let Ok(writer) = self.office.own.begin(create) {
                    self.streams.insert(turn, writer);
                }
            }
            Order::Stream(frame) => self.stream(&frame),
            Order::Save(draft) => self.drafts.push(*draft),
            Order::Keep(delivery) => {
                let kept = match &mut self.office.queue {
                    Some(Ok(queue)) => queue
                        .keep(&delivery)
                        .map_err(|error| format!("{error}; {}", error.hint())),
                    Some(Err(why)) => Err(why.clone()),
                    None => Ok(()),
                };
                let id = delivery.id;
                let answer = match kept {
                    Ok(()) => Input::Kept { id },
                    Err(why) => Input::KeepFailed { id, why },
                };
                let _ = self.office.inbox.blocking_send(answer);
            }
            Order::Forget(id) => {
                // One that stays is found to be answered when it is taken up.
                if let Some(Ok(queue)) = &mut self.office.queue {
                    let _ = queue.forget(&id);
                }
            }
            Order::Log(record) => self.facts.push(record),
            Order::Agents => self.roll.call(),
            Order::Finish(done) => {
                self.write();
                // What a program without our lock numbered as we did, it did by now.
                let _ = self.office.thread.settle();
                let _ = done.send(());
            }
        }
    }

    fn stream(&mut self, frame: &[Arc<Record>]) {
        for record in frame {
            if let Event::TurnDelta { turn, delta } = &record.event
                && let Some(writer) = self.streams.get_mut(turn)
                && writer.json(delta).is_err()
            {
                self.streams.remove(turn);
            }
        }
        self.streams.retain(|_, writer| writer.flush().is_ok());
    }

    /// Writes what has gathered.
    fn write(&mut self) {
        let saved = self.save();
        self.write_facts();
        if saved && !std::mem::replace(&mut self.settled, true) {
            self.settle_in();
        }
    }

    /// What can wait until the first message is on disk: which programs answer here (those that were made ready, or are
    /// warm from an earlier session), and whatever else was asked for.
    fn settle_in(&mut self) {
        self.roll.call();
        if let Some(then) = self.office.then.take() {
            then();
        }
    }

    /// Whether a message was saved.
    fn save(&mut self) -> bool {
        if self.drafts.is_empty() {
            return false;
        }
        let drafts = std::mem::take(&mut self.drafts);
        let texts: Vec<&Draft> = drafts.iter().collect();
        let words = |error: kd_store::Error| format!("{error}; {}", error.hint());
        let written: Vec<Result<Message, String>> = match self.office.thread.append_all(&texts) {
            Ok(all) => all.into_iter().map(|one| one.map_err(words)).collect(),
            Err(error) => vec![Err(words(error)); drafts.len()],
        };
        let saved = written.iter().any(Result::is_ok);
        let mut finished = Vec::new();
        for (draft, written) in drafts.into_iter().zip(written) {
            let turn = draft.turn;
            if written.is_ok() {
                finished.extend(turn.and_then(|turn| self.streams.remove(&turn)));
            }
            let answer = match written {
                Ok(message) => Input::Saved { turn, message },
                Err(why) => Input::SaveFailed { turn, why },
            };
            // The loop hears of every draft, unless it is gone.
            let _ = self.office.inbox.blocking_send(answer);
        }
        // A stream file that stays is known to be stale: its message exists.
        self.office.own.end(finished);
        saved
    }

    fn write_facts(&mut self) {
        // The first fact is that the thread was opened, and the king's words follow it: they do not wait for the log.
        if !self.asked {
            return;
        }
        self.log
            .get_or_init(|| EventLog::open(&self.office.thread).ok());
        if let Some(Some(log)) = self.log.get_mut()
            && log.append(self.facts.iter().map(Arc::as_ref)).is_err()
        {
            self.log = OnceCell::from(None);
        }
        self.facts.clear();
    }
}
