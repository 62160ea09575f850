//! Seals of threads.

use crate::error::{ErrorKind, UserError};
use kd_core::clean::clean_line;
use kd_store::seal::SealError;

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
