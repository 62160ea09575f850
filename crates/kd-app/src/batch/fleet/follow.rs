//! Collects the results and threads of a batch of a fleet as they arrive, and reports its state.

use super::super::drive::{Ended, Progress, Stop, Why};
use super::super::on::on;
use super::super::results::Results;
use super::busy;
use super::worker::Working;
use crate::error::UserError;
use kd_core::batch::Row;
use kd_core::clean::clean_text;
use kd_core::ids::ThreadId;
use kd_sql::fleet::{Fleet, FleetBatch, Line, Seen};
use kd_store::Layout;
use kd_store::carried::Incoming;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Pauses between two looks for results: the first, doubled up to the maximum while none come.
const LOOK: Duration = Duration::from_millis(200);
const LOOK_MAX: Duration = Duration::from_secs(1);
/// Share of the time that looks at a large batch may take: one part in this many. Fetching results is no look: the more have come,
/// the sooner the next must be fetched.
const SHARE: u32 = 10;

/// The process that runs a batch.
pub(super) struct Follow {
    fleet: Arc<Mutex<Fleet>>,
    id: String,
    threads: Incoming,
    results: Option<Arc<Mutex<Results>>>,
    worker: Option<Working>,
    seen: Arc<Mutex<Seen>>,
}

impl Follow {
    pub(super) fn new(
        fleet: Arc<Mutex<Fleet>>,
        id: String,
        threads: Incoming,
        results: Option<Results>,
        worker: Option<Working>,
    ) -> Self {
        Self {
            fleet,
            id,
            threads,
            results: results.map(|results| Arc::new(Mutex::new(results))),
            worker,
            seen: Arc::default(),
        }
    }

    pub(super) async fn run(
        mut self,
        mut stop: watch::Receiver<Stop>,
        progress: watch::Sender<Progress>,
    ) -> Result<Ended, UserError> {
        let followed = match self.fetch(true).await {
            Ok(()) => self.follow(&mut stop, &progress).await,
            Err(error) => Err(error),
        };
        // Also after an error: what is known is collected. What cannot be read replaces nothing.
        let new = self.fetch(false).await;
        let written = match &new {
            Ok(()) => self.put_all().await,
            Err(_) => Ok(()),
        };
        let why = followed.and_then(|why| new.and(written).map(|()| why))?;
        let batch = self.look().await?.batch;
        Ok(Ended {
            why: match why {
                Why::Stopped if batch.counts.is_over() => Why::Over,
                why => why,
            },
            ended: progress.borrow().ended,
            batch,
        })
    }

    async fn follow(
        &mut self,
        stop: &mut watch::Receiver<Stop>,
        progress: &watch::Sender<Progress>,
    ) -> Result<Why, UserError> {
        let mut pause = LOOK;
        let mut has_host = true;
        let before = progress.borrow().counts.ended();
        loop {
            let stopping = *stop.borrow_and_update();
            if let Some(worker) = &self.worker {
                match stopping {
                    Stop::No => {}
                    Stop::Drain => worker.drain(),
                    Stop::Now => worker.stop(),
                }
            } else if stopping != Stop::No {
                return Ok(Why::Stopped);
            }
            let ended = progress.borrow().counts.ended();
            self.fetch(false).await?;
            let began = Instant::now();
            let batch = self.look().await?;
            let looked = began.elapsed();
            let counts = batch.batch.counts;
            progress.send_modify(|progress| {
                progress.counts = counts;
                progress.spent = batch.batch.spent;
                progress.ended = counts.ended().saturating_sub(before);
            });
            let is_over = counts.is_over() || batch.batch.cancelled && counts.running == 0;
            let is_ending = batch.batch.cancelled || batch.limited;
            if self.worker.is_none() {
                // Requests that are still running after a limit was reached are paid for.
                if is_over || batch.limited && counts.running == 0 {
                    return Ok(why(&batch, is_over));
                }
                if is_ending {
                    // A worker that is lost gives nothing any more, and no other may be there to end it.
                    let look = |fleet: &mut Fleet| {
                        fleet.workers()?;
                        Ok(())
                    };
                    on(&self.fleet, look).await?;
                }
            }
            pause = match counts.ended() > ended {
                true => LOOK,
                false => (pause * 2).min(LOOK_MAX),
            }
            .max(looked * SHARE);
            tokio::select! {
                ended = async { match &mut self.worker {
                    Some(worker) => worker.ended().await,
                    None => std::future::pending().await,
                } } => {
                    self.worker = None;
                    ended?;
                    if *stop.borrow() != Stop::No {
                        return Ok(Why::Stopped);
                    }
                    pause = LOOK;
                }
                () = tokio::time::sleep(pause) => {}
                changed = stop.changed(), if has_host => has_host = changed.is_ok(),
            }
        }
    }

    async fn look(&self) -> Result<FleetBatch, UserError> {
        let id = self.id.clone();
        let batch = on(&self.fleet, move |fleet| {
            // The right is lost with a connection, and another process may have taken it meanwhile.
            match fleet.hold(&id)? {
                true => Ok(fleet.get(&id)?),
                false => Err(busy(&id)),
            }
        })
        .await?;
        batch.ok_or_else(|| super::super::look::none(&self.id))
    }

    /// Appends new results to the file, and stores their threads. `replaces`: they replace what an earlier run has left there.
    async fn fetch(&self, replaces: bool) -> Result<(), UserError> {
        let (id, threads) = (self.id.clone(), self.threads.clone());
        let (results, seen) = (self.results.clone(), Arc::clone(&self.seen));
        on(&self.fleet, move |fleet| {
            let mut seen = seen
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(results) = results.as_ref().filter(|_| replaces) {
                let mut results = results
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                return results.rewrite_with(|out| {
                    fleet.new_results(&id, &mut seen, |fleet, lines| {
                        for row in taken(fleet, &id, &threads, &lines)? {
                            write_row(&row, out)?;
                        }
                        Ok::<_, UserError>(())
                    })?;
                    exists(fleet, &id)
                });
            }
            fleet.new_results(&id, &mut seen, |fleet, lines| {
                let rows = taken(fleet, &id, &threads, &lines)?;
                if let Some(results) = results.as_ref().filter(|_| !rows.is_empty()) {
                    let mut results = results
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    results.append(&rows)?;
                }
                Ok::<_, UserError>(())
            })?;
            Ok(())
        })
        .await
    }

    /// Stores the threads of all results.
    pub(super) fn collect(fleet: &mut Fleet, id: &str, layout: &Layout) -> Result<(), UserError> {
        let threads = Incoming::open(layout)?;
        fleet.new_results(id, &mut Seen::default(), |fleet, lines| {
            taken(fleet, id, &threads, &lines).map(drop)
        })?;
        Ok(())
    }

    /// Replaces the file of results by what the database has, in the order of the questions.
    pub(super) fn rewrite(
        fleet: &mut Fleet,
        id: &str,
        results: Option<&mut Results>,
    ) -> Result<(), UserError> {
        let Some(results) = results else {
            return Ok(());
        };
        results.rewrite_with(|out| {
            lines(fleet, id, out)?;
            exists(fleet, id)
        })
    }

    async fn put_all(&self) -> Result<(), UserError> {
        let (id, results) = (self.id.clone(), self.results.clone());
        let Some(results) = results else {
            return Ok(());
        };
        on(&self.fleet, move |fleet| {
            let mut results = results
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            Self::rewrite(fleet, &id, Some(&mut results))
        })
        .await
    }
}

/// Writes every line of results, in the order of the questions.
///
/// # Errors
/// The database fails, or the output.
pub fn lines(fleet: &mut Fleet, id: &str, out: &mut dyn Write) -> Result<(), UserError> {
    fleet.results(id, |line| match parsed(id, line) {
        Some(row) => write_row(&row, out),
        None => Ok(()),
    })
}

fn write_row(row: &Row, out: &mut dyn Write) -> Result<(), UserError> {
    serde_json::to_writer(&mut *out, row).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// Checks that a batch was not erased while its results were read: then they would be none.
fn exists(fleet: &mut Fleet, id: &str) -> Result<(), UserError> {
    match fleet.get(id)? {
        Some(_) => Ok(()),
        None => Err(super::super::look::none(id)),
    }
}

fn why(batch: &FleetBatch, is_over: bool) -> Why {
    match batch.limited && !is_over {
        true => Why::Limit,
        false => Why::Over,
    }
}

/// Parses a line of the database, and cleans its texts. Returns `None` if it is not a result of this question.
fn parsed(batch: &str, line: &Line) -> Option<Row> {
    let row: Row = serde_json::from_str(&line.text).ok()?;
    let id = row.id.replace('\0', "\u{fffd}");
    let is_own =
        row.batch == batch && row.n == line.place && id.chars().take(1000).eq(line.id.chars());
    let mut value = serde_json::to_value(is_own.then(|| unpromised(row))?).ok()?;
    clean(&mut value);
    serde_json::from_value(value).ok()
}

/// Cleans every text of a line: another program may have written it.
fn clean(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = clean_text(text) {
                *text = clean;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(clean),
        Value::Object(all) => all.values_mut().for_each(clean),
        _ => {}
    }
}

/// Returns a line of the database without its promise, which would be based on the marks of another user.
fn unpromised(row: Row) -> Row {
    Row {
        warranty: None,
        ..row
    }
}

/// Stores the threads of results that are not on this machine yet. Returns the results.
fn taken(
    fleet: &mut Fleet,
    id: &str,
    threads: &Incoming,
    lines: &[Line],
) -> Result<Vec<Row>, UserError> {
    let rows = lines.iter().filter_map(|line| parsed(id, line));
    let rows: Vec<Row> = rows.collect();
    let mut missing = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.cached) {
        if let Some(thread) = row.thread.clone().map(ThreadId)
            && !threads.has(&thread)
        {
            missing.insert(row.n, thread);
        }
    }
    let places: Vec<u64> = missing.keys().copied().collect();
    fleet.threads(id, &places, |place, files| {
        let files: Vec<_> = files
            .into_iter()
            .map(|file| (file.name, file.bytes))
            .collect();
        if let Some(thread) = missing.get(&place) {
            threads.put(thread, &files)?;
        }
        Ok::<_, UserError>(())
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use kd_core::batch::Method;

    #[test]
    fn a_line_counts_only_for_its_question_and_its_texts_are_cleaned() {
        let row = Row {
            batch: "batch-1".into(),
            id: "q\0".into(),
            n: 2,
            answer: Some("yes\u{202e}no \u{9b}31m\nmore".into()),
            ..Row::failed(Method::Ask, "\u{1b}[2Jit broke", Timestamp::UNIX_EPOCH)
        };
        let line = |row: &Row, place, id: &str| Line {
            place,
            id: id.into(),
            text: serde_json::to_string(row).unwrap(),
        };
        let found = parsed("batch-1", &line(&row, 2, "q\u{fffd}")).unwrap();
        assert_eq!(found.answer.as_deref(), Some("yesno \nmore"));
        assert_eq!(found.reason.as_deref(), Some("it broke"));
        assert_eq!(parsed("batch-2", &line(&row, 2, "q\u{fffd}")), None);
        assert_eq!(
            parsed("batch-1", &line(&row, 3, "q\u{fffd}")),
            None,
            "of another place"
        );
        assert_eq!(
            parsed("batch-1", &line(&row, 2, "r")),
            None,
            "of another question"
        );
        let long = Row {
            id: "x".repeat(2000),
            ..row
        };
        assert!(parsed("batch-1", &line(&long, 2, &"x".repeat(1000))).is_some());
        let other = Line {
            text: "no result".into(),
            ..line(&long, 2, "x")
        };
        assert_eq!(parsed("batch-1", &other), None);
    }
}
