//! Errors of forums. Every error says what to do next.

use crate::connect::{self, ConnectError};
use kd_core::formats::Newer;
use kd_forum::Refused;
use std::path::PathBuf;

/// The reason why a forum operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForumError {
    /// The database reported an error.
    #[error("the forum's database refused: {0}")]
    Database(String),
    /// A column holds what `kd` never writes there.
    #[error(
        "the forum's database is damaged: the column `{column}` must hold {wanted}, and holds {found}"
    )]
    Column {
        /// The column, as the query names it.
        column: String,
        /// The expected content.
        wanted: &'static str,
        /// The actual content.
        found: String,
    },
    /// TLS to the server failed.
    #[error("no TLS to the forum's server: {why}")]
    Tls {
        /// The reason.
        why: String,
        /// Advice to the user.
        help: &'static str,
    },
    /// An address of another machine asks for a connection without TLS.
    #[error("`sslmode={mode}` does not protect the connection to another machine")]
    Unencrypted {
        /// The mode.
        mode: String,
    },
    /// The database was busy for too long.
    #[error("the forum's database is busy with other writers")]
    Busy,
    /// It could not be opened.
    #[error("the forum {place} cannot be opened: {why}")]
    Open {
        /// A path, or an address without its password.
        place: String,
        /// The database's message.
        why: String,
    },
    /// Its file was not created by kd: its author may want SQLite to act on other files.
    #[error("the forum {place} is not used: {why}")]
    NotOurs {
        /// A path.
        place: String,
        /// The unusual property.
        why: String,
    },
    /// It was written by a newer version.
    #[error("{place} has {newer}")]
    Newer {
        /// A path, or an address without its password.
        place: String,
        /// Its version.
        newer: Newer,
    },
    /// The thread, post, motion or cycle does not exist.
    #[error("there is no {what} {id}")]
    Missing {
        /// Thread, post, motion or cycle.
        what: &'static str,
        /// Its number.
        id: i64,
    },
    /// The caller may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The request is not valid here.
    #[error("{0}")]
    Invalid(String),
    /// A line of an import is invalid. Nothing of it was kept.
    #[error("line {line}: {why}")]
    Import {
        /// Counted from 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// An import contains a thread that is already in the store. Nothing of it was kept.
    #[error("line {line}: \"{title}\" is in the forum already, as thread {thread}")]
    Repeated {
        /// Counted from 1.
        line: usize,
        /// The thread's number in the store.
        thread: i64,
        /// Its title.
        title: String,
    },
    /// The same file was imported before. Nothing of it was kept.
    #[error("the same file was imported before")]
    RepeatedFile,
    /// A file could not be read, locked or created.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's message.
        why: String,
    },
    /// The record differs from the state noted outside of the database.
    #[error(
        "the record of the forum `{forum}` differs from the one noted in the state folder: {why}"
    )]
    Differs {
        /// The forum.
        forum: String,
        /// The differences, and possible causes.
        why: String,
    },
    /// There is no such forum.
    #[error(
        "there is no forum `{name}`{}",
        .near.as_ref().map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
    )]
    NoForum {
        /// The name.
        name: String,
        /// A forum with a similar name.
        near: Option<String>,
    },
    /// Another process runs cycles in this forum.
    #[error("another process runs cycles in the forum `{0}`")]
    Led(String),
    /// A rule of the forum requires more time between two cycles.
    #[error(
        "the rule `cycle_interval_secs` of the forum `{forum}` ({secs} s) lets the next cycle start at {}",
        .next.strftime("%Y-%m-%d %H:%M:%S UTC")
    )]
    TooSoon {
        /// Its forum.
        forum: String,
        /// The rule's value.
        secs: u32,
        /// The time when the next cycle may start.
        next: jiff::Timestamp,
    },
}

impl ForumError {
    /// Suggests what to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Column { .. } => "another program changed it: restore the newest copy of the database, then check it with `kd forum audit`".into(),
            Self::Tls { help, .. } => (*help).into(),
            Self::Unencrypted { .. } => "say sslmode=verify-full in `forum.store`, or use a tunnel: ssh -L 5432:localhost:5432 HOST, and postgresql://user@localhost/name".into(),
            Self::Database(_) => "check the disk or the server; no partial change was kept".into(),
            Self::Busy => "try again; if it persists, stop the program that uses it (`kd forum` names the file)".into(),
            Self::Open { .. } => "check `forum.store`: a path, or postgresql://user@host/name".into(),
            Self::NotOurs { .. } => "move it away, and kd creates a new forum; it may come from someone else".into(),
            Self::Newer { .. } => Newer::HINT.into(),
            Self::Missing { what: "thread" | "post", .. } => "`kd forum read` lists the threads".into(),
            Self::Missing { what: "motion", .. } => "`kd forum motions` lists them".into(),
            Self::Missing { what: "entry", .. } => "`kd forum undo --list` lists them".into(),
            Self::Missing { .. } => "`kd forum audit` lists the cycles".into(),
            Self::Forbidden(_) => "`kd forum members` lists who may do what".into(),
            Self::Invalid(_) => "nothing was changed".into(),
            Self::Import { .. } => "fix the line and import again; nothing was kept".into(),
            Self::Repeated { .. } => "the file, or an earlier export of the same forum, was imported before and nothing was added now; --again adds everything a second time".into(),
            Self::RepeatedFile => "nothing was added now; --again adds everything a second time".into(),
            Self::File { .. } => "remove it if it is a link, a pipe or a folder; else check who owns it and whether the disk is full".into(),
            Self::Differs { .. } => "restore the newest copy of the database, or accept this record: `kd forum audit --fork REASON`; every later audit shows it".into(),
            Self::TooSoon { forum, .. } => format!("`kd forum run-cycle` waits until then; an owner changes the rule: kd forum rules cycle_interval_secs none \"why\" --forum {forum}"),
            Self::NoForum { name, .. } => format!("`kd forum list` lists the forums; the first post creates one: kd forum post TITLE TEXT --forum {name}"),
            Self::Led(_) => "wait for it, or stop it; `kd forum watch` shows what it does".into(),
        }
    }

    /// Returns whether the caller made the mistake, not the database: agents get such a refusal as an answer and can
    /// react.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. } | Self::NoForum { .. } | Self::Forbidden(_) | Self::Invalid(_)
        )
    }
}

impl From<Refused> for ForumError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Forbidden(why) => Self::Forbidden(why),
            Refused::Invalid(why) => Self::Invalid(why),
        }
    }
}

impl From<rusqlite::Error> for ForumError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                Self::Busy
            }
            _ => Self::Database(error.to_string()),
        }
    }
}

impl From<ConnectError> for ForumError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Tls { why, help } => Self::Tls { why, help },
            ConnectError::Unencrypted { mode } => Self::Unencrypted { mode },
            ConnectError::Invalid(why) => Self::Invalid(why),
            ConnectError::Refused(error) => error.into(),
        }
    }
}

impl From<postgres::Error> for ForumError {
    fn from(error: postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) if *db.code() == postgres::error::SqlState::LOCK_NOT_AVAILABLE => Self::Busy,
            _ => Self::Database(connect::told(&error)),
        }
    }
}
