//! Tests `kd council` from outside: asked in the background, watched, asked again, a change reviewed, sessions
//! forgotten, and no processes left after the program was killed.
#![cfg(target_os = "linux")]

use crate::support;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Home, SANDBOX, Said, until, whole};

fn says(text: &str) -> Value {
    json!({"runs": [[{"text": text}]]})
}

fn fails() -> Value {
    json!({"runs": [[{"fail": {"kind": "auth", "message": "the key is wrong"}}]]})
}

fn lives(pid: i64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
fn a_round_in_the_background_goes_on_and_can_be_watched() {
    let slow = json!({"runs": [[{"text": "Slowly"}, {"sleep_ms": 700}, {"text": " but surely."}]]});
    let home = Home::scripted(&[("ada", slow), ("bob", says("At once."))]);
    let began = home.run(&["council", "ask", "--async", "--json", "Which?"]);
    assert_eq!(began.code, Some(0), "{}", began.err);
    let told = began.json();
    let id = told["thread_id"].as_str().expect("an id").to_owned();
    let pid = told["pid"].as_i64().expect("a number");
    // It leads its own session, so that closing our terminal does not affect it.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    if let Some(rest) = stat.rsplit(") ").next().filter(|rest| !rest.is_empty()) {
        let session: i64 = rest
            .split(' ')
            .nth(3)
            .expect("a session")
            .parse()
            .expect("a number");
        assert_eq!(session, pid);
    }
    let status = home.run(&["council", "status", "--json"]).json();
    assert_eq!(status["thread_id"], id.as_str());
    assert_eq!(status["expected"], json!(["ada", "bob"]));

    let watched = home.run(&["council", "watch", &id]);
    assert_eq!(watched.code, Some(0), "{}{}", watched.out, watched.err);
    for part in ["Slowly but surely.", "At once."] {
        assert!(watched.out.contains(part), "{}", watched.out);
    }
    let log = std::fs::read_to_string(told["log"].as_str().expect("a path")).expect("a log");
    assert!(log.contains("\"event\":\"turn_finished\""), "{log}");
    // A finished one is also shown and judged.
    let again = home.run(&["council", "watch", "--json"]);
    assert_eq!(
        (again.code, again.json()["outcome"].as_str()),
        (Some(0), Some("complete"))
    );
}

#[test]
fn what_is_wrong_with_a_question_is_told_before_anything_goes_into_the_background() {
    let home = Home::scripted(&[("ada", says("x"))]);
    let said = home.run(&["council", "ask", "--async", "--to", "adda", "Which?"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("did you mean ada"), "{}", said.err);
    assert!(home.threads().is_empty());
}

#[test]
fn a_watch_leaves_with_the_code_of_the_round_or_when_its_time_is_up() {
    let home = Home::scripted(&[("ada", says("Yes.")), ("bob", fails())]);
    assert_eq!(
        home.run(&["council", "ask", "--no-conclude", "Which?"])
            .code,
        Some(5)
    );
    let watched = home.run(&["council", "watch"]);
    assert_eq!(watched.code, Some(5), "{}{}", watched.out, watched.err);
    assert!(watched.out.contains("Yes."), "{}", watched.out);

    let home = Home::scripted(&[("ada", json!({"runs": [["hang"]]}))]);
    let told = home
        .run(&["council", "ask", "--async", "--json", "Which?"])
        .json();
    let watched = home.run(&["council", "watch", "--timeout", "1s"]);
    assert_eq!(watched.code, Some(124), "{}{}", watched.out, watched.err);
    stop(told["pid"].as_i64().expect("a number"));
}

/// Stops a process started through kd, like Ctrl+C.
fn stop(pid: i64) {
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(pid).expect("a number")).expect("a number");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it lives");
    until("the end", || {
        (!lives(pid.as_raw_nonzero().get().into())).then_some(())
    });
}

#[test]
fn a_round_is_watched_as_it_grows() {
    let grows = json!({"runs": [[{"text": "One"}, {"sleep_ms": 600}, {"text": " two"}, {"sleep_ms": 600},
        {"text": " three"}, "hang"]]});
    let home = Home::scripted(&[("ada", grows)]);
    let told = home
        .run(&["council", "ask", "--async", "--json", "Which?"])
        .json();
    let mut watch = home
        .kd(&["council", "watch", "--jsonl", "--timeout", "60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let mut text = String::new();
    while !text.ends_with("three") {
        let line = lines.next().expect("it grows").expect("read");
        let record: Value = serde_json::from_str(&line).expect("JSON");
        text += record["delta"]["text"].as_str().unwrap_or_default();
    }
    assert_eq!(text, "One two three");
    stop(told["pid"].as_i64().expect("a number"));
    assert!(!watch.wait().expect("it ends").success(), "it was stopped");
}

#[test]
fn a_stream_of_kingdom_cli_is_watched_as_it_grows() {
    let home = Home::new(&json!({"agents": {"claude": {"backend": "claude_code"}}}));
    let thread = home.work().join(".kd/branches/main/threads/council-f00d");
    std::fs::create_dir_all(&thread).expect("made");
    let meta = json!({"created_at": "2026-11-21T08:00:00Z", "id": "council-f00d", "members": ["king", "claude"], "pattern": "council", "phase": "council"});
    std::fs::write(thread.join("thread.json"), meta.to_string()).expect("written");
    let message = |from: &str, status: &str, body: &str| {
        format!(
            "---\nfrom: {from}\nto: all\ntimestamp: 2026-11-21T08:00:00Z\n{status}---\n\n{body}\n"
        )
    };
    std::fs::write(thread.join("0001-king.md"), message("king", "", "Which?")).expect("written");
    let mut watch = home
        .kd(&["council", "watch", "f00d", "--jsonl"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let mut heard = |what: &str| loop {
        let line = lines.next().expect("more").expect("text");
        if line.contains(what) {
            return line;
        }
    };
    heard("\"turn_queued\"");
    let mut stream = std::fs::File::create(thread.join(".stream-claude.jsonl")).expect("made");
    for word in ["This ", "one."] {
        let event = json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}});
        writeln!(stream, "{event}").expect("written");
        heard(word);
    }
    std::fs::write(
        thread.join("0002-claude.md"),
        message("claude", "status: complete\n", "This one."),
    )
    .expect("written");
    heard("\"turn_finished\"");
    // kingdom-cli leaves its stream file in place; remove it, as a finishing program would.
    std::fs::remove_file(thread.join(".stream-claude.jsonl")).expect("removed");
    heard("\"floor_yielded\"");
    assert_eq!(watch.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_retry_asks_again_only_who_has_not_answered() {
    let home = Home::scripted(&[("ada", says("Yes.")), ("bob", fails())]);
    assert_eq!(home.run(&["council", "ask", "Which?"]).code, Some(5));
    std::fs::write(home.path().join("bob.json"), says("Now I can.").to_string()).expect("written");
    let again = home.run(&["council", "retry", "--json"]);
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
    let answers = again.json()["answers"].clone();
    assert_eq!(answers.as_array().map(Vec::len), Some(1), "{answers}");
    assert_eq!(
        (answers[0]["member"].as_str(), answers[0]["text"].as_str()),
        (Some("bob"), Some("Now I can."))
    );
    let status = home.run(&["council", "status", "--json"]).json();
    assert_eq!(status["members"]["bob"]["state"], "responded");
    let none = home.run(&["council", "retry"]);
    assert_eq!(none.code, Some(1), "{}", none.err);
    assert!(none.err.contains("no member failed"), "{}", none.err);
}

/// A member that fails again changes nothing: the chair is not paid for a second conclusion, and the first failure is
/// shown once.
#[test]
fn a_retry_without_a_new_answer_has_no_new_conclusion() {
    let home = Home::scripted(&[
        ("ada", says("Yes.")),
        ("bob", fails()),
        ("cyd", says("No.")),
        ("dee", says("So: yes.")),
    ]);
    let file = home.config_file();
    let text = std::fs::read_to_string(&file).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["council"] = json!({"members": ["ada", "bob", "cyd"], "chair": "dee"});
    std::fs::write(&file, config.to_string()).expect("written");
    assert_eq!(home.run(&["ask", "Which?"]).code, Some(5));
    let conclusions = || {
        let messages = whole(&home.threads()[0]).into_values();
        messages
            .filter(|message| message.extra.contains_key("purpose"))
            .count()
    };
    assert_eq!(conclusions(), 1);
    assert_eq!(home.run(&["council", "retry"]).code, Some(5));
    assert_eq!(conclusions(), 1, "nothing new was answered");
    let mut shown = home.kd(&["show"]);
    let shown = Said::of(shown.env("LANG", "C.UTF-8").output().expect("it runs")).out;
    assert_eq!(shown.matches("**failed**").count(), 1, "{shown}");
    assert_eq!(shown.matches("conclusion").count(), 1, "{shown}");
    // With a new answer there is one.
    std::fs::write(home.path().join("bob.json"), says("Now I can.").to_string()).expect("written");
    assert_eq!(home.run(&["council", "retry"]).code, Some(0));
    assert_eq!(conclusions(), 2);
}

/// After a choice the newest question is the one before it: nobody is asked again.
#[test]
fn a_choice_is_no_question() {
    let home = Home::scripted(&[("ada", says("Yes.")), ("bob", says("No."))]);
    let chat = Said::fed(home.kd(&["chat"]), "/auto 0\nWhich?\n/pick ada\n/quit\n");
    assert_eq!(chat.code, Some(0), "{}", chat.err);
    let status = home.run(&["status", "--json"]).json();
    assert_eq!(status["pending"], json!([]), "{status}");
    let mut list = home.kd(&["list"]);
    let list = Said::of(list.env("LANG", "C.UTF-8").output().expect("it runs")).out;
    assert_eq!(
        list.matches('✓').count(),
        3,
        "two members and the legend: {list}"
    );
    let last = home.run(&["last"]).out;
    for part in ["Which?", "Yes.", "No.", "I choose"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    let retry = home.run(&["council", "retry"]);
    assert_eq!(retry.code, Some(1), "{}", retry.err);
    assert!(retry.err.contains("no member failed"), "{}", retry.err);
    let watch = home.run(&["council", "watch"]);
    assert!(watch.out.contains("Yes."), "{}", watch.out);
    assert_eq!(watch.code, Some(0), "{}", watch.err);
}

/// Returns the log of a home's only thread; empty while there is none.
fn log(home: &Home) -> String {
    let thread = home.threads().into_iter().next().unwrap_or_default();
    std::fs::read_to_string(thread.join(".kd-events.jsonl")).unwrap_or_default()
}

/// Creates a home with three members; with `fails_once`, the second one fails its first turn.
fn three(fails_once: bool) -> Home {
    let votes = "Answer: yes\nConfidence: 0.9";
    let bob = if fails_once { fails() } else { says(votes) };
    Home::scripted(&[("ann", says(votes)), ("bob", bob), ("cyd", says(votes))])
}

#[test]
fn a_choice_of_an_earlier_answer_asks_nobody() {
    let home = three(false);
    home.run(&["ask", "Which?"]);
    home.run(&["ask", "--continue", "And where?"]);
    let threads = std::fs::read_dir(home.work().join(".kd/branches/main/threads"));
    let threads: Vec<_> = threads.expect("read").flatten().map(|e| e.path()).collect();
    let [thread] = threads.as_slice() else {
        panic!("one thread: {threads:?}");
    };
    let choice = "---\nfrom: king\nto: all\ntimestamp: 2026-11-22T18:33:41Z\nchosen: 2\n---\n\nI choose that.\n";
    std::fs::write(thread.join("0009-king.md"), choice).expect("written");
    let watch = home.run(&["council", "watch", "--timeout", "60s"]);
    assert_ne!(watch.code, Some(124), "{}", watch.err);
    assert!(
        !watch.err.contains("no process is working"),
        "{}",
        watch.err
    );
}

#[test]
fn a_question_that_is_over_is_over_for_status_watch_and_retry() {
    // The arguments, the stdin, whether a member fails, and the resulting `asked_with`.
    let rows: [(&[&str], &str, bool, &str); 9] = [
        (&["ask", "Which?"], "", false, "ask"),
        (&["ask", "@ann", "which?"], "", false, "ask"),
        (&["think", "Is it so?"], "", false, "think"),
        (
            &["think", "--fast", "bob", "--rigorous", "ann", "Is it so?"],
            "",
            true,
            "think",
        ),
        (
            &["deliberate", "Is 17 prime? yes or no"],
            "",
            false,
            "deliberate",
        ),
        (
            &["deliberate", "Is 17 prime? yes or no"],
            "",
            true,
            "deliberate",
        ),
        (&["chat"], "Which?\n/think Is it so?\n", false, "think"),
        (
            &["chat"],
            "Which?\n/deliberate Is 17 prime? yes or no\n",
            false,
            "deliberate",
        ),
        (&["chat"], "/think Is it so?\nWhich?\n", false, "ask"),
    ];
    for (args, input, fails_once, asked_with) in rows {
        let home = three(fails_once);
        Said::fed(home.kd(args), input);

        let status = home.run(&["council", "status", "--json"]).json();
        let told = (&status["asked_with"], &status["over"], &status["pending"]);
        assert_eq!(
            told,
            (&json!(asked_with), &json!(true), &json!([])),
            "{args:?} {status}"
        );
        let list = home.run(&["council", "list", "--json"]).json().to_string();
        assert!(!list.contains("pending"), "{args:?} {list}");
        let watch = home.run(&["council", "watch", "--timeout", "60s"]);
        assert_ne!(watch.code, Some(124), "{args:?} {}", watch.err);
        assert!(
            !watch.err.contains("no process is working"),
            "{args:?} {}",
            watch.err
        );

        let before = log(&home).matches("turn_queued").count();
        let retry = home.run(&["council", "retry"]);
        assert_eq!(retry.code, Some(1), "{args:?} {}", retry.err);
        let why = format!("asked with `kd {asked_with}`");
        let why = if asked_with == "ask" {
            "no member failed"
        } else {
            &why
        };
        assert!(retry.err.contains(why), "{args:?} {}", retry.err);
        let chat = Said::fed(home.kd(&["chat", "--continue"]), "/retry\n");
        assert_eq!(chat.code, Some(0), "{args:?} {}", chat.err);
        let after = log(&home).matches("turn_queued").count();
        assert_eq!(before, after, "{args:?}: somebody was asked again");
    }
}

#[test]
fn an_interrupted_debate_or_deliberation_is_not_retried_as_a_council() {
    let hangs = json!({"runs": [["hang"]]});
    let rows: [(&[&str], &str, &str); 2] = [
        (&["think", "Is it so?"], "think", "kd think --thread"),
        (
            &["deliberate", "Is 17 prime? yes or no"],
            "deliberate",
            "`kd deliberate \"…\"`",
        ),
    ];
    for (args, asked_with, next) in rows {
        for (signal, over) in [(Signal::INT, true), (Signal::KILL, false)] {
            let home = Home::scripted(&[
                ("ann", hangs.clone()),
                ("bob", hangs.clone()),
                ("cyd", hangs.clone()),
            ]);
            let mut kd = home
                .kd(args)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it runs");
            until("a turn", || {
                log(&home).contains("turn_queued").then_some(())
            });
            rustix::process::kill_process(Pid::from_child(&kd), signal).expect("it lives");
            kd.wait().expect("reaped");
            let status = home.run(&["council", "status", "--json"]).json();
            let told = (&status["asked_with"], &status["over"]);
            assert_eq!(
                told,
                (&json!(asked_with), &json!(over)),
                "{args:?} {signal:?} {status}"
            );
            if over {
                let watch = home.run(&["council", "watch", "--timeout", "60s"]);
                assert_eq!(watch.code, Some(130), "{args:?} {}", watch.err);
            }
            let retry = home.run(&["council", "retry"]);
            assert_eq!(retry.code, Some(1), "{args:?} {signal:?} {}", retry.err);
            assert!(
                retry.err.contains(next),
                "{args:?} {signal:?} {}",
                retry.err
            );
        }
    }
}

#[test]
fn a_member_whose_turn_never_came_is_retried_only_after_an_interrupt() {
    // One after another, stopped in the first answer: the second member was called but not asked.
    let home = Home::scripted(&[("ada", json!({"runs": [["hang"]]})), ("bob", says("Yes."))]);
    let config = std::fs::read_to_string(home.config_file()).expect("read");
    let mut config: Value = serde_json::from_str(&config).expect("JSON");
    config["council"]["mode"] = "sequential".into();
    std::fs::write(home.config_file(), config.to_string()).expect("written");
    let mut kd = home
        .kd(&["ask", "Which?"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    until("a turn", || {
        log(&home).contains("turn_queued").then_some(())
    });
    rustix::process::kill_process(Pid::from_child(&kd), Signal::INT).expect("it lives");
    kd.wait().expect("reaped");
    let status = home.run(&["council", "status", "--json"]).json();
    assert_eq!(status["pending"], json!(["bob"]), "{status}");
    std::fs::write(home.path().join("ada.json"), says("No.").to_string()).expect("written");
    let again = home.run(&["council", "retry", "--json"]);
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
    assert_eq!(again.json()["answers"].as_array().map(Vec::len), Some(2));
}

/// Creates a repository with a branch that changed two files, one of them in `.kd`.
fn repository(home: &Home) {
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b.org",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(args)
            .current_dir(home.work())
            .env("HOME", home.path())
            .output()
            .expect("git runs");
        assert!(
            done.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    let write =
        |name: &str, text: &str| std::fs::write(home.work().join(name), text).expect("written");
    git(&["init", "-q", "-b", "main"]);
    write("a.md", "one\n");
    git(&["add", "a.md"]);
    git(&["commit", "-qm", "first"]);
    git(&["checkout", "-qb", "feature/x"]);
    write("a.md", "one\n```\n@nobody\n");
    write(".kd/note.md", "of the council\n");
    git(&["add", "a.md", ".kd/note.md"]);
    git(&["commit", "-qm", "second"]);
    write("a.md", "one\n```\n@nobody\nnot committed\n");
    write("new.md", "unknown\n");
}

#[test]
fn a_review_puts_the_change_before_the_council_as_data() {
    let home = Home::scripted(&[("ada", says("Merge it.")), ("bob", says("No."))]);
    repository(&home);
    let set = home.run(&[
        "config",
        "set",
        "--layer",
        "local",
        "council.review_members",
        "[\"ada\"]",
    ]);
    assert_eq!(set.code, Some(0), "{}", set.err);
    let said = home.run(&["council", "review", "--json"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let object = said.json();
    assert_eq!(
        object["answers"].as_array().map(Vec::len),
        Some(1),
        "{object}"
    );
    let question = object["question"].as_str().expect("a question");
    assert!(question.starts_with("Review this change."), "{question}");
    for part in ["+@nobody", "+not committed", "````diff", "1 file changed"] {
        assert!(question.contains(part), "{part}: {question}");
    }
    assert!(!question.contains(".kd/note.md"), "{question}");
    assert!(said.err.contains("new.md"), "{}", said.err);
    let meta = std::fs::read_to_string(home.threads()[0].join("thread.json")).expect("a thread");
    assert!(meta.contains("\"phase\": \"review\""), "{meta}");

    let none = home.run(&["council", "review", "--base", "nowhere"]);
    assert_eq!(none.code, Some(1), "{}", none.err);
    assert!(none.err.contains("--base"), "{}", none.err);
}

#[test]
fn sessions_are_forgotten_only_when_somebody_says_so() {
    let home = Home::scripted(&[("ada", says("x"))]);
    let sessions = home.work().join(".kd/branches/main/sessions");
    std::fs::create_dir_all(&sessions).expect("made");
    let file = sessions.join("ada.json");
    std::fs::write(
        &file,
        r#"{"name": "ada", "resume_id": "abc", "status": "idle", "mood": "good"}"#,
    )
    .expect("written");
    let refused = home.run(&["council", "reset"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("--force"), "{}", refused.err);
    assert_eq!(
        home.run(&["council", "reset", "--member", "nobody", "-f"])
            .code,
        Some(2)
    );
    let done = home.run(&["council", "reset", "--member", "ada", "-f"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let left = std::fs::read_to_string(&file).expect("kept");
    assert!(!left.contains("abc") && left.contains("mood"), "{left}");
}

/// Creates a home with an agent program that says a word, starts a shell in a new session, and hangs.
fn home_with_agent() -> Home {
    let home = Home::new(&json!({
        "council": {"members": ["ada"], "conclude": false},
        "agents": {"ada": {"backend": "codex"}},
    }));
    let program = home.path().join("codex");
    std::fs::copy(kd_fake::fake_agent(), &program).expect("copied");
    let shell = home.path().join("shell");
    let steps = json!([
        {"ignore": ["INT", "TERM"]},
        {"shell": shell, "session": true, "orphan": true, "stubborn": true},
        {"hang": true},
    ]);
    std::fs::write(home.path().join("codex.script"), steps.to_string()).expect("written");
    home
}

fn ask_agent(home: &Home) -> Command {
    let mut ask = home.kd(&["council", "ask", "--jsonl", "Which?"]);
    ask.env("CODEX_CLI_PATH", home.path().join("codex"));
    ask
}

#[test]
fn who_may_write_is_told_and_who_writes_without_leave_too() {
    let home = home_with_agent();
    let git = Command::new("git")
        .args(["init", "-q"])
        .current_dir(home.work())
        .status();
    assert!(git.expect("git runs").success());
    let answer = json!({"type": "item.completed", "item": {"id": "a", "type": "agent_message", "text": "Done."}});
    let steps = json!([
        {"when": "app-server", "do": [{"exit": 2}]},
        {"read": true},
        {"write": "broken.txt"},
        {"print": format!("{answer}\n{}\n", json!({"type": "turn.completed", "usage": {}}))},
    ]);
    std::fs::write(home.path().join("codex.script"), steps.to_string()).expect("written");
    let ask = |more: &[&str]| {
        let line = [&["council", "ask"], more, &["Which?"]].concat();
        let mut ask = home.kd(&line);
        ask.env("CODEX_CLI_PATH", home.path().join("codex"));
        let said = Said::of(ask.output().expect("it runs"));
        assert_eq!(said.code, Some(0), "{}", said.err);
        std::fs::remove_file(home.work().join("broken.txt")).expect("it wrote");
        said.err
    };
    let read_only = ask(&[]);
    assert!(
        read_only.contains("files changed during this read-only turn: broken.txt"),
        "{read_only}"
    );
    assert!(!read_only.contains("may change files"), "{read_only}");
    let writable = ask(&["--writable"]);
    assert!(
        writable.contains("may change files here: ada"),
        "{writable}"
    );
    assert!(!writable.contains("files changed"), "{writable}");
}

fn state(home: &Home) -> Option<Value> {
    let text = std::fs::read(home.work().join(".kd/branches/main/sessions/ada.json")).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Returns the shell of the running agent, once the next command finds the thread too: it is recorded while members are
/// already being asked.
fn shell_of(home: &Home) -> i64 {
    until("the current thread", || {
        let state = std::fs::read(home.work().join(".kd/branches/main/state.json")).ok()?;
        let state: Value = serde_json::from_slice(&state).ok()?;
        state["current_thread"].is_string().then_some(())
    });
    until("the shell", || {
        std::fs::read_to_string(home.path().join("shell"))
            .ok()?
            .parse()
            .ok()
    })
}

/// Starts a round, ends the program with this signal in the middle of it, and returns the process IDs of agent and
/// shell.
fn killed_round(home: &Home, signal: Signal) -> [i64; 2] {
    let mut kd = ask_agent(home)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let shell = shell_of(home);
    let state = until("the state", || state(home).filter(|s| s["pid"].is_number()));
    assert_eq!(state["status"], "working");
    assert!(
        state["started_at"]
            .as_str()
            .is_some_and(|at| at.ends_with('Z')),
        "{state}"
    );
    let agent = state["pid"].as_i64().expect("a number");
    assert_eq!(state["kd_agents"][0]["pid"].as_i64(), Some(agent));
    // A second program that only looks stops nothing: the first one is alive.
    assert_eq!(home.run(&["council", "status"]).code, Some(0));
    assert!(lives(agent) && lives(shell));
    rustix::process::kill_process(Pid::from_child(&kd), signal).expect("it lives");
    kd.wait().expect("reaped");
    std::fs::remove_file(home.path().join("shell")).expect("removed");
    [agent, shell]
}

#[test]
fn a_run_that_ends_in_any_way_takes_its_agents_with_it() {
    for signal in [Signal::KILL, Signal::QUIT, Signal::USR1, Signal::ABORT] {
        let home = home_with_agent();
        let left = killed_round(&home, signal);
        // Only their supervisor can stop them.
        until("their end", || {
            left.iter().all(|pid| !lives(*pid)).then_some(())
        });
        let status = home.run(&["council", "status"]);
        assert_eq!(status.code, Some(0), "{}", status.err);
        assert!(!status.err.contains("stopped"), "{}", status.err);
        let state = state(&home).expect("kept");
        assert_eq!(
            (state["status"].as_str(), state.get("pid")),
            (Some("idle"), None),
            "{state}"
        );
        assert!(
            !status.out.contains("running"),
            "its stream is nobody's: {}",
            status.out
        );
    }
}

#[test]
fn agents_whose_keeper_was_killed_too_are_stopped_by_the_next_command() {
    let home = home_with_agent();
    let mut kd = ask_agent(&home)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let shell = shell_of(&home);
    let keeper = until("the state", || state(&home)?["pid"].as_i64());
    // The record may be written slightly after the state.
    until("the record", || {
        let mut records = std::fs::read_dir(home.path().join(".local/state/kd/run/agents")).ok()?;
        records
            .any(|r| r.is_ok_and(|r| !r.file_name().as_encoded_bytes().starts_with(b".")))
            .then_some(())
    });
    // While stopped, neither notices the end of the other.
    let keeper = Pid::from_raw(i32::try_from(keeper).expect("a number")).expect("a number");
    for signal in [Signal::STOP, Signal::KILL] {
        if signal == Signal::KILL {
            rustix::process::kill_process(Pid::from_child(&kd), signal).expect("it lives");
        }
        rustix::process::kill_process(keeper, signal).expect("it lives");
    }
    kd.wait().expect("reaped");
    assert!(lives(shell), "nobody told it");
    let status = home.run(&["council", "status"]);
    assert!(
        status.err.contains("stopped 1 agent left by a killed run"),
        "{}",
        status.err
    );
    until("its end", || (!lives(shell)).then_some(()));
    assert!(!home.run(&["council", "status"]).err.contains("stopped"));
}

#[test]
fn a_thread_is_checked_and_mended_from_outside() {
    let home = Home::scripted(&[("ada", says("Yes."))]);
    assert_eq!(home.run(&["ask", "Which?"]).code, Some(0));
    assert_eq!(home.run(&["fsck"]).code, Some(0));
    let thread = home.threads().remove(0);
    age_and_write(
        &thread,
        "0002-zed.md",
        "---\nfrom: zed\nto: king\ntimestamp: 2026-11-21T08:00:00Z\n---\n\nA double.\n",
    );
    age_and_write(&thread, "0003-eve.md", "no header\n");
    let listed = home.run(&["council", "list", "--json"]).json();
    assert_eq!(
        listed[0]["message_count"], 3,
        "what has no header is no message: {listed}"
    );
    let bad = home.run(&["fsck"]);
    assert_eq!(bad.code, Some(1), "{}", bad.out);
    assert!(
        bad.out.contains("0002-zed.md") && bad.err.contains("--repair"),
        "{}{}",
        bad.out,
        bad.err
    );
    let mended = home.run(&["fsck", "--repair", "--json"]);
    assert_eq!(mended.code, Some(0), "{}", mended.out);
    let object = mended.json();
    assert_eq!(
        (object["problems"].as_u64(), object["mended"].as_u64()),
        (Some(0), Some(2)),
        "{object}"
    );
    assert_eq!(home.run(&["fsck"]).code, Some(0));
    let shown = home.run(&["council", "show", "--all"]).out;
    assert!(
        shown.contains("A double.") && shown.contains("no header"),
        "{shown}"
    );
}

fn age_and_write(thread: &Path, name: &str, text: &str) {
    let path = thread.join(name);
    std::fs::write(&path, text).expect("written");
    let then = std::time::SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::open(&path)
        .expect("there")
        .set_modified(then)
        .expect("set");
}

#[test]
fn a_recorded_stream_is_decoded_to_its_end() {
    let home = Home::new(&json!({}));
    let lines = [
        json!({"type": "thread.started", "thread_id": "t1"}),
        json!({"type": "turn.started"}),
        json!({"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "Hello."}}),
        json!({"type": "turn.completed", "usage": {"input_tokens": 5, "cached_input_tokens": 0, "output_tokens": 2}}),
    ]
    .map(|line| line.to_string());
    let file = home.path().join("said.jsonl");
    std::fs::write(&file, lines.join("\n")).expect("written");
    let path = file.to_str().expect("text");
    let said = home.run(&["debug", "decode", "--dialect", "codex", path]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let events: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let kinds: Vec<&str> = events.iter().filter_map(|e| e["kind"].as_str()).collect();
    assert_eq!(
        (kinds.first(), kinds.last()),
        (Some(&"started"), Some(&"finished")),
        "{}",
        said.out
    );
    assert!(kinds.contains(&"text"), "{}", said.out);

    std::fs::write(&file, lines[..2].join("\n")).expect("written");
    let torn = home.run(&["debug", "decode", "--dialect", "codex", path]);
    assert_eq!(torn.code, Some(6), "{}", torn.out);
    let last: Value = serde_json::from_str(torn.out.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["kind"], "failed");
    assert!(last["failure"]["kind"].is_string(), "{last}");
    assert_eq!(
        home.run(&["debug", "decode", "--dialect", "klingon", path])
            .code,
        Some(2)
    );
    assert_eq!(
        home.run(&["debug", "decode", "--dialect", "codex", "absent.jsonl"])
            .code,
        Some(1)
    );
}

#[test]
fn an_agent_that_asks_a_council_inside_a_council_is_refused() {
    for clears in [false, true] {
        let home = Home::new(&json!({}));
        let (log, said) = (home.path().join("log"), home.path().join("said"));
        // The fake agent does what its prompt says; this one passes its own prompt on to another council.
        let clean = if clears { "env -u KD_DEPTH" } else { "env" };
        let inner = format!(
            "echo x >> '{}'; [ $(wc -l < '{0}') -lt 6 ] && cd '{}' && {clean} {SANDBOX}=false HOME='{}' '{}' ask - < task >> '{}' 2>&1",
            log.display(),
            home.work().display(),
            home.path().display(),
            env!("CARGO_BIN_EXE_kd"),
            said.display(),
        );
        std::fs::write(home.work().join("task"), format!("OBEY run: {inner}\n")).expect("written");
        let script = home.path().join("prog.json");
        std::fs::write(&script, json!([{"obey": "codex"}]).to_string()).expect("written");
        let config = json!({
            "council": {"members": ["prog"], "conclude": false},
            "agents": {"prog": {"backend": "command", "dialect": "codex", "warm": false,
                "command": [kd_fake::fake_agent(), "--script", script]}},
        });
        std::fs::write(home.config_file(), config.to_string()).expect("written");
        let task = std::fs::File::open(home.work().join("task")).expect("there");
        let asked = home
            .kd(&["ask", "-"])
            .stdin(task)
            .output()
            .expect("it runs");
        assert!(asked.status.success(), "{asked:?}");
        let said = std::fs::read_to_string(&said).expect("a council inside");
        // Our agent, and that of the council it asked; what that one asked is refused.
        let agents = std::fs::read_to_string(&log)
            .expect("started")
            .lines()
            .count();
        assert_eq!(agents, 2, "{said}");
        assert!(said.contains("no deeper one is asked"), "{said}");
    }
}
