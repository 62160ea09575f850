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
    /// The answer: a text without white space around it, or another JSON value; `null` if the file leaves it open.
    pub answer: Value,
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
/// Bytes that are not text, a row without an id or an answer field, or no row at all.
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
        Form::Lines => {
            let hint = format!("name a CSV file *.csv and JSON Lines *.jsonl; {EXAMPLE}");
            return Err(fail(1, "this is neither CSV nor JSON Lines", hint));
        }
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
        Some(Value::String(answer)) if answer.trim().is_empty() => Value::Null,
        Some(Value::String(answer)) => answer.trim().into(),
        Some(other) => other.clone(),
        None => return Err(unnamed(line, &GOLD_FIELDS, row, EXAMPLE)),
    };
    Ok(Gold { of, answer, line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_name_questions_or_threads() {
        let question = |id: &str| Of::Question(id.to_owned());
        let csv = "id,question,gold\nq1,\"What, now?\",391\nq2,x,\n";
        let json = "{\"question_id\":7,\"answer\":391}\n\n{\"thread\":\"a94d\",\"target\":true,\"id\":\"q\"}";
        for (text, form, expected) in [
            (
                csv,
                Form::Csv,
                [
                    (question("q1"), json!("391"), 2),
                    (question("q2"), Value::Null, 3),
                ],
            ),
            (
                json,
                Form::JsonLines,
                [
                    (question("7"), json!(391), 1),
                    (Of::Thread("a94d".into()), json!(true), 3),
                ],
            ),
        ] {
            let expected = expected.map(|(of, answer, line)| Gold { of, answer, line });
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
            ("id;gold\nq1;391\n", Form::Csv, 1, "not by `;`"),
            ("id\tgold\nq1\t391\n", Form::Csv, 1, "not by tabs"),
            (
                "id,id,gold\na,b,1\n",
                Form::Csv,
                1,
                "two columns are named `id`",
            ),
            (
                "gold, gold ,id\n1,2,a\n",
                Form::Csv,
                1,
                "two columns are named `gold`",
            ),
            (
                "{\"id\":1,\"gold\":1}\n{\"id\":\"q1\",\"gold\":\"40\",\"gold\":\"41\"}",
                Form::JsonLines,
                2,
                "two fields are named `gold`",
            ),
            (
                "{\"id\":\"q1\",\"gold\":40x}",
                Form::JsonLines,
                1,
                "not JSON from column",
            ),
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
