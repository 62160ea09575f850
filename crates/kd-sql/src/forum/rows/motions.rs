//! Motions as rows.

use crate::forum::db::{Db, Row, args, first_int};
use crate::forum::error::ForumError;
use kd_forum::governance::{Motion, MotionState};
use kd_forum::words::MotionKind;

pub(in crate::forum) const SELECT: &str = "SELECT id, forum, kind, key, value, before, title, reason, proposer, created_at, closes_after, state, outcome, thread_id FROM motions";

pub(in crate::forum) fn motion(row: &Row) -> Result<Motion, ForumError> {
    Ok(Motion {
        id: row.int(0)?,
        forum: row.line(1)?,
        kind: row.word(2, "a kind of motion", MotionKind::parse)?,
        key: row.maybe_line(3)?,
        value: row.maybe_text(4)?,
        before: row.maybe_text(5)?,
        title: row.line(6)?,
        reason: row.text(7)?,
        proposer: row.line(8)?,
        created_at: row.time(9)?,
        closes_after: row.int(10)?,
        state: row.word(11, "a state of a motion", MotionState::parse)?,
        outcome: row.line(12)?,
        thread_id: row.maybe_int(13)?,
    })
}

pub(in crate::forum) fn find(db: &mut Db, id: i64) -> Result<Motion, ForumError> {
    let row = db.row(&format!("{SELECT} WHERE id = $1"), args![id])?;
    row.map(|row| motion(&row))
        .transpose()?
        .ok_or(ForumError::Missing { what: "motion", id })
}

/// Returns the motion that a thread belongs to.
pub(in crate::forum) fn of_thread(db: &mut Db, thread: i64) -> Result<Option<i64>, ForumError> {
    let row = db.row("SELECT id FROM motions WHERE thread_id = $1", args![thread])?;
    first_int(row)
}

/// Stores the state of a motion and how it came about.
pub(in crate::forum) fn set_state(
    db: &mut Db,
    id: i64,
    state: MotionState,
    outcome: &str,
) -> Result<(), ForumError> {
    db.run(
        "UPDATE motions SET state = $1, outcome = $2 WHERE id = $3",
        args![state.word(), outcome, id],
    )?;
    Ok(())
}
