//! The interface that a server needs from its host. The program that starts a server implements it.

use crate::acting::Errand;
use crate::council::Started;
use crate::output::OutputSchema;
use kd_core::batch::{FleetView, Overview};
use kd_core::config::{ModelMethod, ServeConfig};
use kd_core::fork::Cut;
use kd_core::planner::presets;
use kd_core::request::ToolSpec;
use kd_core::{Delta, Message, Record, SeatName, Timestamp};
use kd_forum::account::Proof;
use serde_json::Value;
use tokio::sync::mpsc::Sender;

/// The way to answer a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// All members answer, the chair concludes.
    Ask,
    /// A fast and a rigorous member answer together.
    Think,
    /// The council plans its procedure, answers, reviews and votes.
    Deliberate,
}

/// Choices of a deliberation; `None` means as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanChoice {
    /// The preset.
    pub preset: Option<String>,
    /// The protocol.
    pub protocol: Option<String>,
}

/// A council as a model: a method, or a preset of a deliberation, or what the user's settings name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name, without `kd/`.
    pub name: String,
    /// The way to answer.
    pub method: Method,
    /// The members; empty means as configured.
    pub members: Vec<String>,
    /// For [`Method::Deliberate`], the preset and the protocol.
    pub plan: PlanChoice,
    /// A description for users.
    pub doc: String,
}

impl Model {
    fn built_in(name: &str, method: Method, doc: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            method,
            members: Vec::new(),
            plan: PlanChoice::default(),
            doc: doc.into(),
        }
    }

    /// Returns the models of a configuration: one for each method, one for each preset of a deliberation, and the
    /// user's own.
    pub fn of(serve: &ServeConfig) -> Vec<Self> {
        let methods = [
            Self::built_in(
                "ask",
                Method::Ask,
                "all members answer, the chair concludes",
            ),
            Self::built_in(
                "think",
                Method::Think,
                "a fast and a rigorous member answer together",
            ),
            Self::built_in(
                "deliberate",
                Method::Deliberate,
                "a council plans itself, answers, reviews and votes",
            ),
        ];
        let presets = presets::PRESETS.iter().map(|preset| Self {
            plan: PlanChoice {
                preset: Some(preset.name.to_owned()),
                protocol: None,
            },
            ..Self::built_in(
                preset.name,
                Method::Deliberate,
                format!("a deliberation; {}", preset.doc),
            )
        });
        let own = serve.models.iter().map(|(name, model)| {
            let (method, verb) = match model.method {
                ModelMethod::Ask => (Method::Ask, "ask"),
                ModelMethod::Think => (Method::Think, "think"),
                ModelMethod::Deliberate => (Method::Deliberate, "deliberate"),
            };
            let members = Some(model.members.join(", ")).filter(|m| !m.is_empty());
            let words = [
                model.preset.as_deref(),
                model.protocol.as_deref(),
                members.as_deref(),
            ];
            let words: Vec<&str> = std::iter::once(verb)
                .chain(words.into_iter().flatten())
                .collect();
            Self {
                name: name.clone(),
                method,
                members: model.members.clone(),
                plan: PlanChoice {
                    preset: model.preset.clone(),
                    protocol: model.protocol.clone(),
                },
                doc: format!("your settings: {}", words.join("; ")),
            }
        });
        methods.into_iter().chain(presets).chain(own).collect()
    }
}

/// A question to the council.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The way to answer it.
    pub method: Method,
    /// The question.
    pub question: String,
    /// The members to ask, in order; empty means as configured. For [`Method::Think`], the fast and the rigorous one.
    pub members: Vec<String>,
    /// The thread to continue; `None` opens a new one.
    pub thread: Option<String>,
    /// For [`Method::Deliberate`], the preset and the protocol.
    pub plan: PlanChoice,
    /// The JSON schema into which the answer is put too.
    pub output: Option<OutputSchema>,
}

/// A thread in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its topic: the first line of the user's first message.
    pub topic: String,
    /// The number of messages.
    pub messages: usize,
    /// The thread that it was forked from, and a description of the place where it was forked.
    pub fork: Option<(String, String)>,
    /// When it was opened.
    pub opened: Option<Timestamp>,
    /// The time of its newest message.
    pub updated: Option<Timestamp>,
    /// For a search, the newest message with the words: its number, and the words with the text around them.
    pub found: Option<(u32, String)>,
}

/// Which threads to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Words that a message must contain, in any case; empty for all threads.
    pub words: String,
    /// Number of the newest threads to leave out.
    pub skip: usize,
    /// Maximum number of threads.
    pub most: usize,
}

/// A member that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// Its model, or its backend.
    pub model: String,
    /// Whether it is asked unless others are named.
    pub is_usual: bool,
}

/// The user's decision on a motion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnMotion {
    /// A vote: `yes`, `no` or `abstain`, and why.
    Vote(String, String),
    /// Puts a motion that passed in force.
    Confirm,
    /// Refuses it, and why.
    Refuse(String),
}

/// A text that the user writes in the forum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InForum {
    /// A new thread: its title and its first post.
    Thread(String, String),
    /// A post in a thread, and the post that it quotes.
    Reply(i64, String, Option<i64>),
    /// A motion in the words of `kd forum propose`, and why.
    Motion(String, String),
}

/// The position of the user's text in the forum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The thread.
    pub thread: i64,
    /// The post, for a reply.
    pub post: Option<i64>,
    /// A description of the secrets that were masked in the text.
    pub masked: Option<String>,
}

/// Changes in a followed thread, by any process.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed {
    /// Its messages or its records changed.
    Changed,
    /// A piece of a growing answer.
    Piece(SeatName, Delta),
    /// The answer is in the thread, or will not come.
    Ended(SeatName),
}

/// Follows a thread until it is dropped.
pub trait Following: Send {}

/// The reason for a refusal, in words that tell the caller what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// The host of a server. Its calls may block; servers make them off their event loop, inside a tokio runtime.
pub trait Host: Send + Sync + 'static {
    /// Returns whether this method is available.
    fn has(&self, method: Method) -> bool;

    /// Returns the council as models. Models for methods that [`Host::has`] does not allow are left out.
    fn models(&self) -> Vec<Model> {
        Model::of(&ServeConfig::default())
    }

    /// Opens a session for a question.
    ///
    /// # Errors
    /// If no session can be opened: the reason, for the caller.
    fn ask(&self, query: &Query) -> Result<Started, Refusal>;

    /// Opens a session for a request of a program that offers tools, or for a side request of a program.
    ///
    /// # Errors
    /// If no member can act, or no session can be opened.
    fn act(&self, errand: &Errand) -> Result<Started, Refusal>;

    /// Creates a thread without a message, for a session of a client; returns its id.
    ///
    /// # Errors
    /// If no thread can be created.
    fn begin(&self) -> Result<String, Refusal> {
        Err(Refusal("there are no sessions here".into()))
    }

    /// Removes such a thread if it has no messages.
    fn discard(&self, _id: &str) {}

    /// Returns the settings of the folder that the user has not decided about, as text; `None` if there are none.
    fn wants(&self) -> Option<String> {
        None
    }

    /// Allows these settings, as the user decided. They take effect when the folder is opened again.
    ///
    /// # Errors
    /// If the decision cannot be saved.
    fn allow(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Returns the newest batches of the project, newest first.
    ///
    /// # Errors
    /// If the database of batches cannot be read.
    fn batches(&self) -> Result<Vec<Overview>, Refusal> {
        Ok(Vec::new())
    }

    /// Returns the fleet that is watched, if there is one. It may block for 2 s.
    fn fleet(&self) -> Option<FleetView> {
        None
    }

    /// Returns the threads of the current branch, newest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    fn threads(&self) -> Result<Vec<Listed>, Refusal>;

    /// Returns some of the threads of the current branch, newest first, and whether there are more.
    ///
    /// # Errors
    /// If the folder cannot be read.
    fn list(&self, wanted: &Listing) -> Result<(Vec<Listed>, bool), Refusal>;

    /// Returns the members that a question can name.
    fn members(&self) -> Vec<Candidate> {
        Vec::new()
    }

    /// Opens a session that asks a member again whose last turn failed; it is asked at once.
    ///
    /// # Errors
    /// If its turn did not fail, the newest question was not asked to a council, or no session can be opened.
    fn retry(&self, _id: &str, _seat: &SeatName) -> Result<Started, Refusal> {
        Err(Refusal("members cannot be asked again here".into()))
    }

    /// Opens a session that records that the user chooses a member's newest answer. Nobody is asked.
    ///
    /// # Errors
    /// If no session can be opened.
    fn choose(&self, _id: &str, _seat: &SeatName) -> Result<Started, Refusal> {
        Err(Refusal("answers cannot be chosen here".into()))
    }

    /// Forks a thread; returns the ID of the fork.
    ///
    /// # Errors
    /// If the thread cannot be cut there, or the fork cannot be written.
    fn fork(&self, _id: &str, _cut: &Cut) -> Result<String, Refusal> {
        Err(Refusal("threads cannot be forked here".into()))
    }

    /// Marks the newest verdict of a thread as the user says; returns a line about it.
    ///
    /// # Errors
    /// If there is no verdict to mark, or the file of marks cannot be written.
    fn mark(&self, _id: &str, _word: &str) -> Result<String, Refusal> {
        Err(Refusal("verdicts cannot be marked here".into()))
    }

    /// Opens a session that finishes a thread's deliberation; its members are asked at once.
    ///
    /// # Errors
    /// If the thread has no deliberation to finish, or no session can be opened.
    fn resume(&self, _id: &str) -> Result<Started, Refusal> {
        Err(Refusal("deliberations cannot be resumed here".into()))
    }

    /// Returns the messages of a thread, in order.
    ///
    /// # Errors
    /// If the thread does not exist or cannot be read.
    fn read(&self, id: &str) -> Result<Vec<Message>, Refusal>;

    /// Returns a thread for rendering as a page.
    ///
    /// # Errors
    /// If the thread does not exist or cannot be read.
    fn page(&self, id: &str) -> Result<kd_page::Thread, Refusal>;

    /// Reports the events of a thread until the returned value is dropped. Asks no member and writes nothing.
    ///
    /// # Errors
    /// If the thread does not exist or cannot be watched.
    fn follow(&self, id: &str, tell: Sender<Followed>) -> Result<Box<dyn Following>, Refusal>;

    /// Returns the records of a thread's log from a position on, each with its end position. They are in the order in
    /// which all processes wrote them, which is the same for every reader. `None` if the log is shorter than that.
    ///
    /// # Errors
    /// If the thread does not exist, or its log cannot be read.
    fn events(&self, _id: &str, _at: u64) -> Result<Option<Vec<(u64, Record)>>, Refusal> {
        Err(Refusal("there are no events here".into()))
    }

    /// Returns whether the caller is an agent visiting the forum, which gets only the forum's tools and those that end
    /// a visit.
    fn is_visit(&self) -> bool {
        false
    }

    /// Returns the forum as the user who runs this sees it; `None` if there is none. Creates none.
    ///
    /// # Errors
    /// If it belongs to somebody else, or it cannot be read.
    fn forum_page(&self) -> Result<Option<kd_page::Forum>, Refusal> {
        Err(Refusal("there is no forum here".into()))
    }

    /// Returns a thread of the forum, its posts, and whether there are more.
    ///
    /// # Errors
    /// Those of [`Host::forum_page`], and if there is no forum or no such thread.
    fn forum_thread(
        &self,
        _id: i64,
    ) -> Result<(kd_page::Topic, Vec<kd_page::Post>, bool), Refusal> {
        Err(Refusal("there is no forum here".into()))
    }

    /// Carries out the user's decision on a motion.
    ///
    /// # Errors
    /// Those of [`Host::forum_page`], and if there is no forum or it refuses this.
    fn decide_motion(&self, _id: i64, _decision: &OnMotion) -> Result<(), Refusal> {
        Err(Refusal("there is no forum here".into()))
    }

    /// Writes in the forum under the user's own name. The first thread creates it.
    ///
    /// # Errors
    /// Those of [`Host::decide_motion`].
    fn write_in_forum(&self, _what: &InForum) -> Result<Placed, Refusal> {
        Err(Refusal("there is no forum here".into()))
    }

    /// Runs a tool of the forum under a verified name; returns the answer in the tool's format.
    ///
    /// # Errors
    /// If the forum cannot be opened or used. A refused call is not an error, but an answer.
    fn forum(
        &self,
        author: &str,
        proof: Proof,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, Refusal>;

    /// Returns the tools of additional servers that the visiting agent may call. Connects to the servers if necessary.
    fn further_tools(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    /// Returns whether an additional server has a tool of this name, allowed or not: [`Host::forum`] runs or refuses it.
    fn has_further(&self, _tool: &str) -> bool {
        false
    }

    /// Returns the part of an answer that a visiting agent sees: between delimiters, and cut to its visit's character
    /// limit. `None` for all other callers.
    fn shown(&self, _tool: &str, _answer: &Value) -> Option<String> {
        None
    }

    /// Returns a value that changes when the forum has news for an author.
    ///
    /// # Errors
    /// If the forum cannot be read.
    fn forum_mark(&self, author: &str) -> Result<(i64, i64), Refusal>;
}
