//! Converts a checked JSON value to the typed configuration.

use super::keys::KNOWN_AGENTS;
use super::path::KeyPath;
use super::problem::Problem;
use super::{AgentConfig, Config, check};
use serde_json::Value;

impl Config {
    /// Returns the configuration of a value, or all of its problems.
    ///
    /// Adds a definition for members and a chair that need none (see [`KNOWN_AGENTS`]).
    ///
    /// # Errors
    /// If the value has an unknown key or an invalid setting. Returns all problems, not only the first.
    pub fn from_value(value: &Value) -> Result<Self, Vec<Problem>> {
        let problems = check(value);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut value = value.clone();
        drop_nulls(&mut value);
        if let Some(council) = value.get_mut("council").and_then(Value::as_object_mut)
            && council.get("auto_messages").and_then(Value::as_i64) == Some(-1)
        {
            council.remove("auto_messages");
        }
        let mut config: Self = serde_json::from_value(value).map_err(|error| {
            vec![Problem::new(
                KeyPath::default(),
                format!("the configuration cannot be read: {error}"),
            )]
        })?;
        let named: Vec<String> = config
            .council
            .members
            .iter()
            .chain(&config.council.chair)
            .cloned()
            .collect();
        for name in named {
            if let Some((_, backend)) = KNOWN_AGENTS.iter().find(|(known, _)| *known == name) {
                config.agents.entry(name).or_insert_with(|| AgentConfig {
                    backend: (*backend).to_owned(),
                    ..AgentConfig::default()
                });
            }
        }
        Ok(config)
    }
}

/// Removes unset values. An object is kept even if it becomes empty.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}
