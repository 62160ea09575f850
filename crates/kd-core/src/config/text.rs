//! Settings given as text: arguments and environment variables.
//!
//! Input: a path or a variable's name, and text. Output: a path and a JSON value, checked as far as possible for one
//! key.

use super::keys::{self, FromProject, KEYS, Key, Kind, Reader};
use super::path::KeyPath;
use super::problem::Problem;
use super::shown::shown;
use kd_vote::nearest;
use serde_json::{Map, Value};

/// Prefix of the configuration's environment variables.
pub const ENV_PREFIX: &str = "KD_";

/// The key whose entries are named after actions: words with `-` between them.
const ACTIONS: &str = "chat.keys.<name>";

/// Variables with that prefix and another meaning.
const ENV_OTHERS: &[&str] = &[
    "KD_NOW",
    "KD_BASE",
    "KD_BATCH_STORE",
    "KD_SERVE_TOKEN",
    "KD_ROLE",
    "KD_AGENT_NAME",
    "KD_DEPTH",
    "KD_SKILL_HOME",
    "KD_AGENT_STREAMS",
    "KD_SIMD",
    "KD_ENGINE",
    "KD_LLAMA_LOG",
];

/// The meaning of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvName {
    /// A setting.
    Key(KeyPath),
    /// A setting that only the user's own file makes, possibly mistyped.
    OwnFile(KeyPath),
    /// Possibly a mistyped setting, with the name that was probably meant.
    Mistyped(String),
    /// Begins like a setting, and sets none: a key without a variable, such as a price of a model, or an unknown key.
    Unknown,
    /// Unrelated.
    Other,
}

/// Parses the value of a key from text.
///
/// Texts are used as they are. `true`, `yes`, `on`, `1` and their opposites are booleans. Lists are separated by
/// commas, or JSON if they start with `[`. `null` unsets a key whose absence has a meaning.
///
/// # Errors
/// If there is no such key, or it does not accept the value.
pub fn parse_text(path: &KeyPath, text: &str) -> Result<Value, Problem> {
    let problem = |what: String| Problem::new(path.clone(), what);
    let Some(key) = keys::find(path) else {
        return match section(path, text) {
            Some(value) => Ok(value),
            None => Err(not_a_key(path)),
        };
    };
    let trimmed = text.trim();
    if key.is_optional() && trimmed == "null" {
        return Ok(Value::Null);
    }
    let must = || {
        problem(format!(
            "must be {}, not {}",
            key.kind.words(),
            shown(trimmed)
        ))
    };
    let value = match key.kind {
        Kind::Bool => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Value::Bool(true),
            "false" | "no" | "off" | "0" => Value::Bool(false),
            _ => return Err(must()),
        },
        Kind::Whole { .. } | Kind::Number { .. } => {
            let number = trimmed.strip_prefix('+').unwrap_or(trimmed);
            let number: serde_json::Number = number.parse().map_err(|_| must())?;
            Value::Number(number)
        }
        Kind::Texts | Kind::Agents | Kind::Seats if trimmed.starts_with('[') => {
            serde_json::from_str(trimmed)
                .map_err(|error| problem(format!("is not a JSON list: {error}")))?
        }
        Kind::Texts | Kind::Agents => trimmed
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(|item| Value::String(item.to_owned()))
            .collect(),
        _ => Value::String(text.to_owned()),
    };
    // A single key is checked like a file that contains nothing else.
    match super::check::check_shape(&nested(path, value.clone()))
        .into_iter()
        .next()
    {
        Some(problem) => Err(problem),
        None => Ok(value),
    }
}

/// Parses a whole section given as a JSON object.
fn section(path: &KeyPath, text: &str) -> Option<Value> {
    let is_section = KEYS.iter().any(|key| key.leads(path.segments()));
    let value: Value = serde_json::from_str(text).ok().filter(|_| is_section)?;
    value.is_object().then_some(value)
}

/// Returns the problem of a path that is not a key: it is a section, or unknown, with the nearest key.
fn not_a_key(path: &KeyPath) -> Problem {
    let mut problems = super::check::check_shape(&nested(path, Value::Bool(true)));
    match problems.pop() {
        Some(problem) if &problem.path != path => problem,
        Some(problem) if problem.what.starts_with("must be an object") => Problem::new(
            path.clone(),
            "is a section: name one key in it, or give a JSON object",
        ),
        Some(problem) => problem,
        None => Problem::new(path.clone(), "is not a setting"),
    }
}

/// Returns a configuration with a single value.
pub fn nested(path: &KeyPath, value: Value) -> Value {
    path.segments().iter().rev().fold(value, |value, segment| {
        Value::Object(Map::from_iter([(segment.clone(), value)]))
    })
}

/// Returns the variable of a key's pattern: `KD_` and the path in capitals, with `_` for dots and placeholders for
/// names. `None` for keys without a variable: those that only other programs read, and those that only the user's own file
/// sets.
pub fn env_name(key: &Key) -> Option<String> {
    variable_of(key).filter(|_| !is_own(key))
}

/// Returns whether only the user's own file sets it.
fn is_own(key: &Key) -> bool {
    key.project == FromProject::Never
}

/// Returns the name that a variable of a key has, or would have.
fn variable_of(key: &Key) -> Option<String> {
    let names = key
        .pattern()
        .filter(|part| keys::is_placeholder(part))
        .count();
    (key.reader == Reader::Kd && names < 2).then(|| {
        let parts: Vec<String> = key
            .pattern()
            .map(|part| {
                if keys::is_placeholder(part) {
                    "<NAME>".into()
                } else {
                    part.to_uppercase()
                }
            })
            .collect();
        format!("{ENV_PREFIX}{}", parts.join("_"))
    })
}

/// Returns the setting of a variable, given the agents and providers named in the files.
///
/// In a variable a name is in capitals, with `_` for every other character. It stands for the matching name in the
/// files, or for its lowercase form; in names of actions `_` stands for `-` then.
pub fn env_path(variable: &str, files: &Value) -> EnvName {
    if !variable.starts_with(ENV_PREFIX) || ENV_OTHERS.contains(&variable) {
        return EnvName::Other;
    }
    let mut patterns: Vec<(String, &Key)> = KEYS
        .iter()
        .filter_map(|key| Some((variable_of(key)?, key)))
        .collect();
    let named = |key: &Key, path: KeyPath| match is_own(key) {
        true => EnvName::OwnFile(path),
        false => EnvName::Key(path),
    };
    for key in KEYS {
        if key.short_env == Some(variable) {
            return EnvName::Key(KeyPath::new(key.pattern()));
        }
    }
    // The longest suffix wins: PROMPTS_COUNCIL before COUNCIL.
    patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.len()));
    for (pattern, key) in &patterns {
        let Some((start, end)) = pattern.split_once("<NAME>") else {
            if pattern == variable {
                return named(key, KeyPath::new(key.pattern()));
            }
            continue;
        };
        let Some(name) = variable
            .strip_prefix(start)
            .and_then(|rest| rest.strip_suffix(end))
        else {
            continue;
        };
        if name.is_empty() {
            continue;
        }
        let mut sections = key.pattern().take_while(|part| !keys::is_placeholder(part));
        let section = sections.try_fold(files, |files, part| files.get(part));
        let name = name_from_env(name, section, key.path == ACTIONS);
        let path = key.pattern().map(|part| {
            if keys::is_placeholder(part) {
                name.clone()
            } else {
                part.to_owned()
            }
        });
        return named(key, KeyPath::new(path));
    }
    let short = KEYS.iter().filter_map(|key| key.short_env);
    let all = patterns.iter().map(|(pattern, _)| pattern.as_str());
    let all = all.filter(|name| !name.contains('<')).chain(short);
    let Some(near) = nearest(variable, all) else {
        return match begins_like_a_setting(variable) {
            true => EnvName::Unknown,
            false => EnvName::Other,
        };
    };
    let own = patterns
        .iter()
        .find(|(pattern, key)| *pattern == near && is_own(key));
    match own {
        Some((_, key)) => EnvName::OwnFile(KeyPath::new(key.pattern())),
        None => EnvName::Mistyped(near),
    }
}

/// Returns whether a variable begins with the prefix and a section of the settings. Others with the prefix may belong to
/// scripts of the user.
fn begins_like_a_setting(variable: &str) -> bool {
    let rest = variable.strip_prefix(ENV_PREFIX);
    let section = rest.and_then(|rest| Some(rest.split_once('_')?.0));
    section.is_some_and(|section| {
        let mut keys = KEYS.iter().filter(|key| key.reader == Reader::Kd);
        keys.any(|key| {
            key.pattern()
                .next()
                .is_some_and(|part| part.to_uppercase() == section)
        })
    })
}

fn name_from_env(in_env: &str, section: Option<&Value>, is_action: bool) -> String {
    let same = |name: &&String| {
        let capitals = name.to_uppercase();
        capitals
            .chars()
            .map(|c| if c.is_alphanumeric() { c } else { '_' })
            .eq(in_env.chars())
    };
    let names = section.and_then(Value::as_object).map(Map::keys);
    names
        .into_iter()
        .flatten()
        .find(same)
        .cloned()
        .unwrap_or_else(|| match is_action {
            true => in_env.to_lowercase().replace('_', "-"),
            false => in_env.to_lowercase(),
        })
}
