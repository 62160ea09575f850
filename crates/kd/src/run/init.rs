//! `kd init`: offers what is found on this machine as members, and writes a commented configuration.

use super::here::Here;
use super::notices::say;
use crate::args::init::Init;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::clean;
use crate::render::wrap::wrap;
use kd_backends::Env;
use kd_backends::adapters::programs::PROGRAMS;
use kd_backends::discovery::{Discovered, What, discover, ollama_at, ollama_base_url};
use kd_backends::providers::{KNOWN, known};
use kd_core::config::{InitSeat, Layer, render_init};
use kd_core::roles;
use kd_core::seating::LOCAL;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

/// Maximum models offered per Ollama: more would bury the rest of the list.
const OLLAMA_MAX: usize = 5;
/// Minimum columns for a command, even on a narrow terminal.
const ROOM_MIN: usize = 20;

pub(super) fn run(args: &Init, here: &Here) -> Result<Exit, Error> {
    let offers: Vec<InitSeat> = look_around(here)?
        .iter()
        .flat_map(|found| seats(found, &here.of_backends(false)))
        .collect();
    let mut left_out: Vec<String> = Vec::new();
    let mut chosen = if !args.members.is_empty() {
        args.members
            .iter()
            .map(|name| named(name, &offers))
            .collect::<Result<_, _>>()?
    } else if offers.is_empty() {
        let columns = kd_tui::terminal::size_of_stderr();
        let columns = columns.map_or(usize::MAX, |(columns, _)| columns.into());
        for line in looked_for(&here.of_backends(false), columns) {
            writeln!(crate::out::stderr(), "{line}")?;
        }
        return Ok(Exit::NoSeat);
    } else if args.yes {
        let ready: Vec<InitSeat> = offers
            .iter()
            .filter(|seat| !needs_model(seat))
            .cloned()
            .collect();
        // If only services were found, at least one needs a model.
        if ready.is_empty() {
            offers
        } else {
            left_out = offers
                .iter()
                .filter(|seat| needs_model(seat))
                .map(|seat| seat.name.clone())
                .collect();
            ready
        }
    } else if io::stdin().is_terminal() {
        choose(offers)?
    } else {
        let names: Vec<String> = offers.iter().map(|s| s.name.clone()).collect();
        return Err(Error::usage("kd init needs a terminal to ask")
            .because(format!("found: {}", names.join(", ")))
            .next("kd init --members NAMES, or kd init --yes for all"));
    };
    let mut names = std::collections::BTreeSet::new();
    chosen.retain(|seat: &InitSeat| names.insert(seat.name.clone()));
    for seat in &mut chosen {
        seat.model = seat.model.take().or_else(|| suggested(seat));
    }
    if let Some(seat) = chosen.iter().find(|s| needs_model(s)) {
        return Err(
            Error::usage(format!("{} serves several models: choose one", seat.name))
                .next(format!("kd init --members {}=MODEL", seat.name)),
        );
    }
    let found = here.find_layout()?;
    let (layer, layout) = if args.user || found.is_none() && !is_in_checkout(here.folder()?) {
        // Without a project the choice is for all folders, like that of the first question.
        (Layer::User, found)
    } else {
        // The committed file is not used: it has no comments, and available members differ between machines.
        (Layer::Local, Some(here.make_layout()?.layout))
    };
    let paths = here.config_paths(layout.as_ref());
    if let Some(file) = paths.file(layer).filter(|f| f.exists() && !args.force) {
        return Err(Error::new(
            "exists",
            Exit::Error,
            format!("{} already exists", file.display()),
        )
        .next("change it with `kd config set KEY VALUE`, or replace it with `kd init --force`"));
    }
    let file = kd_store::config::create(&paths, layer, &render_init(&chosen), args.force)?;
    let name = |seat: &InitSeat| match (&seat.key_env, &seat.model) {
        (Some(_), Some(model)) => format!("{} ({})", seat.name, clean::line(model)),
        _ => seat.name.clone(),
    };
    let names: Vec<String> = chosen.iter().map(name).collect();
    let are = if names.len() == 1 {
        "is a member"
    } else {
        "are members"
    };
    let scope = match layer {
        Layer::User => "in all your folders",
        _ => "in this folder (`kd init --user`: in all)",
    };
    say(&format!(
        "{} {are} now {scope}; written to {}",
        names.join(", "),
        file.display()
    ));
    let paid = chosen.iter().filter(|seat| seat.key_env.is_some());
    let paid: Vec<&str> = paid.map(|seat| seat.name.as_str()).collect();
    if !paid.is_empty() {
        let paid = paid.join(", ");
        say(&format!("each answer of {paid} costs money"));
    }
    if !left_out.is_empty() {
        say(&format!(
            "left out, because each answer costs money: {}; to add one: kd init --force --members {},…",
            left_out.join(", "),
            left_out[0]
        ));
    }
    say("try it: kd ask \"…\"; change it: kd config set KEY VALUE");
    Ok(Exit::Done)
}

/// Returns whether a folder is in a checkout of git.
fn is_in_checkout(folder: &Path) -> bool {
    folder.ancestors().any(|up| up.join(".git").exists())
}

/// Lists what is searched for, in lines of at most `columns`, each with the command that installs it or signs in.
fn looked_for(env: &Env, columns: usize) -> Vec<String> {
    let programs = PROGRAMS.iter().map(|program| {
        let how = program.install.replace('`', "");
        (program.names.join(" or "), how)
    });
    let keys = KNOWN.iter().filter(|known| !known.key_env.is_empty());
    let keys = keys.map(|known| {
        let first = known.key_env[0];
        let how = format!("export {first}=…  (key: {})", known.key_page);
        (known.key_env.join(" or "), how)
    });
    let ollama = (
        ollama_at(env),
        "install it from https://ollama.com/download, then ollama pull llama3.2".to_owned(),
    );
    let parts: [(&str, Vec<(String, String)>); 3] = [
        ("agent programs on the PATH:", programs.collect()),
        ("an Ollama server that answers:", vec![ollama]),
        ("keys in the environment:", keys.collect()),
    ];
    let mut lines = vec!["found nothing that can answer; nothing was written".to_owned()];
    for (title, rows) in parts {
        lines.extend([String::new(), title.to_owned()]);
        for (what, how) in rows {
            lines.push(format!("  {what}"));
            let how = wrap(&how, columns.saturating_sub(6).max(ROOM_MIN));
            lines.extend(how.into_iter().map(|line| format!("      {line}")));
        }
    }
    let end = "One of them is enough; then run `kd init` again. Until then the built-in demo model answers: it shows how a council works; its advice is poor.";
    lines.push(String::new());
    lines.extend(wrap(end, columns));
    lines
}

/// Returns the default model of a service.
fn suggested(seat: &InitSeat) -> Option<String> {
    let known = known(&seat.backend).filter(|_| needs_model(seat))?;
    known.suggested.map(str::to_owned)
}

/// Detects what is on this machine.
pub(super) fn look_around(here: &Here) -> Result<Vec<Discovered>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new("io", Exit::Error, "cannot start the runtime").because(e))?;
    Ok(runtime.block_on(discover(&here.of_backends(false))))
}

/// Returns the members that a discovery can provide.
pub(super) fn seats(found: &Discovered, env: &Env) -> Vec<InitSeat> {
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
            .take(OLLAMA_MAX)
            .map(|m| InitSeat {
                base_url: ollama_base_url(env),
                ..seat(
                    m,
                    Some(m.clone()),
                    format!("{m}, served by Ollama at {}", ollama_at(env)),
                )
            })
            .collect(),
        What::Key(variable) => vec![InitSeat {
            key_env: Some(variable.clone()),
            ..seat(
                &found.name,
                None,
                format!(
                    "{}, with the key in {variable}: each answer costs money",
                    found.name
                ),
            )
        }],
    }
}

/// Returns whether a member's service has several models and none is named.
fn needs_model(seat: &InitSeat) -> bool {
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
fn named(text: &str, offers: &[InitSeat]) -> Result<InitSeat, Error> {
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
    Err(Error::new(
        "unknown_member",
        Exit::Usage,
        format!("found nothing named {}", clean::line(name)),
    )
    .next(format!("found here: {}", all.join(", "))))
}

/// Asks on the terminal: a numbered list, and a model where needed.
fn choose(offers: Vec<InitSeat>) -> Result<Vec<InitSeat>, Error> {
    let mut err = crate::out::stderr().lock();
    writeln!(err, "found on this machine:")?;
    for (i, seat) in offers.iter().enumerate() {
        writeln!(
            err,
            "  {}. {}: {}",
            i + 1,
            seat.name,
            clean::line(&seat.comment)
        )?;
    }
    loop {
        let answer = ask(&mut err, "members? numbers, for example 1,3 [all]: ")?;
        match picked(&answer, offers.len()) {
            Some(places) => {
                let mut chosen: Vec<InitSeat> =
                    places.into_iter().map(|i| offers[i].clone()).collect();
                for seat in chosen.iter_mut().filter(|s| needs_model(s)) {
                    seat.model = Some(ask_model(&mut err, seat)?);
                }
                return Ok(chosen);
            }
            None => writeln!(err, "please type numbers from 1 to {}", offers.len())?,
        }
    }
}

/// Asks for a service's model until there is one; Enter takes the suggestion.
fn ask_model(err: &mut impl Write, seat: &InitSeat) -> Result<String, Error> {
    let suggested = suggested(seat);
    let default = suggested.as_deref().map(|model| format!(" [{model}]"));
    let question = format!("model of {}?{} ", seat.name, default.unwrap_or_default());
    loop {
        let model = ask(err, &question)?;
        match (model.is_empty(), &suggested) {
            (false, _) => return Ok(model),
            (true, Some(suggested)) => return Ok(suggested.clone()),
            (true, None) => writeln!(err, "please type the name of a model")?,
        }
    }
}

fn ask(err: &mut impl Write, question: &str) -> Result<String, Error> {
    write!(err, "{question}")?;
    err.flush()?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(Error::usage("no member was chosen"));
    }
    Ok(line.trim().to_owned())
}

/// Parses the chosen positions, from 0; an empty answer means all.
fn picked(answer: &str, count: usize) -> Option<Vec<usize>> {
    if answer.is_empty() || answer == "all" {
        return Some((0..count).collect());
    }
    answer
        .split([',', ' '])
        .filter(|part| !part.is_empty())
        .map(|part| {
            part.parse::<usize>()
                .ok()
                .filter(|n| (1..=count).contains(n))
                .map(|n| n - 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_for_fits_the_terminal() {
        let env = Env::of([("A", "b")]);
        let wide = looked_for(&env, usize::MAX).len();
        for columns in [200, 80, 60] {
            let lines = looked_for(&env, columns);
            assert!(lines.iter().all(|line| line.chars().count() <= columns));
            assert!(lines.len() >= wide);
        }
        let words = PROGRAMS.len() + KNOWN.len();
        assert!(wide > 2 * words, "{wide}");
    }

    #[test]
    fn every_service_with_a_key_has_a_model_to_suggest_and_a_page_for_its_key() {
        for known in KNOWN.iter().filter(|known| !known.key_env.is_empty()) {
            assert!(known.suggested.is_some(), "{}", known.name);
            assert!(known.key_page.starts_with("https://"), "{}", known.name);
        }
    }

    #[test]
    fn answers_and_names_are_read_as_meant() {
        assert_eq!(picked("", 3), Some(vec![0, 1, 2]));
        assert_eq!(picked("3, 1", 3), Some(vec![2, 0]));
        for bad in ["0", "4", "x", "1-2"] {
            assert_eq!(picked(bad, 3), None, "{bad}");
        }
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
        assert_eq!(named("nobody", &[]).unwrap_err().exit, Exit::Usage);
    }
}
