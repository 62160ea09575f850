//! `providers.*`: HTTP services and their prices.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The API of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// OpenAI chat completions: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp and many more.
    #[default]
    OpenAi,
    /// Anthropic messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
}

/// The addresses of the services that are known by name.
pub mod own {
    /// Of OpenAI.
    pub const OPENAI: &str = "https://api.openai.com/v1";
    /// Of Anthropic.
    pub const ANTHROPIC: &str = "https://api.anthropic.com/v1";
    /// Of the Gemini API.
    pub const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta";
    /// Of OpenRouter.
    pub const OPENROUTER: &str = "https://openrouter.ai/api/v1";

    /// Returns whether an address, with or without the version in its path, is the own one of a service of this name.
    pub fn is_of(service: &str, address: &str) -> bool {
        let own = match service {
            "openai" => OPENAI,
            "anthropic" => ANTHROPIC,
            "gemini_api" => GEMINI,
            "openrouter" => OPENROUTER,
            _ => return false,
        };
        let address = comparable(address.trim());
        // A path before the version is not left out.
        let bare = own.rsplit_once('/').map(|(bare, _)| bare);
        let bare = bare.filter(|bare| bare.matches('/').count() == 2);
        address == own || bare.is_some_and(|bare| address == bare)
    }

    /// Returns an address so that equal ones compare equal: scheme and host in lower case, without slashes at the end. Its
    /// user and its path are case-sensitive.
    pub(crate) fn comparable(address: &str) -> String {
        let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, host) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let (scheme, host) = (scheme.to_ascii_lowercase(), host.to_ascii_lowercase());
        format!("{scheme}://{user}{host}{}", path.trim_end_matches('/'))
    }
}

impl ProviderConfig {
    /// Returns the address that is set, if it is another than the service's own: prices, batches and marks may differ there.
    pub fn elsewhere(&self, service: &str) -> Option<&str> {
        let address = self.base_url.as_deref()?;
        (!own::is_of(service, address)).then_some(address)
    }
}

/// `providers.<name>.*`: one HTTP service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderConfig {
    /// Its API.
    pub wire: Wire,
    /// Its address; `None` means the service's default address.
    pub base_url: Option<String>,
    /// The environment variable with the key.
    pub key_env: Option<String>,
    /// A file outside the repository with the key.
    pub key_file: Option<String>,
    /// A command that prints the key.
    pub key_command: Vec<String>,
    /// Maximum requests per minute; `None` means no limit on our side.
    pub requests_per_minute: Option<u32>,
    /// Maximum attempts per turn, including the first.
    pub attempts: Option<u32>,
    /// The default model of its members.
    pub model: Option<String>,
    /// Whether requests mark the part of a prompt to cache; `None` decides by the address.
    pub prompt_cache: Option<bool>,
    /// Whether the service at `base_url` has the batch endpoints of its wire format.
    pub batches: bool,
    /// The price of a request in a provider batch, as a part of the normal price; `None` means the vendor's discount at
    /// the vendor's address, and the normal price elsewhere.
    pub batch_price: Option<f64>,
    /// Seconds before the service is first asked whether a batch is over; further pauses grow.
    pub batch_pause: Option<f64>,
    /// Prices in US dollars per million tokens, by model name.
    pub prices: BTreeMap<String, Price>,
}

/// `providers.<name>.prices.<model>.*`, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    /// Price of prompt tokens.
    pub input: f64,
    /// Price of answer tokens.
    pub output: f64,
    /// Price of cached prompt tokens; `None` means the price in `input`.
    pub cached: Option<f64>,
    /// Price of prompt tokens written to the cache; `None` means 25 % more than `input`.
    pub cache_write: Option<f64>,
}

impl Price {
    /// Returns the maximum price of a token.
    pub fn worst(&self) -> crate::spending::Price {
        let input = self.cached.map_or(self.input, |c| c.max(self.input));
        crate::spending::Price::per_million(input, self.output)
    }

    /// Returns the same for a service that charges for cache writes.
    pub fn worst_written(&self) -> crate::spending::Price {
        let worst = self.worst();
        let written = crate::spending::Price::per_million(self.written(), self.output);
        crate::spending::Price {
            input: worst.input.max(written.input),
            ..worst
        }
    }

    /// Returns the price of prompt tokens written to the cache.
    pub fn written(&self) -> f64 {
        self.cache_write.unwrap_or(self.input * 1.25)
    }
}
