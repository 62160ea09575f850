//! The only clock of the house. Comes in: nothing. Goes out: the time, for machines and records.

use kd_core::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// Wall time that moves with tokio's clock, so that a paused test clock moves it too.
#[derive(Clone, Debug)]
pub struct Clock {
    wall: Timestamp,
    start: Instant,
}

impl Clock {
    /// A clock that starts at the present wall time.
    pub fn new() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// A clock that starts at a given time, for tests and replays.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self {
            wall,
            start: Instant::now(),
        }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.wall
            .checked_add(self.start.elapsed())
            .unwrap_or(Timestamp::MAX)
    }

    /// How long until a time; zero if it has passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or(Duration::ZERO)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
