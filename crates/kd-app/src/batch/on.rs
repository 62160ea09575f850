//! Calls to the database from the loop.

use crate::error::{ErrorKind, UserError};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs a call to the database on a thread that may block.
pub(super) async fn on<D: Send + ?Sized + 'static, T: Send + 'static>(
    data: &Arc<Mutex<D>>,
    call: impl FnOnce(&mut D) -> Result<T, UserError> + Send + 'static,
) -> Result<T, UserError> {
    let data = Arc::clone(data);
    let done = tokio::task::spawn_blocking(move || {
        let mut data = data.lock().unwrap_or_else(PoisonError::into_inner);
        call(&mut data)
    });
    match done.await {
        Ok(done) => done,
        Err(error) => {
            Err(UserError::new(ErrorKind::Engine, "the batch ended too early").because(error))
        }
    }
}
