//! Ask back: if the members disagree, a cheap member words the one question to the user whose answer would decide. Its
//! text is data: one line of limited length, or none.

use super::sameness::judges;
use super::{Asking, Reply, Stage, StageInput, as_it_came, no_end};
use crate::clean::clean_line;
use crate::deliberation::blind;
use crate::deliberation::board::{Board, object_with};
use crate::deliberation::fact::Fact;
use crate::deliberation::plan::Plan;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use kd_eval::marks::score;
use serde_json::{Value, json};

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "ask-back",
    title: "the question whose answer would decide",
    purpose: Purpose::Arbitrate,
    spoken: false,
    seats,
    ask,
    read,
    end: no_end,
    body: as_it_came,
};

/// Maximum answers in the prompt, and bytes of one.
const ANSWERS_MAX: usize = 6;
const ANSWER_BYTES_MAX: usize = 1_500;
/// Maximum claims in the prompt.
const CLAIMS_MAX: usize = 8;
/// Maximum characters of the question.
const QUESTION_CHARS_MAX: usize = 240;
/// Maximum tokens of the reply.
const TOKENS: u32 = 200;

/// Returns whether the members disagree, so that no promise covers the verdict.
fn is_open(plan: &Plan, board: &Board) -> bool {
    let (Some(rule), Some(counted)) = (&plan.ask_back, &board.counted) else {
        return false;
    };
    if board.depth > 0 || counted.voters < 2 || board.candidates.len() < 2 {
        return false;
    }
    let Some(winner) = counted.winner else {
        return true;
    };
    let answers: Vec<Option<usize>> = counted.firsts.iter().map(|f| f.candidate).collect();
    let weight = |name| {
        let at = plan.seats.iter().position(|seat| seat.name() == name);
        let weight = at.and_then(|at| rule.weights.get(at));
        weight.copied().unwrap_or(1.0)
    };
    let weights: Vec<f64> = counted.firsts.iter().map(|f| weight(&f.seat)).collect();
    let lead = score(&answers, &weights, winner);
    let is_promised = rule.from.zip(lead).is_some_and(|(from, lead)| lead >= from);
    let is_contested = answers
        .iter()
        .flatten()
        .any(|candidate| *candidate != winner);
    is_contested && !is_promised
}

fn seats(plan: &Plan, board: &Board) -> Vec<usize> {
    match is_open(plan, board) {
        true => judges(plan).into_iter().take(1).collect(),
        false => Vec::new(),
    }
}

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let (plan, board) = (input.plan, input.board);
    let mut contested: Vec<usize> = (0..board.candidates.len()).collect();
    contested.truncate(ANSWERS_MAX);
    let items = input.deal(STAGE.name, &contested);
    let mut texts: Vec<(String, String)> = Vec::new();
    for (place, candidate) in items.iter().map(|c| &board.candidates[*c]).enumerate() {
        let text = blind::clip(&blind::anonymous(plan, &candidate.text), ANSWER_BYTES_MAX);
        texts.push((format!("Answer {}", blind::label(place)), text));
    }
    let differs = board.readings.iter().flat_map(|reading| &reading.claims);
    let claims: Vec<String> = differs
        .filter(|claim| !claim.denies.is_empty())
        .map(|claim| blind::anonymous(plan, &claim.claim))
        .take(CLAIMS_MAX)
        .collect();
    if !claims.is_empty() {
        texts.push(("Claims on which they differ".to_owned(), claims.join("\n")));
    }
    Some(Asking {
        material: format!("{}\n\n{}", input.question(), input.fenced_as(STAGE.name, &texts)),
        task: "The answers differ. Find the one fact that the user knows and the answers had to assume, and whose value would decide between them. Ask the user for it: one short question in the language of the question, that does not ask which answer is right. If there is no such fact, give an empty text. Reply with JSON: \"question\".".into(),
        schema: Some(json!({"type": "object", "properties": {
            "question": {"type": "string", "maxLength": QUESTION_CHARS_MAX},
        }, "required": ["question"], "additionalProperties": false})),
        items,
        tokens: Some(TOKENS),
    })
}

fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    let said = object_with(plan, reply.text, &["question"]);
    let text = said.and_then(|(value, _)| {
        let text = value.get("question").and_then(Value::as_str)?;
        Some(clean_line(text.trim(), QUESTION_CHARS_MAX))
    });
    // Anything else is not a question, and is not shown to the user as one.
    let question = text.filter(|text| text.ends_with(['?', '？', '؟']));
    let Some(question) = question else {
        return Vec::new();
    };
    let by = plan.seats[reply.seat].name().clone();
    board.asks_back = Some((by.clone(), question.clone()));
    vec![Fact::AskedBack { question, by }]
}
