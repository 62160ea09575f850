//! Polls in files: JSON Lines (one poll or one ballot per line) and CSV (one ballot per row). Pure: text in, polls out.
//!
//! A poll is `{"candidates": 3 or ["A", …], "ballots": […]}`. A ballot is a list (a ranking, by name or number), or an
//! object with one of `choice`, `ranks`, `scores`, `approvals`, `trail`, and with `n`, `voter`, `weight`, `confidence`,
//! `reliability`, `family`, `predicted` if known. It may also hold another program's results: `winners` by the name of
//! the rule, `rounds` of an instant-runoff with its `rules` in RCTab's terms.

mod csv;
mod rctab;

pub use csv::read_csv;

use super::amount::{NANOS, Nano, nanos};
use super::ballot::{Ballot, Mark, Rank};
use super::rules::Rules;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A poll from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The line where it begins, 1-based.
    pub line: usize,
    /// Its name in the file; empty if it has none.
    pub name: String,
    /// Candidates and settings.
    pub rules: Rules,
    /// The ballots.
    pub ballots: Vec<Ballot>,
    /// Another program's results.
    pub expected: Expected,
    /// Names on ballots that are not candidates, and on how many ballots.
    pub strangers: BTreeMap<String, u64>,
}

/// Another program's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// Winner sets by the rule's recorded name.
    pub winners: Vec<(String, Vec<usize>)>,
    /// The rounds of an instant-runoff.
    pub rounds: Vec<RoundExpected>,
}

/// A recorded round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundExpected {
    /// The votes of each, in billionths.
    pub tally: Vec<(usize, Nano)>,
    /// The eliminated candidates.
    pub eliminated: Vec<usize>,
    /// The winners.
    pub elected: Vec<usize>,
}

/// A file cannot be read.
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

const SHAPES: &str = r#"a poll is {"candidates": ["A", "B"], "ballots": [["A", "B"], {"n": 3, "ranks": ["B"]}]}; a ballot is {"voter": "ada", "choice": "A"}"#;

/// The reason why an object is not a ballot.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum BadBallot {
    /// It marks nothing.
    #[error("it marks nothing: give `choice`, `ranks`, `scores`, `approvals` or `trail`")]
    NoMark,
    /// A mark of another shape.
    #[error("`{key}` is {found}: give {wanted}")]
    Shape {
        key: &'static str,
        found: &'static str,
        wanted: &'static str,
    },
    /// The number of voters is not a whole number.
    #[error("`n` is {0}: how many cast this ballot, a whole number")]
    Count(String),
    /// A number out of range.
    #[error("`{key}` is {value}: write a number from 0 to {max}")]
    Number {
        key: String,
        value: String,
        max: f64,
    },
}

/// Parses JSON Lines: each line is a poll, or all lines are the ballots of one poll. Skips blank lines.
///
/// # Errors
/// The first line that is not JSON, or neither a poll nor a ballot.
pub fn read_json_lines(text: &str) -> Result<Vec<Case>, ReadError> {
    let mut cases = Vec::new();
    let mut loose: Vec<(usize, Map<String, Value>)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let line = line.trim().trim_start_matches('\u{feff}');
        if line.is_empty() {
            continue;
        }
        let fail = |what: String| ReadError {
            line: number,
            what,
            hint: SHAPES.into(),
        };
        let value: Value =
            serde_json::from_str(line).map_err(|e| fail(format!("this is not JSON: {e}")))?;
        let Value::Object(object) = value else {
            return Err(fail(format!(
                "this is {}, but a poll or a ballot is an object",
                kind(&value)
            )));
        };
        if object.contains_key("ballots") {
            cases.push(poll(object, number)?);
        } else if MARKS
            .iter()
            .chain(&["candidates"])
            .any(|key| object.contains_key(*key))
        {
            loose.push((number, object));
        } else {
            return Err(fail("this is neither a poll (it has no `ballots`) nor a ballot (it has none of `choice`, `ranks`, `scores`, `approvals`, `trail`)".into()));
        }
    }
    if !loose.is_empty() {
        if let Some(case) = cases.first() {
            return Err(ReadError {
                line: loose[0].0,
                what: format!("this is a ballot, but line {} is a whole poll", case.line),
                hint: "give a file either polls or ballots".into(),
            });
        }
        cases.push(gather(loose)?);
    }
    if cases.is_empty() {
        return Err(ReadError {
            line: 1,
            what: "there is no ballot in it".into(),
            hint: SHAPES.into(),
        });
    }
    Ok(cases)
}

const MARKS: [&str; 8] = [
    "choice",
    "key",
    "ranks",
    "ranking",
    "scores",
    "approvals",
    "points",
    "trail",
];

/// Parses a poll in one line.
fn poll(mut object: Map<String, Value>, line: usize) -> Result<Case, ReadError> {
    let fail = |what: String| ReadError {
        line,
        what,
        hint: SHAPES.into(),
    };
    let ballots = match object.remove("ballots") {
        Some(Value::Array(ballots)) => ballots,
        _ => return Err(fail("`ballots` is not a list".into())),
    };
    let candidates = match object.get("candidates") {
        Some(Value::Number(n)) => match n.as_u64() {
            Some(n) if n <= CANDIDATES_MAX => (0..n).map(|c| c.to_string()).collect(),
            _ => {
                return Err(fail(format!(
                    "`candidates` is {n}: a number from 0 to {CANDIDATES_MAX}, or a list of names"
                )));
            }
        },
        Some(Value::Array(names)) => names
            .iter()
            .map(name)
            .collect::<Option<Vec<String>>>()
            .ok_or_else(|| fail("`candidates` has an entry that is not a name".into()))?,
        Some(other) => {
            return Err(fail(format!(
                "`candidates` is {}: give a number or a list of names",
                kind(other)
            )));
        }
        None => {
            let objects = ballots.iter().map(|b| match b {
                Value::Array(_) => BTreeMap::from([("ranks", b)]),
                Value::Object(o) => o.iter().map(|(k, v)| (k.as_str(), v)).collect(),
                _ => BTreeMap::new(),
            });
            names_of(objects)
        }
    };
    let mut reader = Reader::new(candidates, &object, line)?;
    let ballots: Vec<Ballot> = ballots
        .iter()
        .enumerate()
        .map(|(at, ballot)| reader.ballot(ballot, line, at + 1))
        .collect::<Result<_, _>>()?;
    let mut rules = Rules::of(reader.names.clone());
    settings(&mut rules, &object);
    let expected = reader.expected(&object)?;
    if object.contains_key("rounds") || object.contains_key("rules") {
        rules.runoff = rctab::runoff(object.get("rules"), &rules.candidates, &expected.rounds)
            .map_err(|why| fail(why.to_string()))?;
    }
    let label = object
        .get("name")
        .or_else(|| object.get("id"))
        .and_then(name)
        .unwrap_or_default();
    Ok(Case {
        line,
        name: label,
        rules,
        ballots,
        expected,
        strangers: reader.strangers,
    })
}

/// More would make a pairwise table too large for memory.
const CANDIDATES_MAX: u64 = 4096;

/// Collects the ballots of one poll, one per line; a line with `candidates` names all candidates.
fn gather(lines: Vec<(usize, Map<String, Value>)>) -> Result<Case, ReadError> {
    let first = lines.first().map_or(1, |(line, _)| *line);
    let mut head = Map::new();
    let mut ballots = Vec::new();
    for (line, object) in lines {
        if object.contains_key("candidates") {
            head.extend(object);
        } else {
            ballots.push((line, object));
        }
    }
    let named: Option<Vec<String>> = head
        .get("candidates")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(name).collect());
    let candidates = named.unwrap_or_else(|| {
        names_of(
            ballots
                .iter()
                .map(|(_, b)| b.iter().map(|(k, v)| (k.as_str(), v)).collect()),
        )
    });
    let mut reader = Reader::new(candidates, &head, first)?;
    let read = ballots
        .into_iter()
        .map(|(line, b)| reader.ballot(&Value::Object(b), line, 0))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rules = Rules::of(reader.names.clone());
    settings(&mut rules, &head);
    let label = head.get("name").and_then(name).unwrap_or_default();
    Ok(Case {
        line: first,
        name: label,
        rules,
        ballots: read,
        expected: Expected::default(),
        strangers: reader.strangers,
    })
}

/// Reads settings given with the ballots.
fn settings(rules: &mut Rules, object: &Map<String, Value>) {
    if let Some(seed) = object.get("seed").and_then(Value::as_u64) {
        rules.seed = seed;
    }
    if let Some(question) = object.get("question").and_then(Value::as_str) {
        rules.question = question.into();
    }
    if let Some(points) = object.get("points_max").and_then(Value::as_u64) {
        rules.points = points;
    }
}

/// Returns all names on ballots that list no candidates, sorted: the order of ballots must not matter.
fn names_of<'v>(ballots: impl Iterator<Item = BTreeMap<&'v str, &'v Value>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut take = |value: &Value| {
        if let Some(n) = name(value).filter(|n| n != OVERVOTE && !n.is_empty()) {
            names.push(n);
        }
    };
    for ballot in ballots {
        for key in MARKS {
            match ballot.get(key) {
                Some(Value::Array(list)) => {
                    for item in list {
                        match item {
                            Value::Array(several) => several.iter().for_each(&mut take),
                            one => take(one),
                        }
                    }
                }
                Some(Value::Object(each)) => {
                    each.keys().for_each(|k| take(&Value::String(k.clone())))
                }
                Some(one) => take(one),
                None => {}
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

const OVERVOTE: &str = "OVERVOTE";

fn name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(n) => Some(n.to_string()),
        _ => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Resolves candidate names while ballots are read.
struct Reader {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
    /// Excluded candidates may appear on ballots without a warning.
    excluded: BTreeSet<String>,
    strangers: BTreeMap<String, u64>,
    line: usize,
}

impl Reader {
    fn new(
        names: Vec<String>,
        object: &Map<String, Value>,
        line: usize,
    ) -> Result<Self, ReadError> {
        let places: BTreeMap<String, usize> = names.iter().cloned().zip(0..).collect();
        let fail = |what: String| ReadError {
            line,
            what,
            hint: "name each candidate once".into(),
        };
        if places.len() < names.len() {
            let twice = names
                .iter()
                .enumerate()
                .find(|(at, n)| places.get(*n) != Some(at));
            return Err(fail(format!(
                "the candidate `{}` is listed twice",
                twice.map_or("", |(_, n)| n)
            )));
        }
        if names.len() as u64 > CANDIDATES_MAX {
            return Err(fail(format!(
                "{} candidates are more than {CANDIDATES_MAX}",
                names.len()
            )));
        }
        let excluded = object.get("excluded").and_then(Value::as_array);
        let excluded = excluded.into_iter().flatten().filter_map(name).collect();
        Ok(Self {
            names,
            places,
            excluded,
            strangers: BTreeMap::new(),
            line,
        })
    }

    fn place(&self, value: &Value) -> Option<usize> {
        match value {
            Value::Number(n) => match self.places.get(&n.to_string()) {
                Some(place) => Some(*place),
                None => n
                    .as_u64()
                    .map(|n| n as usize)
                    .filter(|n| *n < self.names.len()),
            },
            Value::String(text) => self.places.get(text).copied(),
            _ => None,
        }
    }

    fn stranger(&mut self, value: &Value) -> String {
        let who = name(value).unwrap_or_else(|| kind(value).to_owned());
        if !self.excluded.contains(&who) {
            *self.strangers.entry(who.clone()).or_default() += 1;
        }
        who
    }

    /// Parses a ballot. `at`: its position within a line, 1-based; 0 if the line is the ballot.
    fn ballot(&mut self, value: &Value, line: usize, at: usize) -> Result<Ballot, ReadError> {
        let fail = |what: String| ReadError {
            line,
            what: if at > 0 {
                format!("ballot {at}: {what}")
            } else {
                what
            },
            hint: SHAPES.into(),
        };
        match value {
            Value::Array(ranks) => Ok(Ballot::new(self.ranking(ranks))),
            Value::Object(object) => self.object(object).map_err(|why| fail(why.to_string())),
            other => Err(fail(format!(
                "this is {}, but a ballot is a list or an object",
                kind(other)
            ))),
        }
    }

    fn object(&mut self, object: &Map<String, Value>) -> Result<Ballot, BadBallot> {
        let mut ballot = Ballot::new(self.mark(object)?);
        if let Some(n) = object.get("n").or_else(|| object.get("count")) {
            ballot.count = n.as_u64().ok_or_else(|| BadBallot::Count(n.to_string()))?;
        }
        let number = |key: &str, max: f64| -> Result<Option<Nano>, BadBallot> {
            match object.get(key) {
                None | Some(Value::Null) => Ok(None),
                Some(v) => match v.as_f64() {
                    Some(x) if (0.0..=max).contains(&x) => Ok(Some(nanos(x))),
                    _ => Err(BadBallot::Number {
                        key: key.to_owned(),
                        value: v.to_string(),
                        max,
                    }),
                },
            }
        };
        ballot.weight = number("weight", 1e9)?.unwrap_or(NANOS);
        ballot.confidence = number("confidence", 1.0)?;
        ballot.reliability = number("reliability", 1.0)?;
        let text = |keys: [&str; 2]| {
            keys.iter()
                .find_map(|k| object.get(*k))
                .and_then(Value::as_str)
        };
        ballot.voter = text(["voter", "member"]).unwrap_or_default().into();
        ballot.family = text(["family", "family"]).map(Into::into);
        ballot.predicted = match object.get("predicted") {
            Some(Value::Object(shares)) => self
                .names
                .iter()
                .map(|n| shares.get(n).and_then(Value::as_f64).map_or(0, nanos))
                .collect(),
            Some(Value::Array(shares)) => {
                shares.iter().map(|s| s.as_f64().map_or(0, nanos)).collect()
            }
            _ => Vec::new(),
        };
        Ok(ballot)
    }

    fn mark(&mut self, object: &Map<String, Value>) -> Result<Mark, BadBallot> {
        let Some((key, value)) = MARKS.iter().find_map(|k| object.get(*k).map(|v| (*k, v))) else {
            return Err(BadBallot::NoMark);
        };
        let shape = |wanted: &'static str| BadBallot::Shape {
            key,
            found: kind(value),
            wanted,
        };
        let list = |wanted| value.as_array().ok_or_else(|| shape(wanted));
        Ok(match key {
            "choice" | "key" => match value {
                Value::Null => Mark::Unreadable("it chooses nobody".into()),
                _ => match self.place(value) {
                    Some(c) => Mark::Choice(c),
                    None => {
                        Mark::Unreadable(format!("`{}` is not a candidate", self.stranger(value)))
                    }
                },
            },
            "ranks" | "ranking" => {
                let ranks = list("a list of names from best to worst")?;
                self.ranking(ranks)
            }
            "scores" | "points" => Mark::Scores(match value {
                Value::Array(list) => list.iter().map(|s| s.as_f64().map(nanos)).collect(),
                Value::Object(each) => {
                    for stranger in each.keys().filter(|k| !self.places.contains_key(*k)) {
                        *self.strangers.entry(stranger.clone()).or_default() += 1;
                    }
                    self.names
                        .iter()
                        .map(|n| each.get(n).and_then(Value::as_f64).map(nanos))
                        .collect()
                }
                _ => {
                    return Err(shape(
                        "points by name, or a list in the order of the candidates",
                    ));
                }
            }),
            "approvals" => {
                let names = list("a list of names")?;
                let mut set = Vec::new();
                for name in names {
                    match self.place(name) {
                        Some(c) => set.push(c),
                        None => {
                            self.stranger(name);
                        }
                    }
                }
                Mark::Approvals(set)
            }
            _ => {
                let trail = list("a list of choices, null where there was none")?;
                Mark::Trail(trail.iter().map(|c| self.place(c)).collect())
            }
        })
    }

    fn ranking(&mut self, ranks: &[Value]) -> Mark {
        let mut read = Vec::with_capacity(ranks.len());
        for rank in ranks {
            read.push(match rank {
                Value::Null => Rank::Skipped,
                Value::String(text) if text.is_empty() => Rank::Skipped,
                Value::Array(several) => {
                    let named: Vec<usize> = several.iter().filter_map(|v| self.place(v)).collect();
                    match named.len() {
                        0 => Rank::Nobody,
                        1 if several.len() == 1 => Rank::One(named[0]),
                        _ => Rank::Tied(named),
                    }
                }
                one => match self.place(one) {
                    Some(c) => Rank::One(c),
                    None if one.as_str() == Some(OVERVOTE) => Rank::Overvote,
                    None => {
                        self.stranger(one);
                        Rank::Nobody
                    }
                },
            });
        }
        Mark::Ranking(read)
    }

    fn expected(&self, object: &Map<String, Value>) -> Result<Expected, ReadError> {
        let fail = |what: String| ReadError {
            line: self.line,
            what,
            hint: "recorded winners and rounds name candidates of the same poll".into(),
        };
        let places = |value: Option<&Value>, what: &str| -> Result<Vec<usize>, ReadError> {
            let list = value
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let mut found = list
                .iter()
                .map(|v| {
                    self.place(v)
                        .ok_or_else(|| fail(format!("{what} names {v}, which is not a candidate")))
                })
                .collect::<Result<Vec<_>, _>>()?;
            found.sort_unstable();
            Ok(found)
        };
        let mut expected = Expected::default();
        for (rule, winners) in object
            .get("winners")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            expected
                .winners
                .push((rule.clone(), places(Some(winners), rule)?));
        }
        for (at, round) in object
            .get("rounds")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let what = format!("round {}", at + 1);
            let mut tally = Vec::new();
            for (who, votes) in round
                .get("tally")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                let place = self.places.get(who).ok_or_else(|| {
                    fail(format!("{what} counts `{who}`, which is not a candidate"))
                })?;
                let votes = votes
                    .as_f64()
                    .or_else(|| votes.as_str().and_then(|t| t.parse().ok()));
                let votes =
                    votes.ok_or_else(|| fail(format!("{what} has no number for `{who}`")))?;
                tally.push((*place, nanos(votes)));
            }
            tally.sort_unstable();
            expected.rounds.push(RoundExpected {
                tally,
                eliminated: places(round.get("eliminated"), &what)?,
                elected: places(round.get("elected"), &what)?,
            });
        }
        Ok(expected)
    }
}
