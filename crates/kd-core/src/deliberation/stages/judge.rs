//! Judge, for records made before the stage [`sameness`](super::sameness): a judge decides which answers mean the same.
//! The result is made symmetric and transitive; unmentioned answers stay separate.

use super::{Asking, Reply, Stage, StageInput, as_it_came, labels, no_end};
use crate::deliberation::answer::AnswerKind;
use crate::deliberation::blind;
use crate::deliberation::board::{Board, object_with};
use crate::deliberation::fact::Fact;
use crate::deliberation::plan::Plan;
use crate::deliberation::reader::Run;
use crate::event::Purpose;
use crate::roles::Duty;
use serde_json::{Value, json};

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "judge",
    title: "which answers mean the same",
    purpose: Purpose::Arbitrate,
    spoken: false,
    seats,
    ask,
    read,
    end: no_end,
    body: as_it_came,
};

fn seats(plan: &Plan, board: &Board) -> Vec<usize> {
    // Newer plans compare in the stage `sameness`.
    if plan.judged || !matches!(plan.answers, AnswerKind::Judged) || board.candidates.len() < 2 {
        return Vec::new();
    }
    let judges = plan.with(Duty::Arbitrate);
    judges.into_iter().chain(plan.chair()).take(1).collect()
}

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let items = input.deal(
        STAGE.name,
        &(0..input.board.candidates.len()).collect::<Vec<_>>(),
    );
    let texts: Vec<String> = items
        .iter()
        .map(|c| input.board.candidates[*c].name.clone())
        .collect();
    let names = labels(items.len());
    let one = json!({"type": "array", "items": {"type": "string", "enum": names}, "minItems": 1, "maxItems": names.len()});
    Some(Asking {
        material: format!("{}\n\n{}", input.question(), input.fenced(STAGE.name, &texts)),
        task: "Which of these answers mean the same? Reply with JSON: \"groups\", lists of labels that mean the same.".into(),
        schema: Some(json!({"type": "object", "properties": {"groups": {"type": "array", "items": one, "minItems": 1, "maxItems": names.len()}},
            "required": ["groups"], "additionalProperties": false})),
        items,
        tokens: None,
    })
}

fn read(board: &mut Board, plan: &Run, reply: &Reply<'_>) -> Vec<Fact> {
    let count = board.candidates.len();
    // Union-find; the root of a group is its first candidate.
    let mut root: Vec<usize> = (0..count).collect();
    let groups = object_with(plan, reply.text, &["groups"])
        .and_then(|(v, _)| v.get("groups")?.as_array().cloned());
    for group in groups.iter().flatten().filter_map(Value::as_array) {
        let members: Vec<usize> = group
            .iter()
            .filter_map(|l| blind::place_of(l.as_str()?, reply.items.len()))
            .map(|place| reply.items[place])
            .collect();
        for pair in members.windows(2) {
            let (a, b) = (root[pair[0]], root[pair[1]]);
            let (keep, drop) = (a.min(b), a.max(b));
            root.iter_mut()
                .filter(|r| **r == drop)
                .for_each(|r| *r = keep);
        }
    }
    let names: Vec<String> = board.candidates.iter().map(|c| c.name.clone()).collect();
    for answer in &mut board.answers {
        let at = names.iter().position(|n| Some(n) == answer.key.as_ref());
        if let Some(at) = at {
            answer.key = Some(names[root[at]].clone());
        }
    }
    let merged = (0..count).filter(|c| root[*c] != *c).count();
    board.find_candidates(plan);
    vec![Fact::Noted {
        seat: Some(plan.seats[reply.seat].name().clone()),
        stage: STAGE.name.into(),
        text: match groups {
            Some(_) => format!("{merged} of {count} answers mean the same as another"),
            None => "its groups cannot be read: answers are the same where their words are".into(),
        },
    }]
}
