//! The ledger of everything the user's runs have spent: one line per request, one file per month, in the user's own
//! data folder. It contains no text of questions or answers.
//!
//! Input: entries as requests are charged. Output: the entries since a time, and the money paid today.

mod in_flight;

use crate::error::Error;
use crate::lock::{Lock, lock_path};
use crate::private;
use crate::user_dirs::UserDirs;
use in_flight::InFlight;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use kd_core::formats::LEDGER;
use kd_core::ledger::{Entry, Ledger, NotSent};
use kd_core::spending::pico;
use rustix::fs::OFlags;
use std::fs::{self, File, Metadata};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum bytes of a line; longer ones are not kd's.
const LINE_MAX: u64 = 16 << 10;
/// Number of bytes at the end of a file that identify it.
const LAST_BYTES: u64 = 1 << 10;

/// How long a request waits for other runs that are recording theirs.
const WAIT: Duration = Duration::from_secs(5);

/// The entries of a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// Oldest first.
    pub entries: Vec<Entry>,
    /// Lines that cannot be read.
    pub unread: u64,
}

/// The user's ledger.
#[derive(Debug)]
pub struct LedgerFile {
    folder: PathBuf,
    /// This run's project folder.
    project: String,
    zone: TimeZone,
    today: Mutex<Today>,
    /// The file of the last line.
    open: Mutex<Option<OpenMonth>>,
    in_flight: InFlight,
    on_loss: Option<OnLoss>,
}

/// Receives the reason why a request was not recorded.
struct OnLoss(Box<dyn Fn(&Error) + Send + Sync>);

impl std::fmt::Debug for OnLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnLoss")
    }
}

/// A month's file that stays open for further lines.
#[derive(Debug)]
struct OpenMonth {
    path: PathBuf,
    file: File,
}

impl OpenMonth {
    /// Returns the file at a path, opened if it is another one: the user may have removed or replaced it. An open file
    /// keeps its inode number from others. Returns its length too.
    fn at(open: &mut Option<Self>, path: PathBuf) -> Result<(&File, u64), Error> {
        let identity = |meta: &Metadata| (meta.dev(), meta.ino());
        let is_there = |own: &Self| {
            let (there, own_meta) = (fs::symlink_metadata(&path).ok()?, own.file.metadata().ok()?);
            (own.path == path && identity(&there) == identity(&own_meta)).then_some(there.len())
        };
        if let Some(len) = open.as_ref().and_then(is_there)
            && let Some(own) = open
        {
            return Ok((&own.file, len));
        }
        let file = private::appending(&path)?;
        let len = file.metadata().map_err(Error::io("look at", &path))?.len();
        Ok((&open.insert(Self { path, file }).file, len))
    }
}

/// Bytes that must be free before a request is sent, if a daily limit is set.
#[cfg(target_os = "linux")]
const ROOM: u64 = 4096;

/// The sum of a day, as far as the files were read.
#[derive(Debug, Default)]
struct Today {
    since: Option<Timestamp>,
    paid: u64,
    /// The position up to which each month's file was read.
    read: Vec<Bookmark>,
    /// A failed write is missing from every sum.
    lost: bool,
    /// Whether there are lines of a newer version.
    newer: bool,
}

/// The position up to which a file was read. The inode does not identify the file: after a removal, a new file may get
/// the same one.
#[derive(Debug)]
struct Bookmark {
    path: PathBuf,
    /// Bytes read.
    to: u64,
    /// The end of the part that was read: at most [`LAST_BYTES`].
    last: Vec<u8>,
}

impl Bookmark {
    fn at(path: PathBuf, to: u64) -> Result<Self, Error> {
        let last = before(&path, to, to.min(LAST_BYTES))?;
        Ok(Self { path, to, last })
    }

    /// Returns whether the file still contains the lines that were read.
    fn holds(&self) -> bool {
        before(&self.path, self.to, self.last.len() as u64).is_ok_and(|last| last == self.last)
    }
}

/// Reads the bytes before an offset; empty if the file is shorter or missing.
fn before(path: &Path, to: u64, len: u64) -> Result<Vec<u8>, Error> {
    let file = private::open(path, OFlags::RDONLY)?;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
    let read = file.is_some_and(|file| file.read_exact_at(&mut bytes, to - len).is_ok());
    Ok(if read { bytes } else { Vec::new() })
}

impl LedgerFile {
    /// Returns the ledger with a receiver of the reasons why requests were not recorded.
    #[must_use]
    pub fn telling(self, on_loss: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Self {
            on_loss: Some(OnLoss(Box::new(on_loss))),
            ..self
        }
    }

    /// Creates the ledger in the data folder. Opens nothing yet. `zone` decides when a day begins.
    ///
    /// # Errors
    /// [`Error::NoHome`] if no data folder is known.
    pub fn new(dirs: &UserDirs, project: String, zone: TimeZone) -> Result<Self, Error> {
        let folder = dirs.data()?.join("spending");
        Ok(Self {
            in_flight: InFlight::new(folder.join("in-flight")),
            folder,
            project,
            zone,
            today: Mutex::default(),
            open: Mutex::default(),
            on_loss: None,
        })
    }

    /// Returns its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the entries since a time, with the requests of runs that were killed.
    ///
    /// # Errors
    /// A file exists and cannot be read.
    pub fn since(&self, since: Timestamp) -> Result<Lines, Error> {
        self.of_other_runs()?;
        let mut read = Lines::default();
        for path in self.months(since, Timestamp::now()) {
            each_line(&path, 0, |line| match line {
                Line::Entry(entry) if entry.at >= since => read.entries.push(*entry),
                Line::Entry(_) => {}
                Line::Newer | Line::Other => read.unread += 1,
            })?;
        }
        read.entries.sort_by_key(|entry| entry.at);
        Ok(read)
    }

    /// Returns when the user's day began and when it ends.
    fn day(&self) -> (Timestamp, Timestamp) {
        let now = Zoned::new(Timestamp::now(), self.zone.clone());
        let begin = |day: Result<Zoned, jiff::Error>| {
            let day = day.and_then(|day| day.start_of_day());
            day.map_or_else(|_| now.timestamp(), |day| day.timestamp())
        };
        (begin(Ok(now.clone())), begin(now.tomorrow()))
    }

    /// Returns the files of the months in a period. Months are in UTC.
    fn months(&self, from: Timestamp, to: Timestamp) -> Vec<PathBuf> {
        let first = |at: Timestamp| at.to_zoned(TimeZone::UTC).date().first_of_month();
        let (mut month, last) = (first(from), first(to));
        let mut files = Vec::new();
        while month <= last {
            files.push(self.folder.join(month.strftime("%Y-%m.jsonl").to_string()));
            match month.checked_add(1.month()) {
                Ok(next) => month = next,
                Err(_) => break,
            }
        }
        files
    }

    /// Returns whether the next line has room in the file of this month.
    fn can_append(&self) -> bool {
        let now = Timestamp::now();
        let Some(path) = self.months(now, now).pop() else {
            return false;
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        OpenMonth::at(&mut open, path).is_ok_and(|(file, len)| has_room(file, len))
    }

    fn append(&self, entry: &Entry) -> Result<(), Error> {
        let path = self.months(entry.at, entry.at).pop();
        let Some(path) = path else { return Ok(()) };
        let mut line = serde_json::to_vec(entry).map_err(|source| Error::Json {
            path: path.clone(),
            source,
        })?;
        line.push(b'\n');
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut file, len) = OpenMonth::at(&mut open, path.clone())?;
        // A line cut off by a full disk must not swallow this one.
        let mut last = [b'\n'];
        if let Some(at) = len.checked_sub(1) {
            file.read_at(&mut last, at)
                .map_err(Error::io("read", &path))?;
        }
        if last != [b'\n'] {
            line.insert(0, b'\n');
        }
        // A single write of a short line in append mode: concurrent runs do not interleave.
        file.write_all(&line).map_err(Error::io("write", &path))
    }

    fn lock(&self) -> Result<Lock, Error> {
        Lock::take(&lock_path(&self.folder.join("in-flight")), WAIT)
    }

    /// Returns what requests of other runs that are being sent may cost, in pico-dollars; `None` if that is unknown. Records
    /// the requests of runs that were killed.
    fn of_other_runs(&self) -> Result<Option<u64>, Error> {
        match self.in_flight.of_others()?.is_empty() {
            true => Ok(Some(0)),
            false => self.of_other_runs_locked(&self.lock()?),
        }
    }

    fn of_other_runs_locked(&self, _: &Lock) -> Result<Option<u64>, Error> {
        self.in_flight.others(|entry| self.append(entry))
    }

    /// Returns what is paid today, and what other runs may pay; `None` if that is unknown.
    fn committed(&self, others: Option<u64>) -> Option<u64> {
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = self.sum_up(&mut today);
        let sum = sum.ok().flatten().filter(|_| !today.lost)?;
        // What is paid and cannot be recorded would be missing from every later sum.
        let sum = self.can_append().then_some(sum)?;
        Some(sum.saturating_add(others?))
    }

    /// Records a request that is about to be sent, unless it may exceed the limit.
    fn begin(&self, request: u64, at_most: Entry, limit: u64) -> Result<(), NotSent> {
        let lost = |error: Error| NotSent::Lost(error.to_string());
        let lock = self.lock().map_err(lost)?;
        let others = self.of_other_runs_locked(&lock).map_err(lost)?;
        let Some(committed) = self.committed(others) else {
            let why = "today's spending cannot be read or recorded";
            return Err(NotSent::Lost(why.to_owned()));
        };
        let all = committed
            .saturating_add(self.in_flight.of_this_run())
            .saturating_add(pico(at_most.paid_usd()));
        if all > limit {
            let what = "the limit of the day, with what other runs are spending,";
            return Err(NotSent::Limit(what.to_owned()));
        }
        self.in_flight.add(request, at_most).map_err(lost)
    }

    /// Adds the lines that were written since the last call. `None` if a line has a newer version, because its
    /// meaning is unknown.
    fn sum_up(&self, today: &mut Today) -> Result<Option<u64>, Error> {
        let (midnight, next) = self.day();
        let months = self.months(midnight, Timestamp::now());
        // Another day, or a file was removed, replaced or truncated: count everything again.
        let same = |read: &Bookmark| months.contains(&read.path) && read.holds();
        if today.since != Some(midnight) || !today.read.iter().all(same) {
            *today = Today {
                since: Some(midnight),
                lost: today.lost,
                ..Today::default()
            };
        }
        for path in months {
            let at = today.read.iter().position(|read| read.path == path);
            let from = at.map_or(0, |at| today.read[at].to);
            let (mut paid, mut newer) = (0_u64, false);
            let to = each_line(&path, from, |line| match line {
                Line::Entry(entry) if (midnight..next).contains(&entry.at) => {
                    paid = paid.saturating_add(pico(entry.paid_usd()));
                }
                Line::Newer => newer = true,
                Line::Entry(_) | Line::Other => {}
            })?;
            today.paid = today.paid.saturating_add(paid);
            today.newer |= newer;
            let read = Bookmark::at(path, to)?;
            match at {
                Some(at) => today.read[at] = read,
                None => today.read.push(read),
            }
        }
        Ok((!today.newer).then_some(today.paid))
    }
}

impl Ledger for LedgerFile {
    fn book(&self, mut entry: Entry) {
        entry.project.clone_from(&self.project);
        if let Err(error) = self.append(&entry) {
            if let Some(OnLoss(tell)) = &self.on_loss {
                tell(&error);
            }
            let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
            today.lost = true;
        }
    }

    fn today(&self) -> Option<u64> {
        self.committed(self.of_other_runs().ok()?)
    }

    fn begins(&self, request: u64, mut at_most: Entry, limit: u64) -> Result<(), NotSent> {
        if at_most.paid_usd() == 0.0 {
            return Ok(());
        }
        at_most.project.clone_from(&self.project);
        self.begin(request, at_most, limit)
    }

    fn ended(&self, request: u64) {
        self.in_flight.end(request);
    }
}

/// Returns whether a file can grow by [`ROOM`] bytes. Where the system cannot tell, it is assumed.
#[cfg(target_os = "linux")]
fn has_room(file: &File, len: u64) -> bool {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::KEEP_SIZE, len, ROOM) {
        Ok(()) => true,
        Err(error) => ![Errno::NOSPC, Errno::DQUOT, Errno::ROFS, Errno::IO].contains(&error),
    }
}

#[cfg(not(target_os = "linux"))]
fn has_room(_: &File, _: u64) -> bool {
    true
}

/// A line of the ledger.
enum Line {
    Entry(Box<Entry>),
    /// A line of a newer version.
    Newer,
    /// Not a line of kd.
    Other,
}

impl Line {
    fn read(line: &[u8]) -> Self {
        let stated = kd_core::formats::stated(line, "v");
        match serde_json::from_slice::<Entry>(line) {
            _ if LEDGER.check(stated).is_err() => Line::Newer,
            Ok(entry) => Line::Entry(Box::new(entry)),
            Err(_) => Line::Other,
        }
    }
}

/// Calls `each` with every complete line from an offset on. Returns where the last complete line ends.
fn each_line(path: &Path, from: u64, mut each: impl FnMut(Line)) -> Result<u64, Error> {
    let Some(mut file) = private::open(path, OFlags::RDONLY)? else {
        return Ok(0);
    };
    let failed = |error| Error::io("read", path)(error);
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut lines: BufReader<File> = BufReader::new(file);
    let mut at = from;
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut short = (&mut lines).take(LINE_MAX);
        let read = short.read_until(b'\n', &mut line).map_err(failed)?;
        // A line without a line break is still being written.
        let whole = line.last() == Some(&b'\n');
        if read == 0 || (!whole && (read as u64) < LINE_MAX) {
            return Ok(at);
        }
        at += read as u64;
        if !whole {
            let rest = skip_line(&mut lines).map_err(failed)?;
            at += rest;
            each(Line::Other);
            continue;
        }
        each(Line::read(&line));
    }
}

/// Skips the rest of a line. Returns its length in bytes.
fn skip_line(lines: &mut impl BufRead) -> std::io::Result<u64> {
    let mut passed = 0;
    loop {
        let buffer = lines.fill_buf()?;
        if buffer.is_empty() {
            return Ok(passed);
        }
        let end = buffer.iter().position(|b| *b == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        lines.consume(used);
        passed += used as u64;
        if end.is_some() {
            return Ok(passed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::ledger::{Billing, Payer};

    fn ledger(home: &Path) -> LedgerFile {
        let home = home.to_path_buf();
        let env = |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
        let dirs = UserDirs::from_env(&env);
        LedgerFile::new(&dirs, "/p".into(), TimeZone::UTC).unwrap()
    }

    fn entry(usd: f64) -> Entry {
        Entry {
            v: 1,
            at: Timestamp::now(),
            project: String::new(),
            payer: Payer {
                member: "ann".into(),
                service: "openai".into(),
                model: None,
                billing: Billing::Key,
            },
            input: 1,
            out: 2,
            usd: Some(usd),
            certainty: kd_core::usage::Certainty::Exact,
        }
    }

    #[test]
    fn a_file_that_was_removed_or_replaced_is_not_written_on() {
        let home = tempfile::tempdir().unwrap();
        let ledger = ledger(home.path());
        let lines = || ledger.since(Timestamp::UNIX_EPOCH).unwrap().entries.len();
        ledger.book(entry(0.5));
        ledger.book(entry(0.5));
        assert_eq!(lines(), 2);
        let path = ledger.months(Timestamp::now(), Timestamp::now()).remove(0);
        fs::remove_file(&path).unwrap();
        ledger.book(entry(0.5));
        assert_eq!(lines(), 1);
        let other = path.with_extension("new");
        fs::copy(&path, &other).unwrap();
        fs::rename(&other, &path).unwrap();
        ledger.book(entry(0.5));
        assert_eq!(lines(), 2);
        assert_eq!(ledger.today(), Some(pico(1.0)));
    }

    #[test]
    fn every_run_sees_what_all_runs_paid_today() {
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (ledger(home.path()), ledger(home.path()));
        assert_eq!(one.today(), Some(0));
        one.book(entry(0.5));
        assert_eq!(
            (one.today(), two.today()),
            (Some(pico(0.5)), Some(pico(0.5)))
        );
        two.book(entry(0.25));
        one.book(Entry {
            at: Timestamp::now() - jiff::SignedDuration::from_hours(49),
            ..entry(9.0)
        });
        assert_eq!(
            (one.today(), two.today()),
            (Some(pico(0.75)), Some(pico(0.75)))
        );
        let past = Timestamp::now() - jiff::SignedDuration::from_hours(72);
        let read = two.since(past).unwrap();
        assert_eq!((read.entries.len(), read.unread), (3, 0));
        assert_eq!(read.entries[0].usd, Some(9.0));
        assert!(read.entries.iter().all(|entry| entry.project == "/p"));
    }

    #[test]
    fn requests_that_are_being_sent_count_for_all_runs_and_for_those_after_a_kill() {
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (ledger(home.path()), ledger(home.path()));
        let limit = pico(1.0);
        let at_most = |usd| Entry {
            certainty: kd_core::usage::Certainty::AtMost,
            ..entry(usd)
        };
        assert_eq!(one.today(), Some(0));
        one.begins(1, at_most(0.5), limit).unwrap();
        assert_eq!((one.today(), two.today()), (Some(0), Some(pico(0.5))));
        let refused = two.begins(1, at_most(0.6), limit).unwrap_err();
        assert!(matches!(refused, NotSent::Limit(_)), "{refused}");
        two.begins(1, at_most(0.5), limit).unwrap();
        one.begins(2, at_most(0.1), limit).unwrap_err();
        // A login pays nothing.
        let login = Payer {
            billing: Billing::Login,
            ..at_most(9.0).payer
        };
        let covered = Entry {
            payer: login,
            ..at_most(9.0)
        };
        one.begins(3, covered, limit).unwrap();
        one.book(entry(0.25));
        one.ended(1);
        one.ended(3);
        assert_eq!(two.today(), Some(pico(0.25)));
        assert_eq!(one.today(), Some(pico(0.75)));
        // Two accounts with the same numbers.
        one.begins(7, at_most(0.125), limit).unwrap();
        one.begins(7, at_most(0.0625), limit).unwrap();
        one.ended(7);
        assert_eq!(two.today(), Some(pico(0.375)));
        one.ended(7);
        assert_eq!(two.today(), Some(pico(0.25)));
        // The lock of a killed run is free.
        drop(two);
        assert_eq!(one.today(), Some(pico(0.75)));
        let read = one.since(Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((read.entries.len(), read.unread), (2, 0));
        assert!(!read.entries[0].certainty.is_exact() || !read.entries[1].certainty.is_exact());
        let folder = one.folder().join("in-flight");
        drop(one);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    }

    #[test]
    fn the_file_of_a_run_is_written_anew_before_it_grows() {
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (ledger(home.path()), ledger(home.path()));
        let limit = pico(9.0);
        one.today();
        one.begins(0, entry(0.5), limit).unwrap();
        for request in 1..9_000 {
            one.begins(request, entry(0.25), limit).unwrap();
            one.ended(request);
        }
        assert_eq!(two.today(), Some(pico(0.5)));
        let folder = one.folder().join("in-flight");
        let files: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
        let bytes = files[0].metadata().unwrap().len();
        assert!(files.len() == 1 && bytes < 2 << 20, "{bytes}");
        // Written by a newer version, or cut.
        let path = files[0].path();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{{\"v\":2,\"ended\":0}}\n")).unwrap();
        assert_eq!(two.today(), None);
        fs::write(&path, format!("{text}{{\"v\":1,\"ended\":0")).unwrap();
        assert_eq!(two.today(), Some(pico(0.5)));
    }

    #[test]
    fn lines_that_are_none_of_ours_are_passed_over_and_counted() {
        let home = tempfile::tempdir().unwrap();
        let ledger = ledger(home.path());
        ledger.book(entry(0.5));
        let file = fs::read_dir(ledger.folder())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let mut open = fs::OpenOptions::new().append(true).open(&file).unwrap();
        let good = serde_json::to_string(&entry(0.25)).unwrap();
        let newer = good.replace("\"v\":1", "\"v\":2");
        let long = "x".repeat(3 * LINE_MAX as usize);
        let huge = good.replace("0.25", "1e999");
        write!(open, "junk\n\n{newer}\n{long}\n{huge}\n{good}\n{{\"v\":1,").unwrap();
        let read = ledger.since(Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((read.entries.len(), read.unread), (2, 5));
        // Payments by a newer kd are unknown.
        assert_eq!(ledger.today(), None);
        // Without that line all the others count; the truncated one swallows nothing.
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("\"v\":2", "\"v\":\"x\"")).unwrap();
        let ledger = self::ledger(home.path());
        assert_eq!(ledger.today(), Some(pico(0.75)));
        ledger.book(entry(1.0));
        assert_eq!(ledger.today(), Some(pico(1.75)));
    }

    #[test]
    fn a_file_that_was_removed_or_shortened_is_counted_anew() {
        let home = tempfile::tempdir().unwrap();
        let ledger = ledger(home.path());
        let file = ledger
            .months(Timestamp::now(), Timestamp::now())
            .pop()
            .unwrap();
        for usd in [0.5, 0.5, 0.5] {
            ledger.book(entry(usd));
        }
        assert_eq!(ledger.today(), Some(pico(1.5)));
        fs::write(&file, "").unwrap();
        assert_eq!(ledger.today(), Some(0));
        ledger.book(entry(0.25));
        assert_eq!(ledger.today(), Some(pico(0.25)));
        // A new file may get the inode of the removed one, and be as long or longer.
        for usd in [2.0, 3.0] {
            fs::remove_file(&file).unwrap();
            ledger.book(entry(usd));
            assert_eq!(ledger.today(), Some(pico(usd)));
        }
        // Another file with the same inode and length.
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("3.0", "2.0")).unwrap();
        assert_eq!(ledger.today(), Some(pico(2.0)));
        // A wrong clock.
        ledger
            .append(&Entry {
                at: Timestamp::now() + jiff::SignedDuration::from_hours(30),
                ..entry(9.0)
            })
            .unwrap();
        assert_eq!(ledger.today(), Some(pico(2.0)));
    }

    #[test]
    fn what_could_not_be_written_leaves_no_sum_to_rely_on() {
        let home = tempfile::tempdir().unwrap();
        let ledger = ledger(home.path());
        fs::create_dir_all(ledger.folder().parent().unwrap()).unwrap();
        fs::write(ledger.folder(), "a file in place of the folder").unwrap();
        let told = std::sync::Arc::new(Mutex::new(Vec::new()));
        let hear = std::sync::Arc::clone(&told);
        let ledger = ledger.telling(move |error| hear.lock().unwrap().push(error.to_string()));
        ledger.book(entry(0.5));
        assert_eq!(ledger.today(), None);
        let told = told.lock().unwrap();
        assert!(told.len() == 1 && told[0].contains("spending"), "{told:?}");
    }

    #[test]
    fn months_are_named_across_a_year() {
        let home = tempfile::tempdir().unwrap();
        let ledger = ledger(home.path());
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let files = ledger.months(at("2025-11-30T23:59:59Z"), at("2026-02-01T00:00:00Z"));
        let names: Vec<_> = files
            .iter()
            .map(|file| file.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            names,
            [
                "2025-11.jsonl",
                "2025-12.jsonl",
                "2026-01.jsonl",
                "2026-02.jsonl"
            ]
        );
    }
}
