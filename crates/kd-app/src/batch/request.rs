//! The request for a batch.

use super::how::How;
use crate::request::Limits;
use kd_sql::batch::NewBatch;
use kd_sql::fleet::Store;
use std::path::PathBuf;
use std::time::Duration;

/// A batch to run.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchRequest {
    /// How the questions are asked. Its limits are not used.
    pub how: How,
    /// The file of questions, for lists.
    pub source: String,
    /// The command that continues it, for lists.
    pub command: String,
    /// The file of results.
    pub output: Option<PathBuf>,
    /// Ask every question, answered before or not.
    pub fresh: bool,
    /// The limits on the spending of all questions together.
    pub limits: Limits,
    /// How many questions are asked at the same time.
    pub concurrency: usize,
    /// How often a question is asked before it counts as failed.
    pub attempts: u32,
    /// The pause before a failed question is asked again; doubled each time.
    pub pause: Duration,
    /// Time from the start of one question to the next, if limited.
    pub every: Option<Duration>,
    /// Whether services with batch endpoints are asked through them.
    pub provider_batch: bool,
    /// The database whose workers ask too, if it is not asked on this machine alone.
    pub fleet: Option<FleetRequest>,
    /// The file that gets a line of JSON for everything that happens.
    pub log: Option<PathBuf>,
}

/// The data that a fleet needs to ask a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetRequest {
    /// The database.
    pub store: Store,
    /// The lease of this process, if it asks too.
    pub lease: Duration,
    /// Batches with a higher one are asked first.
    pub priority: i32,
    /// The name of this process as a worker.
    pub name: String,
    /// Whether the settings of deliberations are a plan that travels with the batch.
    pub plan: bool,
}

impl BatchRequest {
    /// Returns a batch to create.
    pub(super) fn new_batch(&self, id: &str, key: &str) -> NewBatch {
        let output = self.output.as_ref();
        NewBatch {
            id: id.to_owned(),
            key: key.to_owned(),
            method: self.how.method().word().to_owned(),
            source: self.source.clone(),
            output: output.map(|path| path.display().to_string()),
            command: self.command.clone(),
            fresh: self.fresh,
        }
    }
}
