//! Looks for the model file, in this order: the given path or key, `KD_MODEL`, our cache, the hub's own cache, an
//! installed Python package. Never uses the network.

use super::error::FetchError;
use super::store::{models_dir, stored, trusted};
use crate::env::Env;
use kd_core::config::LocalConfig;
use kd_local::catalog::{self, KnownModel};
use std::fmt;
use std::path::{Path, PathBuf};

/// A model file that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// The place where it was found.
    pub how: How,
    /// The known model; `None` if it is the user's own file.
    pub model: Option<KnownModel>,
}

/// The place where a model file was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `local.model` in the configuration, or `--model`.
    Given,
    /// The environment variable `KD_MODEL`.
    Variable,
    /// Downloaded earlier by `kd`.
    Cache,
    /// In the cache of Hugging Face's own tools.
    HubCache,
    /// In an installed Python package.
    Package,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            How::Given => "as configured",
            How::Variable => "from KD_MODEL",
            How::Cache => "downloaded earlier",
            How::HubCache => "from the Hugging Face cache",
            How::Package => "from an installed Python package",
        })
    }
}

/// Finds the model file. [`FetchError::Absent`] names the model to download.
///
/// # Errors
/// [`FetchError::NoSuchFile`] or [`FetchError::NoSuchKey`] if the configured model does not exist,
/// [`FetchError::Absent`] if it is not downloaded; also if no cache folder is known or a file cannot be read.
pub fn locate(config: &LocalConfig, env: &Env) -> Result<Found, FetchError> {
    let given = config
        .model
        .clone()
        .filter(|m| !m.is_empty())
        .map(|m| (m, How::Given));
    let named = given.or_else(|| env.get("KD_MODEL").map(|m| (m, How::Variable)));
    let wanted = match named {
        None => catalog::DEFAULT,
        Some((name, how)) => {
            // The variable may already have been merged into the settings.
            let variable = env.get("KD_MODEL");
            let by = if variable.as_deref() == Some(name.as_str()) {
                "KD_MODEL"
            } else {
                "--model or the settings"
            };
            match catalog::find(&name) {
                Some(model) => model,
                None if is_path(&name) => {
                    let path = env.expand(&name);
                    return match path.is_file() {
                        true => Ok(Found {
                            path,
                            how,
                            model: None,
                        }),
                        false => Err(FetchError::NoSuchFile { path, by }),
                    };
                }
                None => return Err(FetchError::NoSuchKey { key: name, by }),
            }
        }
    };
    let found = |path, how| Found {
        path,
        how,
        model: Some(*wanted),
    };
    if let Some(path) = stored(wanted, env)? {
        return Ok(found(path, How::Cache));
    }
    let dir = models_dir(env).ok_or(FetchError::NoHome)?;
    for (path, how) in hub_cache(wanted, env)
        .into_iter()
        .chain(packages(wanted, env))
    {
        if trusted(&path, wanted, &dir)? {
            return Ok(found(path, how));
        }
    }
    Err(FetchError::Absent {
        model: Box::new(*wanted),
        dir,
    })
}

/// Returns whether a name looks like a path rather than a key.
fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || name.to_ascii_lowercase().ends_with(".gguf")
}

fn hub_cache(model: &KnownModel, env: &Env) -> Option<(PathBuf, How)> {
    let root = env
        .get("HF_HUB_CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env.get("HF_HOME")?).join("hub")))
        .or_else(|| Some(env.home()?.join(".cache/huggingface/hub")))?;
    let hub = model.hub;
    let folder = format!("models--{}", hub.repository.replace('/', "--"));
    Some((
        root.join(folder)
            .join("snapshots")
            .join(hub.revision)
            .join(hub.path),
        How::HubCache,
    ))
}

/// Returns the places where pip installs packages, without running Python.
fn packages(model: &KnownModel, env: &Env) -> Vec<(PathBuf, How)> {
    let Some(wheel) = model.wheel else {
        return Vec::new();
    };
    let prefixes = [env.get("VIRTUAL_ENV"), env.get("CONDA_PREFIX")]
        .into_iter()
        .flatten()
        .map(PathBuf::from);
    let prefixes = prefixes.chain(env.home().map(|h| h.join(".local")));
    let mut sites: Vec<PathBuf> = Vec::new();
    for lib in prefixes.map(|p| p.join("lib")) {
        sites.extend(pythons(&lib).map(|python| python.join("site-packages")));
    }
    sites
        .into_iter()
        .map(|site| (site.join(wheel.path), How::Package))
        .filter(|(p, _)| p.is_file())
        .collect()
}

/// Returns the `python3.*` folders in a `lib` folder.
fn pythons(lib: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(lib).into_iter().flatten().flatten();
    entries.map(|e| e.path()).filter(|p| {
        p.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("python3"))
    })
}
