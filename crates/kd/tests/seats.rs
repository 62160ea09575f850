//! Members named by the user take part under their own program, and a council continues while it converges, through the
//! real program.

use crate::support;

use kd_fake::{Fake, Reply, Seen, Wire};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use support::{Home, Said};

/// A reply that fits every stage, with this answer.
fn reply(answer: &str) -> String {
    json!({
        "reason": format!("it is {answer}"), "answer": answer, "confidence": 0.8, "choice": answer,
        "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"}, "C": {"rating": 6, "weakness": "w"},
        "D": {"rating": 6, "weakness": "w"}, "E": {"rating": 6, "weakness": "w"}, "F": {"rating": 6, "weakness": "w"},
        "ranking": ["A", "B"], "recommendation": "Do it.", "consensus": "All like it.", "support": "Reasons.",
        "dissent": "none", "cites": ["A"],
    })
    .to_string()
}

async fn server(answer: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Fake {
    let choose = move |seen: &Seen, _| {
        let model = seen.json()["model"].as_str().unwrap_or_default().to_owned();
        Some((
            Wire::OpenAi,
            Reply::words(&[&reply(&answer(&model, &seen.body))]),
        ))
    };
    Fake::choosing(SocketAddr::from(([127, 0, 0, 1], 0)), choose)
        .await
        .expect("loopback")
}

/// Creates a home with members `m1` to `m{count}`, each a model of one server.
fn members(fake: &Fake, count: usize) -> Home {
    let agent = |n: usize| {
        let name = format!("m{n}");
        let settings = json!({"backend": "stub", "model": name});
        (name, settings)
    };
    let agents: serde_json::Map<String, Value> = (1..=count).map(agent).collect();
    Home::new(&json!({
        "agents": agents,
        "providers": {"stub": {"base_url": format!("{}/v1", fake.url())}},
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn all_five_named_members_sit_and_vote() {
    let fake = server(|_, _| "391".into()).await;
    let home = members(&fake, 6);
    let said = home.run(&[
        "deliberate",
        "--json",
        "--seed",
        "1",
        "-m",
        "m1,m2,m3,m4,m5",
        "What is 17*23?",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let shown = said.json();
    let voters: BTreeSet<&str> = shown["plan"]["seats"]
        .as_array()
        .expect("seats")
        .iter()
        .filter(|s| s["role"] != "synthesizer")
        .filter_map(|s| s["agent"].as_str())
        .collect();
    assert_eq!(voters, BTreeSet::from(["m1", "m2", "m3", "m4", "m5"]));
    let asked: BTreeSet<String> = fake
        .seen()
        .iter()
        .filter_map(|s| Some(s.json()["model"].as_str()?.to_owned()))
        .collect();
    assert_eq!(
        asked.len(),
        5,
        "all of them were asked, and m6 was not: {asked:?}"
    );
    assert_eq!(shown["verdict"]["winner"], "391", "{}", shown["verdict"]);
}

#[test]
fn the_program_of_the_named_agent_is_called_and_no_other() {
    let home = Home::new(&json!({}));
    let mut agents = serde_json::Map::new();
    for name in ["alice", "zoe"] {
        let answer = json!({"type": "item.completed", "item": {"id": "a", "type": "agent_message", "text": reply("yes")}});
        let steps = json!([
            {"when": "app-server", "do": [{"exit": 2}]},
            {"read": true},
            {"write": home.path().join(format!("{name}.called"))},
            {"print": format!("{answer}\n{}\n", json!({"type": "turn.completed", "usage": {}}))},
        ]);
        let script = home.path().join(format!("{name}.script"));
        std::fs::write(&script, steps.to_string()).expect("written");
        let command = json!([kd_fake::fake_agent(), "--script", script]);
        agents.insert(name.into(), json!({"backend": "codex", "command": command}));
    }
    std::fs::write(home.config_file(), json!({"agents": agents}).to_string()).expect("written");
    let seats = json!([
        {"model": "zoe", "role": "opinion-giver"}, {"model": "zoe", "role": "skeptic"}, {"model": "zoe", "role": "synthesizer"},
    ]);
    let plan = json!({"council": {"size": 3, "members": seats}});
    std::fs::write(home.work().join("plan.json"), plan.to_string()).expect("written");
    for line in [
        &["deliberate", "-m", "zoe", "Is it safe?"][..],
        &["deliberate", "--plan", "plan.json", "Is it safe?"],
        &["think", "--fast", "zoe", "--rigorous", "zoe", "Is it safe?"],
        &["ask", "-m", "zoe", "Is it safe?"],
    ] {
        let said = home.run(line);
        assert_eq!(said.code, Some(0), "{line:?}: {}", said.err);
        let called = |name: &str| home.path().join(format!("{name}.called")).exists();
        assert!(called("zoe") && !called("alice"), "{line:?}");
        std::fs::remove_file(home.path().join("zoe.called")).expect("it was there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_go_on_while_members_converge() {
    for (question, yes, no) in [
        ("Is it safe?", "yes", "no"),
        ("What is 17*23?", "391", "401"),
        (
            "Which is better: SQLite or PostgreSQL?",
            "PostgreSQL",
            "SQLite",
        ),
    ] {
        // One more of six changes their mind in every pass.
        let fake = server(move |model, body| {
            let pass = (2..=5)
                .find(|n| body.contains(&format!("## Iteration {n} Context")))
                .unwrap_or(1);
            let place: usize = model.trim_start_matches('m').parse().unwrap_or(1);
            if place <= 2 + pass { yes } else { no }.to_owned()
        })
        .await;
        let home = members(&fake, 6);
        let mut seats: Vec<Value> = (1..=6)
            .map(|n| json!({"model": format!("m{n}"), "role": "opinion-giver"}))
            .collect();
        seats.push(json!({"model": "m1", "role": "synthesizer"}));
        let plan = json!({
            "council": {"size": 7, "members": seats, "voting": {"method": "majority"}},
            "iteration": {"enabled": true, "maxIterations": 5, "maxTokens": 10_000_000, "convergenceThreshold": 0.99},
            "maxCalls": 1000,
        });
        std::fs::write(home.work().join("plan.json"), plan.to_string()).expect("written");
        let said = Said::of(
            home.kd(&[
                "deliberate",
                "--plan",
                "plan.json",
                "--json",
                "--seed",
                "1",
                question,
            ])
            .output()
            .expect("it runs"),
        );
        let shown = said.json();
        let decisions = shown["decisions"]
            .as_array()
            .unwrap_or_else(|| panic!("{shown}"));
        let trend: Vec<f64> = decisions
            .iter()
            .filter_map(|d| d["confidence"].as_f64())
            .collect();
        assert_eq!(trend.len(), 4, "{question}: {decisions:?}");
        assert!(
            trend.windows(2).all(|w| w[0] < w[1]),
            "{question}: {trend:?}"
        );
        let last = decisions.last().expect("one")["reason"].to_string();
        assert!(last.contains("everybody"), "{question}: {last}");
    }
}

#[test]
fn a_misspelled_member_is_named_by_every_command() {
    let says = json!({"runs": [["echo"]]});
    let home = Home::scripted(&[("ann", says.clone()), ("bob", says)]);
    let rows: [&[&str]; 3] = [
        &["ask"],
        &["think", "--fast", "ann", "--rigorous", "bob"],
        &["deliberate", "-m", "ann,bob"],
    ];
    for args in rows {
        let said = home.run(&[args, &["@bobb Is it so? yes or no"]].concat());
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains("did you mean @bob?"), "{args:?}: {all}");
        // Where members cannot be addressed, a name that leads is explained.
        let said = home.run(&[args, &["@bob Is it so? yes or no"]].concat());
        let explained = said.err.contains("@bob is read as text here");
        assert_eq!(explained, args[0] != "ask", "{args:?}: {}", said.err);
        let said = home.run(&[args, &["What does @dataclass do? yes or no"]].concat());
        assert!(!said.err.contains("did you mean"), "{args:?}: {}", said.err);
    }
}
