//! Threads that a client follows: `resources/subscribe` with the URI of a thread or of its events. The client gets
//! a notification when any process writes there, and reads the new content.

use super::off;
use kd_app::host::{Followed, Host};
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::{ErrorData, Peer, RoleServer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Maximum threads that one session follows: each takes two threads of the process.
const FOLLOWED_MAX: usize = 16;
/// Changes buffered: more of them are one.
const CHANGES: usize = 64;

/// The subscriptions of one session, by URI; they end with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Follows(Arc<Mutex<BTreeMap<String, DropGuard>>>);

impl Follows {
    /// Tells the client of changes in a thread. A second call with the same URI replaces the first.
    ///
    /// # Errors
    /// If the thread does not exist, or the session follows too many.
    pub(super) async fn start(
        &self,
        host: &Arc<dyn Host>,
        (uri, id): (String, String),
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let is_full = |follows: &BTreeMap<String, DropGuard>| {
            follows.len() >= FOLLOWED_MAX && !follows.contains_key(&uri)
        };
        if is_full(&self.lock()) {
            let why = format!("a session follows at most {FOLLOWED_MAX} threads: unsubscribe one");
            return Err(ErrorData::invalid_request(why, None));
        }
        let (tell, mut told) = mpsc::channel(CHANGES);
        let watch = off(host, move |host| host.follow(&id, tell)).await?;
        let watch = watch.map_err(|why| ErrorData::resource_not_found(why.0, None))?;
        let stop = CancellationToken::new();
        self.lock().insert(uri.clone(), stop.clone().drop_guard());
        tokio::spawn(async move {
            let _watch = watch;
            loop {
                let followed = tokio::select! {
                    () = stop.cancelled() => return,
                    followed = told.recv() => followed,
                };
                match followed {
                    None => return,
                    // Clients that ask for them get pieces of answers.
                    Some(Followed::Piece(..)) => continue,
                    Some(Followed::Changed | Followed::Ended(_)) => {}
                }
                let updated = ResourceUpdatedNotificationParam::new(uri.clone());
                if peer.notify_resource_updated(updated).await.is_err() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Ends it.
    pub(super) fn stop(&self, uri: &str) {
        self.lock().remove(uri);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, DropGuard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
