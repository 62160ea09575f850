//! Parses files of questions: JSON Lines, CSV, or one question per line. Input: the bytes of a file. Output: questions
//! with unique ids, or the line that is wrong.

use serde_json::Value;
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

/// A file of questions cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
    /// What to do.
    pub hint: String,
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
/// Bytes that are no text, a line without a question, an id that is used twice, a question that is too long, or no
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

fn fail(line: usize, what: impl Into<String>, hint: impl Into<String>) -> ReadError {
    ReadError {
        line,
        what: what.into(),
        hint: hint.into(),
    }
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

/// Returns the text of a file.
fn text(bytes: &[u8]) -> Result<&str, ReadError> {
    let line_at = |at: usize| 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(fail(1, "the file is UTF-16", "save it as UTF-8"));
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(fail(
            line_at(at),
            "there is a NUL byte, so this is no text",
            "give a file of UTF-8 text",
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        fail(
            line_at(e.valid_up_to()),
            "this is no UTF-8 text",
            "save the file as UTF-8",
        )
    })?;
    Ok(text.trim_start_matches('\u{feff}'))
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
    let mut questions = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let at = at + 1;
        if line.trim().is_empty() {
            continue;
        }
        let value: Value = serde_json::from_str(line).map_err(|e| {
            let what = format!("this is not JSON: {}", without_line(&e));
            fail(at, what, hint)
        })?;
        questions.push(match value {
            Value::String(text) => Question {
                id: at.to_string(),
                text: not_blank(text, at)?,
                line: at,
            },
            Value::Object(object) => {
                let get = |name: &str| object.get(name);
                let known = || object.keys().map(String::as_str).collect();
                Question {
                    id: id(at, fields, get, known)?,
                    text: asked(at, fields, get, known)?,
                    line: at,
                }
            }
            _ => return Err(fail(at, "this is neither an object nor a string", hint)),
        });
    }
    Ok(questions)
}

/// Returns an error of serde_json without its place: every text is one line.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let words = text.split(" at line ").next().unwrap_or_default();
    format!("{words} (column {})", error.column())
}

fn csv(text: &str, fields: &Fields) -> Result<Vec<Question>, ReadError> {
    let hint = example(Form::Csv);
    let rows = kd_vote::csv::rows(text).map_err(|at| {
        fail(
            at.max(1),
            "a quote that begins here is never closed",
            "double a quote inside a quoted cell: \"say \"\"hi\"\"\"",
        )
    })?;
    let mut rows = rows.into_iter();
    let Some((_, head)) = rows.next() else {
        return Ok(Vec::new());
    };
    let names: Vec<&str> = head.iter().map(|name| name.trim()).collect();
    let mut questions = Vec::new();
    for (line, row) in rows {
        if row.len() != names.len() {
            let what = format!("{} cells, but the header has {}", row.len(), names.len());
            return Err(fail(line, what, "put a cell with a comma in quotes"));
        }
        let cell = |name: &str| {
            let at = names.iter().position(|one| *one == name)?;
            Some(Value::String(row[at].trim().to_owned()))
        };
        let cells: BTreeMap<&str, Value> = names
            .iter()
            .filter_map(|name| Some((*name, cell(name)?)))
            .collect();
        let get = |name: &str| cells.get(name);
        let known = || names.clone();
        questions.push(Question {
            id: id(line, fields, get, known)?,
            text: asked(line, fields, get, known)?,
            line,
        });
    }
    if questions.is_empty() {
        return Err(fail(1, "there is no question below the header", hint));
    }
    Ok(questions)
}

/// Returns the id of a row: of the named field, of a usual one, or its line.
fn id<'v, 'n>(
    line: usize,
    fields: &Fields,
    get: impl Fn(&str) -> Option<&'v Value>,
    known: impl Fn() -> Vec<&'n str>,
) -> Result<String, ReadError> {
    let value = match &fields.id {
        Some(name) => Some(get(name).ok_or_else(|| missing(line, name, &known()))?),
        None => ID_FIELDS.iter().find_map(|name| get(name)),
    };
    match value {
        None => Ok(line.to_string()),
        Some(Value::String(id)) => Ok(id.trim().to_owned()),
        Some(Value::Number(id)) => Ok(id.to_string()),
        Some(_) => Err(fail(
            line,
            "the id is neither a text nor a number",
            "name another field with --id-field",
        )),
    }
}

/// Returns the question of a row.
fn asked<'v, 'n>(
    line: usize,
    fields: &Fields,
    get: impl Fn(&str) -> Option<&'v Value>,
    known: impl Fn() -> Vec<&'n str>,
) -> Result<String, ReadError> {
    let value = match &fields.question {
        Some(name) => get(name).ok_or_else(|| missing(line, name, &known()))?,
        None => match QUESTION_FIELDS.iter().find_map(|name| get(name)) {
            Some(value) => value,
            None => {
                let what = format!(
                    "no field is named {}; there are: {}",
                    QUESTION_FIELDS.join(", "),
                    shown(&known())
                );
                return Err(fail(line, what, "name the field with --question-field"));
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

fn missing(line: usize, name: &str, known: &[&str]) -> ReadError {
    let near = kd_vote::nearest(name, known.iter().copied());
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let what = format!("there is no field `{name}`{near}");
    fail(line, what, format!("its fields are: {}", shown(known)))
}

/// Lists names, shortened if there are many.
fn shown(names: &[&str]) -> String {
    let short = |name: &&str| name.chars().take(40).collect::<String>();
    let mut list: Vec<String> = names.iter().take(12).map(short).collect();
    if names.len() > list.len() {
        list.push(format!("and {} more", names.len() - list.len()));
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
            (b"a\nb\n\xff", Form::Lines, 3, "no UTF-8"),
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

    /// What holds for every file, in every form.
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
