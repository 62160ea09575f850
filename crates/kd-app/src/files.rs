//! Completes paths that the user types: first with files in the typed folder, then with files below the working
//! folder.

use crate::env::Env;
use ignore::WalkBuilder;
use kd_core::fuzzy;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Entries of a folder that are looked at.
const ENTRIES_MAX: usize = 10_000;
/// Entries below the working folder that are looked at.
const WALKED_MAX: usize = 5_000;
/// How long they are looked at.
const WALK_TIME_MAX: Duration = Duration::from_secs(2);
/// How deep these are.
const DEPTH_MAX: usize = 8;
/// Paths that are returned.
const FILES_MAX: usize = 50;

/// Returns paths that the beginning of one may mean, best first; folders end in a slash. Files that `.gitignore` names and
/// hidden ones are only found by their folder.
pub(crate) fn beginning_with(begun: &str, env: &Env) -> Vec<String> {
    let mut found = in_folder(begun, env);
    if !begun.is_empty() && !begun.starts_with(['/', '~', '.']) {
        let below = fuzzy::best(begun, below(env), |path| path);
        found.extend(below.into_iter().take(FILES_MAX));
    }
    let mut seen = BTreeSet::new();
    found.retain(|path| seen.insert(path.clone()));
    found.truncate(FILES_MAX);
    found
}

/// Returns the entries of the folder in which the path is, by their names.
fn in_folder(begun: &str, env: &Env) -> Vec<String> {
    let (folder, start) = begun.rsplit_once('/').unwrap_or(("", begun));
    let below = match folder {
        "" if begun.starts_with('/') => "/",
        "~" => "~/",
        folder => folder,
    };
    let Ok(here) = env.folder() else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(here.join(at_home(below, env))) else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .take(ENTRIES_MAX)
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_hidden = name.starts_with('.') && !start.starts_with('.');
            let slash = if entry.path().is_dir() { "/" } else { "" };
            (!is_hidden).then(|| format!("{name}{slash}"))
        })
        .collect();
    found.sort();
    let mut found = fuzzy::best(start, found, |name| name);
    found.truncate(FILES_MAX);
    let lead = &begun[..begun.len() - start.len()];
    found.iter().map(|name| format!("{lead}{name}")).collect()
}

/// Returns files below the working folder, in order.
pub(crate) fn below(env: &Env) -> Vec<String> {
    let Ok(here) = env.folder() else {
        return Vec::new();
    };
    let mut walk = WalkBuilder::new(here);
    walk.max_depth(Some(DEPTH_MAX)).require_git(false);
    // Settings outside of the folder say nothing about it.
    walk.git_global(false).parents(false);
    let began = Instant::now();
    let entries = walk.build().take(WALKED_MAX);
    let entries = entries
        .take_while(|_| began.elapsed() < WALK_TIME_MAX)
        .flatten();
    let mut found: Vec<String> = entries
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(|entry| Some(entry.path().strip_prefix(here).ok()?.to_str()?.to_owned()))
        .collect();
    // The least deep first.
    found.sort_by_cached_key(|path| (path.matches('/').count(), path.clone()));
    found
}

/// Returns the path that the user means, in the home folder after `~/`.
pub(crate) fn at_home(typed: &str, env: &Env) -> PathBuf {
    let home = env.var("HOME").filter(|home| !home.is_empty());
    match (typed.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(typed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_folder_come_before_those_below_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |path: &str| {
            let path = dir.path().join("work").join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, "").expect("written");
        };
        for path in [
            "src/main.rs",
            "src/deep/main.rs",
            "maintain.md",
            "target/main.o",
            ".hidden/main",
            "my notes.md",
        ] {
            write(path);
        }
        std::fs::write(dir.path().join("work/.gitignore"), "/target\n").expect("written");
        let env = Env::of([("HOME", dir.path())]).in_folder(dir.path().join("work"));
        for (begun, expected) in [
            ("main", "maintain.md|src/main.rs|src/deep/main.rs"),
            ("src/m", "src/main.rs|src/deep/main.rs"),
            ("sdm", "src/deep/main.rs"),
            ("target/", "target/main.o"),
            (".h", ".hidden/"),
            (".hidden/", ".hidden/main"),
            ("notes", "my notes.md"),
            ("~/w", "~/work/"),
            ("./sr", "./src/"),
            ("zzz", ""),
        ] {
            assert_eq!(beginning_with(begun, &env).join("|"), expected, "{begun}");
        }
        assert!(beginning_with("/", &env).contains(&"/tmp/".to_owned()));
    }
}
