//! Labelled statements: `Answer: 391`, `### Recommendation`, `So the answer is B`, `\boxed{4}`, and the combined result
//! of several.

use super::folded::Folded;
use super::language::is_han;
use super::plain::{bare, braced, is_about_confidence, plain_latex, undecorated};

/// Words that precede an answer, in the five languages; a colon, a dash or a copula follows. `true`: the label
/// announces a final answer, which takes precedence.
pub(super) const LABELS: &[(&str, bool)] = &[
    ("the figure you are looking for", false),
    ("the number you are looking for", false),
    ("the figure", false),
    ("altogether", false),
    ("all in all", false),
    ("die gesuchte zahl", false),
    ("gesuchte zahl", false),
    ("die zahl", false),
    ("zusammen", false),
    ("insgesamt", false),
    ("le nombre cherché", false),
    ("le chiffre cherché", false),
    ("en tout", false),
    ("au total", false),
    ("la cifra buscada", false),
    ("el número buscado", false),
    ("en total", false),
    ("要找的数", false),
    ("所求", false),
    ("解", false),
    ("归根结底", false),
    ("总之", false),
    ("综上", false),
    ("一共", false),
    ("总共", false),
    ("short version", false),
    ("in short", false),
    ("kurz", false),
    ("en bref", false),
    ("en resumen", false),
    ("en definitiva", false),
    ("简而言之", false),
    ("solución", false),
    ("la solución", false),
    ("la solution", false),
    ("解答", false),
    ("resposta", false),
    ("final answer", true),
    ("my final answer", true),
    ("the final answer", true),
    ("final estimate", true),
    ("final recommendation", true),
    ("final pick", true),
    ("kurze antwort", true),
    ("respuesta corta", true),
    ("最终投票", true),
    ("最终结论", true),
    ("final decision", true),
    ("final choice", true),
    ("final vote", true),
    ("final verdict", true),
    ("final result", true),
    ("final", true),
    ("endgültige antwort", true),
    ("die endgültige antwort", true),
    ("finale antwort", true),
    ("endergebnis", true),
    ("réponse finale", true),
    ("la réponse finale", true),
    ("ma réponse finale", true),
    ("respuesta final", true),
    ("la respuesta final", true),
    ("mi respuesta final", true),
    ("最终答案", true),
    ("最后答案", true),
    ("the answer", false),
    ("the correct answer", false),
    ("correct answer", false),
    ("the correct option", false),
    ("the correct choice", false),
    ("the best answer", false),
    ("the best option", false),
    ("the best choice", false),
    ("my answer", false),
    ("short answer", true),
    ("best answer", false),
    ("answer", false),
    ("ans", false),
    ("the result", false),
    ("result", false),
    ("solution", false),
    ("verdict", false),
    ("decision", false),
    ("my decision", false),
    ("my choice", false),
    ("choice", false),
    ("my vote", false),
    ("vote", false),
    ("ballot", false),
    ("selection", false),
    ("position", false),
    ("my position", false),
    ("conclusion", false),
    ("recommendation", false),
    ("my recommendation", false),
    ("tl;dr", false),
    ("die antwort", false),
    ("die richtige antwort", false),
    ("richtige antwort", false),
    ("meine antwort", false),
    ("kurze antwort", false),
    ("antwort", false),
    ("ergebnis", false),
    ("das ergebnis", false),
    ("lösung", false),
    ("die lösung", false),
    ("wahl", false),
    ("meine wahl", false),
    ("entscheidung", false),
    ("meine entscheidung", false),
    ("stimme", false),
    ("meine stimme", false),
    ("fazit", false),
    ("empfehlung", false),
    ("meine empfehlung", false),
    ("la réponse", false),
    ("la bonne réponse", false),
    ("ma réponse", false),
    ("réponse", false),
    ("résultat", false),
    ("le résultat", false),
    ("choix", false),
    ("mon choix", false),
    ("mon vote", false),
    ("décision", false),
    ("recommandation", false),
    ("la respuesta", false),
    ("la respuesta correcta", false),
    ("mi respuesta", false),
    ("respuesta", false),
    ("resultado", false),
    ("el resultado", false),
    ("elección", false),
    ("mi elección", false),
    ("mi voto", false),
    ("voto", false),
    ("decisión", false),
    ("conclusión", false),
    ("recomendación", false),
    ("正确答案", false),
    ("答案", false),
    ("答", false),
    ("结果", false),
    ("我的选择", false),
    ("选择", false),
    ("结论", false),
    ("我的答案", false),
    ("投票", false),
    ("bottom line", false),
    ("my pick", false),
    ("pick", false),
    ("winner", false),
    ("summary", false),
    ("total", false),
    ("sum", false),
    ("output", false),
    ("estimate", false),
    ("my estimate", false),
    ("best estimate", false),
    ("kurzantwort", true),
    ("kurzfassung", false),
    ("summe", false),
    ("gesamt", false),
    ("schätzung", false),
    ("zusammenfassung", false),
    ("réponse courte", true),
    ("résumé", false),
    ("estimation", false),
    ("verdict final", true),
    ("recommandation finale", true),
    ("respuesta corta", false),
    ("resumen", false),
    ("estimación", false),
    ("recomendación final", true),
    ("decisión final", true),
    ("final recommendation", true),
    ("finale empfehlung", true),
    ("回答", false),
    ("简短回答", true),
    ("最终结果", true),
    ("最终选择", true),
    ("最终结论", true),
    ("推荐", false),
    ("合计", false),
    ("mein fazit", false),
    ("urteil", false),
    ("mein urteil", false),
    ("ma conclusion", false),
    ("verdict final", true),
    ("avis", false),
    ("mon avis", false),
    ("mi conclusión", false),
    ("veredicto", false),
    ("我的结论", false),
    ("我的建议", false),
    ("我的推荐", false),
    ("我的判断", false),
    ("我的回答", false),
    ("判断", false),
    ("总计", false),
];

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

/// The result of one line or of all lines.
pub(super) enum Taken<T> {
    One(T),
    Several,
    None,
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

/// Returns whether words are a label: `Answer` or `Confidence`.
pub(super) fn is_label(words: &str) -> bool {
    let words = bare(words).to_lowercase();
    LABELS.iter().any(|(label, _)| *label == words)
        || is_about_confidence(&words)
        || super::cues::has(&words, super::cues::EXPLAINS)
}
