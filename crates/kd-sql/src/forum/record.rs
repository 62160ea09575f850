//! The lines of an export.

use super::{CycleRecord, Erasure};
use jiff::Timestamp;
use kd_forum::account::Account;
use kd_forum::governance::{CastVote, Motion};
use kd_forum::logline::LogLine;
use kd_forum::order::Entry;
use kd_forum::words::{Post, Run, Thread};
use serde::{Deserialize, Serialize};

/// A line of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
#[allow(missing_docs, reason = "kd_forum defines the names")]
pub enum Record {
    /// The first line.
    Forum {
        version: u32,
    },
    Thread(Thread),
    Post(Post),
    Agent {
        name: String,
        energy: f64,
        tokens: i64,
        turns: i64,
        skipped: i64,
        last_run_at: Option<Timestamp>,
    },
    Seen {
        agent: String,
        thread_id: i64,
        post_id: i64,
    },
    Mark {
        agent: String,
        forum: String,
        post_id: i64,
    },
    /// The digest of a post before it was edited.
    FirstWords {
        post_id: i64,
        digest: String,
    },
    Cycle(Box<CycleRecord>),
    Run(Run),
    Motion(Motion),
    Vote(CastVote),
    /// An account.
    Member(Account),
    /// A name that may vote on a motion.
    Elector {
        motion_id: i64,
        name: String,
    },
    Setting {
        forum: String,
        key: String,
        value: String,
        motion_id: i64,
    },
    Log(LogLine),
    Note {
        forum: String,
        name: String,
        body: String,
        updated_at: Timestamp,
    },
    Profile {
        forum: String,
        name: String,
        body: String,
        updated_at: Timestamp,
    },
    Mention {
        forum: String,
        name: String,
        post_id: i64,
        seen_at: Option<Timestamp>,
    },
    Charter {
        forum: String,
        body: String,
        updated_at: Timestamp,
    },
    Order(Entry),
    /// A text that the owner erased.
    Erasure(Erasure),
    Rule {
        forum: String,
        key: String,
        value: String,
    },
}

/// Whether the governance of the file takes effect: its author may have invented motions and votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Governance {
    /// Nothing of the file has effects: threads and posts under marked names, closed motions, and cycles that do not
    /// count.
    Closed,
    /// All of it, as the user's own file: its settings are in force, its open motions continue, its entries can be
    /// undone.
    InForce,
}
