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

/// Messages are below headings of up to the third level.
const LEVEL: usize = 3;
/// Maximum columns of the tables in documents.
const TABLE_COLUMNS: usize = 200;
/// The mark of a conclusion that the token limit cut.
pub(super) const CUT_MARK: &str = "…[cut at the token limit]";

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
        "usage": report.usage.to_json(),
        "messages": messages,
    });
    // The record may be somebody else's: it promises the reader nothing.
    if let Some(promised) = &report.promised {
        value["promised_then"] = object!(promised);
    }
    value
}

/// Renders what was decided, and how: a document for a pipe.
pub(crate) fn decided(report: &Report) -> String {
    let mut out = head(report);
    counted(report, &mut out);
    let mut foot = Vec::new();
    if let Some(verdict) = &report.verdict {
        foot.push(verdict.spent.words(" · "));
        foot.push(format!("stopped: {}", verdict.stopped_words()));
    }
    foot.extend(
        report
            .thread
            .iter()
            .map(|thread| format!("thread {thread}")),
    );
    let foot = crate::render::clean::line(&foot.join(" · "));
    let _ = writeln!(out, "---\n\n{}", escape_line(&foot));
    out
}

/// Renders the question as the title, and the verdict.
fn head(report: &Report) -> String {
    let plan = report.plan.as_ref();
    let mut out = document::opening(plan.map_or("", |plan| &plan.question));
    let Some(verdict) = &report.verdict else {
        return out;
    };
    // The verdict's own heading is that of a section here.
    let heading = format!("## {}\n", verdict.heading);
    let answer = verdict.answer.strip_prefix(&heading);
    let answer = answer.unwrap_or(&verdict.answer).trim();
    let _ = writeln!(out, "## {}\n", escape_line(&verdict.heading));
    let mut answer = embed(answer, 2).trim_end().to_owned();
    if report.conclusion_cut {
        answer.push_str(CUT_MARK);
    }
    if !answer.is_empty() {
        let _ = writeln!(out, "{answer}\n");
    }
    out
}

/// Renders the vote, the answers and the agreement.
fn counted(report: &Report, out: &mut String) {
    let map = map::lines(report, TABLE_COLUMNS, Styles::NONE);
    let vote = tables::vote(report, TABLE_COLUMNS, Styles::NONE);
    table("The vote", &vote, out);
    table(map::title(&report.map()), &map, out);
    table("Agreement", &tables::trend(report, Styles::NONE), out);
}

/// Renders a table as a section; nothing without lines.
fn table(title: &str, lines: &[String], out: &mut String) {
    if !lines.is_empty() {
        let text = lines.join("\n").replace("```", "` ` `");
        let _ = writeln!(out, "## {title}\n\n```text\n{text}\n```\n");
    }
}

fn markdown(report: &Report, messages: &[Message]) -> String {
    let mut out = head(report);
    let plan = report.plan.as_ref();
    let plan = plan.map(|plan| tables::plan(plan, Styles::NONE));
    table("The plan", &plan.unwrap_or_default(), &mut out);
    counted(report, &mut out);
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
