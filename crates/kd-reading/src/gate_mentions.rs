//! Mentions that do not answer, however they are worded. Input: the account of a reply and one mention in it.

use super::candidates::{Candidate, Standing};
use super::clauses::Role;
use super::cues;
use super::gate_account::Account;
use super::language::is_han;

/// Returns whether an option is only looked at, compared or tried.
pub(super) fn is_examined(account: &Account, one: &Candidate) -> bool {
    const EXAMINES: &[&str] = &[
        "look at",
        "keep an eye on",
        "im auge",
        "gardez un œil",
        "perdáis de vista",
        "pierdas de vista",
        "关注",
        "didn't make it",
        "dropped",
        "ruled out",
        "minus",
        "scheiter*",
        "écarté",
        "se quedó fuera",
        "落选",
        "淘汰",
        "出局",
        "tomorrow",
        "morgen",
        "demain",
        "mañana",
        "明天",
        "looking at",
        "compare",
        "comparing",
        "compared",
        "reconsider",
        "revisit",
        "re-examine",
        "try",
        "evaluate",
        "vergleichen",
        "vergleiche",
        "verglichen",
        "probiert",
        "probieren",
        "noch einmal prüfen",
        "noch einmal ansehen",
        "sehen wir uns",
        "regardons",
        "comparer",
        "comparons",
        "réexamin*",
        "essayez",
        "essayer",
        "veamos",
        "comparar",
        "probad",
        "probar",
        "volvería a mirar",
        "volver a mirar",
        "reconsider*",
        "来看看",
        "再看看",
        "相比",
        "试用",
        "试试",
        "重新考虑",
    ];
    const DROPPED: [&str; 3] = ["落选", "淘汰", "出局"];
    let behind = account
        .sentences
        .get(one.place)
        .and_then(|s| s.text.get(one.end..));
    let dropped = behind.is_some_and(|text| DROPPED.iter().any(|w| text.contains(w)));
    !account.numbers && (dropped || cues::has(&account.around(one), EXAMINES))
}

/// Returns whether an option belongs to a relative clause about somebody else: `the team that chose tea`.
pub(super) fn is_relative(account: &Account, one: &Candidate) -> bool {
    const RELATIVE: &[&str] = &[
        "that chose",
        "that uses",
        "that used",
        "that picked",
        "who chose",
        "who use",
        "who uses",
        "who used",
        "who picked",
        "who prefer",
        "who proposed",
        "qui a pris",
        "qui a choisi",
        "qui utilise*",
        "qui ont choisi",
        "que eligió",
        "que usa",
        "que usan",
        "que eligieron",
        "que tomó",
        "das letzte team",
        "dernière équipe",
        "último equipo",
        "last team",
        "nobody",
        "niemand",
        "personne ne",
        "nadie",
        "提议",
        "was the obvious",
        "lag nahe",
        "était le candidat",
        "era el candidato",
    ];
    let Some(sentence) = account.sentences.get(one.place) else {
        return false;
    };
    let behind = sentence.text.get(one.end..).unwrap_or_default();
    let before = sentence.text.get(..one.start).unwrap_or_default();
    // `选茶的团队后悔了`
    let mut rest = behind.chars();
    let han = before.ends_with(['选', '用', '推', '提', '议'])
        && rest.next() == Some('的')
        && rest.next().is_some_and(is_han);
    let earlier = sentence.text.contains("之前，") && !before.contains('现');
    !account.numbers && (han || earlier || cues::has(&account.around(one), RELATIVE))
}

/// Returns whether a number is only a bound: `more than 861`.
pub(super) fn is_bounded(account: &Account, one: &Candidate) -> bool {
    const LEADS: &[&str] = &[
        "more than",
        "less than",
        "fewer than",
        "over",
        "under",
        "mehr als",
        "weniger als",
        "über",
        "unter",
        "plus de",
        "moins de",
        "más de",
        "menos de",
        "超过",
        "不到",
    ];
    const WORDS_MAX: usize = 4;
    let Some(sentence) = account.sentences.get(one.place).filter(|_| account.numbers) else {
        return false;
    };
    let before = sentence
        .text
        .get(..one.start)
        .unwrap_or_default()
        .to_lowercase();
    let behind = sentence.text.get(one.end..).unwrap_or_default();
    let short = sentence.text.split_whitespace().count() <= 2 * WORDS_MAX;
    let leads = cues::places(&before, LEADS)
        .last()
        .is_some_and(|(_, end)| before[end..].trim().is_empty());
    let han = before.ends_with('比') && behind.trim_start().starts_with(['多', '少']);
    // `Add 40 if you want a margin.`
    let case = sentence.has(Role::Condition)
        && account
            .candidates
            .iter()
            .any(|c| c.place < one.place && c.standing > Standing::Explained);
    const MORE: &[&str] = &[
        "more", "mehr", "de plus", "más", "fewer", "weniger", "de moins", "menos",
    ];
    let more = cues::places(&behind.to_lowercase(), MORE).next();
    let more = more.is_some_and(|(at, end)| {
        behind[..at].trim().is_empty()
            && !behind[end..]
                .trim_start()
                .starts_with(char::is_alphanumeric)
    });
    short && leads || han || case || more
}

/// Returns whether a value is in a sentence in brackets.
pub(super) fn is_aside(account: &Account, one: &Candidate) -> bool {
    one.place > 0
        && account
            .sentences
            .get(one.place)
            .is_some_and(|s| s.is_aside())
}

/// Returns whether a value is part of a list joined by commas and conjunctions.
pub(super) fn is_listed(account: &Account, one: &Candidate) -> bool {
    const JOINS: &[&str] = &[
        "and", "or", "und", "oder", "et", "ou", "y", "e", "o", "the", "vs", "versus", "和", "与",
        "或", "及", "以及", "或者",
    ];
    const VERSUS: &[&str] = &["versus", "vs", "against", "gegen", "contre", "contra", "对"];
    const BYTES_MAX: usize = 16;
    let joined = |text: &str| {
        let mut words = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|w| !w.is_empty());
        let stops = text.contains([
            '.', ':', ';', '>', '(', '（', '。', '：', '；', '→', '-', '–', '—',
        ]);
        text.len() <= BYTES_MAX
            && !text.is_empty()
            && !stops
            && words.all(|w| {
                let word = w.to_lowercase();
                JOINS.contains(&word.as_str()) || VERSUS.contains(&word.as_str())
            })
    };
    let text = account.sentences.get(one.place).map(|s| s.text.as_str());
    let text = text.unwrap_or_default();
    !account.numbers
        && account.candidates.iter().any(|r| {
            let between = match r.start < one.start {
                true => text.get(r.end..one.start),
                false => text.get(one.end..r.start),
            };
            let contest = between.is_some_and(|t| cues::has(&t.to_lowercase(), VERSUS));
            r.place == one.place
                && r.own != one.own
                && (r.standing > Standing::Rejected || contest)
                && between.is_some_and(joined)
        })
}

/// Returns whether the value is the choice of a third person.
pub(super) fn is_foreign(account: &Account, one: &Candidate) -> bool {
    !account.numbers && tells_of_others(&account.around(one))
}

/// Returns whether words tell what somebody else prefers: `My colleague prefers it`, not `I prefer it`.
pub(super) fn tells_of_others(lower: &str) -> bool {
    const PREFERS: &[&str] = &[
        "prefers",
        "prefer",
        "favours",
        "favors",
        "recommends",
        "pushes",
        "empfiehlt",
        "recomienda",
        "likes",
        "wants",
        "swears by",
        "swear by",
        "bevorzugt",
        "bevorzugen",
        "mag",
        "mögen",
        "schwört auf",
        "schwören auf",
        "wirbt für",
        "préfère",
        "préfèrent",
        "vante",
        "aime",
        "aiment",
        "veut",
        "veulent",
        "prefiere",
        "prefieren",
        "quiere",
        "quieren",
        "更喜欢",
        "plädieren",
        "plädiert",
        "argue for",
        "argues for",
        "plaideront",
        "plaide pour",
        "defenderán",
        "defienden",
        "主张",
        "偏爱",
        "力推",
        "赞不绝口",
    ];
    const FIRST: &[&str] = &[
        "i", "i'd", "i'm", "we", "ich", "wir", "je", "j'*", "nous", "yo", "nosotros", "我", "我们",
    ];
    const PEOPLE: &[&str] = &["同事", "朋友", "老板", "经理", "供应商", "有人", "团队"];
    let speaks = cues::has(lower, FIRST) && !cues::has(lower, PEOPLE);
    cues::has(lower, PREFERS) && !speaks
}

/// Returns whether the clause of a value ranks it behind another one.
pub(super) fn is_ranked(account: &Account, candidate: &Candidate) -> bool {
    const SECOND: &[&str] = &[
        "second choice",
        "second-best",
        "second best",
        "runner-up",
        "plan b",
        "fallback",
        "backup",
        "number two",
        "zweite wahl",
        "zweitbeste*",
        "platz zwei",
        "notnagel",
        "second choix",
        "deuxième choix",
        "deuxième position",
        "segunda opción",
        "segundo lugar",
        "第二选择",
        "came second",
        "second place",
        "zweiten platz",
        "arrivé deuxième",
        "quedó segundo",
        "排在第二",
        "第二名",
        "备选",
        "其次",
    ];
    cues::has(&account.words(candidate, true), SECOND)
}
