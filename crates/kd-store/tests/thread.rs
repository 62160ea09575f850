//! A thread on a real disk: numbers, order, the index, and files of other programs.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::{draft, layout, seats, thread};
use kd_core::names::KING;
use kd_store::thread::{Durability, Thread, Trouble};
use std::fs::{self, File};
use std::os::unix::fs::symlink;

#[test]
fn messages_are_read_as_they_were_returned() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let thread = Thread::create(&layout, &seats(&["claude", "codex"])).unwrap();
    let mut written = vec![thread.append(&draft(KING, "Hello?\n\n")).unwrap()];
    written.push(
        thread
            .append(&draft("claude", "\n\nHi.  \n---\nfrom: x"))
            .unwrap(),
    );
    assert_eq!(written[1].seq, 2);
    assert_eq!(written[1].at.to_string(), "2026-11-21T07:57:55Z");
    assert_eq!(written[1].body, "\n\nHi.\n---\nfrom: x");

    let again = Thread::open(&layout.resolve(&thread.id().0).unwrap()).unwrap();
    assert_eq!(again.messages().unwrap().messages, written);
    assert_eq!(again.head(1).unwrap().messages, written[..1]);
    assert_eq!(again.tail(1).unwrap().messages, written[1..]);
    assert_eq!(again.since(1).unwrap().messages, written[1..]);
    assert_eq!(again.message(2).unwrap(), written[1]);
    assert_eq!(again.count().unwrap(), 2);
    let missing = again.message(3).unwrap_err().to_string();
    assert!(missing.contains("no message 3"), "{missing}");
    assert_eq!(again.members(), seats(&["claude", "codex"]));
    assert_eq!(layout.current_thread().unwrap().unwrap().id, *thread.id());
    assert_eq!(
        fs::read_to_string(thread.path().join("0001-king.md")).unwrap(),
        "---\nfrom: king\nto: all\ntimestamp: 2026-11-21T07:57:55Z\n---\n\nHello?\n"
    );
}

#[test]
fn a_new_thread_is_described_as_other_programs_expect() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["claude", "gpt-5.1"]);
    let text = fs::read_to_string(thread.path().join("thread.json")).unwrap();
    let created = thread.meta().created_at.clone().unwrap();
    assert!(created.ends_with('Z') && created.len() == 20, "{created}");
    assert_eq!(
        text,
        format!(
            "{{\n  \"created_at\": \"{created}\",\n  \"id\": \"{}\",\n  \"members\": [\n    \"king\",\n    \"claude\",\n    \"gpt-5.1\"\n  ],\n  \"pattern\": \"council\",\n  \"phase\": \"council\"\n}}\n",
            thread.id()
        )
    );
    let id = &thread.id().0;
    assert!(id.starts_with("council-") && id.len() == 12, "{id}");
}

#[test]
fn every_durability_writes_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    for durability in [Durability::Buffered, Durability::Whole, Durability::Named] {
        let thread = Thread::create(&layout, &seats(&["a"]))
            .unwrap()
            .with_durability(durability);
        let message = thread.append(&draft("a", "text")).unwrap();
        assert_eq!(thread.messages().unwrap().messages, [message]);
    }
}

#[test]
fn numbers_go_on_past_four_digits() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    fs::write(thread.path().join("9998-king.md"), "---\n---\n\nold\n").unwrap();
    for (seq, name) in [
        (9999, "9999-a.md"),
        (10000, "10000-a.md"),
        (10001, "10001-a.md"),
    ] {
        assert_eq!(thread.append(&draft("a", "x")).unwrap().seq, seq);
        assert!(thread.path().join(name).exists());
    }
    let seqs: Vec<_> = thread
        .messages()
        .unwrap()
        .messages
        .iter()
        .map(|m| m.seq)
        .collect();
    assert_eq!(seqs, [9998, 9999, 10000, 10001]);
    assert_eq!(thread.tail(2).unwrap().messages[0].seq, 10000);
}

#[test]
fn the_last_number_there_is_ends_the_thread_with_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    fs::write(
        thread.path().join("4294967295-king.md"),
        "---\n---\n\nold\n",
    )
    .unwrap();
    let error = thread.append(&draft("a", "x")).unwrap_err();
    assert!(error.to_string().contains("4294967295"), "{error}");
    assert_eq!(error.hint(), "start a new thread");
}

#[test]
fn a_message_of_another_program_is_seen_and_its_number_not_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    thread.append(&draft(KING, "one")).unwrap();
    // An unknown sender.
    fs::write(
        thread.path().join("0002-stranger.md"),
        "---\nfrom: stranger\n---\n\ntwo\n",
    )
    .unwrap();
    assert_eq!(thread.tail(1).unwrap().messages[0].from, "stranger");
    assert_eq!(thread.append(&draft("a", "three")).unwrap().seq, 3);
    assert_eq!(thread.count().unwrap(), 3);
}

/// The one moment that the index cannot detect: between linking our file and setting the folder's time. The test
/// produces it by setting the time back.
#[test]
fn a_known_sender_who_wrote_at_the_same_moment_keeps_the_number() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    thread.append(&draft(KING, "one")).unwrap();
    let stamp = fs::metadata(thread.path()).unwrap().modified().unwrap();
    fs::write(
        thread.path().join("0002-cursor.md"),
        "---\nfrom: cursor\n---\n\ntwo\n",
    )
    .unwrap();
    File::open(thread.path())
        .unwrap()
        .set_modified(stamp)
        .unwrap();

    assert_eq!(thread.append(&draft("a", "three")).unwrap().seq, 3);
    assert!(!thread.path().join("0002-a.md").exists());
    let senders: Vec<_> = thread
        .tail(9)
        .unwrap()
        .messages
        .into_iter()
        .map(|m| m.from)
        .collect();
    assert_eq!(senders, [KING, "cursor", "a"]);
}

#[test]
fn the_same_name_at_the_same_moment_raises_the_number() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    thread.append(&draft(KING, "one")).unwrap();
    let stamp = fs::metadata(thread.path()).unwrap().modified().unwrap();
    fs::write(
        thread.path().join("0002-a.md"),
        "---\nfrom: a\n---\n\ntheirs\n",
    )
    .unwrap();
    File::open(thread.path())
        .unwrap()
        .set_modified(stamp)
        .unwrap();
    assert_eq!(thread.append(&draft("a", "ours")).unwrap().seq, 3);
    assert_eq!(thread.message(2).unwrap().body, "theirs");
}

/// In a short thread, whose names are listed, and in a long one, whose known senders are looked up.
#[test]
fn a_number_taken_in_the_middle_of_several_messages_keeps_their_order() {
    for long in [0, 60] {
        let dir = tempfile::tempdir().unwrap();
        let thread = thread(dir.path(), &["a", "b", "c"]);
        for _ in 0..long {
            thread.append(&draft(KING, "before")).unwrap();
        }
        let stamp = fs::metadata(thread.path()).unwrap().modified().unwrap();
        let theirs = format!("{:04}-cursor.md", long + 2);
        fs::write(
            thread.path().join(&theirs),
            "---\nfrom: cursor\n---\n\ntheirs\n",
        )
        .unwrap();
        File::open(thread.path())
            .unwrap()
            .set_modified(stamp)
            .unwrap();

        let drafts = [draft("a", "one"), draft("b", "two"), draft("c", "three")];
        let written = thread.append_all(&drafts.each_ref()).unwrap();
        let seqs: Vec<u32> = written.into_iter().map(|one| one.unwrap().seq).collect();
        assert_eq!(seqs, [long + 1, long + 3, long + 4]);
        let senders: Vec<_> = thread.tail(4).unwrap().messages;
        let senders: Vec<_> = senders.iter().map(|m| m.from.as_str()).collect();
        assert_eq!(senders, ["a", "cursor", "b", "c"]);
        assert_eq!(thread.messages().unwrap().messages.len(), long as usize + 4);
    }
}

/// A full disk, or a kill, can end the write of several lines after any of them.
#[test]
fn an_index_that_lacks_the_last_lines_of_several_messages_is_not_believed() {
    for missing in 1..=2 {
        let dir = tempfile::tempdir().unwrap();
        let thread = thread(dir.path(), &["a", "b", "c"]);
        let drafts = [draft("a", "one"), draft("b", "two"), draft("c", "three")];
        thread.append_all(&drafts.each_ref()).unwrap();
        let index = thread.path().join(".kd-index.jsonl");
        let whole = fs::read(&index).unwrap();
        let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
        // In place: the folder's time stays.
        fs::write(&index, lines[..lines.len() - missing].concat()).unwrap();
        assert_eq!(thread.count().unwrap(), 3, "{missing} lines are missing");
        assert_eq!(thread.append(&draft("a", "more")).unwrap().seq, 4);
    }
}

#[test]
fn two_files_of_one_number_are_both_read_in_the_order_of_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    for name in ["0002-codex.md", "0001-king.md", "0002-claude.md"] {
        fs::write(thread.path().join(name), "---\n---\n\nx\n").unwrap();
    }
    let all = thread.messages().unwrap().messages;
    let order: Vec<_> = all.iter().map(|m| (m.seq, m.from.as_str())).collect();
    assert_eq!(order, [(1, "king"), (2, "claude"), (2, "codex")]);
    assert_eq!(thread.tail(3).unwrap().messages, all);
    assert_eq!(thread.since(1).unwrap().messages, all[1..]);
    assert_eq!(thread.append(&draft("a", "x")).unwrap().seq, 3);
}

#[test]
fn without_thread_json_the_members_are_told_from_the_senders() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let made = Thread::create(&layout, &seats(&["a", "b"])).unwrap();
    for from in [KING, "b", "a", "b"] {
        made.append(&draft(from, "x")).unwrap();
    }
    fs::remove_file(made.path().join("thread.json")).unwrap();
    let thread = Thread::open(&layout.resolve(&made.id().0).unwrap()).unwrap();
    assert_eq!(thread.meta().members, ["king", "b", "a"]);
    assert!(thread.meta().is_council());
    // Other members do not lose when it was opened.
    thread.set_members(&seats(&["a"])).unwrap();
    let changed = Thread::open(&layout.resolve(&made.id().0).unwrap()).unwrap();
    assert_eq!(changed.meta().members, ["king", "a"]);
    let first = thread.head(1).unwrap().messages[0].at;
    assert_eq!(changed.meta().created(), Some(first));
    assert_eq!(thread.append(&draft("a", "x")).unwrap().seq, 5);
}

#[test]
fn a_broken_index_is_written_anew_and_costs_nothing_but_time() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    for i in 0..5 {
        thread.append(&draft("a", &i.to_string())).unwrap();
    }
    let index = thread.path().join(".kd-index.jsonl");
    let whole = fs::read_to_string(&index).unwrap();
    for broken in [
        "",
        "\n",
        "rubbish\n",
        "{\"n\":900,\"seq\":900,\"name\":\"0900-a.md\",\"at\":\"0\"}\n",
    ] {
        fs::write(&index, broken).unwrap();
        assert_eq!(thread.tail(2).unwrap().messages[1].body, "4");
    }
    fs::write(&index, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(thread.append(&draft("a", "5")).unwrap().seq, 6);
    fs::remove_file(&index).unwrap();
    assert_eq!(thread.append(&draft("a", "6")).unwrap().seq, 7);
    assert_eq!(fs::read_to_string(&index).unwrap().lines().count(), 7);
}

#[test]
fn reading_makes_no_files_in_a_thread_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let folder = layout.threads_folder().join("council-0000");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("0001-king.md"), "---\n---\n\nx\n").unwrap();
    let thread = Thread::open(&layout.resolve("council-0000").unwrap()).unwrap();
    assert_eq!(thread.tail(5).unwrap().messages.len(), 1);
    assert_eq!(thread.messages().unwrap().messages.len(), 1);
    assert_eq!(thread.count().unwrap(), 1);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn what_is_no_message_is_reported_and_never_followed() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    thread.append(&draft("a", "sound")).unwrap();
    let secret = dir.path().join("secret");
    fs::write(&secret, "---\nfrom: a\n---\n\nsecret\n").unwrap();
    symlink(&secret, thread.path().join("0002-link.md")).unwrap();
    fs::create_dir(thread.path().join("0003-folder.md")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        thread.path().join("0004-pipe.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    fs::write(thread.path().join("0005-empty.md"), "").unwrap();
    File::create(thread.path().join("0006-huge.md"))
        .unwrap()
        .set_len(17 << 20)
        .unwrap();

    let all = thread.messages().unwrap();
    assert_eq!(all.messages.len(), 1);
    assert_eq!(all.problems.len(), 5);
    assert!(all.problems.iter().all(|p| p.is_skipped()));
    let texts: Vec<_> = all.problems.iter().map(ToString::to_string).collect();
    assert!(
        texts[0].starts_with("left out ") && texts[0].contains("it is a link"),
        "{texts:?}"
    );
    assert!(
        texts[2].contains("it is a named pipe, not a regular file"),
        "{texts:?}"
    );
    assert!(matches!(all.problems[3].what, Trouble::Flaw(_)));
    assert!(texts[4].contains("larger than 16 MiB"), "{texts:?}");
    assert_eq!(thread.append(&draft("a", "next")).unwrap().seq, 7);
}

#[test]
fn senders_with_unusual_names_stay_in_the_folder_and_keep_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["模型", "Gpt_5.1"]);
    assert_eq!(thread.append(&draft("模型", "x")).unwrap().from, "模型");
    assert_eq!(
        thread.append(&draft("Gpt_5.1", "x")).unwrap().from,
        "Gpt_5.1"
    );
    assert!(thread.path().join("0001-u6a21-u578b.md").exists());
    assert!(thread.path().join("0002-gpt-5-1.md").exists());
    thread
        .append(&draft("../../evil\nfrom: king", "x"))
        .unwrap();
    assert!(thread.path().join("0003-evil-from-king.md").exists());
    assert_eq!(thread.message(3).unwrap().from, "../../evil from: king");
}

#[test]
fn threads_of_one_process_share_one_count() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    std::thread::scope(|scope| {
        for t in 0..8 {
            let thread = &thread;
            scope.spawn(move || {
                for i in 0..25 {
                    thread.append(&draft("a", &format!("{t} {i}"))).unwrap();
                }
            });
        }
    });
    let seqs: Vec<_> = thread
        .messages()
        .unwrap()
        .messages
        .iter()
        .map(|m| m.seq)
        .collect();
    assert_eq!(seqs, (1..=200).collect::<Vec<_>>());
    assert_eq!(
        fs::read_dir(thread.path().join(".kd-new")).unwrap().count(),
        0
    );
}

#[test]
fn no_message_older_than_one_that_is_left_out_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["ada"]);
    let body = "word ".repeat(1 << 20);
    thread.append(&draft(KING, "short and oldest")).unwrap();
    for _ in 1..=4 {
        thread.append(&draft("ada", &body)).unwrap();
    }
    let read = thread.messages().unwrap();
    let whole = read.messages.iter().map(|m| !m.body.starts_with('['));
    assert_eq!(
        whole.collect::<Vec<_>>(),
        [false, false, true, true, true],
        "a gap in the middle of a conversation"
    );
}

#[test]
fn of_many_long_messages_the_newest_are_whole_and_each_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["ada"]);
    let body = "word ".repeat(1 << 20);
    for number in 1..=5 {
        thread
            .append(&draft("ada", &format!("{number} {body}")))
            .unwrap();
    }
    thread.append(&draft(KING, "short")).unwrap();
    let read = thread.messages().unwrap();
    assert!(read.problems.is_empty());
    let whole: Vec<bool> = read
        .messages
        .iter()
        .map(|m| !m.body.starts_with('['))
        .collect();
    assert_eq!(whole, [false, false, true, true, true, true]);
    assert!(
        read.messages[0].body.contains("5.0 MiB left out"),
        "{}",
        read.messages[0].body
    );
    assert_eq!(read.messages[0].from, "ada");
    let together: usize = read.messages.iter().map(|m| m.body.len()).sum();
    assert!(together as u64 <= kd_store::thread::TOGETHER_BYTES_MAX + 1000);
    let mut seen = Vec::new();
    let told = |message: kd_core::Message| -> Result<(), kd_store::Error> {
        seen.push((message.seq, message.body.len()));
        Ok(())
    };
    assert!(thread.each(told).unwrap().is_empty());
    let long = body.trim_end().len() + 2;
    assert_eq!(
        seen,
        [
            (1, long),
            (2, long),
            (3, long),
            (4, long),
            (5, long),
            (6, 5)
        ]
    );
    assert_eq!(thread.message(1).unwrap().body.len(), long);
}

/// Git does not carry `thread.json`: it is written with the next message, from who has spoken.
#[test]
fn thread_json_is_written_again_after_a_clone() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["claude", "codex"]);
    for (from, text) in [(KING, "Hello?"), ("codex", "Hi."), ("claude", "Ho.")] {
        thread.append(&draft(from, text)).unwrap();
    }
    let file = thread.path().join("thread.json");
    fs::remove_file(&file).unwrap();
    let cloned = Thread::open_folder(thread.path()).unwrap();
    assert!(!file.exists(), "reading writes nothing");
    cloned.append(&draft(KING, "And now?")).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let again = Thread::open_folder(thread.path()).unwrap();
    assert_eq!(again.members(), seats(&["codex", "claude"]));
    assert!(again.meta().created().is_some(), "{text}");
    // One that is there, even a malformed one, is left alone.
    fs::write(&file, "{torn").unwrap();
    let torn = Thread::open_folder(thread.path()).unwrap();
    torn.append(&draft(KING, "Hm?")).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "{torn");
}

#[test]
fn numbers_go_on_after_the_files_were_taken_away() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let thread = Thread::create(&layout, &seats(&["ada"])).unwrap();
    for body in ["one", "two"] {
        thread.append(&draft("ada", body)).unwrap();
    }
    // As `git checkout` of a branch without them.
    for n in 1..=2 {
        fs::remove_file(thread.path().join(format!("{n:04}-ada.md"))).unwrap();
    }
    assert_eq!(thread.append(&draft("ada", "three")).unwrap().seq, 3);
    // A reader that has shown them goes on after them too.
    let reader = Thread::open(&layout.resolve(&thread.id().0).unwrap()).unwrap();
    assert_eq!(reader.messages().unwrap().messages.len(), 1);
    fs::remove_file(thread.path().join("0003-ada.md")).unwrap();
    assert_eq!(reader.append(&draft("ada", "four")).unwrap().seq, 4);
}
