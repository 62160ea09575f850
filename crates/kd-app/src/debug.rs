//! Recorded streams of agent programs, decoded as their members are read.

use crate::error::UserError;
use kd_backends::dialects::{DIALECTS, decode_all, named};
use kd_core::{Delta, Failure};
use std::io::Read;

/// Returns the names of the dialects that agent programs speak.
pub fn dialects() -> impl Iterator<Item = &'static str> {
    DIALECTS.iter().map(|dialect| dialect.name)
}

/// Decodes a recording, event by event.
///
/// # Errors
/// There is no such dialect.
pub fn decode<'s>(
    dialect: &str,
    source: impl Read + 's,
) -> Result<impl Iterator<Item = Result<Delta, Failure>> + 's, UserError> {
    let known = named(dialect);
    let known = known.ok_or_else(|| UserError::usage(format!("there is no dialect {dialect}")))?;
    Ok(decode_all(known, source))
}
