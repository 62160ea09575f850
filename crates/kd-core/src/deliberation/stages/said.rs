//! Reads the statements of a reply about labels, in the forms that models use instead of the requested one: numbers,
//! orders and approvals in objects, lists and lines.

use kd_reading::Options;
use serde_json::Value;

/// Fields that hold a number about a label.
const NUMBERS: &[&str] = &["rating", "score", "points", "value", "grade", "votes"];
/// Fields that name a label.
const LABELS: &[&str] = &[
    "label",
    "answer",
    "option",
    "candidate",
    "id",
    "name",
    "choice",
    "item",
];
/// Fields that hold a place in an order.
const PLACES: &[&str] = &["rank", "place", "position", "ranking"];
/// Words of places, best first.
const ORDINALS: &[&str] = &[
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh",
];
/// Fields of an order.
pub(super) const ORDERS: &[&str] = &[
    "ranking",
    "rankings",
    "ranked",
    "rank",
    "order",
    "preferences",
];
/// Fields of points.
pub(super) const SCORES: &[&str] = &["scores", "score", "points", "ratings", "rating"];
/// Fields of approvals.
pub(super) const APPROVALS: &[&str] = &["approve", "approved", "approves", "approvals", "approval"];

/// A number about a label, and the words after it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) number: f64,
    pub(super) words: String,
}

/// Returns the number in a JSON value: `6`, `"6"`, `"6/10"`, `{"rating": 6}`. `most` is the end of the scale.
pub(super) fn number(value: &Value, most: f64) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => leading(text, most).map(|(number, _)| number),
        Value::Object(_) => {
            let mut fields = NUMBERS.iter().filter_map(|f| kd_reading::field(value, f));
            fields
                .find(|v| !v.is_object())
                .and_then(|v| number(v, most))
        }
        _ => None,
    }
}

/// Returns the number at the beginning of a text, and the rest: `6/10 – weak`, `5 points`. A number followed by other
/// words is not a rating: `5 of them`.
fn leading(text: &str, most: f64) -> Option<(f64, &str)> {
    let text = text.trim_start_matches([' ', '*', '_', '`', '"', '“', '(', '[']);
    let digits = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let end = end.unwrap_or(text.len());
        text[..end].trim_end_matches('.').len()
    };
    let end = digits(text);
    let number: f64 = text.get(..end)?.parse().ok()?;
    let mut rest = &text[end..];
    let scale = rest.trim_start().trim_start_matches(['*', '_']);
    let scale = ["/", "out of", "of"].iter().find_map(|by| {
        let scale = scale.strip_prefix(by)?.trim_start();
        let end = digits(scale);
        Some((scale.get(..end)?.parse::<f64>().ok()?, &scale[end..]))
    });
    if let Some((of, more)) = scale {
        if of != most {
            return None;
        }
        rest = more;
    }
    for unit in ["points", "point", "pts", "stars"] {
        let trimmed = rest.trim_start();
        rest = trimmed.strip_prefix(unit).unwrap_or(rest);
    }
    let rest = rest.trim_start_matches(['*', '_', '`', '"', '”', ')', ']', '%']);
    let ends = rest
        .trim_start()
        .chars()
        .next()
        .is_none_or(|c| !c.is_alphanumeric());
    let sign = rest.starts_with('%');
    (ends && !sign).then_some((number, rest))
}

/// Returns what a JSON value says about each label: an object by label, a list of objects, lines, or as many numbers as
/// there are labels. `None` if it says nothing, or two different things about one label.
pub(super) fn table(
    value: &Value,
    options: &Options,
    count: usize,
    most: f64,
) -> Option<Vec<Option<Said>>> {
    let said = |value: &Value| {
        let number = number(value, most)?;
        let words = ["weakness", "reason", "comment"].iter();
        let mut words = words.filter_map(|f| kd_reading::field(value, f)?.as_str());
        Some(Said {
            number,
            words: words.next().unwrap_or_default().to_owned(),
        })
    };
    let mut out = vec![None; count];
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(at) = options.stated(name) {
                    put(&mut out, at, said(value))?;
                }
            }
        }
        Value::Array(items) if items.len() == count && items.iter().all(Value::is_number) => {
            for (at, item) in items.iter().enumerate() {
                put(&mut out, at, said(item))?;
            }
        }
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::String(line) => {
                        for (at, said) in lines(line, options, count, most)?.into_iter().enumerate()
                        {
                            put(&mut out, at, said)?;
                        }
                    }
                    item => match label_of(item, options) {
                        Some(at) => put(&mut out, at, said(item))?,
                        None => {
                            let inner = item.is_object().then(|| table(item, options, count, most));
                            for (at, said) in inner??.into_iter().enumerate() {
                                put(&mut out, at, said)?;
                            }
                        }
                    },
                }
            }
        }
        Value::String(text) => return lines(text, options, count, most),
        _ => return None,
    }
    out.iter().any(Option::is_some).then_some(out)
}

/// Returns what the lines of a text say about each label: `A: 5`, `- **B** – 3/5, because …`, `| C | 1 |`.
pub(super) fn lines(
    text: &str,
    options: &Options,
    count: usize,
    most: f64,
) -> Option<Vec<Option<Said>>> {
    let mut out = vec![None; count];
    for line in text.lines() {
        let whole = pair(line, options, most);
        let pieces = line
            .split([',', ';'])
            .filter_map(|piece| pair(piece, options, most));
        let pieces: Vec<(usize, Said)> = pieces.collect();
        let found = match (whole, pieces.len()) {
            (Some(whole), 0 | 1) => vec![whole],
            _ => pieces,
        };
        for (at, said) in found {
            put(&mut out, at, Some(said))?;
        }
    }
    out.iter().any(Option::is_some).then_some(out)
}

/// Maximum bytes before the mark between a label and its number. Without these limits a long line is read for minutes.
const LABEL_BYTES_MAX: usize = 200;
/// Maximum words with a colon before a label.
const LEADS_MAX: usize = 4;

/// Returns the label at the beginning of a line, and the number after it.
fn pair(line: &str, options: &Options, most: f64) -> Option<(usize, Said)> {
    const BETWEEN: [char; 8] = [':', '=', '|', '–', '—', '-', '：', '('];
    let mut line = unnumbered(line).trim_matches(['|', ' ']);
    let stated = |line: &'_ str| {
        let short = line.match_indices(BETWEEN);
        let short = short.take_while(|(at, _)| *at <= LABEL_BYTES_MAX);
        let mut found = short.filter_map(|(at, by)| {
            let label = line[..at].trim_matches([' ', '*', '_', '`', '"']);
            Some((options.stated(label)?, at + by.len()))
        });
        found.next()
    };
    let mut leads = 0;
    let (at, from) = loop {
        if let Some(found) = stated(line) {
            break found;
        }
        leads += 1;
        if leads > LEADS_MAX {
            return None;
        }
        // `Scores: A: 5`
        let behind = line.split_once([':', '：'])?.1;
        line = unnumbered(behind).trim_matches(['|', ' ']);
    };
    let rest = &line[from..];
    let rest = rest
        .trim_start_matches(BETWEEN)
        .trim_start_matches([' ', '>', '*']);
    let (number, words) = leading(rest, most)?;
    let words = words.trim_matches([' ', '–', '—', '-', ':', ',', ';', '.', '|', '(', ')']);
    Some((
        at,
        Said {
            number,
            words: words.to_owned(),
        },
    ))
}

/// Returns a line without the mark of a list item.
fn unnumbered(line: &str) -> &str {
    let line = line.trim_start_matches([' ', '\t', '-', '*', '•', '#', '>']);
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match digits.len() < line.len() {
        true => digits
            .strip_prefix(['.', ')'])
            .map_or(line, str::trim_start),
        false => line,
    }
}

/// Stores a statement about a label; `None` if a different one is already stored.
fn put(out: &mut [Option<Said>], at: usize, said: Option<Said>) -> Option<()> {
    let (Some(said), Some(slot)) = (said, out.get_mut(at)) else {
        return Some(());
    };
    match slot {
        Some(before) if before.number != said.number => None,
        Some(_) => Some(()),
        None => {
            *slot = Some(said);
            Some(())
        }
    }
}

/// Returns the label that an object names.
fn label_of(value: &Value, options: &Options) -> Option<usize> {
    let mut names = LABELS
        .iter()
        .filter_map(|f| kd_reading::field(value, f)?.as_str());
    names.find_map(|name| options.stated(name))
}

/// Returns the labels in the order of a JSON value, best first: a list of labels or of objects, an object of places or
/// by place, a line. `None` if it is not an order.
pub(super) fn order(value: &Value, options: &Options, count: usize) -> Option<Vec<usize>> {
    let placed = |name: &str, value: &Value| {
        let at = options.stated(name)?;
        Some((place(value)?, at))
    };
    let pairs: Vec<(u64, usize)> = match value {
        Value::String(line) => return options.ranked(line),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let lines = items.iter().filter_map(Value::as_str);
            let stated = |line: &str| {
                options
                    .stated(line)
                    .or_else(|| options.stated(unnumbered(line)))
            };
            let places: Option<Vec<usize>> = lines.map(stated).collect();
            places?
                .into_iter()
                .enumerate()
                .map(|(rank, at)| (rank as u64 + 1, at))
                .collect()
        }
        Value::Array(items) => {
            // A list with numbers in another order has the order of the labels.
            let numbers = items.iter().filter_map(|item| number(item, f64::MAX));
            let numbers: Vec<f64> = numbers.collect();
            if numbers.windows(2).any(|two| two[0] < two[1]) {
                return None;
            }
            let mut pairs = Vec::new();
            for (rank, item) in items.iter().enumerate() {
                let fields = item.as_object()?;
                let stated = PLACES.iter().find_map(|f| kd_reading::field(item, f));
                pairs.push(match (label_of(item, options), stated) {
                    (Some(at), Some(stated)) => (place(stated)?, at),
                    (Some(at), None) => (rank as u64 + 1, at),
                    (None, _) if fields.len() == 1 => fields
                        .iter()
                        .find_map(|(name, value)| placed(name, value))?,
                    (None, _) => return None,
                });
            }
            pairs
        }
        Value::Object(fields) => {
            let by_label = fields
                .iter()
                .filter(|(name, _)| options.stated(name).is_some());
            let by_label: Vec<_> = by_label.collect();
            match by_label.is_empty() {
                false => {
                    let pairs = by_label.iter().map(|(name, value)| placed(name, value));
                    pairs.collect::<Option<_>>()?
                }
                true => {
                    let by_place = fields.iter().map(|(name, value)| {
                        let rank = place(&Value::String(name.clone()))?;
                        Some((rank, options.stated(value.as_str()?)?))
                    });
                    by_place.flatten().collect()
                }
            }
        }
        _ => return None,
    };
    let mut pairs = pairs;
    pairs.sort_unstable();
    // Places, not points: each from 1 to the number of labels, once.
    let in_turn = pairs
        .iter()
        .enumerate()
        .all(|(at, (rank, _))| *rank == at as u64 + 1);
    let order: Vec<usize> = pairs.into_iter().map(|(_, at)| at).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    (in_turn && sorted.into_iter().eq(0..count)).then_some(order)
}

/// Returns the place that a value names: `1`, `"1st"`, `"second"`, `{"rank": 3}`.
fn place(value: &Value) -> Option<u64> {
    match value {
        Value::Number(_) => value
            .as_f64()
            .filter(|n| n.fract() == 0.0 && *n >= 1.0)
            .map(|n| n as u64),
        Value::String(text) => {
            let text = text.trim().trim_start_matches('#').to_lowercase();
            let bare = ["st", "nd", "rd", "th", "."];
            let bare = bare
                .iter()
                .find_map(|end| text.strip_suffix(end))
                .unwrap_or(&text);
            let word = || ORDINALS.iter().position(|word| *word == text);
            bare.parse().ok().or_else(|| Some(word()? as u64 + 1))
        }
        Value::Object(_) => PLACES
            .iter()
            .find_map(|f| place(kd_reading::field(value, f)?)),
        _ => None,
    }
}

/// Returns the approved labels of a JSON value: one, a list, a line, or an object that marks each. `None` if anything
/// in it is not a label.
pub(super) fn approved(value: &Value, options: &Options) -> Option<Vec<usize>> {
    let found = match value {
        Value::String(text) => return listed(text, options),
        Value::Array(items) => {
            let mut found = Vec::new();
            for item in items {
                match item {
                    Value::String(text) => found.extend(listed(text, options)?),
                    item => {
                        let at = label_of(item, options)?;
                        let mark = APPROVALS.iter().find_map(|f| kd_reading::field(item, f));
                        if mark.map_or(Some(true), is_yes)? {
                            found.push(at);
                        }
                    }
                }
            }
            found
        }
        Value::Object(fields) => {
            let mut found = Vec::new();
            for (name, mark) in fields {
                if let Some(at) = options.stated(name)
                    && is_yes(mark)?
                {
                    found.push(at);
                }
            }
            found
        }
        _ => return None,
    };
    once(found)
}

/// Returns whether a mark approves: `true`, `"yes"`, `1`.
fn is_yes(mark: &Value) -> Option<bool> {
    let words = mark.as_str().map(str::to_lowercase);
    match (mark, words.as_deref().map(str::trim)) {
        (Value::Bool(yes), _) => Some(*yes),
        (_, Some("yes" | "true" | "approve" | "approved" | "1" | "x" | "✓")) => Some(true),
        (_, Some("no" | "false" | "reject" | "rejected" | "disapprove" | "0" | "" | "✗")) => {
            Some(false)
        }
        (Value::Number(number), _) => match number.as_f64()? {
            1.0 => Some(true),
            0.0 => Some(false),
            _ => None,
        },
        (Value::Object(_), _) => {
            let field = |name: &&str| kd_reading::field(mark, name);
            APPROVALS
                .iter()
                .find_map(field)
                .filter(|v| !v.is_object())
                .and_then(is_yes)
        }
        _ => None,
    }
}

/// Returns the labels of a list in words: `A, C`, `red and blue`. `None` if a part of it is not a label.
fn listed(text: &str, options: &Options) -> Option<Vec<usize>> {
    let text = text.trim().trim_end_matches(['.', '!']);
    let parts = [" and ", " und ", " or ", " & ", " plus "]
        .iter()
        .fold(text.to_owned(), |text, word| text.replace(word, ","));
    let parts = parts.split([',', ';', '/', '&']).map(str::trim);
    let parts = parts.map(|part| part.strip_prefix("both ").unwrap_or(part));
    let parts: Vec<Option<usize>> = parts
        .filter(|part| !part.is_empty())
        .map(|part| options.stated(part))
        .collect();
    // The words of one option may contain `and`.
    if parts.iter().all(Option::is_none) {
        return options.stated(text).map(|at| vec![at]);
    }
    let found: Option<Vec<usize>> = parts.into_iter().collect();
    once(found?)
}

/// Returns the labels that a reply in words approves of: `I approve of A and C.`, `Approved: red, blue`. `None` if its
/// lines differ.
pub(super) fn approved_in_words(text: &str, options: &Options) -> Option<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    for line in text.lines().flat_map(|line| line.split(". ")) {
        let line = unnumbered(line).replace(['*', '_', '`'], "");
        let lower = line.to_lowercase();
        // Lower case must not move the bytes.
        let line = if lower.len() == line.len() {
            line
        } else {
            lower.clone()
        };
        let begins = [
            "i approve",
            "i would approve",
            "i'd approve",
            "i approved",
            "my approvals",
            "my approval",
            "approve",
            "approval",
        ];
        let Some(word) = begins.iter().find(|word| lower.starts_with(**word)) else {
            continue;
        };
        let rest = line.get(word.len()..).unwrap_or_default();
        let rest = rest.trim_start_matches(|c: char| c.is_alphabetic());
        let rest = rest.trim_start_matches([' ', ':', '-', '–', '—']);
        let rest = ["of ", "are ", "is ", "both "]
            .iter()
            .fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
        let end = [" but not ", ", not ", ", because", " because ", " since "];
        let end = end.iter().filter_map(|word| rest.find(word)).min();
        let rest = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        found.push(listed(rest.trim_end_matches(','), options)?);
    }
    let first = found.pop()?;
    found.iter().all(|other| *other == first).then_some(first)
}

/// Returns each label once; `None` if there is none.
fn once(mut found: Vec<usize>) -> Option<Vec<usize>> {
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then_some(found)
}

/// Returns the JSON list in a reply, with or without words around it.
pub(super) fn list_in(text: &str) -> Option<Value> {
    let (from, to) = (text.find('[')?, text.rfind(']')?);
    let found = serde_json::from_str::<Value>(text.get(from..=to)?).ok()?;
    // The list of an object is read as a field of it.
    let stands_alone = !text[..from].contains('{');
    (found.is_array() && stands_alone).then_some(found)
}

/// Returns the first of several fields of an object.
pub(super) fn field_of<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| kd_reading::field(value, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters() -> Options {
        let names = ["A", "B"].map(str::to_owned);
        Options::labelled(&names, &names)
    }

    #[test]
    fn a_label_is_found_behind_a_lead() {
        for (line, number) in [
            ("A: 5", Some(5.0)),
            ("Scores: A: 5", Some(5.0)),
            ("- My scores: **A** – 5/5, clear", Some(5.0)),
            ("one: two: three: four: five: A: 5", None),
        ] {
            let found = pair(line, &letters(), 5.0).map(|(_, said)| said.number);
            assert_eq!(found, number, "{line}");
        }
    }

    /// A test that ends: each of these took minutes when every mark was tried with every other one.
    #[test]
    fn lines_of_marks_are_read_in_one_pass() {
        for piece in [
            ":",
            "q:",
            "(",
            "-",
            "http://a.b/?",
            "{\"a\":[",
            "*a _b ",
            "A: ",
            "A:(",
            "|",
            "：",
            ",",
            "1. ",
        ] {
            let text = piece.repeat(20_000 / piece.len());
            let _ = lines(&text, &letters(), 2, 5.0);
            let _ = list_in(&text);
        }
    }
}
