//! What a chat tells about a thread that others can have changed: its log, and its members.
#![allow(missing_docs, clippy::unwrap_used)] // a test that cannot go on may say so

use kd_app::{Chat, ChatHost, ChatRequest, Env, Kingdom};
use kd_core::event::Purpose;
use kd_core::message::{Address, Provenance};
use kd_core::slash::Seating;
use kd_core::{Draft, Event, Message, Op, Record, SeatName, Status, TurnId, Usage};
use kd_store::{EventLog, Thread};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Opens a folder with two scripted members.
fn chat(folder: &Path, members: &[&str], auto_messages: Option<u32>) -> Chat {
    let (home, project) = (folder.join("home"), folder.join("project"));
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(&project).unwrap();
    let variables = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let mut kingdom = Kingdom::open_with(Env::of(variables).in_folder(&project)).unwrap();
    kingdom.configure(|config| {
        for name in ["ada", "bob", "cyd"] {
            config.agents.entry(name.into()).or_default().backend = "scripted".into();
        }
        config.council.members = members.iter().map(|name| (*name).to_owned()).collect();
        config.council.auto_messages = auto_messages;
    });
    kingdom.chat(ChatRequest::default()).unwrap()
}

fn git(folder: &Path, args: &[&str]) {
    let done = Command::new("git").args(args).current_dir(folder).output();
    assert!(done.unwrap().status.success(), "{args:?}");
}

fn seat(name: &str) -> SeatName {
    SeatName::new(name).unwrap()
}

/// Writes a question and an answer, with a log that tells what the answer has cost.
fn answered(thread: &Thread, usage: Usage) -> Message {
    let draft = |from: &str| Draft {
        turn: None,
        from: from.into(),
        to: Address::All,
        at: "2026-11-21T07:57:55Z".parse().unwrap(),
        status: (from != "king").then_some(Status::Complete),
        refs: Vec::new(),
        provenance: Provenance::default(),
        extra: BTreeMap::new(),
        body: "Well.".into(),
    };
    let question = thread.append(&draft("king")).unwrap();
    let answer = thread.append(&draft("ada")).unwrap();
    let turn = TurnId::new(1);
    let events = [
        Event::MessageAdded {
            message: question,
            turn: None,
            found: false,
        },
        Event::TurnQueued {
            turn,
            seat: seat("ada"),
            purpose: Purpose::Answer,
            replaces: None,
            ahead: Vec::new(),
        },
        Event::TurnFinished {
            turn,
            seat: seat("ada"),
            message: Some(answer.seq),
            usage: Some(usage),
            tools: 0,
            thought: 0,
        },
    ];
    let records: Vec<Record> = (1..)
        .zip(events)
        .map(|(seq, event)| Record {
            v: 1,
            seq,
            ts: "2026-11-21T07:57:55Z".parse().unwrap(),
            thread: thread.id().clone(),
            event,
        })
        .collect();
    EventLog::open(thread).unwrap().append(&records).unwrap();
    answer
}

/// A log that came with a clone is not an account of the user's spending; one of the user is.
#[test]
fn a_log_that_git_tracks_tells_no_costs() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    let chat = chat(folder.path(), &["ada", "bob"], None);
    let thread = Thread::create(chat.layout(), &[seat("ada"), seat("bob")]).unwrap();
    let used = Usage {
        output_tokens: 340,
        cost_usd: Some(99.0),
        ..Usage::default()
    };
    let answer = answered(&thread, used);
    let told = |records: Vec<Record>| {
        let ends = records.into_iter().filter_map(|record| match record.event {
            Event::TurnFinished { usage, .. } => Some(usage),
            _ => None,
        });
        ends.collect::<Vec<_>>()
    };
    let all = |usage: Option<Usage>| {
        let id = &thread.id().0;
        assert_eq!(told(chat.open(Some(id)).unwrap().records), [usage]);
        assert_eq!(told(chat.recall(id, answer.seq)), [usage]);
        assert_eq!(told(chat.older(id, 9, 9).unwrap().records), [usage]);
    };
    all(Some(used));
    git(&project, &["init", "-q"]);
    all(Some(used));
    git(&project, &["add", "-f", ".kd"]);
    all(None);
}

/// The notice about other members tells a mere change of order, where it is the order of turns.
#[tokio::test(flavor = "multi_thread")]
async fn another_order_of_the_members_is_no_other_members() {
    for (own, auto_messages, tells) in [
        (&["ada", "bob"][..], None, None),
        (&["bob", "ada"], None, Some("speak in the order ada, bob")),
        (&["bob", "ada"], Some(0), None),
        (
            &["ada", "cyd"],
            Some(0),
            Some("are ada, bob; your settings name ada, cyd"),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let chat = chat(folder.path(), own, auto_messages);
        let members = [seat("ada"), seat("bob")];
        let thread = Thread::create(chat.layout(), &members).unwrap();
        let notices = notices(&chat, &thread).await;
        let told: Vec<&String> = notices
            .iter()
            .filter(|text| text.contains("settings"))
            .collect();
        match tells {
            None => assert!(told.is_empty(), "{own:?} {auto_messages:?}: {told:?}"),
            Some(words) => {
                assert_eq!(told.len(), 1, "{own:?}: {notices:?}");
                assert!(told[0].contains(words), "{own:?}: {told:?}");
            }
        }
    }
}

/// Opens a thread and returns what the chat says about it.
async fn notices(chat: &Chat, thread: &Thread) -> Vec<String> {
    let mut session = chat.join(&thread.id().0).await.unwrap();
    let mut records = session.subscribe();
    session.send(Op::Close).unwrap();
    let mut notices = Vec::new();
    while let Some(update) = records.next().await {
        if let kd_app::Update::Record(record) = update
            && let Event::Noticed { text } = &record.event
        {
            notices.push(text.clone());
        }
    }
    session.close().await;
    notices
}

/// Who changes the members in a chat is not told that they are other ones than the settings name.
#[tokio::test(flavor = "multi_thread")]
async fn members_changed_in_this_chat_are_no_news() {
    let folder = tempfile::tempdir().unwrap();
    let chat = chat(folder.path(), &["ada", "bob"], None);
    let thread = Thread::create(chat.layout(), &[seat("ada"), seat("bob")]).unwrap();
    let change = Seating::Remove(seat("bob"));
    chat.reseat(&thread, &change, true).unwrap();
    assert_eq!(notices(&chat, &thread).await, [""; 0]);
}
