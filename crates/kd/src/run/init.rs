//! `kd init`: offers what is found on this machine as seats, and writes a commented configuration.

use super::here::Here;
use crate::args::init::Init;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::clean;
use kd_backends::Env;
use kd_backends::discovery::{Discovered, What, discover};
use kd_core::config::{InitSeat, Layer, render_init};
use kd_core::roles;
use kd_core::seating::LOCAL;
use std::io::{self, BufRead, IsTerminal, Write};

/// Models of one Ollama that are offered: more would bury the rest of the list.
const OLLAMA_MAX: usize = 5;

pub(super) fn run(args: &Init, here: &Here) -> Result<(), Error> {
    let offers: Vec<InitSeat> = look_around()?.iter().flat_map(seats).collect();
    let mut left_out: Vec<String> = Vec::new();
    let mut chosen = if !args.members.is_empty() {
        args.members
            .iter()
            .map(|name| named(name, &offers))
            .collect::<Result<_, _>>()?
    } else if offers.is_empty() {
        writeln!(
            io::stderr(),
            "nothing was found (no agent program, no Ollama, no key): the built-in model keeps all seats, and nothing is written"
        )?;
        return Ok(());
    } else if args.yes {
        let ready: Vec<InitSeat> = offers
            .iter()
            .filter(|seat| !needs_model(seat))
            .cloned()
            .collect();
        // Of services alone at least one must be given a model.
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
        return Err(Error::usage("kd init cannot ask here")
            .because(format!("found: {}", names.join(", ")))
            .next("kd init --members NAMES, or kd init --yes for all"));
    };
    let mut names = std::collections::BTreeSet::new();
    chosen.retain(|seat: &InitSeat| names.insert(seat.name.clone()));
    if let Some(seat) = chosen.iter().find(|s| needs_model(s)) {
        return Err(
            Error::usage(format!("{} serves several models: name one", seat.name))
                .next(format!("kd init --members {}=MODEL", seat.name)),
        );
    }
    let (layer, layout) = if args.user {
        (Layer::User, here.find_layout()?)
    } else {
        // Not the committed file: it holds no comments, and who can be seated differs from machine to machine.
        (Layer::Local, Some(here.make_layout()?.layout))
    };
    let paths = here.config_paths(layout.as_ref());
    if let Some(file) = paths.file(layer).filter(|f| f.exists() && !args.force) {
        return Err(Error::new(
            "exists",
            Exit::Error,
            format!("{} is there already", file.display()),
        )
        .next("change it with `kd config set KEY VALUE`, or replace it with `kd init --force`"));
    }
    let file = kd_store::config::create(&paths, layer, &render_init(&chosen), args.force)?;
    let names: Vec<&str> = chosen.iter().map(|s| s.name.as_str()).collect();
    let sit = if names.len() == 1 { "sits" } else { "sit" };
    writeln!(
        io::stderr(),
        "{} {sit} now; written to {}",
        names.join(", "),
        file.display()
    )?;
    if !left_out.is_empty() {
        writeln!(
            io::stderr(),
            "left out, because they serve several models: {}; seat one with `kd init --force --members {}=MODEL,…`",
            left_out.join(", "),
            left_out[0]
        )?;
    }
    writeln!(
        io::stderr(),
        "try it: kd ask \"…\"; change it: kd config set KEY VALUE"
    )?;
    Ok(())
}

/// What is on this machine.
pub(super) fn look_around() -> Result<Vec<Discovered>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new("io", Exit::Error, "no runtime could be started").because(e))?;
    Ok(runtime.block_on(discover(&Env::process())))
}

/// The seats that something found could take.
fn seats(found: &Discovered) -> Vec<InitSeat> {
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
            .map(|m| {
                seat(
                    m,
                    Some(m.clone()),
                    format!("{m}, served by the Ollama on this machine"),
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

/// Whether a seat's service serves several models and none is named.
fn needs_model(seat: &InitSeat) -> bool {
    seat.key_env.is_some() && seat.model.is_none()
}

/// A text as a member's name: what cannot stand in one becomes `-`.
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

/// The seat of `NAME` or `NAME=MODEL`: something found, or the built-in model in a role.
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
        format!("nothing called {} was found here", clean::line(name)),
    )
    .next(format!("what can sit: {}", all.join(", "))))
}

/// Asks on the terminal: a numbered list, and a model where one is needed.
fn choose(offers: Vec<InitSeat>) -> Result<Vec<InitSeat>, Error> {
    let mut err = io::stderr().lock();
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
        let answer = ask(&mut err, "who shall sit? numbers, for example 1,3 [all]: ")?;
        match picked(&answer, offers.len()) {
            Some(places) => {
                let mut chosen: Vec<InitSeat> =
                    places.into_iter().map(|i| offers[i].clone()).collect();
                for seat in chosen.iter_mut().filter(|s| needs_model(s)) {
                    let model = ask(&mut err, &format!("which model of {}? ", seat.name))?;
                    seat.model = Some(model).filter(|m| !m.is_empty());
                }
                return Ok(chosen);
            }
            None => writeln!(err, "please write numbers from 1 to {}", offers.len())?,
        }
    }
}

fn ask(err: &mut impl Write, question: &str) -> Result<String, Error> {
    write!(err, "{question}")?;
    err.flush()?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(Error::usage("nothing was chosen"));
    }
    Ok(line.trim().to_owned())
}

/// The places that an answer names, from 0; an empty one names all.
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
