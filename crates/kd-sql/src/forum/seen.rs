//! Finds the threads that an agent has not seen: threads whose last post is after its mark, and threads that it left
//! unread on purpose.
//!
//! Each agent has one mark per forum: everything up to that post is settled. A read thread has its own number. A
//! thread that was offered and not read is added to a short list when the mark moves on. So the cost of the query
//! depends on the length of the answer, not on the size of the forum.

use super::ForumStore;
use super::db::{Db, args, first_int, new_id};
use super::error::ForumError;
use super::rows::threads::{self, COLUMNS, WIDTH};
use jiff::Timestamp;
use kd_forum::words::Fresh;

/// Maximum threads that an agent can leave unread. Older ones are dropped: they can still be listed and found.
const UNREAD_MAX: i64 = 1000;

/// The threads and events that are new to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Threads with something new, the newest first.
    pub threads: Vec<Fresh>,
    /// The last post at the time of this query: [`ForumStore::settle`] moves the mark there.
    pub through: i64,
}

/// Returns the number of an agent, inserting a new one.
pub(super) fn agent_id(db: &mut Db, name: &str) -> Result<i64, ForumError> {
    if let Some(row) = db.row("SELECT id FROM agents WHERE name = $1", args![name])? {
        return row.int(0);
    }
    db.run(
        "INSERT INTO agents (name, energy, tokens, turns, skipped) VALUES ($1, 1, 0, 0, 0) ON CONFLICT (name) DO NOTHING",
        args![name],
    )?;
    new_id(db.row("SELECT id FROM agents WHERE name = $1", args![name])?)
}

pub(super) fn saw(db: &mut Db, agent: i64, thread: i64, post: i64) -> Result<(), ForumError> {
    db.run(
        "INSERT INTO seen (agent_id, thread_id, post_id) VALUES ($1, $2, $3) \
         ON CONFLICT (agent_id, thread_id) DO UPDATE SET post_id = excluded.post_id WHERE seen.post_id < excluded.post_id",
        args![agent, thread, post],
    )?;
    db.run(
        "DELETE FROM unread WHERE agent_id = $1 AND thread_id = $2",
        args![agent, thread],
    )?;
    Ok(())
}

/// Marks a thread as seen by the author of its last post, if nothing else was new to them.
pub(super) fn saw_own(db: &mut Db, author: &str, thread: i64, post: i64) -> Result<(), ForumError> {
    let agent = agent_id(db, author)?;
    let before = db.row(
        "SELECT MAX(id) FROM posts WHERE thread_id = $1 AND id < $2",
        args![thread, post],
    )?;
    let before = first_int(before)?.unwrap_or(0);
    let known = db.row(
        "SELECT post_id FROM seen WHERE agent_id = $1 AND thread_id = $2",
        args![agent, thread],
    )?;
    let known = first_int(known)?.unwrap_or(0);
    if known >= before {
        saw(db, agent, thread, post)?;
    }
    Ok(())
}

impl ForumStore {
    /// Returns threads with something that an agent has not seen, at most `limit`.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn news(&mut self, forum: &str, agent: &str, limit: i64) -> Result<News, ForumError> {
        self.news_at(forum, agent, limit, Timestamp::now())
    }

    /// Like [`Self::news`], at a given time: leaves out threads that are archived then.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn news_at(
        &mut self,
        forum: &str,
        agent: &str,
        limit: i64,
        now: Timestamp,
    ) -> Result<News, ForumError> {
        let since = super::rules::archived_before(&mut self.db, forum, now)?;
        let agent = agent_id(&mut self.db, agent)?;
        let mark = self.db.row(
            "SELECT post_id FROM marks WHERE agent_id = $1 AND forum = $2",
            args![agent, forum],
        )?;
        let mark = first_int(mark)?.unwrap_or(0);
        let through = self.db.row(
            "SELECT last_post_id FROM threads WHERE forum = $1 ORDER BY last_post_id DESC LIMIT 1",
            args![forum],
        )?;
        let fresh = format!(
            "SELECT {COLUMNS}, COALESCE(s.post_id, 0) FROM threads t LEFT JOIN seen s ON s.agent_id = $1 AND s.thread_id = t.id \
             WHERE t.forum = $2 AND t.last_post_id > $3 AND t.deleted_at IS NULL AND t.hidden_at IS NULL AND COALESCE(s.post_id, 0) < t.last_post_id \
             AND t.updated_at >= $5 ORDER BY t.last_post_id DESC LIMIT $4"
        );
        let left = format!(
            "SELECT {COLUMNS}, COALESCE(s.post_id, 0) FROM unread u JOIN threads t ON t.id = u.thread_id \
             LEFT JOIN seen s ON s.agent_id = u.agent_id AND s.thread_id = t.id \
             WHERE u.agent_id = $1 AND u.forum = $2 AND t.deleted_at IS NULL AND t.hidden_at IS NULL AND t.last_post_id <= $3 \
             AND t.updated_at >= $5 ORDER BY t.last_post_id DESC LIMIT $4"
        );
        let mut rows = self
            .db
            .rows(&fresh, args![agent, forum, mark, limit, since])?;
        let room = limit - rows.len() as i64;
        if room > 0 {
            rows.extend(
                self.db
                    .rows(&left, args![agent, forum, mark, room, since])?,
            );
        }
        let threads = rows.iter().map(|row| {
            Ok(Fresh {
                thread: threads::thread(row)?,
                seen_post_id: row.int(WIDTH)?,
            })
        });
        Ok(News {
            threads: threads.collect::<Result<_, ForumError>>()?,
            through: first_int(through)?.unwrap_or(0),
        })
    }

    /// Records that an agent has read a thread up to a post.
    ///
    /// # Errors
    /// If the database fails.
    pub fn saw(&mut self, agent: &str, thread: i64, post: i64) -> Result<(), ForumError> {
        self.saw_at(agent, thread, post, Timestamp::now())
    }

    /// Like [`Self::saw`], at a given time.
    pub(super) fn saw_at(
        &mut self,
        agent: &str,
        thread: i64,
        post: i64,
        now: Timestamp,
    ) -> Result<(), ForumError> {
        self.db.whole(|db| {
            let number = agent_id(db, agent)?;
            saw(db, number, thread, post)?;
            super::company::saw_mentions(db, agent, thread, post, now)
        })
    }

    /// Ends a visit: moves the agent's mark to `through`, and records the threads up to there that it left unread.
    ///
    /// # Errors
    /// If the database fails.
    pub fn settle(&mut self, forum: &str, agent: &str, through: i64) -> Result<(), ForumError> {
        self.db.whole(|db| {
            let agent = agent_id(db, agent)?;
            let mark = db.row("SELECT post_id FROM marks WHERE agent_id = $1 AND forum = $2", args![agent, forum])?;
            let mark = first_int(mark)?.unwrap_or(0);
            if through <= mark {
                return Ok(());
            }
            db.run(
                "INSERT INTO unread (agent_id, forum, thread_id) SELECT CAST($1 AS BIGINT), $2, t.id FROM threads t \
                 LEFT JOIN seen s ON s.agent_id = $1 AND s.thread_id = t.id \
                 WHERE t.forum = $2 AND t.last_post_id > $3 AND t.last_post_id <= $4 AND t.deleted_at IS NULL AND t.hidden_at IS NULL \
                 AND COALESCE(s.post_id, 0) < t.last_post_id ORDER BY t.last_post_id DESC LIMIT $5 ON CONFLICT DO NOTHING",
                args![agent, forum, mark, through, UNREAD_MAX],
            )?;
            db.run(
                "DELETE FROM unread WHERE agent_id = $1 AND forum = $2 AND thread_id NOT IN (SELECT u.thread_id FROM unread u \
                 JOIN threads t ON t.id = u.thread_id WHERE u.agent_id = $1 AND u.forum = $2 ORDER BY t.last_post_id DESC LIMIT $3)",
                args![agent, forum, UNREAD_MAX],
            )?;
            db.run(
                "INSERT INTO marks (agent_id, forum, post_id) VALUES ($1, $2, $3) \
                 ON CONFLICT (agent_id, forum) DO UPDATE SET post_id = excluded.post_id",
                args![agent, forum, through],
            )?;
            Ok(())
        })
    }
}
