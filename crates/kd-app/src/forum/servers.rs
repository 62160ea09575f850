//! Additional servers of the forum's agents: which agent may call which, and the file that tells the tool server of an
//! agent program about them.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_backends::servers::{Grant, Servers};
use kd_core::config::Config;
use kd_core::persona::Persona;
use kd_engine::forum::Granted;
use kd_store::user_dirs::make_private;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// Prefix of the file names.
const PREFIX: &str = "kd-servers-";
/// An unlocked file older than this was left by a killed run. A younger one may be in the making.
const YOUNG: Duration = Duration::from_secs(60);
/// Maximum bytes of a file with additional servers.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Returns the servers of these agents, and their files, which exist as long as these values. Agent programs never
/// learn the files' content.
///
/// # Errors
/// If the files cannot be written.
pub fn grant(
    config: &Config,
    personas: &[Persona],
    env: &Env,
) -> Result<(BTreeMap<String, Granted>, Vec<NamedTempFile>), UserError> {
    let vars = env.of_backends(false);
    let (mut all, mut files) = (BTreeMap::new(), Vec::new());
    for persona in personas {
        let name = persona.name.as_str();
        let servers = Grant::all(&config.forum.servers, name, &vars);
        if servers.is_empty() {
            continue;
        }
        let file = save(&servers, env)?;
        let granted = Granted {
            servers,
            file: Some(file.path().to_owned()),
        };
        files.push(file);
        all.insert(name.to_owned(), granted);
    }
    Ok((all, files))
}

/// Writes servers to a file that only the user can read, and removes those left by killed runs.
fn save(servers: &[Grant], env: &Env) -> Result<NamedTempFile, UserError> {
    let folder = env.user_dirs().runtime()?;
    make_private(&folder)?;
    sweep(&folder);
    let mut file = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempfile_in(&folder)?;
    // Locked as long as the file is kept.
    file.as_file().lock()?;
    let text = serde_json::to_string(servers).map_err(std::io::Error::other)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Removes files of this kind that no process has locked.
fn sweep(folder: &Path) {
    let Ok(items) = folder.read_dir() else { return };
    for item in items.flatten() {
        let is_ours = item.file_name().to_string_lossy().starts_with(PREFIX);
        let age = item.metadata().and_then(|m| m.modified());
        let is_old = age.is_ok_and(|at| {
            SystemTime::now()
                .duration_since(at)
                .is_ok_and(|age| age > YOUNG)
        });
        if !is_ours || !is_old {
            continue;
        }
        let held = File::open(item.path()).map(|file| file.try_lock());
        if !matches!(held, Ok(Err(TryLockError::WouldBlock))) {
            // Another run may have removed it.
            let _ = std::fs::remove_file(item.path());
        }
    }
}

/// Reads additional servers from a file, without connecting.
///
/// # Errors
/// If the file holds no servers.
pub fn read(file: &Path, env: &Env) -> Result<Servers, UserError> {
    let fault = |why: String| {
        let what = format!("{} holds no servers", file.display());
        UserError::new(ErrorKind::Mcp, what).because(why)
    };
    let length = std::fs::metadata(file)
        .map_err(|e| fault(e.to_string()))?
        .len();
    if length > FILE_BYTES_MAX {
        return Err(fault("it is too long".into()));
    }
    let text = std::fs::read(file).map_err(|e| fault(e.to_string()))?;
    let grants: Vec<Grant> = serde_json::from_slice(&text).map_err(|e| fault(e.to_string()))?;
    Ok(Servers::new(grants, &folder(env)?))
}

/// Returns the empty working folder of those servers' programs, the same as for visiting agents.
///
/// # Errors
/// If it cannot be created.
pub fn folder(env: &Env) -> Result<PathBuf, UserError> {
    let folder = env.user_dirs().state()?.join("visits");
    make_private(&folder)?;
    Ok(folder)
}

/// Returns the servers an agent may call, for lists.
pub fn names(config: &Config, agent: &str) -> Vec<String> {
    let may = config.forum.servers.iter().filter(|(_, server)| {
        server.agents.iter().any(|name| name == agent) && !server.tools.is_empty()
    });
    may.map(|(name, _)| name.clone()).collect()
}
