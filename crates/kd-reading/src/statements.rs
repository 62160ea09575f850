//! Labelled statements: `Answer: 391`, `### Recommendation`, `So the answer is B`, `\boxed{4}`, and the combined result
//! of several.

use super::answer_labels::{LABELS, Taken};
use super::folded::Folded;
use super::language::is_han;
use super::plain::{bare, braced, plain_latex, undecorated};

/// Words that join a label to its answer if there is no colon.
pub(super) const COPULAS: &[&str] = &[
    " is ", " ist ", " lautet ", " est ", " es ", "是", "为", " = ", " → ", " -> ", " – ", " — ",
];

/// Returns the rest of the last labelled line, by which open answers are compared.
pub fn labelled_text(text: &str) -> Option<String> {
    match labelled(&stated(text), |line| match bare(line) {
        line if line.is_empty() => Taken::None,
        line => Taken::One(line),
    }) {
        Taken::One(line) => Some(line),
        _ => None,
    }
}

/// A labelled statement.
pub(super) struct Stated {
    pub(super) text: String,
    pub(super) is_final: bool,
    /// Index of the line on which it ends.
    pub(super) line: usize,
}

/// Returns the labelled statements of a text, in order.
pub(super) fn stated(text: &str) -> Vec<Stated> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(text) = super::ticks::labelled_row(line) {
            let is_final = line.to_lowercase().contains("final");
            let line = at;
            found.push(Stated {
                text,
                is_final,
                line,
            });
            continue;
        }
        if let Some((_, rest)) = line.split_once("\\boxed") {
            let inner = braced(rest);
            found.push(Stated {
                text: plain_latex(&inner),
                is_final: true,
                line: at,
            });
            continue;
        }
        if let Some(rest) = line.trim().strip_prefix("####")
            && !rest.trim().is_empty()
            && rest.trim().len() <= 60
            && split_label(rest).is_none()
        {
            found.push(Stated {
                text: rest.trim().to_owned(),
                is_final: true,
                line: at,
            });
            continue;
        }
        let clean = undecorated(line);
        let titled = || heading_label(line).map(|is_final| (String::new(), is_final));
        let Some((rest, is_final)) = split_label(&clean)
            .or_else(titled)
            .or_else(|| announced(&clean))
        else {
            continue;
        };
        let rest = rest.trim();
        let mut text = rest.to_owned();
        if bare(rest).is_empty() {
            let next = lines[at + 1..]
                .iter()
                .find(|l| !bare(l).is_empty() && !l.trim().starts_with("```"));
            text = next.map(|l| undecorated(l)).unwrap_or_default();
            if text.contains("\\boxed") {
                continue;
            }
        }
        if !text.is_empty() {
            found.push(Stated {
                text,
                is_final,
                line: at,
            });
        }
    }
    found
}

/// Returns the statement after a label at the beginning of a line, and whether it is final.
pub(super) fn split_label(line: &str) -> Option<(String, bool)> {
    label_of(line).or_else(|| {
        const ARTICLES: &[&str] = &[
            "the ",
            "my ",
            "our ",
            "so the ",
            "thus the ",
            "die ",
            "das ",
            "mein ",
            "meine ",
            "unser ",
            "unsere ",
            "la ",
            "le ",
            "el ",
            "ma ",
            "mon ",
            "notre ",
            "mi ",
            "nuestra ",
            "nuestro ",
            "我的",
        ];
        let folded = Folded::new(line);
        label_of(ARTICLES.iter().find_map(|a| folded.strip_prefix(a))?)
    })
}

/// Returns whether a line is a heading that is a label: `### Recommendation`. The value tells whether it is final.
pub(super) fn heading_label(line: &str) -> Option<bool> {
    let line = line.trim();
    let is_heading = line.starts_with('#') || line.starts_with("**") && line.ends_with("**");
    let title = bare(line);
    let title = title.trim_start_matches(|c: char| !c.is_alphabetic());
    if !is_heading || title.len() > 60 {
        return None;
    }
    let title = title.to_lowercase();
    let label = LABELS.iter().find(|(label, _)| *label == title)?;
    Some(label.1)
}

pub(super) fn label_of(line: &str) -> Option<(String, bool)> {
    let folded = Folded::new(line);
    let mut best: Option<(usize, &str, bool)> = None;
    for (label, is_final) in LABELS {
        let Some(after) = folded.strip_prefix(label) else {
            continue;
        };
        let tail = after.trim_start_matches(['*', '_', '`']);
        // `My recommendation? Valencia.`
        let marks: &[char] = &[':', '：', '=', '→', '?', '？'];
        let answers = |rest: &&str| rest.chars().any(char::is_alphanumeric);
        let asked = tail.trim_start().starts_with(['?', '？']);
        let rest = tail.trim_start().strip_prefix(marks);
        let rest = match rest.filter(|rest| !asked || answers(rest)) {
            Some(rest) => Some(rest),
            None if behind_topic(tail).is_some() => behind_topic(tail),
            None => {
                let tail = Folded::new(tail);
                COPULAS.iter().find_map(|c| tail.strip_prefix(c))
            }
        };
        if let Some(rest) = rest
            && best.is_none_or(|(length, ..)| label.len() > length)
        {
            best = Some((label.len(), rest, *is_final));
        }
    }
    let (_, rest, is_final) = best?;
    Some((
        rest.trim_start_matches([':', '：', '*', ' ']).to_owned(),
        is_final,
    ))
}

/// Returns the text behind the topic of a label and its colon: ` on adopting it: yes`.
fn behind_topic(tail: &str) -> Option<&str> {
    const TOPICS: [&str; 9] = [
        "on ",
        "for ",
        "zu ",
        "zur ",
        "zum ",
        "sur ",
        "sobre ",
        "about ",
        "regarding ",
    ];
    const WORDS_MAX: usize = 7;
    let bare = tail.strip_prefix(' ')?;
    let (topic, rest) = bare.split_once([':', '：'])?;
    let named = TOPICS.iter().any(|word| topic.starts_with(word));
    let short = topic.split_whitespace().count() <= WORDS_MAX && !topic.contains(['.', '!', '?']);
    (named && short && rest.chars().any(char::is_alphanumeric)).then_some(rest)
}

/// Parses "So the answer is B", "thus my final answer: 391" within a line.
pub(super) fn announced(line: &str) -> Option<(String, bool)> {
    let folded = Folded::new(line);
    let mut best: Option<(usize, &str)> = None;
    for words in [
        "final answer",
        "the answer",
        "my answer",
        "correct answer",
        "die antwort",
        "das ergebnis",
        "la réponse",
        "le résultat",
        "la respuesta",
        "el resultado",
        "答案",
        "the result",
        "meine antwort",
        "answer:",
        "antwort:",
        "réponse :",
        "respuesta:",
        "correct option",
        "correct choice",
        "my verdict",
        "my conclusion",
        "my recommendation",
        "my vote",
        "my pick",
        "my choice",
        "my decision",
        "mein fazit",
        "mein urteil",
        "meine empfehlung",
        "meine wahl",
        "meine entscheidung",
        "meine stimme",
        "ma réponse",
        "ma conclusion",
        "ma recommandation",
        "mon choix",
        "mon vote",
        "mon verdict",
        "mi respuesta",
        "mi conclusión",
        "mi recomendación",
        "mi elección",
        "mi voto",
        "mi veredicto",
        "我的选择",
        "我的建议",
        "我的判断",
        "我的回答",
        "结论",
    ] {
        if let Some(at) = folded.rfind(words).map(|at| at.start)
            && best.is_none_or(|(b, w)| at > b || at == b && words.len() > w.len())
        {
            best = Some((at, words));
        }
    }
    let (at, words) = best?;
    // A letter before it makes it another word.
    if line
        .get(..at)?
        .chars()
        .next_back()
        .is_some_and(|c| c.is_alphabetic() && !is_han(c))
    {
        return None;
    }
    // A longer answer explains the short one.
    const LONGER: &[&str] = &[
        "longer", "long", "detailed", "längere", "lange", "longue", "larga",
    ];
    let last = line.get(..at)?.split_whitespace().next_back();
    let last = last.unwrap_or_default().to_lowercase();
    if LONGER.contains(&last.trim_matches(['*', '#'])) {
        return None;
    }
    let rest = line.get(at..)?;
    // `Is this the answer? No.`: a question.
    let opens = line.get(..at)?.trim_end().is_empty()
        || line
            .get(..at)?
            .trim_end()
            .ends_with(|c: char| "¿.!?。！？:：;*".contains(c));
    let behind = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c.is_whitespace());
    if !opens && behind.starts_with(['?', '？']) {
        return None;
    }
    let (said, is_final) = split_label(rest)?;
    let negated = said.to_lowercase();
    if ["not ", "nicht ", "pas ", "no ", "不"]
        .iter()
        .any(|n| negated.starts_with(n))
        && negated.len() > 4
        // `My conclusion is: not before May.`
        && !rest
            .strip_suffix(said.as_str())
            .is_some_and(|label| label.contains([':', '：']))
    {
        return None;
    }
    Some((said, is_final || words.starts_with("final")))
}

/// Combines all labelled statements: final ones take precedence, later ones over earlier ones.
pub(super) fn labelled<T: PartialEq>(
    stated: &[Stated],
    read: impl Fn(&str) -> Taken<T>,
) -> Taken<T> {
    let mut unread_final = false;
    for finals in [true, false] {
        let mut last = Taken::None;
        for one in stated.iter().filter(|s| s.is_final == finals) {
            match read(&one.text) {
                Taken::None => unread_final |= finals,
                taken => last = taken,
            }
        }
        if !matches!(last, Taken::None) {
            // An unreadable final answer is not replaced by an earlier one.
            return if unread_final && !finals {
                Taken::Several
            } else {
                last
            };
        }
    }
    Taken::None
}
