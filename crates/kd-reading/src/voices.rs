//! Finds whose view a clause gives: the author's current one, or a reported, earlier or hypothetical one. A mention of
//! an option in such another view chooses nothing.

use super::clauses::{self, Role, Sentence};
use super::cues;
use super::options::Mention;

/// Verbs of opinion in the third person.
const SAYS: &[&str] = &[
    "says",
    "thinks",
    "believes",
    "recommends",
    "wants",
    "argues",
    "insists",
    "advises",
    "advocates",
    "tells",
    "swears",
    "told",
    "votes",
    "recommended",
    "argued",
    "insisted",
    "sagt",
    "meint",
    "empfiehlt",
    "glaubt",
    "behauptet",
    "rät",
    "will",
    "findet",
    "schwört",
    "dit",
    "pense",
    "croit",
    "veut",
    "conseille",
    "préconise",
    "affirme",
    "dice",
    "cree",
    "quiere",
    "opina",
    "aconseja",
    "afirma",
    "sostiene",
    "dijo",
    "dijeron",
    "pensó",
    "recomendó",
    "sagte",
    "meinte",
    "empfahl",
    "disait",
];
/// The plural forms.
const SAY: &[&str] = &[
    "say",
    "think",
    "believe",
    "recommend",
    "argue",
    "insist",
    "advise",
    "advocate",
    "swear",
    "tell",
    "suggest",
    "sagen",
    "meinen",
    "empfehlen",
    "glauben",
    "disent",
    "pensent",
    "recommandent",
    "conseillent",
    "dicen",
    "creen",
    "recomiendan",
    "opinan",
    "recommande",
    "recomienda",
];
/// Words between a subject and its verb.
const BETWEEN: &[&str] = &[
    "would",
    "will",
    "might",
    "may",
    "could",
    "also",
    "still",
    "often",
    "usually",
    "always",
    "just",
    "probably",
    "definitely",
    "strongly",
    "really",
    "normally",
    "typically",
    "generally",
    "personally",
    "honestly",
    "therefore",
    "clearly",
    "only",
    "do",
    "did",
    "now",
    "do",
    "can",
    "must",
    "should",
    "both",
    "all",
    "even",
    "me",
    "you",
    "us",
    "te",
    "le",
    "vous",
    "would've",
    "have",
    "had",
    "not",
    "don't",
    "wouldn't",
    "nous",
    "nos",
    "lo",
    "la",
    "les",
    "los",
];
/// Words before a verb of opinion that attribute it to the author.
const OWN_SUBJECTS: &[&str] = &[
    "i",
    "i'd",
    "i'll",
    "i've",
    "we",
    "we'd",
    "we'll",
    "to",
    "and",
    "please",
    "let's",
    "so",
    "then",
    "therefore",
    "you",
    "if",
    "dare",
    "ich",
    "wir",
    "je",
    "j'ai",
    "nous",
    "yo",
    "nosotros",
    "but",
    "und",
    "et",
    "y",
    "who",
    "that",
    "which",
    "zu",
    "würde",
    "de",
    "or",
    "kann",
    "muss",
    "möchte",
    "darf",
    "lässt",
    "on",
    "se",
    "man",
];
/// Groups whose opinion follows after `who`.
const GROUPS: &[&str] = &[
    "those",
    "voices",
    "people",
    "members",
    "others",
    "some",
    "many",
    "colleagues",
    "experts",
    "critics",
    "friends",
    "anyone",
    "everyone",
];
/// Subjects that are the author's own evidence.
const EVIDENCE: &[&str] = &[
    "gut",
    "experience",
    "instinct",
    "evidence",
    "data",
    "numbers",
    "math",
    "everything",
    "head",
    "heart",
    "analysis",
    "requirement",
    "requirements",
    "bauch",
    "gefühl",
    "erfahrung",
    "alles",
    "verstand",
    "instinct",
    "expérience",
    "tout",
    "experiencia",
    "instinto",
    "todo",
    "it",
    "this",
    "question",
    "answer",
    "text",
    "draft",
    "which",
    "that",
    "nothing",
    "frage",
    "es",
    "das",
    "ça",
    "cela",
    "esto",
    "eso",
    "rules",
    "one",
];

/// Phrases for the author's earlier view, or a view held for the sake of argument.
const RESERVES: &[&str] = &[
    "used to",
    "was going to",
    "were going to",
    "was about to",
    "would have",
    "i'd have",
    "would've",
    "had said",
    "years ago",
    "a year ago",
    "last year",
    "last time",
    "no longer",
    "take back",
    "withdraw",
    "first answer",
    "previous answer",
    "earlier answer",
    "wish i could",
    "love to say",
    "sake of argument",
    "suppose",
    "imagine",
    "in theory",
    "ideal world",
    "perfect world",
    "the case for",
    "obvious answer is",
    "you might think",
    "one might think",
    "you may think",
    "you'd think",
    "one would think",
    "might be tempted",
    "at first glance",
    "at first sight",
    "popular opinion",
    "assumes that",
    "assume that",
    "hätte ich",
    "ich hätte",
    "wollte ich",
    "ich wollte",
    "vor einem jahr",
    "letztes jahr",
    "damals",
    "in der theorie",
    "theoretisch",
    "im idealfall",
    "angenommen",
    "man könnte",
    "könnte man",
    "auf den ersten blick",
    "nehme ich zurück",
    "man könnte meinen",
    "j'aurais",
    "j'allais",
    "autrefois",
    "l'an dernier",
    "l'année dernière",
    "il y a un an",
    "en théorie",
    "dans l'idéal",
    "sur le papier",
    "supposons",
    "on pourrait",
    "à première vue",
    "je retire",
    "habría",
    "hubiera",
    "iba a",
    "el año pasado",
    "hace un año",
    "en teoría",
    "sobre el papel",
    "supongamos",
    "se podría",
    "a primera vista",
    "retiro",
    "以前",
    "本来想",
    "曾经",
    "理论上",
    "假设",
    "去年",
    "说用",
    "会说",
];
/// Words for an earlier time at the beginning of a clause, and words after them that change their meaning.
const EARLIER: &[(&str, &[&str])] = &[
    ("früher", &["oder"]),
    ("formerly", &[]),
    ("previously", &[]),
    (
        "before",
        &["the", "you", "we", "any", "a", "it", "that", "choosing"],
    ),
    ("avant", &["de", "d", "tout", "que", "le", "la", "l"]),
    ("antes", &["de", "que"]),
    ("had you asked", &[]),
    ("if you had asked", &[]),
    ("hättest du", &[]),
];
/// Words that return to the author's current view.
const TODAY: &[&str] = &[
    "now",
    "today",
    "these days",
    "nowadays",
    "heute",
    "jetzt",
    "inzwischen",
    "maintenant",
    "aujourd'hui",
    "ahora",
    "hoy",
    "现在",
    "如今",
    "i say",
    "i'd say",
    "ich sage",
    "sage ich",
    "je dis",
    "moi je",
    "yo digo",
    "我选",
    "我推荐",
    "i recommend",
    "i'd pick",
    "i'd go with",
    "i choose",
    "i pick",
    "ich empfehle",
    "je recommande",
    "recomiendo",
];
/// Words of agreement with the view just reported.
const AGREES: &[&str] = &[
    "i agree",
    "i do too",
    "so do i",
    "and i",
    "they're right",
    "they are right",
    "he's right",
    "he is right",
    "she's right",
    "she is right",
    "rightly",
    "rightly so",
    "correctly",
    "with good reason",
    "for good reason",
    "same here",
    "me too",
    "ich stimme zu",
    "zu recht",
    "sehe ich auch so",
    "stimme dem zu",
    "ich auch",
    "je suis d'accord",
    "à raison",
    "ils ont raison",
    "elle a raison",
    "il a raison",
    "avec raison",
    "moi aussi",
    "estoy de acuerdo",
    "con razón",
    "tiene razón",
    "tienen razón",
    "yo también",
    "我同意",
    "我也",
    "说得对",
    "是对的",
];
/// Words that agree with nothing.
const DENIES: &[&str] = &[
    "not", "don't", "doesn't", "isn't", "aren't", "can't", "won't", "wouldn't", "never", "no",
    "nicht", "kein*", "nie", "pas", "plus", "jamais", "nunca", "ya no", "不", "没",
];
/// Phrases that retract the previous sentence.
const RETRACTS: &[&str] = &[
    "disagree",
    "they're wrong",
    "they are wrong",
    "he's wrong",
    "she's wrong",
    "is wrong",
    "was wrong",
    "that's a mistake",
    "that is a mistake",
    "nonsense",
    "withdraw",
    "take it back",
    "take that back",
    "doubt it",
    "doubt that",
    "don't believe it",
    "don't believe that",
    "don't buy it",
    "don't buy that",
    "just kidding",
    "kidding",
    "not convinced",
    "not persuaded",
    "not so sure",
    "sehe das anders",
    "sehe ich anders",
    "nicht mehr",
    "halte ich für falsch",
    "halte das für falsch",
    "unsinn",
    "überzeugt bin ich nicht",
    "bin nicht überzeugt",
    "nicht überzeugt",
    "glaube ich nicht",
    "stimmt nicht",
    "pas d'accord",
    "plus maintenant",
    "c'est une erreur",
    "une erreur",
    "pas convaincu*",
    "n'en suis pas sûr*",
    "n'y crois pas",
    "absurde",
    "no estoy de acuerdo",
    "ya no",
    "es un error",
    "no me convence",
    "no estoy seguro",
    "no lo creo",
    "tontería",
    "不同意",
    "现在不",
    "这是错",
    "不认同",
    "不这么认为",
    "不敢苟同",
];
/// Complete sentences that retract the previous one.
const RETRACTS_ALONE: &[&str] = &[
    "it isn't",
    "it is not",
    "it's not",
    "it was not",
    "it wasn't",
    "they aren't",
    "not any more",
    "not anymore",
    "i wouldn't",
    "i would not",
    "i do not",
    "i don't",
    "no longer",
    "or not",
    "not me",
    "not so",
    "nicht mehr",
    "heute nicht mehr",
    "ich nicht",
    "plus maintenant",
    "plus aujourd'hui",
    "pas moi",
    "ya no",
    "yo no",
    "no es así",
    "现在不会了",
    "不是这样",
];
/// Maximum number of words in a sentence that retracts or agrees.
const WORDS_MAX: usize = 8;

/// Returns whether a clause's view of an option is not the author's current one.
pub(super) fn is_reserved(sentence: &Sentence, at: usize, mentions: &[Mention]) -> bool {
    let only = |c: &clauses::Clause| {
        c.role == Role::Condition
            && (cues::has(&c.lower, cues::ONLY) || is_supposed(&sentence.clauses[at].lower))
    };
    if sentence.clauses.iter().skip(at + 1).take(2).any(only) {
        return true;
    }
    for place in (0..=at).rev() {
        let clause = &sentence.clauses[place];
        let lower = clause.lower.as_str();
        if place < at
            && mentions
                .iter()
                .any(|m| (clause.start..clause.end).contains(&m.start))
        {
            return false;
        }
        if cues::has(lower, TODAY) && !cues::has(lower, AGAINST_TODAY) {
            return false;
        }
        if place < at && clause.role == Role::Condition || is_threshold(sentence, place, mentions) {
            return true;
        }
        if cues::has(lower, RESERVES) || is_earlier(lower) || is_reported(lower) {
            return !sentence.clauses[at..].iter().any(|c| agrees(&c.lower));
        }
        if matches!(clause.role, Role::Contrast | Role::Conclusion) {
            return false;
        }
    }
    false
}

/// Returns whether a number in a clause is an earlier view or a hypothesis of the author.
pub(super) fn is_past(sentence: &Sentence, at: usize) -> bool {
    let told = |clause: &clauses::Clause| {
        let lower = clause.lower.as_str();
        (cues::has(lower, RESERVES) || is_earlier(lower)) && !cues::has(lower, TODAY)
    };
    let opener = at.checked_sub(1).and_then(|b| sentence.clauses.get(b));
    let opener = opener.filter(|c| !c.lower.contains(|c: char| c.is_ascii_digit()));
    let own = &sentence.clauses[at];
    let turned =
        cues::has(&own.lower, TODAY) || matches!(own.role, Role::Contrast | Role::Conclusion);
    told(own) || !turned && opener.is_some_and(told)
}

/// Words for today in a clause that still describes the past.
const AGAINST_TODAY: &[&str] = &[
    "until now",
    "up to now",
    "bis heute",
    "bis jetzt",
    "jusqu'à maintenant",
    "hasta ahora",
];

/// Returns whether a clause is hypothetical.
fn is_supposed(lower: &str) -> bool {
    const WOULD: &[&str] = &[
        "would be",
        "would win",
        "would get",
        "wäre",
        "serait",
        "sería",
    ];
    cues::has(lower, WOULD)
}

/// Returns whether a clause begins with a threshold that limits it: `Above 10 users`, `Bei weniger als 10 Nutzern`.
fn is_threshold(sentence: &Sentence, at: usize, mentions: &[Mention]) -> bool {
    const BOUNDS: &[&str] = &[
        "above",
        "below",
        "under",
        "over",
        "up to",
        "less than",
        "more than",
        "fewer than",
        "with less than",
        "with more than",
        "with fewer than",
        "for less than",
        "for more than",
        "for fewer than",
        "at less than",
        "at more than",
        "beyond",
        "from",
        "unter",
        "über",
        "bis",
        "bis zu",
        "ab",
        "bei weniger als",
        "bei mehr als",
        "bei unter",
        "bei über",
        "unterhalb",
        "oberhalb",
        "moins de",
        "plus de",
        "jusqu'à",
        "au-delà de",
        "à partir de",
        "en dessous de",
        "au-dessus de",
        "avec moins de",
        "avec plus de",
        "pour moins de",
        "pour plus de",
        "menos de",
        "más de",
        "hasta",
        "a partir de",
        "por encima de",
        "por debajo de",
        "con menos de",
        "con más de",
        "para menos de",
        "para más de",
    ];
    const HAN: [&str; 8] = [
        "少于", "多于", "超过", "不到", "以上", "以下", "以内", "不足",
    ];
    let clause = &sentence.clauses[at];
    if sentence.text.contains('"') {
        return false;
    }
    let named = mentions
        .iter()
        .find(|m| (clause.start..clause.end).contains(&m.start));
    let head = match named {
        Some(mention) => clause
            .lower
            .get(..mention.start - clause.start)
            .unwrap_or_default(),
        None => clause.lower.as_str(),
    };
    let bare = head.trim_start_matches(|c: char| !c.is_alphanumeric());
    // `Over three years, buying is cheaper`: a span of time.
    const SPANS: &[&str] = &["over", "über"];
    const TIMES: &[&str] = &[
        "year*", "month*", "week*", "decade*", "jahre", "monate", "wochen", "time",
    ];
    let spans = || SPANS.iter().any(|w| clauses::begins(bare, w)) && cues::has(bare, TIMES);
    let begins = BOUNDS.iter().any(|bound| clauses::begins(bare, bound)) && !spans();
    let bounded = begins || HAN.iter().any(|bound| bare.contains(bound));
    let counts =
        || bare.chars().any(|c| c.is_numeric()) || !super::numerals::spoken(bare).is_empty();
    bounded && counts()
}

fn is_earlier(lower: &str) -> bool {
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    EARLIER.iter().any(|(word, not)| {
        clauses::begins(bare, word)
            && bare[word.len()..]
                .split(|c: char| !c.is_alphanumeric())
                .find(|w| !w.is_empty())
                .is_none_or(|next| !not.contains(&next))
    })
}

/// Returns whether a clause has a verb of opinion whose subject is not the author.
fn is_reported(lower: &str) -> bool {
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
        .collect();
    words.iter().enumerate().any(|(at, word)| {
        let (one, several) = (SAYS.contains(word), SAY.contains(word));
        if !one && !several {
            return false;
        }
        let mut before = words[..at].iter().rev().filter(|w| !BETWEEN.contains(w));
        let Some(subject) = before.next() else {
            return false;
        };
        // `I wuold say`
        if before
            .next()
            .is_some_and(|w| ["i", "ich", "je", "yo"].contains(w))
        {
            return false;
        }
        // `They will …`: the modal verb is also a German verb.
        if *word == "will"
            && !words[..at]
                .iter()
                .any(|w| ["mein", "meine", "unser", "der", "die", "das"].contains(w))
        {
            return false;
        }
        // `There are voices who say no`
        if *subject == "who" {
            return words[..at].iter().any(|word| GROUPS.contains(word));
        }
        !OWN_SUBJECTS.contains(subject) && !EVIDENCE.contains(subject) && !subject.ends_with("ly")
    })
}

/// Returns whether a clause or sentence agrees with the view before it.
pub(super) fn agrees(lower: &str) -> bool {
    cues::has(lower, AGREES) && !cues::has(lower, DENIES)
}

/// Returns whether a sentence without an option agrees with the previous one.
pub(super) fn agrees_with_the_last(lower: &str) -> bool {
    is_short(lower) && agrees(lower)
}

/// Returns whether a sentence without an option retracts the previous one.
pub(super) fn retracts(lower: &str) -> bool {
    let bare = lower.trim_matches(|c: char| !c.is_alphanumeric());
    is_short(lower) && (cues::has(lower, RETRACTS) || RETRACTS_ALONE.contains(&bare))
}

/// Returns whether a clause advises against something with a verb at its end: `Von MySQL rate ich ab`, `Ich würde Kaffee
/// weglassen`.
pub(super) fn advises_against(lower: &str) -> bool {
    const DROPS: [&str; 8] = [
        "ablehnen",
        "ausschließen",
        "meiden",
        "streichen",
        "vermeiden",
        "verwerfen",
        "weglassen",
        "wegwerfen",
    ];
    let mut words = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty());
    let last = words.clone().next_back();
    if last.is_some_and(|word| DROPS.contains(&word)) {
        return cues::has(lower, &["würde", "würden", "sollte*"]) && !cues::has(lower, DENIES);
    }
    words.clone().next_back() == Some("ab")
        && words.any(|w| ["rate", "raten", "rät", "würde"].contains(&w))
}

fn is_short(lower: &str) -> bool {
    lower.split_whitespace().count() <= WORDS_MAX && lower.chars().count() <= 60
}
