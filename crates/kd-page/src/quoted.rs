//! Messages of programs. Their quotes, whose lines begin with `| `, are folded below a name and keep their lines.
//!
//! Programs that ask the council send the results of their tools and the conversation so far in this way.

use crate::facts::plain;
use crate::markdown;
use maud::{Markup, html};

/// The prefix of a quoted line.
const MARK: &str = "| ";
/// Maximum lines of a quote that is shown unfolded.
const OPEN_LINES: usize = 3;
/// Maximum characters of the name of a quote.
const NAME_CHARS: usize = 80;

/// A part of a message.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    /// Markdown.
    Text(&'a str),
    /// The name of a quote, and its lines.
    Quote(&'a str, Vec<&'a str>),
}

/// Renders a message that may quote.
pub(crate) fn render(text: &str) -> Markup {
    html! {
        @for part in parts(text) {
            @match part {
                Part::Text(text) => (markdown::render(text)),
                Part::Quote(name, lines) => {
                    details.quoted open[lines.len() <= OPEN_LINES] {
                        summary {
                            b { (kd_core::clean::clean_line(name, NAME_CHARS)) } " "
                            span.faint { (lines.len()) @if lines.len() == 1 { " line" } @else { " lines" } }
                        }
                        pre tabindex="0" { (plain(&lines.join("\n"))) }
                    }
                }
            }
        }
    }
}

/// Returns the name of the quote with which a message begins, such as `result of run`.
pub(crate) fn first_name(text: &str) -> Option<String> {
    let text = text.trim_start();
    let (name, below) = line(text, 0);
    let name = name_of_quote(name)?;
    let (lines, _) = lines_of_quote(text, below);
    (!lines.is_empty()).then(|| kd_core::clean::clean_line(name, NAME_CHARS))
}

/// Returns the name that a line gives to a quote below it.
fn name_of_quote(line: &str) -> Option<&str> {
    let name = line.strip_suffix(':')?.trim();
    (!name.is_empty()).then_some(name)
}

/// Splits a message at its quotes. A Markdown table is not a quote: it has no name, or its second line is a rule.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    // Where the text begins that is in no part yet.
    let mut from = 0;
    let mut at = 0;
    while at < text.len() {
        let (first, below) = line(text, at);
        let Some(name) = name_of_quote(first) else {
            at = below;
            continue;
        };
        let (lines, end) = lines_of_quote(text, below);
        if !lines.is_empty() {
            let before = text[from..at].trim();
            if !before.is_empty() {
                parts.push(Part::Text(before));
            }
            parts.push(Part::Quote(name, lines));
            from = end;
        }
        // Each line is read once: behind a table, too.
        at = end;
    }
    let rest = text[from..].trim();
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
}

/// Returns the line at a place, and where the next one begins.
fn line(text: &str, at: usize) -> (&str, usize) {
    match text[at..].find('\n') {
        Some(end) => (&text[at..at + end], at + end + 1),
        None => (&text[at..], text.len()),
    }
}

/// Returns the quoted lines at a place without their marks, and where they end; no lines if they are a table.
fn lines_of_quote(text: &str, from: usize) -> (Vec<&str>, usize) {
    let mut lines = Vec::new();
    let mut at = from;
    while at < text.len() {
        let (line, below) = line(text, at);
        let Some(words) = line.strip_prefix(MARK).or((line == "|").then_some("")) else {
            break;
        };
        lines.push(words);
        at = below;
    }
    let is_rule = |line: &str| !line.is_empty() && line.chars().all(|c| "-:| ".contains(c));
    let is_table = text[at..].starts_with('|') || lines.get(1).is_some_and(|line| is_rule(line));
    match is_table {
        true => (Vec::new(), at),
        false => (lines, at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_their_lines_and_tables_are_none() {
        let text = "Why?\n\nThe conversation before this:\n\nuser:\n| a\n|   b <i>\n| \nassistant:\n| no\nresult of run:\n| x: |\n";
        assert_eq!(
            parts(text),
            [
                Part::Text("Why?\n\nThe conversation before this:"),
                Part::Quote("user", vec!["a", "  b <i>", ""]),
                Part::Quote("assistant", vec!["no"]),
                Part::Quote("result of run", vec!["x: |"]),
            ]
        );
        let html = render(text).into_string();
        assert!(
            html.contains("<pre tabindex=\"0\">a\n  b &lt;i&gt;\n</pre>"),
            "{html}"
        );
        for table in [
            "Prices:\n| a | b |\n|---|---|\n| 1 | 2 |",
            "| a | b |\n|--|--|",
            "x:\n| a | b |\n| - | - |",
            ":\n| a",
            "Rows:\n| a:\n| b |\n|-",
        ] {
            assert_eq!(parts(table), [Part::Text(table)], "{table}");
        }
        assert_eq!(
            first_name("result of run:\n| 1").as_deref(),
            Some("result of run")
        );
        assert_eq!(first_name("\n\nuser:\n| 1").as_deref(), Some("user"));
        for none in [
            "Go on.\nresult of run:\n| 1",
            "user:",
            "x:\n| a |\n|---|",
            "",
        ] {
            assert_eq!(first_name(none), None, "{none}");
        }
    }

    #[test]
    fn each_line_is_read_once() {
        // Read again from each line, these take minutes.
        for line in ["| a row\n", "| a:\n", "a:\n| b |\n|-\n", "a:\n", "|\n"] {
            let text = line.repeat(200_000);
            assert!(parts(&text).len() <= 1, "{line}");
        }
    }
}
