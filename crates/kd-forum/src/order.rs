//! Moderation: hides posts, closes threads, bans accounts, gives roles. Input: who wants to change what. Output:
//! whether the role may, with the reason for a refusal. The store carries orders out and records each as an [`Entry`]
//! that can be undone.

mod motion;

pub use motion::{Subject, WHY_RIGHTS};

use super::account::{RIGHTS, Right, Role, Status};
use super::company::CHARTER_MAX;
use super::rules;
use super::tools::REASON_MAX;
use crate::Refused;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The target of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", content = "of", rename_all = "snake_case")]
pub enum Target {
    /// Whether a post is `shown` or `hidden`.
    Post(i64),
    /// Whether a thread is `open` or `closed`.
    Thread(i64),
    /// The status of an account: a word of [`Status`].
    Status(String),
    /// The role of an account: a word of [`Role`].
    Role(String),
    /// Whether an account may vote: `yes` or `no`.
    Votes(String),
    /// The value of a rule of the forum: a row of [`super::rules::RULES`].
    Rule(String),
    /// The text of this forum's charter; empty if there is none.
    Charter(String),
    /// The value that a motion gave to a setting; empty if none did, and the configuration counts.
    Setting(String),
}

impl Target {
    /// Names the target.
    pub fn called(&self) -> String {
        match self {
            Self::Post(id) => format!("post {id}"),
            Self::Thread(id) => format!("thread {id}"),
            Self::Status(name)
            | Self::Role(name)
            | Self::Votes(name)
            | Self::Rule(name)
            | Self::Setting(name) => format!("`{name}`"),
            Self::Charter(_) => "the charter".to_owned(),
        }
    }
}

/// The words for the states of posts, threads and votes.
pub const SHOWN: &str = "shown";
#[allow(missing_docs)]
pub const HIDDEN: &str = "hidden";
#[allow(missing_docs)]
pub const OPEN: &str = "open";
#[allow(missing_docs)]
pub const CLOSED: &str = "closed";

/// An order: a target and its new state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The target of the order.
    pub target: Target,
    /// Its new state.
    pub state: String,
}

impl Order {
    fn new(target: Target, state: &str) -> Self {
        Self {
            target,
            state: state.to_owned(),
        }
    }

    /// Hides a post, or shows it again. The opening post represents its thread.
    pub fn hide(post: i64, hidden: bool) -> Self {
        Self::new(Target::Post(post), if hidden { HIDDEN } else { SHOWN })
    }

    /// Closes or reopens a thread.
    pub fn close(thread: i64, closed: bool) -> Self {
        Self::new(Target::Thread(thread), if closed { CLOSED } else { OPEN })
    }

    /// Bans or unbans an account.
    pub fn ban(name: &str, banned: bool) -> Self {
        let status = if banned {
            Status::Banned
        } else {
            Status::Active
        };
        Self::new(Target::Status(name.to_owned()), status.word())
    }

    /// Gives a role.
    pub fn role(name: &str, role: Role) -> Self {
        Self::new(Target::Role(name.to_owned()), role.word())
    }

    /// Gives or takes the right to vote.
    pub fn votes(name: &str, votes: bool) -> Self {
        Self::new(
            Target::Votes(name.to_owned()),
            if votes { "yes" } else { "no" },
        )
    }

    /// Sets a rule of the forum.
    ///
    /// # Errors
    /// If there is no such rule, or it does not take this value.
    pub fn rule(key: &str, value: &str) -> Result<Self, Refused> {
        let rule = rules::find(key)?;
        let value = rule.read(value)?;
        Ok(Self::new(Target::Rule(rule.key.to_owned()), &value))
    }

    /// Sets the charter of a forum; an empty text removes it.
    ///
    /// # Errors
    /// If it is too long.
    pub fn charter(forum: &str, text: &str) -> Result<Self, Refused> {
        let text = kd_core::clean::clean_text(text.trim());
        let chars = text.chars().count();
        match chars > CHARTER_MAX {
            true => Err(Refused::invalid(format!(
                "the charter has {chars} of {CHARTER_MAX} characters"
            ))),
            false => Ok(Self::new(Target::Charter(forum.to_owned()), &text)),
        }
    }

    /// Describes its exact effect.
    pub fn words(&self) -> String {
        let hidden = self.state == HIDDEN;
        let banned = self.state == Status::Banned.word();
        match &self.target {
            Target::Post(id) if hidden => format!("hide post {id}"),
            Target::Post(id) => format!("show post {id} again"),
            Target::Thread(id) if self.state == CLOSED => format!("close thread {id}"),
            Target::Thread(id) => format!("reopen thread {id}"),
            Target::Status(name) if banned => format!("ban {name}"),
            Target::Status(name) => format!("unban {name}"),
            Target::Role(name) => format!("make {name} {}", self.state),
            Target::Votes(name) if self.state == "yes" => format!("give {name} a vote"),
            Target::Votes(name) => format!("take the vote of {name}"),
            Target::Rule(key) => format!("set {key} to {}", self.state),
            Target::Charter(_) => "change the charter".to_owned(),
            Target::Setting(key) if self.state.is_empty() => {
                format!("set {key} back to the configured value")
            }
            Target::Setting(key) => format!("set {key} to {}", self.state),
        }
    }

    /// Returns the right that it needs.
    pub fn needs(&self) -> Right {
        match self.target {
            Target::Post(_) | Target::Thread(_) => Right::Hide,
            Target::Status(_) => Right::Ban,
            Target::Role(_) | Target::Votes(_) => Right::Role,
            Target::Rule(_) | Target::Charter(_) => Right::Rule,
            Target::Setting(_) => Right::Decide,
        }
    }

    /// Checks whether a role may give this order; `of` is the role of the account concerned.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn check(&self, by: &str, role: Role, of: Option<Role>) -> Result<(), Refused> {
        let right = self.needs();
        if !role.has(right) {
            return Err(Refused::forbidden(format!(
                "`{by}` is {} here and may not {}",
                a(role),
                words(right)
            )));
        }
        match (&self.target, of) {
            (Target::Status(name) | Target::Role(name) | Target::Votes(name), Some(of))
                if !role.outranks(of) && *name != *by =>
            {
                // Owners are equals: one of them may give an owner another role.
                match role {
                    Role::Owner => Ok(()),
                    _ => Err(Refused::forbidden(format!(
                        "`{name}` is {} and `{by}` is {}: only a higher role may do this",
                        a(of),
                        a(role)
                    ))),
                }
            }
            (Target::Status(name), _) if name == by && self.state == Status::Banned.word() => {
                Err(Refused::forbidden("you cannot ban yourself"))
            }
            _ => Ok(()),
        }
    }
}

/// Validates a reason: one line, not empty.
///
/// # Errors
/// If it is empty or too long.
pub fn reason(text: &str) -> Result<String, Refused> {
    let line = kd_core::clean::clean_text(text);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() {
        0 => Err(Refused::invalid("a reason is missing: it is recorded")),
        n if n > REASON_MAX => Err(Refused::invalid(format!(
            "the reason is longer than {REASON_MAX} characters"
        ))),
        _ => Ok(line),
    }
}

fn words(right: Right) -> &'static str {
    let row = RIGHTS.iter().find(|(known, _, _)| *known == right);
    row.map_or("do this", |(_, words, _)| words)
}

fn a(role: Role) -> String {
    match role {
        Role::Owner | Role::Agent => format!("an {}", role.word()),
        _ => format!("a {}", role.word()),
    }
}

/// An executed order, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub id: i64,
    /// The forum.
    pub forum: String,
    /// The time when it was executed.
    pub at: Timestamp,
    /// The account that gave the order; `forum` if a motion decided it.
    pub by: String,
    /// The changed target.
    #[serde(flatten)]
    pub target: Target,
    /// The previous state.
    pub before: String,
    /// The new state.
    pub after: String,
    /// The reason.
    pub reason: String,
    /// The motion that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub motion_id: Option<i64>,
    /// The entry that it undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<i64>,
}

impl Entry {
    /// Describes the action that was taken.
    pub fn what(&self) -> String {
        let what = match &self.target {
            Target::Post(id) => match self.after.as_str() {
                HIDDEN => format!("hid post {id}"),
                _ => format!("showed post {id} again"),
            },
            Target::Thread(id) => match self.after.as_str() {
                CLOSED => format!("closed thread {id}"),
                _ => format!("reopened thread {id}"),
            },
            Target::Status(name) => match Status::parse(&self.after) {
                Some(Status::Banned) => format!("banned {name}"),
                _ => format!("unbanned {name}"),
            },
            Target::Role(name) => format!("made {name} {} (was {})", self.after, self.before),
            Target::Votes(name) => match self.after.as_str() {
                "yes" => format!("gave {name} a vote"),
                _ => format!("took the vote of {name}"),
            },
            Target::Rule(key) => format!("set {key} to {} (was {})", self.after, self.before),
            Target::Setting(key) => match (self.before.as_str(), self.after.as_str()) {
                (before, "") => format!("set {key} back to the configured value (was {before})"),
                ("", after) => format!("set {key} to {after} (was as configured)"),
                (before, after) => format!("set {key} to {after} (was {before})"),
            },
            // The entry holds the text; it is too long for a log line.
            Target::Charter(_) => match self.after.is_empty() {
                true => "removed the charter".to_owned(),
                false => "changed the charter".to_owned(),
            },
        };
        match self.undoes {
            Some(id) => format!("{what} (undid entry {id})"),
            None => what,
        }
    }

    /// Returns the order that reverts it.
    pub fn back(&self) -> Order {
        Order::new(self.target.clone(), &self.before)
    }

    /// Formats the whole entry on one line.
    pub fn line(&self) -> String {
        let motion = match self.motion_id {
            Some(id) => format!(", by motion {id}"),
            None => String::new(),
        };
        format!(
            "entry {}: {} {}{motion}: {}",
            self.id,
            self.by,
            self.what(),
            self.reason
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Vec<Order> {
        vec![
            Order::hide(1, true),
            Order::hide(1, false),
            Order::close(1, true),
            Order::close(1, false),
            Order::ban("eve", true),
            Order::ban("eve", false),
            Order::role("eve", Role::Reader),
            Order::votes("eve", true),
            Order::rule("posters", "agents").unwrap(),
            Order::charter("main", "About bees.").unwrap(),
            Order::new(Target::Setting("skip_probability".into()), "0.1"),
            Order::new(Target::Setting("skip_probability".into()), ""),
        ]
    }

    #[test]
    fn every_role_gives_the_orders_of_its_rows_and_only_to_lower_roles() {
        for order in orders() {
            for by in Role::ALL {
                for of in Role::ALL {
                    let is_member = matches!(
                        order.target,
                        Target::Status(_) | Target::Role(_) | Target::Votes(_)
                    );
                    let allowed = by.has(order.needs())
                        && (!is_member || *by == Role::Owner || by.outranks(*of));
                    let check = order.check("mia", *by, Some(*of));
                    assert_eq!(check.is_ok(), allowed, "{by:?} {of:?} {order:?}: {check:?}");
                }
            }
        }
        assert!(
            Order::ban("mia", true)
                .check("mia", Role::Owner, Some(Role::Owner))
                .is_err()
        );
        assert!(
            Order::role("mia", Role::Owner)
                .check("mia", Role::Moderator, Some(Role::Moderator))
                .is_err()
        );
    }

    #[test]
    fn a_lower_role_has_no_right_that_a_higher_one_lacks() {
        for pair in Role::ALL.windows(2) {
            assert!(pair[0].outranks(pair[1]));
            for (right, _, _) in RIGHTS {
                assert!(!pair[1].has(*right) || pair[0].has(*right), "{right:?}");
            }
        }
    }

    #[test]
    fn every_order_is_told_in_words_and_can_be_taken_back() {
        for order in orders() {
            let entry = Entry {
                id: 4,
                forum: "main".into(),
                at: Timestamp::UNIX_EPOCH,
                by: "king".into(),
                target: order.target.clone(),
                before: "before".into(),
                after: order.state.clone(),
                reason: "why".into(),
                motion_id: None,
                undoes: None,
            };
            assert!(entry.line().starts_with("entry 4: king ") && entry.line().ends_with(": why"));
            assert_eq!(
                entry.back(),
                Order {
                    target: order.target,
                    state: "before".into()
                }
            );
            let text = serde_json::to_string(&entry).unwrap();
            assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
        }
        assert_eq!(reason(" a\n\u{1b}[2Jb ").unwrap(), "a b");
        assert!(reason(" \n").is_err() && reason(&"x".repeat(1001)).is_err());
    }
}
