//! `auto` and `certain-enough` of `kd eval` decide as `kd deliberate` does from the same marks, bit for bit: recorded
//! answers of real models are played by members of real deliberations.

#![allow(clippy::disallowed_methods, reason = "it reads recorded answers")]

use super::room::{Answer, Asked, good, run};
use kd_core::config::{AgentConfig, Config};
use kd_core::deliberation::plan::Seat;
use kd_core::deliberation::{Fact, Plan};
use kd_core::planner::{Brief, plan};
use kd_core::roles::Duty;
use kd_eval::deciders::{Decision, Halves, Setting, Way};
use kd_eval::marks::{Evidence, Mark};
use kd_eval::replay::{Question, Replay, Select, read_csv};
use std::path::PathBuf;

/// The sets, how many of their questions are asked, and their members.
const SETS: [(&str, usize, [&str; 5]); 4] = [
    ("zeroeval_gsm_44models.csv", 1319, FRONTIER),
    ("zeroeval_math-l5_43models.csv", 706, FRONTIER),
    ("zeroeval_crux_51models.csv", 800, FRONTIER),
    (
        "mmlu_pro_29models.csv",
        7175,
        [
            "gemini-1.5-pro-002",
            "gemini-1.5-flash-002",
            "Meta-Llama-3_1-70B-Instruct",
            "DeepSeek-Coder-V2",
            "jamba-1.5-large",
        ],
    ),
];
const FRONTIER: [&str; 5] = [
    "gpt-4o-2024-08-06",
    "claude-3-5-sonnet-20241022",
    "gemini-1.5-pro",
    "Meta-Llama-3.1-405B-Instruct@hyperbolic",
    "Mistral-Large-2",
];
const SEED: u64 = 1;

fn replay(file: &str, members: &[&str]) -> Replay {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../kd-eval/tests/data/replay");
    let text = std::fs::read_to_string(path.join(file)).expect("recorded answers");
    let members = members.iter().map(|m| (*m).to_owned()).collect();
    let select = Select {
        members,
        ..Select::default()
    };
    read_csv(&text, &select).expect("a table")
}

/// Plans a council of these members as a user with these marks would have it.
fn planned(members: &[String], protocol: &str, marks: Vec<Mark>) -> Plan {
    let mut config = Config::default();
    let names: Vec<String> = (0..members.len()).map(|at| format!("m{at}")).collect();
    for (name, model) in names.iter().zip(members) {
        let agent = AgentConfig {
            backend: "scripted".into(),
            model: Some(model.clone()),
            ..AgentConfig::default()
        };
        config.agents.insert(name.clone(), agent);
    }
    config.deliberation.protocol = protocol.into();
    config.deliberation.answer = Some("number".into());
    let marks = marks.into_iter().map(|mark| Mark {
        kind: "number".into(),
        ..mark
    });
    let brief = Brief {
        question: "17*23?",
        asked: "17*23?",
        members: &names,
        all_sit: true,
        seed: SEED,
        marks: Evidence::of(marks.collect()).into(),
        ..Brief::default()
    };
    plan(&config, &brief).expect("a plan").plan
}

/// The number that represents an answer to a question.
fn number(key: usize) -> String {
    (101 + key).to_string()
}

/// Lets members answer as recorded. Returns the winning answer, and the members asked for their own answer.
fn live(plan: &Plan, question: &Question) -> (Option<usize>, Vec<usize>) {
    let mut asked = Vec::new();
    let play = |turn: &Asked| {
        let seat = plan.seats.iter().find(|s| s.name().as_str() == turn.seat);
        let agent = seat.map(|seat| seat.agent.as_str()).unwrap_or_default();
        let member: usize = agent[1..].parse().expect("a member");
        if ["synthesize", "conclude"].contains(&turn.stage.as_str()) {
            return Answer::Text("Done.".into());
        }
        if !asked.contains(&member) {
            asked.push(member);
        }
        match question.answers[member] {
            Some(key) => Answer::Text(good(turn, &number(key))),
            None => Answer::Fail(kd_core::FailureKind::Refused),
        }
    };
    let run = run(plan, play);
    let count = run.facts().filter_map(|fact| match fact {
        Fact::Counted(counted) => Some(counted),
        _ => None,
    });
    let count = count.last().expect("a count");
    let name = count.winner.map(|at| count.candidates[at].clone());
    let key = name.map(|name| {
        let of = |key: &usize| number(*key) == name;
        (0..question.keys.len())
            .find(of)
            .expect("a recorded answer")
    });
    asked.sort_unstable();
    (key, asked)
}

/// Compares the decisions of a protocol on every `step`th question. Returns how many there were.
fn compare(protocol: &str, step: usize) -> usize {
    let mut compared = 0;
    for (file, questions, members) in SETS {
        let replay = replay(file, &members);
        let halves = Halves::drawn(replay.questions.len(), SEED);
        let setting = Setting {
            replay: &replay,
            options: 20,
            seed: SEED,
            halves: &halves,
        };
        let decided = Way::find(protocol).expect("a rule").decide(&setting);
        let plans: Vec<Plan> = [0, 1]
            .iter()
            .map(|half| planned(&replay.members, protocol, setting.marks(*half)))
            .collect();
        for (half, plan) in plans.iter().enumerate() {
            same_weights(protocol, plan, &setting, half);
        }
        let each = replay.questions.iter().zip(&decided).enumerate();
        for (at, (question, decision)) in each.take(questions).step_by(step) {
            let (winner, asked) = live(&plans[halves.of(at)], question);
            let of = format!("{file}, {}", question.id);
            let Decision {
                winners,
                asked: of_them,
            } = decision;
            let all: Vec<usize> = (0..members.len()).collect();
            assert_eq!(&asked, of_them.as_ref().unwrap_or(&all), "{of}: asked");
            match winners.as_slice() {
                [one] => assert_eq!(winner, Some(*one), "{of}"),
                [] => assert_eq!(winner, None, "{of}"),
                tied => assert!(winner.is_none_or(|key| tied.contains(&key)), "{of}"),
            }
            compared += 1;
        }
    }
    compared
}

/// Compares the weights of a plan with those of the replay, bit for bit.
fn same_weights(protocol: &str, plan: &Plan, setting: &Setting<'_>, half: usize) {
    let opining = plan.seats.iter().filter(|s| s.has(Duty::Opine));
    let live: Vec<u64> = opining.map(|s: &Seat| s.member.weight.to_bits()).collect();
    let recorded: Vec<f64> = match protocol {
        "auto" => {
            let auto = setting.auto(half);
            assert_eq!(plan.protocol, auto.protocol);
            auto.weights.iter().map(|w| *w as f64 / 1e9).collect()
        }
        _ => {
            let enough = setting.enough(half);
            assert_eq!(plan.enough, Some(enough.clone()), "{protocol}");
            enough.weights.iter().map(|w| *w as f64 / 1e9).collect()
        }
    };
    let recorded: Vec<u64> = recorded.iter().map(|w| w.to_bits()).collect();
    assert_eq!(live, recorded, "{protocol}, half {half}");
}

#[test]
fn laboratory_and_life_decide_equally() {
    for protocol in ["auto", "certain-enough"] {
        assert!(compare(protocol, 25) >= 400);
    }
}

/// `cargo test --workspace --locked --test deliberation -- --ignored --nocapture laboratory`
#[test]
#[ignore = "it plays 20,000 deliberations"]
#[allow(clippy::print_stdout)]
fn laboratory_and_life_decide_equally_on_10_000_questions() {
    for protocol in ["auto", "certain-enough"] {
        let compared = compare(protocol, 1);
        assert_eq!(compared, 10_000);
        println!("{protocol}: {compared} questions decided equally");
    }
}
