//! A report as SARIF 2.1.0.

use super::{DISMISSED, UNCONFIRMED, alike, chance, source, unvoted, votes};
use kd_app::review::report::{Kept, LeftOut};
use kd_core::clean::{clean_line, clean_text};
use kd_core::review::{Reported, Severity};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Maximum characters of a message.
const CHARS_MAX: usize = 4000;
/// The fingerprint's name: code hosts treat results with the same fingerprint as the same finding.
const FINGERPRINT: &str = "kdFinding/v2";

/// Builds the log; `all` includes what only one member found.
pub(super) fn log(kept: &Kept, all: bool) -> Value {
    let (shown, alone) = kept.folded();
    let alone = alone.into_iter().filter(|_| all);
    let mut prints = BTreeMap::new();
    let results: Vec<Value> = shown
        .into_iter()
        .chain(alone)
        .filter_map(|finding| result(kept, finding, &mut prints))
        .collect();
    let rules: Vec<Value> = Severity::ALL
        .iter()
        .map(|severity| {
            json!({
                "id": rule(*severity),
                "shortDescription": {"text": format!("A finding of severity {}", severity.word())},
                "defaultConfiguration": {"level": level(*severity)},
            })
        })
        .collect();
    let limits = super::limits(&kept.report.findings);
    let notices = kept.report.notices.iter().map(String::as_str);
    let verdict = kept.verdict();
    let lacks = kept.lacks();
    let lacks = lacks
        .iter()
        .map(|lack| json!({"level": "warning", "message": {"text": message(lack)}}));
    let notes = notices
        .chain(limits)
        .chain(verdict.as_deref())
        .map(|notice| json!({"level": "note", "message": {"text": message(notice)}}));
    let notifications: Vec<Value> = lacks
        .chain(notes)
        .chain(kept.left_out.iter().map(unseen))
        .collect();
    let mut run = json!({
        "tool": {"driver": {
            "name": "kd review",
            "version": env!("CARGO_PKG_VERSION"),
            "rules": rules,
        }},
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The top of the working tree."}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{
            "executionSuccessful": kept.report.members.iter().all(|member| member.failed.is_none()),
            "toolExecutionNotifications": notifications,
        }],
        "automationDetails": {"id": "kd-review/"},
        "results": results,
    });
    if let Some(commit) = &kept.head_commit {
        run["properties"] = json!({"headCommit": commit, "baseCommit": kept.base_commit});
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    })
}

/// Reports a file that members did not see.
fn unseen(one: &LeftOut) -> Value {
    json!({
        "level": "warning",
        "message": {"text": message(&format!("{} was not reviewed: {}", one.file, one.why))},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&one.file), "uriBaseId": "SRCROOT"},
        }}],
    })
}

/// Builds a result. Findings with the same lines are numbered in the order of the report.
fn result(kept: &Kept, finding: &Reported, prints: &mut BTreeMap<String, u32>) -> Option<Value> {
    let about = finding.finding()?;
    let mut said = format!(
        "{} P(real) {}, {}. Found by {}.",
        about.claim.trim(),
        chance(&finding.chance),
        source(&finding.chance),
        finding.makers().join(", ")
    );
    if let Some(alike) = alike(finding) {
        said += &format!(" Note: {alike}.");
    }
    if !finding.votes.is_empty() {
        said += &format!(" Votes: {}.", votes(finding));
    }
    if let Some(names) = unvoted(finding) {
        said += &format!(" No vote: {names}.");
    }
    if finding.is_unconfirmed() {
        said += &format!(" Unconfirmed: {UNCONFIRMED}.");
    }
    if !about.evidence.trim().is_empty() {
        said += &format!(" Why: {}", about.evidence.trim());
    }
    let print = finding.fingerprint();
    let number = prints.entry(print.clone()).or_default();
    *number += 1;
    let first = about.lines.first.max(1);
    let severity = finding.severity();
    let mut result = json!({
        "ruleId": rule(severity),
        "level": level(severity),
        "message": {"text": message(&said)},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&about.file), "uriBaseId": "SRCROOT"},
            "region": {
                "startLine": first,
                "endLine": about.lines.last.max(first),
                "snippet": {"text": clean_text(&about.quote)},
            },
        }}],
        "partialFingerprints": {FINGERPRINT: format!("{print}:{number}")},
        "rank": (finding.chance.share * 1000.0).round() / 10.0,
        "properties": {
            "id": finding.id,
            "severity": severity.word(),
            "chance": finding.chance,
            "foundBy": finding.makers(),
            "votes": finding.votes,
            "missingVotes": finding.missing_votes,
            "suggestedChange": about.change.as_deref().map(clean_text),
        },
    });
    if kept.is_dismissed(finding) {
        result["suppressions"] = json!([
            {"kind": "external", "status": "accepted", "justification": DISMISSED},
        ]);
    }
    Some(result)
}

fn rule(severity: Severity) -> String {
    format!("review/{}", severity.word())
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Blocker | Severity::Major => "error",
        Severity::Minor => "warning",
        Severity::Nit => "note",
    }
}

/// Escapes links and placeholders, which SARIF supports even in plain text.
fn message(foreign: &str) -> String {
    let line = clean_line(foreign, CHARS_MAX);
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '[' | ']' | '\\' => out.extend(['\\', c]),
            '{' | '}' => out.extend([c, c]),
            c => out.push(c),
        }
    }
    out
}

/// Converts a path to a relative reference without a scheme, a query or a step out of the tree.
fn uri(path: &str) -> String {
    let parts = path
        .split('/')
        .filter(|part| !matches!(*part, "" | "." | ".."));
    let mut out = String::new();
    for part in parts {
        if !out.is_empty() {
            out.push('/');
        }
        for byte in part.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    out.push(byte.into());
                }
                byte => out.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    out
}
