//! Records which agent processes a run of `kd` has started, in the user's runtime folder, so that a later run can stop
//! those left by a killed one.
//!
//! Output: one file per run, `agents/<pid>-<started>.json`, accessible only to the user. Nothing below `.kd` is ever
//! read for this: a project must not name processes to be killed.

use crate::error::Error;
use crate::json;
use crate::private;
use crate::user_dirs::{UserDirs, make_private};
use kd_core::formats::{self, RUN};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of files examined.
pub const FILES_MAX: usize = 1_000;
/// Maximum number of processes recorded per run.
pub const AGENTS_MAX: usize = 256;
/// Maximum bytes read from one file.
const BYTES_MAX: u64 = 512 * 1024;

/// An agent process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its process id.
    pub pid: i32,
    /// The start time, in clock ticks since boot.
    pub started: u64,
    /// The mark in its environment, inherited by its children.
    pub mark: String,
    /// The member it answers for.
    pub seat: String,
}

/// The running processes that one run of `kd` has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The process id of the run.
    pub pid: i32,
    /// The start time, in clock ticks since boot.
    pub started: u64,
    /// The folder it was started in.
    pub folder: PathBuf,
    /// The boot id: after a reboot, the ids mean other processes.
    pub boot: String,
    /// The namespace of the process ids.
    pub namespace: String,
    /// Its agents.
    pub agents: Vec<Agent>,
}

/// Returns the boot id of this machine and the namespace of this process; empty if the system does not report them.
pub fn machine() -> (String, String) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    (
        boot.trim().to_owned(),
        namespace.to_string_lossy().into_owned(),
    )
}

/// Writes the record of a run; a run without agents has no file.
///
/// # Errors
/// [`Error::NoHome`] or [`Error::Unsafe`] if there is no folder of the user alone, else [`Error::Io`].
pub fn write(dirs: &UserDirs, run: &RunRecord) -> Result<(), Error> {
    let folder = folder(dirs)?;
    let path = folder.join(format!("{}-{}.json", run.pid, run.started));
    if run.agents.is_empty() {
        return remove(&path);
    }
    make_private(&dirs.runtime()?)?;
    let text = serde_json::to_value(run).map_err(|source| Error::Json {
        path: path.clone(),
        source,
    })?;
    private::replace(&path, json::to_text(&text).as_bytes())
}

/// Reads the records of all runs, up to [`FILES_MAX`], each with its file. Skips invalid records: a file of another
/// user, a link, a device, one that is too large or malformed.
///
/// # Errors
/// [`Error::Unsafe`] if the folder is not the user's alone, [`Error::Io`] if it cannot be read.
pub fn read_all(dirs: &UserDirs) -> Result<Vec<(PathBuf, RunRecord)>, Error> {
    let folder = folder(dirs)?;
    // A link could lead to another folder of the user.
    let is_link = fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_symlink());
    if is_link {
        let why = "it is a link";
        return Err(Error::Unsafe { path: folder, why });
    }
    if !private::check_folder(&folder)? {
        return Ok(Vec::new());
    }
    let items = fs::read_dir(&folder).map_err(Error::io("list", &folder))?;
    Ok(items
        .flatten()
        .map(|item| item.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .take(FILES_MAX)
        .filter_map(|path| Some((read(&path)?, path)))
        .map(|(run, path)| (path, run))
        .collect())
}

/// Removes the record of a run, if it exists.
///
/// # Errors
/// [`Error::Io`] if it cannot be removed.
pub fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
        _ => Ok(()),
    }
}

fn folder(dirs: &UserDirs) -> Result<PathBuf, Error> {
    Ok(dirs.runtime()?.join("agents"))
}

fn read(path: &Path) -> Option<RunRecord> {
    let bytes = private::read(path, BYTES_MAX).ok()??;
    RUN.check(formats::stated(&bytes, "version")).ok()?;
    let mut run: RunRecord = serde_json::from_slice(&bytes).ok()?;
    run.agents.truncate(AGENTS_MAX);
    Some(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn dirs(top: &Path) -> UserDirs {
        let top = top.as_os_str().to_owned();
        UserDirs::from_env(&move |name: &str| -> Option<OsString> {
            (name == "XDG_RUNTIME_DIR").then(|| top.clone())
        })
    }

    fn run(agents: usize) -> RunRecord {
        let (boot, namespace) = machine();
        let agent = |pid| Agent {
            pid,
            started: 9,
            mark: "1.2.3".into(),
            seat: "ada".into(),
        };
        RunRecord {
            pid: 77,
            started: 5,
            folder: "/w".into(),
            boot,
            namespace,
            agents: (0..agents).map(|at| agent(100 + at as i32)).collect(),
        }
    }

    #[test]
    fn a_run_is_written_read_and_forgotten_in_a_folder_of_the_user_alone() {
        let top = tempfile::tempdir().unwrap();
        let dirs = dirs(top.path());
        assert_eq!(read_all(&dirs).unwrap(), []);
        write(&dirs, &run(2)).unwrap();
        let folder = top.path().join("kd/agents");
        let file = folder.join("77-5.json");
        assert_eq!(read_all(&dirs).unwrap(), [(file.clone(), run(2))]);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        write(&dirs, &run(0)).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn only_regular_files_of_the_right_form_are_read_and_not_too_many() {
        let top = tempfile::tempdir().unwrap();
        let dirs = dirs(top.path());
        write(&dirs, &run(10_000)).unwrap();
        let folder = top.path().join("kd/agents");
        let good = fs::read(folder.join("77-5.json")).unwrap();
        assert!(good.len() as u64 > BYTES_MAX && read_all(&dirs).unwrap().is_empty());
        write(&dirs, &run(300)).unwrap();
        assert_eq!(read_all(&dirs).unwrap()[0].1.agents.len(), AGENTS_MAX);
        write(&dirs, &run(1)).unwrap();
        std::os::unix::fs::symlink(folder.join("77-5.json"), folder.join("1-1.json")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("2-2.json")).unwrap();
        for (name, text) in [
            ("3-3.json", "{"),
            ("4-4.json", "[]"),
            ("5-5.json", "{\"pid\":1}"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        let fifo = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, folder.join("6-6.json"), fifo, mode, 0).unwrap();
        assert_eq!(read_all(&dirs).unwrap().len(), 1);
        for at in 0..FILES_MAX + 500 {
            fs::copy(
                folder.join("77-5.json"),
                folder.join(format!("9{at}-1.json")),
            )
            .unwrap();
        }
        assert!(read_all(&dirs).unwrap().len() <= FILES_MAX);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(read_all(&dirs), Err(Error::Unsafe { .. })));
    }
}
