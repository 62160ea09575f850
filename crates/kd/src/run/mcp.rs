//! `kd mcp`: serves the protocol on stdin and stdout until stdin is closed.

use super::here::Here;
use super::{first, trust};
use crate::args::mcp::Mcp;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::forum::servers;
use kd_app::{Elsewhere, FolderHost, Runtime, Visit};
use kd_core::SeatName;
use kd_server::mcp::{self, Server};
use kd_tui::signals::Signals;
use std::sync::Arc;

pub(super) fn run(args: &Mcp, here: &Here) -> Result<Exit, Error> {
    if let Some(folder) = &args.folder {
        let named = folder.display().to_string();
        std::env::set_current_dir(folder).map_err(|e| {
            Error::new("io", Exit::Error, format!("{named} cannot be entered")).because(e)
        })?;
    }
    // The folder may be another one now.
    let here = &Here::new(here.color());
    let host = folder_host(here, args.offline)?;
    // A visit asks nobody.
    if args.run.is_none() && host.shows_the_demo() {
        first::notice(false, here);
    }
    let host = host.with_forum(
        args.forum.clone(),
        args.store.clone(),
        args.run.map(|run| Visit {
            run,
            calls: args.calls,
            fence: args.fence.clone(),
        }),
    );
    let host = match (&args.remote, &args.remote_url, &args.remote_token) {
        (Some(name), Some(url), Some(token)) => host.with_remote(Elsewhere {
            name: name.clone(),
            url: url.clone(),
            token: token.clone(),
        }),
        _ => host,
    };
    let host = match &args.servers {
        Some(file) => host.with_further(servers::read(file, here)?),
        None => host,
    };
    let server = Server::new(Arc::new(host), name(args.name.as_deref())?);
    let runtime = Runtime::new()?;
    let served = runtime.block_on(async {
        let mut signals = signals()?;
        let stop = async move { signals.stopped().await };
        mcp::stdio(server, stop)
            .await
            .map_err(|why| Error::new("mcp", Exit::Error, "the connection was lost").because(why))
    });
    drop(runtime);
    served.map(|()| Exit::Done)
}

/// Validates the caller's name.
pub(super) fn name(name: Option<&str>) -> Result<Option<String>, Error> {
    let checked = name.map(SeatName::new).transpose();
    let checked = checked.map_err(|e| Error::usage(e.to_string()).next("kd mcp --as claude"))?;
    Ok(checked.map(String::from))
}

/// Opens the folder for a server.
pub(super) fn folder_host(here: &Here, offline: bool) -> Result<FolderHost, Error> {
    // Only notices for the user are printed to stderr, and nothing about the members' work.
    let kingdom = trust::open(here, true)?;
    if let Some(layout) = kingdom.layout() {
        kd_app::process::sweep(here, &layout);
    }
    Ok(FolderHost::new(kingdom, offline))
}

pub(super) fn signals() -> Result<Signals, Error> {
    Signals::listen(false)
        .map_err(|e| Error::new("io", Exit::Error, "cannot handle signals").because(e))
}
