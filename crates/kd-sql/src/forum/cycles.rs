//! Cycles: drawn and recorded before any agent runs, and ended with their effect on each agent.

use super::db::{self, Db, Row, args, first_int, new_id};
use super::error::ForumError;
use super::secrets::Secrets;
use super::{ForumStore, Place, rows, runs, seen};
use jiff::{SignedDuration, Timestamp};
use kd_forum::cards::{Candidate, Cards, Seed};
use kd_forum::chain::{Link, Origin};
use kd_forum::cycle::Plan;
use kd_forum::words::{Outcome, Run};
use serde::{Deserialize, Serialize};

/// A cycle with its link, for [`cycle`].
const SELECT: &str = "SELECT c.id, c.forum, c.number, c.cards, c.plan, c.started_at, c.ended_at, c.interval_ms, \
     l.chain, l.number, l.origin, l.commitment, l.after_post, l.through_post, l.posts, l.previous, l.next, l.secret, \
     l.void, l.renewed, l.seal FROM cycles c LEFT JOIN links l ON l.cycle_id = c.id";

/// Time limit of the successor of a killed process when it waits for the process's lock on a server.
const LEAD_WAIT_MS: u32 = 5_000;

/// A cycle as recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CycleRecord {
    /// Its number in the store.
    pub id: i64,
    /// The forum.
    pub forum: String,
    /// Its number in the forum, from 1; below 1 for an imported cycle, which does not count.
    pub number: i64,
    /// The input of the draw.
    pub cards: Cards,
    /// The result of the draw. Empty while the secret of a running cycle is hidden; [`ForumStore::plan`] returns it to
    /// the leader.
    pub plan: Plan,
    /// The time when it started.
    pub started_at: Timestamp,
    /// The time when every agent had had a turn.
    pub ended_at: Option<Timestamp>,
    /// Milliseconds from its start to the start of the next.
    pub interval_ms: Option<u64>,
    /// Its link in the chain of draws; `None` for a cycle of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

impl CycleRecord {
    /// Returns why the cycle could be predicted; `None` if it could not.
    pub fn foreseeable(&self) -> Option<&'static str> {
        match self.link.as_ref().map(|link| link.origin) {
            None if self.number < 1 => Some("imported"),
            None => Some("old record"),
            Some(Origin::Seeded) => Some("--seed"),
            Some(Origin::Committed | Origin::Lost | Origin::Forked) => None,
        }
    }

    /// Returns whether the cycle represents a record that the owner accepted.
    pub fn is_fork(&self) -> bool {
        self.link
            .as_ref()
            .is_some_and(|link| link.origin == Origin::Forked)
    }

    /// Returns why the cycle is void, if it is.
    pub fn void(&self) -> Option<&str> {
        self.link.as_ref()?.void.as_deref()
    }

    /// Returns the cards with their seed, if it is revealed.
    pub fn revealed(&self) -> Option<Cards> {
        let mut cards = self.cards.clone();
        if cards.seed == Seed::Hidden {
            cards.seed = self.link.as_ref()?.seed()?;
        }
        Some(cards)
    }
}

fn cycle(row: &Row) -> Result<CycleRecord, ForumError> {
    Ok(CycleRecord {
        id: row.int(0)?,
        forum: row.line(1)?,
        number: row.int(2)?,
        cards: row.json(3)?,
        plan: row.json(4)?,
        started_at: row.time(5)?,
        ended_at: row.maybe_time(6)?,
        interval_ms: row.maybe_int(7)?.map(|ms| ms.max(0) as u64),
        link: rows::links::link(row, 8)?,
    })
}

/// The right to run cycles in a forum. Only one process at a time has it, until the process ends.
#[derive(Debug)]
pub struct Leader {
    /// A server releases the right when the connection ends; for a file, this is the lock.
    _file: Option<kd_store::lock::Lock>,
    pub(super) forum: String,
    /// The secrets of future draws: only the leader reads them.
    pub(super) secrets: Secrets,
}

impl ForumStore {
    /// Takes the right to run cycles in a forum.
    ///
    /// # Errors
    /// [`ForumError::Led`] if another process has it; also if the database fails, or the lock or the file of secrets
    /// cannot be used.
    pub fn lead(&mut self, forum: &str) -> Result<Leader, ForumError> {
        let led = || ForumError::Led(forum.to_owned());
        let file = match &self.place {
            Place::File(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let lock =
                    path.with_file_name(format!(".{name}-{:x}.lock", db::lock_number(forum, true)));
                let held = kd_store::lock::Lock::try_take(&lock).map_err(|e| ForumError::File {
                    path: lock.clone(),
                    why: e.to_string(),
                })?;
                Some(held.ok_or_else(led)?)
            }
            Place::Server(_) => {
                let number = db::lock_number(forum, true);
                let tried = self.db.row(
                    concat!("SELECT ", db::locking!("pg_try_advisory_lock")),
                    args![number],
                )?;
                let taken = first_int(tried)?.is_some_and(|n| n != 0);
                if !taken {
                    self.wait_to_lead(number, forum)?;
                }
                None
            }
        };
        Ok(Leader {
            _file: file,
            forum: forum.to_owned(),
            secrets: Secrets::open(&self.place, forum, self.state.as_deref())?,
        })
    }

    /// Waits for the server to notice that a killed process is gone. The server does the waiting: no polling.
    fn wait_to_lead(&mut self, number: i64, forum: &str) -> Result<(), ForumError> {
        self.db
            .script(&format!("SET lock_timeout = {LEAD_WAIT_MS}"))?;
        let waited = self.db.rows(
            concat!(
                "SELECT CAST(",
                db::locking!("pg_advisory_lock"),
                " AS TEXT)"
            ),
            args![number],
        );
        self.db.script("RESET lock_timeout")?;
        match waited {
            Ok(_) => Ok(()),
            Err(ForumError::Busy) => Err(ForumError::Led(forum.to_owned())),
            Err(error) => Err(error),
        }
    }

    /// Returns an agent's data for a draw; adds a new agent.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn candidate(&mut self, name: &str) -> Result<Candidate, ForumError> {
        seen::agent_id(&mut self.db, name)?;
        let row = self.db.row(
            "SELECT energy, tokens, turns, skipped FROM agents WHERE name = $1",
            args![name],
        )?;
        let Some(row) = row else {
            return Ok(Candidate::named(name));
        };
        Ok(Candidate {
            energy: row.real(0)?,
            tokens: row.int(1)?.max(0) as u64,
            turns: row.int(2)?.max(0) as u64,
            skipped: row.int(3)?.clamp(0, i64::from(u32::MAX)) as u32,
            ..Candidate::named(name)
        })
    }

    /// Returns the number of the last cycle of a forum; 0 before the first.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn last_cycle(&mut self, forum: &str) -> Result<i64, ForumError> {
        last_number(&mut self.db, forum)
    }

    /// Records a cycle like older versions did: without a link.
    ///
    /// # Errors
    /// If the database fails.
    pub fn begin_cycle(
        &mut self,
        forum: &str,
        cards: &Cards,
        plan: &Plan,
        now: Timestamp,
    ) -> Result<CycleRecord, ForumError> {
        self.db.whole(|db| {
            let id = insert(db, forum, cards, plan, now)?;
            find(db, id)
        })
    }

    /// Returns the cycle that was started and not ended, if there is one.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn open_cycle(&mut self, forum: &str) -> Result<Option<CycleRecord>, ForumError> {
        let sql = format!(
            "{SELECT} WHERE c.forum = $1 AND c.ended_at IS NULL AND c.number > 0 ORDER BY c.number DESC LIMIT 1"
        );
        self.db
            .row(&sql, args![forum])?
            .map(|row| cycle(&row))
            .transpose()
    }

    /// Closes runs cut off by a crash: their actions stay, and they are not repeated. Returns them.
    ///
    /// # Errors
    /// If the database fails.
    pub fn close_cut_runs(&mut self, cycle: i64, now: Timestamp) -> Result<Vec<Run>, ForumError> {
        self.db.whole(|db| {
            let rows = db.rows(
                "UPDATE runs SET ended_at = $1, outcome = $2, reason = $3 WHERE cycle_id = $4 AND ended_at IS NULL RETURNING id",
                args![now, Outcome::Interrupted.word(), "cut off by a crash", cycle],
            )?;
            rows.iter().map(|row| runs::find(db, row.int(0)?)).collect()
        })
    }

    /// Ends a cycle of an older version and records its effect on each candidate: who had a turn, and its usage. Only
    /// the first call counts.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if there is no such cycle; also if the database fails.
    pub fn end_cycle(
        &mut self,
        id: i64,
        interval_ms: u64,
        now: Timestamp,
    ) -> Result<CycleRecord, ForumError> {
        self.db.whole(|db| {
            end(db, id, interval_ms, now)?;
            find(db, id)
        })
    }

    /// Returns why no cycle may start in a forum now: its rule `cycle_interval_secs` requires more time since the last
    /// start. `None` if one may. [`Self::draw_cycle`] refuses with the same message.
    ///
    /// # Errors
    /// The database fails.
    pub fn too_soon(
        &mut self,
        forum: &str,
        now: Timestamp,
    ) -> Result<Option<ForumError>, ForumError> {
        let Some(secs) = self.rules(forum)?.number("cycle_interval_secs") else {
            return Ok(None);
        };
        let last = self.db.row(
            "SELECT started_at FROM cycles WHERE forum = $1 ORDER BY number DESC LIMIT 1",
            args![forum],
        )?;
        let started = last.map(|row| row.time(0)).transpose()?;
        let next =
            started.and_then(|at| at.checked_add(SignedDuration::from_secs(secs.into())).ok());
        // A start in the future was on a virtual clock, or comes from another machine.
        let is_soon = started.is_some_and(|at| at <= now) && next.is_some_and(|next| now < next);
        Ok(next.filter(|_| is_soon).map(|next| ForumError::TooSoon {
            forum: forum.to_owned(),
            secs,
            next,
        }))
    }

    /// Returns a cycle by its number in the forum.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if there is no such cycle; also if the database fails or is damaged.
    pub fn cycle(&mut self, forum: &str, number: i64) -> Result<CycleRecord, ForumError> {
        let row = self.db.row(
            &format!("{SELECT} WHERE c.forum = $1 AND c.number = $2"),
            args![forum, number],
        )?;
        row.map(|row| cycle(&row))
            .transpose()?
            .ok_or(ForumError::Missing {
                what: "cycle",
                id: number,
            })
    }

    /// Returns the newest cycles of a forum, the oldest of them first.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn cycles(&mut self, forum: &str, limit: i64) -> Result<Vec<CycleRecord>, ForumError> {
        let rows = self.db.rows(
            &format!(
                "{SELECT} WHERE c.forum = $1 AND c.number > 0 ORDER BY c.number DESC LIMIT $2"
            ),
            args![forum, limit],
        )?;
        rows.iter().rev().map(cycle).collect()
    }
}

/// Returns the cycles after a number, the oldest first.
pub(super) fn page(
    db: &mut Db,
    forum: &str,
    after: i64,
    limit: i64,
) -> Result<Vec<CycleRecord>, ForumError> {
    let rows = db.rows(
        &format!("{SELECT} WHERE c.forum = $1 AND c.number > $2 ORDER BY c.number LIMIT $3"),
        args![forum, after, limit],
    )?;
    rows.iter().map(cycle).collect()
}

/// Inserts a cycle; returns its number in the store.
pub(super) fn insert(
    db: &mut Db,
    forum: &str,
    cards: &Cards,
    plan: &Plan,
    now: Timestamp,
) -> Result<i64, ForumError> {
    let text = |e: serde_json::Error| ForumError::Invalid(e.to_string());
    let cards = serde_json::to_string(cards).map_err(text)?;
    let plan = serde_json::to_string(plan).map_err(text)?;
    let number = last_number(db, forum)?.saturating_add(1);
    let row = db.row(
        "INSERT INTO cycles (forum, number, cards, plan, started_at) VALUES ($1, $2, $3, $4, $5) RETURNING id",
        args![forum, number, cards, plan, now],
    )?;
    new_id(row)
}

/// Stores the result of a cycle's draw.
pub(super) fn set_plan(db: &mut Db, id: i64, plan: &Plan) -> Result<(), ForumError> {
    let plan = serde_json::to_string(plan).map_err(|e| ForumError::Invalid(e.to_string()))?;
    db.run("UPDATE cycles SET plan = $1 WHERE id = $2", args![plan, id])?;
    Ok(())
}

/// Ends a cycle and records its effect on each candidate. In a void cycle only turns count. Returns false if it had
/// ended before.
pub(super) fn end(
    db: &mut Db,
    id: i64,
    interval_ms: u64,
    now: Timestamp,
) -> Result<bool, ForumError> {
    let changed = db.run(
        "UPDATE cycles SET ended_at = $1, interval_ms = $2 WHERE id = $3 AND ended_at IS NULL",
        args![now, interval_ms as i64, id],
    )?;
    if changed == 0 {
        return Ok(false);
    }
    let record = find(db, id)?;
    let used = db.rows(
        "SELECT agent, tokens FROM runs WHERE cycle_id = $1",
        args![id],
    )?;
    let used = used.iter().map(|row| Ok((row.text(0)?, row.int(1)?)));
    let used = used.collect::<Result<Vec<_>, ForumError>>()?;
    for candidate in &record.cards.candidates {
        let mut after = candidate.clone();
        let ran = used.iter().find(|(agent, _)| *agent == candidate.name);
        if ran.is_none() && record.void().is_some() {
            continue;
        }
        after.lived(
            ran.is_some(),
            ran.map_or(0, |(_, tokens)| (*tokens).max(0) as u64),
        );
        db.run(
            "UPDATE agents SET energy = $1, tokens = $2, turns = $3, skipped = $4 WHERE name = $5",
            args![
                after.energy,
                after.tokens as i64,
                after.turns as i64,
                i64::from(after.skipped),
                after.name
            ],
        )?;
    }
    Ok(true)
}

pub(super) fn find(db: &mut Db, id: i64) -> Result<CycleRecord, ForumError> {
    let row = db.row(&format!("{SELECT} WHERE c.id = $1"), args![id])?;
    row.map(|row| cycle(&row))
        .transpose()?
        .ok_or(ForumError::Missing { what: "cycle", id })
}

pub(super) fn last_number(db: &mut Db, forum: &str) -> Result<i64, ForumError> {
    let row = db.row(
        "SELECT MAX(number) FROM cycles WHERE forum = $1",
        args![forum],
    )?;
    Ok(first_int(row)?.unwrap_or(0).max(0))
}

/// Returns the lowest cycle number of a forum, at most 1.
pub(super) fn first_number(db: &mut Db, forum: &str) -> Result<i64, ForumError> {
    let row = db.row(
        "SELECT MIN(number) FROM cycles WHERE forum = $1",
        args![forum],
    )?;
    Ok(first_int(row)?.unwrap_or(1).min(1))
}

pub(super) fn all(db: &mut Db) -> Result<Vec<CycleRecord>, ForumError> {
    db.rows(&format!("{SELECT} ORDER BY c.id"), &[])?
        .iter()
        .map(cycle)
        .collect()
}
