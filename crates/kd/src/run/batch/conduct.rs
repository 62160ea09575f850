//! Runs a batch with its progress, from the first question to the end, and handles signals.

use super::super::here::Here;
use super::super::notices::notice_line;
use super::super::worker::{Stop, Stops};
use super::fleet;
use crate::args::batch::Run;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::batch::{self as face, Clock};
use crate::face::json;
use kd_app::Runtime;
use kd_app::batch::{Batching, Ended, Running, Shelf, Told, Why};
use kd_tui::inline::Region;
use kd_tui::signals::{Caught, Signals, suspend};
use kd_tui::terminal::{self, Quiet};
use std::io::Write;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// Time between two frames: numbers that change faster cannot be read.
const FRAME: Duration = Duration::from_millis(200);

/// Runs the batch; returns the exit code.
pub(super) fn conduct(args: &Run, batching: Batching<'_>, here: &Here) -> Result<Exit, Error> {
    let repaint = here.can_repaint() && !args.plain && !args.json && !args.quiet;
    let quiet = args.quiet;
    if let Some(old) = batching.old()
        && old.counts.is_over()
    {
        return finished(args, &batching, here);
    }
    let runtime = Runtime::new()?;
    let screen = repaint.then(Quiet::enter);
    let mut show = Show {
        here,
        repaint,
        quiet,
        region: Region::default(),
        clock: Clock::start(),
        told: 0,
        stopping: false,
        asks: args.concurrency != Some(0),
        screen,
    };
    let played = runtime.block_on(play(args, batching, &mut show));
    show.clear();
    drop(show.screen.take());
    drop(runtime);
    let (ended, again) = played?;
    closing(args, &ended, again, here)?;
    Ok(exit(&ended))
}

/// Writes the results of a batch that is over, and says so.
fn finished(args: &Run, batching: &Batching<'_>, here: &Here) -> Result<Exit, Error> {
    let batch = batching.finished()?;
    let ended = Ended {
        why: Why::Over,
        batch,
        ended: 0,
    };
    if !args.quiet && !args.json {
        notice_line(&format!("{}: nothing is left to ask", ended.batch.about.id));
    }
    closing(args, &ended, false, here)?;
    Ok(exit(&ended))
}

/// The display of the progress.
struct Show<'h> {
    here: &'h Here,
    repaint: bool,
    quiet: bool,
    region: Region,
    clock: Clock,
    /// Tenths that were printed as lines.
    told: u64,
    /// Whether the user has stopped it.
    stopping: bool,
    /// Whether this process asks too.
    asks: bool,
    screen: Option<Quiet>,
}

async fn play(
    args: &Run,
    batching: Batching<'_>,
    show: &mut Show<'_>,
) -> Result<(Ended, bool), Error> {
    let mut signals = Signals::listen(show.screen.is_some())
        .map_err(|e| Error::new("io", Exit::Error, "cannot handle signals").because(e))?;
    let source = super::questions::name(&args.questions);
    let here = show.here;
    let mut running = batching.start()?;
    let mut told = running.told.take();
    show.begin(&running, &source, &args.how);
    let mut leaves = match fleet::store(&args.store, here)? {
        Some(_) => Some(Stops::listen()?),
        None => None,
    };
    let mut stops = 0_u32;
    let mut tick = tokio::time::interval(FRAME);
    loop {
        tokio::select! {
            ended = running.ended() => {
                show.tick(&running, true);
                return Ok((ended?, stops > 0));
            }
            Some(news) = next(&mut told) => show.tell(&news),
            () = leave(&mut leaves) => return Err(fleet::unanswered(&running.id)),
            _ = tick.tick() => show.tick(&running, false),
            signal = signals.next() => match signal {
                Caught::Interrupt | Caught::End => {
                    stops += 1;
                    show.stop(&running, stops);
                    // Requests at a provider continue there.
                    let waits = stops == 1 && !args.provider_batch;
                    if waits { running.drain() } else { running.stop() }
                }
                Caught::Suspend => show.rest(),
                Caught::Resize => show.region.forget(),
                Caught::Continue => {}
            },
        }
    }
}

/// Returns what happens at a provider next; never without a sender.
async fn next(told: &mut Option<UnboundedReceiver<Told>>) -> Option<Told> {
    match told {
        Some(told) => told.recv().await,
        None => None,
    }
}

/// Waits until a database has not answered for long after the second signal; for ever without one.
async fn leave(leaves: &mut Option<UnboundedReceiver<Stop>>) {
    while let Some(stops) = leaves {
        match stops.recv().await {
            Some(Stop::Leave) => return,
            Some(_) => {}
            None => *leaves = None,
        }
    }
    std::future::pending().await
}

impl Show<'_> {
    fn tell(&mut self, told: &Told) {
        if !self.quiet || matches!(told, Told::Warning(_)) {
            self.print_line(&face::told(told));
        }
    }

    fn begin(&self, running: &Running, source: &str, how: &str) {
        if !self.quiet {
            let progress = *running.progress.borrow();
            notice_line(&face::begins(
                &running.id,
                running.goes_on,
                source,
                how,
                &progress,
            ));
        }
    }

    fn tick(&mut self, running: &Running, last: bool) {
        let mut progress = *running.progress.borrow();
        progress.at_providers = running.at_providers();
        if self.repaint {
            let styles = self.here.out_styles();
            let columns = self.here.columns();
            let how = (columns, !self.stopping);
            let lines = face::region(&progress, self.clock.elapsed(), how, styles);
            if let Some(bytes) = self.region.frame(lines) {
                print(&bytes);
            }
        } else if !self.quiet {
            let tenths = progress.counts.ended() * 10 / progress.counts.total.max(1);
            let is_due = self.clock.is_due();
            if (tenths > self.told || is_due) && !last {
                self.told = tenths;
                self.clock.tell();
                notice_line(&face::line(&progress, self.clock.elapsed()));
            }
        }
    }

    fn stop(&mut self, running: &Running, stops: u32) {
        self.stopping = true;
        if self.quiet {
            return;
        }
        let open = running.progress.borrow().counts.running;
        let text = match running.at_providers() {
            Some(waiting) => face::leaving(waiting, stops),
            None => face::stopping(open, stops, self.asks),
        };
        self.print_line(&text);
    }

    /// Prints a line above the region.
    fn print_line(&mut self, text: &str) {
        match self.repaint {
            true => {
                let shown = self.region.lines();
                print(&self.region.print(text, shown));
            }
            false => notice_line(text),
        }
    }

    /// Suspends this process; meanwhile the terminal is the shell's.
    fn rest(&mut self) {
        print(self.region.cover());
        if let Some(screen) = &mut self.screen {
            screen.release();
            suspend();
            screen.resume();
        }
        self.region.forget();
    }

    fn clear(&mut self) {
        print(self.region.clear());
    }
}

fn print(bytes: &str) {
    let mut out = crate::out::stdout().lock();
    // If this cannot be written, there is no reader.
    let _ = out.write_all(bytes.as_bytes()).and_then(|()| out.flush());
}

/// Prints the state of the batch at the end, and what to do next.
fn closing(args: &Run, ended: &Ended, stopped: bool, here: &Here) -> Result<(), Error> {
    if args.quiet && !args.json {
        return Ok(());
    }
    let store = fleet::store(&args.store, here)?;
    let id = &ended.batch.about.id;
    let failures = match Shelf::open(store.as_ref(), here)? {
        Some(mut shelf) => shelf.member_failures(id, face::MEMBERS_SHOWN)?,
        None => Vec::new(),
    };
    if args.json {
        let mut value = face::object(&ended.batch, &[]);
        value["member_failures"] = serde_json::json!(failures);
        writeln!(crate::out::stdout(), "{}", json::text(&value, true)?)?;
        return Ok(());
    }
    let columns = terminal::size_of_stderr().map_or(usize::MAX, |(columns, _)| columns.into());
    let output = args.output.as_ref().map(|path| super::shown(path));
    let mut err = crate::out::stderr().lock();
    let output = output.as_deref();
    for line in face::closing(&ended.batch, &failures, ended.why, stopped, output, columns) {
        let _ = writeln!(err, "{}", here.err_styles().dim(&line));
    }
    if ended.why == Why::Stopped && store.is_some() {
        let line = fleet::others_go_on(id);
        let _ = writeln!(err, "{}", here.err_styles().dim(&line));
    }
    Ok(())
}

fn exit(ended: &Ended) -> Exit {
    let counts = &ended.batch.counts;
    match ended.why {
        Why::Limit => Exit::Cut,
        Why::Stopped => Exit::Interrupted,
        Why::Over if counts.failed + counts.cancelled == 0 => Exit::Done,
        Why::Over if counts.answered == 0 => Exit::Failed,
        Why::Over => Exit::Partial,
    }
}
