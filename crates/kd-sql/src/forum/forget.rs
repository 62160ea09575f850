//! Forgetting threads in a forum, as a part of [`kd_store::forget`]: posts and other texts that repeat them, and lines
//! of its log files.

use super::erase::{self, Erased, Posts};
use super::{ForumError, ForumStore, Place, runner_log};
use jiff::Timestamp;
use kd_core::names::KING;
use kd_store::Error;
use kd_store::forget::{Found, Holder, Job, Target};
use std::path::{Path, PathBuf};

/// The data of erased text that a server keeps.
pub const SERVER_KEEPS: &str = "the server's write-ahead log, archives, replicas and backups keep erased text until they are recycled";

const COPY: &str = "a copy of the forum in an older version";

/// Maximum numbers of posts in a line.
const SHOWN: usize = 20;

/// A forum of the project whose threads are forgotten, by the place of its store.
#[derive(Clone, Debug)]
pub struct ForumTexts {
    place: Place,
    state: Option<PathBuf>,
    logs: PathBuf,
}

impl ForumTexts {
    /// Takes the place of the store, the user's state folder, and the folder of the log files.
    pub fn new(place: Place, state: Option<&Path>, logs: PathBuf) -> Self {
        Self {
            place,
            state: state.map(Path::to_path_buf),
            logs,
        }
    }

    /// Returns the place of the store.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the texts that repeat the text that a job forgets.
    ///
    /// # Errors
    /// The store cannot be opened, or the database fails.
    pub fn repeating(&self, job: &Job<'_>) -> Result<Erased, ForumError> {
        let repeats = |text: &str| job.is_quoted_in(text);
        let mut store = ForumStore::open(&self.place, self.state.as_deref())?;
        store.erase(Posts::Repeating, &repeats, KING, Timestamp::now(), true)
    }

    fn erase(
        &self,
        repeats: &dyn Fn(&str) -> bool,
        dry: bool,
    ) -> Result<(Erased, Vec<PathBuf>), ForumError> {
        // Before the store is opened and its copies are removed.
        let copies = erase::copies_of(&self.place)?;
        let files = erase::traces(&self.place, repeats)?;
        let mut store = ForumStore::open(&self.place, self.state.as_deref())?;
        let done = store.erase(Posts::Repeating, repeats, KING, Timestamp::now(), dry)?;
        if !done.is_nothing() || done.unused {
            return Ok((done, Vec::new()));
        }
        // It is no longer in any table, but still in unused pages, or in a copy.
        if files.is_empty() {
            return Ok((done, files));
        }
        if !dry {
            store.purge()?;
        }
        let is_own = |file: &PathBuf| !copies.contains(file);
        Ok((
            done,
            files
                .into_iter()
                .filter(is_own)
                .chain(copies.clone())
                .collect(),
        ))
    }
}

/// Describes erased texts of a kind: which they are, or how many.
fn kind_of_text(what: &str, items: &[i64]) -> String {
    let s = if items.len() == 1 { "" } else { "s" };
    let which = numbers(items);
    match what {
        "thread" => format!("the title{s} of thread{s} {which} of a forum"),
        "motion" => format!("texts of motion{s} {which} of a forum"),
        "vote" => format!("reasons of votes on motion{s} {which} of a forum"),
        "entry" => format!(
            "texts of entr{} {which} of a forum",
            if s.is_empty() { "y" } else { "ies" }
        ),
        "run" => format!(
            "the reasons or claims of {} turn{s} of a forum",
            items.len()
        ),
        "log" => format!("{} line{s} of a forum's own log", items.len()),
        what => format!("{} {what}{s} of a forum", items.len()),
    }
}

fn is_copy(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    name.to_string_lossy().contains(".form-")
}

impl Holder for ForumTexts {
    fn forget(&self, job: &Job<'_>, _: &Target, dry: bool) -> Result<Vec<Found>, Error> {
        let repeats = |text: &str| job.is_quoted_in(text);
        let path = PathBuf::from(self.place.shown());
        let (done, files) = self.erase(&repeats, dry).map_err(|error| {
            let why = std::io::Error::other(format!("{error} ({})", error.hint()));
            Error::io("erase from", &path)(why)
        })?;
        let mut found = erased(&done, &path);
        found.extend(files.into_iter().map(|path| Found {
            what: match is_copy(&path) {
                true => COPY.to_owned(),
                false => "unused pages of the forum".to_owned(),
            },
            path,
        }));
        found.extend(forget_log(&self.logs, &repeats, dry)?);
        Ok(found)
    }
}

/// Replaces the lines of a folder's log files that repeat a text; only finds them if `dry`.
///
/// # Errors
/// A file cannot be read, locked or replaced.
pub fn forget_log(
    folder: &Path,
    repeats: &dyn Fn(&str) -> bool,
    dry: bool,
) -> Result<Vec<Found>, Error> {
    runner_log::forget(folder, repeats, dry)
}

/// Describes the texts that were erased from a store.
pub fn erased(done: &Erased, path: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    let mut add = |what: String| {
        found.push(Found {
            path: path.to_path_buf(),
            what,
        });
    };
    match done.posts.as_slice() {
        [] => {}
        [one] => add(format!("post {one} of a forum")),
        many => add(format!("posts {} of a forum", numbers(many))),
    }
    for (what, items) in &done.items {
        add(kind_of_text(what, items));
    }
    if !done.unproved.is_empty() {
        let cycles = numbers(&done.unproved);
        add(format!(
            "seals that can no longer be computed: those of cycles {cycles}"
        ));
    }
    if done.unused {
        add("unused pages of a forum, with text erased earlier".to_owned());
    }
    for copy in &done.copies {
        found.push(Found {
            path: copy.clone(),
            what: COPY.to_owned(),
        });
    }
    found
}

/// Lists numbers, and how many more there are.
pub fn numbers(all: &[i64]) -> String {
    let shown: Vec<String> = all.iter().take(SHOWN).map(i64::to_string).collect();
    match all.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
