//! Argue: each member argues for the answer it finds best and against the strongest other, which it must quote.

use super::opinions::opiners;
use super::revise;
use super::{Asking, Stage, StageInput};
use crate::deliberation::blind;
use crate::event::Purpose;

pub(in crate::deliberation) static STAGE: Stage = Stage {
    name: "argue",
    title: "the leading answers argued",
    purpose: Purpose::Revise,
    spoken: true,
    seats: |plan, board| {
        let mut seats = opiners(plan, board);
        seats.retain(|s| board.answers.iter().any(|a| a.seat != *s));
        seats
    },
    ask,
    read: |board, plan, reply| revise::take(board, plan, reply, true),
    end: revise::end,
    body: super::opinions::body,
};

fn ask(input: &StageInput<'_>) -> Option<Asking> {
    let asking = (revise::STAGE.ask)(input)?;
    let side = match input.board.stand_of(input.seat) {
        Some(at) => {
            let own = blind::clip(&input.board.candidates[at].name, 80);
            if input.plan.answers.is_keyed() {
                format!("You stand for {own}. ")
            } else {
                "You stand for your earlier answer. ".to_owned()
            }
        }
        None => String::new(),
    };
    Some(Asking {
        task: format!(
            "{side}Quote the weakest step of the strongest other answer and say why it fails; then: {}",
            asking.task
        ),
        ..asking
    })
}
