//! Polls a connection of the ACP crate by hand. Such a connection is a future that waits only for messages, never for a
//! clock or a file: pass a message in, poll until it makes no more progress, and all its output is available. So ACP has
//! the same interface as the other protocols, messages in and messages out, without its own task or pipe.

use agent_client_protocol::{Channel, Error, RawJsonRpcMessage, Result, TransportFrame};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A hand-driven connection; see the module docs.
pub(super) struct Driven {
    /// The running connection, or how it ended.
    connection: std::result::Result<BoxFuture<'static, Result<()>>, Option<Error>>,
    wire: Channel,
    moved: Arc<Moved>,
}

/// Whether the connection was woken and must be polled again.
#[derive(Default)]
struct Moved(AtomicBool);

impl Wake for Moved {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl Driven {
    /// Creates a connection over the given channel. Nothing happens before [`Driven::drive`].
    pub(super) fn new<F>(connect: impl FnOnce(Channel) -> F) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (theirs, ours) = Channel::duplex();
        Self {
            connection: Ok(connect(theirs).boxed()),
            wire: ours,
            moved: Arc::default(),
        }
    }

    /// Passes in a message from the agent.
    ///
    /// # Errors
    /// It is not a JSON-RPC message even by a lenient reading, or the connection is over. An unreadable response ends
    /// the connection: its request would wait forever.
    pub(super) fn hear(&mut self, message: &Value) -> Result<()> {
        if self.over().is_some() {
            return Err(Error::invalid_request());
        }
        match serde_json::from_value::<RawJsonRpcMessage>(tidied(message)) {
            Ok(message) => {
                // The other end lives as long as the connection.
                let _ = self.wire.tx.unbounded_send(TransportFrame::Single(message));
                Ok(())
            }
            Err(_) => {
                let error = Error::invalid_request();
                if !message["method"].is_string() {
                    self.connection = Err(Some(error.clone()));
                }
                Err(error)
            }
        }
    }

    /// Polls the connection until it is idle, and returns its messages.
    pub(super) fn drive(&mut self) -> Vec<Value> {
        let waker = Waker::from(Arc::clone(&self.moved));
        while let Ok(connection) = &mut self.connection {
            self.moved.0.store(false, Ordering::Release);
            match connection.poll_unpin(&mut Context::from_waker(&waker)) {
                Poll::Ready(end) => self.connection = Err(end.err()),
                Poll::Pending if self.moved.0.load(Ordering::Acquire) => {}
                Poll::Pending => break,
            }
        }
        let mut said = Vec::new();
        while let Ok(frame) = self.wire.rx.try_recv() {
            if let TransportFrame::Single(message) = frame {
                said.extend(serde_json::to_value(message));
            }
        }
        said
    }

    /// Returns whether the connection is over, and its error, if any.
    pub(super) fn over(&self) -> Option<Option<&Error>> {
        self.connection.as_ref().err().map(Option::as_ref)
    }
}

/// Normalizes a message to strict JSON-RPC with the same meaning. Agents omit the version, send null errors, and send
/// errors that are strings.
fn tidied(message: &Value) -> Value {
    let mut tidied = message.clone();
    let Some(members) = tidied.as_object_mut() else {
        return tidied;
    };
    members.insert("jsonrpc".into(), "2.0".into());
    if members.contains_key("method") {
        let params = members.entry("params").or_insert(Value::Null);
        if !params.is_object() && !params.is_array() {
            *params = json!({});
        }
        return tidied;
    }
    match members.get("error") {
        None => {}
        Some(Value::Null) => drop(members.remove("error")),
        Some(error) => {
            let code = error["code"].as_i64().and_then(|c| i32::try_from(c).ok());
            let said = error["message"].as_str().or(error.as_str());
            let error = json!({
                "code": code.unwrap_or(-32603),
                "message": said.unwrap_or("an error without a message"),
                "data": error["data"],
            });
            members.insert("error".into(), error);
            members.remove("result");
        }
    }
    tidied
}
