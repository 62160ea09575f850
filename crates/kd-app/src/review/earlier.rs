//! Reports in files: `-o` replaces an earlier report, not another file of the user.

use super::report::VERSION;
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::infile;
use std::path::Path;

/// Maximum bytes of a report.
const BYTES_MAX: u64 = 32 << 20;

/// Fails if a report would replace a file that is no report: checked before any member is asked. Empty files, and what is
/// no regular file, such as a link or a device, are not the content of anything.
///
/// # Errors
/// If the file is another one.
pub fn may_replace(path: &Path, env: &Env) -> Result<(), UserError> {
    let here = env.folder().ok();
    let whole = here.map_or_else(|| path.to_path_buf(), |here| here.join(path));
    let meta = whole.symlink_metadata();
    if !meta.is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
        return Ok(());
    }
    let text = infile::read(&whole, BYTES_MAX);
    if text.is_ok_and(|text| is_report(&String::from_utf8_lossy(&text))) {
        return Ok(());
    }
    Err(UserError::new(
        ErrorKind::Exists,
        format!("{} exists, and is no report of a review", path.display()),
    )
    .next("give -o another name, or add --force to replace it"))
}

/// Returns whether a text is a report in one of the formats of `kd review`.
fn is_report(text: &str) -> bool {
    let compact = || {
        let head: String = text.chars().take(200).collect();
        head.split_whitespace().collect::<String>()
    };
    match text.bytes().next() {
        Some(b'#') => {
            let mut lines = text.lines();
            lines
                .next()
                .is_some_and(|line| line.starts_with("# Review of "))
                && lines
                    .nth(1)
                    .is_some_and(|line| line.contains(" reviewed; "))
        }
        Some(b'{' | b'[') => {
            text.contains("\"name\": \"kd review\"")
                || text.contains("\"body\": \"`kd review`: ")
                || compact().starts_with(&format!("{{\"version\":{VERSION},\"thread\":\"council-"))
        }
        _ => false,
    }
}
