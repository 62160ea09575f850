//! The record: which files it consists of, whether recomputing it gives the same decision, and how to continue.

use crate::facts::{Facts, Relative, plain};
use kd_core::ThreadId;
use maud::{Markup, html};

pub(crate) fn body(facts: &Facts<'_>) -> Markup {
    let thread = facts.thread;
    let id = &thread.id;
    html! {
        dl.trail {
            dt { "Thread" } dd { (id) }
            @if let Some(origin) = &thread.origin { dt { "Fork of" } dd { (plain(origin)) } }
            @if !thread.family.is_empty() { dt { "Forks" } dd { (tree(&thread.family, &thread.id)) } }
            dt { "Messages" } dd { (thread.messages.len()) }
            @if !thread.forgotten.is_empty() {
                dt { "Forgotten" }
                dd { @for (at, seq) in thread.forgotten.iter().enumerate() { @if at > 0 { ", " } "#" (seq) } }
            }
            @if let Some(replayed) = &facts.replayed {
                dt { "Decided again" }
                dd {
                    @if replayed.difference.is_some() {
                        span.bad { "after " (replayed.agreed) " events the record and the decision differ" }
                    } @else {
                        "with the same result: " (replayed.agreed) " events agree byte for byte"
                        @if !replayed.finished { ", as far as the record goes" }
                    }
                }
            }
            dt { "Go on" }
            dd {
                code { "kd chat " (id) }
                // The server's page adds a button.
                @if facts.is_unfinished() { " " span data-resume="" { code { "kd deliberate --resume " (id) } } }
            }
            @if facts.has_verdict() { dt { "Mark" } dd { code { "kd mark " (id) " right" } } }
            dt { "Look closer" }
            dd {
                code { "kd show " (id) }
                @if facts.report.is_some() { " " code { "kd why " (id) } " " code { "kd replay " (id) " --all-rules" } }
            }
        }
    }
}

/// Renders a tree of forks as nested lists.
fn tree(family: &[Relative], here: &ThreadId) -> Markup {
    html! { ol.tree { (level(family, here)) } }
}

/// Renders the first line of a tree and those at its depth; deeper ones are nested in the line above them.
fn level(family: &[Relative], here: &ThreadId) -> Markup {
    let Some((first, rest)) = family.split_first() else {
        return html! {};
    };
    let below = rest.iter().take_while(|one| one.depth > first.depth);
    let (below, rest) = rest.split_at(below.count());
    html! {
        li {
            @let id = plain(&first.id.0);
            @if first.id == *here { b aria-current="page" { (id) } }
            @else if let Some(page) = &first.page { a href=(page) { (id) } }
            @else { (id) }
            @if let Some(left) = &first.left { " " span.faint { (plain(left)) } }
            @if !below.is_empty() { ol { (level(below, here)) } }
        }
        (level(rest, here))
    }
}
