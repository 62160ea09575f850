//! No limit is exceeded, and reported usage matches what the server counted: real HTTP requests to a server that bills,
//! refuses, disconnects and sends garbage, driven by a seed.

#![allow(clippy::unwrap_used)] // tests may panic

use futures::stream::{self, StreamExt};
use kd_backends::backends::{Backends, Options};
use kd_backends::guard::Backoff;
use kd_core::config::{AgentConfig, Config, Price, ProviderConfig};
use kd_core::council::{Budget, OpenCouncil};
use kd_core::deliberation::{Deliberation, Fact};
use kd_core::duet::DuetLimits;
use kd_core::duet::seats::Seats;
use kd_core::planner::{self, Brief};
use kd_core::prompt::PromptRules;
use kd_core::seating::{self, SeatRequest};
use kd_core::spending::Spent;
use kd_core::usage::Certainty;
use kd_core::{Address, Duet, Event, Member, Op, OpenDuet, Roster, Usage, protocols};
use kd_engine::{Engine, Opening, Session, Update};
use kd_fake::billing::{self, Bill, Billing, Rng};
use kd_store::{Layout, Thread};
use std::time::Duration;
use tempfile::TempDir;

/// Concurrent runs: most of the time is spent waiting for retries.
const AT_ONCE: usize = 8;

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Ask,
    Chat,
    Think,
    Deliberate,
}

const KINDS: [Kind; 4] = [Kind::Ask, Kind::Chat, Kind::Think, Kind::Deliberate];

/// The report of a run.
#[derive(Debug, Default)]
struct Told {
    /// From the ends of all turns.
    turns: Usage,
    requests: u64,
    /// From the end of the round.
    round: Usage,
    /// From the verdict of a deliberation.
    verdict: Option<Spent>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_limit_is_passed_and_what_is_told_is_what_was_counted() {
    let seeds = match std::env::var("KD_SEEDS") {
        Ok(one) => one.parse().map(|n: u64| n..n + 1).unwrap(),
        Err(_) => 0..200,
    };
    let outcomes: Vec<Certainty> = stream::iter(seeds.clone())
        .map(|seed| tokio::spawn(run(seed)))
        .buffer_unordered(AT_ONCE)
        .map(Result::unwrap)
        .collect()
        .await;
    let exact = outcomes.iter().filter(|c| c.is_exact()).count();
    if seeds.end > 100 {
        assert!(exact > 10, "{exact} of 200 runs were counted to the end");
        assert!(exact < 190, "{exact} of 200 runs: too few were cut off");
    }
}

/// Performs one run; its limits, server and members follow from the seed.
async fn run(seed: u64) -> Certainty {
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9).wrapping_add(1));
    let kind = KINDS[seed as usize % KINDS.len()];
    // Multiples of a thousandth of a dollar per million tokens: exact on both sides.
    let (input, output) = (rng.below(4000), rng.below(15_000));
    let price = Price {
        input: input as f64 / 1000.0,
        output: output as f64 / 1000.0,
        cached: None,
        cache_write: None,
    };
    let bills = billing::Price {
        input: input * 1000,
        output: output * 1000,
    };
    let server = Billing::start(seed, bills).await.unwrap();
    let mut config = Config::default();
    let mut some = |low: u64, high: u64| (rng.below(10) < 6).then(|| low + rng.below(high - low));
    config.limits.calls = some(1, 16);
    config.limits.tokens = some(500, 60_000);
    config.limits.usd = some(200, 60_000).map(|micro| micro as f64 / 1e6);
    if config.limits.usd.is_none() && config.limits.tokens.is_none() {
        // Otherwise nothing would limit an answer.
        config.limits.usd = Some(0.02);
    }
    config.deliberation.max_calls = 4 + rng.below(60);
    config.deliberation.max_usd = Some(0.005 + rng.below(100) as f64 / 1000.0);
    config.deliberation.answer_tokens = Some(100 + rng.below(900) as u32);
    let provider = ProviderConfig {
        base_url: Some(server.url()),
        prices: [("model-1".to_owned(), price)].into(),
        model: Some("model-1".into()),
        ..ProviderConfig::default()
    };
    config.providers.insert("svc".into(), provider);
    for name in ["m1", "m2", "m3"] {
        let agent = AgentConfig {
            backend: "svc".into(),
            max_tokens: (rng.below(2) == 0).then(|| 80 + rng.below(400) as u32),
            ..AgentConfig::default()
        };
        config.agents.insert(name.into(), agent);
    }
    let options = Options {
        backoff: Backoff {
            base: Duration::from_millis(1),
            ..Backoff::default()
        },
        ..Options::default()
    };
    let backends = Backends::new(&config, options);
    let account = backends.spending().clone();
    let engine = Engine::new(backends);
    let folder = TempDir::new().unwrap();
    let Some((session, says, rounds)) = open(kind, &config, &engine, &folder, seed) else {
        assert_eq!(
            server.bill(),
            Bill::default(),
            "refused before anybody was asked"
        );
        return Certainty::Exact;
    };
    let told = play(session, says, rounds).await;
    let bill = server.bill();
    let at = format!(
        "seed {seed}, {kind:?}: {told:?} {bill:?} {:?}",
        config.limits
    );
    within(&config, kind, &bill, &at);
    agrees(&told, account.used(), &bill, &at);
    account.used().certainty
}

/// Asserts that the server counted no more than the limits allow.
fn within(config: &Config, kind: Kind, bill: &Bill, at: &str) {
    let limits = config.limits;
    assert!(
        limits.calls.is_none_or(|most| bill.requests <= most),
        "calls: {at}"
    );
    assert!(
        limits.tokens.is_none_or(|most| bill.tokens <= most),
        "tokens: {at}"
    );
    let pico = |usd: f64| (usd * 1e12).round() as u64;
    assert!(
        limits.usd.is_none_or(|most| bill.pico_usd <= pico(most)),
        "money: {at}"
    );
    if kind == Kind::Deliberate {
        let plan = &config.deliberation;
        assert!(bill.requests <= plan.max_calls, "calls of the plan: {at}");
        assert!(
            bill.pico_usd <= pico(plan.max_usd.unwrap()),
            "money of the plan: {at}"
        );
        assert!(
            bill.tokens <= plan.iteration.max_tokens,
            "tokens of the plan: {at}"
        );
    }
}

/// Asserts that every report of usage is at least what the server counted, and equals it where the usage arrived.
fn agrees(told: &Told, account: Spent, bill: &Bill, at: &str) {
    let usd = |usage: &Usage| (usage.cost_usd.unwrap_or(0.0) * 1e12).round() as u64;
    let of = |usage: &Usage, calls| Spent {
        calls,
        tokens: usage.input_tokens + usage.output_tokens,
        pico_usd: usd(usage),
        certainty: usage.certainty,
    };
    let turns = of(&told.turns, told.requests);
    let round = of(&told.round, told.requests);
    for (who, spent) in [
        ("the account", Some(account)),
        ("the turns", Some(turns)),
        ("the round", Some(round)),
        ("the verdict", told.verdict),
    ] {
        let Some(spent) = spent else { continue };
        assert_eq!(spent.calls, bill.requests, "requests by {who}: {at}");
        // Each request's cost is rounded to a picodollar.
        let slack = bill.requests + 2;
        match spent.certainty {
            Certainty::Exact => {
                assert_eq!(spent.tokens, bill.tokens, "tokens by {who}: {at}");
                assert!(
                    spent.pico_usd.abs_diff(bill.pico_usd) <= slack,
                    "money by {who}: {spent:?} {at}"
                );
            }
            Certainty::AtMost => {
                assert!(spent.tokens >= bill.tokens, "tokens by {who}: {at}");
                assert!(
                    spent.pico_usd + slack >= bill.pico_usd,
                    "money by {who}: {at}"
                );
                assert!(bill.uncounted, "{who} doubts without a reason: {at}");
            }
            Certainty::AtLeast | Certainty::About => panic!("{who} lost count: {at}"),
        }
    }
}

/// Opens a session of this kind, with the ops to send and the number of rounds to expect. `None` if its limits are
/// below what its plan needs.
fn open(
    kind: Kind,
    config: &Config,
    engine: &Engine,
    folder: &TempDir,
    seed: u64,
) -> Option<(Session, Vec<Op>, usize)> {
    let layout = Layout::find_or_create(folder.path(), &|_| None)
        .unwrap()
        .layout;
    let roster = seating::seat(config, &SeatRequest::default())
        .unwrap()
        .roster;
    let members = roster.members().to_vec();
    let question = "Should we use tabs, yes or no?";
    let say = |body: &str| Op::Say {
        body: body.into(),
        to: Address::All,
    };
    let thread = |members: &[Member]| {
        let names: Vec<_> = members.iter().map(|m| m.name.clone()).collect();
        Thread::create(&layout, &names).unwrap()
    };
    let council = |thread: &Thread, conclude| OpenCouncil {
        thread: thread.id().clone(),
        roster: Roster::new(members.clone(), None),
        protocol: *protocols::find("broadcast").unwrap(),
        prompts: PromptRules::default(),
        history: Vec::new(),
        seed,
        limits: Budget::default(),
        conclude,
        queue: None,
        last: None,
    };
    match kind {
        Kind::Ask => {
            let thread = thread(&members);
            let open = council(&thread, true);
            Some((engine.open(thread, open).unwrap(), vec![say(question)], 1))
        }
        Kind::Chat => {
            let thread = thread(&members);
            let open = council(&thread, false);
            let session = engine.join(thread, open, None).unwrap();
            Some((session, vec![say(question), say("And why?")], 2))
        }
        Kind::Think => {
            let thread = thread(&members);
            let seats = Seats {
                fast: members[0].clone(),
                rigorous: members[1].clone(),
                arbiter: None,
            };
            let (duet, opened) = Duet::open(OpenDuet {
                thread: thread.id().clone(),
                seats,
                prompts: PromptRules::default(),
                history: Vec::new(),
                limits: DuetLimits {
                    tokens_max: (seed % 8 < 4).then_some(3_000 + seed * 50),
                    ..DuetLimits::default()
                },
            });
            let opening = Opening {
                id: thread.id().clone(),
                machine: Box::new(duet),
                opened,
                seats: members.clone(),
            };
            Some((engine.run(thread, opening).unwrap(), vec![say(question)], 1))
        }
        Kind::Deliberate => {
            let brief = Brief {
                question,
                asked: question,
                seed,
                seeded: true,
                ..Brief::default()
            };
            let planned = planner::plan(config, &brief).ok()?;
            let seats: Vec<Member> = planned
                .plan
                .seats
                .iter()
                .map(|s| s.member.clone())
                .collect();
            let thread = thread(&seats);
            let (machine, opened) = Deliberation::open(planned.plan, Vec::new(), String::new(), 0);
            let opening = Opening {
                id: thread.id().clone(),
                machine: Box::new(machine),
                opened,
                seats,
            };
            Some((engine.run(thread, opening).unwrap(), vec![say(question)], 1))
        }
    }
}

/// Sends everything in order and collects what is reported.
async fn play(mut session: Session, says: Vec<Op>, rounds: usize) -> Told {
    let mut faces = session.subscribe();
    let mut told = Told::default();
    let mut says = says.into_iter();
    session.send(says.next().unwrap()).unwrap();
    let mut left = rounds;
    while left > 0 {
        let Some(Update::Record(record)) = faces.next().await else {
            panic!("the session ended early");
        };
        match &record.event {
            Event::TurnFinished { usage, .. } => {
                let usage = usage.unwrap_or_default();
                told.turns.add(&usage);
                told.requests += usage.repeats + 1;
            }
            Event::TurnFailed { failure, .. } => {
                let used = failure.used.as_deref().copied().unwrap_or_default();
                told.turns.add(&used.usage);
                told.requests += used.requests;
            }
            Event::FloorYielded { usage, .. } => {
                told.round.add(usage);
                left -= 1;
                if let Some(next) = says.next() {
                    session.send(next).unwrap();
                }
            }
            Event::Deliberated { fact } => {
                if let Fact::Concluded(verdict) = &**fact {
                    told.verdict = Some(verdict.spent);
                }
            }
            _ => {}
        }
    }
    session.close().await;
    told
}
