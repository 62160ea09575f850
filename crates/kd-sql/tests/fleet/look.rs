//! Looking at a fleet without changing it.

use crate::support::{ID, LEASE, Site, answer, finish, new, places};
use jiff::Timestamp;
use kd_core::batch::{Failed, Method, Refusal, Refused, Row, WorkerState};
use kd_core::usage::Certainty;
use kd_sql::fleet::{FleetError, FleetReader, Store};
use std::time::Duration;

fn failed(kind: &str) -> Row {
    let failure = Failed {
        member: "ada".into(),
        kind: kind.into(),
        message: "\"failures\":[{\"member\":\"x\",\"kind\":\"wrong\"".into(),
    };
    Row {
        failures: vec![failure],
        ..Row::failed(Method::Ask, "ada: it \u{1b}[31mbroke\n", Timestamp::now())
    }
}

#[test]
fn a_reader_tells_everything_about_a_fleet_and_creates_nothing() {
    let Some(site) = Site::new() else { return };
    let mut reader = FleetReader::new(&site.store());
    assert_eq!(reader.look(20).unwrap(), (Vec::new(), Vec::new()));
    assert_eq!(
        reader.look(20).unwrap(),
        (Vec::new(), Vec::new()),
        "still no table"
    );
    let mut fleet = site.created(&["One?", "One?", "Two?", "Three?", "Four?", "Five?"]);
    fleet
        .create(&new("batch-2"), &[], Timestamp::now())
        .unwrap();
    assert_eq!(places(&mut fleet, 4), [1, 3, 4, 5]);
    assert!(finish(&mut fleet, 1, &answer("1"), true));
    assert!(finish(&mut fleet, 3, &failed("overloaded"), false));
    assert!(finish(&mut fleet, 4, &failed("auth"), false));
    let mut other = site.worker();
    other
        .refuse(ID, "another configuration:\n\u{1b}[2Jada")
        .unwrap();
    site.sql("INSERT INTO kd_spending (batch, worker, millis, calls, tokens, pico_usd, certainty) VALUES
        ('batch-1', 1, 2000, 3, 100, 1500000000000, 'at_most'), ('batch-1', 2, 1000, 1, 10, 0, 'exact')");
    site.pass(LEASE * 2, fleet.worker());
    let (batches, workers) = reader.look(20).unwrap();
    let ids: Vec<&str> = batches.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["batch-2", ID], "newest first");
    let one = &batches[1];
    let states = ["answered", "failed", "running", "waiting"].map(|state| one.state(state));
    assert_eq!(
        (states, one.cached, one.running_now),
        ([2, 2, 1, 1], 1, true)
    );
    assert_eq!(
        (one.calls, one.tokens, one.usd, one.seconds),
        (4, 110, 1.5, 3.0)
    );
    assert_eq!(one.certainty, Certainty::AtMost);
    let kinds = [("auth".to_owned(), 1), ("overloaded".to_owned(), 1)];
    assert_eq!(one.failures, kinds.into());
    let dead: Vec<_> = one
        .dead
        .iter()
        .map(|dead| (dead.n, dead.reason.as_str()))
        .collect();
    assert_eq!(dead, [(3, "ada: it broke "), (4, "ada: it broke ")]);
    let reason = "another configuration: ada".to_owned();
    let refusal = Refusal {
        worker: format!("w-{}", other.worker()),
        reason: reason.clone(),
    };
    assert_eq!(one.refusals, [refusal]);
    // A worker that is silent for too long is lost, and a reader does not end it.
    let states: Vec<_> = workers
        .iter()
        .map(|worker| (worker.state(), worker.asking))
        .collect();
    assert_eq!(states, [(WorkerState::Lost, 1), (WorkerState::Idle, 0)]);
    let batch = ID.to_owned();
    assert_eq!(workers[1].refuses, [Refused { batch, reason }]);
    assert!(workers[0].silent >= LEASE * 2 && workers[1].up < Duration::from_secs(60));
    assert_eq!(reader.look(1).unwrap().0.len(), 1);
    assert_eq!(reader.look(20).unwrap().1.len(), 2, "nobody was ended");
    site.sql("UPDATE kd_store SET version = 99");
    assert!(matches!(reader.look(20), Err(FleetError::Newer { .. })));
}

#[test]
fn the_list_tells_of_each_batch_what_its_state_tells() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "One?", "Two?", "Three?"]);
    for id in ["batch-2", "batch-3"] {
        fleet.create(&new(id), &[], Timestamp::now()).unwrap();
    }
    assert_eq!(places(&mut fleet, 2), [1, 3]);
    assert!(finish(&mut fleet, 1, &answer("1"), true));
    site.sql("INSERT INTO kd_spending (batch, worker, millis, calls, tokens, pico_usd, certainty) VALUES
        ('batch-1', 1, 2000, 3, 100, 15, 'at_most'), ('batch-1', 2, 1000, 1, 10, 0, 'exact'), ('batch-2', 1, 7, 0, 0, 0, 'exact')");
    let (all, damaged) = fleet.all().unwrap();
    assert_eq!(damaged, Vec::<String>::new());
    let ids = [ID, "batch-2", "batch-3"];
    let states = ids.map(|id| fleet.get(id).unwrap().unwrap().batch);
    assert_eq!(all, states);
    assert_eq!((all[0].counts.cached, all[0].spent.tokens), (1, 110));
    // One that cannot be read is named, and the others are listed.
    site.sql("ALTER TABLE kd_batches ALTER COLUMN priority DROP NOT NULL; UPDATE kd_batches SET priority = NULL WHERE id = 'batch-2'");
    let (all, damaged) = fleet.all().unwrap();
    let listed: Vec<_> = all.iter().map(|one| one.about.id.as_str()).collect();
    assert_eq!((listed, damaged.len()), (vec![ID, "batch-3"], 1));
}

#[test]
fn a_reader_survives_what_another_program_wrote() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?"]);
    assert_eq!(places(&mut fleet, 1), [1]);
    assert!(finish(&mut fleet, 1, &failed("auth"), false));
    site.sql("UPDATE kd_results SET line = 'no json \"failures\":[{';
        UPDATE kd_batches SET method = repeat('m', 5000), source = E'a\\nb';
        UPDATE kd_workers SET beat = -9, started = 9223372036854775807, lease = 9223372036854775807");
    let (batches, workers) = FleetReader::new(&site.store()).look(20).unwrap();
    assert_eq!(batches[0].failures, [("other".to_owned(), 1)].into());
    assert_eq!(
        (batches[0].dead[0].reason.as_str(), workers[0].up),
        ("", Duration::ZERO)
    );
    assert!(batches[0].method.len() < 100, "{}", batches[0].method);
    let away = Store::parse("postgresql://u:pw@127.0.0.1:1/db").unwrap();
    let error = FleetReader::new(&away).look(20).unwrap_err();
    assert!(matches!(&error, FleetError::Open { place, .. } if !place.contains("pw")));
}
