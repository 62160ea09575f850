//! Parses recorded answers: CSV with a column per member, or JSON Lines of debates.
//!
//! CSV: `id` or `question_id`, `gold`, then a column per member; `n_options` if known; `confidence:NAME` and
//! `cost:NAME` for a member's column. An empty cell is an abstention; `<missing>` means that the member was never
//! asked. Debates: `{"gold": …, "answers": [[round by round] for each agent], "correct": [[…] …]}`.

use super::{Question, Replay};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Marks a member that was never asked.
const MISSING: &str = "<missing>";
/// Columns that are not a member's answers.
const OWN: [&str; 6] = [
    "id",
    "question_id",
    "gold",
    "category",
    "subject",
    "n_options",
];

/// Recorded answers cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ReadError {
    /// The line, 1-based.
    pub line: usize,
    /// The reason it is invalid.
    pub what: String,
    /// Advice to the user.
    pub hint: String,
}

/// The meaning of an empty answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Empty {
    /// No answer: an abstention.
    #[default]
    Abstains,
    /// An answer like any other, and wrong. Some published figures count it so.
    Answer,
}

/// The part of a file to replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    /// The members, in this order; all if empty.
    pub members: Vec<String>,
    /// Only debates recorded in this mode, if the file has several.
    pub mode: Option<String>,
    /// The meaning of an empty answer.
    pub empty: Empty,
}

fn fail(line: usize, what: impl Into<String>, hint: impl Into<String>) -> ReadError {
    ReadError {
        line,
        what: what.into(),
        hint: hint.into(),
    }
}

/// Parses a table of answers and selects the members.
///
/// # Errors
/// As for [`Table::read`] and [`Table::council`].
pub fn read_csv(text: &str, select: &Select) -> Result<Replay, ReadError> {
    Table::read(text, select.empty)?.council(&select.members)
}

/// A whole file of answers, from which councils are chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// All members with a column, in the order of the file.
    pub members: Vec<String>,
    rows: Vec<(Question, Vec<bool>)>,
    options: Option<u64>,
}

const HEAD_HINT: &str = "a header such as `id,gold,MODEL,MODEL,…`, then one question per row";

impl Table {
    /// Parses the whole file.
    ///
    /// # Errors
    /// No column `gold`, a question without a right answer, a duplicate name or id, a row of another length, an invalid number.
    pub fn read(text: &str, empty: Empty) -> Result<Self, ReadError> {
        let rows = kd_vote::csv::rows(text)
            .map_err(|at| fail(at, "a quote is never closed", HEAD_HINT))?;
        let mut rows = rows.into_iter();
        let Some((at, head)) = rows.next() else {
            return Err(fail(1, "the file is empty", HEAD_HINT));
        };
        let columns = Columns::of(at, &head)?;
        let mut ids = BTreeSet::new();
        let mut table = Self {
            members: columns.members.clone(),
            ..Self::default()
        };
        for (line, row) in rows {
            if row.len() != head.len() {
                let what = format!("{} cells, but the header has {}", row.len(), head.len());
                return Err(fail(line, what, "put a cell with a comma in quotes"));
            }
            if let Some(n) = number(line, &row, columns.options, 1e9)? {
                table.options = table.options.max(Some(n as u64));
            }
            let mut q = Question {
                id: columns
                    .id
                    .map_or_else(|| line.to_string(), |p| row[p].clone()),
                ..Question::default()
            };
            if row[columns.gold].is_empty() {
                let what = format!("question {} has no right answer", q.id);
                return Err(fail(
                    line,
                    what,
                    "fill in the cell in `gold`, or remove the row",
                ));
            }
            if !ids.insert(q.id.clone()) {
                let what = format!("question {} is listed twice", q.id);
                return Err(fail(line, what, "give each question its own id"));
            }
            let mut missing = Vec::with_capacity(columns.answers.len());
            for c in &columns.answers {
                let absent = row[*c] == MISSING;
                let answers = !absent && (!row[*c].is_empty() || empty == Empty::Answer);
                missing.push(absent);
                let answer = answers.then(|| q.key(&row[*c]));
                q.answers.push(answer);
            }
            q.right = q.keys.iter().map(|k| *k == row[columns.gold]).collect();
            let numbers =
                |places: &[Option<usize>], max: f64| -> Result<Vec<Option<f64>>, ReadError> {
                    places.iter().map(|p| number(line, &row, *p, max)).collect()
                };
            q.stated = numbers(&columns.stated, 1.0)?;
            q.cost = numbers(&columns.cost, 1e12)?;
            table.rows.push((q, missing));
        }
        Ok(table)
    }

    /// Creates a table of these questions, each with whether a member was not asked.
    pub fn of(
        members: Vec<String>,
        rows: Vec<(Question, Vec<bool>)>,
        options: Option<u64>,
    ) -> Self {
        Self {
            members,
            rows,
            options,
        }
    }

    /// Returns the questions, each with whether a member was not asked.
    pub fn rows(&self) -> &[(Question, Vec<bool>)] {
        &self.rows
    }

    /// Returns the answers of these members, in this order; of all of them if none is named. Skips questions that one
    /// of them was never asked.
    ///
    /// # Errors
    /// If a member has no column or is named twice, or no question was asked of all of them.
    pub fn council(&self, members: &[String]) -> Result<Replay, ReadError> {
        let members = chosen(&self.members, members).map_err(|what| {
            fail(
                1,
                what,
                format!("members of this file: {}", self.members.join(", ")),
            )
        })?;
        let places: Vec<usize> = members
            .iter()
            .filter_map(|m| self.members.iter().position(|x| x == m))
            .collect();
        let mut replay = Replay {
            named: true,
            options: self.options,
            members,
            ..Replay::default()
        };
        for (all, missing) in &self.rows {
            if places.iter().any(|p| missing[*p]) {
                replay.dropped += 1;
                continue;
            }
            let mut q = Question {
                id: all.id.clone(),
                ..Question::default()
            };
            for p in &places {
                let answer = all.answers[*p].map(|k| {
                    let key = q.key(&all.keys[k]);
                    q.right[key] = all.right[k];
                    key
                });
                q.answers.push(answer);
                q.stated.push(all.stated[*p]);
                q.cost.push(all.cost[*p]);
            }
            replay.questions.push(q);
        }
        finish(replay, HEAD_HINT)
    }
}

/// The column positions.
struct Columns {
    id: Option<usize>,
    gold: usize,
    options: Option<usize>,
    members: Vec<String>,
    answers: Vec<usize>,
    stated: Vec<Option<usize>>,
    cost: Vec<Option<usize>>,
}

impl Columns {
    fn of(line: usize, head: &[String]) -> Result<Self, ReadError> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, name) in head.iter().enumerate() {
            if places.insert(name.trim(), place).is_some() {
                let what = format!("the column `{}` is listed twice", name.trim());
                return Err(fail(line, what, "give each member its own name"));
            }
        }
        let Some(gold) = places.get("gold").copied() else {
            return Err(fail(line, "no column is named `gold`", HEAD_HINT));
        };
        let is_member = |name: &str| {
            !OWN.contains(&name)
                && !["confidence:", "cost:"]
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
        };
        let members: Vec<String> = head
            .iter()
            .map(|n| n.trim())
            .filter(|n| is_member(n))
            .map(str::to_owned)
            .collect();
        let beside = |prefix: &str| -> Vec<Option<usize>> {
            members
                .iter()
                .map(|m| places.get(format!("{prefix}:{m}").as_str()).copied())
                .collect()
        };
        Ok(Self {
            id: places
                .get("id")
                .or_else(|| places.get("question_id"))
                .copied(),
            gold,
            options: places.get("n_options").copied(),
            answers: members
                .iter()
                .filter_map(|m| places.get(m.as_str()).copied())
                .collect(),
            stated: beside("confidence"),
            cost: beside("cost"),
            members,
        })
    }
}

/// Parses the number in a cell; `None` without such a column or an empty cell.
fn number(
    line: usize,
    row: &[String],
    place: Option<usize>,
    max: f64,
) -> Result<Option<f64>, ReadError> {
    let Some(cell) = place.map(|p| row[p].trim()).filter(|c| !c.is_empty()) else {
        return Ok(None);
    };
    match cell.parse::<f64>() {
        Ok(x) if (0.0..=max).contains(&x) => Ok(Some(x)),
        _ => Err(fail(
            line,
            format!("`{cell}` is not a number from 0 to {max}"),
            "leave a cell empty where nothing is known",
        )),
    }
}

/// Returns the selected columns, or all of them if none is named.
fn chosen(all: &[String], wanted: &[String]) -> Result<Vec<String>, String> {
    if wanted.is_empty() {
        return Ok(all.to_vec());
    }
    let mut members: Vec<String> = Vec::new();
    for name in wanted {
        if !all.contains(name) {
            let near = kd_vote::nearest(name, all.iter().map(String::as_str));
            let near = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            return Err(format!("no member is named `{name}`{near}"));
        }
        if members.contains(name) {
            return Err(format!("the member `{name}` is named twice"));
        }
        members.push(name.clone());
    }
    Ok(members)
}

fn finish(replay: Replay, hint: &str) -> Result<Replay, ReadError> {
    if replay.members.is_empty() {
        return Err(fail(1, "there is no member", hint));
    }
    if replay.questions.is_empty() {
        let what = match replay.dropped {
            0 => "there is no question below the header".to_owned(),
            n => format!("none of {n} questions was put to all of these members"),
        };
        return Err(fail(1, what, "choose other members"));
    }
    Ok(replay)
}

#[derive(Deserialize)]
struct DebateLine {
    #[serde(default)]
    mode: Option<String>,
    answers: Vec<Vec<String>>,
    correct: Vec<Vec<bool>>,
}

/// Returns the question of a debate, with the answers of each round.
fn debated(id: String, debate: &DebateLine, empty: Empty) -> Question {
    let mut q = Question {
        id,
        ..Question::default()
    };
    for (said, marks) in debate.answers.iter().zip(&debate.correct) {
        let mut trail = Vec::with_capacity(said.len());
        for (text, mark) in said.iter().zip(marks) {
            let key = (!text.is_empty() || empty == Empty::Answer).then(|| q.key(text));
            if let Some(key) = key {
                q.right[key] |= mark;
            }
            trail.push(key);
        }
        q.answers.push(trail.last().copied().flatten());
        q.trails.push(trail);
    }
    q.stated = vec![None; q.answers.len()];
    q.cost = vec![None; q.answers.len()];
    q
}

/// Parses debates, one per line. Members are positions.
///
/// # Errors
/// A line that is not such an object, or whose answers and marks have different shapes.
pub fn read_debates(text: &str, select: &Select) -> Result<Replay, ReadError> {
    let hint = "a line is {\"answers\": [[\"7\", \"5\"], [\"5\"]], \"correct\": [[false, true], [true]]}: a list for each agent, round by round";
    let mut replay = Replay::default();
    let mut modes: Vec<String> = Vec::new();
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty())
    {
        let debate: DebateLine =
            serde_json::from_str(line).map_err(|e| fail(at + 1, e.to_string(), hint))?;
        if let Some(mode) = &debate.mode
            && !modes.contains(mode)
        {
            modes.push(mode.clone());
        }
        if select.mode.is_some() && debate.mode != select.mode {
            continue;
        }
        let shape = |a: &[Vec<String>], c: &[Vec<bool>]| {
            a.len() == c.len() && a.iter().zip(c).all(|(a, c)| a.len() == c.len())
        };
        if !shape(&debate.answers, &debate.correct) {
            let what = "`answers` and `correct` are of different shape";
            return Err(fail(at + 1, what, hint));
        }
        let id = (at + 1).to_string();
        replay.questions.push(debated(id, &debate, select.empty));
    }
    if let Some(mode) = &select.mode
        && replay.questions.is_empty()
    {
        let what = format!("no debate was recorded under the mode `{mode}`");
        return Err(fail(
            1,
            what,
            format!("modes of this file: {}", modes.join(", ")),
        ));
    }
    let seats = replay
        .questions
        .iter()
        .map(|q| q.answers.len())
        .max()
        .unwrap_or(0);
    replay.members = (1..=seats).map(|n| format!("agent {n}")).collect();
    for q in &mut replay.questions {
        q.answers.resize(seats, None);
        q.trails.resize(seats, Vec::new());
        q.stated.resize(seats, None);
        q.cost.resize(seats, None);
    }
    finish(replay, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "id,gold,n_options,ada,bob,cost:ada,confidence:bob\nq1,A,4,A,B,0.1,0.7\nq2,B,3,,\"B\",,\nq3,C,4,<missing>,C,,\n";

    #[test]
    fn a_table_of_answers_is_read() {
        let replay = read_csv(TABLE, &Select::default()).unwrap();
        assert_eq!(replay.members, ["ada", "bob"]);
        assert_eq!(
            (replay.questions.len(), replay.dropped, replay.options),
            (2, 1, Some(4))
        );
        let [q1, q2] = replay.questions.as_slice() else {
            panic!()
        };
        assert_eq!((q1.is_right(0), q1.is_right(1)), (true, false));
        assert_eq!((q1.cost[0], q1.stated[1]), (Some(0.1), Some(0.7)));
        assert_eq!((q2.answers[0], q2.is_right(1)), (None, true));
        let bob = Select {
            members: vec!["bob".into()],
            ..Select::default()
        };
        assert_eq!(
            read_csv(TABLE, &bob).unwrap().questions.len(),
            3,
            "nobody else's absence counts"
        );
    }

    #[test]
    fn an_empty_answer_may_count_as_wrong() {
        let all = Select {
            empty: Empty::Answer,
            ..Select::default()
        };
        let q = &read_csv(TABLE, &all).unwrap().questions[1];
        assert_eq!((q.answers[0].is_some(), q.is_right(0)), (true, false));
    }

    #[test]
    fn bad_tables_say_what_is_wrong() {
        let csv = |text: &str, members: &[&str]| {
            let members = members.iter().map(|m| (*m).to_owned()).collect();
            read_csv(
                text,
                &Select {
                    members,
                    ..Select::default()
                },
            )
            .unwrap_err()
            .to_string()
        };
        assert!(
            csv(TABLE, &["ada", "bobb"]).contains("no member is named `bobb`; did you mean `bob`?")
        );
        assert!(csv(TABLE, &["ada", "ada"]).contains("twice"));
        assert!(csv("id,ada\n1,A\n", &[]).contains("no column is named `gold`"));
        assert!(csv("", &[]).contains("empty"));
        assert!(csv("gold,ada\nA\n", &[]).contains("line 2: 1 cells"));
        assert!(csv("gold,ada,ada\nA,A,A\n", &[]).contains("`ada` is listed twice"));
        assert!(csv("gold,ada\n", &[]).contains("no question"));
        assert!(csv("gold\nA\n", &[]).contains("no member"));
        assert!(csv("id,gold,ada\nq,,A\n", &[]).contains("line 2: question q has no right answer"));
        assert!(
            csv("id,gold,ada\nq,A,A\nq,A,B\n", &[]).contains("line 3: question q is listed twice")
        );
        assert!(csv("gold,ada\nA,<missing>\n", &[]).contains("none of 1 questions"));
        assert!(csv("gold,ada,cost:ada\nA,A,dear\n", &[]).contains("`dear` is not a number"));
    }

    #[test]
    fn debates_are_read_agent_by_agent() {
        let text = "{\"mode\":\"x\",\"gold\":\"5\",\"answers\":[[\"7\",\"5\"],[\"5\"],[\"\"]],\"correct\":[[false,true],[true],[false]]}\n\n{\"answers\":[[\"1\"]],\"correct\":[[false]]}\n";
        let replay = read_debates(text, &Select::default()).unwrap();
        assert_eq!(
            (replay.members.len(), replay.named, replay.questions.len()),
            (3, false, 2)
        );
        let q = &replay.questions[0];
        assert_eq!(q.keys, ["7", "5"]);
        assert_eq!(
            (q.trails[0].as_slice(), q.answers[2]),
            (&[Some(0), Some(1)][..], None)
        );
        assert!(q.is_right(0) && q.is_right(1));
        assert_eq!(replay.questions[1].answers, [Some(0), None, None]);
        let mode = |m: &str| Select {
            mode: Some(m.into()),
            ..Select::default()
        };
        assert_eq!(read_debates(text, &mode("x")).unwrap().questions.len(), 1);
        let error = read_debates(text, &mode("y")).unwrap_err();
        assert!(error.hint.contains("modes of this file: x"), "{error:?}");
        let torn = read_debates(
            "{\"answers\":[[\"1\"]],\"correct\":[[]]}",
            &Select::default(),
        )
        .unwrap_err();
        assert!(torn.to_string().contains("different shape"));
        assert_eq!(
            read_debates("nonsense", &Select::default())
                .unwrap_err()
                .line,
            1
        );
    }
}
