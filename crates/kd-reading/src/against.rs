//! Detects words near an option that reject it.

use super::language::is_han;
use super::words::{Stop, Word};

/// Words before an option that reject it, in the same clause.
pub(super) const AGAINST_BEFORE: &[&str] = &[
    "not",
    "isn't",
    "don't",
    "doesn't",
    "wouldn't",
    "can't",
    "cannot",
    "never",
    "against",
    "reject",
    "rejects",
    "avoid",
    "instead",
    "rather",
    "unlike",
    "except",
    "won't",
    "shouldn't",
    "rule",
    "ruled",
    "eliminate",
    "exclude",
    "dismiss",
    "skip",
    "neither",
    "nor",
    "without",
    "no",
    "nicht",
    "kein",
    "keine",
    "keinen",
    "gegen",
    "statt",
    "anstatt",
    "anstelle",
    "weder",
    "noch",
    "niemals",
    "nie",
    "ohne",
    "pas",
    "contre",
    "plutôt",
    "jamais",
    "ni",
    "lieu",
    "sans",
    "écarte",
    "en",
    "contra",
    "nunca",
    "vez",
    "lugar",
    "rechazo",
    "descarto",
    "sin",
    "不",
    "非",
    "别",
    "而不",
    "没",
    "反对",
    "不是",
    "不选",
    "排除",
    "drop",
    "ditch",
    "scrap",
    "forget",
    "discard",
    "vergiss",
    "vergesst",
    "oublie",
    "oubliez",
    "olvida",
    "olvide",
    "olvidad",
    "descarta",
    "éviterais",
    "j'éviterais",
    "écarterais",
    "j'écarterais",
    "exclurais",
    "j'exclurais",
    "evitaría",
    "descartaría",
    "excluiría",
    "meiden",
    "忘掉",
    "放弃",
];

/// Comparative phrases before an option: the second of the two options is rejected.
pub(super) const COMPARATIVE: &[&str] = &[
    "edges",
    "outclasses",
    "tops",
    "trumps",
    "outshines",
    "surpasses",
    "devance",
    "vence",
    "胜",
    "优",
    "outweighs",
    "superior",
    "than",
    "over",
    "als",
    "que",
    "比",
    "beats",
    "beat",
    "outperforms",
    "schlägt",
    "übertrifft",
    "surpasse",
    "supera",
];

/// Words after an option that reject it.
pub(super) const AGAINST_AFTER: &[&str] = &[
    "都不",
    "都太",
    "也不",
    "würde ich nicht",
    "kommt nicht in frage",
    "kommen nicht in frage",
    "is a close second",
    "is a distant second",
    "is second",
    "comes second",
    "is the runner-up",
    "is the runner up",
    "misses",
    "miss the point",
    "is wrong",
    "is incorrect",
    "is not",
    "isn't",
    "is false",
    "is worse",
    "is out",
    "fails",
    "falls short",
    "won't cut it",
    "se queda corto",
    "se queda corta",
    "se queda pequeñ",
    "no da para",
    "no puede",
    "ne peut pas",
    "ne tient pas",
    "kann das nicht",
    "kann es nicht",
    "stößt",
    "做不到",
    "are wrong",
    "can be ruled out",
    "is ruled out",
    "is rejected",
    "does not",
    "doesn't",
    "would not",
    "was wrong",
    "cannot",
    "can't",
    "is too",
    "is eliminated",
    "is tempting",
    "looks tempting",
    "seemed",
    "was my first",
    "looked",
    "is overkill",
    "is weaker",
    "lacks",
    "has flaws",
    "would be overkill",
    "would be too",
    "wäre zu",
    "serait trop",
    "sería demasiado",
    "ist falsch",
    "ist nicht",
    "scheidet aus",
    "nicht",
    "reicht nicht",
    "fällt aus",
    "ist schlechter",
    "stimmt nicht",
    "wäre falsch",
    "passt nicht",
    "ist zu",
    "ist keine",
    "ist ausgeschlossen",
    "est faux",
    "est fausse",
    "n'est pas",
    "est incorrect",
    "ne convient pas",
    "est exclu",
    "est moins",
    "est trop",
    "ne suffit pas",
    "es incorrecta",
    "es incorrecto",
    "no es",
    "es falso",
    "es falsa",
    "queda descartad",
    "no sirve",
    "es peor",
    "es demasiado",
    "no funciona",
    "no basta",
    "不对",
    "错",
    "不正确",
    "不行",
    "不合适",
    "不是",
    "是错",
    "不够",
    "太",
];

/// Returns whether the option at `at` is rejected.
pub(super) fn against(
    words: &[Word],
    at: usize,
    length: usize,
    taken: &[bool],
    not_first: bool,
) -> bool {
    // Before the option: the same clause, back to the previous option.
    let mut from = at;
    for back in 1..=5 {
        let Some(place) = at.checked_sub(back) else {
            break;
        };
        let word = &words[place];
        if word.stop != Stop::None
            || taken[place] && back > 1 && words[place].lower.chars().count() > 1
        {
            break;
        }
        if taken[place] {
            break;
        }
        from = place;
    }
    let before: Vec<&str> = words[from..at].iter().map(|w| w.lower.as_str()).collect();
    let joined = before.join(" ");
    for (place, word) in before.iter().enumerate() {
        let near = before.len() - place <= 5;
        let hit = (AGAINST_BEFORE.contains(word) || COMPARATIVE.contains(word))
            && match *word {
                // `比上海快`
                "比" if place + 1 == before.len() => true,
                // `不过我选成都`: however.
                "不" => !before
                    .get(place + 1)
                    .is_some_and(|next| ["过", "仅", "但", "论", "管"].contains(next)),
                w if COMPARATIVE.contains(&w) => not_first && before.len() - place <= 3,
                "en" | "lugar" | "vez" => {
                    joined.contains("en lugar de") || joined.contains("en vez de")
                }
                "lieu" => joined.contains("au lieu de"),
                "plutôt" => joined.contains("plutôt que"),
                "instead" => joined.contains("instead of"),
                "rather" => joined.contains("rather than"),
                "rule" | "ruled" => joined.contains("out"),
                "cannot" | "can't" => {
                    !followed(words, at + length, "highly enough")
                        && !joined.contains("go wrong")
                        && !joined.contains("beat")
                }
                "no" => {
                    !joined.contains("no better")
                        && !joined.contains("no doubt")
                        && !joined.contains("no question")
                        && before.len() - place <= 4
                }
                "not" => !joined.contains("not only") && !joined.contains("why not"),
                "without" | "ohne" | "sans" | "sin" => {
                    !["hésit", "zöger", "zu zög", "dud", "hesit", "question"]
                        .iter()
                        .any(|sure| joined.contains(sure))
                        && !joined.contains("without a doubt")
                        && !joined.contains("ohne zweifel")
                        && !joined.contains("sans doute")
                        && !joined.contains("sin duda")
                }
                _ => true,
            };
        if hit && near {
            return true;
        }
    }
    if [
        "anything but",
        "anyone but",
        "everything but",
        "all but",
        "everything except",
        "alles außer",
        "alles andere als",
        "tout sauf",
        "todo menos",
        "cualquiera menos",
        "cualquier cosa menos",
    ]
    .iter()
    .any(|words| joined.contains(words))
        || joined.replace(' ', "").ends_with("除了")
    {
        return true;
    }
    const UNLIKE: [&str; 9] = [
        "im gegensatz zu",
        "anders als",
        "contrairement à",
        "à la différence de",
        "a diferencia de",
        "al contrario de",
        "in contrast to",
        "as opposed to",
        "compared to",
    ];
    if UNLIKE.iter().any(|words| joined.ends_with(words)) {
        return true;
    }
    if joined.ends_with("preferable to")
        || joined.ends_with("superior to")
        || not_first && joined.ends_with("preferred to")
    {
        return true;
    }
    let han = joined.replace(' ', "");
    if ["而不是", "不是", "不选", "不要", "并非", "排除", "反对"]
        .iter()
        .any(|w| han.contains(w))
    {
        return true;
    }
    // After the option: up to the end of the clause.
    let end = at + length;
    if words[end - 1].stop == Stop::Sentence {
        return false;
    }
    let mut after = String::new();
    for word in words.iter().skip(end).take(6) {
        let glue = if word.lower.chars().all(is_han) {
            ""
        } else {
            " "
        };
        after.push_str(glue);
        after.push_str(&word.lower);
        if word.stop != Stop::None {
            break;
        }
    }
    let after = after.trim();
    words[end - 1].stop == Stop::None && AGAINST_AFTER.iter().any(|w| after.starts_with(w))
}

/// Returns whether `by` follows at a position.
pub(super) fn followed(words: &[Word], at: usize, by: &str) -> bool {
    by.split(' ')
        .enumerate()
        .all(|(n, word)| words.get(at + n).is_some_and(|w| w.lower == word))
}
