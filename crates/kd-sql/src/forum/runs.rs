//! Runs: each agent's turn, claimed before it begins, so that no agent runs twice in one cycle even after a crash.

use super::ForumStore;
use super::db::{Db, Row, args, first_int};
use super::error::ForumError;
use jiff::Timestamp;
use kd_forum::visit;
use kd_forum::words::{Deed, Outcome, Run};

const SELECT: &str = "SELECT id, cycle_id, forum, agent, started_at, ended_at, outcome, deeds, reason, claim, claim_agrees, calls, tokens FROM runs";

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// The outcome.
    pub outcome: Outcome,
    /// The reason, unless it simply acted.
    pub reason: Option<String>,
    /// The action that the agent claimed, and whether the claim is true.
    pub claim: Option<(String, bool)>,
    /// Tokens used.
    pub tokens: u64,
}

fn run(row: &Row) -> Result<Run, ForumError> {
    Ok(Run {
        id: row.int(0)?,
        cycle_id: row.maybe_int(1)?,
        forum: row.line(2)?,
        agent: row.line(3)?,
        started_at: row.time(4)?,
        ended_at: row.maybe_time(5)?,
        outcome: row.word(6, "an outcome of a visit", Outcome::parse)?,
        // Unreadable deeds differ from those that were sealed.
        deeds: row.maybe_json(7)?.unwrap_or_else(|| vec![unreadable()]),
        reason: row.maybe_text(8)?,
        claim: row.maybe_text(9)?,
        // kd writes no other number; the seal detects it.
        claim_agrees: match row.maybe_int(10)? {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        calls: row.int(11)?,
        tokens: row.int(12)?,
    })
}

fn unreadable() -> Deed {
    Deed {
        tool: "unreadable".to_owned(),
        thread_id: None,
        post_id: None,
        motion_id: None,
    }
}

pub(super) fn find(db: &mut Db, id: i64) -> Result<Run, ForumError> {
    let row = db.row(&format!("{SELECT} WHERE id = $1"), args![id])?;
    row.map(|row| run(&row))
        .transpose()?
        .ok_or(ForumError::Missing { what: "run", id })
}

pub(super) fn of_cycle(db: &mut Db, cycle: i64) -> Result<Vec<Run>, ForumError> {
    let rows = db.rows(
        &format!("{SELECT} WHERE cycle_id = $1 ORDER BY id"),
        args![cycle],
    )?;
    rows.iter().map(run).collect()
}

pub(super) fn all(db: &mut Db) -> Result<Vec<Run>, ForumError> {
    db.rows(&format!("{SELECT} ORDER BY id"), &[])?
        .iter()
        .map(run)
        .collect()
}

/// Adds an agent's action to its run, in the same transaction as the action itself.
pub(super) fn did(db: &mut Db, id: i64, deed: Deed) -> Result<(), ForumError> {
    let mut deeds = find(db, id)?.deeds;
    deeds.push(deed);
    let text = serde_json::to_string(&deeds).map_err(|e| ForumError::Invalid(e.to_string()))?;
    // A run that has ended is sealed: a late call has no effect.
    let changed = db.run(
        "UPDATE runs SET deeds = $1 WHERE id = $2 AND ended_at IS NULL",
        args![text, id],
    )?;
    match changed {
        0 => Err(over(id)),
        _ => Ok(()),
    }
}

/// Counts a tool call; returns its number in the run, from 1.
pub(super) fn count_call(db: &mut Db, id: i64, of: (&str, &str)) -> Result<i64, ForumError> {
    let row = db.row(
        "UPDATE runs SET calls = calls + 1 WHERE id = $1 AND forum = $2 AND agent = $3 AND ended_at IS NULL \
         AND claim IS NULL RETURNING calls",
        args![id, of.0, of.1],
    )?;
    first_int(row)?.ok_or_else(|| over(id))
}

/// Checks that a visit is still open; returns 0, since nothing is counted.
pub(super) fn check_open(db: &mut Db, id: i64, of: (&str, &str)) -> Result<i64, ForumError> {
    let row = db.row(
        "SELECT id FROM runs WHERE id = $1 AND forum = $2 AND agent = $3 AND ended_at IS NULL AND claim IS NULL",
        args![id, of.0, of.1],
    )?;
    match row {
        Some(_) => Ok(0),
        None => Err(over(id)),
    }
}

fn over(id: i64) -> ForumError {
    ForumError::Invalid(format!("the visit {id} is over"))
}

/// Records that the agent is done: its claim, next to its real actions. Nothing can be called after that.
pub(super) fn leaves(
    db: &mut Db,
    id: i64,
    claim: &(String, Option<i64>),
    reason: Option<&str>,
) -> Result<(), ForumError> {
    let agrees = visit::agrees(claim, &find(db, id)?.deeds);
    db.run(
        "UPDATE runs SET claim = $1, claim_agrees = $2, reason = $3 WHERE id = $4",
        args![visit::claim_text(claim), i64::from(agrees), reason, id],
    )?;
    Ok(())
}

impl ForumStore {
    /// Claims a run; `None` if the agent has had its turn in this cycle.
    ///
    /// # Errors
    /// If the database fails.
    pub fn begin_run(
        &mut self,
        cycle: Option<i64>,
        forum: &str,
        agent: &str,
        now: Timestamp,
    ) -> Result<Option<i64>, ForumError> {
        let row = self.db.row(
            "INSERT INTO runs (cycle_id, forum, agent, started_at, outcome, deeds, calls, tokens) \
             VALUES ($1, $2, $3, $4, 'running', '[]', 0, 0) ON CONFLICT DO NOTHING RETURNING id",
            args![cycle, forum, agent, now],
        )?;
        first_int(row)
    }

    /// Ends a run. A run that has already ended is unchanged.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if there is no such run; also if the database fails.
    pub fn end_run(&mut self, id: i64, end: &RunEnd, now: Timestamp) -> Result<Run, ForumError> {
        self.db.whole(|db| {
            db.run(
                "UPDATE runs SET ended_at = $1, outcome = $2, reason = $3, claim = COALESCE($4, claim), \
                 claim_agrees = COALESCE($5, claim_agrees), tokens = $6 WHERE id = $7 AND ended_at IS NULL",
                args![
                    now,
                    end.outcome.word(),
                    end.reason.as_deref(),
                    end.claim.as_ref().map(|c| c.0.as_str()),
                    end.claim.as_ref().map(|c| i64::from(c.1)),
                    end.tokens as i64,
                    id
                ],
            )?;
            let ended = find(db, id)?;
            db.run("UPDATE agents SET last_run_at = $1 WHERE name = $2", args![now, ended.agent.as_str()])?;
            Ok(ended)
        })
    }

    /// Returns a run.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if there is no such run; also if the database fails or is damaged.
    pub fn run(&mut self, id: i64) -> Result<Run, ForumError> {
        find(&mut self.db, id)
    }

    /// Returns the runs of a cycle, in the order in which they began.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn runs_of(&mut self, cycle: i64) -> Result<Vec<Run>, ForumError> {
        of_cycle(&mut self.db, cycle)
    }

    /// Returns the newest runs of a forum, the newest first.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn runs(&mut self, forum: &str, limit: i64) -> Result<Vec<Run>, ForumError> {
        let rows = self.db.rows(
            &format!("{SELECT} WHERE forum = $1 ORDER BY id DESC LIMIT $2"),
            args![forum, limit],
        )?;
        rows.iter().map(run).collect()
    }

    /// Returns when an agent last ran.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn last_run(&mut self, agent: &str) -> Result<Option<Timestamp>, ForumError> {
        let row = self.db.row(
            "SELECT last_run_at FROM agents WHERE name = $1",
            args![agent],
        )?;
        row.map_or(Ok(None), |row| row.maybe_time(0))
    }
}
