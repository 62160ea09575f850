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
use kd_backends::collect::{Collector, Told};
use kd_core::batch::{Estimate, LogEvent, LogLine};
use kd_core::config::LimitsConfig;
use kd_core::ledger::Ledger;
use kd_core::spending::{Spent, pico};
use kd_sql::batch::{Asked, Batch, BatchAccount, Batches};
use kd_store::lock::Lock;
use kd_store::user_dirs::project_key;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, watch};

/// A batch that can be run.
pub struct Batching<'k> {
    kingdom: &'k Kingdom,
    request: BatchRequest,
    questions: Vec<Asked>,
    key: String,
    /// The ids of threads do not matter here, only the batch to continue.
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

    /// Estimates the spending, without asking.
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

    /// Creates or continues the batch, and starts asking. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If another process runs it, no member can answer, nothing is left of a limit, or a file cannot be written.
    pub fn start(self) -> Result<Running, UserError> {
        let (kingdom, request) = (self.kingdom, self.request);
        let (questions, key, old) = (self.questions, self.key, self.old);
        if let Some(fleet) = self.fleet {
            return fleet.start(kingdom, &request, &questions, old);
        }
        let root = kingdom.env().make_layout()?.layout;
        let dirs = kingdom.env().user_dirs();
        let mut batches = Batches::open(&dirs, &project_key(root.root()))?;
        let env = kingdom.env();
        let results = request.output.as_ref().map(|path| Results::new(path, env));
        let results = results.transpose()?;
        let now = Timestamp::now();
        let goes_on = old.is_some();
        let id = recorded(&mut batches, old, &request, &key, questions, now)?;
        Results::tell_other(results.as_ref(), &id, env);
        let lock = locked(&batches, &id)?;
        let run = batches.begin(&id, request.attempts, now)?;
        let Some(batch) = batches.get(&id)? else {
            return Err(look::none(&id));
        };
        let batches = Arc::new(Mutex::new(batches));
        let account = BatchAccount::new(Arc::clone(&batches), &id, run, env.shared_ledger());
        let log = request
            .log
            .as_ref()
            .map(|path| RunLog::open(path, &id, env));
        let log = log.transpose()?.map(Arc::new);
        let (tell_told, told) = mpsc::unbounded_channel();
        let collector = request.provider_batch.then(|| {
            let store = Arc::new(Parcels::new(Arc::clone(&batches), &id));
            let name = format!("kd{}r{run}", id.trim_start_matches("batch-"));
            Collector::new(store, &name, telling(log.clone(), tell_told))
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
        if batch.counts.waiting > 0 {
            ask::check(kingdom, &request.how)?;
        }
        let pace = Pace {
            concurrency: request.concurrency.max(1),
            attempts: request.attempts.max(1),
            pause: request.pause,
            every: request.every,
        };
        let asking = ask::Asking::new(Arc::new(own), request.how, ask::Account::Own(account));
        let handler = logged(Arc::new(asking), log.as_ref(), pace.attempts);
        let (stop, stopped) = watch::channel(Stop::No);
        let (tell, progress) = watch::channel(Progress::of(&batch));
        let shared = Arc::clone(&batches);
        let (of, watched) = ((id.clone(), run), (stopped, tell));
        let driven = drive(shared, of, handler, pace, results, watched);
        let task = tokio::spawn(settled(driven, log, collector.clone(), batches));
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

/// Creates a batch, or records the questions of a batch that continues. Returns its id.
fn recorded(
    batches: &mut Batches,
    old: Option<Batch>,
    request: &BatchRequest,
    key: &str,
    questions: Vec<Asked>,
    now: Timestamp,
) -> Result<String, UserError> {
    if let Some(old) = old {
        batches.go_on(&old.about.id, &request.command, &questions)?;
        return Ok(old.about.id);
    }
    let id = key::new_id(key, now);
    let new = request.new_batch(&id, key);
    batches.create(&new, &questions, now)?;
    Ok(id)
}

/// Takes the lock of a batch.
fn locked(batches: &Batches, id: &str) -> Result<Lock, UserError> {
    let busy = || {
        let what = format!("{id} is run by another process");
        UserError::new(ErrorKind::Busy, what).next(format!("kd batch status {id}"))
    };
    batches.lock(id)?.ok_or_else(busy)
}

/// Lets a handler log its questions, if there is a log.
fn logged(handler: Arc<dyn Handler>, log: Option<&Arc<RunLog>>, attempts: u32) -> Arc<dyn Handler> {
    let Some(log) = log else { return handler };
    log.add(LogEvent::Begun, |_| {});
    Arc::new(Logged {
        inner: handler,
        log: Arc::clone(log),
        attempts,
    })
}

/// Waits for the end of a run, logs it, and settles with the providers.
async fn settled(
    driven: impl Future<Output = Result<Ended, UserError>>,
    log: Option<Arc<RunLog>>,
    collector: Option<Collector>,
    batches: Arc<Mutex<Batches>>,
) -> Result<Ended, UserError> {
    let ended = driven.await;
    if let Some(log) = log {
        log.add(LogEvent::Ended, |line| end(line, &ended));
    }
    if let Some(collector) = collector {
        collector.settle().await;
        close(&batches, &ended).await?;
    }
    ended
}

/// Returns a listener that logs events at providers, and passes them on.
fn telling(
    log: Option<Arc<RunLog>>,
    tell: mpsc::UnboundedSender<Told>,
) -> impl Fn(Told) + Send + Sync + 'static {
    move |told| {
        if let Some(log) = &log {
            log.add(LogEvent::Provider, |line| {
                line.reason = Some(told.to_string())
            });
        }
        // Without a listener nobody wants to know.
        let _ = tell.send(told);
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

/// Returns the remaining limits of a batch.
fn left(
    wanted: &Limits,
    settings: &LimitsConfig,
    spent: &Spent,
) -> Result<LimitsConfig, UserError> {
    let mut limits = *settings;
    wanted.lay_over(&mut limits);
    let over = |what: &str, flag: &str| {
        let error = UserError::new(
            ErrorKind::Spent,
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
