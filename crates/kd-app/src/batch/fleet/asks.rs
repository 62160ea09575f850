//! How a batch of a fleet is asked: the values in the database, and digests of everything on this machine that
//! decides an answer. Two machines with the same digests ask in the same way.

use super::super::how::How;
use super::super::key::{digest, memory_and_marks};
use super::plan;
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use crate::{Ask, Deliberate, SeatRequest, Terms, Think};
use kd_core::batch::Method;
use kd_core::config::{AgentConfig, Config, ProviderConfig, is_program};
use kd_sql::fleet::Asks;
use kd_store::memory;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum members that a batch names.
const MEMBERS_MAX: usize = 64;
/// Maximum characters of a name.
const NAME_CHARS_MAX: usize = 200;

/// Bounds of numbers, equal to the bounds of the settings of the same names.
const TOKENS_MAX: u32 = 10_000_000;
const SECS_MAX: u64 = 7 * 24 * 3600;
const TEMPERATURE_MAX: f32 = 2.0;

/// How questions are asked, as stored in the database: names, a method and numbers. No address, key or command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    method: Method,
    members: Vec<String>,
    model: Option<String>,
    temperature: Option<f32>,
    max_tokens: Option<u32>,
    seed: Option<u64>,
    timeout: Option<u64>,
    no_conclusion: bool,
    private: bool,
    /// The settings of deliberations, if they come from a plan; else each machine has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Value>,
}

/// The digests of a machine, by the part of its configuration.
type Parts = BTreeMap<String, String>;

/// Returns how a batch is asked, for the database.
///
/// # Errors
/// A member is an agent program, or an option works on one machine only.
pub(super) fn of(kingdom: &Kingdom, how: &How, planned: bool) -> Result<Asks, UserError> {
    let mut spec = Spec::of(kingdom.config(), how)?;
    spec.plan = planned.then(|| json!(kingdom.config().deliberation));
    spec.check(kingdom.config())?;
    refuse_programs(kingdom.config(), how)?;
    Ok(Asks {
        asks: json!(spec).to_string(),
        parts: json!(parts(kingdom, how)?).to_string(),
    })
}

/// Returns the digest of how a batch is asked. `lasting` leaves out everything that may change without the user, such
/// as versions.
pub(super) fn recipe(asks: &Asks, lasting: bool) -> String {
    let mut parts: Parts = serde_json::from_str(&asks.parts).unwrap_or_default();
    if lasting {
        parts.retain(|part, _| !matches!(part.as_str(), "kd" | "memory and marks"));
    }
    digest(&["fleet 1", &asks.asks, &json!(parts).to_string()])
}

/// Returns how this machine asks a batch of the database, and the settings that it needs for that.
///
/// # Errors
/// Why this machine does not serve it.
pub(super) fn accept(kingdom: &mut Kingdom, asks: &Asks) -> Result<How, UserError> {
    let refused = |what: String| UserError::new(ErrorKind::Config, what);
    let spec: Spec = serde_json::from_str(&asks.asks).map_err(|_| {
        refused("it is asked in a way that this version of kd does not know".into())
    })?;
    let is_name = |name: &String| (1..=NAME_CHARS_MAX).contains(&name.chars().count());
    if spec.members.len() > MEMBERS_MAX || !spec.members.iter().all(is_name) {
        return Err(refused("it names members that no configuration has".into()));
    }
    if let Some(plan) = &spec.plan {
        plan::accept(kingdom, plan)?;
    }
    spec.check(kingdom.config())?;
    kingdom.configure(|config| config.council.private |= spec.private);
    let how = spec.how();
    refuse_programs(kingdom.config(), &how)?;
    let theirs: Parts = serde_json::from_str(&asks.parts).unwrap_or_default();
    let own = parts(kingdom, &how)?;
    let names: BTreeSet<&String> = own.keys().chain(theirs.keys()).collect();
    let differing: Vec<&str> = names
        .into_iter()
        .filter(|part| own.get(*part) != theirs.get(*part))
        .map(String::as_str)
        .collect();
    match differing.is_empty() {
        true => Ok(how),
        false => {
            let names = differing
                .iter()
                .map(|name| kd_core::clean::clean_text(name));
            let names: Vec<_> = names
                .map(|name| name.chars().take(100).collect::<String>())
                .collect();
            Err(refused(format!(
                "it was started with another configuration: {}",
                names.join(", ")
            )))
        }
    }
}

impl Spec {
    fn of(config: &Config, how: &How) -> Result<Self, UserError> {
        let seats = |method, seats: &SeatRequest| Spec {
            method,
            members: seats.members.clone(),
            model: seats.model.clone(),
            temperature: seats.temperature,
            max_tokens: seats.max_tokens,
            seed: seats.seed,
            timeout: seats.timeout,
            no_conclusion: false,
            private: config.council.private,
            plan: None,
        };
        if how.allows_secrets() {
            let what = "--allow-secrets works on one machine only";
            return Err(UserError::new(ErrorKind::Usage, what).next(
                "leave it out: secrets in questions are masked before they reach the database",
            ));
        }
        Ok(match how {
            How::Ask(ask) => Spec {
                no_conclusion: ask.no_conclusion,
                ..seats(Method::Ask, &ask.seats)
            },
            How::Think(think) => {
                let named = [&think.fast, &think.rigorous, &think.arbiter];
                Spec {
                    members: named.into_iter().flatten().cloned().collect(),
                    ..seats(Method::Think, &think.all)
                }
            }
            How::Deliberate(deliberate) => Spec {
                method: Method::Deliberate,
                members: deliberate.members.clone(),
                private: config.council.private,
                ..Spec::default()
            },
        })
    }

    /// Fails if the user's own configuration does not allow a model, a member or a number, because these decide the
    /// cost.
    fn check(&self, config: &Config) -> Result<(), UserError> {
        let refused = |what: String, next: &str| {
            let what = kd_core::clean::clean_text(&what)
                .chars()
                .take(300)
                .collect::<String>();
            Err(UserError::new(ErrorKind::Config, what).next(next))
        };
        const LIST: &str = "list the model in the configuration of every machine: agents.<name>.model, providers.<name>.model or providers.<name>.prices";
        if let Some(model) = self
            .model
            .as_ref()
            .filter(|model| !lists_model(config, model))
        {
            return refused(format!("the configuration lists no model `{model}`"), LIST);
        }
        let is_listed = |name: &&String| {
            config.agents.contains_key(*name)
                || config.providers.contains_key(*name)
                || *name == LOCAL
                || lists_model(config, name)
                || is_known_program(name)
        };
        let planned = self
            .plan
            .iter()
            .flat_map(|_| plan::named(&config.deliberation));
        let mut names = self.members.iter().chain(planned);
        if let Some(name) = names.find(|name| !is_listed(name)) {
            let what = format!("the configuration lists no agent, service or model `{name}`");
            return refused(what, LIST);
        }
        let is_over = [
            (
                "--max-tokens",
                self.max_tokens
                    .is_some_and(|n| !(1..=TOKENS_MAX).contains(&n)),
            ),
            (
                "--timeout",
                self.timeout.is_some_and(|n| !(1..=SECS_MAX).contains(&n)),
            ),
            (
                "--temperature",
                self.temperature
                    .is_some_and(|n| !(0.0..=TEMPERATURE_MAX).contains(&n)),
            ),
        ];
        match is_over.iter().find(|(_, is_over)| *is_over) {
            Some((option, _)) => refused(
                format!("{option} of the batch is out of bounds"),
                "`kd batch run --help` and docs/configuration.md tell the bounds",
            ),
            None => Ok(()),
        }
    }

    fn how(self) -> How {
        let seats = SeatRequest {
            members: self.members,
            model: self.model,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            seed: self.seed,
            timeout: self.timeout,
            writable: None,
            tools: None,
        };
        match self.method {
            Method::Ask => How::Ask(Ask {
                seats,
                no_conclusion: self.no_conclusion,
                terms: Terms::default(),
                ..Ask::default()
            }),
            Method::Think => {
                let mut members = seats.members.iter().cloned();
                How::Think(Think {
                    fast: members.next(),
                    rigorous: members.next(),
                    arbiter: members.next(),
                    all: SeatRequest {
                        members: Vec::new(),
                        ..seats.clone()
                    },
                    ..Think::default()
                })
            }
            Method::Deliberate => How::Deliberate(Deliberate {
                members: seats.members,
                ..Deliberate::default()
            }),
        }
    }
}

/// The built-in model.
const LOCAL: &str = "local";

/// Returns whether the user's own configuration lists a model.
fn lists_model(config: &Config, model: &str) -> bool {
    let is_it = |one: &Option<String>| one.as_deref() == Some(model);
    config.agents.values().any(|agent| is_it(&agent.model))
        || config
            .providers
            .values()
            .any(|provider| is_it(&provider.model) || provider.prices.contains_key(model))
}

fn is_known_program(name: &str) -> bool {
    kd_core::config::KNOWN_AGENTS
        .iter()
        .any(|(known, backend)| *known == name && is_program(backend))
}

/// Returns further members that a method asks: the chair, the planner and the members of `think`.
fn further<'c>(config: &'c Config, how: &'c How) -> Vec<&'c String> {
    let think = &config.think;
    match how {
        How::Ask(ask) if ask.no_conclusion || !config.council.conclude => Vec::new(),
        How::Ask(_) => config.council.chair.iter().collect(),
        How::Think(asked) => [
            (&asked.fast, &think.fast),
            (&asked.rigorous, &think.rigorous),
            (&asked.arbiter, &think.arbiter),
        ]
        .into_iter()
        .filter_map(|(asked, own)| asked.as_ref().or(own.as_ref()))
        .collect(),
        How::Deliberate(_) => {
            let deliberation = &config.deliberation;
            let members = deliberation.council.members.iter().flatten();
            let named = [&config.council.chair, &deliberation.meta.planner];
            let named = named.into_iter().flatten();
            named.chain(members.map(|member| &member.model)).collect()
        }
    }
}

/// Returns the members that a batch names.
fn named(how: &How) -> Vec<&String> {
    match how {
        How::Ask(ask) => ask.seats.members.iter().collect(),
        How::Think(think) => [&think.fast, &think.rigorous, &think.arbiter]
            .into_iter()
            .flatten()
            .collect(),
        How::Deliberate(deliberate) => deliberate.members.iter().collect(),
    }
}

/// Returns the agents that may answer: those that are named, else the council's, else all.
fn agents<'c>(config: &'c Config, how: &How) -> Vec<(&'c String, &'c AgentConfig)> {
    let named = named(how);
    let council = &config.council.members;
    let is_meant = |name: &String| match (named.is_empty(), council.is_empty()) {
        (false, _) => named.contains(&name),
        (true, false) => council.contains(name),
        (true, true) => true,
    };
    let agents = config.agents.iter();
    agents.filter(|(name, _)| is_meant(name)).collect()
}

/// Fails if an agent program would have to answer: its login is somebody's, and not the fleet's.
fn refuse_programs(config: &Config, how: &How) -> Result<(), UserError> {
    let agents = agents(config, how);
    let further = further(config, how);
    let configured = config
        .agents
        .iter()
        .filter(|(name, _)| further.contains(name));
    let programs = agents.into_iter().chain(configured);
    let programs = programs
        .into_iter()
        .find(|(_, agent)| is_program(&agent.backend));
    let direct = named(how).into_iter().chain(further.iter().copied());
    let direct = direct
        .into_iter()
        .find(|name| !config.agents.contains_key(*name) && is_known_program(name));
    let (name, backend) = match (programs, direct) {
        (Some((name, agent)), _) => ((*name).clone(), agent.backend.clone()),
        (None, Some(name)) => (name.clone(), name.clone()),
        (None, None) => return Ok(()),
    };
    let what = format!("`{name}` is an agent program ({backend}), which no fleet runs");
    Err(UserError::new(ErrorKind::NoSeat, what)
        .next("name members at a service with a key, or of the built-in model: --members"))
}

/// Returns digests of everything that decides an answer on this machine. Keys, limits and rates do not.
fn parts(kingdom: &Kingdom, how: &How) -> Result<Parts, UserError> {
    let config = kingdom.config();
    let mut parts = Parts::new();
    let mut add = |part: &str, value: &Value| {
        parts.insert(part.to_owned(), digest(&[&value.to_string()]));
    };
    add("kd", &json!(env!("CARGO_PKG_VERSION")));
    add("council", &json!(config.council));
    add("prompts", &json!(config.prompts));
    let agents = agents(config, how);
    // The chair, the planner and others answer too.
    let further = further(config, how);
    let mut names = named(how).into_iter().chain(further.iter().copied());
    let all_known = names.all(|name| config.agents.contains_key(name));
    let configured = config.agents.iter();
    let also = configured.filter(|(name, _)| {
        further.contains(name) && !agents.iter().any(|(known, _)| known == name)
    });
    let agents: Vec<_> = agents.iter().copied().chain(also).collect();
    for (name, agent) in &agents {
        add(&format!("agents.{name}"), &json!(agent));
    }
    let uses = |name: &String| !all_known || agents.iter().any(|(_, agent)| agent.backend == *name);
    for (name, provider) in config.providers.iter().filter(|(name, _)| uses(name)) {
        add(&format!("providers.{name}"), &json!(answering(provider)));
    }
    let is_local =
        |(_, agent): &(&String, &AgentConfig)| agent.backend == "local" || agent.backend.is_empty();
    if !all_known || agents.is_empty() || agents.iter().any(is_local) {
        let mut local = config.local.clone();
        // Offline or not, the model is the same.
        local.offline = false;
        add("local", &json!(local));
    }
    match how {
        How::Ask(_) => {}
        How::Think(_) => add("think", &json!(config.think)),
        How::Deliberate(_) => {
            add("deliberation", &json!(config.deliberation));
            let roles = match kingdom.layout() {
                Some(layout) => memory::roles(&layout)?,
                None => BTreeMap::new(),
            };
            add("roles", &json!(roles));
            add("memory and marks", &memory_and_marks(kingdom)?);
        }
    }
    Ok(parts)
}

/// Returns the settings of a service that decide an answer.
fn answering(provider: &ProviderConfig) -> ProviderConfig {
    let ProviderConfig {
        wire,
        base_url,
        key_env: _,
        key_file: _,
        key_command: _,
        requests_per_minute: _,
        attempts: _,
        model,
        prompt_cache: _,
        prices: _,
        batches: _,
        batch_price: _,
        batch_pause: _,
    } = provider.clone();
    ProviderConfig {
        wire,
        base_url,
        model,
        ..ProviderConfig::default()
    }
}

#[cfg(test)]
mod tests;
