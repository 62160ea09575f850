//! Shows batches, and marks them: `kd batch status`, `results`, `retry`, `cancel`, `list`.

use super::super::here::Here;
use super::super::notices::notice_line;
use super::super::trust;
use super::fleet::store;
use crate::args::batch::{Cancel, List, Results, Retry, Status};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::batch as face;
use crate::face::fleet;
use crate::face::json;
use kd_app::Runtime;
use kd_app::batch::{Batch, Batches, Shelf, Workers, cancel_parcels, check_own};
use kd_app::outfile;
use std::io::{self, Write};

/// Failures that `kd batch status` shows as text.
const FAILURES_SHOWN: usize = 10;
/// Failures in its JSON.
const FAILURES_JSON: usize = 10_000;

pub(super) fn status(args: &Status, here: &Here) -> Result<Exit, Error> {
    let store = store(&args.store, here)?;
    let (mut shelf, batch) = Shelf::with_running(store.as_ref(), args.id.as_deref(), here)?;
    let id = &batch.about.id;
    let is_running = shelf.is_running(&batch)?;
    let workers = shelf.workers(id)?;
    let is_limited = shelf.is_limited(id)? && !batch.counts.is_over();
    let most = if args.json {
        FAILURES_JSON
    } else {
        FAILURES_SHOWN
    };
    let dead = shelf.dead(id, most)?;
    let failures = shelf.member_failures(id, face::MEMBERS_SHOWN)?;
    let mut out = crate::out::lines(args.json);
    if args.json {
        let mut value = face::object(&batch, &dead);
        value["running_now"] = is_running.into();
        value["member_failures"] = serde_json::json!(failures);
        if let Some(Workers { all, refusals }) = &workers {
            value["limited"] = is_limited.into();
            value["workers"] = fleet::workers_object(all);
            value["refusals"] = fleet::refusals_object(refusals);
        }
        writeln!(out, "{}", json::text(&value, true)?)?;
    } else {
        let now = face::Now {
            is_running,
            is_limited,
            can_be_typed: super::is_run(&batch.about.command),
        };
        let text = face::status(
            &batch,
            &dead,
            &failures,
            now,
            here.columns(),
            here.out_styles(),
        );
        out.write_all(text.as_bytes())?;
        if let Some(Workers { all, refusals }) = &workers
            && !batch.counts.is_over()
        {
            let text = fleet::workers(all, refusals, here.columns());
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(Exit::Done)
}

pub(super) fn results(args: &Results, here: &Here) -> Result<Exit, Error> {
    let store = store(&args.store, here)?;
    let (mut shelf, batch) = Shelf::with(store.as_ref(), args.id.as_deref(), here)?;
    let print = |out: &mut dyn Write| shelf.results(&batch.about.id, out);
    match &args.output {
        Some(path) => {
            outfile::check_lines(path, "-o")?;
            if !args.force {
                check_own(path, &batch.about.id, here)?;
            }
            outfile::write_with(path, here, print)?;
        }
        None => {
            let mut print = print;
            let mut out = io::BufWriter::new(crate::out::stdout().lock());
            print(&mut out)?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

pub(super) fn retry(args: &Retry, here: &Here) -> Result<Exit, Error> {
    let store = store(&args.store, here)?;
    let (mut shelf, batch) = Shelf::with(store.as_ref(), args.id.as_deref(), here)?;
    let retried = shelf.retry(&batch.about.id)?;
    let text = face::retried(&batch, retried);
    crate::out::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}

pub(super) fn cancel(args: &Cancel, here: &Here) -> Result<Exit, Error> {
    let store = store(&args.store, here)?;
    let (mut shelf, batch) = Shelf::with_running(store.as_ref(), args.id.as_deref(), here)?;
    let count = shelf.cancel(&batch.about.id)?;
    if let Shelf::Own(batches) = &shelf {
        cancel_at_providers(batches, &batch, here)?;
    }
    let questions = kd_app::words::count(count, "question");
    writeln!(
        crate::out::lines(false),
        "{}: {questions} will not be asked; `kd batch retry {}` takes this back",
        batch.about.id,
        face::short(&batch.about.id)
    )?;
    Ok(Exit::Done)
}

/// Cancels what the batch has at providers; a provider that does not answer does not stop the cancellation.
fn cancel_at_providers(batches: &Batches, batch: &Batch, here: &Here) -> Result<(), Error> {
    if batches.parcels(&batch.about.id)?.is_empty() {
        return Ok(());
    }
    let kingdom = trust::open(here, true)?;
    let cancelled = cancel_parcels(&kingdom, batches, &batch.about.id);
    let (count, failures) = Runtime::new()?.block_on(cancelled)?;
    if count > 0 {
        let parcels = match count {
            1 => "1 provider batch".to_owned(),
            n => format!("{n} provider batches"),
        };
        notice_line(&format!("{parcels} cancelled at the provider"));
    }
    for failure in failures {
        notice_line(&format!(
            "a provider batch could not be cancelled: {failure}"
        ));
    }
    Ok(())
}

pub(super) fn list(args: &List, here: &Here) -> Result<Exit, Error> {
    let all = match Shelf::open(store(&args.store, here)?.as_ref(), here)? {
        Some(mut shelf) => shelf.all(here)?,
        None => Vec::new(),
    };
    let mut out = crate::out::lines(args.json);
    if args.json {
        let rows: Vec<_> = all.iter().map(|batch| face::object(batch, &[])).collect();
        let value = serde_json::json!({
            "v": kd_core::formats::BATCH_LIST.version,
            "batches": rows,
        });
        writeln!(out, "{}", json::text(&value, true)?)?;
    } else if all.is_empty() {
        writeln!(
            crate::out::stderr(),
            "no batches here yet: `kd batch run QUESTIONS -o RESULTS.jsonl` starts the first"
        )?;
    } else {
        for batch in &all {
            let text = face::row(batch, here.columns(), here.out_styles());
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(Exit::Done)
}
