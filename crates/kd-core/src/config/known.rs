//! The names that settings may use for members.

use super::keys::KNOWN_AGENTS;
use super::path::KeyPath;
use super::problem::Problem;
use super::shown::shown;
use crate::ids::SeatName;
use crate::models;
use crate::roles::{CHAIR, ROLES};
use kd_vote::nearest;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Returns a problem if a text names neither an agent nor a known model. `root` is the whole configuration.
pub(super) fn no_agent(path: KeyPath, name: &str, root: &Value) -> Option<Problem> {
    let none = Map::new();
    let agents = root.get("agents").and_then(Value::as_object);
    let agents = agents.unwrap_or(&none);
    let defined = agents.get(name).is_some_and(|agent| !agent.is_null());
    if defined || undefined_seats().any(|known| known == name) {
        return None;
    }
    if SeatName::new(name).is_ok() && models::is_known(root, name) {
        return None;
    }
    if let Err(bad) = SeatName::new(name) {
        let what = format!(
            "is {}, which cannot name a member: {}",
            shown(name),
            bad.why
        );
        return Some(Problem::new(path, what));
    }
    let what = format!(
        "names {}, but there is no such agent; define it under `agents`, or use one of {}",
        shown(name),
        listed(undefined_seats(), agents)
    );
    let mut all_seats: Vec<&str> = agents.keys().map(String::as_str).collect();
    for name in undefined_seats() {
        all_seats.push(name);
    }
    let near = nearest(name, all_seats);
    Some(Problem::new(path, what).meant(near))
}

/// Returns the member names that need no definition: agent programs, and the roles of the built-in model.
fn undefined_seats() -> impl Iterator<Item = &'static str> {
    let roles = ROLES
        .iter()
        .map(|role| role.name)
        .filter(|name| *name != CHAIR);
    KNOWN_AGENTS.iter().map(|(name, _)| *name).chain(roles)
}

/// Lists names in alphabetical order, at most twenty.
pub(super) fn listed(
    known: impl Iterator<Item = &'static str>,
    more: &Map<String, Value>,
) -> String {
    let mut names: BTreeSet<&str> = more.keys().map(String::as_str).collect();
    for name in known {
        names.insert(name);
    }
    let mut names: Vec<String> = names.into_iter().map(plain).collect();
    if names.len() > 20 {
        names.truncate(20);
        names.push("…".into());
    }
    names.join(", ")
}

/// Formats a name for a list: quoted only if necessary.
pub(super) fn plain(name: &str) -> String {
    KeyPath::new([name]).to_string()
}
