//! Suggests a command for a mistyped word, and for an option that another command has.

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

/// Options that people expect, by command (`""` for `kd` itself, `*` for any), and what does it here.
const FLAGS: [(&str, &str, &str); 10] = [
    (
        "",
        "--new",
        "`kd chat --new` starts a new thread, and so does `kd ask \"…\"`",
    ),
    (
        "",
        "--continue",
        "`kd ask --continue \"…\"` asks in the same thread; `kd chat` opens it",
    ),
    (
        "",
        "--resume",
        "`kd chat` opens the current thread; `kd list` shows the others",
    ),
    (
        "ask",
        "--new",
        "`kd ask \"…\"` starts a new thread unless you add --continue",
    ),
    (
        "ask",
        "--fork",
        "`kd fork` starts a thread with the beginning of another; then `kd ask --continue \"…\"`",
    ),
    (
        "ask",
        "--resume",
        "`kd ask --continue \"…\"` asks in the current thread, --thread in another",
    ),
    (
        "chat",
        "--resume",
        "`kd chat` opens the current thread, `kd chat a94d` another",
    ),
    (
        "chat",
        "--fork",
        "`kd fork` starts a thread with the beginning of another; `kd chat` opens it",
    ),
    (
        "*",
        "--fork",
        "`kd fork` starts a thread with the beginning of another",
    ),
    (
        "*",
        "--dry-run",
        "`kd deliberate --dry-run \"…\"` shows members, calls and price; `kd cost` what was spent",
    ),
];

/// Returns the error for an option that a command does not have, but people expect; `None` for any other mistake.
pub(crate) fn option(error: &clap::Error, words: &[String]) -> Option<Error> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let command = words.iter().find(|word| !word.starts_with('-'));
    let before = words.iter().take_while(|word| *word != flag);
    let command = command.filter(|command| before.clone().any(|word| word == *command));
    let command = command.map_or("", String::as_str);
    let advice = advice(command, flag)?;
    let name = format!("kd {command}");
    let what = format!("`{}` has no option `{flag}`", name.trim_end());
    Some(Error::new("usage", Exit::Usage, what).next(advice))
}

fn advice(command: &str, flag: &str) -> Option<&'static str> {
    let rows = FLAGS.iter().filter(|(_, one, _)| *one == flag);
    let own = rows.clone().find(|(of, _, _)| *of == command);
    let any = rows.clone().find(|(of, _, _)| *of == "*");
    own.or(any).map(|(_, _, advice)| *advice)
}

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
    fn an_option_of_another_command_gets_a_hint() {
        for line in [
            "kd --new",
            "kd ask --dry-run x",
            "kd ask x --fork",
            "kd think --dry-run x",
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = super::super::Cli::command().try_get_matches_from(&words);
            let told = option(&error.expect_err("a mistake"), &words[1..]);
            let told = told.unwrap_or_else(|| panic!("{line}"));
            assert!(
                told.next.is_some_and(|next| next.contains("`kd ")),
                "{line}"
            );
        }
        let words = ["ask".to_owned(), "--memebrs".to_owned()];
        let error =
            super::super::Cli::command().try_get_matches_from(["kd", "ask", "--memebrs", "a"]);
        assert!(option(&error.expect_err("a typo"), &words).is_none());
        // No command has the option, and the commands of the advice exist.
        for (of, flag, advice) in FLAGS {
            let words = ["kd", of, flag]
                .into_iter()
                .filter(|word| !matches!(*word, "" | "*"));
            if of != "*" {
                let read = super::super::Cli::command().try_get_matches_from(words);
                let kind = read.err().map(|error| error.kind());
                assert_eq!(kind, Some(ErrorKind::UnknownArgument), "{of} {flag}");
            }
            for command in advice.split('`').skip(1).step_by(2) {
                let words = command.split(' ').map(|word| word.trim_matches('"'));
                let read = super::super::Cli::command().try_get_matches_from(words);
                assert!(read.is_ok(), "{command}");
            }
        }
    }

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
