//! `eval.share`: a share of ordinary questions is also asked of the best member alone and of samples of it, after the
//! verdict, with consent and within a separate budget.

use crate::support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
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
    let with_question = files_with(home.path(), "What is 17*23?");
    assert!(with_question.is_empty(), "{with_question:?}");
}

/// Returns the files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("listed").flatten() {
            let path = entry.path();
            match entry.file_type().expect("known") {
                kind if kind.is_dir() => folders.push(path),
                kind if kind.is_file() => {
                    let bytes = fs::read(&path).expect("read");
                    if String::from_utf8_lossy(&bytes).contains(text) {
                        found.push(path);
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// Asks a question and marks its verdict with the right answer.
fn ask_and_mark(home: &Home, question: &str, more: &[&str]) {
    let said = home.run(&[&["deliberate", question], more].concat());
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.err.contains("also asked for"), "{}", said.err);
    let marked = home.run(&["mark", "391"]);
    assert_eq!(marked.code, Some(0), "{}", marked.err);
}

fn report(home: &Home) -> Value {
    home.run(&["eval", "--live", "--report", "--json"]).json()
}

#[test]
fn unlike_councils_are_compared_each_for_itself() {
    let home = home(&json!({"share": 1}));
    agree(&home, "yes 1 9\n");
    let (three, two) = (["--members", "ann,bob,cyd"], ["--members", "bob,cyd"]);
    ask_and_mark(&home, "What is 17*23?", &three);
    ask_and_mark(&home, "What is 23*17?", &three);
    ask_and_mark(&home, "What is 17*23?", &two);
    let enough = [&three[..], &["--protocol", "certain-enough"]].concat();
    ask_and_mark(&home, "What is 17*23?", &enough);
    let found = report(&home);
    let councils: Vec<(Value, Value, Value)> = std::iter::once(&found)
        .chain(found["earlier_councils"].as_array().expect("a list"))
        .map(|one| {
            let council = &one["council"];
            let of = |name: &str| council[name].clone();
            (
                one["members"].clone(),
                json!([of("protocol"), of("stopping")]),
                one["questions"].clone(),
            )
        })
        .collect();
    let expected = [
        (
            json!(["ann", "bob", "cyd"]),
            json!(["certain-enough", "settled"]),
            json!(1),
        ),
        (json!(["bob", "cyd"]), json!(["vote", null]), json!(1)),
        (
            json!(["ann", "bob", "cyd"]),
            json!(["vote", null]),
            json!(2),
        ),
    ];
    assert_eq!(councils, expected, "{found:#}");
    // The member that is best alone is right in the newer tables only.
    let alone = |one: &Value| one["ways"][1]["right"].clone();
    assert_eq!(
        alone(&found["earlier_councils"][1]),
        json!(0.5),
        "{found:#}"
    );
    assert_eq!(alone(&found), json!(1.0), "{found:#}");

    let text = home.run(&["eval", "--live", "--report"]).out;
    let titles: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("· council of "))
        .collect();
    let begins = ["1 question of", "1 question of", "2 questions of"];
    assert_eq!(titles.len(), 3, "{text}");
    for (title, begin) in titles.iter().zip(begins) {
        assert!(title.starts_with(begin), "{text}");
    }
    assert!(
        titles[0].contains("protocol certain-enough (settled)"),
        "{text}"
    );
    let model = format!("bob ({})", home.path().join("bob.json").display());
    assert!(titles[1].contains(&model), "{text}");

    let folder = home.path().join("eee");
    let folder = folder.to_str().expect("text");
    let written = home.run(&[
        "eval", "--live", "--report", "--format", "eee", "-o", folder,
    ]);
    for task in ["own-questions/", "own-questions-2/", "own-questions-3/"] {
        assert!(written.out.contains(task), "{}{}", written.out, written.err);
    }
}

#[test]
fn equal_questions_count_once_by_the_first_whose_answers_are_all_there() {
    let home = home(&json!({"share": 1}));
    agree(&home, "yes 1 9\n");
    let members = ["--members", "ann,bob,cyd"];
    ask_and_mark(&home, "What is 17*23?", &members);
    fs::remove_dir_all(home.work().join(".kd/batches")).expect("removed");
    let lost = report(&home);
    assert_eq!(lost["questions"], 0, "{lost:#}");
    assert_eq!(
        lost["left_out"].as_array().map(Vec::len),
        Some(1),
        "{lost:#}"
    );
    for _ in 0..2 {
        ask_and_mark(&home, "What is 17*23?", &members);
        let found = report(&home);
        assert_eq!(found["questions"], 1, "{found:#}");
        assert_eq!(found["left_out"], json!([]), "{found:#}");
        assert_eq!(found["ways"][0]["right"], 1.0, "{found:#}");
    }
}

#[test]
fn a_thread_that_becomes_private_or_is_deleted_leaves_the_comparison() {
    let home = home(&json!({"share": 1}));
    agree(&home, "yes 1 9\n");
    let members = ["--members", "ann,bob,cyd"];
    ask_and_mark(&home, "What is 17*23?", &members);
    assert_eq!(report(&home)["questions"], 1);
    let kept = || files_with(&home.work().join(".kd/batches"), "What is 17*23?");
    assert!(!kept().is_empty());
    let private = home.run(&["ask", "--continue", "--private", "-m", "bob", "And now?"]);
    assert_eq!(private.code, Some(0), "{}", private.err);
    // At once, not only in the next report.
    assert!(kept().is_empty(), "{:?}", kept());
    assert!(shared(&home).is_empty());
    let nothing = |what: &str| {
        let said = home.run(&["eval", "--live", "--report"]);
        assert_eq!(said.code, Some(2), "{what}: {}", said.out);
        assert!(
            said.err.contains("no question was shared yet"),
            "{what}: {}",
            said.err
        );
    };
    nothing("private");
    assert_eq!(home.threads().len(), 1, "the thread stays");

    ask_and_mark(&home, "What is 23*17?", &members);
    let newest = home
        .threads()
        .into_iter()
        .find(|thread| !files_with(thread, "23*17").is_empty());
    fs::remove_dir_all(newest.expect("a thread")).expect("removed");
    nothing("deleted");
}

/// Requests in flight are stopped, the other way is not asked, and nothing is kept.
#[test]
fn a_thread_that_becomes_private_while_it_is_shared_is_sent_no_further() {
    let home = home(&json!({"share": 1}));
    agree(&home, "yes 1 9\n");
    let reply = json!({"answer": "391", "confidence": 0.9, "reason": "r", "choice": "391"});
    let slow = json!({"runs": [[{"sleep_ms": 5000}, {"text": reply.to_string()}, {"finish": {}}]]});
    fs::write(home.path().join("ann.json"), slow.to_string()).expect("written");
    let args = ["deliberate", "--members", "ann,bob,cyd", "What is 17*23?"];
    let mut sharing = home
        .kd(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut told = BufReader::new(sharing.stderr.take().expect("piped")).lines();
    let is_sharing = told.any(|line| line.expect("text").contains("also asked for comparison"));
    assert!(is_sharing);
    let private = home.run(&["ask", "--continue", "--private", "-m", "bob", "And now?"]);
    assert_eq!(private.code, Some(0), "{}", private.err);
    let rest: Vec<String> = told.map_while(Result::ok).collect();
    assert!(sharing.wait().expect("it ends").success(), "{rest:?}");
    let batches = home.run(&["batch", "list", "--json"]).json();
    assert!(
        !batches.to_string().contains("(samples)"),
        "the other way is not asked: {batches:#}"
    );
    assert!(shared(&home).is_empty(), "{batches:#}");
    let answers = home.work().join(".kd/batches");
    if answers.exists() {
        let kept = files_with(&answers, "What is 17*23?");
        assert!(kept.is_empty(), "{kept:?}");
    }
}

#[test]
fn a_report_removes_answers_of_a_thread_that_was_made_private_by_hand() {
    let home = home(&json!({"share": 1}));
    agree(&home, "yes 1 9\n");
    ask_and_mark(&home, "What is 17*23?", &["--members", "ann,bob,cyd"]);
    // Marked as private by hand: the next report removes the answers.
    let file = home.threads()[0].join("thread.json");
    let mut meta: Value = serde_json::from_slice(&fs::read(&file).expect("read")).expect("JSON");
    meta["private"] = json!(true);
    fs::write(&file, meta.to_string()).expect("written");
    // The end of a log that was written after the thread was removed.
    let late = home
        .work()
        .join(".kd/batches/batch-00000000/threads/council-0000");
    fs::create_dir_all(&late).expect("made");
    fs::write(late.join(".kd-events.jsonl"), "\"What is 17*23?\"\n").expect("written");
    let said = home.run(&["eval", "--live", "--report"]);
    assert_eq!(said.code, Some(2), "{}", said.out);
    assert!(
        said.err.contains("no question was shared yet"),
        "{}",
        said.err
    );
    let kept = files_with(&home.work().join(".kd/batches"), "What is 17*23?");
    assert!(kept.is_empty() && shared(&home).is_empty(), "{kept:?}");
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
    // Ctrl+C is not an answer, and changes no exit code.
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

#[test]
fn a_signal_ends_the_question_for_consent_without_an_answer() {
    let home = home(&json!({"share": 1, "maxUsd": 0.25}));
    let args = [
        "deliberate",
        "--plain",
        "--members",
        "ann,bob,cyd",
        "What is 17*23?",
    ];
    for signal in [Signal::TERM, Signal::HUP] {
        let mut on = on_terminal(&home, 200, &[], &args);
        let (mut seen, mut is_sent) = (String::new(), false);
        while let Ok(more) = on.bytes.recv() {
            seen.push_str(&String::from_utf8_lossy(&more));
            if !is_sent && seen.contains("[y/N]") {
                let pid = on
                    .child
                    .process_id()
                    .and_then(|pid| i32::try_from(pid).ok());
                let pid = pid.and_then(Pid::from_raw).expect("it runs");
                kill_process(pid, signal).expect("sent");
                is_sent = true;
            }
        }
        // The verdict stays, and so does its exit code.
        assert_eq!(on.child.wait().expect("it ends").exit_code(), 0, "{seen}");
        assert!(is_sent && seen.contains("391"), "{seen}");
        assert_eq!(seen.matches("[y/N]").count(), 1, "{signal:?}: {seen}");
        assert!(!seen.contains("also asked for"), "{signal:?}: {seen}");
        assert!(shared(&home).is_empty(), "{signal:?}");
        let consent = home.path().join(".local/state/kd/eval-share");
        assert!(!consent.exists(), "{signal:?}");
    }
}
