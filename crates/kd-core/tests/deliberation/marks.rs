//! The mark of a verdict: members that were not asked belong to the council all the same.

use super::room::{Answer, plan, run, seat};
use kd_core::deliberation::{Plan, unmarked};
use kd_core::roles::Duty;
use kd_core::view::View;
use kd_core::{FailureKind, ThreadId};
use kd_eval::marks::Mark;

/// Plays a council of ann, bob and cyd, and returns the mark of its verdict.
fn mark_of(protocol: &str, says: impl Fn(&str) -> Answer) -> Mark {
    let mut plan: Plan = plan();
    plan.protocol = protocol.into();
    plan.seats.retain(|seat| seat.has(Duty::Opine));
    for seat in &mut plan.seats {
        seat.member.model = Some(format!("m-{}", seat.agent));
    }
    plan.seats.push(seat("eve", "synthesizer"));
    let run = run(&plan, |asked| says(&asked.seat));
    let mut report = View::of(&run.records).report;
    report.thread = Some(ThreadId("council-1".into()));
    unmarked(&report, "p-1").expect("a verdict")
}

fn yes() -> Answer {
    Answer::Text(r#"{"reason": "r", "answer": "yes", "confidence": 0.9}"#.into())
}

#[test]
fn a_council_of_which_some_were_not_asked_is_the_same_council() {
    let names = |mark: &Mark| -> Vec<String> {
        mark.members
            .iter()
            .map(|member| member.name.clone())
            .collect()
    };
    let early = mark_of("certain-enough", |_| yes());
    assert_eq!(names(&early), ["ann", "bob"], "two of three decide");
    assert_eq!(early.unasked, ["m-cyd"]);
    assert_eq!(early.stopping.as_deref(), Some("settled"));
    assert_eq!(mark_of("vote", |_| yes()).stopping, None);
    let whole = mark_of("certain-enough", |seat| match seat {
        "bob" => Answer::Text(r#"{"reason": "r", "answer": "no", "confidence": 0.9}"#.into()),
        _ => yes(),
    });
    assert_eq!(names(&whole), ["ann", "bob", "cyd"]);
    assert!(whole.unasked.is_empty());
    assert_eq!(early.models(), whole.models());
    // A member that was asked and failed was asked.
    let failed = mark_of("certain-enough", |seat| match seat {
        "ann" => Answer::Fail(FailureKind::Auth),
        _ => yes(),
    });
    assert_eq!(names(&failed), ["ann", "bob", "cyd"], "{failed:?}");
    assert_eq!(failed.members[0].key, None);
}
