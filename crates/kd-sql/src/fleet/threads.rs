//! The files of threads, on their way from a worker to the process that collects the results.

use super::error::FleetError;
use super::finish::ThreadFile;
use super::link::Tx;
use super::{THREAD_BYTES_MAX, signed, unsigned};
use std::collections::BTreeMap;

/// Bytes of threads that are read together, unless one has more.
const BYTES: usize = 16 << 20;

/// Returns the places of those questions that have a thread, in the groups in which they can be read.
pub(super) fn together(
    tx: &mut Tx<'_>,
    batch: &str,
    places: &[u64],
) -> Result<Vec<Vec<i64>>, FleetError> {
    let places: Vec<i64> = places.iter().copied().map(signed).collect();
    let rows = tx.rows(
        "SELECT place, sum(octet_length(bytes)::bigint + octet_length(name))::bigint FROM kd_threads
         WHERE batch = $1 AND place = ANY($2) GROUP BY place ORDER BY place",
        &[&batch, &places],
    )?;
    let mut groups: Vec<Vec<i64>> = Vec::new();
    let mut left = 0;
    for row in rows {
        let place: i64 = row.try_get(0)?;
        let size = usize::try_from(row.try_get::<_, i64>(1)?).unwrap_or(usize::MAX);
        if size > THREAD_BYTES_MAX {
            // A worker writes none that is so large: its question has an answer without a thread.
            continue;
        }
        match groups.last_mut() {
            Some(group) if size <= left => group.push(place),
            _ => {
                groups.push(vec![place]);
                left = BYTES;
            }
        }
        left = left.saturating_sub(size);
    }
    Ok(groups)
}

/// Returns the files of the threads of questions.
pub(super) fn files(
    tx: &mut Tx<'_>,
    batch: &str,
    places: &[i64],
) -> Result<BTreeMap<u64, Vec<ThreadFile>>, FleetError> {
    let rows = tx.rows(
        "SELECT place, name, bytes FROM kd_threads WHERE batch = $1 AND place = ANY($2) ORDER BY place, name",
        &[&batch, &places],
    )?;
    let mut threads: BTreeMap<u64, Vec<ThreadFile>> = BTreeMap::new();
    for row in rows {
        let files = threads.entry(unsigned(row.try_get(0)?)).or_default();
        files.push(ThreadFile {
            name: row.try_get(1)?,
            bytes: row.try_get(2)?,
        });
    }
    Ok(threads)
}
