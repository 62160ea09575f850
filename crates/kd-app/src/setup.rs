//! Sets up the members: finds the programs and services on this machine, offers the members that they can provide,
//! and writes the choice as settings.

mod first;

pub use first::{FirstQuestion, Offer, first_question, offers};
pub use kd_backends::discovery::{Discovered, What};
pub use kd_backends::namesake::Namesake;
pub use kd_core::config::InitSeat;

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::words::mebibytes;
use kd_backends::adapters::programs::{self, PROGRAMS};
use kd_backends::delivery::catalog;
use kd_backends::discovery::{discover, ollama_at, ollama_base_url};
use kd_backends::namesake;
use kd_backends::providers::{KNOWN, known};
use kd_core::config::{Config, Layer, render_init};
use kd_core::seating::{self, LOCAL, SeatRequest};
use kd_core::{display, roles};
use kd_store::config::ConfigPaths;
use std::path::{Path, PathBuf};

/// Parts of names of Ollama models that produce embeddings instead of answers.
const NO_ANSWERS: [&str; 4] = ["embed", "minilm", "bge-", "rerank"];
/// Maximum models offered per Ollama: more would bury the rest of the list.
const OLLAMA_MAX: usize = 5;

/// The file to which chosen members are written.
#[derive(Debug)]
pub struct Destination {
    /// The layer of settings.
    pub layer: Layer,
    paths: ConfigPaths,
}

impl Destination {
    /// Finds the file: the project's own, or the user's with `for_user`, without a project, and outside of checkouts. With
    /// `replace` it may exist.
    ///
    /// # Errors
    /// The file exists, or `.kd` cannot be created.
    pub fn find(for_user: bool, replace: bool, env: &Env) -> Result<Self, UserError> {
        let found = env.find_layout()?;
        let (layer, layout) = if for_user || found.is_none() && !is_in_checkout(env.folder()?) {
            // Without a project the choice is for all folders, like that of the first question.
            (Layer::User, found)
        } else {
            // The committed file is not used: it has no comments, and available members differ between machines.
            (Layer::Local, Some(env.make_layout()?.layout))
        };
        let paths = env.config_paths(layout.as_ref());
        if let Some(file) = paths.file(layer).filter(|f| f.exists() && !replace) {
            let what = format!("{} already exists", file.display());
            return Err(UserError::new(ErrorKind::Exists, what).next(
                "change it with `kd config set KEY VALUE`, or replace it with `kd init --force`",
            ));
        }
        Ok(Self { layer, paths })
    }

    /// Writes members, and returns the file.
    ///
    /// # Errors
    /// The file exists and `replace` is false, or it cannot be written.
    pub fn write(&self, members: &[InitSeat], replace: bool) -> Result<PathBuf, UserError> {
        let text = render_init(members);
        Ok(kd_store::config::create(
            &self.paths,
            self.layer,
            &text,
            replace,
        )?)
    }
}

/// Something that could answer and was searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sought {
    /// Its name, variable or address.
    pub what: String,
    /// The command that installs it or signs in.
    pub how: String,
}

/// Returns the programs and services that are searched for, by kind.
pub fn sought(env: &Env) -> [(&'static str, Vec<Sought>); 3] {
    let programs = PROGRAMS.iter().map(|program| Sought {
        // The plainest name: `agent` may be anything.
        what: program.names.last().copied().unwrap_or_default().to_owned(),
        how: program.install.replace('`', ""),
    });
    let keys = KNOWN.iter().filter(|known| !known.key_env.is_empty());
    let keys = keys.map(|known| Sought {
        what: known.key_env.join(" or "),
        how: known.key_page.to_owned(),
    });
    let ollama = Sought {
        what: ollama_at(&env.of_backends(false)),
        how: "https://ollama.com/download, then ollama pull llama3.2".to_owned(),
    };
    [
        ("agent programs on the PATH:", programs.collect()),
        ("an Ollama server that answers:", vec![ollama]),
        (
            "keys in the environment (export NAME=KEY), from the page that issues them:",
            keys.collect(),
        ),
    ]
}

/// Finds another program called `kd` on the PATH, which is none of the files in `own`.
pub fn namesake(own: &[PathBuf], env: &Env) -> Option<Namesake> {
    namesake::find(&env.of_backends(false), own)
}

/// Detects the programs and services on this machine. Must not be called from a thread that runs asynchronous tasks.
///
/// # Errors
/// No OS thread can be started.
pub fn look_around(env: &Env) -> Result<Vec<Discovered>, UserError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| UserError::new(ErrorKind::Io, "cannot start the runtime").because(e))?;
    Ok(runtime.block_on(discover(&env.of_backends(false))))
}

/// Returns whether the built-in demo model answers for everybody: the question names no `members`, and the settings choose
/// neither agents nor a model.
pub fn demo_answers(config: &Config, members: &[String]) -> bool {
    let wishes = SeatRequest {
        members: members.to_vec(),
        ..SeatRequest::default()
    };
    seating::seat(config, &wishes).is_ok_and(|seated| seated.built_in)
}

/// Returns the members that a discovery can provide.
pub fn seats(found: &Discovered, env: &Env) -> Vec<InitSeat> {
    let of_backends = env.of_backends(false);
    let seat = |name: &str, model: Option<String>, comment: String| InitSeat {
        name: handle(name),
        backend: found.backend.clone(),
        model,
        comment,
        ..InitSeat::default()
    };
    match &found.what {
        What::Program(path) => {
            let name = found
                .backend
                .strip_suffix("_code")
                .unwrap_or(&found.backend);
            vec![seat(
                name,
                None,
                format!("{}, found at {}", found.name, path.display()),
            )]
        }
        What::Ollama(models) => models
            .iter()
            .filter(|model| can_answer(model))
            .take(OLLAMA_MAX)
            .map(|m| InitSeat {
                base_url: ollama_base_url(&of_backends),
                ..seat(
                    m,
                    Some(m.clone()),
                    format!("{m}, served by Ollama at {}", ollama_at(&of_backends)),
                )
            })
            .collect(),
        What::Key(variable) => {
            let row = known(&found.backend);
            let address = row.and_then(|row| row.address(&of_backends));
            let place = at(address.as_deref());
            let comment = format!(
                "{}, with the key in {variable}{place}: each answer costs money",
                found.name
            );
            vec![InitSeat {
                key_env: Some(variable.clone()),
                wire: row.filter(|_| address.is_some()).map(|row| row.wire),
                base_url: address,
                ..seat(&found.name, None, comment)
            }]
        }
    }
}

/// Returns ` at ADDRESS`, where a key is for another address than the service's own.
fn at(address: Option<&str>) -> String {
    address.map_or(String::new(), |address| {
        format!(" at {}", display::line(address))
    })
}

/// Returns whether an Ollama model of this name answers questions: others only compare texts.
fn can_answer(model: &str) -> bool {
    let name = model.to_lowercase();
    !NO_ANSWERS.iter().any(|part| name.contains(part))
}

/// Returns whether an Ollama model of this name runs on machines of Ollama.
fn is_elsewhere(model: &str) -> bool {
    let name = model.to_lowercase();
    name.ends_with("-cloud") || name.ends_with(":cloud")
}

/// Returns why the answers of a member may cost money; `None` if they cost nothing, or only a subscription.
pub fn charge(seat: &InitSeat, env: &Env) -> Option<String> {
    if let Some(variable) = &seat.key_env {
        return Some(format!("each answer costs money: {variable}"));
    }
    if seat.model.as_deref().is_some_and(is_elsewhere) {
        return Some("runs at Ollama, may cost money".to_owned());
    }
    let bills = programs::program(&seat.backend)?.bills(&env.of_backends(false))?;
    Some(format!("may cost money: {bills}"))
}

/// Describes the larger local model: its title, download and memory, and the command that takes it.
pub fn larger_model() -> String {
    let model = catalog::LARGER;
    format!(
        "{} ({} to download, {} of memory): kd model use {}",
        model.title,
        mebibytes(model.bytes),
        mebibytes(model.memory()),
        model.key
    )
}

/// Returns whether a member's service has several models and none is named.
pub fn needs_model(seat: &InitSeat) -> bool {
    seat.key_env.is_some() && seat.model.is_none()
}

/// Converts a text to a member's name; invalid characters become `-`.
fn handle(text: &str) -> String {
    let name: String = text
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '-'
            }
        })
        .collect();
    name.trim_matches('-').to_owned()
}

/// Returns the member for `NAME` or `NAME=MODEL`: something found, or the built-in model in a role.
///
/// # Errors
/// There is no such thing.
pub fn named(text: &str, offers: &[InitSeat]) -> Result<InitSeat, UserError> {
    let (name, model) = match text.split_once('=') {
        Some((name, model)) => (name.trim(), Some(model.trim().to_owned())),
        None => (text.trim(), None),
    };
    if let Some(seat) = offers.iter().find(|s| s.name == name) {
        return Ok(InitSeat {
            model: model.or_else(|| seat.model.clone()),
            ..seat.clone()
        });
    }
    if let Some(role) = roles::find(name).filter(|r| r.name != roles::CHAIR) {
        return Ok(InitSeat {
            name: role.name.to_owned(),
            backend: LOCAL.to_owned(),
            model,
            role: Some(role.name.to_owned()),
            comment: format!("the built-in model: {}", role.title),
            ..InitSeat::default()
        });
    }
    let roles = roles::ROLES
        .iter()
        .map(|r| r.name)
        .filter(|n| *n != roles::CHAIR);
    let all: Vec<&str> = offers
        .iter()
        .map(|s| s.name.as_str())
        .chain(roles)
        .collect();
    Err(UserError::new(
        ErrorKind::UnknownMember,
        format!("found nothing named {}", display::line(name)),
    )
    .next(format!("found here: {}", all.join(", "))))
}

/// Returns the default model of a service.
pub fn suggested(seat: &InitSeat) -> Option<String> {
    let known = known(&seat.backend).filter(|_| needs_model(seat))?;
    known.suggested.map(str::to_owned)
}

/// Returns whether a folder is in a checkout of git.
fn is_in_checkout(folder: &Path) -> bool {
    folder.ancestors().any(|up| up.join(".git").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_with_a_key_has_a_model_to_suggest_and_a_page_for_its_key() {
        for known in KNOWN.iter().filter(|known| !known.key_env.is_empty()) {
            assert!(known.suggested.is_some(), "{}", known.name);
            assert!(known.key_page.starts_with("https://"), "{}", known.name);
        }
    }

    #[test]
    fn the_demo_answers_where_nothing_else_is_chosen() {
        let mut config = Config::default();
        assert!(demo_answers(&config, &[]));
        assert!(!demo_answers(&config, &["claude".to_owned()]));
        config.local.model = Some("qwen2.5-1.5b".into());
        assert!(!demo_answers(&config, &[]));
        config.local.model = None;
        config.council.members = vec!["claude".into()];
        assert!(!demo_answers(&config, &[]));
    }

    #[test]
    fn what_cannot_answer_is_no_member_and_what_costs_money_says_so() {
        let env = Env::of([("A", "b")]);
        let models = ["nomic-embed-text", "qwen3:4b", "glm-4.6:cloud"];
        let found = Discovered {
            what: What::Ollama(models.map(str::to_owned).to_vec()),
            name: "Ollama".into(),
            backend: "ollama".into(),
        };
        let seats = seats(&found, &env);
        let names: Vec<&str> = seats.iter().map(|seat| seat.name.as_str()).collect();
        assert_eq!(names, ["qwen3-4b", "glm-4.6-cloud"]);
        assert_eq!(charge(&seats[0], &env), None);
        assert!(charge(&seats[1], &env).is_some_and(|why| why.contains("may cost")));
        let of = |backend: &str, key: Option<&str>| InitSeat {
            backend: backend.into(),
            key_env: key.map(str::to_owned),
            ..InitSeat::default()
        };
        assert_eq!(charge(&of("claude_code", None), &env), None);
        assert!(charge(&of("opencode", None), &env).is_some());
        let key = charge(&of("openai", Some("OPENAI_API_KEY")), &env);
        assert!(key.is_some_and(|why| why.contains("OPENAI_API_KEY")));
    }

    #[test]
    fn names_are_read_as_meant() {
        assert_eq!(handle("llama3.2:3b"), "llama3.2-3b");
        let openai = InitSeat {
            name: "openai".into(),
            key_env: Some("OPENAI_API_KEY".into()),
            ..InitSeat::default()
        };
        assert!(needs_model(&openai));
        let seat = named("openai=gpt-5", &[openai]).unwrap();
        assert_eq!(seat.model.as_deref(), Some("gpt-5"));
        assert!(named("skeptic", &[]).is_ok());
        let unknown = named("nobody", &[]).unwrap_err();
        assert_eq!(unknown.kind, ErrorKind::UnknownMember);
    }
}
