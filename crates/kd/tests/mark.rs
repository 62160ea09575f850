//! `kd mark`, `kd marks` and promises, through the real program with scripted members.

mod support;

use serde_json::{Value, json};
use std::fs;
use support::{Home, Said};

fn votes(answer: &str) -> Value {
    let reply = json!({"answer": answer, "confidence": 0.9, "reason": "r", "choice": answer, "recommendation": "Do it.", "cites": ["A"]});
    json!({"runs": [[{"text": reply.to_string()}, {"finish": {}}]]})
}

fn home() -> Home {
    Home::scripted(&[
        ("ann", votes("391")),
        ("bob", votes("391")),
        ("cyd", votes("381")),
    ])
}

const QUESTION: &str = "What is 17*23?";

fn asked(home: &Home, more: &[&str]) -> Said {
    let line = [
        &[
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
        ],
        more,
        &[QUESTION],
    ];
    home.run(&line.concat())
}

fn ok(said: &Said) -> &str {
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    &said.out
}

/// Adds marks for verdicts like those of [`asked`], one per day.
fn marks_like(home: &Home, n: usize, wrong: impl Fn(usize) -> bool) -> String {
    ok(&asked(home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    let text = home.run(&["marks", "export"]).out;
    let one: Value = serde_json::from_str(&text).expect("one mark");
    ok(&home.run(&["marks", "forget", "--all"]));
    let lines = (0..n).map(|at| {
        let mut mark = one.clone();
        mark["thread"] = json!(format!("council-{at}"));
        mark["at"] = json!(format!(
            "2026-{:02}-{:02}T12:00:00Z",
            1 + at / 28,
            1 + at % 28
        ));
        mark["credit"] = json!(f64::from(u8::from(!wrong(at))));
        format!("{mark}\n")
    });
    lines.collect()
}

#[test]
fn a_member_that_was_stopped_because_the_vote_was_certain_is_not_marked() {
    let mut slow = votes("381");
    slow["runs"][0]
        .as_array_mut()
        .expect("a run")
        .insert(0, json!({"sleep_ms": 60_000}));
    let home = Home::scripted(&[("ann", votes("391")), ("bob", votes("391")), ("cyd", slow)]);
    // Three members give opinions, and two of them agree.
    let line = [
        "deliberate",
        "-m",
        "ann,bob,cyd",
        "--preset",
        "standard",
        "--protocol",
        "vote",
        "--answer",
        "number",
        "-q",
        QUESTION,
    ];
    ok(&home.run(&line));
    ok(&home.run(&["mark", "right"]));
    let mark: Value = serde_json::from_str(&home.run(&["marks", "export"]).out).expect("a mark");
    let members: Vec<&str> = mark["members"]
        .as_array()
        .expect("members")
        .iter()
        .filter_map(|m| m["name"].as_str())
        .collect();
    assert!(
        members.contains(&"ann") && !members.iter().any(|name| name.starts_with("cyd")),
        "{members:?}"
    );
}

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
        ok(&plan).contains("on your 250 marked number questions"),
        "{}",
        plan.out
    );
    let said = ask(&home, &[]);
    let all = format!("{}{}", ok(&said), said.err);
    assert!(all.contains("asked 1 of 3 members, without"), "{all}");
    assert!(all.contains("marked questions"), "{all}");
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
fn verdicts_are_marked_corrected_listed_and_forgotten() {
    let home = home();
    let none = home.run(&["marks"]);
    assert!(ok(&none).contains("no marks yet"), "{}", none.out);
    ok(&asked(&home, &["-q"]));
    let said = home.run(&["mark", "right"]);
    assert!(
        ok(&said).ends_with("is right; you have 1 mark\n"),
        "{}",
        said.out
    );
    for (word, expected) in [
        ("wrong", "is wrong (was right)"),
        ("391", "is right (was wrong)"),
        ("381", "is wrong (was right)"),
        ("RIGHT", "is right (was wrong)"),
    ] {
        let said = home.run(&["mark", word]);
        assert!(ok(&said).contains(expected), "{word}: {}", said.out);
    }
    let id = home.threads()[0]
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let short = id.trim_start_matches("council-");
    assert!(ok(&home.run(&["mark", short, "381"])).contains("is wrong"));
    let listed = home.run(&["marks", "--json"]).json();
    let mark = &listed["marks"][0];
    assert_eq!(
        (&listed["v"], &mark["v"], &mark["kind"]),
        (&json!(1), &json!(1), &json!("number"))
    );
    assert_eq!(
        (&mark["winner"], &mark["answer"]),
        (&json!("391"), &json!("381"))
    );
    assert_eq!(mark["members"].as_array().map(Vec::len), Some(3));
    assert_eq!(mark["members"][2]["backs"], false);
    let listed = home.run(&["marks"]);
    assert!(
        ok(&listed).contains("number  wrong, it was 381  391"),
        "{}",
        listed.out
    );
    // Not in the project.
    assert!(!home.work().join(".kd/marks.db").exists());
    assert!(home.path().join(".local/share/kd/marks.db").exists());
    assert_eq!(
        ok(&home.run(&["marks", "forget", short])),
        "forgot 1 mark\n"
    );
    assert_eq!(
        ok(&home.run(&["marks", "forget", "--all"])),
        "forgot 0 marks\n"
    );
}

#[test]
fn a_mark_in_a_fork_is_the_forks_and_is_forgotten_with_it() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    let source = home.threads().remove(0);
    let forked = home.run(&["fork", "--json"]).json();
    let id = forked["thread_id"].as_str().expect("an id").to_owned();
    let said = home.run(&["mark", "wrong"]);
    assert!(ok(&said).starts_with(&format!("{id} #")), "{}", said.out);
    let marks = |home: &Home| home.run(&["marks", "--json"]).json()["marks"].clone();
    let marked = marks(&home);
    let name = source.file_name().expect("a name").to_string_lossy();
    assert_eq!(
        (&marked[0]["thread"], &marked[0]["credit"]),
        (&json!(name), &json!(1.0))
    );
    assert_eq!(
        (&marked[1]["thread"], &marked[1]["credit"]),
        (&json!(id), &json!(0.0))
    );
    ok(&home.run(&["forget", &id, "--yes"]));
    let left = marks(&home);
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
}

#[test]
fn a_word_that_could_mean_two_things_marks_nothing() {
    let home = Home::scripted(&[("ann", votes("left")), ("bob", votes("left"))]);
    let ask = |answer: &str| {
        let line = [
            "deliberate",
            "-q",
            "--protocol",
            "vote",
            "--answer",
            answer,
            "Where to?",
        ];
        ok(&home.run(&line));
    };
    ask("choice:left,right");
    for word in ["right", "Right"] {
        let said = home.run(&["mark", word]);
        assert_eq!(said.code, Some(2), "{}", said.out);
        assert!(said.err.contains("is a mark and an option"), "{}", said.err);
    }
    for (word, expected) in [
        ("1.0", "is right"),
        ("answer: right", "is wrong"),
        ("left", "is right"),
        ("wrong", "is wrong"),
    ] {
        let said = home.run(&["mark", word]);
        assert!(ok(&said).contains(expected), "{word}: {}", said.out);
    }
    // Any word can be an exact answer, but not a thread's ID.
    ask("exact");
    let before = home.run(&["marks", "export"]).out;
    for thread in home.threads() {
        let id = thread.file_name().expect("a name").to_string_lossy();
        for word in [&*id, id.trim_start_matches("council-")] {
            let said = home.run(&["mark", word]);
            assert_eq!(said.code, Some(2), "{}", said.out);
            assert!(said.err.contains("its mark is missing"), "{}", said.err);
        }
    }
    assert_eq!(home.run(&["marks", "export"]).out, before);
}

#[test]
fn commands_of_the_user_mark_and_nonsense_is_refused() {
    let home = home();
    let nothing = home.run(&["mark", "right"]);
    assert_eq!(nothing.code, Some(1), "{}", nothing.err);
    ok(&asked(&home, &["-q"]));
    for (line, code, part) in [
        (&["mark", "--by", "exit 0"][..], 0, "is right"),
        (&["mark", "--by", "test -e nowhere"], 0, "is wrong"),
        (
            &["mark", "--by", "no-such-command-here"],
            2,
            "nothing was marked",
        ),
        (&["mark"], 2, "a mark is missing"),
        (
            &["mark", "perhaps so"],
            2,
            "is not a mark of a number question",
        ),
        (&["mark", "zzzz", "right"], 1, "zzzz"),
        (
            &["mark", "a", "right", "--by", "true"],
            2,
            "replaces the mark",
        ),
    ] {
        let said = home.run(line);
        assert_eq!(said.code, Some(code), "{line:?}: {}{}", said.out, said.err);
        assert!(
            format!("{}{}", said.out, said.err).contains(part),
            "{line:?}: {}{}",
            said.out,
            said.err
        );
    }
    let said = home.run(&["mark", "--by", "echo noise", "--json"]);
    assert_eq!(said.json()["mark"]["by"], "command");
    assert!(said.err.contains("noise"), "{}", said.err);
    ok(&home.run(&["mark", "--by", "false"]));
    let file = home.work().join("marks.jsonl");
    let good = home.run(&["marks", "export"]).out;
    for (text, part) in [
        (format!("{good}not json\n"), "line 2"),
        (good.replace("\"v\":1", "\"v\":2"), "line 1 has version 2"),
        (
            good.replace("\"credit\":0.0", "\"credit\":7.0"),
            "a share is not from 0 to 1",
        ),
    ] {
        fs::write(&file, text).expect("written");
        let said = home.run(&["marks", "import", "marks.jsonl"]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(
            said.err.contains(part) && said.err.contains("nothing was changed"),
            "{}",
            said.err
        );
    }
    assert_eq!(home.run(&["marks", "export"]).out, good);
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
        ok(&plan).contains("how often members are right on number questions, with 95 % intervals: ")
            && plan.out.contains("; 200 marks)"),
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
        broken.err.contains("your marks are not used"),
        "{}",
        broken.err
    );
}

#[test]
fn a_batch_is_marked_by_a_file_of_right_answers() {
    let home = home();
    let questions = "id,question\nq1,What is 17*23?\nq2,What is 17 * 23?\nq3,And 17x23?\n";
    fs::write(home.work().join("q.csv"), questions).expect("written");
    let plan = json!({"protocol": "vote", "answer": "number", "council": {"voting": {"method": "plurality"}}});
    fs::write(home.work().join("plan.json"), plan.to_string()).expect("written");
    ok(&home.run(&[
        "batch",
        "run",
        "q.csv",
        "--as",
        "plan.json",
        "-o",
        "r.jsonl",
        "-q",
    ]));
    let gold = "{\"id\": \"q1\", \"gold\": \"391\"}\n{\"id\": \"q2\", \"gold\": 381}\n\
                {\"id\": \"q3\", \"gold\": \"\"}\n{\"id\": \"q4\", \"gold\": \"1\"}\n{\"id\": \"q1\", \"gold\": \"1\"}\n";
    fs::write(home.work().join("gold.jsonl"), gold).expect("written");
    let said = home.run(&["mark", "--gold", "gold.jsonl"]);
    let lines: Vec<&str> = ok(&said).lines().collect();
    assert!(
        lines[0].starts_with("batch-") && lines[0].ends_with(": marked 2 verdicts, 1 right"),
        "{}",
        said.out
    );
    for (line, part) in [
        (1, "skipped line 3: q3: the file has no answer for it"),
        (2, "skipped line 4: q4: batch-"),
        (3, "skipped line 5: q1: line 1 marked the same verdict"),
    ] {
        assert!(lines[line].starts_with(part), "{}", said.out);
    }
    let marks = home.run(&["marks", "--json"]).json()["marks"].clone();
    let told: Vec<_> = marks
        .as_array()
        .expect("marks")
        .iter()
        .map(|m| (&m["by"], &m["answer"], &m["credit"]))
        .collect();
    let gold = json!("gold");
    assert_eq!(
        told,
        [
            (&gold, &json!("391"), &json!(1.0)),
            (&gold, &json!("381"), &json!(0.0))
        ]
    );
    // A later file corrects; threads of any kind can be named.
    let id = marks[0]["thread"].as_str().expect("a thread");
    fs::write(
        home.work().join("later.csv"),
        format!("thread,gold\n{id},381\nzzzz,1\n"),
    )
    .expect("written");
    let said = home.run(&["mark", "--gold", "later.csv", "--json"]).json();
    assert_eq!(
        (
            &said["batch"],
            &said["marked"],
            &said["right"],
            &said["replaced"]
        ),
        (&Value::Null, &json!(1), &json!(0), &json!(1))
    );
    assert_eq!(said["skipped"][0]["id"], "zzzz");
    let before = home.run(&["marks", "export"]).out;
    fs::write(home.work().join("bad.csv"), "id,right\nq1,391\n").expect("written");
    for (line, code, part) in [
        (
            &["mark", "--gold", "bad.csv"][..],
            2,
            "line 2: no field is named gold",
        ),
        (&["mark", "--gold", "nowhere.csv"], 2, "nothing was marked"),
        (
            &["mark", "a", "right", "--gold", "gold.jsonl"],
            2,
            "replaces the mark",
        ),
        (
            &["mark", "zzzz", "--gold", "gold.jsonl"],
            1,
            "there is no batch zzzz",
        ),
    ] {
        let said = home.run(line);
        assert_eq!(said.code, Some(code), "{line:?}: {}{}", said.out, said.err);
        assert!(said.err.contains(part), "{line:?}: {}", said.err);
    }
    assert_eq!(home.run(&["marks", "export"]).out, before);
}

#[test]
fn a_verdict_is_marked_in_a_chat() {
    let home = home();
    let input = "/mark right\n/deliberate What is 17*23?\n/mark right\n/mark 381\n/mark perhaps\n/mark\n/quit\n";
    let said = Said::fed(home.kd(&["chat", "--plain", "--new"]), input);
    let out = ok(&said);
    for part in [
        "nothing to mark",
        "is right; you have 1 mark",
        "is wrong (was right); you have 1 mark",
        "is not a mark of",
        "write `right`, `wrong`, or the right answer",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn an_empty_command_marks_nothing() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "wrong"]));
    let before = home.run(&["marks", "export"]).out;
    for command in ["", " ", "\t\n"] {
        let said = home.run(&["mark", "--by", command]);
        assert_eq!(said.code, Some(2), "{command:?}: {}{}", said.out, said.err);
        assert!(
            said.err.contains("the command of `--by` is empty"),
            "{}",
            said.err
        );
    }
    assert_eq!(home.run(&["marks", "export"]).out, before);
}

#[test]
fn a_file_of_wrong_types_marks_nothing_and_says_what_it_has() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    let id = home.threads()[0]
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let long = "4".repeat(5_000);
    let rows: Vec<(Value, &str)> = vec![
        (
            json!({"a": 391}),
            "`{\"a\":391}` is not an answer to a number question",
        ),
        (json!([391]), "`[391]` is not an answer to"),
        (json!(true), "`true` is not an answer to"),
        (json!("right"), "`right` is not an answer to"),
        (
            json!("\u{1b}]0;x\u{7}\u{1b}[31mevil 0"),
            "`evil 0` is not an answer to",
        ),
        (json!("about 391"), "`about 391` is not an answer to"),
        (json!(format!("x{long}")), "x4444444"),
    ];
    for (value, why) in rows {
        let row = json!({"thread": id, "gold": value});
        fs::write(home.work().join("g.jsonl"), row.to_string()).expect("written");
        let said = home.run(&["mark", "--gold", "g.jsonl"]);
        assert_eq!(said.code, Some(1), "{value}: {}{}", said.out, said.err);
        assert!(said.out.contains("marked 0 verdicts"), "{}", said.out);
        assert!(
            said.out.contains(why) && said.out.len() < 400,
            "{value}: {}",
            said.out
        );
    }
    assert_eq!(home.run(&["marks", "export"]).out, "");
    let said = Said::fed(home.kd(&["mark", "--gold", "-"]), "id;gold\nq;1\n");
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    assert!(
        said.err.contains("standard input cannot be used"),
        "{}",
        said.err
    );
    assert!(said.err.contains("*.csv"), "{}", said.err);
}

#[test]
fn a_mark_of_another_project_names_it_and_a_wrong_clock_is_refused() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    assert!(!ok(&home.run(&["marks"])).contains("in project"));
    let mut mark: Value =
        serde_json::from_str(&home.run(&["marks", "export"]).out).expect("one mark");
    mark["project"] = json!("copy-0123456789abcdef0123456789abcdef");
    fs::write(home.work().join("m.jsonl"), mark.to_string()).expect("written");
    ok(&home.run(&["marks", "import", "m.jsonl"]));
    let listed = home.run(&["marks"]);
    let there: Vec<&str> = ok(&listed).lines().collect();
    assert_eq!(there.len(), 2, "{there:?}");
    assert!(!there[0].contains("in project"), "{there:?}");
    assert!(
        there[1].ends_with("  in project copy-01234567"),
        "{there:?}"
    );
    for now in ["garbage", "2026-03-01", " "] {
        let mut kd = home.kd(&["mark", "wrong"]);
        kd.env("KD_NOW", now);
        let said = Said::fed(kd, "");
        assert_eq!(said.code, Some(2), "{now:?}: {}{}", said.out, said.err);
        assert!(
            said.err.contains("KD_NOW=2026-03-01T09:00:00Z"),
            "{}",
            said.err
        );
    }
    assert!(
        ok(&home.run(&["marks"]))
            .lines()
            .all(|line| !line.contains("wrong"))
    );
}
