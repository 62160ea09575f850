//! Cycles: one, many, one agent, or a study on a virtual clock.

use super::super::here::Here;
use super::super::notices::notice_line;
use super::visit::Remote;
use super::{Site, agents, fairness};
use crate::args::forum::{RunAgent, RunCycle, RunOnce, Running};
use crate::error::Error;
use crate::exit::Exit;
use jiff::tz::TimeZone;
use kd_app::forum::servers;
use kd_backends::Backends;
use kd_core::Member;
use kd_core::config::forum::{PARAMETERS, Settings};
use kd_core::persona::Persona;
use kd_core::request::ToolServer;
use kd_core::seating::LOCAL;
use kd_engine::forum::{Forum, Plan, RunError, Stop};
use kd_forum::fairness::{Judge, Look};
use kd_forum::logline::{LogEvent, LogLine};
use kd_forum::study::{Study, study};
use kd_forum::tools::TOOLS;
use kd_forum::words::Outcome;
use kd_sql::forum::{Place, RunnerLog};
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

/// The clock of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    Real,
    /// Nothing waits, and the record shows the virtual times.
    Virtual,
    /// All agents, one after another: delays and skips only where the user sets them.
    Once,
}

/// Returns the settings given for this run: the seed's variables, overridden by flags.
fn wishes(
    args: &Running,
    own: &[(&str, &str)],
    here: &Here,
) -> Result<Vec<(String, String)>, Error> {
    let mut all: Vec<(String, String)> = Vec::new();
    for parameter in PARAMETERS {
        let value = parameter
            .variable
            .and_then(|variable| here.var(variable))
            .filter(|v| !v.is_empty());
        all.extend(value.map(|value| (parameter.key.to_owned(), value)));
    }
    let flags = [
        ("scheduler", &args.scheduler),
        ("skip_probability", &args.skip_prob),
        ("delay_secs_min", &args.min_delay),
        ("delay_secs_max", &args.max_delay),
        ("max_tool_calls", &args.max_tool_calls),
    ];
    let given = flags
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.as_deref()?)));
    let mut set: Vec<(&str, &str)> = given.chain(own.iter().copied()).collect();
    for pair in &args.set {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Error::usage(format!("`--set {pair}` names no value")).next("--set skips_max=2")
        })?;
        set.push((key.trim(), value.trim()));
    }
    for (key, value) in set {
        all.retain(|(known, _)| known != key);
        all.push((key.to_owned(), value.to_owned()));
    }
    Ok(all)
}

/// Returns the chosen personas, and the names of all that belong to the forum.
fn chosen(
    args: &Running,
    site: &Site,
    remote: Option<&str>,
) -> Result<(Vec<Persona>, Vec<String>), Error> {
    let (forum, folder) = (&site.forum, &site.agents);
    let mut personas = agents::load(folder, site.project.judged_personas.as_ref())?;
    for name in &args.agents {
        if !personas.iter().any(|p| p.name.as_str() == name) {
            let known: Vec<&str> = personas.iter().map(|p| p.name.as_str()).collect();
            return Err(Error::new(
                "unknown_member",
                Exit::Usage,
                format!("there is no agent `{name}`"),
            )
            .next(match known.as_slice() {
                [] => "kd forum agent new".to_owned(),
                known => format!("agents are: {}", known.join(", ")),
            }));
        }
    }
    personas.retain(|p| match remote {
        // An agent whose file names no forum is not sent to strangers.
        Some(remote) => !args.agents.is_empty() || p.forums.iter().any(|name| name == remote),
        None => p.forums.is_empty() || p.forums.contains(forum),
    });
    let is_held = |p: &&Persona| site.project.personas.contains(p.name.as_str());
    let residents = personas.iter().filter(|p| !is_held(p));
    let residents = residents.map(|p| p.name.to_string()).collect();
    personas.retain(|p| {
        let asked =
            args.agents.is_empty() || args.agents.iter().any(|name| name == p.name.as_str());
        let grouped = args
            .group
            .as_ref()
            .is_none_or(|group| p.groups.contains(group));
        asked && grouped
    });
    if personas.is_empty() {
        return Err(
            Error::new("no_seat", Exit::NoSeat, "no agent takes part here")
                .because(format!("looked for personas in {}", folder.display()))
                .next("kd forum agent new ada --backend local --prompt \"You love bees.\""),
        );
    }
    Ok((personas, residents))
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
    let mut site = Site::open(&args.place, here)?;
    let mut wishes = wishes(args, own, here)?;
    let named = wishes
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let mut settings = site.settings()?;
    settings.set_all(named).map_err(RunError::from)?;
    let (mut personas, residents) = chosen(args, &site, remote)?;
    kd_app::trust::check_personas(&site.project, &args.agents, &mut personas)?;
    let is_named = |start: &str| wishes.iter().any(|(key, _)| key.starts_with(start));
    let waits = clock != Clock::Once || is_named("delay_secs_");
    let skips = clock != Clock::Once || is_named("skip_probability");
    // Agents read the rules that apply to them.
    let unnamed = [
        ("delay_secs_min", waits),
        ("delay_secs_max", waits),
        ("skip_probability", skips),
    ];
    let zero = unnamed.iter().filter(|(_, is_kept)| !is_kept);
    wishes.extend(zero.map(|(key, _)| ((*key).to_owned(), "0".to_owned())));
    let local = personas.iter().filter(|p| p.backend == LOCAL);
    let wanted = local.map(|p| p.model.as_deref());
    kd_app::ready::fetch_missing(&site.config, false, &here.env(args.jsonl), wanted)?;
    // A visiting agent works in an empty folder: it needs no files.
    let folder = servers::folder(here)?;
    let backends = Backends::new(&site.config, here.backend_options()).in_folder(folder.clone());
    let (stopper, stop) = watch::channel(Stop::No);
    listen(stopper)?;
    let jsonl = args.jsonl;
    let zone = TimeZone::system();
    let mut file = Some(RunnerLog::new(&site.logs, &site.forum, zone.clone()));
    let mut say = move |line: &LogLine| {
        let text = match jsonl {
            true => serde_json::to_string(line).unwrap_or_default(),
            false => line.text(&zone),
        };
        // The store has the log, too: without the file, the forum continues.
        if let Some(Err(why)) = file.as_ref().map(|file| file.write(line)) {
            file = None;
            notice_line(&format!("the log file is not written: {why}"));
        }
        // A closed output does not stop the forum: its log is kept.
        let mut out = crate::out::stdout();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    };
    // Other output formats report it on stderr.
    if jsonl && site.project.holds_back() {
        let names = site.project.held.iter();
        say(&LogLine {
            at: jiff::Timestamp::now(),
            forum: site.forum.clone(),
            event: LogEvent::HeldBack {
                settings: names.map(|setting| setting.path.to_string()).collect(),
                agents: site.project.personas.iter().cloned().collect(),
            },
        });
    }
    let calls_by_server = |persona: &Persona| {
        let member = Member::new(persona.name.clone(), &persona.backend);
        backends.is_agent(&member) && !matches!(persona.tools.as_deref(), Some("json" | "native"))
    };
    let has_programs = personas.iter().any(calls_by_server);
    let remote = remote.map(|name| Remote::find(name, &site, has_programs, here));
    let remote = remote.transpose()?;
    let server = server(args, &site, here);
    let server = match &remote {
        Some(remote) => server.and_then(|server| remote.serve(server)),
        None => server,
    };
    // The socket that passes the token is removed after the visits.
    let (remote, _token) = match remote.map(Remote::split) {
        Some((forum, token)) => (Some(forum), token),
        None => (None, None),
    };
    // Strangers write in a remote forum, so data from the user's servers must not reach it.
    let (granted, _files) = match &remote {
        Some(_) => Default::default(),
        None => servers::grant(&site.config, &personas, here)?,
    };
    let names: Vec<String> = personas.iter().map(|p| p.name.to_string()).collect();
    let plan = Plan {
        forum: site.forum.clone(),
        personas,
        residents,
        settings: site.config.forum.settings.clone(),
        wishes,
        seed: args.seed,
        is_virtual: clock == Clock::Virtual,
        waits,
        skips,
        server,
        granted,
        servers_folder: folder,
        remote,
    };
    let mut forum = Forum::new(
        plan,
        &mut site.store,
        &site.config,
        backends,
        stop,
        Box::new(say),
    )?;
    forum.settings()?;
    let ended = act(&mut forum, &names);
    drop(forum);
    kd_backends::transport::process::settle(std::time::Duration::from_secs(3));
    Ok(ended?)
}

/// Returns the tool server through which agent programs reach the forum: this program itself.
fn server(args: &Running, site: &Site, here: &Here) -> Option<ToolServer> {
    let program = std::env::current_exe().ok()?;
    let mut words = vec!["mcp".to_owned(), "--forum".into(), site.forum.clone()];
    let store = match site.store.place() {
        Place::File(path) => path.to_str().map(str::to_owned),
        // An address may contain a password, which must not appear in a process list.
        Place::Server(_) => args.place.store.clone(),
    };
    words.extend(store.into_iter().flat_map(|s| ["--store".to_owned(), s]));
    // The agent works in an empty folder, and so does what it starts.
    let folder = here.folder().ok()?.as_os_str().to_owned();
    words.extend(["--folder".to_owned(), folder.into_string().ok()?]);
    Some(ToolServer {
        name: "kd".into(),
        program: program.into_os_string().into_string().ok()?,
        args: words,
        tools: TOOLS.iter().map(|tool| tool.name.to_owned()).collect(),
    })
}

/// The first Ctrl+C lets the current agent finish; the second stops it.
fn listen(stopper: watch::Sender<Stop>) -> Result<(), Error> {
    let failed =
        |e: io::Error| Error::new("io", Exit::Error, "cannot start an OS thread").because(e);
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
    match listens.recv() {
        Ok(heard) => heard.map_err(failed),
        Err(_) => Ok(()),
    }
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
    let wishes = wishes(&args.running, own, here)?;
    settings
        .set_all(wishes.iter().map(|(k, v)| (k.as_str(), v.as_str())))
        .map_err(RunError::from)?;
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
    let mut out = crate::out::stdout().lock();
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
