//! Services that models are reached at: a name and its settings in, a [`Service`] out that its members share.

use crate::env::Env;
use crate::guard::Limit;
use crate::keys::{Key, KeySource};
use crate::transport::http::AskedForm;
use kd_core::config::{Price, ProviderConfig, Wire};
use kd_core::ledger::Billing;
use kd_core::prices::{Prices, Tariff};
use kd_core::{Delta, Failure, FailureKind, Usage, spending};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// How long it may take until a connection stands.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A service that needs no configuration but a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The name that members give as their backend.
    pub name: &'static str,
    /// What it speaks.
    pub wire: Wire,
    /// Where it is.
    pub base_url: &'static str,
    /// The variables that hold its key; none when it needs no key.
    pub key_env: &'static [&'static str],
    /// Where users get a key; empty when it needs none.
    pub key_page: &'static str,
    /// The model that a user who names none is offered: cheap, and good enough to argue. `None` where nobody can know
    /// which are there.
    pub suggested: Option<&'static str>,
}

/// The services that are known by name. `providers.<name>` changes a row or adds one.
pub const KNOWN: &[Known] = &[
    Known {
        name: "openai",
        wire: Wire::OpenAi,
        base_url: "https://api.openai.com/v1",
        key_env: &["OPENAI_API_KEY"],
        key_page: "https://platform.openai.com/api-keys",
        suggested: Some("gpt-5-mini"),
    },
    Known {
        name: "anthropic",
        wire: Wire::Anthropic,
        base_url: "https://api.anthropic.com/v1",
        key_env: &["ANTHROPIC_API_KEY"],
        key_page: "https://console.anthropic.com/settings/keys",
        suggested: Some("claude-sonnet-4-5"),
    },
    Known {
        name: "gemini_api",
        wire: Wire::Gemini,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_env: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        key_page: "https://aistudio.google.com/apikey",
        suggested: Some("gemini-2.5-flash"),
    },
    Known {
        name: "openrouter",
        wire: Wire::OpenAi,
        base_url: "https://openrouter.ai/api/v1",
        key_env: &["OPENROUTER_API_KEY"],
        key_page: "https://openrouter.ai/settings/keys",
        suggested: Some("openrouter/auto"),
    },
    Known {
        name: "ollama",
        wire: Wire::OpenAi,
        base_url: "http://127.0.0.1:11434/v1",
        key_env: &[],
        key_page: "",
        suggested: None,
    },
];

/// The row of a name.
pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|k| k.name == name)
}

/// The HTTP clients of the process, built when the first call is made: one that knows the system's proxies, one for
/// this machine that never asks a proxy, and one for this machine without encryption, which spares it
/// reading all certificates of the system.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    far: OnceLock<Result<reqwest::Client, String>>,
    near: OnceLock<Result<reqwest::Client, String>>,
    plain: OnceLock<Result<reqwest::Client, String>>,
}

impl Clients {
    /// The client for an address.
    pub(crate) fn get(&self, base: &str, loopback: bool) -> Result<&reqwest::Client, Failure> {
        let plain = loopback && base.starts_with("http://");
        let cell = match (loopback, plain) {
            (false, _) => &self.far,
            (true, false) => &self.near,
            (true, true) => &self.plain,
        };
        let client = cell.get_or_init(|| {
            let builder = reqwest::Client::builder()
                .user_agent(concat!("kd/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_LIMIT)
                .tcp_nodelay(true)
                // A redirect would carry the key to another place.
                .redirect(reqwest::redirect::Policy::none());
            let builder = if loopback {
                builder.no_proxy()
            } else {
                builder
            };
            let builder = if plain {
                builder.tls_certs_only([])
            } else {
                builder
            };
            builder.build().map_err(|error| error.to_string())
        });
        client.as_ref().map_err(|why| {
            Failure::new(
                FailureKind::Crashed,
                format!("no HTTPS client can be made: {why}"),
            )
            .advise(
                "see whether the system's CA certificates are installed (package ca-certificates)",
            )
        })
    }
}

/// One service, shared by all members that sit there.
pub(crate) struct Service {
    /// Its name in the configuration.
    pub(crate) name: String,
    /// What it speaks.
    pub(crate) wire: Wire,
    /// Where it is, without a slash at the end, with the version's path.
    pub(crate) base: String,
    /// The model where a member names none.
    pub(crate) model: Option<String>,
    /// The queue before it, if there is one.
    pub(crate) limit: Option<Arc<Limit>>,
    /// The most attempts for one turn.
    pub(crate) attempts: Option<u32>,
    sources: Vec<KeySource>,
    /// Whether a call without a key is hopeless.
    keyed: bool,
    /// As configured; what else it charges is in the table.
    config: ProviderConfig,
    table: Prices,
    /// Whether it is told what of a prompt to keep.
    pub(crate) keeps_prompts: bool,
    /// Whether its models run on this machine by themselves.
    free: bool,
    loopback: bool,
    /// Models that refused to be held to a schema, and how they are asked since.
    forms: Mutex<BTreeMap<String, AskedForm>>,
    key: OnceCell<Option<Key>>,
    clients: Arc<Clients>,
    env: Env,
}

impl Service {
    /// How the form of an answer is asked for of a model.
    pub(crate) fn form(&self, model: &str) -> AskedForm {
        let forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.get(model).copied().unwrap_or_default()
    }

    /// Remembers that a model takes nothing stricter than this form, for as long as the process runs. Returns how to ask
    /// it: another member may have learned of a stricter refusal meanwhile.
    pub(crate) fn remember_form(&self, model: &str, form: AskedForm) -> AskedForm {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        let known = forms.entry(model.to_owned()).or_default();
        *known = form.max(*known);
        *known
    }

    /// The service of this name: the known row under the configured settings; none when neither is there.
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
        // A row of the configuration that only sets a limit or a key keeps the known wire.
        let wire = match row {
            Some(row) if config.base_url.is_none() => row.wire,
            _ => config.wire,
        };
        let home = || match (row, wire) {
            (Some(row), _) => row.base_url,
            (None, Wire::OpenAi) => "https://api.openai.com/v1",
            (None, Wire::Anthropic) => "https://api.anthropic.com/v1",
            (None, Wire::Gemini) => "https://generativelanguage.googleapis.com/v1beta",
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
        // The usual variable goes to the usual address only: another address must name its key.
        if sources.is_empty()
            && config.base_url.is_none()
            && let Some(row) = row.filter(|r| !r.key_env.is_empty())
        {
            sources.push(KeySource::Env(
                row.key_env.iter().map(|n| (*n).to_owned()).collect(),
            ));
        }
        let loopback = is_loopback(&base);
        Some(Self {
            name: name.to_owned(),
            wire,
            loopback,
            forms: Mutex::default(),
            model: config.model.clone(),
            limit: config
                .requests_per_minute
                .and_then(NonZeroU32::new)
                .map(|n| Arc::new(Limit::per_minute(n))),
            attempts: config.attempts,
            keyed: !sources.is_empty()
                || (config.base_url.is_none() && row.is_none_or(|r| !r.key_env.is_empty())),
            sources,
            config: config.clone(),
            table: table.clone(),
            keeps_prompts: config.prompt_cache.unwrap_or_else(|| {
                let own = ["https://api.anthropic.com/", "https://api.openai.com/"];
                own.iter().any(|own| base.starts_with(own))
            }),
            free: spending::is_free(name),
            base,
            key: OnceCell::new(),
            clients: Arc::clone(clients),
            env: env.clone(),
        })
    }

    /// Whether it runs on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// The host of its address.
    pub(crate) fn host(&self) -> String {
        let url = reqwest::Url::parse(&self.base).ok();
        let host = url.and_then(|url| url.host_str().map(str::to_owned));
        host.unwrap_or_else(|| self.base.clone())
    }

    /// The client to call it with.
    pub(crate) fn client(&self) -> Result<&reqwest::Client, Failure> {
        self.clients.get(&self.base, self.loopback)
    }

    /// Its key, looked up once; a failed look-up is made again by the next call.
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

    /// The failure of a service whose key can only be in the environment and is not. Reads no file, runs no command.
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

    /// What to do about a wrong key, or a missing one.
    pub(crate) fn key_advice(&self) -> String {
        let places: Vec<String> = self.sources.iter().map(ToString::to_string).collect();
        match places.is_empty() {
            true => format!(
                "set `providers.{0}.key_env`, `key_file` or `key_command`",
                self.name
            ),
            false => format!(
                "the key is read from {}: check it there",
                places.join(", then ")
            ),
        }
    }

    /// How it is paid.
    pub(crate) fn billing(&self) -> Billing {
        // What has a price is charged for, wherever it runs.
        let priced = !self.config.prices.is_empty();
        match (self.free || self.loopback, self.keyed) {
            (_, true) => Billing::Key,
            (true, false) if !priced => Billing::Free,
            (_, false) => Billing::Unknown,
        }
    }

    /// What it charges for a model, where that is known.
    fn tariff(&self, model: &str) -> Option<Tariff> {
        self.table.tariff(&self.name, Some(&self.config), model)
    }

    /// The delta with the price of what was used, where it is known and the service names none.
    pub(crate) fn priced(&self, model: &str, mut delta: Delta) -> Delta {
        if let Delta::Finished {
            usage: Some(usage), ..
        } = &mut delta
        {
            *usage = self.with_price(model, *usage);
        }
        delta
    }

    /// The usage with its price, where it is known and the service names none.
    pub(crate) fn with_price(&self, model: &str, mut usage: Usage) -> Usage {
        if usage.cost_usd.is_none()
            && let Some(tariff) = self.tariff(model)
        {
            usage.cost_usd = Some(cost(&usage, tariff.at(usage.input_tokens)));
        }
        usage
    }

    /// The most that a token of a model can cost. `None` where that is unknown and the service may charge.
    pub(crate) fn price(&self, model: &str) -> Option<spending::Price> {
        let Some(tariff) = self.tariff(model) else {
            return self.free.then(spending::Price::default);
        };
        // Services of this wire charge for what they keep; of others the price says it.
        let charged = self.wire == Wire::Anthropic || tariff.price.cache_write.is_some();
        Some(tariff.worst(self.keeps_prompts && charged))
    }
}

fn cost(usage: &Usage, price: &Price) -> f64 {
    // A service may state parts that are larger than the whole.
    let cached = usage.cached_tokens.min(usage.input_tokens);
    let written = usage.written_tokens.min(usage.input_tokens - cached);
    let fresh = usage.input_tokens - cached - written;
    let input = fresh as f64 * price.input
        + cached as f64 * price.cached.unwrap_or(price.input)
        + written as f64 * price.written();
    (input + usage.output_tokens as f64 * price.output) / 1e6
}

/// The address without a slash at its end; one without a path gets the path that the wire's services use.
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

pub(crate) fn is_loopback(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, config: Option<&ProviderConfig>, env: &Env) -> Option<Service> {
        Service::new(name, config, env, &Arc::default(), &Prices::default())
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
