//! The configurations, the planner's schema and the command lines of the design documents, verbatim from
//! `tests/data/seeds`, through the real program. Services are a server on loopback; agent programs are found on PATH.

use crate::support;

use kd_fake::{Fake, Reply, Seen, Wire};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use support::{Home, Said};

const SIMPLE: &str = include_str!("data/seeds/simple.json");
const COMPLEX: &str = include_str!("data/seeds/complex.json");
const CHAT: &str = include_str!("data/seeds/chat.json");
const PLANNER: &str = include_str!("data/seeds/planner-schema.json");

const QUESTION: &str = "Is it safe?";

/// A reply that fits every stage: each stage reads the part it asked for.
fn reply() -> String {
    json!({
        "reason": "it is tested", "answer": "yes", "confidence": 0.9, "choice": "A",
        "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
        "ranking": ["A", "B"], "recommendation": "Do it.", "consensus": "All like it.", "support": "Reasons.",
        "dissent": "none", "cites": ["A"],
    })
    .to_string()
}

/// Starts a server for every model, which returns the given plans and answers everything else.
async fn server(plans: Vec<Value>) -> Fake {
    let planned = std::sync::atomic::AtomicUsize::new(0);
    let choose = move |seen: &Seen, _| {
        let text = match seen.body.contains("council planning assistant") {
            true => {
                let at = planned.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                plans.get(at).or(plans.last())?.to_string()
            }
            false => reply(),
        };
        Some((Wire::OpenAi, Reply::words(&[&text])))
    };
    Fake::choosing(SocketAddr::from(([127, 0, 0, 1], 0)), choose)
        .await
        .expect("loopback")
}

/// Returns the number of requests to each model.
fn models(fake: &Fake) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for seen in fake.seen() {
        let model = seen.json()["model"].as_str().unwrap_or_default().to_owned();
        *asked.entry(model).or_default() += 1;
    }
    asked
}

/// Returns the models that a configuration names.
fn named(document: &Value) -> BTreeSet<String> {
    let members = document["council"]["members"].as_array().expect("members");
    let model = |m: &Value| m["model"].as_str().expect("a model").to_owned();
    members.iter().map(model).collect()
}

fn deliberate(home: &Home, more: &[&str], env: &[(&str, &str)]) -> Said {
    let line = [&["deliberate", "--json", "--seed", "1"], more, &[QUESTION]].concat();
    let mut kd = home.kd(&line);
    kd.envs(env.iter().copied());
    Said::of(kd.output().expect("it runs"))
}

/// Asserts that all members take part as the document says.
fn assert_as_written(said: &Said, document: &Value) {
    assert_eq!(said.code, Some(0), "{}\n{}", said.err, said.out);
    let shown = said.json();
    let seats = shown["plan"]["seats"].as_array().expect("seats");
    let members = document["council"]["members"].as_array().expect("members");
    assert_eq!(seats.len() as u64, document["council"]["size"], "size");
    for (seat, member) in seats.iter().zip(members) {
        assert_eq!(seat["agent"], member["model"]);
        assert_eq!(seat["role"], member["role"]);
        assert_eq!(seat["persona"], member["persona"], "{seat}");
        let weight = member["weight"].as_f64().unwrap_or(1.0);
        assert_eq!(seat["member"]["weight"].as_f64(), Some(weight));
        if let Some(temperature) = member["temperature"].as_f64() {
            let got = seat["member"]["sampling"]["temperature"].as_f64();
            assert_eq!(got, Some(temperature));
        }
    }
    let (plan, iteration) = (&shown["plan"], &document["iteration"]);
    assert_eq!(plan["iteration"]["enabled"], iteration["enabled"]);
    if iteration["enabled"] == true {
        assert_eq!(
            plan["iteration"]["max_iterations"],
            iteration["maxIterations"]
        );
        assert_eq!(plan["limits"]["tokens"], iteration["maxTokens"]);
        assert_eq!(plan["limits"]["duration_ms"], iteration["maxDurationMs"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_configurations_run_with_a_service_as_they_stand() {
    for (name, text) in [("simple.json", SIMPLE), ("complex.json", COMPLEX)] {
        let document: Value = serde_json::from_str(text).expect("JSON");
        for by_environment in [false, true] {
            let fake = server(Vec::new()).await;
            let url = format!("{}/v1", fake.url());
            let (config, env) = match by_environment {
                true => (
                    json!({}),
                    vec![("KD_PROVIDERS_OPENAI_BASE_URL", url.as_str())],
                ),
                false => (json!({"providers": {"openai": {"base_url": url}}}), vec![]),
            };
            let home = Home::new(&config);
            std::fs::write(home.work().join(name), text).expect("written");
            let said = deliberate(&home, &["--plan", name], &env);
            assert_as_written(&said, &document);
            let asked: BTreeSet<String> = models(&fake).into_keys().collect();
            assert_eq!(asked, named(&document), "{name}");
        }
    }
}

#[test]
fn both_configurations_run_with_an_installed_program_as_they_stand() {
    for (name, text) in [("simple.json", SIMPLE), ("complex.json", COMPLEX)] {
        let document: Value = serde_json::from_str(text).expect("JSON");
        let home = Home::new(&json!({}));
        let programs = home.path().join("bin");
        std::fs::create_dir(&programs).expect("made");
        std::fs::copy(kd_fake::fake_agent(), programs.join("codex")).expect("copied");
        let answer = json!({"type": "item.completed", "item": {"id": "a", "type": "agent_message", "text": reply()}});
        let steps = json!([
            {"when": "app-server", "do": [{"exit": 2}]},
            {"read": true},
            {"print": format!("{answer}\n{}\n", json!({"type": "turn.completed", "usage": {}}))},
        ]);
        std::fs::write(programs.join("codex.script"), steps.to_string()).expect("written");
        std::fs::write(home.work().join(name), text).expect("written");
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let said = deliberate(&home, &["--plan", name], &[("PATH", &path)]);
        assert_as_written(&said, &document);
        let shown = said.json();
        for seat in shown["plan"]["seats"].as_array().expect("seats") {
            assert_eq!(seat["member"]["backend"], "codex");
            assert_eq!(seat["member"]["model"], seat["agent"]);
        }
    }
}

#[test]
fn a_model_without_a_key_and_without_a_program_is_told_once_with_what_to_do() {
    let home = Home::new(&json!({}));
    std::fs::write(home.work().join("simple.json"), SIMPLE).expect("written");
    let said = home.run(&["deliberate", "--plan", "simple.json", QUESTION]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert_eq!(
        said.err.matches("OPENAI_API_KEY").count(),
        1,
        "{}",
        said.err
    );
    assert!(!said.err.contains("built-in"), "{}", said.err);
}

#[test]
fn a_project_cannot_seat_a_model_that_the_user_pays_for() {
    for wanted in [
        json!({"deliberation": serde_json::from_str::<Value>(SIMPLE).expect("JSON")}),
        json!({"council": {"members": ["gpt-5"]}}),
        json!({"think": {"fast": "gpt-5-mini"}}),
    ] {
        let home = Home::new(&json!({}));
        std::fs::write(home.work().join(".kd/config.json"), wanted.to_string()).expect("written");
        let listed = home.run(&["trust"]);
        assert!(
            listed.out.contains("members"),
            "{wanted}: {}{}",
            listed.out,
            listed.err
        );
        let said = home.run(&["deliberate", "--dry-run", "--json", QUESTION]);
        assert!(!said.out.contains("gpt-5"), "{wanted}: {}", said.out);
        assert!(said.err.contains("held back"), "{wanted}: {}", said.err);
    }
}

/// All members that the planner's schema names.
fn six() -> Value {
    let schema: Value = serde_json::from_str(PLANNER).expect("JSON");
    schema["properties"]["roles"]["items"]["properties"]["model"]["enum"].clone()
}

fn plan(size: u32, roles: Value) -> Value {
    json!({"complexity": "complex", "councilSize": size, "roles": roles, "allowIterations": false, "votingMethod": "majority"})
}

fn five_roles() -> Value {
    json!([
        {"role": "opinion-giver", "model": "o3", "persona": "Deep Reasoner"},
        {"role": "opinion-giver", "model": "gpt-4.1"},
        {"role": "devil-advocate", "model": "gpt-5", "persona": "Skeptic"},
        {"role": "fact-checker", "model": "o4-mini"},
        {"role": "synthesizer", "model": "gpt-5"},
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_by_the_planners_schema_is_the_plan() {
    struct Case {
        plans: Vec<Value>,
        calls: usize,
        seats: &'static [&'static str],
        notice: &'static str,
    }
    const FIVE: &[&str] = &["o3", "gpt-4.1", "gpt-5", "o4-mini", "gpt-5"];
    let cases = [
        // Only what the schema requires; no domain, no maxIterations, no reasoning, personas in some entries.
        Case {
            plans: vec![plan(5, five_roles())],
            calls: 1,
            seats: FIVE,
            notice: "",
        },
        // The size contradicts the list: the planner is asked again with the reason, and then the plan is used.
        Case {
            plans: vec![plan(7, five_roles()), plan(5, five_roles())],
            calls: 2,
            seats: FIVE,
            notice: "is 7, but 5 members",
        },
        // It still does: the list counts, and the user is informed.
        Case {
            plans: vec![plan(7, five_roles())],
            calls: 2,
            seats: FIVE,
            notice: "those 5 take part",
        },
        // The schema requires neither a role nor a model of an entry.
        Case {
            plans: vec![plan(3, json!([{}, {"role": "reviewer"}, {"model": "o3"}]))],
            calls: 1,
            seats: &["gpt-5", "gpt-5-mini", "o3"],
            notice: "names no role for 2",
        },
    ];
    for case in cases {
        let fake = server(case.plans.clone()).await;
        let home = Home::new(&json!({
            "council": {"members": six()},
            "providers": {"openai": {"base_url": format!("{}/v1", fake.url())}},
        }));
        let said = deliberate(&home, &["--planning", "llm"], &[]);
        assert_eq!(said.code, Some(0), "{}{}", said.err, said.out);
        let shown = said.json();
        let seats: Vec<&str> = shown["plan"]["seats"]
            .as_array()
            .expect("seats")
            .iter()
            .filter_map(|s| s["agent"].as_str())
            .collect();
        assert_eq!(seats, case.seats);
        let seen = fake.seen();
        let planning: Vec<&Seen> = seen
            .iter()
            .filter(|s| s.body.contains("council planning assistant"))
            .collect();
        assert_eq!(planning.len(), case.calls);
        assert!(
            planning.iter().all(|s| s.json()["model"] == "gpt-5-mini"),
            "the document plans with its fast model"
        );
        let told = format!(
            "{}{}",
            shown["notices"],
            planning.last().map_or("", |s| &s.body)
        );
        assert!(told.contains(case.notice), "{told}");
    }
}

#[test]
fn the_first_configuration_of_the_chat_differs_only_by_what_a_later_document_renamed() {
    let home = Home::new(&json!({}));
    std::fs::write(home.config_file(), CHAT).expect("written");
    let said = home.run(&["config", "check"]);
    assert_ne!(said.code, Some(0));
    assert!(
        said.err.contains("council.auto_messages") || said.out.contains("council.auto_messages"),
        "{}{}",
        said.out,
        said.err
    );
    std::fs::write(
        home.config_file(),
        CHAT.replace("auto_rounds", "auto_messages"),
    )
    .expect("written");
    let said = home.run(&["config", "check"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
}

/// A command line of a document, and kd's equivalent.
struct Line {
    written: &'static str,
    ours: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// The difference, and the decision that explains it; empty if nothing differs.
    differs: &'static str,
}

const LINES: &[Line] = &[
    Line {
        written: "kd council ask",
        ours: &["council", "ask", "Why?"],
        env: &[],
        differs: "",
    },
    Line {
        written: "kd council ask --async",
        ours: &["council", "ask", "--async", "Why?"],
        env: &[],
        differs: "",
    },
    Line {
        written: "kd council show",
        ours: &["council", "show"],
        env: &[],
        differs: "",
    },
    Line {
        written: "kd chat",
        ours: &["chat"],
        env: &[],
        differs: "",
    },
    Line {
        written: "kd chat --new",
        ours: &["chat", "--new"],
        env: &[],
        differs: "",
    },
    Line {
        written: "kd chat <thread-id>",
        ours: &["chat", "THREAD"],
        env: &[],
        differs: "",
    },
    Line {
        written: "uv run cli.py run-once --agent opus --agent sonnet",
        ours: &["forum", "run-once", "--agent", "opus", "--agent", "sonnet"],
        env: &[("MIN_DELAY", "0"), ("MAX_DELAY", "0")],
        differs: "`kd forum` for `uv run cli.py`",
    },
    Line {
        written: "uv run cli.py run-once",
        ours: &["forum", "run-once"],
        env: &[("MIN_DELAY", "0"), ("MAX_DELAY", "0")],
        differs: "`kd forum` for `uv run cli.py`",
    },
    // The document's delays, with a single agent; `--cycles` so that the test ends.
    Line {
        written: "CYCLE_INTERVAL=600 SKIP_PROBABILITY=0.1 MIN_DELAY=15 MAX_DELAY=60 uv run cli.py run-cycle",
        ours: &["forum", "run-cycle", "--agent", "haiku", "--cycles", "1"],
        env: &[
            ("CYCLE_INTERVAL", "600"),
            ("SKIP_PROBABILITY", "0.1"),
            ("MIN_DELAY", "15"),
            ("MAX_DELAY", "60"),
        ],
        differs: "`kd forum` for `uv run cli.py`",
    },
    Line {
        written: "CYCLE_INTERVAL=300 SKIP_PROBABILITY=0.15 uv run cli.py run-cycle",
        ours: &["forum", "run-cycle", "--agent", "haiku", "--cycles", "1"],
        env: &[("CYCLE_INTERVAL", "300"), ("SKIP_PROBABILITY", "0.15")],
        differs: "`kd forum` for `uv run cli.py`",
    },
    Line {
        written: "uv run cli.py run-agent haiku",
        ours: &["forum", "run-agent", "haiku"],
        env: &[],
        differs: "`kd forum` for `uv run cli.py`",
    },
    Line {
        written: "MAX_TOOL_CALLS",
        ours: &["forum", "run-agent", "haiku"],
        env: &[("MAX_TOOL_CALLS", "3")],
        differs: "",
    },
    Line {
        written: "sqlite3 .agent_data/agents.db: SELECT * FROM run_history",
        ours: &["forum", "log"],
        env: &[],
        differs: "the store is `.kd/forum.db`; `kd forum log`, `audit` and `export` read it",
    },
];

#[test]
fn every_command_line_of_the_documents_runs_as_it_stands_or_differs_by_a_named_decision() {
    let answer = json!({"runs": [[{"text": "Because."}]]});
    let home = Home::scripted(&[("claude", answer.clone())]);
    let folder = home.work().join(".kd/forum/agents");
    std::fs::create_dir_all(&folder).expect("made");
    let script = home.path().join("agent.json");
    let skips = json!({"tool": "skip", "reason": "nothing to add"}).to_string();
    let skips = json!({"runs": [[{"text": skips}]]});
    std::fs::write(&script, skips.to_string()).expect("written");
    let backend = format!("backend: scripted\nmodel: {}\n", script.display());
    for name in ["opus", "sonnet", "haiku"] {
        let persona = format!("name: {name}\n{backend}system_prompt: You are {name}.\n");
        std::fs::write(folder.join(format!("{name}.yaml")), persona).expect("written");
    }
    // The persona of the document, verbatim; it leaves the backend and the prompt open.
    let persona = "name: \"thoughtful-agent\"\npreferences:\n  skip_probability: 0.3  # More likely to sit out\n  verbosity: \"detailed\"\n";
    let persona = format!("{persona}{backend}system_prompt: You think first.\n");
    std::fs::write(folder.join("thoughtful-agent.yaml"), persona).expect("written");
    home.trust();
    let listed = home.run(&["forum", "agents"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert!(listed.out.contains("thoughtful-agent"), "{}", listed.out);
    let mut thread = String::new();
    for line in LINES {
        let args: Vec<&str> = line
            .ours
            .iter()
            .map(|arg| {
                if *arg == "THREAD" {
                    thread.as_str()
                } else {
                    arg
                }
            })
            .collect();
        let mut kd = home.kd(&args);
        kd.envs(line.env.iter().copied());
        let said = Said::of(kd.output().expect("it runs"));
        assert_eq!(
            said.code,
            Some(0),
            "{}: {}{}",
            line.written,
            said.out,
            said.err
        );
        if args.contains(&"--async") {
            let id = said.out.trim().to_owned();
            home.run(&["council", "watch", &id]);
            thread = id;
        }
        println!(
            "| `{}` | {} |",
            line.written,
            if line.differs.is_empty() {
                "as it stands"
            } else {
                line.differs
            }
        );
    }
}
