//! Limits through the real program: a service that bills, disconnects and refuses by a seed counts no more than the
//! limits allow, and the reported usage agrees with it.

use crate::support;

use kd_fake::billing::{Bill, Billing, Price, Tokens};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use support::served::{Served, bearer, user};
use support::{Home, Said};

/// Picodollars per dollar.
const PICO: f64 = 1e12;

/// Creates a home with three members of this service, at one and five dollars per million tokens.
fn home(server: &Billing, more: &Value) -> Home {
    let agent = json!({"backend": "svc", "max_tokens": 300});
    let mut config = json!({
        "agents": {"m1": agent, "m2": agent, "m3": agent},
        "council": {"members": ["m1", "m2", "m3"], "auto_messages": 1},
        "providers": {"svc": {"base_url": server.url(), "model": "model-1", "attempts": 2,
            "prices": {"model-1": {"input": 1.0, "output": 5.0}}}},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    Home::new(&config)
}

async fn server(seed: u64) -> Billing {
    let price = Price {
        input: 1_000_000,
        output: 5_000_000,
    };
    Billing::start(seed, price).await.expect("it listens")
}

/// Runs the program to its end while the runtime keeps serving.
async fn run(home: &Home, args: &[&str], input: &str) -> Said {
    let command = home.kd(args);
    let input = input.to_owned();
    tokio::task::spawn_blocking(move || Said::fed(command, &input))
        .await
        .expect("it ends")
}

/// Returns the usage in the `--jsonl` events: requests, tokens, picodollars, and whether all of it was counted.
fn told(lines: &str) -> (u64, u64, f64, bool) {
    let (mut requests, mut tokens, mut pico, mut exact) = (0, 0, 0.0, true);
    for line in lines.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let used = match event["event"].as_str() {
            Some("turn_finished") => &event["usage"],
            Some("turn_failed") => &event["failure"]["used"],
            _ => continue,
        };
        let number = |name: &str| used[name].as_u64().unwrap_or(0);
        requests += used["requests"].as_u64().unwrap_or(number("repeats") + 1);
        tokens += number("input_tokens") + number("output_tokens");
        pico += used["cost_usd"].as_f64().unwrap_or(0.0) * PICO;
        exact &= used["certainty"].is_null();
    }
    (requests, tokens, pico, exact)
}

fn agrees(said: &Said, bill: &Bill, at: &str) {
    let (requests, tokens, pico, exact) = told(&said.out);
    assert_eq!(requests, bill.requests, "{at}\n{}", said.out);
    let slack = (requests + 2) as f64;
    if exact {
        assert_eq!(tokens, bill.tokens, "{at}");
        assert!((pico - bill.pico_usd as f64).abs() <= slack, "{at}");
    } else {
        assert!(
            tokens >= bill.tokens && pico + slack >= bill.pico_usd as f64,
            "{at}"
        );
        assert!(bill.uncounted, "{at}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_stays_within_its_limits_and_tells_what_was_counted() {
    let limits = [
        "--max-usd",
        "0.01",
        "--max-calls",
        "7",
        "--max-total-tokens",
        "20000",
    ];
    for seed in 0..4 {
        for command in ["ask", "think", "deliberate"] {
            let server = server(seed * 3 + 1).await;
            let home = home(&server, &json!({}));
            let mut args = vec![command, "--jsonl", "--quiet", "Tabs or spaces, yes or no?"];
            args.extend(limits);
            let said = run(&home, &args, "").await;
            let bill = server.bill();
            let at = format!("{command} {seed}: {bill:?}\n{}", said.err);
            assert!(bill.requests > 0 || command == "deliberate", "{at}");
            assert!(bill.requests <= 7 && bill.tokens <= 20_000, "{at}");
            assert!(bill.pico_usd as f64 <= 0.01 * PICO, "{at}");
            agrees(&said, &bill, &at);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_leaves_room_for_the_conclusion() {
    let price = Price {
        input: 1_000_000,
        output: 5_000_000,
    };
    // The limit, the minimum and maximum of three members that answer, and whether a conclusion follows.
    let rows: [(&[&str], u64, u64, bool); 8] = [
        (&["--max-calls", "4"], 3, 3, true),
        (&["--max-calls", "3"], 2, 2, true),
        // Two answers are worth more than one.
        (&["--max-calls", "2"], 2, 2, false),
        (&["--max-calls", "1"], 1, 1, false),
        (&["--max-total-tokens", "30000"], 3, 3, true),
        (&["--max-total-tokens", "18000"], 2, 3, true),
        (&["--max-usd", "0.03"], 3, 3, true),
        (&["--max-usd", "0.02"], 2, 3, true),
    ];
    for (limit, least, most, concluded) in rows {
        for mode in ["broadcast", "sequential"] {
            let server = Billing::greedy(price).await.expect("it listens");
            let agent = json!({"backend": "svc"});
            let more = json!({
                "agents": {"m1": agent, "m2": agent, "m3": agent},
                "council": {"members": ["m1", "m2", "m3"], "mode": mode},
            });
            let home = home(&server, &more);
            let mut args = vec!["ask", "--json", "--quiet", "Tabs or spaces, yes or no?"];
            args.extend(limit);
            let said = run(&home, &args, "").await;
            let bill = server.bill();
            let at = format!("{limit:?} {mode} {bill:?}\n{}{}", said.out, said.err);
            let answers = bill.requests - u64::from(concluded);
            assert!((least..=most).contains(&answers), "{at}");
            let conclusion = &said.json()["conclusion"]["status"];
            assert_eq!(conclusion == "complete", concluded, "{at}");
            let most: f64 = limit[1].parse().expect("a number");
            let billed = match limit[0] {
                "--max-calls" => bill.requests as f64,
                "--max-usd" => bill.pico_usd as f64 / PICO,
                _ => bill.tokens as f64,
            };
            assert!(billed <= most, "{at}");
        }
    }
}

/// What is reserved for a running request is the most that it may cost, and most cost much less.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn clients_of_a_server_wait_for_what_is_reserved_for_others() {
    let price = Price {
        input: 1_000_000,
        output: 5_000_000,
    };
    let slow = |_: &Value, _| {
        std::thread::sleep(std::time::Duration::from_millis(200));
        "Tabs.".to_owned()
    };
    let server = Billing::answering(price, "stop", Tokens::Usual, slow).await;
    let server = server.expect("it listens");
    let one = json!({
        "agents": {"m1": {"backend": "svc"}},
        "council": {"members": ["m1"]},
        "limits": {"usd": 0.03},
    });
    let served = Served::models(&home(&server, &one));
    let request = |n: usize| json!({"model": "kd/ask", "messages": [user(&format!("{n}?"))]});
    let ask = |n: usize| {
        let (status, body) = served.send("POST", "/v1/chat/completions", &bearer(), &request(n));
        assert_eq!(status, 200, "{body}");
    };
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| (0..6).for_each(|n| drop(scope.spawn(move || ask(n)))));
    });
    let bill = server.bill();
    assert_eq!(bill.requests, 6);
    assert!((bill.pico_usd as f64) < 0.03 * PICO, "{bill:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_with_its_automatic_turns_and_a_server_keep_one_limit() {
    let limited = |calls: u64| json!({"limits": {"calls": calls, "usd": 0.02}});
    let chat = server(2).await;
    let said = run(&home(&chat, &limited(2)), &["chat", "--plain"], "One?\n").await;
    assert!(
        chat.bill().requests == 2,
        "{:?}\n{}{}",
        chat.bill(),
        said.out,
        said.err
    );
    assert!(
        said.out.contains("limit of calls") || said.err.contains("limit of calls"),
        "{}{}",
        said.out,
        said.err
    );

    let mcp = server(2).await;
    let call = |id: u64| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "ask_council", "arguments": {"question": "One?"}}})
    };
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let said = talk(
        &home(&mcp, &limited(5)),
        &[hello, ready, call(1), call(2), call(3)],
    )
    .await;
    assert!(
        (1..=5).contains(&mcp.bill().requests),
        "{:?}\n{said}",
        mcp.bill()
    );
    assert!(said.contains("limit of calls"), "{said}");
}

/// Sends requests to `kd mcp` one after another and returns its whole output.
async fn talk(home: &Home, messages: &[Value]) -> String {
    let mut command = home.kd(&["mcp"]);
    let messages = messages.to_vec();
    tokio::task::spawn_blocking(move || {
        use std::io::{BufRead, BufReader};
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut said = String::new();
        for message in messages {
            writeln!(stdin, "{message}").expect("it listens");
            let Some(id) = message["id"].as_u64() else {
                continue;
            };
            for line in lines.by_ref() {
                let line = line.expect("text");
                said.push_str(&line);
                said.push('\n');
                let answer: Value = serde_json::from_str(&line).expect("JSON");
                if answer["id"].as_u64() == Some(id) {
                    break;
                }
            }
        }
        drop(stdin);
        child.wait().expect("it ends");
        said
    })
    .await
    .expect("it ends")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_price_is_refused_before_anybody_is_asked() {
    for command in ["ask", "think", "deliberate", "chat"] {
        let server = server(1).await;
        let without = json!({"providers": {"svc": {"base_url": server.url(), "model": "model-1"}}});
        let mut args = vec![command, "--max-usd", "1"];
        match command {
            "chat" => args.push("--plain"),
            _ => args.push("Tabs?"),
        }
        let said = run(&home(&server, &without), &args, "Tabs?\n/quit\n").await;
        assert_eq!(said.code, Some(2), "{command}: {}", said.err);
        assert!(
            said.err.contains("price of") && said.err.contains("providers.svc.prices"),
            "{}",
            said.err
        );
        assert_eq!(server.bill(), Bill::default(), "{command}");
    }
}

/// Claude Code enforces the budget it is given; Codex has no such option.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_with_a_budget_of_its_own_ends_at_the_limit() {
    let streams = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../kd-backends/tests/data/agent-streams"
    );
    let rows = [
        (
            "claude_code",
            "claude",
            "claude/max_budget.jsonl",
            Some("0.0199"),
            4,
        ),
        ("codex", "codex", "codex/normal.jsonl", None, 0),
    ];
    for (backend, name, stream, budget, code) in rows {
        let home = Home::new(&json!({
            "agents": {"ada": {"backend": backend, "warm": false}},
            "council": {"members": ["ada"], "conclude": false},
        }));
        let seen = home.path().join("seen");
        let program = home.path().join(name);
        std::fs::copy(kd_fake::fake_agent(), &program).expect("copied");
        let steps = json!([{"record": seen}, {"play": format!("{streams}/{stream}")}]);
        std::fs::write(
            home.path().join(format!("{name}.script")),
            steps.to_string(),
        )
        .expect("written");
        let path = format!("{}:/usr/bin:/bin", home.path().display());
        for command in ["ask", "deliberate"] {
            let mut kd = home.kd(&[command, "--max-usd", "0.01999", "Yes or no?"]);
            let said = Said::of(kd.env("PATH", &path).output().expect("it runs"));
            let at = format!("{backend} {command}: {}{}", said.out, said.err);
            if command == "ask" {
                assert_eq!(said.code, Some(code), "{at}");
                let seen: Value =
                    serde_json::from_slice(&std::fs::read(&seen).expect("read")).expect("JSON");
                let words: Vec<&str> = seen["args"]
                    .as_array()
                    .expect("a list")
                    .iter()
                    .filter_map(Value::as_str)
                    .collect();
                let told = words
                    .iter()
                    .position(|w| *w == "--max-budget-usd")
                    .map(|at| words[at + 1]);
                // Rounded down.
                assert_eq!(told, budget, "{at}");
            }
            assert_eq!(said.err.contains("not exact"), budget.is_none(), "{at}");
        }
    }
}

/// A service that breaks off every answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_counted_is_shown_as_an_upper_bound() {
    use kd_fake::{Fake, Reply, Script, Step, Wire};
    let cut = Reply::Stream(vec![Step::Text("Half ".into()), Step::Cut]);
    let replies = vec![cut, Reply::words(&["Tabs."])];
    let fake = Fake::start(Script::then(Wire::OpenAi, replies))
        .await
        .expect("it listens");
    let agent = json!({"backend": "svc", "max_tokens": 300});
    let home = Home::new(&json!({
        "agents": {"m1": agent},
        "council": {"members": ["m1"], "conclude": false},
        "providers": {"svc": {"base_url": fake.url(), "model": "model-1",
            "prices": {"model-1": {"input": 1.0, "output": 5.0}}}},
    }));
    let said = run(&home, &["ask", "Tabs or spaces?"], "").await;
    assert_eq!((said.code, fake.seen().len()), (Some(0), 2), "{}", said.err);
    let closing = said.err.lines().find(|l| l.contains("1 of 1 answered"));
    let closing = closing.unwrap_or_else(|| panic!("{}", said.err));
    assert!(
        closing.contains("≤ ") && closing.contains("≤ $0.00"),
        "{closing}"
    );
}
