//! The user's decisions about folders: whose settings count, which programs agents may obey, and which owners are accepted.

use crate::env::Env;
use crate::error::UserError;
use kd_backends::adapters::agent_cli::given_by_name;
pub use kd_store::config::Because;
pub use kd_store::find::Foreign;
pub use kd_store::programs::Programs;
pub use kd_store::trust::{Decision, TrustedFolder};

use super::WantedSetting;
use kd_store::find::foreign_owners;
use kd_store::git;
use kd_store::owner::user_name;
use kd_store::trust::TrustStore;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn store(env: &Env) -> Result<TrustStore, UserError> {
    Ok(TrustStore::new(&env.user_dirs())?)
}

/// Returns all decisions of the user.
///
/// # Errors
/// They cannot be read.
pub fn decisions(env: &Env) -> Result<Vec<TrustedFolder>, UserError> {
    Ok(store(env)?.list()?)
}

/// Returns what agent programs run and obey in the working folder.
///
/// # Errors
/// The folders cannot be read.
pub fn programs(env: &Env) -> Result<Programs, UserError> {
    Ok(Programs::look(env.folder()?)?)
}

/// Returns whether the user trusts what agent programs run and obey.
///
/// # Errors
/// The decisions cannot be read.
pub fn trusts(programs: &Programs, env: &Env) -> Result<bool, UserError> {
    Ok(store(env)?.trusts(programs)?)
}

/// Notes that the user trusts what agent programs run and obey.
///
/// # Errors
/// The decision cannot be saved.
pub fn trust_programs(programs: &Programs, env: &Env) -> Result<(), UserError> {
    Ok(store(env)?.trust_programs(programs)?)
}

/// Notes that the user accepts the owners of a folder, whose `.kd` is then used.
///
/// # Errors
/// The decision cannot be saved.
pub fn accept(foreign: &Foreign, env: &Env) -> Result<(), UserError> {
    Ok(store(env)?.accept_owners(&foreign.root, &foreign.users())?)
}

/// Returns the other users that own a folder in use: accepted, or named by `KD_BASE`. `None` if there are none.
pub fn owners(root: &Path, env: &Env) -> Option<Foreign> {
    foreign_owners(root, &|name| env.var_os(name)).ok()
}

/// Returns the names of users of this machine, separated by commas.
pub fn user_names(users: &BTreeSet<u32>) -> String {
    let names: Vec<String> = users.iter().map(|user| user_name(*user)).collect();
    names.join(", ")
}

/// Revokes the decisions about a folder, by default those about the working folder. Returns the folder, and whether there
/// were any.
///
/// # Errors
/// The working folder is unknown, or the decisions cannot be changed.
pub fn revoke(path: Option<&Path>, env: &Env) -> Result<(PathBuf, bool), UserError> {
    let store = store(env)?;
    let folder = env.folder()?;
    let (first, others) = match path {
        Some(path) => (folder.join(path), Vec::new()),
        None => decided_here(folder, env)?,
    };
    let mut is_revoked = store.revoke(&first)?;
    for root in &others {
        is_revoked |= store.revoke(root)?;
    }
    Ok((first, is_revoked))
}

/// Returns the folders that need a decision in a working folder: the project's folder; the owning checkout, if the
/// project uses its settings; an ignored folder; and all folders with files of agent programs, up to the top.
fn decided_here(folder: &Path, env: &Env) -> Result<(PathBuf, Vec<PathBuf>), UserError> {
    let mut roots = Vec::new();
    if let Some(Ok(foreign)) = env.passed_over_for_its_owner()? {
        roots.push(foreign.root);
    }
    if let Some(layout) = env.find_layout()? {
        let settings = env.config_paths(Some(&layout));
        roots.extend(settings.repository().map(Path::to_path_buf));
        roots.push(layout.root().to_path_buf());
    }
    let top = git::top(folder).unwrap_or(folder).to_path_buf();
    if roots.is_empty() {
        roots.push(top.clone());
    }
    let up = folder.ancestors().take_while(|up| up.starts_with(&top));
    roots.extend(up.map(Path::to_path_buf));
    let first = roots.remove(0);
    Ok((first, roots))
}

/// Returns what consent to a command does not show: files of the folder itself that it would run, because consent covers
/// only their names, and what the sandbox lets it do because of its program's name.
pub fn remarks(setting: &WantedSetting, root: &Path, env: &Env) -> Vec<String> {
    let last = setting.path.segments().last().map(String::as_str);
    if !matches!(last, Some("command" | "key_command")) {
        return Vec::new();
    }
    let words: Vec<&str> = match &setting.value {
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        Value::String(line) => line.split_whitespace().collect(),
        _ => Vec::new(),
    };
    let here = env.folder().unwrap_or(root).to_path_buf();
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let is_own = |(at, word): &(usize, &str)| {
        let named = *at == 0 && word.contains('/') && Path::new(word).is_relative();
        named
            || [&here, &root].iter().any(|from| {
                let file = from.join(word).canonicalize();
                file.is_ok_and(|file| file.is_file() && file.starts_with(&root))
            })
    };
    let by_name = match last {
        Some("command") => by_name(&words, &here, env),
        _ => Vec::new(),
    };
    let words = words.into_iter().enumerate().filter(is_own);
    words
        .map(|(_, word)| {
            format!("{word} is in this folder: kd does not ask again when that file changes")
        })
        .chain(by_name)
        .collect()
}

/// Returns what the sandbox lets a command do because of its program's name.
fn by_name(words: &[&str], folder: &Path, env: &Env) -> Vec<String> {
    let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let (places, is_outside) = given_by_name(&argv, folder, &env.of_backends(false));
    let writes = match places.is_empty() {
        true => None,
        false => Some(format!(
            "because of its name it may write {}, in read-only turns too",
            places.join(", ")
        )),
    };
    let outside =
        is_outside.then(|| "because of its name it runs outside of the sandbox".to_owned());
    writes.into_iter().chain(outside).collect()
}
