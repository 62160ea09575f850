//! Numbers in words.

pub(super) const UNITS: &[(&str, u64)] = &[
    ("zero", 0),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("null", 0),
    ("zwei", 2),
    ("drei", 3),
    ("vier", 4),
    ("fünf", 5),
    ("sechs", 6),
    ("sieben", 7),
    ("acht", 8),
    ("neun", 9),
    ("zehn", 10),
    ("elf", 11),
    ("zwölf", 12),
    ("dreizehn", 13),
    ("vierzehn", 14),
    ("fünfzehn", 15),
    ("sechzehn", 16),
    ("siebzehn", 17),
    ("achtzehn", 18),
    ("neunzehn", 19),
    ("zwanzig", 20),
    ("dreißig", 30),
    ("vierzig", 40),
    ("fünfzig", 50),
    ("sechzig", 60),
    ("siebzig", 70),
    ("achtzig", 80),
    ("neunzig", 90),
    ("zéro", 0),
    ("deux", 2),
    ("trois", 3),
    ("quatre", 4),
    ("cinq", 5),
    ("sept", 7),
    ("huit", 8),
    ("neuf", 9),
    ("dix", 10),
    ("onze", 11),
    ("douze", 12),
    ("treize", 13),
    ("quatorze", 14),
    ("quinze", 15),
    ("seize", 16),
    ("vingt", 20),
    ("trente", 30),
    ("quarante", 40),
    ("cinquante", 50),
    ("soixante", 60),
    ("cero", 0),
    ("dos", 2),
    ("tres", 3),
    ("cuatro", 4),
    ("cinco", 5),
    ("seis", 6),
    ("siete", 7),
    ("ocho", 8),
    ("nueve", 9),
    ("diez", 10),
    ("once", 11),
    ("doce", 12),
    ("trece", 13),
    ("catorce", 14),
    ("quince", 15),
    ("dieciséis", 16),
    ("diecisiete", 17),
    ("dieciocho", 18),
    ("diecinueve", 19),
    ("veinte", 20),
    ("treinta", 30),
    ("cuarenta", 40),
    ("cincuenta", 50),
    ("sesenta", 60),
    ("setenta", 70),
    ("ochenta", 80),
    ("noventa", 90),
];

/// Returns the number given in words if a text has exactly one and no digits. "One" is skipped because it is also an
/// article.
pub(super) fn numeral(text: &str) -> Option<String> {
    if text.chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let lower = text.to_lowercase();
    if let Some(large) = large(&lower) {
        return large;
    }
    let mut found: Vec<u64> = Vec::new();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphabetic())
        .filter(|w| !w.is_empty())
        .collect();
    let value = |word: &str| {
        UNITS
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, n)| *n)
            .or_else(|| compound(word))
    };
    // "Some hundreds" is not a number.
    const VAGUE: [&str; 6] = ["paar", "einige", "mehrere", "viele", "quelques", "varios"];
    if words.iter().any(|word| VAGUE.contains(word)) {
        return None;
    }
    if has_half(&lower, &words) {
        return None;
    }
    let mut at = 0;
    while at < words.len() {
        // `cuarenta y dos`, `vingt et un`
        if let (Some(tens), Some("y" | "et"), Some(unit)) = (
            value(words[at]),
            words.get(at + 1).copied(),
            words.get(at + 2).and_then(|w| below_ten(w)),
        ) && tens >= 20
            && tens % 10 == 0
        {
            found.push(tens + unit);
            at += 3;
            continue;
        }
        // `soixante-dix`, `quatre-vingt-douze`
        if let Some((number, used)) = french(&words[at..]) {
            found.push(number);
            at += used;
            continue;
        }
        let next = words
            .get(at + 1)
            .and_then(|w| value(w).or((*w == "one").then_some(1)));
        match (value(words[at]), next) {
            // "Twenty-one".
            (Some(tens), Some(unit)) if tens >= 20 && tens % 10 == 0 && unit < 10 => {
                found.push(tens + unit);
                at += 1;
            }
            (Some(number), _) => found.push(number),
            // A multiplier, a continuation or a conjunction makes it another number.
            _ if [
                "hundred", "thousand", "million", "cent", "mille", "cien", "ciento", "mil", "dozen",
            ]
            .contains(&words[at]) =>
            {
                return None;
            }
            _ => {}
        }
        at += 1;
    }
    found.extend(han(&lower));
    match found.as_slice() {
        [0] => Some("0".to_owned()),
        [one] if is_negative(&words) => Some(format!("-{one}")),
        [one] => Some(one.to_string()),
        _ => None,
    }
}

/// Returns whether a half is part of a number: `two and a half`, `deux heures et demie`, `十二圈半`.
fn has_half(lower: &str, words: &[&str]) -> bool {
    const HALVES: [&str; 11] = [
        "half",
        "halb",
        "halbe",
        "halbes",
        "halben",
        "halber",
        "demi",
        "demie",
        "medio",
        "media",
        "anderthalb",
    ];
    lower.contains('半')
        || words
            .iter()
            .any(|w| HALVES.contains(w) || w.ends_with("einhalb"))
}

/// Returns the value of a digit in words.
fn below_ten(word: &str) -> Option<u64> {
    match word {
        "un" | "une" | "uno" | "una" => Some(1),
        word => plain(word).filter(|n| (1..10).contains(n)),
    }
}

/// Parses French numbers from 70 to 99: `soixante-douze`, `quatre-vingts`, `quatre-vingt-dix-sept`. Returns the number
/// of words too.
fn french(words: &[&str]) -> Option<(u64, usize)> {
    let (base, used) = match words {
        ["soixante", next, ..] if plain(next).is_some_and(|n| (10..17).contains(&n)) => (60, 1),
        ["soixante", "et", "onze", ..] => return Some((71, 3)),
        ["quatre", "vingt" | "vingts", ..] => (80, 2),
        _ => return None,
    };
    let rest = &words[used..];
    // `dix-sept`
    if let ["dix", unit @ ("sept" | "huit" | "neuf"), ..] = rest {
        return Some((base + 10 + plain(unit)?, used + 2));
    }
    match rest.first().and_then(|w| below_ten(w).or(plain(w))) {
        Some(more) if more < 17 && more > 0 => Some((base + more, used + 1)),
        _ => Some((base, used)),
    }
}

/// Returns whether the only number among these words has a sign in words before it: `minus forty`, `负二十五`.
fn is_negative(words: &[&str]) -> bool {
    const SIGNS: [&str; 5] = ["minus", "negative", "moins", "menos", "negativ"];
    let is_number = |word: &&str| numeral(word).is_some();
    let after_sign = |pair: &[&str]| SIGNS.contains(&pair[0]) && is_number(&pair[1]);
    words.windows(2).any(after_sign)
        || words.iter().any(|word| {
            let parts: Vec<&str> = word.split('负').collect();
            matches!(parts.as_slice(), [_, after] if !han(after).is_empty())
        })
}

/// Returns the only English number with `hundred` or `thousand` in a text: `one hundred and twenty`. The inner value is
/// `None` if there are several.
pub(super) fn large(lower: &str) -> Option<Option<String>> {
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphabetic())
        .filter(|w| !w.is_empty())
        .collect();
    let scale = |word: &str| match word {
        "hundred" => Some(100),
        "thousand" => Some(1_000),
        "million" => Some(1_000_000),
        _ => None,
    };
    let value = |word: &str| match word {
        "one" | "a" => Some(1),
        word => UNITS
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, n)| *n),
    };
    let first = words.iter().position(|w| scale(w).is_some())?;
    let mut from = first;
    while from > 0 && (value(words[from - 1]).is_some() || words[from - 1] == "and") {
        from -= 1;
    }
    let (mut total, mut part, mut end) = (0u64, 0u64, from);
    for word in &words[from..] {
        match (scale(word), value(word)) {
            (Some(100), _) => part = part.max(1) * 100,
            (Some(scale), _) => {
                total += part.max(1) * scale;
                part = 0;
            }
            (None, Some(n)) if *word != "a" || part == 0 => part += n,
            _ if *word == "and" => {}
            _ => break,
        }
        end += 1;
    }
    let more = words[..from]
        .iter()
        .chain(&words[end..])
        .any(|w| !["one", "a"].contains(w) && (value(w).is_some() || scale(w).is_some()));
    let bare = end > from && from < first + 1 && first > from;
    Some((bare && !more).then(|| (total + part).to_string()))
}

/// Returns the only number in words of a text that begins with it, and its position: `Four engineers.`
pub(super) fn numeral_at(text: &str) -> Option<(String, usize, usize)> {
    let key = numeral(text)?;
    let start = text.find(char::is_alphanumeric)?;
    let mut from = start;
    for word in text[start..]
        .split(|c: char| !c.is_alphabetic())
        .filter(|w| !w.is_empty())
    {
        let at = from + text.get(from..)?.find(word)?;
        if numeral(word).is_some() {
            return Some((key, at, at + word.len()));
        }
        from = at + word.len();
    }
    None
}

/// Parses a German number in one word: `fünfunddreißig`, `hundert`, `dreihundertvierzig`, `zweitausend`.
fn compound(word: &str) -> Option<u64> {
    let below_ten = |word: &str| match word {
        "ein" | "eins" => Some(1),
        word => plain(word).filter(|n| *n < 10),
    };
    let below_hundred = |word: &str| {
        plain(word).or_else(|| {
            let (unit, tens) = word.split_once("und")?;
            let tens = plain(tens).filter(|n| *n >= 20 && n % 10 == 0)?;
            Some(tens + below_ten(unit).filter(|n| *n > 0)?)
        })
    };
    let below_thousand = |word: &str| match word.split_once("hundert") {
        Some((times, rest)) => {
            let times = if times.is_empty() {
                1
            } else {
                below_ten(times)?
            };
            let rest = rest.strip_prefix("und").unwrap_or(rest);
            let rest = match rest {
                "" => 0,
                "eins" => 1,
                rest => below_hundred(rest)?,
            };
            Some(times * 100 + rest)
        }
        None => below_hundred(word),
    };
    match word.split_once("tausend") {
        Some((times, rest)) => {
            let times = match times {
                "" | "ein" => 1,
                times => below_thousand(times)?,
            };
            let rest = if rest.is_empty() {
                0
            } else {
                below_thousand(rest)?
            };
            Some(times * 1_000 + rest)
        }
        None => below_thousand(word),
    }
}

/// Looks up a number in the table.
fn plain(word: &str) -> Option<u64> {
    let known = UNITS.iter().find(|(name, _)| *name == word);
    known.map(|(_, n)| *n)
}

/// Parses a number in Chinese characters: `三百五十`, `一千零二十`, `三万`. The last digit of `三百五` counts tens.
fn han_number(run: &[char]) -> Option<u64> {
    let (mut total, mut section) = (0u64, 0u64);
    let (mut digit, mut last, mut after_zero) = (None, 1u64, false);
    for c in run {
        let scale = match c {
            '十' => 10,
            '百' => 100,
            '千' => 1_000,
            '万' => 10_000,
            '零' => {
                after_zero = true;
                continue;
            }
            c => {
                let value = match c {
                    '两' => 2,
                    c => "一二三四五六七八九".chars().position(|d| d == *c)? as u64 + 1,
                };
                // Two adjacent digits are a year, or two numbers.
                if digit.replace(value).is_some() {
                    return None;
                }
                continue;
            }
        };
        match (scale, digit.take()) {
            (10_000, unit) => {
                total = (section + unit.unwrap_or(0))
                    .checked_mul(scale)
                    .filter(|n| *n > 0)?;
                section = 0;
            }
            (10, None) => section += 10,
            (_, None) => return None,
            (_, Some(unit)) => section += unit * scale,
        }
        (last, after_zero) = (scale, false);
    }
    let rest = digit.map(|unit| match last >= 100 && !after_zero {
        true => unit * last / 10,
        false => unit,
    });
    Some(total + section + rest.unwrap_or(0))
}

/// Returns the numbers in Chinese characters of a text; a lone "one" is skipped.
pub(super) fn han(text: &str) -> Vec<u64> {
    let digit = |c: char| {
        "零一二三四五六七八九"
            .chars()
            .position(|d| d == c)
            .map(|n| n as u64)
    };
    let mut found = Vec::new();
    let mut run: Vec<char> = Vec::new();
    for c in text.chars().chain([' ']) {
        if digit(c).is_some() || "两十百千万".contains(c) {
            run.push(c);
            continue;
        }
        let number = match run.as_slice() {
            ['一'] | [] => None,
            ['十'] => Some(10),
            [one] => digit(*one),
            ['十', unit] => digit(*unit).map(|u| 10 + u),
            [tens, '十'] => digit(*tens).map(|t| t * 10),
            [tens, '十', unit] => digit(*tens).zip(digit(*unit)).map(|(t, u)| t * 10 + u),
            run => match han_number(run) {
                Some(number) => Some(number),
                // Two unreadable numbers must not count as a single one.
                None => return vec![0, 0],
            },
        };
        found.extend(number);
        run.clear();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::numeral;

    #[test]
    fn a_number_in_words_is_read_where_it_is_the_only_one() {
        for (text, number) in [
            ("Twelve", Some("12")),
            ("Twenty-one of them", Some("21")),
            ("Es sind zwölf.", Some("12")),
            ("三十", Some("30")),
            ("四十二个", Some("42")),
            ("one hundred and twenty", Some("120")),
            ("two or three", None),
            ("two hundred", Some("200")),
            ("one", None),
            ("a dozen", None),
            ("12 or twelve", None),
            ("一百二十", Some("120")),
            ("打折后为三百四十元。", Some("340")),
            ("三百五", Some("350")),
            ("一千零二", Some("1002")),
            ("两万", Some("20000")),
            ("三万五千", Some("35000")),
            ("二三", None),
            ("百分之三十", Some("30")),
            ("千万别", None),
            ("Hundert Euro", Some("100")),
            ("ein paar hundert Euro", None),
            ("dreihundertvierzig", Some("340")),
            ("fünfunddreißig", Some("35")),
            ("zweitausendfünfhundertzwölf", Some("2512")),
            ("hundert oder zwölf", None),
            ("hundertprozentig", None),
            ("hundred percent", None),
            ("cuarenta y dos", Some("42")),
            ("treinta y una", Some("31")),
            ("vingt et un", Some("21")),
            ("soixante-douze", Some("72")),
            ("soixante et onze", Some("71")),
            ("quatre-vingts", Some("80")),
            ("quatre-vingt-treize", Some("93")),
            ("quatre-vingt-dix-sept", Some("97")),
            ("quatre ou vingt", None),
            ("twelve and a half", None),
            ("deux heures et demie", None),
            ("dos horas y media", None),
            ("十二圈半", None),
            ("三个半小时", None),
            ("zwölfeinhalb", None),
        ] {
            assert_eq!(numeral(text).as_deref(), number, "{text}");
        }
    }
}
