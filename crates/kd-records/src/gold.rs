//! Right answers from a file, for records without scores.

use kd_reading::{Answer, Options, Wanted, read, sameness};
use serde_json::Value;
use std::collections::BTreeMap;

/// Columns with the id of a question.
const IDS: [&str; 2] = ["id", "question_id"];
/// Columns with its right answer.
const ANSWERS: [&str; 4] = ["gold", "target", "answer", "label"];
/// Maximum right answers that are options, if they are words.
const OPTIONS_MAX: usize = 12;

/// Right answers by the id of the question.
#[derive(Clone, Debug, Default)]
pub struct Gold {
    right: BTreeMap<String, String>,
    kind: Kind,
}

/// The comparison of replies with right answers.
#[derive(Clone, Debug, Default)]
enum Kind {
    Number,
    /// One of these labels.
    Label(Vec<String>),
    #[default]
    Text,
}

impl Gold {
    /// Parses a CSV table or JSON Lines with an id and a right answer for each question.
    ///
    /// # Errors
    /// The line, and why it cannot be read.
    pub fn read(text: &str) -> Result<Self, (usize, String)> {
        let text = text.trim_start_matches('\u{feff}');
        let right = match text.trim_start().starts_with('{') {
            true => lines(text)?,
            false => table(text)?,
        };
        if right.is_empty() {
            return Err((1, "the file has no right answer".into()));
        }
        let kind = Kind::of(&right);
        Ok(Self { right, kind })
    }

    /// Returns the right answer to a question.
    pub(crate) fn of(&self, id: &str) -> Option<&str> {
        self.right.get(id).map(String::as_str)
    }

    /// Returns the number of possible answers, if the right ones are labels.
    pub(crate) fn options(&self) -> Option<u64> {
        match &self.kind {
            Kind::Label(labels) => Some(labels.len() as u64),
            Kind::Number | Kind::Text => None,
        }
    }

    /// Reads a reply, and returns the answer in it and its score. A reply without an answer is wrong.
    pub(crate) fn mark(&self, right: &str, question: &str, reply: &str) -> (Option<String>, f64) {
        let said = match &self.kind {
            Kind::Number => text(&Wanted::Number, reply),
            Kind::Label(labels) => {
                let given = kd_reading::kinds::given(question);
                let options = match given.len() == labels.len() {
                    true => Options::labelled(&given, labels),
                    false => Options::labelled(labels, labels),
                };
                match read(&Wanted::Option(options), reply) {
                    Ok((Answer::Option(at), _)) => labels.get(at).cloned(),
                    _ => None,
                }
            }
            Kind::Text => Some(reply.trim().to_owned()).filter(|text| !text.is_empty()),
        };
        let Some(said) = said else {
            return (None, 0.0);
        };
        let is_right = match &self.kind {
            Kind::Number => number(&said).is_some_and(|said| number(right) == Some(said)),
            Kind::Label(_) => said.eq_ignore_ascii_case(right),
            Kind::Text => sameness::key(&said) == sameness::key(right),
        };
        (Some(said), f64::from(u8::from(is_right)))
    }
}

impl Kind {
    fn of(right: &BTreeMap<String, String>) -> Self {
        let all: Vec<&str> = right.values().map(|text| text.trim()).collect();
        let letter = |text: &str| match text.as_bytes() {
            [byte] if byte.is_ascii_alphabetic() => Some(byte.to_ascii_uppercase()),
            _ => None,
        };
        if let Some(letters) = all
            .iter()
            .map(|text| letter(text))
            .collect::<Option<Vec<u8>>>()
        {
            let last = letters.into_iter().max().unwrap_or(b'A').max(b'B');
            let labels = (b'A'..=last).map(|byte| char::from(byte).to_string());
            return Kind::Label(labels.collect());
        }
        if all.iter().all(|text| number(text).is_some()) {
            return Kind::Number;
        }
        let mut words: Vec<String> = all.iter().map(|text| text.to_lowercase()).collect();
        words.sort();
        words.dedup();
        // Few words for many questions are options: yes and no.
        match words.len() >= 2 && words.len() <= OPTIONS_MAX && all.len() >= 3 * words.len() {
            true => Kind::Label(words),
            false => Kind::Text,
        }
    }
}

fn text(wanted: &Wanted, reply: &str) -> Option<String> {
    match read(wanted, reply) {
        Ok((Answer::Text(text), _)) => Some(text),
        _ => None,
    }
}

fn number(text: &str) -> Option<f64> {
    let bare = text.trim().replace(',', "");
    bare.parse().ok().filter(|n: &f64| n.is_finite())
}

fn lines(text: &str) -> Result<BTreeMap<String, String>, (usize, String)> {
    let mut right = BTreeMap::new();
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let value: Value = serde_json::from_str(line).map_err(|e| (at + 1, e.to_string()))?;
        let field = |names: &[&str]| {
            let found = names.iter().find_map(|name| value.get(name));
            found
                .filter(|value| !value.is_null())
                .map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
        };
        let id = field(&IDS).unwrap_or_else(|| (at + 1).to_string());
        add(&mut right, at + 1, id, field(&ANSWERS))?;
    }
    Ok(right)
}

fn table(text: &str) -> Result<BTreeMap<String, String>, (usize, String)> {
    let rows = kd_vote::csv::rows(text).map_err(|at| (at, "a quote is never closed".to_owned()))?;
    let mut rows = rows.into_iter();
    let Some((line, head)) = rows.next() else {
        return Ok(BTreeMap::new());
    };
    let column = |names: &[&str]| {
        let mut found = names.iter();
        found.find_map(|name| head.iter().position(|cell| cell.trim() == *name))
    };
    let Some(answer) = column(&ANSWERS) else {
        return Err((line, format!("no column is named {}", ANSWERS.join(", "))));
    };
    let id = column(&IDS);
    let mut right = BTreeMap::new();
    for (at, (line, row)) in rows.enumerate() {
        let own = id.and_then(|id| row.get(id)).map(|id| id.trim().to_owned());
        let id = own.unwrap_or_else(|| (at + 1).to_string());
        add(&mut right, line, id, row.get(answer).cloned())?;
    }
    Ok(right)
}

fn add(
    right: &mut BTreeMap<String, String>,
    line: usize,
    id: String,
    answer: Option<String>,
) -> Result<(), (usize, String)> {
    let Some(answer) = answer.filter(|answer| !answer.trim().is_empty()) else {
        return Err((line, format!("there is no {} here", ANSWERS.join(", "))));
    };
    match right.insert(id.clone(), answer) {
        Some(_) => Err((line, format!("the id `{id}` is used twice"))),
        None => Ok(()),
    }
}
