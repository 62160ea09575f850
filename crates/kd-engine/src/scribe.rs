//! Writes everything to disk, on a separate thread so that a slow disk never blocks the event loop. Takes orders in
//! sequence; for each draft, reports the message as written or why writing failed.

use crate::agents::AgentRegistry;
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
    /// A turn has begun: start its stream file. Another program's file of that name is kept until it has been silent
    /// for `patience`.
    Began {
        turn: TurnId,
        seat: SeatName,
        patience: Duration,
    },
    /// Pieces of answers for the stream files: one frame.
    Stream(Vec<Arc<Record>>),
    /// Keep the user's message until it is answered. The result goes to the loop's inbox.
    Keep(Box<Delivery>),
    /// Remove a kept message: it is answered.
    Forget(String),
    /// Save a message. The result goes to the loop's inbox; then the turn's stream file is removed.
    Save(Box<Draft>),
    /// Append a record to the log.
    Log(Arc<Record>),
    /// Agent programs started or ended: update the members' states.
    Agents,
    /// Reply once everything before this is on disk.
    Finish(oneshot::Sender<()>),
}

/// The data that a session gives to its writer thread.
pub(crate) struct WriterConfig {
    pub(crate) thread: Arc<Thread>,
    /// The queue that stores messages until they are answered, or the reason why it cannot; `None` if a queue was not
    /// requested.
    pub(crate) queue: Option<Result<Queue, String>>,
    /// Tells the watch which stream files belong to this process.
    pub(crate) own: Own,
    pub(crate) inbox: inbox::Sender<Input>,
    /// Called once the first message is on disk and reported; nothing waits for it.
    pub(crate) then: Option<Then>,
}

/// See [`WriterConfig::then`].
pub(crate) type Then = Box<dyn FnOnce() + Send>;

/// The loop's handle to the writer thread. Its queue needs no limit: the loop has at most one message and one batch of
/// lines in progress per open turn, and the number of turns is limited.
pub(crate) struct Scribe {
    orders: Arc<Sender<Order>>,
}

impl Scribe {
    /// Starts the writer thread.
    pub(crate) fn start(config: WriterConfig) -> std::io::Result<Self> {
        let (orders, work) = mpsc::channel();
        let orders = Arc::new(orders);
        let listener = Arc::downgrade(&orders);
        process::on_change(move || {
            listener
                .upgrade()
                .is_some_and(|orders| orders.send(Order::Agents).is_ok())
        });
        let writer = Writer {
            registry: AgentRegistry::new(&config.thread),
            config,
            log: OnceCell::new(),
            asked: false,
            settled: false,
            streams: BTreeMap::new(),
            drafts: Vec::new(),
            facts: Vec::new(),
        };
        std::thread::Builder::new()
            .name("kd-scribe".into())
            .spawn(move || writer.work(&work))?;
        Ok(Self { orders })
    }

    /// Sends an order. If the writer thread is gone, it has reported on every draft it received.
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

/// The state of the writer thread.
struct Writer {
    config: WriterConfig,
    streams: BTreeMap<TurnId, StreamWriter>,
    registry: AgentRegistry,
    /// `None` inside after the log could not be written: messages matter more than their log, and a full disk shows at
    /// the next message.
    log: OnceCell<Option<EventLog>>,
    /// Whether a message or a stream was ordered, not only log records.
    asked: bool,
    /// Whether the work postponed until the first message is done.
    settled: bool,
    /// Messages to write with one sync.
    drafts: Vec<Draft>,
    /// Log records to append in one write.
    facts: Vec<Arc<Record>>,
}

impl Writer {
    fn work(mut self, queue: &Receiver<Order>) {
        while let Ok(order) = queue.recv() {
            self.carry_out(order);
            // Take everything already queued, then write its messages with one sync and its log records with one write.
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
                // Live text for other processes is optional: the turn continues without it.
                let first = Delta::Started {
                    model: None,
                    version: None,
                    session: None,
                };
                let create =
                    || StreamWriter::begin(&self.config.thread, seat.as_str(), &first, patience);
                if let Ok(writer) = self.config.own.begin(create) {
                    self.streams.insert(turn, writer);
                }
            }
            Order::Stream(frame) => self.stream(&frame),
            Order::Save(draft) => self.drafts.push(*draft),
            Order::Keep(delivery) => {
                let kept = match &mut self.config.queue {
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
                let _ = self.config.inbox.blocking_send(answer);
            }
            Order::Forget(id) => {
                // An entry that stays is recognized as answered when it is next read.
                if let Some(Ok(queue)) = &mut self.config.queue {
                    let _ = queue.forget(&id);
                }
            }
            Order::Log(record) => self.facts.push(record),
            Order::Agents => self.registry.update(),
            Order::Finish(done) => {
                self.write();
                // A program that ignores our lock may have used the same number. In that case its file exists now.
                let _ = self.config.thread.settle();
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

    /// Writes the collected messages and log records.
    fn write(&mut self) {
        let saved = self.save();
        self.write_facts();
        if saved && !std::mem::replace(&mut self.settled, true) {
            self.settle_in();
        }
    }

    /// Does the work postponed until the first message is on disk: records which programs answer here (prepared ones,
    /// or those kept running from an earlier session), and calls `then`.
    fn settle_in(&mut self) {
        self.registry.update();
        if let Some(then) = self.config.then.take() {
            then();
        }
    }

    /// Saves the collected messages. Returns whether any was saved.
    fn save(&mut self) -> bool {
        if self.drafts.is_empty() {
            return false;
        }
        let drafts = std::mem::take(&mut self.drafts);
        let texts: Vec<&Draft> = drafts.iter().collect();
        let words = |error: kd_store::Error| format!("{error}; {}", error.hint());
        let written: Vec<Result<Message, String>> = match self.config.thread.append_all(&texts) {
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
            // Report every draft to the loop, unless it is gone.
            let _ = self.config.inbox.blocking_send(answer);
        }
        // A stream file that could not be removed is recognized as stale: its message exists.
        self.config.own.end(finished);
        saved
    }

    fn write_facts(&mut self) {
        // The first record says that the thread was opened, and the user's message follows it and must not wait for the
        // log.
        if !self.asked {
            return;
        }
        self.log
            .get_or_init(|| EventLog::open(&self.config.thread).ok());
        if let Some(Some(log)) = self.log.get_mut()
            && log.append(self.facts.iter().map(Arc::as_ref)).is_err()
        {
            self.log = OnceCell::from(None);
        }
        self.facts.clear();
    }
}
