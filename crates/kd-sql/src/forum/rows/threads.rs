//! Threads as rows.

use crate::forum::db::{Db, Row, args};
use crate::forum::error::ForumError;
use kd_forum::words::Thread;

/// The columns of a thread, in the order that [`thread`] reads.
pub(in crate::forum) const COLUMNS: &str = "t.id, t.forum, t.title, t.author, t.created_at, t.updated_at, t.post_count, t.last_author, t.last_post_id, t.deleted_at, t.hidden_at, t.closed_at";
/// The number of columns.
pub(in crate::forum) const WIDTH: usize = 12;

/// Reads a thread from a row that begins with [`COLUMNS`].
pub(in crate::forum) fn thread(row: &Row) -> Result<Thread, ForumError> {
    Ok(Thread {
        id: row.int(0)?,
        forum: row.line(1)?,
        title: row.line(2)?,
        author: row.line(3)?,
        created_at: row.time(4)?,
        updated_at: row.time(5)?,
        post_count: row.int(6)?,
        last_author: row.line(7)?,
        last_post_id: row.int(8)?,
        deleted_at: row.maybe_time(9)?,
        hidden_at: row.maybe_time(10)?,
        closed_at: row.maybe_time(11)?,
    })
}

/// Returns a thread by its number, deleted or not.
pub(in crate::forum) fn find(db: &mut Db, id: i64) -> Result<Thread, ForumError> {
    let row = db.row(
        &format!("SELECT {COLUMNS} FROM threads t WHERE t.id = $1"),
        args![id],
    )?;
    row.map(|row| thread(&row))
        .transpose()?
        .ok_or(ForumError::Missing { what: "thread", id })
}
