//! A member of a thread is asked by only one process at a time. Each session here has its own engine, as each process
//! would, and file locks do not distinguish the two.

#![allow(clippy::unwrap_used)] // tests may panic

use kd_backends::backends::{Backends, Options};
use kd_core::config::{Config, ProviderConfig};
use kd_core::council::{Budget, OpenCouncil};
use kd_core::prompt::PromptRules;
use kd_core::{
    Address, Delta, Event, FailureKind, Member, Message, Op, Roster, SeatName, protocols,
};
use kd_engine::{Engine, Session, Subscription, Update};
use kd_fake::{Fake, Reply, Seen, Step, Wire};
use kd_store::{Layout, Lease, Thread};
use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time that a member takes to answer.
const ANSWER: Duration = Duration::from_millis(8);

struct Stage {
    folder: TempDir,
    members: Vec<Member>,
    config: Config,
    asked: Arc<Mutex<Vec<(String, Instant)>>>,
    _server: Fake,
}

impl Stage {
    /// Creates a thread with two members, and a service that answers for them and records when each was asked.
    async fn new() -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = asked.clone();
        let server = Fake::choosing(([127, 0, 0, 1], 0).into(), move |seen: &Seen, number| {
            let model = seen.json()["model"].as_str().unwrap().to_owned();
            let text = format!("{model} has thought number {number}.");
            notes.lock().unwrap().push((model, Instant::now()));
            let steps = vec![Step::Pause(ANSWER), Step::Text(text), Step::End];
            Some((Wire::OpenAi, Reply::Stream(steps)))
        });
        let server = server.await.unwrap();
        let provider = ProviderConfig {
            base_url: Some(server.url()),
            ..ProviderConfig::default()
        };
        let config = Config {
            providers: [("svc".to_owned(), provider)].into(),
            ..Config::default()
        };
        let members: Vec<Member> = ["ada", "bob"]
            .map(|name| Member {
                model: Some(name.into()),
                ..Member::new(SeatName::new(name).unwrap(), "svc")
            })
            .to_vec();
        let names: Vec<SeatName> = members.iter().map(|m| m.name.clone()).collect();
        let stage = Self {
            folder: TempDir::new().unwrap(),
            members,
            config,
            asked,
            _server: server,
        };
        Thread::create(&stage.layout(), &names).unwrap();
        stage
    }

    /// Returns which members were asked, in order.
    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the members that were asked before their previous answer arrived.
    fn asked_twice(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let mut last: BTreeMap<&str, Instant> = BTreeMap::new();
        let mut soon = Vec::new();
        for (name, at) in asked.iter() {
            let before = last.insert(name, *at);
            if before.is_some_and(|before| at.duration_since(before) < ANSWER) {
                soon.push(name.clone());
            }
        }
        soon
    }

    fn layout(&self) -> Layout {
        Layout::find_or_create(self.folder.path(), &|_| None)
            .unwrap()
            .layout
    }

    fn thread(&self) -> Thread {
        Thread::open(&self.layout().current_thread().unwrap().unwrap()).unwrap()
    }

    fn council(&self, thread: &Thread, seed: u64) -> OpenCouncil {
        OpenCouncil {
            thread: thread.id().clone(),
            roster: Roster::new(self.members.clone(), None),
            protocol: *protocols::find("broadcast").unwrap(),
            prompts: PromptRules::default(),
            history: thread.messages().unwrap().messages,
            seed,
            limits: Budget {
                auto_messages: Some(2),
                ..Budget::default()
            },
            conclude: false,
            queue: None,
            last: None,
        }
    }

    fn engine(&self) -> Engine {
        Engine::new(Backends::new(&self.config, Options::default()))
    }

    /// Opens a session like `kd chat`.
    fn chat(&self, name: &str, seed: u64) -> Session {
        let (thread, queue) = (self.thread(), self.folder.path().join(name));
        fs::create_dir(&queue).unwrap();
        let open = self.council(&thread, seed);
        self.engine().join(thread, open, Some(&queue)).unwrap()
    }

    /// Opens a session like `kd ask --continue`, in the background or not.
    fn ask(&self, seed: u64) -> Session {
        let thread = self.thread();
        let open = self.council(&thread, seed);
        self.engine().open(thread, open).unwrap()
    }

    fn said(&self) -> Vec<Message> {
        self.thread().messages().unwrap().messages
    }
}

fn say(body: String) -> Op {
    let to = Address::All;
    Op::Say { body, to }
}

async fn hear(faces: &mut Subscription, mut until: impl FnMut(&Event) -> bool) {
    let all = async {
        while let Some(Update::Record(record)) = faces.next().await {
            if until(&record.event) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), all)
        .await
        .expect("it comes to an end");
}

fn yielded(event: &Event) -> bool {
    matches!(event, Event::FloorYielded { .. })
}

/// A small random number generator.
fn draw(seed: &mut u64, below: u64) -> u64 {
    *seed = seed
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*seed >> 33) % below
}

#[tokio::test(flavor = "multi_thread")]
async fn two_chats_and_two_questions_ask_each_member_once_at_a_time() {
    for seed in 0..100 {
        let mut chance = seed;
        let stage = Stage::new().await;
        let mut sessions = vec![
            stage.chat("left", seed),
            stage.chat("right", seed + 1),
            stage.ask(seed + 2),
            stage.ask(seed + 3),
        ];
        let mut faces: Vec<Subscription> = sessions.iter_mut().map(Session::subscribe).collect();
        // Each asks once and one asks again, in an order and at times drawn from the seed.
        let mut order = [0, 1, 2, 3, draw(&mut chance, 2) as usize];
        for at in (1..order.len()).rev() {
            order.swap(at, draw(&mut chance, at as u64 + 1) as usize);
        }
        for (nth, who) in order.iter().enumerate() {
            let words = format!("question {nth} of session {who}");
            sessions[*who].send(say(words)).unwrap();
            tokio::time::sleep(Duration::from_millis(draw(&mut chance, 12))).await;
        }
        for (who, face) in faces.iter_mut().enumerate() {
            let mut left = order.iter().filter(|w| **w == who).count();
            hear(face, |event| {
                left -= usize::from(yielded(event));
                left == 0
            })
            .await;
        }
        for session in sessions {
            session.close().await;
        }
        assert_eq!(stage.asked_twice(), Vec::<String>::new(), "seed {seed}");
        let said = stage.said();
        for (nth, who) in order.iter().enumerate() {
            let words = format!("question {nth} of session {who}");
            let times = said.iter().filter(|m| m.body == words).count();
            assert_eq!(times, 1, "seed {seed}: {words}");
        }
        let answers = said.iter().filter(|m| !m.is_king()).count();
        assert_eq!(
            answers,
            stage.asked().len(),
            "seed {seed}: an answer is lost"
        );
        assert!(said.iter().all(Message::is_sound), "seed {seed}");
    }
}

#[tokio::test]
async fn who_waits_says_so_and_is_told_what_was_said_meanwhile() {
    let stage = Stage::new().await;
    let other = Lease::try_take(&stage.thread(), "ada").unwrap().unwrap();
    let mut session = stage.ask(1);
    let mut faces = session.subscribe();
    session.send(say("And you?".into())).unwrap();
    let (mut waits, mut bob) = (false, false);
    hear(&mut faces, |event| {
        waits |= matches!(event, Event::TurnDelta { delta: Delta::Notice { text }, .. }
            if text.contains(&format!("another kd (process {}) is asking ada", std::process::id())));
        bob |= matches!(event, Event::TurnFinished { seat, .. } if seat.as_str() == "bob");
        waits && bob
    })
    .await;
    assert_eq!(stage.asked(), ["bob"]);
    drop(other);
    hear(&mut faces, yielded).await;
    assert_eq!(stage.asked(), ["bob", "ada"]);
    session.close().await;
}

#[tokio::test]
async fn who_waits_can_be_stopped_and_gives_up_in_the_end() {
    let mut stage = Stage::new().await;
    let other = Lease::try_take(&stage.thread(), "ada").unwrap().unwrap();
    for total in [Duration::from_secs(600), Duration::from_millis(50)] {
        for member in &mut stage.members {
            member.deadlines.total = total;
        }
        let mut session = stage.ask(1);
        let mut faces = session.subscribe();
        let to = Address::Seats(vec![SeatName::new("ada").unwrap()]);
        session
            .send(Op::Say {
                body: "You?".into(),
                to,
            })
            .unwrap();
        let mut kind = None;
        hear(&mut faces, |event| {
            match event {
                Event::TurnDelta { .. } if total.as_secs() > 1 => {
                    session.send(Op::Interrupt).unwrap()
                }
                Event::TurnFailed { failure, .. } => kind = Some(failure.kind),
                _ => {}
            }
            yielded(event)
        })
        .await;
        let expected = if total.as_secs() > 1 {
            FailureKind::Cancelled
        } else {
            FailureKind::Timeout
        };
        assert_eq!(kind, Some(expected));
        session.close().await;
    }
    drop(other);
    // Leases that are no longer waited for were returned.
    Lease::wait(&stage.thread(), "ada").unwrap();
    assert!(stage.asked().is_empty());
}
