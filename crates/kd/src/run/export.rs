//! `kd export`: a thread as one document.

use super::here::Here;
use super::{outfile, thread};
use crate::args::export::{Export, Format};
use crate::error::Error;
use crate::face::json;
use crate::render::clean;
use kd_store::{Thread, export};
use std::io::{self, Write};

pub(super) fn run(args: &Export, here: &Here) -> Result<(), Error> {
    let (_, place) = thread::find(here, args.id.as_deref())?;
    let open = Thread::open(&place)?;
    let by_name = args.output.as_deref().is_some_and(outfile::is_json);
    let format = args
        .format
        .unwrap_or(if by_name { Format::Json } else { Format::Md });
    let text = text(&open, format)?;
    match &args.output {
        Some(path) => outfile::write(path, text.as_bytes())?,
        None => {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
    }
    Ok(())
}

/// A thread as one document.
pub(super) fn text(open: &Thread, format: Format) -> Result<String, Error> {
    let read = open.messages()?;
    for problem in &read.problems {
        let _ = writeln!(
            io::stderr(),
            "warning: {}",
            clean::line(&problem.to_string())
        );
    }
    Ok(match format {
        Format::Md => export::markdown(open.meta(), &read.messages),
        Format::Json => json::text(&export::json(open.meta(), &read.messages), true)? + "\n",
    })
}
