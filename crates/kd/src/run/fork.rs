//! `kd fork` and forks in a chat: creates a thread that shares the beginning of another.

use super::here::Here;
use crate::args::fork::Fork;
use crate::error::Error;
use crate::face::json;
use crate::render::clean;
use kd_app::threads::{Lineage, Thread};
use kd_core::SeatName;
use kd_core::fork::Cut;
use serde_json::json as object;
use std::io::Write;

pub(super) fn run(args: &Fork, here: &Here) -> Result<(), Error> {
    let (layout, place) = kd_app::threads::find(here, args.id.as_deref())?;
    let source = Thread::open(&place)?;
    let cut = match (args.before, &args.stage) {
        (Some(number), _) => Cut::Before(number),
        (None, Some(stage)) => Cut::Stage(stage.clone()),
        (None, None) => Cut::End,
    };
    let running = kd_app::threads::running(&source)?;
    let forked = kd_app::forks::make(&layout, &source, &cut, !args.stay)?;
    let mut out = crate::out::stdout().lock();
    if args.json {
        let value = object!({
            "v": kd_core::formats::FORK.version,
            "thread_id": forked.id(),
            "fork": forked.meta().lineage(),
            "current": !args.stay,
            "still_answering": running,
        });
        writeln!(out, "{}", json::text(&value, true)?)?;
        return Ok(());
    }
    for line in told(&forked, &running) {
        writeln!(out, "{line}")?;
    }
    let styles = here.err_styles();
    let id = &forked.id().0;
    // A fork without the end of a deliberation cannot do anything else before that has ended.
    let is_unfinished = matches!(cut, Cut::Stage(_)) || kd_app::resume::is_unfinished(&forked);
    let go_on = match (is_unfinished, args.stay) {
        (true, false) => "go on:  kd deliberate --resume".to_owned(),
        (true, true) => format!("go on:  kd deliberate --resume {id}"),
        (_, false) => "go on:  kd ask --continue \"…\"".to_owned(),
        (_, true) => format!("go on:  kd ask --thread {id} \"…\""),
    };
    let _ = writeln!(crate::out::stderr(), "{}", styles.dim(&go_on));
    Ok(())
}

/// Describes a fork in lines.
pub(super) fn told(forked: &Thread, running: &[SeatName]) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(lineage) = forked.meta().lineage() {
        lines.push(format!(
            "{}: fork of {}, with {}",
            clean::line(&forked.id().0),
            origin(&lineage),
            kd_app::words::count(u64::from(lineage.messages), "message"),
        ));
    }
    let running = kd_app::forks::still_answering(running);
    lines.extend(running.map(|line| format!("note: {line}")));
    lines
}

/// Describes where a thread was forked from, in one line: `council-a94d before message 7`.
pub(super) fn origin(lineage: &Lineage) -> String {
    let branch = lineage.branch.as_ref();
    let branch = branch.map_or(String::new(), |branch| format!(" (branch {branch})"));
    clean::line(&format!("{}{branch} {}", lineage.of, lineage.words()))
}
