//! Hides names of members, models and vendors in texts for other members.

use super::plan::{READING, TAGGED};
use super::standins::StandIns;
use crate::borders;
use crate::models::{self, FAMILIES, Family};
use crate::roster::Member;
use std::ops::Range;

/// Names of fewer characters are likely words: `a`, `it`.
const NAME_CHARS_MIN: usize = 3;

/// The names to hide. Those in the text that all members read stay: they are its subject.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Names of members and models, and display names, the longest first.
    members: Vec<String>,
    families: Vec<&'static Family>,
    /// Vendors and their assistants.
    vendors: Vec<&'static str>,
    /// The text that all members read, in lower case.
    subject: String,
    /// Which version of the rules for reading applies.
    reading: u32,
}

impl Names {
    /// Collects the names of members and of their display names.
    pub(crate) fn of<'m>(
        reading: u32,
        members: impl Iterator<Item = (&'m Member, Option<&'m str>)> + Clone,
        subject: &str,
    ) -> Self {
        let has = |text: &str, name: &str, goes: &dyn Fn(&str, Range<usize>) -> bool| {
            has(borders_of(reading), text, name, goes)
        };
        let families = families(members.clone().map(|(member, _)| member));
        let lower = subject.to_lowercase();
        let mut names = names(members);
        names.retain(|name| {
            // A change to review can have megabytes.
            let may = lower.contains(&name.to_lowercase());
            (reading >= TAGGED || !is_short(name))
                && (!may || !has(subject, name, &|text, at| is_meant(name, text, at)))
        });
        let vendors = families
            .iter()
            .flat_map(|family| family.also.iter().copied().chain([family.vendor]));
        Self {
            members: names.into_iter().map(str::to_owned).collect(),
            vendors: vendors
                .filter(|name| !has(&lower, name, &|_, _| true))
                .collect(),
            families,
            subject: lower,
            reading,
        }
    }

    /// Replaces the names in a text by stand-ins.
    pub(crate) fn hide(&self, text: &str, stand_ins: &StandIns) -> String {
        let mark = |name: &str| stand_ins.mark(name);
        let borders = borders_of(self.reading);
        let mut text = text.to_owned();
        for name in &self.members {
            text = replace_between(&text, name, borders, mark, |text, at| {
                is_meant(name, text, at)
            });
        }
        for family in &self.families {
            text = family.without_models(&text, &self.subject, borders, mark);
        }
        for name in &self.vendors {
            text = replace_between(&text, name, borders, mark, |text, at| is_capital(&text[at]));
        }
        stand_ins.shown(&text)
    }
}

/// The names to hide, and their stand-ins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hidden {
    names: Names,
    stand_ins: StandIns,
}

impl Hidden {
    /// Hides names of members, models and vendors that the text that all read does not contain.
    pub(crate) fn of(members: &[Member], subject: &str, seed: u64) -> Self {
        Self {
            names: Names::of(
                READING,
                members.iter().map(|member| (member, None)),
                subject,
            ),
            stand_ins: StandIns::new(seed, subject),
        }
    }

    /// Replaces the names in a text by stand-ins.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.names.hide(text, &self.stand_ins)
    }
}

/// Puts back the names behind the stand-ins that a member saw.
pub(super) fn named(reading: u32, stand_ins: &[(String, String)], text: &str) -> String {
    let mut text = text.to_owned();
    for (shown, name) in stand_ins {
        let by = |_: &str| name.clone();
        text = replace_between(&text, shown, borders_of(reading), by, |_, _| true);
    }
    text
}

/// Returns the names of members and models, and chosen display names, the longest first.
pub(super) fn names<'m>(
    members: impl Iterator<Item = (&'m Member, Option<&'m str>)>,
) -> Vec<&'m str> {
    let mut names: Vec<&str> = Vec::new();
    for (member, shown) in members {
        names.push(member.name.as_str());
        names.extend(member.model.as_deref());
        names.extend(shown);
    }
    names.sort_by_key(|name| (std::cmp::Reverse(name.len()), *name));
    names.dedup();
    names
}

/// Returns the families of the members' vendors.
pub(super) fn families<'m>(members: impl Iterator<Item = &'m Member>) -> Vec<&'static Family> {
    let mut seen: Vec<&str> = Vec::new();
    let mut out = Vec::new();
    for member in members {
        let vendor = models::vendor(&member.backend, member.model.as_deref());
        if let Some(vendor) = vendor.filter(|vendor| !seen.contains(vendor)) {
            seen.push(vendor);
            out.extend(FAMILIES.iter().filter(|f| f.vendor == vendor));
        }
    }
    out
}

/// Returns whether a name is too short to be distinguished from a word.
pub(super) fn is_short(name: &str) -> bool {
    name.chars().count() < NAME_CHARS_MIN
}

/// Returns whether a name in a text is meant as a name. A short one is if it is written as it is, and as `@x`, `x:` or in
/// quotes.
fn is_meant(name: &str, text: &str, at: Range<usize>) -> bool {
    if !is_short(name) {
        return true;
    }
    let before = text[..at.start].chars().next_back();
    let after = text[at.end..].trim_start_matches('*').chars().next();
    let quotes = |c: Option<char>| c.is_some_and(|c| "\"'`“”„‘’‚«»‹›「」『』《》".contains(c));
    let is_addressed = before == Some('@') || matches!(after, Some(':' | '：'));
    text[at] == *name && (is_addressed || quotes(before) && quotes(after))
}

/// Returns whether a name is capitalized: `meta` is a word, `Meta` a vendor.
pub(super) fn is_capital(word: &str) -> bool {
    word.chars().any(char::is_uppercase)
}

/// Returns the borders between which names are found by this version of the rules.
pub(super) fn borders_of(reading: u32) -> borders::Borders {
    match reading < TAGGED {
        true => borders::of_words,
        false => borders::of_scripts,
    }
}

/// Returns whether a text has a name between borders, ignoring case.
fn has(
    borders: borders::Borders,
    text: &str,
    name: &str,
    goes: impl Fn(&str, Range<usize>) -> bool,
) -> bool {
    let found = std::cell::Cell::new(false);
    let note = |_: &str| {
        found.set(true);
        String::new()
    };
    replace_between(text, name, borders, note, goes);
    found.get()
}

/// Replaces a name between borders, ignoring case.
pub(super) fn replace_between(
    text: &str,
    name: &str,
    borders: borders::Borders,
    by: impl Fn(&str) -> String,
    goes: impl Fn(&str, Range<usize>) -> bool,
) -> String {
    let lower_text = text.to_ascii_lowercase();
    let lower = name.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in lower_text.match_indices(&lower) {
        let end = at + lower.len();
        let (first, last) = (name.chars().next(), name.chars().next_back());
        if at < from
            || !borders(first, text[..at].chars().next_back())
            || !borders(last, text[end..].chars().next())
            || !goes(text, at..end)
        {
            continue;
        }
        out.push_str(&text[from..at]);
        out.push_str(&by(&text[at..end]));
        from = end;
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SeatName;

    fn hidden(names: &[(&str, Option<&str>)], subject: &str, text: &str) -> String {
        let members: Vec<Member> = names
            .iter()
            .map(|(name, model)| Member {
                model: model.map(str::to_owned),
                ..Member::new(SeatName::new(*name).unwrap(), "openai")
            })
            .collect();
        Hidden::of(&members, subject, 1).hide(text)
    }

    #[test]
    fn short_names_are_hidden_only_where_they_are_meant() {
        for (text, is_hidden) in [
            ("@it said so", true),
            ("it: I agree", true),
            ("**it:** I agree", true),
            ("**it**: I agree", true),
            ("it：同意", true),
            ("as “it” wrote", true),
            ("member `it` is right", true),
            ("同意「it」的看法", true),
            ("it is right", false),
            ("as it wrote", false),
            ("@item said so", false),
            ("wait: no", false),
            ("It: what remains", false),
            ("\"it is\"", false),
        ] {
            let said = hidden(&[("it", None)], "Why?", text);
            assert_eq!(said != text, is_hidden, "{text}: {said}");
            assert_eq!(
                said.contains("member"),
                is_hidden || text.contains("member")
            );
        }
        // The label of an answer is not a name.
        assert_eq!(
            hidden(&[("a", None)], "Why?", "A: no. Answer A."),
            "A: no. Answer A."
        );
        assert_eq!(
            hidden(&[("it", None)], "Is @it right?", "it: yes"),
            "it: yes"
        );
        assert_ne!(
            hidden(&[("it", None)], "Is it right?", "it: yes"),
            "it: yes"
        );
    }

    #[test]
    fn names_beside_scripts_without_spaces_are_hidden() {
        let council = [("claude", None), ("小明", None), ("big", Some("gpt-5"))];
        for text in [
            "我同意claude的看法",
            "claudeさんに賛成です",
            "claude는 옳다",
            "ตามclaudeกล่าว",
            "我是GPT-5模型",
            "我是gpt-5。",
            "「小明」说得对",
            "OpenAIの答え",
        ] {
            let said = hidden(&council, "为什么?", text);
            assert!(said.contains("member "), "{text}: {said}");
            for name in ["laude", "gpt", "GPT", "小明", "OpenAI"] {
                assert!(!said.contains(name), "{text}: {said}");
            }
        }
        // Two characters are also a word: 大家 is a name, and “everybody”.
        assert_eq!(hidden(&[("大家", None)], "为什么?", "大家都对"), "大家都对");
        for kept in ["claudette", "eclaude", "claude5", "claude_x", "éclaude"] {
            assert_eq!(hidden(&council, "Why?", kept), kept);
        }
        let asked = "Claude和Codex哪个好?";
        assert_eq!(hidden(&council, asked, "选claude吧"), "选claude吧");
    }

    #[test]
    fn names_come_back_beside_any_script() {
        let stand_ins = [("member P".to_owned(), "claude".to_owned())];
        assert_eq!(
            named(READING, &stand_ins, "我同意member P的看法"),
            "我同意claude的看法"
        );
        assert_eq!(
            named(READING, &stand_ins, "member P2, Member P"),
            "member P2, claude"
        );
    }
}
