//! The fairness of a forum: the turns of each agent beside those it is due, and what was tested.

use super::{Fairness, Row, line};
use crate::bar;
use maud::{Markup, html};

/// The smallest probability that a bar shows; the scale is logarithmic, up to 1.
const LEAST: f64 = 1e-6;

pub(super) fn section(found: Option<&Fairness>) -> Markup {
    html! {
        section aria-labelledby="forum-fairness" {
            h2 #forum-fairness { "Fairness" }
            @match found {
                None => p.faint { "No cycle has ended." },
                Some(found) => {
                    @let failed = found.rows.iter().filter(|row| row.pass == Some(false)).count();
                    p {
                        "Over " (found.cycles) @if found.cycles == 1 { " cycle: " } @else { " cycles: " }
                        @match failed { 0 => "no row fails.", n => b.bad { (n) @if n == 1 { " row fails." } @else { " rows fail." } } }
                    }
                    (shares(&found.shares))
                    (rows(&found.rows))
                }
            }
        }
    }
}

/// Renders a bar for the turns of each agent, with a mark at those the agent is due.
fn shares(all: &[(String, u64, f64)]) -> Markup {
    let most = all.iter().map(|(_, turns, due)| (*turns as f64).max(*due));
    // Room for the mark.
    let most = most.fold(1.0, f64::max) * 1.1;
    html! {
        @if !all.is_empty() {
            div.wide tabindex="0" { table.fair {
                thead { tr { th scope="col" { "Agent" } th scope="col" { "Turns" } } }
                tbody { @for (name, turns, due) in all { tr {
                    th scope="row" { bdi { (line(name)) } }
                    td { (bar::marked(*turns as f64 / most, Some(due / most), &format!("{turns} of {due:.1} due"))) }
                } } }
            } }
            p.faint { "The mark in a bar is the number of turns that are due to the agent." }
        }
    }
}

fn rows(all: &[Row]) -> Markup {
    let figure = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
    html! {
        div.wide tabindex="0" { table.fair {
            thead { tr {
                th scope="col" { "Tested" }
                @for head in ["Has", "Due"] { th.number scope="col" { (head) } }
                th scope="col" { "Probability, and the line to reach" }
                th scope="col" { "Result" }
            } }
            tbody { @for row in all { tr {
                th scope="row" { (line(&row.name)) @if !row.agent.is_empty() { " " span.faint { bdi { (line(&row.agent)) } } } }
                td.number { (figure(row.value)) }
                td.number { (figure(row.entitled)) }
                td { (probability(row)) }
                td { @match row.pass { Some(true) => "passes", Some(false) => span.tag.bad { "fails" }, None => span.faint { "only told" } } }
            } } }
        } }
        p.faint {
            "The bar is the probability that a fair draw leads to a difference this large, on a logarithmic scale from one in a "
            "million to 1. A row fails if its bar does not reach the mark."
        }
    }
}

fn probability(row: &Row) -> Markup {
    let Some(p) = row.p else {
        return html! { span.faint { "–" } };
    };
    let words = match row.line {
        Some(line) => format!("{}, line {}", small(p), small(line)),
        None => small(p),
    };
    bar::marked(place(p), row.line.map(place), &words)
}

/// Returns the place of a probability on the logarithmic scale, from 0 to 1.
fn place(p: f64) -> f64 {
    (1.0 - p.max(LEAST).log10() / LEAST.log10()).clamp(0.0, 1.0)
}

/// Returns a probability with enough digits to differ from 0.
fn small(p: f64) -> String {
    match p {
        p if p >= 0.0005 => format!("{p:.3}"),
        p if p < LEAST => format!("below {LEAST:.6}"),
        p => format!("{p:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_reaches_its_mark_if_the_row_passes() {
        for (p, line) in [(0.5, 0.004), (0.004, 0.004), (1.0, 1e-9)] {
            assert!(place(p) >= place(line), "{p} {line}");
        }
        for (p, line) in [(0.003, 0.004), (0.0, 1e-5)] {
            assert!(place(p) < place(line), "{p} {line}");
        }
        assert_eq!((place(1.0), place(0.0)), (1.0, 0.0));
        assert!((place(0.001) - 0.5).abs() < 1e-9);
        let told = [0.25, 0.0005, 0.000_123, 0.0].map(small);
        assert_eq!(told, ["0.250", "0.001", "0.000123", "below 0.000001"]);
    }
}
