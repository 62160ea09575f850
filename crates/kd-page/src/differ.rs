//! Where members differ: claims, or whole answers, by member. Each cell links to the words in the member's message.

use crate::facts::{Facts, Said, plain};
use kd_core::SeatName;
use kd_core::deliberation::map::{Map, Rows, Stance, Standing};
use maud::{Markup, html};

/// Returns whether there is anything to compare.
pub(crate) fn has(facts: &Facts<'_>) -> bool {
    let map = facts.map.as_ref();
    map.is_some_and(|map| !map.claims.is_empty() || !map.missing.is_empty())
}

pub(crate) fn body(facts: &Facts<'_>) -> Markup {
    let Some(map) = &facts.map else {
        return html! {};
    };
    let (head, holds, opposes) = match map.of {
        Rows::Claims => ("Claim", "says so", "contradicts"),
        Rows::Answers => ("Answer", "holds it", "opposes it"),
    };
    let columns = map.members.len() + 1;
    let mut standing = None;
    html! {
        @let rows_are_claims = map.of == Rows::Claims;
        p.legend { span.holds { "● " (holds) } " " span.opposes { "○ " (opposes) } " " span.faint { "· silent" } @if rows_are_claims { " " span.faint { "A mark leads to the sentence that is closest to the claim." } } }
        div.wide tabindex="0" { table.map {
            thead { tr { th scope="col" { (head) } @for member in &map.members { th scope="col" { (facts.name(member.as_str())) } } } }
            tbody { @for (at, claim) in map.claims.iter().enumerate() {
                @if let Some(now) = claim.standing.filter(|now| standing.replace(*now) != Some(*now)) {
                    tr { th.group colspan=(columns) scope="rowgroup" { (standing_words(now)) } }
                }
                tr {
                    th scope="row" dir="auto" { (plain(&claim.claim)) }
                    @for (seat, stance) in &claim.stances { (cell(facts, seat, (*stance, facts.said.get(&(at, seat.clone()))), (holds, opposes))) }
                }
            } }
        } }
        @for line in &map.missing { p { "Not covered: " span dir="auto" { (plain(line)) } } }
        @if !map.groups.is_empty() {
            p.faint { (groups(facts, map)) }
        }
        @let voters = voters_alone(facts, map);
        @if !voters.is_empty() {
            p.faint { (names(facts, &voters)) " voted without an answer of " @if voters.len() == 1 { "its" } @else { "their" } " own." }
        }
    }
}

/// Returns what the members' positions on a claim have in common, as a heading.
fn standing_words(standing: Standing) -> &'static str {
    match standing {
        Standing::Consensus => "All say so",
        Standing::Contradiction => "Some contradict it",
        Standing::Shared => "Several say so, nobody contradicts it",
        Standing::Single => "Only one says so",
    }
}

/// Tells which answers are the same.
fn groups(facts: &Facts<'_>, map: &Map) -> Markup {
    let (same, alone): (Vec<&Vec<SeatName>>, Vec<&Vec<SeatName>>) =
        map.groups.iter().partition(|group| group.len() > 1);
    let alone: Vec<&SeatName> = alone.into_iter().flatten().collect();
    html! {
        @for group in &same { (names(facts, &group.iter().collect::<Vec<_>>())) " gave the same answer. " }
        @match (same.is_empty(), alone.len()) {
            (_, 0) => {}
            (true, _) => "No two answers are the same. ",
            (false, 1) => { (names(facts, &alone)) " gave another. " }
            (false, _) => { (names(facts, &alone)) " each gave another. " }
        }
        @if !map.by.is_empty() { "Compared by " (names(facts, &map.by.iter().collect::<Vec<_>>())) "." }
    }
}

/// Returns the members that voted and have no column, since they gave no answer.
fn voters_alone<'a>(facts: &'a Facts<'_>, map: &Map) -> Vec<&'a SeatName> {
    let count = facts.report.as_ref().and_then(|report| report.count());
    let firsts = count.into_iter().flat_map(|count| &count.firsts);
    let seats = firsts.map(|first| &first.seat);
    seats.filter(|seat| !map.members.contains(seat)).collect()
}

/// Renders names as a list in words: `a, b and c`.
fn names(facts: &Facts<'_>, seats: &[&SeatName]) -> Markup {
    html! {
        @for (at, seat) in seats.iter().enumerate() {
            @if at > 0 { @if at + 1 == seats.len() { " and " } @else { ", " } }
            (facts.name(seat.as_str()))
        }
    }
}

/// Renders a member's position on a row: a link to the words about it, else to the message.
fn cell(
    facts: &Facts<'_>,
    seat: &SeatName,
    (stance, said): (Stance, Option<&Said>),
    (holds, opposes): (&str, &str),
) -> Markup {
    let (class, mark, words) = match stance {
        Stance::Holds => ("holds", "●", holds),
        Stance::Opposes => ("opposes", "○", opposes),
        Stance::Silent => ("faint", "·", "silent"),
    };
    let mut label = format!("{} {words}", plain(seat.as_str()));
    if let Some(said) = said {
        label.push_str(&format!(": “{}”", said.words));
    }
    let to = match said {
        Some(said) => Some(facts.passage(said)),
        None => facts.message_of(seat.as_str()).map(|seq| facts.anchor(seq)),
    };
    html! {
        td.(class) {
            @match to {
                Some(to) => a href={ "#" (to) } aria-label=(label) title=(label) { (mark) },
                None => span role="img" aria-label=(label) title=(label) { (mark) },
            }
        }
    }
}
