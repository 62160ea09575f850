//! Fixed phrases in replies, in the five languages: ways to say yes and no, numbers in words, and courtesies without an
//! answer.

/// Complete statements that mean yes.
const YES: &[&str] = &[
    "absolutely",
    "definitely",
    "certainly",
    "of course",
    "indeed",
    "sure",
    "surely",
    "affirmative",
    "probably",
    "most likely",
    "very likely",
    "likely",
    "i think so",
    "i believe so",
    "i would say so",
    "that is correct",
    "that's correct",
    "that is right",
    "that's right",
    "that is true",
    "that's true",
    "it is",
    "it does",
    "y",
    "aye",
    "yup",
    "exactly",
    "without a doubt",
    "undoubtedly",
    "agreed",
    "i agree",
    "natürlich",
    "selbstverständlich",
    "auf jeden fall",
    "sicher",
    "sicherlich",
    "gewiss",
    "durchaus",
    "wahrscheinlich",
    "das stimmt",
    "stimmt",
    "das ist richtig",
    "das ist korrekt",
    "richtig",
    "ich denke schon",
    "ich glaube schon",
    "absolut",
    "definitiv",
    "eher ja",
    "absolument",
    "bien sûr",
    "certainement",
    "tout à fait",
    "évidemment",
    "bien entendu",
    "probablement",
    "c'est exact",
    "c'est vrai",
    "c'est correct",
    "exactement",
    "je pense que oui",
    "je crois que oui",
    "effectivement",
    "sans aucun doute",
    "vrai",
    "verdad",
    "verdadero",
    "wahr",
    "claro",
    "claro que sí",
    "por supuesto",
    "desde luego",
    "absolutamente",
    "ciertamente",
    "probablemente",
    "correcto",
    "es correcto",
    "así es",
    "creo que sí",
    "efectivamente",
    "sin duda",
    "es cierto",
    "es verdad",
    "当然",
    "当然可以",
    "可以",
    "肯定",
    "没错",
    "对的",
    "正确",
    "是真的",
    "的确",
    "确实",
    "应该是",
    "能",
    "会",
    "行",
    "应该可以",
    "肯定的",
    "答案是肯定的",
    "the answer is affirmative",
];

/// Complete statements that mean no.
const NO: &[&str] = &[
    "qué va",
    "que va",
    "ni hablar",
    "ni de broma",
    "pas question",
    "hors de question",
    "kommt nicht infrage",
    "kommt nicht in frage",
    "no chance",
    "out of the question",
    "绝不",
    "absolutely not",
    "definitely not",
    "certainly not",
    "of course not",
    "probably not",
    "most likely not",
    "not likely",
    "unlikely",
    "very unlikely",
    "i don't think so",
    "i do not think so",
    "i don't believe so",
    "i'm afraid not",
    "negative",
    "never",
    "not at all",
    "by no means",
    "that is incorrect",
    "that's incorrect",
    "that is not correct",
    "that's not correct",
    "that is wrong",
    "that's wrong",
    "that is false",
    "that's false",
    "that is not true",
    "that's not true",
    "that is not right",
    "it is not",
    "it isn't",
    "it's not",
    "it does not",
    "it doesn't",
    "n",
    "nah",
    "no way",
    "i disagree",
    "natürlich nicht",
    "auf keinen fall",
    "keinesfalls",
    "keineswegs",
    "sicher nicht",
    "bestimmt nicht",
    "wahrscheinlich nicht",
    "eher nicht",
    "das stimmt nicht",
    "stimmt nicht",
    "das ist falsch",
    "falsch",
    "das ist nicht richtig",
    "das ist nicht korrekt",
    "ich denke nicht",
    "ich glaube nicht",
    "niemals",
    "nie",
    "nö",
    "nee",
    "überhaupt nicht",
    "eher nein",
    "absolument pas",
    "bien sûr que non",
    "certainement pas",
    "pas du tout",
    "probablement pas",
    "sûrement pas",
    "c'est faux",
    "c'est incorrect",
    "ce n'est pas vrai",
    "ce n'est pas exact",
    "je ne pense pas",
    "je ne crois pas",
    "jamais",
    "en aucun cas",
    "aucunement",
    "faux",
    "falso",
    "claro que no",
    "por supuesto que no",
    "desde luego que no",
    "para nada",
    "en absoluto",
    "de ninguna manera",
    "probablemente no",
    "no es cierto",
    "no es correcto",
    "es falso",
    "es incorrecto",
    "creo que no",
    "nunca",
    "jamás",
    "no lo creo",
    "当然不",
    "当然不是",
    "当然不行",
    "不行",
    "不可以",
    "不能",
    "不会",
    "错",
    "错误",
    "错的",
    "不正确",
    "不是真的",
    "绝对不",
    "绝对不是",
    "没有",
    "应该不是",
    "应该不会",
    "否定的",
    "答案是否定的",
    "the answer is negative",
];

/// Words before a statement that add nothing.
const FILLERS: &[&str] = &[
    "well",
    "oh",
    "ok",
    "okay",
    "so",
    "most",
    "quite",
    "very",
    "honestly",
    "frankly",
    "basically",
    "in principle",
    "on balance",
    "yes and",
    "hm",
    "hmm",
    "i'd say",
    "i would say",
    "i say",
    "na",
    "nun",
    "tja",
    "also",
    "grundsätzlich",
    "prinzipiell",
    "im prinzip",
    "im grunde",
    "ehrlich gesagt",
    "ich sage",
    "eh bien",
    "ben",
    "bon",
    "alors",
    "en principe",
    "franchement",
    "je dirais",
    "je dirais que",
    "pues",
    "bueno",
    "en principio",
    "la verdad",
    "francamente",
    "diría que",
    "yo diría que",
    "嗯",
    "那",
    "原则上",
];

/// Subjects and copulas of a statement about the question.
const SUBJECTS: &[&str] = &[
    "the statement is",
    "the claim is",
    "this statement is",
    "this claim is",
    "this is",
    "that is",
    "the answer is",
    "die aussage ist",
    "diese aussage ist",
    "die behauptung ist",
    "das ist",
    "l'affirmation est",
    "cette affirmation est",
    "c'est",
    "la afirmación es",
    "esta afirmación es",
    "esto es",
    "eso es",
];

/// Affirming predicates. `FALSE` has the denying ones.
const TRUE: &[&str] = &[
    "true",
    "correct",
    "right",
    "accurate",
    "richtig",
    "wahr",
    "korrekt",
    "vraie",
    "vrai",
    "exacte",
    "correcte",
    "verdadera",
    "correcta",
    "cierta",
    "cierto",
];

const FALSE: &[&str] = &[
    "false",
    "incorrect",
    "wrong",
    "inaccurate",
    "not true",
    "not correct",
    "not right",
    "falsch",
    "unwahr",
    "nicht richtig",
    "nicht wahr",
    "fausse",
    "faux",
    "incorrecte",
    "inexacte",
    "falsa",
    "falso",
    "incorrecta",
];

/// "Yes" itself in each language.
const SAID_YES: &[&str] = &["yes", "ja", "oui", "sí", "si"];

const SAID_NO: &[&str] = &["no", "nein", "non"];

/// Returns whether the first statement of a text is a fixed phrase for yes (`true`) or no. Only for texts without an
/// explicit yes or no.
pub(super) fn yes_or_no(text: &str) -> Option<bool> {
    let lower = text.to_lowercase().replace('’', "'");
    let lower = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let ends = |c: char| {
        matches!(
            c,
            '.' | ',' | '!' | ';' | ':' | '\n' | '—' | '–' | '(' | '。' | '，' | '！' | '；' | '：'
        )
    };
    let first = lower.split(ends).next().unwrap_or_default();
    let first = first.split(" - ").next().unwrap_or_default();
    let mut first = first.trim_matches(|c: char| !c.is_alphanumeric());
    let known = |said: &str| match (YES.contains(&said), NO.contains(&said)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    };
    if let Some(said) = known(first) {
        return Some(said);
    }
    while let Some(rest) = FILLERS
        .iter()
        .find_map(|f| first.strip_prefix(f)?.strip_prefix(' '))
    {
        first = rest;
    }
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphabetic()).collect();
    let holds = |all: &[&str]| words.iter().any(|w| all.contains(w));
    if SAID_YES.contains(&first) && !holds(SAID_NO) {
        return Some(true);
    }
    if SAID_NO.contains(&first) && !holds(SAID_YES) {
        return Some(false);
    }
    if let Some(said) = known(first) {
        return Some(said);
    }
    // `ja klar`, `nein nicht wirklich`
    let mut few = first.split_whitespace();
    match (few.next(), few.count()) {
        (Some("ja" | "oui" | "sí" | "yes"), ..=3) if !holds(SAID_NO) => return Some(true),
        (Some("si"), ..=3) if first.contains("claro") => return Some(true),
        (Some("nein" | "non"), ..=3) if !holds(SAID_YES) => return Some(false),
        _ => {}
    }
    let predicate = SUBJECTS
        .iter()
        .find_map(|s| first.strip_prefix(s)?.strip_prefix(' '));
    match predicate.or_else(|| predicated(first)) {
        Some(said) if TRUE.contains(&said) => Some(true),
        Some(said) if FALSE.contains(&said) => Some(false),
        _ if first.ends_with("würde ich verneinen") => Some(false),
        _ if first.ends_with("würde ich bejahen") => Some(true),
        _ => None,
    }
}

/// Returns the predicate of a short statement: `that statement is incorrect`.
fn predicated(first: &str) -> Option<&str> {
    const THINGS: &[&str] = &[
        "statement",
        "claim",
        "assertion",
        "proposition",
        "hypothesis",
        "assumption",
        "premise",
        "conclusion",
        "answer",
        "aussage",
        "behauptung",
        "annahme",
        "these",
        "affirmation",
        "assertion",
        "hypothèse",
        "proposition",
        "énoncé",
        "afirmación",
        "hipótesis",
        "suposición",
        "proposición",
        "enunciado",
    ];
    let (subject, said) = [" is ", " ist ", " est ", " es "]
        .iter()
        .find_map(|copula| first.split_once(copula))?;
    let thing = subject.split_whitespace().next_back()?;
    (THINGS.contains(&thing) && subject.split_whitespace().count() <= 3).then_some(said)
}

/// Returns whether a sentence is a courtesy to the reader, with no answer: an offer, a wish, a counter-question.
pub(super) fn is_courtesy(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    [
        "let me know",
        "feel free",
        "i can also",
        "i could also",
        "if you need",
        "if you want",
        "if you would like",
        "if you'd like",
        "hope this helps",
        "hope that helps",
        "happy to help",
        "glad to",
        "do you want me",
        "would you like me",
        "shall i",
        "any questions",
        "further questions",
        "anything else",
        "happy to elaborate",
        "sag bescheid",
        "lass mich wissen",
        "lassen sie mich wissen",
        "gerne",
        "wenn du möchtest",
        "wenn sie möchten",
        "weitere fragen",
        "melde dich",
        "hoffe, das hilft",
        "falls du",
        "falls sie",
        "n'hésite",
        "dites-moi",
        "dis-moi",
        "si vous voulez",
        "si tu veux",
        "si vous souhaitez",
        "j'espère que cela",
        "je peux aussi",
        "souhaitez-vous",
        "autres questions",
        "avísame",
        "hazme saber",
        "si quieres",
        "si necesitas",
        "si deseas",
        "espero que",
        "puedo también",
        "también puedo",
        "no dudes",
        "otras preguntas",
        "如果您",
        "如果你需要",
        "如果需要",
        "如有",
        "希望这",
        "请告诉我",
        "随时",
        "还有什么",
        "需要我",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_say_yes_or_no_only_as_a_whole() {
        for (text, said) in [
            ("Absolutely.", Some(true)),
            ("Absolutely not!", Some(false)),
            ("I don’t think so, since it leaks.", Some(false)),
            ("Auf keinen Fall.", Some(false)),
            ("Bien sûr que non.", Some(false)),
            ("Por supuesto", Some(true)),
            ("当然不是。", Some(false)),
            ("Sure thing is that it fails", None),
            ("It is not clear", None),
            ("Never mind", None),
        ] {
            assert_eq!(yes_or_no(text), said, "{text}");
        }
    }
}
