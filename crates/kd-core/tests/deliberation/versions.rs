//! Deliberations by the rules of every version replay by the same rules; newer versions are refused.

use crate::room::{Answer, good, plan, run};
use kd_core::deliberation::{self, Plan, READING, SPENDING, WRITING};

#[test]
fn every_version_of_the_rules_is_decided_again() {
    for reading in 0..=READING {
        for spending in 0..=SPENDING {
            for writing in 0..=WRITING {
                let mut plan = plan();
                (plan.reading, plan.spending, plan.writing) = (reading, spending, writing);
                let held = run(&plan, |asked| Answer::Text(good(asked, "yes")));
                let again = held.replays();
                assert!(again.finished, "{reading} {spending} {writing}");
                assert_eq!(deliberation::check(&held.records), Ok(()));
            }
        }
    }
}

#[test]
fn newer_rules_are_refused() {
    let newer: [fn(&mut Plan); 3] = [
        |plan| plan.reading = READING + 1,
        |plan| plan.spending = SPENDING + 1,
        |plan| plan.writing = WRITING + 1,
    ];
    for make in newer {
        let mut plan = plan();
        make(&mut plan);
        let held = run(&plan, |asked| Answer::Text(good(asked, "yes")));
        let error = deliberation::check(&held.records).unwrap_err();
        assert_eq!(error.found, u64::from(error.format.version) + 1);
    }
}
