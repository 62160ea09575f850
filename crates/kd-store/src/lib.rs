//! Stores threads and configuration on disk, and forums in SQL.
//!
//! The thread folder is the source of truth; everything else here can be rebuilt from it. All calls block, only for
//! disk access. Other programs may write the same folders: the file formats are shared with them, to the byte
//! (`docs/adr/0003-thread-files.md`).

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod attachments;
pub mod beneath;
pub mod bounds;
pub mod carried;
mod checkout;
pub mod config;
mod elsewhere;
pub mod error;
pub mod export;
mod exposed;
pub mod find;
mod fingerprint;
pub mod forget;
pub mod fork;
pub mod frontmatter;
pub mod fsck;
pub mod git;
pub mod git_command;
mod index;
pub mod json;
pub mod layout;
pub mod lease;
pub mod ledger;
pub mod lock;
pub mod log;
mod members;
pub mod memory;
pub mod meta;
pub mod name;
mod notes;
pub mod owner;
pub mod passing;
pub mod prices;
pub mod private;
pub mod programs;
pub mod queue;
pub mod recorded;
pub mod reviews;
pub mod run_record;
pub mod seal;
mod seated;
pub mod session;
mod spool;
mod staged;
pub mod stream;
pub mod thread;
pub mod trust;
pub mod typed;
pub mod user_dirs;
pub mod verdicts;
mod watch;

pub use elsewhere::Elsewhere;
pub use error::Error;
pub use exposed::Exposed;
pub use find::{Opened, PassedOver, Search};
pub use fingerprint::Fingerprint;
pub use layout::{Layout, Place};
pub use lease::Lease;
pub use log::EventLog;
pub use members::MembersFile;
pub use meta::Meta;
pub use queue::Queue;
pub use session::AgentState;
pub use stream::{StreamReader, StreamWriter};
pub use thread::{Durability, Messages, Problem, Thread};
pub use trust::{Decision, TrustStore, TrustedFolder};
pub use user_dirs::UserDirs;
pub use verdicts::Verdicts;
pub use watch::{Watch, Watching, watcher};
