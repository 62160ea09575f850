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
    /// Whether requests mark the part of a prompt to cache; `None` leaves it to the address.
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
