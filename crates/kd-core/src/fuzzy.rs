//! Fuzzy matching for completion: the letters of a pattern in order, not necessarily together. For a misspelled word there
//! is [`nearest`].

pub use kd_vote::nearest;

/// Ranks a text for a pattern; the lowest rank is the best. `None` if the letters of the pattern are not in the text, in
/// this order. Ignores case.
///
/// A beginning beats the beginning of a word, that beats a part, and a part beats scattered letters; the closer the
/// letters, the better.
pub fn rank(pattern: &str, text: &str) -> Option<usize> {
    const PART: usize = 1_000;
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    if text.starts_with(&pattern) {
        return Some(0);
    }
    let begins_word = |at: usize| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric())
    };
    let mut parts = text.match_indices(&pattern).map(|(at, _)| at);
    if let Some(first) = parts.clone().next() {
        let is_word = parts.any(begins_word);
        return Some(if is_word { 1 } else { PART.min(2 + first) });
    }
    let letters: Vec<char> = text.chars().collect();
    let mut best: Option<usize> = None;
    // The shortest stretch that holds the letters in order, from each place of the first one.
    let first = pattern.chars().next()?;
    for start in (0..letters.len()).filter(|at| letters[*at] == first) {
        let mut wanted = pattern.chars().skip(1);
        let mut want = wanted.next();
        let mut end = start;
        for (at, letter) in letters.iter().enumerate().skip(start + 1) {
            match want {
                None => break,
                Some(c) if c == *letter => {
                    end = at;
                    want = wanted.next();
                }
                Some(_) => {}
            }
        }
        if want.is_none() {
            best = Some(best.map_or(end - start, |best| best.min(end - start)));
        }
    }
    best.map(|gap| PART + gap)
}

/// Returns the texts that a pattern matches, best first; equal ones keep their order.
pub fn best<T>(
    pattern: &str,
    all: impl IntoIterator<Item = T>,
    text: impl Fn(&T) -> &str,
) -> Vec<T> {
    let mut found: Vec<(usize, T)> = all
        .into_iter()
        .filter_map(|one| Some((rank(pattern, text(&one))?, one)))
        .collect();
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_comes_first() {
        let all = [
            "demand",
            "members",
            "mode",
            "remode",
            "a-mode",
            "model",
            "motor desk",
        ];
        let found = best("mode", all, |one| one);
        assert_eq!(found, ["mode", "model", "a-mode", "remode", "motor desk"]);
        assert_eq!(
            best("nts", ["notes.txt", "nothing"], |one| one),
            ["notes.txt"]
        );
        assert_eq!(best("", ["b", "a"], |one| one), ["b", "a"]);
        assert_eq!(best("MDE", ["/mode"], |one| one), ["/mode"]);
        assert_eq!(rank("日", "今日"), Some(2 + "今".len()));
        assert_eq!(rank("xyz", "x y"), None);
        assert!(rank("ace", "abcde") < rank("ace", "a-b-c-d-e"));
    }
}
