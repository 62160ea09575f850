//! Decides when two answers are the same. Answers are compared by key: a choice, a number, an exact text, JSON, a set.
//! An answer without a key is an abstention, never a vote for nothing.

use crate::clean::clean_line;
use kd_reading::anchors::Fenced;
use kd_reading::{
    self, Answer, Options, Step, Unread, Wanted, anchors, asked, code, date, kinds, lists, unknown,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of an answer, which decides how answers are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum AnswerKind {
    /// One of several options.
    Choice {
        /// The options.
        options: Vec<String>,
    },
    /// A number, without units and separators.
    Number,
    /// A day, a month or a year.
    Date,
    /// A text, ignoring case, whitespace and surrounding marks.
    Exact,
    /// A JSON value, ignoring key order.
    Json,
    /// Items in any order.
    Set,
    /// Items in order.
    Ranking,
    /// A command, an expression or a program, ignoring whitespace.
    Code,
    /// Answers that a judge calls the same.
    Judged,
    /// Open text: each answer is its own proposal, unless two mean the same.
    #[default]
    Text,
}

/// Maximum characters of a key.
const KEY_CHARS_MAX: usize = 200;
/// Maximum characters of code.
const CODE_CHARS_MAX: usize = 4_000;

/// The reason why a text names no kind of answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswerKind {
    /// `choice` has fewer than two options.
    #[error("`choice` needs options: choice:yes,no")]
    NoOptions,
    /// There is no such kind.
    #[error(
        "`{0}` is no kind of answer: it is choice:a,b, yes-no, number, date, exact, json, set, ranking, code, judged or text"
    )]
    Unknown(String),
}

impl AnswerKind {
    /// Parses `choice:a,b`, `yes-no`, `number`, `date`, `exact`, `json`, `set`, `ranking`, `code`, `judged`, `text`.
    ///
    /// # Errors
    /// If the kind is unknown, or `choice` has fewer than two options.
    pub fn parse(text: &str) -> Result<Self, BadAnswerKind> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let options: Vec<String> = rest
            .split(',')
            .map(|o| clean_line(o, KEY_CHARS_MAX))
            .filter(|o| !o.is_empty())
            .collect();
        Ok(match kind.trim() {
            "choice" if options.len() >= 2 => Self::Choice { options },
            "choice" => return Err(BadAnswerKind::NoOptions),
            "yes-no" => Self::Choice {
                options: vec!["yes".into(), "no".into()],
            },
            "number" => Self::Number,
            "date" => Self::Date,
            "exact" => Self::Exact,
            "json" => Self::Json,
            "set" => Self::Set,
            "ranking" => Self::Ranking,
            "code" => Self::Code,
            "judged" => Self::Judged,
            "text" => Self::Text,
            other => {
                return Err(BadAnswerKind::Unknown(other.to_owned()));
            }
        })
    }

    /// Formats the kind for [`AnswerKind::parse`].
    pub fn written(&self) -> String {
        match self {
            Self::Choice { options } => format!("choice:{}", options.join(",")),
            Self::Number => "number".into(),
            Self::Date => "date".into(),
            Self::Exact => "exact".into(),
            Self::Json => "json".into(),
            Self::Set => "set".into(),
            Self::Ranking => "ranking".into(),
            Self::Code => "code".into(),
            Self::Judged => "judged".into(),
            Self::Text => "text".into(),
        }
    }

    /// Returns the name of the kind that [`AnswerKind::parse`] accepts, without options.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Choice { options } if *options == ["yes", "no"] => "yes-no",
            Self::Choice { .. } => "choice",
            Self::Number => "number",
            Self::Date => "date",
            Self::Exact => "exact",
            Self::Json => "json",
            Self::Set => "set",
            Self::Ranking => "ranking",
            Self::Code => "code",
            Self::Judged => "judged",
            Self::Text => "text",
        }
    }

    /// Returns the name, with the options of a choice.
    pub fn words(&self) -> String {
        match self {
            Self::Choice { options } => format!("a choice of {}", options.join(", ")),
            Self::Number => "a number".into(),
            Self::Date => "a date".into(),
            Self::Exact => "an exact text".into(),
            Self::Json => "a JSON value".into(),
            Self::Set => "a set".into(),
            Self::Ranking => "a ranking".into(),
            Self::Code => "code".into(),
            Self::Judged => "a text, compared by a judge".into(),
            Self::Text => "open text".into(),
        }
    }

    /// Returns whether a program can find the keys of such answers.
    pub fn is_keyed(&self) -> bool {
        !matches!(self, Self::Text | Self::Judged)
    }

    /// Returns whether a judge may decide which answers mean the same.
    pub fn is_comparable(&self) -> bool {
        matches!(
            self,
            Self::Text | Self::Judged | Self::Set | Self::Ranking | Self::Code
        )
    }

    /// Returns the instruction for the last lines of an answer; empty for open text.
    pub fn instruction(&self) -> String {
        match self {
            Self::Choice { options } => {
                format!("one of: {}", options.join(" | "))
            }
            Self::Number => "one number".into(),
            Self::Date => "one date as YYYY-MM-DD, or its year alone if only that is asked".into(),
            Self::Exact => "the bare answer".into(),
            Self::Json => "one JSON value".into(),
            Self::Set => "items, separated by commas".into(),
            Self::Ranking => "items in order, first to last, separated by commas".into(),
            Self::Code => "only the code".into(),
            Self::Judged => "the bare answer in a few words".into(),
            Self::Text => String::new(),
        }
    }

    /// Returns the schema of the `answer` field of a structured answer.
    pub fn schema(&self) -> Value {
        match self {
            Self::Choice { options } => serde_json::json!({"type": "string", "enum": options}),
            Self::Number => serde_json::json!({"type": "number"}),
            Self::Code => serde_json::json!({"type": "string", "maxLength": CODE_CHARS_MAX}),
            _ => serde_json::json!({"type": "string", "maxLength": KEY_CHARS_MAX}),
        }
    }

    /// Returns the key of a stated answer; `None` if it is not of this kind.
    pub fn key(&self, stated: &str) -> Option<String> {
        let stated = stated.trim();
        if stated.is_empty() {
            return None;
        }
        match self {
            Self::Choice { options } => choice(options, stated),
            Self::Number => number(stated),
            Self::Date => date::only(stated),
            Self::Exact | Self::Judged => Some(plain(stated)).filter(|k| !k.is_empty()),
            Self::Json => serde_json::from_str(stated)
                .ok()
                .map(|value: Value| canonical(&value).to_string()),
            Self::Set => {
                let mut items: Vec<String> = stated
                    .split([',', ';', '\n'])
                    .map(plain)
                    .filter(|i| !i.is_empty())
                    .collect();
                items.sort();
                items.dedup();
                (!items.is_empty()).then(|| items.join(", "))
            }
            Self::Ranking => lists::in_order(stated).map(|items| items.join(" > ")),
            Self::Code => code::of(stated).map(|code| code::key(&code)),
            Self::Text => None,
        }
    }

    /// Reads the key of a reply to a question, in any form.
    ///
    /// # Errors
    /// The reason why the reply has no key.
    pub fn read_for(&self, question: &str, reply: &str) -> Result<(String, Step), Unread> {
        match self {
            Self::Number if asked::is_two_numbers(reply, question) => Err(Unread::Ambiguous),
            Self::Date if date::asks_weekday(question) => match date::weekday(reply) {
                Some(day) => Ok((day.to_owned(), Step::Words)),
                None => self.read(reply),
            },
            Self::Date if date::asks_year(question) && date::only_year(reply).is_some() => {
                let year = date::only_year(reply).ok_or(Unread::Missing)?;
                Ok((year, Step::Words))
            }
            Self::Date => {
                let (key, step) = self.read(&asked::with_days_first(reply, question))?;
                Ok((date::with_year_of(&key, question), step))
            }
            Self::Choice { options } if *options == ["yes", "no"] => {
                if unknown::is_unknown(reply) {
                    return Err(Unread::Ambiguous);
                }
                let fenced = anchors::side_in_code(reply)?;
                let reply = match &fenced {
                    Some(Fenced::Side(yes)) => {
                        let side = if *yes { "yes" } else { "no" };
                        return Ok((side.to_owned(), Step::Words));
                    }
                    Some(Fenced::Text(text)) if unknown::is_unknown(text) => {
                        return Err(Unread::Ambiguous);
                    }
                    Some(Fenced::Text(text)) => text,
                    None => reply,
                };
                let side = asked::chinese_side(reply).map(|yes| if yes { "yes" } else { "no" });
                let first = asked::first_side(reply).map(|yes| if yes { "yes" } else { "no" });
                let side = side.or_else(|| {
                    let yes = asked::lettered_side(question, reply)?;
                    Some(if yes { "yes" } else { "no" })
                });
                let side = side.or_else(|| {
                    let yes = asked::echoed_side(question, reply)
                        .or_else(|| asked::restated_side(question, reply))
                        .or_else(|| asked::modal_side(question, reply))?;
                    Some(if yes { "yes" } else { "no" })
                });
                match (self.read(reply), side.or(first)) {
                    (Err(Unread::Missing | Unread::Ambiguous), Some(side)) => {
                        Ok((side.to_owned(), Step::Words))
                    }
                    (read, _) => read,
                }
            }
            Self::Choice { options } => {
                let (at, step) = kd_reading::choice(options, question, reply)?;
                let option = options.get(at).cloned();
                option.map(|option| (option, step)).ok_or(Unread::Missing)
            }
            Self::Number => kd_reading::amount(question, reply),
            Self::Ranking => self.read_as(&Wanted::Ranking(kinds::given(question)), reply),
            _ => self.read(reply),
        }
    }

    /// Reads the key of a reply, in any form.
    ///
    /// # Errors
    /// The reason why the reply has no key.
    pub fn read(&self, reply: &str) -> Result<(String, Step), Unread> {
        let wanted = match self {
            Self::Choice { options } => Wanted::Option(Options::new(options)),
            Self::Number => Wanted::Number,
            Self::Json => Wanted::Json,
            Self::Date => Wanted::Date,
            Self::Set => Wanted::List,
            Self::Ranking => Wanted::Ranking(Vec::new()),
            Self::Code => Wanted::Code,
            Self::Exact | Self::Judged | Self::Text => Wanted::Short,
        };
        self.read_as(&wanted, reply)
    }

    fn read_as(&self, wanted: &Wanted, reply: &str) -> Result<(String, Step), Unread> {
        let (answer, step) = kd_reading::read(wanted, reply)?;
        let key = match (self, answer) {
            (Self::Choice { options }, Answer::Option(at)) => options.get(at).cloned(),
            (_, Answer::Option(_)) => None,
            (Self::Number | Self::Date | Self::Set | Self::Ranking, Answer::Text(key)) => Some(key),
            (Self::Code, Answer::Text(text)) => Some(code::key(&text)),
            (_, Answer::Text(text)) => self.key(&text),
        };
        key.map(|key| (key, step)).ok_or(Unread::Missing)
    }

    /// Returns the key of a free-form answer by the rules of records without a reading version: from the last line
    /// `Answer: …`, otherwise from the only possible match. The flag is `false` for the latter.
    pub fn key_in(&self, text: &str) -> Option<(String, bool)> {
        if let Some(stated) = marked(text, "answer")
            && let Some(key) = self.key(&stated)
        {
            return Some((key, true));
        }
        let guessed = match self {
            Self::Choice { options } => only_one_named(options, text),
            Self::Number => last_number(text),
            Self::Json => text
                .find(['{', '['])
                .and_then(|at| self.key(text[at..].trim())),
            _ => None,
        };
        guessed.map(|key| (key, false))
    }
}

/// Returns the rest of the last line that begins with a word and a colon, ignoring surrounding marks.
pub fn marked(text: &str, word: &str) -> Option<String> {
    text.lines().rev().find_map(|line| {
        let line = line
            .trim()
            .trim_start_matches(['*', '#', '-', '>', '_', ' ']);
        let head = line.get(..word.len())?;
        if !head.eq_ignore_ascii_case(word) {
            return None;
        }
        let rest = line[word.len()..].trim_start_matches(['*', '_', ' ']);
        let rest = rest.strip_prefix(':')?;
        Some(rest.trim_matches(['*', '_', ' ', '`']).to_owned())
    })
}

/// Returns the stated confidence of an answer, 0 to 1: `Confidence: 0.8`, `80 %`, `8/10`.
pub fn confidence_in(text: &str) -> Option<f64> {
    confidence(&marked(text, "confidence")?)
}

/// Parses a stated confidence as a number from 0 to 1; `None` if it is not a number or not in range.
pub fn confidence(said: &str) -> Option<f64> {
    let number: String = said
        .trim()
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    let value: f64 = number.parse().ok()?;
    let rest = said.trim()[number.len()..].trim_start();
    let scaled = if let Some(of) = rest.strip_prefix('/') {
        value
            / of.trim()
                .trim_end_matches('.')
                .parse::<f64>()
                .ok()
                .filter(|d| *d > 0.0)?
    } else if rest.starts_with('%') || value > 1.0 {
        value / 100.0
    } else {
        value
    };
    (0.0..=1.0).contains(&scaled).then_some(scaled)
}

fn plain(text: &str) -> String {
    let text = clean_line(text, KEY_CHARS_MAX).to_lowercase();
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let bare = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    // The bracket that closes one inside: `iron (Fe)`.
    let end = text.get(bare.len()..).and_then(|rest| rest.chars().next());
    match end {
        Some(')') if bare.matches('(').count() > bare.matches(')').count() => format!("{bare})"),
        _ => bare.to_owned(),
    }
}

fn choice(options: &[String], stated: &str) -> Option<String> {
    let said = plain(stated);
    let of = |place: usize| options.get(place).cloned();
    if let Some(at) = options.iter().position(|o| plain(o) == said) {
        return of(at);
    }
    // A letter alone, or before its option.
    let first = said.split([')', '.', ' ', ':']).next().unwrap_or_default();
    if let [letter @ b'a'..=b'z'] = first.as_bytes() {
        let at = usize::from(letter - b'a');
        let rest = plain(&said[1..]);
        let fits = rest.is_empty() || of(at).is_some_and(|o| plain(&o) == rest);
        if fits && at < options.len() {
            return of(at);
        }
    }
    only_one_named(options, stated)
}

/// Returns the option named as a whole word, if it is the only one.
fn only_one_named(options: &[String], text: &str) -> Option<String> {
    let words = words(text);
    let mut named = options.iter().filter(|option| {
        let option = self::words(option);
        !option.is_empty() && words.windows(option.len()).any(|w| w == option)
    });
    let only = named.next()?;
    named.next().is_none().then(|| only.clone())
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '+' && c != '#')
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Normalizes a number: `1,234.50 kg` becomes `1234.5`, `12 %` becomes `12`.
fn number(stated: &str) -> Option<String> {
    let start = stated.find(|c: char| c.is_ascii_digit())?;
    let negative = stated[..start].trim_end().ends_with(['-', '−']);
    let mut digits = String::new();
    let mut chars = stated[start..].char_indices().peekable();
    let mut point = false;
    while let Some((_, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let before_digit = next.is_some_and(|n| n.is_ascii_digit());
        match c {
            '0'..='9' => digits.push(c),
            ',' | '_' | '\u{a0}' | '\u{202f}' | '\'' if before_digit => {}
            '.' if !point && before_digit => {
                point = true;
                digits.push('.');
            }
            _ => break,
        }
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = fraction.trim_end_matches('0');
    let value = if fraction.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction}")
    };
    Some(if negative && value != "0" {
        format!("-{value}")
    } else {
        value
    })
}

fn last_number(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|l| {
        !l.trim().to_lowercase().starts_with("confidence")
            && l.contains(|c: char| c.is_ascii_digit())
    })?;
    let word = line
        .split_whitespace()
        .rev()
        .find(|w| w.contains(|c: char| c.is_ascii_digit()))?;
    number(word)
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            Value::Object(
                sorted
                    .into_iter()
                    .map(|(n, v)| (n.clone(), canonical(v)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (None, Some(f)) if f.fract() == 0.0 && f.abs() < 9e15 => Value::from(f as i64),
            _ => value.clone(),
        },
        leaf => leaf.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> AnswerKind {
        AnswerKind::parse(text).unwrap()
    }

    #[test]
    fn a_promise_can_be_about_each_kind_and_no_other() {
        for name in kd_eval::marks::KINDS {
            let written = if name == "choice" { "choice:a,b" } else { name };
            assert_eq!(kind(written).name(), name);
        }
        let told = AnswerKind::parse("poem").unwrap_err().to_string();
        let (_, known) = told.split_once(':').unwrap();
        let words = known.split(|c: char| !c.is_alphanumeric() && c != '-');
        let named = words.filter(|word| kd_eval::marks::KINDS.contains(word));
        assert_eq!(named.count(), kd_eval::marks::KINDS.len(), "{told}");
    }

    #[test]
    fn answers_that_mean_the_same_have_one_key() {
        for (how, same) in [
            (
                "choice:SQLite,PostgreSQL",
                &["sqlite", "A", "a) SQLite", "**SQLite**.", "I take SQLite"][..],
            ),
            ("yes-no", &["Yes", "yes.", "YES!"]),
            ("number", &["1,234.50", "1234.5 kg", "$1234.5", "01234.500"]),
            ("exact", &["Paris", " paris. ", "“Paris”"]),
            ("exact", &["Fe (iron)", "(Fe (iron))."]),
            ("json", &[r#"{"a":1,"b":[2.0]}"#, r#"{ "b": [2], "a": 1 }"#]),
            ("set", &["red, blue", "Blue; red", "red,blue,red"]),
            ("ranking", &["red, blue", "Red > blue", "1. red\n2. blue"]),
            ("code", &["ls -l", " ls -l\n"]),
        ] {
            let keys: Vec<_> = same.iter().map(|s| kind(how).key(s)).collect();
            assert!(keys[0].is_some(), "{how}");
            assert!(keys.iter().all(|k| *k == keys[0]), "{how}: {keys:?}");
        }
    }

    #[test]
    fn what_is_no_answer_of_the_kind_has_no_key() {
        for (how, text) in [
            ("choice:a1,b1", "neither"),
            ("choice:red,blue", "red or blue"),
            ("choice:red,blue", "redder"),
            ("number", "many"),
            ("json", "{a"),
            ("set", " , "),
            ("exact", "…"),
            ("text", "anything"),
        ] {
            assert_eq!(kind(how).key(text), None, "{how} {text}");
        }
        assert!(AnswerKind::parse("choice:a").is_err());
        assert!(
            AnswerKind::parse("poem")
                .unwrap_err()
                .to_string()
                .contains("judged")
        );
    }

    #[test]
    fn an_answer_is_found_in_free_words() {
        let yes_no = kind("yes-no");
        let text = "There is no doubt about it.\n\n**Answer:** Yes\nConfidence: 85%";
        assert_eq!(yes_no.key_in(text), Some(("yes".into(), true)));
        assert_eq!(confidence_in(text), Some(0.85));
        assert_eq!(
            yes_no.key_in("I would say yes to that"),
            Some(("yes".into(), false))
        );
        assert_eq!(yes_no.key_in("yes and no"), None);
        assert_eq!(
            kind("number").key_in("6 * 7 makes 42.\nConfidence: 0.9"),
            Some(("42".into(), false))
        );
        assert_eq!(
            kind("number").key_in("Answer: -3,5.").map(|k| k.0),
            Some("-35".into())
        );
    }

    #[test]
    fn confidence_is_a_share_or_nothing() {
        for (said, value) in [
            ("0.8", Some(0.8)),
            ("85", Some(0.85)),
            ("85 %", Some(0.85)),
            ("8/10", Some(0.8)),
            (".", None),
            ("high", None),
            ("900", None),
            ("1/0", None),
        ] {
            assert_eq!(confidence(said), value, "{said}");
        }
    }
}
