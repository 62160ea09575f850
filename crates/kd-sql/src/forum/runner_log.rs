//! `logs/runner.log`: the log of a forum as a text file, for people and for `tail -f`.
//!
//! The first line names the time zone of the other lines. Several processes may write to one file. A full file becomes
//! `runner.log.1`, and the oldest is deleted.

use jiff::tz::TimeZone;
use kd_forum::MAIN;
use kd_forum::logline::LogLine;
use kd_store::beneath::{Folder, Kind};
use kd_store::bounds::Bound;
use kd_store::error::Error;
use kd_store::forget::{Found, TOMBSTONE};
use kd_store::lock::Lock;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Size of a file in bytes above which the next line starts a new one.
const BYTES_MAX: u64 = 4 << 20;
/// Number of full files that are kept.
const FULL_MAX: usize = 3;
/// Writing a line takes well under a millisecond; a log must not delay a forum.
const WAIT: Duration = Duration::from_secs(2);
/// Bound of a file that is searched: far above a full one.
const SEARCHED: Bound = Bound {
    what: "a log",
    bytes: 64 << 20,
    why: "",
};
/// Maximum bytes of a first line.
const HEADING_BYTES_MAX: u64 = 256;

/// The log file of a forum.
#[derive(Clone, Debug)]
pub struct RunnerLog {
    folder: PathBuf,
    name: String,
    zone: TimeZone,
    heading: String,
    bytes_max: u64,
}

impl RunnerLog {
    /// Creates the log of a forum in a folder: `runner.log`, or `runner-NAME.log` for a forum other than the main one.
    pub fn new(folder: &Path, forum: &str, zone: TimeZone) -> Self {
        let name = match forum {
            MAIN => "runner.log".to_owned(),
            other => format!("runner-{other}.log"),
        };
        let named = match zone.iana_name() {
            Some(name) => name.to_owned(),
            None => {
                let offset = zone.to_offset(jiff::Timestamp::now());
                format!("UTC{offset:#}")
            }
        };
        Self {
            folder: folder.to_path_buf(),
            heading: format!("# Times are in {named}.\n"),
            name,
            zone,
            bytes_max: BYTES_MAX,
        }
    }

    /// Sets another file size.
    #[must_use]
    pub fn with_bytes_max(self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self }
    }

    /// Returns the current file.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Appends a line. Creates a missing folder; rejects a link or a pipe in place of the file.
    ///
    /// # Errors
    /// If the file is a link, is not a regular file, has a second hard link, is locked for too long, or cannot be
    /// written or rotated.
    pub fn write(&self, line: &LogLine) -> Result<(), Error> {
        let folder = Folder::make(&self.folder)?;
        let _held = Lock::take_beside(&folder, &self.name, WAIT)?;
        let mut text = line.text(&self.zone);
        text.push('\n');
        if let Some(look) = folder.look(&self.name)? {
            if look.has_second_name() {
                return Err(Error::SecondName { path: self.path() });
            }
            let full = look.bytes.saturating_add(text.len() as u64) > self.bytes_max;
            if look.bytes > 0 && (full || !self.is_headed(&folder)?) {
                self.turn(&folder)?;
            }
        }
        let file = folder.append(&self.name, true)?;
        let mut file = file
            .ok_or_else(|| Error::io("open", &self.path())(std::io::ErrorKind::NotFound.into()))?;
        let is_new = file.metadata().is_ok_and(|meta| meta.len() == 0);
        if is_new {
            text.insert_str(0, &self.heading);
        }
        file.write_all(text.as_bytes())
            .map_err(Error::io("write", &self.path()))
    }

    /// Returns whether the file begins with the current zone.
    fn is_headed(&self, folder: &Folder) -> Result<bool, Error> {
        let Some(file) = folder.file(&self.name)? else {
            return Ok(true);
        };
        let mut first = Vec::new();
        file.take(HEADING_BYTES_MAX)
            .read_to_end(&mut first)
            .map_err(Error::io("read", &self.path()))?;
        Ok(first.starts_with(self.heading.as_bytes()))
    }

    /// Rotates the files, deleting the oldest.
    fn turn(&self, folder: &Folder) -> Result<(), Error> {
        let aside = |number: usize| format!("{}.{number}", self.name);
        folder.remove(aside(FULL_MAX))?;
        for number in (1..FULL_MAX).rev() {
            let (from, to) = (aside(number), aside(number + 1));
            if folder.has(&from) {
                folder.move_to(from.as_ref(), folder, to.as_ref())?;
            }
        }
        folder.move_to(self.name.as_ref(), folder, aside(1).as_ref())?;
        Ok(())
    }
}

/// Replaces the text of lines that repeat a forgotten one, in the log files of all forums of a folder; only finds them
/// if `dry`. The times stay.
///
/// # Errors
/// A file cannot be read, locked or replaced.
pub(super) fn forget(
    folder: &Path,
    repeats: &dyn Fn(&str) -> bool,
    dry: bool,
) -> Result<Vec<Found>, Error> {
    let Some(folder) = Folder::find(folder)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for item in folder.items()? {
        let Some(name) = item.name.to_str().filter(|_| item.kind == Kind::File) else {
            continue;
        };
        let Some(end) = name.find(".log").filter(|_| name.starts_with("runner")) else {
            continue;
        };
        let _held = match dry {
            true => None,
            false => Some(Lock::take_beside(&folder, &name[..end + 4], WAIT)?),
        };
        let Some(bytes) = folder.read(name, SEARCHED)? else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        let (text, count) = without(&text, repeats);
        if count == 0 {
            continue;
        }
        let s = if count == 1 { "" } else { "s" };
        found.push(Found {
            path: folder.path().join(name),
            what: format!("{count} line{s} of a forum's log"),
        });
        if !dry {
            folder.replace(name, text.as_bytes())?;
        }
    }
    Ok(found)
}

/// Returns a log without the lines that repeat a text, and their number.
fn without(log: &str, repeats: &dyn Fn(&str) -> bool) -> (String, usize) {
    let mut count = 0;
    let lines = log.split_inclusive('\n').map(|line| {
        // A line break within a text is escaped.
        if !repeats(&line.replace("\\n", "\n")) {
            return line.to_owned();
        }
        count += 1;
        let time = line.split_once(" - ").map_or("", |(time, _)| time);
        format!("{time} - {TOMBSTONE}\n")
    });
    let text = lines.collect();
    (text, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_repeats_a_text_keeps_its_time() {
        let repeats = |text: &str| text.lines().any(|line| line.contains("the heron"));
        let log = "# Times are in UTC.\n2026-01-01 00:00:00 - Starting new cycle\n\
                   2026-01-01 00:00:01 - Completed run for ada: skip - Success: True (so\\nthe heron)\n";
        let wanted = "# Times are in UTC.\n2026-01-01 00:00:00 - Starting new cycle\n2026-01-01 00:00:01 - [forgotten]\n";
        assert_eq!(without(log, &repeats), (wanted.to_owned(), 1));
        assert_eq!(without(wanted, &repeats), (wanted.to_owned(), 0));
    }
}
