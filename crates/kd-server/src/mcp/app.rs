//! The page as an MCP App (the extension `io.modelcontextprotocol/ui`): `ui://kd/council` is the document that a client
//! shows in its sandbox, and results of the tools that consult the council carry their thread for it.

use super::{object, off};
use crate::answer::Answer;
use kd_app::host::Host;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ClientCapabilities, ContentBlock, MetaObject, ReadResourceResult, Resource,
    ResourceContents,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use std::sync::Arc;

/// The document's URI.
pub(super) const APP: &str = "ui://kd/council";
/// The type of such documents.
const HTML: &str = "text/html;profile=mcp-app";
/// The extension that clients which show apps name.
const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The field of a result that contains its thread. The document's script reads it, and models do not see it.
const PAGE: &str = "kd/page";
/// Maximum size of a thread in a result, in bytes; a larger thread is read as a resource.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Returns the metadata of a tool whose results the document shows.
pub(super) fn meta() -> MetaObject {
    MetaObject(object(json!({"ui": {"resourceUri": APP}})))
}

/// Returns the document's row in the list of resources.
pub(super) fn row() -> Resource {
    let mut resource = Resource::new(APP, "council");
    resource.title = Some("The council's answer".to_owned());
    resource.description = Some(
        "Shows who said what, how it was decided, where members differ, and what it cost.".into(),
    );
    resource.mime_type = Some(HTML.to_owned());
    resource
}

/// Returns the document. It fetches nothing, so it asks for no permission.
pub(super) fn read() -> ReadResourceResult {
    let mut contents = ResourceContents::text(kd_page::app(), APP);
    if let ResourceContents::TextResourceContents {
        mime_type, meta, ..
    } = &mut contents
    {
        *mime_type = Some(HTML.to_owned());
        *meta = Some(MetaObject(object(json!({"ui": {"prefersBorder": true}}))));
    }
    ReadResourceResult::new(vec![contents])
}

/// Turns answers into results of tools.
pub(super) struct Presenter {
    host: Arc<dyn Host>,
    /// Whether the client shows the document.
    shows: bool,
}

impl Presenter {
    /// Creates a value for the client of a request. The client names its extensions in the request or in the handshake.
    pub(super) fn new(host: &Arc<dyn Host>, context: &RequestContext<RoleServer>) -> Self {
        let knows = |client: &ClientCapabilities| {
            let extensions = client.extensions.as_ref();
            extensions.is_some_and(|all| all.contains_key(EXTENSION))
        };
        let shows = match context.meta.client_capabilities() {
            Some(client) => knows(&client),
            None => {
                let peer = context.peer.peer_info();
                peer.is_some_and(|peer| knows(&peer.capabilities))
            }
        };
        Self {
            host: Arc::clone(host),
            shows,
        }
    }

    /// Returns an answer as text and JSON, and its thread for the document.
    pub(super) async fn present(&self, answer: &Answer) -> CallToolResult {
        let content = vec![ContentBlock::text(answer.text())];
        let mut result = match answer.is_answer() {
            true => CallToolResult::success(content),
            false => CallToolResult::error(content),
        };
        let json = answer.json();
        if self.shows
            && let Some(thread) = answer.thread()
        {
            result.meta = self.page(thread).await;
        }
        result.structured_content = Some(json);
        result
    }

    /// Returns a thread for the document; `None` if it cannot be read or is too large: the text is shown instead.
    async fn page(&self, thread: &str) -> Option<MetaObject> {
        let thread = thread.to_owned();
        let read = off(&self.host, move |host| {
            host.page(&thread).ok().map(kd_page::shown_in_app)
        });
        let page: Value = read.await.ok()??;
        // Texts count too: those that render to little, such as link definitions, are not shorter in the message.
        let size = page.to_string().len();
        (size <= PAGE_BYTES_MAX).then(|| MetaObject(object(json!({ PAGE: page }))))
    }
}
