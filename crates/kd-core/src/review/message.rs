//! The messages of a review in its thread, and the ids of findings.

use super::{Cluster, Report, Reported};
use crate::draft;
use crate::hex::hex;
use crate::last_round::RoundKind;
use crate::markdown::escape_line;
use crate::message::{Address, Draft, Provenance, Status};
use crate::names::COUNCIL;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Builds the user's message.
pub(super) fn question(title: String, at: Timestamp) -> Draft {
    let mut draft = draft::king(title, Address::All, None, at);
    RoundKind::Review.mark(&mut draft);
    draft
}

/// Builds the short report for the thread.
pub(super) fn verdict(report: &Report, at: Timestamp) -> Draft {
    let mut members = report.members.iter();
    let is_reviewed = members.any(|member| member.failed.is_none());
    let mut body = match report.findings.len() {
        0 if !is_reviewed => "No review: no member gave one.\n".to_owned(),
        0 => "No findings.\n".to_owned(),
        1 => "1 finding:\n\n".to_owned(),
        n => format!("{n} findings:\n\n"),
    };
    for reported in &report.findings {
        let Some(finding) = reported.finding() else {
            continue;
        };
        body.push_str(&format!(
            "- {} ({}) {}:{} — {}\n",
            reported.id,
            reported.severity().word(),
            escape_line(&finding.file),
            finding.lines.first,
            escape_line(&finding.claim),
        ));
    }
    for notice in &report.notices {
        body.push_str(&format!("\n{}\n", escape_line(notice)));
    }
    let extra = [("purpose".to_owned(), "review".to_owned())];
    Draft {
        turn: None,
        from: COUNCIL.to_owned(),
        to: Address::King,
        at,
        status: Some(Status::Complete),
        refs: Vec::new(),
        provenance: Provenance::default(),
        extra: BTreeMap::from(extra),
        body,
    }
}

/// Returns an id that is stable for the same file, code and claim.
pub(super) fn id(cluster: &Cluster) -> String {
    let Some(raw) = cluster.findings.first() else {
        return hashed(&[], 5);
    };
    let finding = &raw.finding;
    hashed(
        &[
            &finding.file,
            &squeezed(&finding.quote),
            &squeezed(&finding.claim),
        ],
        5,
    )
}

/// Returns a hash that is stable for the same file and code: see [`Reported::fingerprint`].
pub(super) fn fingerprint(cluster: &Cluster) -> String {
    let mut quotes: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for raw in &cluster.findings {
        let quote = squeezed(&raw.finding.quote);
        *quotes.entry((&raw.finding.file, quote)).or_default() += 1;
    }
    let quotes = quotes.iter();
    let most = quotes.max_by_key(|((_, quote), count)| (**count, Reverse(quote.len())));
    match most {
        Some(((file, quote), _)) => hashed(&[file, quote], 16),
        None => hashed(&[], 16),
    }
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first bytes of a hash of texts, in hexadecimal digits.
fn hashed(parts: &[&str], bytes: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut digits = hex(&hash.finalize());
    digits.truncate(2 * bytes);
    digits
}

/// Makes the ids of findings unique.
pub(super) fn unique(findings: &mut [Reported]) {
    let mut seen = BTreeSet::new();
    for reported in findings {
        let id = reported.id.clone();
        let mut number = 1;
        while !seen.insert(reported.id.clone()) {
            number += 1;
            reported.id = format!("{id}-{number}");
        }
    }
}
