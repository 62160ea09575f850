//! Carries records from the loop to every front end, in order. A subscriber that fell behind receives the current view
//! instead, so a slow front end never slows the council.

use kd_core::Record;
use kd_core::deliberation::report::Report;
use kd_core::view::View;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{self, error::TrySendError};

/// Maximum records kept for a slow subscriber: more than the loop produces from a full inbox, and several seconds of
/// eight members at 100 tokens per second. Memory is only allocated for waiting records: most subscribers read each
/// record at once.
const KEPT: usize = 2048;

/// The loop's side of the bus. Subscriptions end when it is dropped.
pub(crate) struct Bus(Arc<Shared>);

/// A front end's side of the bus.
pub struct Subscription {
    records: mpsc::Receiver<Arc<Record>>,
    /// Whether a record was dropped, because too many waited.
    missed: Arc<AtomicBool>,
    shared: Arc<Shared>,
    skip_through: u64,
}

struct Shared {
    view: Mutex<View>,
    /// Those who receive records; `None` when the thread is closed.
    subscribers: Mutex<Option<Vec<Subscriber>>>,
}

struct Subscriber {
    records: mpsc::Sender<Arc<Record>>,
    missed: Arc<AtomicBool>,
}

/// A message to a front end.
#[derive(Debug)]
pub enum Update {
    /// The next record.
    Record(Arc<Record>),
    /// The front end fell behind: draw this view, then continue with the records that follow.
    Lagged(Box<View>),
}

impl Bus {
    /// Creates a bus whose front ends start with this view.
    pub(crate) fn new(view: View) -> Self {
        Self(Arc::new(Shared {
            view: Mutex::new(view),
            subscribers: Mutex::new(Some(Vec::new())),
        }))
    }

    pub(crate) fn publish(&self, record: Arc<Record>) {
        // First, so that a view contains every record that was dropped before it was taken.
        lock(&self.0.view).fold_record(&record);
        let mut subscribers = lock(&self.0.subscribers);
        let mut gone = false;
        for one in subscribers.iter().flatten() {
            gone |= !one.send(&record);
        }
        if gone && let Some(all) = subscribers.as_mut() {
            all.retain(|one| !one.records.is_closed());
        }
    }

    /// Returns the report of the deliberation that runs, or ran last.
    pub(crate) fn report(&self) -> Report {
        lock(&self.0.view).report.clone()
    }

    /// Returns a handle through which front ends can join at any time.
    pub(crate) fn handle(&self) -> BusHandle {
        BusHandle(self.0.clone())
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        *lock(&self.0.subscribers) = None;
    }
}

impl Subscriber {
    /// Returns whether it still listens.
    fn send(&self, record: &Arc<Record>) -> bool {
        match self.records.try_send(record.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.missed.store(true, Ordering::Release);
                true
            }
            Err(TrySendError::Closed(_)) => false,
        }
    }
}

/// Lets front ends join without keeping the bus open.
#[derive(Clone)]
pub(crate) struct BusHandle(Arc<Shared>);

impl BusHandle {
    /// Subscribes to every record from now on. Yields nothing after the loop has ended.
    pub(crate) fn subscribe(&self) -> Subscription {
        let (records, receiver) = mpsc::channel(KEPT);
        let missed = Arc::new(AtomicBool::new(false));
        if let Some(all) = lock(&self.0.subscribers).as_mut() {
            all.push(Subscriber {
                records,
                missed: missed.clone(),
            });
        }
        Subscription {
            records: receiver,
            missed,
            shared: self.0.clone(),
            skip_through: 0,
        }
    }
}

impl Subscription {
    /// Returns the next update, or `None` when the thread is closed.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            // Records that were kept before the dropped one are in the view, too.
            if self.missed.swap(false, Ordering::Acquire) {
                while self.records.try_recv().is_ok() {}
                return Some(Update::Lagged(Box::new(self.catch_up())));
            }
            let record = self.records.recv().await?;
            if record.seq > self.skip_through {
                return Some(Update::Record(record));
            }
        }
    }

    /// Returns the current view; the records that follow are exactly those it does not include.
    pub fn catch_up(&mut self) -> View {
        let view = self.view();
        self.skip_through = self.skip_through.max(view.seq);
        view
    }

    /// Returns the current view.
    pub fn view(&self) -> View {
        lock(&self.shared.view).clone()
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // A front end that panicked while cloning the view has changed nothing.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
