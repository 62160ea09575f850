//! Files and folders below `.kd`, reached without following a link.
//!
//! The content of `.kd` may come from a clone or an archive: a link to `~/.ssh`, a named pipe, a gigabyte of zeros.
//! [`Folder`] is a handle; everything in it is reached one name at a time and never through a link. Only regular files
//! are opened, without blocking, and read up to a [`Bound`]. This is the only module of the crate that opens, lists or
//! removes anything below `.kd`; `tests/beneath.rs` enforces that. `docs/adr/0010-beneath.md` explains the choice of
//! system calls.
//!
//! Paths without a `.kd` in them are the user's own (`~/.config/kd`): there links are followed when a file is read.

use crate::bounds::{self, Bound};
use crate::error::Error;
use crate::layout;
use rustix::fs::{self as sys, AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Mode of a new folder: only the user has access.
pub(crate) const FOLDER_MODE: Mode = Mode::RWXU;
/// Mode of a new file: only the user has access.
pub(crate) const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// The permission bits of a mode.
const RIGHTS: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

/// Maximum nesting of folders that are removed: a thread has two levels.
const DEPTH_MAX: usize = 64;
/// Maximum attempts to empty a folder while others write to it.
const REMOVALS_MAX: usize = 100;

/// Opening never blocks: a named pipe without a writer would block forever.
const FILE_FLAGS: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
const FOLDER_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// An open folder. Cheap to clone; clones share one descriptor.
#[derive(Clone, Debug)]
pub struct Folder {
    open: Arc<File>,
    path: PathBuf,
}

/// The type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, to anything or nothing.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device, or a system-specific type.
    Device,
}

impl Kind {
    /// Returns its name in error messages.
    pub fn words(self) -> &'static str {
        match self {
            Kind::File => "a file",
            Kind::Folder => "a folder",
            Kind::Link => "a link",
            Kind::Pipe => "a named pipe",
            Kind::Socket => "a socket",
            Kind::Device => "a device",
        }
    }
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            FileType::Fifo => Kind::Pipe,
            FileType::Socket => Kind::Socket,
            _ => Kind::Device,
        }
    }
}

/// Metadata of a name, read without opening it.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Its type; a link is not followed.
    pub kind: Kind,
    /// Size in bytes.
    pub bytes: u64,
    /// The modification time.
    pub modified: SystemTime,
    stat: Stat,
}

impl Look {
    fn of(stat: Stat) -> Look {
        let secs = u64::try_from(stat.st_mtime).unwrap_or(0);
        let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
        Look {
            kind: FileType::from_raw_mode(stat.st_mode).into(),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: SystemTime::UNIX_EPOCH + Duration::new(secs, nanos.min(999_999_999)),
            stat,
        }
    }

    /// Reads the metadata of an open file.
    pub(crate) fn of_file(file: &File) -> io::Result<Look> {
        Ok(Look::of(sys::fstat(file)?))
    }

    /// Returns whether both are the same file.
    pub fn is_same(&self, other: &Look) -> bool {
        self.stat.st_ino == other.stat.st_ino && self.stat.st_dev == other.stat.st_dev
    }

    /// Returns whether the file has another hard link.
    pub fn has_second_name(&self) -> bool {
        self.stat.st_nlink > 1
    }
}

/// A directory entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// The name.
    pub name: OsString,
    /// Its type; a link is not followed.
    pub kind: Kind,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// If it does not exist, is not a folder, is or lies below a link that kd does not follow, or cannot be opened.
    pub fn open(path: &Path) -> Result<Folder, Error> {
        Folder::find(path)?.ok_or_else(|| Error::io("open", path)(io::ErrorKind::NotFound.into()))
    }

    /// Opens a folder; `None` if it does not exist.
    ///
    /// # Errors
    /// If it is not a folder, is or lies below a link that kd does not follow, or cannot be opened.
    pub fn find(path: &Path) -> Result<Option<Folder>, Error> {
        let (base, below) = layout::split(path);
        let Some(base) = open_base(base)? else {
            return Ok(None);
        };
        match base.descend(below) {
            Ok(open) => Ok(Some(Folder {
                open: Arc::new(File::from(open)),
                path: path.to_path_buf(),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(base.blame(below, e)),
        }
    }

    /// Opens a folder, creating it and its missing parents.
    ///
    /// # Errors
    /// Those of [`Folder::find`]; also if a folder cannot be created.
    pub fn make(path: &Path) -> Result<Folder, Error> {
        if let Some(folder) = Folder::find(path)? {
            return Ok(folder);
        }
        let (base, below) = layout::split(path);
        fs::create_dir_all(base).map_err(Error::io("create", base))?;
        let mut folder = Folder::open(base)?;
        for part in below.components() {
            folder = folder.make_folder(part.as_os_str())?;
        }
        Ok(folder)
    }

    /// Opens the folder of a file; also returns the file's name.
    ///
    /// # Errors
    /// Those of [`Folder::open`]; also if the path has no file name.
    pub fn of_file(file: &Path) -> Result<(Folder, &OsStr), Error> {
        let (folder, name) = parts(file)?;
        Ok((Folder::open(folder)?, name))
    }

    /// Returns its path when it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a subfolder; `None` if it does not exist.
    ///
    /// # Errors
    /// If it is a link or not a folder, or cannot be opened.
    pub fn folder(&self, name: impl AsRef<OsStr>) -> Result<Option<Folder>, Error> {
        let name = name.as_ref();
        match single(name).and_then(|()| sys::openat(self, name, FOLDER_FLAGS, Mode::empty())) {
            Ok(open) => Ok(Some(Folder {
                open: Arc::new(File::from(open)),
                path: self.path.join(name),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(self.refuse("open", name, e, Kind::Folder)),
        }
    }

    /// Opens a subfolder, creating it if it is missing.
    ///
    /// # Errors
    /// Those of [`Folder::folder`]; also if it cannot be created.
    pub fn make_folder(&self, name: impl AsRef<OsStr>) -> Result<Folder, Error> {
        let name = name.as_ref();
        self.create_folder(name)?;
        self.folder(name)?
            .ok_or_else(|| Error::io("open", &self.path.join(name))(io::ErrorKind::NotFound.into()))
    }

    /// Creates a subfolder; returns false if the name is taken.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create_folder(&self, name: impl AsRef<OsStr>) -> Result<bool, Error> {
        let name = name.as_ref();
        match single(name).and_then(|()| sys::mkdirat(self, name, FOLDER_MODE)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(e) => Err(Error::io("create", &self.path.join(name))(e.into())),
        }
    }

    /// Lists its entries, in no order.
    ///
    /// # Errors
    /// If the folder cannot be listed, or holds too many entries.
    pub fn items(&self) -> Result<Vec<Item>, Error> {
        let failed = |e: Errno| Error::io("list", &self.path)(e.into());
        let mut items = Vec::new();
        for entry in sys::Dir::read_from(self).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if items.len() == bounds::NAMES {
                return Err(Error::TooMany {
                    path: self.path.clone(),
                    most: bounds::NAMES,
                });
            }
            let name = OsString::from_vec(name.to_vec());
            let kind = match entry.file_type() {
                // Some file systems do not report the type.
                FileType::Unknown => match self.look(&name)? {
                    Some(look) => look.kind,
                    None => continue,
                },
                kind => kind.into(),
            };
            items.push(Item { name, kind });
        }
        Ok(items)
    }

    /// Reads the metadata of a name; `None` if it does not exist.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub fn look(&self, name: impl AsRef<OsStr>) -> Result<Option<Look>, Error> {
        let name = name.as_ref();
        match single(name).and_then(|()| sys::statat(self, name, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(stat) => Ok(Some(Look::of(stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(Error::io("look at", &self.path.join(name))(e.into())),
        }
    }

    /// Returns whether a name exists, whatever it is.
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        let name = name.as_ref();
        single(name).is_ok() && sys::statat(self, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Opens a file for reading; `None` if it does not exist.
    ///
    /// # Errors
    /// If it is a link or not a regular file, or cannot be opened.
    pub fn file(&self, name: impl AsRef<OsStr>) -> Result<Option<File>, Error> {
        let name = name.as_ref();
        Ok(self
            .open_file("open", name, OFlags::RDONLY)?
            .map(|(file, _)| file))
    }

    /// Reads a whole file; `None` if it does not exist.
    ///
    /// # Errors
    /// Those of [`Folder::file`]; also if the file exceeds the bound or cannot be read.
    pub fn read(&self, name: impl AsRef<OsStr>, bound: Bound) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.read_timed(name, bound)?.map(|(bytes, _)| bytes))
    }

    /// Reads a whole file and its modification time; `None` if it does not exist.
    ///
    /// # Errors
    /// Those of [`Folder::read`].
    pub fn read_timed(
        &self,
        name: impl AsRef<OsStr>,
        bound: Bound,
    ) -> Result<Option<(Vec<u8>, SystemTime)>, Error> {
        let name = name.as_ref();
        let Some((file, look)) = self.open_file("read", name, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let bytes = read_all(file, look.bytes, &self.path.join(name), bound)?;
        Ok(Some((bytes, look.modified)))
    }

    /// Reads the end of a file, as much as the bound allows; `None` if it does not exist. Also returns whether earlier
    /// content was left out.
    ///
    /// # Errors
    /// Those of [`Folder::file`]; also if the file cannot be read.
    pub fn read_end(
        &self,
        name: impl AsRef<OsStr>,
        bound: Bound,
    ) -> Result<Option<(Vec<u8>, bool)>, Error> {
        let name = name.as_ref();
        let Some((mut file, look)) = self.open_file("read", name, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let failed = |e| Error::io("read", &self.path.join(name))(e);
        let start = look.bytes.saturating_sub(bound.bytes);
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(bound.bytes)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        Ok(Some((bytes, start > 0)))
    }

    /// Opens a file for appending and reading. If it is missing, creates it if `create` is set, and otherwise returns
    /// `None`.
    ///
    /// # Errors
    /// Those of [`Folder::file`]; also if the file cannot be created or has a second hard link.
    pub fn append(&self, name: impl AsRef<OsStr>, create: bool) -> Result<Option<File>, Error> {
        let flags = match create {
            true => OFlags::RDWR | OFlags::APPEND | OFlags::CREATE,
            false => OFlags::RDWR | OFlags::APPEND,
        };
        self.open_to_change(name.as_ref(), flags)
    }

    /// Opens a file for changes in place; `None` if it does not exist.
    ///
    /// # Errors
    /// Those of [`Folder::file`]; also if the file has a second hard link.
    pub fn change(&self, name: impl AsRef<OsStr>) -> Result<Option<File>, Error> {
        self.open_to_change(name.as_ref(), OFlags::RDWR)
    }

    /// Opens a file for appending that was just linked to this name, and so may have another.
    pub(crate) fn append_linked(&self, name: &str) -> Result<Option<File>, Error> {
        let flags = OFlags::WRONLY | OFlags::APPEND;
        Ok(self
            .open_file("open", name.as_ref(), flags)?
            .map(|(file, _)| file))
    }

    /// Opens a file for locking, creating it if it is missing; also returns its metadata, to tell whether it may be
    /// written.
    pub(crate) fn lock_file(&self, name: &OsStr) -> Result<(File, Look), Error> {
        let flags = OFlags::RDWR | OFlags::CREATE;
        self.open_file("open the lock", name, flags)?
            .ok_or_else(|| self.gone("open the lock", name))
    }

    /// Creates a file; `None` if the name is taken.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(&self, name: impl AsRef<OsStr>) -> Result<Option<File>, Error> {
        let name = name.as_ref();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | FILE_FLAGS;
        match single(name).and_then(|()| sys::openat(self, name, flags, FILE_MODE)) {
            Ok(open) => Ok(Some(File::from(open))),
            Err(Errno::EXIST) => Ok(None),
            Err(e) => Err(Error::io("create", &self.path.join(name))(e.into())),
        }
    }

    /// Replaces a file's content through a temporary file beside it, so readers see either the old text or the new one.
    /// A link of that name is replaced itself.
    ///
    /// # Errors
    /// If the new content cannot be written or moved into place. The old content stays then.
    pub fn replace(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> Result<(), Error> {
        self.put(name.as_ref(), bytes, None)
    }

    /// Like [`Folder::replace`]; the new file keeps the permissions of the old one.
    pub(crate) fn replace_with_rights(&self, name: &OsStr, bytes: &[u8]) -> Result<(), Error> {
        let old = self.look(name)?.filter(|look| look.kind == Kind::File);
        let rights = old.map(|look| Mode::from_raw_mode(look.stat.st_mode) & RIGHTS);
        self.put(name, bytes, rights)
    }

    fn put(&self, name: &OsStr, bytes: &[u8], rights: Option<Mode>) -> Result<(), Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let stem = Path::new(name).file_stem().unwrap_or_default();
        let (mut file, temp) = loop {
            let temp = format!(
                ".{}.{}.{}.json",
                stem.to_string_lossy(),
                std::process::id(),
                COUNT.fetch_add(1, Ordering::Relaxed)
            );
            // If the file exists, a dead process with the same id left it.
            if let Some(file) = self.create(&temp)? {
                break (file, temp);
            }
        };
        let given = rights.map_or(Ok(()), |rights| Ok(sys::fchmod(&file, rights)?));
        let done = given
            .and_then(|()| file.write_all(bytes))
            .map_err(Error::io("write", &self.path.join(&temp)))
            .and_then(|()| {
                single(name)
                    .and_then(|()| sys::renameat(self, &temp, self, name))
                    .map_err(|e| Error::io("replace", &self.path.join(name))(e.into()))
            });
        if done.is_err() {
            let _ = sys::unlinkat(self, &temp, AtFlags::empty());
        }
        done
    }

    /// Removes a regular file; returns false if it does not exist. Removes nothing else.
    ///
    /// # Errors
    /// If it is not a regular file, or cannot be removed.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> Result<bool, Error> {
        let name = name.as_ref();
        match self.look(name)?.map(|look| look.kind) {
            None => return Ok(false),
            Some(Kind::File) => {}
            Some(kind) => return Err(wrong_kind(self.path.join(name), kind, Kind::File)),
        }
        match sys::unlinkat(self, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(Error::io("remove", &self.path.join(name))(e.into())),
        }
    }

    /// Removes a folder that was just created, with its files and empty folders.
    pub(crate) fn discard(&self, name: impl AsRef<OsStr>) -> Result<(), Error> {
        let name = name.as_ref();
        let failed = |e: Errno| Error::io("remove", &self.path.join(name))(e.into());
        if let Some(folder) = self.folder(name)? {
            for item in folder.items()? {
                let flags = match item.kind {
                    Kind::Folder => AtFlags::REMOVEDIR,
                    _ => AtFlags::empty(),
                };
                sys::unlinkat(&folder, &item.name, flags).map_err(failed)?;
            }
        }
        sys::unlinkat(self, name, AtFlags::REMOVEDIR).map_err(failed)
    }

    /// Removes a file, link or folder with all its content; never follows a link. Files that appear meanwhile are
    /// removed too. Does nothing if the name does not exist.
    pub(crate) fn remove_all(&self, name: impl AsRef<OsStr>) -> Result<(), Error> {
        self.remove_tree(name.as_ref(), 0)
    }

    fn remove_tree(&self, name: &OsStr, depth: usize) -> Result<(), Error> {
        let failed = |e: Errno| Error::io("remove", &self.path.join(name))(e.into());
        if depth > DEPTH_MAX {
            return Err(failed(Errno::LOOP));
        }
        for _ in 0..REMOVALS_MAX {
            let flags = match self.look(name)?.map(|look| look.kind) {
                None => return Ok(()),
                Some(Kind::Folder) => {
                    if let Some(folder) = self.folder(name)? {
                        for item in folder.items()? {
                            folder.remove_tree(&item.name, depth + 1)?;
                        }
                    }
                    AtFlags::REMOVEDIR
                }
                Some(_) => AtFlags::empty(),
            };
            match single(name).and_then(|()| sys::unlinkat(self, name, flags)) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // Another process wrote into it, or put something else in its place.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR) => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Err(failed(Errno::NOTEMPTY))
    }

    /// Gives a complete file a second name; fails if that is taken. On file systems without hard links, renames it.
    pub(crate) fn publish(&self, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
        single(name)?;
        single(new)?;
        match sys::linkat(self, name, to, new, AtFlags::empty()) {
            // FAT and some network file systems have a rename that replaces nothing.
            Err(e @ (Errno::PERM | Errno::ACCESS | Errno::NOTSUP | Errno::NOSYS)) => {
                sys::renameat_with(self, name, to, new, RenameFlags::NOREPLACE).map_err(|_| e)?;
                Ok(())
            }
            done => Ok(done?),
        }
    }

    /// Moves a file, folder or link to a free name; returns false if that is taken.
    ///
    /// # Errors
    /// If it does not exist or cannot be moved.
    pub fn move_to(&self, name: &OsStr, to: &Folder, new: &OsStr) -> Result<bool, Error> {
        let moved = single(name)
            .and_then(|()| single(new))
            .and_then(|()| sys::renameat_with(self, name, to, new, RenameFlags::NOREPLACE))
            .or_else(|e| match e {
                // The file system does not support this rename.
                Errno::INVAL | Errno::NOSYS | Errno::NOTSUP if to.has(new) => Err(Errno::EXIST),
                Errno::INVAL | Errno::NOSYS | Errno::NOTSUP => sys::renameat(self, name, to, new),
                e => Err(e),
            });
        match moved {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(e) => Err(Error::io("move", &self.path.join(name))(e.into())),
        }
    }

    /// Renames a file over another in this folder.
    pub(crate) fn rename_from(&self, from: &Folder, name: &str, new: &str) -> io::Result<()> {
        single(name.as_ref())?;
        single(new.as_ref())?;
        Ok(sys::renameat(from, name, self, new)?)
    }

    /// Returns the open folder itself: for its times, its locks and syncing.
    pub(crate) fn as_file(&self) -> &File {
        &self.open
    }

    fn open_to_change(&self, name: &OsStr, flags: OFlags) -> Result<Option<File>, Error> {
        match self.open_file("open", name, flags)? {
            Some((_, look)) if look.has_second_name() => Err(Error::SecondName {
                path: self.path.join(name),
            }),
            found => Ok(found.map(|(file, _)| file)),
        }
    }

    fn open_file(
        &self,
        action: &'static str,
        name: &OsStr,
        flags: OFlags,
    ) -> Result<Option<(File, Look)>, Error> {
        let opened = single(name)
            .and_then(|()| sys::openat(self, name, flags | FILE_FLAGS, FILE_MODE))
            .and_then(|open| Ok((Look::of(sys::fstat(&open)?), open)));
        match opened {
            Ok((look, open)) if look.kind == Kind::File => Ok(Some((File::from(open), look))),
            Ok((look, _)) => Err(wrong_kind(self.path.join(name), look.kind, Kind::File)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(self.refuse(action, name, e, Kind::File)),
        }
    }

    /// Explains why a name could not be opened, naming its actual type if that is the cause.
    fn refuse(&self, action: &'static str, name: &OsStr, e: Errno, wanted: Kind) -> Error {
        let path = self.path.join(name);
        match self.look(name) {
            Ok(Some(look)) if look.kind != wanted => wrong_kind(path, look.kind, wanted),
            _ => Error::io(action, &path)(e.into()),
        }
    }

    fn gone(&self, action: &'static str, name: &OsStr) -> Error {
        Error::io(action, &self.path.join(name))(io::ErrorKind::NotFound.into())
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.open.as_fd()
    }
}

/// Returns whether a path is below a `.kd`, where links are not followed.
pub fn is_below_kd(path: &Path) -> bool {
    layout::is_ours(path)
}

/// Reads a file; `None` if it does not exist.
///
/// # Errors
/// If it is not a regular file, exceeds the bound or cannot be read; below `.kd` also if it is or lies below a link.
pub fn read(path: &Path, bound: Bound) -> Result<Option<Vec<u8>>, Error> {
    if layout::is_ours(path) {
        let (folder, name) = parts(path)?;
        return match Folder::find(folder)? {
            Some(folder) => folder.read(name, bound),
            None => Ok(None),
        };
    }
    // The user's own file may be a link, for example into a folder of dotfiles.
    let flags = OFlags::RDONLY | (FILE_FLAGS - OFlags::NOFOLLOW);
    let opened = sys::open(path, flags, Mode::empty())
        .and_then(|open| Ok((Look::of(sys::fstat(&open)?), open)));
    match opened {
        Ok((look, open)) if look.kind == Kind::File => {
            read_all(File::from(open), look.bytes, path, bound).map(Some)
        }
        Ok((look, _)) => Err(wrong_kind(path.to_path_buf(), look.kind, Kind::File)),
        // A path through a file does not exist either.
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(e) => Err(Error::io("read", path)(e.into())),
    }
}

/// Reads a text file; `None` if it does not exist.
///
/// # Errors
/// Those of [`read`]; also if the file is not UTF-8.
pub fn read_text(path: &Path, bound: Bound) -> Result<Option<String>, Error> {
    let text = |bytes| {
        String::from_utf8(bytes)
            .map_err(|e| Error::io("read", path)(io::Error::new(io::ErrorKind::InvalidData, e)))
    };
    read(path, bound)?.map(text).transpose()
}

/// Reads the end of a file below `.kd`; empty if it does not exist. Also returns whether earlier content was left out.
///
/// # Errors
/// If it is or lies below a link, is not a regular file, or cannot be read.
pub fn read_end(path: &Path, bound: Bound) -> Result<(Vec<u8>, bool), Error> {
    let (folder, name) = parts(path)?;
    let read = match Folder::find(folder)? {
        Some(folder) => folder.read_end(name, bound)?,
        None => None,
    };
    Ok(read.unwrap_or_default())
}

/// Opens a file for appending, creating it and its folder if they are missing.
///
/// # Errors
/// If it is or lies below a link, is not a regular file, has a second hard link, or cannot be opened or created.
pub fn append(path: &Path) -> Result<File, Error> {
    let (folder, name) = parts(path)?;
    let folder = Folder::make(folder)?;
    folder
        .append(name, true)?
        .ok_or_else(|| folder.gone("open", name))
}

/// Replaces a file's content atomically, creating its folder if it is missing.
///
/// # Errors
/// If the folder or the new content cannot be written. The old content stays then.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let (folder, name) = parts(path)?;
    Folder::make(folder)?.replace(name, bytes)
}

/// Creates a file with this content, and its folder if it is missing; returns false if the name is taken.
///
/// # Errors
/// If the folder or the file cannot be created or written.
pub fn create(path: &Path, bytes: &[u8]) -> Result<bool, Error> {
    let (folder, name) = parts(path)?;
    match Folder::make(folder)?.create(name)? {
        Some(mut file) => file
            .write_all(bytes)
            .map(|()| true)
            .map_err(Error::io("write", path)),
        None => Ok(false),
    }
}

/// Removes a regular file; returns false if it does not exist.
///
/// # Errors
/// If it is not a regular file, or cannot be removed.
pub fn remove(path: &Path) -> Result<bool, Error> {
    let (folder, name) = parts(path)?;
    match Folder::find(folder)? {
        Some(folder) => folder.remove(name),
        None => Ok(false),
    }
}

/// Allows a `.kd` to be a link, because the user named it in `KD_BASE`.
pub(crate) fn allow_linked_base(kd: &Path) {
    let mut allowed = LINKED_BASES.lock().unwrap_or_else(PoisonError::into_inner);
    allowed.insert(kd.to_path_buf());
}

static LINKED_BASES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The open folder where links stop being followed.
struct Base {
    open: OwnedFd,
    path: PathBuf,
}

/// Opens the `.kd` in a path, or the folder itself if there is none; `None` if it does not exist.
fn open_base(path: &Path) -> Result<Option<Base>, Error> {
    let named = match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    };
    let allowed = || {
        let allowed = LINKED_BASES.lock().unwrap_or_else(PoisonError::into_inner);
        allowed.contains(path)
    };
    let flags = match layout::is_base(path) {
        true => FOLDER_FLAGS,
        false => FOLDER_FLAGS - OFlags::NOFOLLOW,
    };
    let is_link = || {
        let look = sys::statat(CWD, named, AtFlags::SYMLINK_NOFOLLOW);
        look.is_ok_and(|stat| Look::of(stat).kind == Kind::Link)
    };
    let opened = match sys::open(named, flags, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) if layout::is_base(path) && is_link() => {
            if !allowed() {
                return Err(Error::Link {
                    path: path.to_path_buf(),
                });
            }
            sys::open(named, FOLDER_FLAGS - OFlags::NOFOLLOW, Mode::empty())
        }
        opened => opened,
    };
    match opened {
        Ok(open) => Ok(Some(Base {
            open,
            path: path.to_path_buf(),
        })),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(Error::io("open", path)(e.into())),
    }
}

impl Base {
    /// Opens a folder below, without following links.
    fn descend(&self, below: &Path) -> rustix::io::Result<OwnedFd> {
        if below.as_os_str().is_empty() {
            return rustix::io::fcntl_dupfd_cloexec(&self.open, 0);
        }
        if !below
            .components()
            .all(|c| matches!(c, Component::Normal(_)))
        {
            return Err(Errno::XDEV);
        }
        in_one_call(&self.open, below).unwrap_or_else(|| one_by_one(&self.open, below))
    }

    /// Explains why a folder below could not be opened: which part of the path is not a folder.
    fn blame(&self, below: &Path, e: Errno) -> Error {
        let mut path = self.path.clone();
        let mut so_far = PathBuf::new();
        for part in below.components() {
            path.push(part);
            so_far.push(part);
            let stat = sys::statat(&self.open, &so_far, AtFlags::SYMLINK_NOFOLLOW);
            match stat.map(|stat| Look::of(stat).kind) {
                Ok(Kind::Folder) => {}
                Ok(kind) => return wrong_kind(path, kind, Kind::Folder),
                Err(_) => break,
            }
        }
        Error::io("open", &self.path.join(below))(e.into())
    }
}

/// Whether this kernel, or our sandbox, lacks `openat2`.
static NO_OPENAT2: AtomicBool = AtomicBool::new(false);

#[cfg(target_os = "linux")]
fn in_one_call(base: &OwnedFd, below: &Path) -> Option<rustix::io::Result<OwnedFd>> {
    use rustix::fs::ResolveFlags;
    if NO_OPENAT2.load(Ordering::Relaxed) {
        return None;
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match sys::openat2(base, below, FOLDER_FLAGS, Mode::empty(), resolve) {
        // Before Linux 5.6; older container sandboxes report a permission error.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {
            NO_OPENAT2.store(true, Ordering::Relaxed);
            None
        }
        // Something was renamed meanwhile.
        Err(Errno::AGAIN) => None,
        done => Some(done),
    }
}

#[cfg(not(target_os = "linux"))]
fn in_one_call(_: &OwnedFd, _: &Path) -> Option<rustix::io::Result<OwnedFd>> {
    None
}

/// Opens the folder with one call per path component.
fn one_by_one(base: &OwnedFd, below: &Path) -> rustix::io::Result<OwnedFd> {
    let mut open: Option<OwnedFd> = None;
    for part in below.components() {
        let at = open.as_ref().unwrap_or(base);
        open = Some(sys::openat(
            at,
            part.as_os_str(),
            FOLDER_FLAGS,
            Mode::empty(),
        )?);
    }
    open.ok_or(Errno::NOENT)
}

/// Splits a path into its folder and its last name.
fn parts(path: &Path) -> Result<(&Path, &OsStr), Error> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok((folder, name)),
        _ => Err(Error::io("open", path)(io::ErrorKind::InvalidInput.into())),
    }
}

/// Rejects everything except a single plain name.
fn single(name: &OsStr) -> rustix::io::Result<()> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(()),
        _ => Err(Errno::XDEV),
    }
}

/// Returns the error for a file of another kind than wanted.
pub fn wrong_kind(path: PathBuf, kind: Kind, wanted: Kind) -> Error {
    match kind {
        Kind::Link => Error::Link { path },
        kind => Error::WrongKind {
            path,
            kind: kind.words(),
            wanted: match wanted {
                Kind::Folder => "a folder",
                _ => "a regular file",
            },
        },
    }
}

fn read_all(file: File, len: u64, path: &Path, bound: Bound) -> Result<Vec<u8>, Error> {
    let too_large = |bytes| Error::TooLarge {
        path: path.to_path_buf(),
        bytes,
        bound,
    };
    if len > bound.bytes {
        return Err(too_large(len));
    }
    let mut bytes = Vec::with_capacity(len as usize + 1);
    // It may grow meanwhile.
    file.take(bound.bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(Error::io("read", path))?;
    match bytes.len() as u64 {
        read if read > bound.bytes => Err(too_large(read)),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Creates a `.kd` with nested folders and links of every kind.
    fn stage() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let kd = dir.path().join(".kd");
        fs::create_dir_all(kd.join("a/b")).unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        fs::write(kd.join("file"), "text").unwrap();
        symlink("../outside", kd.join("out")).unwrap();
        symlink("a", kd.join("in")).unwrap();
        symlink("nowhere", kd.join("dangling")).unwrap();
        symlink("loop", kd.join("loop")).unwrap();
        symlink("/proc/self/cwd", kd.join("magic")).unwrap();
        (dir, kd)
    }

    #[test]
    fn one_call_and_many_open_the_same_folders() {
        let (_dir, kd) = stage();
        let base = sys::open(&kd, FOLDER_FLAGS, Mode::empty()).unwrap();
        for (below, opens) in [
            ("a", true),
            ("a/b", true),
            ("a/c", false),
            ("file", false),
            ("file/b", false),
            ("out", false),
            ("in", false),
            ("in/b", false),
            ("dangling", false),
            ("dangling/b", false),
            ("loop/b", false),
            ("magic", false),
            ("magic/b", false),
        ] {
            let many = one_by_one(&base, Path::new(below));
            assert_eq!(many.is_ok(), opens, "{below}: {many:?}");
            let missing = |e: &Errno| *e == Errno::NOENT;
            if let Some(one) = in_one_call(&base, Path::new(below)) {
                assert_eq!(one.is_ok(), opens, "{below}: {one:?}");
                // A missing name is not an error; a link is.
                let both = (one.as_ref().err(), many.as_ref().err());
                assert_eq!(
                    both.0.is_some_and(missing),
                    both.1.is_some_and(missing),
                    "{below}"
                );
            }
        }
    }

    #[test]
    fn errors_name_the_link_and_say_what_to_do() {
        let (dir, kd) = stage();
        for (path, link) in [("in/b", "in"), ("out", "out"), ("dangling/x", "dangling")] {
            let error = Folder::open(&kd.join(path)).unwrap_err();
            assert!(
                matches!(&error, Error::Link { path } if *path == kd.join(link)),
                "{error}"
            );
            assert!(
                error
                    .to_string()
                    .ends_with("is a link; kd does not follow links below `.kd`")
            );
            assert!(
                error.hint().contains("kd fsck --repair"),
                "{}",
                error.hint()
            );
        }
        let error = read(&kd.join("loop"), bounds::STATE).unwrap_err();
        assert!(matches!(error, Error::Link { .. }), "{error}");
        let error = read(&kd.join("a"), bounds::STATE).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("is a folder, not a regular file")
        );
        let small = Bound {
            bytes: 3,
            ..bounds::LOCK
        };
        let error = read(&kd.join("file"), small).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("has 4 bytes; a lock has at most 3 bytes"),
            "{error}"
        );
        // `.kd` itself may be a link if the user named it.
        let linked = dir.path().join("linked");
        fs::create_dir(&linked).unwrap();
        symlink(&kd, linked.join(".kd")).unwrap();
        let error = Folder::open(&linked.join(".kd/a")).unwrap_err();
        assert!(error.hint().contains("KD_BASE"), "{}", error.hint());
        allow_linked_base(&linked.join(".kd"));
        Folder::open(&linked.join(".kd/a")).unwrap();
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let (_dir, kd) = stage();
        let folder = Folder::open(&kd).unwrap();
        for name in ["..", ".", "", "a/b", "/etc", "a/../file", "a/"] {
            assert!(folder.file(name).is_err(), "{name}");
            assert!(folder.create(name).is_err(), "{name}");
            assert!(folder.folder(name).is_err(), "{name}");
            assert!(folder.remove(name).is_err(), "{name}");
            assert!(folder.replace(name, b"x").is_err(), "{name}");
            assert!(!folder.has(name), "{name}");
        }
        for path in ["a/../../outside", "../outside", "a/.."] {
            assert!(Folder::find(&kd.join(path)).is_err(), "{path}");
        }
        assert_eq!(fs::read(kd.join("file")).unwrap(), b"text");
    }

    #[test]
    fn files_are_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, kd) = stage();
        replace(&kd.join("new/deep/file.json"), b"{}").unwrap();
        let mode = |path: &str| fs::metadata(kd.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("new"), mode("new/deep")), (0o700, 0o700));
        assert_eq!(mode("new/deep/file.json"), 0o600);
    }
}
