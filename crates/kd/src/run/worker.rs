//! `kd worker`: answers questions of batches on a database, until it is stopped.

use super::batch;
use super::here::Here;
use super::notices::notice_line;
use super::trust;
use crate::args::batch::Store;
use crate::args::worker::{List, Worker, WorkerCommand};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::fleet as face;
use kd_app::batch::fleet::{LEASE_MIN, WorkerRequest};
use kd_app::{Kingdom, Runtime};
use kd_tui::signals::Signals;
use std::io::Write;
use std::time::Duration;
use tokio::sync::mpsc;

/// Time in which a worker that is stopped at once tries to return its unfinished questions.
const PUT_BACK: Duration = Duration::from_secs(2);

impl Worker {
    pub(super) fn wants_json(&self) -> bool {
        matches!(&self.command, Some(WorkerCommand::List(list)) if list.json)
    }
}

pub(super) fn run(args: &Worker, here: &Here) -> Result<Exit, Error> {
    if let Some(WorkerCommand::List(list)) = &args.command {
        return workers(list, here);
    }
    let store = needed(&args.store, here)?;
    let kingdom = trust::open(here, args.quiet)?;
    kingdom.sweep();
    let lease = args.lease.lease.max(LEASE_MIN);
    let name = kd_core::clean::clean_text(&args.name).into_owned();
    let request = WorkerRequest::new(store, args.concurrency.into(), lease, name);
    let runtime = Runtime::new()?;
    runtime.block_on(work(args, &kingdom, request))?;
    Ok(batch::STOPPED)
}

fn needed(store: &Store, here: &Here) -> Result<kd_app::batch::fleet::Store, Error> {
    batch::store(store, here)?.ok_or_else(|| {
        Error::usage("workers need a database")
            .next("add --store postgresql://user@host/name, or set KD_BATCH_STORE")
    })
}

/// Lists the workers of a database.
fn workers(list: &List, here: &Here) -> Result<Exit, Error> {
    let store = needed(&list.store, here)?;
    let workers = kd_app::batch::fleet::open(&store)?.workers()?;
    if list.json {
        let text = crate::face::json::text(&face::worker_list_object(&workers), true)?;
        writeln!(crate::out::stdout(), "{text}")?;
        return Ok(Exit::Done);
    }
    if workers.is_empty() {
        let text = "no worker is at work: `kd worker` starts one";
        writeln!(crate::out::stderr(), "{text}")?;
    }
    let text = face::worker_list(&workers, here.columns());
    crate::out::lines(false).write_all(text.as_bytes())?;
    Ok(Exit::Done)
}

async fn work(args: &Worker, kingdom: &Kingdom, request: WorkerRequest) -> Result<(), Error> {
    let mut signals = Stops::listen()?;
    let tell = |text: String| {
        if !args.quiet {
            notice_line(&text);
        }
    };
    let (store, lease) = (request.store.shown(), request.lease);
    let mut worker = kingdom.worker(request)?;
    let mut name = worker.name.clone();
    tell(face::begins(&name, &store, args.concurrency, lease));
    let mut news = std::mem::replace(&mut worker.news, mpsc::unbounded_channel().1);
    loop {
        tokio::select! {
            ended = worker.ended() => return Ok(ended?),
            Some(one) = news.recv() => {
                tell(face::news(&name, &one));
                if let kd_app::batch::fleet::News::Lost(new) = one {
                    name = new;
                }
            }
            Some(stop) = signals.recv() => match stop {
                Stop::Drain => {
                    tell(format!("{name}: finishing what it asks; Ctrl+C again stops at once"));
                    worker.drain();
                }
                Stop::Now => worker.stop(),
                Stop::Leave => {
                    let what = format!("{name} ended, and the database did not answer");
                    return Err(Error::new("store", Exit::Error, what).next(
                        "nothing is left to do: its questions are given to others when its lease is over",
                    ));
                }
            },
        }
    }
}

/// How a worker stops.
pub(super) enum Stop {
    /// It finishes what it asks.
    Drain,
    /// It puts that back.
    Now,
    /// It could not put that back in time.
    Leave,
}

/// Listens for signals on a separate thread: while the database is away, all threads of the runtime may wait for it.
pub(super) struct Stops;

impl Stops {
    pub(super) fn listen() -> Result<mpsc::UnboundedReceiver<Stop>, Error> {
        let failed = |e| Error::new("io", Exit::Error, "cannot handle signals").because(e);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let mut signals = {
            let _inside = runtime.enter();
            Signals::listen(false).map_err(failed)?
        };
        let (tell, told) = mpsc::unbounded_channel();
        let hear = async move {
            for stop in [Stop::Drain, Stop::Now] {
                while !signals.next().await.stops() {}
                if tell.send(stop).is_err() {
                    return;
                }
            }
            tokio::time::sleep(PUT_BACK).await;
            let _ = tell.send(Stop::Leave);
        };
        let thread = std::thread::Builder::new().name("kd-signals".into());
        thread
            .spawn(move || runtime.block_on(hear))
            .map_err(failed)?;
        Ok(told)
    }
}
