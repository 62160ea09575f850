//! Uses the language of a question to read a bare reply: whether `12/10/1492` begins with the day, whether `1.440` can
//! be two numbers, and that `不需要` means no.

use super::language::{Language, is_han};
use super::number;
use std::borrow::Cow;

/// Rewrites dates such as `12/10/1492` in the order of the question's language: day first except in English.
pub fn with_days_first(reply: &str, question: &str) -> String {
    // `9.12` is a date if a Chinese question asks for one.
    if question.chars().any(is_han)
        && let Some((month, day)) = reply.trim().trim_end_matches('。').split_once('.')
        && let (Ok(month @ 1..=12), Ok(day @ 1..=31)) = (month.parse::<u8>(), day.parse::<u8>())
    {
        return format!("{month}月{day}日");
    }
    let first = matches!(
        Language::of(question),
        Language::German | Language::French | Language::Spanish
    );
    if !first {
        return reply.to_owned();
    }
    let mut out = String::with_capacity(reply.len());
    let mut run = String::new();
    // A run of digits and slashes is a date, or stays unchanged.
    for c in reply.chars().chain(['\0']) {
        if c.is_ascii_digit() || c == '/' || c == '-' && !run.is_empty() {
            run.push(c);
            continue;
        }
        let slashes = !run.contains('-');
        let parts: Vec<usize> = run.split(['/', '-']).map(str::len).collect();
        match matches!(parts.as_slice(), [1 | 2, 1 | 2, 4]) {
            true => out.push_str(&run.replace(['/', '-'], ".")),
            // `25/12`
            false if slashes && matches!(parts.as_slice(), [1 | 2, 1 | 2]) => {
                let padded: Vec<String> = run.split('/').map(|p| format!("{p:0>2}")).collect();
                out.push_str(&format!("{}.", padded.join(".")));
            }
            false => out.push_str(&run),
        }
        run.clear();
        if c != '\0' {
            out.push(c);
        }
    }
    out
}

/// Returns whether a bare number can be two numbers: `1.440` in reply to a German question, with no word to
/// disambiguate.
pub fn is_two_numbers(reply: &str, question: &str) -> bool {
    let asked = Language::of(question);
    if !matches!(
        asked,
        Language::German | Language::Spanish | Language::French
    ) || reply.contains(['{', '['])
    {
        return false;
    }
    let own = Language::of(reply);
    let here = number::numbers(reply, own);
    let there = number::numbers(reply, asked);
    // If the reply has words, its own language decides.
    let differ = here.last().map(|n| &n.key) != there.last().map(|n| &n.key);
    own == Language::English && !has_words(reply) && differ
}

/// Returns whether there are words besides numbers and a unit.
fn has_words(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphabetic());
    words.filter(|word| word.chars().count() > 3).count() > 1
}

/// Returns the side chosen by a letter, if the question offers letters for yes and no: `doable y/n`, `V ou F`, `J/N?`.
pub fn lettered_side(question: &str, reply: &str) -> Option<bool> {
    const PAIRS: [(&str, &str); 8] = [
        ("y", "n"),
        ("j", "n"),
        ("o", "n"),
        ("s", "n"),
        ("t", "f"),
        ("w", "f"),
        ("v", "f"),
        ("r", "f"),
    ];
    let said = reply
        .trim()
        .trim_matches(['.', '!', '*', '`', ')', '('])
        .to_lowercase();
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        words
            .filter(|w| !w.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let asked = words(question);
    let offers = |(yes, no): &&(&str, &str)| {
        asked.windows(2).any(|w| w[0] == *yes && w[1] == *no)
            && question.to_lowercase().contains(&format!("{yes}/{no}"))
            || asked.windows(3).any(|w| {
                w[0] == *yes && matches!(w[1].as_str(), "or" | "oder" | "ou" | "o") && w[2] == *no
            })
    };
    let (yes, no) = PAIRS.iter().find(offers)?;
    const TRUE: &str = "true wahr richtig vrai verdadero cierto";
    const FALSE: &str = "false falsch faux falso";
    let first = words(&said).into_iter().next()?;
    let is = |table: &str| table.split_whitespace().any(|w| w == first);
    match () {
        () if said == *yes || is(TRUE) => Some(true),
        () if said == *no || is(FALSE) => Some(false),
        () => None,
    }
}

/// Returns whether a question offers yes and no: `y/n`, `oui/non`, `对不对`.
pub fn offers_sides(question: &str) -> bool {
    const PAIRS: [&str; 8] = [
        "yes/no",
        "ja/nein",
        "oui/non",
        "sí/no",
        "si/no",
        "true/false",
        "wahr/falsch",
        "vrai/faux",
    ];
    let lower = question.to_lowercase();
    lettered_side(question, "n")
        .or(lettered_side(question, "f"))
        .is_some()
        || PAIRS
            .iter()
            .any(|pair| lower.replace(' ', "").contains(pair))
        || ["对不对", "是不是", "行不行", "可以吗"]
            .iter()
            .any(|end| lower.trim_end_matches(['?', '？', '。']).ends_with(end))
}

/// Returns the side given by a reply's first word, if the reply names no other: `no hace falta`, `Nein besser nicht`.
pub fn first_side(reply: &str) -> Option<bool> {
    const YES: &str = "yes yeah yep yup ja jep oui ouais sí si sip";
    const NO: &str = "no nope nop nah nein nö non nee";
    const NOT: &str = "not nicht pas kein keine nunca never";
    // `no doubt`, `no sé`, `si on attend`
    const OTHERS: &str = "puedo podría sabría tengo conozco recuerdo dispongo doubt idea problem question one matter reason way sé se sabemos lo estoy sure seulement mal plus on il vous tu no wonder importa creo hay";
    let lower = reply.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
        .collect();
    let is = |table: &str, word: &str| table.split_whitespace().any(|w| w == word);
    let (first, rest) = words.split_first()?;
    // `Don't.`, `Ahora no.`, `lieber nicht`
    const NEVER: &str = "no not don't wouldn't shouldn't nicht nein non pas";
    let open = "sure certain bad wrong idea sé only se doubt mal sicher sûr seguro problem";
    if words.len() <= 3
        && words.iter().any(|w| is(NEVER, w))
        && !words.iter().any(|w| is(YES, w) || is(open, w))
    {
        return Some(false);
    }
    let unsure = super::cues::has(&lower.replace('’', "'"), super::cues::CANNOT_CHOOSE);
    if words.len() > 14 || reply.contains(['{', '[']) || unsure {
        return None;
    }
    // `No lo es. Solo es recomendable.`
    let denies = words.len() >= 3 && words[..2] == ["no", "lo"];
    if denies
        && is("es son está están hay", words[2])
        && !words.iter().any(|w| is("pero seguro si", w))
    {
        return Some(false);
    }
    let stops = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let stops = stops
        .get(first.len()..)
        .is_some_and(|r| r.starts_with([',', '.', ';', '!', ':']));
    if !stops && rest.first().is_some_and(|w| is(OTHERS, w)) {
        return None;
    }
    let yes = is(YES, first) && !rest.iter().any(|w| is(NO, w) || is(NOT, w));
    let no = is(NO, first) && !rest.iter().any(|w| is(YES, w));
    match (yes, no) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Parses yes or no in a short Chinese statement: `不需要。`, `需要`, `没有`.
pub fn chinese_side(reply: &str) -> Option<bool> {
    let text = reply.trim();
    let text = text.trim_matches(['*', '"', '“', '”', ' ', '。', '！']);
    let mut clauses = text.split(['，', '。', '；', '！', ',', '.', ';']);
    // `…，所以不用吃。`
    let concluded = clauses.clone().next_back().and_then(|last| {
        let words = ["所以", "因此", "因而", "故", "可见"];
        words.iter().find_map(|word| last.trim().strip_prefix(word))
    });
    let first = clauses.next().and_then(|clause| side_of(text, clause));
    let last = concluded.and_then(|clause| side_of(text, clause));
    match (first, last) {
        (Some(one), Some(two)) => (one == two).then_some(one),
        (one, two) => one.or(two),
    }
}

/// Returns the side of a short Chinese clause.
fn side_of(text: &str, clause: &str) -> Option<bool> {
    const UNDECIDED: &[&str] = &["不一定", "不知道", "不确定", "不清楚", "不好说", "难说"];
    const STILL_YES: &[&str] = &["不错", "不得不", "没错", "没问题", "不仅", "不可否认"];
    const DOUBLE: &[&str] = &[
        "没有理由不",
        "没有理由反对",
        "没有理由拒绝",
        "没理由不",
        "没有异议",
        "没异议",
        "没意见",
        "没有意见",
        "不反对",
        "不会不",
        "不能不",
        "没什么不",
        "没有坏处",
        "没坏处",
    ];
    const YES: &[&str] = &[
        "需要", "应该", "应当", "可以", "能", "会", "有", "是", "对", "要", "值得", "必须",
    ];
    let clause = clause.trim();
    let clause = ["我认为", "我觉得", "我想", "个人认为", "我看"]
        .iter()
        .find_map(|own| clause.strip_prefix(own))
        .unwrap_or(clause);
    let length = clause.chars().count();
    if length == 0 || length > 8 || !clause.chars().all(is_han) {
        return None;
    }
    let starts = |words: &[&str]| words.iter().any(|w| clause.starts_with(w));
    if starts(UNDECIDED) || text.contains("还是") || text.contains('或') {
        return None;
    }
    if starts(&["不", "没", "未", "否", "非"]) {
        if starts(STILL_YES) || starts(DOUBLE) {
            return Some(true);
        }
        // `不是不可以` leaves it open.
        let again = clause
            .chars()
            .skip(1)
            .any(|c| matches!(c, '不' | '没' | '无' | '非'));
        return (!again || starts(&["不，", "不不"])).then_some(false);
    }
    let plain = !clause.contains(['不', '没', '否']) && !text.contains('但');
    (starts(YES) && plain).then_some(true)
}

/// Parses yes or no in a sentence that allows, forbids or spares what the question asks about: `They can't.` for `Can
/// they …?`, `Das ist nicht erlaubt` for `Darf ich …?`, `You don't need one` for `Do I need …?`.
pub fn modal_side(question: &str, reply: &str) -> Option<bool> {
    const ALLOWS: &str = "can could may allowed possible legal darf dürfen dürfte kann können könnte erlaubt peut peut-on peux puis-je pouvons puede puedo pueden podemos";
    const NEEDS: &str = "need needs must should have required necessary muss müssen brauche braucht brauchen soll sollte nötig faut-il dois-je doit-on doit devons necesito necesita debo debe hay hace";
    const FORBIDS: &str = "you can't|you cannot|they can't|they cannot|he can't|she can't|it can't|it cannot|we can't|one can't|not allowed|isn't allowed|aren't allowed|\
        is forbidden|are forbidden|is prohibited|are prohibited|is illegal|not permitted|isn't permitted|not possible|isn't possible|\
        ist nicht erlaubt|nicht gestattet|ist verboten|ist untersagt|ist unzulässig|nicht zulässig|ist nicht möglich|das geht nicht|\
        il ne faut pas|c'est interdit|est interdit|n'est pas autorisé|n'est pas permis|n'est pas possible|ce n'est pas possible|on ne peut pas|vous ne pouvez pas|\
        no está permitido|está prohibido|no es posible|no se puede|no puedes|no pueden|no puede";
    const SPARES: &str = "you don't need|you do not need|you don't have to|you do not have to|don't need one|no need|not required|isn't required|not necessary|isn't necessary|\
        needn't|nicht nötig|nicht notwendig|nicht erforderlich|brauchst du nicht|brauchen sie nicht|musst du nicht|müssen sie nicht|\
        pas besoin|n'est pas nécessaire|pas nécessaire|n'est pas obligatoire|pas obligé|no hace falta|no es necesario|no es obligatorio|no necesitas|no tienes que";
    // With a limitation it is neither.
    const BOUNDS: &str = "but|however|if|only|except when|aber|wenn|sofern|nur|mais|si|seulement|pero|solo|salvo que|might|maybe|vielleicht|peut-être|quizás|not sure";
    let said = super::stated_field(reply);
    let reply = said.as_deref().unwrap_or(reply);
    let lower = reply.trim().to_lowercase().replace('’', "'");
    if lower.contains(['{', '[', '?']) || lower.chars().any(is_han) {
        return None;
    }
    let end = lower.find(['.', '!', ';', ',', ':', '\n']);
    let first = lower.get(..end.unwrap_or(lower.len()))?.trim();
    let first = first.trim_matches(['*', '_', '"']).trim();
    let asked = question.to_lowercase().replace('’', "'");
    let asks = |table: &str| {
        let words = asked.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '-'));
        words.into_iter().any(|w| table.split(' ').any(|t| t == w))
    };
    let negative = |text: &str| {
        let words = "not nicht kein keine ne pas no never";
        let all = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
        all.into_iter()
            .any(|w| words.split(' ').any(|n| n == w) || w.ends_with("n't"))
    };
    let says = |table: &str, text: &str| {
        let mut phrases = table.split('|').map(str::trim);
        phrases.any(|phrase| super::cues::find(text, phrase).is_some())
    };
    if negative(&asked) || says(BOUNDS, &lower) || first.split(' ').count() > 12 {
        return None;
    }
    let forbids = asks(ALLOWS) && says(FORBIDS, first);
    // `No visa needed`
    let none_needed =
        first.starts_with("no ") && (first.ends_with(" needed") || first.ends_with(" required"));
    let spares = asks(NEEDS) && (says(SPARES, first) || none_needed);
    (forbids || spares).then_some(false)
}

/// Parses yes or no in a statement that repeats the predicate of the question: `It is even.` for `Is 0 even?`, `够，一共
/// 18,797 元` for `够吗`, `强制推送不会成功` for `还能成功吗`.
pub fn restated_side(question: &str, reply: &str) -> Option<bool> {
    match question.chars().any(is_han) {
        true => restated_in_han(question, reply),
        false => restated_in_words(question, reply),
    }
}

fn restated_in_words(question: &str, reply: &str) -> Option<bool> {
    const PRONOUNS: &str = "it they he she that this es sie er das il elle ils elles c'est ce";
    const VERBS: &str = "is isn't are aren't was wasn't were does doesn't do did didn't can can't will won't has hasn't should shouldn't \
        ist sind war kann darf muss wird hat est sont était peut doit";
    const NOT: &str = "not nicht kein keine keinen pas never no";
    // A claim with a limitation is not a plain yes.
    const BOUNDS: &str = "if only when unless sometimes partly wenn nur si seulement parfois but aber mais or neither either";
    let is = |table: &str, word: &str| table.split_whitespace().any(|w| w == word);
    let words = |text: &str| -> Vec<String> {
        let words = text.to_lowercase().replace('’', "'");
        let words = words.split(|c: char| !c.is_alphanumeric() && c != '\'');
        words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
    };
    let reply = reply.trim().trim_end_matches(['.', '!']);
    if reply.contains(['.', '?', ';', '\n', '{']) {
        return None;
    }
    let (said, asked) = (words(reply), words(question));
    let [first, verb, rest @ ..] = said.as_slice() else {
        return None;
    };
    // `Das darf er nicht.`
    const LIMITS: &str = "pauschal grundsätzlich generell einfach so leider";
    if let [who, rest @ ..] = rest
        && is("das dies", first)
        && is(VERBS, verb)
        && asked.contains(verb)
        && is("er sie es man ich du wir ihr", who)
        && !asked.iter().any(|w| is(NOT, w) || w == "oder")
        && rest.iter().all(|w| is(NOT, w) || is(LIMITS, w))
    {
        return match rest.iter().any(|w| is(NOT, w)) {
            true => Some(false),
            false => rest.is_empty().then_some(true),
        };
    }
    let starts = is(PRONOUNS, first) && (is(VERBS, verb) || first == "c'est");
    let rest = match first == "c'est" {
        true => &said[1..],
        false => rest,
    };
    let denied = verb.ends_with("n't") || rest.iter().any(|w| is(NOT, w));
    let left: Vec<&String> = rest.iter().filter(|w| !is(NOT, w)).collect();
    let asks_so = !asked
        .iter()
        .any(|w| is(NOT, w) || w.ends_with("n't") || w == "or" || w == "oder");
    let repeats = !left.is_empty()
        && left.iter().all(|w| asked.contains(w))
        && !left.iter().any(|w| is(BOUNDS, w));
    (starts && asks_so && repeats).then_some(!denied)
}

fn restated_in_han(question: &str, reply: &str) -> Option<bool> {
    const MODALS: [&str; 12] = [
        "还", "能", "会", "可以", "是否", "要", "该", "应该", "已经", "就", "算", "真的",
    ];
    let marks = |c: char| "，。；！？,.;!?（）()：: \n".contains(c);
    let (asked, _) = question.split_once('吗')?;
    let mut predicate = asked.rsplit(marks).next()?.trim();
    if predicate.contains(['不', '没', '非', '未']) {
        return None;
    }
    // The text after the last modal verb.
    for modal in MODALS {
        if let Some((_, rest)) = predicate.rsplit_once(modal)
            && !rest.is_empty()
        {
            predicate = rest;
        }
    }
    let length = predicate.chars().count();
    let from = predicate.char_indices().nth(length.saturating_sub(2));
    let predicate = predicate.get(from.map_or(0, |(at, _)| at)..)?;
    if predicate.is_empty() || !predicate.chars().all(is_han) {
        return None;
    }
    let mut sides = Vec::new();
    for clause in reply.split(marks).filter(|c| c.contains(predicate)) {
        let (before, behind) = clause.rsplit_once(predicate)?;
        let bounded = ["如果", "除非", "可能", "也许", "只有", "要是"]
            .iter()
            .any(|w| clause.contains(w));
        let open = clause.contains('吗') || behind.chars().count() > 1 || bounded;
        // A single character occurs in many words: it counts only if it is the whole clause.
        if open || length == 1 && clause.trim().chars().count() > 4 {
            return None;
        }
        let near: String = before.chars().rev().take(4).collect();
        sides.push(!near.contains(['不', '没', '未', '难']) && !before.ends_with("无法"));
    }
    sides.dedup();
    match sides.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

/// Parses yes or no in a Chinese statement that repeats the question: `鸵鸟不会飞` for `鸵鸟会飞吗`.
pub fn echoed_side(question: &str, reply: &str) -> Option<bool> {
    let clause = reply.split(['，', '。', '；', ',', '.']).next()?.trim();
    if clause.chars().count() < 3 || !clause.chars().all(is_han) {
        return None;
    }
    let bare: String = clause
        .chars()
        .filter(|c| !matches!(c, '不' | '没' | '的'))
        .collect();
    let asked: String = question.chars().filter(|c| is_han(*c)).collect();
    let negated = clause.contains(['不', '没']);
    let repeats =
        asked.contains(&bare) && bare.chars().count() >= 2 && !asked.contains(['不', '没']);
    repeats.then_some(!negated)
}

/// Returns a fraction restated as a percentage: `40/250 = 0.16, so 16 percent` gives `16`.
pub fn percentage(line: &str) -> Option<String> {
    let line = line.trim();
    let line = line.lines().next_back().map(Cow::Borrowed)?;
    let language = Language::of(&line);
    let all = number::numbers(&line, language);
    let (last, before) = all.split_last()?;
    let unit = line.get(last.end..)?.trim_start().to_lowercase();
    let is_percent = [
        "%",
        "percent",
        "per cent",
        "prozent",
        "pour cent",
        "por ciento",
    ]
    .iter()
    .any(|u| unit.starts_with(u));
    let value = |key: &str| key.parse::<f64>().ok();
    let whole = value(&last.key)?;
    // `0.25 (25 %)`: the parentheses only restate the value.
    if line.get(..last.start)?.trim_end().ends_with(['(', '（']) {
        return None;
    }
    let restated = before
        .iter()
        .filter_map(|n| value(&n.key))
        .any(|share| (share * 100.0 - whole).abs() < 1e-9);
    (is_percent && restated).then(|| last.key.clone())
}

/// Returns a count followed by a colon and the counted items: not `There are 3: red, 4 and 5`, but `There are 3: 2, 3
/// and 5`.
pub fn count(text: &str) -> Option<String> {
    let text = text.trim();
    let (head, tail) = text.split_once([':', '：'])?;
    if head.contains('\n') || text.contains("```") {
        return None;
    }
    let language = Language::of(text);
    let [one] = number::numbers(head, language).try_into().ok()?;
    // `5 teams, each plays all others: 5 × 4 / 2 = 10` calculates.
    if tail.contains(['=', '≈', '×', '÷', '+']) {
        return None;
    }
    let listed = number::numbers(tail, language).len();
    let one: number::Number = one;
    (listed >= 2 && one.key.parse() == Ok(listed)).then_some(one.key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_comes_first_but_in_english() {
        let spanish = "¿Qué día llegó Colón a América?";
        assert_eq!(with_days_first("El 12/10/1492.", spanish), "El 12.10.1492.");
        let english = "On what day did he arrive?";
        assert_eq!(with_days_first("12/10/1492", english), "12/10/1492");
    }

    #[test]
    fn what_can_be_two_numbers_is_told() {
        let german = "Wie viele Minuten hat ein Tag?";
        assert!(is_two_numbers("1.440", german));
        assert!(is_two_numbers("2.962 m", german));
        for plain in ["1440", "5,75", "Ein Tag hat 1.440 Minuten.", "1.5"] {
            assert!(!is_two_numbers(plain, german), "{plain}");
        }
        assert!(!is_two_numbers("3.400 × 0,21 = 714", german));
        assert!(!is_two_numbers("1.440", "How many are there?"));
        let french = "Combien de secondes y a-t-il dans une journée ?";
        assert!(is_two_numbers("86.400", french));
        assert!(!is_two_numbers(
            "3.142",
            "Combien vaut pi, à trois décimales ?"
        ));
    }

    #[test]
    fn short_chinese_statements_take_a_side() {
        for (text, side) in [
            ("不需要。", Some(false)),
            ("没有", Some(false)),
            ("普通感冒是病毒引起的，所以不用吃。", Some(false)),
            ("能被 400 整除才是，因此不是闰年。", Some(false)),
            ("感冒了，所以不一定", None),
            ("需要", Some(true)),
            ("没问题。", Some(true)),
            ("不一定", None),
            ("要看情况而定的啊各位", None),
            ("", None),
        ] {
            assert_eq!(chinese_side(text), side, "{text}");
        }
    }

    #[test]
    fn what_is_forbidden_or_needless_is_no() {
        for (question, reply, side) in [
            (
                "Can they enter?",
                "They can't. Unless it burns, they have to ask.",
                Some(false),
            ),
            (
                "Darf ich mähen?",
                "Das ist nicht erlaubt, da gilt Ruhezeit.",
                Some(false),
            ),
            (
                "Peut-on recongeler ?",
                "Il ne faut pas : c'est dangereux.",
                Some(false),
            ),
            (
                "¿Se puede aparcar aquí, puedo?",
                "No se puede.",
                Some(false),
            ),
            (
                "Do I need a visa?",
                "You don't need one; 90 days are free.",
                Some(false),
            ),
            (
                "Do I need a visa?",
                r#"{"answer": "No visa needed"}"#,
                Some(false),
            ),
            ("Muss ich das melden?", "Das ist nicht nötig.", Some(false)),
            (
                "Do I need a visa?",
                "You don't need one if you stay a week.",
                None,
            ),
            ("Do I not need a visa?", "You don't need one.", None),
            ("Is it cold?", "You don't need a coat.", None),
            ("Can it fly?", "Not required.", None),
            ("Can they enter?", "Can't they?", None),
        ] {
            assert_eq!(modal_side(question, reply), side, "{question} {reply}");
        }
    }

    #[test]
    fn a_first_word_takes_a_side() {
        for (text, side) in [
            ("No lo es. Solo es recomendable.", Some(false)),
            ("No lo sé.", None),
            ("no hace falta", Some(false)),
            ("Nein besser nicht", Some(false)),
            ("yes it is ok", Some(true)),
            ("No, every day is too much", Some(false)),
            ("Ahora no.", Some(false)),
            ("I wouldn't.", Some(false)),
            ("not sure", None),
            ("No doubt", None),
            ("no sé", None),
            ("yes and no", None),
            ("ja, aber nicht immer", None),
            ("maybe", None),
        ] {
            assert_eq!(first_side(text), side, "{text}");
        }
    }

    #[test]
    fn a_statement_that_repeats_the_question_takes_a_side() {
        assert_eq!(echoed_side("鸵鸟会飞吗？", "鸵鸟不会飞。"), Some(false));
        assert_eq!(echoed_side("蝙蝠会飞吗？", "蝙蝠会飞。"), Some(true));
        assert_eq!(echoed_side("鸵鸟会飞吗？", "鸵鸟很大。"), None);
        assert_eq!(echoed_side("要不要备份？", "要备份。"), None);
    }

    #[test]
    fn a_statement_of_what_was_asked_takes_a_side() {
        for (question, reply, side) in [
            (
                "Darf er ohne Ankündigung in die Wohnung?",
                "Das darf er nicht.",
                Some(false),
            ),
            (
                "Darf mein Vermieter das verbieten?",
                "Das darf er nicht pauschal.",
                Some(false),
            ),
            ("Kann man damit fahren?", "Das kann man.", Some(true)),
            ("Darf er das nicht?", "Das darf er nicht.", None),
            (
                "Muss er das zahlen?",
                "Das muss er wohl selbst wissen.",
                None,
            ),
            (
                "Does the number 0 count as even?",
                "It is even.",
                Some(true),
            ),
            ("Is it safe?", "It isn't safe.", Some(false)),
            (
                "Ist die Brücke sicher?",
                "Sie ist nicht sicher.",
                Some(false),
            ),
            ("Is it safe?", "It is safe if you look.", None),
            ("Is it odd or even?", "It is even.", None),
            ("Isn't it safe?", "It is safe.", None),
            ("预算 2 万,够吗?", "足够", Some(true)),
            ("预算 2 万,够吗?", "够,一共 18,797 元", Some(true)),
            ("预算 2 万,够吗?", "不够", Some(false)),
            (
                "强制推送还能成功吗?",
                "服务器会拒绝,因此强制推送不会成功。",
                Some(false),
            ),
            ("强制推送还能成功吗?", "如果没有保护就能成功。", None),
            ("这样安全吗？", "不清楚。", None),
        ] {
            assert_eq!(restated_side(question, reply), side, "{question} {reply}");
        }
    }

    #[test]
    fn a_count_comes_before_what_it_counts() {
        assert_eq!(count("There are 3: 2, 3 and 5.").as_deref(), Some("3"));
        assert_eq!(count("There are 4: 2, 3 and 5."), None);
        assert_eq!(count("Answer: 3"), None);
    }

    #[test]
    fn a_restated_share_is_its_percentage() {
        assert_eq!(
            percentage("40/250 = 0.16, so 16 percent").as_deref(),
            Some("16")
        );
        assert_eq!(
            percentage("45/180 = 0,25, also 25 %").as_deref(),
            Some("25")
        );
        assert_eq!(percentage("either 0.2 or 30 %"), None);
    }
}
