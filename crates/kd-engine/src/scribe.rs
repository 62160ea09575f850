//! Writes everything of a session to disk, on the writer threads ([`crate::writers`]) so that a slow disk never blocks the
//! event loop. Takes orders in sequence; for each draft, reports the message as written or why writing failed.

use crate::agents::AgentRegistry;
use crate::watch::Own;
use crate::writers::{SerialQueue, Work};
use kd_backends::transport::process;
use kd_core::media::Attachment;
use kd_core::{Delivery, Delta, Draft, Event, Input, Message, Record, SeatName, TurnId};
use kd_store::{EventLog, Queue, StreamWriter, Thread};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
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
    /// Store pictures and documents that the next message names.
    Attach(Vec<Attachment>),
    /// Save a message. The result goes to the loop's inbox; then the turn's stream file is removed.
    Save(Box<Draft>),
    /// Append a record to the log.
    Log(Arc<Record>),
    /// Agent programs started or ended: update the members' states.
    Agents,
    /// Reply once everything before this is on disk.
    Finish(oneshot::Sender<()>),
}

/// The reason why messages are not stored until they are answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoQueue {
    /// The state folder is unknown.
    #[error("set HOME, or XDG_STATE_HOME to a folder of your own")]
    NoFolder,
    /// The queue cannot be opened or written.
    #[error("{0}; {hint}", hint = .0.hint())]
    Store(kd_store::Error),
}

/// The data that a session gives to its writer.
pub(crate) struct WriterConfig {
    pub(crate) thread: Arc<Thread>,
    /// The queue that stores messages until they are answered, or the reason why it cannot; `None` if a queue was not
    /// requested.
    pub(crate) queue: Option<Result<Queue, NoQueue>>,
    /// Tells the watch which stream files belong to this process.
    pub(crate) own: Own,
    pub(crate) inbox: inbox::Sender<Input>,
    /// Called once the first message is on disk and reported; nothing waits for it.
    pub(crate) then: Option<Then>,
}

/// See [`WriterConfig::then`].
pub(crate) type Then = Box<dyn FnOnce() + Send>;

/// The loop's handle to its writer. Its queue needs no limit: the loop has at most one message and one batch of lines in
/// progress per open turn, and the number of turns is limited.
pub(crate) struct Scribe {
    queue: Arc<SerialQueue<Writer>>,
    /// Orders that are not given to the writer yet.
    orders: Vec<Order>,
}

/// The writers of all sessions, which are notified when agent programs start or end.
static WRITERS: Mutex<Vec<Weak<SerialQueue<Writer>>>> = Mutex::new(Vec::new());

impl Scribe {
    /// Starts a writer.
    pub(crate) fn start(config: WriterConfig) -> std::io::Result<Self> {
        let queue = SerialQueue::open(Writer {
            registry: AgentRegistry::new(&config.thread),
            config,
            log: None,
            asked: false,
            settled: false,
            streams: BTreeMap::new(),
            starting: Vec::new(),
            drafts: Vec::new(),
            facts: Vec::new(),
            due: Vec::new(),
        })?;
        let mut writers = WRITERS.lock().unwrap_or_else(PoisonError::into_inner);
        writers.retain(|queue| queue.strong_count() > 0);
        writers.push(Arc::downgrade(&queue));
        drop(writers);
        static LISTENING: Once = Once::new();
        LISTENING.call_once(|| process::on_change(agents_changed));
        Ok(Self {
            queue,
            orders: Vec::new(),
        })
    }

    /// Adds an order, which the writer gets with the next [`Scribe::hand_over`].
    pub(crate) fn order(&mut self, order: Order) {
        self.orders.push(order);
    }

    /// Gives the writer the orders since the last call, to carry out together. It reports on every draft, also if it cannot
    /// write any more.
    pub(crate) fn hand_over(&mut self) {
        if !self.orders.is_empty() {
            self.queue.put(self.orders.drain(..));
        }
    }

    /// Waits until everything ordered so far is on disk.
    pub(crate) async fn finish(&mut self) {
        let (done, waiting) = oneshot::channel();
        self.order(Order::Finish(done));
        self.hand_over();
        let _ = waiting.await;
    }
}

impl Drop for Scribe {
    fn drop(&mut self) {
        self.hand_over();
        self.queue.close();
    }
}

/// Notifies the writers of all sessions. Always returns true: it wants to be called for every change.
fn agents_changed() -> bool {
    let writers = WRITERS.lock().unwrap_or_else(PoisonError::into_inner);
    for queue in writers.iter().filter_map(Weak::upgrade) {
        queue.put([Order::Agents]);
    }
    true
}

/// The state of a writer.
struct Writer {
    config: WriterConfig,
    streams: BTreeMap<TurnId, StreamWriter>,
    registry: AgentRegistry,
    /// The log, once opened. `None` inside after it could not be written: messages matter more than their log, and a full
    /// disk shows at the next message.
    log: Option<Option<EventLog>>,
    /// Whether a message or a stream was ordered, not only log records.
    asked: bool,
    /// Whether the work postponed until the first message is done.
    settled: bool,
    /// Stream files to start under one lock.
    starting: Vec<(TurnId, SeatName, Duration)>,
    /// Messages to write with one sync.
    drafts: Vec<Draft>,
    /// Log records to append in one write.
    facts: Vec<Arc<Record>>,
    /// The answers that the loop waits for.
    due: Vec<Due>,
}

/// An answer that the loop waits for.
#[derive(Debug, PartialEq)]
enum Due {
    /// About the message of a turn, or of the user.
    Save(Option<TurnId>),
    /// About a message to keep.
    Keep(String),
}

impl Due {
    fn of(order: &Order) -> Option<Self> {
        match order {
            Order::Save(draft) => Some(Self::Save(draft.turn)),
            Order::Keep(delivery) => Some(Self::Keep(delivery.id.clone())),
            Order::Began { .. }
            | Order::Stream(_)
            | Order::Forget(_)
            | Order::Attach(_)
            | Order::Log(_)
            | Order::Agents
            | Order::Finish(_) => None,
        }
    }
}

impl Work for Writer {
    type Order = Order;

    /// Writes the messages of all these orders with one sync and their log records with one write.
    fn carry_out_all(&mut self, orders: Vec<Order>) {
        self.due.extend(orders.iter().filter_map(Due::of));
        for order in orders {
            self.carry_out(order);
        }
    }

    fn end_of_orders(&mut self) {
        self.write();
    }

    fn give_up(&mut self, orders: Vec<Order>) {
        self.due.extend(orders.iter().filter_map(Due::of));
        let why = || "the writer of this session has failed; open the thread again".to_owned();
        for due in std::mem::take(&mut self.due) {
            let answer = match due {
                Due::Save(turn) => Input::SaveFailed { turn, why: why() },
                Due::Keep(id) => Input::KeepFailed { id, why: why() },
            };
            let _ = self.config.inbox.blocking_send(answer);
        }
    }
}

impl Writer {
    fn carry_out(&mut self, order: Order) {
        self.asked |= !matches!(order, Order::Log(_));
        match order {
            Order::Began {
                turn,
                seat,
                patience,
            } => self.starting.push((turn, seat, patience)),
            Order::Stream(frame) => self.stream(&frame),
            Order::Save(draft) => self.drafts.push(*draft),
            Order::Attach(files) => {
                // A failure is ignored here: members that do not get the file, and the user, get a notice.
                let _ = kd_store::attachments::keep(self.config.thread.path(), &files);
            }
            Order::Keep(delivery) => {
                let kept = match &mut self.config.queue {
                    Some(Ok(queue)) => queue
                        .keep(&delivery)
                        .map_err(|error| NoQueue::Store(error).to_string()),
                    Some(Err(why)) => Err(why.to_string()),
                    None => Ok(()),
                };
                let id = delivery.id;
                self.note_answer(&Due::Keep(id.clone()));
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

    /// Notes that the loop gets an answer now.
    fn note_answer(&mut self, answered: &Due) {
        if let Some(at) = self.due.iter().position(|due| due == answered) {
            self.due.swap_remove(at);
        }
    }

    /// Creates the ordered stream files. Live text for other processes is optional: a turn continues without it.
    fn start_streams(&mut self) {
        let mut starting = std::mem::take(&mut self.starting);
        // If a turn's message is written at the same time, it needs no stream.
        starting.retain(|(turn, ..)| self.drafts.iter().all(|draft| draft.turn != Some(*turn)));
        if starting.is_empty() {
            return;
        }
        let members: Vec<(&str, Duration)> = starting
            .iter()
            .map(|(_, seat, patience)| (seat.as_str(), *patience))
            .collect();
        let first = Delta::Started {
            model: None,
            version: None,
            session: None,
        };
        let create = || StreamWriter::begin_all(&self.config.thread, &first, &members);
        let started = self.config.own.begin(create).unwrap_or_default();
        for ((turn, ..), writer) in starting.into_iter().zip(started) {
            if let Ok(writer) = writer {
                self.streams.insert(turn, writer);
            }
        }
    }

    fn stream(&mut self, frame: &[Arc<Record>]) {
        self.start_streams();
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
        self.start_streams();
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
        // The loop learns it before it decides who answers next.
        let is_turn = drafts.iter().any(|draft| draft.turn.is_some());
        if let Some(Ok(queue)) = self.config.queue.as_ref().filter(|_| is_turn)
            && queue.waits_elsewhere()
        {
            let _ = self.config.inbox.blocking_send(Input::FoundWaiting);
        }
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
            self.note_answer(&Due::Save(turn));
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
        let open = || EventLog::open(&self.config.thread).ok();
        let log = self.log.get_or_insert_with(open);
        if let Some(file) = log
            && file.append(self.facts.iter().map(Arc::as_ref)).is_err()
        {
            *log = None;
        }
        self.facts.clear();
    }
}
