//! Problems that kingdom-cli 1.1.0 would have with `.kd/config.json`. It rejects unknown keys and values, so such
//! settings belong in another file.

use super::keys;
use super::path::KeyPath;
use super::problem::Problem;
use super::shown::shown;
use serde_json::{Map, Value};

/// The backends it knows.
const BACKENDS: &[&str] = &["claude_code", "codex", "cursor"];
/// The agents it knows without a definition.
const AGENTS: &[&str] = &["claude", "codex"];
const CLAUDE_EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
const CODEX_EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max", "ultra"];

/// Returns the problems that kingdom-cli 1.1.0 reports in `.kd/config.json` in addition to our own checks.
pub fn kingdom_problems(value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(&KeyPath::default(), value, &mut problems);
    let empty = Map::new();
    let agents = value
        .get("agents")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    for (name, agent) in agents {
        let field = |field: &str| agent.get(field).and_then(Value::as_str).unwrap_or_default();
        let (backend, effort) = (field("backend"), field("effort"));
        let path = KeyPath::new(["agents", name.as_str()]);
        if !BACKENDS.contains(&backend) {
            problems.push(refused(
                path.join("backend"),
                "knows only the backends claude_code, codex and cursor",
            ));
        }
        let efforts = match backend {
            "claude_code" => CLAUDE_EFFORTS,
            "codex" => CODEX_EFFORTS,
            _ => &[],
        };
        if !effort.is_empty() && !efforts.contains(&effort) {
            problems.push(refused(
                path.join("effort"),
                &format!("does not know the effort {} there", shown(effort)),
            ));
        }
    }
    for place in [
        "council.members",
        "council.review_members",
        "peasant.agent",
        "lord.agent",
    ] {
        let path = KeyPath::new(place.split('.'));
        let names = match path.find(value) {
            Some(Value::Array(names)) => names.iter().collect(),
            Some(name) => vec![name],
            None => Vec::new(),
        };
        for name in names.into_iter().filter_map(Value::as_str) {
            if !agents.contains_key(name) && !AGENTS.contains(&name) {
                problems.push(refused(
                    path.clone(),
                    &format!("finds no agent {} in that file", shown(name)),
                ));
            }
        }
    }
    problems
}

fn refused(path: KeyPath, why: &str) -> Problem {
    Problem::new(path, format!("is refused by kingdom-cli 1.1.0: it {why}"))
}

fn walk(path: &KeyPath, value: &Value, problems: &mut Vec<Problem>) {
    match (keys::find(path), value) {
        (Some(key), Value::Null) if key.kingdom => {
            problems.push(refused(path.clone(), "takes no null"))
        }
        (Some(key), _) if key.kingdom => {}
        (None, Value::Object(fields)) => {
            for (name, value) in fields {
                walk(&path.join(name), value, problems);
            }
        }
        _ => problems.push(refused(path.clone(), "does not know this key")),
    }
}
