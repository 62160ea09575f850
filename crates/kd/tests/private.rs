//! Private questions reach no member beyond this machine, through the real program. A remote service is at an address
//! that no test may contact: being asked would fail the test.

use crate::support;

use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use support::{Home, Said, git};

/// Creates a local member, a remote one, and an agent program that records that it was started.
fn home() -> Home {
    let says = json!({"runs": [["echo"]]});
    let home = Home::scripted(&[("ann", says.clone()), ("bob", says)]);
    let text = fs::read_to_string(home.config_file()).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    let noted = home.path().join("started");
    let program = format!("touch {}", noted.display());
    config["providers"] =
        json!({"far": {"wire": "openai", "base_url": "https://far.invalid/v1", "model": "m"}});
    config["agents"]["eve"] = json!({"backend": "far"});
    config["agents"]["zed"] = json!({"backend": "command", "command": ["sh", "-c", program]});
    config["council"]["review_members"] = json!(["ann", "eve", "zed"]);
    config["deliberation"] = json!({"memory": {"longTerm": true}});
    fs::write(home.config_file(), config.to_string()).expect("written");
    home
}

/// Checks that no member was asked and no thread was left.
fn refused(home: &Home, said: &Said, what: &str) {
    assert_eq!(said.code, Some(2), "{what}: {}", said.err);
    assert!(said.err.contains("private"), "{what}: {}", said.err);
    assert!(said.err.contains("localhost"), "{what}: {}", said.err);
    assert!(!home.path().join("started").exists(), "{what}");
}

#[test]
fn whoever_answers_elsewhere_is_refused_before_anything_is_written() {
    for member in ["eve", "zed"] {
        let both = format!("ann,{member}");
        let rows: [&[&str]; 8] = [
            &["ask", "-m", &both, "Which?"],
            &["ask", "--async", "-m", &both, "Which?"],
            &["think", "--fast", "ann", "--rigorous", member, "Which?"],
            &["deliberate", "-m", &both, "Is it so? yes or no"],
            &["deliberate", "--planning", "llm", "-m", &both, "Is it so?"],
            &["chat", "--new", "-m", &both],
            &["review", "-m", &both],
            &["council", "review", "--base", "HEAD"],
        ];
        for args in rows {
            let home = home();
            git(&home, &["init", "-q"]);
            fs::write(home.work().join("a"), "a\n").expect("written");
            git(&home, &["add", "a"]);
            git(&home, &["commit", "-qm", "a"]);
            fs::write(home.work().join("a"), "b\n").expect("written");
            let line: Vec<&str> = args.iter().copied().chain(["--private"]).collect();
            let said = Said::fed(home.kd(&line), "Which?\n");
            refused(&home, &said, &format!("{args:?}"));
            assert!(home.threads().is_empty(), "{args:?} left a thread");
        }
    }
}

#[test]
fn a_private_thread_stays_private() {
    let home = home();
    let said = home.run(&["ask", "--private", "-m", "ann,bob", "Which?"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for args in [&["council", "list"][..], &["show"], &["export"]] {
        let plain = home.run(args).out;
        assert!(plain.contains("private"), "{args:?}: {plain}");
    }
    for args in [&["council", "list", "--json"][..], &["show", "--json"]] {
        let told = home.run(args).out;
        assert!(told.contains("\"private\": true"), "{args:?}: {told}");
    }
    let threads = home.threads();
    let rows: [(&[&str], &str); 5] = [
        (&["ask", "--continue", "-m", "ann,eve", "And now?"], ""),
        (&["ask", "--continue", "-m", "ann,zed", "And now?"], ""),
        (
            &[
                "think",
                "--continue",
                "--fast",
                "ann",
                "--rigorous",
                "eve",
                "And now?",
            ],
            "",
        ),
        (&["chat", "-m", "ann,eve"], "And now?\n"),
        (&["chat", "-m", "ann,zed"], "And now?\n"),
    ];
    for (args, input) in rows {
        let said = Said::fed(home.kd(args), input);
        refused(&home, &said, &format!("{args:?}"));
    }
    assert_eq!(home.threads(), threads, "a thread was left");
    let count = || fs::read_dir(&threads[0]).expect("there").count();
    let before = count();
    // A fork of it is private too.
    assert_eq!(home.run(&["fork"]).code, Some(0));
    let said = home.run(&["ask", "--continue", "-m", "eve", "And now?"]);
    refused(&home, &said, "the fork");
    assert_eq!(count(), before);
    // Local members may be asked, and the flag makes a thread private.
    let open = home.run(&["ask", "-m", "ann", "Open?"]);
    assert!(!home.run(&["show"]).out.contains("private"));
    assert_eq!(open.code, Some(0), "{}", open.err);
    let said = home.run(&["ask", "--continue", "--private", "-m", "bob", "And now?"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let said = home.run(&["ask", "--continue", "-m", "eve", "And now?"]);
    refused(&home, &said, "a thread that became private");
}

#[test]
fn a_private_deliberation_is_not_remembered() {
    let home = home();
    let memory = || home.run(&["memory", "show"]);
    for (flag, is_kept) in [("--private", false), ("--seed=1", true)] {
        let said = home.run(&[
            "deliberate",
            flag,
            "-m",
            "ann,bob",
            "Is it the zebra? yes or no",
        ]);
        assert!(said.code.is_some_and(|code| code != 2), "{}", said.err);
        let kept = memory();
        let kept = format!("{}{}", kept.out, kept.err);
        assert_eq!(kept.contains("zebra"), is_kept, "{flag}: {kept}");
    }
}

#[test]
fn the_setting_says_it_for_every_question_and_a_folder_can_only_turn_it_on() {
    let home = home();
    let folder = home.work().join(".kd/config.json");
    fs::write(&folder, json!({"council": {"private": true}}).to_string()).expect("written");
    let said = home.run(&["ask", "-m", "ann,eve", "Which?"]);
    refused(&home, &said, "the folder's setting");
    fs::write(&folder, json!({"council": {"private": false}}).to_string()).expect("written");
    let text = fs::read_to_string(home.config_file()).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["council"]["private"] = json!(true);
    fs::write(home.config_file(), config.to_string()).expect("written");
    let said = home.run(&["ask", "-m", "ann,eve", "Which?"]);
    refused(&home, &said, "the user's setting");
}

/// A `.kd` made by hand, or cloned, becomes private with the first command that writes a thread there.
#[test]
fn every_command_protects_a_kd_that_was_there_before() {
    let says = json!({"runs": [["echo"]]});
    let home = Home::scripted(&[("ann", says.clone()), ("bob", says)]);
    git(&home, &["init", "-q"]);
    fs::write(home.work().join("a"), "a\n").expect("written");
    git(&home, &["add", "a"]);
    git(&home, &["commit", "-qm", "a"]);
    fs::write(home.work().join("a"), "b\n").expect("written");
    fs::write(home.work().join("q.txt"), "Which?\n").expect("written");
    let kd = home.work().join(".kd");
    let open = || {
        let _ = fs::remove_file(kd.join(".gitignore"));
        fs::set_permissions(&kd, Permissions::from_mode(0o755)).expect("set");
    };
    let rows: [&[&str]; 16] = [
        &["ask", "Which?"],
        &["ask", "--continue", "And now?"],
        &["ask", "--async", "Which?"],
        &["fork"],
        &["import", "../sealed.json"],
        &["council", "retry"],
        &["think", "--fast", "ann", "--rigorous", "bob", "Which?"],
        &[
            "think",
            "--continue",
            "--fast",
            "ann",
            "--rigorous",
            "bob",
            "And now?",
        ],
        &["deliberate", "-m", "ann,bob", "Is it so? yes or no"],
        &["batch", "run", "q.txt", "-o", "r.jsonl"],
        &["chat"],
        &["chat", "--new"],
        &["review", "-m", "ann,bob"],
        &["council", "review", "--base", "HEAD"],
        &["config", "set", "council.timeout", "50"],
        &["forum", "members"],
    ];
    for args in rows {
        if args[0] == "import" {
            let sealed = home.run(&["seal", "-o", "../sealed.json"]);
            assert_eq!(sealed.code, Some(0), "{}", sealed.err);
        }
        open();
        let said = Said::fed(home.kd(args), "And now?\n");
        let mode = fs::metadata(&kd).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{args:?}: {:?} {}", said.code, said.err);
        let ignored = fs::read_to_string(kd.join(".gitignore"));
        let ignored = ignored.unwrap_or_else(|e| panic!("{args:?}: {e}: {}", said.err));
        assert!(ignored.contains("*.jsonl"), "{args:?}: {ignored}");
    }
}

/// A file of this checkout that is held back, or just allowed, is none that git may get.
#[test]
fn a_kd_with_settings_that_need_consent_is_protected_at_once() {
    for args in [&["ask", "-m", "eve", "Which?"][..], &["trust", "--yes"]] {
        let home = Home::scripted(&[("ann", json!({"runs": [["echo"]]}))]);
        git(&home, &["init", "-q"]);
        let kd = home.work().join(".kd");
        let asks = json!({"agents": {"eve": {"backend": "command", "command": ["./eve"]}}, "council": {"members": ["eve"]}});
        fs::write(kd.join("config.local.json"), asks.to_string()).expect("written");
        let said = home.run(args);
        let ignored = fs::read_to_string(kd.join(".gitignore"));
        let ignored = ignored.unwrap_or_else(|e| panic!("{args:?}: {e}: {}", said.err));
        assert!(ignored.contains("*.json\n"), "{args:?}: {ignored}");
    }
}

#[test]
fn what_git_can_commit_is_told_once_in_a_checkout() {
    let home = Home::scripted(&[("ann", json!({"runs": [["echo"]]}))]);
    let told = |said: &Said| said.err.contains("git can commit the messages");
    fs::remove_dir(home.work().join(".kd")).expect("removed");
    let said = home.run(&["ask", "Which?"]);
    assert!(!told(&said), "no checkout: {}", said.err);
    fs::remove_dir_all(home.work().join(".kd")).expect("removed");
    git(&home, &["init", "-q"]);
    let said = home.run(&["ask", "Which?"]);
    assert!(told(&said), "{}", said.err);
    let seen = |home: &Home| {
        let seen = home.work();
        let seen = std::process::Command::new("git")
            .args(["status", "--short", "-uall"])
            .current_dir(seen)
            .output();
        String::from_utf8(seen.expect("git runs").stdout).expect("text")
    };
    assert!(seen(&home).contains("0001-king.md"), "{}", seen(&home));
    assert!(!told(&home.run(&["ask", "And now?"])));
    // What the line says keeps them out.
    let ignore = home.work().join(".kd/.gitignore");
    let text = fs::read_to_string(&ignore).expect("read");
    fs::write(&ignore, format!("{text}branches/\narchive/\n")).expect("written");
    assert!(!told(&home.run(&["ask", "And now?"])));
    assert_eq!(seen(&home), "?? .kd/.gitignore\n");
}

/// If `.gitignore` has no effect, git can add more than the messages: `kd` warns about that too, once.
#[test]
fn a_gitignore_without_effect_is_told_once() {
    type Breaks = fn(&std::path::Path);
    let breaks: [Breaks; 4] = [
        |kd| {
            fs::write(kd.join("elsewhere"), "*.json\n*.jsonl\n").expect("written");
            std::os::unix::fs::symlink("elsewhere", kd.join(".gitignore")).expect("linked");
        },
        |kd| fs::create_dir(kd.join(".gitignore")).expect("made"),
        |kd| {
            let lines = "*.json\n*.json.lock\n.*.lock\n*.jsonl\n*.log\n**/logs/\n**/sessions/\nworktrees/\n\
                         current\n!config.json\nforum.db*\nbatches/\n!*\n";
            fs::write(kd.join(".gitignore"), lines).expect("written");
        },
        |kd| {
            fs::write(kd.join(".gitignore"), "").expect("written");
            let overruled = "**/.kd/\n!.kd/**\n";
            fs::write(kd.parent().expect("a folder").join(".gitignore"), overruled)
                .expect("written");
        },
    ];
    for (case, broken) in breaks.iter().enumerate() {
        let home = Home::scripted(&[("ann", json!({"runs": [["echo"]]}))]);
        git(&home, &["init", "-q"]);
        let said = home.run(&["ask", "Which?"]);
        assert!(
            said.err.contains("git can commit the messages"),
            "an existing .kd is reported too: {}",
            said.err
        );
        let kd = home.work().join(".kd");
        fs::remove_file(kd.join(".gitignore")).expect("removed");
        broken(&kd);
        let told = |said: &Said| said.err.contains("git can commit everything");
        let (one, two) = (home.run(&["ask", "One?"]), home.run(&["ask", "Two?"]));
        // The lines that are missing in a sound file are added, unless it overrules them itself.
        let effect = case != 3;
        assert_eq!(told(&one), effect, "{case}: {}", one.err);
        assert!(!told(&two), "{case}: {}", two.err);
    }
}
