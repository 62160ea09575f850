//! Continues a deliberation that was forked at a stage or interrupted.
//!
//! Its plan is in the thread's record, and a record is data: members are started as the user's settings say, never as
//! the record says, and the recorded limits may not exceed the user's.

use crate::council::{Opened, Started, held_event};
use crate::deliberation::{roster, say};
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use crate::{ready, threads, trust};
use jiff::Timestamp;
use kd_core::Record;
use kd_core::clean::clean_text;
use kd_core::config::Config;
use kd_core::deliberation::{self, CannotResume, Plan, Seat, resumable, resume};
use kd_core::planner;
use kd_core::secrets::Secrets;
use kd_engine::Opening;
use kd_store::{Layout, Lease, Thread, log};

/// The name of the lease that a continued deliberation holds. No member can have this name.
const LEASE: &str = kd_core::names::COUNCIL;

/// A deliberation that can go on.
pub struct Resuming<'k> {
    kingdom: &'k Kingdom,
    layout: Layout,
    thread: Thread,
    config: Config,
    log: Vec<Record>,
    plan: Plan,
    /// Only one process may continue it.
    lease: Lease,
}

impl Kingdom {
    /// Prepares to continue the newest deliberation of a thread; of the current one without an id. `model` is the model
    /// of members whose settings name none.
    ///
    /// # Errors
    /// If it has ended, a member is configured otherwise than recorded or held back, its limits exceed those of the
    /// settings, or somebody is answering in the thread.
    pub fn resuming(
        &self,
        id: Option<&str>,
        mut config: Config,
        model: Option<&str>,
    ) -> Result<Resuming<'_>, UserError> {
        let (layout, place) = threads::find(self.env(), id)?;
        let thread = Thread::open(&place)?;
        config.council.private |= thread.meta().is_private();
        let lease = alone(&thread)?;
        let log = log::read(&thread)?.records;
        deliberation::check(&log).map_err(|newer| kd_store::Error::Newer {
            path: thread.path().to_path_buf(),
            newer,
        })?;
        let mut plan = resumable(&log).map_err(|why| refusal(&thread, &why))?;
        let agents = plan.seats.iter().map(|seat| seat.agent.as_str());
        trust::check_named(self.project(), agents)?;
        within(&plan, &config)?;
        for seat in &mut plan.seats {
            start_as_configured(seat, &config, model)?;
        }
        Ok(Resuming {
            kingdom: self,
            layout,
            thread,
            config,
            log,
            plan,
            lease,
        })
    }
}

impl Resuming<'_> {
    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Checks that its members can answer, and downloads the models of built-in ones.
    ///
    /// # Errors
    /// If they cannot.
    pub fn make_ready(&self, offline: bool) -> Result<(), UserError> {
        let members = roster(&self.plan);
        ready::make_ready(&self.config, offline, self.kingdom.env(), &members)
    }

    /// Opens the session; what is returned beside it is kept until it has ended. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the record differs from what would be decided, or the session cannot be opened.
    pub fn start(self, masked: Secrets) -> Result<(Started, Lease), UserError> {
        let say = say(&self.plan);
        let seats = self.plan.seats.iter().map(|s| s.member.clone()).collect();
        let resumed = resume(&self.log, self.plan, Timestamp::now());
        let resumed = resumed.map_err(|why| refusal(&self.thread, &why))?;
        let last = self.thread.tail(1)?.messages.last().map_or(0, |m| m.seq);
        if last > resumed.messages {
            return Err(refusal(&self.thread, &CannotResume::GoneOn));
        }
        let opened = Opened::of(self.layout, &self.thread, false);
        let opening = Opening {
            id: self.thread.id().clone(),
            machine: Box::new(resumed.machine),
            opened: resumed.effects,
            seats,
        };
        let engine = self.kingdom.engine(&self.config, masked);
        let engine = engine.telling(held_event(self.kingdom, &[]));
        let started = Started {
            session: engine.run_on(self.thread, opening, resumed.view)?,
            say,
            notices: Vec::new(),
            opened,
            acts: false,
        };
        Ok((started, self.lease))
    }
}

/// Makes sure that nobody else continues the deliberation.
fn alone(thread: &Thread) -> Result<Lease, UserError> {
    let busy = |who: &str| {
        UserError::new(
            ErrorKind::Busy,
            format!("{who} in {}", clean_text(&thread.id().0)),
        )
        .next("wait for it, or continue a fork: kd fork --stage …")
    };
    let names = threads::running(thread)?;
    if let Some(name) = names.first() {
        return Err(busy(&format!("{name} is still answering")));
    }
    Lease::try_take(thread, LEASE)?
        .ok_or_else(|| busy("another process continues the deliberation"))
}

/// Checks the recorded limits against those of the settings.
fn within(plan: &Plan, config: &Config) -> Result<(), UserError> {
    let own = config.deliberation.ceiling();
    let of = plan.limits.ceiling();
    let exceeds =
        |of: Option<u64>, own: Option<u64>| own.is_some_and(|own| of.is_none_or(|of| of > own));
    let found = [
        ("calls", "--max-calls", of.calls, own.calls, 1),
        ("tokens", "--max-total-tokens", of.tokens, own.tokens, 1),
        (
            "dollars",
            "--max-usd",
            of.micro_usd,
            own.micro_usd,
            1_000_000,
        ),
    ]
    .into_iter()
    .find(|(_, _, of, own, _)| exceeds(*of, *own));
    let Some((what, flag, of, own, unit)) = found else {
        return Ok(());
    };
    let shown = |limit: Option<u64>| match limit {
        None => "any number of".to_owned(),
        Some(limit) if unit == 1 => limit.to_string(),
        Some(limit) => format!("{}", limit as f64 / f64::from(unit)),
    };
    Err(UserError::new(
        ErrorKind::Budget,
        format!("its plan may use {} {what}", shown(of)),
    )
    .because(format!("your settings allow {}", shown(own)))
    .next(match of {
        None => "continue a fork by `kd ask --continue`, or deliberate anew".to_owned(),
        Some(_) => format!("{flag} {} allows it for this run", shown(of)),
    }))
}

/// Gives a recorded seat the program and the backend that the settings name for its agent.
fn start_as_configured(
    seat: &mut Seat,
    config: &Config,
    model: Option<&str>,
) -> Result<(), UserError> {
    let own = planner::configured(config, &seat.agent, model)?;
    let of = &seat.member;
    let differs = [
        ("backend", Some(&of.backend), Some(&own.backend)),
        ("model", of.model.as_ref(), own.model.as_ref()),
    ]
    .into_iter()
    .find(|(_, of, own)| of != own);
    if let Some((what, recorded, now)) = differs {
        let shown = |value: Option<&String>| {
            value.map_or("none".to_owned(), |v| clean_text(v).into_owned())
        };
        return Err(UserError::new(
            ErrorKind::CannotSeat,
            format!("{} is configured otherwise than recorded", seat.name()),
        )
        .because(format!(
            "its {what} was {}; now it is {}",
            shown(recorded),
            shown(now)
        ))
        .next(match what {
            "model" => "set the model of that agent back, or use --model if it names none",
            _ => "set that agent back, or start anew: kd deliberate \"…\"",
        }));
    }
    seat.member.launch = own.launch;
    seat.member.writable = false;
    Ok(())
}

fn refusal(thread: &Thread, why: &CannotResume) -> UserError {
    let id = clean_text(&thread.id().0);
    let (kind, next) = match why {
        CannotResume::None => (
            ErrorKind::NotDeliberated,
            "kd deliberate \"…\" starts one; kd council list has all threads".to_owned(),
        ),
        CannotResume::Ended => (
            ErrorKind::Refused,
            format!(
                "kd fork {id} --stage STAGE creates a fork that can go on; kd why {id} shows the stages"
            ),
        ),
        CannotResume::GoneOn => (
            ErrorKind::Refused,
            format!("kd fork {id} --stage STAGE leaves out what came later"),
        ),
        CannotResume::Aside => (
            ErrorKind::Refused,
            "only deliberations of `kd deliberate` can be continued; ask again in the chat"
                .to_owned(),
        ),
        CannotResume::Differs { .. } => (
            ErrorKind::Refused,
            format!("kd replay {id} shows the difference; kd deliberate \"…\" starts anew"),
        ),
    };
    UserError::new(kind, format!("{id} cannot go on: {why}")).next(next)
}
