//! `kd debug decode`: decodes a recorded stream, event by event.

use crate::args::debug::{Debug, Decode};
use crate::error::Error;
use crate::exit::Exit;
use kd_app::infile;
use std::io::{self, BufReader, Write};

pub(super) fn run(args: &Debug) -> Result<Exit, Error> {
    match args {
        Debug::Decode(args) => decode(args),
    }
}

/// Prints the events; the exit code tells whether the last turn succeeded.
fn decode(args: &Decode) -> Result<Exit, Error> {
    let source = infile::open(&args.file).map_err(|e| {
        let what = format!("{} cannot be read", args.file.display());
        Error::new("io", Exit::Error, what).because(e)
    })?;
    let events = kd_app::debug::decode(&args.dialect, BufReader::new(source))?;
    let mut out = io::BufWriter::new(crate::out::stdout().lock());
    let mut exit = Exit::Error;
    for event in events {
        let line = match &event {
            Ok(delta) => serde_json::to_value(delta),
            Err(failure) => serde_json::to_value(failure)
                .map(|f| serde_json::json!({"kind": "failed", "failure": f})),
        };
        let line =
            line.map_err(|e| Error::new("io", Exit::Error, "an event is not JSON").because(e))?;
        exit = if event.is_ok() {
            Exit::Done
        } else {
            Exit::Failed
        };
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(exit)
}
