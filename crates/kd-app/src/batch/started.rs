//! A running batch: its progress, and how to stop it.

use super::drive::{Ended, Progress, Stop};
use crate::error::{ErrorKind, UserError};
use kd_backends::collect::{Collector, Told, Waiting};
use kd_store::lock::Lock;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// A running batch.
pub struct Running {
    /// The id of the batch.
    pub id: String,
    /// Whether an earlier run is continued.
    pub goes_on: bool,
    /// The state of its questions.
    pub progress: watch::Receiver<Progress>,
    /// Events at providers, until they are read.
    pub told: Option<mpsc::UnboundedReceiver<Told>>,
    pub(super) collector: Option<Collector>,
    pub(super) stop: watch::Sender<Stop>,
    pub(super) task: JoinHandle<Result<Ended, UserError>>,
    /// Other processes cannot run it.
    pub(super) _lock: Option<Lock>,
}

impl Running {
    /// Returns how many requests are at providers; `None` without provider batches.
    pub fn at_providers(&self) -> Option<Waiting> {
        self.collector.as_ref().map(Collector::waiting)
    }

    /// Starts no more questions; those that are being asked get their answers.
    pub fn drain(&self) {
        let _ = self.stop.send(Stop::Drain);
    }

    /// Stops at once: partial answers are saved in their threads, and their questions are asked again by the next run.
    pub fn stop(&self) {
        let _ = self.stop.send(Stop::Now);
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// If the batch cannot continue. [`super::Why`] has the ends that are not errors.
    pub async fn ended(&mut self) -> Result<Ended, UserError> {
        match (&mut self.task).await {
            Ok(ended) => ended,
            Err(error) => {
                Err(UserError::new(ErrorKind::Engine, "the batch ended too early").because(error))
            }
        }
    }
}
