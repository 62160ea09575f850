//! Reports of reviews, and the user's marks of findings as accepted or dismissed. Stored in the user's own data folder,
//! per repository but never in it: a reviewed tree cannot contain marks or reports.
//!
//! Input: the shared git folder of a repository, or any folder. Output: marks, newest last, and reports by thread.

use crate::error::Error;
use crate::lock::{self, Lock};
use crate::private;
use crate::user_dirs::{UserDirs, make_private, project_key};
use kd_core::ThreadId;
use kd_core::Timestamp;
use kd_core::formats::REVIEWS;
use kd_core::review::Severity;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The version of the files.
const VERSION: u32 = REVIEWS.version;
/// Maximum bytes of a file: marks of a hundred thousand findings, or the largest report.
const BYTES_MAX: u64 = 32 << 20;
/// Maximum number of reports; the oldest is removed first.
const REPORTS_MAX: usize = 50;

/// The user's verdict about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is a real fault.
    Accepted,
    /// It is not a fault.
    Dismissed,
}

/// A mark of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The finding's id.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Members that reported it.
    pub agreeing: u32,
    /// Members that were asked.
    pub of: u32,
    /// The thread of its review.
    pub thread: String,
    /// The time when it was marked.
    pub at: Timestamp,
    /// The severity of the finding when it was marked; unknown in older marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// The file of marks.
#[derive(Serialize, Deserialize)]
struct Marks {
    version: u32,
    marks: Vec<Mark>,
}

/// The file of reports: their threads, oldest first.
#[derive(Serialize, Deserialize)]
struct Index {
    version: u32,
    threads: Vec<String>,
}

/// The reviews of one repository.
#[derive(Clone, Debug)]
pub struct Reviews {
    folder: PathBuf,
}

impl Reviews {
    /// Opens the reviews of a repository, by the git folder that its worktrees share. Writes nothing yet.
    ///
    /// # Errors
    /// [`Error::NoHome`] if no data folder is known.
    pub fn of(dirs: &UserDirs, repository: &Path) -> Result<Self, Error> {
        let folder = dirs.data()?.join("reviews").join(project_key(repository));
        Ok(Self { folder })
    }

    /// Returns the marks, oldest first; one per finding.
    ///
    /// # Errors
    /// The file cannot be read, has another version, or is not the user's own.
    pub fn marks(&self) -> Result<Vec<Mark>, Error> {
        let file: Option<Marks> = self.read(&self.marks_file())?;
        Ok(file.map_or_else(Vec::new, |file| file.marks))
    }

    /// Marks a finding. Returns the previous mark.
    ///
    /// # Errors
    /// Those of [`Reviews::marks`]; also if the file cannot be written.
    pub fn mark(&self, mark: Mark) -> Result<Option<Mark>, Error> {
        let _lock = self.lock()?;
        let mut marks = self.marks()?;
        let at = marks.iter().position(|old| old.id == mark.id);
        let old = at.map(|at| marks.remove(at));
        marks.push(mark);
        let file = Marks {
            version: VERSION,
            marks,
        };
        self.write(&self.marks_file(), &file)?;
        Ok(old)
    }

    /// Forgets all marks. Returns their number.
    ///
    /// # Errors
    /// The file cannot be read or removed. A malformed file is removed.
    pub fn forget(&self) -> Result<usize, Error> {
        let _lock = self.lock()?;
        let count = self.marks().map_or(0, |marks| marks.len());
        private::remove(&self.marks_file())?;
        Ok(count)
    }

    /// Saves the report of a thread's review; keeps the newest 50 of all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, thread: &ThreadId, report: &Value) -> Result<(), Error> {
        let _lock = self.lock()?;
        let mut threads = self.threads()?;
        threads.retain(|kept| *kept != thread.0);
        threads.push(thread.0.clone());
        self.write(&self.report_file(&thread.0), report)?;
        let surplus = threads.len().saturating_sub(REPORTS_MAX);
        for old in threads.drain(..surplus) {
            private::remove(&self.report_file(&old))?;
        }
        let index = Index {
            version: VERSION,
            threads,
        };
        self.write(&self.index_file(), &index)
    }

    /// Returns the report of a thread by its id or a unique prefix, together with the thread's id. Without an id,
    /// returns the newest report. `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or the prefix is ambiguous.
    pub fn report(&self, thread: Option<&str>) -> Result<Option<(String, Value)>, Error> {
        let mut threads = self.threads()?;
        if let Some(wanted) = thread {
            let bare = |id: &str| id.strip_prefix("council-").unwrap_or(id).to_owned();
            let exact = threads.iter().any(|id| id == wanted);
            threads.retain(|id| match exact {
                true => id == wanted,
                false => bare(id).starts_with(&bare(wanted)),
            });
            if threads.len() > 1 {
                return Err(Error::AmbiguousThread {
                    wanted: wanted.to_owned(),
                    path: self.folder.clone(),
                    candidates: threads,
                });
            }
        }
        let Some(id) = threads.pop() else {
            return Ok(None);
        };
        let report = self.read(&self.report_file(&id))?;
        Ok(report.map(|report| (id, report)))
    }

    /// Returns the folder of the reviews.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the bytes of a thread's report.
    pub(crate) fn report_bytes(&self, thread: &str) -> Result<Option<Vec<u8>>, Error> {
        private::read(&self.report_file(thread), BYTES_MAX)
    }

    /// Forgets the report of a thread. Returns its file if there is one; removes nothing in a dry run.
    pub(crate) fn forget_report(&self, thread: &str, dry: bool) -> Result<Option<PathBuf>, Error> {
        let path = self.report_file(thread);
        let mut threads = self.threads()?;
        let is_there = private::open(&path, rustix::fs::OFlags::RDONLY)?.is_some();
        if !is_there && !threads.iter().any(|id| id == thread) {
            return Ok(None);
        }
        if !dry {
            let _lock = self.lock()?;
            private::remove(&path)?;
            threads = self.threads()?;
            threads.retain(|id| id != thread);
            let index = Index {
                version: VERSION,
                threads,
            };
            self.write(&self.index_file(), &index)?;
        }
        Ok(Some(path))
    }

    /// Forgets the marks of a thread's findings. Returns the file and their number; changes nothing in a dry run.
    pub(crate) fn forget_marks(&self, thread: &str, dry: bool) -> Result<(PathBuf, usize), Error> {
        let count = |marks: &[Mark]| marks.iter().filter(|mark| mark.thread == thread).count();
        let path = self.marks_file();
        let gone = count(&self.marks()?);
        if gone > 0 && !dry {
            let _lock = self.lock()?;
            let mut marks = self.marks()?;
            marks.retain(|mark| mark.thread != thread);
            let file = Marks {
                version: VERSION,
                marks,
            };
            self.write(&path, &file)?;
        }
        Ok((path, gone))
    }

    fn threads(&self) -> Result<Vec<String>, Error> {
        let index: Option<Index> = self.read(&self.index_file())?;
        Ok(index.map_or_else(Vec::new, |index| index.threads))
    }

    fn index_file(&self) -> PathBuf {
        self.folder.join("reports.json")
    }

    fn marks_file(&self) -> PathBuf {
        self.folder.join("marks.json")
    }

    fn report_file(&self, thread: &str) -> PathBuf {
        self.folder.join(format!("report-{thread}.json"))
    }

    fn write(&self, path: &Path, value: &impl Serialize) -> Result<(), Error> {
        let mut bytes = serde_json::to_vec_pretty(value).map_err(|source| Error::Json {
            path: path.to_owned(),
            source,
        })?;
        bytes.push(b'\n');
        private::replace_synced(path, &bytes)
    }

    /// Reads a file of this version; `None` if it does not exist.
    fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Error> {
        let Some(bytes) = private::read(path, BYTES_MAX)? else {
            return Ok(None);
        };
        let json = |source| Error::Json {
            path: path.to_owned(),
            source,
        };
        crate::json::check_version(&bytes, &REVIEWS, "version", || path.to_owned())?;
        let value: Value = serde_json::from_slice(&bytes).map_err(json)?;
        if value["version"].as_u64() != Some(VERSION.into()) {
            return Err(Error::Unsafe {
                path: path.to_owned(),
                why: "it states no version that kd knows",
            });
        }
        serde_json::from_value(value).map(Some).map_err(json)
    }

    fn lock(&self) -> Result<Lock, Error> {
        make_private(&self.folder)?;
        Lock::take(&lock::lock_path(&self.marks_file()), lock::WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn reviews(home: &Path, repository: &str) -> Reviews {
        let env = |name: &str| (name == "HOME").then(|| home.as_os_str().to_owned());
        let repository = home.join(repository);
        std::fs::create_dir_all(&repository).unwrap();
        Reviews::of(&UserDirs::from_env(&env), &repository).unwrap()
    }

    fn mark(id: &str, verdict: Verdict) -> Mark {
        Mark {
            id: id.into(),
            verdict,
            agreeing: 2,
            of: 3,
            thread: "council-1".into(),
            at: Timestamp::UNIX_EPOCH,
            severity: None,
        }
    }

    #[test]
    fn a_finding_has_one_mark_and_each_repository_its_own() {
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (reviews(home.path(), "one"), reviews(home.path(), "two"));
        assert_eq!(one.marks().unwrap(), []);
        assert_eq!(one.mark(mark("a", Verdict::Accepted)).unwrap(), None);
        let old = one.mark(mark("a", Verdict::Dismissed)).unwrap();
        assert_eq!(old.map(|old| old.verdict), Some(Verdict::Accepted));
        one.mark(mark("b", Verdict::Accepted)).unwrap();
        let verdicts: Vec<Verdict> = one.marks().unwrap().iter().map(|m| m.verdict).collect();
        assert_eq!(verdicts, [Verdict::Dismissed, Verdict::Accepted]);
        assert_eq!(two.marks().unwrap(), []);
        assert_eq!(one.forget().unwrap(), 2);
        assert_eq!(one.marks().unwrap(), []);
        // Nothing is in the repository.
        assert_eq!(
            std::fs::read_dir(home.path().join("one")).unwrap().count(),
            0
        );
    }

    #[test]
    fn marks_that_others_could_have_written_are_not_believed() {
        let home = tempfile::tempdir().unwrap();
        let reviews = reviews(home.path(), "one");
        reviews.mark(mark("a", Verdict::Accepted)).unwrap();
        let file = reviews.marks_file();
        let text = std::fs::read_to_string(&file).unwrap();
        for (bad, because) in [
            (
                text.replace("\"version\": 1", "\"version\": 2"),
                "has version 2 of",
            ),
            ("{".to_owned(), "is invalid"),
        ] {
            std::fs::write(&file, bad).unwrap();
            let error = reviews.marks().expect_err(because).to_string();
            assert!(error.contains(because), "{error}");
        }
        std::fs::write(&file, &text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(reviews.marks().is_err());
        std::fs::rename(&file, home.path().join("elsewhere")).unwrap();
        symlink(home.path().join("elsewhere"), &file).unwrap();
        assert!(reviews.marks().is_err());
        assert_eq!(reviews.forget().unwrap(), 0);
        assert_eq!(reviews.marks().unwrap(), []);
    }

    #[test]
    fn the_newest_report_is_found_and_old_ones_go() {
        let home = tempfile::tempdir().unwrap();
        let reviews = reviews(home.path(), "one");
        assert_eq!(reviews.report(None).unwrap(), None);
        for at in 0..REPORTS_MAX + 2 {
            let id = ThreadId(format!("council-{at:03}"));
            reviews.keep(&id, &json!({"version": 1, "at": at})).unwrap();
        }
        let at = |wanted: Option<&str>| {
            reviews
                .report(wanted)
                .unwrap()
                .map(|(_, r)| r["at"].clone())
        };
        assert_eq!(at(None), Some(json!(REPORTS_MAX + 1)));
        assert_eq!(at(Some("council-007")), Some(json!(7)));
        assert_eq!(at(Some("99")), None);
        assert_eq!(at(Some("007")), Some(json!(7)));
        assert_eq!(at(Some("001")), None, "it went");
        assert!(matches!(
            reviews.report(Some("00")),
            Err(Error::AmbiguousThread { .. })
        ));
    }
}
