//! `kd council review`: gives the branch's changes to the council as data.

use super::ask::{self, Job};
use super::here::Here;
use crate::args::ask::Ask;
use crate::args::council::Review;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::Question;
use kd_app::review::prose::Change;
use std::io::Write;

const QUESTION: &str = "Review this change. Should it be merged? Name each fault with its file and line, the worst first.";

pub(super) fn run(args: Review, here: &Here) -> Result<Exit, Error> {
    let folder = here.folder()?;
    let change = Change::of(folder, args.base.as_deref())?;
    if !args.output.quiet {
        for line in change.notices() {
            let _ = writeln!(
                crate::out::stderr(),
                "{}",
                crate::render::clean::line(&line)
            );
        }
    }
    let asked = match args.question.is_empty() {
        true => QUESTION.to_owned(),
        false => args.question.join(" "),
    };
    let question = Question {
        text: format!("{asked}\n\n{}", change.text()),
        asked,
        ..Question::default()
    };
    let ask = Ask {
        to: args.to,
        timeout: args.timeout,
        writable: args.writable,
        background: args.background,
        privacy: args.privacy,
        output: args.output,
        ..Ask::default()
    };
    ask::carry_out(ask, Job::Review(question), here)
}
