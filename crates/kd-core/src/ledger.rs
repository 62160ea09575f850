//! Spending: one entry per request to a model, and sums of entries.
//!
//! Input: entries of the user's ledger. Output: sums by member, model, service, project or day.

use crate::cost::is_free;
use crate::spending::Spent;
use crate::usage::{Certainty, Usage, sane_usd};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;

pub use crate::usage::Billing;

/// The member, and how its requests are paid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payer {
    /// The member.
    pub member: String,
    /// The service or program.
    pub service: String,
    /// Its model; `None` if the program chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The way in which it is paid.
    #[serde(default)]
    pub billing: Billing,
}

/// One request in the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The version of the format.
    pub v: u32,
    /// The time when it was booked.
    pub at: Timestamp,
    /// The project folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// The member asked.
    #[serde(flatten)]
    pub payer: Payer,
    /// Tokens of the prompt.
    #[serde(rename = "in")]
    pub input: u64,
    /// Tokens of the answer.
    pub out: u64,
    /// US dollars; `None` if the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// The precision of the amounts.
    #[serde(default, skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

impl Entry {
    /// Creates the entry of a request. `priced`: whether the price of its model is known.
    pub fn new(payer: &Payer, at: Timestamp, spent: &Spent, usage: &Usage, priced: bool) -> Self {
        let free = payer.billing == Billing::Free;
        let known = priced || usage.cost_usd.is_some() || spent.pico_usd > 0;
        Self {
            v: crate::formats::LEDGER.version,
            at,
            project: String::new(),
            payer: payer.clone(),
            input: usage.input_tokens,
            out: usage.output_tokens,
            usd: (known && !free).then(|| spent.usd()),
            certainty: spent.certainty,
        }
    }

    /// Returns the money paid: with a key, or by unknown billing.
    pub fn paid_usd(&self) -> f64 {
        match self.payer.billing {
            Billing::Key | Billing::Unknown => sane_usd(self.usd),
            Billing::Login | Billing::Free => 0.0,
        }
    }

    /// Returns the price that the tokens of a login would have with a key.
    pub fn covered_usd(&self) -> f64 {
        match self.payer.billing {
            Billing::Login => sane_usd(self.usd),
            _ => 0.0,
        }
    }
}

/// The reason why a request must not be sent, for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// A limit of the whole run is reached. The text names it.
    #[error("{0} is reached")]
    Limit(String),
    /// The ledger has lost the run, or cannot record the request.
    #[error("{0}")]
    Lost(String),
}

/// Whether a request may be sent, once the ledger has recorded it.
pub type Noted = Pin<Box<dyn Future<Output = Result<(), NotSent>> + Send>>;

/// The ledger of all requests, shared by all runs of the user.
pub trait Ledger: std::fmt::Debug + Send + Sync {
    /// Records a request. Must not block for long.
    fn book(&self, entry: Entry);
    /// Returns the money paid today by all runs, in pico-dollars. `None` if unknown.
    fn today(&self) -> Option<u64>;
    /// A request is about to be sent: at most this is spent if nobody learns how it ended. Must not block: a ledger on
    /// another machine answers through the future. Who stops waiting for it drops it, then calls [`Ledger::settled`]: the request may
    /// be recorded by then, or later.
    fn sending(&self, _reservation: u64, _at_most: &Spent) -> Noted {
        Box::pin(std::future::ready(Ok(())))
    }
    /// A request that was announced by [`Ledger::sending`] has spent this. Also called if it was not sent after all.
    fn settled(&self, _reservation: u64, _spent: &Spent) {}
    /// A request is about to be sent under a limit for the day, in pico-dollars: at most this is spent. Other runs count it
    /// until [`Ledger::ended`], and what a run that is killed leaves open counts as spent. Must not block for long.
    ///
    /// # Errors
    /// The requests of all runs together may exceed the limit, or the request cannot be recorded.
    fn begins(&self, _request: u64, _at_most: Entry, _limit: u64) -> Result<(), NotSent> {
        Ok(())
    }
    /// A request of [`Ledger::begins`] has ended, and is in the ledger if it was sent.
    fn ended(&self, _request: u64) {}
    /// A limit of the whole run, or of the day, refused a request.
    fn exhausted(&self) {}
}

/// The grouping of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The member.
    Member,
    /// The model, with its service.
    Model,
    /// The service or program.
    Service,
    /// The project folder.
    Project,
    /// The day, in the user's time zone.
    Day,
}

/// A sum of entries.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sum {
    /// The group.
    pub name: String,
    /// Requests.
    pub calls: u64,
    /// Tokens of prompts.
    #[serde(rename = "in")]
    pub input: u64,
    /// Tokens of answers.
    pub out: u64,
    /// US dollars paid.
    pub usd: f64,
    /// US dollars that tokens of logins would have cost with a key.
    pub covered_usd: f64,
    /// Requests with an unknown price, except those that a login covers.
    pub unpriced: u64,
    /// Requests that a login covers.
    #[serde(skip)]
    pub logins: u64,
    /// Those of them whose price with a key is unknown.
    #[serde(skip)]
    pub logins_unpriced: u64,
    /// The precision of the amounts.
    #[serde(skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
    /// The precision of what is paid: requests that cost nothing do not blur it.
    #[serde(skip)]
    pub paid_certainty: Certainty,
}

impl Sum {
    /// Returns the US dollars paid, as far as known, and their precision. `None` if no price is known.
    pub fn paid(&self) -> Option<(f64, Certainty)> {
        match (self.usd > 0.0, self.unpriced) {
            (false, 1..) => None,
            (_, 0) => Some((self.usd, self.paid_certainty)),
            // A part is missing.
            (_, _) => Some((self.usd, self.paid_certainty.and(Certainty::AtLeast))),
        }
    }

    /// Adds an entry.
    pub fn add(&mut self, entry: &Entry) {
        self.calls += 1;
        self.input = self.input.saturating_add(entry.input);
        self.out = self.out.saturating_add(entry.out);
        self.usd += entry.paid_usd();
        self.covered_usd += entry.covered_usd();
        let unknown = u64::from(entry.usd.is_none());
        match entry.payer.billing {
            Billing::Key | Billing::Unknown => self.unpriced += unknown,
            Billing::Login => {
                self.logins += 1;
                self.logins_unpriced += unknown;
            }
            // Earlier versions noted requests to any service on this machine as free.
            Billing::Free => self.unpriced += u64::from(!is_free(&entry.payer.service)),
        }
        if entry.paid_usd() > 0.0 {
            self.paid_certainty = self.paid_certainty.and(entry.certainty);
        }
        self.certainty = self.certainty.and(entry.certainty);
    }
}

/// Sums entries, most expensive first, then by tokens and name; by day, oldest first. `day` returns the day of an
/// entry.
pub fn sums<'e>(
    entries: impl IntoIterator<Item = &'e Entry>,
    by: By,
    day: impl Fn(Timestamp) -> String,
) -> Vec<Sum> {
    let mut sums: std::collections::BTreeMap<String, Sum> = std::collections::BTreeMap::new();
    for entry in entries {
        let payer = &entry.payer;
        let name = match (by, &payer.model) {
            (By::Member, _) => payer.member.clone(),
            (By::Model, Some(model)) => format!("{} {model}", payer.service),
            (By::Service | By::Model, _) => payer.service.clone(),
            (By::Project, _) => entry.project.clone(),
            (By::Day, _) => day(entry.at),
        };
        let sum = sums.entry(name).or_insert_with_key(|name| Sum {
            name: name.clone(),
            ..Sum::default()
        });
        sum.add(entry);
    }
    let mut sums: Vec<Sum> = sums.into_values().collect();
    if by != By::Day {
        let dear = |sum: &Sum| sum.usd + sum.covered_usd;
        sums.sort_by(|a, b| {
            let tokens = |sum: &Sum| sum.input.saturating_add(sum.out);
            let money = dear(b).total_cmp(&dear(a));
            money.then(tokens(b).cmp(&tokens(a)))
        });
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(member: &str, billing: Billing, usd: Option<f64>, at: &str) -> Entry {
        Entry {
            v: 1,
            at: at.parse().unwrap(),
            project: "/p".into(),
            payer: Payer {
                member: member.into(),
                service: "s".into(),
                model: Some("m".into()),
                billing,
            },
            input: 10,
            out: 5,
            usd,
            certainty: Certainty::Exact,
        }
    }

    #[test]
    fn money_of_keys_and_of_logins_is_told_apart() {
        const AT: &str = "2026-01-02T03:04:05Z";
        let entries = [
            entry("ann", Billing::Key, Some(0.5), AT),
            entry("ann", Billing::Key, None, AT),
            entry("bob", Billing::Login, Some(2.0), AT),
            // Codex reports no price.
            entry("bob", Billing::Login, None, AT),
            Entry {
                payer: Payer {
                    member: "cyd".into(),
                    service: "local".into(),
                    billing: Billing::Free,
                    ..Payer::default()
                },
                ..entry("cyd", Billing::Free, None, AT)
            },
            // Noted as free by an earlier version, because the service was on this machine.
            entry("fay", Billing::Free, None, AT),
            entry("dan", Billing::Unknown, Some(0.25), AT),
            entry("eve", Billing::Key, Some(f64::NAN), AT),
            entry("eve", Billing::Key, Some(-3.0), AT),
        ];
        let sums = sums(&entries, By::Member, |_| String::new());
        let shown: Vec<_> = sums
            .iter()
            .map(|s| (s.name.as_str(), s.calls, s.usd, s.covered_usd, s.unpriced))
            .collect();
        assert_eq!(
            shown,
            [
                ("bob", 2, 0.0, 2.0, 0),
                ("ann", 2, 0.5, 0.0, 1),
                ("dan", 1, 0.25, 0.0, 0),
                ("eve", 2, 0.0, 0.0, 0),
                ("cyd", 1, 0.0, 0.0, 0),
                ("fay", 1, 0.0, 0.0, 1),
            ]
        );
    }

    #[test]
    fn a_sum_of_bounds_is_a_bound_and_a_missing_part_is_no_zero() {
        use Certainty::{About, AtLeast, AtMost, Exact};
        let one = |usd, certainty| Entry {
            certainty,
            ..entry("ann", Billing::Key, usd, "2026-01-02T03:04:05Z")
        };
        let free = |certainty| {
            let mut free = one(None, certainty);
            free.payer.billing = Billing::Free;
            free.payer.service = "local".into();
            free
        };
        let half = Some(0.5);
        for (entries, paid) in [
            (vec![], Some((0.0, Exact))),
            (vec![free(AtLeast)], Some((0.0, Exact))),
            (vec![one(half, Exact), free(AtMost)], Some((0.5, Exact))),
            (
                vec![one(half, AtMost), one(half, AtMost)],
                Some((1.0, AtMost)),
            ),
            (
                vec![one(half, AtMost), one(half, Exact)],
                Some((1.0, AtMost)),
            ),
            (
                vec![one(half, AtMost), one(half, AtLeast)],
                Some((1.0, About)),
            ),
            (
                vec![one(half, Exact), one(None, Exact)],
                Some((0.5, AtLeast)),
            ),
            (
                vec![one(half, AtMost), one(None, AtMost)],
                Some((0.5, About)),
            ),
            (vec![one(None, Exact), free(Exact)], None),
            // A price of nothing is a price.
            (vec![one(Some(0.0), Exact)], Some((0.0, Exact))),
        ] {
            let mut sum = Sum::default();
            entries.iter().for_each(|entry| sum.add(entry));
            assert_eq!(sum.paid(), paid, "{entries:?}");
        }
    }

    #[test]
    fn days_are_those_of_the_user() {
        let entries = [
            entry("ann", Billing::Key, Some(0.5), "2026-01-03T00:30:00Z"),
            entry("ann", Billing::Key, Some(9.0), "2026-01-02T00:30:00Z"),
        ];
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(-1));
        let day = |at: Timestamp| at.to_zoned(zone.clone()).date().to_string();
        let sums = sums(&entries, By::Day, day);
        let names: Vec<_> = sums.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["2026-01-01", "2026-01-02"]);
    }

    #[test]
    fn an_entry_is_one_line_that_reads_back() {
        let usage = Usage {
            input_tokens: 3,
            output_tokens: 4,
            cost_usd: Some(0.25),
            ..Usage::default()
        };
        let payer = Payer {
            member: "ann".into(),
            service: "openai".into(),
            model: Some("gpt-5".into()),
            billing: Billing::Key,
        };
        let spent = Spent::of_turn(1, &usage, None);
        let at = "2026-01-02T03:04:05Z".parse().unwrap();
        let entry = Entry::new(&payer, at, &spent, &usage, true);
        let line = serde_json::to_string(&entry).unwrap();
        assert_eq!(
            line,
            r#"{"v":1,"at":"2026-01-02T03:04:05Z","member":"ann","service":"openai","model":"gpt-5","billing":"key","in":3,"out":4,"usd":0.25}"#
        );
        assert_eq!(serde_json::from_str::<Entry>(&line).unwrap(), entry);
        // A local model is free and reported as such.
        let free = Payer {
            billing: Billing::Free,
            ..payer
        };
        let free = Entry::new(&free, at, &Spent::of(3, 4, None), &Usage::default(), true);
        assert_eq!(free.usd, None);
    }
}
