//! Numbers in words: `twenty-one`, `zweitausendzwölf`, `quatre-vingt-dix`, `doscientos cincuenta`, `三百五十`.
//!
//! A numeral is a run of number words of one language, joined by spaces, hyphens or its own "and". Words that also mean
//! something else (`once`, `elf`, `neuf`) count alone only in a text of their language.

use super::han_numerals;
use super::language::{Language, is_han};
use super::number::Number;
use super::numeral_words::{
    AMBIGUOUS, FRACTIONS, HALF_WORDS, HALVES, ONES, POINTS, SIGNS, TABLES, Table, VAGUE,
};

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The separator between a word and the one before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    Space,
    Hyphen,
    Other,
}

/// A word of a text, in lower case.
struct Word {
    lower: String,
    start: usize,
    end: usize,
    joint: Joint,
}

/// A numeral.
struct Run {
    /// The part before the decimal point.
    whole: u64,
    /// The digits behind it.
    decimals: String,
    /// Index of the word behind it.
    end: usize,
}

/// Maximum bytes of a text examined for numerals.
const BYTES_MAX: usize = 4_000;
/// Parts of German compounds, such as `dreiundzwanzig`.
const GERMAN_PARTS: [&str; 4] = ["hundert", "tausend", "und", "halb"];

/// The words that can begin a numeral.
static STARTS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let of = |table: &'static Table| {
        let values = table.values.iter().map(|(word, _)| *word);
        let scales = table.scales.iter().map(|(word, ..)| *word);
        let more = table.hundreds.iter().chain(table.one).copied();
        values.chain(scales).chain(more)
    };
    TABLES.iter().flat_map(of).collect()
});

/// Maximum words of a numeral.
const WORDS_MAX: usize = 16;

fn is(table: &str, word: &str) -> bool {
    table.split_whitespace().any(|w| w == word)
}

/// Returns the numerals of a text, in order; none if a vague number or a fraction makes them uncertain: `some hundred`,
/// `two thirds`. "One" is skipped because it is also an article, unless it is the whole text.
pub(super) fn spoken(text: &str) -> Vec<Number> {
    let words = match text.len() <= BYTES_MAX {
        true => words(text),
        false => return Vec::new(),
    };
    if let Some(one) = only_one(text, &words) {
        return vec![one];
    }
    let begins = |word: &Word| {
        STARTS.contains(word.lower.as_str()) || GERMAN_PARTS.iter().any(|p| word.lower.contains(p))
    };
    if !text.chars().any(is_han) && !words.iter().any(begins) {
        return Vec::new();
    }
    let own = Language::of(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let Some(run) = longest(&words, at, own) else {
            at += 1;
            continue;
        };
        if is_uncertain(&words, at, &run) {
            return Vec::new();
        }
        let behind = words.get(run.end);
        // `twenty-first`, `a two-week trip`
        let glued = behind.is_some_and(|w| w.joint == Joint::Hyphen);
        if !glued {
            found.push(number(&words, at, &run));
        }
        at = run.end;
    }
    // `half a dozen`
    if let [one] = found.as_mut_slice()
        && one.key == "12"
        && text
            .get(..one.start)
            .is_some_and(|t| t.trim_end().to_lowercase().ends_with("half"))
    {
        "6".clone_into(&mut one.key);
        return found;
    }
    let Some(han) = han_numerals::of(text) else {
        return Vec::new();
    };
    found.extend(han);
    // `two children and a dog and a half`
    let apart = text.contains('半') || words.iter().any(|w| is(HALF_WORDS, &w.lower));
    if apart && found.iter().all(|n| !n.key.contains('.')) {
        return Vec::new();
    }
    found.sort_by_key(|n| n.start);
    found
}

/// Returns the number given in words if a text has exactly one and no digits.
pub(super) fn numeral(text: &str) -> Option<String> {
    numeral_at(text).map(|(key, ..)| key)
}

/// Returns the only number in words of a text without digits, and its position: `Four engineers.`
pub(super) fn numeral_at(text: &str) -> Option<(String, usize, usize)> {
    if text.chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let [one]: [Number; 1] = spoken(text).try_into().ok()?;
    Some((one.key, one.start, one.end))
}

/// Returns 1 if a text consists of "one" and a word such as "only".
fn only_one(text: &str, words: &[Word]) -> Option<Number> {
    const ALONE: &str = "one eins einer eine eines un une uno una";
    const BESIDE: &str = "just only exactly nur genau seulement exactement solo sólo exactamente";
    let (last, before) = words.split_last()?;
    let bare = before.len() <= 1 && before.iter().all(|w| is(BESIDE, &w.lower));
    let han = text.chars().any(is_han);
    (bare && !han && is(ALONE, &last.lower)).then(|| Number {
        key: "1".to_owned(),
        start: last.start,
        end: last.end,
    })
}

fn words(text: &str) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut from = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let letter = c.is_alphanumeric() && !is_han(c);
        match (letter, from) {
            (true, None) => from = Some(at),
            (false, Some(start)) => {
                let last = out.last().map_or(0, |w| w.end);
                let between = text.get(last..start).unwrap_or_default();
                let joint = match between {
                    "-" | "\u{2011}" => Joint::Hyphen,
                    _ if between.chars().all(char::is_whitespace) => Joint::Space,
                    _ => Joint::Other,
                };
                out.push(Word {
                    lower: text.get(start..at).unwrap_or_default().to_lowercase(),
                    start,
                    end: at,
                    joint,
                });
                from = None;
            }
            _ => {}
        }
    }
    out
}

/// Returns whether the words beside a numeral make it vague or a fraction.
fn is_uncertain(words: &[Word], at: usize, run: &Run) -> bool {
    let before = at.checked_sub(1).map_or("", |b| words[b].lower.as_str());
    let behind = words.get(run.end).filter(|w| w.joint != Joint::Other);
    let next = behind.map_or("", |w| w.lower.as_str());
    is(VAGUE, before) && run.whole >= 12 || is(FRACTIONS, next) || matches!(next, "odd" | "plus")
}

/// Returns the number of a numeral, with the sign in words before it.
fn number(words: &[Word], at: usize, run: &Run) -> Number {
    // `five minus two` subtracts.
    let signed = at.checked_sub(1).is_some_and(|b| {
        let subtracts = b.checked_sub(1).is_some_and(|b| {
            let lower = words[b].lower.as_str();
            let digits = lower.starts_with(|c: char| c.is_ascii_digit());
            words[b + 1].joint != Joint::Other
                && (digits || longest(words, b, Language::English).is_some())
        });
        words[at].joint != Joint::Other && is(SIGNS, &words[b].lower) && !subtracts
    });
    let sign = if signed && run.whole > 0 { "-" } else { "" };
    let point = if run.decimals.is_empty() { "" } else { "." };
    Number {
        key: format!("{sign}{}{point}{}", run.whole, run.decimals),
        start: words[at].start,
        end: words[run.end - 1].end,
    }
}

/// Returns the longest numeral that begins at a word, of the language of the text if several are as long.
fn longest(words: &[Word], at: usize, own: Language) -> Option<Run> {
    let first = words[at].lower.as_str();
    let compound = || GERMAN_PARTS.iter().any(|part| first.contains(part));
    if !STARTS.contains(first) && !compound() {
        return None;
    }
    let runs = TABLES.iter().filter_map(|table| {
        let run = run(words, at, table)?;
        let alone = run.end == at + 1 && is(AMBIGUOUS, &words[at].lower);
        let counts = !alone || table.language == own || words.len() == 1;
        counts.then_some((run.end, table.language == own, run))
    });
    runs.max_by_key(|(end, own, _)| (*end, *own))
        .map(|(.., run)| run)
}

/// Returns the numeral of a language that begins at a word.
fn run(words: &[Word], from: usize, table: &Table) -> Option<Run> {
    let (mut total, mut part, mut last) = (0u64, 0u64, None::<u64>);
    let mut scale_max = u64::MAX;
    let mut at = from;
    while let Some(word) = words
        .get(at)
        .filter(|w| at == from || w.joint != Joint::Other)
    {
        if at - from >= WORDS_MAX {
            break;
        }
        let next = words.get(at + 1).filter(|w| w.joint != Joint::Other);
        let lower = word.lower.as_str();
        if let Some(value) = value(lower, table, last, next)
            && let Some(sum) = added(part, last, value, table.language)
        {
            part = sum;
            last = Some(value);
        } else if table.hundreds.contains(&lower) && part % 100 == part && last != Some(0) {
            // `hundred percent` is not a hundred; `cent euros` is.
            if part == 0 && table.language == Language::English {
                break;
            }
            part = part.max(1) * 100;
            last = Some(100);
        } else if let Some((_, scale, alone)) = table.scales.iter().find(|(w, ..)| *w == lower)
            && *scale < scale_max
            && (part > 0 || *alone && last.is_none())
        {
            total += part.max(1).checked_mul(*scale)?;
            (part, last, scale_max) = (0, Some(*scale), *scale);
        } else if last.is_some()
            && table.and.contains(&lower)
            && next.is_some_and(|w| goes_on(&w.lower, table, part, last))
        {
        } else {
            break;
        }
        at += 1;
    }
    while at > from && table.and.contains(&words[at - 1].lower.as_str()) {
        at -= 1;
    }
    if last.is_none() {
        return (table.language == Language::German)
            .then(|| german_half(&words[from], from, table))?;
    }
    let mut run = Run {
        whole: total.checked_add(part)?,
        decimals: String::new(),
        end: at,
    };
    decimals(words, &mut run, table);
    Some(run)
}

/// Parses `zweieinhalb`, `dreieinhalbe` and `anderthalb`.
fn german_half(word: &Word, at: usize, table: &Table) -> Option<Run> {
    let stem = word.lower.trim_end_matches(['e', 'n', 'r', 's']);
    let whole = match stem {
        "anderthalb" | "eineinhalb" => 1,
        stem => {
            let count = stem
                .strip_suffix("einhalb")
                .or(stem.strip_suffix("undeinhalb"))?;
            let known = table.values.iter().find(|(name, _)| *name == count);
            known.map(|(_, n)| *n)?
        }
    };
    Some(Run {
        whole,
        decimals: "5".to_owned(),
        end: at + 1,
    })
}

/// Returns the value that a word adds. "One" counts only behind another number or before a multiplier.
fn value(lower: &str, table: &Table, last: Option<u64>, next: Option<&Word>) -> Option<u64> {
    let known = table.values.iter().find(|(word, _)| *word == lower);
    if let Some((_, value)) = known {
        return Some(*value);
    }
    let multiplied = next.is_some_and(|w| {
        table.hundreds.contains(&w.lower.as_str())
            || table.scales.iter().any(|(scale, ..)| *scale == w.lower)
    });
    if table.one.contains(&lower) && multiplied || last.is_some_and(|l| l >= 20) && is(ONES, lower)
    {
        return Some(1);
    }
    // `half a dozen`
    match table.language {
        Language::German => compound(lower, table),
        _ => None,
    }
}

/// Returns whether a word continues a numeral behind "and".
fn goes_on(lower: &str, table: &Table, part: u64, last: Option<u64>) -> bool {
    // `cuarenta y dos`, `vingt et un`, `one hundred and five`, but not `twenty and five`.
    let joins = match table.language {
        Language::English => last.is_some_and(|l| l >= 100),
        Language::Spanish => last.is_some_and(|l| (30..100).contains(&l)),
        _ => last.is_some_and(|l| (20..100).contains(&l)) && matches!(lower, "un" | "une" | "onze"),
    };
    let value = value(lower, table, last, None);
    joins && value.is_some_and(|v| v > 0 && added(part, last, v, table.language).is_some())
}

/// Adds a value to a part below one thousand, if the two make one number.
fn added(part: u64, last: Option<u64>, value: u64, language: Language) -> Option<u64> {
    let Some(last) = last else {
        return Some(value);
    };
    if value == 0 {
        return None;
    }
    let rest = part % 100;
    let french = language == Language::French;
    // `quatre-vingts`
    if french && rest == 4 && last == 4 && value == 20 {
        return Some(part - 4 + 80);
    }
    let fits = match value {
        _ if last >= 100 && value < 1_000 => value < last || last >= 1_000,
        1..10 => {
            (20..100).contains(&rest) && rest.is_multiple_of(10)
                || french && last == 10 && value >= 7
        }
        10..20 => french && matches!(rest, 60 | 80),
        _ => false,
    };
    (fits && (last < 100 || part.is_multiple_of(100))).then_some(part + value)
}

/// Takes the decimals behind a numeral: `three point five`, `two and a half`.
fn decimals(words: &[Word], run: &mut Run, table: &Table) {
    let behind = |n: usize| {
        let word = words.get(run.end + n).filter(|w| w.joint == Joint::Space);
        word.map_or("", |w| w.lower.as_str())
    };
    // `two hours and a half`
    for unit in 0..2 {
        let mut halves = HALVES.iter();
        let half = halves.find(|half| half.iter().enumerate().all(|(n, w)| behind(unit + n) == *w));
        if let Some(half) = half {
            (run.decimals, run.end) = ("5".to_owned(), run.end + unit + half.len());
            return;
        }
    }
    if !is(POINTS, behind(0)) {
        return;
    }
    let digit = |lower: &str| {
        let known = table.values.iter().find(|(word, _)| *word == lower);
        let value = known.map(|(_, value)| *value);
        value.or(is(ONES, lower).then_some(1)).filter(|v| *v < 10)
    };
    let mut digits = String::new();
    while let Some(value) = digit(behind(1 + digits.len())) {
        digits.push_str(&value.to_string());
    }
    if !digits.is_empty() {
        run.end += 1 + digits.len();
        run.decimals = digits.trim_end_matches('0').to_owned();
    }
}

/// Parses a German number in one word: `fünfunddreißig`, `hundert`, `dreihundertvierzig`, `zweitausend`.
fn compound(word: &str, table: &Table) -> Option<u64> {
    let plain = |word: &str| {
        let known = table.values.iter().find(|(name, _)| *name == word);
        known.map(|(_, n)| *n)
    };
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
            ("one", Some("1")),
            ("Only one.", Some("1")),
            ("Nur eine.", Some("1")),
            ("that one", None),
            ("a dozen", Some("12")),
            ("two dozen", Some("24")),
            ("Half a dozen.", Some("6")),
            ("dozens of them", None),
            ("un million", Some("1000000")),
            ("two million five hundred thousand", Some("2500000")),
            ("nineteen eighty-four", None),
            ("twenty-first", None),
            ("a two-week trip", None),
            ("two thirds", None),
            ("drei Viertel", None),
            ("deux tiers", None),
            ("some two hundred", None),
            ("three point one four", Some("3.14")),
            ("drei Komma fünf", Some("3.5")),
            ("trois virgule cinq", Some("3.5")),
            ("dos coma cinco", Some("2.5")),
            ("三点五", Some("3.5")),
            ("Once it is done", None),
            ("Elf", Some("11")),
            ("Son once.", Some("11")),
            ("C'est neuf.", Some("9")),
            ("dreihunderteinundneunzig", Some("391")),
            ("trois cent quatre-vingt-onze", Some("391")),
            ("trescientos noventa y uno", Some("391")),
            ("doscientos cincuenta y seis", Some("256")),
            ("mil novecientos ochenta y nueve", Some("1989")),
            ("deux mille vingt-quatre", Some("2024")),
            ("nonante-sept", Some("97")),
            ("zwei Millionen", Some("2000000")),
            ("十分重要", None),
            ("十分钟", Some("10")),
            ("第三个", None),
            ("星期三", None),
            ("负二十五", Some("-25")),
            ("minus forty", Some("-40")),
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
            ("twelve and a half", Some("12.5")),
            ("deux et demi", Some("2.5")),
            ("deux heures et demie", Some("2.5")),
            ("dos horas y media", Some("2.5")),
            ("十二圈半", Some("12.5")),
            ("三个半小时", Some("3.5")),
            ("三点半", None),
            ("zwölfeinhalb", Some("12.5")),
            ("anderthalb Stunden", Some("1.5")),
        ] {
            assert_eq!(numeral(text).as_deref(), number, "{text}");
        }
    }
}
