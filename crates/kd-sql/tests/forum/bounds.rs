//! However much a forum contains, every tool's answer has a maximum size, and paging reaches everything.

use crate::chain::{draw_next, lead};
use crate::servers::each;
use crate::talk::{at, by, call, persona};
use kd_core::config::forum::Settings;
use kd_core::names::KING;
use kd_forum::MAIN;
use kd_forum::bounds::ANSWER_CHARS_MAX;
use kd_forum::company::{CHARTER_MAX, NOTES_MAX, PROFILE_MAX};
use kd_forum::logline::{LogEvent, LogLine};
use kd_forum::order::Order;
use kd_forum::tools::{BODY_MAX, REASON_MAX, TITLE_MAX, TOOLS};
use kd_sql::forum::{ForumError, ForumStore, NewPost};
use serde_json::{Value, json};

const THREADS: i64 = 130;
const MEMBERS: usize = 140;
const MOTIONS: usize = 60;

/// Returns a text of this length that is twice as long as JSON.
fn full(chars: usize) -> String {
    "\"".repeat(chars)
}

/// Fills everything an agent can read up to its maximum. The first thread, by a guest, has 40 posts of the maximum
/// length.
fn fill(store: &mut ForumStore) {
    let names: Vec<String> = (0..MEMBERS).map(|n| format!("member-{n:03}")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push("ada");
    store.sync_personas(MAIN, &names, at(0)).unwrap();
    let body = full(BODY_MAX);
    let title = full(TITLE_MAX);
    let (thread, opening) = store
        .create_thread(MAIN, &title, &by("guest-eve", &body), at(0))
        .unwrap();
    for _ in 0..40 {
        let post = NewPost {
            quote: Some(opening.id),
            ..by("guest-eve", &body)
        };
        store.reply(thread.id, &post, at(1)).unwrap();
    }
    let body = format!("@ada word {}", full(2_000));
    for _ in 1..THREADS {
        store
            .create_thread(MAIN, &title, &by("guest-eve", &body), at(1))
            .unwrap();
    }
    let reason = full(REASON_MAX);
    let settings = Settings::default();
    let mut open = Vec::new();
    for (n, name) in names.iter().take(MOTIONS).enumerate() {
        let arguments = json!({"kind": "text", "title": format!("{n} {}", full(TITLE_MAX - 4)), "reason": reason});
        let moved = store
            .call(&persona(name), &settings, "propose", &arguments, at(2))
            .unwrap();
        open.extend(moved["motion_id"].as_i64());
    }
    for name in &names {
        let arguments = json!({"motion_id": open[0], "choice": "yes", "reason": reason});
        let cast = store
            .call(&persona(name), &settings, "vote", &arguments, at(2))
            .unwrap();
        assert_eq!(cast["success"], true, "{cast}");
    }
    for _ in 0..150 {
        let event = LogEvent::RunCompleted {
            agent: "ada".into(),
            action: "skip".into(),
            success: false,
            post_id: None,
            reason: Some(reason.clone()),
        };
        let line = LogLine {
            at: at(3),
            forum: MAIN.into(),
            event,
        };
        store.log(&line).unwrap();
    }
    let order = Order::charter(MAIN, &full(CHARTER_MAX)).unwrap();
    store.give_order(MAIN, KING, &order, "why", at(3)).unwrap();
    call(store, "ada", "remember", json!({"text": full(NOTES_MAX)}));
    call(
        store,
        "ada",
        "write_profile",
        json!({"text": full(PROFILE_MAX)}),
    );
    let mut leader = lead(store);
    let cycle = draw_next(store, &mut leader, &settings, &names, None);
    let ended = store.finish_cycle(&mut leader, cycle.id, 1000, at(4));
    assert!(ended.is_ok(), "{ended:?}");
}

/// Returns arguments for a tool's longest answer.
fn greedy(tool: &str) -> Value {
    match tool {
        "read_thread" => json!({"thread_id": 1}),
        "search_threads" => json!({"query": "word", "limit": 200}),
        "read_profile" => json!({"name": "ada"}),
        "remember" => json!({"text": full(NOTES_MAX), "how": "replace"}),
        "list_threads" | "news" | "read_log" | "list_motions" => json!({"limit": 200}),
        "create_thread" => json!({"title": full(TITLE_MAX), "body": full(BODY_MAX)}),
        "reply_to_thread" => json!({"thread_id": 1, "body": full(BODY_MAX), "quote_post_id": 1}),
        "edit_post" | "delete_post" => json!({"post_id": 1, "body": full(BODY_MAX)}),
        "write_profile" => json!({"text": full(PROFILE_MAX)}),
        "propose" => {
            json!({"kind": "text", "title": full(TITLE_MAX), "reason": full(REASON_MAX)})
        }
        "vote" => json!({"motion_id": 1, "choice": "no", "reason": full(REASON_MAX)}),
        "skip" | "finish" => {
            json!({"did": "skip", "reason": full(REASON_MAX)})
        }
        _ => json!({}),
    }
}

/// Reads all pages.
fn pages(store: &mut ForumStore, tool: &str, first: &Value) -> Vec<Value> {
    let mut arguments = first.clone();
    let mut pages = Vec::new();
    loop {
        let page = call(store, "ada", tool, arguments.clone());
        let chars = page.to_string().chars().count();
        assert!(chars <= ANSWER_CHARS_MAX, "{tool}: {chars}");
        for (more, key) in [
            ("more_after_post_id", "after_post_id"),
            ("more_from_offset", "offset"),
        ] {
            if !page[more].is_null() {
                assert_ne!(page[more], arguments[key], "{tool} does not get ahead");
                arguments[key] = page[more].clone();
            }
        }
        let is_last = page["more_after_post_id"].is_null() && page["more_from_offset"].is_null();
        pages.push(page);
        if is_last {
            return pages;
        }
    }
}

#[test]
fn no_tool_answers_more_than_its_maximum_and_all_of_it_can_be_read() {
    each(|site| {
        let mut store = site.open();
        fill(&mut store);
        let lines = store.log_tail(MAIN, 10_000).unwrap().len();
        let motions = store.motions(MAIN, 10_000).unwrap().len();
        let threads = store.counts(MAIN).unwrap().0 as usize;
        let mut count = |tool: &str, list: &str| -> usize {
            let pages = pages(&mut store, tool, &greedy(tool));
            assert!(pages.len() > 1, "{tool} fits in one answer");
            pages
                .iter()
                .filter_map(|page| page[list].as_array().map(Vec::len))
                .sum()
        };
        assert_eq!(count("list_threads", "threads"), threads);
        assert_eq!(count("search_threads", "threads"), THREADS as usize - 1);
        assert_eq!(count("read_log", "lines"), lines);
        assert_eq!(count("list_motions", "motions"), motions);
        assert_eq!(count("fairness", "agents"), MEMBERS + 1);
        assert_eq!(count("read_thread", "posts"), 40);
        let news = call(&mut store, "ada", "news", greedy("news"));
        assert!(news["more"].is_string() && news["count"] != 0, "{news}");
        let grows = [
            "list_threads",
            "search_threads",
            "read_log",
            "list_motions",
            "fairness",
            "read_thread",
        ];
        for tool in TOOLS.iter().filter(|tool| !grows.contains(&tool.name)) {
            pages(&mut store, tool.name, &greedy(tool.name));
        }
        let long = call(&mut store, "bob", "read_thread", json!({"thread_id": 1}));
        assert_eq!(
            long["thread"]["body"].as_str().map(str::len),
            Some(BODY_MAX),
            "the longest post is shown whole"
        );
    });
}

#[test]
fn a_rule_about_the_time_between_cycles_holds_for_every_draw() {
    each(|site| {
        let mut store = site.open();
        let settings = Settings::default();
        let order = Order::rule("cycle_interval_secs", "3600").unwrap();
        store.give_order(MAIN, KING, &order, "slow", at(0)).unwrap();
        let mut leader = lead(&mut store);
        let mut draw = |store: &mut ForumStore, second: i64, seed| {
            let candidates = vec![store.candidate("ada").unwrap()];
            let drawn = store.draw_cycle(&mut leader, &settings, candidates, seed, at(second));
            let record = drawn.map(|drawn| drawn.record)?;
            store.finish_cycle(&mut leader, record.id, 0, at(second))
        };
        draw(&mut store, 0, None).unwrap();
        for (second, seed) in [(0, None), (3_599, None), (3_599, Some(7))] {
            let soon = draw(&mut store, second, seed).unwrap_err();
            assert!(matches!(soon, ForumError::TooSoon { .. }), "{soon}");
            let text = format!("{soon}; {}", soon.hint());
            assert!(
                text.contains("(3600 s)") && text.contains("start at 2023-11-14 23:13:20 UTC"),
                "{text}"
            );
        }
        assert_eq!(store.cycles(MAIN, 9).unwrap().len(), 1);
        draw(&mut store, 3_600, None).unwrap();
        // A virtual clock ran ahead: a real one does not wait for it.
        assert!(store.too_soon(MAIN, at(10)).unwrap().is_none());
        assert!(store.too_soon("research", at(3_601)).unwrap().is_none());
        let none = Order::rule("cycle_interval_secs", "none").unwrap();
        store
            .give_order(MAIN, KING, &none, "fast", at(3_601))
            .unwrap();
        draw(&mut store, 3_601, None).unwrap();
    });
}
