//! No limit is ever exceeded: not by a token, a call or a millionth of a cent, whatever the prices and the usage.

use crate::room::{Answer, good, plan, run};
use kd_core::config::Config;
use kd_core::deliberation::plan::{Limits, Strategy};
use kd_core::deliberation::protocols::PROTOCOLS;
use kd_core::deliberation::{Deliberation, Fact, Price, Spent, forecast};
use kd_core::planner::{self, Brief, PlanError, Planned};
use kd_core::usage::Usage;
use kd_vote::Outcome;
use proptest::prelude::*;
use serde_json::json;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn no_limit_is_passed(
        tokens in 8_000u64..120_000,
        calls in 1u64..40,
        micro in 1u64..400_000,
        prices in proptest::collection::vec((0.0f64..30.0, 0.0f64..90.0), 4),
        answer_tokens in 16u32..800,
        greed in proptest::collection::vec(0u64..=100, 64),
        protocol in 0..PROTOCOLS.len(),
        iterate in any::<bool>(),
    ) {
        let mut plan = plan();
        plan.protocol = PROTOCOLS[protocol].name.into();
        plan.iteration.enabled = iterate;
        plan.iteration.strategy = Strategy::Specialize;
        plan.limits = Limits { calls: Some(calls), tokens: Some(tokens), micro_usd: Some(micro), duration_ms: None, answer_tokens, peer_bytes: None };
        for (seat, (input, output)) in plan.seats.iter_mut().zip(&prices) {
            seat.price = Some(Price::per_million(*input, *output));
        }
        prop_assume!(Deliberation::affordable(&plan, "Preamble.").is_ok());
        let mut call = 0;
        let mut used = (0u64, 0u64, 0u128);
        let done = run(&plan, |asked| {
            let greedy = greed[call % greed.len()];
            call += 1;
            let price = plan.seats.iter().find(|s| s.name().as_str() == asked.seat).and_then(|s| s.price).expect("priced");
            // The worst tokenizer makes one token per byte; the model answers up to its limit.
            let bytes = asked.request.prompt.as_text().len() as u64 + asked.request.schema.as_ref().map_or(0, |s| s.to_string().len() as u64);
            let most = u64::from(asked.request.sampling.max_tokens.expect("always bounded"));
            let usage = Usage { input_tokens: (bytes * greedy / 100).max(1), output_tokens: most * greedy / 100, ..Usage::default() };
            used.0 += usage.input_tokens + usage.output_tokens;
            used.1 += 1;
            used.2 += u128::from(usage.input_tokens) * u128::from(price.input) + u128::from(usage.output_tokens) * u128::from(price.output);
            let wants = if call % 3 == 0 { "no" } else { "yes" };
            Answer::Used(good(asked, wants), usage)
        });
        prop_assert!(used.0 <= tokens, "{} of {tokens} tokens", used.0);
        prop_assert!(used.1 <= calls, "{} of {calls} calls", used.1);
        prop_assert!(used.2 <= u128::from(micro) * 1_000_000, "money");
        let verdict = done.verdict();
        // A cancelled call counts in full: its real usage is unknown.
        prop_assert!((used.0..=tokens).contains(&verdict.spent.tokens));
        prop_assert!(u128::from(verdict.spent.pico_usd) >= used.2);
        prop_assert!(!verdict.answer.is_empty());
        let cut = done.facts().any(|f| matches!(f, Fact::Cut { .. }));
        prop_assert_eq!(cut, verdict.outcome == Outcome::CutByBudget);
        done.replays();
    }
}

/// Records that do not list repeated turns are replayed by the rules of their version.
#[test]
fn an_older_plan_reserves_and_books_as_it_did() {
    for version in [0, 1] {
        let mut plan = plan();
        plan.spending = version;
        let done = run(&plan, |asked| {
            let usage = Usage {
                input_tokens: 10,
                output_tokens: 5,
                repeats: 2,
                ..Usage::default()
            };
            Answer::Used(good(asked, "yes"), usage)
        });
        done.replays();
        let asked = done.facts().filter(|f| matches!(f, Fact::SeatAsked { .. }));
        let calls = asked.count() as u64;
        let spent = done.verdict().spent;
        let repeats = if version == 0 { 0 } else { 2 };
        assert_eq!(spent.calls, calls * (1 + repeats));
        assert_eq!(spent.tokens, calls * 15);
        let passes = done.facts().filter_map(|f| match f {
            Fact::IterationDecided(decision) => Some(decision.spent.is_some()),
            _ => None,
        });
        assert!(passes.into_iter().all(|told| told == (version == 1)));
    }
}

/// Returns the smallest number that satisfies `is_so`; all larger numbers and `most` satisfy it too.
fn least(mut most: u64, is_so: impl Fn(u64) -> bool) -> u64 {
    let mut least = 0;
    while most - least > 1 {
        let middle = (least + most) / 2;
        if is_so(middle) {
            most = middle;
        } else {
            least = middle;
        }
    }
    most
}

/// A limit reached before the first request depends on the prompts' length, about which the record holds nothing else.
#[test]
fn a_council_that_could_ask_nobody_is_decided_again_in_the_same_way() {
    for protocol in PROTOCOLS {
        let mut plan = plan();
        plan.protocol = protocol.name.into();
        for seat in &mut plan.seats {
            seat.price = Some(Price::per_million(23.4, 80.4));
        }
        let with = |micro: u64| {
            let mut plan = plan.clone();
            plan.limits = Limits {
                calls: Some(40),
                tokens: Some(400_000),
                micro_usd: Some(micro),
                duration_ms: None,
                answer_tokens: 490,
                peer_bytes: None,
            };
            plan
        };
        let asked = |micro: u64| {
            let mut calls = 0;
            let done = run(&with(micro), |asked| {
                calls += 1;
                Answer::Used(good(asked, "yes"), Usage::default())
            });
            done.replays();
            calls
        };
        let afford = |micro| Deliberation::affordable(&with(micro), "Preamble.").is_ok();
        let affordable = least(10_000_000, afford);
        // If the limit is just below the price of the first call, the preamble of each prompt decides whether the call
        // fits.
        let first = least(10_000_000, |micro| micro >= affordable && asked(micro) > 0);
        for micro in (affordable.max(first.saturating_sub(300))..first).step_by(30) {
            assert_eq!(asked(micro), 0, "{}", protocol.name);
        }
    }
}

/// Plans a council of three members at $3 and $15 per million tokens.
fn planned(usd: f64) -> Result<Planned, PlanError> {
    let agent = json!({"backend": "svc", "model": "m"});
    let config = Config::from_value(&json!({
        "agents": {"m1": agent, "m2": agent, "m3": agent},
        "council": {"members": ["m1", "m2", "m3"]},
        "providers": {"svc": {"base_url": "http://127.0.0.1:9/v1",
            "prices": {"m": {"input": 3.0, "output": 15.0}}}},
        "deliberation": {"maxUsd": usd, "preset": "standard"},
    }));
    let brief = Brief {
        question: "Is it safe to store sessions in Redis?",
        asked: "Is it safe to store sessions in Redis?",
        ..Brief::default()
    };
    planner::plan(&config.expect("settings"), &brief)
}

#[test]
fn a_limit_of_fewer_calls_than_the_plan_asks_for_is_told() {
    let agent = json!({"backend": "ollama", "model": "m"});
    let notices = |calls: u64| {
        let config = Config::from_value(&json!({
            "agents": {"m1": agent, "m2": agent, "m3": agent},
            "council": {"members": ["m1", "m2", "m3"]},
            "deliberation": {"maxCalls": calls, "preset": "standard"},
        }));
        let brief = Brief {
            question: "Is it safe to store sessions in Redis?",
            asked: "Is it safe to store sessions in Redis?",
            ..Brief::default()
        };
        let planned = planner::plan(&config.expect("settings"), &brief).expect("a plan");
        let told = |n: &&String| n.starts_with("the limit of");
        let told = planned.notices.iter().find(told).cloned();
        (forecast(&planned.plan).calls, told)
    };
    let (calls, told) = notices(40);
    assert_eq!(told, None);
    assert_eq!(notices(calls).1, None);
    let low = calls - 1;
    let told = notices(low).1.expect("a notice");
    assert!(
        told.contains(&format!("of {low} calls is below the {calls} ")),
        "{told}"
    );
}

#[test]
fn a_low_limit_shortens_answers_before_it_refuses_them() {
    let mut before = u32::MAX;
    for usd in [2.0, 0.2, 0.1, 0.05] {
        let mut planned = planned(usd).expect("a plan");
        for seat in &mut planned.plan.seats {
            // A record has neither.
            seat.member.served_as = None;
            seat.member.launch.agent = None;
        }
        let limits = planned.plan.limits;
        assert!(limits.answer_tokens <= before, "{usd}");
        before = limits.answer_tokens;
        let is_told = planned
            .notices
            .iter()
            .any(|n| n.starts_with("the limit is low"));
        assert_eq!(is_told, limits.peer_bytes.is_some(), "{usd}");
        let mut used = Spent::default();
        let mut opinions = 0;
        let held = run(&planned.plan, |asked| {
            let prompt = &asked.request.prompt;
            let bytes = prompt.rules.len() + prompt.history.len() + prompt.turn.len();
            let reply = good(asked, "yes");
            opinions += u32::from(asked.stage == "opinions");
            let usage = Usage {
                input_tokens: bytes as u64 / 4,
                output_tokens: reply.len() as u64 / 4,
                ..Usage::default()
            };
            let seat = planned
                .plan
                .seats
                .iter()
                .find(|s| s.name().as_str() == asked.seat);
            used += Spent::of(
                usage.input_tokens,
                usage.output_tokens,
                seat.and_then(|s| s.price),
            );
            Answer::Used(reply, usage)
        });
        held.replays();
        assert!(used.pico_usd <= (usd * 1e12) as u64, "{usd}: {used:?}");
        assert_eq!(
            opinions, 3,
            "{usd}: the third waits until the first has left room"
        );
        let verdict = held.verdict();
        assert_eq!(verdict.outcome, Outcome::Unanimous, "{usd}");
        assert!(verdict.winner.is_some(), "{usd}");
    }
    let error = planned(0.01).expect_err("the final answer alone costs more");
    assert!(matches!(error, PlanError::TooLow { .. }), "{error}");
}
