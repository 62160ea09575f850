//! A report as Markdown, for files and for comments on code hosts.
//!
//! Members' text becomes plain text or code: all Markdown syntax is escaped, and what code hosts turn into links,
//! mentions or commands without any syntax is broken up by an invisible character.

use super::{DISMISSED, UNCONFIRMED, alike, chance, place, severities, source, unvoted, votes};
use kd_app::review::report::Kept;
use kd_app::words::count;
use kd_core::build_log::inert;
use kd_core::clean::{clean_line, clean_text};
use kd_core::review::{Finding, Reported};
use std::fmt::Write as _;

/// Maximum characters of a member's text.
const CHARS_MAX: usize = 4000;
/// Bytes of a note besides its text.
const ROW_BYTES: usize = 3;
/// Minimum hexadecimal digits that code hosts read as a commit.
const COMMIT_DIGITS_MIN: usize = 7;
/// Inserted between two characters that a code host would combine.
const BREAK: char = '\u{200b}';

/// Renders the whole report; `all` includes what only one member found.
pub(super) fn document(kept: &Kept, all: bool) -> String {
    let (shown, alone) = kept.folded();
    let (files, added, removed) = kept.size;
    let mut out = format!(
        "# Review of {}\n\n{}; {}; {}, +{added} -{removed}.\n",
        text(&kept.sides()),
        kept.found(&shown),
        kept.reviewers(),
        count(files as u64, "file"),
    );
    for finding in &shown {
        section(&mut out, kept, finding);
    }
    if !alone.is_empty() {
        let title = count(alone.len() as u64, "finding");
        if all {
            let _ = write!(out, "\n# Only one member saw {title}\n");
            alone
                .iter()
                .for_each(|finding| section(&mut out, kept, finding));
        } else {
            let _ = write!(out, "\nOnly one member saw {title}, not shown here.\n");
        }
    }
    out + &notes(kept, usize::MAX)
}

/// Renders failures, dropped findings and notices. Leaves out those that do not fit into `bytes_max`.
pub(super) fn notes(kept: &Kept, bytes_max: usize) -> String {
    let report = &kept.report;
    let limits = super::limits(&report.findings);
    let mut rows: Vec<String> = kept.lacks().iter().map(|lack| text(lack)).collect();
    rows.extend(kept.verdict().map(|verdict| text(&verdict)));
    rows.extend(
        report
            .notices
            .iter()
            .map(String::as_str)
            .chain(limits)
            .map(text),
    );
    let mut out = "\n## Notes\n\n".to_owned();
    let head = out.len();
    for row in rows {
        if out.len() + row.len() + ROW_BYTES <= bytes_max {
            let _ = writeln!(out, "- {row}");
        }
    }
    match out.len() == head {
        true => String::new(),
        false => out,
    }
}

fn section(out: &mut String, kept: &Kept, finding: &Reported) {
    let Some(about) = finding.finding() else {
        return;
    };
    let _ = write!(
        out,
        "\n## {}: {}\n\n{}",
        finding.severity().word(),
        code(&place(about)),
        body(kept, finding, about)
    );
    if let Some(conditions) = kept.meets(finding) {
        let _ = write!(out, "\nMeets {}.\n", code(&conditions));
    }
    let _ = write!(out, "\n{}", block(&about.quote));
    change(out, about);
}

/// Renders a finding without its place and code, for a comment next to the code.
pub(super) fn comment(kept: &Kept, finding: &Reported, about: &Finding) -> String {
    let mut out = format!(
        "**{}**\n\n{}",
        finding.severity().word(),
        body(kept, finding, about)
    );
    change(&mut out, about);
    out
}

/// Renders the members' texts, in quotes that they cannot end, and the figures.
fn body(kept: &Kept, finding: &Reported, about: &Finding) -> String {
    let mut out = format!(
        "> {}\n\nP(real) {}, {}. Found by {}.",
        text(&about.claim),
        chance(&finding.chance),
        source(&finding.chance),
        text(&finding.makers().join(", "))
    );
    if let Some(alike) = alike(finding) {
        let _ = write!(out, " Note: {alike}.");
    }
    if !finding.votes.is_empty() {
        let _ = write!(out, " Votes: {}.", text(&votes(finding)));
    }
    if let Some(names) = unvoted(finding) {
        let _ = write!(out, " No vote: {}.", text(&names));
    }
    if kept.is_dismissed(finding) {
        let _ = write!(out, " Dismissed: {DISMISSED}.");
    }
    if finding.is_unconfirmed() {
        let _ = write!(out, " Unconfirmed: {UNCONFIRMED}.");
    }
    if let Some(severities) = severities(finding) {
        let _ = write!(out, " Severity: {}.", text(&severities));
    }
    let _ = writeln!(out, " Id {}.", code(&finding.id));
    if !about.evidence.trim().is_empty() {
        let _ = write!(out, "\nWhy:\n\n> {}\n", text(&about.evidence));
    }
    for raw in finding.cluster.other_wordings() {
        let (name, claim) = (text(&raw.member), text(&raw.finding.claim));
        let _ = write!(out, "\nIn the words of {name}:\n\n> {claim}\n");
    }
    out
}

/// Renders the suggested change as plain code, never as a block that a host would apply with a click.
fn change(out: &mut String, about: &Finding) {
    if let Some(change) = &about.change {
        let _ = write!(out, "\nSuggested:\n\n{}", block(change));
    }
}

/// Escapes a text as one line of prose.
///
/// Code hosts look for references in the rendered text, where escapes are gone. An invisible character in each reference
/// hides it from them.
pub(super) fn text(foreign: &str) -> String {
    let line: Vec<char> = clean_line(foreign, CHARS_MAX).chars().collect();
    let mut out = String::with_capacity(line.len() + line.len() / 8);
    let mut digits = 0;
    for (at, c) in line.iter().copied().enumerate() {
        digits = match c.is_ascii_hexdigit() {
            true => digits + 1,
            false => 0,
        };
        if digits == COMMIT_DIGITS_MIN {
            out.push(BREAK);
            digits = 1;
        }
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
        if joins(&line[..at], c, &line[at + 1..]) {
            out.push(BREAK);
        }
    }
    out
}

/// Returns whether a code host could read a character and those after it as a reference, an address or an emoji.
fn joins(before: &[char], c: char, after: &[char]) -> bool {
    let Some(next) = after.first().copied().filter(|next| !next.is_whitespace()) else {
        return false;
    };
    match c {
        // Mentions, and references to issues, changes, labels, milestones, snippets, epics and iterations; references
        // with a name in brackets.
        '@' | '#' | '!' | '~' | '%' | '$' | '&' | '^' | '*' | '[' => true,
        // Issues of trackers, advisories: GH-26, CVE-2021-44228.
        '-' => before.last().is_some_and(|last| {
            last.is_ascii_uppercase() || last.is_alphanumeric() && next.is_ascii_digit()
        }),
        // Addresses, and emoji.
        ':' => next == '/' || is_emoji(after),
        'w' | 'W' => next == '.',
        _ => false,
    }
}

/// Returns whether a text after a colon is the name of an emoji up to the next colon.
fn is_emoji(after: &[char]) -> bool {
    let is_name = |c: &&char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-');
    let name = after.iter().take_while(is_name).count();
    name > 0 && after.get(name) == Some(&':')
}

/// Formats a text as inline code.
pub(super) fn code(foreign: &str) -> String {
    let line = clean_line(foreign, CHARS_MAX);
    let line = inert(&line);
    let ticks = "`".repeat(longest_run(&line) + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') {
        " "
    } else {
        ""
    };
    match line.is_empty() {
        true => String::new(),
        false => format!("{ticks}{pad}{line}{pad}{ticks}"),
    }
}

/// Formats a text as a code block that nothing in it can end.
fn block(foreign: &str) -> String {
    let code = clean_text(foreign);
    let lines: Vec<_> = code.trim_end_matches('\n').split('\n').map(inert).collect();
    let fence = "`".repeat(longest_run(&code).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", lines.join("\n"))
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}
