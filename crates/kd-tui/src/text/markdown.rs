//! Markdown for a terminal. Takes a model's text (untrusted: sanitized first) and a width; returns lines of at most
//! that width, styled if styles are on, readable if they are off. HTML stays text; links show their target.

use super::clean;
use super::highlight;
use super::style::Styles;
use super::table::{self, Cell};
use super::wrap::{Line, Span, line_width, wrap_spans};
use anstyle::{AnsiColor, Style};
use kd_core::markdown::bounded;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The supported Markdown extensions.
pub(super) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// The background of code: a role, which a theme gives a color. Nothing else has a background.
pub const CODE_GROUND: Style = Style::new().bg_color(Some(anstyle::Color::Ansi(AnsiColor::Black)));
/// Columns before a line of code.
const INDENT_COLUMNS: usize = 4;
/// The beginning of a line of code.
const INDENT: &str = "   ";
/// The beginning of a line that continues a line of code, instead of the indentation.
const GOES_ON: &str = " ↪ ";
const GOES_ON_ASCII: &str = " > ";

/// Returns the columns before the text of a line of code, or of one that continues it; zero for other lines.
pub(crate) fn indented(line: &[Span]) -> usize {
    let is_mark = |span: &Span| [INDENT, GOES_ON, GOES_ON_ASCII].contains(&span.text.as_str());
    match line
        .windows(2)
        .position(|two| is_mark(&two[0]) && two[1] == Span::new(CODE_GROUND, " "))
    {
        Some(at) => line_width(&line[..at + 2]),
        None => 0,
    }
}

/// Maximum bytes of a text to lay out; far more than anyone reads on a terminal.
pub const SHOWN_BYTES_MAX: usize = 512 << 10;

/// Renders Markdown into lines of at most `columns`.
pub fn render(foreign: &str, columns: usize, styles: Styles) -> Vec<String> {
    lines(foreign, columns, styles)
        .iter()
        .map(|line| paint(line, styles))
        .collect()
}

/// Like [`render`], before conversion to escape sequences.
pub fn lines(foreign: &str, columns: usize, styles: Styles) -> Vec<Line> {
    let (shown, left) = shown_part(foreign);
    let mut lines = lines_of(&clean::text(shown), columns, styles);
    lines.extend(left_out(left, styles));
    lines
}

/// Returns the part of a text to lay out, up to the end of a line, and how many bytes are left out: layout must not
/// delay keys, whatever a member wrote.
pub(super) fn shown_part(text: &str) -> (&str, usize) {
    if text.len() <= SHOWN_BYTES_MAX {
        return (text, 0);
    }
    let mut end = SHOWN_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
    (&text[..end], text.len() - end)
}

/// Returns the line that replaces the omitted part; `None` if everything is shown.
pub(super) fn left_out(bytes: usize, styles: Styles) -> Option<Line> {
    let mib = bytes as f64 / f64::from(1 << 20);
    let dots = styles.glyph("…", "...");
    (bytes > 0).then(|| {
        let words = format!("{dots} {mib:.1} MiB more: `kd export` writes all of it");
        vec![Span::new(Style::new().dimmed(), words)]
    })
}

/// Renders sanitized text.
pub(super) fn lines_of(text: &str, columns: usize, styles: Styles) -> Vec<Line> {
    let mut renderer = Renderer::new(columns.max(8), styles);
    let text = bounded(text);
    for (event, range) in Parser::new_ext(&text, OPTIONS).into_offset_iter() {
        let signs = match event {
            Event::Start(Tag::Emphasis) | Event::End(TagEnd::Emphasis) => "*",
            Event::Start(Tag::Strong) | Event::End(TagEnd::Strong) => "**",
            _ => "",
        };
        match !signs.is_empty() && begins_in_word(&text, range.start) {
            true => renderer.say(signs),
            false => renderer.event(event),
        }
    }
    renderer.flush();
    renderer.lines
}

/// Returns whether emphasis markers begin inside a word, as in `17*20 and 2*3`: there they are part of the text.
fn begins_in_word(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    before.is_some_and(|c| c.is_ascii_alphanumeric())
}

fn paint(line: &[Span], styles: Styles) -> String {
    let painted: String = line
        .iter()
        .map(|s| styles.paint(s.style, &s.text))
        .collect();
    painted.trim_end().to_owned()
}

/// The prefix that a list item, quote or list puts before its lines.
struct Container {
    /// The prefix of its first line, until written.
    first: Option<Line>,
    /// The prefix of every other line.
    rest: Line,
}

struct TableRows {
    aligns: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
}

struct Renderer {
    columns: usize,
    styles: Styles,
    lines: Vec<Line>,
    containers: Vec<Container>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    style: Vec<Style>,
    inline: Vec<Span>,
    link: Vec<(String, usize)>,
    /// The language and text of an open code block.
    code: Option<(String, String)>,
    table: Option<TableRows>,
    /// Whether a block has ended: a blank line comes before the next.
    gap: bool,
}

impl Renderer {
    fn new(columns: usize, styles: Styles) -> Self {
        Self {
            columns,
            styles,
            lines: Vec::new(),
            containers: Vec::new(),
            lists: Vec::new(),
            style: vec![Style::new()],
            inline: Vec::new(),
            link: Vec::new(),
            code: None,
            table: None,
            gap: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.say(&text),
            },
            Event::Code(text) => self.inline_code(&text),
            Event::Html(text) | Event::InlineHtml(text) => self.raw(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.raw(&text),
            Event::SoftBreak => self.say(" "),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.block();
                let room = self.room();
                let rule = self.styles.glyph("─", "-").repeat(room.min(40));
                self.emit(vec![Span::new(Style::new().dimmed(), rule)]);
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.say(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.say(&format!("[{name}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                let style = match level {
                    HeadingLevel::H1 => Style::new().bold().underline(),
                    _ => Style::new().bold(),
                };
                self.style.push(style);
                if !self.styles.color {
                    self.say(&format!("{} ", "#".repeat(level as usize)));
                }
            }
            Tag::BlockQuote(_) => {
                self.block();
                let bar = Span::new(Style::new().dimmed(), self.styles.glyph("│ ", "> "));
                self.contain(Container {
                    first: None,
                    rest: vec![bar],
                });
            }
            Tag::CodeBlock(kind) => {
                self.block();
                let mut language = String::new();
                if let CodeBlockKind::Fenced(info) = kind {
                    language = clean::line(&info);
                    if !language.is_empty() {
                        self.emit(vec![Span::new(
                            Style::new().dimmed(),
                            format!("  [{language}]"),
                        )]);
                    }
                }
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.block();
                }
                self.gap = false;
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                self.gap = false;
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let bullet = format!("{number}. ");
                        *number += 1;
                        bullet
                    }
                    _ => format!("{} ", self.styles.glyph("•", "-")),
                };
                let indent = " ".repeat(super::wrap::width(&bullet));
                self.contain(Container {
                    first: Some(vec![Span::new(Style::new().bold(), bullet)]),
                    rest: vec![Span::plain(indent)],
                });
            }
            Tag::Table(aligns) => {
                self.block();
                self.table = Some(TableRows {
                    aligns,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead => {
                self.style.push(Style::new().bold());
                self.row();
            }
            Tag::TableRow => self.row(),
            Tag::TableCell => self.inline.clear(),
            Tag::Emphasis => self.push_style(|s| s.italic()),
            Tag::Strong => self.push_style(|s| s.bold()),
            Tag::Strikethrough => self.push_style(|s| s.strikethrough()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link.push((dest_url.into_string(), self.inline.len()));
                self.push_style(|s| s.underline());
            }
            _ => self.block(),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.end_block();
                self.style.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                let (language, code) = self.code.take().unwrap_or_default();
                self.code_block(&language, &code);
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                // An empty item still shows its bullet.
                if self.containers.last().is_some_and(|c| c.first.is_some()) {
                    self.emit(Line::new());
                }
                self.containers.pop();
            }
            TagEnd::TableHead => {
                self.style.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|t| t.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let room = self.room();
                    for line in table::layout(&table.rows, &table.aligns, room, self.styles.unicode)
                    {
                        self.emit(line);
                    }
                }
                self.gap = true;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.style.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.style.pop();
                if let Some((url, from)) = self.link.pop() {
                    let url = clean::line(&url);
                    let mail = url.strip_prefix("mailto:").unwrap_or(&url);
                    let shown = &self.inline[from.min(self.inline.len())..];
                    if !url.is_empty() && !says(shown, &url) && !says(shown, mail) {
                        self.say(&format!(" ({url})"));
                    }
                }
            }
            TagEnd::TableRow => {}
            _ => self.end_block(),
        }
    }

    /// Returns the columns left inside the open containers. However deep they nest, half of the width stays for text.
    fn room(&self) -> usize {
        let taken: usize = self
            .containers
            .iter()
            .map(|c| super::wrap::line_width(&c.rest))
            .sum();
        self.columns.saturating_sub(taken).max(1)
    }

    /// Opens a container, unless it would leave too little space: then its content is not indented further.
    fn contain(&mut self, container: Container) {
        let taken = super::wrap::line_width(&container.rest);
        let fits = self.room().saturating_sub(taken) >= self.columns / 2;
        self.containers.push(if fits {
            container
        } else {
            Container {
                first: None,
                rest: Line::new(),
            }
        });
    }

    /// Starts a new block.
    fn block(&mut self) {
        self.flush();
        let fresh = self.containers.last().is_some_and(|c| c.first.is_some());
        if self.gap && !fresh && !self.lines.is_empty() {
            let blank = self
                .containers
                .iter()
                .flat_map(|c| c.rest.clone())
                .collect();
            self.lines.push(blank);
        }
        self.gap = false;
    }

    fn end_block(&mut self) {
        self.flush();
        self.gap = true;
    }

    fn push_style(&mut self, change: fn(Style) -> Style) {
        let top = self.style.last().copied().unwrap_or_default();
        self.style.push(change(top));
    }

    fn row(&mut self) {
        if let Some(table) = &mut self.table {
            table.rows.push(Vec::new());
        }
    }

    fn say(&mut self, text: &str) {
        let style = self.style.last().copied().unwrap_or_default();
        self.inline.push(Span::new(style, text.replace('\n', " ")));
    }

    fn inline_code(&mut self, text: &str) {
        let style = self.style.last().copied().unwrap_or_default();
        let style = style.fg_color(Some(AnsiColor::Cyan.into()));
        let text = if self.styles.color {
            text.to_owned()
        } else {
            format!("`{text}`")
        };
        self.inline.push(Span::new(style, text.replace('\n', " ")));
    }

    /// Writes text that keeps its line breaks.
    fn raw(&mut self, text: &str) {
        let mut lines = text.split('\n').peekable();
        while let Some(line) = lines.next() {
            if !line.is_empty() {
                self.say(line);
            }
            if lines.peek().is_some() {
                self.flush();
            }
        }
    }

    fn code_block(&mut self, language: &str, code: &str) {
        let room = self.room().saturating_sub(INDENT_COLUMNS).max(1);
        let mut state = highlight::State::new(language);
        for line in code.trim_end_matches('\n').split('\n') {
            // Blanks at its end make no line of their own.
            let line = line.trim_end_matches([' ', '\t']);
            // Code is cut at the line width, not between words: spaces count.
            for (i, piece) in hard_wrap(&state.line(line), room).into_iter().enumerate() {
                let indent = match i {
                    0 => Span::plain(INDENT),
                    _ => Span::new(
                        Style::new().dimmed(),
                        self.styles.glyph(GOES_ON, GOES_ON_ASCII),
                    ),
                };
                let mut indented = vec![indent, Span::new(CODE_GROUND, " ")];
                indented.extend(piece.into_iter().map(|span| Span {
                    style: span.style.bg_color(CODE_GROUND.get_bg_color()),
                    ..span
                }));
                self.emit(indented);
            }
        }
    }

    /// Writes the collected text as one wrapped paragraph.
    fn flush(&mut self) {
        if self.table.is_some() {
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        if inline.iter().all(|s| s.text.trim().is_empty()) {
            return;
        }
        for line in wrap_spans(&inline, self.room()) {
            self.emit(line);
        }
    }

    fn emit(&mut self, content: Line) {
        let mut line = Line::new();
        for container in &mut self.containers {
            line.extend(
                container
                    .first
                    .take()
                    .unwrap_or_else(|| container.rest.clone()),
            );
        }
        line.extend(content);
        self.lines.push(line);
    }
}

/// Returns whether spans contain exactly this text. Images nest, so no more is read than can be equal.
fn says(spans: &[Span], text: &str) -> bool {
    let mut rest = Some(text);
    for span in spans {
        rest = rest.and_then(|rest| rest.strip_prefix(span.text.as_str()));
        if rest.is_none() {
            return false;
        }
    }
    rest == Some("")
}

/// Cuts a line every `columns`, including spaces.
fn hard_wrap(line: &[Span], columns: usize) -> Vec<Line> {
    use unicode_segmentation::UnicodeSegmentation;
    let mut pieces = vec![Line::new()];
    let mut used = 0;
    for span in line {
        let mut text = String::new();
        for g in span.text.graphemes(true) {
            let w = super::wrap::width(g);
            if used > 0 && used + w > columns {
                if let Some(last) = pieces.last_mut() {
                    let mut piece = Span::new(span.style, std::mem::take(&mut text));
                    piece.cut = true;
                    last.push(piece);
                }
                pieces.push(Line::new());
                used = 0;
            }
            text.push_str(g);
            used += w;
        }
        if let Some(last) = pieces.last_mut() {
            last.push(Span::new(span.style, text));
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::wrap::width;

    const SAMPLE: &str = include_str!("../../tests/data/answer.md");

    fn plain(text: &str, columns: usize) -> String {
        render(text, columns, Styles::NONE).join("\n")
    }

    #[test]
    fn everything_at_three_widths() {
        for columns in [40, 80, 140] {
            let text = plain(SAMPLE, columns);
            for line in text.lines() {
                assert!(width(line) <= columns, "{columns}: {line:?}");
            }
            insta::assert_snapshot!(format!("markdown-{columns}"), text);
        }
    }

    #[test]
    fn products_and_powers_keep_their_signs() {
        for (text, shown) in [
            ("17*20 is 340 and 17*3 is 51", "17*20 is 340 and 17*3 is 51"),
            ("2**10 + 3**4", "2**10 + 3**4"),
            ("a*b + c*d, *so* it is", "a*b + c*d, so it is"),
            (
                "**API**s, *one*-two, 重要**です**。",
                "APIs, one-two, 重要です。",
            ),
            ("***all*** (*x*)", "all (x)"),
        ] {
            assert_eq!(plain(text, 80).trim_end(), shown);
        }
    }

    #[test]
    fn the_work_for_one_text_has_a_bound() {
        let rows = ["a\n\n", "| a | b |\n", "> ", "- x\n", "é", "```\n"];
        for row in rows {
            let most = |bytes: usize| {
                let text = row.repeat(bytes / row.len());
                let once = lines(&text, 80, Styles::NONE);
                let mut growing = super::super::growing::Growing::default();
                let half = text.len() / 2 / row.len() * row.len();
                growing.lines(&text[..half], 80, Styles::NONE);
                let grown = growing.lines(&text, 80, Styles::NONE).to_vec();
                (once, grown)
            };
            let ((small, _), (large, grown)) = (most(SHOWN_BYTES_MAX), most(4 << 20));
            for lines in [&large, &grown] {
                assert!(lines.len() <= small.len() + 4, "{row:?}: {}", lines.len());
                let last = &lines[lines.len() - 1][0].text;
                assert!(last.contains("3.5 MiB more"), "{row:?}: {last}");
            }
            assert!(
                !small
                    .iter()
                    .flatten()
                    .any(|span| span.text.contains("more:"))
            );
        }
    }

    #[test]
    fn an_entity_commands_no_terminal() {
        let text = "&#27;[2J &#x9b;2J &#8238;b [x](http://h/&#27;c) ![&#27;]8;;](u) <b title=\"&#27;\">\n\n| &#27;c |\n|---|\n| &#155; |\n\n# &#x1b;]0;t&#7;";
        for columns in [8, 80] {
            for line in lines(text, columns, Styles::NONE) {
                let said: String = line.iter().map(|span| span.text.as_str()).collect();
                assert!(!said.chars().any(clean::is_unsafe), "{said:?}");
            }
        }
    }

    #[test]
    fn styles_are_escapes_of_ours_only() {
        let styles = Styles {
            color: true,
            unicode: true,
        };
        let text = render(
            "# Head\n\n**bold** *lean* `code` \u{1b}[31mred\u{1b}[0m",
            40,
            styles,
        )
        .join("\n");
        insta::assert_snapshot!("markdown-styled", text.replace('\u{1b}', "<ESC>"));
    }

    #[test]
    fn no_input_exceeds_the_width_or_loses_its_words() {
        let deep = "> ".repeat(60) + "deep";
        let bullets: String = (0..40)
            .map(|i| format!("{}- level{i}\n", "  ".repeat(i)))
            .collect();
        let table = "| a | b | c | d | e | f | g | h |\n|-|-|-|-|-|-|-|-|\n| 1111111111 | 2 | 3 | 4 | 5 | 6 | 7 | 8888888888 |";
        for (text, word) in [
            (deep.as_str(), "deep"),
            (&bullets, "level39"),
            (table, "8888888888"),
            ("<b>html</b>", "<b>"),
        ] {
            for columns in [20, 40, 80] {
                let out = plain(text, columns);
                assert!(out.contains(word), "{columns}: {out}");
                for line in out.lines() {
                    assert!(width(line) <= columns, "{columns}: {line:?}");
                }
            }
        }
    }
}
