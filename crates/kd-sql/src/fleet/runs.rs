//! The right to run a batch: a lock of the connection of the process that runs it. It ends with the connection.

use super::error::FleetError;
use super::link::Tx;

/// A process that runs a batch looks at it far more often. After this time of silence, its machine is down and the
/// server does not know it yet.
const SILENT_SECONDS: f64 = 120.0;

/// Takes the lock of a batch, unless this connection has it. 27492 distinguishes the locks of batches from the locks
/// of other programs.
const TRY: &str = "SELECT CASE WHEN EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = pg_backend_pid() AND l.locktype = 'advisory'
    AND l.granted AND l.classid = 27492 AND l.objsubid = 2 AND l.objid = (hashtext(current_schema() || ' ' || $1)::bigint & 4294967295)::oid)
    THEN true ELSE pg_try_advisory_lock(27492, hashtext(current_schema() || ' ' || $1)) END";

/// Takes the right to run a batch, until the connection ends. Returns whether this process has it.
pub(super) fn hold(tx: &mut Tx<'_>, batch: &str) -> Result<bool, FleetError> {
    if held(tx, batch)? {
        return Ok(true);
    }
    // The server ends the other connection soon: the next call gets the right.
    tx.rows(
        "SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
         WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 27492 AND l.objsubid = 2
         AND l.objid = (hashtext(current_schema() || ' ' || $1)::bigint & 4294967295)::oid AND a.datname = current_database()
         AND a.usename = current_user AND a.state = 'idle'
         AND extract(epoch FROM clock_timestamp() - a.state_change)::float8 > $2",
        &[&batch, &SILENT_SECONDS],
    )?;
    Ok(false)
}

fn held(tx: &mut Tx<'_>, batch: &str) -> Result<bool, FleetError> {
    match tx.row(TRY, &[&batch])? {
        Some(row) => Ok(row.try_get(0)?),
        None => Ok(false),
    }
}
