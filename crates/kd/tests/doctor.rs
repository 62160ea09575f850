//! `kd doctor` with fake agents: one that works, one that writes although it may only read, one without a key, one that
//! is missing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use crate::support;

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use support::{Home, SANDBOX, Said, checkout};

/// Creates a home whose agents play these scripts; `None` means that the program is missing.
fn home(agents: &[(&str, Option<Value>)]) -> Home {
    let home = Home::new(&json!({}));
    let mut configured = serde_json::Map::new();
    for (name, script) in agents {
        let at = home.path().join(name);
        if let Some(script) = script {
            std::fs::hard_link(kd_fake::fake_agent(), &at)
                .or_else(|_| std::fs::copy(kd_fake::fake_agent(), &at).map(drop))
                .unwrap();
            std::fs::write(at.with_extension("script"), script.to_string()).unwrap();
        }
        let agent = json!({"backend": "command", "dialect": "codex", "command": [at]});
        configured.insert((*name).into(), agent);
    }
    checkout(home.path());
    let folder = home.path().join(".config/kd");
    std::fs::create_dir_all(&folder).unwrap();
    let config = json!({"agents": configured}).to_string();
    std::fs::write(folder.join("config.json"), config).unwrap();
    home
}

fn script(more: &[Value]) -> Value {
    let mut steps = vec![
        json!({"when": "--version", "do": [{"print": "9.9.9 (fake)\n"}, {"exit": 0}]}),
        json!({"read": true}),
    ];
    steps.extend_from_slice(more);
    Value::Array(steps)
}

fn says(lines: &[Value]) -> Value {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    json!({ "print": text })
}

fn ready() -> Value {
    let item = |id: &str| json!({"type": "item.completed", "item": {"id": id, "type": "agent_message", "text": "ready"}});
    says(&[
        item("a"),
        item("b"),
        json!({"type": "turn.completed", "usage": {}}),
    ])
}

/// Uses a forbidden tool on the file.
fn tries() -> Value {
    let item =
        json!({"id": "t", "type": "command_execution", "command": "echo ready > kd-doctor.txt"});
    says(&[json!({"type": "item.started", "item": item})])
}

fn four() -> Home {
    let refused = json!({"type": "turn.failed", "error": {"message": "unexpected status 401 Unauthorized: no"}});
    home(&[
        ("well", Some(script(&[tries(), ready()]))),
        (
            "liar",
            Some(script(&[json!({"write": "kd-doctor.txt"}), ready()])),
        ),
        ("locked", Some(script(&[says(&[refused])]))),
        ("gone", None),
    ])
}

#[test]
fn each_member_is_called_and_judged() {
    let said = four().run(&["doctor", "--json", "well", "liar", "locked", "gone"]);
    assert_eq!(said.code, Some(5), "{}", said.err);
    let reports = said.json();
    let of = |name: &str| {
        let all = reports.as_array().unwrap();
        all.iter().find(|r| r["member"] == name).unwrap()
    };
    let well = of("well");
    assert_eq!(well["answered"], true, "{well}");
    assert_eq!(well["version"], "9.9.9 (fake)");
    assert_eq!(
        (&well["authenticated"], &well["streams"], &well["read_only"]),
        (&json!(true), &json!(true), &json!(true))
    );
    assert!(well["first_token_secs"].is_number());
    assert_eq!(well["write_tried"], true);
    assert_eq!(of("liar")["read_only"], false);
    assert!(
        of("liar")["advice"]
            .as_str()
            .unwrap()
            .contains("may only read")
    );
    assert_eq!(of("locked")["authenticated"], false);
    assert_eq!(of("locked")["answered"], false);
    assert_eq!(of("gone")["found"], false);
}

#[test]
fn the_table_says_what_to_do() {
    let home = four();
    let said = home.run(&["doctor", "well", "liar", "locked", "gone"]);
    let here = home.path().to_str().unwrap();
    let masked: String = said
        .out
        .replace(here, "HOME")
        .split_inclusive(' ')
        .map(|word| match word.trim_end().parse::<f64>() {
            Ok(_) if word.contains('.') => word.replace(|c: char| c.is_ascii_digit(), "0"),
            _ => word.to_owned(),
        })
        .collect();
    // The rows come in the order in which the members are done.
    let (rows, totals) = masked.split_once("billed to").unwrap();
    let (head, rows) = rows.split_once('\n').unwrap();
    let mut blocks: Vec<String> = Vec::new();
    for line in rows.lines() {
        match blocks.last_mut().filter(|_| line.starts_with(' ')) {
            Some(block) => *block += &format!("{line}\n"),
            None => blocks.push(format!("{line}\n")),
        }
    }
    blocks.sort();
    insta::assert_snapshot!(format!("{head}\n{}billed to{totals}", blocks.concat()));
}

#[test]
fn each_row_is_printed_when_it_is_known() {
    let home = Home::new(&json!({}));
    let go = home.path().join("go");
    let slow = format!(
        "cat >/dev/null; until [ -e '{}' ]; do sleep 0.05; done; echo ready",
        go.display()
    );
    let agent = |words: &str| json!({"backend": "command", "dialect": "text", "command": ["/bin/sh", "-c", words]});
    let config =
        json!({"agents": {"slow": agent(&slow), "quick": agent("cat >/dev/null; echo ready")}});
    std::fs::write(home.config_file(), config.to_string()).unwrap();
    let mut kd = home.kd(&["doctor", "slow", "quick"]);
    let mut child = kd.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut rows = lines.by_ref().map(Result::unwrap).skip(1);
    let first = rows.next().unwrap();
    assert!(first.starts_with("quick "), "{first}");
    std::fs::write(&go, "").unwrap();
    let rest: Vec<String> = rows.collect();
    assert!(rest[0].starts_with("slow "), "{rest:?}");
    assert!(rest.last().unwrap().starts_with("read-only: "), "{rest:?}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_agent_that_writes_is_an_error_and_one_that_does_not_try_is_told() {
    let liar = script(&[json!({"write": "kd-doctor.txt"}), ready()]);
    let home = home(&[
        ("well", Some(script(&[tries(), ready()]))),
        ("liar", Some(liar)),
        ("idle", Some(script(&[ready()]))),
    ]);
    for (names, code) in [
        (&["well", "liar"][..], 5),
        (&["liar"], 6),
        (&["well"], 0),
        (&["idle"], 0),
    ] {
        let said = home.run(&[&["doctor"], names].concat());
        assert_eq!(said.code, Some(code), "{names:?}: {}{}", said.out, said.err);
        assert_eq!(
            said.out.contains("not tried"),
            names == ["idle"],
            "{}",
            said.out
        );
    }
    let idle = home.run(&["doctor", "--json", "idle"]).json();
    assert_eq!(
        (&idle[0]["read_only"], &idle[0]["write_tried"]),
        (&json!(null), &json!(false))
    );
}

#[test]
fn landlock_keeps_a_writer_from_its_file_and_the_last_line_names_it() {
    let lines = format!(
        "{}{}",
        tries()["print"].as_str().unwrap(),
        ready()["print"].as_str().unwrap()
    );
    let words = format!("cat >/dev/null; echo x > kd-doctor.txt\ncat <<'END'\n{lines}END\n");
    let flags = "by its own flags";
    let (held, by) = match kd_backends::transport::rights::landlock() {
        Some(version) => (true, format!("by Landlock (ABI {version}) and {flags}")),
        None => (false, format!("{flags} only: Landlock is not available")),
    };
    let off = format!("{flags} only: `council.sandbox` is off");
    let on = (held, by);
    for (sandbox, (held, by)) in [
        (json!(false), (false, off)),
        (json!(true), on.clone()),
        // On by default.
        (json!(null), on),
    ] {
        let home = Home::new(&json!({}));
        let folder = home.path().join(".config/kd");
        std::fs::create_dir_all(&folder).unwrap();
        let config = json!({
            "council": {"sandbox": sandbox},
            "agents": {"ada": {"backend": "command", "dialect": "codex", "command": ["/bin/sh", "-c", words]}},
        });
        std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
        let run = |args: &[&str]| Said::of(home.kd(args).env_remove(SANDBOX).output().unwrap());
        let report = &run(&["doctor", "--json", "ada"]).json()[0];
        assert_eq!(report["answered"], true, "{report}");
        assert_eq!(
            (&report["read_only"], &report["read_only_by"]),
            (&json!(held), &json!(by))
        );
        let said = run(&["doctor", "ada"]);
        assert_eq!(said.out.lines().last(), Some(&*format!("read-only: {by}")));
    }
}

#[test]
fn the_last_lines_say_what_holds_codex_and_its_adapters() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let own = "by its own sandbox";
    let told = format!("{own}, with a list of what commands may read (honored since 0.120)");
    let untold = format!("{own}, in which commands can read what you can");
    for (backend, sandbox, want) in [
        ("codex", true, &told),
        ("codex", false, &untold),
        ("acp", true, &untold),
    ] {
        let home = Home::new(&json!({}));
        // Outside the working folder, where a program gets no rights by its name.
        let installed = tempfile::tempdir().unwrap();
        let file = installed.path().join("codex-acp");
        std::fs::write(&file, "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = json!({
            "council": {"sandbox": sandbox},
            "agents": {"ada": {"backend": backend, "command": [file]}},
        });
        std::fs::write(home.config_file(), config.to_string()).unwrap();
        let mut kd = home.kd(&["doctor", "--json", "ada"]);
        let said = Said::of(kd.env_remove(SANDBOX).output().unwrap());
        let report = &said.json()[0];
        assert_eq!(
            report["read_only_by"],
            json!(want),
            "{backend} {sandbox}: {report}"
        );
    }
}

#[test]
fn an_agent_that_fails_for_want_of_a_file_is_told_of_the_sandbox() {
    if kd_backends::transport::rights::landlock().is_none() {
        eprintln!("SKIPPED: Landlock is not available");
        return;
    }
    let home = Home::new(&json!({}));
    let words = "cat >/dev/null; echo x > ../.own-state || exit 1; echo ready";
    let agent = |state: Value| {
        json!({"council": {"conclude": false}, "agents": {"ada":
            {"backend": "command", "dialect": "text", "command": ["/bin/sh", "-c", words], "state": state}}})
    };
    std::fs::write(home.path().join(".own-state"), "").unwrap();
    let ask = |config: Value| {
        std::fs::write(home.config_file(), config.to_string()).unwrap();
        let mut kd = home.kd(&["ask", "-m", "ada", "Which?"]);
        Said::of(kd.env_remove(SANDBOX).output().unwrap())
    };
    let said = ask(agent(json!([])));
    assert_eq!(said.code, Some(6), "{}{}", said.out, said.err);
    let told = said.out + &said.err;
    assert!(told.contains("ermission denied"), "{told}");
    for word in ["agents.ada.state", "council.sandbox false"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    for state in ["~/.own-state", "$HOME/.own-state"] {
        let said = ask(agent(json!([state])));
        assert_eq!(said.code, Some(0), "{state}: {}{}", said.out, said.err);
    }
    let said = ask(agent(json!(["own-state"])));
    let told = said.out + &said.err;
    assert!(told.contains("absolute path"), "{told}");
}

#[test]
fn the_scratch_folder_is_the_users_own_and_nothing_planted_above_it_is_obeyed() {
    let home = Home::new(&json!({}));
    let seen = home.path().join("seen");
    let opencode = format!("#!/bin/sh\npwd >> '{}'\n", seen.display());
    let at = home.path().join("opencode");
    std::fs::write(&at, opencode).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&at, mode).unwrap();
    let config = json!({"agents": {"opencode": {"backend": "opencode", "command": [at]}}});
    std::fs::write(home.config_file(), config.to_string()).unwrap();
    // A shared temporary folder in which other users can plant files.
    let shared = tempfile::tempdir().unwrap();
    std::fs::write(shared.path().join("opencode.json"), "{}").unwrap();
    let doctor = |state: &std::path::Path| {
        let mut kd = home.kd(&["doctor", "--json", "opencode"]);
        kd.env("TMPDIR", shared.path()).env("XDG_STATE_HOME", state);
        Said::of(kd.output().unwrap()).json()
    };
    doctor(&home.path().join(".local/state"));
    let folder = std::fs::read_to_string(&seen).unwrap();
    assert!(
        !folder.contains(shared.path().to_str().unwrap()),
        "{folder}"
    );
    assert!(folder.contains("/.local/state/kd/run/"), "{folder}");
    std::fs::remove_file(&seen).unwrap();
    // Even there, the files above it are checked.
    let report = &doctor(&shared.path().join("state"))[0];
    let problem = report["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("opencode.json"), "{report}");
    assert!(
        !std::fs::read_to_string(&seen)
            .unwrap_or_default()
            .contains("doctor"),
        "{report}"
    );
}

#[test]
fn an_agent_that_gives_up_at_a_refused_tool_has_not_failed() {
    let line = |value: Value| json!({ "print": format!("{value}\n") });
    let hear = |word: &str| json!({ "hear": word });
    let options = json!([{"optionId": "no", "kind": "reject_once"}]);
    let steps = json!([
        {"when": "--version", "do": [{"exit": 0}]},
        hear("initialize"), line(json!({"jsonrpc": "2.0", "id": "$asked", "result": {"protocolVersion": 1}})),
        hear("session/new"), line(json!({"jsonrpc": "2.0", "id": "$asked", "result": {"sessionId": "s"}})),
        hear("session/prompt"), line(json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission",
            "params": {"sessionId": "s", "toolCall": {"title": "Write kd-doctor.txt"}, "options": options}})),
        hear("\"no\""), line(json!({"jsonrpc": "2.0", "id": "$asked", "result": {"stopReason": "end_turn"}})),
        {"hang": true}
    ]);
    let home = home(&[("ada", Some(steps))]);
    let config = home.path().join(".config/kd/config.json");
    let text = std::fs::read_to_string(&config)
        .unwrap()
        .replace("\"codex\"", "\"acp\"");
    std::fs::write(&config, text).unwrap();
    let said = home.run(&["doctor", "--json", "ada"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let report = &said.json()[0];
    assert_eq!(
        (&report["answered"], &report["read_only"]),
        (&json!(true), &json!(true)),
        "{report}"
    );
}

#[test]
fn when_nobody_answers_the_exit_code_says_so() {
    assert_eq!(
        home(&[("gone", None)]).run(&["doctor", "gone"]).code,
        Some(6)
    );
    assert_eq!(home(&[]).run(&["doctor", "nobody"]).code, Some(2));
}

#[test]
fn a_relative_path_of_a_program_counts_from_where_kd_is_started() {
    let home = home(&[]);
    let program = home.work().join("tools/echo");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&program, "#!/bin/sh\ncat >/dev/null\necho ready\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let agent = json!({"backend": "command", "dialect": "text", "command": ["./tools/echo"]});
    let config = json!({"agents": {"echo": agent}}).to_string();
    std::fs::write(home.path().join(".config/kd/config.json"), config).unwrap();
    let said = Said::of(home.kd(&["doctor", "echo", "--json"]).output().unwrap());
    let reports: Value = serde_json::from_str(&said.out).expect(&said.err);
    assert_eq!(reports[0]["version"], "ready", "{}", said.out);
}

#[test]
fn another_program_called_kd_is_told_and_json_stays_json() {
    let home = home(&[]);
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let theirs = bin.join("kd");
    let ran = home.path().join("ran");
    std::fs::write(&theirs, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ours = std::path::Path::new(env!("CARGO_BIN_EXE_kd"));
    let ours = ours.parent().unwrap();
    let run = |args: &[&str], path: &[&std::path::Path]| {
        let path = std::env::join_paths(path).unwrap();
        let mut kd = home.kd(args);
        kd.env("PATH", path)
            .env("KD_OFFLINE", "1")
            .env("OLLAMA_HOST", "127.0.0.1:1");
        Said::of(kd.output().unwrap())
    };
    let doctor = ["doctor", "--json"];
    let first = "typing `kd` starts another program";
    let said = run(&doctor, &[&bin, ours]);
    assert!(
        said.err.contains(&format!("{first}, {}", theirs.display())),
        "{}",
        said.err
    );
    assert!(
        said.err
            .contains(&format!("put {} first on the PATH", ours.display())),
        "{}",
        said.err
    );
    assert!(said.json().is_array(), "{}", said.out);
    let said = run(&doctor, &[ours, &bin]);
    assert!(
        said.err.contains("typing `kd` starts this one"),
        "{}",
        said.err
    );
    let said = run(&doctor, &[ours]);
    assert!(
        !said.err.contains("called kd") && !said.err.contains(first),
        "{}",
        said.err
    );
    let said = run(&["init", "--yes"], &[&bin]);
    assert!(said.err.contains(first), "{}", said.err);
    assert!(!ran.exists(), "it was started");
}

/// Programs that nobody seated are named, and do not decide the exit code; nor does the built-in model, which does not sit.
#[test]
fn only_members_are_tested() {
    let home = home(&[("well", Some(script(&[tries(), ready()])))]);
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let gemini = bin.join("gemini");
    std::fs::write(&gemini, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&gemini, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let run = |args: &[&str]| {
        let mut command = home.kd(args);
        command
            .env("PATH", &path)
            .env("OLLAMA_HOST", "127.0.0.1:1")
            .env("KD_OFFLINE", "1");
        Said::fed(command, "")
    };
    let said = run(&["doctor", "--json"]);
    let names: Vec<_> = said
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["member"].clone())
        .collect();
    assert_eq!(
        (said.code, names),
        (Some(0), vec![json!("well")]),
        "{}",
        said.out
    );
    let said = run(&["doctor"]);
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert!(
        said.out
            .contains("found, but no member: gemini; `kd doctor gemini`"),
        "{}",
        said.out
    );
    // With nothing configured, what could answer is tested.
    std::fs::write(home.config_file(), "{}").unwrap();
    let names: Vec<_> = run(&["doctor", "--json"])
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["member"].clone())
        .collect();
    assert_eq!(names[0], json!("gemini"), "{names:?}");
    assert_eq!(names.len(), 2, "{names:?}");
}

/// A program whose version is known to fail is not asked, and the oldest that works is named.
#[test]
fn an_old_program_is_told_before_it_fails() {
    let old = json!([
        {"when": "--version", "do": [{"print": "2.0.32 (Claude Code)\n"}, {"exit": 0}]},
        {"write": "../asked"}
    ]);
    let home = home(&[("old", Some(old))]);
    let config = json!({"agents": {"old": {"backend": "claude_code", "command": [home.path().join("old")]}}});
    std::fs::write(home.config_file(), config.to_string()).unwrap();
    let said = home.run(&["doctor", "old"]);
    assert_eq!(said.code, Some(6), "{}", said.out);
    assert!(
        said.out.contains("2.0.32 (Claude Code) is too old"),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("update Claude Code to version 2.0.65 or later"),
        "{}",
        said.out
    );
}
