//! A deliberation goes on from any record, to the end that it would have had.

use crate::room::{Answer, Asked, good, plan, run, run_found, run_on};
use kd_core::deliberation::plan::{Iteration, Strategy};
use kd_core::deliberation::protocols::PROTOCOLS;
use kd_core::deliberation::{CannotResume, Fact, Plan, resumable, resume};
use kd_core::event::FORMAT;
use kd_core::fork::{Cut, prefix, stages};
use kd_core::usage::Usage;
use kd_core::{Event, FailureKind, Message, Record};

/// Members that disagree, one of which sometimes fails or answers what cannot be read.
fn answers(asked: &Asked) -> Answer {
    let wants = match asked.seat.as_str() {
        "cyd" => "no",
        _ => "yes",
    };
    match (asked.seat.as_str(), asked.stage.as_str()) {
        ("bob", "review") => Answer::Fail(FailureKind::Timeout),
        ("ann", "revise" | "debate" | "rebut") => {
            Answer::Broken("I began to".into(), FailureKind::Timeout)
        }
        ("cyd", "vote") => Answer::Text("Hm.".into()),
        _ => Answer::Used(
            good(asked, wants),
            Usage {
                input_tokens: 20,
                output_tokens: 9,
                ..Usage::default()
            },
        ),
    }
}

fn plans() -> Vec<Plan> {
    let mut plans: Vec<Plan> = PROTOCOLS
        .iter()
        .map(|protocol| Plan {
            protocol: protocol.name.into(),
            ..plan()
        })
        .collect();
    plans.push(Plan {
        iteration: Iteration {
            enabled: true,
            strategy: Strategy::Debate,
            ..Iteration::default()
        },
        ..plan()
    });
    // Time is limited, so timers are set again.
    let mut timed = plan();
    timed.limits.duration_ms = Some(60_000);
    plans.push(timed);
    plans
}

#[test]
fn a_deliberation_goes_on_from_every_record() {
    let mut cuts = 0;
    for plan in plans() {
        let whole = run(&plan, answers);
        whole.replays();
        let ended = whole.verdict().clone();
        for end in 2..whole.records.len() {
            let records = whole.records[..end].to_vec();
            if matches!(resumable(&records), Err(CannotResume::Ended)) {
                continue;
            }
            let again = run_on(records, plan.clone(), &mut answers);
            let at = format!("{}, record {end}", plan.protocol);
            // As if nothing had happened in between.
            assert_eq!(again.records, whole.records, "{at}");
            if let Some(verdict) = &again.verdict {
                assert_eq!(*verdict, ended, "{at}");
            }
            cuts += 1;
        }
    }
    assert!(cuts > 500, "{cuts}");
}

#[test]
fn a_message_that_was_written_and_not_recorded_is_not_written_again() {
    let mut cuts = 0;
    for plan in plans() {
        let whole = run(&plan, answers);
        for (end, record) in whole.records.iter().enumerate() {
            let Event::MessageAdded { message, .. } = &record.event else {
                continue;
            };
            let records = whole.records[..end].to_vec();
            let at = format!("{}, record {end}", plan.protocol);
            let Ok(plan) = resumable(&records) else {
                continue;
            };
            // Another member's message, and another text of this one, are not its own.
            let mut resumed = resume(&records, plan.clone(), record.ts).expect("it goes on");
            for (from, body) in [
                ("mallory", &*message.body),
                (&*message.from, "Something else."),
            ] {
                let other = Message {
                    from: from.into(),
                    body: body.into(),
                    ..message.clone()
                };
                assert!(!resumed.found(&other, record.ts), "{at}: {from}, {body}");
            }
            let again = run_found(records, plan, std::slice::from_ref(message), &mut answers);
            assert_eq!(again.records, whole.records, "{at}");
            cuts += 1;
        }
    }
    assert!(cuts > 40, "{cuts}");
}

#[test]
fn a_fork_at_a_stage_or_before_a_message_goes_on() {
    for plan in plans() {
        let whole = run(&plan, answers);
        let messages = whole.records.iter().filter_map(|r| match &r.event {
            Event::MessageAdded { message, .. } => Some(message.seq),
            _ => None,
        });
        let last = messages.max().unwrap_or(0);
        let at_stages = stages(&whole.records).into_iter().map(Cut::Stage);
        for cut in at_stages.chain((2..=last).map(Cut::Before)) {
            let kept = prefix(&whole.records, &cut).expect("it began").records;
            let records: Vec<Record> = kept.iter().map(|at| whole.records[*at].clone()).collect();
            let shared = records.len();
            // Members think otherwise now.
            let mut other = |asked: &Asked| Answer::Text(good(asked, "no"));
            let again = run_on(records.clone(), plan.clone(), &mut other);
            assert_eq!(again.records[..shared], records, "{cut:?}");
            assert!(again.verdict.is_some(), "{cut:?}");
            again.replays();
        }
    }
}

#[test]
fn what_was_spent_before_counts() {
    let mut plan = plan();
    plan.limits.calls = Some(12);
    let whole = run(&plan, answers);
    let calls = |records: &[Record]| {
        let asks = records.iter().filter(|r| {
            matches!(&r.event, Event::Deliberated { fact } if matches!(**fact, Fact::SeatAsked { .. }))
        });
        asks.count()
    };
    for end in 2..whole.records.len() - 1 {
        let records = whole.records[..end].to_vec();
        let again = run_on(records.clone(), plan.clone(), &mut answers);
        assert!(calls(&again.records) <= 12);
        let resumed = kd_core::deliberation::resume(&records, plan.clone(), whole.records[0].ts);
        let resumed = resumed.expect("it goes on");
        let left = kd_core::Machine::ceiling(&resumed.machine).calls;
        assert!(left <= Some(12));
        // The estimate of the rest covers what is asked, except a question that is asked again, and is no more than
        // the limit leaves.
        let rest = resumed.rest().calls;
        let asked = calls(&again.records) - calls(&records);
        assert!(rest + 1 >= asked as u64, "{end}: {rest} of {asked}");
        assert!(Some(rest) <= left.map(|left| left.max(1)), "{end}");
    }
}

#[test]
fn what_cannot_go_on_says_why() {
    let plan = plan();
    let whole = run(&plan, answers).records;
    let fault = |records: &[Record]| resumable(records).expect_err("refused");
    assert_eq!(fault(&[]), CannotResume::None);
    assert_eq!(fault(&whole), CannotResume::Ended);
    assert_eq!(fault(&whole[1..9]), CannotResume::None);
    let mut gone_on = whole[..9].to_vec();
    gone_on.push(whole[0].clone());
    assert_eq!(fault(&gone_on), CannotResume::GoneOn);
    // A record that was changed, or a plan that is not the recorded one.
    let mut changed = whole[..9].to_vec();
    let forged = whole.iter().rev().find(
        |r| matches!(&r.event, Event::Deliberated { fact } if matches!(**fact, Fact::Counted(_))),
    );
    changed[7] = Record {
        v: FORMAT,
        ..forged.expect("it counted").clone()
    };
    let now = whole[0].ts;
    let resumed = kd_core::deliberation::resume(&changed, plan.clone(), now);
    assert_eq!(
        resumed.expect_err("refused"),
        CannotResume::Differs { at: 8 }
    );
    let other = Plan { seed: 8, ..plan };
    let resumed = kd_core::deliberation::resume(&whole[..9], other, now);
    assert!(matches!(resumed, Err(CannotResume::Differs { .. })));
}
