//! `kd help exit-codes`: a help page without a command.

use clap::Args;

/// Explain the exit codes
///
///   0    every member that was asked answered
///   1    error: something could not be read, written or parsed
///   2    usage: the command line or the configuration is wrong
///   3    no members: a model, program or key is missing
///   4    a limit ended the run; the answers are the best so far
///   5    partial: some members answered, some failed (degraded)
///   6    every member failed
///   7    the council is split: nothing was decided
///   8    no quorum: too few readable votes to decide
///   9    held back: members need settings that you have not allowed (kd trust)
///   10   findings: the review has some that match --fail-on
///   11   no promise: your marks do not support what --require asks for
///   12   not verified: the sealed file was changed, or another key signed it
///   13   asks back: the members disagree, and the council asks you a question (--ask-back)
///   14   no output: the answer is in the thread, but not as JSON (--output-schema)
///   124  every member timed out
///   130  interrupted; partial answers are saved in the thread
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, help_template = "{about}\n")]
pub(crate) struct ExitCodes {}
