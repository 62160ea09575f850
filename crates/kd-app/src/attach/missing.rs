//! Words that look like the path of a file where there is none: the user should know that nothing is attached.

use crate::env::Env;
use crate::files::{at_home, below};
use kd_core::fuzzy::nearest;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::shown;

/// Endings of files that people attach. A word with another ending after its last dot may be anything: `@app.route`.
const KNOWN: [&str; 73] = [
    "bash", "bib", "c", "cc", "cfg", "clj", "cmake", "conf", "cpp", "cs", "css", "csv", "cxx",
    "dart", "env", "ex", "exs", "fish", "gif", "go", "gradle", "h", "hpp", "hs", "htm", "html",
    "ini", "ipynb", "java", "jpeg", "jpg", "json", "jsonl", "jsx", "kt", "lock", "log", "lua",
    "md", "mdx", "ml", "nix", "patch", "pdf", "php", "pl", "png", "proto", "ps1", "py", "rb", "rs",
    "rst", "scala", "scss", "sh", "sql", "svelte", "svg", "swift", "tex", "toml", "ts", "tsv",
    "tsx", "txt", "vue", "webp", "xml", "yaml", "yml", "zig", "zsh",
];
/// Maximum words that a notice is about; further ones are counted.
const TOLD_MAX: usize = 5;

/// Words that look like paths, but name no file.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// The working folder.
    root: PathBuf,
    /// What each word may mean, the longest first; every word once.
    pub(super) words: Vec<Vec<String>>,
}

impl Missing {
    pub(super) fn below(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            words: Vec::new(),
        }
    }

    /// Keeps a word. Looks at no folder: this runs while the user is typing.
    pub(super) fn note(&mut self, meant: &[String]) {
        if !self.words.iter().any(|known| known.last() == meant.last()) {
            self.words.push(meant.to_vec());
        }
    }

    /// Says that nothing is attached, one line for each word that can only be a path. Lists the working folder at most
    /// once.
    pub(super) fn lines(&self, env: &Env) -> Vec<String> {
        let files = OnceCell::new();
        // The shortest is without the punctuation of the sentence.
        let paths = self.words.iter().filter_map(|meant| meant.last());
        let mut likely = paths.filter_map(|path| Some((path, likely(path, &self.root, env)?)));
        let mut lines: Vec<String> = likely
            .by_ref()
            .take(TOLD_MAX)
            .map(|(path, why)| match why {
                Why::Told(line) => line,
                Why::NoFile => {
                    let files = files.get_or_init(|| below(env));
                    let meant = nearest_file(path, files).map_or_else(
                        || "it is sent as text".to_owned(),
                        |meant| format!("did you mean @{}? It is sent as text", shown(&meant)),
                    );
                    format!("no file {}: {meant}", shown(path))
                }
            })
            .collect();
        let more = likely.count() as u64;
        if more > 0 {
            lines.push(format!(
                "and {} more like these: nothing is attached for them",
                crate::words::count(more, "word")
            ));
        }
        lines
    }
}

/// Why a word names no file that is attached.
enum Why {
    /// A line says it.
    Told(String),
    /// There is nothing of this name.
    NoFile,
}

/// Returns why a word names no file; `None` if it need not be a path.
fn likely(path: &str, root: &Path, env: &Env) -> Option<Why> {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let has_slash = path.contains('/');
    let place = root.join(at_home(path, env));
    if has_slash && place.is_dir() {
        return Some(Why::Told(format!(
            "{} is a folder: nothing of it is attached; name a file, as in @{}/NAME",
            shown(path),
            shown(path.trim_end_matches('/'))
        )));
    }
    let is_known = name
        .rsplit_once('.')
        .is_some_and(|(stem, end)| !stem.is_empty() && KNOWN.contains(&&*end.to_lowercase()));
    let starts_as_path = ["/", "~/", "./", "../"]
        .iter()
        .any(|start| path.starts_with(start));
    // `@types/node` is a package, `@src/mian` a path.
    let first = path.split('/').next().unwrap_or_default();
    let is_below = has_slash && !first.is_empty() && root.join(first).is_dir();
    if !is_known && !starts_as_path && !is_below {
        return None;
    }
    if place.exists() {
        let line = format!("{} is no regular file: it is sent as text", shown(path));
        return Some(Why::Told(line));
    }
    Some(Why::NoFile)
}

/// Returns the file whose path or name is most like this one.
fn nearest_file(path: &str, files: &[String]) -> Option<String> {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
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
