//! Damage by other versions, editors, clones and kills in a thread: each kind is found, read as far as possible, and
//! repaired without losing a byte.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::{draft, layout, thread};
use kd_core::media::Attachment;
use kd_core::names::KING;
use kd_store::fsck::{self, Kind, Report};
use kd_store::stream::PATIENCE;
use kd_store::{Layout, Place, Thread};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A project with one thread of two messages, some time ago.
struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let thread = thread(stage.dir.path(), &["claude"]);
        thread.append(&draft(KING, "Which?")).unwrap();
        thread.append(&draft("claude", "This.")).unwrap();
        for name in ["0001-king.md", "0002-claude.md"] {
            age(&thread.path().join(name));
        }
        stage
    }

    fn layout(&self) -> Layout {
        layout(self.dir.path())
    }

    fn place(&self) -> Place {
        self.layout().threads().unwrap().remove(0)
    }

    /// Puts a file into the thread, as old as the others.
    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.place().path.join(name);
        fs::write(&path, text).unwrap();
        age(&path);
    }

    fn check(&self) -> Report {
        fsck::check(&self.place(), PATIENCE).unwrap()
    }

    /// Checks, repairs, and returns the result of each finding; afterwards nothing is open and nothing is found.
    fn repair(&self) -> Report {
        let before = everything(&self.place().path);
        let mut report = self.check();
        fsck::repair(&self.place(), &mut report).unwrap();
        assert!(report.findings.iter().all(|f| !f.is_open()), "{report:#?}");
        let again = self.check();
        assert!(
            again.findings.iter().all(|f| f.kind.is_note()),
            "{again:#?}"
        );
        let after = everything(&self.place().path);
        for text in before {
            assert!(
                after.contains(&text),
                "lost: {}",
                String::from_utf8_lossy(&text)
            );
        }
        report
    }

    fn bodies(&self) -> Vec<(u32, String, String)> {
        let read = Thread::open(&self.place()).unwrap().messages().unwrap();
        let of = |m: &kd_core::Message| (m.seq, m.from.clone(), m.body.to_string());
        read.messages.iter().map(of).collect()
    }
}

/// Makes a file look an hour old.
fn age(path: &Path) {
    let then = SystemTime::now() - Duration::from_secs(3600);
    File::open(path).unwrap().set_modified(then).unwrap();
}

/// Returns the content of every file that is or was a message, or describes the thread.
fn everything(folder: &Path) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for item in fs::read_dir(folder).unwrap().map(|i| i.unwrap()) {
        let name = item.file_name().into_string().unwrap();
        if name == ".kd-lost" {
            all.extend(everything(&item.path()));
        } else if item.file_type().unwrap().is_file() && !name.starts_with(".kd-") {
            all.push(fs::read(item.path()).unwrap());
        }
    }
    all
}

fn kinds(report: &Report) -> Vec<(Kind, String)> {
    let of = |f: &fsck::Finding| {
        let name = f.path.file_name().unwrap().to_string_lossy().into_owned();
        (f.kind, name)
    };
    report.findings.iter().map(of).collect()
}

fn only(report: &Report, kind: Kind, name: &str) {
    assert_eq!(kinds(report), [(kind, name.to_owned())], "{report:#?}");
}

const HEAD: &str = "---\nfrom: codex\nto: king\ntimestamp: 2026-11-21T08:00:00Z\n";

#[test]
fn a_thread_of_ours_is_clean() {
    let stage = Stage::new();
    let report = stage.check();
    assert_eq!(
        (report.messages, report.findings.len()),
        (2, 0),
        "{report:#?}"
    );
}

#[test]
fn a_clone_without_thread_json_gets_one() {
    let stage = Stage::new();
    let path = stage.place().path.join("thread.json");
    fs::remove_file(&path).unwrap();
    let report = stage.check();
    only(&report, Kind::NoMeta, "thread.json");
    stage.repair();
    let text = fs::read_to_string(&path).unwrap();
    for part in [
        "\"created_at\": \"2026-11-21T07:57:55Z\"",
        "\"pattern\": \"council\"",
        "\"king\",\n    \"claude\"",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_torn_thread_json_hides_nothing_and_is_kept() {
    let stage = Stage::new();
    stage.put("thread.json", "{\"id\": \"counc");
    let thread = Thread::open(&stage.place()).unwrap();
    assert!(thread.meta().is_council());
    assert_eq!(thread.members(), common::seats(&["claude"]));
    only(&stage.check(), Kind::TornMeta, "thread.json");
    stage.repair();
    let lost = stage.place().path.join(".kd-lost/thread.json");
    assert_eq!(fs::read_to_string(lost).unwrap(), "{\"id\": \"counc");
}

#[test]
fn a_thread_json_that_other_programs_stumble_over_is_mended() {
    let stage = Stage::new();
    stage.put(
        "thread.json",
        r#"{"id": "council-other", "created_at": "2026-11-21T08:00:00", "members": ["claude"], "pattern": "council", "mood": "good"}"#,
    );
    let report = stage.check();
    only(&report, Kind::OddMeta, "thread.json");
    let what = &report.findings[0].what;
    assert!(
        what.contains("folder's name") && what.contains("no zone") && what.contains("king"),
        "{what}"
    );
    stage.repair();
    let text = fs::read_to_string(stage.place().path.join("thread.json")).unwrap();
    assert!(
        text.contains("\"2026-11-21T08:00:00Z\"") && text.contains("\"mood\": \"good\""),
        "{text}"
    );
}

#[test]
fn an_empty_message_is_set_aside() {
    let stage = Stage::new();
    stage.put("0003-codex.md", "");
    only(&stage.check(), Kind::Empty, "0003-codex.md");
    stage.repair();
    assert_eq!(stage.bodies().len(), 2);
    assert!(stage.place().path.join(".kd-lost/0003-codex.md").exists());
    assert_eq!(
        fs::read_to_string(stage.place().path.join(".kd-lost/.gitignore")).unwrap(),
        "*\n"
    );
}

#[test]
fn a_file_that_may_still_be_written_is_left_alone() {
    let stage = Stage::new();
    fs::write(stage.place().path.join("0003-codex.md"), "").unwrap();
    let mut report = stage.check();
    fsck::repair(&stage.place(), &mut report).unwrap();
    assert!(report.findings[0].is_open());
    let why = report.findings[0].mended.clone().unwrap().unwrap_err();
    assert_eq!(why, fsck::NotMended::Fresh);
    assert!(stage.place().path.join("0003-codex.md").exists());
}

#[test]
fn a_text_without_front_matter_gets_one() {
    let stage = Stage::new();
    stage.put("0003-codex.md", "just words\n\nof mine");
    only(&stage.check(), Kind::NoHeader, "0003-codex.md");
    assert_eq!(stage.bodies().len(), 2, "until then it is no message");
    stage.repair();
    assert_eq!(
        stage.bodies()[2],
        (3, "codex".into(), "just words\n\nof mine".into())
    );
}

#[test]
fn a_torn_front_matter_is_set_aside() {
    let stage = Stage::new();
    stage.put("0003-codex.md", "---\nfrom: codex\nto: ki");
    only(&stage.check(), Kind::TornHeader, "0003-codex.md");
    stage.repair();
    assert_eq!(stage.bodies().len(), 2);
}

#[test]
fn what_cannot_be_read_of_a_header_is_written_anew() {
    let stage = Stage::new();
    stage.put(
        "0003-codex.md",
        b"---\nfrom: codex\nto: king\ntimestamp: yesterday\nstatus: brilliant\nnonsense\nmood: good\n---\n\nW\xffrds\n",
    );
    let report = stage.check();
    only(&report, Kind::OddHeader, "0003-codex.md");
    for part in ["UTF-8", "yesterday", "brilliant", "nonsense"] {
        assert!(report.findings[0].what.contains(part), "{report:#?}");
    }
    assert_eq!(
        stage.bodies()[2].2,
        "W\u{fffd}rds",
        "it is read as far as it can be"
    );
    stage.repair();
    let text = fs::read_to_string(stage.place().path.join("0003-codex.md")).unwrap();
    assert!(
        text.contains("mood: good") && text.contains("W\u{fffd}rds"),
        "{text}"
    );
}

#[test]
fn a_fence_inside_a_value_is_taken_apart() {
    let stage = Stage::new();
    stage.put(
        "0003-codex.md",
        format!("{HEAD}cli_version: 1.0---beta\n---\n\nWords\n"),
    );
    only(&stage.check(), Kind::EarlyEnd, "0003-codex.md");
    stage.repair();
    let text = fs::read_to_string(stage.place().path.join("0003-codex.md")).unwrap();
    // kingdom-cli ends the header at the second `---`, wherever it is.
    assert_eq!(text.splitn(3, "---").nth(2), Some("\n\nWords\n"), "{text}");
}

#[test]
fn references_on_lines_of_their_own_come_onto_one() {
    let stage = Stage::new();
    stage.put(
        "0003-codex.md",
        format!("{HEAD}refs:\n  - a.rs\n  - b.rs\n---\n\nWords\n"),
    );
    only(&stage.check(), Kind::BlockList, "0003-codex.md");
    stage.repair();
    let text = fs::read_to_string(stage.place().path.join("0003-codex.md")).unwrap();
    assert!(text.contains("\nrefs: [a.rs, b.rs]\n"), "{text}");
}

#[test]
fn doubles_get_numbers_of_their_own_and_no_text_is_lost() {
    let stage = Stage::new();
    for sender in ["codex", "cursor"] {
        stage.put(
            &format!("0002-{sender}.md"),
            format!("{HEAD}---\n\nby {sender}\n"),
        );
    }
    let found = kinds(&stage.check());
    assert_eq!(
        found,
        [
            (Kind::Double, "0002-codex.md".into()),
            (Kind::Double, "0002-cursor.md".into())
        ]
    );
    stage.repair();
    let numbers: Vec<u32> = stage.bodies().iter().map(|(seq, ..)| *seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let thread = Thread::open(&stage.place()).unwrap();
    assert_eq!(
        thread.append(&draft(KING, "on")).unwrap().seq,
        5,
        "the index knows"
    );
}

#[test]
fn links_and_folders_with_a_messages_name_are_set_aside() {
    let stage = Stage::new();
    let folder = stage.place().path;
    symlink("/etc/passwd", folder.join("0003-codex.md")).unwrap();
    fs::create_dir(folder.join("0004-codex.md")).unwrap();
    let found = kinds(&stage.check());
    assert_eq!(
        found,
        [
            (Kind::Unreadable, "0003-codex.md".into()),
            (Kind::Unreadable, "0004-codex.md".into())
        ]
    );
    stage.repair();
    let lost = folder.join(".kd-lost");
    let target = fs::read_link(lost.join("0003-codex.md")).unwrap();
    assert_eq!(target, Path::new("/etc/passwd"));
    assert!(lost.join("0004-codex.md").is_dir());
}

#[test]
fn a_stale_stream_is_set_aside_and_a_living_one_is_not() {
    let stage = Stage::new();
    stage.put(".stream-codex.jsonl", "{\"type\":\"half\"}\n");
    let thread = Thread::open(&stage.place()).unwrap();
    let living = kd_store::StreamWriter::create(&thread, "claude").unwrap();
    age(living.path());
    only(&stage.check(), Kind::StaleStream, ".stream-codex.jsonl");
    stage.repair();
    assert!(living.path().exists());
    assert!(
        stage
            .place()
            .path
            .join(".kd-lost/.stream-codex.jsonl")
            .exists()
    );
}

#[test]
fn what_is_no_problem_is_only_noted() {
    let stage = Stage::new();
    stage.put(
        "10000-codex.md",
        format!("{HEAD}---\n\nlate\n").replace('\n', "\r\n"),
    );
    stage.put("notes.txt", "mine");
    stage.put("001-king.md", "mine");
    let report = stage.repair();
    assert_eq!(
        kinds(&report),
        [
            (Kind::Alien, "001-king.md".into()),
            (Kind::Crlf, "10000-codex.md".into()),
            (Kind::FiveDigits, "10000-codex.md".into()),
            (Kind::Alien, "notes.txt".into()),
        ]
    );
    assert_eq!(stage.bodies()[2], (10000, "codex".into(), "late".into()));
    assert!(stage.place().path.join("notes.txt").exists());
}

#[test]
fn a_choice_of_an_answer_that_is_not_there_is_noted() {
    let stage = Stage::new();
    let answers = stage.bodies();
    let (answer, ..) = answers.iter().find(|(_, from, _)| from != KING).unwrap();
    let choice = |seq: u32, chosen: &str| {
        let head = HEAD.replace("from: codex", "from: king");
        let head = head.replace("status: complete\n", "");
        stage.put(
            &format!("{seq:04}-king.md"),
            format!("{head}chosen: {chosen}\n---\n\nThat one.\n"),
        );
    };
    choice(20, &answer.to_string());
    for (seq, chosen) in [(21, "1"), (22, "99"), (23, "22"), (24, "-1")] {
        choice(seq, chosen);
    }
    let report = stage.repair();
    let wrong = [21, 22, 23, 24].map(|seq| (Kind::StrayChoice, format!("{seq:04}-king.md")));
    assert_eq!(kinds(&report), wrong);
    assert!(report.findings[1].what.contains("message 99"));
}

#[test]
fn torn_json_beside_the_messages_is_set_aside() {
    let stage = Stage::new();
    stage.put(".pending-messages.json", "{\"deliveries\": [");
    only(&stage.check(), Kind::TornJson, ".pending-messages.json");
    stage.repair();

    let layout = stage.layout();
    let session = layout.session_file(&common::seats(&["claude"])[0]);
    fs::create_dir_all(layout.sessions_folder()).unwrap();
    for path in [&session, &layout.state_file()] {
        fs::write(path, "{torn").unwrap();
        age(path);
    }
    let mut report = fsck::check_branch(&layout).unwrap();
    assert_eq!(report.findings.len(), 2, "{report:#?}");
    fsck::repair_branch(&layout, &mut report).unwrap();
    assert!(report.findings.iter().all(|f| !f.is_open()), "{report:#?}");
    assert!(!session.exists() && layout.branch_folder().join(".kd-lost/claude.json").exists());
    assert!(fsck::check_branch(&layout).unwrap().findings.is_empty());
}

#[test]
fn a_double_that_a_program_without_our_lock_makes_is_parted_by_our_next_writer() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["ada"]);
    thread.append(&draft(KING, "one")).unwrap();
    let ours = thread.append(&draft("ada", "two")).unwrap();
    // It listed before our message existed, and created after.
    fs::write(
        thread.path().join("0002-zed.md"),
        format!("{HEAD}---\n\nby zed\n"),
    )
    .unwrap();
    assert_eq!(thread.append(&draft("ada", "four")).unwrap().seq, 4);
    let read = thread.messages().unwrap().messages;
    let seen: Vec<(u32, &str)> = read.iter().map(|m| (m.seq, m.body.as_str())).collect();
    assert_eq!(
        seen,
        [(1, "one"), (ours.seq, "two"), (3, "by zed"), (4, "four")]
    );

    // Duplicates are also resolved at the end of a session, when nothing more is written.
    fs::write(
        thread.path().join("0004-zed.md"),
        format!("{HEAD}---\n\nagain\n"),
    )
    .unwrap();
    thread.settle().unwrap();
    let read = thread.messages().unwrap().messages;
    assert_eq!(
        read.last().map(|m| (m.seq, m.body.as_str())),
        Some((5, "again"))
    );

    // Old duplicates existed before: a clone, or a merge. `fsck` reports them.
    let (abe, zed) = (
        thread.path().join("0005-abe.md"),
        thread.path().join("0005-zed.md"),
    );
    fs::write(&abe, format!("{HEAD}---\n\nold\n")).unwrap();
    age(&abe);
    age(&zed);
    assert_eq!(thread.append(&draft("ada", "six")).unwrap().seq, 6);
    assert!(abe.exists() && zed.exists());
    // Announced messages keep their number, whatever their age.
    fs::write(
        thread.path().join("0006-zed.md"),
        format!("{HEAD}---\n\nlate\n"),
    )
    .unwrap();
    thread.settle().unwrap();
    assert!(thread.path().join("0006-ada.md").exists());
    assert!(thread.path().join("0007-zed.md").exists());
}

#[test]
fn only_what_can_be_read_is_counted() {
    let stage = Stage::new();
    stage.put("0003-codex.md", "no header");
    stage.put(
        "0004-codex.md",
        format!("---\n{}---\n\nlong header\n", "key: value\n".repeat(900)),
    );
    stage.put("0005-codex.md", "");
    let thread = Thread::open(&stage.place()).unwrap();
    assert_eq!(thread.count_readable().unwrap(), 3);
}

#[test]
fn copies_of_attachments_are_known_and_those_that_are_missing_or_changed_are_found() {
    let stage = Stage::new();
    let picture = |last: u8| {
        let bytes = [&b"\x89PNG\r\n\x1a\n"[..], &[last]].concat();
        Attachment::new("shot.png", bytes).unwrap()
    };
    let all = [1, 2, 3].map(picture);
    let blocks: Vec<String> = all.iter().map(Attachment::block).collect();
    let head = HEAD.replace("from: codex", "from: king");
    stage.put(
        "0003-king.md",
        format!("{head}---\n\nSee.\n\n{}\n", blocks.join("\n\n")),
    );
    // What members repeat attaches nothing.
    let block = picture(9).block();
    stage.put("0004-codex.md", format!("{HEAD}---\n\nSee.\n\n{block}\n"));
    for file in &all {
        stage.put(&file.copy, &file.bytes);
    }
    assert_eq!(kinds(&stage.check()), []);
    let folder = stage.place().path;
    let [_, missing, changed] = &all;
    fs::remove_file(folder.join(&*missing.copy)).unwrap();
    stage.put(&changed.copy, &missing.bytes);
    let mut wrong = [
        (Kind::NoCopy, missing.copy.to_string()),
        (Kind::OddCopy, changed.copy.to_string()),
    ];
    wrong.sort_by(|a, b| a.1.cmp(&b.1));
    let report = stage.repair();
    assert_eq!(kinds(&report), wrong, "{report:#?}");
    assert!(
        report
            .findings
            .iter()
            .any(|f| f.what.contains("0003-king.md names it as shot.png"))
    );
    assert!(!folder.join(&*changed.copy).exists(), "it was set aside");
    // A link is no copy.
    symlink("/etc/hosts", folder.join(&*changed.copy)).unwrap();
    assert!(kinds(&stage.check()).contains(&(Kind::Unreadable, changed.copy.to_string())));
}

/// Writes messages and their records, with padding between them.
fn recorded_thread(dir: &Path, padding: usize) -> (Thread, Vec<kd_core::Message>) {
    let thread = thread(dir, &["claude"]);
    let mut log = kd_store::EventLog::open(&thread).unwrap();
    let mut messages = Vec::new();
    for (from, body) in [(KING, "Which?"), ("claude", "This, 101 times.  \n\nBye")] {
        let message = thread.append(&draft(from, body)).unwrap();
        let record = |event| kd_core::Record {
            v: kd_core::event::FORMAT,
            seq: 1,
            ts: jiff::Timestamp::UNIX_EPOCH,
            thread: thread.id().clone(),
            event,
        };
        let notice = || kd_core::Event::OpRefused {
            why: "x".repeat(1000),
        };
        let added = kd_core::Event::MessageAdded {
            message: message.clone(),
            turn: None,
            found: false,
        };
        log.append(&[record(added)]).unwrap();
        let more: Vec<_> = (0..padding).map(|_| record(notice())).collect();
        log.append(&more).unwrap();
        messages.push(message);
    }
    (thread, messages)
}

#[test]
fn a_message_with_other_words_than_were_recorded_is_a_problem() {
    for padding in [0, 300] {
        let dir = tempfile::tempdir().unwrap();
        let (thread, messages) = recorded_thread(dir.path(), padding);
        let place = layout(dir.path()).threads().unwrap().remove(0);
        let look = || {
            age(&thread.path().join("0002-claude.md"));
            kinds(&fsck::check(&place, PATIENCE).unwrap())
        };
        assert_eq!(look(), []);
        let file = thread.path().join("0002-claude.md");
        let text = fs::read_to_string(&file).unwrap();
        // Spaces at the ends of lines are no words.
        fs::write(&file, text.replace("times.", "times.  ")).unwrap();
        assert_eq!(look(), []);
        fs::write(&file, text.replace("101", "999")).unwrap();
        let report = fsck::check(&place, PATIENCE).unwrap();
        assert_eq!(
            kinds(&report),
            [(Kind::OtherWords, "0002-claude.md".into())]
        );
        let what = "message 2 of claude has other words than were recorded";
        assert_eq!(report.findings[0].what, what);
        assert!(report.findings[0].is_open());
        // The end of the log is enough for the newest message.
        let changed = |seq, of: &kd_core::Message| {
            let recorded = kd_store::recorded::Recorded::since(&thread, seq, u64::MAX).unwrap();
            recorded.change(of)
        };
        let mut edited = messages[1].clone();
        assert_eq!(changed(2, &edited), None);
        edited.body = "Another".into();
        assert_eq!(changed(2, &edited).as_deref(), Some(what));
        let mut first = messages[0].clone();
        first.body = "Another".into();
        assert!(changed(1, &first).is_some() && changed(2, &first).is_none());
        // No more is read than allowed.
        let end = kd_store::recorded::Recorded::since(&thread, 0, 1).unwrap();
        assert_eq!(end.change(&first), None);
        // Words that were forgotten cannot be compared.
        let log = thread.path().join(".kd-events.jsonl");
        let lines = fs::read_to_string(&log).unwrap();
        fs::write(&log, lines.replace("This, 101 times.", "[forgotten]")).unwrap();
        assert_eq!(look(), []);
    }
}
