//! What cargo does not do: the check of the walls, the picture of the house, man pages and completions.

pub mod edges;

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// The text of a document with what stands between its markers `<!-- NAME -->` and `<!-- /NAME -->` replaced.
pub fn replace_between(document: &str, name: &str, inner: &str) -> Option<String> {
    let open = format!("<!-- {name} -->\n");
    let close = format!("<!-- /{name} -->");
    let start = document.find(&open)? + open.len();
    let end = start + document[start..].find(&close)?;
    Some(format!("{}{inner}{}", &document[..start], &document[end..]))
}
