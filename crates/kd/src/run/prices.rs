//! `kd prices`: shows the table in force, and replaces it with litellm's list.

use super::here::Here;
use crate::args::prices::{Prices as Args, PricesCommand};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::{json, words};
use crate::render::clean;
use kd_app::prices::{self, Change, PriceRow};
use kd_core::formats::PRICE_LIST;
use kd_core::prices::Table;
use serde_json::json as object;
use std::io::Write;

pub(super) fn run(args: &Args, here: &Here) -> Result<(), Error> {
    match &args.command {
        None => list(args, here),
        Some(PricesCommand::Update { commit, from }) => {
            update(commit.as_deref(), from.as_deref(), here)
        }
        Some(PricesCommand::Reset) => {
            let was = prices::reset(here)?;
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

fn list(args: &Args, here: &Here) -> Result<(), Error> {
    let config = here.settings(here.find_layout()?.as_ref())?.config;
    let table = config.prices.table();
    let all = prices::rows(&config);
    let named = |row: &&PriceRow<'_>| {
        let has = |word: &String| row.model.to_lowercase().contains(&word.to_lowercase());
        args.models.is_empty() || args.models.iter().any(has)
    };
    let shown: Vec<&PriceRow<'_>> = all.iter().filter(named).collect();
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
    let mut out = crate::out::lines(false);
    writeln!(out, "US dollars per million tokens; {}", about(table))?;
    let cells = |row: &&PriceRow<'_>| {
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

fn json_row(row: &PriceRow<'_>) -> serde_json::Value {
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
    let done = prices::update(commit, from, here)?;
    let mut out = crate::out::stdout().lock();
    writeln!(out, "{}", about(&done.table))?;
    writeln!(out, "SHA-256 of the list: {}", done.fingerprint)?;
    writeln!(out, "{}", change(&done.change))?;
    writeln!(out, "saved in {}", done.path.display())?;
    Ok(())
}

fn change(change: &Change) -> String {
    format!(
        "{} new, {} dearer, {} cheaper, {} gone",
        change.new, change.dearer, change.cheaper, change.gone
    )
}
