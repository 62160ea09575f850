//! `kd eval --live`: the user's own questions, asked of a council, of its best member and of samples of that member.

use crate::support;

use serde_json::{Value, json};
use std::fs;
use support::{Home, Said};

fn votes(answer: &str) -> Value {
    let reply = json!({"answer": answer, "confidence": 0.9, "reason": "r", "choice": answer, "recommendation": "Do it.", "cites": ["A"]});
    let usage = json!({"finish": {"usage": {"input_tokens": 10, "output_tokens": 5}}});
    json!({"runs": [[{"text": reply.to_string()}, usage]]})
}

/// A council that is right, whose first member alone is wrong, and twelve questions.
fn home() -> Home {
    let home = Home::scripted(&[
        ("ann", votes("381")),
        ("bob", votes("391")),
        ("cyd", votes("391")),
    ]);
    let mut config: Value =
        serde_json::from_slice(&fs::read(home.config_file()).expect("read")).expect("JSON");
    config["deliberation"] = json!({"protocol": "vote", "answer": "number"});
    fs::write(home.config_file(), config.to_string()).expect("written");
    let rows = (0..12).map(|at| format!("q{at},What is 17*23 plus 0*{at}?,391\n"));
    let file = "id,question,gold\n".to_owned() + &rows.collect::<String>() + "q12,Who knows?,\n";
    fs::write(home.work().join("q.csv"), file).expect("written");
    home
}

fn live(home: &Home, more: &[&str]) -> Said {
    let line = ["eval", "--live", "q.csv", "--members", "ann,bob,cyd"];
    home.run(&[&line[..], more].concat())
}

fn ok(said: &Said) -> &str {
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    &said.out
}

/// The number of questions that all batches have answered.
fn asked(home: &Home) -> u64 {
    let batches = home.run(&["batch", "list", "--json"]).json();
    let all = batches["batches"].as_array().expect("batches").iter();
    all.filter_map(|batch| batch["counts"]["answered"].as_u64())
        .sum()
}

#[test]
fn nothing_is_spent_without_consent_and_a_budget() {
    let home = home();
    let piped = live(&home, &[]);
    assert_eq!(piped.code, Some(2), "{}", piped.err);
    assert!(
        piped
            .err
            .contains("12 questions would be asked in three ways")
            && piped.err.contains("--max-usd"),
        "{}",
        piped.err
    );
    let unlimited = live(&home, &["--yes"]);
    assert_eq!(unlimited.code, Some(2), "{}", unlimited.err);
    assert!(
        unlimited.err.contains("--yes needs a budget"),
        "{}",
        unlimited.err
    );
    let estimate = live(&home, &["--dry-run"]);
    assert!(
        ok(&estimate).contains("ann alone (the first member: no marks say which is best"),
        "{}",
        estimate.out
    );
    let unknown = live(&home, &["--dry-run", "--best", "eve"]);
    assert_ne!(unknown.code, Some(0));
    assert!(
        unknown.err.contains("members are: ann, bob, cyd"),
        "{}",
        unknown.err
    );
    let nowhere = live(&home, &["--yes", "--max-calls", "9", "--format", "eee"]);
    assert_eq!(nowhere.code, Some(2), "{}", nowhere.err);
    let zero = live(&home, &["--yes", "--max-usd", "0"]);
    assert_eq!(zero.code, Some(2), "{}", zero.err);
    assert!(
        zero.err.contains("allows nothing to be asked"),
        "{}",
        zero.err
    );
    let ruled = live(&home, &["--yes", "--max-calls", "9", "--rule", "auto"]);
    assert_eq!(ruled.code, Some(2), "{}", ruled.err);
    fs::write(home.work().join("file"), "").expect("written");
    let eee = [
        "--yes",
        "--max-calls",
        "9",
        "--format",
        "eee",
        "-o",
        "file/x",
    ];
    let unwritable = live(&home, &eee);
    assert_eq!(unwritable.code, Some(1), "{}", unwritable.err);
    assert!(
        unwritable.err.contains("could not be created"),
        "{}",
        unwritable.err
    );
    let wrong = "id,question,gold\nq1,What is 17*23?,around four hundred\n";
    fs::write(home.work().join("wrong.csv"), wrong).expect("written");
    let line = ["eval", "--live", "wrong.csv", "--yes", "--max-calls", "9"];
    let refused = home.run(&line);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(
        refused
            .err
            .contains("the right answer of q1 cannot be compared"),
        "{}",
        refused.err
    );
    let none = home.run(&["eval", "--live", "--yes", "--max-calls", "9"]);
    assert!(
        none.err.contains("mark verdicts with their right answers"),
        "{}",
        none.err
    );
    assert_eq!(home.threads().len(), 0);
    assert!(home.run(&["batch", "list"]).out.lines().count() <= 1);
}

#[test]
fn a_council_is_compared_with_its_best_member_and_its_samples() {
    let home = home();
    let budget = ["--yes", "--max-calls", "1000"];
    let found = live(&home, &[&budget[..], &["--json"]].concat()).json();
    assert_eq!(found["questions"], 12, "{found:#}");
    let ways = found["ways"].as_array().expect("ways");
    let rights: Vec<f64> = ways
        .iter()
        .filter_map(|way| way["right"].as_f64())
        .collect();
    assert_eq!(rights, [1.0, 0.0, 0.0], "{found:#}");
    assert_eq!(ways[0]["members"], json!(["ann", "bob", "cyd"]));
    assert_eq!(ways[1]["members"], json!(["ann"]));
    // Four calls buy three samples and their conclusion.
    assert_eq!(found["samples"], 3, "{found:#}");
    // A member that the others have made needless is not always asked.
    let calls = ways[0]["cost"]["calls"].as_f64().expect("a number");
    assert!((3.0..=4.0).contains(&calls), "{found:#}");
    assert_eq!(ways[0]["cost"]["usd"], 0.0, "{found:#}");
    assert_eq!(ways[1]["cost"]["calls"], 1.0, "{found:#}");
    let verdict = |at: usize| found["pairs"][at]["verdict"].as_str().expect("a verdict");
    assert_eq!(
        (verdict(0), verdict(1), verdict(2)),
        ("better", "better", "not_shown")
    );
    // The same command asks nobody again, in any form.
    let before = asked(&home);
    assert!((24..=36).contains(&before), "{before}");
    let text = live(&home, &budget);
    assert!(
        ok(&text).contains("the council   ann alone"),
        "{}",
        text.out
    );
    assert!(
        !text.out.contains("price unknown") && !text.out.contains("the same"),
        "{}",
        text.out
    );
    let page = live(&home, &[&budget[..], &["--format", "html"]].concat());
    assert!(ok(&page).contains("<table"), "{}", page.out);
    let written = live(
        &home,
        &[&budget[..], &["--format", "eee", "-o", "eee"]].concat(),
    );
    assert_eq!(ok(&written).lines().count(), 6, "{}", written.out);
    let summary = written
        .out
        .lines()
        .find(|line| line.contains("/council/") && line.ends_with(".json"));
    let summary = fs::read_to_string(home.work().join(summary.expect("a summary"))).expect("read");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let score = &summary["evaluation_results"][0]["score_details"];
    assert_eq!(
        (&score["score"], &score["uncertainty"]["num_samples"]),
        (&json!(1.0), &json!(12))
    );
    assert_eq!(asked(&home), before);
}

#[test]
fn a_budget_is_one_for_all_and_an_interrupted_run_goes_on() {
    let home = home();
    let cut = live(&home, &["--yes", "--max-calls", "20", "--concurrency", "1"]);
    assert_eq!(cut.code, Some(4), "{}{}", cut.out, cut.err);
    assert!(cut.err.contains("it goes on"), "{}", cut.err);
    let first = asked(&home);
    assert!((1..12).contains(&first), "{first}");
    // The council alone spends 48 calls.
    let cut = live(&home, &["--yes", "--max-calls", "48", "--concurrency", "1"]);
    assert_ne!(cut.code, Some(0), "{}", cut.out);
    assert!(cut.err.contains("--max-calls"), "{}", cut.err);
    assert_eq!(asked(&home), 12);
    let done = live(&home, &["--yes", "--max-calls", "1000", "--json"]).json();
    assert_eq!(done["questions"], 12);
    assert_eq!(asked(&home), 36);
}

#[test]
fn marked_verdicts_are_questions_too() {
    let home = home();
    for question in ["What is 17*23?", "What is 17*24?"] {
        let line = ["deliberate", "-m", "ann,bob,cyd", "-q", question];
        ok(&home.run(&line));
        ok(&home.run(&["mark", "391"]));
    }
    let line = [
        "eval",
        "--live",
        "--members",
        "ann,bob,cyd",
        "--yes",
        "--max-calls",
        "100",
        "--json",
    ];
    let found = home.run(&line).json();
    assert_eq!(found["questions"], 2, "{found:#}");
    // The marks say who is best.
    assert_eq!(found["best"]["name"], "bob", "{found:#}");
    assert_eq!(found["best"]["why"], "right in 2 of 2 marked questions");
    assert_eq!(found["ways"][1]["right"], 1.0);
    // A mark that cannot be read is passed over and said; the others are questions.
    let db = home.path().join(".local/share/kd/marks.db");
    let mut bytes = fs::read(&db).expect("read");
    let good = br#""credit":1.0"#;
    let at = bytes.windows(good.len()).position(|part| part == good);
    bytes[at.expect("the text of a mark") + 1] = b'x';
    fs::write(&db, bytes).expect("written");
    let said = home.run(&["eval", "--live", "--members", "ann,bob,cyd", "--dry-run"]);
    assert!(
        ok(&said).contains("council of ann, bob, cyd"),
        "{}",
        said.out
    );
    assert!(
        said.err
            .contains("1 mark cannot be read and is passed over: `kd marks` names them"),
        "{}",
        said.err
    );
}

#[test]
fn the_right_answer_of_a_long_verdict_is_read_from_its_thread() {
    let long = format!("[\"{}\"]", "seventeen ".repeat(60));
    let home = Home::scripted(&[("ann", votes(&long)), ("bob", votes(&long))]);
    let mut config: Value =
        serde_json::from_slice(&fs::read(home.config_file()).expect("read")).expect("JSON");
    config["deliberation"] = json!({"protocol": "vote", "answer": "json"});
    fs::write(home.config_file(), config.to_string()).expect("written");
    let line = [
        "eval",
        "--live",
        "--members",
        "ann,bob",
        "--yes",
        "--max-calls",
        "99",
        "--json",
    ];
    ok(&home.run(&["deliberate", "-m", "ann,bob", "-q", "Which words?"]));
    ok(&home.run(&["mark", "right"]));
    let found = home.run(&line).json();
    assert_eq!(
        (&found["questions"], &found["ways"][0]["right"]),
        (&json!(1), &json!(1.0)),
        "{found:#}"
    );
    // Of an answer that only the mark had, a digest is left.
    ok(&home.run(&["mark", &long.replace("seven", "eigh")]));
    let said = home.run(&line);
    assert_eq!(said.code, Some(2), "{}", said.out);
    assert!(
        said.err
            .contains("1 question left out: a mark keeps a digest of a right answer"),
        "{}",
        said.err
    );
}

#[test]
fn one_question_has_an_interval() {
    let home = home();
    fs::write(
        home.work().join("one.csv"),
        "id,question,gold\nq1,What is 17*23?,391\n",
    )
    .expect("written");
    let line = [
        "eval",
        "--live",
        "one.csv",
        "--members",
        "ann,bob,cyd",
        "--yes",
        "--max-calls",
        "99",
    ];
    let said = home.run(&line);
    assert!(
        ok(&said).contains("-95.0 to +100.0") && !said.out.contains("+100.0 to +100.0"),
        "{}",
        said.out
    );
}
