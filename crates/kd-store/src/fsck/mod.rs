//! Checks a thread's folder and repairs it. Input: a place. Output: findings, and repairs.
//!
//! Nothing is ever deleted: files that must move go to `.kd-lost/` in the same folder, and so does the old text of
//! every rewritten file. [`check`] only reads.

mod look;
mod mend;

use crate::error::Error;
use crate::layout::{Layout, Place};
use crate::meta::Meta;
use std::path::PathBuf;
use std::time::Duration;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// There is no `thread.json`: git does not track it, so every clone lacks it, and kingdom-cli hides the thread.
    NoMeta,
    /// `thread.json` is malformed.
    TornMeta,
    /// `thread.json` was written by a newer kd: nothing else of the thread is checked.
    NewerMeta,
    /// `thread.json` contains something that breaks other programs.
    OddMeta,
    /// A file named like a message is empty: its writer was killed.
    Empty,
    /// A file named like a message has no front matter.
    NoHeader,
    /// The front matter has no end: an incomplete write.
    TornHeader,
    /// Something in the front matter cannot be parsed.
    OddHeader,
    /// A value contains `---`, where kingdom-cli ends the front matter.
    EarlyEnd,
    /// References as a list of lines, which kingdom-cli reads as none.
    BlockList,
    /// Two messages have the same number.
    Double,
    /// It is a link, a pipe or a folder, or too large, or the system denies access.
    Unreadable,
    /// An abandoned stream: to kingdom-cli its member looks busy forever.
    StaleStream,
    /// A JSON file is malformed.
    TornJson,
    /// Queued messages of an older version, or planted ones: they are not sent.
    StrayQueue,
    /// Lines end in CRLF. All programs can read it.
    Crlf,
    /// Numbers above 9999, which kingdom-cli does not see.
    FiveDigits,
    /// A message of the user chooses an answer that does not exist. It is read as a message that asks.
    StrayChoice,
    /// A message of the user names a picture or document that has no copy. Members are not shown it.
    NoCopy,
    /// A copy of a picture or document has other bytes than its name says. Members are not shown it.
    OddCopy,
    /// The words of a message differ from those that its thread's log recorded: one of the two was edited.
    OtherWords,
    /// An unknown file or folder. It is left alone.
    Alien,
}

impl Kind {
    /// Returns the word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Kind::NoMeta => "no_thread_json",
            Kind::TornMeta => "torn_thread_json",
            Kind::NewerMeta => "newer_thread_json",
            Kind::OddMeta => "odd_thread_json",
            Kind::Empty => "empty_message",
            Kind::NoHeader => "no_front_matter",
            Kind::TornHeader => "torn_front_matter",
            Kind::OddHeader => "odd_front_matter",
            Kind::EarlyEnd => "fence_in_value",
            Kind::BlockList => "block_list",
            Kind::Double => "double_number",
            Kind::Unreadable => "unreadable",
            Kind::StaleStream => "stale_stream",
            Kind::TornJson => "torn_json",
            Kind::StrayQueue => "stray_queue",
            Kind::Crlf => "crlf",
            Kind::FiveDigits => "five_digits",
            Kind::StrayChoice => "stray_choice",
            Kind::NoCopy => "no_copy",
            Kind::OddCopy => "odd_copy",
            Kind::OtherWords => "other_words",
            Kind::Alien => "alien",
        }
    }

    /// Returns whether it is harmless.
    pub fn is_note(self) -> bool {
        matches!(
            self,
            Kind::Crlf | Kind::FiveDigits | Kind::StrayChoice | Kind::NoCopy | Kind::Alien
        )
    }
}

/// A repair of a finding.
#[derive(Clone, Debug, PartialEq)]
pub enum Remedy {
    /// Write `thread.json` from the known data.
    WriteMeta(Box<Meta>),
    /// Rewrite the file with what could be parsed of it.
    Rewrite,
    /// Add a front matter: the sender from its name, the time of the file.
    Adopt,
    /// Give the file the next free number.
    Renumber,
    /// Move the file into `.kd-lost/`.
    SetAside,
}

impl Remedy {
    /// Describes what it does.
    pub fn says(&self) -> &'static str {
        match self {
            Remedy::WriteMeta(_) => "write thread.json from the messages",
            Remedy::Rewrite => "rewrite it; the old text goes to .kd-lost",
            Remedy::Adopt => "give it a front matter; the old text goes to .kd-lost",
            Remedy::Renumber => "give it the next free number",
            Remedy::SetAside => "move it to .kd-lost",
        }
    }
}

/// The reason why a problem was not repaired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMended {
    /// The file may still be written: a later attempt can succeed.
    #[error("it was written a moment ago: try again in a few seconds")]
    Fresh,
    /// A file cannot be read or written. The text says why, and what to do.
    #[error("{0}")]
    Failed(String),
}

/// A single problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its kind.
    pub kind: Kind,
    /// The file.
    pub path: PathBuf,
    /// A description.
    pub what: String,
    /// The repair; `None` if only a person can repair it.
    pub remedy: Option<Remedy>,
    /// The result of the repair: the change, or the reason why it failed; `None` if nothing was tried.
    pub mended: Option<Result<String, NotMended>>,
}

impl Finding {
    /// Returns whether it is more than a note and not repaired.
    pub fn is_open(&self) -> bool {
        !self.kind.is_note() && !matches!(self.mended, Some(Ok(_)))
    }
}

/// The findings in one folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The number of readable messages.
    pub messages: usize,
    /// The findings, by file.
    pub findings: Vec<Finding>,
}

/// Checks a thread. Only reads. A stream of another program counts as live until it was silent for `patience`.
///
/// # Errors
/// If the thread's folder cannot be opened or listed. A file that cannot be read is a finding.
pub fn check(place: &Place, patience: Duration) -> Result<Report, Error> {
    look::thread(place, patience)
}

/// Checks a branch's files beside its threads. Only reads.
///
/// # Errors
/// If a folder cannot be opened or listed.
pub fn check_branch(layout: &Layout) -> Result<Report, Error> {
    look::branch(layout)
}

/// Checks everything in `.kd` outside the threads for unexpected types. Only reads.
///
/// # Errors
/// If a folder cannot be opened or listed.
pub fn check_base(layout: &Layout) -> Result<Report, Error> {
    look::base(layout)
}

/// Sets aside what [`check_base`] found.
///
/// # Errors
/// If the folder of a finding cannot be opened. A repair that fails is recorded in the report.
pub fn repair_base(report: &mut Report) -> Result<(), Error> {
    mend::base(report)
}

/// Repairs findings that have a remedy, and records the result in the report. Skips files written a moment ago: their
/// writer may not be done.
///
/// # Errors
/// If the thread cannot be opened or settled, or is locked for too long. A repair that fails is recorded in the report.
pub fn repair(place: &Place, report: &mut Report) -> Result<(), Error> {
    mend::thread(&place.path, report)
}

/// Repairs findings outside the threads of a branch.
///
/// # Errors
/// If the branch's folder cannot be opened. A repair that fails is recorded in the report.
pub fn repair_branch(layout: &Layout, report: &mut Report) -> Result<(), Error> {
    mend::branch(&layout.branch_folder(), report)
}
