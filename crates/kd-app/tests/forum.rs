//! A program runs a forum with an agent that it provides.
#![cfg(feature = "forum")]
#![allow(missing_docs, clippy::unwrap_used)] // a test that cannot go on may say so

use kd_app::forum::{Clock, RunRequest, Site, SiteRequest, Stop, personas, wishes};
use kd_app::{Env, ErrorKind};
use kd_core::SeatName;
use kd_core::persona::Persona;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio::sync::watch;

fn env(folder: &Path) -> Env {
    let (home, project) = (folder.join("home"), folder.join("project"));
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(&project).unwrap();
    let variables = [
        ("HOME", home.display().to_string()),
        ("MAX_TOOL_CALLS", "7".to_owned()),
    ];
    let variables: BTreeMap<_, _> = variables.map(|(k, v)| (k.to_owned(), v)).into();
    Env::of(variables).in_folder(&project)
}

fn site(env: &Env) -> Site {
    opened(env, None)
}

fn opened(env: &Env, agents: Option<PathBuf>) -> Site {
    let request = SiteRequest {
        agents,
        ..SiteRequest::default()
    };
    let layout = env.make_layout().unwrap().layout;
    let loaded = env.settings(Some(&layout)).unwrap();
    Site::open(&request, &layout, loaded, env).unwrap()
}

#[test]
fn one_cycle_runs_and_its_lines_reach_the_host_and_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let env = env(folder.path());
    let mut site = site(&env);
    let run = |site: &mut Site, request: &RunRequest| {
        let mut lines = Vec::new();
        let (_stopper, stop) = watch::channel(Stop::No);
        let ended = site.run(
            request,
            &env,
            |line| lines.push(line.text(&jiff::tz::TimeZone::UTC)),
            || Ok(stop),
            |forum, names| {
                forum.lead()?;
                Ok((names.to_vec(), forum.cycle()?.complete))
            },
        );
        (ended, lines)
    };
    let request = RunRequest {
        clock: Clock::Once,
        ..RunRequest::default()
    };
    let (nobody, lines) = run(&mut site, &request);
    assert_eq!(nobody.unwrap_err().kind, ErrorKind::NoSeat);
    assert!(lines.is_empty(), "{lines:?}");

    let name = SeatName::new("ada").unwrap();
    let text = Persona::template("ada", "scripted", Some("echo"), "You are ada.");
    let file = personas::create(&site.agents, &name, &text).unwrap();
    assert!(file.ends_with(".kd/forum/agents/ada.yaml"));
    for taken in [
        personas::is_free(&site.agents, &name).unwrap_err(),
        personas::create(&site.agents, &name, &text).unwrap_err(),
    ] {
        assert!(taken.what.ends_with("already exists"), "{taken}");
    }
    // What an open forum has not judged does not run.
    let (changed, _) = run(&mut site, &request);
    assert_eq!(changed.unwrap_err().kind, ErrorKind::Persona);
    let (held, lines) = run(&mut self::site(&env), &request);
    assert_eq!(held.unwrap_err().kind, ErrorKind::HeldBack);
    assert!(lines.is_empty(), "{lines:?}");
    // A folder that the user names is theirs.
    let mut site = opened(&env, Some(site.agents.clone()));
    let unknown = RunRequest {
        agents: vec!["eve".into()],
        ..request.clone()
    };
    let (unknown, _) = run(&mut site, &unknown);
    assert_eq!(unknown.unwrap_err().kind, ErrorKind::UnknownMember);

    let (ended, lines) = run(&mut site, &request);
    assert_eq!(ended.unwrap(), (vec!["ada".to_owned()], true));
    assert!(lines.iter().any(|line| line.contains("ada")), "{lines:?}");
    let log = std::fs::read_to_string(site.logs.join("runner.log")).unwrap();
    let logged = log.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(logged.count(), lines.len(), "{log}");
}

#[test]
fn settings_of_a_run_override_variables_and_the_last_counts() {
    let folder = tempfile::tempdir().unwrap();
    let env = env(folder.path());
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let unset = wishes(&[], &env);
    assert_eq!(unset, [pair("max_tool_calls", "7")]);
    let given = [
        pair("max_tool_calls", "3"),
        pair("skips_max", "1"),
        pair("max_tool_calls", "4"),
    ];
    let all = wishes(&given, &env);
    assert_eq!(all, [pair("skips_max", "1"), pair("max_tool_calls", "4")]);
}
