//! What agent programs print, one file for each dialect. Comes in: lines as they were read. Goes out: [`Delta`]s, and at
//! the end [`Delta::Finished`] or the [`Failure`].
//!
//! Every decoder is pure: a recorded stream is its whole test. All of them keep the same laws:
//! - a turn went well only if its terminal event came, says so, and there is text; an exit code alone never decides
//!   (plain text, which has no events, needs both words and the exit code 0);
//! - text that a retry repeats is void ([`Delta::Retrying`]) or corrected by the text in [`Delta::Finished`];
//! - unknown events pass, a broken line is one notice, and raw protocol never becomes text;
//! - the outcome does not depend on where the bytes were cut.

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

pub(crate) use blame::denied;
pub use reading::{Decoded, Reading, decode_all};

use kd_core::{Delta, Failure, FailureKind};

/// How the failure begins of an agent that ends its turn because it may not use a tool.
const GAVE_UP: [&str; 2] = [acp::GAVE_UP, opencode::GAVE_UP];

/// Whether a turn failed only because a tool was refused.
pub(crate) fn gave_up(failure: &Failure) -> bool {
    GAVE_UP.iter().any(|said| failure.message.starts_with(said))
}

/// Whether a program is too old for the flags that it was given.
pub(crate) fn too_old(failure: &Failure) -> bool {
    failure.kind == FailureKind::Invalid && blame::too_old(&failure.message)
}

/// What a line says, if it is a JSON object.
pub(crate) fn message(line: &[u8]) -> Option<serde_json::Value> {
    parse::read(line.trim_ascii()).filter(serde_json::Value::is_object)
}

/// What an agent said as one line of bounded length.
pub(crate) fn one_line(text: &str) -> String {
    parse::one_line(text, 300)
}

/// What is said of a line that was too long to be kept.
pub(crate) fn too_long(length: u64) -> Delta {
    parse::notice(format!(
        "the agent printed a line of {length} bytes, which was passed over"
    ))
}

/// Understands one agent's stream, line by line.
pub trait Decoder: Send {
    /// One line that the agent printed, without its line end.
    fn line(&mut self, line: &[u8]) -> Vec<Delta>;

    /// One line that we wrote to the agent: some protocols cannot be understood from one side.
    fn sent(&mut self, _line: &[u8]) {}

    /// Whether the terminal event has come: nothing that follows belongs to this turn.
    fn over(&self) -> bool;

    /// Ends the turn: [`Delta::Finished`] or why there is none. The decoder is then ready for the next turn of the same
    /// process.
    fn end(&mut self, exit: &ExitSeen) -> Result<Delta, Failure>;
}

/// What was seen of the agent's exit when its turn was ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitSeen {
    /// How it went.
    pub how: Exit,
    /// The last of what it printed on stderr.
    pub stderr: String,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exit {
    /// It is still alive, or nobody looked.
    #[default]
    Unseen,
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// A dialect by name.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// Its name in configurations and for `kd debug decode`.
    pub name: &'static str,
    /// Whose words these are.
    pub what: &'static str,
    /// The dialect of its program that speaks in both directions, where that is another.
    dialog: Option<&'static str>,
    make: fn() -> Box<dyn Decoder>,
}

impl Dialect {
    /// A decoder for one process.
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

/// The dialect of this name.
pub fn named(name: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().find(|dialect| dialect.name == name)
}
