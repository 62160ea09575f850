//! The JSON output of commands matches `docs/schemas`, field by field.
//!
//! Each row of `PRINTED` has outputs of the real program with scripted members. Every object of a schema is closed, so
//! that an undocumented field fails here.

use crate::support;

use kd_core::formats::{MARK, PRINTED, Printed};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use support::{Home, git};

const QUESTION: &str = "Is it safe?";

/// Outputs by schema name.
#[derive(Default)]
struct Outputs(BTreeMap<&'static str, Vec<Value>>);

impl Outputs {
    /// Runs a command and keeps its output.
    fn add(&mut self, schema: &'static str, home: &Home, args: &[&str]) -> Value {
        let said = home.run(args);
        let value = serde_json::from_str(&said.out)
            .unwrap_or_else(|e| panic!("{args:?}: {e}: {}{}", said.out, said.err));
        self.keep(schema, value)
    }

    fn keep(&mut self, schema: &'static str, value: Value) -> Value {
        self.0.entry(schema).or_default().push(value.clone());
        value
    }
}

/// A reply that fits every question of a deliberation and of a review.
fn script(answer: &str) -> Value {
    let reply = json!({
        "reason": format!("it is {answer}"), "answer": answer, "confidence": 0.8, "choice": "A",
        "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
        "ranking": ["A", "B"], "recommendation": "Do it.", "consensus": "All like it.", "support": "Reasons.",
        "dissent": "none", "cites": ["A"],
    });
    says(&reply.to_string())
}

fn says(text: &str) -> Value {
    let usage = json!({"finish": {"usage": {"input_tokens": 10, "output_tokens": 5}}});
    json!({"runs": [[{"text": text}, usage]]})
}

fn council() -> Home {
    let home = Home::scripted(&[
        ("ann", script("yes")),
        ("bob", script("no")),
        ("cyd", script("yes")),
    ]);
    let plan = json!({
        "council": {
            "size": 4,
            "members": [
                {"model": "ann", "role": "opinion-giver", "persona": "Deep Reasoner"},
                {"model": "bob", "role": "opinion-giver"},
                {"model": "cyd", "role": "skeptic", "temperature": 0.5},
                {"model": "ann", "role": "synthesizer"},
            ],
            "voting": {"method": "majority"},
        },
        "meta": {"planningMode": "static", "complexity": "simple"},
    });
    fs::write(home.work().join("plan.json"), plan.to_string()).expect("written");
    home
}

/// Deliberations, and commands that use their records.
fn decisions(out: &mut Outputs) {
    let home = council();
    out.add(
        "deliberate",
        &home,
        &["deliberate", "--plan", "plan.json", "--json", QUESTION],
    );
    out.add(
        "deliberate",
        &home,
        &["deliberate", "-m", "ann,bob,cyd", "--json", "How many?"],
    );
    out.add("deliberate", &home, &["why", "--export", "json"]);
    let why = out.add("why", &home, &["why", "--json"]);
    let sentences = why["explanation"].as_array().expect("sentences");
    assert!(sentences.len() > 3 && why["heading"].is_string(), "{why}");
    for how in [&["--plan", "plan.json"][..], &["-m", "ann,bob,cyd"]] {
        let dry = ["deliberate", "--dry-run", "--json"];
        out.add(
            "deliberate-plan",
            &home,
            &[&dry[..], how, &[QUESTION]].concat(),
        );
    }
    out.add("replay", &home, &["replay", "--json"]);
    out.add(
        "deliberate",
        &home,
        &["deliberate", "--plan", "plan.json", "--json", QUESTION],
    );
    for change in [
        ["--without", "bob"].as_slice(),
        &["--rule", "schulze", "--seed", "4"],
        &["--weights", "ann=2", "--all-rules"],
    ] {
        out.add("what-if", &home, &[&["replay", "--json"], change].concat());
    }
    let mark = ["mark", "right", "--json"];
    out.add("mark", &home, &mark);
    let again = out.add("mark", &home, &["mark", "wrong", "--json"]);
    assert!(again["before"].is_object());
    out.add("marks", &home, &["marks", "--json"]);
    let id = again["mark"]["thread"].as_str().expect("a thread");
    let gold = format!("thread,gold\n{id},a\nzzzz,a\n");
    fs::write(home.work().join("gold.csv"), gold).expect("written");
    out.add(
        "mark-gold",
        &home,
        &["mark", "--gold", "gold.csv", "--json"],
    );
    out.add("marks-next", &home, &["marks", "next", "--json"]);
    let line = home.run(&["marks", "export"]).out;
    out.keep("mark-line", serde_json::from_str(&line).expect("one mark"));
    // With marks there is a promise, or the reason why not, which is recorded.
    let promised = out.add(
        "deliberate",
        &home,
        &["deliberate", "--plan", "plan.json", "--json", QUESTION],
    );
    assert!(promised["warranty"].is_object(), "{promised}");
    let whole = out.add("deliberate", &home, &["why", "--export", "json"]);
    assert!(whole["promised_then"].is_object(), "{whole}");
    let shown = out.add("show", &home, &["show", "--json"]);
    assert!(shown["promised_then"].is_array(), "{shown}");
    out.add("export", &home, &["export", "--format", "json"]);
    let printed = home.run(&["deliberate", "--plan", "plan.json", "--jsonl", QUESTION]);
    let line = printed
        .out
        .lines()
        .find(|line| line.contains("\"promised\""));
    let line = serde_json::from_str(line.expect("a promise")).expect("JSON");
    out.keep("record", line);
    let question = json!({"id": "q", "question": QUESTION}).to_string();
    fs::write(home.work().join("one.jsonl"), question).expect("written");
    let batch = home.run(&[
        "batch",
        "run",
        "one.jsonl",
        "--as",
        "deliberate",
        "-o",
        "one.out",
    ]);
    assert_eq!(batch.code, Some(0), "{}", batch.err);
    let known = "id,question,gold\nq,Is it safe?,yes\nr,Is it sound?,no\n";
    fs::write(home.work().join("known.csv"), known).expect("written");
    let live = [
        "eval",
        "--live",
        "known.csv",
        "--members",
        "ann,bob,cyd",
        "--json",
    ];
    out.add(
        "eval-live-estimate",
        &home,
        &[&live[..], &["--dry-run"]].concat(),
    );
    let consent = ["--yes", "--max-calls", "100"];
    out.add("eval-live", &home, &[&live[..], &consent].concat());
    let row = fs::read_to_string(home.work().join("one.out")).expect("read");
    out.keep("batch-result", serde_json::from_str(&row).expect("a line"));
    out.add("fork", &home, &["fork", "--stage", "review", "--json"]);
    // From an older version, whose replies are parsed differently today; and with a changed text.
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded/council-2e98");
    let thread = home.work().join(".kd/branches/main/threads/council-2e98");
    fs::create_dir_all(&thread).expect("made");
    for file in fs::read_dir(recorded).expect("read") {
        let file = file.expect("an entry");
        fs::copy(file.path(), thread.join(file.file_name())).expect("copied");
    }
    let again = out.add("replay", &home, &["replay", "--json", "2e98"]);
    assert_ne!(again["read_otherwise_today"], json!([]));
    let log = thread.join(".kd-events.jsonl");
    let text = fs::read_to_string(&log).expect("read");
    fs::write(&log, text.replace("Recommendation", "Suggestion")).expect("written");
    let again = out.add("replay", &home, &["replay", "--json", "2e98"]);
    assert!(again["difference"].is_object());
    out.add("deliberate", &home, &["why", "--export", "json", "2e98"]);
}

/// The comparison of shared questions, by two councils.
fn shares(out: &mut Outputs) {
    let home = Home::scripted(&["ann", "bob", "cyd"].map(|name| (name, script("yes"))));
    let text = fs::read_to_string(home.config_file()).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["deliberation"] = json!({"protocol": "vote", "answer": "yes-no"});
    config["eval"] = json!({"share": 1});
    fs::write(home.config_file(), config.to_string()).expect("written");
    let state = home.path().join(".local/state/kd");
    fs::create_dir_all(&state).expect("made");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).expect("set");
    fs::write(state.join("eval-share"), "yes 1 9\n").expect("written");
    for members in ["ann,bob,cyd", "ann,bob"] {
        let said = home.run(&["deliberate", "-m", members, QUESTION]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let marked = home.run(&["mark", "answer: yes"]);
        assert_eq!(marked.code, Some(0), "{}", marked.err);
    }
    let found = out.add(
        "eval-live",
        &home,
        &["eval", "--live", "--report", "--json"],
    );
    assert_eq!(found["earlier_councils"].as_array().map(Vec::len), Some(1));
}

/// Threads: shown, forked, sealed, forgotten, checked.
fn threads(out: &mut Outputs) {
    let home = Home::scripted(&[
        ("ann", says("Ann says so.")),
        (
            "bob",
            json!({"runs": [[{"fail": {"kind": "refused", "message": "no"}}]]}),
        ),
    ]);
    out.add("ask", &home, &["ask", "--json", "--private", "First?"]);
    out.add("ask", &home, &["ask", "--json", "-c", "Second?"]);
    out.add("ask", &home, &["council", "watch", "--json"]);
    out.add("ask", &home, &["council", "retry", "--json"]);
    out.add("show", &home, &["show", "--json"]);
    out.add("show", &home, &["last", "--json"]);
    out.add("status", &home, &["council", "status", "--json"]);
    out.add("list", &home, &["council", "list", "--json"]);
    out.add("export", &home, &["export", "--format", "json"]);
    let first = out.add("list", &home, &["council", "list", "--json", "--all"])[0]["id"].clone();
    let first = first.as_str().expect("an id").to_owned();
    out.add("fork", &home, &["fork", "--before", "2", "--json", &first]);
    let fork = out.add("fork", &home, &["fork", "--stay", "--json", &first]);
    let fork = fork["thread_id"].as_str().expect("an id").to_owned();
    out.add("show", &home, &["show", "--all", "--json", &fork]);
    let export = out.add("export", &home, &["export", "--format", "json", &fork]);
    let same = out.add("export", &home, &["export", "--json", &fork]);
    assert_eq!(export, same);
    let tree = ["export", "--tree", "--format", "json", &first];
    out.add("export", &home, &tree);
    out.add("list", &home, &["council", "list", "--json", "--all"]);
    let seal = ["seal", "--sign", "--json", &fork, "-o", "t.json"];
    out.add("seal", &home, &seal);
    out.add("seal", &home, &["verify", "t.json", "--json"]);
    let erase = [
        "seal",
        "--from",
        "t.json",
        "--hash-only",
        "--json",
        "-o",
        "h.json",
    ];
    out.add("seal", &home, &erase);
    let imported = out.add("import", &home, &["import", "t.json", "--json"]);
    let imported = imported["thread_id"].as_str().expect("an id");
    out.add("show", &home, &["show", "--json", imported]);
    out.add("export", &home, &["export", "--format", "json", imported]);
    out.add("list", &home, &["council", "list", "--json"]);
    out.add("seal", &home, &["seal", "--json", &first, "-o", "u.json"]);
    out.add("import", &home, &["import", "u.json", "--json"]);
    let forget = ["forget", &first, "--message", "1", "--json", "--yes"];
    out.add("forget", &home, &forget);
    out.add("show", &home, &["show", "--all", "--json", &first]);
    out.add("forget", &home, &["forget", &fork, "--dry-run", "--json"]);
    let folder = home.work().join(".kd/branches/main/threads").join(&first);
    fs::write(folder.join("0009-eve.md"), "no header").expect("written");
    fs::write(folder.join("notes.txt"), "mine").expect("written");
    out.add("fsck", &home, &["fsck", "--json"]);
    out.add("fsck", &home, &["fsck", "--json", "--repair"]);
    out.add("doctor", &home, &["doctor", "--json"]);
    out.add("error", &home, &["show", "--json", "nothing"]);
    out.add("error", &home, &["ask", "--json", "--to", "nobody", "?"]);
    out.add(
        "background",
        &home,
        &["council", "ask", "--async", "--json", "Third?"],
    );
}

/// Debates.
fn debates(out: &mut Outputs) {
    let home = Home::scripted(&[
        ("ann", says("It is so.<council>Is it?</council>")),
        ("bob", says("Yes.<council>It is.</council>")),
    ]);
    let think = ["think", "--json", "--fast", "ann", "--rigorous", "bob", "Q"];
    out.add("ask", &home, &think);
    out.add("show", &home, &["show", "--council", "--json"]);
}

/// Setting up: members, consent, settings. Errors are JSON too.
fn set_up(out: &mut Outputs) {
    let home = Home::new(&json!({}));
    let nobody = out.add("error", &home, &["init", "--json"]);
    assert_eq!(nobody["error"]["kind"], "no_seat", "{nobody}");
    let mut init = home.kd(&["init", "--json"]);
    init.env("OPENAI_API_KEY", "sk-x");
    let asks = support::Said::of(init.output().expect("it runs"));
    let asks = out.keep("error", serde_json::from_str(&asks.out).expect("JSON"));
    assert_eq!(asks["error"]["kind"], "usage", "{asks}");
    let mut init = home.kd(&["init", "--json", "--members", "openai", "--user", "--force"]);
    init.env("OPENAI_API_KEY", "sk-x");
    let done = support::Said::of(init.output().expect("it runs"));
    let done = out.keep("init", serde_json::from_str(&done.out).expect("JSON"));
    assert_eq!(done["layer"], "user", "{done}");
    assert!(done["members"][0]["charge"].is_string(), "{done}");
    let check = out.add("config-check", &home, &["config", "check", "--json"]);
    assert!(check["cannot_answer"][0]["hint"].is_string(), "{check}");
    out.add(
        "error",
        &home,
        &["config", "check", "--json", "nothing.json"],
    );
    let paths = out.add("config-path", &home, &["config", "path", "--json"]);
    assert_eq!(paths[0]["layer"], "user", "{paths}");

    let wants = json!({"council": {"members": ["e"], "preamble": "obey"},
        "agents": {"e": {"backend": "command", "dialect": "codex", "command": ["./run"]}}});
    fs::create_dir_all(home.work().join(".kd")).expect("made");
    fs::write(home.work().join(".kd/config.json"), wants.to_string()).expect("written");
    fs::write(home.work().join(".mcp.json"), "{}").expect("written");
    let listed = out.add("trust", &home, &["trust", "--json"]);
    assert_eq!(listed["trusted"], false, "{listed}");
    assert_eq!(listed["settings"][0]["allowed"], false, "{listed}");
    assert_eq!(listed["programs"]["files"][0], ".mcp.json", "{listed}");
    assert!(
        listed["texts"][0]
            .as_str()
            .is_some_and(|t| t.contains("preamble"))
    );
    let none = out.add("trust-list", &home, &["trust", "--list", "--json"]);
    assert_eq!(none["folders"], json!([]), "nothing is allowed by a look");
    let given = out.add("trust", &home, &["trust", "--json", "--yes"]);
    assert_eq!(given["trusted"], true, "{given}");
    let kept = out.add("trust", &home, &["trust", "--json"]);
    assert_eq!(
        kept, given,
        "the output of the change equals the settings in force"
    );
    let all = out.add("trust-list", &home, &["trust", "--list", "--json"]);
    assert_eq!(all["folders"][0]["programs_trusted"], true, "{all}");
    for revoked in [true, false] {
        let told = out.add("trust-revoke", &home, &["trust", "--revoke", "--json"]);
        assert_eq!(told["revoked"], revoked, "{told}");
    }
    let again = out.add("trust", &home, &["trust", "--json"]);
    assert_eq!(again["trusted"], false, "{again}");
    for args in [&["why", "--json"][..], &["export", "--json"]] {
        let said = home.run(args);
        assert!(said.json()["error"]["hint"].is_string(), "{}", said.out);
        assert_eq!(said.err, "");
    }
}

/// The measurement of a model, which these tests do not have: a test of `kd model bench` checks the real output.
fn measurement(out: &mut Outputs) {
    let row = |members| json!({"members": members, "tokens": 64, "tokens_per_second": 32.5, "first_word_seconds": 0.2, "seconds": 2.0});
    out.keep(
        "model-bench",
        json!({"v": 1, "alone": row(1), "together": row(3), "gain": 1.5}),
    );
}

/// Reviews.
fn reviews(out: &mut Outputs) {
    let quote = "    list.iter().sum::<u32>() / list.len() as u32";
    let finding = |quote: &str| {
        let found = json!({
            "file": "mean.rs", "lines": {"first": 2, "last": 2}, "quote": quote, "claim": "Divides by zero.",
            "severity": "major", "evidence": "An empty list reaches it.", "change": "check it first",
        });
        let votes = json!([{"id": "A", "vote": "real"}, {"id": "B", "vote": "real"}]);
        says(&json!({"findings": [found], "votes": votes, "pairs": []}).to_string())
    };
    let home = Home::scripted(&[
        ("ann", finding(quote)),
        ("bob", finding(quote)),
        ("cyd", finding("let x = unsafe { *p };")),
        ("dan", says("I cannot.")),
        ("eve", says("{\"findings\": []}")),
    ]);
    let file = home.work().join("mean.rs");
    let body = format!("fn mean(list: &[u32]) -> u32 {{\n{quote}\n}}\n");
    git(&home, &["init", "-q"]);
    fs::write(&file, body.replace(quote, "    0")).expect("written");
    git(&home, &["add", "mean.rs"]);
    git(&home, &["commit", "-qm", "one"]);
    git(&home, &["checkout", "-qb", "topic"]);
    fs::write(&file, body).expect("written");
    fs::write(home.work().join("mean.png"), b"\0\x01\x02\xff").expect("written");
    git(&home, &["add", "mean.png"]);
    git(&home, &["commit", "-qam", "two"]);
    let report = out.add("review", &home, &["review", "--format", "json"]);
    assert_eq!(
        report["report"]["findings"].as_array().map(Vec::len),
        Some(1),
        "{report:#}"
    );
    out.add("review", &home, &["review", "show", "--format", "json"]);
    fs::write(
        home.work().join("x.diff"),
        "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\nBinary files a/y.py and b/y.py differ\n",
    )
    .expect("written");
    let gate = [
        "review",
        "--pr",
        "x.diff",
        "--fail-on",
        "nit",
        "--format",
        "json",
    ];
    let gate = out.add("review", &home, &gate);
    assert_eq!(gate["fail_on"]["unseen"], json!(["y.py"]));
    let dry = ["review", "--dry-run", "--format", "json"];
    out.add("review-estimate", &home, &dry);
    let finding = report["report"]["findings"][0]["id"]
        .as_str()
        .expect("an id");
    let thread = report["thread"].as_str().expect("an id");
    let marked = home.run(&["review", "mark", finding, "accepted", "--thread", thread]);
    assert_eq!(marked.code, Some(0), "{}", marked.err);
    out.add("review-marks", &home, &["review", "marks", "--json"]);
    let dismissed = home.run(&["review", "mark", finding, "dismissed", "--thread", thread]);
    assert_eq!(dismissed.code, Some(0), "{}", dismissed.err);
    let shown = ["review", "show", thread, "--format", "json"];
    let shown = out.add("review", &home, &shown);
    assert_eq!(shown["dismissed"], json!([finding]));
    out.add("ask", &home, &["council", "review", "--json"]);
}

/// Votes, settings, models, memory, the forum.
fn others(out: &mut Outputs) {
    let home = council();
    let polls =
        json!({"candidates": ["A", "B", "C"], "ballots": [["A", "B"], ["A", "C"], ["B", "A"], []]});
    let bad = json!({"candidates": ["A", "B"], "ballots": [["A"], ["B"], ["A"]], "winners": {"plurality": ["B"], "sortition": ["A"]}});
    fs::write(home.work().join("polls.jsonl"), format!("{polls}\n")).expect("written");
    fs::write(home.work().join("bad.jsonl"), format!("{bad}\n")).expect("written");
    for rule in ["plurality", "irv", "schulze", "borda"] {
        out.add(
            "tally",
            &home,
            &["vote", "tally", "-r", rule, "--json", "polls.jsonl"],
        );
    }
    let checked = out.add(
        "vote-check",
        &home,
        &["vote", "check", "--json", "bad.jsonl"],
    );
    assert_ne!(checked["differences"], json!([]));
    out.add("rules", &home, &["vote", "rules", "--json"]);
    out.add("settings", &home, &["config", "show", "--json"]);
    out.add("settings", &home, &["config", "show", "--json", "--origin"]);
    out.add("models", &home, &["model", "list", "--json"]);
    out.add("prices", &home, &["prices", "--json"]);
    out.add("cost", &home, &["cost", "--json"]);
    let asked = home.run(&["ask", "hi"]);
    assert_eq!(asked.code, Some(0), "{}", asked.err);
    for by in ["member", "model", "service", "project", "day"] {
        let cost = out.add("cost", &home, &["cost", "--json", "--by", by]);
        assert!(!cost["by"].as_array().is_none_or(Vec::is_empty), "{cost}");
    }
    let kept = json!({"preferences": {"tone": "short"}, "sessions": [{"thread": "council-1", "question": "q", "answer": "a", "message": 2}]});
    fs::write(home.work().join(".kd/memory.json"), kept.to_string()).expect("written");
    out.add("memory", &home, &["memory", "show", "--json"]);
    for post in [["Bees", "They dance."], ["Ants", "They dig."]] {
        let said = home.run(&[["forum", "post"].as_slice(), &post, &["--as", "eve"]].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let said = home.run(&[
        "forum", "reply", "1", "Do they?", "--as", "eve", "--quote", "1",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    out.add("forum-threads", &home, &["forum", "read", "--json"]);
    out.add("forum-thread", &home, &["forum", "read", "1", "--json"]);
    out.add("forum-hits", &home, &["forum", "search", "dance", "--json"]);
    out.add("forum-members", &home, &["forum", "members", "--json"]);
    out.add(
        "forum-members",
        &home,
        &["forum", "members", "eve", "--json"],
    );
    out.add("forum-rules", &home, &["forum", "rules", "--json"]);
    let forums = out.add("forum-list", &home, &["forum", "list", "--json"]);
    assert_eq!(forums["forums"][0]["threads"], 2, "{forums}");
    forum_records(out, &home);
    assert_eq!(home.run(&["forum", "close", "1", "Enough."]).code, Some(0));
    let log = home.run(&["forum", "log", "--jsonl"]).out;
    assert!(!log.is_empty());
    for line in log.lines().map(str::to_owned).chain(log_lines()) {
        let line: Value = serde_json::from_str(&line).expect("one line");
        out.keep("forum-log", line.clone());
        out.keep("forum-watch", line);
    }
    let thread = home.run(&["forum", "read", "1", "--json"]).json();
    for post in thread["posts"].as_array().expect("posts") {
        out.keep("forum-watch", post.clone());
    }
    out.keep("forum-watch", watched_post(&home));
}

/// Returns the line that `kd forum watch` prints for a post.
fn watched_post(home: &Home) -> Value {
    let mut child = home
        .kd(&["forum", "watch", "--jsonl"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let (send, got) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        if let Some(Ok(line)) = lines.next() {
            let _ = send.send(line);
        }
    });
    // It prints what is posted after its start, so post until it has seen one.
    let line = (0..100).find_map(|_| {
        assert_eq!(home.run(&["forum", "post", "Ants", "March."]).code, Some(0));
        got.recv_timeout(Duration::from_millis(500)).ok()
    });
    child.kill().and_then(|()| child.wait()).expect("it ends");
    reader.join().expect("it ends");
    serde_json::from_str(&line.expect("a post")).expect("one line")
}

/// Audits, fairness tables, motions, erased posts.
fn forum_records(out: &mut Outputs, home: &Home) {
    let run = |args: &[&str]| {
        let said = home.run(args);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        said.out
    };
    run(&["forum", "role", "king", "voter", "takes part"]);
    run(&[
        "forum",
        "propose",
        "text",
        "Greet all",
        "--reason",
        "they ask twice",
    ]);
    let set = [
        "forum",
        "propose",
        "set",
        "skip_probability",
        "0.1",
        "--reason",
        "so",
        "--as",
        "bea",
    ];
    run(&set);
    run(&["forum", "vote", "1", "yes", "--reason", "so"]);
    out.add("forum-motions", home, &["forum", "motions", "--json"]);
    out.add("forum-motion", home, &["forum", "motions", "1", "--json"]);
    let agents = home.work().join(".kd/forum/agents");
    fs::create_dir_all(&agents).expect("made");
    let skip =
        json!({"runs": [[{"text": json!({"tool": "skip", "reason": "tired"}).to_string()}]]});
    let model = home.path().join("bee.json");
    fs::write(&model, skip.to_string()).expect("written");
    let persona = format!(
        "name: bee\nbackend: scripted\nmodel: {}\nsystem_prompt: You love bees.\npreferences:\n  min_delay: 0\n  max_delay: 1\n",
        model.display()
    );
    fs::write(agents.join("bee.yaml"), persona).expect("written");
    home.trust();
    out.add("forum-agents", home, &["forum", "agents", "--json"]);
    let cycles = [
        "forum",
        "run-cycle",
        "--virtual",
        "--cycles",
        "3",
        "--agents",
        "3",
    ];
    out.add("forum-cycles", home, &[&cycles[..], &["--json"]].concat());
    out.add("forum-fairness", home, &["forum", "fairness", "--json"]);
    let forget = ["forum", "forget", "2", "--json"];
    out.add(
        "forum-forget",
        home,
        &[&forget[..], &["--dry-run"]].concat(),
    );
    out.add("forum-forget", home, &[&forget[..], &["--yes"]].concat());
    run(&["forum", "run-once", "--seed", "3"]);
    for args in [
        &["forum", "audit", "--json"][..],
        &["forum", "audit", "1", "--json"],
    ] {
        let lines = run(args);
        assert!(!lines.is_empty());
        for line in lines.lines() {
            out.keep("forum-audit", serde_json::from_str(line).expect("JSON"));
        }
    }
}

/// Evaluations of recorded answers and of simulated members.
fn evaluations(out: &mut Outputs) {
    let home = council();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kd-eval/tests/data/replay");
    let file = |name: &str| recorded.join(name).display().to_string();
    let (answers, debates) = (
        file("zeroeval_gsm_44models.csv"),
        file("dylan_math_debate_answers.jsonl"),
    );
    let members = "gpt-4o-mini-2024-07-18,claude-3-5-haiku-20241022,gemma-2-9b-it";
    let few = "id,gold,ada,bob,cost:ada,cost:bob,confidence:ada\n1,A,A,B,0.2,0.1,0.9\n2,B,B,B,0.2,0.1,0.8\n3,A,C,A,0.2,0.1,0.4\n";
    fs::write(home.work().join("few.csv"), few).expect("written");
    let spec = json!({"questions": 200, "members": [{"accuracy": 0.7, "count": 3}], "protocols": ["vote", "debate"]});
    fs::write(home.work().join("spec.json"), spec.to_string()).expect("written");
    let replay = ["eval", "--json", "--replay"];
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kd-records/tests/data");
    let results = records.join("promptfoo/results.json").display().to_string();
    for (schema, args) in [
        (
            "eval-replay",
            [&replay[..], &[results.as_str()]].concat().as_slice(),
        ),
        ("eval-list", ["eval", "--list", "--json"].as_slice()),
        (
            "eval-simulate",
            &["eval", "--simulate", "spec.json", "--json"],
        ),
        (
            "eval-replay",
            &[&replay[..], &["few.csv", "--rule", "cascade,confidence"]].concat(),
        ),
        (
            "eval-replay",
            &[
                &replay[..],
                &[
                    &debates,
                    "--mode",
                    "CoT",
                    "--rule",
                    "first-round,trajectory",
                ],
            ]
            .concat(),
        ),
        (
            "eval-replay",
            &[
                &replay[..],
                &[
                    &answers,
                    "--members",
                    members,
                    "--rule",
                    "plurality,auto,oracle",
                ],
            ]
            .concat(),
        ),
        (
            "eval-councils",
            &[&replay[..], &[&answers, "--councils", "2", "--size", "3"]].concat(),
        ),
        (
            "eval-promises",
            &[
                &replay[..],
                &[
                    &answers,
                    "--members",
                    members,
                    "--promise",
                    "0.9",
                    "--marks",
                    "100",
                    "--splits",
                    "2",
                ],
            ]
            .concat(),
        ),
        (
            "eval-drift",
            &[
                &replay[..],
                &[
                    &answers,
                    "--members",
                    members,
                    "--promise",
                    "0.9",
                    "--marks",
                    "100",
                    "--splits",
                    "2",
                    "--drift",
                ],
            ]
            .concat(),
        ),
    ] {
        out.add(schema, &home, args);
    }
}

/// Returns a line of each event that a forum logs.
fn log_lines() -> Vec<String> {
    use kd_forum::logline::{LogEvent as E, LogLine};
    let text = || "x".to_owned();
    let (agent, why, list) = (text(), text(), || vec![text()]);
    let (cycle, server) = (7, text());
    let events = [
        E::CycleStarted {
            cycle,
            seed: Some(u64::MAX),
            commitment: Some(text()),
            next: Some(text()),
        },
        E::CycleStarted {
            cycle,
            seed: None,
            commitment: None,
            next: None,
        },
        E::CycleVoided {
            cycle,
            why: why.clone(),
        },
        E::CycleResumed {
            cycle,
            left: list(),
        },
        E::OrderDrawn {
            scheduler: text(),
            order: list(),
        },
        E::SittingOut {
            agent: agent.clone(),
        },
        E::RunStarted {
            agent: agent.clone(),
        },
        E::RunCompleted {
            agent: agent.clone(),
            action: text(),
            success: true,
            post_id: Some(1),
            reason: Some(text()),
        },
        E::RunCompleted {
            agent: agent.clone(),
            action: text(),
            success: false,
            post_id: None,
            reason: None,
        },
        E::ClaimDiffers {
            agent: agent.clone(),
            claim: text(),
            did: text(),
        },
        E::RunClosed {
            agent: agent.clone(),
        },
        E::ServerCalled {
            agent: agent.clone(),
            server: server.clone(),
            tool: text(),
            success: true,
        },
        E::ServerFailed { agent, server, why },
        E::WaitingForAgent { secs: 0.5 },
        E::CycleComplete { cycle },
        E::CycleStopped {
            cycle,
            left: list(),
        },
        E::WaitingForCycle { secs: 0.5 },
        E::HeldBack {
            settings: list(),
            agents: list(),
        },
        E::Order {
            entry: 1,
            what: text(),
        },
        E::Motion {
            motion: 1,
            what: text(),
        },
    ];
    let erased = |posts| E::Erased {
        by: text(),
        posts,
        texts: 1,
    };
    let events = events
        .into_iter()
        .chain([erased(vec![1]), erased(Vec::new())]);
    let line = |event| LogLine {
        at: jiff::Timestamp::UNIX_EPOCH,
        forum: text(),
        event,
    };
    events
        .map(|e| serde_json::to_string(&line(e)).expect("JSON"))
        .collect()
}

/// Batches, and their lines.
fn batches(out: &mut Outputs) {
    let home = council();
    fs::write(home.work().join("q.txt"), "One?\nTwo?\nOne?\n").expect("written");
    let run = [
        "batch", "run", "q.txt", "-m", "ann,bob", "-o", "r.jsonl", "--json",
    ];
    out.add(
        "batch-estimate",
        &home,
        &[&run[..], &["--dry-run"]].concat(),
    );
    out.add("batch", &home, &run);
    let failing = [
        "-m",
        "cyd",
        "--attempts",
        "2",
        "--pause",
        "1s",
        "--log",
        "run.log",
    ];
    fs::write(
        home.path().join("cyd.json"),
        json!({"runs": [[{"fail": {"kind": "crashed", "message": "broke"}}]]}).to_string(),
    )
    .expect("written");
    out.add(
        "batch",
        &home,
        &[&["batch", "run", "q.txt", "--json"], &failing[..]].concat(),
    );
    let status = out.add("batch", &home, &["batch", "status", "--json"]);
    assert_ne!(status["failures"], json!([]));
    let limited = [
        "batch",
        "run",
        "q.txt",
        "-m",
        "ann",
        "--log",
        "run.log",
        "--max-calls",
        "1",
        "--fresh",
    ];
    assert_eq!(home.run(&limited).code, Some(4));
    let log = fs::read_to_string(home.work().join("run.log")).expect("a log");
    for line in log.lines() {
        out.keep("batch-log", serde_json::from_str(line).expect("JSON"));
    }
    for event in [
        "begun", "started", "answered", "failed", "retried", "limit", "ended",
    ] {
        let of_event = |line: &Value| line["event"] == event;
        assert!(out.0["batch-log"].iter().any(of_event), "{event}: {log}");
    }
    assert!(!log.contains("One?"), "{log}");
    let deliberate = ["batch", "run", "q.txt", "--as", "plan.json", "--json"];
    out.add("batch", &home, &deliberate);
    out.add("batch-list", &home, &["batch", "list", "--json"]);
    // What it prints is compared in the tests of fleets; without a database there is an error.
    out.keep("worker-list", json!({"v": 1, "workers": []}));
    let all = home.run(&["batch", "list", "--json"]).json();
    for batch in all["batches"].as_array().expect("batches") {
        let id = batch["id"].as_str().expect("an id");
        for line in home.run(&["batch", "results", id]).out.lines() {
            out.keep("batch-result", serde_json::from_str(line).expect("JSON"));
        }
    }
    let lines = &out.0["batch-result"];
    for found in ["verdict", "reason", "answers", "failures"] {
        assert!(lines.iter().any(|line| !line[found].is_null()), "{found}");
    }
}

fn outputs() -> Outputs {
    let mut out = Outputs::default();
    evaluations(&mut out);
    batches(&mut out);
    others(&mut out);
    decisions(&mut out);
    shares(&mut out);
    threads(&mut out);
    debates(&mut out);
    set_up(&mut out);
    reviews(&mut out);
    measurement(&mut out);
    out
}

fn schemas() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

fn schema(name: &str) -> Value {
    let file = schemas().join(format!("{name}.schema.json"));
    let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    serde_json::from_str(&text).expect("a schema is JSON")
}

#[test]
fn every_output_is_what_its_schema_says() {
    let outputs = outputs();
    for (name, values) in &outputs.0 {
        let validator = jsonschema::validator_for(&schema(name)).expect("a schema");
        for value in values {
            let errors: Vec<String> = validator
                .iter_errors(value)
                .map(|e| format!("{}: {e}", e.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{name}: {errors:#?}\n{value:#}");
            // A field missing from the schema is detected.
            let mut other = value.clone();
            match &mut other {
                Value::Array(list) => list[0]["zz"] = json!(1),
                object => object["zz"] = json!(1),
            }
            assert!(!validator.is_valid(&other), "{name} takes any field");
        }
    }
    for Printed {
        schema,
        version,
        field,
        ..
    } in PRINTED
    {
        let values = outputs.0.get(schema);
        let values = values.unwrap_or_else(|| panic!("no output of {schema}"));
        for value in values.iter().filter(|_| !field.is_empty()) {
            assert_eq!(value[field], json!(version), "{schema}: {value}");
        }
    }
    let line = &outputs.0["mark-line"][0];
    assert_eq!(line["v"], json!(MARK.version));
}

/// The parts that a schema leaves open, by name: data internal to deliberations, and `thread.json`, which other
/// programs also write.
const OPEN: &[(&str, &str)] = &[
    ("deliberate", "plan"),
    ("deliberate-plan", "plan"),
    ("export", "thread"),
    ("record", "fact"),
    ("record", "report"),
    ("record", "used"),
];

#[test]
fn a_mark_in_a_list_is_the_mark_of_a_line() {
    let read = |name: &str| -> Value {
        let text = fs::read_to_string(schemas().join(name)).expect("a schema");
        serde_json::from_str(&text).expect("JSON")
    };
    let (list, line) = (read("marks.schema.json"), read("mark-line.schema.json"));
    assert_eq!(list["$defs"]["mark"]["properties"], line["properties"]);
}

#[test]
fn every_object_of_a_schema_is_closed() {
    fn walk(at: &str, schema: &Value, open: &mut Vec<String>) {
        let Value::Object(fields) = schema else {
            return;
        };
        let is_closed = fields
            .get("additionalProperties")
            .is_some_and(|more| *more != json!(true));
        let is_object = match fields.get("type") {
            Some(Value::Array(types)) => types.contains(&json!("object")),
            one => one == Some(&json!("object")),
        };
        if is_object && !is_closed {
            open.push(at.to_owned());
        }
        for (name, value) in fields {
            match value {
                Value::Object(named) if name == "properties" || name == "$defs" => {
                    named.iter().for_each(|(name, one)| walk(name, one, open));
                }
                Value::Array(list) => list.iter().for_each(|one| walk(at, one, open)),
                one => walk(at, one, open),
            }
        }
    }
    for item in fs::read_dir(schemas()).expect("schemas") {
        let name = item.expect("an entry").file_name();
        let name = name.to_string_lossy();
        let name = name.strip_suffix(".schema.json").expect("a schema");
        let mut open = Vec::new();
        walk("", &schema(name), &mut open);
        let known: Vec<&str> = OPEN
            .iter()
            .filter_map(|(schema, at)| (*schema == name).then_some(*at))
            .collect();
        open.sort();
        open.dedup();
        assert_eq!(open, known, "{name}");
    }
}
