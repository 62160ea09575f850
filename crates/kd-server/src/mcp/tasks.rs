//! Long deliberations as tasks (the extension `io.modelcontextprotocol/tasks`): a client that knows it gets a handle at
//! once, asks for the state and the result, and may cancel. A task survives the connection, as its thread does.

use super::app::Presenter;
use crate::answer::Told;
use crate::consult::Running;
use crate::identity::{Identity, generate};
use rmcp::ErrorData;
use rmcp::model::{
    CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum tasks that are remembered; the oldest that has ended is forgotten first.
const TASKS_MAX: usize = 64;
/// How long the result of an ended task is kept.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// How often a client should ask.
const POLL: Duration = Duration::from_secs(2);

/// The caller that a task belongs to: the digest of its token; `None` over stdio.
pub(super) type Owner = Option<[u8; 32]>;

/// The tasks of one server.
#[derive(Clone, Default)]
pub(super) struct Tasks(Arc<Mutex<BTreeMap<String, Entry>>>);

struct Entry {
    owner: Owner,
    /// The order in which they began.
    number: usize,
    created: String,
    updated: String,
    /// The last line of progress.
    line: Option<String>,
    /// The result, once it has ended.
    ended: Option<Ended>,
    stop: CancellationToken,
}

#[derive(Clone)]
enum Ended {
    Done(JsonObject),
    Failed(String),
    Cancelled,
}

/// Returns the owner of a request's task.
pub(super) fn owner(identity: Option<&Identity>) -> Owner {
    identity.map(|identity| *identity.print())
}

impl Tasks {
    /// Runs a consultation as a task.
    ///
    /// # Errors
    /// If too many are at work, or the system has no randomness.
    pub(super) fn begin(
        &self,
        owner: Owner,
        mut running: Running,
        presenter: Presenter,
    ) -> Result<CreateTaskResult, ErrorData> {
        let id = generate().map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
        let stop = CancellationToken::new();
        let now = now();
        let mut tasks = self.lock();
        if tasks.len() >= TASKS_MAX {
            let ended = tasks.iter().filter(|(_, task)| task.ended.is_some());
            let oldest = ended.min_by_key(|(_, task)| task.number);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
                let why = "too many deliberations are at work: cancel one, or wait";
                return Err(ErrorData::internal_error(why, None));
            };
            tasks.remove(&oldest);
        }
        let number = tasks.values().map(|task| task.number + 1).max();
        let entry = Entry {
            owner,
            number: number.unwrap_or_default(),
            created: now.clone(),
            updated: now,
            line: None,
            ended: None,
            stop: stop.clone(),
        };
        let task = entry.task(&id);
        tasks.insert(id.clone(), entry);
        drop(tasks);
        let all = self.clone();
        tokio::spawn(async move {
            let mut cancelled = false;
            loop {
                let told = tokio::select! {
                    told = running.told.recv() => told,
                    () = stop.cancelled(), if !cancelled => {
                        cancelled = true;
                        running.stop();
                        continue;
                    }
                };
                match told {
                    None => break,
                    Some(Told::Line(line)) => all.update(&id, |task| task.line = Some(line)),
                    Some(Told::Text(_) | Told::Void) => {}
                }
            }
            let ended = match running.end().await {
                _ if cancelled => Ended::Cancelled,
                Ok(answer) => match serde_json::to_value(presenter.present(&answer).await) {
                    Ok(Value::Object(result)) => Ended::Done(result),
                    _ => Ended::Failed("the answer cannot be written".into()),
                },
                Err(why) => Ended::Failed(why.to_string()),
            };
            all.update(&id, |task| task.ended = Some(ended));
            tokio::time::sleep(KEPT).await;
            all.lock().remove(&id);
        });
        Ok(CreateTaskResult::new(task))
    }

    /// Returns the state of a task, and its result once it has ended.
    ///
    /// # Errors
    /// If the caller has no such task.
    pub(super) fn get(&self, owner: Owner, id: &str) -> Result<GetTaskResult, ErrorData> {
        let tasks = self.lock();
        let entry = tasks.get(id).filter(|task| task.owner == owner);
        let entry = entry.ok_or_else(unknown)?;
        let payload = match entry.ended.clone() {
            None => TaskPayload::Working,
            Some(Ended::Done(result)) => TaskPayload::Completed { result },
            Some(Ended::Cancelled) => TaskPayload::Cancelled,
            Some(Ended::Failed(why)) => {
                let error = json!({"code": -32603, "message": why});
                TaskPayload::Failed {
                    error: super::object(error),
                }
            }
        };
        Ok(GetTaskResult::new(DetailedTask::new(
            entry.task(id),
            payload,
        )))
    }

    /// Interrupts the council of a task; one that has ended stays as it is.
    ///
    /// # Errors
    /// If the caller has no such task.
    pub(super) fn cancel(&self, owner: Owner, id: &str) -> Result<(), ErrorData> {
        let tasks = self.lock();
        let entry = tasks.get(id).filter(|task| task.owner == owner);
        entry.ok_or_else(unknown)?.stop.cancel();
        Ok(())
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.lock().get_mut(id) {
            change(entry);
            entry.updated = now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn task(&self, id: &str) -> Task {
        let task = Task::new(id, TaskStatus::Working, &self.created, &self.updated)
            .with_ttl_ms(millis(KEPT))
            .with_poll_interval_ms(millis(POLL));
        match &self.line {
            Some(line) => task.with_status_message(line),
            None => task,
        }
    }
}

fn unknown() -> ErrorData {
    ErrorData::invalid_params(
        "there is no such task: it is unknown, or its time is over",
        None,
    )
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn now() -> String {
    kd_core::Timestamp::now().to_string()
}
