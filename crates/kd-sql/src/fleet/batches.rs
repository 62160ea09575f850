//! Batches as they are shown, and their results as they come.

use super::error::FleetError;
use super::link::Tx;
use super::workers::{line, reason, unique};
use super::{LINE_BYTES_MAX, money, signed, sum, totals, unsigned};
use crate::batch::{Batch, Counts, Dead, MemberFailures, NewBatch, State};
use jiff::Timestamp;
use kd_core::batch::Refusal;
use kd_core::clean::clean_text;
use postgres::Row;
use std::collections::BTreeSet;
use std::time::Duration;

/// The limits on the spending of all questions of a batch together. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetLimits {
    /// Requests to models.
    pub calls: Option<u64>,
    /// Tokens of prompts and answers.
    pub tokens: Option<u64>,
    /// Money, in pico-dollars.
    pub pico_usd: Option<u64>,
}

/// Maximum bytes of a description of how a batch is asked.
const ASKS_BYTES_MAX: i32 = 1 << 20;
/// Results that are read together.
pub(super) const LINES: usize = 64;

/// How a batch is asked, and digests of everything that decides an answer. Both are JSON of the crate above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// The method, the names of members, and options.
    pub asks: String,
    /// The digests, by part of the configuration.
    pub parts: String,
}

/// A batch and its state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetBatch {
    /// The fields that batches of one machine have too.
    pub batch: Batch,
    /// How it is asked.
    pub asks: Asks,
    /// Batches with a higher one are asked first.
    pub priority: i32,
    /// How often a question is asked before it counts as failed.
    pub attempts: u32,
    /// The pause before a failed question is asked again.
    pub pause: Duration,
    /// The remaining limits.
    pub left: FleetLimits,
    /// Whether a limit has refused a request.
    pub limited: bool,
}

/// The results that were read.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Every transaction before this one has ended, and its results were read.
    tx: String,
    places: BTreeSet<i64>,
}

/// The columns of a batch. Descriptions that are too long were not written by `kd`.
macro_rules! selected {
    ($asks:literal, $parts:literal, $which:literal) => {
        concat!(
            "SELECT id, key, method, source, output, command, fresh, created, cancelled, priority, attempts, pause,
             max_calls, max_tokens, max_pico_usd, limited, ",
            $asks,
            ", ",
            $parts,
            " FROM kd_batches WHERE octet_length(asks) <= $1 AND octet_length(parts) <= $1",
            $which
        )
    };
}

pub(super) fn get(tx: &mut Tx<'_>, id: &str) -> Result<Option<FleetBatch>, FleetError> {
    if !is_id(id) {
        return Err(no_id(id));
    }
    let Some(row) = tx.row(
        selected!("asks", "parts", " AND id = $2"),
        &[&ASKS_BYTES_MAX, &id],
    )?
    else {
        return Ok(None);
    };
    let mut found = about(&row)?;
    found.batch.spent = money::spent(tx, id)?;
    found.batch.counts = counts(tx, id)?;
    let millis = tx.row(
        concat!(
            "SELECT ",
            sum!("millis"),
            " FROM kd_spending WHERE batch = $1"
        ),
        &[&id],
    )?;
    if let Some(millis) = millis {
        found.batch.time = Duration::from_millis(unsigned(millis.try_get(0)?));
    }
    let spent = found.batch.spent;
    let left = &mut found.left;
    for (left, spent) in [
        (&mut left.calls, spent.calls),
        (&mut left.tokens, spent.tokens),
        (&mut left.pico_usd, spent.pico_usd),
    ] {
        *left = left.map(|limit| limit.saturating_sub(spent));
    }
    Ok(Some(found))
}

fn about(row: &Row) -> Result<FleetBatch, FleetError> {
    let text = |at: usize| row.try_get::<_, &str>(at).map(line);
    let limit = |at: usize| row.try_get::<_, Option<i64>>(at).map(|n| n.map(unsigned));
    let whole = |at: usize| {
        row.try_get::<_, &str>(at)
            .map(|text| clean_text(text).into_owned())
    };
    let about = NewBatch {
        id: row.try_get(0)?,
        key: row.try_get(1)?,
        method: text(2)?,
        source: whole(3)?,
        output: row
            .try_get::<_, Option<&str>>(4)?
            .map(|text| clean_text(text).into_owned()),
        command: whole(5)?,
        fresh: row.try_get(6)?,
    };
    Ok(FleetBatch {
        batch: Batch {
            about,
            created: Timestamp::from_millisecond(row.try_get(7)?).unwrap_or_default(),
            cancelled: row.try_get(8)?,
            ..Batch::default()
        },
        priority: row.try_get(9)?,
        attempts: u32::try_from(row.try_get::<_, i32>(10)?)
            .unwrap_or(1)
            .max(1),
        pause: Duration::from_millis(unsigned(row.try_get(11)?)),
        left: FleetLimits {
            calls: limit(12)?,
            tokens: limit(13)?,
            pico_usd: limit(14)?,
        },
        limited: row.try_get(15)?,
        asks: Asks {
            asks: row.try_get(16)?,
            parts: row.try_get(17)?,
        },
    })
}

/// Returns whether an id is one that `kd` gives: it names a folder on every machine.
pub(super) fn is_id(id: &str) -> bool {
    let digits = id.strip_prefix("batch-").unwrap_or_default();
    (1..=64).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn counts(tx: &mut Tx<'_>, id: &str) -> Result<Counts, FleetError> {
    let mut counts = Counts::default();
    let rows = tx.rows(
        "SELECT state::bigint, count(*) FROM kd_jobs WHERE batch = $1 GROUP BY state",
        &[&id],
    )?;
    for row in rows {
        counts.add(State::of(row.try_get(0)?), unsigned(row.try_get(1)?));
    }
    let cached = tx.row(
        "SELECT count(*) FROM kd_results WHERE batch = $1 AND cached",
        &[&id],
    )?;
    if let Some(cached) = cached {
        counts.cached = unsigned(cached.try_get(0)?);
    }
    Ok(counts)
}

/// Returns all batches, oldest first, in a few statements, whatever their number.
pub(super) fn all(tx: &mut Tx<'_>) -> Result<Vec<Batch>, FleetError> {
    let rows = tx.rows(
        selected!("''", "''", " ORDER BY created, id"),
        &[&ASKS_BYTES_MAX],
    )?;
    let mut all = Vec::new();
    for row in rows {
        let batch = about(&row)?.batch;
        all.push(batch);
    }
    let ids: Vec<String> = all.iter().map(|one| one.about.id.clone()).collect();
    if let Some(id) = ids.iter().find(|id| !is_id(id)) {
        return Err(no_id(id));
    }
    let (mut counts, mut spent) = (totals::counts(tx, &ids)?, totals::spent(tx, &ids)?);
    for one in &mut all {
        let (spent, millis) = spent.remove(&one.about.id).unwrap_or_default();
        one.spent = spent;
        one.time = Duration::from_millis(millis);
        one.counts = counts.remove(&one.about.id).unwrap_or_default();
    }
    Ok(all)
}

fn no_id(id: &str) -> FleetError {
    FleetError::Damaged(format!("{} is no id of a batch", line(id)))
}

/// Returns the ids of all batches, oldest first.
pub(super) fn ids(tx: &mut Tx<'_>) -> Result<Vec<String>, FleetError> {
    texts(tx.rows("SELECT id FROM kd_batches ORDER BY created, id", &[])?)
}

/// Returns the ids of the batches of a command, newest first.
pub(super) fn ids_of_key(tx: &mut Tx<'_>, key: &str) -> Result<Vec<String>, FleetError> {
    texts(tx.rows(
        "SELECT id FROM kd_batches WHERE key = $1 ORDER BY created DESC, id",
        &[&key],
    )?)
}

/// Returns the ids of the batches that have jobs for a worker, in the order in which it serves them. It looks at one waiting job of each
/// batch that has some: batches that are over cost nothing, however many there are.
pub(super) fn ready(tx: &mut Tx<'_>, worker: i64) -> Result<Vec<String>, FleetError> {
    texts(tx.rows(
        concat!(
            "WITH RECURSIVE waiting (batch) AS ((SELECT batch FROM kd_jobs WHERE state = 0 ORDER BY batch LIMIT 1)
             UNION ALL SELECT (SELECT j.batch FROM kd_jobs j WHERE j.state = 0 AND j.batch > w.batch ORDER BY j.batch LIMIT 1)
             FROM waiting w WHERE w.batch IS NOT NULL)
             SELECT b.id FROM waiting w JOIN kd_batches b ON b.id = w.batch WHERE NOT b.cancelled AND NOT b.limited AND ",
            super::named!("b.id"),
            " AND EXISTS (SELECT 1 FROM kd_jobs j WHERE j.batch = b.id AND j.state = 0 AND j.due <= ",
            super::now!(),
            ") AND NOT EXISTS (SELECT 1 FROM kd_refusals r WHERE r.batch = b.id AND r.worker = $1)
             ORDER BY b.priority DESC, b.created, b.id LIMIT 100"
        ),
        &[&worker],
    )?)
}

fn texts(rows: Vec<Row>) -> Result<Vec<String>, FleetError> {
    let texts = rows.iter().map(|row| row.try_get(0).map_err(Into::into));
    texts.collect()
}

/// Returns failed questions with their reasons: the first `most`.
pub(super) fn dead(tx: &mut Tx<'_>, id: &str, most: usize) -> Result<Vec<Dead>, FleetError> {
    let rows = tx.rows(
        "SELECT coalesce(left(q.id, 1000), j.place::text), j.place, j.attempts, r.line FROM kd_jobs j LEFT JOIN kd_questions q USING (batch, place)
         JOIN kd_results r USING (batch, place) WHERE j.batch = $1 AND j.state = 3 AND octet_length(r.line) <= $3
         ORDER BY j.place LIMIT $2",
        &[&id, &signed(most as u64), &(LINE_BYTES_MAX as i32)],
    )?;
    let mut all = Vec::new();
    for row in rows {
        let reason = reason_of(row.try_get(3)?);
        all.push(Dead {
            id: clean_text(row.try_get(0)?).into_owned(),
            n: unsigned(row.try_get(1)?),
            attempts: u32::try_from(row.try_get::<_, i32>(2)?).unwrap_or(0),
            reason,
        });
    }
    Ok(all)
}

/// Returns the members that failed in answered questions. They are taken from the text of the line: a line of another
/// program that is not JSON must not fail the statement. Inside a string of JSON each quote has a backslash before it.
pub(super) fn member_failures(
    tx: &mut Tx<'_>,
    id: &str,
    most: usize,
) -> Result<Vec<MemberFailures>, FleetError> {
    let rows = tx.rows(
        r#"SELECT left(f[1], 1000), count(DISTINCT j.place), left(max(f[2]), 4000)
         FROM kd_jobs j JOIN kd_results r USING (batch, place) CROSS JOIN LATERAL regexp_matches(r.line,
         '\{"member":("(?:[^"\\]|\\.)*"),"kind":"(?!cancelled")[^"\\]*","message":("(?:[^"\\]|\\.)*")\}', 'g') AS f
         WHERE j.batch = $1 AND j.state = 2 AND octet_length(r.line) <= $3 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $2"#,
        &[&id, &signed(most as u64), &(LINE_BYTES_MAX as i32)],
    )?;
    let text = |json: &str| -> String {
        let text: String =
            serde_json::from_str(json).unwrap_or_else(|_| json.trim_matches('"').to_owned());
        clean_text(&text).into_owned()
    };
    let mut all = Vec::new();
    for row in rows {
        all.push(MemberFailures {
            member: text(row.try_get(0)?),
            questions: unsigned(row.try_get(1)?),
            reason: text(row.try_get(2)?),
        });
    }
    Ok(all)
}

/// Returns why a question failed, from its line.
pub(super) fn reason_of(line: &str) -> String {
    let line: Option<kd_core::batch::Row> = serde_json::from_str(line).ok();
    let reason = line.and_then(|line| line.reason).unwrap_or_default();
    clean_text(&reason).into_owned()
}

/// Returns the workers that do not serve a batch.
pub(super) fn refusals(tx: &mut Tx<'_>, id: &str) -> Result<Vec<Refusal>, FleetError> {
    let rows = tx.rows(
        "SELECT w.name, w.id, left(r.reason, 2000) FROM kd_refusals r JOIN kd_workers w ON w.id = r.worker
         WHERE r.batch = $1 AND w.ended IS NULL ORDER BY w.id LIMIT 100",
        &[&id],
    )?;
    let mut all = Vec::new();
    for row in rows {
        all.push(Refusal {
            worker: unique(row.try_get(0)?, row.try_get(1)?),
            reason: reason(row.try_get(2)?),
        });
    }
    Ok(all)
}

/// Returns the places of results that were not read yet.
pub(super) fn unseen(
    tx: &mut Tx<'_>,
    id: &str,
    seen: &Seen,
) -> Result<(Vec<i64>, Seen), FleetError> {
    // A transaction may end after one with a higher number: all that are open now are looked for again.
    let from = match seen.tx.is_empty() {
        true => "0",
        false => &seen.tx,
    };
    let rows = tx.rows(
        "SELECT place, pg_snapshot_xmin(pg_current_snapshot())::text FROM kd_results
         WHERE batch = $1 AND tx >= $2::text::xid8 ORDER BY place",
        &[&id, &from],
    )?;
    let mut next = seen.clone();
    let mut places = Vec::new();
    for row in rows {
        next.tx = row.try_get(1)?;
        let place = row.try_get(0)?;
        if next.places.insert(place) {
            places.push(place);
        }
    }
    Ok((places, next))
}

/// A line of results, and the question that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The place of the question.
    pub place: u64,
    /// The first 1000 characters of its id; its place if the question is missing.
    pub id: String,
    /// The line: what any program wrote there.
    pub text: String,
}

/// Returns lines of results.
pub(super) fn lines(tx: &mut Tx<'_>, id: &str, places: &[i64]) -> Result<Vec<Line>, FleetError> {
    let rows = tx.rows(
        "SELECT place, coalesce(left(q.id, 1000), place::text), line FROM kd_results LEFT JOIN kd_questions q USING (batch, place)
         WHERE batch = $1 AND place = ANY($2) AND octet_length(line) <= $3 ORDER BY place",
        &[&id, &places, &(LINE_BYTES_MAX as i32)],
    )?;
    let mut all = Vec::new();
    for row in rows {
        all.push(Line {
            place: unsigned(row.try_get(0)?),
            id: row.try_get(1)?,
            text: row.try_get(2)?,
        });
    }
    Ok(all)
}

/// Returns the next lines of results after a place, in the order of the questions.
pub(super) fn page(tx: &mut Tx<'_>, id: &str, after: i64) -> Result<Vec<Line>, FleetError> {
    let places = tx.rows(
        "SELECT place FROM kd_results WHERE batch = $1 AND place > $2 ORDER BY place LIMIT $3",
        &[&id, &after, &signed(LINES as u64)],
    )?;
    let places: Result<Vec<i64>, postgres::Error> =
        places.iter().map(|row| row.try_get(0)).collect();
    lines(tx, id, &places?)
}
