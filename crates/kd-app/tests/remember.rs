//! Every way to ask for a deliberation saves its verdict in long-term memory once, under the same rules.
#![cfg(feature = "forum")]
#![allow(missing_docs, clippy::unwrap_used)] // a test that cannot go on may say so

use kd_app::batch::{BatchRequest, How};
use kd_app::host::{Host, Method, PlanChoice, Query};
use kd_app::{
    ChatRequest, Deliberate, Env, FolderHost, Kingdom, Limits, Question, Started, ThreadChoice,
    Update,
};
use kd_core::Event;
use kd_core::memory::Session;
use kd_core::slash::Way;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const QUESTION: &str = "Is it the zebra? yes or no";

/// Opens an empty folder with two scripted members, whose settings save verdicts.
fn kingdom(folder: &Path) -> Kingdom {
    let (home, project) = (folder.join("home"), folder.join("project"));
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(&project).unwrap();
    let variables = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let mut kingdom = Kingdom::open_with(Env::of(variables).in_folder(&project)).unwrap();
    kingdom.configure(|config| {
        for name in ["ada", "bob"] {
            let agent = config.agents.entry(name.into()).or_default();
            agent.backend = "scripted".into();
            agent.model = Some("echo".into());
        }
        config.deliberation.memory.long_term = true;
    });
    kingdom
}

/// Returns what the memory of the folder holds.
fn remembered(folder: &Path) -> Vec<Session> {
    let env = Env::of(BTreeMap::<String, String>::new()).in_folder(folder.join("project"));
    match env.find_layout().unwrap() {
        Some(layout) => kd_store::memory::read(&layout).unwrap().sessions,
        None => Vec::new(),
    }
}

/// Checks that one verdict was saved, on [`QUESTION`].
fn has_one(folder: &Path, what: &str) {
    let sessions = remembered(folder);
    assert_eq!(sessions.len(), 1, "{what}: {sessions:?}");
    assert_eq!(sessions[0].question, QUESTION, "{what}");
    assert!(sessions[0].message.is_some(), "{what}");
}

async fn answered(started: Started) -> kd_app::Answers {
    started.answers().await.unwrap()
}

fn query() -> Query {
    Query {
        method: Method::Deliberate,
        question: QUESTION.into(),
        members: Vec::new(),
        thread: None,
        plan: PlanChoice::default(),
        output: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_a_planner_and_a_server_save_a_verdict_once() {
    let folder = tempfile::tempdir().unwrap();
    let library = kingdom(folder.path());
    let started = library.deliberate(Deliberate::default(), QUESTION).unwrap();
    let id = answered(started).await.thread;
    has_one(folder.path(), "library");
    assert_eq!(remembered(folder.path())[0].thread, id);

    let folder = tempfile::tempdir().unwrap();
    let planned = kingdom(folder.path());
    let (config, question) = (planned.config().clone(), Question::new(QUESTION));
    let planning = planned
        .planning(config, question, None, Default::default())
        .unwrap();
    let plan = planning.by_rules().unwrap();
    answered(planning.start(plan, None).unwrap()).await;
    has_one(folder.path(), "kd deliberate");

    let folder = tempfile::tempdir().unwrap();
    let host = FolderHost::new(kingdom(folder.path()), true);
    answered(host.ask(&query()).unwrap()).await;
    has_one(folder.path(), "server");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_saves_the_verdict_of_an_aside() {
    let folder = tempfile::tempdir().unwrap();
    let chat = kingdom(folder.path()).chat(ChatRequest::default()).unwrap();
    let roster = chat.seat(None, false).unwrap().roster;
    let thread = chat.create(&roster).unwrap();
    let place = thread.path().to_path_buf();
    let mut session = chat.enter(thread, roster.clone()).unwrap();
    let thread = kd_store::Thread::open_folder(&place).unwrap();
    let what = (Way::Deliberate, Some(QUESTION.to_owned()));
    let aside = chat.aside_in(&thread, &roster, what, &[], true).unwrap();
    let mut updates = session.subscribe();
    session.aside(aside).unwrap();
    let mut has_verdict = false;
    while let Some(update) = updates.next().await {
        let Update::Record(record) = update else {
            panic!("lagged");
        };
        match &record.event {
            Event::OpRefused { why } => panic!("{why}"),
            Event::Deliberated { .. } => has_verdict = true,
            Event::FloorYielded { .. } if has_verdict => break,
            _ => {}
        }
    }
    session.close().await;
    has_one(folder.path(), "chat");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_saves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let kingdom = kingdom(folder.path());
    let request = BatchRequest {
        how: How::Deliberate(Deliberate::default()),
        source: "questions".into(),
        command: "kd batch".into(),
        output: None,
        fresh: false,
        limits: Limits::default(),
        concurrency: 1,
        attempts: 1,
        pause: Duration::ZERO,
        every: None,
        provider_batch: false,
        fleet: None,
        log: None,
    };
    let questions = vec![kd_core::batch::Question {
        id: "1".into(),
        line: 1,
        text: QUESTION.into(),
    }];
    let mut running = kingdom.batch(request, questions).unwrap().start().unwrap();
    let ended = running.ended().await.unwrap();
    assert_eq!(ended.batch.counts.answered, 1);
    assert_eq!(remembered(folder.path()), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_saved_where_it_must_not_be() {
    type Change = fn(&mut kd_core::config::Config);
    let rows: [(&str, Change); 2] = [
        ("off", |config| config.deliberation.memory.long_term = false),
        ("private", |config| config.council.private = true),
    ];
    for (what, change) in rows {
        let folder = tempfile::tempdir().unwrap();
        let mut kingdom = kingdom(folder.path());
        kingdom.configure(change);
        let started = kingdom.deliberate(Deliberate::default(), QUESTION).unwrap();
        answered(started).await;
        assert_eq!(remembered(folder.path()), [], "{what}");
    }

    let folder = tempfile::tempdir().unwrap();
    let (host, _) = FolderHost::new(kingdom(folder.path()), true).for_others();
    answered(host.ask(&query()).unwrap()).await;
    assert_eq!(remembered(folder.path()), [], "another machine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_becomes_private_or_is_deleted_meanwhile_is_not_saved() {
    for deletes in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let kingdom = kingdom(folder.path());
        let started = kingdom.deliberate(Deliberate::default(), QUESTION).unwrap();
        let place = started.opened.folder.clone();
        match deletes {
            true => std::fs::remove_dir_all(&place).unwrap(),
            false => {
                let mut thread = kd_store::Thread::open_folder(&place).unwrap();
                thread.make_private().unwrap();
            }
        }
        let _ = started.answers().await;
        assert_eq!(remembered(folder.path()), [], "deletes: {deletes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_that_cannot_be_written_is_told_in_the_thread() {
    let folder = tempfile::tempdir().unwrap();
    let kingdom = kingdom(folder.path());
    let started = kingdom.deliberate(Deliberate::default(), QUESTION).unwrap();
    let (file, place) = (
        started.opened.layout.memory_file(),
        started.opened.folder.clone(),
    );
    std::fs::create_dir(&file).unwrap();
    answered(started).await;
    let thread = kd_store::Thread::open_folder(&place).unwrap();
    let told = kd_store::log::read(&thread).unwrap().records;
    let told: Vec<String> = told
        .into_iter()
        .filter_map(|record| match record.event {
            Event::Noticed { text } => Some(text),
            _ => None,
        })
        .collect();
    let says = |text: &String| text.contains("long-term memory") && !text.contains('/');
    assert_eq!(told.iter().filter(|text| says(text)).count(), 1, "{told:?}");
    let go_on = Deliberate {
        thread: ThreadChoice::New,
        ..Deliberate::default()
    };
    let refused = kingdom.deliberate(go_on, QUESTION).err().unwrap();
    assert!(!refused.what.is_empty(), "the next one says what to mend");
}
