//! Rebut: the owner fixes the answer or refutes a defect; the old and the new answer are both candidates.

use super::opinions::{body, schema, task};
use super::revise;
use super::{Asking, Stage, StageInput};
use crate::deliberation::blind;
use crate::deliberation::board::{Board, Candidate};
use crate::deliberation::fact::Fact;
use crate::deliberation::reader::Run;
use crate::event::Purpose;

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "rebut",
    title: "the owner mends or rebuts",
    purpose: Purpose::Revise,
    spoken: true,
    seats: |_, board| match (board.notes.is_empty(), board.answers.first()) {
        (false, Some(owner)) => vec![owner.seat],
        _ => Vec::new(),
    },
    ask,
    read: |board, plan, reply| revise::take(board, plan, reply, false),
    end,
    body,
};

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let own = input.board.answer_of(input.seat)?;
    let items = [
        (
            "Your answer".to_owned(),
            blind::anonymous(input.plan, &own.text),
        ),
        (
            "Alleged defects".to_owned(),
            blind::anonymous(input.plan, &input.board.notes.join("\n")),
        ),
    ];
    Some(Asking {
        material: format!(
            "{}\n\n{}",
            input.question(),
            input.fenced_as(STAGE.name, &items)
        ),
        task: task(
            &input.plan.answers,
            "Mend each defect, or say with evidence why it is none. Answer the question once more, whole.",
        ),
        schema: schema(&input.plan.answers, &[]),
        items: Vec::new(),
        tokens: None,
    })
}

fn end(board: &mut Board, plan: &Run) -> Vec<Fact> {
    let original = board.candidates.first().cloned();
    board.settle(plan);
    if let (Some(original), Some(mended)) = (original, board.candidates.first_mut())
        && original.text != mended.text
    {
        let name = |what: &str, c: &Candidate| match plan.answers.is_keyed() {
            true => format!("{} ({what})", c.name),
            false => format!("the {what} answer"),
        };
        mended.name = name("mended", mended);
        board.candidates.push(Candidate {
            name: name("original", &original),
            ..original
        });
    }
    Vec::new()
}
