//! Streams on a real disk: complete lines, partial ends, leftovers, and which writers are alive.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::{draft, thread};
use kd_store::Error;
use kd_store::stream::{Heard, PATIENCE, StreamReader, StreamWriter, streams, sweep, sweep_of};
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::Duration;

#[test]
fn lines_come_out_as_they_went_in_and_the_file_goes() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["claude"]);
    let mut reader = StreamReader::new(&thread, "claude");
    assert!(reader.read().unwrap().gone);
    let mut writer = StreamWriter::create(&thread, "claude").unwrap();
    assert_eq!(writer.path(), thread.path().join(".stream-claude.jsonl"));
    writer.json(&json!({"text": "a\nb"})).unwrap();
    writer.line("one\r\ntwo").unwrap();
    assert_eq!(
        fs::read(writer.path()).unwrap(),
        b"",
        "one write for each flush"
    );
    writer.flush().unwrap();
    assert_eq!(
        reader.read().unwrap().lines,
        ["{\"text\":\"a\\nb\"}", "one  two"]
    );
    assert_eq!(reader.read().unwrap(), Heard::default());

    writer.line("last").unwrap();
    let path = writer.path().to_path_buf();
    thread.append(&draft("claude", "done")).unwrap();
    writer.finish().unwrap();
    assert!(!path.exists());
    // A reader with the open file does not lose what was written just before the end.
    let heard = reader.read().unwrap();
    assert_eq!((heard.lines, heard.gone), (vec!["last".to_owned()], false));
    assert!(reader.read().unwrap().gone);
}

#[test]
fn a_full_buffer_is_written_without_being_asked() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    let mut writer = StreamWriter::create(&thread, "a").unwrap();
    let line = "x".repeat(999);
    for _ in 0..66 {
        writer.line(&line).unwrap();
    }
    assert_eq!(fs::metadata(writer.path()).unwrap().len(), 66_000);
}

#[test]
fn a_dropped_stream_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    drop(StreamWriter::create(&thread, "a").unwrap());
    assert_eq!(streams(&thread).unwrap(), []);
}

#[test]
fn half_lines_wait_for_their_end_wherever_they_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".stream-x.jsonl");
    let text = "{\"a\":\"é😀\"}\n\n{\"b\":2}\r\nrest".as_bytes();
    for cut in 0..=text.len() {
        fs::write(&path, &text[..cut]).unwrap();
        let mut reader = StreamReader::of_file(path.clone());
        let mut lines = reader.read().unwrap().lines;
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(&text[cut..])
            .unwrap();
        lines.extend(reader.read().unwrap().lines);
        assert_eq!(lines, ["{\"a\":\"é😀\"}", "{\"b\":2}"], "cut at {cut}");
    }
}

#[test]
fn a_new_attempt_is_told_from_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".stream-x.jsonl");
    let mut reader = StreamReader::of_file(path.clone());
    fs::write(&path, "one\ntwo\nhal").unwrap();
    let heard = reader.read().unwrap();
    assert_eq!((heard.lines.len(), heard.restarted), (2, false));
    // Truncated and started again, as kingdom-cli does.
    fs::write(&path, "uno\n").unwrap();
    let heard = reader.read().unwrap();
    assert_eq!(
        (heard.lines, heard.restarted),
        (vec!["uno".to_owned()], true)
    );
    // Removed and created again, longer than before.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "eins\nzwei\ndrei\n").unwrap();
    let heard = reader.read().unwrap();
    assert_eq!((heard.lines.len(), heard.restarted), (3, true));
}

#[test]
fn a_living_writer_is_told_from_a_leftover() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a", "b"]);
    fs::write(
        thread.path().join(".stream-b.jsonl"),
        "{\"kind\":\"text\",\"text\":\"left by a dead one\"}\n",
    )
    .unwrap();
    let writer = StreamWriter::create(&thread, "a").unwrap();
    let signs = streams(&thread).unwrap();
    let held: Vec<_> = signs.iter().map(|s| (s.member.as_str(), s.held)).collect();
    assert_eq!(held, [("a", true), ("b", false)]);

    let error = StreamWriter::create(&thread, "a").unwrap_err();
    assert!(matches!(error, Error::StreamBusy { .. }), "{error}");
    assert!(writer.path().exists());
    let over = StreamWriter::create(&thread, "b").unwrap();
    assert_eq!(fs::read(over.path()).unwrap(), b"");
}

#[test]
fn what_a_killed_kd_left_is_swept_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["claude", "codex", "cursor"]);
    let leave = |member: &str, text: &str| {
        fs::write(thread.path().join(format!(".stream-{member}.jsonl")), text).unwrap();
    };
    leave("claude", "{\"kind\":\"text\",\"text\":\"half\"}\n");
    leave("cursor", "{\"type\":\"assistant\"}\n");
    leave("gemini", "");
    let mut alive = StreamWriter::create(&thread, "codex").unwrap();
    alive.line("{\"kind\":\"text\",\"text\":\"more\"}").unwrap();
    alive.flush().unwrap();
    sweep(&thread).unwrap();
    let left = streams(&thread).unwrap().into_iter().map(|s| s.member);
    assert_eq!(left.collect::<Vec<_>>(), ["codex", "cursor", "gemini"]);
}

#[test]
fn streams_of_the_other_program_are_read() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/streams");
    for name in [
        "claude.stream.jsonl",
        "codex.stream.jsonl",
        "cursor.stream.jsonl",
    ] {
        let text = fs::read_to_string(data.join(name)).unwrap();
        let lines = StreamReader::of_file(data.join(name)).read().unwrap().lines;
        assert_eq!(lines, text.lines().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn streams_do_not_make_the_index_untrue() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    thread.append(&draft("king", "x")).unwrap();
    let index = thread.path().join(".kd-index.jsonl");
    let inode = |path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = inode(&index);
    for _ in 0..5 {
        let stream = StreamWriter::create(&thread, "a").unwrap();
        thread.append(&draft("a", "x")).unwrap();
        stream.finish().unwrap();
        assert_eq!(thread.tail(1).unwrap().messages.len(), 1);
    }
    // A rebuilt index would be another file.
    assert_eq!(inode(&index), before);
    // The first line records the empty thread.
    assert_eq!(fs::read_to_string(&index).unwrap().lines().count(), 7);
}

#[test]
fn what_a_kill_left_of_these_members_is_swept_without_a_listing() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["ada", "bob", "cyd"]);
    for member in ["ada", "bob"] {
        let dead = thread.path().join(format!(".stream-{member}.jsonl"));
        fs::write(dead, "{\"kind\":\"text\",\"text\":\"I was\"}\n").unwrap();
    }
    let alive = StreamWriter::begin(&thread, "cyd", &"first", PATIENCE).unwrap();
    assert_eq!(
        std::fs::read_to_string(alive.path()).unwrap(),
        "\"first\"\n"
    );
    sweep_of(&thread, &["ada", "cyd", "dan"]).unwrap();
    let left = streams(&thread).unwrap();
    let left: Vec<&str> = left.iter().map(|sign| sign.member.as_str()).collect();
    assert_eq!(left, ["bob", "cyd"]);
}

#[test]
fn a_stream_from_the_future_has_no_writer() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["ada"]);
    let path = thread.path().join(".stream-ada.jsonl");
    let file = fs::File::create(&path).unwrap();
    (&file).write_all(b"{\"type\":\"x\"}\n").unwrap();
    for (ahead, live) in [(0, true), (10, true), (700, false), (1 << 30, false)] {
        let stamp = std::time::SystemTime::now() + Duration::from_secs(ahead);
        file.set_modified(stamp).unwrap();
        let signs = streams(&thread).unwrap();
        assert_eq!(signs[0].is_live(PATIENCE), live, "{ahead} s ahead");
    }
}

#[test]
fn a_stream_of_the_other_program_stays_for_as_long_as_its_turn_may_take() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["ada"]);
    let path = thread.path().join(".stream-ada.jsonl");
    for (text, silent, patience, replaced) in [
        ("{\"type\":\"x\"}\n", 0, 600, false),
        ("{\"type\":\"x\"}\n", 599, 600, false),
        ("{\"type\":\"x\"}\n", 601, 600, true),
        ("{\"type\":\"x\"}\n", 601, 3600, false),
        // It creates its file before it has anything to write.
        ("", 1, 600, false),
        ("", 601, 600, true),
        // Left by a killed kd: it has no writer.
        ("{\"kind\":\"text\",\"text\":\"half\"}\n", 0, 600, true),
    ] {
        fs::write(&path, text).unwrap();
        let stamp = std::time::SystemTime::now() - Duration::from_secs(silent);
        fs::File::open(&path).unwrap().set_modified(stamp).unwrap();
        let before = fs::metadata(&path).unwrap();
        let ours = StreamWriter::begin(&thread, "ada", &"first", Duration::from_secs(patience));
        let case = format!("{text:?} silent for {silent} s of {patience}");
        assert_eq!(ours.is_ok(), replaced, "{case}");
        if !replaced {
            assert!(matches!(ours, Err(Error::StreamBusy { .. })), "{case}");
            let inode = |meta: &fs::Metadata| std::os::unix::fs::MetadataExt::ino(meta);
            assert_eq!(
                inode(&fs::metadata(&path).unwrap()),
                inode(&before),
                "{case}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{case}");
        }
    }
}
