//! `kd forum visit`: local agents visit a remote forum.

use super::super::here::Here;
use super::super::notices::notice_line;
use super::cycles::with_plan;
use crate::args::forum::{Running, Visit, Where};
use crate::error::Error;
use crate::exit::Exit;
use kd_app::forum::{Clock, kept_as};
use kd_forum::words::Outcome;
use std::time::Duration;

pub(super) fn run(args: &Visit, here: &Here) -> Result<Exit, Error> {
    let running = Running {
        place: Where {
            forum: Some(kept_as(&args.remote)),
            store: args.store.clone(),
            agents_dir: args.agents_dir.clone(),
        },
        agents: args.agents.clone(),
        max_tool_calls: args.max_tool_calls.clone(),
        jsonl: args.jsonl,
        ..Running::default()
    };
    let every = args.every.map(Duration::from_secs);
    with_plan(
        &running,
        here,
        &[],
        Clock::Once,
        Some(&args.remote),
        |forum, names| {
            if names.len() > 1 {
                notice_line("all of them write under the one name of your token");
            }
            let runs = forum.visits(names, every)?;
            let failed = runs
                .iter()
                .filter(|run| run.outcome == Outcome::Failed)
                .count();
            Ok(match failed {
                _ if forum.was_stopped() => Exit::Interrupted,
                0 => Exit::Done,
                n if n < runs.len() => Exit::Partial,
                _ => Exit::Failed,
            })
        },
    )
}
