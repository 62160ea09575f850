//! Builds the requests of a review. Text by others is fenced with markers that nobody could know in advance.

use super::OpenReview;
use super::{Cluster, Finding, Raw, prompts, read};
use crate::deliberation::blind;
use crate::request::{Prompt, Request};
use serde_json::Value;

/// Lines of context around a finding.
const AROUND: usize = 8;
/// Maximum lines of code per finding.
const CODE_LINES_MAX: usize = 60;
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

/// Asks a member to vote on clusters. Returns the request and each label with its place in `clusters`.
pub(super) fn votes(
    open: &OpenReview,
    member: usize,
    clusters: &[Cluster],
    foreign: &[usize],
) -> (Request, Vec<(String, usize)>) {
    let reader = open.members[member].name.as_str();
    let order = blind::deal(open.seed, reader, "review votes", foreign);
    let shown: Vec<(String, usize)> = (0..).map(blind::label).zip(order).collect();
    let items: Vec<(String, String)> = shown
        .iter()
        .filter_map(|(label, at)| {
            let finding = &clusters[*at].findings.first()?.finding;
            Some((format!("id {label}"), described(open, finding, true)))
        })
        .collect();
    let fenced = fence(open, "votes", &items);
    let request = request(open, member, fenced, prompts::VOTE, read::votes_schema());
    (request, shown)
}

/// Asks a judge whether pairs describe the same defect. Returns the request and each label with its place in `pairs`.
pub(super) fn pairs(
    open: &OpenReview,
    member: usize,
    raws: &[Raw],
    pairs: &[(usize, usize)],
) -> (Request, Vec<(String, usize)>) {
    let reader = open.members[member].name.as_str();
    let places: Vec<usize> = (0..pairs.len()).collect();
    let order = blind::deal(open.seed, reader, "review pairs", &places);
    let shown: Vec<(String, usize)> = (0..).map(blind::label).zip(order).collect();
    let items: Vec<(String, String)> = shown
        .iter()
        .filter_map(|(label, at)| {
            let (a, b) = pairs.get(*at)?;
            let one = described(open, &raws.get(*a)?.finding, false);
            let other = described(open, &raws.get(*b)?.finding, false);
            Some((
                format!("id {label}"),
                format!("First:\n{one}\nSecond:\n{other}"),
            ))
        })
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

/// Renders a finding for other members: without its member's name, with its code.
fn described(open: &OpenReview, finding: &Finding, with_code: bool) -> String {
    let mut out = format!("claim: {}\n", nameless(open, &finding.claim));
    if !finding.evidence.is_empty() {
        let evidence = blind::clip(&finding.evidence, 1500);
        out.push_str(&format!("evidence: {}\n", nameless(open, &evidence)));
    }
    let (first, last) = (finding.lines.first, finding.lines.last);
    out.push_str(&format!(
        "place: {} lines {first} to {last}\n",
        finding.file
    ));
    if with_code {
        out.push_str(&code(open, finding));
    } else {
        out.push_str(&blind::clip(&finding.quote, 600));
    }
    out
}

fn nameless(open: &OpenReview, text: &str) -> String {
    let names = open.members.iter().map(|m| m.name.as_str());
    names
        .filter(|name| name.chars().count() >= 3)
        .fold(text.to_owned(), |text, name| {
            blind::replace_word(&text, name, "a member")
        })
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
            format!("{} | {}\n", at + 1, crate::clean::clean_text(&line))
        })
        .collect()
}
