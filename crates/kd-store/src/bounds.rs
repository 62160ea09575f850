//! Size limits of each kind of file, with their reasons.
//!
//! A checkout or an archive can hold a file of any size anywhere below `.kd`. Each bound is far above what kd writes,
//! and low enough that a command that parses the whole file stays under 200 MB.

use kd_core::media::DOCUMENT_BYTES_MAX;

/// The size limit of a kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The kind of file, as errors name it.
    pub what: &'static str,
    /// Maximum size in bytes.
    pub bytes: u64,
    /// The reason for this limit.
    pub why: &'static str,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// `config.json`, `config.local.json` and the user's own configuration.
pub const CONFIG: Bound = Bound {
    what: "a configuration",
    bytes: 256 * KIB,
    why: "every value is kept with its line and origin, some 400 bytes each",
};
/// `state.json` of a branch.
pub const STATE: Bound = Bound {
    what: "the state of a branch",
    bytes: MIB,
    why: "it names the branch and the current thread; other programs add a few keys",
};
/// `thread.json`.
pub const META: Bound = Bound {
    what: "a thread description",
    bytes: MIB,
    why: "it lists the members of one thread",
};
/// `sessions/<member>.json`.
pub const SESSION: Bound = Bound {
    what: "the state of a member",
    bytes: MIB,
    why: "it is some hundred bytes long",
};
/// `.pending-messages.json` of kingdom-cli.
pub const PENDING: Bound = Bound {
    what: "a queue of kingdom-cli",
    bytes: 4 * MIB,
    why: "it holds messages typed during one turn; kd only checks that it is JSON",
};
/// A file that agent programs run or obey.
pub const PROGRAM: Bound = Bound {
    what: "a file of an agent program",
    bytes: 4 * MIB,
    why: "settings, hooks and plugins are source text; each command that starts agents reads them",
};
/// `memory.json`.
pub const MEMORY: Bound = Bound {
    what: "the memory of a project",
    bytes: 4 * MIB,
    why: "kd keeps some hundred entries of at most some kilobytes",
};
/// `current`.
pub const CURRENT: Bound = Bound {
    what: "the name of a branch",
    bytes: 4 * KIB,
    why: "it is one line",
};
/// A message.
pub const MESSAGE: Bound = Bound {
    what: "a message",
    bytes: 16 * MIB + 256 * KIB,
    why: "a question may have 16 MiB, and a chat takes up to nine times its size",
};
/// `attached-….png` and the like.
pub const COPY: Bound = Bound {
    what: "an attached picture or document",
    bytes: DOCUMENT_BYTES_MAX,
    why: "no larger one is attached",
};
/// `.kd-index.jsonl`.
pub const INDEX: Bound = Bound {
    what: "the index of a thread",
    bytes: 32 * MIB,
    why: "a line has about 75 bytes, so that this holds 400,000 messages",
};
/// `.kd-events.jsonl`, from its end.
pub const EVENTS: Bound = Bound {
    what: "the events of a thread",
    bytes: 64 * MIB,
    why: "the newest events are kept in memory as a whole; older ones are skipped",
};
/// A line of an event log.
pub const EVENT: Bound = Bound {
    what: "an event",
    bytes: 32 * MIB,
    why: "an event may carry a message of 16 MiB, and JSON escapes it",
};
/// `roles/<role>.md`.
pub const ROLE: Bound = Bound {
    what: "a role",
    bytes: 64 * KIB,
    why: "it is part of every prompt of the member",
};
/// `forum/agents/<name>.yaml`.
pub const PERSONA: Bound = Bound {
    what: "a persona",
    bytes: 64 * KIB,
    why: "it is part of every prompt of the agent",
};
/// `sent.jsonl`, from its end.
pub const SENT: Bound = Bound {
    what: "the questions sent from a chat",
    bytes: 4 * MIB,
    why: "only the newest are offered for editing",
};
/// Text that was typed and not sent.
pub const DRAFT: Bound = Bound {
    what: "a draft",
    bytes: 16 * MIB,
    why: "a question may have 16 MiB",
};
/// A log below `logs/`, from its end.
pub const LOG_END: Bound = Bound {
    what: "the end of a log",
    bytes: 4 * KIB,
    why: "its last line is shown when a background question fails",
};
/// `.gitignore` of `.kd`.
pub const GITIGNORE: Bound = Bound {
    what: "a list of what git ignores",
    bytes: 64 * KIB,
    why: "kd writes a dozen lines",
};
/// The process named in a lock file.
pub const LOCK: Bound = Bound {
    what: "a lock",
    bytes: 64,
    why: "it holds one process number",
};

/// Every bound.
pub const ALL: &[Bound] = &[
    CONFIG, STATE, META, SESSION, PENDING, MEMORY, CURRENT, MESSAGE, COPY, INDEX, EVENTS, EVENT,
    ROLE, PERSONA, SENT, DRAFT, LOG_END, GITIGNORE, LOCK,
];

/// Names listed in one folder: 65,536 thread ids have four digits, and a thread with more messages cannot be shown
/// anywhere.
pub const NAMES: usize = 200_000;
