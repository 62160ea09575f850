//! `kd worker`: answers questions of batches on a database, until it is stopped.

use super::batch;
use super::here::Here;
use super::notices::notice_line;
use super::trust;
use crate::args::worker::Worker;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::fleet as face;
use kd_app::batch::fleet::{LEASE_MIN, WorkerRequest};
use kd_app::{Kingdom, Runtime};
use kd_tui::signals::{Caught, Signals};

pub(super) fn run(args: &Worker, here: &Here) -> Result<Exit, Error> {
    let Some(store) = batch::store(&args.store, here)? else {
        return Err(Error::usage("a worker needs a database")
            .next("add --store postgresql://user@host/name, or set KD_BATCH_STORE"));
    };
    let kingdom = trust::open(here, args.quiet)?;
    kingdom.sweep();
    let lease = args.lease.lease.max(LEASE_MIN);
    let name = kd_core::clean::clean_text(&args.name).into_owned();
    let request = WorkerRequest::new(store, args.concurrency.into(), lease, name);
    let runtime = Runtime::new()?;
    runtime.block_on(work(args, &kingdom, request))?;
    Ok(batch::STOPPED)
}

async fn work(args: &Worker, kingdom: &Kingdom, request: WorkerRequest) -> Result<(), Error> {
    let mut signals = Signals::listen(false)
        .map_err(|e| Error::new("io", Exit::Error, "cannot handle signals").because(e))?;
    let tell = |text: String| {
        if !args.quiet {
            notice_line(&text);
        }
    };
    let (store, lease) = (request.store.shown(), request.lease);
    let mut worker = kingdom.worker(request)?;
    let mut name = worker.name.clone();
    tell(face::begins(&name, &store, args.concurrency, lease));
    let mut news = std::mem::replace(&mut worker.news, tokio::sync::mpsc::unbounded_channel().1);
    let mut stops = 0_u32;
    loop {
        tokio::select! {
            ended = worker.ended() => return Ok(ended?),
            Some(one) = news.recv() => {
                tell(face::news(&name, &one));
                if let kd_app::batch::fleet::News::Lost(new) = one {
                    name = new;
                }
            }
            signal = signals.next() => if matches!(signal, Caught::Interrupt | Caught::End) {
                stops += 1;
                if stops == 1 {
                    tell(format!("{name}: finishing what it asks; Ctrl+C again stops at once"));
                    worker.drain();
                } else {
                    worker.stop();
                }
            },
        }
    }
}
