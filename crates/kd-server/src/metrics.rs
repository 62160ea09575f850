//! Counts the work of the server, for monitoring: requests, councils, and the usage of members. Text in the OpenMetrics
//! format, which Prometheus reads. No question, answer or token of a caller is part of it.

use crate::answer::Answer;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use kd_core::batch::{FleetView, Overview, WorkerState};
use kd_core::event::Outcome;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The path of the metrics.
pub(crate) const PATH: &str = "/metrics";
/// The path that says whether the server works.
pub(crate) const HEALTH: &str = "/healthz";
/// The content type of the OpenMetrics format.
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Status {
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Ended {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Tokens {
    member: String,
    direction: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Member {
    member: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct InState {
    batch: String,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfBatch {
    batch: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Doing {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfWorker {
    worker: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfStore {
    store: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfKind {
    batch: String,
    kind: String,
}

/// The content of the batch database, read for each response, because other processes run the batches.
#[derive(Clone, Debug, Default)]
struct Batches {
    questions: Family<InState, Gauge>,
    running: Family<OfBatch, Gauge>,
    calls: Family<OfBatch, Gauge>,
    tokens: Family<OfBatch, Gauge>,
    cost: Family<OfBatch, Gauge<f64, AtomicU64>>,
    failures: Family<OfKind, Gauge>,
    at_providers: Family<OfBatch, Gauge>,
    refusals: Family<OfBatch, Gauge>,
}

impl Batches {
    fn register(&self, registry: &mut Registry) {
        let help = "Questions of a batch by state";
        registry.register("batch_questions", help, self.questions.clone());
        let help = "Whether a process runs the batch";
        registry.register("batch_running", help, self.running.clone());
        let help = "Requests to models for a batch";
        registry.register("batch_calls", help, self.calls.clone());
        let help = "Tokens of prompts and answers of a batch";
        registry.register("batch_tokens", help, self.tokens.clone());
        let (help, unit) = ("What a batch has cost", Unit::Other("usd".into()));
        registry.register_with_unit("batch_cost", help, unit, self.cost.clone());
        let help = "Failed questions of a batch by the kind of the first failure";
        registry.register("batch_failures", help, self.failures.clone());
        let help = "Requests of a batch that wait at providers";
        registry.register(
            "batch_requests_at_providers",
            help,
            self.at_providers.clone(),
        );
        let help = "Workers of a fleet that do not serve the batch";
        registry.register("batch_refusals", help, self.refusals.clone());
    }

    /// Replaces all values.
    fn set(&self, batches: &[Overview]) {
        self.questions.clear();
        self.failures.clear();
        for family in [
            &self.running,
            &self.calls,
            &self.tokens,
            &self.at_providers,
            &self.refusals,
        ] {
            family.clear();
        }
        self.cost.clear();
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        for one in batches {
            let of = OfBatch {
                batch: one.id.clone(),
            };
            for (state, n) in &one.states {
                let label = InState {
                    batch: one.id.clone(),
                    state,
                };
                self.questions.get_or_create(&label).set(signed(*n));
            }
            for (kind, n) in &one.failures {
                let label = OfKind {
                    batch: one.id.clone(),
                    kind: kind.clone(),
                };
                self.failures.get_or_create(&label).set(signed(*n));
            }
            for (family, n) in [
                (&self.running, u64::from(one.running_now)),
                (&self.calls, one.calls),
                (&self.tokens, one.tokens),
                (&self.at_providers, one.at_providers),
                (&self.refusals, one.refusals.len() as u64),
            ] {
                family.get_or_create(&of).set(signed(n));
            }
            self.cost.get_or_create(&of).set(one.usd);
        }
    }
}

/// The fleet that is watched: gauges without a value if there is none.
#[derive(Clone, Debug, Default)]
struct Fleet {
    up: Family<OfStore, Gauge>,
    workers: Family<Doing, Gauge>,
    asking: Family<OfWorker, Gauge>,
    silent: Family<OfWorker, Gauge<f64, AtomicU64>>,
}

impl Fleet {
    fn register(&self, registry: &mut Registry) {
        let help = "Whether the database of the fleet answers";
        registry.register("fleet_up", help, self.up.clone());
        let help = "Workers of the fleet by what they do";
        registry.register("fleet_workers", help, self.workers.clone());
        let help = "Questions that a worker is asking";
        registry.register("fleet_worker_questions", help, self.asking.clone());
        let help = "Time since the last sign of life of a worker";
        let unit = Unit::Seconds;
        registry.register_with_unit("fleet_worker_silent", help, unit, self.silent.clone());
    }

    /// Replaces all values. While the database does not answer, only that is known.
    fn set(&self, fleet: Option<&FleetView>) {
        self.up.clear();
        self.workers.clear();
        self.asking.clear();
        self.silent.clear();
        let Some(view) = fleet else { return };
        let store = view.store.clone();
        let up = self.up.get_or_create(&OfStore { store }).clone();
        up.set(i64::from(view.trouble.is_none()));
        if view.trouble.is_some() {
            return;
        }
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        for state in WorkerState::ALL {
            let label = Doing {
                state: state.word(),
            };
            let workers = self.workers.get_or_create(&label).clone();
            workers.set(signed(view.workers_in(state)));
        }
        for worker in &view.workers {
            let label = OfWorker {
                worker: worker.name.clone(),
            };
            self.asking.get_or_create(&label).set(signed(worker.asking));
            let silent = worker.silent.as_secs_f64();
            self.silent.get_or_create(&label).set(silent);
        }
    }
}

/// The counts of one server.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Status, Counter>,
    councils: Family<Ended, Counter>,
    running: Gauge,
    calls: Counter,
    tokens: Family<Tokens, Counter>,
    uncounted: Family<Member, Counter>,
    cost: Family<Member, Counter<f64, AtomicU64>>,
    batches: Batches,
    fleet: Fleet,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("kd");
        let requests = Family::<Status, Counter>::default();
        let councils = Family::<Ended, Counter>::default();
        let (running, calls) = (Gauge::default(), Counter::default());
        let tokens = Family::<Tokens, Counter>::default();
        let uncounted = Family::<Member, Counter>::default();
        let cost = Family::<Member, Counter<f64, AtomicU64>>::default();
        registry.register("http_requests", "Answered HTTP requests", requests.clone());
        registry.register("councils", "Councils that ended", councils.clone());
        registry.register("councils_running", "Councils at work", running.clone());
        let help = "Calls of tools passed on to clients";
        registry.register("tool_calls", help, calls.clone());
        let help = "Tokens that members used, as reported";
        registry.register("tokens", help, tokens.clone());
        let help = "Turns whose tokens were not reported";
        registry.register("uncounted_turns", help, uncounted.clone());
        let (help, unit) = ("What members cost, where known", Unit::Other("usd".into()));
        registry.register_with_unit("cost", help, unit, cost.clone());
        let batches = Batches::default();
        batches.register(&mut registry);
        let fleet = Fleet::default();
        fleet.register(&mut registry);
        Self {
            registry: Arc::new(registry),
            requests,
            councils,
            running,
            calls,
            tokens,
            uncounted,
            cost,
            batches,
            fleet,
        }
    }
}

/// A council at work, counted until dropped.
pub(crate) struct AtWork(Gauge);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Counts an answered request.
    pub(crate) fn answered(&self, response: &Response) {
        let status = response.status().as_u16();
        self.requests.get_or_create(&Status { status }).inc();
    }

    /// Counts a council that begins.
    pub(crate) fn begun(&self) -> AtWork {
        self.running.inc();
        AtWork(self.running.clone())
    }

    /// Counts a council that ended.
    pub(crate) fn ended(&self, answer: &Answer) {
        let outcome = match answer.ended().map(|(outcome, _)| outcome) {
            Some(Outcome::Complete) => "complete",
            Some(Outcome::Partial) => "partial",
            Some(Outcome::Failed) => "failed",
            Some(Outcome::Interrupted) | None => "interrupted",
        };
        self.councils.get_or_create(&Ended { outcome }).inc();
        self.calls.inc_by(answer.calls().len() as u64);
        for (member, (usage, uncounted)) in answer.spent() {
            let member = member.to_string();
            for (direction, tokens) in [
                ("input", usage.input_tokens),
                ("output", usage.output_tokens),
            ] {
                let label = Tokens {
                    member: member.clone(),
                    direction,
                };
                self.tokens.get_or_create(&label).inc_by(tokens);
            }
            let label = Member { member };
            if uncounted {
                self.uncounted.get_or_create(&label).inc();
            }
            if let Some(usd) = usage.cost_usd {
                self.cost.get_or_create(&label).inc_by(usd);
            }
        }
    }

    /// Returns the counts as a response, with these batches and this fleet. An old view of a fleet is not a measurement.
    pub(crate) fn response(
        &self,
        mut batches: Vec<Overview>,
        mut fleet: Option<FleetView>,
    ) -> Response {
        let read = fleet.as_mut().filter(|view| view.trouble.is_none());
        batches.extend(
            read.map(|view| std::mem::take(&mut view.batches))
                .unwrap_or_default(),
        );
        self.batches.set(&batches);
        self.fleet.set(fleet.as_ref());
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        ([(header::CONTENT_TYPE, TYPE)], text).into_response()
    }
}
