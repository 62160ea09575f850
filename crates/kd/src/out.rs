//! Standard output and standard error, as everything in this program writes them.
//!
//! If a build service reads them, text of members cannot become a command to it ([`kd_core::build_log`]).

mod lines;

use kd_core::build_log::Guard;
use lines::Lines;
use std::fs::File;
use std::io::{self, IsTerminal, Stderr, StderrLock, Stdout, StdoutLock, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Variables that the runners of code hosts set to `true`.
const RUNNERS: [&str; 4] = [
    "GITHUB_ACTIONS",
    "GITEA_ACTIONS",
    "FORGEJO_ACTIONS",
    "TF_BUILD",
];

/// Writes that began, and writes that ended.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Returns how many writes have ended, if one is under way: the same number later means that it waits for its reader.
pub(crate) fn waits() -> Option<u64> {
    let ended = ENDED.load(Ordering::SeqCst);
    (BEGUN.load(Ordering::SeqCst) > ended).then_some(ended)
}

/// Runs a write, counted.
fn counted<T>(write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    BEGUN.fetch_add(1, Ordering::SeqCst);
    let written = write();
    ENDED.fetch_add(1, Ordering::SeqCst);
    written
}

type Guarded = LazyLock<Option<Mutex<Guard>>>;

static OUT: Guarded = LazyLock::new(|| guard(&io::stdout()));
static ERR: Guarded = LazyLock::new(|| guard(&io::stderr()));

/// Returns standard output.
pub(crate) fn stdout() -> Stream<Stdout> {
    Stream {
        to: io::stdout(),
        guard: OUT.as_ref(),
    }
}

/// Returns standard error.
pub(crate) fn stderr() -> Stream<Stderr> {
    Stream {
        to: io::stderr(),
        guard: ERR.as_ref(),
    }
}

/// Returns standard output for lines that people read: on a terminal, they are broken between their words. With `raw`,
/// nothing is changed: JSON is for programs.
pub(crate) fn lines(raw: bool) -> Lines<Stream<Stdout>> {
    let size = kd_tui::terminal::size().filter(|_| !raw);
    Lines::new(stdout(), size.map(|(columns, _)| columns.into()))
}

/// Returns standard error for lines that people read, as [`lines()`] does.
pub(crate) fn error_lines() -> Lines<Stream<Stderr>> {
    let size = kd_tui::terminal::size_of_stderr();
    Lines::new(stderr(), size.map(|(columns, _)| columns.into()))
}

/// Writes what is left of unfinished lines, at the end of the program.
pub(crate) fn finish() {
    // If this cannot be written, there is nowhere to report it.
    let _ = stdout().lock().finish();
    let _ = stderr().lock().finish();
}

/// Returns a guard if a build service reads the stream. It sees neither terminals nor files.
fn guard(stream: &(impl AsFd + IsTerminal)) -> Option<Mutex<Guard>> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|v| v.eq_ignore_ascii_case("true"));
    let is_read = RUNNERS.iter().any(|name| is_set(name)) && !stream.is_terminal();
    (is_read && !is_file(stream)).then(Mutex::default)
}

fn is_file(stream: &impl AsFd) -> bool {
    let copy = stream.as_fd().try_clone_to_owned().map(File::from);
    let about = copy.and_then(|file| file.metadata());
    about.is_ok_and(|about| about.is_file())
}

/// A standard stream that can be locked.
pub(crate) trait Standard {
    /// The locked stream.
    type Locked: Write;

    /// Locks the stream.
    fn locked(&self) -> Self::Locked;
}

impl Standard for Stdout {
    type Locked = StdoutLock<'static>;

    fn locked(&self) -> Self::Locked {
        self.lock()
    }
}

impl Standard for Stderr {
    type Locked = StderrLock<'static>;

    fn locked(&self) -> Self::Locked {
        self.lock()
    }
}

/// A standard stream, with its guard where a build service reads it.
pub(crate) struct Stream<S> {
    to: S,
    guard: Option<&'static Mutex<Guard>>,
}

impl<S: Standard> Stream<S> {
    /// Locks the stream for several writes that belong together.
    pub(crate) fn lock(&self) -> Lock<S::Locked> {
        let guard = self.guard.map(Mutex::lock);
        Lock {
            guard: guard.map(|guard| guard.unwrap_or_else(PoisonError::into_inner)),
            to: self.to.locked(),
        }
    }
}

impl<S: Standard> Write for Stream<S> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.lock().write(text)
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        self.lock().write_all(text)
    }

    fn write_fmt(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.lock().write_fmt(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}

/// A locked stream.
pub(crate) struct Lock<L> {
    guard: Option<MutexGuard<'static, Guard>>,
    to: L,
}

impl<L: Write> Lock<L> {
    fn finish(&mut self) -> io::Result<()> {
        if let Some(guard) = &mut self.guard {
            self.to.write_all(&guard.finish())?;
        }
        self.to.flush()
    }
}

impl<L: Write> Write for Lock<L> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let Self { guard, to } = self;
        counted(|| match guard {
            Some(guard) => {
                let safe = guard.push(text);
                to.write_all(&safe).map(|()| text.len())
            }
            None => to.write(text),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        let Self { guard, to } = self;
        counted(|| {
            if let Some(guard) = guard {
                to.write_all(&guard.flush())?;
            }
            to.flush()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => sources(&path, found),
                false => found.push(path),
            }
        }
    }

    #[test]
    fn everything_is_written_through_this_file() {
        let mut files = Vec::new();
        sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut files,
        );
        assert!(files.len() > 100, "{}", files.len());
        for file in files.iter().filter(|file| !file.ends_with("out.rs")) {
            let text = fs::read_to_string(file).expect("text");
            for stream in ["io::stdout()", "io::stderr()"] {
                for (at, _) in text.match_indices(stream) {
                    let after = text[at + stream.len()..].trim_start();
                    let before = text[..at].trim_end_matches("std::");
                    // To ask what a stream is, or to give it to a program, writes nothing.
                    let asks = after.starts_with(".is_terminal()") || before.ends_with('&');
                    let gives = before.ends_with(".stdout(");
                    assert!(asks || gives, "{}: use crate::out", file.display());
                }
            }
        }
    }
}
