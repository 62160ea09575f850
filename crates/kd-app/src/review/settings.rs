//! The settings of a review: the user's own settings, and the settings of the base commit. The content of the change
//! has no effect on its own review: neither a changed `.kd/config.json`, nor a `.kd/config.local.json` that git
//! tracks, nor a `.kd` that is a submodule or a link.

use super::change::Change;
use crate::env::Env;
use crate::error::UserError;
use crate::trust;
use kd_store::Layout;
use kd_store::config::{Loaded, ProjectFile, load_with};
use kd_store::git;
use kd_store::git_command::GitCommand;
use std::path::{Path, PathBuf};

/// Loads the settings, and notes which settings of the change are not used.
pub(super) fn load(
    env: &Env,
    layout: Option<&Layout>,
    change: &Change,
) -> Result<Loaded, UserError> {
    let mut paths = env.config_paths(layout);
    // Personas are only used by forums.
    paths.personas = None;
    let mut notices = Vec::new();
    let place = |file: Option<&PathBuf>| Place::of(file?, change);
    let base = place(paths.project.as_ref()).map_or(Base::Own, |place| place.base(change));
    if base.differs(paths.project.as_deref()) {
        let from = match (&base, &change.settings_commit) {
            (Base::Missing, None) => {
                "not used: git tracks the file, and no base is known".to_owned()
            }
            _ => format!("those of {}, not of the change", change.settings_name()),
        };
        notices.push(format!("settings of .kd/config.json are {from}"));
    }
    if place(paths.local.as_ref()).is_some_and(|place| place.is_tracked()) {
        let exists = paths.local.take().is_some_and(|file| file.exists());
        let notice = "settings of .kd/config.local.json are not used: git tracks the file (`git rm --cached \
                      .kd/config.local.json` and a commit make it your own)";
        notices.extend(exists.then(|| notice.to_owned()));
    }
    let project = match &base {
        Base::Own => ProjectFile::OnDisk,
        Base::Text(text) => ProjectFile::Text(text),
        Base::Missing => ProjectFile::Missing,
    };
    let mut loaded = load_with(&paths, project, env.vars(), &[])?;
    env.fill_in(&mut loaded.config);
    trust::tell_held(&loaded.project, env);
    notices.iter().for_each(|notice| env.note(notice));
    Ok(loaded)
}

/// The project's shared file in the base commit.
enum Base {
    /// It is outside of the repository, or not part of it: the user's own.
    Own,
    /// Its content.
    Text(String),
    /// It does not exist, and the change adds one.
    Missing,
}

impl Base {
    fn differs(&self, file: Option<&Path>) -> bool {
        let now = || {
            let bytes = crate::infile::read(file?, crate::infile::PLAN_BYTES_MAX).ok()?;
            String::from_utf8(bytes).ok()
        };
        match self {
            Base::Own => false,
            Base::Text(text) => now().as_ref() != Some(text),
            Base::Missing => true,
        }
    }
}

/// A file of settings in a working tree of the repository under review.
struct Place {
    /// Git at the top of that tree.
    git: GitCommand,
    /// The path from there, and the folders on the way, outermost first; the file is the last one. `None` if it is no
    /// UTF-8.
    path: Option<Vec<String>>,
}

impl Place {
    /// Returns `None` if the file is not in a working tree of the repository.
    fn of(file: &Path, change: &Change) -> Option<Self> {
        let (git, top) = (change.git.as_ref()?, change.top.as_ref()?);
        // The folder that holds `.kd`: a submodule would be another repository.
        let root = file.parent()?.parent()?.canonicalize().ok()?;
        let holder = git::top(&root)?;
        let here = git.at(holder);
        let same = holder == top.canonicalize().ok()?
            || common(&here).is_some_and(|folder| common(git) == Some(folder));
        let below = root.strip_prefix(holder).ok()?;
        let names = file
            .parent()?
            .file_name()
            .into_iter()
            .chain(file.file_name());
        let mut path = below.to_path_buf();
        path.extend(names);
        same.then(|| Self {
            git: here,
            path: steps(&path),
        })
    }

    /// Returns the file as it is in the base commit.
    fn base(&self, change: &Change) -> Base {
        let path = self.path.as_ref().and_then(|path| path.last());
        let commit = change.settings_commit.as_deref();
        if let Some((commit, path)) = commit.zip(path)
            && self
                .kind(commit, path)
                .is_some_and(|mode| mode.starts_with("100"))
            && let Ok(text) = self
                .git
                .read(&["cat-file", "blob", &format!("{commit}:{path}")])
        {
            return Base::Text(text);
        }
        match self.is_tracked() {
            true => Base::Missing,
            false => Base::Own,
        }
    }

    /// Returns whether the file, or a folder on the way to it, is tracked: as a file, a link or a submodule. A file
    /// counts as tracked if git does not answer.
    fn is_tracked(&self) -> bool {
        let Some(path) = &self.path else {
            return true;
        };
        path.iter().any(|step| {
            self.is_in_index(step) || self.kind("HEAD", step).is_some_and(|mode| mode != FOLDER)
        })
    }

    fn is_in_index(&self, path: &str) -> bool {
        let spec = format!(":(top,icase,literal){path}");
        let listed = self.git.read_whole(&["ls-files", "-z", "--", &spec]);
        let Ok(Some(listed)) = listed else {
            return true;
        };
        let mut names = listed.split(|byte| *byte == 0);
        names.any(|name| name.eq_ignore_ascii_case(path.as_bytes()))
    }

    /// Returns the mode of a path in a commit; `None` if it is not there.
    fn kind(&self, commit: &str, path: &str) -> Option<String> {
        let listed = self
            .git
            .read(&["ls-tree", "-z", "--full-tree", commit, "--", path])
            .ok()?;
        let (mode, rest) = listed.split_once(' ')?;
        let (_, name) = rest.trim_end_matches('\0').split_once('\t')?;
        (name == path).then(|| mode.to_owned())
    }
}

/// The mode of a folder in a tree.
const FOLDER: &str = "040000";

/// Returns a path and the folders on the way to it.
fn steps(path: &Path) -> Option<Vec<String>> {
    let mut steps: Vec<String> = Vec::new();
    for name in path {
        let name = name.to_str()?;
        steps.push(match steps.last() {
            Some(above) => format!("{above}/{name}"),
            None => name.to_owned(),
        });
    }
    Some(steps)
}

/// Returns the git folder that all working trees of a repository share.
fn common(git: &GitCommand) -> Option<PathBuf> {
    let args = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
    let folder = git.read(&args).ok()?;
    Path::new(folder.trim_end_matches(['\n', '\r']))
        .canonicalize()
        .ok()
}
