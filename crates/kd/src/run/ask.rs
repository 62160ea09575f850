//! `kd ask`: opens a thread, asks, shows the round through one face, and says how it went.

use super::here::Here;
use super::outfile;
use super::question::{self, Question};
use super::signals::{Signals, Wish, suspend};
use super::terminal::{self, Quiet};
use super::{first, model, seats, thread};
use crate::args::ask::Ask;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json::Json;
use crate::face::jsonl::JsonLines;
use crate::face::live::Live;
use crate::face::plain::Plain;
use crate::face::round::Round;
use crate::face::{Face, Io, document, json, words};
use crate::render::wrap::wrap;
use jiff::Timestamp;
use kd_backends::transport::process;
use kd_core::config::Config;
use kd_core::{Address, Budget, Event, Op, OpenCouncil, Roster};
use kd_engine::{Engine, Session, Update};
use kd_store::Thread;
use std::io::{self, Write};
use std::time::Duration;
use tokio::sync::mpsc;

/// Updates that may wait for a slow reader of our output before the bus drops some: more than any round has.
const WAITING: usize = 1 << 16;
/// How long dropped calls get to close their connections and children when the person leaves at once.
const FAREWELL: Duration = Duration::from_millis(200);
/// How long agent programs and their tools get to end before we leave: their grace is shorter.
const CHILDREN: Duration = Duration::from_secs(3);

/// What is to be done, decided before anything is opened.
struct Plan {
    question: Question,
    to: Address,
    roster: Roster,
    config: Config,
    thread: Thread,
}

pub(super) fn run(args: Ask, here: &Here) -> Result<Exit, Error> {
    let quiet = args.output.quiet;
    let plan = plan(&args, here)?;
    let id = plan.thread.id().clone();
    let repaint =
        here.can_repaint() && !args.output.plain && !args.output.json && !args.output.jsonl;
    // The face may block on a slow reader; the council runs on a thread of its own, so that it never waits for us.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| Error::new("io", Exit::Error, "no thread could be started").because(e))?;
    let mut stage = Stage {
        face: face(&args, here, repaint),
        round: Round::default(),
        closed: false,
        unwritten: None,
    };
    let screen = repaint.then(Quiet::enter);
    let ended = runtime.block_on(conduct(&args, plan, &mut stage, screen));
    runtime.shutdown_timeout(FAREWELL);
    // No agent program, and no tool of one, outlives us.
    process::settle(CHILDREN);
    let stopped = ended?;
    let round = &stage.round;
    if let Some(path) = &args.output.output {
        let text = if args.output.json || args.output.jsonl || outfile::is_json(path) {
            json::text(&json::object(round), true)? + "\n"
        } else {
            document::markdown(round)
        };
        outfile::write(path, text.as_bytes())?;
    }
    if let Some(why) = stage.unwritten {
        return Err(Error::from(why).next(format!("what came is kept: kd council show {id}")));
    }
    if !quiet && !stage.closed {
        closing(round, &id.0, here);
    }
    Ok(match &round.yielded {
        _ if stopped || stage.closed => Exit::Interrupted,
        Some((outcome, _)) => Exit::of_round(*outcome, round.timeouts_only()),
        None => Exit::Error,
    })
}

/// Reads the question, seats the council, finds or opens the thread. Fails before anything is written, if it can.
fn plan(args: &Ask, here: &Here) -> Result<Plan, Error> {
    let found = here.find_layout()?;
    let loaded = here.config(found.as_ref())?;
    let wanted = args.thread.as_deref().or(args.resume.as_deref());
    let place = match (wanted, &found) {
        (None, _) => None,
        (Some(id), Some(layout)) => Some(thread::resolve(layout, Some(id))?),
        (Some(_), None) => {
            return Err(here
                .layout()
                .err()
                .unwrap_or_else(|| Error::usage("there is no thread to go on with")));
        }
    };
    let old = place.as_ref().map(Thread::open).transpose()?;
    let members = old.as_ref().map(Thread::members);
    let seated = seats::seat(&loaded.config, args, members.as_deref())?;
    let question = question::read(&args.question, args.output.quiet)?;
    let to = seats::address(&question, &args.to, &seated.roster)?;
    if !args.output.quiet {
        for notice in &loaded.notices {
            notice_line(notice);
        }
    }
    model::make_ready(&loaded.config, args, &seated.roster)?;
    if seated.built_in && !args.output.quiet {
        first::notice(found.is_none());
    }
    let thread = match old {
        Some(thread) => thread,
        None => {
            let opened = here.make_layout()?;
            if opened.elsewhere && !args.output.quiet {
                notice_line(&format!(
                    "this folder cannot be written; the thread is kept in {}",
                    opened.layout.kd().display()
                ));
            }
            let names: Vec<_> = seated
                .roster
                .members()
                .iter()
                .map(|m| m.name.clone())
                .collect();
            Thread::create(&opened.layout, &names)?
        }
    };
    Ok(Plan {
        question,
        to,
        roster: seated.roster,
        config: loaded.config,
        thread,
    })
}

fn face(args: &Ask, here: &Here, repaint: bool) -> Box<dyn Face> {
    let quiet = args.output.quiet;
    if args.output.json {
        Box::new(Json::new(quiet))
    } else if args.output.jsonl {
        Box::new(JsonLines::new(quiet))
    } else if repaint {
        let (columns, rows) = terminal::size().unwrap_or((80, 24));
        let shared = io::IsTerminal::is_terminal(&io::stderr());
        Box::new(Live::new(here.out_styles(), columns, rows, quiet, shared))
    } else {
        Box::new(Plain::new(here.out_styles(), quiet))
    }
}

/// The face and what it has seen.
struct Stage {
    face: Box<dyn Face>,
    round: Round,
    /// Nobody reads our output any more.
    closed: bool,
    /// Why it could not be written, where that is an error and not a reader who left.
    unwritten: Option<io::Error>,
}

impl Stage {
    /// Lets the face do something. Output that cannot be written ends the round, but never before what came is kept:
    /// so it is remembered here.
    fn show(&mut self, act: impl FnOnce(&mut dyn Face, &Round, &mut Io<'_>) -> io::Result<()>) {
        if self.closed {
            return;
        }
        let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
        let mut io = Io {
            out: &mut out,
            err: &mut err,
        };
        if let Err(e) = act(self.face.as_mut(), &self.round, &mut io) {
            self.closed = true;
            self.unwritten = (e.kind() != io::ErrorKind::BrokenPipe).then_some(e);
        }
    }

    fn hear(&mut self, update: &Update) {
        match update {
            Update::Record(record) => {
                self.round.apply(record);
                self.show(|face, round, io| face.hear(record, round, io))
            }
            Update::Lagged(view) => {
                self.round.catch_up(view);
                self.show(|face, round, io| face.catch_up(round, io))
            }
        }
    }

    /// Whether the king's words could not be taken, so that no round will come.
    fn refused(&self, update: &Update) -> Option<String> {
        match update {
            Update::Record(record) => match &record.event {
                Event::OpRefused { why } if self.round.question.is_none() => Some(why.clone()),
                Event::SaveFailed { turn: None, why } => Some(why.clone()),
                _ => None,
            },
            Update::Lagged(_) => None,
        }
    }
}

/// Carries the round from the question to the yielded floor; true if the person stopped it.
async fn conduct(
    args: &Ask,
    plan: Plan,
    stage: &mut Stage,
    mut screen: Option<Quiet>,
) -> Result<bool, Error> {
    let mut signals = Signals::listen(screen.is_some())
        .map_err(|e| Error::new("io", Exit::Error, "signals cannot be heard").because(e))?;
    let (question, to) = (plan.question.text.clone(), plan.to.clone());
    let mut session = open(args, plan)?;
    let mut updates = follow(&mut session);
    session.send(Op::Say { body: question, to })?;
    let mut stopped = false;
    loop {
        let tick = stage.face.tick_in(Timestamp::now());
        tokio::select! {
            update = updates.recv() => {
                let Some(update) = update else { break };
                stage.hear(&update);
                if let Some(why) = stage.refused(&update) {
                    return Err(Error::new("refused", Exit::Error, "the question could not be asked").because(why));
                }
                // Many pieces at once are one frame.
                while let Ok(update) = updates.try_recv() {
                    stage.hear(&update);
                }
                if stage.round.yielded.is_some() {
                    break;
                }
                if stage.closed && !stopped {
                    stopped = true;
                    session.send(Op::Interrupt)?;
                }
            }
            wish = signals.next() => match wish {
                Wish::Stop if stopped => {
                    // The second time means: at once. Dropping the session stops all calls.
                    stage.show(|face, round, io| face.end(round, io));
                    return Ok(true);
                }
                Wish::Stop => {
                    stopped = true;
                    stage.show(|face, _, io| face.notice("stopping; what came is kept (once more to leave at once)", io));
                    session.send(Op::Interrupt)?;
                }
                Wish::Resize => {
                    if let Some((columns, rows)) = terminal::size() {
                        stage.face.resize(columns, rows);
                    }
                }
                Wish::Suspend => {
                    if let Some(screen) = &mut screen {
                        stage.show(|face, _, io| face.hide(io));
                        screen.release();
                        suspend();
                        screen.resume();
                        stage.face.repaint();
                    }
                }
            },
            () = wait(tick), if tick.is_some() => {}
        }
        let now = Timestamp::now();
        stage.show(|face, round, io| face.tick(now, round, io));
    }
    // Whatever is still to be written is written; a second wish to stop ends the wait.
    tokio::select! {
        () = session.close() => {}
        () = async { while signals.next().await != Wish::Stop {} } => {}
    }
    while let Ok(update) = updates.try_recv() {
        stage.hear(&update);
    }
    stage.show(|face, round, io| face.end(round, io));
    drop(screen);
    Ok(stopped)
}

async fn wait(tick: Option<Duration>) {
    tokio::time::sleep(tick.unwrap_or_default()).await;
}

fn open(args: &Ask, plan: Plan) -> Result<Session, Error> {
    let history = plan.thread.messages()?.messages;
    let open = OpenCouncil {
        thread: plan.thread.id().clone(),
        protocol: plan.config.council.mode.into(),
        prompts: seats::prompts(&plan.config, &plan.roster),
        history,
        seed: args.seed.unwrap_or_else(clock_seed),
        limits: Budget {
            // One question, one round of answers: a discussion is asked for in the configuration.
            auto_messages: plan.config.council.auto_messages.or(Some(0)),
            ..Budget::default()
        },
        conclude: plan.config.council.conclude && !args.no_conclude,
        roster: plan.roster,
    };
    let hands = kd_backends::Hands::new(&plan.config, kd_backends::Options::default());
    Ok(Engine::new(hands).open(plan.thread, open)?)
}

/// A seed for the order of speakers where the person gave none.
fn clock_seed() -> u64 {
    Timestamp::now().as_nanosecond() as u64
}

/// Takes updates off the bus as they come, so that a slow reader of our output loses none.
fn follow(session: &mut Session) -> mpsc::Receiver<Update> {
    let mut bus = session.subscribe();
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        while let Some(update) = bus.next().await {
            if sender.send(update).await.is_err() {
                break;
            }
        }
    });
    receiver
}

/// The last lines on stderr: how it went, what it used, and how to go on.
fn closing(round: &Round, id: &str, here: &Here) {
    let styles = here.err_styles();
    let mut parts: Vec<String> = words::outcome(round).into_iter().collect();
    if let Some((_, used)) = &round.yielded {
        parts.push(words::usage(used));
    }
    let dot = format!(" {} ", styles.glyph("·", "-"));
    let head = format!("{id}{dot}{}", parts.join(&dot));
    let (columns, _) = terminal::size_of_stderr().unwrap_or((u16::MAX, 0));
    let mut err = io::stderr().lock();
    for line in [
        head,
        "go on:  kd ask --continue \"…\"".to_owned(),
        format!("see it: kd council show {id}"),
    ] {
        for line in wrap(&line, usize::from(columns).saturating_sub(1)) {
            let _ = writeln!(err, "{}", styles.dim(&line));
        }
    }
}

fn notice_line(text: &str) {
    let _ = writeln!(io::stderr(), "{}", crate::render::clean::line(text));
}

impl From<kd_engine::Error> for Error {
    fn from(error: kd_engine::Error) -> Self {
        Error::new("engine", Exit::Error, error.to_string()).next(error.hint())
    }
}
