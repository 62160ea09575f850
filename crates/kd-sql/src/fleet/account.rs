//! The account of a worker: what its requests may spend is recorded in the database before they are sent. It has a connection
//! and a thread of its own, because requests are sent from threads that run asynchronous tasks.

use super::address::Store;
use super::error::FleetError;
use super::link::Link;
use super::money::{self, Sending, Settled};
use super::pace::{self, Slots};
use super::store::Fleet;
use kd_core::ledger::{Entry, Ledger};
use kd_core::spending::Spent;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A call to the database.
type Call = Box<dyn FnOnce(&mut Link) + Send>;

/// The second connection of a worker.
#[derive(Clone)]
pub(super) struct Clerk {
    calls: Sender<Call>,
}

impl Clerk {
    fn start(store: &Store, lease: Duration) -> Result<Self, FleetError> {
        let mut link = Link::open(store, lease)?;
        let (calls, todo) = channel::<Call>();
        std::thread::Builder::new()
            .name("kd-fleet".into())
            .spawn(move || {
                while let Ok(call) = todo.recv() {
                    call(&mut link);
                }
            })
            .map_err(|e| FleetError::Lost(e.to_string()))?;
        Ok(Self { calls })
    }

    /// Makes a call, and hands its result to `then` on the thread of the connection.
    fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Link) -> Result<T, FleetError> + Send + 'static,
        then: impl FnOnce(Result<T, FleetError>) + Send + 'static,
    ) {
        // If the thread has ended, the call is dropped, and with it what waits for its result.
        let _ = self.calls.send(Box::new(move |link| then(call(link))));
    }

    /// Makes a call, and waits for its result.
    fn wait<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Link) -> Result<T, FleetError> + Send + 'static,
    ) -> Result<T, FleetError> {
        let (tell, told) = channel();
        self.call(call, move |done| drop(tell.send(done)));
        told.recv()
            .unwrap_or_else(|_| Err(FleetError::Lost("its thread has ended".into())))
    }
}

/// The account of a worker for a batch: records in the user's ledger, and in the database.
#[derive(Clone)]
pub struct FleetAccount {
    clerk: Clerk,
    batch: Arc<str>,
    worker: Arc<AtomicI64>,
    next: Arc<AtomicI64>,
    /// The numbers of requests in the database, by those of the run's account.
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

    fn sending(&self, reservation: u64, at_most: &Spent) -> Result<(), String> {
        let request = (
            self.worker.load(Ordering::SeqCst),
            self.next.fetch_add(1, Ordering::SeqCst),
        );
        let (batch, most) = (Arc::clone(&self.batch), *at_most);
        let sent = self
            .clerk
            .wait(move |link| link.tx(|tx| money::sending(tx, request, &batch, &most)));
        match sent {
            Ok(Sending::Yes) => {
                self.open_requests().insert(reservation, request);
                Ok(())
            }
            Ok(Sending::Over(cut)) => {
                self.is_over.store(true, Ordering::SeqCst);
                self.exhausted();
                Err(format!("{} of the batch is reached", cut.words()))
            }
            Ok(Sending::Gone) => {
                self.cut_off();
                Err("the lease of this worker is over".to_owned())
            }
            Err(error) => {
                self.cut_off();
                Err(error.to_string())
            }
        }
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

    fn exhausted(&self) {
        self.is_exhausted.store(true, Ordering::SeqCst);
    }
}
