//! Asks the question of a job, in the way of its batch.

use super::drive::{Handler, Step};
use super::how::{How, plain};
use crate::council::Started;
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use jiff::Timestamp;
use kd_core::batch::{Next, ending};
use kd_sql::batch::{BatchAccount, Job};
use kd_sql::fleet::FleetAccount;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

/// The account of a run.
#[derive(Clone)]
pub(super) enum Account {
    /// Of a batch on this machine.
    Own(BatchAccount),
    /// Of a worker of a fleet.
    Fleet(FleetAccount),
}

impl Account {
    /// Returns whether a limit of the batch, of this process or of the day has refused a request.
    fn is_exhausted(&self) -> bool {
        match self {
            Account::Own(account) => account.is_exhausted(),
            Account::Fleet(account) => account.is_exhausted(),
        }
    }

    /// Returns whether a request could not be recorded since this time, so that it was not sent.
    fn was_cut_off(&self, since: Instant) -> bool {
        match self {
            Account::Own(_) => false,
            Account::Fleet(account) => account.was_cut_off(since),
        }
    }
}

/// Asks members.
pub(super) struct Asking {
    kingdom: Arc<Kingdom>,
    how: Arc<How>,
    account: Account,
}

impl Asking {
    pub(super) fn new(kingdom: Arc<Kingdom>, how: How, account: Account) -> Self {
        Self {
            kingdom,
            how: Arc::new(how),
            account,
        }
    }
}

/// Checks once that the members can answer, and downloads what they lack.
///
/// # Errors
/// If no member can answer.
pub(super) fn check(kingdom: &Kingdom, how: &How) -> Result<(), UserError> {
    match how {
        How::Ask(ask) => drop(kingdom.council(ask.clone())?.asked(plain("?"))?),
        How::Think(think) => drop(kingdom.debate(think.clone())?.asked(plain("?"))?),
        // The members are chosen for each question.
        How::Deliberate(deliberate) => {
            let named = crate::trust::Named::only(&deliberate.members);
            crate::trust::check(kingdom.project(), named, kingdom.env())?;
        }
    }
    Ok(())
}

fn start(kingdom: &Kingdom, how: &How, question: &str) -> Result<Started, UserError> {
    let question = plain(question);
    match how {
        How::Ask(ask) => kingdom.ask(ask.clone(), question),
        How::Think(think) => kingdom.think(think.clone(), question),
        How::Deliberate(deliberate) => kingdom.deliberate(deliberate.clone(), question),
    }
}

impl Handler for Asking {
    fn handle(&self, job: Job) -> Pin<Box<dyn Future<Output = Step> + Send>> {
        let (kingdom, how) = (Arc::clone(&self.kingdom), Arc::clone(&self.how));
        let account = self.account.clone();
        Box::pin(async move {
            let began = Instant::now();
            let opened = {
                let (kingdom, how) = (Arc::clone(&kingdom), Arc::clone(&how));
                // Files are created, and an agent's program may be looked for.
                tokio::task::spawn_blocking(move || start(&kingdom, &how, &job.question)).await
            };
            let started = match opened {
                Ok(Ok(started)) => started,
                Ok(Err(error)) => return Step::Stop(error),
                Err(error) => {
                    let what = "a question could not be asked";
                    return Step::Stop(UserError::new(ErrorKind::Engine, what).because(error));
                }
            };
            let view = match started.finished().await {
                Ok(view) => view,
                Err(error) => return Step::Stop(error),
            };
            let mut end = ending(&view, how.method(), Timestamp::now());
            end.row.seconds = began.elapsed().as_millis() as f64 / 1e3;
            if end.limited && account.is_exhausted() {
                return Step::Limit(end.row.thread);
            }
            if end.limited && account.was_cut_off(began) {
                return Step::Unasked(end.row.thread);
            }
            match end.next {
                Next::Answered => Step::Done {
                    row: Box::new(end.row),
                    keep: end.keep,
                },
                Next::Dead => Step::Done {
                    row: Box::new(end.row),
                    keep: false,
                },
                Next::Again(wait) => Step::Again {
                    row: Box::new(end.row),
                    wait,
                },
                Next::Unasked => Step::Unasked(end.row.thread),
                Next::Unsaved(why) => {
                    let what = "an answer could not be written, so the batch stops";
                    Step::Stop(UserError::new(ErrorKind::Store, what).because(why).next(
                        "check the disk and the permissions of the folder `.kd`; then run the same command again",
                    ))
                }
                Next::NobodyCan => {
                    let why = end.row.reason.unwrap_or_default();
                    let what = "no member can answer, so the batch stops";
                    Step::Stop(
                        UserError::new(ErrorKind::NoSeat, what).because(why).next(
                            "`kd doctor` says what is missing; then run the same command again",
                        ),
                    )
                }
            }
        })
    }

    fn spent(&self) -> kd_core::spending::Spent {
        self.kingdom.spent()
    }
}
