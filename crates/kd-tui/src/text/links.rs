//! Addresses in laid-out text, which terminals can open (OSC 8). The text of a link is its address, so a link cannot
//! lead elsewhere than it says.

use super::wrap::{Line, width};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Maximum length of an address; longer ones stay text.
const ADDRESS_MAX: usize = 2048;

/// A part of an address in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The line.
    pub line: usize,
    /// The first column.
    pub from: usize,
    /// The column after the last.
    pub to: usize,
    /// The whole address.
    pub url: Arc<str>,
}

/// Finds the `http` and `https` addresses in these of the laid-out lines; `line` returns a line by its number. It is only
/// called for these lines and for the lines where one of their addresses begins or ends.
///
/// An address continues in the next line only where its word was broken. An address followed directly by a letter or
/// digit that is not ASCII is not a link: it would look like another host.
pub fn find<'l>(line: impl Fn(usize) -> Option<&'l Line>, shown: Range<usize>) -> Vec<Found> {
    let mut found = Vec::new();
    let (first, is_inside) = begin_of(&line, shown.start);
    // The end of the address, in the line on which it continues.
    let mut taken = (0, 0);
    if is_inside {
        let start = line(first).map_or(0, |line| indent(&plain(line)));
        taken = Address::read(&line, (first, start), shown.end).end();
    }
    for at in first..shown.end {
        let Some(text) = line(at).map(plain) else {
            break;
        };
        let mut from = match taken.0.cmp(&at) {
            Ordering::Less => 0,
            Ordering::Equal => taken.1,
            Ordering::Greater => continue,
        };
        while let Some(start) = begin(&text, from) {
            let address = Address::read(&line, (at, start), shown.end);
            taken = address.end();
            found.extend(address.links(&line));
            if taken.0 > at {
                break;
            }
            from = taken.1;
        }
    }
    found.retain(|found| shown.contains(&found.line));
    found.sort_by_key(|found| (found.line, found.from));
    found
}

/// Returns the first line of the word that continues in a line, and whether the word is too long for an address and
/// begins earlier.
fn begin_of<'l>(line: &impl Fn(usize) -> Option<&'l Line>, mut first: usize) -> (usize, bool) {
    let mut bytes = 0;
    while let Some(before) = first.checked_sub(1).and_then(line).filter(|l| is_cut(l)) {
        first -= 1;
        bytes += before.iter().map(|span| span.text.len()).sum::<usize>();
        if bytes > ADDRESS_MAX {
            return (first, true);
        }
    }
    (first, false)
}

/// An address in laid-out lines.
struct Address {
    url: String,
    /// Its line, first byte and the byte after the last, for each line it is in.
    parts: Vec<(usize, usize, usize)>,
    /// Whether it is known to its end.
    is_whole: bool,
}

impl Address {
    /// Reads the address that begins at a line and byte. One that is too long for a link may end at `end`, the first line
    /// that is not shown.
    fn read<'l>(
        line: &impl Fn(usize) -> Option<&'l Line>,
        (mut at, first): (usize, usize),
        end: usize,
    ) -> Self {
        let mut url = String::new();
        let mut parts = Vec::new();
        let is_whole = loop {
            let Some(here) = line(at) else {
                break false;
            };
            let text = plain(here);
            let start = match parts.is_empty() {
                true => first,
                false => indent(&text),
            };
            let more = run(&text[start..]);
            url.push_str(more);
            let to = start + more.len();
            parts.push((at, start, to));
            if more.is_empty() {
                // The rest stands behind the edge of a quote, or was left out.
                break false;
            }
            if to < text.len() || !is_cut(here) {
                let next = text[to..].chars().next();
                break !next.is_some_and(char::is_alphanumeric);
            }
            if url.len() > ADDRESS_MAX && at + 1 >= end {
                break false;
            }
            at += 1;
        };
        Self {
            url,
            parts,
            is_whole,
        }
    }

    /// Returns the last line of the address, and the byte of that line where the address ends.
    fn end(&self) -> (usize, usize) {
        self.parts.last().map_or((0, 0), |part| (part.0, part.2))
    }

    /// Returns the parts of the link; nothing if the address is not a link.
    fn links<'l>(mut self, line: &impl Fn(usize) -> Option<&'l Line>) -> Vec<Found> {
        let kept = trimmed(&self.url);
        let mut cut = self.url.len() - kept;
        self.url.truncate(kept);
        if !self.is_whole || self.url.len() > ADDRESS_MAX || !has_host(&self.url) {
            return Vec::new();
        }
        let url: Arc<str> = self.url.into();
        let mut found = Vec::new();
        for (at, from, to) in self.parts.into_iter().rev() {
            let less = cut.min(to - from);
            cut -= less;
            if let Some(line) = line(at).filter(|_| to - less > from) {
                let text = plain(line);
                found.push(Found {
                    line: at,
                    from: width(&text[..from]),
                    to: width(&text[..to - less]),
                    url: url.clone(),
                });
            }
        }
        found
    }
}

/// Returns whether the last word of a line continues in the next one.
fn is_cut(line: &Line) -> bool {
    line.last().is_some_and(|span| span.cut)
}

/// Returns the length of the spaces at the beginning.
fn indent(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

fn plain(line: &Line) -> String {
    line.iter().map(|span| span.text.as_str()).collect()
}

/// Returns where the next address begins.
fn begin(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let found = ["http://", "https://"].map(|scheme| rest.find(scheme));
    let at = from + found.into_iter().flatten().min()?;
    // `xhttp://` is none.
    let before = text[..at].chars().next_back();
    match before {
        Some(c) if c.is_alphanumeric() => begin(text, at + 4),
        _ => Some(at),
    }
}

/// Returns the characters of an address at the beginning of a text.
fn run(text: &str) -> &str {
    let stops = |c: char| !c.is_ascii_graphic() || matches!(c, '<' | '>' | '"' | '`' | '\\' | '|');
    &text[..text.find(stops).unwrap_or(text.len())]
}

/// Returns the length of an address without the punctuation of the sentence around it.
fn trimmed(url: &str) -> usize {
    let mut kept = url;
    while let Some(last) = kept.chars().next_back() {
        let goes = match last {
            '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '_' => true,
            ')' => kept.matches('(').count() < kept.matches(')').count(),
            ']' => kept.matches('[').count() < kept.matches(']').count(),
            _ => false,
        };
        if !goes {
            break;
        }
        kept = &kept[..kept.len() - last.len_utf8()];
    }
    kept.len()
}

fn has_host(url: &str) -> bool {
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
}

/// Returns whether the terminal is known to show links. `FORCE_HYPERLINK=1` says that it does, `0` that it does not.
pub fn are_known(env: &dyn Fn(&str) -> Option<String>) -> bool {
    let var = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(forced) = var("FORCE_HYPERLINK") {
        return forced != "0";
    }
    let term = var("TERM").unwrap_or_default();
    if var("NO_COLOR").is_some() || term == "dumb" {
        return false;
    }
    let program = var("TERM_PROGRAM").unwrap_or_default();
    if var("TMUX").is_some() || program == "tmux" {
        // 3.4 was the first version that passes them on.
        let version = var("TERM_PROGRAM_VERSION").unwrap_or_default();
        let mut parts = version.split('.').map(|part| {
            let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
            digits.parse::<u32>().unwrap_or(0)
        });
        let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        return program == "tmux" && version >= (3, 4);
    }
    let programs = ["iTerm.app", "WezTerm", "vscode", "ghostty", "rio", "Hyper"];
    let terms = [
        "xterm-kitty",
        "xterm-ghostty",
        "alacritty",
        "foot",
        "wezterm",
        "contour",
    ];
    let vte = var("VTE_VERSION").and_then(|v| v.parse::<u32>().ok());
    programs.contains(&program.as_str())
        || terms.iter().any(|known| term.starts_with(known))
        || vte.is_some_and(|version| version >= 5000)
        || var("WT_SESSION").is_some()
        || var("KONSOLE_VERSION").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::wrap::Span;

    /// `~` at the end of a line stands for a cut word.
    fn in_lines(lines: &[&str]) -> Vec<(usize, usize, usize, String)> {
        let line = |text: &&str| {
            let mut span = Span::plain(text.trim_end_matches('~'));
            span.cut = text.ends_with('~');
            vec![span]
        };
        of(&lines.iter().map(line).collect::<Vec<Line>>())
    }

    fn of(lines: &[Line]) -> Vec<(usize, usize, usize, String)> {
        let found = find(|at| lines.get(at), 0..lines.len()).into_iter();
        found
            .map(|f| (f.line, f.from, f.to, f.url.to_string()))
            .collect()
    }

    #[test]
    fn addresses_end_where_the_sentence_goes_on() {
        for (text, url) in [
            (
                "see https://example.org/a?b=c#d.",
                "https://example.org/a?b=c#d",
            ),
            ("(http://h/x)", "http://h/x"),
            ("http://h/a_(b)", "http://h/a_(b)"),
            ("<https://h>", "https://h"),
            ("**https://h/x**", "https://h/x"),
        ] {
            let found = in_lines(&[text]);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].3, url);
            assert_eq!(&text[found[0].1..found[0].2], url);
        }
        for text in [
            "xhttp://h",
            "https://",
            "file:///etc/passwd",
            "javascript:http",
            "https://.x",
        ] {
            assert_eq!(in_lines(&[text]), [], "{text}");
        }
        let two = in_lines(&["日本 http://a, http://b"]);
        assert_eq!((two[0].1, two[0].2), (5, 13), "columns, not bytes");
        assert_eq!(two[1].3, "http://b");
    }

    #[test]
    fn a_wrapped_address_is_one_link_with_a_part_in_each_line() {
        let url = "https://example.org/long/path";
        let found = in_lines(&["https://examp~", "  le.org/long~", "  /path. next"]);
        let parts: Vec<_> = found.iter().map(|f| (f.0, f.1, f.2)).collect();
        assert_eq!(parts, [(0, 0, 13), (1, 2, 13), (2, 2, 7)]);
        assert!(found.iter().all(|f| f.3 == url), "{found:?}");
        // A line that was not cut ends the address.
        assert_eq!(in_lines(&["http://a", "b"])[0].3, "http://a");
        // Other addresses after the wrapped one are found.
        let found = in_lines(&["http://abcdef~", "g http://h"]);
        assert_eq!(found.last().map(|f| f.3.as_str()), Some("http://h"));
        // A part alone would lead elsewhere.
        for lines in [&["http://abcdef~", "> g"][..], &["http://abcdef~"]] {
            assert_eq!(in_lines(lines), [], "{lines:?}");
        }
    }

    /// The links in these lines of a text whose lines begin with numbers, and the numbers of the lines read.
    fn shown(lines: &[Line], shown: Range<usize>) -> (Vec<Found>, Vec<usize>) {
        let read = std::cell::RefCell::new(Vec::new());
        let found = find(
            |at| {
                read.borrow_mut().push(at);
                lines.get(at)
            },
            shown,
        );
        let mut read = read.into_inner();
        read.sort_unstable();
        read.dedup();
        (found, read)
    }

    #[test]
    fn only_visible_lines_are_read_and_those_of_their_addresses() {
        let mut lines: Vec<Line> = (0..10_000)
            .map(|n| vec![Span::plain(format!("{n} http://h/{n} and so on"))])
            .collect();
        let (found, read) = shown(&lines, 5_000..5_040);
        assert_eq!(found.len(), 40);
        assert_eq!(&*found[0].url, "http://h/5000");
        assert_eq!(read, (4_999..5_040).collect::<Vec<_>>());
        // An address that begins above the visible lines and ends below them.
        for (at, text) in [(99, "http://h/a"), (100, "/b"), (101, "/c end")] {
            let mut span = Span::plain(text);
            span.cut = at < 101;
            lines[at] = vec![span];
        }
        let (found, read) = shown(&lines, 100..101);
        assert_eq!(read, (98..102).collect::<Vec<_>>());
        assert_eq!((found.len(), &*found[0].url), (1, "http://h/a/b/c"));
    }

    #[test]
    fn a_word_without_end_is_not_read_to_its_end_and_has_no_link() {
        let line = |n: usize| {
            let text = if n == 5_010 { "http://h/" } else { "abcdefgh/" };
            let mut span = Span::plain(text);
            span.cut = true;
            vec![span]
        };
        let lines: Vec<Line> = (0..10_000).map(line).collect();
        let (found, read) = shown(&lines, 5_000..5_040);
        assert_eq!(found, []);
        assert!(read.len() < 3 * ADDRESS_MAX / 9, "{}", read.len());
    }

    #[test]
    fn an_address_takes_nothing_of_the_words_around_it() {
        use crate::text::markdown;
        use crate::text::style::Styles;
        let url = "https://example.org/a";
        for (text, known) in [
            (format!("{url} next words\n"), url),
            (format!("- {url}\n- another\n"), url),
            (format!("1. {url}\n2. another\n"), url),
            (format!("```\n{url}\nls\n```\n"), url),
            (format!("{url}\n\nanother\n"), url),
            (format!("> {url} and\n"), url),
            (
                format!("{url}/long/path/to/there next\n"),
                "https://example.org/a/long/path/to/there",
            ),
        ] {
            for columns in 8..60 {
                for found in of(&markdown::lines(&text, columns, Styles::NONE)) {
                    assert_eq!(found.3, known, "{columns}: {text}");
                }
            }
            let wide = of(&markdown::lines(&text, 60, Styles::NONE));
            assert_eq!(wide.len(), 1, "{text}");
        }
    }

    #[test]
    fn an_address_that_runs_into_a_foreign_letter_is_no_link() {
        for text in [
            "https://github.com\u{43f}\u{440}.evil.example/x",
            "https://github.com.\u{43f}\u{440}.example",
            "https://github.com/\u{7684}",
            "https://1.1.1.1\u{661}",
        ] {
            assert_eq!(in_lines(&[text]), [], "{text}");
            for at in text.char_indices().map(|(at, _)| at).skip(1) {
                let first = format!("{}~", &text[..at]);
                assert_eq!(in_lines(&[&first, &text[at..]]), [], "{text} cut at {at}");
            }
        }
        let found = in_lines(&["https://github.com\u{3002}"]);
        assert_eq!(found[0].3, "https://github.com");
    }

    #[test]
    fn only_known_terminals_get_links() {
        let known = |vars: &[(&str, &str)]| {
            are_known(&|name| {
                let found = vars.iter().find(|(n, _)| *n == name);
                found.map(|(_, v)| (*v).to_owned())
            })
        };
        for vars in [
            &[("TERM", "xterm-kitty")][..],
            &[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")],
            &[
                ("TERM_PROGRAM", "tmux"),
                ("TERM_PROGRAM_VERSION", "3.5a"),
                ("TMUX", "x"),
            ],
            &[("TERM", "screen"), ("FORCE_HYPERLINK", "1")],
        ] {
            assert!(known(vars), "{vars:?}");
        }
        for vars in [
            &[][..],
            &[("TERM", "xterm-256color")],
            &[("TERM", "dumb"), ("VTE_VERSION", "7600")],
            &[("TERM", "xterm-kitty"), ("NO_COLOR", "1")],
            &[
                ("TERM_PROGRAM", "tmux"),
                ("TERM_PROGRAM_VERSION", "3.3a"),
                ("TMUX", "x"),
            ],
            &[("TERM", "xterm-kitty"), ("FORCE_HYPERLINK", "0")],
        ] {
            assert!(!known(vars), "{vars:?}");
        }
    }
}
