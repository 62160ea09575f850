//! The loop of a batch: takes jobs that are due, hands them to a [`Handler`], writes results, and puts back what may
//! succeed later. At most `concurrency` questions are in memory.

use super::on::on;
use super::queue::{Back, Claimed, Done, Idle, Own, Queue};
use super::results::Results;
use super::slots::{Share, Slot, Slots};
use crate::error::UserError;
use kd_backends::collect::Waiting;
use kd_core::batch::{Row, Status};
use kd_core::spending::Spent;
use kd_sql::batch::{Batch, Batches, Counts, Job};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Maximum pause before a failed question is asked again.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// How often the database is asked whether another process has cancelled the batch.
const LOOK: Duration = Duration::from_secs(1);
/// Results that are written together: those that are ready at the same time.
const TOGETHER: usize = 64;

/// Does a job.
pub trait Handler: Send + Sync + 'static {
    /// Does it.
    fn handle(&self, job: Job) -> Pin<Box<dyn Future<Output = Step> + Send>>;

    /// Returns the spending of this run so far.
    fn spent(&self) -> Spent {
        Spent::default()
    }
}

/// The result of a job.
#[derive(Debug)]
pub enum Step {
    /// Its result. `keep`: the answer may be used for the same question later.
    Done {
        /// The line.
        row: Box<Row>,
        /// Whether it is kept.
        keep: bool,
    },
    /// A failure that may pass. The line is written if it was the last attempt.
    Again {
        /// The line.
        row: Box<Row>,
        /// How long a service asked to wait.
        wait: Option<Duration>,
    },
    /// It was interrupted: the attempt does not count. With its thread.
    Unasked(Option<String>),
    /// A limit of the batch or of the day refused a request. With its thread.
    Limit(Option<String>),
    /// Nothing can be asked.
    Stop(UserError),
}

/// How fast a batch is asked.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Questions at the same time.
    pub concurrency: usize,
    /// Attempts of a question.
    pub attempts: u32,
    /// The pause before the second attempt; doubled for each later one.
    pub pause: Duration,
    /// Time from the start of one question to the next.
    pub every: Option<Duration>,
}

/// Whether a batch is to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// It goes on.
    #[default]
    No,
    /// No more questions are started.
    Drain,
    /// Those that are being asked are interrupted too.
    Now,
}

/// The state of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Its questions by state.
    pub counts: Counts,
    /// Number of questions that this run has finished.
    pub ended: u64,
    /// The amount spent, including earlier runs.
    pub spent: Spent,
    /// Number of failed questions that will be asked again.
    pub again: u64,
    /// Requests at providers, with provider batches. The loop does not set this.
    pub at_providers: Option<Waiting>,
    before: Spent,
}

impl Progress {
    /// Returns the state of a batch before a run.
    pub fn of(batch: &Batch) -> Self {
        Self {
            counts: batch.counts,
            spent: batch.spent,
            before: batch.spent,
            ..Self::default()
        }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nothing is left to ask.
    Over,
    /// The user stopped it.
    Stopped,
    /// A limit refused a request.
    Limit,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Why.
    pub why: Why,
    /// The state of the batch.
    pub batch: Batch,
    /// Number of questions that this run has finished.
    pub ended: u64,
}

/// The state of the loop.
struct Loop {
    queue: Arc<Mutex<dyn Queue>>,
    handler: Arc<dyn Handler>,
    pace: Pace,
    slots: Share,
    progress: watch::Sender<Progress>,
    tasks: JoinSet<(Job, Step)>,
    next_start: Option<Instant>,
    /// The result of the last claim, if it was made in the same call that finished other jobs: when to look again.
    looked: Option<Option<Duration>>,
    /// Until when the time of this run is in the database.
    counted: Instant,
    /// Why no more questions are started.
    ending: Option<Result<Why, UserError>>,
}

/// Runs a batch to its end.
///
/// # Errors
/// If nothing can be asked, or a result cannot be written. Results so far are kept.
pub async fn drive(
    batches: Arc<Mutex<Batches>>,
    of: (String, i64),
    handler: Arc<dyn Handler>,
    pace: Pace,
    results: Option<Results>,
    talk: (watch::Receiver<Stop>, watch::Sender<Progress>),
) -> Result<Ended, UserError> {
    let (batch, run) = of;
    let queue = Own {
        batches,
        batch,
        run,
        results,
    };
    let slots = Slots::new(pace.concurrency);
    work(queue, handler, pace, &slots, talk).await
}

/// Works on the jobs of a queue until nothing is left for this process.
///
/// # Errors
/// Those of [`drive`].
pub(super) async fn work(
    queue: impl Queue,
    handler: Arc<dyn Handler>,
    pace: Pace,
    slots: &Slots,
    (mut stop, progress): (watch::Receiver<Stop>, watch::Sender<Progress>),
) -> Result<Ended, UserError> {
    let mut run = Loop {
        queue: Arc::new(Mutex::new(queue)),
        handler,
        pace,
        slots: slots.share(),
        progress,
        tasks: JoinSet::new(),
        next_start: None,
        looked: None,
        counted: Instant::now(),
        ending: None,
    };
    run.rewrite().await?;
    let done = run.work(&mut stop).await;
    let counted = run.count_time().await;
    // Also after an error: what is known is in the file.
    let written = run.rewrite().await;
    let why = done.and_then(|why| counted.and(written).map(|()| why))?;
    let batch = on(&run.queue, |queue| queue.batch()).await?;
    Ok(Ended {
        why: match why {
            // The questions that were being asked were the last ones.
            Why::Stopped if batch.counts.is_over() => Why::Over,
            why => why,
        },
        batch,
        ended: run.progress.borrow().ended,
    })
}

impl Loop {
    async fn work(&mut self, stop: &mut watch::Receiver<Stop>) -> Result<Why, UserError> {
        let mut has_host = true;
        loop {
            if *stop.borrow_and_update() != Stop::No && self.ending.is_none() {
                self.ending = Some(Ok(Why::Stopped));
            }
            if *stop.borrow() == Stop::Now {
                self.interrupt().await?;
            }
            if self.counted.elapsed() >= LOOK {
                self.count_time().await?;
            }
            let wake = match self.ending.is_some() {
                true => None,
                false => self.start().await?,
            };
            if self.tasks.is_empty() {
                if let Some(ending) = self.ending.take() {
                    return ending;
                }
                if wake.is_none() {
                    return Ok(Why::Over);
                }
            }
            let pause = wake.unwrap_or(LOOK).min(LOOK);
            tokio::select! {
                done = self.tasks.join_next(), if !self.tasks.is_empty() => self.heard(done).await?,
                () = self.slots.freed(), if self.ending.is_none() => {}
                () = tokio::time::sleep(pause) => {}
                changed = stop.changed(), if has_host => if changed.is_err() {
                    // Without a host it drains; a closed channel is not polled again, because it is always ready.
                    has_host = false;
                    self.ending.get_or_insert(Ok(Why::Stopped));
                },
            }
        }
    }

    /// Starts jobs that are due. Returns when to look again; `None` if no job waits.
    async fn start(&mut self) -> Result<Option<Duration>, UserError> {
        if let Some(wake) = self.looked.take() {
            return Ok(wake);
        }
        if let Some(wait) = self.pause() {
            return Ok(Some(wait));
        }
        let slots = self.free_slots();
        if slots.is_empty() {
            return Ok(Some(LOOK));
        }
        let most = slots.len();
        let claimed = on(&self.queue, move |queue| queue.claim(most)).await?;
        Ok(self.begin(claimed, slots))
    }

    /// Returns the time until the rate allows the next start, if it does not now.
    fn pause(&self) -> Option<Duration> {
        self.pace.every?;
        let wait = self.next_start?.checked_duration_since(Instant::now())?;
        (!wait.is_zero()).then_some(wait)
    }

    /// Takes the slots for the questions that may be started now.
    fn free_slots(&self) -> Vec<Slot> {
        match self.pace.every {
            _ if self.ending.is_some() || self.pause().is_some() => {
                self.slots.wants(false);
                Vec::new()
            }
            Some(_) => self.slots.take(1),
            None => self.slots.take(usize::MAX),
        }
    }

    /// Starts jobs that were claimed. Returns when to look again; `None` if no job waits.
    fn begin(&mut self, claimed: Claimed, mut slots: Vec<Slot>) -> Option<Duration> {
        let jobs = claimed.jobs;
        // Slots that it does not need are released before other loops are woken.
        let more = jobs.len() >= slots.len();
        slots.truncate(jobs.len());
        self.slots.wants(more);
        if jobs.is_empty() {
            return match claimed.idle {
                Idle::Later(wait) => Some(wait),
                Idle::Over => None,
                Idle::Limited => {
                    self.ending.get_or_insert(Ok(Why::Limit));
                    None
                }
            };
        }
        self.next_start = self.pace.every.map(|every| Instant::now() + every);
        let count = jobs.len() as u64;
        self.progress.send_modify(|progress| {
            progress.counts.running += count;
            progress.counts.waiting = progress.counts.waiting.saturating_sub(count);
        });
        for job in jobs {
            let work = self.handler.handle(job.clone());
            let slot = slots.pop();
            self.tasks.spawn(async move {
                let step = work.await;
                drop(slot);
                (job, step)
            });
        }
        Some(self.pace.every.unwrap_or(LOOK))
    }

    /// Writes the results of this job, and of other jobs that are ready.
    async fn heard(
        &mut self,
        first: Option<Result<(Job, Step), tokio::task::JoinError>>,
    ) -> Result<(), UserError> {
        let mut steps = Vec::new();
        let mut next = first;
        while let Some(done) = next {
            match done {
                Ok(step) => steps.push(step),
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => {}
            }
            next = match steps.len() < TOGETHER {
                true => self.tasks.try_join_next(),
                false => None,
            };
        }
        let mut finished = Vec::new();
        let mut back = Vec::new();
        let mut limited = false;
        let unasked = |job, thread| Back {
            job,
            pause: Duration::ZERO,
            reason: None,
            asked: false,
            thread,
        };
        for (job, step) in steps {
            match step {
                Step::Done { row, keep } => finished.push(Done { job, row, keep }),
                Step::Again { mut row, .. } if job.attempt >= self.pace.attempts => {
                    row.status = Status::Failed;
                    let keep = false;
                    finished.push(Done { job, row, keep });
                }
                Step::Again { row, wait } => {
                    let pause = pause(self.pace.pause, job.attempt).max(wait.unwrap_or_default());
                    back.push(Back {
                        job,
                        pause,
                        reason: row.reason,
                        asked: true,
                        thread: row.thread,
                    });
                    self.progress.send_modify(|progress| progress.again += 1);
                }
                Step::Unasked(thread) => back.push(unasked(job, thread)),
                Step::Limit(thread) => {
                    back.push(unasked(job, thread));
                    limited = true;
                    self.ending.get_or_insert(Ok(Why::Limit));
                }
                Step::Stop(error) => {
                    back.push(unasked(job, None));
                    if !matches!(self.ending, Some(Err(_))) {
                        self.ending = Some(Err(error));
                    }
                }
            }
        }
        self.write(finished, back, limited).await
    }

    async fn write(
        &mut self,
        finished: Vec<Done>,
        back: Vec<Back>,
        limited: bool,
    ) -> Result<(), UserError> {
        let ended = finished.len() as u64;
        let returned = back.len() as u64;
        let slots = self.free_slots();
        let most = slots.len();
        let (rows, claimed) = on(&self.queue, move |queue| {
            let done = match most {
                0 => (queue.write(finished, back)?, None),
                most => {
                    let (rows, claimed) = queue.turn(finished, back, most)?;
                    (rows, Some(claimed))
                }
            };
            if limited {
                queue.limited()?;
            }
            Ok(done)
        })
        .await?;
        let spent = self.handler.spent();
        self.progress.send_modify(|progress| {
            let counts = &mut progress.counts;
            counts.running = counts.running.saturating_sub(ended + returned);
            counts.waiting += returned;
            progress.ended += ended;
            progress.spent = progress.before + spent;
            for row in &rows {
                match row.status {
                    Status::Answered => counts.answered += 1,
                    Status::Failed => counts.failed += 1,
                }
                if row.cached {
                    counts.cached += 1;
                    counts.waiting = counts.waiting.saturating_sub(1);
                }
            }
        });
        if let Some(claimed) = claimed {
            self.looked = Some(self.begin(claimed, slots));
        }
        Ok(())
    }

    /// Interrupts everything that is being asked, and puts it back.
    async fn interrupt(&mut self) -> Result<(), UserError> {
        self.tasks.shutdown().await;
        on(&self.queue, |queue| queue.release()).await
    }

    /// Records how long this run has been asking: so that others can see it, and a kill loses at most a second.
    async fn count_time(&mut self) -> Result<(), UserError> {
        let time = self.counted.elapsed();
        on(&self.queue, move |queue| queue.add_time(time)).await?;
        self.counted += time;
        Ok(())
    }

    /// Replaces the file of results by what the database has.
    async fn rewrite(&self) -> Result<(), UserError> {
        on(&self.queue, |queue| queue.rewrite()).await
    }
}

/// Returns the pause after this many attempts.
fn pause(first: Duration, attempt: u32) -> Duration {
    let doubled = first.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    doubled.min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_a_maximum() {
        let pauses: Vec<u64> = [1, 2, 3, 20]
            .map(|attempt| pause(Duration::from_secs(5), attempt).as_secs())
            .to_vec();
        assert_eq!(pauses, [5, 10, 20, 300]);
    }
}
