//! A provider batch from the hand-over to its results: submit, wait, read, settle.

use super::ask::unkept;
use super::http::{CallFailure, Link};
use super::outcome::{self, Done};
use super::wire::{Call, Endpoint, Outcome, Parcel, State, Unanswered};
use super::{Answer, Inner, Item, ParcelItem, ParcelRecord, ParcelResult, Told, endpoints, now};
use crate::adapters;
use crate::providers::Service;
use crate::spending::Spending;
use kd_core::spending::Spent;
use kd_core::{Failure, FailureKind};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The first pause before a provider is asked whether a batch is over; each further one is half as long again.
const POLL_FIRST: Duration = Duration::from_secs(1);
/// The longest such pause, unless the provider asks for a longer one.
const POLL_MAX: Duration = Duration::from_secs(60);
/// How often a batch is submitted before its requests fail.
const SUBMITS_MAX: u32 = 8;
/// How often results are read before those that are missing are given up.
const READS_MAX: u32 = 4;
/// How often the rest of a refused batch is submitted.
const REFUSALS_MAX: u32 = 3;
/// The pause where a provider says that too much is waiting.
const FULL_PAUSE: Duration = Duration::from_secs(60);
/// How often such a batch is submitted: for a day.
const FULL_MAX: u32 = 24 * 60;

/// What a hand-over gave.
enum Handed {
    /// The provider's id.
    Accepted(String),
    /// It did not take it.
    Refused(Failure),
}

/// Hands requests over, and waits for their results.
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
            Err(failure) => return leave(&inner, &items, &failure),
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
        Err(failure) => match forget(inner, name).await {
            Ok(()) => Handed::Refused(failure),
            Err(why) => Handed::Refused(unkept(&why)),
        },
    }
}

/// Uploads and creates a batch, again after failures that may pass. A creation whose response was lost is looked for first.
async fn sent(
    link: &Link,
    endpoint: &dyn Endpoint,
    parcel: &Parcel<'_>,
    since: i64,
) -> Result<String, Failure> {
    let mut pause = POLL_FIRST;
    let mut attempt = 1;
    loop {
        let failed = match once(link, endpoint, parcel).await {
            Ok(id) => return Ok(id),
            Err(failed) => failed,
        };
        if !failed.is_passing() || attempt >= SUBMITS_MAX {
            return Err(failed.failure);
        }
        tokio::time::sleep(next(&mut pause, failed.failure.retry_after)).await;
        if failed.code.is_none_or(|code| code >= 500)
            && let Ok(Some(id)) = found(link, parcel.name, since, parcel.requests.len()).await
        {
            return Ok(id);
        }
        attempt += 1;
    }
}

async fn once(
    link: &Link,
    endpoint: &dyn Endpoint,
    parcel: &Parcel<'_>,
) -> Result<String, CallFailure> {
    let id_of = |response: &Value| {
        endpoint.id(response).ok_or_else(|| {
            let what = format!("`{}` gave no id for the batch", link.service.name);
            CallFailure {
                code: None,
                failure: Failure::new(FailureKind::Decode, what),
            }
        })
    };
    let file = match endpoint.upload(parcel) {
        Some(upload) => Some(id_of(&link.json(&upload).await?)?),
        None => None,
    };
    id_of(&link.json(&endpoint.create(parcel, file.as_deref())).await?)
}

/// Looks for our batch in the provider's list.
async fn found(
    link: &Link,
    name: &str,
    since: i64,
    count: usize,
) -> Result<Option<String>, Failure> {
    let endpoint = endpoints::endpoint(link.service.wire);
    let list = patient(link, &endpoint.list()).await;
    let list = list.map_err(|failed| failed.failure)?;
    Ok(endpoint.find(&list, name, since, count))
}

/// Calls until there is a response: failures that may pass are waited for.
async fn patient(link: &Link, call: &Call) -> Result<Value, CallFailure> {
    let mut pause = POLL_FIRST;
    loop {
        match link.json(call).await {
            Ok(response) => return Ok(response),
            Err(failed) if failed.is_passing() => {
                tokio::time::sleep(next(&mut pause, failed.failure.retry_after)).await;
            }
            Err(failed) => return Err(failed),
        }
    }
}

/// Returns the next pause: half as long again, or as long as the provider asks.
fn next(pause: &mut Duration, asked: Option<Duration>) -> Duration {
    let now = *pause;
    *pause = pause.mul_f64(1.5).min(POLL_MAX);
    now.max(asked.unwrap_or_default())
}

/// Waits until a batch is over, and hands its results over. Returns its last state; requests of a refused batch stay in
/// `items`.
async fn wait(
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
    let mut pause = POLL_FIRST;
    let state = loop {
        tokio::time::sleep(next(&mut pause, None)).await;
        match patient(link, &endpoint.poll(id)).await {
            Ok(response) => match endpoint.state(id, &response, &ids) {
                State::Working => {}
                state => break state,
            },
            Err(failed) if failed.code == Some(404) => {
                (inner.tell)(Told::Warning(format!(
                    "`{}` does not know batch {id} any more; its requests are asked again",
                    link.service.name
                )));
                break State::Ended {
                    here: Vec::new(),
                    files: Vec::new(),
                    rest: Unanswered::Expired,
                };
            }
            Err(failed) => {
                leave(inner, items, &failed.failure);
                items.clear();
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

/// Reads all results of a batch, by request. The first result of a request counts.
async fn read(
    inner: &Arc<Inner>,
    link: &Link,
    here: Vec<Value>,
    files: &[Call],
    ids: &[String],
) -> HashMap<String, Outcome> {
    let endpoint = endpoints::endpoint(link.service.wire);
    let mut found: HashMap<String, Outcome> = HashMap::new();
    let (mut odd, mut bad) = (0_u64, 0_u64);
    let known: std::collections::HashSet<&str> = ids.iter().map(String::as_str).collect();
    let mut keep = |line: Value, odd: &mut u64| match endpoint.outcome(line) {
        Some((id, outcome)) if known.contains(id.as_str()) && !found.contains_key(&id) => {
            found.insert(id, outcome);
        }
        _ => *odd += 1,
    };
    for line in here {
        keep(line, &mut odd);
    }
    for file in files {
        let mut pause = POLL_FIRST;
        for attempt in 1..=READS_MAX {
            // Lines that were read before a cut come again.
            let mut odd_now = 0;
            let read = {
                let mut each = |line| keep(line, &mut odd_now);
                link.lines(file, &mut each).await
            };
            match read {
                Ok(lines) => {
                    bad += lines;
                    odd += if attempt == 1 { odd_now } else { 0 };
                    break;
                }
                Err(failed) if attempt < READS_MAX && failed.failure.kind != FailureKind::Auth => {
                    tokio::time::sleep(next(&mut pause, failed.failure.retry_after)).await;
                }
                Err(failed) => (inner.tell)(Told::Warning(failed.failure.message)),
            }
        }
    }
    if odd + bad > 0 {
        (inner.tell)(Told::Warning(format!(
            "`{}` gave {} that belong to no request or come twice, and {bad} that could not be read; they are left out",
            link.service.name,
            plural(odd, "result")
        )));
    }
    found
}

fn plural(n: u64, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// Records the results of a batch, charges them, and hands them to the requests that wait.
async fn finish(
    inner: &Arc<Inner>,
    link: &Link,
    (name, id): (&str, &str),
    items: Vec<Item>,
    mut outcomes: HashMap<String, Outcome>,
    rest: Unanswered,
) {
    let endpoint = endpoints::endpoint(link.service.wire);
    let (mut replied, mut failed, mut unasked) = (0, 0, 0);
    let done: Vec<(Item, Done)> = items
        .into_iter()
        .map(|item| {
            let outcome = outcomes.remove(&item.id).unwrap_or(Outcome::Not(rest));
            match &outcome {
                Outcome::Reply(_) => replied += 1,
                Outcome::Error(..) | Outcome::Not(Unanswered::Missing) => failed += 1,
                Outcome::Not(_) => unasked += 1,
            }
            let done = outcome::done(link, endpoint, &item, outcome);
            (item, done)
        })
        .collect();
    let results: Vec<ParcelResult> = done.iter().map(|(_, done)| done.result.clone()).collect();
    let own = name.to_owned();
    if let Err(why) = inner.stored(move |store| store.ended(&own, &results)).await {
        // The results stay at the provider, and the batch in the store.
        let failure = unkept(&why);
        let items: Vec<Item> = done.into_iter().map(|(item, _)| item).collect();
        return leave(inner, &items, &failure);
    }
    for (item, done) in done {
        if let Some(permit) = item.permit {
            // If the turn is over, its account has given the money back: the run is charged.
            let permit = match permit.most() {
                Some(_) => Some(permit),
                None => inner.resumed(link, item.most, item.usage),
            };
            if let Some(permit) = permit {
                outcome::settle(permit, &done.paid);
            }
        }
        let has_reply = done.result.reply.is_some();
        inner.hand_over(&item.id, &item.digest, done.answer, has_reply);
    }
    (inner.tell)(Told::Over {
        service: link.service.name.clone(),
        id: id.to_owned(),
        replied,
        failed,
        unasked,
    });
}

impl Inner {
    /// Reserves in the account of the run for a request whose turn is over.
    fn resumed(
        &self,
        link: &Link,
        most: Spent,
        usage: kd_core::Usage,
    ) -> Option<crate::spending::Permit> {
        let state = self.lock();
        let (_, spending) = state.links.get(&link.service.name)?;
        let spending = spending.clone();
        drop(state);
        Some(spending.resume(most, usage, outcome::price(link)))
    }
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

async fn forget(inner: &Arc<Inner>, name: &str) -> Result<(), String> {
    let name = name.to_owned();
    inner.stored(move |store| store.unsent(&name)).await
}

/// Ends requests that were not asked.
fn fail_all(inner: &Inner, items: Vec<Item>, failure: &Failure) {
    for item in items {
        if let Some(permit) = item.permit {
            permit.unsent();
        }
        inner.hand_over(
            &item.id,
            &item.digest,
            Answer::failed(failure.clone()),
            false,
        );
    }
}

/// Ends the wait for requests whose batch goes on at the provider: the next run collects it.
fn leave(inner: &Inner, items: &[Item], failure: &Failure) {
    for item in items {
        let answer = Answer::failed(failure.clone());
        inner.hand_over(&item.id, &item.digest, answer, false);
    }
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
