//! Motions, members and the running cycle as lines of text, shared by the commands and the screen. Agents' text in them
//! is sanitized.

use crate::render::clean;
use jiff::Timestamp;
use kd_app::forum::{ForumError, Site};
use kd_forum::account::{Account, Status};
use kd_forum::governance::{CastVote, Motion, MotionState};
use kd_forum::order::Target;
use kd_forum::words::Choice;
use kd_forum::words::{Outcome, Run};
use std::collections::BTreeSet;

/// Lines of the log below the running cycle.
const LOG: i64 = 30;

/// Formats a point in time for users.
pub(super) fn moment(at: Timestamp) -> String {
    at.to_zoned(jiff::tz::TimeZone::system())
        .strftime("%Y-%m-%d %H:%M")
        .to_string()
}

/// Formats a motion as one line.
pub(super) fn motion(motion: &Motion) -> String {
    let closes = match motion.state {
        MotionState::Open => format!(", open until the end of cycle {}", motion.closes_after),
        _ => String::new(),
    };
    format!(
        "motion {:<4} {:<9} {}{}: {}{closes}",
        motion.id,
        motion.state.word(),
        motion.kind.word(),
        change(motion),
        clean::line(&motion.title)
    )
}

fn change(motion: &Motion) -> String {
    match clean::line(&motion.change().words()) {
        words if words.is_empty() => String::new(),
        words => format!(" [{words}]"),
    }
}

/// Describes the state of a motion, and what can be done now.
fn state(motion: &Motion) -> String {
    match motion.state {
        MotionState::Open => format!(
            "Votes are taken until the end of cycle {}.",
            motion.closes_after
        ),
        MotionState::Passed => "It passed and waits for a person to confirm it.".into(),
        MotionState::Rejected => "It failed.".into(),
        MotionState::NoQuorum => "It failed: too few voted.".into(),
        MotionState::Vetoed => "A person refused it.".into(),
        MotionState::InForce => "It is in force.".into(),
        MotionState::Undone => "It was in force; it was undone or replaced since.".into(),
    }
}

/// Describes a motion in full, for the screen.
pub(super) fn about_motion(motion: &Motion, votes: &[CastVote]) -> Vec<String> {
    let mut out = vec![
        format!("# Motion {}: {}", motion.id, clean::line(&motion.title)),
        String::new(),
        state(motion),
    ];
    if !motion.outcome.is_empty() {
        out.push(format!("Result: {}", clean::line(&motion.outcome)));
    }
    let wants = motion.change().words();
    if !wants.is_empty() {
        let before = motion
            .before
            .as_deref()
            .map(|b| format!(", before {}", clean::line(b)));
        out.push(format!(
            "Wants: {}{}",
            clean::line(&wants),
            before.unwrap_or_default()
        ));
    }
    let thread = motion
        .thread_id
        .map(|id| format!(", thread {id}"))
        .unwrap_or_default();
    out.push(format!(
        "Moved by {} on {}{thread}",
        clean::line(&motion.proposer),
        moment(motion.created_at)
    ));
    out.extend([String::new(), "# Reason".into()]);
    out.extend(
        clean::text(&motion.reason)
            .lines()
            .map(|line| format!("  {line}")),
    );
    let count = |choice| votes.iter().filter(|v| v.choice == choice).count();
    out.extend([
        String::new(),
        format!(
            "# Votes: {} yes, {} no, {} abstained",
            count(Choice::Yes),
            count(Choice::No),
            count(Choice::Abstain)
        ),
    ]);
    out.extend(votes.iter().map(vote));
    out
}

/// Formats a vote as one line.
pub(super) fn vote(vote: &CastVote) -> String {
    let reason = match clean::line(&vote.reason) {
        reason if reason.is_empty() => String::new(),
        reason => format!(": {reason}"),
    };
    format!(
        "  {:<8} {}{reason}",
        vote.choice.word(),
        clean::line(&vote.agent)
    )
}

/// Describes a member and the orders about it.
pub(super) fn about_member(site: &mut Site, member: &Account) -> Result<Vec<String>, ForumError> {
    let mut out = vec![
        format!("# {}", clean::line(&member.name)),
        String::new(),
        format!("Kind: {}", member.kind.word()),
        format!("Role: {}", member.role.word()),
        format!("Status: {}", member.status.word()),
        format!("Votes: {}", if member.is_elector() { "yes" } else { "no" }),
        format!("Joined: {}", moment(member.joined_at)),
    ];
    if let (Some(at), Status::Left) = (member.left_at, member.status) {
        out.push(format!("Left: {}", moment(at)));
    }
    let forum = site.forum.clone();
    let name = || member.name.clone();
    let mut entries = Vec::new();
    for target in [
        Target::Status(name()),
        Target::Role(name()),
        Target::Votes(name()),
    ] {
        entries.extend(site.store.orders_about(&forum, &target)?);
    }
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.id));
    if !entries.is_empty() {
        out.extend([String::new(), "# What was done".into()]);
    }
    for entry in entries {
        let line = clean::line(&entry.line());
        out.push(format!("  {} {line}", moment(entry.at)));
    }
    Ok(out)
}

/// Describes the running cycle as far as it is public: which agents had and have a turn. The order is secret until its
/// end.
pub(super) fn now(site: &mut Site) -> Result<Vec<String>, ForumError> {
    let mut out = Vec::new();
    let forum = site.forum.clone();
    match site.store.open_cycle(&forum)? {
        Some(cycle) => {
            let runs = site.store.runs_of(cycle.id)?;
            out.push(format!(
                "# Cycle {}, since {}",
                cycle.number,
                moment(cycle.started_at)
            ));
            out.push(String::new());
            out.extend(runs.iter().map(turn));
            let had: BTreeSet<&str> = runs.iter().map(|run| run.agent.as_str()).collect();
            let rest = cycle
                .cards
                .candidates
                .iter()
                .filter(|c| !had.contains(c.name.as_str()));
            // Sorted by name, like the log: the order is secret.
            let rest: BTreeSet<String> = rest.map(|c| clean::line(&c.name)).collect();
            if !rest.is_empty() {
                let rest: Vec<String> = rest.into_iter().collect();
                out.push(format!("  not yet, or sitting out: {}", rest.join(", ")));
            }
            out.push(match cycle.foreseeable() {
                Some(why) => {
                    format!("  This cycle is predictable ({why}); the log shows its order.")
                }
                None => {
                    "  The order is secret until the cycle has ended; then the log shows it.".into()
                }
            });
        }
        None => {
            out.push("# No cycle is running".into());
            if let Some(last) = site.store.cycles(&forum, 1)?.last() {
                let ended = last.ended_at.map(moment).unwrap_or_default();
                out.push(format!("  Cycle {} ended {ended}.", last.number));
            }
            out.push("  kd forum run-cycle runs cycles.".into());
        }
    }
    out.extend(of_forum(site)?);
    out.extend([String::new(), "# Log".into()]);
    let log = site.store.log_tail(&forum, LOG)?;
    let zone = jiff::tz::TimeZone::system();
    out.extend(log.iter().rev().map(|line| clean::line(&line.text(&zone))));
    Ok(out)
}

/// Returns the charter and the rules of the forum, if any.
fn of_forum(site: &mut Site) -> Result<Vec<String>, ForumError> {
    let forum = site.forum.clone();
    let mut out = Vec::new();
    let charter = site.store.charter(&forum)?;
    if !charter.is_empty() {
        out.extend([String::new(), "# Charter".into()]);
        // Two spaces, so that a line of a charter is not taken for a heading.
        out.extend(
            charter
                .lines()
                .map(|line| format!("  {}", clean::line(line))),
        );
    }
    let rules = site.store.rules(&forum)?;
    let mut lines = rules
        .set()
        .map(|(rule, value)| format!("  {}: {value}", rule.doc))
        .peekable();
    if lines.peek().is_some() {
        out.extend([String::new(), "# Rules".into()]);
        out.extend(lines);
    }
    Ok(out)
}

fn turn(run: &Run) -> String {
    let agent = clean::line(&run.agent);
    match (run.outcome, &run.reason) {
        (Outcome::Running, _) => format!("  now: {agent}, since {}", moment(run.started_at)),
        (outcome, Some(reason)) => format!(
            "  had a turn: {agent}, {}: {}",
            outcome.word(),
            clean::line(reason)
        ),
        (outcome, None) => format!("  had a turn: {agent}, {}", outcome.word()),
    }
}

/// Describes the newest entry about a post or a thread; empty if there is none.
pub(super) fn why(site: &mut Site, target: &Target) -> String {
    let forum = site.forum.clone();
    let entries = site.store.orders_about(&forum, target).unwrap_or_default();
    entries.first().map_or(String::new(), |entry| {
        format!(
            " by {}: {}",
            clean::line(&entry.by),
            clean::line(&entry.reason)
        )
    })
}
