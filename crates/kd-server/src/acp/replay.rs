//! A thread as a client sees it when it loads a session: the user's messages, a card for each answer of a member, and
//! the last answer of each round as the message.

use super::session::{card_text, chunk};
use agent_client_protocol::v1::schema::{SessionUpdate, ToolCall, ToolCallStatus, ToolKind};
use kd_core::Message;

/// Returns the updates that replay messages.
pub(super) fn updates(messages: &[Message]) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let is_last = messages.get(at + 1).is_none_or(Message::is_king);
        updates.push(if message.is_king() {
            SessionUpdate::UserMessageChunk(chunk(&message.body))
        } else if is_last && message.is_sound() {
            SessionUpdate::AgentMessageChunk(chunk(&message.body))
        } else {
            let status = match message.is_sound() {
                true => ToolCallStatus::Completed,
                false => ToolCallStatus::Failed,
            };
            let card = ToolCall::new(format!("message-{}", message.seq), message.from.clone());
            SessionUpdate::ToolCall(
                card.kind(ToolKind::Think)
                    .status(status)
                    .content(card_text(&message.body)),
            )
        });
    }
    updates
}
