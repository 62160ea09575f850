//! Reads the question from the command line and from piped input.

use super::notices::say;
use crate::error::Error;
use kd_app::Question;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal, Read};

/// Maximum bytes of a question with its context, as accepted by the council.
const BYTES_MAX: usize = 16 << 20;
/// Maximum silence of an open pipe before `kd` continues without it: some programs start `kd` with a pipe on stdin that
/// they never write to or close.
const SILENCE: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// Returns the words of a question as the user typed them, without what is read from stdin.
pub(super) fn typed(words: &[String]) -> String {
    let words: Vec<&str> = words
        .iter()
        .filter(|w| *w != "-")
        .map(String::as_str)
        .collect();
    words.join(" ")
}

/// Reads the question: the words; or stdin, for `-` or without words; or the words with stdin appended as context.
pub(super) fn read(command: &str, words: &[String], quiet: bool) -> Result<Question, Error> {
    let wants_stdin = words.iter().any(|w| w == "-");
    let asked = typed(words);
    let stdin = io::stdin();
    let terminal = stdin.is_terminal();
    if asked.trim().is_empty() && terminal && !wants_stdin {
        return Err(Error::usage("there is no question").next(example(command)));
    }
    if wants_stdin && terminal && !quiet {
        say("type the question; Ctrl+D on an empty line ends it");
    }
    let needed = wants_stdin || asked.trim().is_empty();
    let piped = if needed {
        from_stdin()?
    } else if terminal {
        String::new()
    } else if speaks() {
        from_stdin()?
    } else {
        if !quiet {
            say("stdin is open but silent: continuing without it (`< /dev/null` skips the wait)");
        }
        String::new()
    };
    if !needed && piped.trim().is_empty() && !quiet && is_pipe() {
        say("stdin is empty: nothing is added to the question");
    }
    join(command, &asked, &piped)
}

/// Returns whether stdin is a pipe, such as that of `git diff | kd ask "…"`.
fn is_pipe() -> bool {
    let stat = rustix::fs::fstat(io::stdin());
    stat.is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_fifo())
}

fn example(command: &str) -> String {
    format!("kd {command} \"Should a small team start with SQLite or PostgreSQL?\"")
}

/// Joins question and context.
fn join(command: &str, asked: &str, piped: &str) -> Result<Question, Error> {
    let (asked, piped) = (asked.trim(), piped.trim());
    let question = match (asked.is_empty(), piped.is_empty()) {
        (true, true) => {
            return Err(Error::usage("the question is empty").next(example(command)));
        }
        (true, false) => Question {
            text: piped.to_owned(),
            asked: piped.to_owned(),
            ..Question::default()
        },
        (false, true) => Question {
            text: asked.to_owned(),
            asked: asked.to_owned(),
            ..Question::default()
        },
        (false, false) => Question {
            text: format!("{asked}\n\n{}", fenced(piped)),
            asked: asked.to_owned(),
            ..Question::default()
        },
    };
    if question.text.len() > BYTES_MAX {
        return Err(too_long());
    }
    Ok(question)
}

/// Puts piped input into a fence, so that no character of it is a mark: a `+` of a diff is not a list.
fn fenced(piped: &str) -> String {
    let fence = kd_core::markdown::fence(&[piped]);
    format!("{fence}\n{piped}\n{fence}")
}

fn from_stdin() -> Result<String, Error> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::usage("stdin could not be read").because(e))?;
    if bytes.len() > BYTES_MAX {
        return Err(too_long());
    }
    if bytes.contains(&0) {
        return Err(Error::usage("the piped input is binary")
            .next("pipe text, or name the file in the question"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn too_long() -> Error {
    Error::usage(format!(
        "the question is longer than {} MiB",
        BYTES_MAX >> 20
    ))
    .next("put the long part into a file and name it, or pipe in only what matters")
}

/// Returns whether stdin soon has data or ends.
fn speaks() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    // A stdin that cannot be polled is a file, which never blocks.
    poll(&mut fds, Some(&SILENCE)).map_or(true, |ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_stands_below_the_question_and_mentions_nobody() {
        let question = join("think", "Is this safe?", "diff @all\n").expect("both");
        assert_eq!(question.text, "Is this safe?\n\n```\ndiff @all\n```");
        let fences = join("think", "Safe?", "````\n+// x").expect("both");
        assert!(fences.text.ends_with("\n`````"), "{}", fences.text);
        assert_eq!(question.asked, "Is this safe?");
        assert_eq!(
            join("think", "", "@claude hi\n")
                .expect("stdin alone")
                .asked,
            "@claude hi"
        );
        let nothing = join("think", " ", "\n").expect_err("nothing");
        assert_eq!(nothing.kind, "usage");
        assert!(
            nothing
                .next
                .is_some_and(|next| next.starts_with("kd think "))
        );
        assert!(join("think", "x", &"y".repeat(BYTES_MAX)).is_err());
    }
}
