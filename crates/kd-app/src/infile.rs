//! Reads a file named by the user: with a size limit, and without waiting for a pipe in a folder.
//!
//! Reads regular files. Pipes are read from stdin (`-`) and from kernel paths such as `/dev/fd/63` of `<(command)`.
//! Refuses a pipe or device with a name in a folder: the folder may have been made by someone else.

use crate::error::{ErrorKind, UserError};
use crate::outfile::is_of_kernel;
use kd_backends::secret_file::{self, Links};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const MIB: u64 = 1 << 20;
/// Maximum bytes of a plan.
pub const PLAN_BYTES_MAX: u64 = MIB;
/// Maximum bytes of ballots: the largest published election has about 10 MiB.
pub const BALLOTS_BYTES_MAX: u64 = 64 * MIB;
/// Maximum bytes of recorded answers.
pub const ANSWERS_BYTES_MAX: u64 = 256 * MIB;

/// Opens a file, or stdin for `-`.
///
/// # Errors
/// If the file cannot be opened, or is a pipe or a device with a name in a folder.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let whole = std::path::absolute(path)?;
    let folder = whole.parent().map(Path::canonicalize).transpose()?;
    if folder.is_some_and(|folder| is_of_kernel(&folder)) {
        return Ok(Box::new(File::open(path)?));
    }
    // Opens a pipe without a writer at once, to refuse it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        let why = "it is no regular file; pipe it into `-`";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(Box::new(file))
}

/// Reads a whole file of at most `bytes_max` bytes, or stdin for `-`.
///
/// # Errors
/// Those of [`open`]; also if it cannot be read or is longer.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_long = || {
        let why = format!("it is longer than {} MiB", bytes_max / MIB);
        Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
    };
    let file = open(path)?;
    // The size is only a hint: read to the end, since the file may grow.
    if std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > bytes_max) {
        return too_long();
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => too_long(),
        false => Ok(bytes),
    }
}

/// Like [`read`], but returns text.
///
/// # Errors
/// Those of [`read`]; also if it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Reads a text file of at most `bytes_max` bytes that holds secrets: only if nobody except the user can read or replace
/// it. `what` names it in errors: `the tokens file`.
///
/// # Errors
/// It cannot be read, is not a regular file of the user or root, or others can access it.
pub fn read_secret(path: &Path, bytes_max: u64, what: &str) -> Result<String, UserError> {
    secret_file::read(path, bytes_max, Links::Refuse).map_err(|error| {
        let what = format!("{what} {} cannot be used", path.display());
        let hint = error.hint();
        UserError::new(ErrorKind::Io, what)
            .because(error)
            .next(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType};
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_a_folder_holds_neither_hangs_nor_fills_the_memory() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        let pipe = rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0);
        pipe.expect("made");
        std::os::unix::fs::symlink(at("pipe"), at("link to a pipe")).expect("linked");
        std::os::unix::fs::symlink("/dev/zero", at("zero")).expect("linked");
        std::os::unix::fs::symlink("/dev/stdin", at("stdin")).expect("linked");
        let sparse = File::create(at("sparse")).expect("made");
        sparse.set_len(1 << 40).expect("sparse");
        for name in ["pipe", "link to a pipe", "zero", "sparse", "missing", "."] {
            assert!(read(&at(name), 1000).is_err(), "{name}");
        }
        assert!(read(Path::new("/dev/zero"), 1000).is_err(), "bounded");
        std::fs::write(at("file"), "text").expect("written");
        std::os::unix::fs::symlink("file", at("link")).expect("linked");
        for name in ["file", "link"] {
            assert_eq!(read_text(&at(name), 4).expect(name), "text");
            assert!(read(&at(name), 3).is_err());
        }
    }

    #[test]
    fn a_pipe_that_the_shell_made_is_read() {
        let (reading, mut writing) = io::pipe().expect("a pipe");
        writing.write_all(b"ballots").expect("written");
        drop(writing);
        let path = format!("/dev/fd/{}", reading.as_raw_fd());
        assert_eq!(read(Path::new(&path), 100).expect("read"), b"ballots");
    }
}
