//! Decoders for the output of agent programs, one file per dialect.
//!
//! Input: lines. Output: [`Delta`]s, and at the end [`Delta::Finished`] or the [`Failure`].
//!
//! Decoders do no I/O, so recorded streams can test them completely. All decoders follow these rules:
//! - A turn succeeds only if its last event reports success and there is text. The exit code alone never decides. (Plain
//!   text has no events: it needs text and exit code 0.)
//! - When the agent retries, the text so far is discarded ([`Delta::Retrying`]), or [`Delta::Finished`] replaces it.
//! - Unknown events are ignored. A broken line becomes one notice. Protocol messages never appear as text.
//! - The result does not depend on how the bytes were split into reads.

mod acp;
mod answer;
mod blame;
mod claude;
mod codex_app;
mod codex_exec;
mod cursor;
mod gemini;
mod opencode;
mod parse;
mod reading;
mod text;
mod told;

pub(crate) use blame::denied;
pub use reading::{Decoded, Reading, decode_all};

use kd_core::{Delta, Failure, FailureKind};

/// Prefixes of failures of agents that end their turn because a tool was refused.
const GAVE_UP: [&str; 2] = [acp::GAVE_UP, opencode::GAVE_UP];

/// Returns whether a turn failed only because a tool was refused.
pub(crate) fn gave_up(failure: &Failure) -> bool {
    GAVE_UP.iter().any(|said| failure.message.starts_with(said))
}

/// Returns whether a program is too old for the flags it was given.
pub(crate) fn too_old(failure: &Failure) -> bool {
    failure.kind == FailureKind::Invalid && blame::too_old(&failure.message)
}

/// Parses a line as a JSON object.
pub(crate) fn message(line: &[u8]) -> Option<serde_json::Value> {
    parse::read(line.trim_ascii()).filter(serde_json::Value::is_object)
}

/// Returns an agent's text as one line of bounded length.
pub(crate) fn one_line(text: &str) -> String {
    parse::one_line(text, 300)
}

/// Builds the notice for a line that was too long to keep.
pub(crate) fn too_long(length: u64) -> Delta {
    parse::notice(format!(
        "the agent printed a line of {length} bytes, which was skipped"
    ))
}

/// Decodes one agent's stream, line by line.
pub trait Decoder: Send {
    /// Decodes one line of the agent's output, without its line ending.
    fn line(&mut self, line: &[u8]) -> Vec<Delta>;

    /// Takes a line that was sent to the agent: some protocols can only be decoded with both sides.
    fn sent(&mut self, _line: &[u8]) {}

    /// Returns whether the terminal event has arrived: nothing after it belongs to this turn.
    fn over(&self) -> bool;

    /// Ends the turn with [`Delta::Finished`] or a failure. The decoder is then ready for the next turn of the same
    /// process.
    ///
    /// # Errors
    /// The reason why the turn failed.
    fn end(&mut self, exit: &ExitSeen) -> Result<Delta, Failure>;
}

/// The known facts about the agent's exit when its turn ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitSeen {
    /// The exit of the process.
    pub how: Exit,
    /// The end of its stderr output.
    pub stderr: String,
}

/// The exit of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exit {
    /// It is still running, or its exit was not observed.
    #[default]
    Unseen,
    /// It returned this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

/// A dialect by name.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// Its name in configuration files and for `kd debug decode`.
    pub name: &'static str,
    /// The program whose output it reads.
    pub what: &'static str,
    /// The two-way dialect of the same program, if it is a different one.
    dialog: Option<&'static str>,
    make: fn() -> Box<dyn Decoder>,
}

impl Dialect {
    /// Creates a decoder for one process.
    pub fn decoder(&self) -> Box<dyn Decoder> {
        (self.make)()
    }
}

impl std::fmt::Debug for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All dialects.
pub const DIALECTS: [Dialect; 8] = [
    Dialect {
        name: "claude",
        what: "`claude -p --output-format stream-json`, one-shot and with `--input-format stream-json`",
        dialog: None,
        make: || Box::<claude::Claude>::default(),
    },
    Dialect {
        name: "codex",
        what: "`codex exec --json`",
        dialog: Some("codex-app-server"),
        make: || Box::<codex_exec::CodexExec>::default(),
    },
    Dialect {
        name: "codex-app-server",
        what: "`codex app-server`",
        dialog: None,
        make: || Box::<codex_app::CodexApp>::default(),
    },
    Dialect {
        name: "gemini",
        what: "`gemini -o stream-json`",
        dialog: None,
        make: || Box::<gemini::Gemini>::default(),
    },
    Dialect {
        name: "opencode",
        what: "`opencode run --format json`",
        dialog: None,
        make: || Box::<opencode::Opencode>::default(),
    },
    Dialect {
        name: "cursor",
        what: "`agent -p --output-format stream-json`",
        dialog: None,
        make: || Box::<cursor::Cursor>::default(),
    },
    Dialect {
        name: "acp",
        what: "the Agent Client Protocol, version 1",
        dialog: None,
        make: || Box::<acp::Acp>::default(),
    },
    Dialect {
        name: "text",
        what: "plain text, one-shot; a good exit ends it",
        dialog: None,
        make: || Box::<text::Text>::default(),
    },
];

/// Returns the dialect of this name.
pub fn named(name: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().find(|dialect| dialect.name == name)
}
