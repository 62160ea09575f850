//! The configuration on a real disk: layers, origins, every broken file, edits that keep comments, output of `kd init`.
#![allow(clippy::unwrap_used)] // a test that cannot go on may say so

use crate::common;

use common::Project as House;
use kd_core::config::{Config, InitSeat, KeyPath, Layer, parse_text, render_init};
use kd_store::config::{Change, ConfigError, ConfigPaths, Loaded, create, load, set, unset, write};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;

impl House {
    fn text(&self, layer: Layer) -> String {
        fs::read_to_string(self.file(layer)).unwrap()
    }

    fn load(&self) -> Result<Loaded, ConfigError> {
        load(&self.paths, [], &[])
    }

    /// Allows what the project's files want.
    fn allowed(self) -> Self {
        if let Some(consent) = self.load().unwrap().project.consent {
            consent.allow().unwrap();
        }
        self
    }

    fn load_env(&self, env: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
        let env = env
            .iter()
            .map(|(name, text)| (OsString::from(name), OsString::from(text)));
        load(&self.paths, env, &[])
    }

    /// Returns the problems, without the folder's path.
    fn problems(&self) -> Vec<String> {
        self.told(&self.load().unwrap_err())
    }

    fn told(&self, error: &ConfigError) -> Vec<String> {
        let root = format!("{}/", self.dir.path().display());
        error
            .problems
            .iter()
            .map(|problem| problem.to_string().replace(&root, ""))
            .collect()
    }
}

fn path(text: &str) -> KeyPath {
    text.parse().unwrap()
}

#[test]
fn without_files_the_defaults_hold() {
    let loaded = House::new().load().unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.files, []);
    assert_eq!(
        loaded.origins.of(&path("council.timeout")).to_string(),
        "built-in"
    );
    let outside = load(&ConfigPaths::default(), [], &[]).unwrap();
    assert_eq!(outside.config, Config::default());
}

#[test]
fn empty_files_set_nothing() {
    for text in ["", "  \n", "{}", "\u{feff}{}", "// nothing\n", "\u{feff}"] {
        let house = House::new()
            .has(Layer::Project, text)
            .has(Layer::Local, text);
        assert_eq!(house.load().unwrap().config, Config::default(), "{text:?}");
    }
}

#[test]
fn each_layer_wins_over_those_below_and_every_setting_knows_its_place() {
    let house = House::new()
        .has(Layer::User, "{\n  \"council\": {\n    \"timeout\": 1, \"first_secs\": 1, \"idle_secs\": 1, \"mode\": \"manual\",\n    \"conclude\": false }}")
        .has(Layer::Project, "{\"council\": {\n\"timeout\": 2, \"first_secs\": 2,\n \"idle_secs\": 2, \"mode\": \"natural\"}}")
        .has(Layer::Local, "{\"council\": {\"timeout\": 3,\n\n\"first_secs\": 3, \"idle_secs\": 3}}")
        .allowed();
    let env = [("KD_COUNCIL_TIMEOUT", "4"), ("KD_COUNCIL_FIRST_SECS", "4")]
        .map(|(a, b)| (OsString::from(a), OsString::from(b)));
    let loaded = load(&house.paths, env, &[(path("council.timeout"), json!(5))]).unwrap();
    let council = &loaded.config.council;
    assert_eq!(
        (
            council.timeout,
            council.first_secs,
            council.idle_secs,
            council.conclude
        ),
        (5, 4, 3, false)
    );
    let root = format!("{}/", house.dir.path().display());
    let said = |key: &str| loaded.origins.of(&path(key)).to_string().replace(&root, "");
    assert_eq!(said("council.timeout"), "the command line");
    assert_eq!(said("council.first_secs"), "KD_COUNCIL_FIRST_SECS");
    assert_eq!(said("council.idle_secs"), "repo/.kd/config.local.json:3");
    assert_eq!(said("council.mode"), "repo/.kd/config.json:3");
    assert_eq!(said("council.conclude"), "home/kd/config.json:4");
    assert_eq!(said("council.writable"), "built-in");
    let settings = loaded.settings();
    let timeout = settings
        .iter()
        .find(|setting| setting.path == path("council.timeout"))
        .unwrap();
    assert_eq!(
        (&timeout.value, timeout.origin.layer),
        (&json!(5), Layer::Flag)
    );
    let layers: Vec<Layer> = loaded.files.iter().map(|(layer, _)| *layer).collect();
    assert_eq!(layers, [Layer::User, Layer::Project, Layer::Local]);
}

#[test]
fn objects_are_merged_and_lists_are_replaced() {
    let house = House::new()
        .has(Layer::User, r#"{"agents": {"a": {"backend": "local", "model": "m"}, "b": {"backend": "local"}}, "council": {"members": ["a", "b"]}}"#)
        .has(Layer::Local, r#"{"agents": {"a": {"model": null, "role": "r"}, "b": null}, "council": {"members": ["a"]}}"#)
        .allowed();
    let loaded = house.load().unwrap();
    assert_eq!(loaded.config.council.members, ["a"]);
    assert_eq!(loaded.config.agents.keys().collect::<Vec<_>>(), ["a"]);
    let a = &loaded.config.agents["a"];
    assert_eq!(
        (a.backend.as_str(), a.model.as_deref(), a.role.as_deref()),
        ("local", None, Some("r"))
    );
    let known: Vec<String> = loaded
        .settings()
        .iter()
        .map(|setting| setting.path.to_string())
        .collect();
    assert!(
        known.contains(&"agents.a.temperature".into())
            && !known.iter().any(|path| path.starts_with("agents.b")),
        "{known:?}"
    );
}

#[test]
fn kingdom_clis_own_file_is_read_and_its_idle_settings_are_told() {
    let house = House::new()
        .has(Layer::Project, include_str!("data/config/kingdom-cli.json"))
        .allowed();
    let loaded = house.load().unwrap();
    assert_eq!(loaded.config.council.members, ["claude", "codex", "cursor"]);
    assert_eq!(loaded.without_effect(), []);
    let house = House::new().has(
        Layer::Project,
        r#"{"council": {"ask": {"mode": "sequential"}}, "lord": {"max_cycles": 3}}"#,
    );
    let idle: Vec<String> = house
        .load()
        .unwrap()
        .without_effect()
        .iter()
        .map(|setting| setting.path.to_string())
        .collect();
    assert_eq!(idle, ["council.ask.mode", "lord.max_cycles"]);
}

#[test]
fn all_problems_of_all_layers_come_at_once_with_file_and_line() {
    let house = House::new()
        .has(Layer::User, "{\n // mine\n \"councel\": {}\n}")
        .has(Layer::Project, "{\"council\": {\n  \"timeout\": 0,\n  \"members\": [\n    \"claude\",\n    \"nobody\"\n  ]\n}}")
        .has(Layer::Local, "{\"agents\": {\n\"a\": {\n\"model\": \"m\"}}");
    let env =
        [("KD_COUNCIL_CONCLUDE", "perhaps")].map(|(a, b)| (OsString::from(a), OsString::from(b)));
    let error = load(&house.paths, env, &[(path("council.mode"), json!("loud"))]).unwrap_err();
    let told = house.told(&error);
    assert_eq!(told.len(), 6, "{told:#?}");
    assert_eq!(
        told[0],
        "home/kd/config.json:3: councel is not a setting; did you mean `council`?"
    );
    assert_eq!(
        told[1],
        "repo/.kd/config.json:2: council.timeout must be a whole number from 1 to 604800, not 0"
    );
    assert_eq!(
        told[2],
        "repo/.kd/config.local.json:1: unexpected end of file: something opened in this line is not closed"
    );
    assert_eq!(
        told[3],
        "KD_COUNCIL_CONCLUDE: council.conclude must be true or false, not \"perhaps\""
    );
    assert!(
        told[4].starts_with("the command line: council.mode must be one of"),
        "{}",
        told[4]
    );
    assert!(
        told[5].starts_with("repo/.kd/config.json:5: council.members.1 names \"nobody\""),
        "{}",
        told[5]
    );
    assert_eq!(error.to_string().lines().count(), 6);
}

#[test]
fn what_is_missing_is_told_where_it_should_stand() {
    let house = House::new().has(
        Layer::Local,
        "{\n \"agents\": {\n  \"me\": {\n   \"model\": \"m\"\n  }\n }\n}",
    );
    let told = house.problems();
    assert!(
        told[0].starts_with("repo/.kd/config.local.json:3: agents.me.backend is missing"),
        "{told:?}"
    );
}

#[test]
fn broken_files_are_explained() {
    for (text, told) in [
        (
            &b"{\"council\": {\"timeout\": 5"[..],
            "repo/.kd/config.json:1: unexpected end of file",
        ),
        (
            b"{\n\"council\":",
            "repo/.kd/config.json:2: unexpected end of file",
        ),
        (
            b"{\n\"council\": {\"timeout\": 1 \"mode\": 2}}",
            "repo/.kd/config.json:2: is not valid JSON here (column 25): expected comma",
        ),
        (
            b"{'council': {}}",
            "repo/.kd/config.json:1: is not valid JSON here (column 2): single-quoted strings are not allowed",
        ),
        (
            b"{council: {}}",
            "repo/.kd/config.json:1: is not valid JSON here",
        ),
        (
            b"{} {}",
            "repo/.kd/config.json:1: is not valid JSON here (column 4)",
        ),
        (
            b"{\"council\": {\"timeout\": 0x10}}",
            "repo/.kd/config.json:1: is not valid JSON here",
        ),
        (
            b"{\n\"council\": {\"timeout\": 1e999}}",
            "repo/.kd/config.json:2: council.timeout is not a number that JSON knows: 1e999",
        ),
        (
            b"[1]",
            "repo/.kd/config.json:1: the configuration must be an object",
        ),
        (
            b"{\n\n\"council\": \"\xff\"}",
            "repo/.kd/config.json:3: is not UTF-8 here",
        ),
        (
            b"\xff\xfe{\0}\0",
            "repo/.kd/config.json: is saved as UTF-16",
        ),
        (
            b"{\"council\": {\"mode\": \"manual\",\n\"mode\": \"natural\"}}",
            "repo/.kd/config.json:2: council.mode is set twice; the first is in line 1",
        ),
        (
            b"\0\0\0\0",
            "repo/.kd/config.json:1: is not valid JSON here",
        ),
    ] {
        let problems = House::new().has(Layer::Project, text).problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(told), "{problems:?}");
    }
    let deep = House::new().has(Layer::Project, "{\"a\":".repeat(100_000));
    assert_eq!(deep.problems().len(), 1);
}

#[test]
fn what_is_no_file_is_explained() {
    let house = House::new();
    fs::create_dir(house.file(Layer::Project)).unwrap();
    assert_eq!(
        house.problems(),
        ["repo/.kd/config.json: is a folder where the configuration file should be; move it away"]
    );

    let house = House::new();
    std::os::unix::fs::symlink("config.local.json", house.file(Layer::Local)).unwrap();
    assert!(house.problems()[0].starts_with("repo/.kd/config.local.json: is a link"));

    let house = House::new().has(Layer::Local, vec![b' '; (4 << 20) + 1]);
    assert!(house.problems()[0].contains("a configuration has at most"));

    let mut house = House::new().has(Layer::Local, "");
    house.paths.user = Some(house.file(Layer::Local).join("config.json"));
    assert!(
        house.load().is_ok(),
        "a path through a file leads to no file"
    );
}

#[test]
fn the_environment_sets_what_the_table_says() {
    let house = House::new().has(
        Layer::User,
        r#"{"agents": {"gpt-5.1": {"backend": "openai"}}}"#,
    );
    let env = [
        ("KD_MODEL", "short"),
        ("KD_LOCAL_MODEL", "long"),
        ("KD_THREADS", "3"),
        ("KD_OFFLINE", "1"),
        ("KD_MEMBERS", "gpt-5.1,claude"),
        ("KD_AGENTS_GPT_5_1_TEMPERATURE", "0.25"),
        ("KD_AGENTS_CLAUDE_BACKEND", "anthropic"),
        ("KD_COUNCIL_CHAIR", ""),
        ("KD_BASE", "/nowhere"),
        ("KD_COUNCIL_TIMOUT", "3"),
        ("KD_PROVIDERS_FAKE_PRICES_GOOD_INPUT", "2"),
        ("PATH", "/bin"),
    ];
    let loaded = house.load_env(&env).unwrap();
    let config = &loaded.config;
    assert_eq!(
        (
            config.local.model.as_deref(),
            config.local.threads,
            config.local.offline
        ),
        (Some("long"), Some(3), true)
    );
    assert_eq!(config.council.members, ["gpt-5.1", "claude"]);
    assert_eq!(config.agents["gpt-5.1"].temperature, Some(0.25));
    assert_eq!(config.agents["claude"].backend, "anthropic");
    assert_eq!(config.council.chair, None);
    assert_eq!(
        loaded.notices,
        [
            "KD_COUNCIL_TIMOUT is not a setting of kd; did you mean KD_COUNCIL_TIMEOUT?",
            "KD_PROVIDERS_FAKE_PRICES_GOOD_INPUT sets nothing: no setting has a variable of this name; `kd config set` sets keys without one, such as prices",
        ]
    );
    assert_eq!(
        loaded.origins.of(&path("local.threads")).to_string(),
        "KD_THREADS"
    );
    assert_eq!(
        house
            .load_env(&[("KD_MODEL", "m")])
            .unwrap()
            .config
            .local
            .model
            .as_deref(),
        Some("m")
    );
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_a_problem() {
    use std::os::unix::ffi::OsStringExt;
    let env = [(OsString::from("KD_MODEL"), OsString::from_vec(vec![0xff]))];
    let error = load(&ConfigPaths::default(), env, &[]).unwrap_err();
    assert_eq!(error.to_string(), "KD_MODEL: local.model is not UTF-8");
}

#[test]
fn a_key_file_in_the_repository_is_refused() {
    let house = House::new();
    let inside = house
        .file(Layer::Project)
        .parent()
        .unwrap()
        .join("../keys/openai");
    let outside = house.dir.path().join("home/openai");
    for (file, refused) in [(&inside, true), (&outside, false)] {
        let house = House {
            dir: tempfile::tempdir().unwrap(),
            paths: house.paths.clone(),
        };
        let house = house.has(
            Layer::Local,
            json!({"providers": {"openai": {"key_file": file}}}).to_string(),
        );
        match house.load() {
            Err(error) => assert!(
                refused && error.to_string().contains("is inside the repository"),
                "{error}"
            ),
            Ok(_) => assert!(!refused),
        }
    }
    // Also behind a link.
    fs::create_dir_all(house.dir.path().join("home")).unwrap();
    let link = house.dir.path().join("home/link");
    std::os::unix::fs::symlink(house.dir.path().join("repo"), &link).unwrap();
    let house = house.has(
        Layer::Local,
        json!({"providers": {"openai": {"key_file": link.join("key")}}}).to_string(),
    );
    assert_eq!(house.problems().len(), 1);
}

#[test]
fn setting_keeps_comments_and_order() {
    let before = "// top\n{\n  // the wait\n  \"council\": {\n    \"timeout\": 5, // seconds\n    \"mode\": \"manual\",\n  },\n  /* end */\n}\n";
    let house = House::new().has(Layer::User, before);
    let written = set(
        &house.paths,
        Layer::User,
        &path("council.timeout"),
        json!(60),
    )
    .unwrap();
    assert_eq!(
        (written.layer, written.file, written.notices),
        (Layer::User, house.file(Layer::User), vec![])
    );
    assert_eq!(
        house.text(Layer::User),
        before.replace("\"timeout\": 5", "\"timeout\": 60")
    );
    set(
        &house.paths,
        Layer::User,
        &path("council.mode"),
        json!("natural"),
    )
    .unwrap();
    set(
        &house.paths,
        Layer::User,
        &path("agents.\"gpt-5.1\".backend"),
        json!("openai"),
    )
    .unwrap();
    set(
        &house.paths,
        Layer::User,
        &path("agents.\"gpt-5.1\".prompt"),
        json!("say \"hi\"\n\\ \u{1} é 模"),
    )
    .unwrap();
    let text = house.text(Layer::User);
    for kept in ["// top\n", "// the wait\n", "// seconds\n", "/* end */"] {
        assert!(text.contains(kept), "{text}");
    }
    let config = house.load().unwrap().config;
    assert_eq!(config.agents["gpt-5.1"].prompt, "say \"hi\"\n\\ \u{1} é 模");

    unset(&house.paths, Layer::User, &path("agents.\"gpt-5.1\"")).unwrap();
    unset(&house.paths, Layer::User, &path("council.timeout")).unwrap();
    unset(&house.paths, Layer::User, &path("council.mode")).unwrap();
    let text = house.text(Layer::User);
    assert!(
        text.contains("// top")
            && text.contains("// the wait")
            && text.contains("/* end */")
            && !text.contains("agents"),
        "{text}"
    );
    assert_eq!(house.load().unwrap().config, Config::default());
    let error = unset(&house.paths, Layer::User, &path("council.mode")).unwrap_err();
    assert_eq!(
        house.told(&error),
        ["home/kd/config.json: council.mode is not set in this file"]
    );
}

#[test]
fn a_new_file_and_its_folder_are_made() {
    let house = House::new();
    set(&house.paths, Layer::User, &path("local.threads"), json!(2)).unwrap();
    assert_eq!(
        house.text(Layer::User),
        "{\n  \"local\": {\n    \"threads\": 2\n  }\n}\n"
    );
    unset(&house.paths, Layer::User, &path("local.threads")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&house.text(Layer::User)).unwrap(),
        json!({})
    );
}

#[test]
fn nothing_wrong_is_ever_written() {
    let before = "{\"council\": {\"timeout\": 5}}";
    let house = House::new().has(Layer::Local, before);
    for (key, value) in [
        ("council.timeout", json!(0)),
        ("council.timout", json!(5)),
        ("council.members", json!(["nobody"])),
        ("agents.me.model", json!("m")),
        ("agents.king.backend", json!("local")),
        ("council.timeout.x", json!(1)),
        ("providers.p.api_key", json!("hunter2")),
        ("", json!({})),
    ] {
        let error = set(&house.paths, Layer::Local, &path(key), value).unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
        assert_eq!(house.text(Layer::Local), before, "{key}");
    }
    assert!(set(&house.paths, Layer::Env, &path("council.timeout"), json!(5)).is_err());
    assert!(
        set(
            &ConfigPaths::default(),
            Layer::Local,
            &path("council.timeout"),
            json!(5)
        )
        .unwrap_err()
        .to_string()
        .contains("kd init")
    );
}

#[test]
fn a_wrong_file_can_be_mended_step_by_step_but_a_torn_one_is_left_alone() {
    let house = House::new().has(
        Layer::Local,
        "{\"council\": {\"timeout\": 0, \"mode\": \"x\"}}",
    );
    set(
        &house.paths,
        Layer::Local,
        &path("council.timeout"),
        json!(9),
    )
    .unwrap();
    unset(&house.paths, Layer::Local, &path("council.mode")).unwrap();
    assert_eq!(house.load().unwrap().config.council.timeout, 9);
    let house = House::new().has(Layer::Local, "{\"council\": {");
    assert!(
        set(
            &house.paths,
            Layer::Local,
            &path("council.timeout"),
            json!(9)
        )
        .is_err()
    );
    assert_eq!(house.text(Layer::Local), "{\"council\": {");
}

#[test]
fn an_agent_and_its_seat_can_come_together() {
    let house = House::new();
    let change = |key: &str, value: Value| Change {
        path: path(key),
        value: Some(value),
    };
    let changes = [
        change("council.members", json!(["me"])),
        change("agents.me.model", json!("m")),
        change("agents.me.backend", json!("local")),
    ];
    write(&house.paths, Layer::Local, &changes).unwrap();
    assert_eq!(
        house.load().unwrap().config.agents["me"].model.as_deref(),
        Some("m")
    );
}

#[test]
fn what_kingdom_cli_would_refuse_goes_to_the_local_file() {
    let house = House::new()
        .has(Layer::Project, include_str!("data/config/kingdom-cli.json"))
        .allowed();
    let shared = set(
        &house.paths,
        Layer::Project,
        &path("council.timeout"),
        json!(31),
    )
    .unwrap();
    assert_eq!((shared.layer, shared.notices), (Layer::Project, vec![]));
    let project = house.text(Layer::Project);
    assert_eq!(
        serde_json::from_str::<Value>(&project).unwrap()["council"]["timeout"],
        json!(31)
    );
    for (key, value) in [
        ("council.mode", json!("natural")),
        ("agents.me.backend", json!("local")),
        ("council.members", json!(["claude", "me"])),
        ("agents.claude.temperature", json!(0.5)),
        ("providers.openai.key_env", json!("K")),
    ] {
        let written = set(&house.paths, Layer::Project, &path(key), value).unwrap();
        assert_eq!(
            (written.layer, written.file),
            (Layer::Local, house.file(Layer::Local)),
            "{key}"
        );
        let is_told = written
            .notices
            .iter()
            .any(|notice| notice.contains("config.local.json instead"));
        // Once, with the first setting in that file.
        assert_eq!(
            is_told,
            key == "council.mode",
            "{key}: {:?}",
            written.notices
        );
    }
    assert_eq!(house.text(Layer::Project), project);
    let hidden = set(
        &house.paths,
        Layer::Project,
        &path("council.members"),
        json!(["codex"]),
    )
    .unwrap();
    assert_eq!(hidden.layer, Layer::Project);
    assert!(
        hidden.notices[0].contains("which takes precedence"),
        "{:?}",
        hidden.notices
    );
    let back = unset(&house.paths, Layer::Project, &path("council.mode")).unwrap();
    assert_eq!(back.layer, Layer::Local);
    assert!(house.load().is_ok());
}

#[test]
fn the_mode_of_a_file_and_a_link_to_it_stay() {
    use std::os::unix::fs::PermissionsExt;
    let house = House::new();
    let real = house.dir.path().join("dotfiles.json");
    fs::write(&real, "{}").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir_all(house.file(Layer::User).parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, house.file(Layer::User)).unwrap();
    set(&house.paths, Layer::User, &path("local.threads"), json!(2)).unwrap();
    assert!(house.file(Layer::User).is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("threads"));
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let house = House::new();
    std::thread::scope(|scope| {
        for at in 0..8 {
            let paths = &house.paths;
            scope.spawn(move || {
                set(
                    paths,
                    Layer::Local,
                    &path(&format!("agents.a{at}.backend")),
                    json!("local"),
                )
                .unwrap()
            });
        }
    });
    assert_eq!(house.load().unwrap().config.agents.len(), 8);
    let left: Vec<_> = fs::read_dir(house.file(Layer::Local).parent().unwrap())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "the file and its lock: {left:?}");
}

fn seats() -> Vec<InitSeat> {
    vec![
        InitSeat {
            name: "local".into(),
            backend: "local".into(),
            comment: "built in".into(),
            ..InitSeat::default()
        },
        InitSeat {
            name: "gpt-5.1".into(),
            backend: "openai".into(),
            model: Some("gpt \"x\"".into()),
            role: Some("critic".into()),
            prompt: Some("Be brief.\n// no comment".into()),
            key_env: Some("OPENAI_API_KEY".into()),
            comment: "key found in OPENAI_API_KEY\n\u{1b}[2Jsecond line".into(),
            ..InitSeat::default()
        },
        InitSeat {
            name: "o".into(),
            backend: "ollama".into(),
            base_url: Some("http://localhost:11434/v1".into()),
            ..InitSeat::default()
        },
        InitSeat {
            name: "claude".into(),
            backend: "claude_code".into(),
            ..InitSeat::default()
        },
    ]
}

#[test]
fn what_init_writes_is_right_and_commented() {
    let house = House::new();
    let text = render_init(&seats());
    let file = create(&house.paths, Layer::Local, &text, false).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert!(!text.contains('\u{1b}'));
    let loaded = house.load().unwrap();
    assert_eq!(
        loaded.config.council.members,
        ["local", "gpt-5.1", "o", "claude"]
    );
    assert_eq!(
        loaded.config.agents["gpt-5.1"].prompt,
        "Be brief.\n// no comment"
    );
    assert_eq!(
        loaded.config.providers["openai"].key_env.as_deref(),
        Some("OPENAI_API_KEY")
    );
    for setting in loaded.settings() {
        if setting.origin.layer == Layer::Local {
            assert!(
                text.contains(&format!("// {}\n", setting.key.doc)),
                "{} has no comment",
                setting.path
            );
        }
    }
    let again = create(&house.paths, Layer::Local, "{}", false).unwrap_err();
    assert!(again.to_string().contains("already exists"), "{again}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    create(&house.paths, Layer::Local, "{}", true).unwrap();
    assert!(create(&house.paths, Layer::User, "{\"x\": 1}", false).is_err());
    assert!(!house.file(Layer::User).exists());
}

#[test]
fn every_line_that_init_offers_is_right_once_it_is_uncommented() {
    let text = render_init(&seats());
    let mut offered = 0;
    let all: Vec<String> = text
        .lines()
        .map(|line| match line.split_once("// \"") {
            Some((space, rest)) if space.trim().is_empty() => {
                offered += 1;
                format!("{space}\"{rest}")
            }
            _ => line.to_owned(),
        })
        .collect();
    assert!(offered >= 15, "{text}");
    let house = House::new().has(Layer::Local, all.join("\n"));
    let plain = House::new().has(Layer::Local, text);
    // Writing the defaults explicitly changes nothing.
    assert_eq!(house.load().unwrap().config, plain.load().unwrap().config);
    let empty = House::new().has(Layer::Local, render_init(&[]));
    assert_eq!(empty.load().unwrap().config, Config::default());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_configuration_or_a_problem(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = House::new().has(Layer::Local, bytes).load();
    }

    #[test]
    fn any_json_like_text_is_a_configuration_or_a_problem(parts in proptest::collection::vec(proptest::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"council\"", "\"timeout\"", "\"agents\"", "1", "-", "1e9", "null", "true", "\"\\ud800\"", "// x\n", "/*", "*/", " ", "\n", "'",
    ]), 0..25)) {
        let house = House::new().has(Layer::Local, parts.concat());
        let _ = house.load();
        let _ = set(&house.paths, Layer::Local, &path("council.timeout"), json!(7));
        let _ = unset(&house.paths, Layer::Local, &path("council.timeout"));
    }

    #[test]
    fn what_is_set_is_read_back(
        comment in "[a-z ]{0,8}",
        steps in proptest::collection::vec((proptest::sample::select(vec!["council.timeout", "council.mode", "local.threads", "agents.claude.prompt"]), proptest::option::of(1u32..9)), 1..8),
    ) {
        let house = House::new().has(Layer::User, format!("{{ // {comment}\n  \"agents\": {{\"claude\": {{\"backend\": \"local\" /* b */}}}}\n}}"));
        let mut expected = std::collections::BTreeMap::new();
        for (key, step) in steps {
            let at = path(key);
            match step {
                Some(number) => {
                    let text = if key == "council.mode" { "manual".to_owned() } else { number.to_string() };
                    let value = parse_text(&at, &text).unwrap();
                    set(&house.paths, Layer::User, &at, value.clone()).unwrap();
                    expected.insert(at, value);
                }
                None => {
                    let there = expected.remove(&at).is_some();
                    prop_assert_eq!(unset(&house.paths, Layer::User, &at).is_ok(), there);
                }
            }
        }
        let loaded = house.load().unwrap();
        for key in ["council.timeout", "council.mode", "local.threads", "agents.claude.prompt"] {
            prop_assert_eq!(path(key).find(&loaded.value), expected.get(&path(key)));
        }
        let text = house.text(Layer::User);
        prop_assert!(text.contains("/* b */") && text.contains(comment.trim()), "{}", text);
    }
}
