//! Personas: loads them from their folder, lists and adds them.

use super::super::here::Here;
use super::super::notices::notice_line;
use super::Site;
use crate::args::forum::{Agents, NewAgent, Where};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::clean;
use kd_app::forum::servers;
use kd_core::config::{BACKENDS, Config, KeyPath};
use kd_core::ids::SeatName;
use kd_core::persona::Persona;
use kd_store::beneath::{self, Folder};
use kd_store::bounds;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

/// Loads all personas of a folder, by name. For the project's folder, uses the texts that were checked for consent.
/// Reports all mistakes of all files at once.
pub(super) fn load(
    folder: &Path,
    judged: Option<&BTreeMap<OsString, String>>,
) -> Result<Vec<Persona>, Error> {
    let items = match Folder::find(folder)? {
        Some(folder) => folder.items()?,
        None => Vec::new(),
    };
    let mut files: Vec<_> = items.iter().map(|item| folder.join(&item.name)).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "yaml" || e == "yml"));
    files.sort();
    let mut personas: Vec<Persona> = Vec::new();
    let mut wrong = Vec::new();
    for file in files {
        let known = judged.map(|texts| texts.get(file.file_name().unwrap_or_default()));
        let text = match known {
            Some(Some(text)) => text.clone(),
            unjudged => match beneath::read_text(&file, bounds::PERSONA)? {
                Some(_) if unjudged.is_some() => {
                    wrong.push(format!("{}: it changed just now", file.display()));
                    continue;
                }
                Some(text) => text,
                None => continue,
            },
        };
        match Persona::parse(&text) {
            Ok(persona) => match personas.iter().any(|p| p.name == persona.name) {
                true => wrong.push(format!(
                    "{}: `{}` is in another file too",
                    file.display(),
                    persona.name
                )),
                false => personas.push(persona),
            },
            Err(bad) if bad.line > 0 => {
                wrong.push(format!("{}:{}: {}", file.display(), bad.line, bad.why))
            }
            Err(bad) => wrong.push(format!("{}: {bad}", file.display())),
        }
    }
    if !wrong.is_empty() {
        let what = match wrong.as_slice() {
            [one] => one.clone(),
            many => format!("{} mistakes in personas", many.len()),
        };
        let error = Error::new("persona", Exit::Usage, what)
            .next("fix the file; `kd forum agent new` writes a valid one");
        return Err(if wrong.len() > 1 {
            error.because(wrong.join("\n"))
        } else {
            error
        });
    }
    personas.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(personas)
}

pub(super) fn list(args: &Agents, here: &Here) -> Result<(), Error> {
    let mut site = Site::open(&args.place, here)?;
    let personas = load(&site.agents, site.project.judged_personas.as_ref())?;
    let mut out = crate::out::stdout().lock();
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
        if let Err(why) = check_backend(&persona.backend, &site.config) {
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
    let file = folder.join(format!("{name}.yaml"));
    let taken = || {
        Error::usage(format!("{} already exists", file.display()))
            .next("choose another name, or edit the file")
    };
    if file.symlink_metadata().is_ok() {
        return Err(taken());
    }
    let layout = here.find_layout()?;
    let loaded = here.settings(layout.as_ref())?;
    let backend = match &args.backend {
        Some(backend) => backend.clone(),
        None => ask(
            "Backend (local, openai, anthropic, claude_code, …)",
            "local",
        )?,
    };
    check_backend(&backend, &loaded.config)?;
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
    Persona::parse(&text).map_err(|e| Error::usage(e.to_string()))?;
    let before = loaded.project;
    if !beneath::create(&file, text.as_bytes())? {
        return Err(taken());
    }
    writeln!(crate::out::stdout(), "{}", file.display())?;
    let path = KeyPath::new([
        "forum".to_owned(),
        "agents".to_owned(),
        format!("{name}.yaml"),
    ]);
    let after = here.settings(layout.as_ref())?.project;
    if !after.allow_change(&before, |at, _| at.is_within(&path))? {
        writeln!(crate::out::stderr(), "{}", kd_app::trust::held_line(&after))?;
    }
    Ok(())
}

/// Rejects a backend that is neither built in nor configured.
fn check_backend(backend: &str, config: &Config) -> Result<(), Error> {
    if BACKENDS.contains(&backend) || config.providers.contains_key(backend) {
        return Ok(());
    }
    let own = config.providers.keys().map(String::as_str);
    let known: Vec<&str> = BACKENDS.iter().copied().chain(own).collect();
    Err(Error::usage(format!(
        "`{}` is neither a backend nor a provider",
        clean::line(backend)
    ))
    .next(format!("--backend NAME, one of: {}", known.join(", "))))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn persona(name: &str, backend: &str) -> String {
        format!("name: {name}\nbackend: {backend}\nsystem_prompt: You are {name}.\n")
    }

    #[test]
    fn a_persona_is_used_as_it_was_judged() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join(".kd/forum/agents");
        std::fs::create_dir_all(&folder).expect("made");
        let write = |name: &str, backend: &str| {
            let file = folder.join(format!("{name}.yaml"));
            std::fs::write(file, persona(name, backend)).expect("written");
        };
        // The file has changed since.
        write("ada", "codex");
        let judged = BTreeMap::from([(OsString::from("ada.yaml"), persona("ada", "local"))]);
        let loaded = load(&folder, Some(&judged)).expect("personas");
        assert_eq!(loaded[0].backend, "local");
        assert_eq!(load(&folder, None).expect("personas")[0].backend, "codex");
        // A file not checked for consent.
        write("eve", "codex");
        let error = load(&folder, Some(&judged)).expect_err("a new file");
        assert!(
            error.what.contains("eve.yaml: it changed"),
            "{}",
            error.what
        );
    }
}
