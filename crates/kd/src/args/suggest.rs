//! Suggests a command for a mistyped word, and for an option that another command has.

use crate::error::Error;
use crate::exit::Exit;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use kd_vote::nearest;

/// Words of other programs, and what they mean here.
const ELSEWHERE: [(&str, &str); 23] = [
    ("retry", "council retry"),
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

/// Words of other programs below a group, and what they mean there.
const BELOW: [(&str, &str, &str); 5] = [
    ("kd config", "get", "show"),
    ("kd config", "list", "show"),
    ("kd config", "edit", "set"),
    ("kd config", "delete", "unset"),
    ("kd config", "remove", "unset"),
];

/// Options that people expect, by command (`""` for `kd` itself, `*` for any), and what does it here.
const FLAGS: [(&str, &str, &str); 9] = [
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
        "chat",
        "--resume",
        "`kd chat` opens the current thread, `kd chat a94d` another",
    ),
    (
        "think",
        "--to",
        "`kd think --members claude,codex \"…\"` names the fast and the rigorous member",
    ),
    (
        "deliberate",
        "--to",
        "`kd deliberate --members claude,codex,gemini \"…\"` names the members",
    ),
    (
        "*",
        "--fork",
        "`kd fork` starts a thread with the beginning of another; `kd ask --fork` asks in one",
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

/// Words that begin a question.
const ASKS: [&str; 27] = [
    "what", "why", "how", "who", "when", "where", "which", "whose", "should", "shall", "is", "are",
    "was", "can", "could", "do", "does", "did", "will", "would", "has", "have", "tell", "explain",
    "write", "give", "please",
];

/// Returns the error for a word that is no command of `kd`; `None` for any other mistake. `words` follow `kd`.
pub(crate) fn unknown(error: &clap::Error, words: &[String]) -> Option<Error> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let error = |what: String| Error::new("usage", Exit::Usage, what);
    let first = words.iter().find(|word| !word.starts_with('-'));
    if first != Some(word) {
        return Some(unknown_below(word, words));
    }
    if is_question(words) {
        // Options of a quoted question stay options.
        let is_option = |word: &String| word.starts_with('-');
        let of_it = words.iter().position(is_option).unwrap_or(words.len());
        let (question, options) = words.split_at(of_it);
        let options = options
            .iter()
            .map(|word| match word.contains(char::is_whitespace) {
                true => format!(" {}", quoted(word)),
                false => format!(" {word}"),
            });
        let options: String = options.collect();
        let asks = format!("kd ask {}{options}", quoted(&question.join(" ")));
        return Some(error("a question needs its command".to_owned()).next(asks));
    }
    let what = format!("there is no command `{word}`");
    let asks = "to ask a question: kd ask \"…\"";
    Some(match meant(word) {
        Some(command) => error(what).next(format!("did you mean `kd {command}`? {asks}")),
        None => error(what).next(format!("{asks}; all commands: kd --help")),
    })
}

/// Returns the error for a word that is not a command of a group, or not a command that `kd help` can explain.
fn unknown_below(word: &str, words: &[String]) -> Error {
    let mut all = super::Cli::command();
    // Clap adds the commands of a group only when it builds the group.
    all.build();
    let (mut group, mut path) = (&all, vec!["kd"]);
    for above in words.iter().take_while(|above| *above != word) {
        if let Some(below) = group
            .find_subcommand(above)
            .filter(|c| c.get_name() != "help")
        {
            group = below;
            path.push(below.get_name());
        }
    }
    let path = path.join(" ");
    let what = format!("there is no command `{path} {word}`");
    let error = Error::new("usage", Exit::Usage, what);
    let near = match path.as_str() {
        "kd" => meant(word),
        _ => nearest(word, group.get_subcommands().map(clap::Command::get_name)),
    };
    let below = BELOW
        .iter()
        .find(|(of, other, _)| *of == path && *other == word);
    if let Some((_, _, command)) = below {
        // What follows stays: it is the name of a setting.
        let after = words.iter().skip_while(|one| *one != word).skip(1);
        let after: String = after.map(|word| format!(" {}", shown(word))).collect();
        return error.next(format!(
            "did you mean `{path} {command}{after}`? All of them: {path} --help"
        ));
    }
    error.next(match near {
        Some(near) => format!("did you mean `{path} {near}`? All of them: {path} --help"),
        None => format!("all of them: {path} --help"),
    })
}

/// Returns whether the words are a question without a command: they begin like a question, or the first word resembles no
/// command and the other words continue like a question.
fn is_question(words: &[String]) -> bool {
    let Some(first) = words.first() else {
        return false;
    };
    let one = first.contains(char::is_whitespace) && !first.starts_with('-');
    if !one && words.iter().any(|word| word.starts_with('-')) {
        return false;
    }
    let begins = first
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_lowercase();
    let asks = ASKS.contains(&begins.as_str());
    one || words.len() > 1 && (asks || meant(first).is_none())
}

/// Returns a word as it is typed in a shell.
fn shown(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => quoted(word),
    }
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    match text.contains(['"', '$', '`', '\\', '!']) {
        true => format!("'{}'", text.replace('\'', "'\\''")),
        false => format!("\"{text}\""),
    }
}

/// Returns the command that a word most likely means.
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
            "kd deliberate x --fork",
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
    fn what_is_no_command_is_a_typo_in_its_group_or_a_question() {
        for (line, what, next) in [
            ("help aks", "`kd aks`", "`kd ask`"),
            (
                "help council shwo",
                "`kd council shwo`",
                "`kd council show`",
            ),
            ("batch rnu", "`kd batch rnu`", "`kd batch run`"),
            (
                "batch nothing-alike",
                "`kd batch nothing-alike`",
                "kd batch --help",
            ),
            (
                "config get council.timeout",
                "`kd config get`",
                "`kd config show council.timeout`",
            ),
            ("config list", "`kd config list`", "`kd config show`"),
            ("config shwo", "`kd config shwo`", "`kd config show`"),
            ("aks Which one?", "`aks`", "`kd ask`"),
            (
                "What is TCP?",
                "a question needs",
                "kd ask \"What is TCP?\"",
            ),
            (
                "Monoliths or microservices",
                "a question needs",
                "kd ask \"Monoliths or microservices\"",
            ),
            (
                "What costs $5?",
                "a question needs",
                "kd ask 'What costs $5?'",
            ),
            ("sqlite", "`sqlite`", "kd --help"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let all = ["kd".to_owned()].into_iter().chain(words.clone());
            let error = super::super::Cli::command().try_get_matches_from(all);
            let told = unknown(&error.expect_err("a mistake"), &words);
            let told = told.unwrap_or_else(|| panic!("{line}"));
            assert!(told.what.contains(what), "{line}: {}", told.what);
            let advice = told.next.unwrap_or_default();
            assert!(advice.contains(next), "{line}: {advice}");
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
        let mut all = super::super::Cli::command();
        all.build();
        for (path, _, command) in BELOW {
            let group = path.trim_start_matches("kd ");
            let group = all.find_subcommand(group).expect(path);
            assert!(group.find_subcommand(command).is_some(), "{path} {command}");
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
