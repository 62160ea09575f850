//! Decodes terminal input. Takes raw bytes, split anywhere; returns keys, pastes, mouse and focus events, and replies
//! to queries. Understands the legacy encodings, xterm's `modifyOtherKeys` and the kitty protocol.

/// One terminal event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(Key),
    /// A pasted text: one edit, whatever it contains.
    Paste(String),
    /// The mouse wheel: lines, negative upwards.
    Wheel(i32),
    /// The left button of the mouse, at a column and a row, both from 0.
    Mouse(Button, u16, u16),
    /// Whether the window has the focus.
    Focus(bool),
    /// A reply to a query.
    Reply(Reply),
}

/// An event of the left mouse button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Button {
    /// It was pressed.
    Pressed,
    /// The mouse moved while it is held.
    Moved,
    /// It was released.
    Released,
}

/// Replies of terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The background color, 8 bits per channel (OSC 11).
    Ground(u8, u8, u8),
    /// The kitty keyboard protocol is supported: modified keys can be distinguished.
    Keyboard,
    /// Whether synchronized updates (DEC mode 2026) are supported.
    Synchronized(bool),
    /// The last reply, which every terminal sends.
    End,
}

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The key itself.
    pub code: Code,
    /// Shift; never set for printable characters, which arrive already shifted.
    pub shift: bool,
    /// Alt, Option or Meta.
    pub alt: bool,
    /// Control.
    pub ctrl: bool,
}

/// A key without modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Code {
    Char(char),
    Enter,
    Tab,
    Backspace,
    Delete,
    Insert,
    Escape,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    PageUp,
    PageDown,
    F(u8),
}

impl Key {
    /// Creates a key without modifiers.
    pub const fn plain(code: Code) -> Self {
        Self {
            code,
            shift: false,
            alt: false,
            ctrl: false,
        }
    }

    /// Adds Control.
    #[must_use]
    pub const fn ctrl(mut self) -> Self {
        self.ctrl = true;
        self
    }

    /// Adds Alt.
    #[must_use]
    pub const fn alt(mut self) -> Self {
        self.alt = true;
        self
    }

    /// Adds Shift.
    #[must_use]
    pub const fn shift(mut self) -> Self {
        self.shift = true;
        self
    }
}

/// Maximum length of a control sequence; a longer one is dropped.
const SEQUENCE_MAX: usize = 4096;
/// Maximum length of a paste taken in one piece.
const PASTE_MAX: usize = 8 << 20;
const PASTE_END: &[u8] = b"\x1b[201~";
const WHEEL_LINES: i32 = 3;

/// Decodes what a terminal sends.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// The text of an unfinished paste.
    paste: Option<Vec<u8>>,
}

/// The result of decoding the next bytes.
enum Front {
    /// The number of bytes that were decoded, and the decoded input.
    Taken(usize, Option<Input>),
    /// More bytes are needed.
    Partial,
}

impl Decoder {
    /// Takes bytes and returns all complete events.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        self.bytes.extend_from_slice(bytes);
        let mut out = Vec::new();
        loop {
            if self.paste.is_some() {
                if !self.take_paste(&mut out) {
                    break;
                }
                continue;
            }
            if self.bytes.is_empty() {
                break;
            }
            match front(&self.bytes) {
                Front::Partial if self.bytes.len() > SEQUENCE_MAX => self.bytes.clear(),
                Front::Partial => break,
                Front::Taken(n, what) => {
                    let begins_paste = self.bytes.starts_with(b"\x1b[200~");
                    self.bytes.drain(..n);
                    if begins_paste {
                        self.paste = Some(Vec::new());
                    }
                    out.extend(what);
                }
            }
        }
        out
    }

    /// Returns whether an unfinished sequence is pending: after a short while, call [`Decoder::flush`].
    pub fn is_pending(&self) -> bool {
        self.paste.is_none() && !self.bytes.is_empty()
    }

    /// Decodes pending bytes as complete: a lone escape was the key.
    pub fn flush(&mut self) -> Vec<Input> {
        let bytes = std::mem::take(&mut self.bytes);
        match bytes.as_slice() {
            [0x1b, rest @ ..] => {
                let mut out = vec![Input::Key(Key::plain(Code::Escape))];
                // `Esc [` typed by hand: Escape, then a bracket.
                if let [byte @ (b'[' | b']' | b'O' | b'P')] = rest {
                    out = vec![Input::Key(Key::plain(Code::Char(char::from(*byte))).alt())];
                }
                out
            }
            _ => Vec::new(),
        }
    }

    /// Collects pasted bytes. Returns true if the paste ended.
    fn take_paste(&mut self, out: &mut Vec<Input>) -> bool {
        let Some(paste) = &mut self.paste else {
            return false;
        };
        let end = self
            .bytes
            .windows(PASTE_END.len())
            .position(|w| w == PASTE_END);
        match end {
            Some(at) => {
                paste.extend(self.bytes.drain(..at));
                self.bytes.drain(..PASTE_END.len());
                let text = String::from_utf8_lossy(paste)
                    .replace("\r\n", "\n")
                    .replace('\r', "\n");
                self.paste = None;
                out.push(Input::Paste(text));
                true
            }
            None => {
                // The end marker may be split.
                let keep = self.bytes.len().min(PASTE_END.len() - 1);
                let whole = self.bytes.len() - keep;
                if paste.len() < PASTE_MAX {
                    paste.extend(self.bytes.drain(..whole));
                } else {
                    self.bytes.drain(..whole);
                }
                false
            }
        }
    }
}

fn key(key: Key) -> Option<Input> {
    Some(Input::Key(key))
}

fn front(bytes: &[u8]) -> Front {
    match bytes {
        [] => Front::Partial,
        [0x1b] => Front::Partial,
        [0x1b, b'[', rest @ ..] => csi(rest),
        [0x1b, b'O', rest @ ..] => match rest {
            [] => Front::Partial,
            [last, ..] => Front::Taken(3, ss3(*last).map(|c| Input::Key(Key::plain(c)))),
        },
        [0x1b, b']', rest @ ..] => text_sequence(rest, true),
        [0x1b, b'P' | b'_' | b'^' | b'X', rest @ ..] => text_sequence(rest, false),
        [0x1b, 0x1b, ..] => Front::Taken(1, key(Key::plain(Code::Escape))),
        [0x1b, rest @ ..] => match front(rest) {
            Front::Partial => Front::Partial,
            Front::Taken(n, Some(Input::Key(k))) => Front::Taken(n + 1, key(k.alt())),
            Front::Taken(n, other) => Front::Taken(n + 1, other),
        },
        [byte @ (0..0x20 | 0x7f), ..] => Front::Taken(1, control(*byte)),
        _ => character(bytes),
    }
}

fn control(byte: u8) -> Option<Input> {
    let k = match byte {
        b'\r' => Key::plain(Code::Enter),
        b'\t' => Key::plain(Code::Tab),
        0x7f | 0x08 => Key::plain(Code::Backspace),
        0 => Key::plain(Code::Char(' ')).ctrl(),
        1..=26 => Key::plain(Code::Char(char::from(byte - 1 + b'a'))).ctrl(),
        // Ctrl+\ ] ^ _
        _ => Key::plain(Code::Char(char::from(byte + 0x40))).ctrl(),
    };
    key(k)
}

fn character(bytes: &[u8]) -> Front {
    let length = match bytes[0] {
        0..0x80 => 1,
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return Front::Taken(1, None),
    };
    if bytes.len() < length {
        return match std::str::from_utf8(bytes) {
            Err(e) if e.error_len().is_some() => Front::Taken(1, None),
            _ => Front::Partial,
        };
    }
    match std::str::from_utf8(&bytes[..length]) {
        Ok(text) => Front::Taken(
            length,
            text.chars()
                .next()
                .map(|c| Input::Key(Key::plain(Code::Char(c)))),
        ),
        Err(_) => Front::Taken(1, None),
    }
}

fn ss3(last: u8) -> Option<Code> {
    Some(match last {
        b'A' => Code::Up,
        b'B' => Code::Down,
        b'C' => Code::Right,
        b'D' => Code::Left,
        b'H' => Code::Home,
        b'F' => Code::End,
        b'M' => Code::Enter,
        b'P'..=b'S' => Code::F(last - b'P' + 1),
        _ => return None,
    })
}

/// Parses OSC, DCS and similar sequences: text until ST or BEL.
fn text_sequence(rest: &[u8], osc: bool) -> Front {
    let mut at = 0;
    while at < rest.len() {
        match rest[at] {
            0x07 if osc => return Front::Taken(at + 3, osc_reply(&rest[..at])),
            0x1b => match rest.get(at + 1) {
                None => return Front::Partial,
                Some(b'\\') => {
                    let what = if osc { osc_reply(&rest[..at]) } else { None };
                    return Front::Taken(at + 4, what);
                }
                Some(_) => return Front::Taken(at + 2, None),
            },
            _ => at += 1,
        }
    }
    Front::Partial
}

fn osc_reply(body: &[u8]) -> Option<Input> {
    let body = std::str::from_utf8(body).ok()?;
    let colour = body.strip_prefix("11;")?;
    let mut parts = colour
        .strip_prefix("rgb:")
        .or(colour.strip_prefix("rgba:"))?
        .split('/')
        .map(channel);
    let (r, g, b) = (parts.next()??, parts.next()??, parts.next()??);
    Some(Input::Reply(Reply::Ground(r, g, b)))
}

/// Scales one to four hex digits to 8 bits.
fn channel(hex: &str) -> Option<u8> {
    if !(1..=4).contains(&hex.len()) {
        return None;
    }
    let value = u32::from_str_radix(hex, 16).ok()?;
    let most = (1u32 << (4 * hex.len())) - 1;
    u8::try_from(value * 255 / most).ok()
}

fn csi(rest: &[u8]) -> Front {
    let Some(end) = rest.iter().position(|b| (0x40..=0x7e).contains(b)) else {
        // A control byte inside means that it was not a sequence.
        return match rest.iter().position(|b| *b < 0x20 || *b > 0x7e) {
            Some(at) => Front::Taken(at + 2, None),
            None => Front::Partial,
        };
    };
    if let Some(at) = rest[..end].iter().position(|b| *b < 0x20 || *b > 0x7e) {
        return Front::Taken(at + 2, None);
    }
    let body = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    Front::Taken(end + 3, csi_meaning(body, rest[end]))
}

fn csi_meaning(body: &str, last: u8) -> Option<Input> {
    if let Some(private) = body.strip_prefix('?') {
        return match last {
            b'u' => Some(Input::Reply(Reply::Keyboard)),
            b'c' => Some(Input::Reply(Reply::End)),
            b'y' => {
                let mode = private.strip_suffix('$')?.strip_prefix("2026;")?;
                Some(Input::Reply(Reply::Synchronized(matches!(
                    mode,
                    "1" | "2" | "3"
                ))))
            }
            _ => None,
        };
    }
    if let Some(mouse) = body.strip_prefix('<') {
        let mut numbers = mouse.split(';').map(|number| number.parse::<u32>().ok());
        let button = numbers.next()??;
        // Counted from 1.
        let mut place = || u16::try_from(numbers.next()??.checked_sub(1)?).ok();
        let what = match (button & !0b1_1100, last) {
            (64, b'M') => return Some(Input::Wheel(-WHEEL_LINES)),
            (65, b'M') => return Some(Input::Wheel(WHEEL_LINES)),
            (0, b'M') => Button::Pressed,
            (32, b'M') => Button::Moved,
            (0, b'm') => Button::Released,
            _ => return None,
        };
        return Some(Input::Mouse(what, place()?, place()?));
    }
    let parts: Vec<Vec<u32>> = body
        .split(';')
        .map(|p| p.split(':').map(|n| n.parse().unwrap_or(0)).collect())
        .collect();
    let number = |i: usize, j: usize| parts.get(i).and_then(|p| p.get(j)).copied();
    let held = number(1, 0).unwrap_or(1).max(1) - 1;
    // 3 means key release.
    if number(1, 1) == Some(3) {
        return None;
    }
    let code = match last {
        b'u' => return key(codepoint(number(0, 0)?, number(0, 1), held)?),
        b'~' => match number(0, 0)? {
            1 | 7 => Code::Home,
            2 => Code::Insert,
            3 => Code::Delete,
            4 | 8 => Code::End,
            5 => Code::PageUp,
            6 => Code::PageDown,
            n @ 11..=15 => Code::F((n - 10) as u8),
            n @ 17..=21 => Code::F((n - 11) as u8),
            n @ 23..=24 => Code::F((n - 12) as u8),
            27 => return key(codepoint(number(2, 0)?, None, held)?),
            _ => return None,
        },
        b'I' => return Some(Input::Focus(true)),
        b'O' => return Some(Input::Focus(false)),
        b'Z' => {
            return key(with(Key::plain(Code::Tab).shift(), held));
        }
        b'E' | b'M' => return None,
        other => ss3(other)?,
    };
    key(with(Key::plain(code), held))
}

fn with(mut key: Key, held: u32) -> Key {
    key.shift |= held & 1 != 0;
    key.alt |= held & 2 != 0;
    key.ctrl |= held & 4 != 0;
    key
}

/// Decodes a key of the kitty protocol by its number.
fn codepoint(number: u32, shifted: Option<u32>, held: u32) -> Option<Key> {
    let code = match number {
        13 | 57414 => Code::Enter,
        9 => Code::Tab,
        27 => Code::Escape,
        127 | 8 => Code::Backspace,
        57417 => Code::Left,
        57418 => Code::Right,
        57419 => Code::Up,
        57420 => Code::Down,
        57421 => Code::PageUp,
        57422 => Code::PageDown,
        57423 => Code::Home,
        57424 => Code::End,
        57425 => Code::Insert,
        57426 => Code::Delete,
        n @ 57399..=57408 => Code::Char(char::from_digit(n - 57399, 10)?),
        // Modifier and media keys on their own.
        57344..=63743 => return None,
        n => {
            let c = char::from_u32(n)?;
            if c.is_control() {
                return None;
            }
            let mut key = with(Key::plain(Code::Char(c)), held);
            if key.shift {
                let upper = shifted.filter(|n| *n > 0).and_then(char::from_u32);
                let c = upper.or_else(|| c.to_uppercase().next()).unwrap_or(c);
                key.code = Code::Char(c);
                key.shift = false;
            }
            return Some(key);
        }
    };
    Some(with(Key::plain(code), held))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: &[u8]) -> Input {
        let mut out = Decoder::default().feed(bytes);
        assert_eq!(out.len(), 1, "{bytes:?}: {out:?}");
        out.remove(0)
    }

    #[test]
    fn keys_in_every_encoding() {
        let enter = Key::plain(Code::Enter);
        for (bytes, wanted) in [
            (b"a".as_slice(), Key::plain(Code::Char('a'))),
            ("é".as_bytes(), Key::plain(Code::Char('é'))),
            ("👍".as_bytes(), Key::plain(Code::Char('👍'))),
            (b"\r", enter),
            (b"\n", Key::plain(Code::Char('j')).ctrl()),
            (b"\x1b\r", enter.alt()),
            (b"\x1b[13;2u", enter.shift()),
            (b"\x1b[27;2;13~", enter.shift()),
            (b"\x1b[13;2:1u", enter.shift()),
            (b"\x1b[97;5u", Key::plain(Code::Char('a')).ctrl()),
            (b"\x1b[97:65;2u", Key::plain(Code::Char('A'))),
            (b"\x1b[1;5D", Key::plain(Code::Left).ctrl()),
            (b"\x1b[Z", Key::plain(Code::Tab).shift()),
            (b"\x1bOA", Key::plain(Code::Up)),
            (b"\x1b[5~", Key::plain(Code::PageUp)),
            (b"\x1b[15~", Key::plain(Code::F(5))),
            (b"\x1bOP", Key::plain(Code::F(1))),
            (b"\x1b1", Key::plain(Code::Char('1')).alt()),
            (b"\x1f", Key::plain(Code::Char('_')).ctrl()),
            (b"\x7f", Key::plain(Code::Backspace)),
            (b"\x1b\x7f", Key::plain(Code::Backspace).alt()),
            (b"\x1b[27u", Key::plain(Code::Escape)),
        ] {
            assert_eq!(one(bytes), Input::Key(wanted), "{bytes:?}");
        }
        assert!(
            Decoder::default().feed(b"\x1b[13;2:3u").is_empty(),
            "released"
        );
    }

    #[test]
    fn answers_wheel_and_focus() {
        for (bytes, wanted) in [
            (
                b"\x1b]11;rgb:ffff/8080/0000\x1b\\".as_slice(),
                Input::Reply(Reply::Ground(255, 128, 0)),
            ),
            (
                b"\x1b]11;rgb:ff/ff/ff\x07",
                Input::Reply(Reply::Ground(255, 255, 255)),
            ),
            (b"\x1b[?1u", Input::Reply(Reply::Keyboard)),
            (b"\x1b[?2026;2$y", Input::Reply(Reply::Synchronized(true))),
            (b"\x1b[?2026;0$y", Input::Reply(Reply::Synchronized(false))),
            (b"\x1b[?62;4c", Input::Reply(Reply::End)),
            (b"\x1b[<64;10;5M", Input::Wheel(-3)),
            (b"\x1b[<65;10;5M", Input::Wheel(3)),
            (b"\x1b[<0;10;5M", Input::Mouse(Button::Pressed, 9, 4)),
            (b"\x1b[<32;1;500M", Input::Mouse(Button::Moved, 0, 499)),
            (b"\x1b[<0;10;5m", Input::Mouse(Button::Released, 9, 4)),
            (b"\x1b[I", Input::Focus(true)),
            (b"\x1b[O", Input::Focus(false)),
        ] {
            assert_eq!(one(bytes), wanted, "{bytes:?}");
        }
    }

    #[test]
    fn a_paste_is_one_text_whatever_stands_in_it() {
        let text = one(b"\x1b[200~one\r\ntwo\x1b[A\x03\r\x1b[201~");
        assert_eq!(text, Input::Paste("one\ntwo\x1b[A\x03\n".into()));
    }

    #[test]
    fn a_lone_escape_is_told_by_waiting() {
        let mut decoder = Decoder::default();
        assert!(decoder.feed(b"\x1b").is_empty());
        assert!(decoder.is_pending());
        assert_eq!(decoder.flush(), [Input::Key(Key::plain(Code::Escape))]);
        assert!(!decoder.is_pending());
        let two = decoder.feed(b"\x1b\x1b");
        assert_eq!(two, [Input::Key(Key::plain(Code::Escape))]);
        assert_eq!(decoder.flush(), [Input::Key(Key::plain(Code::Escape))]);
    }

    proptest::proptest! {
        #[test]
        fn it_does_not_matter_where_bytes_are_cut(
            pieces in proptest::collection::vec(proptest::sample::select(vec![
                "a", "é", "日", "👩‍👩‍👧", "\r", "\x1b[A", "\x1b[1;5D", "\x1bOP", "\x1b[200~x\ry\x1b[201~",
                "\x1b]11;rgb:00/00/00\x07", "\x1b[?62c", "\x1b[<64;1;1M", "\x1bx", "\x1bP>|term\x1b\\",
            ]), 0..12),
            cuts in proptest::collection::vec(1usize..5, 1..80),
        ) {
            let bytes: Vec<u8> = pieces.concat().into_bytes();
            let whole = Decoder::default().feed(&bytes);
            let mut decoder = Decoder::default();
            let mut parts = Vec::new();
            let (mut rest, mut cuts) = (bytes.as_slice(), cuts.iter().cycle());
            while !rest.is_empty() {
                let n = (*cuts.next().unwrap()).min(rest.len());
                parts.extend(decoder.feed(&rest[..n]));
                rest = &rest[n..];
            }
            proptest::prop_assert_eq!(parts, whole);
        }

        #[test]
        fn no_bytes_break_it(bytes: Vec<u8>) {
            let mut decoder = Decoder::default();
            decoder.feed(&bytes);
            decoder.flush();
        }
    }
}
