//! Explains the verdict in plain words, from the record.

use super::forecast::counted_by;
use super::iteration;
use super::report::Report;
use crate::memory::Line;

/// Explains the decision of the council: each important step, in order.
pub fn why(report: &Report) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(plan) = &report.plan {
        let names: Vec<String> = plan
            .seats
            .iter()
            .map(|s| format!("{} ({})", s.name(), s.role))
            .collect();
        out.push(format!(
            "The members were {}, in the protocol {}, because {}.",
            names.join(", "),
            plan.protocol,
            plan.meta.reasoning.trim_end_matches('.')
        ));
        let (kind, told) = match &report.settled {
            Some((kind, why)) => (kind, format!(", as {why}")),
            None => (&plan.answers, String::new()),
        };
        let by = match counted_by(plan) {
            Some(rule) => format!("the vote went by {rule}"),
            None => "the middle of the estimates decided".to_owned(),
        };
        let kind = kind.words();
        out.push(format!("Answers were compared as {kind}{told}; {by}."));
    }
    out.extend(
        report
            .enough
            .iter()
            .map(|told| format!("{}.", capitalized(told))),
    );
    if let Some((by, question)) = &report.asks_back {
        out.push(format!("No promise covered the verdict and the members disagreed, so the council asked you, in words of {by}: \"{question}\""));
    }
    for notice in &report.notices {
        out.push(format!("{notice}."));
    }
    for grouping in &report.groupings {
        let by: Vec<&str> = grouping.by.iter().map(|seat| seat.as_str()).collect();
        out.push(format!(
            "Pass {}, answers compared by {}: {}.",
            grouping.pass,
            match by.is_empty() {
                true => "nobody".to_owned(),
                false => by.join(" and "),
            },
            grouping.told()
        ));
    }
    for counted in &report.counts {
        let place = match counted.depth {
            0 => format!("Pass {}", counted.pass),
            depth => format!("Sub-council {depth} of pass {}", counted.pass),
        };
        let who: Vec<String> = counted
            .firsts
            .iter()
            .map(|f| match f.names(&counted.candidates) {
                Some(name) => format!("{} for {name}{}", f.seat, because(&f.reason)),
                None => format!("{} abstained", f.seat),
            })
            .collect();
        out.push(format!(
            "{place}, {}: {}.",
            counted.source_words(),
            who.join("; ")
        ));
        out.extend(
            counted
                .rounds
                .iter()
                .enumerate()
                .map(|(at, r)| format!("Round {} of the count: {r}.", at + 1)),
        );
        out.extend(
            counted
                .abstained
                .iter()
                .map(|a| format!("Not counted: {a}.")),
        );
        out.extend(counted.tie_path.iter().map(|t| format!("Tie, {t}.")));
        out.extend(counted.notes.iter().map(|n| format!("{n}.")));
        let result = match counted.winner.and_then(|w| counted.candidates.get(w)) {
            Some(winner) if counted.is_drawn() => format!("{winner} was drawn by lot"),
            Some(winner) => format!("{winner} won"),
            None => "Nobody won".to_owned(),
        };
        out.push(match counted.is_one_voice() {
            true => format!("{result}: only one voter was asked."),
            // The notes say how many are near it.
            false if counted.is_of_estimates() => {
                format!("{result}, agreement {:.2}.", counted.agreement)
            }
            false => format!(
                "{result}: {}, {} of {} put it first, agreement {:.2}.",
                counted.form.word(),
                counted.backers,
                counted.voters,
                counted.agreement
            ),
        });
    }
    for decision in &report.decisions {
        out.push(
            format!(
                "After pass {}: {:?}, since {}.",
                decision.iteration,
                decision.action,
                iteration::words(&decision.reason)
            )
            .to_owned(),
        );
    }
    out.extend(report.remembered.iter().map(remembered));
    if let Some(verdict) = &report.verdict {
        let by = verdict.by.as_ref().map_or(
            "nobody (extracted from the replies)".to_owned(),
            ToString::to_string,
        );
        let cites: Vec<String> = verdict.cites.iter().map(|m| format!("#{m}")).collect();
        out.push(format!(
            "{}. Written by {by}; it rests on {}; result of pass {} of {}.",
            verdict.heading,
            if cites.is_empty() {
                "no message".to_owned()
            } else {
                cites.join(", ")
            },
            verdict.best_pass,
            verdict.passes
        ));
        out.extend(verdict.troubles.iter().map(|t| format!("On the way: {t}.")));
        let promised = report.promised.as_ref();
        out.extend(promised.map(|promise| capitalized(&promise.words_then()) + "."));
        out.push(format!("It used {}.", verdict.spent.words(", ")));
    } else {
        out.push("It did not conclude.".into());
    }
    out
}

/// Returns a text that begins with a capital letter.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn because(reason: &str) -> String {
    match reason.is_empty() {
        true => String::new(),
        false => format!(" (“{reason}”)"),
    }
}

fn remembered(line: &Line) -> String {
    let from: Vec<String> = line.messages.iter().map(|m| format!("#{m}")).collect();
    format!("Remembered from {}: {}", from.join(", "), line.text)
}
