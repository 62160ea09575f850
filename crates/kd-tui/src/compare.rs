//! Two answers word by word: which words of each the other does not have in the same order.

use crate::text::markdown;
use crate::text::style::Styles;
use crate::text::wrap::{Line, Span};
use anstyle::AnsiColor;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::hash::Hash;

/// A comparison that is shown.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The names and texts.
    sides: [(String, String); 2],
    /// The layout for these columns and styles.
    laid: Option<(usize, Styles, [Side; 2])>,
    /// The first visible line.
    pub from: usize,
}

/// One answer of a comparison, rendered as in the log.
#[derive(Clone, Debug)]
pub struct Side {
    /// The member.
    pub name: String,
    /// Its lines; words that differ are marked.
    pub lines: Vec<Line>,
    /// The number of words that differ.
    pub differ: usize,
    /// The number of words.
    pub words: usize,
}

impl Comparison {
    /// Compares two texts, each after its name.
    pub fn new(sides: [(String, String); 2]) -> Self {
        Self {
            sides,
            laid: None,
            from: 0,
        }
    }

    /// Lays out both texts for these columns, unless that is done.
    pub fn lay(&mut self, columns: usize, styles: Styles) -> &[Side; 2] {
        let laid = self.laid.take();
        let laid = laid.filter(|(had, look, _)| (*had, *look) == (columns, styles));
        let (.., sides) = self.laid.insert(laid.unwrap_or_else(|| {
            let lines = |at: usize| markdown::lines(&self.sides[at].1, columns, styles);
            let lines = [lines(0), lines(1)];
            let words = [words_of(&lines[0]), words_of(&lines[1])];
            let (one, other) = differing(&words[0], &words[1]);
            let mut differs = [one, other].into_iter();
            let mut at = 0;
            let sides = lines.map(|lines| {
                let differs = differs.next().unwrap_or_default();
                let name = self.sides[at].0.clone();
                at += 1;
                Side {
                    name,
                    differ: differs.iter().filter(|differs| **differs).count(),
                    words: differs.len(),
                    lines: marked(lines, &differs),
                }
            });
            (columns, styles, sides)
        }));
        sides
    }
}

/// A position in the words of rendered lines.
#[derive(Default)]
struct Words {
    /// The words so far.
    count: usize,
    /// Whether a word is open.
    is_open: bool,
    /// Whether this line continues a word of the line before it.
    is_cut: bool,
}

impl Words {
    /// Returns the number of the word that a character belongs to; `None` for blanks and for what is drawn around a text.
    fn at(&mut self, c: char) -> Option<usize> {
        let is_drawn = matches!(c, '\u{2500}'..='\u{257f}' | '•' | '↪');
        if c.is_whitespace() || is_drawn {
            self.is_open &= self.is_cut;
            return None;
        }
        self.is_cut = false;
        if !self.is_open {
            self.is_open = true;
            self.count += 1;
        }
        Some(self.count - 1)
    }

    fn end_line(&mut self, line: &Line) {
        self.is_cut = self.is_open && line.last().is_some_and(|span| span.cut);
        self.is_open = self.is_cut;
    }
}

/// Returns the words of rendered lines.
fn words_of(lines: &[Line]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut place = Words::default();
    for line in lines {
        for c in line.iter().flat_map(|span| span.text.chars()) {
            let Some(at) = place.at(c) else { continue };
            match words.get_mut(at) {
                Some(word) => word.push(c),
                None => words.push(c.into()),
            }
        }
        place.end_line(line);
    }
    words
}

/// Underlines and colors the words that differ.
fn marked(lines: Vec<Line>, differs: &[bool]) -> Vec<Line> {
    let mut place = Words::default();
    let mark = |line: Line| {
        let mut spans = Line::new();
        for span in &line {
            let mut differ = |c| {
                let at = place.at(c);
                at.is_some_and(|at| differs.get(at) == Some(&true))
            };
            let all: Vec<(bool, char)> = span.text.chars().map(|c| (differ(c), c)).collect();
            let runs = all.chunk_by(|a, b| a.0 == b.0);
            spans.extend(runs.map(|run| {
                Span {
                    style: match run[0].0 {
                        true => span
                            .style
                            .underline()
                            .fg_color(Some(AnsiColor::Yellow.into())),
                        false => span.style,
                    },
                    text: run.iter().map(|(_, c)| *c).collect(),
                    ..span.clone()
                }
            }));
        }
        place.end_line(&line);
        spans
    };
    lines.into_iter().map(mark).collect()
}

/// Returns for each word of both texts whether it differs. The effort is bounded: in long texts with little in
/// common, some words count as different although they are part of the longest common sequence.
fn differing<W: Hash + Ord>(a: &[W], b: &[W]) -> (Vec<bool>, Vec<bool>) {
    let (mut in_a, mut in_b) = (vec![true; a.len()], vec![true; b.len()]);
    for op in capture_diff_slices(Algorithm::Myers, a, b) {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            in_a[old_index..old_index + len].fill(false);
            in_b[new_index..new_index + len].fill(false);
        }
    }
    (in_a, in_b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    fn differing(one: &str, other: &str) -> (Vec<bool>, Vec<bool>) {
        super::differing(&words(one), &words(other))
    }

    fn marked(text: &str, differs: &[bool]) -> String {
        let words = words(text).into_iter().zip(differs);
        let words = words.map(|(w, d)| if *d { format!("[{w}]") } else { w.to_owned() });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_words_that_differ_are_marked_on_both_sides() {
        let one = "Use SQLite, as long as one program writes.";
        let other = "Use PostgreSQL, as soon as one more program writes.";
        let (a, b) = differing(one, other);
        assert_eq!(
            marked(one, &a),
            "Use [SQLite,] as [long] as one program writes."
        );
        assert_eq!(
            marked(other, &b),
            "Use [PostgreSQL,] as [soon] as one [more] program writes."
        );
    }

    #[test]
    fn equal_and_empty_texts_have_no_marks_of_their_own() {
        assert_eq!(differing("a b", "a  b"), (vec![false; 2], vec![false; 2]));
        assert_eq!(differing("", "a"), (vec![], vec![true]));
        assert_eq!(
            differing("a b a", "a"),
            (vec![false, true, true], vec![false])
        );
    }

    #[test]
    fn a_changed_word_of_very_long_texts_is_the_only_one_marked() {
        let text = |changed: &str| {
            let words = (0..20_000).map(|n| match n {
                7_000 | 13_000 => changed.to_owned(),
                n => format!("w{}", n % 997),
            });
            words.collect::<Vec<_>>().join(" ")
        };
        let (a, b) = differing(&text("one"), &text("two three"));
        let count = |differs: &[bool]| differs.iter().filter(|d| **d).count();
        assert_eq!((count(&a), count(&b)), (2, 4));
        assert!(a[7_000] && a[13_000]);
    }

    #[test]
    fn marks_are_on_words_as_they_are_rendered() {
        let one = "**Answer:** SQLite\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n`alongwordthatisbrokenintotwo` end";
        let other = "Answer: *PostgreSQL*\n\n- alongwordthatisbrokenintotwo end";
        let sides = [one, other].map(|text| ("ann".to_owned(), text.to_owned()));
        let mut comparison = Comparison::new(sides);
        for columns in [14, 80] {
            let styles = Styles {
                color: true,
                ..Styles::NONE
            };
            let sides = comparison.lay(columns, styles);
            let marks = sides.clone().map(|side| {
                let spans = side.lines.iter().flatten();
                let marked = spans.filter(|span| {
                    span.style
                        .get_effects()
                        .contains(anstyle::Effects::UNDERLINE)
                });
                let marked: Vec<String> = marked.map(|span| span.text.clone()).collect();
                (marked.join(" "), side.differ, side.words)
            });
            let [one, other] = marks;
            assert_eq!(one, ("SQLite a b 1 2".to_owned(), 5, 8), "{columns}");
            assert_eq!(other, ("PostgreSQL".to_owned(), 1, 4), "{columns}");
        }
    }

    proptest::proptest! {
        #[test]
        fn words_without_a_mark_are_the_same_on_both_sides(
            one in proptest::collection::vec(0u8..9, 0..60),
            other in proptest::collection::vec(0u8..9, 0..60),
        ) {
            let text = |words: &[u8]| words.iter().map(|w| format!("{w} ")).collect::<String>();
            let (one, other) = (text(&one), text(&other));
            let (a, b) = differing(&one, &other);
            let same = |text: &str, differs: &[bool]| -> Vec<String> {
                let words = words(text).into_iter().zip(differs);
                words.filter(|(_, d)| !**d).map(|(w, _)| w.to_owned()).collect()
            };
            proptest::prop_assert_eq!((a.len(), b.len()), (words(&one).len(), words(&other).len()));
            proptest::prop_assert_eq!(same(&one, &a), same(&other, &b));
        }
    }
}
