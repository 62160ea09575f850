//! A record that was rolled back, wiped or replaced is rejected, no secret is used for two draws, and what the owner
//! accepts is shown permanently.

use crate::chain::{AGENTS, audited, draw_next, lead, live, secrets, take_turns};
use crate::servers::{Site, each, tamper};
use crate::talk::at;
use kd_core::config::forum::Settings;
use kd_forum::MAIN;
use kd_forum::cards::Candidate;
use kd_forum::chain::Origin;
use kd_sql::forum::{Anchor, ForumError, ForumStore, Leader};
use std::collections::BTreeSet;

fn candidates() -> Vec<Candidate> {
    AGENTS.iter().map(|name| Candidate::named(name)).collect()
}

/// Deletes the cycles after a number, as if an older copy of the database had been restored.
fn put_back(site: &Site, number: i64) {
    let gone = format!("(SELECT id FROM cycles WHERE number > {number})");
    tamper(
        site,
        &format!(
            "DELETE FROM links WHERE cycle_id IN {gone}; DELETE FROM runs WHERE cycle_id IN {gone}; \
             DELETE FROM posts WHERE run_id IS NOT NULL AND run_id NOT IN (SELECT id FROM runs); \
             UPDATE threads SET last_post_id = (SELECT MAX(id) FROM posts WHERE thread_id = threads.id); \
             DELETE FROM cycles WHERE number > {number}"
        ),
    );
}

/// Checks that every way to continue a record is refused.
fn refused(store: &mut ForumStore, leader: &mut Leader, says: &str) {
    let settings = Settings::default();
    let last = store.last_cycle(MAIN).unwrap();
    let id = store.cycle(MAIN, last).unwrap().id;
    for (way, done) in [
        ("check", store.check_record(leader)),
        (
            "draw",
            store
                .draw_cycle(leader, &settings, candidates(), None, at(9))
                .map(drop),
        ),
        (
            "draw with a seed",
            store
                .draw_cycle(leader, &settings, candidates(), Some(1), at(9))
                .map(drop),
        ),
        ("finish", store.finish_cycle(leader, id, 1, at(9)).map(drop)),
        ("void", store.void_cycle(leader, id, "x", at(9)).map(drop)),
    ] {
        let Err(error @ ForumError::Differs { .. }) = done else {
            panic!("{way}: {done:?}");
        };
        assert!(error.to_string().contains(says), "{way}: {error}");
        assert!(error.hint().contains("--fork"), "{way}");
    }
    assert_eq!(
        store.last_cycle(MAIN).unwrap(),
        last,
        "nothing was recorded"
    );
    let all = audited(store);
    assert_eq!(all.anchor, Some(Anchor::Differs));
    assert!(all.faults.iter().any(|(_, fault)| fault.contains(says)));
}

fn revealed(store: &mut ForumStore) -> BTreeSet<String> {
    let cycles = store.cycles(MAIN, 99).unwrap();
    let secrets = cycles.into_iter().filter_map(|cycle| cycle.link?.secret);
    secrets.collect()
}

/// Accepts the record; the fork is still shown after that, and after more cycles.
fn accepted(store: &mut ForumStore, leader: &mut Leader, used: &BTreeSet<String>, number: i64) {
    let settings = Settings::default();
    let nothing = store.fork_record(leader, &settings, " ", at(9));
    assert!(nothing.is_err(), "a fork needs a reason");
    let fork = store
        .fork_record(leader, &settings, "from the backup", at(9))
        .unwrap();
    let link = fork.link.clone().unwrap();
    assert_eq!((link.origin, link.number), (Origin::Forked, number));
    assert!(fork.void().unwrap().contains("accepted: from the backup"));
    let before = revealed(store);
    for _ in 0..2 {
        live(store, leader, 1);
        let all = audited(store);
        assert_eq!(all.forks.len(), 1);
        assert_eq!(all.forks[0].0, fork.number);
        assert_eq!(all.anchor, Some(Anchor::Found));
    }
    let fresh: BTreeSet<_> = revealed(store).difference(&before).cloned().collect();
    assert_eq!(fresh.len(), 2);
    assert!(fresh.is_disjoint(used), "a secret was drawn from twice");
    let again = store.fork_record(leader, &settings, "again", at(9));
    assert!(again.is_err(), "there is nothing to accept");
}

#[test]
fn a_record_that_was_put_back_is_refused_and_no_secret_is_drawn_from_twice() {
    for back in [1, 3] {
        each(|site| {
            let mut store = site.open();
            let mut leader = lead(&mut store);
            live(&mut store, &mut leader, 4);
            let used = revealed(&mut store);
            drop((leader, store));
            put_back(site, 4 - back);
            let mut store = site.open();
            let mut leader = lead(&mut store);
            for _ in 0..2 {
                refused(&mut store, &mut leader, "an older copy of the database");
            }
            accepted(&mut store, &mut leader, &used, 5);
            assert_eq!(audited(&mut store).faults, Vec::new());
        });
    }
}

#[test]
fn a_copy_from_the_middle_of_a_cycle_is_refused_too() {
    each(|site| {
        let mut store = site.open();
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 3);
        let used = revealed(&mut store);
        drop((leader, store));
        put_back(site, 2);
        tamper(
            site,
            "UPDATE cycles SET ended_at = NULL WHERE number = 2; \
             UPDATE links SET secret = NULL, seal = NULL WHERE number = 2",
        );
        let mut store = site.open();
        let mut leader = lead(&mut store);
        refused(&mut store, &mut leader, "an older copy of the database");
        accepted(&mut store, &mut leader, &used, 4);
        assert_eq!(audited(&mut store).faults, Vec::new());
    });
}

#[test]
fn a_wiped_record_never_counts_as_one_of_an_older_version() {
    each(|site| {
        let mut store = site.open();
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 4);
        let used = revealed(&mut store);
        drop((leader, store));
        tamper(site, "DELETE FROM links; DELETE FROM chains");
        let mut store = site.open();
        let mut leader = lead(&mut store);
        refused(&mut store, &mut leader, "wiped");
        accepted(&mut store, &mut leader, &used, 5);
        let faults = audited(&mut store).faults;
        let gone = faults.iter().filter(|(_, fault)| fault.contains("gone"));
        assert_eq!(gone.count(), 4, "{faults:?}");
        // Even if no state is left.
        drop((leader, store));
        tamper(site, "DELETE FROM links; DELETE FROM chains");
        std::fs::remove_file(secrets(site)).unwrap();
        let mut store = site.open();
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 1);
        assert!(!audited(&mut store).faults.is_empty());
    });
}

#[test]
fn a_cycle_without_a_link_behind_one_with_a_link_is_a_fault() {
    each(|site| {
        let mut store = site.open();
        let mut leader = lead(&mut store);
        live(&mut store, &mut leader, 1);
        let cards = kd_forum::cards::Cards::new(&Settings::default(), 11, 1, Vec::new());
        let plan = kd_forum::cycle::draw(&cards);
        let old = store.begin_cycle(MAIN, &cards, &plan, at(0)).unwrap();
        store.end_cycle(old.id, 1, at(1)).unwrap();
        let faults = audited(&mut store).faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].1.contains("it has no link"));
    });
}

#[test]
fn the_state_of_another_forum_is_told_apart_from_a_lost_one() {
    each(|site| {
        each(|other| {
            for site in [site, other] {
                let mut store = site.open();
                let mut leader = lead(&mut store);
                live(&mut store, &mut leader, 2);
            }
            let (ours, theirs) = (secrets(site), secrets(other));
            let kept = [&ours, &theirs].map(|path| std::fs::read(path).unwrap());
            std::fs::write(&ours, &kept[1]).unwrap();
            let mut store = site.open();
            let mut leader = lead(&mut store);
            refused(&mut store, &mut leader, "another forum");
            drop((leader, store));
            // Restored to its place, it continues.
            std::fs::write(&ours, &kept[0]).unwrap();
            let mut store = site.open();
            let mut leader = lead(&mut store);
            live(&mut store, &mut leader, 1);
            let all = audited(&mut store);
            assert_eq!((all.void, all.forks.len(), all.faults.len()), (0, 0, 0));
        });
    });
}

#[test]
fn a_draw_that_was_taken_back_is_drawn_the_same_or_from_another_secret() {
    for post in [false, true] {
        each(|site| {
            let settings = Settings::default();
            let mut store = site.open();
            let mut leader = lead(&mut store);
            live(&mut store, &mut leader, 2);
            let first = draw_next(&mut store, &mut leader, &settings, &AGENTS, None);
            drop((leader, store));
            put_back(site, 2);
            let mut store = site.open();
            if post {
                let thread = store.threads(MAIN, 1).unwrap()[0].id;
                let author = AGENTS[0];
                let sql = format!(
                    "INSERT INTO posts (thread_id, author, body, created_at) VALUES ({thread}, '{author}', 'new', 1); \
                     UPDATE threads SET last_post_id = (SELECT MAX(id) FROM posts) WHERE id = {thread}"
                );
                tamper(site, &sql);
            }
            let mut leader = lead(&mut store);
            let names = AGENTS.map(|name| store.candidate(name).unwrap());
            let drawn = store
                .draw_cycle(&mut leader, &settings, names.to_vec(), None, at(9))
                .unwrap();
            let (one, two) = (first.link.unwrap(), drawn.record.link.clone().unwrap());
            match drawn.lost {
                // Nobody posted: as after a kill.
                None => assert_eq!(
                    (first.plan, one.number, one.commitment),
                    (drawn.record.plan.clone(), two.number, two.commitment)
                ),
                Some(lost) => {
                    assert!(post && lost.void().unwrap().contains("another order"));
                    assert!(two.number == 4 && one.commitment != two.commitment);
                }
            }
            take_turns(&mut store, &settings, &drawn.record);
            store
                .finish_cycle(&mut leader, drawn.record.id, 1, at(9))
                .unwrap();
            assert_eq!(audited(&mut store).faults, Vec::new());
        });
    }
}

#[test]
fn a_revealed_secret_is_deleted() {
    each(|site| {
        let mut store = site.open();
        let mut leader = lead(&mut store);
        for _ in 0..3 {
            live(&mut store, &mut leader, 1);
            let kept = std::fs::read_to_string(secrets(site)).unwrap();
            let revealed = revealed(&mut store);
            assert!(
                revealed
                    .iter()
                    .all(|secret| !kept.contains(secret.as_str()))
            );
            assert_eq!(kept.matches("\"secret\"").count(), 1, "of the next cycle");
        }
    });
}

#[test]
fn a_record_whose_newest_cycle_was_deleted_is_refused_until_it_is_accepted() {
    for (is_open, has_state) in [(false, true), (true, true), (false, false)] {
        each(|site| {
            let mut store = site.open();
            let mut leader = lead(&mut store);
            live(&mut store, &mut leader, 3);
            if is_open {
                draw_next(&mut store, &mut leader, &Settings::default(), &AGENTS, None);
            } else {
                live(&mut store, &mut leader, 1);
            }
            let used = revealed(&mut store);
            drop((leader, store));
            tamper(site, "DELETE FROM cycles WHERE number = 4");
            if !has_state {
                std::fs::remove_file(secrets(site)).unwrap();
            }
            let mut store = site.open();
            let mut leader = lead(&mut store);
            refused(&mut store, &mut leader, "the cycle of link 4 is gone");
            accepted(&mut store, &mut leader, &used, 5);
            assert_eq!(audited(&mut store).faults, Vec::new());
        });
    }
}
