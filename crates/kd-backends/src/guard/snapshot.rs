//! The metadata of files below a folder: enough to tell whether one was changed.
//!
//! Opens nothing but `.gitignore`, and only if it is a small regular file; runs no program, follows no link, enters no
//! other file system. Skips `.kd` (ours), folders that git ignores or that are marked as a cache, and everything in
//! `.git` except the files that name programs.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Maximum number of files; a larger folder is not watched.
const FILES_MAX: usize = 50_000;
/// Time limit for a snapshot.
const LOOK: Duration = Duration::from_secs(2);
/// Entries between two checks of the clock.
const STRIDE: usize = 128;
/// A longer `.gitignore` is not read.
const IGNORE_MAX: u64 = 256 * 1024;
/// Maximum lag of file times behind the clock: systems record them in ticks.
const TICK: Duration = Duration::from_millis(10);
/// The watched paths inside `.git`: files that name programs, and the folder of hooks.
const GIT: [&str; 4] = ["config", "config.worktree", "info/attributes", "hooks"];

/// Files by their path below the folder.
pub(super) type Files = BTreeMap<PathBuf, Seen>;

/// The data that distinguish one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    size: u64,
    inode: u64,
    /// Modification and change time; programs cannot set the latter.
    written: Option<SystemTime>,
    changed: Option<SystemTime>,
}

/// The reason why there is no snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwatched {
    /// There are too many files, or reading them is too slow.
    TooLarge,
    /// It is no longer needed.
    Stopped,
}

/// Takes a snapshot of everything below a folder.
pub(super) fn snapshot(top: &Path, stop: &AtomicBool) -> Result<Files, Unwatched> {
    Walk::new(top, stop, FILES_MAX, LOOK).run()
}

/// Returns the files that differ, and those changed since a time.
pub(super) fn changed(before: &Files, after: &Files, since: SystemTime) -> Vec<PathBuf> {
    let fresh = |time: Option<SystemTime>| time.is_some_and(|at| at + TICK >= since);
    let differs = |(path, now): &(&PathBuf, &Seen)| {
        before.get(*path) != Some(*now) || fresh(now.written) || fresh(now.changed)
    };
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let differing = after.iter().filter(differs).map(|(path, _)| path);
    differing.chain(gone).cloned().collect()
}

struct Walk<'a> {
    top: &'a Path,
    stop: &'a AtomicBool,
    files_max: usize,
    until: Instant,
    entries: usize,
    device: Option<u64>,
    files: Files,
    /// Folders still to be read, relative to the top, with the rules that apply there.
    folders: Vec<(PathBuf, Rules)>,
}

/// The `.gitignore` files from a folder up to the top.
#[derive(Clone, Default)]
struct Rules(Option<Rc<(Gitignore, Rules)>>);

impl<'a> Walk<'a> {
    fn new(top: &'a Path, stop: &'a AtomicBool, files_max: usize, limit: Duration) -> Self {
        Self {
            top,
            stop,
            files_max,
            until: Instant::now() + limit,
            entries: 0,
            device: std::fs::symlink_metadata(top)
                .ok()
                .map(|meta| device(&meta)),
            files: Files::new(),
            folders: vec![(PathBuf::new(), Rules::default())],
        }
    }

    fn run(mut self) -> Result<Files, Unwatched> {
        while let Some((folder, rules)) = self.folders.pop() {
            // A folder that cannot be read now cannot be compared either.
            let Ok(entries) = std::fs::read_dir(self.top.join(&folder)) else {
                continue;
            };
            let rules = rules.with(&self.top.join(&folder));
            for entry in entries.flatten() {
                self.count()?;
                let path = folder.join(entry.file_name());
                match entry.file_name().to_str() {
                    Some(".kd") => {}
                    Some(".git") => self.git(&path),
                    _ => self.entry(path, &rules),
                }
            }
        }
        Ok(self.files)
    }

    fn count(&mut self) -> Result<(), Unwatched> {
        self.entries += 1;
        if self.entries.is_multiple_of(STRIDE) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Unwatched::Stopped);
            }
            if Instant::now() > self.until {
                return Err(Unwatched::TooLarge);
            }
        }
        match self.files.len() + self.folders.len() > self.files_max {
            true => Err(Unwatched::TooLarge),
            false => Ok(()),
        }
    }

    fn entry(&mut self, path: PathBuf, rules: &Rules) {
        let full = self.top.join(&path);
        let Ok(meta) = std::fs::symlink_metadata(&full) else {
            return;
        };
        if !meta.is_dir() {
            self.files.insert(path, Seen::of(&meta));
            return;
        }
        let elsewhere = self.device.is_some_and(|ours| ours != device(&meta));
        if !elsewhere && !rules.ignore(&full) && !full.join("CACHEDIR.TAG").exists() {
            self.folders.push((path, rules.clone()));
        }
    }

    /// Adds the relevant files of a git folder.
    fn git(&mut self, path: &Path) {
        let Ok(meta) = std::fs::symlink_metadata(self.top.join(path)) else {
            return;
        };
        if !meta.is_dir() {
            self.files.insert(path.to_path_buf(), Seen::of(&meta));
            return;
        }
        for name in GIT {
            self.entry(path.join(name), &Rules::default());
        }
    }
}

impl Rules {
    /// Adds the rules of a folder.
    fn with(self, folder: &Path) -> Self {
        let Some(text) = small_text(&folder.join(".gitignore")) else {
            return self;
        };
        let mut rules = GitignoreBuilder::new(folder);
        for line in text.lines() {
            // Git ignores invalid patterns too.
            let _ = rules.add_line(None, line);
        }
        match rules.build() {
            Ok(rules) => Self(Some(Rc::new((rules, self)))),
            Err(_) => self,
        }
    }

    /// Returns whether a folder is ignored: the nearest matching rule decides.
    fn ignore(&self, folder: &Path) -> bool {
        let mut rules = self;
        while let Some(inner) = &rules.0 {
            match inner.0.matched(folder, true) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => rules = &inner.1,
            }
        }
        false
    }
}

impl Seen {
    fn of(meta: &Metadata) -> Self {
        let (inode, changed) = unix(meta);
        Self {
            size: meta.len(),
            inode,
            written: meta.modified().ok(),
            changed,
        }
    }
}

fn unix(meta: &Metadata) -> (u64, Option<SystemTime>) {
    let seconds = u64::try_from(meta.ctime()).ok().map(Duration::from_secs);
    let nanos = Duration::from_nanos(u64::try_from(meta.ctime_nsec()).unwrap_or(0));
    let changed = seconds.and_then(|s| SystemTime::UNIX_EPOCH.checked_add(s + nanos));
    (meta.ino(), changed)
}

fn device(meta: &Metadata) -> u64 {
    meta.dev()
}

/// Reads a regular file of bounded size as text. Anything else could block, or never end.
fn small_text(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > IGNORE_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(IGNORE_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_file, write};

    fn look(top: &Path) -> Files {
        snapshot(top, &AtomicBool::new(false)).unwrap()
    }

    fn names(paths: &[PathBuf]) -> Vec<&str> {
        paths.iter().map(|path| path.to_str().unwrap()).collect()
    }

    /// Returns a time far in the future, so that only differences count.
    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_secs(3600)
    }

    #[test]
    fn every_change_is_seen_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        create_dir_all(top.join("src/deep")).unwrap();
        for file in ["same", "grown", "gone", "src/deep/swapped", "back"] {
            write(top.join(file), file).unwrap();
        }
        let old = File::open(top.join("back")).unwrap().metadata().unwrap();
        let before = look(top);
        assert!(changed(&before, &look(top), later()).is_empty());
        write(top.join("grown"), "more than it was").unwrap();
        remove_file(top.join("gone")).unwrap();
        write(top.join("other"), "swapped").unwrap();
        std::fs::rename(top.join("other"), top.join("src/deep/swapped")).unwrap();
        // A change that keeps the length and sets the time back.
        write(top.join("back"), "kcab").unwrap();
        let back = File::options().write(true).open(top.join("back")).unwrap();
        back.set_modified(old.modified().unwrap()).unwrap();
        write(top.join("src/new"), "").unwrap();
        let changed = changed(&before, &look(top), later());
        let wanted = ["back", "grown", "src/deep/swapped", "src/new", "gone"];
        assert_eq!(names(&changed), wanted);
    }

    #[test]
    fn what_was_written_since_the_turn_began_counts_though_it_was_seen() {
        let folder = tempfile::tempdir().unwrap();
        let began = SystemTime::now();
        write(folder.path().join("early"), "x").unwrap();
        let (before, after) = (look(folder.path()), look(folder.path()));
        assert_eq!(names(&changed(&before, &after, began)), ["early"]);
    }

    #[test]
    fn ignored_folders_and_ours_are_left_out_and_programs_of_git_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        for file in [
            ".kd/thread",
            "sub/.kd/thread",
            "target/debug/x",
            "sub/out/x",
            "sub/kept/x",
            "cache/CACHEDIR.TAG",
            "cache/x",
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/index",
            ".git/objects/ab/x",
            ".env",
            "link",
        ] {
            create_dir_all(top.join(file).parent().unwrap()).unwrap();
            write(top.join(file), "x").unwrap();
        }
        // An ignored file beside others is watched: it may hold a key, or be run.
        write(top.join(".gitignore"), "target/\nout\n.env\nkept\n").unwrap();
        write(top.join("sub/.gitignore"), "!kept\n").unwrap();
        let files: Vec<PathBuf> = look(top).into_keys().collect();
        let wanted = [
            ".env",
            ".git/config",
            ".git/hooks/pre-commit",
            ".gitignore",
            "link",
            "sub/.gitignore",
            "sub/kept/x",
        ];
        assert_eq!(names(&files), wanted);
    }

    #[test]
    fn odd_files_do_not_hang_it_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        for (name, to) in [
            ("up", ".."),
            ("zero", "/dev/zero"),
            (".gitignore", "/dev/zero"),
        ] {
            std::os::unix::fs::symlink(to, top.join(name)).unwrap();
        }
        create_dir_all(top.join("sub/x")).unwrap();
        let fifo = top.join("sub/.gitignore");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        assert_eq!(look(top).len(), 4);
    }

    #[test]
    fn a_folder_that_is_too_large_is_not_watched() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..200 {
            write(folder.path().join(n.to_string()), "").unwrap();
        }
        let go = AtomicBool::new(false);
        let walk = |files, limit, stop| Walk::new(folder.path(), stop, files, limit).run().err();
        assert_eq!(walk(200, LOOK, &go), None);
        assert_eq!(walk(198, LOOK, &go), Some(Unwatched::TooLarge));
        assert_eq!(walk(200, Duration::ZERO, &go), Some(Unwatched::TooLarge));
        assert_eq!(
            walk(200, LOOK, &AtomicBool::new(true)),
            Some(Unwatched::Stopped)
        );
    }
}
