//! From a checked JSON value to the typed configuration.

use super::keys::KNOWN_AGENTS;
use super::path::KeyPath;
use super::problem::Problem;
use super::{AgentConfig, Config, check};
use serde_json::Value;

impl Config {
    /// The configuration of a value, or everything that is wrong with it.
    ///
    /// Members and a chair that are known without a definition (see [`KNOWN_AGENTS`]) get one.
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

/// Takes out what is unset. An object stays, even when nothing is left in it.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}
