//! Scratch folders, removed when dropped.

use crate::error::Error;
use crate::exit::Exit;
use kd_app::Env;
use kd_store::user_dirs::make_private;

/// Creates a folder, if possible in the user's state folder, where no one else can put files above it.
pub(super) fn folder(prefix: &str, env: &Env) -> Result<tempfile::TempDir, Error> {
    let own = env.user_dirs().runtime().ok();
    let own = own.filter(|at| make_private(at).is_ok());
    let mut name = tempfile::Builder::new();
    name.prefix(prefix);
    let made = match own {
        Some(own) => name.tempdir_in(own),
        None => name.tempdir(),
    };
    made.map_err(|e| Error::new("io", Exit::Error, "cannot create a scratch folder").because(e))
}
