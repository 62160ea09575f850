//! Generates the tables of the manual (`docs/configuration.md`) from the table of keys.

use super::keys::{KEYS, Key, Reader};
use super::text::env_name;

const HEAD: &str =
    "| key | takes | default | a project may set it | meaning |\n|---|---|---|---|---|\n";

/// Returns all keys with type, default and meaning, as Markdown: those read by kd, then those read only by kingdom-cli.
pub fn docs_table() -> String {
    let mut out = String::new();
    let mut section = "";
    for key in KEYS.iter().filter(|key| key.reader != Reader::KingdomCli) {
        let own = section_of(key);
        if own != section {
            section = own;
            out.push_str(&format!(
                "{}### `{section}`\n\n",
                if out.is_empty() { "" } else { "\n" }
            ));
            out.push_str(HEAD);
        }
        out.push_str(&row(key));
    }
    out.push_str("\n### Only for kingdom-cli\n\nAccepted, so that both programs can share `.kd/config.json`; without effect in kd.\n\n");
    out.push_str(HEAD);
    KEYS.iter()
        .filter(|key| key.reader == Reader::KingdomCli)
        .for_each(|key| out.push_str(&row(key)));
    out
}

/// Returns the variables, as Markdown.
pub fn environment_table() -> String {
    let mut out = String::from("| variable | short | sets |\n|---|---|---|\n");
    for key in KEYS {
        if let Some(name) = env_name(key) {
            let short = key
                .short_env
                .map(|name| format!("`{name}`"))
                .unwrap_or_default();
            out.push_str(&format!("| `{name}` | {short} | `{}` |\n", key.path));
        }
    }
    out
}

fn section_of(key: &Key) -> &'static str {
    key.path.split('.').next().unwrap_or_default()
}

fn row(key: &Key) -> String {
    let default = match key.default {
        "null" | "\"\"" => String::new(),
        default => format!("`{default}`"),
    };
    let doc = key.doc.replace("<name>", "\\<name\\>");
    format!(
        "| `{}` | {} | {default} | {} | {doc} |\n",
        key.path,
        key.kind.words(),
        key.project.words()
    )
}
