//! The first question of a user who has configured nothing: the choices, best first, and writing one of them.

use super::{Discovered, InitSeat, What, look_around, seats};
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::ready;
use crate::words::mebibytes;
use kd_backends::adapters::programs;
use kd_backends::delivery::catalog::KnownModel;
use kd_backends::delivery::{self, catalog};
use kd_backends::discovery::ollama_at;
use kd_backends::providers;
use kd_core::config::{Config, Layer, render_init};
use kd_core::display;
use kd_core::roles::{self, BUILT_IN_COUNCIL};
use kd_store::config::{ConfigPaths, Loaded};
use std::path::Path;

/// Maximum characters shown of a model's name.
const NAME_MAX: usize = 40;

/// A choice of who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The members and their cost, in one line.
    pub line: String,
    /// Whether it costs nothing, or nothing beyond a subscription that its line names.
    pub free: bool,
    /// The settings that choose it.
    pub text: String,
    /// The members that answer from then on, in one line.
    pub who: String,
    /// The model to download before the choice is saved.
    pub downloads: Option<&'static KnownModel>,
}

impl Offer {
    /// Downloads what the choice needs.
    ///
    /// # Errors
    /// The download fails, or nothing may be downloaded.
    pub fn fetch(&self, env: &Env) -> Result<(), UserError> {
        match self.downloads {
            Some(model) => ready::fetch(model, false, env).map(drop),
            None => Ok(()),
        }
    }
}

/// The question who answers, for a user who has configured nothing.
#[derive(Debug)]
pub struct FirstQuestion {
    /// The choices, best first; at least two.
    pub offers: Vec<Offer>,
    /// The user's file of settings, which does not exist yet; below the home folder it begins with `~`.
    pub file: String,
    paths: ConfigPaths,
}

impl FirstQuestion {
    /// Writes a choice to the user's settings.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, offer: &Offer) -> Result<(), UserError> {
        kd_store::config::create(&self.paths, Layer::User, &offer.text, false).map_err(|why| {
            let what = format!("the choice cannot be saved in {}", self.file);
            UserError::new(ErrorKind::Io, what)
                .because(why)
                .next("`kd ask --members NAMES …` asks agent programs without saving the choice")
        })?;
        Ok(())
    }
}

/// Returns the question who answers, if nothing is configured and there is a choice. Settings that cannot be read are no
/// error here: the command itself reports what is wrong there.
///
/// # Errors
/// Those of [`look_around`].
pub fn first_question(env: &Env) -> Result<Option<FirstQuestion>, UserError> {
    let Ok(layout) = env.find_layout() else {
        return Ok(None);
    };
    let paths = env.config_paths(layout.as_ref());
    let Some(file) = paths.file(Layer::User) else {
        return Ok(None);
    };
    let nothing_yet = file.symlink_metadata().is_err()
        && env
            .settings(layout.as_ref())
            .is_ok_and(|loaded| !loaded.project.holds_back() && is_bare(&loaded));
    if !nothing_yet {
        return Ok(None);
    }
    let offers = offers(&look_around(env)?, env);
    Ok((offers.len() > 1).then(|| FirstQuestion {
        offers,
        file: tilde(&file, env),
        paths,
    }))
}

/// Returns whether the configuration does not say who answers.
fn is_bare(loaded: &Loaded) -> bool {
    let config = &loaded.config;
    // The environment may add addresses to services.
    let services = loaded
        .value
        .get("providers")
        .and_then(|value| value.as_object());
    config.agents.is_empty()
        && config.council.members.is_empty()
        && services.is_none_or(|services| services.is_empty())
        && config.local.model.is_none()
}

/// Returns the choices, best first; the built-in models last.
pub fn offers(found: &[Discovered], env: &Env) -> Vec<Offer> {
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
    let of_backends = env.of_backends(false);
    let bills = programs
        .iter()
        .filter_map(|found| programs::program(&found.backend)?.bills(&of_backends))
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
        downloads: None,
    })
}

fn of_ollama(found: &Discovered, env: &Env) -> Option<Offer> {
    let What::Ollama(models) = &found.what else {
        return None;
    };
    let answers = |model: &&String| super::can_answer(model) && !super::is_elsewhere(model);
    let model = models.iter().find(answers)?;
    let only = Discovered {
        what: What::Ollama(vec![model.clone()]),
        ..found.clone()
    };
    let seat = seats(&only, env).into_iter().next()?;
    let (shown, at) = (shown(model), ollama_at(&env.of_backends(false)));
    let is_here = ["127.", "localhost:", "[::1]:"]
        .iter()
        .any(|start| at.starts_with(start));
    let place = match is_here {
        true => "here".to_owned(),
        false => format!("at {}", display::line(&at)),
    };
    Some(Offer {
        line: format!("{shown}, an Ollama model found {place}, in three roles (free)"),
        free: true,
        text: render_init(&in_roles(&seat)),
        who: format!("{shown} answers in three roles"),
        downloads: None,
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
    let place = super::at(seat.base_url.as_deref());
    Some(Offer {
        line: format!(
            "{model} in three roles, with the key {variable}{place} (each answer costs money)"
        ),
        free: false,
        text: render_init(&in_roles(&seat)),
        who: format!("{model} answers in three roles (each answer costs money)"),
        downloads: None,
    })
}

fn built_in(env: &Env) -> Offer {
    let config = Config::default().local;
    let size = match delivery::locate(&config, &env.of_backends(false)) {
        Ok(_) => "downloaded already".to_owned(),
        Err(_) => mebibytes(catalog::DEFAULT.bytes),
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
        downloads: None,
    }
}

/// Offers a larger model of the built-in engine, to be downloaded before the first question.
fn larger() -> Offer {
    let model: &'static KnownModel = catalog::LARGER;
    let members = serde_json::json!(BUILT_IN_COUNCIL);
    let size = mebibytes;
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
        downloads: Some(model),
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

/// Joins names for a sentence; `None` if there are none.
fn list(names: &[&str]) -> Option<String> {
    let (last, rest) = names.split_last()?;
    Some(match rest {
        [] => (*last).to_owned(),
        rest => format!("{} and {last}", rest.join(", ")),
    })
}

fn shown(model: &str) -> String {
    let name = display::line(model);
    match name.char_indices().nth(NAME_MAX) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name,
    }
}

/// Abbreviates the user's home in a path as `~`.
fn tilde(path: &Path, env: &Env) -> String {
    let below = env
        .var_os("HOME")
        .and_then(|home| path.strip_prefix(home).ok());
    match below {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
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
    fn a_key_is_offered_with_the_address_that_the_environment_names() {
        let env = Env::of([
            ("ANTHROPIC_API_KEY", "sk-gateway"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:7717"),
        ]);
        let offer = of_key(&key("anthropic", "ANTHROPIC_API_KEY"), &env).expect("an offer");
        assert!(
            offer.line.contains("at http://127.0.0.1:7717/v1 ("),
            "{}",
            offer.line
        );
        for line in [
            r#""wire": "anthropic""#,
            r#""base_url": "http://127.0.0.1:7717/v1""#,
            r#""key_env": "ANTHROPIC_API_KEY""#,
        ] {
            assert!(offer.text.contains(line), "{}", offer.text);
        }
        assert!(!offer.text.contains("sk-gateway"));
    }

    #[test]
    fn the_larger_model_is_named_by_its_key() {
        let offer = larger();
        let model = format!("\"model\": \"{}\"", catalog::LARGER.key);
        assert!(offer.text.contains(&model), "{}", offer.text);
        assert!(offer.line.contains("GiB of memory"), "{}", offer.line);
    }

    #[test]
    fn a_name_from_outside_stays_in_its_line_and_a_server_elsewhere_is_named() {
        let odd = format!("a\u{1b}[2J\n  1) free gold {}", "x".repeat(300));
        let nothing = Env::of([("A", "b")]);
        let offers = offers(&[ollama(&[&odd])], &nothing);
        let line = &offers[0].line;
        assert!(!line.contains(['\u{1b}', '\n']), "{line}");
        assert!(line.chars().count() < 100, "{line}");
        let away = Env::of([("OLLAMA_HOST", "box.example")]);
        let line = of_ollama(&ollama(&["qwen3:4b"]), &away)
            .expect("an offer")
            .line;
        assert!(line.contains("found at box.example:11434"), "{line}");
    }
}
