//! `kd council reset`: deletes the sessions that agent programs would resume.

use super::agreed::agreed;
use super::here::Here;
use crate::args::council::Reset;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::sessions;
use kd_core::SeatName;
use std::io::{self, IsTerminal, Write};

pub(super) fn run(args: &Reset, here: &Here) -> Result<Exit, Error> {
    let with_session = sessions::kept(args.member.as_deref(), here)?;
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
    sessions::forget(&with_session, here)?;
    writeln!(err, "forgotten: the sessions of {names}")?;
    Ok(Exit::Done)
}
