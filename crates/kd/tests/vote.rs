//! Tests `kd vote` from outside: rules on files, comparison with recorded counts, helpful errors.

#![allow(missing_docs, clippy::unwrap_used)]

use crate::support;

use serde_json::{Value, json};
use support::{Home, Said};

fn home() -> Home {
    Home::new(&json!({}))
}

/// Runs the program with something on stdin.
fn fed(home: &Home, args: &[&str], input: &str) -> Said {
    Said::fed(home.kd(args), input)
}

const CIRCLE: &str = r#"{"candidates":["A","B","C"],"ballots":[{"n":4,"ranks":["A","B","C"]},{"n":3,"ranks":["B","C","A"]},{"n":2,"ranks":["C","A","B"]}]}"#;

#[test]
fn a_runoff_is_told_round_by_round() {
    let said = fed(&home(), &["vote", "tally", "--rule", "irv", "-"], CIRCLE);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for line in [
        "Round 1",
        "  4  A",
        "  dropped: C",
        "Round 2",
        "  6  A",
        "  elected: A",
        "irv: A · plurality",
    ] {
        assert!(
            said.out.lines().any(|l| l == line),
            "{line} is missing in\n{}",
            said.out
        );
    }
}

#[test]
fn csv_ballots_abstain_with_a_reason_and_json_says_all() {
    let csv = "voter,choice,confidence\nada,A,0.9\nbob,B,0.8\ncyd,A,0.2\ndan,,\n";
    let said = fed(
        &home(),
        &["vote", "tally", "-r", "majority,confidence", "--json", "-"],
        csv,
    );
    let lines: Vec<Value> = said
        .out
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["winner"], "A");
    assert_eq!(lines[0]["outcome"], "majority");
    assert_eq!(lines[0]["abstained"][0]["voter"], "dan");
    assert_eq!(lines[0]["dissent"][0]["voter"], "bob");
    assert_eq!(lines[1]["scores"], json!({"A": "1.1", "B": "0.8"}));
}

#[test]
fn a_tie_is_broken_by_a_chain_that_is_told_and_a_lot_that_stays() {
    let csv = "voter,choice\nada,A\nbob,B\n";
    let args = ["vote", "tally", "--rule", "plurality", "--seed", "5", "-"];
    let said = fed(&home(), &args, csv);
    assert!(
        said.out
            .contains("tie · weights: nobody's reliability is known"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("drawn with seed 5") && said.out.contains("winners: A, B"),
        "{}",
        said.out
    );
    let turned = fed(&home(), &args, "voter,choice\nbob,B\nada,A\n");
    assert_eq!(said.out, turned.out, "the order of ballots leaves no trace");
}

#[test]
fn check_passes_on_equal_records_and_fails_on_any_difference() {
    let good = CIRCLE.replace(
        "}]}",
        r#"}],"winners":{"plurality":[0],"smith_set(getcha)":[0,1,2],"sortition":[1]}}"#,
    );
    let said = fed(&home(), &["vote", "check", "-"], &good);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        said.out.contains("sortition · unknown rule"),
        "{}",
        said.out
    );
    assert!(
        said.out
            .ends_with("1 polls · 2 winner sets · 0 rounds · no difference\n"),
        "{}",
        said.out
    );
    let bad = good.replace("\"plurality\":[0]", "\"plurality\":[1]");
    let said = fed(&home(), &["vote", "check", "--json", "-"], &bad);
    assert_eq!(said.code, Some(1));
    let report = said.json();
    assert_eq!(report["differences"][0]["line"], 1);
    assert_eq!(report["differences"][0]["rule"], "plurality");
    assert_eq!(
        report["differences"][0]["what"],
        "winners: recorded {B}, counted {A}"
    );
    assert_eq!(report["unknown_rules"], json!({"sortition": 1}));
    let said = fed(&home(), &["vote", "check", "-"], CIRCLE);
    assert_eq!(said.code, Some(1), "nothing to compare is no success");
}

#[test]
fn errors_name_the_line_and_what_to_do() {
    for (args, input, what) in [
        (
            &["vote", "tally", "-r", "irv", "-"][..],
            "{\"choice\":\"A\"}\n{\"chioce\":\"B\"}\n",
            "line 2: this is neither",
        ),
        (
            &["vote", "tally", "-r", "irv", "-"],
            "{\"choice\":\"A\"}\n\n{\"choice\"\n",
            "line 3: this is not JSON",
        ),
        (
            &["vote", "tally", "-r", "irv", "-"],
            "voter,choice\nada,A,1\n",
            "line 2: 3 cells",
        ),
        (
            &["vote", "tally", "-r", "irv", "-"],
            "voter,n,choice\nada,many,A\n",
            "line 2: `many` is not a whole number",
        ),
        (
            &["vote", "tally", "-r", "irv", "-"],
            "",
            "there is no ballot",
        ),
        (
            &["vote", "tally", "-r", "schultze", "-"],
            CIRCLE,
            "did you mean schulze",
        ),
    ] {
        let said = fed(&home(), args, input);
        assert_ne!(said.code, Some(0));
        assert!(
            said.err.contains(what) && said.err.contains("help: "),
            "{what} is missing in\n{}",
            said.err
        );
    }
}

#[test]
fn rules_are_listed_with_their_papers() {
    let said = home().run(&["vote", "rules", "--json"]);
    let rules = said.json();
    assert!(
        rules
            .as_array()
            .unwrap()
            .iter()
            .any(|r| r["name"] == "schulze" && r["source"].as_str().unwrap().contains("2011"))
    );
    let said = home().run(&["vote", "rules", "schulze(beat_path,margins)"]);
    assert!(said.out.starts_with("schulze-margins\n"), "{}", said.out);
}

#[test]
fn a_poll_that_a_rule_would_count_for_minutes_is_refused() {
    let home = Home::new(&json!({}));
    let names: Vec<String> = (0..2000).map(|n| format!("c{n}")).collect();
    let file = home.work().join("one.jsonl");
    let poll = json!({"candidates": names, "ballots": [names]});
    std::fs::write(&file, poll.to_string()).expect("written");
    let file = file.to_str().expect("text");
    let said = home.run(&["vote", "tally", "--rule", "schulze", file]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(
        said.err.contains("at most 256 candidates") && said.err.contains("2000"),
        "{}",
        said.err
    );
    let said = home.run(&["vote", "tally", "--rule", "borda", file]);
    assert_eq!(said.code, Some(0), "{}", said.err);
}
