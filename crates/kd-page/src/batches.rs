//! The batches of a project at a glance: state, pace, spending, failures by kind. Workers of a fleet follow each batch here
//! when there are any.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kd_core::batch::Overview;
use kd_core::clean::clean_line;
use maud::{Markup, html};

/// Maximum characters of the name of a file or kind.
const SOURCE_CHARS: usize = 80;

/// Renders batches, newest first. `now` is the time at which they were read.
pub fn batches(all: &[Overview], now: Timestamp) -> Markup {
    html! {
        article.batches aria-labelledby="batches-title" {
            h1 #batches-title { "Batches" }
            @if all.is_empty() {
                p.faint { "There are none in this project. " code { "kd batch run QUESTIONS -o RESULTS.jsonl" } " starts the first." }
            }
            @for one in all { (batch(one, now)) }
        }
    }
}

fn batch(one: &Overview, now: Timestamp) -> Markup {
    let total = one.total();
    let ended = one.state("answered") + one.state("failed");
    let source = clean_line(&one.questions, SOURCE_CHARS);
    let facts = facts(one, now);
    html! {
        section.batch aria-label=(one.id) {
            h2 { (one.id) " " span.faint { (one.method) ", " bdi { (source) } } }
            p { b { (state(one)) } " · " (ended) " of " (total) }
            progress value=(ended) max=(total.max(1)) aria-label={ (ended) " of " (total) " questions" } {}
            p.facts { @for fact in &facts { span { (fact) } } }
            @if !one.failures.is_empty() {
                p.bad {
                    "Failed: "
                    @for (at, (kind, n)) in one.failures.iter().enumerate() {
                        @if at > 0 { ", " }
                        (n) " " (clean_line(kind, SOURCE_CHARS))
                    }
                }
            }
        }
    }
}

/// Returns the state of a batch in a word.
fn state(one: &Overview) -> &'static str {
    match (one.left(), one.running_now, one.cancelled) {
        (0, ..) if one.cancelled => "cancelled",
        (0, ..) => "over",
        (_, true, false) => "running",
        (_, _, true) => "cancelled",
        _ => "stopped",
    }
}

fn facts(one: &Overview, now: Timestamp) -> Vec<String> {
    let mut facts = Vec::new();
    for name in ["answered", "failed", "running", "waiting", "cancelled"] {
        let n = one.state(name);
        if n > 0 {
            facts.push(format!("{n} {name}"));
        }
    }
    if one.cached > 0 {
        facts.push(format!("{} answered before", one.cached));
    }
    if one.at_providers > 0 {
        facts.push(format!("{} requests at providers", one.at_providers));
    }
    if let Some(rate) = one.rate() {
        facts.push(match rate {
            rate if rate >= 1.0 => format!("{rate:.1}/s"),
            rate => format!("{:.1}/min", rate * 60.0),
        });
    }
    facts.push(format!("{} calls", one.calls));
    facts.push(format!("{} tokens", one.tokens));
    facts.push(match one.usd > 0.0 {
        true => format!("${:.4}", one.usd),
        false => "price unknown or $0.00".to_owned(),
    });
    let end = one.seconds_left().and_then(|left| {
        let left = jiff::SignedDuration::try_from_secs_f64(left).ok()?;
        now.checked_add(left).ok()
    });
    if let Some(end) = end {
        let end = end.to_zoned(TimeZone::system());
        facts.push(format!("expected end {}", end.strftime("%Y-%m-%d %H:%M")));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_batch_shows_its_state_and_nothing_in_it_is_markup() {
        let one = Overview {
            id: "batch-3f1c90ab".into(),
            method: "ask".into(),
            questions: "<script>alert(1)</script>.jsonl".into(),
            running_now: true,
            states: BTreeMap::from([
                ("answered", 6),
                ("failed", 2),
                ("running", 1),
                ("waiting", 1),
            ]),
            calls: 30,
            tokens: 4000,
            usd: 0.25,
            seconds: 4.0,
            failures: BTreeMap::from([("auth".into(), 1), ("<b>".into(), 1)]),
            at_providers: 7,
            ..Overview::default()
        };
        let text = batches(std::slice::from_ref(&one), Timestamp::UNIX_EPOCH).into_string();
        for part in [
            "running",
            "8 of 10",
            "6 answered",
            "2 failed",
            "2.0/s",
            "30 calls",
            "$0.2500",
            "1 auth",
            "7 requests at providers",
            "expected end",
            "value=\"8\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            !text.contains("<script") && !text.contains("<b>, "),
            "{text}"
        );
        assert!(text.contains("&lt;script"), "{text}");
        for (left, running, cancelled, word) in [
            (0, false, false, "over"),
            (1, true, false, "running"),
            (1, false, false, "stopped"),
            (0, false, true, "cancelled"),
            (1, true, true, "cancelled"),
        ] {
            let one = Overview {
                states: BTreeMap::from([("waiting", left)]),
                running_now: running,
                cancelled,
                ..one.clone()
            };
            assert_eq!(state(&one), word);
        }
        let none = batches(&[], Timestamp::UNIX_EPOCH).into_string();
        assert!(none.contains("kd batch run"), "{none}");
    }
}
