//! The data that a collector stores, so that nothing is paid for twice after a killed run.

use kd_core::spending::Spent;
use kd_core::{Timestamp, Usage};

/// A request that goes to a provider in a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParcelItem {
    /// Its id at the provider.
    pub id: String,
    /// The digest of the service, the model and the request.
    pub digest: String,
    /// The thread that waits for it.
    pub thread: Option<String>,
    /// The maximum that it may spend.
    pub most: Spent,
    /// The same as usage.
    pub usage: Usage,
}

/// A provider batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParcelRecord {
    /// Our name of it.
    pub name: String,
    /// The service, as configured.
    pub service: String,
    /// The model.
    pub model: String,
    /// Its id at the provider; `None` until the provider has confirmed it.
    pub remote: Option<String>,
    /// When it was handed over.
    pub at: Timestamp,
    /// Its requests.
    pub items: Vec<ParcelItem>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ParcelResult {
    /// The id of the request.
    pub id: String,
    /// The response, as the provider gave it; `None` if there is none.
    pub reply: Option<String>,
    /// The amount spent.
    pub spent: Spent,
}

/// A reply that a provider gave, and that no question has used yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReply {
    /// The id of the request.
    pub id: String,
    /// The digest of the request.
    pub digest: String,
}

/// The reason why a store of provider batches failed.
#[derive(Debug, thiserror::Error)]
pub enum ParcelError {
    /// It cannot be read or written. The text says what to do.
    #[error(transparent)]
    Store(Box<dyn std::error::Error + Send + Sync>),
    /// The call was stopped before it ended.
    #[error("{0}")]
    Stopped(String),
}

/// Keeps provider batches and replies. Every call is one transaction.
pub trait ParcelStore: Send + Sync {
    /// Returns the provider batches that are not over.
    ///
    /// # Errors
    /// They cannot be read.
    fn open(&self) -> Result<Vec<ParcelRecord>, ParcelError>;
    /// Returns the replies that no question has used.
    ///
    /// # Errors
    /// They cannot be read.
    fn kept(&self) -> Result<Vec<KeptReply>, ParcelError>;
    /// Returns such a reply, and records the thread that uses it.
    ///
    /// # Errors
    /// It cannot be read or written.
    fn take(&self, id: &str, thread: Option<&str>) -> Result<Option<String>, ParcelError>;
    /// Records a provider batch that is about to be handed over.
    ///
    /// # Errors
    /// It cannot be written: the batch must not be sent.
    fn sending(&self, parcel: &ParcelRecord) -> Result<(), ParcelError>;
    /// Records the id that the provider gave it.
    ///
    /// # Errors
    /// It cannot be written.
    fn sent(&self, name: &str, remote: &str) -> Result<(), ParcelError>;
    /// Removes a provider batch that the provider does not have.
    ///
    /// # Errors
    /// It cannot be written.
    fn unsent(&self, name: &str) -> Result<(), ParcelError>;
    /// Records that the results of a provider batch are not available now. From now on, each request counts with its
    /// maximum; its result, if it arrives later, costs nothing more.
    ///
    /// # Errors
    /// It cannot be written.
    fn unknown(&self, name: &str) -> Result<(), ParcelError>;
    /// Records the results of a finished provider batch, and their spending.
    ///
    /// # Errors
    /// They cannot be written.
    fn ended(&self, name: &str, results: &[ParcelResult]) -> Result<(), ParcelError>;
}
