//! Spending and prices, through the real program.

use crate::support;

use kd_fake::billing::{Billing, Price};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use support::{Home, Said};

const LIST: &str = r#"{
    "gpt-5.1": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 9e-06, "output_cost_per_token": 1e-05},
    "claude-9": {"litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05}
}"#;

/// Creates a home with two members of a billing service, at one and five dollars per million tokens.
async fn home(limits: Value) -> (Home, Billing) {
    let price = Price {
        input: 1_000_000,
        output: 5_000_000,
    };
    let server = Billing::greedy(price).await.expect("it listens");
    let agent = json!({"backend": "svc", "max_tokens": 100});
    let home = Home::new(&json!({
        "agents": {"ann": agent, "bob": agent},
        "council": {"members": ["ann", "bob"], "conclude": false},
        "limits": limits,
        "providers": {"svc": {"base_url": server.url(), "model": "model-1",
            "prices": {"model-1": {"input": 1.0, "output": 5.0}}}},
    }));
    (home, server)
}

async fn run(home: &Home, args: &[&str]) -> Said {
    let command = home.kd(args);
    tokio::task::spawn_blocking(move || Said::fed(command, ""))
        .await
        .expect("it ends")
}

fn ledger(home: &Home) -> Vec<PathBuf> {
    let folder = home.path().join(".local/share/kd/spending");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = files.map(|file| file.path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_counted_once_with_its_member_and_its_money() {
    let (home, server) = home(json!({})).await;
    for _ in 0..2 {
        let said = run(&home, &["ask", "--quiet", "Tabs or spaces?"]).await;
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let bill = server.bill();
    let cost = run(&home, &["cost", "--json"]).await.json();
    for sum in ["today", "month"] {
        let sum = &cost[sum];
        assert_eq!(sum["calls"].as_u64(), Some(bill.requests), "{cost}");
        let tokens = sum["in"].as_u64().unwrap() + sum["out"].as_u64().unwrap();
        assert_eq!(tokens, bill.tokens, "{cost}");
        let usd = sum["usd"].as_f64().unwrap();
        assert!((usd * 1e12 - bill.pico_usd as f64).abs() < 10.0, "{cost}");
    }
    let names: Vec<_> = cost["by"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["name"])
        .collect();
    assert_eq!(names.len(), 2, "{cost}");
    let by_model = run(&home, &["cost", "--by", "model"]).await;
    assert!(by_model.out.contains("\nsvc model-1 "), "{}", by_model.out);
    let shown = run(&home, &["cost"]).await;
    assert!(
        shown.out.contains("this month, by member\n"),
        "{}",
        shown.out
    );
    assert!(shown.out.lines().all(|line| line.chars().count() <= 80));
    // Contains no words of the question and is readable only by the user.
    for file in ledger(&home) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("Tabs"), "{text}");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_of_a_day_holds_for_all_runs_together() {
    let (home, server) = home(json!({"usd_per_day": 0.004})).await;
    let mut refused = 0;
    for _ in 0..8 {
        let said = run(&home, &["ask", "Tabs or spaces?"]).await;
        let all = format!("{}{}", said.out, said.err);
        if said.code != Some(0) {
            refused += 1;
            assert!(all.contains("limits.usd_per_day"), "{all}");
        }
    }
    let bill = server.bill();
    assert!(
        bill.requests > 0 && refused > 0,
        "{bill:?}, {refused} refused"
    );
    assert!(bill.pico_usd as f64 <= 0.004 * 1e12, "{bill:?}");
    // Spending of other processes counts, and a day that cannot be counted allows nothing.
    let file = ledger(&home).pop().expect("a ledger");
    let before = server.bill().requests;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let said = run(&home, &["ask", "Tabs or spaces?"]).await;
    assert_ne!(said.code, Some(0));
    assert!(
        said.err.contains("cannot be read") || said.out.contains("cannot be read"),
        "{}{}",
        said.out,
        said.err
    );
    assert_eq!(server.bill().requests, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_of_a_day_holds_for_runs_at_the_same_time() {
    let (home, server) = home(json!({"usd_per_day": 0.004})).await;
    let runs = [(); 8].map(|()| {
        let command = home.kd(&["ask", "Tabs or spaces?"]);
        tokio::task::spawn_blocking(move || Said::fed(command, ""))
    });
    let mut refused = 0;
    for run in runs {
        let said = run.await.expect("it ends");
        refused += u32::from(said.code != Some(0));
        let all = format!("{}{}", said.out, said.err);
        let told = ["limits.usd_per_day", "the limit of the day"];
        assert!(
            said.code == Some(0) || told.iter().any(|told| all.contains(told)),
            "{all}"
        );
    }
    let bill = server.bill();
    assert!(bill.requests > 0 && refused > 0, "{bill:?}");
    assert!(bill.pico_usd as f64 <= 0.004 * 1e12, "{bill:?}");
    let folder = home.path().join(".local/share/kd/spending/in-flight");
    assert_eq!(fs::read_dir(folder).expect("a folder").count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_of_a_killed_run_counts_at_its_maximum() {
    let (home, _server) = home(json!({"usd_per_day": 0.004})).await;
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let address = listener.local_addr().expect("an address");
    edit(&home, |config| {
        config["providers"]["svc"]["base_url"] = json!(format!("http://{address}/v1"));
    });
    let mut run = home.kd(&["ask", "-m", "ann", "Tabs or spaces?"]);
    let quiet = run.stdout(std::process::Stdio::null());
    let mut child = quiet
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    // The request has arrived, and is never answered.
    let (mut stream, _) = listener.accept().expect("a request");
    assert_ne!(stream.read(&mut [0; 64]).expect("it reads"), 0);
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    let cost = self::run(&home, &["cost", "--json"]).await.json();
    assert_eq!(cost["today"]["calls"], 1, "{cost}");
    assert_eq!(cost["today"]["certainty"], "at_most", "{cost}");
    assert!(
        cost["today"]["usd"].as_f64().expect("money") > 0.0005,
        "{cost}"
    );
    // Once.
    let again = self::run(&home, &["cost", "--json"]).await.json();
    assert_eq!(again["today"], cost["today"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_without_a_price_is_unknown_everywhere_also_on_this_machine() {
    let (home, _server) = home(json!({})).await;
    edit(&home, |config| {
        config["agents"]["bob"]["model"] = json!("model-2");
    });
    let said = run(&home, &["ask", "Tabs or spaces?"]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let cost = run(&home, &["cost", "--json"]).await.json();
    let of = |name: &str| {
        let all = cost["by"].as_array().unwrap();
        all.iter().find(|sum| sum["name"] == name).unwrap().clone()
    };
    assert!(of("ann")["usd"].as_f64().unwrap() > 0.0, "{cost}");
    assert_eq!(
        (&of("ann")["unpriced"], &of("bob")["unpriced"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(
        (&of("bob")["usd"], &cost["today"]["unpriced"]),
        (&Value::Null, &json!(1))
    );
    let shown = run(&home, &["cost"]).await.out;
    let row = |name: &str| {
        let mut lines = shown.lines().filter(|line| line.starts_with(name));
        lines.next().unwrap_or_default().to_owned()
    };
    assert!(row("bob ").contains(" unknown "), "{shown}");
    assert!(row("today ").contains(" ≥ $0.0"), "{shown}");
    assert!(
        !shown.contains("$0.00 ") && shown.contains("no price is known for 1 call:"),
        "{shown}"
    );
    let plan = run(
        &home,
        &["deliberate", "--dry-run", "-m", "ann,bob", "A or B?"],
    )
    .await;
    assert!(plan.out.contains("price unknown"), "{}", plan.out);
    let said = run(&home, &["ask", "--max-usd", "1", "Tabs or spaces?"]).await;
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(
        said.err.contains("the price of bob is unknown"),
        "{}",
        said.err
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_the_day_needs_known_prices_too() {
    let (home, server) = home(json!({"usd_per_day": 1.0})).await;
    edit(&home, |config| {
        config["providers"]["svc"]
            .as_object_mut()
            .unwrap()
            .remove("prices");
    });
    let said = run(&home, &["ask", "hi"]).await;
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(
        said.err.contains("the price of ann is unknown"),
        "{}",
        said.err
    );
    assert_eq!(server.bill().requests, 0);
}

/// Edits the user's configuration.
fn edit(home: &Home, change: impl FnOnce(&mut Value)) {
    let text = fs::read_to_string(home.config_file()).expect("read");
    let mut config = serde_json::from_str(&text).expect("JSON");
    change(&mut config);
    fs::write(home.config_file(), config.to_string()).expect("written");
}

/// Answers each request with this status and body, and counts requests.
fn serve(answers: Vec<(&'static str, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for (status, body) in answers {
            let Ok((mut stream, _)) = listener.accept() else {
                return;
            };
            let _ = stream.read(&mut [0; 4096]);
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nLocation: /x\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(body.as_bytes());
        }
    });
    format!("http://{address}/list.json")
}

#[test]
fn prices_are_updated_from_a_list_and_reset() {
    let home = Home::new(&json!({}));
    let price = |home: &Home| {
        let list = home.run(&["prices", "gpt-5.1", "--json"]).json();
        let rows = list["prices"].as_array().unwrap().clone();
        let row = rows.iter().find(|row| row["model"] == "gpt-5.1");
        row.expect("gpt-5.1 is listed")["input"].as_f64()
    };
    assert_eq!(price(&home), Some(1.25));
    let url = serve(vec![("200 OK", LIST.to_owned())]);
    let said = home.run(&["prices", "update", "--from", &url]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("1 new, 1 dearer"), "{}", said.out);
    assert!(said.out.contains("SHA-256"), "{}", said.out);
    assert_eq!(price(&home), Some(9.0));
    // Configured prices take precedence.
    edit(&home, |config| {
        config["providers"] =
            json!({"openai": {"prices": {"gpt-5.1": {"input": 2.0, "output": 3.0}}}});
    });
    assert_eq!(price(&home), Some(2.0));
    edit(&home, |config| config["providers"] = json!({}));
    let said = home.run(&["prices", "reset"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(price(&home), Some(1.25));
}

#[test]
fn a_list_that_cannot_be_used_leaves_the_prices_as_they_are() {
    let home = Home::new(&json!({}));
    let refused = serve(vec![
        ("404 Not Found", String::new()),
        ("302 Found", String::new()),
        ("200 OK", "<html>".to_owned()),
        (
            "200 OK",
            r#"{"a": {"litellm_provider": "openai"}}"#.to_owned(),
        ),
    ]);
    fs::write(home.work().join("empty.json"), "{}").unwrap();
    for (from, why) in [
        (refused.as_str(), "404"),
        (refused.as_str(), "302"),
        (refused.as_str(), "not the list"),
        (refused.as_str(), "no model of a known service"),
        ("http://far.example/list.json", "begins with https://"),
        ("file:///etc/passwd", "begins with https://"),
        ("empty.json", "no model of a known service"),
        ("nowhere.json", "No such file"),
    ] {
        let said = home.run(&["prices", "update", "--from", from]);
        assert_eq!(said.code, Some(1), "{from}: {}", said.err);
        assert!(said.err.contains(why), "{from}: {}", said.err);
        assert!(
            said.err.contains("stay as they are"),
            "{from}: {}",
            said.err
        );
    }
    let mut offline = home.kd(&["prices", "update"]);
    offline.env("KD_OFFLINE", "1");
    let said = Said::fed(offline, "");
    assert!(said.err.contains("KD_OFFLINE"), "{}", said.err);
    let said = home.run(&["prices", "update", "--commit", "../../x"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    // An invalid table is reported, and the built-in one is used.
    let own = home.path().join(".local/share/kd/prices.tsv");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "# version 1\nopenai\tgpt-5.1\t0\tfree\t1\t-\t-\n").unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o600)).unwrap();
    let said = home.run(&["prices", "gpt-5.1"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("line 2"), "{}", said.err);
    assert!(said.out.contains("1.25"), "{}", said.out);
}
