//! Letters that answer, followed on their line by an explanation that names another option: `B. Chlorine is a halogen.`

use super::letters::CALLED;
use super::options::Options;
use super::{cues, prose};
use std::borrow::Cow;

/// Maximum size of a reply to examine, in bytes.
const BYTES_MAX: usize = 4000;

/// Writes labels in lower case in capitals, where they are marked as labels: `(a)`, `option b`, `c)`.
pub(super) fn in_capitals<'t>(text: &'t str, options: &Options) -> Cow<'t, str> {
    let is_label = |letter: u8| {
        let letter = letter.to_ascii_uppercase();
        options
            .labels
            .iter()
            .any(|label| label.as_bytes() == [letter])
    };
    let bytes = text.as_bytes();
    let is_alone = |at: usize| {
        let near = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || !c.is_ascii());
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        bytes[at].is_ascii_lowercase() && !near(before) && !near(bytes.get(at + 1))
    };
    let is_marked = |at: usize| {
        let head = text[..at].trim_end();
        let word = head.rsplit(|c: char| !c.is_alphabetic()).next();
        let word = word.unwrap_or_default().to_lowercase();
        bytes.get(at + 1) == Some(&b')') && !head.ends_with('\'')
            || head.len() < at && CALLED.contains(&word.as_str())
    };
    let places: Vec<usize> = (0..bytes.len())
        .filter(|at| is_alone(*at) && is_label(bytes[*at]) && is_marked(*at))
        .collect();
    if places.is_empty() {
        return text.into();
    }
    let mut out = text.to_owned();
    for at in places {
        out.replace_range(at..=at, &text[at..=at].to_ascii_uppercase());
    }
    out.into()
}

/// The meaning of a letter at the beginning of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Led {
    /// The option of the letter, and the reply with the letter on a separate line.
    Apart(usize, String),
    /// The option of a letter whose line goes on with a change of mind.
    Turned(usize),
    /// The letter of one option beside the name of another one: `B) chlorine`.
    Torn,
    /// Nothing to separate.
    Plain,
}

/// Words that give the reason for the letter before them.
const REASONS: &[&str] = &[
    "because",
    "since",
    "as",
    "for",
    "given",
    "weil",
    "da",
    "denn",
    "car",
    "parce que",
    "puisque",
    "porque",
    "ya que",
    "pues",
    "因为",
    "由于",
];

/// Separates the letters that the author was shown from the explanations behind them.
pub(super) fn apart(text: &str, options: &Options) -> Led {
    if !options.has_letters() || text.len() > BYTES_MAX {
        return Led::Plain;
    }
    let lines: Vec<&str> = text.lines().collect();
    let found: Vec<(usize, Lead<'_>)> = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, lead(line, options)?)))
        .collect();
    // Several letters are a list of the options.
    let [(at, lead)] = found.as_slice() else {
        return Led::Plain;
    };
    match says(lead, options) {
        Led::Apart(item, _) => {
            let mut out = lines[..*at].join("\n");
            let rest = lines[at + 1..].join("\n");
            out.push_str(&format!(
                "\n{}{}\n\n{}\n{rest}",
                lead.head, lead.letter, lead.rest
            ));
            Led::Apart(item, out.trim_matches('\n').to_owned())
        }
        led => led,
    }
}

/// Returns whether a line of a reply begins with a capital letter, a mark and more words: `B. Java came later.`
pub(super) fn begins(reply: &str) -> bool {
    reply.lines().any(|line| {
        let said = line.rsplit_once([':', '：']).map_or(line, |(_, said)| said);
        let said = said.trim_start_matches(['*', '_', '(', '`', '"', ' ']);
        let mut chars = said.chars();
        let letter = chars.next().is_some_and(|c| c.is_ascii_uppercase());
        let mark = chars
            .next()
            .is_some_and(|c| matches!(c, '.' | ')' | ',' | '*'));
        letter && mark && chars.any(char::is_alphabetic)
    })
}

/// A letter that begins a line or follows its label.
struct Lead<'a> {
    /// The text before the letter, without marks.
    head: String,
    letter: &'a str,
    item: usize,
    /// The marks between the letter and the rest.
    marks: &'a str,
    rest: &'a str,
}

/// Returns the letter that leads a line.
fn lead<'a>(line: &'a str, options: &Options) -> Option<Lead<'a>> {
    const SAYS: &[&str] = &[
        "is",
        "ist",
        "est",
        "es",
        "是",
        "为",
        "选",
        "选择",
        "choose",
        "pick",
        "option",
        "definitely",
        "clearly",
        "certainly",
        "wähle",
        "eindeutig",
        "clairement",
        "choisis",
        "elijo",
        "claramente",
    ];
    let is_word =
        |c: char| c.is_ascii_alphanumeric() || c.is_alphabetic() && !super::language::is_han(c);
    let mut before = ' ';
    for (at, c) in line.char_indices().take_while(|(at, _)| *at < 60) {
        let alone = c.is_ascii_uppercase()
            && !is_word(before)
            && before != '\''
            && !line[at + 1..].starts_with(|c: char| is_word(c) || c == '\'' || c == '’');
        before = c;
        if !alone || !options.has_label(&line[at..=at]) {
            continue;
        }
        let item = options.labels.iter().position(|l| *l == line[at..=at])?;
        let head = line[..at].trim_end_matches(['*', '_', '(', '[', '`', '"', '“', ' ', '{', '$']);
        let head = head.trim_end_matches("\\text").trim_end_matches("\\boxed");
        let plain = head.trim_matches(['*', '_', '#', '>', '-', ' ', '$', '\\', '{']);
        let last = plain.to_lowercase();
        let last = last
            .rsplit(|c: char| c.is_whitespace())
            .next()
            .unwrap_or_default();
        let announced = plain.is_empty()
            || plain.ends_with([':', '：'])
            || SAYS.iter().any(|w| match w.is_ascii() {
                true => *w == last,
                false => last.ends_with(w),
            });
        if !announced || last.ends_with("不是") || !options.mentions(plain).is_empty() {
            return None;
        }
        let behind = &line[at + 1..];
        let rest = behind.trim_start_matches([
            ')', ']', '}', '*', '_', '`', '"', '”', '.', ',', ';', ':', '–', '—', '-', ' ', '。',
            '，', '：', '；', '(', '$', '（',
        ]);
        let marks = &behind[..behind.len() - rest.len()];
        return Some(Lead {
            head: match plain.is_empty() {
                true => String::new(),
                false => format!("{plain} "),
            },
            letter: &line[at..=at],
            item,
            marks,
            rest,
        });
    }
    None
}

/// Returns whether the rest of the line explains the letter.
fn says(lead: &Lead<'_>, options: &Options) -> Led {
    let rest = lead.rest;
    let mentions = options.mentions(rest);
    let Some(first) = mentions.first() else {
        return Led::Plain;
    };
    let said = rest.get(first.start..first.end).unwrap_or_default();
    let by_letter = |at: usize, text: &str| {
        options.has_label(text) && !rest[..at].trim_end().ends_with(['(', '（'])
    };
    let others = mentions.iter().any(|m| m.item != lead.item);
    let opens = rest[..first.start].trim().is_empty();
    if others && prose::turns(rest) {
        return Led::Turned(lead.item);
    }
    if !others || opens && first.item == lead.item {
        return Led::Plain;
    }
    // `B or C`, `B. No, C.`
    let again = mentions.iter().any(|m| {
        let text = rest.get(m.start..m.end).unwrap_or_default();
        m.item != lead.item && !m.rejected && by_letter(m.start, text)
    });
    if again {
        return Led::Plain;
    }
    let lower = rest.to_lowercase();
    let reason = REASONS.iter().any(|w| {
        lower
            .strip_prefix(w)
            .is_some_and(|more| !w.is_ascii() || more.starts_with(|c: char| !c.is_alphanumeric()))
    });
    let stands = lead
        .marks
        .contains(['.', ';', '。', '；', ',', '，', '–', '—', '(', '（'])
        || lead.marks.contains(" - ");
    let alone = opens
        && options
            .stated(&prose::bare(rest.trim_end_matches([')', '）'])))
            .is_some();
    // `A hail storm` is not a letter.
    let glued = opens && !stands && !lead.marks.trim().is_empty();
    let alone = alone && !lead.marks.trim().is_empty();
    match () {
        () if alone || glued && !options.has_label(said) => Led::Torn,
        () if stands || reason => Led::Apart(lead.item, String::new()),
        () => Led::Plain,
    }
}

/// Returns whether the first word of a reply is yes or no, and the found side is the other one without a change of mind:
/// `No, never. Yes, even in private repositories it's a bad idea.`
pub(super) fn leads_otherwise(text: &str, is_yes: bool) -> bool {
    const YES: &str = "yes yeah yep yup ja jep oui ouais sí";
    const NO: &str = "no nope nah nein nö non";
    let bare = prose::bare(text).to_lowercase();
    let first: String = bare.chars().take_while(|c| c.is_alphabetic()).collect();
    let behind = bare.get(first.len()..).unwrap_or_default();
    let ends = behind
        .trim_start_matches(['*', '_'])
        .starts_with([',', '.', ';', '!', '–', '—', ':'])
        || behind.trim_start().starts_with(['–', '—', '-']);
    let is = |table: &str| table.split(' ').any(|w| w == first);
    let other = if is_yes { NO } else { YES };
    ends && is(other) && !prose::turns(text) && !cues::has(&bare, super::amounts::REVOKES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Options {
        let names = ["rain", "wind", "hail", "frost"].map(str::to_owned);
        Options::labelled(&names, &["A", "B", "C", "D"].map(str::to_owned))
    }

    #[test]
    fn an_explanation_moves_to_its_own_line() {
        for (text, want) in [
            ("D. Hail (C) melts.", "D\n\nHail (C) melts."),
            ("**Answer: D.** Hail melts.", "Answer: D\n\nHail melts."),
            (
                "Die Antwort ist D, da hail schmilzt.",
                "Die Antwort ist D\n\nda hail schmilzt.",
            ),
            (
                "Réponse : D, car hail fond.",
                "Réponse : D\n\ncar hail fond.",
            ),
        ] {
            assert_eq!(apart(text, &shown()), Led::Apart(3, want.into()), "{text}");
        }
    }

    #[test]
    fn a_letter_beside_another_name_is_torn() {
        for text in ["D) hail", "D. Hail.", "(D) hail is cold"] {
            assert_eq!(apart(text, &shown()), Led::Torn, "{text}");
        }
        let turned = apart("D. Wait, hail is colder.", &shown());
        assert_eq!(turned, Led::Turned(3));
        for text in [
            "D) frost. Hail melts.",
            "D or C",
            "D. No, C.",
            "A: rain falls\nB: hail bounces",
            "A hail storm",
        ] {
            assert_eq!(apart(text, &shown()), Led::Plain, "{text}");
        }
    }
}
