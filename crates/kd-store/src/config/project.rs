//! Holds back what a project may not decide: settings of `.kd/config.json` and `.kd/config.local.json` that need
//! consent.
//!
//! Input: the layers as read, and the user's [`TrustStore`]. Output: the layers without the settings held back, and a
//! [`Project`] with the requested settings, the settings in effect, and the reasons why the others are not.

use super::ConfigPaths;
use super::merge::{Origins, Part, merge};
use crate::beneath::Folder;
use crate::bounds;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::git;
use crate::trust::{Decision, TrustStore, TrustedFolder};
use kd_core::config::{
    Circle, KeyPath, Layer, Origin, Wanted, Why, gated, hold_back, is_limit, project_texts,
    unit_of, unseat, wanted,
};
use kd_core::persona::Persona;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The settings that the project's files request, and which of them are in effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Project {
    /// The settings that need consent and can get it, allowed or not.
    pub consent: Option<Consent>,
    /// The settings without effect.
    pub held: Vec<WantedSetting>,
    /// Agents that do not exist because their definition is held back.
    pub agents: BTreeSet<String>,
    /// Members that do not take part because only the project's files name them.
    pub members: BTreeSet<String>,
    /// The members that a thread of the folder may have without the user choosing them.
    pub circle: Circle,
    /// Personas of the forum that are held back.
    pub personas: BTreeSet<String>,
    /// The personas of the project's forum as they were checked, by file name. Use these texts: the files may have
    /// changed since. `None` if none were checked.
    pub judged_personas: Option<BTreeMap<OsString, String>>,
    /// Settings in the project's files that no project may make, not even if its settings are allowed. They have no
    /// effect.
    pub refused: BTreeSet<KeyPath>,
    /// Whether none of the configured members is left.
    pub everyone: bool,
    /// Whether none of the configured reviewers is left.
    pub reviewers: bool,
    /// The texts that reach models.
    pub texts: Vec<ProjectText>,
    /// The reason why the user's decisions could not be read; nothing is allowed then.
    pub fault: Option<String>,
}

/// A setting of a project that needs consent.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedSetting {
    /// The setting.
    pub path: KeyPath,
    /// Its value.
    pub value: Value,
    /// The place where it is set.
    pub origin: Origin,
    /// The reason why it needs consent.
    pub why: Because,
    /// Whether the user allowed exactly this.
    pub allowed: bool,
    print: Fingerprint,
}

impl WantedSetting {
    fn new(path: KeyPath, value: Value, origin: Origin, why: Why, unit: &[Value]) -> Self {
        Self {
            print: print(&path, &value, unit),
            path,
            value,
            origin,
            why: Because::Consent(why),
            allowed: false,
        }
    }

    /// Returns whether it is the same value at the same place.
    fn is(&self, other: &Self) -> bool {
        let place = |setting: &Self| (setting.path.clone(), setting.origin.layer);
        place(self) == place(other) && self.value == other.value
    }
}

/// Returns the fingerprint of a setting: its value, together with the other settings of its agent or provider.
fn print(path: &KeyPath, value: &Value, unit: &[Value]) -> Fingerprint {
    Fingerprint::of(&json!([path.segments(), value, unit]))
}

/// Returns the fingerprint of a list of settings.
fn list<'s>(settings: impl Iterator<Item = &'s WantedSetting>) -> Fingerprint {
    let mut all: Vec<Value> = settings.map(|setting| json!(setting.print)).collect();
    all.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    Fingerprint::of(&Value::Array(all))
}

/// The reason why a setting has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// It was not allowed.
    Consent(Why),
    /// Git tracks `.kd/config.local.json`, which is for this checkout alone.
    Tracked(Why),
}

impl Because {
    /// Returns the reason, as the rest of a sentence that starts with the setting.
    pub fn words(self) -> &'static str {
        match self {
            Self::Consent(why) => why.words(),
            Self::Tracked(_) => "is in a local file that git tracks",
        }
    }
}

/// A text of the project that reaches models.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectText {
    /// The setting.
    pub path: KeyPath,
    /// Its value.
    pub value: Value,
    /// The place where it is set.
    pub origin: Origin,
}

/// Settings that the user can allow or decline, exactly as they were read.
#[derive(Clone, Debug, PartialEq)]
pub struct Consent {
    /// The folder that contains `.kd`.
    pub root: PathBuf,
    /// The settings, including those already allowed.
    pub settings: Vec<WantedSetting>,
    /// The user's decision on them.
    pub decision: Decision,
    /// Settings of the files that may need consent, now or with another user configuration.
    present: BTreeSet<Fingerprint>,
    store: Option<TrustStore>,
}

impl Consent {
    /// Returns the settings that are not allowed yet.
    pub fn new_settings(&self) -> impl Iterator<Item = &WantedSetting> {
        self.settings.iter().filter(|setting| !setting.allowed)
    }

    /// Allows these settings at this path. Later changes of the files do not matter: other settings have other
    /// fingerprints.
    ///
    /// # Errors
    /// The decision cannot be written.
    pub fn allow(&self) -> Result<(), Error> {
        let settings = self.settings.iter().map(|s| s.print.clone()).collect();
        self.store()?.allow(&self.root, &settings, &self.present)
    }

    /// Remembers that the user declined the settings that are not allowed.
    ///
    /// # Errors
    /// The decision cannot be written.
    pub fn decline(&self) -> Result<(), Error> {
        self.store()?
            .decline(&self.root, &list(self.new_settings()))
    }

    fn store(&self) -> Result<&TrustStore, Error> {
        self.store.as_ref().ok_or(Error::NoHome {
            variable: "XDG_STATE_HOME",
        })
    }
}

impl Project {
    /// Returns whether anything is held back.
    pub fn holds_back(&self) -> bool {
        !self.held.is_empty()
    }

    /// Allows the settings that the user's own command wrote since `before`: the settings that `wrote` selects, and
    /// settings that were allowed and whose neighbors changed. Does nothing if any other setting is held back, so
    /// that settings of other authors are not allowed by accident. Returns whether all of the folder's settings are
    /// in effect now.
    ///
    /// # Errors
    /// The decision cannot be written.
    pub fn allow_change(
        &self,
        before: &Project,
        wrote: impl Fn(&KeyPath, Layer) -> bool,
    ) -> Result<bool, Error> {
        let Some(consent) = self.consent.as_ref().filter(|_| self.holds_back()) else {
            return Ok(!self.holds_back());
        };
        let wrote = |setting: &WantedSetting| wrote(&setting.path, setting.origin.layer);
        let had = |setting: &WantedSetting| {
            let known = before.consent.iter().flat_map(|consent| &consent.settings);
            known
                .filter(|known| known.allowed)
                .any(|known| known.is(setting))
        };
        let stays = |held: &WantedSetting| self.held.iter().any(|now| now.is(held));
        let went = before.consent.iter().flat_map(|consent| &consent.settings);
        let mut went = went.filter(|had| !consent.settings.iter().any(|now| now.is(had)));
        if self.held.iter().any(|now| !wrote(now) && !had(now))
            || self
                .held
                .iter()
                .any(|now| matches!(now.why, Because::Tracked(_)))
            || before.held.iter().any(stays)
            || !went.all(wrote)
        {
            return Ok(false);
        }
        consent.allow().map(|()| true)
    }
}

/// Examines the project's layers; `consent` is `None` if nothing needs any.
pub(super) fn look(parts: &[Part], paths: &ConfigPaths) -> Project {
    let mut project = Project {
        texts: texts(parts),
        ..Project::default()
    };
    let mut settings = wanted_settings(parts);
    let (personas, texts) = personas(parts, paths.personas.as_deref());
    settings.extend(personas);
    project.judged_personas = paths.personas.is_some().then_some(texts);
    if settings.is_empty() {
        return project;
    }
    let root = paths.repository().unwrap_or(Path::new("/")).to_path_buf();
    let decided = match paths.trust.as_ref().map(|store| store.decided(&root)) {
        Some(Ok(decided)) => decided,
        Some(Err(error)) => {
            project.fault = Some(error.to_string());
            TrustedFolder::default()
        }
        None => TrustedFolder::default(),
    };
    for setting in &mut settings {
        setting.allowed = decided.settings.contains(&setting.print);
    }
    let is_new = |setting: &&WantedSetting| !setting.allowed;
    let local = |setting: &WantedSetting| setting.origin.layer == Layer::Local;
    // Only if something is new: in a folder that the user allowed, no process is started for this.
    let tracked = settings.iter().filter(is_new).any(local)
        && paths.local.as_deref().is_some_and(git::tracks);
    for setting in settings.iter_mut().filter(|setting| !setting.allowed) {
        if let Because::Consent(why) = setting.why
            && tracked
            && local(setting)
        {
            setting.why = Because::Tracked(why);
        }
    }
    project.held = settings.iter().filter(is_new).cloned().collect();
    settings.retain(|setting| setting.allowed || matches!(setting.why, Because::Consent(_)));
    if !settings.is_empty() {
        let mut present = present(parts);
        present.extend(settings.iter().map(|setting| setting.print.clone()));
        let decision = if !settings.iter().any(|setting| !setting.allowed) {
            Decision::Allowed
        } else if decided.declined_settings == Some(list(settings.iter().filter(is_new))) {
            Decision::Declined
        } else {
            Decision::Unknown
        };
        project.consent = Some(Consent {
            root,
            settings,
            decision,
            present,
            store: paths.trust.clone(),
        });
    }
    name_personas(&mut project);
    project
}

fn name_personas(project: &mut Project) {
    let names = project.held.iter().filter(|setting| {
        setting
            .path
            .segments()
            .starts_with(&PERSONAS.map(str::to_owned))
    });
    let names = names.filter_map(|setting| Some(setting.value.get("name")?.as_str()?.to_owned()));
    project.personas = names.collect();
}

/// The path of personas among the settings that need consent.
const PERSONAS: [&str; 2] = ["forum", "agents"];
/// Returns the personas of the project's forum that need consent, and the texts of all: those that use neither the
/// built-in model nor the user's agent of the same name, and those named like an agent that may call additional
/// servers, because a folder must not gain the rights of a name. The forum handles files that are not personas.
fn personas(
    parts: &[Part],
    folder: Option<&Path>,
) -> (Vec<WantedSetting>, BTreeMap<OsString, String>) {
    let mut texts = BTreeMap::new();
    let Some(Ok(Some(folder))) = folder.map(Folder::find) else {
        return (Vec::new(), texts);
    };
    let mut names: Vec<_> = folder
        .items()
        .unwrap_or_default()
        .into_iter()
        .map(|item| item.name)
        .collect();
    names.sort();
    let below = below(parts);
    let mut found = Vec::new();
    for name in names {
        // Parsed like the forum does: every file that it can use is checked here.
        let is_persona = Path::new(&name)
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml");
        let text = is_persona
            .then(|| folder.read(&name, bounds::PERSONA).ok().flatten())
            .flatten();
        let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
        let Some(text) = text else {
            continue;
        };
        let persona = Persona::parse(&text);
        texts.insert(name.clone(), text);
        let Ok(persona) = persona else {
            continue;
        };
        let own = KeyPath::new(["agents", persona.name.as_str()]);
        let own = own.find(&below);
        let said = |field: &str| own.and_then(|own| own.get(field)).and_then(Value::as_str);
        let is_own = said("backend") == Some(persona.backend.as_str())
            && (persona.model.is_none() || said("model") == persona.model.as_deref());
        let built_in = persona.backend == "local" && persona.model.is_none();
        let servers = servers_of(persona.name.as_str(), parts);
        if (is_own || built_in) && servers.is_empty() {
            continue;
        }
        let mut wants =
            json!({"name": persona.name, "backend": persona.backend, "model": persona.model});
        let mut why = Why::Members;
        if !servers.is_empty() {
            wants["servers"] = json!(servers);
            why = Why::Trusted;
        }
        found.push(WantedSetting::new(
            KeyPath::new(PERSONAS).join(name.to_string_lossy()),
            wants,
            Origin {
                layer: Layer::Project,
                source: folder.path().join(&name).display().to_string(),
                line: None,
            },
            why,
            &[],
        ));
    }
    (found, texts)
}

/// Returns the additional servers that a forum agent may call, according to any layer.
fn servers_of(agent: &str, parts: &[Part]) -> BTreeSet<String> {
    let path = KeyPath::new(["forum", "servers"]);
    let of_layer = parts.iter().filter_map(|part| path.find(&part.value));
    let all = of_layer.filter_map(Value::as_object).flatten();
    let may = |server: &Value| {
        let agents = server.get("agents").and_then(Value::as_array);
        agents.is_some_and(|agents| agents.iter().any(|name| name == agent))
    };
    all.filter(|(_, server)| may(server))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Removes the settings held back from the layers, and merges the rest.
pub(super) fn hold(parts: &mut [Part], project: &mut Project) -> (Value, Origins) {
    let (before, origins) = merge(parts);
    let below = below(parts);
    let held = |layer: Layer| -> Vec<Wanted> {
        let of_layer = project
            .held
            .iter()
            .filter(|setting| setting.origin.layer == layer);
        of_layer
            .map(|setting| Wanted {
                path: setting.path.clone(),
                value: setting.value.clone(),
                why: match setting.why {
                    Because::Consent(why) | Because::Tracked(why) => why,
                },
            })
            .collect()
    };
    let mut files: Vec<(&mut Value, Vec<Wanted>)> = parts
        .iter_mut()
        .filter(|part| matches!(part.layer, Layer::Project | Layer::Local))
        .map(|part| (&mut part.value, held(part.layer)))
        .collect();
    let rest = hold_back(&mut files, &below);
    project.agents = rest.agents;
    project.members = rest.members;
    project.everyone = nobody_left(&before, &origins, "members", project);
    project.reviewers = nobody_left(&before, &origins, "review_members", project);
    let (mut value, mut origins) = merge(parts);
    unseat(&mut value, &project.agents);
    origins.keep(|path| path.find(&value).is_some());
    (value, origins)
}

/// Returns the members that a thread of the folder may have without the user choosing them; `value` holds the effective
/// settings.
pub(super) fn circle(parts: &[Part], value: &Value) -> Circle {
    Circle::new(&below(parts)).with(value)
}

/// Returns whether all configured members are held back.
fn nobody_left(before: &Value, origins: &Origins, list: &str, project: &Project) -> bool {
    let path = KeyPath::new(["council", list]);
    let listed = path.find(before).and_then(Value::as_array);
    let listed: Vec<&str> = listed
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let by_project = matches!(origins.of(&path).layer, Layer::Project | Layer::Local);
    let is_held = |name: &str| {
        project.agents.contains(name) || (by_project && project.members.contains(name))
    };
    if !listed.is_empty() {
        return listed.into_iter().all(is_held);
    }
    let agents = before.get("agents").and_then(Value::as_object);
    let mut agents = agents
        .into_iter()
        .flatten()
        .filter(|(_, agent)| !agent.is_null())
        .peekable();
    list == "members" && agents.peek().is_some() && agents.all(|(name, _)| is_held(name))
}

/// Returns the settings of the project's layers that need consent, in the order of the files.
pub(super) fn wanted_settings(parts: &[Part]) -> Vec<WantedSetting> {
    let below = below(parts);
    let units = units(parts);
    ours(parts)
        .flat_map(|part| {
            let found = wanted(&part.value, &below);
            found.into_iter().map(|Wanted { path, value, why }| {
                let unit = unit_of(&path).and_then(|unit| units.get(&unit));
                let unit = unit.map_or(&[][..], Vec::as_slice);
                WantedSetting::new(path.clone(), value, part.origin(&path), why, unit)
            })
        })
        .collect()
}

/// Iterates over the layers of the project.
fn ours(parts: &[Part]) -> impl Iterator<Item = &Part> {
    parts
        .iter()
        .filter(|part| matches!(part.layer, Layer::Project | Layer::Local))
}

/// Returns the project's settings of each agent and provider, except limits. Excludes the user's own file, so that
/// consent survives its changes.
fn units(parts: &[Part]) -> BTreeMap<KeyPath, Vec<Value>> {
    let mut units: BTreeMap<KeyPath, Vec<Value>> = BTreeMap::new();
    for part in ours(parts) {
        for (path, value) in gated(&part.value) {
            if let Some(unit) = unit_of(&path).filter(|_| !is_limit(&path)) {
                let said = json!([part.layer.word(), path.segments(), value]);
                units.entry(unit).or_default().push(said);
            }
        }
    }
    units
}

/// Returns the fingerprints of all project settings that may need consent.
fn present(parts: &[Part]) -> BTreeSet<Fingerprint> {
    let units = units(parts);
    let all = ours(parts).flat_map(|part| gated(&part.value));
    all.map(|(path, value)| {
        let unit = unit_of(&path).and_then(|unit| units.get(&unit));
        print(&path, &value, unit.map_or(&[], Vec::as_slice))
    })
    .collect()
}

fn texts(parts: &[Part]) -> Vec<ProjectText> {
    ours(parts)
        .flat_map(|part| {
            let found = project_texts(&part.value);
            found.into_iter().map(|path| ProjectText {
                value: path.find(&part.value).cloned().unwrap_or_default(),
                origin: part.origin(&path),
                path,
            })
        })
        .collect()
}

/// Merges the layers below the project's: the user's own settings.
fn below(parts: &[Part]) -> Value {
    let count = parts
        .iter()
        .take_while(|part| part.layer < Layer::Project)
        .count();
    merge(&parts[..count]).0
}
