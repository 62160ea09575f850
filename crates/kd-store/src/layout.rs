//! All paths under `.kd`. The only file that knows them.
//!
//! Input: a root and a branch, which `find.rs` finds. Output: the path of everything that is stored.

mod current;
mod names;

pub use names::is_ours;
pub(crate) use names::{INDEX_FILE, KD, is_base, split};

use crate::beneath::{FOLDER_MODE, Folder, Item, Kind};
use crate::bounds::{self, Bound};
use crate::elsewhere::Elsewhere;
use crate::error::Error;
use crate::git::Checkout;
use crate::json;
use crate::lock::{self, Lock};
use crate::name::normalise;
use kd_core::clean::clean_text;
use kd_core::ids::{SeatName, ThreadId};
use kd_core::media::CopyName;
use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The folder of batches: one folder for each, with its threads.
const BATCHES: &str = "batches";
/// The description of a thread, inside its folder.
pub(crate) const THREAD_FILE: &str = "thread.json";
/// The lock of all our writers of a thread.
pub(crate) const THREAD_LOCK: &str = ".kd-thread.lock";
/// The folder in which messages are written before they have a number.
pub(crate) const SPOOL_FOLDER: &str = ".kd-new";
/// The branch's state, inside its folder.
pub(crate) const STATE_FILE: &str = "state.json";
/// A malformed state that was replaced.
const TORN_STATE_FILE: &str = "state.torn.json";
/// The log of a thread's events.
pub(crate) const EVENTS_FILE: &str = ".kd-events.jsonl";

/// Prefix of the queued messages of a session, in the user's state folder.
const QUEUE_PREFIX: &str = "queue-";
const QUEUE_SUFFIX: &str = ".jsonl";
/// kingdom-cli's queue of a chat.
pub(crate) const PENDING_FILE: &str = ".pending-messages.json";
/// Files that `fsck` had to move away.
pub(crate) const LOST_FOLDER: &str = ".kd-lost";

const STREAM_PREFIX: &str = ".stream-";
const STREAM_SUFFIX: &str = ".jsonl";

/// Lists what git must not track, in `.kd`.
const GITIGNORE_FILE: &str = ".gitignore";
/// The paths that git ignores, and the exceptions that it tracks. The same lines as in kingdom-cli, in the same order.
const GITIGNORE: &str = "\
# Operational state (not tracked)
*.json
*.json.lock
.*.lock
*.jsonl
*.log
**/logs/
**/sessions/
worktrees/
current

# Config file is tracked
!config.json

# Forum (not tracked)
forum.db*

# Batches (not tracked)
batches/
";
/// Tracked although an earlier line excludes it.
const TRACKED: &str = "!config.json";

/// The paths of one project and branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(crate) root: PathBuf,
    /// Spelled as in git.
    pub(crate) branch: String,
    /// Spelled as in folder names.
    pub(crate) branch_name: String,
    /// The folder whose `.kd` contains the configuration.
    pub(crate) config_root: PathBuf,
    /// Whether the user owns `.kd`, and did not set it with `KD_BASE`.
    pub(crate) own: bool,
    /// The reason why it is in the user's data folder, if it is.
    pub(crate) elsewhere: Option<Elsewhere>,
    /// The folder with the user's own state of this project, outside of the project.
    pub(crate) state: Option<PathBuf>,
    /// The batch whose threads these paths are for, in place of the branch's.
    pub(crate) batch: Option<String>,
    /// Whether other machines create threads of the same batch: short ids would collide.
    pub(crate) long_ids: bool,
    /// The worker's own folder, in the folder of batches, that takes the place of that folder.
    pub(crate) passing: Option<String>,
}

/// A thread's folder that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Whether it is archived.
    pub archived: bool,
    /// The branch, spelled as in folder names.
    pub branch: String,
    /// The thread.
    pub id: ThreadId,
    /// Its folder.
    pub path: PathBuf,
}

impl Place {
    /// Returns whether nothing but a log is in the folder: a process wrote the end of it after another one had removed the
    /// thread. A new thread has its `thread.json` before its log.
    pub fn is_log_alone(&self) -> bool {
        let Ok(Some(folder)) = Folder::find(&self.path) else {
            return false;
        };
        folder.items().is_ok_and(|items| {
            let is_log = |item: &Item| item.name == EVENTS_FILE;
            items.iter().any(is_log)
                && (items.iter()).all(|item| is_log(item) || item.name == THREAD_LOCK)
        })
    }
}

impl Layout {
    pub(crate) fn kept_elsewhere(self, why: Elsewhere) -> Layout {
        Layout {
            elsewhere: Some(why),
            ..self
        }
    }

    /// Returns whether it is in the user's data folder.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// Returns why it is in the user's data folder, if it is.
    pub fn elsewhere(&self) -> Option<&Elsewhere> {
        self.elsewhere.as_ref()
    }

    /// Returns whether the folder that contains `.kd` is in a checkout of git.
    pub fn is_in_checkout(&self) -> bool {
        Checkout::find(&self.root).is_some()
    }

    /// Returns the folder that contains `.kd`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the `.kd` folder.
    pub fn kd(&self) -> PathBuf {
        self.root.join(KD)
    }

    /// Returns the branch, as git spells it.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// Returns the same paths for another branch.
    ///
    /// # Errors
    /// [`Error::BadName`] if the branch's name has no ASCII letter or digit.
    pub fn with_branch(&self, branch: &str) -> Result<Layout, Error> {
        Ok(Layout {
            branch_name: normalise(branch, "branch")?,
            branch: branch.to_owned(),
            ..self.clone()
        })
    }

    /// Returns the project's configuration. A linked worktree uses the `.kd` of the owning checkout, if there is one.
    pub fn config_file(&self) -> PathBuf {
        self.config_root.join(KD).join("config.json")
    }

    /// Returns the project's configuration that is not committed.
    pub fn local_config_file(&self) -> PathBuf {
        self.config_root.join(KD).join("config.local.json")
    }

    /// Returns the memory shared by all deliberations.
    pub fn memory_file(&self) -> PathBuf {
        self.kd().join("memory.json")
    }

    /// Returns the folder of the user's own role texts, one Markdown file each.
    pub fn roles_folder(&self) -> PathBuf {
        self.config_root.join(KD).join("roles")
    }

    /// Returns the forum's database, unless another is configured.
    pub fn forum_file(&self) -> PathBuf {
        self.kd().join("forum.db")
    }

    /// Returns the folder of the forum agents' personas.
    pub fn forum_agents_folder(&self) -> PathBuf {
        self.kd().join("forum").join("agents")
    }

    /// Returns the folder of forum logs.
    pub fn forum_logs_folder(&self) -> PathBuf {
        self.kd().join("logs")
    }

    /// Returns the same paths for the threads of a batch: its folder takes the place of the branch's.
    #[must_use]
    pub fn in_batch(&self, batch: &str) -> Layout {
        Layout {
            batch: Some(batch.to_owned()),
            ..self.clone()
        }
    }

    /// Returns the same for a batch whose threads are also created by other machines.
    #[must_use]
    pub fn in_fleet(&self, batch: &str) -> Layout {
        Layout {
            long_ids: true,
            ..self.in_batch(batch)
        }
    }

    /// Returns the same for threads that a worker creates: they are in its own folder. See [`crate::passing`].
    #[must_use]
    pub fn passing(&self, folder: &str) -> Layout {
        Layout {
            passing: Some(folder.to_owned()),
            ..self.clone()
        }
    }

    /// Returns the folder of this branch, or of the batch.
    pub fn branch_folder(&self) -> PathBuf {
        let batches = self.batches_folder();
        match (&self.batch, &self.passing) {
            (Some(batch), Some(folder)) => batches.join(folder).join(batch),
            (Some(batch), None) => batches.join(batch),
            (None, _) => self.kd().join("branches").join(&self.branch_name),
        }
    }

    /// Returns the folder of all batches.
    pub fn batches_folder(&self) -> PathBuf {
        self.kd().join(BATCHES)
    }

    /// Returns the threads of all batches, by batch and id. [`Layout::all_threads`] leaves them out.
    ///
    /// # Errors
    /// If a folder of batches or threads cannot be listed.
    pub fn batch_threads(&self) -> Result<Vec<Place>, Error> {
        let mut all = Vec::new();
        for (batch, path) in folders(&self.batches_folder())? {
            all.extend(places(&path.join("threads"), &batch, false)?);
        }
        Ok(all)
    }

    /// Returns the branch's state: the current thread.
    pub fn state_file(&self) -> PathBuf {
        self.branch_folder().join(STATE_FILE)
    }

    /// Returns the folder of the branch's threads.
    pub fn threads_folder(&self) -> PathBuf {
        self.branch_folder().join("threads")
    }

    /// Returns the folder of the members' sessions on this branch.
    pub fn sessions_folder(&self) -> PathBuf {
        sessions_of(&self.branch_folder())
    }

    /// Returns the draft of a message in a thread of this branch, of the window with this number, from 1. `None` if the
    /// user has no state folder.
    pub fn draft_file(&self, id: &ThreadId, window: usize) -> Option<PathBuf> {
        let name = match window {
            1 => format!("{}.md", id.0),
            _ => format!("{}.{window}.md", id.0),
        };
        Some(self.branch_state()?.join("drafts").join(name))
    }

    /// Returns the history of messages sent from this branch's chats, one JSON string per line, oldest first. `None` if
    /// the user has no state folder.
    pub fn sent_file(&self) -> Option<PathBuf> {
        Some(self.branch_state()?.join("sent.jsonl"))
    }

    /// Returns the file for text copied from a chat if the terminal has no clipboard. `None` if the user has no state
    /// folder.
    pub fn copied_file(&self) -> Option<PathBuf> {
        Some(self.branch_state()?.join("copied.md"))
    }

    /// Returns the folder of a thread's queued messages. `None` if the user has no state folder.
    pub fn queue_folder(&self, thread: &Path) -> Option<PathBuf> {
        let below = thread.strip_prefix(self.kd()).ok()?;
        Some(self.state.as_ref()?.join(below))
    }

    fn branch_state(&self) -> Option<PathBuf> {
        let state = self.state.as_ref()?;
        Some(match &self.batch {
            Some(batch) => state.join(BATCHES).join(batch),
            None => state.join("branches").join(&self.branch_name),
        })
    }

    /// Returns the file of a member's session on this branch.
    pub fn session_file(&self, seat: &SeatName) -> PathBuf {
        session_file_in(&self.sessions_folder(), seat)
    }

    /// Returns the output of a round that ran in the background.
    pub fn background_log(&self, thread: &ThreadId) -> PathBuf {
        self.branch_folder()
            .join("logs")
            .join(format!("ask-{thread}.log"))
    }

    /// Returns the branch's threads, by id.
    ///
    /// # Errors
    /// If the folder of the threads cannot be listed.
    pub fn threads(&self) -> Result<Vec<Place>, Error> {
        places(&self.threads_folder(), &self.branch_name, false)
    }

    /// Returns the thread folders of all branches.
    pub(crate) fn threads_folders(&self) -> Result<Vec<PathBuf>, Error> {
        let branches = folders(&self.kd().join("branches"))?.into_iter();
        Ok(branches.map(|(_, path)| path.join("threads")).collect())
    }

    /// Returns the threads of all branches, and of the archive if requested: by branch and id, the archive last.
    ///
    /// # Errors
    /// If a folder of branches or threads cannot be listed.
    pub fn all_threads(&self, archive: bool) -> Result<Vec<Place>, Error> {
        let mut all = Vec::new();
        let mut roots = vec![(self.kd().join("branches"), false)];
        if archive {
            roots.push((self.kd().join("archive"), true));
        }
        for (root, archived) in roots {
            for (branch, path) in folders(&root)? {
                all.extend(places(&path.join("threads"), &branch, archived)?);
            }
        }
        all.sort();
        Ok(all)
    }

    /// Finds a thread by its id or a unique prefix of it. Searches this branch first, then all others and the archive,
    /// then the batches.
    ///
    /// # Errors
    /// [`Error::NoThread`] or [`Error::AmbiguousThread`] if not exactly one thread fits, [`Error::Link`] if the thread
    /// is a link; also if the threads cannot be listed.
    pub fn resolve(&self, wanted: &str) -> Result<Place, Error> {
        let here = self.threads()?;
        match self.pick(wanted, &here) {
            Err(Error::NoThread { .. }) => {}
            found => return found,
        }
        match self.pick(wanted, &self.all_threads(true)?) {
            Err(Error::NoThread { .. }) => {}
            found => return found,
        }
        match self.pick(wanted, &self.batch_threads()?) {
            // A thread that is a link is not listed: explain that.
            Err(Error::NoThread { wanted, path, .. }) if path.join(&wanted).is_symlink() => {
                Err(Error::Link {
                    path: path.join(wanted),
                })
            }
            Err(Error::NoThread { wanted, path, .. }) => {
                // The newest last.
                let mut here = here;
                here.sort_by_cached_key(|place| {
                    let meta = place.path.symlink_metadata();
                    meta.and_then(|meta| meta.modified()).ok()
                });
                Err(Error::NoThread {
                    wanted,
                    path,
                    near: here.into_iter().map(|p| p.id.0).collect(),
                })
            }
            found => found,
        }
    }

    fn pick(&self, wanted: &str, places: &[Place]) -> Result<Place, Error> {
        let wanted = wanted.trim();
        if let Some(exact) = places.iter().find(|p| p.id.0 == wanted) {
            return Ok(exact.clone());
        }
        let fits: Vec<_> = places
            .iter()
            .filter(|p| !wanted.is_empty() && p.id.0.starts_with(wanted))
            .collect();
        match fits.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(Error::NoThread {
                wanted: wanted.to_owned(),
                path: self.threads_folder(),
                near: Vec::new(),
            }),
            many => Err(Error::AmbiguousThread {
                wanted: wanted.to_owned(),
                path: self.threads_folder(),
                candidates: many.iter().map(|p| p.id.0.clone()).collect(),
            }),
        }
    }

    /// Returns the branch's current thread, if one is set and still exists.
    ///
    /// # Errors
    /// If the state file cannot be read, or the threads cannot be listed.
    pub fn current_thread(&self) -> Result<Option<Place>, Error> {
        let state: Option<Map<String, Value>> = match json::read(&self.state_file()) {
            // A torn file names no thread: the user chooses one.
            Err(Error::Json { .. }) => None,
            read => read?,
        };
        let Some(Value::String(id)) = state.and_then(|mut s| s.remove("current_thread")) else {
            return Ok(None);
        };
        Ok(self.threads()?.into_iter().find(|place| place.id.0 == id))
    }

    /// Sets the branch's current thread. Other keys of the state are kept; a malformed file is kept as
    /// `state.torn.json`. A batch has no current thread, because its questions are asked in parallel.
    ///
    /// While another thread of this process does the same, it returns at once, and that thread writes the newest ID: a
    /// server that begins hundreds of threads at the same time writes a few of them.
    ///
    /// # Errors
    /// If the state file is locked for too long, or cannot be read or written. A caller whose ID another thread writes is not
    /// told whether that succeeded; the caller of that thread is, of its last write.
    pub fn set_current_thread(&self, id: &ThreadId) -> Result<(), Error> {
        if self.batch.is_some() {
            return Ok(());
        }
        let Some(turn) = current::Turn::take(self.state_file(), id) else {
            return Ok(());
        };
        let mut written = self.write_current_thread(id);
        while let Some(newer) = turn.newer() {
            written = self.write_current_thread(&newer);
        }
        written
    }

    fn write_current_thread(&self, id: &ThreadId) -> Result<(), Error> {
        self.protect();
        let folder = Folder::make(&self.branch_folder())?;
        let _lock = Lock::take_beside(&folder, STATE_FILE, lock::WAIT)?;
        let mut state: Map<String, Value> = match json::read_in(&folder, STATE_FILE, bounds::STATE)
        {
            Err(Error::Json { .. }) => {
                let torn = folder.read(STATE_FILE, bounds::STATE)?;
                folder.replace(TORN_STATE_FILE, &torn.unwrap_or_default())?;
                Map::new()
            }
            read => read?.unwrap_or_default(),
        };
        state
            .entry("branch")
            .or_insert_with(|| self.branch.clone().into());
        state.insert("current_thread".into(), id.0.clone().into());
        json::write_in(&folder, STATE_FILE, &state, bounds::STATE)
    }

    /// Removes the folder of a thread that could not be started, as far as possible.
    pub(crate) fn discard_thread(&self, id: &ThreadId) {
        if let Ok(Some(threads)) = Folder::find(&self.threads_folder()) {
            let _ = threads.discard(&id.0);
        }
    }

    /// Opens the folder of the branch's threads for a new one, creating it if it is missing. Protects `.kd`.
    pub(crate) fn make_threads_folder(&self) -> Result<Folder, Error> {
        self.protect();
        Folder::make(&self.threads_folder())
    }

    /// If `.kd` is the user's own, removes other users' access to it and adds a missing `.gitignore`, as far as possible.
    /// It may have been made by hand, or come from a clone. Called before anything is written for a thread.
    pub fn protect(&self) {
        if self.own {
            close_kd(&self.root);
        }
    }

    /// Creates the folder of a new thread: `council-` and four random hex digits, more if those are taken.
    pub(crate) fn new_thread_folder(&self) -> Result<(ThreadId, Folder), Error> {
        let threads = self.make_threads_folder()?;
        let first = if self.long_ids { TRIES_SHORT } else { 0 };
        for attempt in first..24 {
            let id = new_id(attempt)?;
            if threads.create_folder(&id.0)? {
                let folder = threads.make_folder(&id.0)?;
                return Ok((id, folder));
            }
        }
        Err(Error::Crowded {
            path: threads.path().to_path_buf(),
            tries: 24,
        })
    }
}

/// The expected type of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A folder.
    Folder,
    /// A regular file; its maximum size if it is read as a whole.
    File(Option<Bound>),
}

/// Lists the files and folders directly in `.kd` that configure a project: their content is trusted as the user's own.
pub(crate) fn first_level() -> impl Iterator<Item = &'static str> {
    [
        "config.json",
        "config.local.json",
        "memory.json",
        "current",
        "roles",
        "forum",
        "forum/agents",
        "forum.db",
        "branches",
        "archive",
        BATCHES,
    ]
    .into_iter()
}

/// Returns the object that is expected at a path below `.kd`; `None` if nothing of `kd` belongs there.
pub(crate) fn expects(below: &Path) -> Option<Expected> {
    let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
    let parts = parts?;
    let any = Expected::File(None);
    let most = |bound| Expected::File(Some(bound));
    let last = *parts.last()?;
    let ends = |end: &str| last.ends_with(end) && !last.starts_with('.');
    if let [
        "branches" | "archive" | BATCHES,
        _,
        "threads",
        _,
        inside @ ..,
    ] = parts.as_slice()
    {
        return match inside {
            [] if last.starts_with('.') => None,
            [] => Some(Expected::Folder),
            [name] => expects_in_thread(name),
            _ => None,
        };
    }
    Some(match parts.as_slice() {
        ["branches" | "archive" | BATCHES | "roles" | "forum" | "logs"] | ["forum", "agents"] => {
            Expected::Folder
        }
        ["logs", name] if is_runner_log(name) => any,
        ["config.json" | "config.local.json"] => most(bounds::CONFIG),
        ["memory.json"] => most(bounds::MEMORY),
        ["current"] => most(bounds::CURRENT),
        [".gitignore" | "forum.db" | "forum.db-wal" | "forum.db-shm" | "forum.db-journal"] => any,
        // A copy from before a schema change.
        [name] if name.starts_with("forum.db.form-") => any,
        ["roles", _] if ends(".md") => most(bounds::ROLE),
        ["forum", "agents", _] if ends(".yaml") || ends(".yml") => most(bounds::PERSONA),
        ["branches" | "archive" | BATCHES, _] if !last.starts_with('.') => Expected::Folder,
        [
            "branches" | "archive" | BATCHES,
            _,
            "threads" | "sessions" | "logs" | "drafts",
        ] => Expected::Folder,
        ["branches" | "archive" | BATCHES, _, "state.json"] => most(bounds::STATE),
        [
            "branches" | "archive" | BATCHES,
            _,
            "sent.jsonl" | "copied.md",
        ] => any,
        ["branches" | "archive" | BATCHES, _, "sessions", _] if ends(".json") => {
            most(bounds::SESSION)
        }
        ["branches" | "archive" | BATCHES, _, "logs", _] if ends(".log") => any,
        ["branches" | "archive" | BATCHES, _, "drafts", _] if ends(".md") => most(bounds::DRAFT),
        _ if last.starts_with('.') && last.ends_with(".lock") => any,
        _ => return None,
    })
}

/// Returns whether a name in `logs` is a forum's log, current or rotated.
fn is_runner_log(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    name.starts_with("runner") && name.ends_with(".log")
}

/// Returns the object that is expected under a name in a thread's folder; `None` if nothing of `kd` belongs there.
pub(crate) fn expects_in_thread(name: &str) -> Option<Expected> {
    let file = Path::new(name);
    Some(match name {
        THREAD_FILE => Expected::File(Some(bounds::META)),
        INDEX_FILE => Expected::File(Some(bounds::INDEX)),
        PENDING_FILE => Expected::File(Some(bounds::PENDING)),
        EVENTS_FILE | THREAD_LOCK => Expected::File(None),
        SPOOL_FOLDER | LOST_FOLDER => Expected::Folder,
        _ if stream_member(file).is_some() || is_stray_queue(name) => Expected::File(None),
        _ if name.starts_with('.') && name.ends_with(".lock") => Expected::File(None),
        _ if crate::index::entry(name).is_some() => Expected::File(Some(bounds::MESSAGE)),
        _ if CopyName::parse(name).is_some() => Expected::File(Some(bounds::COPY)),
        _ => return None,
    })
}

/// Returns whether a path below `.kd` is a thread's folder.
pub(crate) fn is_thread(below: &Path) -> bool {
    below.components().count() == 4 && below.iter().nth(2) == Some("threads".as_ref())
}

/// Returns the folder of the members' sessions, in a branch's folder.
pub(crate) fn sessions_of(branch: &Path) -> PathBuf {
    branch.join("sessions")
}

/// Returns the file of a member's session, in the sessions folder.
pub(crate) fn session_file_in(sessions: &Path, seat: &SeatName) -> PathBuf {
    sessions.join(format!("{seat}.json"))
}

/// Returns the branch folder of a thread's folder: `<branch>/threads/<id>`.
pub(crate) fn branch_of(thread: &Path) -> &Path {
    let threads = thread.parent().unwrap_or(thread);
    threads.parent().unwrap_or(threads)
}

/// Returns the stream file of a member in a thread's folder.
pub(crate) fn stream_file(thread: &Path, member: &str) -> PathBuf {
    thread.join(stream_name(member))
}

/// Returns the name of a member's stream file.
pub(crate) fn stream_name(member: &str) -> String {
    format!("{STREAM_PREFIX}{member}{STREAM_SUFFIX}")
}

/// Returns the name of the file whose lock is a member's lease.
pub(crate) fn turn_lock(member: &str) -> String {
    format!(".turn-{member}.lock")
}

/// Returns the file of a session's queued messages, in a thread's queue folder.
pub(crate) fn queue_file(folder: &Path, session: &str) -> PathBuf {
    folder.join(format!("{QUEUE_PREFIX}{session}{QUEUE_SUFFIX}"))
}

/// Returns the lock for all queued messages of a thread.
pub(crate) fn queue_lock(folder: &Path) -> PathBuf {
    folder.join(".queue.lock")
}

/// Returns whether a name in a thread's folder is an old queue: versions before 0.1 stored messages there, which are
/// never sent.
pub(crate) fn is_stray_queue(name: &str) -> bool {
    name.starts_with(".kd-queue-") && name.ends_with(QUEUE_SUFFIX)
}

/// Returns whether a file contains queued messages of a session.
pub(crate) fn is_queue_file(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(QUEUE_PREFIX) && name.ends_with(QUEUE_SUFFIX))
}

/// Returns the member of a stream file.
pub fn stream_member(file: &Path) -> Option<&str> {
    file.file_name()?
        .to_str()?
        .strip_prefix(STREAM_PREFIX)?
        .strip_suffix(STREAM_SUFFIX)
}

/// Creates `.kd`, accessible only to the user, with a `.gitignore`. If `.kd` exists, removes the access of other users
/// and adds a missing `.gitignore`.
pub(crate) fn make_kd(root: &Path) -> Result<(), Error> {
    let kd = root.join(KD);
    match fs::DirBuilder::new().mode(0o700).create(&kd) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && kd.is_dir() => {}
        done => done.map_err(Error::io("create", &kd))?,
    }
    Folder::open(&kd).and_then(|kd| close(&kd).and_then(|()| ignore(&kd)))
}

/// Removes other users' access to an existing `.kd` and adds a missing `.gitignore`, as far as possible: on a read-only
/// file system nothing changes.
pub(crate) fn close_kd(root: &Path) {
    if let Ok(kd) = Folder::open(&root.join(KD)) {
        let _ = close(&kd);
        let _ = ignore(&kd);
    }
}

fn close(kd: &Folder) -> Result<(), Error> {
    let failed = |e| Error::io("close to others", kd.path())(e);
    let meta = kd.as_file().metadata().map_err(failed)?;
    if meta.mode() & 0o077 == 0 {
        return Ok(());
    }
    rustix::fs::fchmod(kd, FOLDER_MODE).map_err(|e| failed(e.into()))
}

/// Writes `.gitignore` atomically: an empty one would never be completed. Adds missing lines to an existing one; a line
/// with `!` before it means that the user wants the file tracked.
fn ignore(kd: &Folder) -> Result<(), Error> {
    let Some(bytes) = kd.read(GITIGNORE_FILE, bounds::GITIGNORE)? else {
        return kd.replace(GITIGNORE_FILE, GITIGNORE.as_bytes());
    };
    let text = String::from_utf8_lossy(&bytes);
    let has = |line: &str| {
        text.lines()
            .any(|one| one.trim() == line || one.trim().strip_prefix('!') == Some(line))
    };
    let missing: Vec<&str> = GITIGNORE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '!']) && !has(line))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut bytes = bytes;
    let gap = if bytes.is_empty() || bytes.ends_with(b"\n") {
        "\n"
    } else {
        "\n\n"
    };
    let added = format!("{gap}# Added by kd: private\n{}\n", missing.join("\n"));
    bytes.extend_from_slice(added.as_bytes());
    if missing.contains(&"*.json") {
        bytes.extend_from_slice(format!("{TRACKED}\n").as_bytes());
    }
    kd.replace(GITIGNORE_FILE, &bytes)
}

fn places(threads: &Path, branch: &str, archived: bool) -> Result<Vec<Place>, Error> {
    Ok(folders(threads)?
        .into_iter()
        .map(|(id, path)| Place {
            archived,
            branch: branch.to_owned(),
            id: ThreadId(id),
            path,
        })
        .collect())
}

/// Lists the folders in a folder, by name; empty if it does not exist. Skips hidden ones, and names that no program
/// assigns: see [`is_given`].
fn folders(path: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let Some(folder) = Folder::find(path)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for item in folder.items()? {
        if let Ok(name) = item.name.into_string()
            && !name.starts_with('.')
            && item.kind == Kind::Folder
            && is_given(&name)
        {
            let path = path.join(&name);
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns whether a program could have assigned a folder name. Names appear in output and in commands for the user to
/// type, so they must contain nothing that a terminal interprets or hides or a shell splits, and not start like an
/// option.
pub(crate) fn is_given(name: &str) -> bool {
    let is_safe =
        |c: char| !(c.is_ascii_punctuation() || c.is_control()) || "-_.+@,:=%".contains(c);
    clean_text(name) == name && !name.starts_with('-') && name.chars().all(is_safe)
}

/// Attempts with a short id.
const TRIES_SHORT: u32 = 8;

/// Generates an id for a new thread. With thousands of threads, few of the 65,536 short ids are free: later attempts
/// use longer ones.
pub(crate) fn new_id(attempt: u32) -> Result<ThreadId, Error> {
    let digits = if attempt < TRIES_SHORT { 4 } else { 12 };
    Ok(ThreadId(format!("council-{}", &chance()?[..digits])))
}

/// Returns sixteen random hex digits from the system.
pub(crate) fn chance() -> Result<String, Error> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_err(|e| {
        Error::io("read", Path::new("random bytes"))(std::io::Error::other(e.to_string()))
    })?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
