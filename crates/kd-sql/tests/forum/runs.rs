//! Cycles and runs: drawn first, claimed once, limited, closed after a crash.

use crate::servers::each;
use crate::talk::{at, persona};
use kd_core::config::forum::Settings;
use kd_forum::MAIN;
use kd_forum::cards::Cards;
use kd_forum::cycle::draw;
use kd_forum::words::Outcome;
use kd_sql::forum::{Caller, CycleRecord, ForumError, ForumStore, Place, RunEnd};
use serde_json::json;

fn begin(store: &mut ForumStore, settings: &Settings) -> CycleRecord {
    let candidates = ["ada", "bob", "cy"]
        .iter()
        .map(|name| store.candidate(name).unwrap())
        .collect();
    let index = store.last_cycle(MAIN).unwrap() as u64;
    let cards = Cards::new(settings, 11, index, candidates);
    store
        .begin_cycle(MAIN, &cards, &draw(&cards), at(0))
        .unwrap()
}

fn acted(tokens: u64) -> RunEnd {
    RunEnd {
        outcome: Outcome::Acted,
        reason: None,
        claim: Some(("create_thread".into(), true)),
        tokens,
    }
}

#[test]
fn a_recorded_cycle_is_drawn_alike_again_and_moves_what_is_known_of_agents() {
    each(|site| {
        let mut store = site.open();
        let settings = Settings::default();
        for number in 1..=4 {
            let cycle = begin(&mut store, &settings);
            assert_eq!(cycle.number, number);
            assert_eq!(
                draw(&cycle.cards),
                cycle.plan,
                "replayed from what was kept"
            );
            assert_eq!(store.open_cycle(MAIN).unwrap().as_ref(), Some(&cycle));
            for turn in &cycle.plan.turns {
                let run = store
                    .begin_run(Some(cycle.id), MAIN, &turn.agent, at(1))
                    .unwrap()
                    .expect("its first");
                store.end_run(run, &acted(100), at(2)).unwrap();
            }
            store.end_cycle(cycle.id, 300_000, at(3)).unwrap();
            store.end_cycle(cycle.id, 300_000, at(4)).unwrap();
            assert_eq!(store.open_cycle(MAIN).unwrap(), None);
            for sat_out in &cycle.plan.sitting_out {
                let before = cycle
                    .cards
                    .candidates
                    .iter()
                    .find(|c| c.name == sat_out.agent)
                    .unwrap();
                assert_eq!(
                    store.candidate(&sat_out.agent).unwrap().skipped,
                    before.skipped + 1,
                    "counted once"
                );
            }
        }
        let turns: u64 = ["ada", "bob", "cy"]
            .iter()
            .map(|n| store.candidate(n).unwrap().turns)
            .sum();
        let ran: usize = store
            .cycles(MAIN, 10)
            .unwrap()
            .iter()
            .map(|c| c.plan.turns.len())
            .sum();
        assert_eq!(turns as usize, ran);
    });
}

#[test]
fn nobody_runs_twice_in_a_cycle_and_what_a_crash_cut_off_is_closed() {
    each(|site| {
        let mut store = site.open();
        let cycle = begin(
            &mut store,
            &Settings {
                skip_probability: 0.0,
                ..Settings::default()
            },
        );
        let first = store
            .begin_run(Some(cycle.id), MAIN, "ada", at(1))
            .unwrap()
            .unwrap();
        assert_eq!(
            store.begin_run(Some(cycle.id), MAIN, "ada", at(2)).unwrap(),
            None
        );
        let caller = Caller {
            run: Some(first),
            ..persona("ada")
        };
        let settings = Settings::default();
        store
            .call(
                &caller,
                &settings,
                "create_thread",
                &json!({"title": "t", "body": "b"}),
                at(2),
            )
            .unwrap();
        // The process dies here. The next one closes the run; the post remains.
        drop(store);
        let mut store = site.open();
        let closed = store.close_cut_runs(cycle.id, at(5)).unwrap();
        assert_eq!((closed.len(), closed[0].outcome), (1, Outcome::Interrupted));
        assert_eq!(closed[0].deeds.len(), 1, "the record holds what it did");
        assert_eq!(
            store.begin_run(Some(cycle.id), MAIN, "ada", at(6)).unwrap(),
            None
        );
        assert!(store.close_cut_runs(cycle.id, at(7)).unwrap().is_empty());
        let late = store
            .call(
                &caller,
                &settings,
                "create_thread",
                &json!({"title": "t", "body": "b"}),
                at(8),
            )
            .unwrap();
        assert_eq!(
            late["success"], false,
            "a visit that is over takes no calls"
        );
        assert_eq!(store.threads(MAIN, 10).unwrap().len(), 1);
        let alone = store.begin_run(None, MAIN, "ada", at(9)).unwrap();
        assert!(
            alone.is_some(),
            "runs by themselves are not bound to a cycle"
        );
        assert!(store.begin_run(None, MAIN, "ada", at(9)).unwrap().is_some());
    });
}

#[test]
fn the_call_over_the_limit_is_refused_and_what_was_posted_stays() {
    each(|site| {
        let mut store = site.open();
        let run = store.begin_run(None, MAIN, "ada", at(0)).unwrap().unwrap();
        let caller = Caller {
            run: Some(run),
            ..persona("ada")
        };
        let settings = Settings {
            max_tool_calls: 3,
            ..Settings::default()
        };
        let mut call = |tool: &str, arguments| {
            store
                .call(&caller, &settings, tool, &arguments, at(1))
                .unwrap()
        };
        assert_eq!(
            call("create_thread", json!({"title": "t", "body": "b"}))["success"],
            true
        );
        assert_eq!(
            call("nonsense", json!({}))["success"],
            false,
            "what cannot be read is counted, too"
        );
        assert_eq!(call("list_threads", json!({}))["success"], true);
        let over = call("create_thread", json!({"title": "u", "body": "b"}));
        assert!(
            over["error"]
                .as_str()
                .unwrap()
                .contains("tool call limit exceeded (3 a visit)"),
            "{over}"
        );
        let ended = store
            .end_run(
                run,
                &RunEnd {
                    outcome: Outcome::Skipped,
                    reason: Some("limit".into()),
                    claim: None,
                    tokens: 5,
                },
                at(2),
            )
            .unwrap();
        assert_eq!((ended.calls, ended.deeds.len(), ended.tokens), (4, 1, 5));
        assert_eq!(store.threads(MAIN, 10).unwrap().len(), 1);
        let again = store.end_run(run, &acted(9), at(3)).unwrap();
        assert_eq!(again, ended, "a run ends once");
    });
}

#[test]
fn one_process_leads_a_forum_at_a_time() {
    each(|site| {
        let (mut one, mut two) = (site.open(), site.open());
        let leader = one.lead(MAIN).unwrap();
        assert!(matches!(two.lead(MAIN), Err(ForumError::Led(_))));
        let elsewhere = two.lead("elsewhere").unwrap();
        drop((leader, one, elsewhere));
        let mut three = site.open();
        // A PostgreSQL server needs a moment to notice that the connection is gone.
        let led = (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            three.lead(MAIN).is_ok()
        });
        assert!(led);
    });
}

#[test]
fn who_follows_a_killed_process_waits_for_its_lock() {
    each(|site| {
        let first = site.open();
        let mut first = first;
        let led = first.lead(MAIN).unwrap();
        let Place::Server(url) = &site.place else {
            drop((led, first));
            site.open().lead(MAIN).unwrap();
            return;
        };
        // The server notices only after the successor has started to wait that the first is gone.
        let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
        let mut second = site.open();
        let ended = std::thread::spawn(move || {
            wait_for_waiter(&mut client);
            drop((led, first));
        });
        second.lead(MAIN).unwrap();
        ended.join().unwrap();
        // A process that is still alive cannot be replaced.
        let mut third = site.open();
        assert!(matches!(third.lead(MAIN), Err(ForumError::Led(_))));
        assert!(third.threads(MAIN, 1).is_ok(), "the connection goes on");
    });
}

/// Returns the number of the lock of the leader of a forum. It stays as it is, so that different versions do not lead at the same time.
fn leading(forum: &str) -> i64 {
    let hash = forum.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    0x6b64_666f_7275_6d00 ^ ((hash >> 8) as i64 & !1) ^ 1
}

/// Returns once a connection waits to lead the forum of this schema: other tests have theirs on the same server.
fn wait_for_waiter(client: &mut postgres::Client) {
    let sql = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND (classid::bigint << 32 | objid::bigint) = $1 # (hashtext(current_schema()::text)::bigint << 8)";
    loop {
        let row = client.query_one(sql, &[&leading(MAIN)]).unwrap();
        if row.get::<_, i64>(0) > 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Forums of the same name in other schemas of a database are other forums.
#[test]
fn a_forum_of_the_same_name_in_another_schema_is_led_too() {
    each(|site| {
        let mut one = site.open();
        let _led = one.lead(MAIN).unwrap();
        let (_run, _held) = one.begin_visit(MAIN, "ada", at(1)).unwrap();
        let Place::Server(_) = &site.place else {
            return;
        };
        let other = Place::Server(crate::servers::postgres_schema().unwrap());
        let mut two = ForumStore::open(&other, Some(&site.state())).unwrap();
        let _led = two.lead(MAIN).unwrap();
        two.begin_visit(MAIN, "ada", at(1)).unwrap();
    });
}

#[test]
fn a_visit_whose_process_is_gone_is_closed_and_one_that_goes_on_is_not() {
    each(|site| {
        let (mut dead, mut alive) = (site.open(), site.open());
        let (cut, held) = dead.begin_visit(MAIN, "ada", at(1)).unwrap();
        let (open, _held) = alive.begin_visit(MAIN, "bob", at(1)).unwrap();
        let again = site.open().begin_visit(MAIN, "bob", at(2)).unwrap_err();
        assert!(again.to_string().contains("on a visit already"), "{again}");
        // The process of ada's visit dies here.
        drop((held, dead));
        let mut store = site.open();
        // The server notices a moment later that its client is gone.
        let closed = loop {
            let closed = store.close_cut_visits(MAIN, at(3)).unwrap();
            if !closed.is_empty() || matches!(site.place, Place::File(_)) {
                break closed;
            }
            std::thread::yield_now();
        };
        assert_eq!(closed.iter().map(|run| run.id).collect::<Vec<_>>(), [cut]);
        assert_eq!(closed[0].outcome, Outcome::Interrupted);
        assert_eq!(store.run(open).unwrap().outcome, Outcome::Running);
        assert!(store.close_cut_visits(MAIN, at(4)).unwrap().is_empty());
        drop(store);
        let (next, _held) = alive.begin_visit(MAIN, "ada", at(5)).unwrap();
        assert!(next > open);
    });
}
