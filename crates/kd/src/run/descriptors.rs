//! Checks that enough files can be opened, before the runtime panics for want of them.

use crate::error::Error;
use crate::exit::Exit;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;

/// Descriptors that a command needs at once: the runtime's own, a thread's files and locks, one agent's pipes.
const NEEDED: usize = 16;
/// A limit from which nothing is checked.
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
