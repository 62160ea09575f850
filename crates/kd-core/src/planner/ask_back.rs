//! When a council asks back: learned from the user's marks, so that a verdict that a promise covers asks nothing.

use super::Brief;
use crate::deliberation::{AskBack, Plan, model_of, protocols};
use kd_eval::marks::{Basis, By, Mark, Member, VERSION};

/// Returns when a plan asks the user back.
pub(super) fn rule(plan: &Plan, brief: &Brief<'_>) -> AskBack {
    let member = |seat: usize| {
        let member = &plan.seats[seat].member;
        Member {
            name: member.name.to_string(),
            model: model_of(member).into_owned(),
            key: None,
            backs: true,
            confidence: None,
        }
    };
    let verdict = Mark {
        v: VERSION,
        project: String::new(),
        thread: String::new(),
        message: 0,
        at: jiff::Timestamp::UNIX_EPOCH,
        by: By::User,
        kind: plan
            .guess
            .as_ref()
            .unwrap_or(&plan.answers)
            .name()
            .to_owned(),
        protocol: plan.protocol.clone(),
        members: plan.at_the_table().into_iter().map(member).collect(),
        unasked: Vec::new(),
        stopping: protocols::stopping(plan),
        winner: None,
        credit: 0.0,
        answer: None,
        calls: 0,
        usd: 0.0,
    };
    let basis = Basis::of(&brief.marks, &verdict, brief.required);
    let weight = |seat: &crate::deliberation::Seat| basis.weight(&model_of(&seat.member));
    AskBack {
        weights: plan.seats.iter().map(weight).collect(),
        from: basis.edge(),
    }
}
