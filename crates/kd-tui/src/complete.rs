//! Completion at the cursor. Takes the input and the known names; returns candidates, best first, and the range of the
//! input they would replace.

use kd_core::SeatName;
use kd_core::fuzzy;
use kd_core::slash::{self, Takes};
use std::ops::Range;

/// Maximum number of candidates.
const CANDIDATES_MAX: usize = 50;

/// Completions for the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// The range they replace.
    pub range: Range<usize>,
    /// Each candidate and its description.
    pub list: Vec<(String, String)>,
    /// Index of the chosen one.
    pub chosen: usize,
    /// Whether the user moved the choice.
    pub moved: bool,
}

/// The names to complete from.
pub struct Known<'a> {
    /// Members in order.
    pub members: &'a [SeatName],
    /// Names of modes.
    pub modes: &'a [&'static str],
    /// Returns files that a path may mean, best first.
    pub files: &'a dyn Fn(&str) -> Vec<String>,
}

/// Returns the completions at the cursor; `None` if there are none.
pub fn candidates(text: &str, cursor: usize, known: &Known<'_>) -> Option<Candidates> {
    let before = &text[..cursor];
    let start = before.rfind(char::is_whitespace).map_or(0, |at| {
        at + before[at..].chars().next().map_or(1, char::len_utf8)
    });
    let word = &before[start..];
    let list = if let Some(name) = word.strip_prefix('/').filter(|_| start == 0) {
        commands(name)
    } else if let Some(name) = word.strip_prefix('@') {
        let mut list = mentions(name, known.members);
        if !name.is_empty() {
            list.extend(
                (known.files)(name)
                    .into_iter()
                    .filter_map(|file| Some((mention_of(&file)?, "file".to_owned()))),
            );
        }
        list
    } else if let Some((command, _)) = before
        .strip_prefix('/')
        .and_then(|rest| rest.split_once(' '))
        .filter(|(command, arg)| !arg.contains(char::is_whitespace) || takes_two(command))
    {
        arguments(command, word, known)
    } else {
        Vec::new()
    };
    // Do not offer what is already typed.
    let list: Vec<_> = list
        .into_iter()
        .filter(|(c, _)| c != word)
        .take(CANDIDATES_MAX)
        .collect();
    (!list.is_empty()).then_some(Candidates {
        range: start..cursor,
        list,
        chosen: 0,
        moved: false,
    })
}

fn commands(name: &str) -> Vec<(String, String)> {
    let lower = name.to_lowercase();
    let aliased = |c: &&slash::SlashCommand| c.aliases.contains(&lower.as_str());
    let (aliased, others): (Vec<&slash::SlashCommand>, Vec<_>) =
        slash::COMMANDS.iter().partition(aliased);
    let fitting = fuzzy::best(name, others, |c: &&slash::SlashCommand| c.name);
    let all = aliased.into_iter().chain(fitting);
    all.map(|c| {
        (
            format!("/{}", c.name),
            format!("{} {}", c.args, c.doc).trim().to_owned(),
        )
    })
    .collect()
}

fn mentions(name: &str, members: &[SeatName]) -> Vec<(String, String)> {
    let fitting = fuzzy::best(name, members, |m| m.as_str());
    let mut list: Vec<(String, String)> = fitting
        .into_iter()
        .map(|m| (format!("@{m}"), "member".to_owned()))
        .collect();
    if "all".starts_with(&name.to_lowercase()) {
        list.push((
            "@all".to_owned(),
            "every member, with discussion".to_owned(),
        ));
    }
    list
}

/// Returns the words that attach a file: a path with spaces is in quotes. `None` if it cannot be written, or is a folder
/// whose path could not be continued.
fn mention_of(path: &str) -> Option<String> {
    if !path.contains(|c: char| c.is_whitespace() || c == '\'' || c == '"') {
        return Some(format!("@{path}"));
    }
    let is_plain = !path.ends_with('/') && !path.contains(['"', '\n']);
    is_plain.then(|| format!("@\"{path}\""))
}

fn takes_two(command: &str) -> bool {
    slash::find(command).is_some_and(|command| command.takes == Takes::MaybeTwo)
}

fn arguments(command: &str, word: &str, known: &Known<'_>) -> Vec<(String, String)> {
    let Some(command) = slash::find(&command.to_lowercase()) else {
        return Vec::new();
    };
    let fitting = |all: Vec<&'static str>| fuzzy::best(word, all, |c| c);
    let names = || {
        let all = known.members.iter().map(SeatName::as_str);
        fuzzy::best(word, all, |c| c).into_iter()
    };
    let of = |c: &str, what: &str| (c.to_owned(), what.to_owned());
    match command.takes {
        Takes::Member | Takes::MaybeMember | Takes::MaybeTwo => {
            names().map(|n| of(n, "member")).collect()
        }
        Takes::MaybeMode => fitting(known.modes.to_vec())
            .into_iter()
            .map(|m| of(m, "mode"))
            .collect(),
        Takes::MaybePart => names()
            .map(|n| of(n, "member"))
            .chain(
                fitting(vec!["code", "all"])
                    .into_iter()
                    .map(|c| of(c, "part")),
            )
            .collect(),
        Takes::Judgment => fitting(vec!["right", "wrong"])
            .into_iter()
            .map(|c| of(c, "mark"))
            .collect(),
        Takes::MaybeFile => (known.files)(word)
            .iter()
            .filter(|file| !file.contains(char::is_whitespace))
            .map(|file| of(file, "file"))
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(text: &str) -> Vec<String> {
        let members = ["claude", "codex", "cursor"].map(|n| SeatName::new(n).unwrap());
        let known = Known {
            members: &members,
            modes: &["broadcast", "manual"],
            files: &|begun| {
                ["src/main.rs", "src/lib.rs", "my notes.md", "my folder/"]
                    .into_iter()
                    .filter(|f| f.starts_with(begun))
                    .map(str::to_owned)
                    .collect()
            },
        };
        candidates(text, text.len(), &known)
            .map(|c| c.list.into_iter().map(|(c, _)| c).collect())
            .unwrap_or_default()
    }

    #[test]
    fn members_commands_arguments_and_files() {
        assert_eq!(offered("ask @c"), ["@claude", "@codex", "@cursor"]);
        assert_eq!(offered("@al"), ["@all"]);
        assert_eq!(offered("@a"), ["@claude", "@all"]);
        assert_eq!(offered("@oe"), ["@codex"]);
        assert_eq!(
            offered("/m")[..5],
            ["/mute", "/mark", "/merge", "/mode", "/members"]
        );
        assert_eq!(offered("/mde")[0], "/mode");
        assert_eq!(offered("/ex")[0], "/export");
        assert_eq!(offered("/mute co"), ["codex", "cursor"]);
        assert_eq!(offered("/mute cr"), ["cursor"]);
        assert_eq!(offered("/compare claude co"), ["codex", "cursor"]);
        assert_eq!(offered("/mode mn"), ["manual"]);
        assert_eq!(offered("/copy c"), ["claude", "codex", "cursor", "code"]);
        assert_eq!(offered("see @src/m"), ["@src/main.rs"]);
        assert_eq!(offered("see @my"), ["@\"my notes.md\""]);
        assert_eq!(offered("/export my"), [""; 0]);
        for nothing in [
            "",
            "hello",
            "a /mute",
            "@claude",
            "me@example.org x",
            "/new ",
        ] {
            assert_eq!(offered(nothing), [""; 0], "{nothing:?}");
        }
    }

    #[test]
    fn only_the_word_at_the_cursor_is_replaced() {
        let members = [SeatName::new("日本").unwrap()];
        let known = Known {
            members: &members,
            modes: &[],
            files: &|_| vec![],
        };
        let found = candidates("é\u{3000}@日 x", "é\u{3000}@日".len(), &known).unwrap();
        assert_eq!(found.range, 5..9);
    }
}
