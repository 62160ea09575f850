//! The state of one pass: answers, reviews, ballots, candidates and the count.

use super::answer::AnswerKind;
use super::fact::Counted;
use super::plan::Plan;
use super::reader::Run;
use crate::SeatName;
use crate::memory::similarity;
use kd_reading::{Step, code, sameness};
use kd_vote::{Ballot, TieStep};
use serde_json::Value;

/// The state of one pass, of the council or of a sub-council.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    /// The user's question, or an issue.
    pub question: String,
    /// Depth of nested sub-councils; 0 is the council itself.
    pub depth: u32,
    /// The pass, from 1.
    pub pass: u32,
    /// The members: indexes in the plan.
    pub seats: Vec<usize>,
    /// Rounds after the first.
    pub round: u32,
    /// Context for this pass, as members read it; empty in the first.
    pub context: String,
    /// The newest answer of each member, or of each sample.
    pub answers: Vec<Answer>,
    /// The key of each answer, round by round.
    pub trail: Vec<Vec<(usize, Option<String>)>>,
    /// Reviews.
    pub reviews: Vec<Review>,
    /// Ballots cast in the vote.
    pub ballots: Vec<Cast>,
    /// The candidates.
    pub candidates: Vec<Candidate>,
    /// The count.
    pub counted: Option<Counted>,
    /// The step of the count that broke a tie, if any.
    pub untied: Option<TieStep>,
    /// The candidate that an arbiter chose among the tied.
    pub arbiter: Option<usize>,
    /// Defects found by an attacker, and the responses to them.
    pub notes: Vec<String>,
    /// Judges' readings of which answers mean the same, until they are compared.
    pub readings: Vec<Grouped>,
    /// Answers with the same meaning: member and sample.
    pub same: Vec<Vec<(usize, u32)>>,
    /// Numbers fed back between rounds of estimates.
    pub feedback: String,
    /// The question to the user whose answer would decide, and the member that worded it.
    pub asks_back: Option<(SeatName, String)>,
    /// Members that did not answer, vote or review.
    pub absent: Absent,
}

/// Members that were asked in this pass and did not reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Absent {
    /// Asked to answer.
    pub answers: Vec<usize>,
    /// Asked to vote.
    pub ballots: Vec<usize>,
    /// Asked to review.
    pub reviews: Vec<usize>,
    /// Those of them that were stopped because the result was certain without them.
    pub needless: Vec<usize>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The member.
    pub seat: usize,
    /// Index among several answers of the same member.
    pub sample: u32,
    /// The text.
    pub text: String,
    /// The original reply from which the answer is read.
    pub reply: String,
    /// The key used for comparison; `None` for open text and for an abstention.
    pub key: Option<String>,
    /// Its stated confidence.
    pub confidence: Option<f64>,
    /// Its message.
    pub message: Option<u32>,
    /// Whether it abandons an earlier answer without naming a flaw in it.
    pub unjustified: bool,
}

/// One member's review of the other answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// The reviewer.
    pub seat: usize,
    /// Ratings from 1 to 10 and weaknesses, by the answer's author.
    pub ratings: Vec<(usize, u8, String)>,
    /// Authors from best to worst.
    pub ranking: Vec<usize>,
}

/// A parsed ballot.
#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    /// The voter.
    pub seat: usize,
    /// Its ballot: the vote, the stated confidence, the prediction. Candidates are indexes in [`Board::candidates`].
    pub ballot: Ballot,
    /// Its reason.
    pub reason: String,
}

/// A candidate: answers that mean the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name in the count: the key, or the beginning of the text with its author.
    pub name: String,
    /// The text of its first author.
    pub text: String,
    /// The authors.
    pub authors: Vec<usize>,
    /// Their messages.
    pub messages: Vec<u32>,
    /// The answers: member and sample.
    pub given: Vec<(usize, u32)>,
}

/// One judge's reading of the candidates: which of them mean the same, and their claims.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouped {
    /// The judge.
    pub seat: usize,
    /// Groups of candidates; `None` if they do not count.
    pub groups: Option<Vec<Vec<usize>>>,
    /// Claims.
    pub claims: Vec<ReadClaim>,
    /// Points that no answer covers.
    pub missing: Vec<String>,
}

/// A claim, with the candidates that state or contradict it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadClaim {
    /// The claim.
    pub claim: String,
    /// Candidates that state it.
    pub says: Vec<usize>,
    /// Candidates that contradict it.
    pub denies: Vec<usize>,
}

/// A text with at least this similarity says nothing new.
const SAME: f64 = 0.9;

impl Board {
    /// Returns the answer of a member.
    pub fn answer_of(&self, seat: usize) -> Option<&Answer> {
        self.answers.iter().find(|a| a.seat == seat)
    }

    /// Inserts an answer, replacing the member's earlier one. Answers are kept in member order, so that speed does not
    /// matter.
    pub fn put(&mut self, answer: Answer) {
        self.answers
            .retain(|a| (a.seat, a.sample) != (answer.seat, answer.sample));
        for group in &mut self.same {
            group.retain(|given| *given != (answer.seat, answer.sample));
        }
        self.answers.push(answer);
        self.answers.sort_by_key(|a| (a.seat, a.sample));
    }

    /// Adds the current key of each answer to the trail and updates the candidates.
    pub(super) fn settle(&mut self, plan: &Run) {
        if plan.answers == AnswerKind::Code {
            self.name_code_once(plan);
        }
        let row = self
            .answers
            .iter()
            .map(|a| (a.seat, a.key.clone()))
            .collect();
        self.trail.push(row);
        self.find_candidates(plan);
    }

    /// Gives equal code in different formatting the key of its first author.
    fn name_code_once(&mut self, plan: &Run) {
        let mut seen: Vec<(String, String)> = Vec::new();
        for answer in &mut self.answers {
            let Some(key) = &mut answer.key else { continue };
            let form = plan.reader.read("code", "", key, || code::normal(key));
            match seen.iter().find(|(known, _)| *known == form) {
                Some((_, first)) => *key = first.clone(),
                None => seen.push((form, key.clone())),
            }
        }
    }

    /// Recomputes the candidates.
    pub(super) fn find_candidates(&mut self, plan: &Run) {
        self.candidates = candidates(&self.answers, &self.same, plan);
    }

    /// Merges candidates that mean the same. `groups` are indexes of candidates; the first of each gives the name.
    pub(super) fn merge(&mut self, plan: &Run, groups: &[Vec<usize>]) {
        self.same.clear();
        for group in groups.iter().filter(|g| g.len() > 1) {
            let given = group.iter().flat_map(|c| &self.candidates[*c].given);
            let given: Vec<(usize, u32)> = given.copied().collect();
            let name = self.candidates[group[0]].name.clone();
            for answer in &mut self.answers {
                if answer.key.is_some() && given.contains(&(answer.seat, answer.sample)) {
                    answer.key = Some(name.clone());
                }
            }
            self.same.push(given);
        }
        self.find_candidates(plan);
    }

    /// Returns the candidate that a member's own answer supports.
    pub fn stand_of(&self, seat: usize) -> Option<usize> {
        self.candidates
            .iter()
            .position(|c| c.authors.contains(&seat))
    }

    /// Returns the winner of the count.
    pub fn winner(&self) -> Option<&Candidate> {
        let at = self.counted.as_ref()?.winner?;
        self.candidates.get(at)
    }

    /// Returns whether there are at least two comparable answers and all are the same.
    pub fn agreed(&self, kind: &AnswerKind) -> bool {
        let voting = self.answers.iter().filter(|a| a.key.is_some()).count();
        let open = matches!(kind, AnswerKind::Text) && self.answers.len() >= 2;
        let keyed = kind.is_keyed() && voting >= 2 && voting == self.answers.len();
        self.candidates.len() == 1 && (keyed || open)
    }

    /// Returns whether two answers are the same.
    pub fn two_agree(&self) -> bool {
        self.candidates.iter().any(|c| c.authors.len() >= 2)
    }

    /// Returns whether anything here is new compared with the previous pass.
    pub fn has_news(&self, before: &Board) -> bool {
        self.candidates.iter().any(|c| {
            before
                .candidates
                .iter()
                .all(|b| b.name != c.name && similarity(&b.text, &c.text) < SAME)
        })
    }
}

/// Groups equal answers, in the order of their first authors.
fn candidates(answers: &[Answer], same: &[Vec<(usize, u32)>], plan: &Run) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    // Open answers with the same text are one candidate, named after the first author.
    let mut open: Vec<(String, (usize, u32), String)> = Vec::new();
    let alike = |a: &(usize, u32), b: &(usize, u32)| {
        same.iter()
            .any(|group| group.contains(a) && group.contains(b))
    };
    let has_keys = answers.iter().any(|a| a.key.is_some());
    for answer in answers {
        let name = match &answer.key {
            Some(key) => key.clone(),
            None if has_keys => continue,
            None if plan.answers.is_keyed() => continue,
            None if plan.reading == 0 => own_name(answer, plan),
            None => {
                let text = &answer.text;
                let key = plan.reader.read("words", "", text, || sameness::key(text));
                let given = (answer.seat, answer.sample);
                let found = open
                    .iter()
                    .find(|(words, first, _)| *words == key || alike(first, &given));
                match found {
                    Some((.., name)) => name.clone(),
                    None => {
                        let name = own_name(answer, plan);
                        open.push((key, given, name.clone()));
                        name
                    }
                }
            }
        };
        match found.iter_mut().find(|c| c.name == name) {
            Some(candidate) => {
                if !candidate.authors.contains(&answer.seat) {
                    candidate.authors.push(answer.seat);
                }
                candidate.messages.extend(answer.message);
                candidate.given.push((answer.seat, answer.sample));
            }
            None => found.push(Candidate {
                name,
                text: answer.text.clone(),
                authors: vec![answer.seat],
                messages: answer.message.into_iter().collect(),
                given: vec![(answer.seat, answer.sample)],
            }),
        }
    }
    found
}

/// Names an open answer after its author.
fn own_name(answer: &Answer, plan: &Plan) -> String {
    let seat = plan
        .seats
        .get(answer.seat)
        .map(|s| s.name().to_string())
        .unwrap_or_default();
    match answer.sample {
        0 => format!("the answer of {seat}"),
        n => format!("answer {} of {seat}", n + 1),
    }
}

/// Returns the JSON object in a reply that has one of these fields, and a note if it was not bare JSON.
pub(super) fn object_with(
    plan: &Run,
    text: &str,
    fields: &[&str],
) -> Option<(Value, Option<String>)> {
    if plan.reading == 0 {
        let among = "among other words".to_owned();
        return object_in(text).map(|(value, strict)| (value, (!strict).then_some(among)));
    }
    let fits = |value: &Value| fields.iter().any(|f| kd_reading::field(value, f).is_some());
    let bare = serde_json::from_str::<Value>(text).ok();
    // If the whole text is the object, nothing else needs recording.
    let found = plan.reader.read("object", &fields.join(","), text, || {
        let (value, step) = kd_reading::object(text, fits).ok()?;
        Some((Some(value).filter(|v| bare.as_ref() != Some(v)), step))
    });
    let (value, step) = found?;
    Some((lowered(value.or(bare)?, fields), note(step)))
}

/// Describes how a reply was read, for the record; `None` if it is the requested JSON.
pub fn note(step: Step) -> Option<String> {
    (step != Step::Exact).then(|| format!("read as: {}", step.words()))
}

/// Renames the known fields of an object to the requested names, ignoring case.
fn lowered(value: Value, fields: &[&str]) -> Value {
    let mut out = value.clone();
    if let Some(object) = out.as_object_mut() {
        for name in fields.iter().chain(&["reason", "confidence"]) {
            if !object.contains_key(*name)
                && let Some(found) = kd_reading::field(&value, name)
            {
                object.insert((*name).to_owned(), found.clone());
            }
        }
    }
    out
}

/// Returns the JSON object in a reply by the rules of records without a reading version: the whole reply, or the part
/// between the first and the last brace. The flag is `false` for the latter.
pub fn object_in(text: &str) -> Option<(Value, bool)> {
    let bare = text.trim();
    if let Ok(value @ Value::Object(_)) = serde_json::from_str(bare) {
        return Some((value, true));
    }
    let (from, to) = (bare.find('{')?, bare.rfind('}')?);
    match serde_json::from_str(bare.get(from..=to)?) {
        Ok(value @ Value::Object(_)) => Some((value, false)),
        _ => None,
    }
}
