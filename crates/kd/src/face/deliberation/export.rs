//! The complete record of a deliberation as Markdown or JSON. `kd_page` renders it as a page.

use super::{map, tables};
use crate::face::{document, json};
use crate::render::style::Styles;
use kd_core::Message;
use kd_core::deliberation::report::{Report, SeatState};
use kd_core::deliberation::why;
use kd_core::markdown::{embed, escape_line};
use serde_json::json as object;
use std::fmt::Write as _;
use std::io;

/// Sections and messages are below headings of up to the third level.
const LEVEL: usize = 3;

/// The document's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Markdown,
    Json,
}

/// Renders the document. `messages` are the thread's messages that it may quote.
pub(crate) fn text(form: Form, report: &Report, messages: &[Message]) -> io::Result<String> {
    Ok(match form {
        Form::Markdown => markdown(report, messages),
        Form::Json => json::text(&value(report, messages), true)? + "\n",
    })
}

/// Returns the report as one JSON object.
pub(crate) fn value(report: &Report, messages: &[Message]) -> serde_json::Value {
    let mut value = object!({
        "v": kd_core::formats::DELIBERATE.version,
        "thread_id": report.thread,
        "outcome": report.verdict.as_ref().map(|v| v.outcome),
        "verdict": report.verdict,
        "plan": report.plan,
        "stages": report.stages,
        "counts": report.counts,
        "map": report.map(),
        "claims": report.map().claims,
        "confidence_trend": report.trend(),
        "decisions": report.decisions,
        "remembered": report.remembered,
        "notices": report.notices,
        "usage": report.usage,
        "messages": messages,
    });
    // The record may be somebody else's: it promises the reader nothing.
    if let Some(promised) = &report.promised {
        value["promised_then"] = object!(promised);
    }
    value
}

fn markdown(report: &Report, messages: &[Message]) -> String {
    let mut out = String::new();
    let question = report
        .plan
        .as_ref()
        .map(|p| p.question.as_str())
        .unwrap_or_default();
    let title = document::title(question);
    let _ = writeln!(out, "# {}\n", escape_line(&title));
    if question.trim() != title {
        let _ = writeln!(out, "{}\n", embed(question, LEVEL).trim_end());
    }
    if let Some(verdict) = &report.verdict {
        let _ = writeln!(out, "{}\n", embed(&verdict.answer, LEVEL));
    }
    for (title, lines) in [
        (
            "The plan",
            report
                .plan
                .as_ref()
                .map(|p| tables::plan(p, Styles::NONE))
                .unwrap_or_default(),
        ),
        ("The vote", tables::vote(report, 200, Styles::NONE)),
        (
            map::title(&report.map()),
            map::lines(report, 200, Styles::NONE),
        ),
        ("Agreement", tables::trend(report, Styles::NONE)),
    ] {
        if !lines.is_empty() {
            let _ = writeln!(
                out,
                "## {title}\n\n```text\n{}\n```\n",
                lines.join("\n").replace("```", "` ` `")
            );
        }
    }
    let _ = writeln!(out, "## What happened\n");
    for stage in &report.stages {
        let _ = writeln!(out, "- {}", escape_line(&stage.heading()));
        for seat in &stage.seats {
            let state = match seat.state {
                SeatState::Replied if seat.what.is_empty() => "done".to_owned(),
                SeatState::Replied => seat.what.clone(),
                SeatState::Failed => format!("failed: {}", seat.what),
                SeatState::Cut => format!("not asked: {}", seat.what),
                SeatState::Asked | SeatState::Waiting => "no reply".to_owned(),
            };
            let _ = writeln!(
                out,
                "  - {}: {}",
                seat.seat,
                escape_line(&crate::render::clean::line(&state))
            );
        }
    }
    let _ = writeln!(out, "\n## Why\n");
    for line in why(report) {
        let line = crate::render::clean::line(&line);
        let _ = writeln!(out, "- {}", escape_line(&line));
    }
    let _ = writeln!(out, "\n## Messages\n");
    for message in messages {
        let _ = writeln!(
            out,
            "### #{} {}\n\n{}\n",
            message.seq,
            escape_line(&message.from),
            embed(&message.body, LEVEL).trim_end()
        );
    }
    out
}
