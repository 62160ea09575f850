//! Posts as rows.

use crate::forum::db::{Db, Row, args};
use crate::forum::error::ForumError;
use kd_forum::words::Post;

/// A post with its quote, for [`post`].
pub(in crate::forum) const SELECT: &str = "SELECT p.id, p.thread_id, p.author, p.body, p.quote_post_id, q.body, q.author, p.created_at, \
     p.edited_at, p.deleted_at, p.run_id, q.deleted_at, p.hidden_at, q.hidden_at, p.erased_at FROM posts p LEFT JOIN posts q ON q.id = p.quote_post_id";

/// Reads a post from a row of [`SELECT`].
pub(in crate::forum) fn post(row: &Row) -> Result<Post, ForumError> {
    // Quoting a hidden post does not show it again.
    let quote_gone = row.maybe_int(11)?.is_some() || row.maybe_int(13)?.is_some();
    Ok(Post {
        id: row.int(0)?,
        thread_id: row.int(1)?,
        author: row.line(2)?,
        body: row.text(3)?,
        quote_post_id: row.maybe_int(4)?,
        quoted_post_body: row.maybe_text(5)?.filter(|_| !quote_gone),
        quoted_author: row.maybe_line(6)?,
        created_at: row.time(7)?,
        edited_at: row.maybe_time(8)?,
        deleted_at: row.maybe_time(9)?,
        erased_at: row.maybe_time(14)?,
        run_id: row.maybe_int(10)?,
        hidden_at: row.maybe_time(12)?,
    })
}

pub(in crate::forum) fn find(db: &mut Db, id: i64) -> Result<Post, ForumError> {
    let row = db.row(&format!("{SELECT} WHERE p.id = $1"), args![id])?;
    row.map(|row| post(&row))
        .transpose()?
        .ok_or(ForumError::Missing { what: "post", id })
}
