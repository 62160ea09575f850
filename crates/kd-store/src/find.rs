//! Finds the project of a folder: its root, its branch, and where a new one belongs. Knows no path below `.kd` but
//! those that [`Layout`] names.
//!
//! Input: a start folder and the environment. Output: a [`Layout`].

use crate::beneath;
use crate::bounds;
use crate::error::Error;
use crate::git::Checkout;
use crate::layout::{Env, KD, Layout, make_kd};
use crate::name::normalise;
use std::io;
use std::path::{Path, PathBuf};

/// The branch's name where there is no git and nothing else says one.
const NO_BRANCH: &str = "main";

/// A layout, and how it came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The places.
    pub layout: Layout,
    /// Whether `.kd` was made just now.
    pub created: bool,
}

impl Layout {
    /// Finds the project of a folder: `KD_BASE`, else the nearest `.kd` here or above, else one in another worktree of
    /// the same repository, else one that [`Layout::find_or_create`] put into the person's data folder.
    pub fn find(start: &Path, env: Env<'_>) -> Result<Layout, Error> {
        if let Some(base) = env("KD_BASE").filter(|base| !base.is_empty()) {
            let base = start.join(base);
            if !base.join(KD).is_dir() {
                return Err(Error::BadBase { path: base });
            }
            beneath::allow_linked_base(&base.join(KD));
            return Layout::at(&base, start, true);
        }
        // The git toplevel is one of the parents.
        let above = start.ancestors().find(|dir| dir.join(KD).is_dir());
        let root = above.map(Path::to_path_buf).or_else(|| {
            let sisters = Checkout::find(start)?.sisters();
            sisters.into_iter().find(|dir| dir.join(KD).is_dir())
        });
        if let Some(root) = root {
            return Layout::at(&root, start, false);
        }
        match elsewhere(start, env).filter(|dir| dir.join(KD).is_dir()) {
            Some(root) => Layout::at(&root, start, false).map(Layout::standing_elsewhere),
            None => Err(Error::NoBase {
                start: start.to_path_buf(),
            }),
        }
    }

    /// Finds the project, or makes a `.kd` at the top of the checkout (else in the start folder). Where that cannot be
    /// written it is made in the person's data folder, under a name derived from the project's path.
    pub fn find_or_create(start: &Path, env: Env<'_>) -> Result<Opened, Error> {
        match Layout::find(start, env) {
            Ok(layout) => {
                return Ok(Opened {
                    layout,
                    created: false,
                });
            }
            Err(Error::NoBase { .. }) => {}
            Err(other) => return Err(other),
        }
        let root = project_root(start);
        let layout = match make_kd(&root) {
            Ok(()) => Layout::at(&root, start, false)?,
            Err(refused) => {
                let Some(other) = elsewhere(start, env).filter(|_| is_refusal(&refused)) else {
                    return Err(refused);
                };
                make_kd(&other)?;
                Layout::at(&other, start, false)?.standing_elsewhere()
            }
        };
        Ok(Opened {
            layout,
            created: true,
        })
    }

    fn standing_elsewhere(self) -> Layout {
        Layout {
            elsewhere: true,
            ..self
        }
    }

    /// The layout of a root, seen from a start folder (whose checkout tells the branch).
    fn at(root: &Path, start: &Path, fixed: bool) -> Result<Layout, Error> {
        let checkout = Checkout::find(start);
        let kd = root.join(KD);
        let has = |branch: &str| {
            normalise(branch, "branch").is_ok_and(|name| kd.join("branches").join(name).is_dir())
        };
        let git = match &checkout {
            // A branch whose name has nothing for a file name is as good as none.
            Some(checkout) => checkout
                .branch()?
                .filter(|b| normalise(b, "branch").is_ok()),
            None => None,
        };
        let branch = match git {
            Some(branch) if has(&branch) => branch,
            git => current_branch(&kd)
                .filter(|b| has(b))
                .or(git)
                .unwrap_or_else(|| NO_BRANCH.to_owned()),
        };
        let owner = checkout
            .filter(|checkout| checkout.root == root)
            .or_else(|| Checkout::at(root))
            .filter(|c| !fixed && c.is_linked())
            .and_then(|c| c.owner())
            .filter(|owner| owner.join(KD).join("config.json").is_file());
        Ok(Layout {
            branch_name: normalise(&branch, "branch")?,
            branch,
            config_root: owner.unwrap_or_else(|| root.to_path_buf()),
            root: root.to_path_buf(),
            elsewhere: false,
        })
    }
}

/// Where a new `.kd` belongs: the top of the checkout, else the folder itself.
fn project_root(start: &Path) -> PathBuf {
    Checkout::find(start).map_or_else(|| start.to_path_buf(), |checkout| checkout.root)
}

/// The project's place in the person's data folder, for projects that cannot be written.
fn elsewhere(start: &Path, env: Env<'_>) -> Option<PathBuf> {
    let data = env("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute())
        .or_else(|| {
            Some(PathBuf::from(env("HOME").filter(|h| !h.is_empty())?).join(".local/share"))
        })?;
    let root = project_root(start);
    let root = root.canonicalize().unwrap_or(root);
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let name = normalise(&name, "project").unwrap_or_else(|_| "project".into());
    Some(data.join("kd/projects").join(format!(
        "{name}-{:016x}",
        fnv(root.as_os_str().as_encoded_bytes())
    )))
}

/// FNV-1a: the same on every machine and in every version, which is all that a folder's name needs.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Whether an error says that this folder may not be written, so that another is to be taken.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if matches!(
        source.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    ))
}

/// What `.kd/current` says.
fn current_branch(kd: &Path) -> Option<String> {
    let text = beneath::read_text(&kd.join("current"), bounds::CURRENT).ok()??;
    let name = text.lines().next()?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
