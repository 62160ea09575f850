//! Notifies a user who looks elsewhere that the members are done. Chooses the bytes that the terminal understands from
//! the environment.

use crate::clipboard::through;

/// Maximum characters of a line.
const LINE_CHARS_MAX: usize = 120;

/// The value of `chat.notify`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// An escape sequence if the terminal is known to support it, otherwise the bell.
    #[default]
    Auto,
    /// An escape sequence.
    Osc,
    /// A notification of the desktop, by the system's own program; without one, as `Auto`.
    Native,
    /// The terminal bell.
    Bell,
    /// No notification.
    Off,
}

/// Returns the bytes that notify with a line; `None` if notifications are off.
pub fn bytes(how: Notify, line: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let line = plain(line);
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
        Notify::Auto | Notify::Native => Some(known.map_or(bell, |k| through(&k, env))),
    }
}

/// Returns the line without what could steer a terminal.
fn plain(line: &str) -> String {
    let plain = |c: &char| !c.is_control() && *c != ';';
    line.chars().filter(plain).take(LINE_CHARS_MAX).collect()
}

/// A program of the system that shows a notification, the variable of the desktops that have it, and its arguments before
/// the line.
type Program = (&'static str, &'static str, &'static [&'static str]);
/// The programs, in the order to try them. The line is a separate argument, never a part of a script.
const PROGRAMS: &[Program] = &[
    ("WAYLAND_DISPLAY", "notify-send", &["--app-name=kd", "--"]),
    ("DISPLAY", "notify-send", &["--app-name=kd", "--"]),
    (
        MACOS,
        "osascript",
        &[
            "-e",
            "on run argv",
            "-e",
            "display notification (item 1 of argv) with title \"kd\"",
            "-e",
            "end run",
        ],
    ),
];
/// Set by macOS for programs of a user's session.
const MACOS: &str = "__CF_USER_TEXT_ENCODING";

/// Returns the command lines that show a notification of the desktop, in the order to try them; none unless the setting
/// asks for them. The settings name no program.
pub fn programs(how: Notify, line: &str, env: &dyn Fn(&str) -> Option<String>) -> Vec<Vec<String>> {
    let is_here = |name: &str| env(name).is_some_and(|value| !value.is_empty());
    let rows = PROGRAMS
        .iter()
        .filter(|(desktop, ..)| how == Notify::Native && is_here(desktop));
    let mut lines: Vec<Vec<String>> = rows
        .map(|(_, program, args)| {
            let args = args.iter().map(|arg| (*arg).to_owned());
            let words = [(*program).to_owned()].into_iter().chain(args);
            words.chain([format!("kd: {}", plain(line))]).collect()
        })
        .collect();
    lines.dedup();
    lines
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
    fn a_desktop_is_told_by_its_own_program_and_only_if_asked_for() {
        let env =
            |name: &str| matches!(name, "DISPLAY" | "WAYLAND_DISPLAY").then(|| ":0".to_owned());
        let told = programs(Notify::Native, "done; $(id)\u{7}", &env);
        let line = "kd: done $(id)";
        assert_eq!(told, [["notify-send", "--app-name=kd", "--", line]]);
        assert!(programs(Notify::Auto, "done", &env).is_empty());
        assert!(programs(Notify::Native, "done", &|_| None).is_empty());
        let bell = bytes(Notify::Native, "done", &|_| None);
        assert_eq!(bell.as_deref(), Some("\x07"), "without a desktop");
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
