//! A visit to a forum on another machine: the agent runs here, its tools act there. Calls, notes and the record of the
//! visit are kept in the local store, under the name `@NAME`.

use super::visit::{failed, fence, stoppable};
use super::{Forum, RunError, Stop};
use kd_backends::remote::RemoteForum;
use kd_core::config::forum::Settings;
use kd_core::persona::Persona;
use kd_core::{Failure, FailureKind};
use kd_forum::account::Standing;
use kd_forum::company::CHARTER_MAX;
use kd_forum::rules::Rules;
use kd_forum::visit::{Elsewhere, End, Scene, Visit, Way};
use kd_forum::words::Run;
use kd_sql::forum::Caller;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Items of each kind in the news shown to an agent at the start.
const NEWS: i64 = 8;

/// Returns the name under which the local store keeps visits to a remote forum.
pub fn kept_as(remote: &str) -> String {
    format!("@{remote}")
}

impl Forum<'_> {
    /// Lets these agents visit the remote forum one after another; with `every`, repeatedly until the user stops it.
    ///
    /// # Errors
    /// The store fails, or an agent is already on a visit.
    pub fn visits(
        &mut self,
        names: &[String],
        every: Option<Duration>,
    ) -> Result<Vec<Run>, RunError> {
        let forum = self.plan.forum.clone();
        loop {
            let mut runs = Vec::with_capacity(names.len());
            let now = self.now();
            self.store.close_cut_visits(&forum, now)?;
            for name in names {
                if *self.stop.borrow() != Stop::No {
                    return Ok(runs);
                }
                let settings = self.settings()?;
                let now = self.now();
                let (run, held) = self.store.begin_visit(&forum, name, now)?;
                let ended = self.visit(run, name, &settings);
                self.store.end_visit(held)?;
                runs.push(ended?);
            }
            match every {
                Some(every) if self.wait(every) => {}
                _ => return Ok(runs),
            }
        }
    }

    pub(super) fn stay_elsewhere(
        &mut self,
        run: i64,
        persona: &Persona,
        settings: &Settings,
    ) -> Result<End, RunError> {
        let name = persona.name.as_str();
        let member = self.member(persona);
        let way = match self.way(persona, &member) {
            // The small model's prompt is built from posts, which it can read only in a local store.
            Way::Small => Way::Json,
            way => way,
        };
        let fence = fence();
        let server = self.server(run, name, settings, &fence, None);
        let backend = match self.seat(&member) {
            Ok(backend) => backend,
            Err(failure) => return Ok(failed(failure)),
        };
        let Some(remote) = self.plan.remote.as_mut() else {
            return Ok(failed(Failure::new(
                FailureKind::Missing,
                "no forum to visit",
            )));
        };
        let mut first = |tool: &str, arguments: Value| {
            carry(&self.runtime, &self.stop, remote, tool, &arguments)
        };
        let news = match first("news", json!({"limit": NEWS})) {
            Ok(news) => news,
            Err(failure) => return Ok(failed(failure)),
        };
        // Servers of older versions have no such tool.
        let owner = first("read_rules", json!({})).unwrap_or_default();
        let text = |key: &str| owner[key].as_str().unwrap_or_default();
        let known_as = Standing::read(&owner).name;
        let forum = self.plan.forum.clone();
        let scene = Scene {
            forum: remote.name().to_owned(),
            settings: settings.clone(),
            skip_probability: 0.0,
            news: Vec::new(),
            motions: Vec::new(),
            notes: self.store.notes(&forum, name)?,
            mentions: (Vec::new(), 0),
            charter: text("charter").chars().take(CHARTER_MAX).collect(),
            own: Rules::default(),
            fence,
            manner: persona.manner(),
            server,
            // Strangers write there, so data from the user's servers must not reach it.
            further: Vec::new(),
            servers: Vec::new(),
            elsewhere: Some(Elsewhere { known_as, news }),
        };
        let visit = Visit::new(member, way, &scene);
        let caller = Caller::new(name, &forum)?;
        let call = |forum: &mut Self, caller: &Caller, name: &str, arguments: &Value| {
            let now = forum.now();
            let (runtime, stop) = (&forum.runtime, &forum.stop);
            let remote = forum.plan.remote.as_mut();
            let send = |tool: &str, arguments: &Value| {
                let nowhere = || Failure::new(FailureKind::Invalid, "no forum to visit");
                carry(runtime, stop, remote.ok_or_else(nowhere)?, tool, arguments)
            };
            forum
                .store
                .relay(caller, settings, name, arguments, now, send)
        };
        let end = self.converse(run, visit, &backend, caller, call)?;
        self.by_record(run, way, end, settings)
    }
}

/// Calls a tool of the remote forum, unless the user stops it.
fn carry(
    runtime: &Runtime,
    stop: &watch::Receiver<Stop>,
    remote: &mut RemoteForum,
    tool: &str,
    arguments: &Value,
) -> Result<Value, Failure> {
    let stopped = || Failure::new(FailureKind::Cancelled, "stopped by a person");
    stoppable(runtime, stop, remote.call(tool, arguments)).unwrap_or_else(|| Err(stopped()))
}
