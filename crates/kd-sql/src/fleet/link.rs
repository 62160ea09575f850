//! A connection that is made again when it breaks: a transaction that did not reach its end is repeated.

use super::address::Store;
use super::error::{FleetError, may_pass};
use crate::connect::{self, ConnectError};
use postgres::types::ToSql;
use postgres::{Client, Row, Statement, Transaction};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(10);
/// The same to look at the state, which must not take long.
const CONNECT_TO_READ: Duration = Duration::from_secs(3);
/// How long a broken connection is tried again: longer than a server needs to restart.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pauses between attempts: the first, doubled up to the maximum.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Parameters of a statement.
pub(super) type Args<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection to the server.
pub(super) struct Link {
    store: Store,
    lease: Duration,
    /// Whether it only reads, and gives up early.
    reads: bool,
    open: Option<Open>,
    /// Whether a transaction may have ended without our knowledge since the last [`Link::was_lost`].
    lost: bool,
}

struct Open {
    client: Client,
    ready: HashMap<&'static str, Statement>,
}

/// A transaction.
pub(super) struct Tx<'a> {
    on: On<'a>,
    ready: &'a mut HashMap<&'static str, Statement>,
}

/// Where statements are run.
enum On<'a> {
    Transaction(Transaction<'a>),
    /// Each statement is a transaction.
    Connection(&'a mut Client),
}

impl Tx<'_> {
    fn prepared(&mut self, sql: &'static str) -> Result<Statement, postgres::Error> {
        if let Some(statement) = self.ready.get(sql) {
            return Ok(statement.clone());
        }
        let statement = match &mut self.on {
            On::Transaction(tx) => tx.prepare(sql),
            On::Connection(client) => client.prepare(sql),
        }?;
        self.ready.insert(sql, statement.clone());
        Ok(statement)
    }

    /// Returns the rows of a query, or of a change that returns some.
    pub(super) fn rows(
        &mut self,
        sql: &'static str,
        args: Args<'_>,
    ) -> Result<Vec<Row>, postgres::Error> {
        let statement = self.prepared(sql)?;
        match &mut self.on {
            On::Transaction(tx) => tx.query(&statement, args),
            On::Connection(client) => client.query(&statement, args),
        }
    }

    /// Returns the first row, if there is one.
    pub(super) fn row(
        &mut self,
        sql: &'static str,
        args: Args<'_>,
    ) -> Result<Option<Row>, postgres::Error> {
        Ok(self.rows(sql, args)?.into_iter().next())
    }

    /// Makes a change; returns the number of affected rows.
    pub(super) fn run(
        &mut self,
        sql: &'static str,
        args: Args<'_>,
    ) -> Result<u64, postgres::Error> {
        let statement = self.prepared(sql)?;
        match &mut self.on {
            On::Transaction(tx) => tx.execute(&statement, args),
            On::Connection(client) => client.execute(&statement, args),
        }
    }

    /// Runs several statements without parameters.
    pub(super) fn script(&mut self, sql: &str) -> Result<(), postgres::Error> {
        match &mut self.on {
            On::Transaction(tx) => tx.batch_execute(sql),
            On::Connection(client) => client.batch_execute(sql),
        }
    }
}

impl Link {
    /// Connects. `lease` bounds how long a stopped process may hold locks.
    pub(super) fn open(store: &Store, lease: Duration) -> Result<Self, FleetError> {
        let mut link = Self {
            store: store.clone(),
            lease,
            reads: false,
            open: None,
            lost: false,
        };
        let open = link.connect();
        link.open = Some(open.map_err(|error| FleetError::open(store, error))?);
        Ok(link)
    }

    /// Creates a link that reads only, and is not connected yet.
    pub(super) fn to_read(store: &Store) -> Self {
        Self {
            store: store.clone(),
            lease: CONNECT_TO_READ,
            reads: true,
            open: None,
            lost: false,
        }
    }

    /// Runs a transaction that reads, once. The connection is made first if there is none.
    pub(super) fn read<T>(
        &mut self,
        act: &mut impl FnMut(&mut Tx<'_>) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        if self.open.is_none() {
            let open = self.connect();
            let failed = |error| FleetError::open(&self.store, error);
            self.open = Some(open.map_err(failed)?);
        }
        self.once(act)
    }

    fn connect(&self) -> Result<Open, ConnectError> {
        if self.reads {
            let mut client = connect::connect(self.store.url(), "kd serve", CONNECT_TO_READ)?;
            client.batch_execute(
                "SET default_transaction_read_only = on; SET idle_in_transaction_session_timeout = '10s'; \
                 SET lock_timeout = '2s'; SET statement_timeout = '5s'; SET client_min_messages = warning",
            )?;
            return Ok(Open {
                client,
                ready: HashMap::new(),
            });
        }
        let mut client = connect::connect(self.store.url(), "kd batch", CONNECT)?;
        let lease = self.lease.as_millis().max(1000);
        client.batch_execute(&format!(
            "SET idle_in_transaction_session_timeout = {lease}; SET lock_timeout = '20s'; SET statement_timeout = '120s'; \
             SET client_min_messages = warning"
        ))?;
        Ok(Open {
            client,
            ready: HashMap::new(),
        })
    }

    /// Returns whether the connection was made again since the last call.
    pub(super) fn was_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Runs a transaction, again if the connection breaks: it must have the same effect if it was committed before.
    pub(super) fn tx<T>(
        &mut self,
        mut act: impl FnMut(&mut Tx<'_>) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        Self::patiently(|| self.once(&mut act))
    }

    /// Runs one statement as [`Link::tx`] does, with one message to the server instead of three.
    pub(super) fn statement<T>(
        &mut self,
        mut act: impl FnMut(&mut Tx<'_>) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        Self::patiently(|| self.on_connection(|open| act(&mut open.alone())))
    }

    fn patiently<T>(mut act: impl FnMut() -> Result<T, FleetError>) -> Result<T, FleetError> {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = PAUSE;
        loop {
            let error = match act() {
                Err(error) if error.is_lost() && Instant::now() < deadline => error,
                done => return done,
            };
            drop(error);
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Runs a transaction once: one that must not be repeated.
    pub(super) fn once<T>(
        &mut self,
        act: &mut impl FnMut(&mut Tx<'_>) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        self.on_connection(|open| open.transact(act))
    }

    fn on_connection<T>(
        &mut self,
        act: impl FnOnce(&mut Open) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        if self.open.is_none() {
            self.lost = true;
            self.open = Some(self.connect().map_err(|error| match error {
                ConnectError::Refused(error)
                    if may_pass(&error) || error.as_db_error().is_none() =>
                {
                    FleetError::Lost(connect::told(&error))
                }
                error => FleetError::open(&self.store, error),
            })?);
        }
        let Some(open) = &mut self.open else {
            return Err(FleetError::Lost("there is no connection".into()));
        };
        let done = act(open).map_err(|error| error.at(&self.store));
        if done.as_ref().is_err_and(FleetError::is_lost) {
            // Also after a deadlock, which keeps the connection: one more is cheap.
            self.close();
        }
        done
    }

    /// Frees the rows that were erased. The server does it later if it cannot be done now.
    pub(super) fn vacuum(&mut self) {
        if let Some(open) = &mut self.open {
            let tables = "VACUUM kd_threads, kd_results, kd_questions, kd_jobs";
            let _ = open.client.batch_execute(tables);
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            // The client waits for its runtime, which is not allowed on a thread that runs asynchronous tasks.
            let _ = std::thread::spawn(move || drop(open)).join();
        }
    }
}

impl Open {
    fn alone(&mut self) -> Tx<'_> {
        Tx {
            on: On::Connection(&mut self.client),
            ready: &mut self.ready,
        }
    }

    fn transact<T>(
        &mut self,
        act: &mut impl FnMut(&mut Tx<'_>) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        let mut tx = Tx {
            on: On::Transaction(self.client.transaction()?),
            ready: &mut self.ready,
        };
        let done = act(&mut tx)?;
        if let On::Transaction(tx) = tx.on {
            tx.commit()?;
        }
        Ok(done)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}
