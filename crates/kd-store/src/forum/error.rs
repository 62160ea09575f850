//! What can go wrong with a forum. Every error says what to do next.

use kd_core::formats::Newer;
use std::path::PathBuf;

/// Why the forum could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForumError {
    /// The database refused.
    #[error("the forum's database refused: {0}")]
    Database(String),
    /// The database is busy for too long.
    #[error("the forum's database is busy with other writers")]
    Busy,
    /// It could not be opened.
    #[error("the forum {place} cannot be opened: {why}")]
    Open {
        /// A path, or an address without its password.
        place: String,
        /// In the database's words.
        why: String,
    },
    /// Its file is not as kd makes it: whoever made it may want SQLite to act on other files.
    #[error("the forum {place} is not used: {why}")]
    NotOurs {
        /// A path.
        place: String,
        /// What is strange about it.
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
    /// There is no such thing.
    #[error("there is no {what} {id}")]
    Missing {
        /// Thread, post, motion or cycle.
        what: &'static str,
        /// Its number.
        id: i64,
    },
    /// Somebody may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// What was said makes no sense here.
    #[error("{0}")]
    Invalid(String),
    /// A line of an import is wrong. Nothing of it was kept.
    #[error("line {line}: {why}")]
    Import {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// An import holds a thread that is in the store already. Nothing of it was kept.
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
    /// A file could not be read, locked or made.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: PathBuf,
        /// In the system's words.
        why: String,
    },
    /// The record is not the one that was noted outside of the database.
    #[error("the record of the forum `{forum}` is not the one noted in the state folder: {why}")]
    Differs {
        /// The forum.
        forum: String,
        /// What differs, and what may be the cause.
        why: String,
    },
    /// Another process runs cycles in this forum.
    #[error("another process runs cycles in the forum `{0}`")]
    Led(String),
    /// A rule of the forum asks for more time between two cycles.
    #[error(
        "the rule `cycle_interval_secs` of the forum `{forum}` ({secs} s) lets the next cycle start at {}",
        .next.strftime("%Y-%m-%d %H:%M:%S UTC")
    )]
    TooSoon {
        /// Its forum.
        forum: String,
        /// The rule.
        secs: u32,
        /// When the next cycle may start.
        next: jiff::Timestamp,
    },
}

impl ForumError {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Database(_) => "look at the disk or the server; nothing half-written was kept".into(),
            Self::Busy => "try again; if it stays so, end the program that holds it (`kd forum` names the file)".into(),
            Self::Open { .. } => "check `forum.store`: a path, or postgresql://user@host/name".into(),
            Self::NotOurs { .. } => "move it away, and kd makes a new forum; it may come from somebody else".into(),
            Self::Newer { .. } => Newer::HINT.into(),
            Self::Missing { what: "thread" | "post", .. } => "`kd forum read` lists the threads".into(),
            Self::Missing { what: "motion", .. } => "`kd forum motions` lists them".into(),
            Self::Missing { what: "entry", .. } => "`kd forum undo --list` lists them".into(),
            Self::Missing { .. } => "`kd forum audit` lists the cycles".into(),
            Self::Forbidden(_) => "`kd forum members` lists who may do what".into(),
            Self::Invalid(_) => "mend it and try again; nothing was changed".into(),
            Self::Import { .. } => "mend the line and import again; nothing was kept".into(),
            Self::Repeated { .. } => "the file, or an earlier export of the same forum, was imported before and nothing was added now; --again adds everything a second time".into(),
            Self::RepeatedFile => "nothing was added now; --again adds everything a second time".into(),
            Self::File { .. } => "remove it if it is a link, a pipe or a folder; else check who owns it and whether the disk is full".into(),
            Self::Differs { .. } => "restore the newest copy of the database, or accept this record: `kd forum audit --fork REASON`; every later audit shows it".into(),
            Self::TooSoon { forum, .. } => format!("`kd forum run-cycle` waits until then; an owner changes the rule: kd forum rules cycle_interval_secs none \"why\" --forum {forum}"),
            Self::Led(_) => "wait for it, or stop it; `kd forum watch` shows what it does".into(),
        }
    }

    /// Whether the caller is to blame, not the database: such a refusal is told to an agent, who can mend it.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. } | Self::Forbidden(_) | Self::Invalid(_)
        )
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

impl From<postgres::Error> for ForumError {
    fn from(error: postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) if *db.code() == postgres::error::SqlState::LOCK_NOT_AVAILABLE => Self::Busy,
            Some(db) => Self::Database(db.message().to_owned()),
            None => Self::Database(
                std::error::Error::source(&error)
                    .map_or(error.to_string(), |cause| format!("{error}: {cause}")),
            ),
        }
    }
}
