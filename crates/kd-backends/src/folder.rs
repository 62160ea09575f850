//! Reading the user's folder for members at a service. This crate knows when a member may read, and its host how:
//! [`FolderReader`].

use kd_core::prompt::folder::FolderCall;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Makes the calls of members that read a folder. May block on the disk.
pub trait FolderReader: Send + Sync {
    /// Makes a call. Nothing outside of `folder` is read, whatever the call names.
    fn run(&self, folder: &Path, call: &FolderCall, bounds: &Bounds<'_>) -> Ran;
}

/// The bounds of one call.
#[derive(Clone, Copy)]
pub struct Bounds<'b> {
    /// Maximum bytes of the result.
    pub bytes: usize,
    /// The time at which to stop and return what was found.
    pub until: Instant,
    /// Whether nobody waits for the result any more: stop as well.
    pub stop: &'b AtomicBool,
    /// Returns whether a text contains a key of a service: such a file is for nobody.
    pub holds_key: &'b dyn Fn(&str) -> bool,
}

impl Bounds<'_> {
    /// Returns whether to stop and return what was found.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Instant::now() >= self.until
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The result, or the error, for the model.
    pub text: String,
    /// Whether it is an error.
    pub failed: bool,
}

impl Ran {
    /// Builds the result of a call that failed.
    pub fn failed(why: impl Into<String>) -> Self {
        Self {
            text: why.into(),
            failed: true,
        }
    }
}
