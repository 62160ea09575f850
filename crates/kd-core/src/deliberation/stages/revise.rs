//! Revise: each member answers again, knowing the other answers. All forms share one rule: keep your answer unless you
//! can quote a false step in it; a change without a named flaw counts as the previous answer.

use super::opinions::{answer_in, body, flaw_in, opiners, put, schema, task};
use super::{Asking, Reply, Stage, StageInput};
use crate::deliberation::blind;
use crate::deliberation::board::Board;
use crate::deliberation::fact::Fact;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use serde_json::json;

/// Each member reads all other answers.
pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "revise",
    title: "answers once more, the others' read",
    ask: |input| asking(input, &shown_answers(input), KEEP),
    ..BASE
};

/// Each member reads the grouped answers with group sizes (ReConcile).
pub(in crate::deliberation) static GROUPED: Stage = Stage {
    name: "round-table",
    title: "round table: grouped answers read",
    ask: |input| asking(input, &shown_groups(input, true), KEEP),
    ..BASE
};

/// Each member reads the set of current solutions, without authors, numbers or reasons.
pub(in crate::deliberation) static IMPROVE: Stage = Stage {
    name: "improve",
    title: "one of the current solutions improved",
    ask: |input| {
        asking(
            input,
            &shown_groups(input, false),
            "Improve one of these solutions, or replace them by a better one.",
        )
    },
    ..BASE
};

/// Each member reads the entire previous layer.
pub(in crate::deliberation) static LAYER: Stage = Stage {
    name: "layer",
    title: "the next layer, the one before read",
    ask: |input| {
        asking(
            input,
            &shown_layer(input),
            "Write the best answer that you can make of these; some of them may be wrong.",
        )
    },
    read: |board, plan, reply| take(board, plan, reply, false),
    ..BASE
};

const BASE: Stage = Stage {
    name: "revise",
    title: "answers once more",
    purpose: Purpose::Revise,
    spoken: true,
    seats: |plan, board| {
        let mut seats = opiners(plan, board);
        seats.retain(|s| board.answers.iter().any(|a| a.seat != *s));
        seats
    },
    ask: |input| asking(input, &shown_answers(input), KEEP),
    read: |board, plan, reply| take(board, plan, reply, true),
    end,
    body,
};

const KEEP: &str = "Keep your own answer unless you can quote a false step in it; agreement of others is no reason. Answer once more; \"flaw\" names the false step in your earlier answer, or \"none\".";

fn asking(input: &StageInput<'_>, shown: &(Vec<usize>, Vec<String>), what: &str) -> Option<Asking> {
    let (items, texts) = shown;
    if texts.is_empty() {
        return None;
    }
    let own = input
        .board
        .answer_of(input.seat)
        .map(|a| {
            format!(
                "\n\nYour own earlier answer:\n{}",
                blind::anonymous(input.plan, &a.text)
            )
        })
        .unwrap_or_default();
    Some(Asking {
        material: format!(
            "{}\n\n{}{own}",
            input.question(),
            input.fenced("revise", texts)
        ),
        task: task(&input.plan.answers, what),
        schema: schema(
            &input.plan.answers,
            &[("flaw", json!({"type": "string", "maxLength": 200}))],
        ),
        items: items.clone(),
        tokens: None,
    })
}

fn shown_answers(input: &StageInput<'_>) -> (Vec<usize>, Vec<String>) {
    let mut others: Vec<usize> = input
        .board
        .answers
        .iter()
        .map(|a| a.seat)
        .filter(|s| *s != input.seat)
        .collect();
    others.dedup();
    let items = input.deal("revise", &others);
    let texts = items
        .iter()
        .filter_map(|s| input.board.answer_of(*s))
        .map(|a| blind::anonymous(input.plan, &a.text))
        .collect();
    (items, texts)
}

fn shown_layer(input: &StageInput<'_>) -> (Vec<usize>, Vec<String>) {
    let mut all: Vec<usize> = input.board.answers.iter().map(|a| a.seat).collect();
    all.dedup();
    let items = input.deal("layer", &all);
    let texts = items
        .iter()
        .filter_map(|s| input.board.answer_of(*s))
        .map(|a| blind::anonymous(input.plan, &a.text))
        .collect();
    (items, texts)
}

fn shown_groups(input: &StageInput<'_>, counted: bool) -> (Vec<usize>, Vec<String>) {
    let all: Vec<usize> = (0..input.board.candidates.len()).collect();
    let dealt = input.deal("groups", &all);
    let texts = dealt
        .iter()
        .map(|c| {
            let candidate = &input.board.candidates[*c];
            let text = blind::anonymous(input.plan, &candidate.text);
            match (counted, input.plan.answers.is_keyed()) {
                (true, _) => format!("Given by {}:\n{text}", candidate.authors.len()),
                // The bare solution, without its reasons.
                (false, true) => blind::hidden(input.plan, &candidate.name),
                (false, false) => text,
            }
        })
        .collect();
    let authors = dealt
        .iter()
        .filter_map(|c| input.board.candidates[*c].authors.first().copied())
        .collect();
    (authors, texts)
}

/// Adds a later answer to the board. With `justified`, a change without a named flaw counts as the previous answer.
pub(super) fn take(board: &mut Board, plan: &Run, reply: &Reply<'_>, justified: bool) -> Vec<Fact> {
    let (mut key, confidence, mut notice) = answer_in(plan, reply);
    let earlier = board.answer_of(reply.seat).cloned();
    let mut unjustified = false;
    if let Some(earlier) = &earlier
        && justified
        && earlier.key.is_some()
        && earlier.key != key
        && flaw_in(plan, reply.text).is_none()
    {
        notice = Some(
            "it gave its answer up without naming a flaw in it: it counts as before".to_owned(),
        );
        key.clone_from(&earlier.key);
        unjustified = true;
    }
    put(board, plan, reply, (key, confidence, notice), unjustified)
}

/// Discards ballots on replaced answers.
pub(super) fn end(board: &mut Board, plan: &Run) -> Vec<Fact> {
    board.settle(plan);
    board.ballots.clear();
    board.reviews.clear();
    board.absent.ballots.clear();
    board.absent.reviews.clear();
    board.arbiter = None;
    Vec::new()
}
