//! Erasing: the text is nowhere, in tables, files or on a server's disk; the audit succeeds and says what was erased.

use crate::chain::{AGENTS, audited, draw_next, lead, live, live_otherwise};
use crate::servers::{Site, each, each_file};
use crate::talk::{at, by, call};
use kd_core::config::forum::Settings;
use kd_core::names::KING;
use kd_forum::MAIN;
use kd_forum::account::Proof;
use kd_forum::order::Order;
use kd_forum::words::{Outcome, SearchIn};
use kd_sql::forum::{
    Caller, Erased, ForumError, ForumStore, Governance, Place, Posts, Repeat, RunEnd,
};
use serde_json::json;
use std::path::Path;
use std::process::Command;

const MARKER: &str = "zweimalheron7731";

fn repeats(text: &str) -> bool {
    text.to_lowercase().contains(MARKER)
}

fn body() -> String {
    format!("The code is {MARKER}, tell nobody.")
}

fn erase(store: &mut ForumStore, posts: Posts<'_>, dry: bool) -> Erased {
    store.erase(posts, &repeats, KING, at(900), dry).unwrap()
}

/// Returns the files below a folder that hold the marker.
fn holding(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path));
        } else if holds(&path) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Returns whether a file that can be read holds the marker.
fn holds(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    let bytes = bytes.to_ascii_lowercase();
    let mut parts = bytes.windows(MARKER.len());
    parts.any(|part| part == MARKER.as_bytes())
}

/// Returns the files of a server's tables and indexes that hold the marker, if its folder can be read: not its
/// write-ahead log.
fn holding_on_server(url: &str) -> Vec<String> {
    let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
    client.batch_execute("CHECKPOINT").unwrap();
    let row = client.query_one("SHOW data_directory", &[]).unwrap();
    let folder = row.get::<_, String>(0);
    let sql = "SELECT pg_relation_filepath(c.oid) FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace \
         AND c.relkind IN ('r', 'i') UNION SELECT pg_relation_filepath(c.reltoastrelid) FROM pg_class c \
         WHERE c.relnamespace = current_schema()::regnamespace AND c.reltoastrelid <> 0";
    let paths = client.query(sql, &[]).unwrap();
    let paths = paths
        .iter()
        .map(|row| Path::new(&folder).join(row.get::<_, String>(0)));
    let paths: Vec<_> = paths.collect();
    assert!(paths.len() > 30, "{paths:?}");
    paths
        .into_iter()
        .filter(|path| holds(path))
        .map(|path| path.display().to_string())
        .collect()
}

fn holding_at(site: &Site, store: &mut ForumStore) -> Vec<String> {
    let mut lines = Vec::new();
    store.export(&mut lines).unwrap();
    let text = String::from_utf8(lines).unwrap().to_lowercase();
    let mut found: Vec<String> = text
        .lines()
        .filter(|l| l.contains(MARKER))
        .map(str::to_owned)
        .collect();
    found.extend(match &site.place {
        Place::File(path) => holding(path.parent().unwrap()),
        Place::Server(url) => holding_on_server(url),
    });
    found
}

/// Fills a forum in which every place for text holds the marker.
fn fill(store: &mut ForumStore) -> (i64, i64) {
    let mut leader = lead(store);
    live(store, &mut leader, 1);
    // In a cycle of chance nobody may have replied.
    let other = by("dan", "Other words.");
    store.create_thread(MAIN, "Ants", &other, at(45)).unwrap();
    let (thread, opening) = store
        .create_thread(
            MAIN,
            &format!("About {MARKER}"),
            &by("ada", &body()),
            at(50),
        )
        .unwrap();
    let quote = json!({"thread_id": thread.id, "body": format!("> {}\nso?", body()), "quote_post_id": opening.id});
    assert_eq!(
        call(store, "bob", "reply_to_thread", quote)["success"],
        true
    );
    for (tool, arguments) in [
        ("remember", json!({"text": body()})),
        ("write_profile", json!({"text": body()})),
    ] {
        assert_eq!(
            call(store, "cy", tool, arguments)["success"],
            true,
            "{tool}"
        );
    }
    store
        .give_order(
            MAIN,
            KING,
            &Order::charter(MAIN, &body()).unwrap(),
            &body(),
            at(60),
        )
        .unwrap();
    // A cycle whose runs, motions and votes hold it: its seal covers them.
    let settings = Settings::default();
    let cycle = draw_next(store, &mut leader, &settings, &AGENTS, None);
    for turn in &cycle.plan.turns {
        let run = store
            .begin_run(Some(cycle.id), MAIN, &turn.agent, at(70))
            .unwrap()
            .unwrap();
        let caller = Caller {
            run: Some(run),
            ..Caller::new(&turn.agent, MAIN)
                .unwrap()
                .proven(Proof::Persona)
        };
        let motion = json!({"kind": "text", "title": format!("On {MARKER} {}", turn.agent), "value": body(), "reason": body()});
        let _ = store.call(&caller, &settings, "propose", &motion, at(71));
        let vote = json!({"motion_id": 1, "choice": "no", "reason": body()});
        let _ = store.call(&caller, &settings, "vote", &vote, at(72));
        let end = RunEnd {
            outcome: Outcome::Acted,
            reason: Some(body()),
            claim: None,
            tokens: 1,
        };
        store.end_run(run, &end, at(73)).unwrap();
    }
    store
        .finish_cycle(&mut leader, cycle.id, 1_000, at(74))
        .unwrap();
    live_otherwise(store, &mut leader);
    // An edited post: the first text is in an unused page.
    let (_, edited) = store
        .create_thread(MAIN, "Ants", &by("dan", &body()), at(80))
        .unwrap();
    store
        .edit_post(edited.id, "dan", "Nothing.", at(81))
        .unwrap();
    (thread.id, opening.id)
}

#[test]
fn an_erased_text_is_nowhere_and_the_audit_succeeds() {
    each(|site| {
        let mut store = site.open();
        let (thread, opening) = fill(&mut store);
        let before = audited(&mut store);
        assert_eq!(before.faults, Vec::new());
        assert!(!holding_at(site, &mut store).is_empty());
        let dry = erase(&mut store, Posts::Repeating, true);
        assert!(dry.posts.contains(&opening) && dry.texts > 8, "{dry:?}");
        assert_eq!(
            audited(&mut store).erased,
            Vec::new(),
            "a dry run changes nothing"
        );
        let done = erase(&mut store, Posts::Repeating, false);
        assert_eq!(done, dry);
        assert_eq!(holding_at(site, &mut store), Vec::<String>::new());
        // The place, the author and the time of a post stay, and everything works.
        let post = store.post(opening).unwrap();
        assert_eq!(
            (post.author.as_str(), post.body.as_str(), post.erased_at),
            ("ada", "", Some(at(900)))
        );
        assert_eq!(store.thread(thread, 0, 9).unwrap().0.title, "[forgotten]");
        assert_eq!(
            store.search(MAIN, MARKER, SearchIn::All, 9).unwrap(),
            Vec::new()
        );
        assert!(
            !store
                .search(MAIN, "words", SearchIn::All, 9)
                .unwrap()
                .is_empty()
        );
        let after = audited(&mut store);
        assert_eq!(after.faults, Vec::new());
        assert_eq!((after.cycles, &after.next), (before.cycles, &before.next));
        assert_eq!(after.shortened, vec![2], "{after:?}");
        let [day] = after.erased.as_slice() else {
            panic!("{:?}", after.erased)
        };
        assert_eq!(
            (day.by.as_str(), day.posts, day.texts),
            (KING, done.posts.len(), done.texts)
        );
        let line = store.log_tail(MAIN, 1).unwrap().pop().unwrap();
        assert!(
            line.event.text().starts_with("king erased posts "),
            "{}",
            line.event.text()
        );
        let again = erase(&mut store, Posts::Repeating, false);
        assert!(again.is_nothing(), "{again:?}");
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 1);
        assert_eq!(audited(&mut store).faults, Vec::new());
    });
}

#[test]
fn a_change_beside_an_erased_post_is_still_found() {
    each_file(|site, file, _| {
        let mut store = site.open();
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 3);
        let done = store
            .erase(Posts::These(MAIN, &[2]), &|_| false, KING, at(900), false)
            .unwrap();
        assert_eq!((done.posts, done.texts), (vec![2], 0));
        let all = audited(&mut store);
        assert_eq!((all.faults, all.shortened), (Vec::new(), Vec::new()));
        drop(store);
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/forum/audit.py");
        let audit = || {
            Command::new("python3")
                .arg(&python)
                .arg(file)
                .output()
                .expect("python3")
                .status
                .success()
        };
        assert!(audit());
        let db = rusqlite::Connection::open(file).unwrap();
        db.execute("UPDATE first_words SET digest = replace(digest, substr(digest, 1, 2), '0f') WHERE post_id = 2", []).unwrap();
        drop(db);
        assert!(!audited(&mut site.open()).faults.is_empty());
        assert!(!audit());
    });
}

#[test]
fn named_posts_go_with_their_title_and_motion_and_others_are_reported() {
    each(|site| {
        let mut store = site.open();
        let (_, opening) = fill(&mut store);
        let (_, other) = store
            .create_thread("research", "x", &by("ada", "y"), at(90))
            .unwrap();
        for wrong in [other.id, 999] {
            let error = store.erase(Posts::These(MAIN, &[wrong]), &repeats, KING, at(900), false);
            assert!(
                matches!(error, Err(ForumError::Missing { .. })),
                "{error:?}"
            );
        }
        let dry = erase(&mut store, Posts::These(MAIN, &[opening]), true);
        let done = erase(&mut store, Posts::These(MAIN, &[opening]), false);
        assert_eq!(done, dry);
        assert_eq!(done.posts, vec![opening]);
        assert!(
            done.quotes.contains(&(opening + 1)) && !done.quotes.contains(&opening),
            "{done:?}"
        );
        assert!(store.post(opening + 1).unwrap().body.contains(MARKER));
        assert_eq!(audited(&mut store).faults, Vec::new());
        let again = erase(&mut store, Posts::These(MAIN, &[opening]), false);
        assert_eq!((again.posts.len(), again.texts), (0, 0));
        // No caller can write, edit or delete it afterwards.
        for (who, tool) in [("ada", "edit_post"), ("ada", "delete_post")] {
            let said = call(
                &mut store,
                who,
                tool,
                json!({"post_id": opening, "body": "back"}),
            );
            assert_eq!(said["success"], false, "{tool}");
        }
    });
}

#[test]
fn an_export_keeps_what_was_erased() {
    each(|site| {
        let mut store = site.open();
        let (_, opening) = fill(&mut store);
        let done = erase(&mut store, Posts::Repeating, false);
        let mut file = Vec::new();
        store.export(&mut file).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = Place::File(folder.path().join("copy.db"));
        let mut copy = ForumStore::open(&place, None).unwrap();
        copy.import(&mut file.as_slice(), Governance::InForce, Repeat::Refused)
            .unwrap();
        assert_eq!(copy.post(opening).unwrap().erased_at, Some(at(900)));
        let all = audited(&mut copy);
        assert_eq!((all.faults, all.shortened), (Vec::new(), vec![2]));
        assert_eq!(
            (all.erased[0].posts, all.erased[0].texts),
            (done.posts.len(), done.texts)
        );
        let export = folder.path().join("forum.jsonl");
        std::fs::write(&export, &file).unwrap();
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/forum/audit.py");
        let said = Command::new("python3")
            .arg(python)
            .arg(&export)
            .output()
            .expect("python3");
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success(), "{text}");
        assert!(text.contains("\"not_proved\": [2]"), "{text}");
    });
}

#[test]
fn no_tool_of_an_agent_erases() {
    for tool in kd_forum::tools::TOOLS {
        assert!(
            !tool.name.contains("erase") && !tool.name.contains("forget"),
            "{}",
            tool.name
        );
    }
    each(|site| {
        let mut store = site.open();
        fill(&mut store);
        for tool in ["erase", "forget", "erase_post", "forget_post"] {
            assert_eq!(
                call(&mut store, "ada", tool, json!({"post_id": 1}))["success"],
                false
            );
        }
        assert_eq!(audited(&mut store).erased, Vec::new());
    });
}

/// What somebody does who writes the database, to pass a change for an erasure; the last ones change what is left of one.
const PRETENDED: &[(&str, bool)] = &[
    (
        "UPDATE runs SET claim = 'post', reason = 'x' WHERE id = 1; \
      INSERT INTO erasures (forum, at, actor, what, item, purged) SELECT forum, 1, 'king', 'run', 1, 1 FROM runs WHERE id = 1",
        false,
    ),
    (
        "UPDATE runs SET outcome = 'failed' WHERE id = 1; \
      INSERT INTO erasures (forum, at, actor, what, item, purged) SELECT forum, 1, 'king', 'cycle', cycle_id, 1 FROM runs WHERE id = 1",
        false,
    ),
    (
        "UPDATE motions SET title = '[forgotten]'; \
      INSERT INTO erasures (forum, at, actor, what, item, purged) SELECT forum, 1, 'king', 'motion', id, 1 FROM motions",
        false,
    ),
    (
        "UPDATE runs SET tokens = tokens + 1 WHERE reason = '[forgotten]'",
        true,
    ),
    (
        "UPDATE runs SET reason = 'words of somebody else' WHERE reason = '[forgotten]'",
        true,
    ),
    (
        "UPDATE motions SET title = 'another' WHERE title = '[forgotten]'",
        true,
    ),
];

#[test]
fn a_change_does_not_pass_for_an_erasure() {
    for (change, is_erased) in PRETENDED {
        each_file(|site, file, _| {
            let mut store = site.open();
            fill(&mut store);
            if *is_erased {
                erase(&mut store, Posts::Repeating, false);
            }
            assert_eq!(audited(&mut store).faults, Vec::new(), "{change}");
            drop(store);
            let db = rusqlite::Connection::open(file).unwrap();
            db.execute_batch(change).unwrap();
            assert!(db.changes() > 0, "{change}");
            drop(db);
            let mut store = site.open();
            let all = audited(&mut store);
            assert!(
                all.faults
                    .iter()
                    .any(|(_, why)| why.contains("does not fit its seal")),
                "{change}: {all:?}"
            );
            // Nor does an erasure that follows hide it.
            erase(&mut store, Posts::Repeating, false);
            assert_ne!(audited(&mut store).faults, Vec::new(), "{change}");
        });
    }
}

/// The charter that held the text, and an order on an erased post, are not restored.
#[test]
fn what_was_erased_is_not_restored_by_an_undo() {
    each(|site| {
        let mut store = site.open();
        let (_, post) = store
            .create_thread(MAIN, "Codes", &by("ada", &body()), at(1))
            .unwrap();
        for (n, text) in ["Bees.", &body(), "Ants."].into_iter().enumerate() {
            let order = Order::charter(MAIN, text).unwrap();
            store
                .give_order(MAIN, KING, &order, "r", at(2 + n as i64))
                .unwrap();
        }
        store
            .give_order(MAIN, KING, &Order::hide(post.id, true), "bad", at(9))
            .unwrap();
        let newest = store.orders(MAIN, 9).unwrap();
        erase(&mut store, Posts::Repeating, false);
        let error = store.undo_order(MAIN, KING, Some(newest[1].id), "", at(901));
        assert!(error.unwrap_err().to_string().contains("was erased"));
        // The newest that can be undone is that before the erased text.
        let error = store.undo_order(MAIN, KING, None, "", at(902)).unwrap_err();
        assert!(error.to_string().contains("changed"), "{error}");
        assert!(!store.charter(MAIN).unwrap().contains("[forgotten]"));
    });
}

#[test]
fn what_was_erased_before_the_record_was_moved_is_no_fault() {
    each_file(|site, file, base| {
        let mut store = site.open();
        fill(&mut store);
        erase(&mut store, Posts::Repeating, false);
        drop(store);
        let moved = base.join("moved.db");
        std::fs::rename(file, &moved).unwrap();
        let place = Place::File(moved);
        let mut store = ForumStore::open(&place, Some(&site.state())).unwrap();
        assert_eq!(audited(&mut store).faults, Vec::new());
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 2);
        let all = audited(&mut store);
        assert_eq!((all.faults, all.shortened), (Vec::new(), vec![2]));
    });
}
