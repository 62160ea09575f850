//! Every command that asks members treats a user who has configured nothing alike.

use super::{Terminal, bare, own_file, with_claude};
use crate::support::{Home, Said};
use kd_backends::delivery::catalog;
use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::UNIX_EPOCH;

fn questions(home: &Home) {
    std::fs::write(home.work().join("q.txt"), "Which?\n").expect("written");
}

/// Puts a file in the place of the demo model that passes for a verified one. Members fail when they read it.
fn with_demo_model(home: &Home) {
    let model = catalog::DEFAULT;
    let folder = home.path().join(".cache/kd/models");
    std::fs::create_dir_all(&folder).expect("made");
    let path = folder.join(format!("{}.gguf", model.sha256));
    let file = File::create(&path).expect("created");
    file.set_len(model.bytes).expect("sized");
    let changed = file.metadata().and_then(|meta| meta.modified());
    let changed = changed
        .expect("a time")
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let seen = format!(
        "{}\t{}\t{}\n",
        path.display(),
        model.bytes,
        changed.as_nanos()
    );
    std::fs::write(folder.join(format!("{}.seen", model.sha256)), seen).expect("written");
}

#[test]
fn every_command_that_asks_first_asks_who_answers() {
    let home = bare();
    questions(&home);
    let path = with_claude(&home, "Never asked.");
    for args in [
        &["think", "Which?"][..],
        &["deliberate", "Which?"],
        &["batch", "run", "q.txt", "-o", "r.jsonl"],
        &["batch", "run", "q.txt", "--as", "think"],
    ] {
        let mut terminal = Terminal::open(&home, args, &[("PATH", &path)]);
        terminal.wait_for(&["Who should answer?", "q quits.\n>"]);
        terminal.press("q");
        let (code, shown) = terminal.end();
        assert_eq!(code, 130, "{args:?}: {shown}");
        assert!(!own_file(&home).exists(), "{args:?}");
    }
    // Not if the command says who answers, or a program reads the output.
    for args in [
        &["think", "--fast", "skeptic", "Which?"][..],
        &["think", "--json", "Which?"],
        &["deliberate", "-m", "skeptic,pragmatist,explorer", "Which?"],
        &["deliberate", "--dry-run", "Which?"],
        &["batch", "run", "q.txt", "--attempts", "1", "-m", "skeptic"],
        &["batch", "run", "q.txt", "--dry-run"],
    ] {
        let env = [("PATH", path.as_str()), ("KD_OFFLINE", "1")];
        let (_, shown) = Terminal::open(&home, args, &env).end();
        assert!(!shown.contains("Who should answer?"), "{args:?}: {shown}");
    }
}

#[test]
fn the_demo_model_is_told_wherever_it_answers() {
    let home = bare();
    questions(&home);
    with_demo_model(&home);
    let told = "built-in model answers for all members";
    for args in [
        &["ask", "Which?"][..],
        &["think", "Which?"],
        &["deliberate", "Which?"],
        &["batch", "run", "q.txt", "--fresh", "--attempts", "1"],
    ] {
        let said = Said::of(home.kd(args).output().expect("it runs"));
        assert_eq!(said.err.matches(told).count(), 1, "{args:?}: {}", said.err);
        let quiet = Said::of(home.kd(args).arg("--quiet").output().expect("it runs"));
        assert!(!quiet.err.contains(told), "{args:?}: {}", quiet.err);
    }
    for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["mcp"]] {
        let mut command = home.kd(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let err = BufReader::new(child.stderr.take().expect("piped"));
        let first = err.lines().next().expect("a line").expect("text");
        assert!(first.contains(told), "{args:?}: {first}");
        child.kill().expect("it ran");
        child.wait().expect("it ends");
    }
    // On the screen of the chat, not behind it.
    let mut chat = Terminal::open(&home, &[], &[]);
    chat.wait_for(&["Enter: send", "built-in model answers for all members"]);
    chat.press("/quit\r");
    let (code, shown) = chat.end();
    assert_eq!(code, 0, "{shown}");
    // A model that was chosen is not a demo.
    let set = [
        "config",
        "set",
        "--layer",
        "user",
        "local.model",
        "smollm2-135m",
    ];
    assert_eq!(home.run(&set).code, Some(0));
    for command in ["ask", "think", "deliberate"] {
        let said = home.run(&[command, "Which?"]);
        assert!(!said.err.contains(told), "{command}: {}", said.err);
    }
}

/// A larger model that cannot be downloaded is not the answer to the question.
#[test]
fn a_larger_model_is_saved_once_it_is_here() {
    let home = bare();
    let path = with_claude(&home, "Never asked.");
    let env = [("PATH", path.as_str()), ("KD_OFFLINE", "1")];
    let mut terminal = Terminal::open(&home, &["ask", "Which?"], &env);
    terminal.wait_for(&["3) a larger local model", "q quits.\n>"]);
    terminal.press("3");
    terminal.wait_for(&["KD_OFFLINE is set"]);
    // The same question again.
    terminal.wait_until("a second question", |shown| {
        shown.matches("q quits.\n>").count() == 2
    });
    terminal.press("q");
    terminal.wait_for(&["nothing was changed"]);
    let (code, shown) = terminal.end();
    assert_eq!(code, 130, "{shown}");
    assert!(!shown.contains("from now on"), "{shown}");
    assert!(!own_file(&home).exists());
    assert!(home.threads().is_empty());
}

/// A key of a gateway goes to the gateway: from the question to the request.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_environment_goes_where_the_environment_says() {
    use kd_fake::{Fake, Reply, Script, Wire};
    let script = Script::always(Wire::OpenAi, Reply::words(&["Seven."]));
    let gateway = Fake::start(script).await.expect("loopback");
    let base = format!("{}/v1", gateway.url());
    let env = [
        ("OPENAI_API_KEY", "sk-gateway"),
        ("OPENAI_BASE_URL", base.as_str()),
    ];

    // Without a question, by the name of the service.
    let home = Home::new(&json!({"agents": {"gpt": {"backend": "openai", "model": "m"}}}));
    let mut named = home.kd(&["ask", "-m", "gpt", "Which?"]);
    let named = Said::of(named.envs(env).output().expect("it runs"));
    assert_eq!(named.code, Some(0), "{}", named.err);
    assert!(named.out.contains("Seven."), "{}", named.out);

    let home = bare();
    let mut terminal = Terminal::open(&home, &["ask", "Which?"], &env);
    terminal.wait_for(&[
        "with the key OPENAI_API_KEY",
        "http://127.0.0.1:",
        "q quits.\n>",
    ]);
    terminal.press("1");
    let (code, shown) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    let written = std::fs::read_to_string(own_file(&home)).expect("written");
    assert!(
        written.contains(&base) && !written.contains("sk-gateway"),
        "{written}"
    );
    let seen = gateway.seen();
    assert!(
        seen.len() >= 5,
        "one answer, three answers and a conclusion: {}",
        seen.len()
    );

    // An address that cannot be used is not replaced by the vendor's.
    let home = bare();
    let odd = [
        ("OPENAI_API_KEY", "sk-gateway"),
        ("OPENAI_BASE_URL", "gateway"),
    ];
    let init = Said::of(
        home.kd(&["init", "--yes"])
            .envs(odd)
            .output()
            .expect("it runs"),
    );
    assert!(
        init.err.contains("found nothing that can answer"),
        "{}",
        init.err
    );
}
