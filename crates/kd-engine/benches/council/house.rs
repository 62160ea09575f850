//! The system under test: engine, store and HTTP backend, wired as in the program.
//!
//! Takes an address and the number of members; returns how a question ended, once every message is on disk.

use kd_backends::{Backends, Env, Options};
use kd_core::config::{Config, ProviderConfig, Wire};
use kd_core::council::{Budget, OpenCouncil};
use kd_core::event::Outcome;
use kd_core::prompt::PromptRules;
use kd_core::{Address, Event, Member, Op, Roster, SeatName, protocols};
use kd_engine::{Engine, Update};
use kd_store::{Layout, Thread};
use std::sync::Arc;
use tempfile::TempDir;

/// An engine and a project folder. Clones share both.
#[derive(Clone)]
pub(crate) struct House {
    engine: Engine,
    layout: Layout,
    _folder: Arc<TempDir>,
}

impl House {
    pub(crate) fn new(url: &str) -> Self {
        let provider = ProviderConfig {
            wire: Wire::OpenAi,
            base_url: Some(url.to_owned()),
            ..ProviderConfig::default()
        };
        let config = Config {
            providers: [("svc".to_owned(), provider)].into(),
            ..Config::default()
        };
        let options = Options {
            env: Env::of([("A", "b")]),
            ..Options::default()
        };
        let folder = TempDir::new().unwrap();
        let layout = Layout::find_or_create(folder.path(), &|_| None)
            .unwrap()
            .layout;
        Self {
            engine: Engine::new(Backends::new(&config, options)),
            layout,
            _folder: Arc::new(folder),
        }
    }

    /// Asks one question in a new thread with `members` members, and waits until everything is on disk.
    pub(crate) async fn question(self, members: usize) -> Outcome {
        let members: Vec<Member> = (1..=members).map(member).collect();
        let names: Vec<_> = members.iter().map(|m| m.name.clone()).collect();
        let thread = Thread::create(&self.layout, &names).unwrap();
        let open = OpenCouncil {
            thread: thread.id().clone(),
            roster: Roster::new(members, None),
            protocol: *protocols::find("broadcast").unwrap(),
            prompts: PromptRules::default(),
            history: Vec::new(),
            seed: 1,
            limits: Budget {
                auto_messages: Some(0),
                ..Budget::default()
            },
            conclude: false,
            queue: None,
            last: None,
        };
        let mut session = self.engine.open(thread, open).unwrap();
        let mut face = session.subscribe();
        session
            .send(Op::Say {
                body: "Which way?".into(),
                to: Address::All,
            })
            .unwrap();
        let mut ended = Outcome::Failed;
        while let Some(update) = face.next().await {
            if let Update::Record(record) = update
                && let Event::FloorYielded { outcome, .. } = record.event
            {
                ended = outcome;
                break;
            }
        }
        session.close().await;
        ended
    }
}

fn member(number: usize) -> Member {
    Member {
        model: Some("fake-1".into()),
        ..Member::new(SeatName::new(format!("m{number}")).unwrap(), "svc")
    }
}
