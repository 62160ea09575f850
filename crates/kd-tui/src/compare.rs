//! Two answers word by word: which words of each the other does not have in the same order.

/// Maximum product of the numbers of words that are compared; beyond it, all words between the equal beginning and the
/// equal end count as different.
const WORK_MAX: usize = 16 << 20;

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

/// Returns for each word of both texts whether it differs.
fn differing(one: &str, other: &str) -> (Vec<bool>, Vec<bool>) {
    let (a, b): (Vec<&str>, Vec<&str>) = (words(one), words(other));
    let first = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (rest_a, rest_b) = (&a[first..], &b[first..]);
    let last = rest_a
        .iter()
        .rev()
        .zip(rest_b.iter().rev())
        .take_while(|(x, y)| x == y)
        .count();
    let (mid_a, mid_b) = (
        &rest_a[..rest_a.len() - last],
        &rest_b[..rest_b.len() - last],
    );
    let (differs_a, differs_b) = between(mid_a, mid_b);
    let whole = |middle: Vec<bool>| {
        let mut all = vec![false; first];
        all.extend(middle);
        all.resize(all.len() + last, false);
        all
    };
    (whole(differs_a), whole(differs_b))
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Marks the words outside of a longest common subsequence.
fn between(a: &[&str], b: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let (mut in_a, mut in_b) = (vec![true; a.len()], vec![true; b.len()]);
    if a.len().saturating_mul(b.len()) > WORK_MAX {
        return (in_a, in_b);
    }
    // common[i][j]: the length for the words from i and j on.
    let width = b.len() + 1;
    let mut common = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * width + j] = match a[i] == b[j] {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            (in_a[i], in_b[j]) = (false, false);
            (i, j) = (i + 1, j + 1);
        } else if common[(i + 1) * width + j] >= common[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    (in_a, in_b)
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
    fn very_long_texts_are_compared_at_their_ends_only() {
        let long = |word: &str| format!("same {} end", format!("{word} ").repeat(5000));
        let (a, _) = differing(&long("x"), &long("y"));
        assert_eq!(a.iter().filter(|d| !**d).count(), 2);
        assert!(!a[0] && !a[a.len() - 1]);
    }
}
