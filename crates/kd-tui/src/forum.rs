//! The forum screen: lists on the left, the selection on the right, updated live, and an input at the bottom. Reads
//! from a [`Library`], handles keys, draws cells, and sends the user's [`Deed`]s. Posts are untrusted data: they are
//! sanitized, and wrapped into their own column.
//!
//! ```text
//! keys ─▶ reader.rs (state) ─▶ effects ─▶ live.rs ─▶ library, editor, clipboard
//! looks ────▶   │
//!               ▼
//!            draw.rs ─▶ cells
//! ```

mod draw;
mod keys;
mod live;
mod reader;
mod sheet;
mod writing;

pub use keys::{Act, KEYS, View};
pub use live::run;
pub use reader::{Effect, Reader};
pub use writing::Writing;

use crate::text::style::Styles;
use crate::theme::Theme;
use kd_app::UserError;
use kd_forum::order::Order;
use kd_forum::words::Choice;
use kd_forum::words::{Hit, Post, Thread};
use std::collections::BTreeMap;

/// Maximum posts returned by one look.
pub const PAGE: i64 = 1000;

/// The source of all data and the target of deeds. Calls may block: they run outside the screen's loop.
pub trait Library: Send + Sync + 'static {
    /// Reads what is wanted.
    ///
    /// # Errors
    /// If reading failed, with the reason and advice.
    fn look(&self, wants: &Wants) -> Result<Found, UserError>;

    /// Performs the user's action.
    ///
    /// # Errors
    /// If the action was refused, with the reason and advice.
    fn act(&self, deed: &Deed) -> Result<Done, UserError>;

    /// Returns an environment variable.
    fn var(&self, name: &str) -> Option<String>;
}

/// The data that the screen shows and therefore needs to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The view.
    pub view: View,
    /// Number of threads to list.
    pub threads: i64,
    /// Search words.
    pub search: Option<String>,
    /// The open thread.
    pub thread: Option<i64>,
    /// The last of its posts that is known.
    pub after: i64,
    /// The first and last post on the screen, which may have changed.
    pub again: Option<(i64, i64)>,
}

/// The result of a look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Threads, most recent activity first.
    pub threads: Vec<Thread>,
    /// Total threads and posts of the forum.
    pub counts: (i64, i64),
    /// Motions open for voting.
    pub open_motions: usize,
    /// The open thread; `None` if it was deleted.
    pub thread: Option<Thread>,
    /// Its posts after the known ones, at most [`PAGE`].
    pub posts: Vec<Post>,
    /// The current state of the posts on the screen.
    pub again: Vec<Post>,
    /// The hidden posts among these, each with the account that hid it and the reason.
    pub hidden: BTreeMap<i64, String>,
    /// The search words and their hits.
    pub hits: Option<(String, Vec<Hit>)>,
    /// The motions or members, in their views.
    pub items: Vec<Item>,
    /// The text of a view without a list.
    pub text: Vec<String>,
    /// The user's name and role here.
    pub me: (String, String),
}

/// A motion or a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The number of a motion, or the name of a member.
    pub key: String,
    /// Its title in the list.
    pub title: String,
    /// A word shown at the right edge of the list.
    pub note: String,
    /// Details, line by line.
    pub text: Vec<String>,
}

/// An action of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields name the subject")]
pub enum Deed {
    /// Opens a thread.
    Open { title: String, body: String },
    /// Replies in a thread.
    Reply {
        thread: i64,
        quote: Option<i64>,
        body: String,
    },
    /// Edits one of the user's posts.
    Edit { post: i64, body: String },
    /// Proposes a motion; `what` is parsed by [`kd_forum::proposal::Proposal`].
    Propose { what: String, reason: String },
    /// Votes.
    Vote {
        motion: i64,
        choice: Choice,
        reason: String,
    },
    /// Hides a post, closes a thread, bans a member, or assigns a role.
    Order { order: Order, reason: String },
    /// Undoes a log entry; `None` means the newest.
    Undo { entry: Option<i64>, reason: String },
    /// Puts a passed motion into force.
    Confirm { motion: i64 },
    /// Vetoes a motion.
    Veto { motion: i64, reason: String },
}

/// The result of a deed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The notice to show.
    pub told: String,
    /// The thread to go to.
    pub thread: Option<i64>,
}

/// The screen's appearance.
#[derive(Clone, Debug)]
pub struct Looks {
    /// Colors.
    pub theme: Theme,
    /// Glyphs.
    pub styles: Styles,
    /// Time zone for displayed times.
    pub zone: jiff::tz::TimeZone,
}

fn plural(n: i64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}
