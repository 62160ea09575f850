//! Replies whose author does not know: a negated verb of knowing, in a sentence that says nothing else.

use super::cues;
use super::language::is_han;
use super::prose;

/// Verbs of knowing, and phrases for the unknowable.
const KNOWS: &[&str] = &[
    "know",
    "tell",
    "say",
    "judge",
    "determine",
    "decide",
    "assess",
    "answer",
    "known",
    "determined",
    "specified",
    "stated",
    "weiß",
    "weiss",
    "wissen",
    "sagen",
    "beurteilen",
    "bestimmen",
    "feststellen",
    "beantworten",
    "bekannt",
    "angegeben",
    "savoir",
    "sais",
    "dire",
    "juger",
    "déterminer",
    "répondre",
    "précisé",
    "précisée",
    "indiqué",
    "connu",
    "saber",
    "saberlo",
    "sé",
    "decir",
    "decirlo",
    "juzgar",
    "determinar",
    "responder",
    "especificado",
    "indicado",
    "visto",
    "leído",
    "seen",
    "gelesen",
    "vu",
];
/// Negations of these verbs.
const DENIES: &[&str] = &[
    "not",
    "can't",
    "cannot",
    "don't",
    "no",
    "never",
    "impossible",
    "hard",
    "difficult",
    "unable",
    "nobody",
    "isn't",
    "nicht",
    "kein*",
    "unmöglich",
    "schwer",
    "schwierig",
    "niemand",
    "kaum",
    "pas",
    "non",
    "ne",
    "difficile",
    "personne",
    "imposible",
    "difícil",
    "nadie",
];
const HAN: [&str; 9] = [
    "不知道",
    "无法判断",
    "无法确定",
    "无法回答",
    "不清楚",
    "不确定",
    "很难说",
    "难以判断",
    "不好说",
];
/// Maximum number of words in such a sentence.
const WORDS_MAX: usize = 7;

/// Returns whether the first sentence of a text says that the author does not know.
pub fn is_unknown(text: &str) -> bool {
    let text = prose::bare(&prose::without_thoughts(text))
        .to_lowercase()
        .replace('’', "'");
    let first = prose::sentences(&text)
        .into_iter()
        .next()
        .unwrap_or_default();
    if first.chars().any(is_han) {
        let bare: String = first.chars().filter(|c| is_han(*c)).collect();
        return bare.chars().count() <= 12 && HAN.iter().any(|words| bare.contains(words));
    }
    // `No, I don't know anyone who does.`
    let answers =
        first.contains([',', ':', ';', '?']) || first.contains(" – ") || first.contains(" - ");
    !answers
        && first.split_whitespace().count() <= WORDS_MAX
        && !first.contains(" if ")
        && cues::has(&first, KNOWS)
        && cues::has(&first, DENIES)
        && !cues::has(&first, ANSWERS)
}

/// Phrases with the same words that do answer.
const ANSWERS: &[&str] = &[
    "answer with",
    "clear no",
    "i'd say",
    "i would say",
    "say no",
    "say yes",
    "i say",
    "würde ich sagen",
    "ich würde sagen",
    "sage nein",
    "je dirais",
    "dis non",
    "diría",
    "digo",
    "the answer is",
    "die antwort",
    "no way",
    "needless to say",
];

#[cfg(test)]
mod tests {
    use super::is_unknown;

    #[test]
    fn a_denied_verb_of_knowing_answers_nothing() {
        for text in [
            "I don't know.",
            "Impossible to say.",
            "Hard to tell.",
            "Das weiß ich leider nicht.",
            "Nicht zu sagen.",
            "impossible à dire",
            "Non précisé.",
            "No lo sé.",
            "Es difícil saberlo.",
            "无法判断。",
            "Not specified.",
        ] {
            assert!(is_unknown(text), "{text}");
        }
        for text in [
            "No.",
            "Impossible.",
            "No, I don't know anyone who does.",
            "I'd say no.",
            "Nein, das kann man nicht sagen, es ist verboten.",
            "Ich würde sagen nicht.",
            "不是。",
            "Non.",
            "It is not allowed.",
        ] {
            assert!(!is_unknown(text), "{text}");
        }
    }
}
