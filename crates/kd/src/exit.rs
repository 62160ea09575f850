//! Exit codes: how a command ended, for scripts. `kd help exit-codes` says the same in words; a test compares them.

use kd_core::event::Outcome;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Everybody who was asked answered.
    Done = 0,
    /// Something could not be read, written or understood.
    Error = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// Nobody could be seated: a model, program or key is missing.
    NoSeat = 3,
    /// A limit cut a deliberation; the answer is the best so far.
    Cut = 4,
    /// Some members answered, some failed.
    Partial = 5,
    /// Every member failed.
    Failed = 6,
    /// The council is split: nothing was decided.
    Split = 7,
    /// Too few readable votes to decide.
    NoQuorum = 8,
    /// Every member ran out of time.
    Timeout = 124,
    /// Interrupted; what came is kept.
    Interrupted = 130,
}

impl Exit {
    /// The code of a round: `timeouts_only` says that every failure of it was a time-out.
    pub(crate) fn of_round(outcome: Outcome, timeouts_only: bool) -> Self {
        match outcome {
            Outcome::Complete => Exit::Done,
            Outcome::Partial => Exit::Partial,
            Outcome::Failed if timeouts_only => Exit::Timeout,
            Outcome::Failed => Exit::Failed,
            Outcome::Interrupted => Exit::Interrupted,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn the_help_page_lists_every_code() {
        let page = crate::args::Cli::try_parse_from(["kd", "exit-codes", "--help"])
            .expect_err("help is an early exit")
            .to_string();
        for exit in [
            Exit::Done,
            Exit::Error,
            Exit::Usage,
            Exit::NoSeat,
            Exit::Cut,
            Exit::Partial,
            Exit::Failed,
            Exit::Split,
            Exit::NoQuorum,
            Exit::Timeout,
            Exit::Interrupted,
        ] {
            let code = (exit as u8).to_string();
            assert!(
                page.lines()
                    .any(|l| l.split_whitespace().next() == Some(&code)),
                "{code} is missing in:\n{page}"
            );
        }
    }
}
