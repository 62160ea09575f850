//! The memory of a council: of the current pass (short), across passes (working), and, if the user opted in, across
//! questions (long). Every line has the numbers of its source messages.

mod extract;
mod long;

pub use extract::{sentences, similarity};
pub use long::{LongTerm, Session};

use crate::clean::clean_line;
use serde::{Deserialize, Serialize};

/// Maximum characters of a line.
const LINE_CHARS_MAX: usize = 300;
/// Maximum lines of one kind.
const LINES_MAX: usize = 8;
/// Bytes that count as a token when a text is cut to a number of tokens: the average for English.
const BYTES_A_TOKEN: usize = 4;

/// A line of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The text.
    pub text: String,
    /// The source messages.
    pub messages: Vec<u32>,
}

impl Line {
    /// Creates a line from messages.
    pub fn new(text: &str, messages: impl IntoIterator<Item = u32>) -> Self {
        let mut messages: Vec<u32> = messages.into_iter().collect();
        messages.sort_unstable();
        messages.dedup();
        Self {
            text: clean_line(text, LINE_CHARS_MAX),
            messages,
        }
    }
}

/// The memory carried from pass to pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// A summary, by a member or from extracted sentences.
    pub summary: Vec<Line>,
    /// Points of agreement.
    pub consensus_points: Vec<Line>,
    /// Points of disagreement.
    pub disagreements: Vec<Line>,
    /// Open questions.
    pub open_questions: Vec<Line>,
    /// Improvements, and results of sub-councils.
    pub refinements: Vec<Line>,
    /// The agreement of each pass.
    pub confidence_trend: Vec<f64>,
}

impl Memory {
    /// Returns whether the memory is empty.
    pub fn is_empty(&self) -> bool {
        self.confidence_trend.is_empty()
    }

    /// Returns all lines.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        [
            &self.summary,
            &self.consensus_points,
            &self.disagreements,
            &self.open_questions,
            &self.refinements,
        ]
        .into_iter()
        .flatten()
    }

    /// Adds a line of one kind, once; drops the oldest beyond the maximum.
    pub fn add(lines: &mut Vec<Line>, line: Line) {
        if line.text.is_empty() || lines.iter().any(|l| l.text == line.text) {
            return;
        }
        lines.push(line);
        if lines.len() > LINES_MAX {
            lines.remove(0);
        }
    }

    /// Returns the context of the next pass within a number of tokens: whole lines are dropped, from the end of the
    /// longest kind first.
    pub fn context(&self, iteration: u32, focus: &str, tokens_max: u32) -> String {
        let mut sorts: Vec<(&str, Vec<&str>)> = vec![
            ("Previous Work Summary", texts(&self.summary)),
            (
                "Key Decisions Made",
                texts(&self.consensus_points)
                    .into_iter()
                    .chain(texts(&self.refinements))
                    .collect(),
            ),
            (
                "Open Issues to Address",
                texts(&self.disagreements)
                    .into_iter()
                    .chain(texts(&self.open_questions))
                    .collect(),
            ),
        ];
        let most = (tokens_max as usize).saturating_mul(BYTES_A_TOKEN);
        loop {
            let text = self.written(iteration, focus, &sorts);
            let bytes = |lines: &Vec<&str>| lines.iter().map(|l| l.len()).sum::<usize>();
            let longest = sorts.iter_mut().max_by_key(|(_, lines)| bytes(lines));
            match longest {
                Some((_, lines)) if text.len() > most && !lines.is_empty() => {
                    lines.pop();
                }
                _ => return text,
            }
        }
    }

    fn written(&self, iteration: u32, focus: &str, sorts: &[(&str, Vec<&str>)]) -> String {
        let mut out = format!("## Iteration {iteration} Context\n");
        for (title, lines) in sorts.iter().filter(|(_, lines)| !lines.is_empty()) {
            out.push_str(&format!("\n### {title}\n"));
            for (at, line) in lines.iter().enumerate() {
                match *title {
                    "Key Decisions Made" => out.push_str(&format!("{}. {line}\n", at + 1)),
                    _ => out.push_str(&format!("- {line}\n")),
                }
            }
        }
        if !self.confidence_trend.is_empty() {
            let trend: Vec<String> = self
                .confidence_trend
                .iter()
                .map(|c| format!("{c:.2}"))
                .collect();
            out.push_str(&format!("\n### Confidence Trend\n{}\n", trend.join(" → ")));
        }
        out.push_str(&format!(
            "\n### Focus for This Iteration\n{focus}\n\nPlease build upon the previous work and address the open issues."
        ));
        out
    }
}

fn texts(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(|l| l.text.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_is_the_seeds_and_keeps_its_bound() {
        let mut memory = Memory {
            confidence_trend: vec![0.5, 0.625],
            ..Memory::default()
        };
        for n in 0..20u32 {
            let line = Line::new(
                &format!("point {n} with quite a few words behind it"),
                [n, n, 1],
            );
            Memory::add(&mut memory.consensus_points, line);
        }
        Memory::add(&mut memory.open_questions, Line::new("who pays?", [3]));
        let whole = memory.context(3, "Settle who pays.", 8000);
        for part in [
            "## Iteration 3 Context",
            "### Key Decisions Made\n1. point 12",
            "- who pays?",
            "0.50 → 0.62",
            "### Focus for This Iteration\nSettle who pays.",
        ] {
            assert!(whole.contains(part), "{part} in {whole}");
        }
        let short = memory.context(3, "Settle who pays.", 90);
        assert!(short.len() <= 360, "{} bytes", short.len());
        assert!(short.contains("who pays?"));
        assert_eq!(memory.consensus_points[0].messages, [1, 12]);
    }
}
