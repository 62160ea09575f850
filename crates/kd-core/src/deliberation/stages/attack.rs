//! Attack: all other members list falsifiable defects of the answer.

use super::{Asking, Reply, Stage, StageInput, as_it_came, no_end};
use crate::clean::clean_line;
use crate::deliberation::blind;
use crate::deliberation::board::{Board, object_with};
use crate::deliberation::fact::Fact;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use serde_json::{Value, json};

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "attack",
    title: "defects, each to be shown false or mended",
    purpose: Purpose::Review,
    spoken: false,
    seats: |_, board| match board.answers.first() {
        Some(owner) => board
            .seats
            .iter()
            .copied()
            .filter(|s| *s != owner.seat)
            .collect(),
        None => Vec::new(),
    },
    ask,
    read,
    end: no_end,
    body: as_it_came,
};

/// Maximum number of defects per attacker.
const DEFECTS_MAX: usize = 3;

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let answer = input.board.answers.first()?;
    let text = blind::anonymous(input.plan, &answer.text);
    Some(Asking {
        material: format!(
            "{}\n\n{}",
            input.question(),
            input.fenced(STAGE.name, &[text])
        ),
        task: format!(
            "Attack answer A. Reply with JSON: \"defects\", at most {DEFECTS_MAX} statements about it that can be shown true or false; an empty list if it has none."
        ),
        schema: Some(
            json!({"type": "object", "properties": {"defects": {"type": "array", "maxItems": DEFECTS_MAX,
            "items": {"type": "string", "maxLength": 200}}}, "required": ["defects"], "additionalProperties": false}),
        ),
        items: vec![answer.seat],
        tokens: None,
    })
}

fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    let listed = object_with(plan, reply.text, &["defects"])
        .and_then(|(v, _)| v.get("defects")?.as_array().cloned());
    let defects: Vec<String> = listed
        .iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|d| clean_line(d, 200))
        .filter(|d| !d.is_empty())
        .take(DEFECTS_MAX)
        .collect();
    board.notes.extend(defects.iter().cloned());
    board.notes.sort();
    board.notes.dedup();
    vec![Fact::Noted {
        seat: Some(plan.seats[reply.seat].name().clone()),
        stage: STAGE.name.into(),
        text: match (listed, defects.is_empty()) {
            (None, _) => "its list cannot be read and counts for nothing".into(),
            (Some(_), true) => "finds no defect".into(),
            (Some(_), false) => defects.join("; "),
        },
    }]
}
