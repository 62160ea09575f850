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
                writeln!(out, "\n{}", spans(text, plain, |code| format!("`{code}`")))
            }
            Block::Code(text) => writeln!(out, "\n```console\n{text}\n```"),
            Block::List(items) => {
                let item = |text: &String| {
                    format!("\n- {}", spans(text, plain, |code| format!("`{code}`")))
                };
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

/// Returns the page as HTML, complete and without scripts.
pub fn html(study: &Study) -> String {
    let mut out = String::from(HEAD);
    for block in blocks(study) {
        let inline = |text: &str| {
            spans(text, escaped, |code| {
                format!("<code>{}</code>", escaped(code))
            })
        };
        let _ = match &block {
            Block::Title(text) => writeln!(out, "<h1>{}</h1>", escaped(text)),
            Block::Head(text) => writeln!(out, "<h2>{}</h2>", escaped(text)),
            Block::Text(text) => writeln!(out, "<p>{}</p>", inline(text)),
            Block::Code(text) => writeln!(out, "<pre>{}</pre>", escaped(text)),
            Block::List(items) => {
                let item = |text: &String| format!("<li>{}</li>\n", inline(text));
                writeln!(
                    out,
                    "<ul>\n{}</ul>",
                    items.iter().map(item).collect::<String>()
                )
            }
            Block::Table(head, rows) => {
                let row = |tag: &str, cells: &[String]| {
                    let cell = |text: &String| format!("<{tag}>{}</{tag}>", escaped(text));
                    format!("<tr>{}</tr>\n", cells.iter().map(cell).collect::<String>())
                };
                let body: String = rows.iter().map(|cells| row("td", cells)).collect();
                writeln!(
                    out,
                    "<table>\n<thead>\n{}</thead>\n<tbody>\n{body}</tbody>\n</table>",
                    row("th", head)
                )
            }
        };
    }
    out.push_str("</body>\n</html>\n");
    out
}

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>Do councils beat their best member?</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #bbb; padding: .3rem .7rem; text-align: left; }
pre { background: #f2f2f2; padding: .7rem; overflow-x: auto; }
</style>
</head>
<body>
";

/// Renders text: parts between backquotes are code.
fn spans(text: &str, words: impl Fn(&str) -> String, code: impl Fn(&str) -> String) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(at, part)| if at % 2 == 0 { words(part) } else { code(part) })
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
