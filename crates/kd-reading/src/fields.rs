//! Finds the answer in an object without a field of a usual name: the only value that is an option, the only number, or
//! the only option set to `true`.

use super::options::Options;
use super::{Answer, Wanted, in_prose};
use serde_json::Value;

/// Parts of field names that hold no answer.
const OTHER: &[&str] = &[
    "confid",
    "certain",
    "probab",
    "score",
    "weight",
    "reason",
    "rationale",
    "thought",
    "explan",
    "note",
    "comment",
    "alternativ",
    "runner",
    "second",
    "worst",
    "loser",
    "rejected",
    "excluded",
    "fallback",
    "least",
    "id",
    "step",
    "year",
    "unit",
    "currency",
    "konfidenz",
    "sicherheit",
    "begründ",
    "confian",
    "seguridad",
    "raison",
    "razon",
    "razón",
    "置信",
    "理由",
    "原因",
    "备选",
    "option",
    "criteria",
    "error",
    "status",
    "index",
    "source",
    "min",
    "max",
    "question",
    "summary",
    "analysis",
    "not",
    "against",
    "con",
    "discard",
    "eliminat",
    "avoid",
    "instead",
];

/// Returns the answer under any name; `None` if no value is an answer, or several are.
pub(super) fn any(wanted: &Wanted, value: &Value) -> Option<Answer> {
    let fields = value.as_object()?;
    if let Wanted::Option(options) = wanted
        && let Some(at) = marked(options, value)
    {
        return Some(Answer::Option(at));
    }
    let mut found: Vec<Answer> = Vec::new();
    for (name, value) in fields {
        if is_other(name) {
            continue;
        }
        let answer = match (wanted, value) {
            (Wanted::Option(options), Value::String(text)) => options
                .stated(&super::prose::bare(text))
                .or_else(|| options.stated(&text.replace(['_', '-'], " ")))
                .map(Answer::Option),
            (Wanted::Option(options), Value::Bool(side)) if options.is_yes_no() => {
                // `safe: false` may answer a question for a danger.
                let known = !words_of(name)
                    .iter()
                    .any(|w| OPPOSITE.contains(&w.as_str()));
                let word = if *side { "yes" } else { "no" };
                options.stated(word).filter(|_| known).map(Answer::Option)
            }
            (Wanted::List, value @ Value::Array(_)) => {
                super::lists::of_value(value).map(|items| Answer::Text(items.join(", ")))
            }
            (Wanted::Ranking(given), Value::Array(items)) => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                let order = texts.and_then(|texts| super::lists::ranked(given, &texts.join("\n")));
                order.map(|items| Answer::Text(items.join(" > ")))
            }
            (Wanted::Date, Value::String(text)) if text.len() <= 40 => {
                in_prose(wanted, text).ok().map(|(answer, _)| answer)
            }
            (Wanted::Number, Value::Number(n)) => super::number::of_json(n).map(Answer::Text),
            (Wanted::Number, Value::String(text)) if text.len() <= 30 => {
                in_prose(wanted, text).ok().map(|(answer, _)| answer)
            }
            (_, inner @ Value::Object(_)) => any(wanted, inner),
            _ => None,
        };
        found.extend(answer);
    }
    let first = found.first()?.clone();
    found.iter().all(|answer| *answer == first).then_some(first)
}

/// Field names whose `false` may mean yes.
const OPPOSITE: &[&str] = &[
    "safe",
    "ok",
    "okay",
    "valid",
    "clean",
    "pass",
    "passed",
    "compliant",
    "harmless",
    "benign",
    "success",
    "negated",
    "refused",
];

/// Returns the words of a field name, in lower case: `contains_pii`, `isToxic`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut low = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && low {
            words.push(String::new());
        }
        low = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

/// Returns whether a field holds no answer: short parts are whole words of its name, long ones begin a word.
fn is_other(name: &str) -> bool {
    const SHORT: usize = 3;
    words_of(name).iter().any(|word| {
        OTHER.iter().any(
            |part| match part.chars().count() <= SHORT && part.is_ascii() {
                true => word == part,
                false => word.starts_with(part),
            },
        )
    })
}

/// Returns the one option that is `true`, if each field is an option.
fn marked(options: &Options, value: &Value) -> Option<usize> {
    let mut chosen = Vec::new();
    for (name, value) in value.as_object()? {
        let at = options.stated(name)?;
        if value.as_bool()? {
            chosen.push(at);
        }
    }
    match chosen.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}
