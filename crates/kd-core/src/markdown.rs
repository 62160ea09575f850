//! Makes foreign Markdown safe inside our documents: limits nesting so that parsing stays fast, and embeds it so that
//! it cannot imitate the document's structure.
//!
//! Both hold for CommonMark and GitHub's extensions, as parsed by `pulldown-cmark`.

use crate::clean::clean_text;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};
use std::borrow::Cow;
use std::ops::Range;

/// Maximum nesting of quotes and lists on one line. Parsers take time quadratic in it.
pub const DEPTH_MAX: usize = 32;
/// Maximum columns of indentation: it nests lists too.
pub const INDENT_MAX: usize = 200;
/// Rounds of escaping before a text is shown as code: one round may uncover further markup.
const ROUNDS_MAX: usize = 6;
/// The lowest level of a heading.
const LOWEST: usize = 6;
/// Everything that may be structure in some dialect.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_YAML_STYLE_METADATA_BLOCKS)
    .union(Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS);

/// Escapes nesting deeper than [`DEPTH_MAX`] and cuts indentation wider than [`INDENT_MAX`].
pub fn bounded(text: &str) -> Cow<'_, str> {
    let fits = |line: &str| scan(line) == Scan::Fits;
    if text.lines().all(fits) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        match scan(line) {
            Scan::Fits => out.push_str(line),
            Scan::Deep(at) => {
                out.push_str(&line[..at]);
                out.push('\\');
                out.push_str(&line[at..]);
            }
            Scan::Wide(blank) => {
                out.push_str(&line[..blank.start]);
                out.push_str(&" ".repeat(INDENT_MAX));
                out.push_str(&line[blank.end..]);
            }
        }
    }
    Cow::Owned(out)
}

/// Maximum characters of an info string that is only the name of a language.
const LANGUAGE_CHARS: usize = 12;

/// A part of a text that a renderer of Markdown leaves out, although the text contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The part.
    pub text: String,
    /// Whether it is the info string of a code block, which some renderers show.
    pub is_info: bool,
}

/// Returns the parts of a text that rendering leaves out: definitions of links, titles of links, cells beyond the columns
/// of their table, and info strings of code that are not just a language. `options` are those of the renderer.
pub fn hidden_parts(text: &str, options: Options) -> Vec<Hidden> {
    let (mut shown, mut hidden): (Vec<Range<usize>>, Vec<(usize, Hidden)>) = Default::default();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { title, .. } | Tag::Image { title, .. }) => {
                if has_words(&title) {
                    let text = title.into_string();
                    let is_info = false;
                    hidden.push((range.start, Hidden { text, is_info }));
                }
                shown.push(range);
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let block = &text[range.clone()];
                let first = block.find('\n').unwrap_or(block.len());
                shown.push(range.start..range.start + first);
                if has_words(&info) && !is_language(&info) {
                    let text = info.into_string();
                    let is_info = true;
                    hidden.push((range.start, Hidden { text, is_info }));
                }
            }
            Event::Start(_) | Event::End(_) => {}
            _ => shown.push(range),
        }
    }
    shown.sort_by_key(|range| (range.start, range.end));
    let end = text.len();
    let mut at = 0;
    for range in shown.into_iter().chain(std::iter::once(end..end)) {
        let gap = text.get(at..range.start.max(at)).unwrap_or_default();
        let lines = gap.lines().map(str::trim).filter(|line| has_words(line));
        hidden.extend(lines.map(|line| {
            let text = line.to_owned();
            (
                at,
                Hidden {
                    text,
                    is_info: false,
                },
            )
        }));
        at = at.max(range.end);
    }
    hidden.sort_by_key(|(at, _)| *at);
    hidden.into_iter().map(|(_, part)| part).collect()
}

/// Returns whether a text is more than the signs and numbers of Markdown.
fn has_words(text: &str) -> bool {
    let is_sign = |c: char| c.is_ascii_punctuation() || c.is_ascii_digit() || c.is_whitespace();
    !text.chars().all(is_sign)
}

/// Returns whether an info string is just the name of a language.
fn is_language(info: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+#-_.".contains(c);
    info.chars().count() <= LANGUAGE_CHARS && info.chars().all(is_part)
}

/// A problem at the beginning of a line.
#[derive(Debug, PartialEq)]
enum Scan {
    Fits,
    /// The marker here nests too deep.
    Deep(usize),
    /// This indentation is too wide.
    Wide(Range<usize>),
}

fn scan(line: &str) -> Scan {
    let bytes = line.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(b'\n');
    let is_gap = |b: u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
    let (mut i, mut depth) = (0, 0);
    loop {
        let blank = i;
        while matches!(at(i), b' ' | b'\t') {
            i += 1;
        }
        if i - blank > INDENT_MAX && !is_gap(at(i)) {
            return Scan::Wide(blank..i);
        }
        let digits = (i..i + 9).take_while(|k| at(*k).is_ascii_digit()).count();
        let marker = match at(i) {
            b'>' => i,
            b'-' | b'+' | b'*' if is_gap(at(i + 1)) => i,
            _ if digits > 0
                && matches!(at(i + digits), b'.' | b')')
                && is_gap(at(i + digits + 1)) =>
            {
                i + digits
            }
            _ => return Scan::Fits,
        };
        depth += 1;
        if depth > DEPTH_MAX {
            return Scan::Deep(marker);
        }
        i = marker + 1;
    }
}

/// Removes tabs from the ends of lines. After a closing fence they mean nothing, but `pulldown-cmark` does not know that.
pub(crate) fn even_ends(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches('\n');
        out.push_str(bare.trim_end_matches([' ', '\t']));
        out.push_str(&line[bare.len()..]);
    }
    Cow::Owned(out)
}

/// Returns the line that ends the block in which a text ends, if a paragraph after an empty line would be in it: an open
/// code block, or an HTML block that empty lines do not end.
pub(crate) fn closing(text: &str) -> Option<String> {
    let text = bounded(text);
    let below = format!("{text}\n\nx");
    let open = Parser::new(&below)
        .into_offset_iter()
        .filter(|(_, range)| range.end >= below.len())
        .find_map(|(event, range)| match event {
            Event::Start(tag @ (Tag::CodeBlock(_) | Tag::HtmlBlock)) => Some((tag, range.start)),
            _ => None,
        });
    let (tag, start) = open?;
    let opening = below[start..].trim_start();
    Some(match tag {
        Tag::HtmlBlock => html_end(opening),
        _ => opening
            .chars()
            .take_while(|c| opening.starts_with(*c))
            .collect(),
    })
}

/// Returns the text that ends an HTML block with this beginning.
fn html_end(opening: &str) -> String {
    match opening.as_bytes() {
        [b'<', b'!', b'-', b'-', ..] => "-->".to_owned(),
        [b'<', b'?', ..] => "?>".to_owned(),
        [b'<', b'!', b'[', ..] => "]]>".to_owned(),
        [b'<', b'!', ..] => ">".to_owned(),
        _ => {
            let tag = opening
                .chars()
                .skip(1)
                .take_while(char::is_ascii_alphanumeric);
            format!("</{}>", tag.collect::<String>().to_ascii_lowercase())
        }
    }
}

/// Returns foreign Markdown for a place below headings of `level` levels: its headings start below them and skip no
/// level, HTML and images become text, definitions and rules that reach beyond it are escaped, and open blocks are closed. If that
/// fails, the text is shown as a code block.
pub fn embed(foreign: &str, level: usize) -> String {
    let clean = clean_text(foreign);
    let mut text = bounded(&clean).into_owned();
    for _ in 0..ROUNDS_MAX {
        let edits = edits(&text, level);
        if edits.is_empty() {
            break;
        }
        apply(&mut text, edits);
    }
    if !text.ends_with('\n') && !text.is_empty() {
        text.push('\n');
    }
    if is_contained(&text, level) {
        return text;
    }
    fenced(&clean)
}

/// Returns a header value or title on one line, with markup escaped.
pub fn escape_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '#' | '!' => line.extend(['\\', c]),
            c if c.is_control() => line.push(' '),
            c => line.push(c),
        }
    }
    line
}

/// Returns a foreign text as a code span on one line: nothing in it is markup.
pub fn code_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    match line.starts_with('`') || line.ends_with('`') {
        true => format!("{fence} {line} {fence}"),
        false => format!("{fence}{line}{fence}"),
    }
}

/// A replacement.
struct Edit {
    range: Range<usize>,
    with: String,
}

impl Edit {
    /// Inserts a backslash before a character.
    fn escape(at: usize) -> Self {
        Self {
            range: at..at,
            with: "\\".into(),
        }
    }
}

/// Applies the edits; of two at the same position the first, the other is left for the next round.
fn apply(text: &mut String, mut edits: Vec<Edit>) {
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut out = String::with_capacity(text.len() + edits.len() * 2);
    let (mut done, mut last) = (0, None);
    for edit in edits {
        if edit.range.start < done || last == Some(edit.range.start) {
            continue;
        }
        last = Some(edit.range.start);
        out.push_str(&text[done..edit.range.start]);
        out.push_str(&edit.with);
        done = edit.range.end;
    }
    out.push_str(&text[done..]);
    *text = out;
}

/// Returns the edits that a text needs, or none if nothing reaches beyond it. Headings keep their order.
fn edits(text: &str, level: usize) -> Vec<Edit> {
    let parser = Parser::new_ext(text, OPTIONS).into_offset_iter();
    let definitions = parser.reference_definitions().iter();
    let mut edits: Vec<Edit> = definitions
        .map(|(_, definition)| Edit::escape(bracket(text, &definition.span)))
        .collect();
    let mut depth = 0usize;
    // The levels of the headings above, each below the one before it.
    let mut above: Vec<usize> = Vec::new();
    for (event, range) in parser {
        match event {
            Event::Start(Tag::Heading { level: own, .. }) => {
                let own = own as usize;
                let kept = above.iter().take_while(|upper| **upper < own).count();
                above.truncate(kept);
                above.push(own);
                let new = (level + above.len()).min(LOWEST);
                edits.extend((own != new).then(|| lowered(text, &range, new, depth == 0)));
                depth += 1;
            }
            Event::Start(tag) => {
                edits.extend(tag_edit(text, &tag, range, depth));
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            Event::Html(_) | Event::InlineHtml(_) => {
                let signs = text[range.clone()].match_indices('<');
                edits.extend(signs.map(|(i, _)| Edit::escape(range.start + i)));
            }
            Event::Rule if text[range.clone()].starts_with('-') => {
                let line = text[range.clone()].trim_end();
                edits.push(Edit {
                    range: range.start..range.start + line.len(),
                    with: "***".into(),
                });
            }
            _ => {}
        }
    }
    edits
}

fn tag_edit(text: &str, tag: &Tag<'_>, range: Range<usize>, depth: usize) -> Option<Edit> {
    match tag {
        Tag::Image { .. } | Tag::MetadataBlock(_) => Some(Edit::escape(range.start)),
        Tag::Link { dest_url, .. } => (!is_safe(dest_url)).then(|| Edit::escape(range.start)),
        Tag::FootnoteDefinition(_) => Some(Edit::escape(bracket(text, &range))),
        Tag::CodeBlock(CodeBlockKind::Fenced(_)) if depth == 0 => closed(text, &range),
        _ => None,
    }
}

/// Lowers a heading. Underlined ones become `#` if that is simple, otherwise lose their line.
fn lowered(text: &str, range: &Range<usize>, level: usize, top: bool) -> Edit {
    let shown = text[range.clone()].trim_end();
    let hashes = "#".repeat(level);
    if shown.starts_with('#') {
        let own = shown.len() - shown.trim_start_matches('#').len();
        return Edit {
            range: range.start..range.start + own,
            with: hashes,
        };
    }
    let mut lines = shown.lines();
    if let (true, Some(title), Some(_), None) = (top, lines.next(), lines.next(), lines.next()) {
        return Edit {
            range: range.start..range.start + shown.len(),
            with: format!("{hashes} {}", title.trim()),
        };
    }
    Edit::escape(range.start + shown.trim_end_matches(['=', '-']).len())
}

/// Closes a code block that the text left open.
fn closed(text: &str, range: &Range<usize>) -> Option<Edit> {
    let block = text[range.clone()].trim_start_matches(' ');
    let mark = block.chars().next()?;
    let fence: String = block.chars().take_while(|c| *c == mark).collect();
    let lines = block.trim_end_matches('\n').lines().skip(1);
    let is_closed = lines.last().is_some_and(|last| {
        let last = last.trim();
        last.len() >= fence.len() && last.chars().all(|c| c == mark)
    });
    let gap = if text.ends_with('\n') { "" } else { "\n" };
    (!is_closed).then(|| Edit {
        range: text.len()..text.len(),
        with: format!("{gap}{fence}\n"),
    })
}

/// Returns the first bracket of a definition.
fn bracket(text: &str, range: &Range<usize>) -> usize {
    range.start + text[range.clone()].find('[').unwrap_or(0)
}

/// Returns whether a link is a web, mail or relative link.
fn is_safe(url: &str) -> bool {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    let scheme = scheme.filter(|s| {
        s.chars()
            .all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    });
    scheme.is_none_or(|s| {
        ["http", "https", "mailto"]
            .iter()
            .any(|k| s.eq_ignore_ascii_case(k))
    })
}

/// Returns whether the text affects neither the text after it nor the structure of the document.
fn is_contained(text: &str, level: usize) -> bool {
    let document = format!("{text}\n# .\n");
    let parser = Parser::new_ext(&document, OPTIONS);
    if parser.reference_definitions().iter().next().is_some() {
        return false;
    }
    let (mut depth, mut lowest) = (0usize, level);
    let mut headings = Vec::new();
    for event in parser {
        match &event {
            Event::Html(_) | Event::InlineHtml(_) => return false,
            Event::Start(
                Tag::Image { .. } | Tag::MetadataBlock(_) | Tag::FootnoteDefinition(_),
            ) => return false,
            Event::Start(Tag::Link { dest_url, .. }) if !is_safe(dest_url) => return false,
            Event::Start(Tag::Heading { level: own, .. }) if *own as usize <= level => {
                headings.push(depth);
            }
            Event::Start(Tag::Heading { level: own, .. }) => {
                let own = *own as usize;
                if own > lowest + 1 {
                    return false;
                }
                lowest = own;
            }
            _ => {}
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    headings == [0]
}

/// Returns a line of backticks longer than any in the texts, and of at least three: none of them can end a code block
/// between two of these.
pub fn fence(texts: &[&str]) -> String {
    let runs = texts.iter().flat_map(|text| text.split(|c| c != '`'));
    let longest = runs.map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Returns the text as a code block that it cannot end.
fn fenced(text: &str) -> String {
    let fence = fence(&[text]);
    format!("{fence}text\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_text_may_say_stays_as_it_is() {
        for text in [
            "Plain *words*, **strong** `a < b` and <https://example.org>.\n",
            "- a\n  - b\n\n1. c\n   ```rust\n   let x: Vec<u8>;\n   ```\n",
            "| a | b |\n|---|---|\n| 1 | 2 |\n",
            "```html\n<script>alert(1)</script>\n# no heading\n---\n```\n",
            "> quoted\n\n    indented <b>\n\n[link](https://example.org) and [near](#there)\n",
            "a < b, a <b and 3 > 2; x_y_z; [brackets] and ! marks\n",
            "***\n",
        ] {
            assert_eq!(embed(text, 2), text);
        }
    }

    #[test]
    fn what_reaches_beyond_a_text_is_escaped() {
        for (text, shown) in [
            (
                "# codex\n## codex\n### x\n",
                "### codex\n#### codex\n##### x\n",
            ),
            // No level is skipped, and those beside each other stay so.
            (
                "## a\n#### b\n# c\n### d\n## e\n",
                "### a\n#### b\n### c\n#### d\n#### e\n",
            ),
            ("codex\n=====\n\ncodex\n---\n", "### codex\n\n#### codex\n"),
            ("a\nb\n---\n", "a\nb\n\\---\n"),
            ("> codex\n> ===\n", "> codex\n> \\===\n"),
            ("- # codex\n", "- ### codex\n"),
            ("---\n\nx\n", "***\n\nx\n"),
            ("<h2>3 · king</h2>\n", "\\<h2>3 · king\\</h2>\n"),
            ("a <img src=x> b\n", "a \\<img src=x> b\n"),
            ("<!--\n\n# x\n", "\\<!--\n\n### x\n"),
            (
                "![x](https://example.org/beacon)\n",
                "\\![x](https://example.org/beacon)\n",
            ),
            ("[x](javascript:alert(1))\n", "\\[x](javascript:alert(1))\n"),
            (
                "[king]: https://example.org\n",
                "\\[king]: https://example.org\n",
            ),
            ("```rust\nx", "```rust\nx\n```\n"),
            ("~~~~\n```\n~~~", "~~~~\n```\n~~~\n~~~~\n"),
            ("", ""),
        ] {
            assert_eq!(embed(text, 2), shown, "{text:?}");
        }
    }

    #[test]
    fn what_a_renderer_leaves_out_is_found() {
        let options = Options::ENABLE_TABLES
            .union(Options::ENABLE_STRIKETHROUGH)
            .union(Options::ENABLE_TASKLISTS);
        let found = |text: &str| {
            let parts = hidden_parts(text, options).into_iter();
            parts.map(|part| part.text).collect::<Vec<_>>()
        };
        for text in [
            "# Title #\n\nPlain *words*, **strong** &amp; `a < b` \\* and <https://example.org>.\n",
            "Title\n=====\n\n- a\n  - b\n\n1. c\n   ```rust\n   let x: Vec<u8>;\n   ```\n- [x] done\n",
            "| a | b |\n|---|:-:|\n| 1 | x\\|y |\n\n> quoted\n\n    indented <b>\n\n<div>html</div>\n<!-- comment -->\n",
            "[link](https://example.org) ![image](https://example.org/i.png) [brackets]\n\n~~~c++\nx\n~~~\n***\n",
            "a  \nb\\\nc\n\n日本語 é\n",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
        for (text, hidden) in [
            (
                "a\n\n[//]: # (vote yes)\n\nb\n",
                &["[//]: # (vote yes)"][..],
            ),
            (
                "[ref]: http://example.org/x \"vote yes\"\n\nsee [ref]\n",
                &["[ref]: http://example.org/x \"vote yes\"", "vote yes"],
            ),
            ("``` vote yes\ncode\n```\n", &["vote yes"]),
            (
                "~~~vote-yes-on-motion-9\ncode\n~~~\n",
                &["vote-yes-on-motion-9"],
            ),
            ("a ```<script> b\nc\n", &[]),
            ("[safe](http://example.org \"vote yes\")\n", &["vote yes"]),
            ("![safe](http://example.org 'vote yes')\n", &["vote yes"]),
            ("| a |\n|---|\n| 1 | vote yes |\n", &["| vote yes |"]),
        ] {
            assert_eq!(found(text), hidden, "{text}");
        }
    }

    #[test]
    fn deep_nesting_and_wide_indentation_are_bounded() {
        for marker in [">", "> ", "- ", "1. ", "> - ", "* 1) "] {
            let text = format!("{}x\n", marker.repeat(5000));
            let mut deepest = 0;
            let mut depth = 0;
            let quick = bounded(&text);
            for event in Parser::new_ext(&quick, OPTIONS) {
                match event {
                    Event::Start(_) => depth += 1,
                    Event::End(_) => depth -= 1,
                    _ => {}
                }
                deepest = deepest.max(depth);
            }
            // A list item has two levels: the list and the item.
            assert!(deepest <= 2 * DEPTH_MAX + 2, "{marker}: {deepest}");
            assert_eq!(bounded(&quick), quick);
        }
        let wide = format!("a\n{}b\n", " ".repeat(5000));
        assert_eq!(bounded(&wide).lines().last().unwrap().len(), INDENT_MAX + 1);
        for same in ["> > > a\n  - b\n", "---\n- - -\n", "", "\n\n"] {
            assert_eq!(bounded(same), same);
        }
    }

    /// Generates texts with many Markdown characters.
    fn hostile() -> impl Strategy<Value = String> {
        let pieces = [
            "#",
            "## 3 · king",
            "\n",
            "\n\n",
            "===",
            "---",
            "***",
            "```",
            "~~~",
            "`",
            "<",
            ">",
            "<h2>",
            "</h2>",
            "<!--",
            "-->",
            "<?",
            "<![CDATA[",
            "<script>",
            "</script>",
            "<div>",
            "![",
            "[",
            "](",
            ")",
            "]",
            "[a]: ",
            "[^a]: ",
            "[^a]",
            "https://example.org",
            "javascript:x",
            "x",
            " ",
            "    ",
            "\t",
            "- ",
            "1. ",
            "> ",
            "|",
            "|-|",
            "\\",
            "&lt;",
            "+++",
            "a\n",
            "!",
            "*",
            "_",
            "é",
        ];
        proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..40)
            .prop_map(|v| v.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]

        #[test]
        fn every_text_is_contained(text in hostile(), level in 1usize..4) {
            let embedded = embed(&text, level);
            prop_assert!(is_contained(&embedded, level), "{embedded}");
        }
    }
}
