//! Cycles: one, many, one agent, or a study on a virtual clock.

use super::super::here::Here;
use super::super::notices::notice_line;
use super::{fairness, open, open_any};
use crate::args::forum::{RunAgent, RunCycle, RunOnce, Running};
use crate::error::Error;
use crate::exit::Exit;
use jiff::tz::TimeZone;
use kd_app::forum::{Clock, Forum, RunError, RunRequest, Stop};
use kd_app::{ErrorKind, UserError};
use kd_core::config::forum::Settings;
use kd_forum::fairness::{Judge, Look};
use kd_forum::logline::LogLine;
use kd_forum::study::{Study, study};
use kd_forum::words::Outcome;
use std::io::{self, Write};
use tokio::sync::watch;

pub(super) fn once(args: &RunOnce, here: &Here) -> Result<Exit, Error> {
    with_forum(&args.running, here, &[], Clock::Once, |forum| {
        forum.lead()?;
        let done = forum.cycle()?;
        let failed = done
            .runs
            .iter()
            .filter(|run| run.outcome == Outcome::Failed)
            .count();
        Ok(match (done.complete, failed) {
            (false, _) => Exit::Interrupted,
            (true, _) if forum.was_stopped() => Exit::Interrupted,
            (true, 0) => Exit::Done,
            (true, n) if n < done.runs.len() => Exit::Partial,
            (true, _) => Exit::Failed,
        })
    })
}

pub(super) fn many(args: &RunCycle, here: &Here) -> Result<Exit, Error> {
    let interval = args
        .interval
        .iter()
        .map(|secs| ("cycle_interval_secs", secs.as_str()));
    let own: Vec<(&str, &str)> = interval.collect();
    if args.is_virtual && args.running.agents.is_empty() && args.running.group.is_none() {
        return virtual_study(args, &own, here);
    }
    let clock = match args.is_virtual {
        true => Clock::Virtual,
        false => Clock::Real,
    };
    with_forum(&args.running, here, &own, clock, |forum| {
        forum.lead()?;
        if let Some(soon) = forum.too_soon()? {
            notice_line(&format!("{soon}; {}", soon.hint()));
        }
        forum.cycles(args.cycles)?;
        Ok(Exit::Done)
    })
}

pub(super) fn one_agent(args: &RunAgent, here: &Here) -> Result<Exit, Error> {
    let running = Running {
        agents: vec![args.name.clone()],
        ..args.running.clone()
    };
    with_forum(&running, here, &[], Clock::Real, |forum| {
        Ok(match forum.run_agent(&args.name)?.outcome {
            Outcome::Acted | Outcome::Skipped | Outcome::LimitExceeded => Exit::Done,
            Outcome::Interrupted => Exit::Interrupted,
            Outcome::Failed | Outcome::Running => Exit::Failed,
        })
    })
}

/// Returns the settings given by flags, the later ones in front of the earlier ones.
fn given(args: &Running, own: &[(&str, &str)]) -> Result<Vec<(String, String)>, Error> {
    let flags = [
        ("scheduler", &args.scheduler),
        ("skip_probability", &args.skip_prob),
        ("delay_secs_min", &args.min_delay),
        ("delay_secs_max", &args.max_delay),
        ("max_tool_calls", &args.max_tool_calls),
    ];
    let flags = flags
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.as_deref()?)));
    let mut set: Vec<(&str, &str)> = flags.chain(own.iter().copied()).collect();
    for pair in &args.set {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Error::usage(format!("`--set {pair}` names no value")).next("--set skips_max=2")
        })?;
        set.push((key.trim(), value.trim()));
    }
    let owned = set.into_iter();
    Ok(owned.map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
}

fn with_forum(
    args: &Running,
    here: &Here,
    own: &[(&str, &str)],
    clock: Clock,
    act: impl FnOnce(&mut Forum<'_>) -> Result<Exit, RunError>,
) -> Result<Exit, Error> {
    with_plan(args, here, own, clock, None, |forum, _| act(forum))
}

/// Runs the forum of the store, or visits the remote forum of this name; `act` also gets the names of the agents.
pub(super) fn with_plan(
    args: &Running,
    here: &Here,
    own: &[(&str, &str)],
    clock: Clock,
    remote: Option<&str>,
    act: impl FnOnce(&mut Forum<'_>, &[String]) -> Result<Exit, RunError>,
) -> Result<Exit, Error> {
    let mut site = match remote {
        // The record of visits is named after the other forum.
        Some(_) => open_any(&args.place, here)?,
        None => open(&args.place, here)?,
    };
    let request = RunRequest {
        agents: args.agents.clone(),
        group: args.group.clone(),
        settings: given(args, own)?,
        seed: args.seed,
        clock,
        remote: remote.map(str::to_owned),
        store: args.place.store.clone(),
        program: std::env::current_exe().ok(),
        // Other output formats report it on stderr.
        logs_held_back: args.jsonl,
    };
    let (jsonl, zone) = (args.jsonl, TimeZone::system());
    let say = move |line: &LogLine| {
        let text = match jsonl {
            true => serde_json::to_string(line).unwrap_or_default(),
            false => line.text(&zone),
        };
        // A closed output does not stop the forum: its log is kept.
        let mut out = crate::out::stdout();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    };
    Ok(site.run(&request, &here.env(args.jsonl), say, listen, act)?)
}

/// The first Ctrl+C lets the current agent finish; the second stops it.
fn listen() -> Result<watch::Receiver<Stop>, UserError> {
    let (stopper, stop) = watch::channel(Stop::No);
    let failed =
        |e: io::Error| UserError::new(ErrorKind::Io, "cannot start an OS thread").because(e);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let (listening, listens) = std::sync::mpsc::channel();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            runtime.block_on(async move {
                let mut signals = match kd_tui::signals::Signals::listen(false) {
                    Ok(signals) => signals,
                    Err(why) => {
                        let _ = listening.send(Err(why));
                        return;
                    }
                };
                let _ = listening.send(Ok(()));
                for stop in [Stop::AfterAgent, Stop::Now] {
                    signals.stopped().await;
                    if stop == Stop::AfterAgent {
                        let _ = writeln!(
                            crate::out::stderr(),
                            "stopping after this agent; Ctrl+C again stops it now"
                        );
                    }
                    stopper.send_replace(stop);
                }
                // The third Ctrl+C exits at once: the next run closes interrupted ones.
                signals.stopped().await;
                crate::out::finish();
                std::process::exit(Exit::Interrupted as i32);
            });
        })
        .map_err(failed)?;
    // Start nothing that could not be stopped.
    if let Ok(heard) = listens.recv() {
        heard.map_err(failed)?;
    }
    Ok(stop)
}

/// Runs scripted agents on a virtual clock: no store, no models, no waiting.
fn virtual_study(args: &RunCycle, own: &[(&str, &str)], here: &Here) -> Result<Exit, Error> {
    if args.count == 0 || args.count > 1000 {
        return Err(Error::usage("a study needs 1 to 1000 agents").next("--agents 5"));
    }
    let configured = here
        .settings(here.find_layout()?.as_ref())?
        .config
        .forum
        .settings;
    let mut settings: Settings = configured;
    let wishes = kd_app::forum::wishes(&given(&args.running, own)?, here);
    settings.set_all(wishes.iter().map(|(k, v)| (k.as_str(), v.as_str())))?;
    let cycles = usize::try_from(args.cycles.unwrap_or(1000))
        .unwrap_or(usize::MAX)
        .min(10_000_000);
    let seed = args.running.seed.unwrap_or(0);
    let began = std::time::Instant::now();
    let mut judge = Judge::default();
    let done = study(
        &Study::alike(&settings, args.count, cycles, seed),
        &mut |sample| judge.add(sample),
    );
    for (from, to) in &done.answers {
        judge.answered(from, to);
    }
    let took = began.elapsed();
    let table = judge.table(Look::Once);
    let all = began.elapsed();
    let mut out = crate::out::lines(args.json);
    if args.json {
        let object = serde_json::json!({"v": kd_core::formats::FORUM_CYCLES.version, "scheduler": settings.scheduler, "seed": seed, "cycles": cycles, "turns": done.turns,
            "posts": done.posts, "virtual_secs": done.secs, "fairness": table});
        writeln!(out, "{object}")?;
    } else {
        writeln!(
            out,
            "{} cycles of {} agents by {} (seed {seed}): {} turns, {} posts, {:.1} virtual days in {:.2} s ({:.0} cycles/s; with the table {:.2} s)\n",
            cycles,
            args.count,
            settings.scheduler,
            done.turns,
            done.posts,
            done.secs / 86_400.0,
            took.as_secs_f64(),
            cycles as f64 / took.as_secs_f64().max(1e-9),
            all.as_secs_f64(),
        )?;
        fairness::print(&table, here.out_styles(), &mut out)?;
    }
    Ok(if table.passes() {
        Exit::Done
    } else {
        Exit::Error
    })
}
