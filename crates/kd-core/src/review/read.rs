//! Parses findings, votes and a judge's answers from replies.
//!
//! Input: any text that a member wrote. Output: limited, clean data, or why there is none. JSON may be bare, fenced,
//! embedded in prose or damaged. If a reply holds several lists of findings, all count: one of them may be a quote from
//! the change. Of several lists of votes or answers, the last one counts.

use super::{Finding, Lines, Severity, Vote};
use crate::clean::{clean_line, clean_text};
use crate::diff::{NAME_CHARS_MAX, shown_name};
use kd_reading::{field, json, prose};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Maximum findings of one reply.
pub const FINDINGS_MAX: usize = 50;
/// Maximum bytes of a quote, an evidence text or a suggested change.
const TEXT_BYTES_MAX: usize = 4000;
/// Maximum characters of a claim.
const CLAIM_CHARS_MAX: usize = 600;
/// The largest line number accepted.
const LINE_MAX: u64 = 10_000_000;
/// The words for things that a reply can say it found none of.
const DEFECTS: &[&str] = &[
    "bug", "bugs", "defect", "defects", "errors", "finding", "findings", "issue", "issues",
    "problem", "problems",
];
/// The other words of replies that say only that. A reply with any further word may contain a finding.
const NOTHING_WORDS: &[&str] = &[
    "a",
    "an",
    "all",
    "and",
    "any",
    "are",
    "at",
    "been",
    "by",
    "change",
    "changes",
    "code",
    "did",
    "didn't",
    "diff",
    "find",
    "for",
    "found",
    "good",
    "has",
    "have",
    "here",
    "i",
    "i've",
    "in",
    "introduced",
    "is",
    "it",
    "lgtm",
    "list",
    "looks",
    "me",
    "my",
    "no",
    "not",
    "nothing",
    "of",
    "or",
    "part",
    "patch",
    "report",
    "review",
    "reviewed",
    "so",
    "that",
    "the",
    "there",
    "there's",
    "these",
    "this",
    "to",
    "was",
    "we",
    "were",
];

/// The findings of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Entries that were skipped: no claim, no file, or more than [`FINDINGS_MAX`].
    pub left_out: usize,
    /// Whether the reply ends before its list does: findings may be missing.
    pub cut: bool,
}

/// Returns the JSON schema of a reply with findings.
pub fn findings_schema() -> Value {
    let text = |max: usize| json!({"type": "string", "maxLength": max});
    json!({
        "type": "object",
        "required": ["findings"],
        "additionalProperties": false,
        "properties": {"findings": {"type": "array", "maxItems": FINDINGS_MAX, "items": {
            "type": "object",
            "required": ["file", "lines", "quote", "claim", "severity", "evidence"],
            "additionalProperties": false,
            "properties": {
                "file": text(NAME_CHARS_MAX),
                "lines": {"type": "object", "required": ["first", "last"], "additionalProperties": false,
                    "properties": {"first": {"type": "integer", "minimum": 1}, "last": {"type": "integer", "minimum": 1}}},
                "quote": text(TEXT_BYTES_MAX),
                "claim": text(CLAIM_CHARS_MAX),
                "severity": {"enum": Severity::ALL.map(Severity::word)},
                "evidence": text(TEXT_BYTES_MAX),
                "change": text(TEXT_BYTES_MAX),
            }}}},
    })
}

/// Returns the JSON schema of a reply with votes.
pub fn votes_schema() -> Value {
    let words = [Vote::Real, Vote::NotReal, Vote::CannotTell].map(Vote::word);
    answers_schema("votes", "vote", &json!({"enum": words}))
}

/// Returns the JSON schema of a judge's reply about pairs.
pub fn pairs_schema() -> Value {
    answers_schema("pairs", "same", &json!({"type": "boolean"}))
}

fn answers_schema(list: &str, name: &str, value: &Value) -> Value {
    json!({
        "type": "object",
        "required": [list],
        "additionalProperties": false,
        "properties": {list: {"type": "array", "items": {
            "type": "object",
            "required": ["id", name],
            "additionalProperties": false,
            "properties": {"id": {"type": "string"}, name: value},
        }}},
    })
}

/// Parses the findings of a reply. An empty list is valid, and so is prose that says that there are none and nothing
/// else: any other prose may contain a finding, and is not a review.
///
/// # Errors
/// If the reply is empty, holds no list of findings, ends before the first one, or lists only findings without a file
/// or a claim.
pub fn findings(reply: &str) -> Result<Read, &'static str> {
    let text = prose::without_thoughts(reply);
    if text.trim().is_empty() {
        return Err("the reply is empty");
    }
    let objects = json::objects(&text);
    let lists: Vec<(&json::Found, &Vec<Value>)> = objects
        .iter()
        .rev()
        .filter_map(|o| Some((o, list(&o.value)?)))
        .collect();
    if let Some((object, _)) = lists.first() {
        let whole = text
            .get(object.start..object.end)
            .is_some_and(|o| o.trim_end().ends_with('}'));
        let read = Read {
            cut: object.cut,
            ..all_of(lists.iter().map(|(_, items)| *items))
        };
        return match (read.findings.is_empty(), read.left_out) {
            (true, 0) if !whole => Err("the reply ends before its first finding"),
            (true, 1..) => Err("its findings name no file or no claim"),
            _ => Ok(read),
        };
    }
    let bare: Vec<&Value> = objects
        .iter()
        .map(|o| &o.value)
        .filter(|v| field(v, "claim").is_some() && field(v, "file").is_some())
        .collect();
    if !bare.is_empty() {
        return Ok(collect(bare.into_iter()));
    }
    if is_nothing(&text) {
        return Ok(Read::default());
    }
    Err("the reply holds no list of findings")
}

fn list(value: &Value) -> Option<&Vec<Value>> {
    let direct = field(value, "findings").and_then(Value::as_array);
    direct.or_else(|| {
        ["result", "review", "output", "response", "data"]
            .iter()
            .filter_map(|name| field(value, name))
            .find_map(|inner| field(inner, "findings").and_then(Value::as_array))
    })
}

/// Returns whether a reply is an empty list, or says only that there are no findings.
fn is_nothing(text: &str) -> bool {
    let bare: String = text
        .trim()
        .trim_matches('`')
        .trim_start_matches("json")
        .split_whitespace()
        .collect();
    if bare == "[]" {
        return true;
    }
    let lower = text.to_lowercase().replace('’', "'");
    let mut says_so = false;
    for clause in lower.split([',', '.', ';', ':', '!', '—', '–']) {
        let words: Vec<&str> = clause
            .split(|c: char| c.is_whitespace() || "*_#-".contains(c))
            .filter(|word| !word.is_empty())
            .collect();
        match denies(&words) {
            Some(denied) => says_so |= denied,
            None => return false,
        }
    }
    says_so
}

/// Returns whether a clause says that there are no findings; `None` if it says anything else. Its words alone are not
/// enough: "there is a bug and no finding" contains the words of a denial. Each defect must be denied, and nothing
/// else may be.
fn denies(words: &[&str]) -> Option<bool> {
    let before = |at: usize| at.checked_sub(1).map_or("", |at| words[at]);
    let after = |at: usize| words.get(at + 1).copied().unwrap_or_default();
    let is_not = |word: &&str| matches!(*word, "not" | "didn't");
    let (mut denied, mut says_so) = (false, false);
    for (at, word) in words.iter().enumerate() {
        let is_fine = match *word {
            "no" => DEFECTS.contains(&after(at)),
            "not" | "didn't" => after(at) == "find" && words.get(at + 2) == Some(&"any"),
            "nothing" => {
                before(at) == "found" || words.get(at + 1..at + 3) == Some(&["to", "report"])
            }
            "part" => matches!(before(at), "this" | "the"),
            defect if DEFECTS.contains(&defect) => {
                denied = match before(at) {
                    "no" => true,
                    "any" => words[..at].iter().any(is_not),
                    "or" | "and" => denied,
                    _ => false,
                };
                denied
            }
            word => NOTHING_WORDS.contains(&word),
        };
        if !is_fine {
            return None;
        }
        says_so |= denied || matches!(*word, "nothing" | "lgtm");
    }
    let is_praise = |four: &[&str]| four == ["looks", "good", "to", "me"];
    Some(says_so || words.windows(4).any(is_praise))
}

/// Reads the findings of several lists, in the order of the lists. One that is in two lists counts once.
fn all_of<'a>(lists: impl Iterator<Item = &'a Vec<Value>>) -> Read {
    let mut all = Read::default();
    for items in lists {
        let read = collect(items.iter());
        all.left_out += read.left_out;
        let known = all.findings.len();
        for finding in read.findings {
            if all.findings[..known].contains(&finding) {
                continue;
            }
            match all.findings.len() < FINDINGS_MAX {
                true => all.findings.push(finding),
                false => all.left_out += 1,
            }
        }
    }
    all
}

fn collect<'a>(items: impl Iterator<Item = &'a Value>) -> Read {
    let mut read = Read::default();
    for item in items {
        match finding(item) {
            Some(finding) if read.findings.len() < FINDINGS_MAX => read.findings.push(finding),
            _ => read.left_out += 1,
        }
    }
    read
}

fn finding(value: &Value) -> Option<Finding> {
    let text = |names: &[&str]| {
        names
            .iter()
            .filter_map(|name| field(value, name))
            .find_map(words)
    };
    // Spaces belong to the name.
    let file = shown_name(&text(&["file", "path", "filename"])?);
    let claim = clean_line(
        &text(&["claim", "title", "message", "description"])?,
        CLAIM_CHARS_MAX,
    );
    if file.is_empty() || claim.is_empty() {
        return None;
    }
    let change = text(&["change", "suggestion", "fix"]).map(|c| bounded(&c));
    Some(Finding {
        file,
        lines: lines(value),
        quote: bounded(&text(&["quote", "code", "quoted"]).unwrap_or_default()),
        claim,
        severity: severity(&text(&["severity", "level"]).unwrap_or_default()),
        evidence: bounded(&text(&["evidence", "why", "reason"]).unwrap_or_default()),
        change: change.filter(|c| !c.is_empty()),
    })
}

/// Reads a string, or a list of lines.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => {
            let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
            lines.map(|lines| lines.join("\n"))
        }
        _ => None,
    }
}

/// Cleans and limits a text of several lines.
pub(super) fn bounded(text: &str) -> String {
    let text = clean_text(text);
    let text = text.trim_matches(['\n', '\r']).trim_end();
    text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned()
}

fn severity(word: &str) -> Severity {
    match word.trim().to_lowercase().as_str() {
        "blocker" | "critical" | "fatal" => Severity::Blocker,
        "major" | "high" | "error" => Severity::Major,
        "nit" | "info" | "trivial" | "style" => Severity::Nit,
        _ => Severity::Minor,
    }
}

/// Parses line numbers as models write them: `{"first": 3, "last": 4}`, `[3, 4]`, `"3-4"`, `3`, or separate fields.
fn lines(value: &Value) -> Lines {
    let place = ["lines", "line", "range"]
        .iter()
        .find_map(|name| field(value, name))
        .unwrap_or(value);
    let named = |names: &[&str]| {
        names
            .iter()
            .filter_map(|n| field(place, n))
            .find_map(number)
    };
    let all: Vec<u32> = match place {
        Value::Array(items) => items.iter().filter_map(number).collect(),
        Value::String(text) => text
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|digits| digits.parse().ok())
            .collect(),
        Value::Number(_) => number(place).into_iter().collect(),
        _ => named(&["first", "start", "start_line", "from"])
            .into_iter()
            .chain(named(&["last", "end", "end_line", "to"]))
            .collect(),
    };
    let first = all.first().copied().unwrap_or_default();
    let last = all.get(1).copied().unwrap_or(first);
    Lines {
        first: first.min(last),
        last: first.max(last),
    }
}

fn number(value: &Value) -> Option<u32> {
    let number = value
        .as_u64()
        .or_else(|| value.as_str().and_then(|s| s.trim().parse().ok()))?;
    u32::try_from(number.min(LINE_MAX)).ok()
}

/// Parses votes by label. Labels that were not shown, and labels with two different votes, are ignored.
pub fn votes(reply: &str, shown: &[String]) -> BTreeMap<String, Vote> {
    answers(reply, "votes", &["vote", "verdict", "answer"], shown, vote)
}

/// Parses a judge's answers by label: whether two findings are the same.
pub fn same(reply: &str, shown: &[String]) -> BTreeMap<String, bool> {
    let read = |value: &Value| match value {
        Value::Bool(same) => Some(*same),
        Value::String(word) => match word.trim().to_lowercase().as_str() {
            "same" | "yes" | "true" => Some(true),
            "different" | "no" | "false" => Some(false),
            _ => None,
        },
        _ => None,
    };
    answers(reply, "pairs", &["same", "answer"], shown, read)
}

fn vote(value: &Value) -> Option<Vote> {
    let word = value
        .as_str()?
        .trim()
        .to_lowercase()
        .replace(['_', '-'], " ");
    match word.as_str() {
        "real" | "yes" | "true" => Some(Vote::Real),
        "not real" | "notreal" | "no" | "false" => Some(Vote::NotReal),
        "cannot tell" | "can't tell" | "unsure" | "unknown" => Some(Vote::CannotTell),
        _ => None,
    }
}

fn answers<T: PartialEq>(
    reply: &str,
    list: &str,
    names: &[&str],
    shown: &[String],
    read: impl Fn(&Value) -> Option<T>,
) -> BTreeMap<String, T> {
    let text = prose::without_thoughts(reply);
    let objects = json::objects(&text);
    let listed = objects
        .iter()
        .rev()
        .find_map(|o| field(&o.value, list).cloned());
    let pairs: Vec<(String, Value)> = match listed {
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| {
                let value = names.iter().find_map(|name| field(item, name))?;
                Some((words(field(item, "id")?)?, value.clone()))
            })
            .collect(),
        Some(Value::Object(fields)) => fields.into_iter().collect(),
        _ => Vec::new(),
    };
    let mut out: BTreeMap<String, Option<T>> = BTreeMap::new();
    for (id, value) in pairs {
        let id = id.trim().to_uppercase();
        let (Some(label), Some(value)) = (shown.iter().find(|s| **s == id), read(&value)) else {
            continue;
        };
        match out.get_mut(label) {
            Some(kept) if kept.as_ref() != Some(&value) => *kept = None,
            Some(_) => {}
            None => {
                out.insert(label.clone(), Some(value));
            }
        }
    }
    out.into_iter()
        .filter_map(|(label, value)| Some((label, value?)))
        .collect()
}
