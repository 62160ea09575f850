//! Where everything stands under `.kd`. The only file that knows paths.
//!
//! In: a root and a branch, which `find.rs` searches for. Out: the path of everything that is kept.

use crate::beneath::{FOLDER_MODE, Folder, Kind};
use crate::bounds::{self, Bound};
use crate::error::Error;
use crate::find::Elsewhere;
use crate::json;
use crate::lock::{self, Lock};
use crate::name::normalise;
use kd_core::clean::clean_text;
use kd_core::ids::{SeatName, ThreadId};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a thread is described in, inside its folder.
pub(crate) const THREAD_FILE: &str = "thread.json";
/// The lock of all our writers of a thread.
pub(crate) const THREAD_LOCK: &str = ".kd-thread.lock";
/// Where messages are written before they have a number.
pub(crate) const SPOOL_FOLDER: &str = ".kd-new";
/// The branch's state, inside its folder.
pub(crate) const STATE_FILE: &str = "state.json";
/// The index of a thread's messages.
pub(crate) const INDEX_FILE: &str = ".kd-index.jsonl";
/// The log of a thread's events.
pub(crate) const EVENTS_FILE: &str = ".kd-events.jsonl";

/// The messages of one session that wait, in the user's state folder.
const QUEUE_PREFIX: &str = "queue-";
const QUEUE_SUFFIX: &str = ".jsonl";
/// The other program's queue of a chat.
pub(crate) const PENDING_FILE: &str = ".pending-messages.json";
/// What `fsck` could not leave where it was.
pub(crate) const LOST_FOLDER: &str = ".kd-lost";

/// The folder of a project.
pub(crate) const KD: &str = ".kd";
/// Working copies of kingdom-cli.
const WORKTREES_FOLDER: &str = "worktrees";
const STREAM_PREFIX: &str = ".stream-";
const STREAM_SUFFIX: &str = ".jsonl";

/// What git must not track, in `.kd`.
const GITIGNORE_FILE: &str = ".gitignore";
/// What git must not track, and what it must. The lines that other programs of the house write, in their order.
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
";
/// What is tracked although a line above says otherwise.
const TRACKED: &str = "!config.json";

/// The environment, as a function: the library reads none by itself.
pub type Env<'e> = &'e dyn Fn(&str) -> Option<OsString>;

/// The places of one project and branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(crate) root: PathBuf,
    /// As git spells it.
    pub(crate) branch: String,
    /// As folders spell it.
    pub(crate) branch_name: String,
    /// The folder whose `.kd` holds the configuration.
    pub(crate) config_root: PathBuf,
    /// Whether the user owns `.kd`, and did not name it by `KD_BASE`.
    pub(crate) own: bool,
    /// Why it is in the user's data folder.
    pub(crate) elsewhere: Option<Elsewhere>,
    /// The user's own state of this project, outside it.
    pub(crate) state: Option<PathBuf>,
}

/// A thread's folder, found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Whether it was put into the archive.
    pub archived: bool,
    /// The branch, as folders spell it.
    pub branch: String,
    /// The thread.
    pub id: ThreadId,
    /// Its folder.
    pub path: PathBuf,
}

impl Layout {
    pub(crate) fn kept_elsewhere(self, why: Elsewhere) -> Layout {
        Layout {
            elsewhere: Some(why),
            ..self
        }
    }

    /// Whether it is in the user's data folder.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// Why it is in the user's data folder, if it is.
    pub fn elsewhere(&self) -> Option<&Elsewhere> {
        self.elsewhere.as_ref()
    }

    /// The folder that holds `.kd`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The `.kd` folder.
    pub fn kd(&self) -> PathBuf {
        self.root.join(KD)
    }

    /// The branch, as git spells it.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// The same places on another branch.
    pub fn with_branch(&self, branch: &str) -> Result<Layout, Error> {
        Ok(Layout {
            branch_name: normalise(branch, "branch")?,
            branch: branch.to_owned(),
            ..self.clone()
        })
    }

    /// The project's configuration. In a linked worktree it is the owning checkout's, where that has one.
    pub fn config_file(&self) -> PathBuf {
        self.config_root.join(KD).join("config.json")
    }

    /// The project's configuration that is not committed.
    pub fn local_config_file(&self) -> PathBuf {
        self.config_root.join(KD).join("config.local.json")
    }

    /// What is remembered across deliberations.
    pub fn memory_file(&self) -> PathBuf {
        self.kd().join("memory.json")
    }

    /// The king's own words for roles, a Markdown file each.
    pub fn roles_folder(&self) -> PathBuf {
        self.config_root.join(KD).join("roles")
    }

    /// The forum's database, where no other is configured.
    pub fn forum_file(&self) -> PathBuf {
        self.kd().join("forum.db")
    }

    /// The personas of the forum's agents.
    pub fn forum_agents_folder(&self) -> PathBuf {
        self.kd().join("forum").join("agents")
    }

    /// The logs of the forums.
    pub fn forum_logs_folder(&self) -> PathBuf {
        self.kd().join("logs")
    }

    /// Everything of this branch.
    pub fn branch_folder(&self) -> PathBuf {
        self.kd().join("branches").join(&self.branch_name)
    }

    /// The branch's state: the current thread.
    pub fn state_file(&self) -> PathBuf {
        self.branch_folder().join(STATE_FILE)
    }

    /// The branch's threads.
    pub fn threads_folder(&self) -> PathBuf {
        self.branch_folder().join("threads")
    }

    /// What is kept of the members' sessions on this branch.
    pub fn sessions_folder(&self) -> PathBuf {
        sessions_of(&self.branch_folder())
    }

    /// The draft of a message in a thread of this branch. `None` where the user has no state folder.
    pub fn draft_file(&self, id: &ThreadId) -> Option<PathBuf> {
        let name = format!("{}.md", id.0);
        Some(self.branch_state()?.join("drafts").join(name))
    }

    /// The messages sent from this branch's chats, one JSON text a line, oldest first. `None` where the user has no
    /// state folder.
    pub fn sent_file(&self) -> Option<PathBuf> {
        Some(self.branch_state()?.join("sent.jsonl"))
    }

    /// Text copied from a chat where the terminal has no clipboard. `None` where the user has no state folder.
    pub fn copied_file(&self) -> Option<PathBuf> {
        Some(self.branch_state()?.join("copied.md"))
    }

    /// The folder of the messages that wait in a thread. `None` where the user has no state folder.
    pub fn queue_folder(&self, thread: &Path) -> Option<PathBuf> {
        let below = thread.strip_prefix(self.kd()).ok()?;
        Some(self.state.as_ref()?.join(below))
    }

    fn branch_state(&self) -> Option<PathBuf> {
        let state = self.state.as_ref()?;
        Some(state.join("branches").join(&self.branch_name))
    }

    /// What is kept of a member's session on this branch.
    pub fn session_file(&self, seat: &SeatName) -> PathBuf {
        session_file_in(&self.sessions_folder(), seat)
    }

    /// The raw output of a member's program.
    pub fn log_file(&self, seat: &SeatName) -> PathBuf {
        self.branch_folder()
            .join("logs")
            .join(format!("council-{seat}.log"))
    }

    /// What a round said that was asked in the background.
    pub fn background_log(&self, thread: &ThreadId) -> PathBuf {
        self.branch_folder()
            .join("logs")
            .join(format!("ask-{thread}.log"))
    }

    /// The branch's threads, by id.
    pub fn threads(&self) -> Result<Vec<Place>, Error> {
        places(&self.threads_folder(), &self.branch_name, false)
    }

    /// The folders of threads of all branches.
    pub(crate) fn threads_folders(&self) -> Result<Vec<PathBuf>, Error> {
        let branches = folders(&self.kd().join("branches"))?.into_iter();
        Ok(branches.map(|(_, path)| path.join("threads")).collect())
    }

    /// The threads of all branches, and of the archive if asked: by branch and id, the archive last.
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

    /// The thread that a text means: its id, or the beginning of just one. This branch first, then all others and the
    /// archive.
    pub fn resolve(&self, wanted: &str) -> Result<Place, Error> {
        let here = self.threads()?;
        match self.pick(wanted, &here) {
            Err(Error::NoThread { .. }) => {}
            found => return found,
        }
        match self.pick(wanted, &self.all_threads(true)?) {
            // A thread that is a link is not listed: say why.
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

    /// The branch's current thread, if one is set and still there.
    pub fn current_thread(&self) -> Result<Option<Place>, Error> {
        let state: Option<Map<String, Value>> = json::read(&self.state_file())?;
        let Some(Value::String(id)) = state.and_then(|mut s| s.remove("current_thread")) else {
            return Ok(None);
        };
        Ok(self.threads()?.into_iter().find(|place| place.id.0 == id))
    }

    /// Makes a thread the branch's current one. Other keys of the state stay as they are.
    pub fn set_current_thread(&self, id: &ThreadId) -> Result<(), Error> {
        let folder = Folder::make(&self.branch_folder())?;
        let _lock = Lock::take_beside(&folder, STATE_FILE, lock::WAIT)?;
        let mut state: Map<String, Value> =
            json::read_in(&folder, STATE_FILE, bounds::STATE)?.unwrap_or_default();
        state
            .entry("branch")
            .or_insert_with(|| self.branch.clone().into());
        state.insert("current_thread".into(), id.0.clone().into());
        json::write_in(&folder, STATE_FILE, &state, bounds::STATE)
    }

    /// Removes the folder of a thread that could not be begun, as far as that can be done.
    pub(crate) fn discard_thread(&self, id: &ThreadId) {
        if let Ok(Some(threads)) = Folder::find(&self.threads_folder()) {
            let _ = threads.discard(&id.0);
        }
    }

    /// Makes the folder of a new thread: `council-` and four hex digits by chance, more when those are taken.
    pub(crate) fn new_thread_folder(&self) -> Result<(ThreadId, Folder), Error> {
        let threads = Folder::make(&self.threads_folder())?;
        for attempt in 0..24 {
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

/// Whether a path is that of a `.kd` folder.
pub(crate) fn is_base(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == KD)
}

/// Whether a path lies below a `.kd`, where links are not followed.
pub(crate) fn is_ours(path: &Path) -> bool {
    is_base(split(path).0)
}

/// The `.kd` that a path goes through, and the rest of it below; the whole path and nothing where it goes through none.
/// Working copies of kingdom-cli in `.kd/worktrees` are not below `.kd` in this sense: they are the project's files.
pub(crate) fn split(path: &Path) -> (&Path, &Path) {
    let whole = (path, Path::new(""));
    let Some(base) = path.ancestors().find(|dir| is_base(dir)) else {
        return whole;
    };
    match path.strip_prefix(base) {
        Ok(below) if !below.starts_with(WORKTREES_FOLDER) => (base, below),
        _ => whole,
    }
}

/// What belongs in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A folder.
    Folder,
    /// A regular file; its maximum size where it is read as a whole.
    File(Option<Bound>),
}

/// The files and folders directly in `.kd` that say what a project is: what is read there counts as the user's own word.
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
    ]
    .into_iter()
}

/// What belongs in a place below `.kd`; `None` where nothing of ours does.
pub(crate) fn expects(below: &Path) -> Option<Expected> {
    let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
    let parts = parts?;
    let any = Expected::File(None);
    let most = |bound| Expected::File(Some(bound));
    let last = *parts.last()?;
    let ends = |end: &str| last.ends_with(end) && !last.starts_with('.');
    if let ["branches" | "archive", _, "threads", _, inside @ ..] = parts.as_slice() {
        return match inside {
            [] if last.starts_with('.') => None,
            [] => Some(Expected::Folder),
            [name] => expects_in_thread(name),
            _ => None,
        };
    }
    Some(match parts.as_slice() {
        ["branches" | "archive" | "roles" | "forum" | "logs"] | ["forum", "agents"] => {
            Expected::Folder
        }
        ["logs", name] if is_runner_log(name) => any,
        ["config.json" | "config.local.json"] => most(bounds::CONFIG),
        ["memory.json"] => most(bounds::MEMORY),
        ["current"] => most(bounds::CURRENT),
        [".gitignore" | "forum.db" | "forum.db-wal" | "forum.db-shm" | "forum.db-journal"] => any,
        // A copy from before its tables were changed.
        [name] if name.starts_with("forum.db.form-") => any,
        ["roles", _] if ends(".md") => most(bounds::ROLE),
        ["forum", "agents", _] if ends(".yaml") || ends(".yml") => most(bounds::PERSONA),
        ["branches" | "archive", _] if !last.starts_with('.') => Expected::Folder,
        [
            "branches" | "archive",
            _,
            "threads" | "sessions" | "logs" | "drafts",
        ] => Expected::Folder,
        ["branches" | "archive", _, "state.json"] => most(bounds::STATE),
        ["branches" | "archive", _, "sent.jsonl" | "copied.md"] => any,
        ["branches" | "archive", _, "sessions", _] if ends(".json") => most(bounds::SESSION),
        ["branches" | "archive", _, "logs", _] if ends(".log") => any,
        ["branches" | "archive", _, "drafts", _] if ends(".md") => most(bounds::DRAFT),
        _ if last.starts_with('.') && last.ends_with(".lock") => any,
        _ => return None,
    })
}

/// Whether a name in `logs` is that of a forum's log, or of an older one.
fn is_runner_log(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    name.starts_with("runner") && name.ends_with(".log")
}

/// What belongs under a name in a thread's folder; `None` where nothing of ours does.
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
        _ => return None,
    })
}

/// Whether a path below `.kd` is that of a thread's folder.
pub(crate) fn is_thread(below: &Path) -> bool {
    below.components().count() == 4 && below.iter().nth(2) == Some("threads".as_ref())
}

/// What is kept of the members' sessions, in a branch's folder.
pub(crate) fn sessions_of(branch: &Path) -> PathBuf {
    branch.join("sessions")
}

/// What is kept of a member's session, in the folder of all.
pub(crate) fn session_file_in(sessions: &Path, seat: &SeatName) -> PathBuf {
    sessions.join(format!("{seat}.json"))
}

/// The folder of the branch that a thread's folder stands in: `<branch>/threads/<id>`.
pub(crate) fn branch_of(thread: &Path) -> &Path {
    let threads = thread.parent().unwrap_or(thread);
    threads.parent().unwrap_or(threads)
}

/// The stream file of a member in a thread's folder.
pub(crate) fn stream_file(thread: &Path, member: &str) -> PathBuf {
    thread.join(stream_name(member))
}

/// The name of a member's stream file.
pub(crate) fn stream_name(member: &str) -> String {
    format!("{STREAM_PREFIX}{member}{STREAM_SUFFIX}")
}

/// The name of the file whose lock is the lease of a member.
pub(crate) fn turn_lock(member: &str) -> String {
    format!(".turn-{member}.lock")
}

/// The file in which a session of this name keeps the messages that wait, in the folder of all that wait in a thread.
pub(crate) fn queue_file(folder: &Path, session: &str) -> PathBuf {
    folder.join(format!("{QUEUE_PREFIX}{session}{QUEUE_SUFFIX}"))
}

/// The lock of all sessions whose messages wait in a thread.
pub(crate) fn queue_lock(folder: &Path) -> PathBuf {
    folder.join(".queue.lock")
}

/// Whether a name in a thread's folder is that of a queue: versions before 0.1 kept messages there, and nothing sends
/// them any more.
pub(crate) fn is_stray_queue(name: &str) -> bool {
    name.starts_with(".kd-queue-") && name.ends_with(QUEUE_SUFFIX)
}

/// Whether a file keeps the messages of some session that wait.
pub(crate) fn is_queue_file(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(QUEUE_PREFIX) && name.ends_with(QUEUE_SUFFIX))
}

/// The member whose stream a file is.
pub fn stream_member(file: &Path) -> Option<&str> {
    file.file_name()?
        .to_str()?
        .strip_prefix(STREAM_PREFIX)?
        .strip_suffix(STREAM_SUFFIX)
}

/// Makes `.kd` for the user alone, with a `.gitignore`. One that is there is closed to others and gets a `.gitignore`
/// if it has none.
pub(crate) fn make_kd(root: &Path) -> Result<(), Error> {
    let kd = root.join(KD);
    match fs::DirBuilder::new().mode(0o700).create(&kd) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && kd.is_dir() => {}
        done => done.map_err(Error::io("create", &kd))?,
    }
    Folder::open(&kd).and_then(|kd| close(&kd).and_then(|()| ignore(&kd)))
}

/// Does the same to a `.kd` that is there, as far as that can be done: on a read-only disk it stays as it is.
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

/// Writes `.gitignore` whole or not at all: an empty one would never be written again. To one that is there the lines are
/// added that it lacks; a line with `!` before it says that the user wants it so.
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

/// The folders in a folder, by name; none if it is not there. Hidden ones are left out, and names that no program gives:
/// see [`is_given`].
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

/// Whether a program could have named a folder so. Names stand in lines and in commands for the user to type: none holds
/// what a terminal obeys or does not show, or what a shell reads as more than a word, or begins like an option.
fn is_given(name: &str) -> bool {
    let is_safe =
        |c: char| !(c.is_ascii_punctuation() || c.is_control()) || "-_.+@,:=%".contains(c);
    clean_text(name) == name && !name.starts_with('-') && name.chars().all(is_safe)
}

/// An id for a new thread. Of 65,536 ids few are free by chance when thousands are taken: later attempts get longer ones.
pub(crate) fn new_id(attempt: u32) -> Result<ThreadId, Error> {
    let digits = if attempt < 8 { 4 } else { 12 };
    Ok(ThreadId(format!("council-{}", &chance()?[..digits])))
}

/// Sixteen hex digits from the system's randomness.
pub(crate) fn chance() -> Result<String, Error> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0u8; 8];
    std::fs::File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(Error::io("read", source))?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
