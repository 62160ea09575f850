//! What the screen asks of the house. It knows neither files nor backends: whoever opens it hands it a desk.

use crate::app::Opening;
use crate::picker::ThreadRow;
use kd_core::slash::{Fork, Way};
use kd_core::{Aside, Message, SeatName};
use kd_engine::Session;
use std::future::Future;
use std::pin::Pin;

/// A session that is being opened.
pub type Joining = Pin<Box<dyn Future<Output = Result<Session, String>> + Send>>;

/// Threads, drafts and files, for the screen. Calls block for as long as the disk does; all errors are one line that
/// says what to do.
pub trait Desk: Send + Sync + 'static {
    /// What can be shown of a thread at once: of this one (an id, or a beginning of one), or of a new one.
    fn open(&self, id: Option<&str>) -> Result<Opening, String>;

    /// Opens the session of a thread.
    fn join(&self, id: &str) -> Joining;

    /// Makes ready what answers a question, or the king's last one, in a way of its own; `muted` are not asked.
    fn aside(
        &self,
        id: &str,
        way: Way,
        question: Option<String>,
        muted: &[SeatName],
    ) -> Result<Aside, String>;

    /// Messages of a thread before a number, at most so many, in order; whether there are more.
    fn older(&self, id: &str, before: u32, most: usize) -> Result<(Vec<Message>, bool), String>;

    /// Messages of a thread after a number.
    fn newer(&self, id: &str, after: u32) -> Result<Vec<Message>, String>;

    /// Forks a thread and makes the fork the current one. Its id.
    fn fork(&self, id: &str, fork: Fork) -> Result<String, String>;

    /// Threads to choose from, newest first.
    fn threads(&self) -> Result<Vec<ThreadRow>, String>;

    /// Paths of files that begin so; folders end in a slash.
    fn files(&self, begun: &str) -> Vec<String>;

    /// Keeps what is being written in a thread, where a crash does not reach it; an empty text is forgotten.
    fn keep_draft(&self, id: &str, text: &str);

    /// Remembers a message that was sent, for other sessions.
    fn remember(&self, text: &str);

    /// Writes a thread into a file: into this one, or one of the desk's choice. Where it stands now.
    fn export(&self, id: &str, file: Option<&str>) -> Result<String, String>;

    /// Keeps a text that no clipboard took. Where it stands.
    fn spill(&self, text: &str) -> Result<String, String>;

    /// A variable of the environment.
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}
