//! A program reviews a change, stores the report, and marks a finding.
#![allow(missing_docs, clippy::unwrap_used)] // a test that cannot go on may say so

use kd_app::review::{self, ChangeRequest, Condition, ReviewRequest, Verdict};
use kd_app::{Env, ErrorKind, Kingdom};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn git(folder: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@localhost"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
}

/// Makes a repository with one commit, and the user's settings with one member.
fn env(folder: &Path) -> Env {
    let (home, project) = (folder.join("home"), folder.join("project"));
    std::fs::create_dir_all(home.join(".config/kd")).unwrap();
    std::fs::create_dir_all(&project).unwrap();
    // Finds a fault in the first line.
    let found = serde_json::json!({"findings": [{
        "file": "a.rs", "lines": {"first": 1, "last": 1}, "quote": "fn two() { panic!() }", "claim": "It panics.",
        "severity": "blocker", "evidence": "Every call ends there.",
    }]});
    let script = serde_json::json!({"runs": [[{"text": found.to_string()}, {"finish": {}}]]});
    let script_file = folder.join("ada.json");
    std::fs::write(&script_file, script.to_string()).unwrap();
    let config = serde_json::json!({
        "agents": {"ada": {"backend": "scripted", "model": script_file}},
        "council": {"review_members": ["ada"]},
    });
    std::fs::write(home.join(".config/kd/config.json"), config.to_string()).unwrap();
    git(&project, &["init", "-q"]);
    std::fs::write(project.join("a.rs"), "fn one() {}\n").unwrap();
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "one"]);
    let mut variables = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    variables.extend(std::env::var("PATH").map(|path| ("PATH".to_owned(), path)));
    Env::of(variables).in_folder(&project)
}

fn staged() -> ReviewRequest {
    ReviewRequest {
        change: ChangeRequest {
            staged: true,
            ..ChangeRequest::default()
        },
        conditions: vec![Condition::read("blocker").unwrap()],
        ..ReviewRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_reviewed_and_its_report_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let env = env(folder.path());
    let nothing = Kingdom::review(&env, staged()).err().unwrap();
    assert_eq!(nothing.kind, ErrorKind::NoChange);
    let project = folder.path().join("project");
    std::fs::write(project.join("a.rs"), "fn two() { panic!() }\n").unwrap();
    git(&project, &["add", "."]);

    let reviewing = Kingdom::review(&env, staged()).unwrap();
    assert_eq!((reviewing.base(), reviewing.head()), ("HEAD", "the index"));
    assert_eq!((reviewing.files(), reviewing.parts()), (1, 1));
    assert_eq!(reviewing.estimate().calls, (1, 1));
    let kept = reviewing.report().await.unwrap();
    let found: Vec<&str> = kept.report.findings.iter().map(|f| f.id.as_str()).collect();
    assert_eq!(found.len(), 1, "{:?}", kept.report);
    assert!(kept.fail_on.as_ref().unwrap().met.contains_key(found[0]));

    let reviews = review::reviews(&env).unwrap();
    assert_eq!(review::find(&reviews, None).unwrap(), kept);
    let (id, before) = review::mark(&reviews, found[0], Verdict::Accepted, None).unwrap();
    assert_eq!((id.as_str(), before), (found[0], None));
    let unknown = review::mark(&reviews, "no-such-id", Verdict::Accepted, None);
    assert_eq!(unknown.err().unwrap().kind, ErrorKind::NoFinding);
}
