//! Writes recorded answers as a table, and decisions as files of Every Eval Ever.

use super::recorded::Origin;
use crate::args::eval::Eval;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::{Env, outfile};
use kd_eval::deciders::Way;
use kd_eval::replay::{Replay, Table};
use kd_records::{About, Written};
use std::collections::BTreeMap;
use std::io::Write;

/// The cell of a member that was not asked.
const MISSING: &str = "<missing>";

/// Writes a table of answers as CSV, as `kd eval --replay` reads it.
pub(super) fn csv(args: &Eval, table: &Table, origin: &Origin, env: &Env) -> Result<(), Error> {
    let text = rows(table, &origin.about);
    match &args.output {
        Some(path) => Ok(outfile::write(path, text.as_bytes(), env)?),
        None => Ok(crate::out::stdout().lock().write_all(text.as_bytes())?),
    }
}

fn rows(table: &Table, about: &BTreeMap<String, About>) -> String {
    let has_cost: Vec<bool> = (0..table.members.len())
        .map(|at| {
            table
                .rows()
                .iter()
                .any(|(q, _)| q.cost.get(at).copied().flatten().is_some())
        })
        .collect();
    let priced = || {
        has_cost
            .iter()
            .enumerate()
            .filter(|(_, has)| **has)
            .map(|(at, _)| at)
    };
    let mut out = String::from("id,gold");
    let costs: Vec<String> = priced()
        .map(|at| format!("cost:{}", table.members[at]))
        .collect();
    for name in table.members.iter().chain(&costs) {
        out.push(',');
        out.push_str(&cell(name));
    }
    out.push('\n');
    for (question, missing) in table.rows() {
        let right = question
            .keys
            .iter()
            .zip(&question.right)
            .find(|(_, right)| **right);
        let gold = about.get(&question.id).and_then(|about| about.gold.first());
        let gold = right
            .map(|(key, _)| key)
            .or(gold)
            .map_or("", String::as_str);
        out.push_str(&cell(&question.id));
        out.push(',');
        out.push_str(&cell(gold));
        for (answer, missing) in question.answers.iter().zip(missing) {
            out.push(',');
            let key = answer.and_then(|at| question.keys.get(at));
            out.push_str(&match (missing, key) {
                (true, _) => MISSING.to_owned(),
                (false, key) => cell(key.map_or("", String::as_str)),
            });
        }
        for at in priced() {
            let cost = question.cost.get(at).copied().flatten();
            out.push_str(&format!(
                ",{}",
                cost.map_or_else(String::new, |usd| usd.to_string())
            ));
        }
        out.push('\n');
    }
    out
}

fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) || text.trim() != text {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Writes the decisions of these ways as files of Every Eval Ever, below a folder.
pub(super) fn eee(
    args: &Eval,
    (replay, ways, options): (&Replay, &[Way], u64),
    origin: &Origin,
    env: &Env,
) -> Result<(), Error> {
    if args.output.is_none() {
        return Err(needs_folder());
    }
    let files = kd_records::written(replay, ways, &origin.about, (options, args.seed), now());
    self::files(&files, args, env)
}

/// Returns the time in seconds since 1970, and the version of this program.
pub(super) fn now() -> (u64, &'static str) {
    let now = kd_core::Timestamp::now();
    (now.as_second().unsigned_abs(), env!("CARGO_PKG_VERSION"))
}

/// Returns the error without a folder for several files.
pub(super) fn needs_folder() -> Error {
    Error::usage("--format eee writes several files")
        .next("add -o FOLDER: they are written below it, as `data/TASK/kingdom/RULE/…`")
}

/// Creates the folder of `--output`, and fails if nothing can be written there: checked before any member is asked.
pub(super) fn make_folder(args: &Eval, env: &Env) -> Result<(), Error> {
    let Some(folder) = &args.output else {
        return Err(needs_folder());
    };
    std::fs::create_dir_all(folder).map_err(|e| {
        let what = format!("{} could not be created", folder.display());
        Error::new("output", Exit::Error, what)
            .because(e)
            .next("give -o a folder that can be written; no member was asked")
    })?;
    Ok(outfile::check(Some(&folder.join("data.json")), env)?)
}

/// Writes files below the folder of `--output`, and prints their paths.
pub(super) fn files(files: &[Written], args: &Eval, env: &Env) -> Result<(), Error> {
    let Some(folder) = &args.output else {
        return Err(needs_folder());
    };
    let mut out = crate::out::stdout().lock();
    for file in files {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| {
                let what = format!("{} could not be created", parent.display());
                Error::new("output", Exit::Error, what).because(e)
            })?;
        }
        outfile::write(&path, file.text.as_bytes(), env)?;
        writeln!(
            out,
            "{}",
            crate::render::clean::line(&path.display().to_string())
        )?;
    }
    Ok(())
}
