//! Options in lists that are ticked, pointed at, called right or wrong, or ranked first.

use super::answer_labels::Taken;
use super::language::is_han;
use super::options::Options;
use super::plain::undecorated;

/// Returns the one option of a list that is ticked, or called right while the others are called wrong.
pub(super) fn marked_line(text: &str, options: &Options) -> Taken<usize> {
    const GOOD: &[&str] = &[
        "[x]",
        "☑",
        "✅",
        "✓",
        "✔",
        "right",
        "correct",
        "true",
        "best",
        "winner",
        "richtig",
        "korrekt",
        "stimmt",
        "exact",
        "juste",
        "vrai",
        "correcto",
        "correcta",
        "verdadero",
        "正确",
        "对",
    ];
    const BAD: &[&str] = &[
        "[ ]",
        "☐",
        "❌",
        "✗",
        "✘",
        "wrong",
        "incorrect",
        "false",
        "not correct",
        "not right",
        "falsch",
        "nicht richtig",
        "inkorrekt",
        "faux",
        "incorrecto",
        "incorrecta",
        "falso",
        "falsa",
        "错误",
        "不正确",
        "不对",
        "错",
    ];
    let pointed: Vec<&str> = text
        .lines()
        .filter(|line| {
            ["<-", "←", "👈", "⬅", "(this one)"]
                .iter()
                .any(|mark| line.contains(mark))
        })
        .collect();
    if let [line] = pointed.as_slice()
        && let [first, rest @ ..] = options.mentions(line).as_slice()
        && rest.iter().all(|m| m.item == first.item)
    {
        return Taken::One(first.item);
    }
    let (mut good, mut bad, mut plain) = (Vec::new(), Vec::new(), 0);
    for line in text
        .lines()
        .filter(|l| l.trim().len() > 2 && l.len() <= 300)
    {
        let mut named: Vec<usize> = options
            .mentions(&undecorated(line))
            .iter()
            .map(|m| m.item)
            .collect();
        named.dedup();
        let [item] = named.as_slice() else { continue };
        let lower = line.to_lowercase();
        let has = |marks: &[&str]| {
            marks.iter().any(|mark| {
                let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphabetic() || is_han(c));
                lower.match_indices(mark).any(|(at, _)| {
                    edge(lower[..at].chars().next_back())
                        && edge(lower[at + mark.len()..].chars().next())
                })
            })
        };
        match (has(BAD), has(GOOD)) {
            (true, _) => bad.push(*item),
            (false, true) => good.push(*item),
            (false, false) => plain += 1,
        }
    }
    good.dedup();
    match (good.as_slice(), bad.is_empty(), plain) {
        ([one], false, 0) if !bad.contains(one) => Taken::One(*one),
        ([_, _, ..], false, 0) => Taken::Several,
        _ => Taken::None,
    }
}
