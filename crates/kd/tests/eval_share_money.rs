//! What `eval.share` may spend: within one budget a day for all projects and processes, within the limits of the run, and
//! nothing on members whose cost has no limit.

use crate::support;

use kd_fake::billing::{Billing, Price, Tokens};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::{Home, Said};

/// Picodollars per dollar.
const PICO: f64 = 1e12;

/// A service that bills the worst case of each request.
async fn server() -> Billing {
    let price = Price {
        input: 1_000_000,
        output: 5_000_000,
    };
    let reply = json!({"answer": "391", "confidence": 0.9, "reason": "r", "choice": "391"});
    let text = move |_: &Value, _| reply.to_string();
    Billing::answering(price, "stop", Tokens::Worst, text)
        .await
        .expect("it listens")
}

/// A council of three that shares every question, with consent.
fn home(server: &Billing, more: &Value) -> Home {
    let agent = json!({"backend": "svc"});
    let mut config = json!({
        "agents": {"ann": agent, "bob": agent, "cyd": agent},
        "council": {"members": ["ann", "bob", "cyd"]},
        "deliberation": {"protocol": "vote", "answer": "number"},
        "providers": {"svc": {"base_url": server.url(), "model": "model-1",
            "prices": {"model-1": {"input": 1.0, "output": 5.0}, "model-2": {"input": 1.0, "output": 5.0}}}},
        "eval": {"share": 1, "maxUsd": 0.06},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    let home = Home::new(&config);
    let folder = home.path().join(".local/state/kd");
    fs::create_dir_all(&folder).expect("made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("set");
    fs::write(folder.join("eval-share"), "yes 1 0.1\n").expect("written");
    home
}

/// Asks in a folder while the runtime keeps serving.
async fn ask(home: &Home, folder: &Path, more: &[&str]) -> Said {
    let args = [&["deliberate", "What is 17*23?"], more].concat();
    let mut command = home.kd(&args);
    command.current_dir(folder);
    let said = tokio::task::spawn_blocking(move || Said::fed(command, ""));
    let said = said.await.expect("it ends");
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    said
}

/// The cost of a council, and of what is asked beside it, in US dollars.
async fn costs() -> (f64, f64) {
    let server = server().await;
    let off = home(&server, &json!({"eval": {}}));
    ask(&off, &off.work(), &[]).await;
    let council = server.bill().pico_usd as f64 / PICO;
    let on = home(&server, &json!({}));
    let said = ask(&on, &on.work(), &[]).await;
    assert!(
        said.err.contains("also asked for comparison"),
        "{}",
        said.err
    );
    (
        council,
        server.bill().pico_usd as f64 / PICO - 2.0 * council,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_budget_a_day_is_for_all_projects_and_processes() {
    let (council, share) = costs().await;
    // Two do not fit.
    assert!(share > 0.03 && share <= 0.06, "{share}");
    let server = server().await;
    let home = home(&server, &json!({}));
    let other = home.path().join("other");
    fs::create_dir_all(other.join(".kd")).expect("made");
    let (here, there) = (home.work(), other);
    let (one, two, three, four) = tokio::join!(
        ask(&home, &here, &[]),
        ask(&home, &there, &[]),
        ask(&home, &here, &[]),
        ask(&home, &there, &[]),
    );
    let told = |said: &Said| said.err.contains("also asked for comparison");
    let shared = [one, two, three, four]
        .iter()
        .filter(|said| told(said))
        .count();
    assert_eq!(shared, 1);
    let spent = server.bill().pico_usd as f64 / PICO - 4.0 * council;
    assert!(spent <= 0.06, "{spent}");
    // The notice that no budget is left appears once a day, and no batch is created.
    for _ in 0..2 {
        let said = ask(&home, &there, &[]).await;
        assert!(!said.err.contains("eval.share"), "{}", said.err);
    }
    let batches = home.run(&["batch", "list", "--json"]).json();
    let all = batches["batches"].as_array().cloned().unwrap_or_default();
    assert!(all.len() <= 2, "{batches:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_asked_beyond_the_limits_of_the_run() {
    for (settings, flags) in [
        (json!({"limits": {"calls": 5}}), &[][..]),
        (json!({}), &["--max-calls", "5"][..]),
        (json!({}), &["--max-usd", "0.06"][..]),
        (json!({"limits": {"usd": 0.06}}), &[][..]),
        // Asked with another model or in another way, it is not an ordinary question.
        (json!({}), &["--model", "model-2"][..]),
        (json!({}), &["--seed", "7"][..]),
        (json!({}), &["--timeout", "60s"][..]),
    ] {
        let server = server().await;
        let home = home(&server, &settings);
        let said = ask(&home, &home.work(), flags).await;
        let at = format!("{settings} {flags:?}: {}", said.err);
        assert!(!said.err.contains("also asked"), "{at}");
        assert_eq!(server.bill().requests, 4, "{at}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_whose_cost_has_no_limit_are_not_asked() {
    let unpriced = server().await;
    let provider = json!({"svc": {"base_url": unpriced.url(), "model": "model-1"}});
    let unknown = home(&unpriced, &json!({"providers": provider}));
    let said = ask(&unknown, &unknown.work(), &[]).await;
    assert!(
        said.err.contains("not compared today (eval.share)"),
        "{}",
        said.err
    );
    assert_eq!(unpriced.bill().requests, 4, "{}", said.err);

    let server = server().await;
    let agent = json!({"backend": "svc"});
    let runs =
        "echo x >> runs; echo '{\"answer\": \"391\", \"confidence\": 0.9, \"reason\": \"r\"}'";
    let program = json!({"backend": "command", "dialect": "text", "command": ["/bin/sh", "-c", runs], "reliability": 0.9});
    let home = home(
        &server,
        &json!({"agents": {"ann": program, "bob": agent, "cyd": agent}}),
    );
    let said = ask(&home, &home.work(), &[]).await;
    assert!(said.err.contains("agent program"), "{}", said.err);
    let ran = fs::read_to_string(home.work().join("runs")).unwrap_or_default();
    // Its opinion and the conclusion.
    assert!(ran.lines().count() <= 2, "{ran}");
    let batches = home.run(&["batch", "list", "--json"]).json();
    assert_eq!(
        batches["batches"].as_array().map_or(0, Vec::len),
        0,
        "{batches:#}"
    );
}
