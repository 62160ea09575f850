//! Files in the user's own folders: regular, not reached through a link, accessible only to the user. The only module
//! that opens and replaces such files.
//!
//! Input: a path in a folder that [`make_private`] created. Output: its content, up to a limit.

use crate::error::{Error, OTHERS_WRITE};
use crate::user_dirs::make_private;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Opens a file; `None` if it does not exist. Does not block on a pipe.
///
/// # Errors
/// [`Error::Unsafe`] if it is a link, not a regular file, another user's, or a file that others can write;
/// [`Error::Io`] if it cannot be opened.
pub fn open(path: &Path, flags: OFlags) -> Result<Option<File>, Error> {
    let Some((file, meta)) = open_regular(path, flags)? else {
        return Ok(None);
    };
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(not_used(path, "it belongs to another user"));
    }
    // Whatever it says may be theirs, and closing it now would not tell.
    match meta.mode() & 0o022 {
        0 => Ok(Some(file)),
        _ => Err(not_used(path, OTHERS_WRITE)),
    }
}

/// Opens a regular file of any owner that is not itself a link.
fn open_regular(path: &Path, flags: OFlags) -> Result<Option<(File, Metadata)>, Error> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(not_used(path, "it is a link")),
        Err(e) => return Err(Error::io("open", path)(e.into())),
    };
    let meta = file.metadata().map_err(Error::io("look at", path))?;
    match meta.is_file() {
        true => Ok(Some((file, meta))),
        false => Err(not_used(path, "it is not a regular file")),
    }
}

/// Reads a text file of any owner up to this size: its content is untrusted. The last path component must not be a
/// link.
pub(crate) fn read_small(path: &Path, bytes_max: u64) -> Option<String> {
    let (file, meta) = open_regular(path, OFlags::RDONLY).ok()??;
    let mut text = String::new();
    let fits = meta.len() <= bytes_max;
    fits.then(|| file.take(bytes_max).read_to_string(&mut text))?
        .ok()?;
    Some(text)
}

/// Reads a trusted file: no other user can have written it. `None` if it does not exist.
///
/// # Errors
/// Those of [`open`]; also if the file is too large or cannot be read.
pub fn read(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = open(path, OFlags::RDONLY)? else {
        return Ok(None);
    };
    let meta = file.metadata().map_err(Error::io("look at", path))?;
    if meta.len() > bytes_max {
        return Err(not_used(path, "it is too large"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max)
        .read_to_end(&mut bytes)
        .map_err(Error::io("read", path))?;
    Ok(Some(bytes))
}

/// Rejects a folder that another user could have filled. Returns whether it exists.
pub(crate) fn check_folder(folder: &Path) -> Result<bool, Error> {
    let meta = match fs::metadata(folder) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::io("look at", folder)(error)),
    };
    if !meta.is_dir() {
        return Err(not_used(folder, "it is not a folder"));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(not_used(folder, "it belongs to another user"));
    }
    if meta.mode() & 0o022 != 0 {
        return Err(not_used(folder, "others can write to it"));
    }
    Ok(true)
}

/// Reads up to `bytes_max` bytes from the end of a file; empty if the file does not exist.
///
/// # Errors
/// Those of [`open`]; also if the file cannot be read.
pub fn read_end(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
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

/// Removes lines from the last `bytes_max` bytes of a file; earlier ones go too. Returns how many were removed; changes
/// nothing in a dry run, or without such a line.
pub(crate) fn remove_lines(
    path: &Path,
    bytes_max: u64,
    goes: impl Fn(&[u8]) -> bool,
    dry: bool,
) -> Result<usize, Error> {
    let bytes = read_end(path, bytes_max)?;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let kept: Vec<&[u8]> = lines.clone().filter(|line| !goes(line)).collect();
    let gone = lines.count() - kept.len();
    if gone > 0 && !dry {
        replace_synced(path, &kept.concat())?;
    }
    Ok(gone)
}

/// Appends lines to a file, creating it and its folder if they are missing. They start on a line of their own if the last
/// one was not written to its end. Returns the size of the file.
///
/// # Errors
/// Those of [`open`]; also if the folder is not the user's own, or the folder or the file cannot be written.
pub fn append(path: &Path, lines: &[u8]) -> Result<u64, Error> {
    let mut file = appending(path)?;
    let end = file
        .seek(SeekFrom::End(0))
        .map_err(Error::io("read", path))?;
    let mut last = [b'\n'];
    if end > 0 {
        file.read_exact_at(&mut last, end - 1)
            .map_err(Error::io("read", path))?;
    }
    let ended: &[u8] = if last == *b"\n" { b"" } else { b"\n" };
    let lines = [ended, lines].concat();
    file.write_all(&lines).map_err(Error::io("write", path))?;
    Ok(end + lines.len() as u64)
}

/// Opens a file for reading and appending, creating it and its folder if they are missing.
pub(crate) fn appending(path: &Path) -> Result<File, Error> {
    make_private(folder_of(path))?;
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
    let gone = || Error::io("open", path)(io::ErrorKind::NotFound.into());
    open(path, flags)?.ok_or_else(gone)
}

/// Replaces a file atomically, creating its folder if it is missing.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace_with(path, bytes, |_| Ok(()))
}

/// Like [`replace`]; the new content is synced to disk before it replaces the old.
///
/// # Errors
/// If the folder is not the user's own, or the folder or the file cannot be written. The old content stays then.
pub fn replace_synced(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace_with(path, bytes, File::sync_all)
}

fn replace_with(
    path: &Path,
    bytes: &[u8],
    finish: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), Error> {
    make_private(folder_of(path))?;
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.new", std::process::id()));
    let temp = path.with_file_name(name);
    // Left by a killed process with the same id.
    let _ = fs::remove_file(&temp);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let Some(mut file) = open(&temp, flags)? else {
        return Ok(());
    };
    let done = file
        .write_all(bytes)
        .and_then(|()| finish(&file))
        .map_err(Error::io("write", &temp))
        .and_then(|()| fs::rename(&temp, path).map_err(Error::io("replace", path)));
    if done.is_err() {
        let _ = fs::remove_file(&temp);
    }
    done
}

/// Removes new versions of a file that killed programs did not finish. The caller keeps other writers of the file out.
pub(crate) fn remove_unfinished(path: &Path) {
    let own = path.file_name().unwrap_or_default().to_string_lossy();
    for item in fs::read_dir(folder_of(path))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = item.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(&*own));
        let pid = rest.and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".new"));
        if pid.is_some_and(|pid| pid.parse::<u32>().is_ok()) {
            // One that stays is removed by the next change.
            let _ = fs::remove_file(item.path());
        }
    }
}

/// Removes a file or a link; does nothing if it does not exist.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
        _ => Ok(()),
    }
}

/// Lists the regular files of a folder; empty if it does not exist.
pub(crate) fn files(folder: &Path) -> Result<Vec<std::path::PathBuf>, Error> {
    if !check_folder(folder)? {
        return Ok(Vec::new());
    }
    let listed = folder.read_dir().map_err(Error::io("list", folder))?;
    let mut files: Vec<_> = listed
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    Ok(files)
}

/// Removes a folder if it is empty.
pub(crate) fn remove_empty(folder: &Path) {
    let _ = fs::remove_dir(folder);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn only_small_regular_files_of_the_users_own_are_read() {
        let top = tempfile::tempdir().unwrap();
        let path = |name: &str| top.path().join(name);
        for name in ["file", "open", "theirs"] {
            replace(&path(name), b"text").unwrap();
        }
        fs::write(path("large"), "x".repeat(100)).unwrap();
        symlink(path("file"), path("link")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(path("pipe"))
            .status();
        assert!(made.unwrap().success());
        assert_eq!(read_small(&path("file"), 10).as_deref(), Some("text"));
        assert_eq!(read(&path("file"), 10).unwrap().unwrap(), b"text");
        assert_eq!(read(&path("absent"), 10).unwrap(), None);
        for refused in ["large", "link", "pipe", "absent", "."] {
            assert_eq!(read_small(&path(refused), 10), None, "{refused}");
            assert!(refused == "absent" || read(&path(refused), 10).is_err());
        }
        assert_eq!(read_small(Path::new("/dev/zero"), 10), None);
        // Files of any owner are untrusted data; trusted files are the user's own.
        for mode in [0o620, 0o602] {
            fs::set_permissions(path("open"), fs::Permissions::from_mode(mode)).unwrap();
            assert!(read_small(&path("open"), 10).is_some() && read(&path("open"), 10).is_err());
            // However a file of the user is used, and whatever for.
            assert!(read_end(&path("open"), 10).is_err() && append(&path("open"), b"x").is_err());
            let refused = open(&path("open"), OFlags::RDWR | OFlags::CREATE).unwrap_err();
            assert!(refused.to_string().ends_with(OTHERS_WRITE), "{refused}");
            assert!(refused.hint().contains("chmod go-w "), "{}", refused.hint());
            assert_eq!(fs::read(path("open")).unwrap(), b"text");
        }
        if chown(path("theirs"), Some(64_999), None).is_ok() {
            assert!(read_small(&path("theirs"), 10).is_some());
            assert!(read(&path("theirs"), 10).is_err());
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_for_the_user_alone() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a/file");
        for replace in [replace, replace_synced] {
            replace(&path, b"one").unwrap();
            replace(&path, b"two").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"two");
            let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
            assert_eq!((mode(&path), mode(folder_of(&path))), (0o600, 0o700));
            assert_eq!(fs::read_dir(folder_of(&path)).unwrap().count(), 1);
        }
        // A link is replaced; its target is unchanged.
        let target = top.path().join("target");
        fs::write(&target, "theirs").unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&target, &path).unwrap();
        replace(&path, b"own").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
        assert_eq!(fs::read(&path).unwrap(), b"own");
    }
}
