//! Numbers as people and models write them: `1,234.50`, `1.234,50`, `−3`, `3.2e5`, `1.2 million`, `3/4`, `10^6`.

use super::folded::Folded;
use super::language::{Language, is_han};

/// A number in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Its normal form: digits, a decimal point, no leading or trailing zeros.
    pub key: String,
    /// The position in bytes at which it begins.
    pub start: usize,
    /// The position in bytes at which it ends, including the word that scales it.
    pub end: usize,
}

/// Maximum digits of a number.
const DIGITS_MAX: usize = 120;

/// Words that multiply the number before them by a power of ten. Longer ones come first.
const SCALES: &[(&str, i32)] = &[
    ("trillions", 12),
    ("trillion", 12),
    ("billions", 9),
    ("billion", 9),
    ("milliarden", 9),
    ("milliarde", 9),
    ("milliards", 9),
    ("milliard", 9),
    ("mrd.", 9),
    ("mrd", 9),
    ("millionen", 6),
    ("millions", 6),
    ("million", 6),
    ("millones", 6),
    ("millón", 6),
    ("mio.", 6),
    ("mio", 6),
    ("thousand", 3),
    ("tausend", 3),
    ("mille", 3),
    ("mil millones", 9),
    ("mil", 3),
    ("bn", 9),
    ("千万", 7),
    ("百万", 6),
    ("万", 4),
    ("亿", 8),
    ("千", 3),
    ("百", 2),
    ("k", 3),
    ("m", 6),
];

/// Finds the numbers of a text, in order. Digits inside words (`GPT-4`, `H2O`), dates and times do not count.
pub fn numbers(text: &str, language: Language) -> Vec<Number> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text
        .get(at..)
        .and_then(|t| t.find(|c: char| c.is_ascii_digit()))
        .map(|d| at + d)
    {
        let (number, end) = one(text, start, language);
        found.extend(number);
        at = end.max(start + 1);
    }
    found
}

/// Returns the only number of a text; `None` if there is none, or several that differ.
pub fn only(text: &str, language: Language) -> Option<String> {
    let all = numbers(text, language);
    let (first, rest) = all.split_first()?;
    rest.iter()
        .all(|n| n.key == first.key)
        .then(|| first.key.clone())
}

/// Returns the normal form of a JSON number.
pub fn of_json(number: &serde_json::Number) -> Option<String> {
    let text = number.to_string();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m.to_owned(), e.parse().ok()?),
        None => (text, 0),
    };
    let negative = mantissa.starts_with('-');
    normal(mantissa.trim_start_matches('-'), exponent, negative)
}

/// Reads the number that begins here; returns where to continue.
fn one(text: &str, start: usize, language: Language) -> (Option<Number>, usize) {
    let before = text.get(..start).unwrap_or_default();
    let run_end = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len())
    };
    let last = before.chars().next_back();
    let joins = |c: char| (c.is_alphabetic() && !is_han(c)) || c == '_';
    if last.is_some_and(joins) {
        return (None, run_end(start));
    }
    // `GPT-4` and `utf-8`, but not `17-3` and not `x = -4`.
    if let Some(rest) = before.strip_suffix('-')
        && rest.chars().next_back().is_some_and(joins)
    {
        return (None, run_end(start));
    }
    let (digits, mut end) = digits(text, start, language);
    // `.5`, but not `v.5` and not `1..5`.
    let point = before.strip_suffix('.').filter(|head| {
        let last = head.chars().next_back();
        last.is_none_or(|c| {
            c.is_whitespace() || matches!(c, '=' | '(' | '-' | '+' | '≈' | '*' | '−')
        })
    });
    let digits =
        digits.map(|d| without_euro_decimals(d, before, text.get(end..).unwrap_or_default()));
    let whole = |d: &String| !d.contains('.');
    let (before, digits) = match point {
        Some(head) => (
            head,
            digits.map(|d| match whole(&d) {
                true => format!("0.{d}"),
                false => d,
            }),
        ),
        None => (before, digits),
    };
    let rest = |from: usize| text.get(from..).unwrap_or_default();
    // A date, a time, a version, a range.
    let mut next = rest(end).chars();
    let (sep, then) = (next.next(), next.next());
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    if matches!(sep, Some(':' | '.' | '-' | '–' | '—')) && digit(then) && sep != Some('.')
        || sep == Some('.') && digit(then)
    {
        let whole = rest(start)
            .find(|c: char| {
                !(c.is_ascii_digit() || matches!(c, ':' | '.' | '-' | '–' | '—' | 'T' | 'Z'))
            })
            .map_or(text.len(), |e| start + e);
        return (None, whole);
    }
    let Some(digits) = digits else {
        return (None, end);
    };
    let sign = before.trim_end_matches(['$', '€', '£', '¥', ' ']);
    let minuend = sign.trim_end_matches(['-', '−']);
    let close = before.ends_with(['-', '−']) && minuend.ends_with(char::is_whitespace);
    let negative = sign.ends_with(['-', '−'])
        && !minuend.trim_end().ends_with(|c: char| match close {
            // `so −15` is negative, `17 −15` subtracts.
            true => c.is_numeric() || c == ')',
            false => c.is_alphanumeric() || c == ')',
        });
    // 3.2e5, 3×10^5, 10^6
    let mut exponent = 0i32;
    let mut key = None;
    if let Some((more, length)) = scientific(rest(end)) {
        exponent = more;
        end += length;
    } else if let Some((power, length)) = power(rest(end)) {
        key = raised(&digits, power, negative);
        end += length;
        if key.is_none() {
            return (None, end);
        }
    } else if let Some((low, length)) = fraction(rest(end)) {
        let Some(value) = divided(&digits, &low, negative) else {
            return (None, end + length);
        };
        key = Some(value);
        end += length;
    }
    let after = rest(end);
    let words = after.trim_start_matches([' ', '\u{a0}', '\u{202f}', '-', '*', '_']);
    let gap = after.len() - words.len();
    let head = words
        .char_indices()
        .nth(14)
        .map_or(words, |(at, _)| &words[..at]);
    let folded = Folded::new(head);
    for (word, power) in SCALES {
        let Some(rest) = folded.strip_prefix(word) else {
            continue;
        };
        // `14M`, not `14 m`.
        if *word == "m" && (gap != 0 || !words.starts_with('M')) {
            continue;
        }
        // Ten to the power of a `billon` is not an English billion: only the words above count.
        let whole = (*word != "k" || gap == 0) && !rest.starts_with(char::is_alphabetic);
        // `5 千克` is a unit.
        let unit =
            matches!(*word, "千" | "百") && rest.starts_with(['克', '米', '瓦', '卡', '分', '赫']);
        if whole || word.chars().all(is_han) && !unit {
            exponent += power;
            end += gap + head.len() - rest.len();
            break;
        }
    }
    if key.is_none() && !digits.contains('.') {
        if let Some((decimals, length)) = half(rest(end)).filter(|_| exponent == 0) {
            key = normal(&format!("{digits}.{decimals}"), 0, negative);
            end += length;
        } else if let Some((value, length)) = chained(&digits, exponent, rest(end)) {
            key = value.map(|value| if negative { format!("-{value}") } else { value });
            end += length;
            if key.is_none() {
                return (None, end);
            }
            exponent = 0;
        }
    }
    if key.is_none() || exponent != 0 {
        let base = key.unwrap_or(digits);
        let (base, minus) = match base.strip_prefix('-') {
            Some(bare) => (bare.to_owned(), true),
            None => (base, negative),
        };
        if base.contains('/') {
            return (None, end);
        }
        key = normal(&base, exponent, minus);
    }
    let follows = rest(end).chars().next();
    // `2nd` is the number 2; `4o` and `3D` are names.
    if follows.is_some_and(joins) {
        let word_end = run_end(end);
        let word = text.get(end..word_end).unwrap_or_default();
        let unit = word.len() <= 4
            && !word.chars().any(|c| c.is_ascii_digit())
            && !matches!(word, "o" | "D" | "d" | "x" | "B");
        if !unit {
            return (None, word_end);
        }
        end = word_end;
    }
    let number = key.map(|key| Number { key, start, end });
    (number, end)
}

/// Joins three decimals of an amount in euros to its whole part: `4.692 €` has no thousandths. A price per unit may.
fn without_euro_decimals(digits: String, before: &str, behind: &str) -> String {
    const EUROS: [&str; 5] = ["€", "EUR", "Euro", "euro", "CHF"];
    let rest = behind.trim_start_matches([' ', '\u{a0}', '\u{202f}']);
    let named = EUROS.iter().find_map(|euro| rest.strip_prefix(euro));
    let led = before.trim_end_matches([' ', '\u{a0}']).ends_with('€');
    let rate = named.unwrap_or(rest).trim_start().starts_with(['/', 'p']);
    match digits.split_once('.') {
        Some((whole, decimals))
            if decimals.len() == 3
                && whole != "0"
                && whole.len() <= 3
                && (named.is_some() || led)
                && !rate =>
        {
            format!("{whole}{decimals}")
        }
        _ => digits,
    }
}

/// Returns the decimals of a half behind a number, and its length: `3 and a half`, `2 et demi`, `3 个半`.
fn half(rest: &str) -> Option<(&'static str, usize)> {
    const HALVES: [&str; 6] = [
        " and a half",
        " et demie",
        " et demi",
        " y medio",
        " y media",
        "½",
    ];
    let head = rest.get(..rest.floor_char_boundary(24))?;
    let folded = Folded::new(head);
    let western = HALVES.iter().find_map(|half| {
        let behind = folded.strip_prefix(half)?;
        let ends = !behind.starts_with(char::is_alphabetic);
        ends.then(|| head.len() - behind.len())
    });
    let bare = rest.trim_start_matches([' ', '\u{a0}']);
    let mut signs = bare.chars();
    let measure = signs
        .next()
        .filter(|c| is_han(*c) && !matches!(c, '的' | '是' | '有'));
    let han = measure
        .filter(|_| signs.next() == Some('半'))
        .map(|measure| rest.len() - bare.len() + measure.len_utf8() + '半'.len_utf8());
    western.or(han).map(|length| ("5", length))
}

/// Continues a number in Chinese units: the rest of `3万5千` and its length. The inner value is `None` if the digits
/// have no unit of their own: `3万5`.
fn chained(digits: &str, exponent: i32, rest: &str) -> Option<(Option<String>, usize)> {
    const UNITS: [(&str, u32); 5] = [("千万", 7), ("百万", 6), ("万", 4), ("千", 3), ("百", 2)];
    if !(2..=8).contains(&exponent) || !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut sum = digits
        .parse::<u64>()
        .ok()?
        .checked_mul(10u64.checked_pow(exponent.unsigned_abs())?)?;
    let (mut bound, mut at) = (exponent.unsigned_abs(), 0);
    let mut known = true;
    while let Some(more) = rest
        .get(at..)
        .filter(|t| t.starts_with(|c: char| c.is_ascii_digit()))
    {
        let count = more.bytes().take_while(u8::is_ascii_digit).count();
        let value = more[..count].parse::<u64>().ok()?;
        let unit = UNITS
            .iter()
            .find(|(sign, _)| more[count..].starts_with(sign));
        let (sign, power) = unit.map_or((0, 0), |(sign, power)| (sign.len(), *power));
        // `3万5` is 35,000 or 30,005.
        known &= power > 0 && power < bound || power == 0 && count as u32 == bound;
        sum = sum.checked_add(value.checked_mul(10u64.pow(power))?)?;
        (bound, at) = (power, at + count + sign);
    }
    Some((known.then(|| sum.to_string()), at))
}

/// Returns the digits from here on, with a decimal point, and where they end.
fn digits(text: &str, start: usize, language: Language) -> (Option<String>, usize) {
    let rest = text.get(start..).unwrap_or_default();
    let chars: Vec<(usize, char)> = rest.char_indices().take(2 * DIGITS_MAX).collect();
    let is_digit = |i: usize| chars.get(i).is_some_and(|(_, c)| c.is_ascii_digit());
    let run = |from: usize| (from..).take_while(|i| is_digit(*i)).count();
    let mut groups: Vec<(Option<char>, String)> = Vec::new();
    let mut at = 0;
    let mut sep = None;
    loop {
        let count = run(at);
        groups.push((sep, chars[at..at + count].iter().map(|(_, c)| *c).collect()));
        at += count;
        let next = chars.get(at).map(|(_, c)| *c);
        let groups_of_three = run(at + 1) == 3 && !is_digit(at + 4);
        let goes_on = match next {
            Some('.' | ',') => is_digit(at + 1),
            Some('\'' | '’' | '_' | '\u{a0}' | '\u{202f}' | '\u{2009}') => groups_of_three,
            Some(' ') => {
                groups_of_three
                    && groups.last().is_some_and(|(_, g)| g.len() <= 3)
                    && groups.iter().all(|(s, _)| !matches!(s, Some('.' | ',')))
            }
            Some('\\') => false,
            _ => false,
        };
        if !goes_on {
            break;
        }
        sep = next;
        at += 1;
    }
    let end = start + chars.get(at).map_or(rest.len(), |(b, _)| *b);
    (joined(&groups, language), end)
}

/// Joins groups of digits into one number; `None` if they are not one (a date, a version).
fn joined(groups: &[(Option<char>, String)], language: Language) -> Option<String> {
    let total: usize = groups.iter().map(|(_, g)| g.len()).sum();
    if total > DIGITS_MAX {
        return None;
    }
    if let [(_, digits)] = groups
        && super::failures::is_loop(digits)
    {
        return None;
    }
    let seps: Vec<char> = groups.iter().filter_map(|(s, _)| *s).collect();
    let whole: String = groups.iter().map(|(_, g)| g.as_str()).collect();
    let threes = |from: usize| groups[from..].iter().all(|(_, g)| g.len() == 3);
    let Some(last) = seps.last().copied() else {
        return Some(whole);
    };
    let same_before = seps[..seps.len() - 1].iter().all(|s| *s == seps[0]);
    if seps.len() > 1 && seps.iter().all(|s| *s == seps[0]) {
        return (threes(1)).then_some(whole);
    }
    let split = |groups: &[(Option<char>, String)]| {
        let head: String = groups[..groups.len() - 1]
            .iter()
            .map(|(_, g)| g.as_str())
            .collect();
        format!("{head}.{}", groups[groups.len() - 1].1)
    };
    if seps.len() > 1 {
        let middle = groups[1..groups.len() - 1]
            .iter()
            .all(|(_, g)| g.len() == 3);
        return (same_before && middle && matches!(last, '.' | ',') && last != seps[0])
            .then(|| split(groups));
    }
    let (head, tail) = (groups[0].1.as_str(), groups[1].1.as_str());
    let grouped = tail.len() == 3 && head.len() <= 3 && head != "0";
    match last {
        ',' if grouped && !language.has_decimal_comma() => Some(whole),
        '.' if grouped
            && match language {
                Language::German | Language::Spanish => true,
                // A decimal would have a comma and no trailing zeros.
                Language::French => tail.ends_with('0'),
                _ => tail == "000",
            } =>
        {
            Some(whole)
        }
        '.' | ',' => Some(split(groups)),
        _ => Some(whole),
    }
}

/// Parses `e5`, ` × 10^5`, `·10⁵`: the exponent and its length in the text.
fn scientific(rest: &str) -> Option<(i32, usize)> {
    if let Some(tail) = rest.strip_prefix(['e', 'E']) {
        let sign = usize::from(tail.starts_with(['+', '-']));
        let count = tail[sign..]
            .chars()
            .take_while(char::is_ascii_digit)
            .count();
        let value = tail[..sign + count].trim_start_matches('+').parse().ok()?;
        return (count > 0 && count <= 3).then_some((value, 1 + sign + count));
    }
    let bare = rest.trim_start();
    let bare = ["×", "·", "*", "x", r"\times", r"\cdot"]
        .iter()
        .find_map(|sign| bare.strip_prefix(sign))?
        .trim_start()
        .strip_prefix("10")?;
    let (value, length) = power(bare)?;
    Some((value, rest.len() - bare.len() + length))
}

/// Parses `^6`, `^{6}`, `⁶`: the power and its length in the text.
fn power(rest: &str) -> Option<(i32, usize)> {
    if let Some(tail) = rest.strip_prefix('^').or_else(|| rest.strip_prefix("**")) {
        let open = tail.starts_with(['{', '(']);
        let inner = if open { &tail[1..] } else { tail };
        let sign = usize::from(inner.starts_with('-'));
        let count = inner[sign..]
            .chars()
            .take_while(char::is_ascii_digit)
            .count();
        let value: i32 = inner[..sign + count].parse().ok()?;
        let close = usize::from(open && inner[sign + count..].starts_with(['}', ')']));
        let head = rest.len() - tail.len();
        return (count > 0).then_some((value, head + usize::from(open) + sign + count + close));
    }
    let mut value = String::new();
    let mut length = 0;
    for c in rest.chars() {
        let Some(at) = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻".chars().position(|s| s == c) else {
            break;
        };
        value.push(if at == 10 {
            '-'
        } else {
            char::from(b'0' + at as u8)
        });
        length += c.len_utf8();
    }
    Some((value.parse().ok()?, length))
}

/// Parses `/4`: the divisor.
fn fraction(rest: &str) -> Option<(String, usize)> {
    let tail = rest.strip_prefix('/')?;
    let count = tail.chars().take_while(char::is_ascii_digit).count();
    let more = tail[count..].chars().next();
    (count > 0 && count <= 6 && !matches!(more, Some('/')))
        .then(|| (tail[..count].to_owned(), 1 + count))
}

/// Returns a quotient in normal form: decimals if they terminate, otherwise the reduced fraction.
fn divided(high: &str, low: &str, negative: bool) -> Option<String> {
    let (a, b): (u128, u128) = (high.parse().ok()?, low.parse().ok()?);
    if b == 0 {
        return None;
    }
    let mut n = (a, b);
    while n.1 != 0 {
        n = (n.1, n.0 % n.1);
    }
    let (a, b) = (a / n.0.max(1), b / n.0.max(1));
    let mut scaled = (a, b);
    let mut places = 0;
    while scaled.0 % scaled.1 != 0 && places < 12 {
        scaled.0 = scaled.0.checked_mul(10)?;
        places += 1;
    }
    if scaled.0 % scaled.1 == 0 {
        return normal(&(scaled.0 / scaled.1).to_string(), -places, negative);
    }
    Some(format!("{}{a}/{b}", if negative { "-" } else { "" }))
}

fn raised(digits: &str, power: i32, negative: bool) -> Option<String> {
    if digits == "10" {
        return normal("1", power, negative);
    }
    let base: i128 = digits.parse().ok()?;
    let value = base.checked_pow(u32::try_from(power).ok()?)?;
    normal(&value.to_string(), 0, negative)
}

/// Shifts the decimal point by a power of ten and strips zeros.
fn normal(digits: &str, exponent: i32, negative: bool) -> Option<String> {
    if exponent.unsigned_abs() as usize > DIGITS_MAX {
        return None;
    }
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let mut all: String = format!("{whole}{decimals}");
    let mut point = whole.len() as i32 + exponent;
    while point > all.len() as i32 {
        all.push('0');
    }
    while point < 0 {
        all.insert(0, '0');
        point += 1;
    }
    let (whole, decimals) = all.split_at(point as usize);
    let whole = whole.trim_start_matches('0');
    let decimals = decimals.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let value = match decimals {
        "" => whole.to_owned(),
        decimals => format!("{whole}.{decimals}"),
    };
    Some(match negative && value != "0" {
        true => format!("-{value}"),
        false => value,
    })
}
