//! Seals of threads: sealing, checking and importing them, and the user's key.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_core::clean::clean_line;
use kd_core::seal::{Seal, SecretKey};
use kd_core::{Timestamp, display, seal as sealing};
use kd_store::seal::{self, SEALED_AT, SealError};
use kd_store::{Layout, Thread};
use std::path::PathBuf;

/// Returns the user's key, and its file if it is new: only then nobody has a copy of it.
///
/// # Errors
/// The file cannot be read or created, or holds no key.
pub fn own_key(env: &Env) -> Result<(SecretKey, Option<PathBuf>), UserError> {
    let dirs = env.user_dirs();
    let (key, is_new) = seal::key_or_new(&dirs)?;
    let file = is_new.then(|| seal::key_file(&dirs)).transpose()?;
    Ok((key, file))
}

/// Seals what a thread has on disk. Returns it with the numbers of its forgotten messages.
///
/// # Errors
/// The thread cannot be read, or the seal is one that [`check`] and [`import`] would refuse.
pub fn of_thread(thread: &Thread) -> Result<(Seal, Vec<u32>), UserError> {
    let now = Timestamp::now().strftime(SEALED_AT).to_string();
    let sealed = Seal::new(&thread.id().0, &now, seal::pieces(thread)?).map_err(unsealable)?;
    let forgotten = seal::check(&sealed).map_err(|why| {
        UserError::new(ErrorKind::Seal, "the thread could not be sealed")
            .because(display::line(&why.to_string()))
            .next("`kd fsck` shows files that cannot be read")
    })?;
    Ok((sealed, forgotten))
}

/// Returns the error of a thread that could not be sealed.
pub fn unsealable(error: sealing::SealError) -> UserError {
    UserError::new(ErrorKind::Seal, "the thread could not be sealed").because(error)
}

/// Checks that a sealed file holds a thread. Returns the numbers of its forgotten messages.
///
/// # Errors
/// It holds none.
pub fn check(sealed: &Seal) -> Result<Vec<u32>, UserError> {
    Ok(seal::check(sealed)?)
}

/// Imports a thread from a sealed file. Unless `again`, a thread that was imported from it before is returned, and `true`.
///
/// # Errors
/// The file holds no thread, or it cannot be written.
pub fn import(layout: &Layout, sealed: &Seal, again: bool) -> Result<(Thread, bool), UserError> {
    let known = match again {
        true => None,
        false => seal::imported(layout, sealed)?,
    };
    match known {
        Some(known) => Ok((known, true)),
        None => Ok((seal::import(layout, sealed)?, false)),
    }
}

impl From<SealError> for UserError {
    fn from(error: SealError) -> Self {
        // A sealed file may be anybody's.
        let what = clean_line(&error.to_string(), usize::MAX);
        match error {
            SealError::Store(error) => error.into(),
            SealError::NotText(_) => UserError::new(ErrorKind::Seal, what)
                .next("`kd fsck` shows files that cannot be read"),
            SealError::Key(_) => UserError::new(ErrorKind::Key, what)
                .next("put the key back from a copy, or move the file away to get a new key"),
            SealError::Random(_) => UserError::new(ErrorKind::Random, what),
            SealError::Erased(_) => UserError::new(ErrorKind::Erased, what)
                .next("import the file that still has its contents"),
            SealError::Foreign { .. } | SealError::Header(_) => {
                UserError::new(ErrorKind::NoThreadInside, "the sealed file holds no thread")
                    .because(what)
            }
        }
    }
}
