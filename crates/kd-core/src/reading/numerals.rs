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

/// The number that a text says in words, where it says exactly one and has no digits. One is passed over: it is an
/// article too.
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
    };
    let mut at = 0;
    while at < words.len() {
        let next = words
            .get(at + 1)
            .and_then(|w| value(w).or((*w == "one").then_some(1)));
        match (value(words[at]), next) {
            // Twenty-one.
            (Some(tens), Some(unit)) if tens >= 20 && tens % 10 == 0 && unit < 10 => {
                found.push(tens + unit);
                at += 1;
            }
            (Some(number), _) => found.push(number),
            // What multiplies, counts on or joins makes another number of it.
            _ if [
                "hundred", "thousand", "million", "hundert", "tausend", "cent", "mille", "cien",
                "ciento", "mil", "half", "dozen",
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
        [one] => Some(one.to_string()),
        _ => None,
    }
}

/// The only English number with `hundred` or `thousand` in a text: `one hundred and twenty`. The inner value is `None`
/// where there are several.
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

/// The only number in words of a text that begins with it, with its place: `Four engineers.`
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

/// The numbers in Chinese characters of a text, up to 99; one alone is passed over.
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
            // Two numbers that are not understood are not one that is.
            _ => return vec![0, 0],
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
            ("一百二十", None),
        ] {
            assert_eq!(numeral(text).as_deref(), number, "{text}");
        }
    }
}
