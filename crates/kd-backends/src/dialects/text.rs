//! Plain text: whatever a program prints on stdout is its answer, line by line.
//!
//! Such a program has no terminal event, so the end of its output and its exit code decide: exit code 0 with some text
//! is an answer, anything else is a failure, and the text is void.

use super::answer::Answer;
use super::{Decoder, Exit, ExitSeen, blame};
use kd_core::{Delta, Failure, FailureKind, Finish};

const WHO: &str = "the program";

/// Decoder for plain text; see the module docs.
#[derive(Default)]
pub(super) struct Text {
    answer: Answer,
    /// Line endings held back until the next line with text: an answer does not end with blank lines.
    ends: usize,
}

impl Decoder for Text {
    fn line(&mut self, line: &[u8]) -> Vec<Delta> {
        let mut out = Vec::new();
        let line = String::from_utf8_lossy(line);
        // If a line is overwritten with carriage returns, only its last version counts.
        let line = line.trim_end_matches('\r').rsplit('\r').next();
        let line = line.unwrap_or_default().trim_end();
        if !line.is_empty() {
            let gap = if self.answer.is_empty() { 0 } else { self.ends };
            let piece = format!("{}{line}", "\n".repeat(gap));
            self.answer.grow("", "", &piece, &mut out);
            self.ends = 0;
        }
        self.ends += 1;
        out
    }

    /// Never true before the stream ends; see the module docs.
    fn over(&self) -> bool {
        false
    }

    fn end(&mut self, exit: &ExitSeen) -> Result<Delta, Failure> {
        let mut turn = std::mem::take(self);
        match exit.how {
            Exit::Code(0) if turn.answer.is_empty() => Err(Failure::new(
                FailureKind::Decode,
                format!("{WHO} printed nothing"),
            )
            .advise(
                "run it by hand to see whether it answers: its command is `agents.<name>.command`",
            )),
            Exit::Code(0) => {
                turn.answer.settle_all();
                turn.answer.finish(WHO, Finish::Stop, None)
            }
            _ => Err(blame::unfinished(WHO, exit, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{Reading, named};

    fn read(said: &[u8], cut: usize, how: Exit) -> (String, Result<Delta, Failure>) {
        let mut reading = Reading::new(named("text").expect("it is in the table"));
        let mut deltas = reading.feed(&said[..cut]);
        deltas.extend(reading.feed(&said[cut..]));
        deltas.extend(reading.finish());
        let text = deltas.iter().map(|delta| match delta {
            Delta::Text { text } => text.as_str(),
            other => panic!("{other:?}"),
        });
        let text = text.collect();
        let exit = ExitSeen {
            how,
            stderr: "error: no such model".into(),
        };
        (text, reading.end(&exit))
    }

    #[test]
    fn the_text_is_the_answer_wherever_it_is_cut() {
        let said = "\n\nTake PostgreSQL – it  is\r\n  kept.\n\n1 %\r99 %\rDone: \u{2028}ja\n\n\n";
        let wanted = "Take PostgreSQL – it  is\n  kept.\n\nDone: \u{2028}ja";
        for cut in 0..=said.len() {
            let (text, end) = read(said.as_bytes(), cut, Exit::Code(0));
            assert_eq!(text, wanted, "cut at {cut}");
            let whole = matches!(
                end,
                Ok(Delta::Finished {
                    text: None,
                    usage: None,
                    ..
                })
            );
            assert!(whole, "{end:?}");
        }
    }

    #[test]
    fn without_a_good_exit_or_without_words_there_is_no_answer() {
        for how in [Exit::Unseen, Exit::Code(1), Exit::Signal(9)] {
            assert!(read(b"half of", 0, how).1.is_err(), "{how:?}");
        }
        let failure = read(b"half", 0, Exit::Code(2)).1.expect_err("it failed");
        assert!(failure.message.contains("no such model"), "{failure}");
        for nothing in [&b""[..], b"\n \n", b"\r\n"] {
            let failure = read(nothing, 0, Exit::Code(0))
                .1
                .expect_err("it printed nothing");
            assert_eq!(failure.kind, FailureKind::Decode);
        }
    }
}
