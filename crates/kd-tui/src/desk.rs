//! What the screen needs from its host. The screen knows neither files nor backends: the caller provides this
//! interface.

use crate::app::Opening;
use crate::picker::ThreadRow;
use kd_core::slash::{Fork, Way};
use kd_core::{Aside, Message, SeatName};
use kd_engine::Session;
use std::future::Future;
use std::pin::Pin;

/// A session being opened.
pub type Joining = Pin<Box<dyn Future<Output = Result<Session, String>> + Send>>;

/// Threads, drafts and files, for the screen. Calls may block on the disk; every error is one line that says what to
/// do.
pub trait Desk: Send + Sync + 'static {
    /// Returns what can be shown at once of a thread (by ID or unique prefix) or of a new one.
    fn open(&self, id: Option<&str>) -> Result<Opening, String>;

    /// Opens the session of a thread.
    fn join(&self, id: &str) -> Joining;

    /// Prepares an aside that answers a question, or the user's last one, in another way; `muted` members are not
    /// asked.
    fn aside(
        &self,
        id: &str,
        way: Way,
        question: Option<String>,
        muted: &[SeatName],
    ) -> Result<Aside, String>;

    /// Returns up to `most` messages of a thread before a number, in order, and whether there are more.
    fn older(&self, id: &str, before: u32, most: usize) -> Result<(Vec<Message>, bool), String>;

    /// Returns the messages of a thread after a number.
    fn newer(&self, id: &str, after: u32) -> Result<Vec<Message>, String>;

    /// Forks a thread, makes the fork the current one and returns its ID.
    fn fork(&self, id: &str, fork: Fork) -> Result<String, String>;

    /// Returns the threads to choose from, newest first.
    fn threads(&self) -> Result<Vec<ThreadRow>, String>;

    /// Returns paths of files with this prefix; folders end in a slash.
    fn files(&self, begun: &str) -> Vec<String>;

    /// Saves a thread's draft so that it survives a crash; an empty text removes it.
    fn keep_draft(&self, id: &str, text: &str);

    /// Saves a sent message for the history of other sessions.
    fn remember(&self, text: &str);

    /// Exports a thread to this file, or to a default one. Returns the path.
    fn export(&self, id: &str, file: Option<&str>) -> Result<String, String>;

    /// Saves a text that no clipboard accepted. Returns the path.
    fn spill(&self, text: &str) -> Result<String, String>;

    /// Returns an environment variable.
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}
