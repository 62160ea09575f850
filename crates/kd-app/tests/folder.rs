//! One open folder takes many questions, also if it had no project when it was opened.
#![allow(missing_docs, clippy::unwrap_used)] // a test that cannot go on may say so

use kd_app::host::{Host, Method, PlanChoice, Query};
use kd_app::{Ask, Deliberate, Env, FolderHost, Kingdom, ThreadChoice};
use kd_backends::delivery::catalog;
use std::collections::BTreeMap;

/// Opens an empty folder with two scripted members.
fn kingdom(folder: &std::path::Path) -> Kingdom {
    let home = folder.join("home");
    let project = folder.join("project");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(&project).unwrap();
    let variables = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let mut kingdom = Kingdom::open_with(Env::of(variables).in_folder(&project)).unwrap();
    kingdom.configure(|config| {
        for name in ["ada", "bob"] {
            config.agents.entry(name.into()).or_default().backend = "scripted".into();
        }
        config.council.conclude = false;
    });
    kingdom
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_question_continues_the_thread_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let kingdom = kingdom(folder.path());
    assert!(kingdom.layout().is_none(), "no project yet");
    let first = kingdom.ask(Ask::default(), "One?").unwrap();
    let id = first.opened.id.clone();
    assert_eq!(first.answers().await.unwrap().messages.len(), 2);
    let layout = kingdom.layout();
    assert!(layout.is_some(), "the first thread created it");

    let go_on = Ask {
        thread: ThreadChoice::Given(id.0.clone()),
        ..Ask::default()
    };
    let second = kingdom.ask(go_on, "Two?").unwrap();
    assert_eq!(second.opened.id, id);
    assert!(!second.opened.is_new);
    assert_eq!(second.answers().await.unwrap().messages.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deliberation_in_a_fork_leaves_the_thread_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let kingdom = kingdom(folder.path());
    let first = kingdom.ask(Ask::default(), "One?").unwrap();
    let (id, source) = (first.opened.id.clone(), first.opened.folder.clone());
    first.answers().await.unwrap();
    let count = |folder: &std::path::Path| {
        let thread = kd_store::Thread::open_folder(folder).unwrap();
        thread.messages().unwrap().messages.len()
    };
    let before = count(&source);
    let in_a_fork = Deliberate {
        members: vec!["ada".into(), "bob".into()],
        thread: ThreadChoice::Fork(id.0.clone()),
        ..Deliberate::default()
    };
    let second = kingdom.deliberate(in_a_fork, "Tea or coffee?").unwrap();
    let fork = second.opened.folder.clone();
    assert!(second.opened.is_new && second.opened.id != id);
    let current = kingdom.layout().unwrap().current_thread().unwrap();
    assert_eq!(current.unwrap().id, second.opened.id);
    second.answers().await.unwrap();
    assert_eq!(count(&source), before);
    assert!(count(&fork) > before);
}

/// A fork has messages from the beginning: those of its source.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_in_which_nothing_could_be_asked_is_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let kingdom = kingdom(folder.path());
    let first = kingdom.ask(Ask::default(), "One?").unwrap();
    let (id, source) = (first.opened.id.clone(), first.opened.folder.clone());
    first.answers().await.unwrap();
    let in_a_fork = |text: &str| Ask {
        thread: ThreadChoice::Fork(text.to_owned()),
        ..Ask::default()
    };
    // The session ends before the question is sent.
    let unsaid = kingdom.council(in_a_fork(&id.0)).unwrap();
    let unsaid = unsaid.asked("Two?".into()).unwrap().start().unwrap();
    let (fork, opened) = (unsaid.opened.folder.clone(), unsaid.opened);
    unsaid.session.close().await;
    assert!(fork.is_dir());
    opened.discard_unsaid();
    assert!(!fork.exists() && source.is_dir());
    // With an answer it stays.
    let said = kingdom.ask(in_a_fork(&id.0), "Two?").unwrap();
    let answers = said.answers().await.unwrap();
    assert_eq!(answers.messages.len(), 2);
    assert_eq!(kingdom.layout().unwrap().threads().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_belongs_to_the_branch_on_which_it_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join("project/.git");
    std::fs::create_dir_all(&git).unwrap();
    let switch = |branch: &str| {
        std::fs::write(git.join("HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
    };
    switch("main");
    let kingdom = kingdom(folder.path());
    for branch in ["main", "main", "topic"] {
        switch(branch);
        let asked = kingdom.ask(Ask::default(), "One?").unwrap();
        assert_eq!(asked.opened.layout.branch(), branch);
        let id = asked.opened.id.clone();
        asked.answers().await.unwrap();
        let layout = kingdom.layout().unwrap();
        assert_eq!(layout.current_thread().unwrap().unwrap().id, id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_councils_are_asked_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let kingdom = kingdom(folder.path());
    let ask = || kingdom.ask(Ask::default(), "One?").unwrap().answers();
    let (one, two) = tokio::join!(ask(), ask());
    assert_eq!(one.unwrap().messages.len() + two.unwrap().messages.len(), 4);
}

/// A server tells its clients that only the demo model answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_told_that_the_demo_model_answers() {
    let folder = tempfile::tempdir().unwrap();
    let mut kingdom = kingdom(folder.path());
    kingdom.configure(|config| config.agents.clear());
    let model = catalog::DEFAULT;
    let models = folder.path().join("home/.cache/kd/models");
    std::fs::create_dir_all(&models).unwrap();
    // A file that passes for a verified one.
    let path = models.join(format!("{}.gguf", model.sha256));
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(model.bytes).unwrap();
    let changed = file.metadata().unwrap().modified().unwrap();
    let changed = changed.duration_since(std::time::UNIX_EPOCH).unwrap();
    let seen = format!(
        "{}\t{}\t{}\n",
        path.display(),
        model.bytes,
        changed.as_nanos()
    );
    std::fs::write(models.join(format!("{}.seen", model.sha256)), seen).unwrap();
    let host = FolderHost::new(kingdom, true);
    assert!(host.shows_the_demo());
    for (method, members, told) in [
        (Method::Ask, &[][..], true),
        (Method::Think, &[], true),
        (Method::Ask, &["skeptic"], false),
    ] {
        let started = host.ask(&Query {
            method,
            question: "Which?".into(),
            members: members.iter().map(|name| (*name).to_owned()).collect(),
            thread: None,
            plan: PlanChoice::default(),
            output: None,
        });
        let notices = started.unwrap().notices;
        let demo = notices
            .iter()
            .any(|notice| notice.contains("built-in model answers"));
        assert_eq!(demo, told, "{notices:?}");
    }
}
