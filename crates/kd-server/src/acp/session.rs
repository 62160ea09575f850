//! The open sessions: their folders, modes and running prompts; what a prompt asks; and the user's consent to a folder's
//! settings.

use super::{Council, invalid, refused};
use crate::blocking::off;
use crate::models::QUESTION_BYTES_MAX;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    Content, ContentBlock, ContentChunk, EmbeddedResourceResource, PermissionOption,
    PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest, SessionNotification,
    SessionUpdate, TextContent, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use agent_client_protocol::{Client, Error, Result};
use kd_app::host::{Host, Method};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Maximum open sessions: more than an editor has panels.
const SESSIONS_MAX: usize = 256;
/// The card about a folder's settings.
const CONSENT: &str = "settings";
/// The option that allows them.
const ALLOW: &str = "allow";
/// The option that keeps them held back.
const KEEP: &str = "keep";

/// A session.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) host: Arc<dyn Host>,
    pub(super) folder: PathBuf,
    pub(super) method: Method,
    /// Whether the session has no messages yet.
    pub(super) is_new: bool,
    /// Whether the user was asked about the folder's settings.
    is_asked: bool,
    /// When it was last used: the greatest number is the newest.
    used: u64,
    /// Stops the running prompt.
    stop: Option<CancellationToken>,
}

impl Session {
    pub(super) fn of(host: Arc<dyn Host>, folder: PathBuf) -> Self {
        Self {
            host,
            folder,
            method: Method::Ask,
            is_new: false,
            is_asked: false,
            used: 0,
            stop: None,
        }
    }
}

/// The open sessions, by id.
#[derive(Default)]
pub(super) struct Sessions(Mutex<BTreeMap<String, Session>>);

/// A prompt in progress. Another prompt of its session can begin once it is dropped.
pub(super) struct Begun<'s> {
    sessions: &'s Sessions,
    id: String,
    /// The session as it was at the beginning.
    pub(super) session: Session,
    pub(super) stop: CancellationToken,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.lock().get_mut(&self.id) {
            session.stop = None;
        }
    }
}

impl Begun<'_> {
    /// Records that the session has a message.
    pub(super) fn said(&self) {
        if let Some(session) = self.sessions.lock().get_mut(&self.id) {
            session.is_new = false;
        }
    }
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session.
    ///
    /// # Errors
    /// If too many are open, or a prompt of this one is running.
    pub(super) fn put(&self, id: String, mut session: Session) -> Result<()> {
        self.check_idle(&id)?;
        let mut open = self.lock();
        if open.len() >= SESSIONS_MAX && !open.contains_key(&id) {
            // The least recently used idle session; it can be loaded again.
            let idle = open.iter().filter(|(_, session)| session.stop.is_none());
            let oldest = idle.min_by_key(|(_, session)| session.used);
            let oldest = oldest.map(|(id, _)| id.clone());
            let oldest = oldest.ok_or_else(|| refused("too many sessions are at work"))?;
            if let Some(session) = open.remove(&oldest).filter(|session| session.is_new) {
                session.host.discard(&oldest);
            }
        }
        session.used = next_use(&open);
        open.insert(id, session);
        Ok(())
    }

    /// Checks that no prompt of a session is running.
    ///
    /// # Errors
    /// If one is.
    pub(super) fn check_idle(&self, id: &str) -> Result<()> {
        let open = self.lock();
        match open.get(id).is_some_and(|session| session.stop.is_some()) {
            true => Err(invalid(
                "a prompt of this session is running: cancel it first",
            )),
            false => Ok(()),
        }
    }

    /// Returns the mode of an open session.
    pub(super) fn method(&self, id: &str) -> Option<Method> {
        self.lock().get(id).map(|session| session.method)
    }

    /// Begins a prompt.
    ///
    /// # Errors
    /// If there is no such session, or a prompt of it is running.
    pub(super) fn begin(&self, id: &str) -> Result<Begun<'_>> {
        let mut open = self.lock();
        let used = next_use(&open);
        let session = open.get_mut(id).ok_or_else(|| unknown(id))?;
        if session.stop.is_some() {
            return Err(invalid(
                "a prompt of this session is running: cancel it first",
            ));
        }
        let stop = CancellationToken::new();
        session.stop = Some(stop.clone());
        session.used = used;
        let session = session.clone();
        drop(open);
        Ok(Begun {
            sessions: self,
            id: id.to_owned(),
            session,
            stop,
        })
    }

    /// Stops the running prompt of a session, if any.
    pub(super) fn cancel(&self, id: &str) {
        let stop = self.lock().get(id).and_then(|session| session.stop.clone());
        if let Some(stop) = stop {
            stop.cancel();
        }
    }

    pub(super) fn set_method(&self, id: &str, method: Method) -> Result<()> {
        let mut open = self.lock();
        let session = open.get_mut(id).ok_or_else(|| unknown(id))?;
        if !session.host.has(method) {
            return Err(invalid("this mode is not available here"));
        }
        session.method = method;
        Ok(())
    }

    /// Removes the threads of sessions without messages.
    pub(super) fn discard_unsaid(&self) {
        for (id, session) in self.lock().iter().filter(|(_, session)| session.is_new) {
            session.host.discard(id);
        }
    }

    /// Notes that the user was asked about the settings of a session's folder; returns whether that was so already.
    fn note_asked(&self, id: &str) -> bool {
        let mut open = self.lock();
        let session = open.get_mut(id);
        session.is_some_and(|session| std::mem::replace(&mut session.is_asked, true))
    }

    /// Replaces the folder of a session after its settings were allowed.
    fn reopen(&self, id: &str, host: &Arc<dyn Host>) {
        if let Some(session) = self.lock().get_mut(id) {
            session.host = Arc::clone(host);
        }
    }
}

/// Returns the number of the next use of a session.
fn next_use(open: &BTreeMap<String, Session>) -> u64 {
    let newest = open.values().map(|session| session.used).max();
    newest.map_or(0, |used| used + 1)
}

fn unknown(id: &str) -> Error {
    let id = kd_core::clean::clean_line(id, 80);
    invalid(format!(
        "there is no open session `{id}`: use session/new or session/load"
    ))
}

/// Returns the question of a prompt.
///
/// # Errors
/// If it is empty, too long, or has other content than text.
pub(super) fn question(prompt: &[ContentBlock]) -> Result<String> {
    let mut parts = Vec::new();
    for block in prompt {
        match block {
            ContentBlock::Text(text) => parts.push(text.text.clone()),
            ContentBlock::ResourceLink(link) => {
                parts.push(format!("[{}]({})", link.name, link.uri))
            }
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    parts.push(format!("{}:\n\n{}", text.uri, text.text));
                }
                _ => return Err(invalid("the council reads text only")),
            },
            _ => return Err(invalid("the council reads text only")),
        }
    }
    let text = parts.join("\n\n");
    if text.len() > QUESTION_BYTES_MAX {
        return Err(invalid("the prompt is longer than 4 MiB"));
    }
    match text.trim().is_empty() {
        true => Err(invalid("the prompt is empty")),
        false => Ok(text),
    }
}

/// Sends an update about a session.
///
/// # Errors
/// If the connection is over.
pub(super) fn tell(client: &ConnectionTo<Client>, id: &str, update: SessionUpdate) -> Result<()> {
    client.send_notification(SessionNotification::new(id.to_owned(), update))
}

/// Returns text as the content of a card.
pub(super) fn card_text(text: &str) -> Vec<ToolCallContent> {
    let text = ContentBlock::Text(TextContent::new(text));
    vec![ToolCallContent::Content(Content::new(text))]
}

/// Returns text as a piece of a message.
pub(super) fn chunk(text: &str) -> ContentChunk {
    ContentChunk::new(ContentBlock::Text(TextContent::new(text)))
}

/// Returns the folder of a session. If settings of the folder need consent and the user was not asked in this session,
/// asks; the answer counts like that to `kd trust`.
///
/// # Errors
/// If the connection is over, or the decision cannot be saved.
pub(super) async fn with_consent(
    council: &Council,
    begun: &super::session::Begun<'_>,
    id: &str,
    client: &ConnectionTo<Client>,
) -> Result<Arc<dyn Host>> {
    let host = Arc::clone(&begun.session.host);
    let wanted = off(&host, Host::wants).await.map_err(refused)?;
    let Some(wanted) = wanted else {
        return Ok(host);
    };
    if council.sessions.note_asked(id) {
        return Ok(host);
    }
    let card = ToolCall::new(CONSENT, "Settings of this folder need your consent")
        .kind(ToolKind::Other)
        .status(ToolCallStatus::Pending)
        .content(card_text(&wanted));
    tell(client, id, SessionUpdate::ToolCall(card))?;
    let fields = ToolCallUpdateFields::new().content(card_text(&wanted));
    let options = vec![
        PermissionOption::new(
            ALLOW,
            "Allow these settings in this folder",
            PermissionOptionKind::AllowAlways,
        ),
        PermissionOption::new(KEEP, "Go on without them", PermissionOptionKind::RejectOnce),
    ];
    let update = ToolCallUpdate::new(CONSENT, fields);
    let request = RequestPermissionRequest::new(id.to_owned(), update, options);
    let answer = tokio::select! {
        answer = client.send_request(request).block_task() => answer?,
        () = begun.stop.cancelled() => return Ok(host),
    };
    let allowed = matches!(&answer.outcome,
        RequestPermissionOutcome::Selected(selected) if selected.option_id.to_string() == ALLOW);
    let status = match allowed {
        true => ToolCallStatus::Completed,
        false => ToolCallStatus::Failed,
    };
    let fields = ToolCallUpdateFields::new().status(status);
    let update = ToolCallUpdate::new(CONSENT, fields);
    tell(client, id, SessionUpdate::ToolCallUpdate(update))?;
    if !allowed {
        return Ok(host);
    }
    let saved = off(&host, Host::allow).await.map_err(refused)?;
    saved.map_err(|why| refused(why.0))?;
    let host = council.host(&begun.session.folder).await?;
    council.sessions.reopen(id, &host);
    Ok(host)
}
