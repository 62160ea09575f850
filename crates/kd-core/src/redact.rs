//! Masks private data in a text before it is shared: keys and tokens, home folders, user names.
//!
//! Input: a text, and information about the user. Output: the masked text, and the number of replacements. Keys are
//! recognized by the shapes of [`crate::secrets`] and by variable names, as in `DB_PASSWORD=…`. Keys of unknown shape
//! and secrets in plain words are not recognized.

use crate::clean::clean_text;
use crate::secrets::Secrets;
use serde_json::Value;
use std::collections::BTreeMap;

/// A kind of private data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Private {
    /// A key, token or password.
    Key,
    /// The path of a home folder.
    Home,
    /// The user's name.
    User,
}

impl Private {
    /// Returns its name: `key`, `home folder`, `user name`.
    pub fn word(self) -> &'static str {
        match self {
            Private::Key => "key",
            Private::Home => "home folder",
            Private::User => "user name",
        }
    }

    fn mask(self) -> &'static str {
        match self {
            Private::Key => "[secret: value]",
            Private::Home => "~",
            Private::User => "[user]",
        }
    }
}

/// Suffixes of variables whose value is a secret.
const NAMES: [&str; 6] = ["_KEY", "_TOKEN", "_SECRET", "PASSWORD", "PASSWD", "APIKEY"];
/// Folders whose subfolders are named after users.
const HOMES: [&str; 3] = ["/home/", "/Users/", "\\Users\\"];
/// A shorter password is probably a word.
const VALUE_MIN: usize = 8;
/// A shorter name is part of too many words.
const USER_MIN: usize = 3;
/// Account names that do not identify a person.
const NOBODY: [&str; 4] = ["root", "user", "admin", "king"];

/// Masks texts and counts.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secrets: Secrets,
    home: Option<String>,
    user: Option<String>,
    /// The number of replacements so far, by kind.
    pub found: BTreeMap<Private, u64>,
}

impl Redactor {
    /// Creates a redactor for the keys, the home folder and the name of the user. A name that is also a member's is
    /// kept.
    pub fn new(
        secrets: Secrets,
        home: Option<&str>,
        user: Option<&str>,
        members: &[String],
    ) -> Self {
        let is_name = |user: &&str| {
            user.len() >= USER_MIN && !NOBODY.contains(user) && !members.iter().any(|m| m == user)
        };
        Self {
            secrets,
            home: home
                .map(|home| home.trim_end_matches('/').to_owned())
                .filter(|home| home.len() > 1),
            user: user.filter(is_name).map(str::to_owned),
            found: BTreeMap::new(),
        }
    }

    /// Masks every text in a JSON value. Field names are kept.
    pub fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(all) => all.iter_mut().for_each(|one| self.value(one)),
            Value::Object(all) => all.values_mut().for_each(|one| self.value(one)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns a summary for the user.
    pub fn line(&self) -> String {
        if self.found.is_empty() {
            return "nothing to redact was found".to_owned();
        }
        let each = self.found.iter().map(|(what, count)| {
            let s = if *count == 1 { "" } else { "s" };
            format!("{count} {}{s}", what.word())
        });
        let each: Vec<String> = each.collect();
        format!("redacted {}", each.join(", "))
    }

    /// Returns a text without private data.
    pub fn text(&mut self, text: &str) -> String {
        // What is removed later could hide a secret, or a part of a path.
        let text = clean_text(text);
        let (text, masked) = self.secrets.mask(&text);
        if !masked.is_empty() {
            *self.found.entry(Private::Key).or_default() += masked.count();
        }
        let mut out = String::with_capacity(text.len());
        let mut before = None;
        let mut rest = text.as_ref();
        while let Some(next) = rest.chars().next() {
            let (len, kind, keep) = match self.at(rest, before) {
                Some(found) => found,
                None => {
                    out.push(next);
                    before = Some(next);
                    rest = &rest[next.len_utf8()..];
                    continue;
                }
            };
            *self.found.entry(kind).or_default() += 1;
            out.push_str(&rest[..keep]);
            out.push_str(kind.mask());
            before = rest[..len].chars().next_back();
            rest = &rest[len..];
        }
        out
    }

    /// Returns the private data that begins here: its length, kind, and the length of the prefix to keep.
    fn at(&self, rest: &str, before: Option<char>) -> Option<(usize, Private, usize)> {
        if before.is_some_and(is_word) {
            return None;
        }
        if let Some((keep, len)) = assigned(rest) {
            return Some((keep + len, Private::Key, keep));
        }
        if let Some(home) = &self.home
            && let Some(after) = rest.strip_prefix(home.as_str())
            && !after.starts_with(is_word)
        {
            return Some((home.len(), Private::Home, 0));
        }
        for homes in HOMES {
            let name = rest.strip_prefix(homes).map(|after| run(after, is_word));
            if let Some(len) = name.filter(|len| *len > 0) {
                return Some((homes.len() + len, Private::Home, 0));
            }
        }
        let user = self.user.as_deref()?;
        let after = rest.strip_prefix(user)?;
        (!after.starts_with(is_word)).then_some((user.len(), Private::User, 0))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// Returns the length of the longest prefix whose characters satisfy a test, in bytes.
fn run(text: &str, test: impl Fn(char) -> bool) -> usize {
    text.find(|c| !test(c)).unwrap_or(text.len())
}

/// Matches `NAME_KEY=value`. Returns the bytes up to the value, and the bytes of the value.
fn assigned(rest: &str) -> Option<(usize, usize)> {
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let name = run(rest, is_name);
    if !NAMES.iter().any(|end| rest[..name].ends_with(end)) {
        return None;
    }
    let after = rest[name..].strip_prefix('=')?;
    let quotes = run(after, |c| matches!(c, '"' | '\''));
    let value = &after[quotes..];
    let len = run(value, |c| {
        !c.is_whitespace() && !matches!(c, '"' | '\'' | '`' | '$' | ',')
    });
    // The value is neither masked already nor a placeholder.
    let is_value =
        len >= VALUE_MIN && !value.starts_with(['<', '{']) && !value[..len].contains("[secret:");
    is_value.then_some((name + 1 + quotes, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let secrets = Secrets::new(["my own key 1".to_owned()]);
        Redactor::new(
            secrets,
            Some("/home/jo.ann/"),
            Some("joann"),
            &["ann".into()],
        )
    }

    #[test]
    fn keys_paths_and_names_are_masked_and_counted() {
        let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        for (text, wanted) in [
            (
                format!("(ghp_{long})"),
                "(ghp_[secret: github-token])".to_owned(),
            ),
            (
                format!("GITHUB_TOKEN=ghp_{long}"),
                "GITHUB_TOKEN=ghp_[secret: github-token]".into(),
            ),
            (
                format!("MY_API_KEY=\"{long}\""),
                "MY_API_KEY=\"[secret: value]\"".into(),
            ),
            (
                format!("export DB_PASSWORD={long}; x"),
                "export DB_PASSWORD=[secret: value] x".into(),
            ),
            (
                "postgres://me:hunter2@db/x".into(),
                "postgres://me:[secret: url-password]@db/x".into(),
            ),
            ("my own key 1".into(), "my[secret: configured-key]".into()),
            (
                "/home/jo.ann/src and /home/jo.ann".into(),
                "~/src and ~".into(),
            ),
            (
                "/home/bob/x /Users/eve/y C:\\Users\\Eve\\z".into(),
                "~/x ~/y C:~\\z".into(),
            ),
            (
                "joann said, joann's 🦀".into(),
                "[user] said, [user]'s 🦀".into(),
            ),
        ] {
            let mut redactor = redactor();
            assert_eq!(redactor.text(&text), wanted);
            assert!(!redactor.found.is_empty(), "{text}");
        }
        let mut redactor = redactor();
        redactor.text("/home/jo.ann /home/x joann");
        let counts: Vec<_> = redactor.found.into_iter().collect();
        assert_eq!(counts, [(Private::Home, 2), (Private::User, 1)]);
    }

    #[test]
    fn every_text_of_a_value_is_masked() {
        let mut value =
            serde_json::json!({"/home/x": ["/home/x", {"a": "joann"}], "n": 1, "t": true});
        let mut redactor = redactor();
        redactor.value(&mut value);
        let wanted = serde_json::json!({"/home/x": ["~", {"a": "[user]"}], "n": 1, "t": true});
        assert_eq!(value, wanted);
        assert_eq!(redactor.line(), "redacted 1 home folder, 1 user name");
        assert_eq!(Redactor::default().line(), "nothing to redact was found");
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "task-based risk-averse sk-learn",
            "the KEY=value form, API_KEY=$KEY, TOKEN=short",
            "https://example.org:8080/a@b and mailto:a@b.c",
            "a bearer of news",
            "/homes/x /home/ joanna ann -----BEGIN CERTIFICATE-----",
            "eyJ is how it begins; AKIA too",
        ] {
            let mut redactor = redactor();
            assert_eq!(redactor.text(text), text);
            assert!(redactor.found.is_empty());
        }
        // A member of that name, an account that is a word, and no information.
        for (user, members) in [
            (Some("ann"), vec!["ann".to_owned()]),
            (Some("root"), vec![]),
            (None, vec![]),
        ] {
            assert_eq!(
                Redactor::new(Secrets::default(), Some("/"), user, &members).text("ann root / x"),
                "ann root / x"
            );
        }
    }
}
