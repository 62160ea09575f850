//! `kd mcp`: serves the protocol on stdin and stdout until stdin is closed.

use super::forum::servers;
use super::here::Here;
use super::kingdom::{Elsewhere, House, Visit};
use super::signals::{Signals, Wish};
use crate::args::mcp::Mcp;
use crate::error::Error;
use crate::exit::Exit;
use kd_backends::transport::process;
use kd_core::SeatName;
use kd_server::mcp::{self, Server};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long dropped calls may take to close their connections after the caller disconnected.
pub(super) const FAREWELL: Duration = Duration::from_millis(200);
/// How long agent programs and their tools may take to end.
pub(super) const CHILDREN: Duration = Duration::from_secs(3);

pub(super) fn run(args: &Mcp, here: &Here) -> Result<Exit, Error> {
    if let Some(folder) = &args.folder {
        let named = folder.display().to_string();
        std::env::set_current_dir(folder).map_err(|e| {
            Error::new("io", Exit::Error, format!("{named} cannot be entered")).because(e)
        })?;
    }
    let house = House::open(here, args.offline)?.with_forum(
        args.forum.clone(),
        args.store.clone(),
        args.run.map(|run| Visit {
            run,
            calls: args.calls,
            fence: args.fence.clone(),
        }),
    );
    let house = match (&args.remote, &args.remote_url, &args.remote_token) {
        (Some(name), Some(url), Some(token)) => house.with_remote(Elsewhere {
            name: name.clone(),
            url: url.clone(),
            token: token.clone(),
        }),
        _ => house,
    };
    let house = match &args.servers {
        Some(file) => house.with_further(servers::read(file)?),
        None => house,
    };
    let server = Server::new(Arc::new(house), name(args.name.as_deref())?);
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let mut signals = signals()?;
        let stop = async move { while signals.next().await != Wish::Stop {} };
        mcp::stdio(server, stop)
            .await
            .map_err(|why| Error::new("mcp", Exit::Error, "the connection was lost").because(why))
    });
    runtime.shutdown_timeout(FAREWELL);
    process::settle(CHILDREN);
    served.map(|()| Exit::Done)
}

/// Validates the caller's name.
pub(super) fn name(name: Option<&str>) -> Result<Option<String>, Error> {
    let checked = name.map(SeatName::new).transpose();
    let checked = checked.map_err(|e| Error::usage(e.to_string()).next("kd mcp --as claude"))?;
    Ok(checked.map(String::from))
}

pub(super) fn runtime() -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::new("io", Exit::Error, "cannot start an OS thread").because(e))
}

pub(super) fn signals() -> Result<Signals, Error> {
    Signals::listen(false)
        .map_err(|e| Error::new("io", Exit::Error, "cannot handle signals").because(e))
}
