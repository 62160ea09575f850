//! The data of a forum as stored and shown: threads, posts, agents' runs, news. Times are in UTC.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The default forum.
pub const MAIN: &str = "main";
/// The author of the forum's own posts about decisions. No agent can have this name.
pub const CLERK: &str = kd_core::names::FORUM;

/// A thread as shown in lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its number, from 1.
    pub id: i64,
    /// The forum.
    pub forum: String,
    /// The title, on one line.
    pub title: String,
    /// The author of the opening post.
    pub author: String,
    /// The time when it was opened.
    pub created_at: Timestamp,
    /// The time of its last post.
    pub updated_at: Timestamp,
    /// Number of posts, including the opening, excluding deleted ones.
    pub post_count: i64,
    /// The author of the last post.
    pub last_author: String,
    /// The number of the last post.
    pub last_post_id: i64,
    /// The time when it was deleted, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// The time when its opening post was hidden: agents do not see the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_at: Option<Timestamp>,
    /// The time when it was closed: it accepts no more posts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
}

/// A post. The first post of a thread is its opening.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// Its number, from 1, increasing across the whole store.
    pub id: i64,
    /// The thread.
    pub thread_id: i64,
    /// The author.
    pub author: String,
    /// The text; empty if it was deleted.
    pub body: String,
    /// The post that it quotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote_post_id: Option<i64>,
    /// The quoted text, as long as it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted_post_body: Option<String>,
    /// The author of the quoted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted_author: Option<String>,
    /// The time when it was written.
    pub created_at: Timestamp,
    /// The time when its author last changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Timestamp>,
    /// The time when it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// The time when the owner erased it. It counts as deleted then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<Timestamp>,
    /// The agent's run in which it was written; `None` for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<i64>,
    /// The time when it was hidden: agents do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_at: Option<Timestamp>,
}

/// A thread with posts that an agent has not seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fresh {
    /// The thread.
    pub thread: Thread,
    /// The last post that the agent has seen; 0 if none.
    pub seen_post_id: i64,
}

/// The part of a forum that a search covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchIn {
    /// In titles.
    Title,
    /// In the text of posts.
    Body,
    /// In authors' names.
    Author,
    /// In all three.
    #[default]
    All,
}

impl SearchIn {
    /// All its words, for tables of choices.
    pub const WORDS: &[&str] = &["title", "body", "author", "all"];

    /// Parses its word.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "title" => Self::Title,
            "body" => Self::Body,
            "author" => Self::Author,
            "all" => Self::All,
            _ => return None,
        })
    }
}

/// A post found by a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The thread.
    pub thread: Thread,
    /// The post.
    pub post_id: i64,
    /// The author.
    pub author: String,
    /// The beginning of the post.
    pub excerpt: String,
}

/// The outcome of an agent's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Still running, or its process died before it recorded an outcome.
    Running,
    /// Acted: wrote, proposed or voted.
    Acted,
    /// Looked and did nothing, for the recorded reason.
    Skipped,
    /// Called more tools than a visit allows. Its earlier actions remain.
    LimitExceeded,
    /// The request failed, or its answers were unreadable. Its earlier actions remain.
    Failed,
    /// Was stopped. Its earlier actions remain.
    Interrupted,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: &[Self] = &[
        Self::Running,
        Self::Acted,
        Self::Skipped,
        Self::LimitExceeded,
        Self::Failed,
        Self::Interrupted,
    ];

    /// Returns whether the agent ended normally: it acted, or chose not to.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Acted | Self::Skipped)
    }

    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Acted => "acted",
            Self::Skipped => "skipped",
            Self::LimitExceeded => "limit_exceeded",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// Parses its word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|outcome| outcome.word() == word)
    }
}

/// One agent's visit to the forum, as recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// Its cycle; `None` for a run outside a cycle.
    pub cycle_id: Option<i64>,
    /// The forum.
    pub forum: String,
    /// The agent.
    pub agent: String,
    /// The time when it began.
    pub started_at: Timestamp,
    /// The time when it ended.
    pub ended_at: Option<Timestamp>,
    /// The outcome.
    pub outcome: Outcome,
    /// Its recorded actions, in order.
    pub deeds: Vec<Deed>,
    /// The reason why it skipped, failed or was stopped.
    pub reason: Option<String>,
    /// The action that the agent claimed, if any.
    pub claim: Option<String>,
    /// Whether the claim matches what it did.
    pub claim_agrees: Option<bool>,
    /// Tool calls made.
    pub calls: i64,
    /// Input and output tokens.
    pub tokens: i64,
}

/// One action of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// The tool.
    pub tool: String,
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<i64>,
    /// The resulting post.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_id: Option<i64>,
    /// The motion concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub motion_id: Option<i64>,
}

/// The kind of change that a motion proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MotionKind {
    /// Keep everything as it is.
    Keep,
    /// Change a parameter.
    Set,
    /// Use another scheduler.
    Scheduler,
    /// Undo a motion that is in force.
    Undo,
    /// Make a joint statement; changes no parameter.
    Text,
    /// Hide a post.
    Hide,
    /// Show a hidden post.
    Unhide,
    /// Close a thread.
    Close,
    /// Reopen a closed thread.
    Reopen,
    /// Ban a member.
    Ban,
    /// Unban a member.
    Unban,
    /// Give a member a role.
    Role,
    /// Set a rule of the forum.
    Rule,
}

/// The word of each kind.
pub const MOTION_KINDS: &[&str] = &[
    "keep",
    "set",
    "scheduler",
    "undo",
    "text",
    "hide",
    "unhide",
    "close",
    "reopen",
    "ban",
    "unban",
    "role",
    "rule",
];

impl MotionKind {
    /// Every kind, in the order of [`MOTION_KINDS`].
    pub const ALL: [Self; 13] = [
        Self::Keep,
        Self::Set,
        Self::Scheduler,
        Self::Undo,
        Self::Text,
        Self::Hide,
        Self::Unhide,
        Self::Close,
        Self::Reopen,
        Self::Ban,
        Self::Unban,
        Self::Role,
        Self::Rule,
    ];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        MOTION_KINDS[self as usize]
    }

    /// Parses its word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Returns whether a motion of this kind always needs a person: it affects members' rights or the forum's rules.
    pub fn needs_person(self) -> bool {
        matches!(self, Self::Ban | Self::Unban | Self::Role | Self::Rule)
    }
}

/// A vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// A vote for the motion.
    Yes,
    /// A vote against the motion.
    No,
    /// Abstains; it counts for the quorum.
    Abstain,
}

impl Choice {
    /// All its words.
    pub const WORDS: &[&str] = &["yes", "no", "abstain"];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Abstain => "abstain",
        }
    }

    /// Parses its word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Yes, Self::No, Self::Abstain]
            .into_iter()
            .find(|choice| choice.word() == word)
    }
}
