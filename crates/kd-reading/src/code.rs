//! Code in a reply: a command, an expression or a program; fenced, between backticks, or bare. Input: a reply. Output:
//! the original code, and the normal form used to compare it.

use super::language::is_han;
use super::prose;
use serde_json::Value;

/// Maximum length of a line that is code on its own, in bytes.
const LINE_BYTES_MAX: usize = 300;
/// Maximum length of a key, in characters.
const KEY_CHARS_MAX: usize = 160;

/// SQL statements; their keywords are case-insensitive.
const SQL: &[&str] = &[
    "select ",
    "insert ",
    "update ",
    "delete ",
    "create ",
    "drop ",
    "alter ",
    "with ",
    "truncate ",
    "grant ",
];

/// Returns the code in a reply; `None` if there is none, or several differ.
pub fn of(reply: &str) -> Option<String> {
    let text = prose::without_thoughts(reply);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !prose::is_about_confidence(line))
        .collect();
    let text = lines.join("\n");
    let text = text.trim();
    let fenced = fences(text);
    if let Some(first) = fenced.first() {
        // If there are several blocks, none is the answer unless they are the same.
        let same = fenced.iter().all(|code| same(code, first));
        return same.then(|| first.clone());
    }
    let spans = spans(text);
    match spans.as_slice() {
        [] => {}
        [one] => return Some((*one).to_owned()),
        [first, rest @ ..] if text.starts_with('`') || rest.iter().all(|s| same(s, first)) => {
            return Some((*first).to_owned());
        }
        _ => return None,
    }
    bare(text)
}

/// Returns the contents of code fences.
fn fences(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        match (&mut open, fence) {
            (None, true) => open = Some(Vec::new()),
            (Some(_), true) => out.extend(open.take().map(|lines| lines.join("\n"))),
            (Some(lines), false) => lines.push(line),
            (None, false) => {}
        }
    }
    // A truncated reply has no closing fence.
    out.extend(open.map(|lines| lines.join("\n")));
    out.retain(|code| !code.trim().is_empty());
    out
}

/// Returns the text between backticks.
fn spans(text: &str) -> Vec<&str> {
    let pieces: Vec<&str> = text.split('`').collect();
    let inside = pieces.iter().skip(1).step_by(2);
    // With an even number of pieces, the last is not closed.
    let closed = pieces.len() / 2 - usize::from(pieces.len().is_multiple_of(2) && pieces.len() > 1);
    inside
        .take(closed)
        .map(|span| span.trim())
        .filter(|span| !span.is_empty())
        .collect()
}

/// Returns code without marks: a whole short text, or the text after a colon or among Chinese characters.
fn bare(text: &str) -> Option<String> {
    let text = text.trim_matches('*').trim();
    if text.is_empty() {
        return None;
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    if lines > 1 {
        return looks_like_code(text).then(|| text.to_owned());
    }
    if text.chars().any(is_han) {
        let runs = text.split(|c: char| !c.is_ascii());
        let run = runs.map(str::trim).max_by_key(|run| run.len())?;
        return (run.len() >= 2).then(|| run.trim_end_matches(['.', ',']).to_owned());
    }
    // `=SUMME(A1:A10)`
    if let Some(at) = text
        .find(" =")
        .filter(|_| text.contains("=") && text.contains('('))
    {
        let formula = text.get(at + 1..)?;
        if formula.starts_with('=') && formula.chars().nth(1).is_some_and(char::is_alphabetic) {
            return Some(formula.trim_end_matches(['.', '!']).to_owned());
        }
    }
    if let Some((head, code)) = text.split_once(": ")
        && head.split_whitespace().count() <= 6
        && head
            .chars()
            .all(|c| c.is_alphabetic() || c == ' ' || c == '-')
    {
        return Some(code.trim().to_owned());
    }
    let words = text.split_whitespace().count();
    let short = words <= 3 && !text.ends_with('.');
    (text.len() <= LINE_BYTES_MAX && (short || has_marks(text) || looks_like_code(text)))
        .then(|| text.to_owned())
}

/// Returns whether the characters of a line alone show that it is code.
pub(super) fn has_marks(text: &str) -> bool {
    let formula = text.starts_with('=') && text[1..].starts_with(char::is_alphabetic);
    let option = text.split_whitespace().any(|w| {
        w.strip_prefix('-').is_some_and(|rest| {
            rest.trim_start_matches('-')
                .starts_with(char::is_alphabetic)
        })
    });
    let pair = [
        "()", "(\"", "('", "([", "[\"", "['", "^\\", "\\d", "\\w", "{}", "::", "&&", "=>", " | ",
        "=\"", "* *",
    ];
    let found = pair.iter().any(|mark| text.contains(mark));
    let lower = text.to_lowercase();
    formula
        || option
        || found
        || SQL
            .iter()
            .any(|word| lower.starts_with(word) && lower.contains(" from "))
}

/// Returns whether a text is a program or a formula: a call with its brackets, alone or in indented lines, and no
/// sentence.
pub(super) fn is_program(text: &str) -> bool {
    let called = |line: &str| {
        let bare = line.trim().trim_end_matches([';', ':']);
        let name = bare.split('(').next().unwrap_or_default();
        let call = name.ends_with(|c: char| c.is_alphanumeric() || c == '_') && bare.ends_with(')');
        call && bare.matches('(').count() == bare.matches(')').count()
    };
    let block = text.lines().any(|l| l.trim_end().ends_with([':', '{']))
        && text.lines().any(|l| l.starts_with([' ', '\t']));
    let formula = text.trim().starts_with('=') && text.contains('(');
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    formula
        || block && text.lines().any(called)
        || lines.clone().count() > 0 && lines.clone().all(called)
}

/// Returns whether a text has characters that prose does not have, or begins like an SQL statement.
fn looks_like_code(text: &str) -> bool {
    let lower = text.to_lowercase();
    let marks = [
        "()", "(", "=", "{", "}", "[", "]", "|", "\\", "--", "::", "->", "=>", "$", "&&", "<", ">",
        "/", " -",
    ];
    let found = marks.iter().filter(|mark| text.contains(**mark)).count();
    SQL.iter().any(|word| lower.starts_with(word))
        || found >= 2
        || found == 1 && !text.ends_with('.')
}

/// Returns whether two pieces of code are the same except for whitespace, empty lines and a final semicolon.
pub fn same(one: &str, two: &str) -> bool {
    normal(one) == normal(two)
}

/// Returns the normal form used to compare code.
pub fn normal(code: &str) -> String {
    let code = code
        .trim()
        .trim_start_matches("$ ")
        .trim_end_matches(';')
        .trim();
    let lower = code.to_lowercase();
    if SQL.iter().any(|word| lower.starts_with(word)) {
        return sql(code);
    }
    let lines: Vec<&str> = code
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty())
        .collect();
    match lines.as_slice() {
        [one] => spaced(one.trim()),
        _ => lines.join("\n"),
    }
}

/// Collapses the spaces in a line, except within quotes.
fn spaced(line: &str) -> String {
    let mut out = String::new();
    let mut quote: Option<char> = None;
    for c in line.chars() {
        match quote {
            Some(open) => {
                quote = Some(open).filter(|open| *open != c);
                out.push(c);
            }
            None if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            None => {
                quote = matches!(c, '"' | '\'').then_some(c);
                out.push(c);
            }
        }
    }
    out
}

/// Lowercases an SQL statement and removes spaces around punctuation, except within quotes.
fn sql(code: &str) -> String {
    let joined = spaced(&code.lines().map(str::trim).collect::<Vec<_>>().join(" "));
    let mut out = String::new();
    let mut quote: Option<char> = None;
    for c in joined.chars() {
        match quote {
            Some(open) => {
                quote = Some(open).filter(|open| *open != c);
                out.push(c);
            }
            None => {
                let mark = matches!(c, '=' | ',' | '(' | ')' | '<' | '>');
                if mark && out.ends_with(' ') {
                    out.pop();
                }
                if c == ' ' && out.ends_with(['=', ',', '(', ')', '<', '>']) {
                    continue;
                }
                quote = matches!(c, '"' | '\'').then_some(c);
                out.extend(c.to_lowercase());
            }
        }
    }
    out
}

/// Returns the name of code in a count: a single line unchanged; otherwise the start of the first line, the number of
/// lines and a hash.
pub fn key(code: &str) -> String {
    let lower = code.trim().to_lowercase();
    let joined: String = match SQL.iter().any(|word| lower.starts_with(word)) {
        true => spaced(&code.lines().map(str::trim).collect::<Vec<_>>().join(" ")),
        false => code.to_owned(),
    };
    let lines: Vec<&str> = joined
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty())
        .collect();
    let line = clean(lines.first().copied().unwrap_or_default());
    if let [_] = lines.as_slice()
        && line.chars().count() <= KEY_CHARS_MAX
    {
        return line;
    }
    let head: String = line.chars().take(60).collect();
    let mark = normal(code)
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{head} … ({} lines, {:08x})", lines.len(), mark as u32)
}

/// Removes control characters from a line.
fn clean(line: &str) -> String {
    line.trim().chars().filter(|c| !c.is_control()).collect()
}

/// Returns the code in a JSON value.
pub fn of_value(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    let marked = text.contains("```") || text.starts_with('`');
    match marked {
        true => of(text),
        false => (!text.is_empty()).then(|| text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_code_in_other_dress_is_the_same() {
        for replies in [
            &[
                "git reset --soft HEAD~1",
                "```bash\ngit reset --soft HEAD~1\n```",
                "Use `git reset --soft HEAD~1`.",
                "Gib  `git reset  --soft HEAD~1` ein.\nConfidence: 0.9",
            ][..],
            &[
                "SELECT COUNT(*) FROM orders WHERE status = 'Open';",
                "select count(*) from orders where status='Open'",
                "```sql\nSELECT COUNT(*)\nFROM orders\nWHERE status = 'Open';\n```",
            ],
            &[
                "=SUMME(A1:A10)",
                "Die Formel lautet =SUMME(A1:A10).",
                "`=SUMME(A1:A10)`",
            ],
            &["lsof -i :8080", "用 lsof -i :8080 查看。"],
            &["len(a)", "用 len(a)"],
        ] {
            let all: Vec<_> = replies.iter().map(|r| of(r).map(|c| normal(&c))).collect();
            assert!(all[0].is_some(), "{replies:?}");
            assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        }
    }

    #[test]
    fn other_code_and_prose_stay_apart() {
        for (one, two) in [
            ("rm -r a", "rm -rf a"),
            ("echo 'a  b'", "echo 'a b'"),
            ("```py\nif x:\n  y\n```", "```py\nif x:\ny\n```"),
            ("SELECT 'A'", "SELECT 'a'"),
            ("s[::-1]", "reversed(s)"),
        ] {
            let form = |text| of(text).map(|code| normal(&code));
            assert_ne!(form(one), form(two), "{one} {two}");
        }
        for prose in [
            "It depends on the shell that you use.",
            "",
            "`a` or `b`, as you like `c`",
        ] {
            assert_eq!(
                of(prose).filter(|_| !prose.starts_with('`')),
                None,
                "{prose}"
            );
        }
        let long = "fn a() {\n    1\n}";
        assert_eq!(key("ls  -l"), "ls  -l");
        assert!(
            key(long).starts_with("fn a() { … (3 lines, "),
            "{}",
            key(long)
        );
        assert_ne!(key(long), key("fn a() {\n    2\n}"));
    }
}
