//! Finds all problems of a configuration at once.
//!
//! Input: a JSON value, one layer or all of them merged. Output: problems, in the order of the value.
//! [`keys`](super::keys) defines the values of each key; this module checks them.

use super::forum::{self, Settings};
use super::keys::{self, BACKENDS, KEYS, Key, Kind, NOT_PROVIDERS, RETIRED};
use super::known::{listed, no_agent};
use super::path::KeyPath;
use super::problem::Problem;
use super::shown::{got, looks_secret, shown};
use crate::ids::SeatName;
use crate::planner::presets;
use kd_vote::nearest;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Returns all problems of a whole configuration: [`check_shape`] and [`check_links`].
pub fn check(value: &Value) -> Vec<Problem> {
    let mut problems = check_shape(value);
    problems.extend(check_links(value));
    problems
}

/// Returns the problems of a single layer: unknown keys, wrong types, values out of range, bad names, secrets.
///
/// `null` means "unset" everywhere.
pub fn check_shape(value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    if value.is_object() {
        shape(&KeyPath::default(), value, &mut problems);
    } else {
        problems.push(Problem::new(
            KeyPath::default(),
            format!(
                "the configuration must be an object {{…}}, not {}",
                got(value)
            ),
        ));
    }
    problems
}

/// Returns the problems between keys, once all layers are merged: agents without a backend, members that name no agent,
/// unknown backends. Ignores values of the wrong type, which [`check_shape`] reports.
pub fn check_links(value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    let empty = Map::new();
    let section = |name: &str| value.get(name).and_then(Value::as_object).unwrap_or(&empty);
    let (agents, providers) = (section("agents"), section("providers"));

    for (name, agent) in agents {
        let Some(agent) = agent.as_object() else {
            continue;
        };
        let path = KeyPath::new(["agents", name.as_str(), "backend"]);
        match agent.get("backend") {
            None | Some(Value::Null) => problems.push(Problem::new(
                path,
                "is missing: set the backend of this member, for example \"local\"",
            )),
            Some(Value::String(backend)) => {
                if !BACKENDS.contains(&backend.as_str())
                    && providers.get(backend).is_none_or(Value::is_null)
                {
                    let known = BACKENDS.iter().copied();
                    let near = nearest(backend, known.chain(providers.keys().map(String::as_str)));
                    problems.push(
                        Problem::new(
                            path,
                            format!(
                                "is {}, which is neither a backend nor a provider; known are {}",
                                shown(backend),
                                listed(BACKENDS.iter().copied(), providers)
                            ),
                        )
                        .meant(near),
                    );
                }
            }
            Some(_) => {}
        }
    }

    let council = section("council");
    if let Some(members) = council.get("members").and_then(Value::as_array) {
        let mut seen = BTreeSet::new();
        for (at, member) in members.iter().enumerate() {
            let Some(member) = member.as_str() else {
                continue;
            };
            let path = KeyPath::new(["council", "members"]).join(at.to_string());
            if seen.insert(member) {
                problems.extend(no_agent(path, member, value));
            } else {
                problems.push(Problem::new(path, format!("lists {} twice", shown(member))));
            }
        }
    }
    for (name, model) in section("serve")
        .get("models")
        .and_then(Value::as_object)
        .unwrap_or(&empty)
    {
        let path = KeyPath::new(["serve", "models", name.as_str(), "members"]);
        let members = model.get("members").and_then(Value::as_array);
        for (at, member) in members.into_iter().flatten().enumerate() {
            if let Some(member) = member.as_str() {
                problems.extend(no_agent(path.join(at.to_string()), member, value));
            }
        }
    }
    problems.extend(super::seats::links(section("deliberation"), value));
    if let Some(chair) = council.get("chair").and_then(Value::as_str) {
        let path = KeyPath::new(["council", "chair"]);
        problems.extend(no_agent(path, chair, value));
    }
    problems
}

fn shape(path: &KeyPath, value: &Value, problems: &mut Vec<Problem>) {
    if value.is_null() {
        return;
    }
    if let Some(key) = keys::find(path) {
        leaf(key, path, value, problems);
        return;
    }
    let Some(fields) = value.as_object() else {
        let what = format!("must be an object {{…}}, not {}", got(value));
        problems.push(Problem::new(path.clone(), what));
        return;
    };
    let below = parts_below(path);
    for (name, value) in fields {
        let path = path.join(name);
        if below.contains(&name.as_str()) {
            shape(&path, value, problems);
        } else if let Some(part) = below.iter().find(|part| keys::is_placeholder(part)) {
            match bad_name(part, &path, name) {
                Some(problem) => problems.push(problem),
                None => shape(&path, value, problems),
            }
        } else {
            problems.push(unknown(path, name, &below));
        }
    }
}

/// Returns the parts that can follow a path.
fn parts_below(path: &KeyPath) -> Vec<&'static str> {
    let mut parts: Vec<&'static str> = KEYS
        .iter()
        .filter(|key| key.leads(path.segments()))
        .filter_map(|key| key.pattern().nth(path.segments().len()))
        .collect();
    parts.dedup();
    parts
}

fn bad_name(part: &str, path: &KeyPath, name: &str) -> Option<Problem> {
    if part == "<model>" {
        return name
            .is_empty()
            .then(|| Problem::new(path.clone(), "is an empty model name"));
    }
    let agent = path.segments().first().is_some_and(|s| s == "agents");
    let checked = if agent {
        SeatName::new(name)
    } else {
        SeatName::sender(name)
    };
    if let Err(bad) = checked {
        let what = format!("is not a name that can be used here: {}", bad.why);
        return Some(Problem::new(path.clone(), what));
    }
    let is_model = path.segments().first().is_some_and(|s| s == "serve");
    if is_model && is_built_in_model(name) {
        let what = "is a model of `kd serve` already; choose another name";
        return Some(Problem::new(path.clone(), what));
    }
    let provider = path.segments().first().is_some_and(|s| s == "providers");
    (provider && NOT_PROVIDERS.contains(&name)).then(|| {
        let what = "has the name of a backend that is not a service; rename the provider";
        Problem::new(path.clone(), what)
    })
}

/// Returns whether `kd serve` has a model of this name in any configuration.
fn is_built_in_model(name: &str) -> bool {
    matches!(name, "ask" | "think" | "deliberate") || presets::find(name).is_some()
}

fn unknown(path: KeyPath, name: &str, siblings: &[&str]) -> Problem {
    if is_secret_name(name) {
        return Problem::new(
            path,
            "would store a secret in the configuration, which kd does not allow; remove the value and set under `providers.<name>` where the key is: `key_env` (a variable), `key_file` (a file) or `key_command` (a command)",
        );
    }
    let text = path.to_string();
    if let Some((_, new)) = RETIRED.iter().find(|(old, _)| *old == text) {
        let what = format!("is an old name; use {new}");
        return Problem::new(path, what);
    }
    let above = path.parent().unwrap_or_default();
    let near = nearest(name, siblings.iter().copied())
        .map(|near| above.join(near).to_string())
        .or_else(|| {
            let mut same = KEYS
                .iter()
                .filter(|key| key.path.ends_with(&format!(".{name}")));
            same.next().map(|key| key.path.to_owned())
        });
    Problem::new(path, "is not a setting").meant(near)
}

fn leaf(key: &Key, path: &KeyPath, value: &Value, problems: &mut Vec<Problem>) {
    let must = || format!("must be {}, not {}", key.kind.words(), got(value));
    let problem = |what: String| Problem::new(path.clone(), what);
    let text = value.as_str();
    if let (Kind::Text | Kind::Words, Some(text)) = (key.kind, text)
        && let Some(why) = bad_in_forum(path, text)
    {
        problems.push(problem(why));
        return;
    }
    match key.kind {
        Kind::Text | Kind::Backend if text.is_some() => {}
        Kind::Words if text.is_some_and(|text| !text.trim().is_empty()) => {}
        Kind::OneOf(words) => match text {
            Some(text) if words.contains(&text) => {}
            Some(text) => {
                problems.push(problem(must()).meant(nearest(text, words.iter().copied())))
            }
            None => problems.push(problem(must())),
        },
        Kind::Bool if value.is_boolean() => {}
        Kind::Whole { min, max } => {
            let fits = match (value.as_u64(), value.as_i64()) {
                (Some(number), _) => {
                    number <= max && i64::try_from(number).map_or(true, |n| n >= min)
                }
                (None, Some(number)) => number >= min,
                (None, None) => false,
            };
            if !fits {
                problems.push(problem(must()));
            }
        }
        Kind::Number { min, max } => {
            if !value
                .as_f64()
                .is_some_and(|number| (min..=max).contains(&number))
            {
                problems.push(problem(must()));
            }
        }
        Kind::Texts | Kind::Agents => match value.as_array() {
            Some(items) => {
                for (at, item) in items.iter().enumerate() {
                    if !item.is_string() {
                        let what = format!("must be text, not {}", got(item));
                        problems.push(Problem::new(path.join(at.to_string()), what));
                    }
                }
            }
            None => problems.push(problem(must())),
        },
        Kind::Agent if text.is_some() => {}
        Kind::Seats if value.is_array() => super::seats::check(path, value, problems),
        Kind::Url => {
            problems.extend(url_problem(text).map(|what| problem(what.unwrap_or_else(must))))
        }
        Kind::Variable => {
            problems.extend(variable_problem(text).map(|what| problem(what.unwrap_or_else(must))))
        }
        Kind::File
            if text.is_some_and(|text| {
                text.starts_with('/') || text.starts_with("~/") || has_drive(text)
            }) => {}
        _ => problems.push(problem(must())),
    }
}

/// Returns the problem of a forum parameter that is parsed: a voting rule, kinds of motions.
fn bad_in_forum(path: &KeyPath, text: &str) -> Option<String> {
    let [section, parameter] = path.segments() else {
        return None;
    };
    if section != "forum" || forum::find(parameter).is_none() {
        return None;
    }
    let bad = Settings::default().set(parameter, text).err()?;
    Some(format!("is {}: {bad}", shown(text)))
}

/// Returns the problem of an address; `Some(None)` for the default message.
fn url_problem(text: Option<&str>) -> Option<Option<String>> {
    let Some(text) = text else { return Some(None) };
    let lower = text.to_ascii_lowercase();
    let rest = match lower.strip_prefix("https://") {
        Some(rest) => rest,
        None => match lower.strip_prefix("http://") {
            Some(rest) => rest,
            None => return Some(None),
        },
    };
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, tail) = rest.split_at(host_end);
    if host.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some(Some(
            "must be an http or https address with a host and without spaces".into(),
        ));
    }
    if host.contains('@')
        || ["key=", "token=", "secret="]
            .iter()
            .any(|part| tail.contains(part))
    {
        return Some(Some(
            "has a secret in the address; remove it, and set where the key is with `key_env`, `key_file` or `key_command`".into(),
        ));
    }
    None
}

/// Returns the problem of a variable name; `Some(None)` for the default message.
fn variable_problem(text: Option<&str>) -> Option<Option<String>> {
    let Some(text) = text else { return Some(None) };
    let named = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if named && !looks_secret(text) {
        return None;
    }
    Some(Some(
        "must be the name of an environment variable, for example OPENAI_API_KEY, not the key itself; if this is a key, remove it from the file"
            .into(),
    ))
}

fn has_drive(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.next() == Some(':')
        && matches!(chars.next(), Some('\\' | '/'))
}

/// Returns whether the name of a key indicates that its value is a secret.
fn is_secret_name(name: &str) -> bool {
    let flat = name.to_lowercase().replace(['-', '_', ' '], "");
    const ENDS: &[&str] = &[
        "apikey",
        "token",
        "secret",
        "password",
        "passwd",
        "secretkey",
        "accesskey",
        "credentials",
    ];
    flat == "key"
        || flat == "authorization"
        || flat == "bearer"
        || ENDS.iter().any(|end| flat.ends_with(end))
}
