//! Digests of everything that decides an answer. Equal digests make two questions the same, or two commands the same
//! batch.

use super::how::How;
use crate::deliberation;
use crate::error::UserError;
use crate::host::PlanChoice;
use crate::kingdom::Kingdom;
use crate::request::{Ask, Terms};
use crate::{Deliberate, Think};
use jiff::Timestamp;
use kd_core::config::{Config, ProviderConfig};
use kd_core::hex::hex;
use kd_core::output::Schema;
use kd_core::planner;
use kd_core::seating::{SeatRequest, services};
use kd_sql::batch::Asked;
use kd_store::memory;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// Settings that do not change an answer, and why.
const IRRELEVANT: [(&str, &str); 4] = [
    (
        "limits",
        "an answer that a limit has cut is not kept, and a raised limit must go on with the batch",
    ),
    ("forum", "no question of a batch is asked in the forum"),
    ("chat", "colors and notifications"),
    ("serve", "no program uses a batch as a model"),
];

/// The same, but counted as not set instead of left out: batches of earlier versions keep their keys.
const AS_UNSET: [(&str, &str); 1] = [("marks", "a hint on the terminal")];

/// How questions are asked, as digests.
pub(super) struct Recipe {
    /// The user's choices: method, options, settings, texts of roles. Another choice is another batch.
    chosen: String,
    /// These, and everything that may change without the user: memory, marks, installed programs, this version of
    /// `kd`. An answer is used again only if all of it is the same.
    whole: String,
}

impl Recipe {
    /// Returns how the questions of a batch are asked.
    ///
    /// # Errors
    /// If role texts or the memory cannot be read.
    pub(super) fn of(kingdom: &Kingdom, how: &How) -> Result<Self, UserError> {
        let roles = match (how, kingdom.layout()) {
            (How::Deliberate(_), Some(layout)) => memory::roles(&layout)?,
            _ => BTreeMap::new(),
        };
        let chosen = chosen(kingdom.config(), how, &roles);
        let whole = digest(&[&chosen, &around(kingdom, how)?.to_string()]);
        Ok(Self { chosen, whole })
    }

    /// Returns the digest of a question.
    pub(super) fn question(&self, text: &str) -> String {
        digest(&[&self.whole, text])
    }

    /// Returns the digest of a batch: how it is asked, its questions in order, and where results go.
    pub(super) fn batch(&self, questions: &[Asked], output: Option<&Path>) -> String {
        batch(&self.chosen, questions, output)
    }
}

/// Returns the digest of a batch: how it is asked, its questions in order, and where results go.
pub(super) fn batch(chosen: &str, questions: &[Asked], output: Option<&Path>) -> String {
    let output = output.map(|path| path.as_os_str().as_encoded_bytes());
    let mut hash = Sha256::new();
    part(&mut hash, chosen.as_bytes());
    part(&mut hash, output.unwrap_or_default());
    for question in questions {
        part(&mut hash, question.id.as_bytes());
        part(&mut hash, question.text.as_bytes());
    }
    hex(&hash.finalize())
}

/// Returns the digest of what the user has chosen.
fn chosen(config: &Config, how: &How, roles: &BTreeMap<String, String>) -> String {
    let mut settings = serde_json::to_value(config).unwrap_or(Value::Null);
    if let Value::Object(settings) = &mut settings {
        for (section, _) in IRRELEVANT {
            settings.remove(section);
        }
        let unset = json!(Config::default());
        for (section, _) in AS_UNSET {
            settings.insert(section.into(), unset[section].clone());
        }
    }
    // A price does not change an answer; deliberations order members by their prices.
    if !matches!(how, How::Deliberate(_))
        && let Some(Value::Object(providers)) = settings.get_mut("providers")
    {
        let unset = json!(ProviderConfig::default());
        for provider in providers.values_mut() {
            provider["prices"] = unset["prices"].clone();
        }
    }
    let mut parts = vec![
        json!(2),
        json!(how.method()),
        options(how),
        settings,
        json!(roles),
    ];
    // Absent where the environment names none: batches of earlier versions keep their keys.
    let services = services(config, names_programs(config, how));
    if !services.is_empty() {
        parts.push(json!({"services": services}));
    }
    digest(&[&json!(parts).to_string()])
}

/// Returns whether members may be programs that are not agents of the settings: asked by their own names, or found.
fn names_programs(config: &Config, how: &How) -> bool {
    let mut names: Vec<&String> = config.council.members.iter().collect();
    let model = match how {
        How::Ask(ask) => {
            names.extend(&ask.seats.members);
            ask.seats.model.as_ref()
        }
        How::Think(think) => {
            names.extend(&think.all.members);
            names.extend(
                [&think.fast, &think.rigorous, &think.arbiter]
                    .into_iter()
                    .flatten(),
            );
            think.all.model.as_ref()
        }
        How::Deliberate(deliberate) => {
            names.extend(&deliberate.members);
            None
        }
    };
    let is_agent = |name: &&String| config.agents.contains_key(*name);
    config.agents.is_empty() || model.is_some() || !names.iter().all(is_agent)
}

/// Returns the values that may change without the user's choice.
fn around(kingdom: &Kingdom, how: &How) -> Result<Value, UserError> {
    let config = kingdom.config();
    let plan = match how {
        How::Ask(_) | How::Think(_) => Value::Null,
        How::Deliberate(_) => memory_and_marks(kingdom)?,
    };
    Ok(json!({
        "kd": env!("CARGO_PKG_VERSION"),
        "programs": config.programs_for_models,
        // Whether agent programs obey the files of the folder.
        "trusted": kingdom.env().backend_options().trusted,
        "plan": plan,
    }))
}

/// Returns what a deliberation takes from earlier ones, and the prices that bound it.
pub(super) fn memory_and_marks(kingdom: &Kingdom) -> Result<Value, UserError> {
    let config = kingdom.config();
    let settings = &config.deliberation;
    let layout = kingdom.layout().filter(|_| settings.memory.long_term);
    let remembered = layout.map(|layout| memory::read(&layout)).transpose()?;
    let marks = planner::uses_marks(settings).then(|| deliberation::state_of_marks(kingdom.env()));
    // Prices decide how much of a plan fits into a limit of money.
    let prices = settings.max_usd.map(|_| format!("{:?}", config.prices));
    Ok(json!({
        "memory": remembered.unwrap_or_default().background(),
        "marks": marks,
        "prices": prices,
    }))
}

/// Returns the options that decide an answer. A new option does not compile until it is placed here.
fn options(how: &How) -> Value {
    match how {
        How::Ask(ask) => {
            // Questions of a batch are asked in new threads.
            let Ask {
                seats,
                to,
                address,
                thread: _,
                no_conclusion,
                terms,
            } = ask;
            json!({
                "seats": seated(seats),
                "to": to,
                "address": address,
                "no_conclusion": no_conclusion,
                "terms": agreed(terms),
            })
        }
        How::Think(think) => {
            let Think {
                fast,
                rigorous,
                arbiter,
                all,
                messages_max,
                messages_min,
                tokens_max,
                secs_max,
                thread: _,
                terms,
            } = think;
            json!({
                "fast": fast,
                "rigorous": rigorous,
                "arbiter": arbiter,
                "seats": seated(all),
                "messages_max": messages_max,
                "messages_min": messages_min,
                "tokens_max": tokens_max,
                "secs_max": secs_max,
                "terms": agreed(terms),
            })
        }
        How::Deliberate(deliberate) => {
            // Offline or not, the model is the same.
            let Deliberate {
                members,
                thread: _,
                plan: PlanChoice { preset, protocol },
                offline: _,
                output,
            } = deliberate;
            let mut how = json!({"members": members});
            if let Some(output) = output {
                how["output"] = output.json().clone();
            }
            // Absent where not chosen: batches of earlier versions keep their keys.
            for (name, value) in [("preset", preset), ("protocol", protocol)] {
                if let Some(value) = value {
                    how[name] = value.as_str().into();
                }
            }
            how
        }
    }
}

fn seated(seats: &SeatRequest) -> Value {
    let SeatRequest {
        members,
        model,
        temperature,
        max_tokens,
        seed,
        timeout,
        writable,
        // No question of a batch is asked with tools.
        tools: _,
    } = seats;
    json!({
        "members": members,
        "model": model,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "seed": seed,
        "timeout": timeout,
        "writable": writable,
    })
}

fn agreed(terms: &Terms) -> Value {
    // A batch has its own limits, and the model is the same whether or not `kd` is offline.
    let Terms {
        limits: _,
        private,
        allow_secrets,
        offline: _,
        output,
    } = terms;
    let mut agreed = json!({"private": private, "allow_secrets": allow_secrets});
    if let Some(output) = output {
        agreed["output"] = output.json().clone();
    }
    agreed
}

/// Returns the id of a new batch.
pub(super) fn new_id(key: &str, now: Timestamp) -> String {
    let salt = [
        now.as_nanosecond().to_string(),
        std::process::id().to_string(),
    ];
    let digits = digest(&[key, &salt[0], &salt[1]]);
    format!("batch-{}", &digits[..8])
}

pub(super) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    parts.iter().for_each(|one| part(&mut hash, one.as_bytes()));
    hex(&hash.finalize())
}

/// Adds a part with its length, so that no two lists of parts have the same bytes.
fn part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use kd_core::config::{
        AgentConfig, KEYS, KeyPath, Kind, ModelConfig, Price, Reader, RemoteConfig, ServerConfig,
    };
    use kd_eval::marks::{By, Mark};
    use std::collections::BTreeSet;
    use std::fs;

    fn plainly(config: &Config, how: &How) -> String {
        chosen(config, how, &BTreeMap::new())
    }

    fn leaves(path: &KeyPath, value: &Value, out: &mut Vec<KeyPath>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    leaves(&path.join(name), value, out);
                }
            }
            _ => out.push(path.clone()),
        }
    }

    /// Returns values of every type. Every setting accepts at least one of them that it does not have yet.
    fn others(kind: Kind) -> Vec<Value> {
        let seat = json!([{"model": "local", "role": "skeptic"}]);
        let words = match kind {
            Kind::OneOf(words) => words,
            _ => &["x"],
        };
        let mut others = vec![
            json!(true),
            json!(false),
            json!(7),
            json!(0.5),
            json!(["x"]),
            seat,
        ];
        others.extend(words.iter().map(|word| json!(word)));
        others
    }

    fn set(value: &mut Value, path: &KeyPath, to: Value) {
        let mut at = value;
        for segment in path.segments() {
            at = &mut at[segment.as_str()];
        }
        *at = to;
    }

    #[test]
    fn every_setting_changes_the_recipe_or_is_irrelevant_for_a_stated_reason() {
        let mut provider = ProviderConfig::default();
        provider.prices.insert("m".into(), Price::default());
        let mut config = Config {
            agents: [("a".into(), AgentConfig::default())].into(),
            providers: [("p".into(), provider)].into(),
            ..Config::default()
        };
        config
            .forum
            .remotes
            .insert("r".into(), RemoteConfig::default());
        config
            .forum
            .servers
            .insert("s".into(), ServerConfig::default());
        config
            .serve
            .models
            .insert("m".into(), ModelConfig::default());
        config.chat.keys.insert("send".into(), String::new());
        let how = How::Deliberate(Deliberate::default());
        let first = plainly(&config, &how);
        let value = serde_json::to_value(&config).unwrap();
        let mut paths = Vec::new();
        leaves(&KeyPath::default(), &value, &mut paths);
        let mut seen = BTreeSet::new();
        for path in paths {
            let key = KEYS
                .iter()
                .find(|key| key.matches(path.segments()))
                .unwrap();
            seen.insert(key.path);
            let changed = others(key.kind).into_iter().find_map(|other| {
                let mut value = value.clone();
                set(&mut value, &path, other);
                let changed: Config = serde_json::from_value(value).ok()?;
                (changed != config).then_some(changed)
            });
            let changed = changed.unwrap_or_else(|| panic!("{path}: no other value"));
            let section = path.segments()[0].as_str();
            let mut reasons = IRRELEVANT.iter().chain(&AS_UNSET);
            let reason = reasons.find(|(name, _)| *name == section);
            let is_same = plainly(&changed, &how) == first;
            assert_eq!(is_same, reason.is_some(), "{path}: {reason:?}");
        }
        for key in KEYS.iter().filter(|key| key.reader == Reader::Kd) {
            assert!(seen.contains(key.path), "{} was not changed", key.path);
        }
    }

    #[test]
    fn a_price_changes_only_deliberations() {
        let provider = |input| {
            let price = Price {
                input,
                ..Price::default()
            };
            ProviderConfig {
                prices: [("m".into(), price)].into(),
                ..ProviderConfig::default()
            }
        };
        let config = |input| Config {
            providers: [("p".into(), provider(input))].into(),
            ..Config::default()
        };
        for (how, is_same) in [
            (How::Ask(Ask::default()), true),
            (How::Think(Think::default()), true),
            (How::Deliberate(Deliberate::default()), false),
        ] {
            let [one, other] = [1.0, 2.0].map(|input| plainly(&config(input), &how));
            assert_eq!(one == other, is_same, "{how:?}");
        }
    }

    #[test]
    fn every_option_changes_the_recipe() {
        let config = Config::default();
        let ask = |change: fn(&mut Ask)| {
            let mut ask = Ask::default();
            change(&mut ask);
            How::Ask(ask)
        };
        let think = |change: fn(&mut Think)| {
            let mut think = Think::default();
            change(&mut think);
            How::Think(think)
        };
        let hows = [
            ask(|_| {}),
            ask(|ask| ask.seats.members = vec!["ada".into()]),
            ask(|ask| ask.seats.model = Some("m".into())),
            ask(|ask| ask.seats.temperature = Some(0.5)),
            ask(|ask| ask.seats.max_tokens = Some(9)),
            ask(|ask| ask.seats.seed = Some(9)),
            ask(|ask| ask.seats.timeout = Some(9)),
            ask(|ask| ask.seats.writable = Some(true)),
            ask(|ask| ask.to = vec!["ada".into()]),
            ask(|ask| ask.address = Some("ada".into())),
            ask(|ask| ask.no_conclusion = true),
            ask(|ask| ask.terms.private = true),
            ask(|ask| ask.terms.allow_secrets = true),
            think(|_| {}),
            think(|think| think.fast = Some("ada".into())),
            think(|think| think.rigorous = Some("ada".into())),
            think(|think| think.arbiter = Some("ada".into())),
            think(|think| think.all.model = Some("m".into())),
            think(|think| think.messages_max = Some(9)),
            think(|think| think.messages_min = Some(9)),
            think(|think| think.tokens_max = Some(9)),
            think(|think| think.secs_max = Some(9)),
            think(|think| think.terms.private = true),
            think(|think| think.terms.allow_secrets = true),
            How::Deliberate(Deliberate::default()),
            How::Deliberate(Deliberate {
                members: vec!["ada".into()],
                ..Deliberate::default()
            }),
        ];
        let all: BTreeSet<String> = hows.iter().map(|how| plainly(&config, how)).collect();
        assert_eq!(all.len(), hows.len(), "no two are the same");
        let limited = ask(|ask| ask.terms.limits.calls = Some(1));
        assert_eq!(plainly(&config, &limited), plainly(&config, &hows[0]));
    }

    /// The same command at another service is another batch: answers of two services are never mixed in one.
    #[test]
    fn a_service_that_the_environment_names_changes_the_recipe() {
        let agent = |backend: &str, env: &[&str]| AgentConfig {
            backend: backend.into(),
            env: env.iter().map(|name| (*name).to_owned()).collect(),
            ..AgentConfig::default()
        };
        let config = |agents: &[AgentConfig], set: &[(&str, &str)]| {
            let mut config = Config::default();
            let names = ["a", "b"].map(str::to_owned).into_iter();
            config.agents = names.zip(agents.iter().cloned()).collect();
            let set = set.iter();
            config.services = set.map(|(n, v)| ((*n).into(), (*v).into())).collect();
            config
        };
        let how = How::Deliberate(Deliberate::default());
        let key =
            |agents: &[AgentConfig], set: &[(&str, &str)]| plainly(&config(agents, set), &how);
        let (near, far) = (
            [("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")],
            [("ANTHROPIC_BASE_URL", "http://127.0.0.1:2")],
        );
        // The built-in council, found programs, and an agent.
        for agents in [&[][..], &[agent("claude_code", &[])]] {
            let keys = BTreeSet::from([
                key(agents, &[]),
                key(agents, &near),
                key(agents, &far),
                key(agents, &[("CLAUDE_CODE_USE_BEDROCK", "1")]),
            ]);
            assert_eq!(keys.len(), 4);
        }
        // Variables that no member sees change nothing: nothing is paid twice.
        let codex = [agent("codex", &[])];
        assert_eq!(key(&codex, &near), key(&codex, &[]));
        let passed = [agent("opencode", &["ANTHROPIC_BASE_URL"])];
        assert_ne!(key(&passed, &near), key(&passed, &far));
        // Programs asked by their own names see theirs.
        let named = How::Deliberate(Deliberate {
            members: vec!["claude".into()],
            ..Deliberate::default()
        });
        let of = |set: &[(&str, &str)]| plainly(&config(&codex, set), &named);
        assert_ne!(of(&near), of(&far));
    }

    fn mark() -> Mark {
        Mark {
            v: kd_eval::marks::VERSION,
            project: "p".into(),
            thread: "t".into(),
            message: 1,
            at: Timestamp::UNIX_EPOCH,
            by: By::User,
            kind: "number".into(),
            protocol: "vote".into(),
            members: Vec::new(),
            unasked: Vec::new(),
            stopping: None,
            winner: Some("7".into()),
            credit: 1.0,
            answer: None,
            calls: 1,
            usd: 0.0,
        }
    }

    /// A project whose deliberations read everything that they can.
    fn project() -> (tempfile::TempDir, Env) {
        let dir = tempfile::tempdir().unwrap();
        let kd = dir.path().join("work/.kd");
        fs::create_dir_all(kd.join("roles")).unwrap();
        fs::create_dir_all(dir.path().join("bin")).unwrap();
        let settings = json!({"deliberation": {
            "protocol": "auto", "maxUsd": 1.0, "memory": {"longTerm": true}}});
        let own = dir.path().join("home/.config/kd");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("config.json"), settings.to_string()).unwrap();
        let vars = [
            ("HOME", dir.path().join("home").into_os_string()),
            ("PATH", dir.path().join("bin").into_os_string()),
        ];
        let env = Env::of(vars).in_folder(dir.path().join("work"));
        (dir, env)
    }

    #[test]
    fn what_changes_by_itself_is_another_question_but_the_same_batch() {
        let (dir, env) = project();
        let how = How::Deliberate(Deliberate::default());
        let recipe = || Recipe::of(&Kingdom::open_with(env.clone()).unwrap(), &how).unwrap();
        let keys = || (recipe().batch(&[], None), recipe().question("One?"));
        let kd = dir.path().join("work/.kd");
        let mut before = keys();
        assert_eq!(keys(), before, "nothing has changed");
        let mut changed = |what: &str, another_batch: bool| {
            let now = keys();
            assert_ne!(now.1, before.1, "{what}: the question");
            assert_eq!(now.0 != before.0, another_batch, "{what}: the batch");
            before = now;
        };
        fs::write(kd.join("roles/skeptic.md"), "Doubt everything.").unwrap();
        changed("a role", true);
        let remembered = json!({"version": 1, "preferences": {"tone": "short"}});
        fs::write(kd.join("memory.json"), remembered.to_string()).unwrap();
        changed("memory", false);
        let mut marks = kd_sql::marks::Marks::open(&env.user_dirs()).unwrap();
        marks.add(&mark()).unwrap();
        changed("a mark", false);
        let mut table = kd_core::prices::Prices::default().table().clone();
        table.source = "elsewhere".into();
        kd_store::prices::save(&env.user_dirs(), &table).unwrap();
        changed("prices", false);
        std::os::unix::fs::symlink("/bin/true", dir.path().join("bin/codex")).unwrap();
        changed("an installed program", false);
    }

    #[test]
    fn parts_cannot_be_mistaken_for_others() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        let recipe = Recipe {
            chosen: "c".into(),
            whole: "w".into(),
        };
        assert_ne!(recipe.question("One?"), recipe.question("One? "));
    }
}
