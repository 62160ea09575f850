//! Errors of batches on PostgreSQL. Every error says what to do next.

use super::address::Store;
use super::help;
use crate::connect::{self, ConnectError};
use kd_core::formats::Newer;
use postgres::error::SqlState;

/// The reason why an operation on the database of a fleet failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// It could not be opened.
    #[error("the database of batches at {place} cannot be opened: {why}")]
    Open {
        /// The address, without its password.
        place: String,
        /// The reason.
        why: String,
        /// Advice.
        help: String,
    },
    /// The connection broke, and could not be made again in time.
    #[error("the connection to the database of batches is lost: {0}")]
    Lost(String),
    /// The server has no space left, or no memory, and did not get any in time.
    #[error("the database of batches has no room: {0}")]
    Full(String),
    /// The database reported an error.
    #[error("the database of batches refused: {why}")]
    Database {
        /// The reason.
        why: String,
        /// The command to type, if it is known.
        help: Option<String>,
        /// The error of the client, until its help is looked up.
        cause: Option<Box<postgres::Error>>,
    },
    /// It was written by a newer version.
    #[error("{place} has {newer}")]
    Newer {
        /// The address, without its password.
        place: String,
        /// Its version.
        newer: Newer,
    },
    /// A row holds what `kd` never writes.
    #[error("the database of batches is damaged: {0}")]
    Damaged(String),
}

impl FleetError {
    /// Suggests what to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Open { help, .. } => help.clone(),
            Self::Lost(_) => "check that the server runs and can be reached; then run the same command again, which goes on".into(),
            Self::Full(_) => "free space on the disk of the server; then run the same command again, which goes on".into(),
            Self::Database { help, .. } => help.clone().unwrap_or_else(|| RIGHTS.into()),
            Self::Newer { .. } => Newer::HINT.into(),
            Self::Damaged(_) => "ask who else writes to this database; `kd` uses the tables that begin with kd_".into(),
        }
    }

    /// Returns whether the same transaction may succeed later, on a new connection.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Full(_))
    }

    /// Returns the error of a connection that could not be made.
    pub(super) fn open(store: &Store, error: ConnectError) -> Self {
        let (why, help) = match error {
            ConnectError::Tls { why, help } => (why, help.to_owned()),
            ConnectError::Unencrypted { .. } => (
                error.to_string(),
                "add sslmode=verify-full to the address, or use a tunnel: ssh -L 5432:localhost:5432 HOST, and postgresql://user@localhost/name".into(),
            ),
            ConnectError::Invalid(why) => (why, HELP.into()),
            ConnectError::Refused(error) => {
                let help = help::of(&error, store);
                (connect::told(&error), help.unwrap_or_else(|| HELP.into()))
            }
        };
        Self::Open {
            place: store.shown(),
            why,
            help,
        }
    }

    /// Looks up what to type for an error of this database.
    pub(super) fn at(self, store: &Store) -> Self {
        match self {
            Self::Database {
                why,
                cause: Some(cause),
                ..
            } => Self::Database {
                why,
                help: help::of(&cause, store),
                cause: None,
            },
            error => error,
        }
    }
}

const RIGHTS: &str = "check the user's rights: it needs to create tables in its schema, once, and to read and write them";
const HELP: &str =
    "give --store, or KD_BATCH_STORE, an address such as postgresql://user@host/name";

impl From<postgres::Error> for FleetError {
    fn from(error: postgres::Error) -> Self {
        let told = connect::told(&error);
        match may_pass(&error) {
            _ if is_full(&error) => Self::Full(told),
            _ if is_damaged(&error) => Self::Damaged(told),
            true => Self::Lost(told),
            false => Self::Database {
                why: told,
                help: None,
                cause: Some(Box::new(error)),
            },
        }
    }
}

/// Returns whether the server lacks space or memory.
fn is_full(error: &postgres::Error) -> bool {
    const FULL: [&SqlState; 2] = [&SqlState::DISK_FULL, &SqlState::OUT_OF_MEMORY];
    error.code().is_some_and(|code| FULL.contains(&code))
        || error.as_db_error().is_some_and(is_cache)
}

/// Returns whether the server could not write a cache file when a session began: it reports a full disk as an internal error there.
fn is_cache(db: &postgres::error::DbError) -> bool {
    db.code() == &SqlState::INTERNAL_ERROR && db.message() == "could not write init file"
}

/// Returns whether a row has a value that `kd` never writes: nothing, or a number that is too large for calculations.
fn is_damaged(error: &postgres::Error) -> bool {
    // The class of errors of values. The client has no kind for a column that cannot be read.
    let is_value = error
        .code()
        .is_some_and(|code| code.code().starts_with("22"));
    is_value || error.to_string().starts_with("error deserializing column")
}

/// Returns whether the same transaction may succeed on another connection, or later.
pub(super) fn may_pass(error: &postgres::Error) -> bool {
    const LATER: [SqlState; 9] = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
    ];
    match error.as_db_error() {
        Some(db) => {
            is_full(error) || LATER.contains(db.code()) || db.code().code().starts_with("08")
        }
        // Everything that is not an answer of the server: the connection.
        None => {
            error.is_closed()
                || std::error::Error::source(error)
                    .is_some_and(|cause| cause.is::<std::io::Error>())
        }
    }
}

impl From<serde_json::Error> for FleetError {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}
