//! Tests `kd eval` from outside: recorded answers, debates, random councils, simulations, and errors.

#![allow(missing_docs, clippy::unwrap_used)]

use crate::support;

use serde_json::{Value, json};
use std::path::PathBuf;
use support::{Home, Said};

fn data(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../kd-eval/tests/data/replay");
    folder.join(name).display().to_string()
}

fn kd(args: &[&str]) -> Said {
    let home = Home::new(&json!({}));
    Said::of(home.kd(args).output().expect("it runs"))
}

/// Writes a temporary file.
fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

const CHEAP: &str = "gpt-4o-mini-2024-07-18,claude-3-5-haiku-20241022,gemini-1.5-flash,Meta-Llama-3.1-8B-Instruct,gemma-2-9b-it";

#[test]
fn recorded_answers_are_told_in_words() {
    let said = kd(&[
        "eval",
        "--replay",
        &data("zeroeval_gsm_44models.csv"),
        "--members",
        CHEAP,
        "--rule",
        "plurality,log-odds,auto,oracle",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    insta::assert_snapshot!("eval-replay", said.out);
}

#[test]
fn the_same_in_json_with_every_number() {
    let said = kd(&[
        "eval",
        "--json",
        "--replay",
        &data("zeroeval_gsm_44models.csv"),
        "--members",
        CHEAP,
        "--rule",
        "plurality,log-odds",
    ]);
    let v: Value = serde_json::from_str(&said.out).unwrap();
    let two = |v: &Value| (v.as_f64().unwrap() * 10_000.0).round() / 100.0;
    assert_eq!(two(&v["rules"][0]["right"]), 95.12);
    assert_eq!(two(&v["rules"][1]["right"]), 95.45);
    assert_eq!(two(&v["council"]["oracle"]), 97.80);
    assert_eq!(v["setup"]["questions"], 1319);
    assert_eq!(v["setup"]["sha256"].as_str().unwrap().len(), 64);
    let best = &v["rules"][0]["against_best"];
    assert_eq!(best["verdict"], "not_shown");
    assert!(
        best["interval"]["low"].as_f64().unwrap() < 0.0
            && best["interval"]["high"].as_f64().unwrap() > 0.0
    );
}

#[test]
fn debates_say_what_they_moved() {
    let said = kd(&[
        "eval",
        "--replay",
        &data("dylan_math_debate_answers.jsonl"),
        "--mode",
        "Complex",
        "--empty-answers",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for line in [
        "vote before 54.45 · vote after 53.98 · -0.47 points",
        "right answers made wrong: 68 of 154 (44.16 %)",
    ] {
        assert!(
            said.out.contains(line),
            "{line} is missing in\n{}",
            said.out
        );
    }
}

#[test]
fn random_councils_are_compared_with_their_best_member() {
    let said = kd(&[
        "eval",
        "--replay",
        &data("zeroeval_math-l5_43models.csv"),
        "--councils",
        "6",
        "--seed",
        "3",
        "--json",
    ]);
    let v: Value = serde_json::from_str(&said.out).unwrap();
    let gain = |name: &str| {
        let row = v["gains"]
            .as_array()
            .unwrap()
            .iter()
            .find(|g| g["name"] == name)
            .unwrap();
        row["mean"].as_f64().unwrap()
    };
    assert!(gain("auto") > gain("plurality"), "{}", said.out);
    assert_eq!(
        (v["councils"].as_u64(), v["size"].as_u64()),
        (Some(6), Some(5))
    );
}

#[test]
fn a_page_compares_councils_with_their_best_member() {
    let home = Home::new(&json!({}));
    let file = data("zeroeval_crux_51models.csv");
    let page = |more: &[&str]| {
        let start = ["eval", "--replay", &file, "--page", "2", "--seed", "1"];
        home.run(&[&start, more].concat())
    };
    let markdown = page(&[]);
    assert_eq!(markdown.code, Some(0), "{}", markdown.err);
    let head =
        "# Do councils beat their best member?\n\n2 random councils of 5 models from each of 1 set";
    assert!(markdown.out.starts_with(head), "{}", markdown.out);
    assert!(
        markdown.out.contains("| CRUXEval | auto |"),
        "{}",
        markdown.out
    );
    assert!(
        page(&["--format", "html"])
            .out
            .contains("<td>CRUXEval</td><td>auto</td>")
    );
    let folder = home.path().join("records");
    let folder = folder.display().to_string();
    let written = page(&["--format", "eee", "-o", &folder]);
    assert_eq!(written.out.lines().count(), 3, "{}", written.out);
    let first = written.out.lines().next().unwrap();
    let summary: Value = serde_json::from_str(&std::fs::read_to_string(first).unwrap()).unwrap();
    assert_eq!(summary["schema_version"], "0.3.0");
    let gain = &summary["evaluation_results"][1]["score_details"];
    let interval = &gain["uncertainty"]["confidence_interval"];
    let score = gain["score"].as_f64();
    assert!(interval["lower"].as_f64() < score && score < interval["upper"].as_f64());
    // What does not go together says what to do.
    for (more, next) in [
        (&["--format", "csv"][..], "choose --format md, html or eee"),
        (&["--format", "eee"], "add -o FOLDER"),
    ] {
        let said = page(more);
        assert_eq!(said.code, Some(2), "{more:?}");
        assert!(said.err.contains(next), "{}", said.err);
    }
    let without = home.run(&["eval", "--replay", &file, "--format", "html"]);
    assert!(without.err.contains("add --page"), "{}", without.err);
}

#[test]
fn costs_and_stated_confidence_are_counted_where_they_are_recorded() {
    let (_folder, path) = file(
        "answers.csv",
        "id,gold,ada,bob,cost:ada,cost:bob,confidence:ada\n1,A,A,B,0.2,0.1,0.9\n2,B,B,B,0.2,0.1,0.8\n3,A,C,A,0.2,0.1,0.4\n",
    );
    let said = kd(&["eval", "--replay", &path, "--rule", "cascade,confidence"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out
            .contains("cascade cost 0.90, 0.4500 for each right answer"),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("ada says how sure it is: stated 70.00, actual 66.67"),
        "{}",
        said.out
    );
}

#[test]
fn a_simulation_is_told() {
    let (_folder, path) = file(
        "spec.json",
        r#"{"questions":2000,"options":2,"correlation":0.4,"members":[{"accuracy":0.7,"count":5}],"protocols":["vote","solo"]}"#,
    );
    let said = kd(&["eval", "--simulate", &path]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    insta::assert_snapshot!("eval-simulate", said.out);
}

#[test]
fn what_goes_wrong_is_said_with_what_to_do() {
    let gsm = data("zeroeval_gsm_44models.csv");
    let (_a, spec) = file(
        "spec.json",
        r#"{"members":[{"accuracy":7}],"protocols":["chat"]}"#,
    );
    let (_b, torn) = file("torn.csv", "id,gold,ada\n1,A\n");
    for (args, code, words) in [
        (vec!["eval"], 2, "--replay"),
        (
            vec!["eval", "--replay", &gsm, "--rule", "pluralty"],
            2,
            "did you mean plurality?",
        ),
        (
            vec!["eval", "--replay", &gsm, "--rule", "lock"],
            2,
            "several rounds",
        ),
        (
            vec!["eval", "--replay", &gsm, "--members", "Athena-70B"],
            1,
            "did you mean `Athene-70B`?",
        ),
        (
            vec!["eval", "--replay", "/nowhere.csv"],
            1,
            "could not be read",
        ),
        (
            vec!["eval", "--replay", &torn],
            1,
            "line 2: 2 cells, but the header has 3",
        ),
        (
            vec!["eval", "--simulate", &spec],
            1,
            "members[0].accuracy is 7, but must be from 0 to 1",
        ),
        (
            vec!["eval", "--simulate", &spec],
            1,
            "no protocol is named `chat`",
        ),
        (
            vec!["eval", "--replay", &gsm, "--mode", "x"],
            2,
            "--mode chooses among debates",
        ),
    ] {
        let said = kd(&args);
        assert_eq!(said.code, Some(code), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
        assert!(said.out.is_empty(), "{args:?}");
    }
}

#[test]
fn every_way_and_protocol_is_listed() {
    let said = kd(&["eval", "--list"]);
    for word in [
        "auto",
        "dawid-skene",
        "certain",
        "debate-justified",
        "kd vote rules",
    ] {
        assert!(said.out.contains(word), "{word}\n{}", said.out);
    }
}

#[test]
fn promises_are_tried_on_recorded_answers() {
    let gsm = data("zeroeval_gsm_44models.csv");
    let base = ["eval", "--replay", &gsm, "--members", CHEAP];
    let with = |more: &[&str]| kd(&[&base[..], more].concat());
    let asked = [
        "--promise",
        "0.8,0.9",
        "--marks",
        "100,200",
        "--splits",
        "5",
    ];
    let said = with(&asked);
    assert_eq!(said.code, Some(0), "{}", said.err);
    insta::assert_snapshot!("eval-promises", said.out);
    let said = with(&[&asked[..], &["--json"]].concat());
    let v: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(v["rows"].as_array().map(Vec::len), Some(4), "{v}");
    assert_eq!(v["rows"][3]["marks"], json!(200));
    assert!(v["rows"][3]["answered"].as_f64() > Some(0.5), "{v}");
    assert_eq!(v["splits"], json!(5));
}

#[test]
fn how_soon_broken_promises_are_noticed_is_tried_on_recorded_answers() {
    let gsm = data("zeroeval_gsm_44models.csv");
    let asked = "--promise 0.9 --marks 100 --splits 3 --drift";
    let asked: Vec<&str> = ["eval", "--replay", &gsm, "--members", CHEAP]
        .into_iter()
        .chain(asked.split(' '))
        .collect();
    let said = kd(&asked);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for word in ["nothing", "swap", "harder", "doubted", "in place of"] {
        assert!(said.out.contains(word), "{word}\n{}", said.out);
    }
    let widest = said.out.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(120), "{}", said.out);
    let said = kd(&[&asked[..], &["--json"]].concat());
    let v: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(v["rows"].as_array().map(Vec::len), Some(4), "{v}");
    assert_eq!(v["rows"][1]["change"], json!("swap"));
    let alone = kd(&["eval", "--replay", &gsm, "--drift"]);
    assert_eq!(alone.code, Some(2), "{}", alone.err);
}

#[test]
fn promises_that_cannot_be_tried_are_refused() {
    let gsm = data("zeroeval_gsm_44models.csv");
    let many = kd(&[
        "eval",
        "--replay",
        &gsm,
        "--promise",
        "0.9",
        "--marks",
        "1319",
    ]);
    assert_eq!(many.code, Some(1), "{}", many.err);
    assert!(
        many.err.contains("1319 marks leave none to test"),
        "{}",
        many.err
    );
    let debates = data("dylan_math_debate_answers.jsonl");
    let debates = kd(&["eval", "--replay", &debates, "--promise", "0.9"]);
    assert_eq!(debates.code, Some(2), "{}", debates.err);
    assert!(
        debates.err.contains("promises need named members"),
        "{}",
        debates.err
    );
    for wrong in [["--promise", "1"], ["--promise", "0.2"], ["--marks", "50"]] {
        let said = kd(&[&["eval", "--replay", &gsm][..], &wrong].concat());
        assert_eq!(said.code, Some(2), "{wrong:?}: {}", said.err);
    }
}

/// Returns the path of a file that another tool wrote.
fn record(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../kd-records/tests/data");
    folder.join(name).display().to_string()
}

#[test]
fn files_of_other_tools_are_joined_and_what_is_left_out_is_told() {
    let logs = ["ada.eval", "bob.eval", "cyd.eval", "dan.json"];
    let logs: Vec<String> = logs
        .iter()
        .map(|name| record(&format!("inspect/quiz-{name}")))
        .collect();
    let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
    let said = kd(&[
        &["eval", "--replay"][..],
        &logs,
        &["--rule", "plurality,auto"],
    ]
    .concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    insta::assert_snapshot!("eval-inspect", said.out);
    let said = kd(&[
        "eval",
        "--replay",
        &record("promptfoo/results.json"),
        "--json",
    ]);
    let v: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(v["setup"]["dropped"], json!(1));
    assert_eq!(
        v["setup"]["left_out"],
        json!([
            {"what": "1 answer", "why": "no score: the model or the scorer failed", "example": "cyd on 3"},
            {"what": "1 question", "why": "no answer of cyd", "example": "3"},
        ])
    );
    // Files of one folder, without and with names; a folder; one log of two tasks.
    for (files, expected) in [
        (vec!["lm-eval/ada", "lm-eval/bob"], Ok(["ada", "bob"])),
        (vec!["x=lm-eval/ada", "y=lm-eval/bob"], Ok(["x", "y"])),
        (vec!["inspect"], Err("mockllm/ada#2 (4)")),
        (vec!["README.md"], Err("no column is named `gold`")),
        (
            vec!["promptfoo/results.json", "README.md"],
            Err("no known format"),
        ),
    ] {
        let paths: Vec<String> = files
            .iter()
            .map(|file| match file.split_once('=') {
                Some((name, file)) => format!("{name}={}", record(file)),
                None => record(file),
            })
            .collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let said = kd(&[&["eval", "--json", "--replay"][..], &paths].concat());
        match expected {
            Ok(names) => {
                let v: Value =
                    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.err));
                let members = v["members"].as_array().unwrap();
                let members: Vec<_> = members
                    .iter()
                    .map(|one| one["name"].as_str().unwrap())
                    .collect();
                assert_eq!(members, names, "{files:?}");
            }
            Err(what) => {
                assert_eq!(said.code, Some(1), "{files:?}: {}", said.err);
                assert!(
                    said.out.contains(what) && said.out.contains("hint"),
                    "{files:?}: {}{}",
                    said.out,
                    said.err
                );
            }
        }
    }
}

#[test]
fn joined_answers_are_written_as_a_table_and_decisions_for_every_eval_ever() {
    let results = record("promptfoo/results.json");
    let table = kd(&["eval", "--replay", &results, "--format", "csv"]).out;
    let (_folder, file) = file("table.csv", &table);
    let reports = [&results, &file].map(|path| {
        let said = kd(&[
            "eval",
            "--replay",
            path,
            "--json",
            "--rule",
            "plurality,oracle",
        ]);
        let mut v: Value = serde_json::from_str(&said.out).unwrap();
        v.as_object_mut().unwrap().remove("setup");
        v
    });
    assert_eq!(reports[0], reports[1], "{table}");
    let home = Home::new(&json!({}));
    let said = home.run(&[
        "eval",
        "--replay",
        &results,
        "--rule",
        "plurality,best",
        "--format",
        "eee",
        "-o",
        "out",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.out.lines().count(), 4, "{}", said.out);
    let said = home.run(&["eval", "--replay", "out", "--json"]);
    let v: Value = serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.err));
    assert_eq!(v["members"][0]["name"], json!("kingdom/best"), "{v}");
    assert_eq!(v["members"][1]["right"], json!(1.0), "{v}");
    let said = home.run(&["eval", "--replay", &results, "--format", "eee"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("-o FOLDER"), "{}", said.err);
}

#[test]
fn results_of_a_batch_are_marked_and_a_pipe_is_read_once() {
    let home = Home::scripted(&[
        ("ada", json!({"runs": [[{"text": "The answer is 3."}]]})),
        ("bob", json!({"runs": [[{"text": "4"}]]})),
    ]);
    let at = |name: &str| home.work().join(name);
    std::fs::write(
        at("q.csv"),
        "id,question,gold\na,What is 1+2?,3\nb,What is 2+2?,4\n",
    )
    .unwrap();
    let said = home.run(&["batch", "run", "q.csv", "-o", "r.jsonl", "-q"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let piped = |args: &[&str]| {
        let mut command = home.kd(args);
        command.stdin(std::fs::File::open(at("r.jsonl")).unwrap());
        Said::of(command.output().unwrap())
    };
    // The questions may be the file of right answers.
    for file in ["r.jsonl", "-"] {
        let said = piped(&["eval", "--replay", file, "--gold", "q.csv", "--json"]);
        let v: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{file}: {e}: {}", said.err));
        let right: Vec<_> = v["members"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["right"])
            .collect();
        assert_eq!(right, [&json!(0.5), &json!(0.5)], "{file}");
    }
    let said = home.run(&["eval", "--replay", "r.jsonl"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("add `--gold FILE`"), "{}", said.err);
    let results = record("promptfoo/results.json");
    let said = home.run(&["eval", "--replay", &results, "--gold", "q.csv"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
}
