//! Where members differ: claims, or whole answers, by member. Each cell links to the member's message.

use crate::facts::{Facts, plain};
use kd_core::SeatName;
use kd_core::deliberation::map::{Rows, Stance};
use maud::{Markup, html};

/// Returns whether there is anything to compare.
pub(crate) fn has(facts: &Facts<'_>) -> bool {
    let map = facts.report.as_ref().map(|report| report.map());
    map.is_some_and(|map| !map.claims.is_empty() || !map.missing.is_empty())
}

pub(crate) fn body(facts: &Facts<'_>) -> Markup {
    let Some(map) = facts.report.as_ref().map(|report| report.map()) else {
        return html! {};
    };
    let (head, holds, opposes) = match map.of {
        Rows::Claims => ("Claim", "says so", "contradicts"),
        Rows::Answers => ("Answer", "holds it", "opposes it"),
    };
    let columns = map.members.len() + 1;
    let mut standing = None;
    html! {
        p.legend { span.holds { "● " (holds) } " " span.opposes { "○ " (opposes) } " " span.faint { "· silent" } }
        div.wide tabindex="0" { table.map {
            thead { tr { th scope="col" { (head) } @for member in &map.members { th scope="col" { (facts.name(member.as_str())) } } } }
            tbody { @for claim in &map.claims {
                @if let Some(now) = claim.standing.filter(|now| standing.replace(*now) != Some(*now)) {
                    tr { th.group colspan=(columns) scope="rowgroup" { (now.words()) } }
                }
                tr {
                    th scope="row" dir="auto" { (plain(&claim.claim)) }
                    @for (seat, stance) in &claim.stances { (cell(facts, seat, *stance, holds, opposes)) }
                }
            } }
        } }
        @for line in &map.missing { p { "Not covered: " span dir="auto" { (plain(line)) } } }
        @if !map.groups.is_empty() {
            p.faint {
                "Same answers: "
                @for (at, group) in map.groups.iter().enumerate() {
                    @if at > 0 { ", " }
                    @for (at, seat) in group.iter().enumerate() { @if at > 0 { " = " } (facts.name(seat.as_str())) }
                }
                "; compared by "
                @if map.by.is_empty() { "nobody" }
                @for (at, seat) in map.by.iter().enumerate() { @if at > 0 { " and " } (facts.name(seat.as_str())) }
            }
        }
    }
}

fn cell(facts: &Facts<'_>, seat: &SeatName, stance: Stance, holds: &str, opposes: &str) -> Markup {
    let (class, mark, words) = match stance {
        Stance::Holds => ("holds", "●", holds),
        Stance::Opposes => ("opposes", "○", opposes),
        Stance::Silent => ("faint", "·", "silent"),
    };
    let label = format!("{} {words}", plain(seat.as_str()));
    html! {
        td.(class) {
            @match facts.message_of(seat.as_str()) {
                Some(seq) => a href={ "#" (facts.anchor(seq)) } aria-label=(label) title=(label) { (mark) },
                None => span role="img" aria-label=(label) title=(label) { (mark) },
            }
        }
    }
}
