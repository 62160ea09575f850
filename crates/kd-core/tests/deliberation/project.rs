//! Tests the calls that a project's files can cause: runs deliberations under every value of every setting that applies
//! without the user's consent, and compares their calls with those of the user's own plan.

use super::room::{Answer, Asked, good, run};
use kd_core::config::{
    Config, FromProject, KEYS, Key, KeyPath, Kind, Reader, hold_back, nested, wanted,
};
use kd_core::deliberation::Plan;
use kd_core::planner::{Brief, plan};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Settings that apply as written and that `kd` reads, with the reason why they add no call.
const FREE: &[(&str, &str)] = &[
    ("agents.<name>.temperature", "how one answer is sampled"),
    ("agents.<name>.top_p", "how one answer is sampled"),
    ("agents.<name>.min_p", "how one answer is sampled"),
    ("agents.<name>.seed", "how one answer is sampled"),
    ("chat.theme", "colors"),
    ("chat.frame", "lines around messages"),
    ("chat.notify", "a bell"),
    ("chat.screen", "where the chat is drawn"),
    ("forum.scheduler", "the order within a cycle"),
];

/// Configurations of a user with paid members `m` and `n`.
fn users() -> Vec<Value> {
    let agent = json!({"backend": "command", "dialect": "text", "command": ["m"]});
    let user = |deliberation: Value| {
        json!({"council": {"members": ["m", "n"]}, "agents": {"m": agent, "n": agent, "o": agent},
            "deliberation": deliberation})
    };
    vec![
        user(json!({})),
        user(
            json!({"preset": "small", "answer": "yes-no", "maxCalls": 200,
            "iteration": {"enabled": true, "maxIterations": 3, "maxTokens": 1_000_000}}),
        ),
        user(
            json!({"preset": "standard", "maxCalls": 200, "iteration": {"enabled": true, "convergenceThreshold": 0.5}}),
        ),
        user(json!({"protocol": "debate", "rounds": 2})),
    ]
}

/// Values of a setting: both ends, all words, and lists of members that an attacker would try.
fn values(key: &Key) -> Vec<Value> {
    let seats = |model: &str| {
        let roles = ["skeptic", "explorer", "opinion-giver"];
        json!(roles.map(|role| json!({"model": model, "role": role})))
    };
    match key.kind {
        Kind::OneOf(words) => words.iter().map(|word| json!(word)).collect(),
        Kind::Bool => vec![json!(true), json!(false)],
        Kind::Whole { min, max } => vec![json!(min), json!(min + 1), json!(max.min(1 << 40))],
        Kind::Number { min, max } => vec![json!(min), json!((min + max) / 2.0), json!(max)],
        Kind::Words | Kind::Text => [
            "judged",
            "text",
            "yes-no",
            "number",
            "choice:a,b,c,d,e,f",
            "set",
            "borda",
        ]
        .map(|word| json!(word))
        .to_vec(),
        Kind::Agents | Kind::Texts => vec![
            json!(["m", "n"]),
            json!(["n", "m", "o"]),
            json!(["m", "n", "skeptic", "explorer", "reviewer", "opinion-giver"]),
            json!(["skeptic", "explorer", "reviewer", "opinion-giver"]),
        ],
        Kind::Agent => vec![json!("m"), json!("o"), json!("skeptic")],
        Kind::Seats => vec![
            seats("m"),
            seats("o"),
            seats("local"),
            json!([{"model": "m", "role": "skeptic"}]),
            json!([{"model": "m", "role": "skeptic"}, {"model": "n", "role": "explorer"}]),
            json!([{"model": "m", "role": "skeptic"}, {"model": "n", "role": "reviewer"}, {"model": "local", "role": "explorer"}]),
            json!([{"model": "m", "role": "skeptic"}, {"model": "o", "role": "reviewer"}]),
            json!([{"model": "m", "role": "skeptic", "weight": 2}, {"model": "n", "role": "explorer"}]),
        ],
        Kind::Backend | Kind::Url | Kind::Variable | Kind::File => Vec::new(),
    }
}

fn laid_over(below: &Value, file: &Value) -> Value {
    match (below, file) {
        (Value::Object(below), Value::Object(file)) => {
            let mut all = below.clone();
            for (name, value) in file {
                let old = all.get(name).cloned().unwrap_or_default();
                all.insert(name.clone(), laid_over(&old, value));
            }
            Value::Object(all)
        }
        (_, file) => file.clone(),
    }
}

/// Returns the plan of a user in a folder with this file, without settings that need consent; `None` if there is none.
fn planned(user: &Value, file: &Value) -> Option<Plan> {
    let mut counts = file.clone();
    let held = wanted(&counts, user);
    hold_back(&mut [(&mut counts, held)], user);
    let config = Config::from_value(&laid_over(user, &counts)).ok()?;
    let question = "Is it safe to deploy on Friday?";
    let brief = Brief {
        question,
        asked: question,
        members: &[],
        all_sit: false,
        seed: 7,
        seeded: false,
        personas: BTreeMap::new(),
        background: String::new(),
        model: None,
        temperature: None,
        timeout: None,
        tools: None,
        marks: Default::default(),
        required: None,
        marks_fault: None,
    };
    Some(plan(&config, &brief).ok()?.plan)
}

/// Counts the calls of paid agents, in the more expensive of two cases: all agree, or nobody does.
fn calls(plan: &Plan) -> usize {
    let is_free = |seat: &str| {
        let seat = plan
            .seats
            .iter()
            .find(|known| known.member.name.as_str() == seat);
        seat.is_some_and(|seat| seat.member.backend == "local")
    };
    let count = |wants: &dyn Fn(&Asked, usize) -> &'static str| {
        let mut paid = 0;
        let mut asked_before = 0;
        run(plan, |asked| {
            asked_before += 1;
            paid += usize::from(!is_free(&asked.seat));
            Answer::Text(good(asked, wants(asked, asked_before)))
        });
        paid
    };
    let agree = count(&|_, _| "yes");
    let differ = count(&|_, at| if at % 2 == 0 { "no" } else { "yes" });
    agree.max(differ)
}

#[test]
fn no_row_makes_a_question_dearer_than_the_users_own_plan_without_consent() {
    let mut tried = 0;
    for user in users() {
        let own = planned(&user, &json!({})).expect("the user's own plan");
        let most = calls(&own);
        for key in KEYS {
            let path = KeyPath::new(key.pattern().map(|part| match part {
                "<name>" => "m",
                part => part,
            }));
            for value in values(key).into_iter().chain([Value::Null]) {
                // A plan that cannot be made costs nothing, and an equal plan costs the same.
                let plan = planned(&user, &nested(&path, value.clone()));
                if let Some(plan) = plan.filter(|plan| *plan != own) {
                    tried += 1;
                    let calls = calls(&plan);
                    assert!(
                        calls <= most,
                        "{path} = {value}: {calls} calls instead of {most}"
                    );
                }
            }
        }
    }
    assert!(tried > 20, "only {tried} plans differ");
}

#[test]
fn every_row_that_counts_as_written_has_a_reason() {
    for key in KEYS.iter().filter(|key| key.reader == Reader::Kd) {
        let known = FREE.iter().any(|(path, _)| *path == key.path);
        assert_eq!(key.project == FromProject::Free, known, "{}", key.path);
    }
}
