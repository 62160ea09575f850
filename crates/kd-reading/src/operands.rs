//! The relation of a number to its neighbors: an operand, a bound of a range, part of a date, part of a name.

use super::amount_words::{MONTHS, NAMES};
use super::clauses::Sentence;
use super::cues;
use super::number::Number;

/// Returns whether the words between two numbers derive one from the other.
pub(super) fn is_derived(between: &str) -> bool {
    let lower = between.to_lowercase();
    cues::has(
        &lower,
        &[
            "is", "makes", "gives", "plus", "minus", "times", "macht", "ist", "fait", "es", "son",
            "más", "=", "equals",
        ],
    )
}

/// Returns whether a number is compared: `250 more than the 1000 from before`.
pub(super) fn is_difference(before: &str, behind: &str) -> bool {
    const THAN: [&str; 15] = [
        "more than",
        "less than",
        "fewer than",
        "higher than",
        "lower than",
        "mehr als",
        "weniger als",
        "höher als",
        "niedriger als",
        "de plus que",
        "de moins que",
        "más que",
        "menos que",
        "plus que",
        "moins que",
    ];
    const REFERS: [&str; 12] = [
        "more than the",
        "less than the",
        "fewer than the",
        "mehr als die",
        "weniger als die",
        "mehr als der",
        "plus que les",
        "moins que les",
        "plus que le",
        "moins que le",
        "más que los",
        "menos que los",
    ];
    let head = head_of(before);
    let tail = behind[..behind.floor_char_boundary(NEAR_BYTES_MAX)].to_lowercase();
    let mut words = tail.split_whitespace();
    let unit = words.clone().next().unwrap_or_default();
    let rest = tail.trim_start();
    let after_unit = rest.strip_prefix(unit).unwrap_or_default().trim_start();
    let compared = THAN
        .iter()
        .any(|than| rest.starts_with(than) || after_unit.starts_with(than));
    words.next().is_some() && compared || REFERS.iter().any(|than| head.ends_with(than))
}

/// Returns whether a number is not the answer, but a limit of it: `over 9000`, `no fewer than 12`.
pub(super) fn is_limit(before: &str, behind: &str) -> bool {
    const LIMITS: [&str; 22] = [
        "over",
        "more than",
        "less than",
        "fewer than",
        "at least",
        "at most",
        "upwards of",
        "mehr als",
        "weniger als",
        "mindestens",
        "höchstens",
        "plus de",
        "moins de",
        "au moins",
        "au plus",
        "más de",
        "menos de",
        "al menos",
        "至少",
        "超过",
        // Tried from the longest to the shortest.
        "no fewer than",
        "no more than",
    ];
    const NEARLY: [&str; 14] = [
        "just",
        "slightly",
        "little",
        "bit",
        "well",
        "knapp",
        "etwas",
        "leicht",
        "juste",
        "peu",
        "légèrement",
        "poco",
        "algo",
        "略",
    ];
    let head = head_of(before);
    let behind = behind.trim_start_matches([' ', '*']);
    let Some(limit) = LIMITS
        .iter()
        .rev()
        .find(|limit| head.ends_with(*limit) && cues::find(&head, limit).is_some())
    else {
        return false;
    };
    let lead = head.strip_suffix(limit).unwrap_or_default().trim_end();
    // Counts only if the limit is the whole statement: `at least 3 members` may be a requirement.
    let whole = lead.is_empty() && behind.chars().filter(|c| c.is_alphabetic()).count() <= 12;
    whole && !NEARLY.iter().any(|w| lead.ends_with(w))
}

/// Returns whether a number is what the answer is compared with: `well under the limit of 100`, `half of the 40`.
pub(super) fn is_compared(before: &str) -> bool {
    const WITH: &[&str] = &[
        "under",
        "below",
        "above",
        "beyond",
        "over",
        "than",
        "half",
        "half of",
        "twice",
        "double",
        "compared to",
        "compared with",
        "versus",
        "vs",
        "unter",
        "über",
        "als",
        "hälfte",
        "hälfte von",
        "verglichen mit",
        "gegenüber",
        "sous",
        "au-dessus de",
        "au-dessous de",
        "en dessous de",
        "en dessous des",
        "moitié des",
        "moitié de",
        "par rapport à",
        "par rapport aux",
        "por debajo de",
        "por encima de",
        "mitad de",
        "frente a",
        "低于",
        "高于",
        "少于",
        "多于",
    ];
    const BETWEEN: &[&str] = &[
        "the",
        "a",
        "your",
        "our",
        "its",
        "their",
        "current",
        "of",
        "limit",
        "maximum",
        "cap",
        "den",
        "der",
        "dem",
        "die",
        "das",
        "von",
        "grenze",
        "höchstwert",
        "le",
        "la",
        "les",
        "limite",
        "el",
        "los",
        "las",
        "tope",
        "de",
        "des",
        "du",
    ];
    const BETWEEN_MAX: usize = 5;
    let head = head_of(before);
    let compares = |head: &str| {
        WITH.iter()
            .any(|word| head.ends_with(word) && cues::find(head, word).is_some())
    };
    let mut rest = head.as_str();
    for _ in 0..=BETWEEN_MAX {
        if compares(rest) {
            return true;
        }
        let (before, last) = rest.rsplit_once(' ').unwrap_or(("", rest));
        if !BETWEEN.contains(&last) {
            return false;
        }
        rest = before.trim_end();
    }
    false
}

/// Returns whether a number is the status of an HTTP response: `it returns a 504`.
pub(super) fn is_status(before: &str, key: &str) -> bool {
    const CODE: &[&str] = &["http", "status", "code", "error", "fehler", "erreur"];
    const RETURNS: &[&str] = &[
        "return a",
        "returns a",
        "respond with",
        "responds with",
        "responds with a",
        "answers with",
        "throws a",
        "gives a",
        "serves a",
        "liefert",
        "renvoie",
        "devuelve",
        "返回",
    ];
    let head = head_of(before);
    let is_code = key.len() == 3 && key.starts_with(['4', '5']);
    is_code
        && CODE
            .iter()
            .chain(RETURNS)
            .any(|words| head.ends_with(words))
}

/// Returns whether the words directly before a number reject it, as in `not 12`.
pub(super) fn is_rejected(before: &str) -> bool {
    const NOT: &[&str] = &[
        "not",
        "isn't",
        "nicht",
        "pas",
        "instead of",
        "rather than",
        "statt",
        "au lieu de",
        "en lugar de",
        "en vez de",
        "不是",
        "而不是",
        "非",
        "no",
        "non",
        "não",
        "sondern nicht",
    ];
    let tail = before.trim_end_matches([' ', '*', '_', '`', '"', '“', '$', '€', '~']);
    let lower: String = tail
        .chars()
        .rev()
        .take(20)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let lower = lower.to_lowercase();
    NOT.iter().any(|word| {
        lower.ends_with(word)
            && cues::find(&lower, word).is_some()
            && !(*word == "no" && lower.len() > 2 && lower.contains('.'))
    })
}

/// Returns whether a number is an end of a range, or follows `±`.
pub(super) fn is_bound(sentence: &Sentence, numbers: &[Number], n: usize) -> bool {
    const TO: &[&str] = &[
        "to", "and", "bis", "und", "à", "et", "a", "al", "y", "到", "至", "和",
    ];
    const FROM: &[&str] = &[
        "from", "between", "von", "zwischen", "de", "du", "entre", "del", "desde", "从", "介于",
        "vom",
    ];
    let text = &sentence.text;
    let joined = |one: &Number, two: &Number| {
        let between = text.get(one.end..two.start).unwrap_or_default();
        let lower = between.to_lowercase();
        let words: Vec<&str> = lower
            .split_whitespace()
            .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()))
            .filter(|w| !w.is_empty())
            .collect();
        let dash = between.trim().trim_start_matches(['%', '°']).trim();
        if matches!(dash, "–" | "—" | "~" | "～") || dash == "-" && between == "-" {
            return true;
        }
        let to = words.iter().any(|w| TO.contains(w)) || lower.contains(['到', '至', '和']);
        let whole = text.get(..one.start).unwrap_or_default();
        let head = end_of(whole).to_lowercase();
        let from = head
            .split_whitespace()
            .next_back()
            .is_some_and(|w| FROM.contains(&w))
            || head.ends_with(['从', '在'])
            || head.ends_with("介于");
        let plain = matches!(words.as_slice(), ["to" | "bis" | "à" | "a"]) && !whole.contains('=');
        words.len() <= 3 && to && from || plain
    };
    let margin = [
        "±",
        "+/-",
        "give or take",
        "plus or minus",
        "plus/minus",
        "plus oder minus",
        "plus ou moins",
        "más o menos",
        "正负",
    ];
    let head = end_of(text.get(..numbers[n].start).unwrap_or_default()).to_lowercase();
    n > 0 && joined(&numbers[n - 1], &numbers[n])
        || n + 1 < numbers.len() && joined(&numbers[n], &numbers[n + 1])
        || margin.iter().any(|m| head.trim_end().ends_with(m))
}

/// Returns the words before a number in lower case, without the signs of money and emphasis directly before it.
fn head_of(before: &str) -> String {
    let signs = [' ', '$', '€', '£', '*', '\u{a0}'];
    end_of(before).trim_end_matches(signs).to_lowercase()
}

/// Returns the last bytes of a text.
fn end_of(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(NEAR_BYTES_MAX))..]
}

pub(super) fn is_name(before: &str) -> bool {
    let tail = before
        .trim_end_matches([' ', '*', '#', '.', '\u{a0}'])
        .to_lowercase();
    let word = tail
        .rsplit(|c: char| !c.is_alphabetic() && c != '§')
        .next()
        .unwrap_or_default();
    !word.is_empty() && NAMES.contains(&word) && before.ends_with([' ', '\u{a0}', '.', '§', '#'])
        || tail.ends_with('第')
        || tail.ends_with('§')
}

/// Maximum distance in bytes between a number and the rest of its date or range.
const NEAR_BYTES_MAX: usize = 80;

/// Returns whether a number is the day of a date: `July 20`, `8. Mai`, `29 May`.
pub(super) fn is_dated(before: &str, behind: &str, key: &str) -> bool {
    // The parts of a date are next to the number.
    let behind = &behind[..behind.floor_char_boundary(NEAR_BYTES_MAX)];
    let from = before.ceil_char_boundary(before.len().saturating_sub(NEAR_BYTES_MAX));
    let before = &before[from..];
    let day = key.parse::<u32>().is_ok_and(|d| (1..=31).contains(&d));
    let next: String = behind
        .trim_start_matches(['.', ' ', '*'])
        .to_lowercase()
        .chars()
        .take_while(|c| c.is_alphabetic())
        .collect();
    let next = match next.as_str() {
        "de" | "of" => behind
            .to_lowercase()
            .split_whitespace()
            .nth(1)
            .unwrap_or_default()
            .trim_matches(|c: char| !c.is_alphabetic())
            .to_owned(),
        _ => next,
    };
    let lower = before.to_lowercase();
    let last = lower
        .split_whitespace()
        .next_back()
        .unwrap_or_default()
        .trim_matches(|c: char| !c.is_alphabetic());
    day && (MONTHS.contains(&next.as_str())
        || MONTHS.contains(&last)
        || behind.starts_with(['月', '日']))
}

/// Maximum distance in bytes between a number and the unit before it.
const PER_BYTES_MAX: usize = 80;

/// Returns whether a number is the denominator of a rate: `90 days per period of 180 days`, `pro 100 g`, `每 7 天`.
pub(super) fn is_per(before: &str) -> bool {
    const EACH: &str = "per par pro por each every any jede jeder jedes jeden je chaque cada";
    const BETWEEN: &str = "period periods span window stretch interval of de von zeitraum période tranche periodo período rolling consecutive";
    let from = before.ceil_char_boundary(before.len().saturating_sub(PER_BYTES_MAX));
    let lower = before[from..].to_lowercase();
    if lower.trim_end().ends_with('每') {
        return true;
    }
    let words = lower.split_whitespace().rev();
    let mut words = words
        .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()))
        .skip_while(|w| BETWEEN.split_whitespace().any(|b| b == *w));
    let found = words
        .next()
        .is_some_and(|w| EACH.split_whitespace().any(|e| e == w));
    // `17 por 23` multiplies, `any 3` chooses.
    let named = lower.trim_end().ends_with(" of")
        || lower.trim_end().ends_with(" de")
        || lower.trim_end().ends_with(" von");
    found
        && (named
            || lower.split_whitespace().next_back().is_some_and(|w| {
                matches!(
                    w,
                    "per" | "pro" | "every" | "chaque" | "cada" | "jede" | "alle"
                )
            }))
}

/// Returns whether a number counts a part of something: `3 of 8`.
pub(super) fn is_share_of(before: &str, behind: &str) -> bool {
    // `14.5 out of 20`: the score counts, its scale does not.
    let scale = ["out of ", "sur ", "von ", "sobre "];
    if scale.iter().any(|w| behind.trim_start().starts_with(w)) {
        return false;
    }
    let next = behind.trim_start();
    let of = ["of ", "out of ", "von ", "sur ", "sobre ", "de cada "];
    let digit = |t: &str| t.starts_with(|c: char| c.is_ascii_digit());
    of.iter().any(|w| next.strip_prefix(w).is_some_and(digit))
        || of.iter().any(|w| {
            before
                .strip_suffix(w)
                .is_some_and(|t| t.trim_end().ends_with(|c: char| c.is_ascii_digit()))
        })
}

pub(super) const OPERATORS: [char; 9] = ['+', '×', '*', '÷', '·', '−', '⋅', '/', '^'];

pub(super) fn is_operand(before: &str, behind: &str) -> bool {
    is_operand_left(behind) || is_operand_right(before)
}

/// Returns whether an operator and another number follow.
pub(super) fn is_operand_left(behind: &str) -> bool {
    let mut rest = behind.trim_start();
    // A unit between: `3 boîtes × 4`.
    let word = rest.chars().take_while(|c| c.is_alphabetic()).count();
    let unit: usize = rest.chars().take(word).map(char::len_utf8).sum();
    if word > 0 && word < 15 {
        rest = rest[unit..].trim_start();
    }
    let is_operator = rest.starts_with(OPERATORS) && !rest.starts_with("**")
        || rest.starts_with("- ")
        || rest.starts_with("x ")
        || rest.starts_with("plus ")
        || rest.starts_with("times ")
        || rest.starts_with(r"\times")
        || rest.starts_with(r"\cdot")
        || rest.starts_with("mal ")
        || rest.starts_with("divided");
    let after = rest
        .trim_start_matches(OPERATORS)
        .trim_start_matches(|c: char| c.is_alphabetic() || c == '\\')
        .trim_start_matches(['-', ' ', '(', '$', '€']);
    is_operator && after.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns whether a number and an operator precede.
pub(super) fn is_operand_right(before: &str) -> bool {
    let rest = before.trim_end_matches([' ', '(', '$', '€', '£']);
    if rest.ends_with("**") || rest.ends_with('=') {
        return false;
    }
    for (word, length) in [
        ("plus", 4),
        ("times", 5),
        ("mal", 3),
        ("minus", 5),
        (r"\times", 6),
        (r"\cdot", 5),
    ] {
        if rest.ends_with(word)
            && rest[..rest.len() - length]
                .trim_end()
                .ends_with(|c: char| c.is_alphanumeric())
        {
            return true;
        }
    }
    let Some(head) = rest
        .strip_suffix(OPERATORS)
        .or_else(|| rest.strip_suffix(" -"))
        .or_else(|| rest.strip_suffix(" x"))
    else {
        return false;
    };
    let head = head.trim_end();
    let spaced = before.ends_with(' ') || !rest.ends_with(['−', '-']);
    spaced && head.ends_with(|c: char| c.is_alphanumeric() || c == ')' || c == '%')
}

pub(super) fn follows_copula(before: &str) -> bool {
    const COPULAS: &[&str] = &[
        "is",
        "are",
        "was",
        "were",
        "be",
        "it's",
        "about",
        "roughly",
        "approximately",
        "exactly",
        "around",
        "ist",
        "sind",
        "war",
        "etwa",
        "rund",
        "circa",
        "ca",
        "genau",
        "est",
        "sont",
        "environ",
        "de",
        "es",
        "son",
        "fue",
        "unos",
        "aproximadamente",
        "have",
        "has",
        "haben",
        "hat",
        "tienen",
        "tiene",
        "ont",
    ];
    let lower = before
        .trim_end_matches([' ', '*', '$', '€', '£', '~', '≈', '\u{a0}'])
        .to_lowercase();
    let last = lower
        .rsplit(|c: char| !c.is_alphabetic() && c != '\'')
        .next()
        .unwrap_or_default();
    const PRONOUNS: &[&str] = &["das", "that", "it", "ça", "cela", "eso", "dann", "then"];
    let word = |n: usize| {
        lower
            .rsplit(|c: char| !c.is_alphabetic() && c != '\'')
            .filter(|w| !w.is_empty())
            .nth(n)
            .unwrap_or_default()
    };
    PRONOUNS.contains(&word(0)) && COPULAS.contains(&word(1))
        || COPULAS.contains(&last)
        || lower.ends_with(['是', '为', '有', '达', '约'])
}
