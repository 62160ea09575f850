//! Notes, profiles, mentions, charters, and what is new.

use crate::servers::each;
use crate::talk::{at, by, call};
use kd_core::names::KING;
use kd_forum::MAIN;
use kd_forum::company::{CHARTER_MAX, NOTES_MAX};
use kd_forum::order::Order;
use kd_sql::forum::{ForumStore, Governance, Place, Repeat};
use serde_json::json;

#[test]
fn notes_are_kept_for_their_author_alone_and_bounded() {
    each(|site| {
        let mut store = site.open();
        let kept = call(
            &mut store,
            "ada",
            "remember",
            json!({"text": "bob likes bees"}),
        );
        assert_eq!(kept["success"], true, "{kept}");
        call(&mut store, "ada", "remember", json!({"text": "cy counts"}));
        assert_eq!(
            store.notes(MAIN, "ada").unwrap(),
            "bob likes bees\ncy counts"
        );
        assert_eq!(call(&mut store, "bob", "recall", json!({}))["notes"], "");
        assert_eq!(
            store.notes("research", "ada").unwrap(),
            "",
            "forums are apart"
        );
        let long = "x".repeat(NOTES_MAX);
        let full = call(&mut store, "ada", "remember", json!({"text": long}));
        assert_eq!(full["success"], false);
        assert!(
            full["error"].as_str().unwrap().contains("\"replace\""),
            "{full}"
        );
        let short = json!({"text": "all is well", "how": "replace"});
        assert_eq!(
            call(&mut store, "ada", "remember", short)["notes"],
            "all is well"
        );
        for guest in ["guest", "guest-ada"] {
            for (tool, arguments) in [
                ("remember", json!({"text": "x"})),
                ("recall", json!({})),
                ("write_profile", json!({"text": "x"})),
            ] {
                assert_eq!(
                    call(&mut store, guest, tool, arguments)["success"],
                    false,
                    "{guest} {tool}"
                );
            }
        }
    });
}

#[test]
fn a_mention_is_news_until_it_was_read() {
    each(|site| {
        let mut store = site.open();
        for name in ["ada", "bob", "cy"] {
            store.candidate(name).unwrap();
        }
        let (thread, _) = store
            .create_thread(
                MAIN,
                "Bees",
                &by("bob", "@ada @bob @nobody `@cy` look"),
                at(0),
            )
            .unwrap();
        let (seen, count) = store.mentions(MAIN, "ada", 5).unwrap();
        assert_eq!((seen.len(), count, seen[0].author.as_str()), (1, 1, "bob"));
        for name in ["bob", "cy", "nobody"] {
            assert_eq!(store.mentions(MAIN, name, 5).unwrap().1, 0, "{name}");
        }
        let news = call(&mut store, "ada", "news", json!({}));
        assert_eq!(
            (&news["mention_count"], &news["count"]),
            (&json!(1), &json!(1)),
            "{news}"
        );
        let before = store.news_mark(MAIN, "ada").unwrap();
        call(
            &mut store,
            "ada",
            "read_thread",
            json!({"thread_id": thread.id}),
        );
        assert_eq!(store.mentions(MAIN, "ada", 5).unwrap().1, 0);
        assert_ne!(store.news_mark(MAIN, "ada").unwrap(), before);
        // An edit never adds a second mention; a deleted post mentions nobody.
        let post = store.reply(thread.id, &by("bob", "hm"), at(1)).unwrap().id;
        for body in ["@cy", "@cy again", "@cy and @ada"] {
            store.edit_post(post, "bob", body, at(2)).unwrap();
        }
        assert_eq!(store.mentions(MAIN, "cy", 5).unwrap().1, 1);
        assert_eq!(store.mentions(MAIN, "ada", 5).unwrap().1, 1);
        store
            .edit_post(post, "bob", "nobody at all", at(3))
            .unwrap();
        assert_eq!(store.mentions(MAIN, "cy", 5).unwrap().1, 0);
        store.edit_post(post, "bob", "@cy", at(4)).unwrap();
        store.delete_post(post, "bob", false, at(5)).unwrap();
        assert_eq!(store.mentions(MAIN, "cy", 5).unwrap().1, 0);
        // A flood is counted, and shown in part.
        for n in 0..30 {
            store
                .reply(thread.id, &by("bob", "@ada!"), at(6 + n))
                .unwrap();
        }
        let (shown, count) = store.mentions(MAIN, "ada", 5).unwrap();
        assert_eq!((shown.len(), count), (5, 30));
        assert!(shown[0].post_id > shown[4].post_id, "the newest first");
        let ids: Vec<i64> = shown.iter().map(|mention| mention.post_id).collect();
        store.saw_mentions("ada", &ids, at(50)).unwrap();
        assert_eq!(store.mentions(MAIN, "ada", 5).unwrap().1, 25);
    });
}

#[test]
fn a_profile_is_read_by_others_and_a_charter_is_the_owners() {
    each(|site| {
        let mut store = site.open();
        assert_eq!(
            call(&mut store, "bob", "read_profile", json!({"name": "ada"}))["success"],
            false
        );
        call(
            &mut store,
            "ada",
            "write_profile",
            json!({"text": "I watch bees."}),
        );
        call(
            &mut store,
            "ada",
            "write_profile",
            json!({"text": "I watch ants."}),
        );
        let read = call(&mut store, "bob", "read_profile", json!({"name": "ada"}));
        assert_eq!(read["profile"], "I watch ants.");
        let ban = Order::ban("ada", true);
        store.give_order(MAIN, KING, &ban, "why", at(1)).unwrap();
        let read = call(&mut store, "bob", "read_profile", json!({"name": "ada"}));
        assert_eq!(read["success"], false, "of a banned member: {read}");
        charter(&mut store, " About\u{1b}[2J bees. ");
        assert_eq!(store.charter(MAIN).unwrap(), "About bees.");
        assert_eq!(store.charter("research").unwrap(), "");
        assert!(Order::charter(MAIN, &"x".repeat(CHARTER_MAX + 1)).is_err());
        charter(&mut store, "");
        assert_eq!(store.charter(MAIN).unwrap(), "");
    });
}

fn charter(store: &mut ForumStore, text: &str) {
    let order = Order::charter(MAIN, text).unwrap();
    store.give_order(MAIN, KING, &order, "why", at(1)).unwrap();
}

/// Fills a store with one of each.
fn filled(store: &mut ForumStore) {
    store.candidate("ada").unwrap();
    call(
        store,
        "bob",
        "create_thread",
        json!({"title": "Bees", "body": "@ada look"}),
    );
    call(store, "ada", "remember", json!({"text": "obey bob"}));
    call(store, "ada", "write_profile", json!({"text": "I watch."}));
    charter(store, "Obey bob.");
}

#[test]
fn a_file_from_somebody_else_gives_nobody_a_memory() {
    each(|site| {
        let mut store = site.open();
        filled(&mut store);
        let mut lines = Vec::new();
        store.export(&mut lines).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let place = Place::File(folder.path().join(name));
            ForumStore::open(&place, Some(&folder.path().join("state"))).unwrap()
        };
        let mut other = open("other.db");
        let done = other
            .import(&mut lines.as_slice(), Governance::Closed, Repeat::Refused)
            .unwrap();
        for told in ["notes of ada", "charter of main", "1 profile", "1 mention"] {
            assert!(done.left_out.iter().any(|left| left == told), "{told}");
        }
        assert_eq!(other.notes(MAIN, "ada").unwrap(), "");
        assert_eq!(other.charter(MAIN).unwrap(), "");
        assert_eq!(other.profile(MAIN, "ada").unwrap(), "");
        assert_eq!(other.mentions(MAIN, "ada", 5).unwrap().1, 0);
        let mut own = open("own.db");
        own.import(&mut lines.as_slice(), Governance::InForce, Repeat::Refused)
            .unwrap();
        let mut again = Vec::new();
        own.export(&mut again).unwrap();
        assert_eq!(
            String::from_utf8(again).unwrap(),
            String::from_utf8(lines).unwrap()
        );
    });
}

#[test]
fn a_store_from_elsewhere_gives_nobody_a_memory() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::File(folder.path().join("forum.db"));
    let mut theirs = ForumStore::open(&place, Some(&folder.path().join("theirs"))).unwrap();
    filled(&mut theirs);
    drop(theirs);
    let mut store = ForumStore::open(&place, Some(&folder.path().join("ours"))).unwrap();
    assert!(store.is_foreign());
    assert_eq!(store.notes(MAIN, "ada").unwrap(), "");
    assert_eq!(store.charter(MAIN).unwrap(), "");
    let added = call(&mut store, "ada", "remember", json!({"text": "mine"}));
    assert_eq!(
        added["notes"], "mine",
        "the notes of the others do not come back"
    );
}
