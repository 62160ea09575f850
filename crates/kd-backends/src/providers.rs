//! Model services. Input: a name and its settings. Output: a [`Service`] that its members share.

use crate::attachments::RefusedFiles;
use crate::env::Env;
use crate::guard::{GatedService, Limit};
use crate::keys::{Key, KeySource};
use crate::transport::client::{self, Certificates, NoClient, is_loopback};
use crate::transport::refused::RefusedTools;
use kd_core::config::{Config, Price, ProviderConfig, Wire, own};
use kd_core::ledger::{Billing, Payer};
use kd_core::prices::{Prices, Tariff};
use kd_core::{Delta, Failure, FailureKind, Request, Usage, spending};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// A service that needs no configuration except a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The name that members use as their backend.
    pub name: &'static str,
    /// Its wire format.
    pub wire: Wire,
    /// Its address.
    pub base_url: &'static str,
    /// The variables that may contain its key; empty if it needs none.
    pub key_env: &'static [&'static str],
    /// The variables from which the vendor's own clients read an address, to which they send the key of the environment.
    pub base_url_env: &'static [&'static str],
    /// The page that issues keys; empty if the service needs none.
    pub key_page: &'static str,
    /// The default model: cheap, and good enough to argue. `None` if the available models are unknown.
    pub suggested: Option<&'static str>,
    /// The price of a request in a provider batch, as a part of the normal price; `None` if it has no batch endpoints.
    pub batch_price: Option<f64>,
}

/// The services known by name. `providers.<name>` changes a row or adds one.
pub const KNOWN: &[Known] = &[
    Known {
        name: "openai",
        wire: Wire::OpenAi,
        base_url: own::OPENAI,
        key_env: &["OPENAI_API_KEY"],
        base_url_env: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        key_page: "https://platform.openai.com/api-keys",
        suggested: Some("gpt-5-mini"),
        // https://platform.openai.com/docs/guides/batch: 50 % less.
        batch_price: Some(0.5),
    },
    Known {
        name: "anthropic",
        wire: Wire::Anthropic,
        base_url: own::ANTHROPIC,
        key_env: &["ANTHROPIC_API_KEY"],
        base_url_env: &["ANTHROPIC_BASE_URL"],
        key_page: "https://console.anthropic.com/settings/keys",
        suggested: Some("claude-sonnet-4-5"),
        // https://platform.claude.com/docs/en/build-with-claude/batch-processing: 50 % of the standard prices.
        batch_price: Some(0.5),
    },
    Known {
        name: "gemini_api",
        wire: Wire::Gemini,
        base_url: own::GEMINI,
        key_env: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url_env: &["GOOGLE_GEMINI_BASE_URL"],
        key_page: "https://aistudio.google.com/apikey",
        suggested: Some("gemini-2.5-flash"),
        // https://ai.google.dev/gemini-api/docs/batch-api: 50 % of the standard cost.
        batch_price: Some(0.5),
    },
    Known {
        name: "openrouter",
        wire: Wire::OpenAi,
        base_url: own::OPENROUTER,
        key_env: &["OPENROUTER_API_KEY"],
        base_url_env: &["OPENROUTER_BASE_URL"],
        key_page: "https://openrouter.ai/settings/keys",
        suggested: Some("openrouter/auto"),
        batch_price: None,
    },
    Known {
        name: "ollama",
        wire: Wire::OpenAi,
        base_url: "http://127.0.0.1:11434/v1",
        key_env: &[],
        base_url_env: &[],
        key_page: "",
        suggested: None,
        batch_price: None,
    },
];

/// Returns the price of a request in a provider batch, as a part of the normal price; `None` if the service of this name
/// has no batch endpoints. Settings say whether a service at another address has them.
pub fn batch_price(name: &str, config: Option<&ProviderConfig>) -> Option<f64> {
    let own = known(name).and_then(|row| row.batch_price);
    let moved = config.is_some_and(|config| config.elsewhere(name).is_some());
    let stated = config.and_then(|config| config.batch_price);
    match config.is_some_and(|config| config.batches) {
        true if moved || own.is_none() => Some(stated.unwrap_or(1.0)),
        _ if moved => None,
        _ => own.map(|own| stated.unwrap_or(own)),
    }
}

/// Returns the known service of a name.
pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|k| k.name == name)
}

impl Known {
    /// Returns the address that the environment names for the key in it, and the variable; `None` if it names no
    /// address, or the service's own address. It may be unusable.
    pub fn named_address(&self, env: &Env) -> Option<(&'static str, String)> {
        let mut variables = self.base_url_env.iter();
        let (variable, named) = variables.find_map(|name| Some((*name, env.get(name)?)))?;
        let address = self.whole_address(&named);
        (!own::is_of(self.name, &address)).then_some((variable, address))
    }

    /// Returns the same address without the variable.
    pub fn address(&self, env: &Env) -> Option<String> {
        self.named_address(env).map(|(_, address)| address)
    }

    /// Returns an address as the vendor's clients complete it.
    fn whole_address(&self, named: &str) -> String {
        let address = with_version(named, self.wire);
        // The clients of OpenAI expect the version in the address, the others add it.
        let version = match self.wire {
            Wire::OpenAi => return address,
            Wire::Anthropic => "/v1",
            Wire::Gemini => "/v1beta",
        };
        match address.ends_with(version) {
            true => address,
            false => format!("{address}{version}"),
        }
    }

    /// Returns the variable of the environment that contains its key; `None` if none does.
    pub fn key_variable(&self, env: &Env) -> Option<&'static str> {
        let set = |name: &&&str| env.get(name).is_some();
        self.key_env.iter().find(set).copied()
    }
}

/// Returns whether an address can be written to settings: http or https, with a host, and without a password.
pub fn is_usable(address: &str) -> bool {
    reqwest::Url::parse(address).is_ok_and(|url| {
        let is_web = matches!(url.scheme(), "http" | "https");
        is_web && url.has_host() && url.username().is_empty() && url.password().is_none()
    })
}

/// Adds the addresses that the environment names to services whose settings name none: a key of the environment is for
/// that address only. A key from a file or a command has nothing to do with the environment.
pub fn add_addresses(config: &mut Config, env: &Env) {
    for row in KNOWN {
        let Some(address) = row.address(env) else {
            continue;
        };
        let set = config.providers.get(row.name);
        let is_settled = set.is_some_and(|set| {
            set.base_url.is_some() || set.key_file.is_some() || !set.key_command.is_empty()
        });
        let key = row.key_variable(env);
        if is_settled || set.is_none() && key.is_none() {
            continue;
        }
        let provider = config.providers.entry(row.name.to_owned()).or_default();
        provider.base_url = Some(address);
        provider.wire = row.wire;
        if provider.key_env.is_none() {
            provider.key_env = key.map(str::to_owned);
        }
    }
}

/// The HTTP clients of the process, built on first use: one that uses the system's proxies, one for this machine that
/// never uses a proxy, and one for this machine without TLS, which avoids reading all certificates of the system.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    far: OnceLock<Result<reqwest::Client, NoClient>>,
    near: OnceLock<Result<reqwest::Client, NoClient>>,
    plain: OnceLock<Result<reqwest::Client, NoClient>>,
}

impl Clients {
    /// Returns the client for an address.
    pub(crate) fn get(&self, base: &str, loopback: bool) -> Result<&reqwest::Client, Failure> {
        let plain = loopback && base.starts_with("http://");
        let cell = match (loopback, plain) {
            (false, _) => &self.far,
            (true, false) => &self.near,
            (true, true) => &self.plain,
        };
        let client = cell.get_or_init(|| {
            let certificates = if plain {
                Certificates::Nothing
            } else {
                Certificates::System
            };
            client::create(base, certificates, |builder| {
                builder
                    .tcp_nodelay(true)
                    // A redirect would send the key elsewhere.
                    .redirect(reqwest::redirect::Policy::none())
            })
        });
        client.as_ref().map_err(|why| {
            Failure::new(FailureKind::Crashed, why.to_string()).advise(
                "check whether the system's CA certificates are installed (package ca-certificates)",
            )
        })
    }
}

/// A service, shared by all its members.
pub(crate) struct Service {
    /// Its name in the configuration.
    pub(crate) name: String,
    /// Its wire format.
    pub(crate) wire: Wire,
    /// Its address, with the version's path and without a trailing slash.
    pub(crate) base: String,
    /// The variable of the environment that names its address, if one does.
    address_env: Option<&'static str>,
    /// The model for members that name none.
    pub(crate) model: Option<String>,
    /// Its rate limit, if any.
    pub(crate) limit: Option<Arc<Limit>>,
    /// Maximum number of attempts per turn.
    pub(crate) attempts: Option<u32>,
    sources: Vec<KeySource>,
    /// Whether it requires a key.
    keyed: bool,
    /// Its configuration; prices not set there come from the table.
    config: ProviderConfig,
    table: Prices,
    /// Whether to mark which part of a prompt it should cache.
    pub(crate) keeps_prompts: bool,
    /// Whether its models run on this machine and cost nothing.
    free: bool,
    loopback: bool,
    /// Models that rejected a schema, and how they are asked since.
    forms: Mutex<BTreeMap<String, AskedForm>>,
    /// Files that its models refused.
    pub(crate) refused_files: RefusedFiles,
    /// Models that refused tools.
    pub(crate) refused_tools: RefusedTools,
    key: OnceCell<Option<Key>>,
    clients: Arc<Clients>,
    env: Env,
}

impl Service {
    /// Returns the form in which a structured answer is requested from a model.
    pub(crate) fn form(&self, model: &str) -> AskedForm {
        let forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.get(model).copied().unwrap_or_default()
    }

    /// Returns the form in which to ask again after a model refused one. It is remembered for later requests, unless
    /// the schema is the user's: another schema may well be accepted.
    pub(crate) fn less_strict(
        &self,
        model: &str,
        request: &Request,
        refused: AskedForm,
    ) -> AskedForm {
        let next = match refused {
            AskedForm::Schema => AskedForm::Object,
            _ => AskedForm::Words,
        };
        match request.schema_of_user {
            true => next,
            false => self.remember_form(model, next),
        }
    }

    /// Remembers, while the process runs, that a model accepts nothing stricter than this form. Returns the form to
    /// use: a concurrent request may have found that an even less strict one is needed.
    fn remember_form(&self, model: &str, form: AskedForm) -> AskedForm {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        let known = forms.entry(model.to_owned()).or_default();
        *known = form.max(*known);
        *known
    }

    /// Creates the service of this name: the known row, overridden by the settings; `None` if neither exists.
    pub(crate) fn new(
        name: &str,
        config: Option<&ProviderConfig>,
        env: &Env,
        clients: &Arc<Clients>,
        table: &Prices,
    ) -> Option<Self> {
        let row = known(name);
        if row.is_none() && config.is_none() {
            return None;
        }
        let default = ProviderConfig {
            wire: row.map(|r| r.wire).unwrap_or_default(),
            ..ProviderConfig::default()
        };
        let config = config.unwrap_or(&default);
        // A configuration that only sets a limit or a key keeps the known wire format.
        let wire = match row {
            Some(row) if config.elsewhere(name).is_none() => row.wire,
            _ => config.wire,
        };
        let home = || match (row, wire) {
            (Some(row), _) => row.base_url,
            (None, Wire::OpenAi) => own::OPENAI,
            (None, Wire::Anthropic) => own::ANTHROPIC,
            (None, Wire::Gemini) => own::GEMINI,
        };
        let base = with_version(config.base_url.as_deref().unwrap_or_else(home), wire);
        let mut sources = Vec::new();
        if let Some(name) = config.key_env.clone().filter(|n| !n.is_empty()) {
            sources.push(KeySource::Env(vec![name]));
        }
        if let Some(path) = config.key_file.as_deref().filter(|p| !p.is_empty()) {
            sources.push(KeySource::File(env.expand(path)));
        }
        if !config.key_command.is_empty() {
            sources.push(KeySource::Command(config.key_command.clone()));
        }
        // The standard variable is only sent to the standard address: another address must name its key.
        if sources.is_empty()
            && config.elsewhere(name).is_none()
            && let Some(row) = row.filter(|r| !r.key_env.is_empty())
        {
            sources.push(KeySource::Env(
                row.key_env.iter().map(|n| (*n).to_owned()).collect(),
            ));
        }
        let loopback = is_loopback(&base);
        let named = row.and_then(|row| row.named_address(env));
        let named = named.filter(|(_, address)| config.base_url.as_ref() == Some(address));
        Some(Self {
            address_env: named.map(|(variable, _)| variable),
            name: name.to_owned(),
            wire,
            loopback,
            forms: Mutex::default(),
            refused_files: RefusedFiles::default(),
            refused_tools: RefusedTools::default(),
            model: config.model.clone(),
            limit: config
                .requests_per_minute
                .and_then(NonZeroU32::new)
                .map(|n| Arc::new(Limit::per_minute(n))),
            attempts: config.attempts,
            keyed: !sources.is_empty()
                || (config.elsewhere(name).is_none() && row.is_none_or(|r| !r.key_env.is_empty())),
            sources,
            config: config.clone(),
            table: table.clone(),
            keeps_prompts: config.prompt_cache.unwrap_or_else(|| {
                let own = ["https://api.anthropic.com/", "https://api.openai.com/"];
                own.iter().any(|own| base.starts_with(own))
            }),
            free: kd_core::cost::is_free(name),
            base,
            key: OnceCell::new(),
            clients: Arc::clone(clients),
            env: env.clone(),
        })
    }

    /// Returns whether it runs on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// Returns the host of its address.
    pub(crate) fn host(&self) -> String {
        let url = reqwest::Url::parse(&self.base).ok();
        let host = url.and_then(|url| url.host_str().map(str::to_owned));
        host.unwrap_or_else(|| self.base.clone())
    }

    /// Returns what the gate of a fleet knows it by. Machines may reach the same service under several names.
    pub(crate) fn gated(&self) -> GatedService {
        let url = reqwest::Url::parse(&self.base).ok();
        let port = url.and_then(|url| url.port());
        GatedService {
            name: match port {
                Some(port) => format!("{}:{port}", self.host()),
                None => self.host(),
            },
            per_minute: self.config.requests_per_minute,
        }
    }

    /// Returns its address for people: without a user, a password and a query.
    pub(crate) fn shown(&self) -> String {
        let Ok(mut url) = reqwest::Url::parse(&self.base) else {
            return "no address".to_owned();
        };
        // An address without a host has neither.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.to_string().trim_end_matches('/').to_owned()
    }

    /// Returns the name of the setting or environment variable that sets its address.
    pub(crate) fn address_source(&self) -> String {
        match self.address_env {
            Some(variable) => variable.to_owned(),
            None => format!("`providers.{}.base_url`", self.name),
        }
    }

    /// Returns the HTTP client for it.
    ///
    /// # Errors
    /// If the environment names an address that cannot be used, such as one with a password, which would be kept in
    /// messages and logs; and if no client can be made.
    pub(crate) fn client(&self) -> Result<&reqwest::Client, Failure> {
        if let Some(variable) = self.address_env.filter(|_| !is_usable(&self.base)) {
            return Err(Failure::new(
                FailureKind::Invalid,
                format!("`{}` has no usable address: the one in {variable} has a user or a password in it, or is no http or https address", self.name),
            )
            .advise(format!("set {variable} to something like https://host/v1, or unset it")));
        }
        self.clients.get(&self.base, self.loopback)
    }

    /// Returns its key, looked up once; after a failure the next call tries again.
    pub(crate) async fn key(&self) -> Result<Option<Key>, Failure> {
        let look = || async {
            for source in &self.sources {
                if let Some(key) = source.key(&self.env).await? {
                    return Ok(Some(key));
                }
            }
            match self.keyed {
                true => Err(self.no_key()),
                false => Ok(None),
            }
        };
        self.key.get_or_try_init(look).await.cloned()
    }

    /// Returns its keys as far as they are known without a command.
    pub(crate) fn known_keys(&self) -> Vec<Key> {
        let sources = self.sources.iter();
        let mut keys: Vec<Key> = sources.flat_map(|s| s.present(&self.env)).collect();
        keys.extend(self.key.get().cloned().flatten());
        // The variables of a known service hold keys even where they are not used.
        let row = known(&self.name).map_or(&[][..], |row| row.key_env);
        let values = row.iter().filter_map(|name| self.env.get(name));
        keys.extend(values.filter_map(|value| Key::new(&value)));
        keys
    }

    /// Returns the failure if the key can only be in the environment and is not there. Reads no file, runs no command.
    pub(crate) fn missing_key(&self) -> Option<Failure> {
        let is_unset = |source: &KeySource| match source {
            KeySource::Env(names) => !names.iter().any(|name| self.env.get(name).is_some()),
            KeySource::File(_) | KeySource::Command(_) => false,
        };
        (self.keyed && self.sources.iter().all(is_unset)).then(|| self.no_key())
    }

    fn no_key(&self) -> Failure {
        let advice = match self.sources.as_slice() {
            [KeySource::Env(names)] => format!("export {}=…", names.join("=… or ")),
            _ => self.key_advice(),
        };
        Failure::new(
            FailureKind::Auth,
            format!("there is no key for `{}`", self.name),
        )
        .advise(advice)
    }

    /// Suggests what to do about a refused key: names where it came from, and the page for a new one.
    pub(crate) fn key_advice(&self) -> String {
        let row = known(&self.name);
        let from = self.sources.iter().find_map(|source| match source {
            KeySource::Env(names) => {
                let set = names.iter().find(|name| self.env.get(name).is_some());
                set.cloned()
            }
            KeySource::File(_) | KeySource::Command(_) => Some(source.to_string()),
        });
        let Some(from) = from else {
            let unsent = row.and_then(|row| row.key_variable(&self.env));
            return match unsent {
                // The usual key is not sent to another address unless the settings say so.
                Some(variable) => format!(
                    "no key was sent, because {1} is set; if {variable} is for that address: kd config set --layer user providers.{0}.key_env {variable}",
                    self.name,
                    self.address_source()
                ),
                None => format!(
                    "set `providers.{0}.key_env`, `key_file` or `key_command`",
                    self.name
                ),
            };
        };
        let at_home = row.filter(|row| self.base == row.base_url && !row.key_page.is_empty());
        match at_home {
            Some(row) => format!(
                "the key in {from} was refused: check it, or make a new one at {}",
                row.key_page
            ),
            None => {
                let at = match self.address_env {
                    Some(variable) => format!("{} ({variable})", self.shown()),
                    None => self.shown(),
                };
                format!("the key in {from} was refused at {at}: check both")
            }
        }
    }

    /// Returns the way in which a model is paid; `None` stands for the usual model. By the rule of [`Service::price`]: a
    /// service on this machine may pass requests on to one that charges, so only the price tells.
    pub(crate) fn billing(&self, model: Option<&str>) -> Billing {
        let model = model.or(self.model.as_deref());
        let is_priced = model.is_some_and(|model| self.tariff(model).is_some());
        match (self.keyed, self.free && !is_priced) {
            (true, _) => Billing::Key,
            (false, true) => Billing::Free,
            (false, false) => Billing::Unknown,
        }
    }

    /// Returns its prices for a model, if known.
    fn tariff(&self, model: &str) -> Option<Tariff> {
        self.table.tariff(&self.name, Some(&self.config), model)
    }

    /// Adds the price of the usage to a delta, if it is known and the service states none.
    pub(crate) fn priced(&self, model: &str, mut delta: Delta) -> Delta {
        if let Delta::Finished {
            usage: Some(usage), ..
        } = &mut delta
        {
            *usage = self.with_price(model, *usage);
        }
        delta
    }

    /// Adds the price to the usage, if it is known. A price that the service states counts; but 0 counts as none, and if the
    /// user set a price, the larger of both counts: a service must not switch off a limit.
    pub(crate) fn with_price(&self, model: &str, mut usage: Usage) -> Usage {
        let known = self.tariff(model);
        let own = known.map(|tariff| cost(&usage, tariff.at(usage.input_tokens)));
        let is_set = self.config.prices.contains_key(model);
        usage.cost_usd = match (usage.cost_usd, own) {
            (Some(stated), Some(own)) if stated == 0.0 || is_set => Some(stated.max(own)),
            (stated, own) => stated.or(own),
        };
        usage
    }

    /// Returns the price of a request in a provider batch, as a part of the normal price; `None` if it has no batch
    /// endpoints.
    pub(crate) fn batch_price(&self) -> Option<f64> {
        batch_price(&self.name, Some(&self.config))
    }

    /// Returns the pause before the service is first asked whether a batch is over.
    pub(crate) fn batch_pause(&self) -> Duration {
        let stated = self.config.batch_pause.map(Duration::try_from_secs_f64);
        stated
            .and_then(Result::ok)
            .unwrap_or(Duration::from_secs(1))
    }

    /// Returns who pays for a request to a model, as far as the service knows.
    pub(crate) fn payer(&self, model: &str) -> Payer {
        Payer {
            member: String::new(),
            service: self.name.clone(),
            model: Some(model.to_owned()),
            billing: self.billing(Some(model)),
        }
    }

    /// Returns the maximum price per token of a model. `None` if it is unknown and the service may charge.
    pub(crate) fn price(&self, model: &str) -> Option<spending::Price> {
        let Some(tariff) = self.tariff(model) else {
            return self.free.then(spending::Price::default);
        };
        // Anthropic's services charge for writing the cache; for others the price tells.
        let charged = self.wire == Wire::Anthropic || tariff.price.cache_write.is_some();
        Some(tariff.worst(self.keeps_prompts && charged))
    }
}

fn cost(usage: &Usage, price: &Price) -> f64 {
    // A service may report parts that exceed the total.
    let cached = usage.cached_tokens.min(usage.input_tokens);
    let written = usage.written_tokens.min(usage.input_tokens - cached);
    let fresh = usage.input_tokens - cached - written;
    let input = fresh as f64 * price.input
        + cached as f64 * price.cached.unwrap_or(price.input)
        + written as f64 * price.written();
    (input + usage.output_tokens as f64 * price.output) / 1e6
}

/// Removes the trailing slash of an address; adds the usual path of the wire format if it has no path.
fn with_version(url: &str, wire: Wire) -> String {
    let url = url.trim().trim_end_matches('/');
    let bare = url
        .split_once("://")
        .is_some_and(|(_, rest)| !rest.contains('/'));
    match (bare, wire) {
        (false, _) => url.to_owned(),
        (true, Wire::Gemini) => format!("{url}/v1beta"),
        (true, _) => format!("{url}/v1"),
    }
}

/// The form in which a structured answer is requested. If a service or model refuses one form, the next is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AskedForm {
    /// A JSON schema.
    #[default]
    Schema,
    /// Any JSON object; the schema is in the prompt.
    Object,
    /// The prompt alone asks for it.
    Words,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, config: Option<&ProviderConfig>, env: &Env) -> Option<Service> {
        Service::new(name, config, env, &Arc::default(), &Prices::default())
    }

    #[test]
    fn no_service_switches_off_a_price_that_is_set() {
        let config = serde_json::json!({"base_url": "http://127.0.0.1:9/v1", "prices": {"m": {"input": 10.0, "output": 100.0}}});
        let config: ProviderConfig = serde_json::from_value(config).unwrap();
        let service = service("zoo", Some(&config), &Env::default()).unwrap();
        let cost = |model: &str, stated| {
            let usage = Usage {
                input_tokens: 100_000,
                output_tokens: 1_000,
                cost_usd: stated,
                ..Usage::default()
            };
            service.with_price(model, usage).cost_usd
        };
        for stated in [None, Some(0.0), Some(0.000_01)] {
            let cost = cost("m", stated).unwrap();
            assert!((cost - 1.1).abs() < 1e-9, "{stated:?}: {cost}");
        }
        assert_eq!(cost("m", Some(2.0)), Some(2.0));
        // Nothing is known of another model.
        assert_eq!((cost("n", Some(0.0)), cost("n", None)), (Some(0.0), None));
    }

    #[test]
    fn a_model_is_free_by_one_rule_for_limits_and_for_what_was_spent() {
        let near = "http://127.0.0.1:9/v1";
        let prices = serde_json::json!({"m": {"input": 1.0, "output": 2.0}});
        for (name, config, model, billing, is_known) in [
            ("ollama", serde_json::json!({}), "m", Billing::Free, true),
            (
                "ollama",
                serde_json::json!({"prices": prices}),
                "m",
                Billing::Unknown,
                true,
            ),
            (
                "ollama",
                serde_json::json!({"prices": prices}),
                "n",
                Billing::Free,
                true,
            ),
            (
                "zoo",
                serde_json::json!({"base_url": near}),
                "m",
                Billing::Unknown,
                false,
            ),
            (
                "zoo",
                serde_json::json!({"base_url": near, "prices": prices}),
                "m",
                Billing::Unknown,
                true,
            ),
            (
                "zoo",
                serde_json::json!({"base_url": near, "prices": prices}),
                "n",
                Billing::Unknown,
                false,
            ),
            (
                "zoo",
                serde_json::json!({"base_url": near, "key_env": "K", "prices": prices}),
                "n",
                Billing::Key,
                false,
            ),
        ] {
            let config: ProviderConfig = serde_json::from_value(config).expect("settings");
            let service = service(name, Some(&config), &Env::default()).expect("a service");
            let found = (service.billing(Some(model)), service.price(model).is_some());
            assert_eq!(found, (billing, is_known), "{name} {model} {config:?}");
            assert_eq!(service.payer(model).billing, billing);
        }
    }

    #[test]
    fn a_batch_is_first_asked_for_after_the_stated_pause() {
        for (stated, pause) in [
            (None, Duration::from_secs(1)),
            (Some(0.25), Duration::from_millis(250)),
            (Some(90.0), Duration::from_secs(90)),
        ] {
            let config = ProviderConfig {
                batch_pause: stated,
                ..ProviderConfig::default()
            };
            let env = Env::default();
            let service = service("openai", Some(&config), &env).expect("a service");
            assert_eq!(service.batch_pause(), pause, "{stated:?}");
        }
    }

    #[test]
    fn addresses_get_the_path_of_their_wire() {
        for (given, wire, base) in [
            (
                "http://127.0.0.1:8080",
                Wire::OpenAi,
                "http://127.0.0.1:8080/v1",
            ),
            (
                "http://127.0.0.1:8080/",
                Wire::Anthropic,
                "http://127.0.0.1:8080/v1",
            ),
            ("http://h", Wire::Gemini, "http://h/v1beta"),
            ("http://h/api/v3/", Wire::OpenAi, "http://h/api/v3"),
        ] {
            assert_eq!(with_version(given, wire), base);
        }
        for (url, loopback) in [
            ("http://localhost:1/v1", true),
            ("http://[::1]:1/v1", true),
            ("http://127.9.9.9", true),
            ("http://h.example", false),
            ("rubbish", false),
        ] {
            assert_eq!(is_loopback(url), loopback, "{url}");
        }
    }

    #[tokio::test]
    async fn the_usual_key_goes_to_the_usual_address_only() {
        let env = Env::of([("OPENAI_API_KEY", "sk-usual")]);
        let usual = service("openai", None, &env).unwrap();
        assert_eq!(usual.key().await.unwrap().unwrap().expose(), "sk-usual");
        let elsewhere = ProviderConfig {
            base_url: Some("http://elsewhere.example/v1".into()),
            ..ProviderConfig::default()
        };
        assert!(
            service("openai", Some(&elsewhere), &env)
                .unwrap()
                .key()
                .await
                .unwrap()
                .is_none()
        );
        let named = ProviderConfig {
            key_env: Some("OPENAI_API_KEY".into()),
            ..elsewhere
        };
        assert!(
            service("openai", Some(&named), &env)
                .unwrap()
                .key()
                .await
                .unwrap()
                .is_some()
        );
    }

    #[tokio::test]
    async fn a_key_of_the_environment_goes_to_the_address_of_the_environment() {
        let base = |config: &Config, env: &Env, name: &str| {
            service(name, config.providers.get(name), env).unwrap().base
        };
        for row in KNOWN.iter().filter(|row| !row.key_env.is_empty()) {
            for variable in row.base_url_env {
                let key = (row.key_env[0], "sk-gateway");
                for written in ["http://127.0.0.1:9", "http://127.0.0.1:9/"] {
                    let env = Env::of([key, (variable, written)]);
                    let mut config = Config::default();
                    add_addresses(&mut config, &env);
                    let service = service(row.name, config.providers.get(row.name), &env).unwrap();
                    assert!(
                        service.base.starts_with("http://127.0.0.1:9/v1"),
                        "{variable}"
                    );
                    assert_eq!(service.wire, row.wire);
                    assert_eq!(service.key().await.unwrap().unwrap().expose(), "sk-gateway");
                }
                // What cannot be used is not replaced by the vendor's address, and not told.
                for unusable in ["gateway", "http://me:hunter2@127.0.0.1:9/v1"] {
                    let env = Env::of([key, (variable, unusable)]);
                    let mut config = Config::default();
                    add_addresses(&mut config, &env);
                    let config = config.providers.get(row.name);
                    let service = service(row.name, config, &env).unwrap();
                    assert!(!service.base.contains(".com"), "{variable}");
                    let failure = service.client().unwrap_err();
                    let told = format!("{failure:?}{}{}", service.shown(), service.key_advice());
                    assert!(told.contains(variable), "{told}");
                    assert!(!told.contains("hunter2"), "{told}");
                }
                // The vendor's own address changes nothing: prices and marks are those of the service.
                for written in [row.base_url.to_owned(), format!("{}/", row.base_url)] {
                    let env = Env::of([key, (variable, &written)]);
                    let mut config = Config::default();
                    add_addresses(&mut config, &env);
                    assert!(config.providers.is_empty(), "{written}");
                }
            }
        }
        let paths = [
            (
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_BASE_URL",
                "anthropic",
                "/a/v1",
            ),
            (
                "GEMINI_API_KEY",
                "GOOGLE_GEMINI_BASE_URL",
                "gemini_api",
                "/a/v1beta",
            ),
            ("OPENAI_API_KEY", "OPENAI_BASE_URL", "openai", "/a"),
        ];
        for (key, variable, name, path) in paths {
            let env = Env::of([(key, "sk-usual"), (variable, "https://g.example/a")]);
            let mut config = Config::default();
            add_addresses(&mut config, &env);
            assert_eq!(
                base(&config, &env, name),
                format!("https://g.example{path}")
            );
        }
    }

    #[test]
    fn settings_win_over_the_address_of_the_environment() {
        let env = Env::of([
            ("OPENAI_API_KEY", "k"),
            ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
        ]);
        let with = |provider: ProviderConfig| {
            let mut config = Config::default();
            config.providers.insert("openai".into(), provider);
            add_addresses(&mut config, &env);
            config.providers["openai"].clone()
        };
        let own = || ProviderConfig {
            base_url: Some("http://127.0.0.1:7/v1".into()),
            ..ProviderConfig::default()
        };
        assert_eq!(with(own()), own());
        let filed = || ProviderConfig {
            key_file: Some("~/key".into()),
            ..ProviderConfig::default()
        };
        assert_eq!(with(filed()), filed());
        let named = with(ProviderConfig {
            key_env: Some("OTHER".into()),
            ..ProviderConfig::default()
        });
        assert_eq!(named.key_env.as_deref(), Some("OTHER"));
        assert_eq!(named.base_url.as_deref(), Some("http://127.0.0.1:9/v1"));
        // Without a key the address says nothing.
        let mut config = Config::default();
        add_addresses(
            &mut config,
            &Env::of([("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")]),
        );
        assert!(config.providers.is_empty());
    }

    #[test]
    fn a_refused_key_is_named_by_its_place() {
        let env = Env::of([("OPENAI_API_KEY", "sk-old")]);
        let usual = service("openai", None, &env).unwrap().key_advice();
        let page = "the key in OPENAI_API_KEY was refused: check it, or make a new one at https://";
        assert!(usual.starts_with(page), "{usual}");
        let at =
            |config: ProviderConfig| service("openai", Some(&config), &env).unwrap().key_advice();
        let elsewhere = || ProviderConfig {
            base_url: Some("http://127.0.0.1:9/v1".into()),
            ..ProviderConfig::default()
        };
        let unsent = at(elsewhere());
        assert!(
            unsent.contains("no key was sent") && unsent.contains("OPENAI_API_KEY"),
            "{unsent}"
        );
        let filed = at(ProviderConfig {
            key_file: Some("/k/openai".into()),
            ..elsewhere()
        });
        assert!(
            filed.contains("the file /k/openai was refused at http://127.0.0.1:9/v1"),
            "{filed}"
        );
        assert!(![usual, unsent, filed].concat().contains("sk-old"));
    }

    #[tokio::test]
    async fn a_missing_key_says_where_it_is_looked_for() {
        let failure = service("gemini_api", None, &Env::of([("X", "y")]))
            .unwrap()
            .key()
            .await
            .unwrap_err();
        assert_eq!(failure.kind, FailureKind::Auth);
        assert!(
            failure
                .hint()
                .contains("export GEMINI_API_KEY=… or GOOGLE_API_KEY=…"),
            "{failure:?}"
        );
        assert!(
            service("ollama", None, &Env::of([("X", "y")]))
                .unwrap()
                .key()
                .await
                .unwrap()
                .is_none()
        );
        assert!(service("nobody", None, &Env::default()).is_none());
    }

    #[test]
    fn a_slow_member_does_not_take_back_what_a_fast_one_learned_of_a_model() {
        let service = service("openai", None, &Env::of([("X", "y")])).unwrap();
        assert_eq!(service.form("m"), AskedForm::Schema);
        let fast = [AskedForm::Object, AskedForm::Words];
        assert_eq!(fast.map(|form| service.remember_form("m", form)), fast);
        let slow = service.remember_form("m", AskedForm::Object);
        assert_eq!(slow, AskedForm::Words);
        assert_eq!(service.form("m"), AskedForm::Words);
        assert_eq!(service.form("another"), AskedForm::Schema);
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let usage = Usage {
            input_tokens: 1_000_000,
            cached_tokens: 400_000,
            output_tokens: 100_000,
            ..Usage::default()
        };
        let price = Price {
            input: 3.0,
            output: 15.0,
            cached: Some(0.3),
            cache_write: None,
        };
        assert!((cost(&usage, &price) - (1.8 + 0.12 + 1.5)).abs() < 1e-9);
        assert!(
            (cost(
                &usage,
                &Price {
                    cached: None,
                    cache_write: None,
                    ..price
                }
            ) - 4.5)
                .abs()
                < 1e-9
        );
    }
}
