//! The configuration on disk and in the environment.
//!
//! Input: possible files, the environment, settings from the command line. Output: a checked [`Config`] that knows
//! where each setting came from, or all problems, with file and line. The keys are defined in [`kd_core::config`].
//!
//! Layers, from lowest to highest precedence: built-in, the user's file, `.kd/config.json`, `.kd/config.local.json`,
//! `KD_*`, flags.

mod edit;
mod merge;
mod project;
mod read;

pub use edit::{Change, Written, create, set, unset, write};
pub use merge::Origins;
pub use project::{Because, Consent, Project, ProjectText, WantedSetting};

use crate::layout::Layout;
use crate::trust::TrustStore;
use crate::user_dirs::{Env, UserDirs, home};
use kd_core::config::{
    Config, EnvName, Key, KeyPath, Layer, Origin, Problem, Reader, check_links, check_shape,
    default_value, env_path, nested, parse_text, refuse,
};
use merge::{Part, Places, merge};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// The possible configuration files, which need not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigPaths {
    /// The user's file; `None` without a home directory.
    pub user: Option<PathBuf>,
    /// The project's shared file; `None` outside of a project.
    pub project: Option<PathBuf>,
    /// This checkout's own file; `None` outside of a project.
    pub local: Option<PathBuf>,
    /// The personas of the project's forum.
    pub personas: Option<PathBuf>,
    /// The user's decisions on projects; without them no project is allowed anything.
    pub trust: Option<TrustStore>,
    /// The user's home folder, for paths that begin with `~/`.
    pub home: Option<PathBuf>,
}

impl ConfigPaths {
    /// Returns the standard places: `kd/config.json` in the user's configuration folder (`$XDG_CONFIG_HOME` or
    /// `~/.config`), and the project's files.
    pub fn usual(layout: Option<&Layout>, env: Env<'_>) -> Self {
        let dirs = UserDirs::from_env(env);
        Self {
            home: home(env),
            user: dirs.config().map(|folder| folder.join("config.json")),
            project: layout.map(Layout::config_file),
            local: layout.map(Layout::local_config_file),
            personas: layout.map(Layout::forum_agents_folder),
            trust: TrustStore::new(&dirs).ok(),
        }
    }

    /// Returns the file of a layer; `None` for layers without one, and for project and local outside of a project.
    pub fn file(&self, layer: Layer) -> Option<PathBuf> {
        match layer {
            Layer::User => self.user.clone(),
            Layer::Project => self.project.clone(),
            Layer::Local => self.local.clone(),
            Layer::Builtin | Layer::Env | Layer::Flag => None,
        }
    }

    /// Returns the folder that contains `.kd`.
    pub fn repository(&self) -> Option<&Path> {
        self.project.as_deref()?.parent()?.parent()
    }
}

/// The loaded configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// Typed, including defaults.
    pub config: Config,
    /// The merged layers, without defaults.
    pub value: Value,
    /// The origin of each setting.
    pub origins: Origins,
    /// The files that were read, lowest layer first.
    pub files: Vec<(Layer, PathBuf)>,
    /// Notices for the user that are not errors: for example a variable that is probably misspelled.
    pub notices: Vec<String>,
    /// The settings that the project's files request, and which of them are held back.
    pub project: Project,
}

/// An effective setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its path.
    pub path: KeyPath,
    /// Its value; `null` if unset.
    pub value: Value,
    /// The place where it was set.
    pub origin: Origin,
    /// Its row in the key table.
    pub key: &'static Key,
}

impl Loaded {
    /// Returns every effective setting, including defaults: for each agent and provider all of its keys, in table
    /// order.
    pub fn settings(&self) -> Vec<Setting> {
        let mut out = Vec::new();
        for key in kd_core::config::KEYS {
            for path in self.paths_of(key) {
                let set = path
                    .find(&self.value)
                    .filter(|value| !value.is_null())
                    .cloned();
                if set.is_none() && key.reader != Reader::Kd {
                    continue;
                }
                let value = set.or_else(|| default_value(&path)).unwrap_or_default();
                let origin = self.origins.of(&path);
                out.push(Setting {
                    path,
                    value,
                    origin,
                    key,
                });
            }
        }
        out
    }

    /// Returns the settings that only kingdom-cli uses.
    pub fn without_effect(&self) -> Vec<Setting> {
        let mut settings = self.settings();
        settings.retain(|setting| setting.key.reader == Reader::KingdomCli);
        settings
    }

    /// Returns the paths of a key: one, or one per name for a key with a name in its path.
    fn paths_of(&self, key: &Key) -> Vec<KeyPath> {
        key.pattern().fold(vec![KeyPath::default()], |paths, part| {
            let names = |path: &KeyPath| -> Vec<String> {
                if part.starts_with('<') {
                    let fields = path.find(&self.value).and_then(Value::as_object);
                    let set = fields
                        .into_iter()
                        .flatten()
                        .filter(|(_, value)| !value.is_null());
                    set.map(|(name, _)| name.clone()).collect()
                } else {
                    vec![part.to_owned()]
                }
            };
            paths
                .iter()
                .flat_map(|path| names(path).into_iter().map(|name| path.join(name)))
                .collect()
        })
    }
}

/// All problems of a configuration, ordered by layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// Never empty.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// Suggests what to do next.
    pub fn hint(&self) -> &'static str {
        "`kd config schema` lists every key; `kd config set KEY VALUE` and `kd config unset KEY` change a file"
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self {
            problems: vec![problem],
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

/// Loads the configuration. Settings that a project may not make without consent are held back: there is no way to load
/// it without this step.
///
/// `env` is usually [`std::env::vars_os`]; `flags` are settings of this call, already JSON (see [`parse_text`]).
///
/// # Errors
/// If a file cannot be read or parsed, or a setting is unknown or invalid. Returns all problems, not only the first.
pub fn load(
    paths: &ConfigPaths,
    env: impl IntoIterator<Item = (OsString, OsString)>,
    flags: &[(KeyPath, Value)],
) -> Result<Loaded, ConfigError> {
    load_with(paths, ProjectFile::OnDisk, env, flags)
}

/// The content of the project's shared file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectFile<'a> {
    /// As it is on disk.
    OnDisk,
    /// This text instead; for a review, the text at the commit that a change is compared with.
    Text(&'a str),
    /// None.
    Missing,
}

/// Like [`load`], with other content of the project's shared file.
///
/// # Errors
/// Those of [`load`].
pub fn load_with(
    paths: &ConfigPaths,
    project: ProjectFile<'_>,
    env: impl IntoIterator<Item = (OsString, OsString)>,
    flags: &[(KeyPath, Value)],
) -> Result<Loaded, ConfigError> {
    let mut stack = Stack::default();
    for layer in [Layer::User, Layer::Project, Layer::Local] {
        let Some(file) = paths.file(layer) else {
            continue;
        };
        match project {
            ProjectFile::Text(text) if layer == Layer::Project => stack.add_text(layer, file, text),
            ProjectFile::Missing if layer == Layer::Project => {}
            _ => stack.read(layer, file),
        }
    }
    let refused = stack.refuse();
    stack.env(env);
    stack.flags(flags);
    // Settings are checked as written, before any is held back, so that all mistakes are reported.
    let linked = stack.link(paths);
    let mut project = project::look(&stack.parts, paths);
    project.refused = refused;
    let (value, origins) = if project.holds_back() {
        project::hold(&mut stack.parts, &mut project)
    } else {
        linked
    };
    project.circle = project::circle(&stack.parts, &value);
    stack.finish(value, origins, project)
}

/// The layers being loaded.
#[derive(Debug, Default)]
struct Stack {
    parts: Vec<Part>,
    files: Vec<(Layer, PathBuf)>,
    notices: Vec<String>,
    problems: Vec<Problem>,
}

impl Stack {
    fn read(&mut self, layer: Layer, file: PathBuf) {
        let text = match read::read_text(layer, &file) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(problem) => return self.problems.push(problem),
        };
        self.add_text(layer, file, &text);
    }

    fn add_text(&mut self, layer: Layer, file: PathBuf, text: &str) {
        match read::parse(layer, &file, text) {
            Ok(parsed) => {
                self.problems.extend(parsed.problems);
                let source = file.display().to_string();
                let places = Places::File {
                    source,
                    lines: parsed.lines,
                };
                self.add(Part {
                    layer,
                    value: parsed.value,
                    places,
                });
                self.files.push((layer, file));
            }
            Err(problem) => self.problems.push(problem),
        }
    }

    /// Removes what no project may set, and returns it.
    fn refuse(&mut self) -> BTreeSet<KeyPath> {
        let files = self.parts.iter_mut();
        files
            .filter(|part| matches!(part.layer, Layer::Project | Layer::Local))
            .flat_map(|part| refuse(&mut part.value))
            .collect()
    }

    fn add(&mut self, part: Part) {
        let found = check_shape(&part.value);
        self.problems.extend(found.into_iter().map(|problem| {
            let origin = part.origin(&problem.path);
            problem.at(origin)
        }));
        if part.value.is_object() {
            self.parts.push(part);
        }
    }

    fn env(&mut self, env: impl IntoIterator<Item = (OsString, OsString)>) {
        let (files, _) = merge(&self.parts);
        let mut value = Value::Object(Map::new());
        let mut names: BTreeMap<KeyPath, String> = BTreeMap::new();
        let mut set: Vec<(String, OsString)> = Vec::new();
        for (name, text) in env {
            if let Ok(name) = name.into_string()
                && !text.is_empty()
            {
                set.push((name, text));
            }
        }
        // The environment has no order; the long name of a setting wins over its short one.
        set.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then(a.cmp(b)));
        for (name, text) in set {
            let path = match env_path(&name, &files) {
                EnvName::Other => continue,
                EnvName::Mistyped(near) => {
                    self.notices.push(format!(
                        "{name} is not a setting of kd; did you mean {near}?"
                    ));
                    continue;
                }
                EnvName::Unknown => {
                    self.notices.push(format!(
                        "{name} sets nothing: no setting has a variable of this name; `kd config set` sets keys without one, such as prices"
                    ));
                    continue;
                }
                EnvName::OwnFile(path) => {
                    self.notices.push(format!(
                        "{name} has no effect: only your own settings file sets {path}"
                    ));
                    continue;
                }
                EnvName::Key(path) => path,
            };
            let origin = Origin {
                layer: Layer::Env,
                source: name.clone(),
                line: None,
            };
            let Some(text) = text.to_str() else {
                self.problems
                    .push(Problem::new(path, "is not UTF-8").at(origin));
                continue;
            };
            match parse_text(&path, text) {
                Ok(new) => {
                    merge_into(&mut value, nested(&path, new));
                    names.insert(path, name);
                }
                Err(problem) => self.problems.push(problem.at(origin)),
            }
        }
        self.add(Part {
            layer: Layer::Env,
            value,
            places: Places::Names(names),
        });
    }

    fn flags(&mut self, flags: &[(KeyPath, Value)]) {
        let mut value = Value::Object(Map::new());
        let mut names = BTreeMap::new();
        for (path, new) in flags {
            merge_into(&mut value, nested(path, new.clone()));
            names.insert(path.clone(), "the command line".to_owned());
        }
        self.add(Part {
            layer: Layer::Flag,
            value,
            places: Places::Names(names),
        });
    }

    /// Merges and checks the layers.
    fn link(&mut self, paths: &ConfigPaths) -> (Value, Origins) {
        let (value, origins) = merge(&self.parts);
        let mut across = check_links(&value);
        across.extend(key_files_inside(&value, paths));
        let across: Vec<Problem> = across
            .into_iter()
            .map(|problem| {
                let origin = self.place(&problem.path, &origins);
                problem.at(origin)
            })
            .collect();
        self.problems.extend(across);
        (value, origins)
    }

    fn finish(
        mut self,
        value: Value,
        origins: Origins,
        project: Project,
    ) -> Result<Loaded, ConfigError> {
        if self.problems.is_empty() {
            match Config::from_value(&value) {
                Ok(config) => {
                    let Self { files, notices, .. } = self;
                    return Ok(Loaded {
                        config,
                        value,
                        origins,
                        files,
                        notices,
                        project,
                    });
                }
                Err(problems) => self.problems = problems,
            }
        }
        Err(ConfigError {
            problems: self.problems,
        })
    }

    /// Returns the position of a path in the merged value, to the line of a list element. A missing path has the
    /// origin of its parent.
    fn place(&self, path: &KeyPath, origins: &Origins) -> Origin {
        let said = origins.of(path);
        let mut parts = self.parts.iter().rev();
        let part = match said.layer {
            Layer::Builtin => parts.find(|part| {
                path.parent()
                    .is_some_and(|above| above.find(&part.value).is_some())
            }),
            layer => parts.find(|part| part.layer == layer),
        };
        part.map_or(said, |part| part.origin(path))
    }
}

fn merge_into(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, above) in above {
                merge_into(below.entry(name).or_insert(Value::Null), above);
            }
        }
        (below, above) => *below = above,
    }
}

/// Reports key files inside the repository, which may be committed by accident.
fn key_files_inside(value: &Value, paths: &ConfigPaths) -> Vec<Problem> {
    let Some(root) = paths.repository().map(real) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let providers = value.get("providers").and_then(Value::as_object);
    for (name, provider) in providers.into_iter().flatten() {
        let Some(text) = provider.get("key_file").and_then(Value::as_str) else {
            continue;
        };
        let file = match (text.strip_prefix("~/"), &paths.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(text),
        };
        if real(&file).starts_with(&root) {
            let what = "is inside the repository and could be committed; move it out, for example to ~/.config/kd/";
            problems.push(Problem::new(
                KeyPath::new(["providers", name, "key_file"]),
                what,
            ));
        }
    }
    problems
}

/// Resolves links and `..` in a path, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
        if let Ok(there) = clean.canonicalize() {
            clean = there;
        }
    }
    clean
}
