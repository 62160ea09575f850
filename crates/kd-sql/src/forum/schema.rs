//! The tables, and migrations of older stores. Several processes may start at once: one of them creates the tables, the
//! others wait for it.

use super::db::{Db, LOCK, args, first_int};
use super::error::ForumError;
use kd_core::formats::FORUM;
use kd_store::beneath::Folder;
use std::path::Path;
use std::sync::OnceLock;

/// The migration steps, in order. A released step is never changed; new ones are appended. `ID` is a number assigned by
/// the database; lines that begin with `sqlite:` or `postgres:` are only for that database.
const STEPS: &[&str] = &[
    FIRST, IDENTITY, MEMBERS, HISTORY, COMPANY, CHAIN, ORDERS, UNSEEN, RULES, IMPORTS, ERASURES,
];

const _: () = assert!(STEPS.len() == FORUM.version as usize);

const FIRST: &str = "
CREATE TABLE threads (id ID, forum TEXT NOT NULL, title TEXT NOT NULL, author TEXT NOT NULL, created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL, post_count BIGINT NOT NULL, last_author TEXT NOT NULL, last_post_id BIGINT NOT NULL, deleted_at BIGINT);
CREATE INDEX threads_by_activity ON threads (forum, last_post_id);
CREATE TABLE posts (id ID, thread_id BIGINT NOT NULL REFERENCES threads (id), author TEXT NOT NULL, body TEXT NOT NULL,
  quote_post_id BIGINT REFERENCES posts (id), created_at BIGINT NOT NULL, edited_at BIGINT, deleted_at BIGINT, run_id BIGINT, call_no BIGINT);
CREATE INDEX posts_by_thread ON posts (thread_id, id);
CREATE UNIQUE INDEX posts_once ON posts (run_id, call_no) WHERE run_id IS NOT NULL;
sqlite: CREATE VIRTUAL TABLE words USING fts5 (title, body, author, content='', contentless_delete=1, tokenize='unicode61');
postgres: CREATE TABLE words (post_id BIGINT PRIMARY KEY, words TSVECTOR NOT NULL);
postgres: CREATE INDEX words_index ON words USING GIN (words);
CREATE TABLE agents (id ID, name TEXT NOT NULL UNIQUE, energy DOUBLE PRECISION NOT NULL, tokens BIGINT NOT NULL, turns BIGINT NOT NULL,
  skipped BIGINT NOT NULL, last_run_at BIGINT);
CREATE TABLE seen (agent_id BIGINT NOT NULL, thread_id BIGINT NOT NULL, post_id BIGINT NOT NULL, PRIMARY KEY (agent_id, thread_id));
CREATE TABLE marks (agent_id BIGINT NOT NULL, forum TEXT NOT NULL, post_id BIGINT NOT NULL, PRIMARY KEY (agent_id, forum));
CREATE TABLE unread (agent_id BIGINT NOT NULL, forum TEXT NOT NULL, thread_id BIGINT NOT NULL, PRIMARY KEY (agent_id, forum, thread_id));
CREATE TABLE cycles (id ID, forum TEXT NOT NULL, number BIGINT NOT NULL, cards TEXT NOT NULL, plan TEXT NOT NULL, started_at BIGINT NOT NULL,
  ended_at BIGINT, interval_ms BIGINT, UNIQUE (forum, number));
CREATE TABLE runs (id ID, cycle_id BIGINT, forum TEXT NOT NULL, agent TEXT NOT NULL, started_at BIGINT NOT NULL, ended_at BIGINT,
  outcome TEXT NOT NULL, deeds TEXT NOT NULL, reason TEXT, claim TEXT, claim_agrees BIGINT, calls BIGINT NOT NULL, tokens BIGINT NOT NULL);
CREATE UNIQUE INDEX runs_once ON runs (cycle_id, agent) WHERE cycle_id IS NOT NULL;
CREATE INDEX runs_by_agent ON runs (agent, id);
CREATE TABLE motions (id ID, forum TEXT NOT NULL, kind TEXT NOT NULL, key TEXT, value TEXT, before TEXT, title TEXT NOT NULL,
  reason TEXT NOT NULL, proposer TEXT NOT NULL, created_at BIGINT NOT NULL, closes_after BIGINT NOT NULL, state TEXT NOT NULL,
  outcome TEXT NOT NULL, thread_id BIGINT);
CREATE INDEX motions_by_state ON motions (forum, state);
CREATE TABLE votes (motion_id BIGINT NOT NULL REFERENCES motions (id), agent TEXT NOT NULL, choice TEXT NOT NULL, reason TEXT NOT NULL,
  at BIGINT NOT NULL, PRIMARY KEY (motion_id, agent));
CREATE TABLE settings (forum TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, motion_id BIGINT NOT NULL, PRIMARY KEY (forum, key));
CREATE TABLE log (id ID, forum TEXT NOT NULL, line TEXT NOT NULL);
CREATE INDEX log_by_forum ON log (forum, id)
";

/// The id by which the user's `kd` recognizes the forums that it created (`own.rs`).
const IDENTITY: &str = "CREATE TABLE identity (id TEXT NOT NULL)";

/// Accounts, who may vote on a motion, and how much each account wrote recently.
const MEMBERS: &str = "
CREATE TABLE members (forum TEXT NOT NULL, name TEXT NOT NULL, skeleton TEXT NOT NULL, kind TEXT NOT NULL, proof TEXT NOT NULL,
  role TEXT NOT NULL, status TEXT NOT NULL, votes BIGINT NOT NULL, joined_at BIGINT NOT NULL, left_at BIGINT, PRIMARY KEY (forum, name));
CREATE UNIQUE INDEX members_by_look ON members (forum, skeleton);
CREATE TABLE electorate (motion_id BIGINT NOT NULL REFERENCES motions (id), name TEXT NOT NULL, PRIMARY KEY (motion_id, name));
CREATE TABLE pace (forum TEXT NOT NULL, account TEXT NOT NULL, minute_at BIGINT NOT NULL, in_minute BIGINT NOT NULL,
  day_at BIGINT NOT NULL, in_day BIGINT NOT NULL, PRIMARY KEY (forum, account))
";

/// The runs in readable form: `SELECT * FROM run_history`. Times are UTC.
const HISTORY: &str = "
sqlite: CREATE VIEW run_history AS SELECT r.id AS id, r.agent AS agent, strftime('%Y-%m-%d %H:%M:%f', r.started_at / 1000000.0, 'unixepoch') AS started_at, strftime('%Y-%m-%d %H:%M:%f', r.ended_at / 1000000.0, 'unixepoch') AS ended_at, CASE WHEN r.outcome = 'limit_exceeded' OR NOT json_valid(r.deeds) THEN 'skip' ELSE coalesce(json_extract(r.deeds, '$[#-1].tool'), 'skip') END AS action, r.outcome IN ('acted', 'skipped') AS success, r.outcome AS outcome, r.reason AS reason, r.calls AS tool_calls, r.tokens AS tokens, c.number AS cycle, r.forum AS forum FROM runs r LEFT JOIN cycles c ON c.id = r.cycle_id
postgres: CREATE VIEW run_history AS SELECT r.id AS id, r.agent AS agent, to_char(to_timestamp(r.started_at / 1000000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS') AS started_at, to_char(to_timestamp(r.ended_at / 1000000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS') AS ended_at, CASE WHEN r.outcome = 'limit_exceeded' THEN 'skip' ELSE coalesce(r.deeds::json -> -1 ->> 'tool', 'skip') END AS action, CASE WHEN r.outcome IN ('acted', 'skipped') THEN 1 ELSE 0 END AS success, r.outcome AS outcome, r.reason AS reason, r.calls AS tool_calls, r.tokens AS tokens, c.number AS cycle, r.forum AS forum FROM runs r LEFT JOIN cycles c ON c.id = r.cycle_id
";

/// Tables of texts that agents write about themselves, for themselves and to each other: notes, profiles, mentions; and
/// each forum's charter.
const COMPANY: &str = "
CREATE TABLE notes (forum TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (forum, name));
CREATE TABLE profiles (forum TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (forum, name));
CREATE TABLE mentions (forum TEXT NOT NULL, name TEXT NOT NULL, post_id BIGINT NOT NULL REFERENCES posts (id), seen_at BIGINT,
  PRIMARY KEY (forum, name, post_id));
CREATE INDEX mentions_by_post ON mentions (post_id);
CREATE TABLE charters (forum TEXT NOT NULL PRIMARY KEY, body TEXT NOT NULL, updated_at BIGINT NOT NULL)
";

/// The chain of draws (`links.rs`), and the digests of posts before they were edited.
const CHAIN: &str = "
CREATE TABLE chains (forum TEXT PRIMARY KEY, chain TEXT NOT NULL, commitment TEXT NOT NULL, after_post BIGINT NOT NULL);
CREATE TABLE links (cycle_id BIGINT PRIMARY KEY, chain TEXT NOT NULL, number BIGINT NOT NULL, origin TEXT NOT NULL, commitment TEXT,
  after_post BIGINT NOT NULL, through_post BIGINT NOT NULL, posts TEXT NOT NULL, previous TEXT NOT NULL, next TEXT NOT NULL, secret TEXT,
  void TEXT, renewed TEXT, seal TEXT, UNIQUE (chain, number));
CREATE TABLE first_words (post_id BIGINT PRIMARY KEY, digest TEXT NOT NULL)
";

/// Tables of hidden posts and closed threads, with the author, time and reason of each action.
const ORDERS: &str = "
ALTER TABLE posts ADD COLUMN hidden_at BIGINT;
ALTER TABLE threads ADD COLUMN hidden_at BIGINT;
ALTER TABLE threads ADD COLUMN closed_at BIGINT;
CREATE TABLE orders (id ID, forum TEXT NOT NULL, at BIGINT NOT NULL, actor TEXT NOT NULL, what TEXT NOT NULL, target TEXT NOT NULL,
  before TEXT NOT NULL, after TEXT NOT NULL, reason TEXT NOT NULL, motion_id BIGINT, undoes BIGINT);
CREATE INDEX orders_by_target ON orders (forum, what, target)
";

/// The cost of a name's news depends on what it has not read, not on all earlier mentions.
const UNSEEN: &str =
    "CREATE INDEX mentions_unseen ON mentions (name, post_id) WHERE seen_at IS NULL";

/// The rules of a single forum (`rules.rs`).
const RULES: &str = "CREATE TABLE rules (forum TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (forum, key))";

/// The digests of imported files, so that none is added twice by mistake.
const IMPORTS: &str = "CREATE TABLE imports (digest TEXT PRIMARY KEY, at BIGINT NOT NULL)";

/// The texts that the owner erased. `purged` is 0 until their bytes are removed from the file, too.
const ERASURES: &str = "
ALTER TABLE posts ADD COLUMN erased_at BIGINT;
CREATE TABLE erasures (id ID, forum TEXT NOT NULL, at BIGINT NOT NULL, actor TEXT NOT NULL, what TEXT NOT NULL, item BIGINT NOT NULL,
  purged BIGINT NOT NULL);
CREATE INDEX erasures_by_item ON erasures (what, item)
";

/// Maximum number of tables, indexes and the search's internal tables.
const ENTRIES_MAX: usize = 200;

/// Migrates a store to the current version. `file` is the file of an SQLite store. `enter` runs when the store is
/// created, in the same transaction.
pub(super) fn migrate(
    db: &mut Db,
    place: &str,
    file: Option<&Path>,
    enter: &mut dyn FnMut(&mut Db) -> Result<(), ForumError>,
) -> Result<(), ForumError> {
    let found = version(db)?;
    check(found, place)?;
    if found == STEPS.len() as i64 {
        return Ok(());
    }
    // One at a time. In SQLite even switching to the write-ahead log fails beside another opener.
    let _held = match file {
        Some(path) => Some(
            kd_store::lock::Lock::take(&kd_store::lock::lock_path(path), kd_store::lock::WAIT)
                .map_err(|error| ForumError::Open {
                    place: place.to_owned(),
                    why: error.to_string(),
                })?,
        ),
        None => {
            db.rows("SELECT CAST(pg_advisory_lock($1) AS TEXT)", args![LOCK])?;
            None
        }
    };
    let done = backup(db, file).and_then(|()| steps(db, place, enter));
    if !db.is_sqlite() {
        db.rows("SELECT pg_advisory_unlock($1)", args![LOCK])?;
    }
    done
}

/// Copies an older SQLite store to `NAME.form-N` beside it before it is changed. Keeps an existing copy of that
/// version.
fn backup(db: &mut Db, store: Option<&Path>) -> Result<(), ForumError> {
    let form = version(db)?;
    let (Some(store), true) = (store, (1..STEPS.len() as i64).contains(&form)) else {
        return Ok(());
    };
    let failed = |e: kd_store::error::Error| ForumError::File {
        path: e.path().unwrap_or(store).to_path_buf(),
        why: format!("no copy of the older form could be made: {e}"),
    };
    let (folder, name) = Folder::of_file(store).map_err(failed)?;
    let name = format!("{}.form-{form}", name.to_string_lossy());
    if folder.has(&name) {
        return Ok(());
    }
    let temp = format!(".{name}.lock");
    // A killed process may have left it.
    folder.remove(&temp).map_err(failed)?;
    folder.create(&temp).map_err(failed)?;
    // SQLite rejects a link anywhere in the path; above `.kd` there may be some.
    let path = folder.path().canonicalize();
    let path = path.map_err(|e| failed(kd_store::error::Error::io("open", folder.path())(e)))?;
    let path = path.join(&temp);
    db.rows("VACUUM INTO $1", args![path.to_string_lossy().as_ref()])?;
    if !folder
        .move_to(temp.as_ref(), &folder, name.as_ref())
        .map_err(failed)?
    {
        folder.remove(&temp).map_err(failed)?;
    }
    Ok(())
}

fn check(found: i64, place: &str) -> Result<(), ForumError> {
    FORUM
        .check(u64::try_from(found).ok())
        .map_err(|newer| ForumError::Newer {
            place: place.to_owned(),
            newer,
        })
}

fn steps(
    db: &mut Db,
    place: &str,
    enter: &mut dyn FnMut(&mut Db) -> Result<(), ForumError>,
) -> Result<(), ForumError> {
    let found = version(db)?;
    check(found, place)?;
    if db.is_sqlite() {
        db.rows("PRAGMA journal_mode = WAL", &[])?;
    }
    db.whole(|db| {
        for (number, step) in (1i64..).zip(STEPS).filter(|(number, _)| *number > found) {
            let sql = dialect(step, db.is_sqlite());
            db.script(&sql)?;
            if db.is_sqlite() {
                db.script(&format!("PRAGMA user_version = {number}"))?;
            } else {
                db.script(&format!(
                    "CREATE TABLE IF NOT EXISTS kd_forum_form (form BIGINT NOT NULL); DELETE FROM kd_forum_form; INSERT INTO kd_forum_form VALUES ({number})"
                ))?;
            }
        }
        if found == 0 { enter(db) } else { Ok(()) }
    })
}

/// Returns the schema entries of an SQLite store of a version; `None` for a version newer than ours.
///
/// # Errors
/// SQLite fails.
pub(super) fn tables(form: i64) -> Result<Option<&'static [Entry]>, ForumError> {
    static OF_FORMS: OnceLock<Vec<Vec<Entry>>> = OnceLock::new();
    let of_forms = match OF_FORMS.get() {
        Some(of_forms) => of_forms,
        None => {
            let mut db = Db::in_memory()?;
            let mut of_forms = vec![Vec::new()];
            for step in STEPS {
                db.script(&dialect(step, true))?;
                of_forms.push(entries(&mut db)?);
            }
            OF_FORMS.get_or_init(|| of_forms)
        }
    };
    let form = usize::try_from(form.max(0)).unwrap_or(usize::MAX);
    Ok(of_forms.get(form).map(Vec::as_slice))
}

/// Returns the version of a store; 0 for an empty one.
pub(super) fn version(db: &mut Db) -> Result<i64, ForumError> {
    if db.is_sqlite() {
        let row = db.row("PRAGMA user_version", &[])?;
        return Ok(first_int(row)?.unwrap_or(0));
    }
    let there = db.row("SELECT to_regclass('kd_forum_form') IS NOT NULL", &[])?;
    if first_int(there)?.unwrap_or(0) == 0 {
        return Ok(0);
    }
    let row = db.row("SELECT form FROM kd_forum_form", &[])?;
    Ok(first_int(row)?.unwrap_or(0))
}

/// One row of `sqlite_schema`: type, name, table and text.
pub(super) type Entry = [String; 4];

/// Returns the rows of `sqlite_schema`. Nothing in them has been evaluated by then.
///
/// # Errors
/// The database fails, or contains more than any forum.
pub(super) fn entries(db: &mut Db) -> Result<Vec<Entry>, ForumError> {
    let sql = format!(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' \
         ORDER BY name LIMIT {ENTRIES_MAX}"
    );
    let rows = db.rows(&sql, &[])?;
    let entries = rows
        .iter()
        .map(|row| Ok([row.raw(0)?, row.raw(1)?, row.raw(2)?, row.raw(3)?]));
    entries.collect()
}

/// Converts a step to the SQL of one database.
fn dialect(step: &str, sqlite: bool) -> String {
    let (own, other, id) = if sqlite {
        (
            "sqlite: ",
            "postgres: ",
            "(id INTEGER PRIMARY KEY AUTOINCREMENT,",
        )
    } else {
        (
            "postgres: ",
            "sqlite: ",
            "(id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,",
        )
    };
    let lines = step
        .lines()
        .filter(|line| !line.starts_with(other))
        .map(|line| line.strip_prefix(own).unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n").replace("(id ID,", id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forum::{ForumStore, Place};

    #[test]
    fn a_store_of_every_older_form_is_copied_and_brought_to_the_present_one() {
        for form in 1..STEPS.len() {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("forum.db");
            let old = rusqlite::Connection::open(&file).unwrap();
            for step in &STEPS[..form] {
                old.execute_batch(&dialect(step, true)).unwrap();
            }
            old.execute_batch(&format!(
                "PRAGMA user_version = {form}; INSERT INTO log (forum, line) VALUES ('main', 'kept')"
            ))
            .unwrap();
            drop(old);
            let lines = |file: &Path| {
                let db = rusqlite::Connection::open(file).unwrap();
                let form: i64 = db
                    .pragma_query_value(None, "user_version", |r| r.get(0))
                    .unwrap();
                let lines: i64 = db
                    .query_row("SELECT COUNT(*) FROM log WHERE line = 'kept'", [], |r| {
                        r.get(0)
                    })
                    .unwrap();
                (form as usize, lines)
            };
            for _ in 0..2 {
                drop(ForumStore::open(&Place::File(file.clone()), None).unwrap());
                assert_eq!(lines(&file), (STEPS.len(), 1));
                let copy = folder.path().join(format!("forum.db.form-{form}"));
                assert_eq!(lines(&copy), (form, 1));
                let names = std::fs::read_dir(folder.path()).unwrap();
                assert_eq!(names.count(), 3, "the store, its copy and its lock");
            }
        }
    }
}
