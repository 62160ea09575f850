//! The pauses between two looks at a provider.

use std::time::Duration;

/// The longest pause before a provider is asked whether a batch is over, unless the provider asks for a longer one.
const POLL_MAX: Duration = Duration::from_secs(60);

/// Returns the next pause: half as long again, or as long as the provider asks.
pub(super) fn next(pause: &mut Duration, asked: Option<Duration>) -> Duration {
    let now = *pause;
    *pause = pause.mul_f64(1.5).min(POLL_MAX);
    now.max(asked.unwrap_or_default())
}
