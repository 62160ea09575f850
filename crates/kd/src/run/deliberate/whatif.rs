//! `kd replay --without …`: what would have been decided, from the recorded replies.

use super::super::here::Here;
use crate::args::deliberate::Replay;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use crate::render::wrap::{clip, width};
use kd_core::deliberation::report::Report;
use kd_core::deliberation::{Change, Decided, Robustness, WhatIf, what_if, without_weights};
use kd_core::{Record, SeatName, ThreadId};
use kd_vote::Outcome;
use serde_json::json as object;
use std::io::Write;

/// Recomputes the decision with the requested changes.
pub(super) fn run(
    args: &Replay,
    here: &Here,
    thread: &ThreadId,
    records: &[Record],
) -> Result<Exit, Error> {
    let change = change(args)?;
    let found = what_if(records, &change, args.all_rules)?;
    // Among all rules is one that uses them.
    if let Some(rule) = without_weights(records, &change).filter(|_| !args.all_rules) {
        return Err(Error::usage(format!("{rule} uses no weights")).next("add `--rule weighted`"));
    }
    let then = what_if(records, &Change::default(), false)?;
    let mut out = crate::out::stdout().lock();
    if args.json {
        let value = object!({
            "v": kd_core::formats::WHAT_IF.version,
            "thread_id": thread,
            "counterfactual": true,
            "change": {
                "without": change.without,
                "rule": change.rule,
                "seed": change.seed,
                "weights": change.weights.iter().map(|(name, w)| (name.to_string(), object!(w))).collect::<serde_json::Map<_, _>>(),
            },
            "recorded": then.decided,
            "would_be": found.decided,
            "stopped": found.stopped,
            "replies": found.replies,
            "asked_otherwise": found.asked_otherwise,
            "counts": found.counts,
            "decisions": found.decisions,
            "robustness": found.robustness,
            "sentence": found.robustness.as_ref().and_then(Robustness::sentence),
        });
        writeln!(out, "{}", json::text(&value, true)?)?;
        return Ok(Exit::Done);
    }
    let columns = here.columns().min(100);
    for line in told(&change, &then, &found) {
        for line in crate::render::wrap::wrap(&clean::line(&line), columns.saturating_sub(1)) {
            writeln!(out, "{line}")?;
        }
    }
    if let Some(robust) = &found.robustness {
        writeln!(out)?;
        for line in table(robust, columns, here) {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Describes what the result depends on, for `kd why`. `None` if the record does not lead to its verdict.
pub(super) fn sentence(records: &[Record], report: &Report) -> Option<String> {
    kd_core::deliberation::robustness(records, report.verdict.as_ref()?)?.sentence()
}

fn change(args: &Replay) -> Result<Change, Error> {
    let seat = |name: &String| {
        SeatName::new(name.trim_start_matches('@')).map_err(|e| Error::usage(e.to_string()))
    };
    let mut change = Change {
        rule: args.rule.clone(),
        seed: args.seed,
        ..Change::default()
    };
    for name in &args.without {
        change.without.push(seat(name)?);
    }
    for (name, weight) in &args.weights {
        change.weights.push((seat(name)?, *weight));
    }
    Ok(change)
}

/// Describes the result in lines.
fn told(change: &Change, then: &WhatIf, found: &WhatIf) -> Vec<String> {
    let replies = kd_app::words::count(found.replies as u64, "recorded reply");
    let replies = replies.replace("replys", "replies");
    let mut lines = vec![format!(
        "what if: {}; from {replies}, no model asked",
        changes(change)
    )];
    if found.asked_otherwise > 0 {
        lines.push(format!(
            "Counterfactual: {} of these replies answered questions that would have read differently; members are assumed to say the same.",
            found.asked_otherwise
        ));
    } else if *change != Change::default() && found.decided.is_some() {
        lines.push("Counterfactual: every question would have read the same.".to_owned());
    }
    if let Some(decided) = &then.decided {
        lines.push(format!("recorded: {}", decision(decided)));
    }
    match (&found.decided, &found.stopped) {
        (Some(decided), _) => lines.push(format!("would be: {}", decision(decided))),
        (None, why) => lines.push(format!(
            "would be: not known: {}",
            why.as_deref().unwrap_or("it was interrupted")
        )),
    }
    for counted in &found.counts {
        let who: Vec<String> = counted
            .firsts
            .iter()
            .map(|first| match first.names(&counted.candidates) {
                Some(name) => format!("{} for {name}", first.seat),
                None => format!("{} abstained", first.seat),
            })
            .collect();
        lines.push(format!(
            "pass {}, {}: {}",
            counted.pass,
            counted.source_words(),
            who.join("; ")
        ));
    }
    lines
}

fn changes(change: &Change) -> String {
    let mut parts = Vec::new();
    if !change.without.is_empty() {
        let names: Vec<&str> = change.without.iter().map(SeatName::as_str).collect();
        parts.push(format!("without {}", names.join(", ")));
    }
    parts.extend(change.rule.as_ref().map(|rule| format!("by {rule}")));
    parts.extend(change.seed.map(|seed| format!("seed {seed}")));
    if !change.weights.is_empty() {
        let weights = change.weights.iter().map(|(name, w)| format!("{name}={w}"));
        parts.push(format!(
            "weights {}",
            weights.collect::<Vec<_>>().join(", ")
        ));
    }
    match parts.is_empty() {
        true => "nothing changed".to_owned(),
        false => parts.join(", "),
    }
}

fn decision(decided: &Decided) -> String {
    match &decided.winner {
        Some(winner) if decided.form == Outcome::Split => match decided.untied_by.as_deref() {
            None | Some("lot") => format!("{} (a lot drew {winner})", decided.heading),
            Some(step) => format!("{} ({winner} by {step})", decided.heading),
        },
        Some(winner) => format!("{winner}: {}", decided.heading),
        None => decided.heading.clone(),
    }
}

/// Formats the rules and their winners, then the sentence.
fn table(robust: &Robustness, columns: usize, here: &Here) -> Vec<String> {
    let styles = here.out_styles();
    let names = robust.rules.iter().map(|by| width(by.rule));
    let names = names.max().unwrap_or_default();
    let mut lines: Vec<String> = robust
        .rules
        .iter()
        .map(|by| {
            let (mark, what) = match (&by.winner, by.voters) {
                (_, 0) => ("-", "cannot count these ballots".to_owned()),
                (None, _) => (
                    if robust.winner.is_none() { "=" } else { "≠" },
                    "nobody".to_owned(),
                ),
                (Some(winner), _) => (if by.same { "=" } else { "≠" }, clean::line(winner)),
            };
            let mark = match mark {
                "≠" => styles.glyph("≠", "!"),
                other => other,
            };
            let line = format!("{mark} {:names$}  {what}", by.rule);
            clip(&line, columns.saturating_sub(1))
        })
        .collect();
    if let Some(sentence) = robust.sentence() {
        lines.push(String::new());
        lines.extend(crate::render::wrap::wrap(
            &clean::line(&sentence),
            columns.saturating_sub(1),
        ));
    }
    lines
}
