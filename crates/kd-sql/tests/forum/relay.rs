//! The local record of a visit to another forum: what stays here, what is sent, and what is recorded.

use crate::servers::each;
use crate::talk::at;
use kd_core::config::forum::Settings;
use kd_core::{Failure, FailureKind};
use kd_forum::account::Proof;
use kd_forum::tools::TOOLS;
use kd_forum::words::Outcome;
use kd_sql::forum::{Caller, ForumStore, RunEnd};
use serde_json::{Value, json};

const LAB: &str = "@lab";

/// Creates an agent on a visit to another forum.
fn visiting(store: &mut ForumStore, second: i64) -> Caller {
    let run = store.begin_run(None, LAB, "ada", at(second)).unwrap();
    Caller {
        run,
        ..Caller::new("ada", LAB).unwrap().proven(Proof::Persona)
    }
}

/// Relays a call to a forum that gives this answer; returns the answer, and what was sent.
fn relayed(
    store: &mut ForumStore,
    caller: &Caller,
    (tool, arguments): (&str, Value),
    answer: Result<Value, Failure>,
) -> (Value, Option<(String, Value)>) {
    let mut sent = None;
    let settings = Settings {
        max_tool_calls: 3,
        ..Settings::default()
    };
    let said = store.relay(
        caller,
        &settings,
        tool,
        &arguments,
        at(9),
        |tool, arguments| {
            sent = Some((tool.to_owned(), arguments.clone()));
            answer
        },
    );
    (said.unwrap(), sent)
}

#[test]
fn leaving_and_notes_stay_here_and_everything_else_is_sent() {
    each(|site| {
        let mut store = site.open();
        for tool in TOOLS {
            let caller = visiting(&mut store, 1);
            let arguments = match tool.name {
                "create_thread" => json!({"title": "Bees", "body": "Why?"}),
                "read_thread" => json!({"thread_id": 1}),
                "search_threads" => json!({"query": "bees"}),
                "reply_to_thread" => json!({"thread_id": 1, "body": "So."}),
                "edit_post" => json!({"post_id": 1, "body": "So."}),
                "delete_post" => json!({"post_id": 1}),
                "propose" => json!({"kind": "text", "title": "Bees", "reason": "why"}),
                "vote" => json!({"motion_id": 1, "choice": "yes"}),
                "remember" => json!({"text": "a note"}),
                "write_profile" => json!({"text": "I am ada."}),
                "read_profile" => json!({"name": "bob"}),
                "skip" => json!({"reason": "tired"}),
                "finish" => json!({"did": "skip"}),
                _ => json!({}),
            };
            let call = (tool.name, arguments);
            let (answer, sent) = relayed(&mut store, &caller, call, Ok(json!({"success": true})));
            assert_eq!(answer["success"], true, "{}: {answer}", tool.name);
            let local = ["skip", "finish", "remember", "recall"].contains(&tool.name);
            assert_eq!(sent.is_none(), local, "{}", tool.name);
            assert!(sent.is_none_or(|(name, _)| name == tool.name));
            let run = store.run(caller.run.unwrap()).unwrap();
            let here = tool.name == "remember" || tool.name == "recall";
            let deeds: Vec<_> = run.deeds.iter().map(|deed| deed.tool.as_str()).collect();
            match tool.acts && !local {
                true => assert_eq!(deeds, [tool.name]),
                false => assert!(deeds.is_empty() || here, "{}: {deeds:?}", tool.name),
            }
        }
        assert_eq!(store.notes(LAB, "ada").unwrap(), "a note");
        // Actions in the other forum change nothing here.
        assert!(store.threads(LAB, 9).unwrap().is_empty());
        assert!(store.motions(LAB, 9).unwrap().is_empty());
    });
}

#[test]
fn only_checked_arguments_are_sent_and_only_success_is_a_deed() {
    each(|site| {
        let mut store = site.open();
        let caller = visiting(&mut store, 1);
        let reply = json!({"thread_id": 4, "body": "So.", "author": "king"});
        let done = json!({"success": true, "thread_id": 4, "post_id": 7, "run": "x"});
        let call = ("reply_to_thread", reply.clone());
        let (answer, sent) = relayed(&mut store, &caller, call, Ok(done.clone()));
        assert_eq!(answer, done);
        let clean = json!({"thread_id": 4, "body": "So."});
        assert_eq!(sent, Some(("reply_to_thread".into(), clean)));
        // Refused there, or unreachable: reported, and nothing is recorded.
        let refused = json!({"success": false, "error": "closed", "post_id": 8});
        let call = ("reply_to_thread", reply.clone());
        let (answer, _) = relayed(&mut store, &caller, call.clone(), Ok(refused.clone()));
        assert_eq!(answer, refused);
        let (answer, _) = relayed(
            &mut store,
            &caller,
            call.clone(),
            Err(Failure::new(FailureKind::Timeout, "no answer")),
        );
        assert_eq!(
            (&answer["success"], &answer["error"]),
            (&json!(false), &json!("no answer"))
        );
        // The fourth call exceeds the limit, and is not sent.
        let (answer, sent) = relayed(&mut store, &caller, call.clone(), Ok(done.clone()));
        assert!(
            answer["error"].as_str().unwrap().contains("limit"),
            "{answer}"
        );
        assert_eq!(sent, None);
        let run = store.run(caller.run.unwrap()).unwrap();
        let deeds: Vec<_> = run.deeds.iter().map(|d| (d.thread_id, d.post_id)).collect();
        assert_eq!((deeds, run.calls), (vec![(Some(4), Some(7))], 4));

        // An unreadable call is counted and not sent.
        let caller = visiting(&mut store, 2);
        for wrong in [
            ("reply_to_thread", json!({"body": 3})),
            ("list_threads", json!({"token": "t"})),
            ("rm", json!({})),
        ] {
            let (answer, sent) = relayed(&mut store, &caller, wrong, Ok(done.clone()));
            assert_eq!(
                (&answer["success"], sent),
                (&json!(false), None),
                "{answer}"
            );
        }
        assert_eq!(store.run(caller.run.unwrap()).unwrap().calls, 3);
        // Nobody can call in another's visit, or after its end.
        let other = Caller {
            run: caller.run,
            ..Caller::new("bob", LAB).unwrap().proven(Proof::Persona)
        };
        let (answer, sent) = relayed(&mut store, &other, call.clone(), Ok(done.clone()));
        assert_eq!(
            (&answer["success"], sent),
            (&json!(false), None),
            "{answer}"
        );
        let end = RunEnd {
            outcome: Outcome::Acted,
            reason: None,
            claim: None,
            tokens: 0,
        };
        store.end_run(caller.run.unwrap(), &end, at(3)).unwrap();
        let (answer, sent) = relayed(&mut store, &caller, call, Ok(done));
        assert_eq!(
            (&answer["success"], sent),
            (&json!(false), None),
            "{answer}"
        );
    });
}
