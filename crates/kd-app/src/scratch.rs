//! Scratch folders, removed when dropped.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_store::user_dirs::make_private;
use tempfile::TempDir;

/// Creates a folder, if possible in the user's state folder, where no one else can put files above it.
///
/// # Errors
/// If it cannot be created.
pub fn folder(prefix: &str, env: &Env) -> Result<TempDir, UserError> {
    let own = env.user_dirs().runtime().ok();
    let own = own.filter(|at| make_private(at).is_ok());
    let mut name = tempfile::Builder::new();
    name.prefix(prefix);
    let made = match own {
        Some(own) => name.tempdir_in(own),
        None => name.tempdir(),
    };
    made.map_err(|e| UserError::new(ErrorKind::Io, "cannot create a scratch folder").because(e))
}
