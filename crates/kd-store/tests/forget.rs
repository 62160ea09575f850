//! A forgotten text is nowhere on the disk, the next run completes a killed one, and nothing else changes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{draft, seats};
use kd_core::fork::Cut;
use kd_core::memory::Session;
use kd_core::{Event, Record, Timestamp};
use kd_sql::forget::MarksFile;
use kd_sql::marks::Marks;
use kd_store::forget::{Busy, Job, STEPS, TOMBSTONE};
use kd_store::fork::fork;
use kd_store::reviews::{Mark, Reviews, Verdict};
use kd_store::typed::WindowDraft;
use kd_store::user_dirs::project_key;
use kd_store::{
    EventLog, Layout, Lease, Place, Thread, UserDirs, fsck, log, memory, session, typed,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;

const MARKER: &str = "The launch code of project Heron is 7731-ALPHA-9.";
const OTHER: &str = "Words of another thread that must stay where they are.";
/// A process id that no process has.
const GONE: u32 = 999_999_999;

/// A project and a home directory in one folder, with a thread whose marker is in every place that `kd` writes.
struct Planted {
    top: TempDir,
    layout: Layout,
    reviews: Reviews,
    marks: MarksFile,
    place: Place,
    other: Place,
}

fn record(thread: &Thread, seq: u64, event: Event) -> Record {
    Record {
        v: 1,
        seq,
        ts: Timestamp::UNIX_EPOCH,
        thread: thread.id().clone(),
        event,
    }
}

fn say(thread: &Thread, log: &mut EventLog, from: &str, body: &str) {
    let message = thread.append(&draft(from, body)).unwrap();
    let event = Event::MessageAdded {
        found: false,
        message,
        turn: None,
    };
    log.append([&record(thread, 1, event)]).unwrap();
}

fn place(layout: &Layout, thread: &Thread) -> Place {
    layout.resolve(&thread.id().0).unwrap()
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn planted() -> Planted {
    let top = tempfile::tempdir().unwrap();
    let root = top.path().join("project");
    fs::create_dir_all(root.join(".kd")).unwrap();
    let home = top.path().join("home");
    fs::create_dir(&home).unwrap();
    let env = |name: &str| -> Option<OsString> { (name == "HOME").then(|| home.clone().into()) };
    let layout = Layout::find(&root, &env).unwrap();
    let reviews = Reviews::of(&UserDirs::from_env(&env), &root).unwrap();

    let other = Thread::create(&layout, &seats(&["ann"])).unwrap();
    let mut log = EventLog::open(&other).unwrap();
    say(&other, &mut log, "king", OTHER);
    typed::remember(&layout, OTHER).unwrap();
    let mark = |id: &str, thread: &Thread| Mark {
        id: id.into(),
        verdict: Verdict::Accepted,
        agreeing: 1,
        of: 1,
        thread: thread.id().0.clone(),
        at: Timestamp::UNIX_EPOCH,
        severity: None,
    };
    reviews.mark(mark("b", &other)).unwrap();

    let thread = Thread::create(&layout, &seats(&["ann", "bob"])).unwrap();
    let mut log = EventLog::open(&thread).unwrap();
    say(&thread, &mut log, "king", MARKER);
    say(&thread, &mut log, "ann", &format!("You said: {MARKER}"));
    let notice = Event::Noticed {
        text: format!("asked: {MARKER}"),
    };
    log.append([&record(&thread, 3, notice)]).unwrap();
    let id = thread.id().0.clone();

    for of in [&other, &thread] {
        let session = Session {
            thread: of.id().clone(),
            question: if of.id() == thread.id() {
                MARKER
            } else {
                OTHER
            }
            .into(),
            answer: "Yes.".into(),
            message: Some(1),
        };
        memory::update(&layout, |kept| kept.remember(session)).unwrap();
    }
    let report = json!({"version": 1, "quote": MARKER});
    reviews.keep(thread.id(), &report).unwrap();
    reviews.mark(mark("a", &thread)).unwrap();
    let dirs = UserDirs::from_env(&env);
    let project = project_key(layout.root());
    let verdict = |thread: &str, key: &str| kd_eval::marks::Mark {
        v: kd_eval::marks::VERSION,
        project: project.clone(),
        thread: thread.into(),
        message: 2,
        at: Timestamp::UNIX_EPOCH,
        by: kd_eval::marks::By::User,
        kind: "exact".into(),
        protocol: "vote".into(),
        members: Vec::new(),
        unasked: Vec::new(),
        stopping: None,
        winner: Some(key.into()),
        credit: 1.0,
        answer: None,
        calls: 1,
        usd: 0.0,
    };
    layout.note_verdict(other.id(), OTHER).unwrap();
    layout.note_verdict(thread.id(), MARKER).unwrap();
    let mut marks = Marks::open(&dirs).unwrap();
    marks.add(&verdict(&other.id().0, "yes")).unwrap();
    marks.add(&verdict(&id, MARKER)).unwrap();
    let marks = MarksFile::new(marks.path());
    session::update(&layout, &seats(&["bob"])[0], |state| {
        state.resume_id = Some("session-1".into());
        state.thread = Some(id.clone());
    })
    .unwrap();
    let branch = layout.branch_folder();
    write(branch.join(format!("logs/ask-{id}.log")), MARKER);
    write(
        branch.join("logs/council-bob.log"),
        &format!("{{\"text\":\"{MARKER}\"}}\n"),
    );
    write(branch.join(format!("drafts/{id}.md")), MARKER);
    write(branch.join("sent.jsonl"), &format!("\"{MARKER}\"\n"));
    write(branch.join(format!(".state.{GONE}.0.json")), MARKER);
    let unfinished = layout
        .threads_folder()
        .join(".kd-new-0123456789abcdef.jsonl");
    write(unfinished.join("0001-king.md"), MARKER);
    let window = WindowDraft::take(&layout, thread.id());
    window.keep(MARKER).unwrap();
    WindowDraft::take(&layout, thread.id())
        .keep(MARKER)
        .unwrap();
    typed::remember(&layout, &format!("@ann {MARKER}")).unwrap();
    typed::keep_copied(&layout, MARKER).unwrap();
    let sent = layout.sent_file().unwrap();
    write(
        sent.with_file_name(format!("sent.jsonl.{GONE}.new")),
        MARKER,
    );
    let queue = layout.queue_folder(thread.path()).unwrap();
    write(
        queue.join("queue-1.jsonl"),
        &format!("{{\"keep\":{{\"body\":\"{MARKER}\"}}}}\n"),
    );
    write(thread.path().join(".kd-lost/0009-eve.md"), MARKER);
    write(thread.path().join(".kd-new/1-0.jsonl"), MARKER);
    write(
        thread.path().join(".stream-eve.jsonl"),
        &format!("{{\"t\":\"{MARKER}\"}}\n"),
    );
    let place = place(&layout, &thread);
    let other = self::place(&layout, &other);
    Planted {
        top,
        layout,
        reviews,
        marks,
        place,
        other,
    }
}

impl Planted {
    fn job(&self, message: Option<u32>) -> Job<'_> {
        Job::new(
            &self.layout,
            Some(&self.reviews),
            vec![&self.marks],
            &self.place,
            message,
            true,
        )
        .unwrap()
    }

    /// Returns the files below the project and the home directory with a text in their content or names.
    fn holding(&self, text: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.top.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                let kind = entry.file_type().unwrap();
                if path.to_string_lossy().contains(text) {
                    found.push(path.clone());
                }
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    let bytes = fs::read(&path).unwrap();
                    let has = |text: &str| {
                        bytes
                            .windows(text.len())
                            .any(|part| part == text.as_bytes())
                    };
                    if has(text) {
                        found.push(path);
                    }
                }
            }
        }
        found
    }

    /// Checks that everything else is unchanged and valid.
    fn check_rest(&self, case: &str) {
        assert!(!self.holding(OTHER).is_empty(), "{case}");
        assert_eq!(typed::sent(&self.layout), [OTHER], "{case}");
        let kept = memory::read(&self.layout).unwrap();
        assert_eq!(kept.sessions.len(), 1, "{case}");
        for place in self.layout.all_threads(true).unwrap() {
            let report = fsck::check(&place, Duration::from_secs(600)).unwrap();
            assert!(report.findings.is_empty(), "{case}: {:?}", report.findings);
        }
        let report = fsck::check_base(&self.layout).unwrap();
        assert!(report.findings.is_empty(), "{case}: {:?}", report.findings);
    }
}

#[test]
fn every_place_is_found_and_a_forgotten_thread_is_nowhere() {
    let planted = planted();
    let source = Thread::open(&planted.place).unwrap();
    let fork = fork(&planted.layout, &source, &Cut::End).unwrap();
    planted.layout.set_current_thread(source.id()).unwrap();
    drop((source, fork));
    let id = planted.place.id.0.clone();
    assert!(planted.holding("Heron").len() > 10);
    // Every step finds something: in the whole thread, or in one of its messages.
    let (whole, one) = (planted.job(None), planted.job(Some(1)));
    for (name, step) in STEPS {
        let found: usize = [&whole, &one]
            .iter()
            .flat_map(|job| job.targets().iter().map(move |target| (job, target)))
            .map(|(job, target)| step(job, target, true).unwrap().len())
            .sum();
        assert!(found > 0, "{name} has nothing to find: plant something");
    }
    let before = planted.holding("Heron");
    let shown = whole.look().unwrap();
    assert_eq!(
        planted.holding("Heron"),
        before,
        "looking changed something"
    );
    assert_eq!(whole.forget().unwrap(), shown);
    assert_eq!(planted.holding("Heron"), Vec::<PathBuf>::new());
    assert_eq!(planted.holding(&id), Vec::<PathBuf>::new());
    assert_eq!(
        planted.layout.all_threads(true).unwrap(),
        std::slice::from_ref(&planted.other)
    );
    assert_eq!(planted.layout.current_thread().unwrap(), None);
    assert_eq!(planted.reviews.marks().unwrap().len(), 1);
    let home = planted.top.path().join("home");
    let env = |name: &str| -> Option<OsString> { (name == "HOME").then(|| home.clone().into()) };
    let left = kd_sql::marks::read(&UserDirs::from_env(&env)).unwrap();
    assert_eq!(left.len(), 1);
    planted.check_rest("whole");
}

#[test]
fn a_forgotten_message_keeps_its_number_and_nothing_of_its_text() {
    let planted = planted();
    let source = Thread::open(&planted.place).unwrap();
    let fork = fork(&planted.layout, &source, &Cut::End).unwrap();
    let fork = place(&planted.layout, &fork);
    drop(source);
    let job = planted.job(Some(1));
    // Another message quotes it: it is listed, and kept until it is forgotten too.
    let quotes: BTreeSet<u32> = job.quotes().unwrap().iter().map(|(_, n)| *n).collect();
    assert_eq!(quotes, BTreeSet::from([2]));
    job.forget().unwrap();
    let left = planted.holding("Heron");
    assert!(
        left.iter().all(|path| path.ends_with("0002-ann.md")),
        "{left:?}"
    );
    planted.job(Some(2)).forget().unwrap();
    assert_eq!(planted.holding("Heron"), Vec::<PathBuf>::new());
    for place in [&planted.place, &fork] {
        let thread = Thread::open(place).unwrap();
        let messages = thread.messages().unwrap();
        assert_eq!(messages.problems, []);
        let bodies: Vec<(u32, &str, &str)> = messages
            .messages
            .iter()
            .map(|m| (m.seq, m.from.as_str(), &*m.body))
            .collect();
        assert_eq!(bodies, [(1, "king", TOMBSTONE), (2, "ann", TOMBSTONE)]);
        let noted: Vec<u32> = thread
            .meta()
            .forgotten()
            .iter()
            .map(|one| one.message)
            .collect();
        assert_eq!(noted, [1, 2]);
        let logged = log::read(&thread).unwrap();
        assert_eq!((logged.records.len(), logged.skipped), (3, 0));
        // The thread continues with the next number.
        assert_eq!(thread.append(&draft("king", "Next?")).unwrap().seq, 3);
    }
    planted.check_rest("message");
}

#[test]
fn a_run_that_was_killed_after_any_step_is_finished_by_the_next() {
    for done in 0..STEPS.len() {
        for message in [None, Some(1)] {
            let planted = planted();
            let case = format!("{done} {message:?}");
            let job = planted.job(message);
            for (_, step) in &STEPS[..done] {
                for target in job.targets() {
                    step(&job, target, false).unwrap();
                }
            }
            drop(job);
            planted.job(message).forget().unwrap();
            let mut left = planted.holding("Heron");
            left.retain(|path| message.is_none() || !path.ends_with("0002-ann.md"));
            assert_eq!(left, Vec::<PathBuf>::new(), "{case}");
            planted.check_rest(&case);
        }
    }
}

#[test]
fn what_was_killed_while_the_folder_was_emptied_is_forgotten_as_well() {
    let planted = planted();
    for name in ["0001-king.md", "thread.json", ".kd-events.jsonl"] {
        let job = planted.job(None);
        for (_, step) in &STEPS[..STEPS.len() - 1] {
            for target in job.targets() {
                step(&job, target, false).unwrap();
            }
        }
        fs::remove_file(planted.place.path.join(name)).unwrap();
    }
    planted.job(None).forget().unwrap();
    assert_eq!(planted.holding("Heron"), Vec::<PathBuf>::new());
    planted.check_rest("folder");
}

#[test]
fn links_go_and_what_they_lead_to_stays() {
    let planted = planted();
    let theirs = planted.top.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("file"), "theirs").unwrap();
    let thread = &planted.place.path;
    let link = std::os::unix::fs::symlink::<PathBuf, PathBuf>;
    link(theirs.clone(), thread.join("folder")).unwrap();
    link(theirs.join("file"), thread.join("0007-eve.md")).unwrap();
    fs::create_dir_all(thread.join(".kd-lost/deep/er")).unwrap();
    link(theirs.clone(), thread.join(".kd-lost/deep/er/link")).unwrap();
    link(
        theirs.join("file"),
        planted.layout.branch_folder().join("logs/link.log"),
    )
    .unwrap();
    // A message that is a link is forgotten as a link.
    planted.job(Some(7)).forget().unwrap();
    assert_eq!(fs::read_to_string(theirs.join("file")).unwrap(), "theirs");
    let body = &Thread::open(&planted.place)
        .unwrap()
        .message(7)
        .unwrap()
        .body;
    assert_eq!(&**body, TOMBSTONE);
    planted.job(None).forget().unwrap();
    assert!(!thread.exists());
    assert_eq!(fs::read_to_string(theirs.join("file")).unwrap(), "theirs");
}

#[test]
fn a_folder_that_is_a_link_is_refused_and_nothing_beyond_it_changes() {
    let planted = planted();
    let logs = planted.layout.branch_folder().join("logs");
    let theirs = planted.top.path().join("theirs");
    fs::rename(&logs, &theirs).unwrap();
    std::os::unix::fs::symlink(&theirs, &logs).unwrap();
    let before = fs::read_dir(&theirs).unwrap().count();
    assert!(planted.job(None).forget().is_err());
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), before);
    assert!(planted.place.path.exists());
}

#[test]
fn copies_stay_where_they_are_to_be_kept_and_a_source_keeps_its_own() {
    let planted = planted();
    let source = Thread::open(&planted.place).unwrap();
    let fork = fork(&planted.layout, &source, &Cut::Before(2)).unwrap();
    let fork = place(&planted.layout, &fork);
    drop(source);
    let of_fork = Job::new(&planted.layout, None, Vec::new(), &fork, None, true).unwrap();
    assert_eq!(of_fork.targets().len(), 1);
    assert_eq!(of_fork.keeps(), [(planted.place.clone(), 1)]);
    // One message of the fork is the same in its source.
    let one = Job::new(&planted.layout, None, Vec::new(), &fork, Some(1), true).unwrap();
    assert_eq!(one.targets().len(), 2);
    let kept = Job::new(
        &planted.layout,
        None,
        Vec::new(),
        &planted.place,
        None,
        false,
    )
    .unwrap();
    assert_eq!(
        (kept.targets().len(), kept.keeps()),
        (1, &[(fork.clone(), 1)][..])
    );
    kept.forget().unwrap();
    assert!(fork.path.exists() && !planted.place.path.exists());
}

/// A child process has all files open until it executes its program.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn a_thread_in_which_somebody_answers_is_busy() {
    let _one = ONE_AT_A_TIME.lock();
    let planted = planted();
    fs::remove_file(planted.place.path.join(".stream-eve.jsonl")).unwrap();
    assert_eq!(planted.job(None).busy().unwrap(), None);
    let thread = Thread::open(&planted.place).unwrap();
    let lease = Lease::try_take(&thread, "bob").unwrap().unwrap();
    let busy = planted.job(None).busy().unwrap();
    let bob = Busy::Answering(vec!["bob".into()]);
    assert_eq!(busy, Some((planted.place.id.clone(), bob)));
    drop(lease);
    assert_eq!(planted.job(None).busy().unwrap(), None);
}

#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_another_process_has_open_is_busy() {
    let _one = ONE_AT_A_TIME.lock();
    let planted = planted();
    fs::remove_file(planted.place.path.join(".stream-eve.jsonl")).unwrap();
    let file = fs::File::open(planted.place.path.join("0001-king.md")).unwrap();
    let mut reader = std::process::Command::new("cat")
        .arg("-")
        .arg(Path::new("/dev/null"))
        .stdin(std::process::Stdio::piped())
        .stdout(file)
        .spawn()
        .unwrap();
    let busy = planted.job(None).busy().unwrap();
    let open = Busy::Open(vec![reader.id()]);
    drop(reader.stdin.take());
    reader.wait().unwrap();
    assert_eq!(busy, Some((planted.place.id.clone(), open)));
    assert_eq!(planted.job(None).busy().unwrap(), None);
}

#[test]
fn a_description_that_came_with_the_folder_does_not_keep_a_message() {
    let planted = planted();
    let lists = "[],".repeat(200_000);
    let text = format!("{{\"id\":\"x\",\"x\":[{lists}[]]}}");
    fs::write(planted.place.path.join("thread.json"), text).unwrap();
    planted.job(Some(1)).forget().unwrap();
    let thread = Thread::open(&planted.place).unwrap();
    assert_eq!(thread.meta().forgotten()[0].message, 1);
    let first = fs::read_to_string(planted.place.path.join("0001-king.md")).unwrap();
    assert!(first.ends_with("[forgotten]\n"), "{first}");
}

#[test]
fn every_window_on_a_thread_has_a_draft_of_its_own() {
    let planted = planted();
    let (layout, id) = (&planted.layout, &planted.other.id);
    let (first, second) = (WindowDraft::take(layout, id), WindowDraft::take(layout, id));
    first.keep("the first").unwrap();
    second.keep("the second").unwrap();
    assert_eq!(
        (first.text(), second.text()),
        ("the first".into(), "the second".into())
    );
    // A closed window leaves its draft to the next one, even if an earlier place is free.
    first.keep("").unwrap();
    drop((first, second));
    let next = WindowDraft::take(layout, id);
    assert_eq!(next.text(), "the second");
    assert_eq!(WindowDraft::take(layout, id).text(), "");
}

#[test]
fn a_draft_that_cannot_be_read_stays_and_the_next_place_is_used() {
    type Plant = fn(&std::path::Path) -> bool;
    let plants: [(&str, Plant); 6] = [
        ("not UTF-8", |at| fs::write(at, b"caf\xe9").is_ok()),
        ("too large", |at| {
            fs::write(at, vec![b'x'; (16 << 20) + 1]).is_ok()
        }),
        ("a link", |at| {
            let target = at.with_file_name("target");
            fs::write(&target, "theirs").unwrap();
            std::os::unix::fs::symlink(target, at).is_ok()
        }),
        ("not a regular file", |at| fs::create_dir(at).is_ok()),
        ("others can write", |at| {
            use std::os::unix::fs::PermissionsExt;
            fs::write(at, "shared").unwrap();
            fs::set_permissions(at, fs::Permissions::from_mode(0o622)).is_ok()
        }),
        // Only root can give a file away.
        ("another user", |at| {
            fs::write(at, "theirs").unwrap();
            std::os::unix::fs::chown(at, Some(64_999), None).is_ok()
        }),
    ];
    for (why, plant) in plants {
        let planted = planted();
        let (layout, id) = (&planted.layout, &planted.other.id);
        let path = layout.draft_file(id, 1).unwrap();
        WindowDraft::take(layout, id).keep("x").unwrap();
        fs::remove_file(&path).unwrap();
        if !plant(&path) {
            continue;
        }
        let state = || {
            let meta = path.symlink_metadata().unwrap();
            (meta.file_type(), meta.len(), fs::read(&path).ok())
        };
        let before = state();
        let mut window = WindowDraft::take(layout, id);
        let told = window.unread();
        assert!(told.len() == 1 && told[0].contains(why), "{why}: {told:?}");
        assert_eq!(window.unread(), [""; 0], "{why}: told once");
        assert_eq!(window.text(), "");
        window.keep("mine").unwrap();
        assert_eq!(window.text(), "mine", "{why}");
        assert!(state() == before, "{why}");
        window.keep("").unwrap();
        assert!(state() == before, "{why}");
        // What comes to a place that is taken already stays too.
        let next = layout.draft_file(id, 2).unwrap();
        assert!(plant(&next) || why == "a link", "{why}");
        if next.exists() {
            assert!(
                window.keep("mine").is_err() && window.keep("").is_err(),
                "{why}"
            );
            assert!(next.exists(), "{why}");
        }
    }
}
