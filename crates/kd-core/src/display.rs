//! Makes untrusted text safe to show: no byte of it can control the terminal, or hide or reorder text.
//!
//! Models, files and services are untrusted. The core already strips escape sequences; this is the second defense and
//! the last before the terminal: newlines stay, tabs become spaces, other invisible characters are removed.

use std::borrow::Cow;

/// Removes everything that could control the terminal. Tabs become four spaces.
pub fn text(foreign: &str) -> Cow<'_, str> {
    let clean = crate::clean::clean_text(foreign);
    if clean.chars().all(|c| c == '\n' || !is_unsafe(c)) {
        return clean;
    }
    let mut safe = String::with_capacity(clean.len());
    for c in clean.chars() {
        match c {
            '\n' => safe.push('\n'),
            '\t' => safe.push_str("    "),
            c if is_unsafe(c) => {}
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Spaces between two words that are shown as they are: a path may have several, but a longer gap makes the rest look like
/// a separate line.
const GAP_MAX: usize = 4;

/// Returns the text as one safe line. A gap between two words is one space, or a few spaces that were there.
pub fn line(foreign: &str) -> String {
    let safe = text(foreign);
    let mut line = String::with_capacity(safe.len());
    let mut gap = String::new();
    for c in safe.trim().chars() {
        if c.is_whitespace() {
            gap.push(c);
            continue;
        }
        if !gap.is_empty() {
            let is_kept = gap.len() <= GAP_MAX && gap.bytes().all(|byte| byte == b' ');
            line.push_str(if is_kept { &gap } else { " " });
            gap.clear();
        }
        line.push(c);
    }
    line
}

/// Returns whether a character must be removed: control characters (C0, DEL, C1), line and paragraph separators,
/// direction overrides and isolates, tag characters. Joiners and variation selectors stay: emoji and scripts need them.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200e}' | '\u{200f}' | '\u{061c}'        // direction marks
            | '\u{2028}' | '\u{2029}'
            | '\u{202a}'..='\u{202e}'                   // embeddings and overrides
            | '\u{2066}'..='\u{2069}'                   // isolates
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}') // tags: invisible ASCII
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_gets_through() {
        let evil = "a\u{1b}]0;title\u{7}b\u{1b}[2Jc\u{9b}31md\u{202e}e\u{7f}\u{8}\u{0}f\u{e0041}\u{200f}g\u{1b}";
        let clean = text(evil);
        assert_eq!(clean, "abcdefg");
    }

    #[test]
    fn lines_tabs_and_emoji_stay() {
        assert_eq!(text("a\tb\r\nc"), "a    b\nc");
        let family = "👩‍👩‍👧 ❤️ नमस्ते";
        assert_eq!(text(family), family);
        assert_eq!(line("  a\n\nb \tc "), "a b c");
        assert_eq!(line("in /my  files/x"), "in /my  files/x");
        assert_eq!(line("a     forged"), "a forged");
    }
}
