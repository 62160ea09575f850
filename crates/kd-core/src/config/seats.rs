//! `deliberation.*`: the members of a plan, and names defined by other tables.

use super::known::no_agent;
use super::path::KeyPath;
use super::problem::Problem;
use super::shown::{got, shown};
use crate::deliberation::answer::AnswerKind;
use crate::roles::ROLES;
use kd_vote::{RULES, nearest};
use serde_json::{Map, Value, json};

/// The fields of a member; the first two are required.
const FIELDS: [&str; 6] = [
    "model",
    "role",
    "persona",
    "systemPrompt",
    "temperature",
    "weight",
];

/// Returns the schema of the member list.
pub(super) fn schema() -> Value {
    let roles: Vec<&str> = ROLES.iter().map(|r| r.name).collect();
    json!({"type": ["array", "null"], "minItems": 3, "maxItems": 9, "items": {
        "type": "object",
        "properties": {
            "model": {"type": "string", "description": "An agent, a model, or local."},
            "role": {"enum": roles},
            "persona": {"type": "string"},
            "systemPrompt": {"type": "string"},
            "temperature": {"type": "number", "minimum": 0, "maximum": 2},
            "weight": {"type": "number", "minimum": 0, "maximum": 2},
        },
        "required": ["model", "role"],
        "additionalProperties": false,
    }})
}

/// Checks the list on its own.
pub(super) fn check(path: &KeyPath, value: &Value, problems: &mut Vec<Problem>) {
    let seats = value.as_array().map_or(&[][..], Vec::as_slice);
    if !(3..=9).contains(&seats.len()) {
        problems.push(Problem::new(
            path.clone(),
            format!("must have 3 to 9 members, not {}", seats.len()),
        ));
    }
    for (at, seat) in seats.iter().enumerate() {
        let path = path.join(at.to_string());
        let Some(fields) = seat.as_object() else {
            problems.push(Problem::new(
                path,
                format!(
                    "must be a member {{\"model\": …, \"role\": …}}, not {}",
                    got(seat)
                ),
            ));
            continue;
        };
        for name in ["model", "role"] {
            if fields.get(name).is_none_or(Value::is_null) {
                problems.push(Problem::new(path.join(name), "is missing"));
            }
        }
        for (name, value) in fields {
            field(&path.join(name), name, value, problems);
        }
    }
}

fn field(path: &KeyPath, name: &str, value: &Value, problems: &mut Vec<Problem>) {
    let mut wrong = |what: String, near: Option<String>| {
        problems.push(Problem::new(path.clone(), what).meant(near))
    };
    match name {
        "temperature" | "weight" => {
            if !value.as_f64().is_some_and(|n| (0.0..=2.0).contains(&n)) {
                wrong(
                    format!("must be a number from 0 to 2, not {}", got(value)),
                    None,
                );
            }
        }
        "role" => match value.as_str() {
            Some(role) if ROLES.iter().any(|r| r.name == role) => {}
            Some(role) => {
                let names: Vec<&str> = ROLES.iter().map(|r| r.name).collect();
                wrong(
                    format!(
                        "is {}, which is not a role; roles are {}",
                        shown(role),
                        names.join(", ")
                    ),
                    nearest(role, names.iter().copied()),
                );
            }
            None => wrong(
                format!("must be the name of a role, not {}", got(value)),
                None,
            ),
        },
        "model" | "persona" | "systemPrompt" => {
            if !value.is_string() {
                wrong(format!("must be text, not {}", got(value)), None);
            }
        }
        other => wrong("is not a field of a member".into(), nearest(other, FIELDS)),
    }
}

/// Returns the problems between the plan and other tables: agents, rules, kinds of answers.
pub(super) fn links(plan: &Map<String, Value>, config: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    let root = KeyPath::new(["deliberation"]);
    let council = plan.get("council").unwrap_or(&Value::Null);
    let members = council.get("members").and_then(Value::as_array);
    for (at, seat) in members.into_iter().flatten().enumerate() {
        if let Some(model) = seat
            .get("model")
            .and_then(Value::as_str)
            .filter(|m| *m != "local")
        {
            let path = root
                .join("council")
                .join("members")
                .join(at.to_string())
                .join("model");
            problems.extend(no_agent(path, model, config));
        }
    }
    let size = council.get("size").and_then(Value::as_u64);
    if let (Some(size), Some(members)) = (size, members)
        && size != members.len() as u64
    {
        problems.push(Problem::new(
            root.join("council").join("size"),
            format!("is {size}, but {} members are listed", members.len()),
        ));
    }
    let method = council
        .get("voting")
        .and_then(|v| v.get("method"))
        .and_then(Value::as_str);
    if let Some(method) = method.filter(|m| kd_vote::find(m).is_none()) {
        problems.push(
            Problem::new(
                root.join("council").join("voting").join("method"),
                format!(
                    "is {}, which is not a voting rule; `kd vote rules` lists them",
                    shown(method)
                ),
            )
            .meant(nearest(
                method,
                RULES
                    .iter()
                    .flat_map(|r| r.aliases.iter().copied().chain([r.name])),
            )),
        );
    }
    if let Some(planner) = plan
        .get("meta")
        .and_then(|m| m.get("planner"))
        .and_then(Value::as_str)
    {
        problems.extend(no_agent(root.join("meta").join("planner"), planner, config));
    }
    if let Some(answer) = plan.get("answer").and_then(Value::as_str)
        && let Err(why) = AnswerKind::parse(answer)
    {
        problems.push(Problem::new(
            root.join("answer"),
            format!("cannot be used: {why}"),
        ));
    }
    problems
}
