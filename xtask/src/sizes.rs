//! The share of the lines that each crate holds, and the table of the crates in ARCHITECTURE.md.

use crate::cycles::Cycle;
use crate::edges::Graph;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Maximum share of the lines of all crates, in percent: a crate with more has more than one subject.
const SHARE_MAX: usize = 20;

/// How far the lines of a crate may be from the table, in percent of them or in lines, before the table is stale.
const STALE_PERCENT: usize = 20;
const STALE_LINES: usize = 1000;

/// Counts the lines of the Rust files in the `src` of each crate below `root/crates`, tests within them included.
///
/// # Errors
/// If a folder or a file cannot be read.
pub fn read(root: &Path) -> io::Result<BTreeMap<String, usize>> {
    let mut sizes = BTreeMap::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let entry = entry?;
        let src = entry.path().join("src");
        if src.is_dir() {
            let name = entry.file_name().to_string_lossy().into_owned();
            sizes.insert(name, lines(&src)?);
        }
    }
    Ok(sizes)
}

/// Returns the crates that hold too many of the lines.
pub fn faults(sizes: &BTreeMap<String, usize>) -> Vec<String> {
    let all: usize = sizes.values().sum();
    let is_large = |(_, lines): &(&String, &usize)| **lines * 100 > all * SHARE_MAX;
    let large = sizes.iter().filter(is_large);
    large
        .map(|(name, lines)| {
            let share = share(*lines, all);
            format!("{name} holds {share:.1} % of the lines ({lines} of {all}); the maximum is {SHARE_MAX} %: split it")
        })
        .collect()
}

/// Renders the table of the crates: lines, share, dependencies in both directions, and cycles of files.
pub fn table(sizes: &BTreeMap<String, usize>, graph: &Graph, cycles: &[Cycle]) -> String {
    let all: usize = sizes.values().sum();
    let mut out = String::from(
        "| crate | lines | share | uses | used by | cycles of files |\n|---|--:|--:|--:|--:|--:|\n",
    );
    let (mut uses_all, mut cycles_all) = (0, 0);
    for (name, lines) in sizes {
        let uses = graph.edges.get(name).map_or(0, |needs| needs.len());
        let users = graph.edges.values().filter(|needs| needs.contains(name));
        let folder = Path::new("crates").join(name);
        let is_here = |cycle: &&Cycle| cycle.keys().any(|(from, _)| from.starts_with(&folder));
        let cycles = cycles.iter().filter(is_here).count();
        (uses_all, cycles_all) = (uses_all + uses, cycles_all + cycles);
        let (share, users) = (share(*lines, all), users.count());
        out.push_str(&format!(
            "| `{name}` | {lines} | {share:.1} % | {uses} | {users} | {cycles} |\n"
        ));
    }
    out.push_str(&format!(
        "| all | {all} | 100 % | {uses_all} | | {cycles_all} |\n"
    ));
    out
}

/// Returns the rows of a table that are missing, superfluous, or far from the real lines.
pub fn stale(table: &str, sizes: &BTreeMap<String, usize>) -> Vec<String> {
    let rows = table.lines().filter_map(|row| {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let name = cells.next()?.trim_matches('`').to_owned();
        Some((name, cells.next()?.parse::<usize>().ok()?))
    });
    let rows: BTreeMap<String, usize> = rows.collect();
    let mut stale = Vec::new();
    for (name, lines) in sizes {
        match rows.get(name) {
            None => stale.push(format!("{name} has no row")),
            Some(told) => {
                let margin = STALE_LINES.max(lines * STALE_PERCENT / 100);
                if lines.abs_diff(*told) > margin {
                    stale.push(format!("{name} has {lines} lines, not {told}"));
                }
            }
        }
    }
    let gone = rows
        .keys()
        .filter(|name| *name != "all" && !sizes.contains_key(*name));
    stale.extend(gone.map(|name| format!("there is no crate {name}")));
    stale
}

fn share(lines: usize, all: usize) -> f64 {
    lines as f64 * 100.0 / all as f64
}

/// Counts the lines of all Rust files below a folder.
fn lines(folder: &Path) -> io::Result<usize> {
    let mut all = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            all += lines(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all += std::fs::read_to_string(&path)?.lines().count();
        }
    }
    Ok(all)
}
