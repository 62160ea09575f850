//! `kd help exit-codes`: a help page that is not a command.

use clap::Args;

/// What the exit code says
///
///   0    everybody who was asked answered
///   1    an error: something could not be read, written or understood
///   2    usage: the command line or the configuration is wrong
///   3    nobody could be seated: a model, program or key is missing
///   4    a limit cut a deliberation; the answer is the best so far
///   5    partial: some members answered, some failed (degraded)
///   6    every member failed
///   7    the council is split: nothing was decided
///   8    no quorum: too few readable votes to decide
///   9    held back: the members need settings of this folder that you did not allow (kd trust)
///   124  every member ran out of time
///   130  interrupted; partial answers are saved in the thread
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ExitCodes {}
