//! An overview of the batches of a project, and of a fleet with its workers: state, pace, spending, failures. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kd_core::batch::{FleetView, Overview, Worker};
use kd_core::clean::clean_line;
use kd_core::spending::money;
use maud::{Markup, html};

/// Maximum characters of the name of a file or kind.
const SOURCE_CHARS: usize = 80;
/// Maximum characters of a reason.
const REASON_CHARS: usize = 300;
/// Workers that are shown.
const WORKERS_SHOWN: usize = 50;
/// Workers that are shown for one reason.
const REFUSALS_SHOWN: usize = 5;

/// Renders batches, newest first, and the fleet that is watched, if there is one. `now` is the time at which they were read.
pub fn batches(all: &[Overview], fleet: Option<&FleetView>, now: Timestamp) -> Markup {
    html! {
        article.batches aria-labelledby="batches-title" {
            h1 #batches-title { "Batches" }
            @if let Some(view) = fleet { (fleet_of(view, now)) }
            @if !all.is_empty() { h2 { "This project" } }
            @if all.is_empty() && fleet.is_none() {
                p.faint { "There are none in this project. " code { "kd batch run QUESTIONS -o RESULTS.jsonl" } " starts the first." }
            }
            @for one in all { (batch(one, Place::Here, now)) }
        }
    }
}

/// Where a batch is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Here,
    /// In a fleet with that many workers.
    Fleet(usize),
}

fn fleet_of(view: &FleetView, now: Timestamp) -> Markup {
    html! {
        section.fleet aria-labelledby="fleet-title" {
            h2 #fleet-title { "Fleet " span.faint { bdi { (clean_line(&view.store, REASON_CHARS)) } } }
            @if let Some(trouble) = &view.trouble {
                p.bad role="status" {
                    (clean_line(trouble, REASON_CHARS)) "."
                    @if let Some(age) = view.age { " What follows was read " (span(age)) " ago." }
                }
            }
            @if view.age.is_some() {
                (workers(&view.workers))
                @if view.batches.is_empty() {
                    p.faint { "There are no batches in this database. " code { "kd batch run QUESTIONS -o RESULTS.jsonl --store URL" } " starts the first." }
                }
                @for one in &view.batches { (batch(one, Place::Fleet(view.workers.len()), now)) }
            }
        }
    }
}

fn workers(all: &[Worker]) -> Markup {
    html! {
        @if all.is_empty() {
            p.faint { "No worker is at work. " code { "kd worker --store URL" } " starts one." }
        } @else {
            table.workers {
                thead { tr {
                    th scope="col" { "Worker" } th scope="col" { "State" } th scope="col" { "Asking" }
                    th scope="col" { "Up for" } th scope="col" { "Last seen" }
                } }
                tbody {
                    @for worker in all.iter().take(WORKERS_SHOWN) {
                        tr {
                            th scope="row" { bdi { (worker.name) } " " span.faint { "kd " (worker.kd) } }
                            td { (worker.state().phrase()) }
                            td { (worker.asking) }
                            td { (span(worker.up.as_secs_f64())) }
                            td { (span(worker.silent.as_secs_f64())) " ago" }
                        }
                        @for refused in worker.refuses.iter().take(REFUSALS_SHOWN) {
                            tr.bad { td colspan="5" {
                                "does not serve " (refused.batch) ": " (clean_line(&refused.reason, REASON_CHARS))
                            } }
                        }
                    }
                }
            }
            @if all.len() > WORKERS_SHOWN { p.faint { "and " (all.len() - WORKERS_SHOWN) " more workers" } }
        }
    }
}

/// Returns a time in its two largest units.
fn span(seconds: f64) -> String {
    match seconds as u64 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min {} s", s / 60, s % 60),
        s @ 3600..86_400 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        s => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

fn batch(one: &Overview, place: Place, now: Timestamp) -> Markup {
    let total = one.total();
    let ended = one.state("answered") + one.state("failed");
    let source = clean_line(&one.questions, SOURCE_CHARS);
    let facts = facts(one, now);
    html! {
        section.batch aria-label=(one.id) {
            h3 { (one.id) " " span.faint { (one.method) ", " bdi { (source) } } }
            p { b { (state(one, place)) } " · " (ended) " of " (total) }
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
            @if !one.dead.is_empty() { (dead(one)) }
        }
    }
}

/// Lists the first failed questions with their reasons.
fn dead(one: &Overview) -> Markup {
    let more = one.state("failed").saturating_sub(one.dead.len() as u64);
    html! {
        ul.dead {
            @for dead in &one.dead {
                li {
                    bdi { (clean_line(&dead.id, SOURCE_CHARS)) }
                    span.faint { " after " (dead.attempts) @if dead.attempts == 1 { " attempt: " } @else { " attempts: " } }
                    bdi { (clean_line(&dead.reason, REASON_CHARS)) }
                }
            }
            @if more > 0 { li.faint { "and " (more) " more: " code { "kd batch status " (one.id) } } }
        }
    }
}

/// Returns the state of a batch in a word or two.
fn state(one: &Overview, place: Place) -> &'static str {
    match (one.left(), one.running_now, one.cancelled) {
        (0, ..) if one.cancelled => "cancelled",
        (0, ..) => "over",
        (_, true, false) => "running",
        (_, _, true) => "cancelled",
        _ if one.limited => "stopped by a limit",
        _ if place == Place::Here => "stopped",
        _ if place == Place::Fleet(0) => "waiting for workers",
        _ if one.refusals.is_empty() => "waiting",
        _ => "waiting, some workers refuse it",
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
    facts.push(format!("{}{} tokens", one.certainty.sign(), one.tokens));
    facts.push(match one.usd > 0.0 {
        true => money(one.usd, one.certainty),
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
    use kd_core::batch::{Dead, Refused};
    use std::collections::BTreeMap;
    use std::time::Duration;

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
        let text = batches(std::slice::from_ref(&one), None, Timestamp::UNIX_EPOCH).into_string();
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
            assert_eq!(state(&one, Place::Here), word);
        }
        let none = batches(&[], None, Timestamp::UNIX_EPOCH).into_string();
        assert!(none.contains("kd batch run"), "{none}");
    }

    fn view() -> FleetView {
        let worker = |name: &str, silent, asking, refuses: &[(&str, &str)]| Worker {
            name: name.into(),
            kd: "0.1.0".into(),
            lease: Duration::from_secs(60),
            silent: Duration::from_secs(silent),
            up: Duration::from_secs(7500),
            asking,
            refuses: refuses
                .iter()
                .map(|(batch, reason)| Refused {
                    batch: (*batch).into(),
                    reason: (*reason).into(),
                })
                .collect(),
            ..Worker::default()
        };
        let why = "it was started with another configuration: <i>agents.ada</i>";
        FleetView {
            store: "postgresql://kd@db.example.org/kd".into(),
            age: Some(0.2),
            workers: vec![
                worker("worker-7", 2, 3, &[]),
                worker("<b>-8", 1, 0, &[("batch-3f1c90ab", why)]),
                worker("worker-9", 75, 2, &[]),
            ],
            batches: vec![Overview {
                id: "batch-3f1c90ab".into(),
                method: "ask".into(),
                questions: "q.jsonl".into(),
                running_now: true,
                states: [("answered", 60), ("failed", 7), ("waiting", 33)].into(),
                calls: 120,
                tokens: 8000,
                usd: 1.25,
                certainty: kd_core::usage::Certainty::AtMost,
                per_second: Some(2.5),
                failures: [("overloaded".to_owned(), 7)].into(),
                dead: vec![Dead {
                    id: "q17".into(),
                    n: 17,
                    attempts: 3,
                    reason: "ada: the service is overloaded".into(),
                }],
                ..Overview::default()
            }],
            trouble: None,
        }
    }

    #[test]
    fn a_fleet_shows_its_workers_and_batches_and_an_old_view_says_so() {
        let mut view = view();
        // What is left ends 13.2 s later; the time of day is the reader's.
        let mut text = batches(&[], Some(&view), Timestamp::UNIX_EPOCH).into_string();
        let end = text.find("expected end ").expect("an end");
        text.replace_range(end + 13..end + 29, "(time)");
        for part in [
            "at work",
            "idle",
            "lost",
            "≤ $1.2500",
            "2.5/s",
            "and 6 more",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("<i>") && !text.contains("<b>-8"), "{text}");
        view.trouble = Some("the database is away".into());
        view.age = Some(125.0);
        view.batches.clear();
        view.workers.clear();
        let away = batches(&[], Some(&view), Timestamp::UNIX_EPOCH).into_string();
        assert!(away.contains("was read 2 min 5 s ago"), "{away}");
        view.age = None;
        let never = batches(&[], Some(&view), Timestamp::UNIX_EPOCH).into_string();
        assert!(!never.contains("kd worker"), "nothing is known: {never}");
        let lines = |html: &str| html.replace("><", ">\n<");
        insta::assert_snapshot!(
            "fleet",
            format!(
                "{}\n--\n{}\n--\n{}\n",
                lines(&text),
                lines(&away),
                lines(&never)
            )
        );
    }

    #[test]
    fn what_waits_says_for_what() {
        let one = Overview {
            states: BTreeMap::from([("waiting", 1)]),
            ..Overview::default()
        };
        let limited = Overview {
            limited: true,
            ..one.clone()
        };
        let refused = Overview {
            refusals: vec![kd_core::batch::Refusal::default()],
            ..one.clone()
        };
        for (one, place, word) in [
            (&one, Place::Here, "stopped"),
            (&one, Place::Fleet(0), "waiting for workers"),
            (&one, Place::Fleet(2), "waiting"),
            (&limited, Place::Fleet(2), "stopped by a limit"),
            (&refused, Place::Fleet(2), "waiting, some workers refuse it"),
        ] {
            assert_eq!(state(one, place), word);
        }
    }
}
