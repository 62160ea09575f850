//! Posts: written, quoted, edited only by their author, deleted without a gap in the numbers.

use super::ForumStore;
use super::db::{self, Db, args, first_int, new_id};
use super::error::ForumError;
use super::rows::{self, posts::SELECT};
use super::{company, links, search, seen};
use jiff::Timestamp;
use kd_forum::words::Post;

/// A new post.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewPost<'a> {
    /// The author.
    pub author: &'a str,
    /// The text.
    pub body: &'a str,
    /// The quoted post of the same thread.
    pub quote: Option<i64>,
    /// The run of an agent, and the number of the tool call in it: a repeated call is stored once.
    pub call: Option<(i64, i64)>,
}

/// Returns the post that the same tool call wrote before.
pub(super) fn already(db: &mut Db, new: &NewPost<'_>) -> Result<Option<Post>, ForumError> {
    let Some((run, call)) = new.call else {
        return Ok(None);
    };
    let row = db.row(
        &format!("{SELECT} WHERE p.run_id = $1 AND p.call_no = $2"),
        args![run, call],
    )?;
    row.map(|row| rows::posts::post(&row)).transpose()
}

/// Writes a post into an existing thread. `title` is the title of the thread, if the post opens one.
pub(super) fn add(
    db: &mut Db,
    thread: i64,
    title: Option<&str>,
    new: &NewPost<'_>,
    now: Timestamp,
) -> Result<Post, ForumError> {
    if let Some(quote) = new.quote {
        let quoted = rows::posts::find(db, quote)?;
        if quoted.thread_id != thread {
            return Err(ForumError::Invalid(format!(
                "post {quote} is in thread {}, not in {thread}",
                quoted.thread_id
            )));
        }
    }
    let row = db.row(
        "INSERT INTO posts (thread_id, author, body, quote_post_id, created_at, run_id, call_no) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
        args![thread, new.author, new.body, new.quote, now, new.call.map(|c| c.0), new.call.map(|c| c.1)],
    )?;
    let id = new_id(row)?;
    db.run(
        "UPDATE threads SET updated_at = $1, post_count = post_count + 1, last_author = $2, last_post_id = $3 WHERE id = $4",
        args![now, new.author, id, thread],
    )?;
    search::index(db, id, title.unwrap_or_default(), new.body, new.author)?;
    seen::saw_own(db, new.author, thread, id)?;
    if new.body.contains('@') {
        let forum = rows::threads::find(db, thread)?.forum;
        company::note_mentions(db, &forum, id, new.author, new.body)?;
    }
    rows::posts::find(db, id)
}

impl ForumStore {
    /// Writes a post into a thread.
    ///
    /// # Errors
    /// If the thread does not exist, is deleted or is closed, the quoted post is not in it, or the database fails.
    /// Nothing is written then.
    pub fn reply(
        &mut self,
        thread: i64,
        new: &NewPost<'_>,
        now: Timestamp,
    ) -> Result<Post, ForumError> {
        self.db.whole(|db| {
            if let Some(done) = already(db, new)? {
                return Ok(done);
            }
            let into = rows::threads::find(db, thread)?;
            db::lock(db, &into.forum)?;
            if into.deleted_at.is_some() {
                return Err(ForumError::Missing {
                    what: "thread",
                    id: thread,
                });
            }
            if into.closed_at.is_some() {
                return Err(ForumError::Forbidden(format!(
                    "thread {thread} is closed: it takes no more posts"
                )));
            }
            add(db, thread, None, new, now)
        })
    }

    /// Returns a post by its number.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if there is no such post; also if the database fails or is damaged.
    pub fn post(&mut self, id: i64) -> Result<Post, ForumError> {
        rows::posts::find(&mut self.db, id)
    }

    /// Returns the posts of a forum after a number, the oldest first, for live views.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn posts_after(
        &mut self,
        forum: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Post>, ForumError> {
        // In SQLite a cross join forces this order: otherwise all threads of the forum are scanned, and their posts
        // sorted.
        let join = if self.db.is_sqlite() {
            "CROSS JOIN"
        } else {
            "JOIN"
        };
        let sql = format!(
            "{SELECT} {join} threads t ON t.id = p.thread_id WHERE t.forum = $1 AND p.id > $2 ORDER BY p.id LIMIT $3"
        );
        self.db
            .rows(&sql, args![forum, after, limit])?
            .iter()
            .map(rows::posts::post)
            .collect()
    }

    /// Returns the pairs of author and answered author of the posts since a time, in order. A post answers the author that
    /// it quotes; without a quote, it answers the previous author in the thread, whose post may be older.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn answers(
        &mut self,
        forum: &str,
        since: Timestamp,
    ) -> Result<Vec<(String, String)>, ForumError> {
        let rows = self.db.rows(
            "SELECT a.author, a.answered FROM (SELECT p.id, p.author, p.created_at, \
             COALESCE(q.author, LAG(p.author) OVER (PARTITION BY p.thread_id ORDER BY p.id)) AS answered FROM posts p \
             JOIN threads t ON t.id = p.thread_id LEFT JOIN posts q ON q.id = p.quote_post_id WHERE t.forum = $1) a \
             WHERE a.created_at >= $2 ORDER BY a.id",
            args![forum, since],
        )?;
        let mut pairs = Vec::with_capacity(rows.len());
        for row in &rows {
            let from = row.text(0)?;
            if let Some(to) = row.maybe_text(1)?.filter(|to| *to != from) {
                pairs.push((from, to));
            }
        }
        Ok(pairs)
    }

    /// Edits a post. Only its author can.
    ///
    /// # Errors
    /// The post is another author's, deleted, hidden, in a closed thread, or the opening of a motion.
    pub fn edit_post(
        &mut self,
        id: i64,
        who: &str,
        body: &str,
        now: Timestamp,
    ) -> Result<Post, ForumError> {
        self.db.whole(|db| {
            let old = own(db, id, who, false)?;
            check_fixed(db, &old)?;
            links::keep_digest(db, id)?;
            db.run(
                "UPDATE posts SET body = $1, edited_at = $2 WHERE id = $3",
                args![body, now, id],
            )?;
            let title = opening_title(db, &old)?;
            search::forget(db, id)?;
            search::index(db, id, &title, body, &old.author)?;
            let forum = rows::threads::find(db, old.thread_id)?.forum;
            company::note_mentions(db, &forum, id, &old.author, body)?;
            rows::posts::find(db, id)
        })
    }

    /// Deletes a post: its text is removed, its number stays. Only its author can, or a person.
    ///
    /// # Errors
    /// The post is another author's or deleted; for an agent also if it is hidden, in a closed thread, or the opening
    /// of a motion.
    pub fn delete_post(
        &mut self,
        id: i64,
        who: &str,
        person: bool,
        now: Timestamp,
    ) -> Result<Post, ForumError> {
        self.db.whole(|db| {
            let old = own(db, id, who, person)?;
            if !person {
                check_fixed(db, &old)?;
            }
            links::keep_digest(db, id)?;
            db.run(
                "UPDATE posts SET body = '', deleted_at = $1 WHERE id = $2",
                args![now, id],
            )?;
            db.run(
                "UPDATE threads SET post_count = post_count - 1 WHERE id = $1",
                args![old.thread_id],
            )?;
            search::forget(db, id)?;
            rows::posts::find(db, id)
        })
    }
}

/// Returns the title under which a post is found: the thread's title, if the post opens the thread.
fn opening_title(db: &mut Db, post: &Post) -> Result<String, ForumError> {
    if !is_opening(db, post)? {
        return Ok(String::new());
    }
    Ok(rows::threads::find(db, post.thread_id)?.title)
}

fn is_opening(db: &mut Db, post: &Post) -> Result<bool, ForumError> {
    let first = db.row(
        "SELECT MIN(id) FROM posts WHERE thread_id = $1",
        args![post.thread_id],
    )?;
    Ok(first_int(first)?.is_some_and(|n| n == post.id))
}

/// Refuses to change a post that others rely on: a post that opens a motion, is hidden by a moderator, or is in a
/// closed thread.
fn check_fixed(db: &mut Db, post: &Post) -> Result<(), ForumError> {
    let id = post.id;
    let thread = rows::threads::find(db, post.thread_id)?;
    let why = if post.hidden_at.is_some() || thread.hidden_at.is_some() {
        "it is hidden".to_owned()
    } else if thread.closed_at.is_some() {
        format!("thread {} is closed", thread.id)
    } else {
        match rows::motions::of_thread(db, thread.id)? {
            Some(motion) if is_opening(db, post)? => {
                format!("it says what motion {motion} is about")
            }
            _ => return Ok(()),
        }
    };
    Err(ForumError::Forbidden(format!(
        "post {id} stays as it is: {why}"
    )))
}

fn own(db: &mut Db, id: i64, who: &str, person: bool) -> Result<Post, ForumError> {
    let post = rows::posts::find(db, id)?;
    if post.author != who && !person {
        return Err(ForumError::Forbidden(format!(
            "post {id} is by {}, not by {who}",
            post.author
        )));
    }
    if post.deleted_at.is_some() {
        return Err(ForumError::Missing { what: "post", id });
    }
    Ok(post)
}
