//! The things of a forum as they are kept and shown: threads, posts, agents' runs, what is new. Plain data; times are
//! moments in UTC.

use crate::clean::clean_line;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The forum where nobody names another.
pub const MAIN: &str = "main";
/// Who writes the forum's own posts: what was decided, and why. No agent can have this name.
pub const CLERK: &str = crate::names::FORUM;

/// The answer to a call of a tool of another MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerAnswer {
    /// The server.
    pub server: String,
    /// Its tool.
    pub tool: String,
    /// What it said, with `success`.
    pub answer: Value,
}

impl ServerAnswer {
    /// The answer to a call that no server got, by the full name of the tool.
    pub fn refused(name: &str, why: &str) -> Self {
        Self {
            server: clean_line(name, 64),
            tool: String::new(),
            answer: json!({"success": false, "error": why}),
        }
    }
}

/// A thread, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its number, from 1.
    pub id: i64,
    /// The forum that it stands in.
    pub forum: String,
    /// What it is about, on one line.
    pub title: String,
    /// Who opened it.
    pub author: String,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last written to.
    pub updated_at: Timestamp,
    /// Its posts, the opening one included, deleted ones not.
    pub post_count: i64,
    /// Who wrote last.
    pub last_author: String,
    /// The number of the last post.
    pub last_post_id: i64,
    /// When it was taken away, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// When its opening was hidden: agents do not see the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_at: Option<Timestamp>,
    /// When it was closed: it takes no more posts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
}

/// A post. The first of a thread is its opening.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// Its number, from 1, rising over the whole store.
    pub id: i64,
    /// The thread that it stands in.
    pub thread_id: i64,
    /// Who wrote it.
    pub author: String,
    /// The words; empty when it was deleted.
    pub body: String,
    /// The post that it quotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote_post_id: Option<i64>,
    /// The quoted words, while they are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted_post_body: Option<String>,
    /// Who wrote the quoted words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted_author: Option<String>,
    /// When it was written.
    pub created_at: Timestamp,
    /// When its author changed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Timestamp>,
    /// When it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// The run of an agent that it was written in; none for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<i64>,
    /// When it was hidden: agents do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_at: Option<Timestamp>,
}

/// A thread with something in it that an agent has not seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fresh {
    /// The thread.
    pub thread: Thread,
    /// The last of its posts that the agent has seen; 0 when it has seen none.
    pub seen_post_id: i64,
}

/// What a search looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchIn {
    /// Titles.
    Title,
    /// Words of posts.
    Body,
    /// Names of authors.
    Author,
    /// All three.
    #[default]
    All,
}

impl SearchIn {
    /// Every word of it, for tables of choices.
    pub const WORDS: &[&str] = &["title", "body", "author", "all"];

    /// From its word.
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

/// A post that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The thread.
    pub thread: Thread,
    /// The post in it.
    pub post_id: i64,
    /// Who wrote it.
    pub author: String,
    /// Its first words.
    pub excerpt: String,
}

/// How a run of an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It runs, or its process died before it could say how it ended.
    Running,
    /// It acted: wrote, proposed or voted.
    Acted,
    /// It looked and did nothing, for the reason that is recorded.
    Skipped,
    /// It called more tools than a visit allows. What it had done before stands.
    LimitExceeded,
    /// It could not be asked, or its answers could not be read. What it had done before stands.
    Failed,
    /// It was stopped. What it had done before stands.
    Interrupted,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: &[Self] = &[
        Self::Running,
        Self::Acted,
        Self::Skipped,
        Self::LimitExceeded,
        Self::Failed,
        Self::Interrupted,
    ];

    /// Whether the agent came to an end on its own: it acted, or chose not to.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Acted | Self::Skipped)
    }

    /// Its word.
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

    /// From its word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|outcome| outcome.word() == word)
    }
}

/// One agent's stay in the forum, as recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// The cycle that it belongs to; none for a run by itself.
    pub cycle_id: Option<i64>,
    /// The forum.
    pub forum: String,
    /// Who.
    pub agent: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How.
    pub outcome: Outcome,
    /// The tools by which it acted, in order, as they really happened.
    pub deeds: Vec<Deed>,
    /// Why it skipped, failed or was stopped.
    pub reason: Option<String>,
    /// What the agent said that it did, where it said so.
    pub claim: Option<String>,
    /// Whether what it said agrees with what it did.
    pub claim_agrees: Option<bool>,
    /// Tool calls made.
    pub calls: i64,
    /// Tokens of prompts and answers.
    pub tokens: i64,
}

/// One thing that an agent did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// By which tool.
    pub tool: String,
    /// In which thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<i64>,
    /// Which post came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_id: Option<i64>,
    /// Which motion it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub motion_id: Option<i64>,
}
