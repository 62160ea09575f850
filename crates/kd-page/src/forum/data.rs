//! A forum, as its page needs it.

use jiff::Timestamp;

/// A forum, as needed for its page.
#[derive(Clone, Debug, Default)]
pub struct Forum {
    /// Its name.
    pub name: String,
    /// Its charter; empty without one.
    pub charter: String,
    /// The running or last cycle.
    pub cycle: Cycle,
    /// Motions, the open ones first.
    pub motions: Vec<Motion>,
    /// Threads, the newest activity first.
    pub threads: Vec<Topic>,
    /// Members, by name.
    pub members: Vec<Member>,
    /// The fairness of the newest cycles; `None` without one.
    pub fairness: Option<Fairness>,
    /// The actions of moderators, newest first.
    pub orders: Vec<Order>,
    /// The user.
    pub you: You,
    /// The forms of a motion, as the user writes one: `set KEY VALUE`.
    pub forms: Vec<String>,
}

/// The user, as a member.
#[derive(Clone, Debug, Default)]
pub struct You {
    /// The name that signs what the user writes.
    pub name: String,
    /// The role, in words.
    pub role: String,
    /// Whether the user votes on the next motions.
    pub votes: bool,
}

/// A cycle, as far as it is public.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// Its number; 0 if there was none.
    pub number: i64,
    /// Whether it runs.
    pub is_running: bool,
    /// Who has the turn.
    pub speaking: Vec<String>,
    /// The agents that had a turn, each with its result.
    pub had: Vec<(String, String)>,
    /// Who may still have one, by name: the order is secret until the end.
    pub rest: Vec<String>,
}

/// A motion.
#[derive(Clone, Debug, Default)]
pub struct Motion {
    /// Its number.
    pub id: i64,
    /// Its title.
    pub title: String,
    /// Its state, in words.
    pub state: String,
    /// A description of the change; empty if it changes nothing.
    pub wants: String,
    /// Who moved it.
    pub proposer: String,
    /// Why.
    pub reason: String,
    /// The thread in which it is discussed.
    pub thread: Option<i64>,
    /// The result of the count, in words; empty while it is open.
    pub outcome: String,
    /// The actions available to the user.
    pub may: May,
    /// The votes, in order.
    pub votes: Vec<Vote>,
}

/// The user's actions on a motion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum May {
    /// Nothing.
    #[default]
    Nothing,
    /// Vote, and refuse it.
    Vote,
    /// Refuse it. It is open, but the user has no vote.
    Refuse,
    /// Confirm or refuse it: it passed.
    Confirm,
}

/// A vote.
#[derive(Clone, Debug, Default)]
pub struct Vote {
    /// The voter.
    pub who: String,
    /// `yes`, `no` or `abstain`.
    pub choice: String,
    /// Why.
    pub reason: String,
}

/// A thread in the list.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    /// Its number.
    pub id: i64,
    /// Its title.
    pub title: String,
    /// Who opened it.
    pub author: String,
    /// Number of posts.
    pub posts: i64,
    /// The time of the last one.
    pub updated: Timestamp,
    /// Whether agents do not see it, and whether it takes no posts.
    pub is_hidden: bool,
    /// See `is_hidden`.
    pub is_closed: bool,
}

/// A member.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its kind, role and status, in words.
    pub kind: String,
    /// See `kind`.
    pub role: String,
    /// See `kind`.
    pub status: String,
    /// Whether it votes.
    pub votes: bool,
    /// When it joined.
    pub joined: Timestamp,
}

/// How fair the newest cycles were.
#[derive(Clone, Debug, Default)]
pub struct Fairness {
    /// Number of cycles.
    pub cycles: usize,
    /// What was tested.
    pub rows: Vec<Row>,
    /// The share of each agent: its name, its turns, and the turns that it is entitled to.
    pub shares: Vec<(String, u64, f64)>,
}

/// A test of fairness.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// What is measured.
    pub name: String,
    /// The agent farthest from its entitlement.
    pub agent: String,
    /// The value, and the expected value.
    pub value: Option<f64>,
    /// See `value`.
    pub entitled: Option<f64>,
    /// The probability that a fair rule gives a deviation this large, and the line below which the row fails.
    pub p: Option<f64>,
    /// See `p`.
    pub line: Option<f64>,
    /// Whether it passes; `None` without a line or without data.
    pub pass: Option<bool>,
}

/// An action of a moderator.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// What.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// A post.
#[derive(Clone, Debug, Default)]
pub struct Post {
    /// Its number.
    pub id: i64,
    /// Its author.
    pub author: String,
    /// When it was written.
    pub at: Timestamp,
    /// Its text; empty if it was deleted.
    pub body: String,
    /// The number of the post it quotes, with its author.
    pub quotes: Option<(i64, String)>,
    /// A description of later changes to it: `deleted`, `hidden by king: spam`.
    pub fate: String,
}
