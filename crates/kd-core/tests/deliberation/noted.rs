//! Readings of replies are recorded, and a replay uses the recorded readings.

use crate::room::{Answer, good, plan, run};
use kd_core::deliberation::{Fact, replay};
use kd_core::event::{Event, Record};
use serde_json::{Value, json};

/// Runs a deliberation in which everyone says yes and returns its record as if another version of the parser had
/// written it: `change` returns the readings that differ.
fn recorded(change: impl Fn(&str, &Value) -> Option<Value>) -> Vec<Record> {
    let run = run(&plan(), |asked| Answer::Text(good(asked, "yes")));
    let mut records = run.records;
    let mut changed = 0;
    for record in &mut records {
        if let Event::Deliberated { fact } = &mut record.event
            && let Fact::Readings { readings } = &mut **fact
        {
            for reading in readings {
                if let Some(found) = change(&reading.sought, &reading.found) {
                    reading.found = found;
                    changed += 1;
                }
            }
        }
    }
    assert!(changed > 0, "the record holds readings");
    records
}

#[test]
fn a_record_is_decided_by_what_was_read_when_it_was_written() {
    let records =
        recorded(|sought, _| (sought == "answer").then(|| json!({"Ok": ["no", "words"]})));
    let replayed = replay(&records).expect("a deliberation");
    let (then, now) = replayed.difference.expect("its answers were yes");
    let (then, now) = (then.expect("recorded"), now.expect("decided"));
    assert!(
        then.contains(r#""fact":"answer_read""#) && then.contains(r#""key":"yes""#),
        "{then}"
    );
    assert!(
        now.contains(r#""key":"no""#) && now.contains("option words"),
        "{now}"
    );
    let reread = &replayed.reread[0];
    assert_eq!(reread.sought, "answer");
    assert_eq!(reread.recorded, json!({"Ok": ["no", "words"]}));
    assert_eq!(reread.today["Ok"][0], "yes");
}

#[test]
fn a_reading_that_is_none_is_not_believed() {
    for found in [
        json!(null),
        json!("yes"),
        json!({"Ok": 3}),
        json!({"Ok": ["yes", "magic"]}),
    ] {
        let records = recorded(|sought, _| (sought == "answer").then(|| found.clone()));
        let replayed = replay(&records).expect("a deliberation");
        let (then, now) = replayed.difference.expect("the record was changed");
        let (then, now) = (then.expect("recorded"), now.expect("decided"));
        assert!(then.contains(r#""fact":"readings""#), "{then}");
        assert!(now.contains(r#""Ok":["yes""#), "{now}");
        assert!(replayed.reread.is_empty());
    }
}
