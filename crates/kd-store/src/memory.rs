//! Memory across deliberations, and the user's own role texts: plain files below `.kd`.

use crate::beneath::{self, Folder};
use crate::bounds;
use crate::error::Error;
use crate::json;
use crate::layout::Layout;
use crate::lock::{self, Lock};
use kd_core::formats::MEMORY;
use kd_core::memory::LongTerm;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The key of the version.
const VERSION: &str = "version";

/// Reads the memory; empty if there is no file.
///
/// # Errors
/// If the file cannot be read, is malformed, or was written by a newer version.
pub fn read(layout: &Layout) -> Result<LongTerm, Error> {
    let path = layout.memory_file();
    let Some(bytes) = beneath::read(&path, bounds::MEMORY)? else {
        return Ok(LongTerm::default());
    };
    json::check_version(&bytes, &MEMORY, VERSION, || path.clone())?;
    serde_json::from_slice(&bytes).map_err(|source| Error::Json { path, source })
}

/// Changes the memory and returns the result of the change. Changes of other processes are kept; if nothing changes,
/// nothing is written.
///
/// # Errors
/// If the file cannot be read or written, or another process holds its lock for too long.
pub fn update<T>(layout: &Layout, change: impl FnOnce(&mut LongTerm) -> T) -> Result<T, Error> {
    let _lock = Lock::take(&lock::lock_path(&layout.memory_file()), lock::WAIT)?;
    let before = read(layout)?;
    let mut memory = before.clone();
    let result = change(&mut memory);
    if memory != before {
        write(layout, &memory)?;
    }
    Ok(result)
}

fn write(layout: &Layout, memory: &LongTerm) -> Result<(), Error> {
    let path = layout.memory_file();
    let mut value = serde_json::to_value(memory).map_err(|source| Error::Json {
        path: path.clone(),
        source,
    })?;
    if let Value::Object(fields) = &mut value {
        fields.insert(VERSION.to_owned(), MEMORY.version.into());
    }
    json::write(&path, &value)
}

/// Lists a project's files below `.kd` whose text reaches models, with their sizes: roles, memory, personas of the
/// forum. Omits unreadable files, which reach no model.
pub fn text_files(layout: &Layout) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut add = |prefix: &str, folder: &Path, is_text: &dyn Fn(&str) -> bool, bound| {
        let Ok(Some(folder)) = Folder::find(folder) else {
            return;
        };
        for item in folder.items().unwrap_or_default() {
            let name = item.name.to_string_lossy();
            if is_text(&name)
                && let Ok(Some(bytes)) = folder.read(&item.name, bound)
                && !bytes.is_empty()
            {
                found.push((format!("{prefix}{name}"), bytes.len() as u64));
            }
        }
    };
    add(
        "",
        &layout.kd(),
        &|name| name == "memory.json",
        bounds::MEMORY,
    );
    let is_role = |name: &str| name.ends_with(".md");
    add("roles/", &layout.roles_folder(), &is_role, bounds::ROLE);
    let is_persona = |name: &str| name.ends_with(".yaml") || name.ends_with(".yml");
    let personas = layout.forum_agents_folder();
    add("forum/agents/", &personas, &is_persona, bounds::PERSONA);
    found.sort();
    found
}

/// Reads the user's own role texts, by role: `.kd/roles/<role>.md`.
///
/// # Errors
/// If the folder or a file cannot be read, or a text is not UTF-8.
pub fn roles(layout: &Layout) -> Result<BTreeMap<String, String>, Error> {
    let Some(folder) = Folder::find(&layout.roles_folder())? else {
        return Ok(BTreeMap::new());
    };
    let mut found = BTreeMap::new();
    for item in folder.items()? {
        let Some(name) = item.name.to_str().and_then(|n| n.strip_suffix(".md")) else {
            continue;
        };
        // A file of another type or size is not a role; the member keeps its default.
        match folder.read(&item.name, bounds::ROLE) {
            Ok(Some(bytes)) => {
                let path = || folder.path().join(&item.name);
                let text = String::from_utf8(bytes).map_err(|e| {
                    Error::io("read", &path())(io::Error::new(io::ErrorKind::InvalidData, e))
                })?;
                if !text.trim().is_empty() {
                    found.insert(name.to_owned(), text);
                }
            }
            Ok(None) => {}
            Err(e) if e.is_refused_file() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(found)
}
