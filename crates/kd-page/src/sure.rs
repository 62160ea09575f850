//! Confidence and cost.

use crate::bar::bar;
use crate::facts::{Facts, plain};
use kd_core::Usage;
use kd_core::deliberation::Counted;
use kd_core::deliberation::report::Report;
use maud::{Markup, html};

/// Returns whether anything is known of either.
pub(crate) fn has(facts: &Facts<'_>) -> bool {
    !facts.used.is_empty() || !trend(facts).is_empty() || promised(facts).is_some()
}

pub(crate) fn body(facts: &Facts<'_>) -> Markup {
    let trend = trend(facts);
    html! {
        @if !trend.is_empty() {
            h3 { "Agreement by pass" }
            @for (at, agreement) in trend.iter().enumerate() {
                div { (bar(*agreement, &format!("pass {}: {agreement:.2}", at + 1))) }
            }
            p.faint { "Agreement is how many stand behind the answer. It is no probability of being right." }
        }
        @if let Some(promised) = promised(facts) { p { (plain(&promised)) "." } }
        @if let Some(verdict) = facts.verdict() {
            @if !verdict.stopped.is_empty() { p { "No further pass: " (plain(&verdict.stopped)) "." } }
        }
        @if !facts.used.is_empty() { (cost(facts)) }
    }
}

/// Returns the agreement after each pass; none if only one voter was asked.
fn trend(facts: &Facts<'_>) -> Vec<f64> {
    let one_voice = |report: &&Report| report.count().is_some_and(Counted::is_one_voice);
    let report = facts.report.as_ref().filter(|report| !one_voice(report));
    report.map(|report| report.trend()).unwrap_or_default()
}

/// Returns what was promised about the verdict: by the marks of the person who asked, who need not be the reader.
fn promised(facts: &Facts<'_>) -> Option<String> {
    let promised = facts.report.as_ref()?.promised.as_ref()?;
    let words = promised.words_then();
    let mut letters = words.chars();
    Some(letters.next()?.to_uppercase().chain(letters).collect())
}

fn cost(facts: &Facts<'_>) -> Markup {
    let mut all: Option<Usage> = None;
    for usage in facts.used.iter().filter_map(|used| used.usage.as_ref()) {
        all.get_or_insert_default().add(usage);
    }
    let turns = facts.used.iter().map(|used| used.turns).sum();
    let tokens = |usage: &Option<Usage>| usage.map_or(0, |u| u.tokens());
    let whole = tokens(&all).max(1) as f64;
    html! {
        h3 { "Cost by member" }
        div.wide tabindex="0" { table {
            thead { tr {
                th { "Member" }
                @for head in ["Price", "Turns", "Tokens in", "Tokens out"] { th.number { (head) } }
                th { "Share of the tokens" }
            } }
            tbody { @for used in &facts.used {
                tr {
                    td { (facts.name(&used.name)) }
                    (figures(used.turns, &used.usage))
                    td { @if used.usage.is_some() { (share(tokens(&used.usage) as f64 / whole)) } }
                }
            } }
            tfoot { tr {
                th scope="row" { "All" }
                (figures(turns, &all))
                td {}
            } }
        } }
    }
}

fn share(part: f64) -> Markup {
    bar(part, &format!("{:.0} %", part * 100.0))
}

/// Renders the usage cells. Usage that no backend reported is unknown, not zero.
fn figures(turns: u64, usage: &Option<Usage>) -> Markup {
    const UNKNOWN: &str = "not told";
    let bound = usage.map_or("", |usage| usage.certainty.sign());
    let tokens = |count: fn(&Usage) -> u64| match usage {
        Some(usage) => format!("{bound}{}", count(usage)),
        None => UNKNOWN.to_owned(),
    };
    let price = match usage {
        Some(usage) => usage
            .price()
            .or_else(|| usage.paid_usd().map(|_| "$0.0000".to_owned())),
        None => None,
    };
    let price = price.unwrap_or_else(|| UNKNOWN.to_owned());
    html! {
        td.number { (price) }
        td.number { (turns) }
        td.number { (tokens(|usage| usage.input_tokens)) }
        td.number { (tokens(|usage| usage.output_tokens)) }
    }
}
