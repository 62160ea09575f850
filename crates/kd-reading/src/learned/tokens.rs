//! Words, signs and mentions of a sentence.

use super::super::language::is_han;
use super::classes;

/// A sentence as the model sees it.
#[derive(Clone, Debug)]
pub(super) struct Sentence {
    pub(super) text: String,
    /// The form of the line that it begins.
    pub(super) form: &'static str,
    pub(super) mentions: Vec<Mention>,
}

/// A mention of a candidate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention {
    pub(super) item: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether the clause rejects it.
    pub(super) rejected: bool,
    /// Whether words only point at it.
    pub(super) hint: bool,
    /// What a short text looks like; empty for other candidates.
    pub(super) shape: &'static str,
}

impl Mention {
    pub(super) fn new(item: usize, start: usize, end: usize) -> Self {
        Self {
            item,
            start,
            end,
            rejected: false,
            hint: false,
            shape: "",
        }
    }
}

/// A word, a sign, or a mention.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// In lowercase; `0` for digits.
    pub(super) text: String,
    /// Index of the mention.
    pub(super) mention: Option<usize>,
    /// Whether it is in bold.
    pub(super) bold: bool,
    /// Whether it is between quotation marks.
    pub(super) quoted: bool,
}

impl Token {
    /// Returns whether it ends a clause.
    pub(super) fn stops(&self) -> bool {
        self.mention.is_none() && is_stop(&self.text)
    }
}

/// Returns whether a sign ends a clause.
pub(super) fn is_stop(text: &str) -> bool {
    matches!(text, "," | ";" | ":" | "-" | "(" | ")" | "." | "!" | "?")
}

/// Splits a sentence into tokens. Marks of bold text and quotations become properties of the tokens between them.
pub(super) fn of(sentence: &Sentence) -> Vec<Token> {
    let text = sentence.text.as_str();
    let mut out: Vec<Token> = Vec::new();
    let (mut bold, mut quoted) = (false, false);
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let mut end = at + c.len_utf8();
        let mention = sentence
            .mentions
            .iter()
            .position(|m| m.start == at && m.end > at);
        let mut word = String::new();
        if let Some(index) = mention {
            end = text.ceil_char_boundary(sentence.mentions[index].end);
        } else if c.is_alphanumeric() && !is_han(c) {
            end = word_end(sentence, at);
            word = match text[at..end].contains(char::is_numeric) {
                true => "0".to_owned(),
                false => text[at..end].to_lowercase().replace('’', "'"),
            };
        } else if c == '*' {
            let double = text[end..].starts_with('*');
            end += usize::from(double);
            bold ^= double;
        } else if matches!(
            c,
            '"' | '“' | '”' | '„' | '«' | '»' | '「' | '」' | '《' | '》' | '`'
        ) {
            quoted = !quoted;
        } else if !c.is_whitespace() && !matches!(c, '_' | '\'') {
            word.push(sign(c));
        }
        if mention.is_some() || !word.is_empty() {
            out.push(Token {
                text: word,
                mention,
                bold,
                quoted,
            });
        }
        at = end;
    }
    out
}

/// Returns the end of a word: before the next mention, and with inner apostrophes.
fn word_end(sentence: &Sentence, start: usize) -> usize {
    let text = sentence.text.as_str();
    let mut chars = text[start..].char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let joins = matches!(c, '\'' | '’') && next.is_some_and(char::is_alphabetic);
        let inside = c.is_alphanumeric() && !is_han(c) || joins;
        let named = at > 0 && sentence.mentions.iter().any(|m| m.start == start + at);
        if !inside || named {
            return start + at;
        }
    }
    text.len()
}

fn sign(c: char) -> char {
    match c {
        '，' | '、' => ',',
        '：' => ':',
        '；' => ';',
        '（' => '(',
        '）' => ')',
        '。' => '.',
        '！' => '!',
        '？' => '?',
        '–' | '—' => '-',
        other => other,
    }
}

/// Returns the place and the class of each token that has one. Mentions and signs are their own classes.
pub(super) fn classes(tokens: &[Token]) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let mut length = 1;
        if token.mention.is_some() {
            out.push((at, "#"));
        } else if let Some((class, tokens)) = class_at(&tokens[at..]) {
            out.push((at, class));
            length = tokens;
        } else if token.stops() || matches!(token.text.as_str(), "=" | "0" | "%") {
            out.push((at, token.text.as_str()));
        }
        at += length;
    }
    out
}

/// Returns the class of the longest entry at the beginning, and the number of its tokens.
fn class_at(tokens: &[Token]) -> Option<(&'static str, usize)> {
    let first = tokens.first()?;
    let han = first.text.chars().all(is_han);
    let most = tokens.len().min(classes::TOKENS_MAX);
    let free = tokens[..most]
        .iter()
        .take_while(|t| t.mention.is_none())
        .count();
    for length in (1..=free).rev() {
        let words: Vec<&str> = tokens[..length].iter().map(|t| t.text.as_str()).collect();
        if let Some(class) = classes::of(&words.join(if han { "" } else { " " })) {
            return Some((class, length));
        }
    }
    classes::by_stem(&first.text).map(|class| (class, 1))
}
