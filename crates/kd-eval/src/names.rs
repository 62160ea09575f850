//! The characters of names that come from files: of members, models and questions. A name must show all of its
//! characters.

use std::borrow::Cow;

/// Returns whether a character has no visible form and no width: joiners, fillers, direction marks, variation
/// selectors, tags, and others that Unicode calls default-ignorable.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a character takes space but shows nothing, although Unicode does not count it as white space: the
/// braille blank, and the blanks of notes, hieroglyphs and Khitan.
pub fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{2800}' | '\u{13441}' | '\u{13442}' | '\u{16fe4}' | '\u{1d159}'
    )
}

/// Returns whether a name can be read as it is: it has no control characters, line separators, and characters that show
/// nothing. Spaces between words are allowed.
pub fn is_legible(name: &str) -> bool {
    !name.contains(is_odd)
}

fn is_odd(c: char) -> bool {
    let is_space = c.is_whitespace() && c != ' ';
    c.is_control() || is_invisible(c) || is_blank(c) || is_space
}

/// Returns a name as one that can be read: each character that shows nothing becomes its escape, and blanks at the ends
/// become visible.
pub fn legible(name: &str) -> Cow<'_, str> {
    let is_edged = name.starts_with(' ') || name.ends_with(' ');
    if is_legible(name) && !is_edged {
        return Cow::Borrowed(name);
    }
    let inner = name.trim_matches(' ');
    let edge = |n: usize| "\\u{20}".repeat(n);
    let before = name.len() - name.trim_start_matches(' ').len();
    let after = name.len() - before - inner.len();
    let mut shown = edge(before);
    for c in inner.chars() {
        match is_odd(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown + &edge(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_has_a_form_that_can_be_read_and_no_other_name_has_it() {
        for (name, shown) in [
            ("vendor/m-1", "vendor/m-1"),
            ("Qwen 2.5", "Qwen 2.5"),
            ("mo\u{3000}del", "mo\\u{3000}del"),
            ("a\u{200c}\n", "a\\u{200c}\\u{a}"),
            (" m  ", "\\u{20}m\\u{20}\\u{20}"),
            ("  ", "\\u{20}\\u{20}"),
        ] {
            assert_eq!(legible(name), shown);
            assert!(is_legible(&legible(name)) && legible(&legible(name)) == shown);
        }
    }

    #[test]
    fn names_show_all_that_they_are() {
        for name in [
            "ann",
            "vendor/m-1@openai-3f1c90ab",
            "Qwen 2.5 (7B)",
            "日本 é",
            "",
        ] {
            assert!(is_legible(name), "{name}");
        }
        let odd = "\u{0}\n\t\u{7f}\u{85}\u{a0}\u{ad}\u{200b}\u{200d}\u{200e}\u{202e}\u{2028}\u{2029}\u{2066}\u{2800}\u{3000}\u{3164}\u{fe0f}\u{feff}\u{e0041}";
        for c in odd.chars() {
            for name in [format!("a{c}b"), format!("{c}a"), format!("a{c}")] {
                assert!(!is_legible(&name), "{name:?}");
            }
        }
    }
}
