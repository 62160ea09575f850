//! Carries records from the loop to every front end, in order. A subscriber that fell behind receives the current view
//! instead, so a slow front end never slows the council.

use kd_core::Record;
use kd_core::deliberation::report::Report;
use kd_core::view::View;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast::{self, error::RecvError};

/// Records kept for slow subscribers: more than the loop makes of a full inbox, and several seconds of eight members at
/// 100 tokens per second. The buffer is preallocated: 80 KB per open thread.
const KEPT: usize = 2048;

/// The loop's side of the bus.
pub(crate) struct Bus {
    sender: broadcast::Sender<Arc<Record>>,
    shared: Arc<Mutex<View>>,
}

/// A front end's side of the bus.
pub struct Subscription {
    receiver: broadcast::Receiver<Arc<Record>>,
    shared: Arc<Mutex<View>>,
    skip_through: u64,
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
        Self {
            sender: broadcast::Sender::new(KEPT),
            shared: Arc::new(Mutex::new(view)),
        }
    }

    pub(crate) fn publish(&self, record: Arc<Record>) {
        lock(&self.shared).fold_record(&record);
        // Having no listener is not an error.
        let _ = self.sender.send(record);
    }

    /// Returns the report of the deliberation that runs, or ran last.
    pub(crate) fn report(&self) -> Report {
        lock(&self.shared).report.clone()
    }

    /// Returns a handle through which front ends can join at any time.
    pub(crate) fn handle(&self) -> BusHandle {
        BusHandle {
            sender: self.sender.downgrade(),
            shared: self.shared.clone(),
        }
    }
}

/// Lets front ends join without keeping the bus open.
#[derive(Clone)]
pub(crate) struct BusHandle {
    sender: broadcast::WeakSender<Arc<Record>>,
    shared: Arc<Mutex<View>>,
}

impl BusHandle {
    /// Subscribes to every record from now on. Yields nothing after the loop has ended.
    pub(crate) fn subscribe(&self) -> Subscription {
        let receiver = match self.sender.upgrade() {
            Some(sender) => sender.subscribe(),
            None => broadcast::Sender::new(1).subscribe(),
        };
        Subscription {
            receiver,
            shared: self.shared.clone(),
            skip_through: 0,
        }
    }
}

impl Subscription {
    /// Returns the next update, or `None` when the thread is closed.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            match self.receiver.recv().await {
                Ok(record) if record.seq <= self.skip_through => {}
                Ok(record) => return Some(Update::Record(record)),
                Err(RecvError::Closed) => return None,
                Err(RecvError::Lagged(_)) => {
                    return Some(Update::Lagged(Box::new(self.catch_up())));
                }
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
        lock(&self.shared).clone()
    }
}

fn lock(shared: &Mutex<View>) -> MutexGuard<'_, View> {
    // A front end that panicked while cloning the view has changed nothing.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
