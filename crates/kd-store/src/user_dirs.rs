//! The user's own folders: what no project may control, read or replace is stored here, never below `.kd`.
//!
//! Input: the environment, and the password file. Output: paths, and folders that only the user can read and write.

use crate::error::Error;
use kd_core::hex::hex;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The user's folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDirs {
    state: Option<PathBuf>,
    runtime: Option<PathBuf>,
    data: Option<PathBuf>,
    config: Option<PathBuf>,
}

/// Returns a variable of this process. If `HOME` is unset, empty or relative, returns the home directory of the
/// password file: a relative one would be a folder of the project. Pass this function to everything that looks for the
/// user's files.
pub fn process_env(name: &str) -> Option<OsString> {
    let set = std::env::var_os(name);
    if name != "HOME" {
        return set;
    }
    let home = home_or(set, || {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid());
        Some(user.ok()??.dir)
    });
    home.map(PathBuf::into_os_string)
}

fn home_or(set: Option<OsString>, account: impl FnOnce() -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    set.map(PathBuf::from)
        .filter(absolute)
        .or_else(|| account().filter(absolute))
}

/// Returns the user's home directory.
pub(crate) fn home(env: Env<'_>) -> Option<PathBuf> {
    home_or(env("HOME"), || None)
}

impl UserDirs {
    /// Reads `XDG_STATE_HOME`, `XDG_RUNTIME_DIR`, `XDG_DATA_HOME`, `XDG_CONFIG_HOME` and `HOME`. Relative paths are
    /// ignored, as the XDG base directory specification requires.
    pub fn from_env(env: Env<'_>) -> Self {
        let home = home(env);
        let absolute =
            |name: &str| Some(PathBuf::from(env(name)?)).filter(|path| path.is_absolute());
        let kd = |named: Option<PathBuf>, below_home: &str| {
            named
                .or_else(|| Some(home.as_ref()?.join(below_home)))
                .map(|dir| dir.join("kd"))
        };
        Self {
            state: kd(absolute("XDG_STATE_HOME"), ".local/state"),
            runtime: absolute("XDG_RUNTIME_DIR").map(|dir| dir.join("kd")),
            data: kd(absolute("XDG_DATA_HOME"), ".local/share"),
            config: kd(absolute("XDG_CONFIG_HOME"), ".config"),
        }
    }

    /// Returns the folder of state kept between runs: trust, queues, drafts.
    ///
    /// # Errors
    /// [`Error::NoHome`] if neither `XDG_STATE_HOME` nor a home directory is known.
    pub fn state(&self) -> Result<&Path, Error> {
        self.state.as_deref().ok_or(Error::NoHome {
            variable: "XDG_STATE_HOME",
        })
    }

    /// Returns the folder of records of running processes: `$XDG_RUNTIME_DIR/kd`, or `run` in the state folder; the
    /// latter also if `XDG_RUNTIME_DIR` is a link, belongs to another user or is writable by others.
    ///
    /// # Errors
    /// [`Error::NoHome`] if neither `XDG_RUNTIME_DIR` nor a state folder is known.
    pub fn runtime(&self) -> Result<PathBuf, Error> {
        match &self.runtime {
            Some(runtime) if runtime.parent().is_some_and(is_reliable) => Ok(runtime.clone()),
            _ => Ok(self.state()?.join("run")),
        }
    }

    /// Returns the folder of the user's data.
    ///
    /// # Errors
    /// [`Error::NoHome`] if neither `XDG_DATA_HOME` nor a home directory is known.
    pub fn data(&self) -> Result<&Path, Error> {
        self.data.as_deref().ok_or(Error::NoHome {
            variable: "XDG_DATA_HOME",
        })
    }

    /// Returns the folder of the user's settings; `None` if neither `XDG_CONFIG_HOME` nor a home directory is known.
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Returns the folder of a project's state: `projects/<name>-<hash>` in the state folder.
    ///
    /// # Errors
    /// Those of [`UserDirs::state`].
    pub fn project_state(&self, root: &Path) -> Result<PathBuf, Error> {
        Ok(self.state()?.join("projects").join(project_key(root)))
    }

    /// Returns the root for the `.kd` of a project whose own folder cannot contain a `.kd`: `projects/<name>-<hash>` in
    /// the data folder.
    ///
    /// # Errors
    /// Those of [`UserDirs::data`].
    pub fn project_data(&self, root: &Path) -> Result<PathBuf, Error> {
        Ok(self.data()?.join("projects").join(project_key(root)))
    }
}

/// Returns whether a folder is the user's own, or does not exist yet: another user's could control what runs, and a
/// link where it is.
fn is_reliable(folder: &Path) -> bool {
    fs::symlink_metadata(folder).map_or_else(
        |e| e.kind() == io::ErrorKind::NotFound,
        |meta| {
            let own = meta.uid() == rustix::process::geteuid().as_raw();
            meta.is_dir() && own && meta.mode() & 0o022 == 0
        },
    )
}

/// Returns a folder name for a project: the last part of its real path, and a hash of the whole path.
pub fn project_key(root: &Path) -> String {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let name = crate::name::normalise(&name, "project").unwrap_or_else(|_| "project".into());
    let hash = Sha256::digest(root.as_os_str().as_encoded_bytes());
    // 128 bits: nobody can construct a folder whose state collides with another's.
    let hash = hex(&hash[..16]);
    let short: String = name.chars().take(40).collect();
    format!("{short}-{hash}")
}

/// Creates a folder and its missing parents, accessible only to the user (mode 0700).
///
/// # Errors
/// [`Error::Io`] if it cannot be created, [`Error::Unsafe`] if a link, another kind of file or another user's folder is
/// in its place. If the user's folder is accessible to others, it is closed to them.
pub fn make_private(path: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(Error::io("create", path))?;
    let meta = fs::symlink_metadata(path).map_err(Error::io("look at", path))?;
    let unsafe_because = |why| {
        Err(Error::Unsafe {
            path: path.to_path_buf(),
            why,
        })
    };
    if !meta.is_dir() {
        return unsafe_because("it is a link");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return unsafe_because("it belongs to another user");
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(|e: io::Error| {
            Error::Io {
                action: "close to others",
                path: path.to_path_buf(),
                source: e,
            }
        })?;
    }
    Ok(())
}

/// The environment, as a function: the library does not read it directly.
pub type Env<'e> = &'e dyn Fn(&str) -> Option<OsString>;

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(set: &[(&str, &str)]) -> UserDirs {
        let env = |name: &str| -> Option<OsString> {
            set.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.into())
        };
        UserDirs::from_env(&env)
    }

    #[test]
    fn one_home_holds_everything_and_a_relative_one_is_none() {
        for (set, found) in [
            (None, "/account"),
            (Some(""), "/account"),
            (Some("h"), "/account"),
            (Some("."), "/account"),
            (Some("~"), "/account"),
            (Some("/h"), "/h"),
        ] {
            let home = home_or(set.map(OsString::from), || Some("/account".into()));
            assert_eq!(home.as_deref(), Some(Path::new(found)), "{set:?}");
            let dirs = dirs(&[("HOME", found)]);
            let below = |path: &str| Path::new(found).join(path);
            assert_eq!(dirs.state().unwrap(), below(".local/state/kd"));
            assert_eq!(dirs.data().unwrap(), below(".local/share/kd"));
            assert_eq!(dirs.config().unwrap(), below(".config/kd"));
            let none = home_or(set.map(OsString::from), || Some("account".into()));
            assert_eq!(none.is_some(), set == Some("/h"), "{set:?}");
        }
    }

    #[test]
    fn xdg_folders_win_and_relative_ones_are_ignored() {
        let all = dirs(&[
            ("HOME", "/h"),
            ("XDG_STATE_HOME", "/s"),
            ("XDG_RUNTIME_DIR", "/r"),
        ]);
        assert_eq!(all.state().unwrap(), Path::new("/s/kd"));
        assert_eq!(all.runtime().unwrap(), Path::new("/r/kd"));
        assert_eq!(all.data().unwrap(), Path::new("/h/.local/share/kd"));
        let few = dirs(&[("HOME", "/h"), ("XDG_STATE_HOME", "s")]);
        assert_eq!(few.state().unwrap(), Path::new("/h/.local/state/kd"));
        assert_eq!(few.runtime().unwrap(), Path::new("/h/.local/state/kd/run"));
        assert!(matches!(
            dirs(&[]).state(),
            Err(Error::NoHome {
                variable: "XDG_STATE_HOME"
            })
        ));
    }

    #[test]
    fn the_run_time_folder_is_used_only_where_nobody_else_can_change_it() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let runtime = |folder: &Path| {
            let folder = folder.to_str().unwrap();
            dirs(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", folder)])
                .runtime()
                .unwrap()
        };
        fs::create_dir(at("own")).unwrap();
        fs::create_dir(at("open")).unwrap();
        fs::set_permissions(at("own"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
        std::os::unix::fs::symlink(at("own"), at("link")).unwrap();
        fs::write(at("file"), "").unwrap();
        for (name, used) in [
            ("own", true),
            ("gone", true),
            ("open", false),
            ("link", false),
            ("file", false),
        ] {
            let expected = if used {
                at(name).join("kd")
            } else {
                "/h/.local/state/kd/run".into()
            };
            assert_eq!(runtime(&at(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_private_folder_is_for_the_user_alone() {
        let top = tempfile::tempdir().unwrap();
        let made = top.path().join("a/b");
        make_private(&made).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
        make_private(&made).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
        let link = top.path().join("link");
        std::os::unix::fs::symlink(&made, &link).unwrap();
        assert!(matches!(make_private(&link), Err(Error::Unsafe { .. })));
    }

    #[test]
    fn two_projects_of_one_name_have_two_keys() {
        let top = tempfile::tempdir().unwrap();
        let keys: Vec<String> = ["x/app", "y/app"]
            .iter()
            .map(|path| {
                let path = top.path().join(path);
                fs::create_dir_all(&path).unwrap();
                project_key(&path)
            })
            .collect();
        assert!(keys.iter().all(|key| key.starts_with("app-")));
        assert_ne!(keys[0], keys[1]);
    }
}
