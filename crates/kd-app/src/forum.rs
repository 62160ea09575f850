//! The forum of a folder: where it is, and opening it.

pub mod foreign;
pub mod forget;
pub mod page;
pub mod personas;
mod remote;
mod run;
pub mod servers;
mod site;
mod token;

pub use run::{Clock, RunRequest, wishes};
pub use site::{Site, SiteRequest};

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_core::config::Config;
use kd_core::config::forum::BadSetting;
pub use kd_engine::forum::{Forum, RunError, Stop, kept_as};
pub use kd_sql::forum::{
    Anchor, Audited, Checked, CycleRecord, ForumError, ForumStore, Governance, Place, Repeat,
    SERVER_KEEPS,
};
use kd_store::Layout;

/// Opens a forum. It is the user's own if the user's `kd` created it or the user accepted it.
///
/// # Errors
/// If it cannot be opened.
pub fn open(place: &Place, env: &Env) -> Result<ForumStore, ForumError> {
    ForumStore::open(place, env.user_dirs().state().ok())
}

/// Returns the store's location: the one that the user gave; without it the configured one; without both the one beside
/// the threads.
///
/// # Errors
/// If the working folder is unknown.
pub fn place(
    said: Option<&str>,
    config: &Config,
    layout: &Layout,
    env: &Env,
) -> Result<Place, UserError> {
    Ok(match (said, &config.forum.store) {
        (Some(text), _) => Place::parse(text, env.folder()?),
        (None, Some(text)) => Place::parse(text, layout.root()),
        (None, None) => Place::File(layout.forum_file()),
    })
}

impl From<RunError> for UserError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Store(error) => error.into(),
            RunError::Setting(error) => error.into(),
            RunError::NotLeading => UserError::new(ErrorKind::Forum, error.to_string()),
            RunError::Runtime(why) => {
                UserError::new(ErrorKind::Io, "cannot start an OS thread").because(why)
            }
        }
    }
}

impl From<BadSetting> for UserError {
    fn from(error: BadSetting) -> Self {
        UserError::usage(error.to_string()).next("`kd config show forum` lists the settings")
    }
}

impl From<ForumError> for UserError {
    fn from(error: ForumError) -> Self {
        let kind = match error.is_refusal() {
            true => ErrorKind::ForumRefused,
            false => ErrorKind::Forum,
        };
        UserError::new(kind, error.to_string()).next(error.hint())
    }
}
