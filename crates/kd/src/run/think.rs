//! `kd think`: seats a fast and a rigorous member, lets them answer together, and reports the result.

use super::ask::{closing, going_on, new_thread, notice_line};
use super::here::Here;
use super::{first, model, outfile, question, seats, secrets, stage, trust};
use crate::args::think::Think;
use crate::error::Error;
use crate::exit::Exit;
use kd_core::config::Config;
use kd_core::duet::seats::{DuetWishes, Seats, seat};
use kd_core::duet::{DuetLimits, OpenDuet};
use kd_core::secrets::Secrets;
use kd_core::{Address, Duet, Op};
use kd_engine::{Engine, Opening, Session};
use kd_store::Thread;

pub(super) fn run(args: Think, here: &Here) -> Result<Exit, Error> {
    let quiet = args.output.quiet;
    outfile::check(args.output.output.as_deref())?;
    let found = here.find_layout()?;
    let mut loaded = trust::settings(here, found.as_ref())?;
    args.spending.lay_over(&mut loaded.config.limits);
    args.privacy.lay_over(&mut loaded.config.council);
    if let Some(layout) = &found {
        super::ask::sweep(layout, quiet);
    }
    let place = going_on(&args.going, found.as_ref(), here)?;
    let named: Vec<String> = [&args.fast, &args.rigorous, &args.arbiter]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    trust::check(&loaded.project, trust::Named::only(&named))?;
    let wishes = DuetWishes {
        fast: args.fast.clone(),
        rigorous: args.rigorous.clone(),
        arbiter: args.arbiter.clone(),
        all: seats::wishes(&args.model, args.timeout),
    };
    let seats = seat(&loaded.config, &wishes).map_err(|e| {
        Error::from(e).next(
            "`kd think --fast … --rigorous …` with these names, or `kd init` to set up others",
        )
    })?;
    let mut question = question::read("think", &args.question, quiet)?;
    let masked = secrets::of(&loaded.config, args.privacy.allow_secrets);
    secrets::mask(&masked, &mut question, quiet);
    if !quiet {
        loaded.notices.iter().for_each(|notice| notice_line(notice));
    }
    let roster = seats.roster();
    model::make_ready(&loaded.config, args.model.offline, quiet, &roster)?;
    if seats.built_in() && loaded.config.agents.is_empty() && !quiet {
        first::notice(found.is_none());
    }
    let is_new = place.is_none();
    let thread = match place {
        Some(place) => Thread::open(&place)?,
        None => new_thread(&roster, quiet, here)?,
    };
    let folder = is_new.then(|| thread.path().to_path_buf());
    let id = thread.id().clone();
    let say = Op::Say {
        body: question.text,
        to: Address::All,
    };
    let ended = stage::perform(&args.output, args.council, here, stage::UNASKED, || {
        let session = open(&args, &loaded.config, seats, thread, masked, here)?;
        session.send(say)?;
        Ok(session)
    });
    let ended = ended.inspect_err(|_| {
        if let Ok(Some(layout)) = here.find_layout() {
            super::ask::discard_unsaid(folder.as_deref(), &layout);
        }
    })?;
    if !quiet && !ended.closed {
        closing(&ended.view, &id.0, "kd think --continue", here);
    }
    Ok(ended.exit())
}

fn open(
    args: &Think,
    config: &Config,
    seats: Seats,
    thread: Thread,
    masked: Secrets,
    here: &Here,
) -> Result<Session, Error> {
    let limits = DuetLimits::of(&config.think, &seats);
    let limits = DuetLimits {
        exchanges_max: args.max_messages.unwrap_or(limits.exchanges_max),
        exchanges_min: args.min_messages.unwrap_or(limits.exchanges_min),
        tokens_max: args.budget.or(limits.tokens_max),
        seconds_max: args.within.map(|t| t.as_secs()).or(limits.seconds_max),
        ..limits
    };
    let opening = opening(config, seats, &thread, limits)?;
    let backends = kd_backends::Backends::new(config, super::here::agents());
    let engine = Engine::new(backends)
        .telling(here.held_event())
        .masking(masked);
    Ok(engine.run(thread, opening)?)
}

/// Prepares a duet that answers one question in a thread.
pub(super) fn opening(
    config: &Config,
    seats: Seats,
    thread: &Thread,
    limits: DuetLimits,
) -> Result<Opening, Error> {
    let roster = seats.roster();
    let (duet, opened) = Duet::open(OpenDuet {
        thread: thread.id().clone(),
        prompts: seats::prompts(config, &roster, &thread.meta().phase),
        history: thread.messages()?.messages,
        limits,
        seats,
    });
    let seated = roster.members().iter().chain(roster.chair()).cloned();
    Ok(Opening {
        id: thread.id().clone(),
        machine: Box::new(duet),
        opened,
        seats: seated.collect(),
    })
}
