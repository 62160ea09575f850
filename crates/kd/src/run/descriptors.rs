//! Checks that enough files can be opened, since the runtime would panic otherwise.

use crate::error::Error;
use crate::exit::Exit;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;

/// Descriptors that a command needs at once: for the runtime, a thread's files and locks, and one agent's pipes.
const NEEDED: usize = 16;
/// A limit above which nothing is checked.
const PLENTY: u64 = 64;

/// Fails if the limit on open files is too low to start.
pub(super) fn check() -> Result<(), Error> {
    let Some(limit) = getrlimit(Resource::Nofile).current.filter(|n| *n < PLENTY) else {
        return Ok(());
    };
    let spare: Result<Vec<File>, io::Error> =
        (0..NEEDED).map(|_| File::open("/dev/null")).collect();
    match spare {
        Err(e) if Errno::from_io_error(&e) == Some(Errno::MFILE) => {
            Err(
                Error::new("io", Exit::Error, "too few file descriptors to start")
                    .because(format!(
                        "the limit on open files is {limit}, and kd needs {NEEDED} to spare"
                    ))
                    .next("ulimit -n 256"),
            )
        }
        _ => Ok(()),
    }
}
