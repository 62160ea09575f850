//! Prices of models: those in force, and replacing the user's table by litellm's list.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::infile;
use kd_backends::delivery::prices::{self, LIST_BYTES_MAX};
use kd_core::config::{Config, Price};
use kd_core::display;
use kd_core::prices::{Table, Tariff};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The default revision of the list to download.
const NEWEST: &str = "main";

/// A price in force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriceRow<'a> {
    /// The service.
    pub service: &'a str,
    /// The model.
    pub model: &'a str,
    /// Tokens of a prompt above which it holds; 0 for all others.
    pub above: u64,
    /// The price.
    pub price: &'a Price,
    /// Whether it is from the table and not from the settings.
    pub listed: bool,
}

/// Returns all prices, sorted by service and model. Configured prices replace prices of the table.
pub fn rows(config: &Config) -> Vec<PriceRow<'_>> {
    let table = config.prices.table();
    let mut rows: BTreeMap<(&str, &str, u64), (&Price, bool)> = BTreeMap::new();
    for (service, model, tariff) in table.rows() {
        let Tariff { price, above, .. } = tariff;
        rows.insert((service, model, 0), (price, true));
        if let Some((above, price)) = above {
            rows.insert((service, model, *above), (price, true));
        }
    }
    for (service, provider) in &config.providers {
        if provider.elsewhere(service).is_some() {
            rows.retain(|(of, ..), _| *of != service);
        }
        for (model, price) in &provider.prices {
            rows.retain(|(of, name, _), _| (*of, *name) != (service, model));
            rows.insert((service, model, 0), (price, false));
        }
    }
    let row = |((service, model, above), (price, listed))| PriceRow {
        service,
        model,
        above,
        price,
        listed,
    };
    rows.into_iter().map(row).collect()
}

/// A table that was saved as the user's own.
#[derive(Clone, Debug)]
pub struct Update {
    /// The table.
    pub table: Table,
    /// The SHA-256 of the list.
    pub fingerprint: String,
    /// The changes to the table before.
    pub change: Change,
    /// Its file.
    pub path: PathBuf,
}

/// Removes the user's table; `false` if there was none. The table of the program holds then.
///
/// # Errors
/// It cannot be removed.
pub fn reset(env: &Env) -> Result<bool, UserError> {
    Ok(kd_store::prices::reset(&env.user_dirs())?)
}

/// Replaces the user's table by litellm's list at a commit, branch or tag, or by a list `from` a file or an address.
///
/// # Errors
/// The list cannot be fetched or read, or the table cannot be saved.
pub fn update(commit: Option<&str>, from: Option<&str>, env: &Env) -> Result<Update, UserError> {
    let dirs = env.user_dirs();
    let failed = |from: &str, why: String| {
        UserError::new(
            ErrorKind::NoPrices,
            format!("no prices from {}", display::line(from)),
        )
        .because(display::line(&why))
        .next("try again, or take a file with `--from FILE`; the prices in use stay as they are")
    };
    let (bytes, source) = match from {
        Some(file) if !file.contains("://") => {
            let bytes = infile::read(Path::new(file), LIST_BYTES_MAX)
                .map_err(|error| failed(file, error.to_string()))?;
            (bytes, file.to_owned())
        }
        _ => {
            let commit = commit.unwrap_or(NEWEST);
            if commit.is_empty()
                || commit.starts_with('.')
                || !commit
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
            {
                return Err(UserError::usage(
                    "this is not a commit, branch or tag of litellm",
                ));
            }
            let url = from.map_or_else(|| prices::address(commit), str::to_owned);
            if env.of_backends(false).on("KD_OFFLINE") {
                return Err(failed(&url, "KD_OFFLINE is set".to_owned()));
            }
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let fetched = runtime.block_on(prices::fetch(&url));
            let bytes = fetched.map_err(|why| failed(&url, why.to_string()))?;
            let source = match from {
                Some(url) => url.to_owned(),
                None => format!("litellm at {commit}"),
            };
            (bytes, source)
        }
    };
    let today = jiff::Zoned::now().date().to_string();
    let print = prices::fingerprint(&bytes);
    let source = format!("{}, SHA-256 {print}", display::line(&source));
    let new = Table::from_litellm(&bytes, &today, &source)
        .map_err(|error| failed(from.unwrap_or("the list"), error.to_string()))?;
    let old = kd_store::prices::load(&dirs).unwrap_or_default();
    let change = Change::between(old.table(), &new);
    let path = kd_store::prices::save(&dirs, &new)?;
    Ok(Update {
        table: new,
        fingerprint: print,
        change,
        path,
    })
}

/// How many prices another table changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Prices of models that had none.
    pub new: u64,
    /// Models that no longer have a price.
    pub gone: u64,
    /// Higher prices.
    pub dearer: u64,
    /// Lower prices.
    pub cheaper: u64,
}

impl Change {
    /// Compares two tables.
    pub fn between(old: &Table, new: &Table) -> Self {
        let of = |table: &Table, service: &str, model: &str| {
            let mut rows = table.rows();
            rows.find(|row| (row.0, row.1) == (service, model))
                .map(|row| row.2.worst(false))
        };
        let mut change = Self::default();
        for (service, model, tariff) in new.rows() {
            let now = tariff.worst(false);
            match of(old, service, model) {
                None => change.new += 1,
                Some(was) if now.input > was.input || now.output > was.output => change.dearer += 1,
                Some(was) if now != was => change.cheaper += 1,
                Some(_) => {}
            }
        }
        let gone = |row: &(&str, &str, &Tariff)| of(new, row.0, row.1).is_none();
        change.gone = old.rows().filter(gone).count() as u64;
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};

    /// Creates a table of models, each with its price in US dollars per million tokens.
    fn table(prices: &[(&str, u32)]) -> Table {
        let row = |(model, usd): &(&str, u32)| {
            let usd = f64::from(*usd) / 1e6;
            let row = json!({"litellm_provider": "openai", "mode": "chat",
                "input_cost_per_token": usd, "output_cost_per_token": usd});
            ((*model).to_owned(), row)
        };
        let list: Map<String, Value> = prices.iter().map(row).collect();
        let list = serde_json::to_vec(&list).unwrap();
        Table::from_litellm(&list, "2026-01-02", "a test").unwrap()
    }

    #[test]
    fn a_change_counts_each_model_once() {
        let old = table(&[("same", 1), ("up", 1), ("down", 2), ("gone", 1)]);
        let new = table(&[("same", 1), ("up", 2), ("down", 1), ("new", 1)]);
        let change = Change {
            new: 1,
            gone: 1,
            dearer: 1,
            cheaper: 1,
        };
        assert_eq!(Change::between(&old, &new), change);
        assert_eq!(Change::between(&new, &new), Change::default());
    }

    #[test]
    fn a_price_of_the_settings_replaces_that_of_the_table() {
        let mut config = Config::default();
        let listed = rows(&config).len();
        let (service, model) = {
            let all = rows(&config);
            let plain = all.iter().find(|row| row.above == 0).unwrap();
            assert!(plain.listed);
            (plain.service.to_owned(), plain.model.to_owned())
        };
        let own = Price {
            input: 7.0,
            output: 8.0,
            ..Price::default()
        };
        let provider = config.providers.entry(service.clone()).or_default();
        provider.prices.insert(model.clone(), own);
        let all = rows(&config);
        let mut of_model = all
            .iter()
            .filter(|row| (row.service, row.model) == (&service, &model));
        let row = of_model.next().unwrap();
        assert_eq!((row.price, row.listed), (&own, false));
        assert!(of_model.next().is_none() && all.len() <= listed);
        // Another address may have other prices.
        let provider = config.providers.entry(service.clone()).or_default();
        provider.base_url = Some("http://localhost:1".to_owned());
        provider.prices.clear();
        assert!(rows(&config).iter().all(|row| row.service != service));
    }

    #[test]
    fn nothing_is_fetched_offline_or_from_an_odd_revision() {
        let env = Env::of([("KD_OFFLINE", "1")]);
        let error = update(None, None, &env).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoPrices, "{error}");
        // A download that fails has another text.
        assert!(error.to_string().contains("KD_OFFLINE"), "{error}");
        for odd in ["", "../x", ".x", "a/b", "a b"] {
            let error = update(Some(odd), None, &env).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{odd}: {error}");
        }
    }
}
