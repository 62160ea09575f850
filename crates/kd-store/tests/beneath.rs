//! Nothing below `.kd` leads out of it: every file and folder × what a hostile archive can put in its place × every
//! operation of this crate. Nothing outside changes, nothing hangs, no memory is filled.
//!
//! Each row runs in a separate process, which the test kills if it does not exit.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail and speak as a test may"
)]

mod common;

use common::{draft, seats, thread};
use kd_core::names::KING;
use kd_core::{Event, Record};
use kd_sql::forum::{ForumStore, Place as ForumPlace};
use kd_store::config::{self, ConfigPaths};
use kd_store::{EventLog, Layout, StreamReader, StreamWriter, Thread, Watch};
use kd_store::{beneath, bounds, fsck, log, memory, session, stream};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Files that kd reads or writes; `T` is a thread.
const FILES: &[&str] = &[
    ".gitignore",
    "config.json",
    ".config.json.lock",
    "config.local.json",
    "memory.json",
    "current",
    "forum.db",
    ".forum.db.lock",
    "forum.db-wal",
    "forum.db-shm",
    "forum.db-journal",
    "forum/agents/ann.yaml",
    "roles/skeptic.md",
    "branches/main/state.json",
    "branches/main/.state.json.lock",
    "branches/main/sent.jsonl",
    "branches/main/copied.md",
    "branches/main/sessions/claude.json",
    "branches/main/sessions/.claude.json.lock",
    "branches/main/logs/ask-T.log",
    "branches/main/drafts/T.md",
    "T/thread.json",
    "T/0001-king.md",
    "T/.kd-index.jsonl",
    "T/.kd-events.jsonl",
    "T/.kd-thread.lock",
    "T/.kd-queue-1-0.jsonl",
    "T/.stream-claude.jsonl",
    "T/.pending-messages.json",
    "T/.kd-new/1-1.jsonl",
];
const FOLDERS: &[&str] = &[
    "branches",
    "branches/main",
    "branches/main/threads",
    "branches/main/sessions",
    "branches/main/logs",
    "branches/main/drafts",
    "batches",
    "batches/batch-1",
    "batches/batch-1/threads",
    "roles",
    "forum",
    "forum/agents",
    "T",
    "T/.kd-new",
    "T/.kd-lost",
];

/// An object that may replace a file or folder.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Odd {
    LinkToFile,
    LinkToFolder,
    LinkToZero,
    LinkInTree,
    Dangling,
    SecondName,
    Pipe,
    Socket,
    Folder,
    Huge,
    DeepJson,
    Unreadable,
}
use Odd::*;

const ODD: &[Odd] = &[
    LinkToFile,
    LinkToFolder,
    LinkToZero,
    LinkInTree,
    Dangling,
    SecondName,
    Pipe,
    Socket,
    Folder,
    Huge,
    DeepJson,
    Unreadable,
];

/// No command may use more.
const MEMORY_MAX_KB: u64 = 200 << 10;
/// A row that takes longer hangs; on a fast machine it takes a second.
const PATIENCE: Duration = Duration::from_secs(300);

struct Stage {
    dir: tempfile::TempDir,
    thread: PathBuf,
    other: PathBuf,
}

impl Stage {
    fn new() -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("outside/victim");
        fs::create_dir_all(&victim).unwrap();
        for name in [
            "1-1.jsonl",
            "id_rsa",
            "0001-king.md",
            "claude.json",
            "index-1.jsonl",
        ] {
            fs::write(victim.join(name), "precious").unwrap();
        }
        fs::write(dir.path().join("outside/file"), "precious").unwrap();
        let project = dir.path().join("project");
        fs::create_dir(&project).unwrap();
        let other = thread(&project, &["claude"]);
        other.append(&draft(KING, "Another?")).unwrap();
        let one = thread(&project, &["claude"]);
        one.append(&draft(KING, "Which?")).unwrap();
        one.append(&draft("claude", "This.")).unwrap();
        Stage {
            thread: one.path().to_path_buf(),
            other: other.path().to_path_buf(),
            dir,
        }
    }

    fn kd(&self) -> PathBuf {
        self.dir.path().join("project/.kd")
    }

    fn path(&self, row: &str) -> PathBuf {
        let id = self.thread.file_name().unwrap().to_str().unwrap();
        match row.strip_prefix("T") {
            Some("") => self.thread.clone(),
            Some(inside) => self.thread.join(inside.trim_start_matches('/')),
            None => self.kd().join(row.replace("T.", &format!("{id}."))),
        }
    }

    /// Replaces a row's path by something odd.
    fn spoil(&self, row: &str, odd: Odd) {
        let outside = self.dir.path().join("outside");
        let path = self.path(row);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match path.symlink_metadata().map(|meta| meta.is_dir()) {
            Ok(true) => fs::rename(&path, self.dir.path().join("moved")).unwrap(),
            Ok(false) => fs::remove_file(&path).unwrap(),
            Err(_) => {}
        }
        let is_folder = FOLDERS.contains(&row);
        match odd {
            LinkToFile => symlink(outside.join("file"), &path).unwrap(),
            LinkToFolder => symlink(outside.join("victim"), &path).unwrap(),
            LinkToZero => symlink("/dev/zero", &path).unwrap(),
            LinkInTree if is_folder => symlink(&self.other, &path).unwrap(),
            LinkInTree => symlink(self.other.join("0001-king.md"), &path).unwrap(),
            Dangling => symlink("nowhere/at/all", &path).unwrap(),
            SecondName => fs::hard_link(outside.join("file"), &path).unwrap(),
            Pipe => rustix::fs::mknodat(
                rustix::fs::CWD,
                &path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RWXU,
                0,
            )
            .unwrap(),
            Socket => drop(UnixListener::bind(&path).unwrap()),
            Folder if is_folder => fs::write(&path, "a file").unwrap(),
            Folder => fs::create_dir(&path).unwrap(),
            Huge => fs::File::create(&path).unwrap().set_len(1 << 30).unwrap(),
            DeepJson => fs::write(&path, "{\"a\":[".repeat(100_000)).unwrap(),
            Unreadable => {
                fs::write(&path, "secret").unwrap();
                let none = std::os::unix::fs::PermissionsExt::from_mode(0o0);
                fs::set_permissions(&path, none).unwrap();
            }
        }
    }

    /// Returns everything that must not change, with its times.
    fn untouchable(&self) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
        let mut all = BTreeMap::new();
        for folder in [
            self.dir.path().join("outside"),
            self.dir.path().join("outside/victim"),
            self.real_other(),
        ] {
            for item in fs::read_dir(folder).unwrap() {
                let path = item.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                let bytes = match meta.is_file() {
                    true => fs::read(&path).unwrap(),
                    false => Vec::new(),
                };
                all.insert(path, (meta.modified().unwrap(), bytes));
            }
        }
        all
    }

    /// Returns the other thread, wherever a spoiled parent was moved to.
    fn real_other(&self) -> PathBuf {
        let moved = self.dir.path().join("moved");
        let below = |base: &Path| {
            let rest: Vec<_> = self.other.iter().rev().take(4).collect();
            (1..=rest.len())
                .map(|n| base.join(rest[..n].iter().rev().collect::<PathBuf>()))
                .find(|path| path.is_dir())
        };
        match self.other.symlink_metadata() {
            Ok(_) if !moved.exists() => self.other.clone(),
            _ => below(&moved).unwrap_or(self.other.clone()),
        }
    }
}

/// Runs every operation of this crate on a project. Failures are ignored.
fn everything(stage: &Stage) {
    let project = stage.dir.path().join("project");
    let path = |row: &str| stage.path(row);
    let Ok(opened) = Layout::find_or_create(&project, &|_| None) else {
        return;
    };
    let layout = opened.layout;
    let _ = layout.threads();
    let _ = layout.all_threads(true);
    let _ = layout.batch_threads();
    let _ = layout.current_thread();
    let id = stage.thread.file_name().unwrap().to_str().unwrap();
    if let Ok(place) = layout.resolve(id) {
        let _ = layout.set_current_thread(&place.id);
    }
    if let Ok(thread) = Thread::open_folder(&stage.thread) {
        in_thread(&thread);
    }
    let _ = Thread::create(&layout, &seats(&["claude"]));
    let claude = &seats(&["claude"])[0];
    let _ = session::kept(&layout.sessions_folder());
    let _ = session::read(&layout, claude);
    let _ = session::update(&layout, claude, |state| state.ticket = Some("1".into()));
    let _ = memory::read(&layout);
    let _ = memory::update(&layout, |known| known.domain.push('x'));
    let _ = memory::roles(&layout);
    let paths = ConfigPaths {
        user: None,
        project: Some(layout.config_file()),
        local: Some(layout.local_config_file()),
        personas: Some(layout.forum_agents_folder()),
        trust: None,
        home: None,
    };
    let key = "council.timeout".parse().unwrap();
    let layer = kd_core::config::Layer::Project;
    let _ = config::set(&paths, layer, &key, 60.into());
    let _ = ForumStore::open(&ForumPlace::File(layout.forum_file()), None);
    let _ = beneath::Folder::find(&layout.forum_agents_folder()).map(|f| f.map(|f| f.items()));
    let _ = beneath::read_text(&path("forum/agents/ann.yaml"), bounds::PERSONA);
    let _ = beneath::create(&path("forum/agents/ann.yaml"), b"name: ann\n");
    for appended in ["branches/main/sent.jsonl", "branches/main/logs/ask-T.log"] {
        let _ = beneath::read_end(&path(appended), bounds::SENT);
        if let Ok(mut file) = beneath::append(&path(appended)) {
            let _ = std::io::Write::write_all(&mut file, b"words of a model\n");
        }
    }
    for replaced in ["branches/main/copied.md", "branches/main/drafts/T.md"] {
        let _ = beneath::read_text(&path(replaced), bounds::DRAFT);
        let _ = beneath::replace(&path(replaced), b"text");
        let _ = beneath::remove(&path(replaced));
    }
    repair(&layout);
}

fn in_thread(thread: &Thread) {
    let _ = thread.messages();
    let _ = thread.tail(1);
    let _ = thread.message(1);
    let _ = thread.count();
    let _ = thread.count_readable();
    let _ = stream::sweep(thread);
    let _ = StreamReader::new(thread, "claude").read();
    let _ = stream::is_held(&thread.path().join(".stream-claude.jsonl"));
    if let Ok(mut writer) = StreamWriter::create(thread, "claude") {
        let _ = writer.line("words of a model");
        let _ = writer.finish();
    }
    let _ = log::read(thread);
    if let Ok(mut log) = EventLog::open(thread) {
        let event = Event::Noticed {
            text: "words of a model".into(),
        };
        let record = Record {
            v: 1,
            seq: 1,
            ts: "2026-11-21T07:57:55Z".parse().unwrap(),
            thread: thread.id().clone(),
            event,
        };
        let _ = log.append([&record]);
    }
    let _ = Watch::new(thread.path()).map(|watch| watch.wait(Duration::ZERO));
    let _ = thread.append(&draft("claude", "More."));
    let _ = thread.settle();
}

fn repair(layout: &Layout) {
    if let Ok(mut report) = fsck::check_base(layout) {
        let _ = fsck::repair_base(&mut report);
    }
    for place in layout.threads().unwrap_or_default() {
        if let Ok(mut report) = fsck::check(&place, stream::PATIENCE) {
            let _ = fsck::repair(&place, &mut report);
        }
    }
    if let Ok(mut report) = fsck::check_branch(layout) {
        let _ = fsck::repair_branch(layout, &mut report);
    }
}

/// Runs one row of the table in a separate process.
#[test]
#[ignore = "started by the test below, once for each row"]
fn row() {
    let Ok(row) = std::env::var("KD_TEST_ROW") else {
        return;
    };
    for odd in ODD {
        // The parent prints the last of these lines if it has to kill the process.
        eprintln!("{row} {odd:?}");
        let stage = Stage::new();
        stage.spoil(&row, *odd);
        let before = stage.untouchable();
        everything(&stage);
        let after = stage.untouchable();
        assert!(before == after, "{row} {odd:?}: {before:#?}\n{after:#?}");
        let kind = stage
            .path(&row)
            .symlink_metadata()
            .map(|meta| meta.file_type());
        assert!(
            kind.is_err() || kind.is_ok_and(|kind| kind.is_file() || kind.is_dir()),
            "{row} {odd:?}: fsck leaves it where it is"
        );
    }
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak: u64 = peak
            .unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap();
        assert!(peak < MEMORY_MAX_KB, "{row}: {peak} kB");
    }
}

#[test]
fn nothing_below_kd_leads_out_of_it() {
    let mut failed = Vec::new();
    for row in FILES.iter().chain(FOLDERS) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["row", "--exact", "--ignored", "--nocapture"])
            .env("KD_TEST_ROW", row)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(tempfile::tempfile().unwrap())
            .spawn()
            .unwrap();
        let began = Instant::now();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status.to_string(),
                None if began.elapsed() > PATIENCE => {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    break "hangs".into();
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if status != "exit status: 0" {
            failed.push(format!("{row}: {status}"));
        }
    }
    assert_eq!(
        failed,
        Vec::<String>::new(),
        "try KD_TEST_ROW=… cargo test --test beneath row -- --ignored"
    );
}

/// Source files that access the file system directly, and why they may.
const MAY: &[(&str, &str)] = &[
    ("kd-store/src/beneath.rs", "this is the place"),
    ("kd-store/src/git.rs", "reads `.git`"),
    ("kd-store/src/checkout.rs", "looks for `.git`"),
    ("kd-store/src/user_dirs.rs", "the user's own folders"),
    (
        "kd-store/src/find.rs",
        "looks at owners and rights above `.kd`",
    ),
    ("kd-store/src/private.rs", "the user's own state folder"),
    ("kd-store/src/queue.rs", "the user's own state folder"),
    (
        "kd-store/src/run_record.rs",
        "the user's own runtime folder",
    ),
    ("kd/src/run/descriptors.rs", "counts what can be opened"),
    (
        "kd-store/src/programs.rs",
        "reads the text of a link above `.kd` and follows none",
    ),
    (
        "kd/src/run/shell.rs",
        "completions and manual pages, where the user wants them",
    ),
    (
        "kd-store/src/forget/thread.rs",
        "lists which processes have a folder open",
    ),
    ("kd-app/src/doctor.rs", "a temporary folder that it creates"),
    ("kd/src/run/config.rs", "a file that the user named"),
    (
        "kd-sql/src/forum/journal.rs",
        "the end of a journal, before SQLite opens it by its path",
    ),
    (
        "kd/src/run/deliberate/edit.rs",
        "a temporary file that it creates",
    ),
    (
        "kd-store/src/git_command.rs",
        "makes a scratch folder that it is given",
    ),
    (
        "kd/src/run/batch/questions.rs",
        "a folder that the user named",
    ),
    (
        "kd/src/run/eval/recorded.rs",
        "a folder that the user named",
    ),
    ("kd/src/run/eval/written.rs", "a folder that the user named"),
    ("kd-app/src/infile.rs", "files that the user named"),
    (
        "kd-app/src/files.rs",
        "completes file names that the user types",
    ),
    (
        "kd-app/src/outfile.rs",
        "a file that the user named; the store writes it below `.kd`",
    ),
    ("kd-app/src/batch/log.rs", "a file that the user named"),
    ("kd-app/src/batch/results.rs", "a file that the user named"),
    (
        "kd-app/src/ready.rs",
        "the first letters of a model file that the settings name",
    ),
    (
        "kd-app/src/forum/servers.rs",
        "the user's own runtime folder",
    ),
    ("kd-app/src/forum/token.rs", "the user's own runtime folder"),
    (
        "kd-app/src/review/change.rs",
        "a diff in a scratch folder that it creates",
    ),
];

/// Crates that work on `.kd`.
const CRATES: &[&str] = &["kd-store", "kd-sql", "kd-engine", "kd-app", "kd"];
/// Calls that open, list, change or follow a path.
const CALLS: &[&str] = &[
    "fs::read",
    "fs::write",
    "fs::remove",
    "fs::rename",
    "fs::copy",
    "fs::create",
    "fs::hard_link",
    "fs::metadata",
    "fs::set_",
    "File::open",
    "File::create",
    "File::options",
    "OpenOptions",
    ".read_dir()",
];

#[test]
fn no_other_module_opens_files() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = CRATES.iter().map(|c| crates.join(c).join("src")).collect();
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.file_name().is_some_and(|name| name == "tests.rs") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let opens = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .any(|line| CALLS.iter().any(|call| line.contains(call)));
            if opens {
                found.push(path.strip_prefix(crates).unwrap().display().to_string());
            }
        }
    }
    let is_row = |name: &String| MAY.iter().any(|(file, _)| name == file);
    let stale = MAY.iter().map(|(file, _)| (*file).to_owned());
    let stale: Vec<String> = stale.filter(|file| !found.contains(file)).collect();
    assert_eq!(
        stale,
        Vec::<String>::new(),
        "they open nothing: remove the rows"
    );
    found.retain(|name| !is_row(name));
    assert_eq!(found, Vec::<String>::new(), "use kd_store::beneath");
}
