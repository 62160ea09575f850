//! The options of batches over several machines.

use super::{Error, Exit, Here, METHODS};
use crate::args::batch::{Run, Store as StoreArgs};
use kd_app::batch::fleet::{self, FleetRequest, LEASE_MIN, Store};

/// The variable with the address of the database. It is not a setting, so that no folder can set it.
const VARIABLE: &str = "KD_BATCH_STORE";

/// Returns the database of a command: from its option, otherwise from the environment.
pub(crate) fn store(args: &StoreArgs, here: &Here) -> Result<Option<Store>, Error> {
    let said = args.store.clone().or_else(|| here.var(VARIABLE));
    match said.filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok(Some(fleet::store(text.trim())?)),
        None => Ok(None),
    }
}

/// Returns what a batch over several machines needs; `None` if it is asked on this one alone.
pub(super) fn request(args: &Run, here: &Here) -> Result<Option<FleetRequest>, Error> {
    let Some(store) = store(&args.store, here)? else {
        let unused = [
            ("--concurrency 0", args.concurrency == Some(0)),
            ("--priority", args.priority != 0),
        ];
        return match unused.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(
                Error::usage(format!("{flag} needs a database with workers"))
                    .next("add --store postgresql://user@host/name, or set KD_BATCH_STORE"),
            ),
            None => Ok(None),
        };
    };
    if args.log.is_some() {
        return Err(Error::usage("--log works on one machine only")
            .next("leave out --log, or --store; workers print what they do"));
    }
    if args.provider_batch {
        return Err(Error::usage("--provider-batch works on one machine only")
            .next("leave out --store: providers answer as fast with one process that asks"));
    }
    Ok(Some(FleetRequest {
        store,
        lease: args.lease.lease.max(LEASE_MIN),
        priority: args.priority,
        name: "run".to_owned(),
        plan: !METHODS.contains(&args.how.as_str()),
    }))
}

/// Returns an argument as it may be shown and stored: an address without its password.
pub(super) fn shown_argument(arg: &str) -> String {
    let (option, value) = match arg.split_once("=postgres") {
        Some((option, _)) => arg.split_at(option.len() + 1),
        None => ("", arg),
    };
    match Store::parse(value) {
        Some(store) => format!("{option}{}", store.shown()),
        None => arg.to_owned(),
    }
}

/// The message after the user has stopped a batch that other machines continue.
pub(super) fn others_go_on(id: &str) -> String {
    format!(
        "workers on other machines go on; `kd batch cancel {}` stops them",
        crate::face::batch::short(id)
    )
}

/// The message after the user has stopped a run at once and the database did not answer.
pub(super) fn unanswered(id: &str) -> Error {
    let what = format!("{id}: stopped, and the database did not answer");
    Error::new("store", Exit::Error, what).next(
        "run the same command again when it answers: what was asked here is given to others when its lease is over",
    )
}

/// The exit code of a worker.
pub(crate) const STOPPED: Exit = Exit::Done;
