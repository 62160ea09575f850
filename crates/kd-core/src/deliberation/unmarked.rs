//! Builds the mark of a deliberation's verdict.

use super::{protocols, report::Report};
use crate::Timestamp;
use kd_eval::marks::{By, Mark, Member, VERSION};
use kd_eval::names::legible;
use std::borrow::Cow;

/// Returns the model of a member as used in marks: with its provider if the provider has a configured address; the
/// backend, if it serves only one model. Invisible characters are escaped.
pub fn model_of(member: &crate::Member) -> Cow<'_, str> {
    let model = member.served_as.as_deref().or(member.model.as_deref());
    legible(model.unwrap_or(&member.backend))
}

/// Returns the last verdict of a thread, with a credit of 0 until the user marks it. `None` without a verdict, or
/// if nothing was decided and nothing can be right or wrong.
pub fn unmarked(report: &Report, project: &str) -> Option<Mark> {
    let (plan, verdict) = (report.plan.as_ref()?, report.verdict.as_ref()?);
    let counted = report
        .counts
        .iter()
        .rev()
        .find(|c| c.depth == 0 && c.pass == verdict.best_pass && c.winner.is_some())
        // A lot decides nothing: whether it is right is luck.
        .filter(|c| !c.is_drawn())?;
    let winner = counted.winner?;
    let answers = report.answer_kind()?;
    let is_keyed = answers.is_keyed();
    let name = |at: usize| counted.candidates.get(at).cloned().filter(|_| is_keyed);
    let (mut members, mut unasked) = (Vec::new(), Vec::new());
    for seat in &plan.seats {
        let first = counted.firsts.iter().find(|f| f.seat == *seat.name());
        let has_answer = first.is_some_and(|first| !first.is_silent());
        // The others had decided, and that tells nothing about it.
        let is_needless =
            report.stopped_early.contains(seat.name()) || report.spared.contains(seat.name());
        if is_needless && !has_answer {
            unasked.push(model_of(&seat.member).into_owned());
            continue;
        }
        let Some(first) = first else { continue };
        members.push(Member {
            name: seat.member.name.to_string(),
            model: model_of(&seat.member).into_owned(),
            key: first.candidate.and_then(name),
            backs: first.backs(winner),
            confidence: first.confidence,
        });
    }
    Some(Mark {
        v: VERSION,
        project: project.to_owned(),
        thread: report.thread.as_ref()?.to_string(),
        message: verdict.message?,
        at: Timestamp::UNIX_EPOCH,
        by: By::User,
        kind: answers.name().to_owned(),
        protocol: plan.protocol.clone(),
        members,
        unasked,
        stopping: protocols::stopping(plan),
        winner: name(winner),
        credit: 0.0,
        answer: None,
        calls: report.calls,
        usd: verdict.spent.pico_usd as f64 / 1e12,
    })
}
