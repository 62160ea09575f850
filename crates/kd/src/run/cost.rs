//! `kd cost`: shows the user's total spending, from the spending ledger.

use super::here::Here;
use crate::args::cost::Cost as Args;
use crate::error::Error;
use crate::face::{json, words};
use crate::render::clean;
use crate::render::wrap::clip;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kd_core::formats::COSTS;
use kd_core::ledger::{self, Entry, Sum};
use kd_core::spending::money;
use kd_core::usage::Certainty;
use serde_json::json as object;
use std::io::Write;

/// Maximum columns of a name in the table.
const NAME_COLUMNS_MAX: usize = 40;

pub(super) fn run(args: &Args, here: &Here) -> Result<(), Error> {
    let zone = TimeZone::system();
    let today = Zoned::now().date();
    let month = today.first_of_month();
    let since = args.since.unwrap_or(month);
    let ledger = here.ledger()?;
    let read = ledger.since(begin(since.min(month), &zone)?)?;
    let from = |date: Date| {
        let begin = begin(date, &zone);
        let entries = read.entries.iter();
        begin.map(|begin| {
            entries
                .filter(move |entry| entry.at >= begin)
                .collect::<Vec<_>>()
        })
    };
    let day = |at: Timestamp| at.to_zoned(zone.clone()).date().to_string();
    let rows = ledger::sums(from(since)?, args.by.into(), day);
    let today = sum("today", &from(today)?);
    let month = sum("this month", &from(month)?);
    if args.json {
        let value = object!({
            "v": COSTS.version,
            "since": since.to_string(),
            "today": printed(&today),
            "month": printed(&month),
            "by": rows.iter().map(printed).collect::<Vec<_>>(),
            "unread": read.unread,
        });
        writeln!(crate::out::stdout(), "{}", json::text(&value, true)?)?;
        return Ok(());
    }
    let mut out = crate::out::lines(false);
    if read.entries.is_empty() && read.unread == 0 {
        writeln!(out, "no requests since {since}")?;
        return Ok(());
    }
    let by = format!("{:?}", args.by).to_lowercase();
    let head = ["", "paid", "by logins", "calls", "tokens in", "tokens out"].map(str::to_owned);
    let mut table = vec![head, cells(&today), cells(&month)];
    table.push(std::array::from_fn(|_| String::new()));
    let since_words = match args.since {
        None => "this month".to_owned(),
        Some(date) => format!("since {date}"),
    };
    let mut title: [String; 6] = std::array::from_fn(|_| String::new());
    title[0] = format!("{since_words}, by {by}");
    table.push(title);
    table.extend(rows.iter().map(cells));
    write!(out, "{}", words::table(&table, 1))?;
    let unpriced: u64 = rows
        .iter()
        .map(|sum| sum.unpriced)
        .fold(0, u64::saturating_add);
    if unpriced > 0 {
        writeln!(
            out,
            "no price is known for {}: `kd prices` lists prices, `providers.<name>.prices` sets them",
            kd_app::words::count(unpriced, "call")
        )?;
    }
    if rows.iter().any(|sum| sum.logins > 0) {
        writeln!(
            out,
            "by logins: what their tokens would have cost with a key, as far as the programs say"
        )?;
    }
    if read.unread > 0 {
        writeln!(
            out,
            "not counted: {} of {} that cannot be read",
            kd_app::words::count(read.unread, "line"),
            ledger.folder().display()
        )?;
    }
    Ok(())
}

/// Returns the start of a day in the user's time zone.
fn begin(date: Date, zone: &TimeZone) -> Result<Timestamp, Error> {
    let begin = date.to_zoned(zone.clone());
    begin
        .map(|begin| begin.timestamp())
        .map_err(|error| Error::usage(format!("{date} is out of range")).because(error.to_string()))
}

fn sum(name: &str, entries: &[&Entry]) -> Sum {
    let mut sum = Sum {
        name: name.to_owned(),
        ..Sum::default()
    };
    entries.iter().for_each(|entry| sum.add(entry));
    sum
}

/// Returns a number of tokens; `None` if it is unknown. A request that ended without a count has not used none.
fn known(sum: &Sum, tokens: u64) -> Option<u64> {
    (tokens > 0 || sum.certainty.is_exact()).then_some(tokens)
}

/// Formats a number of tokens.
fn tokens(sum: &Sum, tokens: u64) -> String {
    match known(sum, tokens) {
        Some(known) => sum.certainty.sign().to_owned() + &kd_app::words::grouped(known),
        None => "unknown".to_owned(),
    }
}

/// Returns a sum as JSON: counts and prices that are unknown are null.
fn printed(sum: &Sum) -> serde_json::Value {
    let mut value = object!(sum);
    value["in"] = object!(known(sum, sum.input));
    value["out"] = object!(known(sum, sum.out));
    let paid = sum.paid();
    let paid = paid.filter(|(usd, certainty)| *usd > 0.0 || certainty.is_exact());
    value["usd"] = object!(paid.map(|(usd, _)| usd));
    value
}

/// Formats the cells of a sum. A dash means that a login covers the cost.
fn cells(sum: &Sum) -> [String; 6] {
    let paid = match sum.paid() {
        None => "unknown".to_owned(),
        Some((usd, certainty)) if usd > 0.0 => money(usd, certainty),
        Some(_) if sum.logins > 0 => "-".to_owned(),
        // Its price is known, and its tokens are not.
        Some((_, certainty)) if !certainty.is_exact() => "unknown".to_owned(),
        Some(_) => "$0.00".to_owned(),
    };
    let covered = match (sum.covered_usd > 0.0, sum.logins_unpriced) {
        (true, 0) => money(sum.covered_usd, Certainty::About),
        (true, _) => money(sum.covered_usd, Certainty::AtLeast),
        (false, 0) => "-".to_owned(),
        (false, _) => "unknown".to_owned(),
    };
    [
        clip(&clean::line(&sum.name), NAME_COLUMNS_MAX),
        paid,
        covered,
        kd_app::words::grouped(sum.calls),
        tokens(sum, sum.input),
        tokens(sum, sum.out),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_nobody_told_is_unknown_and_a_part_of_it_is_a_bound() {
        let sum = |input, certainty| Sum {
            calls: 2,
            input,
            certainty,
            ..Sum::default()
        };
        for (sum, shown, json) in [
            (sum(0, Certainty::AtLeast), "unknown", object!(null)),
            (sum(1200, Certainty::AtLeast), "≥ 1,200", object!(1200)),
            (sum(1200, Certainty::Exact), "1,200", object!(1200)),
            (sum(0, Certainty::Exact), "0", object!(0)),
        ] {
            assert_eq!(tokens(&sum, sum.input), shown);
            assert_eq!(printed(&sum)["in"], json);
        }
    }

    #[test]
    fn a_price_that_nobody_knows_is_unknown_in_the_table_and_null_in_json() {
        for (usd, unpriced, shown, json) in [
            (0.0, 0, "$0.00", object!(0.0)),
            (0.0, 3, "unknown", object!(null)),
            (0.5, 3, "≥ $0.5000", object!(0.5)),
            (0.5, 0, "$0.5000", object!(0.5)),
        ] {
            let sum = Sum {
                calls: 4,
                usd,
                unpriced,
                ..Sum::default()
            };
            assert_eq!(cells(&sum)[1], shown);
            assert_eq!(printed(&sum)["usd"], json);
        }
        let uncounted = Sum {
            calls: 2,
            certainty: Certainty::AtLeast,
            paid_certainty: Certainty::AtLeast,
            ..Sum::default()
        };
        assert_eq!(cells(&uncounted)[1], "unknown");
        assert_eq!(printed(&uncounted)["usd"], object!(null));
    }
}
