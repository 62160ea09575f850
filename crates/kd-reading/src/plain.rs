//! Plain text of a reply: its sentences, and texts without Markdown, LaTeX and surrounding marks.

/// Splits a text into sentences and lines.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines() {
        let line = undecorated(line);
        let mut from = 0;
        for (at, c) in line.char_indices() {
            let end = at + c.len_utf8();
            let next = line.get(end..).and_then(|t| t.chars().next());
            let ends = match c {
                '.' | '!' | '?' => {
                    next.is_none_or(|n| n.is_whitespace() || matches!(n, '*' | '"' | ')'))
                }
                '。' | '！' | '？' | '；' | ';' => true,
                _ => false,
            };
            // `A.` and `1.` begin an item and do not end a sentence.
            let short = line[from..at].trim().chars().count() <= 1 && c == '.';
            if ends && !short {
                out.push(line[from..end].trim().to_owned());
                from = end;
            }
        }
        out.push(line[from..].trim().to_owned());
    }
    out.retain(|s| s.chars().any(char::is_alphanumeric));
    out
}

/// Strips list, heading and quote marks from the beginning of a line.
pub(super) fn undecorated(line: &str) -> String {
    let bare = line.trim().trim_start_matches([
        '*', '#', '-', '>', '_', ' ', '•', '✅', '➡', '👉', '\u{fe0f}', '|', '→', '`', '"', '“',
        '\'',
    ]);
    bare.to_owned()
}

/// Strips the marks around a text.
pub fn bare(text: &str) -> String {
    let plain = plain_latex(text);
    let bare = plain
        .trim()
        .trim_matches([
            '*', '_', '`', '"', '“', '”', '„', '«', '»', '「', '」', '\'', ' ', '#', '|', '>',
            '✅', '\u{fe0f}',
        ])
        .trim_end_matches(['.', '。', '!', '！', ',', ';'])
        .trim()
        .trim_matches(['*', '_', '`', '"', '“', '”', '„', '«', '»', '\''])
        .trim();
    with_both_quotes(bare, &plain)
}

/// Adds the quotation mark that was stripped from one end of a text, but belongs to one inside it: `«Emma» was written by …`.
fn with_both_quotes(bare: &str, text: &str) -> String {
    const MARKS: [(char, char); 5] = [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」')];
    let Some(start) = text.find(bare).filter(|_| !bare.is_empty()) else {
        return bare.to_owned();
    };
    let (before, behind) = (&text[..start], &text[start + bare.len()..]);
    for (open, close) in MARKS {
        let opened = bare.chars().filter(|c| *c == open).count();
        let closed = bare.chars().filter(|c| *c == close).count();
        let (more_closed, more_opened) = match open == close {
            true => (opened % 2 == 1, opened % 2 == 1),
            false => (closed > opened, opened > closed),
        };
        if more_closed && before.ends_with(open) {
            return format!("{open}{bare}");
        }
        if more_opened && behind.trim_start_matches(['.', '!']).starts_with(close) {
            return format!("{bare}{close}");
        }
    }
    bare.to_owned()
}

/// Removes typed input from an interpreter session: `>>> pick(["make", "just"])`.
pub(super) fn without_input(text: &str) -> std::borrow::Cow<'_, str> {
    let typed =
        |line: &str| line.trim_start().starts_with(">>> ") || line.trim_start().starts_with("In [");
    if !text.lines().any(typed) || text.lines().all(|l| typed(l) || l.trim().is_empty()) {
        return text.into();
    }
    let said: Vec<&str> = text.lines().filter(|line| !typed(line)).collect();
    said.join("\n").into()
}

/// Returns the content of the brace that follows.
pub(super) fn braced(rest: &str) -> String {
    let Some(inner) = rest.trim_start().strip_prefix('{') else {
        return rest.trim().to_owned();
    };
    let mut depth = 1;
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return inner[..at].to_owned();
        }
    }
    inner.to_owned()
}

/// Maximum length of a text whose LaTeX is converted, in bytes: an answer is short.
pub(super) const LATEX_BYTES_MAX: usize = 2000;

/// Converts LaTeX in short answers to plain text.
pub fn plain_latex(text: &str) -> String {
    if !text.contains(['\\', '$']) && !text.contains("{,}") || text.len() > LATEX_BYTES_MAX {
        return text.to_owned();
    }
    let mut out = text.to_owned();
    for command in [
        r"\text",
        r"\textbf",
        r"\mathrm",
        r"\mathbf",
        r"\boxed",
        r"\operatorname",
    ] {
        while let Some(at) = out.find(&format!("{command}{{")) {
            let inner = braced(&out[at + command.len()..]);
            let end = (at + command.len() + inner.len() + 2).min(out.len());
            out.replace_range(at..end, &inner);
        }
    }
    for name in [r"\dfrac", r"\tfrac", r"\frac"] {
        while let Some(at) = out.find(&format!("{name}{{")) {
            let high = braced(&out[at + name.len()..]);
            let mid = (at + name.len() + high.len() + 2).min(out.len());
            let low = braced(&out[mid..]);
            let end = (mid + low.len() + 2).min(out.len());
            if !out[mid..].starts_with('{') {
                break;
            }
            out.replace_range(at..end, &format!("{high}/{low}"));
        }
    }
    for (from, to) in [
        (r"\(", ""),
        (r"\)", ""),
        (r"\[", ""),
        (r"\]", ""),
        (r"\,", ""),
        (r"\;", " "),
        (r"\!", ""),
        (r"\%", "%"),
        (r"\$", "$"),
        ("{,}", ","),
        (r"\approx", "≈"),
        (r"\quad", " "),
        (r"\ ", " "),
    ] {
        out = out.replace(from, to);
    }
    out.replace('$', "")
}

/// Returns whether a line states a confidence.
pub fn is_about_confidence(line: &str) -> bool {
    let lower = line.to_lowercase();
    let lower = lower.trim_start_matches(['*', '#', '-', '>', '_', ' ', '|', '"']);
    [
        "confidence",
        "konfidenz",
        "sicherheit",
        "confiance",
        "confianza",
        "certainty",
        "置信",
        "信心",
        "zuversicht",
        "certitude",
    ]
    .iter()
    .any(|w| lower.starts_with(w))
        || ["i am 9", "i'm 9"].iter().any(|w| lower.starts_with(w))
            && !lower
                .get(7..)
                .is_some_and(|t| t.contains(|c: char| c.is_ascii_digit()))
}
