//! A separate schema for each test, and short forms of calls.

use crate::postgres_server::postgres_schema;
use jiff::Timestamp;
use kd_core::batch::{Method, Row, Status};
use kd_core::ledger::{Ledger, NotSent};
use kd_core::spending::Spent;
use kd_sql::batch::{Asked, Job, NewBatch};
use kd_sql::fleet::{
    Ended, Fleet, FleetAccount, FleetError, Line, NewFleetBatch, NewWorker, Store,
};
use postgres::{Client, NoTls};
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

pub(crate) const ID: &str = "batch-1";
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// A database.
pub(crate) struct Site {
    pub(crate) url: String,
}

impl Site {
    pub(crate) fn new() -> Option<Self> {
        postgres_schema().map(|url| Self { url })
    }

    pub(crate) fn store(&self) -> Store {
        Store::parse(&self.url).expect("an address")
    }

    pub(crate) fn worker(&self) -> Fleet {
        let mut fleet = Fleet::open(&self.store(), LEASE).expect("it opens");
        let worker = NewWorker {
            name: "w".into(),
            kd: "1".into(),
            lease: LEASE,
        };
        fleet.register(&worker).expect("registered");
        fleet
    }

    /// Returns a worker, and creates a batch.
    pub(crate) fn created(&self, texts: &[&str]) -> Fleet {
        let mut fleet = self.worker();
        fleet
            .create(&new(ID), &asked(texts), Timestamp::now())
            .expect("created");
        fleet
    }

    pub(crate) fn sql(&self, sql: &str) {
        let mut client = Client::connect(&self.url, NoTls).expect("connected");
        client.batch_execute(sql).expect("done");
    }

    /// Lets time pass for a worker: its last sign of life is that long ago, and the server has run for longer.
    pub(crate) fn pass(&self, time: Duration, worker: i64) {
        let millis = time.as_millis();
        // A server that has just started gives leases time: a lease that was over before is over.
        self.sql(&format!(
            "UPDATE kd_workers SET beat = beat - {millis}, lease = lease - {millis} WHERE id = {worker}"
        ));
    }

    pub(crate) fn lines(&self, fleet: &mut Fleet, id: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        let read = |line: &Line| {
            rows.push(serde_json::from_str(&line.text).expect("a line"));
            Ok::<_, FleetError>(())
        };
        fleet.results(id, read).expect("results");
        rows
    }
}

pub(crate) fn asked(texts: &[&str]) -> Vec<Asked> {
    let all = texts.iter().enumerate();
    all.map(|(at, text)| Asked {
        id: format!("q{}", at + 1),
        text: (*text).to_owned(),
        key: format!("key of {text}"),
    })
    .collect()
}

pub(crate) fn new(id: &str) -> NewFleetBatch {
    NewFleetBatch {
        about: NewBatch {
            id: id.into(),
            key: format!("key of {id}"),
            method: "ask".into(),
            ..NewBatch::default()
        },
        attempts: 3,
        ..NewFleetBatch::default()
    }
}

pub(crate) fn answer(text: &str) -> Row {
    Row {
        status: Status::Answered,
        answer: Some(text.to_owned()),
        reason: None,
        ..Row::failed(Method::Ask, "", Timestamp::UNIX_EPOCH)
    }
}

thread_local! {
    /// The jobs that this thread has claimed, by place.
    static HELD: RefCell<HashMap<u64, Job>> = RefCell::default();
}

/// Claims jobs; returns their places.
pub(crate) fn places(fleet: &mut Fleet, most: usize) -> Vec<u64> {
    let jobs = fleet.claim(ID, most, true).expect("claimed").jobs;
    let places = jobs.iter().map(|job| job.place).collect();
    HELD.with_borrow_mut(|held| held.extend(jobs.into_iter().map(|job| (job.place, job))));
    places
}

/// Returns the last claim of a place.
pub(crate) fn held(place: u64) -> Job {
    HELD.with_borrow(|held| held[&place].clone())
}

pub(crate) fn finish_job(fleet: &mut Fleet, job: &Job, row: &Row, keep: bool) -> bool {
    let ended = Ended::Finished {
        job: job.clone(),
        row: Box::new(row.clone()),
        keep,
        thread: Vec::new(),
    };
    fleet.write(ID, &[ended]).expect("written")[0]
}

/// Ends the last claim of a place; returns whether it still held.
pub(crate) fn finish(fleet: &mut Fleet, place: u64, row: &Row, keep: bool) -> bool {
    finish_job(fleet, &held(place), row, keep)
}

pub(crate) fn back(fleet: &mut Fleet, place: u64, pause: Duration, asked: bool) {
    let job = held(place);
    let ended = Ended::Back { job, pause, asked };
    assert!(fleet.write(ID, &[ended]).expect("written")[0]);
}

/// Announces a request, and waits until it is recorded.
pub(crate) fn sending(account: &FleetAccount, request: u64, most: &Spent) -> Result<(), NotSent> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let noted = account.sending(request, most);
    runtime.expect("a runtime").block_on(noted)
}
