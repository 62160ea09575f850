//! Every past version of every stored format is readable, and the next one is rejected and left unchanged.
//!
//! `data/versions/<format>/<version>….<end>` are files of each version. All of them contain `kept`. Threads recorded by
//! older versions are in `kd/tests/data/recorded`.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::draft;
use kd_core::config::{KeyPath, Layer};
use kd_core::deliberation;
use kd_core::formats::{self, FORMATS, Format};
use kd_core::hex::hex;
use kd_core::seal::{Kind, Piece, Seal};
use kd_forum::chain::Fields;
use kd_sql::batch::Batches;
use kd_sql::forum::{ForumStore, Governance, Place as Forum, Repeat};
use kd_sql::marks::Marks;
use kd_store::config::{self, ConfigPaths};
use kd_store::ledger::LedgerFile;
use kd_store::reviews::{self, Reviews, Verdict};
use kd_store::user_dirs::project_key;
use kd_store::{
    EventLog, Layout, Place, Queue, Thread, TrustStore, UserDirs, fork, fsck, log, memory, prices,
    run_record, seal,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The functions that store, read and change a format.
struct Case {
    format: &'static Format,
    /// The folder of its files.
    corpus: &'static str,
    /// Puts a file in its place.
    put: fn(&Stage, &Path),
    /// Returns the content that is read, or the reason why it cannot be read.
    read: fn(&Stage) -> Result<String, String>,
    /// Tries everything that would change it.
    change: fn(&Stage),
    /// The next version of the file: a text in it and its replacement.
    newer: &'static [(&'static str, &'static str)],
}

/// Formats whose newer files or lines are skipped: nothing is done with them.
const PASSED_OVER: &[&Format] = &[&formats::RUN, &formats::LEDGER, &formats::BATCH_RESULT];

/// A home directory and a project with one thread.
struct Stage {
    top: TempDir,
    layout: Layout,
    dirs: UserDirs,
    place: Place,
}

impl Stage {
    /// Returns the file of batches of a project named app; its folder exists.
    fn batches_file(&self) -> PathBuf {
        let file = kd_sql::batch::path(&self.dirs, "app").unwrap();
        let folder = file.parent().unwrap();
        kd_store::user_dirs::make_private(folder).unwrap();
        file
    }

    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().join("home");
        let root = top.path().join("app");
        let thread = root.join(".kd/branches/main/threads/council-0001");
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(&thread).unwrap();
        let message = "---\nfrom: king\nto: all\ntimestamp: 2026-11-21T07:57:55Z\n---\n\nkept\n";
        fs::write(thread.join("0001-king.md"), message).unwrap();
        let env = |name: &str| -> Option<OsString> {
            (name == "HOME").then(|| home.clone().into_os_string())
        };
        let layout = Layout::find(&root, &env).unwrap();
        let place = layout.resolve("council-0001").unwrap();
        let dirs = UserDirs::from_env(&env);
        Self {
            top,
            layout,
            dirs,
            place,
        }
    }

    fn in_thread(&self, name: &str) -> PathBuf {
        self.place.path.join(name)
    }

    fn state(&self) -> PathBuf {
        self.dirs.state().unwrap().to_path_buf()
    }

    fn queue(&self) -> PathBuf {
        self.layout.queue_folder(&self.place.path).unwrap()
    }

    fn settings(&self) -> ConfigPaths {
        ConfigPaths {
            user: Some(self.top.path().join("home/.config/kd/config.json")),
            project: None,
            local: None,
            personas: None,
            trust: None,
            home: None,
        }
    }

    fn reviews(&self) -> Reviews {
        Reviews::of(&self.dirs, self.layout.root()).unwrap()
    }

    fn marks_file(&self) -> PathBuf {
        self.dirs.data().unwrap().join("marks.db")
    }

    fn marks(&self) -> Result<String, String> {
        let marks = Marks::open(&self.dirs).map_err(told)?;
        let marks = marks.all().map_err(told)?;
        Ok(marks.into_iter().map(|mark| mark.thread).collect())
    }

    fn forum(&self) -> Result<ForumStore, String> {
        let place = Forum::File(self.layout.forum_file());
        ForumStore::open(&place, Some(&self.state())).map_err(told)
    }

    fn events(&self) -> Result<Vec<kd_core::Record>, String> {
        let thread = Thread::open(&self.place).map_err(told)?;
        Ok(log::read(&thread).map_err(told)?.records)
    }

    /// Returns every file except locks, with its bytes.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.top.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).unwrap() {
                let path = item.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false if path.extension().is_some_and(|end| end == "lock") => {}
                    false => {
                        let bytes = fs::read(&path).unwrap();
                        found.insert(path, bytes);
                    }
                }
            }
        }
        found
    }
}

fn told(error: impl Display) -> String {
    error.to_string()
}

fn copy(from: &Path, to: PathBuf) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::write(to, fs::read(from).unwrap()).unwrap();
}

fn run_sql(file: &Path, scripts: &[PathBuf]) -> rusqlite::Connection {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let db = rusqlite::Connection::open(file).unwrap();
    for script in scripts {
        db.execute_batch(&fs::read_to_string(script).unwrap())
            .unwrap();
    }
    db
}

/// Decides a deliberation of the corpus again. Returns `kept` if the decision is the same.
fn decided(stage: &Stage) -> Result<String, String> {
    let records = deliberation::last(stage.events()?).unwrap();
    deliberation::check(&records).map_err(told)?;
    let again = deliberation::replay(&records).unwrap();
    Ok(match (again.difference, again.finished) {
        (None, true) => "kept".to_owned(),
        (difference, _) => format!("{difference:?}"),
    })
}

fn put_events(stage: &Stage, file: &Path) {
    copy(file, stage.in_thread(".kd-events.jsonl"));
}

fn rules(format: &'static Format, newer: &'static [(&'static str, &'static str)]) -> Case {
    Case {
        format,
        corpus: "../../../../kd/tests/data/recorded",
        put: put_events,
        read: decided,
        change: |_| {},
        newer,
    }
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            format: &formats::THREAD,
            corpus: "thread",
            put: |stage, file| copy(file, stage.in_thread("thread.json")),
            read: |stage| {
                let thread = Thread::open(&stage.place).map_err(told)?;
                assert!(fsck_is_clean_of_repairs(stage));
                let messages = thread.messages().map_err(told)?.messages;
                Ok(messages.into_iter().map(|m| String::from(m.body)).collect())
            },
            change: |stage| {
                let mut report = fsck::check(&stage.place, Duration::ZERO).unwrap();
                assert_eq!(report.findings.len(), 1);
                fsck::repair(&stage.place, &mut report).unwrap();
            },
            newer: &[
                ("{", "{\"kd_version\": 2, "),
                ("\"id\": \"council-0001\"", "\"kd_version\": 2"),
            ],
        },
        Case {
            format: &formats::EVENTS,
            corpus: "events",
            put: put_events,
            read: |stage| Ok(format!("{:?}", stage.events()?)),
            change: |stage| {
                let thread = Thread::open(&stage.place).unwrap();
                let cut = kd_core::fork::Cut::End;
                assert!(fork::fork(&stage.layout, &thread, &cut).is_err());
            },
            newer: &[
                ("\"v\":1", "\"v\":2"),
                (
                    "{\"v\":1,\"seq\":1,",
                    "{\"v\":2,\"event\":\"later\"}\n{\"v\":1,\"seq\":1,",
                ),
            ],
        },
        rules(&formats::READING, &[("\"reading\":2", "\"reading\":6")]),
        rules(&formats::SPENDING, &[("\"spending\":1", "\"spending\":4")]),
        rules(&formats::WRITING, &[("\"writing\":1", "\"writing\":6")]),
        Case {
            format: &formats::SETTINGS_FILE,
            corpus: "settings",
            put: |stage, file| copy(file, stage.settings().user.unwrap()),
            read: |stage| {
                let loaded = config::load(&stage.settings(), [], &[]).map_err(told)?;
                Ok(loaded.config.council.preamble.unwrap_or_default())
            },
            change: |stage| {
                let path = KeyPath::new(["council", "timeout"]);
                let seven = serde_json::json!(7);
                assert!(config::set(&stage.settings(), Layer::User, &path, seven).is_err());
                assert!(config::unset(&stage.settings(), Layer::User, &path).is_err());
            },
            newer: &[
                ("{", "{\"version\": 2, "),
                // Keys that this version does not know are not mistakes of the user.
                ("{", "{\"later\": true, \"version\": 2,"),
            ],
        },
        Case {
            format: &formats::MEMORY,
            corpus: "memory",
            put: |stage, file| copy(file, stage.layout.memory_file()),
            read: |stage| Ok(memory::read(&stage.layout).map_err(told)?.domain),
            change: |_| {},
            newer: &[("\"version\": 1", "\"version\": 2")],
        },
        Case {
            format: &formats::QUEUE,
            corpus: "queue",
            put: |stage, file| copy(file, stage.queue().join("queue-1.jsonl")),
            read: |stage| {
                let (_, left) = Queue::open(&stage.queue()).map_err(told)?;
                Ok(left.into_iter().map(|delivery| delivery.body).collect())
            },
            change: |_| {},
            newer: &[
                ("{\"keep\"", "{\"v\": 2, \"keep\""),
                ("{\"keep\"", "{\"v\": 2, \"later\": 1}\n{\"keep\""),
            ],
        },
        Case {
            format: &formats::TRUST,
            corpus: "trust",
            put: |stage, file| copy(file, stage.state().join("trust.json")),
            read: |stage| {
                let store = TrustStore::new(&stage.dirs).map_err(told)?;
                let folders = store.list().map_err(told)?;
                Ok(folders.into_iter().map(|folder| folder.path).collect())
            },
            change: |stage| {
                let store = TrustStore::new(&stage.dirs).unwrap();
                assert!(
                    store
                        .accept_owners(stage.layout.root(), &[7].into())
                        .is_err()
                );
                assert!(store.revoke(stage.layout.root()).is_err());
            },
            newer: &[("\"version\": 1", "\"version\": 2")],
        },
        Case {
            format: &formats::REVIEWS,
            corpus: "reviews",
            put: |stage, file| {
                let key = project_key(stage.layout.root());
                let folder = stage.dirs.data().unwrap().join("reviews").join(key);
                copy(file, folder.join("marks.json"));
            },
            read: |stage| {
                let marks = stage.reviews().marks().map_err(told)?;
                Ok(marks.into_iter().map(|mark| mark.id).collect())
            },
            change: |stage| {
                let mark = reviews::Mark {
                    id: "new".into(),
                    verdict: Verdict::Dismissed,
                    agreeing: 1,
                    of: 1,
                    thread: "council-0001".into(),
                    at: kd_core::Timestamp::UNIX_EPOCH,
                    severity: None,
                };
                assert!(stage.reviews().mark(mark).is_err());
            },
            newer: &[("\"version\": 1", "\"version\": 2")],
        },
        Case {
            format: &formats::PRICES,
            corpus: "prices",
            put: |stage, file| copy(file, stage.dirs.data().unwrap().join("prices.tsv")),
            read: |stage| {
                let prices = prices::load(&stage.dirs).map_err(told)?;
                let names = prices.table().rows().map(|row| row.1.to_owned());
                Ok(names.collect())
            },
            change: |_| {},
            newer: &[("# version 1", "# version 2")],
        },
        Case {
            format: &formats::LEDGER,
            corpus: "spending",
            put: |stage, file| {
                let folder = stage.dirs.data().unwrap().join("spending");
                copy(file, folder.join("2026-01.jsonl"));
            },
            read: |stage| {
                let zone = jiff::tz::TimeZone::UTC;
                let ledger = LedgerFile::new(&stage.dirs, String::new(), zone).map_err(told)?;
                let read = ledger.since(kd_core::Timestamp::UNIX_EPOCH).map_err(told)?;
                Ok(read.entries.into_iter().map(|e| e.payer.member).collect())
            },
            change: |_| {},
            newer: &[("\"v\":1", "\"v\":2"), ("\"v\":1", "\"later\":1,\"v\":2")],
        },
        Case {
            format: &formats::MARKS,
            corpus: "marks",
            put: |stage, file| drop(run_sql(&stage.marks_file(), &[file.to_path_buf()])),
            read: Stage::marks,
            change: |_| {},
            newer: &[("user_version = 4", "user_version = 5")],
        },
        Case {
            format: &formats::MARK,
            corpus: "mark",
            put: |stage, file| {
                drop(Marks::open(&stage.dirs).unwrap());
                let db = run_sql(&stage.marks_file(), &[]);
                let text = fs::read_to_string(file).unwrap();
                let add = "INSERT INTO marks (project, thread, message, current, mark) VALUES ('app-00', 'kept', 6, 1, ?1)";
                db.execute(add, [text]).unwrap();
            },
            read: Stage::marks,
            change: |_| {},
            newer: &[
                ("\"v\": 1", "\"v\": 2"),
                ("\"v\": 1, \"project\"", "\"v\": 2, \"folder\""),
            ],
        },
        Case {
            format: &formats::BATCHES,
            corpus: "batches",
            put: |stage, file| drop(run_sql(&stage.batches_file(), &[file.to_path_buf()])),
            read: |stage| {
                let batches = Batches::find(&stage.dirs, "app").map_err(|e| e.to_string())?;
                let all = batches.unwrap().all().map_err(|e| e.to_string())?;
                Ok(all.into_iter().map(|batch| batch.about.source).collect())
            },
            change: |_| {},
            newer: &[("user_version = 1", "user_version = 2")],
        },
        Case {
            format: &formats::BATCH_RESULT,
            corpus: "batch-result",
            put: |stage, file| {
                let folder = stage.batches_file();
                drop(Batches::at(&folder).unwrap());
                let db = run_sql(&folder, &[]);
                let text = fs::read_to_string(file).unwrap();
                let add = "INSERT INTO results (batch, place, key, kept, cached, line) VALUES ('b', 1, 'k', 1, 0, ?1)";
                db.execute(add, [text]).unwrap();
            },
            read: |stage| {
                let batches = Batches::find(&stage.dirs, "app").map_err(|e| e.to_string())?;
                let knows = batches.unwrap().knows("k").map_err(|e| e.to_string())?;
                Ok(if knows { "kept" } else { "none" }.to_owned())
            },
            change: |_| {},
            newer: &[
                ("\"v\":1", "\"v\":2"),
                ("\"v\":1,\"batch\"", "\"v\":2,\"group\""),
            ],
        },
        Case {
            format: &formats::FORUM,
            corpus: "forum",
            put: |stage, file| {
                // A step and all before it create a forum of that version.
                let mut steps: Vec<PathBuf> = corpus("forum");
                steps.retain(|step| step.file_name() < file.file_name());
                steps.push(file.to_path_buf());
                let db = run_sql(&stage.layout.forum_file(), &steps);
                db.execute_batch(
                    "INSERT INTO threads (forum, title, author, created_at, updated_at, post_count, last_author, last_post_id)
                       VALUES ('main', 'kept', 'ann', 1, 1, 1, 'ann', 1);
                     INSERT INTO posts (thread_id, author, body, created_at) VALUES (1, 'ann', 'Words.', 1);
                     INSERT INTO words (rowid, title, body, author) VALUES (1, 'kept', 'Words.', 'ann')",
                )
                .unwrap();
            },
            read: |stage| {
                let mut out = Vec::new();
                stage.forum()?.export(&mut out).map_err(told)?;
                Ok(String::from_utf8(out).unwrap())
            },
            change: |_| {},
            newer: &[("user_version = 11", "user_version = 12")],
        },
        Case {
            format: &formats::FORUM_EXPORT,
            corpus: "forum-export",
            put: |stage, file| {
                drop(stage.forum().unwrap());
                copy(file, stage.top.path().join("forum.jsonl"));
            },
            read: |stage| {
                let file = fs::read(stage.top.path().join("forum.jsonl")).unwrap();
                let mut store = stage.forum()?;
                let (closed, once) = (Governance::Closed, Repeat::Refused);
                let mut lines = file.as_slice();
                store.import(&mut lines, closed, once).map_err(told)?;
                let mut out = Vec::new();
                store.export(&mut out).map_err(told)?;
                Ok(String::from_utf8(out).unwrap())
            },
            change: |_| {},
            newer: &[("\"version\": 3", "\"version\": 4")],
        },
        Case {
            format: &formats::FORUM_SECRETS,
            corpus: "forum-secrets",
            put: |stage, file| {
                drop(stage.forum().unwrap());
                let forum = stage.layout.forum_file().canonicalize().unwrap();
                let key = Fields::of("kd forum place 1").text(&forum.to_string_lossy());
                let key = hex(&key.text("main").hash()[..16]);
                copy(file, stage.state().join(format!("forums/{key}.json")));
            },
            read: |stage| {
                let lead = stage.forum()?.lead("main");
                lead.map(|_| "kept".to_owned()).map_err(told)
            },
            change: |_| {},
            newer: &[("\"version\": 1", "\"version\": 2")],
        },
        Case {
            format: &formats::RUN,
            corpus: "run",
            put: |stage, file| copy(file, stage.state().join("run/agents/1-1.json")),
            read: |stage| {
                let runs = run_record::read_all(&stage.dirs).map_err(told)?;
                Ok(format!("{runs:?}"))
            },
            change: |_| {},
            newer: &[("\"pid\": 4000001", "\"version\": 2, \"pid\": 4000001")],
        },
        Case {
            format: &formats::SEAL,
            corpus: "seal",
            put: |stage, file| copy(file, stage.top.path().join("sealed.json")),
            read: |stage| {
                let bytes = fs::read(stage.top.path().join("sealed.json")).unwrap();
                let sealed = Seal::read(&bytes).map_err(told)?;
                let thread = seal::import(&stage.layout, &sealed).map_err(told)?;
                let messages = thread.messages().map_err(told)?.messages;
                Ok(messages.into_iter().map(|m| String::from(m.body)).collect())
            },
            change: |_| {},
            newer: &[
                ("\"v\":1}", "\"v\":2}"),
                ("\"v\":1}", "\"later\":1,\"v\":2}"),
            ],
        },
    ]
}

fn fsck_is_clean_of_repairs(stage: &Stage) -> bool {
    let report = fsck::check(&stage.place, Duration::ZERO).unwrap();
    report.findings.iter().all(|found| found.remedy.is_none())
}

/// Returns the files of a corpus folder, by name.
fn corpus(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/versions")
        .join(folder);
    let items = fs::read_dir(&folder).unwrap().map(|item| {
        let path = item.unwrap().path();
        match path.is_dir() {
            true => path.join(".kd-events.jsonl"),
            false => path,
        }
    });
    let mut found: Vec<PathBuf> = items.collect();
    found.sort();
    assert!(!found.is_empty(), "{}", folder.display());
    found
}

#[test]
fn every_format_that_is_read_has_a_case() {
    let cases = cases();
    let covered = |format: &&Format| cases.iter().any(|case| case.format == *format);
    // On a server; `kd-sql/tests/fleet` refuses a newer one. There is only one version so far.
    assert_eq!(formats::FLEET.version, 1);
    for format in FORMATS.iter().filter(|f| f.what != formats::FLEET.what) {
        assert!(covered(format), "{}", format.what);
    }
}

#[test]
fn every_version_that_was_ever_written_is_read() {
    for case in cases() {
        let mut versions = Vec::new();
        for file in corpus(case.corpus) {
            let stage = Stage::new();
            (case.put)(&stage, &file);
            let read = (case.read)(&stage).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            assert!(read.contains("kept"), "{}: {read}", file.display());
            let name = file.file_stem().unwrap().to_string_lossy();
            let digits = name.split('-').next().unwrap();
            versions.extend(digits.parse::<u32>());
        }
        if !versions.is_empty() {
            let newest = versions.into_iter().max();
            assert_eq!(newest, Some(case.format.version), "{}", case.format.what);
        }
    }
}

#[test]
fn a_newer_version_is_refused_and_left_as_it_is() {
    for case in cases() {
        let Format { what, version, .. } = *case.format;
        for (old, new) in case.newer {
            let file = corpus(case.corpus).into_iter().rfind(|file| {
                let text = fs::read_to_string(file).unwrap();
                text.contains(old)
            });
            let file = file.unwrap_or_else(|| panic!("no file of {what} has {old}"));
            let text = fs::read_to_string(&file).unwrap().replacen(old, new, 1);
            let stage = Stage::new();
            let newer = tempfile::tempdir().unwrap();
            let newer = newer.path().join(file.file_name().unwrap());
            fs::write(&newer, text).unwrap();
            (case.put)(&stage, &newer);
            let before = stage.files();
            match (case.read)(&stage) {
                Ok(read) => {
                    assert!(PASSED_OVER.contains(&case.format), "{what}: {read}");
                    assert!(!read.contains("kept"), "{what}: {read}");
                }
                Err(error) => {
                    let next = version + 1;
                    let said =
                        format!("version {next} of {what}; this kd reads versions up to {version}");
                    assert!(error.contains(&said), "{what}: {error}");
                }
            }
            (case.change)(&stage);
            assert!(stage.files() == before, "{what}: files were changed");
        }
    }
}

/// Everything `kd` writes now states its version, or can be read without one.
#[test]
fn what_is_written_now_states_its_version() {
    let stage = Stage::new();
    let thread = Thread::open(&stage.place).unwrap();
    memory::update(&stage.layout, |known| known.domain.push('x')).unwrap();
    let store = TrustStore::new(&stage.dirs).unwrap();
    store
        .accept_owners(stage.layout.root(), &[7].into())
        .unwrap();
    let message = thread.append(&draft("ann", "x")).unwrap();
    let record = kd_core::Record {
        v: kd_core::event::FORMAT,
        seq: 1,
        ts: kd_core::Timestamp::UNIX_EPOCH,
        thread: thread.id().clone(),
        event: kd_core::Event::MessageAdded {
            message,
            turn: None,
            found: false,
        },
    };
    EventLog::open(&thread).unwrap().append([&record]).unwrap();
    for (file, format, field) in [
        (stage.layout.memory_file(), &formats::MEMORY, "version"),
        (store.file().to_path_buf(), &formats::TRUST, "version"),
        (stage.in_thread(".kd-events.jsonl"), &formats::EVENTS, "v"),
    ] {
        let stated = formats::stated(&fs::read(&file).unwrap(), field);
        assert_eq!(stated, Some(format.version.into()), "{}", file.display());
    }
}

/// A seal of this version can hold files of a newer one.
#[test]
fn a_sealed_file_with_a_newer_thread_inside_makes_no_thread() {
    let piece = |kind, name: &str, text: &str| Piece {
        kind,
        name: name.into(),
        text: text.into(),
        salt: [1; 16],
    };
    for (inside, said) in [
        (
            piece(
                Kind::Thread,
                "thread.json",
                "{\"id\": \"council-0002\", \"kd_version\": 2}",
            ),
            "thread.json has version 2 of a thread",
        ),
        (
            piece(
                Kind::Event,
                ".kd-events.jsonl",
                "{\"v\":2,\"event\":\"later\"}",
            ),
            ".kd-events.jsonl has version 2 of an event",
        ),
    ] {
        let stage = Stage::new();
        let before = stage.files();
        let sealed = Seal::new("council-0002", "2026-11-23T08:00:00Z", [inside]).unwrap();
        let error = seal::import(&stage.layout, &sealed).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert!(stage.files() == before);
        assert_eq!(stage.layout.threads().unwrap().len(), 1);
    }
}
