//! The channels of every protocol of a persistent agent: questions come in, messages go out.

use kd_core::Failure;
use kd_core::media::Attachment;
use kd_core::request::{Block, ToolServer};
use serde_json::Value;
use std::path::PathBuf;

/// A protocol in which a program answers many questions.
pub(crate) struct Link {
    /// The program's output format, a name of [`dialects::DIALECTS`].
    pub(in crate::adapters) dialect: &'static str,
    /// Creates our side of a conversation with a new process.
    pub(in crate::adapters) talk: fn() -> Box<dyn Talk>,
}

/// A question for a persistent agent.
#[derive(Clone, Debug)]
pub(in crate::adapters) struct Question {
    /// The whole prompt, in blocks.
    pub(in crate::adapters) prompt: Vec<Block>,
    /// Pictures and documents that the prompt names.
    pub(in crate::adapters) files: Vec<Attachment>,
    /// Whether the requests may mark the blocks that the service should cache.
    pub(in crate::adapters) marks: bool,
    /// The model, as the program names it.
    pub(in crate::adapters) model: Option<String>,
    /// The thinking effort, as the program names it.
    pub(in crate::adapters) effort: Option<String>,
    /// The folder to work in.
    pub(in crate::adapters) folder: PathBuf,
    /// Whether files may be changed.
    pub(in crate::adapters) writable: bool,
    /// The mode of an ACP session in which this program was observed to change nothing.
    pub(in crate::adapters) mode: Option<&'static str>,
    /// A tool server to use.
    pub(in crate::adapters) server: Option<ToolServer>,
    /// Whether the program got, at its start, the list of paths that its commands may read in a read-only turn.
    pub(in crate::adapters) is_told_reads: bool,
}

/// Our side of a conversation with one process. Pure: takes the agent's messages, returns ours, each a JSON value for
/// one line.
pub(in crate::adapters) trait Talk: Send {
    /// Asks a question in a new session.
    fn ask(&mut self, question: Question) -> Vec<Value>;

    /// Handles a message from the agent.
    fn hear(&mut self, message: &Value) -> Vec<Value>;

    /// Returns whether the question itself was sent, after everything that must precede it.
    fn asked(&self) -> bool;

    /// Stops the turn. Empty if the protocol has no message for it yet.
    fn stop(&mut self) -> Vec<Value>;

    /// Returns the last messages before the process ends.
    fn leave(&mut self) -> Vec<Value> {
        Vec::new()
    }

    /// Returns whether the process can be asked another question.
    fn fit(&self) -> bool {
        true
    }

    /// Returns why this turn must not continue, although the agent would; the agent may have been asked already.
    fn forbidden(&self) -> Option<Failure> {
        None
    }

    /// Returns the reason if this conversation cannot continue.
    fn broken(&self) -> Option<Failure> {
        None
    }
}
