//! Calls to the database from the loop.

use crate::error::{ErrorKind, UserError};
use kd_sql::batch::Batches;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs a call to the database on a thread that may block.
pub(super) async fn on<T: Send + 'static>(
    batches: &Arc<Mutex<Batches>>,
    call: impl FnOnce(&mut Batches) -> Result<T, UserError> + Send + 'static,
) -> Result<T, UserError> {
    let batches = Arc::clone(batches);
    let done = tokio::task::spawn_blocking(move || {
        let mut batches = batches.lock().unwrap_or_else(PoisonError::into_inner);
        call(&mut batches)
    });
    match done.await {
        Ok(done) => done,
        Err(error) => {
            Err(UserError::new(ErrorKind::Engine, "the batch ended too early").because(error))
        }
    }
}
