//! Invisible characters, and the few positions where they change the visible text.
//!
//! Invisible characters can carry text that only a model reads, or make look-alike words. They are removed, except
//! where a script or an emoji needs one: see [`Sight::push`] and the table in the tests.

pub use kd_eval::names::is_invisible;

/// The tags of the flags in general use: England, Scotland, Wales.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
const BLACK_FLAG: char = '\u{1f3f4}';
const TAG_END: char = '\u{e007f}';
const JOINER: char = '\u{200d}';
const EMOJI_STYLE: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';

/// Decides about invisible characters by their neighbors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// The last kept character.
    before: Option<char>,
    /// Invisible characters that depend on the next character.
    held: String,
}

impl Sight {
    /// Returns whether no character is pending.
    pub(super) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// Records a piece that was kept unchanged.
    pub(super) fn passed(&mut self, piece: &str) {
        self.before = piece.chars().next_back().or(self.before);
    }

    /// Appends a character unless it is a misplaced invisible one.
    pub(super) fn push(&mut self, c: char, out: &mut String) {
        if is_invisible(c) {
            return self.push_unseen(c, out);
        }
        let fits = match self.held.chars().next() {
            Some(JOINER) => is_pictograph(c),
            Some(EMOJI_STYLE) => c == KEYCAP,
            _ => false,
        };
        if fits {
            out.push_str(&self.held);
        }
        self.held.clear();
        self.keep(c, out);
    }

    fn push_unseen(&mut self, c: char, out: &mut String) {
        let Some(before) = self.before else { return };
        let tag = tag_letter(c);
        if tag.is_some() || c == TAG_END {
            if before != BLACK_FLAG
                || !self.held.is_empty() && tag_letter_first(&self.held).is_none()
            {
                return;
            }
            // A longer tag sequence is not a flag.
            if self.held.chars().count() <= FLAGS[0].len() {
                self.held.push(c);
            }
            let name: String = self.held.chars().filter_map(tag_letter).collect();
            if c == TAG_END {
                if FLAGS.contains(&name.as_str()) && self.held.ends_with(TAG_END) {
                    out.push_str(&self.held);
                    self.before = Some(TAG_END);
                }
                self.held.clear();
            }
            return;
        }
        if !self.held.is_empty() {
            return;
        }
        match c {
            JOINER if is_pictograph(before) || is_emoji_part(before) => self.held.push(c),
            EMOJI_STYLE if matches!(before, '0'..='9' | '#' | '*') => self.held.push(c),
            _ if fits_after(c, before) => self.keep(c, out),
            _ => {}
        }
    }

    fn keep(&mut self, c: char, out: &mut String) {
        out.push(c);
        self.before = Some(c);
    }
}

/// Returns whether an invisible character changes the look of the one before it.
fn fits_after(c: char, before: char) -> bool {
    match c {
        '\u{200c}' | JOINER => joins_letters(before),
        '\u{61c}' | '\u{200f}' => is_right_to_left(before),
        '\u{fe0e}' | EMOJI_STYLE => is_pictograph(before),
        '\u{180b}'..='\u{180f}' => matches!(before, '\u{1800}'..='\u{18aa}'),
        '\u{fe00}'..='\u{fe0d}' => is_ideograph(before) || has_variants(before),
        '\u{e0100}'..='\u{e01ef}' => is_ideograph(before),
        _ => false,
    }
}

/// Returns whether a script uses joiners to join or separate letters: Arabic to Mongolian, and their later blocks.
fn joins_letters(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18aa}'
        | '\u{1900}'..='\u{1cff}' | '\u{a800}'..='\u{abff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10a00}'..='\u{11fff}' | '\u{1e900}'..='\u{1e95f}')
        && !is_invisible(c)
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
        && !is_invisible(c)
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns whether a character has standardized variants: mathematical signs, East Asian punctuation, Myanmar letters.
fn has_variants(c: char) -> bool {
    matches!(c, '\u{2200}'..='\u{22ff}' | '\u{3001}' | '\u{3002}' | '\u{ff01}'..='\u{ff1f}' | '\u{1000}'..='\u{109f}')
}

/// Returns whether a character can be an emoji or part of one.
fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2934}' | '\u{2935}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Returns whether a character can be between an emoji and a joiner.
fn is_emoji_part(c: char) -> bool {
    matches!(c, EMOJI_STYLE | TAG_END)
}

/// Returns the letter or digit of a tag.
fn tag_letter(c: char) -> Option<char> {
    match c {
        '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}' => char::from_u32(c as u32 - 0xe0000),
        _ => None,
    }
}

fn tag_letter_first(held: &str) -> Option<char> {
    held.chars().next().and_then(tag_letter)
}

#[cfg(test)]
mod tests {
    use super::super::{Cleaner, clean_text};
    use super::*;

    const ENGLAND: &str = "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";

    /// Texts in which every invisible character is valid.
    const SEEN: &[(&str, &str)] = &[
        (
            "emoji style",
            "❤\u{fe0f} ©\u{fe0f} ☎\u{fe0e} 1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}",
        ),
        (
            "families",
            "👩\u{200d}👩\u{200d}👧 🏳\u{fe0f}\u{200d}🌈 👩🏽\u{200d}⚕\u{fe0f} ❤\u{fe0f}\u{200d}🔥",
        ),
        (
            "flags",
            "🇩🇪 🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        ),
        ("Persian", "می\u{200c}خواهم"),
        ("Hindi", "क्\u{200d}ष क्\u{200c}ष"),
        ("Hebrew", "שלום!\u{5d0}\u{200f}"),
        ("Mongolian", "ᠠ\u{180b}"),
        ("ideographs", "葛\u{e0100} 㐂\u{fe00}"),
        ("mathematics", "∩\u{fe00}"),
    ];

    #[test]
    fn what_scripts_and_emoji_need_stays() {
        for (what, text) in SEEN {
            assert_eq!(clean_text(text), *text, "{what}");
        }
        assert_eq!(clean_text(ENGLAND), ENGLAND);
    }

    #[test]
    fn everything_else_that_is_unseen_goes() {
        let tags: String = "ignore"
            .bytes()
            .map(|b| char::from_u32(0xe0000 + u32::from(b)).unwrap())
            .collect();
        for (dirty, clean) in [
            ("pass\u{200b}word", "password"),
            ("a\u{2060}b\u{feff}c\u{ad}d\u{34f}e", "abcde"),
            ("a\u{200d}b\u{200c}c", "abc"),
            ("a\u{fe0f}b\u{e0100}c", "abc"),
            ("1\u{fe0f} 2\u{fe0f}", "1 2"),
            ("👑\u{200d}x", "👑x"),
            ("👑\u{200d}", "👑"),
            ("❤\u{fe0f}\u{fe0f}\u{fe01}\u{e0101}", "❤\u{fe0f}"),
            ("👑\u{200d}\u{200d}👑", "👑\u{200d}👑"),
            ("\u{fe0f}\u{200d}👑", "👑"),
            ("x\u{3164}y\u{1160}\u{ffa0}z", "xyz"),
            ("\u{2061}\u{206a}\u{fff9}\u{1d173}\u{e0001}\u{e0fff}", ""),
            (&format!("x{tags}"), "x"),
            (&format!("🏴{tags}\u{e007f}"), "🏴"),
            (&format!("🏴{tags}x"), "🏴x"),
            (&format!("{ENGLAND}{tags}\u{e007f}"), ENGLAND),
            ("latin\u{200f}", "latin"),
        ] {
            assert_eq!(clean_text(dirty), clean, "{dirty:?}");
        }
    }

    #[test]
    fn no_unseen_character_survives_alone_and_none_is_missed_by_the_quick_look() {
        for c in (0..=0x10ffff)
            .filter_map(char::from_u32)
            .filter(|c| is_invisible(*c))
        {
            assert_eq!(clean_text(&c.to_string()), "", "{c:?}");
            assert_eq!(clean_text(&format!("a{c}b")), "ab", "{c:?}");
            let mut cleaner = Cleaner::default();
            let pieces = ["a", &c.to_string(), "b"].map(|piece| cleaner.clean(piece).into_owned());
            assert_eq!(pieces.concat(), "ab", "{c:?}");
        }
    }
}
