//! Links of the chain as rows.

use crate::forum::db::Row;
use crate::forum::error::ForumError;
use kd_forum::chain::{Link, Origin};

/// Reads a link from the columns of [`cycles`] starting at `at`.
pub(in crate::forum) fn link(row: &Row, at: usize) -> Result<Option<Link>, ForumError> {
    let Some(chain) = row.maybe_line(at)? else {
        return Ok(None);
    };
    Ok(Some(Link {
        chain,
        number: row.int(at + 1)?,
        origin: row.word(at + 2, "an origin of a secret", Origin::parse)?,
        commitment: row.maybe_text(at + 3)?,
        after_post: row.int(at + 4)?,
        through_post: row.int(at + 5)?,
        posts: row.text(at + 6)?,
        previous: row.text(at + 7)?,
        next: row.text(at + 8)?,
        secret: row.maybe_text(at + 9)?,
        void: row.maybe_text(at + 10)?,
        renewed: row.maybe_text(at + 11)?,
        seal: row.maybe_text(at + 12)?,
    }))
}
