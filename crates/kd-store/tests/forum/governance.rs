//! Motions from their first word to their undoing.

use crate::servers::each;
use crate::talk::{at, call};
use kd_core::forum::governance::MotionState;
use kd_core::forum::settings::{PARAMETERS, Settings};
use kd_core::forum::{CLERK, MAIN};
use kd_store::forum::{ForumStore, Place};
use serde_json::json;

fn moved(store: &mut ForumStore, key: &str, value: &str) -> i64 {
    let answer = call(
        store,
        "ada",
        "propose",
        json!({"kind": "set", "key": key, "value": value, "title": "change it", "reason": "too often"}),
    );
    answer["motion_id"]
        .as_i64()
        .unwrap_or_else(|| panic!("{answer}"))
}

fn voted(store: &mut ForumStore, id: i64, yes: &[&str], no: &[&str]) {
    for (names, choice) in [(yes, "yes"), (no, "no")] {
        for name in names {
            assert_eq!(
                call(
                    store,
                    name,
                    "vote",
                    json!({"motion_id": id, "choice": choice})
                )["success"],
                true
            );
        }
    }
}

#[test]
fn a_motion_passes_waits_for_a_person_rules_and_is_undone_by_another() {
    each(|site| {
        let mut store = site.open();
        let configured = Settings::default();
        let id = moved(&mut store, "skip_probability", "0.05");
        voted(&mut store, id, &["ada", "bob"], &["cy"]);
        voted(&mut store, id, &["cy"], &[]);
        assert!(
            store
                .decide_motions(MAIN, 2, &configured, 3, at(1))
                .unwrap()
                .is_empty(),
            "the vote is still open"
        );
        let decided = store
            .decide_motions(MAIN, 3, &configured, 3, at(2))
            .unwrap();
        assert_eq!(decided[0].state, MotionState::Passed);
        assert!(
            decided[0].outcome.contains("3 yes, 0 no"),
            "a later vote replaces the earlier: {}",
            decided[0].outcome
        );
        assert_eq!(
            store.settings(MAIN, &configured).unwrap(),
            configured,
            "nothing changes by itself"
        );
        assert_eq!(
            call(
                &mut store,
                "bob",
                "vote",
                json!({"motion_id": id, "choice": "no"})
            )["success"],
            false
        );
        store.confirm_motion(id, &configured, at(3)).unwrap();
        assert_eq!(
            store.settings(MAIN, &configured).unwrap().skip_probability,
            0.05
        );
        assert_eq!(
            store.settings("elsewhere", &configured).unwrap(),
            configured
        );
        let (motion, votes) = store.motion(id).unwrap();
        assert_eq!((motion.before.as_deref(), votes.len()), (Some("0.2"), 3));
        let (_, posts) = store.thread(motion.thread_id.unwrap(), 0, 50).unwrap();
        let told = posts
            .iter()
            .filter(|p| p.author == CLERK)
            .map(|p| p.body.as_str())
            .collect::<Vec<_>>()
            .join("\n");
        assert!(
            told.contains("`skip_probability` was `0.2` and is `0.05`")
                && told.contains("too often"),
            "{told}"
        );
        let undo = call(
            &mut store,
            "bob",
            "propose",
            json!({"kind": "undo", "value": id, "title": "back", "reason": "worse"}),
        );
        let undo = undo["motion_id"].as_i64().unwrap();
        voted(&mut store, undo, &["ada", "bob"], &[]);
        store
            .decide_motions(MAIN, 3, &configured, 3, at(4))
            .unwrap();
        store.confirm_motion(undo, &configured, at(5)).unwrap();
        assert_eq!(
            store.settings(MAIN, &configured).unwrap().skip_probability,
            0.2
        );
        assert_eq!(store.motion(id).unwrap().0.state, MotionState::Undone);
        assert_eq!(
            call(
                &mut store,
                "bob",
                "propose",
                json!({"kind": "undo", "value": id, "title": "x", "reason": "x"})
            )["success"],
            false
        );
    });
}

#[test]
fn a_person_can_allow_a_kind_and_refuse_a_motion() {
    each(|site| {
        let mut store = site.open();
        let allowed = Settings {
            unconfirmed: "set".into(),
            ..Settings::default()
        };
        let id = moved(&mut store, "max_tool_calls", "5");
        voted(&mut store, id, &["ada", "bob"], &[]);
        let decided = store.decide_motions(MAIN, 3, &allowed, 2, at(1)).unwrap();
        assert_eq!(decided[0].state, MotionState::InForce);
        assert_eq!(store.settings(MAIN, &allowed).unwrap().max_tool_calls, 5);
        let id = moved(&mut store, "max_tool_calls", "50");
        store.veto_motion(id, "too dear", at(2)).unwrap();
        assert!(
            store
                .decide_motions(MAIN, 9, &allowed, 2, at(3))
                .unwrap()
                .is_empty()
        );
        assert!(store.veto_motion(id, "again", at(4)).is_err());
        assert!(store.confirm_motion(id, &allowed, at(4)).is_err());
        for arguments in [
            json!({"kind": "set", "key": "quorum", "value": "0", "title": "coup", "reason": "power"}),
            json!({"kind": "set", "key": "skip_probability", "value": "7", "title": "x", "reason": "x"}),
            json!({"kind": "scheduler", "value": "me-first", "title": "x", "reason": "x"}),
            json!({"kind": "undo", "value": "99", "title": "x", "reason": "x"}),
        ] {
            assert_eq!(
                call(&mut store, "ada", "propose", arguments)["success"],
                false
            );
        }
    });
}

#[test]
fn rows_of_a_store_change_only_what_agents_may_move_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("forum.db");
    let place = Place::File(file.clone());
    let configured = Settings::default();
    let before = ForumStore::open(&place)
        .unwrap()
        .settings(MAIN, &configured)
        .unwrap();
    assert_eq!(before, configured);
    let planted = |key: &str| match key {
        "scheduler" => "fixed",
        "interval" => "adaptive",
        "rule" => "unanimity",
        "unconfirmed" => "set",
        "skip_probability" | "quorum" => "0.125",
        _ => "31",
    };
    let db = rusqlite::Connection::open(&file).unwrap();
    for parameter in PARAMETERS {
        db.execute(
            "INSERT INTO settings (forum, key, value, motion_id) VALUES (?1, ?2, ?3, 1)",
            (MAIN, parameter.key, planted(parameter.key)),
        )
        .unwrap();
    }
    drop(db);
    let after = ForumStore::open(&place)
        .unwrap()
        .settings(MAIN, &configured)
        .unwrap();
    for parameter in PARAMETERS {
        let key = parameter.key;
        let changed = after.get(key) == Some(planted(key).to_owned());
        assert_eq!(changed, parameter.votable, "{key}: {:?}", after.get(key));
    }
}
