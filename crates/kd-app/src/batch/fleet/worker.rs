//! A worker: takes jobs of the batches that it can serve, one loop for each batch, and renews its lease.

use super::super::ask::{self, Account, Asking};
use super::super::drive::{Ended, Pace, Progress, Stop, Why, work};
use super::super::on::{blocking, on};
use super::super::slots::Slots;
use super::asks;
use super::gate::FleetGate;
use super::outside;
use super::queue::{FleetQueue, OWN_LIMIT};
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use kd_core::config::LimitsConfig;
use kd_core::ledger::Ledger;
use kd_sql::fleet::{Fleet, FleetAccount, FleetBatch, NewWorker, Store};
use kd_store::passing::Passing;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

/// Pauses between two looks for batches: the first, doubled up to the maximum.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_millis(500);
/// Pauses before a worker looks again at a batch that it could not serve: the first, doubled up to the maximum.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Maximum time between two signs of life.
const BEAT_MAX: Duration = Duration::from_secs(10);
/// The error if a batch, or the folder of its threads, is not opened because of a panic.
const OPENING: &str = "a batch could not be opened";

/// A worker to start.
#[derive(Clone, Debug)]
pub struct WorkerRequest {
    /// The database.
    pub store: Store,
    /// How many questions are asked at the same time.
    pub concurrency: usize,
    /// After how long without a sign of life its questions are given to others.
    pub lease: Duration,
    /// Its name, to which a number is added.
    pub name: String,
    /// The only batch that it serves; all without one.
    pub(super) only: Option<String>,
}

impl WorkerRequest {
    /// Returns a worker for all batches of a database.
    pub fn new(store: Store, concurrency: usize, lease: Duration, name: String) -> Self {
        Self {
            store,
            concurrency,
            lease,
            name,
            only: None,
        }
    }
}

/// The messages of a worker to its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It serves a batch.
    Serves(String),
    /// It does not, and why.
    Refuses(String, String),
    /// Nothing is left of a batch for it.
    Done(String),
    /// A limit of the batch is reached.
    Limited(String),
    /// Its lease had expired, and its questions were given to other workers.
    Lost(String),
}

/// A worker at work.
pub struct Working {
    /// Its unique name.
    pub name: String,
    /// What it tells.
    pub news: mpsc::UnboundedReceiver<News>,
    stop: watch::Sender<Stop>,
    task: JoinHandle<Result<(), UserError>>,
}

impl Working {
    /// Starts no more questions; those that are being asked get their answers.
    pub fn drain(&self) {
        let _ = self.stop.send(Stop::Drain);
    }

    /// Stops at once: the questions are given to others.
    pub fn stop(&self) {
        let _ = self.stop.send(Stop::Now);
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// If the database cannot be reached for long, or the only batch cannot be served.
    pub async fn ended(&mut self) -> Result<(), UserError> {
        match (&mut self.task).await {
            Ok(ended) => ended,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => {
                Err(UserError::new(ErrorKind::Engine, "the worker ended too early").because(error))
            }
        }
    }
}

impl Kingdom {
    /// Starts a worker. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub fn worker(&self, request: WorkerRequest) -> Result<Working, UserError> {
        let user = self.env().shared_ledger();
        let (fleet, account, name) = outside(|| connect(&request, user))??;
        let (stop, stopped) = watch::channel(Stop::No);
        let (tell, news) = mpsc::unbounded_channel();
        let worker = Worker {
            kingdom: Arc::new(self.without_substitutes()),
            gate: FleetGate::new(account.clone()),
            account,
            fleet: Arc::new(Mutex::new(fleet)),
            slots: Slots::new(request.concurrency),
            request,
            loops: JoinSet::new(),
            served: BTreeSet::new(),
            refused: BTreeMap::new(),
            stop: stopped,
            tell,
            beat: Instant::now(),
            passing: None,
        };
        let task = tokio::spawn(worker.run());
        Ok(Working {
            name,
            news,
            stop,
            task,
        })
    }
}

fn connect(
    request: &WorkerRequest,
    user: Option<Arc<dyn Ledger>>,
) -> Result<(Fleet, FleetAccount, String), UserError> {
    let mut fleet = Fleet::open(&request.store, request.lease)?;
    let name = fleet.register(&NewWorker {
        name: request.name.clone(),
        kd: env!("CARGO_PKG_VERSION").to_owned(),
        lease: request.lease,
    })?;
    let account = FleetAccount::open(&fleet, request.lease, user)?;
    Ok((fleet, account, name))
}

struct Worker {
    kingdom: Arc<Kingdom>,
    gate: FleetGate,
    account: FleetAccount,
    fleet: Arc<Mutex<Fleet>>,
    slots: Slots,
    request: WorkerRequest,
    loops: JoinSet<(String, Result<Ended, UserError>)>,
    served: BTreeSet<String>,
    /// Batches that it could not serve, for causes that may pass.
    refused: BTreeMap<String, Refused>,
    stop: watch::Receiver<Stop>,
    tell: mpsc::UnboundedSender<News>,
    beat: Instant,
    /// The folder of its threads, once it has served a batch. The process that runs a batch has no such folder,
    /// because it keeps the threads.
    passing: Option<Arc<Passing>>,
}

/// A batch that could not be served.
struct Refused {
    reason: String,
    /// When it is looked at again; `None` while it is served again.
    until: Option<Instant>,
    pause: Duration,
}

impl Worker {
    async fn run(mut self) -> Result<(), UserError> {
        let done = self.work().await;
        self.loops.shutdown().await;
        // Without the database, its lease ends by itself; the worker has just waited a minute for it.
        let left = match &done {
            Err(error) if error.kind == ErrorKind::Store => Ok(()),
            _ => on(&self.fleet, |fleet| Ok(fleet.leave()?)).await,
        };
        for id in &self.served {
            self.clear(id).await;
        }
        done.and(left)
    }

    async fn work(&mut self) -> Result<(), UserError> {
        let every = (self.request.lease / 4).min(BEAT_MAX);
        let mut look = LOOK;
        let mut has_host = true;
        loop {
            let stop = *self.stop.borrow_and_update();
            if self.beat.elapsed() >= every {
                self.beat(stop != Stop::No).await?;
            }
            if stop == Stop::No {
                look = match self.look().await? {
                    true => LOOK,
                    false => (look * 2).min(LOOK_MAX),
                };
            } else if self.loops.is_empty() {
                return Ok(());
            }
            tokio::select! {
                Some(ended) = self.loops.join_next(), if !self.loops.is_empty() => {
                    if self.ended(ended).await? {
                        return Ok(());
                    }
                    look = LOOK;
                }
                () = tokio::time::sleep(look.min(every)) => {}
                changed = self.stop.changed(), if has_host => if changed.is_err() {
                    has_host = false;
                },
            }
        }
    }

    async fn beat(&mut self, draining: bool) -> Result<(), UserError> {
        self.beat = Instant::now();
        let account = self.account.clone();
        let renamed = on(&self.fleet, move |fleet| {
            if draining {
                fleet.drain();
            }
            let before = fleet.worker();
            fleet.beat()?;
            account.follow(fleet);
            Ok((fleet.worker() != before).then(|| fleet.worker()))
        })
        .await?;
        if let Some(number) = renamed {
            let name = format!("{}-{number}", self.request.name);
            let _ = self.tell.send(News::Lost(name));
        }
        if let Some(passing) = self.passing.clone() {
            // If it cannot be created, no answer can be written: its question is given back.
            let _ = blocking(OPENING, move || Ok(passing.hold()?)).await;
        }
        Ok(())
    }

    /// Looks for batches with jobs, and starts loops for batches that are not served yet. Returns whether there were
    /// any.
    async fn look(&mut self) -> Result<bool, UserError> {
        self.look_again().await?;
        let only = self.request.only.clone();
        let ready = match only {
            Some(only) if self.served.contains(&only) => return Ok(false),
            Some(only) => vec![only],
            None => on(&self.fleet, |fleet| Ok(fleet.ready()?)).await?,
        };
        let mut found = false;
        for id in ready {
            if self.served.contains(&id) {
                continue;
            }
            found = true;
            match self.serve(&id).await {
                Ok(()) => {
                    self.served.insert(id.clone());
                    let _ = self.tell.send(News::Serves(id));
                }
                Err(error) if self.request.only.is_some() => return Err(error),
                Err(error) => self.refuse(id, &error).await?,
            }
        }
        Ok(found)
    }

    async fn refuse(&mut self, id: String, error: &UserError) -> Result<(), UserError> {
        let mut reason = error.what.clone();
        if let Some(why) = &error.why {
            reason = format!("{reason}: {why}");
        }
        // The configuration of a worker stays as it is; a key, a disk or a service may be back.
        let may_pass = !matches!(error.kind, ErrorKind::Config | ErrorKind::Usage);
        self.refused_for(id.clone(), &reason, may_pass);
        on(&self.fleet, move |fleet| Ok(fleet.refuse(&id, &reason)?)).await
    }

    /// Tells a refusal once, and remembers to look at the batch again if its cause may pass.
    fn refused_for(&mut self, id: String, reason: &str, may_pass: bool) {
        let before = self.refused.remove(&id);
        if before.as_ref().is_none_or(|before| before.reason != reason) {
            let _ = self.tell.send(News::Refuses(id.clone(), reason.to_owned()));
        }
        if may_pass {
            let pause = before.map_or(RETRY, |before| (before.pause * 2).min(RETRY_MAX));
            let refused = Refused {
                reason: reason.to_owned(),
                until: Some(Instant::now() + pause),
                pause,
            };
            self.refused.insert(id, refused);
        }
    }

    /// Withdraws refusals whose pause is over.
    async fn look_again(&mut self) -> Result<(), UserError> {
        let now = Instant::now();
        for (id, refused) in &mut self.refused {
            if refused.until.is_none_or(|until| until > now) {
                continue;
            }
            refused.until = None;
            let id = id.clone();
            on(&self.fleet, move |fleet| Ok(fleet.withdraw(&id)?)).await?;
        }
        Ok(())
    }

    /// Starts the loop of a batch.
    async fn serve(&mut self, id: &str) -> Result<(), UserError> {
        let of = id.to_owned();
        let batch = on(&self.fleet, move |fleet| Ok(fleet.get(&of)?)).await?;
        let Some(batch) = batch else {
            return Err(super::super::look::none(id));
        };
        let account = self.account.of(id);
        let passing = self.passing().await?;
        let own = self.kingdom.in_fleet(
            id,
            Arc::new(account.clone()) as Arc<dyn Ledger>,
            Arc::new(self.gate.clone()),
            passing.map(|passing| passing.name().into()),
        );
        let asks = batch.asks.clone();
        let own_limits = self.kingdom.config().limits;
        let limits = limits(own_limits, &batch);
        let (own, how, layout) = blocking(OPENING, move || {
            let mut own = own;
            let how = asks::accept(&mut own, &asks)?;
            own.configure(|config| config.limits = limits);
            let layout = own.env().make_layout()?.layout;
            ask::check(&own, &how)?;
            Ok((own, how, layout))
        })
        .await?;
        let own = Arc::new(own);
        let queue = FleetQueue {
            fleet: Arc::clone(&self.fleet),
            batch: id.to_owned(),
            account: account.clone(),
            alone: self.request.only.is_some(),
            layout,
            kingdom: Arc::clone(&own),
            own: own_limits,
            look: Duration::ZERO,
            time: Duration::ZERO,
        };
        let pace = Pace {
            concurrency: self.request.concurrency,
            attempts: batch.attempts,
            pause: batch.pause,
            every: None,
        };
        let handler = Asking::new(own, how, Account::Fleet(account));
        let (progress, _) = watch::channel(Progress::of(&batch.batch));
        let (id, slots, stop) = (id.to_owned(), self.slots.clone(), self.stop.clone());
        self.loops.spawn(async move {
            let ended = work(queue, Arc::new(handler), pace, &slots, (stop, progress)).await;
            (id, ended)
        });
        Ok(())
    }

    /// Returns the folder of its threads, creating it if it is missing.
    async fn passing(&mut self) -> Result<Option<Arc<Passing>>, UserError> {
        if self.passing.is_none() && self.request.only.is_none() {
            let kingdom = Arc::clone(&self.kingdom);
            let make = move || Ok(Passing::new(&kingdom.env().make_layout()?.layout)?);
            self.passing = Some(Arc::new(blocking(OPENING, make).await?));
        }
        Ok(self.passing.clone())
    }

    /// Removes the threads of interrupted questions, for a batch that no loop serves any longer. What cannot be removed
    /// now goes with the folder.
    async fn clear(&self, id: &str) {
        if let Some(passing) = self.passing.clone() {
            let id = id.to_owned();
            let _ = blocking(OPENING, move || Ok(passing.remove(&id)?)).await;
        }
    }

    /// Hears of the end of a loop; returns whether the worker has nothing more to do.
    async fn ended(
        &mut self,
        ended: Result<(String, Result<Ended, UserError>), tokio::task::JoinError>,
    ) -> Result<bool, UserError> {
        let (id, ended) = match ended {
            Ok(ended) => ended,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => return Ok(false),
        };
        if self.request.only.is_some() {
            return ended.map(|_| true);
        }
        self.served.remove(&id);
        self.clear(&id).await;
        if ended.as_ref().map_or(true, |ended| ended.why != Why::Over) {
            // The jobs that it still holds are returned.
            let of = id.clone();
            on(&self.fleet, move |fleet| Ok(fleet.release(&of)?)).await?;
        }
        match ended {
            Ok(ended) if ended.why == Why::Limit => self.limited(id).await?,
            Ok(ended) => {
                self.refused.remove(&id);
                if ended.why == Why::Over {
                    let _ = self.tell.send(News::Done(id));
                }
            }
            Err(error) => self.refuse(id, &error).await?,
        }
        Ok(false)
    }

    /// Handles a loop that ended because of a limit of the batch or of this worker. A daily limit is renewed at
    /// midnight; the other limits of a worker apply as long as it runs.
    async fn limited(&mut self, id: String) -> Result<(), UserError> {
        let of = id.clone();
        let batch = on(&self.fleet, move |fleet| Ok(fleet.get(&of)?)).await?;
        if batch.is_none_or(|batch| batch.limited) {
            let _ = self.tell.send(News::Limited(id));
            return Ok(());
        }
        let LimitsConfig {
            calls,
            tokens,
            usd,
            usd_per_day,
        } = self.kingdom.config().limits;
        let for_day = calls.is_none() && tokens.is_none() && usd.is_none();
        self.refused_for(id, OWN_LIMIT, for_day && usd_per_day.is_some());
        Ok(())
    }
}

/// Returns the limits of this process: its own limits, or the remaining limits of the batch if they are lower.
fn limits(own: LimitsConfig, batch: &FleetBatch) -> LimitsConfig {
    let less = |own: Option<u64>, left: Option<u64>| match (own, left) {
        (Some(own), Some(left)) => Some(own.min(left)),
        (own, left) => own.or(left),
    };
    let usd = batch.left.pico_usd.map(|pico| pico as f64 / 1e12);
    LimitsConfig {
        calls: less(own.calls, batch.left.calls),
        tokens: less(own.tokens, batch.left.tokens),
        usd: match (own.usd, usd) {
            (Some(own), Some(left)) => Some(own.min(left)),
            (own, left) => own.or(left),
        },
        ..own
    }
}
