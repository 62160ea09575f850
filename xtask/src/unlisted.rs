//! Files of tests that no test program contains. Where a crate joins its tests in few programs (`autotests = false`),
//! cargo takes no notice of a file that no program names.

use std::io;
use std::path::Path;

/// Returns the files of tests below `root/crates` that nothing runs, as paths from `root`.
///
/// # Errors
/// If a folder or a file cannot be read.
pub fn find(root: &Path) -> io::Result<Vec<String>> {
    let mut unlisted = Vec::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let manifest = folder.join("Cargo.toml");
        if !manifest.is_file() {
            continue;
        }
        let manifest = std::fs::read_to_string(manifest)?;
        if !manifest.lines().any(|line| line == "autotests = false") {
            continue;
        }
        let programs: Vec<&str> = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("path = \"tests/")?.strip_suffix('"'))
            .collect();
        let mut modules = String::new();
        for program in &programs {
            modules += &std::fs::read_to_string(folder.join("tests").join(program))?;
        }
        for file in std::fs::read_dir(folder.join("tests"))? {
            let path = file?.path();
            let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
                continue;
            };
            let is_module = match path.is_dir() {
                true => path.join("mod.rs").is_file() || path.join("main.rs").is_file(),
                false => path.extension().is_some_and(|end| end == "rs"),
            };
            let is_listed = programs.contains(&format!("{stem}.rs").as_str())
                || modules.lines().any(|line| line == format!("mod {stem};"));
            if is_module && !is_listed {
                let path = path.strip_prefix(root).unwrap_or(&path);
                unlisted.push(path.display().to_string());
            }
        }
    }
    unlisted.sort();
    Ok(unlisted)
}
