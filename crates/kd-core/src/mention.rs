//! Finds whom a text addresses: `@member`, several of them, or `@all`.
//!
//! In: a text and the names that are known. Out: the names it mentions, in the order of first mention. Code is
//! skipped, and so are addresses such as `somebody@example.org`.

use crate::ids::{ALL, KING, SeatName};

/// What a text mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Whether it says `@all`.
    pub all: bool,
    /// Known names, each once, in the order of first mention.
    pub seats: Vec<SeatName>,
    /// Words after an `@` that name nobody here.
    pub unknown: Vec<String>,
}

/// Reads the mentions of a text. Case does not matter where the exact name is not known.
pub fn mentions(text: &str, known: &[&SeatName]) -> Mentions {
    let mut found = Mentions::default();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if !fenced {
            read_line(line, known, &mut found);
        }
    }
    found
}

/// The known name that a misspelt one most likely means.
pub fn nearest<'a>(name: &str, known: &[&'a SeatName]) -> Option<&'a SeatName> {
    let far_max = 1 + name.chars().count() / 5;
    known
        .iter()
        .map(|seat| {
            (
                strsim::damerau_levenshtein(&name.to_lowercase(), &seat.as_str().to_lowercase()),
                *seat,
            )
        })
        .filter(|(far, _)| *far <= far_max.min(2))
        .min_by_key(|(far, _)| *far)
        .map(|(_, seat)| seat)
}

fn read_line(line: &str, known: &[&SeatName], found: &mut Mentions) {
    let mut code = false;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '`' {
            code = !code;
        }
        if c == '@' && !code && !before.is_alphanumeric() && !matches!(before, '_' | '@' | '/') {
            let rest = &line[at + 1..];
            let end = rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len());
            read_name(&rest[..end], known, found);
        }
        before = c;
    }
}

fn read_name(run: &str, known: &[&SeatName], found: &mut Mentions) {
    let run = run.trim_end_matches(['.', '-', '_']);
    // `@claude.It` means claude: try the whole run, then what stands before each full stop.
    let mut name = run;
    while !name.is_empty() {
        if name.eq_ignore_ascii_case(ALL) {
            found.all = true;
            return;
        }
        if name.eq_ignore_ascii_case(KING) {
            return;
        }
        let exact = known.iter().find(|s| s.as_str() == name);
        let seat = exact.or_else(|| {
            known
                .iter()
                .find(|s| s.as_str().to_lowercase() == name.to_lowercase())
        });
        if let Some(seat) = seat {
            if !found.seats.contains(seat) {
                found.seats.push((*seat).clone());
            }
            return;
        }
        name = name.rfind('.').map_or("", |dot| &name[..dot]);
    }
    if !run.is_empty() && !found.unknown.iter().any(|u| u == run) {
        found.unknown.push(run.to_owned());
    }
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Mentions {
        let names = ["claude", "gpt-5.1", "codex"].map(|n| SeatName::new(n).unwrap());
        mentions(text, &names.iter().collect::<Vec<_>>())
    }

    #[test]
    fn names_are_found_where_people_write_them() {
        for (text, seats) in [
            ("@claude what do you think?", vec!["claude"]),
            (
                "ask @codex, then @claude. And @codex again",
                vec!["codex", "claude"],
            ),
            ("(@gpt-5.1.)", vec!["gpt-5.1"]),
            ("@Claude: hello", vec!["claude"]),
            ("@claude.It is so", vec!["claude"]),
            (
                "mail a@claude.com or `@codex` \n```\n@claude\n```\n",
                vec![],
            ),
            ("@claude-code is another", vec![]),
        ] {
            let found: Vec<_> = read(text).seats.iter().map(ToString::to_string).collect();
            assert_eq!(found, seats, "{text:?}");
        }
        assert!(read("hey @all").all);
        assert_eq!(read("@king @media @cluade").unknown, ["media", "cluade"]);
    }

    #[test]
    fn a_near_miss_finds_its_name_and_a_far_word_none() {
        let names = ["claude", "codex"].map(|n| SeatName::new(n).unwrap());
        let known: Vec<_> = names.iter().collect();
        assert_eq!(nearest("cluade", &known), Some(&names[0]));
        assert_eq!(nearest("media", &known), None);
    }
}
