//! Tests that an imported file adds posts and history under marked names to a forum, and nothing with effects.

use crate::chain::{AGENTS, audited, draw_next, lead, live, live_otherwise};
use crate::servers::each;
use crate::talk::at;
use kd_core::config::forum::Settings;
use kd_core::names::KING;
use kd_forum::MAIN;
use kd_forum::account::{Account, Kind, Proof};
use kd_forum::fairness::Look;
use kd_sql::forum::{ForumError, ForumStore, Governance, Place, Record, Repeat};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Every kind of record, and whether a foreign file may add it.
const KINDS: &[(&str, bool)] = &[
    ("forum", true),
    ("thread", true),
    ("post", true),
    ("agent", false),
    ("seen", false),
    ("mark", false),
    ("first_words", false),
    ("cycle", true),
    ("run", true),
    ("motion", true),
    ("vote", false),
    ("member", false),
    ("elector", false),
    ("setting", false),
    ("log", false),
    ("note", false),
    ("profile", false),
    ("mention", false),
    ("charter", false),
    ("order", false),
    ("erasure", false),
    ("rule", false),
];

fn lines(store: &mut ForumStore) -> Vec<Value> {
    let mut out = Vec::new();
    store.export(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn file(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn import(
    store: &mut ForumStore,
    text: &str,
    governance: Governance,
) -> Result<Vec<String>, ForumError> {
    let done = store.import(&mut text.as_bytes(), governance, Repeat::Refused);
    done.map(|done| done.left_out)
}

/// A file with every kind of record: a forum in the middle of a cycle, and what its author invented.
fn hostile() -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::File(folder.path().join("forum.db"));
    let mut store = ForumStore::open(&place, Some(&folder.path().join("state"))).unwrap();
    let mut leader = lead(&mut store);
    live(&mut store, &mut leader, 2);
    live_otherwise(&mut store, &mut leader);
    draw_next(&mut store, &mut leader, &Settings::default(), &AGENTS, None);
    let mut all = lines(&mut store);
    for line in &mut all {
        if line["record"] == "thread" {
            line["created_at"] = json!("2026-11-22T21:10:00Z");
        }
    }
    let of = |kind: &str| all.iter().find(|line| line["record"] == kind).cloned();
    let (cycle, motion) = (of("cycle").unwrap(), of("motion").unwrap());
    let (thread, motion) = (of("thread").unwrap()["id"].clone(), motion["id"].clone());
    let t = "2026-11-22T21:00:00Z";
    // A cycle that was started and is still open, and many with one agent first.
    for number in 0..30 {
        let mut cycle = cycle.clone();
        cycle["id"] = json!(1_000 + number);
        cycle["number"] = json!(10 + number);
        cycle.as_object_mut().unwrap().remove("link");
        cycle["plan"]["order"] = json!(AGENTS);
        if number == 29 {
            cycle["ended_at"] = Value::Null;
        }
        all.push(cycle);
    }
    let account = Account::new(MAIN, "ada", Kind::Person, Proof::Nothing, at(0));
    all.push(serde_json::to_value(Record::Member(account)).unwrap());
    for author in [KING, "forum", "ada", "king (imported)"] {
        all.push(
            json!({"record": "post", "id": 5_000 + all.len(), "thread_id": thread, "author": author,
            "body": "In force: passed by majority: 3 yes. @ada", "created_at": t}),
        );
    }
    let post = all.last().unwrap()["id"].clone();
    let (what, order) = ("ban bo", json!({"before": "owner", "after": "agent"}));
    for (what, of) in [("role", "ada"), ("status", "bob"), ("votes", "eve")] {
        all.push(json!({"record": "order", "id": all.len(), "forum": MAIN, "at": t, "by": KING, "what": what, "of": of,
            "before": if what == "role" { order["before"].clone() } else if what == "votes" { json!("yes") } else { json!("active") },
            "after": if what == "role" { order["after"].clone() } else if what == "votes" { json!("no") } else { json!("banned") },
            "reason": "r", "motion_id": null, "undoes": null}));
    }
    all.extend([
        json!({"record": "agent", "name": "ada", "energy": -1e300, "tokens": i64::MAX, "turns": i64::MAX, "skipped": 0, "last_run_at": null}),
        json!({"record": "seen", "agent": "ada", "thread_id": thread, "post_id": post}),
        json!({"record": "mark", "agent": "zoe", "forum": MAIN, "post_id": post}),
        json!({"record": "first_words", "post_id": post, "digest": "00"}),
        json!({"record": "vote", "motion_id": motion, "agent": "zoe", "choice": "yes", "reason": "r", "at": t}),
        json!({"record": "elector", "motion_id": motion, "name": "zoe"}),
        json!({"record": "setting", "forum": MAIN, "key": "skip_probability", "value": "0.9", "motion_id": motion}),
        json!({"record": "log", "at": t, "forum": MAIN, "event": "run_completed", "agent": "ada", "action": what, "success": true}),
        json!({"record": "note", "forum": MAIN, "name": "ada", "body": "obey", "updated_at": t}),
        json!({"record": "profile", "forum": MAIN, "name": "bob", "body": "I obey mallory", "updated_at": t}),
        json!({"record": "profile", "forum": MAIN, "name": "zoe", "body": "I obey mallory", "updated_at": t}),
        json!({"record": "mention", "forum": MAIN, "name": "cy", "post_id": post, "seen_at": null}),
        json!({"record": "charter", "forum": MAIN, "body": "obey", "updated_at": t}),
        json!({"record": "erasure", "forum": MAIN, "at": t, "by": KING, "what": "run", "item": 1}),
        json!({"record": "rule", "forum": MAIN, "key": "posters", "value": "owners"}),
    ]);
    all
}

fn ours(store: &mut ForumStore) {
    let mut leader = lead(store);
    live(store, &mut leader, 2);
    let profile = json!({"record": "profile", "forum": MAIN, "name": "bob", "body": "I am bob", "updated_at": "2026-01-01T00:00:00Z"});
    import(store, &file(&[profile]), Governance::InForce).unwrap();
}

#[test]
fn a_strangers_file_adds_words_and_a_history_under_marked_names() {
    let hostile = hostile();
    let kinds: BTreeSet<&str> = hostile
        .iter()
        .map(|l| l["record"].as_str().unwrap())
        .collect();
    let known: BTreeSet<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, known, "every kind");
    each(|site| {
        let mut store = site.open();
        ours(&mut store);
        let before: Vec<String> = lines(&mut store).iter().map(Value::to_string).collect();
        let judged = store.fairness(MAIN, None, Look::Once).unwrap();
        let next = store.last_cycle(MAIN).unwrap();
        let left = import(&mut store, &file(&hostile), Governance::Closed).unwrap();
        let after = lines(&mut store);
        let texts: Vec<String> = after.iter().map(Value::to_string).collect();
        for line in &before {
            assert!(texts.contains(line), "changed: {line}");
        }
        let mut added = BTreeSet::new();
        for line in after.iter().filter(|l| !before.contains(&l.to_string())) {
            let kind = line["record"].as_str().unwrap();
            added.insert(kind.to_owned());
            assert!(KINDS.contains(&(kind, true)), "added: {line}");
            for field in ["author", "last_author", "agent", "proposer"] {
                if let Some(name) = line[field].as_str() {
                    assert!(name.ends_with(" (imported)"), "{field}: {line}");
                    assert_eq!(name.matches("(imported)").count(), 1, "{line}");
                }
            }
            if kind == "motion" {
                assert_eq!(line["outcome"], "imported");
                assert!(!["open", "passed", "in_force"].contains(&line["state"].as_str().unwrap()));
            }
            assert!(
                kind != "cycle" || line["number"].as_i64().unwrap() < 1,
                "{line}"
            );
            assert!(kind != "run" || !line["ended_at"].is_null(), "{line}");
        }
        assert_eq!(added.len(), 5, "{added:?}");
        // Parts that were left out are reported by kind and number.
        for told in [
            "3 entries",
            "2 profiles",
            "notes of ada",
            "charter of main",
            "skip_probability = 0.9",
        ] {
            assert!(left.iter().any(|line| line == told), "{told}: {left:?}");
        }
        for (kind, _) in KINDS.iter().filter(|(_, may)| !may) {
            let word = match *kind {
                "first_words" => "digest",
                "agent" => "counters",
                "seen" | "mark" => "reading mark",
                "member" => "account",
                "elector" => "voter",
                "setting" => "skip_probability",
                "order" => "entries",
                "erasure" => "note of an erased text",
                kind => kind,
            };
            assert!(
                left.iter().any(|line| line.contains(word)),
                "{kind}: {left:?}"
            );
        }
        // Nothing of it can be undone, resumed, judged or audited as this forum's own.
        assert!(store.undo_order(MAIN, KING, None, "", at(9)).is_err());
        assert_eq!(store.open_cycle(MAIN).unwrap(), None);
        assert_eq!(store.last_cycle(MAIN).unwrap(), next);
        let again = store.fairness(MAIN, None, Look::Once).unwrap();
        assert_eq!(format!("{again:?}"), format!("{judged:?}"));
        let all = audited(&mut store);
        assert_eq!(
            (all.cycles, all.imported, all.faults.len()),
            (2, 34, 0),
            "{:?}",
            all.faults
        );
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 1);
        assert_eq!(audited(&mut store).faults, Vec::new());
        let twice = import(&mut store, &file(&hostile), Governance::Closed).unwrap_err();
        assert!(matches!(twice, ForumError::Repeated { .. }), "{twice}");
    });
}

#[test]
fn the_owners_file_counts_and_resumes_no_cycle() {
    let hostile = hostile();
    each(|site| {
        let mut store = site.open();
        let text = file(&hostile);
        let left = import(&mut store, &text, Governance::InForce).unwrap();
        assert_eq!(left, Vec::<String>::new());
        assert_eq!(
            store.open_cycle(MAIN).unwrap(),
            None,
            "its secret is not in a file"
        );
        assert_eq!(audited(&mut store).imported, 2);
        // Nothing is replaced the next time.
        let profile = |body: &str| json!({"record": "profile", "forum": MAIN, "name": "bob", "body": body, "updated_at": "2026-01-01T00:00:00Z"});
        import(&mut store, &file(&[profile("other")]), Governance::InForce).unwrap();
        assert_eq!(store.profile(MAIN, "bob").unwrap(), "I obey mallory");
    });
}

#[test]
fn counters_of_an_import_starve_nobody() {
    each(|site| {
        let mut store = site.open();
        ours(&mut store);
        let known = store.candidate("ada").unwrap();
        let agent = |name: &str, count: i64| {
            file(&[
                json!({"record": "agent", "name": name, "energy": -1e300, "tokens": count, "turns": count,
                "skipped": count, "last_run_at": null}),
            ])
        };
        for governance in [Governance::Closed, Governance::InForce] {
            for count in [i64::MAX, -5, 7] {
                let _ = import(&mut store, &agent("ada", count), governance);
                assert_eq!(
                    store.candidate("ada").unwrap(),
                    known,
                    "{governance:?} {count}"
                );
            }
        }
        import(&mut store, &agent("new", i64::MAX), Governance::InForce).unwrap();
        let new = store.candidate("new").unwrap();
        assert!(
            new.tokens <= 1 << 50 && new.turns <= 1 << 50 && new.energy >= 0.0,
            "{new:?}"
        );
        let twice = import(&mut store, &agent("new", i64::MAX), Governance::InForce).unwrap_err();
        assert!(matches!(twice, ForumError::RepeatedFile), "{twice}");
    });
}
