//! Edits configuration files in place: keeps comments and order, never writes an invalid configuration, and readers see
//! either the old file or the new one.
//!
//! Input: settings and their layer. Output: the file that holds them now. Settings that kingdom-cli would reject in
//! `.kd/config.json` go to `.kd/config.local.json` instead.

use super::project::{self, Because, Project};
use super::{ConfigError, ConfigPaths, Stack, read};
use crate::beneath::Folder;
use crate::json;
use crate::layout;
use crate::lock::{Lock, WAIT, lock_path};
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use kd_core::config::{KeyPath, Layer, Problem, is_refused, kingdom_problems};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// A requested change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The setting, or a whole section.
    pub path: KeyPath,
    /// Its new value; `None` removes it.
    pub value: Option<Value>,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The setting.
    pub path: KeyPath,
    /// The layer that holds it now; not always the requested one.
    pub layer: Layer,
    /// Its file.
    pub file: PathBuf,
    /// Notices for the user: why another file was used, or that a higher layer overrides the setting.
    pub notices: Vec<String>,
}

/// Sets one setting in a layer's file.
///
/// # Errors
/// New problems that the change would cause; then nothing is written.
pub fn set(
    paths: &ConfigPaths,
    layer: Layer,
    path: &KeyPath,
    value: Value,
) -> Result<Written, ConfigError> {
    one(
        paths,
        layer,
        Change {
            path: path.clone(),
            value: Some(value),
        },
    )
}

/// Removes one setting from a layer's file.
///
/// # Errors
/// Those of [`set`]; also if the setting is not in the file.
pub fn unset(paths: &ConfigPaths, layer: Layer, path: &KeyPath) -> Result<Written, ConfigError> {
    one(
        paths,
        layer,
        Change {
            path: path.clone(),
            value: None,
        },
    )
}

/// Makes several changes together: they are checked as one, so that an agent and its member can be added at once.
///
/// # Errors
/// New problems that the changes would cause; then nothing is written.
pub fn write(
    paths: &ConfigPaths,
    layer: Layer,
    changes: &[Change],
) -> Result<Vec<Written>, ConfigError> {
    let main = target(paths, layer)?;
    let mut held = vec![take(&main)?];
    let mut drafts = vec![Draft::open(layer, main)?];
    // A project setting may go to the local file. Both files are always locked in this order.
    if layer == Layer::Project {
        let local = target(paths, Layer::Local)?;
        held.push(take(&local)?);
        drafts.push(Draft::open(Layer::Local, local)?);
    }
    let before = stack(paths, &[]);
    let had = project::look(&before.parts, paths);
    let before = before.problems();

    let mut written = Vec::new();
    for change in changes {
        let (at, notices) = place(&drafts, change)?;
        drafts[at].apply(change)?;
        let (layer, file) = (drafts[at].layer, drafts[at].file.clone());
        written.push(Written {
            path: change.path.clone(),
            layer,
            file,
            notices,
        });
    }

    let after = stack(paths, &drafts);
    let origins = super::merge(&after.parts).1;
    let same = |a: &Problem, b: &Problem| {
        let layer = |problem: &Problem| problem.origin.as_ref().map(|origin| origin.layer);
        a.path == b.path && a.what == b.what && layer(a) == layer(b)
    };
    let mut problems = after.problems();
    problems.retain(|new| !before.iter().any(|old| same(old, new)));
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    for draft in &drafts {
        draft.save()?;
    }
    if matches!(layer, Layer::Project | Layer::Local) {
        let now = project::look(&after.parts, paths);
        let places: Vec<(KeyPath, Layer)> = written
            .iter()
            .map(|written| (written.path.clone(), written.layer))
            .collect();
        let wrote = |path: &KeyPath, layer: Layer| {
            places
                .iter()
                .any(|(at, of)| *of == layer && path.is_within(at))
        };
        let allowed = now.allow_change(&had, wrote);
        for written in &mut written {
            written.notices.extend(why_held(&now, written, &allowed));
        }
    }
    for written in &mut written {
        let said = origins.of(&written.path);
        if said.layer > written.layer {
            written.notices.push(format!(
                "{} is also set in {said}, which takes precedence",
                written.path
            ));
        }
    }
    drop(held);
    Ok(written)
}

/// Writes a new file, for example the text of [`render_init`](kd_core::config::render_init), after checking it together
/// with the other files.
///
/// # Errors
/// The file exists and `replace` is false, or anything in it is invalid.
pub fn create(
    paths: &ConfigPaths,
    layer: Layer,
    text: &str,
    replace: bool,
) -> Result<PathBuf, ConfigError> {
    let file = target(paths, layer)?;
    let _held = take(&file)?;
    let mut draft = Draft {
        layer,
        file,
        old: None,
        new: Some(text.to_owned()),
    };
    if !replace && draft.file.symlink_metadata().is_ok() {
        return Err(draft
            .problem(
                KeyPath::default(),
                "already exists; change it with `kd config set`, or replace it on purpose",
            )
            .into());
    }
    let had = project::look(&stack(paths, &[]).parts, paths);
    let after = stack(paths, std::slice::from_ref(&draft));
    let problems = after.problems();
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    if layer == Layer::Project {
        let value = read::parse(layer, &draft.file, text)?.value;
        if serde_json::from_str::<Value>(text).is_err() {
            draft.new = Some(json::to_text(&value));
        }
    }
    draft.save()?;
    if matches!(layer, Layer::Project | Layer::Local) {
        let now = project::look(&after.parts, paths);
        // The next command reports what is held back.
        let _ = now.allow_change(&had, |_, of| of == layer);
    }
    Ok(draft.file)
}

fn one(paths: &ConfigPaths, layer: Layer, change: Change) -> Result<Written, ConfigError> {
    let mut written = write(paths, layer, std::slice::from_ref(&change))?;
    match written.pop() {
        Some(written) => Ok(written),
        None => Err(Problem::new(change.path, "was not written").into()),
    }
}

/// Explains why a setting that was written to a project's file has no effect.
fn why_held(
    now: &Project,
    written: &Written,
    allowed: &Result<bool, crate::Error>,
) -> Option<String> {
    if is_refused(&written.path) {
        return Some(format!(
            "{} has no effect in a project: only your own settings file sets it",
            written.path
        ));
    }
    let mut held = now.held.iter();
    let held = held.find(|setting| {
        setting.path.is_within(&written.path) && setting.origin.layer == written.layer
    })?;
    match (held.why, allowed) {
        (Because::Tracked(_), _) => Some(
            "held back: git tracks the file; `git rm --cached .kd/config.local.json` stops that"
                .to_owned(),
        ),
        (_, Ok(true)) => None,
        (_, Err(why)) => Some(format!("held back, because the decision cannot be saved: {why}")),
        (_, Ok(false)) => Some(
            "held back, with settings of this folder that you did not allow; `kd trust` shows and allows them"
                .to_owned(),
        ),
    }
}

/// Returns the file of a writable layer.
fn target(paths: &ConfigPaths, layer: Layer) -> Result<PathBuf, Problem> {
    paths.file(layer).ok_or_else(|| {
        let what = match layer {
            Layer::User => "there is no folder for your own configuration: XDG_CONFIG_HOME is not set, and neither HOME nor the password file names a home".to_owned(),
            Layer::Project | Layer::Local => "there is no .kd folder here; make one with `kd init`, or use your own file (`--layer user`)".to_owned(),
            Layer::Builtin | Layer::Env | Layer::Flag => format!("the layer `{layer}` has no file; use user, project or local"),
        };
        Problem::new(KeyPath::default(), what)
    })
}

/// Takes the lock of a file, creating its folder if needed.
fn take(file: &Path) -> Result<Lock, Problem> {
    let fault = |what: String| Problem::new(KeyPath::default(), what);
    if let Some(folder) = file.parent() {
        Folder::make(folder).map_err(|error| {
            fault(format!(
                "the folder {} cannot be created: {error}",
                folder.display()
            ))
        })?;
    }
    Lock::take(&lock_path(file), WAIT).map_err(|error| fault(error.to_string()))
}

/// Stacks the files, with drafts replacing theirs.
fn stack(paths: &ConfigPaths, drafts: &[Draft]) -> Stack {
    let mut stack = Stack::default();
    for layer in [Layer::User, Layer::Project, Layer::Local] {
        let draft = drafts.iter().find(|draft| draft.layer == layer);
        match (draft, paths.file(layer)) {
            (Some(draft), _) => {
                if let Some(text) = draft.text() {
                    stack.add_text(layer, draft.file.clone(), text);
                }
            }
            (None, Some(file)) => stack.read(layer, file),
            (None, None) => {}
        }
    }
    stack.link(paths);
    stack
}

impl Stack {
    fn problems(&self) -> Vec<Problem> {
        self.problems.clone()
    }
}

/// Returns the draft that takes a change, and why if it is not the first.
fn place(drafts: &[Draft], change: &Change) -> Result<(usize, Vec<String>), Problem> {
    let [project, local] = drafts else {
        return Ok((0, Vec::new()));
    };
    let mut changed = project.clone();
    match &change.value {
        Some(_) => {
            let before = project.value()?;
            changed.apply(change)?;
            let after = changed.value()?;
            let known = kingdom_problems(&before);
            let refused = kingdom_problems(&after)
                .into_iter()
                .find(|problem| !known.contains(problem));
            let Some(problem) = refused else {
                return Ok((0, Vec::new()));
            };
            // The reason is given once, with the first setting in that file.
            let first = local.old.is_none();
            let notice = format!("written to {} instead: {problem}", local.file.display());
            Ok((1, first.then_some(notice).into_iter().collect()))
        }
        None => {
            let here = change.path.find(&project.value()?).is_some();
            let there = change.path.find(&local.value()?).is_some();
            if here || !there {
                return Ok((0, Vec::new()));
            }
            Ok((1, vec![format!("removed from {}", local.file.display())]))
        }
    }
}

/// A file being changed.
#[derive(Clone, Debug)]
struct Draft {
    layer: Layer,
    file: PathBuf,
    /// The content of the file; `None` if it does not exist.
    old: Option<String>,
    /// The new content, once something changed.
    new: Option<String>,
}

impl Draft {
    fn open(layer: Layer, file: PathBuf) -> Result<Self, Problem> {
        let old = read::read_text(layer, &file)?;
        if let Some(text) = &old {
            read::check_version(layer, &file, text)?;
        }
        Ok(Self {
            layer,
            file,
            old,
            new: None,
        })
    }

    fn text(&self) -> Option<&str> {
        self.new.as_deref().or(self.old.as_deref())
    }

    fn value(&self) -> Result<Value, Problem> {
        match self.text() {
            Some(text) => Ok(read::parse(self.layer, &self.file, text)?.value),
            None => Ok(Value::Object(Map::new())),
        }
    }

    fn problem(&self, path: KeyPath, what: impl Into<String>) -> Problem {
        Problem::new(path, what).at(read::origin(self.layer, &self.file, None))
    }

    fn apply(&mut self, change: &Change) -> Result<(), Problem> {
        if change.path.segments().is_empty() {
            return Err(self.problem(
                change.path.clone(),
                "name the setting, for example council.timeout",
            ));
        }
        let text = match self.text() {
            Some(text) if !text.trim().is_empty() => text.to_owned(),
            _ => "{\n}\n".to_owned(),
        };
        let root = CstRootNode::parse(&text, &read::options())
            .map_err(|error| read::parse_problem(self.layer, &self.file, &text, &error))?;
        let done = match &change.value {
            Some(value) => put(&root, change.path.segments(), value),
            None => take_out(&root, change.path.segments()),
        };
        if let Err(what) = done {
            return Err(self.problem(change.path.clone(), what));
        }
        let mut text = root.to_string();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.new = Some(text);
        // Verifies the result of the syntax tree editor, which is a third-party crate.
        if change.path.find(&self.value()?) != change.value.as_ref() {
            return Err(self.problem(
                change.path.clone(),
                "could not be changed in this file; please edit it by hand",
            ));
        }
        Ok(())
    }

    fn save(&self) -> Result<(), Problem> {
        let Some(text) = self
            .new
            .as_ref()
            .filter(|new| self.old.as_ref() != Some(new))
        else {
            return Ok(());
        };
        let fault = |what: String| self.problem(KeyPath::default(), what);
        // The user's own file may be a link: its target is changed, and the link stays.
        let file = match layout::is_ours(&self.file) {
            true => self.file.clone(),
            false => self.file.canonicalize().unwrap_or(self.file.clone()),
        };
        Folder::of_file(&file)
            .and_then(|(folder, name)| folder.replace_with_rights(name, text.as_bytes()))
            .map_err(|error| fault(error.to_string()))?;
        Ok(())
    }
}

fn put(root: &CstRootNode, path: &[String], value: &Value) -> Result<(), String> {
    let Some((last, above)) = path.split_last() else {
        return Err("name the setting".into());
    };
    let mut object = root
        .object_value_or_create()
        .ok_or("the file is not a JSON object {…}")?;
    for name in above {
        object = match object.get(name) {
            None => {
                object.append(name, CstInputValue::Object(Vec::new()));
                object.object_value(name)
            }
            Some(property) => match property.value() {
                Some(CstNode::Leaf(leaf)) if leaf.to_string() == "null" => {
                    property.set_value(CstInputValue::Object(Vec::new()));
                    property.object_value()
                }
                _ => property.object_value(),
            },
        }
        .ok_or_else(|| format!("cannot be set: `{name}` is not an object in this file"))?;
    }
    match object.get(last) {
        Some(property) => property.set_value(input(value)),
        None => {
            object.append(last, input(value));
        }
    }
    Ok(())
}

fn take_out(root: &CstRootNode, path: &[String]) -> Result<(), String> {
    let absent = || "is not set in this file".to_owned();
    let mut objects: Vec<CstObject> = vec![root.object_value().ok_or_else(absent)?];
    for (at, name) in path.iter().enumerate() {
        let property = objects
            .last()
            .and_then(|object| object.get(name))
            .ok_or_else(absent)?;
        if at + 1 == path.len() {
            property.remove();
        } else {
            objects.push(property.object_value().ok_or_else(absent)?);
        }
    }
    // Removes sections that became empty, unless they contain a comment.
    for (at, name) in path.iter().enumerate().take(path.len() - 1).rev() {
        let below = &objects[at + 1];
        let empty =
            below.properties().is_empty() && !below.children().iter().any(CstNode::is_comment);
        match objects[at].get(name) {
            Some(property) if empty => property.remove(),
            _ => break,
        }
    }
    Ok(())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(truth) => CstInputValue::Bool(*truth),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields
                .iter()
                .map(|(name, value)| (name.clone(), input(value)))
                .collect(),
        ),
    }
}
