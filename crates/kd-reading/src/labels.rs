//! Labelled options: `A) …` on separate lines, `(A) iron (B) gold` within a line, `(1) dark mode`, bullets.

use super::language::is_han;

/// The options of a question, by kind of label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Labelled {
    /// Labelled by letters.
    Letters(Vec<String>),
    /// Labelled by numbers.
    Numbers(Vec<String>),
    /// Labelled by bullets.
    Bullets(Vec<String>),
}

/// Maximum number of options.
const OPTIONS_MAX: usize = 26;
/// Maximum length of an option, in characters.
const OPTION_CHARS_MAX: usize = 120;

/// Returns the labelled options of a text, and the text without them.
pub(super) fn of(text: &str) -> Option<(Labelled, String)> {
    for lines in [true, false] {
        if let Some((options, rest)) = labelled(text, 'a', lines) {
            return Some((Labelled::Letters(options), rest));
        }
    }
    for lines in [true, false] {
        if let Some((options, rest)) = labelled(text, '1', lines) {
            return Some((Labelled::Numbers(options), rest));
        }
    }
    if let Some((options, rest)) = stems(text) {
        return Some((Labelled::Letters(options), rest));
    }
    bullets(text).map(|(options, rest)| (Labelled::Bullets(options), rest))
}

/// Parses options with Chinese labels: `甲：便宜；乙：快`.
fn stems(text: &str) -> Option<(Vec<String>, String)> {
    let places: Vec<usize> = ['甲', '乙', '丙', '丁']
        .iter()
        .map_while(|label| {
            ['：', ':', '、', '.', '】']
                .iter()
                .find_map(|stop| text.find(&format!("{label}{stop}")))
        })
        .collect();
    if places.len() < 2 || !places.is_sorted() {
        return None;
    }
    let mut options = Vec::new();
    let mut end = text.len();
    for (at, place) in places.iter().enumerate() {
        let next = places.get(at + 1).copied().unwrap_or(text.len());
        let piece: &str = text.get(*place..next)?;
        let body = piece
            .char_indices()
            .nth(2)
            .map_or("", |(from, _)| &piece[from..]);
        let cut = body
            .find(['；', '。', '？', '?', ';', '【', '\n'])
            .unwrap_or(body.len());
        end = next - body.len() + cut;
        options.push(trimmed(&body[..cut]));
    }
    let head = text.get(..places[0])?;
    let rest = format!("{head}\n{}", text.get(end..).unwrap_or_default());
    options
        .iter()
        .all(|o| !o.is_empty())
        .then_some((options, rest))
}

/// A label: the start of the label, and the start of its option.
struct Mark {
    from: usize,
    to: usize,
}

/// Parses options labelled in order from `first`.
fn labelled(text: &str, first: char, lines: bool) -> Option<(Vec<String>, String)> {
    let marks = marks(text, first, lines);
    if marks.len() < 2 {
        return None;
    }
    let mut options = Vec::new();
    let mut end = text.len();
    for (place, mark) in marks.iter().enumerate() {
        let next = marks.get(place + 1).map_or(text.len(), |m| m.from);
        let piece = text.get(mark.to..next)?;
        let cut = match (lines, place + 1 == marks.len()) {
            (true, _) => piece.find('\n').unwrap_or(piece.len()),
            (false, true) => last_end(piece),
            (false, false) => piece.len(),
        };
        end = mark.to + cut;
        options.push(trimmed(piece.get(..cut)?));
    }
    let fits = |o: &String| !o.is_empty() && o.chars().count() <= OPTION_CHARS_MAX;
    if !options.iter().all(fits) {
        return None;
    }
    let head = text
        .get(..marks[0].from)?
        .trim_end_matches(['(', '（', '[']);
    let rest = format!("{head}\n{}", text.get(end..).unwrap_or_default());
    Some((options, rest))
}

fn marks(text: &str, first: char, lines: bool) -> Vec<Mark> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut found: Vec<Mark> = Vec::new();
    let mut at = 0;
    while at + 1 < chars.len() && found.len() < OPTIONS_MAX {
        let (place, c) = chars[at];
        let wanted = char::from_u32(u32::from(first) + found.len() as u32);
        let before = at.checked_sub(1).map(|b| chars[b].1);
        let (after_at, after) = chars[at + 1];
        let bracketed =
            matches!(before, Some('(' | '（' | '[')) && matches!(after, ')' | '）' | ']');
        let free = before.is_none_or(|b| {
            b.is_whitespace()
                || is_han(b)
                || matches!(
                    b,
                    '*' | ',' | ';' | ':' | '：' | '，' | '；' | '。' | '?' | '？' | '/' | '|'
                )
        });
        let mut stop = matches!(after, ')' | '）' | '.' | ':' | '、' | '：' | '．');
        if first == '1' && !lines {
            // `1.5` and `at 1: …` are not labels.
            stop = matches!(after, ')' | '）');
        }
        let starts_line = || {
            let line = text[..place].rsplit('\n').next().unwrap_or_default();
            line.chars()
                .all(|c| matches!(c, ' ' | '\t' | '(' | '（' | '[' | '-' | '*' | '>'))
        };
        let is_decimal = after == '.' && chars.get(at + 2).is_some_and(|(_, c)| c.is_ascii_digit());
        // `A/ Sydney B/ Canberra`
        let stroked = after == '/' && chars.get(at + 2).is_some_and(|(_, c)| *c == ' ');
        // `A 涨价 B 降价`
        let spaced = after == ' '
            && c.is_ascii_uppercase()
            && before.is_some_and(|b| matches!(b, ' ' | '：' | ':' | '？' | '，'))
            && chars.get(at + 2).is_some_and(|(_, c)| is_han(*c));
        let is_label = wanted == Some(c.to_ascii_lowercase())
            && (bracketed || free && (stop || spaced || stroked) && !(is_decimal && first == '1'))
            && (!lines || starts_line());
        if is_label {
            let from = if bracketed { chars[at - 1].0 } else { place };
            found.push(Mark {
                from,
                to: after_at + after.len_utf8(),
            });
            at += 1;
        }
        at += 1;
    }
    found
}

/// Returns the end of the last option within a line: the end of its sentence, or the start of an aside.
fn last_end(piece: &str) -> usize {
    let lead = piece.len() - piece.trim_start().len();
    let body = &piece[lead..];
    let mut ends: Vec<usize> = [
        "?", "？", "\n", "。", "（", " (", ": ", "：", "! ", " – ", " — ",
    ]
    .iter()
    .filter_map(|mark| body.find(mark))
    .collect();
    ends.extend(body.match_indices(". ").map(|(at, _)| at).find(|at| {
        let before = &body[..*at];
        !before.ends_with(|c: char| c.is_ascii_digit())
    }));
    lead + ends
        .into_iter()
        .filter(|at| *at > 0)
        .min()
        .unwrap_or(body.len())
}

/// Parses at least two bulleted lines, in a text that also has other lines.
fn bullets(text: &str) -> Option<(Vec<String>, String)> {
    let mut options = Vec::new();
    let mut rest = String::new();
    for line in text.lines() {
        let bare = line.trim();
        let option = ["- ", "* ", "• ", "– ", "·"]
            .iter()
            .find_map(|b| bare.strip_prefix(b));
        match option {
            Some(option) if options.len() < OPTIONS_MAX => options.push(trimmed(option)),
            _ => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
    }
    let fits = |o: &String| !o.is_empty() && o.chars().count() <= OPTION_CHARS_MAX;
    (options.len() >= 2 && options.iter().all(fits) && !rest.trim().is_empty())
        .then_some((options, rest))
}

/// Strips trailing punctuation and a trailing "or" from an option.
fn trimmed(piece: &str) -> String {
    let mut piece = piece.trim();
    for or in [
        "or", "oder", "ou", "o", "and", "und", "et", "y", "或", "还是",
    ] {
        if let Some(rest) = piece.strip_suffix(or)
            && (rest.ends_with([' ', ',', ';']) || or.chars().all(is_han) && !rest.is_empty())
        {
            piece = rest.trim_end();
        }
    }
    piece
        .trim_matches([
            ',', ';', '.', '。', '，', '；', '、', '/', '|', ' ', '?', '？', '*', '（', '(', '[',
        ])
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> String {
        match of(text).map(|(labelled, _)| labelled) {
            Some(Labelled::Letters(o) | Labelled::Numbers(o) | Labelled::Bullets(o)) => o.join("|"),
            None => String::new(),
        }
    }

    #[test]
    fn labels_are_read_in_every_form() {
        for (text, want) in [
            ("Which? (A) iron (B) gold", "iron|gold"),
            (
                "Pick: a) raise by 5 %, b) drop it, c) leave it. Churn is 2 %.",
                "raise by 5 %|drop it|leave it",
            ),
            ("Which one?\nA. x\nB. y: z\n", "x|y: z"),
            (
                "Which do we cut?\n(1) dark mode\n(2) CSV\n(3) SSO",
                "dark mode|CSV|SSO",
            ),
            (
                "Faut-il (1) réparer, (2) remplacer ? Elle a 24 ans.",
                "réparer|remplacer",
            ),
            ("数据库：A.MySQL B.PostgreSQL（两人）", "MySQL|PostgreSQL"),
            ("Which one?\n- red\n- blue", "red|blue"),
            ("At 1.5 and 2.5 or 1: 2", ""),
            ("选一个：A 涨价 B 降价", "涨价|降价"),
            ("甲：便宜但慢；乙：贵但快。选哪个", "便宜但慢|贵但快"),
            ("a.m. or p.m.?", ""),
        ] {
            assert_eq!(options(text), want, "{text}");
        }
    }
}
