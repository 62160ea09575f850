//! Carries records to every face. Comes in: records from the loop. Goes out: the same records, in order, to each
//! subscriber; or, to one that fell behind, the whole view as it stands. A slow face never slows the council.

use kd_core::Record;
use kd_core::view::View;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast::{self, error::RecvError};

/// Records kept for slow subscribers: more than the loop makes of a full inbox, and some seconds of eight members at a
/// hundred tokens a second. Their places are made in advance: 80 KB for each open thread.
const KEPT: usize = 2048;

/// The loop's end of the bus.
pub(crate) struct Bus {
    sender: broadcast::Sender<Arc<Record>>,
    shared: Arc<Mutex<View>>,
}

/// A face's end of the bus.
pub struct Subscription {
    receiver: broadcast::Receiver<Arc<Record>>,
    shared: Arc<Mutex<View>>,
    skip_through: u64,
}

/// What a face receives.
#[derive(Debug)]
pub enum Update {
    /// The next record.
    Record(Arc<Record>),
    /// This face fell behind: draw this view, then go on with the records that follow.
    Lagged(Box<View>),
}

impl Bus {
    /// A bus whose faces begin with this view.
    pub(crate) fn new(view: View) -> Self {
        Self {
            sender: broadcast::Sender::new(KEPT),
            shared: Arc::new(Mutex::new(view)),
        }
    }

    pub(crate) fn publish(&self, record: Arc<Record>) {
        lock(&self.shared).fold_record(&record);
        // No face listening is no error.
        let _ = self.sender.send(record);
    }

    /// A door through which faces can join at any time.
    pub(crate) fn door(&self) -> Door {
        Door {
            sender: self.sender.downgrade(),
            shared: self.shared.clone(),
        }
    }
}

/// Lets faces join without keeping the bus open.
#[derive(Clone)]
pub(crate) struct Door {
    sender: broadcast::WeakSender<Arc<Record>>,
    shared: Arc<Mutex<View>>,
}

impl Door {
    /// A subscription to every record from now on. After the loop has ended it is empty.
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
    /// The next update; none when the thread is closed.
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

    /// The view as it stands; the records that follow are those that it does not hold.
    pub fn catch_up(&mut self) -> View {
        let view = self.view();
        self.skip_through = self.skip_through.max(view.seq);
        view
    }

    /// The view as it stands.
    pub fn view(&self) -> View {
        lock(&self.shared).clone()
    }
}

fn lock(shared: &Mutex<View>) -> MutexGuard<'_, View> {
    // A face that panicked while it cloned the view has changed nothing.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
