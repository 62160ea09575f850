//! Disks that fail: full, read-only, without permission. The errors name the path and the fix.
//!
//! A full or read-only disk is a small one in memory, mounted for the test; only root can do that, so other users see a
//! notice instead.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::{draft, layout, seats};
use kd_store::layout::Layout;
use kd_store::thread::{Durability, Thread};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A disk in memory, unmounted on drop.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path, options: &str) -> Option<Disk> {
        fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("{options},mode=755"), "tmpfs"])
            .arg(at)
            .output()
            .is_ok_and(|o| o.status.success());
        if !mounted {
            println!("skipped: a small disk can only be mounted by the superuser");
        }
        mounted.then(|| Disk(at.to_path_buf()))
    }

    fn read_only(&self) {
        let done = Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(&self.0)
            .status()
            .unwrap();
        assert!(done.success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_there_and_leaves_nothing_half() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&dir.path().join("disk"), "size=256k") else {
        return;
    };
    let layout = layout(&disk.0);
    for durability in [Durability::Buffered, Durability::Whole] {
        let thread = Thread::create(&layout, &seats(&["a"]))
            .unwrap()
            .with_durability(durability);
        let text = "x".repeat(20_000);
        let mut written = Vec::new();
        let error = loop {
            match thread.append(&draft("a", &text)) {
                Ok(message) => written.push(message),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains(".kd-new"), "{error}");
        assert!(error.hint().contains("free some space"), "{}", error.hint());
        let all = thread.messages().unwrap();
        assert_eq!((all.messages, all.problems), (written.clone(), vec![]));
        assert_eq!(
            fs::read_dir(thread.path().join(".kd-new")).unwrap().count(),
            0
        );

        // With free space again, it continues with the next number.
        fs::remove_file(thread.path().join("0001-a.md")).unwrap();
        let next = thread.append(&draft("a", "small")).unwrap();
        assert_eq!(next.seq, written.last().unwrap().seq + 1);
        assert_eq!(thread.tail(1).unwrap().messages, [next]);
        fs::remove_dir_all(thread.path()).unwrap();
    }
}

#[test]
fn a_thread_without_its_first_message_is_discarded_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&dir.path().join("disk"), "size=128k") else {
        return;
    };
    let layout = layout(&disk.0);
    let said = Thread::create(&layout, &seats(&["a"])).unwrap();
    said.append(&draft("a", "small")).unwrap();
    let unsaid = Thread::create(&layout, &seats(&["a"])).unwrap();
    let long = draft("a", &"x".repeat(200_000));
    assert!(said.append(&long).is_err() && unsaid.append(&long).is_err());
    let id = said.id().clone();
    unsaid.discard_unsaid(&layout, 0);
    said.discard_unsaid(&layout, 0);
    let left = layout.threads().unwrap();
    assert_eq!(left.iter().map(|p| &p.id).collect::<Vec<_>>(), [&id]);
    assert_eq!(Thread::open(&left[0]).unwrap().count_readable().unwrap(), 1);
}

#[test]
fn a_thread_that_could_not_be_begun_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&dir.path().join("disk"), "size=64k") else {
        return;
    };
    let layout = layout(&disk.0);
    let first = Thread::create(&layout, &seats(&["a"])).unwrap();
    let names = || -> Vec<String> {
        let threads = layout.threads().unwrap();
        threads.into_iter().map(|place| place.id.0).collect()
    };
    // From full to almost enough space: fails at every step in between.
    for free in 0..8 {
        let fill = disk.0.join("fill");
        let _ = fs::write(&fill, vec![0; 128 << 10]);
        let size = fs::metadata(&fill)
            .unwrap()
            .len()
            .saturating_sub(free * 4096);
        let file = fs::OpenOptions::new().write(true).open(&fill).unwrap();
        file.set_len(size).unwrap();
        let before = names();
        match Thread::create(&layout, &seats(&["a"])) {
            Ok(made) => assert!(free > 0 && names().contains(&made.id().0)),
            Err(error) => {
                assert!(
                    error.hint().contains("no partial file was left"),
                    "{}",
                    error.hint()
                );
                assert_eq!(names(), before, "with {free} pages free");
            }
        }
        fs::remove_file(&fill).unwrap();
    }
    let current = layout.current_thread().unwrap().unwrap();
    assert!(names().contains(&current.id.0) && names().contains(&first.id().0));
}

#[test]
fn a_read_only_disk_can_be_read_and_says_why_it_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&dir.path().join("disk"), "size=1m") else {
        return;
    };
    let places = layout(&disk.0);
    let thread = Thread::create(&places, &seats(&["a"])).unwrap();
    let message = thread.append(&draft("a", "x")).unwrap();
    fs::remove_file(thread.path().join(".kd-index.jsonl")).unwrap();
    disk.read_only();
    assert_eq!(thread.tail(5).unwrap().messages, [message]);
    let error = thread.append(&draft("a", "y")).unwrap_err();
    assert!(error.hint().contains("read-only"), "{}", error.hint());

    // A project on such a disk gets its threads in the user's data folder, and finds them there again.
    let project = disk.0.join("elsewhere");
    assert!(!project.exists());
    fs::remove_dir_all(dir.path().join("data")).ok();
    let data = dir.path().join("data");
    let env = |name: &str| (name == "XDG_DATA_HOME").then(|| data.clone().into_os_string());
    let bare = Disk::mount(&dir.path().join("bare"), "size=1m").unwrap();
    bare.read_only();
    let opened = Layout::find_or_create(&bare.0, &env).unwrap();
    assert!(opened.created && opened.layout.is_elsewhere());
    assert!(opened.layout.root().starts_with(&data));
    assert_eq!(Layout::find(&bare.0, &env).unwrap(), opened.layout);
    let again = Layout::find_or_create(&bare.0, &env).unwrap();
    assert!(!again.created && again.layout.is_elsewhere());
    Thread::create(&again.layout, &seats(&["a"])).unwrap();
}

#[test]
fn a_folder_without_permission_names_itself_and_the_way_out() {
    if rustix::process::geteuid().is_root() {
        println!("skipped: nothing is forbidden to the superuser");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let thread = Thread::create(&layout(dir.path()), &seats(&["a"])).unwrap();
    let folder = thread.path().to_path_buf();
    fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(folder.join(".kd-new"), Permissions::from_mode(0o555)).unwrap();
    let error = thread.append(&draft("a", "x")).unwrap_err();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    assert!(error.to_string().contains("Permission denied"), "{error}");
    assert!(error.hint().contains("KD_BASE"), "{}", error.hint());
}

#[test]
fn something_else_in_the_way_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".kd"), "a file").unwrap();
    let error = Layout::find_or_create(dir.path(), &|_| None).unwrap_err();
    assert_eq!(error.path(), Some(dir.path().join(".kd").as_path()));
    assert!(error.hint().contains("another kind"), "{}", error.hint());
}
