//! The program's only clock: provides the time for machines and records.

use kd_core::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// Wall time driven by tokio's clock, so that pausing tokio's clock in tests pauses it too.
#[derive(Clone, Debug)]
pub struct Clock {
    wall: Timestamp,
    start: Instant,
}

impl Clock {
    /// Creates a clock that starts at the current wall time.
    pub fn new() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// Creates a clock that starts at a given time, for tests and replays.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self {
            wall,
            start: Instant::now(),
        }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.wall
            .checked_add(self.start.elapsed())
            .unwrap_or(Timestamp::MAX)
    }

    /// Returns the duration until a time; zero if it has passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or(Duration::ZERO)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
