//! How a forum changes its own rules: motions, votes, and what a person has to say about it.
//!
//! Comes in: a motion, the votes on it, how many agents there are. Goes out: a [`Decision`], counted by the rules of
//! [`crate::voting`]. A motion that passes waits for a person, unless a person allowed its kind beforehand; a person can
//! veto any motion at any time before it is in force. What is in force is undone by another motion.

use super::settings::{self, BadSetting, Settings};
use super::tools::Choice;
use crate::voting::{self, Ballot, Mark, NANOS};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a motion wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MotionKind {
    /// Leave everything as it is.
    Keep,
    /// Change a parameter.
    Set,
    /// Take another scheduler.
    Scheduler,
    /// Undo a motion that is in force.
    Undo,
    /// Say something together; it changes no parameter.
    Text,
}

/// Every kind's word.
pub const MOTION_KINDS: &[&str] = &["keep", "set", "scheduler", "undo", "text"];

impl MotionKind {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Set => "set",
            Self::Scheduler => "scheduler",
            Self::Undo => "undo",
            Self::Text => "text",
        }
    }

    /// From its word.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Keep,
            Self::Set,
            Self::Scheduler,
            Self::Undo,
            Self::Text,
        ]
        .into_iter()
        .find(|kind| kind.word() == word)
    }
}

/// How far a motion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MotionState {
    /// Votes are taken.
    Open,
    /// It passed and waits for a person.
    Passed,
    /// It did not pass.
    Rejected,
    /// Too few voted.
    NoQuorum,
    /// A person refused it.
    Vetoed,
    /// It is in force.
    InForce,
    /// It was in force until another motion undid or replaced it.
    Undone,
}

impl MotionState {
    /// Its word.
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

    /// From its word.
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

/// A motion, as kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Motion {
    /// Its number.
    pub id: i64,
    /// The forum.
    pub forum: String,
    /// What it wants.
    pub kind: MotionKind,
    /// The parameter, for kinds that change one.
    pub key: Option<String>,
    /// Its new value; for `undo` the number of the motion.
    pub value: Option<String>,
    /// What the parameter was before, once the motion is in force.
    pub before: Option<String>,
    /// One line.
    pub title: String,
    /// Why.
    pub reason: String,
    /// Who moved it.
    pub proposer: String,
    /// When.
    pub created_at: Timestamp,
    /// The cycle after which the vote closes.
    pub closes_after: i64,
    /// How far it is.
    pub state: MotionState,
    /// How it was decided, in words; empty while it is open.
    pub outcome: String,
    /// The thread in which it is talked about.
    pub thread_id: Option<i64>,
}

/// One vote, as kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CastVote {
    /// The motion.
    pub motion_id: i64,
    /// Who.
    pub agent: String,
    /// How.
    pub choice: Choice,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

/// Checks what an agent moves, and names the parameter that it changes: kind `scheduler` is about the parameter of
/// that name. Agents cannot move to change how motions are decided.
pub fn check(
    settings: &Settings,
    kind: MotionKind,
    key: Option<&str>,
    value: Option<&str>,
) -> Result<Option<&'static str>, BadSetting> {
    let needs = |what: &str| BadSetting(format!("a motion of kind `{}` needs {what}", kind.word()));
    match kind {
        MotionKind::Keep | MotionKind::Text => Ok(None),
        MotionKind::Undo => match value.and_then(|v| v.trim().parse::<i64>().ok()) {
            Some(id) if id > 0 => Ok(None),
            _ => Err(needs("`value`: the number of the motion to undo")),
        },
        MotionKind::Set | MotionKind::Scheduler => {
            let key = match kind {
                MotionKind::Scheduler => "scheduler",
                _ => key.ok_or_else(|| needs("`key`: the parameter"))?,
            };
            let value = value.ok_or_else(|| needs("`value`: the new value"))?;
            let mut next = settings.clone();
            next.set(key, value)?;
            match settings::find(key) {
                Some(parameter) if parameter.votable => Ok(Some(parameter.key)),
                _ => Err(BadSetting(format!(
                    "`{key}` is for people alone: it says how motions are decided"
                ))),
            }
        }
    }
}

/// What the votes say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The state that the motion takes.
    pub state: MotionState,
    /// How it came to be, in words.
    pub outcome: String,
}

/// Counts the votes on a motion whose voting is over. `electorate` is how many could vote.
pub fn decide(
    settings: &Settings,
    motion: &Motion,
    votes: &[CastVote],
    electorate: usize,
) -> Decision {
    let count = |choice| votes.iter().filter(|vote| vote.choice == choice).count();
    let (yes, no, abstain) = (
        count(Choice::Yes),
        count(Choice::No),
        count(Choice::Abstain),
    );
    let sums = format!("{yes} yes, {no} no, {abstain} abstained, of {electorate}");
    // At least one vote, even where the quorum is 0: nothing passes by itself.
    let needed = ((settings.quorum * electorate as f64).ceil() as usize).max(1);
    if votes.len() < needed {
        let outcome = format!("{sums}; {needed} had to vote");
        return Decision {
            state: MotionState::NoQuorum,
            outcome,
        };
    }
    let rule = voting::find(&settings.rule).unwrap_or(&voting::RULES[0]);
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
    let rules = voting::Rules {
        question: format!("motion {}", motion.id),
        ..voting::Rules::of(["yes", "no"])
    };
    let tally = voting::tally(rule, &ballots, &rules);
    // A tie leaves everything as it is: the chain that breaks ties elsewhere has no say here.
    let passed = tally.winners == [0];
    let state = match (passed, settings.unconfirmed(motion.kind)) {
        (true, true) => MotionState::InForce,
        (true, false) => MotionState::Passed,
        (false, _) => MotionState::Rejected,
    };
    let word = if passed { "passed" } else { "not passed" };
    Decision {
        state,
        outcome: format!("{word} by {}: {sums}", tally.rule),
    }
}

/// A vote in the form that a rule reads.
fn mark_for(reads: voting::Reads, choice: usize) -> Mark {
    let other = 1 - choice;
    match reads {
        voting::Reads::Ranking | voting::Reads::Paper => {
            Mark::Ranking(vec![voting::Rank::One(choice), voting::Rank::One(other)])
        }
        voting::Reads::Scores | voting::Reads::Points => {
            let mut points = vec![Some(0); 2];
            points[choice] = Some(NANOS);
            Mark::Scores(points)
        }
        voting::Reads::Approvals => Mark::Approvals(vec![choice]),
        voting::Reads::Rounds | voting::Reads::Orders => {
            Mark::Trail(vec![Some(choice), Some(choice)])
        }
        _ => Mark::Choice(choice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn votes_quorum_and_ties_decide_and_a_person_stands_behind_it() {
        let settings = Settings::default();
        let state = |yes, no, abstain, of| {
            decide(
                &settings,
                &motion(MotionKind::Set),
                &votes(yes, no, abstain),
                of,
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
            decide(&allowed, &motion(MotionKind::Set), &votes(3, 0, 0), 5).state,
            MotionState::InForce
        );
        assert_eq!(
            decide(&allowed, &motion(MotionKind::Scheduler), &votes(3, 0, 0), 5).state,
            MotionState::Passed
        );
    }

    #[test]
    fn every_voting_rule_passes_the_unanimous_and_rejects_the_unloved() {
        for rule in crate::voting::RULES {
            let mut settings = Settings::default();
            if settings.set("rule", rule.name).is_err() {
                assert_eq!(rule.name, "judge");
                continue;
            }
            let yes = decide(&settings, &motion(MotionKind::Text), &votes(5, 0, 0), 5);
            let no = decide(&settings, &motion(MotionKind::Text), &votes(0, 5, 0), 5);
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
    fn only_what_can_be_set_can_be_moved() {
        let settings = Settings::default();
        let check = |kind, key, value| check(&settings, kind, key, value);
        assert_eq!(
            check(MotionKind::Set, Some("skip_probability"), Some("0.1")),
            Ok(Some("skip_probability"))
        );
        assert_eq!(
            check(MotionKind::Scheduler, None, Some("williams")),
            Ok(Some("scheduler"))
        );
        assert_eq!(check(MotionKind::Undo, None, Some("4")), Ok(None));
        for (kind, key, value) in [
            (MotionKind::Set, Some("skip_probability"), Some("2")),
            (MotionKind::Set, Some("quorum"), Some("0")),
            (MotionKind::Set, Some("unconfirmed"), Some("set")),
            (MotionKind::Set, None, Some("1")),
            (MotionKind::Scheduler, None, Some("loud")),
            (MotionKind::Undo, None, Some("that")),
        ] {
            assert!(
                check(kind, key, value).is_err(),
                "{kind:?} {key:?} {value:?}"
            );
        }
    }
}
