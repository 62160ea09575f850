//! Notifies a user who looks elsewhere that the members are done. Chooses the bytes that the terminal understands from
//! the environment.

use crate::clipboard::through;

/// The value of `chat.notify`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// An escape sequence if the terminal is known to support it, otherwise the bell.
    #[default]
    Auto,
    /// An escape sequence.
    Osc,
    /// The terminal bell.
    Bell,
    /// No notification.
    Off,
}

/// Returns the bytes that notify with a line; `None` if notifications are off.
pub fn bytes(how: Notify, line: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let line: String = line
        .chars()
        .filter(|c| !c.is_control() && *c != ';')
        .take(120)
        .collect();
    let program = env("TERM_PROGRAM").unwrap_or_default();
    let term = env("TERM").unwrap_or_default();
    let nine = format!("\x1b]9;{line}\x1b\\");
    let seven = format!("\x1b]777;notify;kd;{line}\x1b\\");
    let ninety_nine = format!("\x1b]99;;{line}\x1b\\");
    let known = if term.contains("kitty") {
        Some(ninety_nine)
    } else if matches!(program.as_str(), "iTerm.app" | "WezTerm" | "ghostty")
        || env("WT_SESSION").is_some()
    {
        Some(nine.clone())
    } else if term.contains("rxvt") || term.contains("foot") || env("VTE_VERSION").is_some() {
        Some(seven)
    } else {
        None
    };
    let bell = "\x07".to_owned();
    match how {
        Notify::Off => None,
        Notify::Bell => Some(bell),
        Notify::Osc => Some(through(&known.unwrap_or(nine), env)),
        Notify::Auto => Some(known.map_or(bell, |k| through(&k, env))),
    }
}

/// Returns the bytes that show in the taskbar or tab whether members are answering (OSC 9;4). `None` in terminals that
/// are not known to understand them: others take them for a notification.
pub fn progress(busy: bool, env: &dyn Fn(&str) -> Option<String>) -> Option<&'static str> {
    let program = env("TERM_PROGRAM").unwrap_or_default();
    let known = matches!(program.as_str(), "ghostty" | "WezTerm")
        || env("WT_SESSION").is_some()
        || env("ConEmuANSI").is_some_and(|on| on == "ON");
    let direct = env("TMUX").is_none() && env("STY").is_none();
    (known && direct).then_some(match busy {
        true => "\x1b]9;4;3;0\x1b\\",
        false => "\x1b]9;4;0;0\x1b\\",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_shown_where_it_is_understood() {
        let with = |vars: &'static [(&str, &str)]| {
            move |name: &str| {
                let found = vars.iter().find(|(n, _)| *n == name);
                found.map(|(_, value)| (*value).to_owned())
            }
        };
        assert_eq!(
            progress(true, &with(&[("TERM_PROGRAM", "ghostty")])),
            Some("\x1b]9;4;3;0\x1b\\")
        );
        assert_eq!(
            progress(false, &with(&[("WT_SESSION", "1")])),
            Some("\x1b]9;4;0;0\x1b\\")
        );
        for other in [
            &[("TERM_PROGRAM", "iTerm.app")][..],
            &[("TERM", "xterm")],
            &[("TERM_PROGRAM", "ghostty"), ("TMUX", "1")],
        ] {
            assert_eq!(progress(true, &with(other)), None, "{other:?}");
        }
    }

    #[test]
    fn every_terminal_in_its_own_way() {
        let with = |name: &'static str, value: &'static str| {
            move |n: &str| (n == name).then(|| value.to_owned())
        };
        let told = |how, env: &dyn Fn(&str) -> Option<String>| bytes(how, "done; \x1b[2Jall", env);
        assert_eq!(
            told(Notify::Auto, &with("TERM", "xterm")).as_deref(),
            Some("\x07")
        );
        assert_eq!(
            told(Notify::Auto, &with("TERM_PROGRAM", "WezTerm")).as_deref(),
            Some("\x1b]9;done [2Jall\x1b\\"),
            "nothing in the line steers the terminal"
        );
        assert_eq!(told(Notify::Off, &with("TERM", "x")), None);
        assert!(told(Notify::Osc, &with("TMUX", "1")).is_some_and(|b| b.starts_with("\x1bPtmux;")));
    }
}
