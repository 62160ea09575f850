//! Forums in SQL: threads and posts, what each agent has seen, cycles and runs, motions and votes, the log.
//!
//! In: a path or a PostgreSQL address, and what happened. Out: the same, read back. One code for both databases; SQLite is
//! inside the program. All calls block. Every change is one transaction: a process that is killed leaves all of it or
//! nothing.

mod act;
mod cycles;
mod db;
mod error;
mod export;
mod log;
mod motions;
mod posts;
mod runs;
mod schema;
mod search;
mod seen;
mod threads;

pub use act::Caller;
pub use cycles::{CycleRecord, Leader};
pub use error::ForumError;
pub use export::{Imported, Record};
pub use posts::NewPost;
pub use runs::RunEnd;
pub use seen::News;

use db::Db;
use std::path::{Path, PathBuf};

/// An open forum store.
pub struct ForumStore {
    db: Db,
    place: Place,
}

/// Where a forum's data is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL server.
    Server(String),
}

impl Place {
    /// From a setting: an address that begins with `postgres://` or `postgresql://`, else a path.
    pub fn parse(text: &str, base: &Path) -> Self {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Self::Server(text.to_owned())
        } else {
            Self::File(base.join(text))
        }
    }

    /// For people: without a password.
    pub fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Server(url) => match (url.split_once("://"), url.rsplit_once('@')) {
                (Some((scheme, rest)), Some((_, host))) => {
                    let user = rest.split(['@', ':']).next().unwrap_or_default();
                    format!("{scheme}://{user}@{host}")
                }
                _ => url.clone(),
            },
        }
    }
}

impl ForumStore {
    /// Opens a store; it is made if it is not there. Safe beside any number of others that do the same.
    pub fn open(place: &Place) -> Result<Self, ForumError> {
        let shown = place.shown();
        let wrap = |error: ForumError| match error {
            ForumError::Database(why) => ForumError::Open {
                place: shown.clone(),
                why,
            },
            other => other,
        };
        let (mut db, lock) = match place {
            Place::File(path) => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).map_err(|e| ForumError::File {
                        path: folder.to_path_buf(),
                        why: e.to_string(),
                    })?;
                }
                (
                    Db::sqlite(path).map_err(wrap)?,
                    Some(crate::lock::lock_path(path)),
                )
            }
            Place::Server(url) => (Db::postgres(url).map_err(wrap)?, None),
        };
        schema::migrate(&mut db, &shown, lock.as_deref())?;
        Ok(Self {
            db,
            place: place.clone(),
        })
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

impl std::fmt::Debug for ForumStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForumStore")
            .field("place", &self.place.shown())
            .finish()
    }
}
