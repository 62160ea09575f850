//! The laws of every protocol: it ends with a verdict, within the calls that it promises, and is decided the same again.

use crate::room::{Answer, good, plan, run, seat};
use kd_core::deliberation::protocols::PROTOCOLS;
use kd_core::deliberation::{AnswerKind, Fact, forecast, stages};
use kd_core::roles::Duty;
use kd_core::voting::{self, Outcome, RULES};
use std::collections::BTreeSet;

const KINDS: [&str; 7] = ["yes-no", "number", "exact", "json", "set", "judged", "text"];

fn wants(kind: &str, at: usize) -> &'static str {
    match (kind, at % 3) {
        ("number", 0 | 1) => "41",
        ("number", _) => "43",
        ("json", 0 | 1) => "{\"a\":1}",
        ("json", _) => "{\"a\":2}",
        (_, 0 | 1) => "yes",
        _ => "no",
    }
}

#[test]
fn every_protocol_ends_within_its_calls_for_every_kind_of_answer() {
    for protocol in PROTOCOLS {
        for kind in KINDS {
            for members in 1..=5usize {
                let mut plan = plan();
                plan.protocol = protocol.name.into();
                plan.answers = AnswerKind::parse(kind).expect("known");
                plan.seats = (0..members)
                    .map(|n| seat(&format!("m{n}x"), "opinion-giver"))
                    .collect();
                plan.seats.push(seat("chair", "synthesizer"));
                plan.seats.push(seat("umpire", "arbiter"));
                let run = run(&plan, |asked| {
                    let at = asked.seat.as_bytes().get(1).copied().map_or(0, usize::from);
                    Answer::Text(good(asked, wants(kind, at)))
                });
                let calls = run
                    .facts()
                    .filter(|f| matches!(f, Fact::SeatAsked { .. }))
                    .count() as u64;
                let most = forecast(&plan).calls;
                assert!(
                    calls <= most,
                    "{} {kind} {members}: {calls} of {most}",
                    protocol.name
                );
                let verdict = run.verdict();
                assert!(
                    !verdict.answer.is_empty() && verdict.troubles.is_empty(),
                    "{} {kind}",
                    protocol.name
                );
                assert_ne!(
                    verdict.outcome,
                    Outcome::Degraded,
                    "{} {kind}",
                    protocol.name
                );
                assert_ne!(
                    verdict.outcome,
                    Outcome::NoQuorum,
                    "{} {kind} {members}",
                    protocol.name
                );
                run.replays();
            }
        }
    }
}

#[test]
fn every_rule_can_decide_a_council() {
    for rule in RULES {
        let mut plan = plan();
        plan.answers = AnswerKind::Text;
        plan.voting.method = rule.name.into();
        let run = run(&plan, |asked| Answer::Text(good(asked, "ann")));
        assert!(!run.verdict().answer.is_empty(), "{}", rule.name);
        let counted = run
            .facts()
            .filter(|f| matches!(f, Fact::Counted(_)))
            .count();
        assert!(counted >= 1, "{}", rule.name);
        run.replays();
    }
}

#[test]
fn tables_hold_together() {
    let mut names = BTreeSet::new();
    for protocol in PROTOCOLS {
        assert!(names.insert(protocol.name), "{} twice", protocol.name);
        assert!(!protocol.doc.is_empty() && !protocol.source.is_empty());
    }
    let settings = kd_core::config::schema();
    let listed = settings
        .pointer("/properties/deliberation/properties/protocol/enum")
        .expect("in the schema");
    for name in names.iter().chain(&["auto"]) {
        assert!(
            listed.as_array().expect("a list").iter().any(|l| l == name),
            "{name} is no setting"
        );
    }
    let mut names = BTreeSet::new();
    for stage in stages::STAGES {
        assert!(names.insert(stage.name), "{} twice", stage.name);
        assert_eq!(stages::find(stage.name).map(|s| s.title), Some(stage.title));
    }
    for role in kd_core::roles::ROLES {
        assert!(!role.duties.is_empty(), "{}", role.name);
    }
    assert!(kd_core::roles::duties("nobody knows it").contains(&Duty::Opine));
    for method in ["majority", "confidence", "weighted", "ranked-choice"] {
        assert!(voting::find(method).is_some(), "the seed's {method}");
    }
}

#[test]
fn a_vote_stops_asking_once_it_is_certain() {
    let mut plan = plan();
    plan.protocol = "vote".into();
    plan.seats = (0..5)
        .map(|n| seat(&format!("m{n}x"), "opinion-giver"))
        .collect();
    let run = run(&plan, |asked| Answer::Text(good(asked, "yes")));
    let stopped = run.facts().filter(|f| matches!(f, Fact::SeatFailed { failure, .. } if failure.message.contains("certain"))).count();
    assert_eq!(stopped, 2, "three of five are enough");
    assert_eq!(run.verdict().winner.as_deref(), Some("yes"));
    assert_ne!(run.verdict().outcome, Outcome::Degraded);
    run.replays();
}

#[test]
fn an_answer_given_up_without_a_flaw_counts_as_before() {
    let mut plan = plan();
    plan.protocol = "debate".into();
    plan.rounds = 1;
    let run = run(&plan, |asked| {
        let first = if asked.seat == "cyd" { "no" } else { "yes" };
        let said = match asked.stage.as_str() {
            "revise" => good(asked, "no").replace("a false step", "none"),
            _ => good(asked, first),
        };
        Answer::Text(said)
    });
    assert_eq!(
        run.verdict().winner.as_deref(),
        Some("yes"),
        "two conformists do not turn it"
    );
}
