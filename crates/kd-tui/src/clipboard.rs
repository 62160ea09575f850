//! Copies text reliably: OSC 52 sequences, plain and wrapped for tmux and screen, and local clipboard programs in
//! addition or instead. Only a program confirms that it took the text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Maximum payload of an OSC 52 sequence that terminals accept.
const OSC_MAX: usize = 74_994;

/// Returns the sequences that copy a text to the terminal's clipboard, even a remote one; `None` if the text is too
/// long. tmux accepts the plain one (`set-clipboard on`), passes on the wrapped one (`allow-passthrough on`), or
/// ignores both.
pub fn osc52(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let encoded = STANDARD.encode(text);
    if encoded.len() > OSC_MAX {
        return None;
    }
    let plain = format!("\x1b]52;c;{encoded}\x07");
    let wrapped = through(&plain, env);
    Some(if is_in_tmux(env) {
        plain + &wrapped
    } else {
        wrapped
    })
}

/// Returns whether we run inside tmux.
pub fn is_in_tmux(env: &dyn Fn(&str) -> Option<String>) -> bool {
    env("TMUX").is_some_and(|v| !v.is_empty())
}

/// The result of copying a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copied {
    /// This program accepted it.
    Taken(&'static str),
    /// It was sent to the terminal, without confirmation.
    Sent,
    /// It was written to this file.
    File(String),
    /// Copying failed, and why.
    Failed(String),
}

impl Copied {
    /// Returns the notice; `what` names the text that was copied.
    pub fn told(&self, what: &str) -> String {
        match self {
            Self::Taken("tmux") => format!("copied {what} into tmux's buffer (prefix ] pastes)"),
            Self::Taken(program) => format!("copied {what} by {program}"),
            Self::Sent => format!("sent {what} to the terminal's clipboard (OSC 52)"),
            Self::File(path) => format!("found no clipboard for {what}; saved in {path}"),
            Self::Failed(why) => why.clone(),
        }
    }
}

/// Maximum bytes that GNU screen passes on at once; it drops longer ones.
const SCREEN_MAX: usize = 240;

/// Wraps a sequence so that tmux or screen pass it on to the outer terminal.
pub fn through(sequence: &str, env: &dyn Fn(&str) -> Option<String>) -> String {
    let set = |name: &str| env(name).is_some_and(|v| !v.is_empty());
    if set("TMUX") {
        format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
    } else if set("STY") {
        // The end of the sequence would end the wrapping; the bell ends it as well.
        let whole = sequence.replace("\x1b\\", "\x07");
        let mut rest = whole.as_str();
        let mut pieces = String::new();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(SCREEN_MAX));
            pieces.push_str(&format!("\x1bP{piece}\x1b\\"));
            rest = after;
        }
        pieces
    } else {
        sequence.to_owned()
    }
}

/// Returns programs that copy their stdin to the clipboard, in the order to try them.
pub fn programs(env: &dyn Fn(&str) -> Option<String>) -> Vec<&'static [&'static str]> {
    let set = |name: &str| env(name).is_some_and(|v| !v.is_empty());
    let mut programs: Vec<&[&str]> = Vec::new();
    if is_in_tmux(env) {
        // Into a tmux buffer, and from there to the terminal's clipboard (`-w`, since tmux 3.2).
        programs.push(&["tmux", "load-buffer", "-w", "-"]);
        programs.push(&["tmux", "load-buffer", "-"]);
    }
    if cfg!(target_os = "macos") {
        programs.push(&["pbcopy"]);
    }
    if set("WAYLAND_DISPLAY") {
        programs.push(&["wl-copy"]);
    }
    if set("DISPLAY") {
        programs.push(&["xclip", "-selection", "clipboard"]);
        programs.push(&["xsel", "--clipboard", "--input"]);
    }
    if set("WSL_DISTRO_NAME") {
        programs.push(&["clip.exe"]);
    }
    programs
}

/// Returns whether the terminal can be trusted to accept OSC 52. Terminals do not report support; only a few are known
/// to lack it.
pub fn takes_osc52(env: &dyn Fn(&str) -> Option<String>) -> bool {
    let is = |name: &str, value: &str| env(name).is_some_and(|v| v == value);
    !is("TERM_PROGRAM", "Apple_Terminal")
        && !is("TERM", "linux")
        && !is("TERM", "dumb")
        && env("VTE_VERSION").is_none()
}

/// Returns the last code block of a text.
pub fn last_code(markdown: &str) -> Option<String> {
    use pulldown_cmark::{Event, Parser, Tag, TagEnd};
    let (mut open, mut last) = (None, None);
    for event in Parser::new(markdown) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => open = Some(String::new()),
            Event::Text(text) => {
                if let Some(code) = &mut open {
                    code.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => last = open.take(),
            _ => {}
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &'static str) -> impl Fn(&str) -> Option<String> {
        move |n| (n == name).then(|| "1".to_owned())
    }

    #[test]
    fn it_goes_through_tmux_and_screen() {
        assert_eq!(
            osc52("foo", &env("X")).as_deref(),
            Some("\x1b]52;c;Zm9v\x07")
        );
        assert_eq!(
            osc52("foo", &env("TMUX")).as_deref(),
            Some("\x1b]52;c;Zm9v\x07\x1bPtmux;\x1b\x1b]52;c;Zm9v\x07\x1b\\"),
            "plain, and handed on"
        );
        assert_eq!(
            osc52("foo", &env("STY")).as_deref(),
            Some("\x1bP\x1b]52;c;Zm9v\x07\x1b\\")
        );
        assert_eq!(osc52(&"x".repeat(80_000), &env("X")), None);
        // Screen passes on only short pieces, and none with the end of another sequence in it.
        let long = "é".repeat(600);
        let wrapped = through(&format!("\x1b]9;{long}\x1b\\"), &env("STY"));
        let pieces: Vec<&str> = wrapped
            .split_terminator("\x1b\\")
            .map(|piece| piece.strip_prefix("\x1bP").expect("wrapped"))
            .collect();
        assert!(pieces.iter().all(|piece| piece.len() <= SCREEN_MAX));
        assert_eq!(pieces.concat(), format!("\x1b]9;{long}\x07"));
    }

    #[test]
    fn tmux_is_given_the_text_in_its_own_way() {
        let first = programs(&env("TMUX"));
        assert_eq!(
            first.first().map(|p| p.join(" ")).as_deref(),
            Some("tmux load-buffer -w -")
        );
        assert!(programs(&env("X")).iter().all(|p| p[0] != "tmux"));
    }

    #[test]
    fn only_what_is_confirmed_is_called_copied() {
        let told = |copied: Copied| copied.told("the answer");
        assert_eq!(
            told(Copied::Sent),
            "sent the answer to the terminal's clipboard (OSC 52)"
        );
        assert_eq!(told(Copied::Taken("xclip")), "copied the answer by xclip");
        assert!(told(Copied::File("/x/copied.md".into())).ends_with("saved in /x/copied.md"));
    }

    #[test]
    fn the_newest_code_is_found() {
        assert_eq!(
            last_code("a\n```rust\none\n```\nb\n```\ntwo\n  x\n```\nc").as_deref(),
            Some("two\n  x\n")
        );
        assert_eq!(last_code("none"), None);
    }
}
