//! The user's decisions about project folders: `trust.json` in the user's state folder, never below `.kd`.
//!
//! Input: a project folder, and a fingerprint of each setting that it wants. Output: which of these the user allowed at
//! this path, which list they declined, and whether they accept that the folder belongs to another user.

use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::lock::{self, Lock};
use crate::private;
use crate::programs::{Level, Programs};
use crate::user_dirs::{UserDirs, make_private, project_key};
use jiff::Timestamp;
use kd_core::formats::TRUST;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Far above any list of projects, yet small enough to read.
const BYTES_MAX: u64 = 16 << 20;

/// The file of the user's decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustStore {
    file: PathBuf,
}

/// The user's decision on a project's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The user was not asked yet about some settings that are not allowed.
    Unknown,
    /// The user allowed all settings.
    Allowed,
    /// The user was asked about the settings that are not allowed, and declined.
    Declined,
}

/// The decisions on one project folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrustedFolder {
    /// The real path, for display; the entry's key is its hash.
    pub path: String,
    /// The settings that are allowed, one fingerprint each.
    #[serde(
        rename = "allowed_settings",
        skip_serializing_if = "BTreeSet::is_empty"
    )]
    pub settings: BTreeSet<Fingerprint>,
    /// The time when the last of them was allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_at: Option<String>,
    /// The settings that were last declined, as one list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declined_settings: Option<Fingerprint>,
    /// The files of agent programs that are trusted there. Only `kd trust` sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programs: Option<Fingerprint>,
    /// The user ids of the accepted foreign owners.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub owners: BTreeSet<u32>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Contents {
    version: u32,
    projects: BTreeMap<String, TrustedFolder>,
}

impl TrustStore {
    /// Creates the store in the user's state folder.
    ///
    /// # Errors
    /// [`Error::NoHome`] if no state folder is known.
    pub fn new(dirs: &UserDirs) -> Result<Self, Error> {
        Ok(Self::at(dirs.state()?))
    }

    /// Creates the store in this state folder.
    pub fn at(state: &Path) -> Self {
        Self {
            file: state.join("trust.json"),
        }
    }

    /// Returns its file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the decisions on this path.
    ///
    /// # Errors
    /// [`Error::Unsafe`], [`Error::Json`] or [`Error::Io`] if the file cannot be trusted; callers then treat every
    /// project as not allowed.
    pub fn decided(&self, root: &Path) -> Result<TrustedFolder, Error> {
        Ok(self.folder(root)?.unwrap_or_default())
    }

    /// Returns whether the user accepts that the `.kd` of this folder, or a folder on the way to it, belongs to this
    /// user id.
    ///
    /// # Errors
    /// Those of [`TrustStore::decided`].
    pub fn accepts_owner(&self, root: &Path, owner: u32) -> Result<bool, Error> {
        Ok(self
            .folder(root)?
            .is_some_and(|folder| folder.owners.contains(&owner)))
    }

    /// Returns whether the user trusts what agent programs run and obey in a working folder, so that programs need not
    /// ask again there. The top of the checkout needs a decision, and so does each folder on the way to it with such
    /// files; for a linked worktree, a decision on the owning checkout counts if the files are the same.
    ///
    /// # Errors
    /// Those of [`TrustStore::decided`].
    pub fn trusts(&self, programs: &Programs) -> Result<bool, Error> {
        let contents = self.read()?;
        let marked = |folder: &Path, level: &Level| {
            let kept = contents.projects.get(&project_key(folder));
            kept.is_some_and(|kept| kept.programs.as_ref() == Some(&level.fingerprint))
        };
        let by_owner = |level: &Level| {
            let below = level.folder.strip_prefix(programs.top()).ok();
            let (owner, below) = programs.owner.as_deref().zip(below)?;
            Some(marked(&owner.join(below), level))
        };
        Ok(programs
            .decided()
            .all(|level| marked(&level.folder, level) || by_owner(level).unwrap_or(false)))
    }

    /// Trusts what agent programs run and obey in a working folder, in its examined state.
    ///
    /// # Errors
    /// Those of [`TrustStore::allow`].
    pub fn trust_programs(&self, programs: &Programs) -> Result<(), Error> {
        for level in programs.decided() {
            self.change(&level.folder, |folder| {
                folder.programs = Some(level.fingerprint.clone());
            })?;
        }
        Ok(())
    }

    /// Allows these settings at this path. Earlier allowed settings are kept if they are in `stay`.
    ///
    /// # Errors
    /// The state folder or the file cannot be written, or the file cannot be trusted.
    pub fn allow(
        &self,
        root: &Path,
        settings: &BTreeSet<Fingerprint>,
        stay: &BTreeSet<Fingerprint>,
    ) -> Result<(), Error> {
        self.change(root, |folder| {
            folder.settings.retain(|setting| stay.contains(setting));
            folder.settings.extend(settings.iter().cloned());
            folder.allowed_at = Some(Timestamp::now().strftime("%F").to_string());
            folder.declined_settings = None;
        })
    }

    /// Remembers that these settings were declined, so that the user is not asked again. Settings allowed before stay
    /// allowed.
    ///
    /// # Errors
    /// Those of [`TrustStore::allow`].
    pub fn decline(&self, root: &Path, settings: &Fingerprint) -> Result<(), Error> {
        self.change(root, |folder| {
            folder.declined_settings = Some(settings.clone());
        })
    }

    /// Accepts that this folder belongs to these user ids, replacing those accepted before.
    ///
    /// # Errors
    /// Those of [`TrustStore::allow`].
    pub fn accept_owners(&self, root: &Path, owners: &BTreeSet<u32>) -> Result<(), Error> {
        self.change(root, |folder| folder.owners.clone_from(owners))
    }

    /// Forgets every decision on this path. Returns whether there was one. The folder need not exist any more.
    ///
    /// # Errors
    /// Those of [`TrustStore::allow`].
    pub fn revoke(&self, root: &Path) -> Result<bool, Error> {
        if self.folder(root)?.is_none() {
            return Ok(false);
        }
        let _lock = self.lock()?;
        let mut contents = self.read()?;
        let gone = contents.projects.remove(&project_key(root)).is_some();
        self.write(&contents)?;
        Ok(gone)
    }

    /// Lists every folder with a decision, by path.
    ///
    /// # Errors
    /// Those of [`TrustStore::decided`].
    pub fn list(&self) -> Result<Vec<TrustedFolder>, Error> {
        let mut all: Vec<TrustedFolder> = self.read()?.projects.into_values().collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }

    fn folder(&self, root: &Path) -> Result<Option<TrustedFolder>, Error> {
        Ok(self.read()?.projects.remove(&project_key(root)))
    }

    fn change(&self, root: &Path, change: impl FnOnce(&mut TrustedFolder)) -> Result<(), Error> {
        let _lock = self.lock()?;
        let mut contents = self.read()?;
        contents.version = TRUST.version;
        let folder = contents.projects.entry(project_key(root)).or_default();
        let real = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        folder.path = real.to_string_lossy().into_owned();
        change(folder);
        self.write(&contents)
    }

    fn lock(&self) -> Result<Lock, Error> {
        make_private(self.file.parent().unwrap_or(Path::new("/")))?;
        Lock::take(&lock::lock_path(&self.file), lock::WAIT)
    }

    /// Reads the file; a missing file allows nothing. Trusts only a regular file of the user that nobody else can
    /// write.
    fn read(&self) -> Result<Contents, Error> {
        if !private::check_folder(self.file.parent().unwrap_or(Path::new("/")))? {
            return Ok(Contents::default());
        }
        let Some(bytes) = private::read(&self.file, BYTES_MAX)? else {
            return Ok(Contents::default());
        };
        crate::json::check_version(&bytes, &TRUST, "version", || self.file.clone())?;
        serde_json::from_slice(&bytes).map_err(|source| Error::Json {
            path: self.file.clone(),
            source,
        })
    }

    /// Replaces the file atomically; the caller holds the lock.
    fn write(&self, contents: &Contents) -> Result<(), Error> {
        let path = || self.file.clone();
        let value = serde_json::to_value(contents).map_err(|source| Error::Json {
            path: path(),
            source,
        })?;
        let text = crate::json::to_text(&value);
        // It could not be read again, and then nothing would be allowed anywhere.
        if text.len() as u64 > BYTES_MAX {
            let why = "it would be too large";
            return Err(Error::Unsafe { path: path(), why });
        }
        private::replace_synced(&self.file, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn print(text: &str) -> Fingerprint {
        Fingerprint::of(&json!([text]))
    }

    fn one(text: &str) -> BTreeSet<Fingerprint> {
        [print(text)].into()
    }

    struct Stage {
        top: tempfile::TempDir,
        store: TrustStore,
    }

    impl Stage {
        fn new() -> Self {
            let top = tempfile::tempdir().unwrap();
            fs::create_dir(top.path().join("app")).unwrap();
            let store = TrustStore::at(&top.path().join("state/kd"));
            Self { top, store }
        }

        fn root(&self) -> PathBuf {
            self.top.path().join("app")
        }
    }

    #[test]
    fn programs_are_trusted_by_a_mark_of_their_own_up_to_the_top_of_the_checkout() {
        let stage = Stage::new();
        let (root, store) = (stage.root(), &stage.store);
        let deep = root.join("src/deep");
        fs::create_dir_all(&deep).unwrap();
        let trusts = |folder: &Path| store.trusts(&Programs::look(folder).unwrap()).unwrap();
        let trust = |folder: &Path| {
            store
                .trust_programs(&Programs::look(folder).unwrap())
                .unwrap();
        };
        trust(stage.top.path());
        assert!(!trusts(&root), "a folder above is another");
        // Left by a killed program; it does not make a checkout.
        fs::create_dir(stage.top.path().join(".git")).unwrap();
        trust(stage.top.path());
        assert!(!trusts(&root), "an empty `.git` above");
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/HEAD"), "").unwrap();
        // Other decisions do not count.
        store.allow(&root, &one("a"), &one("a")).unwrap();
        store.accept_owners(&root, &[7].into()).unwrap();
        assert!(!trusts(&deep) && !trusts(&root));
        trust(&root);
        assert!(trusts(&deep) && trusts(&root));
        store.decline(&root, &print("b")).unwrap();
        assert!(trusts(&deep), "settings are another matter");
        fs::write(deep.join("opencode.json"), "{}").unwrap();
        assert!(!trusts(&deep) && trusts(&root));
        trust(&deep);
        assert!(trusts(&deep) && trusts(&root));
        store.revoke(&root).unwrap();
        assert!(!trusts(&deep) && !trusts(&root));
    }

    #[test]
    fn a_change_of_what_programs_run_or_obey_voids_the_mark() {
        let stage = Stage::new();
        let (root, store) = (stage.root(), &stage.store);
        let trusts = || store.trusts(&Programs::look(&root).unwrap()).unwrap();
        let trust = || {
            store
                .trust_programs(&Programs::look(&root).unwrap())
                .unwrap();
        };
        for name in crate::programs::NAMES {
            trust();
            fs::write(root.join(name), "a").unwrap();
            assert!(!trusts(), "{name} is new");
            trust();
            assert!(trusts(), "{name}");
            fs::write(root.join(name), "b").unwrap();
            assert!(!trusts(), "{name} changed");
            fs::remove_file(root.join(name)).unwrap();
            fs::create_dir_all(root.join(name).join("in")).unwrap();
            trust();
            fs::write(root.join(name).join("in/file"), "a").unwrap();
            assert!(!trusts(), "{name}/in/file is new");
            trust();
            fs::rename(root.join(name), root.join("away")).unwrap();
            std::os::unix::fs::symlink("away", root.join(name)).unwrap();
            assert!(!trusts(), "{name} is a link to the same");
            fs::remove_file(root.join(name)).unwrap();
            fs::remove_dir_all(root.join("away")).unwrap();
        }
        trust();
        fs::write(root.join("README.md"), "a").unwrap();
        assert!(trusts());
    }

    #[test]
    fn a_mark_of_the_owning_checkout_counts_in_its_worktrees_for_the_same_files() {
        let stage = Stage::new();
        let (root, store) = (stage.root(), &stage.store);
        let (work, back) = (stage.top.path().join("w"), root.join(".git/worktrees/w"));
        fs::create_dir_all(&back).unwrap();
        fs::create_dir(&work).unwrap();
        fs::write(root.join("opencode.json"), "{}").unwrap();
        fs::write(work.join("opencode.json"), "{}").unwrap();
        fs::write(work.join(".git"), format!("gitdir: {}\n", back.display())).unwrap();
        fs::write(back.join("commondir"), "../..\n").unwrap();
        for git_dir in [&back, &root.join(".git")] {
            fs::write(git_dir.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        let trusts = || store.trusts(&Programs::look(&work).unwrap()).unwrap();
        store
            .trust_programs(&Programs::look(&root).unwrap())
            .unwrap();
        assert!(!trusts(), "a folder that only says that it is a worktree");
        let named = format!("{}\n", work.join(".git").display());
        fs::write(back.join("gitdir"), named).unwrap();
        assert!(trusts());
        fs::write(work.join("opencode.json"), "[]").unwrap();
        assert!(!trusts());
    }

    #[test]
    fn only_what_was_allowed_is_allowed_and_only_at_its_path() {
        let stage = Stage::new();
        let (root, store) = (stage.root(), &stage.store);
        let allowed = |root: &Path| store.decided(root).unwrap().settings;
        assert!(allowed(&root).is_empty());
        store.allow(&root, &one("a"), &one("a")).unwrap();
        assert_eq!(allowed(&root), one("a"));
        assert!(allowed(stage.top.path()).is_empty());
        let link = stage.top.path().join("link");
        std::os::unix::fs::symlink(&root, &link).unwrap();
        assert_eq!(allowed(&link), one("a"));
        // Earlier consent is kept for settings that still exist, even after a refusal.
        let both: BTreeSet<Fingerprint> = [print("a"), print("b")].into();
        store.allow(&root, &one("b"), &both).unwrap();
        assert_eq!(allowed(&root), both);
        store.decline(&root, &print("c")).unwrap();
        let now = store.decided(&root).unwrap();
        assert_eq!(
            (now.settings, now.declined_settings),
            (both, Some(print("c")))
        );
        store.allow(&root, &one("c"), &one("c")).unwrap();
        let now = store.decided(&root).unwrap();
        assert_eq!((now.settings, now.declined_settings), (one("c"), None));
        // Decisions belong to a path: not to a moved folder, nor to a similar name.
        let moved = stage.top.path().join("moved");
        fs::rename(&root, &moved).unwrap();
        assert!(allowed(&moved).is_empty());
        for name in ["APP", "app ", "\u{ff41}pp", "a\u{301}pp"] {
            let other = stage.top.path().join(name);
            fs::create_dir(&other).unwrap();
            assert!(allowed(&other).is_empty(), "{name}");
        }
    }

    #[test]
    fn a_file_that_would_be_too_large_to_be_read_is_not_written() {
        let stage = Stage::new();
        let (root, store) = (stage.root(), &stage.store);
        store.allow(&root, &one("a"), &one("a")).unwrap();
        let many: BTreeSet<Fingerprint> = (0..BYTES_MAX / 64)
            .map(|n| Fingerprint(format!("{n:064}")))
            .collect();
        assert!(store.allow(&root, &many, &one("a")).is_err());
        assert_eq!(store.decided(&root).unwrap().settings, one("a"));
    }

    #[test]
    fn an_owner_is_accepted_for_one_folder_and_forgotten_with_it() {
        let stage = Stage::new();
        let (root, store) = (stage.root(), &stage.store);
        let accepts = |root: &Path, owner| store.accepts_owner(root, owner).unwrap();
        assert!(!accepts(&root, 7));
        store.accept_owners(&root, &[7].into()).unwrap();
        assert!(accepts(&root, 7) && !accepts(&root, 8));
        assert!(!accepts(stage.top.path(), 7));
        store.accept_owners(&root, &[8, 9].into()).unwrap();
        assert!(accepts(&root, 8) && accepts(&root, 9) && !accepts(&root, 7));
        assert_eq!(store.list().unwrap().len(), 1);
        // A deleted folder can be revoked too.
        let real = root.canonicalize().unwrap();
        fs::remove_dir(&root).unwrap();
        assert!(store.revoke(&real).unwrap());
        assert!(!store.revoke(&real).unwrap());
        assert!(store.list().unwrap().is_empty());
    }

    #[test]
    fn the_file_is_for_the_user_alone_and_another_is_not_believed() {
        let stage = Stage::new();
        let (root, store) = (stage.root(), &stage.store);
        store.allow(&root, &one("a"), &one("a")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(store.file()), 0o600);
        assert_eq!(mode(store.file().parent().unwrap()), 0o700);
        let refused =
            || matches!(store.decided(&root), Err(Error::Unsafe { why, .. }) if !why.is_empty());
        fs::set_permissions(store.file(), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(refused(), "writable by others");
        fs::set_permissions(store.file(), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(!refused());
        let folder = store.file().parent().unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(refused(), "in a folder that others can write to");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
        let kept = stage.top.path().join("kept");
        fs::rename(store.file(), &kept).unwrap();
        std::os::unix::fs::symlink(&kept, store.file()).unwrap();
        assert!(store.decided(&root).is_err(), "a link");
        fs::remove_file(store.file()).unwrap();
        fs::create_dir(store.file()).unwrap();
        assert!(store.decided(&root).is_err(), "a folder");
        fs::remove_dir(store.file()).unwrap();
        fs::write(store.file(), "{").unwrap();
        assert!(store.decided(&root).is_err(), "damaged");
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let stage = Stage::new();
        let roots: Vec<PathBuf> = (0..8)
            .map(|n| stage.top.path().join(n.to_string()))
            .collect();
        std::thread::scope(|scope| {
            for root in &roots {
                let store = &stage.store;
                scope.spawn(move || store.allow(root, &one("a"), &one("a")).unwrap());
            }
        });
        assert_eq!(stage.store.list().unwrap().len(), 8);
    }
}
