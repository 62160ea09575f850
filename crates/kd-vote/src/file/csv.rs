//! Ballots as CSV: a header, then one ballot per row.
//!
//! Columns: `voter`, `n`, `weight`, `confidence`, `reliability`, `family`; and one kind of `choice`, `ranking`
//! (`A>B=C`), `rank1` `rank2` …, `score:NAME` for each candidate, `approvals` (names separated by `;`), `round1`
//! `round2` …. `A=B` in a rank is a tie.

use super::{Case, Expected, Hints, Notices, Place, ReadError, gather};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What to write instead, in CSV.
const HINTS: Hints = Hints {
    ranking: "call the column `ranking`, or write a column for each rank: `voter,rank1,rank2,rank3`",
    spelling: "write each name in one way; candidates that do differ in nothing else can be listed in JSON: {\"candidates\": […], \"ballots\": […]}",
    shapes: "a header such as `voter,n,choice`, `n,rank1,rank2`, `ranking`, `voter,score:A,score:B` or `voter,approvals`, then one ballot per row",
};

/// Parses one poll.
///
/// # Errors
/// A header without a vote column or with two for one thing, a row of another length, an invalid number, an unclosed
/// quote, a second ballot of a voter, a name that was not meant as one candidate.
pub fn read_csv(text: &str) -> Result<Case, ReadError> {
    let rows =
        crate::csv::all_rows(text).map_err(|at| fail(at, "a quote is never closed".into()))?;
    let mut notices = Notices::default();
    let mut rows = rows
        .into_iter()
        .skip_while(|(_, row)| crate::csv::is_empty(row));
    let Some((at, head)) = rows.next() else {
        return Err(fail(1, "the file is empty".into()));
    };
    let columns: Vec<Column> = head.iter().map(|name| Column::of(name)).collect();
    check_head(&columns, &head).map_err(|why| fail(at, why.to_string()))?;
    for (column, name) in columns.iter().zip(&head) {
        if matches!(column, Column::Other) && !name.trim().is_empty() {
            notices.add(
                format!("the column `{}` is not read", name.trim()),
                Place::of(at),
            );
        }
    }
    let mut lines = Vec::new();
    for (line, row) in rows {
        if crate::csv::is_empty(&row) {
            notices.add("a row without content is left out".into(), Place::of(line));
            continue;
        }
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
    let mut case = gather(lines, &HINTS)?;
    case.expected = Expected::default();
    notices.extend(case.notices);
    case.notices = notices;
    Ok(case)
}

/// The reason why a header cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum BadHead {
    #[error("no column of `{0}` says what was voted")]
    NoVote(String),
    #[error("the columns `{0}` and `{1}` are for the same thing: keep one of them")]
    Twice(String, String),
    #[error("the columns `{0}` and `{1}` are two kinds of votes: keep one kind")]
    Kinds(String, String),
}

/// Checks that one kind of columns says what was voted, and that each column says something else.
fn check_head(columns: &[Column], head: &[String]) -> Result<(), BadHead> {
    let mut seen: BTreeMap<String, &String> = BTreeMap::new();
    let mut kind: Option<(&'static str, &String)> = None;
    for (column, name) in columns.iter().zip(head) {
        if let Some(other) = column.key().and_then(|key| seen.insert(key, name)) {
            return Err(BadHead::Twice(other.clone(), name.clone()));
        }
        match (column.votes(), kind) {
            (Some(one), Some((other, there))) if one != other => {
                return Err(BadHead::Kinds(there.clone(), name.clone()));
            }
            (Some(one), None) => kind = Some((one, name)),
            _ => {}
        }
    }
    match kind {
        Some(_) => Ok(()),
        None => Err(BadHead::NoVote(head.join(","))),
    }
}

fn fail(line: usize, what: String) -> ReadError {
    ReadError {
        line,
        what,
        hint: HINTS.shapes.into(),
    }
}

/// The reason why a cell cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum BadCell {
    #[error("`{0}` is not a number")]
    Number(String),
    #[error("`{0}` is not a whole number of ballots")]
    Count(String),
    #[error("`{0}` has no name on one side of a `>` or `=`")]
    Gap(String),
}

/// The content of a column.
enum Column {
    /// A text field of the ballot.
    Text(&'static str),
    /// A number field of the ballot.
    Number(&'static str),
    Choice,
    Ranking,
    /// The names at one rank, with its number.
    Rank(u64),
    /// The choice of one round, with its number.
    Round(u64),
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
                .filter(|n| n.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|n| n.parse::<u64>().ok())
        };
        if let Some(n) = numbered("rank") {
            return Column::Rank(n);
        }
        if let Some(n) = numbered("round") {
            return Column::Round(n);
        }
        match plain.as_str() {
            "voter" | "member" => Column::Text("voter"),
            "family" => Column::Text("family"),
            "n" | "count" => Column::Number("n"),
            "weight" => Column::Number("weight"),
            "confidence" => Column::Number("confidence"),
            "reliability" => Column::Number("reliability"),
            "choice" | "vote" | "answer" => Column::Choice,
            "ranking" => Column::Ranking,
            "approvals" => Column::Approvals,
            _ => match name.trim().split_once(':') {
                Some((word, who)) if word.eq_ignore_ascii_case("score") => {
                    Column::Score(who.trim().into())
                }
                _ => Column::Other,
            },
        }
    }

    /// Returns what the column is for; two columns cannot be for the same.
    fn key(&self) -> Option<String> {
        match self {
            Column::Text(key) | Column::Number(key) => Some((*key).into()),
            Column::Rank(n) => Some(format!("rank{n}")),
            Column::Round(n) => Some(format!("round{n}")),
            Column::Score(who) => Some(format!("score:{who}")),
            Column::Other => None,
            _ => self.votes().map(Into::into),
        }
    }

    /// Returns the kind of vote in it, if any.
    fn votes(&self) -> Option<&'static str> {
        match self {
            Column::Choice => Some("choice"),
            Column::Ranking => Some("ranking"),
            Column::Rank(_) => Some("ranks"),
            Column::Round(_) => Some("trail"),
            Column::Approvals => Some("approvals"),
            Column::Score(_) => Some("scores"),
            Column::Text(_) | Column::Number(_) | Column::Other => None,
        }
    }
}

/// Returns the names of one rank: one, or several with `=` between them.
fn tied(cell: &str, whole: &str) -> Result<Value, BadCell> {
    let names: Vec<&str> = cell.split('=').map(str::trim).collect();
    match names.as_slice() {
        names if names.iter().any(|name| name.is_empty()) => Err(BadCell::Gap(whole.to_owned())),
        [name] => Ok(json!(name)),
        names => Ok(json!(names)),
    }
}

/// Converts a row to the equivalent JSON object.
#[expect(clippy::too_many_lines, reason = "one arm for each kind of column")]
fn ballot(columns: &[Column], row: &[String]) -> Result<Map<String, Value>, BadCell> {
    let mut object = Map::new();
    // By number: columns may be in any order.
    let (mut ranks, mut rounds) = (BTreeMap::new(), BTreeMap::new());
    let mut scores = Map::new();
    for (column, cell) in columns.iter().zip(row) {
        let cell = cell.trim();
        let number = || {
            let number = cell.parse::<f64>().ok().filter(|n| n.is_finite());
            number.ok_or_else(|| BadCell::Number(cell.to_owned()))
        };
        let one = || match cell {
            "" => Value::Null,
            name => json!(name),
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
                object.insert("choice".into(), one());
            }
            Column::Ranking if cell.is_empty() => {
                object.insert("ranks".into(), json!([]));
            }
            Column::Ranking => {
                let ranks: Vec<Value> = cell
                    .split('>')
                    .map(|rank| tied(rank, cell))
                    .collect::<Result<_, _>>()?;
                object.insert("ranks".into(), json!(ranks));
            }
            Column::Rank(n) if cell.is_empty() => {
                ranks.insert(*n, Value::Null);
            }
            Column::Rank(n) => {
                ranks.insert(*n, tied(cell, cell)?);
            }
            Column::Round(n) => {
                rounds.insert(*n, one());
            }
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
        object.insert(
            "ranks".into(),
            json!(ranks.into_values().collect::<Vec<_>>()),
        );
    }
    if !rounds.is_empty() {
        object.insert(
            "trail".into(),
            json!(rounds.into_values().collect::<Vec<_>>()),
        );
    }
    if !scores.is_empty() {
        object.insert("scores".into(), Value::Object(scores));
    }
    Ok(object)
}
