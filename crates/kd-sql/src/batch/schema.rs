//! The tables of batches.

use kd_core::formats::BATCHES;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// The version of the file.
pub(super) const VERSION: i64 = BATCHES.version as i64;
/// How long a writer waits for others.
const BUSY: Duration = Duration::from_secs(20);
/// Prepared statements kept: more than there are.
const STATEMENTS: usize = 64;
/// Maximum bytes of one result.
const RESULT_BYTES_MAX: i32 = 64 << 20;

/// `batches`: one row each. `jobs`: the questions; `twin` is the place of an equal question that is asked first. `results`:
/// the lines; `kept` ones answer equal questions of later batches. `requests`: requests that were sent and not settled.
const SCHEMA: &str = "CREATE TABLE batches (
    id TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    method TEXT NOT NULL,
    source TEXT NOT NULL,
    output TEXT,
    command TEXT NOT NULL,
    fresh INTEGER NOT NULL,
    created INTEGER NOT NULL,
    cancelled INTEGER NOT NULL DEFAULT 0,
    run INTEGER NOT NULL DEFAULT 0,
    millis INTEGER NOT NULL DEFAULT 0,
    calls INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    pico_usd INTEGER NOT NULL DEFAULT 0,
    certainty TEXT NOT NULL DEFAULT 'exact'
) WITHOUT ROWID;
CREATE INDEX batches_key ON batches (key, created);
CREATE TABLE jobs (
    batch TEXT NOT NULL,
    place INTEGER NOT NULL,
    id TEXT NOT NULL,
    question TEXT NOT NULL,
    key TEXT NOT NULL,
    twin INTEGER,
    state INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    run INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL DEFAULT 0,
    reason TEXT,
    PRIMARY KEY (batch, place)
);
CREATE INDEX jobs_state ON jobs (batch, state, due, place);
CREATE INDEX jobs_twin ON jobs (batch, twin) WHERE twin IS NOT NULL;
CREATE TABLE results (
    batch TEXT NOT NULL,
    place INTEGER NOT NULL,
    key TEXT NOT NULL,
    kept INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (batch, place)
);
CREATE INDEX results_kept ON results (key) WHERE kept = 1;
CREATE TABLE requests (
    batch TEXT NOT NULL,
    run INTEGER NOT NULL,
    request INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    pico_usd INTEGER NOT NULL,
    PRIMARY KEY (batch, run, request)
) WITHOUT ROWID;";

/// Opens a file, creating the tables in an empty one. Returns its version.
pub(super) fn open(path: &Path) -> rusqlite::Result<(Connection, i64)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(path, flags)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, RESULT_BYTES_MAX)?;
    db.busy_timeout(BUSY)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // Forgotten answers must not remain in free pages. A killed process loses nothing in WAL mode without a sync for each
    // transaction; a power failure may lose the last ones, whose questions are then asked again.
    db.execute_batch(
        "PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL;",
    )?;
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version != 0 {
        return Ok((db, version));
    }
    let _: String = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    let tx = Transaction::new_unchecked(&db, TransactionBehavior::Immediate)?;
    let version: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == 0 {
        tx.execute_batch(SCHEMA)?;
        tx.pragma_update(None, "user_version", VERSION)?;
    }
    tx.commit()?;
    Ok((db, VERSION.max(version)))
}
