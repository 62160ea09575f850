//! Lines of input: what a person types, and what a program that drives the chat writes.

use kd_core::slash::{self, Line};
use std::io::{self, BufRead, IsTerminal, Read};
use std::time::Instant;
use tokio::sync::mpsc;

/// Maximum bytes of a line: a message of 16 MiB, with JSON's escapes.
const LINE_BYTES_MAX: u64 = 32 << 20;
/// The text that a program can write instead of a wrong line.
const NEXT: &str = "write {\"say\": \"…\"} or a /command";

/// A line of input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Typed {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Its text; empty if it is not usable.
    pub(super) text: String,
    /// Why it is not usable.
    fault: Option<&'static str>,
    /// Whether it is certainly the complete text of a message, without replaced bytes.
    is_exact: bool,
    /// The time when its end was read.
    pub(super) at: Option<Instant>,
}

/// The meaning of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// A message that is never read as a command.
    Said(String),
    /// A message or a command.
    Typed(String),
    /// An empty line.
    Nothing,
}

impl Input {
    /// Returns its text.
    pub(super) fn into_text(self) -> String {
        match self {
            Input::Said(text) | Input::Typed(text) => text,
            Input::Nothing => String::new(),
        }
    }
}

/// A message of a program that drives the chat: it may have several lines, and is not a command.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    say: String,
}

impl Typed {
    /// Reads a line that a person typed.
    ///
    /// # Errors
    /// If it is too long.
    pub(super) fn said(&self) -> Result<Input, String> {
        match self.fault {
            Some(fault) => Err(format!("line {} {fault}", self.number)),
            None => Ok(Input::Typed(self.text.clone())),
        }
    }

    /// Reads a line of a program that drives the chat: a message as a JSON object, or a command.
    ///
    /// # Errors
    /// If it is neither.
    pub(super) fn driven(&self) -> Result<Input, String> {
        let line = self.text.trim();
        let fault = match self.fault {
            None if !self.is_exact => Some("is not UTF-8"),
            None if line.contains('\0') => Some("contains a NUL byte"),
            fault => fault,
        };
        if let Some(fault) = fault {
            return Err(format!("it {fault}"));
        }
        if line.is_empty() {
            return Ok(Input::Nothing);
        }
        if line.starts_with('/') && !matches!(slash::read(line), Line::Say(_)) {
            return Ok(Input::Typed(line.to_owned()));
        }
        // Without this, serde would take an array for the fields of an object.
        if !line.starts_with('{') {
            return Err(format!("it is no JSON object; {NEXT}"));
        }
        let said = serde_json::from_str::<Said>(line).map_err(|error| {
            let error = error.to_string();
            // There is only one line.
            let error = error.replace(" at line 1 column ", " at column ");
            format!("{error}; {NEXT}")
        })?;
        if said.say.contains('\0') {
            return Err("the message contains a NUL character".to_owned());
        }
        Ok(Input::Said(said.say))
    }
}

/// Lines of input, read on a separate thread.
pub(super) struct Keyboard {
    pub(super) is_terminal: bool,
    pub(super) lines: mpsc::Receiver<Typed>,
}

impl Keyboard {
    /// Starts to read. A `\` at the end continues a line, unless a program writes JSON.
    pub(super) fn start(is_json: bool) -> Self {
        let (sender, lines) = mpsc::channel(64);
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            read(&mut input, is_json, LINE_BYTES_MAX, |line| {
                sender.blocking_send(line).is_ok()
            });
        });
        Self {
            is_terminal: io::stdin().is_terminal(),
            lines,
        }
    }
}

/// Reads lines until the input ends, cannot be read, or `take` returns false. Of a line over `most` bytes only the number is
/// kept.
fn read(input: &mut impl BufRead, is_json: bool, most: u64, mut take: impl FnMut(Typed) -> bool) {
    let mut number = 0;
    let mut typed = Typed::default();
    let mut goes_on = false;
    loop {
        let mut bytes = Vec::new();
        let read = input.by_ref().take(most + 1).read_until(b'\n', &mut bytes);
        if !read.is_ok_and(|read| read > 0) {
            break;
        }
        number += 1;
        if !goes_on {
            typed = Typed {
                number,
                is_exact: true,
                ..Typed::default()
            };
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        } else if bytes.len() as u64 > most && input.skip_until(b'\n').is_err() {
            break;
        }
        while bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        goes_on = !is_json && bytes.last() == Some(&b'\\');
        if goes_on {
            bytes.pop();
            bytes.push(b'\n');
        }
        typed.push(&bytes, most);
        typed.at = Some(Instant::now());
        if !goes_on && !take(std::mem::take(&mut typed)) {
            return;
        }
    }
    if goes_on {
        take(typed);
    }
}

impl Typed {
    /// Adds a line of the input.
    fn push(&mut self, bytes: &[u8], most: u64) {
        if self.fault.is_some() || (self.text.len() + bytes.len()) as u64 > most {
            self.text = String::new();
            self.fault = Some("is longer than 32 MiB");
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        self.is_exact &= matches!(text, std::borrow::Cow::Borrowed(_));
        self.text.push_str(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(mut input: &[u8], is_json: bool) -> Vec<Typed> {
        let mut all = Vec::new();
        read(&mut input, is_json, 40, |line| {
            all.push(line);
            true
        });
        all
    }

    #[test]
    fn every_line_of_a_program_is_a_message_a_command_or_an_error() {
        let long = "x".repeat(50);
        let input = [
            b"{\"say\": \"One\\nline?\"}\r\n".as_slice(),
            b"/mute ann\n",
            b"\n",
            b"hello\n",
            b"[\"hello\"]\n",
            b"\"hello\"\n",
            b"{\"say\": 1}\n",
            b"{\"shout\": \"x\"}\n",
            b"{\"say\": \"a\", \"say\": \"b\"}\n",
            b"{\"say\": \"a\"} x\n",
            b"{\"say\": \"a\\\n",
            long.as_bytes(),
            b"\n{\"say\": \"\xff\"}\n",
            b"{\"say\": \"a\0\"}\n",
            b"{\"say\": \"a\\u0000\"}\n",
            b"//hello\n",
            b"{\"say\": \"/quit\"}",
        ]
        .concat();
        let read: Vec<Result<Input, String>> = lines(&input, true)
            .iter()
            .map(|line| line.driven())
            .collect();
        let wants: [Result<&str, &str>; 17] = [
            Ok("One\nline?"),
            Ok("/mute ann"),
            Ok(""),
            Err("no JSON object"),
            Err("no JSON object"),
            Err("no JSON object"),
            Err("expected a string at column 9"),
            Err("unknown field `shout`"),
            Err("duplicate field `say`"),
            Err("trailing characters"),
            Err("EOF"),
            Err("longer than"),
            Err("not UTF-8"),
            Err("NUL"),
            Err("NUL"),
            Err("no JSON object"),
            Ok("/quit"),
        ];
        assert_eq!(read.len(), wants.len());
        for (read, wants) in read.into_iter().zip(wants) {
            match (read, wants) {
                (Ok(input), Ok(text)) => assert_eq!(input.into_text(), text),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                other => panic!("{other:?}"),
            }
        }
        let numbers: Vec<u64> = lines(&input, true).iter().map(|line| line.number).collect();
        assert_eq!(numbers, (1..=17).collect::<Vec<_>>());
    }

    #[test]
    fn a_person_may_type_anything_and_continue_a_line() {
        let input = b"one\\\ntwo\n{\"say\": 1}\nbad \xff byte\n\nlast\\";
        let typed: Vec<(u64, String)> = lines(input, false)
            .iter()
            .map(|line| (line.number, line.said().expect("usable").into_text()))
            .collect();
        let wants = [
            (1, "one\ntwo"),
            (3, "{\"say\": 1}"),
            (4, "bad \u{fffd} byte"),
            (5, ""),
            (6, "last\n"),
        ];
        let wants: Vec<(u64, String)> = wants.map(|(n, text)| (n, text.to_owned())).to_vec();
        assert_eq!(typed, wants);
        let long = format!("{}\nnext\n", "word \\\n".repeat(20) + "end");
        let read = lines(long.as_bytes(), false);
        assert!(read[0].said().unwrap_err().contains("line 1 "));
        assert_eq!(read[1].text, "next");
    }
}
