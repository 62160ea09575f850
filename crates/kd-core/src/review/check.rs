//! Checks the lines that a finding quotes against the reviewed tree.
//!
//! Input: a finding, and the text of the changed files on the reviewed side. Output: the finding with the line numbers
//! of its quote, or why it is dropped.

use super::read::bounded;
use super::{Finding, Lines};
use crate::diff;

/// Minimum non-blank characters of a quote shorter than a line.
const PIECE_CHARS_MIN: usize = 6;
/// Maximum lines of a quote.
const QUOTE_LINES_MAX: usize = 60;
/// Maximum lines from the first quoted line to the last, including blank ones.
const SPAN_MAX: u32 = 200;

/// A finding confirmed by the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The finding, with the tree's path and the lines of its quote.
    pub finding: Finding,
    /// The correction that was made.
    pub note: Option<String>,
}

/// The reason why a finding is dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unconfirmed {
    /// Its path leads out of the reviewed tree.
    #[error("its path leads out of the reviewed tree")]
    Outside,
    /// Its file is not part of the change.
    #[error("its file is not part of the change")]
    Unchanged,
    /// It quotes no code.
    #[error("it quotes no code")]
    NoCode,
    /// It quotes too many lines.
    #[error("it quotes more than {QUOTE_LINES_MAX} lines")]
    TooLong,
    /// This file does not contain the quote.
    #[error("`{0}` does not hold the quoted code")]
    NotHeld(String),
}

/// Checks a finding. `text` returns the reviewed side of a changed file; `None` for every other path.
///
/// # Errors
/// If the finding names a file outside of the change, or quotes no code, too many lines, or code that the file does not
/// contain.
pub fn check<'a>(
    finding: &Finding,
    text: impl Fn(&str) -> Option<&'a str>,
) -> Result<Checked, Unconfirmed> {
    let named = resolve(&finding.file, text)?;
    let readings = readings(&finding.quote);
    if !readings.is_empty() && readings.iter().all(|wanted| wanted.len() > QUOTE_LINES_MAX) {
        return Err(Unconfirmed::TooLong);
    }
    let found = named.iter().find_map(|(file, text)| {
        let lines = nearest(text, &readings, finding.lines)?;
        Some((file, text, lines))
    });
    let Some((file, text, found)) = found else {
        let is_code = |line: &str| !line.trim().is_empty() && !is_fence(line);
        let file = named.first().map(|(file, _)| file.as_str());
        return Err(match finding.quote.lines().any(is_code) {
            true => Unconfirmed::NotHeld(file.unwrap_or_default().to_owned()),
            false => Unconfirmed::NoCode,
        });
    };
    let told = finding.lines;
    let overlaps = found.first <= told.last && told.first <= found.last;
    let note = (!overlaps).then(|| match told.first {
        0 => format!("lines {} found by the quoted code", range(found)),
        _ => format!("lines corrected from {} to {}", range(told), range(found)),
    });
    // Use the tree's lines, not the member's: parts of a quote that the check ignores are never shown as code.
    let first = usize::try_from(found.first).unwrap_or(usize::MAX);
    let count = usize::try_from(found.last - found.first + 1).unwrap_or(usize::MAX);
    let code: Vec<&str> = text.lines().skip(first - 1).take(count).collect();
    Ok(Checked {
        finding: Finding {
            file: file.clone(),
            lines: found,
            quote: bounded(&code.join("\n")),
            ..finding.clone()
        },
        note,
    })
}

/// Returns the lines of a text that hold a quote, in the first of its readings that the text holds; of several places,
/// the nearest one to these lines.
fn nearest(text: &str, readings: &[Vec<String>], told: Lines) -> Option<Lines> {
    let lines: Vec<(u32, String)> = (1u32..)
        .zip(text.lines())
        .map(|(number, line)| (number, squeezed(line)))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let of_reading = |wanted: &Vec<String>| {
        let places = (0..lines.len()).filter_map(|at| place(&lines[at..], wanted));
        // If only a diff is known, the next known line may be far away.
        let places = places.filter(|found| found.last - found.first < SPAN_MAX);
        places.min_by_key(|found| found.first.abs_diff(told.first))
    };
    let mut short = readings
        .iter()
        .filter(|wanted| wanted.len() <= QUOTE_LINES_MAX);
    short.find_map(of_reading)
}

fn range(lines: Lines) -> String {
    match lines.first == lines.last {
        true => lines.first.to_string(),
        false => format!("{}-{}", lines.first, lines.last),
    }
}

/// Returns the changed files that a path may name: as it is, or as members write it: in quotes, or after the `a/` or
/// `b/` of a diff. Files whose names look the same come together.
///
/// No path is ever opened: it is only compared with the names of the change.
fn resolve<'a>(
    path: &str,
    text: impl Fn(&str) -> Option<&'a str>,
) -> Result<Vec<(String, &'a str)>, Unconfirmed> {
    let found = spellings(path).into_iter().find_map(|name| {
        let text = text(&name)?;
        Some((name, text))
    });
    let Some((name, first)) = found else {
        return Err(match leads_out(path.trim().trim_matches('`')) {
            true => Unconfirmed::Outside,
            false => Unconfirmed::Unchanged,
        });
    };
    let alike = (2..).map(|number| diff::numbered(&name, number));
    let alike = alike.map_while(|name| Some((text(&name)?, name)));
    let alike: Vec<_> = alike.map(|(text, name)| (name, text)).collect();
    Ok(std::iter::once((name, first)).chain(alike).collect())
}

/// Returns the names that a path may stand for, the most literal first. None leads out of the tree.
fn spellings(path: &str) -> Vec<String> {
    let trimmed = path.trim();
    let bare = trimmed.trim_matches('`');
    let unquoted = diff::shown_name(&diff::unquoted(bare));
    let mut names = Vec::new();
    for path in [path, trimmed, bare, &unquoted] {
        let below = path.trim_start_matches("./");
        let forms = [
            Some(path),
            Some(below),
            below.strip_prefix("b/"),
            below.strip_prefix("a/"),
        ];
        let inside = |name: &&str| !name.starts_with('/') && name.split('/').all(|p| p != "..");
        names.extend(
            forms
                .into_iter()
                .flatten()
                .filter(inside)
                .map(str::to_owned),
        );
    }
    names
}

/// Returns whether a path that is not a name of the change looks like one outside of the tree.
fn leads_out(path: &str) -> bool {
    path.starts_with(['/', '\\', '~'])
        || path.contains(":\\")
        || path.split(['/', '\\']).any(|part| part == "..")
}

/// Returns the possible readings of a quote, without white space: unchanged first, because the code itself may
/// contain fences, numbers and signs; then without those that members add.
fn readings(quote: &str) -> Vec<Vec<String>> {
    let raw: Vec<&str> = quote
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let forms = [
        Some(raw.clone()),
        unfenced(&raw),
        Some(without_fences(&raw)),
    ];
    let mut all: Vec<Vec<String>> = Vec::new();
    for form in forms.into_iter().flatten() {
        let (bare, plain) = (unnumbered(&form), unsigned(&form));
        let both = [
            bare.as_deref().and_then(unsigned),
            plain.as_deref().and_then(unnumbered),
        ];
        let readings = [Some(form), bare, plain].into_iter().chain(both);
        for reading in readings.flatten() {
            let reading: Vec<String> = reading.iter().map(|line| squeezed(line)).collect();
            let reading: Vec<String> = reading
                .into_iter()
                .filter(|line| !line.is_empty())
                .collect();
            if !reading.is_empty() && !all.contains(&reading) {
                all.push(reading);
            }
        }
    }
    all
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

/// Strips the fence around a quote.
fn unfenced<'q>(lines: &[&'q str]) -> Option<Vec<&'q str>> {
    match lines {
        [first, inner @ .., last] if is_fence(first) && is_fence(last) => Some(inner.to_vec()),
        _ => None,
    }
}

/// Strips all lines that are fences.
fn without_fences<'q>(lines: &[&'q str]) -> Vec<&'q str> {
    lines
        .iter()
        .copied()
        .filter(|line| !is_fence(line))
        .collect()
}

/// Strips the numbers before lines, if each line has one.
fn unnumbered<'q>(lines: &[&'q str]) -> Option<Vec<&'q str>> {
    lines.iter().map(|line| without_number(line)).collect()
}

/// Strips the signs of a diff whose lines are added or unchanged.
fn unsigned<'q>(lines: &[&'q str]) -> Option<Vec<&'q str>> {
    let added = lines.iter().any(|line| line.starts_with('+'))
        && lines.iter().all(|line| line.starts_with(['+', ' ', '\t']));
    let strip = |line: &&'q str| line.strip_prefix('+').unwrap_or(line);
    added.then(|| lines.iter().map(strip).collect())
}

/// Strips the number before a line: `12 | code`, `12: code`, or with a tab or an arrow, as file printing programs
/// write it.
fn without_number(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = rest
        .get(digits..)
        .filter(|_| digits > 0)?
        .trim_start_matches(' ');
    rest.strip_prefix(['|', ':', '\t', '→', '│'])
}

fn squeezed(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns the position of a quote that begins at the first of these lines. The first quoted line may be the end of a
/// line, and the last one a beginning; a single one may be any part of a line.
fn place(lines: &[(u32, String)], wanted: &[String]) -> Option<Lines> {
    let here = lines.get(..wanted.len())?;
    let last = wanted.len() - 1;
    for (at, ((_, line), quoted)) in here.iter().zip(wanted).enumerate() {
        let piece = quoted.chars().count() >= PIECE_CHARS_MIN;
        let holds = line == quoted
            || piece
                && match (at == 0, at == last) {
                    (true, true) => line.contains(quoted.as_str()),
                    (true, false) => line.ends_with(quoted.as_str()),
                    (false, true) => line.starts_with(quoted.as_str()),
                    (false, false) => false,
                };
        if !holds {
            return None;
        }
    }
    Some(Lines {
        first: here[0].0,
        last: here[last].0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::read;
    use std::collections::BTreeMap;

    /// A name of the change, and how a member may write it.
    const SPELLINGS: &[(&str, &[&str])] = &[
        (
            "src/a.rs",
            &[
                "src/a.rs",
                "./src/a.rs",
                "a/src/a.rs",
                "b/src/a.rs",
                "`src/a.rs`",
                " src/a.rs ",
                "\"src/a.rs\"",
            ],
        ),
        ("~x.rs", &["~x.rs", "`~x.rs`", "b/~x.rs"]),
        ("x\\..\\y", &["x\\..\\y", "\"x\\\\..\\\\y\"", "b/x\\..\\y"]),
        ("C:\\", &["C:\\"]),
        ("\\\\host\\x", &["\\\\host\\x"]),
        ("a  b", &["a  b", "`a  b`"]),
        (" a", &[" a"]),
        ("a ", &["a "]),
        ("`a`", &["`a`", "b/`a`"]),
        ("'q' \"q\"", &["'q' \"q\"", "b/'q' \"q\""]),
        (
            "tab t.rs",
            &[
                "tab t.rs",
                "tab\tt.rs",
                "\"tab\\tt.rs\"",
                "\"b/tab\\tt.rs\"",
            ],
        ),
        ("two lines", &["two lines", "two\nlines"]),
        ("\\xff.rs", &["\\xff.rs", "\"\\377.rs\""]),
        ("é.rs", &["é.rs", "\"\\303\\251.rs\""]),
        ("-x", &["-x"]),
        ("a---b", &["a---b"]),
        ("a/b/c", &["a/b/c", "b/a/b/c"]),
        (":(top)x", &[":(top)x"]),
        ("..x/...", &["..x/..."]),
    ];

    /// Paths that name nothing of the change, whatever it contains.
    const OUTSIDE: &[&str] = &[
        "/etc/passwd",
        "../x",
        "a/../../x",
        "src/..",
        "~/.ssh/id",
        "C:\\x.rs",
        "\\\\h\\s",
    ];

    fn finding(path: &str) -> Result<Checked, Unconfirmed> {
        let mut files: BTreeMap<String, String> = SPELLINGS
            .iter()
            .map(|(name, _)| ((*name).to_owned(), format!("let abc = {name:?};\n")))
            .collect();
        // A hostile diff can name these; git tracks none of them.
        for name in ["/etc/passwd", "../x", "a/../../x", "src/.."] {
            files.insert(name.to_owned(), "let abc = 1;\n".to_owned());
        }
        let reply =
            serde_json::json!({"findings": [{"file": path, "claim": "c", "quote": "let abc ="}]});
        let read = read::findings(&reply.to_string()).expect("a reply");
        check(&read.findings[0], |path| {
            files.get(path).map(String::as_str)
        })
    }

    #[test]
    fn a_finding_survives_however_its_file_is_named() {
        for (name, spellings) in SPELLINGS {
            for spelling in *spellings {
                let found = finding(spelling).unwrap_or_else(|why| panic!("{spelling:?}: {why}"));
                assert_eq!(found.finding.file, *name, "{spelling:?}");
                assert_eq!(found.finding.quote, format!("let abc = {name:?};"));
            }
        }
        for path in OUTSIDE {
            assert_eq!(finding(path), Err(Unconfirmed::Outside), "{path}");
        }
        assert_eq!(finding("src/b.rs"), Err(Unconfirmed::Unchanged));
    }

    #[test]
    fn files_whose_names_look_the_same_are_told_apart_by_the_quote() {
        let files = BTreeMap::from([
            ("x", "let a = 1;"),
            ("x (2)", "let b = 2;"),
            ("x (3)", "let c = 3;"),
        ]);
        let place = |quote: &str| {
            let finding = Finding {
                file: "x".into(),
                quote: quote.into(),
                ..Finding::default()
            };
            check(&finding, |path| files.get(path).copied()).map(|found| found.finding.file)
        };
        for (quote, file) in [
            ("let a = 1;", "x"),
            ("let b = 2;", "x (2)"),
            ("let c = 3;", "x (3)"),
        ] {
            assert_eq!(place(quote).as_deref(), Ok(file));
        }
        assert_eq!(
            place("let d = 4;"),
            Err(Unconfirmed::NotHeld("x".to_owned()))
        );
    }
}
