//! The folder of downloaded models: `$XDG_CACHE_HOME/kd/models/<sha256>.gguf`, with `.part`, `.lock` and `.seen` beside
//! it.
//!
//! A file is trusted if its checksum was verified and its path, length and modification time still match `.seen`;
//! otherwise the checksum is verified again. So starting up costs no hashing, and a changed file is never used.

use super::Progress;
use super::error::FetchError;
use crate::env::Env;
use kd_local::catalog::KnownModel;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Returns the folder of downloaded models; `None` if no home directory is known.
pub fn models_dir(env: &Env) -> Option<PathBuf> {
    let cache = env
        .get("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    Some(
        cache
            .or_else(|| Some(env.home()?.join(".cache")))?
            .join("kd")
            .join("models"),
    )
}

/// Returns the downloaded file of a model, if it is present and intact. A damaged file counts as absent.
///
/// # Errors
/// If the file cannot be read to verify it.
pub fn stored(model: &KnownModel, env: &Env) -> Result<Option<PathBuf>, FetchError> {
    let Some(dir) = models_dir(env) else {
        return Ok(None);
    };
    let path = dir.join(format!("{}.gguf", model.sha256));
    Ok(trusted(&path, model, &dir)?.then_some(path))
}

/// Returns the downloaded file of a model, intact or not.
pub fn kept(model: &KnownModel, env: &Env) -> Option<PathBuf> {
    let path = models_dir(env)?.join(format!("{}.gguf", model.sha256));
    path.is_file().then_some(path)
}

/// Verifies length and checksum of a file, ignoring `.seen`.
///
/// # Errors
/// [`FetchError::Tampered`] if length or checksum differ; also if the file cannot be read.
pub fn verify(path: &Path, model: &KnownModel) -> Result<(), FetchError> {
    model.verify(path, |_| ()).map_err(|error| match error {
        kd_local::Error::Io { path, source } => failed(
            "read",
            &path,
            io::Error::new(source.kind(), source.to_string()),
        ),
        other => FetchError::Tampered {
            path: path.to_owned(),
            key: model.key,
            what: other.to_string(),
        },
    })
}

/// Removes a downloaded model and the files beside it; returns whether there was one.
///
/// # Errors
/// If no cache folder is known, or a file cannot be removed.
pub fn remove(model: &KnownModel, env: &Env) -> Result<bool, FetchError> {
    let dir = models_dir(env).ok_or(FetchError::NoHome)?;
    let mut found = false;
    for end in ["gguf", "part", "seen"] {
        let path = dir.join(format!("{}.{end}", model.sha256));
        match fs::remove_file(&path) {
            Ok(()) => found = true,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed("remove", &path, e)),
        }
    }
    Ok(found)
}

/// Returns whether a file is this model, according to `.seen` or its checksum; updates `.seen`.
pub(super) fn trusted(path: &Path, model: &KnownModel, dir: &Path) -> Result<bool, FetchError> {
    let Ok(meta) = fs::metadata(path) else {
        return Ok(false);
    };
    if !meta.is_file() || meta.len() != model.bytes {
        return Ok(false);
    }
    let seen = dir.join(format!("{}.seen", model.sha256));
    if fs::read_to_string(&seen).is_ok_and(|s| s == note(path, &meta)) {
        return Ok(true);
    }
    match verify(path, model) {
        Ok(()) => {
            write_note(path, &meta, &seen);
            Ok(true)
        }
        Err(FetchError::Tampered { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Returns the content of `.seen` for a verified file.
fn note(path: &Path, meta: &fs::Metadata) -> String {
    let changed = meta
        .modified()
        .ok()
        .and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    let changed = changed.unwrap_or_default().as_nanos();
    format!("{}\t{}\t{changed}\n", path.display(), meta.len())
}

/// Writes `.seen`. A failure only costs hashing the file again.
fn write_note(path: &Path, meta: &fs::Metadata, seen: &Path) {
    if let Some(dir) = seen.parent() {
        let _ = fs::create_dir_all(dir).and_then(|()| fs::write(seen, note(path, meta)));
    }
}

/// The paths of a model being downloaded.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) dir: PathBuf,
    /// The partial download.
    pub(super) part: PathBuf,
    whole: PathBuf,
    lock: PathBuf,
}

impl Place {
    /// Creates the folder.
    pub(super) fn prepare(dir: &Path, model: &KnownModel) -> Result<Self, FetchError> {
        fs::create_dir_all(dir).map_err(|e| failed("make the folder", dir, e))?;
        let named = |end: &str| dir.join(format!("{}.{end}", model.sha256));
        Ok(Self {
            dir: dir.to_owned(),
            part: named("part"),
            whole: named("gguf"),
            lock: named("lock"),
        })
    }

    /// Waits until no other process downloads this model. The returned file holds the lock.
    pub(super) async fn lock(
        &self,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<File, FetchError> {
        let file = File::create(&self.lock).map_err(|e| failed("open", &self.lock, e))?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(e)) => return Err(failed("lock", &self.lock, e)),
                Err(TryLockError::WouldBlock) => {
                    if !std::mem::replace(&mut told, true) {
                        progress(Progress::Waiting);
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Verifies the download and renames it. A corrupt one is removed.
    pub(super) async fn finish(
        &self,
        model: &KnownModel,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<PathBuf, FetchError> {
        progress(Progress::Checking);
        let (part, checked) = (self.part.clone(), *model);
        let sound = tokio::task::spawn_blocking(move || verify(&part, &checked)).await;
        let sound = sound.map_err(|e| failed("check", &self.part, io::Error::other(e)))?;
        if let Err(error) = sound {
            if matches!(error, FetchError::Tampered { .. }) {
                let _ = fs::remove_file(&self.part);
            }
            return Err(error);
        }
        File::open(&self.part)
            .and_then(|f| f.sync_all())
            .map_err(|e| failed("write", &self.part, e))?;
        fs::rename(&self.part, &self.whole).map_err(|e| failed("rename", &self.part, e))?;
        // Renaming keeps the length and modification time that were verified.
        if let Ok(meta) = fs::metadata(&self.whole) {
            write_note(&self.whole, &meta, &self.whole.with_extension("seen"));
        }
        Ok(self.whole.clone())
    }
}

pub(super) fn failed(doing: &'static str, path: &Path, source: io::Error) -> FetchError {
    FetchError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}
