//! Reads data of git from its files: the top of a checkout, its branch, its other worktrees.
//!
//! Git's files are untrusted: they are read up to a limit, and a checkout counts as linked to another only if that one
//! lists it. `git` itself is run only if the files are not enough (the reftable format keeps HEAD elsewhere).

pub use crate::checkout::{top, top_of_git};
use crate::error::Error;

use crate::git_command::GitCommand;
use crate::private::read_small;
use std::fs;
use std::path::{Path, PathBuf};

/// A checkout: a folder that holds `.git`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkout {
    /// The folder.
    pub(crate) root: PathBuf,
    /// Its own git folder: `.git`, or `…/.git/worktrees/<name>` for a linked worktree.
    git_dir: PathBuf,
    /// The git folder shared by all worktrees, if this is a linked one.
    common: Option<PathBuf>,
}

/// `.git` of a linked worktree, `HEAD`, `commondir` and `gitdir` are one line each.
const POINTER_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of worktrees examined per repository.
const WORKTREES_MAX: usize = 1000;

/// Returns the folders outside a checkout where git keeps its data, for a linked worktree or a submodule. A `.git` file
/// that came with the folder can name any place, so a folder counts only if git created the link: the shared folder
/// lists the worktree, or it is below `.git/modules` of a checkout above. Resolves all links in the paths.
pub fn data_outside(top: &Path) -> Vec<PathBuf> {
    let Some(checkout) = Checkout::at(top) else {
        return Vec::new();
    };
    let Ok(git_dir) = checkout.git_dir.canonicalize() else {
        return Vec::new();
    };
    if checkout.is_linked() {
        return vec![checkout.common_dir(), git_dir];
    }
    let is_module_of = |above: &Path| {
        let modules = above.join(".git/modules").canonicalize();
        modules.is_ok_and(|modules| git_dir.starts_with(&modules) && git_dir != modules)
    };
    let is_module = top.canonicalize().is_ok_and(|top| {
        let mut above = top.ancestors().skip(1);
        top.join(".git").is_file() && above.any(is_module_of)
    });
    if is_module { vec![git_dir] } else { Vec::new() }
}

/// Returns whether git tracks a file. Runs no program that the repository names. If git cannot decide, a file of that
/// name in the index counts as tracked.
pub(crate) fn tracks(file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return false;
    };
    tracks_any(folder, &[name.to_string_lossy().as_ref()])
}

/// Returns whether git tracks one of these files of a folder, with a single command.
pub fn tracks_any(folder: &Path, names: &[&str]) -> bool {
    let Some(checkout) = Checkout::find(folder) else {
        return false;
    };
    let pathspecs = names.iter().map(|name| format!(":(icase,literal){name}"));
    let pathspecs: Vec<String> = pathspecs.collect();
    let mut args = vec!["ls-files", "--"];
    args.extend(pathspecs.iter().map(String::as_str));
    match GitCommand::without_filters(folder).output(&args) {
        Ok(output) if output.status.success() => !output.stdout.is_empty(),
        _ => {
            let index = read_bounded(&checkout.git_dir.join("index"));
            let holds = |index: &[u8], name: &str| {
                let mut windows = index.windows(name.len().max(1));
                windows.any(|window| window == name.as_bytes())
            };
            index.is_none_or(|index| names.iter().any(|name| holds(&index, name)))
        }
    }
}

/// Returns which of these paths below a folder git would add, whether they exist or not: no ignore file excludes them.
/// `None` if git does not answer. The paths are ASCII.
pub(crate) fn would_add<'p>(folder: &Path, paths: &[&'p str]) -> Option<Vec<&'p str>> {
    let args: Vec<&str> = ["check-ignore", "--no-index", "--"]
        .iter()
        .chain(paths)
        .copied()
        .collect();
    let output = GitCommand::without_filters(folder).output(&args).ok()?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let is_ignored = |path: &&str| text.lines().any(|line| line == *path);
    Some(
        paths
            .iter()
            .filter(|path| !is_ignored(path))
            .copied()
            .collect(),
    )
}

/// Reads an index; empty if there is none, `None` if it cannot be read.
fn read_bounded(path: &Path) -> Option<Vec<u8>> {
    const INDEX_MAX: u64 = 256 << 20;
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(Vec::new()),
        Ok(meta) if meta.is_file() && meta.len() <= INDEX_MAX => fs::read(path).ok(),
        _ => None,
    }
}

impl Checkout {
    /// Finds the checkout that a folder is in.
    pub(crate) fn find(start: &Path) -> Option<Checkout> {
        start.ancestors().find_map(Checkout::at)
    }

    /// Returns the checkout whose top is this folder.
    pub(crate) fn at(root: &Path) -> Option<Checkout> {
        let dot_git = root.join(".git");
        let git_dir = if fs::metadata(&dot_git).ok()?.is_dir() {
            dot_git
        } else {
            let text = read_small(&dot_git, POINTER_BYTES_MAX)?;
            root.join(text.strip_prefix("gitdir:")?.trim())
        };
        // An empty folder of that name is not a checkout.
        git_dir.join("HEAD").symlink_metadata().ok()?;
        let common = common_of(root, &git_dir);
        Some(Checkout {
            root: root.to_path_buf(),
            git_dir,
            common,
        })
    }

    /// Returns the git folder shared by all worktrees.
    fn common_dir(&self) -> PathBuf {
        let common = self.common.as_ref().unwrap_or(&self.git_dir);
        common.canonicalize().unwrap_or_else(|_| common.clone())
    }

    /// Returns the branch, as git spells it; `None` if HEAD is detached.
    pub(crate) fn branch(&self) -> Result<Option<String>, Error> {
        let path = self.git_dir.join("HEAD");
        let target = fs::read_link(&path).ok();
        let reference = match target.as_deref().map(Path::to_str) {
            // The oldest form: a link to a name below the git folder, which is not followed.
            Some(Some(target)) if target.starts_with("refs/") => target.to_owned(),
            Some(_) => return Ok(None),
            None => {
                let head = read_small(&path, POINTER_BYTES_MAX).ok_or_else(|| Error::Git {
                    path: self.root.clone(),
                    why: format!("{} is not a text file", path.display()),
                })?;
                match head.strip_prefix("ref:") {
                    Some(reference) => reference.trim().to_owned(),
                    None => return Ok(None),
                }
            }
        };
        if reference == "refs/heads/.invalid" {
            return self.ask_git();
        }
        let name = reference.strip_prefix("refs/heads/");
        Ok(Some(name.unwrap_or(&reference).to_owned()))
    }

    /// Returns whether this is a linked worktree.
    pub(crate) fn is_linked(&self) -> bool {
        self.common.is_some()
    }

    /// Returns the checkout that owns the shared git folder, unless the repository is bare.
    pub(crate) fn owner(&self) -> Option<PathBuf> {
        let common = self.is_linked().then(|| self.common_dir())?;
        (common.file_name()? == ".git").then(|| common.parent().map(Path::to_path_buf))?
    }

    /// Returns the other checkouts of the same repository: the owner first, then linked ones by name. Each points back
    /// here.
    pub(crate) fn sisters(&self) -> Vec<PathBuf> {
        // A main checkout contains its git folder; a link or pointer to another project's does not count.
        let is_main = fs::symlink_metadata(self.root.join(".git")).is_ok_and(|meta| meta.is_dir());
        if !self.is_linked() && !is_main {
            return Vec::new();
        }
        let common = self.common_dir();
        let items = fs::read_dir(common.join("worktrees")).into_iter().flatten();
        let mut linked: Vec<PathBuf> = items
            .flatten()
            .take(WORKTREES_MAX)
            .filter_map(|item| {
                let root = worktree_of(&item.path())?;
                let sister = Checkout::at(&root)?;
                (sister.is_linked() && sister.common_dir() == common).then_some(root)
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
        let git = GitCommand::without_filters(&self.root);
        let output = git.output(&["symbolic-ref", "--quiet", "--short", "HEAD"])?;
        match output.status.code() {
            Some(0) => Ok(Some(
                String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            )),
            // `--quiet`: HEAD is detached.
            Some(1) => Ok(None),
            _ => Err(git.failed(&output)),
        }
    }
}

/// Returns the git folder that a linked worktree shares. A `.git` from an archive may point at another project's
/// repository: git itself created the link only if the shared folder lists the worktree at this place.
fn common_of(root: &Path, git_dir: &Path) -> Option<PathBuf> {
    let text = read_small(&git_dir.join("commondir"), POINTER_BYTES_MAX)?;
    let common = git_dir.join(text.trim()).canonicalize().ok()?;
    let git_dir = git_dir.canonicalize().ok()?;
    let listed = git_dir.parent() == Some(&common.join("worktrees"));
    let back = worktree_of(&git_dir)?.canonicalize().ok()?;
    (listed && back == root.canonicalize().ok()?).then_some(common)
}

/// Returns the worktree of an entry of `worktrees` in a git folder.
fn worktree_of(entry: &Path) -> Option<PathBuf> {
    let text = read_small(&entry.join("gitdir"), POINTER_BYTES_MAX)?;
    Some(entry.join(text.trim()).parent()?.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_file_opens_no_folder_that_git_did_not_link() {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path().canonicalize().unwrap();
        let folder = home.join("src/clone");
        for made in [
            ".ssh/worktrees/x",
            "src/clone",
            "src/.git",
            "other/.git/worktrees/w",
        ] {
            fs::create_dir_all(home.join(made)).unwrap();
        }
        // Git folders that lack only a link back to this place.
        for at in [
            ".ssh",
            ".ssh/worktrees/x",
            "other/.git",
            "other/.git/worktrees/w",
        ] {
            fs::write(home.join(at).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        for at in [".ssh/worktrees/x", "other/.git/worktrees/w"] {
            fs::write(home.join(at).join("commondir"), "../..\n").unwrap();
            let elsewhere = format!("{}/elsewhere/.git\n", home.display());
            fs::write(home.join(at).join("gitdir"), elsewhere).unwrap();
        }
        std::os::unix::fs::symlink(home.join(".ssh"), home.join("src/link")).unwrap();
        let absolute = |to: &str| home.join(to).display().to_string();
        for to in [
            "/x/y",
            "/",
            "../../.ssh",
            "../../.ssh/worktrees/x",
            "../link/worktrees/x",
            "../../../../../../..",
            "../.git",
            &absolute(".ssh/worktrees/x"),
            &absolute("other/.git/worktrees/w"),
        ] {
            fs::write(folder.join(".git"), format!("gitdir: {to}\n")).unwrap();
            assert_eq!(top(&folder), Some(folder.as_path()));
            assert_eq!(data_outside(&folder), Vec::<PathBuf>::new(), "{to}");
        }
    }

    #[test]
    fn what_git_linked_is_found() {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path().canonicalize().unwrap();
        let (worktree, module) = (home.join("w"), home.join("p/sub"));
        for made in ["w", "p/sub", "p/.git/worktrees/w", "p/.git/modules/sub"] {
            fs::create_dir_all(home.join(made)).unwrap();
        }
        let git = home.join("p/.git");
        for at in ["", "worktrees/w", "modules/sub"] {
            fs::write(git.join(at).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        let own = git.join("worktrees/w");
        fs::write(own.join("commondir"), "../..\n").unwrap();
        fs::write(own.join("gitdir"), format!("{}/.git\n", worktree.display())).unwrap();
        fs::write(
            worktree.join(".git"),
            format!("gitdir: {}\n", own.display()),
        )
        .unwrap();
        assert_eq!(data_outside(&worktree), [git.clone(), own]);
        fs::write(module.join(".git"), "gitdir: ../.git/modules/sub\n").unwrap();
        assert_eq!(data_outside(&module), [git.join("modules/sub")]);
        assert_eq!(data_outside(&home.join("p")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_pipe_or_an_endless_file_in_the_place_of_git_is_passed_over() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        let made = std::process::Command::new("mkfifo")
            .arg(folder.join(".git"))
            .status();
        assert!(made.unwrap().success());
        assert_eq!(data_outside(folder), Vec::<PathBuf>::new());
        fs::remove_file(folder.join(".git")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join(".git")).unwrap();
        assert_eq!(data_outside(folder), Vec::<PathBuf>::new());
    }
}
