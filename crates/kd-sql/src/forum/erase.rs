//! Erases texts at the owner's request. No tool of an agent leads here.
//!
//! A post keeps its number, author, time and digest, from which seeds and seals are computed, so the audit still
//! succeeds. Other texts that repeat it become [`TOMBSTONE`]. Input: posts, and a test that recognizes repetitions.
//! Output: the erased texts. Erased bytes are also removed from the file's free pages, its log and older copies of it.

use super::db::{self, Db, Row, Value, args, first_int};
use super::error::ForumError;
use super::shortened::Covered;
use super::{ForumStore, Place, links, log, rows, search};
use jiff::Timestamp;
use kd_forum::logline::{LogEvent, LogLine};
use kd_store::beneath::{Folder, Kind};
use kd_store::forget::TOMBSTONE;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Rows read from the database at a time.
const PAGE: i64 = 1_000;
/// Bytes of a file searched at a time.
const CHUNK: usize = 4 << 20;
/// Bytes searched twice, because a text may lie across the border of two chunks.
const OVERLAP: usize = 64 << 10;

/// The posts to erase.
#[derive(Clone, Copy, Debug)]
pub enum Posts<'a> {
    /// Those with these numbers, of one forum. Others that repeat them are reported.
    These(&'a str, &'a [i64]),
    /// All that repeat the text, in every forum of the store.
    Repeating,
}

/// The texts that were erased, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Posts, by number.
    pub posts: Vec<i64>,
    /// Posts that repeat the text and stay.
    pub quotes: Vec<i64>,
    /// Number of other texts: titles, reasons, notes, log lines.
    pub texts: usize,
    /// Whether bytes erased earlier are still in unused pages, because another process used the store.
    pub unused: bool,
    /// The other texts, by kind: the numbers of their items, or 0.
    pub items: BTreeMap<&'static str, Vec<i64>>,
    /// Cycles whose seals cover such a text: they cannot be computed again.
    pub unproved: Vec<i64>,
    /// Copies of older versions of the store, which are deleted.
    pub copies: Vec<PathBuf>,
}

impl Erased {
    /// Returns whether there is nothing to erase.
    pub fn is_nothing(&self) -> bool {
        self.posts.is_empty() && self.texts == 0
    }
}

/// An erased text, as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    /// The forum.
    pub forum: String,
    /// The time.
    pub at: Timestamp,
    /// The owner's name.
    pub by: String,
    /// The kind of item that holds it: `post`, `thread`, `run`.
    pub what: String,
    /// The number of the item; 0 if it has none.
    pub item: i64,
}

/// Erased texts of one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErasedOn {
    /// The day, in UTC.
    pub day: String,
    /// The owner's name.
    pub by: String,
    /// Number of posts.
    pub posts: usize,
    /// Number of other texts.
    pub texts: usize,
}

/// A table with texts that may repeat a post.
struct Texts {
    /// The kind of its items.
    what: &'static str,
    table: &'static str,
    /// Its primary key, whose first column is the item's number or else text.
    key: &'static [&'static str],
    is_numbered: bool,
    /// The forum of a row, in SQL.
    forum: &'static str,
    columns: &'static [&'static str],
}

/// Every column with free text, except posts and the log.
#[rustfmt::skip]
const TEXTS: &[Texts] = &[
    Texts { what: "thread", table: "threads", key: &["id"], is_numbered: true, forum: "forum", columns: &["title"] },
    Texts { what: "motion", table: "motions", key: &["id"], is_numbered: true, forum: "forum", columns: &["title", "reason", "value", "outcome"] },
    Texts {
        what: "vote", table: "votes", key: &["motion_id", "agent"], is_numbered: true,
        forum: "(SELECT m.forum FROM motions m WHERE m.id = motion_id)", columns: &["reason"],
    },
    Texts { what: "run", table: "runs", key: &["id"], is_numbered: true, forum: "forum", columns: &["reason", "claim"] },
    Texts {
        what: "cycle", table: "links", key: &["cycle_id"], is_numbered: true,
        forum: "(SELECT c.forum FROM cycles c WHERE c.id = cycle_id)", columns: &["void"],
    },
    Texts { what: "entry", table: "orders", key: &["id"], is_numbered: true, forum: "forum", columns: &["before", "after", "reason"] },
    Texts { what: "note", table: "notes", key: &["forum", "name"], is_numbered: false, forum: "forum", columns: &["body"] },
    Texts { what: "profile", table: "profiles", key: &["forum", "name"], is_numbered: false, forum: "forum", columns: &["body"] },
    Texts { what: "charter", table: "charters", key: &["forum"], is_numbered: false, forum: "forum", columns: &["body"] },
];

/// The tables with text, each with a column by which PostgreSQL rewrites it, and the value that is added to that
/// column. No view uses these columns.
const REWRITTEN: &[(&str, &str, &str)] = &[
    ("posts", "body", "''"),
    ("words", "words", "''::tsvector"),
    ("log", "line", "''"),
    ("threads", "title", "''"),
    ("motions", "title", "''"),
    ("votes", "reason", "''"),
    ("runs", "claim", "''"),
    ("links", "void", "''"),
    ("orders", "reason", "''"),
    ("notes", "body", "''"),
    ("profiles", "body", "''"),
    ("charters", "body", "''"),
];

/// Returns every erasure, of all forums.
pub(super) fn all(db: &mut Db) -> Result<Vec<Erasure>, ForumError> {
    let rows = db.rows(
        "SELECT forum, at, actor, what, item FROM erasures ORDER BY id",
        &[],
    )?;
    let erasures = rows.iter().map(|row| {
        Ok(Erasure {
            forum: row.line(0)?,
            at: row.time(1)?,
            by: row.line(2)?,
            what: row.line(3)?,
            item: row.int(4)?,
        })
    });
    erasures.collect()
}

/// Records an erasure.
pub(super) fn keep(db: &mut Db, of: &Erasure, is_purged: bool) -> Result<(), ForumError> {
    db.run(
        "INSERT INTO erasures (forum, at, actor, what, item, purged) VALUES ($1, $2, $3, $4, $5, $6)",
        args![
            of.forum.as_str(),
            of.at,
            of.by.as_str(),
            of.what.as_str(),
            of.item,
            i64::from(is_purged)
        ],
    )?;
    Ok(())
}

/// Counts the erasures of a forum by day and owner.
pub(super) fn by_day(db: &mut Db, forum: &str) -> Result<Vec<ErasedOn>, ForumError> {
    let mut days: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
    for one in all(db)?.into_iter().filter(|one| one.forum == forum) {
        let day = one.at.strftime("%Y-%m-%d").to_string();
        let (posts, texts) = days.entry((day, one.by)).or_default();
        match one.what.as_str() {
            "post" => *posts += 1,
            _ => *texts += 1,
        }
    }
    let days = days.into_iter();
    let days = days.map(|((day, by), (posts, texts))| ErasedOn {
        day,
        by,
        posts,
        texts,
    });
    Ok(days.collect())
}

impl ForumStore {
    /// Erases posts and every text that repeats them; only finds them if `dry`. Can be repeated after a kill.
    ///
    /// # Errors
    /// [`ForumError::Missing`] if there is no such post in the forum, [`ForumError::Busy`] if another process uses the
    /// store, so that erased bytes stay in its file until the next call; also if the database fails.
    pub fn erase(
        &mut self,
        posts: Posts<'_>,
        repeats: &dyn Fn(&str) -> bool,
        by: &str,
        now: Timestamp,
        dry: bool,
    ) -> Result<Erased, ForumError> {
        let (place, state) = (&self.place, self.state.as_deref());
        let (done, is_pending) = self.db.whole(|db| {
            if !dry {
                lock_all(db)?;
            }
            let mut eraser = Eraser {
                repeats,
                by,
                now,
                dry,
                done: Erased::default(),
                by_forum: BTreeMap::new(),
                counted: BTreeSet::new(),
                covered: Covered::new(place, state),
            };
            eraser.done.unused = is_pending(db)?;
            eraser.posts(db, posts)?;
            for of in TEXTS {
                eraser.texts(db, of)?;
            }
            eraser.log(db)?;
            eraser.note(db)?;
            eraser.done.unproved = eraser.covered.numbers(db)?;
            if !dry {
                eraser.covered.note(db)?;
            }
            if !eraser.done.is_nothing() || eraser.done.unused {
                eraser.done.copies = copies_of(place)?;
            }
            Ok((eraser.done, is_pending(db)?))
        })?;
        if !dry && is_pending {
            self.purge()?;
        }
        Ok(done)
    }

    /// Removes erased bytes: from the search's segments, from free pages, from the database's log, and with the copies
    /// of older versions.
    ///
    /// # Errors
    /// [`ForumError::Busy`] if another process uses the store; also if the database fails.
    pub fn purge(&mut self) -> Result<(), ForumError> {
        if self.db.is_sqlite() {
            self.db
                .script("INSERT INTO words(words) VALUES ('optimize')")?;
            self.db.script("VACUUM")?;
            for copy in copies_of(&self.place)? {
                kd_store::beneath::remove(&copy).map_err(|error| failed(&copy, &error))?;
            }
        } else {
            // Unlike VACUUM FULL, a changed column leaves out every old row, even if an older transaction sees it.
            for (table, column, nothing) in REWRITTEN {
                self.db.script(&format!(
                    "ALTER TABLE {table} ALTER COLUMN {column} TYPE {} USING {column} || {nothing}",
                    if *table == "words" {
                        "TSVECTOR"
                    } else {
                        "TEXT"
                    }
                ))?;
                // The statistics of a column hold some of its values, too.
                self.db.script(&format!("ANALYZE {table}"))?;
            }
        }
        self.db
            .run("UPDATE erasures SET purged = 1 WHERE purged = 0", &[])?;
        if self.db.is_sqlite() {
            let row = self.db.row("PRAGMA wal_checkpoint(TRUNCATE)", &[])?;
            if first_int(row)? != Some(0) {
                self.db.run(
                    "UPDATE erasures SET purged = 0 WHERE id = (SELECT MAX(id) FROM erasures)",
                    &[],
                )?;
                return Err(ForumError::Busy);
            }
        }
        Ok(())
    }
}

/// Returns whether erased bytes are still in the store.
fn is_pending(db: &mut Db) -> Result<bool, ForumError> {
    let row = db.row("SELECT 1 FROM erasures WHERE purged = 0 LIMIT 1", &[])?;
    Ok(row.is_some())
}

/// Excludes writers of all forums on a server until the end of the transaction.
fn lock_all(db: &mut Db) -> Result<(), ForumError> {
    // In one order, so that two calls do not wait for each other.
    let forums = "SELECT forum FROM threads UNION SELECT forum FROM motions UNION SELECT forum FROM runs \
         UNION SELECT forum FROM orders UNION SELECT forum FROM notes UNION SELECT forum FROM profiles \
         UNION SELECT forum FROM charters UNION SELECT forum FROM log ORDER BY forum";
    for row in db.rows(forums, &[])? {
        db::lock(db, &row.line(0)?)?;
    }
    Ok(())
}

/// A pass over the tables of a store.
struct Eraser<'a> {
    repeats: &'a dyn Fn(&str) -> bool,
    by: &'a str,
    now: Timestamp,
    dry: bool,
    done: Erased,
    /// Erased posts and the number of other texts, by forum.
    by_forum: BTreeMap<String, (Vec<i64>, usize)>,
    /// The items among the other texts: one may be found twice.
    counted: BTreeSet<String>,
    covered: Covered<'a>,
}

impl Eraser<'_> {
    fn posts(&mut self, db: &mut Db, posts: Posts<'_>) -> Result<(), ForumError> {
        let named = match posts {
            Posts::These(forum, numbers) => {
                for number in numbers {
                    self.named(db, forum, *number)?;
                }
                numbers
            }
            Posts::Repeating => &[],
        };
        let mut after = 0;
        loop {
            let rows = db.rows(
                "SELECT p.id, t.forum, p.body FROM posts p JOIN threads t ON t.id = p.thread_id \
                 WHERE p.id > $1 AND p.erased_at IS NULL ORDER BY p.id LIMIT $2",
                args![after, PAGE],
            )?;
            let Some(last) = rows.last() else { break };
            after = last.int(0)?;
            for row in &rows {
                let (post, forum, body) = (row.int(0)?, row.line(1)?, row.text(2)?);
                if named.contains(&post) || !(self.repeats)(&body) {
                    continue;
                }
                match posts {
                    Posts::Repeating => self.post(db, &forum, post)?,
                    Posts::These(..) => self.done.quotes.push(post),
                }
            }
        }
        Ok(())
    }

    /// Erases a post that the owner named. The opening of a thread is erased with its title, and with the words of its
    /// motion.
    fn named(&mut self, db: &mut Db, forum: &str, id: i64) -> Result<(), ForumError> {
        let post = rows::posts::find(db, id)?;
        let thread = rows::threads::find(db, post.thread_id)?;
        if thread.forum != forum {
            return Err(ForumError::Missing { what: "post", id });
        }
        if post.erased_at.is_some() {
            return Ok(());
        }
        self.post(db, forum, id)?;
        let first = db.row(
            "SELECT MIN(id) FROM posts WHERE thread_id = $1",
            args![thread.id],
        )?;
        if first_int(first)? != Some(id) {
            return Ok(());
        }
        if thread.title != TOMBSTONE {
            self.put(db, &TEXTS[0], forum, &[thread.id.into()], &["title"])?;
        }
        if let Some(motion) = rows::motions::of_thread(db, thread.id)? {
            self.put(db, &TEXTS[1], forum, &[motion.into()], &["title", "reason"])?;
        }
        Ok(())
    }

    fn post(&mut self, db: &mut Db, forum: &str, id: i64) -> Result<(), ForumError> {
        self.done.posts.push(id);
        self.by_forum
            .entry(forum.to_owned())
            .or_default()
            .0
            .push(id);
        if self.dry {
            return Ok(());
        }
        links::keep_digest(db, id)?;
        db.run(
            "UPDATE threads SET post_count = post_count - 1 WHERE id = (SELECT thread_id FROM posts WHERE id = $1 AND deleted_at IS NULL)",
            args![id],
        )?;
        db.run(
            "UPDATE posts SET body = '', erased_at = $1, deleted_at = COALESCE(deleted_at, $1) WHERE id = $2",
            args![self.now, id],
        )?;
        search::forget(db, id)?;
        self.record(db, forum, "post", id)
    }

    /// Finds the texts of a table that repeat the erased text.
    fn texts(&mut self, db: &mut Db, of: &Texts) -> Result<(), ForumError> {
        let (keys, columns) = (of.key.join(", "), of.columns.join(", "));
        let (mut after, mut offset) = (i64::MIN, 0);
        loop {
            let is_numbered = of.is_numbered && of.key.len() == 1;
            // The other tables are small.
            let (part, from) = match is_numbered {
                true => (format!("WHERE {keys} > $1 ORDER BY {keys} LIMIT $2"), after),
                false => (format!("ORDER BY {keys} LIMIT $2 OFFSET $1"), offset),
            };
            let sql = format!(
                "SELECT {keys}, {}, {columns} FROM {} {part}",
                of.forum, of.table
            );
            let rows = db.rows(&sql, args![from, PAGE])?;
            offset += rows.len() as i64;
            let Some(last) = rows.last() else { break };
            if is_numbered {
                after = last.int(0)?;
            }
            for row in &rows {
                self.text(db, of, row)?;
            }
        }
        Ok(())
    }

    fn text(&mut self, db: &mut Db, of: &Texts, row: &Row) -> Result<(), ForumError> {
        let mut columns = Vec::new();
        for (at, column) in (of.key.len() + 1..).zip(of.columns) {
            let text = row.maybe_text(at)?;
            if text.is_some_and(|text| text != TOMBSTONE && (self.repeats)(&text)) {
                columns.push(*column);
            }
        }
        if columns.is_empty() {
            return Ok(());
        }
        let forum = row.maybe_line(of.key.len())?.unwrap_or_default();
        let mut key: Vec<Value> = Vec::new();
        for at in 0..of.key.len() {
            key.push(match of.is_numbered && at == 0 {
                true => row.int(at)?.into(),
                false => row.raw(at)?.into(),
            });
        }
        self.put(db, of, &forum, &key, &columns)
    }

    /// Replaces columns of a row.
    fn put(
        &mut self,
        db: &mut Db,
        of: &Texts,
        forum: &str,
        key: &[Value],
        columns: &[&str],
    ) -> Result<(), ForumError> {
        let is_new = self.counted.insert(format!("{} {key:?}", of.what));
        if is_new {
            self.done.texts += 1;
            self.by_forum.entry(forum.to_owned()).or_default().1 += 1;
        }
        let item = match key.first() {
            Some(Value::Int(item)) => *item,
            _ => 0,
        };
        self.covered.add(db, of.what, item)?;
        let items = self.done.items.entry(of.what).or_default();
        if is_new && !(item != 0 && items.contains(&item)) {
            items.push(item);
        }
        if self.dry {
            return Ok(());
        }
        let set: Vec<String> = columns.iter().map(|c| format!("{c} = $1")).collect();
        let is: Vec<String> = (2..)
            .zip(of.key)
            .map(|(n, key)| format!("{key} = ${n}"))
            .collect();
        let sql = format!(
            "UPDATE {} SET {} WHERE {}",
            of.table,
            set.join(", "),
            is.join(" AND ")
        );
        let mut all = vec![Value::from(TOMBSTONE)];
        all.extend(key.iter().cloned());
        db.run(&sql, &all)?;
        if of.what == "thread" {
            index_again(db, item)?;
        }
        match is_new {
            true => self.record(db, forum, of.what, item),
            false => Ok(()),
        }
    }

    /// Erases from the lines of the log.
    fn log(&mut self, db: &mut Db) -> Result<(), ForumError> {
        let mut after = 0;
        loop {
            let rows = db.rows(
                "SELECT id, forum, line FROM log WHERE id > $1 ORDER BY id LIMIT $2",
                args![after, PAGE],
            )?;
            let Some(last) = rows.last() else { break };
            after = last.int(0)?;
            for row in &rows {
                let (id, forum) = (row.int(0)?, row.line(1)?);
                let Some(line) = without(&row.raw(2)?, self.repeats) else {
                    continue;
                };
                self.done.texts += 1;
                self.done.items.entry("log").or_default().push(0);
                self.by_forum.entry(forum.clone()).or_default().1 += 1;
                if !self.dry {
                    db.run("UPDATE log SET line = $1 WHERE id = $2", args![line, id])?;
                    self.record(db, &forum, "log", 0)?;
                }
            }
        }
        Ok(())
    }

    fn record(&self, db: &mut Db, forum: &str, what: &str, item: i64) -> Result<(), ForumError> {
        let erasure = Erasure {
            forum: forum.to_owned(),
            at: self.now,
            by: self.by.to_owned(),
            what: what.to_owned(),
            item,
        };
        keep(db, &erasure, false)
    }

    /// Logs the erasure in each forum.
    fn note(&self, db: &mut Db) -> Result<(), ForumError> {
        if self.dry {
            return Ok(());
        }
        for (forum, (posts, texts)) in &self.by_forum {
            let event = LogEvent::Erased {
                by: self.by.to_owned(),
                posts: posts.clone(),
                texts: *texts,
            };
            let line = LogLine {
                at: self.now,
                forum: forum.clone(),
                event,
            };
            log::add(db, &line)?;
        }
        Ok(())
    }
}

/// Indexes the opening of a thread under its new title.
fn index_again(db: &mut Db, thread: i64) -> Result<(), ForumError> {
    let row = db.row(
        "SELECT p.id, t.title, p.body, p.author, p.deleted_at FROM posts p JOIN threads t ON t.id = p.thread_id \
         WHERE t.id = $1 ORDER BY p.id LIMIT 1",
        args![thread],
    )?;
    let Some(row) = row else { return Ok(()) };
    let post = row.int(0)?;
    search::forget(db, post)?;
    if row.maybe_int(4)?.is_none() {
        search::index(db, post, &row.text(1)?, &row.text(2)?, &row.text(3)?)?;
    }
    Ok(())
}

/// Returns a JSON line without the strings that repeat a text; `None` if there are none.
fn without(line: &str, repeats: &dyn Fn(&str) -> bool) -> Option<String> {
    fn blank(value: &mut Json, repeats: &dyn Fn(&str) -> bool) -> bool {
        match value {
            Json::String(text) if repeats(text) => {
                TOMBSTONE.clone_into(text);
                true
            }
            Json::Array(items) => items
                .iter_mut()
                .fold(false, |any, item| blank(item, repeats) | any),
            Json::Object(fields) => fields
                .values_mut()
                .fold(false, |any, item| blank(item, repeats) | any),
            _ => false,
        }
    }
    match serde_json::from_str::<Json>(line) {
        Ok(mut value) => blank(&mut value, repeats).then(|| value.to_string()),
        Err(_) => repeats(line).then(|| Json::from(TOMBSTONE).to_string()),
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Returns the copies of a place's store.
pub(super) fn copies_of(place: &Place) -> Result<Vec<PathBuf>, ForumError> {
    match place {
        Place::File(path) => copies(path),
        Place::Server(_) => Ok(Vec::new()),
    }
}

/// Returns the copies of a store that migrations made.
fn copies(path: &Path) -> Result<Vec<PathBuf>, ForumError> {
    let (folder, name) = Folder::of_file(path).map_err(|error| failed(path, &error))?;
    let start = format!("{}.form-", name.to_string_lossy());
    let items = folder.items().map_err(|error| failed(path, &error))?;
    let copies = items.into_iter().filter(|item| {
        let number = item
            .name
            .to_str()
            .and_then(|name| name.strip_prefix(&start));
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        item.kind == Kind::File && number.is_some_and(is_number)
    });
    let parent = path.parent().unwrap_or(Path::new(""));
    Ok(copies.map(|item| parent.join(item.name)).collect())
}

fn failed(path: &Path, error: &kd_store::Error) -> ForumError {
    ForumError::File {
        path: error.path().unwrap_or(path).to_path_buf(),
        why: error.to_string(),
    }
}

/// Returns the files of an SQLite store that hold a text, in tables or elsewhere. This process must not have the store
/// open: closing a second descriptor would drop its locks.
///
/// # Errors
/// A file cannot be read.
pub(super) fn traces(
    place: &Place,
    repeats: &dyn Fn(&str) -> bool,
) -> Result<Vec<PathBuf>, ForumError> {
    let Place::File(path) = place else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let candidates = [path.clone(), beside(path, "-wal")].into_iter();
    for file in candidates.chain(copies(path)?) {
        if holds(&file, repeats).map_err(|error| failed(&file, &error))? {
            found.push(file);
        }
    }
    Ok(found)
}

/// Searches a file for a text. In a database no space separates two columns, so a text may be joined to others.
fn holds(path: &Path, repeats: &dyn Fn(&str) -> bool) -> Result<bool, kd_store::Error> {
    let io = |error| kd_store::Error::io("read", path)(error);
    let (folder, name) = Folder::of_file(path)?;
    let Some(mut file) = folder.file(name)? else {
        return Ok(false);
    };
    let mut bytes = Vec::new();
    loop {
        let kept = bytes.len().min(OVERLAP);
        bytes.drain(..bytes.len() - kept);
        let read = (&mut file).take(CHUNK as u64).read_to_end(&mut bytes);
        if read.map_err(io)? == 0 {
            return Ok(false);
        }
        // Control characters are lengths and types of columns.
        let text: String = String::from_utf8_lossy(&bytes)
            .chars()
            .map(|c| {
                if c.is_control() && c != '\n' || c == '\u{fffd}' {
                    ' '
                } else {
                    c
                }
            })
            .collect();
        if repeats(&text) {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_keeps_what_does_not_repeat_the_text() {
        let repeats = |text: &str| text.contains("heron");
        for (line, wanted) in [
            (r#"{"a":"x"}"#, None),
            (
                r#"{"a":"the heron","b":"x"}"#,
                Some(r#"{"a":"[forgotten]","b":"x"}"#),
            ),
            (
                r#"{"a":[{"b":"heron"}]}"#,
                Some(r#"{"a":[{"b":"[forgotten]"}]}"#),
            ),
            ("no JSON", None),
            ("heron, no JSON", Some("\"[forgotten]\"")),
        ] {
            assert_eq!(without(line, &repeats).as_deref(), wanted, "{line}");
        }
    }

    /// A new column with text must be added to [`TEXTS`], or here with a reason.
    #[test]
    fn every_column_with_free_text_is_searched() {
        let named = [
            // Erased on their own.
            ("posts", "body"),
            ("log", "line"),
            ("words", "*"),
            // Names, words of `kd`, numbers, hashes.
            ("threads", "forum"),
            ("threads", "author"),
            ("threads", "last_author"),
            ("posts", "author"),
            ("agents", "name"),
            ("marks", "forum"),
            ("unread", "forum"),
            ("cycles", "forum"),
            ("cycles", "cards"),
            ("cycles", "plan"),
            ("runs", "forum"),
            ("runs", "agent"),
            ("runs", "outcome"),
            ("runs", "deeds"),
            ("motions", "forum"),
            ("motions", "kind"),
            ("motions", "key"),
            ("motions", "before"),
            ("motions", "proposer"),
            ("motions", "state"),
            ("votes", "agent"),
            ("votes", "choice"),
            ("settings", "forum"),
            ("settings", "key"),
            ("settings", "value"),
            ("log", "forum"),
            ("identity", "id"),
            ("members", "forum"),
            ("members", "name"),
            ("members", "skeleton"),
            ("members", "kind"),
            ("members", "proof"),
            ("members", "role"),
            ("members", "status"),
            ("electorate", "name"),
            ("pace", "forum"),
            ("pace", "account"),
            ("notes", "forum"),
            ("notes", "name"),
            ("profiles", "forum"),
            ("profiles", "name"),
            ("mentions", "forum"),
            ("mentions", "name"),
            ("charters", "forum"),
            ("chains", "forum"),
            ("chains", "chain"),
            ("chains", "commitment"),
            ("links", "chain"),
            ("links", "origin"),
            ("links", "commitment"),
            ("links", "posts"),
            ("links", "previous"),
            ("links", "next"),
            ("links", "secret"),
            ("links", "renewed"),
            ("links", "seal"),
            ("first_words", "digest"),
            ("orders", "forum"),
            ("orders", "actor"),
            ("orders", "what"),
            ("orders", "target"),
            ("rules", "forum"),
            ("rules", "key"),
            ("rules", "value"),
            ("imports", "digest"),
            ("erasures", "forum"),
            ("erasures", "actor"),
            ("erasures", "what"),
        ];
        let folder = tempfile::tempdir().unwrap();
        let place = Place::File(folder.path().join("forum.db"));
        let db = &mut ForumStore::open(&place, None).unwrap().db;
        let tables = db
            .rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'words%' AND name NOT LIKE 'sqlite_%'", &[])
            .unwrap();
        let mut count = 0;
        for table in &tables {
            let table = table.raw(0).unwrap();
            let columns = db.rows(
                &format!("SELECT name, type FROM pragma_table_info('{table}')"),
                &[],
            );
            for column in columns
                .unwrap()
                .iter()
                .filter(|c| c.raw(1).unwrap() == "TEXT")
            {
                let column = column.raw(0).unwrap();
                let is_searched = TEXTS
                    .iter()
                    .any(|of| of.table == table && of.columns.contains(&column.as_str()));
                let is_named = named.contains(&(table.as_str(), column.as_str()));
                assert!(is_searched != is_named, "{table}.{column}");
                count += 1;
            }
        }
        assert!(count > 60, "{count}");
        let is_rewritten = |of: &&Texts| REWRITTEN.iter().any(|(table, ..)| *table == of.table);
        assert_eq!(
            REWRITTEN.len(),
            TEXTS.iter().filter(is_rewritten).count() + 3
        );
    }
}
