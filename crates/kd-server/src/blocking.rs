//! Calls of the host, which may block.

use kd_app::host::Host;
use std::sync::Arc;

/// Makes a host call off the event loop.
///
/// # Errors
/// If the call panicked.
pub(crate) async fn off<T: Send + 'static>(
    host: &Arc<dyn Host>,
    work: impl FnOnce(&dyn Host) -> T + Send + 'static,
) -> Result<T, String> {
    let host = host.clone();
    let done = tokio::task::spawn_blocking(move || work(host.as_ref())).await;
    done.map_err(|e| e.to_string())
}
