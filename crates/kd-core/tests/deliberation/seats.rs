//! Who takes part in a council, and who has a vote.

use crate::room::{Answer, good, run};
use kd_core::config::{AgentConfig, Config, MemberPlan};
use kd_core::deliberation::Plan;
use kd_core::deliberation::plan::{Seat, Strategy};
use kd_core::deliberation::protocols::PROTOCOLS;
use kd_core::planner::{Brief, plan};
use kd_core::roles::Duty;
use kd_core::view::View;
use std::collections::BTreeSet;

fn agents(count: usize) -> Config {
    let mut config = Config::default();
    for n in 1..=count {
        let agent = AgentConfig {
            backend: "scripted".into(),
            ..AgentConfig::default()
        };
        config.agents.insert(format!("m{n}"), agent);
    }
    config
}

#[test]
fn whoever_is_named_gives_one_opinion_and_has_one_vote() {
    let questions = [
        "Is it safe?",
        "Should we paint it red or blue?",
        "What is 17*23?",
        "Compare Rust with Go.",
    ];
    for protocol in PROTOCOLS {
        for named in 1..=7 {
            for (iterate, question) in [false, true]
                .iter()
                .flat_map(|i| questions.map(|q| (*i, q)))
            {
                for strategy in [Strategy::Refine, Strategy::Escalate] {
                    let mut config = agents(8);
                    let members: Vec<String> = (1..=named).map(|n| format!("m{n}")).collect();
                    config.deliberation.protocol = protocol.name.into();
                    config.deliberation.iteration.enabled = iterate;
                    config.deliberation.iteration.strategy = strategy;
                    let brief = Brief {
                        question,
                        asked: question,
                        members: &members,
                        all_sit: true,
                        ..Brief::default()
                    };
                    let plan = plan(&config, &brief).unwrap().plan;
                    let case = format!("{} -m {named} {iterate} {question}", protocol.name);
                    assert!(plan.seats.len() <= 9 || named == 1, "{case}");
                    if named == 1 {
                        assert!(plan.seats.iter().all(|seat| !seat.no_vote), "{case}");
                        continue;
                    }
                    for member in &members {
                        let of = |duty| {
                            let seats = plan.seats.iter();
                            seats.filter(|s| s.agent == *member && s.has(duty)).count()
                        };
                        let first = plan.seats.iter().find(|s| s.agent == *member);
                        assert!(first.is_some_and(|s| s.has(Duty::Opine)), "{case}");
                        assert_eq!((of(Duty::Opine), of(Duty::Vote)), (1, 1), "{case} {member}");
                    }
                    assert!(plan.with(Duty::Reserve).is_empty(), "{case}");
                    let of_the_named = |s: &Seat| members.contains(&s.agent);
                    assert!(plan.seats.iter().all(of_the_named), "{case}");
                }
            }
        }
    }
}

/// Plays a plan whose members give the same answer, or each another.
fn played(plan: &Plan, agree: bool) -> (BTreeSet<String>, Vec<String>) {
    let mut asked_of = BTreeSet::new();
    let held = run(plan, |asked| {
        asked_of.insert(asked.seat.clone());
        let other = (asked.seat.len() + usize::from(asked.seat.as_bytes()[1])) % 2 == 0;
        Answer::Text(good(asked, if agree || other { "yes" } else { "no" }))
    });
    let agents = plan
        .seats
        .iter()
        .filter(|s| asked_of.contains(s.name().as_str()));
    let agents = agents.map(|s| s.agent.clone()).collect();
    let report = View::of(&held.records).report;
    (agents, [report.notices, report.enough].concat())
}

#[test]
fn whoever_is_named_is_asked_or_it_is_told_who_is_not_and_why() {
    let strategies = [
        None,
        Some(Strategy::Refine),
        Some(Strategy::Escalate),
        Some(Strategy::Specialize),
        Some(Strategy::Debate),
    ];
    let mut told = 0;
    for protocol in PROTOCOLS {
        for named in 1..=7 {
            // A strategy changes later passes only.
            let few = if named == 4 { 5 } else { 1 };
            for strategy in strategies.into_iter().take(few) {
                let mut config = agents(8);
                let members: Vec<String> = (1..=named).map(|n| format!("m{n}")).collect();
                config.deliberation.protocol = protocol.name.into();
                config.deliberation.answer = Some(match protocol.name {
                    "delphi" => "number".into(),
                    _ => "yes-no".into(),
                });
                config.deliberation.iteration.enabled = strategy.is_some();
                config.deliberation.iteration.max_iterations = 2;
                config.deliberation.iteration.strategy = strategy.unwrap_or_default();
                let brief = Brief {
                    question: "Is it safe?",
                    asked: "Is it safe?",
                    members: &members,
                    all_sit: true,
                    ..Brief::default()
                };
                let planned = plan(&config, &brief).unwrap();
                for agree in [true, false] {
                    let (asked, after) = played(&planned.plan, agree);
                    let case = format!("{} -m {named} {strategy:?} {agree}", protocol.name);
                    for member in members.iter().filter(|m| !asked.contains(*m)) {
                        let names = |notice: &&String| {
                            let mut words = notice.split(|c: char| !c.is_alphanumeric());
                            words.any(|word| word == member)
                        };
                        let before = planned.notices.iter().filter(names);
                        let before: Vec<&String> = before.collect();
                        assert!(
                            !before.is_empty(),
                            "{case}: nothing says that {member} is not asked"
                        );
                        // A member that the plan does not decide about is announced once that is known.
                        let is_certain =
                            before.iter().any(|n| n.contains("not asked for an answer"));
                        assert!(
                            is_certain || after.iter().any(|n| names(&n)),
                            "{case}: {member}: {after:?}"
                        );
                        told += 1;
                    }
                }
            }
        }
    }
    assert!(told > 100, "{told}");
}

/// Three listed seats of two agents.
fn twice_in_three() -> Vec<MemberPlan> {
    let seats = [
        ("m1", "opinion-giver"),
        ("m2", "skeptic"),
        ("m1", "creative"),
    ];
    let seats = seats.map(|(model, role)| MemberPlan {
        model: model.into(),
        role: role.into(),
        ..MemberPlan::default()
    });
    seats.to_vec()
}

#[test]
fn opinions_without_a_vote_are_told() {
    let mut config = agents(3);
    config.deliberation.council.members = Some(twice_in_three());
    let brief = Brief {
        question: "Why?",
        asked: "Why?",
        ..Brief::default()
    };
    let told = |config: &Config| {
        let notices = plan(config, &brief).unwrap().notices;
        notices.into_iter().find(|n| n.contains("no vote"))
    };
    assert_eq!(
        told(&config).as_deref(),
        Some(
            "an opinion, but no vote, since two seats of an agent are no two opinions: m1-creative (m1 votes as m1)"
        )
    );
    config.deliberation.council.members = None;
    assert_eq!(told(&config), None);
}

#[test]
fn an_agent_in_two_seats_has_one_vote() {
    let mut config = agents(5);
    let names: Vec<String> = config.agents.keys().cloned().collect();
    config.deliberation.preset = Some("diverse".into());
    let votes = |config: &Config, members: &[String]| {
        let brief = Brief {
            question: "Why?",
            asked: "Why?",
            members,
            ..Brief::default()
        };
        let plan = plan(config, &brief).unwrap().plan;
        let of = |duty| -> Vec<String> {
            let with = plan.with(duty).into_iter();
            with.map(|s| plan.seats[s].name().to_string()).collect()
        };
        (of(Duty::Opine).join(" "), of(Duty::Vote).join(" "))
    };
    let all = |text: &str| (text.to_owned(), text.to_owned());
    assert_eq!(votes(&config, &names[..2]), all("m1 m2"));
    assert_eq!(votes(&config, &names[..3]), all("m1 m2 m3"));
    // Four opinions; the fifth agent only checks, and votes.
    let five = votes(&config, &names);
    assert_eq!(five, ("m1 m2 m3 m4".into(), "m1 m2 m3 m4 m5".into()));
    // A council of one agent is counted by seat.
    let alone = votes(&config, &names[..1]);
    assert_eq!(alone.0.split(' ').count(), 4);
    assert_eq!(alone.1.split(' ').count(), 6);
    // Listed seats too: an opinion more, and no vote more.
    config.deliberation.council.members = Some(twice_in_three());
    let listed = votes(&config, &names);
    assert_eq!(listed, ("m1 m2 m1-creative".into(), "m1 m2".into()));
}
