//! Syntax highlighting: comments, strings, numbers, keywords. Takes the lines of a block in order; returns the same
//! text in spans.
//!
//! A grammar per language would cost tens of milliseconds and megabytes at startup. This handles what nearly all
//! languages share (how comments and strings begin and end) plus a keyword list per family, keeps a single value of
//! state between lines, and so highlights a growing block as cheaply as a finished one.

use super::wrap::{Line, Span};
use anstyle::{AnsiColor, Style};

/// The syntax of a family of languages.
struct Family {
    names: &'static [&'static str],
    line_comments: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    /// String delimiters; longer ones first.
    strings: &'static [&'static str],
    words: &'static [&'static str],
    /// Whether keywords are case-insensitive.
    any_case: bool,
}

const FAMILIES: &[Family] = &[
    Family {
        names: &["rust", "rs"],
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        strings: &["\""],
        words: &[
            "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum",
            "extern", "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod",
            "move", "mut", "pub", "ref", "return", "self", "Self", "static", "struct", "super",
            "trait", "true", "type", "unsafe", "use", "where", "while",
        ],
        any_case: false,
    },
    Family {
        names: &["python", "py", "python3", "starlark", "bzl"],
        line_comments: &["#"],
        block_comment: None,
        strings: &["\"\"\"", "'''", "\"", "'"],
        words: &[
            "False", "None", "True", "and", "as", "assert", "async", "await", "break", "case",
            "class", "continue", "def", "del", "elif", "else", "except", "finally", "for", "from",
            "global", "if", "import", "in", "is", "lambda", "match", "nonlocal", "not", "or",
            "pass", "raise", "return", "self", "try", "while", "with", "yield",
        ],
        any_case: false,
    },
    Family {
        names: &[
            "javascript",
            "js",
            "jsx",
            "typescript",
            "ts",
            "tsx",
            "mjs",
            "json5",
            "jsonc",
            "json",
        ],
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        strings: &["`", "\"", "'"],
        words: &[
            "abstract",
            "any",
            "as",
            "async",
            "await",
            "boolean",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "default",
            "delete",
            "do",
            "else",
            "enum",
            "export",
            "extends",
            "false",
            "finally",
            "for",
            "from",
            "function",
            "if",
            "implements",
            "import",
            "in",
            "instanceof",
            "interface",
            "let",
            "new",
            "null",
            "number",
            "of",
            "private",
            "public",
            "readonly",
            "return",
            "static",
            "string",
            "super",
            "switch",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typeof",
            "undefined",
            "var",
            "void",
            "while",
            "yield",
        ],
        any_case: false,
    },
    Family {
        names: &[
            "c", "h", "cpp", "c++", "cc", "hpp", "java", "kotlin", "kt", "scala", "swift", "cs",
            "csharp", "dart", "go", "golang", "php", "zig", "proto", "protobuf", "objc",
        ],
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        strings: &["\"\"\"", "\"", "'", "`"],
        words: &[
            "abstract",
            "auto",
            "bool",
            "break",
            "case",
            "catch",
            "chan",
            "char",
            "class",
            "const",
            "constexpr",
            "continue",
            "default",
            "defer",
            "delete",
            "do",
            "double",
            "else",
            "enum",
            "export",
            "extends",
            "extern",
            "false",
            "final",
            "float",
            "for",
            "fun",
            "func",
            "go",
            "goto",
            "if",
            "implements",
            "import",
            "in",
            "inline",
            "int",
            "interface",
            "internal",
            "let",
            "long",
            "map",
            "message",
            "namespace",
            "new",
            "nil",
            "null",
            "nullptr",
            "object",
            "override",
            "package",
            "private",
            "protected",
            "public",
            "range",
            "return",
            "select",
            "short",
            "signed",
            "sizeof",
            "static",
            "string",
            "struct",
            "super",
            "switch",
            "template",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typedef",
            "union",
            "unsigned",
            "using",
            "val",
            "var",
            "virtual",
            "void",
            "volatile",
            "when",
            "while",
        ],
        any_case: false,
    },
    Family {
        names: &[
            "sh",
            "bash",
            "zsh",
            "fish",
            "shell",
            "console",
            "dockerfile",
            "docker",
            "make",
            "makefile",
        ],
        line_comments: &["#"],
        block_comment: None,
        strings: &["\"", "'"],
        words: &[
            "case",
            "cd",
            "do",
            "done",
            "echo",
            "elif",
            "else",
            "esac",
            "exit",
            "export",
            "fi",
            "for",
            "function",
            "if",
            "in",
            "local",
            "return",
            "set",
            "source",
            "then",
            "until",
            "while",
            "FROM",
            "RUN",
            "COPY",
            "ENV",
            "CMD",
            "ENTRYPOINT",
            "WORKDIR",
            "ARG",
        ],
        any_case: false,
    },
    Family {
        names: &[
            "sql",
            "sqlite",
            "postgres",
            "postgresql",
            "mysql",
            "plpgsql",
        ],
        line_comments: &["--"],
        block_comment: Some(("/*", "*/")),
        strings: &["'", "\""],
        words: &[
            "add",
            "all",
            "alter",
            "and",
            "as",
            "asc",
            "begin",
            "between",
            "by",
            "case",
            "check",
            "column",
            "commit",
            "constraint",
            "create",
            "default",
            "delete",
            "desc",
            "distinct",
            "drop",
            "else",
            "end",
            "exists",
            "foreign",
            "from",
            "full",
            "group",
            "having",
            "if",
            "in",
            "index",
            "inner",
            "insert",
            "integer",
            "into",
            "is",
            "join",
            "key",
            "left",
            "like",
            "limit",
            "not",
            "null",
            "on",
            "or",
            "order",
            "outer",
            "primary",
            "references",
            "returning",
            "right",
            "rollback",
            "select",
            "set",
            "table",
            "text",
            "then",
            "to",
            "union",
            "unique",
            "update",
            "using",
            "values",
            "view",
            "when",
            "where",
            "with",
        ],
        any_case: true,
    },
    Family {
        names: &[
            "toml",
            "yaml",
            "yml",
            "ini",
            "conf",
            "cfg",
            "properties",
            "env",
            "nix",
            "hcl",
            "terraform",
            "tf",
        ],
        line_comments: &["#", ";"],
        block_comment: None,
        strings: &["\"\"\"", "'''", "\"", "'"],
        words: &["true", "false", "null", "yes", "no", "on", "off"],
        any_case: true,
    },
    Family {
        names: &[
            "ruby", "rb", "elixir", "ex", "exs", "crystal", "perl", "pl", "r", "julia", "jl",
        ],
        line_comments: &["#"],
        block_comment: None,
        strings: &["\"\"\"", "\"", "'", "`"],
        words: &[
            "alias",
            "and",
            "begin",
            "break",
            "case",
            "class",
            "def",
            "defmodule",
            "defp",
            "do",
            "else",
            "elsif",
            "end",
            "ensure",
            "false",
            "fn",
            "for",
            "function",
            "if",
            "in",
            "module",
            "my",
            "next",
            "nil",
            "not",
            "or",
            "raise",
            "rescue",
            "return",
            "self",
            "sub",
            "super",
            "then",
            "true",
            "unless",
            "until",
            "use",
            "when",
            "while",
            "yield",
        ],
        any_case: false,
    },
    Family {
        names: &["lua", "haskell", "hs", "elm", "ada", "vhdl"],
        line_comments: &["--"],
        block_comment: None,
        strings: &["\"", "'"],
        words: &[
            "and", "break", "case", "data", "do", "else", "elseif", "end", "false", "for",
            "function", "if", "import", "in", "instance", "let", "local", "module", "nil", "not",
            "of", "or", "repeat", "return", "then", "true", "type", "until", "where", "while",
        ],
        any_case: false,
    },
    Family {
        names: &["html", "xml", "svg", "vue", "svelte"],
        line_comments: &[],
        block_comment: Some(("<!--", "-->")),
        strings: &["\"", "'"],
        words: &[],
        any_case: false,
    },
    Family {
        names: &["css", "scss", "less"],
        line_comments: &[],
        block_comment: Some(("/*", "*/")),
        strings: &["\"", "'"],
        words: &["important", "media", "import", "keyframes"],
        any_case: false,
    },
];

/// Highlights a block of code line by line.
pub struct State {
    kind: Kind,
    /// The end marker of a comment or string left open on a previous line.
    open: Option<(&'static str, Style)>,
}

enum Kind {
    /// Unknown language: one color.
    Unknown,
    /// A patch: the first character of a line determines its style.
    Diff,
    Known(&'static Family),
}

fn code() -> Style {
    ansi(AnsiColor::Cyan)
}

fn ansi(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(color.into()))
}

impl State {
    /// Creates the state for the language named by a fence, by its first word.
    pub fn new(language: &str) -> Self {
        let name = language
            .split([' ', ',', '{', ':'])
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let kind = match name.as_str() {
            "diff" | "patch" => Kind::Diff,
            name => FAMILIES
                .iter()
                .find(|f| f.names.contains(&name))
                .map_or(Kind::Unknown, Kind::Known),
        };
        Self { kind, open: None }
    }

    /// Highlights the next line.
    pub fn line(&mut self, line: &str) -> Line {
        match self.kind {
            Kind::Unknown => vec![Span::new(code(), line)],
            Kind::Diff => vec![Span::new(diff(line), line)],
            Kind::Known(family) => self.read(family, line),
        }
    }

    fn read(&mut self, family: &'static Family, line: &str) -> Line {
        let mut spans = Line::new();
        let mut rest = line;
        if let Some((end, style)) = self.open {
            let to = rest.find(end).map(|at| at + end.len());
            let (inside, after) = rest.split_at(to.unwrap_or(rest.len()));
            push(&mut spans, style, inside);
            if to.is_none() {
                return spans;
            }
            self.open = None;
            rest = after;
        }
        while let Some(first) = rest.chars().next() {
            if family.line_comments.iter().any(|c| rest.starts_with(c)) {
                push(&mut spans, Style::new().dimmed(), rest);
                break;
            }
            if let Some((begin, end)) = family.block_comment
                && rest.starts_with(begin)
            {
                let to = rest[begin.len()..]
                    .find(end)
                    .map(|at| at + begin.len() + end.len());
                let (inside, after) = rest.split_at(to.unwrap_or(rest.len()));
                push(&mut spans, Style::new().dimmed(), inside);
                if to.is_none() {
                    self.open = Some((end, Style::new().dimmed()));
                }
                rest = after;
                continue;
            }
            if let Some(mark) = family.strings.iter().find(|s| rest.starts_with(**s)) {
                let to = string_end(rest, mark);
                let (inside, after) = rest.split_at(to.unwrap_or(rest.len()));
                push(&mut spans, ansi(AnsiColor::Green), inside);
                // Only delimiters made for it span lines.
                if to.is_none() && (mark.len() == 3 || *mark == "`") {
                    self.open = Some((mark, ansi(AnsiColor::Green)));
                }
                rest = after;
                continue;
            }
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            push(&mut spans, token_style(family, token, first), token);
            rest = after;
        }
        spans
    }
}

fn token_style(family: &Family, token: &str, first: char) -> Style {
    let known = if family.any_case {
        let lower = token.to_ascii_lowercase();
        family.words.contains(&lower.as_str())
    } else {
        family.words.contains(&token)
    };
    if known {
        ansi(AnsiColor::Magenta)
    } else if first.is_ascii_digit() {
        ansi(AnsiColor::Yellow)
    } else {
        Style::new()
    }
}

/// Returns the end of a string that begins here, including its end delimiter; a backslash escapes what follows.
fn string_end(text: &str, mark: &str) -> Option<usize> {
    let mut at = mark.len();
    while let Some(c) = text.get(at..).and_then(|t| t.chars().next()) {
        if text[at..].starts_with(mark) {
            return Some(at + mark.len());
        }
        at += c.len_utf8();
        if c == '\\' {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    None
}

fn diff(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => ansi(AnsiColor::Green),
        Some(b'-') => ansi(AnsiColor::Red),
        Some(b'@') => ansi(AnsiColor::Cyan),
        _ => Style::new(),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn push(spans: &mut Line, style: Style, text: &str) {
    if text.is_empty() {
        return;
    }
    match spans.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => spans.push(Span::new(style, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes each span's style as a letter: k keyword, s string, n number, c comment, none for the rest.
    fn marks(language: &str, code: &str) -> String {
        let mut state = State::new(language);
        let lines: Vec<String> = code
            .split('\n')
            .map(|line| {
                let spans = state.line(line);
                let text: String = spans.iter().map(|s| s.text.as_str()).collect();
                assert_eq!(text, line, "no letter is lost");
                spans
                    .iter()
                    .map(|s| {
                        let mark = if s.style == ansi(AnsiColor::Magenta) {
                            "k"
                        } else if s.style == ansi(AnsiColor::Green) {
                            "s"
                        } else if s.style == ansi(AnsiColor::Yellow) {
                            "n"
                        } else if s.style == Style::new().dimmed() {
                            "c"
                        } else {
                            return s.text.clone();
                        };
                        format!("{mark}⟨{}⟩", s.text)
                    })
                    .collect()
            })
            .collect();
        lines.join("\n")
    }

    #[test]
    fn words_strings_numbers_and_comments() {
        assert_eq!(
            marks(
                "rust",
                "let x = \"a \\\" b\"; // why\n/* one\ntwo */ fn f() { 42 }"
            ),
            "k⟨let⟩ x = s⟨\"a \\\" b\"⟩; c⟨// why⟩\nc⟨/* one⟩\nc⟨two */⟩ k⟨fn⟩ f() { n⟨42⟩ }"
        );
        assert_eq!(
            marks("py", "def f():\n  '''doc\n  more''' # x"),
            "k⟨def⟩ f():\n  s⟨'''doc⟩\ns⟨  more'''⟩ c⟨# x⟩"
        );
        assert_eq!(
            marks("SQL", "Select 'it' FROM t"),
            "k⟨Select⟩ s⟨'it'⟩ k⟨FROM⟩ t"
        );
    }

    #[test]
    fn no_text_breaks_it() {
        for language in ["rust", "python", "js", "sql", "diff", "", "brainf", "html"] {
            for text in ["\"", "\"\\", "'\\é", "/*", "日本語 \"é", "`x\ny`", "<!-- x"] {
                marks(language, text);
            }
        }
    }

    #[test]
    fn every_name_belongs_to_one_family() {
        let mut names: Vec<_> = FAMILIES.iter().flat_map(|f| f.names).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
