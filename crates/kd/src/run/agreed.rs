//! Yes-or-no questions on the terminal.

use crate::error::Error;
use std::io::{self, BufRead, Write};

/// Maximum number of times that the question is asked. If all answers are invalid, the answer counts as no.
const TRIES: usize = 3;

/// Asks on stderr and reads the answer from stdin. An empty line and the end of input mean no; the question is repeated
/// after any other answer.
///
/// # Errors
///
/// Stdin cannot be read, or stderr cannot be written.
pub(super) fn agreed(question: &str) -> Result<bool, Error> {
    // Discard what was typed before the question.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    ask(
        question,
        &mut io::stdin().lock(),
        &mut crate::out::stderr().lock(),
    )
}

fn ask(question: &str, input: &mut impl BufRead, err: &mut impl Write) -> Result<bool, Error> {
    for _ in 0..TRIES {
        write!(err, "{question} [y/N] ")?;
        err.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(err)?;
            return Ok(false);
        }
        match answer(&line) {
            Some(yes) => return Ok(yes),
            None => writeln!(err, "please answer y or n")?,
        }
    }
    Ok(false)
}

/// Parses an answer; `None` if it is neither yes nor no.
fn answer(line: &str) -> Option<bool> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "" | "n" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_answer_counts() {
        for (typed, agrees, questions) in [
            ("y\n", true, 1),
            ("YES\n", true, 1),
            ("n\n", false, 1),
            ("\n", false, 1),
            ("", false, 1),
            ("maybe\ny\n", true, 2),
            ("maybe\nwell\nhm\ny\n", false, 3),
            ("ye", false, 2),
        ] {
            let mut err = Vec::new();
            let got = ask("Go on?", &mut typed.as_bytes(), &mut err).expect("an answer");
            let shown = String::from_utf8(err).expect("text");
            assert_eq!(got, agrees, "{typed:?}: {shown}");
            assert_eq!(shown.matches("[y/N]").count(), questions, "{typed:?}");
        }
    }
}
