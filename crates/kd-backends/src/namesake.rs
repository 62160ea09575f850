//! Finds other programs called `kd` on the PATH: kingdom-cli installs one, and so do other projects.

use crate::env::Env;
use std::path::{Path, PathBuf};

/// Another program called `kd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namesake {
    /// Its file on the PATH.
    pub path: PathBuf,
    /// Whether it is the one that a shell starts.
    pub starts: bool,
}

/// Returns the first `kd` on the PATH that is none of the files in `own`. Starts no program.
pub fn find(env: &Env, own: &[PathBuf]) -> Option<Namesake> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let own: Vec<PathBuf> = own.iter().map(|path| real(path)).collect();
    let all = which::which_in_all("kd", Some(env.search_path()), "/").ok()?;
    let (at, path) = all
        .enumerate()
        .find(|(_, path)| !own.contains(&real(path)))?;
    Some(Namesake {
        path,
        starts: at == 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Creates a folder with a program called `kd`.
    fn folder(at: &Path, name: &str) -> PathBuf {
        let folder = at.join(name);
        std::fs::create_dir(&folder).unwrap();
        let kd = folder.join("kd");
        std::fs::write(&kd, "").unwrap();
        std::fs::set_permissions(&kd, std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    #[test]
    fn only_a_program_that_is_another_file_counts() {
        let dir = tempfile::tempdir().unwrap();
        let ours = folder(dir.path(), "ours");
        let theirs = folder(dir.path(), "theirs");
        let links = dir.path().join("links");
        std::fs::create_dir(&links).unwrap();
        symlink(ours.join("kd"), links.join("kd")).unwrap();
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("kd"), "no program").unwrap();

        let own = [ours.join("kd")];
        let find = |folders: &[&PathBuf]| {
            let path = std::env::join_paths(folders).unwrap();
            find(&Env::of([("PATH", path.to_str().unwrap())]), &own)
        };
        let other = |starts| {
            Some(Namesake {
                path: theirs.join("kd"),
                starts,
            })
        };
        assert_eq!(find(&[&ours, &links, &data]), None);
        assert_eq!(find(&[&data]), None);
        assert_eq!(find(&[&links, &theirs]), other(false));
        assert_eq!(find(&[&data, &theirs, &ours]), other(true));
        // Started by its path, and not on the PATH at all.
        assert_eq!(find(&[&theirs]), other(true));
    }
}
