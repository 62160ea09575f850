//! Weighs the numbers in a text. Operands, ranges, references, and rejected or conditional numbers have no weight; a
//! number alone, in bold, after the last `=` or in a conclusion weighs more than a number in passing. The heaviest
//! number is the answer. On a tie, only a conclusive statement decides.

use super::amount_words::{CONFIDENCE, RESULTS, STATES};
use super::candidates::{Candidate, Standing};
use super::clauses::{self, Before, Form, Role, Sentence};
use super::cues;
use super::gate::{self, Open};
use super::language::{Language, is_han};
use super::number::{self, Number};
use super::operands::{
    follows_copula, is_bound, is_compared, is_dated, is_derived, is_difference, is_limit, is_name,
    is_operand, is_operand_left, is_per, is_rejected, is_share_of, is_status,
};
use super::prose;
use super::said::Said;
use super::{sayings, voices};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Rejected.
    Against,
    /// An operand, a bound or a reference, or inside a condition, brackets or a question.
    Nothing,
    /// Reported, or alone in brackets: counts only if there is no other number.
    Reported,
    Named,
    /// After the last `=` of its clause, or after a word such as `is` or `gives`.
    Result,
    /// In a conclusion.
    Concluded,
    /// Alone, in bold, or recommended.
    Stated,
}

#[derive(Clone, Debug)]
struct Weighed {
    key: String,
    weight: Weight,
    /// Index of the sentence.
    place: usize,
    /// The position in it.
    start: usize,
    clause: usize,
    end: usize,
    settles: bool,
    /// Whether the unit is a percentage.
    percent: bool,
    /// Whether it converts the amount before it: `2 TB, so 2000 GB`.
    converts: bool,
}

/// Returns the number given by a text without labels.
pub(super) fn decide(text: &str, language: Language) -> Said<String> {
    let outside = without_code(text);
    let said = weighed(&outside, language);
    match said {
        Said::Nothing if outside.len() < text.len() => {
            weighed(&text.replace("```", "\n"), language)
        }
        said => said,
    }
}

/// Removes code blocks from a text.
fn without_code(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

fn weighed(text: &str, language: Language) -> Said<String> {
    let lines: Vec<String> = text
        .lines()
        .filter(|l| !prose::is_about_confidence(l))
        .map(prose::plain_latex)
        .map(|line| without_restated(&line, language))
        .map(|line| without_approximated(&line, language))
        .collect();
    let mut sentences = clauses::split(&lines.join("\n"));
    let mut all: Vec<Weighed> = Vec::new();
    let mut doubts: Vec<usize> = Vec::new();
    let mut turns: Vec<usize> = Vec::new();
    let mut revoked: Option<(usize, usize)> = None;
    for (place, sentence) in sentences.iter_mut().enumerate() {
        if sayings::is_courtesy(&sentence.text) || prose::is_about_confidence(&sentence.text) {
            continue;
        }
        let lower = sentence.text.to_lowercase().replace('’', "'");
        let turns_here = cues::has(&lower, cues::TURNS);
        // `(An earlier draft said 99.9 %.)`
        if place > 0 && sentence.is_aside() && !turns_here {
            continue;
        }
        if turns_here {
            turns.push(place);
        }
        if let Some((at, _)) = cues::places(&lower, REVOKES).last() {
            revoked = Some((place, at));
        }
        let numbers = numbers_of(sentence, language);
        if !numbers.is_empty() {
            sentence.clauses = clauses::clauses(&sentence.text);
        }
        let mut here = of_sentence(sentence, place, &numbers);
        let decided = here
            .iter()
            .any(|w| w.weight >= Weight::Concluded && w.settles);
        if numbers.is_empty() && !all.is_empty() && voices::retracts(&lower) {
            doubts.push(place);
        }
        let undecided = here.len() != 1 && cues::has(&lower, cues::UNDECIDED);
        let split = is_split(sentence, &here);
        if split || !decided && (is_open(&lower, &here) || undecided) {
            doubts.push(place);
        }
        all.append(&mut here);
    }
    // `It is 47 – sorry, that was for the larger one. It is 25.`
    if let Some(from) = revoked
        && all
            .iter()
            .any(|w| (w.place, w.start) > from && w.weight > Weight::Reported)
    {
        let before = all.iter_mut().filter(|w| (w.place, w.start) < from);
        before.for_each(|w| w.weight = Weight::Against);
    }
    // A conversion is an answer only if no other number follows.
    let last = all.last().map_or(0, |w| w.place);
    for one in all.iter_mut().filter(|w| w.converts && w.place < last) {
        one.weight = Weight::Nothing;
    }
    // `1945. It began in 1939.`
    let opens = sentences
        .first()
        .is_some_and(|s| s.text.split_whitespace().count() == 1);
    for one in all.iter_mut().filter(|w| opens && w.place > 0) {
        let before = sentences[one.place].text.get(..one.start);
        if before.is_some_and(leads_year) && one.key.len() == 4 {
            one.weight = one.weight.min(Weight::Nothing);
        }
    }
    // Two different numbers, and nothing says which one counts.
    let differ = all.iter().any(|w| w.key != all[0].key);
    let lower = lines.join("\n").to_lowercase().replace('’', "'");
    if differ && cues::has(&lower, cues::CANNOT_CHOOSE) {
        return Said::Several;
    }
    let said = match resolve(&all, &doubts, &turns) {
        Said::Several => closing(&lines, &lower, language).map_or(Said::Several, Said::LastLine),
        Said::LastLine(key) if gate_of(&key, &all, &sentences).is_some() => Said::Several,
        said => said,
    };
    match said {
        Said::Several if doubts.is_empty() => {
            repeated(&all, &sentences).map_or(Said::Several, Said::LastLine)
        }
        said => said,
    }
}

/// Returns the only number that several sentences give as the result, if no later one gives another: `5 · 4.8 = 24. So 24
/// people are needed.`
fn repeated(all: &[Weighed], sentences: &[Sentence]) -> Option<String> {
    let mut keys: Vec<&str> = all.iter().map(|w| w.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    let given = |key: &&&str| {
        let own = || all.iter().filter(|w| w.key == **key);
        let results = own().filter(|w| w.weight >= Weight::Concluded);
        let mut places: Vec<usize> = results.map(|w| w.place).collect();
        places.dedup();
        places.len() > 1 && own().all(|w| w.weight > Weight::Against)
    };
    let mut found = keys.iter().filter(given);
    let key = *found.next().filter(|_| found.next().is_none())?;
    let first = all.iter().find(|w| w.key == key).map(|w| w.place)?;
    let later = |w: &&Weighed| w.place >= first && w.key != key && w.weight > Weight::Named;
    let held = matches!(
        gate_of(key, all, sentences),
        None | Some(Open::EndsOtherwise | Open::Outweighed | Open::GoesOn)
    );
    (held && !all.iter().any(|w| later(&w))).then(|| key.to_owned())
}

/// Returns why the [gate](super::gate) leaves a number open.
fn gate_of(key: &str, all: &[Weighed], sentences: &[Sentence]) -> Option<Open> {
    let candidates: Vec<Candidate> = all
        .iter()
        .map(|w| Candidate {
            own: w.key == key,
            standing: match w.weight {
                Weight::Against => Standing::Rejected,
                Weight::Nothing => Standing::Explained,
                Weight::Reported | Weight::Named | Weight::Result => Standing::Loose,
                Weight::Concluded | Weight::Stated => Standing::Committed,
            },
            place: w.place,
            start: w.start,
            end: w.end,
        })
        .collect();
    let sentences: Vec<&Sentence> = sentences.iter().collect();
    gate::open(&sentences, &candidates, true)
}

/// Abbreviated units of time that end with a period: `3 Std. 30 Min.`
const UNIT_ABBREVIATIONS: [&str; 4] = ["std", "min", "hrs", "sec"];

/// Removes the second of two equal amounts in mixed units: `165 minutes, soit 2 h 45`.
fn without_restated(line: &str, language: Language) -> String {
    const SAYS_AGAIN: [&str; 13] = [
        ", also ",
        ", so ",
        ", donc ",
        ", o sea, ",
        ", soit ",
        ", i.e. ",
        ", that is ",
        ", or ",
        ", d. h. ",
        ", d.h. ",
        ", das sind ",
        ", es decir ",
        ", o sea ",
    ];
    const MIXED: [&str; 8] = ["h", "hr", "hrs", "hour", "hours", "std", "heure", "hora"];
    let lower = line.to_lowercase();
    if lower.len() != line.len() {
        return line.to_owned();
    }
    let cue = SAYS_AGAIN
        .iter()
        .find_map(|cue| Some((lower.find(cue)?, cue)));
    let Some((at, cue)) = cue else {
        return line.to_owned();
    };
    let tail = &lower[at + cue.len()..];
    let mut stops = tail.match_indices(['.', ';', '(']).map(|(at, _)| at);
    let end = stops
        .find(|at| !UNIT_ABBREVIATIONS.iter().any(|u| tail[..*at].ends_with(u)))
        .unwrap_or(tail.len());
    let words: Vec<&str> = tail[..end]
        .split_whitespace()
        .map(|w| w.trim_end_matches('.'))
        .collect();
    let is_number = |word: &&str| word.bytes().all(|b| b.is_ascii_digit());
    let is_hours = |word: &&str| {
        MIXED.contains(&word.trim_end_matches('s'))
            || MIXED.contains(word)
            || word.starts_with("stunde")
    };
    // `2 h 45`, `2 hours 45 minutes`, `2 Stunden und 45 Minuten`
    let mixed = match words.as_slice() {
        [a, h, b] | [a, h, b, _] | [a, h, _, b, _] => is_number(a) && is_hours(h) && is_number(b),
        _ => false,
    };
    let before = number::numbers(&line[..at], language);
    match (mixed, before.as_slice()) {
        (true, [_]) => format!("{}{}", &line[..at], &line[at + cue.len() + end..]),
        _ => line.to_owned(),
    }
}

/// Removes the decimals of a proper fraction: `11/36, roughly 30.6 %`, `1/3 (≈ 0.33)`.
fn without_approximated(line: &str, language: Language) -> String {
    const ABOUT: &str = "≈ ~ about roughly around approximately approx circa ca etwa rund ungefähr environ unos aproximadamente 约 大约 约为         i.e. ie or also soit oder ou or o das sind";
    /// Maximum bytes between a fraction and its decimals.
    const BETWEEN_BYTES_MAX: usize = 24;
    if !line.contains('/') {
        return line.to_owned();
    }
    let numbers = number::numbers(line, language);
    let [.., exact, near] = numbers.as_slice() else {
        return line.to_owned();
    };
    let (Some(between), Some(behind)) = (line.get(exact.end..near.start), line.get(near.end..))
    else {
        return line.to_owned();
    };
    let value = |part: &str| part.parse::<f64>().ok();
    let Some((high, low)) = exact.key.split_once('/') else {
        return line.to_owned();
    };
    let (Some(high), Some(low), Some(said)) = (value(high), value(low), value(&near.key)) else {
        return line.to_owned();
    };
    let percent = behind.trim_start().starts_with(['%', '％']);
    let share = if percent { said / 100.0 } else { said };
    let decimals = near.key.split_once('.').map_or(0, |(_, d)| d.len()) + 2 * usize::from(percent);
    let rounds = (high / low - share).abs() <= 0.51 * 10f64.powi(-(decimals as i32));
    let words = between.split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | '（' | '，'));
    let only_about = between.len() <= BETWEEN_BYTES_MAX
        && words.filter(|w| !w.is_empty()).all(|w| {
            ABOUT
                .split_whitespace()
                .any(|about| about == w.to_lowercase())
        });
    match high < low && rounds && only_about && !between.trim().is_empty() {
        true => {
            let rest = behind.trim_start_matches([' ', '%', '％', ')', '）']);
            format!("{}{rest}", &line[..exact.end])
        }
        false => line.to_owned(),
    }
}

/// Returns the only bold number of a text, after a label or an `=` on the last line: `Total: **12,500 €**`.
fn closing(lines: &[String], lower: &str, language: Language) -> Option<String> {
    let mut filled = lines.iter().rev().filter(|line| !line.trim().is_empty());
    let last = filled.next()?;
    filled.next()?;
    let [head, bold, tail] = last.split("**").collect::<Vec<_>>()[..] else {
        return None;
    };
    let alone = lines.iter().filter(|line| line.contains("**")).count() == 1;
    let ends = !tail.chars().any(char::is_alphanumeric);
    let leads = head.trim_end().ends_with([':', '=', '：', '＝']);
    let open = cues::has(lower, cues::TURNS) || cues::has(lower, cues::UNDECIDED);
    // `1.750` may be two numbers.
    let key = number::only(bold, language)?;
    let digits: Vec<&str> = bold
        .split(|c: char| !c.is_ascii_digit())
        .filter(|d| !d.is_empty())
        .collect();
    let twofold = key.contains('.') && digits.len() == 2 && digits[1].len() == 3;
    (alone && ends && leads && !open && !twofold).then_some(key)
}

/// Returns whether a sentence leaves the number open: a range, or one of two.
fn is_open(lower: &str, here: &[Weighed]) -> bool {
    /// Words between the two numbers of a range.
    const JOINS: &[&str] = &[
        "or", "to", "oder", "bis", "ou", "à", "o", "a", "或", "到", "至",
    ];
    const OPEN: &[&str] = &[
        "between",
        "either",
        "zwischen",
        "entre",
        "somewhere",
        "anywhere",
        "various",
        "vary",
        "varies",
        "range",
        "ranges",
    ];
    const MAYBE: &[&str] = &[
        "maybe",
        "perhaps",
        "possibly",
        "vielleicht",
        "eventuell",
        "peut-être",
        "quizás",
        "quizá",
        "tal vez",
        "也许",
        "或许",
    ];
    if here.len() > 1 && cues::has(lower, MAYBE) {
        return true;
    }
    // `Between 2010 and 2020 it grew by 35 %`.
    let year = |w: &&Weighed| {
        w.weight > Weight::Nothing || w.key.parse().is_ok_and(|y: u32| (1000..2200).contains(&y))
    };
    // `From 40 to 50, a 25 % increase`.
    let mut left = here.iter().filter(|w| w.weight > Weight::Nothing);
    if let (Some(one), None) = (left.next(), left.next())
        && one.percent
        && here.iter().filter(|w| w.percent).count() == 1
    {
        return false;
    }
    if here.iter().all(|w| year(&w))
        && here.iter().filter(|w| w.weight > Weight::Nothing).count() == 1
    {
        return false;
    }
    let joined = here.windows(2).any(|pair| {
        let between = lower.get(pair[0].end..pair[1].start).unwrap_or_default();
        between.len() <= JOINED_BYTES_MAX && cues::has(between, JOINS)
    });
    here.len() > 1
        && here.iter().all(|w| w.weight <= Weight::Named)
        && (joined || cues::has(lower, OPEN))
}

/// Maximum bytes between the ends of a range with their units: `40 kilometres per hour or 50`.
const JOINED_BYTES_MAX: usize = 40;

/// Words that take back the number before them.
pub(super) const REVOKES: &[&str] = &[
    "sorry",
    "korrektur",
    "corrección",
    "rectification",
    "更正",
    "scratch that",
    "strike that",
    "my mistake",
    "oops",
    "i misread",
    "i misspoke",
    "verzeihung",
    "entschuldigung",
    "quatsch",
    "verlesen",
    "verrechnet",
    "pardon",
    "excusez-moi",
    "je me trompe",
    "perdón",
    "perdona",
    "disculpa",
    "me equivoco",
    "抱歉",
    "说错了",
    "看错了",
    "算错了",
];

/// Returns whether a sentence gives one number under a condition and another one otherwise: `5 if the driver counts, 4
/// otherwise`.
fn is_split(sentence: &Sentence, here: &[Weighed]) -> bool {
    let otherwise = |w: &&Weighed| {
        sentence
            .clauses
            .get(w.clause)
            .is_some_and(|c| c.role == Role::Otherwise)
    };
    // `12 if the ends are left out and 14 if they count`
    const CASES: &[&str] = &[
        "if",
        "otherwise",
        "wenn",
        "falls",
        "sonst",
        "si",
        "s'il",
        "s'ils",
        "sinon",
        "cuando",
        "如果",
    ];
    let lower = sentence.text.to_lowercase().replace('’', "'");
    let cases: Vec<usize> = cues::places(&lower, CASES).map(|(at, _)| at).collect();
    if let [one, two, ..] = cases.as_slice() {
        let key_in = |places: std::ops::Range<usize>| {
            here.iter()
                .rfind(|w| places.contains(&w.start))
                .map(|w| &w.key)
        };
        let (first, second) = (key_in(0..*one), key_in(*one..*two));
        if first.is_some() && second.is_some() && first != second {
            return true;
        }
    }
    let other = here.iter().find(otherwise);
    sentence.has(Role::Condition)
        && other.is_some_and(|other| here.iter().any(|w| w.key != other.key))
}

/// Maximum number of numbers weighed per sentence, counted from the end.
const NUMBERS_MAX: usize = 40;

/// Returns whether a text ends with the preposition of a year: `It began in `.
fn leads_year(before: &str) -> bool {
    const LEADS: [&str; 6] = ["in", "im", "jahr", "en", "since", "année"];
    let lower = before.trim_end().to_lowercase();
    let last = lower.rsplit(|c: char| !c.is_alphanumeric()).next();
    last.is_some_and(|word| LEADS.contains(&word))
}

/// Returns whether a sentence only gives the value of a variable: `With n = 100:`
fn is_given(text: &str) -> bool {
    const GIVES: [&str; 14] = [
        "with", "for", "let", "given", "mit", "für", "sei", "avec", "pour", "soit", "con", "para",
        "sea", "设",
    ];
    const WORDS_MAX: usize = 6;
    let lower = text.to_lowercase();
    let Some((head, _)) = lower.split_once('=') else {
        return false;
    };
    let mut words = head
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty());
    let gives = words.next().is_some_and(|w| GIVES.contains(&w));
    let variable = words
        .next()
        .is_some_and(|w| w.chars().count() == 1 && !w.starts_with(|c: char| c.is_ascii_digit()));
    let open = text.trim_end().ends_with([':', ',', '：']);
    gives
        && variable
        && words.next().is_none()
        && open
        && lower.split_whitespace().count() <= WORDS_MAX
}

/// Maximum bytes between the ends of a range.
const RANGE_BYTES_MAX: usize = 6;

/// Returns whether a number is a day of the month, or a time of day such as `9 a.m.`
fn is_when(sentence: &Sentence, number: &Number) -> bool {
    const HALVES: [&str; 6] = ["a.m", "p.m", "am ", "pm ", "uhr", "o'clock"];
    let before = sentence.text.get(..number.start).unwrap_or_default();
    let behind = sentence.text.get(number.end..).unwrap_or_default();
    let next = behind.trim_start().to_lowercase();
    is_dated(before, behind, &number.key) || HALVES.iter().any(|half| next.starts_with(half))
}

pub(super) fn numbers_of(sentence: &Sentence, language: Language) -> Vec<Number> {
    let mut numbers = number::numbers(&sentence.text, language);
    numbers.drain(..numbers.len().saturating_sub(NUMBERS_MAX));
    // `It fell in 1989, on 9 November.`
    let all = numbers.clone();
    // `from 3 to 31 March`
    let ranges = |n: &Number| {
        let mut others = all.iter();
        others.any(|o| o.key.len() <= 2 && o.end <= n.start && n.start - o.end <= RANGE_BYTES_MAX)
    };
    let when = |n: &Number| is_when(sentence, n) && !ranges(n);
    if numbers.iter().any(|n| !when(n)) {
        numbers.retain(|n| !when(n));
    }
    if numbers.is_empty() && !sentence.text.contains(|c: char| c.is_ascii_digit()) {
        numbers = super::numerals::spoken(&sentence.text);
    }
    let concluded = numeral_concluded(sentence, &numbers);
    if let Some(concluded) = concluded {
        numbers.push(concluded);
    }
    numbers
}

/// Returns the number in words of a final clause that draws a conclusion from numerals: `128 bits, soit seize octets`.
fn numeral_concluded(sentence: &Sentence, numbers: &[Number]) -> Option<Number> {
    const THAT_IS: &[&str] = &[
        "soit",
        "so",
        "that is",
        "i.e",
        "hence",
        "also",
        "d.h",
        "das sind",
        "donc",
        "es decir",
        "o sea",
        "son",
        "即",
        "也就是",
        "所以",
    ];
    let last = numbers.last()?;
    let clauses = clauses::clauses(&sentence.text);
    let clause = clauses.last().filter(|c| c.start >= last.end)?;
    let begins = THAT_IS.iter().any(|w| clauses::begins(&clause.lower, w));
    let text = sentence.text.get(clause.start..clause.end)?;
    let (key, start, end) = super::numerals::numeral_at(text)?;
    let (start, end) = (clause.start + start, clause.start + end);
    begins.then_some(Number { key, start, end })
}

fn of_sentence(sentence: &Sentence, place: usize, numbers: &[Number]) -> Vec<Weighed> {
    let digits = sentence.text.contains(|c: char| c.is_ascii_digit());
    let bold = bold_ranges(&sentence.text);
    let mut out = Vec::new();
    for (n, number) in numbers.iter().enumerate() {
        let at = sentence.clause_at(number.start);
        let weight = weight(sentence, at, numbers, n, &bold, digits);
        let Some(clause) = sentence.clauses.get(at) else {
            continue;
        };
        let lower = &clause.lower;
        let unit = sentence
            .text
            .get(number.end..)
            .unwrap_or_default()
            .trim_start_matches(['*', ' ', '\u{a0}', '\u{202f}']);
        out.push(Weighed {
            key: number.key.clone(),
            weight,
            place,
            start: number.start,
            end: number.end,
            clause: at,
            percent: unit.starts_with(['%', '％']),
            converts: converts(sentence, numbers, n),
            settles: matches!(clause.role, Role::Conclusion | Role::Contrast)
                || sentence.clauses[..at]
                    .iter()
                    .any(|c| c.role == Role::Conclusion)
                || is_own_choice(lower, number.start.saturating_sub(clause.start))
                || cues::has(lower, cues::TURNS)
                || cues::has(lower, RESULTS)
                || clause.before == Before::Colon
                    && sentence
                        .text
                        .get(..clause.start)
                        .is_some_and(|t| t.trim_end().ends_with(['→', '⇒', '∴', '>']))
                || cues::has(&sentence.text.to_lowercase(), cues::TURNS),
        });
    }
    out
}

/// Returns whether a clause is only a conclusion word and an amount, behind a clause with another amount: `2 TB, so
/// 2000 GB`.
fn converts(sentence: &Sentence, numbers: &[Number], n: usize) -> bool {
    let (Some(before), number) = (n.checked_sub(1).map(|b| &numbers[b]), &numbers[n]) else {
        return false;
    };
    let at = sentence.clause_at(number.start);
    let Some(clause) = sentence.clauses.get(at) else {
        return false;
    };
    let own = sentence.text.get(clause.start..clause.end);
    let leads = sentence.text.get(before.end..clause.start);
    let calculates = sentence.text.contains(['=', '≈', '×', '÷', '+', '*']);
    // Between the amounts there is only a unit.
    let unit = leads.is_some_and(|t| t.split_whitespace().count() <= 1);
    clause.role == Role::Conclusion
        && sentence.clause_at(before.start) + 1 == at
        && unit
        && !calculates
        && own.is_some_and(|text| is_alone(text, &[number], clause.start))
}

/// Returns whether the author explicitly chooses the number at a position in a clause: `Me quedo con 6`.
fn is_own_choice(clause: &str, place: usize) -> bool {
    const TAKES: &[&str] = &[
        "i'll go with",
        "i'd go with",
        "i go with",
        "going with",
        "i'll say",
        "i settle on",
        "call it",
        "let's say",
        "sagen wir",
        "disons",
        "digamos",
        "就算",
        "settling on",
        "i'll stick with",
        "sticking with",
        "i end up with",
        "i land on",
        "ich bleibe bei",
        "ich nehme",
        "ich lande bei",
        "ich entscheide mich für",
        "ich gehe von",
        "je retiens",
        "je garde",
        "je pars sur",
        "je m'arrête à",
        "me quedo con",
        "me decanto por",
        "opto por",
        "我取",
        "我选",
        "我定为",
        "就按",
    ];
    let head = clause.get(..place).unwrap_or_default();
    let Some((_, end)) = cues::places(head, TAKES).last() else {
        return false;
    };
    let between = head.get(end..).unwrap_or_default();
    between.split_whitespace().count() <= 3 && !is_rejected(head)
}

/// Returns whether a text ends in words by which the author sets the number behind it: `I would set it to`, `je dirais`.
fn is_own_estimate(head: &str) -> bool {
    const SAYS: [&str; 6] = [
        "i'd say",
        "i would say",
        "ich würde sagen",
        "je dirais",
        "yo diría",
        "我认为设成",
    ];
    let bare = head.trim_end_matches(|c: char| !c.is_alphanumeric());
    SAYS.iter().any(|words| bare.ends_with(words))
        || super::weights::ends_in_own_conditional(head) && !is_rejected(head)
}

fn weight(
    sentence: &Sentence,
    at: usize,
    numbers: &[Number],
    n: usize,
    bold: &[(usize, usize)],
    digits: bool,
) -> Weight {
    let Some(clause) = sentence.clauses.get(at) else {
        return Weight::Nothing;
    };
    let number = &numbers[n];
    let text = &sentence.text;
    if is_given(text) {
        return Weight::Nothing;
    }
    let lead = at.checked_sub(1).filter(|_| clause.before == Before::Colon);
    const WRONG: &[&str] = &[
        "wrong",
        "incorrect",
        "not",
        "old",
        "before",
        "previous*",
        "falsch",
        "faux",
        "incorrecto",
        "错误",
        "错",
    ];
    if lead.is_some_and(|b| {
        let lower = &sentence.clauses[b].lower;
        lower.split_whitespace().count() <= 2 && cues::has(lower, WRONG)
    }) {
        return Weight::Against;
    }
    let before = text.get(..number.start).unwrap_or_default();
    let behind = text.get(number.end..).unwrap_or_default();
    if is_rejected(before) {
        return Weight::Against;
    }
    if is_difference(before, behind)
        || is_limit(before, behind)
        || is_compared(before)
        || is_status(before, &number.key)
    {
        return Weight::Nothing;
    }
    // `∴ the trip takes 2.5 h`
    let single_here = numbers.iter().all(|m| m.key == number.key);
    if single_here
        && text
            .trim_start_matches(['$', ' ', '*'])
            .starts_with(['∴', '⇒', '⟹'])
    {
        return Weight::Stated;
    }
    if sentence.asks() || is_bound(sentence, numbers, n) {
        return Weight::Nothing;
    }
    if clause.in_brackets {
        let pure = is_unit_alone(&clause.lower);
        return if pure {
            Weight::Reported
        } else {
            Weight::Nothing
        };
    }
    match clause.role {
        Role::Condition | Role::Concession => return Weight::Nothing,
        Role::Otherwise if sentence.has(Role::Condition) => return Weight::Nothing,
        _ if voices::is_past(sentence, at) => return Weight::Nothing,
        Role::Report => return Weight::Reported,
        _ => {}
    }
    if is_name(before)
        || is_dated(before, behind, &number.key)
        || is_share_of(before, behind)
        || is_per(before)
    {
        return Weight::Nothing;
    }
    let same_clause: Vec<&Number> = numbers
        .iter()
        .filter(|m| sentence.clause_at(m.start) == at && m.start >= clause.start)
        .collect();
    let operand = is_operand(before, behind);
    if cues::has(&clause.lower, super::weights::CONSIDERED)
        && !cues::has(&clause.lower, cues::TURNS)
    {
        return Weight::Nothing;
    }
    // `I come to 1,860: three nights at 420, …`
    const COMES_TO: &[&str] = &[
        "ich komme auf",
        "wir kommen auf",
        "das macht",
        "i come to",
        "i make it",
        "i make that",
        "i arrive at",
        "j'arrive à",
        "on arrive à",
        "je trouve",
        "me salen",
        "llego a",
        "我算出",
    ];
    let explained = sentence
        .clauses
        .get(at + 1)
        .is_some_and(|c| c.before == Before::Colon);
    if n == 0 && explained && cues::has(&clause.lower, COMES_TO) && !operand {
        return Weight::Stated;
    }
    if is_own_choice(&clause.lower, number.start.saturating_sub(clause.start)) && !operand {
        return Weight::Stated;
    }
    let head = clause
        .lower
        .get(..number.start.saturating_sub(clause.start));
    if single_here && !operand && head.is_some_and(is_own_estimate) {
        return Weight::Stated;
    }
    let clause_text = text.get(clause.start..clause.end).unwrap_or_default();
    let equals = clause_text
        .rfind(['=', '≈', '＝'])
        .map(|e| clause.start + e);
    if operand && !equals.is_some_and(|e| number.start > e && !is_operand_left(behind)) {
        return Weight::Nothing;
    }
    let sure = behind.trim_start().starts_with(['%', '％']) && {
        // `25 % (confidence 80 %)`
        let head = behind.chars().take(16);
        let head: String = head.take_while(|c| !matches!(c, '(' | '（')).collect();
        cues::has(&head.to_lowercase(), CONFIDENCE)
    };
    let tail: String = before
        .chars()
        .rev()
        .take(18)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    if sure
        || cues::has(&tail.to_lowercase(), CONFIDENCE)
            && !cues::has(&tail.to_lowercase(), &["it is", "it's", "that"])
    {
        return Weight::Nothing;
    }
    // `Thirty, that's too few.`
    let judged = sentence
        .clauses
        .get(at + 1)
        .is_some_and(|c| super::weights::begins_with_fault(&c.lower));
    let alone = is_alone(clause_text, &same_clause, clause.start) && !judged;
    let hypothetical =
        cues::has(&clause.lower, cues::HYPOTHETICAL) && !cues::has(&clause.lower, cues::OWN);
    let states = cues::has(&clause.lower, STATES) || cues::has(&clause.lower, RESULTS);
    let words = match text.chars().filter(|c| is_han(*c)).count() {
        0 => text.split_whitespace().count(),
        signs => signs / 2,
    };
    if !digits && !alone && !states && words > 8 {
        return Weight::Nothing;
    }
    if hypothetical && !alone {
        return Weight::Nothing;
    }
    let in_bold = bold.iter().any(|(from, to)| {
        (*from..*to).contains(&number.start)
            && numbers
                .iter()
                .filter(|m| (*from..*to).contains(&m.start))
                .all(|m| m.key == number.key)
    });
    let single = same_clause.iter().all(|m| m.key == number.key);
    if in_bold && !operand {
        return Weight::Stated;
    }
    let alone_too = |n: usize| {
        sentence.clauses.get(n).is_some_and(|c| {
            let own: Vec<&Number> = numbers
                .iter()
                .filter(|m| m.start >= c.start && m.start < c.end)
                .collect();
            let text = text.get(c.start..c.end).unwrap_or_default();
            c.before == Before::Comma
                && own.iter().any(|m| m.key != number.key)
                && is_alone(text, &own, c.start)
        })
    };
    // `Divide by 3: x = 6`
    if equals.is_none()
        && let Some(next) = sentence.clauses.get(at + 1)
        && next.before == Before::Colon
        && text
            .get(next.start..next.end)
            .is_some_and(|t| t.contains('='))
    {
        return Weight::Named;
    }
    // `1, 2, 3`: a list.
    if alone && alone_too(at + 1) {
        return Weight::Named;
    }
    if alone && stands_out(sentence, at) {
        // `First 40, then 25, in total 65.`
        let starts = clause.before == Before::Start;
        let goes_on = numbers[n + 1..].iter().any(|m| {
            let clause = &sentence.clauses[sentence.clause_at(m.start)];
            (cues::has(&clause.lower, RESULTS) || starts && clause.role == Role::Conclusion)
                && !clause.in_brackets
        });
        return if goes_on {
            Weight::Named
        } else {
            Weight::Stated
        };
    }
    // The last clause of a calculation.
    let ends = n > 0 && at + 1 == sentence.clauses.len() && clause.before == Before::Comma;
    if alone
        && ends
        && numbers[..n]
            .iter()
            .any(|m| text.get(m.end..number.start).is_some_and(is_derived))
    {
        return Weight::Concluded;
    }
    if let Some(equals) = equals {
        let last = n + 1 == numbers.len();
        return match number.start > equals {
            true if last || matches!(clause.role, Role::Conclusion) => Weight::Concluded,
            true => Weight::Result,
            false => Weight::Nothing,
        };
    }
    // The text after a colon counts, not the text before it.
    if let Some(next) = sentence.clauses.get(at + 1)
        && next.before == Before::Colon
        && text.get(next.start..).is_some_and(|rest| {
            let behind: Vec<&Number> = numbers
                .iter()
                .filter(|m| m.start >= next.start && m.start < next.end)
                .collect();
            let clause = text.get(next.start..next.end).unwrap_or_default();
            rest.contains('=') || is_alone(clause, &behind, next.start)
        })
    {
        return Weight::Named;
    }
    if single && cues::has(&clause.lower, STATES) {
        return Weight::Concluded;
    }
    if single && clause.role == Role::Conclusion {
        return Weight::Concluded;
    }
    if (single || is_last(&same_clause, number))
        && (cues::has(&clause.lower, RESULTS) || follows_copula(before))
    {
        return match clause.role {
            Role::Conclusion => Weight::Concluded,
            _ if cues::has(&clause.lower, RESULTS) => Weight::Concluded,
            _ => Weight::Result,
        };
    }
    Weight::Named
}

/// Returns whether a number has at most a short unit beside it: `(90)`, `(-4 °C)`, `(15 天)`.
fn is_unit_alone(clause: &str) -> bool {
    let letters: Vec<char> = clause.chars().filter(|c| c.is_alphabetic()).collect();
    match letters.as_slice() {
        [] => true,
        [one] => is_han(*one) || clause.contains('°'),
        _ => false,
    }
}

fn is_last(all: &[&Number], number: &Number) -> bool {
    all.last().is_some_and(|last| last.start == number.start)
}

/// Returns whether a clause is a number with at most a unit: `about 6 weeks`.
fn is_alone(clause: &str, numbers: &[&Number], start: usize) -> bool {
    let Some((first, rest)) = numbers.split_first() else {
        return false;
    };
    if rest.iter().any(|m| m.key != first.key) {
        return false;
    }
    let mut words = String::new();
    let mut from = start;
    for number in numbers {
        words.push_str(
            clause
                .get(from - start..number.start.max(from) - start)
                .unwrap_or_default(),
        );
        words.push(' ');
        from = number.end;
    }
    words.push_str(clause.get(from.saturating_sub(start)..).unwrap_or_default());
    const SMALL: &[&str] = &[
        "about",
        "roughly",
        "approximately",
        "around",
        "exactly",
        "it",
        "is",
        "it's",
        "the",
        "a",
        "so",
        "then",
        "thus",
        "therefore",
        "hence",
        "maybe",
        "probably",
        "only",
        "just",
        "etwa",
        "rund",
        "circa",
        "ca",
        "genau",
        "es",
        "sind",
        "ist",
        "also",
        "environ",
        "exactement",
        "donc",
        "unos",
        "unas",
        "aproximadamente",
        "exactamente",
        "son",
        "por",
        "tanto",
        "est",
        "c'est",
        "that's",
        "x",
        "y",
        "at",
        "least",
        "most",
        "per",
        "ans",
        "final",
        "and",
        "und",
    ];
    let mut left = 0;
    for word in words
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
    {
        if word.chars().any(is_han) {
            left += word.chars().count().div_ceil(3);
        } else if !SMALL.contains(&word) {
            left += 1;
        }
    }
    left <= 2
}

fn stands_out(sentence: &Sentence, at: usize) -> bool {
    let clause = &sentence.clauses[at];
    match clause.before {
        // `At 200, the top browns too soon.`
        Before::Start if is_circumstance(sentence, at) => false,
        Before::Start | Before::Colon => {
            let listed = matches!(
                sentence.form,
                Some(Form::Bullet | Form::Row | Form::Numbered(_))
            );
            !listed
        }
        Before::Semicolon => {
            cues::has(&clause.lower, cues::TURNS)
                || at
                    .checked_sub(1)
                    .is_some_and(|b| cues::has(&sentence.clauses[b].lower, cues::TURNS))
        }
        _ => {
            let turned = at
                .checked_sub(1)
                .is_some_and(|b| cues::has(&sentence.clauses[b].lower, cues::TURNS));
            turned || matches!(clause.role, Role::Conclusion | Role::Contrast)
        }
    }
}

/// Returns whether a clause only begins with a preposition what the next one says.
fn is_circumstance(sentence: &Sentence, at: usize) -> bool {
    const PREPOSITIONS: [&str; 46] = [
        "at", "in", "with", "on", "under", "over", "above", "below", "from", "for", "after",
        "before", "without", "by", "bei", "mit", "ab", "unter", "über", "nach", "vor", "für",
        "ohne", "à", "avec", "sous", "sur", "après", "avant", "pour", "sans", "dès", "con", "en",
        "por", "para", "sin", "desde", "tras", "bajo", "a", "在", "按", "以", "用", "到",
    ];
    let lower = &sentence.clauses[at].lower;
    let next = sentence.clauses.get(at + 1);
    PREPOSITIONS.iter().any(|word| clauses::begins(lower, word))
        && next.is_some_and(|c| c.before == Before::Comma && c.role == Role::Claim)
}

fn bold_ranges(text: &str) -> Vec<(usize, usize)> {
    let marks: Vec<usize> = text.match_indices("**").map(|(at, _)| at).collect();
    marks
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

fn resolve(all: &[Weighed], doubts: &[usize], turns: &[usize]) -> Said<String> {
    let heaviest = all
        .iter()
        .map(|w| w.weight)
        .max()
        .unwrap_or(Weight::Nothing);
    if heaviest == Weight::Reported && doubts.is_empty() {
        let mut keys = all.iter().filter(|w| w.weight == heaviest);
        let first = keys.next().map(|w| &w.key);
        return match (first, keys.all(|w| Some(&w.key) == first)) {
            (Some(key), true) => Said::LastLine(key.clone()),
            _ => Said::Several,
        };
    }
    if heaviest <= Weight::Reported {
        return match all.is_empty() {
            true => Said::Nothing,
            false => Said::Several,
        };
    }
    let top: Vec<&Weighed> = all.iter().filter(|w| w.weight == heaviest).collect();
    let Some(last) = top.last() else {
        return Said::Nothing;
    };
    let many = top.iter().any(|w| w.key != last.key);
    let end = all.iter().map(|w| w.place).max().unwrap_or(0);
    let doubted = doubts
        .iter()
        .any(|d| *d >= last.place || heaviest <= Weight::Result);
    if doubted {
        return Said::Several;
    }
    // A later change of mind to another number.
    let opposed = all.iter().any(|w| {
        (w.place, w.clause) > (last.place, last.clause)
            && w.key != last.key
            && w.weight >= Weight::Named
            && turns.contains(&w.place)
    });
    if opposed {
        return Said::Several;
    }
    if many {
        let turned = turns
            .iter()
            .any(|t| (top[0].place..=last.place).contains(t));
        let in_last: Vec<&&Weighed> = top.iter().filter(|w| w.place == last.place).collect();
        let one_in_last = in_last.iter().all(|w| w.key == last.key);
        let closes = last.place == end;
        let decides = match heaviest {
            Weight::Named => {
                let settled = closes && last.place > 0 && all.len() > 2 && last.settles;
                one_in_last && (settled || turned)
            }
            Weight::Result => closes && (one_in_last || last.settles) || turned,
            _ => last.settles || turned,
        };
        if !decides {
            return Said::Several;
        }
    }
    // A bold number in passing does not outweigh a later result.
    Said::LastLine(last.key.clone())
}
