//! Paths as words of a shell.

use kd_core::clean::is_invisible;

/// Writes a path as a word of a command line. Characters that cannot be shown are escaped, as bash, zsh and ksh read them;
/// quotes keep a `~` from being the home folder, so the caller puts that in.
pub(super) fn quoted(path: &str) -> String {
    let path = match path.starts_with('-') {
        // It is not an option.
        true => format!("./{path}"),
        false => path.to_owned(),
    };
    let is_hidden = |c: char| c.is_control() || is_invisible(c);
    if path.contains(is_hidden) {
        let mut word = "$'".to_owned();
        for c in path.chars() {
            match c {
                '\\' | '\'' => word.extend(['\\', c]),
                '\n' => word.push_str("\\n"),
                '\t' => word.push_str("\\t"),
                c if c.is_ascii_control() => word.push_str(&format!("\\x{:02x}", u32::from(c))),
                c if is_hidden(c) => word.push_str(&format!("\\U{:08x}", u32::from(c))),
                c => word.push(c),
            }
        }
        word.push('\'');
        return word;
    }
    match is_plain(&path) {
        true => path,
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

/// Returns whether a shell reads a word as it is written, but for a `~/` at its beginning.
pub(super) fn is_plain(path: &str) -> bool {
    let rest = path.strip_prefix("~/").unwrap_or(path);
    let plain = |c: char| {
        c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '@' | '%')
    };
    !path.is_empty() && !path.starts_with('-') && rest.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_the_path_again() {
        let long = format!("/{}", "long name/".repeat(90));
        for path in [
            "src/main.rs",
            "my notes.md",
            "it's \"so\".md",
            "-x",
            "--attach",
            "a\nb\tc",
            "bell\u{7}'\\x",
            "$HOME `id` $(id) !x *?[a]{b,c} #d ;e &f |g <h >i",
            "a~b",
            "~root",
            "小明，.md",
            "right\u{202e}left",
            long.as_str(),
        ] {
            let word = quoted(path);
            assert!(!word.contains(char::is_control), "{word}");
            let Ok(said) = Command::new("bash")
                .args(["-c", &format!("printf %s {word}")])
                .env("LC_ALL", "C.UTF-8")
                .output()
            else {
                eprintln!("skipped: there is no bash");
                return;
            };
            let read = String::from_utf8_lossy(&said.stdout).into_owned();
            let read = read.strip_prefix("./").unwrap_or(&read);
            assert_eq!(read, path.strip_prefix("./").unwrap_or(path), "{word}");
        }
    }
}
