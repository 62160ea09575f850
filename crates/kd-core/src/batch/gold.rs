//! Parses files of right answers: a question of a batch or a thread per row, and its answer. Input: the bytes of a JSON
//! Lines or CSV file. Output: the rows, or the line that is wrong.

use super::questions::{Form, id, unnamed};
use super::table::{self, ReadError, fail};
use serde_json::{Map, Value};

/// Names of the field with the thread. A row with it names a thread, any other a question of a batch.
const THREAD_FIELDS: [&str; 2] = ["thread", "thread_id"];
/// Names of the field with the right answer, most wanted first.
const GOLD_FIELDS: [&str; 3] = ["gold", "answer", "target"];
const EXAMPLE: &str =
    "a row is {\"id\": \"q1\", \"gold\": \"391\"}, or 391 below `gold` in a CSV file";

/// A right answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gold {
    /// The question that it answers.
    pub of: Of,
    /// The answer; empty if the file leaves it open.
    pub answer: String,
    /// The line on which its row begins, from 1.
    pub line: usize,
}

/// The question of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// A question of a batch, by its id.
    Question(String),
    /// A thread, by its ID or the beginning of one.
    Thread(String),
}

/// Parses a file of right answers. `id_field` names another field for the ids of questions.
///
/// # Errors
/// Bytes that are no text, a row without an id or an answer field, or no row at all.
pub fn read(bytes: &[u8], form: Form, id_field: Option<&str>) -> Result<Vec<Gold>, ReadError> {
    let text = table::text(bytes)?;
    let rows: Vec<table::Row> = match form {
        Form::Csv => table::csv(text, EXAMPLE)?,
        Form::JsonLines => {
            let object = |(line, value)| match value {
                Value::Object(row) => Ok((line, row)),
                _ => Err(fail(line, "this is not an object", EXAMPLE)),
            };
            let lines = table::json_lines(text, EXAMPLE)?;
            lines.into_iter().map(object).collect::<Result<_, _>>()?
        }
        Form::Lines => return Err(fail(1, "this is neither CSV nor JSON Lines", EXAMPLE)),
    };
    if rows.is_empty() {
        return Err(fail(1, "the file has no row", EXAMPLE));
    }
    let gold = |(line, row): table::Row| gold(line, id_field, &row);
    rows.into_iter().map(gold).collect()
}

fn gold(line: usize, id_field: Option<&str>, row: &Map<String, Value>) -> Result<Gold, ReadError> {
    let thread = THREAD_FIELDS.iter().find_map(|name| row.get(*name));
    let of = match thread.filter(|_| id_field.is_none()) {
        Some(Value::String(id)) => Of::Thread(id.trim().to_owned()),
        Some(_) => return Err(fail(line, "the thread is not a text", EXAMPLE)),
        None => {
            let id = id(line, id_field, row)?;
            let none = || unnamed(line, &["id", "question_id", "thread"], row, EXAMPLE);
            Of::Question(id.ok_or_else(none)?)
        }
    };
    let answer = match GOLD_FIELDS.iter().find_map(|name| row.get(*name)) {
        Some(Value::String(answer)) => answer.trim().to_owned(),
        Some(Value::Number(answer)) => answer.to_string(),
        Some(Value::Bool(answer)) => if *answer { "yes" } else { "no" }.to_owned(),
        Some(Value::Null) => String::new(),
        // A list or an object, as the council would write it.
        Some(other) => other.to_string(),
        None => return Err(unnamed(line, &GOLD_FIELDS, row, EXAMPLE)),
    };
    Ok(Gold { of, answer, line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_questions_or_threads() {
        let question = |id: &str| Of::Question(id.to_owned());
        let csv = "id,question,gold\nq1,\"What, now?\",391\nq2,x,\n";
        let json = "{\"question_id\":7,\"answer\":391}\n\n{\"thread\":\"a94d\",\"target\":true,\"id\":\"q\"}";
        for (text, form, expected) in [
            (
                csv,
                Form::Csv,
                [(question("q1"), "391", 2), (question("q2"), "", 3)],
            ),
            (
                json,
                Form::JsonLines,
                [
                    (question("7"), "391", 1),
                    (Of::Thread("a94d".into()), "yes", 3),
                ],
            ),
        ] {
            let expected = expected.map(|(of, answer, line)| Gold {
                of,
                answer: answer.to_owned(),
                line,
            });
            assert_eq!(read(text.as_bytes(), form, None).unwrap(), expected);
        }
        let named = read(b"key,thread,gold\nk,a94d,1\n", Form::Csv, Some("key")).unwrap();
        assert_eq!(named[0].of, question("k"));
    }

    #[test]
    fn wrong_rows_are_told_with_their_line() {
        for (text, form, line, what) in [
            ("{\"id\":1}", Form::JsonLines, 1, "no field is named gold"),
            ("\"q1\"", Form::JsonLines, 1, "not an object"),
            (
                "{\"id\":1,\"gold\":1}\n{\"gold\":1}",
                Form::JsonLines,
                2,
                "no field is named id",
            ),
            ("id,gold\n", Form::Csv, 1, "below the header"),
            ("id,gold\n1,2,3\n", Form::Csv, 2, "3 cells"),
            ("", Form::JsonLines, 1, "no row"),
            ("q1 391", Form::Lines, 1, "neither CSV nor JSON"),
        ] {
            let error = read(text.as_bytes(), form, None).expect_err(what);
            assert_eq!(error.line, line, "{error:?}");
            assert!(error.what.contains(what), "{error:?}");
            assert!(!error.hint.is_empty(), "{error:?}");
        }
        let error = read(b"id,gold\n1,2\n", Form::Csv, Some("ID")).unwrap_err();
        assert!(error.hint.contains("id"), "{error:?}");
    }
}
