//! Model prices of services: a dated table, taken from the public list of litellm.
//!
//! Input: the name of a service and of a model. Output: a [`Tariff`]. The configuration takes precedence; the table
//! counts only if the service is used at its default address.

use crate::config::{Price, ProviderConfig};
use crate::{formats, spending};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

/// The services of the table: our name and litellm's.
pub const SERVICES: &[(&str, &str)] = &[
    ("anthropic", "anthropic"),
    ("gemini_api", "gemini"),
    ("openai", "openai"),
];

/// Maximum number of models in a table, so that a foreign list cannot fill the memory.
const MODELS_MAX: usize = 10_000;
/// Maximum bytes of a model's name.
const NAME_MAX: usize = 120;
/// Maximum price in US dollars per million tokens. Higher prices are treated as errors.
const USD_MAX: f64 = 100_000.0;

static BUILT_IN: LazyLock<Arc<Table>> = LazyLock::new(|| {
    // A test parses the same text; without it no price is known, which is safe.
    Arc::new(Table::parse(include_str!("prices.tsv")).unwrap_or_default())
});

/// A price table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The day it was retrieved, `2026-11-23`.
    pub date: String,
    /// Its source.
    pub source: String,
    /// The prices, by service, then by model.
    rows: BTreeMap<String, BTreeMap<String, Tariff>>,
}

/// The active table. The default is the built-in one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(Option<Arc<Table>>);

impl Prices {
    /// Uses another table instead of the built-in one.
    pub fn of(table: Table) -> Self {
        Self(Some(Arc::new(table)))
    }

    /// Returns the table.
    pub fn table(&self) -> &Table {
        self.0.as_ref().unwrap_or(&BUILT_IN)
    }

    /// Returns the price of a model: as configured, otherwise as listed. `None` if neither is known.
    pub fn tariff(
        &self,
        service: &str,
        provider: Option<&ProviderConfig>,
        model: &str,
    ) -> Option<Tariff> {
        let configured = provider.and_then(|provider| provider.prices.get(model));
        if let Some(price) = configured {
            return Some(Tariff {
                price: *price,
                above: None,
                listed: false,
            });
        }
        // Another address may charge any price.
        match provider.is_some_and(|provider| provider.elsewhere(service).is_some()) {
            true => None,
            false => self.table().find(service, model).copied(),
        }
    }
}

/// The price of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tariff {
    /// US dollars per million tokens.
    pub price: Price,
    /// The price of a request whose prompt has more tokens than this.
    pub above: Option<(u64, Price)>,
    /// Whether it comes from the table rather than the configuration.
    pub listed: bool,
}

impl Tariff {
    /// Returns the price of a request, given the number of its prompt tokens.
    pub fn at(&self, prompt_tokens: u64) -> &Price {
        match &self.above {
            Some((tokens, price)) if prompt_tokens > *tokens => price,
            _ => &self.price,
        }
    }

    /// Returns the maximum price of a token. `written`: whether the service charges for cache writes.
    pub fn worst(&self, written: bool) -> spending::Price {
        let worst = |price: &Price| match written {
            true => price.worst_written(),
            false => price.worst(),
        };
        let low = worst(&self.price);
        let high = self.above.as_ref().map_or(low, |(_, price)| worst(price));
        spending::Price {
            input: low.input.max(high.input),
            output: low.output.max(high.output),
        }
    }
}

/// The reason why a table is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// It has a newer version.
    #[error(transparent)]
    Newer(#[from] formats::Newer),
    /// A line is malformed.
    #[error("line {line}: {why}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The problem.
        why: &'static str,
    },
    /// It is not litellm's list.
    #[error("this is not the list of litellm: {0}")]
    List(String),
}

impl Table {
    /// Returns all rows, by service and model.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str, &Tariff)> {
        self.rows.iter().flat_map(|(service, models)| {
            let named = move |(model, tariff)| (service.as_str(), String::as_str(model), tariff);
            models.iter().map(named)
        })
    }

    /// Returns the price of a model. A name that ends in a date means the model without it, if only that is listed.
    pub fn find(&self, service: &str, model: &str) -> Option<&Tariff> {
        let models = self.rows.get(service)?;
        models
            .get(model)
            .or_else(|| undated(model).and_then(|name| models.get(name)))
    }

    /// Returns the number of models.
    pub fn len(&self) -> usize {
        self.rows.values().map(BTreeMap::len).sum()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Parses a table written by [`Table::to_text`].
    ///
    /// # Errors
    /// If it has a newer version or a malformed line.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let mut table = Self::default();
        for (at, line) in text.lines().enumerate() {
            let wrong = |why| TableError::Line { line: at + 1, why };
            if let Some(comment) = line.strip_prefix('#') {
                let (word, rest) = comment.trim().split_once(' ').unwrap_or_default();
                match word {
                    "version" => formats::PRICES.check(rest.parse().ok())?,
                    "date" => rest.clone_into(&mut table.date),
                    "source" => rest.clone_into(&mut table.source),
                    _ => {}
                }
                continue;
            }
            let mut fields = line.split('\t');
            let mut field = || fields.next().filter(|field| !field.is_empty());
            let (Some(service), Some(model), Some(above)) = (field(), field(), field()) else {
                return Err(wrong("it needs a service, a model and a number of tokens"));
            };
            let above = above
                .parse()
                .map_err(|_| wrong("the number of tokens is none"))?;
            let mut money = || match field() {
                None => Err(wrong("a price is missing")),
                Some("-") => Ok(None),
                Some(usd) => match usd.parse::<f64>() {
                    Ok(usd) if (0.0..=USD_MAX).contains(&usd) => Ok(Some(usd)),
                    _ => Err(wrong("a price is not a number of US dollars")),
                },
            };
            let (input, output, cached, cache_write) = (money()?, money()?, money()?, money()?);
            let (Some(input), Some(output)) = (input, output) else {
                return Err(wrong("a price is missing"));
            };
            let price = Price {
                input,
                output,
                cached,
                cache_write,
            };
            if !table.add(service, model, above, price) {
                return Err(wrong(
                    "the model's name cannot be used, or its first price is missing",
                ));
            }
        }
        Ok(table)
    }

    /// Adds the price of requests with more than `above` prompt tokens, starting with 0. Returns whether it was added.
    fn add(&mut self, service: &str, model: &str, above: u64, price: Price) -> bool {
        let plain = |c: char| c.is_ascii_graphic();
        if model.is_empty()
            || model.len() > NAME_MAX
            || !model.chars().all(plain)
            || self.len() >= MODELS_MAX
        {
            return false;
        }
        let models = self.rows.entry(service.to_owned()).or_default();
        match (above, models.get_mut(model)) {
            (0, _) => {
                let tariff = Tariff {
                    price,
                    above: None,
                    listed: true,
                };
                models.insert(model.to_owned(), tariff);
                true
            }
            (above, Some(tariff)) => {
                // Several steps are reduced to one: the first threshold with the last price, so that it is never too
                // low.
                let from = tariff.above.map_or(above, |(tokens, _)| tokens.min(above));
                tariff.above = Some((from, price));
                true
            }
            (_, None) => false,
        }
    }

    /// Extracts the prices of our services from litellm's list.
    ///
    /// # Errors
    /// If the text is not a JSON object, or has no price of any of our services.
    pub fn from_litellm(json: &[u8], date: &str, source: &str) -> Result<Self, TableError> {
        let list: serde_json::Map<String, Value> =
            serde_json::from_slice(json).map_err(|error| TableError::List(error.to_string()))?;
        let mut table = Self {
            date: date.to_owned(),
            source: source.to_owned(),
            ..Self::default()
        };
        for (name, row) in &list {
            let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
            let of = |(_, theirs): &&(&str, &str)| *theirs == text("litellm_provider");
            let Some((service, theirs)) = SERVICES.iter().find(of) else {
                continue;
            };
            // `ft:` models are the user's own, at an address with the name of an organization.
            if !["chat", "responses"].contains(&text("mode")) || name.starts_with("ft:") {
                continue;
            }
            let model = name
                .strip_prefix(theirs)
                .and_then(|rest| rest.strip_prefix('/'));
            let model = model.unwrap_or(name);
            let Some(price) = listed(row, "") else {
                continue;
            };
            if !table.add(service, model, 0, price) {
                continue;
            }
            for (above, suffix) in steps(row) {
                if let Some(step) = listed(row, &suffix) {
                    table.add(service, model, above, step);
                }
            }
        }
        match table.is_empty() {
            true => Err(TableError::List("no model of a known service".to_owned())),
            false => Ok(table),
        }
    }

    /// Returns the table as tab-separated text: one line per model, and another if long prompts cost more.
    pub fn to_text(&self) -> String {
        let mut out = format!(
            "# Prices of models, in US dollars for a million tokens. `-` is unknown.\n# version {}\n# date {}\n# source {}\n\
             # service\tmodel\tabove\tinput\toutput\tcached\tcache_write\n",
            formats::PRICES.version,
            self.date,
            self.source
        );
        let or_dash = |usd: Option<f64>| usd.map_or("-".to_owned(), |usd| usd.to_string());
        for (service, model, tariff) in self.rows() {
            let steps = [Some((0, tariff.price)), tariff.above];
            for (above, price) in steps.into_iter().flatten() {
                let _ = writeln!(
                    out,
                    "{service}\t{model}\t{above}\t{}\t{}\t{}\t{}",
                    price.input,
                    price.output,
                    or_dash(price.cached),
                    or_dash(price.cache_write)
                );
            }
        }
        out
    }
}

/// Reads a price from litellm's row, from keys with this suffix.
fn listed(row: &Value, suffix: &str) -> Option<Price> {
    let usd = |key: &str| {
        let each = row.get(format!("{key}{suffix}"))?.as_f64()?;
        // A price per million tokens has at most six decimals.
        let million = (each * 1e12).round() / 1e6;
        (0.0..=USD_MAX).contains(&million).then_some(million)
    };
    let thought = usd("output_cost_per_reasoning_token").unwrap_or(0.0);
    Some(Price {
        input: usd("input_cost_per_token")?,
        output: usd("output_cost_per_token")?.max(thought),
        cached: usd("cache_read_input_token_cost"),
        cache_write: usd("cache_creation_input_token_cost"),
    })
}

/// Returns the price steps of a row, smallest first: the threshold, and the suffix of the keys, `…_above_200k_tokens`.
fn steps(row: &Value) -> Vec<(u64, String)> {
    let keys = row.as_object().into_iter().flat_map(|row| row.keys());
    let mut steps: Vec<(u64, String)> = keys
        .filter_map(|key| {
            let rest = key.strip_prefix("input_cost_per_token_above_")?;
            let thousands: u64 = rest.strip_suffix("k_tokens")?.parse().ok()?;
            Some((thousands.checked_mul(1000)?, format!("_above_{rest}")))
        })
        .collect();
    steps.sort_unstable();
    steps
}

/// Strips the date from the name of a model: `-2025-11-13`, `-20250929`, `-latest`.
fn undated(model: &str) -> Option<&str> {
    if let Some(name) = model.strip_suffix("-latest") {
        return Some(name);
    }
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let cut = |tail: usize| {
        model
            .is_char_boundary(model.len().saturating_sub(tail))
            .then(|| model.split_at(model.len().saturating_sub(tail)))
    };
    if let Some((name, tail)) = cut(9)
        && tail.strip_prefix('-').is_some_and(digits)
    {
        return Some(name);
    }
    let (name, tail) = cut(11)?;
    let parts: Vec<&str> = tail.strip_prefix('-')?.split('-').collect();
    let dated = matches!(parts.as_slice(), [y, m, d] if y.len() == 4 && m.len() == 2 && d.len() == 2 && [y, m, d].iter().all(|p| digits(p)));
    dated.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{
        "sample_spec": {"input_cost_per_token": 0.0, "litellm_provider": "one of …", "mode": "chat"},
        "gpt-5.1": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1.25e-06,
            "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-07,
            "input_cost_per_token_priority": 2.5e-06},
        "gemini/gemini-2.5-pro": {"litellm_provider": "gemini", "mode": "chat", "input_cost_per_token": 1.25e-06,
            "output_cost_per_token": 1e-05, "input_cost_per_token_above_200k_tokens": 2.5e-06,
            "output_cost_per_token_above_200k_tokens": 1.5e-05,
            "input_cost_per_token_above_200k_tokens_priority": 4.5e-06},
        "claude-x": {"litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 3e-06,
            "output_cost_per_token": 1.5e-05, "cache_creation_input_token_cost": 3.75e-06,
            "output_cost_per_reasoning_token": 2e-05},
        "dear": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e6, "output_cost_per_token": 1},
        "below": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": -1e-6, "output_cost_per_token": 1e-6},
        "text": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": "1", "output_cost_per_token": 1e-6},
        "odd\u001b[31m": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6},
        "ft:gpt-4o": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6},
        "openai/": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6},
        "": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6},
        "dall-e": {"litellm_provider": "openai", "mode": "image_generation", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6},
        "azure/gpt-5.1": {"litellm_provider": "azure", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}
    }"#;

    fn table() -> Table {
        Table::from_litellm(LIST.as_bytes(), "2026-01-02", "a test").unwrap()
    }

    #[test]
    fn the_table_in_the_program_is_read_and_written_alike() {
        let text = include_str!("prices.tsv");
        let table = Table::parse(text).unwrap();
        assert_eq!(table.to_text(), text);
        assert_eq!(&table, Prices::default().table());
        assert!(table.date.parse::<jiff::civil::Date>().is_ok());
        for (ours, _) in SERVICES {
            assert!(table.rows().any(|(service, ..)| service == *ours), "{ours}");
        }
    }

    #[test]
    fn a_foreign_list_gives_the_models_of_our_services_and_no_others() {
        let table = table();
        let names: Vec<_> = table.rows().map(|(s, m, _)| format!("{s} {m}")).collect();
        assert_eq!(
            names,
            [
                "anthropic claude-x",
                "gemini_api gemini-2.5-pro",
                "openai gpt-5.1"
            ]
        );
        assert_eq!(Table::parse(&table.to_text()), Ok(table));
        for (bad, why) in [
            ("", "EOF"),
            ("[]", "expected a map"),
            ("{}", "no model"),
            (r#"{"a": 1}"#, "no model"),
        ] {
            let error = Table::from_litellm(bad.as_bytes(), "", "").unwrap_err();
            assert!(error.to_string().contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn a_long_prompt_and_a_thought_cost_what_the_list_says() {
        let table = table();
        let pro = table.find("gemini_api", "gemini-2.5-pro").unwrap();
        for (tokens, input, output) in [
            (0, 1.25, 10.0),
            (200_000, 1.25, 10.0),
            (200_001, 2.5, 15.0),
            (u64::MAX, 2.5, 15.0),
        ] {
            let price = pro.at(tokens);
            assert_eq!((price.input, price.output), (input, output), "{tokens}");
        }
        assert_eq!(pro.worst(false), spending::Price::per_million(2.5, 15.0));
        let claude = table.find("anthropic", "claude-x").unwrap();
        assert_eq!(claude.price.output, 20.0);
        assert_eq!(claude.worst(true), spending::Price::per_million(3.75, 20.0));
        assert_eq!(claude.worst(false), spending::Price::per_million(3.0, 20.0));
    }

    #[test]
    fn a_dated_name_means_the_model_that_is_listed() {
        let table = table();
        for (model, known) in [
            ("gpt-5.1", true),
            ("gpt-5.1-2025-11-13", true),
            ("gpt-5.1-20251113", true),
            ("gpt-5.1-latest", true),
            ("gpt-5.1-mini", false),
            ("gpt-5.1-2025-1-13", false),
            ("gpt-5.1-mini-2025-11-13", false),
            ("-20251113", false),
            ("é", false),
            ("ééééééééééé", false),
            ("", false),
        ] {
            assert_eq!(table.find("openai", model).is_some(), known, "{model}");
        }
        assert_eq!(table.find("azure", "gpt-5.1"), None);
    }

    #[test]
    fn what_is_configured_comes_first_and_another_address_has_no_listed_price() {
        let prices = Prices::of(table());
        let mut provider = ProviderConfig::default();
        let input = |provider: Option<&ProviderConfig>| {
            let tariff = prices.tariff("openai", provider, "gpt-5.1");
            tariff.map(|tariff| (tariff.price.input, tariff.listed))
        };
        assert_eq!(input(None), Some((1.25, true)));
        assert_eq!(input(Some(&provider)), Some((1.25, true)));
        for own in [
            "https://api.openai.com/v1",
            "https://API.openai.com/v1/",
            "https://api.openai.com",
        ] {
            provider.base_url = Some(own.into());
            assert_eq!(input(Some(&provider)), Some((1.25, true)), "{own}");
        }
        for other in [
            "http://localhost:1/v1",
            "http://api.openai.com/v1",
            "https://api.openai.com/v2",
            "https://me@api.openai.com/v1",
        ] {
            provider.base_url = Some(other.into());
            assert_eq!(input(Some(&provider)), None, "{other}");
        }
        let own = Price {
            input: 7.0,
            ..Price::default()
        };
        provider.prices.insert("gpt-5.1".into(), own);
        assert_eq!(input(Some(&provider)), Some((7.0, false)));
    }

    #[test]
    fn a_table_that_is_wrong_is_refused_with_its_line() {
        let row = |line: &str| format!("# version 1\n{line}\n");
        for (text, why) in [
            ("# version 99\n".to_owned(), "version 99"),
            (row("openai"), "line 2: it needs a service"),
            (row("openai\tx\tmany\t1\t2\t-\t-"), "number of tokens"),
            (row("openai\tx\t0\t1"), "a price is missing"),
            (row("openai\tx\t0\t-\t2\t-\t-"), "a price is missing"),
            (row("openai\tx\t0\tNaN\t2\t-\t-"), "not a number"),
            (row("openai\tx\t0\t-1\t2\t-\t-"), "not a number"),
            (row("openai\tx\t0\t1e300\t2\t-\t-"), "not a number"),
            (row("openai\tx\t9\t1\t2\t-\t-"), "first price"),
            (row("openai\tx y\t0\t1\t2\t-\t-"), "name cannot be used"),
        ] {
            let error = Table::parse(&text).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
