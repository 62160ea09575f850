//! Confidence and cost.

use crate::bar::bar;
use crate::decided::author;
use crate::facts::{Facts, plain};
use kd_core::Usage;
use kd_core::deliberation::Counted;
use kd_core::deliberation::report::Report;
use kd_core::event::Purpose;
use maud::{Markup, html};

/// The text in place of a figure that no backend reported.
const UNKNOWN: &str = "not told";

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
                "Agreement is how many stand behind the answer. It is not the probability of being right. The interval is that of the "
                "share of voters, as if they were a sample of all members that could be asked."
            }
        }
        @if let Some(promised) = promised(facts) { p { (plain(&promised)) "." } }
        @if let Some(verdict) = facts.verdict() {
            @if !verdict.stopped.is_empty() { p { "No further pass: " (plain(verdict.stopped_words())) "." } }
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

/// Compares the council with each of its members alone: the cost of the member's answer, and whether it is the result.
fn alone(facts: &Facts<'_>) -> Markup {
    let answers = answers(facts);
    if answers.len() < 2 {
        return html! {};
    }
    let mut all = Usage::default();
    for usage in facts
        .council
        .1
        .iter()
        .filter_map(|used| used.usage.as_ref())
    {
        all.add(usage);
    }
    let all = all.with_uncounted(facts.council.1.iter().any(|used| used.uncounted > 0));
    let cheapest = answers.iter().filter(|one| one.agrees == Some(true));
    let cheapest = cheapest.filter_map(|one| Some((one, dearer(&all, &one.usage?)?)));
    let cheapest = cheapest.max_by(|a, b| a.1.0.total_cmp(&b.1.0));
    html! {
        h3 { "One member alone" }
        @if let Some((one, (times, sign))) = cheapest {
            p {
                (facts.name(one.seat)) " alone gave the same result for " (cost_of(&one.usage.unwrap_or_default())) ". The council cost " (cost_of(&all)) ", "
                b { (sign) (format!("{times:.1}")) " times as much" } ". Which member that would be was known only afterwards."
            }
        }
        div.wide tabindex="0" { table {
            thead { tr {
                th scope="col" { "Member" } th scope="col" { "Its answer" }
                @for head in ["Price", "Tokens", "The council cost"] { th.number scope="col" { (head) } }
            } }
            tbody { @for one in &answers { tr {
                th scope="row" { (facts.name(one.seat)) }
                td { @match one.agrees {
                    Some(true) => span.holds { "is the result" },
                    Some(false) => "is another",
                    None => span.faint { "was not compared" },
                } }
                td.number { (one.usage.and_then(|usage| usage.price()).unwrap_or_else(|| UNKNOWN.to_owned())) }
                td.number { (one.usage.map_or_else(|| UNKNOWN.to_owned(), |usage| format!("{}{}", usage.certainty.sign(), usage.tokens()))) }
                td.number { @match one.usage.and_then(|usage| dearer(&all, &usage)) { Some((times, sign)) => { (sign) (format!("{times:.1}")) " ×" }, None => span.faint { "–" } } }
            } } }
        } }
    }
}

/// An answer of a member in a deliberation.
struct Alone<'a> {
    seat: &'a str,
    /// The usage of the turn with it.
    usage: Option<Usage>,
    /// Whether it is the answer that won, or one with the same meaning; `None` if that was not compared.
    agrees: Option<bool>,
}

/// Returns the first answers of members in the deliberation, if it decided by votes.
fn answers<'a>(facts: &'a Facts<'_>) -> Vec<Alone<'a>> {
    let Some((count, winner)) = decided(facts) else {
        return Vec::new();
    };
    let groups = facts.map.as_ref().map_or(&[][..], |map| &map.groups);
    let agrees = |seat: &str| match author(winner) {
        Some(author) if author == seat => Some(true),
        Some(author) => {
            let group = groups
                .iter()
                .find(|group| group.iter().any(|one| one.as_str() == author));
            group.map(|group| group.iter().any(|one| one.as_str() == seat))
        }
        // A short answer has several authors: what each gave was counted.
        None if count.is_of_answers() => {
            let first = count
                .firsts
                .iter()
                .find(|first| first.seat.as_str() == seat);
            let first = first?;
            let backs = |winner| first.backs(winner);
            (!first.is_silent()).then(|| count.winner.is_some_and(backs))
        }
        None => None,
    };
    let mut all: Vec<Alone<'a>> = Vec::new();
    let (turns_of, used) = &facts.council;
    for used in used {
        let own = facts
            .shown
            .iter()
            .filter(|message| message.from == used.name);
        let mut turns = own.filter_map(|message| turns_of.get(&message.seq)).rev();
        if let Some(turn) = turns.find(|turn| turn.purpose == Some(Purpose::Answer)) {
            all.push(Alone {
                seat: &used.name,
                usage: turn.usage,
                agrees: agrees(&used.name),
            });
        }
    }
    all
}

/// Returns the count and the name of what won, if voters decided.
fn decided<'a>(facts: &'a Facts<'_>) -> Option<(&'a Counted, &'a str)> {
    let count = facts.report.as_ref()?.count();
    let count = count.filter(|count| !count.is_one_voice())?;
    facts.verdict()?.winner.as_ref()?;
    Some((count, count.candidates.get(count.winner?)?))
}

/// Returns the cost of all turns as a multiple, with its sign. Compares prices if all are known exactly, otherwise
/// tokens.
fn dearer(all: &Usage, own: &Usage) -> Option<(f64, &'static str)> {
    let price = |usage: &Usage| {
        let is_known = usage.unpriced == 0 && usage.certainty.is_exact();
        usage.cost_usd.filter(|cost| is_known && *cost > 0.0)
    };
    match (price(own), price(all)) {
        (Some(own), Some(all)) => Some((all / own, "")),
        _ if own.tokens() > 0 && own.certainty.is_exact() => Some((
            all.tokens() as f64 / own.tokens() as f64,
            all.certainty.sign(),
        )),
        _ => None,
    }
}

/// Tells a price and tokens.
fn cost_of(usage: &Usage) -> String {
    match usage.price() {
        Some(price) => format!(
            "{price}, {}{} tokens",
            usage.certainty.sign(),
            usage.tokens()
        ),
        None => format!("{}{} tokens", usage.certainty.sign(), usage.tokens()),
    }
}

/// Returns the promise about the verdict. It comes from the marks of the person who asked, who need not be the reader.
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

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::usage::Certainty;

    fn usage(tokens: u64, cost_usd: Option<f64>) -> Usage {
        Usage {
            output_tokens: tokens,
            cost_usd,
            ..Usage::default()
        }
    }

    #[test]
    fn a_ratio_of_prices_needs_all_prices_and_one_of_tokens_has_the_sign_of_the_sum() {
        let own = usage(100, Some(0.01));
        let mut all = usage(400, Some(0.05));
        assert_eq!(dearer(&all, &own), Some((5.0, "")));
        // The price of some turns is unknown.
        all.unpriced = 1;
        assert_eq!(dearer(&all, &own), Some((4.0, "")));
        // Some turns told no usage at all.
        let some = usage(400, Some(0.05)).with_uncounted(true);
        assert_eq!(dearer(&some, &own), Some((4.0, "≥ ")));
        let own = Usage {
            certainty: Certainty::AtLeast,
            ..own
        };
        assert_eq!(dearer(&some, &own), None);
        assert_eq!(dearer(&all, &Usage::default()), None);
    }
}
