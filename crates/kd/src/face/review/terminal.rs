//! A report on the terminal.

use super::kept::Kept;
use super::{chance, place, source, votes};
use crate::render::clean;
use crate::render::style::Styles;
use crate::render::wrap::{clip, wrap};
use kd_app::words::count;
use kd_core::build_log::inert;
use kd_core::review::{Reported, Severity};

/// Maximum code lines shown per finding.
const CODE_LINES_MAX: usize = 12;
/// Left margin of text.
const MARGIN: &str = "    ";
/// Text wider than this is hard to read.
const COLUMNS_MAX: usize = 110;

/// Formats the lines of a report; `all` includes the folded part.
pub(crate) fn terminal(kept: &Kept, all: bool, styles: Styles, columns: usize) -> Vec<String> {
    let columns = columns.clamp(40, COLUMNS_MAX);
    let (shown, alone) = kept.folded();
    let mut lines = head(kept, shown.len(), styles, columns);
    for finding in &shown {
        lines.push(String::new());
        lines.extend(one(finding, styles, columns));
    }
    if !alone.is_empty() {
        lines.push(String::new());
        let title = format!(
            "only one member saw {}",
            count(alone.len() as u64, "finding")
        );
        if all {
            lines.push(styles.bold(&title));
            for finding in &alone {
                lines.push(String::new());
                lines.extend(one(finding, styles, columns));
            }
        } else {
            let (low, high) = alone
                .iter()
                .fold((1.0_f64, 0.0_f64), |(low, high), finding| {
                    (
                        low.min(finding.chance.share),
                        high.max(finding.chance.share),
                    )
                });
            let range = match super::points(low) == super::points(high) {
                true => super::percent(low),
                false => format!("{} to {}", super::points(low), super::percent(high)),
            };
            let line = format!("{title}, real in {range} of cases: kd review show --all");
            lines.extend(wrap(&line, columns).iter().map(|l| styles.dim(l)));
        }
    }
    lines.extend(foot(kept, styles, columns));
    // In a build, the terminal is the log.
    let inert = |line: String| inert(&line).into_owned();
    lines.into_iter().map(inert).collect()
}

fn head(kept: &Kept, shown: usize, styles: Styles, columns: usize) -> Vec<String> {
    let (files, added, removed) = kept.size;
    let report = &kept.report;
    let of = kept.reviewers();
    let found = match shown {
        0 => "no finding".to_owned(),
        n => count(n as u64, "finding"),
    };
    let title = format!(
        "{found} · {of} · {} to {} · {}, +{added} -{removed}",
        clean::line(&report.base),
        clean::line(&report.head),
        count(files as u64, "file"),
    );
    wrap(&title, columns)
        .iter()
        .map(|line| styles.bold(line))
        .collect()
}

fn one(finding: &Reported, styles: Styles, columns: usize) -> Vec<String> {
    let Some(about) = finding.finding() else {
        return Vec::new();
    };
    let severity = about.severity.word().to_uppercase();
    let severity = match about.severity {
        Severity::Blocker | Severity::Major => styles.bad(&severity),
        _ => styles.bold(&severity),
    };
    let mut lines = vec![format!(
        "{severity}  {}  {}",
        styles.bold(&clean::line(&place(about))),
        styles.dim(&clean::line(&finding.id)),
    )];
    let mut text = |label: &str, text: &str, paint: bool| {
        let text = format!("{label}{}", clean::line(text));
        for line in wrap(&text, columns.saturating_sub(MARGIN.len())) {
            let line = if paint { styles.dim(&line) } else { line };
            lines.push(format!("{MARGIN}{line}"));
        }
    };
    text("", &about.claim, false);
    text(
        "P(real) ",
        &format!("{}, {}", chance(&finding.chance), source(&finding.chance)),
        false,
    );
    let mut said = format!("found by {}", finding.makers().join(", "));
    if !finding.votes.is_empty() {
        said += &format!(" · votes: {}", votes(finding));
    }
    text("", &said, true);
    if !about.evidence.trim().is_empty() {
        text("why: ", &about.evidence, false);
    }
    let quoted: Vec<&str> = about.quote.lines().collect();
    let width = about.lines.last.to_string().len().max(3);
    let room = columns.saturating_sub(MARGIN.len() + width + 3);
    for (number, line) in (about.lines.first..).zip(quoted.iter().take(CODE_LINES_MAX)) {
        let line = fit(line, room);
        lines.push(format!(
            "{MARGIN}{} {line}",
            styles.dim(&format!("{number:>width$} {}", styles.glyph("│", "|")))
        ));
    }
    if quoted.len() > CODE_LINES_MAX {
        let more = count((quoted.len() - CODE_LINES_MAX) as u64, "line");
        lines.push(format!("{MARGIN}{}", styles.dim(&format!("… {more} more"))));
    }
    if let Some(change) = &about.change {
        lines.push(format!("{MARGIN}suggested:"));
        let change: Vec<&str> = change.lines().collect();
        for line in change.iter().take(CODE_LINES_MAX) {
            lines.push(format!("{MARGIN}  {}", fit(line, room)));
        }
        if change.len() > CODE_LINES_MAX {
            lines.push(format!("{MARGIN}  {}", styles.dim("…")));
        }
    }
    lines
}

fn foot(kept: &Kept, styles: Styles, columns: usize) -> Vec<String> {
    let report = &kept.report;
    let mut notes = Vec::new();
    for member in &report.members {
        if let Some(why) = &member.failed {
            notes.push(format!("{} gave no review: {why}", member.name));
        }
    }
    for member in report.members.iter().filter(|member| member.dropped > 0) {
        let dropped = count(member.dropped.into(), "finding");
        notes.push(format!(
            "dropped {dropped} of {}: not in the code",
            member.name
        ));
    }
    notes.extend(report.notices.iter().cloned());
    notes.extend(super::limits(&report.findings).map(str::to_owned));
    if notes.is_empty() {
        return notes;
    }
    let mut lines = vec![String::new()];
    for note in notes {
        let note = format!("note: {}", clean::line(&note));
        lines.extend(wrap(&note, columns).iter().map(|line| styles.dim(line)));
    }
    lines
}

/// Cuts a line of code to fit, keeping its indentation.
fn fit(line: &str, columns: usize) -> String {
    clip(&clean::text(line).replace('\n', " "), columns)
}
