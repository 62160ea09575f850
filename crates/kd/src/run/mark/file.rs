//! `kd marks export` and `kd marks import`.

use super::{kept, name_unreadable};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::here::Here;
use std::io::Write;
use std::path::Path;

/// Prints all marks that an import would take, and names the others.
pub(super) fn export(here: &Here) -> Result<Exit, Error> {
    let all = kept::all(here)?;
    let mut out = crate::out::stdout().lock();
    let mut unfit = Vec::new();
    for mark in &all.marks {
        match mark.line() {
            Ok(line) => writeln!(out, "{line}")?,
            Err(why) => unfit.push((kept::place(mark), why.to_string())),
        }
    }
    name_unreadable(&all, &unfit)
}

/// Imports a marks file: all lines or, if one cannot be read, none.
pub(super) fn import(file: &Path, here: &Here) -> Result<Exit, Error> {
    let done = kept::import(file, here)?;
    let mut out = crate::out::stdout().lock();
    let replaced = match done.replaced {
        0 => String::new(),
        n => format!("; {n} replaced an earlier one"),
    };
    let kept = match done.kept {
        0 => String::new(),
        n => format!("; kept {n} that are as new or newer"),
    };
    writeln!(
        out,
        "imported {}{replaced}{kept}",
        kd_app::words::count(done.added + done.replaced, "mark")
    )?;
    Ok(Exit::Done)
}
