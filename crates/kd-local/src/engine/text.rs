//! Assembles an answer's text: whole characters from token bytes, without stop strings.

/// Generated text that may not be shown yet.
pub(super) struct TextOut {
    stops: Vec<String>,
    bytes: Vec<u8>,
    held: String,
}

impl TextOut {
    /// Creates text that ends before the first of `stops`; empty stop strings are ignored.
    pub(super) fn new(stops: Vec<String>) -> Self {
        Self {
            stops: stops.into_iter().filter(|s| !s.is_empty()).collect(),
            bytes: Vec::new(),
            held: String::new(),
        }
    }

    /// Adds the bytes of one token; returns the text that may be shown now, and whether a stop string was reached.
    pub(super) fn push(&mut self, bytes: &[u8]) -> (String, bool) {
        self.bytes.extend_from_slice(bytes);
        self.take_characters();
        let stop = self
            .stops
            .iter()
            .filter_map(|s| self.held.find(s.as_str()))
            .min();
        if let Some(at) = stop {
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), true);
        }
        let from = self.held.len() - self.begun();
        let keep = self.held.split_off(from);
        (std::mem::replace(&mut self.held, keep), false)
    }

    /// Returns the text held back at the end of an answer without a stop string. An incomplete character is dropped.
    pub(super) fn finish(&mut self) -> String {
        self.bytes.clear();
        std::mem::take(&mut self.held)
    }

    /// Moves whole characters from the bytes to the text; invalid bytes become U+FFFD.
    fn take_characters(&mut self) {
        loop {
            match std::str::from_utf8(&self.bytes) {
                Ok(text) => {
                    self.held.push_str(text);
                    self.bytes.clear();
                    return;
                }
                Err(error) => {
                    let (good, rest) = self.bytes.split_at(error.valid_up_to());
                    self.held.push_str(&String::from_utf8_lossy(good));
                    match error.error_len() {
                        Some(bad) => {
                            self.held.push(char::REPLACEMENT_CHARACTER);
                            self.bytes = rest[bad..].to_vec();
                        }
                        None => {
                            self.bytes = rest.to_vec();
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Returns the length of the longest suffix of the held text that is a prefix of a stop string.
    fn begun(&self) -> usize {
        let begins = |stop: &String| {
            (1..stop.len().min(self.held.len() + 1))
                .rev()
                .find(|n| self.held.as_bytes().ends_with(&stop.as_bytes()[..*n]))
        };
        self.stops.iter().filter_map(begins).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(stops: &[&str], parts: &[&[u8]]) -> (Vec<String>, bool) {
        let mut text = TextOut::new(stops.iter().map(|s| (*s).to_owned()).collect());
        let mut out = Vec::new();
        for part in parts {
            let (shown, stopped) = text.push(part);
            out.push(shown);
            if stopped {
                return (out, true);
            }
        }
        out.push(text.finish());
        (out, false)
    }

    #[test]
    fn characters_come_whole() {
        let euro = "€".as_bytes();
        assert_eq!(
            all(&[], &[b"a", &euro[..1], &euro[1..2], &euro[2..], b"b"]).0,
            ["a", "", "", "€", "b", ""]
        );
        assert_eq!(all(&[], &[b"a\xff", b"b"]).0, ["a\u{fffd}", "b", ""]);
        assert_eq!(all(&[], &[b"a", &euro[..2]]).0, ["a", "", ""]);
    }

    #[test]
    fn nothing_of_a_stop_string_is_shown() {
        assert_eq!(
            all(&["END"], &[b"so", b" E", b"N", b"D!"]),
            (vec!["so".into(), " ".into(), "".into(), "".into()], true)
        );
        assert_eq!(
            all(&["END"], &[b"EN", b"EX"]),
            (vec!["".into(), "ENEX".into(), "".into()], false)
        );
        assert_eq!(all(&["END"], &[b"E", b"N"]).0, ["", "", "EN"]);
        assert_eq!(all(&["b", "ab"], &[b"xab"]), (vec!["x".into()], true));
        assert_eq!(
            all(&["é"], &[b"a\xc3", b"\xa9"]),
            (vec!["a".into(), "".into()], true)
        );
        assert_eq!(all(&["", "\n\n"], &[b"a\n", b"b"]).0, ["a", "\nb", ""]);
    }
}
