//! Generates the JSON Schema (2020-12) of a configuration file, for editors, from the table of keys.

use super::keys::{self, BACKENDS, KEYS, Key, Kind, NOT_PROVIDERS, Reader};
use crate::names::RESERVED;
use crate::names::{ALL, KING};
use serde_json::{Map, Value, json};

/// Returns the schema. It covers the structure of one file; [`check_links`](super::check_links) checks relations
/// between keys.
pub fn schema() -> Value {
    let rows: Vec<(Vec<&str>, &Key)> = KEYS
        .iter()
        .map(|key| (key.pattern().collect(), key))
        .collect();
    let mut schema = object(&rows, 0);
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Kingdom configuration",
        "description": "A file of settings for kd: the user's, .kd/config.json or .kd/config.local.json.",
    });
    if let (Value::Object(schema), Value::Object(head)) = (&mut schema, head) {
        schema.insert("type".into(), json!("object"));
        schema.extend(head);
    }
    schema
}

/// Returns the schema of the rows that share their first `depth` parts.
fn object(rows: &[(Vec<&str>, &Key)], depth: usize) -> Value {
    let mut properties = Map::new();
    let mut others = Value::Bool(false);
    let mut names = None;
    let mut rest = rows;
    while let Some((first, key)) = rest.first() {
        let part = first[depth];
        let same = rest
            .iter()
            .take_while(|(parts, _)| parts[depth] == part)
            .count();
        let (group, later) = rest.split_at(same);
        let node = if first.len() == depth + 1 {
            leaf(key)
        } else {
            object(group, depth + 1)
        };
        if keys::is_placeholder(part) {
            others = node;
            let mut taken = vec![KING, ALL];
            if first[0] == "agents" {
                taken = RESERVED.iter().map(|row| row.name).collect();
            }
            if first[0] == "providers" {
                taken.extend(NOT_PROVIDERS);
            }
            names = Some(match part {
                "<model>" => json!({"minLength": 1}),
                _ => {
                    json!({"pattern": "^[\\p{Alphabetic}\\p{N}._-]+$", "maxLength": 64, "not": {"enum": taken}})
                }
            });
        } else {
            properties.insert(part.to_owned(), node);
        }
        rest = later;
    }
    let mut schema = Map::from_iter([("type".to_owned(), json!(["object", "null"]))]);
    if !properties.is_empty() {
        schema.insert("properties".into(), Value::Object(properties));
    }
    schema.insert("additionalProperties".into(), others);
    if let Some(names) = names {
        schema.insert("propertyNames".into(), names);
    }
    Value::Object(schema)
}

fn leaf(key: &Key) -> Value {
    let mut schema = match key.kind {
        Kind::Text | Kind::Agent => json!({"type": ["string", "null"]}),
        Kind::Words => json!({"type": ["string", "null"], "pattern": "\\S"}),
        Kind::OneOf(words) => {
            let mut words: Vec<Value> = words.iter().map(|word| json!(word)).collect();
            words.push(Value::Null);
            json!({"enum": words})
        }
        Kind::Bool => json!({"type": ["boolean", "null"]}),
        Kind::Whole { min, max } => {
            json!({"type": ["integer", "null"], "minimum": min, "maximum": max})
        }
        Kind::Number { min, max } => {
            json!({"type": ["number", "null"], "minimum": min, "maximum": max})
        }
        Kind::Texts => json!({"type": ["array", "null"], "items": {"type": "string"}}),
        Kind::Agents => {
            json!({"type": ["array", "null"], "items": {"type": "string"}, "uniqueItems": true})
        }
        Kind::Seats => super::seats::schema(),
        Kind::Backend => json!({"type": ["string", "null"], "examples": BACKENDS}),
        Kind::Url => {
            json!({"type": ["string", "null"], "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\\s]+\\S*$"})
        }
        Kind::Variable => {
            json!({"type": ["string", "null"], "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})
        }
        Kind::File => json!({"type": ["string", "null"], "pattern": "^(~?/|[A-Za-z]:[\\\\/])"}),
    };
    if let Value::Object(fields) = &mut schema {
        let doc = match key.reader {
            Reader::KingdomCli => format!("kingdom-cli only, without effect in kd. {}", key.doc),
            Reader::Kd | Reader::Editor => key.doc.to_owned(),
        };
        fields.insert("description".into(), Value::String(doc));
        if let Ok(default) = serde_json::from_str(key.default)
            && default != Value::Null
            && default != json!("")
        {
            fields.insert("default".into(), default);
        }
    }
    schema
}
