//! Tasks that cargo does not do: checking crate dependencies, drawing their graph, man pages and completions.

pub mod api;
pub mod arms;
pub mod cycles;
pub mod edges;
pub mod errors;
pub mod first_changes;
pub mod purity;
pub mod sizes;
pub mod sources;
pub mod unlisted;

use std::path::{Path, PathBuf};

/// Returns the root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// Returns the root file of the sources of a crate below `root`.
pub fn source_root(root: &Path, name: &str) -> PathBuf {
    let src = root.join("crates").join(name).join("src");
    let lib = src.join("lib.rs");
    if lib.is_file() {
        lib
    } else {
        src.join("main.rs")
    }
}

/// Replaces the text between a document's markers `<!-- NAME -->` and `<!-- /NAME -->`.
pub fn replace_between(document: &str, name: &str, inner: &str) -> Option<String> {
    let open = format!("<!-- {name} -->\n");
    let close = format!("<!-- /{name} -->");
    let start = document.find(&open)? + open.len();
    let end = start + document[start..].find(&close)?;
    Some(format!("{}{inner}{}", &document[..start], &document[end..]))
}
