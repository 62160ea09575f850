//! `kd ask`: opens a thread, asks, and reports the result.

use super::here::Here;
use super::question::{self, Question};
use super::seats::REVIEW;
use super::{
    background, choice, first, model, outfile, seats, secrets, stage, terminal, thread, trust,
};
use crate::args::ask::{Ask, Going};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::words;
use crate::render::wrap::wrap;
use jiff::Timestamp;
use kd_backends::Backends;
use kd_core::config::Config;
use kd_core::cost::Cost;
use kd_core::last_round::RoundKind;
use kd_core::mention::mentions;
use kd_core::protocols::ProtocolKind;
use kd_core::secrets::Secrets;
use kd_core::spending::{Ceiling, Price};
use kd_core::view::View;
use kd_core::{Address, Budget, LastRound, Member, Op, OpenCouncil, Roster, SeatName};
use kd_engine::{Engine, agents};
use kd_store::meta::COUNCIL;
use kd_store::{self as store, Elsewhere, Layout, Thread};
use std::io::{self, Write};
use std::sync::mpsc;

/// The task of the council.
pub(super) enum Job {
    /// Answer the question of the command line.
    Ask,
    /// Answer this question about a change.
    Review(Question),
    /// Repeat the newest question for members that have not answered it.
    Retry,
}

/// What to do, decided before anything is opened.
pub(super) struct Plan {
    pub(super) op: Op,
    pub(super) roster: Roster,
    place: Place,
    config: Config,
    /// Secrets to mask.
    secrets: Secrets,
    /// The newest round, if its members are asked again.
    last: Option<LastRound>,
}

/// Where to ask the question.
enum Place {
    /// In an existing thread.
    Old(Layout, Box<Thread>),
    /// In a new thread of this phase, in the project if there is one.
    New {
        phase: String,
        found: Option<Layout>,
    },
}

impl Place {
    /// Returns the thread, created if new, and whether it still has to be made the current one.
    fn enter(
        self,
        roster: &Roster,
        quiet: bool,
        here: &Here,
    ) -> Result<(Layout, Thread, bool), Error> {
        match self {
            Place::Old(layout, thread) => Ok((layout, *thread, false)),
            Place::New { phase, found } => {
                let layout = match found {
                    Some(layout) => told(layout, "the thread is", quiet),
                    None => new_layout(quiet, here)?,
                };
                let thread = Thread::create_for(&layout, &names(roster), &phase)?;
                Ok((layout, thread, true))
            }
        }
    }
}

pub(super) fn run(args: Ask, here: &Here) -> Result<Exit, Error> {
    carry_out(args, Job::Ask, here)
}

/// The shared implementation of `kd ask`, `kd council ask`, `retry` and `review`.
pub(super) fn carry_out(mut args: Ask, job: Job, here: &Here) -> Result<Exit, Error> {
    if args.address.is_some() {
        // Started to outlive the terminal: leave its session.
        let _ = rustix::process::setsid();
    }
    let Plan {
        op,
        roster,
        place,
        config,
        secrets,
        last,
    } = plan(&mut args, job, here)?;
    let quiet = args.output.quiet;
    if args.background {
        let (layout, thread, new) = place.enter(&roster, quiet, here)?;
        if new {
            layout.set_current_thread(thread.id())?;
        }
        return background::start(&args, &op, &roster, &layout, &thread);
    }
    let refusal = match op {
        Op::Retry { .. } => "no member could be asked again",
        _ => stage::UNASKED,
    };
    let mut asked = None;
    let (tell, made_current) = mpsc::channel();
    let ended = stage::perform(&args.output, false, here, refusal, || {
        let engine = Engine::new(Backends::new(&config, super::here::agents()));
        let engine = engine.telling(here.held_event()).masking(secrets);
        engine.prepare(at_once(&op, &roster, config.council.mode));
        let (layout, thread, new) = place.enter(&roster, quiet, here)?;
        let id = thread.id().clone();
        let folder = new.then(|| thread.path().to_path_buf());
        asked = Some((layout.clone(), id.clone(), folder));
        let conclude = config.council.conclude && !args.no_conclude;
        let mut open = opening(&config, roster, &thread, conclude, args.model.seed)?;
        open.last = last;
        // For the next command: the members need not wait for it.
        let then = move || {
            if new {
                let _ = tell.send(layout.set_current_thread(&id));
            }
        };
        let session = engine.open_and(thread, open, then)?;
        session.send(op)?;
        Ok(session)
    });
    let Some((layout, id, new)) = asked else {
        return ended.map(|ended| ended.exit());
    };
    // Removes agents that have ended by now from the members' states.
    let _ = agents::tidy(&layout);
    let ended = ended.inspect_err(|_| discard_unsaid(new.as_deref(), &layout))?;
    let mut go_on = "kd ask --continue".to_owned();
    if let Ok(Err(error)) = made_current.try_recv() {
        notice_line(&format!("`--continue` will not find this thread: {error}"));
        go_on = format!("kd ask --thread {}", id.0);
    }
    if !quiet && !ended.closed {
        closing(&ended.view, &id.0, &go_on, here);
    }
    Ok(ended.exit())
}

/// Removes the folder of a new thread if the question could not be written to it.
pub(super) fn discard_unsaid(new: Option<&std::path::Path>, layout: &Layout) {
    if let Some(Ok(thread)) = new.map(Thread::open_folder) {
        thread.discard_unsaid(layout);
    }
}

/// Reads the question, seats the council, finds or opens the thread. Fails before anything is written, if possible.
fn plan(args: &mut Ask, job: Job, here: &Here) -> Result<Plan, Error> {
    if matches!(job, Job::Ask) && may_choose(args) {
        choice::ask(here)?;
    }
    outfile::check(args.output.output.as_deref())?;
    let found = here.find_layout()?;
    if let Some(layout) = &found {
        sweep(layout, args.output.quiet);
    }
    let mut loaded = trust::settings(here, found.as_ref())?;
    args.spending.lay_over(&mut loaded.config.limits);
    args.privacy.lay_over(&mut loaded.config.council);
    let place = going_on(&args.going, found.as_ref(), here)?;
    let old = place.as_ref().map(Thread::open).transpose()?;
    // Must be known before any program is started.
    loaded.config.council.private |= old.as_ref().is_some_and(|t| t.meta().is_private());
    // The background command continues the thread; the user did not name it.
    let id = args.going.wanted().filter(|_| args.address.is_none());
    let thread = old.as_ref().zip(found.as_ref());
    let thread = thread.map(|(thread, layout)| trust::GoesOn::of(layout, thread, id));
    let phase = match &job {
        Job::Review(_) => REVIEW.to_owned(),
        _ => old
            .as_ref()
            .map_or(COUNCIL.into(), |t| t.meta().phase.clone()),
    };
    if phase == REVIEW && args.members.is_empty() && old.is_none() {
        args.members
            .clone_from(&loaded.config.council.review_members);
    }
    let named = trust::Named {
        members: &args.members,
        asked: &args.to,
        thread,
        reviews: phase == REVIEW,
    };
    if let Some(thread) = &named.thread {
        here.leave_out(&thread.left_out(&loaded.project));
    }
    let members = trust::check(&loaded.project, named)?;
    let seated = seats::seat(&loaded.config, args, members.as_deref())?;
    let mut question = match job {
        Job::Ask => Some(question::read("ask", &args.question, args.output.quiet)?),
        Job::Review(question) => Some(question),
        Job::Retry => None,
    };
    let masked = secrets::of(&loaded.config, args.privacy.allow_secrets);
    if let Some(question) = &mut question {
        secrets::mask(&masked, question, args.output.quiet);
    }
    if let Some(question) = &question {
        let held = loaded.project.agents.iter();
        let held: Vec<SeatName> = held.filter_map(|name| SeatName::new(name).ok()).collect();
        let said = mentions(&question.asked, &held.iter().collect::<Vec<_>>());
        trust::check_named(&loaded.project, said.seats.iter().map(SeatName::as_str))?;
    }
    let mut last = None;
    let op = match (question, &args.address) {
        (Some(question), Some(exactly)) => Op::Say {
            body: question.text,
            to: Address::parse(exactly),
        },
        (Some(question), None) => {
            let to = seats::address(&question, &args.to, &seated.roster)?;
            // For a message to everyone, the council reports it.
            if to != Address::All && !args.output.quiet {
                let miss = seats::near_miss(&question, &seated.roster);
                miss.iter().for_each(|notice| notice_line(notice));
            }
            Op::Say {
                to,
                body: question.text,
            }
        }
        (None, _) => {
            if let Some(thread) = &old {
                last = retriable(thread)?;
            }
            Op::Retry { seat: None }
        }
    };
    if !args.output.quiet {
        for notice in &loaded.notices {
            notice_line(notice);
        }
    }
    let writers: Vec<&str> = seated
        .roster
        .members()
        .iter()
        .filter(|member| member.writable && seats::has_hands(member))
        .map(|member| member.name.as_str())
        .collect();
    if !writers.is_empty() && !args.output.quiet {
        notice_line(&format!("may change files here: {}", writers.join(", ")));
    }
    let to = match &op {
        Op::Say { to, .. } => to.clone(),
        _ => Address::All,
    };
    let asked = seated.roster.members().iter();
    model::make_ready_for(
        &loaded.config,
        args.model.offline,
        args.output.quiet,
        &seated.roster,
        asked.filter(|member| to.is_for(&member.name)),
    )?;
    if seated.built_in && !args.output.quiet {
        first::notice(found.is_none());
    }
    let place = match (old, found) {
        (Some(thread), Some(layout)) => Place::Old(layout, Box::new(thread)),
        (_, found) => Place::New { phase, found },
    };
    Ok(Plan {
        op,
        last,
        roster: seated.roster,
        config: loaded.config,
        secrets: masked,
        place,
    })
}

/// Returns whether the question leaves the choice of members open, and a user is waiting for the answer.
fn may_choose(args: &Ask) -> bool {
    let named = !args.members.is_empty() || args.model.model.is_some() || args.privacy.private;
    let for_a_program = args.output.is_json() || args.output.quiet || args.background;
    let goes_on = args.address.is_some() || args.going.wanted().is_some();
    // A missing question is reported first.
    !named && !for_a_program && !goes_on && !args.question.is_empty()
}

/// Returns the newest round in a thread's log, if its members may be asked again.
fn retriable(thread: &Thread) -> Result<Option<LastRound>, Error> {
    if let Some(seat) = thread::running(thread)?.first() {
        let what = format!("{seat} is still answering");
        return Err(Error::new("busy", Exit::Error, what)
            .next("`kd council watch` follows it; retry when it has ended"));
    }
    let newest = super::show::newest(thread, 1)?;
    let turns = thread::turns(&newest.messages);
    let turn = turns.last().copied().unwrap_or_default();
    let last = thread::last_round(thread, turn)?;
    let king = turn.first().filter(|m| m.is_king());
    let kind = match (&last, king) {
        (Some(last), _) => last.kind,
        (None, king) => king.map(RoundKind::of).unwrap_or_default(),
    };
    if kind == RoundKind::Council {
        return Ok(last);
    }
    let command = kind.command();
    let what = format!(
        "the newest question was asked with `kd {command}`; `kd council retry` asks members of a council again"
    );
    let again = match kind {
        RoundKind::Debate => format!("`kd think --thread {} \"…\"` asks again", thread.id()),
        RoundKind::Review => "`kd review` reviews again, in a new thread".to_owned(),
        _ => "`kd deliberate \"…\"` asks again, in a new thread".to_owned(),
    };
    Err(Error::new("not_a_council", Exit::Error, what).next(again))
}

/// Returns the thread the user wants to continue, if any.
pub(super) fn going_on(
    going: &Going,
    found: Option<&Layout>,
    here: &Here,
) -> Result<Option<store::Place>, Error> {
    match (going.wanted(), found) {
        (None, _) => Ok(None),
        (Some(id), Some(layout)) => Ok(Some(thread::resolve(layout, Some(id))?)),
        (Some(_), None) => Err(here
            .layout()
            .err()
            .unwrap_or_else(|| Error::usage("there is no thread to continue"))),
    }
}

/// Creates a thread for these members.
pub(super) fn new_thread(roster: &Roster, quiet: bool, here: &Here) -> Result<Thread, Error> {
    Ok(Thread::create(&new_layout(quiet, here)?, &names(roster))?)
}

fn names(roster: &Roster) -> Vec<SeatName> {
    roster.members().iter().map(|m| m.name.clone()).collect()
}

/// Returns where new threads are created.
pub(super) fn new_layout(quiet: bool, here: &Here) -> Result<Layout, Error> {
    Ok(told(here.make_layout()?.layout, "the thread is", quiet))
}

/// Returns the layout; notes on stderr if new threads are not created in this folder.
pub(super) fn told(layout: Layout, what_is: &str, quiet: bool) -> Layout {
    if let Some(why) = layout.elsewhere().filter(|_| !quiet) {
        let place = format!("{what_is} saved in {}", layout.kd().display());
        notice_line(&match why {
            // The reason was reported when it was skipped.
            Elsewhere::PassedOver(_) => place,
            why => format!("{why}; {place}"),
        });
    }
    layout
}

/// Stops agents left by killed runs, and brings the members' states up to date.
pub(super) fn sweep(layout: &Layout, quiet: bool) {
    match agents::end_left_over(&super::here::user_dirs()) {
        Ok(0) => {}
        Ok(count) if !quiet => notice_line(&format!(
            "stopped {} left by a killed run",
            words::count(count as u64, "agent")
        )),
        Ok(_) => {}
        // The next run tries again; the command does not depend on it.
        Err(error) => notice_line(&format!(
            "cannot look for agents left by killed runs: {error}"
        )),
    }
    // States are only for display: failing to write one is not an error.
    let _ = agents::tidy(layout);
}

/// Returns the members that are asked at once.
fn at_once<'a>(
    op: &Op,
    roster: &'a Roster,
    mode: ProtocolKind,
) -> impl Iterator<Item = &'a Member> {
    let to = match op {
        Op::Say { to, .. } => to.clone(),
        _ => Address::King,
    };
    let alone = matches!(&to, Address::Seats(seats) if seats.len() == 1);
    let members = roster.members().iter();
    members.filter(move |m| (alone || mode.at_once) && to.is_for(&m.name))
}

/// Prepares a council that answers one question in a thread.
pub(super) fn opening(
    config: &Config,
    roster: Roster,
    thread: &Thread,
    conclude: bool,
    seed: Option<u64>,
) -> Result<OpenCouncil, Error> {
    Ok(OpenCouncil {
        thread: thread.id().clone(),
        protocol: config.council.mode,
        prompts: seats::prompts(config, &roster, &thread.meta().phase),
        history: thread.messages()?.messages,
        seed: seed.unwrap_or_else(clock_seed),
        limits: Budget {
            // One question, one round of answers; discussions must be configured.
            auto_messages: config.council.auto_messages.or(Some(0)),
            conclusion: conclusion_price(config, &roster),
            ..Budget::default()
        },
        conclude,
        roster,
        queue: None,
        last: None,
    })
}

/// Returns the maximum token price of the conclusion, if a limit is set: a member may write it instead of the chair.
fn conclusion_price(config: &Config, roster: &Roster) -> Option<Price> {
    if config.limits.ceiling() == Ceiling::default() {
        return None;
    }
    let who = roster.chair().into_iter().chain(roster.members());
    let prices = who.map(|member| Cost::of(config, member).price().unwrap_or_default());
    prices.reduce(|a, b| Price {
        input: a.input.max(b.input),
        output: a.output.max(b.output),
    })
}

/// Returns a seed for the order of speakers when the user gave none.
pub(super) fn clock_seed() -> u64 {
    Timestamp::now().as_nanosecond() as u64
}

/// Prints the last lines to stderr: the result, the usage, and how to continue.
pub(super) fn closing(view: &View, id: &str, go_on: &str, here: &Here) {
    let styles = here.err_styles();
    let mut parts: Vec<String> = words::outcome(view).into_iter().collect();
    if let Some((_, used)) = view.yielded() {
        parts.push(words::total(&used));
    }
    let dot = format!(" {} ", styles.glyph("·", "-"));
    let head = format!("{id}{dot}{}", parts.join(&dot));
    let (columns, _) = terminal::size_of_stderr().unwrap_or((u16::MAX, 0));
    let mut err = io::stderr().lock();
    for line in [
        head,
        format!("go on:  {go_on} \"…\""),
        format!("see it: kd council show {id}"),
    ] {
        for line in wrap(&line, usize::from(columns).saturating_sub(1)) {
            let _ = writeln!(err, "{}", styles.dim(&line));
        }
    }
}

pub(super) fn notice_line(text: &str) {
    let _ = writeln!(io::stderr(), "{}", crate::render::clean::line(text));
}

impl From<kd_engine::Error> for Error {
    fn from(error: kd_engine::Error) -> Self {
        let (code, exit) = match error {
            kd_engine::Error::Private(_) => ("private", Exit::Usage),
            _ => ("engine", Exit::Error),
        };
        Error::new(code, exit, error.to_string()).next(error.hint())
    }
}
