//! Letters and short words that may name an option but also have another meaning: the label `A` is also an article, and
//! `go` is also a verb.

use super::language::is_han;
use super::words::{Stop, Word};

/// Returns whether a short capitalized name is a verb here: `I'd go with Rust`, `Go for Rust`.
pub(super) fn is_verb(words: &[Word], at: usize, name: &[Word]) -> bool {
    let [own] = name else { return false };
    if !(2..=3).contains(&own.text.chars().count()) || !own.text.starts_with(char::is_uppercase) {
        return false;
    }
    let word = &words[at];
    let next = words.get(at + 1).map_or("", |w| w.lower.as_str());
    let goes_on = word.stop == Stop::None && ["with", "for", "ahead", "to", "back"].contains(&next);
    if word.text.starts_with(char::is_uppercase) {
        let opens = at == 0 || words[at - 1].stop == Stop::Sentence;
        return words.len() > 1 && own.lower == "go" && opens && goes_on;
    }
    // In lower case it is a name only in the position of a name.
    const BEFORE: &[&str] = &[
        "in", "use", "using", "with", "choose", "pick", "take", "prefer", "say", "think", "answer",
        "for", "like", "en", "als", "mit", "le", "el", "than", "over",
    ];
    const BEHIND: &[&str] = &[
        "is", "has", "would", "wins", "ist", "est", "es", "because", "since",
    ];
    let before = at.checked_sub(1).map(|b| &words[b]);
    let named = before.is_some_and(|b| BEFORE.contains(&b.lower.as_str())) && !goes_on
        || word.stop == Stop::None && BEHIND.contains(&next);
    let alone =
        before.is_none_or(|b| b.stop != Stop::None) && (next.is_empty() || word.stop != Stop::None);
    !(words.len() == 1 || word.marked || word.quoted || named || alone)
}

/// Returns whether a letter is an option's name, not the article in `a backup` or the pronoun in `I think`.
pub(super) fn is_letter_named(words: &[Word], at: usize) -> bool {
    let word = &words[at];
    let is_also_a_word = ["a", "i", "o", "y", "e"].contains(&word.lower.as_str());
    if !is_also_a_word || word.text != word.lower {
        return is_label(words, at);
    }
    let named = |b: usize| CALLED.contains(&words[b].lower.as_str());
    word.marked || words.len() == 1 || at.checked_sub(1).is_some_and(named)
}

/// Words that mark the letter after them as a label.
pub(super) const CALLED: &[&str] = &[
    "option",
    "answer",
    "choice",
    "candidate",
    "antwort",
    "réponse",
    "respuesta",
    "opción",
    "label",
    "letra",
    "lettre",
];

/// Returns whether a capital `A` is inside a sentence, where the article would be lowercase: `Draft A is clear`.
pub(super) fn is_capital_inside(words: &[Word], at: usize) -> bool {
    let before = at.checked_sub(1).map(|b| &words[b]);
    words[at].text.starts_with('A')
        && before.is_some_and(|b| b.stop == Stop::None && b.text.chars().any(char::is_lowercase))
}

/// Returns whether a word is a label or its possessive: `B's`.
pub(super) fn is_labelled(word: &str, label: &str) -> bool {
    let rest = word.strip_prefix(label);
    rest.is_some_and(|rest| matches!(rest, "" | "'s" | "’s"))
}

/// Returns whether a capital letter is a label here, not the article or the pronoun.
pub(super) fn is_label(words: &[Word], at: usize) -> bool {
    let word = &words[at];
    let before = at.checked_sub(1).map(|b| words[b].lower.as_str());
    let introduced = before.is_some_and(|b| {
        CALLED.contains(&b)
            || [
                "choix",
                "choose",
                "pick",
                "vote",
                "for",
                "prefer",
                "select",
                "wähle",
                "nehme",
                "für",
                "choisis",
                "pour",
                "elijo",
                "por",
                "选",
                "项",
                "als",
                "than",
                "over",
                "with",
                "is",
                "ist",
                "est",
                "es",
                "be",
                "not",
                "nicht",
                "pas",
                "no",
                "投",
                "择",
                "是",
                "给",
                "variante",
                "recommend",
                "take",
                "said",
                "to",
                "答",
                "案",
                "as",
                "zu",
                "à",
                "a",
                "favor",
                "favour",
                "of",
                "und",
                "and",
                "or",
                "oder",
                "ou",
                "o",
                "但",
                "认",
                "为",
                "statt",
                "que",
                "thought",
                "dachte",
                "voto",
                "stimme",
                "prefiero",
                "préfère",
                "nach",
                "instead",
                "rather",
            ]
            .contains(&b)
    });
    let next = words.get(at + 1);
    if word.marked || word.stop == Stop::None && next.is_some_and(|n| n.lower.chars().all(is_han)) {
        return true;
    }
    match word.text.as_str() {
        // `A man`, `I think`: a label only where neither article nor pronoun is possible.
        "A" | "I" | "O" | "Y" | "E" => match next {
            _ if word.stop != Stop::None => true,
            None => true,
            Some(next)
                if [
                    "or", "and", "oder", "und", "ou", "et", "o", "y", "vs", "或", "和",
                ]
                .contains(&next.lower.as_str())
                    && word.text == "A" =>
            {
                true
            }
            Some(next) if introduced => {
                word.text != "I"
                    && ([
                        "is", "was", "because", "over", "ist", "weil", "est", "car", "es",
                        "porque", "and", "or", "but", "than", "und", "oder", "mais", "pero", "as",
                        "here", "since", "has", "looks", "seems", "wins",
                    ]
                    .contains(&next.lower.as_str())
                        || before.is_some_and(|b| CALLED.contains(&b)))
            }
            Some(next) => {
                [
                    "is", "was", "ist", "war", "est", "es", "wins", "beats", "looks", "seems",
                    "has", "fails", "scheidet", "是",
                ]
                .contains(&next.lower.as_str())
                    && word.text == "A"
                    && at == 0
            }
        },
        _ => {
            introduced
                || word.stop != Stop::None
                || next.is_none()
                || at == 0
                || word.text.chars().count() > 1
                || next.is_some_and(|n| n.lower.chars().all(char::is_alphabetic))
        }
    }
}
