//! The texts of a sentence that may be a short answer: what is marked, names, and what ends a clause.

use super::super::language::is_han;
use super::classes;

/// Maximum number of words of a candidate, and of Han characters.
const WORDS_MAX: usize = 8;
const HAN_MAX: usize = 14;
/// Maximum number of words of a candidate that only ends a clause.
const END_WORDS_MAX: usize = 4;
/// Maximum bytes of a sentence that are looked at.
const BYTES_MAX: usize = 2_000;
/// Marks around a text.
const PAIRS: [(&str, &str); 16] = [
    ("**`", "`**"),
    ("***", "***"),
    ("**", "**"),
    ("*", "*"),
    ("`", "`"),
    ("“", "”"),
    ("„", "“"),
    ("„", "”"),
    ("\"", "\""),
    ("«", "»"),
    ("»", "«"),
    ("「", "」"),
    ("『", "』"),
    ("《", "》"),
    ("‘", "’"),
    ("‚", "‘"),
];
/// Words that may be inside of a name.
const JOINS: &[&str] = &[
    "of", "the", "de", "la", "du", "des", "le", "von", "van", "der", "den", "del", "los", "las",
    "d", "l", "y", "zu", "di", "da",
];
/// Han words before an answer.
const HAN_LEADS: [&str; 16] = [
    "应该填",
    "叫做",
    "叫作",
    "称为",
    "就是",
    "应为",
    "应是",
    "名为",
    "答案是",
    "属于",
    "作者",
    "填",
    "是",
    "为",
    "叫",
    "选",
];

/// The byte range of a candidate and its shape.
pub(super) type Span = (usize, usize, &'static str);

/// Returns the byte ranges of the candidates of a sentence, in their order.
pub(super) fn of(text: &str) -> Vec<Span> {
    let text = text
        .get(..text.floor_char_boundary(BYTES_MAX))
        .unwrap_or(text);
    let mut out: Vec<Span> = Vec::new();
    marked(text, &mut out);
    match text.chars().filter(|c| is_han(*c)).count() * 2 > text.chars().count() {
        true => in_han(text, &mut out),
        false => {
            named(text, &mut out);
            ending(text, &mut out);
        }
    }
    out.sort_unstable();
    out
}

fn add(text: &str, start: usize, end: usize, shape: &'static str, out: &mut Vec<Span>) {
    let Some(part) = text.get(start..end) else {
        return;
    };
    let kept =
        part.trim_matches(|c: char| c.is_whitespace() || ",.;:!?，。；：！？、*_".contains(c));
    if kept.is_empty() {
        return;
    }
    let start = start + part.find(kept).unwrap_or(0);
    let end = start + kept.len();
    let apart = |(from, to, _): &Span| end <= *from || *to <= start;
    let few = kept.split_whitespace().count() <= WORDS_MAX
        && kept.chars().filter(|c| is_han(*c)).count() <= HAN_MAX;
    if few && kept.contains(char::is_alphanumeric) && out.iter().all(apart) {
        out.push((start, end, shape));
    }
}

/// Adds what is between marks.
fn marked(text: &str, out: &mut Vec<Span>) {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let found = PAIRS.iter().find_map(|(open, close)| {
            let inner = rest.strip_prefix(open)?;
            let length = inner.find(close)?;
            let tight = !inner.starts_with(char::is_whitespace) || open.starts_with('«');
            let shape = match *open {
                "`" | "**`" => "code",
                "*" => "leaning",
                "**" | "***" => "bold",
                "《" => "title",
                _ => "quoted",
            };
            (length > 0 && tight).then_some((open.len(), length, close.len(), shape))
        });
        match found {
            Some((open, length, close, shape)) => {
                add(text, at + open, at + open + length, shape, out);
                at += open + length + close;
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
}

/// A word and its place.
struct Word<'a> {
    text: &'a str,
    start: usize,
}

impl Word<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    fn is_name(&self) -> bool {
        self.text
            .starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
            || self.text.contains(char::is_uppercase)
    }

    fn joins(&self) -> bool {
        JOINS.contains(&self.text)
    }

    fn is_function(&self) -> bool {
        let lower = self.text.to_lowercase();
        self.joins() || classes::of(&lower).is_some() || lower.chars().count() < 2
    }
}

fn words(text: &str) -> Vec<Word<'_>> {
    let inside = |c: char| c.is_alphanumeric() || "-_+#./&".contains(c);
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(from) = text[at..].find(char::is_alphanumeric) {
        let start = at + from;
        let rest = &text[start..];
        let length = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let kept =
            rest[..length].trim_end_matches(|c: char| !c.is_alphanumeric() && !"+#".contains(c));
        out.push(Word { text: kept, start });
        at = start + length.max(1);
    }
    out
}

/// Adds names: words with capital letters, and the small words between them.
fn named(text: &str, out: &mut Vec<Span>) {
    let words = words(text);
    let near = |one: &Word, two: &Word| {
        let between = text.get(one.end()..two.start).unwrap_or(".");
        matches!(between, " " | "'" | "’" | " d'" | " l'")
    };
    let mut at = 0;
    while at < words.len() {
        let first = &words[at];
        if !first.is_name()
            || first.is_function() && !first.text.contains(|c: char| c.is_ascii_digit())
        {
            at += 1;
            continue;
        }
        let (mut last, mut next) = (at, at + 1);
        while next < words.len() && near(&words[next - 1], &words[next]) {
            if words[next].is_name() {
                last = next;
            } else if !words[next].joins() {
                break;
            }
            next += 1;
        }
        add(text, first.start, words[last].end(), "name", out);
        at = last + 1;
    }
}

/// Adds the last words of each clause behind the last small word.
fn ending(text: &str, out: &mut Vec<Span>) {
    let words = words(text);
    for at in 0..words.len() {
        let end = words[at].end();
        let next = words.get(at + 1).map_or(text.len(), |w| w.start);
        let behind = text.get(end..next).unwrap_or_default();
        let stops = at + 1 == words.len()
            || behind.contains([',', '.', ';', ':', '!', '?', '(', ')', '–', '—']);
        if !stops || words[at].is_function() {
            continue;
        }
        let mut first = at;
        while first > 0 && at + 1 - first < END_WORDS_MAX {
            let (before, word) = (&words[first - 1], &words[first]);
            if text.get(before.end()..word.start) != Some(" ") || before.is_function() {
                break;
            }
            first -= 1;
        }
        add(text, words[first].start, end, "end", out);
    }
}

/// Adds what follows a word that gives an answer, up to the end of the clause.
fn in_han(text: &str, out: &mut Vec<Span>) {
    let stops = |c: char| "，。；：！？、,;:!?（）()\"“”「」《》".contains(c);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = rest.find(stops).unwrap_or(rest.len());
        let clause = &rest[..length];
        let lead = HAN_LEADS
            .iter()
            .filter_map(|lead| clause.rfind(lead).map(|found| found + lead.len()))
            .max();
        let after_colon = text[..at].ends_with(['：', ':']);
        let from = lead.or_else(|| after_colon.then_some(0));
        if let Some(from) = from
            && from < length
        {
            let kept = clause[from..].trim_end_matches(['了', '的', '吧', '呢']);
            let kept = match lead {
                Some(_) => kept.trim_start_matches("的是"),
                None => kept,
            };
            let start = at + from + clause[from..].find(kept).unwrap_or(0);
            add(text, start, start + kept.len(), "han", out);
        }
        at += length + rest[length..].chars().next().map_or(1, char::len_utf8);
    }
}
