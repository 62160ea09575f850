//! Tests the trust prompt from outside: a hostile folder runs nothing, the user's own folder asks once, and every front
//! end reports what is held back.
#![allow(clippy::unwrap_used)] // tests may panic

use crate::support;

use portable_pty::{CommandBuilder, native_pty_system};
use serde_json::{Value, json};
use std::io::Write;
use support::pty::{listen, size};
use support::{Home, Said};

/// Creates a home without settings, in a folder that asks to run a program.
fn hostile() -> Home {
    let home = Home::new(&json!({}));
    std::fs::write(
        home.work().join(".kd/config.json"),
        wants(&home).to_string(),
    )
    .unwrap();
    home
}

fn wants(home: &Home) -> Value {
    let touch = format!("touch {}", home.path().join("ran").display());
    json!({"council": {"members": ["e"], "preamble": "obey"},
        "agents": {"e": {"backend": "command", "dialect": "codex", "command": ["sh", "-c", touch]}}})
}

fn ran(home: &Home) -> bool {
    home.path().join("ran").exists()
}

/// Runs the program in a terminal and answers its prompts with these lines; Enter where there is none. Returns the
/// screen and the exit code.
fn on_terminal(home: &Home, args: &[&str], answer: Option<&str>) -> (String, u32) {
    let pty = native_pty_system().openpty(size(80, 24)).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_kd"));
    command.env_clear();
    command.env("HOME", home.path());
    command.env(support::SANDBOX, "false");
    command.env("PATH", "/usr/bin:/bin");
    command.env("TERM", "xterm");
    command.args(args);
    command.cwd(home.work());
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let bytes = listen(pty.master.as_ref());
    let mut keys = pty.master.take_writer().unwrap();
    let (mut seen, mut asked) = (String::new(), 0);
    let mut answers = answer.unwrap_or_default().split_inclusive('\n');
    while let Ok(more) = bytes.recv() {
        seen.push_str(&String::from_utf8_lossy(&more));
        while asked < seen.matches("[y/N] ").count() {
            asked += 1;
            let answer = answers.next().unwrap_or("\n");
            keys.write_all(answer.as_bytes()).unwrap();
        }
    }
    (
        seen.replace("\r\n", "\n"),
        child.wait().unwrap().exit_code(),
    )
}

#[test]
fn without_a_terminal_and_with_nothing_to_allow_trust_is_no_error() {
    let home = Home::new(&json!({}));
    let said = home.run(&["trust"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        said.out
            .ends_with("no file and no setting to allow; `kd trust --yes` lets agent programs trust the folder as it is\n"),
        "{}",
        said.out
    );
    assert_eq!(home.run(&["trust", "--list"]).out, "", "nothing is decided");
}

#[test]
fn a_hostile_folder_runs_nothing_and_every_command_says_so_before_a_thread_is_opened() {
    let home = hostile();
    for args in [
        &["ask", "hi"][..],
        &["ask", "--json", "hi"],
        &["ask", "--members", "e", "hi"],
        &["ask", "--to", "e", "hi"],
        &["think", "hi"],
        &["think", "--fast", "e", "hi"],
        &["deliberate", "hi"],
        &["council", "ask", "--async", "hi"],
        &["chat", "--plain"],
        &["doctor", "e"],
    ] {
        let said = home.run(args);
        assert_eq!(said.code, Some(9), "{args:?}: {}{}", said.out, said.err);
        let told: Vec<&str> = said
            .err
            .lines()
            .filter(|l| l.starts_with("held back: "))
            .collect();
        assert_eq!(told.len(), 1, "{args:?}: {}", said.err);
        assert!(told[0].contains("`kd trust`"), "{}", told[0]);
        assert!(!ran(&home), "{args:?}");
        assert_eq!(home.threads(), Vec::<std::path::PathBuf>::new(), "{args:?}");
    }
    let json = home.run(&["ask", "--json", "hi"]).json();
    assert_eq!(
        (
            json["error"]["kind"].as_str(),
            json["error"]["code"].as_u64()
        ),
        (Some("held_back"), Some(9))
    );
    let shown = home.run(&["config", "show", "--origin"]);
    assert!(
        shown.out.contains("agents.e.command = ")
            && shown.out.contains("(held back: needs your consent"),
        "{}",
        shown.out
    );
}

#[test]
fn the_council_sits_without_what_is_held_back() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Ann."}]]}))]);
    let mut wants = wants(&home);
    wants["council"]["members"] = json!(["ann", "e"]);
    std::fs::write(home.work().join(".kd/config.json"), wants.to_string()).unwrap();
    let said = home.run(&["ask", "--json", "hi"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let value = said.json();
    assert_eq!(value["answers"].as_array().unwrap().len(), 1, "{value}");
    assert!(
        value["held_back"]
            .as_array()
            .unwrap()
            .contains(&json!("agents.e.command")),
        "{value}"
    );
    assert_eq!(
        said.err
            .lines()
            .filter(|l| l.starts_with("held back: "))
            .count(),
        1,
        "{}",
        said.err
    );
    assert_eq!(home.run(&["ask", "-m", "e", "hi"]).code, Some(9));
    assert!(!ran(&home));
}

#[test]
fn lines_of_json_tell_what_is_held_back_and_whom_a_thread_is_without() {
    let runs = json!({"runs": [[{"text": "Yes."}], [{"text": "Yes."}], [{"text": "Yes."}], [{"text": "Yes."}]]});
    for args in [
        &["ask", "--jsonl", "hi"][..],
        &["ask", "--jsonl", "--quiet", "hi"],
        &["ask", "--jsonl", "--continue", "hi"],
        &["council", "ask", "--jsonl", "hi"],
        &["think", "--jsonl", "hi"],
        &["deliberate", "--jsonl", "hi"],
    ] {
        let home = Home::scripted(&[("ann", runs.clone()), ("bob", runs.clone())]);
        let mut wants = wants(&home);
        wants["council"]["members"] = json!(["ann", "bob", "e"]);
        std::fs::write(home.work().join(".kd/config.json"), wants.to_string()).unwrap();
        let goes_on = args.contains(&"--continue");
        if goes_on {
            plant(&home, "council-cccc", &["king", "ann", "codex"]);
        }
        let said = home.run(args);
        let lines = said
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let told: Vec<Value> = lines
            .filter(|line: &Value| line["event"] == "held_back")
            .collect();
        let [told] = &told[..] else {
            panic!("{args:?}: {told:?} {}{}", said.out, said.err);
        };
        let settings = told["settings"].as_array().unwrap();
        assert!(settings.contains(&json!("agents.e.command")), "{told}");
        let members = if goes_on {
            json!(["e", "codex"])
        } else {
            json!(["e"])
        };
        assert_eq!(told["members"], members, "{args:?}");
        assert!(!ran(&home));
    }
    // A forum reports it in its own lines.
    let home = Home::scripted(&[("ann", runs)]);
    let agents = home.work().join(".kd/forum/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let persona = |name: &str, backend: &str| {
        let text = format!("name: {name}\nbackend: {backend}\nsystem_prompt: You are {name}.\n");
        std::fs::write(agents.join(format!("{name}.yaml")), text).unwrap();
    };
    persona("here", "local");
    persona("eve", "codex");
    let said = home.run(&["forum", "run-once", "--jsonl"]);
    let first = said.out.lines().next().unwrap_or_default();
    let first: Value = serde_json::from_str(first).unwrap_or_else(|_| panic!("{}", said.err));
    assert_eq!(
        (&first["event"], &first["agents"]),
        (&json!("held_back"), &json!(["eve"])),
        "{first}"
    );
}

#[test]
fn a_question_or_a_plan_that_names_a_held_member_ends_as_members_do() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Ann."}]]}))]);
    let mut wants = wants(&home);
    wants["council"]["members"] = json!(["ann", "e"]);
    std::fs::write(home.work().join(".kd/config.json"), wants.to_string()).unwrap();
    let seat = |name: &str| json!({"model": name, "role": "skeptic"});
    let plan = json!({"council": {"members": [seat("ann"), seat("e"), seat("ann")]}});
    std::fs::write(home.work().join("seats.json"), plan.to_string()).unwrap();
    let plan = json!({"meta": {"planningMode": "llm", "planner": "e"}});
    std::fs::write(home.work().join("planner.json"), plan.to_string()).unwrap();
    for args in [
        &["ask", "-m", "e", "hi"][..],
        &["ask", "@e hi"],
        &["ask", "what do @ann and @e say"],
        &["deliberate", "--plan", "seats.json", "hi"],
        &["deliberate", "--plan", "planner.json", "hi"],
    ] {
        let said = home.run(args);
        assert_eq!(said.code, Some(9), "{args:?}: {}{}", said.out, said.err);
        let what = "error: member e is held back\ncause: agents.e.backend (.kd/config.json:1) ";
        assert!(said.err.contains(what), "{args:?}: {}", said.err);
        assert_eq!(home.threads(), Vec::<std::path::PathBuf>::new(), "{args:?}");
    }
    let said = home.run(&["ask", "--to", "nobody-of-that-name", "hi"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
}

#[test]
fn a_thread_on_the_screen_says_whom_it_is_without() {
    let home = Home::scripted(&[("ann", json!({"runs": []}))]);
    plant(&home, "council-dddd", &["king", "ann", "codex"]);
    let pty = native_pty_system().openpty(size(100, 30)).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_kd"));
    command.env_clear();
    command.env("HOME", home.path());
    command.env("PATH", "/usr/bin:/bin");
    command.env("TERM", "xterm-256color");
    command.arg("chat");
    command.cwd(home.work());
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let bytes = listen(pty.master.as_ref());
    let mut seen = String::new();
    let line = |seen: &str| seen.contains("held back: codex; ");
    while let Ok(more) = bytes.recv_timeout(std::time::Duration::from_secs(60)) {
        seen.push_str(&String::from_utf8_lossy(&more));
        if line(&seen) {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line(&seen), "{seen}");
}

#[test]
fn a_no_is_remembered_and_a_yes_allows_exactly_the_list() {
    let home = hostile();
    let (seen, code) = on_terminal(&home, &["ask", "hi"], Some("\n"));
    assert_eq!(code, 9, "{seen}");
    assert!(
        seen.contains("agents.e.command = [\"sh\",\"-c\",\"touch "),
        "{seen}"
    );
    assert!(
        seen.contains("council.preamble (.kd/config.json:1, 4 characters)"),
        "{seen}"
    );
    let (again, code) = on_terminal(&home, &["ask", "hi"], None);
    assert_eq!(code, 9, "{again}");
    assert!(
        !again.contains("[y/N]") && again.contains("held back: "),
        "{again}"
    );
    assert!(!ran(&home));
    // The user changes their mind.
    let (seen, code) = on_terminal(&home, &["trust"], Some("y\n"));
    assert_eq!(code, 0, "{seen}");
    let (seen, _) = on_terminal(&home, &["ask", "hi"], None);
    assert!(
        !seen.contains("[y/N]") && !seen.contains("held back"),
        "{seen}"
    );
    assert!(ran(&home), "allowed: {seen}");
    let listed = home.run(&["trust", "--list"]);
    assert!(
        listed.out.contains("work  allowed ") && listed.out.contains("3 settings"),
        "{}",
        listed.out
    );
    assert_eq!(home.run(&["trust", "--revoke"]).code, Some(0));
    assert_eq!(home.run(&["ask", "hi"]).code, Some(9));
    assert_eq!(home.run(&["trust", "--list"]).out, "");
}

#[test]
fn what_is_dangerous_stands_next_to_the_question_whatever_else_the_folder_holds() {
    let home = hostile();
    let kd = home.work().join(".kd");
    std::fs::create_dir_all(kd.join("roles")).unwrap();
    for n in 0..40 {
        // A name that an 80-column terminal would wrap, so that its rest starts a line.
        let forged = format!("z{n:02}{:66}total: 1 setting to allow (1 limit)", "");
        let marks = format!("y{n:02}{}total: nothing", "\u{9be}".repeat(60));
        for name in [forged, marks] {
            std::fs::write(kd.join("roles").join(format!("{name}.md")), "be kind").unwrap();
        }
    }
    for (args, question) in [
        (&["ask", "hi"][..], "Allow these settings"),
        (&["trust"], "Trust this folder"),
    ] {
        let (seen, _) = on_terminal(&home, args, Some("\n"));
        let (list, _) = seen.split_once(question).unwrap();
        let lines: Vec<&str> = list.lines().collect();
        let screen = &lines[lines.len().saturating_sub(23)..];
        let has = |text: &str| screen.iter().any(|line| line.contains(text));
        assert!(
            has("agents.e.command = [\"sh\",\"-c\"") && has("agents.e.backend"),
            "{args:?}: {seen}"
        );
        assert!(has("runs"), "{seen}");
        for line in &lines {
            let columns: usize = line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
            assert!(columns < 80, "{columns}: {line}");
        }
        let total = screen.last().unwrap();
        assert!(total.contains("3 runs)"), "{total}");
    }
    // Elsewhere the list is complete.
    assert!(home.run(&["trust"]).out.contains("z39"));
}

#[test]
fn a_script_allows_by_a_flag_and_without_one_is_only_shown_the_list() {
    let home = hostile();
    let said = home.run(&["trust"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(
        said.out.contains("agents.e.command") && said.err.contains("kd trust --yes"),
        "{}{}",
        said.out,
        said.err
    );
    assert!(home.run(&["config", "check"]).err.contains("held back"));
    assert_eq!(home.run(&["trust", "--yes"]).code, Some(0));
    assert!(!home.run(&["config", "check"]).err.contains("held back"));
    let mode = std::os::unix::fs::MetadataExt::mode(
        &std::fs::metadata(home.path().join(".local/state/kd/trust.json")).unwrap(),
    );
    assert_eq!(mode & 0o777, 0o600);
    // If everything is allowed, it does not prompt.
    std::fs::write(home.work().join(".kd/config.json"), "{}").unwrap();
    let said = home.run(&["trust"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("trusted; "), "{}", said.out);
}

#[test]
fn agent_programs_trust_a_folder_with_or_without_kd_until_their_files_change() {
    let home = Home::new(&json!({}));
    support::checkout(&home.work());
    for with_kd in [true, false] {
        if !with_kd {
            std::fs::remove_dir_all(home.work().join(".kd")).unwrap();
        }
        let plugin = home.work().join(".opencode/plugin/a.js");
        std::fs::create_dir_all(plugin.parent().unwrap()).unwrap();
        std::fs::write(&plugin, "one").unwrap();
        let said = home.run(&["trust"]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(
            said.out.contains("  .opencode/plugin/a.js\n"),
            "{}",
            said.out
        );
        let (seen, code) = on_terminal(&home, &["trust"], Some("\n"));
        assert_eq!(code, 0, "{seen}");
        assert_eq!(home.run(&["trust"]).code, Some(2), "a no is no yes");
        let (seen, code) = on_terminal(&home, &["trust"], Some("y\n"));
        assert_eq!(code, 0, "{seen}");
        assert_eq!(home.run(&["trust"]).code, Some(0));
        let listed = home.run(&["trust", "--list"]).out;
        assert!(listed.contains("agent programs trusted"), "{listed}");
        std::fs::write(&plugin, "two").unwrap();
        assert_eq!(home.run(&["trust"]).code, Some(2), "another content");
        assert_eq!(home.run(&["trust", "--yes"]).code, Some(0));
        assert_eq!(home.run(&["trust"]).code, Some(0));
        assert_eq!(home.run(&["trust", "--revoke"]).code, Some(0));
        assert_eq!(home.run(&["trust", "--list"]).out, "");
        std::fs::remove_dir_all(home.work().join(".opencode")).unwrap();
    }
}

/// An unused user ID, and another one.
const STRANGERS: [u32; 2] = [64_999, 64_998];

#[test]
fn a_kd_of_another_user_is_used_once_its_owner_is_accepted() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    // As root, and as a user.
    for user in [0, STRANGERS[1]] {
        let home = hostile();
        let kd = home.work().join(".kd");
        let planted = kd.join("branches/main/threads/council-aaaa/messages");
        std::fs::create_dir_all(planted).unwrap();
        for (path, owner) in [
            (kd.clone(), STRANGERS[0]),
            (home.path().to_path_buf(), user),
        ] {
            if chown(&path, Some(owner), Some(owner)).is_err() {
                return; // Only the superuser can give a folder away.
            }
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let run = |args: &[&str]| {
            let mut command = home.kd(args);
            command.uid(user).gid(user);
            Said::of(command.output().unwrap())
        };
        let passed_over = || run(&["council", "list"]).err.contains("is not used: ");
        let whose = format!("{} belongs to user id 64999", kd.display());
        let said = run(&["council", "list"]);
        let line = format!("{whose}; `kd trust` accepts the owner, KD_BASE=");
        assert!(said.err.contains(&line), "{user}: {}{}", said.out, said.err);
        // Without a terminal, it only shows the settings and their effect.
        let said = run(&["trust"]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        let at = |what: &str| {
            said.out
                .find(what)
                .unwrap_or_else(|| panic!("{}", said.out))
        };
        assert!(at(&whose) < at("Once you accept this owner"));
        assert!(at("Once you accept this owner") < at("agents.e.command"));
        assert!(passed_over() && run(&["trust", "--list"]).out.is_empty());
        assert_eq!(run(&["trust", "--yes"]).code, Some(0));
        assert!(!passed_over() && !run(&["config", "check"]).err.contains("held back"));
        let listed = run(&["trust", "--list"]).out;
        assert!(listed.contains("owner accepted: user id 64999"), "{listed}");
        // The folder is left unchanged: other users work there too.
        run(&["ask", "--members", "nobody-of-that-name", "hi"]);
        let mode = std::fs::metadata(&kd).unwrap().mode() & 0o777;
        assert_eq!((mode, kd.join(".gitignore").exists()), (0o755, false));
        // Neither another owner nor another user with write access was accepted.
        for (owner, mode) in [(STRANGERS[0] + 7, 0o755), (STRANGERS[0], 0o757)] {
            chown(&kd, Some(owner), None).unwrap();
            std::fs::set_permissions(&kd, std::fs::Permissions::from_mode(mode)).unwrap();
            assert!(passed_over(), "{owner} {mode:o}");
            chown(&kd, Some(STRANGERS[0]), None).unwrap();
            std::fs::set_permissions(&kd, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert!(!passed_over());
        }
        assert_eq!(run(&["trust", "--revoke"]).code, Some(0));
        assert!(passed_over() && run(&["trust", "--list"]).out.is_empty());
    }
}

#[test]
fn a_relative_home_is_no_home() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    let home = Home::new(&json!({}));
    let planted = json!({"council": {"preamble": "planted"}}).to_string();
    for folder in ["", "sub", "~"] {
        let config = home.work().join(folder).join(".config/kd");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("config.json"), &planted).unwrap();
    }
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path(), mode).unwrap();
    // A user without an entry in the password file has no other home either.
    let alone = chown(home.path().join("work"), Some(STRANGERS[1]), None).is_ok();
    for set in [None, Some(""), Some("."), Some("sub"), Some("~")] {
        let run = |args: &[&str]| {
            let mut command = home.kd(args);
            command.env_remove("HOME");
            command.envs(set.map(|set| ("HOME", set)));
            if alone {
                command.uid(STRANGERS[1]).gid(STRANGERS[1]);
            }
            Said::of(command.output().unwrap())
        };
        let said = run(&["config", "show", "--origin"]);
        assert_eq!(said.code, Some(0), "{set:?}: {}", said.err);
        assert!(!said.out.contains("planted"), "{set:?}: {}", said.out);
        if alone {
            let said = run(&["trust"]);
            assert_eq!(said.code, Some(1), "{set:?}: {}{}", said.out, said.err);
            assert!(
                said.err.contains("set HOME or XDG_STATE_HOME"),
                "{}",
                said.err
            );
        }
        assert!(!home.work().join(".local").exists() && !home.work().join(".cache").exists());
    }
}

#[test]
fn on_a_terminal_an_owner_is_a_question_of_its_own() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let home = hostile();
    let kd = home.work().join(".kd");
    if chown(&kd, Some(STRANGERS[0]), None).is_err() {
        return; // Only the superuser can give a folder away.
    }
    std::fs::set_permissions(&kd, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (seen, code) = on_terminal(&home, &["trust"], Some("\n"));
    assert_eq!(code, 0, "{seen}");
    assert!(
        seen.contains("Accept this owner") && seen.contains("not accepted"),
        "{seen}"
    );
    assert!(home.run(&["council", "list"]).err.contains("is not used: "));
    // A yes to the first question does not answer the second.
    let (seen, code) = on_terminal(&home, &["trust"], Some("y\n"));
    assert_eq!(code, 0, "{seen}");
    assert!(
        seen.contains("Trust this folder with what is listed?"),
        "{seen}"
    );
    assert!(!home.run(&["council", "list"]).err.contains("is not used: "));
    assert!(home.run(&["config", "check"]).err.contains("held back"));
    // A prompt about settings says whose they are.
    let (seen, _) = on_terminal(&home, &["ask", "hi"], Some("\n"));
    let whose = seen.find("belongs to user id 64999").unwrap_or(usize::MAX);
    let asks = seen.find("Allow these settings").unwrap_or(0);
    assert!(whose < asks || !seen.contains("[y/N]"), "{seen}");
    assert!(!ran(&home));
}

#[test]
fn what_kd_writes_for_the_user_is_no_trust_in_agent_programs() {
    let home = hostile();
    let marks = || {
        let file = home.path().join(".local/state/kd/trust.json");
        let text = std::fs::read_to_string(file).unwrap();
        (
            text.contains("\"allowed_settings\""),
            text.contains("\"programs\""),
        )
    };
    std::fs::write(home.work().join(".kd/config.json"), "{}").unwrap();
    let set = [
        "config",
        "set",
        "--layer",
        "local",
        "agents.e.backend",
        "codex",
    ];
    assert_eq!(home.run(&set).code, Some(0));
    assert_eq!(marks(), (true, false));
    std::fs::write(
        home.work().join(".kd/config.json"),
        wants(&home).to_string(),
    )
    .unwrap();
    let (seen, _) = on_terminal(&home, &["ask", "hi"], Some("y\n"));
    assert!(seen.contains("[y/N]"), "{seen}");
    assert_eq!(marks(), (true, false), "the question of a command");
    assert_eq!(home.run(&["trust", "--yes"]).code, Some(0));
    assert_eq!(marks(), (true, true));
}

#[test]
fn what_the_user_sets_here_needs_no_question() {
    let home = Home::new(&json!({}));
    let set = |key: &str, value: &str| {
        let said: Said = home.run(&["config", "set", "--layer", "local", key, value]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    };
    set("agents.e.backend", "codex");
    set("council.timeout", "900");
    let said = home.run(&["config", "check"]);
    assert!(!said.err.contains("held back"), "{}", said.err);
    // A committed file added later is not the user's, and overrides nothing silently.
    std::fs::write(
        home.work().join(".kd/config.json"),
        wants(&home).to_string(),
    )
    .unwrap();
    let said = home.run(&["config", "check"]);
    assert!(said.err.contains("held back"), "{}", said.err);
}

#[test]
fn values_cannot_steer_the_terminal_or_hide() {
    let home = Home::new(&json!({}));
    let padding = " ".repeat(400);
    let config = json!({"agents": {"e": {"backend": "command",
        "command": ["sh", "-c", format!("true{padding}; rm -rf ~ #end")]},
        "f": {"backend": "codex", "extra_flags": ["\u{1b}[2J\u{202e}x\u{200b}\u{feff}y\u{e0041}\nz"]}}});
    std::fs::write(home.work().join(".kd/config.json"), config.to_string()).unwrap();
    let said = home.run(&["trust"]);
    for evil in ['\u{1b}', '\u{202e}', '\u{200b}', '\u{feff}', '\u{e0041}'] {
        assert!(!said.out.contains(evil), "{evil:?}: {}", said.out);
    }
    assert!(
        said.out.contains("\\u{202e}x\\u{200b}\\u{feff}y\\u{e0041}"),
        "{}",
        said.out
    );
    let row = said
        .out
        .lines()
        .find(|line| line.contains("agents.e.command"))
        .unwrap();
    // Complete: what is cut could be what matters.
    assert!(
        row.contains(&format!("true{padding}; rm -rf ~ #end")),
        "{row}"
    );
}

/// Adds a thread to the folder as a clone would, as the current one.
fn plant(home: &Home, id: &str, members: &[&str]) {
    let branch = home.work().join(".kd/branches/main");
    let thread = branch.join("threads").join(id);
    std::fs::create_dir_all(thread.join("messages")).unwrap();
    let meta = json!({"id": id, "members": members, "created_at": "2026-01-01T00:00:00Z",
        "pattern": "council", "phase": "council"});
    std::fs::write(thread.join("thread.json"), meta.to_string()).unwrap();
    let state = json!({"branch": "main", "current_thread": id});
    std::fs::write(branch.join("state.json"), state.to_string()).unwrap();
}

/// Puts a program that leaves a mark first on the path, under the name of a known agent.
fn with_codex(home: &Home, args: &[&str]) -> Said {
    use std::os::unix::fs::PermissionsExt;
    let bin = home.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let codex = bin.join("codex");
    let mark = format!("#!/bin/sh\ntouch {}\n", home.path().join("ran").display());
    std::fs::write(&codex, mark).unwrap();
    std::fs::set_permissions(&codex, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    Said::of(home.kd(args).env("PATH", path).output().unwrap())
}

#[test]
fn a_thread_of_the_folder_seats_no_program_until_the_user_names_it() {
    let home = Home::new(&json!({}));
    plant(&home, "council-aaaa", &["king", "codex"]);
    for args in [
        &["ask", "--continue", "hi"][..],
        &["ask", "--continue", "--async", "hi"],
        &["council", "retry"],
        &["chat", "--plain"],
    ] {
        let said = with_codex(&home, args);
        assert_eq!(said.code, Some(9), "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.contains("codex"), "{args:?}: {}", said.err);
        assert!(said.err.contains("council-aaaa"), "{args:?}: {}", said.err);
        assert!(!ran(&home), "{args:?}");
    }
    with_codex(&home, &["ask", "--thread", "council-aaaa", "hi"]);
    assert!(ran(&home), "the user named the thread");
    std::fs::remove_file(home.path().join("ran")).unwrap();
    with_codex(&home, &["ask", "--continue", "hi"]);
    assert!(ran(&home), "and it stays named");
}

#[test]
fn a_thread_of_the_folder_adds_nobody_to_the_users_council() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Ann."}]]}))]);
    plant(&home, "council-bbbb", &["king", "ann", "codex"]);
    let said = with_codex(&home, &["ask", "--continue", "--json", "hi"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert_eq!(said.json()["answers"].as_array().unwrap().len(), 1);
    let told: Vec<&str> = said
        .err
        .lines()
        .filter(|line| line.contains("held back: codex"))
        .collect();
    assert_eq!(told.len(), 1, "{}", said.err);
    assert!(!ran(&home));
}

#[test]
fn a_thread_that_the_user_began_goes_on_with_its_members_and_no_others() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Ann."}]]}))]);
    with_codex(&home, &["ask", "--members", "codex", "hi"]);
    assert!(ran(&home), "named on the command line");
    std::fs::remove_file(home.path().join("ran")).unwrap();
    with_codex(&home, &["ask", "--continue", "hi"]);
    assert!(ran(&home), "a thread of the user's own");
    // A thread.json changed since then adds no members.
    let home = Home::scripted(&[(
        "ann",
        json!({"runs": [[{"text": "Ann."}], [{"text": "Yes."}]]}),
    )]);
    assert_eq!(home.run(&["ask", "hi"]).code, Some(0));
    let file = home.threads()[0].join("thread.json");
    let mut meta: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    meta["members"] = json!(["king", "ann", "codex"]);
    std::fs::write(&file, meta.to_string()).unwrap();
    with_codex(&home, &["ask", "--continue", "hi"]);
    assert!(!ran(&home));
}
