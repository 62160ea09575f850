//! Drives one turn's stream. Given a backend and a request, sends deltas and then exactly one ending to the loop's
//! inbox. Dropping the task drops the stream, which closes the connection and stops child processes.

use crate::attachments;
use futures::{FutureExt, StreamExt};
use kd_backends::{Backend, Spending};
use kd_core::media;
use kd_core::secrets::{Masker, Secrets};
use kd_core::{Delta, Failure, FailureKind, Input, Request, TurnId, Usage};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Maximum deltas taken at once when the loop is behind; adjacent text among them is merged into one delta.
const BATCH: usize = 64;

/// Starts a turn, which sends its deltas and its ending to the inbox.
pub(crate) fn start(
    turn: TurnId,
    backend: Result<Arc<dyn Backend>, Failure>,
    request: Request,
    spending: Spending,
    inbox: mpsc::Sender<Input>,
    (secrets, folder): (Arc<Secrets>, PathBuf),
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let ended = match backend {
            Err(failure) => Err(failure),
            Ok(backend) => {
                let asking = async {
                    let request = attached(turn, request, folder, &inbox).await?;
                    drive(turn, backend, request, &spending, &inbox, &secrets).await
                };
                AssertUnwindSafe(asking)
                    .catch_unwind()
                    .await
                    .unwrap_or_else(|_| Err(fault()))
            }
        };
        let used = spending.close();
        if let Err(mut failure) = ended {
            failure.used = Some(Box::new(used));
            // If the loop is gone, nothing needs the result.
            let _ = inbox.send(Input::Failed { turn, failure }).await;
        }
    })
}

/// Adds the pictures and documents that the prompt names, and tells which cannot be sent.
async fn attached(
    turn: TurnId,
    mut request: Request,
    folder: PathBuf,
    inbox: &mpsc::Sender<Input>,
) -> Result<Request, Failure> {
    if !attachments::are_named(&request.prompt) {
        return Ok(request);
    }
    // Files may be large, or on a slow disk.
    let seat = request.seat.clone();
    let loading = tokio::task::spawn_blocking(move || {
        let lost = attachments::load(&mut request, &folder);
        (request, lost)
    });
    let (request, lost) = loading.await.map_err(|_| fault())?;
    if !lost.is_empty() {
        let lost: Vec<&str> = lost.iter().map(String::as_str).collect();
        let why = "it is no longer in the folder of the thread, or the newer files fill a request";
        let text = media::unseen_notice(&seat, &lost, why);
        send(turn, Delta::Notice { text }, inbox).await;
    }
    Ok(request)
}

fn fault() -> Failure {
    Failure::new(FailureKind::Crashed, "the backend crashed: a bug in kd")
        .advise("please report it with the output of the same command under RUST_BACKTRACE=1")
}

async fn drive(
    turn: TurnId,
    backend: Arc<dyn Backend>,
    request: Request,
    spending: &Spending,
    inbox: &mpsc::Sender<Input>,
    secrets: &Secrets,
) -> Result<(), Failure> {
    let mut veil = Veil::new(secrets);
    let mut stream = backend.ask(request).fuse();
    let mut next = stream.next().await;
    while let Some(first) = next {
        let mut joined = Joiner::default();
        let mut item = Some(first);
        let mut taken = 0;
        while let Some(one) = item {
            match one {
                Ok(mut delta) => {
                    let last = matches!(delta, Delta::Finished { .. });
                    if let Delta::Finished { usage, .. } = &mut delta {
                        *usage = told(*usage, spending);
                    }
                    for delta in veil.over(delta) {
                        if let Some(ready) = joined.push(delta) {
                            send(turn, ready, inbox).await;
                        }
                    }
                    if last {
                        if let Some(ready) = joined.take() {
                            send(turn, ready, inbox).await;
                        }
                        return Ok(());
                    }
                }
                Err(failure) => {
                    for delta in veil.end() {
                        if let Some(ready) = joined.push(delta) {
                            send(turn, ready, inbox).await;
                        }
                    }
                    if let Some(ready) = joined.take() {
                        send(turn, ready, inbox).await;
                    }
                    return Err(failure);
                }
            }
            taken += 1;
            // Take what is already available. The end of the stream is seen again below.
            item = match taken < BATCH {
                true => stream.next().now_or_never().flatten(),
                false => None,
            };
        }
        if let Some(ready) = joined.take() {
            send(turn, ready, inbox).await;
        }
        next = stream.next().await;
    }
    for delta in veil.end() {
        send(turn, delta, inbox).await;
    }
    Err(Failure::new(FailureKind::Decode, "the answer was cut off"))
}

/// Returns the turn's total usage. Prefers the account where it knows more than the answer: earlier attempts, or the
/// upper bound for an answer that costs money and came without usage.
fn told(usage: Option<Usage>, spending: &Spending) -> Option<Usage> {
    let used = spending.told();
    let counted = used.requests > 1 || used.usage.cost_usd.is_some_and(|usd| usd > 0.0);
    match usage {
        _ if counted => Some(used.usage),
        // Only the account knows who pays.
        usage => usage.map(|usage| Usage {
            login_usd: used.usage.login_usd,
            unpriced: used.usage.unpriced,
            ..usage
        }),
    }
}

async fn send(turn: TurnId, delta: Delta, inbox: &mpsc::Sender<Input>) {
    let _ = inbox.send(Input::Delta { turn, delta }).await;
}

/// Masks secrets in the answer of one turn. Holds back text that may be the beginning of a secret until the next piece.
struct Veil<'a> {
    secrets: &'a Secrets,
    text: Masker,
    thinking: Masker,
}

impl<'a> Veil<'a> {
    fn new(secrets: &'a Secrets) -> Self {
        Self {
            secrets,
            text: Masker::default(),
            thinking: Masker::default(),
        }
    }

    /// Masks a delta. The result includes earlier text that is no longer held back.
    fn over(&mut self, mut delta: Delta) -> Vec<Delta> {
        match &mut delta {
            Delta::Text { text } => *text = self.text.push(self.secrets, text),
            Delta::Thinking { text } => *text = self.thinking.push(self.secrets, text),
            Delta::Tool { name, detail } => {
                self.secrets.mask_in_place(name);
                self.secrets.mask_in_place(detail);
            }
            Delta::Notice { text } => drop(self.secrets.mask_in_place(text)),
            // A retry voids everything before it.
            Delta::Retrying { .. } => *self = Self::new(self.secrets),
            Delta::Finished { text, .. } => {
                if let Some(whole) = text {
                    self.secrets.mask_in_place(whole);
                }
                let mut out = self.end();
                out.push(delta);
                return out;
            }
            // Their names are those of the service, which may repeat what it was sent.
            Delta::Started {
                model,
                version,
                session,
            } => {
                for name in [model, version, session].into_iter().flatten() {
                    self.secrets.mask_in_place(name);
                }
            }
            Delta::Call { .. } => {}
        }
        let is_empty =
            matches!(&delta, Delta::Text { text } | Delta::Thinking { text } if text.is_empty());
        match is_empty {
            true => Vec::new(),
            false => vec![delta],
        }
    }

    /// Returns the text still held back.
    fn end(&mut self) -> Vec<Delta> {
        let thinking = self.thinking.end(self.secrets);
        let text = self.text.end(self.secrets);
        let deltas = [Delta::Thinking { text: thinking }, Delta::Text { text }];
        let has_words = |delta: &Delta| !matches!(delta, Delta::Text { text } | Delta::Thinking { text } if text.is_empty());
        deltas.into_iter().filter(has_words).collect()
    }
}

/// Merges adjacent pieces of text or thinking.
#[derive(Default)]
pub(crate) struct Joiner(Option<Delta>);

impl Joiner {
    /// Takes the next delta; returns the previous one if the two do not merge.
    pub(crate) fn push(&mut self, next: Delta) -> Option<Delta> {
        match (&mut self.0, &next) {
            (Some(Delta::Text { text }), Delta::Text { text: more })
            | (Some(Delta::Thinking { text }), Delta::Thinking { text: more }) => {
                text.push_str(more);
                None
            }
            _ => self.0.replace(next),
        }
    }

    pub(crate) fn take(&mut self) -> Option<Delta> {
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Delta {
        Delta::Text { text: text.into() }
    }

    fn thinking(text: &str) -> Delta {
        Delta::Thinking { text: text.into() }
    }

    #[test]
    fn adjacent_text_joins_and_order_stays() {
        let mut joiner = Joiner::default();
        let mut out: Vec<Delta> = [
            text("a"),
            text("b"),
            thinking("c"),
            thinking("d"),
            text("e"),
        ]
        .into_iter()
        .filter_map(|delta| joiner.push(delta))
        .collect();
        out.extend(joiner.take());
        assert_eq!(out, [text("ab"), thinking("cd"), text("e")]);
    }
}
