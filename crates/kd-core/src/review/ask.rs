//! Builds the requests of a review. Text by others is fenced with markers that nobody could know in advance.

use super::OpenReview;
use super::{Cluster, Finding, Raw, prompts, read};
use crate::clean::{clean_line, clean_text};
use crate::deliberation::hide::Hidden;
use crate::deliberation::{blind, json_bytes};
use crate::request::{Prompt, Request};
use serde_json::Value;
use std::collections::VecDeque;

/// Lines of context around a finding.
const AROUND: usize = 8;
/// Maximum lines of code per finding.
const CODE_LINES_MAX: usize = 60;
/// Maximum number, and bytes, of other members' words for a finding.
const WORDINGS_MAX: usize = 3;
const WORDING_BYTES_MAX: usize = 300;
/// Maximum characters of a line of code.
const LINE_CHARS_MAX: usize = 300;

/// Asks a member for findings in a part of the change.
pub(super) fn findings(open: &OpenReview, member: usize, part: usize) -> Request {
    let text = open.parts.get(part).map(String::as_str).unwrap_or_default();
    let fenced = fence(open, "findings", &[("change".to_owned(), text.to_owned())]);
    let guidance = match open.guidance.trim() {
        "" => String::new(),
        guidance => format!("\nThe user asks you to mind: {guidance}"),
    };
    let task = format!("{}{guidance}", prompts::FIND);
    request(open, member, fenced, &task, read::findings_schema())
}

/// Bytes of the marks around an item.
const MARK_BYTES: u64 = 64;

/// Splits clusters into the requests in which a member votes on them: each shows at most `bytes` of findings.
pub(super) fn batches(
    open: &OpenReview,
    hidden: &Hidden,
    clusters: &[Cluster],
    foreign: &[usize],
    bytes: u64,
) -> VecDeque<Vec<usize>> {
    let mut batches = VecDeque::new();
    let mut left = 0;
    for at in foreign {
        let Some(item) = votable(open, hidden, &clusters[*at], bytes) else {
            continue;
        };
        let size = item_bytes(&item);
        if batches.is_empty() || size > left {
            batches.push_back(Vec::new());
            left = bytes;
        }
        left = left.saturating_sub(size);
        if let Some(batch) = batches.back_mut() {
            batch.push(*at);
        }
    }
    batches
}

/// Renders a cluster for voters.
fn votable(open: &OpenReview, hidden: &Hidden, cluster: &Cluster, bytes: u64) -> Option<String> {
    let finding = &cluster.findings.first()?.finding;
    let others = cluster.other_wordings();
    let others = others.iter().take(WORDINGS_MAX);
    let others: Vec<&str> = others.map(|raw| raw.finding.claim.as_str()).collect();
    Some(fitted(
        &described(open, hidden, finding, &others, true),
        bytes,
    ))
}

/// Returns the bytes of a cluster in a request for votes.
pub(super) fn votable_bytes(
    open: &OpenReview,
    hidden: &Hidden,
    cluster: &Cluster,
    bytes: u64,
) -> u64 {
    votable(open, hidden, cluster, bytes).map_or(0, |item| item_bytes(&item))
}

fn item_bytes(item: &str) -> u64 {
    json_bytes(item) + MARK_BYTES
}

/// Cuts a text that alone would exceed the bytes of a request.
fn fitted(text: &str, bytes: u64) -> String {
    // A byte of a text without control characters takes at most two bytes in JSON.
    let most = usize::try_from(bytes.saturating_sub(MARK_BYTES + 8) / 2).unwrap_or(usize::MAX);
    match json_bytes(text) + MARK_BYTES > bytes {
        true => blind::clip(text, most),
        false => text.to_owned(),
    }
}

/// Asks a member to vote on clusters. Returns the request and each label with its place in `clusters`.
pub(super) fn votes(
    open: &OpenReview,
    hidden: &Hidden,
    member: usize,
    clusters: &[Cluster],
    foreign: &[usize],
    bytes: u64,
) -> (Request, Vec<(String, usize)>) {
    let reader = open.members[member].name.as_str();
    let order = blind::deal(open.seed, reader, "review votes", foreign);
    let shown: Vec<(String, usize)> = (0..).map(blind::label).zip(order).collect();
    let items: Vec<(String, String)> = shown
        .iter()
        .filter_map(|(label, at)| {
            Some((
                format!("id {label}"),
                votable(open, hidden, &clusters[*at], bytes)?,
            ))
        })
        .collect();
    let fenced = fence(open, "votes", &items);
    let request = request(open, member, fenced, prompts::VOTE, read::votes_schema());
    (request, shown)
}

/// Asks a judge whether pairs describe the same defect, as many of the first ones as fit. Returns the request and each
/// label with its place in `pairs`.
pub(super) fn pairs(
    open: &OpenReview,
    hidden: &Hidden,
    member: usize,
    raws: &[Raw],
    pairs: &[(usize, usize)],
    bytes: u64,
) -> (Request, Vec<(String, usize)>) {
    let text = |(a, b): &(usize, usize)| {
        let one = described(open, hidden, &raws.get(*a)?.finding, &[], false);
        let other = described(open, hidden, &raws.get(*b)?.finding, &[], false);
        Some(format!("First:\n{one}\nSecond:\n{other}"))
    };
    let mut left = bytes;
    let texts: Vec<String> = pairs
        .iter()
        .map_while(|pair| {
            let text = text(pair)?;
            left = left.checked_sub(json_bytes(&text) + MARK_BYTES)?;
            Some(text)
        })
        .collect();
    let reader = open.members[member].name.as_str();
    let places: Vec<usize> = (0..texts.len()).collect();
    let order = blind::deal(open.seed, reader, "review pairs", &places);
    let shown: Vec<(String, usize)> = (0..).map(blind::label).zip(order).collect();
    let items: Vec<(String, String)> = shown
        .iter()
        .map(|(label, at)| (format!("id {label}"), texts[*at].clone()))
        .collect();
    let fenced = fence(open, "pairs", &items);
    let request = request(open, member, fenced, prompts::JUDGE, read::pairs_schema());
    (request, shown)
}

/// Maximum bytes of a reply quoted back to its member for repair.
const REPLY_BYTES_MAX: usize = 24_000;

/// Asks a member again: to rewrite its reply in a readable form, or, if the reply was empty, to answer the original
/// request.
pub(super) fn repair(open: &OpenReview, asked: &Request, reply: &str, why: &str) -> Request {
    if reply.trim().is_empty() {
        return asked.clone();
    }
    let reply = blind::clip(reply, REPLY_BYTES_MAX);
    let fenced = fence(open, "repair", &[("your reply".to_owned(), reply)]);
    let task = asked.prompt.turn.trim_start_matches("---\n");
    let mut request = asked.clone();
    request.prompt.history = fenced.into();
    request.prompt.turn = format!("---\n{} ({why}.)\nThe task was: {task}", prompts::REPAIR);
    request
}

fn fence(open: &OpenReview, place: &str, items: &[(String, String)]) -> String {
    let texts: Vec<&str> = items.iter().map(|(_, text)| text.as_str()).collect();
    blind::fence(&blind::nonce(open.seed, place, &texts), items)
}

fn request(open: &OpenReview, member: usize, fenced: String, task: &str, schema: Value) -> Request {
    let member = &open.members[member];
    Request {
        attachments: Vec::new(),
        schema_of_user: false,
        reads: false,
        seat: member.name.clone(),
        prompt: Prompt {
            rules: open.preamble.clone(),
            persona: member.persona.trim().to_owned(),
            history: fenced.into(),
            turn: format!("---\nYou are {}. {task}", member.name),
            ..Prompt::default()
        },
        sampling: member.sampling.clone(),
        schema: Some(schema),
        deadlines: member.deadlines,
        // A review is read-only, whatever the member may do elsewhere.
        writable: false,
        tools: None,
    }
}

/// Renders a finding for other members: with stand-ins for names, with its code. `others` are other members' words
/// for the same defect. Each line of text by members or the change has a mark, so that none passes for another part.
fn described(
    open: &OpenReview,
    hidden: &Hidden,
    finding: &Finding,
    others: &[&str],
    with_code: bool,
) -> String {
    let mut out = format!("claim: {}\n", hidden.hide(&finding.claim));
    if !finding.evidence.is_empty() {
        let evidence = hidden.hide(&blind::clip(&finding.evidence, 1500));
        out.push_str(&format!("evidence:\n{}", marked("> ", &evidence)));
    }
    for claim in others {
        let claim = hidden.hide(&blind::clip(claim, WORDING_BYTES_MAX));
        out.push_str(&format!("in other words: {claim}\n"));
    }
    let (first, last) = (finding.lines.first, finding.lines.last);
    out.push_str(&format!(
        "place: {} lines {first} to {last}\n",
        clean_line(&finding.file, usize::MAX)
    ));
    if with_code {
        out.push_str(&code(open, finding));
    } else {
        out.push_str(&marked("| ", &blind::clip(&finding.quote, 600)));
    }
    out
}

/// Puts a mark before each line of a text.
fn marked(mark: &str, text: &str) -> String {
    text.lines().map(|line| format!("{mark}{line}\n")).collect()
}

/// Returns the lines of a finding and those around it, numbered.
fn code(open: &OpenReview, finding: &Finding) -> String {
    let Some(text) = open.files.get(&finding.file) else {
        return String::new();
    };
    let first = (finding.lines.first as usize).saturating_sub(AROUND + 1);
    let end = (finding.lines.last as usize + AROUND).min(first + CODE_LINES_MAX);
    let lines = text.lines().enumerate().skip(first);
    lines
        .take(end.saturating_sub(first))
        .map(|(at, line)| {
            let line: String = line.chars().take(LINE_CHARS_MAX).collect();
            format!("{} | {}\n", at + 1, clean_text(&line))
        })
        .collect()
}
