//! The configuration: every kind of problem, all reported at once; the schema; the manual; and no input causes a panic.

// kd-core's lints against I/O do not apply to its tests, which read files and the environment.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // a test that cannot go on may say so

use kd_core::config::{
    BACKENDS, Config, EnvName, KEYS, KeyPath, Kind, Problem, Wire, check, check_links, check_shape,
    default_value, docs_table, env_name, env_path, environment_table, find_key, kingdom_problems,
    nested, parse_text, schema,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn path(text: &str) -> KeyPath {
    text.parse().unwrap()
}

fn texts(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(Problem::to_string).collect()
}

/// Returns the only problem of a value.
fn problem(value: Value) -> Problem {
    let mut problems = check(&value);
    assert_eq!(problems.len(), 1, "{:?}", texts(&problems));
    problems.remove(0)
}

#[test]
fn nothing_is_a_configuration() {
    assert_eq!(Config::from_value(&json!({})), Ok(Config::default()));
}

#[test]
fn a_file_of_kingdom_cli_is_accepted() {
    let text = include_str!("data/config/kingdom-cli.json");
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(kingdom_problems(&value), []);
    let config = Config::from_value(&value).unwrap();
    assert_eq!(config.council.members, ["claude", "codex", "cursor"]);
    assert_eq!(config.council.timeout, 30);
    assert_eq!(config.agents["claude"].extra_flags, ["--foo", "bar"]);
    assert_eq!(config.agents["claude"].prompts.council, "AGENT-COUNCIL");
    assert_eq!(config.agents["codex"].effort, "xhigh");
    assert_eq!(config.prompts.council, "GLOBAL-COUNCIL");
}

#[test]
fn every_key_that_only_kingdom_cli_reads_is_accepted() {
    let value = json!({
        "council": {
            "review_members": ["claude"], "thinking_visibility": "hide",
            "ask": {"mode": "sequential", "auto_messages": -1}, "chat": {"mode": "round_robin", "auto_rounds": 2},
        },
        "peasant": {"agent": "claude", "max_iterations": 5}, "lord": {"agent": "codex", "max_cycles": 7},
    });
    assert_eq!(check(&value), []);
    assert_eq!(kingdom_problems(&value), []);
}

#[test]
fn all_our_keys_reach_their_fields() {
    let value = json!({
        "$schema": "x.json",
        "council": {"members": ["me", "skeptic"], "mode": "natural", "auto_messages": 2, "conclude": false, "chair": "me", "first_secs": 0},
        "agents": {"me": {"backend": "mine", "model": "m", "temperature": 0.5, "seed": u64::MAX, "weight": 2, "max_tokens": 9}},
        "providers": {"mine": {
            "wire": "anthropic", "base_url": "https://example.org/v1", "key_env": "MY_KEY", "key_command": ["pass", "x"],
            "requests_per_minute": 6, "prices": {"org/m:free": {"input": 1, "cached": 0.5}},
        }},
        "local": {"model": "smollm2", "threads": 2, "offline": true},
    });
    let config = Config::from_value(&value).unwrap();
    assert_eq!(config.council.mode.name, "natural");
    assert_eq!(config.council.auto_messages, Some(2));
    assert_eq!(config.agents["me"].seed, Some(u64::MAX));
    assert_eq!(config.providers["mine"].wire, Wire::Anthropic);
    assert_eq!(
        config.providers["mine"].prices["org/m:free"].cached,
        Some(0.5)
    );
    assert!(config.local.offline);
}

#[test]
fn members_that_everybody_knows_need_no_definition() {
    let config =
        Config::from_value(&json!({"council": {"members": ["claude", "codex", "cursor"]}}))
            .unwrap();
    assert_eq!(config.agents["claude"].backend, "claude_code");
    assert_eq!(config.agents["cursor"].backend, "cursor");
    let own =
        json!({"council": {"members": ["claude"]}, "agents": {"claude": {"backend": "anthropic"}}});
    assert_eq!(
        Config::from_value(&own).unwrap().agents["claude"].backend,
        "anthropic"
    );
}

#[test]
fn null_means_unset_and_minus_one_means_one_each() {
    let value = json!({"council": {"timeout": null, "auto_messages": -1}, "agents": {"x": null}, "local": null});
    assert_eq!(Config::from_value(&value), Ok(Config::default()));
}

#[test]
fn every_backend_can_be_named() {
    for backend in BACKENDS {
        assert_eq!(check(&json!({"agents": {"x": {"backend": backend}}})), []);
    }
}

#[test]
fn an_unknown_key_comes_with_the_nearest() {
    for (value, at, near) in [
        (json!({"councel": {}}), "councel", "council"),
        (
            json!({"council": {"time-out": 5}}),
            "council.time-out",
            "council.timeout",
        ),
        (
            json!({"council": {"auto_message": 5}}),
            "council.auto_message",
            "council.auto_messages",
        ),
        (
            json!({"agents": {"a": {"backend": "local", "temprature": 1}}}),
            "agents.a.temprature",
            "agents.a.temperature",
        ),
        (json!({"timeout": 5}), "timeout", "council.timeout"),
        (
            json!({"providers": {"p": {"prices": {"a.b": {"inptu": 1}}}}}),
            "providers.p.prices.\"a.b\".inptu",
            "providers.p.prices.\"a.b\".input",
        ),
    ] {
        let problem = problem(value);
        assert_eq!(problem.path, path(at));
        assert_eq!(problem.nearest.as_deref(), Some(near));
        assert!(
            problem
                .to_string()
                .ends_with(&format!("is not a setting; did you mean `{near}`?")),
            "{problem}"
        );
    }
    assert_eq!(problem(json!({"zzzzzzzz": 1})).nearest, None);
}

#[test]
fn old_names_say_the_new_ones() {
    let problem = problem(json!({"council": {"auto_rounds": 3}}));
    assert_eq!(
        problem.to_string(),
        "council.auto_rounds is an old name; use council.auto_messages"
    );
}

#[test]
fn types_and_ranges_are_held() {
    for (value, at, what) in [
        (
            json!({"council": []}),
            "council",
            "must be an object {…}, not a list",
        ),
        (
            json!({"council": {"timeout": true}}),
            "council.timeout",
            "must be a whole number from 1 to 604800, not true",
        ),
        (
            json!({"council": {"timeout": 0}}),
            "council.timeout",
            "must be a whole number from 1 to 604800, not 0",
        ),
        (
            json!({"council": {"timeout": 1.5}}),
            "council.timeout",
            "must be a whole number from 1 to 604800, not 1.5",
        ),
        (
            json!({"council": {"auto_messages": -2}}),
            "council.auto_messages",
            "must be a whole number from -1 to 1000, not -2",
        ),
        (
            json!({"council": {"members": "claude"}}),
            "council.members",
            "must be a list of names of agents, not \"claude\"",
        ),
        (
            json!({"council": {"members": [1]}}),
            "council.members.0",
            "must be text, not 1",
        ),
        (
            json!({"council": {"preamble": " "}}),
            "council.preamble",
            "must be text that is not empty, not \" \"",
        ),
        (
            json!({"council": {"conclude": "yes"}}),
            "council.conclude",
            "must be true or false, not \"yes\"",
        ),
        (
            json!({"agents": {"a": {"backend": "local", "temperature": 2.1}}}),
            "agents.a.temperature",
            "must be a number from 0 to 2, not 2.1",
        ),
        (
            json!({"agents": {"a": {"backend": "local", "seed": -1}}}),
            "agents.a.seed",
            "must be a whole number, 0 or more, not -1",
        ),
        (
            json!({"providers": {"p": {"key_file": "keys/x"}}}),
            "providers.p.key_file",
            "must be an absolute path, or one that starts with ~/, not \"keys/x\"",
        ),
        (
            json!({"providers": {"p": {"base_url": "ftp://x"}}}),
            "providers.p.base_url",
            "must be an http or https address, not \"ftp://x\"",
        ),
    ] {
        let problem = problem(value);
        assert_eq!((problem.path, problem.what.as_str()), (path(at), what));
    }
    let mode = problem(json!({"council": {"mode": "brodcast"}}));
    assert_eq!(mode.nearest.as_deref(), Some("broadcast"));
    assert_eq!(
        texts(&check(&json!(7))),
        ["the configuration must be an object {…}, not 7"]
    );
}

#[test]
fn names_point_to_somebody() {
    let value = json!({"council": {"members": ["claud", "me", "me", "a b"], "chair": "mee"}, "agents": {"me": {"backend": "lokal"}, "you": {}}});
    let found = texts(&check(&value));
    assert_eq!(found.len(), 6, "{found:#?}");
    assert!(
        found[0].starts_with(
            "agents.me.backend is \"lokal\", which is neither a backend nor a provider"
        ),
        "{}",
        found[0]
    );
    assert!(found[0].ends_with("did you mean `local`?"), "{}", found[0]);
    assert!(
        found[1].starts_with("agents.you.backend is missing"),
        "{}",
        found[1]
    );
    assert!(
        found[2].starts_with("council.members.0 names \"claud\", but there is no such agent"),
        "{}",
        found[2]
    );
    assert!(found[2].ends_with("did you mean `claude`?"), "{}", found[2]);
    assert_eq!(found[3], "council.members.2 lists \"me\" twice");
    assert!(
        found[4].starts_with("council.members.3 is \"a b\", which cannot name a member"),
        "{}",
        found[4]
    );
    assert!(found[5].ends_with("did you mean `me`?"), "{}", found[5]);
    let provider = json!({"agents": {"me": {"backend": "mine"}}, "providers": {"mine": {}}});
    assert_eq!(check(&provider), []);
}

#[test]
fn bad_names_are_refused_where_they_are_given() {
    for value in [
        json!({"agents": {"king": {"backend": "local"}}}),
        json!({"agents": {"a/b": {"backend": "local"}}}),
        json!({"agents": {"\u{1b}[2J": {"backend": "local"}}}),
        json!({"providers": {"claude_code": {}}}),
        json!({"providers": {"p": {"prices": {"": {}}}}}),
    ] {
        let text = problem(value).to_string();
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn texts_that_the_forum_reads_are_checked_where_they_are_set() {
    for (key, good, bad, why) in [
        (
            "unconfirmed",
            "set, undo",
            "banana",
            "names `banana`; kinds are",
        ),
        ("unconfirmed", "", "ban", "always need a person"),
        ("rule", "schulze", "whoever shouts", "a voting rule"),
    ] {
        let of = |value: &str| check(&json!({"forum": {key: value}}));
        assert_eq!(texts(&of(good)), [""; 0], "forum.{key} = {good}");
        let problem = problem(json!({"forum": {key: bad}}));
        assert_eq!(problem.path.to_string(), format!("forum.{key}"));
        assert!(problem.to_string().contains(why), "{problem}");
    }
}

#[test]
fn secrets_are_refused_and_never_repeated() {
    const SECRET: &str = "sk-ant-Zq81hunter2hunter2";
    for value in [
        json!({"providers": {"p": {"api_key": SECRET}}}),
        json!({"providers": {"p": {"apiKey": SECRET}}}),
        json!({"providers": {"p": {"token": SECRET}}}),
        json!({"api_key": SECRET}),
        json!({"agents": {"a": {"backend": "local", "openai_api_key": [SECRET]}}}),
        json!({"providers": {"p": {"key_env": SECRET}}}),
        json!({"providers": {"p": {"key_env": "AIzaSyD0123456789abcdefghij"}}}),
        json!({"providers": {"p": {"key_file": SECRET}}}),
        json!({"providers": {"p": {"base_url": format!("https://user:{SECRET}@example.org/v1")}}}),
        json!({"providers": {"p": {"base_url": format!("https://example.org/v1?key={SECRET}")}}}),
        json!({"providers": {"p": {"base_url": SECRET}}}),
        json!({"agents": {"a": {"backend": SECRET}}}),
        json!({"council": {"mode": SECRET}}),
        json!({"council": {"chair": SECRET}}),
        json!({"council": {"timeout": SECRET}}),
    ] {
        let text = problem(value).to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("D0123"),
            "{text}"
        );
    }
    let text = problem(json!({"providers": {"p": {"api_key": SECRET}}})).to_string();
    for way in ["key_env", "key_file", "key_command"] {
        assert!(text.contains(way), "{text}");
    }
}

#[test]
fn all_problems_come_at_once() {
    let value = json!({
        "councel": {}, "council": {"timeout": -1, "mode": "x", "auto_rounds": 1, "members": ["nobody"]},
        "agents": {"all": {}, "a": {"backend": "nothing", "top_p": 7}}, "providers": {"p": {"api_key": "x", "wire": 3}},
    });
    let shape = check_shape(&value);
    let links = check_links(&value);
    assert_eq!(shape.len(), 8, "{:#?}", texts(&shape));
    assert_eq!(links.len(), 3, "{:#?}", texts(&links));
    let all = check(&value);
    assert_eq!(all.len(), 11);
    assert_eq!(Config::from_value(&value), Err(all));
}

#[test]
fn kingdom_cli_refuses_what_is_ours() {
    let count = |value: Value| kingdom_problems(&value).len();
    assert_eq!(
        count(json!({"council": {"timeout": 5, "members": ["claude"], "preamble": "x"}})),
        0
    );
    assert_eq!(count(json!({"council": {"mode": "natural"}})), 1);
    assert_eq!(count(json!({"agents": {"a": {"backend": "local"}}})), 1);
    assert_eq!(count(json!({"agents": {"a": {"model": "m"}}})), 1);
    assert_eq!(
        count(json!({"agents": {"a": {"backend": "cursor", "effort": "low"}}})),
        1
    );
    assert_eq!(
        count(json!({"agents": {"a": {"backend": "codex", "effort": "ultra"}}})),
        0
    );
    assert_eq!(count(json!({"council": {"members": ["cursor"]}})), 1);
    assert_eq!(
        count(json!({"providers": {"p": {"wire": "openai", "key_env": "K"}}})),
        2
    );
    assert_eq!(count(json!({"council": {"preamble": null}})), 1);
}

#[test]
fn text_becomes_the_value_that_its_key_takes() {
    for (key, text, value) in [
        ("council.timeout", " 30 ", json!(30)),
        ("council.conclude", "off", json!(false)),
        ("council.conclude", "TRUE", json!(true)),
        (
            "council.members",
            "claude, codex,",
            json!(["claude", "codex"]),
        ),
        ("council.members", "[\"claude\"]", json!(["claude"])),
        ("council.preamble", "7", json!("7")),
        ("council.preamble", "null", Value::Null),
        ("council.auto_messages", "-1", json!(-1)),
        ("agents.\"a.b\".temperature", "0.5", json!(0.5)),
        (
            "agents.x",
            "{\"backend\":\"local\"}",
            json!({"backend": "local"}),
        ),
    ] {
        assert_eq!(parse_text(&path(key), text), Ok(value), "{key}={text}");
    }
    for (key, text, what) in [
        (
            "council.timeout",
            "soon",
            "council.timeout must be a whole number from 1 to 604800, not \"soon\"",
        ),
        (
            "council.timeout",
            "0",
            "council.timeout must be a whole number from 1 to 604800, not 0",
        ),
        (
            "council.timout",
            "9",
            "council.timout is not a setting; did you mean `council.timeout`?",
        ),
        (
            "council",
            "9",
            "council is a section: name one key in it, or give a JSON object",
        ),
        (
            "council.mode",
            "naturel",
            "council.mode must be one of broadcast, sequential, natural, manual, not \"naturel\"; did you mean `natural`?",
        ),
        (
            "council.timeout.x",
            "9",
            "council.timeout must be a whole number from 1 to 604800, not an object",
        ),
    ] {
        let problem = parse_text(&path(key), text).unwrap_err();
        assert_eq!(problem.to_string(), what);
    }
}

#[test]
fn variables_are_found_for_every_key_that_has_one() {
    let files = json!({"agents": {"gpt-5.1": {}}, "providers": {"OpenAI": {}}, "forum": {"remotes": {"OpenAI": {}}, "servers": {"OpenAI": {}}}, "serve": {"models": {"OpenAI": {}}}, "chat": {"keys": {"OpenAI": ""}}});
    for key in KEYS {
        let Some(pattern) = env_name(key) else {
            continue;
        };
        let (variable, name) = if key.path.starts_with("agents.") {
            (pattern.replace("<NAME>", "GPT_5_1"), "gpt-5.1")
        } else {
            (pattern.replace("<NAME>", "OPENAI"), "OpenAI")
        };
        let expected = KeyPath::new(
            key.pattern()
                .map(|part| if part == "<name>" { name } else { part }),
        );
        assert_eq!(
            env_path(&variable, &files),
            EnvName::Key(expected),
            "{variable}"
        );
        if let Some(short) = key.short_env {
            assert_eq!(
                env_path(short, &files),
                EnvName::Key(path(key.path)),
                "{short}"
            );
        }
    }
    assert_eq!(
        env_path("KD_AGENTS_NEW_ONE_PROMPTS_COUNCIL", &files),
        EnvName::Key(path("agents.new_one.prompts.council"))
    );
    assert_eq!(
        env_path("KD_CHAT_KEYS_WORD_LEFT", &files),
        EnvName::OwnFile(path("chat.keys.word-left"))
    );
    assert_eq!(
        env_path("KD_CHAT_SHELL", &files),
        EnvName::OwnFile(path("chat.shell"))
    );
    assert_eq!(
        env_path("KD_CHAT_SHEL", &files),
        EnvName::OwnFile(path("chat.shell"))
    );
    assert_eq!(
        env_path("KD_COUNCIL_TIMOUT", &files),
        EnvName::Mistyped("KD_COUNCIL_TIMEOUT".into())
    );
    for other in [
        "PATH",
        "KD_BASE",
        "KD_ROLE",
        "KD_AGENT_NAME",
        "KD_DEPTH",
        "KDE_SESSION",
        "KD_",
        "KD_SERVE_TOKEN",
        "KD_TEST_COUNT",
    ] {
        assert_eq!(env_path(other, &files), EnvName::Other, "{other}");
    }
    for unknown in [
        "KD_AGENTS__MODEL_X",
        "KD_PROVIDERS_FAKE_PRICES_GOOD_INPUT",
        "KD_AGENTS_ANN_ENV_TOKEN",
        "KD_LIMITS_EVERYTHING_AND_MORE",
    ] {
        assert_eq!(env_path(unknown, &files), EnvName::Unknown, "{unknown}");
    }
}

#[test]
fn defaults_are_known_by_path() {
    assert_eq!(default_value(&path("council.timeout")), Some(json!(600)));
    assert_eq!(
        default_value(&path("agents.anybody.model")),
        Some(Value::Null)
    );
    assert_eq!(default_value(&path("council.nothing")), None);
    assert_eq!(default_value(&path("council")), None);
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares with a file of the repository; `BLESS=1` writes the file instead.
fn same_as_file(file: &Path, made: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(file, made).unwrap();
    }
    let there = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        there == made,
        "{} is not what the table of keys says; run the tests with BLESS=1",
        file.display()
    );
}

#[test]
fn the_schema_is_the_one_we_published() {
    let text = serde_json::to_string_pretty(&sorted(&schema())).unwrap() + "\n";
    same_as_file(&here("tests/data/config/schema.json"), &text);
}

/// Sorts keys alphabetically, whatever the map type of this build does.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            fields
                .into_iter()
                .map(|(name, value)| (name.clone(), sorted(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_manual_says_what_the_table_says() {
    let file = here("../../docs/configuration.md");
    let mut text = std::fs::read_to_string(&file).unwrap();
    for (name, table) in [("keys", docs_table()), ("variables", environment_table())] {
        let (begin, end) = (
            format!("<!-- {name}: made by a test -->\n"),
            format!("<!-- {name}: end -->"),
        );
        let from = text.find(&begin).expect("the mark stands in the manual") + begin.len();
        let to = text.find(&end).expect("the end mark stands in the manual");
        text.replace_range(from..to, &format!("\n{table}\n"));
    }
    same_as_file(&file, &text);
}

#[test]
fn the_schema_refuses_what_we_refuse() {
    let schema = jsonschema::draft202012::new(&schema()).unwrap();
    assert!(schema.is_valid(&json!({})));
    for bad in [
        json!(7),
        json!({"councel": {}}),
        json!({"council": {"timeout": 0}}),
        json!({"council": {"timeout": true}}),
        json!({"council": {"mode": "x"}}),
        json!({"council": {"members": "x"}}),
        json!({"agents": {"king": {}}}),
        json!({"agents": {"a/b": {}}}),
        json!({"agents": {"a": {"temperature": 3}}}),
        json!({"providers": {"local": {}}}),
        json!({"providers": {"p": {"api_key": "x"}}}),
        json!({"providers": {"p": {"key_env": "a b"}}}),
        json!({"providers": {"p": {"key_file": "x"}}}),
        json!({"providers": {"p": {"base_url": "x"}}}),
        json!({"providers": {"p": {"prices": {"m": {"input": -1}}}}}),
    ] {
        assert!(!schema.is_valid(&bad), "{bad}");
        assert!(!check_shape(&bad).is_empty(), "{bad}");
    }
}

/// A value that often, but not always, fits a key.
fn leaf(kind: Kind) -> BoxedStrategy<Value> {
    let right = match kind {
        Kind::OneOf(words) => proptest::sample::select(words.to_vec())
            .prop_map(Value::from)
            .boxed(),
        Kind::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Kind::Whole { .. } => prop_oneof![
            (-2i64..2000).prop_map(Value::from),
            any::<u64>().prop_map(Value::from)
        ]
        .boxed(),
        Kind::Number { .. } => (-0.5f64..2.5).prop_map(Value::from).boxed(),
        Kind::Texts => proptest::collection::vec("[a-z -]{0,5}", 0..3)
            .prop_map(Value::from)
            .boxed(),
        Kind::Agents => {
            proptest::sample::subsequence(vec!["claude", "skeptic", "a", "b", "a b"], 0..4)
                .prop_map(Value::from)
                .boxed()
        }
        Kind::Seats => {
            let seat = (
                proptest::sample::select(vec!["skeptic", "arbiter", "x"]),
                proptest::option::of(-0.5f64..2.5),
            )
                .prop_map(|(role, weight)| match weight {
                    Some(weight) => json!({"model": "local", "role": role, "weight": weight}),
                    None => json!({"model": "local", "role": role}),
                });
            proptest::collection::vec(seat, 2..5)
                .prop_map(Value::from)
                .boxed()
        }
        Kind::Backend | Kind::Agent => {
            proptest::sample::select(vec!["local", "codex", "a", "b", "p", ""])
                .prop_map(Value::from)
                .boxed()
        }
        Kind::Url => proptest::sample::select(vec![
            "http://localhost:1/v1",
            "HTTPS://x",
            "http://",
            "x",
            "http://a b",
            "http:///x",
        ])
        .prop_map(Value::from)
        .boxed(),
        Kind::Variable => "[A-Z_a-z0-9]{0,12}".prop_map(Value::from).boxed(),
        Kind::File => proptest::sample::select(vec!["/x", "~/x", "C:\\x", "x", ""])
            .prop_map(Value::from)
            .boxed(),
        Kind::Text | Kind::Words => "\\PC{0,6}".prop_map(Value::from).boxed(),
    };
    prop_oneof![8 => right, 1 => Just(Value::Null), 1 => anything()].boxed()
}

/// Arbitrary JSON.
fn anything() -> BoxedStrategy<Value> {
    let name = prop_oneof![
        proptest::sample::select(vec![
            "council",
            "agents",
            "providers",
            "local",
            "prices",
            "members",
            "timeout",
            "api_key",
            "a",
            "king",
            ""
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(name.clone(), inner, 0..5)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
    .boxed()
}

/// A configuration of several settings, most of them valid.
fn settings() -> impl Strategy<Value = Value> {
    let one = proptest::sample::select(KEYS).prop_flat_map(|key| {
        (
            proptest::sample::select(vec!["a", "b", "p"]),
            leaf(key.kind),
        )
            .prop_map(move |(name, value)| {
                (
                    KeyPath::new(
                        key.pattern()
                            .map(|part| if part.starts_with('<') { name } else { part }),
                    ),
                    value,
                )
            })
    });
    proptest::collection::vec(one, 0..8).prop_map(|settings| {
        let mut all = json!({"agents": {"a": {"backend": "local"}, "b": {"backend": "p"}, "p": {"backend": "p"}}, "providers": {"p": {}}});
        for (path, value) in settings {
            let mut at = &mut all;
            for part in path.segments() {
                if !at.is_object() {
                    *at = json!({});
                }
                at = &mut at[part.as_str()];
            }
            *at = value;
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_value_makes_the_check_panic(value in anything()) {
        let _ = (Config::from_value(&value), kingdom_problems(&value));
        for problem in check(&value) {
            prop_assert!(!problem.to_string().chars().any(|c| c.is_control()));
        }
    }

    #[test]
    fn what_is_accepted_is_accepted_again_and_by_the_schema(value in settings()) {
        if let Ok(config) = Config::from_value(&value) {
            let again = serde_json::to_value(&config).unwrap();
            prop_assert_eq!(texts(&check(&again)), Vec::<String>::new());
            prop_assert_eq!(Config::from_value(&again), Ok(config));
            let schema = jsonschema::draft202012::new(&schema()).unwrap();
            prop_assert!(schema.is_valid(&value), "{}", value);
        }
    }

    #[test]
    fn any_text_is_a_value_or_a_problem(key in proptest::sample::select(KEYS), text in any::<String>()) {
        let path = KeyPath::new(key.pattern().map(|part| if part.starts_with('<') { "x" } else { part }));
        prop_assert_eq!(find_key(&path).map(|key| key.path), Some(key.path));
        if let Ok(value) = parse_text(&path, &text) {
            prop_assert_eq!(check_shape(&nested(&path, value)), vec![]);
        }
    }

    #[test]
    fn any_path_is_a_path_again(text in any::<String>(), segments in proptest::collection::vec(any::<String>(), 0..4)) {
        let _ = text.parse::<KeyPath>();
        let path = KeyPath::new(segments);
        prop_assert_eq!(path.to_string().parse(), Ok(path));
    }

    #[test]
    fn any_variable_has_a_meaning(name in "KD_[A-Z_0-9]{0,30}") {
        let _ = env_path(&name, &json!({"agents": {"a": {}}}));
    }
}
