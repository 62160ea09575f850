//! A report on the terminal.

use super::{DISMISSED, UNCONFIRMED, alike, chance, place, severities, source, unvoted, votes};
use crate::render::clean;
use crate::render::style::Styles;
use crate::render::wrap::{clip, wrap};
use kd_app::review::report::Kept;
use kd_app::words::count;
use kd_core::build_log::inert;
use kd_core::review::{Finding, Reported, Severity};

/// Maximum code lines shown per finding.
const CODE_LINES_MAX: usize = 12;
/// Maximum other wordings of a finding shown without `--all`.
const WORDINGS_MAX: usize = 1;
/// Left margin of text.
const MARGIN: &str = "    ";
/// Before the second and later lines of a line of `kd`: no line of another kind begins there.
const HANG: &str = "      ";
/// Text wider than this is hard to read.
const COLUMNS_MAX: usize = 110;

/// Formats the lines of a report; `all` includes the folded part.
pub(crate) fn terminal(kept: &Kept, all: bool, styles: Styles, columns: usize) -> Vec<String> {
    let columns = columns.clamp(40, COLUMNS_MAX);
    let (shown, alone) = kept.folded();
    let mut lines = head(kept, &shown, styles, columns);
    let view = View {
        kept,
        all,
        styles,
        columns,
    };
    for finding in &shown {
        lines.push(String::new());
        lines.extend(view.one(finding));
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
                lines.extend(view.one(finding));
            }
        } else {
            let all = alone.iter().map(|finding| finding.chance.percent());
            let range = match (all.clone().min(), all.max()) {
                (Some(low), Some(high)) if low < high => format!("{low} to {high} %"),
                (low, _) => format!("{} %", low.unwrap_or_default()),
            };
            let line = format!("{title}, real in {range} of cases: kd review show --all");
            lines.extend(hung(&line, columns).iter().map(|l| styles.dim(l)));
        }
    }
    lines.extend(foot(kept, styles, columns));
    // In a build, the terminal is the log.
    let inert = |line: String| inert(&line).into_owned();
    lines.into_iter().map(inert).collect()
}

fn head(kept: &Kept, shown: &[&Reported], styles: Styles, columns: usize) -> Vec<String> {
    let (files, added, removed) = kept.size;
    let title = format!(
        "{} · {} · {} · {}, +{added} -{removed}",
        kept.found(shown),
        kept.reviewers(),
        clean::line(&kept.sides()),
        count(files as u64, "file"),
    );
    hung(&title, columns)
        .iter()
        .map(|line| styles.bold(line))
        .collect()
}

/// Wraps a line of `kd`. Only its first line begins at the margin, so that no name or message in it looks like a
/// separate line.
pub(crate) fn hung(text: &str, columns: usize) -> Vec<String> {
    let lines = wrap(text, columns);
    let Some((first, 1..)) = lines.split_first().map(|(first, rest)| (first, rest.len())) else {
        return lines;
    };
    // Only the first line has all columns.
    let rest = text.strip_prefix(first.as_str()).map(str::trim_start);
    let room = columns.saturating_sub(HANG.len());
    let mut lines = match rest {
        Some(rest) => vec![first.clone()]
            .into_iter()
            .chain(wrap(rest, room))
            .collect(),
        None => wrap(text, room),
    };
    for line in lines.iter_mut().skip(1) {
        line.insert_str(0, HANG);
    }
    lines
}

/// How findings are shown.
struct View<'k> {
    kept: &'k Kept,
    /// Whether all words of all members are shown.
    all: bool,
    styles: Styles,
    columns: usize,
}

impl View<'_> {
    fn one(&self, finding: &Reported) -> Vec<String> {
        let Some(about) = finding.finding() else {
            return Vec::new();
        };
        let styles = self.styles;
        let mut lines = self.place(finding, about);
        lines.extend(self.quoted(&about.claim));
        let figures = format!(
            "P(real) {}, {}",
            chance(&finding.chance),
            source(&finding.chance)
        );
        lines.extend(self.own(&figures));
        if let Some(alike) = alike(finding) {
            lines.extend(self.own(&alike));
        }
        let mut said = format!("found by {}", finding.makers().join(", "));
        if !finding.votes.is_empty() {
            said += &format!(" · votes: {}", votes(finding));
        }
        if let Some(names) = unvoted(finding) {
            said += &format!(" · no vote: {names}");
        }
        let mut dim = vec![said];
        dim.extend(severities(finding).map(|severities| format!("severity: {severities}")));
        for line in dim {
            lines.extend(self.own(&line).iter().map(|line| styles.dim(line)));
        }
        if self.kept.is_dismissed(finding) {
            lines.extend(self.own(&format!("dismissed: {DISMISSED}")));
        }
        if finding.is_unconfirmed() {
            lines.extend(self.own(&format!("unconfirmed: {UNCONFIRMED}")));
        }
        if let Some(conditions) = self.kept.meets(finding) {
            let line = format!("meets {conditions}");
            lines.extend(self.own(&line).iter().map(|line| styles.bold(line)));
        }
        if !about.evidence.trim().is_empty() {
            lines.extend(self.own("why:"));
            lines.extend(self.quoted(&about.evidence));
        }
        lines.extend(self.code(about));
        if let Some(change) = &about.change {
            lines.extend(self.own("suggested:"));
            lines.extend(self.change(change));
        }
        lines.extend(self.others(finding));
        lines
    }

    /// Formats the first line, and the whole path where it does not fit.
    fn place(&self, finding: &Reported, about: &Finding) -> Vec<String> {
        let styles = self.styles;
        let severity = finding.severity();
        let word = severity.word().to_uppercase();
        let id = clean::line(&finding.id);
        let place = clean::line(&place(about));
        let room = self
            .columns
            .saturating_sub(word.len() + id.chars().count() + 4);
        let short = clip(&place, room);
        let word = match severity {
            Severity::Blocker | Severity::Major => styles.bad(&word),
            _ => styles.bold(&word),
        };
        let mut lines = vec![format!(
            "{word}  {}  {}",
            styles.bold(&short),
            styles.dim(&id)
        )];
        if short != place {
            lines.extend(self.own("at:"));
            lines.extend(self.quoted(&place));
        }
        lines
    }

    /// Wraps a line of `kd`.
    fn own(&self, text: &str) -> Vec<String> {
        let lines = hung(
            &clean::line(text),
            self.columns.saturating_sub(MARGIN.len()),
        );
        lines.iter().map(|line| format!("{MARGIN}{line}")).collect()
    }

    /// Returns the mark before each line of members' text. No other line has it at this place, so that no text of a
    /// member passes for a line of `kd`.
    fn mark(&self) -> String {
        let mark = self.styles.glyph("│", "|");
        format!("{MARGIN}{} ", self.styles.dim(mark))
    }

    /// Wraps a member's text behind the mark.
    fn quoted(&self, text: &str) -> Vec<String> {
        let mark = self.mark();
        let room = self.columns.saturating_sub(MARGIN.len() + 2);
        let lines = wrap(&clean::line(text), room);
        lines.iter().map(|line| format!("{mark}{line}")).collect()
    }

    fn code(&self, about: &Finding) -> Vec<String> {
        let quoted: Vec<&str> = about.quote.lines().collect();
        let width = about.lines.last.to_string().len().max(3);
        let room = self.columns.saturating_sub(MARGIN.len() + width + 3);
        let shown = (u64::from(about.lines.first)..).zip(quoted.iter().take(CODE_LINES_MAX));
        let bar = self.styles.glyph("│", "|");
        let mut lines: Vec<String> = shown
            .map(|(number, line)| {
                let number = self.styles.dim(&format!("{number:>width$} {bar}"));
                format!("{MARGIN}{number} {}", fit(line, room))
            })
            .collect();
        if quoted.len() > CODE_LINES_MAX {
            let more = count((quoted.len() - CODE_LINES_MAX) as u64, "line");
            lines.push(format!(
                "{MARGIN}{}",
                self.styles.dim(&format!("… {more} more"))
            ));
        }
        lines
    }

    fn change(&self, change: &str) -> Vec<String> {
        let mark = self.mark();
        let room = self.columns.saturating_sub(MARGIN.len() + 2);
        let change: Vec<&str> = change.lines().collect();
        let shown = change.iter().take(CODE_LINES_MAX);
        let mut lines: Vec<String> = shown
            .map(|line| format!("{mark}{}", fit(line, room)))
            .collect();
        if change.len() > CODE_LINES_MAX {
            lines.push(format!("{MARGIN}{}", self.styles.dim("…")));
        }
        lines
    }

    /// Formats other members' wordings of the finding: the first one, or all of them with their suggested changes.
    fn others(&self, finding: &Reported) -> Vec<String> {
        let others = finding.cluster.other_wordings();
        let mut lines = Vec::new();
        let most = if self.all { others.len() } else { WORDINGS_MAX };
        for raw in others.iter().take(most) {
            lines.extend(self.own(&format!("in the words of {}:", raw.member)));
            let claim = self.quoted(&raw.finding.claim);
            match &raw.finding.change {
                Some(change) if self.all => {
                    lines.extend(claim);
                    lines.extend(self.own(&format!("suggested by {}:", raw.member)));
                    lines.extend(self.change(change));
                }
                _ => lines.extend(claim),
            }
        }
        if others.len() > most {
            let more = format!(
                "… {} more: --all",
                count((others.len() - most) as u64, "wording")
            );
            lines.push(format!("{MARGIN}{}", self.styles.dim(&more)));
        }
        lines
    }
}

fn foot(kept: &Kept, styles: Styles, columns: usize) -> Vec<String> {
    let report = &kept.report;
    let mut notes = kept.lacks();
    notes.extend(report.notices.iter().cloned());
    notes.extend(super::limits(&report.findings).map(str::to_owned));
    notes.extend(kept.verdict());
    if notes.is_empty() {
        return notes;
    }
    let mut lines = vec![String::new()];
    for note in notes {
        let note = format!("note: {}", clean::line(&note));
        lines.extend(hung(&note, columns).iter().map(|line| styles.dim(line)));
    }
    lines
}

/// Cuts a line of code to fit, keeping its indentation.
fn fit(line: &str, columns: usize) -> String {
    clip(&clean::text(line).replace('\n', " "), columns)
}
