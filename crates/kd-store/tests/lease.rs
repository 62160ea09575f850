//! A lease has one holder, and none once its holder is gone.

#![allow(clippy::unwrap_used)] // a test that cannot go on may say so

use kd_core::SeatName;
use kd_store::lock::Lock;
use kd_store::{Layout, Lease, Thread};
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// With this variable the test program acts as a second holder.
const HOLD: &str = "KD_TEST_HOLDS";

fn thread(folder: &std::path::Path) -> Thread {
    let layout = Layout::find_or_create(folder, &|_| None).unwrap().layout;
    let ada = SeatName::new("ada").unwrap();
    Thread::create(&layout, &[ada]).unwrap()
}

#[test]
fn one_holds_it_and_the_members_of_other_names_are_free() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path());
    let held = Lease::try_take(&thread, "ada").unwrap().unwrap();
    assert!(Lease::try_take(&thread, "ada").unwrap().is_none());
    assert_eq!(Lease::holder(&thread, "ada"), Some(std::process::id()));
    assert!(Lease::is_held(&thread, "ada").unwrap());
    assert!(!Lease::is_held(&thread, "bob").unwrap());
    let files = std::fs::read_dir(thread.path()).unwrap();
    let mut names = files.map(|file| file.unwrap().file_name());
    let bobs = names.find(|name| name.to_string_lossy().contains("bob"));
    assert_eq!(bobs, None, "looking creates nothing");
    assert!(Lease::try_take(&thread, "bob").unwrap().is_some());
    drop(held);
    assert!(!Lease::is_held(&thread, "ada").unwrap());
    assert!(Lease::try_take(&thread, "ada").unwrap().is_some());
}

#[test]
fn the_lease_of_a_killed_process_is_free_at_once() {
    if let Ok(folder) = std::env::var(HOLD) {
        let layout = Layout::find_or_create(folder.as_ref(), &|_| None)
            .unwrap()
            .layout;
        let thread = Thread::open(&layout.current_thread().unwrap().unwrap()).unwrap();
        let _held = Lease::wait(&thread, "ada").unwrap();
        println!("held");
        loop {
            std::thread::park();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path());
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args([
            "the_lease_of_a_killed_process_is_free_at_once",
            "--exact",
            "--nocapture",
        ])
        .env(HOLD, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = other.stdout.take().unwrap();
    let mut text = String::new();
    while !text.contains("held") {
        let mut piece = [0; 256];
        let n = said.read(&mut piece).unwrap();
        assert!(n > 0, "the other holder ended: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..n]));
    }
    assert!(Lease::try_take(&thread, "ada").unwrap().is_none());
    assert_eq!(Lease::holder(&thread, "ada"), Some(other.id()));
    other.kill().unwrap();
    // Woken by the system as soon as the holder is dead.
    let ours = Lease::wait(&thread, "ada").unwrap();
    other.wait().unwrap();
    drop(ours);
    assert_eq!(Lease::holder(&thread, "ada"), Some(std::process::id()));
}

#[test]
fn the_first_lease_of_a_new_member_is_not_waited_for_while_somebody_writes() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path());
    let writer = Lock::take(&thread.path().join(".kd-thread.lock"), Duration::ZERO).unwrap();
    // The writer continues only once this has returned.
    assert!(Lease::try_take(&thread, "eve").unwrap().is_none());
    assert!(!thread.path().join(".turn-eve.lock").exists());
    let waits = thread::spawn(move || Lease::wait(&thread, "eve").map(drop));
    drop(writer);
    waits.join().unwrap().unwrap();
}

#[test]
fn the_lease_of_a_member_of_the_beginning_needs_no_lock_of_the_thread_and_changes_no_index() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path());
    let index = || std::fs::read_to_string(thread.path().join(".kd-index.jsonl")).unwrap();
    let before = index();
    let writer = Lock::take(&thread.path().join(".kd-thread.lock"), Duration::ZERO).unwrap();
    assert!(Lease::try_take(&thread, "ada").unwrap().is_some());
    drop(writer);
    assert_eq!(index(), before);
}

#[test]
fn a_lock_file_that_was_planted_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path());
    let file = thread.path().join(".turn-ada.lock");
    std::fs::write(&file, "         1\n").unwrap();
    assert!(Lease::try_take(&thread, "ada").unwrap().is_some());
    std::fs::remove_file(&file).unwrap();
    let outside = dir.path().join("outside");
    std::fs::write(&outside, "theirs").unwrap();
    std::os::unix::fs::symlink(&outside, &file).unwrap();
    assert!(Lease::try_take(&thread, "ada").is_err());
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "theirs");
}
