//! Polls in files: JSON Lines (one poll or one ballot per line) and CSV (one ballot per row). Pure: text in, polls out.
//!
//! A poll is `{"candidates": 3 or ["A", …], "ballots": […]}`. A ballot is a list (a ranking, by name or number), or an
//! object with one of `choice`, `ranks`, `scores`, `approvals`, `trail`, and with `n`, `voter`, `weight`, `confidence`,
//! `reliability`, `family`, `predicted` if known. It may also hold another program's results: `winners` by the name of
//! the rule, `rounds` of an instant-runoff with its `rules` in RCTab's terms.

mod csv;
mod names;
mod notices;
mod rctab;
mod strict;

pub use csv::read_csv;
pub use notices::{Notices, Place};

use super::amount::{NANOS, Nano, nanos};
use super::ballot::{Ballot, Mark, Rank};
use super::rules::Rules;
use names::{BadName, Names, fold};
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
    /// What is left out, or counted otherwise than somebody may expect.
    pub notices: Notices,
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

/// What to write instead, in each format.
struct Hints {
    ranking: &'static str,
    spelling: &'static str,
    shapes: &'static str,
}

/// What to write instead, in JSON.
const HINTS: Hints = Hints {
    ranking: r#"write {"ranks": ["A", "B", "C"]}; if it is the name of one candidate, list all: {"candidates": ["A", "B"]}"#,
    spelling: r#"write each name in one way; if both are candidates, list all: {"candidates": ["A", "a"]}"#,
    shapes: SHAPES,
};

impl Hints {
    fn bad_name(&self, bad: &BadName) -> ReadError {
        let hint = match bad {
            BadName::Ranking { .. } => self.ranking,
            BadName::Spelling { .. } => self.spelling,
        };
        ReadError {
            line: bad.line(),
            what: bad.to_string(),
            hint: hint.into(),
        }
    }
}

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
    /// Two keys for one thing.
    #[error("it has `{0}` and `{1}`, which are for the same thing: keep one of them")]
    Both(&'static str, &'static str),
    /// A score that is no number.
    #[error("the score of `{who}` is {found}: write a number, or null for a blank")]
    Score { who: String, found: &'static str },
    /// Points without names, and nobody knows whose they are.
    #[error(
        "`{key}` needs a number for each candidate (numbers: {found}, candidates: {candidates}): list the candidates, or write points by name"
    )]
    ScoresList {
        key: &'static str,
        found: usize,
        candidates: usize,
    },
    /// A voter that has voted already.
    #[error("`{voter}` has voted already ({first}): a voter has one ballot")]
    Again { voter: String, first: Place },
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
        let value = strict::parse(line).map_err(|e| {
            fail(if e.is_data() {
                e.to_string()
            } else {
                format!("this is not JSON: {e}")
            })
        })?;
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
        cases.push(gather(loose, &HINTS)?);
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

/// The other keys of a ballot.
const DETAILS: [&str; 9] = [
    "n",
    "count",
    "voter",
    "member",
    "weight",
    "confidence",
    "reliability",
    "family",
    "predicted",
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
    let listed = listed(object.get("candidates")).map_err(|why| fail(why.to_string()))?;
    let places = (1..).map(|ballot| Place { line, ballot });
    let mut reader = Reader::new(listed, ballots.iter().zip(places), &object, line, &HINTS)?;
    let ballots: Vec<Ballot> = ballots
        .iter()
        .enumerate()
        .map(|(at, ballot)| {
            let ballot_place = Place {
                line,
                ballot: at + 1,
            };
            reader.ballot(ballot, ballot_place)
        })
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
        notices: reader.notices,
    })
}

/// More would make a pairwise table too large for memory.
const CANDIDATES_MAX: u64 = 4096;

/// The reason why a list of candidates cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum BadList {
    #[error("`candidates` is {0}: a number from 0 to {CANDIDATES_MAX}, or a list of names")]
    Number(String),
    #[error("`candidates` has an entry that is not a name")]
    Entry,
    #[error("`candidates` is {0}: give a number or a list of names")]
    Shape(&'static str),
}

/// Returns the candidates that a poll lists, if it does.
fn listed(value: Option<&Value>) -> Result<Option<Vec<String>>, BadList> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(n)) => match n.as_u64() {
            Some(n) if n <= CANDIDATES_MAX => Ok(Some((0..n).map(|c| c.to_string()).collect())),
            _ => Err(BadList::Number(n.to_string())),
        },
        Some(Value::Array(names)) => {
            let names = names.iter().map(name).collect::<Option<Vec<String>>>();
            names.map(Some).ok_or(BadList::Entry)
        }
        Some(other) => Err(BadList::Shape(kind(other))),
    }
}

/// Collects the ballots of one poll, one per line; a line with `candidates` names all candidates.
fn gather(lines: Vec<(usize, Map<String, Value>)>, hints: &Hints) -> Result<Case, ReadError> {
    let first = lines.first().map_or(1, |(line, _)| *line);
    let mut head: Option<(usize, Map<String, Value>)> = None;
    let mut ballots = Vec::new();
    for (line, object) in lines {
        let fail = |what: String| ReadError {
            line,
            what,
            hint: hints.shapes.into(),
        };
        if !object.contains_key("candidates") {
            ballots.push((Value::Object(object), Place::of(line)));
        } else if let Some((there, _)) = head {
            return Err(fail(format!(
                "line {there} lists the candidates already: list all of them once"
            )));
        } else if let Some(key) = MARKS.iter().find(|key| object.contains_key(**key)) {
            return Err(fail(format!(
                "this has `candidates` and `{key}`: write the candidates into a line of their own"
            )));
        } else {
            head = Some((line, object));
        }
    }
    let (head_line, head) = head.unwrap_or_else(|| (first, Map::new()));
    let listed = listed(head.get("candidates")).map_err(|why| ReadError {
        line: head_line,
        what: why.to_string(),
        hint: hints.shapes.into(),
    })?;
    let each = ballots.iter().map(|(ballot, at)| (ballot, *at));
    let mut reader = Reader::new(listed, each, &head, head_line, hints)?;
    let read = ballots
        .iter()
        .map(|(ballot, at)| reader.ballot(ballot, *at))
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
        notices: reader.notices,
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
    if let Some(most) = object.get("approvals_max").and_then(Value::as_u64) {
        rules.approvals_max = Some(usize::try_from(most).unwrap_or(usize::MAX));
    }
    let share = object.get("threshold").and_then(Value::as_f64);
    if let Some(share) = share.filter(|share| (0.0..=1.0).contains(share)) {
        rules.super_majority = nanos(share);
    }
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

/// Returns whether a rank or a choice is left blank.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    }
}

/// Returns the points of a candidate; `None` for a blank.
fn points(who: &str, value: &Value) -> Result<Option<Nano>, BadBallot> {
    match value {
        Value::Null => Ok(None),
        other => other
            .as_f64()
            .map(|score| Some(nanos(score)))
            .ok_or_else(|| BadBallot::Score {
                who: who.to_owned(),
                found: kind(other),
            }),
    }
}

/// Resolves candidate names while ballots are read.
struct Reader {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
    /// Excluded candidates may appear on ballots without a warning.
    excluded: BTreeSet<String>,
    strangers: BTreeMap<String, u64>,
    notices: Notices,
    /// The voters so far, without differences of case and blanks: each as written, and where.
    voters: BTreeMap<String, (String, Place)>,
    /// Whether the poll says itself what a name written twice means (RCTab).
    has_rules: bool,
    /// Whether numbers can be places in the list of candidates, because none is a name.
    by_place: bool,
    hint: &'static str,
    line: usize,
    /// The ballot that is read.
    at: Place,
}

impl Reader {
    /// `listed`: the candidates, if the poll lists them.
    fn new<'v>(
        listed: Option<Vec<String>>,
        ballots: impl Iterator<Item = (&'v Value, Place)>,
        object: &Map<String, Value>,
        line: usize,
        hints: &Hints,
    ) -> Result<Self, ReadError> {
        let (names, notices) = match listed {
            Some(names) => (names, Notices::default()),
            None => {
                let mut found = Names::default();
                ballots.for_each(|(ballot, at)| found.add(ballot, at));
                found.candidates().map_err(|bad| hints.bad_name(&bad))?
            }
        };
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
        let is_number = |name: &String| name.bytes().all(|b| b.is_ascii_digit());
        let counted = (0..names.len()).map(|n| n.to_string());
        let by_place =
            !names.iter().any(is_number) || names.iter().eq(&counted.collect::<Vec<_>>());
        Ok(Self {
            names,
            places,
            excluded,
            strangers: BTreeMap::new(),
            notices,
            voters: BTreeMap::new(),
            has_rules: object.contains_key("rules") || object.contains_key("rounds"),
            by_place,
            hint: hints.shapes,
            line,
            at: Place::of(line),
        })
    }

    fn place(&self, value: &Value) -> Option<usize> {
        match value {
            Value::Number(n) => match self.places.get(&n.to_string()) {
                Some(place) => Some(*place),
                None => n
                    .as_u64()
                    .filter(|_| self.by_place)
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

    /// Parses a ballot.
    fn ballot(&mut self, value: &Value, at: Place) -> Result<Ballot, ReadError> {
        self.at = at;
        let hint = self.hint;
        let fail = |what: String| ReadError {
            line: at.line,
            what: if at.ballot > 0 {
                format!("ballot {}: {what}", at.ballot)
            } else {
                what
            },
            hint: hint.into(),
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
        for keys in [&["n", "count"], &["voter", "member"]] {
            let [one, other] = *keys;
            if object.contains_key(one) && object.contains_key(other) {
                return Err(BadBallot::Both(one, other));
            }
        }
        for key in object.keys() {
            if !MARKS.contains(&key.as_str()) && !DETAILS.contains(&key.as_str()) {
                self.notices.add(format!("`{key}` is not read"), self.at);
            }
        }
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
        ballot.voter = match object.get("voter").or_else(|| object.get("member")) {
            None | Some(Value::Null) => String::new(),
            Some(value) => name(value).ok_or(BadBallot::Shape {
                key: "voter",
                found: kind(value),
                wanted: "a name",
            })?,
        };
        self.votes_once(&ballot.voter)?;
        ballot.family = object.get("family").and_then(name);
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

    /// Refuses a second ballot of a voter.
    fn votes_once(&mut self, voter: &str) -> Result<(), BadBallot> {
        if voter.trim().is_empty() {
            return Ok(());
        }
        let voter = voter.trim().to_owned();
        match self.voters.get(&fold(&voter)) {
            Some((other, first)) if *other == voter => Err(BadBallot::Again {
                voter,
                first: *first,
            }),
            Some((other, _)) => {
                let what = format!("`{voter}` and `{other}` are counted as two voters");
                self.notices.add(what, self.at);
                Ok(())
            }
            None => {
                self.voters.insert(fold(&voter), (voter, self.at));
                Ok(())
            }
        }
    }

    fn mark(&mut self, object: &Map<String, Value>) -> Result<Mark, BadBallot> {
        let mut marks = MARKS.iter().filter_map(|k| Some((*k, object.get(*k)?)));
        let mut given = marks.clone().filter(|(_, value)| !value.is_null());
        let (key, value) = match (given.next(), given.next()) {
            (Some((one, _)), Some((other, _))) => return Err(BadBallot::Both(one, other)),
            (Some(mark), None) => mark,
            (None, _) => marks.next().ok_or(BadBallot::NoMark)?,
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
                Value::String(text) if text.trim().is_empty() => {
                    Mark::Unreadable("it chooses nobody".into())
                }
                Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                    return Err(shape("one name"));
                }
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
                Value::Array(list) => self.scores(key, list)?,
                Value::Object(each) => self.scores_by_name(each)?,
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
                        Some(c) if set.contains(&c) => self.twice(c, "it is approved once"),
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
                let mut read = Vec::with_capacity(trail.len());
                for choice in trail {
                    let place = self.place(choice);
                    if place.is_none() && !is_blank(choice) {
                        self.stranger(choice);
                    }
                    read.push(place);
                }
                Mark::Trail(read)
            }
        })
    }

    fn scores(&self, key: &'static str, list: &[Value]) -> Result<Vec<Option<Nano>>, BadBallot> {
        if list.len() != self.names.len() {
            return Err(BadBallot::ScoresList {
                key,
                found: list.len(),
                candidates: self.names.len(),
            });
        }
        let each = self.names.iter().zip(list);
        each.map(|(who, score)| points(who, score)).collect()
    }

    fn scores_by_name(
        &mut self,
        each: &Map<String, Value>,
    ) -> Result<Vec<Option<Nano>>, BadBallot> {
        for stranger in each.keys().filter(|k| !self.places.contains_key(*k)) {
            *self.strangers.entry(stranger.clone()).or_default() += 1;
        }
        let score = |who: &String| points(who, each.get(who).unwrap_or(&Value::Null));
        self.names.iter().map(score).collect()
    }

    /// Notes that a ballot names a candidate twice.
    fn twice(&mut self, candidate: usize, so: &str) {
        let who = &self.names[candidate];
        let what = format!("a ballot names `{who}` twice: {so}");
        self.notices.add(what, self.at);
    }

    fn ranking(&mut self, ranks: &[Value]) -> Mark {
        let mut read = Vec::with_capacity(ranks.len());
        let mut seen = BTreeSet::new();
        for rank in ranks {
            read.push(match rank {
                blank if is_blank(blank) => Rank::Skipped,
                Value::Array(several) => self.tied(several),
                one => match self.place(one) {
                    Some(c) => Rank::One(c),
                    None if one.as_str() == Some(OVERVOTE) => Rank::Overvote,
                    None => {
                        self.stranger(one);
                        Rank::Nobody
                    }
                },
            });
            let named = match read.last() {
                Some(Rank::One(c)) => std::slice::from_ref(c),
                Some(Rank::Tied(several)) => several,
                _ => &[],
            };
            let again: Vec<usize> = named.iter().copied().filter(|c| !seen.insert(*c)).collect();
            if !self.has_rules {
                again
                    .into_iter()
                    .for_each(|c| self.twice(c, "only its first place counts"));
            }
        }
        Mark::Ranking(read)
    }

    /// Reads one rank with a list of names.
    fn tied(&mut self, several: &[Value]) -> Rank {
        let mut named = Vec::new();
        let mut others = 0;
        for one in several {
            match self.place(one) {
                Some(c) if named.contains(&c) => self.twice(c, "only its first place counts"),
                Some(c) => named.push(c),
                None => {
                    others += 1;
                    if !is_blank(one) {
                        self.stranger(one);
                    }
                }
            }
        }
        match named.as_slice() {
            [] => Rank::Nobody,
            [c] if others == 0 => Rank::One(*c),
            _ => Rank::Tied(named),
        }
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
