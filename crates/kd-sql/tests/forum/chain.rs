//! The chain of draws: nobody can predict a cycle, a killed one continues, a lost secret is recorded, and a changed
//! byte of the record is detected.

use crate::servers::{Site, each};
use crate::talk::at;
use kd_core::config::forum::Settings;
use kd_forum::MAIN;
use kd_forum::account::Proof;
use kd_forum::cards::{Candidate, Seed};
use kd_forum::chain::Origin;
use kd_forum::cycle::{Plan, draw};
use kd_forum::fairness::Look;
use kd_forum::words::Outcome;
use kd_sql::forum::{
    Anchor, Audited, Caller, CycleRecord, ForumStore, Governance, Leader, Place, Repeat, RunEnd,
};
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) const AGENTS: [&str; 4] = ["ada", "bob", "cy", "dan"];

/// Draws the next cycle of these agents.
pub(crate) fn draw_next(
    store: &mut ForumStore,
    leader: &mut Leader,
    settings: &Settings,
    names: &[&str],
    seed: Option<u64>,
) -> CycleRecord {
    let candidates: Vec<Candidate> = names
        .iter()
        .map(|name| store.candidate(name).unwrap())
        .collect();
    let drawn = store.draw_cycle(leader, settings, candidates, seed, at(0));
    drawn.unwrap().record
}

/// Gives every agent a turn: a thread first, replies later.
pub(crate) fn take_turns(store: &mut ForumStore, settings: &Settings, cycle: &CycleRecord) {
    for (turn, number) in cycle.plan.turns.iter().zip(2..) {
        let run = store.begin_run(Some(cycle.id), MAIN, &turn.agent, at(1));
        let Some(run) = run.unwrap() else { continue };
        // No two posts have the same time.
        let now = at(100 * cycle.number + number);
        let caller = Caller {
            run: Some(run),
            ..Caller::new(&turn.agent, MAIN)
                .unwrap()
                .proven(Proof::Persona)
        };
        let (tool, arguments) = match store.threads(MAIN, 1).unwrap().first() {
            None => ("create_thread", json!({"title": "Bees", "body": "Why?"})),
            Some(thread) => (
                "reply_to_thread",
                json!({"thread_id": thread.id, "body": format!("words of {} in {}", turn.agent, cycle.number)}),
            ),
        };
        let said = store.call(&caller, settings, tool, &arguments, now);
        assert_eq!(said.unwrap()["success"], true);
        let end = RunEnd {
            outcome: Outcome::Acted,
            reason: None,
            claim: Some((tool.into(), true)),
            tokens: 100,
        };
        store.end_run(run, &end, at(3)).unwrap();
    }
}

pub(crate) fn live(store: &mut ForumStore, leader: &mut Leader, cycles: usize) {
    let settings = Settings::default();
    for _ in 0..cycles {
        let cycle = draw_next(store, leader, &settings, &AGENTS, None);
        take_turns(store, &settings, &cycle);
        store.finish_cycle(leader, cycle.id, 1_000, at(4)).unwrap();
    }
}

/// Plays a cycle in which each agent proposes, replies with a quote, makes a claim or skips.
pub(crate) fn live_otherwise(store: &mut ForumStore, leader: &mut Leader) {
    let settings = Settings::default();
    let cycle = draw_next(store, leader, &settings, &AGENTS, None);
    for (number, turn) in cycle.plan.turns.iter().enumerate() {
        let run = store.begin_run(Some(cycle.id), MAIN, &turn.agent, at(1));
        let run = run.unwrap().unwrap();
        let now = at(100 * cycle.number + number as i64);
        let caller = Caller {
            run: Some(run),
            ..Caller::new(&turn.agent, MAIN)
                .unwrap()
                .proven(Proof::Persona)
        };
        let title = format!("Motion of {}", turn.agent);
        let calls = [
            (
                "propose",
                json!({"kind": "text", "title": title, "value": title, "reason": "r"}),
            ),
            (
                "reply_to_thread",
                json!({"thread_id": 1, "body": "so?", "quote_post_id": 1}),
            ),
            ("finish", json!({"did": "skip", "reason": "nothing to say"})),
        ];
        for (tool, arguments) in calls.iter().cycle().skip(number).take(2) {
            // A refused call is not recorded.
            let _ = store.call(&caller, &settings, tool, arguments, now);
        }
        let end = RunEnd {
            outcome: if number == 0 {
                Outcome::Skipped
            } else {
                Outcome::Acted
            },
            reason: (number < 2).then(|| "enough".to_owned()),
            claim: None,
            tokens: 70,
        };
        store.end_run(run, &end, at(3)).unwrap();
    }
    store.finish_cycle(leader, cycle.id, 1_000, at(4)).unwrap();
}

pub(crate) fn audited(store: &mut ForumStore) -> Audited {
    store.audit(MAIN, &mut |_| {}).unwrap()
}

/// Returns the file with the secrets of a site's forum.
pub(crate) fn secrets(site: &Site) -> PathBuf {
    let folder = site.state().join("forums");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
    assert_eq!(files.len(), 1);
    files.remove(0).unwrap().path()
}

#[test]
fn each_cycle_has_a_fresh_secret_that_is_committed_to_before_and_revealed_after() {
    each(|site| {
        let mut store = site.open();
        let mut leader = lead(&mut store);
        let settings = Settings::default();
        let mut promised: Option<String> = None;
        let mut seeds = Vec::new();
        for _ in 0..5 {
            let open = draw_next(&mut store, &mut leader, &settings, &AGENTS, None);
            let link = open.link.clone().unwrap();
            assert_eq!((&link.secret, open.revealed()), (&None, None), "hidden");
            assert_eq!(open.cards.seed, Seed::Hidden);
            if let Some(promised) = promised {
                assert_eq!(link.commitment.as_ref(), Some(&promised));
            }
            promised = Some(link.next.clone());
            let next = store.next_commitment(MAIN).unwrap();
            assert_eq!(next, Some((link.number + 1, link.next)));
            take_turns(&mut store, &settings, &open);
            let done = store.finish_cycle(&mut leader, open.id, 1, at(4)).unwrap();
            let cards = done.revealed().expect("revealed");
            assert_eq!(draw(&cards), done.plan);
            seeds.push(cards.seed.to_string());
            assert_eq!(done.foreseeable(), None);
        }
        seeds.sort();
        seeds.dedup();
        assert_eq!(seeds.len(), 5, "each its own");
        let all = audited(&mut store);
        assert_eq!((all.cycles, all.committed, all.faults), (5, 5, Vec::new()));
        assert_eq!(all.anchor, Some(Anchor::Found));
    });
}

#[test]
fn only_the_leader_knows_the_order_of_a_running_cycle() {
    each(|site| {
        let mut store = site.open();
        let mut leader = lead(&mut store);
        let settings = Settings::default();
        for seed in [None, None, Some(7), None] {
            let drawn = draw_next(&mut store, &mut leader, &settings, &AGENTS, seed);
            assert_eq!(drawn.plan.order.len(), AGENTS.len());
            let recorded = store.open_cycle(MAIN).unwrap().unwrap();
            match seed {
                None => assert_eq!(recorded.plan, Plan::default(), "in the database"),
                Some(_) => assert_eq!(recorded.plan, drawn.plan, "foreseeable"),
            }
            let mut lines = Vec::new();
            store.export(&mut lines).unwrap();
            let lines = String::from_utf8(lines).unwrap();
            let line = lines.lines().rfind(|l| l.contains(r#""record":"cycle""#));
            assert_eq!(line.unwrap().contains(r#""order":[]"#), seed.is_none());
            // A new process of the same user continues with the same order.
            assert_eq!(ForumStore::plan(&leader, &recorded), drawn.plan);
            let audited = store.audit(MAIN, &mut |_| {}).unwrap();
            assert_eq!(audited.faults, Vec::new());
            take_turns(&mut store, &settings, &drawn);
            let done = store.finish_cycle(&mut leader, drawn.id, 1, at(4)).unwrap();
            assert_eq!(done.plan, drawn.plan, "revealed");
        }
        assert_eq!(audited(&mut store).faults, Vec::new());
    });
}

#[test]
fn the_secrets_are_in_a_private_file_and_nowhere_in_the_database() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forum.db");
    let state = folder.path().join("state");
    let place = Place::File(path.clone());
    let mut store = ForumStore::open(&place, Some(&state)).unwrap();
    let mut leader = lead(&mut store);
    live(&mut store, &mut leader, 2);
    let open = draw_next(&mut store, &mut leader, &Settings::default(), &AGENTS, None);
    let file = std::fs::read_dir(state.join("forums")).unwrap().next();
    let file = file.unwrap().unwrap().path();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&state.join("forums"))), (0o600, 0o700));
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let kept = kept["secrets"].as_array().unwrap().clone();
    assert_eq!(kept.len(), 2, "of the open cycle and of the next");
    let bytes: Vec<u8> = ["", "-wal"]
        .iter()
        .flat_map(|end| std::fs::read(format!("{}{end}", path.display())).unwrap_or_default())
        .collect();
    for secret in &kept {
        let secret = secret["secret"].as_str().unwrap();
        assert!(!bytes.windows(64).any(|w| w == secret.as_bytes()));
    }
    assert!(!format!("{leader:?}").contains(kept[0]["secret"].as_str().unwrap()));
    drop(store);
    // A copy of the database continues differently: it has no secret, and its record says so.
    let copy = folder.path().join("copy.db");
    for end in ["", "-wal"] {
        let _ = std::fs::copy(
            format!("{}{end}", path.display()),
            format!("{}{end}", copy.display()),
        );
    }
    let mut copied = ForumStore::open(&Place::File(copy), Some(&state)).unwrap();
    let mut other = lead(&mut copied);
    assert!(!ForumStore::can_reveal(&other, &open));
    let copied_open = copied.open_cycle(MAIN).unwrap().unwrap();
    assert_eq!(
        ForumStore::plan(&other, &copied_open),
        Plan::default(),
        "a copy does not know the order"
    );
    copied
        .void_cycle(&mut other, open.id, "no secret", at(4))
        .unwrap();
    live(&mut copied, &mut other, 1);
    let all = audited(&mut copied);
    assert_eq!((all.void, all.faults.len()), (1, 0), "{:?}", all.faults);
}

#[test]
fn a_killed_cycle_goes_on_with_the_same_order_and_is_revealed() {
    each(|site| {
        let settings = Settings::default();
        let open = {
            let mut store = site.open();
            let mut leader = lead(&mut store);
            live(&mut store, &mut leader, 1);
            draw_next(&mut store, &mut leader, &settings, &AGENTS, None)
        };
        // The process dies here.
        let mut store = site.open();
        let mut leader = lead(&mut store);
        let mut again = store.open_cycle(MAIN).unwrap().unwrap();
        again.plan = ForumStore::plan(&leader, &again);
        assert_eq!(again, open);
        assert!(ForumStore::can_reveal(&leader, &again));
        take_turns(&mut store, &settings, &again);
        store.finish_cycle(&mut leader, again.id, 1, at(4)).unwrap();
        live(&mut store, &mut leader, 1);
        let all = audited(&mut store);
        assert_eq!((all.committed, all.void, all.faults.len()), (3, 0, 0));
    });
}

/// A PostgreSQL server needs a moment to notice that a connection is gone.
pub(crate) fn lead(store: &mut ForumStore) -> Leader {
    for _ in 0..2_000 {
        if let Ok(leader) = store.lead(MAIN) {
            return leader;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("nobody leads and nobody can");
}

#[test]
fn a_lost_secret_makes_a_void_cycle_that_the_record_tells() {
    each(|site| {
        let settings = Settings::default();
        let mut store = site.open();
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 2);
        drop((leader, store));
        // Lost between two cycles.
        std::fs::remove_file(secrets(site)).unwrap();
        let mut store = site.open();
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 1);
        let third = store.cycle(MAIN, 3).unwrap();
        assert_eq!(third.link.as_ref().unwrap().origin, Origin::Lost);
        assert!(third.void().unwrap().contains("lost") && third.plan.turns.is_empty());
        // Lost while a cycle is open.
        let open = draw_next(&mut store, &mut leader, &settings, &AGENTS, None);
        drop((leader, store));
        std::fs::write(secrets(site), "nonsense").unwrap();
        let mut store = site.open();
        let mut leader = lead(&mut store);
        assert!(!ForumStore::can_reveal(&leader, &open));
        take_turns(&mut store, &settings, &open);
        let void = store.finish_cycle(&mut leader, open.id, 1, at(4)).unwrap();
        assert!(void.void().is_some() && void.link.unwrap().secret.is_none());
        live(&mut store, &mut leader, 1);
        let all = audited(&mut store);
        assert_eq!((all.cycles, all.void, all.committed), (6, 2, 5));
        assert_eq!(all.faults, Vec::new());
    });
}

#[test]
fn a_cycle_with_a_seed_and_one_of_an_older_version_are_foreseeable() {
    each(|site| {
        let settings = Settings::default();
        let mut store = site.open();
        let cards = kd_forum::cards::Cards::new(&settings, 11, 0, Vec::new());
        let old = store
            .begin_cycle(MAIN, &cards, &draw(&cards), at(0))
            .unwrap();
        store.end_cycle(old.id, 1, at(1)).unwrap();
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 1);
        let seeded = draw_next(&mut store, &mut leader, &settings, &AGENTS, Some(11));
        take_turns(&mut store, &settings, &seeded);
        store
            .finish_cycle(&mut leader, seeded.id, 1, at(4))
            .unwrap();
        live(&mut store, &mut leader, 1);
        let why: Vec<_> = store
            .cycles(MAIN, 9)
            .unwrap()
            .iter()
            .map(CycleRecord::foreseeable)
            .collect();
        assert_eq!(why, [Some("old record"), None, Some("--seed"), None]);
        let all = audited(&mut store);
        assert_eq!((all.old, all.seeded, all.committed), (1, 1, 2));
        assert_eq!(all.faults, Vec::new());
    });
}

#[test]
fn a_williams_block_goes_on_over_seeds_of_their_own() {
    each(|site| {
        let settings = Settings {
            scheduler: "williams".into(),
            ..Settings::default()
        };
        let mut store = site.open();
        let mut leader = lead(&mut store);
        // Two blocks of four.
        let mut places = vec![[0; 4]; 4];
        for _ in 0..8 {
            let cycle = draw_next(&mut store, &mut leader, &settings, &AGENTS, None);
            for (place, name) in cycle.plan.order.iter().enumerate() {
                let who = AGENTS.iter().position(|n| n == name).unwrap();
                places[who][place] += 1;
            }
            take_turns(&mut store, &settings, &cycle);
            store.finish_cycle(&mut leader, cycle.id, 1, at(4)).unwrap();
        }
        assert_eq!(places, vec![[2; 4]; 4], "each has each place equally often");
        assert_eq!(audited(&mut store).faults, Vec::new());
    });
}

#[test]
fn posts_may_be_edited_and_an_export_is_audited_as_well() {
    each(|site| {
        let mut store = site.open();
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 4);
        let posts = store.posts_after(MAIN, 0, 3).unwrap();
        let (one, two) = (&posts[1], &posts[2]);
        store
            .edit_post(one.id, &one.author, "other words", at(5))
            .unwrap();
        store
            .edit_post(one.id, &one.author, "still others", at(6))
            .unwrap();
        store
            .delete_post(two.id, &two.author, false, at(6))
            .unwrap();
        live(&mut store, &mut leader, 1);
        assert_eq!(audited(&mut store).faults, Vec::new());
        let mut lines = Vec::new();
        store.export(&mut lines).unwrap();
        drop((leader, store));
        each(|other| {
            let mut imported = other.open();
            imported
                .import(&mut lines.as_slice(), Governance::InForce, Repeat::Refused)
                .unwrap();
            let all = audited(&mut imported);
            assert_eq!(
                (all.committed, all.old, all.faults.len()),
                (5, 0, 0),
                "{:?}",
                all.faults
            );
            let mut leader = lead(&mut imported);
            live(&mut imported, &mut leader, 1);
            assert_eq!(
                audited(&mut imported).faults,
                Vec::new(),
                "a separate chain"
            );
        });
    });
}

/// The record: tables with their key and the columns that the audit covers.
pub(crate) const RECORD: &[(&str, &str, &[&str])] = &[
    (
        "cycles",
        "id",
        &[
            "number",
            "cards",
            "plan",
            "started_at",
            "ended_at",
            "interval_ms",
        ],
    ),
    (
        "links",
        "cycle_id",
        &[
            "chain",
            "number",
            "origin",
            "commitment",
            "after_post",
            "through_post",
            "posts",
            "previous",
            "next",
            "secret",
            "void",
            "renewed",
            "seal",
        ],
    ),
    (
        "runs",
        "id",
        &[
            "cycle_id",
            "agent",
            "started_at",
            "ended_at",
            "outcome",
            "deeds",
            "reason",
            "claim",
            "claim_agrees",
            "calls",
            "tokens",
        ],
    ),
    (
        "posts",
        "id",
        &[
            "thread_id",
            "author",
            "body",
            "created_at",
            "quote_post_id",
            "run_id",
        ],
    ),
    ("first_words", "post_id", &["digest"]),
    ("chains", "forum", &["chain", "commitment", "after_post"]),
];

#[test]
fn a_change_of_any_column_of_the_record_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forum.db");
    let state = folder.path().join("state");
    let place = Place::File(path.clone());
    let mut store = ForumStore::open(&place, Some(&state)).unwrap();
    let mut leader = lead(&mut store);
    live(&mut store, &mut leader, 3);
    let post = store.posts_after(MAIN, 0, 2).unwrap().remove(1);
    store
        .edit_post(post.id, &post.author, "other words", at(5))
        .unwrap();
    live(&mut store, &mut leader, 2);
    assert_eq!(audited(&mut store).faults, Vec::new());
    drop((store, leader));
    let direct = rusqlite::Connection::open(&path).unwrap();
    direct.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    for (table, key, columns) in RECORD {
        for column in *columns {
            // One of the rows with a value in this column.
            let row: Option<(String, rusqlite::types::Value)> = direct
                .prepare(&format!(
                    "SELECT CAST({key} AS TEXT), {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY {key}"
                ))
                .unwrap()
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
                .unwrap()
                .map(Result::unwrap)
                .nth(match *table {
                    "chains" | "first_words" => 0,
                    // Not the edited post: of that only its original text is sealed.
                    "posts" => 3,
                    _ => 1,
                });
            let put = |value: &dyn rusqlite::ToSql, id: &str| {
                direct
                    .execute(
                        &format!("UPDATE {table} SET {column} = ?1 WHERE CAST({key} AS TEXT) = ?2"),
                        rusqlite::params![value, id],
                    )
                    .unwrap_or(0)
            };
            let (id, before, after) = match row {
                Some((id, value)) => {
                    let after = changed(&value, *column == "claim_agrees");
                    (id, value, after)
                }
                // No row has a value: set one.
                None => {
                    let sql = format!(
                        "SELECT CAST({key} AS TEXT) FROM {table} ORDER BY {key} LIMIT 1 OFFSET 2"
                    );
                    let id: String = direct.query_row(&sql, [], |row| row.get(0)).unwrap();
                    let text = matches!(*column, "void" | "renewed" | "reason");
                    let value = if text {
                        rusqlite::types::Value::Text("x".into())
                    } else {
                        rusqlite::types::Value::Integer(1)
                    };
                    (id, rusqlite::types::Value::Null, value)
                }
            };
            assert_eq!(put(&after, &id), 1, "{table}.{column}");
            let mut store = ForumStore::open(&place, Some(&state)).unwrap();
            let found = store.audit(MAIN, &mut |_| {});
            let found = found.map_or(true, |all| !all.faults.is_empty());
            assert!(found, "{table}.{column} of {id} was changed and not found");
            drop(store);
            assert_eq!(put(&before, &id), 1);
        }
    }
    let mut store = ForumStore::open(&place, Some(&state)).unwrap();
    assert_eq!(audited(&mut store).faults, Vec::new());
    // A deleted row is detected too; even the last ones, by the seal outside of the database.
    let last = store.last_cycle(MAIN).unwrap();
    drop(store);
    for sql in [
        format!(
            "DELETE FROM links WHERE cycle_id = {last}; DELETE FROM runs WHERE cycle_id = {last}; DELETE FROM cycles WHERE id = {last}"
        ),
        "DELETE FROM posts WHERE id = 4".to_owned(),
    ] {
        direct.execute_batch("BEGIN").unwrap();
        direct.execute_batch(&sql).unwrap();
        direct.execute_batch("COMMIT").unwrap();
        let mut store = ForumStore::open(&place, Some(&state)).unwrap();
        assert!(!audited(&mut store).faults.is_empty(), "{sql}");
    }
}

/// Returns the value with one character or digit changed.
fn changed(value: &rusqlite::types::Value, yes_or_no: bool) -> rusqlite::types::Value {
    use rusqlite::types::Value;
    match value {
        // A number that no other row has.
        Value::Integer(n) if !yes_or_no => Value::Integer(n ^ 4096),
        Value::Integer(n) => Value::Integer(n ^ 1),
        Value::Text(text) => Value::Text(flip(text, text.len() / 2)),
        other => other.clone(),
    }
}

/// Changes the character at a position, or the next letter or digit, to another one.
pub(crate) fn flip(text: &str, place: usize) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let count = chars.len().max(1);
    let at = (0..count)
        .map(|i| (place + i) % count)
        .find(|at| chars.get(*at).is_some_and(char::is_ascii_alphanumeric));
    if let Some(at) = at {
        chars[at] = match chars[at] {
            '1' => '2',
            digit if digit.is_ascii_digit() => '1',
            'a' => 'b',
            _ => 'a',
        };
    }
    chars.into_iter().collect()
}

/// A program that shares no code with kd computes the same orders, hashes and figures.
#[test]
fn an_independent_program_agrees() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/forum/audit.py");
    let python = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if !python.is_ok_and(|said| said.status.success()) {
        eprintln!("no python3 here: tests/forum/audit.py is not compared");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forum.db");
    let place = Place::File(path.clone());
    let mut store = ForumStore::open(&place, Some(&folder.path().join("state"))).unwrap();
    let mut leader = lead(&mut store);
    for (at, scheduler) in kd_forum::schedulers::SCHEDULERS.iter().enumerate() {
        let settings = Settings {
            scheduler: scheduler.name.into(),
            ..Settings::default()
        };
        for turn in 0..6 {
            let names = &AGENTS[..3 + usize::from(turn > 2)];
            let seed = (turn == 5).then_some(at as u64);
            let cycle = draw_next(&mut store, &mut leader, &settings, names, seed);
            take_turns(&mut store, &settings, &cycle);
            store
                .finish_cycle(&mut leader, cycle.id, 1, self::at(4))
                .unwrap();
        }
    }
    let look = kd_forum::fairness::Look::Once;
    let table = store.fairness(MAIN, None, look).unwrap();
    let export = folder.path().join("forum.jsonl");
    store
        .export(&mut std::fs::File::create(&export).unwrap())
        .unwrap();
    drop((store, leader));
    for record in [&path, &export] {
        let said = std::process::Command::new("python3")
            .arg(&script)
            .arg(record)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&said.stderr);
        let found: serde_json::Value = serde_json::from_slice(&said.stdout).expect(&told);
        assert_eq!(found["faults"], json!([]), "{}", record.display());
        assert_eq!(found["cycles"], table.cycles);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-5;
        for (share, theirs) in table.agents.iter().zip(found["agents"].as_array().unwrap()) {
            assert_eq!(theirs["agent"], share.agent.as_str());
            assert_eq!(
                (&theirs["cycles"], &theirs["turns"]),
                (&json!(share.cycles), &json!(share.turns))
            );
            for (key, ours) in [
                ("place", share.place),
                ("place_entitled", share.place_entitled),
                ("turns_entitled", share.turns_entitled),
            ] {
                assert!(
                    near(theirs[key].as_f64().unwrap(), ours),
                    "{key}: {theirs} {ours}"
                );
            }
        }
        for (key, p) in found["p"].as_object().unwrap() {
            let ours = table.row(key).unwrap().p.unwrap();
            assert!(near(p.as_f64().unwrap(), ours), "{key}: {p} {ours}");
        }
    }
}

#[test]
fn the_fairness_of_the_last_cycles_counts_their_answers_alone() {
    each(|site| {
        let settings = Settings::default();
        let mut store = site.open();
        let mut leader = lead(&mut store);
        for cycle in 1..=3 {
            let candidates = AGENTS.map(|name| store.candidate(name).unwrap()).to_vec();
            let drawn = store.draw_cycle(&mut leader, &settings, candidates, None, at(100 * cycle));
            let cycle = drawn.unwrap().record;
            take_turns(&mut store, &settings, &cycle);
            let now = at(100 * cycle.number + 90);
            store
                .finish_cycle(&mut leader, cycle.id, 1_000, now)
                .unwrap();
        }
        let mut answered = |last| {
            let table = store.fairness(MAIN, last, Look::Running).unwrap();
            table.agents.iter().map(|agent| agent.answered).sum::<u64>()
        };
        let (all, last) = (answered(None), answered(Some(1)));
        assert!(last <= 4 && all > 4, "{last} of {all}");
    });
}
