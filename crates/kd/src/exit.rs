//! Exit codes of commands, for scripts. `kd help exit-codes` documents them; a test compares the two.

use kd_app::ErrorKind;
use kd_core::FailureKind;
use kd_core::event::Outcome;
use kd_core::view::{Turn, View};

/// Declares the codes once: the enum, the list of all, and their meanings.
macro_rules! exits {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $meaning:literal;)*) => {
        /// The exit code of a command.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Exit {
            $($(#[$doc])* $name = $code,)*
        }

        #[cfg(test)]
        impl Exit {
            /// Every code with its meaning, as in the help page and the manual.
            const ALL: &[(Exit, &str)] = &[$((Exit::$name, $meaning)),*];
        }
    };
}

exits! {
    /// Every member that was asked answered.
    Done = 0, "every member that was asked answered";
    /// Something could not be read, written or parsed.
    Error = 1, "error: something could not be read, written or parsed";
    /// The command line or the configuration is wrong.
    Usage = 2, "usage: the command line or the configuration is wrong";
    /// There are no members: a model, program or key is missing.
    NoSeat = 3, "no members: a model, program or key is missing";
    /// A limit ended the run; the answers are the best so far.
    Cut = 4, "a limit ended the run; the answers are the best so far";
    /// Some members answered, some failed.
    Partial = 5, "partial: some members answered, some failed (degraded)";
    /// Every member failed.
    Failed = 6, "every member failed";
    /// The council is split: nothing was decided.
    Split = 7, "the council is split: nothing was decided";
    /// Too few readable votes to decide.
    NoQuorum = 8, "no quorum: too few readable votes to decide";
    /// A named member, or every member, needs settings of this folder that the user has not allowed.
    HeldBack = 9, "held back: members need settings that you have not allowed (kd trust)";
    /// A review has findings at which the user wants it to fail.
    Findings = 10, "findings: the review has some that match --fail-on";
    /// The user requires a promise that the marks do not support.
    NoPromise = 11, "no promise: your marks do not support what --require asks for";
    /// A sealed file was changed, or lacks the requested signature.
    Unproved = 12, "not verified: the sealed file was changed, or another key signed it";
    /// The members disagree, and the council asks the user a question.
    AsksBack = 13, "asks back: the members disagree, and the council asks you a question (--ask-back)";
    /// The answer could not be put into the JSON schema that the user asked for.
    NoOutput = 14, "no output: the answer is in the thread, but not as JSON (--output-schema)";
    /// Every member timed out.
    Timeout = 124, "every member timed out";
    /// Interrupted; partial answers are saved.
    Interrupted = 130, "interrupted; partial answers are saved in the thread";
}

impl Exit {
    /// Returns the code of a round whose answer was to be put into a JSON schema. A limit that prevented it, and what ended
    /// the round before, have codes of their own.
    pub(crate) fn with_output(self, view: &View) -> Self {
        match view.output() {
            Some(Err(failure)) if self.has_answer() => match failure.kind {
                FailureKind::Limit => Exit::Cut,
                FailureKind::Cancelled => Exit::Interrupted,
                _ => Exit::NoOutput,
            },
            _ => self,
        }
    }

    fn has_answer(self) -> bool {
        let answered = [
            Exit::Done,
            Exit::Partial,
            Exit::Split,
            Exit::NoQuorum,
            Exit::AsksBack,
        ];
        answered.contains(&self)
    }

    /// Returns the code of a round. The outcome alone does not tell why members failed.
    pub(crate) fn of_round(outcome: Outcome, failures: Failures) -> Self {
        match outcome {
            Outcome::Complete => Exit::Done,
            Outcome::Partial | Outcome::Failed if failures == Failures::Limited => Exit::Cut,
            Outcome::Partial => Exit::Partial,
            Outcome::Failed if failures == Failures::Late => Exit::Timeout,
            Outcome::Failed => Exit::Failed,
            Outcome::Interrupted => Exit::Interrupted,
        }
    }
}

/// A summary of the failures of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failures {
    /// A limit of the run refused at least one request.
    Limited,
    /// Every failure was a time-out.
    Late,
    /// Nothing, or there were none.
    Other,
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        use ErrorKind as Kind;
        match kind {
            Kind::Usage
            | Kind::Config
            | Kind::UnknownMember
            | Kind::NoSuchModel
            | Kind::CannotSeat
            | Kind::NoPrice
            | Kind::Budget
            | Kind::Plan
            | Kind::Private
            | Kind::ForumRefused
            | Kind::OutOfRange
            | Kind::NoMessages
            | Kind::NotDeliberated
            | Kind::NoStage
            | Kind::NobodyLeft
            | Kind::UnknownRule
            | Kind::NoChange
            | Kind::NoFinding
            | Kind::Persona => Exit::Usage,
            Kind::NoSeat | Kind::NoModel | Kind::UnknownModel => Exit::NoSeat,
            Kind::HeldBack => Exit::HeldBack,
            Kind::Spent => Exit::Cut,
            Kind::ClosedPipe => Exit::Done,
            Kind::NoReport => Exit::Interrupted,
            Kind::Timeout => Exit::Timeout,
            _ => Exit::Error,
        }
    }
}

impl Failures {
    /// Summarizes the failures of the view's round.
    pub(crate) fn of(view: &View) -> Self {
        let mut kinds = view.turns.iter().filter_map(Turn::failure).map(|f| f.kind);
        if kinds.clone().any(|kind| kind == FailureKind::Limit) {
            return Failures::Limited;
        }
        match kinds.clone().next() {
            Some(_) if kinds.all(|kind| kind == FailureKind::Timeout) => Failures::Late,
            _ => Failures::Other,
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
    use crate::face::script::Script;
    use clap::Parser;

    /// Parses the rows of a table: code and meaning.
    fn rows(text: &str, split: impl Fn(&str) -> Option<(&str, &str)>) -> Vec<(String, String)> {
        let rows = text.lines().filter_map(split);
        let rows = rows.filter(|(code, _)| code.parse::<u8>().is_ok());
        rows.map(|(code, meaning)| (code.to_owned(), meaning.to_owned()))
            .collect()
    }

    #[test]
    fn the_help_page_and_the_manual_list_every_code_and_no_other() {
        let all: Vec<(String, String)> = Exit::ALL
            .iter()
            .map(|(exit, meaning)| ((*exit as u8).to_string(), (*meaning).to_owned()))
            .collect();
        let page = crate::args::Cli::try_parse_from(["kd", "exit-codes", "--help"])
            .expect_err("help is an early exit")
            .to_string();
        let help = rows(&page, |line| {
            let (code, meaning) = line.trim().split_once(' ')?;
            Some((code, meaning.trim()))
        });
        assert_eq!(help, all, "kd help exit-codes");
        let manual = include_str!("../../../docs/ask.md");
        let docs = rows(manual, |line| {
            let (code, meaning) = line
                .strip_prefix("| ")?
                .strip_suffix(" |")?
                .split_once(" | ")?;
            Some((code.trim(), meaning.trim()))
        });
        assert_eq!(docs, all, "docs/ask.md");
    }

    /// Programs know an error by its word, and scripts by its exit code.
    #[test]
    fn a_word_of_an_error_has_its_exit_code() {
        use ErrorKind as Kind;
        let rows = [
            (Kind::NoPlan, "no_deliberation", Exit::Error),
            (Kind::NobodyLeft, "nobody_left", Exit::Usage),
            (Kind::Budget, "budget", Exit::Usage),
            (Kind::Spent, "budget", Exit::Cut),
            (Kind::UnknownRule, "unknown_rule", Exit::Usage),
            (Kind::UnknownMember, "unknown_member", Exit::Usage),
            (Kind::Seal, "seal", Exit::Error),
            (Kind::Key, "key", Exit::Error),
            (Kind::Random, "random", Exit::Error),
            (Kind::Erased, "erased", Exit::Error),
            (Kind::NoThreadInside, "no_thread_inside", Exit::Error),
            (Kind::Git, "git", Exit::Error),
            (Kind::NoChange, "no_change", Exit::Usage),
            (Kind::NoFinding, "no_finding", Exit::Usage),
            (Kind::NoReview, "no_review", Exit::Error),
            (Kind::NoReport, "no_report", Exit::Interrupted),
            (Kind::Persona, "persona", Exit::Usage),
            (Kind::Exists, "exists", Exit::Error),
            (Kind::Timeout, "timeout", Exit::Timeout),
            (Kind::Forum, "forum", Exit::Error),
            (Kind::ForumRefused, "forum", Exit::Usage),
            (Kind::Io, "io", Exit::Error),
            (Kind::Store, "store", Exit::Error),
            (Kind::NoSeat, "no_seat", Exit::NoSeat),
            (Kind::ClosedPipe, "closed_pipe", Exit::Done),
        ];
        for (kind, word, exit) in rows {
            assert_eq!((kind.word(), Exit::from(kind)), (word, exit));
        }
    }

    #[test]
    fn only_timeouts_are_a_timeout() {
        let mut script = Script::open(&["a", "b"]);
        script.queue(1, "a");
        script.queue(2, "b");
        script.fail(1, "a", FailureKind::Timeout);
        let failures = |script: &Script| Failures::of(&View::of(&script.records));
        assert_eq!(failures(&script), Failures::Late);
        script.fail(2, "b", FailureKind::Auth);
        assert_eq!(failures(&script), Failures::Other);
        assert_eq!(Failures::of(&View::default()), Failures::Other);
    }

    #[test]
    fn a_request_that_a_limit_refused_decides_the_code() {
        let mut script = Script::open(&["a", "b"]);
        script.queue(1, "a");
        script.queue(2, "b");
        script.fail(1, "a", FailureKind::Timeout);
        script.fail(2, "b", FailureKind::Limit);
        let limited = Failures::of(&View::of(&script.records));
        assert_eq!(limited, Failures::Limited);
        let code = |outcome| Exit::of_round(outcome, limited);
        assert_eq!(code(Outcome::Failed), Exit::Cut);
        assert_eq!(code(Outcome::Partial), Exit::Cut);
        assert_eq!(code(Outcome::Complete), Exit::Done);
    }
}
