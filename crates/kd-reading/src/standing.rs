//! Options alone in their clause, and sentences that say both yes and no.

use super::clauses::{self, Before, Role, Sentence};
use super::cues;
use super::language::is_han;
use super::options::{Mention, Options};

/// Returns whether a sentence says both yes and no: `yes and no`, `是，也不是`, `yes under 100, no above that`.
pub(super) fn says_both(sentence: &Sentence) -> bool {
    const YES: &[&str] = &["yes", "yeah", "yep", "ja", "oui", "sí"];
    const NO: &[&str] = &["no", "nein", "non", "nope"];
    // Words that may follow a `no` that answers.
    const BEHIND_NO: &[&str] = &[
        "in",
        "above",
        "below",
        "under",
        "over",
        "otherwise",
        "for",
        "if",
        "at",
        "when",
        "it",
        "yes",
        "ja",
        "oui",
        "sí",
        "and",
        "or",
        "with",
    ];
    let (mut yes, mut no) = (0, 0);
    for clause in &sentence.clauses {
        if matches!(clause.role, Role::Report | Role::Concession) {
            continue;
        }
        let words: Vec<&str> = clause
            .lower
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|w| !w.is_empty())
            .collect();
        if words
            .iter()
            .any(|w| ["than", "als", "plutôt", "rather"].contains(w))
        {
            continue;
        }
        for (at, word) in words.iter().enumerate() {
            let joined = at.checked_sub(1).is_some_and(|b| {
                YES.contains(&words[b])
                    || ["and", "or", "und", "oder", "et", "ou", "y", "o"].contains(&words[b])
            });
            let edge = at + 1 == words.len() || joined || at == 0 && BEHIND_NO.contains(&words[1]);
            let spoken_of = at
                .checked_sub(1)
                .is_some_and(|b| ["say", "to"].contains(&words[b]))
                && at + 1 < words.len();
            yes += usize::from(YES.contains(word) && !spoken_of);
            no += usize::from(NO.contains(word) && (edge || *word == "nein"));
        }
        let han: String = clause.lower.chars().filter(|c| is_han(*c)).collect();
        let han = han.trim_start_matches(['也', '又', '但']);
        yes += usize::from(matches!(han, "是" | "是的" | "对"));
        no += usize::from(matches!(han, "不是" | "否" | "不" | "不对"));
        let denies = ["不行", "不可以", "不能", "不会", "不可能"]
            .iter()
            .any(|w| han.ends_with(w));
        no += usize::from(denies);
        yes += usize::from(
            !denies
                && ["可以", "行", "能", "会", "可能"]
                    .iter()
                    .any(|w| han.ends_with(w)),
        );
    }
    yes > 0 && no > 0
}

/// Returns whether an option is alone in its clause except for small words.
pub(super) fn is_alone(
    sentence: &Sentence,
    at: usize,
    mentions: &[Mention],
    mention: &Mention,
    options: &Options,
) -> bool {
    let clause = &sentence.clauses[at];
    let mut rest = String::new();
    let mut from = clause.start;
    for other in mentions
        .iter()
        .filter(|m| m.start >= clause.start && m.start < clause.end)
    {
        if other.item != mention.item {
            return false;
        }
        rest.push_str(sentence.text.get(from..other.start).unwrap_or_default());
        rest.push(' ');
        from = other.end.max(from);
    }
    rest.push_str(sentence.text.get(from..clause.end).unwrap_or_default());
    let rest = rest.to_lowercase();
    let mut left = 0;
    for word in rest
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
    {
        let word = word.trim_matches('\'');
        let small =
            FILLERS.contains(&word) || options.is_yes_no() && YES_NO_FILLERS.contains(&word);
        if !small {
            left += match word.chars().any(is_han) {
                true => word.chars().count(),
                false => 2,
            };
        }
    }
    left <= 1
}

/// Small words beside an option that is alone.
pub(super) const FILLERS: &[&str] = &[
    "the",
    "a",
    "an",
    "it",
    "is",
    "it's",
    "that's",
    "s",
    "so",
    "then",
    "thus",
    "therefore",
    "hence",
    "just",
    "simply",
    "definitely",
    "clearly",
    "again",
    "please",
    "option",
    "answer",
    "choice",
    "candidate",
    "draft",
    "version",
    "proposal",
    "plan",
    "variant",
    "label",
    "number",
    "v",
    "final",
    "overall",
    "hence",
    "plain",
    "first",
    "therefore",
    "still",
    "der",
    "die",
    "das",
    "den",
    "dem",
    "ein",
    "eine",
    "also",
    "daher",
    "somit",
    "dann",
    "entwurf",
    "kandidat",
    "variante",
    "antwort",
    "vorschlag",
    "klar",
    "eindeutig",
    "le",
    "la",
    "les",
    "l",
    "un",
    "une",
    "donc",
    "réponse",
    "proposition",
    "candidat",
    "clairement",
    "el",
    "los",
    "las",
    "una",
    "por",
    "tanto",
    "así",
    "que",
    "respuesta",
    "opción",
    "propuesta",
    "candidato",
    "claramente",
    "entonces",
    "para",
    "pour",
    "für",
    "à",
    "auf",
    "zu",
    "given",
    "c'est",
    "es",
    "der",
    "选项",
    "方案",
    "候选",
    "答案",
    "选",
    "就",
    "是",
    "text",
    "textbf",
    "boxed",
];

/// Small words beside yes or no.
pub(super) const YES_NO_FILLERS: &[&str] = &[
    "absolutely",
    "probably",
    "certainly",
    "hard",
    "clear",
    "cautious",
    "well",
    "oh",
    "of",
    "course",
    "and",
    "ja",
    "oui",
    "sí",
];

/// Returns whether a clause with only an option in it is a statement, not an item of an inline list.
pub(super) fn stands_out(sentence: &Sentence, at: usize) -> bool {
    let clause = &sentence.clauses[at];
    match clause.before {
        Before::Start => true,
        Before::Colon | Before::Semicolon => true,
        Before::Comma | Before::Word => {
            let concludes = |c: &clauses::Clause| {
                matches!(c.role, Role::Conclusion | Role::Contrast)
                    || cues::has(&c.lower, cues::TURNS)
            };
            concludes(clause)
                || at
                    .checked_sub(1)
                    .is_some_and(|b| concludes(&sentence.clauses[b]))
        }
        Before::Bracket => false,
    }
}

/// Returns whether the next clause continues with another option: `Redis, Kafka and RabbitMQ each …`.
pub(super) fn goes_on(
    sentence: &Sentence,
    at: usize,
    mentions: &[Mention],
    mention: &Mention,
) -> bool {
    let Some(next) = sentence.clauses.get(at + 1) else {
        return false;
    };
    let listed = matches!(next.before, Before::Comma | Before::Word) && next.role == Role::Claim;
    listed
        && mentions.iter().any(|m| {
            let before = sentence.text.get(next.start..m.start).unwrap_or_default();
            m.item != mention.item
                && !m.rejected
                && sentence.clause_at(m.start) == at + 1
                && before.split_whitespace().count() <= 2
        })
}
