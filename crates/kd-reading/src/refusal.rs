//! Refusals. Input: a reply. Output: whether it declines, and the rest of its content: "I won't use Go here. Rust is
//! the better choice." does not decline the question.

use super::folded::Folded;
use super::prose;

/// The effect of a phrase on the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    /// Declines to answer.
    Declines,
    /// Rules something out, which may be the answer or part of it.
    Limits,
    /// Introduces an answer or a refusal.
    Opens,
}

const PHRASES: &[(&str, Says)] = &[
    ("i can't help", Says::Declines),
    ("i cannot help", Says::Declines),
    ("i can't assist", Says::Declines),
    ("i cannot assist", Says::Declines),
    ("i can't answer", Says::Declines),
    ("i cannot answer", Says::Declines),
    ("i can't provide", Says::Declines),
    ("i cannot provide", Says::Declines),
    ("i can't comply", Says::Declines),
    ("i cannot comply", Says::Declines),
    ("i can't discuss", Says::Declines),
    ("i cannot discuss", Says::Declines),
    ("i'm sorry, but i can't", Says::Declines),
    ("i'm sorry, but i cannot", Says::Declines),
    ("i am sorry, but i can't", Says::Declines),
    ("i am sorry, but i cannot", Says::Declines),
    ("i don't have access", Says::Declines),
    ("i do not have access", Says::Declines),
    ("i have no access", Says::Declines),
    ("i can't count", Says::Declines),
    ("i can't see", Says::Declines),
    ("i cannot see", Says::Declines),
    ("i can't access", Says::Declines),
    ("i cannot access", Says::Declines),
    ("habe keinen zugriff", Says::Declines),
    ("je n'ai pas accès", Says::Declines),
    ("no tengo acceso", Says::Declines),
    ("我无法访问", Says::Declines),
    ("我看不到", Says::Declines),
    ("i must decline", Says::Declines),
    ("i decline", Says::Declines),
    ("i don't know", Says::Declines),
    ("i do not know", Says::Declines),
    ("against my guidelines", Says::Declines),
    ("i won't", Says::Limits),
    ("i will not", Says::Limits),
    ("i'm unable to", Says::Limits),
    ("i am unable to", Says::Limits),
    ("i'm not able to", Says::Limits),
    ("i am not able to", Says::Limits),
    ("i'd rather not", Says::Limits),
    ("not comfortable", Says::Limits),
    ("as an ai", Says::Opens),
    ("dabei kann ich", Says::Declines),
    ("kann ich nicht helfen", Says::Declines),
    ("kann ich nicht beantworten", Says::Declines),
    ("kann ich leider nicht", Says::Declines),
    ("ich weiß es nicht", Says::Declines),
    ("ich weiß nicht", Says::Declines),
    ("ich darf nicht", Says::Limits),
    ("als ki", Says::Opens),
    ("tut mir leid, aber", Says::Opens),
    ("je ne sais pas", Says::Declines),
    ("je refuse", Says::Declines),
    ("je ne peux pas", Says::Limits),
    ("je suis désolé, mais", Says::Opens),
    ("en tant qu'ia", Says::Opens),
    ("no puedo ayudar", Says::Declines),
    ("no puedo responder", Says::Declines),
    ("no lo sé", Says::Declines),
    ("no sé", Says::Declines),
    ("lo siento, pero", Says::Opens),
    ("como ia", Says::Opens),
    ("无法回答", Says::Declines),
    ("不能回答", Says::Declines),
    ("无法提供", Says::Declines),
    ("我不知道", Says::Declines),
    ("不能帮", Says::Declines),
    ("抱歉", Says::Opens),
    ("对不起", Says::Opens),
    ("作为人工智能", Says::Opens),
    ("作为一个ai", Says::Opens),
];

/// Verbs of answering: after a limiting phrase, they make it a refusal.
const ANSWERING: &[&str] = &[
    "answer",
    "assist",
    "choose",
    "comment",
    "comply",
    "compute",
    "decide",
    "discuss",
    "do that",
    "do this",
    "engage",
    "guess",
    "help",
    "make",
    "participate",
    "pick",
    "provide",
    "recommend",
    "respond",
    "say",
    "select",
    "speculate",
    "take sides",
    "vote",
    "antworten",
    "entscheiden",
    "helfen",
    "wählen",
    "aider",
    "choisir",
    "décider",
    "recommander",
    "répondre",
];

/// Phrases that turn an introducing sentence into a refusal.
const INABILITY: &[&str] = &[
    "can't",
    "cannot",
    "do not",
    "don't",
    "have no",
    "not able",
    "unable",
    "nicht",
    "keine",
    "ne peux pas",
    "n'ai pas",
    "no puedo",
    "no tengo",
    "无法",
    "不能",
    "没有",
];

/// Words that end the refusing part of a sentence.
const BREAKS: &[&str] = &[
    "but",
    "however",
    "aber",
    "jedoch",
    "sondern",
    "mais",
    "cependant",
    "pero",
    "sin embargo",
    "但是",
    "但",
    "不过",
];
const BREAK_MARKS: [char; 6] = [':', ';', '：', '；', '—', '–'];

/// Number of characters at the start of a reply that are searched for a refusing phrase: refusals come first.
const HEAD_CHARS: usize = 300;

/// A reply with a refusing phrase.
pub(super) struct Declined {
    /// The rest of its content.
    pub(super) rest: String,
    /// Whether it declines explicitly. An answer next to it is then a contradiction.
    pub(super) outright: bool,
}

/// Looks for a refusal in a reply.
pub(super) fn of(text: &str) -> Option<Declined> {
    let text = text.replace('’', "'");
    let head = text.char_indices().nth(HEAD_CHARS);
    phrases(&Folded::new(head.map_or(&text, |(at, _)| &text[..at]))).next()?;
    let mut declined = Declined {
        rest: String::new(),
        outright: false,
    };
    for line in text.lines() {
        for sentence in prose::sentences(line) {
            let folded = Folded::new(&sentence);
            let Some((end, says)) = phrases(&folded).max_by_key(|(end, _)| *end) else {
                declined.rest.push_str(&sentence);
                declined.rest.push(' ');
                continue;
            };
            let tail = &sentence[end..];
            let answers = |word: &&str| tail.trim_start().to_lowercase().starts_with(*word);
            declined.outright |= phrases(&folded).any(|(_, says)| says == Says::Declines)
                || says == Says::Limits && ANSWERING.iter().any(answers);
            declined.rest.push_str(behind(tail, says));
            declined.rest.push(' ');
        }
        declined.rest.push('\n');
    }
    declined.rest = declined.rest.trim().to_owned();
    Some(declined)
}

/// Returns whether a reply only asks for missing information: `I would need to see the second page.`
pub(super) fn asks_for_more(text: &str) -> bool {
    const NEEDS: &[&str] = &[
        "i would need",
        "i'd need",
        "i will need",
        "i'll need",
        "i need to see",
        "i need to know",
        "i need more",
        "i would have to see",
        "i'd have to see",
        "please provide",
        "please share",
        "please send",
        "could you provide",
        "could you share",
        "can you provide",
        "can you share",
        "without seeing",
        "without more",
        "without further",
        "more information is needed",
        "ich bräuchte",
        "ich benötige",
        "ich müsste erst",
        "dafür müsste ich",
        "dazu müsste ich",
        "bitte schick",
        "bitte nenn",
        "ohne weitere",
        "ohne mehr",
        "il me faudrait",
        "il faudrait que je",
        "j'aurais besoin",
        "j'ai besoin de voir",
        "pourriez-vous",
        "sans plus d",
        "sans voir",
        "necesitaría",
        "necesito ver",
        "necesito más",
        "me haría falta",
        "tendría que ver",
        "sin más",
        "我需要更多",
        "我需要看到",
        "我需要知道",
        "需要先看",
        "请提供",
        "请发",
        "信息不足",
    ];
    let lower = text.trim().to_lowercase().replace('’', "'");
    let bare = [
        "sorry,",
        "sorry but",
        "um das zu sagen,",
        "to answer that,",
        "hm,",
        "well,",
    ]
    .iter()
    .find_map(|lead| lower.strip_prefix(lead))
    .unwrap_or(&lower)
    .trim_start();
    NEEDS.iter().any(|needs| bare.starts_with(needs))
}

/// Returns whether a reply declines and says nothing else.
pub(super) fn is_all(text: &str) -> bool {
    of(text).is_some_and(|declined| declined.outright || declined.rest.is_empty())
}

/// Returns the refusing phrases of a text: where each ends, and its effect.
fn phrases(folded: &Folded) -> impl Iterator<Item = (usize, Says)> {
    PHRASES
        .iter()
        .flat_map(|(phrase, says)| folded.words(phrase).map(|at| (at.end, *says)))
}

/// Returns the content of a sentence after its refusal.
fn behind(tail: &str, says: Says) -> &str {
    let folded = Folded::new(tail);
    let unable = INABILITY
        .iter()
        .filter_map(|word| folded.words(word).next());
    let from = match (says, unable.map(|at| at.end).max()) {
        (Says::Opens, None) => return tail,
        (Says::Opens, Some(end)) => end,
        _ => 0,
    };
    let words = BREAKS.iter().flat_map(|word| folded.words(word));
    let marks = tail.match_indices(BREAK_MARKS);
    words
        .map(|at| at.end)
        .chain(marks.map(|(at, mark)| at + mark.len()))
        .filter(|end| *end > from)
        .min()
        .map_or("", |end| &tail[end..])
}

#[cfg(test)]
mod tests {
    use super::{is_all, of};

    #[test]
    fn a_refusal_is_told_from_what_an_answer_rules_out() {
        for (text, outright, rest) in [
            ("I'm sorry, but I can't help with that.", true, ""),
            ("I won’t choose.", true, ""),
            (
                "I won't use Go here. Rust is better.",
                false,
                "Rust is better.",
            ),
            ("I will not round: 17*23 = 391", false, "17*23 = 391"),
            ("As an AI, I'd take Rust.", false, ", I'd take Rust."),
            ("As an AI I cannot choose.", false, ""),
            ("Tut mir leid, aber dabei kann ich nicht helfen.", true, ""),
            ("I don't know Go well, but Rust fits.", true, "Rust fits."),
            ("抱歉，我选 Rust。", false, "，我选 Rust。"),
        ] {
            let declined = of(text).unwrap();
            assert_eq!(declined.outright, outright, "{text}");
            assert_eq!(declined.rest.trim(), rest, "{text}");
            assert_eq!(is_all(text), rest.is_empty() || outright, "{text}");
        }
    }

    #[test]
    fn a_word_that_begins_as_a_refusal_is_none() {
        for text in ["As an aid, take Rust.", "Als Kind, ja.", "So no sério: B"] {
            assert!(of(text).is_none(), "{text}");
        }
    }
}
