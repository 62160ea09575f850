//! Full-text search: SQLite's FTS5, PostgreSQL's `tsvector`. All words must occur; the newest posts come first, so that
//! common words cost no more than rare ones (ranking every match would be slow).

use super::ForumStore;
use super::db::{Db, args};
use super::error::ForumError;
use super::rows::threads::{self, COLUMNS, WIDTH};
use super::sight::Sight;
use kd_forum::words::{Hit, SearchIn};

/// Maximum characters of an excerpt.
const EXCERPT: usize = 160;

pub(super) fn index(
    db: &mut Db,
    post: i64,
    title: &str,
    body: &str,
    author: &str,
) -> Result<(), ForumError> {
    let sql = if db.is_sqlite() {
        "INSERT INTO words (rowid, title, body, author) VALUES ($1, $2, $3, $4)"
    } else {
        // The weights record whether a word is in the title, the body or the author.
        "INSERT INTO words (post_id, words) VALUES ($1, setweight(to_tsvector('simple', $2), 'A') || \
         setweight(to_tsvector('simple', $3), 'B') || setweight(to_tsvector('simple', $4), 'C'))"
    };
    db.run(sql, args![post, title, body, author])?;
    Ok(())
}

pub(super) fn forget(db: &mut Db, post: i64) -> Result<(), ForumError> {
    let sql = if db.is_sqlite() {
        "DELETE FROM words WHERE rowid = $1"
    } else {
        "DELETE FROM words WHERE post_id = $1"
    };
    db.run(sql, args![post])?;
    Ok(())
}

/// Converts a query to the syntax of either database. Everything except letters and digits separates words, so a query
/// cannot contain operators.
fn query(text: &str, place: SearchIn, sqlite: bool) -> Option<String> {
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    if words.is_empty() {
        return None;
    }
    if sqlite {
        let column = match place {
            SearchIn::Title => "{title} : ",
            SearchIn::Body => "{body} : ",
            SearchIn::Author => "{author} : ",
            SearchIn::All => "",
        };
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        return Some(format!("{column}({})", quoted.join(" AND ")));
    }
    let weight = match place {
        SearchIn::Title => ":A",
        SearchIn::Body => ":B",
        SearchIn::Author => ":C",
        SearchIn::All => "",
    };
    let marked: Vec<String> = words
        .iter()
        .map(|word| format!("'{}'{weight}", word.to_lowercase()))
        .collect();
    Some(marked.join(" & "))
}

impl ForumStore {
    /// Returns posts that contain all words of a text, the newest first.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn search(
        &mut self,
        forum: &str,
        text: &str,
        place: SearchIn,
        limit: i64,
    ) -> Result<Vec<Hit>, ForumError> {
        self.search_for(Sight::All, forum, text, place, limit)
    }

    /// Like [`Self::search`], as seen by a viewer.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn search_for(
        &mut self,
        sight: Sight,
        forum: &str,
        text: &str,
        place: SearchIn,
        limit: i64,
    ) -> Result<Vec<Hit>, ForumError> {
        let sqlite = self.db.is_sqlite();
        let Some(query) = query(text, place, sqlite) else {
            return Ok(Vec::new());
        };
        let from = if sqlite {
            // Cross joins force this order: otherwise the forum's threads are scanned, and each of their posts is
            // looked up.
            "words w CROSS JOIN posts p ON p.id = w.rowid CROSS JOIN threads t ON t.id = p.thread_id WHERE words MATCH $1"
        } else {
            "words w JOIN posts p ON p.id = w.post_id JOIN threads t ON t.id = p.thread_id WHERE w.words @@ to_tsquery('simple', $1)"
        };
        let newest = if sqlite { "w.rowid" } else { "w.post_id" };
        let sql = format!(
            "SELECT {COLUMNS}, p.id, p.author, SUBSTR(p.body, 1, {EXCERPT}) FROM {from} AND t.forum = $2 AND t.deleted_at IS NULL{}{} ORDER BY {newest} DESC LIMIT $3",
            sight.of("t"),
            sight.of("p")
        );
        let rows = self.db.rows(&sql, args![query, forum, limit])?;
        let hits = rows.iter().map(|row| {
            Ok(Hit {
                thread: threads::thread(row)?,
                post_id: row.int(WIDTH)?,
                author: row.line(WIDTH + 1)?,
                excerpt: row.text(WIDTH + 2)?,
            })
        });
        hits.collect()
    }
}
