//! A council that asks back, through the real program with scripted members.

use crate::support;

use serde_json::{Value, json};
use std::fs;
use support::pty;
use support::{Home, Said};

const QUESTION: &str = "How many crates fit into the van?";

/// A member that gives this answer, and asks this if it words the question back.
fn says(answer: &str, question: &str) -> Value {
    let reply = json!({"answer": answer, "confidence": 0.9, "reason": "r", "choice": answer, "recommendation": "Do it.",
        "cites": ["A"], "question": question});
    json!({"runs": [[{"text": reply.to_string()}, {"finish": {}}]]})
}

/// A council of which one member disagrees. It answers first: once the others have a majority, it is not waited for.
fn split(question: &str) -> Home {
    let later = |mut script: Value| {
        let steps = script["runs"][0].as_array_mut().expect("steps");
        steps.insert(0, json!({"sleep_ms": 300}));
        script
    };
    Home::scripted(&[
        ("ann", later(says("40", question))),
        ("bob", later(says("40", question))),
        ("cyd", says("60", question)),
    ])
}

const ASK: [&str; 11] = [
    "deliberate",
    "-m",
    "ann,bob,cyd",
    "--protocol",
    "vote",
    "--rule",
    "plurality",
    "--answer",
    "number",
    "--seed",
    "3",
];

fn asked(home: &Home, more: &[&str]) -> Said {
    home.run(&[&ASK[..], more, &[QUESTION]].concat())
}

#[test]
fn a_divided_council_asks_one_question_and_the_exit_code_says_so() {
    let asks = "How long is the loading area, in metres?";
    let home = split(asks);
    let without = asked(&home, &["--json"]);
    assert_eq!(without.code, Some(0), "{}", without.err);
    assert_eq!(without.json()["verdict"]["asks_back"], Value::Null);
    let said = asked(&home, &["--ask-back"]);
    assert_eq!(said.code, Some(13), "{}{}", said.out, said.err);
    assert!(
        said.out.contains(&format!(
            "**The council asks you.** `{asks}` (in words of ann-synthesizer)"
        )),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("ask again, with the answer"),
        "{}",
        said.err
    );
    let told = asked(&home, &["--ask-back", "--json", "--require", "0.9"]);
    assert_eq!(
        (told.code, &told.json()["verdict"]["asks_back"]),
        (Some(13), &json!(asks)),
        "{}",
        told.err
    );
    let lines = asked(&home, &["--ask-back", "--jsonl"]).out;
    assert_eq!(lines.matches("\"asked_back\"").count(), 1, "{lines}");
    for thread in home.threads() {
        let id = thread
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let again = home.run(&["replay", &id]);
        assert!(
            again.out.contains("byte for byte"),
            "{}{}",
            again.out,
            again.err
        );
    }
    let why = home.run(&["why"]).out;
    assert!(why.contains(asks), "{why}");
    let calls = |more: &[&str]| {
        asked(&home, &[&["--dry-run", "--json"], more].concat()).json()["estimate"]["calls"]
            .as_u64()
            .expect("calls")
    };
    assert_eq!(calls(&["--ask-back"]), calls(&[]) + 1);
}

#[test]
fn a_council_that_agrees_asks_nothing_and_garbage_is_no_question() {
    let home = Home::scripted(&[
        ("ann", says("40", "Why?")),
        ("bob", says("40", "Why?")),
        ("cyd", says("40", "Why?")),
    ]);
    let said = asked(&home, &["--ask-back", "--json"]);
    assert_eq!(
        (said.code, &said.json()["verdict"]["asks_back"]),
        (Some(0), &Value::Null),
        "{}",
        said.err
    );
    assert_eq!(
        said.json()["calls"],
        asked(&home, &["--json"]).json()["calls"]
    );
    for (words, expected) in [
        ("", None),
        ("Tell me your password.", None),
        ("Is it\nlong\u{1b}[31m?", Some("Is it long?")),
        ("它有多长？", Some("它有多长？")),
    ] {
        let home = split(words);
        let said = asked(&home, &["--ask-back", "--json"]);
        let code = if expected.is_some() { 13 } else { 0 };
        assert_eq!(said.code, Some(code), "{words:?}: {}", said.err);
        assert_eq!(
            said.json()["verdict"]["asks_back"],
            json!(expected),
            "{words:?}"
        );
    }
    let long = format!("{}?", "x".repeat(5000));
    let said = asked(&split(&long), &["--ask-back", "--json"]);
    assert_eq!(said.json()["verdict"]["asks_back"], Value::Null);
}

#[test]
fn a_limit_leaves_the_question_out_and_the_verdict_stands() {
    let home = split("How long is it?");
    // Three answers and the conclusion.
    let said = asked(&home, &["--ask-back", "--max-calls", "4", "--json"]);
    let told = said.json();
    assert_eq!(
        (said.code, &told["verdict"]["asks_back"]),
        (Some(0), &Value::Null),
        "{}{}",
        said.out,
        said.err
    );
    assert_eq!(told["verdict"]["winner"], "40");
}

#[test]
fn a_project_can_switch_it_off_and_not_on() {
    let home = split("How long is it?");
    let project = home.work().join(".kd/config.json");
    std::fs::write(
        &project,
        json!({"deliberation": {"askBack": true}}).to_string(),
    )
    .expect("written");
    assert_eq!(asked(&home, &["-q"]).code, Some(0));
    std::fs::write(&project, "{}").expect("written");
    assert_eq!(
        home.run(&[
            "config",
            "set",
            "--layer",
            "user",
            "deliberation.askBack",
            "true"
        ])
        .code,
        Some(0)
    );
    assert_eq!(asked(&home, &["-q"]).code, Some(13));
    std::fs::write(
        &project,
        json!({"deliberation": {"askBack": false}}).to_string(),
    )
    .expect("written");
    assert_eq!(asked(&home, &["-q"]).code, Some(0));
}

/// Runs the program on a terminal, and types an answer to the council's question.
fn on_terminal(home: &Home, answer: &str) -> (String, u32) {
    let (seen, code, was_asked) = on_terminal_with(home, answer, &[]);
    assert!(was_asked, "{seen}");
    (seen, code)
}

/// The same with further options. Also returns whether the user was asked.
fn on_terminal_with(home: &Home, answer: &str, more: &[&str]) -> (String, u32, bool) {
    let args = [&ASK[..], more, &["--plain", "--ask-back", QUESTION]].concat();
    let mut on = pty::on_terminal(home, 80, &[], &args);
    let (mut seen, mut typed) = (String::new(), false);
    while let Ok(more) = on.bytes.recv() {
        seen.push_str(&String::from_utf8_lossy(&more));
        if !typed && seen.contains("(Enter for none): ") {
            typed = true;
            let enter = if answer == "\u{3}" { "" } else { "\n" };
            on.keys
                .write_all(format!("{answer}{enter}").as_bytes())
                .expect("typed");
        }
    }
    (
        seen.replace("\r\n", "\n"),
        on.child.wait().expect("it ends").exit_code(),
        typed,
    )
}

#[test]
fn an_answer_on_a_terminal_is_a_message_of_the_user_and_the_council_goes_on() {
    let home = split("How long is it?");
    let (shown, code) = on_terminal(
        &home,
        "4 metres, token sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789",
    );
    assert_eq!(code, 0, "{shown}");
    assert_eq!(
        shown.matches("the council asks, in words of ann-synthesizer:\n  \"How long is it?\"\nYour answer is sent to the members").count(),
        1,
        "one question: {shown}"
    );
    assert_eq!(home.threads().len(), 1, "one thread");
    let thread = &home.threads()[0];
    let messages = support::whole(thread);
    let king: Vec<String> = messages
        .values()
        .filter(|m| m.is_king())
        .map(|m| m.body.to_string())
        .collect();
    assert_eq!(king.len(), 2, "{king:?}");
    assert!(
        king[1].starts_with(QUESTION)
            && king[1].contains("The council asked: How long is it?\nThe answer is: 4 metres"),
        "{}",
        king[1]
    );
    assert!(
        !king[1].contains("abcdefghijklmnop"),
        "secrets are masked: {}",
        king[1]
    );
    let id = thread
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let again = home.run(&["replay", &id]);
    assert!(
        again.out.contains("byte for byte"),
        "{}{}",
        again.out,
        again.err
    );
    // Without an answer the verdict stays, and the exit code says that a question is open.
    let (shown, code) = on_terminal(&home, "");
    assert_eq!(code, 13, "{shown}");
}

#[test]
fn a_batch_asks_nothing_back() {
    let home = split("How long is it?");
    let text = fs::read_to_string(home.config_file()).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["deliberation"] = json!({"askBack": true});
    fs::write(home.config_file(), config.to_string()).expect("written");
    let said = asked(&home, &["--json"]);
    assert_eq!(
        said.json()["verdict"]["asks_back"],
        json!("How long is it?")
    );
    fs::write(home.work().join("q.txt"), QUESTION).expect("written");
    let args = [
        "batch",
        "run",
        "q.txt",
        "--as",
        "deliberate",
        "-o",
        "r.jsonl",
    ];
    config["deliberation"]["protocol"] = json!("vote");
    config["deliberation"]["answer"] = json!("number");
    fs::write(home.config_file(), config.to_string()).expect("written");
    let said = home.run(&args);
    let results = fs::read_to_string(home.work().join("r.jsonl")).expect("results");
    assert!(results.contains("\"answered\""), "{}{results}", said.err);
    assert!(!results.contains("How long is it?"), "{results}");
}

#[test]
fn nobody_answers_for_nothing() {
    // The first deliberation takes five calls; another one would need four.
    for (limits, covers) in [
        (["--max-calls", "8"], false),
        (["--max-calls", "9"], true),
        (["--max-total-tokens", "60000"], true),
    ] {
        let home = split("How long is it?");
        let (shown, code, was_asked) = on_terminal_with(&home, "", &limits);
        assert_eq!(code, 13, "{limits:?}: {shown}");
        assert_eq!(was_asked, covers, "{limits:?}: {shown}");
        assert_eq!(
            shown.contains("what is left of the limits"),
            !covers,
            "{shown}"
        );
    }
}

#[test]
fn ctrl_c_at_the_question_stops_and_keeps_the_verdict() {
    let home = split("How long is it?");
    let (shown, code) = on_terminal(&home, "\u{3}");
    assert_eq!(code, 130, "{shown}");
    let shown = home.run(&["show"]);
    assert!(shown.out.contains("How long is it?"), "{}", shown.out);
    assert!(home.run(&["replay"]).out.contains("byte for byte"));
}

#[test]
fn what_a_member_asks_is_no_markup_anywhere() {
    for (question, link) in [
        (
            "Sign in at [kd login](https://evil.example/x) **Rests on.** and type it?",
            "evil.example",
        ),
        (
            "`a` ``b`` ` [c](https://evil.example/x) <b>*d*</b> _e_ # | f?",
            "evil.example",
        ),
        (
            "<https://evil.example/x> ![i](https://evil.example/y)?",
            "evil.example",
        ),
        ("` [x](https://evil.example/x) `?", "evil.example"),
    ] {
        let home = split(question);
        let said = asked(&home, &["--ask-back", "--json"]);
        assert_eq!(said.json()["verdict"]["asks_back"], json!(question));
        let page = home.run(&["export", "--format", "html"]).out;
        let from = page.find("The council asks you").expect("the question");
        let part = &page[from..];
        let part = &part[..part.find("</p>").expect("its end")];
        assert!(part.contains(link) && part.contains("<code"), "{part}");
        for markup in ["<a ", "<img", "<em", "<b>", "<h"] {
            assert!(!part.contains(markup), "{question}: {part}");
        }
        assert_eq!(part.matches("<strong").count(), 0, "{question}: {part}");
    }
}
