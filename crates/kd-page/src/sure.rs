//! Confidence and cost.

use crate::bar::bar;
use crate::decided::author;
use crate::facts::{Facts, plain};
use kd_core::Usage;
use kd_core::deliberation::Counted;
use kd_core::deliberation::report::Report;
use kd_core::event::Purpose;
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
                div { (bar(*agreement, &pass(facts, at, *agreement))) }
            }
            p.faint {
                "Agreement is how many stand behind the answer. It is no probability of being right. The interval is that of the "
                "share of voters, as if they were a sample of all members that could be asked."
            }
        }
        @if let Some(promised) = promised(facts) { p { (plain(&promised)) "." } }
        @if let Some(verdict) = facts.verdict() {
            @if !verdict.stopped.is_empty() { p { "No further pass: " (plain(&verdict.stopped)) "." } }
        }
        (saved(facts))
        @if !facts.used.is_empty() { (cost(facts)) (alone(facts)) }
    }
}

/// Returns the agreement after each pass; none if only one voter was asked.
fn trend(facts: &Facts<'_>) -> Vec<f64> {
    let one_voice = |report: &&Report| report.count().is_some_and(Counted::is_one_voice);
    let report = facts.report.as_ref().filter(|report| !one_voice(report));
    report.map(|report| report.trend()).unwrap_or_default()
}

/// Describes a pass: its agreement, and of how many voters with which interval.
fn pass(facts: &Facts<'_>, at: usize, agreement: f64) -> String {
    let number = at + 1;
    let counts = facts.report.iter().flat_map(|report| &report.counts);
    let count = counts
        .rev()
        .find(|c| c.depth == 0 && c.pass as usize == number);
    let stops = facts
        .report
        .as_ref()
        .is_some_and(|r| !r.stopped_early.is_empty());
    let of = count.and_then(|count| {
        // Members whose votes could no longer matter were not counted: the result chose the sample.
        let (low, high) = count.interval().filter(|_| !stops && facts.spared == 0)?;
        Some(format!(
            ", {} of {} (95 %: {low:.2} to {high:.2})",
            count.backers, count.voters
        ))
    });
    format!("pass {number}: {agreement:.2}{}", of.unwrap_or_default())
}

/// Renders the calls that were saved because the answers were certain enough.
fn saved(facts: &Facts<'_>) -> Markup {
    let Some(report) = &facts.report else {
        return html! {};
    };
    let stopped = report.stopped_early.len();
    html! {
        @if facts.spared > 0 || stopped > 0 {
            h3 { "Calls saved" }
            ul {
                @for line in &report.enough { li dir="auto" { (plain(line)) "." } }
                @if stopped > 0 {
                    li {
                        "Stopped while they answered, since they could no longer change the result: "
                        @for (at, seat) in report.stopped_early.iter().enumerate() {
                            @if at > 0 { ", " }
                            (facts.name(seat.as_str()))
                        }
                        "."
                    }
                }
            }
            p.faint {
                @match facts.spared {
                    0 => "No call was saved whole.",
                    1 => "1 call was not made.",
                    calls => { (calls) " calls were not made." }
                }
            }
        }
    }
}

/// Compares the cost of the council with that of the answer that won, asked alone.
fn alone(facts: &Facts<'_>) -> Markup {
    let Some((seat, own)) = winner(facts) else {
        return html! {};
    };
    let mut all = Usage::default();
    for usage in facts.used.iter().filter_map(|used| used.usage.as_ref()) {
        all.add(usage);
    }
    let price = |usage: &Usage| {
        usage
            .price()
            .map_or(String::new(), |price| format!("{price}, "))
    };
    let times = match (own.cost_usd, all.cost_usd) {
        (Some(own), Some(all)) if own > 0.0 => Some(all / own),
        _ if own.tokens() > 0 => Some(all.tokens() as f64 / own.tokens() as f64),
        _ => None,
    };
    html! {
        p {
            "The answer that won is that of " (facts.name(seat)) ". Alone, it cost " (price(&own)) (own.tokens()) " tokens; all turns together "
            (price(&all)) (all.tokens()) " tokens"
            @if let Some(times) = times { ", " (format!("{times:.1}")) " times as much" }
            "."
        }
    }
}

/// Returns the author of the answer that won, and the usage of the turn with it.
fn winner<'a>(facts: &'a Facts<'_>) -> Option<(&'a str, Usage)> {
    let verdict = facts.verdict()?;
    verdict.winner.as_ref()?;
    let count = facts
        .report
        .as_ref()?
        .count()
        .filter(|count| !count.is_one_voice())?;
    let name = count.candidates.get(count.winner?)?;
    // A short answer has several authors; those who voted for it gave it.
    let seat = match author(name) {
        Some(author) => author,
        None => verdict.support.first()?.as_str(),
    };
    let own = facts
        .shown
        .iter()
        .rev()
        .filter(|message| message.from == seat);
    let mut turns = own.filter_map(|message| facts.turns.get(&message.seq));
    let answer = turns.find(|turn| turn.purpose == Some(Purpose::Answer))?;
    Some((seat, answer.usage?))
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
