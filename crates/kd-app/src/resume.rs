//! Continues a deliberation that was forked at a stage or interrupted.
//!
//! Its plan is in the thread's record, and a record is data: members are started as the user's settings say, never as
//! the record says, and the recorded limits may not exceed the user's.

use crate::council::{Opened, Started, held_event};
use crate::deliberation::roster;
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use crate::output::OutputSchema;
use crate::{output, ready, seating, threads, trust};
use jiff::Timestamp;
use kd_core::clean::clean_text;
use kd_core::config::{Config, ToolUse, is_service};
use kd_core::deliberation::{self, CannotResume, Plan, Resumed, Seat, resumable, resume};
use kd_core::last_round::RoundKind;
use kd_core::planner;
use kd_core::secrets::Secrets;
use kd_core::{MachineId, Op, Record};
use kd_engine::Opening;
use kd_store::config::Project;
use kd_store::{Layout, Lease, Thread, log};

/// The name of the lease that a continued deliberation holds. No member can have this name.
const LEASE: &str = kd_core::names::COUNCIL;

/// Number of messages in which the newest question is searched; a deliberation has fewer.
const QUESTION_WITHIN: usize = 400;

/// A deliberation that can be continued.
pub struct Resuming<'k> {
    kingdom: &'k Kingdom,
    layout: Layout,
    thread: Thread,
    config: Config,
    found: Unfinished,
    /// The share of right verdicts that the user requires: also tested as a promise.
    pub required: Option<f64>,
}

/// The recorded part of a deliberation that can be continued.
pub(crate) struct Unfinished {
    log: Vec<Record>,
    plan: Plan,
    /// Only one process may continue it.
    lease: Lease,
}

impl Kingdom {
    /// Prepares to continue the newest deliberation of a thread; of the current one without an id. `model` is the model
    /// of members whose settings name none. Members read files only if `tools` says so now: a record does not contain
    /// whether they were allowed to.
    ///
    /// # Errors
    /// If the deliberation has ended, if the configuration of a member differs from the record or is held back, if
    /// its limits exceed the limits in the settings, or if a member is answering in the thread.
    pub fn resuming(
        &self,
        id: Option<&str>,
        mut config: Config,
        model: Option<&str>,
        tools: Option<ToolUse>,
    ) -> Result<Resuming<'_>, UserError> {
        let (layout, place) = threads::find(self.env(), id)?;
        let thread = Thread::open(&place)?;
        config.council.private |= thread.meta().is_private();
        let found = Unfinished::of(&thread, self.project(), &config, model, tools)?;
        Ok(Resuming {
            kingdom: self,
            layout,
            thread,
            config,
            found,
            required: None,
        })
    }
}

impl Unfinished {
    /// Reads the newest deliberation of a thread, and checks that these settings allow to continue it.
    ///
    /// # Errors
    /// Those of [`Kingdom::resuming`].
    pub(crate) fn of(
        thread: &Thread,
        project: &Project,
        config: &Config,
        model: Option<&str>,
        tools: Option<ToolUse>,
    ) -> Result<Self, UserError> {
        let lease = alone(thread)?;
        let log = log::read(thread)?.records;
        deliberation::check(&log).map_err(|newer| kd_store::Error::Newer {
            path: thread.path().to_path_buf(),
            newer,
        })?;
        let mut plan = resumable(&log).map_err(|why| refusal(thread, &why))?;
        unasked(thread, &plan)?;
        let agents = plan.seats.iter().map(|seat| seat.agent.as_str());
        trust::check_named(project, agents)?;
        within(&plan, config)?;
        for seat in &mut plan.seats {
            start_as_configured(seat, config, model)?;
            seat.member.reads = tools == Some(ToolUse::Read) && is_service(&seat.member.backend);
        }
        Ok(Self { log, plan, lease })
    }

    /// Returns the schema into which its answer is put too.
    fn schema(&self) -> Result<Option<OutputSchema>, UserError> {
        let json = self.plan.output.clone();
        json.map(OutputSchema::new).transpose().map_err(|bad| {
            UserError::new(ErrorKind::Refused, "the schema in its plan cannot be used")
                .because(bad.to_string())
                .next("start another deliberation, with --output-schema")
        })
    }

    /// Continues it, and returns it with the lease to keep until it has ended.
    ///
    /// # Errors
    /// If the record differs from what would be decided, the thread has gone on, or the limits of a run do not allow the
    /// rest.
    pub(crate) fn resume(
        self,
        thread: &Thread,
        config: &Config,
    ) -> Result<(Resumed, Lease), UserError> {
        let now = Timestamp::now();
        let resumed = resume(&self.log, self.plan, now);
        let mut resumed = resumed.map_err(|why| refusal(thread, &why))?;
        // A process that was killed may have written a message and not its record.
        for message in thread.since(resumed.messages)?.messages {
            if !resumed.found(&message, now) {
                return Err(refusal(thread, &CannotResume::GoneOn));
            }
        }
        afforded(&resumed, config)?;
        Ok((resumed, self.lease))
    }
}

/// Returns how to finish the newest deliberation of a thread that is opened in a chat, if it has not ended.
pub(crate) fn offer(thread: &Thread) -> Option<String> {
    // Only a thread whose newest question was deliberated is worth reading its log.
    let newest = thread.tail(QUESTION_WITHIN).ok()?.messages;
    let asked = newest.iter().rfind(|message| message.is_king())?;
    if RoundKind::of(asked) != RoundKind::Deliberation {
        return None;
    }
    let log = log::read(thread).ok()?.records;
    let machine = deliberation::unfinished(&log)?;
    if Lease::is_held(thread, LEASE).ok()? || unasked(thread, &resumable(&log).ok()?).is_err() {
        return None;
    }
    let id = clean_text(&thread.id().0);
    Some(match machine {
        // It was begun outside of a chat.
        MachineId(0) => {
            format!(
                "this thread's deliberation has not ended: kd deliberate --resume {id} finishes it"
            )
        }
        _ => "this thread's deliberation has not ended: /resume finishes it".to_owned(),
    })
}

impl Resuming<'_> {
    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.found.plan
    }

    /// Checks that its members can answer, and downloads the models of built-in ones.
    ///
    /// # Errors
    /// If they cannot.
    pub fn make_ready(&self, offline: bool) -> Result<(), UserError> {
        let members = roster(&self.found.plan);
        ready::make_ready(&self.config, offline, self.kingdom.env(), &members)
    }

    /// Opens the session, whose members are asked at once. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the record differs from what would be decided, or the session cannot be opened.
    pub fn start(self, masked: Secrets) -> Result<Started, UserError> {
        let seats = self.found.plan.seats.iter();
        let seats: Vec<_> = seats.map(|s| s.member.clone()).collect();
        if let Some(readers) = seating::readers(&seats) {
            self.kingdom.env().note(readers);
        }
        let schema = self.found.schema()?;
        let (resumed, lease) = self.found.resume(&self.thread, &self.config)?;
        let opening = Opening {
            id: self.thread.id().clone(),
            machine: Box::new(resumed.machine),
            opened: resumed.effects,
            seats,
        };
        let engine = self.kingdom.engine(&self.config, masked);
        let engine = engine.telling(held_event(self.kingdom, &[]));
        let engine = engine.formatting(output::shared(schema));
        let engine = self
            .kingdom
            .concluding(engine, &self.config, &self.layout, self.required);
        let opened = Opened::of(self.layout, &self.thread, false);
        let session = engine.run_on(self.thread, opening, resumed.view, resumed.events)?;
        Ok(Started {
            lease: Some(lease),
            ..Started::new(session, Op::Resume, opened)
        })
    }
}

/// Takes the right to continue the deliberation of a thread.
fn alone(thread: &Thread) -> Result<Lease, UserError> {
    Lease::try_take(thread, LEASE)?
        .ok_or_else(|| busy(thread, "another session continues the deliberation"))
}

/// Makes sure that no member is being asked.
fn unasked(thread: &Thread, plan: &Plan) -> Result<(), UserError> {
    let is_asked = |seat: &&Seat| Lease::is_held(thread, seat.name().as_str()).unwrap_or(true);
    let asked = plan.seats.iter().find(is_asked);
    let asked = asked.map(|seat| seat.name().clone());
    match threads::running(thread)?.into_iter().chain(asked).next() {
        Some(name) => Err(busy(thread, &format!("{name} is still answering"))),
        None => Ok(()),
    }
}

fn busy(thread: &Thread, who: &str) -> UserError {
    let id = clean_text(&thread.id().0);
    UserError::new(ErrorKind::Busy, format!("{who} in {id}"))
        .next("wait for it, or continue a fork: kd fork --stage …")
}

/// Checks the recorded limits against the limits in the settings.
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
        None => "continue a fork by `kd ask --continue`, or start another deliberation".to_owned(),
        Some(_) => format!("{flag} {} allows it for this run", shown(of)),
    }))
}

/// Checks that the limits of a run allow the rest of a deliberation: a limit that cuts it would end it for good.
fn afforded(resumed: &Resumed, config: &Config) -> Result<(), UserError> {
    let (own, rest) = (config.limits.ceiling(), resumed.rest());
    let micro = rest.pico_usd.div_ceil(1_000_000);
    let found = [
        ("calls", "calls", rest.calls, own.calls, 1),
        ("tokens", "tokens", rest.tokens, own.tokens, 1),
        ("usd", "dollars", micro, own.micro_usd, 1_000_000),
    ]
    .into_iter()
    .find(|(_, _, rest, own, _)| own.is_some_and(|own| *rest > own));
    let Some((key, what, rest, Some(own), unit)) = found else {
        return Ok(());
    };
    let shown = |limit: u64| match unit {
        1 => limit.to_string(),
        unit => format!("{}", limit as f64 / f64::from(unit)),
    };
    let (rest, own) = (shown(rest), shown(own));
    Err(UserError::new(
        ErrorKind::Budget,
        format!("the rest of its deliberation may need {rest} {what}"),
    )
    .because(format!(
        "limits.{key} allows {own} in one run; cut by it, the deliberation would end"
    ))
    .next(format!(
        "`kd config set --layer user limits.{key} {rest}` allows it; no member was asked"
    )))
}

/// Returns whether the newest deliberation of a thread has not ended, and can be continued.
pub fn is_unfinished(thread: &Thread) -> bool {
    log::read(thread).is_ok_and(|log| deliberation::unfinished(&log.records).is_some())
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
            _ => "set that agent back, or start another deliberation: kd deliberate \"…\"",
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
            "kd deliberate \"…\" starts one; kd list has all threads".to_owned(),
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
        CannotResume::Differs { .. } => (
            ErrorKind::Refused,
            format!(
                "kd replay {id} shows the difference; kd deliberate \"…\" starts another deliberation"
            ),
        ),
    };
    UserError::new(kind, format!("{id} cannot go on: {why}")).next(next)
}
