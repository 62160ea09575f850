//! Provider batches: requests submitted to a provider, and replies that no question has used yet. Tables are created on
//! first use.

use super::batches::Batches;
use super::money;
use super::parcel_rows::exist;
use crate::amounts::signed;
use jiff::Timestamp;
use kd_core::spending::Spent;
use kd_core::usage::{Certainty, Usage};
use kd_store::error::Error;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashSet;

/// `parcels`: batches at providers. `parcel_items`: their requests, and after their end those with a reply.
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS parcels (
    name TEXT PRIMARY KEY,
    batch TEXT NOT NULL,
    service TEXT NOT NULL,
    model TEXT NOT NULL,
    remote TEXT,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS parcel_items (
    id TEXT PRIMARY KEY,
    batch TEXT NOT NULL,
    parcel TEXT NOT NULL,
    digest TEXT NOT NULL,
    thread TEXT,
    calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    pico_usd INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reply TEXT
);
CREATE INDEX IF NOT EXISTS parcel_items_of ON parcel_items (batch, parcel);
CREATE INDEX IF NOT EXISTS parcel_items_thread ON parcel_items (thread) WHERE thread IS NOT NULL;";

/// A request that goes to a provider in a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParcelItem {
    /// Its id at the provider.
    pub id: String,
    /// The digest of the request.
    pub digest: String,
    /// The thread that waits for it.
    pub thread: Option<String>,
    /// The maximum that it may spend.
    pub most: Spent,
    /// Tokens of the prompt, at most.
    pub input: u64,
    /// Tokens of the answer, at most.
    pub output: u64,
}

/// A batch at a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parcel {
    /// Our name of it.
    pub name: String,
    /// The service, as configured.
    pub service: String,
    /// The model.
    pub model: String,
    /// Its id at the provider; `None` until the provider has confirmed it.
    pub remote: Option<String>,
    /// When it was handed over.
    pub at: Timestamp,
    /// Its requests.
    pub items: Vec<ParcelItem>,
}

impl Batches {
    /// Returns the provider batches of a batch that are not over.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn parcels(&self, batch: &str) -> Result<Vec<Parcel>, Error> {
        self.read(|db| match exist(db)? {
            true => open(db, batch),
            false => Ok(Vec::new()),
        })
    }

    /// Returns the replies of a batch that no question has used: the id and the digest of each request.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn parcel_replies(&self, batch: &str) -> Result<Vec<(String, String)>, Error> {
        self.read(|db| {
            if !exist(db)? {
                return Ok(Vec::new());
            }
            let mut found = db.prepare(
                "SELECT id, digest FROM parcel_items WHERE batch = ?1 AND reply IS NOT NULL ORDER BY rowid",
            )?;
            let rows = found.query_map([batch], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }

    /// Returns a reply, and records the thread that uses it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn take_parcel_reply(
        &mut self,
        id: &str,
        thread: Option<&str>,
    ) -> Result<Option<String>, Error> {
        self.write(|tx| {
            tx.execute(
                "UPDATE parcel_items SET thread = ?2 WHERE id = ?1",
                params![id, thread],
            )?;
            let mut found = tx.prepare_cached("SELECT reply FROM parcel_items WHERE id = ?1")?;
            let reply: Option<Option<String>> =
                found.query_row([id], |row| row.get(0)).optional()?;
            Ok(reply.flatten())
        })
    }

    /// Records a provider batch that is about to be handed over.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn parcel_sending(&mut self, batch: &str, parcel: &Parcel) -> Result<(), Error> {
        self.write(|tx| {
            tx.execute_batch(SCHEMA)?;
            tx.prepare_cached(
                "INSERT INTO parcels (name, batch, service, model, remote, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                parcel.name,
                batch,
                parcel.service,
                parcel.model,
                parcel.remote,
                parcel.at.as_millisecond()
            ])?;
            let mut insert = tx.prepare_cached(
                "INSERT INTO parcel_items (id, batch, parcel, digest, thread, calls, tokens, pico_usd, input, output)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?;
            for item in &parcel.items {
                insert.execute(params![
                    item.id,
                    batch,
                    parcel.name,
                    item.digest,
                    item.thread,
                    signed(item.most.calls),
                    signed(item.most.tokens),
                    signed(item.most.pico_usd),
                    signed(item.input),
                    signed(item.output)
                ])?;
            }
            Ok(())
        })
    }

    /// Records the id that the provider gave it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn parcel_sent(&mut self, name: &str, remote: &str) -> Result<(), Error> {
        self.write(|tx| {
            tx.execute(
                "UPDATE parcels SET remote = ?2 WHERE name = ?1",
                [name, remote],
            )?;
            Ok(())
        })
    }

    /// Removes a provider batch that the provider does not have.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn parcel_unsent(&mut self, name: &str) -> Result<(), Error> {
        self.write(|tx| {
            tx.execute("DELETE FROM parcel_items WHERE parcel = ?1", [name])?;
            tx.execute("DELETE FROM parcels WHERE name = ?1", [name])?;
            Ok(())
        })
    }

    /// Counts the maximum of all requests of a provider batch whose results are not available now. Results that come
    /// later cost nothing more.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn parcel_unknown(&mut self, batch: &str, name: &str) -> Result<(), Error> {
        self.write(|tx| {
            let known = counted(tx, name)?;
            for parcel in open(tx, batch)? {
                let items = parcel.items.iter().filter(|_| parcel.name == name);
                for item in items.filter(|item| !known.contains(&item.id)) {
                    money::add(tx, batch, &item.most)?;
                }
            }
            tx.execute(
                "UPDATE parcel_items SET calls = 0, tokens = 0, pico_usd = 0 WHERE parcel = ?1",
                [name],
            )?;
            Ok(())
        })
    }

    /// Records the results of a finished provider batch: the reply of each request, if any, and its spending.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn parcel_ended(
        &mut self,
        batch: &str,
        name: &str,
        results: &[(&str, Option<&str>, Spent)],
    ) -> Result<(), Error> {
        self.write(|tx| {
            let known = counted(tx, name)?;
            for (id, reply, spent) in results {
                // A forgotten thread has no request any more, but its spending counts.
                match reply {
                    Some(reply) => tx
                        .prepare_cached("UPDATE parcel_items SET reply = ?2 WHERE id = ?1")?
                        .execute([id, reply])?,
                    None => tx
                        .prepare_cached("DELETE FROM parcel_items WHERE id = ?1")?
                        .execute([id])?,
                };
                if !known.contains(*id) {
                    money::add(tx, batch, spent)?;
                }
            }
            tx.execute("DELETE FROM parcels WHERE name = ?1", [name])?;
            Ok(())
        })
    }

    /// Removes all replies of a batch that is over: no question needs them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn clear_parcels(&mut self, batch: &str) -> Result<(), Error> {
        self.write(|tx| {
            if exist(tx)? {
                tx.execute(
                    "DELETE FROM parcel_items WHERE batch = ?1 AND reply IS NOT NULL",
                    [batch],
                )?;
            }
            Ok(())
        })
    }
}

/// Returns whether the count of a request is a lower or an upper bound. Without a limit on its answer it is a lower
/// bound, because only the number of calls is known.
fn bound(output: u64) -> Certainty {
    match output {
        0 => Certainty::AtLeast,
        _ => Certainty::AtMost,
    }
}

/// Returns the requests of a provider batch that were counted before their results arrived.
fn counted(db: &Connection, name: &str) -> rusqlite::Result<HashSet<String>> {
    let mut found = db.prepare("SELECT id FROM parcel_items WHERE parcel = ?1 AND calls = 0")?;
    let rows = found.query_map([name], |row| row.get(0))?;
    rows.collect()
}

fn open(db: &Connection, batch: &str) -> rusqlite::Result<Vec<Parcel>> {
    let mut found = db.prepare(
        "SELECT name, service, model, remote, at FROM parcels WHERE batch = ?1 ORDER BY at, name",
    )?;
    let rows = found.query_map([batch], |row| {
        Ok(Parcel {
            name: row.get(0)?,
            service: row.get(1)?,
            model: row.get(2)?,
            remote: row.get(3)?,
            at: Timestamp::from_millisecond(row.get(4)?).unwrap_or_default(),
            items: Vec::new(),
        })
    })?;
    let mut parcels: Vec<Parcel> = rows.collect::<Result<_, _>>()?;
    let mut found = db.prepare(
        "SELECT id, digest, thread, calls, tokens, pico_usd, input, output FROM parcel_items
         WHERE batch = ?1 AND parcel = ?2 ORDER BY rowid",
    )?;
    for parcel in &mut parcels {
        let rows = found.query_map([batch, &parcel.name], |row| {
            let unsigned = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
            Ok(ParcelItem {
                id: row.get(0)?,
                digest: row.get(1)?,
                thread: row.get(2)?,
                most: Spent {
                    calls: unsigned(3)?,
                    tokens: unsigned(4)?,
                    pico_usd: unsigned(5)?,
                    certainty: bound(unsigned(7)?),
                },
                input: unsigned(6)?,
                output: unsigned(7)?,
            })
        })?;
        parcel.items = rows.collect::<Result<_, _>>()?;
    }
    Ok(parcels)
}

impl ParcelItem {
    /// Returns the maximum as usage.
    pub fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input,
            output_tokens: self.output,
            cost_usd: (self.most.pico_usd > 0).then(|| self.most.usd()),
            certainty: bound(self.output),
            ..Usage::default()
        }
    }
}
