//! Normalizes replies that refer to options by other names: `Option 2` of a list in the reply itself, or labels in a
//! reply without capitals.

use super::language::is_han;
use super::options::Options;
use std::borrow::Cow;

/// Words before the number of an option.
const CALLED: &[&str] = &[
    "option",
    "choice",
    "candidate",
    "variante",
    "möglichkeit",
    "choix",
    "opción",
    "number",
    "nr.",
    "no.",
    "#",
    "方案",
    "选项",
];
/// Maximum size of a reply to rewrite, in bytes.
const BYTES_MAX: usize = 4000;

/// Replaces other names of options with their own.
pub(super) fn named<'a>(text: &'a str, options: &Options) -> Cow<'a, str> {
    if text.len() > BYTES_MAX || options.is_yes_no() {
        return Cow::Borrowed(text);
    }
    let text = match options.has_letters() && !text.chars().any(char::is_uppercase) {
        true => Cow::Owned(with_capitals(text, options)),
        false => Cow::Borrowed(text),
    };
    let defined = defined(&text, options);
    if defined.len() < 2 {
        return text;
    }
    let mut out = text.into_owned();
    for (number, name, from) in &defined {
        for called in CALLED {
            let (head, tail) = out.split_at(out.floor_char_boundary((*from).min(out.len())));
            let folded = super::folded::Folded::new(tail);
            let words = match called.ends_with(['.', '#']) {
                true => format!("{called}{number}"),
                false => format!("{called} {number}"),
            };
            let Some(at) = folded.find(&words) else {
                continue;
            };
            if tail[at.end..].starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            out = format!("{head}{}{name}{}", &tail[..at.start], &tail[at.end..]);
        }
    }
    Cow::Owned(out)
}

/// Replaces underscores between letters with spaces, unless an option has one: `feature_request`.
pub(super) fn without_underscores<'a>(text: &'a str, options: &Options) -> Cow<'a, str> {
    if !text.contains('_') || options.names().any(|name| name.contains('_')) {
        return Cow::Borrowed(text);
    }
    let chars: Vec<char> = text.chars().collect();
    let letter = |at: Option<usize>| {
        at.and_then(|at| chars.get(at))
            .is_some_and(|c| c.is_alphanumeric())
    };
    let joins = |at: usize| chars[at] == '_' && letter(at.checked_sub(1)) && letter(Some(at + 1));
    let out = (0..chars.len()).map(|at| if joins(at) { ' ' } else { chars[at] });
    Cow::Owned(out.collect())
}

/// Strips a form that the reply fills in: `Yes/No: Yes`.
pub(super) fn without_form(text: &str) -> &str {
    const FORMS: &[&str] = &[
        "yes/no",
        "yes or no",
        "ja/nein",
        "ja oder nein",
        "oui/non",
        "oui ou non",
        "sí/no",
        "sí o no",
        "是/否",
    ];
    let folded = super::folded::Folded::new(text.trim_start());
    FORMS
        .iter()
        .find_map(|form| {
            folded
                .strip_prefix(form)?
                .trim_start()
                .strip_prefix([':', '?', '：', '？'])
        })
        .unwrap_or(text)
}

/// Removes the brackets around labels in a short reply: `Not (C), but (B).`
pub(super) fn without_brackets(text: &str, options: &Options) -> Option<String> {
    const SHORT_BYTES_MAX: usize = 200;
    if text.len() > SHORT_BYTES_MAX || !options.has_letters() {
        return None;
    }
    let mut out = text.to_owned();
    for letter in 'A'..='Z' {
        if options.has_label(&letter.to_string()) {
            out = out.replace(&format!("({letter})"), &letter.to_string());
        }
    }
    (out != text).then_some(out)
}

/// Returns the numbers that a reply's lines assign to options (`Option 2: Tee`), and where the list ends.
fn defined(text: &str, options: &Options) -> Vec<(usize, String, usize)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut end = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let bare = line.trim().trim_start_matches(['-', '*', ' ']);
        let lower = bare.to_lowercase();
        let rest = CALLED.iter().find_map(|called| lower.strip_prefix(called));
        let Some(rest) = rest.map(str::trim_start) else {
            continue;
        };
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        let Ok(number) = rest[..digits].parse::<usize>() else {
            continue;
        };
        let Some(said) = rest[digits..]
            .trim_start_matches(['*', ' '])
            .strip_prefix([':', '：', ')', '.', '-'])
        else {
            continue;
        };
        let name = bare.get(bare.len().saturating_sub(said.len())..);
        let name = super::prose::bare(name.unwrap_or_default());
        if options.stated(&name).is_some() {
            found.push((number, name));
            end = at;
        }
    }
    found
        .into_iter()
        .map(|(number, name)| (number, name, end))
        .collect()
}

/// Capitalizes labels in a lowercase reply: `b is best` becomes `B is best`.
fn with_capitals(text: &str, options: &Options) -> String {
    const BEHIND_A: &[&str] = &[
        "is", "was", "has", "wins", "and", "or", "looks", "seems", "over", "because",
    ];
    let mut out = String::new();
    let words: Vec<&str> = text
        .split_inclusive(|c: char| !c.is_alphanumeric())
        .collect();
    for (n, piece) in words.iter().enumerate() {
        let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
        let upper = word.to_uppercase();
        let before = n
            .checked_sub(1)
            .map_or(' ', |b| words[b].chars().next_back().unwrap_or(' '));
        let is_label = word.len() == 1 && options.has_label(&upper) && before != '\'';
        let next = words
            .get(n + 1)
            .map_or("", |w| w.trim_end_matches(|c: char| !c.is_alphanumeric()));
        let ends = !piece.ends_with(' ') || n + 1 == words.len();
        let also_a_word = matches!(word, "a" | "i" | "o" | "y" | "e");
        if is_label && (!also_a_word || ends || word == "a" && BEHIND_A.contains(&next)) {
            out.push_str(&upper);
            out.push_str(&piece[word.len()..]);
        } else {
            out.push_str(piece);
        }
    }
    out
}

/// Replaces half-width marks after Chinese characters with full-width ones: `能上线吗?能。`
pub(super) fn with_han_marks(text: &str) -> Cow<'_, str> {
    const MARKS: [(char, char); 6] = [
        (',', '，'),
        (';', '；'),
        (':', '：'),
        ('?', '？'),
        ('!', '！'),
        ('.', '。'),
    ];
    let chars: Vec<char> = text.chars().collect();
    let opens = |c: Option<&char>| c.is_none_or(|c| c.is_whitespace() || is_han(*c));
    let wide = |at: usize| {
        let (_, wide) = MARKS.iter().find(|(mark, _)| *mark == chars[at])?;
        let before = chars[..at]
            .iter()
            .rev()
            .find(|c| !"*_)\"”`".contains(**c))?;
        let next = chars.get(at + 1);
        let fits = match chars[at] {
            '.' => is_han(*before) && opens(next),
            _ => is_han(*before) || is_han(*next?) && before.is_alphanumeric(),
        };
        // `3.14:3.14 × 25`: a colon behind a decimal fraction divides nothing.
        let fraction = || {
            let digits = chars[..at].iter().rev().take_while(|c| c.is_ascii_digit());
            let from = at - digits.count();
            from > 1 && chars[from - 1] == '.' && chars[from - 2].is_ascii_digit()
        };
        (fits || *wide == '：' && fraction()).then_some(*wide)
    };
    if !chars.iter().any(|c| is_han(*c)) || !text.contains(MARKS.map(|(mark, _)| mark)) {
        return Cow::Borrowed(text);
    }
    (0..chars.len())
        .map(|at| wide(at).unwrap_or(chars[at]))
        .collect::<String>()
        .into()
}

/// Replaces arrows after labels with colons, if several lines have one: `Recommended → Vue`.
pub(super) fn without_arrows(text: &str) -> Cow<'_, str> {
    let is_labelled = |line: &&str| matches!(line.split(['→', '⇒']).collect::<Vec<_>>().as_slice(), [head, tail] if !head.trim().is_empty() && !tail.trim().is_empty());
    match text.lines().filter(is_labelled).count() {
        0 | 1 => Cow::Borrowed(text),
        _ => Cow::Owned(text.replace(" → ", ": ").replace(" ⇒ ", ": ")),
    }
}

/// Returns whether a Chinese clause holds a verb and its negation, which asks: `值不值得`.
fn asks_in_han(clause: &str) -> bool {
    let chars: Vec<char> = clause.chars().collect();
    chars
        .windows(3)
        .any(|c| c[0] == c[2] && matches!(c[1], '不' | '没') && is_han(c[0]))
}

/// Removes reported views and double negations from a Chinese text: `没有什么不可行` becomes `可行`.
pub(super) fn own_han(text: &str) -> String {
    const WITHIN: [&str; 5] = ["大家都", "供应商", "前任", "同事们", "所有人都"];
    const OTHERS: [&str; 12] = [
        "有人说",
        "有人认为",
        "有人觉得",
        "有人建议",
        "有的说",
        "有的认为",
        "别人说",
        "他们说",
        "大家说",
        "同事说",
        "同事认为",
        "朋友说",
    ];
    if !text.chars().any(is_han) {
        return text.to_owned();
    }
    let plain = text
        .replace("没有什么不", "")
        .replace("没什么不", "")
        .replace("我不得不说", "");
    let clauses = plain.split_inclusive(['，', '。', '；', '！', ',', ';', '\n']);
    clauses
        .filter(|clause| {
            let reports = WITHIN.iter().any(|said| clause.contains(said))
                || OTHERS
                    .iter()
                    .any(|said| clause.trim_start().starts_with(said));
            !reports && !asks_in_han(clause)
        })
        .collect()
}
