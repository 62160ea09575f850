//! Numbers and lists of the documentation must be those of the tables in the code.

use super::page::root;

/// Places where a number next to a noun of [`counts`] counts other things, and the name of these things.
const OTHER_COUNTS: [(&str, &str); 2] = [
    ("in three roles", "the roles that the first question offers"),
    ("five members, five rules", "the rules of a benchmark"),
];
/// Number words, from 0.
const NUMBERS: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen \
                       sixteen seventeen eighteen nineteen twenty";

/// Returns the nouns that documentation counts, each with the number of rows in its table.
fn counts() -> Vec<(&'static str, usize)> {
    let words = |key: &str| {
        let key = kd_core::config::KEYS.iter().find(|row| row.path == key);
        match key.map(|row| row.kind) {
            Some(kd_core::config::Kind::OneOf(words)) => words.len(),
            other => panic!("{other:?}"),
        }
    };
    let shells = <clap_complete::Shell as clap::ValueEnum>::value_variants();
    vec![
        ("rules", kd_vote::RULES.len()),
        ("roles", kd_core::roles::ROLES.len()),
        (
            "protocols",
            kd_core::deliberation::protocols::PROTOCOLS.len(),
        ),
        ("schedulers", kd_forum::schedulers::SCHEDULERS.len()),
        ("modes", words("council.mode")),
        ("strategies", words("deliberation.iteration.strategy")),
        ("shells", shells.len()),
    ]
}

/// Reads a number in digits or words.
fn number(word: &str) -> Option<usize> {
    let word = word.to_lowercase();
    let named = NUMBERS.split(' ').position(|name| name == word);
    word.parse().ok().or(named)
}

/// Returns the numbers in a text that precede a noun, or an adjective and a noun: the text around them,
/// the number, and the noun's place in `nouns`.
fn counted(text: &str, nouns: &[&str]) -> Vec<(String, usize, usize)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare = |word: &str| {
        let start = word.trim_start_matches(['(', '*', '[', '"', '_']);
        start.split(']').next().unwrap().to_owned()
    };
    // A word that ends a phrase, such as "rules," or "rules:", cannot come before a noun.
    let ends = |word: &str| word.ends_with([',', '.', ':', ';', ')', '|']);
    let noun = |word: Option<&&str>| {
        let word = bare(word?);
        let word = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        nouns.iter().position(|noun| *noun == word)
    };
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(number) = number(&bare(word)) else {
            continue;
        };
        let second = words.get(at + 1).filter(|word| !ends(word));
        let second = second.and_then(|_| noun(words.get(at + 2)));
        if let Some(noun) = noun(words.get(at + 1)).or(second) {
            let around = words[at.saturating_sub(3)..words.len().min(at + 4)].join(" ");
            found.push((around, number, noun));
        }
    }
    found
}

#[test]
fn counts_in_the_documentation_are_those_of_the_tables() {
    let counts = counts();
    let nouns: Vec<&str> = counts.iter().map(|(noun, _)| *noun).collect();
    let mut pages = Vec::new();
    for folder in ["", "docs", "docs/adr", "benches", "examples"] {
        let files = std::fs::read_dir(root().join(folder)).unwrap();
        pages.extend(files.map(|file| file.unwrap().path()));
    }
    pages.retain(|page| page.extension().is_some_and(|e| e == "md"));
    let (mut seen, mut wrong) = (vec![0; nouns.len()], Vec::new());
    for page in pages {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&page).unwrap();
        // Counts of released versions stay as they were.
        let text = match text.match_indices("\n## ").nth(1) {
            Some((end, _)) if name == "CHANGELOG.md" => &text[..end],
            _ => &text,
        };
        for (around, number, noun) in counted(text, &nouns) {
            if OTHER_COUNTS.iter().any(|(part, _)| around.contains(part)) {
                continue;
            }
            seen[noun] += 1;
            let (noun, rows) = counts[noun];
            if number != rows {
                wrong.push(format!("{name}: “{around}”: there are {rows} {noun}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (noun, seen) in nouns.iter().zip(seen) {
        assert!(seen > 0, "no page counts {noun}: remove the row");
    }
}

#[test]
fn lists_in_the_documentation_name_every_row_of_the_tables() {
    let page = |name: &str| std::fs::read_to_string(root().join("docs").join(name)).unwrap();
    let deliberation = page("deliberation.md");
    let (_, roles) = deliberation.split_once("## Your own roles").unwrap();
    let (forum, voting) = (page("forum.md"), page("voting.md"));
    for role in kd_core::roles::ROLES {
        assert!(roles.contains(role.name), "{}", role.name);
    }
    for protocol in kd_core::deliberation::protocols::PROTOCOLS {
        let row = format!("\n| {} |", protocol.name);
        assert!(deliberation.contains(&row), "{}", protocol.name);
    }
    for preset in kd_core::planner::presets::PRESETS {
        let row = deliberation
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", preset.name)));
        let row = row.unwrap_or_else(|| panic!("{}", preset.name));
        assert!(row.ends_with(&format!("| {} |", preset.voting)), "{row}");
        for role in preset.roles {
            assert!(row.contains(role), "{role}: {row}");
        }
    }
    for scheduler in kd_forum::schedulers::SCHEDULERS {
        let name = format!("`{}`", scheduler.name);
        assert!(forum.contains(&name), "{name}");
    }
    for rule in kd_vote::RULES {
        assert!(
            voting.contains(&format!("\n**{}**: {}", rule.name, rule.doc)),
            "{}",
            rule.name
        );
    }
}

#[test]
fn every_slash_command_has_a_row_in_the_page_of_the_chat() {
    let text = std::fs::read_to_string(root().join("docs/chat.md")).unwrap();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| `/"))
        .collect();
    for command in kd_core::slash::COMMANDS {
        // `/mode` is not a row for `/model`.
        let named = |row: &&str| {
            row.split('`')
                .any(|code| code.split([' ', '/']).nth(1) == Some(command.name))
        };
        assert!(
            rows.iter().any(named),
            "docs/chat.md lacks /{}",
            command.name
        );
    }
}

#[test]
fn counts_are_found_in_digits_and_words_before_a_noun() {
    let found = |text: &str| -> Vec<usize> {
        let found = counted(text, &["rules", "roles"]);
        found.into_iter().map(|(_, number, _)| number).collect()
    };
    assert_eq!(
        found("in any of eleven\n[roles](a.md). Under 43 of 53 rules;"),
        [11, 53]
    );
    assert_eq!(found("| 53 voting rules, counted"), [53]);
    assert!(found("of two, rules; three of the rules; no rules; 7 wins: rules").is_empty());
}
