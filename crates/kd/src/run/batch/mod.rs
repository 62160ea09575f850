//! `kd batch`: reads questions, runs a batch, and shows batches.

mod conduct;
mod fleet;
mod forget;
mod look;
mod questions;

use super::deliberate;
use super::here::Here;
use super::{choice, first, trust};
use crate::args::ask::terms;
use crate::args::batch::{Batch, Run};
use crate::args::deliberate::Deliberate;
use crate::args::{Cli, Command};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::batch as face;
use crate::face::json;
use clap::Parser;
use kd_app::batch::{BatchRequest, How};
use kd_app::setup::demo_answers;
use kd_app::{Ask, Kingdom, SeatRequest, Think};
use kd_core::formats::BATCH_ESTIMATE;
use serde_json::json as object;
use std::io::Write;
use std::path::Path;

/// The names of `--as`; anything else is a file.
const METHODS: [&str; 3] = ["ask", "think", "deliberate"];

pub(super) fn run(command: &Batch, here: &Here) -> Result<Exit, Error> {
    match command {
        Batch::Run(args) => ask(args, here),
        Batch::Status(args) => look::status(args, here),
        Batch::Results(args) => look::results(args, here),
        Batch::Retry(args) => look::retry(args, here),
        Batch::Cancel(args) => look::cancel(args, here),
        Batch::Forget(args) => forget::run(args, here),
        Batch::List(args) => look::list(args, here),
    }
}

pub(super) use fleet::{STOPPED, store};

fn ask(args: &Run, here: &Here) -> Result<Exit, Error> {
    let for_a_program = args.quiet || args.json;
    if !for_a_program && !args.dry_run && !names_members(args) {
        choice::ask(here)?;
    }
    let fleet = fleet::request(args, here)?;
    let questions = questions::read(args)?;
    let mut kingdom = trust::open(here, for_a_program)?;
    configure(args, &mut kingdom, here)?;
    kingdom.sweep();
    let request = BatchRequest {
        fleet,
        ..request(args, here)?
    };
    let batching = kingdom.batch(request, questions)?;
    if args.dry_run {
        let estimate = batching.estimate()?;
        let mut out = crate::out::stdout().lock();
        if args.json {
            let mut value = object!({"v": BATCH_ESTIMATE.version});
            if let (Some(all), Ok(serde_json::Value::Object(more))) =
                (value.as_object_mut(), serde_json::to_value(estimate))
            {
                all.extend(more);
            }
            writeln!(out, "{}", json::text(&value, true)?)?;
        } else {
            writeln!(out, "{}", face::estimate(&estimate, args.rate))?;
        }
        return Ok(Exit::Done);
    }
    if !for_a_program && demo_answers(kingdom.config(), &args.members) {
        first::notice(kingdom.layout().is_none(), here);
    }
    conduct::conduct(args, batching, here)
}

/// Returns whether the command says who answers.
fn names_members(args: &Run) -> bool {
    let plan = !METHODS.contains(&args.how.as_str());
    !args.members.is_empty() || args.model.model.is_some() || args.privacy.private || plan
}

/// Puts the options that are settings into the settings, so that all questions share one account.
fn configure(args: &Run, kingdom: &mut Kingdom, here: &Here) -> Result<(), Error> {
    if is_planned(&args.how) {
        refuse_unused(args)?;
        let plan = Deliberate {
            plan: (!METHODS.contains(&args.how.as_str())).then(|| args.how.clone().into()),
            max_tokens: args.model.max_tokens,
            offline: args.model.offline,
            privacy: args.privacy,
            ..Deliberate::default()
        };
        if let Some(path) = &plan.plan
            && !path.exists()
        {
            let what = format!("`--as {}` is neither a method nor a file", args.how);
            return Err(
                Error::usage(what).next("--as takes ask, think, deliberate, or a file with a plan")
            );
        }
        let config = deliberate::settings(&plan, kingdom.loaded(), here)?;
        kingdom.configure(|old| *old = config);
    }
    let (private, offline) = (args.privacy.private, args.model.offline);
    kingdom.configure(|config| {
        config.council.private |= private;
        config.local.offline |= offline;
    });
    Ok(())
}

fn is_planned(how: &str) -> bool {
    !matches!(how, "ask" | "think")
}

/// Refuses options that a deliberation takes from its plan.
fn refuse_unused(args: &Run) -> Result<(), Error> {
    let unused = [
        ("--model", args.model.model.is_some()),
        ("--temperature", args.model.temperature.is_some()),
        ("--seed", args.model.seed.is_some()),
        ("--timeout", args.timeout.is_some()),
        ("--no-conclude", args.no_conclude),
        ("--allow-secrets", args.privacy.allow_secrets),
    ];
    match unused.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Error::usage(format!("{flag} is not used with --as deliberate"))
            .next("set it in the settings of the agents or in a plan; `kd config schema` has every field")),
        None => Ok(()),
    }
}

fn request(args: &Run, here: &Here) -> Result<BatchRequest, Error> {
    let limits = terms(&args.spending, args.privacy, args.model.offline).limits;
    let terms = kd_app::Terms {
        allow_secrets: args.privacy.allow_secrets,
        offline: args.model.offline,
        ..kd_app::Terms::default()
    };
    let seats = SeatRequest {
        members: args.members.clone(),
        ..args.model.request(args.timeout)
    };
    let how = match args.how.as_str() {
        "ask" => How::Ask(Ask {
            seats,
            no_conclusion: args.no_conclude,
            terms,
            ..Ask::default()
        }),
        "think" => {
            let mut members = args.members.iter().cloned();
            How::Think(Think {
                fast: members.next(),
                rigorous: members.next(),
                arbiter: members.next(),
                all: SeatRequest {
                    members: Vec::new(),
                    ..seats
                },
                terms,
                ..Think::default()
            })
        }
        _ => How::Deliberate(kd_app::Deliberate {
            members: args.members.clone(),
            offline: args.model.offline,
            ..kd_app::Deliberate::default()
        }),
    };
    let output = match &args.output {
        Some(path) => Some(here.folder()?.join(path)),
        None => None,
    };
    Ok(BatchRequest {
        how,
        source: questions::name(&args.questions),
        command: command(std::env::args_os().skip(1)),
        output,
        fresh: args.fresh,
        limits,
        concurrency: args
            .concurrency
            .unwrap_or(if args.provider_batch { 512 } else { 8 })
            .into(),
        provider_batch: args.provider_batch,
        log: args.log.clone(),
        attempts: args.attempts,
        pause: args.pause,
        every: args.rate,
        fleet: None,
    })
}

/// Returns the command line for the user to type again, without the password of a database.
fn command(args: impl Iterator<Item = std::ffi::OsString>) -> String {
    let mut words = vec!["kd".to_owned()];
    words.extend(args.map(|arg| {
        let arg = fleet::shown_argument(&arg.to_string_lossy());
        match !arg.is_empty() && arg.chars().all(is_plain) {
            true => arg,
            false => format!("'{}'", arg.replace('\'', "'\\''")),
        }
    }));
    words.join(" ")
}

/// Returns whether a command line is one of `kd batch run`, as [`command`] writes it: another program may have put anything
/// into a database.
fn is_run(command: &str) -> bool {
    let cli = words(command).and_then(|words| Cli::try_parse_from(words).ok());
    cli.is_some_and(|cli| matches!(&cli.command, Command::Batch(batch) if matches!(batch.command, Batch::Run(_))))
}

/// Splits a command line that [`command`] has written; `None` for any other one.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' => words.push(word.take()?),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '\\' => match rest.next()? {
                '\'' => word.get_or_insert_default().push('\''),
                _ => return None,
            },
            c if is_plain(c) => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    words.push(word?);
    Some(words)
}

/// Returns whether a shell takes a character as it is.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c)
}

/// Returns a path for people.
fn shown(path: &Path) -> String {
    crate::render::clean::line(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_that_runs_a_batch_is_one_to_type() {
        let typed = |args: &[&str]| command(args.iter().map(Into::into));
        let own = typed(&[
            "batch",
            "run",
            "my questions.txt",
            "-o",
            "it's.jsonl",
            "--rate",
            "30/m",
        ]);
        assert!(is_run(&own), "{own}");
        for other in [
            "kd batch run q.txt; rm -r .",
            "kd batch run q.txt $(id)",
            "kd batch run 'q.txt",
            "kd batch run q.txt --no-such-option",
            "kd batch cancel 1",
            "sh -c 'kd batch run q.txt'",
            "kd  batch run q.txt",
            "",
        ] {
            assert!(!is_run(other), "{other}");
        }
    }

    #[test]
    fn the_command_can_be_typed_again() {
        let args = ["batch", "run", "my questions.txt", "-o", "it's.jsonl", ""];
        assert_eq!(
            command(args.into_iter().map(Into::into)),
            "kd batch run 'my questions.txt' -o 'it'\\''s.jsonl' ''"
        );
        for store in [
            "--store=postgresql://u:pw@h/db",
            "postgresql://u:pw@h/db?password=pw",
        ] {
            let typed = command([store].into_iter().map(Into::into));
            assert!(
                typed.contains("postgresql://u@h/db") && !typed.contains("pw"),
                "{typed}"
            );
        }
    }
}
