//! A file that is opened once: its path, its kind and its text are all of the same file, whatever takes its place.

use kd_core::media::MediaKind;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path};

/// Maximum bytes of a text file.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a file that are read to tell its kind.
const HEAD_BYTES: usize = 8 << 10;

/// Flags of every folder on the way.
const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(PASSING);
/// Folders that may only be passed have to be enough.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
const PASSING: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
const PASSING: OFlags = OFlags::RDONLY;

/// Opens a regular file by a path without links. Follows none, so that it is the file of this path, and does not wait for a
/// pipe that has taken its place.
///
/// # Errors
/// If there is no regular file, or a link is on the way.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mut folder: OwnedFd = rustix::fs::open("/", FOLDER, Mode::empty())?;
    let mut names = path.components().peekable();
    while let Some(part) = names.next() {
        let Component::Normal(name) = part else {
            continue;
        };
        if names.peek().is_some() {
            folder = rustix::fs::openat(&folder, name, FOLDER, Mode::empty())?;
            continue;
        }
        let file = File::from(rustix::fs::openat(&folder, name, file, Mode::empty())?);
        if file.metadata()?.is_file() {
            return Ok(file);
        }
    }
    Err(io::Error::other("it is no regular file"))
}

/// Reads the first bytes of a file, and its size.
pub(crate) fn head(file: &File) -> io::Result<(Vec<u8>, u64)> {
    let mut head = vec![0; HEAD_BYTES];
    let mut len = 0;
    while len < head.len() {
        match file.read_at(&mut head[len..], len as u64)? {
            0 => break,
            read => len += read,
        }
    }
    head.truncate(len);
    Ok((head, file.metadata()?.len()))
}

/// Reads a file of at most this many bytes. Returns its bytes and its size; only the size if it has more.
pub(crate) fn bytes(mut file: &File, max: u64) -> io::Result<(Vec<u8>, u64)> {
    let len = file.metadata()?.len();
    let mut bytes = Vec::new();
    if len <= max {
        file.rewind()?;
        file.take(max + 1).read_to_end(&mut bytes)?;
    }
    let len = len.max(bytes.len() as u64);
    Ok((bytes, len))
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Media(MediaKind),
    Binary,
}

impl Kind {
    /// Returns the maximum bytes of a file of this kind.
    pub(crate) fn bytes_max(self) -> u64 {
        match self {
            Self::Media(kind) => kind.bytes_max(),
            Self::Text | Self::Binary => FILE_BYTES_MAX,
        }
    }
}

/// Tells the kind of a file by its bytes; `is_cut` means that only the first ones are given.
pub(crate) fn kind(bytes: &[u8], is_cut: bool) -> Kind {
    let is_text = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // A character at the end may be cut.
        Err(error) => is_cut && error.error_len().is_none(),
    };
    match MediaKind::of(bytes) {
        Some(kind) => Kind::Media(kind),
        None if !is_text || bytes.contains(&0) => Kind::Binary,
        None => Kind::Text,
    }
}
