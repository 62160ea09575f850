//! Yes-or-no questions on the terminal.

use crate::error::Error;
use kd_tui::signals::Signals;
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

/// Asks the same after something was played, whose handlers catch signals for as long as the program runs. `None` if a
/// signal stopped the question.
///
/// # Errors
///
/// Signals cannot be handled, or stderr cannot be written.
pub(super) fn agreed_after(question: &str) -> Result<Option<bool>, Error> {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    let mut err = crate::out::stderr();
    for _ in 0..TRIES {
        write!(err, "{question} [y/N] ")?;
        err.flush()?;
        let Some(line) = line_or_stop()? else {
            return Ok(None);
        };
        match answer(&line) {
            Some(yes) => return Ok(Some(yes)),
            None => writeln!(err, "please answer y or n")?,
        }
    }
    Ok(Some(false))
}

/// Reads a line of the terminal; `None` if a signal asks to stop. A blocking read alone would not be interrupted where
/// handlers catch signals.
///
/// # Errors
///
/// Signals cannot be handled.
pub(super) fn line_or_stop() -> Result<Option<String>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let line = runtime.block_on(async {
        let mut signals = Signals::listen(false)?;
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|_| line)
        });
        tokio::select! {
            read = line => Ok(Some(read.ok().and_then(Result::ok).unwrap_or_default())),
            () = signals.stopped() => {
                let _ = writeln!(crate::out::stderr());
                Ok(None)
            }
        }
    });
    // The thread that reads the terminal may still wait for a line.
    runtime.shutdown_background();
    line
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
