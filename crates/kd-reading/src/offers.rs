//! Courtesies at the end of a reply: offers of more work (`Shall I draft the migration?`) and requests for assent
//! (`Sound good?`). They ask, but leave nothing open that was decided before them.

use super::language::is_han;
use super::options::Options;

/// First words of an offer to do more.
const OFFERS: &[&str] = &[
    "want me to",
    "do you want me",
    "want a",
    "want an",
    "want the",
    "want some",
    "want help",
    "want to see",
    "would you like",
    "would it help",
    "shall i",
    "shall we",
    "should i",
    "can i help",
    "can i do",
    "could i help",
    "may i",
    "need me to",
    "need help",
    "need a hand",
    "do you need me",
    "interested in",
    "curious about",
    "care for",
    "anything else",
    "any questions",
    "any other questions",
    "soll ich",
    "sollen wir",
    "möchtest du",
    "möchten sie",
    "möchtet ihr",
    "magst du",
    "wollen sie",
    "willst du",
    "wollt ihr",
    "darf ich",
    "kann ich noch",
    "kann ich dir",
    "kann ich ihnen",
    "kann ich sonst",
    "brauchst du",
    "brauchen sie",
    "braucht ihr",
    "hilft dir",
    "interessiert dich",
    "noch fragen",
    "weitere fragen",
    "sonst noch",
    "voulez-vous",
    "veux-tu",
    "souhaitez-vous",
    "souhaites-tu",
    "aimeriez-vous",
    "aimerais-tu",
    "tu veux que",
    "vous voulez que",
    "dois-je",
    "puis-je",
    "je te",
    "je vous",
    "est-ce que je",
    "besoin d'",
    "besoin que",
    "avez-vous besoin",
    "as-tu besoin",
    "d'autres questions",
    "autre chose",
    "une question",
    "quieres que",
    "queréis que",
    "quiere que",
    "quieren que",
    "te gustaría",
    "le gustaría",
    "os gustaría",
    "desea",
    "deseas",
    "necesitas",
    "necesita",
    "te preparo",
    "os preparo",
    "le preparo",
    "te ayudo",
    "os ayudo",
    "le ayudo",
    "te lo",
    "os lo",
    "se lo",
    "te paso",
    "os paso",
    "te hago",
    "puedo ayudar",
    "alguna pregunta",
    "alguna duda",
    "algo más",
    "要不要",
    "需要我",
    "需不需要",
    "是否需要",
    "您需要",
    "你需要",
    "您想",
    "你想让我",
    "想让我",
    "要我",
    "我帮你",
    "还有什么",
    "还有别的",
    "还有问题",
];

/// Requests for assent, as a whole.
const ASSENTS: &[&str] = &[
    "yes",
    "ok",
    "okay",
    "right",
    "deal",
    "agreed",
    "fair",
    "fair enough",
    "good",
    "sound good",
    "sounds good",
    "does that help",
    "does this help",
    "does that make sense",
    "make sense",
    "makes sense",
    "is that ok",
    "is that okay",
    "ok with you",
    "all clear",
    "thoughts",
    "next question",
    "next",
    "what next",
    "ja",
    "einverstanden",
    "in ordnung",
    "alles klar",
    "passt das",
    "passt das so",
    "passt's",
    "gut so",
    "hilft das",
    "nächste frage",
    "noch was",
    "oui",
    "d'accord",
    "ça vous va",
    "ça te va",
    "ça marche",
    "cela vous convient",
    "cela vous convient-il",
    "c'est bon pour vous",
    "question suivante",
    "sí",
    "vale",
    "de acuerdo",
    "os parece",
    "os parece bien",
    "te parece",
    "te parece bien",
    "le parece bien",
    "les parece bien",
    "está bien",
    "siguiente pregunta",
    "siguiente",
    "好吗",
    "行吗",
    "可以吗",
    "怎么样",
    "如何",
    "好不好",
    "明白了吗",
    "下一个问题",
    "下一题",
];

/// Words that may stand before an offer.
const OPENERS: &[&str] = &[
    "so",
    "and",
    "also",
    "ok",
    "okay",
    "now",
    "und",
    "also",
    "et",
    "alors",
    "y",
    "pues",
    "那",
    "另外",
    "顺便问一下",
];

/// A reply without its closing courtesies.
pub(super) struct Closed<'a> {
    pub(super) text: &'a str,
    /// The option named by an offer: `Shall I draft the Postgres schema?`
    pub(super) offered: Option<usize>,
}

/// Cuts courtesies that ask from the end of a reply. One that names several options stays.
pub(super) fn without<'a>(text: &'a str, options: Option<&Options>) -> Closed<'a> {
    /// Maximum number of courtesies.
    const COUNT_MAX: usize = 3;
    let mut closed = Closed {
        text,
        offered: None,
    };
    for _ in 0..COUNT_MAX {
        let Some((before, question)) = last_question(closed.text) else {
            break;
        };
        if !is_courtesy(question) {
            break;
        }
        let named: Vec<usize> = match options.filter(|options| !options.is_yes_no()) {
            Some(options) => options.mentions(question).iter().map(|m| m.item).collect(),
            None => Vec::new(),
        };
        match named.as_slice() {
            [] => {}
            [first, rest @ ..] if rest.iter().all(|item| item == first) => {
                closed.offered = Some(*first);
            }
            _ => break,
        }
        closed.text = before;
    }
    closed
}

/// Splits a text before its last sentence, if that sentence asks and is not the only one.
fn last_question(text: &str) -> Option<(&str, &str)> {
    const MARKS: [char; 10] = ['*', '_', '"', '”', '»', ')', '）', ' ', '\n', '\r'];
    let trimmed = text.trim_end_matches(MARKS);
    let body = trimmed.strip_suffix(['?', '？'])?;
    let ends = |(at, c): (usize, char)| {
        let next = body[at + c.len_utf8()..].chars().next();
        match c {
            '.' | '!' | '?' | '…' => {
                next.is_none_or(|n| n.is_whitespace() || n == '*' || n == '¿')
            }
            '。' | '！' | '？' | '\n' | '¿' => true,
            _ => false,
        }
    };
    let cut = body.char_indices().rev().find(|place| ends(*place))?;
    let at = match cut.1 {
        '¿' => cut.0,
        c => cut.0 + c.len_utf8(),
    };
    let before = text[..at].trim_end();
    let before = before.trim_end_matches(['(', '（', '¿']).trim_end();
    // The text before it must be complete.
    before
        .chars()
        .any(char::is_alphanumeric)
        .then(|| (before, &text[at..]))
}

/// Returns whether a question only offers help, or asks for assent.
fn is_courtesy(question: &str) -> bool {
    /// Maximum number of words of an offer.
    const WORDS_MAX: usize = 24;
    let lower = question.to_lowercase().replace('’', "'");
    let mut bare = lower.trim_matches(|c: char| !c.is_alphanumeric());
    while let Some(rest) = OPENERS.iter().find_map(|w| behind(bare, w)) {
        bare = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
    }
    if ASSENTS.contains(&bare) {
        return true;
    }
    // `Do you want me to count all of them, or only these?`
    const OR: &[&str] = &["or", "oder", "ou", "o", "还是"];
    bare.split_whitespace().count() <= WORDS_MAX
        && !super::cues::has(bare, OR)
        && OFFERS.iter().any(|offer| behind(bare, offer).is_some())
}

/// Returns the text behind a whole word.
fn behind<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    let whole = word.ends_with('\'')
        || word.chars().any(is_han)
        || !rest.starts_with(|c: char| c.is_alphanumeric());
    whole.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::without;
    use crate::Options;

    #[test]
    fn only_courtesies_are_cut() {
        for (text, want) in [
            ("Tea. Want me to brew it?", "Tea."),
            ("Tea. Sound good? Shall I pour?", "Tea."),
            ("Tee. Soll ich Wasser aufsetzen?", "Tee."),
            ("Thé. Voulez-vous du sucre ?", "Thé."),
            ("Té. ¿Quieres que lo prepare?", "Té."),
            ("té, claro. ¿siguiente pregunta?", "té, claro."),
            ("茶。需要我帮你泡吗？", "茶。"),
            // Questions of substance, and replies of one question.
            (
                "Tea. How many guests are there?",
                "Tea. How many guests are there?",
            ),
            (
                "12 here, 9 there. Do you want me to count all, or only one?",
                "12 here, 9 there. Do you want me to count all, or only one?",
            ),
            ("Tee. Oder doch Milch?", "Tee. Oder doch Milch?"),
            ("Shall I choose?", "Shall I choose?"),
        ] {
            assert_eq!(without(text, None).text, want, "{text}");
        }
    }

    #[test]
    fn an_offer_tells_what_it_is_about() {
        let options = Options::new(&["tea".to_owned(), "milk".to_owned()]);
        let closed = without("Fine. Shall I buy tea?", Some(&options));
        assert_eq!((closed.text, closed.offered), ("Fine.", Some(0)));
        let both = "Fine. Shall I buy tea or milk?";
        assert_eq!(without(both, Some(&options)).text, both);
    }
}
