//! What is wrong in a thread's folder, and putting it right. Comes in: a place. Goes out: findings, and what was done.
//!
//! Nothing is ever deleted: what cannot stay where it is goes to `.kd-lost/` in the same folder, and so does the old
//! text of every file that is written anew. [`check`] only reads.

mod look;
mod mend;

use crate::error::Error;
use crate::layout::{Layout, Place};
use crate::meta::Meta;
use std::path::PathBuf;
use std::time::Duration;

/// What kind of thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// There is no `thread.json`: git does not carry it, so every clone lacks it, and kingdom-cli hides the thread.
    NoMeta,
    /// `thread.json` cannot be read.
    TornMeta,
    /// A newer kd wrote `thread.json`: nothing else of the thread is looked at.
    NewerMeta,
    /// `thread.json` says something that other programs stumble over.
    OddMeta,
    /// A file that is named like a message and is empty: its writer was killed.
    Empty,
    /// A file that is named like a message and has no front matter.
    NoHeader,
    /// The front matter has no end: a torn write.
    TornHeader,
    /// Something in the front matter cannot be read.
    OddHeader,
    /// A value holds `---`, at which kingdom-cli ends the front matter.
    EarlyEnd,
    /// References as a list of lines, which kingdom-cli reads as none.
    BlockList,
    /// Two messages have one number.
    Double,
    /// It is a link, a pipe or a folder, or too large, or the system refuses it.
    Unreadable,
    /// A stream that nobody writes any more: kingdom-cli takes its member to be at work for ever.
    StaleStream,
    /// A file of JSON that cannot be read.
    TornJson,
    /// Messages that wait, of an older version or planted: they are not sent.
    StrayQueue,
    /// Lines end in CRLF. Everybody reads it.
    Crlf,
    /// Numbers above 9999, which kingdom-cli does not see.
    FiveDigits,
    /// A file or folder that belongs to nobody. It is left alone.
    Alien,
}

impl Kind {
    /// The word in JSON.
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
            Kind::Alien => "alien",
        }
    }

    /// Whether nobody loses anything by it.
    pub fn is_note(self) -> bool {
        matches!(self, Kind::Crlf | Kind::FiveDigits | Kind::Alien)
    }
}

/// How a finding is put right.
#[derive(Clone, Debug, PartialEq)]
pub enum Remedy {
    /// `thread.json` is written from what is known.
    WriteMeta(Box<Meta>),
    /// The file is written anew with what could be read of it.
    Rewrite,
    /// The file gets a front matter: the sender of its name, the time of its file.
    Adopt,
    /// The file gets the next free number.
    Renumber,
    /// The file is put into `.kd-lost/`.
    SetAside,
}

impl Remedy {
    /// What it does, in words.
    pub fn says(&self) -> &'static str {
        match self {
            Remedy::WriteMeta(_) => "write thread.json from the messages",
            Remedy::Rewrite => "write it anew; the old text goes to .kd-lost",
            Remedy::Adopt => "give it a front matter; the old text goes to .kd-lost",
            Remedy::Renumber => "give it the next free number",
            Remedy::SetAside => "move it to .kd-lost",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What kind of thing.
    pub kind: Kind,
    /// The file.
    pub path: PathBuf,
    /// What is wrong, in words.
    pub what: String,
    /// How it is put right; none where only a person can.
    pub remedy: Option<Remedy>,
    /// Nothing was tried, or what was done, or why it could not be.
    pub mended: Option<Result<String, String>>,
}

impl Finding {
    /// Whether it is more than a note and still there.
    pub fn is_open(&self) -> bool {
        !self.kind.is_note() && !matches!(self.mended, Some(Ok(_)))
    }
}

/// What was found in one folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Messages that can be read.
    pub messages: usize,
    /// What was found, by file.
    pub findings: Vec<Finding>,
}

/// Looks at a thread. Reads only. A stream of another program counts as living until it was silent for `patience`.
pub fn check(place: &Place, patience: Duration) -> Result<Report, Error> {
    look::thread(place, patience)
}

/// Looks at what a branch keeps beside its threads. Reads only.
pub fn check_branch(layout: &Layout) -> Result<Report, Error> {
    look::branch(layout)
}

/// Looks at `.kd` itself: everything outside the threads that is not what its name says. Reads only.
pub fn check_base(layout: &Layout) -> Result<Report, Error> {
    look::base(layout)
}

/// Sets aside what [`check_base`] found.
pub fn repair_base(report: &mut Report) -> Result<(), Error> {
    mend::base(report)
}

/// Puts right what has a remedy, and notes what became of it in the report. Files that were written a moment ago stay:
/// their writer may not be done.
pub fn repair(place: &Place, report: &mut Report) -> Result<(), Error> {
    mend::thread(&place.path, report)
}

/// Puts right what was found beside the threads of a branch.
pub fn repair_branch(layout: &Layout, report: &mut Report) -> Result<(), Error> {
    mend::branch(&layout.branch_folder(), report)
}
