//! The end of a provider batch: its results are read, recorded, charged and handed to the requests that wait.

use super::ask::unkept;
use super::http::Link;
use super::outcome::{self, Done, Paid};
use super::pauses::next;
use super::wire::{Call, Outcome, Unanswered};
use super::{Answer, Inner, Item, ParcelResult, Rest, Told, endpoints};
use crate::spending::Permit;
use kd_core::spending::Spent;
use kd_core::{Failure, FailureKind};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Number of attempts to read results, before the missing ones count as lost.
const READS_MAX: u32 = 4;

/// Reads all results of a batch, by request. The first result of a request counts.
pub(super) async fn read(
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
        let mut pause = link.service.batch_pause();
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
pub(super) async fn finish(
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
        inner.charge(link, (item.permit, item.most, item.usage), &done.paid);
        let rest = match done.result.reply.is_some() {
            true => Rest::Reply,
            false => Rest::Nothing,
        };
        inner.hand_over(&item.id, &item.digest, done.answer, rest);
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
    /// Charges a request. If its turn is over, its account has given the money back: the run is charged.
    fn charge(
        &self,
        link: &Link,
        (permit, most, usage): (Option<Permit>, Spent, kd_core::Usage),
        paid: &Paid,
    ) {
        let permit = permit.and_then(|permit| match permit.most() {
            Some(_) => Some(permit),
            None => self.resumed(link, most, usage),
        });
        if let Some(permit) = permit {
            outcome::settle(permit, paid);
        }
    }

    /// Reserves in the account of the run for a request whose turn is over.
    fn resumed(&self, link: &Link, most: Spent, usage: kd_core::Usage) -> Option<Permit> {
        let state = self.lock();
        let (_, spending) = state.links.get(&link.service.name)?;
        let spending = spending.clone();
        drop(state);
        Some(spending.resume(most, usage, outcome::price(link)))
    }
}

/// Ends requests that were not asked.
pub(super) fn fail_all(inner: &Inner, items: Vec<Item>, failure: &Failure) {
    for item in items {
        if let Some(permit) = item.permit {
            permit.unsent();
        }
        inner.hand_over(
            &item.id,
            &item.digest,
            Answer::failed(failure.clone()),
            Rest::Nothing,
        );
    }
}

/// Ends the wait for requests whose batch continues at the provider. The next run collects it.
fn leave(inner: &Inner, items: &[Item], failure: &Failure) {
    for item in items {
        let answer = Answer::failed(failure.clone());
        inner.hand_over(&item.id, &item.digest, answer, Rest::Pending);
    }
}

/// Ends the wait for requests whose results cannot be had now: whether they were asked is not known, so each counts with
/// its maximum. The batch stays in the store, and the next run looks for it before it sends anything again.
pub(super) async fn unknown(
    inner: &Arc<Inner>,
    link: &Link,
    name: &str,
    items: Vec<Item>,
    failure: Failure,
) {
    let own = name.to_owned();
    if let Err(why) = inner.stored(move |store| store.unknown(&own)).await {
        (inner.tell)(Told::Warning(unkept(&why).message));
    }
    // The same question must not send the request again: that would pay for it twice.
    let kind = match failure.retryable() {
        true => FailureKind::Invalid,
        false => failure.kind,
    };
    let failure = Failure {
        kind,
        message: format!(
            "the results of the provider's batch are not known: {}",
            failure.message
        ),
        ..failure
    }
    .advise(ADVICE);
    for item in items {
        inner.charge(link, (item.permit, item.most, item.usage), &Paid::Most);
        let answer = Answer::failed(failure.clone());
        inner.hand_over(&item.id, &item.digest, answer, Rest::Pending);
    }
}

/// Advice where results are not known.
const ADVICE: &str = "its requests count with their maximum; `kd batch retry` and the same command look for the results again, and send nothing twice";
