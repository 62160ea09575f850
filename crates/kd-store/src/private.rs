//! Files in the user's own folders: regular, not reached through a link, readable by the user alone.
//!
//! Input: a path in a folder that [`make_private`] made. Output: its content, up to a bound.

use crate::error::Error;
use crate::user_dirs::make_private;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Opens a file; `None` if it is not there. Does not wait for a pipe.
pub(crate) fn open(path: &Path, flags: OFlags) -> Result<Option<File>, Error> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(not_used(path, "it is a link")),
        Err(e) => return Err(Error::io("open", path)(e.into())),
    };
    let meta = file.metadata().map_err(Error::io("look at", path))?;
    if !meta.is_file() {
        return Err(not_used(path, "it is not a regular file"));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(not_used(path, "it belongs to another user"));
    }
    Ok(Some(file))
}

/// The end of a file, at most this many bytes; nothing if it is not there.
pub(crate) fn read_end(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if let Some(mut file) = open(path, OFlags::RDONLY)? {
        let failed = |e| Error::io("read", path)(e);
        let len = file.metadata().map_err(failed)?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(bytes_max)))
            .map_err(failed)?;
        file.take(bytes_max)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    }
    Ok(bytes)
}

/// Appends to a file; it and its folder are made where they are missing.
pub(crate) fn append(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    make_private(folder_of(path))?;
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    let Some(mut file) = open(path, flags)? else {
        return Ok(());
    };
    file.write_all(bytes).map_err(Error::io("write", path))
}

/// Replaces a file in one step; its folder is made where it is missing.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    make_private(folder_of(path))?;
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.new", std::process::id()));
    let temp = path.with_file_name(name);
    // One of that name is left from a killed process.
    let _ = fs::remove_file(&temp);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let Some(mut file) = open(&temp, flags)? else {
        return Ok(());
    };
    let done = file
        .write_all(bytes)
        .map_err(Error::io("write", &temp))
        .and_then(|()| fs::rename(&temp, path).map_err(Error::io("replace", path)));
    if done.is_err() {
        let _ = fs::remove_file(&temp);
    }
    done
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn not_used(path: &Path, why: &'static str) -> Error {
    Error::Unsafe {
        path: path.to_path_buf(),
        why,
    }
}
