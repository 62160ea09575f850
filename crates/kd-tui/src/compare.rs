//! Two answers word by word: which words of each the other does not have in the same order.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// A comparison that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The names and texts.
    pub sides: [(String, String); 2],
    /// For each word of each text whether it differs.
    pub differs: [Vec<bool>; 2],
    /// The first visible line.
    pub from: usize,
}

impl Comparison {
    /// Compares two texts, each after its name.
    pub fn new(sides: [(String, String); 2]) -> Self {
        let (one, other) = differing(&sides[0].1, &sides[1].1);
        Self {
            sides,
            differs: [one, other],
            from: 0,
        }
    }
}

/// Returns for each word of both texts whether it differs. The effort is bounded: in long texts with little in
/// common, some words count as different although they are part of the longest common sequence.
fn differing(one: &str, other: &str) -> (Vec<bool>, Vec<bool>) {
    let (a, b): (Vec<&str>, Vec<&str>) = (words(one), words(other));
    let (mut in_a, mut in_b) = (vec![true; a.len()], vec![true; b.len()]);
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
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

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
