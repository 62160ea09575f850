//! The whole pipeline on 20 seeded faults and 20 clean changes of this project's own code, by members that play a script
//! behind a service that bills: whether everything arrives, and whether the estimate holds. It says nothing about
//! precision.
//!
//! `cargo test -p kd --test program review::seeded -- --nocapture` prints the figures.

#![allow(clippy::print_stdout, reason = "figures are printed")]

use super::{finding, ok, write};
use crate::support::{Home, Said, git};
use kd_fake::billing::{Billing, Price, Tokens};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Returns mutations that are faults, and some that are not, in files of this project.
fn mutations() -> Vec<(String, String, String, usize)> {
    const FAULTS: &[(&str, &str)] = &[
        (" < ", " <= "),
        (" && ", " || "),
        (" == ", " != "),
        ("saturating_sub", "wrapping_sub"),
        (".min(", ".max("),
        (" > ", " >= "),
    ];
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = [
        "kd-vote/src",
        "kd-eval/src",
        "kd-core/src/diff",
        "kd-store/src",
        "kd-reading/src",
    ];
    let mut found = Vec::new();
    for folder in folders {
        let mut files: Vec<_> = std::fs::read_dir(top.join(folder))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|e| e == "rs"))
            .collect();
        files.sort();
        for file in files.iter().take(8) {
            let text = std::fs::read_to_string(file).expect("text");
            let place = text.lines().enumerate().find_map(|(at, line)| {
                let fault = FAULTS
                    .iter()
                    .find(|(from, _)| line.contains(from) && !line.trim().starts_with("//"))?;
                Some((at, line.replacen(fault.0, fault.1, 1)))
            });
            if let Some((at, line)) = place {
                let name = file.file_name().expect("a name").to_string_lossy();
                found.push((format!("{folder}/{name}"), text, line, at));
            }
        }
    }
    assert!(found.len() >= 20, "{}", found.len());
    found.truncate(20);
    found
}

/// What a review must cost, by its estimate, and what it cost.
#[derive(Default)]
struct Sum {
    reviews: u32,
    requests: u64,
    tokens: u64,
    usd: f64,
    usd_most: f64,
}

/// The service, and what its first two models find.
struct Council {
    home: Home,
    server: Billing,
    seen: Arc<Mutex<Value>>,
}

impl Council {
    async fn start() -> Self {
        let seen = Arc::new(Mutex::new(json!([])));
        let script = Arc::clone(&seen);
        let price = Price {
            input: 1_000_000,
            output: 5_000_000,
        };
        let answer = move |request: &Value, _| {
            let votes = request.to_string().contains("one vote for each id");
            let finds = request["model"] != "m3";
            let seen = script.lock().expect("a script").clone();
            match (votes, finds) {
                (true, _) => json!({"votes": [{"id": "A", "vote": "real"}]}),
                (false, true) => json!({"findings": seen}),
                (false, false) => json!({"findings": []}),
            }
            .to_string()
        };
        let server = Billing::answering(price, "stop", Tokens::Usual, answer);
        let server = server.await.expect("it listens");
        let agent = |name: &str| json!({"backend": "svc", "model": name});
        let price = json!({"input": 1.0, "output": 5.0});
        let home = Home::new(&json!({
            "agents": {"m1": agent("m1"), "m2": agent("m2"), "m3": agent("m3")},
            "council": {"members": ["m1", "m2", "m3"]},
            "providers": {"svc": {"base_url": server.url(),
                "prices": {"m1": price, "m2": price, "m3": price}}},
        }));
        git(&home, &["init", "-q"]);
        Self { home, server, seen }
    }

    async fn run(&self, args: &[&str]) -> Said {
        let command = self.home.kd(args);
        tokio::task::spawn_blocking(move || Said::fed(command, ""))
            .await
            .expect("it ends")
    }

    /// Reviews what differs from the last commit, and adds its cost. The members find `seen`.
    async fn review(&self, seen: Value, sum: &mut Sum) -> Said {
        *self.seen.lock().expect("a script") = seen;
        let review = ["review", "--branch", "HEAD"];
        let with = |more: &[&'static str]| [&review[..], more].concat();
        let estimate = self.run(&with(&["--dry-run", "--format", "json"])).await;
        ok(&estimate);
        let estimate = estimate.json()["estimate"].clone();
        let before = self.server.bill();
        let said = self
            .run(&with(&["--format", "json", "--fail-on", "P>=0"]))
            .await;
        let bill = self.server.bill();
        let within = |name: &str, spent: f64| {
            let (low, high) = (&estimate[name][0], &estimate[name][1]);
            let range = low.as_f64().expect("a number")..=high.as_f64().expect("a number");
            assert!(range.contains(&spent), "{name} {spent} {range:?}");
        };
        let (requests, tokens) = (bill.requests - before.requests, bill.tokens - before.tokens);
        let usd = (bill.pico_usd - before.pico_usd) as f64 / 1e12;
        within("calls", requests as f64);
        within("tokens", tokens as f64);
        within("usd", usd);
        sum.reviews += 1;
        sum.requests += requests;
        sum.tokens += tokens;
        sum.usd += usd;
        sum.usd_most += estimate["usd"][1].as_f64().expect("a number");
        said
    }
}

fn told(what: &str, sum: &Sum) {
    println!(
        "{what}: {} reviews, {} requests, {} tokens, ${:.4} of at most ${:.4} estimated",
        sum.reviews, sum.requests, sum.tokens, sum.usd, sum.usd_most
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_faults_and_twenty_clean_changes_of_this_project_go_through_all_of_it() {
    let council = Council::start().await;
    let home = &council.home;
    let (mut faults, mut clean) = (Sum::default(), Sum::default());
    for (file, text, faulty, at) in mutations() {
        write(home, &file, &text);
        git(home, &["add", "."]);
        git(home, &["commit", "-qm", "before"]);
        let mut lines: Vec<&str> = text.lines().collect();
        lines[at] = &faulty;
        write(home, &file, &(lines.join("\n") + "\n"));
        let claim = "The comparison is the wrong way round.";
        let seen = json!([finding(&file, at + 1, &faulty, claim)]);
        let said = council.review(seen, &mut faults).await;
        assert_eq!(said.code, Some(10), "{file}: {}{}", said.out, said.err);
        let report = said.json()["report"].clone();
        let findings = report["findings"].as_array().map(Vec::len);
        assert_eq!(findings, Some(1), "{file}: {report}");
        let cluster = &report["findings"][0]["cluster"]["findings"];
        assert_eq!(cluster.as_array().map(Vec::len), Some(2), "{file}");
        assert_eq!(cluster[0]["finding"]["lines"]["first"], at + 1, "{file}");
        assert_eq!(report["findings"][0]["votes"]["m3"], "real", "{file}");
        assert!(
            said.err.contains("--fail-on P>=0 is met by 1 finding: "),
            "{}",
            said.err
        );
        // A harmless change: a comment.
        write(home, &file, &format!("{text}// The end.\n"));
        let said = council.review(json!([]), &mut clean).await;
        ok(&said);
        assert_eq!(said.json()["report"]["findings"], json!([]), "{file}");
        let shown = home.run(&["review", "show"]);
        let begin = "no finding · 3 members reviewed";
        assert!(shown.out.starts_with(begin), "{file}: {}", shown.out);
        git(home, &["commit", "-qam", "after"]);
    }
    told("seeded faults", &faults);
    told("clean changes", &clean);
    assert_eq!((faults.reviews, clean.reviews), (20, 20));
    // Without findings nobody votes.
    assert_eq!((faults.requests, clean.requests), (20 * 4, 20 * 3));
}
