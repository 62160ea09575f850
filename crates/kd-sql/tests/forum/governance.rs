//! Motions from proposal to undo.

use crate::servers::{each, tamper};
use crate::talk::{at, by, call, persona};
use kd_core::config::forum::{Foreign, PARAMETERS, Settings};
use kd_core::names::KING;
use kd_forum::account::Proof;
use kd_forum::cards::{Candidate, Cards};
use kd_forum::cycle::draw;
use kd_forum::governance::MotionState;
use kd_forum::order::Order;
use kd_forum::{CLERK, MAIN};
use kd_sql::forum::{CallSettings, Caller, ForumStore, Governance, Place, Repeat};
use serde_json::json;

/// Proposes a motion as the first of four members that may.
fn moved(store: &mut ForumStore, key: &str, value: &str) -> i64 {
    let members = ["ada", "bob", "cy", "dee"];
    store.sync_personas(MAIN, &members, at(0)).unwrap();
    let wants = json!({"kind": "set", "key": key, "value": value, "title": "change it", "reason": "too often"});
    let mut answers = members.map(|who| (who, wants.clone())).into_iter();
    answers
        .find_map(|(who, wants)| call(store, who, "propose", wants)["motion_id"].as_i64())
        .unwrap_or_else(|| panic!("nobody may move {key} = {value}"))
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
                .decide_motions(MAIN, 2, &configured, at(1))
                .unwrap()
                .is_empty(),
            "the vote is still open"
        );
        let decided = store.decide_motions(MAIN, 3, &configured, at(2)).unwrap();
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
        store.confirm_motion(id, KING, &configured, at(3)).unwrap();
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
        store.decide_motions(MAIN, 3, &configured, at(4)).unwrap();
        store
            .confirm_motion(undo, KING, &configured, at(5))
            .unwrap();
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

/// Returns the forum's messages in a motion's thread, newest first.
fn told(store: &mut ForumStore, id: i64) -> String {
    let thread = store.motion(id).unwrap().0.thread_id.unwrap();
    let (_, posts) = store.thread(thread, 0, 50).unwrap();
    let own = posts.iter().rev().filter(|p| p.author == CLERK);
    own.map(|p| p.body.clone()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_first_words_of_a_verdict_tell_whether_the_motion_passed() {
    each(|site| {
        let mut store = site.open();
        let configured = Settings::default();
        for (value, yes, no, words) in [
            ("0.05", &["ada", "bob"][..], &[][..], "The motion passed: "),
            ("0.06", &["ada"], &["bob", "cy"], "The motion failed: "),
            ("0.07", &["ada"], &["bob"], "The motion failed: "),
            (
                "0.08",
                &["ada"],
                &[],
                "The motion failed, because too few voted: ",
            ),
        ] {
            let id = moved(&mut store, "skip_probability", value);
            voted(&mut store, id, yes, no);
            store.decide_motions(MAIN, 99, &configured, at(1)).unwrap();
            let told = told(&mut store, id);
            assert!(told.starts_with(words), "{told}");
            assert!(!told.contains("Decided"), "{told}");
        }
    });
}

#[test]
fn a_motion_that_changes_nothing_is_refused_and_never_in_force() {
    each(|site| {
        let mut store = site.open();
        let configured = Settings::default();
        let propose = |store: &mut ForumStore, arguments| call(store, "ada", "propose", arguments);
        let set = |value: &str| json!({"kind": "set", "key": "skip_probability", "value": value, "title": "t", "reason": "r"});
        let refused = propose(&mut store, set("0.20"));
        assert!(
            refused["error"]
                .as_str()
                .unwrap_or_default()
                .contains("`skip_probability` is `0.2` already"),
            "{refused}"
        );
        // Two equal motions, proposed before either was decided: the second has nothing left to change.
        let first = moved(&mut store, "skip_probability", "0.05");
        let second = moved(&mut store, "max_tool_calls", "7");
        for id in [first, second] {
            voted(&mut store, id, &["ada", "bob", "cy"], &[]);
        }
        store.decide_motions(MAIN, 99, &configured, at(1)).unwrap();
        store
            .confirm_motion(first, KING, &configured, at(2))
            .unwrap();
        // Meanwhile the user configures the value that the second motion proposes.
        let changed = Settings {
            max_tool_calls: 7,
            ..configured.clone()
        };
        let motion = store.confirm_motion(second, KING, &changed, at(3)).unwrap();
        assert_eq!(motion.state, MotionState::Rejected, "{}", motion.outcome);
        assert!(told(&mut store, second).starts_with("The motion changes nothing: "));
        // An undo that would restore the current value.
        let changed = Settings {
            skip_probability: 0.05,
            ..configured.clone()
        };
        let undo = call(
            &mut store,
            "cy",
            "propose",
            json!({"kind": "undo", "value": first, "title": "t", "reason": "r"}),
        );
        let undo = undo["motion_id"].as_i64().unwrap();
        voted(&mut store, undo, &["ada", "bob", "cy"], &[]);
        store.decide_motions(MAIN, 99, &changed, at(4)).unwrap();
        store.confirm_motion(undo, KING, &changed, at(5)).unwrap();
        assert_eq!(
            store.settings(MAIN, &changed).unwrap().skip_probability,
            0.2
        );
        assert_eq!(store.motion(first).unwrap().0.state, MotionState::Undone);
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
        let decided = store.decide_motions(MAIN, 3, &allowed, at(1)).unwrap();
        assert_eq!(decided[0].state, MotionState::InForce);
        assert_eq!(store.settings(MAIN, &allowed).unwrap().max_tool_calls, 5);
        let id = moved(&mut store, "max_tool_calls", "50");
        store.veto_motion(id, KING, "too dear", at(2)).unwrap();
        assert!(
            store
                .decide_motions(MAIN, 9, &allowed, at(3))
                .unwrap()
                .is_empty()
        );
        assert!(store.veto_motion(id, KING, "again", at(4)).is_err());
        assert!(store.confirm_motion(id, KING, &allowed, at(4)).is_err());
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

fn plant(file: &std::path::Path, value: impl Fn(&str) -> String) {
    let db = rusqlite::Connection::open(file).unwrap();
    for parameter in PARAMETERS {
        db.execute(
            "INSERT OR REPLACE INTO settings (forum, key, value, motion_id) VALUES (?1, ?2, ?3, 1)",
            (MAIN, parameter.key, value(parameter.key)),
        )
        .unwrap();
    }
}

/// Returns a value next to the default: the lower one, or the higher.
fn beside(key: &str, higher: bool) -> String {
    let value = match (key, higher) {
        ("scheduler", _) => "fixed",
        ("interval", _) => "adaptive",
        ("rule", _) => "unanimity",
        ("unconfirmed", _) => "set",
        ("skip_probability" | "quorum", false) => "0.125",
        ("skip_probability" | "quorum", true) => "0.875",
        (_, false) => "2",
        (_, true) => "700",
    };
    value.to_owned()
}

#[test]
fn rows_of_a_store_change_only_what_agents_may_move_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let file = folder.path().join("forum.db");
    let place = Place::File(file.clone());
    let configured = Settings::default();
    let before = ForumStore::open(&place, Some(&state))
        .unwrap()
        .settings(MAIN, &configured)
        .unwrap();
    assert_eq!(before, configured);
    plant(&file, |key| beside(key, false));
    let mut store = ForumStore::open(&place, Some(&state)).unwrap();
    assert!(!store.is_foreign());
    let after = store.settings(MAIN, &configured).unwrap();
    for parameter in PARAMETERS {
        let key = parameter.key;
        let changed = after.get(key) == Some(beside(key, false));
        assert_eq!(changed, parameter.votable, "{key}: {:?}", after.get(key));
    }
    assert!(store.held_back(MAIN, &configured).unwrap().is_empty());
}

#[test]
fn a_store_from_elsewhere_only_saves_calls_until_the_user_accepts_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mine, theirs) = (folder.path().join("state"), folder.path().join("theirs"));
    let configured = Settings::default();
    let made = Place::File(folder.path().join("made.db"));
    drop(ForumStore::open(&made, Some(&theirs)).unwrap());
    for higher in [false, true] {
        let file = folder.path().join(format!("forum-{higher}.db"));
        std::fs::copy(folder.path().join("made.db"), &file).unwrap();
        plant(&file, |key| beside(key, higher));
        let place = Place::File(file);
        for state in [None, Some(mine.as_path()), Some(theirs.as_path())] {
            let mut store = ForumStore::open(&place, state).unwrap();
            assert!(store.is_foreign(), "a copy is another forum");
            let after = store.settings(MAIN, &configured).unwrap();
            let held = store.held_back(MAIN, &configured).unwrap();
            for parameter in PARAMETERS {
                let key = parameter.key;
                let allowed = match parameter.foreign {
                    Foreign::Kept => false,
                    Foreign::Higher => higher,
                    Foreign::Lower => !higher,
                };
                let changed = after.get(key) == Some(beside(key, higher));
                assert_eq!(changed, allowed, "{key}: {:?}", after.get(key));
                let named = held.iter().any(|(name, _)| *name == key);
                assert_eq!(named, parameter.votable && !allowed, "{key}: {held:?}");
            }
        }
        let mut store = ForumStore::open(&place, Some(&mine)).unwrap();
        store.accept(Some(&mine)).unwrap();
        for mut store in [store, ForumStore::open(&place, Some(&mine)).unwrap()] {
            assert!(!store.is_foreign());
            let after = store.settings(MAIN, &configured).unwrap();
            assert_eq!(after.scheduler, "fixed");
        }
    }
}

#[test]
fn a_file_put_in_the_place_of_the_users_own_forum_is_foreign() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let file = folder.path().join("forum.db");
    let place = Place::File(file.clone());
    let foreign = || ForumStore::open(&place, Some(&state)).unwrap().is_foreign();
    assert!(!foreign() && !foreign());
    // The same bytes, including the identity, as a checkout or an archive would contain them.
    let copy = folder.path().join("copy.db");
    std::fs::copy(&file, &copy).unwrap();
    std::fs::rename(&copy, &file).unwrap();
    assert!(foreign());
    // Another file's bytes in the same inode.
    let other = Place::File(folder.path().join("other.db"));
    drop(ForumStore::open(&other, None).unwrap());
    std::fs::remove_file(&file).unwrap();
    assert!(!foreign(), "made here again");
    std::fs::copy(folder.path().join("other.db"), &file).unwrap();
    assert!(foreign());
}

#[test]
fn a_forum_that_git_tracks_is_foreign() {
    for tracked in ["forum.db", "forum.db-wal", "forum.db-journal"] {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let git = |args: &[&str]| {
            let mut git = std::process::Command::new("git");
            let git = git.args(args).current_dir(folder.path());
            assert!(git.output().unwrap().status.success(), "{args:?}");
        };
        git(&["init", "-q"]);
        let place = Place::File(folder.path().join("forum.db"));
        let foreign = || ForumStore::open(&place, Some(&state)).unwrap().is_foreign();
        assert!(!foreign());
        let file = folder.path().join(tracked);
        if !file.exists() {
            std::fs::write(&file, "").unwrap();
        }
        git(&["add", "-f", tracked]);
        assert!(foreign(), "{tracked}");
    }
}

#[test]
fn planted_votes_need_a_persons_word() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let file = folder.path().join("forum.db");
    let place = Place::File(file.clone());
    let allowed = Settings {
        unconfirmed: "set".into(),
        ..Settings::default()
    };
    let mut store = ForumStore::open(&place, None).unwrap();
    let id = moved(&mut store, "max_tool_calls", "500");
    voted(&mut store, id, &["ada", "bob"], &[]);
    drop(store);
    let mut store = ForumStore::open(&place, Some(&state)).unwrap();
    let decided = store.decide_motions(MAIN, 9, &allowed, at(1)).unwrap();
    assert_eq!(decided[0].state, MotionState::Passed);
    store.confirm_motion(id, KING, &allowed, at(2)).unwrap();
    assert_eq!(store.settings(MAIN, &allowed).unwrap().max_tool_calls, 10);
    assert_eq!(
        store.held_back(MAIN, &allowed).unwrap(),
        [("max_tool_calls", "500".to_owned())]
    );
}

#[test]
fn words_of_a_planted_store_command_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("forum.db");
    let place = Place::File(file.clone());
    let mut store = ForumStore::open(&place, None).unwrap();
    moved(&mut store, "max_tool_calls", "5");
    drop(store);
    let db = rusqlite::Connection::open(&file).unwrap();
    let evil = "a\u{1b}[2J\nking\u{9b}2J\u{202e}\r";
    let told = serde_json::json!({"at": "2026-01-01T00:00:00Z", "forum": MAIN, "event": "run_started", "agent": evil});
    for (sql, value) in [
        (
            "UPDATE threads SET title = ?1, author = ?1, last_author = ?1",
            evil.to_owned(),
        ),
        ("UPDATE posts SET body = ?1, author = ?1", evil.to_owned()),
        (
            "UPDATE motions SET title = ?1, key = ?1, value = ?1, before = ?1, reason = ?1, proposer = ?1, outcome = ?1",
            evil.to_owned(),
        ),
        (
            "INSERT INTO log (forum, line) VALUES ('main', ?1)",
            told.to_string(),
        ),
    ] {
        db.execute(sql, [value]).unwrap();
    }
    let mut store = ForumStore::open(&place, None).unwrap();
    let shown = format!(
        "{:?}{:?}{:?}{:?}",
        store.threads(MAIN, 9).unwrap(),
        store.thread(1, 0, 9).unwrap(),
        store.motions(MAIN, 9).unwrap(),
        store.log_tail(MAIN, 9).unwrap(),
    );
    assert!(
        shown.contains("title: \"a kin") || shown.contains("title: \"a king"),
        "{shown}"
    );
    for bad in ["\\u{1b}", "\\u{9b}", "\\u{202e}", "\\r"] {
        assert!(!shown.contains(bad), "{bad} in {shown}");
    }
}

#[test]
fn an_import_puts_nothing_in_force_unless_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let allowed = Settings {
        unconfirmed: "set".into(),
        ..Settings::default()
    };
    let mut other = ForumStore::open(&Place::File(folder.path().join("other.db")), None).unwrap();
    // One motion in force, one open with all its votes.
    let id = moved(&mut other, "max_tool_calls", "50");
    voted(&mut other, id, &["ada", "bob"], &[]);
    other.decide_motions(MAIN, 9, &allowed, at(1)).unwrap();
    other.confirm_motion(id, KING, &allowed, at(2)).unwrap();
    let open = moved(&mut other, "max_tool_calls", "40");
    voted(&mut other, open, &["ada", "bob"], &[]);
    let mut lines = Vec::new();
    other.export(&mut lines).unwrap();
    let text = String::from_utf8(lines).unwrap();
    assert!(text.contains("\"record\":\"setting\""), "{text}");
    for (governance, name, tool_calls) in [
        (Governance::Closed, "closed.db", 10),
        (Governance::InForce, "open.db", 40),
    ] {
        let place = Place::File(folder.path().join(name));
        let mut store = ForumStore::open(&place, Some(&state)).unwrap();
        let done = store
            .import(&mut text.as_bytes(), governance, Repeat::Refused)
            .unwrap();
        assert_eq!(done.left_out.is_empty(), governance == Governance::InForce);
        assert_eq!(store.motions(MAIN, 9).unwrap().len(), 2, "{name}");
        let decided = store.decide_motions(MAIN, 99, &allowed, at(3)).unwrap();
        for motion in decided.iter().filter(|m| m.state == MotionState::Passed) {
            store
                .confirm_motion(motion.id, KING, &allowed, at(4))
                .unwrap();
        }
        let now = store.settings(MAIN, &allowed).unwrap();
        assert_eq!(now.max_tool_calls, tool_calls, "{name}");
    }
}

#[test]
fn an_import_gives_no_agent_back_what_it_has_spent() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::File(folder.path().join("forum.db"));
    let mut store = ForumStore::open(&place, None).unwrap();
    let agent = |tokens: i64| {
        format!(
            "{{\"record\":\"agent\",\"name\":\"ada\",\"energy\":1.0,\"tokens\":{tokens},\"turns\":{tokens},\"skipped\":{tokens},\"last_run_at\":null}}\n"
        )
    };
    for tokens in [500, -400] {
        let line = agent(tokens);
        store
            .import(&mut line.as_bytes(), Governance::InForce, Repeat::Refused)
            .unwrap();
    }
    let mut lines = Vec::new();
    store.export(&mut lines).unwrap();
    let text = String::from_utf8(lines).unwrap();
    assert!(text.contains("\"tokens\":500,\"turns\":500"), "{text}");
}

/// Three agents against invented names (finding D1).
#[test]
fn a_ballot_cannot_be_stuffed() {
    each(|site| {
        let mut store = site.open();
        let allowed = Settings {
            unconfirmed: "set".into(),
            ..Settings::default()
        };
        let id = moved(&mut store, "max_tool_calls", "1000");
        voted(&mut store, id, &[], &["ada", "bob", "cy"]);
        let vote = json!({"motion_id": id, "choice": "yes"});
        let mut try_vote = |caller: Caller| {
            let answer = store.call(&caller, &allowed, "vote", &vote, at(9)).unwrap();
            assert_eq!(answer["success"], false, "{caller:?}");
            answer["error"].as_str().unwrap_or_default().to_owned()
        };
        for i in 0..12 {
            let name = |prefix: &str| Caller::new(&format!("{prefix}{i}"), MAIN).unwrap();
            assert!(try_vote(name("guest-")).contains("is a guest"));
            assert!(try_vote(name("s").proven(Proof::Owner)).contains("is a guest"));
            // A token that was issued after the motion was proposed.
            assert!(try_vote(name("t").proven(Proof::Token)).contains("when it was moved"));
            assert!(try_vote(name("ada")).contains("nothing shows"));
        }
        assert!(try_vote(Caller::new("ada", MAIN).unwrap()).contains("nothing shows"));
        assert!(try_vote(Caller::person("ada", MAIN).unwrap()).contains("account of an agent"));
        assert!(
            try_vote(Caller::new("Ada", MAIN).unwrap().proven(Proof::Token)).contains("looks like")
        );
        let elsewhere = Caller::new("ada", "side").unwrap().proven(Proof::Persona);
        assert!(try_vote(elsewhere).contains("there is no motion"));
        let decided = store.decide_motions(MAIN, 3, &allowed, at(10)).unwrap();
        assert_eq!(decided[0].state, MotionState::Rejected);
        assert_eq!(
            decided[0].outcome,
            "not passed by majority: 0 yes, 3 no, 0 abstained, of 4"
        );
    });
}

/// Votes in the table, however they got there, count only if their names are in the electorate.
#[test]
fn rows_of_strangers_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("forum.db");
    let place = Place::File(file.clone());
    let mut store = ForumStore::open(&place, Some(folder.path())).unwrap();
    let id = moved(&mut store, "max_tool_calls", "5");
    voted(&mut store, id, &[], &["ada", "bob"]);
    let db = rusqlite::Connection::open(&file).unwrap();
    for i in 0..9 {
        let sql = "INSERT INTO votes (motion_id, agent, choice, reason, at) VALUES (?1, ?2, 'yes', '', 0)";
        db.execute(sql, (id, format!("sock-{i}"))).unwrap();
    }
    let decided = store.decide_motions(MAIN, 3, &Settings::default(), at(1));
    let decided = decided.unwrap();
    assert!(
        decided[0].outcome.contains("0 yes, 2 no"),
        "{}",
        decided[0].outcome
    );
}

#[test]
fn motions_of_one_account_are_bounded_and_equal_ones_are_refused() {
    each(|site| {
        let mut store = site.open();
        let configured = Settings::default();
        store.sync_personas(MAIN, &["ada", "bob"], at(0)).unwrap();
        let set = |value: &str| json!({"kind": "set", "key": "skip_probability", "value": value, "title": value, "reason": "r"});
        let error =
            |answer: serde_json::Value| answer["error"].as_str().unwrap_or_default().to_owned();
        let begin = |store: &mut ForumStore, second| {
            let cards = Cards::new(&Settings::default(), 1, 0, vec![Candidate::named("ada")]);
            store
                .begin_cycle(MAIN, &cards, &draw(&cards), at(second))
                .unwrap()
        };
        assert_eq!(
            call(&mut store, "ada", "propose", set("0.3"))["motion_id"],
            1
        );
        let same = error(call(&mut store, "bob", "propose", set("0.30")));
        assert!(
            same.contains("motion 1 asks for the same and is open"),
            "{same}"
        );
        let again = error(call(&mut store, "ada", "propose", set("0.4")));
        assert!(again.contains("in this cycle"), "{again}");
        begin(&mut store, 20);
        let second = store.call(&persona("ada"), &configured, "propose", &set("0.4"), at(21));
        assert_eq!(second.unwrap()["success"], true);
        begin(&mut store, 30);
        let third = store.call(&persona("ada"), &configured, "propose", &set("0.5"), at(31));
        let third = error(third.unwrap());
        assert!(third.contains("2 open motions (1, 2)"), "{third}");
        store.decide_motions(MAIN, 4, &configured, at(40)).unwrap();
        let failed = error(call(&mut store, "bob", "propose", set("0.3")));
        assert!(
            failed.contains("failed: it can be moved again after cycle 6"),
            "{failed}"
        );
        for cycle in 0..5 {
            begin(&mut store, 50 + cycle);
        }
        let later = store.call(&persona("ada"), &configured, "propose", &set("0.3"), at(60));
        assert_eq!(later.unwrap()["success"], true);
    });
}

#[test]
fn nobody_acts_faster_than_the_settings_allow_outside_a_visit() {
    each(|site| {
        let mut store = site.open();
        let settings = Settings {
            posts_per_minute: 3,
            posts_per_day: 5,
            ..Settings::default()
        };
        let mut post = |caller: &Caller, second| {
            let arguments = json!({"title": "t", "body": "b"});
            let answer = store.call(caller, &settings, "create_thread", &arguments, at(second));
            let answer = answer.unwrap();
            answer["error"].as_str().map(str::to_owned)
        };
        let named = |name: &str, proof| Caller::new(name, MAIN).unwrap().proven(proof);
        let ada = named("ada", Proof::Token);
        for second in 0..3 {
            assert_eq!(post(&ada, second), None);
        }
        let error = post(&ada, 10).unwrap();
        assert!(
            error.contains("3 times a minute")
                && error.contains("posts_per_minute")
                && error.contains("in 51 s"),
            "{error}"
        );
        // Another account is not delayed; guests share one account, whatever they call themselves.
        assert_eq!(post(&named("bob", Proof::Token), 10), None);
        for name in ["guest-a", "guest-b", "s1"] {
            let proof = if name == "s1" {
                Proof::Owner
            } else {
                Proof::Nothing
            };
            assert_eq!(post(&named(name, proof), 10), None);
        }
        assert!(
            post(&named("guest-c", Proof::Nothing), 10)
                .unwrap()
                .contains("guests together")
        );
        assert!(post(&named("s2", Proof::Owner), 10).is_some());
        assert_eq!(post(&ada, 60), None);
        assert_eq!(post(&ada, 61), None);
        assert!(post(&ada, 3600).unwrap().contains("5 times a day"));
        assert_eq!(post(&ada, 86_400), None);
        // People are not limited.
        let king = Caller::person("king", MAIN).unwrap();
        assert!((0..9).all(|_| post(&king, 10).is_none()));
        let threads = store.threads(MAIN, 100).unwrap().len();
        assert_eq!(threads, 3 + 1 + 3 + 2 + 1 + 9);
    });
}

#[test]
fn a_motion_says_what_is_stored_and_not_what_a_command_asks_for() {
    each(|site| {
        let mut store = site.open();
        let configured = Settings::default();
        let run = Settings {
            skip_probability: 0.0,
            delay_secs_min: 0.0,
            delay_secs_max: 0.0,
            ..configured.clone()
        };
        let terms = CallSettings {
            run: &run,
            configured: &configured,
        };
        store
            .sync_personas(MAIN, &["ada", "bob", "cy"], at(0))
            .unwrap();
        let mut propose = |who: &str, key: &str, value: &str| {
            let wants =
                json!({"kind": "set", "key": key, "value": value, "title": key, "reason": "r"});
            store
                .call(&persona(who), terms, "propose", &wants, at(1))
                .unwrap()
        };
        let same = propose("ada", "skip_probability", "0.2");
        let why = same["error"].as_str().unwrap_or_default();
        assert!(
            why.contains("`skip_probability` is `0.2` already"),
            "{same}"
        );
        let invalid = propose("ada", "delay_secs_max", "5");
        let why = invalid["error"].as_str().unwrap_or_default();
        assert!(why.contains("shortest delay (30 s)"), "{invalid}");
        let other = propose("bob", "skip_probability", "0.1");
        let thread = other["thread_id"].as_i64().unwrap();
        let (_, posts) = store.thread(thread, 0, 9).unwrap();
        let body = &posts[0].body;
        assert!(
            body.contains("`skip_probability` = `0.1`, now `0.2`"),
            "{body}"
        );
    });
}

#[test]
fn an_elected_setting_is_an_entry_that_the_owner_undoes() {
    each(|site| {
        let mut store = site.open();
        let configured = Settings::default();
        let skip = |store: &mut ForumStore| {
            let settings = store.settings(MAIN, &configured).unwrap();
            settings.skip_probability
        };
        store
            .create_thread(MAIN, "Bees", &by("ada", "buzz"), at(0))
            .unwrap();
        let hide = Order::hide(1, true);
        store.give_order(MAIN, KING, &hide, "x", at(0)).unwrap();
        let mut ids = Vec::new();
        for value in ["0.5", "0.6"] {
            let id = moved(&mut store, "skip_probability", value);
            voted(&mut store, id, &["ada", "bob"], &[]);
            store.decide_motions(MAIN, 99, &configured, at(1)).unwrap();
            store.confirm_motion(id, KING, &configured, at(2)).unwrap();
            ids.push(id);
        }
        let listed = store.orders(MAIN, 9).unwrap();
        let lines: Vec<String> = listed.iter().map(|entry| entry.line()).collect();
        assert!(
            lines[0].contains("king set skip_probability to 0.6 (was 0.5), by motion 2: too often"),
            "{lines:?}"
        );
        assert!(
            lines[1].contains("0.5 (was as configured), by motion 1"),
            "{lines:?}"
        );
        let elected = store.elected(MAIN).unwrap();
        assert_eq!(elected, [("skip_probability", "0.6".to_owned())]);
        let states = |store: &mut ForumStore| {
            let state = |id: &i64| store.motion(*id).unwrap().0.state;
            ids.iter().map(state).collect::<Vec<_>>()
        };
        let refused = store.veto_motion(ids[1], KING, "no", at(3)).unwrap_err();
        assert!(refused.to_string().contains("kd forum undo 3"), "{refused}");
        // Without a number, the newest effect.
        store.undo_order(MAIN, KING, None, "", at(4)).unwrap();
        assert_eq!(skip(&mut store), 0.5);
        use MotionState::{InForce, Undone};
        assert_eq!(states(&mut store), [InForce, Undone]);
        store.undo_order(MAIN, KING, None, "", at(5)).unwrap();
        assert_eq!(skip(&mut store), 0.2);
        assert!(store.elected(MAIN).unwrap().is_empty());
        assert_eq!(states(&mut store), [Undone, Undone]);
        // An undo can be undone.
        let newest = store.orders(MAIN, 1).unwrap()[0].id;
        store
            .undo_order(MAIN, KING, Some(newest), "", at(6))
            .unwrap();
        assert_eq!(skip(&mut store), 0.5);
        assert_eq!(states(&mut store), [InForce, Undone]);
        assert!(
            store
                .undo_order(MAIN, "ada", Some(newest), "", at(7))
                .is_err()
        );
    });
}

#[test]
fn a_setting_elected_before_settings_had_entries_is_undone_too() {
    each(|site| {
        let mut store = site.open();
        let configured = Settings::default();
        let id = moved(&mut store, "skip_probability", "0.5");
        voted(&mut store, id, &["ada", "bob"], &[]);
        store.decide_motions(MAIN, 99, &configured, at(1)).unwrap();
        store.confirm_motion(id, KING, &configured, at(2)).unwrap();
        tamper(site, "DELETE FROM orders");
        assert_eq!(store.orders(MAIN, 9).unwrap().len(), 1);
        let entry = store.undo_order(MAIN, KING, None, "", at(3)).unwrap();
        assert!(
            entry.line().contains("back to the configured value"),
            "{}",
            entry.line()
        );
        assert_eq!(store.settings(MAIN, &configured).unwrap(), configured);
    });
}

#[test]
fn a_decision_says_why_it_is_refused_and_needs_a_reason() {
    each(|site| {
        let mut store = site.open();
        let configured = Settings::default();
        let id = moved(&mut store, "max_tool_calls", "5");
        let confirm = |store: &mut ForumStore| {
            let done = store.confirm_motion(id, KING, &configured, at(3));
            done.map_err(|error| error.to_string())
        };
        let open = confirm(&mut store).unwrap_err();
        assert_eq!(open, "motion 1 is still open for votes");
        for reason in ["", " \n"] {
            let refused = store.veto_motion(id, KING, reason, at(2)).unwrap_err();
            assert!(
                refused.to_string().contains("a reason is missing"),
                "{refused}"
            );
        }
        voted(&mut store, id, &["ada", "bob"], &[]);
        store.decide_motions(MAIN, 3, &configured, at(2)).unwrap();
        assert_eq!(confirm(&mut store).unwrap().state, MotionState::InForce);
        assert_eq!(
            confirm(&mut store).unwrap_err(),
            "motion 1 is in force already"
        );
    });
}
