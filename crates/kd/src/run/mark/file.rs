//! `kd marks export` and `kd marks import`: both go by the limits of [`Mark::line`] and [`Mark::of_line`].

use super::{kept, name_unreadable};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::clean;
use crate::run::here::Here;
use kd_app::infile;
use kd_core::formats::{self, MARK, Newer};
use kd_eval::marks::{MARK_BYTES_MAX, Mark};
use kd_sql::marks::{self, Marks};
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

/// Maximum bytes of a line, with the line break.
const LINE_BYTES_MAX: u64 = MARK_BYTES_MAX as u64 + 2;

/// Prints all marks that an import would take, and names the others.
pub(super) fn export(here: &Here) -> Result<Exit, Error> {
    let all = marks::read_readable(&here.user_dirs())?;
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
    let named = clean::line(&file.display().to_string());
    let failed = |why: &dyn Display| {
        Error::usage(format!("{named} cannot be imported; nothing was changed")).because(why)
    };
    let mut text = BufReader::new(infile::open(file).map_err(|e| failed(&e))?);
    let now = here.now()?;
    let mut found = Vec::new();
    for number in 1_u64.. {
        let wrong = |why: &dyn Display| failed(&format!("line {number}: {why}"));
        let mut line = Vec::new();
        let mut part = (&mut text).take(LINE_BYTES_MAX);
        part.read_until(b'\n', &mut line).map_err(|e| failed(&e))?;
        if line.is_empty() {
            break;
        }
        if line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            let most = MARK_BYTES_MAX >> 20;
            return Err(wrong(&format!("it is longer than {most} MiB")));
        }
        let line = String::from_utf8(line).map_err(|_| wrong(&"it is not UTF-8 text"))?;
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        MARK.check(formats::stated(line.as_bytes(), "v"))
            .map_err(|newer| failed(&format!("line {number} has {newer}")).next(Newer::HINT))?;
        found.push(Mark::of_line(line, now).map_err(|e| wrong(&e))?);
    }
    let done = Marks::open(&here.user_dirs())?.import(&found)?;
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
