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
    ListResourceTemplatesResult::with_all_items(vec![thread])
}

/// Returns a thread.
pub(super) async fn read(
    host: &Arc<dyn Host>,
    uri: String,
) -> Result<ReadResourceResult, ErrorData> {
    let unknown =
        |why: &str| ErrorData::resource_not_found(format!("{why}; threads are {THREAD}<id>"), None);
    let Some(id) = uri.strip_prefix(THREAD).map(str::to_owned) else {
        return Err(unknown(&format!("there is no resource {uri}")));
    };
    let messages = off(host, move |host| host.read(&id)).await?;
    let messages = messages.map_err(|e| unknown(&e.0))?;
    let mut text = ResourceContents::text(markdown(&messages), uri);
    if let ResourceContents::TextResourceContents { mime_type, .. } = &mut text {
        *mime_type = Some(MARKDOWN.to_owned());
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
