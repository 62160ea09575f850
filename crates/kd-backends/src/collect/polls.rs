//! Asking a provider: whether a batch is over, and where one is that was handed over.

use super::http::{CallFailure, Link};
use super::pauses::next;
use super::settle::{finish, read, unknown};
use super::wire::{Call, State, Unanswered};
use super::{Inner, Item, Told, endpoints};
use kd_core::{Failure, FailureKind};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Maximum consecutive responses that are not answers, such as a redirect or an HTML page, before the wait ends.
const NONE_MAX: u32 = 6;
/// How many pages of a list are read.
const PAGES_MAX: usize = 100;
/// How much older than ours a batch in a list may be before the rest of the list is not read, in seconds.
const OLDER: i64 = 86_400;

/// Repeats the call until `read` understands the answer. Waits while failures may be temporary; repeats a few times after
/// any other answer, because a proxy in between may have sent it.
async fn patient<T>(
    link: &Link,
    call: &Call,
    pause: &mut Duration,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<T, CallFailure> {
    let mut none = 0;
    loop {
        let failed = match link.json(call).await {
            Ok(response) => match read(&response) {
                Some(found) => return Ok(found),
                None => link.no_answer(),
            },
            Err(failed) => failed,
        };
        if !failed.is_passing() {
            none += 1;
            if none >= NONE_MAX || failed.failure.kind == FailureKind::Auth {
                return Err(failed);
            }
        }
        tokio::time::sleep(next(pause, failed.failure.retry_after)).await;
    }
}

/// Looks for our batch in the provider's list, page by page.
///
/// # Errors
/// The list cannot be read to its end: whether the batch exists is not known.
pub(super) async fn found(
    link: &Link,
    name: &str,
    since: i64,
    count: usize,
) -> Result<Option<String>, Failure> {
    let endpoint = endpoints::endpoint(link.service.wire);
    let mut after: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let call = endpoint.list(after.as_deref());
        let mut pause = link.service.batch_pause();
        let page = patient(link, &call, &mut pause, |list| endpoint.page(list)).await;
        let page = page.map_err(|failed| failed.failure)?;
        if let Some(id) = endpoint.find(&page.batches, name, since, count) {
            return Ok(Some(id));
        }
        let is_older = page.oldest.is_some_and(|at| at < since - OLDER);
        match page.next {
            Some(next) if !is_older => after = Some(next),
            _ => return Ok(None),
        }
    }
    let what = format!(
        "`{}` lists more batches than `kd` reads, and the one that was handed over is not among them",
        link.service.name
    );
    Err(Failure::new(FailureKind::Invalid, what))
}

/// Waits until a batch is over, and hands its results over. Returns its last state; requests of a refused batch stay in
/// `items`.
pub(super) async fn wait(
    inner: &Arc<Inner>,
    link: &Link,
    (name, id): (&str, &str),
    items: &mut Vec<Item>,
) -> State {
    let requests = items.len() as u64;
    let count = |by: fn(u64, u64) -> u64| {
        let mut state = inner.lock();
        state.counts.parcels = by(state.counts.parcels, 1);
        state.counts.requests = by(state.counts.requests, requests);
    };
    count(u64::saturating_add);
    let endpoint = endpoints::endpoint(link.service.wire);
    let ids: Vec<String> = items.iter().map(|item| item.id.clone()).collect();
    let (mut pause, poll) = (link.service.batch_pause(), endpoint.poll(id));
    let state = loop {
        tokio::time::sleep(next(&mut pause, None)).await;
        let polled = patient(link, &poll, &mut pause, |response| {
            endpoint.state(id, response, &ids)
        });
        match polled.await {
            Ok(State::Working) => {}
            Ok(state) => break state,
            Err(failed) if failed.code == Some(404) && failed.is_own => {
                (inner.tell)(Told::Warning(format!(
                    "`{}` does not know batch {id} any more; its requests are asked again, and what they may have cost counts",
                    link.service.name
                )));
                break State::Ended {
                    here: Vec::new(),
                    files: Vec::new(),
                    rest: Unanswered::Missing,
                };
            }
            Err(failed) => {
                let items = std::mem::take(items);
                unknown(inner, link, name, items, failed.failure).await;
                break State::Working;
            }
        }
    };
    if let State::Ended { here, files, rest } = &state {
        let outcomes = read(inner, link, here.clone(), files, &ids).await;
        finish(
            inner,
            link,
            (name, id),
            std::mem::take(items),
            outcomes,
            *rest,
        )
        .await;
    }
    count(u64::saturating_sub);
    state
}
