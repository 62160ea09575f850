//! The page *Do councils beat their best member?*, from each of the files of `--replay`.

use super::recorded::{self, Recorded};
use super::written;
use crate::args::eval::{Eval, Format};
use crate::error::Error;
use kd_app::{Env, outfile};
use kd_eval::page::{Draw, Set, TITLE, markdown, study};
use kd_eval::replay::{Public, Table};
use std::io::Write;

/// Members per council.
const SIZE: usize = 5;

/// Writes the page.
pub(super) fn write(args: &Eval, councils: u32, env: &Env) -> Result<(), Error> {
    if args.format == Some(Format::Csv) {
        return Err(Error::usage("a page is not a table of answers")
            .next("choose --format md, html or eee"));
    }
    if args.format == Some(Format::Eee) && args.output.is_none() {
        return Err(written::needs_folder());
    }
    let mut tables: Vec<(String, String, Table)> = Vec::new();
    for path in &args.replay {
        let one = Eval {
            replay: vec![path.clone()],
            ..args.clone()
        };
        let (recorded, origin) = recorded::open(&one)?;
        let Recorded::Table(table) = recorded else {
            let what = format!("{} has debates", recorded::shown(path));
            return Err(Error::usage(what)
                .because("random councils need named members")
                .next("give tables of answers"));
        };
        let name = Public::find(&origin.sha256).map_or(origin.name, |set| set.name.to_owned());
        tables.push((name, origin.sha256, table));
    }
    let set = |(name, sha256, table)| Set {
        name: String::clone(name),
        table,
        sha256: String::clone(sha256),
    };
    let sets: Vec<Set<'_>> = tables.iter().map(|(n, s, t)| set((n, s, t))).collect();
    let draw = Draw {
        councils: councils as usize,
        size: SIZE,
        seed: args.seed,
    };
    let found = study(&sets, draw).map_err(|error| Error::usage(error.what).next(error.hint))?;
    let text = match args.format {
        Some(Format::Eee) => {
            return written::files(&kd_records::study(&found, written::now()), args, env);
        }
        Some(Format::Html) => kd_page::sheet(TITLE, &markdown(&found)),
        _ => markdown(&found),
    };
    match &args.output {
        Some(path) => Ok(outfile::write(path, text.as_bytes(), env)?),
        None => Ok(crate::out::stdout().lock().write_all(text.as_bytes())?),
    }
}
