//! The models of the built-in engine: which there are, which of them are on this machine, and how fast they answer.

mod bench;

pub use bench::{BenchRequest, Benched, Measured, bench};
pub use kd_backends::delivery::catalog::{KnownModel, MODELS};
pub use kd_backends::delivery::{Found, How};

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_backends::delivery::{self, catalog};
use kd_core::config::LocalConfig;
use std::path::PathBuf;

/// A known model, and where it is on this machine.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The model.
    pub model: &'static KnownModel,
    /// Its file; `None` if it was not downloaded.
    pub path: Option<PathBuf>,
}

/// Returns the model with this key; without a key, the default model.
///
/// # Errors
/// No model has this key.
pub fn known(key: Option<&str>) -> Result<&'static KnownModel, UserError> {
    let Some(key) = key else {
        return Ok(catalog::DEFAULT);
    };
    catalog::find(key).ok_or_else(|| {
        let keys: Vec<&str> = MODELS.iter().map(|m| m.key).collect();
        let what = format!("no model is named {key}");
        UserError::new(ErrorKind::NoSuchModel, what)
            .next(format!("models are: {}", keys.join(", ")))
    })
}

/// Returns all known models, with their files.
///
/// # Errors
/// The folder of models cannot be read.
pub fn all(env: &Env) -> Result<Vec<Stored>, UserError> {
    let env = env.of_backends(false);
    let rows = MODELS.iter().map(|model| {
        let path = delivery::stored(model, &env)?;
        Ok(Stored { model, path })
    });
    rows.collect()
}

/// Returns the file of the model that answers with these settings.
///
/// # Errors
/// There is none.
pub fn locate(config: &LocalConfig, env: &Env) -> Result<Found, UserError> {
    Ok(delivery::locate(config, &env.of_backends(false))?)
}

/// Returns the file of a model in the folder of models, if it was downloaded.
pub fn kept(model: &KnownModel, env: &Env) -> Option<PathBuf> {
    delivery::kept(model, &env.of_backends(false))
}

/// Compares the file of a model with its published checksum; `false` if it was not downloaded.
///
/// # Errors
/// The file cannot be read, or it is another one.
pub fn verify(model: &KnownModel, env: &Env) -> Result<bool, UserError> {
    let Some(path) = kept(model, env) else {
        return Ok(false);
    };
    delivery::verify(&path, model)?;
    Ok(true)
}

/// Removes the file of a model.
///
/// # Errors
/// It was not downloaded, or cannot be removed.
pub fn remove(model: &KnownModel, env: &Env) -> Result<(), UserError> {
    if delivery::remove(model, &env.of_backends(false))? {
        return Ok(());
    }
    let what = format!("{} is not downloaded", model.key);
    Err(UserError::new(ErrorKind::NoModel, what).next("`kd model list` shows what is"))
}
