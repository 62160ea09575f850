//! Motions that moderate: their text, the accounts that they cannot affect, who must confirm them, and how to undo them.

use crate::servers::each;
use crate::talk::{at, by, persona};
use kd_core::config::forum::Settings;
use kd_core::names::KING;
use kd_forum::account::{Account, Kind, Proof, Role, Status};
use kd_forum::cards::{Candidate, Cards};
use kd_forum::cycle::draw;
use kd_forum::governance::{Motion, MotionState};
use kd_forum::order::Order;
use kd_forum::rules::{self, RULES, Takes};
use kd_forum::{CLERK, MAIN};
use kd_sql::forum::{Caller, ForumStore, Governance, Place, Repeat};
use serde_json::{Value, json};

const AGENTS: [&str; 5] = ["ada", "bob", "cy", "dee", "eve"];

/// Creates a forum of five agents, a guest, and a person besides its owner. Thread 1 is by `ada` with a reply of `eve`
/// (post 2) and one of `king` (post 3).
fn founded(store: &mut ForumStore) {
    store.sync_personas(MAIN, &AGENTS, at(0)).unwrap();
    for (name, kind) in [
        ("mia", Kind::Person),
        ("guest", Kind::Guest),
        (KING, Kind::Person),
    ] {
        let mut account = Account::new(MAIN, name, kind, Proof::Owner, at(0));
        if name == "mia" {
            account.role = Role::Owner;
        }
        store.join(&account).unwrap();
    }
    store
        .create_thread(MAIN, "Bees", &by("ada", "Why?"), at(1))
        .unwrap();
    store
        .reply(1, &by("eve", "Publish zebras."), at(2))
        .unwrap();
    store.reply(1, &by(KING, "No."), at(3)).unwrap();
}

/// Begins a cycle, so that everyone may propose motions again.
fn cycle(store: &mut ForumStore, second: i64) -> i64 {
    let cards = Cards::new(&Settings::default(), 1, 0, vec![Candidate::named("ada")]);
    let record = store.begin_cycle(MAIN, &cards, &draw(&cards), at(second));
    record.unwrap().number
}

fn act(store: &mut ForumStore, who: &str, tool: &str, arguments: Value, second: i64) -> Value {
    let settings = Settings::default();
    let caller = match who {
        KING | "mia" => Caller::person(who, MAIN).unwrap(),
        _ => persona(who),
    };
    store
        .call(&caller, &settings, tool, &arguments, at(second))
        .unwrap()
}

fn wants(kind: &str, key: &str, value: &str) -> Value {
    let mut wants =
        json!({"kind": kind, "value": value, "title": "For order", "reason": "it asks\nfor keys"});
    if !key.is_empty() {
        wants["key"] = key.into();
    }
    wants
}

/// Proposes a motion as the first agent that still may in this cycle; returns its number, or the refusal.
fn moved(
    store: &mut ForumStore,
    kind: &str,
    key: &str,
    value: &str,
    second: i64,
) -> Result<i64, String> {
    let mut why = String::new();
    for who in AGENTS {
        let answer = act(store, who, "propose", wants(kind, key, value), second);
        match answer["motion_id"].as_i64() {
            Some(id) => return Ok(id),
            None => why = answer["error"].as_str().unwrap_or_default().to_owned(),
        }
        if !why.contains("in this cycle") && !why.contains("open motions") {
            break;
        }
    }
    Err(why)
}

/// Proposes a motion, lets all agents except the last vote yes, and ends the vote under these settings.
fn decided(
    store: &mut ForumStore,
    settings: &Settings,
    kind: &str,
    key: &str,
    value: &str,
) -> Motion {
    let cycles = store.cycles(MAIN, 1).unwrap();
    let now = 1_000 * (1 + cycles.last().map_or(0, |cycle| cycle.number));
    cycle(store, now);
    let id =
        moved(store, kind, key, value, now + 1).unwrap_or_else(|e| panic!("{kind} {value}: {e}"));
    for who in &AGENTS[..4] {
        let vote = json!({"motion_id": id, "choice": "yes"});
        act(store, who, "vote", vote, now + 2);
    }
    let decided = store
        .decide_motions(MAIN, i64::MAX, settings, at(now + 3))
        .unwrap();
    decided.into_iter().find(|m| m.id == id).unwrap()
}

fn told(store: &mut ForumStore, motion: &Motion) -> String {
    let (_, posts) = store.thread(motion.thread_id.unwrap(), 0, 50).unwrap();
    posts.into_iter().map(|p| p.body + "\n").collect()
}

/// Returns everything that a motion of order can change.
fn order_of(store: &mut ForumStore) -> String {
    let members = store.members(MAIN).unwrap();
    let members: Vec<_> = members
        .iter()
        .map(|m| (&m.name, m.role, m.status, m.votes))
        .collect();
    let (thread, posts) = store.thread(1, 0, 9).unwrap();
    let hidden: Vec<bool> = posts.iter().map(|p| p.hidden_at.is_some()).collect();
    format!("{members:?} {hidden:?} {}", thread.closed_at.is_some())
}

#[test]
fn every_motion_of_order_says_what_it_does_waits_for_a_person_and_is_undone() {
    each(|site| {
        let mut store = site.open();
        founded(&mut store);
        let settings = Settings::default();
        let mut confirm = 0;
        for (kind, key, value, says, now) in [
            ("hide", "", "2", "hide post 2 by eve in thread 1", "shown"),
            ("close", "", "1", "close thread 1 by ada", "open"),
            ("ban", "", "eve", "ban eve", "active"),
            ("role", "eve", "reader", "make eve reader", "agent"),
            ("role", "bob", "moderator", "make bob moderator", "agent"),
        ] {
            let before = order_of(&mut store);
            let motion = decided(&mut store, &settings, kind, key, value);
            assert_eq!(motion.state, MotionState::Passed, "{}", motion.outcome);
            assert!(told(&mut store, &motion).contains(&format!("Wants: {says}, now {now}.")));
            assert_eq!(order_of(&mut store), before, "nothing changes by itself");
            for nobody in ["ada", "bob", "eve", "guest", "stranger", CLERK] {
                assert!(
                    store
                        .confirm_motion(motion.id, nobody, &settings, at(5))
                        .is_err()
                );
                assert!(store.veto_motion(motion.id, nobody, "no", at(5)).is_err());
            }
            let motion = store
                .confirm_motion(motion.id, KING, &settings, at(6))
                .unwrap();
            assert_eq!(motion.state, MotionState::InForce, "{}", motion.outcome);
            assert!(motion.outcome.ends_with("; confirmed by king"));
            assert_ne!(order_of(&mut store), before);
            confirm += 1;
            let entry = &store.orders(MAIN, 1).unwrap()[0];
            assert_eq!(
                (entry.motion_id, entry.by.as_str()),
                (Some(motion.id), KING)
            );
            assert!(
                entry.line().contains("by motion") && entry.line().ends_with(": it asks for keys")
            );
            // A person revokes it, and restores it.
            let id = entry.id;
            let undo = store.undo_order(MAIN, KING, Some(id), "", at(7)).unwrap();
            assert_eq!(order_of(&mut store), before);
            let state = |store: &mut ForumStore| store.motion(motion.id).unwrap().0.state;
            assert_eq!(state(&mut store), MotionState::Undone);
            store
                .undo_order(MAIN, KING, Some(undo.id), "", at(8))
                .unwrap();
            assert_eq!(state(&mut store), MotionState::InForce);
            // Another motion can do that too.
            let undo = decided(&mut store, &settings, "undo", "", &motion.id.to_string());
            let undo = store
                .confirm_motion(undo.id, KING, &settings, at(9))
                .unwrap();
            assert_eq!(undo.state, MotionState::InForce, "{}", undo.outcome);
            assert_eq!(
                (order_of(&mut store), state(&mut store)),
                (before, MotionState::Undone)
            );
        }
        assert_eq!(confirm, 5);
    });
}

#[test]
fn equal_motions_and_those_that_change_nothing_are_refused() {
    each(|site| {
        let mut store = site.open();
        founded(&mut store);
        cycle(&mut store, 10);
        moved(&mut store, "hide", "", "2", 11).unwrap();
        let again = moved(&mut store, "hide", "", " 02", 11).unwrap_err();
        assert!(
            again.contains("motion 1 asks for the same and is open"),
            "{again}"
        );
        moved(&mut store, "role", "eve", "reader", 11).unwrap();
        let again = moved(&mut store, "role", "eve", " reader ", 11).unwrap_err();
        assert!(
            again.contains("motion 2 asks for the same and is open"),
            "{again}"
        );
        for (kind, key, value, why) in [
            ("unhide", "", "2", "post 2 is shown already"),
            ("reopen", "", "1", "thread 1 is open already"),
            ("unban", "", "eve", "is `active` already"),
            ("role", "bob", "agent", "is `agent` already"),
            ("hide", "", "999", "there is no post 999"),
            ("close", "", "999", "there is no thread 999"),
            ("ban", "", "nobody", "there is no member `nobody`"),
            ("ban", "", "EVE", "there is no member `EVE`"),
            (
                "role",
                "eve",
                "king",
                "the role (moderator, agent, guest or reader)",
            ),
        ] {
            let refused = moved(&mut store, kind, key, value, 11).unwrap_err();
            assert!(refused.contains(why), "{kind} {value}: {refused}");
        }
        // Other forums are out of reach.
        let there = Caller::new("ada", "side").unwrap().proven(Proof::Persona);
        for wants in [
            wants("hide", "", "2"),
            wants("close", "", "1"),
            wants("ban", "", "eve"),
        ] {
            let answer = store
                .call(&there, &Settings::default(), "propose", &wants, at(12))
                .unwrap();
            assert_eq!(answer["success"], false, "{answer}");
        }
    });
}

#[test]
fn no_motion_touches_people_owners_votes_or_motions() {
    each(|site| {
        let mut store = site.open();
        founded(&mut store);
        store
            .give_order(MAIN, KING, &Order::role("dee", Role::Owner), "r", at(4))
            .unwrap();
        cycle(&mut store, 10);
        moved(&mut store, "text", "", "", 11).unwrap();
        let motion = store.motion(1).unwrap().0.thread_id.unwrap();
        let opening = store.thread(motion, 0, 1).unwrap().1[0].id;
        let clerk = store.reply(1, &by(CLERK, "Decided."), at(12)).unwrap().id;
        let before = order_of(&mut store);
        for (kind, key, value, why) in [
            ("ban", "", KING, "motions are about agents and guests"),
            ("ban", "", "mia", "`mia` is an owner"),
            ("ban", "", "dee", "`dee` is an owner"),
            ("ban", "", CLERK, "there is no member"),
            (
                "role",
                KING,
                "reader",
                "motions are about agents and guests",
            ),
            (
                "role",
                "dee",
                "reader",
                "motions are about agents and guests",
            ),
            ("role", "eve", "owner", "only an owner makes owners"),
            ("hide", "", &opening.to_string(), "belongs to motion 1"),
            ("close", "", &motion.to_string(), "belongs to motion 1"),
            ("hide", "", &clerk.to_string(), "the forum's own posts stay"),
        ] {
            let refused = moved(&mut store, kind, key, value, 13).unwrap_err();
            assert!(refused.contains(why), "{kind} {value}: {refused}");
        }
        assert_eq!(order_of(&mut store), before);
        // No motion can make all guests moderators.
        let guests = Order::role("guest", Role::Moderator);
        let refused = store
            .give_order(MAIN, KING, &guests, "r", at(14))
            .unwrap_err();
        assert!(
            refused.to_string().contains("all guests share the account"),
            "{refused}"
        );
    });
}

#[test]
fn without_a_person_motions_hide_posts_of_agents_and_nothing_else() {
    each(|site| {
        let mut store = site.open();
        founded(&mut store);
        let open = Settings {
            unconfirmed: "hide, unhide, close, reopen, undo".into(),
            ..Settings::default()
        };
        let hide = decided(&mut store, &open, "hide", "", "2");
        assert_eq!(hide.state, MotionState::InForce, "{}", hide.outcome);
        assert_eq!(store.orders(MAIN, 1).unwrap()[0].by, CLERK);
        let king = decided(&mut store, &open, "hide", "", "3");
        assert_eq!(king.state, MotionState::Passed);
        assert!(
            king.outcome
                .contains("a person must confirm: post 3 is by `king`")
        );
        let back = decided(&mut store, &open, "undo", "", &hide.id.to_string());
        assert_eq!(back.state, MotionState::InForce, "{}", back.outcome);
        // Only a person can show what a person hid.
        store
            .give_order(MAIN, KING, &Order::hide(2, true), "r", at(20))
            .unwrap();
        let show = decided(&mut store, &open, "unhide", "", "2");
        assert_eq!(show.state, MotionState::Passed, "{}", show.outcome);
        store
            .give_order(MAIN, KING, &Order::close(1, true), "r", at(20))
            .unwrap();
        let reopen = decided(&mut store, &open, "reopen", "", "1");
        assert_eq!(reopen.state, MotionState::Passed, "{}", reopen.outcome);
        // A row that says otherwise changes nothing.
        let planted = Settings {
            unconfirmed: "ban, unban, role".into(),
            ..Settings::default()
        };
        for (kind, key, value) in [("ban", "", "eve"), ("role", "eve", "reader")] {
            let motion = decided(&mut store, &planted, kind, key, value);
            assert_eq!(motion.state, MotionState::Passed, "{}", motion.outcome);
        }
    });
}

#[test]
fn motions_cannot_shrink_the_electorate_to_a_few() {
    each(|site| {
        let mut store = site.open();
        founded(&mut store);
        let settings = Settings::default();
        // Four of five vote for each: at most two are banned, by motions that pass and are confirmed.
        let first = decided(&mut store, &settings, "ban", "", "eve");
        let second = decided(&mut store, &settings, "role", "dee", "reader");
        let third = decided(&mut store, &settings, "ban", "", "cy");
        for (motion, state) in [
            (&first, MotionState::InForce),
            (&second, MotionState::InForce),
            (&third, MotionState::Rejected),
        ] {
            let motion = store
                .confirm_motion(motion.id, KING, &settings, at(30))
                .unwrap();
            assert_eq!(motion.state, state, "{}", motion.outcome);
        }
        let (third, _) = store.motion(third.id).unwrap();
        assert!(
            third.outcome.contains("fewer than half"),
            "{}",
            third.outcome
        );
        assert_eq!(
            store.member(MAIN, "cy").unwrap().unwrap().status,
            Status::Active
        );
        assert_eq!(
            store.electorate(third.id).unwrap().len(),
            5,
            "its own electorate is fixed"
        );
        // The electorate of the next motion lacks both, and the demoted one.
        cycle(&mut store, 90_000);
        let next = moved(&mut store, "text", "", "", 90_001).unwrap();
        assert_eq!(store.electorate(next).unwrap(), ["ada", "bob", "cy"]);
        let refused = moved(&mut store, "ban", "", "bob", 90_001).unwrap_err();
        assert!(refused.contains("fewer than half"), "{refused}");
        // The owner may.
        store
            .give_order(MAIN, KING, &Order::ban("cy", true), "r", at(42))
            .unwrap();
    });
}

#[test]
fn a_motion_sets_a_rule_about_threads_and_nothing_that_is_a_right() {
    each(|site| {
        let mut store = site.open();
        founded(&mut store);
        // No setting lets a rule take effect without a person.
        let planted = Settings {
            unconfirmed: "rule".into(),
            ..Settings::default()
        };
        let rule = |store: &mut ForumStore, key: &str| {
            let rules = store.rules(MAIN).unwrap();
            rules.value(rules::find(key).unwrap()).to_owned()
        };
        for key in ["thread_days", "archive_days", "post_chars_max"] {
            let motion = decided(&mut store, &planted, "rule", key, "30");
            assert_eq!(motion.state, MotionState::Passed, "{}", motion.outcome);
            assert_eq!(rule(&mut store, key), "none", "a person confirms it");
            let told = told(&mut store, &motion);
            assert!(
                told.contains(&format!("set {key} to 30, now none")),
                "{told}"
            );
            let settings = Settings::default();
            let motion = store.confirm_motion(motion.id, KING, &settings, at(9));
            assert_eq!(motion.as_ref().unwrap().state, MotionState::InForce);
            assert_eq!(rule(&mut store, key), "30");
            let entry = store.orders(MAIN, 1).unwrap().remove(0);
            assert_eq!(entry.motion_id, Some(motion.unwrap().id));
            store.undo_order(MAIN, KING, None, "", at(10)).unwrap();
            assert_eq!(rule(&mut store, key), "none");
        }
        for rule in RULES.iter().filter(|rule| !rule.votable) {
            cycle(&mut store, 90_000);
            let value = match rule.takes {
                Takes::Who => "owners",
                Takes::OneOf(words) => words[1],
                Takes::Whole(..) => "7",
            };
            let why = moved(&mut store, "rule", rule.key, value, 90_001).unwrap_err();
            assert!(why.contains("only an owner"), "{}: {why}", rule.key);
        }
    });
}

#[test]
fn a_ban_takes_no_vote_back_and_lets_nobody_vote_after_it() {
    each(|site| {
        let mut store = site.open();
        founded(&mut store);
        cycle(&mut store, 1_000);
        let id = moved(&mut store, "text", "", "", 1_001).unwrap();
        let vote = |store: &mut ForumStore, who: &str, choice: &str| {
            let wish = json!({"motion_id": id, "choice": choice});
            act(store, who, "vote", wish, 1_002)["success"] == true
        };
        // Two for it and two against it; then a moderator could tip the balance by a ban.
        for (who, choice) in [("ada", "yes"), ("bob", "yes"), ("dee", "no"), ("eve", "no")] {
            assert!(vote(&mut store, who, choice), "{who}");
        }
        for who in ["cy", "eve"] {
            let ban = Order::ban(who, true);
            store.give_order(MAIN, KING, &ban, "r", at(1_003)).unwrap();
        }
        assert!(!vote(&mut store, "eve", "yes"), "it is banned");
        assert!(!vote(&mut store, "cy", "yes"), "it is banned");
        let settings = Settings::default();
        let decided = store.decide_motions(MAIN, i64::MAX, &settings, at(1_004));
        let decided = decided.unwrap().remove(0);
        assert!(
            decided.outcome.contains("2 yes, 2 no, 0 abstained, of 5"),
            "{}",
            decided.outcome
        );
        assert_eq!(decided.state, MotionState::Rejected);
    });
}

#[test]
fn a_motion_whose_target_is_gone_stops_no_other() {
    each(|site| {
        let mut store = site.open();
        founded(&mut store);
        let open = Settings {
            unconfirmed: "hide, text".into(),
            ..Settings::default()
        };
        cycle(&mut store, 10);
        let hide = moved(&mut store, "hide", "", "2", 11).unwrap();
        let text = moved(&mut store, "text", "", "", 11).unwrap();
        for who in &AGENTS[..4] {
            for id in [hide, text] {
                let vote = json!({"motion_id": id, "choice": "yes"});
                assert_eq!(act(&mut store, who, "vote", vote, 12)["success"], true);
            }
        }
        let delete = json!({"post_id": 2});
        assert_eq!(
            act(&mut store, "eve", "delete_post", delete, 13)["success"],
            true
        );
        store.decide_motions(MAIN, 99, &open, at(14)).unwrap();
        let state = |store: &mut ForumStore, id| store.motion(id).unwrap().0.state;
        assert_eq!(state(&mut store, text), MotionState::InForce);
        let hide = store.motion(hide).unwrap().0;
        assert_eq!(hide.state, MotionState::Rejected);
        assert!(
            hide.outcome.contains("there is no post 2"),
            "{}",
            hide.outcome
        );
    });
}

#[test]
fn an_import_turns_the_numbers_of_motions_with_what_they_are_about() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| Place::File(folder.path().join(name));
    let mut store = ForumStore::open(&place("from.db"), None).unwrap();
    founded(&mut store);
    let settings = Settings::default();
    let hide = decided(&mut store, &settings, "hide", "", "2");
    store
        .confirm_motion(hide.id, KING, &settings, at(5))
        .unwrap();
    decided(&mut store, &settings, "undo", "", &hide.id.to_string());
    decided(&mut store, &settings, "close", "", "1");
    let mut lines = Vec::new();
    store.export(&mut lines).unwrap();
    let mut other = ForumStore::open(&place("to.db"), None).unwrap();
    // Numbers that are taken there.
    other
        .create_thread(MAIN, "Ants", &by("ada", "March."), at(1))
        .unwrap();
    other.sync_personas(MAIN, &AGENTS, at(0)).unwrap();
    cycle(&mut other, 500);
    decided(&mut other, &settings, "text", "", "");
    other
        .import(&mut lines.as_slice(), Governance::InForce, Repeat::Refused)
        .unwrap();
    let motions = other.motions(MAIN, 9).unwrap();
    let value = |kind: &str| {
        let motion = motions.iter().find(|m| m.kind.word() == kind).unwrap();
        motion.value.as_deref().unwrap().parse::<i64>().unwrap()
    };
    let hidden = other.thread(value("close"), 0, 9).unwrap().1;
    let hidden = hidden.iter().find(|p| p.id == value("hide")).unwrap();
    assert_eq!(hidden.body, "Publish zebras.");
    let undone = other.motion(value("undo")).unwrap().0;
    assert_eq!(undone.kind.word(), "hide");
}

#[test]
fn a_motion_that_was_hidden_takes_no_votes_and_needs_a_person() {
    each(|site| {
        let mut store = site.open();
        founded(&mut store);
        let open = Settings {
            unconfirmed: "text".into(),
            ..Settings::default()
        };
        cycle(&mut store, 10);
        let id = moved(&mut store, "text", "", "", 11).unwrap();
        let vote = json!({"motion_id": id, "choice": "yes"});
        for who in &AGENTS[..4] {
            act(&mut store, who, "vote", vote.clone(), 12);
        }
        let thread = store.motion(id).unwrap().0.thread_id.unwrap();
        let opening = store.thread(thread, 0, 1).unwrap().1[0].id;
        store
            .give_order(MAIN, KING, &Order::hide(opening, true), "r", at(13))
            .unwrap();
        let late = act(&mut store, "eve", "vote", vote, 14);
        assert_eq!(late["error"], format!("there is no motion {id}"));
        store.decide_motions(MAIN, 99, &open, at(15)).unwrap();
        let decided = store.motion(id).unwrap().0;
        assert_eq!(decided.state, MotionState::Passed);
        assert!(
            decided
                .outcome
                .contains("a person must confirm: it is hidden"),
            "{}",
            decided.outcome
        );
    });
}
