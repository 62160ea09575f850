//! Tests of how a batch of a fleet is asked.

use super::*;
use crate::env::Env;

fn kingdom(change: impl FnOnce(&mut Config)) -> Kingdom {
    let dir = tempfile::tempdir().unwrap();
    let env = Env::of([("HOME", dir.path().as_os_str())]).in_folder(dir.path());
    let mut kingdom = Kingdom::open_with(env).unwrap();
    kingdom.configure(|config| {
        for (name, backend) in [("ada", "openai"), ("bob", "anthropic"), ("cy", "openai")] {
            let agent = AgentConfig {
                backend: backend.into(),
                ..AgentConfig::default()
            };
            config.agents.insert(name.into(), agent);
            config
                .providers
                .insert(backend.into(), ProviderConfig::default());
        }
        change(config);
    });
    kingdom
}

fn ask(members: &[&str]) -> How {
    How::Ask(Ask {
        seats: SeatRequest {
            members: members.iter().map(|&name| name.into()).collect(),
            seed: Some(7),
            ..SeatRequest::default()
        },
        ..Ask::default()
    })
}

#[test]
fn a_machine_with_the_same_configuration_of_the_named_members_asks_in_the_same_way() {
    let how = ask(&["ada"]);
    let asks = of(&kingdom(|_| {}), &how, false).unwrap();
    // Keys, rates and limits are each machine's own, and so are members that are not named.
    let mut other = kingdom(|config| {
        config.agents.remove("bob");
        config.providers.remove("anthropic");
        config.limits.calls = Some(9);
        let provider = config.providers.entry("openai".into()).or_default();
        provider.key_env = Some("OTHER".into());
        provider.requests_per_minute = Some(9);
    });
    assert_eq!(accept(&mut other, &asks).unwrap(), how);
    type Change = fn(&mut Config);
    let changes: [(&str, Change); 5] = [
        ("agents.ada", |c| {
            c.agents.entry("ada".into()).or_default().prompt = "p".into()
        }),
        ("`ada`", |c| drop(c.agents.remove("ada"))),
        ("council", |c| c.council.preamble = Some("p".into())),
        ("prompts", |c| c.prompts.council = "p".into()),
        ("providers.openai", |c| {
            c.providers.entry("openai".into()).or_default().base_url = Some("https://h/v1".into());
        }),
    ];
    for (part, change) in changes {
        let error = accept(&mut kingdom(change), &asks).unwrap_err();
        assert!(error.what.contains(part), "{part}: {}", error.what);
    }
    let older = Asks {
        parts: asks.parts.replace(
            &digest(&[&json!(env!("CARGO_PKG_VERSION")).to_string()]),
            "x",
        ),
        ..asks
    };
    let error = accept(&mut kingdom(|_| {}), &older).unwrap_err();
    assert!(error.what.ends_with(": kd"), "{}", error.what);
    assert_eq!(
        recipe(&older, true),
        recipe(&of(&kingdom(|_| {}), &how, false).unwrap(), true)
    );
}

#[test]
fn agent_programs_and_what_the_database_should_not_say_are_refused() {
    let program: fn(&mut Config) = |config| {
        config.agents.entry("ada".into()).or_default().backend = "codex".into();
    };
    let error = of(&kingdom(program), &ask(&["ada"]), false).unwrap_err();
    assert!(
        error.what.contains("`ada` is an agent program (codex)"),
        "{}",
        error.what
    );
    assert!(
        of(&kingdom(program), &ask(&["bob"]), false).is_ok(),
        "it is not asked"
    );
    type Change = fn(&mut Config);
    let thinks = || How::Think(Think::default());
    let deliberates = || How::Deliberate(Deliberate::default());
    let places: [(How, Change); 4] = [
        (ask(&["bob"]), |c| c.council.chair = Some("codex".into())),
        (deliberates(), |c| c.council.chair = Some("codex".into())),
        (deliberates(), |c| {
            c.deliberation.meta.planner = Some("codex".into())
        }),
        (thinks(), |c| c.think.arbiter = Some("codex".into())),
    ];
    for (how, change) in places {
        let error = of(&kingdom(change), &how, false).unwrap_err();
        assert!(
            error.what.contains("`codex` is an agent program"),
            "{}",
            error.what
        );
    }
    let asks = of(&kingdom(|_| {}), &ask(&["ada"]), false).unwrap();
    assert!(accept(&mut kingdom(program), &asks).is_err());
    let model = |name: &str| {
        asks.asks
            .replace("\"model\":null", &format!("\"model\":\"{name}\""))
    };
    let listed = Asks {
        asks: model("m-2"),
        ..asks.clone()
    };
    let lists = |config: &mut Config| {
        let provider = config.providers.entry("openai".into()).or_default();
        provider
            .prices
            .insert("m-2".into(), kd_core::config::Price::default());
    };
    assert!(accept(&mut kingdom(lists), &listed).is_ok());
    let number = |name: &str, to: &str| {
        let text = asks
            .asks
            .replace(&format!("\"{name}\":null"), &format!("\"{name}\":{to}"));
        assert_ne!(text, asks.asks, "{name}");
        text
    };
    for text in [
        model("m-2"),
        model("gpt-5-pro"),
        model("m/../../x"),
        number("max_tokens", "4294967295"),
        number("max_tokens", "0"),
        number("timeout", "18446744073709551615"),
        number("temperature", "1e30"),
        asks.asks.replace("\"ada\"", "\"gpt-5-pro\""),
        r#"{"method":"ask","members":["ada"],"command":["rm"]}"#.to_owned(),
        asks.asks
            .replace("\"ada\"", &format!("\"{}\"", "x".repeat(300))),
        "{".into(),
    ] {
        let asks = Asks {
            asks: text,
            ..asks.clone()
        };
        assert!(
            accept(&mut kingdom(|_| {}), &asks).is_err(),
            "{}",
            asks.asks
        );
    }
}

#[test]
fn a_plan_travels_with_the_batch_and_can_choose_nothing_that_is_not_listed() {
    let how = How::Deliberate(Deliberate::default());
    let member = |model: &str| kd_core::config::MemberPlan {
        model: model.into(),
        role: "skeptic".into(),
        system_prompt: Some("Doubt.".into()),
        temperature: Some(0.5),
        ..kd_core::config::MemberPlan::default()
    };
    let planned = kingdom(|config| {
        config.deliberation.council.members =
            Some(vec![member("ada"), member("bob"), member("cy")]);
        config.deliberation.rounds = 3;
    });
    let asks = of(&planned, &how, true).unwrap();
    let mut other = kingdom(|_| {});
    assert_eq!(accept(&mut other, &asks).unwrap(), how);
    assert_eq!(other.config().deliberation, planned.config().deliberation);
    // Without its plan, the settings must be the same.
    let bare = of(&planned, &how, false).unwrap();
    let error = accept(&mut kingdom(|_| {}), &bare).unwrap_err();
    assert!(error.what.ends_with(": deliberation"), "{}", error.what);
    let changed = |path: &str, to: Value| {
        let mut spec: Value = serde_json::from_str(&asks.asks).unwrap();
        *spec.pointer_mut(path).unwrap() = to;
        Asks {
            asks: spec.to_string(),
            ..asks.clone()
        }
    };
    for (path, to, told) in [
        (
            "/plan/council/members/0/model",
            json!("gpt-5-pro"),
            "lists no agent",
        ),
        (
            "/plan/council/members/0/model",
            json!("codex"),
            "agent program",
        ),
        ("/plan/meta/planner", json!("codex"), "agent program"),
        ("/plan/meta/planner", json!("nobody"), "no such agent"),
        (
            "/plan/council/members/0",
            json!({"model": "ada", "command": ["rm"]}),
            "not followed",
        ),
        (
            "/plan/council/members/0/temperature",
            json!(1e9),
            "not followed",
        ),
        ("/plan/memory/longTerm", json!(true), "long-term memory"),
        ("/plan/rounds", json!(4_000_000_000_u32), "not followed"),
        ("/plan/maxCalls", json!(-1), "not followed"),
        ("/plan/protocol", json!("../../x"), "not followed"),
        ("/plan", json!({"baseUrl": "https://h"}), "not followed"),
        ("/plan", json!([1]), "no plan"),
        (
            "/plan/meta/reasoning",
            json!("x".repeat(300_000)),
            "too long",
        ),
    ] {
        let error = accept(&mut kingdom(|_| {}), &changed(path, to.clone())).unwrap_err();
        let said = format!("{} {:?}", error.what, error.why);
        assert!(said.contains(told), "{path} {to}: {said}");
    }
}

#[test]
fn the_chair_and_the_planner_are_part_of_what_must_be_the_same() {
    let chaired = |model: &'static str| {
        kingdom(move |config| {
            config.council.chair = Some("boss".into());
            let boss = AgentConfig {
                backend: "openai".into(),
                model: Some(model.into()),
                ..AgentConfig::default()
            };
            config.agents.insert("boss".into(), boss);
        })
    };
    let asks = of(&chaired("m-1"), &ask(&["ada"]), false).unwrap();
    assert!(accept(&mut chaired("m-1"), &asks).is_ok());
    let error = accept(&mut chaired("m-2"), &asks).unwrap_err();
    assert!(error.what.ends_with(": agents.boss"), "{}", error.what);
    // A chair that writes nothing need not be able to.
    let silent = kingdom(|config| {
        config.council.chair = Some("codex".into());
        config.council.conclude = false;
    });
    assert!(of(&silent, &ask(&["ada"]), false).is_ok());
}
