//! Renders the blocks of the page.

use super::Study;
use super::words::{Block, blocks};
use std::fmt::Write as _;

/// Returns the page as Markdown.
pub fn markdown(study: &Study) -> String {
    let mut out = String::new();
    for block in blocks(study) {
        // Writing to a string does not fail.
        let _ = match &block {
            Block::Title(text) => writeln!(out, "# {}", plain(text)),
            Block::Head(text) => writeln!(out, "\n## {}", plain(text)),
            Block::Text(text) => {
                writeln!(out, "\n{}", spans(text))
            }
            Block::Code(text) => writeln!(out, "\n```console\n{text}\n```"),
            Block::List(items) => {
                let item = |text: &String| format!("\n- {}", spans(text));
                writeln!(out, "{}", items.iter().map(item).collect::<String>())
            }
            Block::Table(head, rows) => {
                let row = |cells: &[String]| {
                    format!(
                        "\n| {} |",
                        cells
                            .iter()
                            .map(|cell| plain(cell))
                            .collect::<Vec<_>>()
                            .join(" | ")
                    )
                };
                let rule = format!("\n|{}", "---|".repeat(head.len()));
                let body: String = rows.iter().map(|cells| row(cells)).collect();
                writeln!(out, "{}{rule}{body}", row(head))
            }
        };
    }
    out
}

/// Renders text: parts between backquotes are code.
fn spans(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(at, part)| match at % 2 {
            0 => plain(part),
            _ => format!("`{part}`"),
        })
        .collect()
}

/// Escapes what would be markup in Markdown.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*_<>[]|#".contains(c) {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}
