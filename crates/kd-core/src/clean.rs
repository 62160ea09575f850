//! Makes text from models and programs safe for terminals, files and prompts.
//!
//! Input: any text, in pieces. Output: the same text without escape sequences, control characters and invisible
//! characters (see [`invisible`] for exceptions), and with spaces for other blank characters. Cleaning is idempotent, and the boundaries between pieces do not
//! affect the result.

mod invisible;

pub use invisible::is_invisible;

use invisible::Sight;
use kd_eval::names::is_blank;
use std::borrow::Cow;

/// Cleans a text that arrives in pieces. Recognizes escape sequences split between two pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaner {
    state: State,
    sight: Sight,
}

/// The position in an escape sequence (ECMA-48).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte: one final byte follows.
    Designate,
    /// In `ESC [ …`, up to its final byte.
    Control,
    /// In `ESC ] …` and similar strings, up to BEL, ST or the end of the line.
    Str,
    /// In a string, after an ESC that may begin ST.
    StrEscape,
}

impl Cleaner {
    /// Returns the clean form of the next piece.
    pub fn clean<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if self.state == State::Text && self.sight.is_idle() && is_clean(piece) {
            self.sight.passed(piece);
            return Cow::Borrowed(piece);
        }
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.push(c, &mut out);
        }
        Cow::Owned(out)
    }

    /// Cleans a piece in place, without a copy if it is already clean.
    pub fn clean_in_place(&mut self, piece: &mut String) {
        if let Cow::Owned(clean) = self.clean(piece) {
            *piece = clean;
        }
    }

    fn push(&mut self, c: char, out: &mut String) {
        self.state = match (self.state, c) {
            (State::StrEscape, '\\') => State::Text,
            (State::Str | State::StrEscape, '\u{7}' | '\u{9c}') => State::Text,
            (State::Str | State::StrEscape, '\u{18}' | '\u{1a}') => State::Text,
            // An unterminated string must not swallow the rest of an answer.
            (State::Str | State::StrEscape, '\n') => {
                self.sight.push('\n', out);
                State::Text
            }
            (State::Str, '\u{1b}') => State::StrEscape,
            (State::Str, _) => State::Str,
            (_, '\u{1b}') => State::Escape,
            (State::StrEscape, _) => {
                self.state = State::Escape;
                return self.push(c, out);
            }
            (State::Escape, '[') => State::Control,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Str,
            (State::Escape | State::Designate, ' '..='/') => State::Designate,
            (State::Escape | State::Designate, '0'..='~') => State::Text,
            (State::Control, ' '..='?') => State::Control,
            (State::Control, '@'..='~') => State::Text,
            (_, '\u{9b}') => State::Control,
            (_, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => State::Str,
            (_, c) => {
                match c {
                    '\u{2028}' | '\u{2029}' => self.sight.push('\n', out),
                    c if is_blank(c) => self.sight.push(' ', out),
                    c if is_harmless(c) => self.sight.push(c, out),
                    _ => {}
                }
                State::Text
            }
        };
    }
}

/// Returns the clean form of a whole text.
pub fn clean_text(text: &str) -> Cow<'_, str> {
    Cleaner::default().clean(text)
}

/// Returns the clean form of a text for names, reasons and header values: on one line and limited in characters.
/// Collapses whitespace and shortens `---`, which some readers take as the end of a header.
pub fn clean_line(text: &str, chars_max: usize) -> String {
    let clean = clean_text(text);
    let mut line = String::with_capacity(clean.len().min(chars_max));
    for word in clean.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    while line.contains("---") {
        line = line.replace("---", "--");
    }
    if let Some((cut, _)) = line.char_indices().nth(chars_max) {
        let keep = line[..cut].char_indices().next_back().map_or(0, |(i, _)| i);
        line.truncate(keep);
        line.push('…');
    }
    line
}

/// Returns whether a character is a line feed, a tab or not a control character. Direction overrides are not harmless:
/// they make a line look like another one.
fn is_harmless(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        c => !c.is_control(),
    }
}

pub(crate) fn is_clean(text: &str) -> bool {
    let plain = |b: u8| b >= b' ' && b != 0x7f || b == b'\n' || b == b'\t';
    // The first bytes of C1 controls, line separators, overrides and invisible characters: only then are characters
    // checked.
    let suspicious = |b: u8| matches!(b, 0xc2 | 0xcd | 0xd8 | 0xe1..=0xe3 | 0xef | 0xf0 | 0xf3);
    text.bytes().all(|b| plain(b) && !suspicious(b))
        || text.chars().all(|c| {
            is_harmless(c)
                && !is_invisible(c)
                && !is_blank(c)
                && !matches!(c, '\u{2028}' | '\u{2029}')
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_would_obey_goes_and_the_words_stay() {
        for (dirty, clean) in [
            ("a\u{1b}[31mred\u{1b}[0m b", "ared b"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq#0;2\u{1b}\\after", "after"),
            ("\u{1b}(Bplain", "plain"),
            ("a\rb\r\nc\u{8}\u{0}\u{7f}", "ab\nc"),
            ("\u{9b}2Jx\u{85}y", "xy"),
            ("one\u{2028}two", "one\ntwo"),
            ("\u{202e}evil\u{202c}", "evil"),
            ("\u{1b}]0;never ended\nnext line", "\nnext line"),
            (
                "tab\tand – “quotes” é 模型 👑",
                "tab\tand – “quotes” é 模型 👑",
            ),
        ] {
            assert_eq!(clean_text(dirty), clean, "{dirty:?}");
        }
    }

    #[test]
    fn a_line_is_one_line_and_ends_no_header() {
        assert_eq!(clean_line("a\n b\t\u{1b}[1mc", 80), "a b c");
        assert_eq!(clean_line("1.0-----beta", 80), "1.0--beta");
        assert_eq!(clean_line("abcdef", 4), "abc…");
        assert_eq!(clean_line("abcd", 4), "abcd");
    }

    #[test]
    fn no_blank_forms_a_line_of_its_own() {
        for blank in [
            '\u{2800}',
            '\u{13441}',
            '\u{13442}',
            '\u{16fe4}',
            '\u{1d159}',
        ] {
            let gap = blank.to_string().repeat(60);
            let forged = format!("How long?{gap}promise: always right?");
            assert_eq!(
                clean_line(&forged, 240),
                "How long? promise: always right?",
                "{blank:?}"
            );
            assert_eq!(clean_text(&format!("a{blank}b")), "a b", "{blank:?}");
            assert_eq!(
                crate::display::line(&forged),
                "How long? promise: always right?"
            );
        }
    }

    /// Generates texts with many relevant characters.
    fn nasty() -> impl Strategy<Value = String> {
        let alphabet = "\u{1b}\u{9b}\u{9d}[]P\\;0mJ(B \u{7}\u{18}\n\r\t\u{2028}aé👑❤\u{fe0f}\u{200d}\u{20e3}\u{200b}\u{2800}🏴\u{e0067}\u{e007f}";
        proptest::collection::vec(
            proptest::sample::select(alphabet.chars().collect::<Vec<_>>()),
            0..40,
        )
        .prop_map(|v| v.into_iter().collect())
    }

    proptest! {
        #[test]
        fn cuts_do_not_show(text in nasty(), cut in 0usize..40) {
            let cut = text.char_indices().nth(cut).map_or(text.len(), |(i, _)| i);
            let mut cleaner = Cleaner::default();
            let joined = format!("{}{}", cleaner.clean(&text[..cut]), cleaner.clean(&text[cut..]));
            prop_assert_eq!(joined, clean_text(&text));
        }

        #[test]
        fn clean_stays_clean(text in nasty()) {
            let once = clean_text(&text).into_owned();
            prop_assert_eq!(clean_text(&once), once.as_str());
            prop_assert!(once.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
        }
    }
}
