//! Files that a question attaches: asks for consent where it is needed, and says what is attached.

use super::agreed::agreed;
use super::notices::notice_line;
use super::question;
use crate::error::Error;
use kd_app::attach::{Attaching, prices};
use kd_app::{ErrorKind, Question, UserError, seating};
use kd_core::Member;
use kd_core::config::Config;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

/// The files of a command line.
pub(super) struct Files<'a> {
    /// The command, for advice.
    pub(super) command: &'a str,
    /// The words of the question.
    pub(super) words: &'a [String],
    /// The files of `--attach`.
    pub(super) options: &'a [PathBuf],
    /// Whether nobody can be asked, because a program reads the output.
    pub(super) for_a_program: bool,
    /// Whether no notices are printed.
    pub(super) quiet: bool,
}

/// Appends the files to the question. Members that are not known yet have no price.
///
/// # Errors
/// If a file cannot be attached, or needs consent and there is none.
pub(super) fn attach(
    files: &Files<'_>,
    question: &mut Question,
    (config, members): (&Config, &[Member]),
    env: &kd_app::Env,
) -> Result<(), Error> {
    let known = seating::names_in(config, members);
    let typed = question::typed(files.words);
    let found = Attaching::find(&typed, &known, files.options, env)?;
    if let Some(doubts) = found.doubts() {
        let asks = !files.for_a_program && io::stdin().is_terminal() && io::stderr().is_terminal();
        let attached = asks && agreed(&format!("{doubts}. Attach it?"))?;
        if !attached {
            let next = format!("kd {} {} \"…\"", files.command, found.options());
            let what = format!("not attached without your consent: {doubts}");
            let error = UserError::new(ErrorKind::Refused, what);
            return Err(error
                .next(format!(
                    "`{next}` attaches it; in `backticks`, @NAME is text"
                ))
                .into());
        }
    }
    let read = found.read(&prices(config, members))?;
    if !files.quiet {
        let lines = found.missing(env).into_iter().chain(read.lines.clone());
        lines.for_each(|line| notice_line(&line));
    }
    read.append_to(question);
    Ok(())
}
