//! Errors have types. Input: the sources of all crates. Output: files with more functions than allowed whose error is a
//! bare text, of which a caller can tell neither the kind nor the cause.

use crate::sources::{Error, Sources};
use std::collections::BTreeMap;
use std::path::Path;

/// Files with `Result<_, String>`, and how many each has: parsers of arguments, whose error clap wants as a text, and
/// helpers of one file, whose caller makes an error of it. Lower a row, or remove it, with what it counts; add none.
pub const LEFT: &[(&str, usize)] = &[
    ("crates/kd-app/src/marks/gold.rs", 2),
    ("crates/kd-backends/src/delivery/hub.rs", 2),
    ("crates/kd-backends/src/delivery/pip.rs", 2),
    ("crates/kd-backends/src/servers.rs", 1),
    ("crates/kd-core/src/deliberation/stages/sameness.rs", 1),
    ("crates/kd-core/src/deliberation/whatif.rs", 1),
    ("crates/kd-core/src/planner/model.rs", 4),
    ("crates/kd-engine/src/scribe.rs", 1),
    ("crates/kd-eval/src/replay/read.rs", 1),
    ("crates/kd-server/src/mcp/tools.rs", 2),
    ("crates/kd-sql/src/forum/export.rs", 1),
    ("crates/kd-store/src/config/edit.rs", 2),
    ("crates/kd-tui/src/keymap/rebind.rs", 1),
    ("crates/kd/src/args/values.rs", 11),
    ("crates/kd/src/run/chat.rs", 1),
    ("crates/kd/src/run/chat/keyboard.rs", 2),
];

/// Returns the files below `root` whose number of textual errors is not the one of their row in [`LEFT`].
///
/// # Errors
/// A file that cannot be read or parsed.
pub fn faults(root: &Path) -> Result<Vec<String>, Error> {
    let found = count(root)?;
    let mut faults = Vec::new();
    for (file, count) in &found {
        let row = LEFT.iter().find(|(known, _)| known == file);
        let most = row.map_or(0, |(_, most)| *most);
        if *count > most {
            faults.push(format!(
                "{file} has {count} errors that are a `String`, and {most} may be: give them a type (thiserror)"
            ));
        }
    }
    for (file, most) in LEFT {
        let count = found.get(*file).copied().unwrap_or_default();
        if count < *most {
            faults.push(format!(
                "{file} has {count} errors that are a `String`: lower its row in xtask/src/errors.rs, which says {most}"
            ));
        }
    }
    Ok(faults)
}

/// Counts `Result<_, String>` in each file of each crate below `root`, without tests.
///
/// # Errors
/// A file that cannot be read or parsed.
pub fn count(root: &Path) -> Result<BTreeMap<String, usize>, Error> {
    let crates = root.join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|e| Error::Read(crates.clone(), e))?;
    let mut found = BTreeMap::new();
    for folder in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        for name in ["lib.rs", "main.rs"] {
            let file = folder.join("src").join(name);
            if !file.is_file() {
                continue;
            }
            for module in &Sources::read(&file)?.modules {
                if module.texts > 0 {
                    let short = module.file.strip_prefix(root).unwrap_or(&module.file);
                    *found.entry(short.display().to_string()).or_default() += module.texts;
                }
            }
        }
    }
    Ok(found)
}
