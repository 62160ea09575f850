//! `--output-schema`: reads the schema, and says why an answer could not be put into it.

use super::here::Here;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::infile;
use kd_app::output::{BadSchema, OutputSchema, SCHEMA_BYTES_MAX};
use kd_core::view::View;
use std::io::{self, Read};
use std::path::Path;

/// Reads the schema that an option names: a file, or the schema itself.
pub(super) fn read(given: Option<&str>, here: &Here) -> Result<Option<OutputSchema>, Error> {
    let Some(given) = given else {
        return Ok(None);
    };
    if given == "-" {
        return Err(Error::usage("stdin belongs to the question")
            .because("`--output-schema -` would read the schema from it")
            .next("--output-schema schema.json, or the schema itself: --output-schema '{\"type\": …}'"));
    }
    let text = match given.trim_start().starts_with('{') {
        true => given.to_owned(),
        false => from_file(given, here)?,
    };
    let schema = OutputSchema::parse(&text);
    schema.map(Some).map_err(|bad: BadSchema| {
        let error = Error::new("schema", Exit::Usage, "--output-schema cannot be used");
        error.because(&bad).next(bad.hint())
    })
}

fn from_file(name: &str, here: &Here) -> Result<String, Error> {
    let read = |path: &Path| -> io::Result<String> {
        let mut text = String::new();
        // One more byte shows that it is too long.
        let mut file = infile::open(path)?.take(SCHEMA_BYTES_MAX as u64 + 1);
        file.read_to_string(&mut text)?;
        Ok(text)
    };
    read(&here.folder()?.join(name)).map_err(|why| {
        let what = format!(
            "cannot read the schema `{}`",
            crate::render::clean::line(name)
        );
        Error::new("schema", Exit::Usage, what)
            .because(why)
            .next("name a file with a JSON schema, or give the schema itself: '{\"type\": …}'")
    })
}

/// Returns the error for an answer that could not be put into the schema, with the reason in words. Programs find it
/// in the JSON object.
pub(super) fn told(exit: Exit, is_json: bool, view: &View, id: &str) -> Result<Exit, Error> {
    match view.output() {
        Some(Err(failure)) if exit == Exit::NoOutput && !is_json => {
            let what = "the answer could not be put into the schema";
            let error = Error::new("no_output", exit, what).because(&failure.message);
            let hint = failure.hint();
            Err(error.next(format!("{hint}\nkd show {id}")))
        }
        _ => Ok(exit),
    }
}
