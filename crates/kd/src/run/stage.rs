//! Runs a session with its output, from the user's message to the end of the round. Takes a function that opens the
//! session, the message, and an output; returns the finished round.

#![deny(clippy::wildcard_enum_match_arm)]

use super::here::Here;
use crate::args::ask::Output;
use crate::error::Error;
use crate::exit::{Exit, Failures};
use crate::face::json::Json;
use crate::face::jsonl::JsonLines;
use crate::face::live::Live;
use crate::face::page::Page;
use crate::face::plain::Plain;
use crate::face::value::ValueOnly;
use crate::face::{Face, Io, document, json};
use jiff::Timestamp;
use kd_app::export::Format;
use kd_app::outfile;
use kd_app::threads::Thread;
use kd_app::{Runtime, Session, Subscription, Update};
use kd_core::view::View;
use kd_core::{Event, Op, ThreadId};
use kd_tui::signals::{Caught, Signals, suspend};
use kd_tui::terminal::{self, Quiet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Error text if a question is refused.
pub(super) const UNASKED: &str = "cannot ask the question";
/// Updates that may queue for a slow reader of our output before the bus drops some: more than any round has.
const WAITING: usize = 1 << 16;

/// The end of a round.
pub(super) struct Ended {
    pub(super) view: View,
    /// Whether the user stopped it.
    pub(super) stopped: bool,
    /// Whether our output was closed.
    pub(super) closed: bool,
}

impl Ended {
    /// Returns the exit code.
    pub(super) fn exit(&self) -> Exit {
        match self.view.outcome {
            _ if self.stopped || self.closed => Exit::Interrupted,
            Some(outcome) => {
                Exit::of_round(outcome, Failures::of(&self.view)).with_output(&self.view)
            }
            None => Exit::Error,
        }
    }
}

/// The items that an output shows besides answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shows {
    /// The messages between members.
    pub(super) council: bool,
    /// The answer in a JSON schema: alone in a pipe.
    pub(super) value: bool,
}

/// Opens a session, sends the user's message, and shows what follows until the round is over. `refusal` is the error
/// text if the message is refused.
pub(super) fn perform(
    output: &Output,
    shows: Shows,
    here: &Here,
    refusal: &str,
    open: impl FnOnce() -> Result<Session, Error>,
) -> Result<Ended, Error> {
    let repaint = repaints(output, here);
    let council = shows.council;
    let mut face = face(output, council, here, repaint);
    if shows.value && is_value_only(output) {
        face = Box::new(ValueOnly::new(face));
    }
    let (stage, id, stopped) = put_on(face, repaint, refusal, open)?;
    finish(output, council, stage, (&id, stopped), here)
}

/// The end of a round with a custom output.
pub(super) struct Played {
    /// The view at the end.
    pub(super) view: View,
    /// Whether the user stopped it.
    pub(super) stopped: bool,
    /// Whether our output was closed.
    pub(super) closed: bool,
}

/// Like [`perform`], with a custom output. `repaint` says that it repaints the terminal.
pub(super) fn play(
    face: Box<dyn Face>,
    repaint: bool,
    refusal: &str,
    open: impl FnOnce() -> Result<Session, Error>,
) -> Result<Played, Error> {
    let (stage, id, stopped) = put_on(face, repaint, refusal, open)?;
    if let Some(why) = stage.unwritten {
        return Err(Error::from(why).next(format!("partial answers are saved: kd show {id}")));
    }
    Ok(Played {
        view: stage.view,
        stopped,
        closed: stage.closed,
    })
}

/// Runs a session with its output to the end; returns its thread, and whether the user stopped it.
fn put_on(
    face: Box<dyn Face>,
    repaint: bool,
    refusal: &str,
    open: impl FnOnce() -> Result<Session, Error>,
) -> Result<(Stage, ThreadId, bool), Error> {
    // Output may block on a slow reader; the council runs on a separate thread, so that it never waits for it.
    let runtime = Runtime::new()?;
    let mut stage = Stage::new(face);
    let screen = repaint.then(Quiet::enter);
    let ended = runtime.block_on(conduct(open, refusal, &mut stage, screen));
    drop(runtime);
    let (id, stopped) = ended?;
    Ok((stage, id, stopped))
}

/// Returns whether a region of the terminal is repainted.
pub(super) fn repaints(output: &Output, here: &Here) -> bool {
    here.can_repaint() && !output.plain && !output.json && !output.jsonl
}

/// Returns whether an answer in a JSON schema is printed without anything else: into a pipe or a file.
pub(super) fn is_value_only(output: &Output) -> bool {
    let is_terminal = io::IsTerminal::is_terminal(&io::stdout());
    !output.is_json() && !output.plain && !is_terminal
}

/// Fails if the `-o` file could not be written, or its format is unknown: checked before any member is asked.
pub(super) fn check_file(output: &Output, here: &Here) -> Result<(), Error> {
    file_format(output)?;
    Ok(outfile::check(output.output.as_deref(), here)?)
}

/// Returns the format of the `-o` file.
fn file_format(output: &Output) -> Result<Format, Error> {
    Ok(match &output.output {
        Some(path) if !output.is_json() => Format::of_name(path)?,
        _ => Format::Json,
    })
}

/// Finishes a round: writes the `-o` file, and reports output errors.
pub(super) fn finish(
    output: &Output,
    council: bool,
    stage: Stage,
    (id, stopped): (&ThreadId, bool),
    here: &Here,
) -> Result<Ended, Error> {
    let view = stage.view;
    if let Some(path) = &output.output {
        let text = match file_format(output)? {
            Format::Json => json::text(&json::object(&view, council), true)? + "\n",
            Format::Md => document::markdown(&view),
            Format::Html => {
                let (_, place) = kd_app::threads::find(here, Some(&id.0))?;
                kd_app::export::text(&Thread::open(&place)?, Format::Html, here)?
            }
        };
        outfile::write(path, text.as_bytes(), here)?;
    }
    if let Some(why) = stage.unwritten {
        return Err(Error::from(why).next(format!("partial answers are saved: kd show {id}")));
    }
    Ok(Ended {
        view,
        stopped,
        closed: stage.closed,
    })
}

/// Selects the output of a round.
pub(super) fn face(output: &Output, council: bool, here: &Here, repaint: bool) -> Box<dyn Face> {
    let quiet = output.quiet;
    if output.json {
        Box::new(Json::new(quiet).with_council(council))
    } else if output.jsonl {
        Box::new(JsonLines::new(quiet).with_council(council))
    } else if repaint {
        let (columns, rows) = terminal::size().unwrap_or((80, 24));
        let shared = io::IsTerminal::is_terminal(&io::stderr());
        Box::new(Live::new(here.out_styles(), columns, rows, quiet, shared).with_council(council))
    } else if !output.plain && !council && !io::IsTerminal::is_terminal(&io::stdout()) {
        Box::new(Page::new(quiet))
    } else {
        Box::new(Plain::new(here.out_styles(), quiet).with_council(council))
    }
}

/// The output and what it has shown.
pub(super) struct Stage {
    pub(super) face: Box<dyn Face>,
    view: View,
    /// Whether our output was closed.
    pub(super) closed: bool,
    /// The write error, unless the reader merely closed the output.
    unwritten: Option<io::Error>,
}

impl Stage {
    /// Creates a stage before the first record.
    pub(super) fn new(face: Box<dyn Face>) -> Self {
        Self {
            face,
            view: View::default(),
            closed: false,
            unwritten: None,
        }
    }

    /// Calls the output. A write error ends the round, but only after partial answers are saved, so it is stored here.
    pub(super) fn show(
        &mut self,
        act: impl FnOnce(&mut dyn Face, &View, &mut Io<'_>) -> io::Result<()>,
    ) {
        if self.closed {
            return;
        }
        let (mut out, mut err) = (crate::out::stdout().lock(), crate::out::stderr().lock());
        let mut io = Io {
            out: &mut out,
            err: &mut err,
        };
        if let Err(e) = act(self.face.as_mut(), &self.view, &mut io) {
            self.closed = true;
            self.unwritten = (e.kind() != io::ErrorKind::BrokenPipe).then_some(e);
        }
    }

    /// Adapts to a resized terminal.
    pub(super) fn fit(&mut self) {
        if let Some((columns, rows)) = terminal::size() {
            self.face.resize(columns, rows);
        }
    }

    /// Suspends this process until it is in the foreground again; meanwhile the terminal is the shell's.
    pub(super) fn rest(&mut self, screen: Option<&mut Quiet>) {
        if let Some(screen) = screen {
            self.show(|face, _, io| face.hide(io));
            screen.release();
            suspend();
            screen.resume();
            self.face.repaint();
        }
    }

    pub(super) fn hear(&mut self, update: &Update) {
        match update {
            Update::Record(record) => {
                self.view.fold_record(record);
                self.show(|face, view, io| face.hear(record, view, io))
            }
            Update::Lagged(view) => {
                self.view.clone_from(view);
                self.show(|face, view, io| face.catch_up(view, io))
            }
        }
    }

    /// Returns the reason if the user's message was refused, so that there will be no round.
    fn refused(&self, update: &Update) -> Option<String> {
        let Update::Record(record) = update else {
            return None;
        };
        let early = self.view.question.is_none();
        if let Event::SaveFailed { turn: None, why } = &record.event {
            Some(why.clone())
        } else if let Event::OpRefused { why } = &record.event
            && early
        {
            Some(why.clone())
        } else {
            None
        }
    }
}

/// Ends the program at the second request to stop that arrives during the same write. If our output is not read, the loop
/// that handles signals waits for that write. Must be called inside a tokio runtime.
pub(super) fn end_if_unread() -> Result<(), Error> {
    let mut signals = listen(false)?;
    tokio::spawn(async move {
        let mut waited = None;
        loop {
            signals.stopped().await;
            let waits = crate::out::waits();
            if waits.is_some() && waits == waited {
                std::process::exit(Exit::Interrupted as i32);
            }
            waited = waits;
        }
    });
    Ok(())
}

/// The signals that a session gets. Those that ask to stop reach it at once, also while a write waits for the reader of our
/// output.
pub(super) struct Stops {
    /// Every signal, after the session got what it asks for, and whether it is a second request to stop.
    caught: mpsc::UnboundedReceiver<(Caught, bool)>,
    /// Whether the next request to stop is a second one.
    is_second: Arc<AtomicBool>,
    listening: JoinHandle<()>,
}

impl Stops {
    /// Passes signals on to a session. `ops` returns what a request to stop means there, by whether it is the second one.
    pub(super) fn of(
        mut signals: Signals,
        session: &Session,
        ops: impl Fn(Caught, bool) -> Vec<Op> + Send + 'static,
    ) -> Self {
        let (sender, caught) = mpsc::unbounded_channel();
        let is_second = Arc::new(AtomicBool::new(false));
        let (second, remote) = (is_second.clone(), session.remote());
        let listening = tokio::spawn(async move {
            loop {
                let signal = signals.next().await;
                let is_second = signal.stops() && second.swap(true, Ordering::SeqCst);
                // Sent first, so that a reader who sees the effect finds the cause.
                if sender.send((signal, is_second)).is_err() {
                    return;
                }
                if signal.stops() {
                    let ops = ops(signal, is_second);
                    ops.into_iter().for_each(|op| remote.send(op));
                }
            }
        });
        Self {
            caught,
            is_second,
            listening,
        }
    }

    /// Sets whether the next request to stop is a second one.
    pub(super) fn set_second(&self, is_second: bool) {
        self.is_second.store(is_second, Ordering::SeqCst);
    }

    /// Returns the next signal, and whether it is a second request to stop.
    pub(super) async fn next(&mut self) -> (Caught, bool) {
        match self.caught.recv().await {
            Some(caught) => caught,
            None => std::future::pending().await,
        }
    }

    /// Returns a signal that has arrived, if any.
    pub(super) fn arrived(&mut self) -> Option<(Caught, bool)> {
        self.caught.try_recv().ok()
    }

    /// Waits until a signal asks to stop.
    pub(super) async fn stopped(&mut self) {
        while !self.next().await.0.stops() {}
    }
}

impl Drop for Stops {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Starts to listen to signals.
pub(super) fn listen(suspend: bool) -> Result<Signals, Error> {
    let failed = |e| Error::new("io", Exit::Error, "cannot handle signals").because(e);
    Signals::listen(suspend).map_err(failed)
}

/// Runs the round from the question to its end; returns its thread, and whether the user stopped it.
async fn conduct(
    open: impl FnOnce() -> Result<Session, Error>,
    refusal: &str,
    stage: &mut Stage,
    mut screen: Option<Quiet>,
) -> Result<(ThreadId, bool), Error> {
    let signals = listen(screen.is_some())?;
    end_if_unread()?;
    let mut session = open()?;
    let mut signals = Stops::of(signals, &session, |_, is_second| match is_second {
        true => Vec::new(),
        false => vec![Op::Interrupt],
    });
    let id = session.thread().clone();
    if let Some(view) = session.take_opening() {
        stage.view = view;
    }
    let mut updates = take(session.subscribe());
    let mut stopped = false;
    loop {
        let tick = stage.face.tick_in(Timestamp::now());
        tokio::select! {
            update = updates.recv() => {
                // Many pieces at once become one frame.
                let mut next = update;
                if next.is_none() {
                    break;
                }
                while let Some(update) = next {
                    stage.hear(&update);
                    if let Some(why) = stage.refused(&update) {
                        return Err(Error::new("refused", Exit::Error, refusal).because(why));
                    }
                    next = updates.try_recv().ok();
                }
                if stage.view.outcome.is_some() {
                    break;
                }
                if stage.closed && !stopped {
                    stopped = true;
                    session.send(Op::Interrupt)?;
                }
            }
            (signal, _) = signals.next() => match signal {
                Caught::Interrupt | Caught::End if stopped => {
                    // The second request stops immediately: dropping the session stops all calls.
                    stage.show(|face, view, io| face.end(view, io));
                    return Ok((id, true));
                }
                Caught::Interrupt | Caught::End => {
                    stopped = true;
                    stage.show(|face, _, io| face.notice("stopping; partial answers are saved (press Ctrl+C again to quit at once)", io));
                }
                Caught::Resize => stage.fit(),
                Caught::Suspend => stage.rest(screen.as_mut()),
                Caught::Continue => {}
            },
            () = wait(tick), if tick.is_some() => {}
        }
        let now = Timestamp::now();
        stage.show(|face, view, io| face.tick(now, view, io));
    }
    // The round may have ended because of a signal that was not looked at yet.
    while let Some((signal, _)) = signals.arrived() {
        stopped |= signal.stops();
    }
    // Waits until pending messages are written; another stop request ends the wait.
    tokio::select! {
        () = session.close() => {}
        () = signals.stopped() => {}
    }
    while let Ok(update) = updates.try_recv() {
        stage.hear(&update);
    }
    stage.show(|face, view, io| face.end(view, io));
    drop(screen);
    Ok((id, stopped))
}

pub(super) async fn wait(tick: Option<Duration>) {
    tokio::time::sleep(tick.unwrap_or_default()).await;
}

/// Takes updates off the bus as they arrive, so that a slow reader of our output loses none.
pub(super) fn take(mut bus: Subscription) -> mpsc::Receiver<Update> {
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
