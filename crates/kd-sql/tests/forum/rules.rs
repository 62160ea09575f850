//! The rules and the charter of a single forum: enforced in the store, recorded as entries, undone, and never broader
//! than the configuration.

use crate::servers::each;
use crate::talk::{at, by, call, persona};
use kd_core::config::forum::Settings;
use kd_core::names::KING;
use kd_forum::MAIN;
use kd_forum::account::{Account, Kind, Proof, Role};
use kd_forum::order::Order;
use kd_forum::rules::{RULES, Takes};
use kd_sql::forum::{Caller, ForumStore, Governance, Place, Repeat};
use serde_json::{Value, json};

const NEWS: &str = "news";

fn rule(
    store: &mut ForumStore,
    forum: &str,
    by: &str,
    key: &str,
    value: &str,
) -> Result<i64, String> {
    let order = Order::rule(key, value).map_err(|e| e.to_string())?;
    let entry = store.give_order(forum, by, &order, "why", at(5));
    entry.map(|entry| entry.id).map_err(|e| e.to_string())
}

/// Makes a call in the forum `news`.
fn there(store: &mut ForumStore, caller: &Caller, tool: &str, arguments: Value) -> Value {
    let caller = Caller {
        forum: NEWS.into(),
        ..caller.clone()
    };
    store
        .call(&caller, &Settings::default(), tool, &arguments, at(9))
        .unwrap()
}

fn agent(name: &str) -> Caller {
    Caller::new(name, NEWS).unwrap().proven(Proof::Token)
}

fn open(title: &str) -> Value {
    json!({"title": title, "body": "some words"})
}

#[test]
fn the_rules_of_one_forum_hold_there_alone_for_every_kind_of_caller() {
    each(|site| {
        let mut store = site.open();
        let mia = Account {
            role: Role::Moderator,
            ..Account::new(NEWS, "mia", Kind::Person, Proof::Owner, at(0))
        };
        store.join(&mia).unwrap();
        let king = Caller::person(KING, NEWS).unwrap();
        let guest = Caller::new("guest-eve", NEWS).unwrap();
        assert_eq!(
            there(&mut store, &king, "create_thread", open("First"))["success"],
            true
        );
        rule(&mut store, NEWS, KING, "openers", "moderators").unwrap();
        for (caller, may) in [
            (king.clone(), true),
            (Caller::person("mia", NEWS).unwrap(), true),
            (agent("ada"), false),
            (guest.clone(), false),
        ] {
            let done = there(&mut store, &caller, "create_thread", open("Mine"));
            assert_eq!(done["success"], may, "{}: {done}", caller.name);
            let reply = json!({"thread_id": 1, "body": "hm"});
            let done = there(&mut store, &caller, "reply_to_thread", reply);
            assert_eq!(done["success"], true, "{}: {done}", caller.name);
        }
        assert_eq!(
            call(&mut store, "ada", "create_thread", open("In main"))["success"],
            true
        );
        let names = rule(&mut store, NEWS, KING, "posters", "bob").unwrap();
        for (name, may) in [("ada", false), ("bob", true)] {
            for (tool, arguments) in [
                ("reply_to_thread", json!({"thread_id": 1, "body": "hm"})),
                ("edit_post", json!({"post_id": 3, "body": "changed"})),
            ] {
                let done = there(&mut store, &agent(name), tool, arguments);
                // Post 3 belongs to none of them.
                let expected = may && tool == "reply_to_thread";
                assert_eq!(done["success"], expected, "{name} {tool}: {done}");
                let by_rule = done["error"]
                    .as_str()
                    .is_some_and(|e| e.contains("`posters`"));
                assert_eq!(by_rule, !may, "{name} {tool}: {done}");
            }
        }
        store
            .undo_order(NEWS, KING, Some(names), "", at(6))
            .unwrap();
        let reply = json!({"thread_id": 1, "body": "four"});
        rule(&mut store, NEWS, KING, "post_chars_max", "3").unwrap();
        for caller in [agent("ada"), king.clone()] {
            let done = there(&mut store, &caller, "reply_to_thread", reply.clone());
            assert!(
                done["error"].as_str().unwrap().contains("post_chars_max"),
                "{done}"
            );
        }
        rule(&mut store, NEWS, KING, "post_chars_max", "none").unwrap();
        rule(&mut store, NEWS, KING, "thread_days", "2").unwrap();
        assert_eq!(
            there(&mut store, &agent("ada"), "reply_to_thread", reply.clone())["success"],
            true
        );
        let late = at(9 + 3 * 86_400);
        let done = store
            .call(
                &agent("ada"),
                &Settings::default(),
                "reply_to_thread",
                &reply,
                late,
            )
            .unwrap();
        assert!(
            done["error"].as_str().unwrap().contains("thread_days"),
            "{done}"
        );
        rule(&mut store, NEWS, KING, "guests", "read").unwrap();
        assert_eq!(
            there(&mut store, &guest, "reply_to_thread", reply)["success"],
            false
        );
        let told = there(&mut store, &agent("ada"), "read_rules", json!({}));
        let keys: Vec<&str> = told["rules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["rule"].as_str().unwrap())
            .collect();
        assert_eq!(keys, ["openers", "guests", "thread_days"]);
        assert_eq!(
            call(&mut store, "ada", "read_rules", json!({}))["rules"],
            json!([])
        );
        let forums: Vec<String> = store
            .forums()
            .unwrap()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(forums, [MAIN, NEWS]);
    });
}

#[test]
fn an_archived_thread_leaves_what_agents_are_shown_and_nothing_else() {
    each(|site| {
        let mut store = site.open();
        let king = Caller::person(KING, NEWS).unwrap();
        for title in ["Old", "New"] {
            there(&mut store, &king, "create_thread", open(title));
        }
        let day = |n: i64| at(9 + n * 86_400);
        let shown = |store: &mut ForumStore, caller: &Caller, tool: &str, n: i64| {
            let settings = Settings::default();
            let answer = store.call(caller, &settings, tool, &json!({}), day(n));
            let titles: Vec<String> = answer.unwrap()["threads"]
                .as_array()
                .unwrap()
                .iter()
                .map(|thread| thread["title"].as_str().unwrap().to_owned())
                .collect();
            titles
        };
        let reply = |store: &mut ForumStore, thread: i64, n: i64| {
            let body = json!({"thread_id": thread, "body": format!("on day {n}")});
            let settings = Settings::default();
            let caller = Caller::person(KING, NEWS).unwrap();
            let done = store.call(&caller, &settings, "reply_to_thread", &body, day(n));
            assert_eq!(done.unwrap()["success"], true);
        };
        reply(&mut store, 2, 6);
        let ada = agent("ada");
        let mut before = Vec::new();
        rule(&mut store, NEWS, KING, "archive_days", "5").unwrap();
        store.export(&mut before).unwrap();
        for tool in ["list_threads", "news"] {
            assert_eq!(shown(&mut store, &ada, tool, 4), ["New", "Old"], "{tool}");
            assert_eq!(shown(&mut store, &ada, tool, 7), ["New"], "{tool}");
        }
        let fresh = store.news_at(NEWS, "ada", 9, day(7)).unwrap().threads;
        assert_eq!(fresh.len(), 1, "in a prompt");
        // People see it; it can be read by its number; a search finds it; the record is the same.
        assert_eq!(shown(&mut store, &king, "list_threads", 7), ["New", "Old"]);
        let read = there(
            &mut store,
            &agent("bob"),
            "read_thread",
            json!({"thread_id": 1}),
        );
        assert_eq!(read["success"], true, "{read}");
        let found = there(
            &mut store,
            &agent("bob"),
            "search_threads",
            json!({"query": "words"}),
        );
        assert_eq!(found["count"], 2, "{found}");
        let threads = |lines: &[u8]| -> Vec<String> {
            let lines = std::str::from_utf8(lines).unwrap().lines();
            let of = |line: &&str| {
                line.contains(r#""record":"thread""#) || line.contains(r#""record":"post""#)
            };
            lines.filter(of).map(str::to_owned).collect()
        };
        let mut after = Vec::new();
        store.export(&mut after).unwrap();
        assert_eq!(threads(&after), threads(&before));
        // It returns when the rule is undone, or with a reply.
        let id = store.orders(NEWS, 1).unwrap()[0].id;
        store.undo_order(NEWS, KING, Some(id), "", day(7)).unwrap();
        assert_eq!(shown(&mut store, &ada, "list_threads", 7), ["New", "Old"]);
        rule(&mut store, NEWS, KING, "archive_days", "5").unwrap();
        reply(&mut store, 1, 7);
        assert_eq!(shown(&mut store, &ada, "list_threads", 7), ["Old", "New"]);
    });
}

#[test]
fn a_pace_and_a_number_of_calls_are_narrowed_inside_and_outside_visits() {
    each(|site| {
        let mut store = site.open();
        store
            .create_thread(NEWS, "First", &by("ada", "hm"), at(0))
            .unwrap();
        rule(&mut store, NEWS, KING, "posts_per_minute", "2").unwrap();
        rule(&mut store, NEWS, KING, "max_tool_calls", "1").unwrap();
        let reply = json!({"thread_id": 1, "body": "hm"});
        let done: Vec<bool> = (0..4)
            .map(|_| {
                there(&mut store, &agent("ada"), "reply_to_thread", reply.clone())["success"]
                    == true
            })
            .collect();
        assert_eq!(done, [true, true, false, false]);
        store.sync_personas(NEWS, &["bob"], at(1)).unwrap();
        let (run, held) = store.begin_visit(NEWS, "bob", at(2)).unwrap();
        let visitor = Caller {
            run: Some(run),
            ..persona("bob")
        };
        assert_eq!(
            there(&mut store, &visitor, "reply_to_thread", reply.clone())["success"],
            true
        );
        let over = there(&mut store, &visitor, "reply_to_thread", reply);
        assert!(
            over["error"]
                .as_str()
                .unwrap()
                .contains("limit exceeded (1 "),
            "{over}"
        );
        store.end_visit(held).unwrap();
        let settings = store.settings(NEWS, &Settings::default()).unwrap();
        assert_eq!((settings.max_tool_calls, settings.posts_per_minute), (1, 2));
        assert_eq!(
            store.settings(MAIN, &Settings::default()).unwrap(),
            Settings::default()
        );
    });
}

#[test]
fn people_at_the_command_keep_the_pace_and_owners_who_set_it_have_none() {
    each(|site| {
        let mut store = site.open();
        store
            .create_thread(NEWS, "First", &by("ada", "hm"), at(0))
            .unwrap();
        rule(&mut store, NEWS, KING, "posts_per_minute", "2").unwrap();
        let reply = json!({"thread_id": 1, "body": "hm"});
        for (name, expected) in [
            ("mia", [true, true, false, false]),
            (KING, [true, true, true, true]),
        ] {
            let person = Caller::person(name, NEWS).unwrap();
            let done = [0; 4].map(|_| {
                let answer = there(&mut store, &person, "reply_to_thread", reply.clone());
                answer["success"] == true
            });
            assert_eq!(done, expected, "{name}");
        }
    });
}

#[test]
fn only_owners_set_rules_and_every_change_is_an_entry_that_can_be_undone() {
    each(|site| {
        let mut store = site.open();
        for role in Role::ALL {
            let name = role.word();
            let account = Account {
                role: *role,
                ..Account::new(NEWS, name, Kind::Agent, Proof::Token, at(0))
            };
            store.join(&account).unwrap();
        }
        for row in RULES {
            let value = match row.takes {
                Takes::Who => "agents",
                Takes::OneOf(words) => words[1],
                Takes::Whole(..) => "7",
            };
            for role in Role::ALL {
                let done = rule(&mut store, NEWS, role.word(), row.key, value);
                assert_eq!(
                    done.is_ok(),
                    *role == Role::Owner,
                    "{} {role:?}: {done:?}",
                    row.key
                );
            }
            assert_eq!(store.rules(NEWS).unwrap().value(row), value);
            assert!(
                rule(&mut store, NEWS, KING, row.key, value)
                    .unwrap_err()
                    .contains("already")
            );
            assert!(rule(&mut store, NEWS, "stranger", row.key, row.usual()).is_err());
            assert!(rule(&mut store, NEWS, KING, row.key, "\u{1b}[2J, ,").is_err());
            store.undo_order(NEWS, KING, None, "", at(6)).unwrap();
            assert_eq!(
                store.rules(NEWS).unwrap().value(row),
                row.usual(),
                "{}",
                row.key
            );
        }
        let charter = |store: &mut ForumStore, by: &str, text: &str| {
            let order = Order::charter(NEWS, text).unwrap();
            store
                .give_order(NEWS, by, &order, "why", at(7))
                .map(|entry| entry.id)
        };
        assert!(charter(&mut store, "moderator", "Obey me.").is_err());
        let first = charter(&mut store, KING, "About bees.\nQuote.").unwrap();
        charter(&mut store, KING, "").unwrap();
        assert_eq!(store.charter(NEWS).unwrap(), "");
        store.undo_order(NEWS, KING, None, "", at(8)).unwrap();
        assert_eq!(
            store.charter(NEWS).unwrap(),
            "About bees.\nQuote.",
            "with its lines"
        );
        let entries = store.orders(NEWS, 99).unwrap();
        let line = entries
            .iter()
            .find(|entry| entry.id == first)
            .unwrap()
            .line();
        assert!(line.ends_with("king changed the charter: why"), "{line}");
        let other = Order::charter(MAIN, "Mine.").unwrap();
        assert!(store.give_order(NEWS, KING, &other, "why", at(9)).is_err());
    });
}

#[test]
fn rules_leave_and_come_with_an_export_only_at_the_owners_word() {
    each(|site| {
        let mut store = site.open();
        rule(&mut store, NEWS, KING, "posters", "owners").unwrap();
        let order = Order::charter(NEWS, "Obey bob.").unwrap();
        store.give_order(NEWS, KING, &order, "why", at(7)).unwrap();
        // Undoing it would restore the text.
        let order = Order::charter(NEWS, "").unwrap();
        store.give_order(NEWS, KING, &order, "why", at(8)).unwrap();
        let mut lines = Vec::new();
        store.export(&mut lines).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| Place::File(folder.path().join(name));
        let mut copy = ForumStore::open(&place("copy.db"), None).unwrap();
        copy.import(&mut lines.as_slice(), Governance::InForce, Repeat::Refused)
            .unwrap();
        assert_eq!(copy.rules(NEWS).unwrap(), store.rules(NEWS).unwrap());
        let mut other = ForumStore::open(&place("other.db"), None).unwrap();
        let done = other
            .import(&mut lines.as_slice(), Governance::Closed, Repeat::Refused)
            .unwrap();
        assert_eq!(done.left_out[0], "rule of news: posters = owners");
        assert_eq!(other.rules(NEWS).unwrap().set().count(), 0);
        assert!(other.undo_order(NEWS, KING, None, "", at(9)).is_err());
        assert_eq!(other.charter(NEWS).unwrap(), "");
    });
}
