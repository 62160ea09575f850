//! A batch from its request to its end.

use super::drive::{Ended, Handler, Pace, Progress, Stop, Why, drive};
use super::fleet::{self, Prepared};
use super::key::Recipe;
use super::log::{Logged, RunLog};
use super::on::on;
use super::provider::{self, Parcels};
use super::request::BatchRequest;
use super::results::Results;
use super::started::Running;
use super::{ask, estimate, key, look};
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use crate::request::Limits;
use jiff::Timestamp;
use kd_backends::collect::Collector;
use kd_core::batch::{Estimate, LogEvent, LogLine};
use kd_core::config::LimitsConfig;
use kd_core::ledger::Ledger;
use kd_core::spending::{Spent, pico};
use kd_sql::batch::{Asked, Batch, BatchAccount, Batches};
use kd_store::user_dirs::project_key;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, watch};

/// A batch that can be run.
pub struct Batching<'k> {
    kingdom: &'k Kingdom,
    request: BatchRequest,
    questions: Vec<Asked>,
    key: String,
    /// The ids of threads do not matter here: only the batch to go on with.
    old: Option<Batch>,
    fleet: Option<Prepared>,
}

impl Kingdom {
    /// Prepares a batch of questions: masks their secrets, and looks for an earlier run of the same command. Nothing is
    /// written yet.
    ///
    /// # Errors
    /// If the database of batches, role texts or the memory of the project cannot be read.
    pub fn batch(
        &self,
        request: BatchRequest,
        questions: Vec<kd_core::batch::Question>,
    ) -> Result<Batching<'_>, UserError> {
        let masked = crate::secrets::of(self.config(), request.how.allows_secrets(), self.env());
        let recipe = Recipe::of(self, &request.how)?;
        let mut told = kd_core::secrets::Masked::default();
        let mut questions: Vec<Asked> = questions
            .into_iter()
            .map(|mut question| {
                told.add(masked.mask_in_place(&mut question.text));
                Asked {
                    key: recipe.question(&question.text),
                    id: question.id,
                    text: question.text,
                }
            })
            .collect();
        crate::secrets::tell(&told, self.env());
        let fleet = match request.fleet.clone() {
            Some(fleet) => Some(fleet::prepare(self, &request, fleet, &mut questions)?),
            None => None,
        };
        let (key, old) = match &fleet {
            Some(fleet) => (fleet.key.clone(), fleet.old.clone()),
            None => {
                let key = recipe.batch(&questions, request.output.as_deref());
                let old = match look::of(self.env())? {
                    Some(batches) => batches.of_key(&key)?,
                    None => None,
                };
                (key, old)
            }
        };
        // A finished batch is not asked again, unless the user wants that.
        let old = old.filter(|old| match request.fresh {
            true => old.about.fresh && !old.counts.is_over(),
            false => true,
        });
        Ok(Batching {
            kingdom: self,
            request,
            questions,
            key,
            old,
            fleet,
        })
    }
}

impl Batching<'_> {
    /// The batch that an earlier run of the same command has begun.
    pub fn old(&self) -> Option<&Batch> {
        self.old.as_ref()
    }

    /// Writes the file of results of a batch that is over; nothing is asked.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finished(&self) -> Result<Batch, UserError> {
        if let Some(fleet) = &self.fleet {
            return fleet.finished(self.kingdom, &self.request);
        }
        let batches = look::of(self.kingdom.env())?;
        let (Some(batches), Some(old)) = (batches, &self.old) else {
            return Err(look::none(&self.key));
        };
        if let Some(path) = &self.request.output {
            Results::new(path, self.kingdom.env())?.rewrite(&batches, &old.about.id)?;
        }
        Ok(old.clone())
    }

    /// Estimates what it will spend, without asking.
    ///
    /// # Errors
    /// If a member does not exist, or there is no plan within the limits.
    pub fn estimate(&self) -> Result<Estimate, UserError> {
        let (how, fresh) = (&self.request.how, self.request.fresh);
        let provider = self.request.provider_batch;
        if let Some(fleet) = &self.fleet {
            let known = fleet.known(&self.questions)?;
            let knows = |key: &str| Ok(known.contains(key));
            return estimate::of(self.kingdom, how, &self.questions, fresh, provider, knows);
        }
        let batches = look::of(self.kingdom.env())?;
        let knows = |key: &str| match &batches {
            Some(batches) => Ok(batches.knows(key)?),
            None => Ok(false),
        };
        estimate::of(self.kingdom, how, &self.questions, fresh, provider, knows)
    }

    /// Creates the batch or goes on with it, and starts asking. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If another process runs it, no member can answer, nothing is left of a limit, or a file cannot be written.
    pub fn start(self) -> Result<Running, UserError> {
        let Self {
            kingdom,
            request,
            questions,
            key,
            old,
            fleet,
        } = self;
        if let Some(fleet) = fleet {
            return fleet.start(kingdom, &request, &questions, old);
        }
        let root = kingdom.env().make_layout()?.layout;
        let dirs = kingdom.env().user_dirs();
        let mut batches = Batches::open(&dirs, &project_key(root.root()))?;
        let results = match &request.output {
            Some(path) => Some(Results::new(path, kingdom.env())?),
            None => None,
        };
        let now = Timestamp::now();
        let (id, goes_on) = match old {
            Some(old) => {
                batches.rekey(&old.about.id, &questions)?;
                (old.about.id, true)
            }
            None => {
                let id = key::new_id(&key, now);
                let new = request.new_batch(&id, &key);
                batches.create(&new, &questions, now)?;
                (id, false)
            }
        };
        drop(questions);
        let Some(lock) = batches.lock(&id)? else {
            return Err(
                UserError::new(ErrorKind::Busy, format!("{id} is run by another process"))
                    .next(format!("kd batch status {id}")),
            );
        };
        let run = batches.begin(&id, request.attempts, now)?;
        let Some(batch) = batches.get(&id)? else {
            return Err(look::none(&id));
        };
        let batches = Arc::new(Mutex::new(batches));
        let user = kingdom.env().shared_ledger();
        let account = BatchAccount::new(Arc::clone(&batches), &id, run, user);
        let log = match &request.log {
            Some(path) => Some(Arc::new(RunLog::open(path, &id, kingdom.env())?)),
            None => None,
        };
        let at_providers = log.clone();
        let (tell_told, told) = mpsc::unbounded_channel();
        let collector = request.provider_batch.then(|| {
            let store = Arc::new(Parcels::new(Arc::clone(&batches), &id));
            let name = format!("kd{}r{run}", id.trim_start_matches("batch-"));
            Collector::new(store, &name, move |told| {
                if let Some(log) = &at_providers {
                    log.add(LogEvent::Provider, |line| {
                        line.reason = Some(told.to_string())
                    });
                }
                // Without a listener nobody wants to know.
                let _ = tell_told.send(told);
            })
        });
        let ledger = Arc::new(account.clone()) as Arc<dyn Ledger>;
        let mut own = kingdom.in_batch(&id, ledger, collector.clone());
        let limits = left(&request.limits, &kingdom.config().limits, &batch.spent)?;
        own.configure(|config| {
            config.limits = limits;
            if collector.is_some() {
                provider::untimed(config);
            }
        });
        let own = Arc::new(own);
        if batch.counts.waiting > 0 {
            ask::check(kingdom, &request.how)?;
        }
        let mut handler: Arc<dyn Handler> = Arc::new(ask::Asking::new(
            Arc::clone(&own),
            request.how,
            ask::Account::Own(account),
        ));
        if let Some(log) = &log {
            log.add(LogEvent::Begun, |_| {});
            handler = Arc::new(Logged {
                inner: handler,
                log: Arc::clone(log),
                attempts: request.attempts.max(1),
            });
        }
        let (stop, stopped) = watch::channel(Stop::No);
        let (tell, progress) = watch::channel(Progress::of(&batch));
        let pace = Pace {
            concurrency: request.concurrency.max(1),
            attempts: request.attempts.max(1),
            pause: request.pause,
            every: request.every,
        };
        let driven = drive(
            Arc::clone(&batches),
            (id.clone(), run),
            handler,
            pace,
            results,
            (stopped, tell),
        );
        let last = collector.clone();
        let task = tokio::spawn(async move {
            let ended = driven.await;
            if let Some(log) = log {
                log.add(LogEvent::Ended, |line| end(line, &ended));
            }
            if let Some(collector) = last {
                collector.settle().await;
                close(&batches, &ended).await?;
            }
            ended
        });
        Ok(Running {
            id,
            goes_on,
            progress,
            told: Some(told),
            collector,
            stop,
            task,
            _lock: Some(lock),
        })
    }
}

/// Says how a run ended.
fn end(line: &mut LogLine, ended: &Result<Ended, UserError>) {
    match ended {
        Ok(ended) => {
            let word = match ended.why {
                Why::Over => "over",
                Why::Stopped => "stopped",
                Why::Limit => "limit",
            };
            line.reason = Some(word.to_owned());
            line.seconds = Some(ended.batch.time.as_millis() as f64 / 1e3);
            line.tokens = Some(ended.batch.spent.tokens);
            line.usd = Some(ended.batch.spent.usd());
        }
        Err(error) => line.reason = Some(error.to_string()),
    }
}

/// Removes the replies of a batch that is over.
async fn close(
    batches: &Arc<Mutex<Batches>>,
    ended: &Result<Ended, UserError>,
) -> Result<(), UserError> {
    let Some(over) = ended.as_ref().ok().filter(|e| e.batch.counts.is_over()) else {
        return Ok(());
    };
    let id = over.batch.about.id.clone();
    on(batches, move |batches| Ok(batches.clear_parcels(&id)?)).await
}

/// Returns what is left of the limits of a batch.
fn left(
    wanted: &Limits,
    settings: &LimitsConfig,
    spent: &Spent,
) -> Result<LimitsConfig, UserError> {
    let mut limits = *settings;
    wanted.lay_over(&mut limits);
    let over = |what: &str, flag: &str| {
        let error = UserError::new(
            ErrorKind::Budget,
            format!("the batch has spent its limit of {what}"),
        );
        Err(error.next(format!("run the same command with a higher `{flag}`")))
    };
    if let Some(calls) = &mut limits.calls {
        *calls = calls.saturating_sub(spent.calls);
        if *calls == 0 {
            return over("calls", "--max-calls");
        }
    }
    if let Some(tokens) = &mut limits.tokens {
        *tokens = tokens.saturating_sub(spent.tokens);
        if *tokens == 0 {
            return over("tokens", "--max-total-tokens");
        }
    }
    if let Some(usd) = &mut limits.usd {
        let pico_left = pico(*usd).saturating_sub(spent.pico_usd);
        *usd = pico_left as f64 / 1e12;
        if pico_left == 0 {
            return over("money", "--max-usd");
        }
    }
    Ok(limits)
}
