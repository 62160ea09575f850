//! Ballots as CSV: a header, then one ballot per row.
//!
//! Columns: `voter`, `n`, `weight`, `confidence`, `reliability`, `family`; and one of `choice`, `rank1` `rank2` …,
//! `score:NAME` for each candidate, `approvals` (names separated by `;`), `round1` `round2` …. `A=B` in a rank is a
//! tie.

use super::{Case, Expected, ReadError, gather};
use serde_json::{Map, Value, json};

/// Parses one poll.
///
/// # Errors
/// A header without a vote column, a row of another length, an invalid number, an unclosed quote.
pub fn read_csv(text: &str) -> Result<Case, ReadError> {
    let rows = crate::csv::rows(text).map_err(|at| fail(at, "a quote is never closed".into()))?;
    let mut rows = rows.into_iter();
    let Some((at, head)) = rows.next() else {
        return Err(fail(1, "the file is empty".into()));
    };
    let columns: Vec<Column> = head.iter().map(|name| Column::of(name)).collect();
    if !columns.iter().any(Column::marks) {
        return Err(fail(
            at,
            format!("no column of `{}` says what was voted", head.join(",")),
        ));
    }
    let mut lines = Vec::new();
    for (line, row) in rows {
        if row.len() != head.len() {
            return Err(fail(
                line,
                format!("{} cells, but the header has {}", row.len(), head.len()),
            ));
        }
        lines.push((
            line,
            ballot(&columns, &row).map_err(|what| fail(line, what.to_string()))?,
        ));
    }
    if lines.is_empty() {
        return Err(fail(at, "there is no ballot below the header".into()));
    }
    let mut case = gather(lines)?;
    case.expected = Expected::default();
    Ok(case)
}

fn fail(line: usize, what: String) -> ReadError {
    ReadError {
        line,
        what,
        hint: "a header such as `voter,n,choice`, `n,rank1,rank2`, `voter,score:A,score:B` or `voter,approvals`, then one ballot per row".into(),
    }
}

/// The reason why a cell cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum BadCell {
    #[error("`{0}` is not a number")]
    Number(String),
    #[error("`{0}` is not a whole number of ballots")]
    Count(String),
}

/// The content of a column.
enum Column {
    /// A text field of the ballot.
    Text(&'static str),
    /// A number field of the ballot.
    Number(&'static str),
    Choice,
    Rank,
    Round,
    Approvals,
    Score(String),
    /// Anything else; ignored.
    Other,
}

impl Column {
    fn of(name: &str) -> Self {
        let plain: String = name
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| !" _-".contains(*c))
            .collect();
        let numbered = |word: &str| {
            plain
                .strip_prefix(word)
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        match plain.as_str() {
            "voter" | "member" => Column::Text("voter"),
            "family" => Column::Text("family"),
            "n" | "count" => Column::Number("n"),
            "weight" => Column::Number("weight"),
            "confidence" => Column::Number("confidence"),
            "reliability" => Column::Number("reliability"),
            "choice" | "vote" | "answer" => Column::Choice,
            "approvals" => Column::Approvals,
            _ if numbered("rank") => Column::Rank,
            _ if numbered("round") => Column::Round,
            _ => match name.trim().split_once(':') {
                Some((word, who)) if word.eq_ignore_ascii_case("score") => {
                    Column::Score(who.trim().into())
                }
                _ => Column::Other,
            },
        }
    }

    fn marks(&self) -> bool {
        matches!(
            self,
            Column::Choice | Column::Rank | Column::Round | Column::Approvals | Column::Score(_)
        )
    }
}

/// Converts a row to the equivalent JSON object.
#[expect(clippy::too_many_lines, reason = "one arm for each kind of column")]
fn ballot(columns: &[Column], row: &[String]) -> Result<Map<String, Value>, BadCell> {
    let mut object = Map::new();
    let (mut ranks, mut rounds, mut scores) = (Vec::new(), Vec::new(), Map::new());
    for (column, cell) in columns.iter().zip(row) {
        let cell = cell.trim();
        let number = || {
            cell.parse::<f64>()
                .map_err(|_| BadCell::Number(cell.to_owned()))
        };
        match column {
            Column::Other => {}
            Column::Text(key) if !cell.is_empty() => {
                object.insert((*key).into(), json!(cell));
            }
            Column::Number("n") if !cell.is_empty() => {
                let n: u64 = cell.parse().map_err(|_| BadCell::Count(cell.to_owned()))?;
                object.insert("n".into(), json!(n));
            }
            Column::Number(key) if !cell.is_empty() => {
                object.insert((*key).into(), json!(number()?));
            }
            Column::Text(_) | Column::Number(_) => {}
            Column::Choice => {
                object.insert(
                    "choice".into(),
                    if cell.is_empty() {
                        Value::Null
                    } else {
                        json!(cell)
                    },
                );
            }
            Column::Rank if cell.is_empty() => ranks.push(Value::Null),
            Column::Rank if cell.contains('=') => {
                ranks.push(cell.split('=').map(|who| json!(who.trim())).collect());
            }
            Column::Rank => ranks.push(json!(cell)),
            Column::Round => rounds.push(if cell.is_empty() {
                Value::Null
            } else {
                json!(cell)
            }),
            Column::Approvals => {
                let names: Vec<Value> = cell
                    .split(';')
                    .map(str::trim)
                    .filter(|n| !n.is_empty())
                    .map(|n| json!(n))
                    .collect();
                object.insert("approvals".into(), json!(names));
            }
            Column::Score(who) => {
                scores.insert(
                    who.clone(),
                    if cell.is_empty() {
                        Value::Null
                    } else {
                        json!(number()?)
                    },
                );
            }
        }
    }
    if !ranks.is_empty() {
        object.insert("ranks".into(), json!(ranks));
    }
    if !rounds.is_empty() {
        object.insert("trail".into(), json!(rounds));
    }
    if !scores.is_empty() {
        object.insert("scores".into(), Value::Object(scores));
    }
    Ok(object)
}
