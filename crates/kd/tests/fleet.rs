//! `kd batch run --store` and `kd worker` through the real program and a real PostgreSQL: results and threads of other
//! machines, refusals, signals, kills, limits.

use crate::postgres_server;
use crate::support;

use kd_core::Timestamp;
use kd_core::batch::{Method, Row, Status};
use kd_fake::billing::{Billing, Price};
use kd_sql::fleet::{Ended, NewWorker, Store};
use postgres::{Client, NoTls};
use postgres_server::postgres_schema;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{Dice, Home, Said, until};

/// Machines that share a database.
struct Fleet {
    url: String,
}

impl Fleet {
    /// Returns whether a worker refuses the newest batch for a reason that contains a text.
    fn refuses(&self, home: &Home, why: &str) -> bool {
        let status = self.run(home, &["batch", "status", "--json"]).out;
        let status: Value = serde_json::from_str(&status).unwrap_or_default();
        let refusals = status["refusals"].as_array();
        refusals.is_some_and(|all| all.iter().any(|one| one.to_string().contains(why)))
    }

    fn new() -> Option<Self> {
        // The password is not needed, and must be seen nowhere.
        let url = postgres_schema()?.replace("//kd@", "//kd:pass-word@");
        Some(Self { url })
    }

    fn kd(&self, home: &Home, args: &[&str]) -> Command {
        let mut command = home.kd(args);
        command.env("KD_BATCH_STORE", &self.url);
        command
    }

    fn run(&self, home: &Home, args: &[&str]) -> Said {
        let said = Said::of(self.kd(home, args).output().expect("it runs"));
        assert!(!format!("{}{}", said.out, said.err).contains("pass-word"));
        said
    }

    fn start(&self, home: &Home, args: &[&str]) -> Running {
        let mut command = self.kd(home, args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().expect("it starts")))
    }

    fn worker(&self, home: &Home) -> Running {
        self.start(home, &["worker", "--lease", "1s", "--concurrency", "2"])
    }

    fn status(&self, home: &Home) -> Value {
        self.run(home, &["batch", "status", "--json"]).json()
    }

    fn database(&self) -> Client {
        Client::connect(&self.url, NoTls).expect("connected")
    }
}

/// A process that ends with the test.
struct Running(Option<Child>);

impl Running {
    fn signal(&self, signal: Signal) {
        let child = self.0.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("sent");
    }

    fn is_over(&mut self) -> bool {
        let child = self.0.as_mut().expect("it runs");
        child.try_wait().expect("waited").is_some()
    }

    fn said(mut self) -> Said {
        let child = self.0.take().expect("it runs");
        let said = Said::of(child.wait_with_output().expect("it ends"));
        assert!(!format!("{}{}", said.out, said.err).contains("pass-word"));
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A machine whose members repeat the question, after a pause.
fn echoing(pause_ms: u64) -> Home {
    let script = json!({"runs": [[{"sleep_ms": pause_ms}, "echo"]]});
    like(
        &Home::scripted(&[("ada", script.clone()), ("bob", script)]),
        |_| {},
    )
}

/// A machine with the configuration of another one, changed.
fn like(other: &Home, change: impl FnOnce(&mut Value)) -> Home {
    let home = Home::new(&json!({}));
    let text = fs::read_to_string(other.config_file()).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("json");
    // Scripts are found by their paths, which are part of the configuration.
    for name in ["ada", "bob", "cy"] {
        if let Some(file) = config["agents"][name]["model"].as_str() {
            let shared =
                std::env::temp_dir().join(format!("kd-fleet-{}-{name}.json", digest(file)));
            if !shared.exists() {
                fs::copy(file, &shared).expect("copied");
            }
            config["agents"][name]["model"] = json!(shared);
        }
    }
    change(&mut config);
    fs::write(home.config_file(), config.to_string()).expect("written");
    home
}

/// Returns a name for the content of a file.
fn digest(file: &str) -> u64 {
    let text = fs::read(file).expect("read");
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

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
        .map(|line| serde_json::from_str(line).expect("a line"))
        .collect()
}

/// Returns the answers by id; each id once.
fn answers(lines: &[Value]) -> BTreeMap<String, String> {
    let all: BTreeMap<_, _> = lines
        .iter()
        .map(|line| {
            let said = line["answers"].as_array().cloned().unwrap_or_default();
            let text = |one: &Value| format!("{}: {}", one["member"], one["text"]);
            let mut said: Vec<String> = said.iter().map(text).collect();
            said.sort();
            (line["id"].to_string(), said.join("; "))
        })
        .collect();
    assert_eq!(all.len(), lines.len(), "no id twice");
    all
}

fn expected(count: usize) -> BTreeMap<String, String> {
    let answer = |n: usize| format!("\"ada\": \"Question {n}?\"; \"bob\": \"Question {n}?\"");
    (1..=count)
        .map(|n| (format!("\"{n}\""), answer(n)))
        .collect()
}

#[test]
fn workers_of_another_machine_answer_and_their_threads_come_back_byte_for_byte() {
    let Some(fleet) = Fleet::new() else { return };
    let reply = json!({"reason": "r", "answer": "yes", "confidence": 0.8, "choice": "A", "ranking": ["A"],
        "recommendation": "Do it.", "consensus": "c", "support": "s", "dissent": "none", "cites": ["A"]});
    let script = json!({"runs": [[{"text": reply.to_string()}]]});
    let home = Home::scripted(&[
        ("ada", script.clone()),
        ("bob", script.clone()),
        ("cy", script),
    ]);
    let home = like(&home, |_| {});
    let far = like(&home, |_| {});
    let worker = fleet.worker(&far);
    let q = questions(&home, 6);
    let said = fleet.run(
        &home,
        &[
            "batch",
            "run",
            q,
            "--as",
            "deliberate",
            "-o",
            "r.jsonl",
            "--concurrency",
            "0",
        ],
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = results(&home);
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|line| line["verdict"]["winner"] == "yes"));
    let threads = home.work().join(".kd/batches");
    let id = lines[0]["batch"].as_str().expect("an id");
    let mut files = 0;
    let rows = fleet
        .database()
        .query("SELECT t.name, t.bytes, r.line FROM kd_threads t JOIN kd_results r USING (batch, place)", &[])
        .expect("read");
    for row in rows {
        let (name, bytes, line): (String, Vec<u8>, String) = (row.get(0), row.get(1), row.get(2));
        let line: Value = serde_json::from_str(&line).expect("a line");
        let thread = line["thread"].as_str().expect("a thread");
        let here = threads.join(id).join("threads").join(thread).join(&name);
        assert!(
            fs::read(&here).expect("it came") == bytes,
            "{}",
            here.display()
        );
        files += 1;
    }
    assert!(files > 6 * 3, "thread.json, messages and events: {files}");
    for line in &lines {
        let thread = line["thread"].as_str().expect("a thread");
        for command in ["show", "why", "replay", "export"] {
            let said = home.run(&[command, thread]);
            assert_eq!(said.code, Some(0), "{command}: {}", said.err);
        }
    }
    let short = id.strip_prefix("batch-").expect("its prefix");
    let listed = home.run(&["list", "--batch", short, "--json"]).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(6), "{listed:#}");
    worker.signal(Signal::TERM);
    let said = worker.said();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains(&format!("serves {id}")), "{}", said.err);
    assert_eq!(in_batches(&far), [""; 0], "the worker keeps no thread");
    let printed = fleet.run(&home, &["batch", "results"]).out;
    assert_eq!(
        printed,
        fs::read_to_string(home.work().join("r.jsonl")).expect("read")
    );
    assert!(fleet.run(&home, &["batch", "list"]).out.contains(id));
    let again = fleet.run(
        &home,
        &[
            "batch",
            "run",
            q,
            "--as",
            "deliberate",
            "-o",
            "r.jsonl",
            "--concurrency",
            "0",
        ],
    );
    assert!(
        again.err.contains("nothing is left to ask"),
        "{}",
        again.err
    );
}

#[test]
fn a_worker_with_another_configuration_refuses_and_the_status_says_why() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(0);
    let other = like(&home, |config| {
        config["agents"]["bob"]["prompt"] = json!("Always disagree.");
    });
    let worker = fleet.worker(&other);
    let q = questions(&home, 3);
    let run = fleet.start(
        &home,
        &["batch", "run", q, "-o", "r.jsonl", "--concurrency", "0"],
    );
    let text = until("the refusal", || {
        let text = fleet.run(&home, &["batch", "status"]).out;
        text.contains("does not serve").then_some(text)
    });
    assert!(text.contains("agents.bob"), "{text}");
    assert!(!text.contains("agents.ada"), "{text}");
    let status = fleet.status(&home);
    assert_eq!(status["counts"]["waiting"], 3, "{status:#}");
    assert_eq!(status["workers"][0]["lease_ms"], 1000);
    // One with the same configuration of the named members answers.
    let own = like(&home, |config| {
        config["limits"]["calls"] = json!(1000);
    });
    let good = fleet.worker(&own);
    let said = run.said();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(answers(&results(&home)), expected(3));
    for worker in [worker, good] {
        worker.signal(Signal::TERM);
        assert_eq!(worker.said().code, Some(0));
    }
}

#[test]
fn agent_programs_and_what_works_on_one_machine_only_are_refused() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(0);
    let program = like(&home, |config| {
        config["agents"]["bob"] = json!({"backend": "codex"});
    });
    let q = questions(&program, 2);
    questions(&home, 2);
    // Before anything is asked, also where only the chair is one.
    let chaired = like(&home, |config| {
        config["agents"]["boss"] = json!({"backend": "codex"});
        config["council"] = json!({"members": ["ada", "bob"], "chair": "boss", "conclude": true});
    });
    questions(&chaired, 2);
    let plan = json!({"council": {"members": [{"model": "ada", "role": "skeptic"}, {"model": "bob", "role": "pragmatist"},
        {"model": "codex", "role": "reviewer"}]}});
    fs::write(home.work().join("plan.json"), plan.to_string()).expect("written");
    for (home, args, told) in [
        (
            &program,
            vec!["batch", "run", q],
            "`bob` is an agent program (codex)",
        ),
        (
            &chaired,
            vec!["batch", "run", q, "-m", "ada"],
            "`boss` is an agent program (codex)",
        ),
        (
            &home,
            vec!["batch", "run", q, "--as", "plan.json"],
            "`codex` is an agent program",
        ),
        (
            &home,
            vec!["batch", "run", q, "--provider-batch"],
            "works on one machine only",
        ),
        (
            &home,
            vec!["batch", "run", q, "--allow-secrets"],
            "works on one machine only",
        ),
        (
            &home,
            vec!["batch", "run", q, "--store", "mysql://u:pass-word@h/x"],
            "not the address",
        ),
        (
            &home,
            vec![
                "batch",
                "list",
                "--store",
                "postgresql://u:pass-word@db.invalid/x?sslmode=disable",
            ],
            "sslmode=verify-full",
        ),
    ] {
        let said = fleet.run(home, &args);
        assert_eq!(said.code.filter(|code| *code != 0), said.code);
        assert!(said.err.contains(told), "{args:?}: {}", said.err);
    }
    for args in [&["batch", "run", q, "--concurrency", "0"][..], &["worker"]] {
        let said = home.run(args);
        assert!(
            said.err.contains("KD_BATCH_STORE"),
            "{args:?}: {}",
            said.err
        );
        assert_eq!(said.code, Some(2));
    }
    assert_eq!(
        fleet.run(&home, &["batch", "list", "--json"]).json()["batches"],
        json!([])
    );
    // A folder does not choose the database.
    fs::create_dir_all(home.work().join(".kd")).expect("made");
    fs::write(
        home.work().join(".kd/config.json"),
        r#"{"batch": {"store": "postgresql://u@h/x"}}"#,
    )
    .expect("written");
    assert!(home.run(&["batch", "list"]).err.contains("batch"));
}

#[test]
fn signals_drain_and_the_same_command_goes_on() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(150);
    let far = like(&home, |_| {});
    let q = questions(&home, 80);
    let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "2"];
    let worker = fleet.worker(&far);
    let run = fleet.start(&home, &args);
    until("the first results", || {
        let text = fs::read_to_string(home.work().join("r.jsonl")).unwrap_or_default();
        (text.lines().count() > 2).then_some(())
    });
    worker.signal(Signal::TERM);
    let said = worker.said();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(!said.err.contains("nothing is left"), "{}", said.err);
    run.signal(Signal::INT);
    let said = run.said();
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(said.err.contains("`kd batch cancel"), "{}", said.err);
    let status = fleet.status(&home);
    assert_eq!(status["counts"]["running"], 0, "{status:#}");
    assert_eq!(status["workers"], json!([]));
    let command = status["command"].as_str().expect("a command");
    assert!(command.starts_with("kd batch run q.txt"), "{command}");
    let said = fleet.run(&home, &args);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("goes on: "), "{}", said.err);
    let lines = results(&home);
    assert_eq!(answers(&lines), expected(80));
    assert!(
        lines.iter().all(|line| line["attempts"] == 1),
        "nothing was asked twice"
    );
}

/// Returns the names in the folder of batches.
fn in_batches(home: &Home) -> Vec<String> {
    let all = fs::read_dir(home.work().join(".kd/batches"));
    let all = all.into_iter().flatten().flatten();
    all.map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Stops a process at once: sends signals until it has ended, because those that come together count as one.
fn stop_at_once(running: &mut Running) {
    until("the end", || {
        let is_over = running.is_over();
        if !is_over {
            running.signal(Signal::TERM);
        }
        is_over.then_some(())
    });
}

#[test]
fn a_worker_leaves_no_thread_and_takes_none_of_others_in_the_same_folder() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(100);
    let far = like(&home, |_| {});
    let q = questions(&home, 60);
    let beside = fleet.worker(&home);
    let victim = fleet.worker(&far);
    let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "1"];
    let run = fleet.start(&home, &args);
    until("threads of a worker", || {
        let folder = in_batches(&far).pop()?;
        let batch = fs::read_dir(far.work().join(".kd/batches").join(folder));
        batch.ok()?.next().map(drop)
    });
    victim.signal(Signal::KILL);
    drop(victim);
    let left = in_batches(&far);
    assert_eq!(left.len(), 1, "a worker that is killed leaves its folder");
    let mut next = fleet.worker(&far);
    until("the folder of the next worker", || {
        let now = in_batches(&far);
        (now.len() == 1 && now != left).then_some(())
    });
    stop_at_once(&mut next);
    assert_eq!(next.said().code, Some(0));
    assert_eq!(in_batches(&far), [""; 0]);
    let said = run.said();
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = results(&home);
    assert_eq!(answers(&lines), expected(60));
    beside.signal(Signal::TERM);
    assert_eq!(beside.said().code, Some(0));
    let id = lines[0]["batch"].as_str().expect("an id");
    assert_eq!(in_batches(&home), [id]);
    for line in &lines {
        let thread = line["thread"].as_str().expect("a thread");
        let folder = home.work().join(".kd/batches").join(id).join("threads");
        assert!(folder.join(thread).join("thread.json").exists(), "{line}");
    }
}

#[test]
fn a_batch_that_starts_later_is_asked_beside_one_of_equal_priority() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(100);
    let other = like(&home, |_| {});
    let args = ["batch", "run", questions(&home, 100), "--concurrency", "0"];
    let large = fleet.start(&home, &[&args[..], &["-o", "r.jsonl"]].concat());
    let far = like(&home, |_| {});
    let worker = fleet.worker(&far);
    until("the first results", || {
        let text = fs::read_to_string(home.work().join("r.jsonl")).unwrap_or_default();
        (!text.is_empty()).then_some(())
    });
    fs::write(other.work().join("q.txt"), "Small?\nSmaller?\nSmallest?\n").expect("written");
    let said = fleet.run(&other, &args);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let listed = fleet.run(&home, &["batch", "list", "--json"]).json();
    let waiting = &listed["batches"][0]["counts"]["waiting"];
    assert!(
        waiting.as_u64() > Some(0),
        "the large one goes on: {listed:#}"
    );
    let cancelled = fleet.run(
        &home,
        &[
            "batch",
            "cancel",
            listed["batches"][0]["id"].as_str().expect("an id"),
        ],
    );
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.err);
    drop((large, worker));
}

#[test]
fn a_run_that_goes_on_appends_no_result_twice() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(50);
    let q = questions(&home, 60);
    let _worker = fleet.worker(&home);
    let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "0"];
    // Killed in the middle of a line, the last one may be cut.
    let whole = || {
        let text = fs::read_to_string(home.work().join("r.jsonl")).unwrap_or_default();
        let lines = text.split_inclusive('\n');
        let lines = lines.filter(|line| line.ends_with('\n'));
        let lines = lines.map(|line| serde_json::from_str(line).expect("a line"));
        lines.collect::<Vec<Value>>()
    };
    let mut before = 0;
    for _ in 0..2 {
        let run = fleet.start(&home, &args);
        until("more results", || {
            (whole().len() > before + 2).then_some(())
        });
        run.signal(Signal::KILL);
        drop(run);
        before = answers(&whole()).len();
    }
    assert!(before < 60, "the runs were killed early");
}

/// Returns a worker that asks nothing by itself.
fn connected(fleet: &Fleet) -> kd_sql::fleet::Fleet {
    let store = Store::parse(&fleet.url).expect("an address");
    let lease = Duration::from_secs(600);
    let mut other = kd_sql::fleet::Fleet::open(&store, lease).expect("it opens");
    let worker = NewWorker {
        name: "other".into(),
        kd: "1".into(),
        lease,
    };
    other.register(&worker).expect("registered");
    other
}

#[test]
fn a_run_waits_after_a_limit_for_what_is_still_asked() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(0);
    let q = questions(&home, 3);
    let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "0"];
    let mut run = fleet.start(&home, &args);
    let mut other = connected(&fleet);
    let id = until("the batch", || {
        Some(other.all().ok()?.0.first()?.about.id.clone())
    });
    let job = other.claim(&id, 1, true).expect("claimed").jobs.remove(0);
    other.limit(&id).expect("limited");
    let status = fleet.status(&home);
    assert_eq!(status["limited"], true, "{status:#}");
    // Long enough for some looks.
    std::thread::sleep(Duration::from_secs(2));
    assert!(!run.is_over(), "a question is still asked");
    let row = Row {
        status: Status::Answered,
        answer: Some("paid".into()),
        reason: None,
        ..Row::failed(Method::Ask, "", Timestamp::UNIX_EPOCH)
    };
    let ended = Ended::Finished {
        job,
        row: Box::new(row),
        keep: true,
        thread: Vec::new(),
    };
    assert_eq!(other.write(&id, &[ended]).expect("written"), [true]);
    let said = run.said();
    assert_eq!(said.code, Some(4), "{}", said.err);
    let lines = results(&home);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["answer"], "paid");
}

#[test]
fn an_erased_batch_leaves_the_file_of_a_run_as_it_is_and_damaged_batches_stop_no_command() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(0);
    let q = questions(&home, 3);
    // The second question is not asked before the test has ended.
    let args = ["batch", "run", q, "-o", "r.jsonl", "--rate", "1/h"];
    let run = fleet.start(&home, &args);
    until("the first result", || {
        let text = fs::read_to_string(home.work().join("r.jsonl")).unwrap_or_default();
        text.ends_with('\n').then_some(())
    });
    let damage = "INSERT INTO kd_batches (id, key, method, asks, parts, source, command, fresh, priority, attempts, pause, created)
        SELECT E'../\\x1b[2Jevil', key, method, asks, parts, source, command, fresh, priority, attempts, pause, created FROM kd_batches";
    fleet.database().batch_execute(damage).expect("damaged");
    let listed = fleet.run(&home, &["batch", "list"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert!(
        listed.err.contains("../evil is no id of a batch"),
        "{}",
        listed.err
    );
    let id = fleet.status(&home)["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let erased = fleet.run(&home, &["batch", "forget", &id, "--yes"]);
    assert_eq!(erased.code, Some(0), "{}", erased.err);
    let said = run.said();
    assert_ne!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("there is no batch"), "{}", said.err);
    assert_eq!(results(&home).len(), 1, "{}", said.err);
}

#[test]
fn a_second_signal_ends_a_run_whose_database_does_not_answer() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(0);
    let q = questions(&home, 3);
    let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "0"];
    let mut run = fleet.start(&home, &args);
    let mut database = fleet.database();
    until("the batch", || {
        let found = database.query("SELECT 1 FROM kd_batches", &[]);
        found.is_ok_and(|rows| !rows.is_empty()).then_some(())
    });
    until("the file", || {
        home.work().join("r.jsonl").exists().then_some(())
    });
    database
        .batch_execute("BEGIN; LOCK TABLE kd_batches, kd_results")
        .expect("locked");
    // Signals that come together count as one.
    until("the end", || {
        let is_over = run.is_over();
        if !is_over {
            run.signal(Signal::INT);
        }
        is_over.then_some(())
    });
    let said = run.said();
    let told = words(&said.err);
    assert!(told.contains("stopping; workers go on"), "{told}");
    assert!(told.contains("the database did not answer"), "{told}");
    assert_eq!(said.code, Some(1), "{told}");
}

#[test]
fn a_second_run_of_a_batch_changes_nothing_while_one_runs() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(0);
    let q = questions(&home, 3);
    let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "0"];
    let run = fleet.start(&home, &args);
    until("the file", || {
        home.work().join("r.jsonl").exists().then_some(())
    });
    let said = fleet.run(&home, &[&args[..], &["--max-calls", "1"]].concat());
    assert_ne!(said.code, Some(0), "{}", said.err);
    let told = words(&said.err);
    assert!(told.contains("is run by another process"), "{told}");
    let limits = "SELECT count(*) FROM kd_batches WHERE max_calls IS NULL";
    let kept: i64 = fleet
        .database()
        .query_one(limits, &[])
        .expect("read")
        .get(0);
    assert_eq!(kept, 1, "one batch, without a limit");
    run.signal(Signal::INT);
    let said = run.said();
    assert_eq!(said.code, Some(130), "{}", said.err);
}

#[test]
fn a_second_signal_ends_a_worker_whose_database_does_not_answer() {
    let Some(fleet) = Fleet::new() else { return };
    let home = echoing(50);
    let q = questions(&home, 200);
    let mut worker = fleet.worker(&home);
    let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "0"];
    let run = fleet.start(&home, &args);
    until("the first results", || {
        let text = fs::read_to_string(home.work().join("r.jsonl")).unwrap_or_default();
        (!text.is_empty()).then_some(())
    });
    let mut database = fleet.database();
    database
        .batch_execute("BEGIN; LOCK TABLE kd_workers")
        .expect("locked");
    // Signals that come together count as one.
    until("the end", || {
        let is_over = worker.is_over();
        if !is_over {
            worker.signal(Signal::TERM);
        }
        is_over.then_some(())
    });
    let said = worker.said();
    assert_eq!(said.code, Some(1), "{}", said.err);
    let told = words(&said.err);
    assert!(told.contains("the database did not answer"), "{told}");
    assert!(told.contains("when its lease is over"), "{told}");
    drop(run);
}

/// `KD_BATCH_SEEDS=50` disturbs more; `tests/batch/run --full` does.
#[test]
fn killed_and_stopped_workers_lose_and_double_nothing() {
    let seeds: u64 = std::env::var("KD_BATCH_SEEDS").map_or(1, |n| n.parse().expect("a number"));
    for seed in 1..=seeds {
        let Some(fleet) = Fleet::new() else { return };
        let home = echoing(40);
        let q = questions(&home, 60);
        let mut dice = Dice::new(seed);
        let homes: Vec<Home> = (0..3).map(|_| like(&home, |_| {})).collect();
        let mut workers: Vec<Running> = homes.iter().map(|home| fleet.worker(home)).collect();
        let mut run = fleet.start(
            &home,
            &[
                "batch",
                "run",
                q,
                "-o",
                "r.jsonl",
                "--concurrency",
                "0",
                "--attempts",
                "20",
            ],
        );
        for _ in 0..6 {
            std::thread::sleep(Duration::from_millis(50 + dice.below(150)));
            let at = dice.below(3) as usize;
            if dice.below(3) == 0 {
                workers[at].signal(Signal::STOP);
                std::thread::sleep(Duration::from_millis(1500));
                workers[at].signal(Signal::CONT);
            } else {
                workers[at] = fleet.worker(&homes[at]);
            }
        }
        until("the end", || run.is_over().then_some(()));
        let said = run.said();
        assert_eq!(said.code, Some(0), "seed {seed}: {}", said.err);
        assert_eq!(answers(&results(&home)), expected(60), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_for_the_whole_fleet() {
    let price = Price {
        input: 1_000_000,
        output: 5_000_000,
    };
    let server = Billing::start(3, price).await.expect("it listens");
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let Some(fleet) = Fleet::new() else { return };
        let agent = json!({"backend": "svc", "max_tokens": 100});
        let config = json!({
            "agents": {"m1": agent, "m2": agent},
            "council": {"members": ["m1", "m2"], "conclude": false},
            "providers": {"svc": {"base_url": url, "model": "model-1", "attempts": 1,
                "prices": {"model-1": {"input": 1.0, "output": 5.0}}}},
        });
        let homes: Vec<Home> = (0..3).map(|_| Home::new(&config)).collect();
        let q = questions(&homes[0], 60);
        let _workers: Vec<Running> = homes[1..].iter().map(|home| fleet.worker(home)).collect();
        let args = [
            "batch",
            "run",
            q,
            "-o",
            "r.jsonl",
            "--max-calls",
            "30",
            "--pause",
            "1s",
        ];
        let said = fleet.run(&homes[0], &args);
        assert_eq!(said.code, Some(4), "{}", said.err);
        let status = fleet.status(&homes[0]);
        assert_ne!(status["counts"]["waiting"], 0, "{status:#}");
        let more = [
            "batch",
            "run",
            q,
            "-o",
            "r.jsonl",
            "--max-calls",
            "9999",
            "--pause",
            "1s",
            "--attempts",
            "20",
        ];
        let said = fleet.run(&homes[0], &more);
        assert!(said.err.contains("goes on: "), "{}", said.err);
        assert_eq!(answers(&results(&homes[0])).len(), 60);
    })
    .await
    .expect("it ends");
}

/// Returns a text without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A machine with two members at a service.
fn at_service(url: &str) -> Value {
    let agent = json!({"backend": "svc", "max_tokens": 100});
    json!({
        "agents": {"ada": agent, "bob": agent},
        "council": {"members": ["ada", "bob"], "conclude": false},
        "providers": {"svc": {"base_url": url, "model": "model-1", "attempts": 1,
            "prices": {"model-1": {"input": 1.0, "output": 5.0}}}},
    })
}

/// A service that answers every request.
async fn answering(addr: std::net::SocketAddr) -> kd_fake::Fake {
    let reply = kd_fake::Reply::words(&["yes"]);
    let script = kd_fake::Script::always(kd_fake::Wire::OpenAi, reply);
    kd_fake::Fake::start_at(script, addr)
        .await
        .expect("it listens")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_one_worker_is_not_the_limit_of_the_fleet() {
    let service = answering(([127, 0, 0, 1], 0).into()).await;
    let config = at_service(&service.url());
    tokio::task::spawn_blocking(move || {
        let Some(fleet) = Fleet::new() else { return };
        let home = Home::new(&config);
        let small = like(&home, |config| {
            config["limits"] = json!({"calls": 5, "usd_per_day": 1.0});
        });
        let worker = fleet.worker(&small);
        let q = questions(&home, 12);
        let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "0"];
        let run = fleet.start(&home, &[&args[..], &["--max-calls", "1000"]].concat());
        until("the refusal", || {
            fleet.refuses(&home, "own configuration").then_some(())
        });
        let large = like(&home, |_| {});
        let other = fleet.worker(&large);
        let said = run.said();
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!(answers(&results(&home)).len(), 12);
        worker.signal(Signal::TERM);
        let said = worker.said().err;
        assert!(words(&said).contains("own configuration"), "{said}");
        assert!(!words(&said).contains("nothing is left"), "{said}");
        drop(other);
        // A limit of the batch ends it for all, though the worker has limits too.
        let roomy = like(&home, |config| {
            config["limits"] = json!({"usd_per_day": 1000.0, "calls": 900});
        });
        let worker = fleet.worker(&roomy);
        let said = fleet.run(
            &home,
            &[&args[..], &["--max-calls", "7", "--fresh"]].concat(),
        );
        assert_eq!(said.code, Some(4), "{}", said.err);
        worker.signal(Signal::TERM);
        let said = worker.said().err;
        assert!(words(&said).contains("a limit of batch-"), "{said}");
    })
    .await
    .expect("it ends");
    drop(service);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_looks_again_at_a_batch_that_it_could_not_serve_for_a_moment() {
    // The port is free once the listener is dropped: connections are refused.
    let addr = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        listener.local_addr().expect("an address")
    };
    let config = at_service(&format!("http://{addr}/v1"));
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        let Some(fleet) = Fleet::new() else { return };
        let home = Home::new(&config);
        let machine = like(&home, |_| {});
        let worker = fleet.worker(&machine);
        let q = questions(&home, 4);
        let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "0"];
        let run = fleet.start(&home, &args);
        until("the refusal", || {
            fleet.refuses(&home, "cannot connect").then_some(())
        });
        let service = runtime.block_on(answering(addr));
        let said = run.said();
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!(answers(&results(&home)).len(), 4);
        worker.signal(Signal::TERM);
        assert_eq!(worker.said().code, Some(0));
        drop(service);
    })
    .await
    .expect("it ends");
}

/// A service that never answers the first requests, and refuses all others.
async fn refusing(silent: usize) -> kd_fake::Fake {
    let seen = std::sync::atomic::AtomicUsize::new(0);
    let choose = move |_: &kd_fake::Seen, _| {
        let reply = match seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < silent {
            true => kd_fake::Reply::paced(1, Duration::from_secs(3600)),
            false => kd_fake::Reply::status(400),
        };
        Some((kd_fake::Wire::OpenAi, reply))
    };
    kd_fake::Fake::choosing(([127, 0, 0, 1], 0).into(), choose)
        .await
        .expect("it listens")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_failures_ends_without_another_worker() {
    let service = refusing(0).await;
    tokio::task::spawn_blocking(move || {
        let Some(fleet) = Fleet::new() else { return };
        let home = Home::new(&at_service(&service.url()));
        let q = questions(&home, 3);
        let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "2"];
        let said = fleet.run(&home, &args);
        assert_eq!(said.code, Some(6), "{}", said.err);
        let failed = results(&home);
        assert_eq!(failed.len(), 3);
        assert!(failed.iter().all(|line| line["status"] == "failed"));
        assert_eq!(fleet.status(&home)["counts"]["failed"], 3);
        assert_eq!(service.seen().len(), 6, "each member was asked once");
    })
    .await
    .expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_last_chance_that_fails_is_written_and_the_next_batch_is_served() {
    let service = refusing(2).await;
    tokio::task::spawn_blocking(move || {
        let Some(fleet) = Fleet::new() else { return };
        let home = Home::new(&at_service(&service.url()));
        let q = questions(&home, 1);
        let args = ["batch", "run", q, "-o", "r.jsonl", "--concurrency", "0"];
        let run = fleet.start(&home, &[&args[..], &["--attempts", "2"]].concat());
        let (first, second) = (like(&home, |_| {}), like(&home, |_| {}));
        let victim = fleet.worker(&first);
        until("both requests", || {
            (service.seen().len() == 2).then_some(())
        });
        victim.signal(Signal::KILL);
        let worker = fleet.worker(&second);
        let said = run.said();
        assert_eq!(said.code, Some(6), "{}", said.err);
        let failed = results(&home);
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0]["attempts"], 2, "{:#}", failed[0]);
        let said = fleet.run(&home, &[&args[..], &["--fresh"]].concat());
        assert_eq!(said.code, Some(6), "{}", said.err);
        worker.signal(Signal::TERM);
        assert_eq!(worker.said().code, Some(0));
    })
    .await
    .expect("it ends");
}

#[test]
fn a_plan_travels_to_workers_that_do_not_have_it() {
    let Some(fleet) = Fleet::new() else { return };
    let reply = json!({"reason": "r", "answer": "yes", "confidence": 0.8, "choice": "A", "ranking": ["A"],
        "recommendation": "Do it.", "consensus": "c", "support": "s", "dissent": "none", "cites": ["A"]});
    let script = json!({"runs": [[{"text": reply.to_string()}]]});
    let home = like(
        &Home::scripted(&[
            ("ada", script.clone()),
            ("bob", script.clone()),
            ("cy", script),
        ]),
        |_| {},
    );
    let far = like(&home, |_| {});
    let worker = fleet.worker(&far);
    let q = questions(&home, 2);
    let member = |name: &str| json!({"model": name, "role": "skeptic"});
    let plan =
        json!({"council": {"members": [member("ada"), member("bob"), member("cy")]}, "rounds": 1});
    fs::write(home.work().join("plan.json"), plan.to_string()).expect("written");
    let run = [
        "batch",
        "run",
        q,
        "--as",
        "plan.json",
        "-o",
        "r.jsonl",
        "--concurrency",
        "0",
    ];
    let said = fleet.run(&home, &run);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines = results(&home);
    assert!(
        lines.iter().all(|line| line["verdict"]["winner"] == "yes"),
        "{lines:#?}"
    );
    drop(worker);
    // A row that another program wrote is refused, with the reason.
    fleet
        .database()
        .batch_execute("UPDATE kd_batches SET asks = replace(asks, '\"model\":\"bob\"', '\"model\":\"gpt-5-pro\"'); UPDATE kd_jobs SET state = 0")
        .expect("written");
    let worker = fleet.worker(&far);
    until("the refusal", || {
        fleet.refuses(&home, "gpt-5-pro").then_some(())
    });
    drop(worker);
    // The batch can be erased, with its threads; what was fetched is named.
    let id = lines[0]["batch"].as_str().expect("an id");
    let asked = fleet.run(&home, &["batch", "forget", id]);
    assert_eq!(asked.code, Some(2), "{}", asked.err);
    assert!(asked.err.contains("nothing was erased"), "{}", asked.err);
    let dry = fleet.run(
        &home,
        &["batch", "forget", id, "--question", "1", "--dry-run"],
    );
    assert!(
        dry.out.contains("would erase: 1 question of"),
        "{}{}",
        dry.out,
        dry.err
    );
    let said = fleet.run(&home, &["batch", "forget", id, "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("erased: 2 questions of"), "{}", said.out);
    assert!(said.err.contains("kd forget THREAD"), "{}", said.err);
    assert_eq!(
        fleet.run(&home, &["batch", "list", "--json"]).json()["batches"],
        json!([])
    );
    let own = home.run(&["batch", "forget", id, "--yes"]);
    assert!(own.err.contains("KD_BATCH_STORE"), "{}", own.err);
    let thread = lines[0]["thread"].as_str().expect("a thread");
    let local = home.run(&["forget", thread, "--dry-run"]);
    assert!(
        local.out.contains("kd batch forget"),
        "{}{}",
        local.out,
        local.err
    );
}
