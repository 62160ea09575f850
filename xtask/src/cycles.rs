//! Cycles of files inside a crate. Input: the sources of the workspace. Output: groups of files that need each other.
//!
//! The rule: file A depends on file B if code of A that is not a test names an item that B defines, by a `use` or by a path
//! such as `plan::Limits`. A re-export is followed to the file that defines the item. Two things do not count. A module may
//! name what the modules inside it define: it is the table or the entrance on top of them, and they may use the types that
//! it gives them. And a method call is no dependency: a type may have its methods in several files.

use crate::sources::{Error, Sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Files of one crate that need each other, with the names that each takes from the other: (from, to) → names.
pub type Cycle = BTreeMap<(PathBuf, PathBuf), BTreeSet<String>>;

/// The cycles of all crates below `root`.
///
/// # Errors
/// A file that cannot be read or parsed.
pub fn find(root: &Path) -> Result<Vec<Cycle>, Error> {
    let mut cycles = Vec::new();
    let mut folders = vec![root.join("xtask")];
    let crates = root.join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|e| Error::Read(crates.clone(), e))?;
    folders.extend(entries.filter_map(|e| Some(e.ok()?.path())));
    folders.sort();
    for folder in folders {
        for name in ["lib.rs", "main.rs"] {
            let file = folder.join("src").join(name);
            if file.is_file() {
                let graph = graph(&Sources::read(&file)?);
                cycles.extend(circles(&graph).into_iter().map(|cycle| {
                    let short = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_path_buf();
                    let edges = cycle.into_iter();
                    edges
                        .map(|((from, to), names)| ((short(&from), short(&to)), names))
                        .collect()
                }));
            }
        }
    }
    Ok(cycles)
}

/// A cycle as lines: one for each edge.
pub fn words(cycle: &Cycle) -> String {
    let files: BTreeSet<&PathBuf> = cycle.keys().map(|(from, _)| from).collect();
    let mut out = format!("{} files need each other:\n", files.len());
    for ((from, to), names) in cycle {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        out.push_str(&format!(
            "  {} -> {}: {}\n",
            from.display(),
            to.display(),
            names.join(", ")
        ));
    }
    out
}

/// Returns, for each file, the files from which it takes names, and these names.
fn graph(sources: &Sources) -> Cycle {
    let mut edges = Cycle::new();
    for (module, own) in sources.modules.iter().enumerate() {
        let globs = own.globs.iter();
        let globs = globs.filter_map(|glob| Some((sources.opened(module, glob)?, "*".to_owned())));
        let named = own.imports.values().chain(&own.paths).filter_map(|path| {
            let name = path.last().cloned().unwrap_or_default();
            Some((sources.definer(module, path, 0)?, name))
        });
        for (to, name) in named.chain(globs) {
            let inside = sources.is_inside(to, module);
            let to = &sources.modules[to].file;
            if *to != own.file && !inside {
                let edge = (own.file.clone(), to.clone());
                edges.entry(edge).or_default().insert(name);
            }
        }
    }
    edges
}

/// The edges inside each group of files that reach each other.
fn circles(graph: &Cycle) -> Vec<Cycle> {
    let mut next: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = BTreeMap::new();
    for (from, to) in graph.keys() {
        next.entry(from).or_default().insert(to);
    }
    let reach: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = next
        .keys()
        .map(|from| (*from, reached(&next, from)))
        .collect();
    let tied = |a: &PathBuf, b: &PathBuf| {
        reach.get(a).is_some_and(|r| r.contains(b)) && reach.get(b).is_some_and(|r| r.contains(a))
    };
    let mut cycles: Vec<Cycle> = Vec::new();
    for (edge, names) in graph {
        if !tied(&edge.0, &edge.1) {
            continue;
        }
        let known = cycles
            .iter_mut()
            .find(|cycle| cycle.keys().any(|(from, _)| tied(from, &edge.0)));
        match known {
            Some(cycle) => {
                cycle.insert(edge.clone(), names.clone());
            }
            None => cycles.push(BTreeMap::from([(edge.clone(), names.clone())])),
        }
    }
    cycles
}

fn reached<'g>(
    next: &BTreeMap<&'g PathBuf, BTreeSet<&'g PathBuf>>,
    from: &'g PathBuf,
) -> BTreeSet<&'g PathBuf> {
    let mut seen = BTreeSet::new();
    let mut left = vec![from];
    while let Some(file) = left.pop() {
        for to in next.get(file).into_iter().flatten() {
            if seen.insert(*to) {
                left.push(to);
            }
        }
    }
    seen
}
