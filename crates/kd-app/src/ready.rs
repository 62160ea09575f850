//! Checks, before anyone is asked, that members can answer, and downloads the models of built-in members.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::notice::{Download, Notice};
use crate::spending;
use kd_backends::Backends;
use kd_backends::delivery::catalog::KnownModel;
use kd_backends::delivery::{self, FetchError, Via};
use kd_core::config::{Config, LocalConfig, is_program};
use kd_core::seating::LOCAL;
use kd_core::{Failure, Member, Roster, SeatName};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;

/// Checks the preconditions for asking, and downloads what the built-in members lack.
///
/// # Errors
/// If no member can answer, a price or a key is missing, or a download fails.
pub fn make_ready(
    config: &Config,
    offline: bool,
    env: &Env,
    roster: &Roster,
) -> Result<(), UserError> {
    make_ready_for(config, offline, env, roster, roster.members())
}

/// Like [`make_ready`], when these members will be asked; empty if not known yet.
///
/// # Errors
/// Those of [`make_ready`].
pub fn make_ready_for<'a>(
    config: &Config,
    offline: bool,
    env: &Env,
    roster: &Roster,
    asked: impl IntoIterator<Item = &'a Member>,
) -> Result<(), UserError> {
    spending::check(config, env, roster)?;
    let seats = roster.members().iter().chain(roster.chair());
    stay_here(config, env, seats.clone())?;
    not_for_others(config, seats.clone())?;
    somebody_is_there(config, env, asked)?;
    let local = seats.filter(|m| m.backend == LOCAL);
    // If other members can answer, only those with a broken model fail.
    if roster.members().iter().all(|m| m.backend == LOCAL) {
        are_models(config, offline, env, local.clone())?;
    }
    fetch_missing(config, offline, env, local.map(|m| m.model.as_deref()))
}

/// Fails if `council.private` is on and one of these members does not answer on this machine.
///
/// # Errors
/// See above.
pub fn stay_here<'a>(
    config: &Config,
    env: &Env,
    members: impl IntoIterator<Item = &'a Member>,
) -> Result<(), UserError> {
    if !config.council.private {
        return Ok(());
    }
    let backends = Backends::new(config, env.options_to_look());
    for member in members {
        backends.stays_here(member).map_err(|failure| {
            let what = "this question is private, and a member does not answer on this machine";
            UserError::new(ErrorKind::Private, what)
                .because(failure.message.clone())
                .next(failure.hint())
        })?;
    }
    Ok(())
}

/// Fails if other machines may ask and one of these members is an agent program, which uses the user's own login.
fn not_for_others<'a>(
    config: &Config,
    members: impl IntoIterator<Item = &'a Member>,
) -> Result<(), UserError> {
    let mut members = members.into_iter();
    let program = members.find(|member| is_program(&member.backend));
    match program.filter(|_| config.serves_others) {
        None => Ok(()),
        Some(member) => Err(program_of_others(member.name.as_str())),
    }
}

/// Returns the error for an agent program that another machine asked for.
pub(crate) fn program_of_others(name: &str) -> UserError {
    let what = format!("{name} is an agent program, which is not offered to other machines");
    UserError::new(ErrorKind::NoSeat, what)
        .next("name members that are asked over HTTP, or the built-in model")
}

/// Returns the members that cannot answer here, and why: without their program, key or model. Calls nothing.
pub(crate) fn absent(config: &Config, env: &Env, roster: &Roster) -> Vec<(SeatName, String)> {
    let backends = Backends::new(config, env.options_to_look());
    let why = |member: &Member| Some((member.name.clone(), backends.missing(member)?.message));
    roster.members().iter().filter_map(why).collect()
}

/// Fails if every one of these members lacks its program, its key or its model: one line per cause, and one that
/// installs or signs in.
fn somebody_is_there<'a>(
    config: &Config,
    env: &Env,
    members: impl IntoIterator<Item = &'a Member>,
) -> Result<(), UserError> {
    let backends = Backends::new(config, env.options_to_look());
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
    Err(UserError::new(ErrorKind::NoSeat, what)
        .because(lines(|failure| &failure.message))
        .next(lines(Failure::hint)))
}

/// Downloads missing models of the built-in backend; `None` is the configured one.
///
/// # Errors
/// If a model is unknown, or the download fails.
pub fn fetch_missing<'a>(
    config: &Config,
    offline: bool,
    env: &Env,
    wanted: impl IntoIterator<Item = Option<&'a str>>,
) -> Result<(), UserError> {
    let outside = env.of_backends(offline);
    let wanted: BTreeSet<Option<&str>> = wanted.into_iter().collect();
    for model in wanted {
        let local = LocalConfig {
            model: model
                .map(str::to_owned)
                .or_else(|| config.local.model.clone()),
            ..config.local.clone()
        };
        match delivery::locate(&local, &outside) {
            Ok(_) => {}
            Err(FetchError::Absent { model, .. }) => {
                fetch(&model, offline, env)?;
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
    env: &Env,
    members: impl IntoIterator<Item = &'a Member>,
) -> Result<(), UserError> {
    let outside = env.of_backends(offline);
    for member in members {
        let local = LocalConfig {
            model: member.model.clone().or_else(|| config.local.model.clone()),
            ..config.local.clone()
        };
        // The download reports any other problem.
        if let Ok(found) = delivery::locate(&local, &outside)
            && found.model.is_none()
        {
            is_model(&found.path)?;
        }
    }
    Ok(())
}

/// Fails if a file named by the user does not start like a model: reported once, before any member is asked.
fn is_model(path: &std::path::Path) -> Result<(), UserError> {
    let mut start = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    let why = match read {
        Ok(()) if start == *b"GGUF" => return Ok(()),
        Ok(()) => "it does not start with the letters GGUF".to_owned(),
        Err(error) => error.to_string(),
    };
    let what = format!("{} is not a model that kd can run", path.display());
    Err(UserError::new(ErrorKind::NoModel, what)
        .because(why)
        .next("give a GGUF file, or a model of `kd model list`"))
}

/// Downloads a model unless it is on this machine. Its path.
///
/// # Errors
/// If the download fails, or nothing may be downloaded.
pub fn fetch(model: &KnownModel, offline: bool, env: &Env) -> Result<PathBuf, UserError> {
    let outside = env.of_backends(offline);
    if let Some(path) = delivery::stored(model, &outside)? {
        return Ok(path);
    }
    let folder = delivery::models_dir(&outside).ok_or(FetchError::NoHome)?;
    let tell = |download| env.tell(&Notice::Download(download));
    if !outside.on("KD_OFFLINE") {
        let model = Box::new(*model);
        tell(Download::Begun { model, folder });
    }
    let begun = Instant::now();
    let download = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| UserError::new(ErrorKind::Io, "cannot start the runtime").because(e))?;
        let mut progress = |p| tell(Download::Progress(p));
        let fetched = delivery::fetch(model, Via::Auto, &outside, &mut progress);
        Ok(runtime.block_on(fetched)?)
    };
    // On a separate thread, because the caller may be inside a runtime.
    let fetched = std::thread::scope(|scope| match scope.spawn(download).join() {
        Ok(fetched) => fetched,
        Err(panic) => std::panic::resume_unwind(panic),
    });
    let took = fetched.is_ok().then(|| begun.elapsed());
    let model = Box::new(*model);
    tell(Download::Ended { model, took });
    fetched
}

impl From<FetchError> for UserError {
    fn from(error: FetchError) -> Self {
        let kind = match &error {
            FetchError::NoSuchKey { .. } | FetchError::NoSuchFile { .. } => ErrorKind::UnknownModel,
            FetchError::Io { .. } => ErrorKind::Io,
            _ => ErrorKind::NoModel,
        };
        let why = std::error::Error::source(&error).map(ToString::to_string);
        let mut out = UserError::new(kind, error.to_string()).next(error.hint());
        out.why = why.filter(|why| !out.what.contains(why));
        out
    }
}
