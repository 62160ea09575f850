//! Asks a council of AI agents from a program.
//!
//! [`Kingdom::open`] reads the settings of a folder. A question opens a thread in it: plain files below `.kd`. The
//! events of a round arrive as [`Update`]s, and [`Started::answers`] waits for all of them.
//!
//! ```no_run
//! # async fn example() -> Result<(), kd_app::UserError> {
//! use kd_app::{Ask, Kingdom};
//!
//! let kingdom = Kingdom::open(".")?;
//! let question = "Should a small team start with SQLite or PostgreSQL?";
//! let answers = kingdom.ask(Ask::default(), question)?.answers().await?;
//! for answer in &answers.messages {
//!     println!("{}: {}", answer.from, answer.body);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The library works inside any program: it installs no signal handlers, changes neither the working folder nor the
//! environment of the process, reads them only in [`Env::process`], prints nothing ([`Notice`] tells what happens), and
//! several councils can be asked at once. Two things are shared by all councils of a process, and hold nothing that one of
//! them could see of another: the threads that write files, at most 16 of them, and the list of the running agent programs.
//! Opening a session starts tasks: call such functions inside a tokio runtime, for example in [`Runtime::block_on`]. They
//! may block while files are read and models are downloaded.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod acting;
mod answers;
pub mod aside;
pub mod attach;
pub mod background;
#[cfg(feature = "forum")]
pub mod batch;
mod chat;
pub mod council;
pub mod debug;
pub mod deliberation;
pub mod doctor;
mod env;
mod error;
pub mod export;
mod files;
#[cfg(feature = "forum")]
mod folder_host;
mod folder_tools;
pub mod follow;
#[cfg(feature = "forum")]
pub mod forget;
pub mod forks;
#[cfg(feature = "forum")]
pub mod forum;
pub mod fsck;
pub mod host;
pub mod infile;
pub mod json;
mod kingdom;
#[cfg(feature = "forum")]
mod listing;
#[cfg(feature = "forum")]
pub mod live;
pub mod marks;
pub mod memory;
pub mod models;
mod notice;
mod opened;
pub mod outfile;
pub mod output;
pub mod page;
pub mod prices;
pub mod process;
pub mod ready;
mod remember;
mod request;
pub mod resume;
pub mod review;
mod runtime;
pub mod scratch;
pub mod seal;
pub mod seating;
pub mod secrets;
mod sensitive;
pub mod sessions;
pub mod settings;
pub mod setup;
#[cfg(feature = "forum")]
pub mod share;
pub mod shell;
pub mod spending;
pub mod think;
pub mod threads;
pub mod trust;
pub mod words;

pub use answers::Answers;
pub use chat::{Chat, ChatHost, ChatOpening, ChatRequest, Joining, Older, Said, ThreadRow, Unsaid};
pub use council::{Council, Opened, Prepared, Started};
pub use deliberation::Deliberate;
pub use env::Env;
pub use error::{ErrorKind, UserError};
#[cfg(feature = "forum")]
pub use folder_host::{Elsewhere, FolderHost, Visit};
pub use kingdom::Kingdom;
pub use notice::{Download, Notice};
pub use request::{Ask, Limits, Question, Terms, ThreadChoice};
pub use review::{ReviewRequest, Reviewing};
pub use runtime::Runtime;
pub use think::Think;

// Items of the layers below that a front end needs: sessions and their events.
pub use kd_backends::delivery::Progress;

/// The traits and messages that a backend of the host implements.
pub mod backend {
    pub use kd_backends::Backend;
    pub use kd_core::{Delta, Failure, FailureKind, Finish, Request};
}

pub use kd_core::seating::SeatRequest;
pub use kd_engine::{Session, Subscription, Update};
