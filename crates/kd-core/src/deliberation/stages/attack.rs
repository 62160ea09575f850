//! Attack: all other members list falsifiable defects of the answer.

use super::{Asking, Reply, Stage, StageInput, as_it_came, no_end, peer, said};
use crate::clean::clean_line;
use crate::deliberation::board::{Board, object_with};
use crate::deliberation::fact::Fact;
use crate::deliberation::plan::LENIENT;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use serde_json::{Value, json};

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "attack",
    title: "defects, each to be shown false or mended",
    purpose: Purpose::Review,
    spoken: false,
    seats: |_, board| match board.answers.first() {
        Some(owner) => board
            .seats
            .iter()
            .copied()
            .filter(|s| *s != owner.seat)
            .collect(),
        None => Vec::new(),
    },
    ask,
    read,
    end: no_end,
    body: as_it_came,
};

/// Maximum number of defects per attacker.
const DEFECTS_MAX: usize = 3;

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let answer = input.board.answers.first()?;
    let text = peer(input.plan, &answer.text);
    Some(Asking {
        material: format!(
            "{}\n\n{}",
            input.question(),
            input.fenced(STAGE.name, &[text])
        ),
        task: format!(
            "Attack answer A. Reply with JSON: \"defects\", at most {DEFECTS_MAX} statements about it that can be shown true or false; an empty list if it has none."
        ),
        schema: Some(
            json!({"type": "object", "properties": {"defects": {"type": "array", "maxItems": DEFECTS_MAX,
            "items": {"type": "string", "maxLength": DEFECT_CHARS_MAX}}}, "required": ["defects"], "additionalProperties": false}),
        ),
        items: vec![answer.seat],
        tokens: None,
    })
}

/// Fields of a list of defects, and of the text of one.
const LISTS: &[&str] = &["defects", "defect", "flaws", "issues", "problems", "errors"];
const TEXTS: &[&str] = &[
    "defect",
    "statement",
    "description",
    "text",
    "flaw",
    "issue",
    "problem",
    "claim",
    "error",
];
/// Maximum characters of a defect.
const DEFECT_CHARS_MAX: usize = 200;

/// Reads a list of defects in any form: as JSON, otherwise as list items or paragraphs. `None` if there is none.
fn find(text: &str) -> Option<Vec<String>> {
    let text = kd_reading::without_thoughts(text);
    if text.trim().is_empty() || kd_reading::declines(&text) {
        return None;
    }
    let fits = |value: &Value| said::field_of(value, LISTS).is_some();
    if let Ok((value, _)) = kd_reading::object(&text, fits) {
        return said::field_of(&value, LISTS).and_then(listed);
    }
    if let Some(list) = said::list_in(&text) {
        return listed(&list);
    }
    Some(in_words(&text))
}

/// Returns the defects of a JSON value: a list of texts or objects, or one text.
fn listed(value: &Value) -> Option<Vec<String>> {
    let of = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        value => said::field_of(value, TEXTS)?.as_str().map(str::to_owned),
    };
    match value {
        Value::Array(items) => Some(items.iter().filter_map(of).collect()),
        Value::String(text) => Some(in_words(text)),
        Value::Null => Some(Vec::new()),
        value => of(value).map(|one| vec![one]),
    }
}

/// Returns the defects of a text: its list items, otherwise its paragraphs.
fn in_words(text: &str) -> Vec<String> {
    if finds_none(text) {
        return Vec::new();
    }
    let items: Vec<&str> = text.lines().filter_map(item).collect();
    let of = |text: &str| text.replace("**", "").trim().to_owned();
    match items.is_empty() {
        false => items.into_iter().map(of).collect(),
        true => text
            .split("\n\n")
            .map(of)
            .filter(|part| !part.is_empty())
            .collect(),
    }
}

/// Returns the text of a list item.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if let Some(text) = ["- ", "* ", "• "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
    {
        return Some(text);
    }
    let text = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let text = (text.len() < line.len()).then_some(text)?;
    text.strip_prefix(['.', ')'])
        .filter(|text| text.starts_with(' '))
}

/// Returns whether a short text says that there is no defect.
fn finds_none(text: &str) -> bool {
    const CHARS_MAX: usize = 160;
    const NOTHING: &[&str] = &[
        "no ",
        "none",
        "nothing",
        "not find any",
        "n't find any",
        "without ",
    ];
    const DEFECTS: &[&str] = &[
        "defect",
        "flaw",
        "error",
        "mistake",
        "issue",
        "problem",
        "wrong",
        "objection",
    ];
    let low = text.trim().to_lowercase().replace('’', "'");
    let has = |words: &[&str]| words.iter().any(|word| low.contains(word));
    let only = ["none", "no", "nothing", "[]", "no defects"].contains(&low.trim_end_matches('.'));
    let but = [" but ", " however", " except", " yet "]
        .iter()
        .any(|word| low.contains(word));
    only || low.chars().count() <= CHARS_MAX
        && low.lines().filter(|line| !line.trim().is_empty()).count() == 1
        && has(NOTHING)
        && has(DEFECTS)
        && !but
}

/// Reads a list of defects by the rules of records before it was read in any form.
fn first_reading(plan: &Run, text: &str) -> Option<Vec<String>> {
    let (value, _) = object_with(plan, text, &["defects"])?;
    let listed = value.get("defects")?.as_array()?.iter();
    Some(
        listed
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
    )
}

fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    let text = reply.text;
    let listed = match plan.reading {
        LENIENT.. => plan.reader.read("defects", "", text, || find(text)),
        _ => first_reading(plan, text),
    };
    let defects: Vec<String> = listed
        .iter()
        .flatten()
        .map(|d| clean_line(d, DEFECT_CHARS_MAX))
        .filter(|d| !d.is_empty())
        .take(DEFECTS_MAX)
        .collect();
    board.notes.extend(defects.iter().cloned());
    board.notes.sort();
    board.notes.dedup();
    vec![Fact::Noted {
        seat: Some(plan.seats[reply.seat].name().clone()),
        stage: STAGE.name.into(),
        text: match (listed, defects.is_empty()) {
            (None, _) => "its list cannot be read and counts for nothing".into(),
            (Some(_), true) => "finds no defect".into(),
            (Some(_), false) => defects.join("; "),
        },
    }]
}
