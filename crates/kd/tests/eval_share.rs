//! `eval.share`: a share of ordinary questions is also asked of the best member alone and of samples of it, after the
//! verdict, with consent and within a budget of its own.

mod support;

use serde_json::{Value, json};
use std::fs;
use support::pty::on_terminal;
use support::{Home, Said};

/// A council whose first member is wrong.
fn home(eval: &Value) -> Home {
    let says = |answer: &str| {
        let reply = json!({"answer": answer, "confidence": 0.9, "reason": "r", "choice": answer});
        json!({"runs": [[{"text": reply.to_string()}, {"finish": {}}]]})
    };
    let home = Home::scripted(&[
        ("ann", says("381")),
        ("bob", says("391")),
        ("cyd", says("391")),
    ]);
    let mut config: Value =
        serde_json::from_slice(&fs::read(home.config_file()).expect("read")).expect("JSON");
    config["deliberation"] = json!({"protocol": "vote", "answer": "number"});
    config["eval"] = eval.clone();
    fs::write(home.config_file(), config.to_string()).expect("written");
    home
}

fn agree(home: &Home, text: &str) {
    let folder = home.path().join(".local/state/kd");
    fs::create_dir_all(&folder).expect("made");
    let mut private = fs::metadata(&folder).expect("it is there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut private, 0o700);
    fs::set_permissions(&folder, private).expect("set");
    fs::write(folder.join("eval-share"), text).expect("written");
}

fn ask(home: &Home, more: &[&str]) -> Said {
    let members: &[&str] = match more {
        ["--members", ..] => &[],
        _ => &["--members", "ann,bob,cyd"],
    };
    let said = home.run(&[&["deliberate", "What is 17*23?"], members, more].concat());
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("391"), "{}", said.out);
    said
}

/// The questions that batches have answered, by way.
fn shared(home: &Home) -> Vec<String> {
    let batches = home.run(&["batch", "list", "--json"]).json();
    let all = batches["batches"].as_array().cloned().unwrap_or_default();
    let mut ways: Vec<String> = all
        .iter()
        .filter(|batch| batch["counts"]["answered"] == 1)
        .filter_map(|batch| batch["questions"].as_str().map(str::to_owned))
        .collect();
    ways.sort();
    ways
}

const BOTH: [&str; 2] = [
    "a share of your questions (member)",
    "a share of your questions (samples)",
];

#[test]
fn nothing_is_asked_without_the_setting_the_consent_and_the_budget() {
    let unset = home(&json!({}));
    agree(&unset, "yes 1 0.5\n");
    assert!(!ask(&unset, &[]).err.contains("eval.share"));
    assert!(shared(&unset).is_empty());
    // A project cannot turn it on, even where it is trusted.
    let project = json!({"eval": {"share": 1}});
    fs::write(unset.work().join(".kd/config.json"), project.to_string()).expect("written");
    unset.trust();
    ask(&unset, &[]);
    assert!(shared(&unset).is_empty());

    let on = json!({"share": 1});
    let asked = home(&on);
    let piped = ask(&asked, &[]);
    assert!(
        piped.err.contains("asks for your consent once"),
        "{}",
        piped.err
    );
    agree(&asked, "no 1 0.5\n");
    assert!(!ask(&asked, &[]).err.contains("eval.share"));
    // Consent to less is none.
    agree(&asked, "yes 0.1 0.5\n");
    ask(&asked, &[]);
    assert!(shared(&asked).is_empty());

    agree(&asked, "yes 1 0.5\n");
    ask(&asked, &["--private"]);
    assert!(shared(&asked).is_empty(), "private");
    ask(&asked, &["--members", "bob"]);
    assert!(shared(&asked).is_empty(), "no council");
    let broke = home(&json!({"share": 1, "maxUsd": 0}));
    agree(&broke, "yes 1 0.5\n");
    ask(&broke, &[]);
    assert!(shared(&broke).is_empty(), "no budget");
}

#[test]
fn a_shared_question_is_compared_once_its_right_answer_is_known() {
    let home = home(&json!({"share": 1}));
    let none = home.run(&["eval", "--live", "--report"]);
    assert_eq!(none.code, Some(2), "{}", none.err);
    assert!(
        none.err.contains("no question was shared yet"),
        "{}",
        none.err
    );
    agree(&home, "yes 1 0.5\n");
    let said = ask(&home, &[]);
    assert!(
        said.err.contains("also asked for comparison: ann alone"),
        "{}",
        said.err
    );
    assert_eq!(shared(&home), BOTH);
    assert_eq!(home.threads().len(), 1, "no other thread is in the way");
    let unmarked = home.run(&["eval", "--live", "--report"]);
    assert_eq!(unmarked.code, Some(2), "{}", unmarked.err);
    assert!(
        unmarked.err.contains("1 shared question wait"),
        "{}",
        unmarked.err
    );
    let marked = home.run(&["mark", "391"]);
    assert_eq!(marked.code, Some(0), "{}", marked.err);
    let found = home.run(&["eval", "--live", "--report", "--json"]).json();
    let rights: Vec<&Value> = (0..3).map(|at| &found["ways"][at]["right"]).collect();
    assert_eq!(rights, [&json!(1.0), &json!(0.0), &json!(0.0)], "{found:#}");
    assert_eq!(found["members"], json!(["ann", "bob", "cyd"]), "{found:#}");
    assert_eq!(found["best"]["name"], "ann", "{found:#}");
    let text = home.run(&["eval", "--live", "--report"]);
    assert!(
        text.out.contains("1 question of a share of your questions")
            && text.out.contains("no difference shown"),
        "{}",
        text.out
    );
    let page = home.run(&["eval", "--live", "--report", "--format", "html"]);
    assert!(page.out.contains("Does a council pay?</h"), "{}", page.out);
    let file = home.run(&["eval", "--live", "q.csv", "--report"]);
    assert_eq!(file.code, Some(2), "{}", file.err);
}

#[test]
fn other_files_and_variables_can_only_lower_the_settings() {
    let under = |eval: &Value, name: &str, value: &str| {
        let home = home(eval);
        agree(&home, "yes 1 0.5\n");
        let lower = json!({"eval": {"maxUsd": 0.2}});
        fs::write(home.work().join(".kd/config.json"), lower.to_string()).expect("written");
        let mut command = home.kd(&["deliberate", "--members", "ann,bob,cyd", "What is 17*23?"]);
        let said = Said::of(command.env(name, value).output().expect("it runs"));
        assert_eq!(said.code, Some(0), "{}", said.err);
        !shared(&home).is_empty()
    };
    let on = json!({"share": 1});
    // A lower budget of the project shares all the same.
    assert!(under(&on, "KD_EVAL_SHARE", "1"));
    assert!(under(&on, "KD_EVAL_MAXUSD", "9"));
    assert!(!under(&on, "KD_EVAL_SHARE", "0"));
    assert!(!under(&on, "KD_EVAL_MAXUSD", "0"));
    assert!(!under(&json!({}), "KD_EVAL_SHARE", "1"));
}

#[test]
fn forgetting_a_thread_forgets_what_was_asked_beside_it() {
    let home = home(&json!({"share": 1}));
    agree(&home, "yes 1 0.5\n");
    ask(&home, &[]);
    assert_eq!(shared(&home), BOTH);
    let thread = home.threads()[0].clone();
    let id = thread.file_name().expect("named").to_string_lossy();
    let forgot = home.run(&["forget", &id, "--yes"]);
    assert_eq!(forgot.code, Some(0), "{}{}", forgot.out, forgot.err);
    assert!(shared(&home).is_empty(), "{}", forgot.out);
    // No file has the question.
    let mut folders = vec![home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("listed").flatten() {
            let path = entry.path();
            match entry.file_type().expect("known") {
                kind if kind.is_dir() => folders.push(path),
                kind if kind.is_file() => {
                    let bytes = fs::read(&path).expect("read");
                    let text = String::from_utf8_lossy(&bytes);
                    assert!(!text.contains("What is 17*23?"), "{}", path.display());
                }
                _ => {}
            }
        }
    }
}

#[test]
fn consent_is_asked_once_on_a_terminal_after_the_verdict() {
    let home = home(&json!({"share": 1, "maxUsd": 0.25}));
    let played = |typed: &str| {
        let args = [
            "deliberate",
            "--plain",
            "--members",
            "ann,bob,cyd",
            "What is 17*23?",
        ];
        let mut on = on_terminal(&home, 200, &[], &args);
        let (mut seen, mut is_typed) = (String::new(), false);
        while let Ok(more) = on.bytes.recv() {
            seen.push_str(&String::from_utf8_lossy(&more));
            if !is_typed && seen.contains("[y/N]") {
                on.keys.write_all(typed.as_bytes()).expect("typed");
                is_typed = true;
            }
        }
        assert_eq!(on.child.wait().expect("it ends").exit_code(), 0, "{seen}");
        seen
    };
    // Ctrl+C is no answer, and changes no exit code.
    for key in ["\u{3}", "\u{3}"] {
        let stopped = played(key);
        assert!(
            stopped.contains("[y/N]") && shared(&home).is_empty(),
            "{stopped}"
        );
    }
    let first = played("y\n");
    let (verdict, consent) = (first.find("see it:"), first.find("at most $0.25 a day"));
    assert!(verdict.is_some() && verdict < consent, "{first}");
    assert_eq!(shared(&home), BOTH);
    let second = played("");
    assert!(
        !second.contains("[y/N]") && second.contains("also asked"),
        "{second}"
    );
}
