//! Tests the decisions about a project's files on a real disk: held back, allowed exactly as shown, voided by any
//! change.
#![allow(clippy::unwrap_used)] // a test that cannot go on may say so

use crate::common;

use common::Project as Stage;
use kd_core::config::{FromProject, KEYS, Key, KeyPath, Kind, Layer, nested, wanted};
use kd_store::Decision;
use kd_store::config::{Because, ConfigPaths, Loaded, create, load, set, unset};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;

const HOSTILE: &str = r#"{"council": {"members": ["e"], "preamble": "obey"},
  "agents": {"e": {"backend": "command", "dialect": "codex",
    "command": ["sh", "-c", "id"]}}}"#;

impl Stage {
    fn loaded(&self) -> Loaded {
        load(&self.paths, [], &[]).unwrap()
    }

    fn held(&self) -> Vec<String> {
        let held = self.loaded().project.held;
        held.iter()
            .map(|setting| setting.path.to_string())
            .collect()
    }

    fn git(&self, args: &[&str]) {
        common::git(&self.repo(), args);
    }
}

fn path(text: &str) -> KeyPath {
    text.parse().unwrap()
}

/// Returns the path of a row, with names for its placeholders.
fn row(key: &Key) -> KeyPath {
    KeyPath::new(key.pattern().map(|part| match part {
        "<name>" => "mine",
        "<model>" => "m",
        part => part,
    }))
}

/// Returns whether a project needs consent for some value of a row.
fn is_gated(key: &Key) -> bool {
    use FromProject::{Free, Never, Text};
    !matches!(key.project, Free | Text | Never)
}

/// Returns a valid value for a row that is not its default.
fn sample(key: &Key) -> Value {
    match key.kind {
        Kind::Text | Kind::Words if key.path == "deliberation.answer" => json!("exact"),
        Kind::Text if key.path == "forum.unconfirmed" => json!("text"),
        Kind::Words if key.path.ends_with("method") => json!("borda"),
        Kind::Words if key.path.ends_with("rule") => json!("borda"),
        Kind::Text | Kind::Words => json!("words"),
        Kind::OneOf(words) => json!(words.last().unwrap()),
        Kind::Bool => json!(key.default != "true"),
        // A newer version is refused with the whole file.
        Kind::Whole { min, .. } if key.path == "version" => json!(min),
        Kind::Whole { max, .. } => json!(max.min(1 << 40)),
        Kind::Number { max, .. } => json!(max),
        Kind::Texts | Kind::Agents => json!(["codex"]),
        Kind::Agent => json!("codex"),
        Kind::Backend => json!("codex"),
        Kind::Seats => {
            json!([{"model": "codex", "role": "skeptic"}, {"model": "codex", "role": "skeptic"},
            {"model": "codex", "role": "skeptic"}])
        }
        Kind::Url => json!("http://127.0.0.1:9/v1"),
        Kind::Variable => json!("AWS_SECRET"),
        Kind::File => json!("/etc/key"),
    }
}

/// Returns other valid values for a row.
fn others(key: &Key) -> Vec<Value> {
    match key.kind {
        Kind::Text if key.path == "forum.unconfirmed" => vec![json!("set"), json!("text, set")],
        Kind::Words if key.path.ends_with("method") => vec![json!("approval")],
        Kind::Words if key.path.ends_with("rule") => vec![json!("approval")],
        Kind::Text | Kind::Words => vec![json!("other"), json!("words ")],
        Kind::OneOf(words) => words[..words.len() - 1].iter().map(|w| json!(w)).collect(),
        Kind::Bool => vec![json!(key.default == "true")],
        Kind::Whole { min, max } => {
            let (min, max) = (u64::try_from(min).unwrap_or(0), max.min(1 << 40));
            vec![json!(min), json!(u64::midpoint(min, max)), json!(max - 1)]
        }
        Kind::Number { min, max } => vec![json!(min), json!(f64::midpoint(min, max))],
        Kind::Texts | Kind::Agents => vec![json!(["claude"]), json!(["codex", "claude"])],
        Kind::Agent | Kind::Backend => vec![json!("claude")],
        Kind::Seats => {
            let seats = [json!({"model": "claude", "role": "skeptic"})];
            vec![json!([&seats[0], &seats[0], &seats[0]])]
        }
        Kind::Url => vec![json!("http://127.0.0.1:9/v2")],
        Kind::Variable => vec![json!("OTHER")],
        Kind::File => vec![json!("/etc/other")],
    }
}

/// Builds the user's own file with this setting; an agent in it needs a backend.
fn own(path: &KeyPath, value: Option<&Value>) -> String {
    let mut all = json!({"agents": {"mine": {"backend": "local"}}});
    if path.segments()[0] != "agents" {
        all = json!({});
    }
    if let Some(value) = value {
        let mut at = &mut all;
        for segment in path.segments() {
            at = &mut at[segment];
        }
        *at = value.clone();
    }
    all.to_string()
}

#[test]
fn consent_for_a_row_ends_when_it_changes_and_not_when_the_users_file_does() {
    let (mut changed, mut kept) = (0, 0);
    for key in KEYS.iter().filter(|key| is_gated(key)) {
        let (path, value) = (row(key), sample(key));
        for layer in [Layer::Project, Layer::Local] {
            let file = |value: &Value| nested(&path, value.clone()).to_string();
            let stage = Stage::new()
                .has(Layer::User, own(&path, None))
                .has(layer, file(&value));
            let holds = |stage: &Stage| stage.held().contains(&path.to_string());
            let asked = holds(&stage);
            if let Some(consent) = stage.loaded().project.consent {
                consent.allow().unwrap();
            }
            assert!(!holds(&stage), "{path} in {layer}: allowed");
            // The user's file changes.
            let mut stage = stage;
            for theirs in others(key).iter().chain([&value]) {
                stage = stage.has(Layer::User, own(&path, Some(theirs)));
                if asked && load(&stage.paths, [], &[]).is_ok() {
                    kept += 1;
                    assert!(!holds(&stage), "{path} in {layer} over {theirs}");
                }
            }
            stage = stage.has(Layer::User, own(&path, None));
            assert!(!holds(&stage), "{path} in {layer}: as at first");
            // The project changes.
            for other in others(key) {
                let below: Value = serde_json::from_str(&own(&path, None)).unwrap();
                let judged = wanted(&nested(&path, other.clone()), &below);
                stage = stage.has(layer, file(&other));
                if load(&stage.paths, [], &[]).is_err() {
                    continue;
                }
                changed += usize::from(!judged.is_empty());
                assert_eq!(
                    holds(&stage),
                    !judged.is_empty(),
                    "{path}: {other} in {layer}"
                );
            }
            stage = stage.has(layer, file(&value));
            assert!(!holds(&stage), "{path} in {layer}: as it was allowed");
        }
    }
    assert!(changed > 150 && kept > 300, "{changed} {kept}");
}

#[test]
fn what_counted_as_stricter_is_asked_about_once_the_users_file_makes_it_a_raise() {
    let mut tried = 0;
    for key in KEYS {
        let (path, start) = (row(key), tried);
        let values: Vec<Value> = others(key).into_iter().chain([sample(key)]).collect();
        if !matches!(key.project, FromProject::Limit(_)) {
            continue;
        }
        for (theirs, before, after) in values.iter().flat_map(|theirs| {
            let pairs = values
                .iter()
                .flat_map(|a| values.iter().map(move |b| (a, b)));
            pairs.map(move |(before, after)| (theirs, before, after))
        }) {
            let below = |own: &Value| nested(&path, own.clone());
            let asks =
                |own: &Value| !wanted(&nested(&path, theirs.clone()), &below(own)).is_empty();
            if tried > start + 1 || asks(before) || !asks(after) {
                continue;
            }
            // Consent for a neighboring setting does not include this one.
            let mut project: Value = nested(&path, theirs.clone());
            project["forum"]["interval"] = json!("adaptive");
            let stage = Stage::new()
                .has(Layer::User, own(&path, Some(before)))
                .has(Layer::Project, project.to_string());
            let Ok(loaded) = load(&stage.paths, [], &[]) else {
                continue;
            };
            assert_eq!(
                stage.held(),
                ["forum.interval"],
                "{path}: {theirs} under {before}"
            );
            loaded.project.consent.unwrap().allow().unwrap();
            assert_eq!(stage.held(), Vec::<String>::new());
            let stage = stage.has(Layer::User, own(&path, Some(after)));
            if load(&stage.paths, [], &[]).is_ok() {
                tried += 1;
                assert_eq!(stage.held(), [path.to_string()], "{theirs} over {after}");
            }
        }
    }
    assert!(tried > 60, "{tried}");
}

#[test]
fn a_new_setting_is_asked_about_alone_and_the_old_consent_is_kept() {
    let with = |more: &str| {
        format!(
            r#"{{"council": {{"writable": true{more}}}, "agents": {{"e": {{"backend": "codex"}}}}}}"#
        )
    };
    let stage = Stage::new().has(Layer::Project, with(""));
    stage.loaded().project.consent.unwrap().allow().unwrap();
    let stage = stage.has(
        Layer::Project,
        with(r#", "chair": "codex", "timeout": 900"#),
    );
    let project = stage.loaded().project;
    let consent = project.consent.unwrap();
    let new: Vec<String> = consent.new_settings().map(|s| s.path.to_string()).collect();
    assert_eq!(new, ["council.chair", "council.timeout"]);
    assert_eq!(
        (consent.settings.len(), consent.decision),
        (4, Decision::Unknown)
    );
    // Declining changes nothing, and is remembered for this list.
    consent.decline().unwrap();
    let loaded = stage.loaded();
    assert_eq!(stage.held(), ["council.chair", "council.timeout"]);
    assert!(loaded.config.council.writable && loaded.config.agents.contains_key("e"));
    assert_eq!(loaded.project.consent.unwrap().decision, Decision::Declined);
    let stage = stage.has(Layer::Project, with(r#", "chair": "codex""#));
    assert_eq!(
        stage.loaded().project.consent.unwrap().decision,
        Decision::Unknown
    );
    stage.loaded().project.consent.unwrap().allow().unwrap();
    assert!(stage.held().is_empty());
    // A setting that was removed from the files needs consent again when it returns.
    let stage = stage.has(Layer::Project, r#"{"council": {"timeout": 900}}"#);
    stage.loaded().project.consent.unwrap().allow().unwrap();
    let stage = stage.has(Layer::Project, with(r#", "timeout": 900"#));
    assert_eq!(stage.held(), ["council.writable", "agents.e.backend"]);
}

#[test]
fn settings_of_one_agent_or_provider_are_allowed_together() {
    let p = |fields: &str| format!(r#"{{"providers": {{"openai": {{{fields}}}}}}}"#);
    let (url, key) = (
        r#""base_url": "https://a.example/v1""#,
        r#""key_env": "A_KEY""#,
    );
    let stage = Stage::new().has(Layer::Project, p(&format!("{url}, {key}")));
    stage.loaded().project.consent.unwrap().allow().unwrap();
    assert!(stage.held().is_empty());
    // Without the key that was shown, the standard one would be sent to that host.
    let stage = stage.has(Layer::Project, p(url));
    assert_eq!(stage.held(), ["providers.openai.base_url"]);
    let moved = format!("{url}, {}", key.replace("A_KEY", "OTHER"));
    let stage = stage.has(Layer::Project, p(&moved));
    assert_eq!(stage.held().len(), 2);
    // Texts and limits beside them are independent.
    let stage = stage.has(
        Layer::Project,
        p(&format!("{url}, {key}, \"requests_per_minute\": 1")),
    );
    assert!(stage.held().is_empty());
    // Another agent or provider is independent as well: only its own settings are held back.
    let more = format!("{{\"providers\": {{\"openai\": {{{url}, {key}}}, \"b\": {{{url}}}}}}}");
    let stage = stage.has(Layer::Project, &more);
    assert_eq!(stage.held(), ["providers.b.base_url"]);
    // The local file configures the same agent.
    let stage = stage
        .has(Layer::Project, p(&format!("{url}, {key}")))
        .has(Layer::Local, p(r#""key_env": null"#));
    assert!(
        stage
            .held()
            .contains(&"providers.openai.base_url".to_owned())
    );
}

#[test]
fn a_command_of_the_users_keeps_what_they_allowed_for_the_same_agent() {
    let stage = Stage::new().has(Layer::Project, HOSTILE);
    stage.loaded().project.consent.unwrap().allow().unwrap();
    let flags = path("agents.e.extra_flags");
    set(&stage.paths, Layer::Local, &flags, json!(["-x"])).unwrap();
    assert!(stage.held().is_empty(), "{:?}", stage.held());
    unset(&stage.paths, Layer::Local, &flags).unwrap();
    assert!(stage.held().is_empty());
    // Neither decision allows a foreign setting that was added meanwhile.
    let worse = HOSTILE.replace("\"dialect\"", "\"env\": [\"AWS_KEY\"], \"dialect\"");
    let stage = stage.has(Layer::Project, &worse);
    set(&stage.paths, Layer::Local, &flags, json!(["-x"])).unwrap();
    assert!(stage.held().contains(&"agents.e.env".to_owned()));
    assert!(stage.held().contains(&"agents.e.command".to_owned()));
}

#[test]
fn no_row_of_the_table_takes_effect_from_either_file_without_consent() {
    for key in KEYS {
        let (gated, path, value) = (is_gated(key), row(key), sample(key));
        for layer in [Layer::Project, Layer::Local] {
            let stage = Stage::new().has(layer, nested(&path, value.clone()).to_string());
            // A setting of an agent requires that the user has the agent.
            let own = json!({"agents": {"mine": {"backend": "local"}}});
            let needs_agent = path.segments()[0] == "agents";
            let stage = if needs_agent {
                stage.has(Layer::User, own.to_string())
            } else {
                stage
            };
            let Ok(loaded) = load(&stage.paths, [], &[]) else {
                panic!(
                    "{path} in {layer}: {:?}",
                    load(&stage.paths, [], &[]).unwrap_err()
                );
            };
            let set = path.find(&loaded.value).filter(|set| **set == value);
            // Of limits whose loosest value is the default nothing can be held back.
            let harmless =
                matches!(key.project, FromProject::Limit(_)) && loaded.project.held.is_empty();
            let never = key.project == FromProject::Never;
            let effective = (!gated || harmless) && !never;
            assert_eq!(set.is_some(), effective, "{path} in {layer}");
            assert_eq!(
                !loaded.project.refused.is_empty(),
                never,
                "{path} in {layer}"
            );
            assert_eq!(
                loaded.project.held.is_empty(),
                !gated || harmless,
                "{path} in {layer}"
            );
        }
    }
}

#[test]
fn what_needs_consent_is_held_back_and_the_rest_works() {
    let stage = Stage::new()
        .has(Layer::User, r#"{"agents": {"mine": {"backend": "local"}}}"#)
        .has(Layer::Project, HOSTILE);
    let loaded = stage.loaded();
    assert_eq!(
        stage.held(),
        ["agents.e.backend", "agents.e.dialect", "agents.e.command"]
    );
    assert!(!loaded.config.agents.contains_key("e"));
    assert_eq!(loaded.config.council.members, Vec::<String>::new());
    assert_eq!(loaded.config.council.preamble.as_deref(), Some("obey"));
    let project = &loaded.project;
    assert!(
        project.agents.contains("e") && project.everyone,
        "{project:?}"
    );
    let texts: Vec<String> = project.texts.iter().map(|t| t.path.to_string()).collect();
    assert_eq!(texts, ["council.preamble"]);
    let place = project.held[2].origin.to_string();
    assert!(place.ends_with(".kd/config.json:3"), "{place}");
    // A variable or a flag sets the user's own members.
    let env = [(OsString::from("KD_MEMBERS"), OsString::from("mine"))];
    let mine = load(&stage.paths, env, &[]).unwrap();
    assert!(!mine.project.everyone);
    assert_eq!(mine.config.council.members, ["mine"]);
}

#[test]
fn consent_is_for_the_settings_that_were_shown_and_any_change_voids_it() {
    let stage = Stage::new().has(Layer::Project, HOSTILE);
    let shown = stage.loaded().project.consent.unwrap();
    assert_eq!(shown.decision, Decision::Unknown);
    // The file changes between the list and the answer: what was not shown is not allowed.
    let worse = HOSTILE.replace("\"id\"", "\"id; rm -r ~\"");
    let stage = stage.has(Layer::Project, &worse);
    shown.allow().unwrap();
    assert_eq!(stage.held().len(), 3);
    let stage = stage.has(Layer::Project, HOSTILE);
    assert!(stage.held().is_empty());
    assert_eq!(
        stage.loaded().config.agents["e"].command,
        ["sh", "-c", "id"]
    );
    // Changing a setting that needs consent voids it; other changes do not.
    for (from, to, voids) in [
        ("\"obey\"", "\"please\"", false),
        ("\"id\"", "\"id \"", true),
        ("\"codex\"", "\"claude\"", true),
        (
            "\"e\": {",
            "\"f\": {\"backend\": \"codex\"}, \"e\": {",
            true,
        ),
        ("\"e\": {", "\"e\": {\"extra_flags\": [\"-x\"],", true),
        (
            "\"members\": [\"e\"]",
            "\"members\": [\"e\", \"codex\"]",
            true,
        ),
        (
            "\"members\": [\"e\"]",
            "\"members\": [\"e\", \"skeptic\"]",
            false,
        ),
        (
            "\"members\": [\"e\"]",
            "\"members\": [\"e\"], \"writable\": true",
            true,
        ),
    ] {
        let text = HOSTILE.replacen(from, to, 1);
        assert_ne!(text, HOSTILE, "{from}");
        fs::write(stage.paths.project.as_ref().unwrap(), &text).unwrap();
        assert_eq!(!stage.held().is_empty(), voids, "{from} -> {to}");
    }
    // Not at another path.
    let elsewhere = Stage::new().has(Layer::Project, HOSTILE);
    let paths = ConfigPaths {
        trust: stage.paths.trust.clone(),
        ..elsewhere.paths.clone()
    };
    assert!(load(&paths, [], &[]).unwrap().project.holds_back());
}

#[test]
fn a_no_is_remembered_for_these_settings_and_nothing_counts_without_a_store() {
    let stage = Stage::new().has(Layer::Local, HOSTILE);
    stage.loaded().project.consent.unwrap().decline().unwrap();
    let again = stage.loaded().project;
    assert_eq!(again.consent.unwrap().decision, Decision::Declined);
    assert_eq!(again.held.len(), 3);
    let stage = stage.has(Layer::Local, HOSTILE.replace("\"id\"", "\"ls\""));
    assert_eq!(
        stage.loaded().project.consent.unwrap().decision,
        Decision::Unknown
    );
    let paths = ConfigPaths {
        trust: None,
        ..stage.paths.clone()
    };
    let loaded = load(&paths, [], &[]).unwrap();
    assert!(loaded.project.holds_back());
    assert!(loaded.project.consent.unwrap().allow().is_err());
    // An untrusted store allows nothing, and that is reported.
    stage.loaded().project.consent.unwrap().allow().unwrap();
    fs::write(stage.paths.trust.as_ref().unwrap().file(), "{").unwrap();
    let loaded = stage.loaded();
    assert!(loaded.project.holds_back() && loaded.project.fault.is_some());
}

#[test]
fn a_local_file_that_git_tracks_is_held_back_whoever_allowed_what() {
    let stage = Stage::new().has(Layer::Local, HOSTILE);
    stage.git(&["init", "-q"]);
    // Programs that a hostile repository would make git run.
    let ran = stage.dir.path().join("ran");
    let hook = stage.dir.path().join("hook");
    fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    let mut mode = fs::metadata(&hook).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs::set_permissions(&hook, mode).unwrap();
    let consent = stage.loaded().project.consent;
    assert!(consent.is_some(), "not tracked: it can be allowed");
    stage.git(&["add", "-f", ".kd/config.local.json"]);
    stage.git(&["config", "core.fsmonitor", hook.to_str().unwrap()]);
    stage.git(&["config", "filter.x.clean", hook.to_str().unwrap()]);
    fs::write(stage.repo().join(".gitattributes"), "* filter=x\n").unwrap();
    let project = stage.loaded().project;
    assert_eq!(project.consent, None);
    assert_eq!(project.held.len(), 3);
    assert!(
        project
            .held
            .iter()
            .all(|s| matches!(s.why, Because::Tracked(_)))
    );
    assert!(!ran.exists(), "git ran a program of the repository");
    // The shared file's settings can still be allowed; the local ones remain held back.
    let stage = stage.has(Layer::Project, r#"{"council": {"writable": true}}"#);
    stage.loaded().project.consent.unwrap().allow().unwrap();
    let loaded = stage.loaded();
    assert!(loaded.config.council.writable);
    assert_eq!(loaded.project.held.len(), 3);
    assert!(!ran.exists());
}

#[test]
fn what_the_users_own_command_writes_is_allowed_at_once() {
    let stage = Stage::new();
    let write =
        |key: &str, value: Value| set(&stage.paths, Layer::Local, &path(key), value).unwrap();
    write("council.timeout", json!(900));
    write("agents.mine.backend", json!("codex"));
    write("agents.mine.extra_flags", json!(["-x"]));
    assert!(stage.held().is_empty());
    assert_eq!(stage.loaded().config.council.timeout, 900);
    unset(&stage.paths, Layer::Local, &path("agents.mine.extra_flags")).unwrap();
    assert!(stage.held().is_empty());
    let text = r#"{"agents": {"b": {"backend": "codex"}}, "council": {"members": ["b"]}}"#;
    create(&stage.paths, Layer::Local, text, true).unwrap();
    assert!(stage.held().is_empty());
    assert_eq!(stage.loaded().config.council.members, ["b"]);
}

#[test]
fn one_setting_of_the_users_does_not_bring_a_strangers_along() {
    for prior in [Decision::Unknown, Decision::Declined] {
        let stage = Stage::new().has(Layer::Project, HOSTILE);
        if prior == Decision::Declined {
            stage.loaded().project.consent.unwrap().decline().unwrap();
        }
        let written = set(
            &stage.paths,
            Layer::Project,
            &path("council.timeout"),
            json!(900),
        )
        .unwrap();
        assert!(
            written.notices.iter().any(|n| n.contains("kd trust")),
            "{:?}",
            written.notices
        );
        assert!(stage.held().contains(&"agents.e.command".to_owned()));
        // Lowering a limit needs no consent, and allows nothing else.
        let lower = set(
            &stage.paths,
            Layer::Project,
            &path("council.timeout"),
            json!(9),
        )
        .unwrap();
        assert!(
            !lower.notices.iter().any(|n| n.contains("kd trust")),
            "{:?}",
            lower.notices
        );
        assert_eq!(stage.held().len(), 3);
        // `kd init --force` replaces the local file; the shared one remains held back.
        create(
            &stage.paths,
            Layer::Local,
            r#"{"agents": {"b": {"backend": "codex"}}}"#,
            true,
        )
        .unwrap();
        assert!(stage.held().contains(&"agents.e.command".to_owned()));
        assert!(stage.held().contains(&"agents.b.backend".to_owned()));
    }
    // If everything that was not allowed is in the replaced file, nothing is held back.
    let stage = Stage::new().has(Layer::Local, HOSTILE);
    create(
        &stage.paths,
        Layer::Local,
        r#"{"agents": {"b": {"backend": "codex"}}}"#,
        true,
    )
    .unwrap();
    assert!(stage.held().is_empty());
    assert_eq!(stage.loaded().config.agents["b"].backend, "codex");
}

#[test]
fn a_persona_with_the_name_of_an_agent_that_has_servers_is_held_back() {
    let own = r#"{"agents": {"mine": {"backend": "codex"}}, "forum": {"servers": {"wiki": {"command": ["wiki"], "tools": ["search"], "agents": ["mine", "here"]}}}}"#;
    let stage = Stage::new().has(Layer::User, own);
    let folder = stage.paths.personas.clone().unwrap();
    fs::create_dir_all(&folder).unwrap();
    let persona = |name: &str, lines: &str| {
        let text = format!("name: {name}\nsystem_prompt: You are {name}.\n{lines}");
        fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
    };
    let before = stage.loaded().project;
    // Without a server, these need no consent.
    persona("here", "backend: local\n");
    persona("mine", "backend: codex\n");
    persona("other", "backend: local\n");
    let project = stage.loaded().project;
    let names: Vec<&str> = project.personas.iter().map(String::as_str).collect();
    assert_eq!(names, ["here", "mine"]);
    let wants = project.held.iter().map(|setting| &setting.value["servers"]);
    assert!(wants.clone().all(|servers| *servers == json!(["wiki"])));
    assert!(project.allow_change(&before, |_, _| true).unwrap());
    assert!(!stage.loaded().project.holds_back());
    // The consent covers these servers.
    let more = own.replace(
        "\"servers\": {",
        r#""servers": {"mail": {"command": ["mail"], "tools": ["send"], "agents": ["here"]}, "#,
    );
    fs::write(stage.paths.user.as_ref().unwrap(), more).unwrap();
    let project = stage.loaded().project;
    let names: Vec<&str> = project.personas.iter().map(String::as_str).collect();
    assert_eq!(names, ["here"]);
}

#[test]
fn a_persona_that_costs_money_or_runs_a_program_is_held_back() {
    let stage = Stage::new().has(Layer::User, r#"{"agents": {"mine": {"backend": "codex"}}}"#);
    let folder = stage.paths.personas.clone().unwrap();
    fs::create_dir_all(&folder).unwrap();
    let persona = |name: &str, lines: &str| {
        let text = format!("name: {name}\nsystem_prompt: You are {name}.\n{lines}");
        fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
    };
    persona("here", "backend: local\n");
    persona("mine", "backend: codex\n");
    assert!(stage.held().is_empty());
    let before = stage.loaded().project;
    persona("ada", "backend: claude_code\n");
    persona("script", "backend: local\nmodel: /etc/passwd\n");
    let project = stage.loaded().project;
    let names: Vec<&str> = project.personas.iter().map(String::as_str).collect();
    assert_eq!(names, ["ada", "script"]);
    // The user's own command that writes one of them does not allow the other.
    let ada = KeyPath::new(["forum", "agents", "ada.yaml"]);
    assert!(
        !project
            .allow_change(&before, |at, _| at.is_within(&ada))
            .unwrap()
    );
    fs::remove_file(folder.join("script.yaml")).unwrap();
    assert!(
        stage
            .loaded()
            .project
            .allow_change(&before, |at, _| at.is_within(&ada))
            .unwrap()
    );
    assert!(!stage.loaded().project.holds_back());
    persona("ada", "backend: codex\n");
    assert!(stage.loaded().project.personas.contains("ada"));
}

#[test]
fn keys_of_the_chat_come_from_the_user_even_if_the_folder_is_allowed() {
    let hostile = [
        r#"{"chat": {"keys": {"send": "f9", "search": "ctrl+q"}}, "council": {"timeout": 900}}"#,
        r#"{"chat": {"keys": {"send": ""}}, "council": {"timeout": 900}}"#,
        r#"{"chat": {"keys": {"send": null}}, "council": {"timeout": 900}}"#,
        r#"{"chat": {"keys": null}, "council": {"timeout": 900}}"#,
        r#"{"chat": null, "council": {"timeout": 900}}"#,
    ];
    let own = json!({"send": "f2", "thinking": "f3"});
    for (text, layer) in hostile
        .iter()
        .flat_map(|text| [(text, Layer::Project), (text, Layer::Local)])
    {
        let stage = Stage::new()
            .has(Layer::User, json!({"chat": {"keys": own}}).to_string())
            .has(layer, *text);
        assert_eq!(stage.held(), ["council.timeout"], "{text}");
        stage.loaded().project.consent.unwrap().allow().unwrap();
        let loaded = stage.loaded();
        assert_eq!(loaded.config.council.timeout, 900, "{text}: allowed");
        assert_eq!(loaded.value["chat"]["keys"], own, "{text} in {layer}");
        let told = text.contains("keys");
        assert_eq!(!loaded.project.refused.is_empty(), told, "{text}");
    }
    // Written by a command, it says so.
    let stage = Stage::new();
    let written = set(
        &stage.paths,
        Layer::Local,
        &path("chat.keys.send"),
        json!("f9"),
    )
    .unwrap();
    assert!(format!("{written:?}").contains("has no effect in a project"));
}

#[test]
fn no_variable_makes_a_setting_of_the_own_file() {
    let own = json!({"chat": {"keys": {"send": "f2"}}});
    let stage = Stage::new().has(Layer::User, own.to_string());
    let env = [
        ("KD_CHAT_SHELL", "true"),
        ("KD_CHAT_KEYS_SEND", "f4"),
        ("KD_CHAT_THEME", "dark"),
    ];
    let env = env.map(|(name, text)| (name.into(), text.into()));
    let loaded = load(&stage.paths, env, &[]).unwrap();
    assert!(!loaded.config.chat.shell);
    assert_eq!(
        loaded.value["chat"],
        json!({"keys": {"send": "f2"}, "theme": "dark"})
    );
    let told = loaded.notices.join("\n");
    for line in [
        "KD_CHAT_SHELL has no effect: only your own settings file sets chat.shell",
        "KD_CHAT_KEYS_SEND has no effect: only your own settings file sets chat.keys.send",
    ] {
        assert!(told.contains(line), "{told}");
    }
    assert_eq!(loaded.notices.len(), 2, "{told}");
}
