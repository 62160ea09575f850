//! Verdicts of a batch, marked by a file of right answers.

use super::support::Said;
use super::{asked, home, ok};
use serde_json::{Value, json};
use std::fs;

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
