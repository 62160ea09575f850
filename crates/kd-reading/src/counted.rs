//! Reads a number for its question: of several amounts, the one in the unit asked for, the number of the things counted,
//! the one that the reply begins with alone, the end of an equation. A year beside an unread count leaves it open.

use super::counted_words::{CONTRASTS, DATES, JOINS, NOT_NOW, OPENS, OR, SAYS_AGAIN};
use super::language::{Language, is_han};
use super::number::{self, Number};
use super::{Answer, Step, Unread, Wanted, cues, prose, units, voices};

/// Maximum size of a reply to examine, in bytes.
const BYTES_MAX: usize = 600;

/// Reads a number from a reply to a question.
///
/// # Errors
/// The reason why no number is read.
pub fn amount(question: &str, reply: &str) -> Result<(String, Step), Unread> {
    let said = match super::read(&Wanted::Number, reply) {
        Ok((Answer::Text(key), step)) => Ok((key, step)),
        Ok((Answer::Option(_), _)) => Err(Unread::Missing),
        Err(why) => Err(why),
    };
    let firm = matches!(&said, Ok((_, step)) if !matches!(step, Step::LastLine | Step::Words));
    let text = prose::without_thoughts(reply);
    let text = text.trim();
    let lower = text.to_lowercase().replace('’', "'");
    let open = matches!(said, Err(Unread::Empty | Unread::Refused));
    let turned = prose::turns(text)
        || voices::retracts(&lower)
        || cues::has(&lower, super::amounts::REVOKES);
    if firm || open || text.len() > BYTES_MAX || text.contains(['{', '[', '?', '？', '`']) || turned
    {
        return said;
    }
    let counted = of_counted(question, text);
    let asked = match &counted {
        Some(Counted::Asked(key)) => Some(key.clone()),
        _ => None,
    };
    let found = in_asked_unit(question, text)
        .or_else(|| chained(text))
        .or(asked)
        .or_else(|| alone_first(text));
    let of_another = |key: &str| matches!(&counted, Some(Counted::Another(other)) if other == key);
    match (found, said) {
        (Some(key), _) => Ok((key, Step::Words)),
        (None, Ok((key, _))) if of_another(&key) || is_year_of_count(question, text, &key) => {
            Err(Unread::Ambiguous)
        }
        (None, said) => said,
    }
}

/// The only number of the counted things.
enum Counted {
    /// The number of the things that were asked about.
    Asked(String),
    /// The number of other things.
    Another(String),
}

/// Returns the numbers of a text in digits and in words, in order.
fn all_numbers(text: &str) -> Vec<Number> {
    let mut all = number::numbers(text, Language::of(text));
    let spoken = super::numerals::spoken(text).into_iter();
    let apart: Vec<Number> = spoken
        .filter(|s| all.iter().all(|n| s.end <= n.start || n.end <= s.start))
        .collect();
    all.extend(apart);
    all.sort_by_key(|n| n.start);
    all
}

/// Returns the words of a text in lower case.
fn words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|c: char| !c.is_alphanumeric() && !matches!(c, '°' | '/'))
        .filter(|w| !w.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the word behind a number, with its degree sign.
fn unit_behind(text: &str, number: &Number) -> String {
    let rest = text.get(number.end..).unwrap_or_default();
    let rest = rest.trim_start_matches(['*', ' ', '\u{a0}', '\u{202f}']);
    let word: String = rest
        .chars()
        .take_while(|c| c.is_alphanumeric() || matches!(c, '°' | '/' | '²' | '³'))
        .collect();
    let rest = rest.get(word.len()..).unwrap_or_default();
    // `100 degrees Celsius`
    match word.as_str() {
        "°" | "degrees" | "Grad" | "degrés" | "grados" => words(rest)
            .into_iter()
            .next()
            .map_or(word, |w| format!("°{w}")),
        _ => word,
    }
}

/// Returns the amount in the unit that a question asks for, if a reply converts one amount into another unit: `330 m,
/// which is 1,083 ft`. Without a unit in the question, the first counts.
fn in_asked_unit(question: &str, text: &str) -> Option<String> {
    let all = all_numbers(text);
    let [one, two] = all.as_slice() else {
        return None;
    };
    let (first, second) = (unit_behind(text, one), unit_behind(text, two));
    let (a, b) = (units::base(&first)?, units::base(&second)?);
    let between = text.get(one.end..two.start)?.to_lowercase();
    let short = between.split_whitespace().count() <= 8 && !between.contains(['+', '-', '=', '×']);
    if a != b || units::same(&first, &second) || !short || !cues::has(&between, SAYS_AGAIN) {
        return None;
    }
    let asked = asked_units(question);
    let fits = |unit: &str| asked.iter().any(|a| units::same(a, unit));
    match (fits(&first), fits(&second)) {
        (true, false) => Some(one.key.clone()),
        (false, true) => Some(two.key.clone()),
        // `2.5 hours is 150 minutes` calculates.
        (false, false) if between.contains([',', ';', '，']) => Some(one.key.clone()),
        _ => None,
    }
}

/// Returns the units named in a question, but those behind its own amounts: `a 10 km run`.
fn asked_units(question: &str) -> Vec<String> {
    let given: Vec<String> = all_numbers(question)
        .iter()
        .map(|n| unit_behind(question, n).to_lowercase())
        .collect();
    let mut out: Vec<String> = words(question)
        .into_iter()
        .filter(|w| w.chars().count() > 1 && units::base(w).is_some() && !given.contains(w))
        .collect();
    if question.chars().any(is_han) {
        let named = [
            "分钟",
            "小时",
            "公里",
            "千米",
            "英里",
            "米",
            "英尺",
            "公斤",
            "磅",
            "摄氏度",
            "华氏度",
        ];
        out.extend(
            named
                .iter()
                .filter(|u| question.contains(**u))
                .map(|u| (*u).to_owned()),
        );
    }
    out
}

/// Returns the end of a calculation that is the whole last line: `7! = 7 × 6 × … = **5040**`.
fn chained(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|l| !l.trim().is_empty())?;
    let plain = prose::plain_latex(line).replace("**", "");
    let (left, right) = plain.rsplit_once(['=', '＝'])?;
    let letters = right.chars().filter(|c| c.is_alphabetic()).count();
    let others = text.lines().filter(|l| l.contains(['=', '＝'])).count() > 1;
    let operates = left.contains(['+', '×', '*', '/', '÷', '·', '!'])
        || left.contains(" - ")
        || left.contains(" − ");
    let one_step = !left.contains(['≠', ';', ':', '：', '，', '?', '<', '>'])
        && !left.contains(", ")
        && !left.contains(". ");
    let variable = words(left).iter().any(|w| {
        w.trim_start_matches(|c: char| c.is_ascii_digit()).len() == 1
            && w.ends_with(['x', 'y', 'n', 'a', 'b', 'z'])
    });
    let key = number::only(right, Language::of(text))?;
    let ends = number::numbers(right, Language::of(text)).len() == 1
        && !right.contains(['+', '×', '/', '≈', '(', ','])
        || right
            .trim()
            .trim_end_matches('.')
            .replace([',', ' '], "")
            .bytes()
            .all(|b| b.is_ascii_digit());
    (operates && one_step && !variable && !others && letters <= 10 && ends).then_some(key)
}

/// Phrases that ask for a count, and the words that end the name of the counted things.
const HOW_MANY: [&str; 12] = [
    "how many ",
    "wie viele ",
    "wieviele ",
    "combien de ",
    "combien d'",
    "cuántos ",
    "cuántas ",
    "cuantos ",
    "cuantas ",
    "多少",
    "几",
    "number of ",
];
const ENDS_NAME: &str = "is are was were do does did has have had can could will would should there in of on at to for per make makes fit exist \
    hat haben hatte gibt sind waren ist war kann können passen zählt zählen enthält umfasst im in von der des das \
    compte comptent a ont y est sont avait contient dans du de la le les il elle faut peut \
    hay tiene tienen son es fueron tuvo tenía caben en del el cuenta cuentan un una";

/// Returns the words for the counted things, the noun last.
fn counted(question: &str) -> Option<Vec<String>> {
    let lower = question.to_lowercase().replace('’', "'");
    let (at, ask) = HOW_MANY
        .iter()
        .filter_map(|ask| Some((lower.find(ask)?, ask)))
        .min()?;
    let rest = lower.get(at + ask.len()..)?;
    if rest.chars().next().is_some_and(is_han) {
        let name: String = rest.chars().take_while(|c| is_han(*c)).collect();
        // A measure word comes before the noun: `块骨头`.
        let name: String = name
            .chars()
            .skip(usize::from(name.chars().count() > 2))
            .collect();
        return (name.chars().count() >= 2).then(|| vec![name]);
    }
    let name: Vec<String> = rest
        .split(|c: char| c.is_whitespace())
        .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()).to_owned())
        .take_while(|w| !w.is_empty() && !ENDS_NAME.split_whitespace().any(|e| e == w))
        .take(3)
        .collect();
    let noun = name.last()?;
    (noun.chars().count() >= 2).then_some(name)
}

/// Returns whether two words are forms of one noun: `moon`, `moons`.
fn alike(one: &str, two: &str) -> bool {
    let short = one.len().min(two.len());
    one == two
        || short >= 3
            && one.len().abs_diff(two.len()) <= 2
            && (one.starts_with(two) || two.starts_with(one))
}

/// Returns the only number of the things that a question without numbers counts, in a claim about its subject: `An adult
/// human has 206 bones. Babies have 270.`
fn of_counted(question: &str, text: &str) -> Option<Counted> {
    if question.contains(|c: char| c.is_ascii_digit()) || text.contains(['=', '+', '×', '|']) {
        return None;
    }
    let name = counted(question)?;
    let noun = name.last()?;
    let all = all_numbers(text);
    let counts = |n: &&Number| {
        let rest = text
            .get(n.end..)
            .unwrap_or_default()
            .trim_start_matches(['*', ' ']);
        if is_han(noun.chars().next().unwrap_or(' ')) {
            return rest.starts_with(noun.as_str())
                || rest
                    .chars()
                    .skip(1)
                    .collect::<String>()
                    .starts_with(noun.as_str())
                || rest
                    .chars()
                    .skip(2)
                    .collect::<String>()
                    .starts_with(noun.as_str());
        }
        let end = rest
            .find(['.', ',', ';', ':', '(', '?', '\n'])
            .unwrap_or(rest.len());
        let near: Vec<String> = words(&rest[..end]).into_iter().take(name.len()).collect();
        near.iter().any(|w| alike(w, noun))
            && near
                .iter()
                .all(|w| name.iter().any(|n| alike(n, w)) || alike(w, noun))
            || near.first().is_some_and(|w| alike(w, noun))
    };
    let found: Vec<&Number> = all.iter().filter(counts).collect();
    let one = *found.first()?;
    if found.iter().any(|n| n.key != one.key) {
        return None;
    }
    let is_year = |n: &Number| {
        n.key
            .parse::<u32>()
            .is_ok_and(|y| (1000..2200).contains(&y))
    };
    if all.iter().any(|n| n.start < one.start && !is_year(n)) || is_year(one) && all.len() > 1 {
        return None;
    }
    let head = text.get(..one.start)?;
    let behind = text.get(one.end..)?;
    let from = head.rfind(['.', ';', '。', '；', '\n']).map_or(0, |at| {
        at + head[at..].chars().next().map_or(1, char::len_utf8)
    });
    let to = behind
        .find(['.', ',', ';', ':', '(', '。', '，', '；', '：', '（', '\n'])
        .unwrap_or(behind.len());
    let clause = text.get(from..one.end + to)?.to_lowercase();
    if cues::has(&clause, OPENS) || cues::has(&clause, NOT_NOW) || clause.contains("n't") {
        return None;
    }
    let rest = behind.get(to..)?;
    let rest_number = all.iter().any(|n| n.start >= one.end + to);
    // `five or six models` explains: only `or` directly behind the count opens it.
    let near: String = rest.chars().take(6).collect();
    if rest_number && cues::has(&rest.to_lowercase(), CONTRASTS)
        || cues::has(&near.to_lowercase(), OR)
    {
        return None;
    }
    match other_subject(question, &name, text, one, to) {
        None => Some(Counted::Asked(one.key.clone())),
        Some(at) => {
            let named = text.get(at..)?.starts_with(char::is_uppercase);
            named.then(|| Counted::Another(one.key.clone()))
        }
    }
}

/// Returns where another word of a question first occurs in another claim than the one up to `to` behind a number:
/// `Jupiter has 95 moons. Mars has two.`
fn other_subject(
    question: &str,
    name: &[String],
    text: &str,
    one: &Number,
    to: usize,
) -> Option<usize> {
    let lower = text.to_lowercase();
    if lower.len() != text.len() {
        return Some(0);
    }
    let end = one.end + to;
    let is_function = |w: &String| {
        let asks = HOW_MANY.iter().any(|ask| ask.split(' ').any(|a| a == w));
        asks || ENDS_NAME.split_whitespace().any(|e| e == w)
    };
    let is_name =
        |w: &String| name.iter().any(|n| alike(n, w)) || w.chars().count() < 4 || is_function(w);
    let asked: Vec<String> = match question.chars().any(is_han) {
        true => question
            .split(|c: char| "有多少几个的共是？?，".contains(c) || !c.is_alphanumeric())
            .filter(|w| {
                w.chars().count() >= 2
                    && !name.iter().any(|n| n.contains(w) || w.contains(n.as_str()))
            })
            .map(str::to_owned)
            .collect(),
        false => words(question)
            .into_iter()
            .filter(|w| !is_name(w))
            .collect(),
    };
    asked.iter().find_map(|w| {
        let at = cues::find(&lower, w).or_else(|| lower.find(w.as_str()))?;
        let here = at < one.start || at < end && !cues::has(&lower[one.end..at], JOINS);
        (!here).then_some(at)
    })
}

/// Returns the number that a reply begins with, alone before its first mark: `Eight. Insects have six.`
fn alone_first(text: &str) -> Option<String> {
    let (head, rest) = lead(text)?;
    let all = all_numbers(head);
    let [one] = all.as_slice() else {
        return None;
    };
    let before = words(head.get(..one.start)?);
    let behind = words(head.get(one.end..)?);
    const ABOUT: &str = "about around roughly exactly just only etwa rund genau nur environ exactement unos unas exactamente 约 大约";
    let plain = before.iter().all(|w| ABOUT.split(' ').any(|a| a == w)) && behind.len() <= 1;
    let more = !all_numbers(rest).is_empty();
    (plain && more && !cues::has(&rest.to_lowercase(), OPENS)).then(|| one.key.clone())
}

/// Splits a reply at the mark behind its first words; `None` if it is a list or goes on with another number.
pub(super) fn lead(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(['*', ' ']);
    let at = text.char_indices().find_map(|(at, c)| {
        let next = text.get(at + c.len_utf8()..)?.chars().next();
        let apart = next.is_none_or(|n| n.is_whitespace() || n == '*');
        (matches!(c, '。' | '，' | '；' | '（')
            || matches!(c, '.' | ',' | ';') && apart
            || c == '(')
            .then_some((at, c))
    });
    let (at, c) = at?;
    let (head, rest) = (&text[..at], &text[at + c.len_utf8()..]);
    let list = text.contains('\n') || ["2.", "2)"].iter().any(|m| rest.contains(m));
    let next = rest.trim_start().chars().next();
    let numbers = next.is_none_or(|n| n.is_ascii_digit() || matches!(n, '±' | '-' | '−' | '+'));
    let goes_on = all_numbers(rest).first().is_some_and(|n| n.start <= 2);
    (head.len() <= 40 && !list && !numbers && !goes_on)
        .then_some((head.trim_end_matches('*'), rest))
}

/// Returns whether the number read for a count is a year that only dates it: `It has two moons, discovered in 1877.`
fn is_year_of_count(question: &str, text: &str, key: &str) -> bool {
    let lower = question.to_lowercase();
    let counts = HOW_MANY.iter().any(|ask| lower.contains(ask));
    if !counts || !key.parse::<u32>().is_ok_and(|y| (1000..2200).contains(&y)) {
        return false;
    }
    let all = all_numbers(text);
    all.iter().filter(|n| n.key == key).all(|n| {
        let before = text[..n.start].trim_end().to_lowercase();
        let last = before
            .rsplit(|c: char| c.is_whitespace())
            .next()
            .unwrap_or_default();
        let dated = DATES
            .iter()
            .any(|d| *d == last || !d.is_ascii() && before.ends_with(d));
        dated || text[n.end..].starts_with('年') || all.iter().any(|o| o.key != key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counted_things_are_found() {
        for (question, want) in [
            ("How many bones does a cat have?", "bones"),
            ("Wie viele Zähne hat ein Hund?", "zähne"),
            ("Combien de cordes compte une harpe ?", "cordes"),
            ("¿Cuántos ríos tiene Chile?", "ríos"),
            ("章鱼有多少颗心脏？", "心脏"),
        ] {
            let found = counted(question).and_then(|name| name.last().cloned());
            assert_eq!(found.as_deref(), Some(want), "{question}");
        }
    }
}
