//! The reasons why a server ends, or a call of the host has no result.

/// The reason why serving ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServeError {
    /// The client did not complete the handshake.
    #[error("{0}")]
    Handshake(String),
    /// The connection or the task that serves it failed.
    #[error("{0}")]
    Connection(String),
}

/// A call of the host that ended without a result, because it panicked or the process stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Stopped(pub(crate) String);

/// The reason why a consultation has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// The question was refused, or could not be saved. The text says what to do.
    #[error("{0}")]
    Refused(String),
    /// The council stopped working.
    #[error("the council failed: {0}")]
    Failed(String),
}
