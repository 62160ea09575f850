//! Contrast: whether two short answers cannot mean the same, no matter what a judge says.

use super::language::Language;
use super::{number, prose};

/// Maximum length of an answer whose number is its meaning, in bytes.
const SHORT_BYTES_MAX: usize = 80;

/// First words that are a complete answer.
const YES: &[&str] = &["yes", "ja", "oui", "sí", "si", "是", "是的", "对"];
const NO: &[&str] = &["no", "nein", "non", "不", "不是", "否", "不会", "不能"];

/// Returns why two answers differ, if that is clear without a judge.
pub fn between(one: &str, two: &str) -> Option<&'static str> {
    if let (Some(a), Some(b)) = (side(one), side(two))
        && a != b
    {
        return Some("one says yes, the other no");
    }
    let (a, b) = (amount(one)?, amount(two)?);
    (a.1 == b.1 && a.0 != b.0).then_some("their numbers differ")
}

/// Returns the side if a text begins with yes or no as an answer: followed by punctuation, or alone. "No doubt: ship
/// it." and "Si on attend …" only begin a sentence.
fn side(text: &str) -> Option<bool> {
    let text = prose::bare(&prose::without_thoughts(text)).to_lowercase();
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let end = text.find(|c: char| !c.is_alphanumeric());
    let (first, rest) = text.split_at(end.unwrap_or(text.len()));
    let mut behind = rest.chars();
    let answers = match behind.next() {
        None | Some('\n') => true,
        Some(c) if c.is_whitespace() => matches!(behind.next(), Some('-' | '–' | '—' | '(')),
        Some(c) => !matches!(c, '-' | '\'' | '’' | '/' | '_'),
    };
    if !answers {
        return None;
    }
    match (YES.contains(&first), NO.contains(&first)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// Returns the only number of a short text, and the words around it.
fn amount(text: &str) -> Option<(String, String)> {
    let text = prose::without_thoughts(text);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !prose::is_about_confidence(line))
        .collect();
    let text = prose::bare(&lines.join("\n"));
    if text.len() > SHORT_BYTES_MAX {
        return None;
    }
    let all = number::numbers(&text, Language::of(&text));
    let [one] = all.as_slice() else { return None };
    let around = format!("{} {}", text.get(..one.start)?, text.get(one.end..)?);
    let around: Vec<String> = around
        .split(|c: char| !c.is_alphanumeric() && c != '%')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    Some((one.key.clone(), around.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::between;

    #[test]
    fn plain_opposites_and_other_numbers_stay_apart() {
        for (a, b) in [
            ("Yes, ship it.", "No. Wait for the audit."),
            ("Ja.", "Nein, lieber nicht."),
            ("是的。", "不是。"),
            ("**Yes** because it is tested.", "No - not yet."),
            ("Oui", "Non\nConfiance : 0,9"),
            ("About 40 km.", "About 400 km."),
            ("42", "43\nConfidence: 0.9"),
            ("12 %", "21 %"),
        ] {
            assert!(between(a, b).is_some(), "{a:?} {b:?}");
        }
    }

    #[test]
    fn what_may_mean_the_same_is_left_to_a_judge() {
        for (a, b) in [
            ("Yes, ship it.", "Ship it now."),
            ("3500 m", "3.5 km"),
            ("Use 2 queues and a lock.", "Use two queues and a lock."),
            ("In 1945, in May.", "It ended in 1945."),
            ("Nothing to add.", "Yes."),
            ("No doubt about it: ship it.", "Yes, ship it."),
            ("No-brainer: ship it.", "Yes."),
            ("Si on attend, on perd.", "Non."),
            ("Ja nicht warten!", "Nein."),
        ] {
            assert_eq!(between(a, b), None, "{a:?} {b:?}");
        }
    }
}
