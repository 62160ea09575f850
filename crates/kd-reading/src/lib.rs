//! Reads the answer from a reply. Input: the expected kind of answer, and a reply written by any model. Output: the
//! answer and the step that found it, or why there is none. Steps go from strict to lenient: JSON (exact, fenced,
//! embedded, repaired), labelled lines, then the clauses of the prose. Each mention of an option or a number gets a
//! weight from its clause; the heaviest is the answer unless something contradicts it. Learned weights read
//! prose a second time. An ambiguous reply is not read.

#![warn(missing_docs)]

mod against;
mod alternatives;
mod amount_words;
mod amounts;
pub mod anchors;
mod answer_labels;
mod arithmetic;
pub mod asked;
mod asking;
mod candidates;
mod chinese;
mod clauses;
pub mod code;
pub mod contrast;
mod corrected;
mod counted;
mod counted_words;
mod cue_choices;
mod cue_doubts;
mod cue_roles;
mod cues;
pub mod date;
mod elements;
mod evidence;
mod failures;
mod fields;
mod folded;
mod gate;
mod gate_account;
mod gate_mentions;
mod gate_reasons;
mod gate_words;
mod grammar;
mod han_numerals;
pub mod json;
mod kind;
mod kind_words;
pub mod kinds;
mod labels;
pub mod language;
mod learned;
mod led;
mod lettered;
mod letters;
pub mod lists;
mod marks;
mod mentions;
mod naming;
pub mod number;
mod numeral_words;
mod numerals;
mod offers;
mod operands;
mod option_names;
pub mod options;
mod ordinals;
mod own_words;
mod plain;
pub mod prose;
mod prose_words;
mod ranking;
mod refusal;
mod rewritten;
mod said;
pub mod sameness;
mod sayings;
mod set_aside;
mod spoken;
mod stance;
mod standing;
mod statements;
mod thoughts;
mod ticks;
mod units;
pub mod unknown;
mod value;
mod verdict;
mod verdict_sides;
mod verdict_words;
mod voices;
mod weigh;
mod weights;
mod words;

pub use asking::first_sentence;
pub use counted::amount;
pub use language::Language;
pub use options::Options;

pub use prose::{THINKING_TAGS, after_thinking, without_thoughts};
pub use value::value;

use json::{Form, Found};
use prose::Said;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The step that found an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The reply is the requested JSON.
    Exact,
    /// JSON in a Markdown fence.
    Fenced,
    /// JSON surrounded by text.
    Embedded,
    /// JSON after repairs.
    Repaired,
    /// A line with a label: `Answer: 391`.
    Labelled,
    /// Words of an option.
    Words,
    /// The last line.
    LastLine,
    /// A short text as a whole.
    Whole,
    /// Weights learned from recorded replies.
    Weights,
}

impl Step {
    /// Returns its name in the record.
    pub fn words(self) -> &'static str {
        match self {
            Step::Exact => "exact JSON",
            Step::Fenced => "fenced JSON",
            Step::Embedded => "embedded JSON",
            Step::Repaired => "repaired JSON",
            Step::Labelled => "labelled line",
            Step::Words => "option words",
            Step::LastLine => "last line",
            Step::Whole => "whole text",
            Step::Weights => "learned weights",
        }
    }
}

impl From<Form> for Step {
    fn from(form: Form) -> Self {
        match form {
            Form::Exact => Step::Exact,
            Form::Fenced => Step::Fenced,
            Form::Embedded => Step::Embedded,
            Form::Repaired => Step::Repaired,
        }
    }
}

/// The reason why no answer was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unread {
    /// The reply has no words.
    Empty,
    /// The reply declines.
    Refused,
    /// The reply has several readings.
    Ambiguous,
    /// The reply contains nothing of the requested kind.
    Missing,
}

impl Unread {
    /// Returns the reason for the record.
    pub fn words(self) -> &'static str {
        match self {
            Unread::Empty => "the reply is empty",
            Unread::Refused => "the member declined to answer",
            Unread::Ambiguous => "the reply can be read in several ways",
            Unread::Missing => "the reply holds no answer of the kind asked for",
        }
    }

    /// Returns whether asking the member for the bare answer can help.
    pub fn is_worth_asking(self) -> bool {
        matches!(self, Unread::Ambiguous | Unread::Missing)
    }
}

/// The requested kind of answer.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// One of these options, by name or label.
    Option(Options),
    /// A number.
    Number,
    /// A day, a month or a year.
    Date,
    /// A JSON value.
    Json,
    /// A list, in any order.
    List,
    /// An order; of the items given by the question, if any.
    Ranking(Vec<String>),
    /// A command, an expression or a program.
    Code,
    /// A short text.
    Short,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Index of an option.
    Option(usize),
    /// A normalized number, a JSON value, or a short text.
    Text(String),
}

/// Maximum length of a text that is an answer as a whole, in bytes.
const SHORT_BYTES_MAX: usize = 200;
/// Maximum distance in characters from the start of a text at which a change of mind still counts as its beginning.
const TURN_CHARS_MAX: usize = 16;
/// Maximum bytes of a reply read as prose, counted from the end, where answers are.
const PROSE_BYTES_MAX: usize = 16 << 10;

/// Names of the field that holds an answer, most common first.
const ANSWER_FIELDS: &[&str] = &[
    "answer",
    "finalanswer",
    "choice",
    "vote",
    "option",
    "label",
    "selection",
    "selected",
    "selectedoption",
    "chosenoption",
    "chosen",
    "result",
    "value",
    "decision",
    "verdict",
    "antwort",
    "wahl",
    "réponse",
    "reponse",
    "choix",
    "respuesta",
    "elección",
    "eleccion",
    "答案",
    "选择",
    "position",
    "final",
    "output",
    "solution",
    "recommendation",
    "bestanswer",
    "pick",
];
/// The fields among them that may also contain an intermediate result.
const STEP_FIELDS: &[&str] = &["result", "value", "output", "label", "position", "option"];
/// Fields that wrap the requested object.
const WRAPPERS: &[&str] = &[
    "response",
    "result",
    "output",
    "data",
    "json",
    "reply",
    "properties",
    "answer",
    "final",
    "arguments",
    "parameters",
    "answers",
    "results",
    "choices",
];

/// Returns whether a reply declines to answer and says nothing else.
pub fn declines(reply: &str) -> bool {
    refusal::is_all(reply)
}

/// Reads the answer from a reply.
///
/// # Errors
/// If the reply is empty, declines, can be read in several ways, or holds no answer of the wanted kind.
pub fn read(wanted: &Wanted, reply: &str) -> Result<(Answer, Step), Unread> {
    if reply.trim().is_empty() {
        return Err(Unread::Empty);
    }
    let text = prose::without_thoughts(reply);
    let text = elements::as_labels(&text);
    let text = plain::without_input(&text);
    let text = text.trim();
    if text.is_empty() {
        return Err(Unread::Missing);
    }
    match in_objects(wanted, text) {
        InObjects::Read(answer, step) => return Ok((answer, step)),
        InObjects::Ambiguous => return Err(Unread::Ambiguous),
        InObjects::Refused => return Err(Unread::Refused),
        InObjects::None => {}
    }
    let is_code = matches!(wanted, Wanted::Code | Wanted::Json);
    if !is_code && failures::is_error(text) {
        return Err(Unread::Missing);
    }
    in_prose(wanted, tail(&without_objects(text)))
}

/// Reads the requested object. If several objects fit, they must be equal.
///
/// # Errors
/// If the reply is empty, declines, holds no object that fits, or holds fitting objects that differ.
pub fn object(reply: &str, fits: impl Fn(&Value) -> bool) -> Result<(Value, Step), Unread> {
    if reply.trim().is_empty() {
        return Err(Unread::Empty);
    }
    let text = prose::without_thoughts(reply);
    let found = json::objects(&text);
    let mut fitting: Vec<(Value, Step)> = Vec::new();
    for one in found {
        if let Some(value) = unwrapped(&one.value, &fits) {
            fitting.push((value, one.form.into()));
        }
    }
    let Some((first, step)) = fitting.first().cloned() else {
        return Err(match refusal::is_all(&text) {
            true => Unread::Refused,
            false => Unread::Missing,
        });
    };
    match fitting.iter().all(|(value, _)| *value == first) {
        true => Ok((first, step)),
        false => Err(Unread::Ambiguous),
    }
}

/// Returns the text around the objects of a reply: an object without an answer contains no hidden one.
fn without_objects(text: &str) -> String {
    let mut out = String::new();
    let mut from = 0;
    for one in json::objects(text) {
        out.push_str(text.get(from..one.start).unwrap_or_default());
        out.push('\n');
        from = one.end.min(text.len());
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// Returns a field of an object, ignoring the case of its name.
pub fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let fields = value.as_object()?;
    fields.get(name).or_else(|| {
        fields
            .iter()
            .find(|(n, _)| folded(n) == name)
            .map(|(_, v)| v)
    })
}

fn unwrapped(value: &Value, fits: &impl Fn(&Value) -> bool) -> Option<Value> {
    if fits(value) {
        return Some(value.clone());
    }
    WRAPPERS
        .iter()
        .filter_map(|name| field(value, name))
        .find(|inner| inner.is_object() && fits(inner))
        .cloned()
}

enum InObjects {
    Read(Answer, Step),
    Ambiguous,
    Refused,
    None,
}

fn in_objects(wanted: &Wanted, text: &str) -> InObjects {
    if let Some(answer) = first_of_list(wanted, text) {
        return InObjects::Read(answer, Step::Exact);
    }
    let mut found = json::objects(text);
    // `[{"step": 1, "result": "ok"}, {"answer": "no"}]`
    let final_one = |one: &Found| {
        answer_field(&one.value).is_some_and(|(name, _)| !STEP_FIELDS.contains(&name.as_str()))
    };
    let steps = |one: &Found| answer_field(&one.value).is_some() && !final_one(one);
    if found.last().is_some_and(final_one) {
        found.retain(|one| !steps(one));
    }
    let mut read: Vec<(Answer, Step, &Found)> = Vec::new();
    let mut unclear = false;
    for one in &found {
        match of_object(wanted, one, text) {
            Ok(Some(answer)) => read.push((answer, one.form.into(), one)),
            Ok(None) => {}
            Err(Unread::Refused) => return InObjects::Refused,
            Err(_) => unclear = true,
        }
    }
    let Some((last, step, place)) = read.last() else {
        return match unclear {
            true => InObjects::Ambiguous,
            false => InObjects::None,
        };
    };
    // Text that chooses another option contradicts the object.
    if let (Wanted::Option(options), Answer::Option(at)) = (wanted, last)
        && read.len() == 1
        && prose::contradicts(&without_objects(text), *at, options)
    {
        return InObjects::Ambiguous;
    }
    // A vote for another option in a field of the object, too.
    if let (Wanted::Option(options), Answer::Option(at)) = (wanted, last)
        && !options.is_yes_no()
        && read.len() == 1
    {
        let mut words = String::new();
        strings(&place.value, &mut words);
        if weigh::rivals(&words, *at, options) {
            return InObjects::Ambiguous;
        }
    }
    // A number that the text announces also contradicts the object.
    if let (Wanted::Number, Answer::Text(key), [_]) = (wanted, last, read.as_slice()) {
        let words = without_objects(text);
        let said = prose::number(&words, Language::of(&words));
        if matches!(said, Said::Labelled(other) if other != *key) {
            return InObjects::Ambiguous;
        }
    }
    // A change of mind after the object makes the reply ambiguous.
    let behind = text.get(place.end..).unwrap_or_default();
    if prose::turns(behind) {
        let then = in_prose(wanted, behind);
        // `Wait, …` at its beginning counts unless the same answer is repeated.
        let first: String = behind.trim_start().chars().take(TURN_CHARS_MAX).collect();
        let same = then.as_ref().is_ok_and(|(then, _)| then == last);
        let other = then.is_ok_and(|(then, _)| then != *last);
        if other || !same && prose::turns(&first) || prose::takes_back(behind) {
            return InObjects::Ambiguous;
        }
    }
    let same = read.iter().all(|(answer, ..)| answer == last);
    if same && !unclear {
        return InObjects::Read(last.clone(), *step);
    }
    let (_, _, before) = &read[read.len().saturating_sub(2)];
    let between = text.get(before.end..place.start).unwrap_or_default();
    match read.len() > 1 && prose::turns(between) {
        true => InObjects::Read(last.clone(), *step),
        false => InObjects::Ambiguous,
    }
}

/// Returns the option that begins a JSON list of texts, if no other text is an option: `["Lisbon", "It has the
/// breeze."]`
fn first_of_list(wanted: &Wanted, text: &str) -> Option<Answer> {
    let Wanted::Option(options) = wanted else {
        return None;
    };
    let items: Vec<String> = serde_json::from_str(text).ok()?;
    let (first, rest) = items.split_first()?;
    let at = options.stated(first)?;
    let others = rest.iter().filter_map(|item| options.stated(item));
    others.count().eq(&0).then_some(Answer::Option(at))
}

/// Returns the answer in an object; `None` if it has none.
fn of_object(wanted: &Wanted, found: &Found, text: &str) -> Result<Option<Answer>, Unread> {
    let mut value = &found.value;
    for _ in 0..2 {
        if answer_field(value)
            .is_some_and(|(_, v)| !v.is_object() || matches!(wanted, Wanted::Json))
        {
            break;
        }
        // A list with one object is treated as that object.
        let alone = |value: &'_ Value| value.as_array().is_some_and(|items| items.len() == 1);
        let inner = WRAPPERS.iter().find_map(|name| {
            let found = field(value, name)?;
            match alone(found) {
                true => found.get(0).filter(|v| v.is_object()),
                false => Some(found).filter(|v| v.is_object()),
            }
        });
        match inner {
            Some(inner) => value = inner,
            None => break,
        }
    }
    let Some((name, said)) = answer_field(value) else {
        return Ok(match wanted {
            Wanted::Json if found.form <= Form::Fenced => {
                Some(Answer::Text(found.value.to_string()))
            }
            _ if found.twice.is_empty() => match fields::any(wanted, &found.value) {
                Some(Answer::Text(key)) if matches!(wanted, Wanted::Number) => {
                    let key = regrouped(&key, &found.value, text).unwrap_or(key);
                    Some(Answer::Text(key))
                }
                any => any,
            },
            _ => None,
        });
    };
    if found.twice.iter().any(|t| folded(t) == name) {
        return Err(Unread::Ambiguous);
    }
    // The other fields tell how this reply writes numbers: `1.638 €` after `45,50 €`.
    if let (Wanted::Number, Value::String(said)) = (wanted, said)
        && let Some(key) = grouped(said, &found.value, text)
    {
        return Ok(Some(Answer::Text(key)));
    }
    match (of_value(wanted, said)?, wanted) {
        // `{"toxic": true, "label": "insult"}`
        (None, Wanted::Option(options)) if options.is_yes_no() && found.twice.is_empty() => {
            Ok(fields::any(wanted, value))
        }
        (answer, _) => Ok(answer),
    }
}

/// Returns the number of a field with one separator before three digits, if the rest of the reply shows that the
/// separator groups digits: by its language, or by the same digits without a separator.
fn grouped(said: &str, object: &Value, text: &str) -> Option<String> {
    let [one]: [number::Number; 1] = number::numbers(said, Language::of(said)).try_into().ok()?;
    let (whole, decimals) = said.get(one.start..one.end)?.split_once(['.', ','])?;
    if decimals.len() != 3 {
        return None;
    }
    let mut words = String::new();
    strings(object, &mut words);
    // The names of the fields are in the language of the reply, too.
    for name in object.as_object().into_iter().flat_map(|o| o.keys()) {
        words.push_str(name);
        words.push('\n');
    }
    let by_language = number::only(said, Language::of(&words)).filter(|key| *key != one.key);
    let joined = format!("{whole}{decimals}");
    let mut elsewhere = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | ','));
    by_language.or_else(|| {
        let again = elsewhere.any(|word| word.trim_matches(['.', ',']) == joined);
        again.then_some(joined)
    })
}

/// Returns the number of the field that was read as `key`, if the rest of the reply shows that its separator groups
/// digits.
fn regrouped(key: &str, object: &Value, text: &str) -> Option<String> {
    let mut texts = object.as_object()?.values().filter_map(Value::as_str);
    let reads = |said: &&str| number::only(said, Language::of(said)).as_deref() == Some(key);
    grouped(texts.find(reads)?, object, text)
}

/// Collects the texts of a JSON value.
fn strings(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, out)),
        _ => {}
    }
}

fn answer_field(value: &Value) -> Option<(String, &Value)> {
    let fields = value.as_object()?;
    ANSWER_FIELDS.iter().find_map(|wanted| {
        let (name, value) = fields.iter().find(|(name, _)| folded(name) == *wanted)?;
        Some((folded(name), value))
    })
}

fn of_value(wanted: &Wanted, said: &Value) -> Result<Option<Answer>, Unread> {
    let text = match (wanted, said) {
        (Wanted::Json, Value::String(text)) => {
            let inner = serde_json::from_str::<Value>(text).unwrap_or(said.clone());
            return Ok(Some(Answer::Text(inner.to_string())));
        }
        (Wanted::Json, value) => return Ok(Some(Answer::Text(value.to_string()))),
        (_, Value::Null) => return Ok(None),
        (Wanted::Number, Value::Number(n)) => return Ok(number::of_json(n).map(Answer::Text)),
        (Wanted::Option(options), Value::Bool(b)) if options.is_yes_no() => {
            if *b {
                "yes".to_owned()
            } else {
                "no".to_owned()
            }
        }
        (Wanted::Code, value @ Value::String(_)) => {
            return Ok(code::of_value(value).map(Answer::Text));
        }
        (_, Value::String(text)) => text.trim().to_owned(),
        (_, Value::Number(n)) => n.to_string(),
        (Wanted::List, value @ Value::Array(_)) => {
            return Ok(lists::of_value(value).map(|items| Answer::Text(items.join(", "))));
        }
        (Wanted::Ranking(given), Value::Array(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            let order = texts.and_then(|texts| lists::ranked(given, &texts.join("\n")));
            return Ok(order.map(|items| Answer::Text(items.join(" > "))));
        }
        (_, Value::Array(items)) if items.len() == 1 => return of_value(wanted, &items[0]),
        (Wanted::Short, Value::Array(items))
            if items.iter().all(|i| i.is_string() || i.is_number()) =>
        {
            let texts: Vec<String> = items
                .iter()
                .map(|i| i.as_str().map_or_else(|| i.to_string(), str::to_owned))
                .collect();
            texts.join(", ")
        }
        (_, Value::Object(_)) => match answer_field(said) {
            Some((_, inner)) if !inner.is_object() => return of_value(wanted, inner),
            _ => return Ok(fields::any(wanted, said)),
        },
        _ => return Err(Unread::Ambiguous),
    };
    if text.is_empty()
        || matches!(
            text.to_lowercase().as_str(),
            "..." | "…" | "null" | "n/a" | "<answer>" | "string" | "number"
        )
    {
        return Ok(None);
    }
    match wanted {
        Wanted::Option(_) | Wanted::Number | Wanted::Date | Wanted::List | Wanted::Ranking(_) => {
            match in_prose(wanted, &text) {
                Ok((answer, _)) => Ok(Some(answer)),
                // Another object may hold the answer.
                Err(Unread::Missing) => Ok(None),
                Err(why) => Err(why),
            }
        }
        _ => Ok(Some(Answer::Text(prose::bare(&text)))),
    }
}

/// Reads a choice among options from a reply to a question; words unique to an option are enough to name it.
///
/// # Errors
/// The reason why no choice is read.
pub fn choice(options: &[String], question: &str, reply: &str) -> Result<(usize, Step), Unread> {
    let asked = Options::asked(options, question);
    let lettered = asked.has_letters();
    // `B.` may be the second option, or the option called B.
    if asked.labels.is_empty() && kinds::are_lettered(question, options) && lettered::begins(reply)
    {
        return Err(Unread::Ambiguous);
    }
    let wanted = Wanted::Option(asked);
    let place = |answer: Answer| match answer {
        Answer::Option(at) => Ok(at),
        Answer::Text(_) => Err(Unread::Missing),
    };
    match read(&wanted, reply) {
        Ok((answer, step)) => place(answer).map(|at| (at, step)),
        Err(Unread::Missing) => {
            let stated = stated_field(reply);
            let text = stated.as_deref().unwrap_or(reply);
            own_words::of(options, question, text)
                .map(|at| (at, Step::Words))
                .ok_or(Unread::Missing)
        }
        // `X is slow. So Y.`
        Err(Unread::Ambiguous)
            if !lettered
                && !breaks_off(reply)
                && own_words::concluded(options, question, reply).is_some() =>
        {
            let at = own_words::concluded(options, question, reply).ok_or(Unread::Ambiguous)?;
            Ok((at, Step::LastLine))
        }
        // `the discount (the feature costs more)`
        Err(Unread::Ambiguous) if reply.len() <= SHORT_BYTES_MAX && reply.contains(" (") => {
            let (bare, _) = asking::without_asides(reply);
            let (answer, step) = read(&wanted, &bare).map_err(|_| Unread::Ambiguous)?;
            place(answer).map(|at| (at, step))
        }
        Err(why) => Err(why),
    }
}

/// Returns the text in the answer field of the last object of a reply.
pub fn stated_field(reply: &str) -> Option<String> {
    let found = json::objects(reply);
    let (_, value) = answer_field(&found.last()?.value)?;
    value.as_str().map(str::to_owned)
}

/// Returns the one option equal to a text in another form: the same number (`384 400 Kilometer` for `384400`), or the
/// same items in another order.
fn equal_option(options: &Options, text: &str) -> Option<usize> {
    let number = |text: &str| match in_prose(&Wanted::Number, text) {
        Ok((Answer::Text(key), _)) => Some(key),
        _ => None,
    };
    let numbers: Option<Vec<String>> = options.names().map(number).collect();
    if let Some(numbers) = numbers
        && let Some(said) = number(text)
    {
        return only(numbers.iter().map(|key| *key == said));
    }
    let said = lists::items(text)?;
    only(
        options
            .names()
            .map(|name| lists::items(name).as_ref() == Some(&said)),
    )
}

/// Returns the index of the only match.
fn only(fits: impl Iterator<Item = bool>) -> Option<usize> {
    let mut fitting = fits.enumerate().filter(|(_, fits)| *fits);
    let (at, _) = fitting.next()?;
    fitting.next().is_none().then_some(at)
}

/// Minimum probability of an answer that only the [weights](learned) find, and of yes and no, which need not be named. Chosen
/// so that on replies of authors left out of the training few of these answers are wrong: a reply that stays open costs one
/// more request, a wrong one a vote.
const ALONE_MIN: f32 = 0.9;
const SIDE_MIN: f32 = 0.98;
/// Minimum probability of an answer that the rules find too: by a label or in the last line, and of options by their words in
/// prose, where the rules err more often.
const WITH_RULES_MIN: f32 = 0.2;
const WITH_WORDS_MIN: f32 = 0.6;
/// Maximum words of a reply that says little besides its answer.
const SHORT_WORDS_MAX: usize = 15;
/// Minimum probability of "no answer" at which a sentence is not an answer as a whole.
const NONE_MIN: f32 = 0.5;
/// Maximum number of words, and of Han characters, of a text that is an answer as a whole however it is worded.
const BARE_WORDS_MAX: usize = 5;
const BARE_HAN_MAX: usize = 10;

/// Reads prose twice, by rules and by learned weights: an answer of the rules that the weights do not expect stays open,
/// and what the rules leave open is read if the weights are sure.
fn in_prose(wanted: &Wanted, text: &str) -> Result<(Answer, Step), Unread> {
    let read = by_rules(wanted, text);
    match learned::rank(wanted, text) {
        Some(ranked) => joined(wanted, text, read, &ranked),
        None => read,
    }
}

/// Joins what the rules and the weights say.
fn joined(
    wanted: &Wanted,
    text: &str,
    read: Result<(Answer, Step), Unread>,
    ranked: &learned::Ranked,
) -> Result<(Answer, Step), Unread> {
    match &read {
        Ok((_, Step::Labelled)) if corrected::after_label(text) => Err(Unread::Ambiguous),
        // The rules find short texts by a label or a mark, or take a whole sentence.
        Ok((Answer::Text(said), _)) if matches!(wanted, Wanted::Short) => match ranked.best() {
            _ if is_bare(said) || prose::bare(text) != *said => read,
            _ if asks_back(text) => Err(Unread::Missing),
            Some((answer, share)) if share >= ALONE_MIN => Ok((answer.clone(), Step::Weights)),
            _ if ranked.none() >= NONE_MIN => Err(Unread::Missing),
            _ => read,
        },
        Ok((answer, step))
            if ranked
                .of(answer)
                .is_some_and(|share| share < with_rules(*step, text)) =>
        {
            Err(Unread::Ambiguous)
        }
        Err(Unread::Ambiguous) if matches!(wanted, Wanted::Short) => read,
        // The weights are of prose.
        Err(_) if code::is_program(text) => read,
        Err(why) if why.is_worth_asking() && !ends_open(wanted, text) => match ranked.best() {
            Some((answer, share)) if share >= alone(wanted, answer, ranked) => {
                Ok((answer.clone(), Step::Weights))
            }
            _ => read,
        },
        _ => read,
    }
}

/// Returns the minimum probability of an answer that the rules found in this step. A short reply says little else.
fn with_rules(step: Step, text: &str) -> f32 {
    let words = text.split_whitespace().count();
    let han = text.chars().filter(|c| language::is_han(*c)).count();
    let is_long = words > SHORT_WORDS_MAX || han > 2 * SHORT_WORDS_MAX;
    match step {
        Step::Words if is_long => WITH_WORDS_MIN,
        _ => WITH_RULES_MIN,
    }
}

/// Returns whether a text has few words.
fn is_bare(text: &str) -> bool {
    text.split_whitespace().count() <= BARE_WORDS_MAX
        && text.chars().filter(|c| language::is_han(*c)).count() <= BARE_HAN_MAX
}

/// Returns the minimum probability of an answer that the rules leave open.
fn alone(wanted: &Wanted, answer: &Answer, ranked: &learned::Ranked) -> f32 {
    match wanted {
        Wanted::Option(options) if options.is_yes_no() => SIDE_MIN,
        // Numbers in the middle are those of the way there.
        Wanted::Number if !ranked.ends_with(answer) => f32::INFINITY,
        _ => ALONE_MIN,
    }
}

fn by_rules(wanted: &Wanted, text: &str) -> Result<(Answer, Step), Unread> {
    let options = match wanted {
        Wanted::Option(options) => Some(options),
        Wanted::Number | Wanted::Date => None,
        _ => return stated_in(wanted, text),
    };
    let text = &rewritten::with_han_marks(text);
    let closed = offers::without(text, options);
    let read = stated_in(wanted, closed.text)?;
    // An offer about another option than the one that was read.
    match (&read.0, closed.offered) {
        (Answer::Option(at), Some(offered)) if *at != offered => Err(Unread::Ambiguous),
        _ => Ok(read),
    }
}

/// Reads a text without its closing courtesies.
fn stated_in(wanted: &Wanted, text: &str) -> Result<(Answer, Step), Unread> {
    let said = match wanted {
        Wanted::Option(options) => match prose::option(text, options) {
            Said::Nothing => match equal_option(options, text) {
                Some(at) => Said::Words(Answer::Option(at)),
                None => Said::Nothing,
            },
            said => said.map(Answer::Option),
        },
        Wanted::Number => match asked::percentage(text).or_else(|| asked::count(text)) {
            Some(key) => Said::LastLine(Answer::Text(key)),
            None => prose::number(text, Language::of(text)).map(Answer::Text),
        },
        Wanted::Date => prose::date(text).map(Answer::Text),
        Wanted::Json => {
            let at = text.find(['[', '{']);
            let value = at.and_then(|at| {
                let rest = text.get(at..)?;
                let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                stream.next()?.ok()
            });
            match value {
                Some(value) => Said::Words(Answer::Text(value.to_string())),
                None => Said::Nothing,
            }
        }
        Wanted::List => list(text),
        Wanted::Ranking(given) => ranking(given, text),
        Wanted::Code => match code::of(text).filter(|_| !refusal::is_all(text)) {
            Some(found) => Said::Words(Answer::Text(found)),
            None if refusal::is_all(text) => Said::Refused,
            None => Said::Nothing,
        },
        Wanted::Short => short(text),
    };
    match said {
        Said::Words(_) | Said::LastLine(_) if ends_open(wanted, text) => Err(Unread::Ambiguous),
        Said::Labelled(answer) => Ok((answer, Step::Labelled)),
        Said::Words(answer) => Ok((answer, Step::Words)),
        Said::LastLine(answer) => Ok((answer, Step::LastLine)),
        Said::Several => Err(Unread::Ambiguous),
        Said::Refused => Err(Unread::Refused),
        Said::Nothing => Err(Unread::Missing),
    }
}

/// Returns whether a reply has not decided: it ends with a question, or mid-sentence.
fn ends_open(wanted: &Wanted, text: &str) -> bool {
    match wanted {
        // The option is chosen before the question.
        Wanted::Option(_) => breaks_off(text),
        Wanted::Number | Wanted::Date => asks_back(text) || breaks_off(text),
        _ => false,
    }
}

/// Returns whether a text of several words ends with a word that needs a continuation: `so the total is`.
fn breaks_off(text: &str) -> bool {
    const DANGLING: &str = "is are was were be equals the of to and that which than with from ist sind war beträgt der die das den und dass mit von \
        est sont était le la les du des et que avec es son era el los las del y con at then danach dann ensuite puis después luego";
    const HAN: [&str; 10] = [
        "等于",
        "所以",
        "因此",
        "那么",
        "以及",
        "就是",
        "接着",
        "然后",
        "再看",
        "再看看",
    ];
    let text = text.trim_end();
    // A comma or an opening bracket after several clauses: cut off.
    let open = text.ends_with([',', '，', '、', ':', '：', '(', '（']);
    if open && text.contains(['.', '。', '!', '！', '?', '？', '\n']) {
        return true;
    }
    let words = text.split_whitespace();
    let last = words.clone().next_back().unwrap_or_default().to_lowercase();
    words.count() > 4 && DANGLING.split_whitespace().any(|word| word == last)
        || text.chars().count() > 8 && HAN.iter().any(|word| text.ends_with(word))
}

/// Returns whether the last of several sentences is a question.
fn asks_back(text: &str) -> bool {
    let text = text.trim_end_matches([' ', '\n', '\r', '*', '_', '"', '”', '»', ')']);
    let Some(question) = text.strip_suffix(['?', '？']) else {
        return false;
    };
    question.contains(['.', '!', '?', ':', '。', '！', '？', '：', '\n'])
}

/// Reads a list: from a labelled line, otherwise from a short text or bullets.
fn list(text: &str) -> Said<Answer> {
    let taken = |text: &str| lists::items(text).map(|items| Answer::Text(items.join(", ")));
    if let Some(answer) = prose::labelled_text(text).as_deref().and_then(taken) {
        return Said::Labelled(answer);
    }
    if refusal::is_all(text) {
        return Said::Refused;
    }
    let whole = prose::bare(text);
    match taken(text).filter(|_| whole.len() <= 2 * SHORT_BYTES_MAX) {
        Some(answer) => Said::Words(answer),
        None => Said::Nothing,
    }
}

/// Reads an order: from a labelled line, otherwise from a short text or bullets.
fn ranking(given: &[String], text: &str) -> Said<Answer> {
    let taken =
        |text: &str| lists::ranked(given, text).map(|items| Answer::Text(items.join(" > ")));
    if let Some(answer) = prose::labelled_text(text).as_deref().and_then(taken) {
        return Said::Labelled(answer);
    }
    if refusal::is_all(text) {
        return Said::Refused;
    }
    let whole = prose::bare(text);
    match taken(text).filter(|_| whole.len() <= 2 * SHORT_BYTES_MAX) {
        Some(answer) => Said::Words(answer),
        None => Said::Nothing,
    }
}

/// Reads a short text: the labelled line, otherwise the whole text if it is one line.
fn short(text: &str) -> Said<Answer> {
    let mut lines = text.lines().filter(|l| !l.trim().is_empty());
    let titled =
        lines.clone().count() == 2 && lines.clone().next().is_some_and(|l| l.starts_with('#'));
    if let (true, Some(line)) = (
        titled && prose::labelled_text(text).is_none(),
        lines.next_back(),
    ) {
        return short(line);
    }
    if let Some(line) = prose::labelled_text(text).filter(|l| l.len() <= SHORT_BYTES_MAX) {
        return Said::Labelled(Answer::Text(line));
    }
    let text = match prose::open_answer(text) {
        Said::Words(text) => text,
        Said::Several => return Said::Several,
        _ => return Said::Refused,
    };
    if refusal::asks_for_more(text) {
        return Said::Several;
    }
    if let Some(named) = on_own_line(text).or_else(|| in_only_fence(text)) {
        return Said::Words(Answer::Text(named));
    }
    if let Some(named) = on_last_line(text) {
        return Said::LastLine(Answer::Text(named));
    }
    if let Some(named) = in_last_sentence(text) {
        return Said::Words(Answer::Text(named));
    }
    if let Some(marked) = marked(text)
        .or_else(|| behind_noun(text))
        .or_else(|| led::name(text))
    {
        return Said::Words(Answer::Text(marked));
    }
    // One sentence may be the answer as a whole.
    let whole = prose::bare(text);
    let one = !whole.contains('\n') && prose::sentences(&whole).len() < 2;
    match !whole.is_empty() && whole.len() <= SHORT_BYTES_MAX && one {
        true => Said::Words(Answer::Text(whole)),
        false => Said::Nothing,
    }
}

/// Returns the name given by a sentence: `The highest mountain is Mount Everest.`
fn complement(text: &str) -> Option<String> {
    const ARTICLES: &[&str] = &[
        "the", "der", "die", "das", "le", "la", "l'", "el", "it's", "it",
    ];
    let bare = prose::bare(text);
    let first = bare.split_whitespace().next()?.to_lowercase();
    let begins = ARTICLES.contains(&first.as_str()) || first.starts_with("l'");
    let mut parts = [
        " is ", " was ", " ist ", " war ", " est ", " était ", " es ", " fue ",
    ]
    .iter()
    .filter_map(|copula| bare.split_once(copula));
    let (_, name) = parts.next().filter(|_| begins)?;
    let is_name = name.split_whitespace().count() <= 4
        && name.starts_with(char::is_uppercase)
        && !name.contains([',', ';', ':', '.', '('])
        && !name.contains(" is ");
    is_name.then(|| name.to_owned())
}

/// Returns the name that a short last sentence gives by pointing back: `It has the symbol W. That is tungsten.`
fn in_last_sentence(text: &str) -> Option<String> {
    const POINTS: [&str; 14] = [
        "that is ",
        "that's ",
        "this is ",
        "it is ",
        "it's ",
        "das ist ",
        "es ist ",
        "das wäre ",
        "c'est ",
        "il s'agit de ",
        "es ",
        "se trata de ",
        "这是",
        "就是",
    ];
    const WORDS_MAX: usize = 4;
    let sentences = prose::sentences(text);
    let (last, before) = sentences.split_last()?;
    let folded = folded::Folded::new(last.trim_start());
    let name = POINTS.iter().find_map(|lead| folded.strip_prefix(lead))?;
    let name = prose::bare(name);
    let words = name.split_whitespace().count();
    let han = name.chars().any(language::is_han) && name.chars().count() <= 10;
    let named = han || (1..=WORDS_MAX).contains(&words) && name.starts_with(char::is_uppercase);
    let plain = !name.contains([',', ';', ':', '(', '，', '、', '?', '？']);
    (!before.is_empty() && named && plain).then_some(name)
}

/// Returns the only bold words of a sentence, or the quotation after a label: `The capital is **Ottawa**.`
fn marked(text: &str) -> Option<String> {
    let text = text.trim();
    if text.contains('\n') {
        return None;
    }
    let says = |side: &&str| {
        let han = side.chars().filter(|c| language::is_han(*c)).count();
        side.split_whitespace().count() > 1 || han > 1
    };
    if let [before, bold, after] = text.split("**").collect::<Vec<_>>().as_slice()
        && [before, after].into_iter().any(says)
        && !bold.trim_end().ends_with([':', '：'])
        && !bold.trim().is_empty()
    {
        return Some(prose::bare(bold));
    }
    if let Some(named) = complement(text) {
        return Some(named);
    }
    named_in_quotes(text)
}

/// Returns the line introduced by the one before: `The biggest planet is:` and `Jupiter`.
fn on_own_line(text: &str) -> Option<String> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let (head, line, None) = (lines.next()?, lines.next()?, lines.next()) else {
        return None;
    };
    let introduces = head.trim_end().ends_with([':', '：']) && line.split_whitespace().count() <= 8;
    introduces
        .then(|| prose::bare(line))
        .filter(|l| !l.is_empty())
}

/// Returns the only line of the only code block, if the reply ends with it and a colon introduces it.
fn in_only_fence(text: &str) -> Option<String> {
    let [head, block, tail] = text.split("```").collect::<Vec<_>>()[..] else {
        return None;
    };
    // The language of the block is on its first line.
    let (_, code) = block.split_once('\n')?;
    // `The command is simply`
    const LEADS: [&str; 10] = [
        "is",
        "simply",
        "just",
        "lautet",
        "ist",
        "einfach",
        "est",
        "simplement",
        "es",
        "simplemente",
    ];
    let last = head
        .split_whitespace()
        .next_back()
        .unwrap_or_default()
        .to_lowercase();
    let introduces = head.trim_end().ends_with([':', '：']) || LEADS.contains(&last.as_str());
    let one = code.trim().lines().count() == 1 && code.trim().len() <= SHORT_BYTES_MAX;
    (introduces && one && tail.trim().is_empty()).then(|| code.trim().to_owned())
}

/// Returns the value of a last paragraph that consists of a describing word, a colon and a short value: `Encoding:
/// UTF-16`.
fn on_last_line(text: &str) -> Option<String> {
    let (before, line) = text.trim_end().rsplit_once("\n\n")?;
    let described = |line: &str| {
        let (head, rest) = line.split_once([':', '：'])?;
        let short = !rest.trim().is_empty() && rest.split_whitespace().count() <= 3;
        (head.split_whitespace().count() <= 2 && short).then_some(())
    };
    // Several such lines are a list.
    let listed = before.lines().any(|line| described(line.trim()).is_some());
    match line.contains('\n') || listed {
        true => None,
        false => behind_noun(line),
    }
}

/// Returns the text after a describing word and a colon: `Mot cherché : idempotence.`
fn behind_noun(text: &str) -> Option<String> {
    const NOUNS: &str = "word term name title phrase expression keyword spelling plural opposite synonym translation capital city country author \
        encoding charset codec command function method library package protocol port header option variable setting file filename format \
        befehl funktion bibliothek protokoll datei dateiname kodierung zeichensatz \
        commande fonction bibliothèque protocole fichier encodage comando función biblioteca protocolo archivo codificación \
        wort begriff name titel ausdruck stichwort fachbegriff fachwort schreibweise gegenteil synonym übersetzung hauptstadt stadt land autor autorin \
        mot terme nom titre expression synonyme contraire traduction capitale ville pays auteur orthographe \
        palabra término nombre título expresión sinónimo traducción capital ciudad país autor ortografía";
    const HAN: [&str; 13] = [
        "词",
        "术语",
        "名称",
        "名字",
        "标题",
        "成语",
        "单词",
        "首都",
        "作者",
        "编码",
        "命令",
        "函数",
        "文件名",
    ];
    let line = prose::bare(text);
    let (head, rest) = line.split_once([':', '：'])?;
    let words: Vec<String> = head
        .to_lowercase()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let noun = words
        .iter()
        .any(|w| NOUNS.split_whitespace().any(|noun| noun == w))
        || HAN.iter().any(|noun| head.trim().ends_with(noun));
    let rest = rest.trim();
    let one = !rest.contains([':', '：', '\n', ';']) && rest.split_whitespace().count() <= 6;
    (noun && words.len() <= 3 && one && !rest.is_empty()).then(|| prose::bare(rest))
}

/// Returns the quotation at the end of a short sentence: `Gesucht ist das Wort „Kulanz“.`
fn named_in_quotes(text: &str) -> Option<String> {
    const PAIRS: [(char, char); 10] = [
        ('«', '»'),
        ('»', '«'),
        ('‚', '‘'),
        ('„', '”'),
        ('『', '』'),
        ('“', '”'),
        ('„', '“'),
        ('"', '"'),
        ('「', '」'),
        ('‘', '’'),
    ];
    const BEFORE: std::ops::RangeInclusive<usize> = 1..=8;
    const DENIALS: &[&str] = &[
        " not ", "n't ", " nicht ", " kein", " pas ", " no ", "不", "没",
    ];
    let text = text.trim().trim_end_matches(['.', '。', '!', '！']);
    let close = text.chars().next_back()?;
    let low = format!(" {} ", text.to_lowercase());
    if DENIALS.iter().any(|denial| low.contains(denial)) {
        return None;
    }
    PAIRS
        .iter()
        .filter(|pair| pair.1 == close)
        .find_map(|(open, close)| {
            let (before, inner) = text.strip_suffix(*close)?.split_once(*open)?;
            let quotes = |c: char| PAIRS.iter().any(|(open, close)| c == *open || c == *close);
            let is_one = !inner.contains(quotes) && !before.contains(quotes);
            // What a later sentence quotes is about the answer: `The author is Li Bai. He is called “…”.`
            let follows = prose::sentences(before).len() > 1;
            let names = is_one && !follows && BEFORE.contains(&before.split_whitespace().count());
            (names && !inner.trim().is_empty()).then(|| inner.trim().to_owned())
        })
}

/// Returns the end of a long text.
fn tail(text: &str) -> &str {
    let from = text.len().saturating_sub(PROSE_BYTES_MAX);
    text.get(text.ceil_char_boundary(from)..)
        .unwrap_or_default()
}

fn folded(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' '))
        .collect::<String>()
        .to_lowercase()
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
