//! Terminal columns: the width of a text and where it breaks. Wide characters count two, joined emoji are counted once.

use super::clean::is_unsafe;
use anstyle::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A piece of a line in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its style.
    pub style: Style,
    /// Its text, without newlines or control characters.
    pub text: String,
    /// Whether the line was broken inside a word, which continues at the beginning of the next line.
    pub cut: bool,
    /// Whether the line was broken here between two words.
    pub wraps: bool,
}

/// One line on the screen.
pub type Line = Vec<Span>;

impl Span {
    /// Creates a styled piece. Removes control characters, whatever their source: a Markdown entity can produce any
    /// character.
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        let mut text = text.into();
        let is_plain = text.bytes().all(|b| (b' '..0x7f).contains(&b));
        if !is_plain && text.chars().any(|c| c != '\t' && is_unsafe(c)) {
            text.retain(|c| c == '\t' || !is_unsafe(c));
        }
        Self {
            style,
            text,
            cut: false,
            wraps: false,
        }
    }

    /// Creates a piece without style.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(Style::new(), text)
    }
}

/// Returns the columns a text takes on one line.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(grapheme_width).sum()
}

/// Returns the columns a line takes.
pub fn line_width(line: &[Span]) -> usize {
    line.iter().map(|s| width(&s.text)).sum()
}

/// Cuts a text to at most `columns`, ending in `…` where something was cut.
pub fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for g in text.graphemes(true) {
        let w = grapheme_width(g);
        if used + w + 1 > columns {
            break;
        }
        out.push_str(g);
        used += w;
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// Cuts a line to at most `columns`, ending in `…` where something was cut.
pub fn clip_spans(line: &[Span], columns: usize) -> Line {
    if line_width(line) <= columns {
        return line.to_vec();
    }
    if columns == 0 {
        return Line::new();
    }
    let mut out = Line::new();
    let mut used = 0;
    for span in line {
        let length = width(&span.text);
        if used + length < columns {
            used += length;
            out.push(span.clone());
            continue;
        }
        // Cut here even if the text exactly fits: more follows.
        let mut text = clip(&format!("{}  ", span.text), columns - used);
        text.truncate(text.trim_end_matches('…').trim_end().len());
        out.push(Span::new(span.style, text + "…"));
        break;
    }
    out
}

/// Maximum width of prose, in columns: wider lines are hard to read.
pub const PROSE_COLUMNS_MAX: usize = 100;

/// Wraps one line of text (without newlines) into lines of at most `columns`.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrap_spans(&[Span::plain(text)], columns)
        .into_iter()
        .map(|line| line.into_iter().map(|s| s.text).collect())
        .collect()
}

/// Wraps one line of prose between its words, never inside one: a path or an address longer than a line stays whole, so
/// that it can be copied. So does code in backticks, where it fits on a line. Later lines are indented by `hang`.
pub fn fold(text: &str, columns: usize, hang: usize) -> Vec<String> {
    if width(text) <= columns {
        return vec![text.to_owned()];
    }
    let indent = text.len() - text.trim_start().len();
    let mut lines = Vec::new();
    let mut line = text[..indent].to_owned();
    let mut is_empty = true;
    let room = columns.saturating_sub(hang);
    for word in words(&text[indent..], room) {
        if !is_empty && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::replace(&mut line, " ".repeat(hang)));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines
}

/// Splits at single spaces, but not inside backticks that take at most `room` columns. Several spaces are part of a name.
fn words(text: &str, room: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut code) = (0, None);
    for (at, c) in text.char_indices() {
        match (c, code) {
            ('`', None) => {
                code = text[at + 1..]
                    .find('`')
                    .map(|end| at + 1 + end)
                    .filter(|end| width(&text[at..=*end]) <= room)
            }
            (_, Some(end)) if at >= end => code = None,
            (' ', None) if !text[..at].ends_with(' ') && !text[at + 1..].starts_with(' ') => {
                words.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&text[start..]);
    words.retain(|word| !word.is_empty());
    words
}

/// Wraps spans into lines of at most `columns`: at spaces and around wide characters; inside a word only when it is
/// longer than a line. Leading spaces stay on the first line; spaces at a break are dropped. A column too narrow for a
/// wide character still gets it: no text is lost.
pub fn wrap_spans(spans: &[Span], columns: usize) -> Vec<Line> {
    let columns = columns.max(1);
    let mut wrapper = Wrapper::new(columns);
    let mut word: Vec<(Style, &str)> = Vec::new();
    for span in spans {
        for g in span.text.graphemes(true) {
            let blank = g.chars().all(char::is_whitespace);
            let wide = grapheme_width(g) == 2;
            if blank || wide {
                wrapper.word(&word);
                word.clear();
            }
            if blank {
                wrapper.blank(span.style, g);
            } else if wide {
                wrapper.word(&[(span.style, g)]);
            } else {
                word.push((span.style, g));
            }
        }
    }
    wrapper.word(&word);
    wrapper.end()
}

struct Wrapper {
    columns: usize,
    lines: Vec<Line>,
    line: Line,
    used: usize,
    /// Spaces before the next word, if it still fits.
    blanks: Vec<(Style, String)>,
    started: bool,
}

impl Wrapper {
    fn new(columns: usize) -> Self {
        Self {
            columns,
            lines: Vec::new(),
            line: Line::new(),
            used: 0,
            blanks: Vec::new(),
            started: false,
        }
    }

    fn blank(&mut self, style: Style, g: &str) {
        if self.line.is_empty() && self.started {
            return;
        }
        self.blanks.push((style, g.to_owned()));
    }

    fn word(&mut self, word: &[(Style, &str)]) {
        if word.is_empty() {
            return;
        }
        let blanks: usize = self.blanks.iter().map(|(_, b)| width(b)).sum();
        let length: usize = word.iter().map(|(_, g)| grapheme_width(g)).sum();
        if self.used + blanks + length <= self.columns {
            for (style, blank) in std::mem::take(&mut self.blanks) {
                self.push(style, &blank);
            }
        } else {
            let cut = self.blanks.is_empty();
            self.blanks.clear();
            if self.used > 0 {
                self.break_line(cut, !cut);
            }
        }
        for (style, g) in word {
            let w = grapheme_width(g);
            if self.used > 0 && self.used + w > self.columns {
                self.break_line(true, false);
            }
            self.push(*style, g);
        }
    }

    fn push(&mut self, style: Style, text: &str) {
        self.started = true;
        self.used += width(text);
        match self.line.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.line.push(Span::new(style, text)),
        }
    }

    fn break_line(&mut self, cut: bool, wraps: bool) {
        if let Some(last) = self.line.last_mut() {
            (last.cut, last.wraps) = (cut, wraps);
        }
        self.lines.push(std::mem::take(&mut self.line));
        self.used = 0;
    }

    fn end(mut self) -> Vec<Line> {
        if !self.line.is_empty() || self.lines.is_empty() {
            self.break_line(false, false);
        }
        self.lines
    }
}

/// Returns the width of a grapheme: at most two columns on known terminals, whatever its parts.
fn grapheme_width(g: &str) -> usize {
    UnicodeWidthStr::width(g).min(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_span_holds_what_a_terminal_obeys() {
        let text = "a\u{1b}[2J\u{9b}2J\r\n\u{202e}b\u{2028}c\u{e0041}\t\u{7f}d";
        assert_eq!(Span::plain(text).text, "a[2J2Jbc\td");
        assert_eq!(
            Span::plain("plain é 👩\u{200d}🌾").text,
            "plain é 👩\u{200d}🌾"
        );
    }

    #[test]
    fn widths_follow_the_terminal() {
        for (text, columns) in [
            ("abc", 3),
            ("日本語", 6),
            ("e\u{301}", 1),
            ("👩‍👩‍👧", 2),
            ("❤️", 2),
            ("", 0),
        ] {
            assert_eq!(width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn lines_break_between_words_and_never_exceed() {
        assert_eq!(
            wrap("the quick, brown fox", 10),
            ["the quick,", "brown fox"]
        );
        assert_eq!(
            wrap("  indented words here", 12),
            ["  indented", "words here"]
        );
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("日本語日本語", 5), ["日本", "語日", "本語"]);
        assert_eq!(wrap("", 5), [""]);
        let long = "word 日本語 👩‍👩‍👧👩‍👩‍👧 supercalifragilistic x ".repeat(20);
        let letters = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        for columns in 2..60 {
            let lines = wrap(&long, columns);
            for line in &lines {
                assert!(width(line) <= columns, "{columns}: {line:?}");
            }
            assert_eq!(letters(&lines.concat()), letters(&long), "nothing is lost");
        }
    }

    #[test]
    fn prose_breaks_between_words_only() {
        let path =
            "/a/long/path/of/a/file/that/is/longer/than/any/of/these/lines/config.local.json";
        let text = format!("a.b is set in {path}; `kd config show` lists all (see {path})");
        for columns in [1, 40, 60, 80, 200] {
            let lines = fold(&text, columns, 2);
            assert_eq!(
                lines.join(" ").split_whitespace().collect::<Vec<_>>(),
                text.split_whitespace().collect::<Vec<_>>()
            );
            for line in &lines {
                let is_word = line.split_whitespace().count() == 1;
                assert!(
                    width(line) <= columns || is_word || columns == 1,
                    "{columns}: {line:?}"
                );
            }
            let whole = lines.iter().any(|line| line.contains("`kd config show`"));
            assert!(whole || columns == 1, "{columns}: {lines:?}");
        }
        assert_eq!(fold("  one two three", 9, 4), ["  one two", "    three"]);
        assert_eq!(fold("", 9, 4), [""]);
        assert_eq!(fold("an ` odd one", 5, 0), ["an `", "odd", "one"]);
    }

    #[test]
    fn styles_do_not_break_words() {
        let bold = Style::new().bold();
        let spans = [
            Span::plain("see "),
            Span::new(bold, "this"),
            Span::plain(", then that"),
        ];
        let lines: Vec<String> = wrap_spans(&spans, 9)
            .iter()
            .map(|l| l.iter().map(|s| s.text.as_str()).collect())
            .collect();
        assert_eq!(lines, ["see this,", "then that"]);
    }

    #[test]
    fn clipping_says_so() {
        assert_eq!(clip("claude", 6), "claude");
        assert_eq!(clip("claude", 4), "cla…");
        assert_eq!(clip("日本語", 4), "日…");
    }
}
