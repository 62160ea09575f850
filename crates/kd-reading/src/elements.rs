//! Fields of a reply in markup: elements such as `<final_answer>`, and tables with a header. Rewritten to labelled lines.

use super::answer_labels::is_label;
use super::plain::is_about_confidence;
use super::ticks::cells;
use std::borrow::Cow;

/// The label of a field with an answer, as the other modules read it.
const LABEL: &str = "Final answer";
/// Names of elements around others.
const WRAPPERS: [&str; 7] = [
    "response", "reply", "output", "root", "ballot", "xml", "message",
];
/// Maximum number of elements and tables that are rewritten.
const FIELDS_MAX: usize = 50;

/// Returns a reply with its elements and tables of fields as labelled lines.
pub(super) fn as_labels(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    if let Some(lines) = elements(&out) {
        out = Cow::Owned(lines);
    }
    match table(&out) {
        Some(lines) => Cow::Owned(lines),
        None => out,
    }
}

/// Rewrites elements whose names are those of an answer or a confidence.
fn elements(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    let mut found = 0;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let field = (found < FIELDS_MAX).then(|| element(rest)).flatten();
        let Some((label, content, end)) = field else {
            out.push('<');
            rest = &rest[1..];
            continue;
        };
        found += 1;
        match label {
            // What is in a wrapper is read too.
            None => out.push('\n'),
            Some(label) => {
                out.push_str(&format!("\n{label}: {}\n", content.trim()));
            }
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    let closed = WRAPPERS
        .iter()
        .fold(out, |out, name| out.replace(&format!("</{name}>"), "\n"));
    (found > 0).then_some(closed)
}

/// Returns the element at the beginning of a text: its label, its content, and where the text goes on. Without a label it is
/// a wrapper, and the text goes on within.
fn element(text: &str) -> Option<(Option<&'static str>, &str, usize)> {
    let (name, content) = text.strip_prefix('<')?.split_once('>')?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let close = content.find(&format!("</{name}>"))?;
    let begin = name.len() + 2;
    let words = name.replace(['_', '-'], " ").to_lowercase();
    if WRAPPERS.contains(&words.as_str()) {
        return Some((None, "", begin));
    }
    let label = match is_about_confidence(&words) {
        true => "Confidence",
        false if is_label(&words) => LABEL,
        false => return None,
    };
    let content = &content[..close];
    let fits = !content.contains('<') && !content.trim().is_empty();
    fits.then_some((Some(label), content, begin + close + name.len() + 3))
}

/// Rewrites a table with a header and one row, if a cell of the header is the label of an answer.
fn table(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate().take(lines.len().saturating_sub(2)) {
        let is_rule = |line: &str| {
            line.contains("--") && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
        };
        if !is_rule(lines[at + 1]) || lines.get(at + 3).is_some_and(|line| cells(line).is_some()) {
            continue;
        }
        let (Some(header), Some(row)) = (cells(line), cells(lines[at + 2])) else {
            continue;
        };
        let mut labelled = header.iter().zip(&row);
        let is_answer = |title: &str| is_label(title) && !is_about_confidence(title);
        let Some((_, said)) = labelled.find(|(title, _)| is_answer(title)) else {
            continue;
        };
        // A second label would be another answer; a row with a title of its own is one of several.
        if labelled.any(|(title, _)| is_answer(title)) || said.is_empty() {
            continue;
        }
        let mut out = lines[..at].join("\n");
        out.push_str(&format!("\n{LABEL}: {said}\n"));
        out.push_str(&lines[at + 3..].join("\n"));
        return Some(out);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_labelled_lines() {
        for (reply, lines) in [
            (
                "<response>\n<final_answer>Paris</final_answer>\n<confidence>0.9</confidence></response>",
                "Final answer: Paris\n\n\nConfidence: 0.9",
            ),
            ("So: <ANSWER>B</ANSWER>", "So: \nFinal answer: B"),
            (
                "| Answer | Confidence |\n|---|:-:|\n| **B1** | 0.8 |",
                "Final answer: B1",
            ),
        ] {
            assert_eq!(as_labels(reply).trim(), lines, "{reply}");
        }
    }

    #[test]
    fn other_markup_stays() {
        for reply in [
            "Use `Vec<T>` and a<b.",
            "<div>Answer</div> is HTML.",
            "<answer>",
            "<answer></answer>",
            "<answer><b>x</b></answer>",
            "| Option | Answer |\n|---|---|\n| A | yes |\n| B | no |",
            "| Criterion | Finding |\n|---|---|\n| speed | good |",
            "| Answer | Answer |\n|---|---|\n| A | B |",
        ] {
            assert_eq!(as_labels(reply), reply);
        }
    }
}
