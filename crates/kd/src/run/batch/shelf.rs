//! Batches of this machine, or of a database.

use super::super::notices::notice_line;
use super::{Error, Here, fleet};
use crate::args::batch::Store;
use kd_app::batch::{find, of, pick};
use kd_core::Timestamp;
use kd_sql::batch::{Batch, Batches, Dead, Retried};
use kd_sql::fleet::{Fleet, Refusal, Worker};
use std::io::Write;

/// The workers of a fleet.
pub(super) struct Workers {
    /// Those that gave a sign of life.
    pub(super) all: Vec<Worker>,
    /// Those that do not serve the batch.
    pub(super) refusals: Vec<Refusal>,
}

/// Where batches are.
pub(super) enum Shelf {
    /// In this project.
    Own(Box<Batches>),
    /// In a database.
    Fleet(Box<Fleet>),
}

impl Shelf {
    /// Opens the place of the batches that a command is about; `None` if there are none.
    pub(super) fn open(args: &Store, here: &Here) -> Result<Option<Self>, Error> {
        Ok(match fleet::store(args, here)? {
            Some(store) => {
                let open = kd_app::batch::fleet::open(&store)?;
                Some(Self::Fleet(Box::new(open)))
            }
            None => of(here)?.map(|own| Self::Own(Box::new(own))),
        })
    }

    /// Opens it, and finds a batch there.
    pub(super) fn with(
        args: &Store,
        id: Option<&str>,
        here: &Here,
    ) -> Result<(Self, Batch), Error> {
        let (shelf, all) = Self::with_all(args, id, here)?;
        Ok((shelf, pick(all, id)?))
    }

    fn with_all(args: &Store, id: Option<&str>, here: &Here) -> Result<(Self, Vec<Batch>), Error> {
        let Some(mut shelf) = Self::open(args, here)? else {
            find(None, id)?;
            return Err(Error::usage("there is no batch in this project"));
        };
        let all = shelf.all()?;
        Ok((shelf, all))
    }

    /// Opens it, and finds a batch there; without an id, the newest that runs, else the newest.
    pub(super) fn with_running(
        args: &Store,
        id: Option<&str>,
        here: &Here,
    ) -> Result<(Self, Batch), Error> {
        let (mut shelf, all) = Self::with_all(args, id, here)?;
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

    pub(super) fn all(&mut self) -> Result<Vec<Batch>, Error> {
        Ok(match self {
            Self::Own(own) => own.all()?,
            Self::Fleet(fleet) => {
                let (all, damaged) = fleet.all()?;
                for why in damaged {
                    notice_line(&format!("left out, the database is damaged: {why}"));
                }
                all
            }
        })
    }

    pub(super) fn dead(&mut self, id: &str, most: usize) -> Result<Vec<Dead>, Error> {
        Ok(match self {
            Self::Own(own) => own.dead(id, most)?,
            Self::Fleet(fleet) => fleet.dead(id, most)?,
        })
    }

    pub(super) fn retry(&mut self, id: &str) -> Result<Retried, Error> {
        let now = Timestamp::now();
        Ok(match self {
            Self::Own(own) => own.retry(id, now)?,
            Self::Fleet(fleet) => fleet.retry(id, now)?,
        })
    }

    pub(super) fn cancel(&mut self, id: &str) -> Result<u64, Error> {
        Ok(match self {
            Self::Own(own) => own.cancel(id)?,
            Self::Fleet(fleet) => fleet.cancel(id)?,
        })
    }

    /// Writes every line of results, in the order of the questions.
    pub(super) fn results(&mut self, id: &str, out: &mut dyn Write) -> Result<(), Error> {
        match self {
            Self::Own(own) => own.results(id, |line| Ok::<_, Error>(writeln!(out, "{line}")?)),
            Self::Fleet(fleet) => Ok(kd_app::batch::fleet::lines(fleet, id, out)?),
        }
    }

    /// Returns whether a limit has stopped a batch of a database.
    pub(super) fn is_limited(&mut self, id: &str) -> Result<bool, Error> {
        Ok(match self {
            Self::Own(_) => false,
            Self::Fleet(fleet) => fleet.get(id)?.is_some_and(|found| found.limited),
        })
    }

    /// Returns whether questions of a batch may be asked now.
    pub(super) fn is_running(&mut self, batch: &Batch) -> Result<bool, Error> {
        Ok(match self {
            Self::Own(own) => own.lock(&batch.about.id)?.is_none(),
            Self::Fleet(_) => batch.counts.running > 0,
        })
    }

    /// Returns the workers, and those of them that do not serve a batch; `None` for batches of this machine.
    pub(super) fn workers(&mut self, id: &str) -> Result<Option<Workers>, Error> {
        Ok(match self {
            Self::Own(_) => None,
            Self::Fleet(fleet) => Some(Workers {
                all: fleet.workers()?,
                refusals: fleet.refusals(id)?,
            }),
        })
    }
}
