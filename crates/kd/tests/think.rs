//! Tests `kd think` from outside: scripted members, real files, real exit codes.

use crate::support;

use serde_json::{Value, json};
use support::{Home, whole};

/// Replies in pieces that split the tags at every position.
fn script(replies: &[&str]) -> Value {
    let runs: Vec<Value> = replies
        .iter()
        .map(|reply| {
            let letters = reply.chars().map(|c| json!({"text": c.to_string()}));
            Value::Array(letters.collect())
        })
        .collect();
    json!({"runs": runs})
}

fn debaters() -> Home {
    Home::scripted(&[
        (
            "lite",
            script(&[
                "A hard one: prime checks.\n<council>SECRET: is the proof sound?</council>",
                "Yes, it is sound.",
            ]),
        ),
        (
            "prime",
            script(&["<COUNCIL to=\"lite\">SECRET: it is</Council>"]),
        ),
    ])
}

#[test]
fn they_exchange_messages_and_end_with_an_answer() {
    let home = debaters();
    let said = home.run(&["think", "--stream", "Is", "it", "true?"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        said.out,
        "lite  | A hard one: prime checks.\nlite  | Yes, it is sound.\n"
    );
    for line in [
        "lite: first look, 0 of 6 messages exchanged",
        "lite: wrote 27 chars to prime",
        "prime: debate, 1 of 6 messages exchanged",
        "prime: wrote 13 chars to lite",
        "lite: debate, 2 of 6 messages exchanged",
        "agreed after 2 messages",
        "go on:  kd think --continue",
    ] {
        assert!(said.err.contains(line), "{line}: {}", said.err);
    }
    assert!(!said.err.contains("SECRET"), "{}", said.err);

    // The conversation contains nothing of the exchange; the thread's log does.
    let threads = home.threads();
    let messages = whole(&threads[0]);
    let bodies: Vec<&str> = messages.values().map(|m| m.body.as_str()).collect();
    assert_eq!(
        bodies,
        [
            "Is it true?",
            "A hard one: prime checks.",
            "Yes, it is sound."
        ]
    );
    assert_eq!(messages[&2].extra["think"], "update");
    let log = std::fs::read_to_string(threads[0].join(".kd-events.jsonl")).expect("a log");
    assert!(log.contains("SECRET: it is"));

    for show in [
        &["show", "--council"][..],
        &["council", "show", "--council", "--all"],
    ] {
        let shown = home.run(show).out;
        let order = [
            "A hard one",
            "lite → prime",
            "is the proof sound",
            "prime → lite",
            "it is",
            "Yes, it is sound",
        ];
        let mut rest = shown
            .replace("lite > prime", "lite → prime")
            .replace("prime > lite", "prime → lite");
        for part in order {
            let at = rest
                .find(part)
                .unwrap_or_else(|| panic!("{part} in {shown}"));
            rest = rest.split_off(at + part.len());
        }
    }
    assert!(!home.run(&["show"]).out.contains("SECRET"));
    let value = home.run(&["show", "--council", "--json"]).json();
    assert_eq!(
        value["council"][1],
        json!({"after": 2, "from": "prime", "to": "lite", "text": "SECRET: it is"})
    );
}

#[test]
fn every_face_keeps_the_exchange_unless_it_is_wanted() {
    for (flags, wanted) in [
        (&[][..], false),
        (&["--plain"], false),
        (&["--json"], false),
        (&["--jsonl"], false),
        (&["--council"], true),
        (&["--plain", "--council"], true),
        (&["--json", "--council"], true),
        (&["--jsonl", "--council"], true),
    ] {
        let home = debaters();
        let args: Vec<&str> = ["think", "true?"].iter().chain(flags).copied().collect();
        let said = home.run(&args);
        assert_eq!(said.code, Some(0), "{flags:?}: {}", said.err);
        assert_eq!(
            said.out.contains("SECRET"),
            wanted,
            "{flags:?}: {}",
            said.out
        );
        let lower = said.out.to_lowercase();
        assert!(
            !lower.contains("<council") && !lower.contains("</council"),
            "{flags:?}: {}",
            said.out
        );
        if flags.first() == Some(&"--json") {
            let value = said.json();
            assert_eq!(value["think"]["answer"], "Yes, it is sound.");
            assert_eq!(value["think"]["by"], "lite");
            assert_eq!(value["think"]["exchanged"], 2);
        }
    }
}

#[test]
fn a_cap_a_failure_and_no_answer_have_codes_of_their_own() {
    let home = Home::scripted(&[
        ("lite", script(&["<council>one</council>"])),
        ("prime", script(&["I decide."])),
    ]);
    let said = home.run(&["think", "--stream", "--max-messages", "1", "Q"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(0), "prime | I decide.\n"),
        "{}",
        said.err
    );
    assert!(
        said.err
            .contains("not agreed after 1 message: one member decided"),
        "{}",
        said.err
    );

    let broken = json!({"runs": [[{"fail": {"kind": "auth", "message": "the key is wrong"}}]]});
    let home = Home::scripted(&[
        ("lite", broken.clone()),
        ("prime", script(&["Alone: yes."])),
    ]);
    let said = home.run(&["think", "--stream", "Q"]);
    assert_eq!(said.code, Some(5), "{}", said.err);
    assert!(
        said.out.contains("prime | Alone: yes.") && said.out.contains("lite  ! failed"),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("prime continues without it"),
        "{}",
        said.err
    );

    let home = Home::scripted(&[("lite", broken.clone()), ("prime", broken)]);
    assert_eq!(home.run(&["think", "Q"]).code, Some(6));
    let said = home.run(&["think", "--fast", "nobody", "Q"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains("there is no member `nobody`"),
        "{}",
        said.err
    );
}

#[test]
fn the_settings_seat_and_bound_them() {
    let home = debaters();
    let mut config: Value =
        serde_json::from_str(&std::fs::read_to_string(home.config_file()).expect("there"))
            .expect("JSON");
    config["think"] = json!({"fast": "prime", "exchanges_max": 1});
    std::fs::write(home.config_file(), config.to_string()).expect("written");
    let said = home.run(&["think", "--json", "Q"]);
    let value = said.json();
    assert_eq!(value["think"]["ended"], "cap", "{value}");
    assert_eq!(value["think"]["by"], "lite");
    // The thread continues, and an ordinary question after it does not see the exchange.
    let said = home.run(&["think", "--continue", "--json", "And now?"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(home.threads().len(), 1);
}
