//! The account of a worker. The maximum spending of its requests is recorded in the database before they are sent.

use super::clerk::Clerk;
use super::error::FleetError;
use super::money::{Request, Sending, Settled};
use super::pace::{self, Slots};
use super::store::Fleet;
use kd_core::ledger::{Entry, Ledger, NotSent, Noted};
use kd_core::spending::Spent;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The account of a worker for a batch: records in the user's ledger, and in the database.
#[derive(Clone)]
pub struct FleetAccount {
    clerk: Clerk,
    batch: Arc<str>,
    worker: Arc<AtomicI64>,
    next: Arc<AtomicI64>,
    /// The numbers of requests in the database, by their numbers in the run's account.
    open: Arc<Mutex<HashMap<u64, (i64, i64)>>>,
    pending: Arc<Mutex<Vec<Settled>>>,
    user: Option<Arc<dyn Ledger>>,
    is_exhausted: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    cut_off: Arc<Mutex<Option<Instant>>>,
}

impl std::fmt::Debug for FleetAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetAccount")
            .field("batch", &self.batch)
            .finish_non_exhaustive()
    }
}

impl FleetAccount {
    /// Connects the account of a worker, beside the user's ledger. It is for no batch yet: see [`FleetAccount::of`].
    ///
    /// # Errors
    /// The database cannot be reached.
    pub fn open(
        fleet: &Fleet,
        lease: Duration,
        user: Option<Arc<dyn Ledger>>,
    ) -> Result<Self, FleetError> {
        Ok(Self {
            clerk: Clerk::start(fleet.store(), lease)?,
            batch: "".into(),
            worker: Arc::new(AtomicI64::new(fleet.worker())),
            next: Arc::default(),
            open: Arc::default(),
            pending: fleet.pending(),
            user,
            is_exhausted: Arc::default(),
            is_over: Arc::default(),
            cut_off: Arc::default(),
        })
    }

    /// Returns the account for a batch.
    #[must_use]
    pub fn of(&self, batch: &str) -> Self {
        Self {
            batch: batch.into(),
            open: Arc::default(),
            is_exhausted: Arc::default(),
            is_over: Arc::default(),
            cut_off: Arc::default(),
            ..self.clone()
        }
    }

    /// Follows the worker to a new number.
    pub fn follow(&self, fleet: &Fleet) {
        self.worker.store(fleet.worker(), Ordering::SeqCst);
    }

    /// Returns whether a limit of the batch or of the day has refused a request.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted.load(Ordering::SeqCst)
    }

    /// Returns whether it was a limit of the batch, over the whole fleet.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Returns whether a request of the batch could not be recorded since this time, so that it was not sent.
    pub fn was_cut_off(&self, since: Instant) -> bool {
        let last = *self.cut_off.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| last >= since)
    }

    fn cut_off(&self) {
        let mut last = self.cut_off.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(Instant::now());
    }

    /// Takes slots of a service; `then` gets them on another thread.
    pub fn slots(
        &self,
        service: String,
        per_minute: Option<u32>,
        count: u32,
        then: impl FnOnce(Result<Slots, FleetError>) + Send + 'static,
    ) {
        self.clerk.call(
            move |link| link.tx(|tx| pace::slots(tx, &service, per_minute, count)),
            then,
        );
    }

    /// Records that a service asked for a pause.
    pub fn pause(&self, service: String, time: Duration) {
        // Without the database the pause holds in this process only.
        self.clerk.call(
            move |link| link.tx(|tx| pace::pause(tx, &service, time)),
            drop,
        );
    }

    /// Hears whether a request is recorded, and returns whether it may be sent.
    fn noted(
        &self,
        reservation: u64,
        key: (i64, i64),
        noted: Result<Sending, NotSent>,
    ) -> Result<(), NotSent> {
        match noted {
            Ok(Sending::Yes) => {
                self.open_requests().insert(reservation, key);
                Ok(())
            }
            Ok(Sending::Over(cut)) => {
                self.is_over.store(true, Ordering::SeqCst);
                self.exhausted();
                Err(NotSent::Limit(format!("{} of the batch", cut.words())))
            }
            Ok(Sending::Gone | Sending::Limited) => {
                self.cut_off();
                Err(NotSent::Lost("the lease of this worker is over".to_owned()))
            }
            Err(error) => {
                self.cut_off();
                Err(error)
            }
        }
    }

    fn open_requests(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (i64, i64)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger for FleetAccount {
    fn book(&self, entry: Entry) {
        if let Some(user) = &self.user {
            user.book(entry);
        }
    }

    fn today(&self) -> Option<u64> {
        self.user.as_ref()?.today()
    }

    fn sending(&self, reservation: u64, at_most: &Spent) -> Noted {
        let request = Request {
            worker: self.worker.load(Ordering::SeqCst),
            number: self.next.fetch_add(1, Ordering::SeqCst),
            batch: Arc::clone(&self.batch),
            most: *at_most,
        };
        let (sender, noted) = oneshot::channel();
        let (account, key) = (self.clone(), (request.worker, request.number));
        self.clerk.announce(request, move |noted| {
            let noted = account.noted(reservation, key, noted);
            let is_recorded = noted.is_ok();
            if sender.send(noted).is_err() && is_recorded {
                // Its caller has stopped waiting, and has perhaps settled it before it was recorded: it is not sent.
                account.settled(reservation, &Spent::default());
            }
        });
        let account = self.clone();
        Box::pin(async move {
            noted.await.unwrap_or_else(|_| {
                account.cut_off();
                Err(NotSent::Lost(
                    "the thread of the database has ended".to_owned(),
                ))
            })
        })
    }

    fn settled(&self, reservation: u64, spent: &Spent) {
        if let Some((worker, request)) = self.open_requests().remove(&reservation) {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.push(Settled {
                worker,
                request,
                spent: *spent,
            });
        }
    }

    fn begins(&self, request: u64, at_most: Entry, limit: u64) -> Result<(), NotSent> {
        let Some(user) = &self.user else {
            return Ok(());
        };
        user.begins(request, at_most, limit)
            .inspect_err(|_| self.exhausted())
    }

    fn ended(&self, request: u64) {
        if let Some(user) = &self.user {
            user.ended(request);
        }
    }

    fn exhausted(&self) {
        self.is_exhausted.store(true, Ordering::SeqCst);
    }
}
