//! `kd council reset`: deletes the sessions that agent programs would resume.

use super::agreed::agreed;
use super::here::Here;
use crate::args::council::Reset;
use crate::error::Error;
use crate::exit::Exit;
use kd_core::SeatName;
use kd_store::session;
use std::io::{self, IsTerminal, Write};

pub(super) fn run(args: &Reset, here: &Here) -> Result<Exit, Error> {
    let layout = here.layout()?;
    let mut seats = session::kept(&layout.sessions_folder())?;
    if let Some(name) = &args.member {
        let config = here.settings(Some(&layout))?.config;
        let known = |seat: &&SeatName| seat.as_str() == name;
        let found = seats.iter().find(known).cloned();
        if found.is_none() && !config.agents.contains_key(name.as_str()) {
            let mut names: Vec<String> = seats.iter().map(ToString::to_string).collect();
            names.extend(config.agents.keys().cloned());
            names.sort();
            names.dedup();
            return Err(Error::new(
                "unknown_member",
                Exit::Usage,
                format!("no member is named {name}"),
            )
            .next(match names.is_empty() {
                true => "no member has a saved session here".to_owned(),
                false => format!("members are: {}", names.join(", ")),
            }));
        }
        seats = found.into_iter().collect();
    }
    let mut with_session = Vec::new();
    for seat in seats {
        if session::read(&layout, &seat)?.resume_id.is_some() {
            with_session.push(seat);
        }
    }
    let mut err = crate::out::stderr();
    if with_session.is_empty() {
        writeln!(err, "no member has a session to forget")?;
        return Ok(Exit::Done);
    }
    let names: Vec<&str> = with_session.iter().map(SeatName::as_str).collect();
    let names = names.join(", ");
    if !args.force && !io::stdin().is_terminal() {
        return Err(
            Error::usage(format!("the sessions of {names} would be forgotten"))
                .next("confirm with --force, or run it in a terminal"),
        );
    }
    if !args.force && !agreed(&format!("Forget the sessions of {names}?"))? {
        writeln!(err, "nothing was changed")?;
        return Ok(Exit::Interrupted);
    }
    for seat in &with_session {
        session::update(&layout, seat, |state| state.resume_id = None)?;
    }
    writeln!(err, "forgotten: the sessions of {names}")?;
    Ok(Exit::Done)
}
