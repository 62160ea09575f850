//! A provider batch on its way: handed over, found again, cancelled.

use super::ask::unkept;
use super::http::{CallFailure, Link};
use super::outcome;
use super::pauses::next;
use super::polls::{found, wait};
use super::settle::{fail_all, unknown};
use super::wire::{Endpoint, Parcel, State};
use super::{Inner, Item, ParcelError, ParcelItem, ParcelRecord, Told, endpoints, now};
use crate::adapters;
use crate::providers::Service;
use crate::spending::Spending;
use kd_core::{Failure, FailureKind};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How often a batch is submitted before its requests fail.
const SUBMITS_MAX: u32 = 8;
/// How often the rest of a refused batch is submitted.
const REFUSALS_MAX: u32 = 3;
/// The pause where a provider says that too much is waiting.
const FULL_PAUSE: Duration = Duration::from_secs(60);
/// Number of attempts to submit such a batch: enough for a day.
const FULL_MAX: u32 = 24 * 60;

/// The result of submitting a batch.
enum Handed {
    /// The provider's id.
    Accepted(String),
    /// It did not take it.
    Refused(Failure),
    /// Whether it took it is not known.
    Unclear(Failure),
}

/// Submits requests, and waits for their results.
pub(super) async fn deliver(inner: Arc<Inner>, link: Link, mut items: Vec<Item>) {
    let (mut refusals, mut full) = (0, 0);
    while !items.is_empty() {
        let name = inner.name();
        let Some(id) = hand_over(&inner, &link, &name, &mut items).await else {
            return;
        };
        let requests = items.len();
        (inner.tell)(Told::Sent {
            service: link.service.name.clone(),
            id: id.clone(),
            requests,
        });
        let State::Failed { why, wrong, later } =
            wait(&inner, &link, (&name, &id), &mut items).await
        else {
            return;
        };
        // Nothing of a refused batch was asked.
        if let Err(why) = forget(&inner, &name).await {
            return fail_all(&inner, items, &unkept(&why));
        }
        if later && full < FULL_MAX {
            full += 1;
            tokio::time::sleep(FULL_PAUSE).await;
            continue;
        }
        refusals += 1;
        let told = format!("`{}` refused the batch: {why}", link.service.name);
        let failure = Failure::new(FailureKind::Invalid, told);
        if wrong.is_empty() || refusals >= REFUSALS_MAX {
            return fail_all(&inner, items, &failure);
        }
        let mut good = Vec::new();
        let mut bad = Vec::new();
        for (at, item) in items.into_iter().enumerate() {
            match wrong.contains(&at) {
                true => bad.push(item),
                false => good.push(item),
            }
        }
        fail_all(&inner, bad, &failure);
        items = good;
    }
}

/// Follows a provider batch of an earlier run.
pub(super) async fn follow(
    inner: Arc<Inner>,
    parcel: ParcelRecord,
    service: Arc<Service>,
    spending: Spending,
) {
    let link = Link {
        dialect: adapters::dialect(service.wire),
        service,
        model: parcel.model.clone(),
    };
    let price = outcome::price(&link);
    let mut items: Vec<Item> = parcel
        .items
        .iter()
        .map(|item| Item {
            id: item.id.clone(),
            digest: item.digest.clone(),
            thread: item.thread.clone(),
            bytes: Vec::new(),
            permit: Some(spending.resume(item.most, item.usage, price)),
            most: item.most,
            usage: item.usage,
        })
        .collect();
    let remote = match parcel.remote.clone() {
        Some(remote) => Some(remote),
        None => match found(&link, &parcel.name, parcel.at.as_second(), items.len()).await {
            Ok(remote) => remote,
            Err(failure) => {
                return unknown(&inner, &link, &parcel.name, items, failure).await;
            }
        },
    };
    let Some(remote) = remote else {
        // It was never sent: its requests are asked like any other.
        let _ = forget(&inner, &parcel.name).await;
        return fail_all(&inner, items, &unsent(&link));
    };
    if parcel.remote.is_none() {
        let (name, id) = (parcel.name.clone(), remote.clone());
        let _ = inner.stored(move |store| store.sent(&name, &id)).await;
    }
    (inner.tell)(Told::Resumed {
        service: link.service.name.clone(),
        id: remote.clone(),
        requests: items.len(),
    });
    let state = wait(&inner, &link, (&parcel.name, &remote), &mut items).await;
    if let State::Failed { .. } = state {
        let _ = forget(&inner, &parcel.name).await;
        fail_all(&inner, items, &unsent(&link));
    }
}

fn unsent(link: &Link) -> Failure {
    Failure::new(
        FailureKind::Overloaded,
        format!("`{}` has not taken the request", link.service.name),
    )
}

/// Submits a batch; `None` if its requests have failed.
async fn hand_over(
    inner: &Arc<Inner>,
    link: &Link,
    name: &str,
    items: &mut Vec<Item>,
) -> Option<String> {
    inner.handing.send_modify(|handing| *handing += 1);
    let handed = submit(inner, link, name, items).await;
    inner.handing.send_modify(|handing| *handing -= 1);
    match handed {
        Handed::Accepted(id) => Some(id),
        Handed::Refused(failure) => {
            fail_all(inner, std::mem::take(items), &failure);
            None
        }
        Handed::Unclear(failure) => {
            unknown(inner, link, name, std::mem::take(items), failure).await;
            None
        }
    }
}

async fn submit(inner: &Arc<Inner>, link: &Link, name: &str, items: &mut [Item]) -> Handed {
    let endpoint = endpoints::endpoint(link.service.wire);
    let record = ParcelRecord {
        name: name.to_owned(),
        service: link.service.name.clone(),
        model: link.model.clone(),
        remote: None,
        at: now(),
        items: items.iter().map(record_of).collect(),
    };
    let since = record.at.as_second();
    if let Err(why) = inner.stored(move |store| store.sending(&record)).await {
        return Handed::Refused(unkept(&why));
    }
    let requests: Vec<Vec<u8>> = items
        .iter()
        .map(|item| {
            let body = serde_json::from_slice(&item.bytes).unwrap_or_default();
            endpoint.request(&item.id, body).to_string().into_bytes()
        })
        .collect();
    let parcel = Parcel {
        name,
        model: &link.model,
        requests: &requests,
    };
    match sent(link, endpoint, &parcel, since).await {
        Ok(id) => {
            let (name, remote) = (name.to_owned(), id.clone());
            if let Err(why) = inner.stored(move |store| store.sent(&name, &remote)).await {
                // It is found again by its name.
                (inner.tell)(Told::Warning(format!(
                    "the id of batch {id} at `{}` cannot be recorded: {why}",
                    link.service.name
                )));
            }
            Handed::Accepted(id)
        }
        Err(Unsent {
            failure,
            unclear: true,
        }) => Handed::Unclear(failure),
        Err(Unsent { failure, .. }) => match forget(inner, name).await {
            Ok(()) => Handed::Refused(failure),
            Err(why) => Handed::Refused(unkept(&why)),
        },
    }
}

/// Why a batch was not handed over.
struct Unsent {
    failure: Failure,
    /// Whether the provider may have it.
    unclear: bool,
}

/// Uploads and creates a batch, again after failures that may pass. A creation whose response was lost or cannot be read is
/// looked for first: it must not be created twice.
async fn sent(
    link: &Link,
    endpoint: &dyn Endpoint,
    parcel: &Parcel<'_>,
    since: i64,
) -> Result<String, Unsent> {
    let mut pause = link.service.batch_pause();
    let mut attempt = 1;
    loop {
        let (failed, was_created) = match once(link, endpoint, parcel).await {
            Ok(id) => return Ok(id),
            Err(failed) => failed,
        };
        let is_unclear = was_created && failed.is_unclear();
        let is_last = attempt >= SUBMITS_MAX || !(failed.is_passing() || is_unclear);
        if is_unclear {
            tokio::time::sleep(next(&mut pause, failed.failure.retry_after)).await;
            match found(link, parcel.name, since, parcel.requests.len()).await {
                Ok(Some(id)) => return Ok(id),
                Ok(None) => {}
                Err(failure) => {
                    return Err(Unsent {
                        failure,
                        unclear: true,
                    });
                }
            }
        }
        if is_last {
            return Err(Unsent {
                failure: failed.failure,
                unclear: false,
            });
        }
        if !is_unclear {
            tokio::time::sleep(next(&mut pause, failed.failure.retry_after)).await;
        }
        attempt += 1;
    }
}

/// Uploads and creates a batch; a failure comes with whether the creation was sent.
async fn once(
    link: &Link,
    endpoint: &dyn Endpoint,
    parcel: &Parcel<'_>,
) -> Result<String, (CallFailure, bool)> {
    let id_of = |response: &Value| {
        endpoint.id(response).ok_or_else(|| {
            let what = format!("`{}` gave no id for the batch", link.service.name);
            CallFailure {
                code: None,
                is_own: false,
                failure: Failure::new(FailureKind::Decode, what),
            }
        })
    };
    let mut file = None;
    if let Some(call) = endpoint.upload(parcel) {
        let uploaded = link.json(&call).await;
        let id = uploaded.and_then(|response| id_of(&response));
        file = Some(id.map_err(|failed| (failed, false))?);
    }
    let call = endpoint.create(parcel, file.as_deref());
    let created = link.json(&call).await;
    let id = created.and_then(|response| id_of(&response));
    id.map_err(|failed| (failed, true))
}

fn record_of(item: &Item) -> ParcelItem {
    ParcelItem {
        id: item.id.clone(),
        digest: item.digest.clone(),
        thread: item.thread.clone(),
        most: item.most,
        usage: item.usage,
    }
}

async fn forget(inner: &Arc<Inner>, name: &str) -> Result<(), ParcelError> {
    let name = name.to_owned();
    inner.stored(move |store| store.unsent(&name)).await
}

/// Cancels provider batches at their providers. Returns how many, and the failures.
pub async fn cancel(backends: &crate::Backends, parcels: &[ParcelRecord]) -> (u64, Vec<Failure>) {
    let (mut cancelled, mut failures) = (0, Vec::new());
    for parcel in parcels {
        let Some(service) = backends.service(&parcel.service) else {
            continue;
        };
        let link = Link {
            dialect: adapters::dialect(service.wire),
            service,
            model: parcel.model.clone(),
        };
        let endpoint = endpoints::endpoint(link.service.wire);
        let count = parcel.items.len();
        let remote = match &parcel.remote {
            Some(remote) => Ok(Some(remote.clone())),
            None => found(&link, &parcel.name, parcel.at.as_second(), count).await,
        };
        let done = match remote {
            Ok(Some(id)) => link.json(&endpoint.cancel(&id)).await.map(|_| 1),
            Ok(None) => Ok(0),
            Err(failure) => Err(CallFailure {
                code: None,
                is_own: false,
                failure,
            }),
        };
        match done {
            Ok(one) => cancelled += one,
            Err(failed) => failures.push(failed.failure),
        }
    }
    (cancelled, failures)
}
