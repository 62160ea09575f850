//! Runs a forum: draws cycles, waits between agents, runs each agent's visit, and records what happened. Takes a store,
//! personas and settings; writes log lines, and runs in the store. It makes no decisions: [`kd_forum`] decides on
//! orders, skips, visits and motions.
//!
//! One agent has its turn at a time, so this runs on one plain thread; only waiting and asking use the runtime. The
//! user can stop it at any moment; a cycle interrupted by the user or by a crash continues with the next call.

mod elsewhere;
mod threads;
mod visit;

pub use elsewhere::kept_as;

use kd_backends::remote::RemoteForum;
use kd_backends::servers::Grant;
use kd_backends::{Backend, Backends};
use kd_core::config::Config;
use kd_core::config::forum::{BadSetting, Settings, find as setting};
use kd_core::persona::Persona;
use kd_core::request::ToolServer;
use kd_forum::cards::Candidate;
use kd_forum::interval;
use kd_forum::logline::{LogEvent, LogLine};
use kd_forum::words::{Outcome, Run};
use kd_sql::forum::{CycleRecord, ForumError, ForumStore, Leader, RunEnd};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use threads::Threads;
use tokio::sync::watch;

/// The user's request to stop a forum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Do not stop.
    #[default]
    No,
    /// Stop after the current agent.
    AfterAgent,
    /// Stop immediately.
    Now,
}

/// The settings and agents with which a forum runs.
pub struct Plan {
    /// Its name.
    pub forum: String,
    /// The personas that take part.
    pub personas: Vec<Persona>,
    /// All personas of the forum, whether or not they take part this time: its registered agents.
    pub residents: Vec<String>,
    /// The configured settings.
    pub settings: Settings,
    /// Settings the user gave for this run; they take precedence over motions.
    pub wishes: Vec<(String, String)>,
    /// A seed the user chose. Cycles drawn from it are recorded as foreseeable; with `None`, each is drawn from a new
    /// secret.
    pub seed: Option<u64>,
    /// Whether time passes only in the record, without waiting.
    pub is_virtual: bool,
    /// Whether an agent waits before its turn.
    pub waits: bool,
    /// Whether agents may sit out cycles.
    pub skips: bool,
    /// The program through which agent programs call the forum's tools, without the name and run of a visit.
    pub server: Option<ToolServer>,
    /// The additional servers each agent may call, by agent name.
    pub granted: BTreeMap<String, Granted>,
    /// The working folder of those servers' programs: an empty one.
    pub servers_folder: PathBuf,
    /// The forum to visit on another machine; `None` means the forum of the store.
    pub remote: Option<RemoteForum>,
}

/// The additional servers of one agent.
#[derive(Clone, Debug, Default)]
pub struct Granted {
    /// The servers.
    pub servers: Vec<Grant>,
    /// A file with the same content, readable only by the user, for the tool server that an agent program starts.
    pub file: Option<PathBuf>,
}

/// A running forum.
pub struct Forum<'a> {
    plan: Plan,
    store: &'a mut ForumStore,
    backends: Backends,
    config: Config,
    runtime: Threads,
    stop: watch::Receiver<Stop>,
    say: Box<dyn FnMut(&LogLine) + 'a>,
    seats: BTreeMap<String, Arc<dyn Backend>>,
    /// The lead of a virtual clock over the real one.
    ahead: jiff::SignedDuration,
    interval_ms: Option<u64>,
    /// Held as long as cycles run.
    leader: Option<Leader>,
}

/// The reason why a forum cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ForumError),
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] BadSetting),
    /// This process has not taken the right to run cycles.
    #[error("this process does not run the forum's cycles")]
    NotLeading,
    /// No thread could be started.
    #[error("cannot start an OS thread: {0}")]
    Runtime(std::io::Error),
}

/// A cycle that was completed or stopped.
#[derive(Clone, Debug)]
pub struct Cycled {
    /// Its record.
    pub cycle: CycleRecord,
    /// Its runs.
    pub runs: Vec<Run>,
    /// Whether every agent had a turn.
    pub complete: bool,
}

impl<'a> Forum<'a> {
    /// Creates a forum that is ready to run. `say` receives each log line.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub fn new(
        plan: Plan,
        store: &'a mut ForumStore,
        config: &Config,
        backends: Backends,
        stop: watch::Receiver<Stop>,
        say: Box<dyn FnMut(&LogLine) + 'a>,
    ) -> Result<Self, RunError> {
        let runtime = Threads::start().map_err(RunError::Runtime)?;
        Ok(Self {
            plan,
            store,
            backends,
            config: config.clone(),
            runtime,
            stop,
            say,
            seats: BTreeMap::new(),
            ahead: jiff::SignedDuration::ZERO,
            interval_ms: None,
            leader: None,
        })
    }

    /// Becomes the process that runs cycles here; fails if another process is.
    ///
    /// # Errors
    /// [`ForumError::Led`] if another process runs the cycles; also if the lock or the file of secrets cannot be used.
    pub fn lead(&mut self) -> Result<(), RunError> {
        if self.leader.is_none() {
            self.leader = Some(self.store.lead(&self.plan.forum)?);
        }
        Ok(())
    }

    /// Returns whether the user stopped an agent in the middle of its visit.
    pub fn was_stopped(&self) -> bool {
        *self.stop.borrow() == Stop::Now
    }

    /// Returns the settings in force: the configured ones, changed by motions, overridden by those the user gave for
    /// this run, and narrowed by the rules of the forum.
    ///
    /// # Errors
    /// If a setting given for this run is invalid, or the database fails.
    pub fn settings(&mut self) -> Result<Settings, RunError> {
        let mut settings = self.store.settings(&self.plan.forum, &self.plan.settings)?;
        settings.set_all(
            self.plan
                .wishes
                .iter()
                .map(|(k, v)| (k.as_str(), v.as_str())),
        )?;
        Ok(self.store.narrow(&self.plan.forum, &settings)?)
    }

    /// Returns the settings by which motions are opened and decided: the configured ones, without the user's settings for
    /// this run of what motions can change. A motion changes the stored settings, so it compares with those.
    pub(super) fn governing(&self) -> Settings {
        let mut settings = self.plan.settings.clone();
        for (key, value) in &self.plan.wishes {
            if setting(key).is_some_and(|row| !row.votable) {
                // Checked with all the others in `settings`.
                let _ = settings.set(key, value);
            }
        }
        settings
    }

    /// Continues the interrupted cycle; if there is none, runs a new one.
    ///
    /// # Errors
    /// If another process runs the cycles, the record differs from the noted state, the rules allow no cycle yet, every
    /// agent is banned, a setting is invalid, or the database or the state folder fails.
    pub fn cycle(&mut self) -> Result<Cycled, RunError> {
        self.register()?;
        let settings = self.settings()?;
        let forum = self.plan.forum.clone();
        self.lead()?;
        let leader = self.leader.as_ref().ok_or(RunError::NotLeading)?;
        self.store.check_record(leader)?;
        let record = self.begin_cycle(&forum, &settings)?;
        if !self.take_turns(&record, &forum, &settings)? {
            let runs = self.store.runs_of(record.id)?;
            self.log(LogEvent::CycleStopped {
                cycle: record.number,
                left: without_turn(&record, &runs),
            })?;
            return Ok(Cycled {
                runs,
                cycle: record,
                complete: false,
            });
        }
        self.finish_cycle(&record, &forum, &settings)
    }

    /// Returns the open cycle if it can be resumed, and otherwise draws one.
    fn begin_cycle(&mut self, forum: &str, settings: &Settings) -> Result<CycleRecord, RunError> {
        match self.store.open_cycle(forum)? {
            // An imported forum's open cycle was drawn by its authors: void it and draw a new one.
            Some(record) if self.store.is_foreign() => {
                self.void(&record, "it was started elsewhere")?;
                self.draw(settings)
            }
            Some(record) if !ForumStore::can_reveal(self.leader()?, &record) => {
                self.void(&record, "the file with its secret is lost")?;
                self.draw(settings)
            }
            Some(record) => self.resume(record),
            None => self.draw(settings),
        }
    }

    /// Lets the agents visit that have not had their turn in this cycle. Returns whether all had it; otherwise the user
    /// stopped the forum.
    fn take_turns(
        &mut self,
        record: &CycleRecord,
        forum: &str,
        settings: &Settings,
    ) -> Result<bool, RunError> {
        let plan = {
            self.lead()?;
            let leader = self.leader.as_ref().ok_or(RunError::NotLeading)?;
            ForumStore::plan(leader, record)
        };
        let ran: Vec<String> = self
            .store
            .runs_of(record.id)?
            .into_iter()
            .map(|run| run.agent)
            .collect();
        let mut turns = plan
            .turns
            .iter()
            .filter(|turn| !ran.contains(&turn.agent))
            .peekable();
        let mut first = true;
        while let Some(turn) = turns.peek() {
            let wait = match first || !self.plan.waits {
                true => 0,
                false => turn.delay_ms,
            };
            first = false;
            if wait > 0 {
                self.log(LogEvent::WaitingForAgent {
                    secs: wait as f64 / 1000.0,
                })?;
            }
            if !self.wait(Duration::from_millis(wait)) {
                break;
            }
            let Some(turn) = turns.next() else { break };
            // Banned since the order was drawn.
            if self.store.is_banned(forum, &turn.agent)? {
                let agent = turn.agent.clone();
                self.pass_over(record, &agent, "banned")?;
                continue;
            }
            if let Some(run) =
                self.store
                    .begin_run(Some(record.id), forum, &turn.agent, self.now())?
            {
                self.visit(run, &turn.agent, settings)?;
            }
        }
        Ok(turns.peek().is_none())
    }

    /// Seals a cycle in which every agent had its turn, and decides the motions that are due.
    fn finish_cycle(
        &mut self,
        record: &CycleRecord,
        forum: &str,
        settings: &Settings,
    ) -> Result<Cycled, RunError> {
        let runs = self.store.runs_of(record.id)?;
        let posts = runs
            .iter()
            .filter(|run| run.deeds.iter().any(|deed| deed.post_id.is_some()))
            .count();
        let interval = interval::next_ms(settings, self.interval_ms, posts, runs.len());
        self.interval_ms = Some(interval);
        let now = self.now();
        self.lead()?;
        let leader = self.leader.as_mut().ok_or(RunError::NotLeading)?;
        let cycle = self.store.finish_cycle(leader, record.id, interval, now)?;
        if let Some(why) = cycle.void() {
            self.log(LogEvent::CycleVoided {
                cycle: cycle.number,
                why: why.to_owned(),
            })?;
        }
        // The order of a foreseeable cycle was logged at its start.
        if cycle.foreseeable().is_none() {
            self.log_order(&cycle)?;
        }
        let governing = self.governing();
        for motion in self
            .store
            .decide_motions(forum, record.number, &governing, self.now())?
        {
            self.log(LogEvent::Motion {
                motion: motion.id,
                what: motion.outcome,
            })?;
        }
        self.log(LogEvent::CycleComplete {
            cycle: record.number,
        })?;
        Ok(Cycled {
            cycle,
            runs,
            complete: true,
        })
    }

    /// Runs cycles at the interval between their starts, until the user stops it or `most` cycles are complete.
    ///
    /// # Errors
    /// Like [`Self::cycle`], but waits if the rules allow no cycle yet.
    pub fn cycles(&mut self, most: Option<u64>) -> Result<u64, RunError> {
        let mut complete = 0;
        self.catch_up()?;
        loop {
            if !self.wait_for_rule()? {
                return Ok(complete);
            }
            let done = self.cycle()?;
            if !done.complete {
                return Ok(complete);
            }
            complete += 1;
            if most.is_some_and(|most| complete >= most) || *self.stop.borrow() != Stop::No {
                return Ok(complete);
            }
            let next = done.cycle.started_at
                + jiff::SignedDuration::from_millis(self.interval_ms.unwrap_or(0) as i64);
            let wait =
                Duration::try_from(self.now().duration_until(next)).unwrap_or(Duration::ZERO);
            self.log(LogEvent::WaitingForCycle {
                secs: wait.as_secs_f64(),
            })?;
            if !self.wait(wait) {
                return Ok(complete);
            }
        }
    }

    /// Returns why the forum's rules allow no new cycle now, if so. An interrupted cycle may continue at once.
    ///
    /// # Errors
    /// If the database fails.
    pub fn too_soon(&mut self) -> Result<Option<ForumError>, RunError> {
        let now = self.now();
        match self.store.open_cycle(&self.plan.forum)? {
            Some(_) => Ok(None),
            None => Ok(self.store.too_soon(&self.plan.forum, now)?),
        }
    }

    /// Waits until the forum's rules allow a cycle to start; false if the user stopped it.
    fn wait_for_rule(&mut self) -> Result<bool, RunError> {
        // Check again after the wait: the rule may have changed.
        while let Some(ForumError::TooSoon { next, .. }) = self.too_soon()? {
            let wait = Duration::try_from(self.now().duration_until(next)).unwrap_or_default();
            self.log(LogEvent::WaitingForCycle {
                secs: wait.as_secs_f64(),
            })?;
            if !self.wait(wait) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sets a virtual clock to where the record ends, instead of now.
    fn catch_up(&mut self) -> Result<(), RunError> {
        if !self.plan.is_virtual {
            return Ok(());
        }
        let Some(last) = self.store.cycles(&self.plan.forum, 1)?.pop() else {
            return Ok(());
        };
        let interval = i64::try_from(last.interval_ms.unwrap_or(0)).unwrap_or(i64::MAX);
        let next = last.ended_at.and_then(|_| {
            let interval = jiff::SignedDuration::from_millis(interval);
            last.started_at.checked_add(interval).ok()
        });
        let now = jiff::Timestamp::now();
        if let Some(ahead) = next.map(|next| now.duration_until(next)) {
            self.ahead = ahead.max(jiff::SignedDuration::ZERO);
        }
        Ok(())
    }

    /// Runs one agent's visit outside any cycle.
    ///
    /// # Errors
    /// If the agent is banned or is on a visit in another process, a setting is invalid, or the database fails.
    pub fn run_agent(&mut self, name: &str) -> Result<Run, RunError> {
        if self.store.is_banned(&self.plan.forum, name)? {
            return Err(
                ForumError::Forbidden(format!("{name} is banned and does not visit")).into(),
            );
        }
        self.register()?;
        let settings = self.settings()?;
        let now = self.now();
        let (run, held) = self.store.begin_visit(&self.plan.forum, name, now)?;
        let ended = self.visit(run, name, &settings);
        self.store.end_visit(held)?;
        ended
    }

    /// Registers the personas as members of the forum, and closes visits interrupted by a crash.
    fn register(&mut self) -> Result<(), RunError> {
        let now = self.now();
        let names: Vec<&str> = self.plan.residents.iter().map(String::as_str).collect();
        self.store.sync_personas(&self.plan.forum, &names, now)?;
        for run in self.store.close_cut_visits(&self.plan.forum, now)? {
            self.log(LogEvent::RunClosed { agent: run.agent })?;
        }
        Ok(())
    }

    fn leader(&mut self) -> Result<&mut Leader, RunError> {
        self.lead()?;
        self.leader.as_mut().ok_or(RunError::NotLeading)
    }

    /// Voids an open cycle.
    fn void(&mut self, record: &CycleRecord, why: &str) -> Result<(), RunError> {
        let now = self.now();
        for run in self.store.close_cut_runs(record.id, now)? {
            self.log(LogEvent::RunClosed { agent: run.agent })?;
        }
        self.lead()?;
        let leader = self.leader.as_mut().ok_or(RunError::NotLeading)?;
        self.store.void_cycle(leader, record.id, why, now)?;
        self.log(LogEvent::CycleVoided {
            cycle: record.number,
            why: why.to_owned(),
        })
    }

    fn resume(&mut self, record: CycleRecord) -> Result<CycleRecord, RunError> {
        for run in self.store.close_cut_runs(record.id, self.now())? {
            self.log(LogEvent::RunClosed { agent: run.agent })?;
        }
        let runs = self.store.runs_of(record.id)?;
        self.log(LogEvent::CycleResumed {
            cycle: record.number,
            left: without_turn(&record, &runs),
        })?;
        Ok(record)
    }

    /// Logs the order of a cycle and which agents sat out.
    fn log_order(&mut self, cycle: &CycleRecord) -> Result<(), RunError> {
        if cycle.plan.order.is_empty() {
            return Ok(());
        }
        self.log(LogEvent::OrderDrawn {
            scheduler: cycle.cards.scheduler.clone(),
            order: cycle.plan.order.clone(),
        })?;
        for sitting_out in &cycle.plan.sitting_out {
            self.log(LogEvent::SittingOut {
                agent: sitting_out.agent.clone(),
            })?;
        }
        Ok(())
    }

    fn draw(&mut self, settings: &Settings) -> Result<CycleRecord, RunError> {
        let mut candidates = Vec::with_capacity(self.plan.personas.len());
        for persona in &self.plan.personas {
            let likes = &persona.preferences;
            if self
                .store
                .is_banned(&self.plan.forum, persona.name.as_str())?
            {
                continue;
            }
            let known = self.store.candidate(persona.name.as_str())?;
            candidates.push(Candidate {
                skip_probability: match self.plan.skips {
                    true => likes.skip_probability.unwrap_or(settings.skip_probability),
                    false => 0.0,
                },
                weight: likes.weight,
                // Before its first turn, an agent has at most its configured energy.
                energy: if known.turns == 0 {
                    known.energy.min(likes.energy)
                } else {
                    known.energy
                },
                delays: likes.delays,
                ..known
            });
        }
        if candidates.is_empty() {
            return Err(
                ForumError::Forbidden("every agent is banned: none can visit".into()).into(),
            );
        }
        if self.interval_ms.is_none() {
            // An adaptive interval continues from its last value.
            let last = self.store.cycles(&self.plan.forum, 1)?.pop();
            self.interval_ms = last
                .and_then(|cycle| cycle.interval_ms)
                .filter(|ms| *ms > 0);
        }
        let now = self.now();
        let seed = self.plan.seed;
        self.lead()?;
        let leader = self.leader.as_mut().ok_or(RunError::NotLeading)?;
        let drawn = self
            .store
            .draw_cycle(leader, settings, candidates, seed, now)?;
        if let Some(lost) = drawn.lost {
            self.log(LogEvent::CycleVoided {
                cycle: lost.number,
                why: lost.void().unwrap_or_default().to_owned(),
            })?;
        }
        let record = drawn.record;
        let link = record.link.clone();
        self.log(LogEvent::CycleStarted {
            cycle: record.number,
            seed,
            commitment: link.as_ref().and_then(|link| link.commitment.clone()),
            next: link.map(|link| link.next),
        })?;
        if record.foreseeable().is_some() {
            self.log_order(&record)?;
        }
        Ok(record)
    }

    /// Records the turn of an agent that is not asked, since the record of a cycle includes every turn drawn.
    fn pass_over(&mut self, cycle: &CycleRecord, agent: &str, why: &str) -> Result<(), RunError> {
        let now = self.now();
        let forum = &self.plan.forum;
        if let Some(run) = self.store.begin_run(Some(cycle.id), forum, agent, now)? {
            let end = RunEnd {
                outcome: Outcome::Skipped,
                reason: Some(why.to_owned()),
                claim: None,
                tokens: 0,
            };
            self.store.end_run(run, &end, now)?;
        }
        self.log(LogEvent::SittingOut {
            agent: agent.to_owned(),
        })
    }

    /// Waits; false if the user stopped it.
    fn wait(&mut self, time: Duration) -> bool {
        if *self.stop.borrow() != Stop::No {
            return false;
        }
        if self.plan.is_virtual {
            self.ahead += jiff::SignedDuration::try_from(time).unwrap_or_default();
            return true;
        }
        let mut stop = self.stop.clone();
        self.runtime.block_on(async move {
            tokio::select! {
                () = tokio::time::sleep(time) => true,
                // If the front end is gone, nothing stops the wait.
                stopped = stop.wait_for(|stop| *stop != Stop::No) => stopped.is_err(),
            }
        })
    }

    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now() + self.ahead
    }

    fn log(&mut self, event: LogEvent) -> Result<(), RunError> {
        let line = LogLine {
            at: self.now(),
            forum: self.plan.forum.clone(),
            event,
        };
        self.store.log(&line)?;
        (self.say)(&line);
        Ok(())
    }

    /// Logs the end of a run: its last action, or `skip` if it took none. A visit beyond the limit counts as a skip.
    fn completed(run: &Run) -> LogEvent {
        LogEvent::RunCompleted {
            agent: run.agent.clone(),
            action: match run.deeds.last() {
                Some(deed) if run.outcome != Outcome::LimitExceeded => deed.tool.clone(),
                _ => "skip".to_owned(),
            },
            success: run.outcome.is_success(),
            post_id: run.deeds.iter().rev().find_map(|deed| deed.post_id),
            reason: run.reason.clone(),
        }
    }
}

/// Returns the candidates that had no turn so far, by name, so that the order reveals neither who is next nor who sits
/// out.
fn without_turn(cycle: &CycleRecord, runs: &[Run]) -> Vec<String> {
    let candidates = cycle.cards.candidates.iter().map(|one| one.name.clone());
    candidates
        .filter(|name| !runs.iter().any(|run| run.agent == *name))
        .collect()
}
