//! What is on the table of one pass: answers, reviews, ballots, candidates and the count.

use super::answer::AnswerKind;
use super::fact::Counted;
use super::plan::Plan;
use super::reader::Run;
use crate::memory::similarity;
use crate::reading::{self, Step, code, sameness};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The table of one pass, of the council or of a sub-council.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    /// What is asked here: the king's question, or an issue.
    pub question: String,
    /// How deep in sub-councils; 0 is the council itself.
    pub depth: u32,
    /// The pass, from 1.
    pub pass: u32,
    /// Who takes part: places in the plan.
    pub seats: Vec<usize>,
    /// Rounds made after the first.
    pub round: u32,
    /// What this pass starts from, as members read it; empty in the first.
    pub context: String,
    /// The newest answer of each seat, or of each sample.
    pub answers: Vec<Answer>,
    /// What each answer stood for, round by round.
    pub trail: Vec<Vec<(usize, Option<String>)>>,
    /// Reviews.
    pub reviews: Vec<Review>,
    /// Ballots cast in the vote.
    pub ballots: Vec<Cast>,
    /// What stands for election.
    pub candidates: Vec<Candidate>,
    /// The count.
    pub counted: Option<Counted>,
    /// Whom an arbiter chose among the tied.
    pub arbiter: Option<usize>,
    /// Defects that an attacker found, and what became of them.
    pub notes: Vec<String>,
    /// What was read about which answers mean the same, until it is compared.
    pub readings: Vec<Grouped>,
    /// Answers that mean the same in other words: of which seats, and which of several.
    pub same: Vec<Vec<(usize, u32)>>,
    /// Numbers fed back between rounds of estimates.
    pub feedback: String,
    /// Who was to answer, to vote, to review, and did not.
    pub absent: Absent,
}

/// Who was to speak in this pass and did not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Absent {
    /// To answer.
    pub answers: Vec<usize>,
    /// To vote.
    pub ballots: Vec<usize>,
    /// To review.
    pub reviews: Vec<usize>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Whose.
    pub seat: usize,
    /// Which of several by the same seat.
    pub sample: u32,
    /// The words.
    pub text: String,
    /// The reply that the answer is read from, as it came.
    pub reply: String,
    /// What it is compared by; none for open text, and for an abstention.
    pub key: Option<String>,
    /// How sure it says it is.
    pub confidence: Option<f64>,
    /// Its message.
    pub message: Option<u32>,
    /// A later answer that gave up the earlier one without naming a flaw in it.
    pub unjustified: bool,
}

/// What one seat thinks of the others' answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// Whose review.
    pub seat: usize,
    /// Ratings from 1 to 10, and weaknesses, by the place of the answer's author.
    pub ratings: Vec<(usize, u8, String)>,
    /// Authors from best to worst.
    pub ranking: Vec<usize>,
}

/// A ballot as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    /// Whose.
    pub seat: usize,
    /// What it marks; why it marks nothing.
    pub mark: Result<Marked, String>,
    /// How sure it says it is.
    pub confidence: Option<f64>,
    /// Its reason.
    pub reason: String,
    /// The share of the votes that it expects each candidate to get, where the rule asks for it.
    pub foretold: Option<Vec<f64>>,
}

/// What a ballot marks. Candidates are places in [`Board::candidates`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Marked {
    /// One.
    Choice(usize),
    /// From best to worst.
    Ranking(Vec<usize>),
    /// Points, in the order of the candidates.
    Scores(Vec<Option<f64>>),
    /// Every one that would do.
    Approvals(Vec<usize>),
    /// A judge's choice in each order.
    Orders(Vec<Option<usize>>),
}

/// What stands for election: answers that mean the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name in the count: the key, or the beginning of the words with its author.
    pub name: String,
    /// The words of the first who said it.
    pub text: String,
    /// Who said it.
    pub authors: Vec<usize>,
    /// Their messages.
    pub messages: Vec<u32>,
    /// The answers: whose, and which of several.
    pub given: Vec<(usize, u32)>,
}

/// What one judge says of the candidates: which mean the same, and what they claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouped {
    /// Whose reading.
    pub seat: usize,
    /// Groups of candidates; why they do not count.
    pub groups: Result<Vec<Vec<usize>>, String>,
    /// Claims.
    pub claims: Vec<ReadClaim>,
    /// What no answer covers.
    pub missing: Vec<String>,
}

/// A claim, with the candidates that state it and those that contradict it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadClaim {
    /// The claim.
    pub claim: String,
    /// Who states it.
    pub says: Vec<usize>,
    /// Who contradicts it.
    pub denies: Vec<usize>,
}

/// From this likeness on a text says nothing new.
const SAME: f64 = 0.9;

impl Board {
    /// The answer of a seat.
    pub fn answer_of(&self, seat: usize) -> Option<&Answer> {
        self.answers.iter().find(|a| a.seat == seat)
    }

    /// Takes an answer in, in the place of the seat's earlier one; they stand in the order of the seats, so that it does
    /// not matter who was faster.
    pub fn put(&mut self, answer: Answer) {
        self.answers
            .retain(|a| (a.seat, a.sample) != (answer.seat, answer.sample));
        for group in &mut self.same {
            group.retain(|given| *given != (answer.seat, answer.sample));
        }
        self.answers.push(answer);
        self.answers.sort_by_key(|a| (a.seat, a.sample));
    }

    /// What each answer stands for now becomes a row of the trail, and what stands for election is found anew.
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

    /// Gives the same code in another dress the key of the first who wrote it.
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

    /// Finds anew what stands for election.
    pub(super) fn find_candidates(&mut self, plan: &Run) {
        self.candidates = candidates(&self.answers, &self.same, plan);
    }

    /// Merges candidates that mean the same. `groups` are places of candidates, the first of each gives the name.
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

    /// The candidate that a seat's own answer stands for.
    pub fn stand_of(&self, seat: usize) -> Option<usize> {
        self.candidates
            .iter()
            .position(|c| c.authors.contains(&seat))
    }

    /// The winner of the count.
    pub fn winner(&self) -> Option<&Candidate> {
        let at = self.counted.as_ref()?.winner?;
        self.candidates.get(at)
    }

    /// Whether all answers that can be compared are the same, and there are two at least.
    pub fn agreed(&self, kind: &AnswerKind) -> bool {
        let voting = self.answers.iter().filter(|a| a.key.is_some()).count();
        let open = matches!(kind, AnswerKind::Text) && self.answers.len() >= 2;
        let keyed = kind.is_keyed() && voting >= 2 && voting == self.answers.len();
        self.candidates.len() == 1 && (keyed || open)
    }

    /// Whether two have given the same answer.
    pub fn two_agree(&self) -> bool {
        self.candidates.iter().any(|c| c.authors.len() >= 2)
    }

    /// Whether anything here was not said in the pass before.
    pub fn has_news(&self, before: &Board) -> bool {
        self.candidates.iter().any(|c| {
            before
                .candidates
                .iter()
                .all(|b| b.name != c.name && similarity(&b.text, &c.text) < SAME)
        })
    }
}

/// Classes of equal answers, in the order of their first authors.
fn candidates(answers: &[Answer], same: &[Vec<(usize, u32)>], plan: &Run) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    // Open answers with the same words stand for election once, under the name of the first.
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

/// An open answer is called after its author.
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

/// The JSON object of a reply that has one of these fields, and how it was read where it was not bare JSON.
pub(super) fn object_with(
    plan: &Run,
    text: &str,
    fields: &[&str],
) -> Option<(Value, Option<String>)> {
    if plan.reading == 0 {
        let among = "among other words".to_owned();
        return object_in(text).map(|(value, strict)| (value, (!strict).then_some(among)));
    }
    let fits = |value: &Value| fields.iter().any(|f| reading::field(value, f).is_some());
    let bare = serde_json::from_str::<Value>(text).ok();
    // Where the whole text is the object, the text itself says what was found.
    let found = plan.reader.read("object", &fields.join(","), text, || {
        let (value, step) = reading::object(text, fits).ok()?;
        Some((Some(value).filter(|v| bare.as_ref() != Some(v)), step))
    });
    let (value, step) = found?;
    Some((lowered(value.or(bare)?, fields), note(step)))
}

/// How a reply was read, for the record; `None` where it is the JSON asked for.
pub fn note(step: Step) -> Option<String> {
    (step != Step::Exact).then(|| format!("read as: {}", step.words()))
}

/// An object whose known fields have the names asked for, whatever their case was.
fn lowered(value: Value, fields: &[&str]) -> Value {
    let mut out = value.clone();
    if let Some(object) = out.as_object_mut() {
        for name in fields.iter().chain(&["reason", "confidence"]) {
            if !object.contains_key(*name)
                && let Some(found) = reading::field(&value, name)
            {
                object.insert((*name).to_owned(), found.clone());
            }
        }
    }
    out
}

/// The JSON object in a reply, as records without a version of reading have it: the whole of it, or what stands between the first brace and the last. The second is
/// false if it was that fallback.
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
