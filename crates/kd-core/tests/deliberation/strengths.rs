//! What `auto` knows about members: from published evaluations, and from marks of all of them together.

use jiff::Timestamp;
use kd_core::config::{AgentConfig, Config};
use kd_core::deliberation::Plan;
use kd_core::planner::{Brief, plan};
use kd_eval::marks::{By, Evidence, JOINT_QUESTIONS, Mark, Member, Published, VERSION};

fn mark(members: &[(&str, &str)]) -> Mark {
    let member = |(model, key): &(&str, &str)| Member {
        name: (*model).into(),
        model: (*model).into(),
        key: Some((*key).into()),
        backs: *key == "7",
        confidence: None,
    };
    Mark {
        v: VERSION,
        project: "p".into(),
        thread: "t".into(),
        message: 1,
        at: Timestamp::UNIX_EPOCH,
        by: By::User,
        kind: "number".into(),
        protocol: "vote".into(),
        members: members.iter().map(member).collect(),
        unasked: Vec::new(),
        stopping: None,
        winner: Some("7".into()),
        credit: 1.0,
        answer: Some("7".into()),
        calls: 0,
        usd: 0.0,
    }
}

/// Plans `auto` for three models with this evidence.
fn auto_of(models: [&str; 3], marks: Evidence) -> Plan {
    plan_of("auto", "number", models, marks)
}

fn plan_of(protocol: &str, answer: &str, models: [&str; 3], marks: Evidence) -> Plan {
    let mut config = Config::default();
    let names = ["ann", "bob", "cyd"].map(str::to_owned);
    for (name, model) in names.iter().zip(models) {
        let agent = AgentConfig {
            backend: "scripted".into(),
            model: Some(model.into()),
            ..AgentConfig::default()
        };
        config.agents.insert(name.clone(), agent);
    }
    config.deliberation.protocol = protocol.into();
    config.deliberation.answer = Some(answer.into());
    let brief = Brief {
        question: "What is 3 + 4?",
        asked: "What is 3 + 4?",
        members: &names,
        all_sit: true,
        marks: marks.into(),
        ..Brief::default()
    };
    plan(&config, &brief).expect("a plan").plan
}

#[test]
fn without_marks_published_strengths_weigh_votes_and_the_plan_says_so() {
    let models = [
        "gpt-4o-mini-2024-07-18",
        "gemma-2-2b-it",
        "gpt-3.5-turbo-0125",
    ];
    let plan = auto_of(models, Evidence::default().with(Published::all()));
    let weights: Vec<f64> = plan.seats.iter().map(|seat| seat.member.weight).collect();
    assert!(
        weights[0] > weights[2] && weights[2] > weights[1],
        "{weights:?}"
    );
    let why = &plan.meta.reasoning;
    assert!(why.contains("published: GSM8K; MATH level 5"), "{why}");
    assert!(!plan.fitted);
    let unknown = auto_of(
        ["m-ann", "gemma-2-2b-it", "m-cyd"],
        Evidence::default().with(Published::all()),
    );
    assert!(unknown.seats.iter().all(|seat| seat.member.weight == 1.0));
}

#[test]
fn from_enough_marks_of_all_members_weights_are_fitted() {
    let says = |right: bool| if right { "7" } else { "8" };
    let marks = |n: usize| -> Vec<Mark> {
        let of = |at: usize| {
            let members = [
                ("m-ann", says(!at.is_multiple_of(3))),
                ("m-bob", says(!at.is_multiple_of(3))),
                ("m-cyd", says(!at.is_multiple_of(4))),
            ];
            mark(&members)
        };
        (0..n).map(of).collect()
    };
    let models = ["m-ann", "m-bob", "m-cyd"];
    let few = auto_of(models, Evidence::of(marks(JOINT_QUESTIONS - 1)));
    let many = auto_of(models, Evidence::of(marks(JOINT_QUESTIONS)));
    assert!(!few.fitted && many.fitted);
    // Two that always err together are worth one: with odds they outvote the third, which is right more often.
    let outweighs = |plan: &Plan| {
        let weight = |seat: usize| plan.seats[seat].member.weight;
        weight(2) > weight(0) + weight(1)
    };
    assert!(!outweighs(&few) && outweighs(&many));
    assert!(
        many.meta.reasoning.contains("share a weight"),
        "{}",
        many.meta.reasoning
    );
}

/// What was measured elsewhere weighs votes; only marks of this kind of question let one member decide alone.
#[test]
fn published_strengths_let_no_member_answer_alone() {
    let models = ["chatgpt-4o-latest", "gemma-2-2b-it", "gemma-2-2b-it"];
    let published = || Evidence::default().with(Published::all());
    for kind in ["number", "date"] {
        for protocol in ["auto", "certain-enough"] {
            let plan = plan_of(protocol, kind, models, published());
            let weights: Vec<f64> = plan.seats.iter().map(|seat| seat.member.weight).collect();
            let own = weights[0];
            assert!(
                own > weights[1] && own < weights[1] + weights[2],
                "{weights:?}"
            );
            assert_ne!(plan.protocol, "sample-vote", "{kind}");
            // `auto` may add a member that moderates.
            assert!(plan.seats.len() >= 3, "{protocol}, {kind}");
        }
    }
    let models = ["m-ann", "m-bob", "m-cyd"];
    let marks = |n: usize| -> Vec<Mark> {
        let of = |at: usize| {
            let says = |right: bool| if right { "7" } else { "8" };
            mark(&[
                ("m-ann", "7"),
                ("m-bob", says(at.is_multiple_of(2))),
                ("m-cyd", says(at % 2 == 1)),
            ])
        };
        (0..n).map(of).collect()
    };
    for (n, is_alone) in [(39, false), (40, true)] {
        let plan = auto_of(models, Evidence::of(marks(n)));
        assert_eq!(plan.protocol == "sample-vote", is_alone, "{n}");
    }
}
