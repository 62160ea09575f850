//! `kd batch` through the real program: results, going on after kills and signals, limits at a server that counts, failures,
//! equal questions, hostile files.

use crate::support;

use kd_fake::billing::{Billing, Price, Tokens};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Dice, Home, Said, until};

/// Members that repeat the question, after a pause.
fn echoing(pause_ms: u64) -> Home {
    let script = json!({"runs": [[{"sleep_ms": pause_ms}, "echo"]]});
    Home::scripted(&[("ada", script.clone()), ("bob", script)])
}

/// Writes questions, one per line, and returns their name.
fn questions(home: &Home, count: usize) -> &'static str {
    let text: String = (1..=count).map(|n| format!("Question {n}?\n")).collect();
    fs::write(home.work().join("q.txt"), text).expect("written");
    "q.txt"
}

fn results(home: &Home) -> Vec<Value> {
    let text = fs::read_to_string(home.work().join("r.jsonl")).expect("results");
    assert!(text.is_empty() || text.ends_with('\n'), "no line is cut");
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// Returns the answers by id; each id once.
fn answers(lines: &[Value]) -> BTreeMap<String, String> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let all: BTreeMap<_, _> = lines
        .iter()
        .map(|line| {
            let said = line["answers"].as_array().cloned().unwrap_or_default();
            let mut said: Vec<String> = said
                .iter()
                .map(|one| text(one, "member") + ": " + &text(one, "text"))
                .collect();
            said.sort();
            (text(line, "id"), said.join("; "))
        })
        .collect();
    assert_eq!(all.len(), lines.len(), "no id twice");
    all
}

fn expected(count: usize) -> BTreeMap<String, String> {
    let answer = |n: usize| format!("ada: Question {n}?; bob: Question {n}?");
    (1..=count).map(|n| (n.to_string(), answer(n))).collect()
}

#[test]
fn a_file_of_questions_becomes_a_file_of_results_with_a_thread_for_each() {
    let home = echoing(0);
    let q = questions(&home, 12);
    let said = home.run(&["batch", "run", q, "-o", "r.jsonl"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = results(&home);
    assert_eq!(answers(&lines), expected(12));
    let places: Vec<_> = lines.iter().map(|line| line["n"].as_u64()).collect();
    assert!(places.is_sorted(), "in the order of the questions");
    let id = lines[0]["batch"].as_str().expect("an id").to_owned();
    assert!(
        said.err.contains(&format!("{id}: 12 of 12 answered")),
        "{}",
        said.err
    );

    assert_eq!(home.threads(), [] as [PathBuf; 0], "outside the branch");
    let listed = home.run(&["list", "--json"]).json();
    assert_eq!(listed, json!([]));
    let listed = home.run(&["list", "--batch", &id, "--json"]).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(12));
    let thread = lines[4]["thread"].as_str().expect("a thread");
    let shown = home.run(&["show", thread, "--json"]).json();
    assert_eq!(
        shown["messages"][0]["text"]
            .as_str()
            .or(shown["messages"][0]["body"].as_str()),
        Some("Question 5?"),
        "{shown:#}"
    );
    let exported = home.run(&["export", thread]);
    assert!(exported.out.contains("Question 5?"), "{}", exported.err);
    let printed = home.run(&["batch", "results"]).out;
    assert_eq!(
        printed,
        fs::read_to_string(home.work().join("r.jsonl")).expect("read")
    );
    let asked = home.run(&["ask", "Afterwards?"]);
    assert_eq!(asked.code, Some(0), "its own current thread: {}", asked.err);
}

#[test]
fn a_deliberated_batch_can_be_explained_and_replayed() {
    let reply = json!({"reason": "r", "answer": "yes", "confidence": 0.8, "choice": "A", "ranking": ["A"],
        "recommendation": "Do it.", "consensus": "c", "support": "s", "dissent": "none", "cites": ["A"]});
    let script = json!({"runs": [[{"text": reply.to_string()}]]});
    let home = Home::scripted(&[
        ("ada", script.clone()),
        ("bob", script.clone()),
        ("cy", script),
    ]);
    fs::write(
        home.work().join("q.csv"),
        "key,question\nk1,Is it 3.5\" wide?\nk2,Is it safe?\n",
    )
    .expect("written");
    let run = [
        "batch",
        "run",
        "q.csv",
        "--id-field",
        "key",
        "--as",
        "deliberate",
        "-o",
        "r.jsonl",
    ];
    let said = home.run(&run);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = results(&home);
    assert_eq!(lines[0]["id"], "k1");
    assert_eq!(lines[0]["question"], "Is it 3.5\" wide?");
    assert_eq!(lines[1]["verdict"]["winner"], "yes", "{:#}", lines[1]);
    let thread = lines[1]["thread"].as_str().expect("a thread");
    let why = home.run(&["why", thread]);
    assert_eq!(why.code, Some(0), "{}", why.err);
    let replay = home.run(&["replay", thread]);
    assert_eq!(replay.code, Some(0), "{}{}", replay.out, replay.err);
}

fn start(home: &Home, args: &[&str]) -> Child {
    let mut command = home.kd(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a pid");
    kill_process(pid, signal).expect("sent");
}

fn lines_so_far(home: &Home) -> usize {
    let text = fs::read(home.work().join("r.jsonl")).unwrap_or_default();
    text.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn a_kill_at_any_moment_loses_and_doubles_no_result() {
    let seeds: u64 = std::env::var("KD_BATCH_SEEDS").map_or(2, |n| n.parse().expect("a number"));
    for seed in 1..=seeds {
        let home = echoing(20);
        let q = questions(&home, 40);
        let run = [
            "batch",
            "run",
            q,
            "-o",
            "r.jsonl",
            "--concurrency",
            "4",
            "--attempts",
            "20",
        ];
        let mut dice = Dice::new(seed);
        let (mut kills, mut before) = (0, 0);
        for _ in 0..8 {
            let mut child = start(&home, &run);
            let target = before + dice.below(8) as usize;
            until("progress or the end", || {
                let over = child.try_wait().expect("waited").is_some();
                (over || lines_so_far(&home) > target).then_some(())
            });
            std::thread::sleep(Duration::from_millis(dice.below(30)));
            kills += usize::from(child.try_wait().expect("waited").is_none());
            let _ = child.kill();
            let _ = child.wait();
            // What was written stays, and every whole line is one.
            before = lines_so_far(&home);
        }
        let said = home.run(&run);
        assert_eq!(said.code, Some(0), "seed {seed}: {}", said.err);
        assert_eq!(answers(&results(&home)), expected(40), "seed {seed}");
        assert!(kills > 0, "seed {seed}");
    }
}

#[test]
fn the_first_interrupt_finishes_what_is_asked_and_the_same_command_goes_on() {
    let home = echoing(150);
    let q = questions(&home, 30);
    let run = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "3"];
    let child = start(&home, &run);
    until("the first result", || {
        (lines_so_far(&home) > 0).then_some(())
    });
    signal(&child, Signal::INT);
    let said = Said::of(child.wait_with_output().expect("it ends"));
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(
        said.err.contains("run the same command again"),
        "{}",
        said.err
    );
    let status = home.run(&["batch", "status", "--json"]).json();
    let (done, running) = (
        status["counts"]["answered"].as_u64(),
        status["counts"]["running"].as_u64(),
    );
    assert_eq!(running, Some(0), "all that were asked have ended");
    assert_eq!(done, Some(results(&home).len() as u64));
    assert!(done < Some(30));
    let said = home.run(&run);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("goes on: "), "{}", said.err);
    assert_eq!(answers(&results(&home)), expected(30));
    let again: Vec<_> = results(&home)
        .iter()
        .map(|line| line["attempts"].clone())
        .collect();
    assert!(
        again.iter().all(|attempts| *attempts == 1),
        "nothing was asked twice: {again:?}"
    );
}

#[test]
fn an_interrupt_after_which_nothing_is_left_is_no_interrupted_run() {
    let home = echoing(1500);
    let q = questions(&home, 3);
    let child = start(&home, &["batch", "run", q, "-o", "r.jsonl"]);
    until("all are asked", || {
        let status = home.run(&["batch", "status", "--json"]);
        let value: Value = serde_json::from_str(&status.out).ok()?;
        (value["counts"]["running"] == 3).then_some(())
    });
    signal(&child, Signal::INT);
    let said = Said::of(child.wait_with_output().expect("it ends"));
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(!said.err.contains("go on"), "{}", said.err);
    assert_eq!(answers(&results(&home)), expected(3));
}

#[test]
fn results_replace_only_the_results_of_their_batch() {
    let home = echoing(0);
    let q = questions(&home, 2);
    fs::write(home.work().join("other.txt"), "Another?\n").expect("written");
    for (file, output) in [(q, "r.jsonl"), ("other.txt", "other.jsonl")] {
        let said = home.run(&["batch", "run", file, "-o", output, "-q"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let own = home.work().join("r.jsonl");
    let text = fs::read_to_string(&own).expect("results");
    let id = results(&home)[0]["batch"]
        .as_str()
        .expect("an id")
        .to_owned();
    let at = home.work().join("out");
    // What is there, and whether it may be replaced.
    for (old, is_replaced) in [
        (None, true),
        (Some(String::new()), true),
        (Some(text.lines().next().expect("a line").to_owned()), true),
        (Some("Dear diary.\n".to_owned()), false),
        (Some("{\"v\":1,\"batch\":\"".to_owned()), false),
        (Some("{\"v\":1,\"id\":\"q\"}\n".to_owned()), false),
        (
            Some(fs::read_to_string(home.work().join("other.jsonl")).expect("read")),
            false,
        ),
    ] {
        let _ = fs::remove_file(&at);
        if let Some(old) = &old {
            fs::write(&at, old).expect("written");
        }
        let said = home.run(&["batch", "results", &id, "-o", "out"]);
        let now = fs::read_to_string(&at).expect("read");
        if is_replaced {
            assert_eq!((said.code, &now), (Some(0), &text), "{old:?}: {}", said.err);
            continue;
        }
        assert_eq!(said.code, Some(1), "{old:?}: {}", said.err);
        assert_eq!(Some(&now), old.as_ref(), "{old:?}");
        let told = format!("out exists and is not the results of {id}");
        assert!(
            said.err.contains(&told) && said.err.contains("--force"),
            "{}",
            said.err
        );
        let said = home.run(&["batch", "results", &id, "-o", "out", "--force"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!(fs::read_to_string(&at).expect("read"), text);
    }
}

/// Fills the file system of a folder while a batch runs, and goes on when there is room again.
const FULL: &str = r#"
mount -t tmpfs -o size=16m,mode=700 none "$FOLDER" || exit 99
"$KD" batch run q.txt -o out/r.jsonl --concurrency 4 2>first.err &
n=0
while [ "$(cat out/r.jsonl 2>/dev/null | wc -l)" -lt 5 ] && [ $n -lt 1000 ]; do n=$((n + 1)); sleep 0.01; done
dd if=/dev/zero of="$FOLDER/ballast" bs=4k 2>/dev/null
wait $!
echo "$?" >first.code
"$KD" batch run q.txt -o out/r.jsonl 2>full.err
echo "$?" >full.code
rm "$FOLDER/ballast"
"$KD" batch run q.txt -o out/r.jsonl --concurrency 4 2>last.err
echo "$?" >last.code
cp out/r.jsonl r.jsonl
"#;

#[test]
fn a_full_disk_loses_and_doubles_no_result() {
    for folder in [".local/share/kd/batches", "work/.kd/batches", "work/out"] {
        let home = echoing(100);
        let q = questions(&home, 40);
        fs::create_dir(home.work().join("out")).expect("made");
        // The folders are created as the program wants them.
        home.run(&["batch", "run", q, "--max-calls", "1", "-o", "first.jsonl"]);
        let kd = home.kd(&[]);
        let mut command = std::process::Command::new("unshare");
        command
            .args(["-Urm", "sh", "-c", FULL])
            .current_dir(home.work())
            .env_clear();
        command.envs(
            kd.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command
            .env("KD", kd.get_program())
            .env("FOLDER", home.path().join(folder));
        let out = command.output();
        if !out.as_ref().is_ok_and(|out| out.status.success()) {
            println!("SKIPPED: no file system can be mounted here: {out:?}");
            return;
        }
        let read = |name: &str| fs::read_to_string(home.work().join(name)).unwrap_or_default();
        let told = format!(
            "{folder}: {} {} {}",
            read("first.err"),
            read("full.err"),
            read("last.err")
        );
        assert_ne!(read("first.code").trim(), "0", "{told}");
        assert_ne!(read("full.code").trim(), "0", "{told}");
        for err in ["first.err", "full.err"] {
            assert!(read(err).contains("error: "), "{told}");
        }
        assert_eq!(read("last.code").trim(), "0", "{told}");
        assert_eq!(answers(&results(&home)), expected(40), "{told}");
    }
}

#[test]
fn the_second_interrupt_stops_at_once_and_costs_no_attempt() {
    let home = Home::scripted(&[("ada", json!({"runs": [["hang"]]}))]);
    let q = questions(&home, 5);
    let run = ["batch", "run", q, "-o", "r.jsonl", "--attempts", "1"];
    let child = start(&home, &run);
    until("it asks", || {
        let status = home.run(&["batch", "status", "--json"]);
        let value: Value = serde_json::from_str(&status.out).ok()?;
        (value["counts"]["running"] == 5).then_some(())
    });
    let busy = home.run(&run);
    assert_eq!(busy.code, Some(1), "{}", busy.err);
    assert!(
        busy.err.contains("is run by another process"),
        "{}",
        busy.err
    );
    signal(&child, Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, Signal::INT);
    let said = Said::of(child.wait_with_output().expect("it ends"));
    assert_eq!(said.code, Some(130), "{}", said.err);
    fs::write(
        home.path().join("ada.json"),
        json!({"runs": [["echo"]]}).to_string(),
    )
    .expect("written");
    let said = home.run(&run);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(results(&home).len(), 5);
}

#[test]
fn failures_are_asked_again_and_end_as_lines_with_reasons() {
    let broken = json!({"runs": [[{"fail": {"kind": "overloaded", "message": "too busy"}}]]});
    let home = Home::scripted(&[("ada", broken)]);
    let q = questions(&home, 3);
    let run = [
        "batch",
        "run",
        q,
        "-o",
        "r.jsonl",
        "--attempts",
        "2",
        "--pause",
        "1s",
    ];
    let said = home.run(&run);
    assert_eq!(said.code, Some(6), "{}", said.err);
    for line in results(&home) {
        assert_eq!(
            (&line["status"], &line["attempts"]),
            (&json!("failed"), &json!(2))
        );
        assert_eq!(line["reason"], "ada: too busy");
        assert_eq!(line["failures"][0]["kind"], "overloaded");
    }
    let status = home.run(&["batch", "status"]);
    assert!(
        status
            .out
            .contains("failed after 2 attempts: 1: ada: too busy"),
        "{}",
        status.out
    );
    let said = home.run(&run);
    assert_eq!(
        said.code,
        Some(6),
        "failed ones are not asked again by themselves: {}",
        said.err
    );
    assert!(said.err.contains("nothing is left to ask"), "{}", said.err);
    fs::write(
        home.path().join("ada.json"),
        json!({"runs": [["echo"]]}).to_string(),
    )
    .expect("written");
    let retry = home.run(&["batch", "retry"]);
    assert!(
        retry.out.contains("3 questions will be asked again"),
        "{}",
        retry.out
    );
    let said = home.run(&run);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        results(&home)
            .iter()
            .all(|line| line["status"] == "answered")
    );
}

#[test]
fn a_batch_that_nobody_can_answer_stops_and_no_question_fails() {
    let denied = json!({"runs": [[{"fail": {"kind": "auth", "message": "the key is wrong"}}]]});
    let home = Home::scripted(&[("ada", denied)]);
    let q = questions(&home, 50);
    let said = home.run(&["batch", "run", q, "-o", "r.jsonl"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert!(
        said.err.contains("cause: ada: the key is wrong"),
        "{}",
        said.err
    );
    let counts = &home.run(&["batch", "status", "--json"]).json()["counts"];
    assert_eq!(
        (&counts["waiting"], &counts["failed"]),
        (&json!(50), &json!(0))
    );
}

#[test]
fn results_in_any_script_are_known_as_results_and_links_are_no_questions() {
    let home = echoing(0);
    fs::write(
        home.work().join("q.txt"),
        "日本語の質問ですか?\nx日本語の質問ですか?\nПочему так?\n",
    )
    .expect("written");
    for _ in 0..2 {
        let said = home.run(&["batch", "run", "q.txt", "-o", "r.jsonl", "-q"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    assert_eq!(results(&home).len(), 3);
    let folder = home.work().join("qs");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("one.txt"), "One?").expect("written");
    fs::write(home.path().join("diary.txt"), "Dear diary.").expect("written");
    std::os::unix::fs::symlink(home.path().join("diary.txt"), folder.join("two.txt"))
        .expect("linked");
    let said = home.run(&["batch", "run", "qs", "-o", "f.jsonl", "-q"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let text = fs::read_to_string(home.work().join("f.jsonl")).expect("results");
    assert!(text.contains("One?") && !text.contains("diary"), "{text}");
}

#[test]
fn a_cancelled_batch_is_not_asked_until_it_is_taken_up_again() {
    let home = echoing(100);
    let q = questions(&home, 40);
    let run = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "2"];
    let child = start(&home, &run);
    until("the first result", || {
        (lines_so_far(&home) > 0).then_some(())
    });
    let cancel = home.run(&["batch", "cancel"]);
    assert_eq!(cancel.code, Some(0), "{}", cancel.err);
    let said = Said::of(child.wait_with_output().expect("it ends"));
    assert_eq!(said.code, Some(5), "{}", said.err);
    assert!(results(&home).len() < 40);
    assert_eq!(home.run(&["batch", "retry"]).code, Some(0));
    assert_eq!(home.run(&run).code, Some(0));
    assert_eq!(answers(&results(&home)), expected(40));
}

/// A home with two members of a service that counts.
fn served(server: &Billing) -> Home {
    let agent = json!({"backend": "svc", "max_tokens": 100});
    Home::new(&json!({
        "agents": {"m1": agent, "m2": agent},
        "council": {"members": ["m1", "m2"], "conclude": false},
        "providers": {"svc": {"base_url": server.url(), "model": "model-1", "attempts": 1,
            "prices": {"model-1": {"input": 1.0, "output": 5.0}}}},
    }))
}

async fn run(home: &Home, args: &[&str]) -> Said {
    let mut command = home.kd(args);
    let done = tokio::task::spawn_blocking(move || command.output());
    Said::of(done.await.expect("it ends").expect("it runs"))
}

/// Most answers cost much less than what is reserved for them: questions wait for those in flight, and no answer is
/// shortened because of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_limit_of_money_stops_a_batch_when_the_money_is_spent() {
    let price = Price {
        input: 1_000_000,
        output: 5_000_000,
    };
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&asked);
    let text = move |_: &Value, most| {
        seen.lock().expect("it holds").insert(most);
        std::thread::sleep(Duration::from_millis(20));
        "Tabs. ".repeat(100)
    };
    let server = Billing::answering(price, "stop", Tokens::Usual, text).await;
    let server = server.expect("it listens");
    let agent = json!({"backend": "svc"});
    let home = Home::new(&json!({
        "agents": {"m1": agent, "m2": agent},
        "council": {"members": ["m1", "m2"], "conclude": false},
        "providers": {"svc": {"base_url": server.url(), "model": "model-1",
            "prices": {"model-1": {"input": 1.0, "output": 5.0}}}},
    }));
    let q = questions(&home, 40);
    // One request reserves up to $0.021 and costs about $0.001.
    let batch = |limit| ["batch", "run", q, "-o", "r.jsonl", "--max-usd", limit, "-q"];
    let said = run(&home, &batch("0.05")).await;
    let bill = server.bill();
    let at = format!("{bill:?} {}", said.err);
    assert_eq!(said.code, Some(4), "{at}");
    let first = *asked
        .lock()
        .expect("it holds")
        .iter()
        .next_back()
        .expect("one");
    assert!(
        bill.pico_usd > 25_000_000_000 && bill.pico_usd <= 50_000_000_000,
        "{at}"
    );
    assert_eq!(first, 4096, "{at}");
    // Nothing is left for another request.
    let again = run(&home, &batch("0.0001")).await;
    assert_eq!(again.code, Some(4), "{}", again.err);
    assert!(
        again.err.contains("has spent its limit of money"),
        "{}",
        again.err
    );
    asked.lock().expect("it holds").clear();
    let said = run(&home, &batch("0.5")).await;
    assert_eq!(said.code, Some(0), "{:?} {}", server.bill(), said.err);
    let asked = asked.lock().expect("it holds").clone();
    assert_eq!(asked, BTreeSet::from([4096]), "no answer was shortened");
}

#[test]
fn the_results_of_another_batch_are_not_replaced_silently() {
    let home = echoing(0);
    let q = questions(&home, 2);
    let args = ["batch", "run", q, "-o", "r.jsonl", "-q"];
    assert_eq!(home.run(&args).code, Some(0));
    let id = results(&home)[0]["batch"]
        .as_str()
        .expect("an id")
        .to_owned();
    let same = home.run(&args);
    assert!(!same.err.contains("another batch"), "{}", same.err);
    let other = [&args[..], &["--no-conclude"]].concat();
    let said = home.run(&other);
    let told = format!("r.jsonl had the results of {id}; this is another batch");
    assert!(said.err.contains(&told), "{}", said.err);
    let hint = format!("kd batch results {id}");
    assert!(said.err.contains(&hint), "{}", said.err);
    let old = home.run(&["batch", "results", &id]);
    assert_eq!(old.out.lines().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_for_the_whole_batch_across_kills() {
    let price = Price {
        input: 1_000_000,
        output: 5_000_000,
    };
    let server = Billing::start(3, price).await.expect("it listens");
    let home = served(&server);
    let q = questions(&home, 60);
    let args = [
        "batch",
        "run",
        q,
        "-o",
        "r.jsonl",
        "--max-calls",
        "30",
        "--max-usd",
        "0.05",
        "--pause",
        "1s",
    ];
    for _ in 0..3 {
        let mut child = start(&home, &args);
        tokio::time::sleep(Duration::from_millis(400)).await;
        let _ = child.kill();
        let _ = child.wait();
    }
    let said = run(&home, &args).await;
    assert!(
        matches!(said.code, Some(4 | 2)),
        "{:?} {}",
        said.code,
        said.err
    );
    let bill = server.bill();
    assert!(bill.requests <= 30, "{bill:?}");
    assert!(bill.pico_usd <= 50_000_000_000, "{bill:?}");
    let status = run(&home, &["batch", "status", "--json"]).await.json();
    assert!(
        status["spent"]["calls"].as_u64() >= Some(bill.requests),
        "{status:#} {bill:?}"
    );
    assert_eq!(status["counts"]["running"], 0);
    assert_ne!(status["counts"]["waiting"], 0);
    let raised = [
        "batch",
        "run",
        q,
        "-o",
        "r.jsonl",
        "--max-calls",
        "100000",
        "--pause",
        "1s",
        "--attempts",
        "20",
    ];
    let said = run(&home, &raised).await;
    assert!(
        said.err.contains("goes on: "),
        "the same batch: {}",
        said.err
    );
    assert_eq!(answers(&results(&home)).len(), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_question_is_not_asked_again_unless_it_must_be_fresh() {
    let home = echoing(0);
    fs::write(home.work().join("a.txt"), "One?\nTwo?\nOne?\n").expect("written");
    fs::write(home.work().join("b.txt"), "Two?\nThree?\n").expect("written");
    let calls = |said: &Said| said.json()["spent"]["calls"].as_u64();
    let ran = |args: &[&str]| home.run(&[&["batch", "run", "--json"], args].concat());
    assert_eq!(
        calls(&ran(&["a.txt", "-o", "r.jsonl"])),
        Some(4),
        "two questions, two members"
    );
    assert_eq!(results(&home)[2]["cached"], true);
    assert_eq!(results(&home)[2]["thread"], results(&home)[0]["thread"]);
    assert_eq!(calls(&ran(&["b.txt"])), Some(2), "Two? is known");
    assert_eq!(calls(&ran(&["b.txt", "--fresh"])), Some(4));
    assert_eq!(
        calls(&ran(&["b.txt", "--temperature", "0.1"])),
        Some(4),
        "asked in another way"
    );
    let declines = json!({"runs": [[{"text": "I'm sorry, but I can't help with that."}]]});
    for name in ["ada", "bob"] {
        fs::write(
            home.path().join(format!("{name}.json")),
            declines.to_string(),
        )
        .expect("written");
    }
    fs::write(home.work().join("c.txt"), "Four?\n").expect("written");
    for output in ["c1.jsonl", "c2.jsonl"] {
        assert_eq!(
            calls(&ran(&["c.txt", "-o", output])),
            Some(2),
            "a refusal is not kept"
        );
    }
}

#[test]
fn bad_files_are_refused_with_their_line_before_anything_is_asked() {
    let home = echoing(0);
    let long = format!("\"ok\"\n\"{}\"\n", "x".repeat(2 << 20));
    let files: [(&str, &[u8], &str); 8] = [
        ("nul.txt", b"One?\nTw\0o?\n", "line 2: there is a NUL byte"),
        (
            "latin.txt",
            b"One?\nTwo\xe9?\n",
            "line 2: this is not UTF-8 text",
        ),
        (
            "long.jsonl",
            long.as_bytes(),
            "line 2: the question has 2097152 bytes",
        ),
        (
            "twice.jsonl",
            b"{\"id\":1,\"question\":\"a\"}\n{\"id\":1,\"question\":\"b\"}\n",
            "line 2: the id `1` is already used on line 1",
        ),
        (
            "cut.jsonl",
            b"\"One?\"\n{\"id\":2,\"quest",
            "line 2: this is not JSON",
        ),
        (
            "quote.csv",
            b"id,question\n1,\"open\n2,b\n",
            "line 2: a quote that begins here",
        ),
        ("empty.txt", b"\n\n", "line 1: the file has no question"),
        (
            "columns.csv",
            b"id,frage\n1,Wie?\n",
            "line 2: no field is named question",
        ),
    ];
    for (name, bytes, told) in files {
        fs::write(home.work().join(name), bytes).expect("written");
        let said = home.run(&["batch", "run", name, "-o", "r.jsonl"]);
        assert_eq!(said.code, Some(1), "{name}: {}", said.err);
        assert!(said.err.contains(told), "{name}: {}", said.err);
        assert!(said.err.contains("help: "), "{name}: {}", said.err);
        assert!(!home.work().join("r.jsonl").exists(), "{name}");
    }
    fs::write(
        home.work().join("inch.csv"),
        "id,question\n1,How long is 3.5\" in cm?\n",
    )
    .expect("written");
    let said = home.run(&["batch", "run", "inch.csv", "-o", "r.jsonl"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(results(&home)[0]["question"], "How long is 3.5\" in cm?");
    fs::copy(home.work().join("inch.csv"), home.work().join("inch.jsonl")).expect("copied");
    for (file, code) in [("inch.csv", 2), ("inch.jsonl", 1)] {
        let said = home.run(&["batch", "run", "inch.csv", "-o", file]);
        assert_eq!(said.code, Some(code), "{file} stays: {}", said.err);
        let text = fs::read_to_string(home.work().join(file)).expect("read");
        assert!(text.starts_with("id,question"), "{file}: {text}");
    }
    let said = home.run(&["batch", "run", "inch.csv", "--as", "consensus"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(
        said.err.contains("neither a method nor a file"),
        "{}",
        said.err
    );
}

#[test]
fn a_folder_is_a_batch_and_a_hundred_thousand_lines_are_read() {
    let home = echoing(0);
    let folder = home.work().join("questions");
    fs::create_dir(&folder).expect("made");
    for (name, text) in [
        ("b.md", "# Two?\n\nReally?"),
        ("a.txt", "One?"),
        (".hidden.txt", "x"),
        ("c.pdf", "x"),
    ] {
        fs::write(folder.join(name), text).expect("written");
    }
    let said = home.run(&["batch", "run", "questions", "-o", "r.jsonl"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let ids: Vec<_> = results(&home)
        .iter()
        .map(|line| line["id"].clone())
        .collect();
    assert_eq!(ids, ["a", "b"]);
    questions(&home, 100_000);
    let said = home
        .run(&["batch", "run", "q.txt", "--dry-run", "--json"])
        .json();
    assert_eq!(
        (&said["questions"], &said["calls"]["low"]),
        (&json!(100_000), &json!(200_000))
    );
    assert_eq!(said["usd"]["high"], 0.0);
}

#[test]
fn a_secret_in_a_question_reaches_no_file() {
    let home = echoing(0);
    let key = format!("sk-ant-api03-{}", "Ab1".repeat(31));
    fs::write(home.work().join("q.txt"), format!("Is {key} valid?\n")).expect("written");
    let said = home.run(&["batch", "run", "q.txt", "-o", "r.jsonl"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let mut folders = vec![home.work().join(".kd"), home.path().join(".local")];
    let mut files = vec![home.work().join("r.jsonl")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path)
            } else {
                files.push(path)
            }
        }
    }
    for file in files {
        let bytes = fs::read(&file).expect("read");
        assert!(
            !bytes.windows(key.len()).any(|w| w == key.as_bytes()),
            "{}",
            file.display()
        );
    }
}

#[test]
fn a_rate_spreads_the_questions_over_time() {
    let home = echoing(0);
    let q = questions(&home, 5);
    let run = |output: &str, more: &[&str]| {
        let began = std::time::Instant::now();
        let args = [
            &["batch", "run", q, "-o", output, "--fresh", "-q"][..],
            more,
        ]
        .concat();
        let said = home.run(&args);
        assert_eq!(said.code, Some(0), "{}", said.err);
        began.elapsed()
    };
    let free = run("free.jsonl", &[]);
    // The first starts at once, four follow half a second apart.
    let before = jiff::Timestamp::now();
    let spread = run("r.jsonl", &["--rate", "2/s"]);
    assert!(spread >= Duration::from_secs(2), "{spread:?}");
    assert!(
        spread >= free + Duration::from_millis(1200),
        "{spread:?} {free:?}"
    );
    assert_eq!(answers(&results(&home)), expected(5));
    let lines = results(&home);
    let at = |line: &Value| -> jiff::Timestamp {
        let text = line["at"].as_str().expect("a time");
        text.parse().expect("a time")
    };
    let mut times: Vec<_> = lines.iter().map(at).collect();
    times.sort();
    // None can end before it was to start; how much later it does depends on the machine.
    for (n, time) in (0..).zip(&times) {
        let after = time.duration_since(before).as_millis();
        assert!(after >= 500 * n, "{after} ms: {times:?}");
    }
    for bad in ["0/s", "2", "2/d", "/s", "x/m"] {
        let said = home.run(&["batch", "run", q, &format!("--rate={bad}")]);
        assert_eq!(said.code, Some(2), "{bad}: {}", said.err);
    }
}

#[test]
fn status_without_an_id_means_the_batch_that_runs() {
    let home = echoing(3000);
    let q = questions(&home, 2);
    let mut old = start(&home, &["batch", "run", q, "-o", "r.jsonl"]);
    let id = || -> Option<String> {
        let said = home.run(&["batch", "status", "--json"]);
        let value: Value = serde_json::from_str(&said.out).ok()?;
        (value["counts"]["running"] == 2).then(|| value["id"].as_str().map(str::to_owned))?
    };
    let running = until("it runs", id);
    let other = home.work().join("other.txt");
    fs::write(other, "Another?\n").expect("written");
    // A newer batch that cannot run: its member has no answer to give in time.
    let said = home.run(&[
        "batch",
        "run",
        "other.txt",
        "--timeout",
        "1",
        "--attempts",
        "1",
        "-q",
    ]);
    assert_ne!(said.code, Some(0));
    assert_eq!(
        home.run(&["batch", "status", "--json"]).json()["id"],
        running
    );
    let _ = old.kill();
    let _ = old.wait();
    let newest = home.run(&["batch", "status", "--json"]).json();
    assert_ne!(newest["id"], running, "{newest:#}");
}
