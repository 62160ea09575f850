//! The terminal during a question that one key answers.

use super::guard::{self, Typed};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, Termios};

/// A key that answers a prompt.
#[derive(Debug, PartialEq)]
pub enum Key {
    /// A letter or a digit.
    Char(char),
    /// Enter.
    Enter,
    /// Ctrl+C, Ctrl+D, Escape or q; also the end of input.
    Leave,
    /// Anything else.
    Other,
}

/// Reads single keys from the terminal on stdin. Dropping it restores the terminal.
#[derive(Debug)]
pub struct Keys {
    /// Bytes read and not yet used.
    waiting: Vec<u8>,
}

impl Keys {
    /// Starts reading keys, discarding earlier ones. `None` if stdin is not a terminal.
    pub fn take() -> Option<Self> {
        // Read Ctrl+C as a key: a signal would end the program with these modes in force.
        let single = |modes: &mut Termios| {
            modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        };
        guard::take(single, Typed::Discarded, b"", b"").ok()?;
        let waiting = Vec::new();
        Some(Self { waiting })
    }

    /// Waits for a key.
    pub fn pressed(&mut self) -> Key {
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
        guard::restore();
    }
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
