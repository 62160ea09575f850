//! The little that we must know of git, read from its files: where a checkout begins, its branch, its sisters.
//!
//! `git` itself is run only where files cannot tell (the reftable format keeps HEAD elsewhere).

use crate::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A checkout: a folder that holds `.git`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkout {
    /// The folder.
    pub(crate) root: PathBuf,
    /// Its own git folder: `.git`, or `…/.git/worktrees/<name>` of a linked worktree.
    git_dir: PathBuf,
    /// The git folder that all worktrees share, where this one is linked to it.
    common: Option<PathBuf>,
}

/// Whether git tracks a file. No program that the repository names is run. Where git itself cannot tell, a file of that
/// name in the index counts as tracked.
pub(crate) fn tracks(file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return false;
    };
    let Some(checkout) = Checkout::find(folder) else {
        return false;
    };
    let mut pathspec = std::ffi::OsString::from(":(icase,literal)");
    pathspec.push(name);
    let mut git = Command::new("git");
    git.args([
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
        "--no-pager",
    ])
    .args(["ls-files", "--error-unmatch", "--"])
    .arg(&pathspec)
    .current_dir(folder)
    .env("GIT_NO_LAZY_FETCH", "1")
    .env("GIT_OPTIONAL_LOCKS", "0")
    .stdin(Stdio::null());
    for variable in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_LITERAL_PATHSPECS",
        "GIT_GLOB_PATHSPECS",
    ] {
        git.env_remove(variable);
    }
    match git.output().ok().and_then(|output| output.status.code()) {
        Some(0) => true,
        Some(1) => false,
        _ => {
            let name = name.as_encoded_bytes();
            let index = read_bounded(&checkout.git_dir.join("index"));
            index.is_none_or(|index| index.windows(name.len()).any(|window| window == name))
        }
    }
}

/// The bytes of an index; empty where there is none, `None` where it cannot be read.
fn read_bounded(path: &Path) -> Option<Vec<u8>> {
    const INDEX_MAX: u64 = 256 << 20;
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(Vec::new()),
        Ok(meta) if meta.is_file() && meta.len() <= INDEX_MAX => fs::read(path).ok(),
        _ => None,
    }
}

impl Checkout {
    /// The checkout that a folder is in.
    pub(crate) fn find(start: &Path) -> Option<Checkout> {
        start.ancestors().find_map(Checkout::at)
    }

    /// The checkout that begins at a folder.
    pub(crate) fn at(root: &Path) -> Option<Checkout> {
        let dot_git = root.join(".git");
        let meta = fs::metadata(&dot_git).ok()?;
        let git_dir = if meta.is_dir() {
            dot_git
        } else {
            let text = fs::read_to_string(&dot_git).ok()?;
            root.join(text.strip_prefix("gitdir:")?.trim())
        };
        // An empty folder of that name is no checkout.
        git_dir.join("HEAD").symlink_metadata().ok()?;
        let text = fs::read_to_string(git_dir.join("commondir")).ok();
        Some(Checkout {
            root: root.to_path_buf(),
            common: text.map(|text| git_dir.join(text.trim())),
            git_dir,
        })
    }

    /// The git folder that all worktrees share.
    fn common_dir(&self) -> PathBuf {
        let common = self.common.as_ref().unwrap_or(&self.git_dir);
        common.canonicalize().unwrap_or_else(|_| common.clone())
    }

    /// The branch, as git spells it; none when HEAD is detached.
    pub(crate) fn branch(&self) -> Result<Option<String>, Error> {
        let path = self.git_dir.join("HEAD");
        let head = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let Some(reference) = head.strip_prefix("ref:").map(str::trim) else {
            return Ok(None);
        };
        if reference == "refs/heads/.invalid" {
            return self.ask_git();
        }
        Ok(Some(
            reference
                .strip_prefix("refs/heads/")
                .unwrap_or(reference)
                .to_owned(),
        ))
    }

    /// Whether this is a linked worktree.
    pub(crate) fn is_linked(&self) -> bool {
        self.common.is_some()
    }

    /// The checkout that owns the shared git folder, unless that is bare.
    pub(crate) fn owner(&self) -> Option<PathBuf> {
        let common = self.common_dir();
        (common.file_name()? == ".git").then(|| common.parent().map(Path::to_path_buf))?
    }

    /// The other checkouts of the same repository: the owner first, then linked ones by name.
    pub(crate) fn sisters(&self) -> Vec<PathBuf> {
        let mut linked: Vec<PathBuf> = fs::read_dir(self.common_dir().join("worktrees"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|item| {
                let text = fs::read_to_string(item.path().join("gitdir")).ok()?;
                Some(item.path().join(text.trim()).parent()?.to_path_buf())
            })
            .collect();
        linked.sort();
        self.owner()
            .into_iter()
            .chain(linked)
            .filter(|root| *root != self.root)
            .collect()
    }

    fn ask_git(&self) -> Result<Option<String>, Error> {
        let failed = |why: String| Error::Git {
            path: self.root.clone(),
            why,
        };
        let output = Command::new("git")
            .args(["symbolic-ref", "--quiet", "--short", "HEAD"])
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| failed(e.to_string()))?;
        match output.status.code() {
            Some(0) => Ok(Some(
                String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            )),
            // `--quiet`: detached, and nothing more to say.
            Some(1) => Ok(None),
            _ => Err(failed(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            )),
        }
    }
}
