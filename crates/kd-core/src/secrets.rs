//! Finds keys, tokens and passwords of well-known shapes in text and masks them.
//!
//! Input: text, whole or in pieces. Output: the same text with `ghp_[secret: github-token]` in place of each secret,
//! and the list of finds. The prefix of a shape is not secret and stays, so streamed text is held back only once a
//! secret has begun. Only the shapes in [`SHAPES`] and the values in [`Secrets::values`] are recognized: a hash, an id
//! or a long random word is not a secret. Each byte is read a bounded number of times, whatever the text.

use crate::clean::{Cleaner, clean_text, is_clean};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The name of a value configured by the user as a key.
const CONFIGURED: (&str, &str) = ("configured-key", "configured key");
/// Minimum length of a configured value: a shorter one is not a key, and would mask ordinary words.
const VALUE_BYTES_MIN: usize = 8;
/// Bytes of a value left visible, like the prefix of a shape.
const VALUE_BYTES_SHOWN: usize = 2;
/// Maximum bytes held back in a stream while a secret is incomplete.
const HELD_BYTES_MAX: usize = 16 << 10;
/// Maximum bytes of a user name or a password in a URL.
const ADDRESS_BYTES_MAX: usize = 256;

/// A well-known shape of a secret.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Replaces the secret in the text.
    pub id: &'static str,
    /// Shown to the user.
    pub label: &'static str,
    /// The possible prefixes.
    starts: &'static [&'static str],
    body: Body,
}

/// The characters that follow the prefix of a secret.
#[derive(Clone, Copy, Debug)]
enum Body {
    /// A run of these characters with this minimum and maximum length in bytes; as long as possible.
    Run(fn(u8) -> bool, usize, usize),
    /// Three base64url parts separated by dots; the second also begins with `eyJ`.
    Jwt,
    /// The lines up to `-----END … PRIVATE KEY-----`.
    Pem,
    /// `name:password@`, in which the password is masked.
    Address,
    /// Optional `:`, `=`, quotes and blanks, then 40 base64 characters.
    Assigned,
}

impl Body {
    /// Returns whether it may also begin inside a word.
    const fn begins_inside(self) -> bool {
        matches!(self, Self::Address | Self::Pem)
    }
}

const fn row(
    id: &'static str,
    label: &'static str,
    starts: &'static [&'static str],
    body: Body,
) -> Shape {
    Shape {
        id,
        label,
        starts,
        body,
    }
}

/// Every recognized shape. The first row that matches at a position counts.
#[rustfmt::skip]
pub const SHAPES: &[Shape] = &[
    row("aws-access-key", "AWS access key", &["AKIA", "ASIA"], Body::Run(is_upper, 16, 16)),
    row("aws-secret-key", "AWS secret key", &["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"], Body::Assigned),
    row("github-token", "GitHub token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], Body::Run(is_alnum, 36, 255)),
    row("github-token", "GitHub token", &["github_pat_"], Body::Run(is_word, 60, 255)),
    row("gitlab-token", "GitLab token", &["glpat-"], Body::Run(is_dashed, 20, 255)),
    row("anthropic-key", "Anthropic key", &["sk-ant-"], Body::Run(is_dashed, 40, 255)),
    row("openrouter-key", "OpenRouter key", &["sk-or-v1-"], Body::Run(is_alnum, 64, 64)),
    row("openai-key", "OpenAI key", &["sk-proj-", "sk-svcacct-", "sk-admin-"], Body::Run(is_dashed, 40, 255)),
    row("openai-key", "OpenAI key", &["sk-"], Body::Run(is_alnum, 48, 64)),
    row("google-key", "Google API key", &["AIza"], Body::Run(is_dashed, 35, 35)),
    row("google-token", "Google token", &["ya29."], Body::Run(is_dashed, 40, 2048)),
    row("groq-key", "Groq key", &["gsk_"], Body::Run(is_alnum, 48, 64)),
    row("xai-key", "xAI key", &["xai-"], Body::Run(is_alnum, 70, 100)),
    row("slack-token", "Slack token", &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-"], Body::Run(is_dashed, 24, 255)),
    row("stripe-key", "Stripe key", &["sk_live_", "rk_live_", "sk_test_", "rk_test_"], Body::Run(is_alnum, 16, 255)),
    row("npm-token", "npm token", &["npm_"], Body::Run(is_alnum, 36, 36)),
    row("huggingface-token", "Hugging Face token", &["hf_"], Body::Run(is_alnum, 34, 40)),
    row("pypi-token", "PyPI token", &["pypi-"], Body::Run(is_dashed, 85, 255)),
    row("jwt", "JWT", &["eyJ"], Body::Jwt),
    row("private-key", "private key", &[
        "-----BEGIN PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN EC PRIVATE KEY-----",
        "-----BEGIN DSA PRIVATE KEY-----", "-----BEGIN OPENSSH PRIVATE KEY-----", "-----BEGIN ENCRYPTED PRIVATE KEY-----",
    ], Body::Pem),
    row("bearer-token", "bearer token", &[
        "Authorization: Bearer ", "authorization: Bearer ", "authorization: bearer ", "Authorization: bearer ",
        "Authorization\": \"Bearer ", "authorization\": \"Bearer ",
    ], Body::Run(is_token, 16, 4096)),
    row("url-password", "password in a URL", &["://"], Body::Address),
];

/// For each byte, the rows of the table that begin with it, as a bit set.
static ROWS: [u32; 256] = rows(false);
/// The subset of rows whose shapes may also begin inside a word.
static ROWS_INSIDE: [u32; 256] = rows(true);

const fn rows(inside: bool) -> [u32; 256] {
    assert!(SHAPES.len() <= 32);
    let mut rows = [0; 256];
    let mut i = 0;
    while i < SHAPES.len() {
        let Shape { starts, body, .. } = SHAPES[i];
        let mut j = 0;
        while j < starts.len() && (!inside || body.begins_inside()) {
            rows[starts[j].as_bytes()[0] as usize] |= 1 << i;
            j += 1;
        }
        i += 1;
    }
    rows
}

/// Words used in place of a password in examples.
const PLACEHOLDERS: &[&str] = &[
    "password",
    "passwd",
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "example",
    "changeme",
    "x",
    "xxx",
    "xxxx",
    "redacted",
    "hidden",
    "masked",
    "your-password",
    "yourpassword",
    "your_password",
    "mypassword",
    "postgres",
    "root",
    "user",
    "admin",
    "test",
    "guest",
];

fn is_alnum(b: u8) -> bool {
    b.is_ascii_alphanumeric()
}

fn is_upper(b: u8) -> bool {
    b.is_ascii_uppercase() || b.is_ascii_digit()
}

fn is_word(b: u8) -> bool {
    is_alnum(b) || b == b'_'
}

fn is_dashed(b: u8) -> bool {
    is_word(b) || b == b'-'
}

fn is_base64(b: u8) -> bool {
    is_alnum(b) || matches!(b, b'+' | b'/' | b'=')
}

fn is_token(b: u8) -> bool {
    is_dashed(b) || matches!(b, b'.' | b'~' | b'+' | b'/' | b'=')
}

/// A secret in a text: its byte range and its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    from: usize,
    to: usize,
    id: &'static str,
    label: &'static str,
}

impl Found {
    /// Shifts the range to the text from `at` on.
    fn after(self, at: usize) -> Self {
        Self {
            from: self.from - at,
            to: self.to - at,
            ..self
        }
    }
}

/// The result of a scan.
struct Scan {
    found: Vec<Found>,
    /// Text before this position is final, whatever follows.
    at: usize,
    /// Text before this position may be shown, whatever follows.
    shown: usize,
}

/// The result of a match at one position in a text.
enum Here {
    Nothing,
    /// A secret with this range.
    Secret(usize, usize),
    /// More text is needed to decide; up to this position it is the prefix of a shape.
    Unknown(usize),
}

/// The secrets to mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    /// Disables masking.
    pub allow: bool,
    /// Values that are secret regardless of shape: the values of variables that hold the user's keys.
    values: Vec<String>,
    /// The first bytes of all secrets; other positions are skipped.
    first: [bool; 256],
}

impl Default for Secrets {
    fn default() -> Self {
        Self::new([])
    }
}

/// The number of masked secrets, by label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masked(BTreeMap<&'static str, usize>);

impl Masked {
    /// Returns whether nothing was masked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of secrets.
    pub fn count(&self) -> u64 {
        self.0.values().map(|n| *n as u64).sum()
    }

    /// Adds other counts.
    pub fn add(&mut self, other: Masked) {
        for (label, count) in other.0 {
            *self.0.entry(label).or_default() += count;
        }
    }

    /// Returns the line for the user; `None` if nothing was masked.
    pub fn line(&self) -> Option<String> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let them = if count == 1 { "it" } else { "them" };
        let summary = self.summary()?;
        Some(format!("{summary}; --allow-secrets sends {them}"))
    }

    /// Returns the numbers, without advice; `None` if nothing was masked.
    pub fn summary(&self) -> Option<String> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let s = if count == 1 { "" } else { "s" };
        let each = self.0.iter().map(|(label, n)| match n {
            1 => (*label).to_owned(),
            n => format!("{label} ×{n}"),
        });
        let each: Vec<String> = each.collect();
        Some(format!("masked {count} secret{s} ({})", each.join(", ")))
    }
}

impl Secrets {
    /// Masks the shapes of the table and these values.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values
            .into_iter()
            .map(|value| value.trim().to_owned())
            .filter(|value| value.len() >= VALUE_BYTES_MIN)
            .collect();
        // Longest first, because one may contain another.
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        let mut first = ROWS.map(|rows| rows != 0);
        for value in &values {
            first[usize::from(value.as_bytes()[0])] = true;
        }
        Self {
            allow: false,
            values,
            first,
        }
    }

    /// Returns the text with its secrets masked, and the counts. A secret that is hidden from this by escape sequences or
    /// invisible characters would come together when these are removed: then they are removed first.
    pub fn mask<'a>(&self, text: &'a str) -> (Cow<'a, str>, Masked) {
        let (shown, masked) = self.mask_as_it_is(text);
        if self.allow || is_clean(text) {
            return (shown, masked);
        }
        let hidden = self.scan(&clean_text(&shown), None, true).found;
        if hidden.is_empty() {
            return (shown, masked);
        }
        let clean = clean_text(text);
        let (shown, masked) = self.mask_as_it_is(&clean);
        (Cow::Owned(shown.into_owned()), masked)
    }

    fn mask_as_it_is<'a>(&self, text: &'a str) -> (Cow<'a, str>, Masked) {
        let mut masked = Masked::default();
        if self.allow {
            return (Cow::Borrowed(text), masked);
        }
        let found = self.scan(text, None, true).found;
        if found.is_empty() {
            return (Cow::Borrowed(text), masked);
        }
        let mut out = String::with_capacity(text.len());
        put(text, &found, text.len(), &mut out, &mut masked);
        (Cow::Owned(out), masked)
    }

    /// Masks in place; returns the counts.
    pub fn mask_in_place(&self, text: &mut String) -> Masked {
        let (clean, masked) = self.mask(text);
        if let Cow::Owned(clean) = clean {
            *text = clean;
        }
        masked
    }

    /// Masks all strings of a JSON value in place; returns the counts. Names of fields stay.
    pub fn mask_json(&self, value: &mut serde_json::Value) -> Masked {
        let mut masked = Masked::default();
        match value {
            serde_json::Value::String(text) => masked = self.mask_in_place(text),
            serde_json::Value::Array(items) => {
                items
                    .iter_mut()
                    .for_each(|item| masked.add(self.mask_json(item)));
            }
            serde_json::Value::Object(fields) => {
                let of = std::mem::take(fields).into_iter();
                *fields = of
                    .map(|(mut name, mut item)| {
                        masked.add(self.mask_in_place(&mut name));
                        masked.add(self.mask_json(&mut item));
                        (name, item)
                    })
                    .collect();
            }
            _ => {}
        }
        masked
    }

    /// Masks in place and preserves the number of lines.
    pub fn mask_keeping_lines(&self, text: &mut String) -> Masked {
        let mut masked = Masked::default();
        if self.allow {
            return masked;
        }
        let found = self.scan(text, None, true).found;
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for secret in found {
            let (from, to) = (secret.from, secret.to);
            let lines = text[from..to].matches('\n').count();
            put(
                &text[at..],
                &[secret.after(at)],
                to - at,
                &mut out,
                &mut masked,
            );
            out.extend(std::iter::repeat_n('\n', lines));
            at = to;
        }
        out.push_str(&text[at..]);
        *text = out;
        masked
    }

    /// Finds the secrets of a text in order. `before` is the byte before the text.
    fn scan(&self, text: &str, before: Option<u8>, is_whole: bool) -> Scan {
        let bytes = text.as_bytes();
        let mut found = Vec::new();
        let mut at = 0;
        'text: while at < bytes.len() {
            if !self.first[usize::from(bytes[at])] {
                at += 1;
                continue;
            }
            let previous = match at {
                0 => before,
                at => Some(bytes[at - 1]),
            };
            let begins = previous.is_none_or(|b| !is_alnum(b));
            for value in self.values.iter().filter(|_| begins) {
                match starts(&bytes[at..], value.as_bytes()) {
                    Start::Whole => {
                        let (id, label) = CONFIGURED;
                        let to = at + value.len();
                        let shown = value.ceil_char_boundary(VALUE_BYTES_SHOWN);
                        found.push(Found {
                            from: at + shown,
                            to,
                            id,
                            label,
                        });
                        at = to;
                        continue 'text;
                    }
                    Start::Part if !is_whole => {
                        let shown = value.ceil_char_boundary(VALUE_BYTES_SHOWN);
                        let shown = bytes.len().min(at + shown);
                        return Scan { found, at, shown };
                    }
                    _ => {}
                }
            }
            let is_inside = previous.is_some_and(is_dashed);
            let rows = if is_inside { &ROWS_INSIDE } else { &ROWS };
            let mut rows = rows[usize::from(bytes[at])];
            let mut unknown: Option<usize> = None;
            while rows != 0 {
                let shape = &SHAPES[rows.trailing_zeros() as usize];
                rows &= rows - 1;
                match shape.at(bytes, at, is_whole) {
                    Here::Nothing => {}
                    Here::Secret(from, to) if unknown.is_none() => {
                        let (id, label) = (shape.id, shape.label);
                        // The end of a private key may be cut off by any character.
                        let from = text.floor_char_boundary(from);
                        let to = text.ceil_char_boundary(to);
                        found.push(Found {
                            from,
                            to,
                            id,
                            label,
                        });
                        at = to;
                        continue 'text;
                    }
                    // An earlier row may still match.
                    Here::Secret(shown, _) | Here::Unknown(shown) => {
                        unknown = Some(unknown.map_or(shown, |least| least.min(shown)));
                    }
                }
            }
            if let Some(shown) = unknown {
                return Scan { found, at, shown };
            }
            at += 1;
        }
        let at = bytes.len();
        Scan {
            found,
            at,
            shown: at,
        }
    }
}

/// Appends a text up to a position, with secrets masked.
fn put(text: &str, found: &[Found], to: usize, out: &mut String, masked: &mut Masked) {
    let mut at = 0;
    for secret in found {
        out.push_str(&text[at..secret.from]);
        out.push_str("[secret: ");
        out.push_str(secret.id);
        out.push(']');
        *masked.0.entry(secret.label).or_default() += 1;
        at = secret.to;
    }
    out.push_str(&text[at..to]);
}

enum Start {
    No,
    /// The text ends before the word is complete.
    Part,
    Whole,
}

fn starts(text: &[u8], word: &[u8]) -> Start {
    if text.starts_with(word) {
        Start::Whole
    } else if word.starts_with(text) {
        Start::Part
    } else {
        Start::No
    }
}

impl Shape {
    fn at(&self, text: &[u8], at: usize, is_whole: bool) -> Here {
        let mut is_part = false;
        for start in self.starts {
            if text.get(at + 1) != start.as_bytes().get(1) && at + 1 < text.len() {
                continue;
            }
            match starts(&text[at..], start.as_bytes()) {
                Start::Whole => match self.body(text, at, at + start.len(), is_whole) {
                    Here::Nothing => {}
                    here => return here,
                },
                Start::Part => is_part |= !is_whole,
                Start::No => {}
            }
        }
        match is_part {
            true => Here::Unknown(text.len()),
            false => Here::Nothing,
        }
    }

    fn body(&self, text: &[u8], from: usize, body: usize, is_whole: bool) -> Here {
        let grows = |to: usize, max: usize| !is_whole && to == text.len() && to - body <= max;
        match self.body {
            Body::Run(is_part, min, max) => {
                let to = run(text, body, is_part, max + 1);
                if grows(to, max) {
                    return Here::Unknown(body);
                }
                // A period at the end is not part of it.
                let dots = text[body..to]
                    .iter()
                    .rev()
                    .take_while(|b| **b == b'.')
                    .count();
                let to = to - dots;
                let said = &text[body..to];
                let is_secret = (min..=max).contains(&said.len()) && is_random(said);
                secret(is_secret, body, to)
            }
            Body::Jwt => {
                let mut to = run(text, body, is_dashed, 4096);
                let mut lengths = [to - from, 0, 0];
                let mut second = body;
                for (i, length) in lengths.iter_mut().enumerate().skip(1) {
                    if grows(to, HELD_BYTES_MAX) {
                        return Here::Unknown(body);
                    }
                    if text.get(to) != Some(&b'.') {
                        return Here::Nothing;
                    }
                    if i == 1 {
                        second = to + 1;
                    }
                    let end = run(text, to + 1, is_dashed, 8192);
                    *length = end - to - 1;
                    to = end;
                }
                if grows(to, HELD_BYTES_MAX) {
                    return Here::Unknown(body);
                }
                let is_secret =
                    text[second..].starts_with(b"eyJ") && lengths.iter().all(|n| *n >= 16);
                secret(is_secret, body, to)
            }
            Body::Pem => {
                let max = (body + HELD_BYTES_MAX).min(text.len());
                let end = text[body..max].windows(5).position(|w| w == b"-----");
                let Some(end) = end.map(|n| body + n) else {
                    if grows(text.len(), HELD_BYTES_MAX) {
                        return Here::Unknown(body);
                    }
                    // A truncated key.
                    let to = run(
                        text,
                        body,
                        |b| is_base64(b) || b.is_ascii_whitespace() || b == b'\\',
                        HELD_BYTES_MAX,
                    );
                    let to = body + text[body..to].trim_ascii_end().len();
                    return secret(encoded(&text[body..to]) >= 64, body, to);
                };
                let line = text[end + 5..].iter().take(40).position(|b| *b == b'-');
                let close = line.map(|n| end + 5 + n + 5);
                let says_end = text[end + 5..].starts_with(b"END ");
                match close {
                    Some(to) if says_end && to <= text.len() => {
                        secret(encoded(&text[body..end]) >= 16, body, to)
                    }
                    _ if !is_whole && text.len() - end < 64 => Here::Unknown(body),
                    _ => Here::Nothing,
                }
            }
            Body::Address => {
                let is_name = |b: u8| {
                    !matches!(
                        b,
                        b':' | b'@' | b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`'
                    ) && b.is_ascii_graphic()
                };
                let colon = run(text, body, is_name, ADDRESS_BYTES_MAX);
                if grows(colon, ADDRESS_BYTES_MAX - 1) {
                    return Here::Unknown(body);
                }
                if text.get(colon) != Some(&b':') {
                    return Here::Nothing;
                }
                let is_password = |b: u8| {
                    !matches!(b, b'@' | b'/' | b'"' | b'\'' | b'<' | b'>' | b'`')
                        && b.is_ascii_graphic()
                };
                let to = run(text, colon + 1, is_password, ADDRESS_BYTES_MAX);
                if grows(to, 2 * ADDRESS_BYTES_MAX - 1) {
                    return Here::Unknown(body);
                }
                let password = &text[colon + 1..to];
                secret(
                    text.get(to) == Some(&b'@') && !is_placeholder(password),
                    colon + 1,
                    to,
                )
            }
            Body::Assigned => {
                let is_between = |b: u8| matches!(b, b' ' | b'\t' | b':' | b'=' | b'"' | b'\'');
                let start = run(text, body, is_between, 8);
                let to = run(text, start, is_base64, 41);
                if grows(to, 48) {
                    return Here::Unknown(body);
                }
                secret(
                    start > body && to - start == 40 && is_random(&text[start..to]),
                    start,
                    to,
                )
            }
        }
    }
}

fn secret(is_one: bool, from: usize, to: usize) -> Here {
    match is_one {
        true => Here::Secret(from, to),
        false => Here::Nothing,
    }
}

/// Returns the end of the longest run from `at`, of up to `max` bytes.
fn run(text: &[u8], at: usize, is_part: impl Fn(u8) -> bool, max: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take(max).take_while(|b| is_part(**b)).count()
}

/// Returns whether it looks random: several different characters, including a digit, and no `EXAMPLE` at the end.
fn is_random(said: &[u8]) -> bool {
    let mut seen = [false; 256];
    said.iter().for_each(|b| seen[usize::from(*b)] = true);
    let different = seen.iter().filter(|seen| **seen).count();
    let has_digit = said.iter().any(u8::is_ascii_digit);
    different >= 6 && has_digit && !said.ends_with(b"EXAMPLE") && !said.ends_with(b"EXAMPLEKEY")
}

fn is_placeholder(password: &[u8]) -> bool {
    let Ok(word) = std::str::from_utf8(password) else {
        return false;
    };
    let lower = word.to_ascii_lowercase();
    word.is_empty()
        || PLACEHOLDERS.contains(&lower.as_str())
        || word.starts_with(['$', '{', '[', '%', '(', '*'])
        || word.bytes().all(|b| matches!(b, b'*' | b'.' | b'x' | b'X'))
}

/// Counts the base64 characters.
fn encoded(body: &[u8]) -> usize {
    body.iter().filter(|b| is_base64(**b)).count()
}

/// Masks text that arrives in pieces. Recognizes a secret split between two pieces: text that may be the beginning of
/// one is held back.
#[derive(Clone, Debug, Default)]
pub struct Masker {
    /// Removes what could hide a secret.
    cleaner: Cleaner,
    /// Held text, including the prefix of a possible shape.
    held: String,
    /// Number of its bytes that were already emitted.
    given: usize,
    /// The byte before the held text.
    before: Option<u8>,
}

impl Masker {
    /// Returns the masked form of the next piece, without the held text.
    pub fn push(&mut self, secrets: &Secrets, piece: &str) -> String {
        if secrets.allow {
            return piece.to_owned();
        }
        self.held.push_str(&self.cleaner.clean(piece));
        self.give(secrets, false)
    }

    /// Returns the held text at the end of the input.
    pub fn end(&mut self, secrets: &Secrets) -> String {
        self.give(secrets, true)
    }

    fn give(&mut self, secrets: &Secrets, is_whole: bool) -> String {
        let scan = secrets.scan(&self.held, self.before, is_whole);
        let (mut found, mut at, mut shown) = (scan.found, scan.at, scan.shown);
        // Secrets begin and end at ASCII characters; so does the position where one may begin.
        if self.held.len() - at > 2 * HELD_BYTES_MAX {
            (at, shown) = (self.held.len(), self.held.len());
        }
        // Emitted text cannot be masked any more, even if the prefix of a shape turns out to contain a value.
        found.retain(|secret| secret.to > self.given);
        for secret in &mut found {
            secret.from = secret.from.max(self.given);
        }
        let shown = self.held.floor_char_boundary(shown).max(self.given);
        let mut out = String::with_capacity(shown - self.given);
        let after: Vec<Found> = found.into_iter().map(|s| s.after(self.given)).collect();
        let rest = &self.held[self.given..];
        let length = shown - self.given;
        put(rest, &after, length, &mut out, &mut Masked::default());
        let at = self.held.floor_char_boundary(at);
        if at > 0 {
            self.before = self.held.as_bytes().get(at - 1).copied();
            self.held.drain(..at);
        }
        self.given = shown - at;
        out
    }
}

#[cfg(test)]
mod tests;
