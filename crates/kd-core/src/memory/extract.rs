//! Summarizes without a model by extracting sentences, and measures the similarity of two texts.

use std::collections::BTreeSet;

/// Returns up to `most` first sentences of a text, without headings and marks.
pub fn sentences(text: &str, most: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line
            .trim()
            .trim_start_matches(['#', '-', '*', '>', ' '])
            .trim();
        let is_field = ["confidence:", "answer:"].iter().any(|f| {
            line.get(..f.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(f))
        });
        if line.is_empty() || is_field {
            continue;
        }
        let mut from = 0;
        for (at, c) in line.char_indices() {
            let end = at + c.len_utf8();
            let ends =
                matches!(c, '.' | '!' | '?') && line[end..].starts_with(' ') || end == line.len();
            if ends {
                let sentence = line[from..end].trim();
                if sentence.chars().any(char::is_alphabetic) {
                    out.push(sentence.to_owned());
                }
                from = end;
            }
            if out.len() >= most {
                return out;
            }
        }
    }
    out
}

/// Returns the similarity of two texts: the share of common words, 0 to 1 (Jaccard).
pub fn similarity(a: &str, b: &str) -> f64 {
    let (a, b) = (words(a), words(b));
    let all = a.union(&b).count();
    if all == 0 {
        return 1.0;
    }
    a.intersection(&b).count() as f64 / all as f64
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_come_whole_and_in_order() {
        let text = "# Title\n\nTake SQLite. It needs no server! Version 3.5 is fine.\nConfidence: 0.9\n- A list item";
        assert_eq!(
            sentences(text, 9),
            [
                "Title",
                "Take SQLite.",
                "It needs no server!",
                "Version 3.5 is fine.",
                "A list item"
            ]
        );
        assert_eq!(sentences(text, 2).len(), 2);
        assert!(sentences("...\n\n", 3).is_empty());
    }

    #[test]
    fn likeness_is_a_share() {
        assert_eq!(similarity("a b", "B, a!"), 1.0);
        assert_eq!(similarity("a b", "c d"), 0.0);
        assert!((similarity("a b c", "a b d") - 0.5).abs() < 1e-9);
    }
}
