//! Problems of a configuration: the mistake, its position, and the probable intention.
//!
//! A problem never repeats a value that could be a secret.

use super::path::KeyPath;
use serde::Serialize;
use std::fmt;

/// The sources of a setting; a later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Built-in defaults.
    Builtin,
    /// The user's own file, for all projects.
    User,
    /// `.kd/config.json`, shared by everyone working on the project.
    Project,
    /// `.kd/config.local.json`, for this checkout.
    Local,
    /// `KD_*` variables.
    Env,
    /// Command-line arguments.
    Flag,
}

impl Layer {
    /// Returns its name as accepted by `--layer`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Env => "env",
            Self::Flag => "flag",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The origin of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The layer.
    pub layer: Layer,
    /// The file path, variable or flag; empty for built-in values.
    pub source: String,
    /// The line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Origin {
    /// Returns the origin of a default value.
    pub fn builtin() -> Self {
        Self {
            layer: Layer::Builtin,
            source: String::new(),
            line: None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.source.as_str(), self.line) {
            ("", _) => f.write_str("built-in"),
            (source, Some(line)) => write!(f, "{source}:{line}"),
            (source, None) => f.write_str(source),
        }
    }
}

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The setting; empty for the whole file.
    pub path: KeyPath,
    /// The problem and its solution, as the rest of a sentence that starts with the path.
    pub what: String,
    /// The nearest valid path or value: probably the intended one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
    /// Its origin, once known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl Problem {
    /// Creates a problem of a setting.
    pub fn new(path: KeyPath, what: impl Into<String>) -> Self {
        Self {
            path,
            what: what.into(),
            nearest: None,
            origin: None,
        }
    }

    /// Adds the probable intention.
    pub fn meant(mut self, nearest: Option<String>) -> Self {
        self.nearest = nearest;
        self
    }

    /// Adds the origin.
    pub fn at(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        if !self.path.segments().is_empty() {
            write!(f, "{} ", self.path)?;
        }
        f.write_str(&self.what)?;
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        Ok(())
    }
}
