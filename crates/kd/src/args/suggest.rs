//! Suggests a command for a mistyped word.

use crate::error::Error;
use crate::exit::Exit;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use kd_vote::nearest;

/// Words of other programs, and what they mean here.
const ELSEWHERE: [(&str, &str); 22] = [
    ("compare", "ask"),
    ("question", "ask"),
    ("query", "ask"),
    ("run", "ask"),
    ("debate", "think"),
    ("decide", "deliberate"),
    ("talk", "chat"),
    ("continue", "ask --continue"),
    ("resume", "chat"),
    ("new", "chat --new"),
    ("threads", "list"),
    ("history", "list"),
    ("log", "show --all"),
    ("delete", "forget"),
    ("rm", "forget"),
    ("setup", "init"),
    ("login", "init"),
    ("settings", "config show"),
    ("agents", "doctor"),
    ("members", "doctor"),
    ("update", "prices update"),
    ("version", "--version"),
];

/// Returns the error for a word that is no command of `kd`; `None` for any other mistake. `first` is the word after `kd`.
pub(crate) fn unknown(error: &clap::Error, first: Option<&str>) -> Option<Error> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    // Within a group, suggest the group's own subcommands.
    if first != Some(word) {
        return None;
    }
    let what = format!("there is no command `{word}`");
    let asks = "to ask a question: kd ask \"…\"";
    let error = |what: String| Error::new("usage", Exit::Usage, what);
    Some(match meant(word) {
        Some(command) => error(what).next(format!("did you mean `kd {command}`? {asks}")),
        None if word.contains(char::is_whitespace) => {
            Error::new("usage", Exit::Usage, "a question needs its command").next(asks)
        }
        None => error(what).next(format!("{asks}; all commands: kd --help")),
    })
}

/// The command that a word most likely means.
fn meant(word: &str) -> Option<String> {
    let lower = word.to_lowercase();
    let known = ELSEWHERE.iter().find(|(other, _)| *other == lower);
    if let Some((_, command)) = known {
        return Some((*command).to_owned());
    }
    if word.contains(char::is_whitespace) {
        return None;
    }
    let command = super::Cli::command();
    nearest(word, command.get_subcommands().map(clap::Command::get_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_command_gets_the_nearest() {
        for (word, command) in [
            ("aks", Some("ask")),
            ("as", Some("ask")),
            ("cuoncil", Some("council")),
            ("deliberat", Some("deliberate")),
            ("Chat", Some("chat")),
            ("lst", Some("last")),
            ("version", Some("--version")),
            ("history", Some("list")),
            ("sqlite", None),
            ("Which database?", None),
        ] {
            assert_eq!(meant(word).as_deref(), command, "{word}");
        }
        for (_, command) in ELSEWHERE {
            let argv = ["kd"].into_iter().chain(command.split(' '));
            let read = super::super::Cli::command().try_get_matches_from(argv);
            let kind = read.err().map(|error| error.kind());
            assert!(
                !matches!(
                    kind,
                    Some(ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument)
                ),
                "{command}"
            );
        }
    }
}
