//! The two sides of a change: the commits that the user names, or the index or the working tree.
//!
//! Input: the arguments. Output: the arguments of `git diff`, or the commit that is missing in this repository.

use super::git::{NO_GIT, failed, read, usual_base};
use super::request::ChangeRequest;
use crate::error::{ErrorKind, UserError};
use kd_core::diff::shown_name;
use kd_store::git_command::GitCommand;
use std::path::{Path, PathBuf};

/// The advice outside of a repository.
const NO_REPOSITORY: &str =
    "go to a folder of a git repository, or review a diff: kd review --pr FILE";
/// Maximum files named in a notice or an error.
pub(super) const NAMED_MAX: usize = 5;

/// The two sides, as arguments of `git diff`.
pub(super) struct Sides {
    pub(super) args: Vec<String>,
    pub(super) base: String,
    pub(super) head: String,
    pub(super) base_commit: Option<String>,
    pub(super) head_commit: Option<String>,
    pub(super) after: After,
}

/// Where to find the files after the change.
pub(super) enum After {
    Work,
    Index,
    /// A commit or a tree.
    Tree(String),
}

impl Sides {
    pub(super) fn of(args: &ChangeRequest, git: &GitCommand) -> Result<Self, UserError> {
        if let Some(range) = &args.range {
            return Self::of_range(range, git);
        }
        settled(git)?;
        if args.staged {
            // Before the first commit, everything is new.
            let head = commit(git, "HEAD").ok();
            let base = match &head {
                Some(head) => head.clone(),
                None => empty_tree(git)?,
            };
            return Ok(Self {
                args: vec!["--cached".into(), base],
                base: if head.is_some() { "HEAD" } else { "nothing" }.to_owned(),
                head: "the index".into(),
                base_commit: head,
                head_commit: None,
                after: After::Index,
            });
        }
        let head = commit(git, "HEAD")?;
        let base = match args.branch.as_deref() {
            Some(base) if !base.is_empty() => base.to_owned(),
            _ => usual_base(git).map_err(|error| if_shallow(git, error))?,
        };
        let since = merge_base(git, &commit(git, &base)?, &head, &base)?;
        let status = ["status", "--porcelain", "--untracked-files=no"];
        let is_clean = read(&git.with_attributes_of(&since), &status)?.is_empty();
        Ok(Self {
            args: vec![since.clone()],
            base,
            head: if is_clean { "HEAD" } else { "the working tree" }.to_owned(),
            base_commit: Some(since),
            head_commit: is_clean.then_some(head),
            after: After::Work,
        })
    }

    fn of_range(range: &str, git: &GitCommand) -> Result<Self, UserError> {
        let Some((from, to)) = range.split_once("..") else {
            return Err(
                UserError::usage(format!("`{range}` is not a range of commits"))
                    .next("kd review FROM..TO, or `kd review --branch BASE`"),
            );
        };
        let (three, to) = to.strip_prefix('.').map_or((false, to), |to| (true, to));
        let or_head = |name: &str| match name {
            "" => "HEAD".to_owned(),
            name => name.to_owned(),
        };
        let (from, to) = (or_head(from), or_head(to));
        let (mut base, head) = (commit(git, &from)?, commit(git, &to)?);
        if three {
            base = merge_base(git, &base, &head, &from)?;
        }
        Ok(Self {
            args: vec![base.clone(), head.clone()],
            base: from,
            head: to,
            base_commit: Some(base),
            head_commit: Some(head.clone()),
            after: After::Tree(head),
        })
    }

    /// Returns the commit or tree before the change.
    pub(super) fn before(&self, git: &GitCommand) -> Result<String, UserError> {
        match &self.base_commit {
            Some(base) => Ok(base.clone()),
            None => empty_tree(git),
        }
    }
}

fn empty_tree(git: &GitCommand) -> Result<String, UserError> {
    let id = read(git, &["hash-object", "-t", "tree", "/dev/null"])?;
    Ok(id.trim().to_owned())
}

/// Returns the top of the working tree.
pub(super) fn top(git: &GitCommand) -> Result<PathBuf, UserError> {
    git.top().map_err(|error| {
        let bare = git.read(&["rev-parse", "--is-bare-repository"]);
        match bare.is_ok_and(|bare| bare.trim() == "true") {
            true => UserError::new(
                ErrorKind::Git,
                "this repository is bare: it has no files to review",
            )
            .next("git worktree add FOLDER BRANCH, then run kd review in FOLDER"),
            false => failed(&error).next(NO_REPOSITORY),
        }
    })
}

/// Refuses an index with conflicts: git compares no content of such files.
fn settled(git: &GitCommand) -> Result<(), UserError> {
    let unmerged = git.read_whole(&["ls-files", "--unmerged", "-z"]);
    let unmerged = unmerged
        .map_err(|error| failed(&error))?
        .unwrap_or_default();
    // Each entry: mode, id and stage, then the name.
    let named = names(&unmerged).filter_map(|entry| Some(shown_name(entry.split_once('\t')?.1)));
    let mut named: Vec<String> = named.collect();
    named.dedup();
    if named.is_empty() {
        return Ok(());
    }
    let more = if named.len() > NAMED_MAX { ", …" } else { "" };
    named.truncate(NAMED_MAX);
    let what = format!("files have conflicts: {}{more}", named.join(", "));
    Err(UserError::new(ErrorKind::Git, what)
        .next("resolve them and `git add` the files, or review commits: kd review FROM..TO"))
}

/// Iterates over names that end with NUL.
pub(super) fn names(list: &[u8]) -> impl Iterator<Item = String> {
    let names = list.split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty());
    names.map(kd_core::diff::decoded)
}

/// Resolves a name to a commit. The user's name is never taken for an option.
pub(super) fn commit(git: &GitCommand, name: &str) -> Result<String, UserError> {
    let peeled = format!("{name}^{{commit}}");
    let args = [
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &peeled,
    ];
    let found = git.read(&args).unwrap_or_default();
    match (found.trim(), name) {
        ("", "HEAD") => Err(UserError::usage("this repository has no commit yet")
            .next("git add what is to be reviewed, then kd review --staged")),
        ("", _) => {
            let error = UserError::usage(format!("`{name}` is not a commit here"))
                .next("name a branch, a tag or a commit: `git log --oneline --all` lists them");
            Err(if_shallow(git, error))
        }
        (id, _) => Ok(id.to_owned()),
    }
}

fn merge_base(git: &GitCommand, base: &str, head: &str, name: &str) -> Result<String, UserError> {
    let found = git.read(&["merge-base", base, head]).unwrap_or_default();
    match found.trim() {
        "" => {
            let error =
                UserError::usage(format!("{name} and this branch have no commit in common"))
                    .next("name another base: kd review --branch BASE, or kd review FROM..TO");
            Err(if_shallow(git, error))
        }
        id => Ok(id.to_owned()),
    }
}

/// Adds what to do if the history ends early.
fn if_shallow(git: &GitCommand, error: UserError) -> UserError {
    let shallow = git.read(&["rev-parse", "--is-shallow-repository"]);
    match shallow.is_ok_and(|shallow| shallow.trim() == "true") {
        true => error
            .because("this clone is shallow: it does not have the whole history")
            .next("git fetch --unshallow origin (in a workflow: fetch-depth: 0), and name the base: kd review --branch origin/main"),
        false => error,
    }
}

/// Returns git in the folder, at the top of its working tree, and that top.
pub(super) fn at_top(folder: &Path) -> Result<(GitCommand, PathBuf), UserError> {
    let git = GitCommand::new(folder).map_err(|e| failed(&e).next(NO_GIT))?;
    let top = top(&git)?;
    Ok((git.at(&top), top))
}
