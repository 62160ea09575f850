//! The index of a thread folder: `.kd-index.jsonl`, one line per message, in order.
//!
//! It provides the next number and the newest messages without listing a folder of ten thousand names. It is derived:
//! it can always be rebuilt by listing the folder.
//!
//! To detect changes, every line carries a *stamp*, and the stamp of the last line is the folder's modification time,
//! set by us, to the nanosecond, after each of our changes. A file written by any other program changes that time, so
//! the stamps differ. See `docs/adr/0003-thread-files.md` for what this covers and what it does not.
//!
//! Nothing here takes the thread's lock; the docs of functions that write say that the caller holds it.

use crate::beneath::Folder;
use crate::bounds;
use crate::error::Error;
use crate::layout::INDEX_FILE as FILE;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, SystemTime};

/// Lines are about 75 bytes; with an escaped name of 255 bytes they stay below this.
const LINE_MAX: u64 = 4096;
/// A stamp that no folder has, of the same width as a valid one.
const UNTRUE: &str = "00000000000.000000000";

/// A message file, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// The number at the start of the name.
    pub(crate) seq: u32,
    /// The file's name.
    pub(crate) name: String,
}

impl Entry {
    /// Returns the sender's part of the name.
    pub(crate) fn sender(&self) -> &str {
        let stem = self.name.strip_suffix(".md").unwrap_or(&self.name);
        stem.split_once('-').map_or(stem, |(_, sender)| sender)
    }
}

/// The last line of a valid index.
#[derive(Clone, Debug)]
pub(crate) struct Tip {
    /// The number of messages.
    pub(crate) count: u32,
    /// The highest number; 0 in an empty thread.
    pub(crate) seq: u32,
    name: String,
    ours: bool,
    /// The offset of the line.
    offset: u64,
}

/// The entries to return.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want {
    /// The last N.
    Last(usize),
    /// All with a number above this.
    After(u32),
}

/// The index of one folder.
#[derive(Debug)]
pub(crate) struct Index {
    folder: Folder,
}

#[derive(Serialize, Deserialize)]
struct Line<'l> {
    n: u32,
    seq: u32,
    #[serde(borrow)]
    name: Cow<'l, str>,
    at: Cow<'l, str>,
    /// Whether `kd` wrote the message: its number was announced and must not change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ours: bool,
}

impl Index {
    pub(crate) fn new(folder: &Folder) -> Self {
        Self {
            folder: folder.clone(),
        }
    }

    /// Returns whether there is an index file, valid or not.
    pub(crate) fn exists(&self) -> bool {
        self.folder.has(FILE)
    }

    /// Returns the last line, if the index is valid now.
    pub(crate) fn tip(&self) -> Option<Tip> {
        let file = self.folder.file(FILE).ok()??;
        let len = file.metadata().ok()?.len();
        let from = len.saturating_sub(LINE_MAX);
        let bytes = read_range(&file, from, len).ok()?;
        let (start, line) = last_line(&bytes)?;
        let line: Line<'_> = serde_json::from_slice(line).ok()?;
        (line.at == now_stamp(&self.folder)?).then(|| Tip {
            count: line.n,
            seq: line.seq,
            ours: line.ours,
            name: line.name.into_owned(),
            offset: from + start as u64,
        })
    }

    /// Returns the wanted entries in order, if the index is valid now.
    pub(crate) fn entries(&self, want: Want) -> Option<Vec<Entry>> {
        let file = self.folder.file(FILE).ok()??;
        let len = file.metadata().ok()?.len();
        if len > bounds::INDEX.bytes {
            return None;
        }
        let mut span = match want {
            Want::Last(n) => (n as u64).saturating_mul(96).max(LINE_MAX),
            Want::After(_) => 4 * LINE_MAX,
        };
        loop {
            let from = len.saturating_sub(span);
            let bytes = read_range(&file, from, len).ok()?;
            let (entries, stamp) = parse_lines(&bytes, from > 0)?;
            let enough = from == 0
                || match want {
                    Want::Last(n) => entries.len() >= n,
                    Want::After(seq) => entries.first().is_some_and(|e| e.seq <= seq),
                };
            if enough {
                // Checked last: if the folder has not changed until now, what was read before is valid.
                return (stamp == now_stamp(&self.folder)?).then(|| want.cut(entries));
            }
            span = span.saturating_mul(4);
        }
    }

    /// Returns the names of messages that `kd` wrote, whether the index is valid or not.
    pub(crate) fn ours(&self) -> BTreeSet<String> {
        let read = self.folder.read(FILE, bounds::INDEX);
        let bytes = read.ok().flatten().unwrap_or_default();
        bytes
            .split(|b| *b == b'\n')
            .filter_map(|text| serde_json::from_slice::<Line<'_>>(text).ok())
            .filter(|line| line.ours)
            .map(|line| line.name.into_owned())
            .collect()
    }

    /// Records our messages in an invalid index, so that they are recognized when the index is rebuilt. The caller holds
    /// the lock.
    pub(crate) fn note(&self, entries: &[Entry]) -> io::Result<()> {
        let lines = entries
            .iter()
            .map(|entry| line(1, entry.seq, &entry.name, UNTRUE, true));
        self.add(&lines.collect::<String>())
    }

    /// Adds messages that were just linked, in one write, and stamps the folder. The caller holds the lock and had a valid
    /// `tip`.
    pub(crate) fn push(&self, tip: &Tip, entries: &[Entry]) -> io::Result<()> {
        let at = stamp(&self.folder)?;
        let mut text = String::with_capacity(entries.len() * 80);
        for (entry, n) in entries.iter().zip(1..) {
            // Only the last line has the true stamp: if the write ends after another, the index is invalid.
            let at = if n == entries.len() as u32 {
                &at
            } else {
                UNTRUE
            };
            text += &line(tip.count + n, entry.seq, &entry.name, at, true);
        }
        self.add(&text)
    }

    /// Stamps the folder again after one of our changes that added no message. The caller holds the lock and had a
    /// valid `tip`.
    pub(crate) fn touch(&self, tip: &Tip) -> io::Result<()> {
        let at = stamp(&self.folder)?;
        // Stamps have a fixed width, so the line is overwritten in place.
        let line = line(tip.count, tip.seq, &tip.name, &at, tip.ours);
        let file = self.folder.change(FILE).map_err(io::Error::other)?;
        file.ok_or(io::ErrorKind::NotFound)?
            .write_all_at(line.as_bytes(), tip.offset)
    }

    fn add(&self, line: &str) -> io::Result<()> {
        let file = self.folder.append(FILE, false).map_err(io::Error::other)?;
        let mut file = file.ok_or(io::ErrorKind::NotFound)?;
        io::Write::write_all(&mut file, line.as_bytes())
    }

    /// Lists the folder and rebuilds the index, through a temporary file in `temp`. The caller holds the lock. Returns
    /// the entries, even if the folder is not writable.
    pub(crate) fn rebuild(&self, temp: &Folder) -> Result<Vec<Entry>, Error> {
        let before = stamp(&self.folder).ok();
        let entries = list(&self.folder)?;
        // On failure there is an invalid index, or none: the next writer tries again.
        let _ = before.map(|before| self.write(&entries, &before, temp));
        Ok(entries)
    }

    fn write(&self, entries: &[Entry], before: &str, temp: &Folder) -> io::Result<()> {
        // The stamp must be in the file before the file is in the folder; the folder's time is set after that.
        let (time, at) = fresh_stamp();
        let ours = self.ours();
        let mut text = String::with_capacity(entries.len() * 80 + 80);
        for (i, entry) in entries.iter().enumerate() {
            let ours = ours.contains(&entry.name);
            text += &line(i as u32 + 1, entry.seq, &entry.name, &at, ours);
        }
        if entries.is_empty() {
            text = line(0, 0, "", &at, false);
        }
        let name = format!("index-{}.jsonl", std::process::id());
        // Left by a dead process with the same id.
        temp.remove(&name).map_err(io::Error::other)?;
        let file = temp.create(&name).map_err(io::Error::other)?;
        let mut file = file.ok_or(io::ErrorKind::AlreadyExists)?;
        let written = io::Write::write_all(&mut file, text.as_bytes());
        // Another process may have written while we listed; our list may be incomplete.
        if written.is_err() || now_stamp(&self.folder).as_deref() != Some(before) {
            temp.remove(&name).map_err(io::Error::other)?;
            return written;
        }
        self.folder.rename_from(temp, &name, FILE)?;
        self.folder.as_file().set_modified(time)
    }
}

impl Want {
    /// Cuts an ordered list down to the wanted part.
    pub(crate) fn cut(self, mut entries: Vec<Entry>) -> Vec<Entry> {
        let start = match self {
            Want::Last(n) => entries.len().saturating_sub(n),
            Want::After(seq) => entries.partition_point(|e| e.seq <= seq),
        };
        entries.drain(..start);
        entries
    }
}

/// Lists all message files of a folder, by number and then by name.
pub(crate) fn list(folder: &Folder) -> Result<Vec<Entry>, Error> {
    let items = folder.items()?.into_iter();
    let mut entries: Vec<Entry> = items
        .filter_map(|item| entry(item.name.to_str()?))
        .collect();
    entries.sort_unstable();
    Ok(entries)
}

/// Parses the name of a message file: four digits or more, `-`, the sender, `.md`.
pub(crate) fn entry(name: &str) -> Option<Entry> {
    let (digits, sender) = name.strip_suffix(".md")?.split_once('-')?;
    if digits.len() < 4 || !digits.bytes().all(|b| b.is_ascii_digit()) || sender.is_empty() {
        return None;
    }
    Some(Entry {
        seq: digits.parse().ok()?,
        name: name.to_owned(),
    })
}

fn line(n: u32, seq: u32, name: &str, at: &str, ours: bool) -> String {
    let line = Line {
        n,
        seq,
        name: name.into(),
        at: at.into(),
        ours,
    };
    let mut text = serde_json::to_string(&line).unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the last complete line and its offset; `None` if the text does not end with a newline.
fn last_line(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let bytes = bytes.strip_suffix(b"\n")?;
    let start = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    Some((start, &bytes[start..]))
}

/// Parses complete lines; if the text is `cut`, skips the first, which may be partial.
fn parse_lines(bytes: &[u8], cut: bool) -> Option<(Vec<Entry>, String)> {
    let bytes = bytes.strip_suffix(b"\n")?;
    let mut entries = Vec::new();
    let mut stamp = String::new();
    for text in bytes.split(|b| *b == b'\n').skip(usize::from(cut)) {
        let line: Line<'_> = serde_json::from_slice(text).ok()?;
        stamp = line.at.into_owned();
        if line.n > 0 {
            entries.push(Entry {
                seq: line.seq,
                name: line.name.into_owned(),
            });
        }
    }
    Some((entries, stamp))
}

fn read_range(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (to - from) as usize];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

/// Returns the folder's modification time as a stamp.
fn now_stamp(folder: &Folder) -> Option<String> {
    let meta = folder.as_file().metadata().ok()?;
    Some(text_of(meta.mtime(), meta.mtime_nsec()))
}

/// Sets the folder's modification time to a value that no other program sets: the clock's, to the nanosecond, whereas
/// the kernel uses the time of its last tick.
fn stamp(folder: &Folder) -> io::Result<String> {
    let (time, text) = fresh_stamp();
    folder.as_file().set_modified(time)?;
    Ok(text)
}

fn fresh_stamp() -> (SystemTime, String) {
    let time = SystemTime::now();
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    (
        time,
        text_of(
            since.as_secs().cast_signed(),
            i64::from(since.subsec_nanos()),
        ),
    )
}

fn text_of(secs: i64, nanos: i64) -> String {
    format!("{secs:011}.{nanos:09}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Returns a thread's folder and its spool.
    fn folders(dir: &Path) -> (Folder, Folder) {
        let folder = Folder::open(dir).unwrap();
        let temp = folder.make_folder(".kd-new").unwrap();
        (folder, temp)
    }

    #[test]
    fn only_message_names_are_entries() {
        for (name, seq) in [
            ("0001-king.md", 1),
            ("10000-king.md", 10000),
            ("0007-gpt-5.md", 7),
        ] {
            assert_eq!(entry(name).unwrap().seq, seq);
        }
        for name in [
            "001-king.md",
            "0001-.md",
            "0001.md",
            "0001-king.txt",
            ".0001-king.md",
            "99999999999-king.md",
            "+001-king.md",
        ] {
            assert_eq!(entry(name), None, "{name}");
        }
        assert_eq!(entry("0007-gpt-5.md").unwrap().sender(), "gpt-5");
    }

    #[test]
    fn any_change_of_the_folder_makes_the_index_untrue() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, temp) = folders(dir.path());
        let index = Index::new(&folder);
        assert!(index.tip().is_none());
        index.rebuild(&temp).unwrap();
        assert_eq!(index.tip().unwrap().count, 0);
        // Many times, because a stamp of the kernel's coarse clock would be missed only now and then.
        for seq in 1..200 {
            fs::write(dir.path().join(format!("{seq:04}-king.md")), "").unwrap();
            assert!(index.tip().is_none(), "{seq}");
            index.rebuild(&temp).unwrap();
            assert_eq!(index.tip().unwrap().seq, seq);
        }
        fs::remove_file(dir.path().join("0100-king.md")).unwrap();
        assert!(index.entries(Want::Last(5)).is_none());
    }

    #[test]
    fn a_torn_last_line_makes_the_index_untrue() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, temp) = folders(dir.path());
        fs::write(dir.path().join("0001-king.md"), "").unwrap();
        let index = Index::new(&folder);
        index.rebuild(&temp).unwrap();
        let whole = fs::read(dir.path().join(FILE)).unwrap();
        for len in 0..whole.len() {
            fs::write(dir.path().join(FILE), &whole[..len]).unwrap();
            assert!(index.tip().is_none(), "{len}");
            assert!(index.entries(Want::Last(1)).is_none(), "{len}");
        }
    }

    #[test]
    fn the_tail_is_found_wherever_the_chunks_cut_the_lines() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, temp) = folders(dir.path());
        for seq in 1..=700 {
            fs::write(
                dir.path()
                    .join(format!("{seq:04}-{}.md", "m".repeat(1 + seq % 40))),
                "",
            )
            .unwrap();
        }
        let index = Index::new(&folder);
        let all = index.rebuild(&temp).unwrap();
        for n in [0, 1, 2, 60, 699, 700, 5000] {
            assert_eq!(
                index.entries(Want::Last(n)).unwrap(),
                Want::Last(n).cut(all.clone()),
                "{n}"
            );
        }
        for seq in [0, 1, 350, 699, 700, 9000] {
            assert_eq!(
                index.entries(Want::After(seq)).unwrap(),
                Want::After(seq).cut(all.clone()),
                "{seq}"
            );
        }
    }
}
