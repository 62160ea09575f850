//! Removes from a chair's text the passages that it copied from its instructions.

use crate::deliberation::plan::{Plan, STATED};

/// The chair's task.
pub(in crate::deliberation) const TASK: &str =
    "Conclude for the council; add no opinion of your own";

/// The fields that the chair is asked for, with their descriptions. The labels follow the last one.
pub(super) const FIELDS: [(&str, &str); 5] = [
    ("recommendation", "what to do or believe, first"),
    ("consensus", "what the answers share"),
    ("support", "the strongest reasons"),
    ("dissent", "what the others hold, or \"none\""),
    ("cites", "the labels it rests on, of"),
];

/// Removes parts that the chair copied from its instructions: fence markers, the task, its name and role, a lone label.
/// Small models do that.
pub(super) fn own_words(told: Option<&Told>, text: &str) -> String {
    let bare;
    let text = match told.is_some_and(|told| told.fields) {
        true => {
            bare = without_fields(text);
            bare.as_str()
        }
        false => text,
    };
    let lines = text.lines().filter(|line| !is_fence_line(told, line));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if let Some(told) = told {
        text = told.without_role(&text);
    }
    let instructions = [
        TASK,
        "Reply with JSON",
        "what to do or believe, first",
        "Between the lines marked",
    ];
    // Copied sentences come first, if at all.
    while let Some(rest) = instructions.iter().find_map(|ours| {
        let trimmed = text.trim_start_matches(|c: char| !c.is_alphanumeric());
        let begins = trimmed
            .get(..ours.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(ours));
        begins.then(|| after_sentence(&trimmed[ours.len()..]).to_owned())
    }) {
        text = rest;
    }
    let says_something = text
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| word.len() > 1 && !is_mark(told, word) && !word.eq_ignore_ascii_case("answer"));
    let is_number = text.trim().parse::<f64>().is_ok();
    match says_something || is_number {
        true => text.trim().to_owned(),
        false => String::new(),
    }
}

/// The members' names and roles as their prompts state them, as [`plain`] words. `None` for records made before
/// conclusions were compared with them.
pub(super) struct Told {
    names: Vec<String>,
    roles: Vec<String>,
    /// Whether copies of the list of fields are removed.
    fields: bool,
}

impl Told {
    pub(super) fn of(plan: &Plan) -> Self {
        let seats = plan.seats.iter();
        Self {
            names: seats
                .clone()
                .map(|seat| plain(seat.name().as_str()))
                .collect(),
            roles: seats.map(|seat| plain(&seat.member.persona)).collect(),
            fields: plan.writing >= STATED,
        }
    }

    /// Returns whether a sentence tells a member its role.
    fn is_role(&self, sentence: &str) -> bool {
        let said = plain(sentence);
        let is_name = said.strip_prefix("you are ").is_some_and(|who| {
            let who = who.strip_prefix("the ").unwrap_or(who);
            let rest = self
                .names
                .iter()
                .filter_map(|name| who.strip_prefix(name.as_str()));
            rest.into_iter()
                .any(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        is_name || said.split(' ').count() > 3 && self.roles.iter().any(|role| role.contains(&said))
    }

    /// Removes such sentences from the beginning of a text.
    fn without_role(&self, text: &str) -> String {
        let bare = |text: &str| text.find(char::is_alphanumeric).unwrap_or(text.len());
        let mut from = 0;
        loop {
            let start = from + bare(&text[from..]);
            let rest = &text[start..];
            let end = rest.find(['.', '!', '?', '\n', '。']).unwrap_or(rest.len());
            if rest.is_empty() || !self.is_role(&rest[..end]) {
                // The text before the first original sentence may be its list mark or emphasis.
                let before = if from == 0 { 0 } else { start };
                return text[before..].to_owned();
            }
            from = start + end;
        }
    }
}

/// Returns the words of a text in lower case, with single spaces.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join(" ")
}

/// Returns the text after the end of a sentence.
fn after_sentence(text: &str) -> &str {
    let end = text.find(['.', '!', '?', '\n', ':', ')']);
    end.map_or("", |at| &text[at + 1..])
}

/// Returns whether a line begins or ends a fence.
fn is_fence_line(told: Option<&Told>, line: &str) -> bool {
    let line = line.trim();
    let mark = line
        .strip_prefix("<<")
        .map(|l| l.split(' ').next().unwrap_or(l));
    mark.or(line.strip_suffix(">>"))
        .is_some_and(|mark| is_mark(told, mark))
}

/// Returns whether a word is a fence marker as made by [`blind::nonce`], or nearly.
fn is_mark(told: Option<&Told>, word: &str) -> bool {
    // Some models write it in capitals.
    let loud = told.is_some();
    (11..=14).contains(&word.len())
        && word.bytes().all(|b| {
            b.is_ascii_digit() || (b'a'..=b'f').contains(&b) || loud && (b'A'..=b'F').contains(&b)
        })
        && word.bytes().any(|b| b.is_ascii_digit())
}

/// Removes copies of the list of fields that the chair is asked for: `"recommendation" (what to do or believe, first)`.
fn without_fields(text: &str) -> String {
    let mut out = text.to_owned();
    for (name, what) in FIELDS {
        while let Some((start, end)) = field_in(&out, name, what) {
            out.replace_range(start..end, "");
        }
    }
    let is_name = |word: &str| FIELDS.iter().any(|(name, _)| *name == word);
    let joins = |word: &str| ["and", "reply", "with", "json", "none"].contains(&word);
    let left = plain(&out);
    // A list of nothing but names says nothing either.
    let is_list = left.split(' ').all(|word| is_name(word) || joins(word));
    let lists = out != text || left.split(' ').filter(|word| is_name(word)).count() > 1;
    match is_list && lists {
        true => String::new(),
        false => out,
    }
}

/// Returns the place of a field with its description, or of a text that is only the description.
fn field_in(text: &str, name: &str, what: &str) -> Option<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let at = lower.find(what)?;
    let is_mark = |c: char| c.is_whitespace() || "()\"'`*:-".contains(c);
    let before = lower[..at].trim_end_matches(is_mark);
    let start = match before.strip_suffix(name) {
        Some(rest) => rest.trim_end_matches(['"', '\'', '`', '*']).len(),
        None if plain(&lower) == plain(what) => 0,
        None => return None,
    };
    let rest = &text[at + what.len()..];
    // The labels after the last description.
    let listed = match name {
        "cites" => rest.find(')').map_or(0, |end| end + 1),
        _ => 0,
    };
    let rest = &rest[listed..];
    let ends = |c| ",;".contains(c) || c == '.' && name == "cites";
    let left = rest.trim_start_matches(|c| is_mark(c) || ends(c));
    Some((start, text.len() - left.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Told {
        Told {
            names: vec!["m1 synthesizer".into(), "ann".into()],
            roles: vec!["join what others said into one answer and name what is open".into()],
            fields: true,
        }
    }

    #[test]
    fn who_a_chair_is_told_to_be_is_no_conclusion() {
        for (said, own) in [
            ("You are m1-synthesizer.", ""),
            ("You are m1-synthesizer, a member of the council.", ""),
            ("You are the m1-synthesizer. Use SQLite.", "Use SQLite."),
            ("**You are ann.** Use SQLite.", "Use SQLite."),
            ("Join what others said into one answer.", ""),
            (
                "Join what others said into one answer and name what is open. Use **it**.",
                "Use **it**.",
            ),
            (
                "You are annoyed by locks: use SQLite.",
                "You are annoyed by locks: use SQLite.",
            ),
            (
                "You are right to ask. Use SQLite.",
                "You are right to ask. Use SQLite.",
            ),
            ("- Use SQLite.", "- Use SQLite."),
            ("ADAAB953EACB", ""),
            (
                "<<155003339AC5 Answer A\nUse SQLite.\n155003339AC5>>",
                "Use SQLite.",
            ),
            ("是的。", "是的。"),
        ] {
            assert_eq!(own_words(Some(&told()), said), own, "{said:?}");
        }
        // Records follow the rules of their time.
        assert_eq!(own_words(None, "You are ann."), "You are ann.");
    }

    #[test]
    fn what_a_chair_copied_from_its_instructions_is_no_conclusion() {
        for (said, own) in [
            ("adaab953eacbe", ""),
            ("155003339ac5", ""),
            (
                "<<155003339ac5 Answer A\nUse SQLite.\n155003339ac5>>",
                "Use SQLite.",
            ),
            ("A", ""),
            ("Answer B.", ""),
            ("Conclude for the council; add no opinion of your own.", ""),
            (
                "Conclude for the council; add no opinion of your own. Use SQLite.",
                "Use SQLite.",
            ),
            ("Reply with JSON: use SQLite.", "use SQLite."),
            (
                "Use commit 3f2a9c0d1e2f of the library.",
                "Use commit 3f2a9c0d1e2f of the library.",
            ),
            ("391", "391"),
            ("7", "7"),
            ("Use SQLite.", "Use SQLite."),
            ("Ja.", "Ja."),
            ("是的", "是的"),
        ] {
            assert_eq!(own_words(None, said), own, "{said:?}");
            assert_eq!(own_words(Some(&told()), said), own, "{said:?}");
        }
    }

    #[test]
    fn a_copy_of_the_list_of_fields_is_no_conclusion() {
        let list = "\"recommendation\" (what to do or believe, first), \"consensus\" (what the answers share), \"support\" (the strongest reasons), \"dissent\" (what the others hold, or \"none\"), \"cites\" (the labels it rests on, of A, B).";
        for (said, own) in [
            (list.to_owned(), ""),
            (format!("Reply with JSON: {list}"), ""),
            (format!("{list} Use SQLite."), "Use SQLite."),
            (format!("Use SQLite.\n\n{list}"), "Use SQLite."),
            (
                "**Recommendation** (what to do or believe, first): Use SQLite.".into(),
                "Use SQLite.",
            ),
            ("What the answers share".into(), ""),
            (
                "recommendation, consensus, support, dissent, cites".into(),
                "",
            ),
            (
                "The strongest reasons are its size and its age.".into(),
                "The strongest reasons are its size and its age.",
            ),
            (
                "My recommendation: reach a consensus.".into(),
                "My recommendation: reach a consensus.",
            ),
        ] {
            assert_eq!(own_words(Some(&told()), &said), own, "{said:?}");
        }
        // Records follow the rules of their time.
        let older = Told {
            fields: false,
            ..told()
        };
        assert_ne!(own_words(Some(&older), list), "");
    }
}
