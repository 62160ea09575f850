//! `kd council retry`: asks members again that have not answered the newest question.

use super::ask::{self, Job};
use super::here::Here;
use crate::args::ask::{Ask, Going, Tools, Wanted};
use crate::args::council::Retry;
use crate::error::Error;
use crate::exit::Exit;

pub(super) fn run(args: Retry, here: &Here) -> Result<Exit, Error> {
    let wanted = args.id.unwrap_or_default();
    let ask = Ask {
        going: Going {
            resume: Some(wanted),
            thread: None,
            fork: None,
        },
        timeout: args.timeout,
        // The question may have been asked without tools: the user allows them again, or they stay off.
        tools: Tools {
            tools: args.tools.or(Some(Wanted::None)),
        },
        writable: args.writable,
        output: args.output,
        ..Ask::default()
    };
    ask::carry_out(ask, Job::Retry, here)
}
