//! Prepares a JSON schema for generation: bounds what it leaves open, and computes the maximum length of an answer.
//!
//! Input: the caller's schema. Output: a bounded schema that allows only what the caller's allows too, and the number
//! of tokens of the longest such answer.
//!
//! A small model often does not stop: without bounds it fills a string until the tokens run out, and the truncated
//! answer is not valid JSON.

use serde_json::{Map, Value, json};

use crate::error::Error;

/// Maximum characters of a string without `maxLength`.
const OPEN_STRING: u64 = 1000;
/// Maximum elements of an array without `maxItems`.
const OPEN_ARRAY: u64 = 32;
/// The largest absolute value of an integer without bounds: exact in every JSON parser.
const OPEN_INTEGER: i64 = 999_999_999_999_999;
/// Tokens allotted to a part that no supported keyword bounds.
const OPEN_PART: usize = 2000;
/// Tokens allotted to a fraction, whose digits no schema bounds.
const FRACTION: usize = 32;
/// Deeper nesting, and longer chains of `$ref`, are refused.
const MAX_DEPTH: usize = 64;
/// Maximum number of links of a `$ref` chain that are followed when counting; a recursive schema counts as open there.
const MAX_REFS: usize = 8;

/// Returns the schema to give to the grammar compiler.
///
/// # Errors
/// [`Error::Schema`] if it is not an object, or nested too deeply.
pub(super) fn tighten(schema: &Value) -> Result<Value, Error> {
    let mut tight = match schema {
        Value::Bool(true) => json!({}),
        Value::Object(_) => schema.clone(),
        other => {
            return Err(Error::Schema {
                what: format!("a schema is a JSON object, but this is `{}`", short(other)),
            });
        }
    };
    // Under these keywords an object's parts come from several places: closing one part would forbid the others.
    let closes = !mentions(
        schema,
        &[
            "allOf",
            "oneOf",
            "not",
            "if",
            "unevaluatedProperties",
            "patternProperties",
        ],
        0,
    )?;
    close(&mut tight, closes, 0)?;
    // One space after commas and colons, as in the text that models are trained on; and no flexible white space,
    // because small models pad with blank lines. `\uXXXX` is excluded: the characters can be written directly, and the
    // escapes make a string six times as long.
    tight["x-guidance"] = json!({
        "whitespace_flexible": false,
        "item_separator": ", ",
        "key_separator": ": ",
        "json_allowed_escapes": "nrbtf\\\"",
    });
    Ok(tight)
}

/// Returns the maximum tokens of an answer to a [`tighten`]ed schema, including the end token. A token is at least one
/// byte, so this counts bytes. Parts that remain open count as [`OPEN_PART`].
pub(super) fn token_cap(tight: &Value) -> usize {
    longest(tight, tight, 0, MAX_REFS).saturating_add(1)
}

/// Returns the keys, anywhere in the schema, whose value is an `enum` that contains all `labels`.
pub(super) fn keys_choosing(tight: &Value, labels: &[String]) -> Vec<String> {
    let mut keys = Vec::new();
    collect_keys(tight, tight, labels, &mut keys);
    keys.sort();
    keys.dedup();
    keys
}

fn collect_keys(part: &Value, root: &Value, labels: &[String], keys: &mut Vec<String>) {
    if let Some(Value::Object(properties)) = part.get("properties") {
        for (key, value) in properties {
            let target = value
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|t| t.strip_prefix('#'));
            let value = target
                .and_then(|pointer| root.pointer(pointer))
                .unwrap_or(value);
            let holds = |values: &Vec<Value>| {
                labels
                    .iter()
                    .all(|l| values.iter().any(|v| v == l.as_str()))
            };
            if value
                .get("enum")
                .and_then(Value::as_array)
                .is_some_and(holds)
            {
                keys.push(key.clone());
            }
        }
    }
    // Recursion is bounded: `tighten` refuses schemas that are nested too deeply.
    match part {
        Value::Object(map) => map
            .values()
            .for_each(|inner| collect_keys(inner, root, labels, keys)),
        Value::Array(parts) => parts
            .iter()
            .for_each(|inner| collect_keys(inner, root, labels, keys)),
        _ => {}
    }
}

fn close(schema: &mut Value, closes: bool, depth: usize) -> Result<(), Error> {
    let Value::Object(map) = schema else {
        return Ok(());
    };
    guard(depth)?;
    if !map.contains_key("type") {
        if map.contains_key("properties") {
            map.insert("type".into(), json!("object"));
        } else if map.contains_key("items") || map.contains_key("prefixItems") {
            map.insert("type".into(), json!("array"));
        }
    }
    if !map.contains_key("enum") && !map.contains_key("const") {
        if has_type(map, "string") && !map.contains_key("format") {
            let least = map.get("minLength").and_then(Value::as_u64).unwrap_or(0);
            map.entry("maxLength")
                .or_insert(json!(OPEN_STRING.max(least)));
        }
        if has_type(map, "array") && !is_false(map.get("items")) {
            let least = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            let fixed = map
                .get("prefixItems")
                .and_then(Value::as_array)
                .map_or(0, |a| a.len() as u64);
            map.entry("maxItems")
                .or_insert(json!(OPEN_ARRAY.max(least).max(fixed)));
        }
        if has_type(map, "integer") {
            if !map.contains_key("minimum") && !map.contains_key("exclusiveMinimum") {
                map.insert("minimum".into(), json!(-OPEN_INTEGER));
            }
            if !map.contains_key("maximum") && !map.contains_key("exclusiveMaximum") {
                map.insert("maximum".into(), json!(OPEN_INTEGER));
            }
        }
        if closes && map.contains_key("properties") {
            map.entry("additionalProperties").or_insert(json!(false));
        }
    }
    for key in ["properties", "$defs", "definitions"] {
        if let Some(Value::Object(parts)) = map.get_mut(key) {
            parts
                .values_mut()
                .try_for_each(|part| close(part, closes, depth + 1))?;
        }
    }
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(parts)) = map.get_mut(key) {
            parts
                .iter_mut()
                .try_for_each(|part| close(part, closes, depth + 1))?;
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = map.get_mut(key) {
            close(part, closes, depth + 1)?;
        }
    }
    Ok(())
}

fn longest(schema: &Value, root: &Value, depth: usize, refs: usize) -> usize {
    let Value::Object(map) = schema else {
        return OPEN_PART;
    };
    if depth > MAX_DEPTH {
        return OPEN_PART;
    }
    let inner = |part: &Value| longest(part, root, depth + 1, refs);
    if let Some(value) = map.get("const") {
        return literal(value);
    }
    if let Some(Value::Array(values)) = map.get("enum") {
        return values.iter().map(literal).max().unwrap_or(0);
    }
    if let Some(target) = map.get("$ref").and_then(Value::as_str) {
        let found = target
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer));
        return match found {
            Some(part) if refs > 0 => longest(part, root, depth + 1, refs - 1),
            _ => OPEN_PART,
        };
    }
    if let Some(Value::Array(parts)) = map.get("anyOf").or(map.get("oneOf")) {
        return parts.iter().map(inner).max().unwrap_or(0);
    }
    if let Some(Value::Array(parts)) = map.get("allOf") {
        return parts.iter().map(inner).fold(0, usize::saturating_add);
    }
    let number = |key: &str| map.get(key).and_then(Value::as_u64);
    let kinds = types(map);
    if kinds.is_empty() {
        return OPEN_PART;
    }
    let of_kind = |kind: &str| match kind {
        "null" => 4,
        "boolean" => 5,
        "integer" => {
            let digits =
                |keys: [&str; 2]| keys.iter().filter_map(|k| map.get(*k)).map(literal).max();
            let (low, high) = (
                digits(["minimum", "exclusiveMinimum"]),
                digits(["maximum", "exclusiveMaximum"]),
            );
            low.max(high).unwrap_or(FRACTION)
        }
        "number" => FRACTION,
        "string" => match number("maxLength") {
            // The longest character has four bytes; an escape has two.
            Some(n) => times(n, 4).saturating_add(2),
            None => OPEN_PART,
        },
        "array" => longest_array(map, inner),
        "object" => longest_object(map, inner),
        _ => OPEN_PART,
    };
    kinds
        .iter()
        .map(|kind| of_kind(kind))
        .max()
        .unwrap_or(OPEN_PART)
}

/// The longest array; `inner` bounds its items.
fn longest_array(map: &Map<String, Value>, inner: impl Fn(&Value) -> usize) -> usize {
    let none = Vec::new();
    let fixed = map
        .get("prefixItems")
        .and_then(Value::as_array)
        .unwrap_or(&none);
    let first = fixed
        .iter()
        .map(|part| inner(part).saturating_add(2))
        .fold(2, usize::saturating_add);
    let items = map.get("items");
    let more = map
        .get("maxItems")
        .and_then(Value::as_u64)
        .unwrap_or(0)
        .saturating_sub(fixed.len() as u64);
    if is_false(items) || more == 0 {
        return first;
    }
    first.saturating_add(times(
        more,
        items.map_or(OPEN_PART, inner).saturating_add(2),
    ))
}

/// The longest object; `inner` bounds its parts.
fn longest_object(map: &Map<String, Value>, inner: impl Fn(&Value) -> usize) -> usize {
    let parts = map.get("properties").and_then(Value::as_object);
    let all = parts.into_iter().flatten().map(|(key, part)| {
        // The key's own spelling, `: ` and `, `.
        literal(&Value::String(key.clone()))
            .saturating_add(4)
            .saturating_add(inner(part))
    });
    let open = if is_false(map.get("additionalProperties")) {
        0
    } else {
        OPEN_PART
    };
    all.fold(open + 2, usize::saturating_add)
}

fn types(map: &Map<String, Value>) -> Vec<&str> {
    match map.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn has_type(map: &Map<String, Value>, kind: &str) -> bool {
    types(map).contains(&kind)
}

fn is_false(schema: Option<&Value>) -> bool {
    schema == Some(&Value::Bool(false))
}

/// Returns the bytes of a fixed value; in arrays and objects, at worst a space follows each byte.
fn literal(value: &Value) -> usize {
    let written = value.to_string().len();
    if value.is_array() || value.is_object() {
        written * 2
    } else {
        written
    }
}

fn times(count: u64, each: usize) -> usize {
    usize::try_from(count)
        .unwrap_or(usize::MAX)
        .saturating_mul(each)
}

/// Returns whether any of `words` occurs as a key anywhere in the schema.
fn mentions(schema: &Value, words: &[&str], depth: usize) -> Result<bool, Error> {
    guard(depth)?;
    match schema {
        Value::Object(map) => {
            for (key, part) in map {
                if words.contains(&key.as_str()) || mentions(part, words, depth + 1)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Array(parts) => {
            for part in parts {
                if mentions(part, words, depth + 1)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}

fn guard(depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::Schema {
            what: format!("it is nested more than {MAX_DEPTH} deep"),
        });
    }
    Ok(())
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_what_is_open_and_keeps_what_is_said() {
        let schema = json!({"properties": {
            "a": {"type": "string"},
            "b": {"type": "string", "maxLength": 7},
            "c": {"type": "array", "items": {"type": "integer"}},
            "d": {"type": "string", "minLength": 5000},
            "e": {"enum": ["x"], "type": "string"},
            "f": {"type": "object", "properties": {}, "additionalProperties": true},
        }});
        let tight = tighten(&schema).unwrap();
        assert_eq!(tight["type"], "object");
        assert_eq!(tight["additionalProperties"], false);
        let p = &tight["properties"];
        assert_eq!(p["a"]["maxLength"], 1000);
        assert_eq!(p["b"]["maxLength"], 7);
        assert_eq!(p["c"]["maxItems"], 32);
        assert_eq!(p["c"]["items"]["maximum"], OPEN_INTEGER);
        assert_eq!(p["d"]["maxLength"], 5000);
        assert_eq!(p["e"], json!({"enum": ["x"], "type": "string"}));
        assert_eq!(p["f"]["additionalProperties"], true);
        assert_eq!(tight["x-guidance"]["whitespace_flexible"], false);

        let composed =
            json!({"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}}]});
        assert_eq!(
            tighten(&composed).unwrap()["allOf"][0].get("additionalProperties"),
            None
        );
    }

    #[test]
    fn counts_the_longest_answer() {
        let cap = |schema: Value| token_cap(&tighten(&schema).unwrap());
        assert_eq!(cap(json!({"enum": ["yes", "no"]})), r#""yes""#.len() + 1);
        assert_eq!(cap(json!({"type": "boolean"})), 6);
        assert_eq!(cap(json!({"type": "string", "maxLength": 10})), 43);
        assert_eq!(
            cap(json!({"type": "integer", "minimum": -5, "maximum": 100})),
            4
        );
        let vote =
            json!({"type": "object", "properties": {"vote": {"enum": ["agree", "abstain"]}}});
        // `{` `"vote"` `: ` `"abstain"` (and a `, ` that could follow) `}` and the end.
        assert_eq!(cap(vote), 1 + 6 + 2 + 9 + 2 + 1 + 1);
        let list = json!({"type": "array", "maxItems": 3, "prefixItems": [{"const": 1}], "items": {"const": 22}});
        assert_eq!(cap(list), 2 + 3 + 2 * 4 + 1);
        let recursive = json!({"$defs": {"t": {"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"});
        assert!(cap(recursive) > OPEN_PART);
        assert_eq!(
            cap(json!({"type": "string", "maxLength": u64::MAX})),
            usize::MAX
        );
    }

    #[test]
    fn finds_the_keys_that_choose() {
        let labels = ["yes".to_owned(), "no".to_owned()];
        let schema = json!({"properties": {
            "b": {"enum": ["no", "yes", "maybe"]},
            "c": {"enum": ["yes"]},
            "list": {"items": {"properties": {"a": {"$ref": "#/$defs/v"}}}},
        }, "$defs": {"v": {"enum": ["yes", "no"]}}});
        assert_eq!(
            keys_choosing(&tighten(&schema).unwrap(), &labels),
            ["a", "b"]
        );
        assert_eq!(
            keys_choosing(&json!({"enum": ["yes", "no"]}), &labels),
            [""; 0],
            "no key at all"
        );
    }

    #[test]
    fn refuses_what_is_no_schema() {
        assert!(tighten(&json!(false)).is_err());
        assert!(
            tighten(&json!([1]))
                .unwrap_err()
                .to_string()
                .contains("`[1]`")
        );
        let mut deep = json!({"type": "null"});
        for _ in 0..100 {
            deep = json!({"items": deep});
        }
        assert!(tighten(&deep).unwrap_err().to_string().contains("64 deep"));
    }
}
