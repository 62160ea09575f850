//! Threads: opened with their first post, listed by activity, read with all their posts.

use super::ForumStore;
use super::db::{self, args, new_id};
use super::error::ForumError;
use super::posts::{self, NewPost};
use super::rows::{self, threads::COLUMNS};
use super::sight::Sight;
use jiff::Timestamp;
use kd_forum::words::{Post, Thread};

impl ForumStore {
    /// Opens a thread with its first post.
    ///
    /// # Errors
    /// If the post quotes another post, or the database fails. Nothing is written then.
    pub fn create_thread(
        &mut self,
        forum: &str,
        title: &str,
        post: &NewPost<'_>,
        now: Timestamp,
    ) -> Result<(Thread, Post), ForumError> {
        self.db.whole(|db| {
            db::lock(db, forum)?;
            if let Some(done) = posts::already(db, post)? {
                return Ok((rows::threads::find(db, done.thread_id)?, done));
            }
            let row = db.row(
                "INSERT INTO threads (forum, title, author, created_at, updated_at, post_count, last_author, last_post_id) \
                 VALUES ($1, $2, $3, $4, $4, 0, $3, 0) RETURNING id",
                args![forum, title, post.author, now],
            )?;
            let id = new_id(row)?;
            let post = posts::add(db, id, Some(title), post, now)?;
            Ok((rows::threads::find(db, id)?, post))
        })
    }

    /// Returns threads of a forum, the newest activity first.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn threads(&mut self, forum: &str, limit: i64) -> Result<Vec<Thread>, ForumError> {
        self.threads_for(Sight::All, forum, limit)
    }

    /// Like [`Self::threads`], as seen by a viewer.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn threads_for(
        &mut self,
        sight: Sight,
        forum: &str,
        limit: i64,
    ) -> Result<Vec<Thread>, ForumError> {
        self.threads_since(sight, forum, Timestamp::MIN, limit)
    }

    /// Returns threads that agents see at a given time: neither hidden nor archived.
    pub(super) fn threads_shown(
        &mut self,
        forum: &str,
        limit: i64,
        now: Timestamp,
    ) -> Result<Vec<Thread>, ForumError> {
        let since = super::rules::archived_before(&mut self.db, forum, now)?;
        self.threads_since(Sight::Public, forum, since, limit)
    }

    fn threads_since(
        &mut self,
        sight: Sight,
        forum: &str,
        since: Timestamp,
        limit: i64,
    ) -> Result<Vec<Thread>, ForumError> {
        let shown = sight.of("t");
        let sql = format!(
            "SELECT {COLUMNS} FROM threads t WHERE t.forum = $1 AND t.deleted_at IS NULL{shown} AND t.updated_at >= $2 \
             ORDER BY t.last_post_id DESC LIMIT $3"
        );
        self.db
            .rows(&sql, args![forum, since, limit])?
            .iter()
            .map(rows::threads::thread)
            .collect()
    }

    /// Returns the numbers of threads and posts in a forum, without deleted ones.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn counts(&mut self, forum: &str) -> Result<(i64, i64), ForumError> {
        let row = self.db.row(
            "SELECT COUNT(*), CAST(COALESCE(SUM(t.post_count), 0) AS BIGINT) FROM threads t WHERE t.forum = $1 AND t.deleted_at IS NULL",
            args![forum],
        )?;
        row.map_or(Ok((0, 0)), |row| Ok((row.int(0)?, row.int(1)?)))
    }

    /// Returns a thread and its posts after a number, the oldest first. Deleted posts are included without their text.
    ///
    /// # Errors
    /// Those of [`Self::thread_for`].
    pub fn thread(
        &mut self,
        id: i64,
        after: i64,
        limit: i64,
    ) -> Result<(Thread, Vec<Post>), ForumError> {
        self.thread_for(Sight::All, id, after, limit)
    }

    /// Like [`Self::thread`], as seen by a viewer: not everyone sees a hidden thread.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if the thread does not exist, is deleted, or is hidden from the viewer; also if the
    /// database fails or is damaged.
    pub fn thread_for(
        &mut self,
        sight: Sight,
        id: i64,
        after: i64,
        limit: i64,
    ) -> Result<(Thread, Vec<Post>), ForumError> {
        let thread = rows::threads::find(&mut self.db, id)?;
        let hidden = thread.hidden_at.is_some() && sight == Sight::Public;
        if thread.deleted_at.is_some() || hidden {
            return Err(ForumError::Missing { what: "thread", id });
        }
        let sql = format!(
            "{} WHERE p.thread_id = $1 AND p.id > $2{} ORDER BY p.id LIMIT $3",
            rows::posts::SELECT,
            sight.of("p")
        );
        let posts = self
            .db
            .rows(&sql, args![id, after, limit])?
            .iter()
            .map(rows::posts::post)
            .collect::<Result<_, _>>()?;
        Ok((thread, posts))
    }

    /// Deletes a thread. Only its author can, or a person.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if there is no such thread, [`ForumError::Forbidden`] if `who` may not delete it; also
    /// if the database fails.
    pub fn delete_thread(
        &mut self,
        id: i64,
        who: &str,
        person: bool,
        now: Timestamp,
    ) -> Result<(), ForumError> {
        self.db.whole(|db| {
            let thread = rows::threads::find(db, id)?;
            if thread.author != who && !person {
                return Err(ForumError::Forbidden(format!(
                    "thread {id} is by {}, not by {who}",
                    thread.author
                )));
            }
            db.run(
                "UPDATE threads SET deleted_at = $1 WHERE id = $2 AND deleted_at IS NULL",
                args![now, id],
            )?;
            Ok(())
        })
    }
}
