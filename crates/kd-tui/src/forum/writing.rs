//! The input at the bottom of the forum screen: its purpose, whether it is a single line, and the resulting action.

use super::Deed;
use kd_forum::account::Role;
use kd_forum::order::Order;
use kd_forum::proposal::Proposal;
use kd_forum::words::Choice;
use kd_forum::words::MOTION_KINDS;

/// The kind of text that the user is writing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields name the subject")]
pub enum Writing {
    /// Words to search for.
    Search,
    /// The title of a new thread.
    Title,
    /// The first post of a new thread.
    Body { title: String },
    /// A reply.
    Reply { thread: i64, quote: Option<i64> },
    /// New text for one of the user's posts.
    Edit { post: i64 },
    /// The proposal of a motion.
    Motion,
    /// The reason for a motion.
    Reason { what: String },
    /// A vote and its reason.
    Vote { motion: i64 },
    /// A remark before a motion comes into force.
    Confirm { motion: i64 },
    /// The reason for a veto.
    Veto { motion: i64 },
    /// The reason for an order; `called` names the order.
    Order { order: Order, called: String },
    /// A role or voting right, and the reason.
    Role { name: String },
    /// The number of a log entry, and the reason to undo it.
    Undo,
}

/// The effect of Enter on the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Ask for further input.
    Write(Writing),
    /// Perform this action.
    Do(Deed),
    /// Search for a text.
    Search(String),
    /// The input is invalid, and why.
    Wrong(String),
}

impl Writing {
    /// Returns the label above the input.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Search => "search for all of these words".into(),
            Self::Title => "a new thread: its title".into(),
            Self::Body { title } => format!("a new thread, \"{title}\": its first post"),
            Self::Reply {
                thread,
                quote: None,
            } => format!("a reply in thread {thread}"),
            Self::Reply {
                thread,
                quote: Some(quote),
            } => format!("a reply in thread {thread}, with a quote of #{quote}"),
            Self::Edit { post } => format!("the new text of your post #{post}"),
            Self::Motion => format!("your motion: {}", MOTION_KINDS.join(", ")),
            Self::Reason { what } => format!("the reason for \"{what}\""),
            Self::Vote { motion } => {
                format!("your vote on motion {motion}: yes, no or abstain, then why if you like")
            }
            Self::Confirm { motion } => format!("confirm motion {motion}? yes"),
            Self::Veto { motion } => format!("veto motion {motion}: why?"),
            Self::Order { called, .. } => format!("{called}: why?"),
            Self::Role { name } => format!("{name}: {ROLES}, then why"),
            Self::Undo => "undo: `last`, or the number of an entry, then why if you like".into(),
        }
    }

    /// Returns whether it is a single line: line breaks are removed from pasted text then.
    pub(super) fn is_line(&self) -> bool {
        !matches!(
            self,
            Self::Body { .. } | Self::Reply { .. } | Self::Edit { .. } | Self::Reason { .. }
        )
    }

    /// Returns the effect of an input.
    pub(super) fn next(&self, text: &str) -> Next {
        let text = text.trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim().to_owned();
        if text.is_empty() {
            return Next::Wrong("the input is empty; Esc cancels".into());
        }
        let text = text.to_owned();
        match self {
            Self::Search => Next::Search(text),
            Self::Title => Next::Write(Self::Body { title: text }),
            Self::Body { title } => Next::Do(Deed::Open {
                title: title.clone(),
                body: text,
            }),
            Self::Reply { thread, quote } => Next::Do(Deed::Reply {
                thread: *thread,
                quote: *quote,
                body: text,
            }),
            Self::Edit { post } => Next::Do(Deed::Edit {
                post: *post,
                body: text,
            }),
            Self::Motion => match Proposal::parse(&text) {
                Ok(_) => Next::Write(Self::Reason { what: text }),
                Err(why) => Next::Wrong(why.to_string()),
            },
            Self::Reason { what } => Next::Do(Deed::Propose {
                what: what.clone(),
                reason: text,
            }),
            Self::Vote { motion } => match choice(word) {
                Some(choice) => Next::Do(Deed::Vote {
                    motion: *motion,
                    choice,
                    reason: rest,
                }),
                None => Next::Wrong("a vote begins with yes, no or abstain".into()),
            },
            Self::Confirm { motion } if choice(&text) == Some(Choice::Yes) => {
                Next::Do(Deed::Confirm { motion: *motion })
            }
            Self::Confirm { .. } => Next::Wrong("write yes, or Esc".into()),
            Self::Veto { motion } => Next::Do(Deed::Veto {
                motion: *motion,
                reason: text,
            }),
            Self::Order { order, .. } => Next::Do(Deed::Order {
                order: order.clone(),
                reason: text,
            }),
            Self::Role { name } => match role(name, word) {
                Some(order) if !rest.is_empty() => Next::Do(Deed::Order {
                    order,
                    reason: rest,
                }),
                Some(_) => Next::Wrong("a reason is missing: it is recorded with the entry".into()),
                None => Next::Wrong(format!("roles: {ROLES}")),
            },
            Self::Undo => match (word, word.parse()) {
                (_, Ok(entry)) => Next::Do(Deed::Undo {
                    entry: Some(entry),
                    reason: rest,
                }),
                ("last", _) => Next::Do(Deed::Undo {
                    entry: None,
                    reason: rest,
                }),
                _ => Next::Wrong("write `last`, or the number of an entry".into()),
            },
        }
    }
}

/// Roles and voting rights that can be assigned.
const ROLES: &str = "owner, moderator, agent, guest, reader, voter or nonvoter";

/// Returns the order that assigns a role or voting right.
fn role(name: &str, word: &str) -> Option<Order> {
    match word {
        "voter" => Some(Order::votes(name, true)),
        "nonvoter" => Some(Order::votes(name, false)),
        role => Some(Order::role(name, Role::parse(role)?)),
    }
}

/// Parses a vote from its word or the word's first letter.
fn choice(word: &str) -> Option<Choice> {
    let word = word.trim_end_matches([',', '.', ':', ';']).to_lowercase();
    let mut fits = Choice::WORDS
        .iter()
        .filter(|known| !word.is_empty() && known.starts_with(&word));
    Choice::parse(fits.next()?)
}
