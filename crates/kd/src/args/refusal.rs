//! What is wrong with a command line, for programs: the error of the parser as an error like all others.

use crate::error::Error;
use clap::error::ErrorKind;

/// Returns whether a command line that could not be parsed asks for JSON. `words` follow `kd`.
pub(crate) fn asks_json(words: &[String]) -> bool {
    let mut before = None;
    // What follows `--` is text.
    for word in words.iter().take_while(|word| *word != "--") {
        let is_format = before == Some("--format") || before == Some("-f");
        let asks = match word.as_str() {
            "--json" | "--jsonl" | "--format=json" | "-fjson" | "-f=json" => true,
            word => is_format && word == "json",
        };
        if asks {
            return true;
        }
        before = Some(word.as_str());
    }
    false
}

/// Returns an error of the parser. The text of the parser has paragraphs: what happened, hints, and the usage.
pub(crate) fn error(error: &clap::Error) -> Error {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Error::usage("there is no command").next("kd --help");
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let mut what = Vec::new();
    let mut hints = Vec::new();
    let mut lines = text.lines().map(str::trim);
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        what.push(line);
    }
    for line in lines {
        if let Some(hint) = line.strip_prefix("tip: ") {
            hints.push(hint.trim());
        } else if let Some(usage) = line.strip_prefix("Usage: ")
            && hints.is_empty()
        {
            hints.push(usage);
        }
    }
    let told = Error::usage(what.join(" "));
    match hints.is_empty() {
        true => told.next("kd --help"),
        false => told.next(hints.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn json_is_asked_for_before_the_text_begins() {
        for (line, asks) in [
            ("show --json --nope", true),
            ("ask --jsonl --nope x", true),
            ("export --format json --nope", true),
            ("export -f json --nope", true),
            ("review --format=json --nope", true),
            ("review --format sarif --nope", false),
            ("ask --nope x", false),
            ("ask --nope -- --json", false),
            ("ask --nope json", false),
        ] {
            assert_eq!(asks_json(&words(line)), asks, "{line}");
        }
    }

    #[test]
    fn an_error_of_the_parser_keeps_what_happened_and_what_to_type() {
        for (line, what, next) in [
            (
                "ask x --memebrs a",
                "unexpected argument '--memebrs' found",
                "'--members'",
            ),
            ("ask x --timeout 0", "invalid value '0'", "kd --help"),
            (
                "ask x --color blue",
                "[possible values: auto, always, never]",
                "kd --help",
            ),
            (
                "vote tally",
                "required arguments were not provided: ",
                "kd vote tally ",
            ),
            (
                "show --all --last 2",
                "cannot be used with '--last <N>'",
                "kd show ",
            ),
            ("config", "there is no command", "kd --help"),
        ] {
            let all = std::iter::once("kd".to_owned()).chain(words(line));
            let told = super::super::Cli::command().try_get_matches_from(all);
            let told = error(&told.expect_err(line));
            assert!(told.what.contains(what), "{line}: {}", told.what);
            assert!(!told.what.contains('\n'), "{line}: {}", told.what);
            let advice = told.next.unwrap_or_default();
            assert!(advice.contains(next), "{line}: {advice}");
            assert_eq!(told.kind, "usage");
        }
    }
}
