//! What a server needs of the house behind it. Whoever starts a server implements it.

use kd_core::forum::account::Proof;
use kd_core::request::ToolSpec;
use kd_core::{Delta, Message, Op, SeatName};
use kd_engine::Session;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// How a question is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// All members answer, the chair concludes.
    Ask,
    /// A fast and a rigorous seat answer together.
    Think,
    /// The council plans itself, answers, reviews and votes.
    Deliberate,
}

/// A question to the council.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// How.
    pub method: Method,
    /// The question.
    pub question: String,
    /// Who is to sit, in order; empty means as configured. Of [`Method::Think`] the fast and the rigorous seat.
    pub members: Vec<String>,
    /// The thread to go on in; none opens one.
    pub thread: Option<String>,
}

/// An open session, and the op that puts the question.
pub struct Started {
    /// The session.
    pub session: Session,
    /// To be sent into it.
    pub say: Op,
    /// What the caller should know before the answer, for example settings that are held back.
    pub notices: Vec<String>,
}

/// A thread in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// What it is about: the first line of the king's first words.
    pub topic: String,
    /// How many messages it holds.
    pub messages: usize,
}

/// What happens in a thread that is followed, whichever process does it.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed {
    /// Its messages or its records changed.
    Changed,
    /// A piece of an answer that is on its way.
    Piece(SeatName, Delta),
    /// That answer is in the thread, or will not come.
    Ended(SeatName),
}

/// Follows a thread until it is dropped.
pub trait Following: Send {}

/// Why something could not be done, in words that the caller can act on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// The house. Its calls may block; servers make them off their loop, inside a tokio runtime.
pub trait Kingdom: Send + Sync + 'static {
    /// Whether questions can be answered in this way.
    fn has(&self, method: Method) -> bool;

    /// Opens a session for a question.
    fn ask(&self, ask: &Ask) -> Result<Started, Refusal>;

    /// The threads of the current branch, the newest first.
    fn threads(&self) -> Result<Vec<Listed>, Refusal>;

    /// The messages of a thread, in order.
    fn read(&self, id: &str) -> Result<Vec<Message>, Refusal>;

    /// A thread as its page shows it.
    fn page(&self, id: &str) -> Result<kd_page::Thread, Refusal>;

    /// Tells what happens in a thread from now on, until what it returns is dropped. Nobody is asked by that, and nothing
    /// is written.
    fn follow(&self, id: &str, tell: Sender<Followed>) -> Result<Box<dyn Following>, Refusal>;

    /// Whether the caller is an agent on its visit to the forum: then it has the forum's tools alone, and those that
    /// end a visit.
    fn is_visit(&self) -> bool {
        false
    }

    /// Carries out a tool of the forum under a name that was proven so; the answer is in the shape of that tool.
    fn forum(
        &self,
        author: &str,
        proof: Proof,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, Refusal>;

    /// Tools of further servers that the agent on its visit may call. They are opened by this, where they are not yet.
    fn further_tools(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    /// Whether a name is that of a tool of such a server, allowed or not: [`Kingdom::forum`] carries it out or refuses it.
    fn has_further(&self, _tool: &str) -> bool {
        false
    }

    /// What an agent on its visit is shown of an answer: fenced, and within the characters of its visit. `None` for all
    /// other callers.
    fn shown(&self, _tool: &str, _answer: &Value) -> Option<String> {
        None
    }

    /// A value that changes when something in the forum is new to a name.
    fn forum_mark(&self, author: &str) -> Result<(i64, i64), Refusal>;
}

/// Makes a call of the house off the loop.
///
/// # Errors
/// When the call panicked.
pub(crate) async fn off<T: Send + 'static>(
    kingdom: &Arc<dyn Kingdom>,
    work: impl FnOnce(&dyn Kingdom) -> T + Send + 'static,
) -> Result<T, String> {
    let kingdom = kingdom.clone();
    let done = tokio::task::spawn_blocking(move || work(kingdom.as_ref())).await;
    done.map_err(|e| e.to_string())
}
