//! `kd init`: offers what is found on this machine as members, and writes a commented configuration.

use super::here::Here;
use super::notices::say;
use crate::args::init::Init;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::clean;
use crate::render::wrap::{width, wrap};
use kd_app::Env;
use kd_app::setup::{
    Destination, InitSeat, charge, larger_model, look_around, named, needs_model, seats, sought,
    suggested,
};
use kd_core::config::Layer;
use serde_json::json;
use std::io::{self, BufRead, IsTerminal, Write};

/// Minimum columns for a command, even on a narrow terminal.
const ROOM_MIN: usize = 20;
/// Minimum columns for a command beside a name; with fewer, it is below.
const BESIDE_MIN: usize = 36;

const FOUND_NOTHING: &str = "found nothing that can answer; nothing was written";

pub(super) fn run(args: &Init, here: &Here) -> Result<Exit, Error> {
    let offers: Vec<InitSeat> = look_around(here)?
        .iter()
        .flat_map(|found| seats(found, here))
        .collect();
    let mut left_out: Vec<String> = Vec::new();
    let mut chosen = if !args.members.is_empty() {
        args.members
            .iter()
            .map(|name| named(name, &offers))
            .collect::<Result<_, _>>()?
    } else if offers.is_empty() && args.json {
        return Err(Error::new("no_seat", Exit::NoSeat, FOUND_NOTHING)
            .next("`kd init` lists what it looked for and how to get each"));
    } else if offers.is_empty() {
        let columns = kd_tui::terminal::size_of_stderr();
        let columns = columns.map_or(usize::MAX, |(columns, _)| columns.into());
        for line in looked_for(here, columns) {
            writeln!(crate::out::stderr(), "{line}")?;
        }
        return Ok(Exit::NoSeat);
    } else if args.yes {
        let (free, costly): (Vec<InitSeat>, Vec<InitSeat>) = offers
            .iter()
            .cloned()
            .partition(|seat| charge(seat, here).is_none());
        left_out = costly.into_iter().map(|seat| seat.name).collect();
        if free.is_empty() {
            let names = left_out.join(",");
            return Err(Error::usage("everything that was found may cost money")
                .because(format!("found: {}", left_out.join(", ")))
                .next(format!("kd init --members {names}")));
        }
        free
    } else if !args.json && io::stdin().is_terminal() {
        choose(offers, here)?
    } else {
        let names: Vec<String> = offers.iter().map(|s| s.name.clone()).collect();
        let what = match args.json {
            true => "kd init --json needs --members or --yes",
            false => "kd init needs a terminal to ask",
        };
        return Err(Error::usage(what)
            .because(format!("found: {}", names.join(", ")))
            .next("kd init --members NAMES, or kd init --yes for all that cost nothing"));
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
    let destination = Destination::find(args.user, args.force, here)?;
    let file = destination.write(&chosen, args.force)?;
    if args.json {
        let members = chosen.iter().map(|seat| {
            json!({"name": seat.name, "backend": seat.backend, "model": seat.model,
                "charge": charge(seat, here)})
        });
        let written = json!({
            "v": kd_core::formats::INIT.version,
            "file": file.to_string_lossy(),
            "layer": destination.layer.word(),
            "members": members.collect::<Vec<_>>(),
            "left_out": left_out,
        });
        let text = kd_app::json::text(&written, true)?;
        writeln!(crate::out::stdout(), "{text}")?;
        return Ok(Exit::Done);
    }
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
    let scope = match destination.layer {
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
            "left out, because answers may cost money: {}; to add one: kd init --force --members {},…",
            left_out.join(", "),
            left_out[0]
        ));
    }
    say("try it: kd ask \"…\"; change it: kd config set KEY VALUE");
    Ok(Exit::Done)
}

/// Lists what is searched for, in lines of at most `columns`, each with the command that installs it or signs in.
fn looked_for(env: &Env, columns: usize) -> Vec<String> {
    let mut lines = wrap(&format!("{FOUND_NOTHING}. Set up one of these:"), columns);
    for (title, rows) in sought(env) {
        lines.push(String::new());
        lines.extend(wrap(title, columns));
        let widest = rows.iter().map(|one| width(&one.what)).max().unwrap_or(0);
        let beside = columns.saturating_sub(widest + 4);
        for one in rows {
            if beside < BESIDE_MIN {
                lines.push(format!("  {}", one.what));
                let how = wrap(&one.how, columns.saturating_sub(6).max(ROOM_MIN));
                lines.extend(how.into_iter().map(|line| format!("      {line}")));
                continue;
            }
            let mut what = one.what;
            for line in wrap(&one.how, beside) {
                let blank = " ".repeat(widest - width(&what));
                lines.push(format!("  {what}{blank}  {line}"));
                what.clear();
            }
        }
    }
    lines.push(String::new());
    lines.extend(wrap(
        &format!("Or a larger local model, {}", larger_model()),
        columns,
    ));
    lines.extend(wrap(OWN_SERVER, columns));
    let end = "Then run `kd init` again. Until then the demo model answers; its advice is poor.";
    lines.extend(wrap(end, columns));
    lines
}

/// A server that speaks OpenAI's API; docs/agents.md has the rest.
const OWN_SERVER: &str =
    "Or a server of your own (vLLM, …): kd config set providers.NAME.base_url URL";

/// Asks on the terminal: a numbered list, and a model where needed.
fn choose(offers: Vec<InitSeat>, here: &Here) -> Result<Vec<InitSeat>, Error> {
    let columns = kd_tui::terminal::size_of_stderr();
    let columns = columns.map_or(usize::MAX, |(columns, _)| columns.into());
    let mut err = crate::out::stderr().lock();
    let charges: Vec<Option<String>> = offers.iter().map(|seat| charge(seat, here)).collect();
    for line in found(&offers, &charges, columns) {
        writeln!(err, "{line}")?;
    }
    // What costs money is only taken by its number.
    let free: Vec<usize> = (0..offers.len())
        .filter(|i| charges[*i].is_none())
        .collect();
    let numbers: Vec<String> = free.iter().map(|i| (i + 1).to_string()).collect();
    let default = match numbers.is_empty() {
        true => String::new(),
        false => format!("; Enter takes {} (free)", numbers.join(",")),
    };
    loop {
        let answer = ask(
            &mut err,
            &format!("members? numbers such as 1,2, or all{default}: "),
        )?;
        match picked(&answer, offers.len(), &free) {
            Some(places) => {
                let mut chosen: Vec<InitSeat> =
                    places.into_iter().map(|i| offers[i].clone()).collect();
                for seat in chosen.iter_mut().filter(|s| needs_model(s)) {
                    seat.model = Some(ask_model(&mut err, seat)?);
                }
                return Ok(chosen);
            }
            None => writeln!(
                err,
                "please type numbers from 1 to {}, or all",
                offers.len()
            )?,
        }
    }
}

/// Formats the numbered list, in lines of at most `columns`.
fn found(offers: &[InitSeat], charges: &[Option<String>], columns: usize) -> Vec<String> {
    let mut lines = vec!["found on this machine:".to_owned()];
    for ((n, seat), charge) in (1..).zip(offers).zip(charges) {
        // The comment of a key says it itself.
        let charge = charge.as_ref().filter(|_| seat.key_env.is_none());
        let charge = charge.map_or(String::new(), |charge| format!(" ({charge})"));
        let text = format!("{}: {}{charge}", seat.name, seat.comment);
        let mut label = format!("  {n}. ");
        let room = columns.saturating_sub(label.len() + 1).max(ROOM_MIN);
        for line in wrap(&clean::line(&text), room) {
            lines.push(format!("{label}{line}"));
            label = " ".repeat(label.len());
        }
    }
    lines
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

/// Parses the chosen positions, from 0. An empty answer means the positions in `default`, if there are any.
fn picked(answer: &str, count: usize, default: &[usize]) -> Option<Vec<usize>> {
    if answer.is_empty() {
        return (!default.is_empty()).then(|| default.to_vec());
    }
    if answer == "all" {
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
        for columns in [200, 80, 60, 40] {
            let lines = looked_for(&env, columns);
            let too_wide = lines.iter().find(|line| line.chars().count() > columns);
            assert_eq!(too_wide, None, "{columns}");
            assert!(lines.len() >= wide);
        }
        assert!(looked_for(&env, 80).len() < 24, "it fits a screen");
        let sought = sought(&env);
        let rows: usize = sought.iter().map(|(_, rows)| rows.len()).sum();
        assert!(sought.iter().all(|(_, rows)| !rows.is_empty()));
        assert!(wide > rows, "{wide}");
    }

    #[test]
    fn answers_are_read_as_meant() {
        assert_eq!(picked("", 3, &[0, 2]), Some(vec![0, 2]));
        assert_eq!(picked("", 3, &[]), None);
        assert_eq!(picked("all", 2, &[0]), Some(vec![0, 1]));
        assert_eq!(picked("3, 1", 3, &[]), Some(vec![2, 0]));
        for bad in ["0", "4", "x", "1-2"] {
            assert_eq!(picked(bad, 3, &[0]), None, "{bad}");
        }
    }

    #[test]
    fn what_is_found_fits_the_terminal_and_says_what_it_costs() {
        let seat = |name: &str, comment: &str| InitSeat {
            name: name.into(),
            comment: comment.into(),
            ..InitSeat::default()
        };
        let offers = [
            seat(
                "openai",
                "openai, with the key in OPENAI_API_KEY: each answer costs money",
            ),
            seat(
                "opencode",
                "opencode, found at /home/ada/.local/share/programs/bin/opencode",
            ),
        ];
        let charges = [None, Some("may cost money: its own settings".to_owned())];
        for columns in [40, 60, 80] {
            let lines = found(&offers, &charges, columns);
            assert!(
                lines.iter().all(|line| line.chars().count() < columns),
                "{lines:#?}"
            );
            assert!(lines.join(" ").contains("(may cost"), "{lines:#?}");
        }
    }
}
