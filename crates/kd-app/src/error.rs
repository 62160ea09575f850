//! Errors for users: what happened, why, and what to do next.

use std::{fmt, io};

/// Declares the kinds of errors with the words by which programs know them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        /// The kind of an error, for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $name,)*
        }

        impl ErrorKind {
            /// The word in JSON output, for example `no_thread`.
            pub fn word(self) -> &'static str {
                match self {
                    $(ErrorKind::$name => $word,)*
                }
            }
        }
    };
}

kinds! {
    /// The request makes no sense.
    Usage = "usage";
    /// The configuration has mistakes.
    Config = "config";
    /// Something could not be read or written.
    Io = "io";
    /// A file of `.kd` could not be used.
    Store = "store";
    /// There is no such thread, or no project.
    NoThread = "no_thread";
    /// The beginning of an id fits several threads.
    AmbiguousThread = "ambiguous_thread";
    /// A newer version wrote a file.
    TooNew = "too_new";
    /// No agent has this name.
    UnknownMember = "unknown_member";
    /// No member can answer.
    NoSeat = "no_seat";
    /// The plan asks for members that are not there.
    CannotSeat = "no_seat";
    /// A model is not on this machine, or is not a model.
    NoModel = "no_model";
    /// The settings name a model that does not exist.
    UnknownModel = "unknown_model";
    /// No known model has this name.
    NoSuchModel = "unknown_model";
    /// Prices could not be updated.
    NoPrices = "no_prices";
    /// Money is limited and a price is unknown.
    NoPrice = "no_price";
    /// The limits are too low for the plan.
    Budget = "budget";
    /// Earlier runs have spent what a limit allows.
    Spent = "budget";
    /// The plan of a deliberation has mistakes.
    Plan = "plan";
    /// The question is private and a member would send it elsewhere.
    Private = "private";
    /// Members need settings of the folder that the user has not allowed.
    HeldBack = "held_back";
    /// The council is too deep inside other councils.
    TooDeep = "too_deep";
    /// A member is still answering.
    Busy = "busy";
    /// The newest question was not asked to a council.
    NotACouncil = "not_a_council";
    /// The question could not be taken.
    Refused = "refused";
    /// A session could not be opened or used.
    Engine = "engine";
    /// A message could not be redacted.
    Redact = "redact";
    /// The forum could not be used.
    Forum = "forum";
    /// The forum refused.
    ForumRefused = "forum";
    /// The servers of a visit cannot be read.
    Mcp = "mcp";
    /// A result could not be written to a file.
    Output = "output";
    /// The output was closed.
    ClosedPipe = "closed_pipe";
    /// A number is out of range.
    OutOfRange = "out_of_range";
    /// A thread has no messages.
    NoMessages = "no_messages";
    /// A thread holds no deliberation whose stages could be named.
    NotDeliberated = "no_deliberation";
    /// A deliberation has no such stage.
    NoStage = "no_stage";
    /// A deliberation decided nothing that could be marked.
    NoVerdict = "no_verdict";
    /// A record does not start with the plan of a deliberation.
    NoPlan = "no_deliberation";
    /// No member would be left to answer.
    NobodyLeft = "nobody_left";
    /// There is no such voting rule.
    UnknownRule = "unknown_rule";
    /// A thread could not be sealed, or made from a sealed file.
    Seal = "seal";
    /// A file holds no signing key.
    Key = "key";
    /// The system provides no random numbers.
    Random = "random";
    /// The contents of a sealed file were erased.
    Erased = "erased";
    /// A sealed file holds no thread.
    NoThreadInside = "no_thread_inside";
    /// Git could not be run, or refused.
    Git = "git";
    /// There is no change to review.
    NoChange = "no_change";
    /// A review has no such finding.
    NoFinding = "no_finding";
    /// No review is stored.
    NoReview = "no_review";
    /// A review ended without a report.
    NoReport = "no_report";
    /// A persona cannot be used.
    Persona = "persona";
    /// A file exists already.
    Exists = "exists";
    /// It took too long.
    Timeout = "timeout";
}

/// An error that tells what happened, why, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserError {
    /// The kind of error, for programs.
    pub kind: ErrorKind,
    /// The error, in one sentence.
    pub what: String,
    /// The causes, one per line.
    pub why: Option<String>,
    /// Advice: the next step.
    pub next: Option<String>,
}

impl UserError {
    /// An error without a cause or advice.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            why: None,
            next: None,
        }
    }

    /// The request makes no sense.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, what)
    }

    /// Adds the cause.
    #[must_use]
    pub fn because(mut self, why: impl fmt::Display) -> Self {
        self.why = Some(why.to_string());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn next(mut self, next: impl fmt::Display) -> Self {
        self.next = Some(next.to_string());
        self
    }

    /// The whole error on one line.
    pub fn as_line(&self) -> String {
        let parts = [Some(&self.what), self.why.as_ref(), self.next.as_ref()];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        parts.join("; ")
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_line())
    }
}

impl std::error::Error for UserError {}

impl From<io::Error> for UserError {
    /// An error of writing results; other I/O names its file.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(ErrorKind::ClosedPipe, "output was closed"),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::new(ErrorKind::Io, "the output could not be written")
                    .because(error)
                    .next("free space on the disk of the output, then run the command again")
            }
            _ => Self::new(ErrorKind::Io, "the output could not be written").because(error),
        }
    }
}
