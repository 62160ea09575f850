//! The account of a run of a batch. The spending of its requests is recorded in the batch before they are sent, and
//! in the user's ledger when they are paid.

use super::batches::Batches;
use kd_core::ledger::{Entry, Ledger, NotSent, Noted};
use kd_core::spending::Spent;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The account of a run of a batch: records in the user's ledger, and in the batch.
#[derive(Clone)]
pub struct BatchAccount {
    batches: Arc<Mutex<Batches>>,
    batch: Arc<str>,
    run: i64,
    user: Option<Arc<dyn Ledger>>,
    is_exhausted: Arc<AtomicBool>,
}

impl std::fmt::Debug for BatchAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchAccount")
            .field("batch", &self.batch)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl BatchAccount {
    /// Creates the account of a run, beside the user's ledger.
    pub fn new(
        batches: Arc<Mutex<Batches>>,
        batch: &str,
        run: i64,
        user: Option<Arc<dyn Ledger>>,
    ) -> Self {
        Self {
            batches,
            batch: batch.into(),
            run,
            user,
            is_exhausted: Arc::default(),
        }
    }

    /// Returns whether the batch must stop: a request exceeded a limit of the batch or of the day, or could not be recorded.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted.load(Ordering::SeqCst)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger for BatchAccount {
    fn book(&self, entry: Entry) {
        if let Some(user) = &self.user {
            user.book(entry);
        }
    }

    fn today(&self) -> Option<u64> {
        self.user.as_ref()?.today()
    }

    fn sending(&self, reservation: u64, at_most: &Spent) -> Noted {
        let noted = self
            .lock()
            .sending((&self.batch, self.run), reservation, at_most);
        Box::pin(ready(noted.map_err(|error| {
            self.exhausted();
            NotSent::Lost(error.to_string())
        })))
    }

    fn settled(&self, reservation: u64, spent: &Spent) {
        // If this fails, the maximum stays recorded: the limit holds.
        let _ = self
            .lock()
            .settled((&self.batch, self.run), reservation, spent);
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
