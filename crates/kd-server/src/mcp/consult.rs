//! Carries a consultation from the question to its end: tells progress to a caller that wants it, and stops when the caller
//! cancels or leaves.

use super::answer::Answer;
use super::tools::refused;
use crate::kingdom::Started;
use kd_core::{Event, Op};
use kd_engine::Update;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long councils that are stopped get to write down what came.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The consultations of one server. Each runs in a task of its own, so that a caller who leaves cannot keep what came from
/// being written.
#[derive(Clone, Default)]
pub(super) struct Consultations {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Consultations {
    /// Runs a session to its end, or until the caller cancels or leaves.
    pub(super) async fn run(
        &self,
        started: Started,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        let stop = self.stop.child_token();
        let _left = stop.clone().drop_guard();
        let progress = context
            .meta
            .get_progress_token()
            .map(|token| (token, context.peer.clone()));
        let mut running = self.tasks.spawn(run(started, progress, stop.clone()));
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = context.ct.cancelled() => {
                stop.cancel();
                running.await
            }
        };
        ended.unwrap_or_else(|e| refused(&format!("the council broke off: {e}")))
    }

    /// Stops all, and waits until what came is written.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(LAST_WORDS, self.tasks.wait()).await;
    }
}

/// Runs a session to its end; `stop` interrupts it.
async fn run(
    started: Started,
    caller: Option<(ProgressToken, Peer<RoleServer>)>,
    stop: CancellationToken,
) -> CallToolResult {
    let Started {
        mut session,
        say,
        notices,
    } = started;
    let mut updates = session.subscribe();
    if let Err(why) = session.send(say) {
        return refused(&format!("{why}: {}", why.hint()));
    }
    let mut answer = Answer::new(notices);
    let mut progress = 0.0;
    let mut stopped = false;
    while answer.ended.is_none() {
        let update = tokio::select! {
            update = updates.next() => update,
            () = stop.cancelled(), if !stopped => {
                stopped = true;
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
                    let refusal = refused(why);
                    session.close().await;
                    return refusal;
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
        if let (Some(line), Some((token, peer)), false) = (line, &caller, stopped) {
            progress += 1.0;
            let told = ProgressNotificationParam::new(token.clone(), progress).with_message(line);
            // A caller that is gone is no longer told; that it is gone is seen elsewhere.
            let _ = peer.notify_progress(told).await;
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
