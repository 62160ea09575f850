//! Arbitrate: an arbiter chooses among the tied if weights and rankings do not break the tie.

use super::ballot;
use super::vote::reason_in;
use super::{Asking, Reply, Stage, StageInput, as_it_came, labels, no_end};
use crate::deliberation::blind;
use crate::deliberation::board::{Board, object_with};
use crate::deliberation::fact::Fact;
use crate::deliberation::plan::Plan;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use crate::roles::Duty;
use kd_vote::TieStep;
use serde_json::json;

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "arbitrate",
    title: "the arbiter breaks the tie",
    purpose: Purpose::Arbitrate,
    spoken: false,
    seats,
    ask,
    read,
    end: no_end,
    body: as_it_came,
};

/// Returns the tied candidates if only a lot would decide between them.
fn tied(board: &Board) -> Vec<usize> {
    match &board.counted {
        Some(count) if board.untied.as_ref().is_some_and(TieStep::is_lot) => count.winners.clone(),
        _ => Vec::new(),
    }
}

fn seats(plan: &Plan, board: &Board) -> Vec<usize> {
    if tied(board).is_empty() {
        return Vec::new();
    }
    plan.with(Duty::Arbitrate).into_iter().take(1).collect()
}

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let items = input.deal(STAGE.name, &tied(input.board));
    let texts: Vec<String> = items
        .iter()
        .map(|c| blind::anonymous(input.plan, &input.board.candidates[*c].text))
        .collect();
    let names = labels(items.len());
    Some(Asking {
        material: format!("{}\n\n{}", input.question(), input.fenced(STAGE.name, &texts)),
        task: "The vote is tied between these answers. Choose one. Reply with JSON: \"reason\" (one sentence), \"choice\" (a label).".into(),
        schema: Some(json!({"type": "object", "properties": {
            "reason": {"type": "string", "maxLength": 200},
            "choice": {"type": "string", "enum": names},
        }, "required": ["reason", "choice"], "additionalProperties": false})),
        items,
        tokens: None,
    })
}

fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    let said = object_with(plan, reply.text, &["choice"]);
    board.arbiter = match plan.reading {
        0 => {
            let label = said.as_ref().and_then(|(v, _)| v.get("choice")?.as_str());
            label
                .and_then(|l| blind::place_of(l, reply.items.len()))
                .map(|place| reply.items[place])
        }
        _ => ballot::chosen(board, plan, reply).ok().map(|(at, _)| at),
    };
    let text = match board.arbiter {
        Some(c) => format!(
            "chooses {}: {}",
            board.candidates[c].name,
            said.map(|(v, _)| reason_in(board, plan, reply, &v))
                .unwrap_or_default()
        ),
        None => "its choice cannot be read; the lot decides".into(),
    };
    vec![Fact::Noted {
        seat: Some(plan.seats[reply.seat].name().clone()),
        stage: STAGE.name.into(),
        text,
    }]
}
