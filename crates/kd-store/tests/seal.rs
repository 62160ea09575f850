//! A thread that is sealed and imported is the same, byte for byte, and nothing is created from a seal that is no
//! thread.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common;

use common::{draft, layout, thread};
use kd_core::seal::{Kind, Piece, SALT_BYTES, Seal, SecretKey};
use kd_store::fork::fork;
use kd_store::seal::{self, SealError};
use kd_store::{Thread, UserDirs};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A time of sealing.
const TIME: &str = "2026-11-23T08:00:00Z";

/// Returns the files that a seal contains, with their bytes.
fn files(thread: &Thread) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(thread.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".md") || name == ".kd-events.jsonl")
        .map(|name| (name.clone(), fs::read(thread.path().join(name)).unwrap()))
        .collect();
    files.sort();
    files
}

fn source(root: &Path) -> Thread {
    let thread = thread(root, &["ann"]);
    for (from, text) in [
        ("king", "Tabs?\r\n\n---\nno: header"),
        ("ann", "Spaces. 🦀"),
    ] {
        thread.append(&draft(from, text)).unwrap();
    }
    // A line of unknown content, and an incomplete one of a killed writer.
    let log = "{\"v\":1,\"x\":1.50}\n{\"v\":1,\"to";
    fs::write(thread.path().join(".kd-events.jsonl"), log).unwrap();
    thread
}

fn sealed(thread: &Thread) -> Seal {
    Seal::new(
        &thread.id().0,
        "2026-11-23T08:00:00Z",
        seal::pieces(thread).unwrap(),
    )
    .unwrap()
}

#[test]
fn an_imported_thread_has_the_bytes_of_the_sealed_one_and_names_it() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = source(here.path());
    let source = fork(&layout(here.path()), &source, &Default::default()).unwrap();
    let mut sealed = sealed(&source);
    let key = SecretKey::from_bytes(&[1; 32]);
    sealed.sign(&key).unwrap();
    let read = Seal::read(&sealed.to_bytes().unwrap()).unwrap();
    let target = thread(there.path(), &[]);
    let made = seal::import(&layout(there.path()), &read).unwrap();
    assert_ne!(made.id(), target.id());
    assert_eq!(files(&made).len(), files(&source).len());
    for ((name, made), (_, bytes)) in files(&made).iter().zip(files(&source)) {
        // The log now ends with a line break, so its last line is complete.
        let made = if name.ends_with(".jsonl") {
            made.trim_ascii_end()
        } else {
            made
        };
        assert_eq!(made, bytes.trim_ascii_end_of(name));
    }
    let origin = made.meta().origin().unwrap();
    assert_eq!((&origin.of, &origin.head), (source.id(), &sealed.head));
    assert_eq!(origin.key, Some(key.public().to_string()));
    // A local thread with the source's id is a different one.
    assert!(source.meta().lineage().is_some());
    assert_eq!(origin.fork, source.meta().lineage());
    assert_eq!(made.meta().lineage(), None);
    // A fork of it is a fork of the imported thread, and is not imported itself.
    let forked = fork(&layout(there.path()), &made, &Default::default()).unwrap();
    assert_eq!(forked.meta().lineage().unwrap().of, *made.id());
    assert_eq!(forked.meta().origin(), None);
    let again = Thread::open_folder(made.path()).unwrap();
    assert_eq!(
        again.messages().unwrap().messages,
        source.messages().unwrap().messages
    );
    // Sealed again, it has the same messages.
    let kinds = |seal: &Seal| -> Vec<String> {
        let messages = seal.entries.iter().filter(|e| e.kind != Kind::Thread);
        messages.map(|e| e.opened.clone().unwrap().text).collect()
    };
    assert_eq!(kinds(&self::sealed(&made)), kinds(&sealed));
}

trait Ends {
    fn trim_ascii_end_of(&self, name: &str) -> &[u8];
}

impl Ends for Vec<u8> {
    fn trim_ascii_end_of(&self, name: &str) -> &[u8] {
        if name.ends_with(".jsonl") {
            self.trim_ascii_end()
        } else {
            self
        }
    }
}

#[test]
fn a_seal_that_is_no_thread_makes_nothing() {
    let top = tempfile::tempdir().unwrap();
    let known = thread(top.path(), &[]);
    let layout = layout(top.path());
    let piece = |kind, name: &str, text: &str| Piece {
        kind,
        name: name.into(),
        text: text.into(),
        salt: [0; SALT_BYTES],
    };
    let message = |name: &str| vec![piece(Kind::Message, name, "x")];
    for pieces in [
        message("../0001-king.md"),
        message("0001-../../x.md"),
        message("0001-a\u{1b}[2J.md"),
        message("thread.json"),
        message(".kd-events.jsonl"),
        message(&format!("0001-{}.md", "a".repeat(300))),
        [message("0001-king.md"), message("0001-king.md")].concat(),
        vec![piece(Kind::Event, "0001-king.md", "{}")],
        vec![piece(Kind::Event, ".kd-events.jsonl", "{}\n{}")],
        vec![piece(Kind::Thread, "thread.json", "[")],
        vec![piece(Kind::Thread, "../thread.json", "{\"id\":\"x\"}")],
        [
            message("0001-king.md"),
            vec![piece(Kind::Thread, "thread.json", "{\"id\":\"x\"}")],
        ]
        .concat(),
    ] {
        let mut seal = Seal::new("council-x", TIME, pieces.clone()).unwrap();
        let made = seal::import(&layout, &seal);
        assert!(
            matches!(made, Err(SealError::Foreign { .. })),
            "{pieces:?}: {made:?}"
        );
        // A check is as strict, and the names are there without the contents.
        let checked = seal::check(&seal);
        assert!(
            matches!(checked, Err(SealError::Foreign { .. })),
            "{pieces:?}: {checked:?}"
        );
        let names = pieces.iter().map(|piece| (piece.kind, piece.name.as_str()));
        let are_names = names.clone().all(|(kind, name)| {
            let of_kind = [
                (Kind::Event, ".kd-events.jsonl"),
                (Kind::Thread, "thread.json"),
            ];
            of_kind.contains(&(kind, name))
        });
        seal.erase();
        assert_eq!(seal::check(&seal).is_ok(), are_names, "{pieces:?}");
    }
    // Would be too large to be read once it is written.
    let lists = format!("{{\"id\":\"x\",\"x\":[{}[]]}}", "[],".repeat(200_000));
    let large = vec![piece(Kind::Thread, "thread.json", &lists)];
    let seal = Seal::new("council-x", TIME, large).unwrap();
    let made = seal::import(&layout, &seal);
    assert!(matches!(made, Err(SealError::Foreign { .. })), "{made:?}");
    for (thread, at) in [
        ("x".repeat(2 << 20), TIME),
        ("council-\u{1b}[2J".into(), TIME),
        ("council\nx".into(), TIME),
        ("".into(), TIME),
        ("../../evil".into(), TIME),
        (".hidden".into(), TIME),
        ("council-x".into(), "\u{202e}"),
        ("council-x".into(), ""),
        ("council-x".into(), "yesterday"),
        ("council-x".into(), "2026-11-23"),
        ("council-x".into(), "2026-11-23T09:00:00+01:00"),
    ] {
        let seal = Seal::new(&thread, at, message("0001-king.md")).unwrap();
        let made = seal::import(&layout, &seal);
        assert!(matches!(made, Err(SealError::Header(_))), "{made:?}");
        let checked = seal::check(&seal);
        assert!(matches!(checked, Err(SealError::Header(_))), "{checked:?}");
    }
    let mut erased = sealed(&source(top.path()));
    erased.erase();
    assert!(matches!(
        seal::import(&layout, &erased),
        Err(SealError::Erased(5))
    ));
    let threads = layout.threads().unwrap();
    assert_eq!(threads.len(), 2, "{}", known.id());
}

#[test]
fn a_file_that_is_no_text_is_not_sealed() {
    let top = tempfile::tempdir().unwrap();
    let thread = source(top.path());
    fs::write(thread.path().join("0003-bob.md"), b"\xff").unwrap();
    assert!(
        matches!(seal::pieces(&thread), Err(SealError::NotText(path)) if path.ends_with("0003-bob.md"))
    );
}

#[test]
fn processes_that_need_a_key_at_the_same_time_get_the_same() {
    for _ in 0..20 {
        let home = tempfile::tempdir().unwrap();
        let dirs = UserDirs::from_env(&|name| (name == "HOME").then(|| home.path().into()));
        let keys: Vec<(String, bool)> = std::thread::scope(|scope| {
            let one = || {
                let (key, new) = seal::key_or_new(&dirs).unwrap();
                (key.public().to_string(), new)
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|(key, _)| *key == keys[0].0), "{keys:?}");
        assert_eq!(keys.iter().filter(|(_, new)| *new).count(), 1);
    }
}

#[test]
fn the_key_is_made_once_for_the_user_alone() {
    let home = tempfile::tempdir().unwrap();
    let dirs = UserDirs::from_env(&|name| (name == "HOME").then(|| home.path().into()));
    assert!(seal::key(&dirs).unwrap().is_none());
    let (key, new) = seal::key_or_new(&dirs).unwrap();
    let (again, new_again) = seal::key_or_new(&dirs).unwrap();
    assert_eq!((new, new_again), (true, false));
    assert_eq!(key.public(), again.public());
    let file = seal::key_file(&dirs).unwrap();
    let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    mode(0o640);
    let refused = seal::key_or_new(&dirs);
    assert!(matches!(refused, Err(SealError::Store(_))), "{refused:?}");
    mode(0o600);
    for text in ["", "no key", "\u{1b}"] {
        fs::write(&file, text).unwrap();
        assert!(
            matches!(seal::key_or_new(&dirs), Err(SealError::Key(_))),
            "{text}"
        );
    }
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    assert!(seal::key(&dirs).is_err(), "a link");
}
