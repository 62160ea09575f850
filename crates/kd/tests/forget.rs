//! `kd forget`, through the real program with scripted members.

use crate::support;

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::Home;

/// What a post of a forum says that was erased before: its repetitions can no longer be found.
const ERASED_ALREADY: &str = "post 1 is erased already; without its text kd cannot find posts that repeat it: search for the words\n";
const MARKER: &str = "The launch code of project Heron is 7731-ALPHA-9.";

fn script(text: &str) -> Value {
    let run = json!([{"text": text}, {"finish": {}}]);
    json!({"runs": [run, run, run, run]})
}

fn home(ann: &str) -> Home {
    Home::scripted(&[("ann", script(ann)), ("bob", script("Bob too."))])
}

/// Returns the files below a folder that contain a text.
fn holding(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let bytes = fs::read(&path).expect("read");
                if bytes
                    .windows(text.len())
                    .any(|part| part == text.as_bytes())
                {
                    found.push(path);
                }
            }
        }
    }
    found
}

fn id(folder: &Path) -> String {
    let name = folder.file_name().expect("a name");
    name.to_string_lossy().into_owned()
}

/// Creates a thread with the marker, a continued fork of it, and another thread.
fn asked(ann: &str) -> (Home, String, String, String) {
    let home = home(ann);
    assert_eq!(home.run(&["ask", "-q", "Which color?"]).code, Some(0));
    let other = id(&home.threads()[0]);
    assert_eq!(home.run(&["ask", "-q", MARKER]).code, Some(0));
    let known: Vec<String> = home.threads().iter().map(|t| id(t)).collect();
    let thread = known.into_iter().find(|id| *id != other).expect("a thread");
    assert_eq!(home.run(&["fork", &thread]).code, Some(0));
    assert_eq!(home.run(&["ask", "-qc", "And then?"]).code, Some(0));
    let known: Vec<String> = home.threads().iter().map(|t| id(t)).collect();
    let fork = known.into_iter().find(|id| *id != other && *id != thread);
    (home, thread, fork.expect("a fork"), other)
}

#[test]
fn a_pipe_is_shown_what_would_go_and_must_say_yes() {
    let (home, thread, fork, _) = asked("Ann says so.");
    let before = holding(home.path(), "Heron").len();
    let said = home.run(&["forget", &thread]);
    assert_eq!(said.code, Some(2), "{}", said.out);
    assert!(said.err.contains("--yes"), "{}", said.err);
    assert!(said.out.contains("3 messages"), "{}", said.out);
    let dry = home.run(&["forget", &thread, "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.err);
    assert_eq!(dry.out, said.out);
    assert!(
        dry.out.contains(&format!("copies of 3 messages in {fork}")),
        "{}",
        dry.out
    );
    assert_eq!(holding(home.path(), "Heron").len(), before);
}

#[test]
fn a_forgotten_thread_is_nowhere_and_the_rest_works() {
    let (home, thread, fork, other) = asked("Ann says so.");
    assert!(!holding(home.path(), "Heron").is_empty());
    let said = home.run(&["forget", &thread, "--yes"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        said.out.ends_with(&format!("forgotten: {thread}\n")),
        "{}",
        said.out
    );
    let shown = home.run(&["show", &fork, "--all"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("[forgotten]"), "{}", shown.out);
    assert_eq!(holding(home.path(), "Heron"), Vec::<PathBuf>::new());
    let listed = home.run(&["council", "list"]).out;
    let is_listed = |id: &str| listed.lines().any(|line| line.starts_with(id));
    assert!(is_listed(&other) && !is_listed(&thread), "{listed}");
    for line in [
        vec!["show", &other],
        vec!["fsck", "--all"],
        vec!["ask", "-q", "Next?"],
    ] {
        let said = home.run(&line);
        assert_eq!(said.code, Some(0), "{line:?}: {}{}", said.out, said.err);
    }
    let gone = home.run(&["forget", &thread, "--yes"]);
    assert_eq!(gone.code, Some(1), "{}", gone.out);
}

/// A decision that is remembered, marked, forked and beside a forum.
#[test]
fn a_thread_of_a_batch_is_forgotten_with_its_question_and_its_result() {
    let home = Home::scripted(&[("ann", script("Ann says so."))]);
    let run = |args: &[&str]| {
        let said = home.run(args);
        assert_eq!(said.code, Some(0), "{args:?}: {}{}", said.out, said.err);
        said.out
    };
    let questions = format!("{MARKER}\nWhich color?\n");
    fs::write(home.work().join("q.txt"), &questions).expect("written");
    run(&["batch", "run", "q.txt", "-o", "r.jsonl", "-q"]);
    // Another batch takes the answer from the first.
    fs::write(
        home.work().join("two.txt"),
        format!("{MARKER}\nWhich day?\n"),
    )
    .expect("written");
    run(&["batch", "run", "two.txt", "-o", "two.jsonl", "-q"]);
    let lines = fs::read_to_string(home.work().join("r.jsonl")).expect("results");
    let of = |text: &str| {
        let line = lines
            .lines()
            .find(|line| line.contains(text))
            .expect("a line");
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["thread"].as_str().expect("a thread").to_owned()
    };
    let thread = of("Heron");
    let own = ["q.txt", "two.txt", "r.jsonl", "two.jsonl"].map(|name| home.work().join(name));
    let holders = || {
        let mut found = holding(home.path(), "Heron");
        found.retain(|path| !own.contains(path));
        found
    };
    let database = |path: &PathBuf| path.parent().is_some_and(|at| at.ends_with("batches"));
    assert!(holders().iter().any(database), "{:?}", holders());
    let dry = run(&["forget", &thread, "--dry-run"]);
    assert!(dry.contains("2 questions of batches"), "{dry}");
    assert!(
        dry.contains("r.jsonl") && dry.contains("two.jsonl"),
        "{dry}"
    );
    run(&["forget", &thread, "--yes"]);
    assert_eq!(holders(), Vec::<PathBuf>::new());
    // The rest is there, and the files of results are written without it.
    run(&["batch", "run", "q.txt", "-o", "r.jsonl", "-q"]);
    let lines = fs::read_to_string(home.work().join("r.jsonl")).expect("results");
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert!(!lines.contains("Heron"), "{lines}");
    run(&["batch", "status"]);
    run(&["fsck", "--all"]);
}

/// Puts a text into every place of a forum: posts, an earlier version of a post, titles, reasons, a charter, votes.
fn fill_forum(run: &dyn Fn(&[&str]) -> String, secret: &str, text: &str) {
    run(&[
        "forum",
        "post",
        &format!("On {secret}"),
        text,
        "--as",
        "eve",
    ]);
    run(&["forum", "reply", "2", &format!("> {text}"), "--as", "bea"]);
    run(&["forum", "role", "king", "voter", "takes part"]);
    run(&["forum", "propose", "text", secret, "--reason", text]);
    run(&["forum", "vote", "1", "yes", "--reason", text]);
    run(&["forum", "charter", text]);
    run(&["forum", "charter", "About bees.", "--reason", text]);
    run(&["forum", "post", "Ants", text, "--as", "eve"]);
    run(&["forum", "edit", "5", "Nothing.", "--as", "eve"]);
}

#[test]
fn a_named_post_is_erased_after_a_question_and_the_audit_says_so() {
    let home = home("Ann says so.");
    let run = |args: &[&str]| {
        let said = home.run(args);
        assert_eq!(said.code, Some(0), "{args:?}: {}{}", said.out, said.err);
        said.out
    };
    run(&["forum", "post", "Codes of Heron", MARKER, "--as", "eve"]);
    run(&["forum", "reply", "1", &format!("> {MARKER}")]);
    run(&["forum", "post", "Bees", "They dance.", "--as", "eve"]);
    let database = home.work().join(".kd/forum.db");
    for args in [
        &["forum", "forget", "1"][..],
        &["forum", "forget", "1", "--json"],
    ] {
        let said = home.run(args);
        assert_eq!(said.code, Some(2), "{}", said.out);
        assert!(
            format!("{}{}", said.out, said.err).contains("--yes"),
            "{}",
            said.err
        );
    }
    let dry = run(&["forum", "forget", "1", "--dry-run"]);
    for line in [
        "- post 1 of a forum: ",
        "- the title of thread 1 of a forum: ",
        "post 2 repeats it: kd forum forget 2",
    ] {
        assert!(dry.contains(line), "{dry}");
    }
    assert_eq!(
        holding(home.path(), "Heron"),
        std::slice::from_ref(&database)
    );
    let said = run(&["forum", "forget", "1", "2", "--yes"]);
    assert!(said.ends_with("forgotten: posts 1, 2\n"), "{said}");
    assert_eq!(holding(home.path(), "Heron"), Vec::<PathBuf>::new());
    let audit = run(&["forum", "audit"]);
    assert!(
        audit.contains("erased by king on ") && audit.contains("2 posts"),
        "{audit}"
    );
    let read = run(&["forum", "read", "1"]);
    assert!(
        read.starts_with("[forgotten]") && read.matches("(erased)").count() == 2,
        "{read}"
    );
    assert!(run(&["forum", "read", "2"]).contains("They dance."));
    let again = run(&["forum", "forget", "1", "--yes"]);
    assert_eq!(again, ERASED_ALREADY);
    let none = home.run(&["forum", "forget", "99", "--yes"]);
    assert!(
        none.code != Some(0) && none.err.contains("there is no post 99"),
        "{}",
        none.err
    );
}

#[test]
fn posts_of_others_stay_unless_they_are_named() {
    let home = home("Ann says so.");
    let words = "Let me know what you think about";
    assert_eq!(
        home.run(&["ask", "-q", &format!("{words} gpt-4o-mini.")])
            .code,
        Some(0)
    );
    let posts = [
        "I would take gpt-4o-mini.",
        &format!("{words} the new roof."),
    ];
    for post in posts {
        assert_eq!(
            home.run(&["forum", "post", "Bees", post, "--as", "eve"])
                .code,
            Some(0)
        );
    }
    let said = home.run(&["forget", &id(&home.threads()[0]), "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("forgotten: "), "{}", said.out);
    for (thread, post) in ["1", "2"].into_iter().zip(posts) {
        assert!(
            home.run(&["forum", "read", thread]).out.contains(post),
            "{}",
            said.out
        );
    }
}

#[test]
fn an_erasure_that_another_process_stops_is_finished_by_the_same_command() {
    let home = home("Ann says so.");
    assert_eq!(
        home.run(&["forum", "post", "Codes", MARKER, "--as", "eve"])
            .code,
        Some(0)
    );
    let logs = home.work().join(".kd/logs");
    fs::create_dir_all(&logs).expect("made");
    let line = format!("2026-01-01 00:00:00 - ada: skip ({MARKER})\n");
    fs::write(logs.join("runner.log"), line).expect("written");
    let database = home.work().join(".kd/forum.db");
    let script = "import sqlite3, sys\n\
                  db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                  db.execute('BEGIN')\n\
                  print(db.execute('SELECT COUNT(*) FROM posts').fetchone(), flush=True)\n\
                  sys.stdin.read()";
    let mut reader = Command::new("python3")
        .args(["-c", script])
        .arg(&database)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut line = String::new();
    BufReader::new(reader.stdout.take().expect("piped"))
        .read_line(&mut line)
        .expect("it reads");
    let busy = home.run(&["forum", "forget", "1", "--yes"]);
    assert_eq!(busy.code, Some(1), "{}{}", busy.out, busy.err);
    drop(reader.stdin.take());
    reader.wait().expect("it ends");
    let dry = home.run(&["forum", "forget", "1", "--dry-run"]).out;
    assert!(dry.contains("- unused pages of a forum"), "{dry}");
    let said = home.run(&["forum", "forget", "1", "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(holding(home.path(), "Heron"), Vec::<PathBuf>::new());
    let again = home.run(&["forum", "forget", "1", "--yes"]).out;
    assert_eq!(again, ERASED_ALREADY);
}

#[test]
fn a_marker_in_memory_marks_and_the_record_is_nowhere_afterwards() {
    let secret = "heron-7731-alpha-9";
    let reply = json!({
        "reason": format!("it is {secret}"), "answer": secret, "confidence": 0.8,
        "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
        "ranking": ["A", "B"], "choice": "A", "recommendation": format!("Use {secret}."), "cites": ["A"],
    });
    let members = ["ann", "bob", "cyd"].map(|name| (name, script(&reply.to_string())));
    let home = Home::scripted(&members);
    let file = home.config_file();
    let mut config: Value =
        serde_json::from_slice(&fs::read(&file).expect("read")).expect("settings");
    config["deliberation"] = json!({"memory": {"longTerm": true}});
    fs::write(&file, config.to_string()).expect("written");
    let run = |args: &[&str]| {
        let said = home.run(args);
        assert_eq!(said.code, Some(0), "{args:?}: {}{}", said.out, said.err);
        said.out
    };
    let question = format!("Is the code {secret}?");
    run(&[
        "deliberate",
        "-q",
        "-m",
        "ann,bob,cyd",
        "--answer",
        "exact",
        &question,
    ]);
    run(&["mark", "right"]);
    run(&["forum", "post", "Bees", "They dance.", "--as", "eve"]);
    fill_forum(&run, secret, &question);
    let logs = home.work().join(".kd/logs");
    fs::create_dir_all(&logs).expect("made");
    let line = |text: &str| format!("2026-01-01 00:00:00 - {text}\n");
    let log = line("Starting new cycle") + &line(&format!("ada: skip (it is {secret})"));
    fs::write(logs.join("runner.log"), log).expect("written");
    // A copy that a migration made.
    fs::copy(
        home.work().join(".kd/forum.db"),
        home.work().join(".kd/forum.db.form-9"),
    )
    .expect("copied");
    let thread = id(&home.threads()[0]);
    run(&["fork", "--stage", "review"]);
    let holders = || {
        let scripts = members
            .each_ref()
            .map(|(name, _)| home.path().join(format!("{name}.json")));
        let mut found = holding(home.path(), secret);
        found.retain(|path| !scripts.contains(path));
        found
    };
    let before = holders();
    for place in [
        "memory.json",
        "marks.db",
        "forum.db",
        "forum.db.form-9",
        "runner.log",
        ".kd-events.jsonl",
        "0001-king.md",
    ] {
        assert!(
            before.iter().any(|path| path.ends_with(place)),
            "{place}: {before:?}"
        );
    }
    let kept = run(&["forget", &thread, "--dry-run"]);
    assert!(
        kept.contains("repeat it: --posts erases that; later: kd forum forget 2 3 4"),
        "{kept}"
    );
    let dry = run(&["forget", &thread, "--dry-run", "--posts"]);
    for line in [
        "- posts 2, 3, 4 of a forum: .kd/forum.db",
        "- texts of motion 1 of a forum: .kd/forum.db",
        "- texts of entries 2, 3 of a forum: .kd/forum.db",
        "- a copy of the forum in an older version: .kd/forum.db.form-9",
    ] {
        assert!(dry.contains(line), "{line}: {dry}");
    }
    assert_eq!(holders(), before, "a dry run changes nothing");
    let said = run(&["forget", &thread, "--yes", "--posts"]);
    assert_eq!(holders(), Vec::<PathBuf>::new(), "{said}");
    assert!(!run(&["memory", "show"]).contains("heron"));
    run(&["marks"]);
    assert!(run(&["forum", "read", "1"]).contains("They dance."));
    let audit = run(&["forum", "audit"]);
    assert!(audit.contains("erased by king on "), "{audit}");
    assert!(run(&["forum", "read", "2"]).contains("(erased)"));
    assert_eq!(run(&["forum", "search", secret]), "nothing found\n");
    let log = fs::read_to_string(logs.join("runner.log")).expect("read");
    assert_eq!(log, line("Starting new cycle") + &line("[forgotten]"));
    run(&["forum", "post", "Ants", "They dig."]);
    run(&["fsck", "--all"]);
    run(&["council", "list"]);
    run(&["ask", "-q", "Next?"]);
}

#[test]
fn a_forgotten_message_leaves_its_number_and_the_record_says_so() {
    let (home, thread, _, _) = asked(&format!("You say: {MARKER}"));
    let said = home.run(&["forget", &thread, "--message", "1", "--yes", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let told: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((&told["v"], &told["dry_run"]), (&json!(1), &json!(false)));
    let quotes = told["threads"][0]["quotes"].as_array().expect("a list");
    assert_eq!(quotes.len(), 3, "{told}");
    let shown = home.run(&["show", &thread, "--all", "--json"]);
    let shown: Value = serde_json::from_str(&shown.out).expect("JSON");
    assert_eq!(shown["forgotten"][0]["message"], 1);
    assert_eq!(shown["messages"][0]["body"], "[forgotten]");
    assert_eq!(home.run(&["fork", &thread]).code, Some(0));
    assert_eq!(home.run(&["export", &thread]).code, Some(0));
    assert_eq!(home.run(&["fsck", "--all"]).code, Some(0));
    let again = home.run(&["forget", &thread, "--message", "1", "--yes"]);
    assert!(again.out.contains("nothing is left of it"), "{}", again.out);
    let none = home.run(&["forget", &thread, "--message", "9", "--yes"]);
    assert_eq!(none.code, Some(1), "{}", none.out);
}

#[test]
fn why_and_replay_say_that_the_record_was_shortened() {
    let votes = json!({"answer": "SQLite", "confidence": 0.9, "reason": "r", "choice": "SQLite"});
    let reply = votes.to_string();
    let home = Home::scripted(&[("ann", script(&reply)), ("bob", script(&reply))]);
    let said = home.run(&[
        "deliberate",
        "-q",
        "-m",
        "ann,bob",
        "--protocol",
        "council",
        "--rule",
        "plurality",
        "Should a small team start with SQLite or PostgreSQL?",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let said = home.run(&["forget", &id(&home.threads()[0]), "--message", "1", "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        holding(home.path(), "Should a small team"),
        Vec::<PathBuf>::new()
    );
    for command in ["why", "replay"] {
        let said = home.run(&[command]);
        assert!(
            said.out.contains("This record was shortened: message 1"),
            "{command}: {}{}",
            said.out,
            said.err
        );
    }
}

#[test]
fn only_threads_that_are_old_enough_go() {
    let (home, thread, _, other) = asked("Ann says so.");
    let said = home.run(&["forget", "--older", "1d", "--yes"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(0), "no thread is that old\n")
    );
    for folder in home.threads().iter().filter(|t| id(t) == other) {
        for file in fs::read_dir(folder).expect("a thread").flatten() {
            let path = file.path();
            if path.extension().is_some_and(|e| e == "md") {
                let text = fs::read_to_string(&path).expect("text");
                let year = text.find("timestamp: ").expect("a time") + "timestamp: ".len();
                fs::write(&path, format!("{}2019{}", &text[..year], &text[year + 4..]))
                    .expect("write");
            }
        }
    }
    let said = home.run(&["forget", "--older", "90d", "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let left: Vec<String> = home.threads().iter().map(|t| id(t)).collect();
    assert!(!left.contains(&other) && left.contains(&thread), "{left:?}");
}

#[test]
fn copies_of_others_are_named_and_stay() {
    let (home, thread, _, _) = asked("Ann says so.");
    let theirs = home.path().join(".claude/projects/app/session.jsonl");
    fs::create_dir_all(theirs.parent().expect("a folder")).expect("make");
    fs::write(&theirs, MARKER).expect("write");
    let said = home.run(&["forget", &thread, "--yes"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out.contains("Claude Code keeps its own sessions here"),
        "{}",
        said.out
    );
    assert_eq!(fs::read_to_string(&theirs).expect("theirs"), MARKER);
}
