//! Forgets a thread, or one of its messages, in every place that holds it.
//!
//! Input: threads, and the places where `kd` stores anything. Output: the traces by place, and their removal. Both use
//! the same steps ([`STEPS`]), as a dry run or not, so that nothing is removed that was not shown. Steps can be
//! repeated: the messages, which identify the rest, are removed last, so the next run completes a killed one.
//!
//! Follows no link, and removes nothing outside `.kd` and the user's own folders.

mod pieces;
mod steps;
mod thread;

use crate::beneath::Folder;
use crate::error::Error;
use crate::index;
use crate::layout::{self, Layout, Place};
use crate::lock::Lock;
use crate::reviews::Reviews;
use crate::stream::{self, PATIENCE};
use crate::thread::Thread;
use jiff::Timestamp;
use kd_core::ids::ThreadId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub use pieces::Pieces;
pub use steps::STEPS;

/// The text that replaces a forgotten message.
pub const TOMBSTONE: &str = "[forgotten]";
/// The key of `thread.json`.
const KEY: &str = "forgotten";

/// A forgotten message, as recorded in `thread.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// Its number.
    pub message: u32,
    /// The time when it was forgotten.
    pub at: Timestamp,
}

impl crate::Meta {
    /// Returns the forgotten messages of the thread.
    pub fn forgotten(&self) -> Vec<Forgotten> {
        let noted = self.extra.get(KEY).cloned();
        noted
            .and_then(|noted| serde_json::from_value(noted).ok())
            .unwrap_or_default()
    }

    fn note_forgotten(&mut self, numbers: &BTreeSet<u32>, at: Timestamp) {
        let mut noted = self.forgotten();
        let known: BTreeSet<u32> = noted.iter().map(|one| one.message).collect();
        noted.extend(numbers.difference(&known).map(|number| Forgotten {
            message: *number,
            at,
        }));
        noted.sort_by_key(|one| one.message);
        self.set_forgotten(noted);
    }

    fn set_forgotten(&mut self, noted: Vec<Forgotten>) {
        let value = serde_json::to_value(noted).unwrap_or_default();
        self.extra.insert(KEY.to_owned(), value);
    }
}

/// Something that was found and is to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The file or folder.
    pub path: PathBuf,
    /// The removed data: `3 messages`, `1 line`.
    pub what: String,
}

impl Found {
    fn count(path: PathBuf, count: usize, one: &str) -> Option<Self> {
        let ending = if count == 1 { "" } else { "s" };
        (count > 0).then(|| Self {
            path,
            what: format!("{count} {one}{ending}"),
        })
    }

    fn file(path: PathBuf, what: &str) -> Self {
        Self {
            path,
            what: what.to_owned(),
        }
    }
}

/// The part of a thread to forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    Whole,
    /// Messages with these numbers.
    Messages(BTreeSet<u32>),
}

/// A thread in which something is forgotten.
#[derive(Clone, Debug)]
pub struct Target {
    /// The thread.
    pub place: Place,
    /// The part that is forgotten.
    pub scope: Scope,
    /// Whether it only has copies of the requested messages.
    pub is_copy: bool,
}

/// A place of another crate that holds something of threads, for example a database. The job calls it as one of its
/// [`STEPS`].
pub trait Holder: std::fmt::Debug {
    /// Finds the traces of a target in this place; removes them unless `dry`. Can be repeated after a kill.
    ///
    /// # Errors
    /// If the place cannot be read or changed.
    fn forget(&self, job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error>;
}

/// The reason why a thread cannot be forgotten now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Busy {
    /// These members are answering in it.
    Answering(Vec<String>),
    /// These processes have it open.
    Open(Vec<u32>),
}

/// The data to forget, and the places to search.
#[derive(Debug)]
pub struct Job<'j> {
    layout: &'j Layout,
    reviews: Option<&'j Reviews>,
    /// Places of other crates.
    holders: Vec<&'j dyn Holder>,
    targets: Vec<Target>,
    /// Threads that keep their copies, with their number.
    keeps: Vec<(Place, usize)>,
    /// Identifies the text of the messages.
    pieces: Pieces,
    now: Timestamp,
}

impl<'j> Job<'j> {
    /// Prepares to forget a thread, or one message of it. With `copies`, the copies of its messages in forks are
    /// forgotten, too. For a single message this includes the copy in the thread from which this thread was forked.
    ///
    /// # Errors
    /// The thread or its copies cannot be read, or there is no such message.
    pub fn new(
        layout: &'j Layout,
        reviews: Option<&'j Reviews>,
        holders: Vec<&'j dyn Holder>,
        place: &Place,
        message: Option<u32>,
        copies: bool,
    ) -> Result<Self, Error> {
        let thread = Thread::open(place)?;
        let scope = match message {
            None => Scope::Whole,
            Some(number) => {
                let entries = index::list(thread.folder())?;
                if !entries.iter().any(|entry| entry.seq == number) {
                    return Err(Error::NoMessage {
                        path: thread.path().to_path_buf(),
                        seq: number,
                    });
                }
                Scope::Messages(BTreeSet::from([number]))
            }
        };
        let pieces = thread::pieces(thread.folder(), &scope)?;
        let mut job = Self {
            layout,
            reviews,
            holders,
            targets: Vec::new(),
            keeps: Vec::new(),
            pieces,
            now: Timestamp::now(),
        };
        for copy in thread::copies(layout, place, &scope)? {
            // The source of a fork owns the messages.
            if !copies || (message.is_none() && !copy.is_fork) {
                job.keeps.push((copy.place, copy.numbers.len()));
                continue;
            }
            job.targets.push(Target {
                place: copy.place,
                scope: match copy.is_all && message.is_none() {
                    true => Scope::Whole,
                    false => Scope::Messages(copy.numbers),
                },
                is_copy: true,
            });
        }
        // The thread itself comes last: its messages identify the rest.
        job.targets.push(Target {
            place: place.clone(),
            scope,
            is_copy: false,
        });
        Ok(job)
    }

    /// Prepares to forget a thread that asked the question of another thread again. Nothing else is searched for its
    /// text, because the other thread has the same text.
    pub fn of_repeat(layout: &'j Layout, holders: Vec<&'j dyn Holder>, place: &Place) -> Self {
        Self {
            layout,
            reviews: None,
            holders,
            targets: vec![Target {
                place: place.clone(),
                scope: Scope::Whole,
                is_copy: false,
            }],
            keeps: Vec::new(),
            pieces: Pieces::default(),
            now: Timestamp::now(),
        }
    }

    /// Returns the project whose threads are forgotten.
    pub fn layout(&self) -> &Layout {
        self.layout
    }

    /// Returns whether a text repeats forgotten text.
    pub fn is_in(&self, text: &str) -> bool {
        self.pieces.are_in(text)
    }

    /// Returns the threads in which something is forgotten, the requested thread last.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Returns the threads that keep copies, and how many messages.
    pub fn keeps(&self) -> &[(Place, usize)] {
        &self.keeps
    }

    /// Returns the messages that are kept but quote forgotten text, by thread and number.
    ///
    /// # Errors
    /// A thread cannot be read.
    pub fn quotes(&self) -> Result<Vec<(ThreadId, u32)>, Error> {
        let mut found = Vec::new();
        for target in self.targets.iter().filter(|target| is_there(target)) {
            let Scope::Messages(numbers) = &target.scope else {
                continue;
            };
            Thread::open(&target.place)?.each(|message| {
                if !numbers.contains(&message.seq) && self.pieces.are_in(&message.body) {
                    found.push((target.place.id.clone(), message.seq));
                }
                Ok::<(), Error>(())
            })?;
        }
        Ok(found)
    }

    /// Returns whether a text by someone else repeats forgotten text. Unlike [`Self::is_in`], it ignores texts that
    /// are equal by accident, such as `Yes.`
    pub fn is_quoted_in(&self, text: &str) -> bool {
        self.pieces.are_quoted_in(text)
    }

    /// Returns why it cannot be forgotten now, with the thread; `None` if it can.
    ///
    /// # Errors
    /// A thread cannot be read.
    pub fn busy(&self) -> Result<Option<(ThreadId, Busy)>, Error> {
        for target in self.targets.iter().filter(|target| is_there(target)) {
            let thread = Thread::open(&target.place)?;
            let mut answering: Vec<String> = stream::streams(&thread)?
                .into_iter()
                .filter(|sign| sign.is_live(PATIENCE))
                .map(|sign| sign.member)
                .collect();
            answering.extend(thread::leased(thread.folder())?);
            answering.sort();
            answering.dedup();
            let id = &target.place.id;
            if !answering.is_empty() {
                return Ok(Some((id.clone(), Busy::Answering(answering))));
            }
            let open = thread::openers(thread.path());
            if !open.is_empty() {
                return Ok(Some((id.clone(), Busy::Open(open))));
            }
        }
        Ok(None)
    }

    /// Lists what would be removed. Changes nothing.
    ///
    /// # Errors
    /// A place cannot be read.
    pub fn look(&self) -> Result<Vec<Found>, Error> {
        self.run(true)
    }

    /// Removes the traces, and lists them. Holds the locks of the threads meanwhile.
    ///
    /// # Errors
    /// A place cannot be read or changed; the same call completes it later.
    pub fn forget(&self) -> Result<Vec<Found>, Error> {
        let mut locks: Vec<Lock> = Vec::new();
        for target in &self.targets {
            if let Some(folder) = Folder::find(&target.place.path)? {
                locks.push(crate::thread::lock_folder(&folder)?);
            }
        }
        let found = self.run(false)?;
        drop(locks);
        Ok(found)
    }

    fn run(&self, dry: bool) -> Result<Vec<Found>, Error> {
        let mut found: Vec<Found> = Vec::new();
        for (_, step) in STEPS {
            for target in &self.targets {
                for one in step(self, target, dry)? {
                    // A file shared by several threads is listed once.
                    if !found.contains(&one) {
                        found.push(one);
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Returns whether a thread still exists: it may have been forgotten meanwhile, with another one or by another process.
fn is_there(target: &Target) -> bool {
    matches!(Folder::find(&target.place.path), Ok(Some(_)))
}

/// Returns the time of the last activity in a thread: its newest message, or its opening. `None` if neither is known.
///
/// # Errors
/// The thread cannot be read.
pub fn newest(place: &Place) -> Result<Option<Timestamp>, Error> {
    let thread = Thread::open(place)?;
    let last = thread.tail(1)?.messages.pop().map(|message| message.at);
    Ok(last.or_else(|| thread.meta().created()))
}

/// Returns the branch folder of a thread.
fn branch(place: &Place) -> &Path {
    layout::branch_of(&place.path)
}
