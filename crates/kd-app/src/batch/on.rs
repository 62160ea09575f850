//! Calls that block, from the loop.

use crate::error::{ErrorKind, UserError};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs a call to the database on a thread that may block.
pub(super) async fn on<D: Send + ?Sized + 'static, T: Send + 'static>(
    data: &Arc<Mutex<D>>,
    call: impl FnOnce(&mut D) -> Result<T, UserError> + Send + 'static,
) -> Result<T, UserError> {
    let data = Arc::clone(data);
    let call = move || call(&mut data.lock().unwrap_or_else(PoisonError::into_inner));
    blocking("the batch ended too early", call).await
}

/// Runs a call on a thread that may block. A panic is an error with this text.
pub(super) async fn blocking<T: Send + 'static>(
    what: &str,
    call: impl FnOnce() -> Result<T, UserError> + Send + 'static,
) -> Result<T, UserError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(done) => done,
        Err(error) => Err(UserError::new(ErrorKind::Engine, what).because(error)),
    }
}
