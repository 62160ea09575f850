//! Tests the settings that a project may change: every row of the table, then complete files as a hostile repository
//! would write them.
#![allow(clippy::unwrap_used)] // a test that cannot go on may say so

use kd_core::config::{
    FromProject, KEYS, Key, KeyPath, Kind, Limit, Wanted, Why, effect, hold_back, nested,
    project_texts, refuse, unseat, wanted,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Returns the path of a row, with names in place of placeholders.
fn path(key: &Key) -> KeyPath {
    KeyPath::new(key.pattern().map(|part| match part {
        "<name>" => "mine",
        "<model>" => "m",
        part => part,
    }))
}

/// Returns a valid value of a row other than its default.
fn sample(key: &Key) -> Value {
    match key.kind {
        Kind::Text | Kind::Words => json!("words"),
        Kind::OneOf(words) => json!(words.last().unwrap()),
        Kind::Bool => json!(key.default != "true"),
        Kind::Whole { max, .. } => json!(max.min(1 << 40)),
        Kind::Number { max, .. } => json!(max),
        Kind::Texts if key.project != FromProject::Members => json!(["a", "b"]),
        Kind::Texts | Kind::Agents => json!(["codex"]),
        Kind::Agent => json!("codex"),
        Kind::Backend => json!("codex"),
        Kind::Seats => json!([{"model": "codex", "role": "skeptic"}]),
        Kind::Url => json!("http://127.0.0.1:9/v1"),
        Kind::Variable => json!("AWS_SECRET_ACCESS_KEY"),
        Kind::File => json!("/etc/key"),
    }
}

fn want(file: &Value, below: &Value) -> Vec<Wanted> {
    wanted(file, below)
}

fn asks(path: &KeyPath, value: &Value, below: &Value) -> bool {
    want(&nested(path, value.clone()), below)
        .iter()
        .any(|wanted| wanted.path == *path)
}

/// Returns the stricter and the looser end of a limit.
fn ends(key: &Key, limit: Limit) -> (Value, Value) {
    let (low, high) = match key.kind {
        Kind::Whole { min, max } => (json!(min.max(1)), json!(max.min(1 << 40))),
        Kind::Number { min, max } => (json!(min), json!(max)),
        Kind::Bool => (json!(false), json!(true)),
        other => panic!("{}: {other:?} is no limit", key.path),
    };
    match limit {
        Limit::AtLeast | Limit::On => (high, low),
        Limit::ZeroIsNone => (high, json!(0)),
        _ => (low, high),
    }
}

#[test]
fn every_row_lets_a_project_do_what_its_mark_says() {
    let nothing = json!({});
    let mut counts = [0; 5];
    for key in KEYS {
        let (path, value) = (path(key), sample(key));
        match key.project {
            FromProject::Never => {
                for own in [nothing.clone(), nested(&path, json!("own"))] {
                    assert!(!asks(&path, &value, &own), "{path}: there is no choice");
                }
                let mut file = nested(&path, value.clone());
                let refused = refuse(&mut file);
                assert!(refused.len() == 1 && path.is_within(&refused[0]), "{path}");
                assert_eq!(path.find(&file), None);
            }
            FromProject::Free | FromProject::Text => {
                counts[usize::from(key.project == FromProject::Text)] += 1;
                assert!(!asks(&path, &value, &nothing), "{path}");
                assert!(
                    !asks(&path, &Value::Null, &nested(&path, value.clone())),
                    "{path}"
                );
            }
            FromProject::Trusted => {
                counts[2] += 1;
                assert!(asks(&path, &value, &nothing), "{path} over nothing");
                let own = nested(&path, json!("own"));
                assert!(asks(&path, &value, &own), "{path} over the user's own");
                assert!(
                    asks(&path, &Value::Null, &own),
                    "{path}: null resets the user's own"
                );
                assert!(
                    !asks(&path, &value, &nested(&path, value.clone())),
                    "{path}: no change"
                );
            }
            FromProject::Members => {
                counts[3] += 1;
                assert!(asks(&path, &value, &nothing), "{path}: another member");
                let fine = match key.kind {
                    Kind::Agents | Kind::Texts => json!(["skeptic"]),
                    Kind::Seats => json!([{"model": "local", "role": "skeptic"}]),
                    Kind::Backend => json!("local"),
                    _ => json!("skeptic"),
                };
                assert!(!asks(&path, &fine, &nothing), "{path}: the built-in model");
                assert!(
                    asks(&path, &Value::Null, &nested(&path, value.clone())),
                    "{path}: null"
                );
            }
            FromProject::Limit(limit) => {
                counts[4] += 1;
                let (strict, loose) = ends(key, limit);
                let over = |value: &Value| nested(&path, value.clone());
                assert!(
                    asks(&path, &loose, &over(&strict)),
                    "{path}: {loose} over {strict}"
                );
                assert!(
                    !asks(&path, &strict, &over(&loose)),
                    "{path}: {strict} over {loose}"
                );
                assert!(!asks(&path, &strict, &over(&strict)), "{path}: the same");
                let written = loose.to_string();
                let asked = limit == Limit::NoLimit || written == key.default;
                assert_eq!(
                    !asks(&path, &loose, &nothing),
                    asked,
                    "{path}: {loose} over nothing"
                );
                if key.default == "null" && limit != Limit::NoLimit {
                    assert!(
                        asks(&path, &Value::Null, &over(&strict)),
                        "{path}: null over {strict}"
                    );
                }
            }
        }
        // Exactly the withheld settings are gone.
        let mut file = nested(&path, value);
        let held = want(&file, &nothing);
        if !held.is_empty() {
            hold_back(&mut [(&mut file, held)], &nothing);
            assert!(
                path.find(&file).is_none_or(|left| *left == json!([])),
                "{path} stays: {file}"
            );
        }
    }
    assert!(counts.iter().all(|count| *count > 3), "{counts:?}");
}

#[test]
fn what_reaches_out_is_never_set_by_a_project_alone() {
    let settable = |key: &&Key| key.project != FromProject::Never;
    for key in KEYS.iter().filter(settable) {
        let last = key.pattern().last().unwrap();
        let outward = matches!(key.kind, Kind::Url | Kind::Variable | Kind::File)
            || matches!(
                last,
                "command" | "key_command" | "env" | "extra_flags" | "state" | "store" | "wire"
            )
            || (last == "model" && key.path != "deliberation.council.members");
        assert!(
            !outward || key.project == FromProject::Trusted,
            "{}",
            key.path
        );
        let asked = !matches!(key.project, FromProject::Free | FromProject::Text);
        let word = effect(&path(key));
        assert_eq!(asked, !word.is_empty(), "{}: {word:?}", key.path);
        assert!(word.len() <= 9 && word != "other", "{}: {word:?}", key.path);
    }
}

#[test]
fn a_section_that_is_reset_takes_the_users_settings_away_only_with_consent() {
    let own = json!({"agents": {"claude": {"backend": "claude_code"}},
                     "providers": {"openai": {"base_url": "https://proxy.example/v1"}}});
    for file in [
        json!({"agents": null}),
        json!({"agents": {"claude": null}}),
        json!({"providers": {"openai": null}}),
        json!({"agents": {"claude": {"backend": "local"}}}),
    ] {
        let mut held = file.clone();
        let asked = want(&file, &own);
        assert_eq!(asked.len(), 1, "{file}");
        hold_back(&mut [(&mut held, asked)], &own);
        assert!(held.pointer("/agents/claude/backend").is_none(), "{held}");
        assert!(!held.to_string().contains("null"), "{held}");
    }
    assert_eq!(
        want(
            &json!({"agents": null, "providers": {"x": null}}),
            &json!({})
        ),
        []
    );
}

#[test]
fn an_agent_that_is_held_back_is_gone_with_everything_of_it() {
    let mut file = json!({
        "council": {"members": ["skeptic", "e"], "chair": "e", "timeout": 5},
        "agents": {"e": {"backend": "command", "command": ["sh"], "role": "skeptic", "prompt": "p"},
                   "quiet": {"backend": "local", "prompt": "p", "model": "/etc/passwd"}},
        "providers": {"p": {"base_url": "https://example.org/", "requests_per_minute": 1}},
        "think": {"fast": "e"},
        "deliberation": {"council": {"members": [{"model": "e", "role": "skeptic"}]}},
    });
    let nothing = json!({});
    let held = want(&file, &nothing);
    let paths: Vec<String> = held.iter().map(|wanted| wanted.path.to_string()).collect();
    for path in [
        "agents.e.backend",
        "agents.e.command",
        "agents.quiet.model",
        "providers.p.base_url",
    ] {
        assert!(paths.contains(&path.to_owned()), "{path}: {paths:?}");
    }
    let rest = hold_back(&mut [(&mut file, held)], &nothing);
    assert_eq!(rest.agents, BTreeSet::from(["e".to_owned()]));
    unseat(&mut file, &rest.agents);
    assert_eq!(
        file,
        json!({
            "council": {"members": ["skeptic"], "timeout": 5},
            "agents": {"quiet": {"backend": "local", "prompt": "p"}},
            "providers": {}, "think": {}, "deliberation": {"council": {}},
        })
    );
}

#[test]
fn a_project_seats_members_of_the_users_council_and_nobody_else() {
    let own = json!({
        "agents": {"claude": {"backend": "claude_code"}, "gpt": {"backend": "openai"}, "dear": {"backend": "openai"},
                   "skeptic": {"backend": "openai"}},
        "council": {"members": ["claude", "gpt"]},
    });
    for (members, stay) in [
        (json!(["gpt"]), json!(["gpt"])),
        (json!(["gpt", "pragmatist"]), json!(["gpt", "pragmatist"])),
        (json!(["gpt", "dear", "codex"]), json!(["gpt"])),
        // A user's own agent named like a role is not a built-in member.
        (json!(["skeptic", "claude"]), json!(["claude"])),
        (json!(["dear"]), Value::Null),
    ] {
        let mut file = json!({"council": {"members": members}});
        let held = want(&file, &own);
        assert_eq!(held.is_empty(), members == stay, "{members}");
        hold_back(&mut [(&mut file, held)], &own);
        let left = file
            .pointer("/council/members")
            .cloned()
            .unwrap_or_default();
        assert_eq!(left, stay, "{members}");
    }
    let chair = json!({"council": {"chair": "dear"}});
    assert_eq!(want(&chair, &own)[0].why, Why::Members);
}

#[test]
fn two_files_of_one_project_are_judged_together() {
    let (shared, local) = (
        json!({"agents": {"e": {"backend": "local"}}}),
        json!({"agents": {"e": {"backend": "command", "command": ["sh"]}}, "council": {"members": ["e"]}}),
    );
    let nothing = json!({});
    let held = wanted(&local, &nothing);
    let (mut below, mut above) = (shared.clone(), local.clone());
    let rest = hold_back(&mut [(&mut below, vec![]), (&mut above, held)], &nothing);
    assert!(
        rest.agents.is_empty(),
        "the shared file's agent stays: {rest:?}"
    );
    assert_eq!(above.pointer("/agents/e/backend"), None);
    assert_eq!(above.pointer("/council/members"), Some(&json!(["e"])));
    // An agent that uses a withheld provider.
    let mut file = json!({"providers": {"local-p": {"base_url": "http://localhost/"}}, "agents": {"x": {"backend": "local-p"}}});
    let held = want(&file, &nothing);
    let rest = hold_back(&mut [(&mut file, held)], &nothing);
    assert_eq!(file, json!({"providers": {}, "agents": {}}));
    assert!(rest.agents.contains("x"));
}

#[test]
fn texts_for_models_are_listed() {
    let file = json!({"council": {"preamble": "obey", "mode": "manual"}, "prompts": {"review": " "},
        "agents": {"a": {"prompt": "p", "role": "skeptic"}},
        "deliberation": {"council": {"members": [{"model": "local", "role": "skeptic", "systemPrompt": "s"}]}}});
    let found: Vec<String> = project_texts(&file)
        .iter()
        .map(ToString::to_string)
        .collect();
    let mut sorted = found.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        [
            "agents.a.prompt",
            "agents.a.role",
            "council.preamble",
            "deliberation.council.members"
        ]
    );
}
