//! Writes a result to a file: completely, or not at all.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_store::beneath;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// Writes a file atomically: readers see the old or the new one. Devices such as `/dev/stdout` are written to. A link
/// is replaced instead of followed, as it may have come with the folder. So may a folder on the path: see [`place`].
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, bytes: &[u8], env: &Env) -> Result<(), UserError> {
    write_with(path, env, |out| Ok(out.write_all(bytes)?))
}

/// Like [`write()`], for output written in pieces.
///
/// # Errors
/// If it cannot be written.
pub fn write_with<E: From<UserError> + From<std::io::Error>>(
    path: &Path,
    env: &Env,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    // The default permissions of a new file, before the umask.
    write_as(path, 0o666, env, write)
}

/// Like [`write()`], for a file that only the user may read.
///
/// # Errors
/// If it cannot be written.
pub fn write_private(path: &Path, bytes: &[u8], env: &Env) -> Result<(), UserError> {
    write_as(path, 0o600, env, |out| Ok(out.write_all(bytes)?))
}

fn write_as<E: From<UserError> + From<std::io::Error>>(
    path: &Path,
    mode: u32,
    env: &Env,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |e: std::io::Error| {
        UserError::new(
            ErrorKind::Output,
            format!("{} could not be written", path.display()),
        )
        .next(match e.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                "free space there, or give -o a name on another disk"
            }
            _ => "give -o a name in a folder that exists and can be written",
        })
        .because(e)
    };
    // Below `.kd` no link is allowed at all.
    let here = env.folder().ok();
    let whole = here.map_or_else(|| path.to_path_buf(), |here| here.join(path));
    if beneath::is_below_kd(&whole) {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        return Ok(beneath::replace(&whole, &bytes).map_err(UserError::from)?);
    }
    let (folder, name) = place(&whole, here).map_err(|fault| match fault {
        Fault::Io(e) => failed(e),
        Fault::Link(link, to) => UserError::new(
            ErrorKind::Output,
            format!("{} is a link of this folder", link.display()),
        )
        .because(format!(
            "it points to {}, and the folder may have been made by someone else",
            to.display()
        ))
        .next("to write there, give the path that the link points to"),
    })?;
    if is_of_kernel(&folder) {
        let target = folder.join(name);
        let file = std::fs::OpenOptions::new().append(true).open(target);
        return noting(file.map_err(failed)?, failed, write);
    }
    let target = folder.join(name);
    let old = target.symlink_metadata().map(|meta| meta.file_type());
    if old.is_ok_and(|kind| !kind.is_file() && !kind.is_symlink()) {
        let cause = std::io::Error::other("it exists and is not a regular file");
        return Err(failed(cause)
            .next("remove it, or give -o another name")
            .into());
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".kd-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    let mut file = builder.tempfile_in(&folder).map_err(failed)?;
    let out = std::io::BufWriter::new(file.as_file_mut());
    noting(out, failed, write)?;
    file.persist(&target).map_err(|e| failed(e.error))?;
    Ok(())
}

/// Lets a callback write. It does not know the file, so the error of writing is made here; that nobody reads any more is
/// no error of the file.
fn noting<E: From<UserError> + From<std::io::Error>>(
    out: impl Write,
    failed: impl Fn(std::io::Error) -> UserError,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut out = Noting { out, fault: None };
    let mut written = write(&mut out);
    if written.is_ok() {
        written = out.flush().map_err(E::from);
    }
    let is_closed = |fault: &std::io::Error| fault.kind() == std::io::ErrorKind::BrokenPipe;
    match (written, out.fault.take()) {
        (Err(_), Some(fault)) if !is_closed(&fault) => Err(failed(fault).into()),
        (written, _) => written,
    }
}

/// A writer that keeps the error of its file.
struct Noting<W> {
    out: W,
    fault: Option<std::io::Error>,
}

impl<W: Write> Noting<W> {
    fn note<T>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        done.inspect_err(|error| {
            self.fault = Some(match error.raw_os_error() {
                Some(code) => std::io::Error::from_raw_os_error(code),
                None => std::io::Error::new(error.kind(), error.to_string()),
            });
        })
    }
}

impl<W: Write> Write for Noting<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let done = self.out.write(bytes);
        self.note(done)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let done = self.out.flush();
        self.note(done)
    }
}

/// Opens a file that [`write_with`] has written, to append to it. A link is not followed.
///
/// # Errors
/// If it cannot be opened.
pub fn open_to_append(path: &Path) -> std::io::Result<std::fs::File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Fails if a file could not be written there: checked before any member is asked.
///
/// # Errors
/// If it could not.
pub fn check(path: Option<&Path>, env: &Env) -> Result<(), UserError> {
    let Some(path) = path else {
        return Ok(());
    };
    let here = env.folder().ok();
    let whole = here.map_or_else(|| path.to_path_buf(), |here| here.join(path));
    let folder = whole.parent().unwrap_or(&whole);
    let failed = |cause: std::io::Error| {
        UserError::new(
            ErrorKind::Output,
            format!("{} could not be written", path.display()),
        )
        .because(cause)
        .next("give -o a name in a folder that exists and can be written; no member was asked")
    };
    if whole.is_dir() {
        return Err(failed(std::io::Error::other("it is a folder")));
    }
    if is_of_kernel(folder) || beneath::is_below_kd(&whole) {
        return Ok(());
    }
    match folder.metadata() {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err(failed(std::io::Error::other("its folder is a file"))),
        Err(error) => return Err(failed(error)),
    }
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).map_err(|e| failed(e.into()))
}

/// The reason why a path cannot be written to.
enum Fault {
    Io(std::io::Error),
    /// A link in the path, and its target.
    Link(PathBuf, PathBuf),
}

/// Returns the real folder of an absolute path, and the name in it. Follows a link in the path if it is part of the
/// system or of the user's own tree. A link below the working folder, or in a checkout or project, may have come from
/// elsewhere, and is a fault.
fn place<'p>(path: &'p Path, here: Option<&Path>) -> Result<(PathBuf, &'p OsStr), Fault> {
    let is_no_name = || Fault::Io(std::io::Error::other("it names a folder"));
    let name = path.file_name().ok_or_else(is_no_name)?;
    let here = here.and_then(|here| here.canonicalize().ok());
    let mut folder = PathBuf::new();
    for part in path.parent().ok_or_else(is_no_name)?.components() {
        match part {
            Component::ParentDir => drop(folder.pop()),
            Component::CurDir => {}
            part => {
                let next = folder.join(part);
                let meta = next.symlink_metadata().map_err(Fault::Io)?;
                let is_link = meta.file_type().is_symlink();
                if is_link && may_be_foreign(&folder, here.as_deref()) {
                    let to = next.canonicalize().or_else(|_| next.read_link());
                    return Err(Fault::Link(next, to.unwrap_or_default()));
                }
                folder = match is_link {
                    true => next.canonicalize().map_err(Fault::Io)?,
                    false => next,
                };
            }
        }
    }
    Ok((folder, name))
}

/// Returns whether the links in a folder may have been made by someone else.
fn may_be_foreign(folder: &Path, here: Option<&Path>) -> bool {
    // An empty folder of that name means nothing: killed agent programs leave some behind, in `/tmp` too.
    let is_empty = |at: &Path| std::fs::read_dir(at).is_ok_and(|mut files| files.next().is_none());
    let is_tree = |up: &Path| {
        let marks = [".git", ".kd"].map(|name| up.join(name));
        let mut there = marks.iter().filter(|at| at.symlink_metadata().is_ok());
        there.any(|at| !is_empty(at))
    };
    here.is_none_or(|here| folder.starts_with(here)) || folder.ancestors().any(is_tree)
}

/// Returns whether a folder contains the kernel's paths of devices and open files.
pub fn is_of_kernel(folder: &Path) -> bool {
    let parts: Vec<&OsStr> = folder.iter().skip(1).collect();
    let parts: Option<Vec<&str>> = parts.into_iter().map(OsStr::to_str).collect();
    matches!(
        parts.as_deref(),
        Some(["dev"] | ["dev", "pts"] | ["proc", _, "fd"] | ["proc", _, "task", _, "fd"])
    )
}

/// Returns the ending of a file name in small letters. A number, as in `v1.5`, is none.
pub fn ending(path: &Path) -> Option<String> {
    let end = path.extension()?.to_str()?.to_ascii_lowercase();
    let is_word = end.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_word && end.chars().all(|c| c.is_ascii_alphanumeric())).then_some(end)
}

/// Endings of the formats that people expect of a name.
const ENDINGS: [&str; 24] = [
    "csv", "tsv", "md", "markdown", "html", "htm", "pdf", "doc", "docx", "odt", "rtf", "tex",
    "epub", "xls", "xlsx", "ods", "parquet", "sqlite", "db", "xml", "yaml", "yml", "toml", "json",
];

/// Fails if the name of a file of JSON Lines ends in another format. `before` are the words of the command before the
/// name, such as `-o`.
///
/// # Errors
/// If it does.
pub fn check_lines(path: &Path, before: &str) -> Result<(), UserError> {
    check_ending(path, before, "JSON Lines", &["jsonl", "ndjson", "json"])
}

/// Fails if a name ends in another format than the only one that is written. `before` are the words of the command before
/// the name, `format` is its name, `endings` are its own, the usual one first.
///
/// # Errors
/// If it does.
pub fn check_ending(
    path: &Path,
    before: &str,
    format: &str,
    endings: &[&str],
) -> Result<(), UserError> {
    let end = ending(path).filter(|end| ENDINGS.contains(&end.as_str()));
    let Some(end) = end.filter(|end| !endings.contains(&end.as_str())) else {
        return Ok(());
    };
    let usual = endings.first().copied().unwrap_or_default();
    let what = format!("{}: kd cannot write .{end} here", path.display());
    Err(UserError::usage(what)
        .because(format!("this command writes {format}"))
        .next(format!("{before} {}", path.with_extension(usual).display())))
}

/// Returns whether a file name asks for JSON.
pub fn is_json(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, bytes: &[u8]) -> Result<(), UserError> {
        super::write(path, bytes, &Env::process())
    }

    #[test]
    fn a_full_disk_is_told_with_the_file_and_what_to_do() {
        let error = write(Path::new("/dev/full"), b"answer").expect_err("it is full");
        assert_eq!(error.what, "/dev/full could not be written");
        let said = error.as_line();
        assert!(said.contains("No space left"), "{said}");
        assert!(said.contains("free space there"), "{said}");
        // The error of a callback that has nothing to do with the file stays.
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("out.md");
        let error = write_with(&file, &Env::process(), |_| {
            Err(UserError::usage("no answer"))
        });
        assert_eq!(error.expect_err("the callback's").what, "no answer");
        assert!(!file.exists());
    }

    #[test]
    fn no_link_that_a_folder_may_bring_is_written_through() {
        let dir = tempfile::tempdir().expect("a folder");
        let dir = dir.path().canonicalize().expect("real");
        let own = dir.join("own");
        std::fs::create_dir_all(own.join("folder")).expect("made");
        for mark in [".git", ".kd"] {
            let clone = dir.join(format!("clone{mark}"));
            std::fs::create_dir_all(clone.join("sub")).expect("made");
            std::fs::create_dir(clone.join(mark)).expect("made");
            std::fs::write(clone.join(mark).join("HEAD"), "").expect("written");
            let rc = own.join("rc");
            let link = |to: &str, at: &str| {
                std::os::unix::fs::symlink(dir.join(to), clone.join(at)).expect("linked");
            };
            link("own/rc", "out.md");
            link("own/rc", "sub/out.md");
            link("own/not there", "sub/new.md");
            link("own/folder", "folder");
            link("own/folder", "sub/folder");
            std::os::unix::fs::symlink("out.md", clone.join("chain.md")).expect("linked");
            for name in [
                "out.md",
                "sub/out.md",
                "sub/new.md",
                "chain.md",
                "sub/../out.md",
            ] {
                std::fs::write(&rc, "mine").expect("written");
                write(&clone.join(name), b"answer").expect("written");
                assert_eq!(
                    std::fs::read_to_string(&rc).expect("read"),
                    "mine",
                    "{name}"
                );
                let file = clone.join(name);
                assert!(!file.is_symlink(), "{name}");
                assert_eq!(
                    std::fs::read_to_string(file).expect("read"),
                    "answer",
                    "{name}"
                );
            }
            for name in [
                "folder/out.md",
                "sub/folder/out.md",
                "folder/../../own/out.md",
            ] {
                let error = write(&clone.join(name), b"answer").expect_err(name);
                assert!(error.what.contains("is a link"), "{name}: {}", error.what);
            }
            assert!(!own.join("not there").exists());
            assert_eq!(
                std::fs::read_dir(own.join("folder")).expect("read").count(),
                0
            );
        }
        // The user's own link in a path, and what a killed program left above it.
        for left in [".git", ".kd"] {
            std::fs::create_dir(dir.join(left)).expect("made");
        }
        std::os::unix::fs::symlink(own.join("folder"), dir.join("short")).expect("linked");
        write(&dir.join("short/out.md"), b"answer").expect("written");
        assert!(own.join("folder/out.md").exists());
        // Kernel paths are written to; a pipe or socket of the folder is not waited for.
        write(Path::new("/dev/null"), b"answer").expect("written");
        let open = tempfile::tempfile().expect("open");
        let fd = std::os::fd::AsRawFd::as_raw_fd(&open);
        write(Path::new(&format!("/dev/fd/{fd}")), b"one").expect("written");
        write(Path::new(&format!("/dev/fd/{fd}")), b" two").expect("written");
        let mut text = String::new();
        std::io::Read::read_to_string(&mut &open, &mut text).expect("read");
        assert_eq!(text, "one two");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            own.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .expect("made");
        assert!(write(&own.join("pipe"), b"answer").is_err());
        assert!(write(&own.join("folder"), b"answer").is_err());
        assert!(write(Path::new("/"), b"answer").is_err());
    }

    #[test]
    fn a_name_of_another_format_is_refused() {
        let check = |name: &str| check_lines(Path::new(name), "kd forum export");
        for name in [
            "a",
            "a.jsonl",
            "a.JSON",
            "a.out",
            "v1.5",
            "/dev/stdout",
            ".csv",
        ] {
            assert!(check(name).is_ok(), "{name}");
        }
        for name in ["a.csv", "b/a.MD", "a.json.pdf"] {
            let error = check(name).expect_err(name);
            assert_eq!(error.kind, ErrorKind::Usage);
            let next = error.next.unwrap_or_default();
            assert!(
                next.starts_with("kd forum export ") && next.ends_with(".jsonl"),
                "{next}"
            );
        }
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_below_kd_no_link_counts() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("answer.md");
        std::fs::write(&file, "old").expect("written");
        write(&file, b"new").expect("written");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "new");
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("read").count(),
            1,
            "nothing is left over"
        );
        let kd = dir.path().join(".kd");
        std::fs::create_dir(&kd).expect("made");
        std::os::unix::fs::symlink(&file, kd.join("out.md")).expect("linked");
        write(&kd.join("out.md"), b"below").expect("written");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "new");
        std::os::unix::fs::symlink(dir.path(), kd.join("logs")).expect("linked");
        let error = write(&kd.join("logs/answer.md"), b"below").expect_err("a link");
        assert!(error.what.contains("is a link"), "{}", error.what);
        std::fs::remove_dir_all(&kd).expect("removed");
        let error = write(&dir.path().join("no/such/folder.md"), b"x").expect_err("no folder");
        assert_eq!(error.kind, ErrorKind::Output);
    }
}
