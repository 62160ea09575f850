//! Records that were damaged or written by hand: they are refused or differ, and never end the program.

use crate::room::{Answer, Asked, good, plan, run, seat};
use kd_core::deliberation::plan::Strategy;
use kd_core::deliberation::{
    AnswerKind, Change, Plan, changed_messages, last, replay, resumable, robustness, what_if, why,
};
use kd_core::view::View;
use kd_core::{FailureKind, Record, SeatName};
use serde_json::{Value, json};

/// What numbers become; `None` removes them with their field.
const VALUES: [Option<u64>; 3] = [None, Some(4_294_967_295), Some(u64::MAX)];

/// Returns the paths to all numbers of a value.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                numbers(item, &format!("{path}/{at}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                numbers(field, &format!("{path}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Sets or removes the value at a path.
fn put(value: &mut Value, path: &str, new: Option<u64>) {
    if let Some(new) = new {
        if let Some(there) = value.pointer_mut(path) {
            *there = json!(new);
        }
        return;
    }
    let Some((parent, name)) = path.rsplit_once('/') else {
        return;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Ok(at) = name.parse::<usize>() {
                items.remove(at);
            }
        }
        _ => {}
    }
}

/// The events whose content decides; others are only shown, and compared.
const INPUTS: [&str; 4] = ["opened", "readings", "seat_replied", "seat_failed"];

/// Shows a record as commands do.
fn shown(records: &[Record]) {
    let report = View::of(records).report;
    let _ = (why(&report), report.map(), report.members(), report.spent());
    let _ = changed_messages(records, &[]);
}

/// Decides a record again as commands do: each second one in another way. Returns whether it still agrees.
fn decided(records: &[Record], turn: usize) -> bool {
    let Some(records) = last(records.to_vec()) else {
        return false;
    };
    let report = View::of(&records).report;
    match (turn % 3, &report.verdict) {
        (0, Some(verdict)) => {
            let _ = robustness(&records, verdict);
        }
        (1, _) => {
            let _ = resumable(&records);
        }
        _ => {
            let change = Change {
                without: vec![SeatName::new("bob").expect("a name")],
                seed: Some(3),
                ..Change::default()
            };
            let _ = what_if(&records, &change, false);
        }
    }
    replay(&records).is_some_and(|replayed| replayed.difference.is_none())
}

/// The replies: one member fails, and the others disagree.
fn usual(asked: &Asked) -> Answer {
    let wants = if asked.seat == "ann" { "yes" } else { "no" };
    match (asked.stage.as_str(), asked.seat.as_str()) {
        ("opinions", "cyd") => Answer::Fail(FailureKind::Timeout),
        ("sameness", _) => Answer::Text(json!({"groups": [["A"], ["B"]], "claims": [{"claim": "c", "says": ["A"], "denies": ["B"]}], "missing": []}).to_string()),
        _ => Answer::Text(format!("Well: {}", good(asked, wants))),
    }
}

/// Plans with few members.
fn plans() -> Vec<Plan> {
    let of = |protocol: &str, rule: &str, answers: &str| {
        let mut plan = plan();
        plan.protocol = protocol.into();
        plan.voting.method = rule.into();
        plan.answers = AnswerKind::parse(answers).expect("known");
        plan.judged = answers == "text";
        plan.seats = ["ann", "bob", "cyd"]
            .map(|n| seat(n, "opinion-giver"))
            .into();
        plan
    };
    let mut passes = of("vote", "irv", "yes-no");
    passes.iteration.enabled = true;
    passes.iteration.max_iterations = 2;
    passes.iteration.strategy = Strategy::Specialize;
    vec![
        of("council", "score", "yes-no"),
        of("peer-review", "borda", "text"),
        of("delphi", "plurality", "number"),
        passes,
    ]
}

#[test]
fn no_number_of_a_record_ends_the_program() {
    let (mut tried, mut read, mut agreed, mut panics) = (0, 0, 0, Vec::new());
    for plan in plans() {
        let mut records = run(&plan, usual).records;
        let lines: Vec<Value> = records
            .iter()
            .map(|r| serde_json::to_value(r).expect("JSON"))
            .collect();
        for (at, line) in lines.iter().enumerate() {
            let fact = &line["fact"]["fact"];
            let decides =
                INPUTS.iter().any(|input| fact == input) || line["event"] == "thread_opened";
            let mut paths = Vec::new();
            numbers(line, "", &mut paths);
            // Every line has these.
            paths.retain(|path| at == 0 || !["/v", "/seq"].contains(&path.as_str()));
            let values = |n: usize| match decides {
                true => VALUES.to_vec(),
                false => vec![VALUES[n % VALUES.len()]],
            };
            let changes = paths.iter().enumerate();
            for (path, value) in
                changes.flat_map(|(n, p)| values(n).into_iter().map(move |v| (p, v)))
            {
                tried += 1;
                let mut line = line.clone();
                put(&mut line, path, value);
                let Ok(record) = serde_json::from_value::<Record>(line) else {
                    continue;
                };
                read += 1;
                let whole = std::mem::replace(&mut records[at], record);
                let used = std::panic::catch_unwind(|| {
                    shown(&records);
                    decides && decided(&records, tried)
                });
                records[at] = whole;
                match used {
                    Ok(agrees) => agreed += usize::from(agrees),
                    Err(_) => panics.push(format!("{} {at}{path} {value:?}", plan.protocol)),
                }
            }
        }
    }
    println!("{tried} changes, {read} still a record, {agreed} of no effect");
    assert!(panics.is_empty(), "{panics:#?}");
    assert!(read > 300 && agreed < read);
}

#[test]
fn a_recorded_vote_that_is_impossible_does_not_count() {
    for (rule, mark) in [
        ("plurality", json!({"choice": 9})),
        ("plurality", json!({"ranking": [0, 1]})),
        ("irv", json!({"ranking": [0, 7]})),
        ("irv", json!({"ranking": [0, 0]})),
        ("approval", json!({"approvals": [1, 9]})),
        ("score", json!({"scores": [1.0]})),
        ("score", json!({"scores": [1.0, 2.0, 3.0, 4.0]})),
        ("score", json!({"scores": [1e300, 2.0]})),
    ] {
        let mut plan = plan();
        plan.voting.method = rule.into();
        let held = run(&plan, |asked| {
            let wants = if asked.seat == "ann" { "yes" } else { "no" };
            Answer::Text(format!("Well: {}", good(asked, wants)))
        });
        let mut changed = 0;
        let records: Vec<Record> = held
            .records
            .iter()
            .map(|record| {
                let mut line = serde_json::to_value(record).expect("JSON");
                let readings = line
                    .pointer_mut("/fact/readings")
                    .and_then(Value::as_array_mut);
                for reading in readings.into_iter().flatten() {
                    if reading["sought"] == "ballot" {
                        reading["found"] = json!({"Ok": [mark, "embedded"]});
                        changed += 1;
                    }
                }
                serde_json::from_value(line).expect("a record")
            })
            .collect();
        assert!(changed > 0, "{rule}");
        let replayed = replay(&records).expect("a deliberation");
        assert!(replayed.difference.is_some(), "{rule} {mark}");
    }
}
