//! Orders decided by motions: which may be proposed at all, and which need a person whatever `forum.unconfirmed` says.
//! Input: an order and what the store knows about its target. Output: a refusal, or why a person must confirm.

use super::{HIDDEN, Order, Target, a};
use crate::CLERK;
use crate::Refused;
use crate::account::{Account, Kind, Role, Status};
use crate::rules;
use kd_core::names::KING;

/// The reason for all motions about members.
pub const WHY_RIGHTS: &str = "it is about rights";
/// The reason for all motions about rules.
const WHY_RULES: &str = "it is about a rule of the forum";

/// The store's data about the target of an order.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The member concerned, or the author of the post or the thread.
    pub name: String,
    /// That member's account.
    pub account: Option<Account>,
    /// The motion that the thread, or the thread opened by the post, discusses.
    pub motion: Option<i64>,
    /// Whether a member, not a motion, set the target's present state.
    pub set_by_member: bool,
    /// Members that lost their vote by motions and have not got it back.
    pub excluded: usize,
    /// Members that would be in the electorate of a motion opened now.
    pub electors: usize,
}

impl Subject {
    /// Returns whether it is the user, another person, an owner, or the forum itself.
    fn is_above_motions(&self) -> bool {
        let account = self.account.as_ref();
        self.name == KING
            || self.name == CLERK
            || account.is_some_and(|a| a.kind == Kind::Person || a.role == Role::Owner)
    }
}

impl Order {
    /// Checks whether members may propose this order; confirmation by a person cannot lift these refusals.
    ///
    /// # Errors
    /// The reason why they may not.
    pub fn check_motion(&self, of: &Subject) -> Result<(), Refused> {
        let name = &of.name;
        match &self.target {
            Target::Post(_) | Target::Thread(_) => match of.motion {
                Some(motion) => Err(Refused::forbidden(format!(
                    "{} belongs to motion {motion}: only an owner or a moderator may do this",
                    self.target.called()
                ))),
                None if name == CLERK => Err(Refused::forbidden("the forum's own posts stay")),
                None => Ok(()),
            },
            Target::Votes(_) => Err(Refused::forbidden("motions give and take no votes")),
            Target::Charter(_) => Err(Refused::forbidden("the charter of a forum is for owners")),
            Target::Rule(key) => rules::find(key)?.check_motion(),
            // Motions of kind `set` are checked by the settings themselves.
            Target::Setting(_) => Ok(()),
            Target::Status(_) | Target::Role(_) if of.is_above_motions() => {
                Err(Refused::forbidden(format!(
                    "`{name}` is {}: motions are about agents and guests",
                    match &of.account {
                        Some(account) if account.role == Role::Owner => a(Role::Owner),
                        _ => "a person".to_owned(),
                    }
                )))
            }
            Target::Role(_) if self.state == Role::Owner.word() => {
                Err(Refused::forbidden("only an owner makes owners"))
            }
            Target::Status(_) | Target::Role(_) => self.check_electorate(of),
        }
    }

    /// Checks that motions together never exclude half of the voters or more, because the rest could then decide
    /// anything.
    fn check_electorate(&self, of: &Subject) -> Result<(), Refused> {
        let takes_vote = of.account.as_ref().is_some_and(|account| {
            let mut then = account.clone();
            match &self.target {
                Target::Status(_) => {
                    then.status = Status::parse(&self.state).unwrap_or(Status::Banned);
                }
                Target::Role(_) => then.role = Role::parse(&self.state).unwrap_or(Role::Reader),
                _ => {}
            }
            account.is_elector() && !then.is_elector()
        });
        let all = of.excluded + of.electors;
        match takes_vote && (of.excluded + 1) * 2 >= all {
            true => Err(Refused::forbidden(format!(
                "motions took the votes of {} of {all} members, and together they exclude fewer than half: an owner may do this",
                of.excluded
            ))),
            false => Ok(()),
        }
    }

    /// Returns why a person must confirm this order even if motions of its kind need none.
    pub fn why_person(&self, of: &Subject) -> Option<String> {
        let what = self.target.called();
        match &self.target {
            Target::Status(_) | Target::Role(_) | Target::Votes(_) | Target::Charter(_) => {
                Some(WHY_RIGHTS.into())
            }
            Target::Rule(_) | Target::Setting(_) => Some(WHY_RULES.into()),
            Target::Post(_) | Target::Thread(_) => {
                let author = of.account.as_ref();
                if of.set_by_member {
                    let was = if self.state == HIDDEN {
                        "shown"
                    } else {
                        "changed"
                    };
                    return Some(format!("a person or a moderator had {was} {what}"));
                }
                match author.map(|account| (account.kind, account.role)) {
                    Some((Kind::Agent | Kind::Guest, Role::Agent | Role::Guest | Role::Reader)) => {
                        None
                    }
                    _ => Some(format!("{what} is by `{}`", of.name)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Proof;
    use jiff::Timestamp;

    fn account(name: &str, kind: Kind, role: Role) -> Account {
        let new = Account::new("main", name, kind, Proof::Token, Timestamp::UNIX_EPOCH);
        Account {
            role,
            votes: role.has(super::super::Right::Vote),
            ..new
        }
    }

    fn about(kind: Kind, role: Role) -> Subject {
        Subject {
            name: "eve".into(),
            account: Some(account("eve", kind, role)),
            electors: 9,
            ..Subject::default()
        }
    }

    #[test]
    fn no_motion_touches_a_person_or_an_owner_or_makes_one() {
        for kind in Kind::ALL {
            for role in Role::ALL {
                let of = about(*kind, *role);
                let above = *kind == Kind::Person || *role == Role::Owner;
                for order in [
                    Order::ban("eve", true),
                    Order::ban("eve", false),
                    Order::role("eve", Role::Reader),
                    Order::role("eve", Role::Moderator),
                ] {
                    let may = order.check_motion(&of);
                    assert_eq!(may.is_err(), above, "{kind:?} {role:?} {order:?}: {may:?}");
                    assert!(order.why_person(&of).is_some(), "{order:?}");
                }
                for never in [
                    Order::role("eve", Role::Owner),
                    Order::votes("eve", true),
                    Order::votes("eve", false),
                    Order::rule("posters", "owners").unwrap(),
                    Order::charter("main", "Obey.").unwrap(),
                ] {
                    assert!(never.check_motion(&of).is_err(), "{never:?}");
                }
            }
        }
        for name in [KING, CLERK] {
            let of = Subject {
                name: name.into(),
                electors: 9,
                ..Subject::default()
            };
            assert!(Order::ban(name, true).check_motion(&of).is_err(), "{name}");
        }
    }

    #[test]
    fn motions_set_rules_about_threads_alone_and_a_person_confirms_them() {
        for rule in rules::RULES {
            let value = match rule.takes {
                rules::Takes::Who => "owners",
                rules::Takes::OneOf(words) => words[1],
                rules::Takes::Whole(..) => "7",
            };
            let order = Order::rule(rule.key, value).unwrap();
            let of = Subject::default();
            let threads = ["post_chars_max", "thread_days", "archive_days"];
            let may = order.check_motion(&of);
            assert_eq!(may.is_ok(), threads.contains(&rule.key), "{}", rule.key);
            assert_eq!(order.why_person(&of).as_deref(), Some(WHY_RULES));
        }
    }

    #[test]
    fn motions_exclude_fewer_than_half_of_the_voters() {
        for (excluded, electors, may) in [
            (0, 3, true),
            (0, 2, false),
            (0, 1, false),
            (1, 4, true),
            (1, 3, false),
            (2, 3, false),
            (4, 6, false),
            (3, 6, true),
        ] {
            let of = Subject {
                excluded,
                electors,
                ..about(Kind::Agent, Role::Agent)
            };
            for order in [Order::ban("eve", true), Order::role("eve", Role::Guest)] {
                let check = order.check_motion(&of);
                assert_eq!(check.is_ok(), may, "{excluded} {electors} {order:?}");
            }
            // An order that takes no vote does not shrink the electorate.
            let guest = Subject {
                excluded,
                electors,
                ..about(Kind::Agent, Role::Guest)
            };
            assert!(Order::ban("eve", true).check_motion(&guest).is_ok());
            let moderator = Order::role("eve", Role::Moderator);
            assert!(moderator.check_motion(&of).is_ok());
        }
    }

    #[test]
    fn posts_of_agents_alone_are_hidden_without_a_person() {
        for order in [
            Order::hide(1, true),
            Order::hide(1, false),
            Order::close(1, true),
            Order::close(1, false),
        ] {
            for kind in Kind::ALL {
                for role in Role::ALL {
                    let of = about(*kind, *role);
                    let alone =
                        *kind != Kind::Person && !matches!(role, Role::Owner | Role::Moderator);
                    assert_eq!(order.why_person(&of).is_none(), alone, "{of:?} {order:?}");
                    assert!(order.check_motion(&of).is_ok());
                    let set_by_member = Subject {
                        set_by_member: true,
                        ..of.clone()
                    };
                    assert!(order.why_person(&set_by_member).is_some());
                    let governs = Subject {
                        motion: Some(3),
                        ..of
                    };
                    assert!(order.check_motion(&governs).is_err(), "{order:?}");
                }
            }
            let unknown = Subject::default();
            assert!(order.why_person(&unknown).is_some());
        }
    }
}
