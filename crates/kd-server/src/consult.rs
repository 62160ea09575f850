//! Runs a consultation from the question to its end: reports progress, and stops when the caller cancels or
//! disconnects.

#![deny(clippy::wildcard_enum_match_arm)]

use crate::answer::{Answer, Told};
use crate::error::NoAnswer;
use crate::metrics::Metrics;
use kd_app::{Started, Update};
use kd_core::{Event, Op};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// How long stopped councils may take to save partial answers.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Maximum time to write the user's message.
const WRITTEN_WITHIN: Duration = Duration::from_secs(30);

/// The consultations of one server. Each runs in its own task, so that partial answers are saved even if the caller
/// disconnects.
#[derive(Clone, Default)]
pub(crate) struct Consultations {
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Counts them.
    pub(crate) metrics: Metrics,
}

/// Sends ops to a running consultation.
#[derive(Clone)]
pub(crate) struct OpSender(UnboundedSender<Op>);

impl OpSender {
    /// Sends an op to its session; false if it is over.
    pub(crate) fn send(&self, op: Op) -> bool {
        self.0.send(op).is_ok()
    }

    /// Returns whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_closed()
    }
}

/// A running consultation. Dropping it interrupts the council.
pub(crate) struct Running {
    /// Its progress, until the end.
    pub(crate) told: UnboundedReceiver<Told>,
    ended: JoinHandle<Result<Answer, NoAnswer>>,
    stop: CancellationToken,
    wishes: OpSender,
    _left: DropGuard,
}

impl Running {
    /// Interrupts the council; the answer consists of the text received so far.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns a sender of ops to it.
    pub(crate) fn wishes(&self) -> OpSender {
        self.wishes.clone()
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// Why no member was asked, or what failed.
    pub(crate) async fn end(&mut self) -> Result<Answer, NoAnswer> {
        let ended = (&mut self.ended).await;
        ended.unwrap_or_else(|e| Err(NoAnswer::Failed(e.to_string())))
    }
}

impl Consultations {
    /// Starts a session.
    pub(crate) fn start(&self, started: Started) -> Running {
        self.begin(started, None)
    }

    /// Starts a session; also returns its events, without pieces of answers.
    pub(crate) fn start_watched(&self, started: Started) -> (Running, UnboundedReceiver<Event>) {
        let (watch, events) = unbounded_channel();
        (self.begin(started, Some(watch)), events)
    }

    fn begin(&self, started: Started, watch: Option<UnboundedSender<Event>>) -> Running {
        let stop = self.stop.child_token();
        let (tell, told) = unbounded_channel();
        let (wish, wished) = unbounded_channel();
        let metrics = self.metrics.clone();
        let stopped = stop.clone();
        let counted = async move {
            let _at_work = metrics.begun();
            let ended = run(started, (tell, watch), wished, stopped).await;
            if let Ok(answer) = &ended {
                metrics.ended(answer);
            }
            ended
        };
        Running {
            told,
            ended: self.tasks.spawn(counted),
            wishes: OpSender(wish),
            _left: stop.clone().drop_guard(),
            stop,
        }
    }

    /// Runs a session that only writes the user's message, until it is written.
    ///
    /// # Errors
    /// Why it was refused, or could not be written.
    pub(crate) async fn write(&self, started: Started) -> Result<(), NoAnswer> {
        let written = self.tasks.spawn(write(started));
        let ended = written.await;
        ended.unwrap_or_else(|e| Err(NoAnswer::Failed(e.to_string())))
    }

    /// Stops all consultations, and waits until partial answers are saved.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(LAST_WORDS, self.tasks.wait()).await;
    }
}

/// Sends the user's message to a session, and waits until it is in the thread.
async fn write(started: Started) -> Result<(), NoAnswer> {
    let mut session = started.session;
    let mut updates = session.subscribe();
    let written = async {
        let sent = session.send(started.say);
        sent.map_err(|why| NoAnswer::Refused(format!("{why}: {}", why.hint())))?;
        while let Some(update) = updates.next().await {
            let Update::Record(record) = update else {
                continue;
            };
            if let Event::SaveFailed { why, .. } | Event::OpRefused { why } = &record.event {
                return Err(NoAnswer::Refused(why.clone()));
            }
            if matches!(&record.event, Event::MessageAdded { message, .. } if message.is_king()) {
                return Ok(());
            }
        }
        Err(NoAnswer::Refused(
            "the session ended before it was written".to_owned(),
        ))
    };
    let written = tokio::time::timeout(WRITTEN_WITHIN, written).await;
    session.close().await;
    let late = "it was not written in time: try it again";
    written.unwrap_or_else(|_| Err(NoAnswer::Refused(late.to_owned())))
}

/// Runs a session to its end; `stop` interrupts it.
async fn run(
    started: Started,
    (tell, watch): (UnboundedSender<Told>, Option<UnboundedSender<Event>>),
    mut wished: UnboundedReceiver<Op>,
    stop: CancellationToken,
) -> Result<Answer, NoAnswer> {
    let Started {
        mut session,
        say,
        notices,
        acts,
        formats,
        lease: _lease,
        scratch,
        ..
    } = started;
    let mut updates = session.subscribe();
    if let Err(why) = session.send(say) {
        return Err(NoAnswer::Refused(format!("{why}: {}", why.hint())));
    }
    let mut answer = Answer::new(notices, acts, scratch.is_none()).formatting(formats);
    let mut stopped = false;
    while answer.ended().is_none() {
        let update = tokio::select! {
            update = updates.next() => update,
            Some(op) = wished.recv() => {
                if session.send(op).is_err() {
                    break;
                }
                continue;
            }
            () = stop.cancelled(), if !stopped => {
                stopped = true;
                if session.send(Op::Interrupt).is_err() {
                    break;
                }
                continue;
            }
        };
        let told = match update {
            Some(Update::Record(record)) => {
                if let Event::SaveFailed { turn: None, why } | Event::OpRefused { why } =
                    &record.event
                {
                    let why = why.clone();
                    session.close().await;
                    return Err(NoAnswer::Refused(why));
                }
                if let Some(watch) = &watch
                    && !matches!(record.event, Event::TurnDelta { .. })
                {
                    let _ = watch.send(record.event.clone());
                }
                answer.hear(&record)
            }
            // Too many pieces came at once and some were dropped.
            Some(Update::Lagged(view)) => answer.catch_up(*view),
            None => break,
        };
        if let Some(told) = told.filter(|_| !stopped) {
            // A disconnected caller gets no progress; disconnects are handled elsewhere.
            let _ = tell.send(told);
        }
    }
    session.close().await;
    Ok(answer)
}
