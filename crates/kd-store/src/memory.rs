//! What is remembered across deliberations, and the king's own words for roles: plain files below `.kd`.

use crate::beneath::Folder;
use crate::bounds;
use crate::error::Error;
use crate::json;
use crate::layout::Layout;
use kd_core::memory::LongTerm;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// What is remembered; nothing where there is no file.
pub fn read(layout: &Layout) -> Result<LongTerm, Error> {
    Ok(json::read_bounded(&layout.memory_file(), bounds::MEMORY)?.unwrap_or_default())
}

/// Writes what is remembered in place of what was.
pub fn write(layout: &Layout, memory: &LongTerm) -> Result<(), Error> {
    json::write(&layout.memory_file(), memory)
}

/// The files of a project whose text reaches models, below `.kd`, with their sizes: roles, memory, personas of the forum.
/// What cannot be read is not listed: it reaches nobody.
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

/// The king's own words for roles, by role: `.kd/roles/<role>.md`.
pub fn roles(layout: &Layout) -> Result<BTreeMap<String, String>, Error> {
    let Some(folder) = Folder::find(&layout.roles_folder())? else {
        return Ok(BTreeMap::new());
    };
    let mut found = BTreeMap::new();
    for item in folder.items()? {
        let Some(name) = item.name.to_str().and_then(|n| n.strip_suffix(".md")) else {
            continue;
        };
        // A role of another kind or size is no role; the seat keeps its usual one.
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
