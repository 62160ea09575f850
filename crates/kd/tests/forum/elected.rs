//! Settings that members change by motions: what a motion compares with, how they are shown and taken back.

use super::{forum, house, scripted, store};
use kd_core::config::forum::Settings;
use kd_forum::governance::MotionState;
use serde_json::{Value, json};

/// Proposes a value of a setting.
fn wants(key: &str, value: &str) -> Value {
    json!({"tool": "propose", "kind": "set", "key": key, "value": value, "title": key, "reason": "for us"})
}

fn yes(motion: i64) -> Value {
    json!({"tool": "vote", "motion_id": motion, "choice": "yes"})
}

#[test]
fn a_motion_compares_with_the_stored_settings_and_not_with_the_flags_of_a_run() {
    let home = house(
        &json!({"forum": {"unconfirmed": "set", "voting_cycles": 1}}),
        &[],
    );
    let finish = json!({"tool": "finish", "did": "vote"});
    // Without a skip and with 50 calls, as this run has it, both would save calls.
    let ada = wants("skip_probability", "0.1");
    let bob = wants("max_tool_calls", "40");
    scripted(&home, "ada", &[ada, yes(1), yes(2), finish.clone()]);
    scripted(&home, "bob", &[bob, yes(1), yes(2), finish]);
    for _ in 0..2 {
        let ran = forum(
            &home,
            &["run-once", "--scheduler", "fixed", "--max-tool-calls", "50"],
        );
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    }
    let mut store = store(&home);
    for (id, now) in [(1, "now `0.2`"), (2, "now `10`")] {
        let (motion, _) = store.motion(id).unwrap();
        assert_eq!(motion.state, MotionState::Passed, "{}", motion.outcome);
        assert!(
            motion.outcome.contains("2 yes") && motion.outcome.contains("a person must confirm"),
            "{}",
            motion.outcome
        );
        let (_, posts) = store.thread(motion.thread_id.unwrap(), 0, 9).unwrap();
        assert!(posts[0].body.contains(now), "{}", posts[0].body);
    }
    let configured = Settings::default();
    assert_eq!(store.settings("main", &configured).unwrap(), configured);
}
