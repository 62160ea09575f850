//! Decides what a project's files may set without the user's consent. [`KEYS`](super::KEYS) marks each key.
//!
//! Input: the value of one project file, and the value of the layers below it (built-in and the user's own file).
//! Output: the settings that need consent, and the file's value without them. Pure: the store knows what the user has
//! allowed.

use super::keys::{self, FromProject, KEYS, KNOWN_AGENTS, Key, Limit, default_value, find};
use super::path::KeyPath;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Number of members that a project may request without consent: the size of the smallest council.
const SEATS_MAX: usize = 3;

/// A project setting that needs consent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wanted {
    /// The setting, or a section that is reset by `null`.
    pub path: KeyPath,
    /// Its value.
    pub value: Value,
    /// Its effect.
    pub why: Why,
}

/// The reason why a setting needs consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It runs programs, names hosts, keys or files, extends permissions, or outweighs other members.
    Trusted,
    /// It raises a limit.
    Raises,
    /// It names members outside the user's council.
    Members,
    /// It resets settings of the user's own file.
    Resets,
}

impl Why {
    /// Returns the reason, as the rest of a sentence that starts with the setting.
    pub fn words(self) -> &'static str {
        match self {
            Self::Trusted => "needs your consent",
            Self::Raises => "raises a limit",
            Self::Members => "adds a member that is not of your council",
            Self::Resets => "resets your own settings",
        }
    }
}

/// Returns the settings of a project file that need consent. `below` is the merged value of the layers below all
/// project files.
pub fn wanted(file: &Value, below: &Value) -> Vec<Wanted> {
    let mut judge = Judge {
        circle: Circle::new(below),
        below,
        out: Vec::new(),
    };
    judge.walk(&KeyPath::default(), file);
    judge.out
}

/// Restores limits of the user that a file named by the user would loosen; `binds` tells which limits are the user's.
/// Returns those that the file sets differently.
pub fn keep_limits(
    file: &mut Value,
    below: &Value,
    binds: impl Fn(&KeyPath) -> bool,
) -> Vec<KeyPath> {
    let judge = Judge {
        circle: Circle::default(),
        below,
        out: Vec::new(),
    };
    let mut kept = Vec::new();
    for key in KEYS {
        let FromProject::Limit(limit) = key.project else {
            continue;
        };
        let path = KeyPath::new(key.pattern());
        let set = |value: &&Value| !value.is_null();
        let old = path.find(below).filter(set);
        if !binds(&path) {
            continue;
        }
        let new = path.find(file).filter(set);
        if judge.is_stricter(limit, key, new, old) {
            continue;
        }
        if new.is_some() {
            kept.push(path.clone());
        }
        match old.cloned() {
            Some(old) => put(file, path.segments(), old),
            None => drop(take(file, path.segments())),
        }
    }
    kept
}

/// Returns every setting of a project file that may need consent, regardless of the layers below, including reset
/// sections.
pub fn gated(file: &Value) -> Vec<(KeyPath, Value)> {
    fn walk(path: &KeyPath, value: &Value, out: &mut Vec<(KeyPath, Value)>) {
        let is_free = |key: &Key| {
            use FromProject::{Free, Never, Text};
            matches!(key.project, Free | Text | Never)
        };
        match (find(path), value.as_object()) {
            (Some(key), _) if is_free(key) => {}
            (None, Some(fields)) => {
                for (name, value) in fields {
                    walk(&path.join(name), value, out);
                }
            }
            _ => out.push((path.clone(), value.clone())),
        }
    }
    let mut out = Vec::new();
    walk(&KeyPath::default(), file, &mut out);
    out
}

/// Returns the agent, provider, server or model of `kd serve` that a setting belongs to. The effect of one setting depends on the others:
/// without a named key, the default key is used and sent to the host that was allowed for another key.
pub fn unit_of(path: &KeyPath) -> Option<KeyPath> {
    match path.segments() {
        [section, name, ..] if section == "agents" || section == "providers" => {
            Some(KeyPath::new([section, name]))
        }
        [section, table, name, ..]
            if matches!(
                (section.as_str(), table.as_str()),
                ("forum", "servers") | ("serve", "models")
            ) =>
        {
            Some(KeyPath::new([section, table, name]))
        }
        _ => None,
    }
}

/// Returns whether no project may set this key, or any key of this section.
pub fn is_refused(path: &KeyPath) -> bool {
    let mut rows = KEYS.iter().filter(|key| key.leads(path.segments()));
    let never = |key: &Key| key.project == FromProject::Never;
    rows.next().is_some_and(never) && rows.all(never)
}

/// Removes the settings that no project may make from a project's file, and returns them. A section that the file
/// resets keeps the user's own settings of this kind.
pub fn refuse(file: &mut Value) -> Vec<KeyPath> {
    fn walk(path: &KeyPath, value: &mut Value, out: &mut Vec<KeyPath>) {
        let rows = || KEYS.iter().filter(|key| key.leads(path.segments()));
        if is_refused(path) {
            out.push(path.clone());
        } else if let Some(fields) = value.as_object_mut() {
            for (name, value) in fields {
                walk(&path.join(name), value, out);
            }
        } else if value.is_null() && rows().any(|key| key.project == FromProject::Never) {
            let others = rows().filter(|key| key.project != FromProject::Never);
            let names = others.filter_map(|key| key.pattern().nth(path.segments().len()));
            *value = names.map(|name| (name.to_owned(), Value::Null)).collect();
        }
    }
    let mut found = Vec::new();
    walk(&KeyPath::default(), file, &mut found);
    for path in &found {
        take(file, path.segments());
    }
    found
}

/// Returns whether a setting only makes something stricter or looser.
pub fn is_limit(path: &KeyPath) -> bool {
    find(path).is_some_and(|key| matches!(key.project, FromProject::Limit(_)))
}

/// Returns the settings of a project file that are texts for models.
pub fn project_texts(file: &Value) -> Vec<KeyPath> {
    let mut found = Vec::new();
    leaves(&KeyPath::default(), file, &mut |path, key, value| {
        let text = match (key.project, value) {
            (FromProject::Text, Value::String(text)) => !text.trim().is_empty(),
            (FromProject::Members, Value::Array(seats)) => seats
                .iter()
                .any(|seat| seat.get("persona").is_some() || seat.get("systemPrompt").is_some()),
            _ => false,
        };
        if text {
            found.push(path.clone());
        }
    });
    found
}

/// The effect of removing settings from project files: agents and members that are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remainder {
    /// Agents whose definition was removed: they do not exist.
    pub agents: BTreeSet<String>,
    /// Existing members that were removed from a list.
    pub members: BTreeSet<String>,
}

/// Removes settings from the project files. `files` contains each file's value and the settings to remove.
pub fn hold_back(files: &mut [(&mut Value, Vec<Wanted>)], below: &Value) -> Remainder {
    let mut rest = Remainder::default();
    let all = |section: &str, files: &[(&mut Value, Vec<Wanted>)]| -> BTreeSet<String> {
        let own = names(section, below);
        let named = files.iter().flat_map(|(value, _)| names(section, value));
        named.filter(|name| !own.contains(name)).collect()
    };
    let (agents, mut providers) = (all("agents", files), all("providers", files));
    providers.retain(|name| {
        let path = KeyPath::new(["providers", name]);
        let mut held = files.iter().flat_map(|(_, held)| held);
        held.any(|wanted| wanted.path.is_within(&path))
    });
    let circle = Circle::new(below);
    for (value, held) in files.iter_mut() {
        for wanted in held.iter() {
            rest.members.extend(cut(value, wanted, &circle));
        }
        for name in &providers {
            take(value, &["providers".to_owned(), name.clone()]);
        }
    }
    // A project agent without a backend, or with a removed provider, does not exist.
    let backend = |name: &str, files: &[(&mut Value, Vec<Wanted>)]| {
        let path = KeyPath::new(["agents", name, "backend"]);
        let found = files
            .iter()
            .rev()
            .find_map(|(value, _)| path.find(value).cloned());
        found.as_ref().and_then(Value::as_str).map(str::to_owned)
    };
    for name in agents {
        let touched = files.iter().any(|(_, held)| {
            let agent = KeyPath::new(["agents", name.as_str()]);
            held.iter().any(|wanted| wanted.path.is_within(&agent))
        });
        let gone = match backend(&name, files) {
            None => touched,
            Some(backend) => providers.contains(&backend),
        };
        if gone {
            for (value, _) in files.iter_mut() {
                take(value, &["agents".to_owned(), name.clone()]);
            }
            rest.agents.insert(name);
        }
    }
    rest
}

/// Removes one setting from a file. From a list of members, removes only members that are not permitted. Returns the
/// removed members.
fn cut(value: &mut Value, wanted: &Wanted, circle: &Circle) -> Vec<String> {
    let path = wanted.path.segments();
    if let Some(items) = names_of(wanted) {
        let may_sit = |item: &&Value| item.as_str().is_some_and(|name| circle.may_sit(name));
        let (stay, go): (Vec<&Value>, Vec<&Value>) = items.iter().partition(may_sit);
        if stay.is_empty() {
            take(value, path);
        } else {
            let stay = stay.into_iter().cloned().collect();
            put(value, path, Value::Array(stay));
        }
        return go
            .iter()
            .filter_map(|item| Some(item.as_str()?.to_owned()))
            .collect();
    }
    take(value, path);
    let names_member =
        wanted.why == Why::Members && path.first().is_none_or(|first| first != "agents");
    let name = wanted.value.as_str().filter(|_| names_member);
    name.map(str::to_owned).into_iter().collect()
}

/// Removes agents that do not exist from all member lists, unless a higher layer defines them.
pub fn unseat(value: &mut Value, gone: &BTreeSet<String>) {
    let defined = |value: &Value, name: &str| {
        let path = KeyPath::new(["agents", name, "backend"]);
        path.find(value).is_some_and(|backend| !backend.is_null())
    };
    let gone: BTreeSet<&String> = gone.iter().filter(|name| !defined(value, name)).collect();
    for name in &gone {
        take(value, &["agents".to_owned(), (*name).clone()]);
    }
    let is_gone = |item: &Value| {
        item.as_str()
            .is_some_and(|name| gone.contains(&name.to_owned()))
    };
    for key in KEYS
        .iter()
        .filter(|key| key.project == FromProject::Members && !key.path.contains('<'))
    {
        let path = KeyPath::new(key.pattern());
        let Some(found) = path.find(value).cloned() else {
            continue;
        };
        match found {
            Value::Array(items) => {
                let is_seat = |item: &Value| item.get("model").is_some_and(is_gone);
                if items.iter().any(is_seat) {
                    take(value, path.segments());
                } else {
                    let stay = items.into_iter().filter(|item| !is_gone(item)).collect();
                    put(value, path.segments(), Value::Array(stay));
                }
            }
            name if is_gone(&name) => {
                take(value, path.segments());
            }
            _ => {}
        }
    }
}

/// Describes the effect of a setting in a word, for the list that the user is asked to allow.
pub fn effect(path: &KeyPath) -> &'static str {
    if matches!(path.segments(), [forum, agents, _] if forum == "forum" && agents == "agents") {
        return "runs";
    }
    let Some(key) = find(path) else {
        return "resets";
    };
    let parts: Vec<&str> = key.pattern().collect();
    match (key.project, parts.as_slice()) {
        (FromProject::Free | FromProject::Text, _) => "",
        (_, [.., "writable" | "sandbox" | "state"] | ["forum", "unconfirmed" | "guests"]) => {
            "rights"
        }
        (FromProject::Limit(_), _) | (_, [.., "batch_pause"]) => "limit",
        (
            _,
            ["agents", _, "backend" | "command" | "dialect"]
            | ["forum", "servers", _, "command"]
            | [.., "key_command"],
        ) => "runs",
        (_, ["forum", "servers", _, "tools" | "agents"] | ["agents", _, "tools"]) => "rights",
        (FromProject::Members, _) => "members",
        (_, [.., "extra_flags"]) => "flags",
        (_, [.., "env"]) => "sees",
        (_, [.., "base_url" | "wire" | "url"]) => "sends to",
        (_, [.., "key_env" | "key_file"]) => "key",
        (_, [.., "model" | "effort"]) => "model",
        (_, [_, _, "prices", ..] | [.., "prompt_cache" | "batches" | "batch_price"]) => "price",
        (_, ["forum", "store"]) => "file",
        (
            _,
            [.., "weight" | "reliability"]
            | ["forum", "quorum" | "rule" | "voting_cycles"]
            | ["deliberation", "council", "voting", _],
        ) => "votes",
        (
            _,
            ["deliberation", "meta", _]
            | [
                "deliberation",
                "protocol" | "preset" | "answer" | "certainty",
            ]
            | ["deliberation", "iteration", "strategy"]
            | ["serve", "models", _, "method" | "preset" | "protocol"]
            | ["council", "mode"],
        ) => "calls",
        (_, ["forum", "interval"]) => "limit",
        _ => "other",
    }
}

struct Judge<'v> {
    circle: Circle,
    below: &'v Value,
    out: Vec<Wanted>,
}

impl Judge<'_> {
    fn walk(&mut self, path: &KeyPath, value: &Value) {
        if let Some(key) = find(path) {
            if let Some(why) = self.leaf(key, path, value) {
                self.want(path, value, why);
            }
        } else if let Some(fields) = value.as_object() {
            for (name, value) in fields {
                self.walk(&path.join(name), value);
            }
        } else if path.find(self.below).is_some_and(|set| !set.is_null()) {
            // A value other than an object in place of a section: `null` removes everything the user set there.
            self.want(path, value, Why::Resets);
        }
    }

    fn want(&mut self, path: &KeyPath, value: &Value, why: Why) {
        self.out.push(Wanted {
            path: path.clone(),
            value: value.clone(),
            why,
        });
    }

    /// Returns why a setting needs consent; `None` if it does not.
    fn leaf(&self, key: &Key, path: &KeyPath, value: &Value) -> Option<Why> {
        let set = |value: &Value| (!value.is_null()).then(|| value.clone());
        let new = set(value);
        let old = path.find(self.below).and_then(set);
        // A setting without effect needs no consent.
        let default = default_value(path).and_then(|value| set(&value));
        if new == old || (old.is_none() && new == default) {
            return None;
        }
        match key.project {
            FromProject::Free | FromProject::Text | FromProject::Never => None,
            FromProject::Limit(limit) => {
                (!self.is_stricter(limit, key, new.as_ref(), old.as_ref())).then_some(Why::Raises)
            }
            FromProject::Trusted => Some(match new {
                Some(_) => Why::Trusted,
                None => Why::Resets,
            }),
            FromProject::Members => match new {
                None => Some(Why::Resets),
                Some(new) => (!self.is_own(path, &new)).then_some(Why::Members),
            },
        }
    }

    /// Returns whether all members that a setting names are from the built-in model, the user's own council, or agents
    /// of the project itself, whose backend is checked separately.
    fn is_own(&self, path: &KeyPath, new: &Value) -> bool {
        if let ["agents", name, "backend"] = path
            .segments()
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()[..]
        {
            let known = KNOWN_AGENTS.iter().any(|(known, _)| *known == name);
            let own = KeyPath::new(["agents", name]).find(self.below).is_some();
            return new == "local" && !known && !own;
        }
        let fine = |name: &Value| name.as_str().is_none_or(|name| self.circle.may_sit(name));
        match new {
            Value::Array(items) => {
                // Each member costs a call, and a weight is a share of the vote.
                let seats = items.iter().filter(|item| item.is_object());
                let modest = seats.clone().count() <= SEATS_MAX
                    && seats.clone().all(|seat| seat.get("weight").is_none());
                // A member of the user takes part once, as in the user's own council.
                let mut seated = BTreeSet::new();
                let once = |seat: &Value| {
                    let model = seat.get("model").and_then(Value::as_str);
                    model.is_none_or(|model| {
                        !self.circle.own.contains(model) || seated.insert(model.to_owned())
                    })
                };
                let modest = modest && seats.clone().all(once);
                // Each name beyond the user's own council also costs a call.
                let names = items.len() - seats.clone().count();
                let modest = modest && names <= SEATS_MAX.max(self.circle.own.len());
                modest
                    && items
                        .iter()
                        .all(|item| fine(item.get("model").unwrap_or(item)))
            }
            name => fine(name),
        }
    }

    fn is_stricter(
        &self,
        limit: Limit,
        key: &Key,
        new: Option<&Value>,
        old: Option<&Value>,
    ) -> bool {
        let default: Option<Value> = serde_json::from_str(key.default)
            .ok()
            .filter(|value: &Value| !value.is_null());
        let number = |value: Option<&Value>| value.and_then(Value::as_f64);
        let or_default = |value: Option<&Value>| number(value.or(default.as_ref()));
        let is = |value: Option<&Value>, unset: bool| {
            value
                .or(default.as_ref())
                .map_or(Some(unset), Value::as_bool)
        };
        let (new, old) = match limit {
            Limit::Default => (or_default(new), or_default(old)),
            Limit::AtLeast => (or_default(new).map(|n| -n), or_default(old).map(|n| -n)),
            Limit::ZeroIsNone => {
                let finite = |n: f64| if n == 0.0 { f64::INFINITY } else { n };
                (or_default(new).map(finite), or_default(old).map(finite))
            }
            Limit::NoLimit => {
                let unset =
                    |value: Option<&Value>| value.map_or(Some(f64::INFINITY), Value::as_f64);
                (unset(new), unset(old))
            }
            // The meaning of unset is not known here: compared with a larger value it counts as more, with a smaller
            // one as this number.
            Limit::As(least) => {
                let known = |n: f64| if n < 0.0 { f64::INFINITY } else { n };
                let old = number(old).filter(|n| *n >= 0.0).unwrap_or(least);
                (
                    new.map_or(Some(f64::INFINITY), |new| new.as_f64().map(known)),
                    Some(old),
                )
            }
            Limit::Like(other) => {
                let other = KeyPath::new(other.split('.'));
                let general = other
                    .find(self.below)
                    .cloned()
                    .or_else(|| default_value(&other));
                (
                    new.map_or(Some(f64::INFINITY), Value::as_f64),
                    number(old.or(general.as_ref())),
                )
            }
            Limit::Off | Limit::On => {
                let more = |value: bool| f64::from(u8::from(value == matches!(limit, Limit::Off)));
                let unset_old = matches!(limit, Limit::On);
                (is(new, !unset_old).map(more), is(old, unset_old).map(more))
            }
        };
        matches!((new, old), (Some(new), Some(old)) if new <= old)
    }
}

/// The members that a project may add. By default no agent programs and none of the user's agents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Circle {
    /// Members in the user's own settings.
    own: BTreeSet<String>,
    /// All agents of the user, and the models by which they and the user's services can be named.
    agents: BTreeSet<String>,
}

impl Circle {
    /// Creates the set for project files, from the merged value of the layers below them.
    pub fn new(below: &Value) -> Self {
        let agents = names("agents", below);
        let models = models("agents", below).chain(models("providers", below));
        let known = agents.iter().cloned().chain(models).collect();
        let listed = KeyPath::new(["council", "members"]);
        let listed = listed.find(below).and_then(Value::as_array);
        let listed: BTreeSet<String> = listed
            .into_iter()
            .flatten()
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect();
        Self {
            own: if listed.is_empty() { agents } else { listed },
            agents: known,
        }
    }

    /// Adds the members in the active settings, and the agents that a project was allowed to define.
    #[must_use]
    pub fn with(mut self, in_force: &Value) -> Self {
        let now = Self::new(in_force);
        let allowed = now.agents.difference(&self.agents).cloned();
        self.own.extend(allowed);
        self.own.extend(now.own);
        self
    }

    /// Returns whether a member is in the user's council, or is not an agent program, a service's model or an agent of
    /// the user: then it is from the built-in model, or an agent of the project, whose backend is checked separately.
    pub fn may_sit(&self, name: &str) -> bool {
        let known = KNOWN_AGENTS.iter().any(|(known, _)| *known == name)
            || crate::models::family(name).is_some();
        self.own.contains(name) || !(known || self.agents.contains(name))
    }
}

/// Returns the names in a section.
fn names(section: &str, value: &Value) -> BTreeSet<String> {
    let fields = value.get(section).and_then(Value::as_object);
    let set = fields
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null());
    set.map(|(name, _)| name.clone()).collect()
}

/// Returns the models that entries of a section name: their own models, and models with a price.
fn models<'v>(section: &str, value: &'v Value) -> impl Iterator<Item = String> + use<'v> {
    let entries = value.get(section).and_then(Value::as_object);
    entries.into_iter().flatten().flat_map(|(_, entry)| {
        let own = entry.get("model").and_then(Value::as_str);
        let priced = entry.get("prices").and_then(Value::as_object);
        let priced = priced
            .into_iter()
            .flat_map(|p| p.keys().map(String::as_str));
        own.into_iter().chain(priced).map(str::to_owned)
    })
}

/// Returns the names of a member list that needs consent.
fn names_of(wanted: &Wanted) -> Option<&Vec<Value>> {
    let items = wanted
        .value
        .as_array()
        .filter(|_| wanted.why == Why::Members)?;
    items.iter().all(Value::is_string).then_some(items)
}

fn leaves(path: &KeyPath, value: &Value, visit: &mut impl FnMut(&KeyPath, &Key, &Value)) {
    if let Some(key) = keys::find(path) {
        visit(path, key, value);
    } else if let Some(fields) = value.as_object() {
        for (name, value) in fields {
            leaves(&path.join(name), value, visit);
        }
    }
}

fn take(value: &mut Value, path: &[String]) -> Option<Value> {
    let (last, above) = path.split_last()?;
    let mut at = value;
    for part in above {
        at = at.get_mut(part)?;
    }
    at.as_object_mut()?.remove(last)
}

fn put(value: &mut Value, path: &[String], new: Value) {
    let mut at = value;
    for part in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[part.as_str()];
    }
    *at = new;
}
