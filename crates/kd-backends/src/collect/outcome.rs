//! Turns the results of a provider batch into outcomes of its requests.

use super::http::Link;
use super::wire::{Endpoint, Outcome, Unanswered, said};
use super::{Answer, Item, ParcelResult};
use crate::spending::Permit;
use crate::status;
use crate::transport::http::read_whole;
use kd_core::spending::{Price, Spent};
use kd_core::usage::Certainty;
use kd_core::{Delta, Failure, FailureKind, Usage};
use serde_json::Value;

/// How a request is paid.
pub(super) enum Paid {
    /// Its tokens.
    Tokens(Usage),
    /// An unknown amount: its maximum counts.
    Most,
    /// The call alone: the service refused it.
    Call,
    /// Nothing: it was not asked.
    Nothing,
}

/// A request whose provider batch is over.
pub(super) struct Done {
    pub(super) result: ParcelResult,
    pub(super) answer: Answer,
    pub(super) paid: Paid,
}

/// Returns the price of a token in a provider batch.
pub(super) fn price(link: &Link) -> Option<Price> {
    let price = link.service.price(&link.model)?;
    let part = link.service.batch_price().unwrap_or(1.0);
    let scaled = |pico: u64| (pico as f64 * part).ceil() as u64;
    Some(Price {
        input: scaled(price.input),
        output: scaled(price.output),
    })
}

/// Adds the price of a request in a provider batch to its usage.
fn priced(link: &Link, usage: Usage) -> Usage {
    let states = usage.cost_usd.is_some_and(|usd| usd > 0.0);
    let mut usage = link.service.with_price(&link.model, usage);
    if !states {
        let part = link.service.batch_price().unwrap_or(1.0);
        usage.cost_usd = usage.cost_usd.map(|usd| usd * part);
    }
    usage
}

/// The fields in which services report the usage of a reply.
const USAGE: [&str; 2] = ["usage", "usageMetadata"];

/// Reads a reply: its deltas, and its usage with its price.
pub(super) fn read(link: &Link, endpoint: &dyn Endpoint, reply: Value) -> (Answer, Option<Usage>) {
    let mut bare = reply.clone();
    let mut whole = read_whole(link.dialect.decoder(), &endpoint.events(reply));
    let fields = bare.as_object_mut().map(|bare| {
        let had = USAGE.iter().filter(|field| bare.remove(**field).is_some());
        had.count()
    });
    // An answer whose usage cannot be read is an answer.
    if whole.usage.is_none() && fields.is_some_and(|had| had > 0) {
        let again = read_whole(link.dialect.decoder(), &endpoint.events(bare));
        if again.failure.is_none() {
            whole = again;
        }
    }
    let deltas = whole.deltas.into_iter().map(|delta| match delta {
        Delta::Finished {
            finish,
            text,
            usage,
            choices,
        } => Delta::Finished {
            finish,
            text,
            usage: usage.map(|usage| priced(link, usage)),
            choices,
        },
        delta => delta,
    });
    let answer = Answer {
        deltas: deltas.collect(),
        failure: whole.failure,
        error: None,
    };
    (answer, whole.usage.map(|usage| priced(link, usage)))
}

/// Returns what the outcome of a request means.
pub(super) fn done(link: &Link, endpoint: &dyn Endpoint, item: &Item, outcome: Outcome) -> Done {
    let (answer, reply, paid) = match outcome {
        Outcome::Reply(reply) => {
            let text = reply.to_string();
            let (answer, usage) = read(link, endpoint, reply);
            let is_known = |usage: &Usage| {
                usage.certainty == Certainty::Exact
                    && (usage.counts_tokens() || usage.cost_usd.is_some())
            };
            let paid = usage.filter(is_known).map_or(Paid::Most, Paid::Tokens);
            (answer, Some(text), paid)
        }
        Outcome::Error(code, error) => (refused(link, code, &error), None, Paid::Call),
        Outcome::Not(how) => {
            let paid = match how {
                Unanswered::Missing => Paid::Most,
                Unanswered::Expired | Unanswered::Cancelled => Paid::Nothing,
            };
            (Answer::failed(unanswered(link, how)), None, paid)
        }
    };
    let spent = match &paid {
        Paid::Tokens(usage) => Spent::of_turn(1, usage, price(link)),
        Paid::Most => item.most,
        Paid::Call => Spent {
            calls: 1,
            ..Spent::default()
        },
        Paid::Nothing => Spent::default(),
    };
    Done {
        result: ParcelResult {
            id: item.id.clone(),
            reply,
            spent,
        },
        answer,
        paid,
    }
}

/// Charges a request.
pub(super) fn settle(permit: Permit, paid: &Paid) {
    match paid {
        Paid::Tokens(usage) => drop(permit.settle(Some(usage))),
        Paid::Most => permit.unknown(),
        Paid::Call => permit.refused(),
        Paid::Nothing => permit.unsent(),
    }
}

fn refused(link: &Link, code: Option<u16>, error: &Value) -> Answer {
    let inner = error.get("error").filter(|error| error.is_object());
    let inner = inner.unwrap_or(error);
    let text = said(error);
    let mut failure = match code {
        Some(code) => status::from_code(code, &text),
        None => status::in_stream(inner),
    };
    failure.message = match code {
        Some(code) => format!("`{}` answered HTTP {code}: {text}", link.service.name),
        None => format!("`{}` refused the request: {text}", link.service.name),
    };
    let assumed = match failure.kind {
        FailureKind::Invalid => 400,
        _ => 0,
    };
    Answer {
        error: Some((code.unwrap_or(assumed), error.to_string())),
        ..Answer::failed(failure)
    }
}

fn unanswered(link: &Link, how: Unanswered) -> Failure {
    let name = &link.service.name;
    match how {
        Unanswered::Expired => Failure::new(
            FailureKind::Overloaded,
            format!("`{name}` did not get to the request before its batch expired"),
        )
        .advise("run the same command again, or leave out --provider-batch"),
        Unanswered::Cancelled => Failure::new(
            FailureKind::Cancelled,
            format!("the batch was cancelled at `{name}`"),
        ),
        Unanswered::Missing => Failure::new(
            FailureKind::Decode,
            format!("`{name}` has no result for the request"),
        )
        .advise("the request is asked again; the provider may bill it twice"),
    }
}
