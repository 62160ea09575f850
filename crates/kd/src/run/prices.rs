//! `kd prices`: shows the table in force, and replaces it with litellm's list.

use super::here::Here;
use crate::args::prices::{Prices as Args, PricesCommand};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::{json, words};
use crate::render::clean;
use kd_app::infile;
use kd_backends::delivery::prices::{self, LIST_BYTES_MAX};
use kd_core::config::{Config, Price};
use kd_core::formats::PRICE_LIST;
use kd_core::prices::{Table, Tariff};
use serde_json::json as object;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// The default revision of the list to download.
const NEWEST: &str = "main";

pub(super) fn run(args: &Args, here: &Here) -> Result<(), Error> {
    match &args.command {
        None => list(args, here),
        Some(PricesCommand::Update { commit, from }) => {
            update(commit.as_deref(), from.as_deref(), here)
        }
        Some(PricesCommand::Reset) => {
            let was = kd_store::prices::reset(&here.user_dirs())?;
            let table = kd_core::prices::Prices::default();
            let said = match was {
                true => "your table was removed",
                false => "you have no table",
            };
            writeln!(crate::out::stdout(), "{said}; {}", about(table.table()))?;
            Ok(())
        }
    }
}

/// A price to show.
struct Row<'a> {
    service: &'a str,
    model: &'a str,
    above: u64,
    price: &'a Price,
    listed: bool,
}

fn list(args: &Args, here: &Here) -> Result<(), Error> {
    let config = here.settings(here.find_layout()?.as_ref())?.config;
    let table = config.prices.table();
    let all = rows(&config, table);
    let named = |row: &&Row<'_>| {
        let has = |word: &String| row.model.to_lowercase().contains(&word.to_lowercase());
        args.models.is_empty() || args.models.iter().any(has)
    };
    let shown: Vec<&Row<'_>> = all.iter().filter(named).collect();
    if args.json {
        let rows: Vec<_> = shown.iter().map(|row| json_row(row)).collect();
        let value = object!({
            "v": PRICE_LIST.version,
            "date": table.date,
            "source": table.source,
            "prices": rows,
        });
        writeln!(crate::out::stdout(), "{}", json::text(&value, true)?)?;
        return Ok(());
    }
    if shown.is_empty() {
        return Err(Error::new(
            "no_price",
            Exit::Error,
            "no price is known for such a model",
        )
        .next("`kd prices` lists all; set `providers.<name>.prices.<model>.input` and `.output`"));
    }
    let mut out = crate::out::stdout().lock();
    writeln!(out, "US dollars per million tokens; {}", about(table))?;
    let cells = |row: &&Row<'_>| {
        let usd = |usd: Option<f64>| usd.map_or("-".to_owned(), |usd| usd.to_string());
        let model = match row.above {
            0 => clean::line(row.model),
            above => format!("  prompts above {}", kd_app::words::grouped(above)),
        };
        [
            model,
            clean::line(row.service),
            usd(Some(row.price.input)),
            usd(Some(row.price.output)),
            usd(row.price.cached),
            if row.listed { "" } else { "yours" }.to_owned(),
        ]
    };
    let head = ["model", "service", "prompt", "answer", "cached", ""].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head)
        .chain(shown.iter().map(cells))
        .collect();
    write!(out, "{}", words::table(&rows, 2))?;
    Ok(())
}

/// Returns all prices, configured ones replacing those of the table, sorted by service and model.
fn rows<'a>(config: &'a Config, table: &'a Table) -> Vec<Row<'a>> {
    let mut rows: BTreeMap<(&str, &str, u64), (&Price, bool)> = BTreeMap::new();
    for (service, model, tariff) in table.rows() {
        let Tariff { price, above, .. } = tariff;
        rows.insert((service, model, 0), (price, true));
        if let Some((above, price)) = above {
            rows.insert((service, model, *above), (price, true));
        }
    }
    for (service, provider) in &config.providers {
        if provider.base_url.is_some() {
            rows.retain(|(of, ..), _| *of != service);
        }
        for (model, price) in &provider.prices {
            rows.retain(|(of, name, _), _| (*of, *name) != (service, model));
            rows.insert((service, model, 0), (price, false));
        }
    }
    let row = |((service, model, above), (price, listed))| Row {
        service,
        model,
        above,
        price,
        listed,
    };
    rows.into_iter().map(row).collect()
}

fn json_row(row: &Row<'_>) -> serde_json::Value {
    object!({
        "service": row.service,
        "model": row.model,
        "above": row.above,
        "input": row.price.input,
        "output": row.price.output,
        "cached": row.price.cached,
        "cache_write": row.price.cache_write,
        "listed": row.listed,
    })
}

/// Describes the source of a table.
fn about(table: &Table) -> String {
    let (date, source) = (clean::line(&table.date), clean::line(&table.source));
    let source = source.split(", SHA-256").next().unwrap_or_default();
    format!(
        "{} of {date}, from {source}",
        kd_app::words::count(table.len() as u64, "price")
    )
}

fn update(commit: Option<&str>, from: Option<&str>, here: &Here) -> Result<(), Error> {
    let dirs = here.user_dirs();
    let failed = |from: &str, why: String| {
        Error::new(
            "no_prices",
            Exit::Error,
            format!("no prices from {}", clean::line(from)),
        )
        .because(clean::line(&why))
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
                return Err(Error::usage(
                    "this is not a commit, branch or tag of litellm",
                ));
            }
            let url = from.map_or_else(|| prices::address(commit), str::to_owned);
            if here.of_backends(false).on("KD_OFFLINE") {
                return Err(failed(&url, "KD_OFFLINE is set".to_owned()));
            }
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let fetched = runtime.block_on(prices::fetch(&url));
            let bytes = fetched.map_err(|why| failed(&url, why))?;
            let source = match from {
                Some(url) => url.to_owned(),
                None => format!("litellm at {commit}"),
            };
            (bytes, source)
        }
    };
    let today = jiff::Zoned::now().date().to_string();
    let print = prices::fingerprint(&bytes);
    let source = format!("{}, SHA-256 {print}", clean::line(&source));
    let new = Table::from_litellm(&bytes, &today, &source)
        .map_err(|error| failed(from.unwrap_or("the list"), error.to_string()))?;
    let old = kd_store::prices::load(&dirs).unwrap_or_default();
    let change = Change::between(old.table(), &new);
    let path = kd_store::prices::save(&dirs, &new)?;
    let mut out = crate::out::stdout().lock();
    writeln!(out, "{}", about(&new))?;
    writeln!(out, "SHA-256 of the list: {print}")?;
    writeln!(out, "{}", change.words())?;
    writeln!(out, "saved in {}", path.display())?;
    Ok(())
}

/// The change of a price by another table.
#[derive(Debug, Default, PartialEq)]
struct Change {
    new: u64,
    gone: u64,
    dearer: u64,
    cheaper: u64,
}

impl Change {
    fn between(old: &Table, new: &Table) -> Self {
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

    fn words(&self) -> String {
        format!(
            "{} new, {} dearer, {} cheaper, {} gone",
            self.new, self.dearer, self.cheaper, self.gone
        )
    }
}
