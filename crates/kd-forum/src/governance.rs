//! Changes of a forum's rules by its members: motions, votes, and confirmation by a person.
//!
//! Input: a motion, its votes, the number of agents. Output: a [`Decision`], counted by the rules of [`kd_vote`].
//! A motion that passes waits for a person, unless a person has allowed its kind in advance; a person can veto any
//! motion before it takes effect. A motion in force is undone by another motion.

use super::account::{Kind, Role};
use super::order::Order;
use super::rules;
use super::words::{Choice, MotionKind};
use crate::Refused;
use jiff::Timestamp;
use kd_core::config::forum::{self, BadSetting, Settings};
use kd_vote::{Ballot, Mark, NANOS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum motions that one account may open per cycle.
pub const MOTIONS_PER_CYCLE: i64 = 1;
/// Maximum motions of one account that may be open at once.
pub const MOTIONS_OPEN: usize = 2;
/// Minimum turnout among registered agents for anything that takes effect without a person, whatever the quorum.
const UNCONFIRMED_QUORUM: f64 = 0.5;

/// The accounts that may vote on a motion: those registered when it was opened.
pub type Electorate = BTreeMap<String, Kind>;

/// The state of a motion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MotionState {
    /// Open for votes.
    Open,
    /// Passed; waits for a person.
    Passed,
    /// Rejected.
    Rejected,
    /// Too few votes.
    NoQuorum,
    /// Vetoed by a person.
    Vetoed,
    /// In force.
    InForce,
    /// Was in force until another motion undid or replaced it.
    Undone,
}

impl MotionState {
    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Passed => "passed",
            Self::Rejected => "rejected",
            Self::NoQuorum => "no_quorum",
            Self::Vetoed => "vetoed",
            Self::InForce => "in_force",
            Self::Undone => "undone",
        }
    }

    /// Parses its word.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Open,
            Self::Passed,
            Self::Rejected,
            Self::NoQuorum,
            Self::Vetoed,
            Self::InForce,
            Self::Undone,
        ]
        .into_iter()
        .find(|state| state.word() == word)
    }
}

/// A motion as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Motion {
    /// Its number.
    pub id: i64,
    /// The forum.
    pub forum: String,
    /// The proposal.
    pub kind: MotionKind,
    /// The parameter, for kinds that change one; the member, for kind `role`; the rule, for kind `rule`.
    pub key: Option<String>,
    /// Its new value, the new role, the member, or the number of the post, thread or motion.
    pub value: Option<String>,
    /// The previous value, once the motion is in force.
    pub before: Option<String>,
    /// The title, on one line.
    pub title: String,
    /// The reason.
    pub reason: String,
    /// The proposer.
    pub proposer: String,
    /// The time when it was opened.
    pub created_at: Timestamp,
    /// The cycle after which the vote closes.
    pub closes_after: i64,
    /// Its state.
    pub state: MotionState,
    /// The decision, in words; empty while the motion is open.
    pub outcome: String,
    /// The thread in which it is discussed.
    pub thread_id: Option<i64>,
}

/// A vote as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CastVote {
    /// The motion.
    pub motion_id: i64,
    /// The voter.
    pub agent: String,
    /// The vote.
    pub choice: Choice,
    /// The reason.
    pub reason: String,
    /// The time when it was cast.
    pub at: Timestamp,
}

/// The change that a motion makes when it takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    Nothing,
    /// Sets a parameter to a value.
    Set(String, String),
    /// Undoes the motion with this number.
    Undo(i64),
    /// Carries out an order.
    Order(Order),
}

impl Change {
    /// Returns the change described by a motion's fields; `Nothing` if they describe none.
    pub fn of(kind: MotionKind, key: Option<&str>, value: Option<&str>) -> Self {
        let number = || value.and_then(|v| v.trim().parse::<i64>().ok());
        let order = match kind {
            MotionKind::Keep | MotionKind::Text => None,
            MotionKind::Set | MotionKind::Scheduler => {
                return match key.zip(value) {
                    Some((key, value)) => Self::Set(key.to_owned(), value.to_owned()),
                    None => Self::Nothing,
                };
            }
            MotionKind::Undo => return number().map_or(Self::Nothing, Self::Undo),
            MotionKind::Hide => number().map(|post| Order::hide(post, true)),
            MotionKind::Unhide => number().map(|post| Order::hide(post, false)),
            MotionKind::Close => number().map(|thread| Order::close(thread, true)),
            MotionKind::Reopen => number().map(|thread| Order::close(thread, false)),
            MotionKind::Ban => value.map(|name| Order::ban(name, true)),
            MotionKind::Unban => value.map(|name| Order::ban(name, false)),
            MotionKind::Role => key
                .zip(value.and_then(Role::parse))
                .map(|(name, role)| Order::role(name, role)),
            MotionKind::Rule => key
                .zip(value)
                .and_then(|(key, value)| Order::rule(key, value).ok()),
        };
        order.map_or(Self::Nothing, Self::Order)
    }

    /// Describes the change exactly; empty for `Nothing`.
    pub fn words(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Set(key, value) => format!("set {key} = {value}"),
            Self::Undo(id) => format!("undo motion {id}"),
            Self::Order(order) => order.words(),
        }
    }
}

impl Motion {
    /// Returns the change that it makes when it takes effect.
    pub fn change(&self) -> Change {
        Change::of(self.kind, self.key.as_deref(), self.value.as_deref())
    }
}

/// The fields of a motion that passed [`check`]; fields unused by its kind are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The parameter, or the member.
    pub key: Option<String>,
    /// The value.
    pub value: Option<String>,
}

/// Checks a motion proposed by an agent. Kind `scheduler` concerns the parameter of that name. Agents cannot propose to
/// change how motions are decided. The store checks whether the posts and members of a motion exist.
///
/// # Errors
/// Says which field is missing or wrong.
pub fn check(
    settings: &Settings,
    kind: MotionKind,
    key: Option<&str>,
    value: Option<&str>,
) -> Result<Fields, BadSetting> {
    let bad = |why: Refused| BadSetting(why.to_string());
    let needs = |what: &str| BadSetting(format!("a motion of kind `{}` needs {what}", kind.word()));
    let number = |what: &str| match value.and_then(|v| v.trim().parse::<i64>().ok()) {
        Some(id) if id > 0 => Ok(Fields {
            key: None,
            value: Some(id.to_string()),
        }),
        _ => Err(needs(&format!("`value`: the number of the {what}"))),
    };
    let name = |field: Option<&str>, what: &str| match field.map(line) {
        Some(name) if !name.is_empty() => Ok(Some(name)),
        _ => Err(needs(what)),
    };
    match kind {
        MotionKind::Keep | MotionKind::Text => Ok(Fields::default()),
        MotionKind::Undo => number("motion to undo"),
        MotionKind::Hide | MotionKind::Unhide => number("post"),
        MotionKind::Close | MotionKind::Reopen => number("thread"),
        MotionKind::Ban | MotionKind::Unban => Ok(Fields {
            key: None,
            value: name(value, "`value`: the member")?,
        }),
        MotionKind::Role => Ok(Fields {
            key: name(key, "`key`: the member")?,
            value: match value.and_then(|v| Role::parse(v.trim())) {
                Some(Role::Owner) => {
                    return Err(BadSetting("only an owner makes owners".into()));
                }
                Some(role) => Some(role.word().to_owned()),
                None => {
                    return Err(needs(
                        "`value`: the role (moderator, agent, guest or reader)",
                    ));
                }
            },
        }),
        MotionKind::Rule => {
            let key = key.ok_or_else(|| needs("`key`: the rule"))?;
            let value = value.ok_or_else(|| needs("`value`: the new value, or `none`"))?;
            let rule = rules::find(key.trim()).map_err(bad)?;
            rule.check_motion().map_err(bad)?;
            Ok(Fields {
                key: Some(rule.key.to_owned()),
                value: Some(rule.read(value).map_err(bad)?),
            })
        }
        MotionKind::Set | MotionKind::Scheduler => {
            let key = match kind {
                MotionKind::Scheduler => "scheduler",
                _ => key.ok_or_else(|| needs("`key`: the parameter"))?,
            };
            let value = value.ok_or_else(|| needs("`value`: the new value"))?;
            let mut next = settings.clone();
            next.set(key, value)?;
            match forum::find(key) {
                Some(parameter) if parameter.votable => Ok(Fields {
                    key: Some(parameter.key.to_owned()),
                    value: Some(value.trim().to_owned()),
                }),
                _ => Err(BadSetting(format!(
                    "`{key}` is for people alone: it says how motions are decided"
                ))),
            }
        }
    }
}

fn line(text: &str) -> String {
    let clean = kd_core::clean::clean_text(text);
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns why a change of a parameter needs a person although its kind of motion does not.
pub fn why_person(settings: &Settings, key: &str, value: &str) -> Option<String> {
    forum::needs_person(settings, key, value)
        .then(|| format!("`{key}` = `{value}` could lift a limit"))
}

/// The result of a vote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The new state of the motion.
    pub state: MotionState,
    /// The decision, in words.
    pub outcome: String,
}

/// Counts the votes on a motion whose voting has ended. Votes by names outside the electorate do not count.
/// `why_person` says why a person must confirm it regardless of its kind; `settings` are the current settings.
pub fn decide(
    settings: &Settings,
    motion: &Motion,
    votes: &[CastVote],
    electorate: &Electorate,
    why_person: Option<&str>,
) -> Decision {
    let votes: Vec<&CastVote> = votes
        .iter()
        .filter(|vote| electorate.contains_key(&vote.agent))
        .collect();
    let count = |choice| votes.iter().filter(|vote| vote.choice == choice).count();
    let (yes, no, abstain) = (
        count(Choice::Yes),
        count(Choice::No),
        count(Choice::Abstain),
    );
    let of = electorate.len();
    let sums = format!("{yes} yes, {no} no, {abstain} abstained, of {of}");
    // At least one vote, even with a quorum of 0: nothing passes without votes.
    let needed = quorum(settings.quorum, of);
    if votes.len() < needed {
        let outcome = format!("{sums}; {needed} had to vote");
        return Decision {
            state: MotionState::NoQuorum,
            outcome,
        };
    }
    let rule = kd_vote::find(&settings.rule).unwrap_or(&kd_vote::RULES[0]);
    let ballots: Vec<Ballot> = votes
        .iter()
        .map(|vote| {
            let mark = match vote.choice {
                Choice::Yes => mark_for(rule.reads, 0),
                Choice::No => mark_for(rule.reads, 1),
                Choice::Abstain => Mark::Unreadable("abstains".into()),
            };
            Ballot::new(mark).by(vote.agent.clone())
        })
        .collect();
    let rules = kd_vote::Rules {
        question: format!("motion {}", motion.id),
        ..kd_vote::Rules::of(["yes", "no"])
    };
    let tally = kd_vote::tally(rule, &ballots, &rules);
    // A tie changes nothing, even by rules that break ties by the order of ballots.
    let passed = yes > no && tally.winners == [0];
    let word = if passed { "passed" } else { "not passed" };
    let mut outcome = format!("{word} by {}: {sums}", tally.rule);
    let state = match passed {
        true if settings.unconfirmed(motion.kind.word()) => {
            let agents = |name: &str| electorate.get(name) == Some(&Kind::Agent);
            let voted = votes.iter().filter(|vote| agents(&vote.agent)).count();
            let all = electorate.keys().filter(|name| agents(name)).count();
            let why = match why_person {
                Some(why) => Some(why.to_owned()),
                _ if motion.kind.needs_person() => Some("it is about rights or rules".to_owned()),
                _ if voted < quorum(settings.quorum.max(UNCONFIRMED_QUORUM), all) => {
                    Some(format!("only {voted} of {all} agents voted"))
                }
                _ => None,
            };
            match why {
                Some(why) => {
                    outcome.push_str(&format!("; a person must confirm: {why}"));
                    MotionState::Passed
                }
                None => MotionState::InForce,
            }
        }
        true => MotionState::Passed,
        false => MotionState::Rejected,
    };
    Decision { state, outcome }
}

/// Returns the minimum number of voters.
fn quorum(share: f64, of: usize) -> usize {
    ((share * of as f64).ceil() as usize).max(1)
}

/// Returns whether two motions propose the same, whatever their reasons.
pub fn is_same(
    a: (MotionKind, Option<&str>, Option<&str>, &str),
    b: (MotionKind, Option<&str>, Option<&str>, &str),
) -> bool {
    let ((a_kind, a_key, a_value, a_title), (b_kind, b_key, b_value, b_title)) = (a, b);
    // Either kind sets a scheduler.
    let sets = |kind| matches!(kind, MotionKind::Set | MotionKind::Scheduler);
    match a_kind {
        MotionKind::Keep => b_kind == a_kind,
        MotionKind::Text => b_kind == a_kind && plain(a_title) == plain(b_title),
        MotionKind::Undo
        | MotionKind::Hide
        | MotionKind::Unhide
        | MotionKind::Close
        | MotionKind::Reopen => b_kind == a_kind && same_value(a_value, b_value),
        // Names are not numbers: `1e1` is another member than `10`.
        MotionKind::Ban | MotionKind::Unban | MotionKind::Role | MotionKind::Rule => {
            b_kind == a_kind && a_key == b_key && a_value == b_value
        }
        MotionKind::Set | MotionKind::Scheduler => {
            sets(b_kind) && a_key == b_key && same_value(a_value, b_value)
        }
    }
}

/// Returns whether two values are the same: `0.30` equals `.3`.
pub fn same_value(a: Option<&str>, b: Option<&str>) -> bool {
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<f64>().ok());
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a.map(str::trim) == b.map(str::trim),
    }
}

/// Normalizes a title: no case, punctuation or spaces.
fn plain(title: &str) -> String {
    let letters = title.chars().filter(|c| c.is_alphanumeric());
    kd_core::names::skeleton(&letters.collect::<String>())
}

/// Converts a vote to the form that a rule reads.
fn mark_for(reads: kd_vote::Reads, choice: usize) -> Mark {
    let other = 1 - choice;
    match reads {
        kd_vote::Reads::Ranking | kd_vote::Reads::Paper => {
            Mark::Ranking(vec![kd_vote::Rank::One(choice), kd_vote::Rank::One(other)])
        }
        kd_vote::Reads::Scores | kd_vote::Reads::Points => {
            let mut points = vec![Some(0); 2];
            points[choice] = Some(NANOS);
            Mark::Scores(points)
        }
        kd_vote::Reads::Approvals => Mark::Approvals(vec![choice]),
        kd_vote::Reads::Rounds | kd_vote::Reads::Orders => {
            Mark::Trail(vec![Some(choice), Some(choice)])
        }
        _ => Mark::Choice(choice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::MOTION_KINDS;

    fn motion(kind: MotionKind) -> Motion {
        Motion {
            id: 1,
            forum: "main".into(),
            kind,
            key: None,
            value: None,
            before: None,
            title: "t".into(),
            reason: "r".into(),
            proposer: "ada".into(),
            created_at: Timestamp::UNIX_EPOCH,
            closes_after: 3,
            state: MotionState::Open,
            outcome: String::new(),
            thread_id: None,
        }
    }

    fn votes(yes: usize, no: usize, abstain: usize) -> Vec<CastVote> {
        let choices = [
            (Choice::Yes, yes),
            (Choice::No, no),
            (Choice::Abstain, abstain),
        ];
        let all = choices
            .into_iter()
            .flat_map(|(choice, n)| std::iter::repeat_n(choice, n));
        all.enumerate()
            .map(|(i, choice)| CastVote {
                motion_id: 1,
                agent: format!("agent-{i}"),
                choice,
                reason: String::new(),
                at: Timestamp::UNIX_EPOCH,
            })
            .collect()
    }

    fn electorate(of: usize) -> Electorate {
        let agents = (0..of).map(|i| (format!("agent-{i}"), Kind::Agent));
        agents.collect()
    }

    fn state_of(settings: &Settings, kind: MotionKind, yes: usize, of: usize) -> MotionState {
        decide(
            settings,
            &motion(kind),
            &votes(yes, 0, 0),
            &electorate(of),
            None,
        )
        .state
    }

    #[test]
    fn strangers_count_for_nothing() {
        let mut all = votes(0, 3, 0);
        for i in 0..12 {
            all.push(CastVote {
                agent: format!("sock-{i}"),
                choice: Choice::Yes,
                ..all[0].clone()
            });
        }
        let decision = decide(
            &Settings::default(),
            &motion(MotionKind::Set),
            &all,
            &electorate(3),
            None,
        );
        assert_eq!(decision.state, MotionState::Rejected);
        assert!(decision.outcome.contains("0 yes, 3 no, 0 abstained, of 3"));
    }

    #[test]
    fn nothing_that_lifts_a_limit_or_that_few_agents_want_takes_effect_without_a_person() {
        let allowed = Settings {
            unconfirmed: "set, undo".into(),
            quorum: 0.0,
            ..Settings::default()
        };
        let state = |yes: usize, people: usize, change: (&str, &str)| {
            let mut electorate = electorate(6);
            for i in 0..people {
                electorate.insert(format!("agent-{i}"), Kind::Person);
            }
            let votes = votes(yes, 0, 0);
            decide(
                &allowed,
                &motion(MotionKind::Set),
                &votes,
                &electorate,
                why_person(&allowed, change.0, change.1).as_deref(),
            )
            .state
        };
        let saves = ("max_tool_calls", "5");
        assert_eq!(state(3, 0, saves), MotionState::InForce);
        assert_eq!(state(2, 0, saves), MotionState::Passed, "too few agents");
        assert_eq!(state(3, 3, saves), MotionState::Passed, "people alone");
        for lifts in [
            ("max_tool_calls", "11"),
            ("skip_probability", "0.1"),
            ("delay_secs_min", "0"),
            ("cycle_interval_secs", "299"),
            ("interval", "adaptive"),
            ("quorum", "0.6"),
            ("unconfirmed", ""),
        ] {
            assert_eq!(state(6, 0, lifts), MotionState::Passed, "{lifts:?}");
        }
    }

    #[test]
    fn motions_that_want_the_same_are_equal() {
        use MotionKind::{Keep, Scheduler, Set, Text, Undo};
        let set = |value| (Set, Some("skip_probability"), Some(value), "less");
        for (a, b, same) in [
            (set("0.30"), set(" .3"), true),
            (set("0.3"), set("0.4"), false),
            (
                (Scheduler, Some("scheduler"), Some("fixed"), "a"),
                (Set, Some("scheduler"), Some("fixed"), "b"),
                true,
            ),
            ((Keep, None, None, "a"), (Keep, None, None, "b"), true),
            (
                (Text, None, None, "We love bees!"),
                (Text, None, None, " we  LOVE bees"),
                true,
            ),
            (
                (Text, None, None, "We love bees"),
                (Text, None, None, "We love ants"),
                false,
            ),
            (
                (Undo, None, Some("3"), "a"),
                (Undo, None, Some("03"), "b"),
                true,
            ),
            (
                (Undo, None, Some("3"), "a"),
                (Text, None, Some("3"), "a"),
                false,
            ),
        ] {
            assert_eq!(is_same(a, b), same, "{a:?} {b:?}");
            assert_eq!(is_same(b, a), same, "{b:?} {a:?}");
        }
    }

    #[test]
    fn votes_quorum_and_ties_decide_and_a_person_stands_behind_it() {
        let settings = Settings::default();
        let state = |yes, no, abstain, of| {
            decide(
                &settings,
                &motion(MotionKind::Set),
                &votes(yes, no, abstain),
                &electorate(of),
                None,
            )
            .state
        };
        assert_eq!(
            state(3, 1, 0, 5),
            MotionState::Passed,
            "it waits for a person"
        );
        assert_eq!(
            state(2, 2, 0, 5),
            MotionState::Rejected,
            "a tie changes nothing"
        );
        assert_eq!(
            state(0, 0, 4, 5),
            MotionState::Rejected,
            "abstentions make the quorum and no majority"
        );
        assert_eq!(state(2, 0, 0, 5), MotionState::NoQuorum);
        assert_eq!(
            state(0, 0, 0, 0),
            MotionState::NoQuorum,
            "nothing passes by itself"
        );
        let allowed = Settings {
            unconfirmed: "text, set".into(),
            ..Settings::default()
        };
        assert_eq!(
            state_of(&allowed, MotionKind::Set, 3, 5),
            MotionState::InForce
        );
        assert_eq!(
            state_of(&allowed, MotionKind::Scheduler, 3, 5),
            MotionState::Passed
        );
    }

    #[test]
    fn every_voting_rule_passes_the_unanimous_and_rejects_the_unloved() {
        for rule in kd_vote::RULES {
            let mut settings = Settings::default();
            assert_eq!(
                settings.set("rule", rule.name).is_ok(),
                rule.decides_motions
            );
            if !rule.decides_motions {
                continue;
            }
            let decide = |votes: &[CastVote]| {
                decide(
                    &settings,
                    &motion(MotionKind::Text),
                    votes,
                    &electorate(5),
                    None,
                )
            };
            let yes = decide(&votes(5, 0, 0));
            let no = decide(&votes(0, 5, 0));
            assert_eq!(
                yes.state,
                MotionState::Passed,
                "{}: {}",
                rule.name,
                yes.outcome
            );
            assert_eq!(
                no.state,
                MotionState::Rejected,
                "{}: {}",
                rule.name,
                no.outcome
            );
        }
    }

    #[test]
    fn no_voting_rule_passes_a_motion_without_more_yes_than_no() {
        for rule in kd_vote::RULES.iter().filter(|rule| rule.decides_motions) {
            let settings = Settings {
                rule: rule.name.into(),
                ..Settings::default()
            };
            for (yes, no) in [(1, 1), (4, 4), (3, 5), (3, 4)] {
                let mut votes = votes(yes, no, 0);
                for order in ["yes first", "no first"] {
                    let electorate = electorate(yes + no);
                    let motion = motion(MotionKind::Text);
                    let decision = decide(&settings, &motion, &votes, &electorate, None);
                    assert_eq!(
                        decision.state,
                        MotionState::Rejected,
                        "{order}: {}",
                        decision.outcome
                    );
                    // The same voters, with their names in the other order.
                    votes.reverse();
                    for (i, vote) in votes.iter_mut().enumerate() {
                        vote.agent = format!("agent-{i}");
                    }
                }
            }
        }
    }

    #[test]
    fn only_what_can_be_set_can_be_moved() {
        let settings = Settings::default();
        let check = |kind, key, value| check(&settings, kind, key, value);
        let fields = |key: Option<&str>, value: &str| {
            Ok(Fields {
                key: key.map(str::to_owned),
                value: Some(value.to_owned()),
            })
        };
        for (kind, key, value, expected) in [
            (
                MotionKind::Set,
                Some("skip_probability"),
                " 0.1",
                fields(Some("skip_probability"), "0.1"),
            ),
            (
                MotionKind::Scheduler,
                None,
                "williams",
                fields(Some("scheduler"), "williams"),
            ),
            (MotionKind::Undo, Some("x"), "04", fields(None, "4")),
            (MotionKind::Hide, None, " 17", fields(None, "17")),
            (MotionKind::Ban, None, "eve\n", fields(None, "eve")),
            (
                MotionKind::Role,
                Some(" eve"),
                "reader",
                fields(Some("eve"), "reader"),
            ),
            (
                MotionKind::Rule,
                Some(" thread_days"),
                " 30",
                fields(Some("thread_days"), "30"),
            ),
        ] {
            assert_eq!(check(kind, key, Some(value)), expected);
        }
        // Fields that a kind does not use are dropped.
        let text = check(MotionKind::Text, Some("quorum"), Some("0"));
        assert_eq!(text, Ok(Fields::default()));
        for (kind, key, value) in [
            (MotionKind::Set, Some("skip_probability"), Some("2")),
            (MotionKind::Set, Some("quorum"), Some("0")),
            (MotionKind::Set, Some("unconfirmed"), Some("set")),
            (MotionKind::Set, None, Some("1")),
            (MotionKind::Scheduler, None, Some("loud")),
            (MotionKind::Undo, None, Some("that")),
            (MotionKind::Hide, None, Some("0")),
            (MotionKind::Close, None, None),
            (MotionKind::Ban, Some("eve"), Some(" \n")),
            (MotionKind::Role, None, Some("reader")),
            (MotionKind::Role, Some("eve"), Some("king")),
            (MotionKind::Role, Some("eve"), Some("owner")),
            (MotionKind::Rule, None, Some("3")),
            (MotionKind::Rule, Some("thread_days"), None),
            (MotionKind::Rule, Some("thread_days"), Some("0")),
            (MotionKind::Rule, Some("posters"), Some("agents")),
            (MotionKind::Rule, Some("max_tool_calls"), Some("3")),
            (MotionKind::Rule, Some("quorum"), Some("0")),
        ] {
            assert!(
                check(kind, key, value).is_err(),
                "{kind:?} {key:?} {value:?}"
            );
        }
    }

    #[test]
    fn every_kind_has_its_word_and_says_what_it_changes() {
        assert_eq!(MotionKind::ALL.len(), MOTION_KINDS.len());
        for (kind, word) in MotionKind::ALL.into_iter().zip(MOTION_KINDS) {
            assert_eq!((kind.word(), MotionKind::parse(word)), (*word, Some(kind)));
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, *word);
        }
        for (kind, key, value, words) in [
            (MotionKind::Keep, None, None, ""),
            (MotionKind::Text, Some("quorum"), Some("0"), ""),
            (MotionKind::Set, Some("a"), Some("3"), "set a = 3"),
            (MotionKind::Undo, None, Some("4"), "undo motion 4"),
            (MotionKind::Hide, None, Some("17"), "hide post 17"),
            (MotionKind::Unhide, None, Some("17"), "show post 17 again"),
            (MotionKind::Close, None, Some("3"), "close thread 3"),
            (MotionKind::Reopen, None, Some("3"), "reopen thread 3"),
            (MotionKind::Ban, None, Some("eve"), "ban eve"),
            (MotionKind::Unban, None, Some("eve"), "unban eve"),
            (
                MotionKind::Role,
                Some("eve"),
                Some("reader"),
                "make eve reader",
            ),
            (MotionKind::Role, Some("eve"), Some("emperor"), ""),
            (
                MotionKind::Rule,
                Some("thread_days"),
                Some("30"),
                "set thread_days to 30",
            ),
            (MotionKind::Rule, Some("quorum"), Some("0"), ""),
            (MotionKind::Hide, None, Some("all"), ""),
        ] {
            assert_eq!(Change::of(kind, key, value).words(), words, "{kind:?}");
        }
    }

    #[test]
    fn the_configuration_knows_every_kind() {
        let known = [forum::UNCONFIRMED_KINDS, forum::CONFIRMED_KINDS].concat();
        assert_eq!(known, MOTION_KINDS);
        for kind in MotionKind::ALL {
            let confirmed = forum::CONFIRMED_KINDS.contains(&kind.word());
            assert_eq!(confirmed, kind.needs_person(), "{kind:?}");
        }
    }

    #[test]
    fn motions_about_rights_and_rules_always_need_a_person() {
        for kind in MotionKind::ALL {
            let allowed = Settings {
                unconfirmed: kind.word().into(),
                ..Settings::default()
            };
            let state = state_of(&allowed, kind, 5, 5);
            let expected = match kind.needs_person() {
                true => MotionState::Passed,
                false => MotionState::InForce,
            };
            assert_eq!(state, expected, "{kind:?}");
            let refused = Settings::default().set("unconfirmed", kind.word()).is_err();
            assert_eq!(refused, kind.needs_person(), "{kind:?}");
        }
    }
}
