//! Seals, through the real program with scripted members, and a second verifier in Python.

use crate::support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Dice, Home};

fn home() -> Home {
    let run = json!([{"text": "Ann says so.\u{1b}[31m"}, {"finish": {}}]);
    Home::scripted(&[("ann", json!({"runs": [run, run]}))])
}

/// Creates a home with a sealed thread, and its file.
fn sealed(args: &[&str]) -> (Home, PathBuf) {
    let home = home();
    assert_eq!(home.run(&["ask", "-q", "First?"]).code, Some(0));
    let said = home.run(&[&["seal", "-o", "t.seal.json"], args].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    // A newly created key is named.
    let names_key = said.err.contains("seal.key; keep a copy of it");
    assert_eq!(names_key, args.contains(&"--sign"), "{}", said.err);
    let file = home.work().join("t.seal.json");
    (home, file)
}

/// Returns the result of the Python verifier; `None` without Python.
fn python(file: &Path) -> Option<(Option<i32>, String)> {
    python_with(&[file.as_os_str()])
}

fn python_with(args: &[&OsStr]) -> Option<(Option<i32>, String)> {
    let verifier = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/seal/verify.py");
    let Ok(ran) = Command::new("python3").arg(verifier).args(args).output() else {
        #[allow(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: no python3 here");
        }
        return None;
    };
    Some((
        ran.status.code(),
        String::from_utf8_lossy(&ran.stdout).into_owned(),
    ))
}

#[test]
fn a_sealed_thread_is_checked_by_two_programs_and_imported() {
    let (home, file) = sealed(&["--sign"]);
    let key = home.run(&["seal", "key"]).out;
    let key = key.trim();
    let said = home.run(&["verify", "t.seal.json", "--key", key]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out.contains("unchanged since it was sealed"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains(&format!("signed by: {key}\n")),
        "{}",
        said.out
    );
    let told = home.run(&["verify", "t.seal.json", "--json"]).json();
    assert_eq!(told["signed_by"], key);
    assert_eq!(told["contents"]["erased"], 0);
    if let Some((code, said)) = python(&file) {
        assert_eq!(code, Some(0), "{said}");
        let head = told["head"].as_str().expect("a head");
        assert!(
            said.starts_with(&format!("ok {head} ")) && said.contains(key),
            "{said}"
        );
    }

    // In another home, without the thread and the key.
    let other = self::home();
    let there = other.work().join("t.seal.json");
    std::fs::copy(&file, &there).expect("copied");
    // No question was ever asked there.
    std::fs::remove_dir_all(other.work().join(".kd")).expect("removed");
    support::checkout(&other.work());
    let before = other.threads();
    let said = other.run(&["import", "t.seal.json", "--key", key]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let threads = other.threads();
    assert_eq!(threads.len(), before.len() + 1);
    let id = threads[0]
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert!(
        said.out
            .starts_with(&format!("{id}: imported from council-")),
        "{}",
        said.out
    );
    for name in ["0001-king.md", "0002-ann.md", ".kd-events.jsonl"] {
        let bytes = |folder: &Path| std::fs::read(folder.join(name)).expect(name);
        assert_eq!(bytes(&threads[0]), bytes(&home.threads()[0]), "{name}");
    }
    let source = home.threads()[0].clone();
    let source = source.file_name().expect("a name").to_string_lossy();
    let origin = format!("imported from {source}");
    let shown = other.run(&["show", &id]).out;
    assert!(
        shown.contains("Ann says so.") && shown.contains(&origin),
        "{shown}"
    );
    let listed = other.run(&["council", "list"]).out;
    assert!(listed.contains(&origin), "{listed}");
    for line in [&["show", &id, "--json"][..], &["council", "list", "--json"]] {
        let told = other.run(line).json();
        let told = told.get(0).unwrap_or(&told);
        assert_eq!(told["imported"]["of"], &*source);
    }
    assert_eq!(other.run(&["fsck"]).code, Some(0));
    // Importing again names the thread, also after it has gone on, and changes none.
    let threads = || other.threads().len() - before.len();
    assert_eq!(
        other.run(&["ask", "-q", "--thread", &id, "More?"]).code,
        Some(0)
    );
    let said = other.run(&["import", "t.seal.json"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out
            .starts_with(&format!("{id}: already imported from council-")),
        "{}",
        said.out
    );
    assert!(said.err.contains("kd import --again"), "{}", said.err);
    let told = other.run(&["import", "t.seal.json", "--json"]).json();
    assert_eq!(
        (&told["already"], &told["thread_id"]),
        (&json!(true), &json!(id))
    );
    assert_eq!(threads(), 1);
    let told = other
        .run(&["import", "t.seal.json", "--again", "--json"])
        .json();
    assert_eq!(told["already"], false);
    assert_eq!(threads(), 2);
    let again = told["thread_id"].as_str().expect("an id").to_owned();
    assert_eq!(other.run(&["forget", &again, "--yes"]).code, Some(0));
    // A thread that only claims to be imported from the file is not it.
    let message = other.threads().into_iter().find(|t| t.ends_with(&id));
    let message = message.expect("a thread").join("0002-ann.md");
    std::fs::write(
        &message,
        std::fs::read_to_string(&message).expect("read") + "Forged.\n",
    )
    .expect("written");
    let told = other.run(&["import", "t.seal.json", "--json"]).json();
    assert_eq!(told["already"], false);
    assert_ne!(told["thread_id"], id.as_str());
    assert_eq!(threads(), 2);
}

#[test]
fn a_changed_file_is_refused_by_name_and_makes_no_thread() {
    let (home, file) = sealed(&["--sign"]);
    let good = std::fs::read(&file).expect("read");
    let mut dice = Dice::new(20);
    for round in 0..40 {
        let mut bytes = good.clone();
        let at = dice.below(bytes.len() as u64) as usize;
        match round % 4 {
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(at, b' '),
            _ => bytes[at] ^= 1 + dice.below(255) as u8,
        }
        std::fs::write(&file, &bytes).expect("written");
        let said = home.run(&["verify", "t.seal.json"]);
        assert_eq!(said.code, Some(12), "byte {at}: {}", said.out);
        assert!(
            !said.err.contains('\u{1b}') && said.out.is_empty(),
            "{}",
            said.err
        );
        if round % 8 == 0 {
            assert_eq!(home.run(&["import", "t.seal.json"]).code, Some(12));
        }
        if let Some((code, said)) = python(&file) {
            assert_eq!(code, Some(12), "byte {at}: {said}");
        }
    }
    assert_eq!(home.threads().len(), 1);
    // Another key, no key, no file.
    std::fs::write(&file, &good).expect("written");
    let stranger = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let said = home.run(&["verify", "t.seal.json", "--key", stranger]);
    assert_eq!(said.code, Some(12), "{}", said.err);
    assert!(said.err.contains("it is signed by"), "{}", said.err);
    for (option, value, cause) in [
        ("--key", "x", "64 hexadecimal digits"),
        ("--key", &"0".repeat(64), "no Ed25519 public key"),
        ("--head", "x", "64 hexadecimal digits"),
        ("--head", &"A".repeat(64), "lower case"),
    ] {
        let said = home.run(&["verify", "t.seal.json", option, value]);
        assert_eq!(said.code, Some(2), "{option} {value}: {}", said.out);
        assert!(said.err.contains(cause), "{option} {value}: {}", said.err);
    }
    assert_eq!(home.run(&["verify", "missing.json"]).code, Some(1));
    let error = home
        .run(&["import", "t.seal.json", "--key", stranger, "--json"])
        .json();
    assert_eq!(error["error"]["kind"], "not_proved");
}

#[test]
fn contents_can_be_erased_and_the_head_stays() {
    let (home, file) = sealed(&["--sign"]);
    let whole = home.run(&["verify", "t.seal.json", "--json"]).json();
    let made = home.run(&[
        "seal",
        "--from",
        "t.seal.json",
        "--hash-only",
        "-o",
        "hashes.json",
    ]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let hashes = home.run(&["verify", "hashes.json", "--json"]).json();
    assert_eq!(hashes["contents"]["present"], 0);
    for key in ["head", "signed_by", "messages", "events"] {
        assert_eq!(hashes[key], whole[key], "{key}");
    }
    let text = std::fs::read_to_string(file.with_file_name("hashes.json")).expect("read");
    assert!(!text.contains("First?"), "{text}");
    assert!(
        home.run(&["verify", "hashes.json"])
            .out
            .contains("hashes only")
    );
    if let Some((code, said)) = python(&file.with_file_name("hashes.json")) {
        assert_eq!(code, Some(0), "{said}");
    }
    let said = home.run(&["import", "hashes.json"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("were erased"), "{}", said.err);
}

#[test]
fn an_unsigned_file_is_told_from_a_changed_one_by_its_head_alone() {
    let (home, file) = sealed(&[]);
    let said = home.run(&["verify", "t.seal.json"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out.contains("the contents match the head"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("anybody can change an unsigned file") && !said.out.contains("unchanged"),
        "{}",
        said.out
    );
    assert!(said.out.lines().all(|line| line.chars().count() < 80));
    let told = home.run(&["verify", "t.seal.json", "--json"]).json();
    let head = told["head"].as_str().expect("a head").to_owned();
    let said = home.run(&["verify", "t.seal.json", "--head", &head]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out.contains("unchanged since it was sealed"),
        "{}",
        said.out
    );
    // Changed by somebody, and sealed again.
    let message = home.threads()[0].join("0002-ann.md");
    let text = std::fs::read_to_string(&message).expect("read");
    std::fs::write(&message, text.replace("says", "denies")).expect("written");
    let made = home.run(&["seal", "-o", "t.seal.json", "--force"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert_eq!(home.run(&["verify", "t.seal.json"]).code, Some(0));
    for line in [
        &["verify", "t.seal.json", "--head", &head][..],
        &["import", "t.seal.json", "--head", &head],
    ] {
        let said = home.run(line);
        assert_eq!(said.code, Some(12), "{line:?}: {}", said.out);
        assert!(said.err.contains("another head"), "{}", said.err);
        assert!(said.err.contains("its head is "), "{}", said.err);
    }
    drop(file);
}

#[test]
fn a_seal_says_which_messages_were_forgotten() {
    let (home, _) = sealed(&[]);
    let told = home.run(&["verify", "t.seal.json", "--json"]).json();
    assert_eq!(told["forgotten"], json!([]));
    let id = home.threads()[0].clone();
    let id = id.file_name().expect("a name").to_string_lossy();
    let said = home.run(&["forget", &id, "--message", "2", "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let made = home.run(&["seal", "-o", "short.json"]);
    let verified = home.run(&["verify", "short.json"]);
    for said in [made, verified] {
        assert!(
            said.out.contains("  forgotten: message 2\n"),
            "{}",
            said.out
        );
    }
    let told = home.run(&["verify", "short.json", "--json"]).json();
    assert_eq!(told["forgotten"], json!([2]));
}

#[test]
fn a_seal_replaces_a_file_only_if_told_so() {
    let (home, file) = sealed(&[]);
    let old = std::fs::read(&file).expect("read");
    for line in [
        &["seal", "-o", "t.seal.json"][..],
        &[
            "seal",
            "--from",
            "t.seal.json",
            "--hash-only",
            "-o",
            "t.seal.json",
        ],
    ] {
        let said = home.run(line);
        assert_eq!(said.code, Some(1), "{line:?}: {}", said.out);
        assert!(said.err.contains("already there"), "{}", said.err);
        assert!(said.err.contains("--force"), "{}", said.err);
        assert_eq!(std::fs::read(&file).expect("read"), old, "{line:?}");
    }
    let said = home.run(&["seal", "-o", "t.seal.json", "--force"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_ne!(std::fs::read(&file).expect("read"), old);
    // A device is not a file to keep.
    let said = home.run(&["seal", "-o", "/dev/stdout"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.starts_with("{\"entries\""), "{}", said.out);
}

#[test]
fn a_default_name_is_not_replaced_and_a_stranger_file_prints_no_escapes() {
    let (home, _) = sealed(&[]);
    let name = |home: &Home| {
        let id = home.threads()[0]
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        format!("{id}.seal.json")
    };
    let made = home.run(&["seal", "--json"]).json();
    assert_eq!(made["file"], name(&home).as_str());
    assert_eq!(made["signed_by"], Value::Null);
    let said = home.run(&["seal"]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.err.contains("already there"), "{}", said.err);
    // No seal of a thread, for a check as for an import. A name of one megabyte does not flood the screen.
    let piece = |kind, name: &str, text: &str| kd_core::seal::Piece {
        kind,
        name: name.into(),
        text: text.into(),
        salt: [7; 16],
    };
    use kd_core::seal::Kind::{Message, Thread};
    let time = "2026-11-23T08:00:00Z";
    let long = "x".repeat(1 << 20);
    for (thread, at, pieces) in [
        ("a\u{1b}[2J\nb", time, vec![]),
        ("../../evil", time, vec![]),
        (&long, time, vec![]),
        ("council-x", "\u{1b}[31m\r", vec![]),
        ("council-x", "yesterday", vec![]),
        ("council-x", time, vec![piece(Message, "../../evil.md", "")]),
        (
            "council-x",
            time,
            vec![piece(Message, "0001-king.md", ""); 2],
        ),
        ("council-x", time, vec![piece(Thread, "thread.json", "[]")]),
    ] {
        let seal = kd_core::seal::Seal::new(thread, at, pieces).expect("sealed");
        let bytes = seal.to_bytes().expect("bytes");
        std::fs::write(home.work().join("odd.json"), bytes).expect("written");
        for line in [
            &["verify", "odd.json"][..],
            &["import", "odd.json"],
            &["seal", "--from", "odd.json", "--sign", "-o", "signed.json"],
        ] {
            let said = home.run(line);
            assert_eq!(said.code, Some(1), "{line:?} {at}: {}", said.out);
            assert!(said.err.contains("holds no thread"), "{}", said.err);
            assert!(said.out.is_empty() && said.err.len() < 1000, "{}", said.err);
            assert!(!said.err.contains(['\u{1b}', '\r']), "{:?}", said.err);
        }
    }
    let seal = kd_core::seal::Seal::new("council-x", time, []).expect("sealed");
    // A newer version is reported as such.
    let text = String::from_utf8(seal.to_bytes().expect("bytes")).expect("text");
    std::fs::write(
        home.work().join("new.json"),
        text.replace("\"v\":1", "\"v\":2"),
    )
    .expect("written");
    let said = home.run(&["verify", "new.json"]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("version 2 of a sealed thread"),
        "{}",
        said.err
    );
}

#[test]
fn the_python_verifier_takes_its_option_anywhere() {
    let (_home, file) = sealed(&[]);
    let (file, option) = (file.as_os_str(), OsStr::new("--recount"));
    let missing = OsStr::new("missing.json");
    for (args, code) in [
        (&[option, file][..], 0),
        (&[file, option], 0),
        (&[missing], 1),
        (&[file, missing], 1),
        (&[], 2),
        (&[option], 2),
        (&[file, OsStr::new("--recont")], 2),
    ] {
        let Some((ended, said)) = python_with(args) else {
            return;
        };
        assert_eq!(ended, Some(code), "{args:?}: {said}");
    }
}

#[test]
fn an_import_that_is_killed_shows_no_part_of_a_thread() {
    const MESSAGES: usize = 400;
    let home = home();
    let piece = |at: usize| kd_core::seal::Piece {
        kind: kd_core::seal::Kind::Message,
        name: format!("{:04}-king.md", at + 1),
        text: format!("Message {at}."),
        salt: [7; 16],
    };
    let time = "2026-11-23T08:00:00Z";
    let seal = kd_core::seal::Seal::new("council-x", time, (0..MESSAGES).map(piece));
    let bytes = seal.expect("sealed").to_bytes().expect("bytes");
    std::fs::write(home.work().join("t.json"), bytes).expect("written");
    let mut dice = Dice::new(4);
    let mut whole = 0;
    for _ in 0..12 {
        let known: BTreeSet<PathBuf> = home.threads().into_iter().collect();
        let mut child = home
            .kd(&["import", "--again", "t.json"])
            .spawn()
            .expect("it starts");
        // From the moment something is written.
        support::until("a folder", || {
            let ended = child.try_wait().expect("asked").is_some();
            let names: BTreeSet<PathBuf> = home.threads().into_iter().collect();
            (ended || !names.is_subset(&known)).then_some(())
        });
        std::thread::sleep(std::time::Duration::from_millis(dice.below(40)));
        let _ = child.kill();
        let ended = child.wait().expect("it ends").success();
        whole += usize::from(ended);
        let shown = home.threads();
        let shown = shown.iter().filter(|t| !is_hidden(t));
        for thread in shown {
            let files = std::fs::read_dir(thread).expect("a thread");
            let names = files.map(|file| file.expect("entry").file_name());
            let messages = names.filter(|name| name.to_string_lossy().ends_with(".md"));
            assert_eq!(messages.count(), MESSAGES, "{}", thread.display());
        }
    }
    // Leftovers of the killed imports are removed by the next one.
    assert_eq!(home.run(&["import", "--again", "t.json"]).code, Some(0));
    let threads = home.threads();
    assert!(!threads.iter().any(|t| is_hidden(t)), "{threads:?}");
    assert!(threads.len() > whole, "{threads:?}");
}

fn is_hidden(thread: &Path) -> bool {
    let name = thread.file_name().expect("a name");
    name.to_string_lossy().starts_with('.')
}
