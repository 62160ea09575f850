//! The record: which files it consists of, whether recomputing it gives the same decision, and how to continue.

use crate::facts::{Facts, plain};
use maud::{Markup, html};

pub(crate) fn body(facts: &Facts<'_>) -> Markup {
    let thread = facts.thread;
    let id = &thread.id;
    html! {
        dl.trail {
            dt { "Thread" } dd { (id) }
            @if let Some(origin) = &thread.origin { dt { "Fork of" } dd { (plain(origin)) } }
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
                        (replayed.agreed) " events agree byte for byte"
                        @if !replayed.finished { ", as far as the record goes" }
                    }
                }
            }
            dt { "Go on" } dd { code { "kd chat " (id) } }
            dt { "Look closer" }
            dd {
                code { "kd show " (id) }
                @if facts.report.is_some() { " " code { "kd why " (id) } " " code { "kd replay " (id) " --all-rules" } }
            }
        }
    }
}
