//! Finds the project of a folder: its root, its branch, and where to create a new one. Knows no path below `.kd` except
//! those that [`Layout`] names.
//!
//! Input: a start folder, the environment and the user's decisions. Output: a [`Layout`], and the `.kd` folders that
//! were skipped. A `.kd` is used only if its content is the user's own ([`crate::owner`]); the search ends at the top
//! of the checkout, at the home directory and at a file system boundary. `docs/threads.md` lists the rules.

use crate::beneath;
use crate::bounds;
use crate::elsewhere::Elsewhere;
use crate::error::Error;
use crate::git::Checkout;
use crate::layout::{self, KD, Layout, make_kd};
use crate::name::normalise;
use crate::owner::{Distrust, Owner, User};
use crate::trust::TrustStore;
use crate::user_dirs::Env;
use crate::user_dirs::{UserDirs, home, make_private};
use rustix::fs::Access;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The branch's name without git, unless set otherwise.
const NO_BRANCH: &str = "main";

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The project, if there is one.
    pub layout: Option<Layout>,
    /// Skipped candidates.
    pub passed_over: Vec<PassedOver>,
}

/// A layout, and whether it is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The project's paths.
    pub layout: Layout,
    /// Whether `.kd` was just created.
    pub created: bool,
    /// Skipped candidates.
    pub passed_over: Vec<PassedOver>,
}

/// A `.kd` that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// The folder that holds it.
    pub root: PathBuf,
    /// The reason.
    pub why: Reason,
}

/// The reason why a `.kd` is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Other users may have written its content. [`TrustStore::accept_owners`] accepts a folder of another owner.
    Distrust(Distrust),
    /// It is above the folder at which the search ends.
    Above(PathBuf),
    /// It belongs to the home directory, and the search started below.
    Home,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kd, root) = (self.root.join(KD), self.root.display());
        write!(f, "{} is not used: ", kd.display())?;
        match &self.why {
            Reason::Distrust(why) => write!(f, "{why}")?,
            Reason::Above(border) => write!(f, "the search ends at {}", border.display())?,
            Reason::Home => write!(
                f,
                "the home folder is not a project for the folders below it"
            )?,
        }
        match &self.why {
            Reason::Distrust(Distrust::Owner(_)) => {
                write!(
                    f,
                    "; `kd trust` accepts the owner, KD_BASE={root} uses it once"
                )
            }
            Reason::Distrust(Distrust::Writable { folder, .. }) => {
                let close = match folder.starts_with(&kd) {
                    true => format!("chmod -R go-w {}", kd.display()),
                    false => format!("chmod go-w {}", folder.display()),
                };
                write!(
                    f,
                    "; `kd trust` cannot accept that: `{close}` closes it, KD_BASE={root} uses it once"
                )
            }
            _ => write!(f, "; to use it anyway, set KD_BASE={root}"),
        }
    }
}

impl Layout {
    /// Finds the project of a folder: the first of these that exists.
    ///
    /// 1. `KD_BASE`
    /// 2. the nearest `.kd` in the folder or above it
    /// 3. the `.kd` of another worktree of the same repository
    /// 4. a `.kd` that [`Layout::find_or_create`] created in the user's data folder
    ///
    /// # Errors
    /// [`Error::BadBase`] if `KD_BASE` contains no `.kd`; [`Error::Git`] if git cannot name the branch.
    pub fn search(start: &Path, env: Env<'_>) -> Result<Search, Error> {
        Self::search_accepting(start, env, &[])
    }

    /// Like [`Layout::search`], as if the user had accepted these owners of [`foreign_owners`], to show the effect in
    /// advance.
    ///
    /// # Errors
    /// Those of [`Layout::search`].
    pub fn search_accepting(
        start: &Path,
        env: Env<'_>,
        owners: &[Foreign],
    ) -> Result<Search, Error> {
        let mut finder = Finder::new(start, env);
        finder.accepted = owners.to_vec();
        if let Some(base) = env("KD_BASE").filter(|base| !base.is_empty()) {
            let base = start.join(base);
            if !base.join(KD).is_dir() {
                return Err(Error::BadBase { path: base });
            }
            beneath::allow_linked_base(&base.join(KD));
            return Ok(Search {
                layout: Some(finder.layout(&base, Named::ByUser)?),
                passed_over: Vec::new(),
            });
        }
        finder.search()
    }

    /// Like [`Layout::search`], but fails if there is no project.
    ///
    /// # Errors
    /// [`Error::NoBase`], and the errors of [`Layout::search`].
    pub fn find(start: &Path, env: Env<'_>) -> Result<Layout, Error> {
        Layout::search(start, env)?
            .layout
            .ok_or_else(|| Error::NoBase {
                start: start.to_path_buf(),
            })
    }

    /// Creates a `.kd` in a folder that belongs to no project, for threads that are not kept.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be created.
    pub fn create_in(folder: &Path, env: Env<'_>) -> Result<Layout, Error> {
        make_kd(folder)?;
        let layout = Finder::new(folder, env).layout(folder, Named::BySearch)?;
        // The user's own state of it would outlive it.
        Ok(Layout {
            state: None,
            ..layout
        })
    }

    /// Finds the project, or creates a `.kd` at the top of the checkout (else in the start folder). If that is not
    /// writable, not the user's own, or would apply to every project below (the home directory), creates it in the
    /// user's data folder, under a name derived from the project's path.
    ///
    /// If the `.kd` found is the user's own, closes it to other users and adds a missing `.gitignore`.
    ///
    /// # Errors
    /// Those of [`Layout::search`], and [`Error::Io`] if nothing can be created.
    pub fn find_or_create(start: &Path, env: Env<'_>) -> Result<Opened, Error> {
        let Search {
            layout,
            passed_over,
        } = Layout::search(start, env)?;
        let finder = Finder::new(start, env);
        let (layout, created) = match layout {
            Some(layout) => {
                layout.protect();
                (layout, false)
            }
            None => (finder.create()?, true),
        };
        Ok(Opened {
            layout,
            created,
            passed_over,
        })
    }
}

/// A `.kd` that is owned by other users, or reached through a folder of other users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The folder that holds it.
    pub root: PathBuf,
    /// The owners; empty if it is the user's own.
    pub owners: Vec<Owner>,
}

impl Foreign {
    /// Returns the users, each once.
    pub fn users(&self) -> BTreeSet<u32> {
        self.owners.iter().map(|owner| owner.uid).collect()
    }
}

/// Returns the foreign owners of a folder's `.kd`, accepted or not.
///
/// # Errors
/// The reason why it cannot be used, whichever owner is accepted: a link, or folders that other users can write to.
pub fn foreign_owners(root: &Path, env: Env<'_>) -> Result<Foreign, Distrust> {
    let finder = Finder::new(root, env);
    let root = finder.start.clone();
    let kd = root.join(KD);
    let mut owners = Vec::new();
    let mut vet = |folder: &Path, meta: &Metadata, way: bool| {
        if let Err(Distrust::Owner(owner)) = finder.user.relies_on(folder, meta, way, &|_| false) {
            owners.push(owner);
        }
        finder.user.relies_on(folder, meta, way, &|_| true)
    };
    if let Ok(meta) = fs::symlink_metadata(&kd) {
        if meta.is_symlink() {
            return Err(Distrust::Link);
        }
        vet(&kd, &meta, false)?;
        for (path, inner) in inside(&kd) {
            within(&meta, vet(&path, &inner, false))?;
        }
    }
    for folder in finder.reach(&root) {
        if let Ok(meta) = fs::metadata(&folder) {
            vet(&folder, &meta, true)?;
        }
    }
    Ok(Foreign { root, owners })
}

/// The way in which a `.kd` was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    BySearch,
    /// `KD_BASE`: used as it is.
    ByUser,
}

/// Lists the known first-level entries of a `.kd`. Skips links: none is followed.
fn inside(kd: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    layout::first_level().filter_map(move |name| {
        let path = kd.join(name);
        let meta = fs::symlink_metadata(&path).ok()?;
        (!meta.is_symlink()).then_some((path, meta))
    })
}

/// Ignores writable entries in a `.kd` that only its owner can enter: other users cannot reach them.
fn within(kd: &Metadata, found: Result<(), Distrust>) -> Result<(), Distrust> {
    match found {
        Err(Distrust::Writable { .. }) if kd.mode() & 0o011 == 0 => Ok(()),
        found => found,
    }
}

struct Finder {
    start: PathBuf,
    /// Owners treated as accepted during this search.
    accepted: Vec<Foreign>,
    dirs: UserDirs,
    home: Option<(PathBuf, Metadata)>,
    user: User,
}

impl Finder {
    fn new(start: &Path, env: Env<'_>) -> Self {
        let home = home(env);
        Self {
            start: start.canonicalize().unwrap_or_else(|_| start.to_path_buf()),
            accepted: Vec::new(),
            dirs: UserDirs::from_env(env),
            home: home.and_then(|home| {
                let home = home.canonicalize().ok()?;
                let meta = fs::metadata(&home).ok()?;
                Some((home, meta))
            }),
            user: User::current(),
        }
    }

    fn search(&self) -> Result<Search, Error> {
        let mut passed_over = Vec::new();
        let reach = self.reach(&self.start);
        let mut found = None;
        for (at, root) in reach.iter().enumerate() {
            // It would apply to every project below, even to one unpacked from an archive.
            if at > 0 && self.is_home_path(root) {
                continue;
            }
            match self.look_at(root, &reach[at..]) {
                Look::Nothing => {}
                Look::Found => {
                    found = Some(root.clone());
                    break;
                }
                Look::PassedOver(over) => passed_over.push(over),
            }
        }
        if found.is_none() {
            let sisters = Checkout::find(&self.start).map(|checkout| checkout.sisters());
            found = sisters.into_iter().flatten().find(|sister| {
                let sister = sister.canonicalize().unwrap_or_else(|_| sister.clone());
                matches!(self.look_at(&sister, &self.reach(&sister)), Look::Found)
            });
        }
        if let Some(root) = found {
            return Ok(Search {
                layout: Some(self.layout(&root, Named::BySearch)?),
                passed_over,
            });
        }
        if passed_over.is_empty() {
            passed_over.extend(self.above(&reach));
        }
        let layout = match self.elsewhere().filter(|dir| self.is_own_kd(dir)) {
            Some(root) => {
                let why = self.unfit().unwrap_or_else(|| {
                    let root = self.home_of_new();
                    match rustix::fs::access(&root, Access::WRITE_OK) {
                        Ok(()) => Elsewhere::Earlier(root),
                        Err(_) => Elsewhere::Refused(root),
                    }
                });
                Some(self.layout(&root, Named::BySearch)?.kept_elsewhere(why))
            }
            None => None,
        };
        Ok(Search {
            layout,
            passed_over,
        })
    }

    /// Creates a `.kd` where a new one belongs.
    fn create(&self) -> Result<Layout, Error> {
        let root = self.home_of_new();
        let (why, refused) = match self.unfit() {
            Some(why) => (why, None),
            None => match make_kd(&root) {
                Ok(()) => return self.layout(&root, Named::BySearch),
                Err(refused) if is_refusal(&refused) => (Elsewhere::Refused(root), Some(refused)),
                Err(refused) => return Err(refused),
            },
        };
        let other = match (self.dirs.project_data(&self.home_of_new()), refused) {
            (Ok(other), _) => other,
            (Err(_), Some(refused)) => return Err(refused),
            (Err(error), None) => return Err(error),
        };
        make_private(&other)?;
        make_kd(&other)?;
        Ok(self.layout(&other, Named::BySearch)?.kept_elsewhere(why))
    }

    /// Returns the folders that may contain the `.kd`, nearest first: up to the top of the checkout, the home directory
    /// or the file system boundary.
    fn reach(&self, from: &Path) -> Vec<PathBuf> {
        let mut reach: Vec<PathBuf> = Vec::new();
        let mut disk = None;
        for folder in from.ancestors() {
            let Ok(meta) = fs::metadata(folder) else {
                break;
            };
            if disk.is_some_and(|disk| disk != meta.dev()) {
                break;
            }
            disk = Some(meta.dev());
            reach.push(folder.to_path_buf());
            if Checkout::at(folder).is_some() || self.is_home(&meta) {
                break;
            }
        }
        reach
    }

    fn is_home(&self, meta: &Metadata) -> bool {
        let home = self.home.as_ref();
        home.is_some_and(|(_, home)| home.dev() == meta.dev() && home.ino() == meta.ino())
    }

    /// Checks a folder for a usable `.kd`; `way` is the path from there up to the border.
    fn look_at(&self, root: &Path, way: &[PathBuf]) -> Look {
        let Ok(meta) = fs::symlink_metadata(root.join(KD)) else {
            return Look::Nothing;
        };
        if !meta.is_dir() && !meta.is_symlink() {
            return Look::Nothing;
        }
        match self.vet_kd(way, root) {
            Ok(()) => Look::Found,
            Err(why) => Look::PassedOver(PassedOver {
                root: root.to_path_buf(),
                why: Reason::Distrust(why),
            }),
        }
    }

    /// Checks that a root's `.kd` and the folders on the way to it are under the user's sole control.
    fn vet_kd(&self, way: &[PathBuf], root: &Path) -> Result<(), Distrust> {
        let kd = root.join(KD);
        if let Ok(meta) = fs::symlink_metadata(&kd) {
            if meta.is_symlink() {
                return Err(Distrust::Link);
            }
            self.vet(&kd, &meta, false, root)?;
            for (path, inner) in inside(&kd) {
                within(&meta, self.vet(&path, &inner, false, root))?;
            }
        }
        self.vet_way(way, root)
    }

    /// Checks only the folders on the way.
    fn vet_way(&self, way: &[PathBuf], root: &Path) -> Result<(), Distrust> {
        for folder in way {
            if let Ok(meta) = fs::metadata(folder) {
                self.vet(folder, &meta, true, root)?;
            }
        }
        Ok(())
    }

    fn vet(&self, folder: &Path, meta: &Metadata, way: bool, root: &Path) -> Result<(), Distrust> {
        let allowed = |owner: u32| {
            let mut accepted = self.accepted.iter().filter(|foreign| foreign.root == root);
            if accepted.any(|foreign| foreign.users().contains(&owner)) {
                return true;
            }
            let trust = TrustStore::new(&self.dirs);
            trust.is_ok_and(|trust| trust.accepts_owner(root, owner).unwrap_or(false))
        };
        self.user.relies_on(folder, meta, way, &allowed)
    }

    fn is_home_path(&self, folder: &Path) -> bool {
        fs::metadata(folder).is_ok_and(|meta| self.is_home(&meta))
    }

    /// Returns a `.kd` of the user's own at the border or above it, to explain where its threads are.
    fn above(&self, reach: &[PathBuf]) -> Option<PassedOver> {
        let border = reach.last()?;
        if reach.len() > 1 && self.is_home_path(border) && self.is_own_kd(border) {
            return Some(PassedOver {
                root: border.clone(),
                why: Reason::Home,
            });
        }
        let root = border
            .ancestors()
            .skip(1)
            .find(|root| self.is_own_kd(root))?;
        Some(PassedOver {
            root: root.to_path_buf(),
            why: Reason::Above(border.clone()),
        })
    }

    fn is_own_kd(&self, root: &Path) -> bool {
        let meta = fs::symlink_metadata(root.join(KD));
        meta.is_ok_and(|meta| meta.is_dir() && self.user.owns(&meta))
    }

    /// Returns the folder for a new `.kd`: the top of the checkout; outside of a checkout the folder itself. A home
    /// directory that is a checkout (of dotfiles) is not a project.
    fn home_of_new(&self) -> PathBuf {
        let top = Checkout::find(&self.start).map(|checkout| checkout.root);
        top.filter(|top| !self.is_too_wide(top))
            .unwrap_or_else(|| self.start.clone())
    }

    /// Returns why a new `.kd` must not be created in its place, as far as that is known without trying.
    fn unfit(&self) -> Option<Elsewhere> {
        let root = self.home_of_new();
        if self.is_too_wide(&root) {
            return Some(Elsewhere::TooWide(root));
        }
        let why = self.vet_kd(&self.reach(&root), &root).err()?;
        Some(match fs::symlink_metadata(root.join(KD)) {
            Ok(_) => Elsewhere::PassedOver(root),
            Err(_) => Elsewhere::Distrust(root, why),
        })
    }

    /// Returns whether a folder is too broad for a project: the root, the home directory and its parents, a shared
    /// temporary folder.
    fn is_too_wide(&self, root: &Path) -> bool {
        let Ok(meta) = fs::metadata(root) else {
            return false;
        };
        let above_home = |(home, _): &(PathBuf, Metadata)| home.starts_with(root);
        root.parent().is_none()
            || self.is_home(&meta)
            || self.home.as_ref().is_some_and(above_home)
            || meta.mode() & 0o1002 == 0o1002
    }

    /// Returns the project's place in the user's data folder.
    fn elsewhere(&self) -> Option<PathBuf> {
        self.dirs.project_data(&self.home_of_new()).ok()
    }

    /// Builds the layout of a root, seen from the start folder (whose checkout determines the branch).
    fn layout(&self, root: &Path, named: Named) -> Result<Layout, Error> {
        let checkout = Checkout::find(&self.start);
        let kd = root.join(KD);
        let has = |branch: &str| {
            normalise(branch, "branch").is_ok_and(|name| kd.join("branches").join(name).is_dir())
        };
        let git = match &checkout {
            // A branch whose name has no character allowed in file names counts as none.
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
            .filter(|c| named == Named::BySearch && c.is_linked())
            .and_then(|c| c.owner())
            .filter(|owner| {
                owner.join(KD).join("config.json").is_file()
                    && matches!(self.look_at(owner, &self.reach(owner)), Look::Found)
            });
        Ok(Layout {
            branch_name: normalise(&branch, "branch")?,
            branch,
            config_root: owner.unwrap_or_else(|| root.to_path_buf()),
            root: root.to_path_buf(),
            own: named == Named::BySearch && self.is_own_kd(root),
            elsewhere: None,
            state: self.dirs.project_state(root).ok(),
            batch: None,
            long_ids: false,
            passing: None,
        })
    }
}

enum Look {
    Nothing,
    Found,
    PassedOver(PassedOver),
}

/// Returns whether an error means that this folder is not writable, so that another has to be used.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if matches!(
        source.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    ))
}

/// Reads `.kd/current`.
fn current_branch(kd: &Path) -> Option<String> {
    let text = beneath::read_text(&kd.join("current"), bounds::CURRENT).ok()??;
    let name = text.lines().next()?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
