//! The forum's screen: lists on the left, what is chosen on the right, live, and an input at the bottom. Input: what a
//! [`Library`] holds, and keys. Output: cells, and [`Deed`]s of the user. Posts are data: they are cleaned, and wrapped
//! into their own column.
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
use kd_core::forum::order::Order;
use kd_core::forum::tools::Choice;
use kd_core::forum::words::{Hit, Post, Thread};
use std::collections::BTreeMap;

/// Posts that a look brings at most.
pub const PAGE: i64 = 1000;

/// Where everything comes from, and where deeds go. Its calls may block: they are made off the screen's loop.
pub trait Library: Send + Sync + 'static {
    /// Reads what is wanted.
    ///
    /// # Errors
    /// It cannot be read: why, and what to do.
    fn look(&self, wants: &Wants) -> Result<Found, String>;

    /// Does what the user wants.
    ///
    /// # Errors
    /// It is refused: why, and what to do.
    fn act(&self, deed: &Deed) -> Result<Done, String>;

    /// A variable of the environment.
    fn var(&self, name: &str) -> Option<String>;
}

/// What the screen shows, and so has to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Which view.
    pub view: View,
    /// How many threads of the list.
    pub threads: i64,
    /// Words that are searched for.
    pub search: Option<String>,
    /// The thread that is read.
    pub thread: Option<i64>,
    /// The last of its posts that is known.
    pub after: i64,
    /// The first and the last post on the screen: they may have been changed.
    pub again: Option<(i64, i64)>,
}

/// What a look brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Threads, the newest activity first.
    pub threads: Vec<Thread>,
    /// Threads and posts of the forum, all of them.
    pub counts: (i64, i64),
    /// Motions on which votes are taken.
    pub open_motions: usize,
    /// The thread that is read; `None` if it is gone.
    pub thread: Option<Thread>,
    /// Its posts behind those that are known, at most [`PAGE`].
    pub posts: Vec<Post>,
    /// The posts on the screen as they are now.
    pub again: Vec<Post>,
    /// Who hid which of these posts, and why.
    pub hidden: BTreeMap<i64, String>,
    /// What was found for the words.
    pub hits: Option<(String, Vec<Hit>)>,
    /// The motions or the members, in their views.
    pub items: Vec<Item>,
    /// The text of a view that has no list.
    pub text: Vec<String>,
    /// Who the user is here: name and role.
    pub me: (String, String),
}

/// A motion or a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The number of a motion, or the name of a member.
    pub key: String,
    /// How the list calls it.
    pub title: String,
    /// A word at the right edge of the list.
    pub note: String,
    /// What is known of it, line by line.
    pub text: Vec<String>,
}

/// What the user does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields say what the deed is about")]
pub enum Deed {
    /// Opens a thread.
    Open { title: String, body: String },
    /// Writes into a thread.
    Reply {
        thread: i64,
        quote: Option<i64>,
        body: String,
    },
    /// Changes a post of the user.
    Edit { post: i64, body: String },
    /// Moves something; `what` is read by [`kd_core::forum::wish::Wish`].
    Propose { what: String, reason: String },
    /// Votes.
    Vote {
        motion: i64,
        choice: Choice,
        reason: String,
    },
    /// Hides a post, closes a thread, bans a member, gives a role.
    Order { order: Order, reason: String },
    /// Undoes an entry; `None` means the newest.
    Undo { entry: Option<i64>, reason: String },
    /// Puts a passed motion in force.
    Confirm { motion: i64 },
    /// Refuses a motion.
    Veto { motion: i64, reason: String },
}

/// What came of a deed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// What to tell.
    pub told: String,
    /// The thread to go to.
    pub thread: Option<i64>,
}

/// How the screen looks.
#[derive(Clone, Debug)]
pub struct Looks {
    /// Colors.
    pub theme: Theme,
    /// Glyphs.
    pub styles: Styles,
    /// The zone of times.
    pub zone: jiff::tz::TimeZone,
}

fn plural(n: i64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}
