//! Tests which program answers for a member: always that of the agent it was created from, whatever the member is
//! called and whichever other agents use the same backend.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use futures::StreamExt;
use kd_backends::{Backends, Env, Options};
use kd_core::config::{AgentConfig, Config};
use kd_core::duet::seats::{DuetRequest, among, seat as duet};
use kd_core::planner::{Brief, plan};
use kd_core::request::Deadlines;
use kd_core::seating::{SeatRequest, seat};
use kd_core::{Member, Prompt, Request, Sampling};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// Creates two agents with one backend. Each has its own program, which records how it was started, and its own
/// settings.
fn configured(folder: &Path, backend: &str) -> Config {
    let mut config = Config::default();
    for name in ["alice", "zoe"] {
        let at = folder.join(name);
        std::fs::hard_link(kd_fake::fake_agent(), &at)
            .or_else(|_| std::fs::copy(kd_fake::fake_agent(), &at).map(drop))
            .unwrap();
        let script = json!([{"record": folder.join(format!("{name}.seen"))}, {"exit": 3}]);
        std::fs::write(folder.join(format!("{name}.script")), script.to_string()).unwrap();
        let agent = AgentConfig {
            backend: backend.into(),
            command: vec![at.to_str().unwrap().into()],
            dialect: (backend == "command").then(|| "codex".into()),
            env: vec![format!("{}_TOKEN", name.to_uppercase())],
            state: vec![format!("/state/of/{name}")],
            extra_flags: vec![format!("--of-{name}")],
            effort: format!("effort-of-{name}"),
            warm: Some(false),
            ..AgentConfig::default()
        };
        config.agents.insert(name.into(), agent);
    }
    config
}

/// Returns every kind of member that can be created from zoe alone.
fn seats_of_zoe(config: &Config) -> Vec<Member> {
    let wishes = SeatRequest {
        members: vec!["zoe".into()],
        ..SeatRequest::default()
    };
    let council = seat(config, &wishes).unwrap().roster;
    let mut seats = council.members().to_vec();
    seats.extend(council.chair().cloned());
    let zoe = Some("zoe".to_owned());
    let thinking = DuetRequest {
        fast: zoe.clone(),
        rigorous: zoe.clone(),
        arbiter: zoe,
        ..DuetRequest::default()
    };
    for pair in [
        duet(config, &thinking).unwrap(),
        among(config, &wishes, &[&seats[0]]).unwrap(),
    ] {
        seats.extend([pair.fast, pair.rigorous]);
        seats.extend(pair.arbiter);
    }
    let names = ["zoe".to_owned()];
    let brief = Brief {
        question: "Which?",
        asked: "Which?",
        members: &names,
        ..Brief::default()
    };
    seats.extend(
        plan(config, &brief)
            .unwrap()
            .plan
            .seats
            .into_iter()
            .map(|s| s.member),
    );
    seats
}

async fn start(backends: &Backends, member: &Member) {
    let request = Request {
        attachments: Vec::new(),
        schema_of_user: false,
        reads: false,
        seat: member.name.clone(),
        prompt: Prompt {
            turn: "Go.".into(),
            ..Prompt::default()
        },
        sampling: Sampling::default(),
        schema: None,
        deadlines: Deadlines::default(),
        writable: false,
        tools: None,
    };
    backends
        .seat(member)
        .unwrap()
        .ask(request)
        .collect::<Vec<_>>()
        .await;
}

#[tokio::test]
async fn every_seat_starts_the_program_of_its_own_agent_with_that_agents_settings() {
    for backend in ["command", "codex", "acp"] {
        let folder: TempDir = tempfile::tempdir().unwrap();
        let config = configured(folder.path(), backend);
        let path = std::env::var("PATH").unwrap();
        let env = Env::of([
            ("PATH", path.as_str()),
            ("HOME", "/nowhere"),
            ("ALICE_TOKEN", "a"),
            ("ZOE_TOKEN", "z"),
        ]);
        let backends = Backends::new(
            &config,
            Options {
                env,
                ..Options::default()
            },
        )
        .in_folder(folder.path().into());
        let seats = seats_of_zoe(&config);
        assert!(seats.len() >= 8, "{backend}: {}", seats.len());
        let named = seats.iter().filter(|s| s.name.as_str() == "zoe").count();
        assert!(named < seats.len(), "some seats have names of their own");
        let own = &seats[0].launch;
        assert_eq!(own.agent.as_deref(), Some("zoe"));
        for member in &seats {
            let case = format!("{backend}: {}", member.name);
            assert_eq!(&member.launch, own, "{case}");
            start(&backends, member).await;
            let seen = std::fs::read(folder.path().join("zoe.seen"))
                .unwrap_or_else(|_| panic!("{case}: the program of zoe was not started"));
            std::fs::remove_file(folder.path().join("zoe.seen")).unwrap();
            let seen: Value = serde_json::from_slice(&seen).unwrap();
            let args = seen["args"].to_string();
            assert!(args.contains("--of-zoe"), "{case}: {args}");
            assert_eq!(
                args.contains("effort-of-zoe"),
                backend == "codex",
                "{case}: {args}"
            );
            let env = seen["env"].to_string();
            assert!(env.contains("ZOE_TOKEN"), "{case}: {env}");
            assert!(!env.contains("ALICE_TOKEN"), "{case}: {env}");
        }
        assert!(!folder.path().join("alice.seen").exists(), "{backend}");
    }
}

#[test]
fn a_seat_read_from_a_file_names_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let config = configured(folder.path(), "acp");
    let backends = Backends::new(&config, Options::default());
    for member in seats_of_zoe(&config) {
        let written = serde_json::to_string(&member).unwrap();
        assert!(
            !written.contains(folder.path().to_str().unwrap()),
            "{written}"
        );
        let back: Member = serde_json::from_str(&written).unwrap();
        assert!(backends.seat(&back).is_err(), "{written}");
    }
}
