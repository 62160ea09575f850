//! Checks the lines that a finding quotes against the reviewed tree.
//!
//! Input: a finding, and the text of the changed files on the reviewed side. Output: the finding with the line numbers
//! of its quote, or why it is dropped.

use super::read::bounded;
use super::{Finding, Lines};

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

/// Checks a finding. `text` returns the reviewed side of a changed file; `None` for every other path.
///
/// # Errors
/// If the finding names a file outside of the change, or quotes no code, too many lines, or code that the file does not
/// contain. The error says which.
pub fn check<'a>(
    finding: &Finding,
    text: impl Fn(&str) -> Option<&'a str>,
) -> Result<Checked, String> {
    let (file, text) = resolve(&finding.file, text)?;
    let readings = readings(&finding.quote);
    if !readings.is_empty() && readings.iter().all(|wanted| wanted.len() > QUOTE_LINES_MAX) {
        return Err(format!("it quotes more than {QUOTE_LINES_MAX} lines"));
    }
    let lines: Vec<(u32, String)> = (1u32..)
        .zip(text.lines())
        .map(|(number, line)| (number, squeezed(line)))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let nearest = |wanted: &Vec<String>| {
        let places = (0..lines.len()).filter_map(|at| place(&lines[at..], wanted));
        // If only a diff is known, the next known line may be far away.
        let places = places.filter(|found| found.last - found.first < SPAN_MAX);
        places.min_by_key(|found| found.first.abs_diff(finding.lines.first))
    };
    let short = readings
        .iter()
        .filter(|wanted| wanted.len() <= QUOTE_LINES_MAX);
    let Some(found) = short.into_iter().find_map(nearest) else {
        let is_code = |line: &str| !line.trim().is_empty() && !is_fence(line);
        return Err(match finding.quote.lines().any(is_code) {
            true => format!("`{file}` does not hold the quoted code"),
            false => "it quotes no code".to_owned(),
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
            file,
            lines: found,
            quote: bounded(&code.join("\n")),
            ..finding.clone()
        },
        note,
    })
}

fn range(lines: Lines) -> String {
    match lines.first == lines.last {
        true => lines.first.to_string(),
        false => format!("{}-{}", lines.first, lines.last),
    }
}

/// Returns the changed file that a path names: as it is, or after the `a/` or `b/` of a diff.
fn resolve<'a>(
    path: &str,
    text: impl Fn(&str) -> Option<&'a str>,
) -> Result<(String, &'a str), String> {
    let path = path.trim().trim_matches('`');
    let outside = path.starts_with(['/', '\\', '~'])
        || path.contains(":\\")
        || path.split(['/', '\\']).any(|part| part == "..");
    if outside {
        return Err("its path leads out of the reviewed tree".to_owned());
    }
    let bare = path.trim_start_matches("./");
    let forms = [Some(bare), bare.strip_prefix("b/"), bare.strip_prefix("a/")];
    forms
        .into_iter()
        .flatten()
        .find_map(|form| text(form).map(|text| (form.to_owned(), text)))
        .ok_or_else(|| "its file is not part of the change".to_owned())
}

/// Returns the possible readings of a quote, without white space: as it is first, because code may contain fences,
/// numbers and signs of its own; then without those that members add.
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

/// Strips the number before a line: `12 | code`, `12: code`, or a tab or an arrow as programs that print files write.
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
