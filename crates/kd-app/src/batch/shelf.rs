//! Batches of this machine, or of a database.

use super::fleet::{self, Fleet, Refusal, Store, Worker};
use super::{Batch, Batches, Dead, MemberFailures, Retried, find, of, pick};
use crate::env::Env;
use crate::error::UserError;
use kd_core::Timestamp;
use std::io::Write;

/// The workers of a fleet.
pub struct Workers {
    /// Those that gave a sign of life.
    pub all: Vec<Worker>,
    /// Those that do not serve the batch.
    pub refusals: Vec<Refusal>,
}

/// Where batches are.
pub enum Shelf {
    /// In this project.
    Own(Box<Batches>),
    /// In a database.
    Fleet(Box<Fleet>),
}

impl Shelf {
    /// Opens the place of batches: this database, or the project of the working folder; `None` if it has none.
    ///
    /// # Errors
    /// The database cannot be opened.
    pub fn open(store: Option<&Store>, env: &Env) -> Result<Option<Self>, UserError> {
        Ok(match store {
            Some(store) => Some(Self::Fleet(Box::new(fleet::open(store)?))),
            None => of(env)?.map(|own| Self::Own(Box::new(own))),
        })
    }

    /// Opens it, and finds a batch there by its id; without one, the newest.
    ///
    /// # Errors
    /// There is no such batch, there are several, or the database cannot be read.
    pub fn with(
        store: Option<&Store>,
        id: Option<&str>,
        env: &Env,
    ) -> Result<(Self, Batch), UserError> {
        let (shelf, all) = Self::with_all(store, id, env)?;
        Ok((shelf, pick(all, id)?))
    }

    fn with_all(
        store: Option<&Store>,
        id: Option<&str>,
        env: &Env,
    ) -> Result<(Self, Vec<Batch>), UserError> {
        let Some(mut shelf) = Self::open(store, env)? else {
            find(None, id)?;
            return Err(UserError::usage("there is no batch in this project"));
        };
        let all = shelf.all(env)?;
        Ok((shelf, all))
    }

    /// Opens it, and finds a batch there; without an id, the newest that runs, else the newest.
    ///
    /// # Errors
    /// There is no such batch, there are several, or the database cannot be read.
    pub fn with_running(
        store: Option<&Store>,
        id: Option<&str>,
        env: &Env,
    ) -> Result<(Self, Batch), UserError> {
        let (mut shelf, all) = Self::with_all(store, id, env)?;
        let newest = pick(all.clone(), id)?;
        if id.is_none() {
            for batch in all.into_iter().rev() {
                if !batch.counts.is_over() && shelf.is_running(&batch)? {
                    return Ok((shelf, batch));
                }
            }
        }
        Ok((shelf, newest))
    }

    /// Returns the batches, oldest first. Warns about those that a damaged database leaves out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn all(&mut self, env: &Env) -> Result<Vec<Batch>, UserError> {
        Ok(match self {
            Self::Own(own) => own.all()?,
            Self::Fleet(fleet) => {
                let (all, damaged) = fleet.all()?;
                for why in damaged {
                    env.warn(format!("left out, the database is damaged: {why}"));
                }
                all
            }
        })
    }

    /// Returns the questions of a batch that failed for good, at most `most`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn dead(&mut self, id: &str, most: usize) -> Result<Vec<Dead>, UserError> {
        Ok(match self {
            Self::Own(own) => own.dead(id, most)?,
            Self::Fleet(fleet) => fleet.dead(id, most)?,
        })
    }

    /// Returns the members that failed in answered questions of a batch, the most frequent `most` first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn member_failures(
        &mut self,
        id: &str,
        most: usize,
    ) -> Result<Vec<MemberFailures>, UserError> {
        Ok(match self {
            Self::Own(own) => own.member_failures(id, most)?,
            Self::Fleet(fleet) => fleet.member_failures(id, most)?,
        })
    }

    /// Lets the failed and cancelled questions of a batch be asked again.
    ///
    /// # Errors
    /// The database cannot be changed.
    pub fn retry(&mut self, id: &str) -> Result<Retried, UserError> {
        let now = Timestamp::now();
        Ok(match self {
            Self::Own(own) => own.retry(id, now)?,
            Self::Fleet(fleet) => fleet.retry(id, now)?,
        })
    }

    /// Cancels the open questions of a batch, and returns how many they were.
    ///
    /// # Errors
    /// The database cannot be changed.
    pub fn cancel(&mut self, id: &str) -> Result<u64, UserError> {
        Ok(match self {
            Self::Own(own) => own.cancel(id)?,
            Self::Fleet(fleet) => fleet.cancel(id)?,
        })
    }

    /// Writes every line of results, in the order of the questions.
    ///
    /// # Errors
    /// The database cannot be read, or the output cannot be written.
    pub fn results(&mut self, id: &str, out: &mut dyn Write) -> Result<(), UserError> {
        match self {
            Self::Own(own) => own.results(id, |line| Ok::<_, UserError>(writeln!(out, "{line}")?)),
            Self::Fleet(fleet) => Ok(fleet::lines(fleet, id, out)?),
        }
    }

    /// Returns whether a limit has stopped a batch of a database.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn is_limited(&mut self, id: &str) -> Result<bool, UserError> {
        Ok(match self {
            Self::Own(_) => false,
            Self::Fleet(fleet) => fleet.get(id)?.is_some_and(|found| found.limited),
        })
    }

    /// Returns whether questions of a batch may be asked now.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn is_running(&mut self, batch: &Batch) -> Result<bool, UserError> {
        Ok(match self {
            Self::Own(own) => own.lock(&batch.about.id)?.is_none(),
            Self::Fleet(_) => batch.counts.running > 0,
        })
    }

    /// Returns all workers, and the workers that do not serve a batch. `None` for batches of this machine.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn workers(&mut self, id: &str) -> Result<Option<Workers>, UserError> {
        Ok(match self {
            Self::Own(_) => None,
            Self::Fleet(fleet) => Some(Workers {
                all: fleet.workers()?,
                refusals: fleet.refusals(id)?,
            }),
        })
    }
}
