//! `kd marks forget`: removes marks, including marks of other projects and of deleted threads.

use crate::error::Error;
use crate::exit::Exit;
use crate::run::agreed::agreed;
use crate::run::here::Here;
use kd_app::marks as kept;
use kd_app::words::count;
use std::io::{self, IsTerminal, Write};

/// Forgets all marks, after asking: they cannot be earned again soon.
pub(super) fn all(yes: bool, here: &Here) -> Result<Exit, Error> {
    let known = kept::total(here)?;
    let words = count(known, "mark");
    if known == 0 {
        return told(0);
    }
    if !yes && !io::stdin().is_terminal() {
        let what = format!("all your marks would be forgotten: {words}");
        let next = "`kd marks export > marks.jsonl` keeps them; confirm with --yes, or run it in a terminal";
        return Err(Error::usage(what).next(next));
    }
    if !yes && !agreed(&format!("Forget all your marks ({words})?"))? {
        writeln!(crate::out::stderr(), "nothing was changed")?;
        return Ok(Exit::Interrupted);
    }
    told(kept::forget_all(here)?)
}

/// Forgets the marks of a thread of this project, or of another one.
pub(super) fn of_thread(id: &str, project: Option<&str>, here: &Here) -> Result<Exit, Error> {
    told(kept::forget_thread(id, project, here)?)
}

fn told(gone: usize) -> Result<Exit, Error> {
    let mut out = crate::out::stdout().lock();
    writeln!(out, "forgot {}", count(gone as u64, "mark"))?;
    Ok(Exit::Done)
}
