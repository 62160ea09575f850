//! The caller's news as a resource: `kd://forum/news`. Notifies subscribed clients of changes: immediately when a
//! client of this server wrote, within a second when another process did.

use super::off;
use kd_app::host::Host;
use rmcp::model::{
    ReadResourceResult, Resource, ResourceContents, ResourceUpdatedNotificationParam,
};
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The URI of the resource.
pub(super) const NEWS: &str = "kd://forum/news";
/// How often a subscription checks for writes of other processes.
const LOOK: Duration = Duration::from_secs(1);

/// The subscription of one session; ends with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Subscription {
    running: Arc<Mutex<Option<DropGuard>>>,
    /// Signals that a client of this server wrote; shared by all sessions.
    written: watch::Sender<()>,
}

impl Subscription {
    /// Creates the subscription of another session of the same server.
    pub(super) fn another(&self) -> Self {
        Self {
            running: Arc::default(),
            written: self.written.clone(),
        }
    }

    /// Makes all subscriptions of this server check now.
    pub(super) fn wake(&self) {
        self.written.send_replace(());
    }

    /// Notifies the client of its news. A second call replaces the first.
    pub(super) async fn start(
        &self,
        host: &Arc<dyn Host>,
        caller: String,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut written = self.written.subscribe();
        let mut known = mark(host, &caller).await?;
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        *self.lock() = Some(guard);
        let host = host.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    _ = written.changed() => {}
                    () = tokio::time::sleep(LOOK) => {}
                }
                // If the database is busy, try again later.
                let Ok(now) = mark(&host, &caller).await else {
                    continue;
                };
                if now == known {
                    continue;
                }
                known = now;
                let updated = ResourceUpdatedNotificationParam::new(NEWS);
                if peer.notify_resource_updated(updated).await.is_err() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Ends it.
    pub(super) fn stop(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<DropGuard>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the entry in the list of resources.
pub(super) fn row() -> Resource {
    let mut resource = Resource::new(NEWS, "news");
    resource.title = Some("What is new to you in the forum".to_owned());
    resource.description =
        Some("Threads that you have not read, posts that mention you, open motions.".to_owned());
    resource.mime_type = Some("application/json".to_owned());
    resource
}

/// Returns the news, without marking anything as read.
pub(super) async fn read(
    host: &Arc<dyn Host>,
    caller: String,
) -> Result<ReadResourceResult, ErrorData> {
    let news = off(host, move |host| {
        host.forum(
            &caller,
            kd_forum::account::Proof::Nothing,
            "news",
            &json!({}),
        )
    })
    .await?;
    let news = news.map_err(|why| ErrorData::internal_error(why.0, None))?;
    let mut text = ResourceContents::text(news.to_string(), NEWS);
    if let ResourceContents::TextResourceContents { mime_type, .. } = &mut text {
        *mime_type = Some("application/json".to_owned());
    }
    Ok(ReadResourceResult::new(vec![text]))
}

async fn mark(host: &Arc<dyn Host>, caller: &str) -> Result<(i64, i64), ErrorData> {
    let caller = caller.to_owned();
    let mark = off(host, move |host| host.forum_mark(&caller)).await?;
    mark.map_err(|why| ErrorData::internal_error(why.0, None))
}
