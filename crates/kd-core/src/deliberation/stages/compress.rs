//! Compress: a member summarizes a pass in three to five points for the next one. If that fails, sentences are
//! extracted from the answers.

use super::{Asking, Reply, Stage, StageInput, as_it_came, no_end, words_of};
use crate::deliberation::blind;
use crate::deliberation::board::{Board, object_with};
use crate::deliberation::fact::Fact;
use crate::deliberation::labels::Labels;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use crate::memory::{Line, sentences};
use crate::roles::Duty;
use serde_json::{Value, json};

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "compress",
    title: "summing up for the next pass",
    purpose: Purpose::Compress,
    spoken: false,
    seats: |plan, board| match board.answers.is_empty() {
        true => Vec::new(),
        false => {
            let moderators = plan.with(Duty::Moderate);
            moderators.into_iter().chain(plan.chair()).take(1).collect()
        }
    },
    ask,
    read,
    end: no_end,
    body: as_it_came,
};

/// Maximum points of a summary.
const POINTS_MAX: usize = 5;

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let items: Vec<usize> = (0..input.board.answers.len()).collect();
    let texts: Vec<String> = input
        .board
        .answers
        .iter()
        .map(|a| blind::anonymous(input.plan, &a.text))
        .collect();
    let names = super::labels(items.len());
    Some(Asking {
        material: format!(
            "{}\n\n{}",
            input.question(),
            input.fenced(STAGE.name, &texts)
        ),
        task: format!(
            "Summarize this council deliberation in 3 to {POINTS_MAX} points: the main consensus, the key disagreements, the unresolved questions. Reply with JSON: \"points\", each with \"text\" and \"from\" (the labels it rests on)."
        ),
        schema: Some(
            json!({"type": "object", "properties": {"points": {"type": "array", "minItems": 1, "maxItems": POINTS_MAX,
            "items": {"type": "object", "properties": {
                "text": {"type": "string", "maxLength": 240},
                "from": {"type": "array", "items": {"type": "string", "enum": names}, "minItems": 1, "maxItems": names.len()},
            }, "required": ["text", "from"], "additionalProperties": false}}},
            "required": ["points"], "additionalProperties": false}),
        ),
        items,
        tokens: None,
    })
}

fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    let points = object_with(plan, reply.text, &["points"])
        .and_then(|(value, _)| value.get("points")?.as_array().cloned())
        .unwrap_or_default();
    let authors: Vec<usize> = reply
        .items
        .iter()
        .filter_map(|at| Some(board.answers.get(*at)?.seat))
        .collect();
    let lines: Vec<Line> = points
        .iter()
        .filter_map(|point| {
            let text = Labels::of_authors(plan, &authors, &words_of(point, "text"));
            let from = point.get("from").and_then(Value::as_array);
            let messages: Vec<u32> = from
                .into_iter()
                .flatten()
                .filter_map(|l| blind::place_of(l.as_str()?, reply.items.len()))
                .filter_map(|place| board.answers.get(reply.items[place])?.message)
                .collect();
            // A point without a source message is not kept.
            (!text.is_empty() && !messages.is_empty()).then(|| Line::new(&text, messages))
        })
        .take(POINTS_MAX)
        .collect();
    if lines.is_empty() {
        return Vec::new();
    }
    vec![Fact::Remembered {
        lines,
        by: Some(plan.seats[reply.seat].name().clone()),
    }]
}

/// Extracts a summary without a member: the first sentence of each answer.
pub(in crate::deliberation) fn extract(board: &Board) -> Vec<Line> {
    board
        .answers
        .iter()
        .flat_map(|a| {
            sentences(&a.text, 1)
                .into_iter()
                .map(|s| Line::new(&s, a.message))
        })
        .take(POINTS_MAX)
        .collect()
}
