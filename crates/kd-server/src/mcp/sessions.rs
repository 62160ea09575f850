//! The sessions of the HTTP server: a limited number, closed after a while without use. A new session closes one of the
//! token with the most sessions, so that no caller can close another's sessions by opening many.

use crate::identity::Identity;
use futures::{Stream, StreamExt};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionId;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionManager};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum open sessions. Each takes about 50 KiB.
pub(crate) const SESSIONS_MAX: usize = 128;
/// A session without messages for this long is closed. A council may deliberate silently for minutes.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

tokio::task_local! {
    /// The sender of the current request.
    static CALLER: Identity;
}

/// The SDK's sessions with a limit.
pub(crate) struct Sessions {
    inner: LocalSessionManager,
    max: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    clock: u64,
    /// When each session was last used, and its open streams.
    sessions: BTreeMap<SessionId, (u64, Arc<()>)>,
    /// The owner of each session.
    owners: BTreeMap<SessionId, Identity>,
}

impl Sessions {
    pub(crate) fn new(max: usize) -> Self {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = Some(IDLE_MAX);
        Self {
            inner,
            max,
            used: Mutex::default(),
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request; the caller owns the sessions it opens.
    pub(crate) async fn answer<T>(&self, caller: Identity, answer: impl Future<Output = T>) -> T {
        CALLER.scope(caller, answer).await
    }

    fn forget(&self, id: &SessionId) {
        let mut used = self.used();
        used.sessions.remove(id);
        used.owners.remove(id);
    }

    /// Returns whether a session belongs to another caller. Only that caller may use it or learn that it exists.
    pub(crate) fn is_anothers(&self, id: &str, caller: &Identity) -> bool {
        let used = self.used();
        used.owners.get(id).is_some_and(|owner| owner != caller)
    }

    /// Records that a session is used; hold the returned mark while one of its streams is open.
    fn touch(&self, id: &SessionId) -> Option<Arc<()>> {
        let mut used = self.used();
        used.clock += 1;
        let now = used.clock;
        let (at, streams) = used.sessions.get_mut(id)?;
        *at = now;
        Some(streams.clone())
    }

    /// Returns the session to close for a new one: of the callers with the most sessions, the longest unused among
    /// those without an open stream, else among all. Sessions without an owner count as one caller's.
    fn surplus(&self) -> Option<SessionId> {
        let used = self.used();
        if used.sessions.len() < self.max {
            return None;
        }
        let mut counts: Vec<(Option<&Identity>, usize)> = Vec::new();
        for id in used.sessions.keys() {
            let owner = used.owners.get(id);
            match counts.iter_mut().find(|(known, _)| *known == owner) {
                Some((_, count)) => *count += 1,
                None => counts.push((owner, 1)),
            }
        }
        let most = counts.iter().map(|(_, count)| *count).max()?;
        let has_most = |id: &SessionId| counts.contains(&(used.owners.get(id), most));
        let oldest = used
            .sessions
            .iter()
            .filter(|(id, _)| has_most(id))
            .min_by_key(|(_, (at, streams))| (Arc::strong_count(streams) > 1, *at));
        oldest.map(|(id, _)| id.clone())
    }

    fn held<S: Stream<Item = ServerSseMessage>>(
        &self,
        id: &SessionId,
        stream: S,
    ) -> impl Stream<Item = ServerSseMessage> + use<S> {
        let hold = self.touch(id);
        stream.inspect(move |_| {
            let _ = &hold;
        })
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        while let Some(old) = self.surplus() {
            let _ = self.close_session(&old).await;
        }
        let (id, transport) = self.inner.create_session().await?;
        let owner = CALLER.try_with(Identity::clone).ok();
        let mut used = self.used();
        used.sessions.insert(id.clone(), (0, Arc::default()));
        if let Some(owner) = owner {
            used.owners.insert(id.clone(), owner);
        }
        drop(used);
        self.touch(&id);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.forget(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.inner.create_stream(id, message).await?;
        Ok(self.held(id, stream))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.touch(id);
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.inner.create_standalone_stream(id).await?;
        Ok(self.held(id, stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.inner.resume(id, last_event_id).await?;
        Ok(self.held(id, stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Tokens;

    #[tokio::test]
    async fn many_sessions_of_one_token_close_none_of_another() {
        let tokens = Tokens::parse("ada 0123456789abcdef\neve fedcba9876543210").unwrap();
        let caller = |token: &str| tokens.owner(token).unwrap();
        let (ada, eve) = (caller("0123456789abcdef"), caller("fedcba9876543210"));
        let sessions = Sessions::new(8);
        let mut open = Vec::new();
        let mut first = Vec::new();
        for _ in 0..2 {
            let (id, transport) = sessions
                .answer(ada.clone(), sessions.create_session())
                .await
                .unwrap();
            first.push(id);
            open.push(transport);
        }
        for _ in 0..50 {
            let (_, transport) = sessions
                .answer(eve.clone(), sessions.create_session())
                .await
                .unwrap();
            open.push(transport);
        }
        for id in &first {
            assert!(sessions.has_session(id).await.unwrap(), "{id}");
            assert!(sessions.is_anothers(id, &eve) && !sessions.is_anothers(id, &ada));
        }
        // A new session takes the place of one of the caller with the most.
        let (third, _third) = sessions
            .answer(ada.clone(), sessions.create_session())
            .await
            .unwrap();
        assert!(sessions.has_session(&third).await.unwrap());
        let owners: Vec<Identity> = sessions.used().owners.values().cloned().collect();
        assert_eq!(owners.iter().filter(|owner| **owner == ada).count(), 3);
        assert_eq!(owners.len(), 8);
    }

    #[tokio::test]
    async fn a_new_session_closes_the_one_unused_longest() {
        let sessions = Sessions::new(3);
        let mut ids = Vec::new();
        let mut transports = Vec::new();
        for _ in 0..3 {
            let (id, transport) = sessions.create_session().await.unwrap();
            ids.push(id);
            transports.push(transport);
        }
        sessions.touch(&ids[0]);
        let streaming = sessions.touch(&ids[1]);
        sessions.touch(&ids[0]);
        let (fourth, _fourth) = sessions.create_session().await.unwrap();
        let (fifth, _fifth) = sessions.create_session().await.unwrap();
        for (id, there) in [
            (&ids[0], false),
            (&ids[1], true),
            (&ids[2], false),
            (&fourth, true),
            (&fifth, true),
        ] {
            assert_eq!(sessions.has_session(id).await.unwrap(), there, "{id}");
        }
        drop(streaming);
        for _ in 0..50 {
            let _ = sessions.create_session().await.unwrap();
        }
        assert!(sessions.inner.sessions.read().await.len() <= 3);
        assert!(sessions.used().sessions.len() <= 3);
    }
}
