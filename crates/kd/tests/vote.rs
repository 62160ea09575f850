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
            .ends_with("polls: 1 · winner sets: 2 · rounds: 0 · no difference\n"),
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
            "help: did you mean schulze or schulze-margins? kd vote rules lists all rules\n",
        ),
        (
            &["vote", "tally", "-r", "condorse", "-"],
            CIRCLE,
            "help: did you mean condorcet or weak-condorcet or condorcet-irv?",
        ),
        (
            &["vote", "tally", "-r", "xyzzy", "-"],
            CIRCLE,
            "help: kd vote rules lists all rules\n",
        ),
        (
            &["vote", "tally", "-r", "schulze", "-"],
            "voter,choice\nann,A>B>C\n",
            "stdin, line 2: `A>B>C` reads like a ranking",
        ),
        (
            &["vote", "check", "-"],
            "{\"voter\":\"ada\",\"choice\":\"A\"}\n{\"voter\":\"ada\",\"choice\":\"B\"}\n",
            "stdin, line 2: `ada` has voted already (line 1)",
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
fn a_rule_without_rounds_and_scores_shows_the_pairs() {
    let csv =
        "n,ranking\n42,Memphis>Nashville>Knoxville\n26,Nashville>Knoxville>Memphis\n7,Knoxville\n";
    let said = fed(&home(), &["vote", "tally", "--rule", "schulze", "-"], csv);
    let expected = [
        "Pairs: votes for the row against the column",
        "       1   2   3",
        "   1   -  33   7  Knoxville",
        "   2  42   -  42  Memphis",
        "   3  68  26   -  Nashville",
        "ballots counted: 75 of 75",
        "schulze: Memphis · majority",
    ];
    assert_eq!(said.out.lines().collect::<Vec<_>>(), expected);
    let said = fed(&home(), &["vote", "tally", "--rule", "borda", "-"], csv);
    assert!(!said.out.contains("Pairs"), "{}", said.out);
    let names: Vec<String> = (0..21).map(|n| format!("c{n:02}")).collect();
    let many = format!("ranking\n{}\n", names.join(">"));
    let said = fed(&home(), &["vote", "tally", "--rule", "schulze", "-"], &many);
    assert!(
        said.out
            .starts_with("Pairs: not shown for 21 candidates (at most 20)\n"),
        "{}",
        said.out
    );
}

#[test]
fn what_is_left_out_is_noted_and_the_ballots_are_counted() {
    let csv = "voter,wieght,rank1,rank2\nada,2,A,A\n,,,\nbob,1,B,\ncyd,1,B,A\ndan,1,,\neve,1,A,\n";
    let said = fed(&home(), &["vote", "tally", "-r", "irv", "-"], csv);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        said.err,
        "note: a ballot names `A` twice: only its first place counts (line 2)\n\
         note: a row without content is left out (line 3)\n\
         note: the column `wieght` is not read (line 1)\n"
    );
    assert!(said.out.contains("  exhausted: 1\n"), "{}", said.out);
    let said = fed(&home(), &["vote", "tally", "-r", "borda", "-"], csv);
    assert!(
        said.out
            .contains("abstained: 1 · it ranks nobody who can win\nballots counted: 4 of 5\n"),
        "{}",
        said.out
    );
    let poll = r#"{"candidates":["A"],"ballots":[["A"],["B"]]}"#;
    let said = fed(&home(), &["vote", "tally", "-r", "irv", "-"], poll);
    assert_eq!(
        said.err,
        "note: `B` is on 1 ballot but is not a candidate\n"
    );
}

#[test]
fn two_thirds_are_no_super_majority_and_a_cap_is_a_setting() {
    let tally = |args: &[&str], input: &str| {
        let args = [&["vote", "tally", "--json", "-", "-r"], args].concat();
        let said = fed(&home(), &args, input);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let value = said.json();
        (value["winner"].clone(), value["outcome"].clone())
    };
    for (a, b, wins) in [
        (2, 1, false),
        (66, 33, false),
        (200, 100, false),
        (67, 33, true),
        (201, 99, true),
    ] {
        let csv = format!("n,choice\n{a},A\n{b},B\n");
        let winner = if wins { json!("A") } else { Value::Null };
        assert_eq!(tally(&["super-majority"], &csv).0, winner, "{a} {b}");
    }
    let two = "n,choice\n2,A\n1,B\n";
    assert_eq!(tally(&["super-majority", "--threshold", "0.6"], two).0, "A");
    // Plain approval voting.
    let wide = [
        r#"{"candidates":["A","B","C","D"]}"#,
        r#"{"n":60,"approvals":["A","B","C"]}"#,
        r#"{"n":40,"approvals":["D","A"]}"#,
    ]
    .join("\n");
    assert_eq!(
        tally(&["approval"], &wide).1,
        "split",
        "A and D have 40 each"
    );
    let all = tally(&["approval", "--approvals-max", "4"], &wide);
    assert_eq!(all, (json!("A"), json!("unanimous")));
    let in_file = wide.replace("\"D\"]}", "\"D\"],\"approvals_max\":3}");
    assert_eq!(tally(&["approval"], &in_file).0, "A");
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
