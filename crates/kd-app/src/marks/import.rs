//! Imports and exports files of marks. Both use the limits of [`Mark::line`] and [`Mark::of_line`].

use crate::env::Env;
use crate::error::UserError;
use crate::infile;
use kd_core::display;
use kd_core::formats::{self, MARK, Newer};
use kd_eval::marks::{MARK_BYTES_MAX, Mark};
pub use kd_sql::marks::Imported;
use kd_sql::marks::Marks;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Maximum bytes of a line, with the line break.
const LINE_BYTES_MAX: u64 = MARK_BYTES_MAX as u64 + 2;

/// Imports a file of marks: all lines or, if one cannot be read, none.
///
/// # Errors
/// The file or one of its lines cannot be read, or the marks cannot be written.
pub fn import(file: &Path, env: &Env) -> Result<Imported, UserError> {
    let named = display::line(&file.display().to_string());
    let failed = |why: &dyn Display| {
        UserError::usage(format!("{named} cannot be imported; nothing was changed")).because(why)
    };
    let mut text = BufReader::new(infile::open(file).map_err(|e| failed(&e))?);
    let now = env.now()?;
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
    Ok(Marks::open(&env.user_dirs())?.import(&found)?)
}
