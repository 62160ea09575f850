//! Detects whether a text without yes or no is for or against the question: `I would advise against it`, `Go ahead`.
//!
//! Only words that refer back to the question count (`it`, `that`, or none): whether `Do not ship on Friday` says yes
//! or no depends on a question that is not available here.

use super::clauses::{self, Role};
use super::cues;

const FOR: &[&str] = &[
    "safely go ahead",
    "unbesorgt machen",
    "y aller sans crainte",
    "faites-le",
    "hacedlo",
    "hacerlo sin miedo",
    "放心去做",
    "做吧",
    "这边同意",
    "go ahead",
    "go for it",
    "do it",
    "i would do it",
    "i'd do it",
    "i would do that",
    "i'd do that",
    "i'm for it",
    "i am in favor",
    "in favor of it",
    "in favour of it",
    "no reason not to",
    "no objection",
    "no objections",
    "i would recommend it",
    "i'd recommend it",
    "i recommend it",
    "i support it",
    "i support this",
    "i approve",
    "approved",
    "green light",
    "thumbs up",
    "looks good to me",
    "sounds good",
    "it's worth it",
    "it is worth it",
    "it makes sense",
    "by all means",
    "that would be fine",
    "that is fine",
    "that's fine",
    "it is safe",
    "it's safe",
    "it is possible",
    "that is possible",
    "that's possible",
    "it works",
    "it is true",
    "this holds",
    "it holds",
    "dafür spricht",
    "ich bin dafür",
    "spricht nichts dagegen",
    "nichts dagegen",
    "mach das",
    "macht das",
    "machen sie das",
    "das geht",
    "das lohnt sich",
    "das ist möglich",
    "das ist sicher",
    "ich empfehle es",
    "das passt",
    "ich würde es tun",
    "ich würde es machen",
    "allez-y",
    "vas-y",
    "je suis pour",
    "rien ne s'y oppose",
    "je le recommande",
    "c'est possible",
    "je le ferais",
    "ça vaut le coup",
    "adelante",
    "hazlo",
    "estoy a favor",
    "lo haría",
    "lo recomiendo",
    "es posible",
    "vale la pena",
    "merece la pena",
    "没问题",
    "我同意",
    "我赞成",
    "值得",
    "推荐这样做",
    "建议这样做",
    "可行",
    "去做吧",
    "同意",
    "支持",
];
const AGAINST: &[&str] = &[
    "i'd wait",
    "i would wait",
    "vote against",
    "isn't worth it",
    "is not worth it",
    "should not be merged",
    "würde noch warten",
    "würde damit noch warten",
    "damit noch warten",
    "stimme dagegen",
    "lohnt sich nicht",
    "j'attendrais",
    "n'en vaut pas la peine",
    "vote contre",
    "esperaría",
    "voto en contra",
    "再等",
    "投反对票",
    "不应该合并",
    "坚决不要",
    "advise against",
    "advise strongly against",
    "recommend against",
    "against it",
    "i wouldn't",
    "i would not",
    "not recommended",
    "don't recommend it",
    "do not recommend it",
    "not advisable",
    "not a good idea",
    "bad idea",
    "terrible idea",
    "don't do it",
    "do not do it",
    "don't do that",
    "do not do that",
    "please don't",
    "i'd avoid it",
    "avoid it",
    "better not",
    "i'd rather not do",
    "not worth it",
    "hold off",
    "i'd hold off",
    "not possible",
    "impossible",
    "not safe",
    "unsafe",
    "not true",
    "not the case",
    "not correct",
    "not allowed",
    "not permitted",
    "is forbidden",
    "is prohibited",
    "nicht erlaubt",
    "nicht gestattet",
    "verboten",
    "untersagt",
    "n'est pas autorisé",
    "n'est pas permis",
    "interdit",
    "no está permitido",
    "no se permite",
    "está prohibido",
    "不允许",
    "禁止",
    "unfortunately not",
    "sadly not",
    "not really",
    "i object",
    "i'm against",
    "i am against",
    "not yet",
    "thumbs down",
    "hard pass",
    "rejected",
    "not possible",
    "cannot be done",
    "can't be done",
    "rate ich ab",
    "rate davon ab",
    "rate dringend ab",
    "abzuraten",
    "davon abraten",
    "davon würde ich abraten",
    "würde davon abraten",
    "würde ich davon abraten",
    "ich würde es nicht",
    "würde ich nicht",
    "lieber nicht",
    "besser nicht",
    "nicht empfehlenswert",
    "keine gute idee",
    "schlechte idee",
    "nicht ratsam",
    "nicht möglich",
    "geht nicht",
    "das lohnt sich nicht",
    "leider nicht",
    "ich bin dagegen",
    "nicht zulässig",
    "lass es",
    "lasst es",
    "finger weg",
    "je déconseille",
    "je le déconseille",
    "déconseillé",
    "je ne le ferais pas",
    "ne le ferais pas",
    "mauvaise idée",
    "pas une bonne idée",
    "vaut mieux pas",
    "mieux vaut éviter",
    "je suis contre",
    "pas possible",
    "malheureusement pas",
    "pas vraiment",
    "à éviter",
    "surtout pas",
    "desaconsejo",
    "no lo haría",
    "no lo recomiendo",
    "no es recomendable",
    "mala idea",
    "no es buena idea",
    "mejor no",
    "estoy en contra",
    "no es posible",
    "no vale la pena",
    "no merece la pena",
    "lamentablemente no",
    "no realmente",
    "不建议",
    "不推荐",
    "不应该",
    "不应当",
    "不要",
    "不值得",
    "不可行",
    "不可取",
    "不赞成",
    "不同意",
    "不支持",
    "最好不要",
    "不行",
    "不是好主意",
    "不宜",
    "不妥",
    "不能",
    "不可以",
    "恐怕不",
    "不太",
    "并非",
    "没必要",
    "不必",
];

/// Phrases that affirm their clause.
const SURELY: &[&str] = &[
    "of course",
    "natürlich",
    "selbstverständlich",
    "bien sûr",
    "évidemment",
    "bien entendu",
    "por supuesto",
    "claro que",
    "desde luego",
    "当然",
];
const NOT: &[&str] = &[
    "not", "wouldn't", "can't", "cannot", "don't", "doesn't", "isn't", "won't", "nicht", "kein*",
    "pas", "ne", "no", "non", "nunca",
];

/// Parses a verb without a complement: `You can't.`, `It does.`
fn elliptical(lower: &str) -> Option<bool> {
    const SUBJECTS: &[&str] = &[
        "you", "it", "they", "i", "we", "he", "she", "this", "that", "yes", "no",
    ];
    const VERBS: &[&str] = &[
        "can", "could", "does", "do", "did", "is", "are", "was", "will", "would", "should", "has",
        "have", "may", "must",
    ];
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphabetic() && c != '\'')
        .filter(|w| !w.is_empty())
        .collect();
    let (subject, verb, not) = match words.as_slice() {
        [subject, verb] => (subject, *verb, false),
        [subject, verb, "not"] => (subject, *verb, true),
        _ => return None,
    };
    if !SUBJECTS.contains(subject) {
        return None;
    }
    match verb {
        "can't" | "cannot" | "won't" => Some(false),
        verb => match verb.strip_suffix("n't") {
            Some(verb) => VERBS.contains(&verb).then_some(false),
            None => VERBS.contains(&verb).then_some(!not),
        },
    }
}

/// Returns whether everything a text says about the question is for it (`true`) or against it.
pub(super) fn of(text: &str) -> Option<bool> {
    let mut stance: Option<bool> = None;
    let advised = advice(text);
    for sentence in clauses::sentences(text) {
        if sentence.asks() {
            continue;
        }
        let lower = sentence.text.to_lowercase().replace('’', "'");
        if cues::has(&lower, cues::UNDECIDED)
            || cues::has(&lower, cues::CANNOT_CHOOSE)
            || cues::has(
                &lower,
                &[
                    "not necessarily",
                    "nicht unbedingt",
                    "pas forcément",
                    "no necesariamente",
                    "不一定",
                ],
            )
        {
            return None;
        }
        for clause in &sentence.clauses {
            match clause.role {
                Role::Condition | Role::Otherwise => return None,
                Role::Concession | Role::Report => continue,
                _ => {}
            }
            let surely = SURELY.iter().any(|w| clauses::begins(&clause.lower, w));
            // `You can't, I'm afraid: …`
            let first = std::ptr::eq(clause, &sentence.clauses[0]);
            let own = clause.lower.starts_with("i ") || clause.lower.starts_with("i'");
            let alone = sentence.clauses.len() == 1 || first && !own;
            let short = elliptical(&clause.lower).filter(|_| alone);
            if surely || short.is_some() {
                let han = clause.lower.contains(['不', '没']);
                let here = short.unwrap_or(!cues::has(&clause.lower, NOT) && !han);
                if stance.is_some_and(|before| before != here) {
                    return None;
                }
                stance = Some(here);
                continue;
            }
            let here = match (
                cues::has(&clause.lower, FOR),
                cues::has(&clause.lower, AGAINST),
            ) {
                (_, true) => false,
                (true, false) => true,
                _ => continue,
            };
            if stance.is_some_and(|before| before != here) {
                return None;
            }
            stance = Some(here);
        }
    }
    match (stance, advised) {
        (Some(one), Some(two)) if one != two => None,
        (one, two) => one.or(two),
    }
}

/// Returns the side of a first sentence that calls the proposal of the question good or bad: `That would be a mistake.`,
/// `You'd be mad not to.` Only the conditional refers to a proposal: `It is risky` may answer `Is it risky?`
fn advice(text: &str) -> Option<bool> {
    const PROPOSES: &[&str] = &[
        "that would be",
        "that would not be",
        "that wouldn't be",
        "it would not be",
        "it wouldn't be",
        "ce ne serait",
        "no sería",
        "eso no sería",
        "that'd be",
        "it would be",
        "it'd be",
        "this would be",
        "doing so would be",
        "you'd be",
        "you would be",
        "i'd be",
        "das wäre",
        "dies wäre",
        "es wäre",
        "du wärst",
        "sie wären",
        "ce serait",
        "ça serait",
        "cela serait",
        "tu serais",
        "vous seriez",
        "sería",
        "eso sería",
        "serías",
        "那会是",
        "这会是",
        "那就是",
    ];
    const GOOD: &[&str] = &[
        "wise",
        "smart",
        "sensible",
        "good",
        "great",
        "reasonable",
        "sound",
        "prudent",
        "klug",
        "sinnvoll",
        "vernünftig",
        "gut",
        "gute",
        "richtig",
        "sage",
        "raisonnable",
        "judicieux",
        "bien",
        "bonne",
        "bon",
        "sensato",
        "prudente",
        "bueno",
        "buena",
        "razonable",
        "明智",
        "好主意",
    ];
    const BAD: &[&str] = &[
        "mistake",
        "error",
        "unwise",
        "foolish",
        "stupid",
        "reckless",
        "crazy",
        "mad",
        "insane",
        "madness",
        "irresponsible",
        "premature",
        "negligent",
        "a bad",
        "a terrible",
        "a waste",
        "fehler",
        "leichtsinnig",
        "fahrlässig",
        "verrückt",
        "dumm",
        "unklug",
        "verfrüht",
        "wahnsinn",
        "falsch",
        "erreur",
        "imprudent",
        "fou",
        "folle",
        "folie",
        "bête",
        "irresponsable",
        "prématuré",
        "error",
        "un error",
        "imprudente",
        "loco",
        "loca",
        "locura",
        "tonto",
        "prematuro",
        "irresponsable",
        "错误",
        "不明智",
        "冒险",
    ];
    // A proposal is judged at the beginning.
    const HEAD_BYTES_MAX: usize = 200;
    let head = &text[..text.floor_char_boundary(HEAD_BYTES_MAX)];
    let start = head.trim_start_matches(|c: char| !c.is_alphanumeric());
    let start = start.to_lowercase().replace('’', "'");
    if !PROPOSES.iter().any(|w| start.starts_with(w)) {
        return None;
    }
    let first = clauses::sentences(head).into_iter().next()?;
    let lower = first.clauses.first()?.lower.clone();
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let proposes = PROPOSES.iter().any(|w| clauses::begins(bare, w));
    let open = first.has(Role::Condition) || first.has(Role::Otherwise) || first.asks();
    let good = match (cues::has(bare, GOOD), cues::has(bare, BAD)) {
        (true, false) => true,
        (false, true) => false,
        _ => return None,
    };
    let denials = cues::places(bare, NOT).count();
    // French `ne … pas` denies once.
    let denials = denials - usize::from(cues::has(bare, &["ne"]) && denials > 1);
    (proposes && !open && denials <= 1).then_some(good == (denials == 0))
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn a_text_is_for_or_against_where_it_points_back() {
        for (text, stance) in [
            ("I would advise against it.", Some(false)),
            ("Go ahead.", Some(true)),
            ("I see no reason not to.", Some(true)),
            ("Davon rate ich ab.", Some(false)),
            ("Je ne le ferais pas.", Some(false)),
            ("No lo recomiendo.", Some(false)),
            ("不建议这样做。", Some(false)),
            ("You should not deploy on a Friday.", None),
            ("Go ahead if the tests pass.", None),
            ("Not necessarily.", None),
            ("Would you do it?", None),
        ] {
            assert_eq!(of(text), stance, "{text}");
        }
    }
}
