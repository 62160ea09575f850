//! Properties of every protocol: it ends with a verdict, stays within its promised calls, and replays to the same
//! result.

use crate::room::{Answer, good, plan, run, seat};
use kd_core::deliberation::protocols::PROTOCOLS;
use kd_core::deliberation::{AnswerKind, Fact, forecast, stages};
use kd_core::roles::Duty;
use kd_vote::{Outcome, RULES};
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
        let judged = ["judged", "text"].map(|kind| (kind, true));
        for (kind, judged) in KINDS.map(|kind| (kind, false)).into_iter().chain(judged) {
            for members in 1..=5usize {
                let mut plan = plan();
                plan.judged = judged;
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
        // Everyone except ann votes for her; she has to choose among the others.
        plan.seats.push(seat("fay", "fact-checker"));
        plan.seats.push(seat("gus", "fact-checker"));
        let run = run(&plan, |asked| Answer::Text(good(asked, "ann")));
        assert!(!run.verdict().answer.is_empty(), "{}", rule.name);
        let counted = run
            .facts()
            .filter_map(|f| match f {
                Fact::Counted(counted) => Some(counted),
                _ => None,
            })
            .last()
            .expect("a count");
        assert_eq!(counted.rule, rule.name);
        assert_ne!(
            counted.form,
            Outcome::NoQuorum,
            "{}: {counted:?}",
            rule.name
        );
        // Ann takes the first label, because she cannot choose herself: as a judge she is inconsistent under
        // reordering.
        let silent = usize::from(rule.name == "jury");
        assert_eq!(
            counted.abstained.len(),
            silent,
            "{}: {counted:?}",
            rule.name
        );
        let first = counted
            .winners
            .first()
            .map(|w| counted.candidates[*w].as_str());
        match rule.name {
            // She may not vote for herself, so it is not unanimous.
            "unanimity" => assert_eq!(first, None),
            _ => assert_eq!(
                first,
                Some("the answer of ann"),
                "{}: {counted:?}",
                rule.name
            ),
        }
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
        assert!(kd_vote::find(method).is_some(), "the seed's {method}");
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

/// Returns the last count of a run.
fn counted(run: &crate::room::Run) -> kd_core::deliberation::Counted {
    run.facts()
        .filter_map(|f| match f {
            Fact::Counted(counted) => Some(counted.clone()),
            _ => None,
        })
        .last()
        .expect("a count")
}

#[test]
fn judges_are_asked_in_both_orders_and_a_verdict_that_turns_is_none() {
    let mut plan = plan();
    plan.voting.method = "jury".into();
    plan.seats.insert(3, seat("dan", "fact-checker"));
    let mut orders: Vec<(String, Vec<String>)> = Vec::new();
    let run = run(&plan, |asked| {
        let wants = if asked.seat == "cyd" { "no" } else { "yes" };
        if asked.stage == "vote" {
            let items = asked.labels.iter().map(|l| l.item.clone()).collect();
            orders.push((asked.seat.clone(), items));
            if asked.seat == "dan" {
                return Answer::Text(
                    "{\"reason\": \"the first\", \"choice\": \"A\", \"confidence\": 1}".into(),
                );
            }
        }
        Answer::Text(good(asked, wants))
    });
    assert_eq!(orders.len(), 8, "four judges, twice");
    for (judge, first) in &orders {
        let both: Vec<_> = orders.iter().filter(|(j, _)| j == judge).collect();
        assert_eq!(both.len(), 2);
        let turned: Vec<String> = both[1].1.iter().rev().cloned().collect();
        assert_eq!(both[0].1, turned, "{judge}: {first:?}");
    }
    let counted = counted(&run);
    assert_eq!(counted.voters, 3);
    assert!(
        counted.abstained[0].contains("the verdict turns with the order"),
        "{:?}",
        counted.abstained
    );
    assert_eq!(run.verdict().winner.as_deref(), Some("yes"));
    run.replays();

    // A single judge is not a member, and nobody else votes.
    let mut plan = crate::room::plan();
    plan.voting.method = "judge".into();
    plan.seats.push(seat("umpire", "arbiter"));
    let run = crate::room::run(&plan, |asked| {
        let wants = if asked.seat == "cyd" || asked.seat == "umpire" {
            "no"
        } else {
            "yes"
        };
        Answer::Text(good(asked, wants))
    });
    assert_eq!(self::counted(&run).voters, 1);
    assert_eq!(run.verdict().winner.as_deref(), Some("no"));
    run.replays();
}

#[test]
fn what_voters_foretold_counts_where_the_rule_reads_it() {
    let mut plan = plan();
    plan.voting.method = "surprising".into();
    plan.protocol = "vote".into();
    let run = run(&plan, |asked| {
        let wants = if asked.seat == "cyd" { "no" } else { "yes" };
        let mut said: serde_json::Value = serde_json::from_str(&good(asked, wants)).expect("JSON");
        for label in &asked.labels {
            if said.get("forecast").is_some() {
                // All expect nearly everyone to say yes: a third for no is a surprise.
                let percent = if label.item == "no" { 5 } else { 95 };
                said["forecast"][&label.label] = percent.into();
            }
        }
        Answer::Text(said.to_string())
    });
    let counted = counted(&run);
    assert_eq!((counted.rule.as_str(), counted.voters), ("surprising", 3));
    assert_eq!(run.verdict().winner.as_deref(), Some("no"), "{counted:?}");
    run.replays();
}

#[test]
fn what_was_said_in_earlier_rounds_counts_where_the_rule_reads_it() {
    // One of five says yes; two join it in the second round. Over both rounds no has six of ten votes.
    let vote = |method: &str| {
        let mut plan = plan();
        plan.voting.method = method.into();
        plan.rounds = 1;
        plan.protocol = "debate".into();
        plan.seats.push(seat("dan", "opinion-giver"));
        plan.seats.push(seat("fay", "opinion-giver"));
        let run = run(&plan, |asked| {
            let joins = asked.stage == "revise" && ["bob", "cyd"].contains(&asked.seat.as_str());
            let wants = if asked.seat == "ann" || joins {
                "yes"
            } else {
                "no"
            };
            Answer::Text(good(asked, wants))
        });
        run.replays();
        run.verdict().winner.clone().expect("a winner")
    };
    assert_eq!(vote("plurality"), "yes");
    assert_eq!(vote("pooled-rounds"), "no");
}

#[test]
fn a_rule_of_rankings_has_its_ballots_where_answers_could_be_counted() {
    let mut plan = plan();
    plan.protocol = "vote".into();
    plan.voting.method = "borda".into();
    let run = run(&plan, |asked| {
        Answer::Text(good(asked, if asked.seat == "cyd" { "no" } else { "yes" }))
    });
    let counted = counted(&run);
    assert_eq!(
        (counted.rule.as_str(), counted.source.as_str()),
        ("borda", "ballots")
    );
    run.replays();
}

#[test]
fn a_ballot_of_a_ranking_in_one_word_ranks_that_first() {
    for method in ["irv", "borda", "approval"] {
        let mut plan = plan();
        plan.protocol = "vote".into();
        plan.voting.method = method.into();
        let run = run(&plan, |asked| {
            let wants = if asked.seat == "cyd" { "no" } else { "yes" };
            Answer::Text(format!("I choose {wants}."))
        });
        let counted = counted(&run);
        assert_eq!(counted.rule, method);
        assert_eq!(
            run.verdict().winner.as_deref(),
            Some("yes"),
            "{method}: {:?}",
            run.verdict()
        );
        run.replays();
    }
}

#[test]
fn every_stage_of_a_protocol_is_found_by_its_name() {
    use kd_core::deliberation::protocols::Step;
    for protocol in PROTOCOLS {
        for step in protocol.steps {
            let Step::Ask(stage) = step else { continue };
            let found = stages::find(stage.name).expect("in the table");
            assert_eq!(
                found.title, stage.title,
                "{}: {}",
                protocol.name, stage.name
            );
        }
    }
    let names: BTreeSet<&str> = stages::STAGES.iter().map(|stage| stage.name).collect();
    assert_eq!(names.len(), stages::STAGES.len(), "a name means one stage");
}

/// Three members, weighed and ordered by a rule; returns the members asked and the facts that say why no more were.
fn asked_by(
    rule: Option<kd_eval::enough::Enough>,
    says: &dyn Fn(&str) -> Answer,
) -> (Vec<String>, Vec<Fact>) {
    let mut plan = plan();
    plan.protocol = "certain-enough".into();
    plan.enough = rule;
    plan.seats.retain(|seat| seat.has(Duty::Opine));
    plan.seats.push(seat("eve", "synthesizer"));
    let run = run(&plan, |asked| says(&asked.seat));
    let again = run.replays();
    assert!(again.difference.is_none() && again.finished, "{again:?}");
    let facts = || run.facts().cloned();
    let asked = facts().filter_map(|fact| match fact {
        Fact::SeatAsked { seat, stage, .. } if stage == "until-enough" => Some(seat.to_string()),
        _ => None,
    });
    let why = facts().filter(|fact| matches!(fact, Fact::AskedEnough { .. }));
    (asked.collect(), why.collect())
}

#[test]
fn members_are_asked_until_the_leader_is_certain_enough() {
    use kd_eval::enough::Enough;
    let yes =
        |_: &str| Answer::Text(r#"{"reason": "r", "answer": "yes", "confidence": 0.9}"#.into());
    let learned = |threshold| Enough {
        order: vec![2, 0, 1],
        weights: vec![1_000_000_000; 3],
        chances: vec![
            vec![(0, 700_000), (300_000, 930_000)],
            vec![(0, 500_000), (600_000, 990_000)],
            vec![],
        ],
        threshold,
        required: None,
        forecast: None,
    };
    // One answer is a lead of a third.
    let (asked, why) = asked_by(Some(learned(900_000)), &yes);
    assert_eq!(asked, ["cyd"]);
    let [
        Fact::AskedEnough {
            spared,
            chance,
            settled,
            ..
        },
    ] = &why[..]
    else {
        panic!("{why:?}");
    };
    assert_eq!((spared.len(), *chance, *settled), (2, Some(0.93), false));
    let (asked, _) = asked_by(Some(learned(950_000)), &yes);
    assert_eq!(asked, ["cyd", "ann"]);
    // Without marks: until two of three agree, in the order of the council.
    let (asked, why) = asked_by(None, &yes);
    assert_eq!(asked, ["ann", "bob"]);
    assert!(
        matches!(
            &why[..],
            [Fact::AskedEnough {
                chance: None,
                settled: true,
                ..
            }]
        ),
        "{why:?}"
    );
    // A member that fails is not asked again, and those who disagree bring in the third.
    let (asked, _) = asked_by(Some(learned(900_000)), &|seat| match seat {
        "cyd" => Answer::Fail(kd_core::FailureKind::Auth),
        _ => yes(seat),
    });
    assert_eq!(
        asked,
        ["cyd", "ann", "bob"],
        "nothing says that one answer of two is enough"
    );
    let (asked, _) = asked_by(None, &|seat| match seat {
        "ann" => Answer::Text(r#"{"reason": "r", "answer": "no", "confidence": 0.9}"#.into()),
        _ => yes(seat),
    });
    assert_eq!(asked, ["ann", "bob", "cyd"]);
    // A rule for other members than those of the plan is not used.
    let mut foreign = learned(900_000);
    foreign.order = vec![0, 1];
    let (asked, _) = asked_by(Some(foreign), &yes);
    assert_eq!(asked, ["ann", "bob"]);
}
