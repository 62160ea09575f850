//! Promises: where they come from, where they are recorded, and who is shown them.

use super::support::served::{Served, bearer};
use super::support::{Home, Said};
use super::{QUESTION, asked, home, marks_like, ok};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};

#[test]
fn certain_enough_asks_fewer_members_once_marks_say_that_it_may() {
    let home = home();
    let lines = marks_like(&home, 250, |at| at % 50 == 0);
    let ask = |home: &Home, more: &[&str]| {
        let line = [
            "deliberate",
            "-m",
            "ann,bob,cyd",
            "--protocol",
            "certain-enough",
            "--answer",
            "number",
            "--seed",
            "3",
        ];
        home.run(&[&line[..], more, &[QUESTION]].concat())
    };
    let before = ask(&home, &["--dry-run"]);
    assert!(
        ok(&before).contains("(0 so far)"),
        "{}{}",
        before.out,
        before.err
    );
    fs::write(home.work().join("marks.jsonl"), lines).unwrap();
    ok(&home.run(&["marks", "import", "marks.jsonl"]));
    let plan = ask(&home, &["--dry-run"]);
    assert!(
        ok(&plan).contains("on 250 number questions with imported marks"),
        "{}",
        plan.out
    );
    let said = ask(&home, &[]);
    let all = format!("{}{}", ok(&said), said.err);
    assert!(all.contains("asked 1 of 3 members, without"), "{all}");
    assert!(
        all.contains("of the questions with marks of the person who asked"),
        "{all}"
    );
    let thread = home.threads()[0].display().to_string();
    let again = home.run(&["replay", thread.rsplit('/').next().unwrap()]);
    assert!(
        ok(&again).contains("byte for byte"),
        "{}{}",
        again.out,
        again.err
    );
    // A higher chance needs more members than three.
    let said = ask(&home, &["--certainty", "0.999"]);
    let all = format!("{}{}", ok(&said), said.err);
    assert!(!all.contains("asked 1 of 3"), "{all}");
    let bad = ask(&home, &["--certainty", "3"]);
    assert_eq!(bad.code, Some(2), "{}", bad.err);
}

#[test]
fn promises_come_from_marks_and_can_be_required() {
    let home = home();
    let without = asked(&home, &[]);
    assert!(!without.err.contains("promise"), "{}", without.err);
    let required = asked(&home, &["-q", "--require", "0.9"]);
    assert_eq!(required.code, Some(11), "{}", required.err);
    assert!(
        required.err.contains("no promise: about"),
        "{}",
        required.err
    );
    let file = home.work().join("marks.jsonl");
    fs::write(&file, marks_like(&home, 200, |at| at % 50 == 7)).expect("written");
    assert_eq!(
        ok(&home.run(&["marks", "import", "marks.jsonl"])),
        "imported 200 marks\n"
    );
    let said = asked(&home, &["--require", "0.9"]);
    ok(&said);
    assert!(
        said.err
            .contains("promise: verdicts like this are right at least 9"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains("of number questions, 2026-02-"),
        "{}",
        said.err
    );
    let strict = asked(&home, &["-q", "--require", "0.99"]);
    assert_eq!(strict.code, Some(11), "{}", strict.err);
    let told = asked(&home, &["--json"]).json();
    assert_eq!(told["warranty"]["state"], "promised");
    assert_eq!(told["warranty"]["marks"], 200);
    let plan = home.run(&[
        "deliberate",
        "--dry-run",
        "-m",
        "ann,bob,cyd",
        "--protocol",
        "auto",
        "--answer",
        "number",
        QUESTION,
    ]);
    let bad = home.run(&["deliberate", "--require", "1.5", QUESTION]);
    assert_eq!(bad.code, Some(2));
    assert!(
        ok(&plan)
            .contains("how often members are right on number questions, with 95 % intervals: ")
            && plan.out.contains("; all marks are imported"),
        "{}",
        plan.out
    );
    // A broken file does not prevent asking.
    fs::write(
        home.path().join(".local/share/kd/marks.db"),
        "no database at all, and long enough to be looked at",
    )
    .expect("written");
    let broken = asked(&home, &[]);
    assert!(
        broken
            .err
            .contains("your marks cannot be read, so nothing is promised"),
        "{}",
        broken.err
    );
}

/// A home in which every way to deliberate asks the same council, with 200 marks of its verdicts.
fn promising() -> Home {
    let home = home();
    let mut config: Value =
        serde_json::from_slice(&fs::read(home.config_file()).expect("read")).expect("JSON");
    config["deliberation"] = json!({
        "protocol": "vote", "answer": "number",
        "council": {"size": 4, "voting": {"method": "plurality"}},
    });
    config["serve"] = json!({"models": {"decide": {
        "method": "deliberate", "protocol": "vote", "members": ["ann", "bob", "cyd"],
    }}});
    fs::write(home.config_file(), config.to_string()).expect("written");
    let lines = marks_like(&home, 200, |at| at % 50 == 7);
    fs::write(home.work().join("marks.jsonl"), lines).expect("written");
    ok(&home.run(&["marks", "import", "marks.jsonl"]));
    home
}

const SAID: &str = "verdicts like this are right at least 9";
const THEN: &str = "by the marks of the person who asked: verdicts like this are right at least 9";

/// The log of the newest thread.
fn log(home: &Home) -> std::path::PathBuf {
    let threads = home.threads();
    let newest = threads.iter().max_by_key(|thread| {
        fs::metadata(thread.join(".kd-events.jsonl"))
            .and_then(|file| file.modified())
            .ok()
    });
    newest.expect("a thread").join(".kd-events.jsonl")
}

fn promises(text: &str) -> Vec<Value> {
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    lines
        .filter(|line: &Value| line["event"] == "promised")
        .collect()
}

#[test]
fn a_promise_is_recorded_and_shown_wherever_its_verdict_is() {
    let home = promising();
    let told = asked(&home, &["--json"]).json();
    assert_eq!(told["warranty"]["state"], "promised");
    assert_eq!(told.get("promised_then"), None);
    let recorded = promises(&fs::read_to_string(log(&home)).expect("read"));
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    assert_eq!(recorded[0]["promise"], told["warranty"]);
    let printed = promises(&asked(&home, &["--jsonl", "-q"]).out);
    assert_eq!(printed.len(), 1, "{printed:?}");
    for (shown, args) in [
        (true, &["why"][..]),
        (true, &["why", "--export", "md"]),
        (true, &["why", "--export", "html"]),
        (true, &["council", "show"]),
        (true, &["export"]),
        (true, &["export", "--format", "html"]),
        // What the user marked is private.
        (false, &["export", "--redact"]),
        (false, &["export", "--redact", "--format", "html"]),
    ] {
        let said = home.run(args);
        let words = ok(&said).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words.contains(THEN), shown, "{args:?}: {}", said.out);
        assert!(!words.contains(&format!("promise: {SAID}")), "{args:?}");
    }
    let shown = home.run(&["council", "show", "--json"]).json();
    let of = &shown["promised_then"][0];
    assert_eq!(of["promise"], told["warranty"]);
    assert_eq!(
        home.run(&["export", "--format", "json"]).json()["promised_then"],
        shown["promised_then"]
    );
    let whole = home.run(&["why", "--export", "json"]).json();
    assert_eq!(whole["promised_then"], of["promise"]);
    assert_eq!(whole.get("warranty"), None);
    // A promise decides nothing: the record is decided again without it.
    ok(&home.run(&["replay"]));
    ok(&home.run(&["replay", "--without", "cyd"]));
}

#[test]
fn a_promise_that_a_record_states_is_not_the_readers() {
    let home = promising();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["marks", "forget", "--all", "--yes"]));
    let log = log(&home);
    let own = fs::read_to_string(&log).expect("read");
    let told = |text: &str| {
        fs::write(&log, text).expect("written");
        home.run(&["why"]).out + &home.run(&["council", "show"]).out
    };
    let theirs = told(&own).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(theirs.matches(THEN).count(), 2, "{theirs}");
    assert!(!theirs.contains("promise: "), "{theirs}");
    // Values that cannot be true are not shown, and no escape reaches the terminal.
    for (from, to) in [
        ("\"kind\":\"number\"", "\"kind\":\"your bank \\u001b[2J\""),
        ("\"risk\":0.1", "\"risk\":-5"),
        ("\"tested\":", "\"tested\":0,\"was\":"),
    ] {
        let lines = own
            .lines()
            .map(|line| match line.contains("\"event\":\"promised\"") {
                true => line.replace(from, to),
                false => line.to_owned(),
            });
        let forged: Vec<String> = lines.collect();
        let forged = forged.join("\n") + "\n";
        assert_ne!(forged, own, "{from}");
        let out = told(&forged);
        assert!(!out.contains("marks of the person"), "{to}: {out}");
        assert!(!out.contains('\u{1b}'), "{to}: {out}");
    }
}

/// Cuts the record of the newest thread before its answers are counted, with the messages after that.
pub(super) fn cut(home: &Home) {
    let log = log(home);
    let text = fs::read_to_string(&log).expect("read");
    let kept: Vec<&str> = text
        .lines()
        .take_while(|line| !line.contains("\"fact\":\"counted\""))
        .collect();
    let kept = kept.join("\n") + "\n";
    assert_ne!(kept, text);
    fs::write(&log, &kept).expect("written");
    let parse = |line: &str| -> Value { serde_json::from_str(line).expect("JSON") };
    let added = kept.lines().map(parse);
    let added = added.filter_map(|record| record["message"]["seq"].as_u64());
    let last = added.max().expect("a message");
    for file in fs::read_dir(log.parent().expect("a folder")).expect("read") {
        let path = file.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        let number = name.split('-').next().and_then(|n| n.parse::<u64>().ok());
        if number.is_some_and(|number| number > last) {
            fs::remove_file(&path).expect("removed");
        }
    }
}

#[test]
fn answers_of_a_record_get_no_promise() {
    const NONE: &str = "no promise: answers come from a record";
    let home = promising();
    ok(&asked(&home, &["-q", "--require", "0.9"]));
    assert_eq!(
        promises(&fs::read_to_string(log(&home)).expect("read")).len(),
        1
    );
    for quiet in [&[][..], &["-q"]] {
        cut(&home);
        let line = ["deliberate", "--resume", "--require", "0.9"];
        let said = home.run(&[&line, quiet].concat());
        assert_eq!(said.code, Some(11), "{}{}", said.out, said.err);
        assert_eq!(said.err.matches(NONE).count(), 1, "{}", said.err);
        assert!(!said.err.contains(SAID), "{}", said.err);
        let record = fs::read_to_string(log(&home)).expect("read");
        assert!(record.contains("\"fact\":\"concluded\""));
        assert!(promises(&record).is_empty(), "{record}");
    }
    let typed = |lines: &str| Said::fed(home.kd(&["chat", "--plain"]), lines);
    ok(&typed(&format!("/new\n/deliberate {QUESTION}\n/quit\n")));
    cut(&home);
    let said = typed("/resume\n/quit\n");
    assert!(ok(&said).contains(NONE), "{}", said.out);
    assert!(!said.out.contains(SAID), "{}", said.out);
    // What is asked afterwards is promised again.
    let said = typed(&format!("/deliberate {QUESTION}\n/quit\n"));
    assert!(
        ok(&said).contains(&format!("promise: {SAID}")),
        "{}",
        said.out
    );
}

#[test]
fn shares_of_marked_questions_are_of_the_person_who_asked_and_not_shared() {
    let home = home();
    let lines = marks_like(&home, 250, |at| at % 50 == 0);
    fs::write(home.work().join("marks.jsonl"), lines).expect("written");
    ok(&home.run(&["marks", "import", "marks.jsonl"]));
    for (protocol, words) in [
        (
            "certain-enough",
            &["with marks of the person who asked"][..],
        ),
        (
            "auto",
            &["all marks are imported", "the members are unequal ("],
        ),
    ] {
        let line = [
            "deliberate",
            "-q",
            "-m",
            "ann,bob,cyd",
            "--answer",
            "number",
        ];
        ok(&home.run(&[&line[..], &["--protocol", protocol, QUESTION]].concat()));
        for redacts in [false, true] {
            let redact = if redacts { &["--redact"][..] } else { &[] };
            let said = home.run(&[&["export", "--format", "html"], redact].concat());
            let text = ok(&said).split_whitespace().collect::<Vec<_>>().join(" ");
            for words in words {
                assert_eq!(
                    text.contains(words),
                    !redacts,
                    "{protocol} {redacts}: {text}"
                );
            }
            assert!(
                !text.contains("your 250") && !text.contains("your marked"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_chat_and_a_batch_say_what_is_promised() {
    let home = promising();
    let input = format!("/deliberate {QUESTION}\n/quit\n");
    let said = Said::fed(home.kd(&["chat", "--plain", "--new"]), &input);
    let promise = format!("promise: {SAID}");
    assert!(ok(&said).contains(&promise), "{}", said.out);
    ok(&home.run(&["why"]));
    ok(&home.run(&["replay"]));
    let line = |id: &str| format!("{}\n", json!({"id": id, "question": QUESTION}));
    let lines = line("q1") + &line("q2");
    fs::write(home.work().join("questions.jsonl"), lines).expect("written");
    let said = home.run(&[
        "batch",
        "run",
        "questions.jsonl",
        "--as",
        "deliberate",
        "-m",
        "ann,bob,cyd",
        "-o",
        "out.jsonl",
    ]);
    ok(&said);
    let lines = fs::read_to_string(home.work().join("out.jsonl")).expect("read");
    let rows: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let (cached, asked): (Vec<&Value>, Vec<&Value>) =
        rows.iter().partition(|row| row["cached"] == true);
    assert_eq!((cached.len(), asked.len()), (1, 1), "{lines}");
    assert_eq!(asked[0]["warranty"]["state"], "promised", "{lines}");
    assert_eq!(asked[0]["warranty"]["kind"], "number");
    // The marks may have changed since the answer that is used again.
    assert_eq!(cached[0]["verdict"], asked[0]["verdict"]);
    assert_eq!(cached[0].get("warranty"), None, "{lines}");
}

/// Reads the page of a thread up to the end of its section on certainty and cost.
fn shown(served: &Served, path: &str) -> String {
    let mut text = String::new();
    for line in BufReader::new(served.open("GET", path, &bearer(), &Value::Null)).lines() {
        text.push_str(&line.expect("a line"));
        if text.contains("Cost by member") {
            return text;
        }
    }
    panic!("the page ended: {text}");
}

#[test]
fn the_wires_carry_the_promise_and_other_machines_get_none() {
    let home = promising();
    let served = Served::start(&home, &["--models", "--page"], 1);
    let input = json!([{"role": "user", "content": QUESTION}]);
    let chat = json!({"model": "kd/decide", "messages": input});
    let anthropic = json!({"model": "kd/decide", "max_tokens": 1000, "messages": input});
    let responses = json!({"model": "kd/decide", "input": QUESTION});
    for (path, body) in [
        ("/v1/chat/completions", &chat),
        ("/v1/messages", &anthropic),
        ("/v1/responses", &responses),
    ] {
        let headers = format!("{}Content-Type: application/json\r\n", bearer());
        let (status, text) = served.send("POST", path, &headers, body);
        assert_eq!(status, 200, "{path}: {text}");
        let told: Value = serde_json::from_str(&text).expect("JSON");
        let kd = &told["kd"];
        assert_eq!(kd["warranty"]["state"], "promised", "{path}: {text}");
        let words = kd["promise"].as_str().expect("words");
        assert!(words.starts_with(&format!("promise: {SAID}")), "{words}");
        assert!(kd["verdict"].get("asks_back").is_some(), "{path}: {text}");
    }
    let thread = log(&home);
    let thread = thread.parent().and_then(|t| t.file_name()).expect("a name");
    let page = format!("/page/threads/{}", thread.to_str().expect("text"));
    let text = shown(&served, &page);
    assert!(text.contains(THEN), "{text}");
    drop(served);
    // From other machines nothing is promised, and what was promised to the owner is not told.
    let before = home.threads().len();
    let others = ["--models", "--page", "--host", "127.0.0.1"];
    let served = Served::start_at(&home, "0.0.0.0:0", &others, 1);
    let (status, told) = served.chat(&chat);
    assert_eq!(status, 200, "{told}");
    assert_eq!(told["kd"].get("warranty"), None, "{told}");
    assert_eq!(home.threads().len(), before + 1);
    assert!(promises(&fs::read_to_string(log(&home)).expect("read")).is_empty());
    let text = shown(&served, &page);
    assert!(!text.contains("by the marks"), "{text}");
}

#[test]
fn all_marks_are_forgotten_only_after_a_question() {
    let home = promising();
    let piped = home.run(&["marks", "forget", "--all"]);
    assert_eq!(piped.code, Some(2), "{}", piped.err);
    assert!(
        piped.err.contains("200 marks") && piped.err.contains("--yes"),
        "{}",
        piped.err
    );
    assert_eq!(ok(&home.run(&["marks", "export"])).lines().count(), 200);
    let gone = home.run(&["marks", "forget", "--all", "--yes"]);
    assert_eq!(ok(&gone), "forgot 200 marks\n");
}
