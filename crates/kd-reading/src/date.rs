//! Dates as people and models write them, in five languages: `1989-11-09`, `9 November 1989`, `9. November 1989`,
//! `1989年11月9日`; also without a year, and days of the week. An ambiguous date (`05/06/1989`) is not read.

/// A year (0 if not given), and a month and day if given.
type Date = (u32, Option<u32>, Option<u32>);

/// Prefixes of the month names in English, German, French and Spanish.
const MONTHS: [&[&str]; 12] = [
    &["jan", "jän", "ene"],
    &["feb", "fév", "fev"],
    &["mar", "mär", "mrz"],
    &["apr", "avr", "abr"],
    &["may", "mai", "mayo"],
    &["jun", "juin"],
    &["jul", "juil"],
    &["aug", "aoû", "aou", "ago"],
    &["sep"],
    &["oct", "okt"],
    &["nov"],
    &["dec", "dez", "déc", "dic"],
];

/// Returns the only date of a text, in ISO form.
pub fn only(text: &str) -> Option<String> {
    let all = dates(text);
    let (first, rest) = all.split_first()?;
    rest.iter().all(|d| d == first).then(|| first.clone())
}

/// Returns the date in bold, or the only one in the last concluding clause: `From 14 January back, so 14 October`.
pub fn concluded(text: &str) -> Option<String> {
    let bold: Vec<&str> = text.split("**").skip(1).step_by(2).collect();
    let mut in_bold: Vec<String> = bold.iter().filter_map(|part| only(part)).collect();
    in_bold.dedup();
    let key = match in_bold.as_slice() {
        [one] => one.clone(),
        [] => {
            let sentences = super::clauses::sentences(text);
            let dated = sentences
                .iter()
                .rev()
                .find(|s| !dates(&s.text).is_empty())?;
            let last = dated
                .clauses
                .iter()
                .rposition(|c| !dates(&c.lower).is_empty())?;
            let concludes = dated.clauses[..=last]
                .iter()
                .rposition(|c| c.role == super::clauses::Role::Conclusion)?;
            let from = dated.clauses[concludes].start;
            let to = dated.clauses[last].end;
            let doubts = super::cues::has(&dated.text.to_lowercase(), super::cues::UNDECIDED);
            only(dated.text.get(from..to)?).filter(|_| !doubts && !dated.asks())?
        }
        _ => return None,
    };
    // The same day, named with its year elsewhere in the text.
    let full = |date: &String| {
        key.strip_prefix("--")
            .is_some_and(|day| date.ends_with(day))
    };
    let mut years: Vec<String> = dates(text).into_iter().filter(full).collect();
    years.dedup();
    match years.as_slice() {
        [one] => Some(one.clone()),
        _ => Some(key),
    }
}

/// Returns the dates of a text in ISO form, keeping only the most complete ones.
pub fn dates(text: &str) -> Vec<String> {
    let words = words(&with_digits(text));
    let mut found: Vec<Date> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let (date, used) = here(&words[at..]);
        found.extend(date);
        at += used.max(1);
    }
    let parts =
        |d: &Date| usize::from(d.0 > 0) + usize::from(d.1.is_some()) + usize::from(d.2.is_some());
    // A year alone is less specific than a month and a day.
    let parts = |d: &Date| match d {
        (0, ..) => 2,
        (_, Some(_), None) => 2,
        d => parts(d),
    };
    let most = found.iter().map(parts).max().unwrap_or(0);
    found
        .iter()
        .filter(|d| parts(d) == most)
        .map(|(year, month, day)| match (month, day) {
            (Some(month), Some(day)) if *year == 0 => format!("--{month:02}-{day:02}"),
            (Some(month), Some(day)) => format!("{year:04}-{month:02}-{day:02}"),
            (Some(month), None) => format!("{year:04}-{month:02}"),
            _ => format!("{year:04}"),
        })
        .collect()
}

/// Converts Chinese numerals before month and day to digits: `十月一日`.
fn with_digits(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut run = String::new();
    for c in text.chars() {
        if "〇零一二三四五六七八九十".contains(c) {
            run.push(c);
            continue;
        }
        if c == '年' && run.chars().count() == 4 {
            let digit = |c: char| "〇一二三四五六七八九".chars().position(|d| d == c);
            let digits = run.chars().filter_map(digit).map(|d| d.to_string());
            run = digits.collect::<String>();
        }
        match matches!(c, '月' | '日' | '号')
            .then(|| value_of(&run))
            .flatten()
        {
            Some(value) => out.push_str(&value.to_string()),
            None => out.push_str(&run),
        }
        run.clear();
        out.push(c);
    }
    out + &run
}

/// Returns the value of Chinese numerals below a hundred.
fn value_of(run: &str) -> Option<u32> {
    let digit = |c: char| {
        "一二三四五六七八九"
            .chars()
            .position(|d| d == c)
            .map(|at| at as u32 + 1)
    };
    match run.split_once('十') {
        None => run
            .chars()
            .next()
            .filter(|_| run.chars().count() == 1)
            .and_then(digit),
        Some((tens, ones)) => {
            let part = |text: &str, none: u32| match text.chars().next() {
                None => Some(none),
                Some(c) => digit(c).filter(|_| text.chars().count() == 1),
            };
            Some(part(tens, 1)? * 10 + part(ones, 0)?)
        }
    }
}

/// Returns whether a question asks for a year.
pub fn asks_year(question: &str) -> bool {
    let lower = question
        .to_lowercase()
        .replace(['é', 'è'], "e")
        .replace('ñ', "n");
    const WORDS: &str = "what year|which year|in welchem jahr|welches jahr|quelle annee|que ano|year of|ano de|annee de|jahr der|jahr des|哪一年|哪年|year did|year was|jahreszahl";
    const YEAR: [&str; 7] = ["year", "yr", "jahr", "annee", "ano", "an", "年"];
    const DAY: &str =
        "day date when tag datum wann jour quand dia fecha cuando month monat mois mes years";
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    let alone = |text: &str| words.clone().any(|w| w == text && w != "an");
    // `2025 年 9 月 1 日` is a full date.
    let han = lower.chars().any(super::language::is_han);
    let bare = !(han && lower.contains(['月', '日', '天', '号']))
        && YEAR.iter().any(|year| alone(year))
        && !words.any(|w| DAY.split(' ').any(|d| d == w));
    // `Wie oft im Jahr`
    const OFTEN: &str =
        "oft|often|times|many|viele|much|viel|combien|fois|cuantas|cuanto|cuantos|veces|几次|多少";
    let counts = OFTEN
        .split('|')
        .any(|word| super::cues::find(&lower, word).is_some());
    bare && !counts || WORDS.split('|').any(|phrase| lower.contains(phrase))
}

/// Returns the only year of a text, within a date or alone.
pub fn only_year(text: &str) -> Option<String> {
    let words = words(&with_digits(text));
    let mut years: Vec<u32> = words
        .iter()
        .flat_map(|word| word.split(|c: char| !c.is_ascii_digit()))
        .filter_map(year)
        .collect();
    // `En deux mille dix-neuf`
    if years.is_empty() {
        let said = super::numerals::numeral(text).and_then(|key| key.parse::<u32>().ok());
        years.extend(said.filter(|year| (1000..2200).contains(year)));
    }
    years.sort_unstable();
    years.dedup();
    match years.as_slice() {
        [one] => Some(format!("{one:04}")),
        _ => None,
    }
}

/// Returns the date at the beginning of these words, and how many of them it takes.
fn here(words: &[String]) -> (Option<Date>, usize) {
    let get = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
    // `2001-09-09T01`: the part of a timestamp before a colon.
    if let Some((day, time)) = get(0).split_once('t')
        && time.starts_with(|c: char| c.is_ascii_digit())
        && let Some(date) = numeric(day)
    {
        return (Some(date), 1);
    }
    if let Some(date) = numeric(get(0)) {
        return (Some(date), 1);
    }
    // `9 November 1989`, `9 de noviembre de 1989`
    let filler = |at: usize| usize::from(matches!(get(at), "de" | "of" | "del"));
    if let Some(day) = day(get(0)) {
        let at = 1 + filler(1);
        if let Some(month) = month(get(at)) {
            let at = at + 1 + filler(at + 1);
            if let Some(year) = year(get(at)).or_else(|| short_year(get(at))) {
                return (checked(year, Some(month), Some(day)), at + 1);
            }
            return (checked(0, Some(month), Some(day)), at);
        }
    }
    if let Some(month) = month(get(0)) {
        // `November 9 1989`, `November 1989`
        if let (Some(day), Some(year)) = (day(get(1)), year(get(2))) {
            return (checked(year, Some(month), Some(day)), 3);
        }
        // `Sep 9 01:46:40 UTC 2001`
        let time = |word: &str| word.len() == 2 && word.chars().all(|c| c.is_ascii_digit());
        if let Some(day) = day(get(1))
            && (2..5).all(|at| time(get(at)))
            && let Some((at, year)) = (5..7).find_map(|at| Some((at, year(get(at))?)))
        {
            return (checked(year, Some(month), Some(day)), at + 1);
        }
        let at = 1 + filler(1);
        if let Some(year) = year(get(at)).or_else(|| marked_year(get(at))) {
            return (checked(year, Some(month), None), at + 1);
        }
        if let Some(day) = day(get(1)) {
            return (checked(0, Some(month), Some(day)), 2);
        }
    }
    // `11 月 9 日`
    if let (Ok(month), "月", Ok(day), "日" | "号") =
        (get(0).parse(), get(1), get(2).parse(), get(3))
    {
        return (checked(0, Some(month), Some(day)), 4);
    }
    // `1989 年 11 月 9 日`
    if let (Some(year), "年") = (year(get(0)), get(1)) {
        return match (get(2).parse(), get(3), get(4).parse(), get(5)) {
            (Ok(month), "月", Ok(day), "日" | "号") => {
                (checked(year, Some(month), Some(day)), 6)
            }
            (Ok(month), "月", ..) => (checked(year, Some(month), None), 4),
            _ => (checked(year, None, None), 2),
        };
    }
    (year(get(0)).and_then(|year| checked(year, None, None)), 1)
}

/// Parses `1989-11-09`, `1989/11/09`, `09.11.1989`, and `11/25/1989` if only one reading is a valid date.
fn numeric(word: &str) -> Option<Date> {
    let parts: Vec<&str> = word.split(['-', '/', '.']).collect();
    let two = |text: &str| text.len() == 2 && text.chars().all(|c| c.is_ascii_digit());
    match parts.as_slice() {
        // `1989-11`, `11-09`, `09.11.`
        [year, month] if year.len() == 4 && two(month) && word.contains('-') => {
            return checked(year.parse().ok()?, Some(month.parse().ok()?), None);
        }
        [month, day] if two(month) && two(day) && word.contains('-') => {
            return checked(0, Some(month.parse().ok()?), Some(day.parse().ok()?));
        }
        [day, month, ""]
            if month.len() <= 2 && day.len() <= 2 && word.matches('.').count() == 2 =>
        {
            return checked(0, Some(month.parse().ok()?), Some(day.parse().ok()?));
        }
        _ => {}
    }
    let [a, b, c] = parts.as_slice() else {
        return None;
    };
    let n = |t: &str| t.parse::<u32>().ok();
    if a.len() == 4 {
        return checked(n(a)?, Some(n(b)?), Some(n(c)?));
    }
    if c.len() != 4 {
        return None;
    }
    let (first, second, year) = (n(a)?, n(b)?, n(c)?);
    match () {
        () if word.contains('.') || first > 12 => checked(year, Some(second), Some(first)),
        () if second > 12 || first == second => checked(year, Some(first), Some(second)),
        () => None,
    }
}

/// Completes a date without a year with the only year named in the question.
pub fn with_year_of(key: &str, question: &str) -> String {
    let Some(rest) = key.strip_prefix("--") else {
        return key.to_owned();
    };
    let mut years: Vec<u32> = question
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(year)
        .collect();
    years.dedup();
    match years.as_slice() {
        [one] => format!("{one:04}-{rest}"),
        _ => key.to_owned(),
    }
}

/// Names of the days of the week.
const WEEKDAYS: [(&str, &str); 7] = [
    ("monday", "monday|montag|lundi|lunes|星期一|周一|礼拜一"),
    (
        "tuesday",
        "tuesday|dienstag|mardi|martes|星期二|周二|礼拜二",
    ),
    (
        "wednesday",
        "wednesday|mittwoch|mercredi|miércoles|miercoles|星期三|周三|礼拜三",
    ),
    (
        "thursday",
        "thursday|donnerstag|jeudi|jueves|星期四|周四|礼拜四",
    ),
    (
        "friday",
        "friday|freitag|vendredi|viernes|星期五|周五|礼拜五",
    ),
    (
        "saturday",
        "saturday|samstag|sonnabend|samedi|sábado|sabado|星期六|周六|礼拜六",
    ),
    (
        "sunday",
        "sunday|sonntag|dimanche|domingo|星期日|星期天|周日|周天|礼拜天|礼拜日",
    ),
];

/// Returns whether a question asks for a day of the week.
pub fn asks_weekday(question: &str) -> bool {
    let lower = question.to_lowercase();
    let asks = "weekday|day of the week|wochentag|jour de la semaine|día de la semana|dia de la semana|星期几|周几|礼拜几";
    asks.split('|').any(|phrase| lower.contains(phrase))
}

/// Returns the only day of the week named in a text.
pub fn weekday(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    let mut named = WEEKDAYS
        .iter()
        .filter(|(_, names)| names.split('|').any(|name| lower.contains(name)));
    let (day, _) = named.next()?;
    named.next().is_none().then_some(*day)
}

fn checked(year: u32, month: Option<u32>, day: Option<u32>) -> Option<Date> {
    let fits =
        month.is_none_or(|m| (1..=12).contains(&m)) && day.is_none_or(|d| (1..=31).contains(&d));
    fits.then_some((year, month, day))
}

fn year(word: &str) -> Option<u32> {
    let fits = word.len() == 4 && word.chars().all(|c| c.is_ascii_digit());
    word.parse()
        .ok()
        .filter(|year| fits && (1000..=2999).contains(year))
}

/// Parses a two-digit year with an apostrophe: `'29`.
fn marked_year(word: &str) -> Option<u32> {
    let bare = word.strip_prefix(['\'', '’', '‘'])?;
    short_year(bare.trim_end_matches('.'))
}

/// Parses a two-digit year after a day and a month: up to 39 is this century, 40 and above the last.
fn short_year(word: &str) -> Option<u32> {
    let bare = word
        .trim_start_matches(['\'', '’', '‘'])
        .trim_end_matches('.');
    let fits = bare.len() == 2 && bare.chars().all(|c| c.is_ascii_digit());
    let two: u32 = bare.parse().ok().filter(|_| fits)?;
    Some(match two {
        0..=39 => 2000 + two,
        _ => 1900 + two,
    })
}

fn day(word: &str) -> Option<u32> {
    let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
    let rest = word.get(digits.len()..)?;
    let fits = matches!(rest, "" | "." | "st" | "nd" | "rd" | "th" | "er" | "º");
    digits
        .parse()
        .ok()
        .filter(|day| fits && (1..=31).contains(day))
}

fn month(word: &str) -> Option<u32> {
    let known = word.chars().count() >= 3 && word.chars().all(|c| c.is_alphabetic() || c == '.');
    let at = MONTHS
        .iter()
        .position(|names| names.iter().any(|name| word.starts_with(name)))?;
    // `market` begins like `march`.
    let long = word.trim_end_matches('.').chars().count();
    let whole = [
        "january",
        "januar",
        "jänner",
        "janvier",
        "enero",
        "february",
        "februar",
        "février",
        "fevrier",
        "febrero",
        "march",
        "märz",
        "mars",
        "marzo",
        "april",
        "avril",
        "abril",
        "may",
        "mai",
        "mayo",
        "june",
        "juni",
        "juin",
        "junio",
        "july",
        "juli",
        "juillet",
        "julio",
        "august",
        "août",
        "aout",
        "agosto",
        "september",
        "septembre",
        "septiembre",
        "october",
        "oktober",
        "octobre",
        "octubre",
        "november",
        "novembre",
        "noviembre",
        "december",
        "dezember",
        "décembre",
        "decembre",
        "diciembre",
        "sept",
    ];
    (known && (long == 3 || whole.contains(&word.trim_end_matches('.')))).then_some(at as u32 + 1)
}

/// Splits a text into lowercase words; each Chinese character is a word.
fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for piece in text.to_lowercase().split(|c: char| {
        c.is_whitespace()
            || matches!(
                c,
                ',' | '(' | ')' | '（' | '）' | '*' | '"' | ':' | '，' | '。' | '`' | '“' | '”'
            )
    }) {
        let mut word = String::new();
        for c in piece.chars() {
            if super::language::is_han(c) {
                out.push(std::mem::take(&mut word));
                out.push(c.to_string());
            } else {
                word.push(c);
            }
        }
        out.push(word);
    }
    out.iter()
        .map(|word| match word.strip_suffix('.') {
            Some(bare)
                if bare.len() == 4 && bare.chars().all(|c| c.is_ascii_digit())
                    || bare.contains(['-', '/'])
                    || bare.matches('.').count() == 2 =>
            {
                bare.to_owned()
            }
            _ => word.clone(),
        })
        .filter(|word| !word.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_day_has_one_form() {
        for text in [
            "1989-11-09",
            "9 November 1989",
            "November 9, 1989",
            "The wall fell on 9 November 1989.",
            "9. November 1989",
            "Am 9. November 1989 fiel die Mauer.",
            "le 9 novembre 1989",
            "9 de noviembre de 1989",
            "1989年11月9日",
            "09.11.1989",
            "Nov 9th, 1989",
            "1989/11/09.",
        ] {
            assert_eq!(only(text).as_deref(), Some("1989-11-09"), "{text}");
        }
        assert_eq!(only("November 1989").as_deref(), Some("1989-11"));
        assert_eq!(only("1989-11").as_deref(), Some("1989-11"));
        for text in [
            "9 November",
            "Thursday the 9th of November.",
            "09.11.",
            "11-09",
            "11月9日",
            "November 9",
        ] {
            assert_eq!(only(text).as_deref(), Some("--11-09"), "{text}");
            let question = "Which day in 1989 was it?";
            assert_eq!(with_year_of("--11-09", question), "1989-11-09");
            assert_eq!(with_year_of("--11-09", "Which day was it?"), "--11-09");
        }
        assert_eq!(weekday("Un vendredi."), weekday("It was a **Friday**"));
        assert_eq!(weekday("Monday or Friday"), None);
        assert!(asks_weekday("2000年1月1日是星期几？"));
        assert_eq!(only("十一月九日").as_deref(), Some("--11-09"));
        assert_eq!(only("am 9.11.").as_deref(), Some("--11-09"));
        assert_eq!(only("一九八九年十一月九日").as_deref(), Some("1989-11-09"));
        assert!(asks_year("En quelle année est-il mort ?") && asks_year("香港哪一年回归"));
        assert_eq!(only_year("Am 3. Oktober 1990").as_deref(), Some("1990"));
        assert_eq!(only_year("1914 or 1918"), None);
        assert_eq!(only("in 1989").as_deref(), Some("1989"));
        assert_eq!(only("11/25/1989").as_deref(), Some("1989-11-25"));
    }

    #[test]
    fn stamps_and_short_years_are_dates() {
        for (text, want) in [
            ("Sun Sep  9 01:46:40 UTC 2001", "2001-09-09"),
            ("Sun Sep 9 01:46:40 2001", "2001-09-09"),
            ("Sun, 09 Sep 2001 01:46:40 GMT", "2001-09-09"),
            ("2001-09-09T01:46:40Z", "2001-09-09"),
            ("2001-09-09 01:46:40", "2001-09-09"),
            ("23. Mai 49", "1949-05-23"),
            ("le 23 mai '49", "1949-05-23"),
            ("June '29", "2029-06"),
            ("9 November at 10:30", "--11-09"),
        ] {
            assert_eq!(only(text).as_deref(), Some(want), "{text}");
        }
    }

    #[test]
    fn the_date_in_bold_or_of_a_conclusion_is_meant() {
        for (text, want) in [
            (
                "From 14 Jan 2026 back is 14 Oct 2025, so by Oct 14.",
                Some("2025-10-14"),
            ),
            (
                "Start 5 January, then 19 January, so **26 January**.",
                Some("--01-26"),
            ),
            (
                "Ablauf 2025-05-30, also bis 2025-04-30.",
                Some("2025-04-30"),
            ),
            (
                "从 2025-05-30 往前推，所以是 2025-04-30。",
                Some("2025-04-30"),
            ),
            ("Either 2025-05-30 or 2025-04-30.", None),
            ("**5 May** or **6 May**", None),
        ] {
            assert_eq!(concluded(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn what_can_be_two_days_is_none() {
        for text in [
            "05/06/1989",
            "9 November 1989 or 10 November 1989",
            "no idea",
            "13/13/1989",
            "42",
        ] {
            assert_eq!(only(text), None, "{text}");
        }
    }
}
