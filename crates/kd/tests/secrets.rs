//! Secrets in questions and answers, through the real program with scripted members.

use crate::support;

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use support::{Home, Said, git};

/// Assembled here, so that no file of the repository contains what looks like a key.
fn token() -> String {
    format!("gh{}_{}", "p", "a7Kq2ZmR9xLw4VtB8nYc3HdP6sGf5JjTe1Uy")
}

fn echoes() -> Value {
    let run = json!(["echo", {"finish": {}}]);
    json!({"runs": [run, run, run, run, run, run]})
}

fn home() -> Home {
    Home::scripted(&[("ann", echoes()), ("bob", echoes())])
}

/// Returns whether a file below a folder contains a text.
fn holds(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .any(|entry| {
            let path = entry.path();
            match entry.file_type().expect("a kind") {
                kind if kind.is_dir() => holds(&path, text),
                kind if kind.is_file() => {
                    let bytes = fs::read(&path).expect("read");
                    bytes
                        .windows(text.len())
                        .any(|part| part == text.as_bytes())
                }
                _ => false,
            }
        })
}

#[test]
fn a_secret_in_a_question_is_sent_to_nobody_and_written_nowhere() {
    let token = token();
    let question = format!("Is {token} still valid?");
    let rows: [&[&str]; 4] = [
        &["ask"],
        &["ask", "--async"],
        &["think"],
        &["deliberate", "--planning", "static"],
    ];
    for args in rows {
        let home = home();
        let said = Said::fed(home.kd(args), &question);
        if args.contains(&"--async") {
            home.run(&["council", "watch"]);
        }
        let shown = format!("{}{}", said.out, said.err);
        assert!(!shown.contains(&token), "{args:?}: {shown}");
        let line = "masked 1 secret (GitHub token); --allow-secrets sends it";
        assert_eq!(shown.matches(line).count(), 1, "{args:?}: {shown}");
        // A deliberation does not show its question, but its thread contains it.
        assert!(holds(&home.work(), "[secret: github-token]"), "{args:?}");
        assert!(!holds(home.path(), &token), "{args:?}");
    }
}

#[test]
fn allowed_secrets_are_sent_as_they_are() {
    let (token, home) = (token(), home());
    let args = ["ask", "--allow-secrets"];
    let said = Said::fed(home.kd(&args), &format!("Is {token} valid?"));
    assert!(said.out.contains(&token), "{}", said.out);
    assert!(!said.err.contains("masked"), "{}", said.err);
}

#[test]
fn a_chat_masks_what_is_typed() {
    let (token, home) = (token(), home());
    let args = ["chat", "--plain", "--new"];
    let said = Said::fed(home.kd(&args), &format!("look: {token}\n/quit\n"));
    assert!(!said.out.contains(&token), "{}", said.out);
    assert!(said.out.contains("kd: masked 1 secret"), "{}", said.out);
    assert!(!holds(home.path(), &token));
}

#[test]
fn a_secret_in_an_answer_is_masked_also_when_it_comes_in_pieces() {
    let token = token();
    let (a, b) = token.split_at(11);
    let run = json!([{"text": format!("Use {a}")}, {"sleep_ms": 30}, {"text": format!("{b} now")}, {"finish": {}}]);
    let home = Home::scripted(&[("ann", json!({"runs": [run]}))]);
    let said = home.run(&["ask", "--jsonl", "Which?"]);
    assert!(
        !said.out.contains(a) && !said.out.contains(b),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("Use ghp_[secret: github-token] now"),
        "{}",
        said.out
    );
    assert!(!holds(&home.work(), b));
}

#[test]
fn the_value_of_a_configured_variable_is_masked() {
    let home = home();
    let text = fs::read_to_string(home.config_file()).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["providers"] = json!({"own": {"wire": "openai", "base_url": "http://127.0.0.1:9/v1", "key_env": "OWN_KEY"}});
    fs::write(home.config_file(), config.to_string()).expect("written");
    let mut command = home.kd(&["ask", "Why is plain-words-as-a-key refused?"]);
    let said = Said::of(
        command
            .env("OWN_KEY", "plain-words-as-a-key")
            .output()
            .expect("it runs"),
    );
    assert!(
        said.out
            .contains("Why is pl[secret: configured-key] refused?"),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("masked 1 secret (configured key)"),
        "{}",
        said.err
    );
}

#[test]
fn a_secret_in_a_reviewed_change_is_masked() {
    let token = token();
    // A finding counts only if its quoted line is in the change as members see it.
    let quote = "const T: &str = \"ghp_[secret: github-token]\";";
    let finding = json!({
        "file": "a.rs", "lines": {"first": 1, "last": 1}, "quote": quote, "claim": "A token is in the code.",
        "severity": "major", "evidence": "Everybody reads it.", "change": "remove it",
    });
    let votes = json!([{"id": "A", "vote": "real"}]);
    let text = json!({"findings": [finding], "votes": votes, "pairs": []}).to_string();
    let says = json!({"runs": [[{"text": text}, {"finish": {}}]]});
    let home = Home::scripted(&[("ann", says.clone()), ("bob", says)]);
    git(&home, &["init", "-q"]);
    fs::write(home.work().join("a.rs"), "fn a() {}\n").expect("written");
    git(&home, &["add", "a.rs"]);
    git(&home, &["commit", "-qm", "a"]);
    fs::write(
        home.work().join("a.rs"),
        format!("const T: &str = \"{token}\";\n"),
    )
    .expect("written");
    let prose = home.run(&["council", "review", "--base", "HEAD"]);
    assert!(prose.err.contains("masked 1 secret"), "{}", prose.err);
    let said = home.run(&["review"]);
    assert!(said.err.contains("masked 1 secret"), "{}", said.err);
    assert!(!said.out.contains(&token) && !said.err.contains(&token));
    assert!(said.out.contains("A token is in the code."), "{}", said.out);
    assert!(!holds(&home.work().join(".kd"), &token));
}

#[test]
fn a_redacted_export_holds_no_keys_no_home_and_no_user_name() {
    let (token, home) = (token(), home());
    let folder = home.path().display().to_string();
    let question = format!("Why is {token} in {folder}/notes of zebulon, or in /home/other/x?");
    let args = ["ask", "--allow-secrets"];
    assert_eq!(Said::fed(home.kd(&args), &question).code, Some(0));
    assert_eq!(home.run(&["fork", "--stay"]).code, Some(0));
    for args in [
        &["export", "--redact"][..],
        &["export", "--redact", "--format", "json"],
        &["export", "--redact", "--tree", "--format", "json"],
    ] {
        let plain: Vec<&str> = args.iter().copied().filter(|a| *a != "--redact").collect();
        let plain = home.run(&plain).out;
        let said = Said::of(home.kd(args).env("USER", "zebulon").output().expect("runs"));
        assert_eq!(said.code, Some(0), "{}", said.err);
        for private in [token.as_str(), folder.as_str(), "zebulon", "/home/other"] {
            assert!(plain.contains(private), "{args:?}: {private}: {plain}");
            assert!(
                !said.out.contains(private),
                "{args:?}: {private}: {}",
                said.out
            );
        }
        let wanted = "ghp_[secret: github-token] in ~/notes of [user], or in ~/x?";
        assert!(said.out.contains(wanted), "{}", said.out);
        assert!(said.err.starts_with("redacted "), "{}", said.err);
        if args.len() > 2 {
            said.json();
        }
    }
}

#[test]
fn a_secret_in_a_text_of_a_forum_is_stored_nowhere() {
    let (token, home) = (token(), home());
    assert_eq!(
        home.run(&["forum", "post", "Bees", "They dance."]).code,
        Some(0)
    );
    assert_eq!(
        home.run(&["forum", "role", "king", "voter", "takes part"])
            .code,
        Some(0)
    );
    let text = format!("Use {token} now");
    let rows: [&[&str]; 11] = [
        &["post", &text, "Why?"],
        &["post", "Why?", &text],
        &["reply", "1", &text],
        &["edit", "1", &text],
        &["propose", "text", "Greet", "--reason", &text],
        &["propose", "text", &text, "--reason", "so", "--as", "bea"],
        &["vote", "1", "yes", "--reason", &text],
        &["charter", &text],
        &["charter", "Bees.", "--reason", &text],
        &["rules", "post_chars_max", "2000", &text],
        &["hide", "2", &text],
    ];
    for args in rows {
        let said = home.run(&[&["forum"], args].concat());
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        // The reason of an order has no option that keeps secrets.
        let advice = match args[0] {
            "hide" => "",
            _ => "; --allow-secrets keeps secrets",
        };
        let told = format!("masked 1 secret (GitHub token){advice}\n");
        assert_eq!(said.err, told, "{args:?}");
        assert!(!holds(home.path(), &token), "{args:?}");
        assert!(holds(&home.work(), "[secret: github-token]"), "{args:?}");
    }
    let allowed = ["forum", "post", "Why?", &text, "--allow-secrets"];
    let said = home.run(&allowed);
    assert!(said.code == Some(0) && said.err.is_empty(), "{}", said.err);
    assert!(holds(home.path(), &token));
}

#[test]
fn a_secret_in_a_plan_is_sent_to_nobody_and_written_nowhere() {
    let token = token();
    for how in [
        &["deliberate", "--plan"][..],
        &["batch", "run", "q.txt", "--as"],
    ] {
        let home = home();
        let member =
            json!({"model": "ann", "role": "opinion-giver", "persona": format!("Knows {token}")});
        let plan = json!({"council": {"size": 2, "members": [member, {"model": "bob", "role": "opinion-giver"}]}});
        let file = home.path().join("plan.json");
        fs::write(&file, plan.to_string()).expect("written");
        fs::write(home.work().join("q.txt"), "Which day?\n").expect("written");
        let path = file.display().to_string();
        let mut args = [how, &[&path]].concat();
        if how[0] == "deliberate" {
            args.push("Which day?");
        }
        let said = home.run(&args);
        fs::remove_file(&file).expect("removed");
        let shown = format!("{}{}", said.out, said.err);
        assert!(
            shown.contains("masked 1 secret (GitHub token)"),
            "{args:?}: {shown}"
        );
        assert!(!shown.contains(&token), "{args:?}: {shown}");
        assert!(!holds(home.path(), &token), "{args:?}");
    }
}
