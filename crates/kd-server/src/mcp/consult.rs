//! Carries a consultation from the question to its end: tells progress to a caller that wants it, and stops when the caller
//! cancels or leaves.

use super::answer::Answer;
use super::tools::refused;
use crate::kingdom::Started;
use kd_core::{Event, Op};
use kd_engine::Update;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, ProgressNotificationParam};
use rmcp::service::RequestContext;

/// Runs a session to its end.
pub(super) async fn run(started: Started, context: &RequestContext<RoleServer>) -> CallToolResult {
    let Started { mut session, say } = started;
    let mut updates = session.subscribe();
    if let Err(why) = session.send(say) {
        return refused(&format!("{why}: {}", why.hint()));
    }
    let token = context.meta.get_progress_token();
    let mut answer = Answer::default();
    let mut progress = 0.0;
    let mut cancelled = false;
    while answer.ended.is_none() {
        let update = tokio::select! {
            update = updates.next() => update,
            () = context.ct.cancelled(), if !cancelled => {
                cancelled = true;
                if session.send(Op::Interrupt).is_err() {
                    break;
                }
                continue;
            }
        };
        let line = match update {
            Some(Update::Record(record)) => {
                if let Event::SaveFailed { turn: None, why } | Event::OpRefused { why } =
                    &record.event
                {
                    session.close().await;
                    return refused(why);
                }
                answer.hear(&record)
            }
            // So many pieces came at once that some were dropped. Messages are no pieces: they are in the view.
            Some(Update::Lagged(view)) => {
                answer.catch_up(&view);
                None
            }
            None => break,
        };
        if let (Some(line), Some(token)) = (line, &token) {
            progress += 1.0;
            let told = ProgressNotificationParam::new(token.clone(), progress).with_message(line);
            // A caller that is gone is seen above.
            let _ = context.peer.notify_progress(told).await;
        }
    }
    session.close().await;
    let content = vec![ContentBlock::text(answer.text())];
    let mut result = if answer.is_answer() {
        CallToolResult::success(content)
    } else {
        CallToolResult::error(content)
    };
    result.structured_content = Some(answer.json());
    result
}
