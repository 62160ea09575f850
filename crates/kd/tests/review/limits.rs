//! Limits of a review, against a service that spends all it may: votes are not starved by reviews.

use super::{AFTER, BEFORE, finding, write};
use crate::support::{Home, Said, git};
use kd_fake::billing::{Billing, Price, Tokens};
use serde_json::{Value, json};

const MEMBERS: [&str; 3] = ["m1", "m2", "m3"];
const LINES: [&str; 3] = [
    "fn mean(list: &[u32]) -> u32 {",
    "    list.iter().sum::<u32>() / list.len() as u32",
    "fn last(list: &[u32]) -> u32 { list[list.len() - 1] }",
];
const CLAIMS: [&str; 3] = [
    "A name shadows another function.",
    "Divides by zero if there is nothing.",
    "Indexes out of bounds.",
];

/// Answers as a member that finds something that no other finds, and holds everything for real.
fn answer(request: &Value, _: u64) -> String {
    let text: String = request["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["content"].as_str())
        .collect();
    if text.contains("one vote for each id") {
        let marks = text.lines().filter_map(|line| line.strip_prefix("<<"));
        let ids = marks.filter_map(|mark| Some(mark.split_once(" id ")?.1));
        let votes: Vec<Value> = ids.map(|id| json!({"id": id, "vote": "real"})).collect();
        return json!({"votes": votes}).to_string();
    }
    let model = request["model"].as_str().unwrap_or_default();
    let at = MEMBERS.iter().position(|name| *name == model).unwrap_or(0);
    let file = "src/mean.rs";
    json!({"findings": [finding(file, at + 1, LINES[at], CLAIMS[at])]}).to_string()
}

async fn server() -> Billing {
    let price = Price {
        input: 1_000_000,
        output: 5_000_000,
    };
    Billing::answering(price, "stop", Tokens::Worst, answer)
        .await
        .expect("it listens")
}

fn home(server: &Billing) -> Home {
    let agent = |name: &str| json!({"backend": "svc", "model": name});
    let price = json!({"input": 1.0, "output": 5.0});
    let home = Home::new(&json!({
        "agents": {"m1": agent("m1"), "m2": agent("m2"), "m3": agent("m3")},
        "council": {"members": MEMBERS},
        "providers": {"svc": {"base_url": server.url(), "attempts": 2,
            "prices": {"m1": price, "m2": price, "m3": price}}},
    }));
    git(&home, &["init", "-q"]);
    write(&home, "src/mean.rs", BEFORE);
    git(&home, &["add", "src"]);
    git(&home, &["commit", "-qm", "one"]);
    write(&home, "src/mean.rs", &format!("{AFTER}{}\n", LINES[2]));
    git(&home, &["add", "src"]);
    home
}

async fn run(home: &Home, args: &[&str]) -> Said {
    let mut all = vec!["review", "--staged"];
    all.extend(args);
    let command = home.kd(&all);
    tokio::task::spawn_blocking(move || Said::fed(command, ""))
        .await
        .expect("it ends")
}

/// Returns the number before `would do`.
fn would_do(said: &Said) -> f64 {
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, _) = text.split_once(" would do").expect(&text);
    let word = before.rsplit(' ').next().expect("a number");
    word.trim_start_matches('$').parse().expect(&text)
}

/// Returns the number of votes on each finding.
fn votes(report: &Value) -> Vec<usize> {
    let findings = report["findings"].as_array().expect("findings");
    let count = |one: &Value| one["votes"].as_object().map_or(0, serde_json::Map::len);
    findings.iter().map(count).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_least_that_is_told_pays_for_all_reviews_and_votes() {
    for (limit, low) in [
        ("--max-calls", "5"),
        ("--max-total-tokens", "20000"),
        ("--max-usd", "0.02"),
    ] {
        let server = server().await;
        let home = home(&server);
        let dry = run(&home, &[limit, low, "--dry-run"]).await;
        assert_eq!(dry.code, Some(0), "{}{}", dry.out, dry.err);
        assert_eq!(server.bill().requests, 0);
        let least = would_do(&dry);
        for most in [least, least * 1.6] {
            let most = match limit {
                "--max-usd" => format!("{most:.4}"),
                _ => format!("{}", most.floor()),
            };
            let before = server.bill();
            let said = run(&home, &[limit, &most, "--format", "json"]).await;
            let bill = server.bill();
            let at = format!("{limit} {most} {bill:?}\n{}{}", said.out, said.err);
            assert_eq!(said.code, Some(0), "{at}");
            assert_eq!(votes(&said.json()["report"]), [2, 2, 2], "{at}");
            assert_eq!(said.json()["report"]["notices"], json!([]), "{at}");
            assert!(!said.err.contains("would do"), "{at}");
            let spent = match limit {
                "--max-calls" => (bill.requests - before.requests) as f64,
                "--max-usd" => (bill.pico_usd - before.pico_usd) as f64 / 1e12,
                _ => (bill.tokens - before.tokens) as f64,
            };
            assert!(
                spent <= most.parse::<f64>().expect("a number") + 1e-9,
                "{at}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_is_too_low_for_votes_is_told_before_anybody_is_asked() {
    let server = server().await;
    let home = home(&server);
    let said = run(&home, &["--max-calls", "4", "--format", "json"]).await;
    // The findings so far are reported, with a distinct exit code.
    assert_eq!(said.code, Some(4), "{}{}", said.out, said.err);
    assert_eq!(server.bill().requests, 4);
    let told = "the limit of 4 calls is too low for votes: 6 would do";
    let at = said.err.find(told).expect(&said.err);
    let asked = said.err.find("reviewed the change").expect(&said.err);
    assert!(at < asked, "{}", said.err);
    let report = &said.json()["report"];
    assert_eq!(votes(report).iter().sum::<usize>(), 2, "{report}");
    let notices = report["notices"].to_string();
    assert!(notices.contains(told), "{notices}");
    assert_eq!(notices.matches("did not vote on any finding").count(), 2);
    let shown = home.run(&["review", "show"]);
    assert!(
        shown.out.contains("did not vote on any finding"),
        "{}",
        shown.out
    );
}
