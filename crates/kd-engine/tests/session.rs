//! The event loop with the real store and scripted members: what a front end receives, and what is on disk afterwards.

#![allow(clippy::unwrap_used)] // tests may panic

use kd_backends::backends::{Backends, Options};
use kd_core::config::Config;
use kd_core::council::{Budget, OpenCouncil};
use kd_core::event::Outcome;
use kd_core::prompt::PromptRules;
use kd_core::request::Deadlines;
use kd_core::{Address, Event, FailureKind, Member, Op, Roster, SeatName, Status, protocols};
use kd_engine::{Engine, Session, Subscription, Update};
use kd_store::{Layout, Thread, log};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// A folder with a thread in it, and members that play scripts.
struct Stage {
    folder: TempDir,
    members: Vec<Member>,
}

impl Stage {
    fn new(scripts: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        let members = scripts
            .iter()
            .map(|(name, script)| {
                let file = folder.path().join(format!("{name}.json"));
                let builtin = !script.starts_with('{');
                if !builtin {
                    std::fs::write(&file, script).unwrap();
                }
                Member {
                    model: Some(if builtin {
                        (*script).to_owned()
                    } else {
                        file.to_string_lossy().into_owned()
                    }),
                    deadlines: Deadlines {
                        total: Duration::from_secs(30),
                        ..Deadlines::default()
                    },
                    ..Member::new(SeatName::new(*name).unwrap(), "scripted")
                }
            })
            .collect();
        Self { folder, members }
    }

    fn layout(&self) -> Layout {
        Layout::find_or_create(self.folder.path(), &|_| None)
            .unwrap()
            .layout
    }

    fn open(&self) -> Session {
        let names: Vec<_> = self.members.iter().map(|m| m.name.clone()).collect();
        let thread = Thread::create(&self.layout(), &names).unwrap();
        let open = OpenCouncil {
            thread: thread.id().clone(),
            roster: Roster::new(self.members.clone(), None),
            protocol: *protocols::find("broadcast").unwrap(),
            prompts: PromptRules::default(),
            history: Vec::new(),
            seed: 1,
            limits: Budget::default(),
            conclude: false,
            queue: None,
            last: None,
        };
        let backends = Backends::new(&Config::default(), Options::default());
        Engine::new(backends).open(thread, open).unwrap()
    }

    fn thread(&self) -> Thread {
        Thread::open(&self.layout().current_thread().unwrap().unwrap()).unwrap()
    }
}

fn say(body: &str) -> Op {
    Op::Say {
        body: body.into(),
        to: Address::All,
    }
}

/// Returns the events up to the end of the round.
async fn round(faces: &mut Subscription) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(Update::Record(record)) = faces.next().await {
        events.push(record.event.clone());
        if matches!(record.event, Event::FloorYielded { .. }) {
            break;
        }
    }
    events
}

fn outcome(events: &[Event]) -> Outcome {
    match events.last() {
        Some(Event::FloorYielded { outcome, .. }) => *outcome,
        other => panic!("the round did not end: {other:?}"),
    }
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with(".kd-") && !name.ends_with(".lock"))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn three_members_answer_and_everything_is_on_disk() {
    let stage = Stage::new(&[
        ("ann", r#"{"runs":[[{"text":"first "},{"text":"answer"}]]}"#),
        ("bob", r#"{"runs":[[{"text":"second answer"}]]}"#),
        ("cid", "echo"),
    ]);
    let mut session = stage.open();
    let mut faces = session.subscribe();
    session.send(say("Which way?")).unwrap();
    let events = round(&mut faces).await;
    assert_eq!(outcome(&events), Outcome::Complete);

    // A message is announced before its turn is finished, but after the turn was queued.
    for turn in 1..=3 {
        let place = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted).unwrap();
        let queued = place(&|e| matches!(e, Event::TurnQueued { turn: t, .. } if t.number == turn));
        let added =
            place(&|e| matches!(e, Event::MessageAdded { turn: Some(t), .. } if t.number == turn));
        let finished =
            place(&|e| matches!(e, Event::TurnFinished { turn: t, .. } if t.number == turn));
        assert!(queued < added && added < finished);
    }
    session.close().await;

    let thread = stage.thread();
    let messages = thread.messages().unwrap().messages;
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[0].body, "Which way?");
    assert!(
        messages[1..]
            .iter()
            .all(|m| m.status == Some(Status::Complete))
    );
    assert_eq!(
        messages.iter().find(|m| m.from == "ann").unwrap().body,
        "first answer"
    );
    // Stream files are gone; the log holds every event but the deltas.
    let names = files(thread.path());
    assert!(
        !names.iter().any(|n| n.starts_with(".stream-")),
        "{names:?}"
    );
    let logged = log::read(&thread).unwrap().records;
    let facts = events
        .iter()
        .filter(|e| !matches!(e, Event::TurnDelta { .. }));
    assert!(logged.iter().map(|r| &r.event).eq(facts));
}

#[tokio::test]
async fn a_failing_member_costs_nobody_else_an_answer() {
    let stage = Stage::new(&[
        ("ann", r#"{"runs":[[{"text":"an answer"}]]}"#),
        (
            "bob",
            r#"{"runs":[[{"text":"half "},{"fail":{"kind":"auth","message":"no key"}}]]}"#,
        ),
    ]);
    let mut session = stage.open();
    let mut faces = session.subscribe();
    session.send(say("Which way?")).unwrap();
    let events = round(&mut faces).await;
    assert_eq!(outcome(&events), Outcome::Partial);
    session.close().await;
    let messages = stage.thread().messages().unwrap().messages;
    let bob = messages.iter().find(|m| m.from == "bob").unwrap();
    assert_eq!(bob.status, Some(Status::Error));
    assert!(
        bob.body.starts_with("half"),
        "the partial answer is saved: {}",
        bob.body
    );
}

#[tokio::test]
async fn an_interrupt_keeps_what_came_and_ends_the_round() {
    let stage = Stage::new(&[
        ("ann", r#"{"runs":[[{"text":"so far"},"hang"]]}"#),
        ("bob", "hang"),
    ]);
    let mut session = stage.open();
    let mut faces = session.subscribe();
    session.send(say("Which way?")).unwrap();
    loop {
        match faces.next().await.unwrap() {
            Update::Record(r) if matches!(r.event, Event::TurnDelta { .. }) => break,
            _ => {}
        }
    }
    session.send(Op::Interrupt).unwrap();
    let events = round(&mut faces).await;
    assert_eq!(outcome(&events), Outcome::Interrupted);
    session.close().await;
    let messages = stage.thread().messages().unwrap().messages;
    let ann = messages.iter().find(|m| m.from == "ann").unwrap();
    assert_eq!(ann.status, Some(Status::Interrupted));
    assert!(ann.body.starts_with("so far"));
}

#[tokio::test]
async fn a_dropped_session_stops_its_turns_and_writes_what_came() {
    let stage = Stage::new(&[("ann", r#"{"runs":[[{"text":"so far"},"hang"]]}"#)]);
    let mut session = stage.open();
    let mut faces = session.subscribe();
    session.send(say("Which way?")).unwrap();
    while let Some(Update::Record(record)) = faces.next().await {
        if matches!(record.event, Event::TurnDelta { .. }) {
            break;
        }
    }
    drop(session);
    // The loop ends without being closed, and the subscription with it.
    while faces.next().await.is_some() {}
    let messages = stage.thread().messages().unwrap().messages;
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[1].status, Some(Status::Interrupted));
}

#[tokio::test]
async fn a_member_that_nobody_can_seat_fails_by_name() {
    let mut stage = Stage::new(&[("ann", "echo")]);
    stage.members[0].backend = "no-such-thing".into();
    let mut session = stage.open();
    let mut faces = session.subscribe();
    session.send(say("Which way?")).unwrap();
    let events = round(&mut faces).await;
    assert_eq!(outcome(&events), Outcome::Failed);
    assert!(events.iter().any(|e| matches!(
        e,
        Event::TurnFailed { failure, .. } if failure.kind == FailureKind::Missing
    )));
    session.close().await;
}

#[tokio::test]
async fn a_face_that_falls_behind_gets_the_view_and_then_what_follows() {
    let stage = Stage::new(&[("ann", r#"{"runs":[[{"flood":8000000}]]}"#)]);
    let mut session = stage.open();
    let mut fast = session.subscribe();
    let mut slow = session.subscribe();
    // Far more rounds than the bus keeps records for, while the slow front end reads nothing.
    for _ in 0..600 {
        session
            .send(Op::Mute {
                seat: SeatName::new("ann").unwrap(),
            })
            .unwrap();
        session
            .send(Op::Unmute {
                seat: SeatName::new("ann").unwrap(),
            })
            .unwrap();
        session.send(say("again")).unwrap_or_default();
        session.send(Op::Interrupt).unwrap();
        while let Some(Update::Record(record)) = fast.next().await {
            if matches!(record.event, Event::FloorYielded { .. }) {
                break;
            }
        }
    }
    let Some(Update::Lagged(view)) = slow.next().await else {
        panic!("the slow front end missed nothing");
    };
    let mut caught_up = *view;
    let whole = session.subscribe();
    session.close().await;
    while let Some(update) = slow.next().await {
        match update {
            Update::Record(record) => assert!(caught_up.fold_record(&record), "a gap"),
            Update::Lagged(view) => caught_up = *view,
        }
    }
    assert_eq!(caught_up, whole.view(), "nothing is missing after a lag");
}

#[tokio::test]
async fn when_the_folder_is_gone_the_turn_fails_and_the_loop_goes_on() {
    let stage = Stage::new(&[("ann", "echo")]);
    let mut session = stage.open();
    let mut faces = session.subscribe();
    // Moved in one step: a write in progress moves along before the folder disappears.
    let folder = stage.thread().path().to_owned();
    let gone = folder.with_extension("gone");
    std::fs::rename(&folder, &gone).unwrap();
    std::fs::remove_dir_all(&gone).unwrap();
    session.send(say("Which way?")).unwrap();
    let mut refused = false;
    while let Some(Update::Record(record)) = faces.next().await {
        if matches!(record.event, Event::SaveFailed { .. }) {
            refused = true;
            break;
        }
    }
    assert!(refused);
    session.close().await;
}
