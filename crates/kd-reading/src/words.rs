//! Splits a text into words, each with the punctuation after it.

use super::language::is_han;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    None,
    Clause,
    Sentence,
}

#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) lower: String,
    /// Its byte range.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The punctuation after it.
    pub(super) stop: Stop,
    /// Whether it is in brackets, or followed by a bracket or colon.
    pub(super) marked: bool,
    pub(super) quoted: bool,
}

pub(super) fn words(text: &str) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut word = String::new();
    let mut opened = None;
    let push = |word: &mut String, end: usize, opened: Option<char>, out: &mut Vec<Word>| {
        if !word.is_empty() {
            let text = std::mem::take(word);
            out.push(Word {
                start: end - text.len(),
                end,
                lower: text.to_lowercase().replace('’', "'"),
                text,
                stop: Stop::None,
                marked: matches!(opened, Some('(' | '[' | '*' | '`' | '（' | '【')),
                quoted: matches!(opened, Some('"' | '“' | '„' | '«' | '*' | '\'' | '‘' | '`')),
            });
        }
    };
    let mut before = None;
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    for (at, (place, c)) in chars.iter().copied().enumerate() {
        let next = chars.get(at + 1).map(|(_, c)| *c);
        let inside = match c {
            '\'' | '’' | '.' | ',' => {
                // An elided French article is a word: `l'avion`.
                let elided =
                    !matches!(c, '.' | ',') && ["l", "d", "L", "D"].contains(&word.as_str());
                !word.is_empty()
                    && !elided
                    && next.is_some_and(char::is_alphanumeric)
                    && (c == '\''
                        || c == '’'
                        || word.ends_with(|c: char| c.is_ascii_digit())
                            && next.is_some_and(|n| n.is_ascii_digit()))
            }
            '+' | '#' => !word.is_empty(),
            c => (c.is_alphanumeric() || c == '_') && !is_han(c),
        };
        if inside {
            if word.is_empty() {
                opened = before;
            }
            word.push(c);
        } else {
            push(&mut word, place, opened, &mut out);
            if is_han(c) {
                word.push(c);
                push(&mut word, place + c.len_utf8(), before, &mut out);
            }
            if let Some(last) = out.last_mut() {
                match c {
                    // `ID.3` and `Node.js` are names.
                    '.' if next.is_some_and(char::is_alphanumeric) => {}
                    '.' | '!' | '?' | '。' | '！' | '？' => last.stop = Stop::Sentence,
                    ',' | ';' | ':' | '/' | '，' | '；' | '：' | '、' | '—' | '–' | '\n' | '('
                    | ')' | '（' | '）'
                        if last.stop == Stop::None =>
                    {
                        last.stop = Stop::Clause;
                    }
                    '-' if before == Some(' ') && last.stop == Stop::None => {
                        last.stop = Stop::Clause
                    }
                    _ => {}
                }
                if matches!(c, ')' | ']' | '）' | '】') {
                    last.marked = true;
                }
            }
        }
        before = Some(c);
    }
    push(&mut word, text.len(), opened, &mut out);
    out
}

/// Returns lowercase words separated by single spaces, without surrounding marks.
pub(super) fn folded(text: &str) -> String {
    let lower = text.to_lowercase().replace('’', "'");
    let joined: Vec<&str> = lower.split_whitespace().collect();
    joined
        .join(" ")
        .trim_matches([
            '*', '_', '`', '"', '“', '”', '„', '«', '»', '\'', ' ', '.', '!', '。', ',', ';', ':',
        ])
        .to_owned()
}
