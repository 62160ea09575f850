//! Starts the session of a request (a council, an acting member, or a side request) and keeps what a later request needs
//! to continue it.

use super::Face;
use super::acts::Claim;
use super::fault::Fault;
use super::talk::Asked;
use super::transcript::Transcript;
use crate::answer::Answer;
use crate::identity::Identity;
use kd_app::Started;
use kd_app::acting::Errand;
use kd_app::host::{Method, Model, Refusal};
use kd_app::output::OutputSchema;
use kd_core::acting::{Talk, name_of};
use kd_core::request::{Said, ToolChoice};
use serde_json::Value;
use std::sync::Arc;

/// The data of a running request.
pub(super) enum Kept {
    /// A question to a council.
    Council(Box<Asked>),
    /// A conversation with tools.
    Acting {
        /// Who asks.
        caller: Identity,
        /// The conversation.
        talk: Box<Talk>,
        /// Its thread, in use until the answer.
        _claim: Option<Claim>,
    },
    /// A side request: nothing continues it.
    Side,
}

/// A running request. If it ends without an answer, also because its client left, the thread is available again.
pub(super) struct Held {
    face: Arc<Face>,
    caller: Identity,
    kept: Option<Kept>,
}

impl Held {
    pub(super) fn new(face: &Arc<Face>, caller: &Identity, kept: Kept) -> Self {
        Self {
            face: Arc::clone(face),
            caller: caller.clone(),
            kept: Some(kept),
        }
    }

    /// Remembers the thread of a request after its answer: its text as the client has it, and its ID where the API continues
    /// by ID.
    pub(super) fn remember(&mut self, answer: &Answer, text: &str, id: Option<&str>) {
        if let Some(kept) = self.kept.take() {
            kept.remember(&self.face, answer, text, id);
        }
    }

    /// Remembers the items of an answer.
    pub(super) fn remember_items(&self, items: Vec<Value>) {
        self.face.items.remember(&self.caller, items);
    }

    /// Makes the thread available again, so that the question can be repeated in it.
    pub(super) fn put_back(&mut self) {
        if let Some(kept) = self.kept.take() {
            kept.put_back(&self.face);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.put_back();
    }
}

impl Kept {
    /// Remembers the thread of a request after its answer.
    fn remember(&self, face: &Face, answer: &Answer, text: &str, id: Option<&str>) {
        let Some(thread) = answer.thread() else {
            return;
        };
        match self {
            Kept::Council(asked) => face.talks.remember(asked, thread, text, id),
            Kept::Acting { caller, talk, .. } => {
                let said = (text, answer.calls());
                face.acts.remember(caller, talk, said, thread, id);
            }
            Kept::Side => {}
        }
    }

    /// Makes the thread available again after no member answered.
    fn put_back(&self, face: &Face) {
        if let Kept::Council(asked) = self {
            face.talks.put_back(asked);
        }
    }
}

/// Returns the conversation of a request that one member answers with tools, complete; `None` for others.
///
/// # Errors
/// If the answer that it continues is not known, or the model calls no tools and one must be called.
pub(super) fn acting(
    face: &Face,
    caller: &Identity,
    method: Method,
    (mut talk, acts): (Talk, bool),
    transcript: &Transcript,
) -> Result<Option<Talk>, Fault> {
    let shows = talk.pictures().next().is_some();
    if method != Method::Ask && shows {
        let why =
            "this model reads text only: pictures are for kd/ask, whose acting member sees them";
        return Err(Fault::invalid(None, why));
    }
    // One member sees pictures, the others read about them.
    let acts = acts || shows;
    if method != Method::Ask {
        let forced = matches!(talk.choice, ToolChoice::Required | ToolChoice::Named(_));
        let why = "this model calls no tools of the client: use kd/ask, or set `tool_choice` to auto or none";
        return match forced {
            true => Err(Fault::invalid(Some("tool_choice"), why)),
            false => Ok(None),
        };
    }
    let Some(id) = &transcript.previous else {
        return Ok(acts.then_some(talk));
    };
    match face.acts.stored(caller, id) {
        Some(before) => {
            continue_talk(&before, &mut talk)?;
            Ok(Some(talk))
        }
        None if acts => Err(Fault::previous(id)),
        None => Ok(None),
    }
}

/// Puts an earlier conversation before the new steps, and gives results the names of their tools.
fn continue_talk(before: &[Said], talk: &mut Talk) -> Result<(), Fault> {
    for said in &mut talk.said {
        if let Said::Tool { id, name, .. } = said
            && name.is_empty()
        {
            let found = name_of(before, id).ok_or_else(|| Fault::orphan(id, "input"))?;
            found.clone_into(name);
        }
    }
    talk.said.splice(0..0, before.iter().cloned());
    Ok(())
}

/// Starts a council; the thread and the schema are those that the client gave.
pub(super) async fn ask(
    face: &Arc<Face>,
    caller: &Identity,
    transcript: &Transcript,
    council: Model,
    given: (Option<String>, Option<OutputSchema>),
) -> Result<(Kept, Started), Fault> {
    let asked = face.talks.ask(caller, transcript, council, given)?;
    let ask = asked.ask.clone();
    let started = face
        .opening
        .off(&face.host, move |host| host.ask(&ask))
        .await;
    let mut started = started.map_err(Fault::broken)?;
    if started.is_err() && asked.can_begin_anew() {
        // The thread is gone or busy: the transcript contains everything needed.
        let ask = asked.anew.clone();
        let again = face
            .opening
            .off(&face.host, move |host| host.ask(&ask))
            .await;
        started = again.map_err(Fault::broken)?;
    }
    let started = started.map_err(|why| {
        face.talks.put_back(&asked);
        Fault::refused(&why.0)
    })?;
    Ok((Kept::Council(Box::new(asked)), started))
}

/// Starts a request to an acting member, in the thread of its conversation where that is known and free.
pub(super) async fn act(
    face: &Arc<Face>,
    caller: &Identity,
    (talk, named): (Talk, Option<String>),
    members: Vec<String>,
) -> Result<(Kept, Started), Fault> {
    let joins = named.is_some();
    let (thread, mut claim) = match named {
        None => face.acts.find(caller, &talk).unzip(),
        Some(thread) => {
            let claim = face.acts.claim(&thread).ok_or_else(Fault::taken)?;
            (Some(thread), Some(claim))
        }
    };
    let errand = Errand {
        members,
        talk: talk.clone(),
        thread,
        joins,
        aside: false,
    };
    let mut started = begin(face, errand.clone()).await?;
    if started.is_err() && errand.thread.is_some() && !joins {
        // The thread is gone: the conversation contains everything needed.
        claim = None;
        let anew = Errand {
            thread: None,
            ..errand
        };
        started = begin(face, anew).await?;
    }
    let started = started.map_err(|why| Fault::refused(&why.0))?;
    let claim = claim.or_else(|| face.acts.claim(&started.session.thread().0));
    let kept = Kept::Acting {
        caller: caller.clone(),
        talk: Box::new(talk),
        _claim: claim,
    };
    Ok((kept, started))
}

/// Starts a side request.
pub(super) async fn aside(
    face: &Arc<Face>,
    talk: Talk,
    members: Vec<String>,
) -> Result<(Kept, Started), Fault> {
    let errand = Errand {
        members,
        talk,
        aside: true,
        ..Errand::default()
    };
    let started = begin(face, errand).await?;
    let started = started.map_err(|why| Fault::refused(&why.0))?;
    Ok((Kept::Side, started))
}

async fn begin(face: &Arc<Face>, errand: Errand) -> Result<Result<Started, Refusal>, Fault> {
    let started = face
        .opening
        .off(&face.host, move |host| host.act(&errand))
        .await;
    started.map_err(Fault::broken)
}
