//! `kd council watch`: follows the newest round of a thread, whichever process runs it, using file-system
//! notifications.

use super::ask;
use super::here::Here;
use super::stage::{self, Stage};
use crate::args::ask::Output;
use crate::args::council::Watch as Args;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::Io;
use jiff::Timestamp;
use kd_app::Update;
use kd_app::follow::Follow;
use kd_app::threads::{Thread, Watch};
use kd_tui::signals::{Caught, Signals};
use kd_tui::terminal::Quiet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Interval between checks without a notification: a program that died changes no file.
const LOOK: Duration = Duration::from_secs(5);
/// Time after which a round counts as over: after the answers, the chair may begin.
const GRACE: Duration = Duration::from_millis(300);

/// The reason why watching ended.
enum Ended {
    /// The round is over.
    Over,
    /// The user left.
    Left,
    /// The time limit was reached.
    Late,
}

pub(super) fn run(args: &Args, here: &Here) -> Result<Exit, Error> {
    stage::check_file(&args.output, here)?;
    let (layout, place) = kd_app::threads::find(here, args.id.as_deref())?;
    kd_app::process::sweep(&here.env(args.output.quiet), &layout);
    let open = Thread::open(&place)?;
    let id = open.id().clone();
    let config = here.settings(Some(&layout))?.config;
    let watch = Watch::new(open.path())?;
    let mut follow = Follow::new(open, config)?;
    let repaint = stage::repaints(&args.output, here);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // Followers want to see a round grow, even in a pipe.
    let output = Output {
        plain: true,
        ..args.output.clone()
    };
    let mut stage = Stage::new(stage::face(&output, false, here, repaint));
    let screen = repaint.then(Quiet::enter);
    let ended = runtime.block_on(conduct(args, watch, &mut follow, &mut stage, screen))?;
    match ended {
        Ended::Over => {
            let ended = stage::finish(&args.output, false, stage, (&id, false), here)?;
            if !args.output.quiet && !ended.closed {
                ask::closing(&ended.view, &id.0, "kd ask --continue", here);
            }
            Ok(ended.exit())
        }
        Ended::Left => Ok(Exit::Interrupted),
        Ended::Late => Err(
            Error::new("timeout", Exit::Timeout, "the round is not over yet")
                .next(format!("still running: kd council watch {id}")),
        ),
    }
}

async fn conduct(
    args: &Args,
    watch: Watch,
    follow: &mut Follow,
    stage: &mut Stage,
    mut screen: Option<Quiet>,
) -> Result<Ended, Error> {
    let mut signals = Signals::listen(screen.is_some())?;
    let mut woken = wakes(watch);
    let end = args
        .timeout
        .and_then(|limit| Instant::now().checked_add(limit));
    let mut over_since: Option<Instant> = None;
    let mut told = false;
    let ended = loop {
        for record in follow.look()? {
            stage.hear(&Update::Record(Arc::new(record)));
        }
        if stage.closed {
            break Ended::Left;
        }
        // A stream that grows constantly causes constant wakeups.
        if end.is_some_and(|end| Instant::now() >= end) && !follow.is_over()? {
            break Ended::Late;
        }
        if follow.is_over()? {
            let since = *over_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= GRACE {
                stage.hear(&Update::Record(Arc::new(follow.yielded()?)));
                break Ended::Over;
            }
        } else {
            over_since = None;
            if !told && follow.is_deserted()? {
                told = true;
                let again = follow.again()?;
                notice(
                    stage,
                    &format!("no process is working on it: {again} (Ctrl+C quits)"),
                );
            }
        }
        let now = Timestamp::now();
        stage.show(|face, view, io| face.tick(now, view, io));
        let tick = stage.face.tick_in(now);
        let grace = over_since.map(|since| since + GRACE);
        tokio::select! {
            _ = woken.recv() => {}
            signal = signals.next() => match signal {
                Caught::Interrupt | Caught::End => break Ended::Left,
                Caught::Resize => stage.fit(),
                Caught::Suspend => stage.rest(screen.as_mut()),
                Caught::Continue => {}
            },
            () = stage::wait(tick), if tick.is_some() => {}
            () = sleep_until(grace.unwrap_or_else(Instant::now)), if grace.is_some() => {}
            () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => break Ended::Late,
        }
    };
    stage.show(|face, view, io| face.end(view, io));
    Ok(ended)
}

fn notice(stage: &mut Stage, line: &str) {
    stage.show(|face, _, io: &mut Io<'_>| face.notice(line, io));
}

/// Converts the watch to a stream of wakeups; its thread ends soon after the receiver is dropped.
fn wakes(watch: Watch) -> mpsc::Receiver<()> {
    let (wake, woken) = mpsc::channel(1);
    std::thread::spawn(move || {
        loop {
            watch.wait(LOOK);
            if wake.blocking_send(()).is_err() {
                return;
            }
        }
    });
    woken
}
