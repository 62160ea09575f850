//! Colors: a style for every role, by the terminal's color depth and its light or dark background. Color is never the
//! only cue: every role has a word or a mark as well.

use crate::text::markdown::CODE_GROUND;
use anstyle::{AnsiColor, Effects};
use ratatui_core::style::{Color, Modifier, Style};

/// The terminal's color depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// None (`NO_COLOR`): bold and italic only.
    None,
    /// The user's 16-color palette.
    Sixteen,
    /// The 256 colors of xterm.
    Indexed,
    /// True color.
    True,
}

/// The terminal's background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// Light text on dark.
    Dark,
    /// Dark text on light.
    Light,
}

/// The value of `chat.theme`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Ask the terminal.
    #[default]
    Auto,
    /// Dark.
    Dark,
    /// Light.
    Light,
    /// The 16 colors of the terminal's palette.
    Terminal,
    /// No colours.
    Plain,
}

/// Styles for everything drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    depth: Depth,
    ground: Ground,
    fixed: bool,
    /// The background of code: a little lighter or darker than the terminal's background, once that is known.
    code: Option<(u8, u8, u8)>,
}

/// How much the background of code differs, of 255: 6 %.
const CODE_SHIFT: u8 = 15;

/// Detects the color depth from the environment.
pub fn depth(env: &dyn Fn(&str) -> Option<String>) -> Depth {
    let var = |name: &str| env(name).unwrap_or_default();
    if !var("NO_COLOR").is_empty() {
        return Depth::None;
    }
    let term = var("TERM");
    if matches!(var("COLORTERM").as_str(), "truecolor" | "24bit")
        || term.ends_with("-direct")
        || term.contains("kitty")
        || term.contains("ghostty")
    {
        Depth::True
    } else if term.contains("256color") {
        Depth::Indexed
    } else {
        Depth::Sixteen
    }
}

/// Reads the background from `COLORFGBG`, until the terminal itself answers.
pub fn ground(env: &dyn Fn(&str) -> Option<String>) -> Ground {
    let light = env("COLORFGBG")
        .and_then(|v| v.rsplit(';').next().and_then(|n| n.parse::<u8>().ok()))
        .is_some_and(|n| n == 7 || n == 15);
    if light { Ground::Light } else { Ground::Dark }
}

impl Theme {
    /// Creates the theme for a choice.
    pub fn new(choice: Choice, depth: Depth, ground: Ground) -> Self {
        let (depth, ground) = match choice {
            Choice::Auto => (depth, ground),
            Choice::Dark => (depth, Ground::Dark),
            Choice::Light => (depth, Ground::Light),
            Choice::Terminal if depth == Depth::None => (depth, ground),
            Choice::Terminal => (Depth::Sixteen, ground),
            Choice::Plain => (Depth::None, ground),
        };
        Self {
            depth,
            ground,
            fixed: choice != Choice::Auto,
            code: None,
        }
    }

    /// Takes over the background color the terminal reported. Returns true if that changes anything.
    pub fn learn(&mut self, r: u8, g: u8, b: u8) -> bool {
        let light = (299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b)) / 1000 > 127;
        let ground = if light { Ground::Light } else { Ground::Dark };
        let shift = |v: u8| match ground {
            Ground::Dark => v.saturating_add(CODE_SHIFT),
            Ground::Light => v.saturating_sub(CODE_SHIFT),
        };
        let before = *self;
        self.code = Some((shift(r), shift(g), shift(b)));
        if !self.fixed {
            self.ground = ground;
        }
        *self != before
    }

    /// Returns whether colors are used.
    pub fn is_coloured(&self) -> bool {
        self.depth != Depth::None
    }

    /// Converts a style of rendered text to this theme's colors.
    pub fn of(&self, style: anstyle::Style) -> Style {
        let mut out = Style::new();
        if let Some(anstyle::Color::Ansi(color)) = style.get_fg_color() {
            out = out.fg(self.color(color));
        }
        if style.get_bg_color() == CODE_GROUND.get_bg_color()
            && let Some(color) = self.code_ground()
        {
            out = out.bg(color);
        }
        let effects = style.get_effects();
        for (effect, modifier) in [
            (Effects::BOLD, Modifier::BOLD),
            (Effects::DIMMED, Modifier::DIM),
            (Effects::ITALIC, Modifier::ITALIC),
            (Effects::UNDERLINE, Modifier::UNDERLINED),
            (Effects::INVERT, Modifier::REVERSED),
            (Effects::STRIKETHROUGH, Modifier::CROSSED_OUT),
        ] {
            if effects.contains(effect) {
                out = out.add_modifier(modifier);
            }
        }
        out
    }

    /// Returns the background of code, where the terminal has told its own and has colors close to it.
    fn code_ground(&self) -> Option<Color> {
        let (r, g, b) = self.code?;
        match self.depth {
            Depth::None | Depth::Sixteen => None,
            Depth::Indexed => {
                let light = (299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b)) / 1000;
                // The ramp of grays.
                let step = light.saturating_sub(8).div_ceil(10).min(23) as u8;
                Some(Color::Indexed(232 + step))
            }
            Depth::True => Some(Color::Rgb(r, g, b)),
        }
    }

    /// Returns one of the 16 colors as this theme shows it. The members' six follow Okabe and Ito's palette for
    /// color-blind readers, made lighter or darker for a contrast of at least 4.5 : 1 on the usual backgrounds.
    fn color(&self, color: AnsiColor) -> Color {
        if self.depth == Depth::None {
            return Color::Reset;
        }
        if self.depth == Depth::Sixteen {
            return match color {
                AnsiColor::Black => Color::Black,
                AnsiColor::Red => Color::Red,
                AnsiColor::Green => Color::Green,
                AnsiColor::Yellow => Color::Yellow,
                AnsiColor::Blue => Color::Blue,
                AnsiColor::Magenta => Color::Magenta,
                AnsiColor::Cyan => Color::Cyan,
                AnsiColor::BrightRed => Color::LightRed,
                AnsiColor::BrightGreen => Color::LightGreen,
                AnsiColor::BrightYellow => Color::LightYellow,
                AnsiColor::BrightBlue => Color::LightBlue,
                AnsiColor::BrightMagenta => Color::LightMagenta,
                AnsiColor::BrightCyan => Color::LightCyan,
                _ => Color::Reset,
            };
        }
        let (dark, light) = match color {
            AnsiColor::Cyan => ((86, 180, 233), (0, 98, 150)),
            AnsiColor::Magenta => ((226, 148, 193), (150, 45, 110)),
            AnsiColor::Green => ((64, 190, 145), (0, 108, 76)),
            AnsiColor::Blue => ((140, 165, 255), (40, 70, 185)),
            AnsiColor::Yellow => ((240, 200, 90), (125, 88, 0)),
            AnsiColor::Red => ((245, 125, 105), (178, 40, 25)),
            // From the seventh member on.
            AnsiColor::BrightCyan => ((120, 220, 215), (0, 100, 110)),
            AnsiColor::BrightMagenta => ((205, 150, 250), (115, 50, 170)),
            AnsiColor::BrightGreen => ((165, 215, 95), (70, 100, 0)),
            AnsiColor::BrightBlue => ((165, 190, 215), (60, 85, 120)),
            AnsiColor::BrightYellow => ((215, 180, 145), (115, 75, 35)),
            AnsiColor::BrightRed => ((250, 150, 160), (165, 25, 80)),
            _ => return Color::Reset,
        };
        let (r, g, b) = match self.ground {
            Ground::Dark => dark,
            Ground::Light => light,
        };
        match self.depth {
            Depth::True => Color::Rgb(r, g, b),
            _ => Color::Indexed(nearest(r, g, b)),
        }
    }
}

/// Returns the nearest color of xterm's 6 × 6 × 6 cube.
fn nearest(r: u8, g: u8, b: u8) -> u8 {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let step = |v: u8| {
        (0..6u8)
            .min_by_key(|i| STEPS[usize::from(*i)].abs_diff(v))
            .unwrap_or_default()
    };
    16 + 36 * step(r) + 6 * step(g) + step(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(vars: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| {
            vars.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        }
    }

    #[test]
    fn what_the_environment_tells() {
        assert_eq!(depth(&env(&[("TERM", "xterm")])), Depth::Sixteen);
        assert_eq!(depth(&env(&[("TERM", "xterm-256color")])), Depth::Indexed);
        let both = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];
        assert_eq!(depth(&env(&both)), Depth::True);
        assert_eq!(
            depth(&env(&[("NO_COLOR", "1"), ("COLORTERM", "24bit")])),
            Depth::None
        );
        assert_eq!(ground(&env(&[("COLORFGBG", "0;15")])), Ground::Light);
        assert_eq!(ground(&env(&[("COLORFGBG", "15;0")])), Ground::Dark);
        assert_eq!(ground(&env(&[])), Ground::Dark);
    }

    #[test]
    fn an_answer_of_the_terminal_beats_the_guess_but_not_the_setting() {
        let mut auto = Theme::new(Choice::Auto, Depth::True, Ground::Dark);
        assert!(auto.learn(255, 255, 240));
        assert_eq!(auto.ground, Ground::Light);
        assert!(!auto.learn(255, 255, 240), "nothing new");
        let mut dark = Theme::new(Choice::Dark, Depth::True, Ground::Dark);
        dark.learn(255, 255, 255);
        assert_eq!(dark.ground, Ground::Dark);
    }

    #[test]
    fn code_has_a_ground_only_where_the_terminal_told_its_own() {
        let theme = |depth, answer: Option<(u8, u8, u8)>| {
            let mut theme = Theme::new(Choice::Auto, depth, Ground::Dark);
            if let Some((r, g, b)) = answer {
                theme.learn(r, g, b);
            }
            theme.of(CODE_GROUND).bg
        };
        let dark = Some((30, 30, 30));
        assert_eq!(theme(Depth::True, dark), Some(Color::Rgb(45, 45, 45)));
        let light = Some((255, 250, 240));
        assert_eq!(theme(Depth::True, light), Some(Color::Rgb(240, 235, 225)));
        assert_eq!(theme(Depth::Indexed, dark), Some(Color::Indexed(236)));
        assert_eq!(theme(Depth::True, None), None);
        assert_eq!(theme(Depth::Sixteen, dark), None);
        assert_eq!(theme(Depth::None, dark), None);
    }

    /// Relative luminance, WCAG 2.
    fn luminance(color: Color) -> f64 {
        let Color::Rgb(r, g, b) = color else {
            panic!("{color:?}")
        };
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    #[test]
    fn every_colour_can_be_read_on_its_ground() {
        for (ground, under) in [
            (Ground::Dark, Color::Rgb(30, 30, 30)),
            (Ground::Light, Color::Rgb(253, 246, 227)),
        ] {
            let theme = Theme::new(Choice::Auto, Depth::True, ground);
            for color in crate::text::style::COLORS {
                let (a, b) = (luminance(theme.color(color)), luminance(under));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 4.5, "{ground:?} {color:?}: {contrast:.1}");
            }
        }
    }

    #[test]
    fn without_colours_weight_remains() {
        let theme = Theme::new(Choice::Auto, Depth::None, Ground::Dark);
        let style = anstyle::Style::new()
            .bold()
            .fg_color(Some(AnsiColor::Red.into()));
        assert_eq!(
            theme.of(style),
            Style::new().fg(Color::Reset).add_modifier(Modifier::BOLD)
        );
        let theme = Theme::new(Choice::Terminal, Depth::True, Ground::Dark);
        assert_eq!(theme.of(style).fg, Some(Color::Red));
    }
}
