//! How many steps it takes to check a value against a schema, from both alone: validators try every branch of a schema,
//! and `$ref` lets a short schema have more branches than any machine can try.
//!
//! Input: a schema. Output: for each depth of a value, how many parts of the schema one place at this depth is checked
//! against, an upper bound. Keywords that apply to the same place add up; fields of different names do not.

use super::BadSchema;
use kd_core::clean::clean_line;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Maximum nesting of a schema. Checking a value takes stack for each level.
pub(super) const DEPTH_MAX: usize = 64;
/// Maximum patterns of a schema: each takes memory.
pub(super) const PATTERNS_MAX: usize = 100;
/// Maximum parts of a schema that one place of a value is checked against.
pub(super) const PARTS_MAX: u64 = 10_000;
/// Maximum steps of checking one value: a fraction of a second.
const STEPS_MAX: u64 = 1_000_000;
/// Maximum steps of listing the mistakes of a value: each step may be a mistake with a path and a text.
const TOLD_STEPS_MAX: u64 = 50_000;
/// Maximum depth of a value.
const LEVELS_MAX: usize = 128;
/// Depth down to which the steps of a schema itself are counted and may refuse it; below this depth, only values are
/// refused. Recursive schemas have steps at each level, but most values are flat.
const REFUSED_LEVELS: usize = 3;
/// Entries of a list of names or values that take as long as one part.
const ENTRIES_PER_PART: usize = 16;
/// Bytes of a text that take as long as one place.
const BYTES_PER_PLACE: usize = 16;
/// Parts that a pattern counts for.
const PATTERN_PARTS: u64 = 256;

/// Keywords whose values are data.
const DATA: &[&str] = &[
    "enum",
    "const",
    "default",
    "examples",
    "required",
    "dependentRequired",
    "type",
];
/// Keywords whose values are schemas by name.
const NAMED: &[&str] = &[
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
/// Keywords with schemas, or lists of them, for the same place.
const HERE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords that contain a schema.
const INSIDE: &[&str] = &[
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
];
/// Keywords for what no other keyword has seen, for which all the others are tried once more.
const UNSEEN: &[&str] = &["unevaluatedItems", "unevaluatedProperties"];
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// A part of a schema: numbers of other parts, by how they apply.
#[derive(Default)]
struct Part {
    here: Vec<usize>,
    /// One of these at most applies to a field or an item.
    one_inside: Vec<usize>,
    inside: Vec<usize>,
    unseen: Vec<usize>,
    weight: u64,
}

/// The steps of a schema.
pub(super) struct Steps {
    /// For each depth of a value.
    of_place: Vec<u64>,
    /// Whether items of lists are compared as a whole.
    compares: bool,
}

/// The parts of a schema.
#[derive(Default)]
struct Scan<'a> {
    parts: Vec<&'a Value>,
    numbers: HashMap<*const Value, usize>,
    /// Parts by the names that keywords such as `$anchor` give them.
    anchors: HashMap<&'a str, Vec<usize>>,
    patterns: usize,
}

impl<'a> Scan<'a> {
    /// Adds a schema and all schemas inside it.
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<(), BadSchema> {
        if depth > DEPTH_MAX {
            return Err(BadSchema::TooDeep);
        }
        let number = self.parts.len();
        self.parts.push(schema);
        self.numbers.insert(std::ptr::from_ref(schema), number);
        match schema {
            Value::Object(fields) => fields
                .iter()
                .try_for_each(|(name, value)| self.keyword((name, value), number, depth)),
            Value::Array(items) => items.iter().try_for_each(|s| self.schema(s, depth + 1)),
            _ => Ok(()),
        }
    }

    fn keyword(
        &mut self,
        (name, value): (&str, &'a Value),
        number: usize,
        depth: usize,
    ) -> Result<(), BadSchema> {
        let text = value.as_str();
        match name {
            "$ref" | "$dynamicRef" | "$recursiveRef"
                if text.is_some_and(|to| !to.starts_with('#')) =>
            {
                return Err(BadSchema::Remote(line(text.unwrap_or_default())));
            }
            "$anchor" | "$dynamicAnchor" | "$id" | "id" => {
                let Some(text) = text else {
                    return self.schema(value, depth + 1);
                };
                let is_id = name.ends_with("id");
                match text.strip_prefix('#').or((!is_id).then_some(text)) {
                    Some(anchor) => self.anchors.entry(anchor).or_default().push(number),
                    None if depth > 0 => return Err(BadSchema::Inner(name.to_owned())),
                    None => {}
                }
            }
            "$schema" if depth > 0 && text.is_some() => {
                return Err(BadSchema::Inner(name.to_owned()));
            }
            "pattern" if text.is_some() => self.patterns += 1,
            "patternProperties" => self.patterns += value.as_object().map_or(0, Map::len),
            _ => {}
        }
        if self.patterns > PATTERNS_MAX {
            return Err(BadSchema::Patterns);
        }
        match value {
            _ if DATA.contains(&name) => flat(value, depth + 1),
            Value::Object(named) if NAMED.contains(&name) => match depth + 1 > DEPTH_MAX {
                true => Err(BadSchema::TooDeep),
                false => named
                    .values()
                    .try_for_each(|one| self.schema(one, depth + 2)),
            },
            Value::Object(_) | Value::Array(_) | Value::Bool(_) => self.schema(value, depth + 1),
            _ => Ok(()),
        }
    }

    /// Returns the parts that a reference may mean.
    fn targets(&self, root: &Value, keyword: &str, to: &str) -> Result<Vec<usize>, BadSchema> {
        let unknown = || BadSchema::Unresolved(line(to));
        let name = decoded(to.strip_prefix('#').ok_or_else(unknown)?);
        if name.is_empty() || name.starts_with('/') {
            let found = root.pointer(&name).ok_or_else(unknown)?;
            let number = self.numbers.get(&std::ptr::from_ref(found));
            let mut targets = vec![*number.ok_or_else(unknown)?];
            if keyword == "$recursiveRef" {
                let anchored = |part: &&Value| part.get("$recursiveAnchor").is_some();
                let parts = self.parts.iter().enumerate();
                targets.extend(parts.filter(|(_, part)| anchored(part)).map(|(n, _)| n));
            }
            return Ok(targets);
        }
        self.anchors.get(name.as_str()).cloned().ok_or_else(unknown)
    }

    /// Returns a part by the numbers of others.
    fn part(&self, root: &Value, schema: &Value) -> Result<Part, BadSchema> {
        let mut part = Part {
            weight: 1,
            ..Part::default()
        };
        let Value::Object(fields) = schema else {
            // Lists of schemas for the same place, such as of `anyOf`.
            if let Value::Array(items) = schema {
                part.here = items.iter().filter_map(|item| self.number(item)).collect();
            }
            return Ok(part);
        };
        let mut entries = 0;
        for (name, value) in fields {
            let name = name.as_str();
            let values = || value.as_object().into_iter().flat_map(Map::values);
            match name {
                _ if REFERENCES.contains(&name) => {
                    if let Some(to) = value.as_str() {
                        part.here.extend(self.targets(root, name, to)?);
                    }
                }
                "dependentSchemas" | "dependencies" => {
                    part.here
                        .extend(values().filter_map(|one| self.number(one)));
                }
                "properties" => {
                    entries += values().count();
                    part.one_inside
                        .extend(values().filter_map(|one| self.number(one)));
                }
                "patternProperties" => {
                    part.weight += PATTERN_PARTS * values().count() as u64;
                    part.inside
                        .extend(values().filter_map(|one| self.number(one)));
                }
                "pattern" => part.weight += PATTERN_PARTS,
                "enum" | "const" | "required" | "dependentRequired" | "type" => {
                    entries += leaves(value);
                }
                _ if HERE.contains(&name) => part.here.extend(self.number(value)),
                "prefixItems" | "items" if value.is_array() => {
                    let items = value.as_array().into_iter().flatten();
                    part.one_inside
                        .extend(items.filter_map(|item| self.number(item)));
                }
                _ if INSIDE.contains(&name) => part.inside.extend(self.number(value)),
                _ if UNSEEN.contains(&name) => part.unseen.extend(self.number(value)),
                _ => {}
            }
        }
        part.weight += (entries / ENTRIES_PER_PART) as u64;
        Ok(part)
    }

    /// Returns the number of a part. `None` if the value is not a schema.
    fn number(&self, schema: &Value) -> Option<usize> {
        self.numbers.get(&std::ptr::from_ref(schema)).copied()
    }
}

impl Steps {
    /// Scans a schema before it is compiled: nesting, references to other documents, number of patterns.
    ///
    /// # Errors
    /// If one of them is not allowed.
    pub(super) fn scan(schema: &Value) -> Result<(), BadSchema> {
        Scan::default().schema(schema, 0)
    }

    /// Counts the steps of a valid schema.
    ///
    /// # Errors
    /// If the schema has too many branches, or refers to itself for the same position in a value.
    pub(super) fn new(root: &Value) -> Result<Self, BadSchema> {
        let mut scan = Scan::default();
        scan.schema(root, 0)?;
        let parts = scan.parts.iter().map(|schema| scan.part(root, schema));
        let parts: Vec<Part> = parts.collect::<Result<_, _>>()?;
        let order = inner_first(&parts).ok_or(BadSchema::Circular)?;
        let plain = of_place(&parts, &order, |_| 1, REFUSED_LEVELS);
        let branches = |places: &Places| places.of_root.iter().any(|&count| count > PARTS_MAX);
        if plain.at_most > PARTS_MAX || branches(&plain) {
            return Err(BadSchema::Branches);
        }
        let compares = scan.parts.iter().any(|p| p.get("uniqueItems").is_some());
        Ok(Self {
            of_place: of_place(&parts, &order, |part| part.weight, LEVELS_MAX).of_root,
            compares,
        })
    }

    /// Returns whether a value can be checked.
    pub(super) fn can_check(&self, value: &Value) -> bool {
        self.of(value) <= STEPS_MAX
    }

    /// Returns whether all mistakes of a value can be listed.
    pub(super) fn can_tell(&self, value: &Value) -> bool {
        self.of(value) <= TOLD_STEPS_MAX
    }

    /// Returns an upper bound of the steps of checking a value.
    fn of(&self, value: &Value) -> u64 {
        let mut steps = 0;
        self.add(value, 0, &mut steps);
        steps
    }

    /// Adds the steps of a value at a depth; returns its size.
    fn add(&self, value: &Value, depth: usize, steps: &mut u64) -> u64 {
        if depth >= LEVELS_MAX {
            *steps = u64::MAX;
            return 0;
        }
        let text = |text: &str| 1 + (text.len() / BYTES_PER_PLACE) as u64;
        let mut own = 1;
        let mut inside = 0_u64;
        match value {
            Value::String(string) => own = text(string),
            Value::Array(items) => {
                own += items.len() as u64;
                for item in items {
                    inside = inside.saturating_add(self.add(item, depth + 1, steps));
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    own += text(name);
                    inside = inside.saturating_add(self.add(value, depth + 1, steps));
                }
            }
            _ => {}
        }
        let whole = own.saturating_add(inside);
        let size = if self.compares { whole } else { own };
        let of_place = self.of_place.get(depth).copied().unwrap_or_default();
        *steps = steps.saturating_add(of_place.saturating_mul(size));
        whole
    }
}

/// Counts of parts.
struct Places {
    /// Parts that a position in a value is checked against, by depth.
    of_root: Vec<u64>,
    /// Maximum parts that one part leads to for the same position, including itself.
    at_most: u64,
}

/// Counts the parts that positions are checked against, down to a depth. In `order`, the parts that a part leads to
/// come before it.
fn of_place(
    parts: &[Part],
    order: &[usize],
    weight: impl Fn(&Part) -> u64,
    levels: usize,
) -> Places {
    let mut places = Places {
        of_root: Vec::new(),
        at_most: 0,
    };
    // One level deeper: by checking a part, and by looking for what it has seen.
    let mut above = vec![(0_u64, 0_u64); parts.len()];
    for level in 0..levels {
        let mut here = vec![(0_u64, 0_u64); parts.len()];
        for &number in order {
            let Some(part) = parts.get(number) else {
                continue;
            };
            let sum = |of: &[(u64, u64)], numbers: &[usize]| {
                let counts = numbers.iter().filter_map(|&n| of.get(n));
                counts.fold((0_u64, 0_u64), |sum, &(checks, looks)| {
                    (sum.0.saturating_add(checks), sum.1.saturating_add(looks))
                })
            };
            let one = part.one_inside.iter().filter_map(|&n| above.get(n));
            let one = one.map(|&(checks, _)| checks).max().unwrap_or_default();
            let own = if level == 0 { weight(part) } else { 0 };
            let (checks, looks) = sum(&here, &part.here);
            let inside = one.saturating_add(sum(&above, &part.inside).0);
            let unseen = sum(&above, &part.unseen).0;
            let all = own.saturating_add(checks).saturating_add(inside);
            let seen = all.saturating_add(looks).saturating_add(unseen);
            let all = match part.unseen.is_empty() {
                true => all,
                false => all.saturating_add(seen).saturating_add(unseen),
            };
            if let Some(count) = here.get_mut(number) {
                *count = (all, seen);
            }
            if level == 0 {
                places.at_most = places.at_most.max(all);
            }
        }
        let of_root = here.first().map_or(0, |&(all, _)| all);
        places.of_root.push(of_root);
        let is_over = here.iter().all(|&(all, seen)| all == 0 && seen == 0);
        // A value with a place at this depth is refused, and so are all that go deeper.
        if is_over || of_root > STEPS_MAX {
            break;
        }
        above = here;
    }
    places
}

/// Returns the parts, each after those that it leads to for the same place. `None` if one leads to itself.
fn inner_first(parts: &[Part]) -> Option<Vec<usize>> {
    let mut waits: Vec<usize> = parts.iter().map(|part| part.here.len()).collect();
    let mut led_from = vec![Vec::new(); parts.len()];
    for (number, part) in parts.iter().enumerate() {
        for &to in &part.here {
            led_from.get_mut(to)?.push(number);
        }
    }
    let mut order: Vec<usize> = (0..parts.len())
        .filter(|&n| waits.get(n) == Some(&0))
        .collect();
    let mut at = 0;
    while let Some(&number) = order.get(at) {
        at += 1;
        for &from in led_from.get(number)? {
            let left = waits.get_mut(from)?;
            *left -= 1;
            if *left == 0 {
                order.push(from);
            }
        }
    }
    (order.len() == parts.len()).then_some(order)
}

/// Checks the nesting of data.
fn flat(value: &Value, depth: usize) -> Result<(), BadSchema> {
    if depth > DEPTH_MAX {
        return Err(BadSchema::TooDeep);
    }
    match value {
        Value::Object(fields) => fields.values().try_for_each(|one| flat(one, depth + 1)),
        Value::Array(items) => items.iter().try_for_each(|one| flat(one, depth + 1)),
        _ => Ok(()),
    }
}

/// Returns the number of values in data.
fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(leaves).sum::<usize>() + 1,
        Value::Array(items) => items.iter().map(leaves).sum::<usize>() + 1,
        _ => 1,
    }
}

/// Shortens what a schema says, for an error.
fn line(text: &str) -> String {
    clean_line(text, 120)
}

/// Decodes `%25` and others of a reference.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.filter(|hex| first == b'%' && hex.bytes().all(|b| b.is_ascii_hexdigit()));
        match byte.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn steps(schema: &Value, value: &Value) -> u64 {
        Steps::new(schema).expect("a schema").of(value)
    }

    #[test]
    fn steps_are_counted_per_place_and_depth() {
        let leaf = json!({"type": "string"});
        // The root; the root and a list of two; …
        for (schema, of_place) in [
            (json!({}), vec![1, 0]),
            (json!({"anyOf": [{}, {}]}), vec![4, 0]),
            (json!({"properties": {"a": leaf, "b": leaf}}), vec![1, 1, 0]),
            (
                json!({"properties": {"a": leaf}, "additionalProperties": leaf}),
                vec![1, 2, 0],
            ),
            (
                json!({"$defs": {"x": leaf}, "items": {"$ref": "#/$defs/x"}}),
                vec![1, 2, 0],
            ),
            (
                json!({"items": {"$ref": "#a"}, "$anchor": "a"}),
                vec![1, 2, 2],
            ),
            // The others are tried once more.
            (
                json!({"allOf": [{"properties": {"a": leaf}}], "unevaluatedProperties": false}),
                vec![9, 6, 0],
            ),
        ] {
            let counted = Steps::new(&schema).expect("a schema").of_place;
            assert_eq!(counted[..of_place.len()], of_place, "{schema}");
        }
        let list = json!({"items": leaf});
        assert_eq!(steps(&list, &json!(["a", "b"])), 3 + 2);
        assert_eq!(steps(&list, &json!(["a".repeat(160)])), 2 + 11);
        let compares = json!({"items": leaf, "uniqueItems": true});
        assert_eq!(steps(&compares, &json!(["a".repeat(160)])), 13 + 11);
        // What goes deeper than the schema is not looked at.
        assert_eq!(steps(&list, &json!([{"a": {"b": {}}}])), 2 + 2);
    }

    #[test]
    fn references_are_decoded() {
        assert_eq!(decoded("/a%20b%25%zz%4"), "/a b%%zz%4");
        let schema = json!({"$defs": {"a b/c": {}}, "items": {"$ref": "#/$defs/a%20b~1c"}});
        assert_eq!(steps(&schema, &json!([1])), 2 + 2);
    }
}
