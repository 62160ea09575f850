//! `kd mark --gold`: marks many verdicts by a file of right answers.

use crate::args::mark::Mark as Args;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use crate::run::here::Here;
use kd_app::infile;
use kd_app::marks::{ByGold, by_gold};
use kd_app::words::{count, grouped};
use kd_core::batch::{FILE_BYTES_MAX, Form, read_gold};
use kd_core::formats;
use serde_json::json as object;
use std::io::{self, Write};
use std::path::Path;

/// Skipped rows that are listed as text; `--json` has all.
const SKIPPED_SHOWN: usize = 20;

pub(super) fn mark(args: &Args, file: &Path, here: &Here) -> Result<Exit, Error> {
    let batch = match args.words.as_slice() {
        [] => None,
        [batch] => Some(batch.as_str()),
        _ => {
            return Err(Error::usage("`--gold` replaces the mark")
                .next("kd mark --gold FILE, or kd mark BATCH --gold FILE"));
        }
    };
    let named = match file.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => clean::line(&file.display().to_string()),
    };
    let failed = |why: &dyn std::fmt::Display| {
        Error::usage(format!("{named} cannot be used; nothing was marked")).because(why)
    };
    let bytes = infile::read(file, FILE_BYTES_MAX).map_err(|e| failed(&e))?;
    let form = Form::of(&file.to_string_lossy(), &bytes);
    let gold = read_gold(&bytes, form, args.id_field.as_deref())
        .map_err(|error| failed(&clean::line(&error.to_string())).next(&error.hint))?;
    let done = by_gold(batch, &gold, here)?;
    let mut out = crate::out::stdout().lock();
    if args.json {
        let value = object!({"v": formats::MARKED_BY_GOLD.version, "batch": done.batch, "marked": done.marked,
            "right": done.right, "replaced": done.replaced, "skipped": done.skipped});
        writeln!(out, "{}", json::text(&value, true)?)?;
    } else {
        show(&done, &mut out)?;
    }
    Ok(match done.marked {
        0 => Exit::Error,
        _ => Exit::Done,
    })
}

fn show(done: &ByGold, out: &mut impl Write) -> io::Result<()> {
    let of = match &done.batch {
        Some(batch) => format!("{}: ", clean::line(batch)),
        None => String::new(),
    };
    let mut line = format!("{of}marked {}", count(done.marked, "verdict"));
    if done.marked > 0 {
        line.push_str(&format!(", {} right", grouped(done.right)));
    }
    if done.replaced > 0 {
        line.push_str(&format!(
            "; {} replaced an earlier mark",
            grouped(done.replaced)
        ));
    }
    writeln!(out, "{line}")?;
    for skipped in done.skipped.iter().take(SKIPPED_SHOWN) {
        let (id, why) = (clean::line(&skipped.id), clean::line(&skipped.why));
        writeln!(out, "skipped line {}: {id}: {why}", skipped.line)?;
    }
    match done.skipped.len().saturating_sub(SKIPPED_SHOWN) {
        0 => Ok(()),
        more => writeln!(out, "and {} more; `--json` has all", grouped(more as u64)),
    }
}
