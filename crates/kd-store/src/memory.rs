//! What is remembered across deliberations, and the king's own words for roles: plain files below `.kd`.

use crate::error::Error;
use crate::json;
use crate::layout::Layout;
use kd_core::memory::LongTerm;
use std::collections::BTreeMap;
use std::fs;
use std::io;

/// The most bytes of a role's file.
const ROLE_BYTES_MAX: u64 = 64 << 10;

/// What is remembered; nothing where there is no file.
pub fn read(layout: &Layout) -> Result<LongTerm, Error> {
    Ok(json::read(&layout.memory_file())?.unwrap_or_default())
}

/// Writes what is remembered in place of what was.
pub fn write(layout: &Layout, memory: &LongTerm) -> Result<(), Error> {
    json::write(&layout.memory_file(), memory)
}

/// The king's own words for roles, by role: `.kd/roles/<role>.md`.
pub fn roles(layout: &Layout) -> Result<BTreeMap<String, String>, Error> {
    let folder = layout.roles_folder();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(Error::io("read", &folder)(e)),
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(Error::io("read", &folder))?.path();
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .and_then(|n| n.strip_suffix(".md"));
        let Some(name) = name.map(str::to_owned) else {
            continue;
        };
        let small = fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() <= ROLE_BYTES_MAX);
        if small {
            let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
            if !text.trim().is_empty() {
                found.insert(name, text);
            }
        }
    }
    Ok(found)
}
