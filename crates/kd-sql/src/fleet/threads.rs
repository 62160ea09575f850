//! The files of threads, on their way from a worker to the process that collects the results.

use super::error::FleetError;
use super::finish::ThreadFile;
use super::link::Tx;
use super::{THREAD_BYTES_MAX, signed};

/// Returns the files of the thread of a question; none if it has none, or more than a thread may have.
pub(super) fn files(
    tx: &mut Tx<'_>,
    batch: &str,
    place: u64,
) -> Result<Vec<ThreadFile>, FleetError> {
    let place = signed(place);
    let size = tx.row(
        "SELECT coalesce(sum(octet_length(bytes) + octet_length(name)), 0)::bigint FROM kd_threads WHERE batch = $1 AND place = $2",
        &[&batch, &place],
    )?;
    let size: i64 = match size {
        Some(row) => row.try_get(0)?,
        None => 0,
    };
    if size > signed(THREAD_BYTES_MAX as u64) {
        return Err(FleetError::Damaged(format!(
            "the thread of question {place} of {batch} has more than {} MiB",
            THREAD_BYTES_MAX >> 20
        )));
    }
    let rows = tx.rows(
        "SELECT name, bytes FROM kd_threads WHERE batch = $1 AND place = $2 ORDER BY name",
        &[&batch, &place],
    )?;
    let mut files = Vec::new();
    for row in rows {
        files.push(ThreadFile {
            name: row.try_get(0)?,
            bytes: row.try_get(1)?,
        });
    }
    Ok(files)
}
