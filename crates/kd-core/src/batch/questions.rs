//! Parses files of questions: JSON Lines, CSV, or one question per line. Input: the bytes of a file. Output: questions
//! with unique ids, or the line that is wrong.

use super::table::{self, ReadError, fail, text};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Maximum bytes of one question.
pub const QUESTION_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes of a file of questions.
pub const FILE_BYTES_MAX: u64 = 256 << 20;
/// Maximum bytes of an id.
const ID_BYTES_MAX: usize = 200;
/// Names of the field with the question, most wanted first.
const QUESTION_FIELDS: [&str; 4] = ["question", "prompt", "input", "text"];
/// Names of the field with the id.
const ID_FIELDS: [&str; 2] = ["id", "question_id"];

/// A question of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its id, unique in the file.
    pub id: String,
    /// Its text.
    pub text: String,
    /// The line on which it begins, from 1.
    pub line: usize,
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A JSON object or string per line.
    JsonLines,
    /// A header, then a question per row.
    Csv,
    /// A question per line.
    Lines,
}

/// The fields of a question, where the user names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The field of the id.
    pub id: Option<String>,
    /// The field of the question.
    pub question: Option<String>,
}

impl Form {
    /// Chooses the form by the name of the file, else by its first character.
    pub fn of(name: &str, bytes: &[u8]) -> Self {
        let end = name.rsplit_once('.').map_or("", |(_, end)| end);
        match end.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" | "json" => Form::JsonLines,
            "csv" => Form::Csv,
            _ => match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'{') => Form::JsonLines,
                _ => Form::Lines,
            },
        }
    }
}

/// Parses a file. Blank lines are skipped; a question without an id gets the number of its line.
///
/// # Errors
/// Bytes that are not text, a line without a question, an id that is used twice, a question that is too long, or no
/// question at all.
pub fn read(bytes: &[u8], form: Form, fields: &Fields) -> Result<Vec<Question>, ReadError> {
    let text = text(bytes)?;
    let questions = match form {
        Form::JsonLines => json_lines(text, fields)?,
        Form::Csv => csv(text, fields)?,
        Form::Lines => lines(text, fields)?,
    };
    if questions.is_empty() {
        return Err(fail(1, "the file has no question", example(form)));
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for question in &questions {
        check(question)?;
        match seen.entry(&question.id) {
            Entry::Vacant(free) => drop(free.insert(question.line)),
            Entry::Occupied(first) => {
                let what = format!(
                    "the id `{}` is already used on line {}",
                    question.id,
                    first.get()
                );
                let hint = "give each question its own id, or name another field with --id-field";
                return Err(fail(question.line, what, hint));
            }
        }
    }
    Ok(questions)
}

fn example(form: Form) -> &'static str {
    match form {
        Form::JsonLines => {
            "a line is {\"id\": \"q1\", \"question\": \"…\"}, or the question as a JSON string"
        }
        Form::Csv => "a header such as `id,question`, then one question per row",
        Form::Lines => "write one question per line",
    }
}

fn check(question: &Question) -> Result<(), ReadError> {
    let Question { id, text, line } = question;
    if text.len() > QUESTION_BYTES_MAX {
        let what = format!(
            "the question has {} bytes; the maximum is 1 MiB",
            text.len()
        );
        return Err(fail(
            *line,
            what,
            "shorten it, or ask it alone with `kd ask`",
        ));
    }
    let is_odd = |c: char| c.is_control();
    if id.is_empty() || id.len() > ID_BYTES_MAX || id.contains(is_odd) {
        let what = "the id is empty, longer than 200 bytes, or has control characters";
        return Err(fail(*line, what, "name another field with --id-field"));
    }
    Ok(())
}

fn lines(text: &str, fields: &Fields) -> Result<Vec<Question>, ReadError> {
    if let Some(name) = fields.id.as_ref().or(fields.question.as_ref()) {
        let what = format!("lines of plain text have no field `{name}`");
        return Err(fail(1, what, "give a .jsonl or .csv file"));
    }
    let lines = text.lines().enumerate();
    Ok(lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| Question {
            id: (at + 1).to_string(),
            text: line.trim().to_owned(),
            line: at + 1,
        })
        .collect())
}

fn json_lines(text: &str, fields: &Fields) -> Result<Vec<Question>, ReadError> {
    let hint = example(Form::JsonLines);
    let question = |(at, value): (usize, Value)| match value {
        Value::String(text) => Ok(Question {
            id: at.to_string(),
            text: not_blank(text, at)?,
            line: at,
        }),
        Value::Object(row) => question(at, fields, &row),
        _ => Err(fail(at, "this is neither an object nor a string", hint)),
    };
    let lines = table::json_lines(text, hint)?;
    lines.into_iter().map(question).collect()
}

fn csv(text: &str, fields: &Fields) -> Result<Vec<Question>, ReadError> {
    let rows = table::csv(text, example(Form::Csv))?;
    let question = |(line, row): table::Row| question(line, fields, &row);
    rows.into_iter().map(question).collect()
}

fn question(line: usize, fields: &Fields, row: &Map<String, Value>) -> Result<Question, ReadError> {
    Ok(Question {
        id: id(line, fields.id.as_deref(), row)?.unwrap_or_else(|| line.to_string()),
        text: asked(line, fields, row)?,
        line,
    })
}

/// Returns the id of a row: of the named field, or of a usual one.
pub(super) fn id(
    line: usize,
    named: Option<&str>,
    row: &Map<String, Value>,
) -> Result<Option<String>, ReadError> {
    let value = match named {
        Some(name) => Some(row.get(name).ok_or_else(|| missing(line, name, row))?),
        None => ID_FIELDS.iter().find_map(|name| row.get(*name)),
    };
    match value {
        None => Ok(None),
        Some(Value::String(id)) => Ok(Some(id.trim().to_owned())),
        Some(Value::Number(id)) => Ok(Some(id.to_string())),
        Some(_) => Err(fail(
            line,
            "the id is neither a text nor a number",
            "name another field with --id-field",
        )),
    }
}

/// Returns the question of a row.
fn asked(line: usize, fields: &Fields, row: &Map<String, Value>) -> Result<String, ReadError> {
    let value = match &fields.question {
        Some(name) => row.get(name).ok_or_else(|| missing(line, name, row))?,
        None => match QUESTION_FIELDS.iter().find_map(|name| row.get(*name)) {
            Some(value) => value,
            None => {
                let hint = "name the field with --question-field";
                return Err(unnamed(line, &QUESTION_FIELDS, row, hint));
            }
        },
    };
    match value {
        Value::String(text) => not_blank(text.clone(), line),
        _ => Err(fail(
            line,
            "the question is no text",
            "name the field with --question-field",
        )),
    }
}

/// Returns the error of a row that has none of the usual fields.
pub(super) fn unnamed(
    line: usize,
    wanted: &[&str],
    row: &Map<String, Value>,
    hint: &str,
) -> ReadError {
    let what = format!(
        "no field is named {}; there are: {}",
        wanted.join(", "),
        shown(row)
    );
    fail(line, what, hint)
}

fn missing(line: usize, name: &str, row: &Map<String, Value>) -> ReadError {
    let near = kd_vote::nearest(name, row.keys().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let what = format!("there is no field `{name}`{near}");
    fail(line, what, format!("its fields are: {}", shown(row)))
}

/// Lists names, shortened if there are many.
fn shown(row: &Map<String, Value>) -> String {
    let short = |name: &String| name.chars().take(40).collect::<String>();
    let mut list: Vec<String> = row.keys().take(12).map(short).collect();
    if row.len() > list.len() {
        list.push(format!("and {} more", row.len() - list.len()));
    }
    list.join(", ")
}

fn not_blank(text: String, line: usize) -> Result<String, ReadError> {
    match text.trim().is_empty() {
        true => Err(fail(
            line,
            "the question is empty",
            "remove the line, or fill it in",
        )),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &[u8], form: Form) -> Result<Vec<(String, String)>, ReadError> {
        let questions = read(text, form, &Fields::default())?;
        Ok(questions.into_iter().map(|q| (q.id, q.text)).collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn every_form_gives_the_same_questions() {
        let expected = pairs(&[("a", "One?"), ("b", "3.5\" or 5.25\"?")]);
        let jsonl = "{\"id\":\"a\",\"question\":\"One?\"}\n\n{\"id\":\"b\",\"question\":\"3.5\\\" or 5.25\\\"?\"}\r\n";
        assert_eq!(
            told(jsonl.as_bytes(), Form::JsonLines),
            Ok(expected.clone())
        );
        let csv = "\u{feff}id,question\r\na,One?\r\nb,3.5\" or 5.25\"?\r\n";
        assert_eq!(told(csv.as_bytes(), Form::Csv), Ok(expected));
        let lines = "One?\n\n  3.5\" or 5.25\"?";
        let expected = pairs(&[("1", "One?"), ("3", "3.5\" or 5.25\"?")]);
        assert_eq!(told(lines.as_bytes(), Form::Lines), Ok(expected));
        let mixed = b"\"One?\"\n{\"question_id\":7,\"prompt\":\"Two?\"}\n{\"input\":\"Three?\"}";
        let expected = pairs(&[("1", "One?"), ("7", "Two?"), ("3", "Three?")]);
        assert_eq!(told(mixed, Form::JsonLines), Ok(expected));
    }

    #[test]
    fn the_form_follows_the_name_and_then_the_content() {
        for (name, bytes, form) in [
            ("q.jsonl", "x", Form::JsonLines),
            ("q.CSV", "{", Form::Csv),
            ("q.txt", "\n {\"question\":\"x\"}", Form::JsonLines),
            ("q", "What?", Form::Lines),
            ("", "", Form::Lines),
        ] {
            assert_eq!(Form::of(name, bytes.as_bytes()), form, "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let long = format!("\"a\"\n\"{}\"", "x".repeat(QUESTION_BYTES_MAX + 1));
        for (text, form, line, what) in [
            (&b"\"a\"\n{"[..], Form::JsonLines, 2, "this is not JSON"),
            (b"\"a\"\n7", Form::JsonLines, 2, "neither an object"),
            (b"\"a\"\n\"  \"", Form::JsonLines, 2, "empty"),
            (
                b"{\"id\":1,\"q\":\"x\"}",
                Form::JsonLines,
                1,
                "there are: id, q",
            ),
            (
                b"{\"id\":[],\"question\":\"x\"}",
                Form::JsonLines,
                1,
                "neither a text nor a number",
            ),
            (
                b"{\"id\":1,\"question\":7}",
                Form::JsonLines,
                1,
                "is no text",
            ),
            (b"a\nb\0c", Form::Lines, 2, "NUL"),
            (b"a\nb\n\xff", Form::Lines, 3, "not UTF-8"),
            (b"\xff\xfea\0", Form::Lines, 1, "UTF-16"),
            (b"", Form::Lines, 1, "no question"),
            (b"id,question\n", Form::Csv, 1, "below the header"),
            (b"id,question\n1,\"a\n2,b\n", Form::Csv, 2, "never closed"),
            (b"id,question\n1,a,b\n", Form::Csv, 2, "3 cells"),
            (
                b"id,question\n1,a\n\n1,b\n",
                Form::Csv,
                4,
                "already used on line 2",
            ),
            (long.as_bytes(), Form::JsonLines, 2, "the maximum is 1 MiB"),
            (
                b"{\"id\":\"a\\u001b\",\"question\":\"x\"}",
                Form::JsonLines,
                1,
                "control",
            ),
        ] {
            let error = told(text, form).expect_err(what);
            assert_eq!(error.line, line, "{error:?}");
            assert!(error.what.contains(what), "{error:?}");
            assert!(!error.hint.is_empty(), "{error:?}");
        }
    }

    #[test]
    fn named_fields_are_used_and_a_misspelled_one_is_told() {
        let fields = |id: &str, question: &str| Fields {
            id: Some(id.into()),
            question: Some(question.into()),
        };
        let csv = b"key,id,q\nk1,1,One?\nk2,1,Two?\n";
        let read = |id, question| read(csv, Form::Csv, &fields(id, question));
        let ids: Vec<String> = read("key", "q")
            .unwrap()
            .into_iter()
            .map(|q| q.id)
            .collect();
        assert_eq!(ids, ["k1", "k2"]);
        let error = read("kye", "q").unwrap_err();
        assert!(error.what.contains("did you mean `key`?"), "{error:?}");
        assert!(read("id", "q").unwrap_err().what.contains("already used"));
        let plain = super::read(b"One?", Form::Lines, &fields("id", "q"));
        assert!(plain.unwrap_err().what.contains("no field"));
    }

    /// The seeded counterpart of the fuzz target: any bytes give questions with unique ids, or a line that exists.
    #[test]
    fn any_bytes_are_read_or_refused_with_a_line() {
        let seeds: [&[u8]; 4] = [
            b"{\"id\":\"a\",\"question\":\"One?\"}\n\"Two?\"\n",
            b"id,question\na,\"One, \"\"two\"\"\"\nb,3.5\" disk\n",
            b"One?\n\nTwo?\n",
            b"\xef\xbb\xbfid,question\r\n1,\xc3\xa9\r\n",
        ];
        let mut state = 7_u64;
        let mut next = |end: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % end
        };
        for _ in 0..4000 {
            let mut bytes = seeds[next(seeds.len())].to_vec();
            for _ in 0..=next(4) {
                let at = next(bytes.len());
                match next(3) {
                    0 => bytes[at] = next(256) as u8,
                    1 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, b"\"\n,{}\0"[next(6)]),
                }
            }
            laws(&bytes);
        }
    }

    /// Properties of every file, in every format.
    fn laws(bytes: &[u8]) {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
        for form in [Form::JsonLines, Form::Csv, Form::Lines] {
            match read(bytes, form, &Fields::default()) {
                Ok(questions) => {
                    let ids: std::collections::BTreeSet<_> =
                        questions.iter().map(|q| &q.id).collect();
                    assert_eq!(ids.len(), questions.len());
                    assert!(questions.iter().all(|q| q.line <= lines));
                }
                Err(error) => assert!((1..=lines).contains(&error.line), "{error:?}"),
            }
        }
    }
}
