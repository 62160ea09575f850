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

/// Returns the answer under any name; `None` if no value is one, or several are.
pub(super) fn any(wanted: &Wanted, value: &Value) -> Option<Answer> {
    let fields = value.as_object()?;
    if let Wanted::Option(options) = wanted
        && let Some(at) = marked(options, value)
    {
        return Some(Answer::Option(at));
    }
    let mut found: Vec<Answer> = Vec::new();
    for (name, value) in fields {
        let name = super::folded(name);
        if OTHER.iter().any(|part| name.contains(part)) {
            continue;
        }
        let answer = match (wanted, value) {
            (Wanted::Option(options), Value::String(text)) => options
                .stated(&super::prose::bare(text))
                .map(Answer::Option),
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
