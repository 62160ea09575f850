//! A session on a face: from the king's words to the yielded floor. Comes in: how to open the session, the words, and how
//! to show what follows. Goes out: the round as it ended.

use super::here::Here;
use super::outfile;
use super::signals::{Signals, Wish, suspend};
use super::terminal::{self, Quiet};
use crate::args::ask::Output;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json::Json;
use crate::face::jsonl::JsonLines;
use crate::face::live::Live;
use crate::face::page::Page;
use crate::face::plain::Plain;
use crate::face::round::Round;
use crate::face::{Face, Io, document, json};
use jiff::Timestamp;
use kd_backends::transport::process;
use kd_core::{Event, Op, ThreadId};
use kd_engine::{Session, Subscription, Update};
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;

/// What it means when a question is refused.
pub(super) const UNASKED: &str = "the question could not be asked";
/// Updates that may wait for a slow reader of our output before the bus drops some: more than any round has.
const WAITING: usize = 1 << 16;
/// How long dropped calls get to close their connections and children when the person leaves at once.
pub(super) const FAREWELL: Duration = Duration::from_millis(200);
/// How long agent programs and their tools get to end before we leave: their grace is shorter.
pub(super) const CHILDREN: Duration = Duration::from_secs(3);

/// How it ended.
pub(super) struct Ended {
    pub(super) round: Round,
    /// The person stopped it.
    pub(super) stopped: bool,
    /// Nobody reads our output any more.
    pub(super) closed: bool,
}

impl Ended {
    /// The code to leave with.
    pub(super) fn exit(&self) -> Exit {
        match &self.round.yielded {
            _ if self.stopped || self.closed => Exit::Interrupted,
            Some((outcome, _)) => Exit::of_round(*outcome, self.round.failures()),
            None => Exit::Error,
        }
    }
}

/// Opens a session in which the king's words are said, and shows what follows until the floor is his again. `refusal`
/// says what it means when they cannot be; `council` also shows what seats write to each other.
pub(super) fn perform(
    output: &Output,
    council: bool,
    here: &Here,
    refusal: &str,
    open: impl FnOnce() -> Result<Session, Error>,
) -> Result<Ended, Error> {
    let repaint = repaints(output, here);
    let face = face(output, council, here, repaint);
    let (stage, id, stopped) = put_on(face, repaint, here.held_back(), refusal, open)?;
    finish(output, council, stage, &id, stopped)
}

/// How a round on a face of one's own ended.
pub(super) struct Played {
    /// The person stopped it.
    pub(super) stopped: bool,
    /// Nobody reads our output any more.
    pub(super) closed: bool,
}

/// The same on a face of one's own. `repaint` says that it paints the terminal.
pub(super) fn play(
    face: Box<dyn Face>,
    repaint: bool,
    refusal: &str,
    open: impl FnOnce() -> Result<Session, Error>,
) -> Result<Played, Error> {
    let (stage, id, stopped) = put_on(face, repaint, Vec::new(), refusal, open)?;
    if let Some(why) = stage.unwritten {
        return Err(
            Error::from(why).next(format!("partial answers are kept: kd council show {id}"))
        );
    }
    Ok(Played {
        stopped,
        closed: stage.closed,
    })
}

/// Has a session on a face, to its end: its thread, and whether the person stopped it.
fn put_on(
    face: Box<dyn Face>,
    repaint: bool,
    held_back: Vec<String>,
    refusal: &str,
    open: impl FnOnce() -> Result<Session, Error>,
) -> Result<(Stage, ThreadId, bool), Error> {
    // The face may block on a slow reader; the council runs on a thread of its own, so that it never waits for us.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(super::WORKERS)
        .enable_all()
        .build()
        .map_err(|e| Error::new("io", Exit::Error, "no thread could be started").because(e))?;
    let mut stage = Stage::new(face);
    stage.round.held_back = held_back;
    let screen = repaint.then(Quiet::enter);
    let ended = runtime.block_on(conduct(open, refusal, &mut stage, screen));
    runtime.shutdown_timeout(FAREWELL);
    // No agent program, and no tool of one, outlives us.
    process::settle(CHILDREN);
    let (id, stopped) = ended?;
    Ok((stage, id, stopped))
}

/// Whether a region of the terminal is painted again and again.
pub(super) fn repaints(output: &Output, here: &Here) -> bool {
    here.can_repaint() && !output.plain && !output.json && !output.jsonl
}

/// The last of a round: the file of `-o`, and what could not be written.
pub(super) fn finish(
    output: &Output,
    council: bool,
    stage: Stage,
    id: &ThreadId,
    stopped: bool,
) -> Result<Ended, Error> {
    let round = stage.round;
    if let Some(path) = &output.output {
        let text = if output.is_json() || outfile::is_json(path) {
            json::text(&json::object(&round, council), true)? + "\n"
        } else {
            document::markdown(&round)
        };
        outfile::write(path, text.as_bytes())?;
    }
    if let Some(why) = stage.unwritten {
        return Err(
            Error::from(why).next(format!("partial answers are kept: kd council show {id}"))
        );
    }
    Ok(Ended {
        round,
        stopped,
        closed: stage.closed,
    })
}

/// How a round is shown.
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

/// The face and what it has seen.
pub(super) struct Stage {
    pub(super) face: Box<dyn Face>,
    round: Round,
    /// Nobody reads our output any more.
    pub(super) closed: bool,
    /// Why it could not be written, where that is an error and not a reader who left.
    unwritten: Option<io::Error>,
}

impl Stage {
    /// An empty stage.
    pub(super) fn new(face: Box<dyn Face>) -> Self {
        Self {
            face,
            round: Round::default(),
            closed: false,
            unwritten: None,
        }
    }

    /// Lets the face do something. Output that cannot be written ends the round, but never before partial answers are kept:
    /// so it is remembered here.
    pub(super) fn show(
        &mut self,
        act: impl FnOnce(&mut dyn Face, &Round, &mut Io<'_>) -> io::Result<()>,
    ) {
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

    /// The terminal has another size.
    pub(super) fn fit(&mut self) {
        if let Some((columns, rows)) = terminal::size() {
            self.face.resize(columns, rows);
        }
    }

    /// Stops this process until it is called to the foreground again; the terminal is the shell's meanwhile.
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

/// Carries the round from the question to the yielded floor: its thread, and whether the person stopped it.
async fn conduct(
    open: impl FnOnce() -> Result<Session, Error>,
    refusal: &str,
    stage: &mut Stage,
    mut screen: Option<Quiet>,
) -> Result<(ThreadId, bool), Error> {
    let mut signals = Signals::listen(screen.is_some())
        .map_err(|e| Error::new("io", Exit::Error, "signals cannot be heard").because(e))?;
    let mut session = open()?;
    let id = session.thread().clone();
    let mut updates = take(session.subscribe());
    let mut stopped = false;
    loop {
        let tick = stage.face.tick_in(Timestamp::now());
        tokio::select! {
            update = updates.recv() => {
                // Many pieces at once are one frame.
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
                    return Ok((id, true));
                }
                Wish::Stop => {
                    stopped = true;
                    stage.show(|face, _, io| face.notice("stopping; partial answers are kept (press Ctrl+C again to leave at once)", io));
                    session.send(Op::Interrupt)?;
                }
                Wish::Resize => stage.fit(),
                Wish::Suspend => stage.rest(screen.as_mut()),
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
    Ok((id, stopped))
}

pub(super) async fn wait(tick: Option<Duration>) {
    tokio::time::sleep(tick.unwrap_or_default()).await;
}

/// Takes updates off the bus as they come, so that a slow reader of our output loses none.
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
