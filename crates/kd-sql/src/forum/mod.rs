//! Forums in SQL: threads and posts, what each agent has seen, cycles and runs, motions and votes, the log.
//!
//! Input: a path or a PostgreSQL address. The code is the same for both databases; SQLite is built in. All calls block.
//! Every change is one transaction: a killed process leaves all of it or nothing.

mod accounts;
mod act;
mod admit;
mod audit;
mod company;
mod cycles;
mod db;
mod elected;
mod erase;
mod error;
mod export;
mod fair;
mod forget;
mod fork;
mod journal;
mod links;
mod log;
mod motions;
mod names;
mod order;
mod own;
mod pace;
mod posts;
mod record;
mod relay;
mod rows;
mod rules;
mod runner_log;
mod runs;
mod schema;
mod search;
mod secrets;
mod seen;
mod servers;
mod shape;
mod shortened;
mod sight;
mod threads;
mod visits;

pub use act::{CallSettings, Caller};
pub use audit::{Anchor, Audited, Checked};
pub use cycles::{CycleRecord, Leader};
pub use erase::{Erased, ErasedOn, Erasure, Posts};
pub use error::ForumError;
pub use export::{Imported, Repeat};
pub use forget::{ForumTexts, SERVER_KEEPS, erased, forget_log, numbers};
pub use links::Drawn;
pub use posts::NewPost;
pub use record::{Governance, Record};
pub use runner_log::RunnerLog;
pub use runs::RunEnd;
pub use seen::News;
pub use sight::Sight;
pub use visits::Visiting;

use crate::connect;
use db::{Db, Links};
use kd_core::secrets::Secrets;
use kd_store::beneath::{self, Folder, Kind};
use kd_store::error::Error;
use kd_store::layout;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An open forum store.
pub struct ForumStore {
    db: Db,
    place: Place,
    /// Whether the user's `kd` created it, or the user accepted it. Always true on a server: only the user names one.
    own: bool,
    /// The user's state folder, which holds the secrets of future draws.
    state: Option<PathBuf>,
    /// The keys and passwords that are masked in every text before it is stored.
    masking: Secrets,
}

/// The place where a forum's data is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL server.
    Server(String),
}

impl Place {
    /// Parses a setting: an address if it begins with `postgres://` or `postgresql://`, otherwise a path.
    pub fn parse(text: &str, base: &Path) -> Self {
        if connect::is_address(text) {
            Self::Server(text.to_owned())
        } else {
            Self::File(base.join(text))
        }
    }

    /// Returns the place for display: without a password.
    pub fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Server(url) => connect::shown(url),
        }
    }
}

impl ForumStore {
    /// Opens a store, creating it if it does not exist. Safe to call concurrently. `state` is the user's state folder,
    /// which records the user's own forums; in any other forum, elected settings can only lower the configured values.
    ///
    /// # Errors
    /// [`ForumError::Open`] if it cannot be opened, [`ForumError::NotOurs`] if kd did not create it,
    /// [`ForumError::Newer`] if a newer version wrote it; also if its file is a link below `.kd`, or TLS to the server
    /// fails.
    pub fn open(place: &Place, state: Option<&Path>) -> Result<Self, ForumError> {
        let shown = place.shown();
        let wrap = |error: ForumError| match error {
            ForumError::Database(why) => ForumError::Open {
                place: shown.clone(),
                why,
            },
            other => other,
        };
        let (mut db, file) = match place {
            Place::File(path) => {
                let (real, links) = database(path)?;
                let db = Db::sqlite(&real, links).map_err(wrap)?;
                (db, Some(path.as_path()))
            }
            Place::Server(url) => (Db::postgres(url).map_err(wrap)?, None),
        };
        let mut enter = |db: &mut Db| match place {
            // A forum that could not be noted counts as foreign.
            Place::File(path) => own::make_own(db, path, state).map(|_| ()),
            Place::Server(_) => Ok(()),
        };
        if db.is_sqlite() {
            shape::check_tables(&mut db, &shown)?;
        }
        schema::migrate(&mut db, &shown, file, &mut enter)?;
        let own = match place {
            Place::File(path) => own::is_own(&mut db, path, state)?,
            Place::Server(_) => true,
        };
        Ok(Self {
            db,
            place: place.clone(),
            own,
            state: state.map(Path::to_path_buf),
            masking: Secrets::default(),
        })
    }

    /// Returns whether the store is foreign: neither created here by the user's `kd` nor accepted by the user.
    pub fn is_foreign(&self) -> bool {
        !self.own
    }

    /// Makes the store the user's own, at the user's request.
    ///
    /// # Errors
    /// If the state folder cannot be written, or the database fails.
    pub fn accept(&mut self, state: Option<&Path>) -> Result<(), ForumError> {
        if let Place::File(path) = &self.place {
            let path = path.clone();
            let noted = self.db.whole(|db| own::make_own(db, &path, state))?;
            if !noted {
                return Err(ForumError::File {
                    path,
                    why: "it cannot be noted in the state folder".into(),
                });
            }
            self.own = own::is_own(&mut self.db, &path, state)?;
        }
        Ok(())
    }

    /// Sets the secrets to mask in texts. By default, secrets of well-known shapes are masked.
    pub fn set_secrets(&mut self, secrets: Secrets) {
        self.masking = secrets;
    }

    /// Returns its place.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// Prepares a database file: returns the path to open, and whether it may contain links. Below `.kd`, the file and
/// those that SQLite keeps beside it must be regular files.
fn database(path: &Path) -> Result<(PathBuf, Links), ForumError> {
    let refused = |e: Error| ForumError::File {
        path: e.path().unwrap_or(path).to_path_buf(),
        why: kd_store::thread::told(&e),
    };
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = Folder::make(parent.unwrap_or(Path::new("."))).map_err(refused)?;
    if !layout::is_ours(path) {
        return Ok((path.to_path_buf(), Links::Followed));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // These files are never opened: closing a second descriptor would drop the locks of another connection of this
    // process.
    for end in ["", "-wal", "-shm", "-journal"] {
        let name = format!("{name}{end}");
        let Some(look) = folder.look(&name).map_err(refused)? else {
            continue;
        };
        let path = folder.path().join(name);
        if look.kind != Kind::File {
            return Err(refused(beneath::wrong_kind(path, look.kind, Kind::File)));
        }
        if look.has_second_name() {
            return Err(refused(Error::SecondName { path }));
        }
    }
    if !folder.has(&*name) {
        create_private(&folder, &name).map_err(refused)?;
    }
    // SQLite rejects a link anywhere in the path; above `.kd` there may be some.
    let real = folder.path().canonicalize();
    let real = real.map_err(|e| refused(Error::io("open", path)(e)))?;
    Ok((real.join(&*name), Links::Refused))
}

/// Creates an empty database that others cannot read; SQLite would leave that to the umask. It gets its name when it is
/// closed, so that no lock on it is lost.
fn create_private(folder: &Folder, name: &str) -> Result<(), Error> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let temp = loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let temp = format!(".{name}.{}-{count}.lock", std::process::id());
        // Left by a dead process with the same id.
        if folder.create(&temp)?.is_some() {
            break temp;
        }
    };
    if !folder.move_to(temp.as_ref(), folder, name.as_ref())? {
        folder.remove(&temp)?;
    }
    Ok(())
}

impl std::fmt::Debug for ForumStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForumStore")
            .field("place", &self.place.shown())
            .finish()
    }
}
