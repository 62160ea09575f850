//! Masks private things in a text before it is shared: keys and tokens of well-known forms, home folders, user names.
//!
//! Input: a text, and what is known of the user. Output: the text with each of them replaced, and their number. A key of
//! an unknown form, or a secret in plain words, is not recognised.

use std::collections::BTreeMap;

/// What was masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Private {
    /// A key, token or password.
    Key,
    /// The path of a home folder.
    Home,
    /// The name of the user.
    User,
}

impl Private {
    /// Its name: `key`, `home folder`, `user name`.
    pub fn word(self) -> &'static str {
        match self {
            Private::Key => "key",
            Private::Home => "home folder",
            Private::User => "user name",
        }
    }

    fn mask(self) -> &'static str {
        match self {
            Private::Key => "[key]",
            Private::Home => "~",
            Private::User => "[user]",
        }
    }
}

/// How keys of well-known services begin, and the minimum of characters that follow.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 30),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xapp-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("hf_", 20),
    ("npm_", 30),
    ("pypi-", 30),
    ("gsk_", 20),
    ("xai-", 20),
    // A JSON web token.
    ("eyJ", 30),
];
/// How the names of variables end whose value is a secret.
const NAMES: [&str; 6] = ["_KEY", "_TOKEN", "_SECRET", "PASSWORD", "PASSWD", "APIKEY"];
/// Folders whose folders are named after users.
const HOMES: [&str; 3] = ["/home/", "/Users/", "\\Users\\"];
/// A shorter password is rather a word.
const VALUE_MIN: usize = 8;
/// A shorter name is part of too many words.
const USER_MIN: usize = 3;
/// Accounts that are no name of a person.
const NOBODY: [&str; 4] = ["root", "user", "admin", "king"];

/// Masks texts and counts.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    home: Option<String>,
    user: Option<String>,
    /// What was masked so far, and how often.
    pub found: BTreeMap<Private, u64>,
}

impl Redactor {
    /// Knows the home folder and the name of the user. A name that a member has stays.
    pub fn new(home: Option<&str>, user: Option<&str>, members: &[String]) -> Self {
        let is_name = |user: &&str| {
            user.len() >= USER_MIN && !NOBODY.contains(user) && !members.iter().any(|m| m == user)
        };
        Self {
            home: home
                .map(|home| home.trim_end_matches('/').to_owned())
                .filter(|home| home.len() > 1),
            user: user.filter(is_name).map(str::to_owned),
            found: BTreeMap::new(),
        }
    }

    /// Returns a text without private things.
    pub fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut before = None;
        let mut rest = text;
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

    /// What begins here: its length, and how much of its start stays.
    fn at(&self, rest: &str, before: Option<char>) -> Option<(usize, Private, usize)> {
        if let Some(len) = pem(rest) {
            return Some((len, Private::Key, 0));
        }
        if let Some((keep, len)) = password_of_url(rest) {
            return Some((keep + len, Private::Key, keep));
        }
        if before.is_some_and(is_word) {
            return None;
        }
        if let Some(len) = token(rest) {
            return Some((len, Private::Key, 0));
        }
        if let Some((keep, len)) = assigned(rest).or_else(|| bearer(rest)) {
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

/// Bytes of the characters at the start that satisfy a test.
fn run(text: &str, test: impl Fn(char) -> bool) -> usize {
    text.find(|c| !test(c)).unwrap_or(text.len())
}

fn token(rest: &str) -> Option<usize> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    PREFIXES.iter().find_map(|(prefix, least)| {
        let after = rest.strip_prefix(prefix)?;
        // A full stop ends the sentence, not the key.
        let len = after[..run(after, is_token)].trim_end_matches('.').len();
        (len >= *least).then_some(prefix.len() + len)
    })
}

/// A block of a private key.
fn pem(rest: &str) -> Option<usize> {
    let head = rest.strip_prefix("-----BEGIN ")?;
    let line = head.split("-----").next()?;
    if !line.ends_with("PRIVATE KEY") || line.len() > 40 {
        return None;
    }
    let end = format!("-----END {line}-----");
    // Of a block that was cut off, the rest is the key.
    Some(rest.find(&end).map_or(rest.len(), |at| at + end.len()))
}

/// `NAME_KEY=value`: the bytes up to the value, and those of the value.
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
    (len >= VALUE_MIN).then_some((name + 1 + quotes, len))
}

/// `Bearer value`.
fn bearer(rest: &str) -> Option<(usize, usize)> {
    const WORD: &str = "Bearer ";
    let head = rest.get(..WORD.len())?;
    if !head.eq_ignore_ascii_case(WORD) {
        return None;
    }
    let is_value = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    let len = run(&rest[WORD.len()..], is_value);
    (len >= 16).then_some((WORD.len(), len))
}

/// `://name:password@`: the bytes up to the password, and those of the password.
fn password_of_url(rest: &str) -> Option<(usize, usize)> {
    let after = rest.strip_prefix("://")?;
    let host = run(after, |c| {
        !c.is_whitespace() && !matches!(c, '/' | '"' | '\'' | '<' | '>')
    });
    let (login, _) = after[..host].rsplit_once('@')?;
    let (name, password) = login.split_once(':')?;
    (!password.is_empty()).then_some((3 + name.len() + 1, password.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(Some("/home/jo.ann/"), Some("joann"), &["ann".into()])
    }

    #[test]
    fn keys_paths_and_names_are_masked_and_counted() {
        let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
        for (text, wanted) in [
            (format!("use sk-{long}."), "use [key].".to_owned()),
            (format!("(ghp_{long})"), "([key])".into()),
            (format!("key\nAKIA{}", &long[..16]), "key\n[key]".into()),
            (
                format!("OPENAI_API_KEY=\"{long}\""),
                "OPENAI_API_KEY=\"[key]\"".into(),
            ),
            (
                format!("export DB_PASSWORD={long}; x"),
                "export DB_PASSWORD=[key] x".into(),
            ),
            (
                format!("authorization: bearer {long}"),
                "authorization: bearer [key]".into(),
            ),
            (
                "postgres://me:pa:s@w0rd@db/x".into(),
                "postgres://me:[key]@db/x".into(),
            ),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb".into(),
                "[key]\nb".into(),
            ),
            ("-----BEGIN PRIVATE KEY-----\nMII".into(), "[key]".into()),
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
        // A member of that name, an account that is a word, and nothing known.
        for (user, members) in [
            (Some("ann"), vec!["ann".to_owned()]),
            (Some("root"), vec![]),
            (None, vec![]),
        ] {
            assert_eq!(
                Redactor::new(Some("/"), user, &members).text("ann root / x"),
                "ann root / x"
            );
        }
    }
}
