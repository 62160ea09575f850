//! Runs a forum: draws cycles, waits between agents, lets each have its visit, and keeps what happened. Comes in: a
//! store, personas, settings. Goes out: log lines, and runs in the store. It decides nothing: orders, skips, visits and
//! motions are decided by [`kd_core::forum`].
//!
//! One agent has its turn at a time, so this runs on one plain thread; only waiting and asking use the runtime. A person
//! can stop it at any moment; what was cut off, by a person or by a crash, goes on with the next call.

mod elsewhere;
mod threads;
mod visit;

pub use elsewhere::kept_as;

use kd_backends::remote::RemoteForum;
use kd_backends::servers::Grant;
use kd_backends::{Backend, Hands};
use kd_core::config::Config;
use kd_core::forum::cycle::Candidate;
use kd_core::forum::interval;
use kd_core::forum::logline::{LogEvent, LogLine};
use kd_core::forum::persona::Persona;
use kd_core::forum::settings::{BadSetting, Settings};
use kd_core::forum::words::{Outcome, Run};
use kd_core::request::ToolServer;
use kd_store::forum::{CycleRecord, ForumError, ForumStore, Leader, RunEnd};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use threads::Threads;
use tokio::sync::watch;

/// How far a person wants it to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Not at all.
    #[default]
    No,
    /// After the agent that runs.
    AfterAgent,
    /// Now.
    Now,
}

/// What a forum is run with.
pub struct Plan {
    /// Its name.
    pub forum: String,
    /// The personas that take part.
    pub personas: Vec<Persona>,
    /// The names of all personas of the forum, whether they take part this time or not: its registered agents.
    pub residents: Vec<String>,
    /// The configured settings.
    pub settings: Settings,
    /// Settings that a person named this time: they stand above motions.
    pub wishes: Vec<(String, String)>,
    /// A seed that a person chose. Cycles drawn from it are recorded as foreseeable; `None` draws each from a secret of
    /// its own.
    pub seed: Option<u64>,
    /// Whether time only passes in the record: nobody waits.
    pub is_virtual: bool,
    /// Whether an agent waits before its turn.
    pub waits: bool,
    /// Whether agents sit cycles out.
    pub skips: bool,
    /// The program by which agent programs call the forum's tools, up to the name and the run of a visit.
    pub server: Option<ToolServer>,
    /// The further servers that agents may call, by the name of the agent.
    pub granted: BTreeMap<String, Granted>,
    /// The folder in which programs among those servers work: an empty one.
    pub servers_folder: PathBuf,
    /// The forum on another machine that is visited; `None` means the forum of the store.
    pub remote: Option<RemoteForum>,
}

/// The further servers of one agent.
#[derive(Clone, Debug, Default)]
pub struct Granted {
    /// The servers.
    pub servers: Vec<Grant>,
    /// A file with the same, which only the user can read: for the server of tools that an agent program starts.
    pub file: Option<PathBuf>,
}

/// A forum that runs.
pub struct Forum<'a> {
    plan: Plan,
    store: &'a mut ForumStore,
    hands: Hands,
    config: Config,
    runtime: Threads,
    stop: watch::Receiver<Stop>,
    say: Box<dyn FnMut(&LogLine) + 'a>,
    seats: BTreeMap<String, Arc<dyn Backend>>,
    /// How far a virtual clock is ahead.
    ahead: jiff::SignedDuration,
    interval_ms: Option<u64>,
    /// Held as long as cycles run.
    leader: Option<Leader>,
}

/// Why a forum cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store.
    #[error(transparent)]
    Store(#[from] ForumError),
    /// A setting.
    #[error(transparent)]
    Setting(#[from] BadSetting),
    /// Cycles are run by one process at a time, and this is not it.
    #[error("this process does not run the forum's cycles")]
    NotLeading,
    /// No thread could be started.
    #[error("no thread could be started: {0}")]
    Runtime(std::io::Error),
}

/// A cycle that came to its end, or was stopped.
#[derive(Clone, Debug)]
pub struct Cycled {
    /// As recorded.
    pub cycle: CycleRecord,
    /// Its runs.
    pub runs: Vec<Run>,
    /// Whether everybody had a turn.
    pub complete: bool,
}

impl<'a> Forum<'a> {
    /// A forum that is ready to run. `say` hears each log line.
    pub fn new(
        plan: Plan,
        store: &'a mut ForumStore,
        config: &Config,
        hands: Hands,
        stop: watch::Receiver<Stop>,
        say: Box<dyn FnMut(&LogLine) + 'a>,
    ) -> Result<Self, RunError> {
        let runtime = Threads::start().map_err(RunError::Runtime)?;
        Ok(Self {
            plan,
            store,
            hands,
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

    /// Becomes the one that runs cycles here; an error if another process does.
    pub fn lead(&mut self) -> Result<(), RunError> {
        if self.leader.is_none() {
            self.leader = Some(self.store.lead(&self.plan.forum)?);
        }
        Ok(())
    }

    /// Whether a person stopped an agent in the middle of its visit.
    pub fn was_stopped(&self) -> bool {
        *self.stop.borrow() == Stop::Now
    }

    /// The settings in force: configured, changed by motions, above both what a person named this time, and all of it
    /// narrowed by the rules of the forum.
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

    /// Runs a cycle: the one that was cut off, else a new one.
    pub fn cycle(&mut self) -> Result<Cycled, RunError> {
        self.register()?;
        let settings = self.settings()?;
        let forum = self.plan.forum.clone();
        self.lead()?;
        let leader = self.leader.as_ref().ok_or(RunError::NotLeading)?;
        self.store.check_record(leader)?;
        let record = match self.store.open_cycle(&forum)? {
            // What a forum from elsewhere began, its authors drew.
            Some(record) if self.store.is_foreign() => {
                self.void(&record, "it was begun elsewhere")?;
                self.draw(&settings)?
            }
            Some(record) if !ForumStore::can_reveal(self.leader()?, &record) => {
                self.void(&record, "the file with its secret is lost")?;
                self.draw(&settings)?
            }
            Some(record) => self.resume(record)?,
            None => self.draw(&settings)?,
        };
        let plan = {
            self.lead()?;
            let leader = self.leader.as_ref().ok_or(RunError::NotLeading)?;
            ForumStore::plan(leader, &record)
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
            if self.store.is_banned(&forum, &turn.agent)? {
                let agent = turn.agent.clone();
                self.pass_over(&record, &agent, "banned")?;
                continue;
            }
            if let Some(run) =
                self.store
                    .begin_run(Some(record.id), &forum, &turn.agent, self.now())?
            {
                self.visit(run, &turn.agent, &settings)?;
            }
        }
        if turns.peek().is_some() {
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
        let runs = self.store.runs_of(record.id)?;
        let posts = runs
            .iter()
            .filter(|run| run.deeds.iter().any(|deed| deed.post_id.is_some()))
            .count();
        let interval = interval::next_ms(&settings, self.interval_ms, posts, runs.len());
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
        // The order of a cycle that can be foretold was logged at its start.
        if cycle.foreseeable().is_none() {
            self.log_order(&cycle)?;
        }
        for motion in self
            .store
            .decide_motions(&forum, record.number, &settings, self.now())?
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

    /// Runs cycle after cycle, from start to start, until a person stops it or so many are complete.
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

    /// Why no cycle may start now, if the forum has a rule about that. One that was cut off goes on at once.
    pub fn too_soon(&mut self) -> Result<Option<ForumError>, RunError> {
        let now = self.now();
        match self.store.open_cycle(&self.plan.forum)? {
            Some(_) => Ok(None),
            None => Ok(self.store.too_soon(&self.plan.forum, now)?),
        }
    }

    /// Waits until the forum's rule lets a cycle start; false if a person stopped it.
    fn wait_for_rule(&mut self) -> Result<bool, RunError> {
        // Once more after the wait: meanwhile the rule may be another.
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

    /// A virtual clock goes on where the record left it, not at this moment.
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

    /// Lets one agent visit by itself, outside any cycle.
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

    /// Makes the personas members of the forum, and closes visits that a crash cut off.
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

    /// Makes an open cycle void.
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

    /// Logs the order of a cycle, and who sat out.
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
                // Before its first turn an agent is as rested as it says.
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
                ForumError::Forbidden("every agent is banned: nobody can visit".into()).into(),
            );
        }
        if self.interval_ms.is_none() {
            // An adaptive interval goes on where it was.
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

    /// Records the turn of an agent that is not asked: the record of a cycle holds every turn that was drawn.
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

    /// Waits; false if a person stopped it.
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
                // A face that is gone stops nothing.
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

    /// How a run is told: what it did last, else `skip`. A visit over the limit counts as a skip.
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

/// Returns the candidates that had no turn so far, by name: who of them is next, or sits out, is not said.
fn without_turn(cycle: &CycleRecord, runs: &[Run]) -> Vec<String> {
    let candidates = cycle.cards.candidates.iter().map(|one| one.name.clone());
    candidates
        .filter(|name| !runs.iter().any(|run| run.agent == *name))
        .collect()
}
