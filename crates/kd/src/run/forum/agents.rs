//! Personas: lists and adds them.

use super::super::here::Here;
use super::super::notices::notice_line;
use super::open_any as open;
use crate::args::forum::{Agents, NewAgent, Where};
use crate::error::Error;
use kd_app::forum::{personas, servers};
use kd_core::ids::SeatName;
use kd_core::persona::Persona;
use std::io::{self, BufRead, IsTerminal, Write};

pub(super) fn list(args: &Agents, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let personas = personas::load(&site.agents, site.project.judged_personas.as_ref())?;
    let mut out = crate::out::lines(args.json);
    let settings = site.settings()?;
    let mut rows = Vec::new();
    for persona in &personas {
        let last = site.store.last_run(persona.name.as_str())?;
        let known = site.store.candidate(persona.name.as_str())?;
        if args.json {
            let mut row = serde_json::to_value(persona).unwrap_or_default();
            row["turns"] = known.turns.into();
            row["tokens"] = known.tokens.into();
            row["energy"] = known.energy.into();
            row["servers"] = servers::names(&site.config, persona.name.as_str()).into();
            row["last_run_at"] = last.map(|at| at.to_string()).into();
            rows.push(row);
            continue;
        }
        let skip = persona
            .preferences
            .skip_probability
            .unwrap_or(settings.skip_probability);
        let model = persona
            .model
            .as_deref()
            .map(|m| format!(" {m}"))
            .unwrap_or_default();
        let last = last.map_or_else(
            || "never ran".to_owned(),
            |at| format!("last {}", at.strftime("%Y-%m-%d %H:%M")),
        );
        let servers = match servers::names(&site.config, persona.name.as_str()) {
            names if names.is_empty() => String::new(),
            names => format!(" · servers {}", names.join(", ")),
        };
        writeln!(
            out,
            "{:<20} {}{model} · sits out {:.0} % · {} turns · {last}{servers}",
            persona.name.as_str(),
            persona.backend,
            skip * 100.0,
            known.turns
        )?;
    }
    for persona in &personas {
        if let Err(why) = personas::check_backend(&persona.backend, &site.config) {
            let name = persona.name.as_str();
            notice_line(&format!("{name} cannot take turns: {}", why.what));
        }
    }
    if args.json {
        writeln!(out, "{}", serde_json::Value::from(rows))?;
    } else if personas.is_empty() {
        writeln!(out, "no agents yet: kd forum agent new")?;
    }
    Ok(())
}

pub(super) fn new(args: &NewAgent, here: &Here) -> Result<(), Error> {
    let folder = folder(&args.place, here)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => ask("Name", "")?,
    };
    let name = SeatName::new(name).map_err(|e| Error::usage(e.to_string()))?;
    personas::is_free(&folder, &name)?;
    let layout = here.find_layout()?;
    let loaded = here.settings(layout.as_ref())?;
    let backend = match &args.backend {
        Some(backend) => backend.clone(),
        None => ask(
            "Backend (local, openai, anthropic, claude_code, …)",
            "local",
        )?,
    };
    personas::check_backend(&backend, &loaded.config)?;
    let model = match (&args.model, backend.as_str()) {
        (Some(model), _) => Some(model.clone()),
        (None, "local") => None,
        (None, _) if args.name.is_some() => None,
        (None, _) => Some(ask("Model (empty: the backend's own)", "")?).filter(|m| !m.is_empty()),
    };
    let prompt = match &args.prompt {
        Some(prompt) => prompt.clone(),
        None => ask("Who is it, in a sentence", &format!("You are {name}."))?,
    };
    let text = Persona::template(name.as_str(), &backend, model.as_deref(), &prompt);
    let before = loaded.project;
    let file = personas::create(&folder, &name, &text)?;
    writeln!(crate::out::stdout(), "{}", file.display())?;
    let after = here.settings(layout.as_ref())?.project;
    if !personas::allow(&name, &before, &after)? {
        writeln!(crate::out::stderr(), "{}", kd_app::trust::held_line(&after))?;
    }
    Ok(())
}

fn folder(place: &Where, here: &Here) -> Result<std::path::PathBuf, Error> {
    Ok(match &place.agents_dir {
        Some(folder) => here.folder()?.join(folder),
        None => here.make_layout()?.layout.forum_agents_folder(),
    })
}

/// Asks for one line; Enter keeps the default.
fn ask(what: &str, usual: &str) -> Result<String, Error> {
    if !io::stdin().is_terminal() {
        if !usual.is_empty() {
            return Ok(usual.to_owned());
        }
        return Err(Error::usage(format!("`{what}` is missing"))
            .next("kd forum agent new NAME --backend local --prompt \"…\""));
    }
    let shown = if usual.is_empty() {
        String::new()
    } else {
        format!(" [{usual}]")
    };
    write!(crate::out::stderr(), "{what}{shown}: ")?;
    crate::out::stderr().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let line = line.trim();
    Ok(if line.is_empty() {
        usual.to_owned()
    } else {
        line.to_owned()
    })
}
