//! Reports what other processes do in a thread's folder: complete messages, pieces of streams, and their ends.

#![allow(clippy::unwrap_used)] // tests may panic

use kd_core::{Address, Delta, Draft, Input, Member, SeatName, Timestamp};
use kd_engine::Watch;
use kd_store::{Layout, StreamWriter, Thread};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Longer than any report takes on a busy machine; reached only when the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

struct Scene {
    _folder: TempDir,
    thread: Arc<Thread>,
    told: mpsc::Receiver<Input>,
    _watch: Watch,
}

fn seat(name: &str) -> SeatName {
    SeatName::new(name).unwrap()
}

impl Scene {
    /// Returns a watched thread, after `before` has changed it.
    fn after(before: impl FnOnce(&Thread)) -> Self {
        let folder = TempDir::new().unwrap();
        let layout = Layout::find_or_create(folder.path(), &|_| None)
            .unwrap()
            .layout;
        let thread = Arc::new(Thread::create(&layout, &[seat("claude")]).unwrap());
        before(&thread);
        let (sender, told) = mpsc::channel(64);
        let watch = Watch::start(thread.clone(), 0, &[claude()], sender).unwrap();
        Self {
            _folder: folder,
            thread,
            told,
            _watch: watch,
        }
    }

    async fn next(&mut self) -> Input {
        tokio::time::timeout(PATIENCE, self.told.recv())
            .await
            .expect("news")
            .expect("alive")
    }

    /// Returns the text of the next piece; empty for a sign of life.
    async fn piece(&mut self) -> String {
        match self.next().await {
            Input::FoundDelta { seat: from, delta } if from == seat("claude") => match delta {
                Delta::Text { text } => text,
                _ => String::new(),
            },
            other => panic!("no piece: {other:?}"),
        }
    }

    /// Returns the text of the next pieces, and the input that follows them.
    async fn text(&mut self) -> (String, Input) {
        let mut all = String::new();
        loop {
            match self.next().await {
                Input::FoundDelta { seat: from, delta } if from == seat("claude") => {
                    if let Delta::Text { text } = delta {
                        all.push_str(&text);
                    }
                }
                other => return (all, other),
            }
        }
    }
}

fn claude() -> Member {
    Member::new(seat("claude"), "claude_code")
}

fn draft(body: &str) -> Draft {
    Draft {
        turn: None,
        from: "claude".into(),
        to: Address::King,
        at: Timestamp::UNIX_EPOCH,
        status: None,
        refs: Vec::new(),
        provenance: Default::default(),
        extra: Default::default(),
        body: body.into(),
    }
}

fn body(input: Input) -> String {
    match input {
        Input::Found { message } => message.body.to_string(),
        other => panic!("no message: {other:?}"),
    }
}

#[tokio::test]
async fn another_program_writes_raw_lines_and_its_message_piecemeal() {
    let mut scene = Scene::after(|_| {});
    let stream = scene.thread.path().join(".stream-claude.jsonl");
    let piece = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"half an "}}}"#;
    fs::write(&stream, format!("{piece}\n{{\"type\":\"stream_ev")).unwrap();
    let Input::FoundDelta {
        delta: Delta::Started { .. },
        ..
    } = scene.next().await
    else {
        panic!("a stream begins with a sign of life");
    };
    let path = scene.thread.path().join("0001-claude.md");
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    file.write_all(b"---\nfrom: claude\nto: king\ntimestamp: 2026-11-21T07:57:55Z\nstatus: complete\n---\n\nhalf").unwrap();
    file.write_all(b" an answer, and the rest\n").unwrap();
    drop(file);
    fs::remove_file(&stream).unwrap();
    let (text, next) = scene.text().await;
    assert_eq!(text, "half an ");
    assert_eq!(body(next), "half an answer, and the rest");
    assert_eq!(
        scene.next().await,
        Input::FoundEnd {
            seat: seat("claude")
        }
    );
}

#[tokio::test]
async fn a_question_is_told_before_those_who_answer_it() {
    let mut scene = Scene::after(|_| {});
    let folder = scene.thread.path();
    // As kd writes it: complete under another name, then linked, so that no close event occurs.
    let whole = folder.join(".whole");
    fs::write(
        &whole,
        "---\nfrom: king\nto: all\ntimestamp: 2026-11-21T07:57:55Z\n---\n\nwhich?\n",
    )
    .unwrap();
    fs::hard_link(&whole, folder.join("0001-king.md")).unwrap();
    let mut writer = StreamWriter::create(&scene.thread, "claude").unwrap();
    writer
        .json(&Delta::Text {
            text: "this".into(),
        })
        .unwrap();
    writer.flush().unwrap();
    assert_eq!(body(scene.next().await), "which?");
    loop {
        match scene.next().await {
            // A repeated report is already known: see `Council::add`.
            Input::Found { message } => assert_eq!(message.body, "which?"),
            Input::FoundDelta { delta, .. } => {
                assert!(matches!(delta, Delta::Started { .. }), "{delta:?}");
                return;
            }
            other => panic!("the answer begins after the question: {other:?}"),
        }
    }
}

#[tokio::test]
async fn another_kd_streams_and_dies() {
    let mut scene = Scene::after(|_| {});
    let mut writer = StreamWriter::create(&scene.thread, "claude").unwrap();
    for text in ["one ", "two"] {
        writer.json(&Delta::Text { text: text.into() }).unwrap();
    }
    writer.flush().unwrap();
    let mut heard = String::new();
    while heard != "one two" {
        heard += &scene.piece().await;
    }
    // Later text is reported as it arrives, not at the end.
    for text in [" three", " four"] {
        writer.json(&Delta::Text { text: text.into() }).unwrap();
        writer.flush().unwrap();
        assert_eq!(scene.piece().await, text);
    }
    // Ends without a message, as if the process were gone.
    drop(writer);
    assert_eq!(
        scene.next().await,
        Input::FoundEnd {
            seat: seat("claude")
        }
    );
}

#[tokio::test]
async fn what_is_there_is_told_first_and_what_a_dead_kd_left_is_not() {
    let mut scene = Scene::after(|thread| {
        thread.append(&draft("early")).unwrap();
        let line = serde_json::to_string(&Delta::Text {
            text: "ghost".into(),
        })
        .unwrap();
        fs::write(thread.path().join(".stream-claude.jsonl"), line + "\n").unwrap();
    });
    assert_eq!(body(scene.next().await), "early");
    scene.thread.append(&draft("late")).unwrap();
    assert_eq!(body(scene.next().await), "late");
    // An unrelated file is not a message and ends nothing.
    fs::write(
        scene.thread.path().join("0003-claude.md"),
        "no front matter",
    )
    .unwrap();
    fs::write(scene.thread.path().join("notes.md"), "notes").unwrap();
    scene.thread.append(&draft("last")).unwrap();
    assert_eq!(body(scene.next().await), "last");
}

#[tokio::test]
async fn files_that_are_edited_or_removed_are_told() {
    let mut scene = Scene::after(|thread| {
        for body in ["one", "two", "three"] {
            thread.append(&draft(body)).unwrap();
        }
    });
    for said in ["one", "two", "three"] {
        assert_eq!(body(scene.next().await), said);
    }
    let path = |n: u32| scene.thread.path().join(format!("{n:04}-claude.md"));
    let (first, second, third) = (path(1), path(2), path(3));
    // As `sed -i` and editors do it: another file takes the place of the old one.
    let text = fs::read_to_string(&first).unwrap().replace("one", "ONE");
    let temp = scene.thread.path().join("sedXyZ");
    fs::write(&temp, text).unwrap();
    fs::rename(&temp, &first).unwrap();
    assert_eq!(body(scene.next().await), "ONE");
    fs::remove_file(&second).unwrap();
    fs::remove_file(&third).unwrap();
    let mut gone = Vec::new();
    while gone.len() < 2 {
        match scene.next().await {
            Input::FoundGone { messages } => gone.extend(messages),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(gone, [(2, "claude".to_owned()), (3, "claude".to_owned())]);
}
