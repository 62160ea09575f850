//! The first-run prompt: which model answers. Input: what is on this machine, and one key. Output: the user's
//! configuration. Asks nothing without a terminal, with an existing configuration, or without alternatives.

use super::here::Here;
use super::init::{look_around, seats};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::clean;
use crate::render::wrap::wrap;
use kd_backends::adapters::programs;
use kd_backends::delivery::{self, catalog};
use kd_backends::discovery::{Discovered, What, ollama_at};
use kd_backends::{Env, providers};
use kd_core::config::{Config, InitSeat, Layer, render_init};
use kd_core::roles::{self, BUILT_IN_COUNCIL};
use kd_tui::terminal::{self, Key, Keys};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Parts of names of Ollama models that produce embeddings instead of answers.
const NO_ANSWERS: [&str; 4] = ["embed", "minilm", "bge-", "rerank"];
/// Maximum characters shown of a model's name.
const NAME_MAX: usize = 40;

/// One line of the prompt.
struct Offer {
    /// The line of the offer: the members and their cost.
    line: String,
    /// Whether it costs nothing, or only what its line says is already paid.
    free: bool,
    /// The configuration.
    text: String,
    /// The line after the choice: the members that answer from now on.
    who: String,
}

/// Asks who answers, if nothing is configured and the user is at a terminal, and writes the choice to the user's
/// configuration.
///
/// # Errors
/// If the user leaves without a choice, or the choice cannot be saved.
pub(super) fn ask(here: &Here) -> Result<(), Error> {
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !terminal || here.is_on("CI") || here.var("KD_MODEL").is_some() {
        return Ok(());
    }
    // The command itself reports what is wrong there.
    let Ok(layout) = here.find_layout() else {
        return Ok(());
    };
    let paths = here.config_paths(layout.as_ref());
    let Some(file) = paths.file(Layer::User) else {
        return Ok(());
    };
    let nothing_yet = file.symlink_metadata().is_err()
        && here
            .settings(layout.as_ref())
            .is_ok_and(|loaded| !loaded.project.holds_back() && is_bare(&loaded.config));
    if !nothing_yet {
        return Ok(());
    }
    let offers = offers(&look_around(here)?, &here.of_backends(false));
    if offers.len() < 2 {
        return Ok(());
    }
    let file = tilde(&file, here);
    let Some(offer) = pick(&offers, &file)? else {
        return Err(Error::new(
            "interrupted",
            Exit::Interrupted,
            "no member was asked, and nothing was changed",
        )
        .next("`kd ask --members NAMES …` asks these members; `kd init` has more to choose from"));
    };
    kd_store::config::create(&paths, Layer::User, &offer.text, false).map_err(|why| {
        Error::new(
            "io",
            Exit::Error,
            format!("the choice cannot be saved in {file}"),
        )
        .because(why)
        .next("`kd ask --members NAMES …` asks agent programs without saving the choice")
    })?;
    say(&format!("{} from now on", offer.who))?;
    say("to choose again: kd init --user --force")
}

/// Returns whether the configuration does not say who answers.
fn is_bare(config: &Config) -> bool {
    config.agents.is_empty()
        && config.council.members.is_empty()
        && config.providers.is_empty()
        && config.local.model.is_none()
}

/// Returns the choices, best first; the built-in models last.
fn offers(found: &[Discovered], env: &Env) -> Vec<Offer> {
    let mut offers = Vec::new();
    offers.extend(of_programs(found, env));
    offers.extend(found.iter().find_map(|found| of_ollama(found, env)));
    offers.extend(found.iter().filter_map(|found| of_key(found, env)));
    offers.push(built_in(env));
    // Without another choice nothing is asked, and `kd model use` is in the notice.
    if offers.len() > 1 {
        offers.push(larger());
    }
    offers
}

fn of_programs(found: &[Discovered], env: &Env) -> Option<Offer> {
    let programs: Vec<&Discovered> = found
        .iter()
        .filter(|found| matches!(found.what, What::Program(_)))
        .collect();
    let members: Vec<InitSeat> = programs
        .iter()
        .flat_map(|found| seats(found, env))
        .collect();
    let names: Vec<&str> = members.iter().map(|seat| seat.name.as_str()).collect();
    let names = list(&names)?;
    let bills = programs
        .iter()
        .filter_map(|found| programs::program(&found.backend)?.bills(env))
        .next();
    let costs = match &bills {
        None => "uses your subscription".to_owned(),
        Some(key) => format!("may cost money: {key}"),
    };
    Some(Offer {
        line: format!("{names}, found here ({costs})"),
        free: bills.is_none(),
        text: render_init(&members),
        who: match members.len() {
            1 => format!("{names} answers"),
            _ => format!("{names} answer"),
        },
    })
}

fn of_ollama(found: &Discovered, env: &Env) -> Option<Offer> {
    let What::Ollama(models) = &found.what else {
        return None;
    };
    let answers = |model: &&String| {
        let name = model.to_lowercase();
        let is_elsewhere = name.ends_with("-cloud") || name.ends_with(":cloud");
        !is_elsewhere && !NO_ANSWERS.iter().any(|part| name.contains(part))
    };
    let model = models.iter().find(answers)?;
    let only = Discovered {
        what: What::Ollama(vec![model.clone()]),
        ..found.clone()
    };
    let seat = seats(&only, env).into_iter().next()?;
    let (shown, at) = (shown(model), ollama_at(env));
    let is_here = ["127.", "localhost:", "[::1]:"]
        .iter()
        .any(|start| at.starts_with(start));
    let place = match is_here {
        true => "here".to_owned(),
        false => format!("at {}", clean::line(&at)),
    };
    Some(Offer {
        line: format!("{shown}, an Ollama model found {place}, in three roles (free)"),
        free: true,
        text: render_init(&in_roles(&seat)),
        who: format!("{shown} answers in three roles"),
    })
}

fn of_key(found: &Discovered, env: &Env) -> Option<Offer> {
    let What::Key(variable) = &found.what else {
        return None;
    };
    let model = providers::known(&found.backend)?.suggested?;
    let seat = InitSeat {
        model: Some(model.to_owned()),
        ..seats(found, env).into_iter().next()?
    };
    Some(Offer {
        line: format!("{model} in three roles, with the key {variable} (each answer costs money)"),
        free: false,
        text: render_init(&in_roles(&seat)),
        who: format!("{model} answers in three roles (each answer costs money)"),
    })
}

fn built_in(env: &Env) -> Offer {
    let config = Config::default().local;
    let size = match delivery::locate(&config, env) {
        Ok(_) => "downloaded already".to_owned(),
        Err(_) => super::notices::mebibytes(catalog::DEFAULT.bytes),
    };
    let members = serde_json::json!(BUILT_IN_COUNCIL);
    Offer {
        line: format!(
            "the built-in demo model ({size}, no account; it shows how a council works; its advice is poor)"
        ),
        free: true,
        text: format!(
            "{{\n  // The built-in demo model in three roles. For better answers: kd init --user --force\n  \
             \"council\": {{\n    \"members\": {members}\n  }}\n}}\n"
        ),
        who: "the built-in demo model answers".to_owned(),
    }
}

/// Offers a larger model of the built-in engine, to be downloaded before the first question.
fn larger() -> Offer {
    let model = catalog::LARGER;
    let members = serde_json::json!(BUILT_IN_COUNCIL);
    let size = super::notices::mebibytes;
    Offer {
        line: format!(
            "a larger local model, {} ({} to download, {} of memory, no account)",
            model.title,
            size(model.bytes),
            size(model.memory())
        ),
        free: true,
        text: format!(
            "{{\n  // {} in three roles. Other local models: kd model list\n  \
             \"council\": {{\n    \"members\": {members}\n  }},\n  \"local\": {{\n    \"model\": \"{}\"\n  }}\n}}\n",
            model.title, model.key
        ),
        who: format!("{} answers", model.title),
    }
}

/// Returns one model as the members of the built-in council.
fn in_roles(seat: &InitSeat) -> Vec<InitSeat> {
    let members = BUILT_IN_COUNCIL.iter().map(|role| {
        let title = roles::find(role).map_or(*role, |role| role.title);
        InitSeat {
            name: (*role).to_owned(),
            role: Some((*role).to_owned()),
            comment: format!("{title}: {}", seat.comment),
            ..seat.clone()
        }
    });
    members.collect()
}

/// Shows the offers and waits for a key. `None` if the user leaves.
fn pick<'a>(offers: &'a [Offer], file: &str) -> Result<Option<&'a Offer>, Error> {
    // The built-in model is free, so there always is one.
    let default = offers.iter().position(|offer| offer.free).unwrap_or(0);
    let Some(mut keys) = Keys::take() else {
        return Ok(None);
    };
    let columns = terminal::size_of_stderr().map_or(80, |(columns, _)| columns.into());
    for line in question(offers, default, file, columns) {
        say(&line)?;
    }
    let mut err = crate::out::stderr().lock();
    write!(err, "> ")?;
    err.flush()?;
    let place = loop {
        match keys.pressed() {
            Key::Enter => break Some(default),
            Key::Leave => break None,
            Key::Char(digit) => {
                let place = digit.to_digit(10).and_then(|n| (n as usize).checked_sub(1));
                if let Some(place) = place.filter(|place| *place < offers.len()) {
                    break Some(place);
                }
            }
            Key::Other => {}
        }
    };
    let echo = place.map_or(String::new(), |place| (place + 1).to_string());
    writeln!(err, "{echo}")?;
    Ok(place.and_then(|place| offers.get(place)))
}

/// Formats the prompt in lines of at most `columns`.
fn question(offers: &[Offer], default: usize, file: &str, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(1).max(20);
    let mut lines = wrap(
        &format!("Nothing is configured yet. Who should answer? The choice is saved in {file}."),
        room,
    );
    for (at, offer) in offers.iter().enumerate() {
        let mut label = format!("  {}) ", at + 1);
        for line in wrap(&offer.line, room.saturating_sub(label.len())) {
            lines.push(format!("{label}{line}"));
            label = " ".repeat(label.len());
        }
    }
    let to = if offers.len() == 2 { "or" } else { "to" };
    let last = format!(
        "Press 1 {to} {}. Enter picks {}, q quits.",
        offers.len(),
        default + 1
    );
    lines.extend(wrap(&last, room));
    lines
}

/// Joins names for a sentence; `None` if there are none.
fn list(names: &[&str]) -> Option<String> {
    let (last, rest) = names.split_last()?;
    Some(match rest {
        [] => (*last).to_owned(),
        rest => format!("{} and {last}", rest.join(", ")),
    })
}

fn shown(model: &str) -> String {
    let name = clean::line(model);
    match name.char_indices().nth(NAME_MAX) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name,
    }
}

/// Abbreviates the user's home in a path as `~`.
fn tilde(path: &Path, here: &Here) -> String {
    let below = here
        .var_os("HOME")
        .and_then(|home| path.strip_prefix(home).ok());
    match below {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

fn say(line: &str) -> Result<(), Error> {
    Ok(writeln!(crate::out::stderr(), "{line}")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn program(backend: &str) -> Discovered {
        Discovered {
            what: What::Program(PathBuf::from("/bin/x")),
            name: backend.into(),
            backend: backend.into(),
        }
    }

    fn ollama(models: &[&str]) -> Discovered {
        Discovered {
            what: What::Ollama(models.iter().map(|m| (*m).to_owned()).collect()),
            name: "Ollama".into(),
            backend: "ollama".into(),
        }
    }

    fn key(service: &str, variable: &str) -> Discovered {
        Discovered {
            what: What::Key(variable.into()),
            name: service.into(),
            backend: service.into(),
        }
    }

    fn all() -> Vec<Discovered> {
        vec![
            program("claude_code"),
            program("codex"),
            ollama(&["nomic-embed-text", "glm-4.6:cloud", "qwen3:4b"]),
            key("openai", "OPENAI_API_KEY"),
        ]
    }

    #[test]
    fn what_is_there_is_offered_and_enter_spends_nothing() {
        let nothing = Env::of([("A", "b")]);
        let keyed = Env::of([("ANTHROPIC_API_KEY", "k")]);
        let both = [
            program("claude_code"),
            key("anthropic", "ANTHROPIC_API_KEY"),
        ];
        for (found, env, words, default) in [
            (
                &all()[..],
                &nothing,
                &[
                    "claude and codex",
                    "qwen3:4b",
                    "OPENAI_API_KEY",
                    "demo",
                    "larger",
                ][..],
                0,
            ),
            (
                &all()[1..2],
                &nothing,
                &["codex, found here (uses", "demo", "larger"],
                0,
            ),
            (
                &all()[2..],
                &nothing,
                &["qwen3:4b", "OPENAI_API_KEY", "demo", "larger"],
                0,
            ),
            (&all()[3..], &nothing, &["costs money", "demo", "larger"], 1),
            (
                &both,
                &keyed,
                &[
                    "may cost money: ANTHROPIC_API_KEY",
                    "costs money",
                    "demo",
                    "larger",
                ],
                2,
            ),
            (
                &[program("opencode")],
                &nothing,
                &["may cost money: ", "demo", "larger"],
                1,
            ),
            (&[ollama(&["nomic-embed-text"])], &nothing, &["demo"], 0),
            (&[], &nothing, &["demo"], 0),
        ] {
            let offers = offers(found, env);
            assert_eq!(offers.len(), words.len());
            for (offer, word) in offers.iter().zip(words) {
                assert!(offer.line.contains(word), "{word}: {}", offer.line);
            }
            assert_eq!(offers.iter().position(|offer| offer.free), Some(default));
        }
    }

    #[test]
    fn the_larger_model_is_named_by_its_key() {
        let offer = larger();
        let model = format!("\"model\": \"{}\"", catalog::LARGER.key);
        assert!(offer.text.contains(&model), "{}", offer.text);
        assert!(offer.line.contains("GiB of memory"), "{}", offer.line);
    }

    #[test]
    fn the_question_fits_and_a_name_from_outside_stays_in_its_line() {
        let odd = format!("a\u{1b}[2J\n  1) free gold {}", "x".repeat(300));
        let offers = offers(&[ollama(&[&odd])], &Env::of([("A", "b")]));
        for columns in [40, 80, 200] {
            let lines = question(&offers, 0, "~/.config/kd/config.json", columns);
            assert!(lines.iter().all(|line| line.chars().count() < columns));
            let numbered = |line: &&String| line.trim_start().starts_with("1)");
            assert_eq!(lines.iter().filter(numbered).count(), 1, "{lines:?}");
            assert!(!lines.concat().contains('\u{1b}'));
        }
        let away = Env::of([("OLLAMA_HOST", "box.example")]);
        let line = of_ollama(&ollama(&["qwen3:4b"]), &away)
            .expect("an offer")
            .line;
        assert!(line.contains("found at box.example:11434"), "{line}");
        let lines = question(&super::offers(&all(), &Env::of([("A", "b")])), 0, "f", 80);
        assert!(lines.len() <= 11, "{lines:#?}");
    }
}
