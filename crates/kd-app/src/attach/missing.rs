//! Words that look like the path of a file where there is none: the user should know that nothing is attached.

use crate::env::Env;
use crate::files::{at_home, below};
use kd_core::fuzzy::nearest;
use std::path::Path;

use super::shown;

/// Endings of files that people attach. A word with another ending after its last dot may be anything: `@app.route`.
const ENDINGS: [&str; 62] = [
    "bash", "bib", "c", "cc", "cfg", "clj", "conf", "cpp", "cs", "css", "csv", "cxx", "dart", "ex",
    "exs", "fish", "gif", "go", "gradle", "h", "hpp", "hs", "htm", "html", "ini", "ipynb", "java",
    "jpeg", "jpg", "json", "jsonl", "jsx", "kt", "lock", "log", "lua", "md", "mdx", "ml", "nix",
    "pdf", "php", "pl", "png", "proto", "py", "rb", "rs", "rst", "scala", "scss", "sh", "sql",
    "svg", "swift", "tex", "toml", "ts", "tsv", "tsx", "txt", "yaml",
];

/// Says that nothing is attached; `None` if the word need not be a path. `meant` are the paths that it may mean, the
/// longest first.
pub(super) fn told(meant: &[String], root: &Path, env: &Env) -> Option<String> {
    // The shortest is without the punctuation of the sentence.
    let path = meant.last()?;
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if !folder.is_empty() && root.join(at_home(path, env)).is_dir() {
        return Some(format!(
            "{} is a folder: nothing of it is attached; name a file, as in @{}/NAME",
            shown(path),
            shown(path.trim_end_matches('/'))
        ));
    }
    let is_known = name
        .rsplit_once('.')
        .is_some_and(|(stem, end)| !stem.is_empty() && ENDINGS.contains(&&*end.to_lowercase()));
    let starts_as_path = ["/", "~/", "./", "../"]
        .iter()
        .any(|start| path.starts_with(start));
    // `@types/node` is a package, `@src/mian` a path.
    let first = path.split('/').next().unwrap_or_default();
    let is_below = !folder.is_empty() && root.join(first).is_dir();
    if !is_known && !starts_as_path && !is_below {
        return None;
    }
    let meant = nearest_file(path, name, env);
    let meant = meant.map_or_else(
        || "it is sent as text".to_owned(),
        |meant| format!("did you mean @{}? It is sent as text", shown(&meant)),
    );
    Some(format!("no file {}: {meant}", shown(path)))
}

/// Returns the file whose path or name is most like this one.
fn nearest_file(path: &str, name: &str, env: &Env) -> Option<String> {
    let files = below(env);
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut same = files.iter().filter(|file| {
        let own = file.rsplit_once('/').map_or(file.as_str(), |(_, own)| own);
        own.eq_ignore_ascii_case(name)
    });
    match (same.next(), same.next()) {
        (Some(only), None) => Some(only.clone()),
        _ => nearest(path, files.iter().map(String::as_str)),
    }
}
