//! Lines that a build service does not take for a command.
//!
//! Runners of code hosts read what a job prints: a line that begins with `::error::`, after any spaces, or contains
//! `##[error]` or `##vso[…]` is a command. What members say must not become one.

use std::borrow::Cow;

/// Commands of the form `::NAME …::`.
const COMMANDS: &[&str] = &[
    "add-mask",
    "add-matcher",
    "add-path",
    "debug",
    "echo",
    "endgroup",
    "error",
    "group",
    "internal-set-repo-path",
    "notice",
    "remove-matcher",
    "save-state",
    "set-env",
    "set-output",
    "stop-commands",
    "warning",
];
/// Marks that count anywhere in a line.
const MARKS: &[&str] = &["##[", "##vso["];

/// Returns a line without commands: with a space in each mark. Other lines, code with `::` included, stay as they are.
pub fn inert(line: &str) -> Cow<'_, str> {
    let starts = is_command(line);
    if !starts && !has_mark(line) {
        return Cow::Borrowed(line);
    }
    let mut line = match starts {
        true => line.replacen("::", ": :", 1),
        false => line.to_owned(),
    };
    for mark in MARKS {
        line = line.replace(mark, &mark.replacen("##", "# #", 1));
    }
    Cow::Owned(line)
}

/// Returns JSON that contains no marks: their second `#` is escaped.
pub fn inert_json(json: String) -> String {
    match has_mark(&json) {
        true => MARKS.iter().fold(json, |json, mark| {
            json.replace(mark, &mark.replacen("##", "#\\u0023", 1))
        }),
        false => json,
    }
}

fn has_mark(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark))
}

/// Returns whether a line begins with a command.
fn is_command(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("::") else {
        return false;
    };
    let name = rest.split([' ', ':']).next().unwrap_or_default();
    rest.contains("::") && COMMANDS.iter().any(|one| one.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_lose_their_marks_and_nothing_else_changes() {
        for (line, safe) in [
            ("::error::x", ": :error::x"),
            (
                "  \t::Error file=a.rs,line=1::x",
                "  \t: :Error file=a.rs,line=1::x",
            ),
            (
                "\u{a0}::stop-commands::token",
                "\u{a0}: :stop-commands::token",
            ),
            ("a ##[error]b ##[group]", "a # #[error]b # #[group]"),
            (
                "##vso[task.setvariable variable=x]y",
                "# #vso[task.setvariable variable=x]y",
            ),
            ("::error::##[error]", ": :error::# #[error]"),
        ] {
            assert_eq!(inert(line), safe);
            assert_eq!(inert(safe), safe, "twice is once");
        }
        for line in [
            "",
            "::std::mem::swap(a, b);",
            "std::error::Error",
            "::error",
            "use ::error_stack::Report;",
            "#[derive(Debug)]",
            "## Title [x]",
            "see ::error::x",
        ] {
            assert_eq!(inert(line), line);
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a": ["##[error]x", "###[", "##vso[a]", "##"]});
        let json = inert_json(value.to_string());
        assert!(!json.contains("##[") && !json.contains("##vso["), "{json}");
        let back: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(back, value);
    }
}
