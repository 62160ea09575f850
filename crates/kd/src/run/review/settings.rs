//! The settings of a review: the user's own, and those of the base commit. Changes to `.kd/config.json` have no effect
//! on their own review.

use super::change::Change;
use crate::error::Error;
use crate::run::here::Here;
use crate::run::notices::notice_line;
use crate::run::trust;
use kd_store::Layout;
use kd_store::config::{Loaded, ProjectFile, load_with};
use kd_store::git_command::GitCommand;
use std::path::Path;

/// Loads the settings. `quiet` omits purely informational notes.
pub(super) fn load(
    here: &Here,
    layout: Option<&Layout>,
    change: &Change,
    quiet: bool,
) -> Result<Loaded, Error> {
    let mut paths = here.config_paths(layout);
    // Personas are only used by forums.
    paths.personas = None;
    let base = match (&paths.project, &change.git, &change.top) {
        (Some(file), Some(git), Some(top)) => base_text(file, git, top, change),
        _ => Base::Outside,
    };
    let project = match &base {
        Base::Outside => ProjectFile::OnDisk,
        Base::Text(text) => ProjectFile::Text(text),
        Base::Missing => ProjectFile::Missing,
    };
    let mut loaded = load_with(&paths, project, here.vars(), &[])?;
    here.fill_in(&mut loaded.config);
    trust::hold(here, &loaded);
    if base.differs(paths.project.as_deref()) && !quiet {
        notice_line(&format!(
            "settings of .kd/config.json are those of {}, not of the change",
            change.base
        ));
    }
    Ok(loaded)
}

/// The project's shared file in the base commit.
enum Base {
    /// It is outside the repository, or not part of it: the user's own.
    Outside,
    /// Its content.
    Text(String),
    /// It does not exist, and the change adds one.
    Missing,
}

impl Base {
    fn differs(&self, file: Option<&Path>) -> bool {
        let now = || {
            let bytes = crate::run::infile::read(file?, crate::run::infile::PLAN_BYTES_MAX).ok()?;
            String::from_utf8(bytes).ok()
        };
        match self {
            Base::Outside => false,
            Base::Text(text) => now().as_ref() != Some(text),
            Base::Missing => true,
        }
    }
}

fn base_text(file: &Path, git: &GitCommand, top: &Path, change: &Change) -> Base {
    let real = |path: &Path| path.canonicalize().ok();
    let folder = file.parent().and_then(real);
    let inside = folder.zip(real(top)).and_then(|(folder, top)| {
        let folder = folder.strip_prefix(&top).ok()?.to_str()?.to_owned();
        Some(format!("{folder}/{}", file.file_name()?.to_str()?))
    });
    let Some(path) = inside else {
        return Base::Outside;
    };
    let base = change.base_commit.as_deref().unwrap_or("HEAD");
    if let Ok(text) = git.read(&["cat-file", "blob", &format!("{base}:{path}")]) {
        return Base::Text(text);
    }
    let is_tracked = git
        .read(&["ls-files", "--error-unmatch", "--", &path])
        .is_ok()
        || git
            .read(&["cat-file", "-e", &format!("HEAD:{path}")])
            .is_ok();
    match is_tracked {
        true => Base::Missing,
        false => Base::Outside,
    }
}
