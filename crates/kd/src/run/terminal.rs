//! The terminal during live output: no echo of typed keys, no cursor. The guard restores everything when dropped,
//! however the program ends.

use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use std::io::Write;

const HIDE_CURSOR: &[u8] = b"\x1b[?25l";
const SHOW_CURSOR: &[u8] = b"\x1b[?25h";

/// Returns columns and rows of the terminal on stdout.
pub(crate) fn size() -> Option<(u16, u16)> {
    size_of(stdout())
}

/// Returns columns and rows of the terminal on stderr.
pub(crate) fn size_of_stderr() -> Option<(u16, u16)> {
    size_of(stderr())
}

fn size_of(stream: impl std::os::fd::AsFd) -> Option<(u16, u16)> {
    let size = termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// The terminal in use for the live region.
pub(super) struct Quiet {
    before: Option<Termios>,
}

impl Quiet {
    /// Hides the cursor and typed keys. Ctrl+C and Ctrl+Z still send their signals; typed keys stay for the shell.
    pub(super) fn enter() -> Self {
        let mut quiet = Self { before: None };
        quiet.resume();
        quiet
    }

    /// Takes over the terminal again after a suspend.
    pub(super) fn resume(&mut self) {
        // A background job that changes the terminal's modes would be stopped.
        let ours =
            termios::tcgetpgrp(stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
        if ours && let Ok(before) = termios::tcgetattr(stdin()) {
            let mut modes = before.clone();
            modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
            if termios::tcsetattr(stdin(), OptionalActions::Now, &modes).is_ok() {
                self.before = Some(before);
            }
        }
        write(HIDE_CURSOR);
    }

    /// Restores the terminal.
    pub(super) fn release(&mut self) {
        if let Some(before) = self.before.take() {
            // Nothing can be done about a terminal that is gone.
            let _ = termios::tcsetattr(stdin(), OptionalActions::Now, &before);
        }
        write(SHOW_CURSOR);
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        self.release();
    }
}

/// A key that answers a prompt.
#[derive(Debug, PartialEq)]
pub(super) enum Key {
    /// A letter or a digit.
    Char(char),
    /// Enter.
    Enter,
    /// Ctrl+C, Ctrl+D, Escape or q; also the end of input.
    Leave,
    /// Anything else.
    Other,
}

/// Reads single keys from the terminal on stdin. Restores its modes when dropped.
pub(super) struct Keys {
    before: Termios,
    /// Bytes read and not yet used.
    waiting: Vec<u8>,
}

impl Keys {
    /// Starts reading keys, discarding earlier ones. `None` if stdin is not a terminal.
    pub(super) fn take() -> Option<Self> {
        let before = termios::tcgetattr(stdin()).ok()?;
        let mut modes = before.clone();
        // Read Ctrl+C as a key: a signal would end the program with these modes in force.
        modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        termios::tcsetattr(stdin(), OptionalActions::Flush, &modes).ok()?;
        Some(Self {
            before,
            waiting: Vec::new(),
        })
    }

    /// Waits for a key.
    pub(super) fn next(&mut self) -> Key {
        if self.waiting.is_empty() {
            let mut bytes = [0; 64];
            let read = loop {
                match rustix::io::read(stdin(), &mut bytes) {
                    Err(rustix::io::Errno::INTR) => {}
                    read => break read.unwrap_or(0),
                }
            };
            self.waiting = bytes[..read].to_vec();
        }
        let (key, length) = first_key(&self.waiting);
        self.waiting.drain(..length);
        key
    }
}

/// Returns the first key in these bytes, and its length. A named key, such as an arrow, takes several.
fn first_key(bytes: &[u8]) -> (Key, usize) {
    match bytes {
        [b'\r' | b'\n', ..] => (Key::Enter, 1),
        [] => (Key::Leave, 0),
        [0x03 | 0x04 | b'q' | b'Q', ..] | [0x1b] => (Key::Leave, 1),
        [0x1b, b'[' | b'O', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..0x7f).contains(byte));
            (Key::Other, end.map_or(bytes.len(), |end| end + 3))
        }
        [0x1b, ..] => (Key::Other, 2),
        [byte, ..] if byte.is_ascii_alphanumeric() => (Key::Char((*byte).into()), 1),
        _ => (Key::Other, 1),
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _ = termios::tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

fn write(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_one_by_one() {
        let keys = |mut bytes: &[u8]| {
            let mut keys = Vec::new();
            while !bytes.is_empty() {
                let (key, length) = first_key(bytes);
                assert!(length > 0);
                bytes = &bytes[length..];
                keys.push(key);
            }
            keys
        };
        let other = || Key::Other;
        assert_eq!(keys(b"7\x1b[A\r"), [Key::Char('7'), other(), Key::Enter]);
        assert_eq!(
            keys(b"\x1bOP\x1b[15~\x1bx1"),
            [other(), other(), other(), Key::Char('1')]
        );
        for leaves in [&b"q"[..], b"Q", b"\x03", b"\x04", b"\x1b"] {
            assert_eq!(keys(leaves), [Key::Leave]);
        }
        assert_eq!(keys("é".as_bytes()), [other(), other()]);
        assert_eq!(keys(b"\x1b[1"), [other()]);
        assert_eq!(first_key(b""), (Key::Leave, 0));
    }
}
