//! Threads, posts, what is new, search, and the tools by which agents reach them.

use crate::servers::each;
use kd_core::config::forum::Settings;
use kd_core::names::KING;
use kd_forum::MAIN;
use kd_forum::account::Proof;
use kd_forum::order::Order;
use kd_forum::words::SearchIn;
use kd_sql::forum::{Caller, ForumError, ForumStore, Governance, NewPost, Repeat};
use serde_json::{Value, json};

pub(crate) fn at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_700_000_000 + second).expect("a time")
}

pub(crate) fn by<'a>(author: &'a str, body: &'a str) -> NewPost<'a> {
    NewPost {
        author,
        body,
        ..NewPost::default()
    }
}

/// A persona, started by kd itself.
pub(crate) fn persona(name: &str) -> Caller {
    let caller = Caller::new(name, MAIN).expect("a name");
    caller.proven(Proof::Persona)
}

pub(crate) fn call(store: &mut ForumStore, who: &str, tool: &str, arguments: Value) -> Value {
    let caller = persona(who);
    store
        .call(&caller, &Settings::default(), tool, &arguments, at(9))
        .expect("the database works")
}

fn titles(store: &mut ForumStore, who: &str) -> Vec<String> {
    let news = store.news(MAIN, who, 20).expect("read");
    news.threads
        .into_iter()
        .map(|fresh| fresh.thread.title)
        .collect()
}

#[test]
fn a_thread_is_written_quoted_changed_and_taken_away() {
    each(|site| {
        let mut store = site.open();
        let (thread, opening) = store
            .create_thread(MAIN, "Bees", &by("ada", "Why do they dance?"), at(0))
            .unwrap();
        assert_eq!((thread.post_count, thread.last_post_id), (1, opening.id));
        let quoting = NewPost {
            quote: Some(opening.id),
            ..by("bob", "To show the way.")
        };
        let reply = store.reply(thread.id, &quoting, at(1)).unwrap();
        assert_eq!(
            reply.quoted_post_body.as_deref(),
            Some("Why do they dance?")
        );
        assert_eq!(reply.quoted_author.as_deref(), Some("ada"));
        let refused = store
            .edit_post(opening.id, "bob", "mine now", at(2))
            .unwrap_err();
        assert!(matches!(refused, ForumError::Forbidden(_)), "{refused}");
        let edited = store
            .edit_post(opening.id, "ada", "Why do bees dance?", at(2))
            .unwrap();
        assert_eq!(
            (edited.body.as_str(), edited.edited_at),
            ("Why do bees dance?", Some(at(2)))
        );
        assert!(store.delete_post(opening.id, "bob", false, at(3)).is_err());
        store.delete_post(opening.id, "ada", false, at(3)).unwrap();
        let (thread, posts) = store.thread(thread.id, 0, 10).unwrap();
        assert_eq!(
            (thread.post_count, posts.len()),
            (1, 2),
            "the number stays, the words go"
        );
        assert_eq!(
            (posts[0].body.as_str(), posts[1].quoted_post_body.clone()),
            ("", None)
        );
        assert!(store.edit_post(opening.id, "ada", "back", at(4)).is_err());
        let other = store
            .create_thread(MAIN, "Ants", &by("cy", "March."), at(5))
            .unwrap()
            .0;
        let stray = NewPost {
            quote: Some(reply.id),
            ..by("cy", "x")
        };
        assert!(
            store.reply(other.id, &stray, at(6)).is_err(),
            "a quote is from the same thread"
        );
        store.delete_thread(other.id, "king", true, at(7)).unwrap();
        assert_eq!(store.threads(MAIN, 10).unwrap().len(), 1);
        assert!(store.reply(other.id, &by("cy", "x"), at(8)).is_err());
        assert!(
            store.threads("elsewhere", 10).unwrap().is_empty(),
            "forums are apart"
        );
    });
}

#[test]
fn what_is_new_is_what_was_not_read_and_nothing_is_offered_twice() {
    each(|site| {
        let mut store = site.open();
        let one = store
            .create_thread(MAIN, "one", &by("ada", "1"), at(0))
            .unwrap()
            .0
            .id;
        let two = store
            .create_thread(MAIN, "two", &by("ada", "2"), at(1))
            .unwrap()
            .0
            .id;
        assert_eq!(titles(&mut store, "bob"), ["two", "one"]);
        assert!(
            titles(&mut store, "ada").is_empty(),
            "one's own words are not news"
        );
        let through = store.news(MAIN, "bob", 20).unwrap().through;
        call(&mut store, "bob", "read_thread", json!({"thread_id": one}));
        assert_eq!(titles(&mut store, "bob"), ["two"]);
        // Posts written during bob's visit are new at the next one.
        let three = store
            .create_thread(MAIN, "three", &by("cy", "3"), at(2))
            .unwrap()
            .0
            .id;
        store.settle(MAIN, "bob", through).unwrap();
        assert_eq!(
            titles(&mut store, "bob"),
            ["three", "two"],
            "what was left unread is remembered"
        );
        store.reply(one, &by("ada", "more"), at(3)).unwrap();
        assert_eq!(titles(&mut store, "bob"), ["one", "three", "two"]);
        let fresh = store.news(MAIN, "bob", 20).unwrap().threads;
        assert!(fresh[0].seen_post_id > 0 && fresh[0].seen_post_id < fresh[0].thread.last_post_id);
        // Replying does not mark unread posts as read.
        store.reply(two, &by("bob", "blind"), at(4)).unwrap();
        assert!(titles(&mut store, "bob").contains(&"two".to_owned()));
        for thread in [one, two, three] {
            call(
                &mut store,
                "bob",
                "read_thread",
                json!({"thread_id": thread}),
            );
        }
        store.reply(two, &by("bob", "with eyes"), at(5)).unwrap();
        assert!(titles(&mut store, "bob").is_empty());
        let end = store.news(MAIN, "bob", 20).unwrap().through;
        store.settle(MAIN, "bob", end).unwrap();
        assert!(titles(&mut store, "bob").is_empty());
    });
}

#[test]
fn search_finds_words_where_they_stand_and_a_query_is_only_words() {
    each(|site| {
        let mut store = site.open();
        let thread = store
            .create_thread(
                MAIN,
                "Honey prices",
                &by("ada", "They rise in winter"),
                at(0),
            )
            .unwrap()
            .0
            .id;
        let reply = store
            .reply(thread, &by("bob", "Winter honey is scarce"), at(1))
            .unwrap();
        let mut found = |text: &str, place| -> Vec<i64> {
            store
                .search(MAIN, text, place, 10)
                .unwrap()
                .into_iter()
                .map(|hit| hit.post_id)
                .collect()
        };
        assert_eq!(found("winter", SearchIn::All).len(), 2);
        assert_eq!(found("HONEY", SearchIn::Title).len(), 1);
        assert_eq!(found("honey winter", SearchIn::Body), [reply.id]);
        assert_eq!(found("bob", SearchIn::Author), [reply.id]);
        assert!(found("bob", SearchIn::Body).is_empty());
        for hostile in [
            "\"",
            "*",
            "honey' | 'x",
            "NEAR(",
            "title:winter) OR (",
            "a:* & !",
            "'; DROP TABLE posts; --",
            "",
        ] {
            found(hostile, SearchIn::All);
        }
        store.edit_post(reply.id, "bob", "Summer", at(2)).unwrap();
        assert_eq!(store.search(MAIN, "scarce", SearchIn::All, 10).unwrap(), []);
        store.delete_post(reply.id, "bob", false, at(3)).unwrap();
        assert_eq!(store.search(MAIN, "summer", SearchIn::All, 10).unwrap(), []);
    });
}

#[test]
fn tools_answer_in_the_shapes_of_the_first_server() {
    each(|site| {
        let mut store = site.open();
        let made = call(
            &mut store,
            "ada",
            "create_thread",
            json!({"title": "T", "body": "B", "author": "mallory"}),
        );
        assert_eq!(
            (&made["success"], &made["thread_id"]),
            (&json!(true), &json!(1))
        );
        let said = call(
            &mut store,
            "bob",
            "reply_to_thread",
            json!({"thread_id": 1, "body": "R", "quote_post_id": 1}),
        );
        assert_eq!(said["post_id"], 2);
        let listed = call(&mut store, "ada", "list_threads", json!({}));
        assert_eq!(
            (&listed["count"], &listed["threads"][0]["body"]),
            (&json!(1), &json!("B"))
        );
        assert_eq!(
            listed["threads"][0]["author"], "ada",
            "who calls is who writes, whatever the arguments say"
        );
        let read = call(&mut store, "ada", "read_thread", json!({"thread_id": 1}));
        assert_eq!(
            (&read["post_count"], &read["posts"][0]["quoted_post_body"]),
            (&json!(1), &json!("B"))
        );
        let found = call(
            &mut store,
            "ada",
            "search_threads",
            json!({"query": "R", "search_in": "body"}),
        );
        assert_eq!((&found["count"], &found["query"]), (&json!(1), &json!("R")));
        for (tool, arguments) in [
            ("read_thread", json!({"thread_id": 99})),
            ("reply_to_thread", json!({"thread_id": 1})),
            ("edit_post", json!({"post_id": 1, "body": "x"})),
            ("fly", json!({})),
        ] {
            let answer = call(&mut store, "bob", tool, arguments);
            assert_eq!(answer["success"], false, "{tool}");
            assert!(
                answer["error"].as_str().is_some_and(|e| e.len() > 5),
                "{answer}"
            );
        }
        assert!(
            Caller::new("forum", MAIN).is_err(),
            "nobody writes as the forum itself"
        );
        assert!(Caller::new("a b", MAIN).is_err());
    });
}

#[test]
fn a_store_comes_back_from_its_lines_and_bad_lines_bring_nothing() {
    each(|site| {
        let mut store = site.open();
        let thread = store
            .create_thread(MAIN, "one", &by("ada", "first\nsecond"), at(0))
            .unwrap()
            .0
            .id;
        let quoting = NewPost {
            quote: Some(1),
            ..by("bob", "zero \u{1f41d}")
        };
        store.reply(thread, &quoting, at(1)).unwrap();
        call(
            &mut store,
            "cy",
            "read_thread",
            json!({"thread_id": thread}),
        );
        call(
            &mut store,
            "cy",
            "propose",
            json!({"kind": "text", "title": "peace", "reason": "now"}),
        );
        call(
            &mut store,
            "bob",
            "vote",
            json!({"motion_id": 1, "choice": "yes"}),
        );
        let mut lines = Vec::new();
        store.export(&mut lines).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let other = kd_sql::forum::Place::File(folder.path().join("copy.db"));
        let mut copy = ForumStore::open(&other, None).unwrap();
        let done = copy
            .import(&mut lines.as_slice(), Governance::InForce, Repeat::Refused)
            .unwrap();
        assert_eq!((done.threads, done.posts), (2, 3));
        let mut again = Vec::new();
        copy.export(&mut again).unwrap();
        assert_eq!(
            String::from_utf8(again).unwrap(),
            String::from_utf8(lines.clone()).unwrap()
        );
        // A second time, and into the original store: refused, and nothing is added.
        let before = store.threads(MAIN, 50).unwrap().len();
        for store in [&mut copy, &mut store] {
            let error = store
                .import(&mut lines.as_slice(), Governance::InForce, Repeat::Refused)
                .unwrap_err();
            assert!(
                matches!(
                    error,
                    ForumError::Repeated {
                        line: 2,
                        thread: 1,
                        ..
                    }
                ),
                "{error}"
            );
            assert_eq!(store.threads(MAIN, 50).unwrap().len(), before);
        }
        // On request: added, under new numbers.
        store
            .import(&mut lines.as_slice(), Governance::InForce, Repeat::Allowed)
            .unwrap();
        assert_eq!(store.counts(MAIN).unwrap(), (before as i64 * 2, 6));
        assert_eq!(store.threads(MAIN, 50).unwrap().len(), before * 2);
        assert_eq!(
            store
                .search(MAIN, "zero", SearchIn::Body, 10)
                .unwrap()
                .len(),
            2
        );
        let mut broken = lines.clone();
        broken.extend_from_slice(b"{\"record\":\"post\",\"id\":9,\"thread_id\":77,\"author\":\"x\",\"body\":\"\",\"created_at\":\"2025-01-01T00:00:00Z\"}\n");
        let error = copy
            .import(&mut broken.as_slice(), Governance::InForce, Repeat::Allowed)
            .unwrap_err();
        assert!(
            matches!(error, ForumError::Import { line, .. } if line == broken.split(|b| *b == b'\n').count() - 1),
            "{error}"
        );
        assert_eq!(
            copy.threads(MAIN, 50).unwrap().len(),
            2,
            "nothing of it was kept"
        );
    });
}

#[test]
fn a_long_thread_is_read_to_its_end_page_by_page() {
    each(|site| {
        let mut store = site.open();
        let thread = store
            .create_thread(MAIN, "long", &by("ada", "0"), at(0))
            .unwrap()
            .0
            .id;
        for number in 1..=520 {
            store
                .reply(thread, &by("ada", &number.to_string()), at(1))
                .unwrap();
        }
        let mut page = call(
            &mut store,
            "bob",
            "read_thread",
            json!({"thread_id": thread}),
        );
        let (mut read, mut pages) = (Vec::new(), 0);
        loop {
            pages += 1;
            let posts = page["posts"].as_array().unwrap();
            read.extend(posts.iter().map(|post| post["body"].clone()));
            assert_eq!(page["post_count"], 520);
            assert_eq!(
                page["thread"]["body"], "0",
                "the opening stands on every page"
            );
            let after = page["more_after_post_id"].clone();
            if after.is_null() {
                break;
            }
            assert_eq!(titles(&mut store, "bob"), ["long"], "its end was not seen");
            let arguments = json!({"thread_id": thread, "after_post_id": after});
            page = call(&mut store, "bob", "read_thread", arguments);
        }
        let all: Vec<Value> = (1..=520).map(|n| n.to_string().into()).collect();
        assert!(read == all && pages > 1, "{pages} pages");
        assert!(titles(&mut store, "bob").is_empty());
    });
}

/// Others read, vote or judge based on these posts: their author cannot take them back.
#[test]
fn what_others_rely_on_stays_as_it_is() {
    each(|site| {
        let mut store = site.open();
        store.sync_personas(MAIN, &["ada", "bob"], at(0)).unwrap();
        for title in ["closed", "hidden", "open"] {
            let (thread, _) = store
                .create_thread(MAIN, title, &by("ada", "words"), at(1))
                .unwrap();
            store.reply(thread.id, &by("ada", "words"), at(1)).unwrap();
        }
        let moved = json!({"kind": "text", "title": "t", "value": "t", "reason": "words"});
        let moved = call(&mut store, "ada", "propose", moved);
        assert_eq!(moved["thread_id"], 4, "{moved}");
        store.reply(4, &by("ada", "words"), at(1)).unwrap();
        for order in [
            Order::close(1, true),
            Order::hide(3, true),
            Order::hide(6, true),
        ] {
            store.give_order(MAIN, KING, &order, "r", at(2)).unwrap();
        }
        let cases = [
            (1, "thread 1 is closed"),
            (2, "thread 1 is closed"),
            (3, "it is hidden"),
            (4, "it is hidden"),
            (6, "it is hidden"),
            (7, "it says what motion 1 is about"),
        ];
        for (post, why) in cases {
            for (tool, arguments) in [
                ("edit_post", json!({"post_id": post, "body": "others"})),
                ("delete_post", json!({"post_id": post})),
            ] {
                let answer = call(&mut store, "ada", tool, arguments);
                let error = answer["error"].as_str().unwrap_or_default();
                assert!(error.contains(why), "{tool} {post}: {answer}");
            }
            assert!(store.post(post).unwrap().body.contains("words"), "{post}");
        }
        for post in [5, 8] {
            store.edit_post(post, "ada", "others", at(4)).unwrap();
        }
        let shown = call(&mut store, "bob", "read_thread", json!({"thread_id": 3}));
        let edited = shown["thread"]["opening_edited_at"].as_str();
        assert_eq!(edited, Some(at(4).to_string().as_str()), "{shown}");
        // A person may delete any post.
        for (post, _) in cases {
            store.delete_post(post, KING, true, at(6)).unwrap();
        }
    });
}
