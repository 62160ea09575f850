//! Colors and glyphs: whether they are used, and which one a speaker gets. Color is never the only cue: every speaker
//! has a name and a glyph too. Only the 16 colors of the user's terminal palette are used.

use anstyle::{AnsiColor, Style};

/// The condition under which colors are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// On terminals that support them.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// Whether and how text is styled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Styles {
    /// Whether escape sequences for color and weight may be written.
    pub color: bool,
    /// Whether glyphs and rules beyond ASCII may be written.
    pub unicode: bool,
}

impl Styles {
    /// No escapes at all.
    pub const NONE: Styles = Styles {
        color: false,
        unicode: true,
    };

    /// Decides for one stream. `env` looks up a variable; `terminal` says whether the stream is a terminal.
    pub fn decide(choice: Color, terminal: bool, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).is_some_and(|v| !v.is_empty());
        let on = |name: &str| env(name).is_some_and(|v| !v.is_empty() && v != "0");
        let dumb = env("TERM").is_some_and(|t| t == "dumb");
        let color = match choice {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if set("NO_COLOR") => false,
            Color::Auto if on("CLICOLOR_FORCE") || on("FORCE_COLOR") => true,
            Color::Auto => terminal && !dumb && env("CLICOLOR").is_none_or(|v| v != "0"),
        };
        Styles {
            color,
            unicode: speaks_unicode(env),
        }
    }

    /// Returns the text in a style, if styles are on. Without a theme there is no background.
    pub fn paint(&self, style: Style, text: &str) -> String {
        let style = style.bg_color(None);
        if self.color && !text.is_empty() && style != Style::new() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Bold.
    pub fn bold(&self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// Less important.
    pub fn dim(&self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// A failure.
    pub fn bad(&self, text: &str) -> String {
        self.paint(
            Style::new().bold().fg_color(Some(AnsiColor::Red.into())),
            text,
        )
    }

    /// Returns a glyph or its ASCII fallback.
    pub fn glyph<'a>(&self, unicode: &'a str, ascii: &'a str) -> &'a str {
        if self.unicode { unicode } else { ascii }
    }

    /// Returns the mark of the speaker with this number ([`kd_core::looks`]).
    pub fn mark(&self, place: usize) -> &'static str {
        let (unicode, ascii) = kd_core::looks::mark(place);
        if self.unicode { unicode } else { ascii }
    }
}

/// The colors of speakers, by number: readable on light and dark backgrounds.
pub(crate) const COLORS: [AnsiColor; 12] = [
    AnsiColor::Cyan,
    AnsiColor::Magenta,
    AnsiColor::Green,
    AnsiColor::Blue,
    AnsiColor::Yellow,
    AnsiColor::Red,
    AnsiColor::BrightCyan,
    AnsiColor::BrightMagenta,
    AnsiColor::BrightGreen,
    AnsiColor::BrightBlue,
    AnsiColor::BrightYellow,
    AnsiColor::BrightRed,
];

/// Returns the style of the speaker with this number ([`kd_core::looks`]).
pub fn speaker(place: usize) -> Style {
    Style::new()
        .bold()
        .fg_color(Some(COLORS[place % COLORS.len()].into()))
}

/// Returns whether the terminal uses UTF-8: it does, unless the locale says otherwise.
fn speaks_unicode(env: &dyn Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| env(name).filter(|v| !v.is_empty()));
    match locale {
        None => true,
        Some(locale) => {
            let lower = locale.to_ascii_lowercase();
            !lower.contains('.') && !matches!(lower.as_str(), "c" | "posix")
                || lower.contains("utf-8")
                || lower.contains("utf8")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(choice: Color, terminal: bool, vars: &[(&str, &str)]) -> bool {
        let env = |name: &str| {
            vars.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        };
        Styles::decide(choice, terminal, &env).color
    }

    #[test]
    fn the_rules_of_colour() {
        assert!(decide(Color::Auto, true, &[("TERM", "xterm")]));
        assert!(!decide(Color::Auto, false, &[]));
        assert!(!decide(Color::Auto, true, &[("NO_COLOR", "1")]));
        assert!(
            decide(Color::Auto, true, &[("NO_COLOR", "")]),
            "an empty NO_COLOR says nothing"
        );
        assert!(!decide(Color::Auto, true, &[("TERM", "dumb")]));
        assert!(!decide(Color::Auto, true, &[("CLICOLOR", "0")]));
        assert!(decide(Color::Auto, false, &[("CLICOLOR_FORCE", "1")]));
        assert!(decide(Color::Auto, false, &[("FORCE_COLOR", "1")]));
        assert!(!decide(Color::Auto, false, &[("FORCE_COLOR", "0")]));
        assert!(!decide(
            Color::Auto,
            true,
            &[("NO_COLOR", "1"), ("FORCE_COLOR", "1")]
        ));
        assert!(
            decide(Color::Always, false, &[("NO_COLOR", "1")]),
            "the flag is the stronger word"
        );
        assert!(!decide(Color::Never, true, &[("FORCE_COLOR", "1")]));
    }

    #[test]
    fn many_members_are_told_apart() {
        let look = |place| (Styles::NONE.mark(place), speaker(place).get_fg_color());
        for one in 0..12 {
            for two in 0..one {
                assert_ne!(speaker(one), speaker(two), "{one} {two}");
            }
        }
        for one in 0..80 {
            for two in 0..one {
                assert_ne!(look(one), look(two), "{one} {two}");
            }
        }
    }

    #[test]
    fn ascii_where_the_locale_asks_for_it() {
        let with =
            |value: &'static str| move |name: &str| (name == "LC_ALL").then(|| value.to_owned());
        assert!(Styles::decide(Color::Auto, true, &with("de_DE.UTF-8")).unicode);
        assert!(!Styles::decide(Color::Auto, true, &with("C")).unicode);
        assert!(Styles::decide(Color::Auto, true, &with("C.UTF-8")).unicode);
        assert!(!Styles::decide(Color::Auto, true, &with("de_DE.ISO-8859-1")).unicode);
        assert!(!Styles::decide(Color::Auto, true, &with("POSIX")).unicode);
    }
}
