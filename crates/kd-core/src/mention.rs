//! Finds the recipients in a text: `@member`, several of them, or `@all`.
//!
//! Input: a text and the known names. Output: the mentioned names, in the order of first mention. An `@` is plain text
//! in code, quotations, mail addresses, paths and URLs, and before any other word. Where it is not, and no known name
//! follows, it may name a file: [`paths`].

use crate::ids::SeatName;
use crate::markdown::{bounded, even_ends};
use crate::names::{ALL, KING};
use pulldown_cmark::{Event, Parser, Tag};
use std::ops::Range;

/// Maximum number of files that a text may name.
const PATHS_MAX: usize = 256;
/// Maximum bytes of a path in a text.
const PATH_BYTES_MAX: usize = 1024;
/// Pairs of quotation marks.
const QUOTES: [(char, char); 9] = [
    ('"', '"'),
    ('\'', '\''),
    ('“', '”'),
    ('„', '“'),
    ('‘', '’'),
    ('«', '»'),
    ('‹', '›'),
    ('「', '」'),
    ('『', '』'),
];

/// The mentions in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Whether it contains `@all`.
    pub all: bool,
    /// Known names, each once, in the order of first mention.
    pub seats: Vec<SeatName>,
    /// The word after an `@` at the beginning of the text, if it is not a known name.
    pub stranger: Option<String>,
}

impl Mentions {
    /// Returns a notice for a text that begins with a misspelled member name.
    pub fn near_miss(&self, known: &[&SeatName]) -> Option<String> {
        let word = self.stranger.as_ref()?;
        let near = nearest(word, known)?;
        Some(format!(
            "no member is named @{word}, so it is read as text; did you mean @{near}?"
        ))
    }
}

/// Parses the mentions in a text. Ignores case unless the exact name is known.
pub fn mentions(text: &str, known: &[&SeatName]) -> Mentions {
    let mut reader = Reader::new(known);
    read(text, &mut reader);
    reader.found
}

/// Returns the files that a text may name: for each `@` before something that is not a known name, the paths that may be
/// meant, the longest first. Quotation marks after the `@` enclose a path with spaces.
pub fn paths(text: &str, known: &[&SeatName]) -> Vec<Vec<String>> {
    let mut reader = Reader {
        paths: Some(Vec::new()),
        ..Reader::new(known)
    };
    read(text, &mut reader);
    reader.paths.unwrap_or_default()
}

/// The data read from a text.
struct Reader<'k> {
    known: &'k [&'k SeatName],
    found: Mentions,
    /// The paths, if they are wanted.
    paths: Option<Vec<Vec<String>>>,
}

impl<'k> Reader<'k> {
    fn new(known: &'k [&'k SeatName]) -> Self {
        Self {
            known,
            found: Mentions::default(),
            paths: None,
        }
    }
}

/// Reads a text, as Markdown.
fn read(text: &str, reader: &mut Reader<'_>) {
    if !text.contains('@') {
        return;
    }
    // Messages are saved like this: a first line is never an indented code block.
    let text = even_ends(text.trim());
    let text = bounded(&text);
    let hidden = Hidden::of(&text);
    let (mut blocks, mut spans) = (hidden.blocks.iter().peekable(), &hidden.spans[..]);
    let mut paragraph = 0..0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        while blocks.next_if(|block| block.end <= range.start).is_some() {}
        let is_hidden = blocks.peek().is_some_and(|block| block.start < range.end);
        let words = !is_hidden && !line.trim().is_empty();
        if words && paragraph.end == range.start {
            paragraph.end = range.end;
        } else {
            spans = read_paragraph(&text, paragraph, spans, reader);
            paragraph = if words { range } else { at..at };
        }
    }
    read_paragraph(&text, paragraph, spans, reader);
}

/// Where a text is code or quoted, in order.
#[derive(Default)]
struct Hidden {
    /// Whole lines.
    blocks: Vec<Range<usize>>,
    /// Code spans.
    spans: Vec<Range<usize>>,
}

impl Hidden {
    fn of(text: &str) -> Self {
        let mut hidden = Self::default();
        for (event, range) in Parser::new(text).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(_)) => hidden.blocks.push(range),
                Event::Start(Tag::BlockQuote(_)) => hidden.quote(text, range),
                Event::Code(_) => hidden.spans.push(range),
                _ => {}
            }
        }
        // Blocks may be in each other.
        hidden.blocks.sort_by_key(|block| block.start);
        let mut end_max = 0;
        for block in &mut hidden.blocks {
            end_max = end_max.max(block.end);
            block.end = end_max;
        }
        hidden
    }

    /// Hides the lines of a quotation. CommonMark also counts the following lines of the paragraph without a `>` as
    /// quoted; here they count as the writer's own words.
    fn quote(&mut self, text: &str, range: Range<usize>) {
        let mut at = range.start;
        for line in text[range.clone()].split_inclusive('\n') {
            if at == range.start || line.trim_start().starts_with('>') {
                self.blocks.push(at..at + line.len());
            }
            at += line.len();
        }
    }
}

/// Returns the known name closest to a misspelled one.
pub fn nearest<'a>(name: &str, known: &[&'a SeatName]) -> Option<&'a SeatName> {
    let far_max = 1 + name.chars().count() / 5;
    known
        .iter()
        .map(|seat| {
            (
                strsim::damerau_levenshtein(&name.to_lowercase(), &seat.as_str().to_lowercase()),
                *seat,
            )
        })
        .filter(|(far, _)| *far <= far_max.min(2))
        .min_by_key(|(far, _)| *far)
        .map(|(_, seat)| seat)
}

/// Reads a paragraph. `spans` are the code spans after the text read so far. Returns the code spans after the
/// paragraph.
fn read_paragraph<'s>(
    text: &str,
    range: Range<usize>,
    spans: &'s [Range<usize>],
    reader: &mut Reader<'_>,
) -> &'s [Range<usize>] {
    let begin = spans.partition_point(|span| span.start < range.start);
    let end = spans.partition_point(|span| span.start < range.end);
    let (spans, rest) = (&spans[begin..end], &spans[end..]);
    let leads = text[..range.start].trim().is_empty();
    let (start, text) = (range.start, &text[range]);
    if !text.contains('@') {
        return rest;
    }
    let local = |span: &Range<usize>| span.start - start..span.end - start;
    let mut hidden: Vec<Range<usize>> = spans.iter().map(local).collect();
    hidden.extend(quoted(text, &hidden));
    hidden.sort_by_key(|span| span.start);
    let (mut span, mut before, mut path, mut mention_end) = (0, ' ', false, 0);
    let mut end_max = 0;
    for (at, c) in text.char_indices() {
        while let Some(next) = hidden.get(span).filter(|next| next.start <= at) {
            end_max = end_max.max(next.end);
            span += 1;
        }
        if c.is_whitespace() || is_east_asian(c) {
            path = false;
        } else if matches!(c, '/' | '\\') {
            path |= mention_end != at;
        } else if c == '@' && at >= end_max && !path && may_precede(before, at, mention_end) {
            let rest = &text[at + 1..];
            let end = rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            let mut is_name = false;
            if !goes_on(after) {
                if let Some(len) = read_name(run, reader.known, &mut reader.found) {
                    mention_end = at + 1 + len;
                    is_name = true;
                } else if leads && text[..at].trim().is_empty() {
                    let run = run.trim_end_matches(['.', '-', '_']);
                    reader.found.stranger = Some(run.to_owned()).filter(|run| !run.is_empty());
                }
            }
            if let Some(paths) = reader
                .paths
                .as_mut()
                .filter(|paths| paths.len() < PATHS_MAX)
                && !is_name
            {
                let meant = paths_in(rest);
                paths.extend((!meant.is_empty()).then_some(meant));
            }
        }
        before = c;
    }
    rest
}

/// Returns the paths that the text after an `@` may mean, the longest first.
fn paths_in(rest: &str) -> Vec<String> {
    if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let inner = &rest[1..];
        let end = inner
            .find([quote, '\n'])
            .filter(|end| inner[*end..].starts_with(quote));
        let path = end.map_or("", |end| &inner[..end]);
        return (!path.trim().is_empty() && path.len() <= PATH_BYTES_MAX)
            .then(|| path.to_owned())
            .into_iter()
            .collect();
    }
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '|' | '*');
    if rest.starts_with('@') {
        return Vec::new();
    }
    let mut path = &rest[..rest.floor_char_boundary(PATH_BYTES_MAX)];
    path = &path[..path.find(ends).unwrap_or(path.len())];
    let mut meant: Vec<String> = Vec::new();
    let mut push = |path: &str| {
        if !path.is_empty() && meant.iter().all(|other| other != path) {
            meant.push(path.to_owned());
        }
    };
    push(path);
    // Scripts without spaces between words go on after a path.
    let first = path.find(is_east_asian);
    for path in [path, &path[..first.unwrap_or(path.len())]] {
        let bare = path.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '_');
        push(bare);
        // `src/main.rs:42` and `src/main.rs:42-50` name lines of a file.
        let name = bare.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | '-'));
        if bare[name.len()..].starts_with(':') {
            push(name);
        }
    }
    meant
}

/// Returns whether an `@` after this character can begin a mention.
fn may_precede(before: char, at: usize, mention_end: usize) -> bool {
    match before {
        // `@ann/@bob` are two mentions.
        '/' => mention_end + 1 == at,
        '_' | '@' | '\\' | '=' | '+' | '-' | '~' | '%' | '&' | '#' | '$' => false,
        c => !c.is_alphanumeric() || is_east_asian(c),
    }
}

/// Returns whether the text after a name makes it part of a path or an address.
fn goes_on(after: &str) -> bool {
    let mut chars = after.chars();
    match chars.next() {
        Some('@') => true,
        Some('/' | '\\') => chars
            .next()
            .is_some_and(|c| is_name_char(c) && !is_east_asian(c)),
        _ => false,
    }
}

/// Records the name at the start of a run of letters; returns its length, or `None` if it is not a known name.
fn read_name(run: &str, known: &[&SeatName], found: &mut Mentions) -> Option<usize> {
    let named = |name: &str| prefix_len(run, name).filter(|len| ends_here(&run[*len..]));
    let best = known
        .iter()
        .filter_map(|seat| Some((named(seat.as_str())?, run.starts_with(seat.as_str()), seat)))
        .max_by_key(|(len, exact, _)| (*len, *exact));
    if let Some((len, _, seat)) = best {
        if !found.seats.contains(seat) {
            found.seats.push((*seat).clone());
        }
        return Some(len);
    }
    if let Some(len) = named(ALL) {
        found.all = true;
        return Some(len);
    }
    named(KING)
}

/// Returns the length of a name at the start of a text, ignoring case.
fn prefix_len(text: &str, name: &str) -> Option<usize> {
    let mut rest = text.chars();
    for c in name.chars() {
        let other = rest.next()?;
        if c != other && !c.to_lowercase().eq(other.to_lowercase()) {
            return None;
        }
    }
    Some(text.len() - rest.as_str().len())
}

/// Returns whether a name ends before the rest of a run: at punctuation, at the next sentence, or at letters of a
/// script without spaces between words. `claude.md` and `claude-code` are not `claude`.
fn ends_here(rest: &str) -> bool {
    if rest.trim_matches(['.', '-', '_']).is_empty() || rest.starts_with("--") {
        return true;
    }
    let next = rest.trim_start_matches('.').chars().next();
    match next {
        Some(c) if is_east_asian(c) => true,
        Some(c) => rest.starts_with("..") || rest.starts_with('.') && c.is_uppercase(),
        None => true,
    }
}

/// Returns the quotations outside code. An unpaired mark quotes nothing.
fn quoted(text: &str, code: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut open: [Option<usize>; QUOTES.len()] = [None; QUOTES.len()];
    let (mut spans, mut span, mut before) = (Vec::new(), 0, ' ');
    for (at, c) in text.char_indices() {
        while code.get(span).is_some_and(|code| code.end <= at) {
            span += 1;
        }
        if code.get(span).is_some_and(|code| code.start <= at) {
            before = c;
            continue;
        }
        for (kind, (opens, closes)) in QUOTES.into_iter().enumerate() {
            // An apostrophe or inch sign comes after a letter or digit, or before one.
            let twins = opens == closes;
            let after = || text[at + c.len_utf8()..].chars().next().unwrap_or(' ');
            if let Some(start) = open[kind].filter(|_| c == closes) {
                if !matches!(c, '"' | '\'' | '’') || !is_word(after()) {
                    spans.push(start..at + c.len_utf8());
                    open[kind] = None;
                }
            } else if c == opens
                && open[kind].is_none()
                && (!twins || !is_word(before) && !after().is_whitespace())
            {
                open[kind] = Some(at);
            }
        }
        before = c;
    }
    spans
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() && !is_east_asian(c)
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Returns whether a character is a Chinese, Japanese or Korean letter or punctuation, written without spaces.
fn is_east_asian(c: char) -> bool {
    matches!(
        u32::from(c),
        0x2E80..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFF00..=0xFFEF | 0x2_0000..=0x3_FFFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Mentions {
        let names = ["claude", "gpt-5.1", "codex", "小明"].map(|n| SeatName::new(n).unwrap());
        mentions(text, &names.iter().collect::<Vec<_>>())
    }

    /// Formats the recipients of a text.
    fn whom(text: &str) -> String {
        let found = read(text);
        let all = found.all.then_some("all");
        let seats = found.seats.iter().map(SeatName::as_str);
        all.into_iter().chain(seats).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn known_names_address_where_people_write_them() {
        for (text, expected) in [
            ("@claude what do you think?", "claude"),
            ("  \n @claude indented", "claude"),
            ("ask @codex, then @claude. And @codex again", "codex claude"),
            ("What do you say, @claude?", "claude"),
            ("@claude, go", "claude"),
            ("(@claude) go", "claude"),
            ("(@gpt-5.1.)", "gpt-5.1"),
            ("@Claude: hello", "claude"),
            ("@CLAUDE hello", "claude"),
            ("**@claude** and _then_ @codex", "claude codex"),
            ("@claude.It is so", "claude"),
            ("@claude... hm", "claude"),
            ("@claude...hm", "claude"),
            ("@claude -- hm", "claude"),
            ("@claude--hm", "claude"),
            ("@claude's plan", "claude"),
            ("cc:@claude", "claude"),
            ("@claude/@codex", "claude codex"),
            ("@claude\n@codex", "claude codex"),
            ("hey @all", "all"),
            ("@ALL, and @codex", "all codex"),
            // Chinese has no spaces around a mention.
            ("@claude，你好", "claude"),
            ("（@claude）你好", "claude"),
            ("请@claude看看", "claude"),
            ("@claudeさん、どう思う？", "claude"),
            ("@小明你好", "小明"),
            ("A/B方案，@claude怎么看？", "claude"),
            ("、@codex。", "codex"),
            // Unpaired marks quote nothing.
            ("a 5\" pipe, @claude", "claude"),
            ("it's @claude's, isn't it", "claude"),
            ("`a, @claude", "claude"),
            ("say \"hi, @claude", "claude"),
            ("\"yes\" and @claude", "claude"),
            ("read `x` and/or y: @claude", "claude"),
            ("see src/main.rs @claude", "claude"),
            ("```\nx\n```\n@claude", "claude"),
            ("> said before\n\n@claude", "claude"),
            ("> said before\n@claude, is it so?", "claude"),
            ("```a``` @claude", "claude"),
            // Code ends where Markdown says so.
            ("- ```\n  x\n  ```\n\n@claude", "claude"),
            ("- ```\n  never closed\n\n@claude", "claude"),
            ("1. x\n\n   ~~~ py\n   y\n   ~~~\n   @claude", "claude"),
            ("> ```\n> x\n\n@claude", "claude"),
            ("```\nx\n```\t\n@claude", "claude"),
            ("x\n\n    code\n@claude", "claude"),
            ("x\n    @claude goes on", "claude"),
            ("    @claude", "claude"),
            ("~~~ `x`\ny\n~~~\n@claude", "claude"),
            ("a \\` b @claude \\` c", "claude"),
        ] {
            assert_eq!(whom(text), expected, "{text:?}");
        }
    }

    #[test]
    fn an_at_sign_is_text_everywhere_else() {
        for text in [
            "npm i @types/node is broken",
            "What does @dataclass do in Python?",
            "npm i @claude/sdk",
            "mail a@b.example",
            "mail a@claude and a.b+@claude",
            "git@claude:repo",
            "@claude@mastodon.example wrote",
            "`@claude` and ``a ` @claude``",
            "```\n@claude\n```\n",
            "~~~ py\n@claude\n```\n@codex\n~~~",
            "```never closed\n@claude",
            // A closing fence has no words after it, and at most three spaces before it.
            "```\nx\n``` py\n@claude",
            "```\nx\n    ```\n@claude",
            "```\nx\n  - ```\n@claude",
            "~~~ `x`\n@claude\n```\n@codex",
            "x\n\n    @claude",
            "x\n\n\t@claude",
            "- x\n\n      @claude",
            "- ```\n  @claude\n  ```",
            "- > @claude\n  > @codex",
            "> ```\n> @claude",
            "\"@claude\"",
            "write \"ask @claude first\" on it",
            "'@claude'",
            "“@claude” „@claude“ «@claude» ‘@claude’",
            "「@claude」『@claude』",
            "> @claude said so",
            "https://x.example/@claude",
            "https://x.example/?by=@claude",
            "x.example/@claude",
            "./@claude and a\\@claude",
            "curl --data=@claude",
            "read @claude.md",
            "@claude-code is another",
            "@claudette is another",
            "HEAD@{1} and @ claude",
            "@@claude",
            "@king hears",
            "snake_@claude",
        ] {
            assert_eq!(whom(text), "", "{text:?}");
        }
    }

    #[test]
    fn an_at_sign_before_another_word_may_name_a_file() {
        let names = ["claude", "gpt-5.1"].map(|n| SeatName::new(n).unwrap());
        let known: Vec<&SeatName> = names.iter().collect();
        for (text, expected) in [
            (
                "What is wrong in @src/main.rs and @shot.png?",
                "src/main.rs|shot.png? shot.png",
            ),
            ("@claude @gpt-5.1. @all @king", ""),
            ("@claude.md and @claude/notes", "claude.md|claude/notes"),
            ("(@a.rs), **@b.rs**", "a.rs), a.rs|b.rs"),
            ("@\"my notes.md\" and @'a b'", "my notes.md|a b"),
            ("@\"never closed", ""),
            ("@\"over\nlines\"", ""),
            (
                "@~/notes.md @/etc/hosts @../x",
                "~/notes.md|/etc/hosts|../x",
            ),
            (
                "@src/main.rs:42-50, @a:1",
                "src/main.rs:42-50, src/main.rs:42-50 src/main.rs|a:1 a",
            ),
            ("请看@src/main.rs，谢谢", "src/main.rs，谢谢 src/main.rs"),
            ("@dataclass", "dataclass"),
            ("mail a@b.md, git@x.md:y, https://x/@a.md, ./@b", ""),
            ("`@a.md` \"@b.md\" '@c.md'", ""),
            ("> @a.md\n\n```\n@b.md\n```\n~~~\n@c.md", ""),
            ("@ and @@ and @.", "."),
        ] {
            let found: Vec<String> = paths(text, &known).iter().map(|p| p.join(" ")).collect();
            assert_eq!(found.join("|"), expected, "{text:?}");
        }
        let many = "(@".repeat(200_000);
        assert!(paths(&many, &known).len() <= PATHS_MAX);
    }

    #[test]
    fn only_a_name_that_begins_the_text_can_be_misspelt() {
        let names = ["claude", "codex"].map(|n| SeatName::new(n).unwrap());
        let known: Vec<_> = names.iter().collect();
        for (text, near) in [
            ("@cluade hi", true),
            ("\n @Cluade, hi", true),
            ("hi @cluade", false),
            ("@media queries", false),
            ("@cluade/sdk", false),
            ("`@cluade`", false),
            ("@king hi", false),
            ("@claude and @cluade", false),
        ] {
            let notice = mentions(text, &known).near_miss(&known);
            assert_eq!(notice.is_some(), near, "{text:?}");
            assert!(notice.is_none_or(|n| n.contains("did you mean @claude?")));
        }
        assert_eq!(nearest("cluade", &known), Some(&names[0]));
        assert_eq!(nearest("media", &known), None);
    }

    #[test]
    fn long_hostile_texts_are_read_soon() {
        let rising: String = (1..1500).map(|n| "`".repeat(n) + "@claude ").collect();
        let deep = format!("{}@claude", ">- ".repeat(100_000));
        let quotes = "> x @claude\n>\n".repeat(100_000);
        for text in [
            "@claude/".repeat(200_000),
            "\"'«@".repeat(200_000),
            "- @a\n".repeat(100_000),
            "`@`a".repeat(100_000),
            rising,
            deep,
            quotes,
        ] {
            let _ = read(&text);
        }
    }
}
