//! The rows of provider batches that end with their question. The tables may not exist yet.

use rusqlite::{Connection, Transaction};

/// Returns whether there are such tables.
pub(super) fn exist(db: &Connection) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'parcel_items'")?
        .exists([])
}

/// Removes the replies that a question has used: its result is written.
pub(super) fn used(tx: &Transaction<'_>, batch: &str, thread: &str) -> rusqlite::Result<()> {
    if exist(tx)? {
        tx.prepare_cached(
            "DELETE FROM parcel_items WHERE batch = ?1 AND thread = ?2 AND reply IS NOT NULL",
        )?
        .execute([batch, thread])?;
    }
    Ok(())
}

/// Removes everything about a thread.
pub(super) fn forget(tx: &Transaction<'_>, thread: &str) -> rusqlite::Result<()> {
    if exist(tx)? {
        tx.execute("DELETE FROM parcel_items WHERE thread = ?1", [thread])?;
    }
    Ok(())
}
