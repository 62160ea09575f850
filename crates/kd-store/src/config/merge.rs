//! Merges layers: objects are merged, everything else is replaced, and the origin of every setting is recorded.

use kd_core::config::{KeyPath, Layer, Origin};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One layer.
#[derive(Debug)]
pub(super) struct Part {
    /// Its kind.
    pub(super) layer: Layer,
    /// Its settings.
    pub(super) value: Value,
    /// The places of its settings.
    pub(super) places: Places,
}

/// The places of a layer's settings.
#[derive(Debug)]
pub(super) enum Places {
    /// In a file, on these lines.
    File {
        /// The file's path.
        source: String,
        /// The line of each key.
        lines: BTreeMap<KeyPath, u32>,
    },
    /// Each in a variable or argument of this name.
    Names(BTreeMap<KeyPath, String>),
}

impl Part {
    /// Returns the position of a path in this layer. If the path is not there, returns the position of the nearest path
    /// above it.
    pub(super) fn origin(&self, path: &KeyPath) -> Origin {
        let mut at = Some(path.clone());
        while let Some(path) = at {
            let found = match &self.places {
                Places::File { source, lines } => {
                    lines.get(&path).map(|line| (source.clone(), Some(*line)))
                }
                Places::Names(names) => names.get(&path).map(|name| (name.clone(), None)),
            };
            if let Some((source, line)) = found {
                return Origin {
                    layer: self.layer,
                    source,
                    line,
                };
            }
            at = path.parent();
        }
        let source = match &self.places {
            Places::File { source, .. } => source.clone(),
            Places::Names(_) => String::new(),
        };
        Origin {
            layer: self.layer,
            source,
            line: None,
        }
    }
}

/// The origin of each setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origins(BTreeMap<KeyPath, Origin>);

impl Origins {
    /// Returns the origin of a setting; built-in if no layer sets it. An element of a list has the origin of the list.
    pub fn of(&self, path: &KeyPath) -> Origin {
        let mut at = Some(path.clone());
        while let Some(path) = at {
            if let Some(origin) = self.0.get(&path) {
                return origin.clone();
            }
            at = path.parent();
        }
        Origin::builtin()
    }

    /// Removes the origins of deleted paths.
    pub(super) fn keep(&mut self, is_there: impl Fn(&KeyPath) -> bool) {
        self.0.retain(|path, _| is_there(path));
    }

    /// Iterates over all settings that a layer sets, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&KeyPath, &Origin)> {
        self.0.iter()
    }
}

/// Merges the layers; later ones win.
pub(super) fn merge(parts: &[Part]) -> (Value, Origins) {
    let mut value = Value::Object(Map::new());
    let mut origins = Origins::default();
    for part in parts {
        lay(
            &mut value,
            &part.value,
            &KeyPath::default(),
            part,
            &mut origins.0,
        );
    }
    (value, origins)
}

fn lay(
    below: &mut Value,
    above: &Value,
    path: &KeyPath,
    part: &Part,
    origins: &mut BTreeMap<KeyPath, Origin>,
) {
    if let (Value::Object(below), Value::Object(above)) = (&mut *below, above) {
        // An object that a layer sets to null is still set by it.
        for (name, above) in above {
            let path = path.join(name);
            lay(
                below.entry(name.clone()).or_insert(Value::Null),
                above,
                &path,
                part,
                origins,
            );
        }
        return;
    }
    if let Value::Object(fields) = above {
        origins.remove(path);
        *below = Value::Object(Map::new());
        if !fields.is_empty() {
            lay(below, above, path, part, origins);
        }
        return;
    }
    origins.retain(|at, _| !at.is_within(path));
    origins.insert(path.clone(), part.origin(path));
    *below = above.clone();
}
