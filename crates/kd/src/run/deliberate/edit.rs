//! `--edit`: opens the plan in the user's editor and reads it back.

use super::super::here::Here;
use crate::args::Color;
use crate::error::Error;
use crate::exit::Exit;
use kd_core::config::Config;
use kd_core::deliberation::Plan;
use kd_core::planner::{self, OwnedBrief, Planned};
use kd_core::search_path;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Opens the plan, and parses the edited version.
pub(super) fn plan(plan: &Plan, config: &Config, brief: &OwnedBrief) -> Result<Planned, Error> {
    let here = Here::new(Color::Auto);
    let editor = here
        .var("VISUAL")
        .or_else(|| here.var("EDITOR"))
        .filter(|e| !e.trim().is_empty())
        .ok_or_else(|| {
            Error::usage("no editor is set")
                .next("export EDITOR=vi, or write a file and pass it with `--plan FILE`")
        })?;
    let failed = |e: std::io::Error| {
        Error::new(
            "io",
            Exit::Error,
            "the plan could not be handed to the editor",
        )
        .because(e)
    };
    let mut file = tempfile::Builder::new()
        .prefix("kd-plan-")
        .suffix(".json")
        .tempfile()
        .map_err(failed)?;
    let text = serde_json::to_string_pretty(&planner::document(plan)).unwrap_or_default();
    file.write_all(text.as_bytes())
        .and_then(|()| file.flush())
        .map_err(failed)?;
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let home = here.var("HOME").filter(|home| Path::new(home).is_dir());
    // Runs no code from the working folder: neither through `PATH` nor through settings files there.
    let status = Command::new(program)
        .args(words)
        .env(
            "PATH",
            search_path::absolute(std::env::var_os("PATH").as_deref()),
        )
        .current_dir(home.as_deref().unwrap_or("/"))
        .arg(file.path())
        .status()
        .map_err(failed)?;
    if !status.success() {
        return Err(Error::new(
            "edit",
            Exit::Interrupted,
            format!("{program} exited without a plan; nothing was asked"),
        ));
    }
    let text = std::fs::read_to_string(file.path()).map_err(failed)?;
    let parsed: Result<Value, _> = serde_json::from_str(&text);
    let document = match parsed {
        Ok(document) => document,
        Err(why) => {
            let what = "the plan is not JSON any more; nothing was asked";
            return Err(kept(file, Error::usage(what).because(why)));
        }
    };
    let mut value = serde_json::to_value(config).unwrap_or_default();
    value["deliberation"] = document;
    match Config::from_value(&value) {
        Ok(mut edited) => {
            edited.surroundings_of(config);
            planner::plan(&edited, &brief.brief()).map_err(|why| kept(file, Error::from(why)))
        }
        Err(problems) => {
            let lines: Vec<String> = problems
                .iter()
                .map(|p| p.to_string().replace("deliberation.", ""))
                .collect();
            let what = "the plan has mistakes; nothing was asked";
            let error = Error::new("plan", Exit::Usage, what).because(lines.join("\n"));
            Err(kept(file, error))
        }
    }
}

/// Keeps the edited file; the error names its path.
fn kept(file: tempfile::NamedTempFile, error: Error) -> Error {
    match file.keep() {
        Ok((_, path)) => error.next(format!(
            "fix it and run it: kd deliberate --plan {}",
            path.display()
        )),
        Err(_) => error,
    }
}
