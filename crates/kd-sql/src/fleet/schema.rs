//! The tables of batches on PostgreSQL. All times are the database's, in milliseconds since 1970.

use super::address::Store;
use super::error::FleetError;
use super::link::Tx;
use kd_core::formats::FLEET;

/// Serializes the creation of tables, also among programs that share the server.
const LOCK: i64 = 0x6b64_666c_6565_7400;

/// `kd_jobs` has small rows, because each claim and each end leaves a dead one; texts are in `kd_questions`. `kd_spending`
/// has one row for each batch and worker, so that no two workers wait for a row. `kd_requests`: requests that were sent and
/// not settled. `kd_services`: when the next request to a service may be sent.
const SCHEMA: &str = "CREATE TABLE kd_store (version bigint NOT NULL);
CREATE TABLE kd_batches (
    id text PRIMARY KEY,
    key text NOT NULL,
    method text NOT NULL,
    asks text NOT NULL,
    parts text NOT NULL,
    source text NOT NULL,
    output text,
    command text NOT NULL,
    fresh boolean NOT NULL,
    priority integer NOT NULL,
    attempts integer NOT NULL,
    pause bigint NOT NULL,
    every bigint,
    next_start bigint NOT NULL DEFAULT 0,
    max_calls bigint,
    max_tokens bigint,
    max_pico_usd bigint,
    created bigint NOT NULL,
    cancelled boolean NOT NULL DEFAULT false,
    limited boolean NOT NULL DEFAULT false
);
CREATE INDEX kd_batches_key ON kd_batches (key, created);
CREATE SEQUENCE kd_tokens CACHE 32;
CREATE TABLE kd_jobs (
    batch text NOT NULL,
    place bigint NOT NULL,
    state smallint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    token bigint NOT NULL DEFAULT 0,
    worker bigint,
    due bigint NOT NULL DEFAULT 0,
    twin bigint,
    PRIMARY KEY (batch, place)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX kd_jobs_waiting ON kd_jobs (batch, due, place) WHERE state = 0;
CREATE INDEX kd_jobs_held ON kd_jobs (worker, batch) WHERE state = 1;
CREATE INDEX kd_jobs_running ON kd_jobs (batch) WHERE state = 1;
CREATE INDEX kd_jobs_twin ON kd_jobs (batch, twin) WHERE twin IS NOT NULL;
CREATE TABLE kd_questions (
    batch text NOT NULL,
    place bigint NOT NULL,
    id text NOT NULL,
    question text NOT NULL,
    key text NOT NULL,
    PRIMARY KEY (batch, place)
);
CREATE TABLE kd_results (
    batch text NOT NULL,
    place bigint NOT NULL,
    key text NOT NULL,
    kept boolean NOT NULL,
    cached boolean NOT NULL,
    tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
    line text NOT NULL,
    PRIMARY KEY (batch, place)
);
CREATE INDEX kd_results_kept ON kd_results (key) WHERE kept;
CREATE INDEX kd_results_tx ON kd_results (batch, tx);
CREATE TABLE kd_threads (
    batch text NOT NULL,
    place bigint NOT NULL,
    name text NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (batch, place, name)
);
CREATE TABLE kd_workers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    kd text NOT NULL,
    lease bigint NOT NULL,
    started bigint NOT NULL,
    beat bigint NOT NULL,
    draining boolean NOT NULL DEFAULT false,
    ended bigint
) WITH (fillfactor = 50);
CREATE INDEX kd_workers_alive ON kd_workers (id) WHERE ended IS NULL;
CREATE TABLE kd_refusals (
    batch text NOT NULL,
    worker bigint NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (batch, worker)
);
CREATE TABLE kd_requests (
    worker bigint NOT NULL,
    request bigint NOT NULL,
    batch text NOT NULL,
    calls bigint NOT NULL,
    tokens bigint NOT NULL,
    pico_usd bigint NOT NULL,
    PRIMARY KEY (worker, request)
);
CREATE INDEX kd_requests_batch ON kd_requests (batch);
CREATE TABLE kd_spending (
    batch text NOT NULL,
    worker bigint NOT NULL,
    millis bigint NOT NULL DEFAULT 0,
    calls bigint NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    pico_usd bigint NOT NULL DEFAULT 0,
    certainty text NOT NULL DEFAULT 'exact',
    PRIMARY KEY (batch, worker)
) WITH (fillfactor = 50);
CREATE TABLE kd_services (
    name text PRIMARY KEY,
    next_start bigint NOT NULL DEFAULT 0,
    paused_until bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50)";

/// Creates the tables in an empty schema, and checks the version of existing ones.
pub(super) fn migrate(tx: &mut Tx<'_>, store: &Store) -> Result<(), FleetError> {
    tx.rows("SELECT pg_advisory_xact_lock($1)::text", &[&LOCK])?;
    if is_new(tx)? {
        tx.script(SCHEMA)?;
        let version = i64::from(FLEET.version);
        tx.run("INSERT INTO kd_store (version) VALUES ($1)", &[&version])?;
        return Ok(());
    }
    check(tx, store)
}

/// Returns whether the tables do not exist yet.
pub(super) fn is_new(tx: &mut Tx<'_>) -> Result<bool, FleetError> {
    Ok(
        match tx.row("SELECT to_regclass('kd_store') IS NULL", &[])? {
            Some(row) => row.try_get(0)?,
            None => true,
        },
    )
}

/// Checks the version of the tables.
pub(super) fn check(tx: &mut Tx<'_>, store: &Store) -> Result<(), FleetError> {
    let version: Option<i64> = match tx.row("SELECT max(version) FROM kd_store", &[])? {
        Some(row) => row.try_get(0)?,
        None => None,
    };
    let stated = version.and_then(|version| u64::try_from(version).ok());
    FLEET.check(stated).map_err(|newer| FleetError::Newer {
        place: store.shown(),
        newer,
    })
}
