//! Sentences and their clauses. Input: a reply. Output: its sentences in order, each split into clauses at punctuation
//! and at words such as `but`, `if` and `so`, with the role of each clause: claim, condition, concession, report.

use super::cues;
use super::language::is_han;

/// The form of the line that a sentence begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Running text.
    Plain,
    /// A line of a list.
    Bullet,
    /// A numbered line, with its number.
    Numbered(usize),
    /// A heading.
    Heading,
    /// A line that begins in bold.
    Bold,
    /// A row of a table.
    Row,
}

/// A sentence.
#[derive(Clone, Debug)]
pub(super) struct Sentence {
    pub(super) text: String,
    /// The form of its line; `None` unless it begins the line.
    pub(super) form: Option<Form>,
    pub(super) clauses: Vec<Clause>,
}

/// The separator between a clause and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Start,
    Comma,
    /// A colon, a dash or an arrow: the text before introduces the text after.
    Colon,
    Semicolon,
    Bracket,
    /// Only a word that begins a clause.
    Word,
}

/// The role of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// States the author's view.
    Claim,
    /// Follows from the rest.
    Conclusion,
    /// Contrasts with the text before.
    Contrast,
    /// Gives a reason.
    Reason,
    /// Holds only under a condition.
    Condition,
    /// Names the alternative to a condition.
    Otherwise,
    /// Concedes something that does not decide.
    Concession,
    /// Reports the views of others, or an earlier view of the author.
    Report,
}

/// A part of a sentence.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) lower: String,
    pub(super) before: Before,
    pub(super) in_brackets: bool,
    pub(super) role: Role,
}

impl Sentence {
    /// Returns whether the sentence asks, rather than quotes a question at its end: `It is "whom": *To whom?*`
    pub(super) fn asks(&self) -> bool {
        let end = self
            .text
            .trim_end_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '?' | '？'));
        let close = self.text[end.len()..].chars().next();
        let open = match close {
            Some('”') => '“',
            Some('“') => '„',
            Some('»') => '«',
            Some('」') => '「',
            other => other.unwrap_or_default(),
        };
        let quotes = matches!(close, Some('*' | '_' | '"' | '”' | '“' | '»' | '」'));
        let opened = end.rfind(open).filter(|_| quotes);
        let quoted = opened.is_some_and(|at| end[..at].contains(char::is_alphanumeric));
        end.ends_with(['?', '？']) && !quoted
    }

    /// Returns whether the whole sentence is in brackets.
    pub(super) fn is_aside(&self) -> bool {
        let text = self.text.trim_start_matches(['*', '_', ' ']);
        let Some(inner) = text.strip_prefix(['(', '（']) else {
            return false;
        };
        let close = inner.find([')', '）']);
        let behind = close.and_then(|at| inner.get(at..)).unwrap_or_default();
        !behind.chars().any(char::is_alphanumeric)
    }

    /// Returns the clause at a byte position.
    pub(super) fn clause_at(&self, place: usize) -> usize {
        let after = self.clauses.partition_point(|c| c.start <= place);
        after.saturating_sub(1)
    }

    /// Returns whether a clause has a role.
    pub(super) fn has(&self, role: Role) -> bool {
        self.clauses.iter().any(|c| c.role == role)
    }
}

/// Maximum bytes read of a sentence, counted from its end.
const SENTENCE_BYTES_MAX: usize = 2000;

/// Splits a text into sentences, and the sentences into clauses.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut sentences = split(text);
    for sentence in &mut sentences {
        sentence.clauses = clauses(&sentence.text);
    }
    sentences
}

/// Splits a text into sentences, without clauses.
pub(super) fn split(text: &str) -> Vec<Sentence> {
    let mut out = Vec::new();
    for line in text.lines() {
        if is_fence(line) {
            continue;
        }
        let (form, rest) = form_of(line);
        for (n, part) in parts(rest).into_iter().enumerate() {
            if !part.chars().any(char::is_alphanumeric) {
                continue;
            }
            out.push(Sentence {
                clauses: Vec::new(),
                text: end_of(part),
                form: (n == 0).then_some(form),
            });
        }
    }
    out
}

/// Returns the end of a long sentence: a hostile text may never end its sentence.
fn end_of(sentence: String) -> String {
    let from = sentence.len().saturating_sub(SENTENCE_BYTES_MAX);
    match from {
        0 => sentence,
        from => sentence[sentence.ceil_char_boundary(from)..].to_owned(),
    }
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// Returns the form of a line, and the line without its marks.
fn form_of(line: &str) -> (Form, &str) {
    let bare = line.trim().trim_start_matches(['>', ' ']);
    if bare.starts_with('|') && bare.matches('|').count() > 2 {
        return (Form::Row, bare);
    }
    if let Some(rest) = bare.strip_prefix('#') {
        return (Form::Heading, rest.trim_start_matches(['#', ' ']));
    }
    let digits = bare.chars().take_while(char::is_ascii_digit).count();
    if let Some(rest) = bare.get(digits..)
        && (1..=2).contains(&digits)
        && let Some(rest) = rest.strip_prefix(['.', ')'])
        && rest.starts_with(' ')
    {
        let number = bare[..digits].parse().unwrap_or(0);
        return (Form::Numbered(number), rest.trim_start());
    }
    if let Some(rest) = bare
        .strip_prefix(['-', '*', '+', '•', '–', '🔹', '▪', '◦'])
        .and_then(|rest| rest.strip_prefix(' '))
    {
        return (Form::Bullet, rest.trim_start());
    }
    match bare.starts_with("**") || bare.starts_with("__") {
        true => (Form::Bold, bare),
        false => (Form::Plain, bare),
    }
}

/// Splits a line into sentences.
fn parts(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut from = 0;
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        let next = line.get(end..).and_then(|t| t.chars().next());
        let ends = match c {
            '.' => {
                next.is_none_or(|n| n.is_whitespace() || matches!(n, '*' | '"' | ')' | '_'))
                    && !is_abbreviation(&line[from..at], &line[end..])
            }
            '!' | '?' => {
                next.is_none_or(|n| n.is_whitespace() || matches!(n, '*' | '"' | ')' | '_'))
            }
            '…' => next.is_none_or(char::is_whitespace),
            '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            out.push(line[from..end].trim().to_owned());
            from = end;
        }
    }
    out.push(line[from..].trim().to_owned());
    out
}

/// Returns whether a period belongs to an abbreviation, or follows a number or letter that begins an item.
fn is_abbreviation(before: &str, behind: &str) -> bool {
    let word = before
        .rsplit(|c: char| c.is_whitespace() || c == '(')
        .next()
        .unwrap_or_default();
    let plain = word.trim_matches(|c: char| !c.is_alphanumeric());
    if before.trim().chars().count() <= 1 {
        return true;
    }
    let lower = plain.to_lowercase();
    let numbered = behind
        .trim_start()
        .starts_with(|c: char| c.is_ascii_digit());
    // `at 9 a.m. it is cold`, `am 18. Januar`
    let next = behind.trim_start();
    let half = ["a.m", "p.m"].contains(&lower.as_str()) && next.starts_with(char::is_lowercase);
    let day = plain.len() <= 2 && plain.bytes().all(|b| b.is_ascii_digit()) && {
        let word = next.split(|c: char| !c.is_alphabetic()).next();
        super::amount_words::MONTHS.contains(&word.unwrap_or_default().to_lowercase().as_str())
    };
    half || day
        || cues::ABBREVIATIONS.contains(&lower.as_str())
        || numbered && cues::NUMBERED.contains(&lower.as_str())
}

/// Splits a sentence into clauses.
pub(super) fn clauses(text: &str) -> Vec<Clause> {
    let mut out: Vec<Clause> = Vec::new();
    let mut cuts: Vec<(usize, usize, Before)> = vec![(0, 0, Before::Start)];
    let mut depth = 0usize;
    let mut depths = vec![0usize];
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let next = text.get(end..).and_then(|t| t.chars().next());
        let digits = before.is_ascii_digit() && next.is_some_and(|n| n.is_ascii_digit());
        let spaced = before.is_whitespace() || next.is_some_and(char::is_whitespace);
        let mark = match c {
            ',' if !digits => Some(Before::Comma),
            '，' => Some(Before::Comma),
            ';' | '；' => Some(Before::Semicolon),
            // `1500 : 6 = 250`: a division.
            ':' if text[..at]
                .trim_end()
                .ends_with(|c: char| c.is_ascii_digit())
                && text[end..]
                    .trim_start()
                    .starts_with(|c: char| c.is_ascii_digit())
                && text[end..].contains('=') =>
            {
                None
            }
            ':' if !digits => Some(Before::Colon),
            '：' | '—' | '→' | '⇒' | '⟹' | '∴' | '➜' | '➡' => Some(Before::Colon),
            '–' | '-' if spaced && before.is_whitespace() => Some(Before::Colon),
            '=' if next == Some('>') => Some(Before::Colon),
            '>' if before == '-' || before == '=' => Some(Before::Colon),
            '(' | '（' => {
                depth += 1;
                Some(Before::Bracket)
            }
            ')' | '）' => {
                depth = depth.saturating_sub(1);
                Some(Before::Comma)
            }
            '.' | '…' if next.is_some_and(char::is_whitespace) => Some(Before::Semicolon),
            _ => None,
        };
        if let Some(mark) = mark {
            cuts.push((at, end, mark));
            depths.push(depth);
        }
        before = c;
    }
    for (n, (_, from, mark)) in cuts.iter().enumerate() {
        let to = cuts.get(n + 1).map_or(text.len(), |(at, ..)| *at);
        split_at_words(text, *from, to, *mark, depths[n] > 0, &mut out);
    }
    for at in 0..out.len() {
        out[at].role = role_of(&out[at].lower);
        // `only` is before the split, `if` after it.
        if let Some(next) = out.get(at + 1)
            && next.before == Before::Word
        {
            let head: String = next.lower.chars().take(20).collect();
            let only = [
                "only if",
                "only when",
                "nur wenn",
                "solo si",
                "seulement si",
            ];
            if only.iter().any(|w| head.starts_with(w))
                || cues::has(&format!("{} {head}", out[at].lower), cues::ONLY)
            {
                out[at].role = Role::Condition;
            }
        }
    }
    out
}

/// Splits at words that begin a clause without punctuation.
fn split_at_words(
    text: &str,
    from: usize,
    to: usize,
    mark: Before,
    in_brackets: bool,
    out: &mut Vec<Clause>,
) {
    let piece = &text[from..to];
    let folded = super::folded::Folded::new(piece);
    let mut openers: Vec<std::ops::Range<usize>> = match keeps_places(piece) {
        true => cues::places(folded.lower(), cues::OPENERS)
            .map(|(start, end)| start..end)
            .collect(),
        false => cues::OPENERS
            .iter()
            .flat_map(|word| folded.words(word))
            .collect(),
    };
    // `… both make mistakes so C`: an option, blanked out, follows.
    openers.extend(folded.words("so").filter(|range| {
        let rest = piece[range.end..].trim();
        !rest.is_empty() && rest.chars().all(|c| c == 'x')
    }));
    openers.sort_unstable_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    // The `if` inside `only if` does not begin a clause.
    let mut places: Vec<usize> = Vec::new();
    let mut covered = 0;
    for range in openers {
        if range.start >= covered {
            covered = range.end;
            if piece[..range.start].chars().any(char::is_alphanumeric) {
                places.push(range.start);
            }
        }
    }
    let mut start = 0;
    let mut before = mark;
    for end in places.into_iter().chain([piece.len()]) {
        let part = &piece[start..end];
        if part.chars().any(char::is_alphanumeric) || part.contains(['✅', '❌', '✗', '✓', '✔'])
        {
            out.push(Clause {
                start: from + start + part.len() - part.trim_start().len(),
                end: from + end,
                lower: part.trim().to_lowercase().replace('’', "'"),
                before,
                in_brackets,
                role: Role::Claim,
            });
            before = Before::Word;
        }
        start = end;
    }
}

/// Returns whether every letter of a text keeps its byte length in lower case.
fn keeps_places(text: &str) -> bool {
    let length = |c: char| c.to_lowercase().map(char::len_utf8).sum::<usize>();
    text.is_ascii() || text.chars().all(|c| length(c) == c.len_utf8())
}

fn role_of(lower: &str) -> Role {
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let starts = |words: &'static [&'static str]| words.iter().any(|word| begins(bare, word));
    if starts(cues::STILL_CHOOSES) {
        return Role::Claim;
    }
    if starts(cues::CONCESSIONS) || cues::has(lower, cues::CONCEDING) {
        return Role::Concession;
    }
    // English: `falls short` is not a German condition.
    const FALLS: &[&str] = &[
        "falls short",
        "falls apart",
        "falls behind",
        "falls back",
        "falls flat",
        "falls down",
        "falls over",
    ];
    if FALLS.iter().any(|words| begins(bare, words)) {
        return Role::Claim;
    }
    if begins(bare, "si no") && bare.split_whitespace().count() <= 4 {
        return Role::Otherwise;
    }
    if starts(cues::CONDITIONS) || cues::has(lower, cues::ONLY) {
        return Role::Condition;
    }
    if cues::has(lower, cues::OTHERWISE) {
        return Role::Otherwise;
    }
    if cues::has(lower, cues::BEFORE)
        || (cues::has(lower, cues::OTHERS) || starts(cues::OTHERS_FIRST))
            && (!cues::has(lower, cues::OWN) || starts(cues::OTHERS_FIRST))
            && !starts(cues::CONTRASTS)
    {
        return Role::Report;
    }
    const NO_CONCLUSION: &[&str] = &[
        "so is", "so are", "so does", "so do", "so would", "so far", "so that", "so as",
    ];
    // `given` alone concludes: `Given the deadline, B.`
    const GIVEN: &[&str] = &[
        "given that",
        "étant donné que",
        "dado que",
        "vu que",
        "visto que",
        "鉴于",
        "既然",
    ];
    if starts(GIVEN) {
        return Role::Reason;
    }
    if starts(cues::CONCLUSIONS) && !starts(NO_CONCLUSION) {
        return Role::Conclusion;
    }
    if starts(cues::CONTRASTS) {
        return Role::Contrast;
    }
    match starts(cues::REASONS) {
        true => Role::Reason,
        false => Role::Claim,
    }
}

/// Returns whether a text begins with this whole word.
pub(super) fn begins(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| {
        word.chars().any(is_han) || word.ends_with(' ') || !rest.starts_with(char::is_alphabetic)
    })
}
