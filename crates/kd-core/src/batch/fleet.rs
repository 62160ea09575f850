//! An overview of a fleet, for monitoring: its workers and its batches, as read from its database.

use super::Overview;
use serde::Serialize;
use std::time::Duration;

/// A worker that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// Its unique name.
    pub name: String,
    /// Its version of `kd`.
    pub kd: String,
    /// Its lease.
    #[serde(rename = "lease_ms", serialize_with = "millis")]
    pub lease: Duration,
    /// The time since its last sign of life.
    #[serde(rename = "silent_ms", serialize_with = "millis")]
    pub silent: Duration,
    /// The time since it was started.
    #[serde(rename = "up_ms", serialize_with = "millis")]
    pub up: Duration,
    /// Whether it starts no more questions.
    #[serde(rename = "stopping")]
    pub draining: bool,
    /// The questions that it is asking.
    pub asking: u64,
    /// The batches that it does not serve.
    pub refuses: Vec<Refused>,
}

/// A batch that a worker does not serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The batch.
    pub batch: String,
    /// The reason.
    pub reason: String,
}

/// The activity of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkerState {
    /// It is asking questions.
    Working,
    /// It has nothing to ask.
    Idle,
    /// It finishes its current questions, and ends.
    Stopping,
    /// It gave no sign of life for longer than its lease.
    Lost,
}

impl WorkerState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Working, Self::Idle, Self::Stopping, Self::Lost];

    /// Returns its word: a label of metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Stopping => "stopping",
            Self::Lost => "lost",
        }
    }

    /// Returns it as a sentence has it.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Working => "at work",
            other => other.word(),
        }
    }
}

impl Worker {
    /// Returns what it does.
    pub fn state(&self) -> WorkerState {
        if self.silent > self.lease {
            WorkerState::Lost
        } else if self.draining {
            WorkerState::Stopping
        } else if self.asking > 0 {
            WorkerState::Working
        } else {
            WorkerState::Idle
        }
    }
}

/// A fleet: the newest batches of its database, and its workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetView {
    /// The address of the database, without its password.
    pub store: String,
    /// Why the database cannot be read now; `None` if it can.
    pub trouble: Option<String>,
    /// The seconds since it was read; `None` if it never was.
    pub age: Option<f64>,
    /// Its newest batches, newest first.
    pub batches: Vec<Overview>,
    /// Its workers.
    pub workers: Vec<Worker>,
}

impl FleetView {
    /// Returns the number of workers in a state.
    pub fn workers_in(&self, state: WorkerState) -> u64 {
        let workers = self.workers.iter();
        workers.filter(|worker| worker.state() == state).count() as u64
    }
}

fn millis<S: serde::Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_worker_is_the_first_that_fits() {
        let worker = |silent, draining, asking| Worker {
            lease: Duration::from_secs(60),
            silent: Duration::from_secs(silent),
            draining,
            asking,
            ..Worker::default()
        };
        for (worker, state) in [
            (worker(2, false, 3), WorkerState::Working),
            (worker(60, false, 0), WorkerState::Idle),
            (worker(2, true, 3), WorkerState::Stopping),
            (worker(61, true, 3), WorkerState::Lost),
        ] {
            assert_eq!(worker.state(), state, "{worker:?}");
        }
    }
}
