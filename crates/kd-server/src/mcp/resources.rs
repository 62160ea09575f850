//! Threads as resources: `kd://thread/council-a8b3` is the whole conversation as Markdown.

use super::off;
use kd_app::host::Host;
use kd_core::Message;
use kd_core::markdown::{embed, escape_line};
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use std::fmt::Write;
use std::sync::Arc;

const THREAD: &str = "kd://thread/";
const MARKDOWN: &str = "text/markdown";
/// The suffix of the URI of a thread's events.
const EVENTS: &str = "/events";
/// The type of JSON, one object a line.
const LINES: &str = "application/x-ndjson";
/// Maximum threads in a list: the newest.
const LISTED_MAX: usize = 500;

/// Lists the newest threads.
pub(super) async fn list(host: &Arc<dyn Host>) -> Result<ListResourcesResult, ErrorData> {
    let threads = off(host, |host| host.threads()).await?;
    let threads = threads.map_err(|e| ErrorData::internal_error(e.0, None))?;
    let listed = threads.into_iter().take(LISTED_MAX).map(|thread| {
        let mut resource = Resource::new(format!("{THREAD}{}", thread.id), thread.id);
        resource.title = Some(thread.topic);
        resource.description = Some(format!("{} messages", thread.messages));
        resource.mime_type = Some(MARKDOWN.to_owned());
        resource
    });
    Ok(ListResourcesResult::with_all_items(listed.collect()))
}

/// Returns the URI template of threads.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let mut thread = ResourceTemplate::new(format!("{THREAD}{{id}}"), "thread");
    thread.description = Some("A thread of the council, whole, as Markdown.".to_owned());
    thread.mime_type = Some(MARKDOWN.to_owned());
    let events = format!("{THREAD}{{id}}{EVENTS}{{?after}}");
    let mut events = ResourceTemplate::new(events, "events");
    events.description = Some(
        "The events of a thread, one JSON object a line, in the order in which they happened, from all programs; each has `id`, and `after` continues after one."
            .to_owned(),
    );
    events.mime_type = Some(LINES.to_owned());
    ListResourceTemplatesResult::with_all_items(vec![thread, events])
}

/// Returns a thread.
pub(super) async fn read(
    host: &Arc<dyn Host>,
    uri: String,
) -> Result<ReadResourceResult, ErrorData> {
    let unknown =
        |why: &str| ErrorData::resource_not_found(format!("{why}; threads are {THREAD}<id>"), None);
    let (id, events) = match address(&uri) {
        Some((id, events)) => (id.to_owned(), events),
        None => return Err(unknown(&format!("there is no resource {uri}"))),
    };
    if let Some(after) = events {
        return read_events(host, uri, id, after).await;
    }
    let messages = off(host, move |host| host.read(&id)).await?;
    let messages = messages.map_err(|e| unknown(&e.0))?;
    let mut text = ResourceContents::text(markdown(&messages), uri);
    if let ResourceContents::TextResourceContents { mime_type, .. } = &mut text {
        *mime_type = Some(MARKDOWN.to_owned());
    }
    Ok(ReadResourceResult::new(vec![text]))
}

/// Splits the URI of a thread or of its events; for events, after which one.
pub(super) fn address(uri: &str) -> Option<(&str, Option<u64>)> {
    let rest = uri.strip_prefix(THREAD)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let after = match query {
        "" => 0,
        query => query.strip_prefix("after=")?.parse().ok()?,
    };
    match rest.strip_suffix(EVENTS) {
        Some(id) => Some((id, Some(after))),
        None => Some((rest, None)).filter(|_| query.is_empty()),
    }
}

/// Returns events of a thread as lines.
async fn read_events(
    host: &Arc<dyn Host>,
    uri: String,
    id: String,
    after: u64,
) -> Result<ReadResourceResult, ErrorData> {
    let read = off(host, move |host| host.events(&id, after)).await?;
    let read = read.map_err(|e| ErrorData::resource_not_found(e.0, None))?;
    let Some(records) = read else {
        let why = "the thread has no event with this id: it was rewritten; begin without `after`";
        return Err(ErrorData::resource_not_found(why, None));
    };
    let mut text = String::new();
    for (end, record) in records {
        let line = serde_json::json!({"id": end, "event": record});
        let _ = writeln!(text, "{line}");
    }
    let mut text = ResourceContents::text(text, uri);
    if let ResourceContents::TextResourceContents { mime_type, .. } = &mut text {
        *mime_type = Some(LINES.to_owned());
    }
    Ok(ReadResourceResult::new(vec![text]))
}

/// Renders the conversation. Each message begins with a level-1 heading, which no body can contain.
fn markdown(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let from = escape_line(&message.from);
        let body = embed(&message.body, 1);
        let _ = writeln!(text, "# {:04} {from}\n\n{body}", message.seq);
    }
    text
}
