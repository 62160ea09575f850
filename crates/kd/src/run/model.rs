//! `kd model …`, and the download of the built-in model before the first question.

mod bench;

use super::here::Here;
use crate::args::model::{List, Model};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use kd_app::models::{self, How, KnownModel, MODELS, Stored, known};
use kd_core::config::LocalConfig;
use serde_json::{Value, json};
use std::io::Write;

pub(super) fn run(args: &Model, here: &Here) -> Result<Exit, Error> {
    match args {
        Model::List(args) => list(args, here)?,
        Model::Pull(args) => {
            let path = kd_app::ready::fetch(known(args.model.as_deref())?, false, here)?;
            writeln!(crate::out::stdout(), "{}", path.display())?;
        }
        Model::Use(args) => {
            let model = known(Some(&args.model))?;
            kd_app::ready::fetch(model, false, here)?;
            super::config::set_for_user("local.model", model.key, here)?;
        }
        Model::Verify(args) => return verify(args.model.as_deref(), here),
        Model::Rm(args) => {
            let model = known(Some(&args.model))?;
            models::remove(model, here)?;
            writeln!(crate::out::stderr(), "{} is removed", model.key)?;
        }
        Model::Bench(args) => bench::run(args, here)?,
        Model::Path(args) => {
            let config = LocalConfig {
                model: args.model.clone(),
                ..here.settings(here.find_layout()?.as_ref())?.config.local
            };
            let found = models::locate(&config, here)?;
            writeln!(crate::out::stdout(), "{}", found.path.display())?;
        }
    }
    Ok(Exit::Done)
}

fn list(args: &List, here: &Here) -> Result<(), Error> {
    let rows = models::all(here)?;
    let local = here.settings(here.find_layout()?.as_ref())?.config.local;
    let current = models::locate(&local, here).ok();
    let mut out = crate::out::lines(args.json);
    if args.json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|Stored { model: m, path }| {
                json!({"key": m.key, "title": m.title, "note": m.note, "bytes": m.bytes, "memory_bytes": m.memory(),
                       "licence": m.licence, "source": m.hub.repository, "sha256": m.sha256, "checked": m.checked,
                       "path": path})
            })
            .collect();
        writeln!(out, "{}", json::text(&rows, true)?)?;
        return Ok(());
    }
    let styles = here.out_styles();
    for Stored { model, path } in &rows {
        writeln!(
            out,
            "{}  {}",
            styles.bold(model.key),
            state(model, path.is_some())
        )?;
        for line in about(model) {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "{UNVERIFIED}")?;
    if let Some(found) = current {
        writeln!(out, "in use: {} ({})", found.path.display(), found.how)?;
        if found.how == How::Given {
            writeln!(out, "`kd config show --origin` says where it is set")?;
        }
    }
    writeln!(
        out,
        "to take one from now on: kd model use KEY\nany other GGUF file: kd ask --model FILE.gguf …"
    )?;
    Ok(())
}

/// The note on models that this project has not run.
const UNVERIFIED: &str = "unverified: this project has not run the file; its SHA-256 is the one that\n\
    other projects pin";

/// Returns the state of a model, for its line in the list.
fn state(model: &KnownModel, is_here: bool) -> String {
    format!(
        "{}, memory {}{}, {}",
        super::notices::mebibytes(model.bytes),
        super::notices::mebibytes(model.memory()),
        if model.checked { "" } else { ", unverified" },
        if is_here { "here" } else { "not downloaded" },
    )
}

/// Returns the lines about a model in the list.
fn about(model: &KnownModel) -> [String; 3] {
    [
        format!("{}, {}", model.title, model.licence),
        model.note.to_owned(),
        model.hub.repository.to_owned(),
    ]
}

fn verify(key: Option<&str>, here: &Here) -> Result<Exit, Error> {
    let models: Vec<&KnownModel> = match key {
        Some(key) => vec![known(Some(key))?],
        None => MODELS.iter().collect(),
    };
    let mut seen = false;
    for model in models {
        if models::verify(model, here)? {
            seen = true;
            writeln!(
                crate::out::stdout(),
                "{}: complete, as published",
                model.key
            )?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_80_columns() {
        for model in &MODELS {
            let state = format!("{}  {}", model.key, state(model, false));
            let about = about(model).map(|line| format!("  {line}"));
            for line in UNVERIFIED
                .lines()
                .chain([state.as_str()])
                .chain(about.iter().map(String::as_str))
            {
                assert!(line.chars().count() <= 80, "{line}");
            }
            assert_eq!(state.contains("unverified"), !model.checked, "{state}");
        }
    }
}
