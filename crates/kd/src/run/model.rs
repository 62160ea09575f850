//! `kd model …`, and the download of the built-in model before the first question.

mod bench;

use super::here::Here;
use super::spending;
use crate::args::model::{List, Model};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::{json, words};
use crate::render::clean;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kd_backends::delivery::catalog::{self, KnownModel, MODELS};
use kd_backends::delivery::{self, FetchError, How, Progress, Via};
use kd_backends::{Backends, Env};
use kd_core::config::{Config, LocalConfig};
use kd_core::seating::LOCAL;
use kd_core::{Failure, Member, Roster};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::time::Instant;

pub(super) fn run(args: &Model, here: &Here) -> Result<Exit, Error> {
    let env = super::here::env();
    match args {
        Model::List(args) => list(args, here, &env)?,
        Model::Pull(args) => {
            let path = fetch(known(args.model.as_deref())?, &env, false)?;
            writeln!(io::stdout(), "{}", path.display())?;
        }
        Model::Verify(args) => return verify(args.model.as_deref(), &env),
        Model::Rm(args) => {
            let model = known(Some(&args.model))?;
            if !delivery::remove(model, &env)? {
                return Err(Error::new(
                    "no_model",
                    Exit::NoSeat,
                    format!("{} is not downloaded", model.key),
                )
                .next("`kd model list` shows what is"));
            }
            writeln!(io::stderr(), "{} is removed", model.key)?;
        }
        Model::Bench(args) => bench::run(args, here)?,
        Model::Path(args) => {
            let config = LocalConfig {
                model: args.model.clone(),
                ..here.config(here.find_layout()?.as_ref())?.config.local
            };
            let found = delivery::locate(&config, &env)?;
            writeln!(io::stdout(), "{}", found.path.display())?;
        }
    }
    Ok(Exit::Done)
}

/// Checks the preconditions for asking, and downloads what the built-in members lack.
pub(super) fn make_ready(
    config: &Config,
    offline: bool,
    quiet: bool,
    roster: &Roster,
) -> Result<(), Error> {
    make_ready_for(config, offline, quiet, roster, roster.members())
}

/// Like [`make_ready`], when these members will be asked; empty if not known yet.
pub(super) fn make_ready_for<'a>(
    config: &Config,
    offline: bool,
    quiet: bool,
    roster: &Roster,
    asked: impl IntoIterator<Item = &'a Member>,
) -> Result<(), Error> {
    spending::check(config, quiet, roster)?;
    let seats = roster.members().iter().chain(roster.chair());
    stay_here(config, seats.clone())?;
    somebody_is_there(config, asked)?;
    let local = seats.filter(|m| m.backend == LOCAL);
    // If other members can answer, only those with a broken model fail.
    if roster.members().iter().all(|m| m.backend == LOCAL) {
        are_models(config, offline, local.clone())?;
    }
    fetch_missing(config, offline, quiet, local.map(|m| m.model.as_deref()))
}

/// Fails if `council.private` is on and one of these members does not answer on this machine.
pub(super) fn stay_here<'a>(
    config: &Config,
    members: impl IntoIterator<Item = &'a Member>,
) -> Result<(), Error> {
    if !config.council.private {
        return Ok(());
    }
    let backends = Backends::new(config, super::here::agents());
    for member in members {
        backends.stays_here(member).map_err(|failure| {
            let what = "this question is private, and a member does not answer on this machine";
            Error::new("private", Exit::Usage, what)
                .because(failure.message.clone())
                .next(failure.hint())
        })?;
    }
    Ok(())
}

/// Fails if every one of these members lacks its program, its key or its model: one line per cause, and one that
/// installs or signs in.
fn somebody_is_there<'a>(
    config: &Config,
    members: impl IntoIterator<Item = &'a Member>,
) -> Result<(), Error> {
    let options = kd_backends::Options {
        env: super::here::env(),
        ..kd_backends::Options::default()
    };
    let backends = Backends::new(config, options);
    let mut causes: Vec<(Vec<&str>, Failure)> = Vec::new();
    for member in members {
        let Some(failure) = backends.missing(member) else {
            return Ok(());
        };
        match causes.iter_mut().find(|(_, known)| *known == failure) {
            Some((names, _)) => names.push(member.name.as_str()),
            None => causes.push((vec![member.name.as_str()], failure)),
        }
    }
    let lines = |text: fn(&Failure) -> &str| {
        let line = |(names, failure): &(Vec<&str>, Failure)| match causes.len() {
            1 => text(failure).to_owned(),
            _ => format!("{}: {}", names.join(", "), text(failure)),
        };
        causes.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    if causes.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = causes.iter().flat_map(|(names, _)| names.clone()).collect();
    let what = format!("no member can answer: {}", names.join(", "));
    Err(Error::new("no_seat", Exit::NoSeat, what)
        .because(lines(|failure| &failure.message))
        .next(lines(Failure::hint)))
}

/// Downloads missing models of the built-in backend; `None` is the configured one.
pub(super) fn fetch_missing<'a>(
    config: &Config,
    offline: bool,
    quiet: bool,
    wanted: impl IntoIterator<Item = Option<&'a str>>,
) -> Result<(), Error> {
    let env = environment(offline);
    let wanted: BTreeSet<Option<&str>> = wanted.into_iter().collect();
    for model in wanted {
        let local = LocalConfig {
            model: model
                .map(str::to_owned)
                .or_else(|| config.local.model.clone()),
            ..config.local.clone()
        };
        match delivery::locate(&local, &env) {
            Ok(_) => {}
            Err(FetchError::Absent { model, .. }) => {
                fetch(&model, &env, quiet)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Fails if a member's model file is not a model.
fn are_models<'a>(
    config: &Config,
    offline: bool,
    members: impl IntoIterator<Item = &'a Member>,
) -> Result<(), Error> {
    let env = environment(offline);
    for member in members {
        let local = LocalConfig {
            model: member.model.clone().or_else(|| config.local.model.clone()),
            ..config.local.clone()
        };
        // The download reports any other problem.
        if let Ok(found) = delivery::locate(&local, &env)
            && found.model.is_none()
        {
            is_model(&found.path)?;
        }
    }
    Ok(())
}

/// Fails if a file named by the user does not start like a model: reported once, before any member is asked.
fn is_model(path: &std::path::Path) -> Result<(), Error> {
    let mut start = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    let why = match read {
        Ok(()) if start == *b"GGUF" => return Ok(()),
        Ok(()) => "it does not start with the letters GGUF".to_owned(),
        Err(error) => error.to_string(),
    };
    let what = format!("{} is not a model that kd can run", path.display());
    Err(Error::new("no_model", Exit::NoSeat, what)
        .because(why)
        .next("give a GGUF file, or a model of `kd model list`"))
}

/// Downloads a model, showing its name, size, license and destination.
fn fetch(model: &KnownModel, env: &Env, quiet: bool) -> Result<PathBuf, Error> {
    if let Some(path) = delivery::stored(model, env)? {
        return Ok(path);
    }
    let dir = delivery::models_dir(env).ok_or(FetchError::NoHome)?;
    let offline = env.on("KD_OFFLINE");
    if !quiet && !offline {
        let _ = writeln!(
            io::stderr(),
            "downloading {}: {}, licence {}, into {}",
            model.title,
            megabytes(model.bytes),
            model.licence,
            dir.display()
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new("io", Exit::Error, "cannot start the runtime").because(e))?;
    let mut bar = Bar::new(model, quiet);
    let fetched = runtime.block_on(delivery::fetch(model, Via::Auto, env, &mut |p| {
        bar.hear(&p)
    }));
    bar.end();
    let path = fetched?;
    if !quiet {
        let took = words::seconds(bar.begun.elapsed());
        let _ = writeln!(
            io::stderr(),
            "{} is downloaded; its checksum matches ({took})",
            model.key
        );
    }
    Ok(path)
}

/// Progress on stderr: a bar on a terminal, else a line per 10 %.
struct Bar {
    bar: ProgressBar,
    lines: bool,
    quiet: bool,
    tenths: u64,
    begun: Instant,
}

impl Bar {
    fn new(model: &KnownModel, quiet: bool) -> Self {
        let terminal =
            io::stderr().is_terminal() && std::env::var("TERM").is_ok_and(|t| t != "dumb");
        let bar = if terminal && !quiet {
            ProgressBar::with_draw_target(Some(model.bytes), ProgressDrawTarget::stderr())
        } else {
            ProgressBar::hidden()
        };
        let template = "  {bar:24} {percent:>3} %  {bytes}/{total_bytes}  {bytes_per_sec}  {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self {
            bar,
            lines: !terminal && !quiet,
            quiet,
            tenths: 0,
            begun: Instant::now(),
        }
    }

    fn hear(&mut self, progress: &Progress) {
        match progress {
            Progress::Trying { from, have } => {
                let again = if *have > 0 {
                    format!(", resuming after {}", megabytes(*have))
                } else {
                    String::new()
                };
                self.say(&format!("  from {}{again}", clean::line(from)));
            }
            Progress::Bytes { done, total } => {
                self.bar.set_length(*total);
                self.bar.set_position(*done);
                let tenths = done.saturating_mul(10) / (*total).max(1);
                if self.lines && tenths > self.tenths {
                    self.say(&format!("  {} %", tenths * 10));
                }
                self.tenths = tenths;
            }
            Progress::GaveUp { from, why } => {
                self.say(&format!("  {}: {}", clean::line(from), clean::line(why)))
            }
            Progress::Waiting => self.say("  another kd is downloading it: waiting"),
            Progress::Checking => self.say("  checking"),
        }
    }

    fn say(&self, line: &str) {
        if self.quiet {
            return;
        }
        self.bar.suspend(|| {
            let _ = writeln!(io::stderr(), "{line}");
        });
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn list(args: &List, here: &Here, env: &Env) -> Result<(), Error> {
    let mut rows: Vec<(&KnownModel, Option<PathBuf>)> = Vec::with_capacity(MODELS.len());
    for model in &MODELS {
        rows.push((model, delivery::stored(model, env)?));
    }
    let current = delivery::locate(
        &here.config(here.find_layout()?.as_ref())?.config.local,
        env,
    )
    .ok();
    let mut out = io::stdout().lock();
    if args.json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(m, path)| {
                json!({"key": m.key, "title": m.title, "note": m.note, "bytes": m.bytes, "licence": m.licence,
                       "sha256": m.sha256, "path": path})
            })
            .collect();
        writeln!(out, "{}", json::text(&rows, true)?)?;
        return Ok(());
    }
    let styles = here.out_styles();
    for (model, path) in &rows {
        let here = if path.is_some() {
            "here"
        } else {
            "not downloaded"
        };
        writeln!(
            out,
            "{}  {}, {}, {here}",
            styles.bold(model.key),
            megabytes(model.bytes),
            model.licence
        )?;
        writeln!(out, "  {}: {}", model.title, model.note)?;
    }
    if let Some(found) = current {
        writeln!(out, "in use: {} ({})", found.path.display(), found.how)?;
        if found.how == How::Given {
            writeln!(out, "`kd config show --origin` says where it is set")?;
        }
    }
    writeln!(
        out,
        "any other GGUF file: kd ask --model FILE.gguf …, or kd config set local.model FILE.gguf"
    )?;
    Ok(())
}

fn verify(key: Option<&str>, env: &Env) -> Result<Exit, Error> {
    let models: Vec<&KnownModel> = match key {
        Some(key) => vec![known(Some(key))?],
        None => MODELS.iter().collect(),
    };
    let mut seen = false;
    for model in models {
        let Some(path) = delivery::kept(model, env) else {
            continue;
        };
        seen = true;
        delivery::verify(&path, model)?;
        writeln!(io::stdout(), "{}: complete, as published", model.key)?;
    }
    if !seen {
        let what = key.map_or_else(
            || "no model was downloaded".to_owned(),
            |k| format!("{k} is not downloaded"),
        );
        return Err(Error::new("no_model", Exit::NoSeat, what).next("kd model pull"));
    }
    Ok(Exit::Done)
}

fn known(key: Option<&str>) -> Result<&'static KnownModel, Error> {
    let Some(key) = key else {
        return Ok(catalog::DEFAULT);
    };
    catalog::find(key).ok_or_else(|| {
        let keys: Vec<&str> = MODELS.iter().map(|m| m.key).collect();
        Error::new(
            "unknown_model",
            Exit::Usage,
            format!("no model is named {key}"),
        )
        .next(format!("models are: {}", keys.join(", ")))
    })
}

fn environment(offline: bool) -> Env {
    Env::looking_up(move |name| match name {
        "KD_OFFLINE" if offline => Some("1".into()),
        name => super::here::os_var(name),
    })
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

impl From<FetchError> for Error {
    fn from(error: FetchError) -> Self {
        let (kind, exit) = match &error {
            FetchError::NoSuchKey { .. } | FetchError::NoSuchFile { .. } => {
                ("unknown_model", Exit::NoSeat)
            }
            FetchError::Io { .. } => ("io", Exit::Error),
            _ => ("no_model", Exit::NoSeat),
        };
        let why = std::error::Error::source(&error).map(ToString::to_string);
        let mut out = Error::new(kind, exit, error.to_string()).next(error.hint());
        out.why = why.filter(|why| !out.what.contains(why));
        out
    }
}
