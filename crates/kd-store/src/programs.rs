//! The files by which a project folder configures agent programs: their settings, hooks, servers and plugins.
//!
//! Input: a working folder. Output: which of these files exist there and in the folders above, up to the top of the
//! checkout, and a fingerprint of them. Links are not followed; a tree that is too large or too deep is an error, and
//! then nothing is trusted. Files named by these files, and packages in `node_modules`, are not included.

use crate::beneath::{Folder, Kind};
use crate::bounds;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::git::{self, Checkout};
use kd_core::hex::hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Files and folders that Codex, Gemini CLI, Cursor and opencode run or read settings from in a trusted folder.
pub const NAMES: [&str; 8] = [
    ".codex",
    ".cursor",
    ".env",
    ".gemini",
    ".mcp.json",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
];
/// Maximum number of files and folders of one level, including nested ones.
const NAMES_MAX: usize = 2000;
const DEPTH_MAX: usize = 16;
/// Packages that opencode installs for its plugins, again with each version.
const PACKAGES: &str = "node_modules";

/// Files of a working folder that agent programs run or obey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// The working folder and those above it where a program may find settings: up to the first that contains any
    /// `.git`; the working folder alone if none does.
    pub levels: Vec<Level>,
    /// The top of the checkout, or the working folder.
    top: PathBuf,
    /// The checkout that owns the repository of a linked worktree.
    pub(crate) owner: Option<PathBuf>,
}

/// The files of one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The folder.
    pub folder: PathBuf,
    /// The entries of [`NAMES`] that exist, as relative paths; for a folder, its content.
    pub files: Vec<String>,
    /// Fingerprint of their names and contents.
    pub fingerprint: Fingerprint,
}

impl Programs {
    /// Examines a working folder.
    ///
    /// # Errors
    /// A file cannot be read, or there are too many.
    pub fn look(folder: &Path) -> Result<Programs, Error> {
        let folder = folder.canonicalize().map_err(Error::io("open", folder))?;
        let top = git::top(&folder).unwrap_or(&folder);
        let mut levels = Vec::new();
        for up in folder.ancestors() {
            levels.push(Level::look(up)?);
            if up == top {
                break;
            }
        }
        let checkout = Checkout::at(top).filter(Checkout::is_linked);
        // A folder cannot claim to be a worktree of the owner: the owner has to list it too.
        let owner = checkout.and_then(|checkout| {
            let owner = checkout.owner()?;
            let back = Checkout::at(&owner)?.sisters();
            let is_top = |sister: &PathBuf| sister.canonicalize().is_ok_and(|s| s == top);
            back.iter().any(is_top).then_some(owner)
        });
        // An empty `.git` does not make a checkout.
        let place = git::top_of_git(&folder).filter(|place| place.starts_with(top));
        Ok(Programs {
            levels,
            top: place.unwrap_or(&folder).to_path_buf(),
            owner,
        })
    }

    /// Returns the top of the checkout, or the working folder.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Returns the levels that a decision covers: the top level, and all levels with files.
    pub fn decided(&self) -> impl Iterator<Item = &Level> {
        self.levels
            .iter()
            .filter(|level| level.folder == self.top || !level.files.is_empty())
    }
}

impl Level {
    fn look(path: &Path) -> Result<Level, Error> {
        let mut seen = Vec::new();
        let folder = Folder::open(path)?;
        for name in NAMES {
            if let Some(look) = folder.look(name)? {
                collect(&folder, name.as_ref(), look.kind, name, &mut seen)?;
            }
        }
        seen.sort_by(|a, b| a.0.cmp(&b.0));
        let all = seen.iter().map(|(name, what)| json!([name, what]));
        Ok(Level {
            folder: path.to_path_buf(),
            fingerprint: Fingerprint::of(&all.collect()),
            files: seen.into_iter().map(|(name, _)| name).collect(),
        })
    }
}

/// Records a name and everything below it.
fn collect(
    folder: &Folder,
    name: &std::ffi::OsStr,
    kind: Kind,
    shown: &str,
    seen: &mut Vec<(String, Value)>,
) -> Result<(), Error> {
    if seen.len() == NAMES_MAX || shown.matches('/').count() == DEPTH_MAX {
        return Err(Error::TooMany {
            path: folder.path().to_path_buf(),
            most: NAMES_MAX,
        });
    }
    let what = match kind {
        Kind::File => {
            let bytes = folder.read(name, bounds::PROGRAM)?.unwrap_or_default();
            let hash = Sha256::digest(&bytes);
            json!(hex(&hash))
        }
        Kind::Folder => {
            let Some(inner) = folder.folder(name)? else {
                return Ok(());
            };
            // Folders count too: a tree of empty folders must reach the limit.
            seen.push((format!("{shown}/"), json!("folder")));
            for item in inner.items()? {
                // Names that are not UTF-8 would be indistinguishable in the fingerprint.
                let Some(text) = item.name.to_str() else {
                    return Err(Error::Unsafe {
                        path: inner.path().join(&item.name),
                        why: "its name is not text",
                    });
                };
                let shown = format!("{shown}/{text}");
                if text != PACKAGES {
                    collect(&inner, &item.name, item.kind, &shown, seen)?;
                }
            }
            return Ok(());
        }
        Kind::Link => {
            let path = folder.path().join(name);
            let to = std::fs::read_link(&path).map_err(Error::io("read", &path))?;
            json!(["link", to.to_string_lossy()])
        }
        Kind::Pipe | Kind::Socket | Kind::Device => {
            return Err(Error::Unsafe {
                path: folder.path().join(name),
                why: "it is neither a file nor a folder",
            });
        }
    };
    seen.push((shown.to_owned(), what));
    Ok(())
}
